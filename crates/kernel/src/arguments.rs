//! Arguments of statements: coordinates, tiles and shapes, as Rust tuples.
//!
//! Text is for layouts whose sizes have names. Everything else is a value: `(64, 64)` is a tile,
//! `Layout::strided((64, 64), (64, 1))` is a layout, and `(.., .., k_tile)` is a coordinate that
//! keeps the first two modes.

use std::ops::RangeFull;

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
    /// The coordinate.
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

/// A mode that stays, as `_` in text.
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

/// The layout of a tensor: a layout, a layout behind a swizzle, or text in which sizes may have
/// names.
#[derive(Debug, Clone)]
pub enum LayoutArgument {
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
    /// A layout whose numbers are known.
    Layout(Layout),
    /// A layout behind a swizzle.
    Composed(Composed),
}

impl LayoutArgument {
    /// A layout behind an offset, and behind a swizzle if there is one.
    ///
    /// Errors: an element has no offset that is a number.
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

/// What a declaration takes as a layout: see [`LayoutArgument`]. Results are taken too, so that a
/// statement that makes its layout ends with one `?`.
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
    /// The layout.
    ///
    /// Errors: it could not be made.
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

/// Values that are layouts already, owned or borrowed.
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

/// A number of blocks: known, or text of an expression of sizes, `"ceil(N/128)"`.
#[derive(Debug, Clone)]
pub enum ExtentArgument {
    /// A number.
    Known(i64),
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
}

/// What a statement takes as a number of blocks: see [`ExtentArgument`].
pub trait IntoExtent {
    /// The number.
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

/// How a tensor is cut: text of a shape, a layout or a tiler, in which sizes may have names, or a
/// shape as a tuple.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "it lives for one statement")]
pub enum TileArgument {
    /// Text, which is read with the names that the kernel has declared.
    Text(String),
    /// A tiler.
    Tiler(Tiler<Expr>),
}

/// An argument that becomes a tile: see [`TileArgument`].
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
    /// The tile.
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

/// The elements that a layout names.
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

/// A swizzle permutes memory, and is not taken as a tile.
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

        impl<$($part: IntoShape),+> IntoTile for ($($part,)+) {
            fn into_tile(self) -> Result<TileArgument, LayoutError> {
                self.into_shape()?.into_tile()
            }
        }
    )+};
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }
