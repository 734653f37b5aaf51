//! Maps that can be emitted: layouts of any kind, swizzles and bit matrices.

use crate::symbolic::Expr;
use crate::{AnyLayout, BitMatrix, Composed, Coordinate, Layout, Swizzle, Xor};

/// A map from coordinates to numbers.
///
/// Every layout of the library becomes one with [`From`].
///
/// ```
/// use tilewright_layout::emit::Map;
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
    /// A layout of any kind.
    Layout(AnyLayout),
    /// A swizzle, at any offset.
    Swizzle(Swizzle),
    /// A linear map over bits, at a number of as many bits as it reads; a square one keeps the bits
    /// above.
    Matrix(BitMatrix),
}

crate::from_variants!(Map: Layout(AnyLayout), Swizzle(Swizzle), Matrix(BitMatrix));

/// Layouts of one kind.
macro_rules! layouts {
    ($($kind:ty),+) => {
        $(
            impl From<$kind> for Map {
                fn from(layout: $kind) -> Map {
                    Map::Layout(layout.into())
                }
            }
        )+
    };
}

layouts!(
    Layout,
    Layout<Expr>,
    Layout<Coordinate>,
    Layout<Coordinate<Expr>>,
    Layout<Xor>,
    Composed,
    Composed<Expr>,
    Composed<Coordinate<Expr>>
);
