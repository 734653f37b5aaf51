//! Layouts with numbers known at launch.

mod admissible;
mod expression;
mod limits;
mod named;
mod programs;
mod swizzled;
