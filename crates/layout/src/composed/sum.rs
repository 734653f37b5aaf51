//! The sum of two composed layouts.
//!
//! Law: `R(i) = A(i) + B(i)` at every index, over a flat domain. For layouts with offsets it is
//! [`Layout::add`]. For maps that are sums of parities ([`super::parity`]), the result is a sum of
//! parities too, and a composed layout if it is affine over bits. Otherwise both are packed into
//! one chain ([`super::beside`]), after the sum of their inner layouts.

use super::Composed;
use super::beside::packed;
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::Layout;
use crate::value::tree::Tree;

const OP: &str = "layout_add";

impl Composed {
    /// The map `R(i) = A(i) + B(i)`.
    ///
    /// Errors: the sizes differ; both are layouts with offsets and their sum is not a layout
    /// ([`LayoutError::NotALayout`]), or the sum of their inner layouts is not a layout; as
    /// [`Composed::beside`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let composed = |text: &str| text.parse::<Composed>().unwrap();
    /// let sum = composed("S<1,0,1> o 0 o 4:1").add(&composed("S<1,2,1> o 0 o 4:4")).unwrap();
    /// assert_eq!((0..4).map(|index| sum.eval(&index).unwrap()).collect::<Vec<_>>(), [0, 5, 15, 10]);
    /// ```
    pub fn add(&self, other: &Composed) -> Result<Composed, LayoutError> {
        let (left, right) = (self.size(), other.size());
        if left != right {
            return Err(LayoutError::Size { op: OP, left, right });
        }
        if let (Ok((a, first)), Ok((b, second))) = (self.to_layout(), other.to_layout()) {
            let offset = first.checked_add(second).fits(OP)?;
            return Composed::new(super::OuterMap::identity(), offset, a.add(&b)?);
        }
        let sum = self.parities().zip(other.parities()).map(|(a, b)| a.added(&b).fits(OP)).transpose()?;
        if let Some(affine) = sum.as_ref().and_then(|sum| sum.affine()) {
            return Composed::of_affine(&Tree::leaf(left), &affine);
        }
        let plain = |map: &Composed| map.to_layout().ok();
        let found = packed(self, &plain(self), other, &Layout::add);
        match (found.or_else(|| packed(other, &plain(other), self, &Layout::add)), sum) {
            (Some(found), _) => found,
            (None, Some(sum)) => Err(sum.not_affine(OP)),
            (None, None) => Err(LayoutError::Undecided { op: OP, limit: crate::limits::MAX_INDICES as usize }),
        }
    }
}
