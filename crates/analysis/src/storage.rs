//! Where the elements of a tile lie.
//!
//! Law: the analyses need no more of a layout than its shape and its offset at each index, so layouts of every kind of stride, swizzled or not, become
//! one [`Storage`]. Offsets count elements.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Evaluator, Extent, Layout, LayoutError, Tree, Xor};

use crate::error::AnalysisError;

/// The offset of each element of a tile, first mode fastest.
#[derive(Debug, Clone)]
pub struct Storage {
    shape: Tree<i64>,
    size: i64,
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Layout(Box<(Layout, Evaluator)>),
    Composed(Box<Composed>),
    Xor(Box<Layout<Xor>>),
    Launch(Box<Layout<Expr>>),
    LaunchComposed(Box<Composed<Expr>>),
}

impl Storage {
    fn new(shape: Tree<i64>, text: String, kind: Kind) -> Storage {
        // The shape is that of a layout, whose size is representable.
        let size = shape.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
        Storage { shape, size, text, kind }
    }

    /// A layout whose strides become known at launch.
    ///
    /// Errors: an extent is not known ([`AnalysisError::Shape`]): which elements there are must be.
    ///
    /// ```
    /// use tilewright_analysis::Storage;
    /// use tilewright_layout::{Layout, symbolic::Expr};
    ///
    /// let layout = |text: &str| text.parse::<Layout<Expr>>().unwrap();
    /// assert_eq!(Storage::at_launch(&layout("(8,64):(M{div=64},1)")).unwrap().size(), 512);
    /// assert_eq!(Storage::at_launch(&layout("(8,M):(M,1)")).unwrap_err().code(), "E0606");
    /// ```
    pub fn at_launch(layout: &Layout<Expr>) -> Result<Storage, AnalysisError> {
        let shape = known_shape(&layout.shape())?;
        Ok(Storage::new(shape, layout.to_string(), Kind::Launch(Box::new(layout.clone()))))
    }

    /// As [`Storage::at_launch`], for what is seen through a swizzle or another map.
    ///
    /// Errors: as there.
    pub fn composed_at_launch(map: &Composed<Expr>) -> Result<Storage, AnalysisError> {
        let shape = known_shape(&map.shape())?;
        Ok(Storage::new(shape, map.to_string(), Kind::LaunchComposed(Box::new(map.clone()))))
    }

    /// The shape of the tile.
    pub fn shape(&self) -> &Tree<i64> {
        &self.shape
    }

    /// The number of elements.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// The layout as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The offset at an index, where it is known.
    ///
    /// Errors: as the layout's own; the offset becomes known at launch.
    ///
    /// ```
    /// use tilewright_analysis::Storage;
    /// use tilewright_layout::Layout;
    ///
    /// let rows: Layout = "(4,8):(8,1)".parse().unwrap();
    /// assert_eq!(Storage::from(&rows).at(5).unwrap(), 9);
    /// ```
    pub fn at(&self, index: i64) -> Result<i64, AnalysisError> {
        let known = |offset: Expr| offset.known().ok_or_else(|| AnalysisError::of_offset(index, &offset));
        match &self.kind {
            Kind::Layout(pair) => Ok(pair.1.eval(index)?),
            Kind::Composed(map) => Ok(map.eval(&index)?),
            Kind::Xor(layout) => Ok(xor_at(layout, index)?),
            Kind::Launch(layout) => known(layout.eval(&Expr::from(index))?),
            Kind::LaunchComposed(map) => known(map.eval(&Expr::from(index))?),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }
}

/// The offset of an XOR layout at an index.
pub(crate) fn xor_at(layout: &Layout<Xor>, index: i64) -> Result<i64, LayoutError> {
    // A step has 63 bits.
    Ok(i64::try_from(layout.eval(&index)?.bits()).unwrap_or(i64::MAX))
}

fn known_shape(shape: &Tree<Expr>) -> Result<Tree<i64>, AnalysisError> {
    shape.try_map(|extent| {
        extent.known().ok_or_else(|| AnalysisError::Shape {
            shape: shape.to_string().into(),
            what: format!("{extent} must be known, to say which elements there are").into(),
        })
    })
}

impl From<&Layout> for Storage {
    fn from(layout: &Layout) -> Storage {
        let kind = Kind::Layout(Box::new((layout.clone(), layout.evaluator())));
        Storage::new(layout.shape(), layout.to_string(), kind)
    }
}

impl From<&Composed> for Storage {
    fn from(map: &Composed) -> Storage {
        Storage::new(map.shape(), map.to_string(), Kind::Composed(Box::new(map.clone())))
    }
}

impl From<&Layout<Xor>> for Storage {
    fn from(layout: &Layout<Xor>) -> Storage {
        Storage::new(layout.shape(), layout.to_string(), Kind::Xor(Box::new(layout.clone())))
    }
}
