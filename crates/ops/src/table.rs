//! The table of operators: a name, a summary, and how options become programs.

use tilewright_kernel::machine::Machine;
use tilewright_tile::Sequence;

use crate::error::OperatorError;
use crate::options::{FromOptions, Options};
use crate::{
    Activation, AdamW, AppendToCache, Attention, AttentionDecode, Combine, CrossEntropy, Dequantize, Dropout,
    Embedding, ExpertPlaces, ExpertProduct, Int4Weights, LayerNorm, LogSoftmax, Operator, OperatorKernels, Permute,
    Quantize, RmsNorm, Rope, Route, Softmax,
};

/// An operator in the table.
#[derive(Debug, Clone, Copy)]
pub struct OperatorEntry {
    /// Its name.
    pub name: &'static str,
    /// What it computes, in one sentence without a full stop.
    pub summary: &'static str,
    /// Makes the operator from its options.
    make: fn(&Options) -> Result<Box<dyn Operator>, OperatorError>,
}

fn make<T: Operator + FromOptions + 'static>(options: &Options) -> Result<Box<dyn Operator>, OperatorError> {
    Ok(Box::new(options.read::<T>()?))
}

const fn entry<T: Operator + FromOptions + 'static>(summary: &'static str) -> OperatorEntry {
    OperatorEntry { name: T::OPERATOR, summary, make: make::<T> }
}

/// All operators.
///
/// ```
/// use tilewright_ops::OPERATORS;
///
/// assert!(OPERATORS.iter().any(|entry| entry.name == "rms_norm"));
/// ```
pub const OPERATORS: &[OperatorEntry] = &[
    entry::<Softmax>("The softmax of each row"),
    entry::<LogSoftmax>("The logarithm of the softmax of each row"),
    entry::<RmsNorm>("Each row over the root of its mean square"),
    entry::<LayerNorm>("Each row less its mean, over the root of its variance"),
    entry::<Activation>("A function of each element, or of one tensor times another"),
    entry::<Attention>("The softmax of products of queries and keys, times values"),
    entry::<AttentionDecode>("Attention of a few queries of each sequence over a cache of keys and values"),
    entry::<AppendToCache>("New keys and values at the end of a cache"),
    entry::<Dropout>("Each element, or 0 with a given probability"),
    entry::<CrossEntropy>("The cross entropy of rows of logits with their targets"),
    entry::<Embedding>("Rows of a table by their numbers"),
    entry::<Rope>("Rotary position embeddings"),
    entry::<Route>("The experts of each token and their weights"),
    entry::<ExpertPlaces>("The rows of the choices of tokens, expert after expert"),
    entry::<Permute>("The rows of tokens at the places of their choices"),
    entry::<ExpertProduct>("The rows of each expert times its matrix"),
    entry::<Combine>("For each token the weighted sum of the rows of its choices"),
    entry::<AdamW>("A step of AdamW"),
    entry::<Quantize>("A matrix in e4m3 with a scale for each block"),
    entry::<Dequantize>("The matrix of numbers of e4m3 and their scales"),
    entry::<Int4Weights>("The matrix of weights of four bits and their scales"),
];

/// The programs of the operator of this name: of its backward, or of its forward.
///
/// ```
/// use tilewright_ops::{OptionValue, Options, operator};
///
/// let options = Options::from([("length", OptionValue::Integer(1024))]);
/// let forward = operator("softmax", &options, false)?;
/// assert!(forward.to_string().starts_with("tile softmax {"));
/// let error = operator("sofmax", &options, false).unwrap_err();
/// assert_eq!(error.to_string(), "there is no operator `sofmax`: did you mean `softmax`?");
/// # Ok::<(), tilewright_ops::OperatorError>(())
/// ```
///
/// Errors: an unknown operator or option; options that no kernel supports; the backward of an
/// operator that has none.
pub fn operator(name: &str, options: &Options, is_backward: bool) -> Result<Sequence, OperatorError> {
    let operator = made(name, options)?;
    if is_backward { operator.backward() } else { operator.forward() }
}

/// The kernels, for a machine, of the operator of this name.
///
/// ```
/// use tilewright_ops::{OptionValue, Options, operator_kernels};
///
/// let options = Options::from([("length", OptionValue::Integer(1024))]);
/// let kernels = operator_kernels("softmax", &options, true, &"H200".parse()?)?;
/// assert_eq!(kernels.kernels.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Errors: those of [`operator`], and those of compiling the programs.
pub fn operator_kernels(
    name: &str,
    options: &Options,
    is_backward: bool,
    machine: &Machine,
) -> Result<OperatorKernels, OperatorError> {
    made(name, options)?.kernels(is_backward, machine)
}

/// The operator of a name with these options.
fn made(name: &str, options: &Options) -> Result<Box<dyn Operator>, OperatorError> {
    let found = OPERATORS.iter().find(|entry| entry.name == name);
    let entry = found.ok_or_else(|| {
        let known = OPERATORS.iter().map(|entry| entry.name).collect();
        OperatorError::UnknownOperator { name: name.to_string(), known }
    })?;
    (entry.make)(options)
}
