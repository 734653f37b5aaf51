//! The names of a linear layout, each with its number of bits.
//!
//! Law: in the concatenated index, the bits of the first name are the lowest, followed by those of
//! the next one.

use alloc::vec::Vec;

use super::{Named, OP};
use crate::bits::matrix::{BitMatrix, Columns, low_bits};
use crate::limits::MAX_BITS;
use crate::refusal::error::LayoutError;

/// The most bits of one input or output, so that its size is representable.
const MAX_NAME_BITS: usize = 62;

/// Refuses invalid or repeated names, and too many bits; returns the total number of bits.
pub(super) fn check(names: &[Named]) -> Result<usize, LayoutError> {
    if names.len() > MAX_BITS {
        // Names without bits count, too.
        let value = i64::try_from(names.len()).unwrap_or(i64::MAX);
        return Err(LayoutError::Argument { op: OP, what: "the number of names", value, wanted: "at most 64" });
    }
    let mut total = 0_usize;
    for (position, (name, bits)) in names.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = !name.is_empty() && name.chars().all(plain);
        if !named || names.iter().take(position).any(|(before, _)| before == name) {
            return Err(LayoutError::NoName { op: OP, name: name.clone(), what: "is no name, or comes twice" });
        }
        let value = i64::try_from(*bits).unwrap_or(i64::MAX);
        if *bits > MAX_NAME_BITS {
            return Err(LayoutError::Argument {
                op: OP,
                what: "the number of bits of a name",
                value,
                wanted: "at most 62",
            });
        }
        total += bits;
        if total > MAX_BITS {
            let value = total as i64;
            return Err(LayoutError::Argument {
                op: OP,
                what: "the number of bits",
                value,
                wanted: "at most 64 in all",
            });
        }
    }
    Ok(total)
}

/// The first bit of a name in the concatenated index, and its number of bits.
pub(super) fn field(names: &[Named], name: &str) -> Option<(usize, usize)> {
    let mut first = 0;
    for (here, bits) in names {
        if here.as_ref() == name {
            return Some((first, *bits));
        }
        first += bits;
    }
    None
}

/// Concatenates the indices, one for each name.
pub(super) fn join(names: &[Named], indices: &[u64]) -> Result<u64, LayoutError> {
    if names.len() != indices.len() {
        let (expected, found) = (names.len(), indices.len());
        return Err(LayoutError::Rank { op: OP, path: Default::default(), expected, found });
    }
    let (mut whole, mut first) = (0, 0_u32);
    for ((_, bits), index) in names.iter().zip(indices) {
        if index & !low_bits(*bits) != 0 {
            let value = i64::try_from(*index).unwrap_or(i64::MAX);
            return Err(LayoutError::Argument {
                op: OP,
                what: "an index",
                value,
                wanted: "below the size of its name",
            });
        }
        whole |= index.checked_shl(first).unwrap_or(0);
        first += *bits as u32;
    }
    Ok(whole)
}

/// Splits a concatenated index into one index for each name.
pub(super) fn part(names: &[Named], whole: u64) -> Vec<u64> {
    let mut rest = whole;
    let split = names.iter().map(|(_, bits)| {
        let index = rest & low_bits(*bits);
        // Each name has at most 62 bits.
        rest >>= bits;
        index
    });
    split.collect()
}

/// The matrix that reorders the concatenated index of the names `from` into that of the names `to`.
pub(super) fn reorder(op: &'static str, from: &[Named], to: &[Named]) -> Result<BitMatrix, LayoutError> {
    for (name, _) in to {
        if field(from, name).is_none() {
            return Err(LayoutError::NoName { op, name: name.clone(), what: "is on one side only" });
        }
    }
    let mut columns = Columns::new();
    for (name, bits) in from {
        let Some((first, found)) = field(to, name) else {
            return Err(LayoutError::NoName { op, name: name.clone(), what: "is on one side only" });
        };
        if found != *bits {
            // Each number is at most 62.
            return Err(LayoutError::Size { op, left: *bits as i64, right: found as i64 });
        }
        columns.extend((first..first + bits).map(|bit| 1_u64.checked_shl(bit as u32).unwrap_or(0)));
    }
    BitMatrix::new(columns.len(), columns)
}

/// The names of both lists; the bits of names in both are added.
pub(super) fn both(first: &[Named], second: &[Named]) -> Vec<Named> {
    let mut names = first.to_vec();
    for (name, bits) in second {
        match names.iter_mut().find(|(here, _)| here == name) {
            Some((_, sum)) => *sum += bits,
            None => names.push((name.clone(), *bits)),
        }
    }
    names
}
