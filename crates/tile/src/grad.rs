//! The gradient of a tile program, as tile programs.
//!
//! Law: let `L` be a number that depends on the outputs, and let `d_y` hold its derivative with
//! respect to each element of the output `y`. The programs compute `d_x`, the derivative of `L`
//! with respect to each element of an input `x`. Each operation is differentiated as the function
//! of real numbers that it rounds: a conversion of floating-point numbers has the derivative 1.
//! Forward values are recomputed from the inputs.
//!
//! The steps:
//!
//! 1. *prepare*: if several blocks load the same tile of an input, such as the weights of a norm,
//!    one block of the gradient executes several blocks of the program, one after another.
//!    Statements that do not depend on an iteration are moved out of its loop;
//! 2. *reverse*: statements are reversed from the last to the first, and each adds to the
//!    derivatives of its operands. A loop becomes a loop. The order of its iterations is free, so
//!    each value that it carries must be a sum, a minimum or a maximum over the iterations;
//! 3. *destinations*: a load becomes a store. If several blocks still load one tile, each stores
//!    its own part, and a second program adds the parts in a fixed order.

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

/// The options of a gradient.
///
/// ```
/// use tilewright_tile::GradientOptions;
///
/// let options = GradientOptions { of: vec!["x".to_string()], ..GradientOptions::default() };
/// assert_eq!(options.blocks_merged, 32);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradientOptions {
    /// The inputs with respect to which the gradient is taken. If empty: all inputs of
    /// floating-point numbers.
    pub of: Vec<String>,
    /// Whether gradients of tiles that several blocks or threads load may be added by atomics, in
    /// an order that differs between runs. These gradients are f32, or f64 if the input is f64, and
    /// the caller must fill their tensors with zeros. Gathers require it.
    pub atomic: bool,
    /// The number of blocks of the program that one block of the gradient executes, if blocks share
    /// a tile of an input. Each block then keeps the sum over these blocks in registers.
    pub blocks_merged: i64,
    /// Outputs of the program that the gradient also writes. They must be stored outside of loops.
    /// The backward computes these values anyway, so no other launch has to compute them.
    pub outputs: Vec<String>,
}

impl Default for GradientOptions {
    fn default() -> GradientOptions {
        GradientOptions { of: Vec::new(), atomic: false, blocks_merged: 32, outputs: Vec::new() }
    }
}

impl Program {
    /// The gradient with respect to its inputs: programs that are launched in order. The first
    /// reads the inputs of the program and `d_y` for each output `y`, and writes `d_x`, or parts of
    /// it. Each of the others adds the parts of one input.
    ///
    /// `d_x` has the type and the layout of `x`. Exactly those elements are written that the
    /// program loads from `x`.
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
    /// Errors (E1213): an operation between an input and an output has no derivative here; a loop
    /// carries a value that is no sum, minimum or maximum; an input is loaded in two ways that may
    /// overlap; a name is already used. The error has the line of the statement.
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

/// The numbers of the tensors with respect to which the gradient is taken.
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

/// The name of the tensor that holds the derivative with respect to a tensor.
fn derivative(name: &str) -> String {
    format!("d_{name}")
}

/// The type in which derivatives are computed, by the type of the value.
fn wide(element: Element) -> Element {
    if element == Element::F64 { Element::F64 } else { Element::F32 }
}
