//! Converts composed layouts of coordinates to composed layouts of indices.
//!
//! Law: the result has the same value at every coordinate. For an outer layout `A`, an offset `o`
//! and an inner layout `B`, all of coordinates of `A`:
//!
//! * if `A o (B, 2:o)` exists, `A` is additive over `o` and the values of `B`, so
//!   `A(o + B(c)) = A(o) + (A o B)(c)`: a layout with an offset. The composition exists if and only
//!   if that holds;
//! * if every coordinate is within the shape of `A`, let `I` map a coordinate to its index in that
//!   shape. `I` is additive over these coordinates, so `A(o + B(c)) = A(I(o) + (I o B)(c))`, where
//!   `A` is applied to an index.

use super::{Composed, OuterMap};
use crate::coordinate::Coordinate;
use crate::coordinate::composition::within;
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::Layout;
use crate::value::number::Extent;

impl<N: Extent> Composed<Coordinate<N>> {
    /// The same map with indices instead of coordinates: `A(o) + (A o B)(c)` if that is equal,
    /// otherwise with the indices of the coordinates in the outer layout.
    ///
    /// Errors: neither form exists, because coordinates leave the shape of the outer layout
    /// ([`LayoutError::OutOfDomain`]); a number is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Composed, Coordinate};
    ///
    /// let by_index = |text: &str| text.parse::<Composed<Coordinate>>().unwrap().by_index().unwrap().to_string();
    /// assert_eq!(by_index("(4,5):(5,1) o (1,2) o (2,3):(1@0,1@1)"), "S<0,0,0> o 7 o (2,3):(5,1)");
    /// // From the middle of a nested mode on, the values are not those of a layout.
    /// assert_eq!(by_index("((2,2),5):((8,1),16) o (1,2) o (3,3):(1@0,1@1)"), "((2,2),5):((8,1),16) o 9 o (3,3):(1,4)");
    /// ```
    pub fn by_index(&self) -> Result<Composed<N>, LayoutError> {
        let OuterMap::Layout(layout) = self.outer.first() else {
            // The map is one of numbers: its coordinates are in a codomain that is not a tuple.
            let line = Layout::mode_of(N::one(), N::one())?;
            return Composed::new(self.outer.clone(), line.eval_coordinate(&self.offset)?, line.compose(&self.inner)?);
        };
        // The offset and the values of `B` must be in the same codomain.
        let both = Layout::tuple([&self.inner, &Layout::mode_of(N::from(2), self.offset.clone())?])?;
        if let Some(inner) = layout.compose(&both).ok().and_then(|both| both.mode(0)) {
            let first = layout.eval_coordinate(&self.offset)?;
            let (outer, offset) = match &self.outer {
                OuterMap::Chain(chain) => {
                    let offset = chain.offset.plus(&first).fits_as::<N>("composed layout")?;
                    (chain.outer.clone(), offset)
                }
                _ => (OuterMap::identity(), first),
            };
            return Composed::new(outer, offset, inner);
        }
        within(layout, &self.offset, &self.inner)?;
        let indices = Layout::compact(&layout.shape())?;
        Composed::new(self.outer.clone(), indices.eval_coordinate(&self.offset)?, indices.compose(&self.inner)?)
    }
}
