//! Values of the notation that are functions, as maps from indices to offsets or coordinates.
//!
//! Drawing and checking need no more of a layout than [`Map`], so whatever can be evaluated can be
//! drawn and checked.

pub use crate::{Map, Target as Point};

use tilewright_layout::{Layout, Tree};
use tilewright_notation::Value;

/// The function that a value is. `None` for numbers, tuples and the like, and for values with
/// parameters that are known only at launch.
pub fn of(value: &Value) -> Option<Map> {
    match value {
        Value::Layout(layout) => Map::new(layout),
        _ => None,
    }
}

/// As [`of`], with a shape read as its compact layout, as the functions of the notation read their
/// arguments.
pub fn of_operand(value: &Value) -> Option<Map> {
    Map::new(&value.operand_layout()?)
}

/// The integer layout that a value is; a shape means its compact layout.
pub fn plain(value: &Value) -> Option<Layout> {
    value.operand_layout()?.integer().cloned()
}

/// The size of a mode.
pub fn size(mode: &Tree<i64>) -> i64 {
    mode.leaves().iter().product()
}
