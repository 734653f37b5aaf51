//! The functions that instructions compute, on all lanes of registers, by opcode, type and
//! modifiers.

use super::super::{Decode, types};
use crate::engine::code::{Comparer, Function1, Function2, Function3, Row};
use crate::isa::approximate::{Function, approx16, approx32, approx64, div_approx32, rsqrt64};
use crate::isa::bits::{self, Amount, PermuteMode};
use crate::isa::compare::{self, Comparison};
use crate::isa::convert::{ConvertMode, NumberType, convert};
use crate::isa::float::{self, ExtremeMode, FloatMode};
use crate::isa::format::Rounding;
use crate::isa::half::{Half, HalfMode, pair1, pair2, pair3};
use crate::isa::integer::{self, Integer};
use crate::ptx::Scalar;

pub(super) fn one(f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Function1 {
    Box::new(move |a: &Row, d: &mut Row| {
        for lane in 0..32 {
            d[lane] = f(a[lane]);
        }
    })
}

pub(super) fn two(f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Function2 {
    Box::new(move |a: &Row, b: &Row, d: &mut Row| {
        for lane in 0..32 {
            d[lane] = f(a[lane], b[lane]);
        }
    })
}

pub(in crate::engine::decode) fn three(f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static) -> Function3 {
    Box::new(move |a: &Row, b: &Row, c: &Row, d: &mut Row| {
        for lane in 0..32 {
            d[lane] = f(a[lane], b[lane], c[lane]);
        }
    })
}

pub(super) fn test(f: impl Fn(u64, u64) -> bool + Send + Sync + 'static) -> Comparer {
    Box::new(move |a: &Row, b: &Row| {
        let mut mask = 0;
        for lane in 0..32 {
            mask |= u32::from(f(a[lane], b[lane])) << lane;
        }
        mask
    })
}

/// Expands code for the integer type that a scalar type names.
macro_rules! by_integer {
    ($kind:expr, $type:ident => $body:expr) => {
        match $kind {
            Scalar::U(16) | Scalar::B(16) => {
                type $type = u16;
                $body
            }
            Scalar::S(16) => {
                type $type = i16;
                $body
            }
            Scalar::U(32) | Scalar::B(32) => {
                type $type = u32;
                $body
            }
            Scalar::S(32) => {
                type $type = i32;
                $body
            }
            Scalar::U(64) | Scalar::B(64) => {
                type $type = u64;
                $body
            }
            Scalar::S(64) => {
                type $type = i64;
                $body
            }
            _ => return Err("it is not known for this type".to_string()),
        }
    };
}

/// A function of two integers, for each integer type.
macro_rules! integers2 {
    ($kind:expr, $method:ident) => {
        by_integer!($kind, T => two(|a, b| <T as Integer>::of_bits(a).$method(<T as Integer>::of_bits(b)).bits()))
    };
}

pub(super) fn rounding(modifiers: &[&str]) -> (Rounding, bool) {
    for word in modifiers {
        return match *word {
            "rn" => (Rounding::Nearest, false),
            "rz" => (Rounding::Zero, false),
            "rm" => (Rounding::Down, false),
            "rp" => (Rounding::Up, false),
            "rna" => (Rounding::NearestAway, false),
            "rni" => (Rounding::Nearest, true),
            "rzi" => (Rounding::Zero, true),
            "rmi" => (Rounding::Down, true),
            "rpi" => (Rounding::Up, true),
            _ => continue,
        };
    }
    (Rounding::Nearest, false)
}

pub(super) fn float_mode(modifiers: &[&str]) -> FloatMode {
    FloatMode {
        rounding: rounding(modifiers).0,
        flush: modifiers.contains(&"ftz"),
        saturate: modifiers.contains(&"sat"),
    }
}

pub(super) fn half_mode(modifiers: &[&str]) -> HalfMode {
    HalfMode {
        flush: modifiers.contains(&"ftz"),
        saturate: modifiers.contains(&"sat"),
        relu: modifiers.contains(&"relu"),
        outside: modifiers.contains(&"oob"),
    }
}

/// The 16-bit format of a type, and whether it is a pair.
pub(super) fn half(kind: Scalar) -> Option<(Half, bool)> {
    match kind {
        Scalar::F(16) => Some((Half::F16, false)),
        Scalar::F16x2 => Some((Half::F16, true)),
        Scalar::Bf16 => Some((Half::Bf16, false)),
        Scalar::Bf16x2 => Some((Half::Bf16, true)),
        _ => None,
    }
}

pub(super) fn half1(pair: bool, f: impl Fn(u16) -> u16 + Send + Sync + 'static) -> Function1 {
    match pair {
        true => one(move |a| u64::from(pair1(a as u32, &f))),
        false => one(move |a| u64::from(f(a as u16))),
    }
}

pub(super) fn half2(pair: bool, f: impl Fn(u16, u16) -> u16 + Send + Sync + 'static) -> Function2 {
    match pair {
        true => two(move |a, b| u64::from(pair2(a as u32, b as u32, &f))),
        false => two(move |a, b| u64::from(f(a as u16, b as u16))),
    }
}

pub(super) fn half3(pair: bool, f: impl Fn(u16, u16, u16) -> u16 + Send + Sync + 'static) -> Function3 {
    match pair {
        true => three(move |a, b, c| u64::from(pair3(a as u32, b as u32, c as u32, &f))),
        false => three(move |a, b, c| u64::from(f(a as u16, b as u16, c as u16))),
    }
}

pub(super) fn unknown<T>() -> Decode<T> {
    Err("it is not known for this type".to_string())
}

pub(super) fn number_type(word: &str) -> Option<NumberType> {
    Some(match word {
        "u8" => NumberType::U8,
        "s8" => NumberType::S8,
        "u16" => NumberType::U16,
        "s16" => NumberType::S16,
        "u32" => NumberType::U32,
        "s32" => NumberType::S32,
        "u64" => NumberType::U64,
        "s64" => NumberType::S64,
        "f16" => NumberType::F16,
        "bf16" => NumberType::Bf16,
        "f32" => NumberType::F32,
        "f64" => NumberType::F64,
        _ => return None,
    })
}

pub(super) fn amount(modifiers: &[&str]) -> Amount {
    if modifiers.contains(&"wrap") { Amount::Wrap } else { Amount::Clamp }
}

pub(super) fn compare_halves(comparison: Comparison, half: Half, a: u16, b: u16) -> bool {
    comparison.floats(half.widen(a), half.widen(b))
}

/// Conversions. Frequent ones are written out.
pub(super) fn conversion(from: NumberType, to: NumberType, mode: ConvertMode) -> Function1 {
    use NumberType::{F32, S32, S64, U16, U32, U64};
    let plain = !mode.saturate && !mode.relu;
    match (from, to) {
        (U32, U64) | (U16, U32 | U64) => {
            let mask = if from == U32 { 0xffff_ffff } else { 0xffff };
            one(move |a| a & mask)
        }
        (S32, S64) => one(|a| i64::from(a as i32) as u64),
        (U64 | S64, U32 | S32) if plain => one(|a| a & 0xffff_ffff),
        (S32, F32) if mode.rounding == Rounding::Nearest && plain => {
            one(|a| u64::from((a as u32 as i32 as f32).to_bits()))
        }
        _ => one(move |a| convert(from, to, mode, a)),
    }
}

pub(super) fn packed_integers(opcode: &str, signed: bool, modifiers: &[&str]) -> Decode<Function2> {
    let relu = modifiers.contains(&"relu");
    let of = |f: fn(u32, u32) -> u32| Ok(two(move |a, b| u64::from(f(a as u32, b as u32))));
    match (opcode, signed, relu) {
        ("add", ..) => of(|a, b| integer::pairwise::<u16>(a, b, |a, b| a.add(b))),
        ("sub", ..) => of(|a, b| integer::pairwise::<u16>(a, b, Integer::sub)),
        ("min", false, _) => of(|a, b| integer::pairwise::<u16>(a, b, Ord::min)),
        ("max", false, _) => of(|a, b| integer::pairwise::<u16>(a, b, Ord::max)),
        ("min", true, false) => of(|a, b| integer::pairwise::<i16>(a, b, Ord::min)),
        ("max", true, false) => of(|a, b| integer::pairwise::<i16>(a, b, Ord::max)),
        ("min", true, true) => of(|a, b| integer::pairwise::<i16>(a, b, |a, b| integer::relu(a.min(b)))),
        ("max", true, true) => of(|a, b| integer::pairwise::<i16>(a, b, |a, b| integer::relu(a.max(b)))),
        _ => unknown(),
    }
}

pub(super) fn unary(opcode: &str, kind: Scalar, modifiers: &[&str]) -> Decode<Option<Function1>> {
    let approximate = modifiers.contains(&"approx");
    let mode = float_mode(modifiers);
    let flush = mode.flush;
    let function = match opcode {
        "rcp" => Some(Function::Reciprocal),
        "sqrt" => Some(Function::SquareRoot),
        "rsqrt" => Some(Function::ReciprocalSquareRoot),
        "ex2" => Some(Function::Exp2),
        "lg2" => Some(Function::Log2),
        "sin" => Some(Function::Sine),
        "cos" => Some(Function::Cosine),
        "tanh" => Some(Function::Tanh),
        _ => None,
    };
    if let Some(function) = function {
        return Ok(Some(match (kind, half(kind)) {
            (_, Some((half, pair))) => half1(pair, move |a| approx16(function, half, a, flush)),
            (Scalar::F(32), _) if approximate || !matches!(opcode, "rcp" | "sqrt") => {
                one(move |a| u64::from(approx32(function, a as u32, flush)))
            }
            (Scalar::F(32), _) if opcode == "rcp" => one(move |a| u64::from(float::rcp32(a as u32, mode))),
            (Scalar::F(32), _) => one(move |a| u64::from(float::sqrt32(a as u32, mode))),
            (Scalar::F(64), _) if approximate && flush => one(move |a| approx64(function, a)),
            (Scalar::F(64), _) if opcode == "rsqrt" => one(rsqrt64),
            (Scalar::F(64), _) if opcode == "rcp" => one(move |a| float::rcp64(a, mode.rounding)),
            (Scalar::F(64), _) if opcode == "sqrt" => one(move |a| float::sqrt64(a, mode.rounding)),
            _ => return unknown(),
        }));
    }
    let width = kind.bits();
    Ok(Some(match (opcode, kind) {
        ("neg", Scalar::F(32)) => one(move |a| u64::from(float::neg32(a as u32, flush))),
        ("abs", Scalar::F(32)) => one(move |a| u64::from(float::abs32(a as u32, flush))),
        ("neg", Scalar::F(64)) => one(|a| a ^ 1 << 63),
        ("abs", Scalar::F(64)) => one(|a| a & !(1 << 63)),
        ("neg" | "abs", _) if kind.is_float() => {
            let Some((half, pair)) = half(kind) else { return unknown() };
            match opcode {
                "neg" => half1(pair, move |a| half.neg(a, flush)),
                _ => half1(pair, move |a| half.abs(a, flush)),
            }
        }
        ("neg", _) => by_integer!(kind, T => one(|a| <T as Integer>::of_bits(a).neg().bits())),
        ("abs", _) => by_integer!(kind, T => one(|a| Integer::abs(<T as Integer>::of_bits(a)).bits())),
        ("not", _) => one(|a| !a),
        ("cnot", _) => one(bits::cnot),
        ("popc", _) => one(|a| u64::from(bits::popc(a))),
        ("clz", Scalar::B(64)) => one(|a| u64::from(bits::clz64(a))),
        ("clz", _) => one(|a| u64::from(bits::clz32(a as u32))),
        ("brev", Scalar::B(64)) => one(bits::brev64),
        ("brev", _) => one(|a| u64::from(bits::brev32(a as u32))),
        ("bfind", _) => {
            let (signed, shift) = (kind.is_signed(), modifiers.contains(&"shiftamt"));
            one(move |a| u64::from(bits::bfind(a, width, signed, shift)))
        }
        _ => return Ok(None),
    }))
}

pub(super) fn binary(opcode: &str, kind: Scalar, modifiers: &[&str]) -> Decode<Option<Function2>> {
    if kind.is_float() {
        return float_binary(opcode, kind, modifiers);
    }
    let saturates = modifiers.contains(&"sat");
    let amount = amount(modifiers);
    Ok(Some(match opcode {
        "add" if saturates => integers2!(kind, add_sat),
        "sub" if saturates => integers2!(kind, sub_sat),
        "add" => by_integer!(kind, T => two(|a, b| Integer::add(T::of_bits(a), T::of_bits(b)).bits())),
        "sub" => by_integer!(kind, T => two(|a, b| Integer::sub(T::of_bits(a), T::of_bits(b)).bits())),
        "mul" if modifiers.contains(&"hi") => integers2!(kind, mul_hi),
        "mul" if modifiers.contains(&"wide") => match kind {
            Scalar::U(16) => two(|a, b| (a & 0xffff) * (b & 0xffff)),
            Scalar::S(16) => two(|a, b| u64::from((i32::from(a as i16) * i32::from(b as i16)) as u32)),
            Scalar::U(32) => two(|a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff)),
            Scalar::S(32) => two(|a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64),
            _ => return unknown(),
        },
        "mul" => by_integer!(kind, T => two(|a, b| Integer::mul(T::of_bits(a), T::of_bits(b)).bits())),
        "mul24" if modifiers.contains(&"hi") => {
            by_integer!(kind, T => two(|a, b| integer::mul24_hi(T::of_bits(a), T::of_bits(b)).bits()))
        }
        "mul24" => by_integer!(kind, T => two(|a, b| integer::mul24_lo(T::of_bits(a), T::of_bits(b)).bits())),
        "div" => by_integer!(kind, T => two(|a, b| Integer::div(T::of_bits(a), T::of_bits(b)).bits())),
        "rem" => by_integer!(kind, T => two(|a, b| Integer::rem(T::of_bits(a), T::of_bits(b)).bits())),
        "min" if modifiers.contains(&"relu") => {
            by_integer!(kind, T => two(|a, b| integer::relu(T::of_bits(a).min(T::of_bits(b))).bits()))
        }
        "max" if modifiers.contains(&"relu") => {
            by_integer!(kind, T => two(|a, b| integer::relu(T::of_bits(a).max(T::of_bits(b))).bits()))
        }
        "min" => by_integer!(kind, T => two(|a, b| T::of_bits(a).min(T::of_bits(b)).bits())),
        "max" => by_integer!(kind, T => two(|a, b| T::of_bits(a).max(T::of_bits(b)).bits())),
        "and" => two(|a, b| a & b),
        "or" => two(|a, b| a | b),
        "xor" => two(|a, b| a ^ b),
        "shl" => match kind.bits() {
            32 => two(|a, b| if b & 0xffff_ffff < 32 { a << (b & 31) & 0xffff_ffff } else { 0 }),
            _ => by_integer!(kind, T => two(|a, b| Integer::shl(T::of_bits(a), b as u32).bits())),
        },
        "shr" => by_integer!(kind, T => two(|a, b| Integer::shr(T::of_bits(a), b as u32).bits())),
        "szext" => {
            let signed = kind.is_signed();
            two(move |a, b| u64::from(bits::szext(a as u32, b as u32, amount, signed)))
        }
        "bmsk" => two(move |a, b| u64::from(bits::bmsk(a as u32, b as u32, amount))),
        _ => return Ok(None),
    }))
}

pub(super) fn float_binary(opcode: &str, kind: Scalar, modifiers: &[&str]) -> Decode<Option<Function2>> {
    let mode = float_mode(modifiers);
    let usual = mode == FloatMode::default();
    let extreme = ExtremeMode {
        max: opcode == "max",
        nan: modifiers.contains(&"NaN"),
        xorsign: modifiers.contains(&"xorsign"),
        flush: mode.flush,
    };
    let rounding = mode.rounding;
    if let Some((half, pair)) = half(kind) {
        let mode = half_mode(modifiers);
        return Ok(Some(match opcode {
            "add" => half2(pair, move |a, b| half.add(a, b, mode)),
            "sub" => half2(pair, move |a, b| half.sub(a, b, mode)),
            "mul" => half2(pair, move |a, b| half.mul(a, b, mode)),
            "min" | "max" => half2(pair, move |a, b| half.extreme(a, b, extreme)),
            _ => return Ok(None),
        }));
    }
    Ok(Some(match (opcode, kind) {
        ("add", Scalar::F(32)) if usual => {
            two(|a, b| u64::from(float::add32(a as u32, b as u32, FloatMode::default())))
        }
        ("sub", Scalar::F(32)) if usual => {
            two(|a, b| u64::from(float::sub32(a as u32, b as u32, FloatMode::default())))
        }
        ("mul", Scalar::F(32)) if usual => {
            two(|a, b| u64::from(float::mul32(a as u32, b as u32, FloatMode::default())))
        }
        ("add", Scalar::F(32)) => two(move |a, b| u64::from(float::add32(a as u32, b as u32, mode))),
        ("sub", Scalar::F(32)) => two(move |a, b| u64::from(float::sub32(a as u32, b as u32, mode))),
        ("mul", Scalar::F(32)) => two(move |a, b| u64::from(float::mul32(a as u32, b as u32, mode))),
        ("div", Scalar::F(32)) if modifiers.contains(&"approx") || modifiers.contains(&"full") => {
            let full = modifiers.contains(&"full");
            two(move |a, b| u64::from(div_approx32(a as u32, b as u32, full, mode.flush)))
        }
        ("div", Scalar::F(32)) => two(move |a, b| u64::from(float::div32(a as u32, b as u32, mode))),
        ("min" | "max", Scalar::F(32)) => two(move |a, b| u64::from(float::extreme32(a as u32, b as u32, extreme))),
        ("copysign", Scalar::F(32)) => two(|a, b| u64::from(float::copysign32(a as u32, b as u32))),
        ("add", Scalar::F(64)) => two(move |a, b| float::add64(a, b, rounding)),
        ("sub", Scalar::F(64)) => two(move |a, b| float::sub64(a, b, rounding)),
        ("mul", Scalar::F(64)) => two(move |a, b| float::mul64(a, b, rounding)),
        ("div", Scalar::F(64)) => two(move |a, b| float::div64(a, b, rounding)),
        ("min" | "max", Scalar::F(64)) => two(move |a, b| float::extreme64(a, b, extreme.max)),
        ("copysign", Scalar::F(64)) => two(float::copysign64),
        _ => return Ok(None),
    }))
}

pub(super) fn ternary(opcode: &str, kind: Scalar, modifiers: &[&str]) -> Decode<Option<Function3>> {
    let mode = float_mode(modifiers);
    let rounding = mode.rounding;
    if matches!(opcode, "fma" | "mad") && kind.is_float() {
        if let Some((half, pair)) = half(kind) {
            let mode = half_mode(modifiers);
            return Ok(Some(half3(pair, move |a, b, c| half.fma(a, b, c, mode))));
        }
        return Ok(Some(match kind {
            Scalar::F(32) if mode == FloatMode::default() => {
                three(|a, b, c| u64::from(float::fma32(a as u32, b as u32, c as u32, FloatMode::default())))
            }
            Scalar::F(32) => three(move |a, b, c| u64::from(float::fma32(a as u32, b as u32, c as u32, mode))),
            Scalar::F(64) => three(move |a, b, c| float::fma64(a, b, c, rounding)),
            _ => return unknown(),
        }));
    }
    let width = kind.bits();
    let amount = amount(modifiers);
    Ok(Some(match opcode {
        "mad" if modifiers.contains(&"wide") => match kind {
            Scalar::U(16) => three(|a, b, c| ((a & 0xffff) * (b & 0xffff) + c) & 0xffff_ffff),
            Scalar::S(16) => {
                three(|a, b, c| u64::from((i32::from(a as i16) * i32::from(b as i16)).wrapping_add(c as i32) as u32))
            }
            Scalar::U(32) => three(|a, b, c| ((a & 0xffff_ffff) * (b & 0xffff_ffff)).wrapping_add(c)),
            Scalar::S(32) => three(|a, b, c| (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64),
            _ => return unknown(),
        },
        "mad" if modifiers.contains(&"hi") && modifiers.contains(&"sat") => {
            three(|a, b, c| u64::from(integer::mad_hi_sat(a as i32, b as i32, c as i32) as u32))
        }
        "mad" if modifiers.contains(&"hi") => {
            by_integer!(kind, T => three(|a, b, c| integer::mad_hi(T::of_bits(a), T::of_bits(b), T::of_bits(c)).bits()))
        }
        "mad" => {
            by_integer!(kind, T => three(|a, b, c| integer::mad_lo(T::of_bits(a), T::of_bits(b), T::of_bits(c)).bits()))
        }
        "mad24" if modifiers.contains(&"hi") && modifiers.contains(&"sat") => {
            three(|a, b, c| u64::from(integer::mad24_hi_sat(a as i32, b as i32, c as i32) as u32))
        }
        "mad24" if modifiers.contains(&"hi") => {
            by_integer!(kind, T => three(|a, b, c| {
                integer::mad24_hi(T::of_bits(a), T::of_bits(b), T::of_bits(c)).bits()
            }))
        }
        "mad24" => by_integer!(kind, T => three(|a, b, c| {
            integer::mad24_lo(T::of_bits(a), T::of_bits(b), T::of_bits(c)).bits()
        })),
        "sad" => {
            by_integer!(kind, T => three(|a, b, c| integer::sad(T::of_bits(a), T::of_bits(b), T::of_bits(c)).bits()))
        }
        "bfe" => {
            let signed = kind.is_signed();
            three(move |a, b, c| bits::bfe(a, b as u32, c as u32, width, signed))
        }
        "shf" if modifiers.contains(&"l") => {
            three(move |a, b, c| u64::from(bits::shf_left(a as u32, b as u32, c as u32, amount)))
        }
        "shf" => three(move |a, b, c| u64::from(bits::shf_right(a as u32, b as u32, c as u32, amount))),
        "prmt" => {
            let mode = match modifiers.last() {
                Some(&"f4e") => PermuteMode::Forward,
                Some(&"b4e") => PermuteMode::Backward,
                Some(&"rc8") => PermuteMode::ReplicateByte,
                Some(&"ecl") => PermuteMode::EdgeClampLeft,
                Some(&"ecr") => PermuteMode::EdgeClampRight,
                Some(&"rc16") => PermuteMode::ReplicateHalf,
                _ => PermuteMode::Generic,
            };
            three(move |a, b, c| u64::from(bits::prmt(a as u32, b as u32, c as u32, mode)))
        }
        "fns" => three(|a, b, c| u64::from(bits::fns(a as u32, b as u32, c as i32))),
        "slct" if kind == Scalar::F(32) => three(move |a, b, c| compare::slct_f32(a, b, c as u32, mode.flush)),
        "slct" => three(|a, b, c| compare::slct_s32(a, b, c as i32)),
        "dp4a" | "dp2a" => {
            let all = types(modifiers);
            let [.., a_kind, b_kind] = all[..] else { return Err("two types are expected".to_string()) };
            let (a_signed, b_signed) = (a_kind.is_signed(), b_kind.is_signed());
            let upper = modifiers.contains(&"hi");
            match opcode {
                "dp4a" => {
                    three(move |a, b, c| u64::from(integer::dp4a(a as u32, a_signed, b as u32, b_signed, c as u32)))
                }
                _ => three(move |a, b, c| {
                    u64::from(integer::dp2a(a as u32, a_signed, b as u32, b_signed, upper, c as u32))
                }),
            }
        }
        _ => return Ok(None),
    }))
}
