//! Parses the text of PTX into a module.
//!
//! [`parse`] takes the text of a compiler and returns a [`Module`]: functions with their
//! parameters, registers and statements, variables with their initial bytes, and the files and
//! lines of the source. It resolves the names of registers and labels in the scopes of the text, so
//! that later stages use numbers.
//!
//! Law: time and memory are linear in the length of the text. Damaged text, and text that exceeds a
//! limit, is refused with its line; nothing panics.

mod lexer;
mod module;
mod parser;

pub use module::{
    Initial, Location, Module, Operand, Parameter, PtxError, PtxFunction, Scalar, SourceFile, StateSpace, Statement,
    StatementKind, Variable,
};
pub use parser::{MAX_NESTING, MAX_REGISTERS, MAX_TEXT_BYTES, parse};
