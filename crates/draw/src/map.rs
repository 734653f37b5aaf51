//! What can be drawn: functions from the indices of a shape.
//!
//! Law: drawing needs no more of a layout than its shape and its value at each index, so layouts of every kind of stride, swizzled or not, become
//! one [`Map`]. Its values are those of the layout, index by index. Layouts whose numbers become known at launch are functions only
//! once these are given.

use std::fmt;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coordinate, Evaluator, Extent, Layout, LayoutError, Tree, Xor};

/// A function from the indices of a shape, first mode fastest, to offsets or coordinates.
#[derive(Debug, Clone)]
pub struct Map {
    shape: Tree<i64>,
    size: i64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Layout(Box<(Layout, Evaluator)>),
    Composed(Box<Composed>),
    Coordinates(Box<Layout<Coordinate<Expr>>>),
    Xor(Box<Layout<Xor>>),
}

/// What a map gives: an offset, or a coordinate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// An offset.
    Offset(i64),
    /// A coordinate.
    Coordinate(Tree<i64>),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Offset(offset) => offset.fmt(f),
            Target::Coordinate(tree) => tree.fmt(f),
        }
    }
}

impl From<i64> for Target {
    fn from(offset: i64) -> Target {
        Target::Offset(offset)
    }
}

impl Target {
    /// The offset; none for a coordinate.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Target::Offset(offset) => Some(*offset),
            Target::Coordinate(_) => None,
        }
    }
}

impl Map {
    /// The function that a layout of coordinates is; none if not all of its numbers are known.
    pub fn of_coordinates(layout: &Layout<Coordinate<Expr>>) -> Option<Map> {
        let shape = layout.shape().try_map(|extent| extent.known().ok_or(())).ok()?;
        let known = layout.leaves().iter().all(|leaf| leaf.stride.terms().all(|(_, scale)| scale.known().is_some()));
        known.then(|| Map::new(shape, Kind::Coordinates(Box::new(layout.clone()))))
    }

    fn new(shape: Tree<i64>, kind: Kind) -> Map {
        // The shape is that of a layout, whose size is representable.
        let size = shape.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
        Map { shape, size, kind }
    }

    /// The shape of the indices.
    pub fn shape(&self) -> &Tree<i64> {
        &self.shape
    }

    /// The number of indices.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Whether the values are coordinates.
    pub fn has_coordinates(&self) -> bool {
        matches!(self.kind, Kind::Coordinates(_))
    }

    /// Whether values are added by XOR.
    pub fn adds_by_xor(&self) -> bool {
        matches!(self.kind, Kind::Xor(_))
    }

    /// The layout, if it is one of plain strides.
    pub fn layout(&self) -> Option<&Layout> {
        match &self.kind {
            Kind::Layout(pair) => Some(&pair.0),
            _ => None,
        }
    }

    /// The offset at an index.
    ///
    /// Errors: as the map's own; the value is a coordinate.
    ///
    /// ```
    /// use tilewright_draw::Map;
    /// use tilewright_layout::Layout;
    ///
    /// let rows: Layout = "(4,8):(8,1)".parse().unwrap();
    /// assert_eq!(Map::from(&rows).at(5), rows.eval(&5));
    /// ```
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        match self.value(index)? {
            Target::Offset(offset) => Ok(offset),
            Target::Coordinate(tree) => {
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
    ///
    /// Errors: as the layout's own.
    pub fn value(&self, index: i64) -> Result<Target, LayoutError> {
        match &self.kind {
            Kind::Layout(pair) => pair.1.eval(index).map(Target::Offset),
            Kind::Composed(map) => map.eval(&index).map(Target::Offset),
            Kind::Xor(layout) => layout.eval(&index).map(offset_of),
            Kind::Coordinates(layout) => position(layout, layout.eval(&Expr::from(index))?),
        }
    }

    /// The value at an index or at a coordinate.
    ///
    /// Errors: as the layout's own.
    pub fn value_at(&self, point: &Target) -> Result<Target, LayoutError> {
        let coordinate = match point {
            Target::Offset(index) => return self.value(*index),
            Target::Coordinate(coordinate) => coordinate,
        };
        match &self.kind {
            Kind::Layout(pair) => pair.0.eval_at(coordinate).map(Target::Offset),
            Kind::Composed(map) => map.eval_at(coordinate).map(Target::Offset),
            Kind::Xor(layout) => layout.eval_at(coordinate).map(offset_of),
            Kind::Coordinates(layout) => position(layout, layout.eval_at(&coordinate.map(|index| Expr::from(*index)))?),
        }
    }

    /// The coordinate of an index, nested as the shape is.
    pub fn coordinate(&self, index: i64) -> Tree<i64> {
        let mut rest = index;
        self.shape.map(|extent| {
            let here = rest.checked_rem(*extent).unwrap_or(0);
            rest = rest.checked_div(*extent).unwrap_or(0);
            here
        })
    }
}

fn offset_of(bits: Xor) -> Target {
    // A step has 63 bits.
    Target::Offset(i64::try_from(bits.bits()).unwrap_or(i64::MAX))
}

/// A value of a coordinate layout as the nested coordinate that it is.
fn position(layout: &Layout<Coordinate<Expr>>, value: Coordinate<Expr>) -> Result<Target, LayoutError> {
    let nested = value.in_profile(&layout.coprofile()?)?;
    // The numbers are known, as the map is made of known ones.
    Ok(Target::Coordinate(nested.map(|number| number.known().unwrap_or(0))))
}

impl From<&Layout> for Map {
    fn from(layout: &Layout) -> Map {
        Map::new(layout.shape(), Kind::Layout(Box::new((layout.clone(), layout.evaluator()))))
    }
}

impl From<&Composed> for Map {
    fn from(map: &Composed) -> Map {
        Map::new(map.shape(), Kind::Composed(Box::new(map.clone())))
    }
}

impl From<&Layout<Xor>> for Map {
    fn from(layout: &Layout<Xor>) -> Map {
        Map::new(layout.shape(), Kind::Xor(Box::new(layout.clone())))
    }
}
