//! Integers against arithmetic in 128 bits.

use tilewright_sanitize::isa::integer::{self, Integer, add_carry, sub_borrow};

use super::random::Random;

/// Each operation of a type against the integers modulo `2^bits`.
fn arithmetic<T: Integer>(wide: impl Fn(T, T) -> i128) {
    let mut random = Random::new(u64::from(T::BITS) * 2 + u64::from(T::SIGNED));
    let bits = T::BITS;
    let low = |value: i128| value as u64 & (u64::MAX >> (64 - bits));
    let (least, greatest) =
        if T::SIGNED { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1_i128 << bits) - 1) };
    for _ in 0..20_000 {
        let [a, b, c] = [0; 3].map(|_| T::of_bits(random.integer(bits)));
        let [x, y, z] = [a, b, c].map(T::exact);
        assert!((least..=greatest).contains(&x));
        assert_eq!(a.add(b).bits(), low(x + y));
        assert_eq!(a.sub(b).bits(), low(x - y));
        assert_eq!(a.mul(b).bits(), low(x.wrapping_mul(y)));
        // Of unsigned 64 bits the product needs all of 128.
        let high = if T::SIGNED { (x * y) >> bits } else { ((x as u128 * y as u128) >> bits) as i128 };
        assert_eq!(a.mul_hi(b).bits(), low(high), "{a:?} {b:?}");
        assert_eq!(wide(a, b), x.wrapping_mul(y));
        assert_eq!(integer::mad_lo(a, b, c).bits(), low(x.wrapping_mul(y).wrapping_add(z)));
        assert_eq!(integer::mad_hi(a, b, c).bits(), low(high + z));
        assert_eq!(integer::sad(a, b, c).bits(), low(z + (x - y).abs()));
        let all = u64::MAX >> (64 - bits);
        assert_eq!(a.div(b).bits(), if y == 0 { all } else { low(x / y) });
        assert_eq!(a.rem(b).bits(), if y == 0 { all } else { low(x % y) });
        assert_eq!(a.neg().bits(), low(-x));
        assert_eq!(a.abs().bits(), low(x.abs()));
        assert_eq!(a.add_sat(b).exact(), (x + y).clamp(least, greatest));
        assert_eq!(a.sub_sat(b).exact(), (x - y).clamp(least, greatest));
        assert_eq!(integer::relu(a).exact(), x.max(0));
        let amount = random.integer(32) as u32;
        assert_eq!(a.shl(amount).bits(), if amount < bits { low(x << amount) } else { 0 });
        let shifted = if amount < bits { x >> amount } else { -i128::from(x < 0) };
        assert_eq!(a.shr(amount).exact(), shifted);
        let [p, q] = [a, b].map(|number| i128::from(number.bits()));
        let carry = random.below(2);
        let sum = p + q + i128::from(carry);
        let (found, out) = add_carry(a, b, carry == 1);
        assert_eq!((found.bits(), out), (low(sum), sum >> bits == 1));
        let difference = p - q - i128::from(carry);
        let (found, out) = sub_borrow(a, b, carry == 1);
        assert_eq!((found.bits(), out), (low(difference), difference < 0));
    }
}

#[test]
fn integers_are_exact_modulo_their_range() {
    arithmetic::<u16>(|a, b| a.mul_wide(b).into());
    arithmetic::<i16>(|a, b| a.mul_wide(b).into());
    arithmetic::<u32>(|a, b| a.mul_wide(b).into());
    arithmetic::<i32>(|a, b| a.mul_wide(b).into());
    arithmetic::<u64>(|a, b| a.mul_wide(b) as i128);
    arithmetic::<i64>(|a, b| a.mul_wide(b));
}

#[test]
fn products_of_24_bits_and_of_bytes_are_those_of_their_parts() {
    let mut random = Random::new(24);
    let signed = |value: u32, bits: u32| i64::from((value << (32 - bits)) as i32 >> (32 - bits));
    let unsigned = |value: u32, bits: u32| i64::from(value & (u32::MAX >> (32 - bits)));
    for _ in 0..20_000 {
        let [a, b, c] = [0; 3].map(|_| random.integer(32) as u32);
        let products = [unsigned(a, 24) * unsigned(b, 24), signed(a, 24) * signed(b, 24)];
        assert_eq!(integer::mul24_lo(a, b), products[0] as u32);
        assert_eq!(integer::mul24_hi(a, b), (products[0] >> 16) as u32);
        assert_eq!(integer::mul24_lo(a as i32, b as i32), products[1] as i32);
        assert_eq!(integer::mul24_hi(a as i32, b as i32), (products[1] >> 16) as i32);
        assert_eq!(integer::mad24_lo(a, b, c), (products[0] as u32).wrapping_add(c));
        assert_eq!(integer::mad24_hi(a, b, c), ((products[0] >> 16) as u32).wrapping_add(c));
        let sum = i64::from((products[1] >> 16) as i32) + i64::from(c as i32);
        let clamped = sum.clamp(i32::MIN.into(), i32::MAX.into());
        assert_eq!(i64::from(integer::mad24_hi_sat(a as i32, b as i32, c as i32)), clamped);
        let sum = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) + i64::from(c as i32);
        let clamped = sum.clamp(i32::MIN.into(), i32::MAX.into());
        assert_eq!(i64::from(integer::mad_hi_sat(a as i32, b as i32, c as i32)), clamped);
        for case in 0..4 {
            let (first, second) = (case & 1 == 1, case & 2 == 2);
            let part = |value: u32, at: u32, bits: u32, sign: bool| {
                let value = value >> (at * bits);
                if sign { signed(value, bits) } else { unsigned(value, bits) }
            };
            let dot: i64 = (0..4).map(|at| part(a, at, 8, first) * part(b, at, 8, second)).sum();
            assert_eq!(integer::dp4a(a, first, b, second, c), (i64::from(c) + dot) as u32);
            for upper in [false, true] {
                let from = 2 * u32::from(upper);
                let dot: i64 = (0..2).map(|at| part(a, at, 16, first) * part(b, from + at, 8, second)).sum();
                assert_eq!(integer::dp2a(a, first, b, second, upper, c), (i64::from(c) + dot) as u32);
            }
        }
        let halves = |f: &dyn Fn(u16, u16) -> u16| {
            u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
        };
        assert_eq!(integer::pairwise(a, b, u16::add), halves(&u16::wrapping_add));
        assert_eq!(integer::pairwise(a, b, i16::max), halves(&|a, b| (a as i16).max(b as i16) as u16));
        let bound = c >> 28;
        let old = b & 15;
        assert_eq!(integer::increment(old, bound), if old < bound { old + 1 } else { 0 });
        assert_eq!(integer::decrement(old, bound), if old == 0 || old > bound { bound } else { old - 1 });
    }
}
