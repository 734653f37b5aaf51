//! Complement, division and product of morphisms.
//!
//! Laws. The complement of an injective `f: S -> T` is the inclusion of the entries of `T` that `f`
//! does not hit: `f` beside it is an isomorphism. `f / g = f o (g, g^c)` and `f * g = (f, f^c o
//! g)`. Encoded, they are complement, logical division and logical product of layouts (theorems D,
//! E and F; Carlisle, Shah, Stern, VanKoughnett).

use crate::morphism::error::MorphismError;
use crate::morphism::pointed::{Images, PointedMap};
use crate::morphism::tuple::{Entries, TupleMorphism, not_composable};

impl TupleMorphism {
    /// The inclusion of the entries of the codomain that are not hit.
    ///
    /// Errors: an entry is sent to the base point ([`MorphismError::Dropped`]); the size of the new
    /// domain is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,2) -> (5,2,3,2) : (4,2)".parse().unwrap();
    /// assert_eq!(f.complement().unwrap().to_string(), "(5,3) -> (5,2,3,2) : (1,3)");
    /// assert_eq!(f.complement().unwrap().complement().unwrap(), f.sort());
    /// ```
    pub fn complement(&self) -> Result<TupleMorphism, MorphismError> {
        self.complement_for("complement")
    }

    pub(crate) fn complement_for(&self, op: &'static str) -> Result<TupleMorphism, MorphismError> {
        if let Some(entry) = self.map().images.iter().position(|place| *place == 0) {
            return Err(MorphismError::Dropped { op, entry });
        }
        let preimages = self.map().preimages();
        let free = || preimages.iter().enumerate().filter(|(_, preimage)| preimage.is_none()).map(|(place, _)| place);
        let images: Images = free().map(|place| place as u16 + 1).collect();
        let domain: Entries = free().filter_map(|place| self.codomain().get(place).copied()).collect();
        crate::morphism::tuple::size(op, &domain)?;
        let map = PointedMap::from_images(self.codomain().len(), images);
        Ok(TupleMorphism::from_valid(domain, self.codomain().into(), map))
    }

    /// Whether the two, side by side, are an isomorphism onto their common codomain.
    pub fn is_complementary_to(&self, other: &TupleMorphism) -> bool {
        self.concat(other).is_ok_and(|both| both.is_isomorphism())
    }

    /// Flat division: `self` after (`tile`, complement of `tile`). The tiles come first, then the
    /// modes over tiles.
    ///
    /// Errors: `tile` does not end where `self` begins; it sends an entry to the base point.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(4,8) -> (8,4) : (2,1)".parse().unwrap();
    /// let tile: TupleMorphism = "(8) -> (4,8) : (2)".parse().unwrap();
    /// assert_eq!(f.flat_divide(&tile).unwrap().to_string(), "(8,4) -> (8,4) : (1,2)");
    /// ```
    pub fn flat_divide(&self, tile: &TupleMorphism) -> Result<TupleMorphism, MorphismError> {
        const OP: &str = "flat_divide";
        if tile.codomain() != self.domain() {
            return Err(not_composable(OP, tile.codomain(), self.domain()));
        }
        self.compose(&tile.concat(&tile.complement_for(OP)?)?)
    }

    /// Flat product: (`self`, complement of `self` after `tile`). One copy of `self` for each index
    /// of `tile`, all of them disjoint.
    ///
    /// Errors: an entry of `self` is sent to the base point; `tile` does not end where the
    /// complement of `self` begins; the size of the domain is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,2) -> (2,3,2,5) : (1,3)".parse().unwrap();
    /// let tile: TupleMorphism = "(5) -> (3,5) : (2)".parse().unwrap();
    /// assert_eq!(f.flat_product(&tile).unwrap().to_string(), "(2,2,5) -> (2,3,2,5) : (1,3,4)");
    /// ```
    pub fn flat_product(&self, tile: &TupleMorphism) -> Result<TupleMorphism, MorphismError> {
        const OP: &str = "flat_product";
        let free = self.complement_for(OP)?;
        if tile.codomain() != free.domain() {
            return Err(not_composable(OP, tile.codomain(), free.domain()));
        }
        self.concat(&free.compose(tile)?)
    }
}
