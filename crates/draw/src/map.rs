//! Functions that can be drawn: maps from the indices of a shape.
//!
//! Law: drawing needs only the shape of a layout and its value at each index, so layouts of every
//! kind of stride, swizzled or not, become one [`Map`]. Its values are those of the layout, index
//! by index. Layouts with numbers known at launch can be drawn only once these are given.

use std::fmt;

use tilewright_layout::{AnyLayout, AnyTree, Composed, Evaluator, Kind, Layout, LayoutError, Tree, Xor};

/// A function from the indices of a shape, first mode fastest, to offsets or coordinates.
#[derive(Debug, Clone)]
pub struct Map {
    shape: Tree<i64>,
    size: i64,
    layout: AnyLayout,
    /// An evaluator for integer strides, which makes many evaluations fast.
    evaluator: Option<Evaluator>,
}

/// A value of a map: an offset, or a coordinate.
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
    /// The offset; None for a coordinate.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Target::Offset(offset) => Some(*offset),
            Target::Coordinate(_) => None,
        }
    }
}

impl Map {
    /// The map of a layout of any kind; None if the layout has parameters.
    ///
    /// ```
    /// use tilewright_draw::Map;
    /// use tilewright_layout::AnyLayout;
    ///
    /// let layout = |text: &str| text.parse::<AnyLayout>().unwrap();
    /// assert_eq!(Map::new(&layout("(4,8):(1@0,1@1)")).unwrap().size(), 32);
    /// assert!(Map::new(&layout("(4,8):(M,1)")).is_none());
    /// ```
    pub fn new(layout: &AnyLayout) -> Option<Map> {
        layout.parameters().is_empty().then(|| Map::of(layout.by_index().ok()?.into_owned())).flatten()
    }

    fn of(layout: AnyLayout) -> Option<Map> {
        let shape = layout.known_shape()?;
        // The shape is that of a layout, whose size is representable.
        let size = shape.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
        let evaluator = layout.integer().map(Layout::evaluator);
        Some(Map { shape, size, layout, evaluator })
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
        self.layout.kind() == Kind::Coordinate
    }

    /// Whether values are combined by XOR.
    pub fn adds_by_xor(&self) -> bool {
        self.layout.kind() == Kind::Xor
    }

    /// The layout, if it is an integer layout.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.integer()
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
        match &self.evaluator {
            Some(evaluator) => evaluator.eval(index).map(Target::Offset),
            None => Ok(target(&self.layout, self.layout.eval(index)?)),
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
        Ok(target(&self.layout, self.layout.eval_at(&AnyTree::from(coordinate.clone()))?))
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

/// A value as an offset, or as a coordinate in the codomain.
fn target(layout: &AnyLayout, value: AnyTree) -> Target {
    match (layout.kind(), value) {
        (Kind::Coordinate, AnyTree::Integer(tree)) => Target::Coordinate(tree),
        // The map has no parameters, so its values are numbers.
        (_, value) => Target::Offset(value.integer().and_then(|tree| tree.leaves().first().copied()).unwrap_or(0)),
    }
}

/// A layout without parameters, of one kind of stride.
macro_rules! known {
    ($($kind:ty),+) => {
        $(
            impl From<&$kind> for Map {
                fn from(layout: &$kind) -> Map {
                    let (shape, size) = (layout.shape(), layout.size());
                    let layout = AnyLayout::from(layout.clone());
                    let evaluator = layout.integer().map(Layout::evaluator);
                    Map { shape, size, layout, evaluator }
                }
            }
        )+
    };
}

known!(Layout, Composed, Layout<Xor>);
