//! Tests of the interpreter: for each defect, programs with only that defect, and the same programs
//! without it.

mod arrivals;
pub(crate) mod assembler;
mod background;
mod barriers;
mod bulk;
mod claims;
mod clusters;
mod control;
mod conversions;
mod counted;
mod formats;
mod memory;
mod mixed;
mod numbers;
mod phases;
mod races;
mod registers;
mod table;
mod warps;
