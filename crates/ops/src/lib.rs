//! Operators that models call, as tile programs.
//!
//! An operator is a struct of options: what is known when kernels are compiled, such as the length
//! of a row and the types of elements. It gives the tile programs that compute it
//! ([`Operator::forward`]) and its derivatives ([`Operator::backward`]), as a
//! [`tilewright_tile::Sequence`] of programs that are launched in order on tensors with names.
//! Sizes that change from call to call, such as the number of rows, are sizes of the programs.
//!
//! ```
//! use tilewright_ops::{Operator, RmsNorm};
//! use tilewright_tile::Element;
//!
//! let norm = RmsNorm { length: 4, element: Element::F32, weight: true, epsilon: 0.0, ..RmsNorm::default() };
//! let sizes = [("M", 1), ("x_pitch", 4), ("y_pitch", 4)];
//! let results = norm.forward()?.run(&sizes, &[("x", vec![1.0, -1.0, 1.0, -1.0]), ("weight", vec![1.0, 2.0, 3.0, 4.0])])?;
//! assert_eq!(results[0].1, [1.0, -2.0, 3.0, -4.0].map(Some));
//!
//! // The backward reads the inputs and `d_y`, and writes `d_x` and `d_weight`.
//! let names: Vec<String> = norm.backward()?.programs().iter().map(|program| program.name().to_string()).collect();
//! assert_eq!(names, ["d_rms_norm", "total_d_weight"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`operator`] makes an operator of its name and options that another language has as values.

mod activation;
mod attention;
mod counting;
mod cross_entropy;
mod dropout;
mod embedding;
mod error;
mod experts;
mod int4;
mod norm_gradient;
mod optimizer;
mod options;
mod quantize;
mod rope;
mod row_blocks;
mod row_tiles;
mod rows;
mod table;

pub use activation::Activation;
pub use attention::{AppendToCache, Attention, AttentionDecode};
pub use cross_entropy::CrossEntropy;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use error::OperatorError;
pub use experts::{Combine, ExpertPlaces, ExpertProduct, Permute, Route, TILE_ROWS, expert_rows};
pub use int4::{INT4_GROUP, Int4Weights};
pub use optimizer::AdamW;
pub use options::{OptionValue, Options};
pub use quantize::{Dequantize, Quantize};
pub use rope::Rope;
pub use rows::{LayerNorm, LogSoftmax, RmsNorm, Softmax};
pub use table::{OPERATORS, OperatorEntry, operator, operator_kernels};
use tilewright_kernel::Kernel;
use tilewright_kernel::machine::Machine;
use tilewright_tile::{Sequence, SequenceKernels, SequenceTensor, TileError};

/// What computes an operator and its derivatives.
///
/// Law: if `L` is a number that depends on the outputs, and `d_y` holds its derivative by each
/// element of the output `y`, the backward writes `d_x`, its derivative by each element of an input
/// `x`. It reads what it needs of the inputs and outputs of the forward, under the names that they
/// have there.
pub trait Operator {
    /// The programs of the forward.
    ///
    /// Errors: options that no kernel has, with the reason.
    fn forward(&self) -> Result<Sequence, OperatorError>;

    /// The programs of the backward.
    ///
    /// Errors: options that no kernel has; an operator without derivatives.
    fn backward(&self) -> Result<Sequence, OperatorError>;

    /// The kernels of the backward or the forward for a machine: those of its programs, or others
    /// that compute the same.
    ///
    /// Errors: as [`Operator::backward`] and [`Operator::forward`]; refusals of the programs.
    fn kernels(&self, is_backward: bool, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        let sequence = if is_backward { self.backward()? } else { self.forward()? };
        OperatorKernels::compiled(&sequence, machine)
    }
}

/// The kernels of an operator for a machine.
#[derive(Debug, Clone)]
pub struct OperatorKernels {
    /// The tile programs, as text.
    pub text: String,
    /// The kernels, in the order in which they are launched. Tensors are joined by their names.
    pub kernels: Vec<Kernel>,
    /// The tensors of the programs. What else a kernel has is a workspace.
    pub tensors: Vec<SequenceTensor>,
}

impl OperatorKernels {
    /// The kernels of tile programs.
    ///
    /// Errors: refusals of a program.
    pub fn compiled(sequence: &Sequence, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        let compiled = sequence.compile(machine)?;
        let (kernels, tensors) = (compiled.kernels().to_vec(), compiled.tensors().to_vec());
        Ok(OperatorKernels { text: sequence.to_string(), kernels, tensors })
    }

    /// What a caller gives, and what each kernel takes of it.
    ///
    /// Errors: a kernel reads a tensor that no program has, and that no kernel before it writes
    /// (E1214).
    pub fn joined(&self) -> Result<SequenceKernels, TileError> {
        SequenceKernels::new(self.kernels.clone(), self.tensors.clone())
    }
}
