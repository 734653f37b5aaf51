//! Bitwise instructions.
//!
//! Law: each computes what the PTX ISA's pseudo-code does; bits beyond the register do not exist.
//! For 32-bit operands, positions and lengths of fields are the lowest 8 bits of their operands.
//! For 64-bit operands, where the ISA allows at most 255, they are all bits, as in the code that
//! the assembler emits for Hopper.

/// The treatment of amounts that are too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Amounts above 32 become 32.
    Clamp,
    /// Amounts are taken modulo 32.
    Wrap,
}

impl Amount {
    #[inline(always)]
    fn of(self, amount: u32) -> u32 {
        match self {
            Amount::Clamp => amount.min(32),
            Amount::Wrap => amount & 31,
        }
    }
}

/// The modes of `prmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermuteMode {
    /// Four selectors of four bits each.
    Generic,
    /// `f4e`: four bytes upward from the selected one.
    Forward,
    /// `b4e`: four bytes downward from the selected one.
    Backward,
    /// `rc8`: one byte four times.
    ReplicateByte,
    /// `ecl`: clamped at the selected byte from the left.
    EdgeClampLeft,
    /// `ecr`: clamped at the selected byte from the right.
    EdgeClampRight,
    /// `rc16`: one half twice.
    ReplicateHalf,
}

/// `popc`.
#[inline(always)]
pub fn popc(a: u64) -> u32 {
    a.count_ones()
}

/// `clz.b32`.
#[inline(always)]
pub fn clz32(a: u32) -> u32 {
    a.leading_zeros()
}

/// `clz.b64`.
#[inline(always)]
pub fn clz64(a: u64) -> u32 {
    a.leading_zeros()
}

/// `bfind` of the lowest `width` bits (32 or 64): the position of the highest 1, or in a signed
/// number of the highest bit that differs from the sign; all ones if there is none. With
/// `.shiftamt`, the amount by which to shift left so that this bit becomes the highest.
#[inline(always)]
pub fn bfind(a: u64, width: u32, signed: bool, shift_amount: bool) -> u32 {
    let a = a << (64 - width);
    // The bits below are 0, or equal to the sign.
    let fill = if width == 64 { 0 } else { u64::MAX >> width };
    let a = if signed && a >> 63 == 1 { !(a | fill) } else { a };
    if a == 0 {
        return u32::MAX;
    }
    let shift = a.leading_zeros();
    if shift_amount { shift } else { width - 1 - shift }
}

/// `brev.b32`.
#[inline(always)]
pub fn brev32(a: u32) -> u32 {
    a.reverse_bits()
}

/// `brev.b64`.
#[inline(always)]
pub fn brev64(a: u64) -> u64 {
    a.reverse_bits()
}

/// A mask of this many lowest bits.
#[inline(always)]
fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The position and the length of a field, from the bits that the instruction reads.
#[inline(always)]
fn place_of(position: u32, length: u32, width: u32) -> (u32, u32) {
    if width == 32 { (position & 0xff, length & 0xff) } else { (position, length) }
}

/// `bfe` of the lowest `width` bits (32 or 64): the field at `position`. A signed field is extended
/// by its highest bit that exists, or by the highest bit of `a`.
#[inline(always)]
pub fn bfe(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (position, length) = place_of(position, length, width);
    let a = a & ones(width);
    let field = if position < width { (a >> position) & ones(length) } else { 0 };
    if !signed || length == 0 {
        return field;
    }
    let sign = (a >> position.saturating_add(length - 1).min(width - 1)) & 1;
    // The bits outside of the field: beyond its length, or beyond the register.
    let there = length.min(width.saturating_sub(position));
    if sign == 1 { (field | !ones(there)) & ones(width) } else { field }
}

/// `bfi` into the lowest `width` bits (32 or 64) of `b`: inserts the lowest bits of `a` at
/// `position`.
#[inline(always)]
pub fn bfi(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let (position, length) = place_of(position, length, width);
    let field = if position < width { (ones(length) << position) & ones(width) } else { 0 };
    let moved = if position < width { a << position } else { 0 };
    ((b & !field) | (moved & field)) & ones(width)
}

/// `szext`: `a` as a number of `bits` bits, extended to 32 bits; 0 if `bits` is 0.
#[inline(always)]
pub fn szext(a: u32, bits: u32, mode: Amount, signed: bool) -> u32 {
    let bits = mode.of(bits);
    if bits == 0 {
        return 0;
    }
    let up = a << (32 - bits);
    if signed { ((up as i32) >> (32 - bits)) as u32 } else { up >> (32 - bits) }
}

/// `bmsk`: `length` ones from bit `position` on.
#[inline(always)]
pub fn bmsk(position: u32, length: u32, mode: Amount) -> u32 {
    let (from, count) = match mode {
        Amount::Clamp => (position.min(32), length.min(32)),
        Amount::Wrap => (position & 31, length & 31),
    };
    ((ones(count) << from) & 0xffff_ffff) as u32
}

/// `fns`: the position of the `offset`-th 1, counted from bit `base` upward or downward; all ones
/// if there is none.
#[inline]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let mut left = offset.unsigned_abs();
    let mut found = |at: &u32| {
        left -= mask >> at & 1;
        left == 0
    };
    let at = if offset > 0 { (base..32).find(&mut found) } else { (0..=base).rev().find(&mut found) };
    at.unwrap_or(u32::MAX)
}

/// `prmt`: selects four of the eight bytes of `a` (the lower ones) and `b`.
#[inline(always)]
pub fn prmt(a: u32, b: u32, selectors: u32, mode: PermuteMode) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let pick = |from: u32| (bytes >> (8 * (from & 7))) as u8;
    let first = selectors & 3;
    let mut result = 0;
    for at in 0..4 {
        let byte = match mode {
            PermuteMode::Generic => {
                let selector = selectors >> (4 * at) & 15;
                let byte = pick(selector);
                if selector & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
            }
            PermuteMode::Forward => pick(first + at),
            PermuteMode::Backward => pick(first.wrapping_sub(at)),
            PermuteMode::ReplicateByte => pick(first),
            PermuteMode::EdgeClampLeft => pick(first.max(at)),
            PermuteMode::EdgeClampRight => pick(first.min(at)),
            PermuteMode::ReplicateHalf => pick((first & 1) * 2 + at % 2),
        };
        result |= u32::from(byte) << (8 * at);
    }
    result
}

/// `lop3`: a function of three operands, bit by bit. Bit `4a + 2b + c` of `table` is the result for
/// bits `a`, `b` and `c`.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut result = 0;
    for row in 0..8_u32 {
        if table >> row & 1 == 1 {
            let a = if row & 4 == 0 { !a } else { a };
            let b = if row & 2 == 0 { !b } else { b };
            let c = if row & 1 == 0 { !c } else { c };
            result |= a & b & c;
        }
    }
    result
}

/// `shf.l`: the upper half of 64 bits, `b` above `a`, shifted left.
#[inline(always)]
pub fn shf_left(a: u32, b: u32, amount: u32, mode: Amount) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) << mode.of(amount) >> 32) as u32
}

/// `shf.r`: the lower half of 64 bits, `b` above `a`, shifted right.
#[inline(always)]
pub fn shf_right(a: u32, b: u32, amount: u32, mode: Amount) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> mode.of(amount)) as u32
}

/// `cnot`: 1 if the operand is 0, otherwise 0.
#[inline(always)]
pub fn cnot(a: u64) -> u64 {
    u64::from(a == 0)
}
