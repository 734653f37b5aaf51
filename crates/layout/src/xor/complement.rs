//! Complements of layouts with XOR strides.
//!
//! # Laws
//!
//! The offsets of a layout whose extents are powers of two are the sums of vectors, a space `V`.
//! All numbers are divided into cosets of `V`, and each coset has a least member: the one without
//! the leading bits of the reduced basis of `V`. Let `2^J` be the least power of two above the
//! vectors of `V`.
//!
//! * `weak_complement(L, M)` enumerates the least members of the cosets of the *span* of `L`, in
//!   increasing order, below `M` rounded up to a multiple of `2^J`: a mode of extent 2 for each bit
//!   below `J` that is not a leading bit, and a last mode of steps `2^J`; coalesced. Offsets of `L`
//!   at two offsets of `C` differ by a vector that is not in the span, so `(L, C)` repeats no
//!   offset that `L` does not repeat. It always exists.
//! * `complement(L, M)` is the same if it leaves no holes: `(L, C)`, with `L`'s stride-0 modes left
//!   out, is a bijection onto `[0, N)`, where `N` is the least possible number from `M` on. With
//!   powers of two, `[0, N)` must be closed under adding vectors of `V`, which holds exactly for
//!   multiples of `2^J`.
//! * One mode may have another extent `s`. Then the offsets below `s * 2^J` can be filled, `2^J`
//!   the leading bit of its stride, when all else lies below `2^J` and the mode, seen above bit
//!   `J`, runs through `0 .. s`; and nothing more can be: the least offset not filled would belong
//!   to a copy that overlaps this one, as `0 .. s` moved by XOR to cover `s` meets itself.
//!
//! Without a target the last mode is open: extent 1, and its stride is the offset of the next copy.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::algebra::coalesce::{coalesced, push_merged};
use crate::bits::matrix::BitMatrix;
use crate::limits::{MAX_BITS, MAX_XOR_VALUES};
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::tree::Leaves;
use crate::xor::{BITS, Xor, flat, length, product};

/// The modes of a layout with nonzero strides, each split into modes of extent 2 and an odd rest.
pub(crate) struct CutModes {
    /// The strides of the modes of extent 2, and their steps in the index.
    pub(crate) twos: SmallVec<[(u64, i64); 16]>,
    /// The odd rests.
    pub(crate) odd: SmallVec<[Odd; 4]>,
}

/// The odd rest of a mode, which remains after splitting off modes of extent 2.
pub(crate) struct Odd {
    /// An odd number above 1.
    pub(crate) extent: u64,
    pub(crate) stride: u64,
    /// The extent of the whole mode.
    whole: i64,
}

impl CutModes {
    pub(crate) fn of(op: &'static str, layout: &Layout<Xor>) -> Result<CutModes, LayoutError> {
        CutModes::try_of(layout).fits(op)
    }

    fn try_of(layout: &Layout<Xor>) -> Option<CutModes> {
        let mut moving = CutModes { twos: SmallVec::new(), odd: SmallVec::new() };
        let modes = coalesced(layout.leaves())?;
        for (leaf, step) in modes.iter().zip(index_steps(&modes)?) {
            let (extent, stride) = (leaf.extent.unsigned_abs(), leaf.stride.bits());
            if stride == 0 {
                continue;
            }
            let twos = extent.trailing_zeros();
            for bit in 0..twos {
                moving.twos.push((product(1 << bit, stride)?, step << bit));
            }
            if extent >> twos > 1 {
                let stride = product(1 << twos, stride)?;
                moving.odd.push(Odd { extent: extent >> twos, stride, whole: leaf.extent });
            }
        }
        Some(moving)
    }

    /// The space that the strides of the modes of extent 2 span.
    pub(crate) fn space(&self) -> Result<BitMatrix, LayoutError> {
        BitMatrix::of_columns(self.twos.iter().map(|(stride, _)| *stride))
    }

    /// The space that the vectors of all modes span.
    pub(crate) fn span(&self, op: &'static str) -> Result<BitMatrix, LayoutError> {
        BitMatrix::of_columns(self.reduced(op)?.0)
    }

    /// Whether the vectors of the bits of all indices are linearly independent.
    pub(crate) fn independent(&self, op: &'static str) -> Result<bool, LayoutError> {
        let (reduced, count) = self.reduced(op)?;
        Ok(reduced.len() == count)
    }

    /// The reduced basis of the vectors of the bits of all indices, and the number of these
    /// vectors.
    fn reduced(&self, op: &'static str) -> Result<(Vec<u64>, usize), LayoutError> {
        let odd = self.odd.iter().flat_map(|odd| (0..length(odd.extent - 1)).map(|bit| product(1 << bit, odd.stride)));
        let vectors = self.twos.iter().map(|(stride, _)| Some(*stride)).chain(odd).collect::<Option<Vec<u64>>>();
        let vectors = vectors.fits(op)?;
        let mut reduced: Vec<u64> = Vec::new();
        // There may be more than 64 vectors, but at most 63 independent ones.
        let mut rest = vectors.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(MAX_BITS - reduced.len()));
            reduced = BitMatrix::of_columns(reduced.into_iter().chain(now.iter().copied()))?.image();
            rest = later;
        }
        Ok((reduced, vectors.len()))
    }
}

impl Layout<Xor> {
    /// The layout that together with this one covers each offset of `[0, target)` once, ignoring
    /// repetitions of stride 0: sorted and coalesced.
    ///
    /// A target that is not possible is rounded up. Errors: the target is not positive; different
    /// indices have the same offset ([`LayoutError::Collapse`]); there is no complement because an
    /// extent is not a power of two ([`LayoutError::Argument`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let complement = |text: &str, m: i64| text.parse::<Layout<Xor>>().unwrap().complement(&m).unwrap().to_string();
    /// assert_eq!(complement("8:^9", 64), "8:^1");
    /// assert_eq!(complement("4:^9", 64), "(8,2):(^1,^32)");
    /// assert_eq!(complement("(8,8):(^1,^9)", 640), "10:^64");
    /// ```
    pub fn complement(&self, target: &i64) -> Result<Layout<Xor>, LayoutError> {
        whole(self, Some(*target))
    }

    /// The complement without a target: the last mode has extent 1, and its stride is the offset of
    /// the next copy.
    ///
    /// Errors: as [`Layout::complement`]; there is no offset for a next copy.
    pub fn complement_open(&self) -> Result<Layout<Xor>, LayoutError> {
        whole(self, None)
    }

    /// The least members of the cosets of this layout's span, below `target` rounded up: offsets of
    /// disjoint copies, with holes if an extent is not a power of two.
    ///
    /// Errors: the target is not positive; a vector is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let block: Layout<Xor> = "3:^1".parse().unwrap();
    /// assert_eq!(block.weak_complement(&16).unwrap().to_string(), "4:^4");
    /// assert_eq!(block.complement(&16).unwrap_err().code(), "E0116");
    /// ```
    pub fn weak_complement(&self, target: &i64) -> Result<Layout<Xor>, LayoutError> {
        const OP: &str = "weak_complement";
        fill(OP, &CutModes::of(OP, self)?.span(OP)?, 0, Some(*target))
    }

    /// The weak complement without a target: the last mode has extent 1, and its stride is the
    /// offset of the next copy.
    ///
    /// Errors: a vector is not representable.
    pub fn weak_complement_open(&self) -> Result<Layout<Xor>, LayoutError> {
        const OP: &str = "weak_complement";
        fill(OP, &CutModes::of(OP, self)?.span(OP)?, 0, None)
    }
}

fn whole(layout: &Layout<Xor>, target: Option<i64>) -> Result<Layout<Xor>, LayoutError> {
    const OP: &str = "complement";
    let moving = CutModes::of(OP, layout)?;
    let space = moving.space()?;
    if let Some(collapse) = space.kernel().first() {
        let steps = moving.twos.iter().enumerate().filter(|(bit, _)| collapse >> bit & 1 == 1);
        let difference = steps.fold(0, |index, (_, (_, step))| index + step.unsigned_abs());
        return Err(LayoutError::Collapse { op: OP, difference });
    }
    let odd = match moving.odd.as_slice() {
        [] => return fill(OP, &space, 0, target),
        [odd] => odd,
        [_, odd, ..] => return Err(not_filled(odd)),
    };
    let (extent, stride) = (odd.extent, odd.stride);
    let lead = stride.ilog2();
    if space.outputs() as u32 > lead {
        return Err(not_filled(odd));
    }
    // Bits of the stride that no index shifts up to the leading bit do not affect the bits above
    // it.
    let far = (lead + 1).saturating_sub(length(extent - 1));
    if stride >> far != 1 << (lead - far) {
        if extent > MAX_XOR_VALUES {
            return Err(LayoutError::Undecided { op: OP, limit: MAX_XOR_VALUES as usize });
        }
        let above = |index| product(index, stride).map(|value| value >> lead);
        if !(0..extent).all(|index| above(index).is_some_and(|value| value < extent)) {
            return Err(not_filled(odd));
        }
    }
    let filled = i64::try_from(extent).ok().and_then(|extent| extent.checked_mul(1_i64.checked_shl(lead)?));
    match target {
        Some(target) if filled.is_none_or(|filled| target <= filled) => fill(OP, &space, lead, Some(target.min(1))),
        Some(value) => {
            let (what, wanted) = ("the target", "at most what is filled, as the last extent is no power of two");
            Err(LayoutError::Argument { op: OP, what, value, wanted })
        }
        None => Err(not_filled(odd)),
    }
}

fn not_filled(odd: &Odd) -> LayoutError {
    let (what, wanted) = ("an extent", "a power of two, or that of one last mode above all others");
    LayoutError::Argument { op: "complement", what, value: odd.whole, wanted }
}

/// The least members of the cosets of a space, at least all of those below bit `low`.
fn fill(op: &'static str, space: &BitMatrix, low: u32, target: Option<i64>) -> Result<Layout<Xor>, LayoutError> {
    if let Some(value) = target
        && value <= 0
    {
        return Err(LayoutError::Argument { op, what: "the target", value, wanted: "positive" });
    }
    let leads = space.image().iter().fold(0_u64, |leads, vector| leads | 1 << vector.ilog2());
    let top = length(leads).max(low);
    let mut leaves = Leaves::new();
    for bit in (0..top).filter(|bit| leads >> bit & 1 == 0) {
        push_merged(&mut leaves, &Leaf { extent: 2, stride: Xor(1 << bit) }).fits(op)?;
    }
    match target {
        None if top == BITS => return Err(LayoutError::overflow(op)),
        None => leaves.push(Leaf { extent: 1, stride: Xor(1 << top) }),
        Some(target) => {
            let extent = ((target - 1) >> top.min(62)) + 1;
            if extent > 1 {
                push_merged(&mut leaves, &Leaf { extent, stride: Xor(1 << top) }).fits(op)?;
            }
        }
    }
    flat(op, leaves)
}
