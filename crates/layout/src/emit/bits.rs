//! Linear maps over bits.
//!
//! Law: bit `p + s` of the result is the XOR of bits `p` of the sources whose mask for a shift by
//! `s` has bit `p`. All bits that move by the same distance need one mask and one shift:
//! `(8,8):(^1,^9)` at an index is `i ^ (i >> 3)`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::emit::graph::{Graph, Id, power_of_two};
use crate::symbolic::Rounding;
use crate::{BitMatrix, Swizzle};

/// The mask of the bits that move, for every source and distance.
#[derive(Default)]
pub(crate) struct Moves {
    masks: BTreeMap<(Id, i32), u64>,
}

impl Moves {
    fn add(&mut self, source: Id, distance: i32, mask: u64) {
        *self.masks.entry((source, distance)).or_default() ^= mask;
    }

    /// Adds a layout with XOR steps at an index that is not negative: extent and step of each mode.
    pub(crate) fn layout(&mut self, graph: &mut Graph, index: Id, modes: &[(i64, u64)]) {
        let Some((last, front)) = modes.split_last() else { return };
        // The rest of the index is the source from bit `low` on.
        let (mut source, mut low) = (index, 0);
        for (extent, step) in front {
            match power_of_two(Some(*extent)) {
                Some(width) => {
                    self.steps(source, low, ((1_u64 << width) - 1) << low, *step);
                    low += width;
                }
                None => {
                    let rest = graph.right(source, low);
                    let extent = graph.integer(*extent);
                    let digit = graph.remainder(rest, extent, Rounding::Plain);
                    self.steps(digit, 0, u64::MAX, *step);
                    (source, low) = (graph.quotient(rest, extent, Rounding::Plain), 0);
                }
            }
        }
        self.steps(source, low, u64::MAX << low, last.1);
    }

    /// Adds the carry-less product of the masked bits, counted from `low` on, and a step.
    fn steps(&mut self, source: Id, low: u32, mask: u64, step: u64) {
        for bit in (0..63).filter(|bit| step >> bit & 1 == 1) {
            self.add(source, bit - low as i32, mask);
        }
    }

    /// Adds a swizzle of an offset.
    pub(crate) fn swizzle(&mut self, offset: Id, swizzle: Swizzle) {
        self.add(offset, 0, u64::MAX);
        let shift = swizzle.shift();
        let lowest = if shift >= 0 { swizzle.base() + shift } else { swizzle.base() };
        self.add(offset, -shift as i32, ((1_u64 << swizzle.bits()) - 1) << lowest);
    }

    /// Adds the product of a matrix and a number; a square matrix keeps the bits above.
    pub(crate) fn matrix(&mut self, number: Id, matrix: &BitMatrix) {
        let inputs = matrix.inputs() as u32;
        for (bit, column) in (0..inputs).zip(matrix.columns()) {
            self.steps(number, bit, 1_u64.checked_shl(bit).unwrap_or(0), *column);
        }
        if matrix.inputs() == matrix.outputs() {
            self.add(number, 0, u64::MAX.checked_shl(inputs).unwrap_or(0));
        }
    }

    /// The operation that computes the result.
    pub(crate) fn compute(self, graph: &mut Graph) -> Id {
        let mut moves: Vec<(Id, i32, u64)> = self.masks.into_iter().map(|((id, by), mask)| (id, by, mask)).collect();
        moves.sort_by_key(|(source, by, _)| (graph.first(*source), *source, by.unsigned_abs(), *by < 0));
        let mut result = graph.integer(0);
        for (source, by, mask) in moves {
            let own = possible(graph, source);
            let mask = mask & own;
            if mask == 0 {
                continue;
            }
            let moved = if by >= 0 {
                let kept = masked(graph, source, mask, own);
                graph.left(kept, by.unsigned_abs())
            } else {
                let down = by.unsigned_abs();
                let lowered = graph.right(source, down);
                // The sign bit moves down with the others.
                let own = if own == u64::MAX { own } else { own >> down };
                masked(graph, lowered, mask >> down, own)
            };
            result = graph.xor(result, moved);
        }
        result
    }
}

/// A mask of the bits that may be set in a number.
fn possible(graph: &Graph, id: Id) -> u64 {
    match graph.range(id) {
        range if !range.not_negative() => u64::MAX,
        range => match range.greatest.and_then(|greatest| u64::try_from(greatest).ok()) {
            Some(greatest) => u64::MAX.checked_shr(greatest.leading_zeros()).unwrap_or(0),
            None => u64::MAX >> 1,
        },
    }
}

/// The masked bits of a number whose set bits are within `own`.
fn masked(graph: &mut Graph, id: Id, mask: u64, own: u64) -> Id {
    if mask == own {
        return id;
    }
    // The mask has all but some low bits of an unbounded number: `x & -8`.
    let missing = own & !mask;
    let low = own >= u64::MAX >> 1 && missing & (missing + 1) == 0;
    graph.bits(id, if low { !(missing as i64) } else { mask as i64 })
}
