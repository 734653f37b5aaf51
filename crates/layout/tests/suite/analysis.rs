//! What accesses cost, and what would cost less.

mod footprint;
mod memory;
mod suggest;
