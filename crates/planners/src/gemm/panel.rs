//! Panels of shared memory: the width of a row and its swizzle.

use tilewright_kernel::LayoutArgument;
use tilewright_layout::{Layout, LayoutError, Swizzle};

/// The number of elements of a line of a panel, of `bytes` bytes each, which divides `along`
/// elements if possible: at most 128 bytes together.
pub(crate) fn width(along: i64, bytes: i64) -> i64 {
    [128, 64, 32, 16].map(|line| line / bytes).into_iter().find(|width| along % width == 0).unwrap_or(16 / bytes)
}

/// A layout of lines of `width` elements of `bytes` bytes, with the swizzle that permutes their
/// chunks of 16 bytes.
///
/// Errors: an element has no offset that is a number.
pub(crate) fn swizzled(width: i64, bytes: i64, layout: Layout) -> Result<LayoutArgument, LayoutError> {
    swizzled_at(0, width, bytes, layout)
}

/// The same layout, from an element of the memory on.
///
/// Errors: an element has no offset that is a number.
pub(crate) fn swizzled_at(first: i64, width: i64, bytes: i64, layout: Layout) -> Result<LayoutArgument, LayoutError> {
    let base = i64::from(4 - bytes.ilog2());
    let swizzle = match width * bytes {
        128 => Some(Swizzle::new(3, base, 3)?),
        64 => Some(Swizzle::new(2, base, 3)?),
        32 => Some(Swizzle::new(1, base, 3)?),
        _ => None,
    };
    LayoutArgument::placed(swizzle, first, layout)
}
