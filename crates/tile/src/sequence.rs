//! Tile programs that run one after another.
//!
//! Law: tensors of different programs with the same name are the same tensor. A program reads what
//! earlier programs wrote to it. The first program that has a tensor decides whether the caller
//! passes it. A tensor that the caller does not pass and that a later program reads is a workspace.
//! Every other tensor that is written is a result, with the contents that the last program leaves.

mod kernels;

use std::fmt;

use tilewright_kernel::Element;

pub use kernels::{SequenceKernels, SequenceSizes};

use crate::error::{Reason, TileError};
use crate::interpret::{self, TensorNumbers, TensorValues};
use crate::program::{Program, Role, Tensor};

/// How the caller of a sequence uses a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorPurpose {
    /// The caller passes it, and the programs only read it.
    Input,
    /// The caller passes it with contents, and the programs read and write it.
    Changed,
    /// The programs write it. Its contents before do not matter.
    Output,
    /// A program writes it and a later one reads it. The caller does not pass it.
    Workspace,
}

impl TensorPurpose {
    /// Whether the caller passes its contents.
    pub fn is_given(self) -> bool {
        matches!(self, TensorPurpose::Input | TensorPurpose::Changed)
    }

    /// Whether a program writes it.
    pub fn is_written(self) -> bool {
        self != TensorPurpose::Input
    }
}

impl fmt::Display for TensorPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TensorPurpose::Input => "input",
            TensorPurpose::Changed => "changed",
            TensorPurpose::Output => "output",
            TensorPurpose::Workspace => "workspace",
        })
    }
}

/// A tensor of a sequence, shared by all programs that have a tensor of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceTensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its layout as text, from the first program that declares it. Sizes known at launch have
    /// names.
    pub layout: String,
    /// How the caller uses it.
    pub purpose: TensorPurpose,
}

impl fmt::Display for SequenceTensor {
    /// Prints `x`, an input of f32 (M,1024):(x_pitch,1)
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SequenceTensor { name, element, layout, purpose } = self;
        let purpose = match purpose {
            TensorPurpose::Input => "an input",
            TensorPurpose::Changed => "a changed tensor",
            TensorPurpose::Output => "an output",
            TensorPurpose::Workspace => "a workspace",
        };
        write!(f, "`{name}`, {purpose} of {element} {layout}")
    }
}

/// Tile programs, in the order in which they are launched.
///
/// ```
/// use tilewright_tile::{Program, Sequence};
///
/// let squares: Program = "
/// tile squares {
///     input  x: f32 N:1
///     output square: f32 N:1
///     grid ceil(N/4)
///     a = load(x, (4), (block.x))
///     store(square, (block.x), a * a)
/// }"
/// .parse()?;
/// let total: Program = "
/// tile total {
///     input  square: f32 N:1
///     output sum: f32 (1):(1)
///     grid 1
///     store(sum, (0), reduce_sum(load(square, (8), (0)), 0))
/// }"
/// .parse()?;
/// let both = Sequence::new(vec![squares, total]);
/// assert_eq!(both.workspaces(), ["square"]);
/// let results = both.run(&[("N", 3)], &[("x", vec![1.0, 2.0, 3.0])])?;
/// assert_eq!(results, [("sum".to_string(), vec![Some(14.0)])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sequence {
    programs: Vec<Program>,
}

impl Sequence {
    /// A sequence of these programs, in this order.
    pub fn new(programs: Vec<Program>) -> Sequence {
        Sequence { programs }
    }

    /// The programs, in the order in which they are launched.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The tensors of all programs, each once, in the order in which programs declare them.
    ///
    /// ```
    /// use tilewright_tile::{Program, Sequence, TensorPurpose};
    ///
    /// let twice: Program = "
    /// tile twice {
    ///     input  x: f32 N:1
    ///     output y: f32 N:1
    ///     grid ceil(N/4)
    ///     a = load(x, (4), (block.x))
    ///     store(y, (block.x), a + a)
    /// }"
    /// .parse()?;
    /// let tensors = Sequence::new(vec![twice]).tensors()?;
    /// assert_eq!(tensors[1].purpose, TensorPurpose::Output);
    /// assert_eq!(tensors[0].to_string(), "`x`, an input of f32 N:1");
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: two programs have tensors of one name with elements of different types (E1214).
    pub fn tensors(&self) -> Result<Vec<SequenceTensor>, TileError> {
        let mut joined: Vec<SequenceTensor> = Vec::new();
        for (number, program) in self.programs.iter().enumerate() {
            for Tensor { name, element, layout, role } in &program.tensors {
                match joined.iter_mut().find(|known| known.name == *name) {
                    Some(known) if known.element != *element => {
                        let types = [known.element, *element];
                        return Err(Reason::Joined { tensor: name.clone(), types }.into());
                    }
                    Some(known) if known.purpose == TensorPurpose::Input && *role != Role::Input => {
                        known.purpose = TensorPurpose::Changed;
                    }
                    Some(_) => {}
                    None => {
                        let purpose = match role {
                            Role::Input => TensorPurpose::Input,
                            Role::Both => TensorPurpose::Changed,
                            Role::Output if self.is_read_after(number, name) => TensorPurpose::Workspace,
                            Role::Output => TensorPurpose::Output,
                        };
                        let (name, layout) = (name.clone(), layout.clone());
                        joined.push(SequenceTensor { name, element: *element, layout, purpose });
                    }
                }
            }
        }
        Ok(joined)
    }

    /// The names of the workspaces, in the order in which they are written. A workspace is a tensor
    /// that one program writes and a later one reads, and that the caller does not pass.
    pub fn workspaces(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (number, program) in self.programs.iter().enumerate() {
            for tensor in program.tensors.iter().filter(|tensor| tensor.role == Role::Output) {
                let is_first = !self.programs[..number].iter().any(|earlier| has(earlier, &tensor.name, |_| true));
                if is_first && self.is_read_after(number, &tensor.name) {
                    names.push(tensor.name.as_str());
                }
            }
        }
        names
    }

    /// Whether a later program has the tensor as an input.
    fn is_read_after(&self, number: usize, name: &str) -> bool {
        self.programs[number + 1..].iter().any(|later| has(later, name, |role| role == Role::Input))
    }

    /// Whether a later program both reads and writes the tensor.
    fn is_changed_after(&self, number: usize, name: &str) -> bool {
        self.programs[number + 1..].iter().any(|later| has(later, name, |role| role == Role::Both))
    }

    /// Runs the programs on the interpreter of tile programs ([`interpret::run`]), and returns the
    /// results. Elements of a workspace that no program wrote count as 0.
    ///
    /// Errors: as [`interpret::run`]; as [`Sequence::tensors`].
    pub fn run(&self, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Result<TensorValues, TileError> {
        self.tensors()?;
        let workspaces = self.workspaces();
        let mut known = Vec::new();
        for (name, values) in inputs {
            // The first program that has the tensor decides its type.
            let has = |program: &&Program| program.has(name);
            let Some(program) = self.programs.iter().find(has).or(self.programs.first()) else { continue };
            known.extend(interpret::numbers(program, &[(*name, values.clone())])?);
        }
        let mut results = TensorValues::new();
        for (number, program) in self.programs.iter().enumerate() {
            let mut written = TensorNumbers::new();
            for (name, values) in interpret::run_numbers(program, sizes, &known)? {
                let is_changed = self.is_changed_after(number, &name);
                if is_changed || self.is_read_after(number, &name) {
                    let zero = interpret::Number::of(0.0, interpret::element_of(program, &name));
                    known.retain(|(own, _)| *own != name);
                    known.push((name.clone(), values.iter().map(|value| value.unwrap_or(zero)).collect()));
                }
                if !is_changed && !workspaces.contains(&name.as_str()) {
                    written.push((name, values));
                }
            }
            for (name, values) in interpret::values(program, written)? {
                match results.iter_mut().find(|(own, _)| *own == name) {
                    // Elements that this program does not write keep their values.
                    Some((_, before)) => {
                        before.iter_mut().zip(values).for_each(|(before, now)| *before = now.or(*before));
                    }
                    None => results.push((name, values)),
                }
            }
        }
        Ok(results)
    }
}

/// Whether a program has a tensor of this name with such a role.
fn has(program: &Program, name: &str, role: impl Fn(Role) -> bool) -> bool {
    program.tensors.iter().any(|tensor| tensor.name == name && role(tensor.role))
}

impl fmt::Display for Sequence {
    /// The texts of the programs, with an empty line between two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, program) in self.programs.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "\n" })?;
            write!(f, "{program}")?;
        }
        Ok(())
    }
}
