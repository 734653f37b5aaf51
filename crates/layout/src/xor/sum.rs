//! Sums of layouts with XOR strides.
//!
//! Law: `R(i) = A(i) ^ B(i)` at every index below the common size, `R` flat and coalesced.
//!
//! *By structure.* The sum changes step at most where `A` or `B` does, after every `p` indices for
//! `p` in one of the two chains of running products. A mode `s:^d` may be split after `m` of its
//! indices, into `m:^d` and `s/m : m * d`, where `m` is a power of two or `d` is 0. If the union of
//! both chains is a divisibility chain and every split of a mode is of this form, then both layouts
//! are expressed in the modes of the union, and their strides are added.
//!
//! *By values.* Otherwise the values decide ([`crate::xor::function`]), up to [`MAX_XOR_VALUES`] of
//! them.

use crate::algebra::coalesce::{coalesced, push_merged};
use crate::limits::MAX_XOR_VALUES;
use crate::refusal::error::{Fits, LayoutError};
use crate::value::kind::StrideKind;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Stride;
use crate::value::tree::{Leaves, Tree};
use crate::xor::Xor;
use crate::xor::compose::{push_modes, refusal};
use crate::xor::function::{FunctionShape, modes};

const OP: &str = "layout_add";

/// The sum: see [`Layout::add`].
pub(crate) fn add(a: &Layout<Xor>, b: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
    let (left, right) = (a.size(), b.size());
    if left != right {
        return Err(LayoutError::Size { op: OP, left, right });
    }
    let x = coalesced(a.leaves()).fits(OP)?;
    let y = coalesced(b.leaves()).fits(OP)?;
    if let Some(leaves) = by_structure(&x, &y) {
        return Layout::flat(leaves);
    }
    let value = |index: u64| {
        let index = i64::try_from(index).ok()?;
        Some(Xor::eval(&x, &index)?.bits() ^ Xor::eval(&y, &index)?.bits())
    };
    match modes(left.unsigned_abs(), value).fits(OP)? {
        FunctionShape::Modes(found) => {
            let mut leaves = Leaves::new();
            push_modes(&mut leaves, &found, 1);
            Layout::flat(leaves)
        }
        FunctionShape::Break { index, value, steps } => Err(refusal(OP, None, Tree::leaf(index as i64), value, steps)),
        FunctionShape::Open => Err(LayoutError::Undecided { op: OP, limit: MAX_XOR_VALUES as usize }),
    }
}

/// The rest of a layout, which is split into the modes of the union.
struct Rest<'a> {
    modes: &'a [Leaf<Xor>],
    /// The number of indices of the first mode that were passed.
    done: i64,
}

impl Rest<'_> {
    /// The number of remaining indices of the first mode, counted in steps of the split. The modes
    /// cover the same size, so both layouts end together.
    fn left(&self) -> Option<i64> {
        let mode = self.modes.first()?;
        (mode.extent % self.done == 0).then_some(mode.extent / self.done)
    }

    /// Splits off `count` indices and returns their step.
    fn cut(&mut self, count: i64) -> Option<Xor> {
        let mode = self.modes.first()?;
        if mode.stride.bits() != 0 && !self.done.unsigned_abs().is_power_of_two() {
            return None;
        }
        let step = mode.stride.times(&self.done)?;
        self.done *= count;
        if self.done == mode.extent {
            self.modes = self.modes.get(1..)?;
            self.done = 1;
        }
        Some(step)
    }
}

fn by_structure(a: &[Leaf<Xor>], b: &[Leaf<Xor>]) -> Option<Leaves<Leaf<Xor>>> {
    let (mut x, mut y) = (Rest { modes: a, done: 1 }, Rest { modes: b, done: 1 });
    let mut leaves = Leaves::new();
    while !x.modes.is_empty() {
        let extent = x.left()?.min(y.left()?);
        let stride = Xor::within(x.cut(extent)?.bits() ^ y.cut(extent)?.bits())?;
        push_merged(&mut leaves, &Leaf { extent, stride })?;
    }
    Some(leaves)
}
