//! What kernels are asked for, as data.
//!
//! Law: a file here knows no planner, no kernel and no loop of a definition. So planners, and what
//! checks them, name the same terms without importing each other.

mod indices;
mod meaning;
mod norm;
mod place;
mod row_matrix;
mod statistic;

pub use indices::Indices;
pub(crate) use meaning::Meaning;
pub use norm::Norm;
pub use place::Place;
pub use row_matrix::RowMatrix;
pub(crate) use row_matrix::RowPlaces;
pub use statistic::Statistic;
