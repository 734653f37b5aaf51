//! Layouts with numbers known at launch.

mod admissible;
mod expression;
mod limits;
mod named;
#[path = "../oracle/mod.rs"]
mod oracle;
mod programs;
#[path = "../random/mod.rs"]
mod random;
mod swizzled;
