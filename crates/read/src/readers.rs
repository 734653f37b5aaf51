//! A file for each system.

pub mod cute_print;
