//! From coordinates to indices: composed layouts of coordinates as composed layouts of numbers.
//!
//! Law: the map is the same at every coordinate. For an outer layout `A`, an offset `o` and an
//! inner layout `B`, all of coordinates of `A`:
//!
//! * where `A o (B, 2:o)` exists, `A` adds up over `o` and what `B` gives, and
//!   `A(o + B(c)) = A(o) + (A o B)(c)`: a layout with an offset. It exists if and only if that
//!   holds;
//! * where every coordinate lies within the shape of `A`, each has an index there, `I` by name,
//!   which adds up over all of them: `A(o + B(c)) = A(I(o) + (I o B)(c))`, `A` of an index.

use super::{Composed, OuterMap};
use crate::coordinate::Coordinate;
use crate::coordinate::composition::within;
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::Layout;
use crate::value::number::Extent;

impl<N: Extent> Composed<Coordinate<N>> {
    /// The same map with numbers in place of coordinates: `A(o) + (A o B)(c)` where that is what it
    /// is, otherwise by the indices of the coordinates in the outer layout.
    ///
    /// Errors: neither form exists, as coordinates leave the shape of the outer layout
    /// ([`LayoutError::OutOfDomain`]); a number is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Composed, Coordinate};
    ///
    /// let by_index = |text: &str| text.parse::<Composed<Coordinate>>().unwrap().by_index().unwrap().to_string();
    /// assert_eq!(by_index("(4,5):(5,1) o (1,2) o (2,3):(1@0,1@1)"), "S<0,0,0> o 7 o (2,3):(5,1)");
    /// // From the middle of a mode of several steps on, the values are those of no layout.
    /// assert_eq!(by_index("((2,2),5):((8,1),16) o (1,2) o (3,3):(1@0,1@1)"), "((2,2),5):((8,1),16) o 9 o (3,3):(1,4)");
    /// ```
    pub fn by_index(&self) -> Result<Composed<N>, LayoutError> {
        let OuterMap::Layout(layout) = self.outer.first() else {
            // A map of numbers: the coordinates are in a codomain that is not a tuple.
            let line = Layout::mode_of(N::one(), N::one())?;
            return Composed::new(self.outer.clone(), line.eval_coordinate(&self.offset)?, line.compose(&self.inner)?);
        };
        // The offset and what is added to it have one codomain.
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
