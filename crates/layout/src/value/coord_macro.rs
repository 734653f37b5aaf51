//! The macro `coord!`.
//!
//! Law: `coord!(c)` is the coordinate with the text `c`, in which numbers may be Rust expressions.
//! Parentheses are those of Rust: `(i,)` is a tuple of one, `(i)` is `i`.

/// A [`Coord`](crate::Coord) whose indices are expressions and whose open modes are `_`: what
/// `tensor((_, _), block)` is in CuTe.
///
/// Returns a `Result`, because the length and depth of tuples are limited.
///
/// ```
/// use tilewright_layout::{Coord, Layout, LayoutError, coord};
///
/// # fn main() -> Result<(), LayoutError> {
/// let block = 3;
/// let tile: Coord = coord!((_, _), 2 * block + 1)?;
/// assert_eq!(tile.to_string(), "((_,_),7)");
///
/// let matrix: Layout = "(4,8):(8,1)".parse()?;
/// assert_eq!(matrix.slice(&coord!(block, _)?)?.to_string(), "(8):(1)");
/// let written: [(Coord, &str); 5] = [
///     (coord!(0, (_, 1), _)?, "(0,(_,1),_)"),
///     (coord!(5)?, "5"),
///     (coord!(5,)?, "(5)"),
///     (coord!((block, (_,)), _)?, "((3,(_)),_)"),
///     (coord!()?, "()"),
/// ];
/// assert!(written.iter().all(|(coord, text)| coord.to_string() == *text));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! coord {
    // For a tuple: the complete modes, the tokens of the next mode, and the remaining tokens.
    (@tuple [$({ $($mode:tt)+ })*] []) => {
        (|| $crate::Tree::tuple([$(&$crate::coord!($($mode)+)?),*]))()
    };
    (@tuple [$($done:tt)*] [$($mode:tt)+]) => {
        $crate::coord!(@tuple [$($done)* { $($mode)+ }] [])
    };
    (@tuple [$($done:tt)*] [$($mode:tt)+] , $($rest:tt)*) => {
        $crate::coord!(@tuple [$($done)* { $($mode)+ }] [] $($rest)*)
    };
    (@tuple [$($done:tt)*] [$($mode:tt)*] $next:tt $($rest:tt)*) => {
        $crate::coord!(@tuple [$($done)*] [$($mode)* $next] $($rest)*)
    };
    () => {
        $crate::Tree::<$crate::Slot>::tuple([])
    };
    (_) => {
        ::core::result::Result::<_, $crate::LayoutError>::Ok($crate::Tree::leaf($crate::Slot::All))
    };
    (($($inner:tt)*)) => {
        $crate::coord!($($inner)*)
    };
    ($index:expr) => {
        ::core::result::Result::<_, $crate::LayoutError>::Ok($crate::Tree::leaf($crate::Slot::At($index)))
    };
    ($($modes:tt)+) => {
        $crate::coord!(@tuple [] [] $($modes)+)
    };
}
