//! The digits that several lists of modes have in common.
//!
//! Law: lists of extents cut an index into digits wherever one of them does. Each mode of any list
//! is a group of neighbouring digits, as long as the products of the first extents of all lists,
//! together, form one divisibility chain. The walk removes from the front of every list the largest
//! digit that all lists have there. It ends when a list is exhausted, or when the extents do not
//! divide each other.

/// A digit that several lists have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digit<const N: usize> {
    /// The number of positions of the digit.
    pub extent: i64,
    /// For each list, the mode that contains the digit, and the product of the digits of that mode
    /// below it: a step along the digit is this many steps of the mode.
    pub parts: [(usize, i64); N],
}

/// The digits that lists of positive extents have in common, the fastest first.
///
/// ```
/// use tilewright_layout::CommonDigits;
///
/// let mut digits = CommonDigits::new([&[8, 6], &[2, 4, 6]]);
/// let extents: Vec<i64> = digits.by_ref().map(|digit| digit.extent).collect();
/// assert_eq!((extents, digits.is_complete()), (vec![2, 4, 6], true));
///
/// // 6 and 4 do not divide each other.
/// let mut digits = CommonDigits::new([&[6, 4], &[4, 6]]);
/// assert_eq!((digits.by_ref().count(), digits.is_complete()), (0, false));
/// ```
#[derive(Debug, Clone)]
pub struct CommonDigits<'a, const N: usize> {
    lists: [&'a [i64]; N],
    next: [(usize, i64); N],
}

impl<'a, const N: usize> CommonDigits<'a, N> {
    /// Begins the walk. The first mode of each list is the fastest.
    #[inline]
    pub fn new(lists: [&'a [i64]; N]) -> CommonDigits<'a, N> {
        CommonDigits { lists, next: [(0, 1); N] }
    }

    /// The position of the walk in each list: a mode, and the product of its digits that were
    /// removed.
    #[inline]
    pub fn next_parts(&self) -> [(usize, i64); N] {
        self.next
    }

    /// Whether a list is exhausted; otherwise the next extents do not divide each other.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.left().is_none()
    }

    /// The rest of the current mode of each list; None if a list is exhausted.
    #[inline]
    pub fn left(&self) -> Option<[i64; N]> {
        let mut left = [0; N];
        for ((left, list), (mode, taken)) in left.iter_mut().zip(self.lists).zip(self.next) {
            *left = list.get(mode)? / taken;
        }
        Some(left)
    }
}

impl<const N: usize> Iterator for CommonDigits<'_, N> {
    type Item = Digit<N>;

    #[inline]
    fn next(&mut self) -> Option<Digit<N>> {
        let left = self.left()?;
        let extent = left.into_iter().min().filter(|extent| *extent > 0)?;
        if left.iter().any(|left| left % extent != 0) {
            return None;
        }
        let digit = Digit { extent, parts: self.next };
        for (next, left) in self.next.iter_mut().zip(left) {
            *next = if left == extent { (next.0 + 1, 1) } else { (next.0, next.1 * extent) };
        }
        Some(digit)
    }
}
