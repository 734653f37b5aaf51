//! Transposes through a map that flips bits of offsets: a swizzle, a bit matrix, XOR strides.
//!
//! Law: if the source or the destination has such a map, each position of an axis either adds to
//! the offset of an element (`Add`), or flips bits of it (`Flip`). The offset is the XOR of all
//! flipped bits, plus the sum of all addends. Let the axes *along* be those that fill a block of
//! `2^k` bytes of the destination, and number the rows by their offset `p` in it. Then the element
//! of row `p` and column `i` goes to
//!
//! ```text
//! high(i) + (p ^ low(i)),   low(i) < 2^k
//! ```
//!
//! because a column flips the same bits below `2^k` in every row. The same is true for the source,
//! with rows and columns exchanged. So a tile is transposed as if there were no map, except that
//! the pieces of each row are permuted. The size of a piece is the lowest bit that is flipped.
//! Pieces smaller than a line are permuted in a register; larger ones when their lines are written.
//!
//! An axis that flips bits and that is not part of the tile is a loop of two iterations; the second
//! one flips its bits in all rows.

use super::plan::{COLUMNS, CopyTile, DST, DividedSide, Masks, Move, SRC, TRANSPOSED_ROW, Table, TileLoop};
use crate::domain::{Space, Step};
use crate::memory::LINE;

/// The least bytes of a row on either side that are worth a transpose.
const LEAST_ROW: usize = 16;

/// A tile, the loops around it, and what they add to the origin in the source and in the
/// destination.
pub(super) struct PermutedTile {
    pub(super) tile: CopyTile,
    pub(super) outer: Vec<TileLoop>,
    pub(super) origin: [isize; 2],
}

/// What the positions of an axis do to the offset in the source or in the destination.
#[derive(Debug, Clone)]
enum By {
    /// Each step adds this many bytes.
    Add(isize),
    /// Each position flips bits.
    Flip(Vec<usize>),
}

/// An axis of the domain.
#[derive(Debug, Clone)]
struct PermutedAxis {
    extent: usize,
    by: [By; 2],
}

/// The axes that form the rows of one side (source or destination), those with short steps first.
struct Chain {
    side: usize,
    axes: Vec<PermutedAxis>,
    /// The bytes of a row so far.
    bytes: usize,
    /// The size `2^k` of the block in which bits are flipped.
    block: usize,
    /// Whether an axis was split. No further axis can continue the rows then.
    full: bool,
}

/// The tile of the additive axes `steps`, without those of a run of `unit` bytes, and the other
/// axes of the space. None if rows are too short, or if the map does more than flip bits.
pub(super) fn tile(space: &Space<2>, steps: &[Step<2>], unit: usize) -> Option<PermutedTile> {
    if !matches!(unit, 1 | 2 | 4 | 8 | 16) {
        return None;
    }
    let (non_additive, bases) = flips(space)?;
    // Every bit that is flipped on a side.
    let mut used = bases;
    for axis in &non_additive {
        for (used, by) in used.iter_mut().zip(&axis.by) {
            *used |= by.image();
        }
    }
    if used.iter().any(|used| used % unit != 0) {
        return None;
    }
    let plain = steps
        .iter()
        .map(|step| PermutedAxis { extent: step.extent, by: [By::Add(step.by[SRC]), By::Add(step.by[DST])] });
    let mut axes: Vec<PermutedAxis> = non_additive.into_iter().chain(plain).collect();
    let mut outer = Vec::new();
    let (mut across, mut along) = (Chain::new(SRC, unit), Chain::new(DST, unit));
    let wide = TRANSPOSED_ROW.min(COLUMNS * unit);
    // Extends the side with the shorter rows first, so that neither side takes what the other
    // needs. When both have whole lines, each takes as much as it can use.
    loop {
        let mut wants = |side: &mut Chain, least, wanted| side.take(&mut axes, least, wanted, unit, &mut outer);
        let lines = match along.bytes < across.bytes {
            true => wants(&mut along, LINE, TRANSPOSED_ROW) || wants(&mut across, LINE, wide),
            false => wants(&mut across, LINE, wide) || wants(&mut along, LINE, TRANSPOSED_ROW),
        };
        let more = lines
            || wants(&mut along, 2 * LINE, TRANSPOSED_ROW)
            || wants(&mut across, wide, wide)
            || wants(&mut along, TRANSPOSED_ROW, TRANSPOSED_ROW);
        if !more {
            break;
        }
    }
    let enough = LEAST_ROW.max(2 * unit);
    if across.bytes < enough || along.bytes < enough {
        return None;
    }
    // A bit within a block must not be both added to and flipped.
    if [&across, &along].into_iter().any(|chain| used[chain.side] & chain.added() != 0) {
        return None;
    }
    let blocks = [across.block, along.block];
    let mut high = [SRC, DST].map(|side| bases[side] & !(blocks[side] - 1));
    for axis in across.axes.iter().chain(&along.axes) {
        for side in [SRC, DST] {
            high[side] |= axis.by[side].image() & !(blocks[side] - 1);
        }
    }
    for axis in axes {
        outer.push(axis.outer(blocks, &mut high)?);
    }
    let (columns, across_masks) = across.rows(DST, unit, blocks[DST], bases[DST])?;
    let (rows, along_masks) = along.rows(SRC, unit, blocks[SRC], bases[SRC])?;
    let parts = [SRC, DST].map(|side| {
        let flipped = used[side] & (blocks[side] - 1);
        if flipped == 0 { 0 } else { LINE.min(1 << flipped.trailing_zeros()) }
    });
    let places = |count: usize| (0..count).map(|k| (k * unit) as isize).collect();
    let tile = CopyTile {
        how: Move::Permuted,
        unit,
        across: Table { src: places(columns.len()), dst: columns },
        along: Table { dst: places(rows.len()), src: rows },
        rows: true,
        masks: Masks { across: across_masks, along: along_masks, parts },
        ..CopyTile::default()
    };
    let origin = [0_isize.checked_sub_unsigned(bases[SRC])?, 0_isize.checked_sub_unsigned(bases[DST])?];
    Some(PermutedTile { tile, outer, origin })
}

/// The axes that are not additive, as what they add or flip, and the bits of the first offset in
/// the source and in the destination if some are flipped. None if an axis does anything else.
fn flips(space: &Space<2>) -> Option<(Vec<PermutedAxis>, [usize; 2])> {
    let mut bases = [0; 2];
    for (side, base) in bases.iter_mut().enumerate() {
        if space.non_additive.iter().any(|axis| axis.by[side].is_none()) {
            *base = usize::try_from(space.first[side]).ok()?;
        }
    }
    let mut axes: Vec<PermutedAxis> = Vec::with_capacity(space.non_additive.len());
    let mut stride = 1;
    for non_additive in &space.non_additive {
        let mut by = [By::Add(0), By::Add(0)];
        for (side, to) in by.iter_mut().enumerate() {
            *to = match non_additive.by[side] {
                Some(step) => By::Add(step),
                None => {
                    let place = |at: usize| {
                        let [line, first] = [space.table.get(at * stride)?[side], space.first[side]];
                        Some(usize::try_from(first.checked_add(line)?).ok()? ^ bases[side])
                    };
                    By::Flip((0..non_additive.extent).map(place).collect::<Option<Vec<_>>>()?)
                }
            };
        }
        axes.push(PermutedAxis { extent: non_additive.extent, by });
        stride *= non_additive.extent;
    }
    for (number, line) in space.table.iter().enumerate() {
        let (added, flipped) = sum(&axes, number);
        for side in [SRC, DST] {
            let place = isize::try_from(bases[side] ^ flipped[side]).ok()?.checked_sub_unsigned(bases[side])?;
            if place.checked_add(added[side])? != line[side] {
                return None;
            }
        }
    }
    Some((axes, bases))
}

/// The sum of what the axes add, and the XOR of what they flip, at an index of the axes, for the
/// source and the destination.
fn sum(axes: &[PermutedAxis], index: usize) -> ([isize; 2], [usize; 2]) {
    let (mut rest, mut added, mut flipped) = (index, [0_isize; 2], [0; 2]);
    for axis in axes {
        let position = rest % axis.extent;
        rest /= axis.extent;
        for (side, by) in axis.by.iter().enumerate() {
            match by {
                By::Add(step) => added[side] = added[side].wrapping_add(step.wrapping_mul(position as isize)),
                By::Flip(images) => flipped[side] ^= images.get(position).copied().unwrap_or(0),
            }
        }
    }
    (added, flipped)
}

impl By {
    /// Every bit that is flipped.
    fn image(&self) -> usize {
        match self {
            By::Add(_) => 0,
            By::Flip(images) => images.iter().fold(0, |all, image| all | image),
        }
    }
}

impl PermutedAxis {
    /// Whether the axis continues rows of `bytes` bytes: its position `k` adds or flips `k` times
    /// that many bytes.
    fn continues(&self, side: usize, bytes: usize) -> bool {
        match &self.by[side] {
            By::Add(step) => usize::try_from(*step) == Ok(bytes),
            By::Flip(images) => {
                let powers = bytes.is_power_of_two() && self.extent.is_power_of_two();
                powers && images.iter().enumerate().all(|(k, image)| image / bytes == k)
            }
        }
    }

    /// The axis as a loop. An axis that flips bits becomes a loop of two iterations. `high`
    /// collects the flipped bits above the blocks; no two axes flip the same bit.
    fn outer(self, blocks: [usize; 2], high: &mut [usize; 2]) -> Option<TileLoop> {
        let (mut by, mut masks) = ([0; 2], [0; 2]);
        for (side, what) in self.by.iter().enumerate() {
            by[side] = match what {
                By::Add(step) => *step,
                By::Flip(images) => {
                    let image = *images.get(1).filter(|_| images.len() == 2)?;
                    let above = image & !(blocks[side] - 1);
                    if above & high[side] != 0 {
                        return None;
                    }
                    high[side] |= above;
                    masks[side] = image - above;
                    isize::try_from(above).ok()?
                }
            };
        }
        let part = if masks == [0; 2] { DividedSide::Whole } else { DividedSide::Flip(masks) };
        Some(TileLoop { count: self.extent, src: by[SRC], dst: by[DST], part })
    }
}

impl Chain {
    fn new(side: usize, unit: usize) -> Chain {
        Chain { side, axes: Vec::new(), bytes: unit, block: unit, full: false }
    }

    /// If rows have fewer than `least` bytes, takes the axis that continues them, or as much of it
    /// as is wanted; the rest becomes a loop. False if no axis continues them.
    fn take(
        &mut self,
        axes: &mut Vec<PermutedAxis>,
        least: usize,
        wanted: usize,
        unit: usize,
        outer: &mut Vec<TileLoop>,
    ) -> bool {
        if self.full || self.bytes >= least {
            return false;
        }
        let Some(at) = axes.iter().position(|axis| axis.continues(self.side, self.bytes)) else { return false };
        let chunk = self.chunk(&axes[at], wanted);
        // An axis that flips bits cannot be split, so this limits the size of the tables.
        if self.bytes.saturating_mul(chunk) > 4 * wanted {
            return false;
        }
        let mut axis = axes.remove(at);
        if let ([By::Add(src), By::Add(dst)], true) = (&axis.by, chunk < axis.extent) {
            let count = axis.extent.div_ceil(chunk);
            let rest = (axis.extent - (count - 1) * chunk) * (self.bytes / unit);
            let part = if self.side == SRC { DividedSide::Across(rest) } else { DividedSide::Along(rest) };
            let by = chunk as isize;
            outer.push(TileLoop { count, src: src.wrapping_mul(by), dst: dst.wrapping_mul(by), part });
            axis.extent = chunk;
            self.full = true;
        }
        self.bytes = self.bytes.saturating_mul(axis.extent);
        if matches!(axis.by[self.side], By::Flip(_)) {
            self.block = self.bytes;
        }
        self.axes.push(axis);
        true
    }

    /// How many positions of an axis are taken: all of an axis that flips bits; otherwise parts of
    /// equal size, if possible, that make whole lines.
    fn chunk(&self, axis: &PermutedAxis, wanted: usize) -> usize {
        let most = (wanted / self.bytes).max(1);
        if axis.by.iter().any(|by| matches!(by, By::Flip(_))) || axis.extent <= most + most / 4 {
            return axis.extent;
        }
        let chunk = axis.extent.div_ceil(axis.extent.div_ceil(most));
        let line = if LINE.is_multiple_of(self.bytes) { LINE / self.bytes } else { 1 };
        chunk.next_multiple_of(line).min(axis.extent)
    }

    /// The bits within a block that are added to.
    fn added(&self) -> usize {
        let mut bits = 0;
        for axis in &self.axes {
            if let By::Add(step) = axis.by[self.side]
                && (step as usize) < self.block
            {
                bits |= (axis.extent - 1) * step as usize;
            }
        }
        bits
    }

    /// The offsets of its rows in the other layout, in their order in this one: the part above the
    /// block of that layout, and the mask that is flipped in it.
    fn rows(&self, other: usize, unit: usize, block: usize, base: usize) -> Option<(Vec<isize>, Vec<usize>)> {
        let count = self.bytes / unit;
        let (mut places, mut masks) = (vec![None; count], vec![0; count]);
        for index in 0..count {
            let (added, flipped) = sum(&self.axes, index);
            let at = usize::try_from(added[self.side]).ok()?.checked_add(flipped[self.side])? / unit;
            let place = base ^ flipped[other];
            *masks.get_mut(at)? = place & (block - 1);
            let high = isize::try_from(place & !(block - 1)).ok()?;
            *places.get_mut(at).filter(|place| place.is_none())? = Some(high.checked_add(added[other])?);
        }
        Some((places.into_iter().collect::<Option<Vec<_>>>()?, masks))
    }
}
