//! The gradient of a tile program, as tile programs.
//!
//! Law: let `L` be a number that depends on the outputs, and let `d_y` hold its derivative by each
//! element of the output `y`. The programs compute `d_x`, its derivative by each element of an
//! input `x`. Each operation counts as the function of real numbers that it rounds: a conversion of
//! floating-point numbers has the derivative 1. Forward values are recomputed from the inputs.
//!
//! The steps:
//!
//! 1. *prepare*: if several blocks load one tile of an input, as of the weights of a norm, a block
//!    of the gradient executes several blocks of the program, one after another; and statements
//!    that do not depend on an iteration leave their loop;
//! 2. *reverse*: statements are taken from the last to the first, and each adds to the derivatives
//!    of its operands. A loop becomes a loop. Its order is free, so each value that it carries must
//!    be a sum, a minimum or a maximum over the iterations;
//! 3. *destinations*: a load becomes a store. Where a tile is still loaded by several blocks, each
//!    stores its own part, and a second program adds them in a fixed order.

mod destination;
mod edges;
mod prepare;
mod recompute;
mod reverse;
mod rules;
mod total;
mod writer;

pub use total::{TotalTiles, multiprocessors};

use tilewright_kernel::Element;

use crate::error::{Reason, TileError};
use crate::program::{Program, Role};
use crate::sequence::Sequence;

/// How a gradient is made.
///
/// ```
/// use tilewright_tile::GradientOptions;
///
/// let options = GradientOptions { of: vec!["x".to_string()], ..GradientOptions::default() };
/// assert_eq!(options.blocks_merged, 32);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradientOptions {
    /// The inputs by which is derived. Empty: all inputs of floating-point numbers.
    pub of: Vec<String>,
    /// Whether gradients of tiles that several blocks or threads load may be added by atomics, in
    /// an order that differs between runs. They are then of f32, or of f64 as the input is, and
    /// their tensors must be zero before. Gathers need it.
    pub atomic: bool,
    /// How many blocks of the program one block of the gradient executes, where blocks share a tile
    /// of an input: each then keeps the sum over its blocks in registers.
    pub blocks_merged: i64,
    /// Outputs of the program, stored outside of loops, that the gradient writes too: what its
    /// backward computes of them anyway is then not computed by another launch.
    pub outputs: Vec<String>,
}

impl Default for GradientOptions {
    fn default() -> GradientOptions {
        GradientOptions { of: Vec::new(), atomic: false, blocks_merged: 32, outputs: Vec::new() }
    }
}

impl Program {
    /// The gradient by its inputs: programs that are launched in order. The first reads the inputs
    /// of the program and `d_y` for each output `y`, and writes `d_x`, or parts of it. Each of the
    /// others adds the parts of one input.
    ///
    /// `d_x` has the type and the layout of `x`. It is written where the program loads `x`.
    ///
    /// ```
    /// use tilewright_tile::{GradientOptions, Program};
    ///
    /// let square: Program = "
    /// tile square {
    ///     input  x: f32 N:1
    ///     output y: f32 N:1
    ///     grid ceil(N/4)
    ///     a = load(x, (4), (block.x))
    ///     store(y, (block.x), a * a)
    /// }"
    /// .parse()?;
    /// let gradient = square.gradient(&GradientOptions::default())?;
    /// let inputs = [("x", vec![1.0, 2.0, 3.0]), ("d_y", vec![1.0, 1.0, 10.0])];
    /// let outputs = gradient.run(&[("N", 3)], &inputs)?;
    /// assert_eq!(outputs, [("d_x".to_string(), [2.0, 4.0, 60.0].map(Some).to_vec())]);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors (E1213): the program uses an operation on the way from an input to an output that has
    /// no derivative here; it carries a value through a loop that is no sum, minimum or maximum;
    /// an input is loaded in two ways that may overlap; a name is taken. The error has the line of
    /// the statement.
    pub fn gradient(&self, options: &GradientOptions) -> Result<Sequence, TileError> {
        self.verify()?;
        prepare::counts_tiles(self)?;
        prepare::reads_inputs(self)?;
        if options.blocks_merged < 1 {
            let because = format!("{} blocks cannot be merged: take 1 or more", options.blocks_merged);
            return Err(Reason::Gradient { of: self.name.clone(), because }.into());
        }
        let of = chosen(self, options)?;
        let prepared = prepare::prepared(self, &of, options)?;
        let (main, totals) = reverse::reversed(&prepared, &of, options)?;
        let mut programs = vec![main];
        for part in totals {
            programs.push(total::total(&part)?);
        }
        programs.iter().try_for_each(Program::verify)?;
        Ok(Sequence::new(programs))
    }
}

/// The numbers of the tensors by which is derived.
fn chosen(program: &Program, options: &GradientOptions) -> Result<Vec<usize>, TileError> {
    let refuse = |name: &str, because: &str| {
        TileError::from(Reason::Gradient { of: name.to_string(), because: because.to_string() })
    };
    let float = |number: &usize| {
        let tensor = &program.tensors[*number];
        tensor.role == Role::Input && tensor.element.is_float()
    };
    if options.of.is_empty() {
        let all: Vec<usize> = (0..program.tensors.len()).filter(float).collect();
        return match all.is_empty() {
            true => Err(refuse(&program.name, "no input has elements of a floating-point type")),
            false => Ok(all),
        };
    }
    let find = |name: &String| {
        let number = program.tensors.iter().position(|tensor| tensor.name == *name);
        let number = number.ok_or_else(|| refuse(name, "the program has no tensor of this name"))?;
        match float(&number) {
            true => Ok(number),
            false => Err(refuse(name, "it is no input of a floating-point type")),
        }
    };
    options.of.iter().map(find).collect()
}

/// The name of the derivative of a tensor.
fn derivative(name: &str) -> String {
    format!("d_{name}")
}

/// The type of derivatives by a number of a type.
fn wide(element: Element) -> Element {
    if element == Element::F64 { Element::F64 } else { Element::F32 }
}
