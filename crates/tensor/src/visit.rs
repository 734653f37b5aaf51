//! Visits of the elements of several operands, patch by patch.
//!
//! Law: every index is visited once, with the offset of its element in each operand ([`nest`]). An
//! element that is written at several indices is written by one thread ([`patch`]).

mod nest;
mod patch;
mod staged;

pub(crate) use patch::{Patch, VisitOperand, visit, visit_parts};
