//! The offsets of the elements of a tile.
//!
//! Law: the analyses need only the shape of a layout and its offset at each index. So a layout of
//! any kind of stride, swizzled or not, becomes a [`Storage`]. Offsets count elements.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;

use crate::analysis::error::AnalysisError;
use crate::symbolic::Expr;
use crate::{AnyLayout, Composed, Evaluator, Extent, Layout, Tree, Xor, with_layout};

/// The offset of each element of a tile, first mode fastest.
#[derive(Debug, Clone)]
pub struct Storage {
    shape: Tree<i64>,
    size: i64,
    text: String,
    layout: AnyLayout,
    /// An evaluator for integer strides that is fast for many indices.
    evaluator: Option<Evaluator>,
}

impl Storage {
    /// The storage of a layout of any kind. Strides may become known at launch, but not extents.
    ///
    /// Errors: an extent is not known, or the values are coordinates ([`AnalysisError::Shape`]).
    ///
    /// ```
    /// use tilewright_layout::analysis::Storage;
    /// use tilewright_layout::AnyLayout;
    ///
    /// let layout = |text: &str| text.parse::<AnyLayout>().unwrap();
    /// assert_eq!(Storage::new(&layout("(8,64):(M{div=64},1)")).unwrap().size(), 512);
    /// assert_eq!(Storage::new(&layout("(8,M):(M,1)")).unwrap_err().code(), "E0606");
    /// ```
    pub fn new(layout: &AnyLayout) -> Result<Storage, AnalysisError> {
        let shape = known_shape(&layout.launch_shape())?;
        if let AnyLayout::Coordinate(steps) = layout {
            return Err(AnalysisError::Shape {
                shape: shape.to_string().into(),
                what: format!("{steps} gives coordinates, but elements need offsets").into(),
            });
        }
        let text = with_layout!(layout, layout => layout.to_string());
        Ok(Storage::of(shape, text, layout.by_index()?.into_owned()))
    }

    fn of(shape: Tree<i64>, text: String, layout: AnyLayout) -> Storage {
        // The shape belongs to a layout, whose size is representable.
        let size = shape.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
        let evaluator = layout.integer().map(Layout::evaluator);
        Storage { shape, size, text, layout, evaluator }
    }

    /// The shape of the tile.
    pub fn shape(&self) -> &Tree<i64> {
        &self.shape
    }

    /// The number of elements.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// The layout as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The offset at an index.
    ///
    /// Errors: as the layout's own; the offset becomes known at launch.
    ///
    /// ```
    /// use tilewright_layout::analysis::Storage;
    /// use tilewright_layout::Layout;
    ///
    /// let rows: Layout = "(4,8):(8,1)".parse().unwrap();
    /// assert_eq!(Storage::from(&rows).at(5).unwrap(), 9);
    /// ```
    pub fn at(&self, index: i64) -> Result<i64, AnalysisError> {
        if let Some(evaluator) = &self.evaluator {
            return Ok(evaluator.eval(index)?);
        }
        let offset = self.layout.eval(index)?;
        let offset = offset.number().map_or(Expr::from(0), |number| number.into_owned());
        offset.known().ok_or_else(|| AnalysisError::of_offset(index, &offset))
    }

    pub(crate) fn layout(&self) -> &AnyLayout {
        &self.layout
    }

    pub(crate) fn evaluator(&self) -> Option<&Evaluator> {
        self.evaluator.as_ref()
    }
}

fn known_shape(shape: &Tree<Expr>) -> Result<Tree<i64>, AnalysisError> {
    shape.try_map(|extent| {
        extent.known().ok_or_else(|| AnalysisError::Shape {
            shape: shape.to_string().into(),
            what: format!("{extent} must be known, to say which elements there are").into(),
        })
    })
}

/// Layouts all of whose numbers are known.
macro_rules! known {
    ($($kind:ty),+) => {
        $(
            impl From<&$kind> for Storage {
                fn from(layout: &$kind) -> Storage {
                    Storage::of(layout.shape(), layout.to_string(), layout.clone().into())
                }
            }
        )+
    };
}

known!(Layout, Composed, Layout<Xor>);
