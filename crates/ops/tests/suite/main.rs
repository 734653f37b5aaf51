//! All tests of the crate, in one program: it is linked once.
//!
//! The oracles are loops over f64. Programs run on the interpreter of tile programs, which says
//! what they mean; their kernels run on the interpreter of kernels, beside them.

mod attention;
mod cross_entropy;
mod elements;
mod embedding;
mod experts;
mod int4;
mod optimizer;
mod oracle;
mod quantize;
mod rope;
mod rows;
mod sequences;
