//! Emitted text against the library: compiled and run, and read.

mod cases;
mod programs;
mod reading;
mod texts;
