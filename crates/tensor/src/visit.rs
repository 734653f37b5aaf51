//! Visiting the elements of several operands, patch by patch.

mod nest;
mod patch;
mod staged;

pub(crate) use patch::{Operand, Patch, visit, visit_alone};
