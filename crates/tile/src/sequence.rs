//! Tile programs that run one after another.
//!
//! Law: tensors are joined by their names. A program reads what the programs before it wrote to the
//! tensor of the same name. What a later program reads is a workspace; every other tensor that is
//! written is a result, as the last program that changes it leaves it.

use std::fmt;

use crate::error::TileError;
use crate::interpret::{self, TensorNumbers, TensorValues};
use crate::program::{Program, Role, Tensor};

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
    /// These programs, in this order.
    pub fn new(programs: Vec<Program>) -> Sequence {
        Sequence { programs }
    }

    /// The programs, in the order in which they are launched.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The names of the tensors that one program writes and a later one reads, in the order in
    /// which they are written.
    pub fn workspaces(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (number, program) in self.programs.iter().enumerate() {
            for tensor in program.tensors.iter().filter(|tensor| tensor.role != Role::Input) {
                if self.is_read_after(number, &tensor.name) && !names.contains(&tensor.name.as_str()) {
                    names.push(tensor.name.as_str());
                }
            }
        }
        names
    }

    /// Whether a program behind this one has the tensor as an input.
    fn is_read_after(&self, number: usize, name: &str) -> bool {
        let reads = |tensor: &Tensor| tensor.name == name && tensor.role == Role::Input;
        self.programs[number + 1..].iter().any(|later| later.tensors.iter().any(reads))
    }

    /// Whether a program behind this one changes the tensor.
    fn is_changed_after(&self, number: usize, name: &str) -> bool {
        let changes = |tensor: &Tensor| tensor.name == name && tensor.role == Role::Both;
        self.programs[number + 1..].iter().any(|later| later.tensors.iter().any(changes))
    }

    /// Runs the programs on the interpreter of tile programs ([`interpret::run`]), and returns the
    /// results. Elements of a workspace that no program wrote count as 0.
    ///
    /// Errors: as [`interpret::run`].
    pub fn run(&self, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Result<TensorValues, TileError> {
        let mut known = Vec::new();
        for (name, values) in inputs {
            // The first program that has it says its type.
            let has = |program: &&Program| program.has(name);
            let Some(program) = self.programs.iter().find(has).or(self.programs.first()) else { continue };
            known.extend(interpret::numbers(program, &[(*name, values.clone())])?);
        }
        let mut results = TensorValues::new();
        for (number, program) in self.programs.iter().enumerate() {
            let mut written = TensorNumbers::new();
            for (name, values) in interpret::run_numbers(program, sizes, &known)? {
                if self.is_read_after(number, &name) || self.is_changed_after(number, &name) {
                    let element = interpret::element_of(program, &name);
                    let zero = interpret::Number::of(0.0, element);
                    known.retain(|(own, _)| *own != name);
                    known.push((name, values.into_iter().map(|value| value.unwrap_or(zero)).collect()));
                } else {
                    written.push((name, values));
                }
            }
            results.extend(interpret::values(program, written)?);
        }
        Ok(results)
    }
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
