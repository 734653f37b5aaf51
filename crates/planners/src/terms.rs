//! Descriptions of computations, as data.
//!
//! Law: files here import no planner, no kernel and no definition. So planners and their checks use
//! the same terms without importing each other.

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
