//! What can be evaluated: layouts with strides of any kind, swizzles, bit matrices, and what is composed of them.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{BitMatrix, Composed, Coordinate, Layout, Swizzle, Xor};

/// A map from coordinates to numbers.
///
/// Every layout of the library becomes one with [`From`].
///
/// ```
/// use tilewright_emit::Map;
/// use tilewright_layout::{Layout, symbolic::Expr};
///
/// let numbers: Layout = "(4,8):(8,1)".parse().unwrap();
/// let symbols: Layout<Expr> = "(4,N):(N,1)".parse().unwrap();
/// assert!(matches!(Map::from(numbers), Map::Layout(_)));
/// assert!(matches!(Map::from(symbols), Map::Layout(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Map {
    /// A layout whose values are numbers: `(M,K):(K,1)`.
    Layout(Layout<Expr>),
    /// A layout whose values are coordinates: `(4,8):(1@0,1@1)`.
    Coordinate(Layout<Coordinate>),
    /// The same with numbers that become known at launch.
    SymbolCoordinate(Layout<Coordinate<Expr>>),
    /// A layout whose steps are added by XOR: `(8,8):(^1,^9)`.
    Xor(Layout<Xor>),
    /// A swizzle of any offset.
    Swizzle(Swizzle),
    /// A linear map over bits, of a number of as many bits as it reads; a square one keeps the bits above.
    Matrix(BitMatrix),
    /// A layout seen through swizzles, bit matrices and other layouts.
    Composed(Composed),
    /// The same with numbers that become known at launch.
    SymbolComposed(Composed<Expr>),
}

impl From<Layout> for Map {
    fn from(layout: Layout) -> Map {
        Map::Layout(Layout::from(&layout))
    }
}

impl From<Layout<Expr>> for Map {
    fn from(layout: Layout<Expr>) -> Map {
        Map::Layout(layout)
    }
}

impl From<Layout<Coordinate<Expr>>> for Map {
    fn from(layout: Layout<Coordinate<Expr>>) -> Map {
        Map::SymbolCoordinate(layout)
    }
}

impl From<Layout<Coordinate>> for Map {
    fn from(layout: Layout<Coordinate>) -> Map {
        Map::Coordinate(layout)
    }
}

impl From<Layout<Xor>> for Map {
    fn from(layout: Layout<Xor>) -> Map {
        Map::Xor(layout)
    }
}

impl From<Swizzle> for Map {
    fn from(swizzle: Swizzle) -> Map {
        Map::Swizzle(swizzle)
    }
}

impl From<BitMatrix> for Map {
    fn from(matrix: BitMatrix) -> Map {
        Map::Matrix(matrix)
    }
}

impl From<Composed<Expr>> for Map {
    fn from(composed: Composed<Expr>) -> Map {
        Map::SymbolComposed(composed)
    }
}

impl From<Composed> for Map {
    fn from(composed: Composed) -> Map {
        Map::Composed(composed)
    }
}
