//! Values that are functions: layouts, swizzled or not, as a shape and an offset for each index.
//!
//! Drawing and checking need no more of a layout than this, so whatever can be evaluated can be drawn and checked.

use tilewright::layout::Composed;
use tilewright::{Layout, LayoutError, Tree, Value};

/// A function from the indices of a shape, first mode fastest, to offsets.
pub struct Map {
    shape: Tree<i64>,
    kind: Kind,
}

enum Kind {
    Layout(Layout),
    Composed(Composed),
}

impl Map {
    /// The function that a value is; `None` for numbers, tuples and the like.
    pub fn of(value: &Value) -> Option<Map> {
        match value {
            Value::Layout(layout) => Some(Map::from(layout)),
            Value::Composed(map) => Some(Map { shape: map.shape(), kind: Kind::Composed(map.clone()) }),
            _ => None,
        }
    }

    /// As [`Map::of`], reading a shape as its compact layout, as functions do with their arguments.
    pub fn of_operand(value: &Value) -> Option<Map> {
        let shape = match value {
            Value::Int(extent) => Tree::from(*extent),
            Value::Tree(shape) => shape.clone(),
            _ => return Map::of(value),
        };
        Layout::compact(&shape).ok().map(|layout| Map::from(&layout))
    }

    pub fn shape(&self) -> &Tree<i64> {
        &self.shape
    }

    /// The number of indices.
    pub fn size(&self) -> i64 {
        // The shape is that of a layout, whose size is representable.
        self.shape.leaves().iter().product()
    }

    /// The offset of an index.
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        match &self.kind {
            Kind::Layout(layout) => layout.eval(&index),
            Kind::Composed(map) => map.eval(&index),
        }
    }

    /// The coordinate of an index, nested as the shape is.
    pub fn coordinate(&self, index: i64) -> Tree<i64> {
        coordinate(&self.shape, index)
    }
}

impl From<&Layout> for Map {
    fn from(layout: &Layout) -> Map {
        Map { shape: layout.shape(), kind: Kind::Layout(layout.clone()) }
    }
}

/// The coordinate of an index in a shape, first mode fastest.
fn coordinate(shape: &Tree<i64>, index: i64) -> Tree<i64> {
    let mut rest = index;
    shape.map(|extent| {
        let here = rest % extent;
        rest /= extent;
        here
    })
}

/// The size of a mode.
pub fn size(mode: &Tree<i64>) -> i64 {
    mode.leaves().iter().product()
}
