//! Conversions between layouts with XOR strides and composed layouts, and their compositions.
//!
//! Law: the value at every index is the same, with bit vectors as numbers.
//!
//! A mode `s:^d` maps `i` to the carry-less product of `i` and `d`, which is linear over the bits
//! of `i` for every `s`. A layout `F` of the same shape puts every digit of the index into its own
//! field of bits. So the whole is a bit matrix after `F`. On a range of numbers from 0 on, the
//! field of the last digit is long enough for that range.

use alloc::vec::Vec;

use crate::bits::matrix::BitMatrix;
use crate::composed::{Composed, OuterMap};
use crate::limits::{MAX_BITS, MAX_XOR_VALUES};
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::number::Stride;
use crate::value::profile::{ROOM, Splitting};
use crate::value::tree::{Leaves, Tree};
use crate::xor::compose::{push_modes, refusal};
use crate::xor::function::{FunctionShape, modes};
use crate::xor::{Xor, length, product};

const OP: &str = "composition";

/// The fields of bits of the digits, and the vector of each bit.
struct Fields {
    layout: Leaves<Leaf>,
    columns: Vec<u64>,
}

impl Fields {
    /// The fields for the digits of these leaves; an extent is the number of positions of its
    /// digit.
    fn of(leaves: impl Iterator<Item = (i64, Xor)>) -> Result<Fields, LayoutError> {
        let mut fields = Fields { layout: Leaves::new(), columns: Vec::new() };
        for (extent, stride) in leaves {
            let bits = length(extent.unsigned_abs().saturating_sub(1));
            let begin = 1_i64.checked_shl(fields.columns.len() as u32).filter(|begin| *begin > 0);
            let begin = if bits == 0 { 0 } else { begin.fits(OP)? };
            fields.layout.push(Leaf { extent, stride: begin });
            for bit in 0..bits {
                fields.columns.push(product(1 << bit, stride.bits()).fits(OP)?);
            }
        }
        if fields.columns.len() >= MAX_BITS { Err(LayoutError::overflow(OP)) } else { Ok(fields) }
    }

    fn matrix(&self) -> Result<OuterMap, LayoutError> {
        Ok(OuterMap::of_matrix(BitMatrix::of_columns(self.columns.iter().copied())?))
    }
}

impl Layout<Xor> {
    /// The same map as a composed layout: a layout of integers if possible, else `S<b,m,s> o 0 o L`
    /// if possible, else a bit matrix after a layout.
    ///
    /// Errors: the digits together have more than 62 bits.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let composed = |text: &str| text.parse::<Layout<Xor>>().unwrap().composed().unwrap().to_string();
    /// assert_eq!(composed("(8,8):(^1,^9)"), "S<3,0,3> o 0 o (8,8):(1,8)");
    /// assert_eq!(composed("(8,64):(^64,^1)"), "S<0,0,0> o 0 o (8,64):(64,1)");
    /// assert_eq!(composed("(3,2):(^3,^1)"), "F2<3>[3,6,1] o 0 o (3,2):(1,4)");
    /// ```
    pub fn composed(&self) -> Result<Composed, LayoutError> {
        if let Ok(layout) = self.integers() {
            return Ok(Composed::from(layout));
        }
        if let Ok(matrix) = self.bit_matrix() {
            return matrix.to_composed(&self.shape());
        }
        let fields = Fields::of(self.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)))?;
        let inner = Layout::from_tree(Tree::new(self.profile().clone(), fields.layout.clone())?)?;
        Composed::new(fields.matrix()?, 0, inner)
    }

    /// The map on the numbers from 0 to `greatest`.
    fn map_up_to(&self, greatest: i64) -> Result<OuterMap, LayoutError> {
        if greatest < self.size()
            && let Ok(layout) = self.integers()
        {
            return Ok(layout.into());
        }
        let layout = self.coalesce_z()?;
        let before = layout.leaves().split_last().map_or(&[][..], |(_, front)| front);
        // The product divides the size, which is representable.
        let begin: i64 = before.iter().map(|leaf| leaf.extent).product();
        let last = (greatest / begin).checked_add(1).fits(OP)?;
        let step = layout.leaves().last().map_or(Xor::zero(), |leaf| leaf.stride);
        let fields = Fields::of(before.iter().map(|leaf| (leaf.extent, leaf.stride)).chain([(last.max(2), step)]))?;
        fields.matrix()?.after(&0, &OuterMap::Layout(Layout::flat(fields.layout.clone())?))
    }
}

impl Composed {
    /// The composition of a layout with XOR strides and this map: `c -> outer(R(c))`, over the same
    /// domain.
    ///
    /// Errors: a value is, or may be, negative ([`LayoutError::Negative`] or
    /// [`LayoutError::Undecided`]); a number has too many bits; the result is a chain of more than
    /// [`crate::limits::MAX_CHAIN`] maps.
    ///
    /// ```
    /// use tilewright_layout::{Composed, Layout, Xor};
    ///
    /// let swizzled: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    /// let rows: Composed = "S<1,0,1> o 0 o (2,4):(8,2)".parse().unwrap();
    /// let both = rows.then_xor(&swizzled).unwrap();
    /// for index in 0..8 {
    ///     let value = swizzled.eval(&rows.eval(&index).unwrap()).unwrap();
    ///     assert_eq!(both.eval(&index).unwrap() as u64, value.bits());
    /// }
    /// ```
    pub fn then_xor(&self, outer: &Layout<Xor>) -> Result<Composed, LayoutError> {
        let greatest = self.cosize()? - 1;
        if greatest < 0 || !self.is_never_negative()? {
            let (what, wanted) = ("a value of the inner map", "0 or more");
            let value = self.image()?.first().copied().unwrap_or(0);
            return Err(LayoutError::Argument { op: OP, what, value, wanted });
        }
        self.then(outer.map_up_to(greatest)?)
    }

    /// The layout with XOR strides that is the same function; its shape refines that of the domain.
    ///
    /// Errors: there is none ([`LayoutError::NotLinear`], [`LayoutError::NotXor`]); an extent is
    /// not a power of two, and there are more than [`MAX_XOR_VALUES`] indices
    /// ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let xor = |text: &str| text.parse::<Composed>().unwrap().to_xor().map(|layout| layout.to_string());
    /// assert_eq!(xor("S<3,0,3> o 0 o (8,8):(1,8)").unwrap(), "(8,8):(^1,^9)");
    /// assert_eq!(xor("F2<3>[3,6,1] o 0 o (3,2):(1,4)").unwrap(), "(3,2):(^3,^1)");
    /// assert_eq!(xor("S<0,0,0> o 0 o 4:3").unwrap_err().code(), "E0121");
    /// ```
    pub fn to_xor(&self) -> Result<Layout<Xor>, LayoutError> {
        const OP: &str = "to_xor";
        let even = self.inner().leaves().iter().all(|leaf| leaf.extent.unsigned_abs().is_power_of_two());
        let vector = |index: u64| Some(self.eval(&i64::try_from(index).ok()?).ok()? as u64);
        if even {
            // Refuses a map that is not linear over bits; a linear one is determined by its
            // columns.
            self.bit_matrix()?;
        } else if self.size().unsigned_abs() > MAX_XOR_VALUES {
            return Err(LayoutError::Undecided { op: OP, limit: MAX_XOR_VALUES as usize });
        }
        let mut result = Layout::blank();
        let (nodes, leaves) = result.parts_mut();
        let mut room = ROOM;
        let mut tree = Splitting::new(self.profile().as_ref(), nodes, &mut room);
        let steps = index_steps(self.inner().leaves()).fits(OP)?;
        for (leaf, step) in self.inner().leaves().iter().zip(&steps) {
            let (extent, step) = (leaf.extent.unsigned_abs(), step.unsigned_abs());
            let runs = if even {
                let mut found = Leaves::new();
                for bit in 0..extent.trailing_zeros() {
                    let stride = vector(step << bit).and_then(Xor::within).fits(OP)?;
                    crate::algebra::coalesce::push_merged(&mut found, &Leaf { extent: 2, stride }).fits(OP)?;
                }
                if found.is_empty() {
                    found.push(Leaf { extent: leaf.extent, stride: Xor::zero() });
                }
                leaves.extend(found.iter().copied());
                found.len()
            } else {
                match modes(extent, |index| vector(index.checked_mul(step)?)).fits(OP)? {
                    FunctionShape::Modes(found) => push_modes(leaves, &found, leaf.extent),
                    FunctionShape::Break { index, value, steps } => {
                        return Err(refusal(OP, None, Tree::leaf((index * step) as i64), value, steps));
                    }
                    FunctionShape::Open => {
                        return Err(LayoutError::Undecided { op: OP, limit: MAX_XOR_VALUES as usize });
                    }
                }
            };
            tree.leaf(runs as u16);
        }
        tree.finish()?;
        for index in 0..if even { 0 } else { self.size() } {
            let (value, sum) = (vector(index as u64).fits(OP)?, result.eval(&index)?.bits());
            if value != sum {
                return Err(refusal(OP, None, Tree::leaf(index), value, sum));
            }
        }
        Ok(result)
    }
}
