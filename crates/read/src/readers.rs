//! A file for each system.

pub mod cute_cpp;
pub mod cute_dsl;
pub mod cute_ir;
pub mod cute_print;
