//! Instructions on bits against the pseudo-code of the PTX ISA, bit by bit.

use tilewright_sanitize::isa::bits::{self, Amount, PermuteMode};
use tilewright_sanitize::isa::compare::{Comparison, slct_f32, slct_s32};

use super::random::Random;

/// Bits of a number, the lowest first.
fn list(value: u64, width: u32) -> Vec<bool> {
    (0..width).map(|at| value >> at & 1 == 1).collect()
}

fn number(list: &[bool]) -> u64 {
    list.iter().enumerate().map(|(at, bit)| u64::from(*bit) << at).sum()
}

#[test]
fn fields_are_extracted_and_inserted_bit_by_bit() {
    let mut random = Random::new(1);
    for round in 0..40_000 {
        let width = if round % 2 == 0 { 32 } else { 64 };
        let [a, b] = [0; 2].map(|_| random.integer(width));
        let [position, length] = [0; 2].map(|_| random.below(if random_is_large(round) { 512 } else { 70 }) as u32);
        let mask = if width == 32 { 0xff } else { u32::MAX };
        let (from, count, msb) = ((position & mask) as usize, (length & mask) as usize, width as usize - 1);
        let bits_of_a = list(a, width);
        for signed in [false, true] {
            let sign = signed && count > 0 && bits_of_a[(from + count - 1).min(msb)];
            let wanted: Vec<bool> =
                (0..=msb).map(|at| if at < count && from + at <= msb { bits_of_a[from + at] } else { sign }).collect();
            assert_eq!(bits::bfe(a, position, length, width, signed), number(&wanted), "{a:x} {position} {length}");
        }
        let mut wanted = list(b, width);
        for at in 0..count.min(64) {
            if from + at <= msb {
                wanted[from + at] = bits_of_a[at];
            }
        }
        assert_eq!(bits::bfi(a, b, position, length, width), number(&wanted));
        let find = |list: &[bool]| list.iter().rposition(|bit| *bit);
        let differing: Vec<bool> = bits_of_a.iter().map(|bit| *bit != bits_of_a[msb]).collect();
        for (signed, found) in [(false, find(&bits_of_a)), (true, find(&differing))] {
            let at = found.map_or(u32::MAX, |at| at as u32);
            assert_eq!(bits::bfind(a, width, signed, false), at, "{a:x} {width} {signed}");
            let shift = if at == u32::MAX { at } else { width - 1 - at };
            assert_eq!(bits::bfind(a, width, signed, true), shift);
        }
        assert_eq!(bits::popc(a), bits_of_a.iter().filter(|bit| **bit).count() as u32);
        let reversed: Vec<bool> = bits_of_a.iter().rev().copied().collect();
        let zeros = reversed.iter().take_while(|bit| !**bit).count() as u32;
        if width == 32 {
            assert_eq!(u64::from(bits::brev32(a as u32)), number(&reversed));
            assert_eq!(bits::clz32(a as u32), zeros);
        } else {
            assert_eq!(bits::brev64(a), number(&reversed));
            assert_eq!(bits::clz64(a), zeros);
        }
        assert_eq!(bits::cnot(a), u64::from(a == 0));
    }
}

fn random_is_large(round: u32) -> bool {
    round.is_multiple_of(5)
}

#[test]
fn masks_and_extensions_follow_the_pseudo_code() {
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let value = random.integer(32) as u32;
        let [a, b] = [0; 2].map(|_| if random.below(9) == 0 { random.bits() as u32 } else { random.below(70) as u32 });
        for mode in [Amount::Clamp, Amount::Wrap] {
            let clamps = mode == Amount::Clamp;
            let (a1, b1) = (a & 0x1f, b & 0x1f);
            let mut mask0 = u32::MAX << a1;
            let sum = a1 + b1;
            let mut mask1 = if sum >= 32 { 0 } else { u32::MAX << sum };
            if clamps && a >= 32 {
                mask0 = 0;
            }
            if clamps && (a >= 32 || b >= 32) {
                mask1 = 0;
            }
            assert_eq!(bits::bmsk(a, b, mode), mask0 & !mask1, "{a} {b} {mode:?}");
            let count = if clamps { b.min(32) } else { b % 32 };
            for signed in [false, true] {
                let wanted: Vec<bool> = (0..32)
                    .map(|at| match count {
                        0 => false,
                        _ if at < count => value >> at & 1 == 1,
                        _ => signed && value >> (count - 1) & 1 == 1,
                    })
                    .collect();
                assert_eq!(u64::from(bits::szext(value, b, mode, signed)), number(&wanted));
            }
            let other = random.bits() as u32;
            let amount = if clamps { b.min(32) } else { b % 32 };
            let both = [list(value.into(), 32), list(other.into(), 32)].concat();
            let left: Vec<bool> = (0..32)
                .map(|at| both.get((32 + at as usize).wrapping_sub(amount as usize)).copied().unwrap())
                .collect();
            assert_eq!(u64::from(bits::shf_left(value, other, b, mode)), number(&left));
            let right = &both[amount as usize..][..32];
            assert_eq!(u64::from(bits::shf_right(value, other, b, mode)), number(right));
        }
        let (base, offset) = (random.below(32) as i64, random.below(12) as i32 - 5);
        let mut wanted = u32::MAX;
        if offset == 0 {
            if value >> base & 1 == 1 {
                wanted = base as u32;
            }
        } else {
            let (mut at, mut count) = (base, offset.abs() - 1);
            while (0..32).contains(&at) {
                if value >> at & 1 == 1 {
                    if count == 0 {
                        wanted = at as u32;
                        break;
                    }
                    count -= 1;
                }
                at += i64::from(offset.signum());
            }
        }
        assert_eq!(bits::fns(value, base as u32, offset), wanted, "{value:x} {base} {offset}");
    }
}

#[test]
fn bytes_are_permuted_as_the_tables_say() {
    // The PTX ISA's table of the special modes: the bytes of the result from the highest down.
    let tables = [
        (PermuteMode::Forward, [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]),
        (PermuteMode::Backward, [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]]),
        (PermuteMode::ReplicateByte, [[0; 4], [1; 4], [2; 4], [3; 4]]),
        (PermuteMode::EdgeClampLeft, [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]]),
        (PermuteMode::EdgeClampRight, [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
        (PermuteMode::ReplicateHalf, [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]]),
    ];
    let (a, b) = (0x8312_f110_u32, 0x97e6_2534_u32);
    let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
    for (mode, rows) in tables {
        for (selector, row) in rows.iter().enumerate() {
            let wanted = u32::from_be_bytes(row.map(|from| bytes[from]));
            assert_eq!(bits::prmt(a, b, selector as u32, mode), wanted, "{mode:?} {selector}");
        }
    }
    for selectors in 0..0x1_0000_u32 {
        let wanted = [0, 1, 2, 3].map(|at| {
            let selector = (selectors >> (4 * at) & 15) as usize;
            let byte = bytes[selector % 8];
            if selector < 8 { byte } else { 0xff * (byte >> 7) }
        });
        assert_eq!(bits::prmt(a, b, selectors, PermuteMode::Generic), u32::from_le_bytes(wanted));
    }
}

#[test]
fn tables_of_three_operands_are_looked_up() {
    let mut random = Random::new(3);
    for table in 0..=255_u8 {
        let [a, b, c] = [0; 3].map(|_| random.bits() as u32);
        let wanted: Vec<bool> =
            (0..32).map(|at| table >> (4 * (a >> at & 1) + 2 * (b >> at & 1) + (c >> at & 1)) & 1 == 1).collect();
        assert_eq!(u64::from(bits::lop3(a, b, c, table)), number(&wanted));
    }
    // The constants by which tables are made in the PTX ISA.
    let (a, b, c) = (random.bits() as u32, random.bits() as u32, random.bits() as u32);
    assert_eq!(bits::lop3(a, b, c, 0xf0 & 0xcc & 0xaa), a & b & c);
    assert_eq!(bits::lop3(a, b, c, 0xf0 ^ 0xcc ^ 0xaa), a ^ b ^ c);
}

#[test]
fn comparisons_are_those_of_numbers_and_of_nan() {
    use Comparison::{Eq, Equ, Ge, Geu, Gt, Gtu, Le, Leu, Lt, Ltu, Nan, Ne, Neu, Num};
    use std::cmp::Ordering::{Equal, Greater, Less};
    let holds = |comparison: Comparison, order: Option<std::cmp::Ordering>| match order {
        None => matches!(comparison, Equ | Neu | Ltu | Leu | Gtu | Geu | Nan),
        Some(Less) => matches!(comparison, Ne | Lt | Le | Neu | Ltu | Leu | Num),
        Some(Equal) => matches!(comparison, Eq | Le | Ge | Equ | Leu | Geu | Num),
        Some(Greater) => matches!(comparison, Ne | Gt | Ge | Neu | Gtu | Geu | Num),
    };
    let all = [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan];
    let mut random = Random::new(4);
    for _ in 0..5_000 {
        let (a, b) = (random.f32(), random.f32());
        let (c, d) = (random.f64(), random.f64());
        let flushed = |bits: u32| {
            let value = f32::from_bits(bits);
            if value.is_subnormal() { 0.0 } else { value }
        };
        for comparison in all {
            let order = f32::from_bits(a).partial_cmp(&f32::from_bits(b));
            assert_eq!(comparison.f32(a, b, false), holds(comparison, order), "{comparison:?} {a:x} {b:x}");
            assert_eq!(comparison.f32(a, b, true), holds(comparison, flushed(a).partial_cmp(&flushed(b))));
            let order = f64::from_bits(c).partial_cmp(&f64::from_bits(d));
            assert_eq!(comparison.f64(c, d), holds(comparison, order));
            assert_eq!(comparison.integers(a as i32, b as i32), holds(comparison, Some((a as i32).cmp(&(b as i32)))));
            assert_eq!(comparison.integers(c, d), holds(comparison, Some(c.cmp(&d))));
        }
        assert_eq!(slct_s32(1, 2, a as i32), if a >> 31 == 0 { 1 } else { 2 });
        let first = f32::from_bits(a) >= 0.0;
        assert_eq!(slct_f32(1, 2, a, false), if first { 1 } else { 2 });
    }
    assert_eq!(slct_f32(1, 2, 0x8000_0001, true), 1);
    assert_eq!(slct_f32(1, 2, 0x8000_0001, false), 2);
}
