//! f32 and f64: rounding to nearest against the processor's arithmetic, the other modes against
//! exact comparisons with the neighbours of the result.

use tilewright_sanitize::isa::approximate::{Function, approx32, approx64, div_approx32};
use tilewright_sanitize::isa::float::{self, ExtremeMode, FloatMode, TestProperty};
use tilewright_sanitize::isa::format::{F32, F64, Rounding};

use super::random::Random;

const DIRECTED: [Rounding; 3] = [Rounding::Zero, Rounding::Down, Rounding::Up];

fn mode(rounding: Rounding) -> FloatMode {
    FloatMode { rounding, ..FloatMode::default() }
}

fn same32(found: u32, wanted: f32) -> bool {
    if wanted.is_nan() { found == 0x7fff_ffff } else { found == wanted.to_bits() }
}

fn same64(found: u64, wanted: f64) -> bool {
    if wanted.is_nan() { f64::from_bits(found).is_nan() } else { found == wanted.to_bits() }
}

#[test]
fn rounding_to_nearest_is_the_processors() {
    let mut random = Random::new(10);
    let rn = Rounding::Nearest;
    for _ in 0..60_000 {
        let [a, b, c] = [0; 3].map(|_| random.f32());
        let [x, y, z] = [a, b, c].map(f32::from_bits);
        assert!(same32(float::add32(a, b, mode(rn)), x + y));
        assert!(same32(float::sub32(a, b, mode(rn)), x - y));
        assert!(same32(float::mul32(a, b, mode(rn)), x * y));
        assert!(same32(float::fma32(a, b, c, mode(rn)), x.mul_add(y, z)), "{a:x} {b:x} {c:x}");
        assert!(same32(float::div32(a, b, mode(rn)), x / y));
        assert!(same32(float::rcp32(a, mode(rn)), 1.0 / x));
        assert!(same32(float::sqrt32(a, mode(rn)), x.sqrt()));
        // The exact way, that of the other modes.
        let [a, b, c] = [a, b, c].map(u64::from);
        assert!(same32(F32.add(a, b, rn) as u32, x + y), "{a:x} {b:x}");
        assert!(same32(F32.mul(a, b, rn) as u32, x * y));
        assert!(same32(F32.fma(a, b, c, rn) as u32, x.mul_add(y, z)));
        assert!(same32(F32.div(a, b, rn) as u32, x / y), "{a:x} {b:x}");
        assert!(same32(F32.sqrt(a, rn) as u32, x.sqrt()));
        let [a, b, c] = [0; 3].map(|_| random.f64());
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        for exact in [false, true] {
            let [sum, product, fused, quotient, root] = if exact {
                [F64.add(a, b, rn), F64.mul(a, b, rn), F64.fma(a, b, c, rn), F64.div(a, b, rn), F64.sqrt(a, rn)]
            } else {
                [
                    float::add64(a, b, rn),
                    float::mul64(a, b, rn),
                    float::fma64(a, b, c, rn),
                    float::div64(a, b, rn),
                    float::sqrt64(a, rn),
                ]
            };
            assert!(same64(sum, x + y), "{a:x} {b:x}");
            assert!(same64(product, x * y));
            assert!(same64(fused, x.mul_add(y, z)), "{a:x} {b:x} {c:x}: {fused:x}");
            assert!(same64(quotient, x / y));
            assert!(same64(root, x.sqrt()));
        }
        assert!(same64(float::sub64(a, b, rn), x - y));
        assert!(same64(float::rcp64(a, rn), 1.0 / x));
    }
}

#[test]
fn directed_rounding_gives_the_neighbour_on_the_right_side() {
    let mut random = Random::new(11);
    let near = |random: &mut Random| {
        let exponent = 100 + random.below(28) as u32;
        (random.below(2) as u32) << 31 | exponent << 23 | random.bits() as u32 & 0x7f_ffff
    };
    for _ in 0..40_000 {
        let (a, b) = (near(&mut random), near(&mut random));
        let [x, y] = [a, b].map(|bits| f64::from(f32::from_bits(bits)));
        // Sums and products of these are exact in f64.
        for (sum, name) in [(true, "sum"), (false, "product")] {
            let exact = if sum { x + y } else { x * y };
            for rounding in DIRECTED {
                let bits = if sum { float::add32(a, b, mode(rounding)) } else { float::mul32(a, b, mode(rounding)) };
                assert_eq!(bits, directed(exact, rounding).to_bits(), "{name} of {x:e} and {y:e}, {rounding:?}");
                let fused = float::fma32(a, b, a, mode(rounding));
                let product = F32.fma(a.into(), b.into(), a.into(), rounding) as u32;
                assert_eq!(fused, product);
            }
        }
        for rounding in DIRECTED {
            // q * b and q * q are exact in f64.
            let quotient = f64::from(f32::from_bits(float::div32(a, b, mode(rounding))));
            bounds(rounding, quotient, (x < 0.0) != (y < 0.0), |q| {
                (if y > 0.0 { q * y } else { -q * y }).total_cmp(&if y > 0.0 { x } else { -x })
            });
            let root = f64::from(f32::from_bits(float::sqrt32(a & 0x7fff_ffff, mode(rounding))));
            bounds(rounding, root, false, |q| (q * q).total_cmp(&x.abs()));
        }
    }
}

/// The result is on its side of the exact value, and its neighbour on the other; `compare` says
/// where a number lies beside the exact value.
fn bounds(rounding: Rounding, result: f64, negative: bool, compare: impl Fn(f64) -> std::cmp::Ordering) {
    let down = match rounding {
        Rounding::Down => true,
        Rounding::Up => false,
        _ => !negative,
    };
    if down {
        assert!(compare(result).is_le(), "{result:e} {rounding:?}");
        assert!(compare(f64::from((result as f32).next_up())).is_gt(), "{result:e} {rounding:?}");
    } else {
        assert!(compare(result).is_ge(), "{result:e} {rounding:?}");
        assert!(compare(f64::from((result as f32).next_down())).is_lt(), "{result:e} {rounding:?}");
    }
}

/// An exact f64 as f32: the nearest, or its neighbour on the right side.
fn directed(exact: f64, rounding: Rounding) -> f32 {
    let nearest = exact as f32;
    let (above, below) = (f64::from(nearest) > exact, f64::from(nearest) < exact);
    match rounding {
        Rounding::Down if above => nearest.next_down(),
        Rounding::Up if below => nearest.next_up(),
        Rounding::Zero if above && exact > 0.0 => nearest.next_down(),
        Rounding::Zero if below && exact < 0.0 => nearest.next_up(),
        // A sum that is 0 of numbers that are not is -0 only when rounded down.
        Rounding::Down if exact == 0.0 => -0.0,
        _ => nearest,
    }
}

#[test]
fn directed_rounding_of_f64_is_that_of_integers() {
    let mut random = Random::new(12);
    for _ in 0..40_000 {
        let [a, b, c] =
            [0; 3].map(|_| (random.bits() >> (11 + random.below(50))) as i64 - (random.bits() >> 14) as i64);
        let [x, y, z] = [a, b, c].map(|value| value as f64);
        assert!([a, b, c].iter().all(|value| *value as f64 as i64 == *value));
        let [p, q, r] = [x, y, z].map(f64::to_bits);
        for rounding in DIRECTED {
            let pairs = [
                (float::add64(p, q, rounding), i128::from(a) + i128::from(b)),
                (float::sub64(p, q, rounding), i128::from(a) - i128::from(b)),
                (float::mul64(p, q, rounding), i128::from(a) * i128::from(b)),
                (float::fma64(p, q, r, rounding), i128::from(a) * i128::from(b) + i128::from(c)),
            ];
            for (found, exact) in pairs {
                let found = f64::from_bits(found);
                let down = match rounding {
                    Rounding::Down => true,
                    Rounding::Up => false,
                    _ => exact > 0,
                };
                if down {
                    assert!(found as i128 <= exact && found.next_up() as i128 + i128::from(is_small(found)) > exact);
                } else {
                    assert!(
                        found as i128 >= exact && (found.next_down() as i128) - i128::from(is_small(found)) < exact
                    );
                }
            }
        }
    }
}

/// Whether neighbours are closer than 1, so that an integer cannot tell them apart.
fn is_small(value: f64) -> bool {
    value.abs() < 2_f64.powi(53)
}

#[test]
fn directed_rounding_keeps_its_side_at_the_ends() {
    let (greatest, least) = (0x7f7f_ffff_u32, 1_u32);
    let infinity = 0x7f80_0000_u32;
    let add = |a, b, rounding| float::add32(a, b, mode(rounding));
    assert_eq!(add(greatest, greatest, Rounding::Zero), greatest);
    assert_eq!(add(greatest, greatest, Rounding::Down), greatest);
    assert_eq!(add(greatest, greatest, Rounding::Up), infinity);
    assert_eq!(add(greatest, least, Rounding::Up), infinity);
    assert_eq!(add(greatest, least, Rounding::Zero), greatest);
    assert_eq!(add(greatest, least | 1 << 31, Rounding::Zero), greatest - 1);
    assert_eq!(float::mul32(least, least, mode(Rounding::Up)), least);
    assert_eq!(float::mul32(least, least, mode(Rounding::Down)), 0);
    assert_eq!(float::mul32(least, least | 1 << 31, mode(Rounding::Down)), least | 1 << 31);
    let one = 1_f32.to_bits();
    assert_eq!(add(one, one | 1 << 31, Rounding::Down), 1 << 31);
    assert_eq!(add(one, one | 1 << 31, Rounding::Zero), 0);
    assert_eq!(float::mul64(1, 1, Rounding::Up), 1);
    assert_eq!(float::mul64(1, 1, Rounding::Down), 0);
    let greatest = f64::MAX.to_bits();
    assert_eq!(float::add64(greatest, greatest, Rounding::Zero), greatest);
    assert_eq!(float::add64(greatest, 1, Rounding::Up), f64::INFINITY.to_bits());
}

#[test]
fn flushing_and_saturation_come_after_rounding() {
    let mut random = Random::new(13);
    let flushed = |value: f32| if value.is_subnormal() { value * 0.0 } else { value };
    for _ in 0..40_000 {
        let [a, b] = [0; 2].map(|_| random.f32());
        let [x, y] = [a, b].map(|bits| flushed(f32::from_bits(bits)));
        let ftz = FloatMode { flush: true, ..FloatMode::default() };
        assert!(same32(float::add32(a, b, ftz), flushed(x + y)));
        assert!(same32(float::mul32(a, b, ftz), flushed(x * y)));
        assert!(same32(float::div32(a, b, ftz), flushed(x / y)));
        let sat = FloatMode { saturate: true, ..FloatMode::default() };
        let product = f32::from_bits(a) * f32::from_bits(b);
        let wanted = if product > 0.0 { product.min(1.0) } else { 0.0 };
        assert_eq!(float::mul32(a, b, sat), wanted.to_bits());
    }
}

#[test]
fn minima_and_maxima_order_zeros_and_drop_nan() {
    let mut random = Random::new(14);
    for _ in 0..40_000 {
        let [a, b] = [0; 2].map(|_| random.f32());
        let [x, y] = [a, b].map(f32::from_bits);
        for (max, nan, xorsign) in [false, true].into_iter().flat_map(|max| {
            [false, true].into_iter().flat_map(move |nan| [false, true].map(move |xorsign| (max, nan, xorsign)))
        }) {
            let (p, q) = if xorsign { (x.abs(), y.abs()) } else { (x, y) };
            let chosen = match (x.is_nan(), y.is_nan()) {
                (true, true) => f32::NAN,
                (true, false) | (false, true) if nan => f32::NAN,
                (true, false) => q,
                (false, true) => p,
                _ => {
                    let order = p.total_cmp(&q);
                    if (max && order.is_gt()) || (!max && order.is_lt()) { p } else { q }
                }
            };
            let wanted = if xorsign && !chosen.is_nan() {
                chosen.copysign(if x.is_sign_negative() != y.is_sign_negative() { -1.0 } else { 1.0 })
            } else {
                chosen
            };
            let found = float::extreme32(a, b, ExtremeMode { max, nan, xorsign, flush: false });
            assert!(same32(found, wanted), "{x:e} {y:e} {max} {nan} {xorsign}: {found:x}");
        }
        let [c, d] = [0; 2].map(|_| random.f64());
        let (p, q) = (f64::from_bits(c), f64::from_bits(d));
        for max in [false, true] {
            let order = p.total_cmp(&q);
            let wanted = match (p.is_nan(), q.is_nan()) {
                (true, true) => f64::NAN,
                (true, false) => q,
                (false, true) => p,
                _ if max == order.is_gt() => p,
                _ => q,
            };
            assert!(same64(float::extreme64(c, d, max), wanted));
        }
        assert_eq!(float::copysign32(a, b), f32::from_bits(b).copysign(f32::from_bits(a)).to_bits());
        assert!(same32(float::neg32(a, false), -x));
        assert!(same32(float::abs32(a, false), x.abs()));
        assert_eq!(float::testp32(a, TestProperty::Normal), x.is_normal() || x == 0.0);
        assert_eq!(float::testp32(a, TestProperty::Subnormal), x.is_subnormal());
        assert_eq!(float::testp64(c, TestProperty::Normal), p.is_normal() || p == 0.0);
        assert_eq!(float::testp64(c, TestProperty::Finite), p.is_finite());
        assert_eq!(float::testp32(a, TestProperty::Infinite), x.is_infinite());
        assert_eq!(float::testp32(a, TestProperty::NotANumber), x.is_nan());
        assert_eq!(float::testp32(a, TestProperty::Number), !x.is_nan());
    }
}

#[test]
fn approximations_are_within_their_bounds_and_right_at_the_ends() {
    let f = |function, value: f32| f32::from_bits(approx32(function, value.to_bits(), false));
    assert_eq!(f(Function::Exp2, f32::NEG_INFINITY), 0.0);
    assert_eq!(f(Function::Exp2, -0.0), 1.0);
    assert_eq!(f(Function::Exp2, 10.0), 1024.0);
    assert_eq!(f(Function::Exp2, -149.0), f32::from_bits(1));
    assert_eq!(approx32(Function::Exp2, (-130.0_f32).to_bits(), true), 0);
    assert_eq!(f(Function::Log2, 0.0), f32::NEG_INFINITY);
    assert_eq!(f(Function::Log2, -0.0), f32::NEG_INFINITY);
    assert_eq!(approx32(Function::Log2, (-1.0_f32).to_bits(), false), 0x7fff_ffff);
    assert_eq!(f(Function::Log2, f32::from_bits(1)), -149.0);
    assert_eq!(approx32(Function::Log2, 1, true), f32::NEG_INFINITY.to_bits());
    assert_eq!(f(Function::ReciprocalSquareRoot, -0.0), f32::NEG_INFINITY);
    assert_eq!(f(Function::ReciprocalSquareRoot, f32::INFINITY), 0.0);
    assert_eq!(f(Function::Reciprocal, f32::NEG_INFINITY).to_bits(), 1 << 31);
    assert_eq!(f(Function::SquareRoot, -0.0).to_bits(), 1 << 31);
    assert_eq!(approx32(Function::Sine, f32::INFINITY.to_bits(), false), 0x7fff_ffff);
    assert_eq!(f(Function::Sine, -0.0).to_bits(), 1 << 31);
    assert_eq!(f(Function::Tanh, f32::INFINITY), 1.0);
    let d = |a: f32, b: f32, full| f32::from_bits(div_approx32(a.to_bits(), b.to_bits(), full, false));
    assert_eq!(d(1.0, 2_f32.powi(127), false), 0.0);
    assert_eq!(d(1.0, 2_f32.powi(127), true), 2_f32.powi(-127));
    assert!(d(f32::INFINITY, 2_f32.powi(127), false).is_nan());
    assert_eq!(d(f32::INFINITY, 2_f32.powi(126), false), f32::INFINITY);
    assert_eq!(approx64(Function::Reciprocal, 4_f64.to_bits()), 0.25_f64.to_bits());
    assert_eq!(approx64(Function::Reciprocal, 3_f64.to_bits()) & 0xffff_ffff, 0);
    let mut random = Random::new(15);
    for _ in 0..20_000 {
        let bits = 0x3f00_0000 | random.bits() as u32 & 0x00ff_ffff;
        let x = f64::from(f32::from_bits(bits));
        // Identities, not the functions themselves: each doubles or inverts.
        let e = f64::from(f(Function::Exp2, x as f32));
        assert!((e.log2() - x).abs() < 1e-7);
        let r = f64::from(f(Function::ReciprocalSquareRoot, x as f32));
        assert!((r * r * x - 1.0).abs() < 2e-7);
        let (s, c) = (f64::from(f(Function::Sine, x as f32)), f64::from(f(Function::Cosine, x as f32)));
        assert!((s * s + c * c - 1.0).abs() < 2e-7);
        let t = f64::from(f(Function::Tanh, x as f32));
        let e = f64::from(f(Function::Exp2, (2.0 * x / std::f64::consts::LN_2) as f32));
        assert!((t - (e - 1.0) / (e + 1.0)).abs() < 1e-6);
    }
}

/// What an H200 gave where the ISA is open.
#[test]
fn nan_of_f64_and_large_angles_are_those_of_a_device() {
    let rn = Rounding::Nearest;
    assert_eq!(float::add64(0xfff2_d2d4_d47b_15b7, 0x7ff2_7ce8_72ff_ed89, rn), 0x7ffa_7ce8_72ff_ed89);
    assert_eq!(float::sub64(0x7ffe_2104_9767_1951, 0xfff3_d8f7_df66_ddc7, rn), 0xfffb_d8f7_df66_ddc7);
    assert_eq!(float::mul64(0xfffb_d96e_9169_3321, 0xfffd_a6a4_4e88_0383, rn), 0xfffd_a6a4_4e88_0383);
    let fma = float::fma64(0xfff9_e8ab_2f6d_9235, 0x66fc_6351_c76e_6576, 0x7ffd_3d5d_ad2a_80f5, Rounding::Zero);
    assert_eq!(fma, 0x7ffd_3d5d_ad2a_80f5);
    assert_eq!(float::extreme64(0xfffd_efc2_ddf1_0c7d, 0x7ff6_7c18_2b39_2a6f, false), 0x7ffe_7c18_2b39_2a6f);
    let near = |function, of: u32, device: u32| {
        let found = f32::from_bits(approx32(function, of, false));
        assert!((found - f32::from_bits(device)).abs() < 2_f32.powi(-21), "{found} {device:x}");
    };
    near(Function::Sine, 0x483b_7b51, 0xbf7e_c46c);
    near(Function::Sine, 0x42a5_9903, 0x3f66_237f);
    near(Function::Cosine, 0x48a4_148c, 0x3f13_682a);
    near(Function::Cosine, 0xff3a_b27f, 0x3f80_0000);
}
