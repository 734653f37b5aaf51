//! The sine, the cosine and the error function of f32.
//!
//! Law: apart from one `ex2` in the error function, these are polynomials of multiply-adds that are
//! rounded once, so the interpreter of kernels computes the same bits as a device. The coefficients
//! are minimax fits (Remez), computed for this crate and rounded to f32. Tests measure the error
//! bounds that [`crate::Unary`] states.

use tilewright_kernel::{Build, Element, KernelError, Num};

/// 32 zero bits, followed by the first 192 bits of `2/pi`.
const TWO_OVER_PI: [u32; 7] = [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041];
/// `pi/2` as a sum of three numbers of f32. The product of the first with a quotient below 2^17 is
/// subtracted exactly.
const HALF_PI: [u32; 3] = [0x3fc9_0fdb, 0xb33b_bd2e, 0xa6f7_2ced];
/// The magnitude from which on multiples of `pi/2` are subtracted in integer arithmetic.
const LARGE: f32 = 131_072.0;
/// 1.5 times 2^23: adding and subtracting it rounds a number to a whole one.
const WHOLE: f32 = 12_582_912.0;

/// `(sin(r)/r - 1) / r^2` as a polynomial of `r^2`, for `|r| <= pi/4`; relative error 2^-28 of the
/// sine.
const SINE: [u32; 3] = [0xbe2a_aaa3, 0x3c08_83ae, 0xb94c_a67d];
/// `(cos(r) - 1 + r^2/2) / r^4` as a polynomial of `r^2`, for `|r| <= pi/4`; error 2^-33 of the
/// cosine.
const COSINE: [u32; 3] = [0x3d2a_aaa5, 0xbab6_0643, 0x37cd_0067];
/// `erf(x)/x - 1` as a polynomial of `x^2`, for `|x| <= 1`; relative error 2^-29 of `erf(x)`.
const ERF: [u32; 7] = [0x3e03_75d4, 0xbec0_939f, 0x3de7_167c, 0xbcdb_fc86, 0x3baa_02d7, 0xba51_fb74, 0x38a4_b4fb];
/// `log2(1 - erf(x))` as a polynomial of `x`, for `1 <= x <= 4`; relative error 2^-29 of `erf(x)`.
const TAIL: [u32; 7] = [0xba01_31e3, 0xbfd0_2242, 0xbf6b_afab, 0xbe18_5227, 0x3d01_0bbc, 0xbb8b_5877, 0x398c_f878];

/// A constant of f32 by its bits.
fn bits<'k>(x: Num<'k>, of: u32) -> Num<'k> {
    x.like(f32::from_bits(of).into())
}

/// A polynomial, the constant coefficient first.
fn polynomial<'k>(x: Num<'k>, coefficients: &[u32]) -> Num<'k> {
    let mut from_last = coefficients.iter().rev().map(|own| bits(x, *own));
    let last = from_last.next().unwrap_or_else(|| x.like(0.0));
    from_last.fold(last, |sum, own| sum.multiply_add(x, own))
}

/// The error function: a polynomial up to 1, and `1 - 2^polynomial` beyond; from 4 on it is 1.
pub(super) fn erf<'k>(x: Num<'k>) -> Num<'k> {
    let (magnitude, square) = (x.abs(), x * x);
    let near = polynomial(square, &ERF).multiply_add(x, x);
    let far = x.like(1.0) - polynomial(magnitude.min(x.like(4.0)), &TAIL).exp2();
    let sign = x.recast(Element::I32).bit_and(x.recast(Element::I32).like(f64::from(i32::MIN)));
    let far = far.recast(Element::I32).bit_or(sign).recast(Element::F32);
    magnitude.lt(x.like(1.0)).select(near, far)
}

/// The sine of numbers plus a multiple of `pi/2`: `quarters` is 0 for the sine, and 1 for the
/// cosine.
pub(super) fn sines<'k>(k: &'k Build, numbers: &[Num<'k>], quarters: i32) -> Result<Vec<Num<'k>>, KernelError> {
    let reduced: Vec<[Num<'k>; 2]> = numbers.iter().map(|x| by_parts(*x)).collect();
    let count = numbers.len().to_string();
    let rests = k.register(Element::F32, &count)?;
    rests.set(&reduced.iter().map(|own| own[0]).collect::<Vec<_>>())?;
    let turns = k.register(Element::I32, &count)?;
    turns.set(&reduced.iter().map(|own| own[1]).collect::<Vec<_>>())?;
    // Infinity has no sine. The other path gives NaN for it already.
    let large = |x: Num<'k>| x.like(LARGE.into()).le(x.abs()).and(x.abs().lt(x.like(f64::INFINITY)));
    let Some(any) = numbers.iter().map(|x| large(*x)).reduce(|a, b| a.or(b)) else { return Ok(Vec::new()) };
    k.when(any, || {
        let chosen = numbers.iter().zip(&reduced).map(|(x, own)| {
            let exact = by_integers(k, *x);
            [0, 1].map(|at| large(*x).select(exact[at], own[at]))
        });
        let chosen: Vec<[Num<'k>; 2]> = chosen.collect();
        rests.set(&chosen.iter().map(|own| own[0]).collect::<Vec<_>>())?;
        turns.set(&chosen.iter().map(|own| own[1]).collect::<Vec<_>>())
    })?;
    let of = |((x, rest), turn): ((&Num<'k>, Num<'k>), Num<'k>)| {
        let turn = turn + turn.like(quarters.into());
        let square = rest * rest;
        let sine = (rest * square).multiply_add(polynomial(square, &SINE), rest);
        let half = square.multiply_add(polynomial(square, &COSINE), square.like(-0.5));
        let cosine = square.multiply_add(half, square.like(1.0));
        let is_even = turn.bit_and(turn.like(1.0)).eq(turn.like(0.0));
        let sign = turn.bit_and(turn.like(2.0)).shift_left(turn.like(30.0));
        let value = is_even.select(sine, cosine).recast(Element::I32).bit_xor(sign).recast(Element::F32);
        // The sine of -0 is -0.
        if quarters == 0 { x.eq(x.like(0.0)).select(*x, value) } else { value }
    };
    Ok(numbers.iter().zip(rests.numbers()?).zip(turns.numbers()?).map(of).collect())
}

/// Reduces a number below 2^17 by the nearest multiple of `pi/2`: the remainder, and the lowest two
/// bits of the quotient.
fn by_parts<'k>(x: Num<'k>) -> [Num<'k>; 2] {
    let shifted = x.multiply_add(x.like(std::f64::consts::FRAC_2_PI), x.like(WHOLE.into()));
    let turns = shifted - x.like(WHOLE.into());
    let rest = HALF_PI.iter().fold(x, |rest, part| turns.multiply_add(-bits(x, *part), rest));
    [rest, shifted.recast(Element::I32)]
}

/// The same reduction for numbers from 2^8 on (Payne and Hanek, 1983). `2^E m` with `m` of 24 bits
/// is multiplied by the 64 bits of `2/pi` that decide the quotient modulo 4: 2 bits of quotient,
/// and 62 fraction bits. The bits that are left out change the quotient by less than 2^-38.
fn by_integers<'k>(k: &'k Build, x: Num<'k>) -> [Num<'k>; 2] {
    let own = x.recast(Element::U32);
    let whole = |value: u32| k.number(value);
    let exponent = own.shift_right(whole(23)).bit_and(whole(0xff));
    let mantissa = own.bit_and(whole(0x007f_ffff)).bit_or(whole(0x0080_0000));
    // The position of the first of the 64 bits in the words above: exponent - 127 + 7.
    let first = exponent - whole(120);
    let (mut high, mut low) = (k.number(0_u64), whole(0));
    for (at, words) in TWO_OVER_PI.windows(3).enumerate() {
        let [two, next] = [k.number(u64::from(words[0]) << 32 | u64::from(words[1])), whole(words[2])];
        let is_from = whole(32 * at as u32).le(first);
        (high, low) = if at == 0 { (two, next) } else { (is_from.select(two, high), is_from.select(next, low)) };
    }
    let by = first.bit_and(whole(31));
    let window = high.shift_left(by).bit_or(low.to(Element::U64).shift_right(whole(32) - by));
    let product = mantissa.to(Element::U64) * window;
    // The 62 fraction bits as a signed number, and the nearest whole quotient.
    let behind = product.recast(Element::I64).shift_left(whole(2)).shift_right(whole(2));
    let quotient = (product - behind.recast(Element::U64)).shift_right(whole(62)).to(Element::U32);
    let unit = std::f64::consts::FRAC_PI_2 * 2.0_f64.powi(-62);
    let (rest, quotient) = (behind.to(Element::F32), quotient.recast(Element::I32));
    let rest = rest * rest.like(unit);
    let is_negative = x.lt(x.like(0.0));
    [is_negative.select(-rest, rest), is_negative.select(-quotient, quotient)]
}
