//! One value for each thread of a warp.

use crate::program::WARP_LANES;
use crate::program::operation::Number;

/// The bits of one register in each lane, lowest first; a predicate is 0 or 1.
pub(crate) type Lanes = [u64; WARP_LANES];

/// The lanes of a mask, lowest first.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// A mask of this many lowest bits.
pub(crate) fn low(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The signed integer in the lowest bits.
pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// Whether an integer has a sign.
pub(crate) fn has_sign(number: Number) -> bool {
    matches!(number, Number::I16 | Number::I32 | Number::I64)
}

pub(crate) fn one(a: &Lanes, out: &mut Lanes, f: impl Fn(u64) -> u64) {
    for (out, a) in out.iter_mut().zip(a) {
        *out = f(*a);
    }
}

pub(crate) fn two(a: &Lanes, b: &Lanes, out: &mut Lanes, f: impl Fn(u64, u64) -> u64) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = f(*a, *b);
    }
}

pub(crate) fn three(a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes, f: impl Fn(u64, u64, u64) -> u64) {
    for lane in 0..WARP_LANES {
        out[lane] = f(a[lane], b[lane], c[lane]);
    }
}
