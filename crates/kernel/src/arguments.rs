//! Arguments of statements: coordinates, tiles and shapes, as Rust tuples.
//!
//! Text is for layouts whose sizes have names. Everything else is a value: `(64, 64)` is a tile,
//! `Layout::strided((64, 64), (64, 1))` is a layout, and `(.., .., k_tile)` is a coordinate that
//! keeps the first two modes.

use std::ops::{Range, RangeFull};

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, IntoShape, Layout, LayoutError, Slot, Swizzle, Tiler, Tree};

/// A coordinate of a statement: an index, `..` for a mode that stays, or a tuple of these.
///
/// ```
/// use tilewright_kernel::{Kernel, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Each thread sums a column of a tile of 8 x 32.
/// let kernel = Kernel::build("columns", |k| {
///     let (x, y) = (k.input::<i32>("x", "(8,32):(32,1)")?, k.output::<i32>("y", "32:1")?);
///     k.threads(32)?;
///     let column = x.slice((.., k.thread()?))?.load()?;
///     let sum = column.numbers()?.into_iter().reduce(|a, b| a + b).expect("there are eight rows");
///     let own = y.slice(k.thread()?)?;
///     let result = own.fragment()?;
///     result.fill(sum)?;
///     own.store(&result)
/// })?;
/// interpret::check(kernel.program(), &[])?;
/// # Ok(())
/// # }
/// ```
pub trait IntoCoord {
    /// Converts the value to a coordinate.
    ///
    /// Errors: a tuple is too deep.
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError>;
}

impl IntoCoord for Coord<Expr> {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        Ok(self)
    }
}

impl IntoCoord for &Coord<Expr> {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        Ok(self.clone())
    }
}

impl IntoCoord for Slot<Expr> {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        Ok(Tree::leaf(self))
    }
}

/// A mode that is kept, as `_` in text.
impl IntoCoord for RangeFull {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        Ok(Tree::leaf(Slot::All))
    }
}

impl IntoCoord for Expr {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        Ok(Tree::leaf(Slot::At(self)))
    }
}

impl IntoCoord for &Expr {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        self.clone().into_coord()
    }
}

impl IntoCoord for i64 {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        Expr::from(self).into_coord()
    }
}

impl IntoCoord for i32 {
    fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
        i64::from(self).into_coord()
    }
}

/// The layout of a tensor: a layout, a composed layout with a swizzle, or text in which sizes may
/// have names.
#[derive(Debug, Clone)]
pub enum LayoutArgument {
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
    /// A layout with known numbers.
    Layout(Layout),
    /// A composed layout with a swizzle and known numbers.
    Composed(Composed),
}

impl LayoutArgument {
    /// A layout after an offset and, if there is one, a swizzle.
    ///
    /// Errors: the offset of an element is not a known number.
    pub fn placed(swizzle: Option<Swizzle>, offset: i64, layout: Layout) -> Result<LayoutArgument, LayoutError> {
        match (swizzle, offset) {
            (None, 0) => Ok(LayoutArgument::Layout(layout)),
            (None, offset) => Composed::new(Swizzle::new(0, 0, 0)?, offset, layout).map(LayoutArgument::Composed),
            (Some(swizzle), offset) => Composed::new(swizzle, offset, layout).map(LayoutArgument::Composed),
        }
    }
}

impl std::fmt::Display for LayoutArgument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LayoutArgument::Text(text) => f.write_str(text),
            LayoutArgument::Layout(layout) => layout.fmt(f),
            LayoutArgument::Composed(composed) => composed.fmt(f),
        }
    }
}

/// A value that a declaration accepts as a layout: see [`LayoutArgument`]. A `Result` is accepted
/// too, so that a statement that computes its layout needs only one `?`.
///
/// ```
/// use tilewright_kernel::{Kernel, interpret};
/// use tilewright_layout::{Composed, Layout, Swizzle};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Rows of 32 become columns by way of a swizzled tile.
/// let kernel = Kernel::build("transpose", |k| {
///     let (x, y) = (k.input::<f32>("x", "(32,32):(32,1)")?, k.output::<f32>("y", "(32,32):(1,32)")?);
///     k.threads(32)?;
///     let rows = Layout::strided((32, 32), (32, 1))?;
///     let tile = k.shared::<f32>(Composed::new(Swizzle::new(5, 0, 5)?, 0, rows))?;
///     tile.slice((k.thread()?, ..))?.store(&x.slice((k.thread()?, ..))?.load()?)?;
///     k.barrier();
///     y.slice((.., k.thread()?))?.store(&tile.slice((.., k.thread()?))?.load()?)
/// })?;
/// interpret::check(kernel.program(), &[])?;
/// # Ok(())
/// # }
/// ```
pub trait IntoLayout {
    /// Converts the value to a layout.
    ///
    /// Errors: the value is an error, or the layout cannot be made.
    fn into_layout(self) -> Result<LayoutArgument, LayoutError>;
}

impl IntoLayout for &str {
    fn into_layout(self) -> Result<LayoutArgument, LayoutError> {
        Ok(LayoutArgument::Text(self.to_string()))
    }
}

impl IntoLayout for &String {
    fn into_layout(self) -> Result<LayoutArgument, LayoutError> {
        Ok(LayoutArgument::Text(self.clone()))
    }
}

/// Implementations for layouts, owned or borrowed.
macro_rules! layouts {
    ($($given:ty => $make:expr;)+) => {$(
        impl IntoLayout for $given {
            fn into_layout(self) -> Result<LayoutArgument, LayoutError> {
                Ok($make(self))
            }
        }

        impl IntoLayout for &$given {
            fn into_layout(self) -> Result<LayoutArgument, LayoutError> {
                self.clone().into_layout()
            }
        }
    )+};
}

layouts! {
    Layout => LayoutArgument::Layout;
    Composed => LayoutArgument::Composed;
    LayoutArgument => std::convert::identity;
}

impl<T: IntoLayout> IntoLayout for Result<T, LayoutError> {
    fn into_layout(self) -> Result<LayoutArgument, LayoutError> {
        self?.into_layout()
    }
}

/// A number of blocks: a number, an expression of sizes, or the text of one, such as
/// `"ceil(N/128)"`.
#[derive(Debug, Clone)]
pub enum ExtentArgument {
    /// A number.
    Known(i64),
    /// An expression of sizes.
    Computed(Expr),
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
}

/// A value that a statement accepts as a number of blocks: see [`ExtentArgument`].
pub trait IntoExtent {
    /// Converts the value to a number of blocks.
    fn into_extent(self) -> ExtentArgument;
}

impl IntoExtent for i64 {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Known(self)
    }
}

impl IntoExtent for i32 {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Known(self.into())
    }
}

impl IntoExtent for u32 {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Known(self.into())
    }
}

impl IntoExtent for Expr {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Computed(self)
    }
}

impl IntoExtent for &Expr {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Computed(self.clone())
    }
}

impl IntoExtent for &str {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Text(self.to_string())
    }
}

impl IntoExtent for &String {
    fn into_extent(self) -> ExtentArgument {
        ExtentArgument::Text(self.clone())
    }
}

/// The shape of a cluster, in blocks: a number along the first axis of the grid, or a number along
/// each axis, as a tuple or an array of three.
pub trait IntoClusterShape {
    /// The blocks along x, y and z. A number that is not positive becomes 0, which is refused.
    fn into_cluster_shape(self) -> [u32; 3];
}

impl IntoClusterShape for [u32; 3] {
    fn into_cluster_shape(self) -> [u32; 3] {
        self
    }
}

macro_rules! cluster_shapes {
    ($($number:ty)+) => {$(
        impl IntoClusterShape for $number {
            fn into_cluster_shape(self) -> [u32; 3] {
                (self, 1, 1).into_cluster_shape()
            }
        }

        impl IntoClusterShape for ($number, $number) {
            fn into_cluster_shape(self) -> [u32; 3] {
                (self.0, self.1, 1).into_cluster_shape()
            }
        }

        impl IntoClusterShape for ($number, $number, $number) {
            fn into_cluster_shape(self) -> [u32; 3] {
                <[$number; 3]>::from(self).map(|blocks| u32::try_from(blocks).unwrap_or(0))
            }
        }
    )+};
}

cluster_shapes! { i32 u32 i64 }

/// Blocks of a cluster, given by their ranks: the values of a layout, each plus a first rank.
///
/// ```
/// use tilewright_kernel::{Kernel, KernelError, Ranks};
/// use tilewright_layout::Layout;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The blocks of a cluster of 2 x 2 that have the same position along the second axis.
/// Kernel::build("rows", |k| {
///     k.threads(32)?;
///     k.grid(tilewright_kernel::program::operation::Axis::X, 4)?;
///     k.cluster(4)?;
///     let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
///     stage.release_to(2)?; // the block of rank 2
///     stage.release_to(0..2)?; // ranks 0 and 1
///     stage.release_to(Layout::strided(2, 2)?)?; // ranks 0 and 2
///     stage.release_to(Ranks::new(Layout::strided(2, 2)?, 1))?; // ranks 1 and 3
///     k.cluster_barrier();
///     Ok(())
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Ranks {
    pub(crate) layout: Layout,
    pub(crate) first: Expr,
}

impl Ranks {
    /// The values of a layout, each plus `first`.
    pub fn new(layout: Layout, first: impl Into<Expr>) -> Ranks {
        Ranks { layout, first: first.into() }
    }
}

/// A value that a statement accepts as blocks of a cluster: the rank of one, as a number or as an
/// expression such as [`Build::rank_after`](crate::Build::rank_after); a range of ranks; a layout
/// whose values are ranks; or [`Ranks`].
pub trait IntoRanks {
    /// Converts the value to ranks.
    ///
    /// Errors: the range is empty; the layout is an error.
    fn into_ranks(self) -> Result<Ranks, LayoutError>;
}

impl IntoRanks for Ranks {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        Ok(self)
    }
}

impl IntoRanks for &Ranks {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        Ok(self.clone())
    }
}

impl IntoRanks for Layout {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        Ok(Ranks::new(self, 0))
    }
}

impl IntoRanks for &Layout {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        self.clone().into_ranks()
    }
}

impl IntoRanks for Result<Layout, LayoutError> {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        self?.into_ranks()
    }
}

impl IntoRanks for Expr {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        Ok(Ranks::new(Layout::strided(1, 0)?, self))
    }
}

impl IntoRanks for &Expr {
    fn into_ranks(self) -> Result<Ranks, LayoutError> {
        self.clone().into_ranks()
    }
}

/// Implementations for one rank and for a range of ranks, of a numeric type.
macro_rules! ranks {
    ($($number:ty)+) => {$(
        impl IntoRanks for $number {
            fn into_ranks(self) -> Result<Ranks, LayoutError> {
                Expr::from(i64::from(self)).into_ranks()
            }
        }

        impl IntoRanks for Range<$number> {
            fn into_ranks(self) -> Result<Ranks, LayoutError> {
                let (first, end) = (i64::from(self.start), i64::from(self.end));
                Ok(Ranks::new(Layout::strided(end.saturating_sub(first), 1)?, first))
            }
        }
    )+};
}

ranks! { i32 u32 i64 }

/// A shape: its extents, or text in which sizes may have names.
#[derive(Debug, Clone)]
pub enum ShapeArgument {
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
    /// The extents.
    Shape(Tree<Expr>),
}

/// A value that a statement accepts as a shape: see [`ShapeArgument`]. It is a number, a tuple of
/// numbers, the shape of a layout or of a view, or text.
pub trait IntoShapeArgument {
    /// Converts the value to a shape.
    ///
    /// Errors: a tuple is too deep.
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError>;
}

impl IntoShapeArgument for &str {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        Ok(ShapeArgument::Text(self.to_string()))
    }
}

impl IntoShapeArgument for &String {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        self.as_str().into_shape_argument()
    }
}

impl IntoShapeArgument for &Tree<Expr> {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        Ok(ShapeArgument::Shape(self.clone()))
    }
}

impl IntoShapeArgument for Tree<Expr> {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        Ok(ShapeArgument::Shape(self))
    }
}

impl IntoShapeArgument for Tree<i64> {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        (&self).into_shape_argument()
    }
}

impl IntoShapeArgument for &Tree<i64> {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        Ok(ShapeArgument::Shape(self.map(|extent| Expr::from(*extent))))
    }
}

impl IntoShapeArgument for i64 {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        self.into_shape()?.into_shape_argument()
    }
}

impl IntoShapeArgument for i32 {
    fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
        self.into_shape()?.into_shape_argument()
    }
}

/// A tile: the text of a shape, a layout or a tiler, in which sizes may have names; or a shape as a
/// tuple.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "it lives for one statement")]
pub enum TileArgument {
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
    /// A tiler.
    Tiler(Tiler<Expr>),
}

/// A value that a statement accepts as a tile: see [`TileArgument`].
///
/// ```
/// use tilewright_kernel::Kernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The same tile, as a tuple and as text.
/// for by_tuple in [false, true] {
///     Kernel::build("copy", |k| {
///         let (x, y) = (k.input::<f32>("x", "(64,64):(64,1)")?, k.output::<f32>("y", "(64,64):(64,1)")?);
///         k.threads(32)?;
///         let block = k.block("(x,y)")?;
///         let tile = if by_tuple { x.local_tile((32, 8), &block)? } else { x.local_tile("(32,8)", &block)? };
///         y.local_tile((32, 8), block)?.thread_part()?.store(&tile.thread_part()?.load()?)
///     })?;
/// }
/// # Ok(())
/// # }
/// ```
pub trait IntoTile {
    /// Converts the value to a tile.
    ///
    /// Errors: a tuple is too deep; an extent is not positive.
    fn into_tile(self) -> Result<TileArgument, LayoutError>;
}

impl IntoTile for &str {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        Ok(TileArgument::Text(self.to_string()))
    }
}

impl IntoTile for &String {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        Ok(TileArgument::Text(self.clone()))
    }
}

impl IntoTile for Tiler<Expr> {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        Ok(TileArgument::Tiler(self))
    }
}

impl IntoTile for Tree<i64> {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        Tiler::from_shape(&self.map(|extent| Expr::from(*extent))).map(TileArgument::Tiler)
    }
}

impl IntoTile for &Tree<i64> {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        self.clone().into_tile()
    }
}

impl IntoTile for i64 {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        self.into_shape()?.into_tile()
    }
}

/// The elements at the offsets of a layout.
impl IntoTile for &Layout {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        Ok(TileArgument::Tiler(Tiler::Layout(Layout::from(self))))
    }
}

impl IntoTile for Layout {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        (&self).into_tile()
    }
}

/// A swizzle permutes memory, so a layout with one is refused as a tile.
impl IntoTile for &LayoutArgument {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        match self {
            LayoutArgument::Layout(layout) => layout.into_tile(),
            text => Ok(TileArgument::Text(text.to_string())),
        }
    }
}

impl IntoTile for Result<Layout, LayoutError> {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        self?.into_tile()
    }
}

impl IntoTile for i32 {
    fn into_tile(self) -> Result<TileArgument, LayoutError> {
        self.into_shape()?.into_tile()
    }
}

macro_rules! tuples {
    ($(($($part:ident)+))+) => {$(
        impl<$($part: IntoCoord),+> IntoCoord for ($($part,)+) {
            fn into_coord(self) -> Result<Coord<Expr>, LayoutError> {
                #[expect(non_snake_case, reason = "a variable has the name of its type")]
                let ($($part,)+) = self;
                Tree::tuple([$(&$part.into_coord()?),+])
            }
        }

        impl<$($part: IntoShape),+> IntoShapeArgument for ($($part,)+) {
            fn into_shape_argument(self) -> Result<ShapeArgument, LayoutError> {
                self.into_shape()?.into_shape_argument()
            }
        }

        impl<$($part: IntoShape),+> IntoTile for ($($part,)+) {
            fn into_tile(self) -> Result<TileArgument, LayoutError> {
                self.into_shape()?.into_tile()
            }
        }
    )+};
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }
