//! Division by a composed layout, and product with one: swizzled tiles, and swizzled arrangements
//! of copies.
//!
//! Laws, as for layouts, with `+` as in [`Composed::beside`]:
//! `logical_divide(A, T) = A o (T, complement(T, size(A)))`, where the values of `T` and its strict
//! complement together cover every index once, and `logical_product(A, B) = (A, A* o B)`, `A*` the
//! open weak complement, so that copies at different values of `B` are disjoint. The product of a
//! composed block is the product of its inner layout; the same outer map applies to all copies, as
//! in the product with a plain layout.
//!
//! The forms (`zipped_`, `tiled_`, `flat_`) and the pairings by mode only rearrange the domain.

use alloc::vec::Vec;

use super::Composed;
use super::tiling::is_no_layout;
use crate::refusal::error::LayoutError;
use crate::tile::form::DivideForm;
use crate::value::layout::Layout;

/// A pair of a first and a second part, arranged in one of the forms.
fn arranged(form: DivideForm, pair: Composed) -> Result<Composed, LayoutError> {
    let (Some(first), Some(second)) = (pair.inner.mode(0), pair.inner.mode(1)) else { return Ok(pair) };
    let inner = match form {
        DivideForm::Logical | DivideForm::Zipped => return Ok(pair),
        DivideForm::Tiled => Layout::tuple(core::iter::once(&first).chain(&second.modes().collect::<Vec<_>>()))?,
        DivideForm::Flat => Layout::tuple(&first.modes().chain(second.modes()).collect::<Vec<_>>())?,
    };
    pair.with(inner)
}

/// `by_layout` of the map as a layout; if it is not a layout, or that refuses, `by_map`.
fn either(
    map: &Composed,
    by_layout: impl Fn(&Layout) -> Result<Composed, LayoutError>,
    by_map: impl Fn() -> Result<Composed, LayoutError>,
) -> Result<Composed, LayoutError> {
    match map.to_layout() {
        Ok((layout, 0)) => match by_layout(&layout) {
            Err(error) if is_no_layout(&error) => by_map(),
            result => result,
        },
        _ => by_map(),
    }
}

/// The layout of a map, in which a leaf of the shape that became several modes is grouped as one
/// mode.
fn as_modes(map: &Composed, layout: &Layout) -> Result<Layout, LayoutError> {
    if map.profile().is_leaf() { Layout::tuple([layout]) } else { Ok(layout.clone()) }
}

impl Composed {
    /// The division by a composed layout in a form that is an argument.
    ///
    /// Errors: as [`Composed::logical_divide_composed`].
    pub fn divide_composed(&self, form: DivideForm, tile: &Composed) -> Result<Composed, LayoutError> {
        arranged(form, self.logical_divide_composed(tile)?)
    }

    /// The product with a composed layout in a form that is an argument.
    ///
    /// Errors: as [`Composed::logical_product_composed`].
    pub fn product_composed(&self, form: DivideForm, arrangement: &Composed) -> Result<Composed, LayoutError> {
        arranged(form, self.logical_product_composed(arrangement)?)
    }

    /// `A o (T, complement(T, size(A)))`.
    fn divided_by(&self, tile: &Composed) -> Result<Composed, LayoutError> {
        let rest = tile.complement(&self.size()).map_err(LayoutError::in_divide)?;
        tile.beside(&Composed::from(rest))?.then(self.map()?)
    }

    /// `(A, A* o B)`.
    fn times(&self, arrangement: &Composed) -> Result<Composed, LayoutError> {
        let copies = arrangement.then(self.inner.weak_complement_open()?)?;
        let both = Composed::from(&self.inner).beside(&copies)?;
        Composed::new(self.outer.after(&self.offset, &both.outer)?, both.offset, both.inner)
    }

    /// The map divided into tiles whose indices are the values of a composed layout:
    /// `(tile, rest)`.
    ///
    /// Errors: the values of `tile` have no complement ([`Composed::complement`]); as
    /// [`Composed::beside`].
    ///
    /// ```
    /// use tilewright_layout::{Composed, Layout};
    ///
    /// let rows: Layout = "(4,8):(8,1)".parse().unwrap();
    /// let tile: Composed = "S<1,0,1> o 0 o (2,2):(1,2)".parse().unwrap();
    /// let divided = Composed::from(rows).logical_divide_composed(&tile).unwrap();
    /// assert_eq!(divided.to_string(), "(4,8):(8,1) o 0 o S<1,0,1> o 0 o ((2,2),8):((1,2),4)");
    /// ```
    pub fn logical_divide_composed(&self, tile: &Composed) -> Result<Composed, LayoutError> {
        either(tile, |tile| self.logical_divide(&tile.into()), || self.divided_by(tile))
    }

    /// Copies of this block at the values of a composed layout: `(block, copies)`.
    ///
    /// Errors: modes of the block's inner layout overlap; as [`Composed::beside`].
    ///
    /// ```
    /// use tilewright_layout::{Composed, Layout};
    ///
    /// let block = Composed::from("3:1".parse::<Layout>().unwrap());
    /// let swapped: Composed = "S<1,0,1> o 0 o 4:1".parse().unwrap();
    /// let product = block.logical_product_composed(&swapped).unwrap();
    /// let values = (0..12).map(|index| product.eval(&index).unwrap()).collect::<Vec<_>>();
    /// assert_eq!(values, [0, 1, 2, 3, 4, 5, 9, 10, 11, 6, 7, 8]);
    /// ```
    pub fn logical_product_composed(&self, arrangement: &Composed) -> Result<Composed, LayoutError> {
        either(arrangement, |by| self.logical_product(&by.into()), || self.times(arrangement))
    }

    /// Copies side by side in every mode, mode `i` being `(block_i, copies_i)`:
    /// [`Layout::blocked_product`] with a composed arrangement.
    ///
    /// Errors: as [`Composed::logical_product_composed`].
    pub fn blocked_product_composed(&self, arrangement: &Composed) -> Result<Composed, LayoutError> {
        let pair = |block: &Layout, copies: &Layout| Layout::tuple([block, copies]);
        either(arrangement, |by| self.blocked_product(&as_modes(arrangement, by)?), || self.by_mode(arrangement, pair))
    }

    /// Copies interleaved in every mode, mode `i` being `(copies_i, block_i)`, coalesced:
    /// [`Layout::raked_product`] with a composed arrangement.
    ///
    /// Errors: as [`Composed::logical_product_composed`].
    pub fn raked_product_composed(&self, arrangement: &Composed) -> Result<Composed, LayoutError> {
        let pair = |block: &Layout, copies: &Layout| Layout::tuple([copies, block])?.coalesce();
        either(arrangement, |by| self.raked_product(&as_modes(arrangement, by)?), || self.by_mode(arrangement, pair))
    }

    /// The product in which the modes of block and copies are paired; both are extended by `1:0` to
    /// the same rank.
    fn by_mode(
        &self,
        arrangement: &Composed,
        pair: impl Fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
    ) -> Result<Composed, LayoutError> {
        let product = self.times(arrangement)?;
        let (Some(block), Some(copies)) = (product.inner.mode(0), product.inner.mode(1)) else { return Ok(product) };
        // A leaf is one mode, whatever it became; it is paired with the whole arrangement.
        let number = |map: &Composed| map.profile().is_leaf();
        let whole = number(arrangement) || number(self) && arrangement.rank() == 1;
        let rank = if number(self) { 1 } else { self.rank() };
        let unit = Layout::unit();
        let mut modes = Vec::new();
        for mode in 0..rank.max(if whole { 1 } else { arrangement.rank() }) {
            let block = if number(self) { (mode == 0).then(|| block.clone()) } else { block.mode(mode) };
            let copies = if whole { (mode == 0).then(|| copies.clone()) } else { copies.mode(mode) };
            modes.push(pair(block.as_ref().unwrap_or(&unit), copies.as_ref().unwrap_or(&unit))?);
        }
        product.with(Layout::tuple(&modes)?)
    }
}
