//! The categories of tuples: their laws, their correspondence with layouts, and the composites that
//! refinement finds.

mod ambient;
mod categories;
mod classes;
mod composition;
mod correspondence;
mod grafting;
mod nested;
mod random;
mod refinement;
mod robustness;
mod spans;
mod squares;
mod theorems;
mod tilings;
mod vectors;
