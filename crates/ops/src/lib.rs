//! Operators that models call, as tile programs.
//!
//! An operator is a struct of options: the values that are known when kernels are compiled, such as
//! the length of a row and the types of elements. It returns the tile programs that compute it
//! ([`Operator::forward`]) and its derivatives ([`Operator::backward`]), as a
//! [`tilewright_tile::Sequence`] of programs that are launched in order on named tensors. Extents
//! that change from call to call, such as the number of rows, are sizes of the programs.
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
//! [`operator`] makes an operator from its name and its options, for callers in other languages.

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

/// An operator: returns the programs that compute it and its derivatives.
///
/// Law: if a scalar `L` depends on the outputs, and `d_y` holds its derivative with respect to each
/// element of the output `y`, the backward writes `d_x`, its derivative with respect to each
/// element of an input `x`. The backward reads the inputs and outputs of the forward that it needs,
/// under the same names.
pub trait Operator {
    /// The programs of the forward.
    ///
    /// Errors: options that no kernel supports, with the reason.
    fn forward(&self) -> Result<Sequence, OperatorError>;

    /// The programs of the backward.
    ///
    /// Errors: options that no kernel supports; an operator without derivatives.
    fn backward(&self) -> Result<Sequence, OperatorError>;

    /// The kernels of the backward, or else of the forward, for a machine: those compiled from its
    /// programs, or others that compute the same.
    ///
    /// Errors: those of [`Operator::backward`] and [`Operator::forward`]; errors of the programs.
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
    /// The kernels, in the order in which they are launched. Tensors of the same name are the same
    /// tensor.
    pub kernels: Vec<Kernel>,
    /// The tensors of the programs. All other tensors of the kernels are workspaces.
    pub tensors: Vec<SequenceTensor>,
}

impl OperatorKernels {
    /// The kernels compiled from tile programs.
    ///
    /// Errors: those of compiling a program.
    pub fn compiled(sequence: &Sequence, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        let compiled = sequence.compile(machine)?;
        let (kernels, tensors) = (compiled.kernels().to_vec(), compiled.tensors().to_vec());
        Ok(OperatorKernels { text: sequence.to_string(), kernels, tensors })
    }

    /// The tensors that a caller passes, and which of them each kernel takes.
    ///
    /// Errors: a kernel reads a tensor that no program declares and no earlier kernel writes
    /// (E1214).
    pub fn joined(&self) -> Result<SequenceKernels, TileError> {
        SequenceKernels::new(self.kernels.clone(), self.tensors.clone())
    }
}
