//! Values that are functions: layouts of every kind of stride, swizzled or not, as a shape and a value for each index.
//!
//! Drawing and checking need no more of a layout than this, so whatever can be evaluated can be drawn and checked. Layouts whose numbers become
//! known at launch are functions only once these are given.

use std::fmt;

use tilewright::layout::symbolic::Expr;
use tilewright::layout::{Composed, Coordinate, Extent, Xor};
use tilewright::{Layout, LayoutError, Tree, Value};

/// A function from the indices of a shape, first mode fastest, to offsets or coordinates.
pub struct Map {
    shape: Tree<i64>,
    kind: Kind,
}

enum Kind {
    Layout(Layout),
    Composed(Box<Composed>),
    Coordinates(Box<Layout<Coordinate<Expr>>>),
    Xor(Layout<Xor>),
}

/// What a map gives: an offset, or a coordinate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Point {
    Offset(i64),
    Coordinate(Tree<i64>),
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Offset(offset) => offset.fmt(f),
            Point::Coordinate(tree) => tree.fmt(f),
        }
    }
}

impl From<i64> for Point {
    fn from(offset: i64) -> Point {
        Point::Offset(offset)
    }
}

impl Point {
    /// The offset; none for a coordinate.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Point::Offset(offset) => Some(*offset),
            Point::Coordinate(_) => None,
        }
    }
}

impl Map {
    /// The function that a value is; `None` for numbers, tuples and the like, and for what is not known before launch.
    pub fn of(value: &Value) -> Option<Map> {
        match value {
            Value::Layout(layout) => Some(Map::from(layout)),
            Value::Composed(map) => Some(Map { shape: map.shape(), kind: Kind::Composed(Box::new(map.clone())) }),
            Value::XorLayout(layout) => Some(Map { shape: layout.shape(), kind: Kind::Xor(layout.clone()) }),
            Value::StepLayout(layout) => {
                let shape = layout.shape().try_map(|extent| extent.known().ok_or(())).ok()?;
                let known =
                    layout.leaves().iter().all(|leaf| leaf.stride.terms().all(|(_, scale)| scale.known().is_some()));
                known.then(|| Map { shape, kind: Kind::Coordinates(layout.clone()) })
            }
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

    /// Whether the values are coordinates.
    pub fn has_coordinates(&self) -> bool {
        matches!(self.kind, Kind::Coordinates(_))
    }

    /// Whether values are added by XOR.
    pub fn adds_by_xor(&self) -> bool {
        matches!(self.kind, Kind::Xor(_))
    }

    /// The offset at an index.
    ///
    /// Errors: as the map's own; the value is a coordinate.
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        match self.value(index)? {
            Point::Offset(offset) => Ok(offset),
            Point::Coordinate(tree) => {
                let value = i64::try_from(tree.leaves().len()).unwrap_or(i64::MAX);
                Err(LayoutError::Argument {
                    op: "offset",
                    what: "the number of numbers in a value",
                    value,
                    wanted: "1",
                })
            }
        }
    }

    /// The value at an index.
    pub fn value(&self, index: i64) -> Result<Point, LayoutError> {
        match &self.kind {
            Kind::Layout(layout) => layout.eval(&index).map(Point::Offset),
            Kind::Composed(map) => map.eval(&index).map(Point::Offset),
            Kind::Xor(layout) => layout.eval(&index).map(offset_of),
            Kind::Coordinates(layout) => position(layout, layout.eval(&Expr::from(index))?),
        }
    }

    /// The value at an index or at a coordinate.
    pub fn value_at(&self, point: &Point) -> Result<Point, LayoutError> {
        let coordinate = match point {
            Point::Offset(index) => return self.value(*index),
            Point::Coordinate(coordinate) => coordinate,
        };
        match &self.kind {
            Kind::Layout(layout) => layout.eval_at(coordinate).map(Point::Offset),
            Kind::Composed(map) => map.eval_at(coordinate).map(Point::Offset),
            Kind::Xor(layout) => layout.eval_at(coordinate).map(offset_of),
            Kind::Coordinates(layout) => position(layout, layout.eval_at(&coordinate.map(|index| Expr::from(*index)))?),
        }
    }

    /// The coordinate of an index, nested as the shape is.
    pub fn coordinate(&self, index: i64) -> Tree<i64> {
        coordinate(&self.shape, index)
    }
}

fn offset_of(bits: Xor) -> Point {
    // A step has 63 bits.
    Point::Offset(i64::try_from(bits.bits()).unwrap_or(i64::MAX))
}

/// A value of a coordinate layout as the nested coordinate that it is.
fn position(layout: &Layout<Coordinate<Expr>>, value: Coordinate<Expr>) -> Result<Point, LayoutError> {
    let nested = value.in_profile(&layout.coprofile()?)?;
    // The numbers are known, as the map is made of known ones.
    Ok(Point::Coordinate(nested.map(|number| number.known().unwrap_or(0))))
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
