//! PTX as text, read into a module.
//!
//! [`parse`] takes the text of a compiler and gives a [`Module`]: functions with their parameters,
//! registers and statements, variables with their initial bytes, and the files and lines of the
//! source. Names of registers and labels are resolved here, in the scopes of the text, so that what
//! comes after works with numbers.
//!
//! Law: time and memory are linear in the length of the text. What is damaged or out of the limits
//! is refused with its line; nothing panics.

mod lexer;
mod module;
mod parser;

pub use module::{
    Initial, Location, Module, Operand, Parameter, PtxError, PtxFunction, Scalar, SourceFile, StateSpace, Statement,
    StatementKind, Variable,
};
pub use parser::{MAX_NESTING, MAX_REGISTERS, MAX_TEXT_BYTES, parse};
