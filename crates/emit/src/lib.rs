//! Layouts as source text.
mod bits;
mod computation;
mod division;
mod error;
mod expression;
mod function;
mod graph;
mod language;
mod map;
mod place;
mod polynomial;
mod range;
mod spelling;
mod style;
mod value;

pub use computation::Computation;
pub use error::EmitError;
pub use language::Language;
pub use map::Map;
pub use place::{Place, Promise};
pub use style::{Integer, Style};
pub use value::{coordinate, inside, value};
