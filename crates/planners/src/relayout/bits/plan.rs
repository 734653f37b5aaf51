//! The tile of a relayout over bits.
//!
//! Law: the indices of the tile are the XOR sums of indices of a run of the source and indices of a
//! run of the destination. Each list of columns has the offsets of a basis of these indices: in the
//! source, in the destination, or in shared memory.

use tilewright_kernel::Element;
use tilewright_kernel::program::WARP_LANES;
use tilewright_layout::{BitMatrix, BitSpace, BitVector};

use super::super::Sides;
use super::space::{chosen, complement};
use crate::fitted::{self, RELAYOUTS};
use crate::terms::Place;
use crate::units::{MOVE_THREADS, VECTOR};

const FITTED: &fitted::FittedBits = &RELAYOUTS.bits;
/// The fewest threads of a block, a warp, as a power of two.
const WARP: u32 = WARP_LANES.ilog2();
/// The most bits of the index of a vector.
const NUMBER: usize = 30;

/// A tile and its threads.
#[derive(Debug, Clone)]
pub(in super::super) struct BitsPlan {
    /// The unit that is copied: an element, or several that are adjacent on both sides everywhere,
    /// up to 8 bytes.
    pub(super) element: Element,
    /// Elements of a vector, and threads of a block, as powers of two.
    pub(super) vector: u32,
    pub(super) threads: u32,
    /// The offsets of the basis of the tile in the source, starting with those of a run, and the
    /// offsets of the same indices in shared memory.
    pub(super) read: Vec<u64>,
    pub(super) stored: Vec<u64>,
    /// The same for the destination.
    pub(super) written: Vec<u64>,
    pub(super) loaded: Vec<u64>,
    /// The basis of the indices of blocks, in the order of the destination: their offsets in the
    /// source, and in the destination, which are multiples of a vector. Then the XOR of the two
    /// positions in shared memory.
    pub(super) blocks: Vec<u64>,
    pub(super) source_blocks: Vec<u64>,
    pub(super) target_blocks: Vec<u64>,
    pub(super) apart: Vec<u64>,
    /// Elements of a run of the source and of the destination.
    runs: (u64, u64),
}

/// The offsets of the bits of an index; None for a layout that is not linear over bits, or does not
/// begin at 0.
fn columns(place: &Place) -> Option<Vec<u64>> {
    if let Some(columns) = &place.bits {
        return Some(columns.clone());
    }
    let columns = BitMatrix::of_layout(&place.layout).ok().filter(|_| place.base == 0)?.columns().to_vec();
    let swizzled = |column: u64| Some(place.map?.apply(i64::try_from(column).ok()?) as u64);
    match place.map {
        None => Some(columns),
        Some(_) => columns.into_iter().map(swizzled).collect(),
    }
}

/// The space that the offsets of the bits of an index span.
fn images(columns: &[u64]) -> BitSpace {
    BitSpace::of(columns.iter().copied())
}

/// The indices of the elements of a run, bit by bit.
fn run(images: &BitSpace) -> Vec<u64> {
    (0..63).map_while(|bit| images.solve(1 << bit)).collect()
}

/// Merges pairs of elements that are adjacent on both sides everywhere.
fn widened(from: &[u64], to: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let beside = images(from).solve(1)?;
    if chosen(to, beside) != 1 || from.iter().zip(to).any(|(a, b)| (a ^ b) & 1 == 1) {
        return None;
    }
    let left = beside.trailing_zeros() as usize;
    let halved = |columns: &[u64]| {
        let others = columns.iter().enumerate().filter(|(bit, _)| *bit != left);
        others.map(|(_, column)| column >> 1).collect::<Vec<u64>>()
    };
    Some((halved(from), halved(to)))
}

/// A basis of the tile for a side: the indices of its run, then a complement of these in the other
/// run, in the order of this side's offsets.
fn basis(columns: &[u64], own: &[u64], other: &[u64]) -> Vec<u64> {
    let low = (1_u64 << own.len()) - 1;
    let rest = other.iter().map(|index| {
        let image = chosen(columns, *index);
        BitVector { value: image & !low, source: index ^ chosen(own, image & low) }
    });
    let mut space = BitSpace::default();
    rest.for_each(|vector| {
        space.insert(vector);
    });
    own.iter().copied().chain(space.basis().iter().map(|vector| vector.source)).collect()
}

/// The number of contiguous elements.
fn side_by_side(columns: &[u64]) -> u64 {
    let bits = columns.iter().enumerate().take_while(|(bit, column)| **column == 1 << bit);
    1 << bits.count()
}

impl BitsPlan {
    /// The tile with the longest runs on both sides; None if a side is not linear over bits, is not
    /// injective, or has no contiguous elements.
    pub(in super::super) fn plan(sides: &Sides, from: &Place, to: &Place) -> Option<BitsPlan> {
        if sides.source != sides.destination {
            return None;
        }
        let (mut from, mut to) = (columns(from)?, columns(to)?);
        let mut bytes = sides.source.bytes();
        if from.len() != to.len() || from.len() > 62 || images(&from).rank() < from.len() {
            return None;
        }
        while bytes < 8 {
            let Some(wider) = widened(&from, &to) else { break };
            ((from, to), bytes) = (wider, bytes * 2);
        }
        let element = match bytes {
            bytes if bytes == sides.source.bytes() => sides.source,
            2 => Element::U16,
            4 => Element::U32,
            _ => Element::U64,
        };
        let runs = (run(&images(&from)), run(&images(&to)));
        let vector = (VECTOR as u32 / bytes).ilog2().min(runs.0.len().min(runs.1.len()) as u32);
        // A thread reads whole words.
        if bytes << vector < 4 || from.len() > NUMBER + vector as usize {
            return None;
        }
        // Tiles are as large as possible while each multiprocessor gets at least one.
        let all = u64::from(bytes) << from.len();
        let most = (all / sides.limits.blocks.unsigned_abs().max(1)).clamp(FITTED.least, FITTED.most);
        let mut best: Option<((u64, u64, i64), BitsPlan)> = None;
        for a in vector as usize..=runs.0.len() {
            for b in vector as usize..=runs.1.len() {
                let Some(found) = BitsPlan::new((&from, &to), (&runs.0[..a], &runs.1[..b]), element, vector) else {
                    continue;
                };
                if found.bytes() > most {
                    break;
                }
                let side = |elements: u64| (elements * u64::from(bytes)).min(RELAYOUTS.run.unsigned_abs());
                let size = found.bytes() as i64;
                let rate = (side(found.runs.0) * side(found.runs.1), found.bytes().min(FITTED.enough), -size);
                if best.as_ref().is_none_or(|best| rate > best.0) {
                    best = Some((rate, found));
                }
            }
        }
        best.map(|best| best.1)
    }

    /// The tile of these runs; None if it is too large.
    fn new((from, to): (&[u64], &[u64]), (a, b): (&[u64], &[u64]), element: Element, vector: u32) -> Option<BitsPlan> {
        let (read, written) = (basis(from, a, b), basis(to, b, a));
        let (size, bytes) = (read.len(), element.bytes());
        if u64::from(bytes) << size > FITTED.most || size != written.len() {
            return None;
        }
        let places = |columns: &[u64], list: &[u64]| list.iter().map(|index| chosen(columns, *index)).collect();
        // Blocks iterate over a complement of the tile, in the order of the destination.
        let of_tile = |index: u64| BitVector { value: chosen(to, index), source: index };
        let mut all = BitSpace::default();
        written.iter().for_each(|index| {
            all.insert(of_tile(*index));
        });
        let tile = all.clone();
        let mut outer = BitSpace::default();
        for bit in 0..from.len() {
            let rest = tile.rest(of_tile(1 << bit));
            if rest.value != 0 && all.insert(rest).value != 0 {
                outer.insert(rest);
            }
        }
        let blocks: Vec<u64> = outer.basis().iter().map(|vector| tile.rest(*vector).source).collect();
        // Each side begins with the bits of its own vector.
        let (low_a, low_b) = ((1 << a.len()) - 1, (1 << b.len()) - 1);
        let begin_a = blocks.iter().map(|index| index ^ chosen(a, chosen(from, *index) & low_a));
        let begin_b = blocks.iter().map(|index| index ^ chosen(b, chosen(to, *index) & low_b));
        let (begin_a, begin_b): (Vec<u64>, Vec<u64>) = (begin_a.collect(), begin_b.collect());

        // The offsets of the tile in the order in which elements are read.
        let order = images(&read);
        let numbers: Option<Vec<u64>> = written.iter().map(|index| order.solve(*index)).collect();
        let numbers = numbers?;
        // The bits of the elements of a word, and of the lanes that store and load it.
        let word = (4 / bytes.min(4)).ilog2() as usize;
        let (lanes, vector_bits) = (if bytes == 8 { 4 } else { 5 }, vector as usize);
        if size < vector_bits + WARP as usize || size < word + lanes {
            return None;
        }
        let storing: Vec<u64> = (0..lanes).map(|lane| 1 << (vector_bits - word + lane)).collect();
        let mut loading = BitSpace::default();
        let mut banks = Vec::new();
        let loaded = numbers[vector_bits..vector_bits + lanes].iter().map(|number| number >> word);
        // Lanes that read the same word share it, so other images can replace theirs.
        for image in loaded.chain((0..size - word).rev().map(|bit| 1 << bit)) {
            if banks.len() < lanes && loading.insert(image).value != 0 {
                banks.push(image);
            }
        }
        let rows = complement(size - word, &storing, &banks);
        let inside = (0..word).map(|bit| 1_u64 << bit);
        let order = inside.chain(storing.iter().chain(&rows).map(|number| number << word));
        let order = BitSpace::of(order);
        let placed = |number: u64| order.solve(number);
        let stored: Option<Vec<u64>> = (0..size).map(|bit| placed(1 << bit)).collect();
        let loaded: Option<Vec<u64>> = numbers.iter().map(|number| placed(*number)).collect();
        let in_tile = images(&read);
        let apart = begin_a.iter().zip(&begin_b).map(|(a, b)| placed(in_tile.solve(a ^ b)?));
        let apart: Option<Vec<u64>> = apart.collect();

        let threads = (size as u32 - vector).saturating_sub(FITTED.thread_vectors).clamp(WARP, MOVE_THREADS.ilog2());
        let (read, written): (Vec<u64>, Vec<u64>) = (places(from, &read), places(to, &written));
        let runs = (side_by_side(&read), side_by_side(&written));
        Some(BitsPlan {
            element,
            vector,
            threads,
            stored: stored?,
            loaded: loaded?,
            source_blocks: places(from, &begin_a),
            target_blocks: places(to, &begin_b),
            apart: apart?,
            blocks,
            read,
            written,
            runs,
        })
    }

    /// Bytes of the tile.
    fn bytes(&self) -> u64 {
        u64::from(self.element.bytes()) << self.read.len()
    }

    /// The plan, as text.
    pub(in super::super) fn describe(&self) -> String {
        format!(
            "tiles over bits of {} words of {} bytes through shared memory: runs of {} in the source, of {} in the destination",
            1_u64 << self.read.len(),
            self.element.bytes(),
            self.runs.0,
            self.runs.1
        )
    }
}
