//! Floats of one lane: arithmetic, approximations, halves, conversions.

use tilewright_sanitize::isa::approximate::{Function, approx16, approx32, approx64, div_approx32, rsqrt64};
use tilewright_sanitize::isa::convert::{self, ConvertMode, NumberType, Quarter};
use tilewright_sanitize::isa::float::{self, ExtremeMode, FloatMode, TestProperty};
use tilewright_sanitize::isa::format::Rounding;
use tilewright_sanitize::isa::half::{Half, HalfMode, pair1, pair2, pair3};

use super::{List, OfLongs, OfWords, ROUNDINGS, words};
use crate::program::{Kind, Program, Shape};

pub(super) fn floats(all: &mut List) {
    let result = (32, Shape::F32);
    let mut of = |name: String, count: usize, f: OfWords| {
        let letters = ["{a}", "{b}", "{c}"][..count].join(", ");
        let statement = format!("{name} {{d}}, {letters};");
        all.push(Program::lane(&name, &[Kind::F32; 3][..count], result, &statement, move |x| {
            let x: Vec<u32> = x.iter().map(|value| *value as u32).collect();
            f(&x).into()
        }));
    };
    for (round, rounding) in ROUNDINGS {
        for (flush, ftz) in [(false, ""), (true, ".ftz")] {
            for (saturate, sat) in [(false, ""), (true, ".sat")] {
                let mode = FloatMode { rounding, flush, saturate };
                let suffix = format!("{round}{ftz}{sat}.f32");
                of(format!("add.{suffix}"), 2, Box::new(move |x| float::add32(x[0], x[1], mode)));
                of(format!("sub.{suffix}"), 2, Box::new(move |x| float::sub32(x[0], x[1], mode)));
                of(format!("mul.{suffix}"), 2, Box::new(move |x| float::mul32(x[0], x[1], mode)));
                of(format!("fma.{suffix}"), 3, Box::new(move |x| float::fma32(x[0], x[1], x[2], mode)));
            }
            let mode = FloatMode { rounding, flush, saturate: false };
            let suffix = format!("{round}{ftz}.f32");
            of(format!("div.{suffix}"), 2, Box::new(move |x| float::div32(x[0], x[1], mode)));
            of(format!("rcp.{suffix}"), 1, Box::new(move |x| float::rcp32(x[0], mode)));
            of(format!("sqrt.{suffix}"), 1, Box::new(move |x| float::sqrt32(x[0], mode)));
        }
    }
    for (max, operation) in [(false, "min"), (true, "max")] {
        for (flush, ftz) in [(false, ""), (true, ".ftz")] {
            for (nan, dot) in [(false, ""), (true, ".NaN")] {
                for (xorsign, sign) in [(false, ""), (true, ".xorsign.abs")] {
                    let mode = ExtremeMode { max, nan, xorsign, flush };
                    let name = format!("{operation}{ftz}{dot}{sign}.f32");
                    of(name, 2, Box::new(move |x| float::extreme32(x[0], x[1], mode)));
                }
            }
        }
    }
    of("copysign.f32".into(), 2, Box::new(|x| float::copysign32(x[0], x[1])));
    for (flush, ftz) in [(false, ""), (true, ".ftz")] {
        of(format!("neg{ftz}.f32"), 1, Box::new(move |x| float::neg32(x[0], flush)));
        of(format!("abs{ftz}.f32"), 1, Box::new(move |x| float::abs32(x[0], flush)));
    }
    let properties = [
        ("finite", TestProperty::Finite),
        ("infinite", TestProperty::Infinite),
        ("number", TestProperty::Number),
        ("notanumber", TestProperty::NotANumber),
        ("normal", TestProperty::Normal),
        ("subnormal", TestProperty::Subnormal),
    ];
    for (name, property) in properties {
        for (suffix, kind) in [("f32", Kind::F32), ("f64", Kind::F64)] {
            let instruction = format!("testp.{name}.{suffix}");
            let statement = format!("{instruction} %p1, {{a}}; selp.b32 {{d}}, 1, 0, %p1;");
            all.push(Program::lane(&instruction, &[kind], (32, Shape::Bits), &statement, move |x| {
                let holds = match kind {
                    Kind::F64 => float::testp64(x[0], property),
                    _ => float::testp32(x[0] as u32, property),
                };
                holds.into()
            }));
        }
    }
}

pub(super) fn doubles(all: &mut List) {
    let mut of = |name: String, count: usize, f: OfLongs| {
        let letters = ["{a}", "{b}", "{c}"][..count].join(", ");
        let statement = format!("{name} {{d}}, {letters};");
        all.push(Program::lane(&name, &[Kind::F64; 3][..count], (64, Shape::F64), &statement, f));
    };
    for (round, rounding) in ROUNDINGS {
        of(format!("add.{round}.f64"), 2, Box::new(move |x| float::add64(x[0], x[1], rounding)));
        of(format!("sub.{round}.f64"), 2, Box::new(move |x| float::sub64(x[0], x[1], rounding)));
        of(format!("mul.{round}.f64"), 2, Box::new(move |x| float::mul64(x[0], x[1], rounding)));
        of(format!("fma.{round}.f64"), 3, Box::new(move |x| float::fma64(x[0], x[1], x[2], rounding)));
        of(format!("div.{round}.f64"), 2, Box::new(move |x| float::div64(x[0], x[1], rounding)));
        of(format!("rcp.{round}.f64"), 1, Box::new(move |x| float::rcp64(x[0], rounding)));
        of(format!("sqrt.{round}.f64"), 1, Box::new(move |x| float::sqrt64(x[0], rounding)));
    }
    of("min.f64".into(), 2, Box::new(|x| float::extreme64(x[0], x[1], false)));
    of("max.f64".into(), 2, Box::new(|x| float::extreme64(x[0], x[1], true)));
    of("copysign.f64".into(), 2, Box::new(|x| float::copysign64(x[0], x[1])));
}

pub(super) fn approximations(all: &mut List) {
    let functions = [
        ("rcp", Function::Reciprocal),
        ("sqrt", Function::SquareRoot),
        ("rsqrt", Function::ReciprocalSquareRoot),
        ("ex2", Function::Exp2),
        ("lg2", Function::Log2),
        ("sin", Function::Sine),
        ("cos", Function::Cosine),
        ("tanh", Function::Tanh),
    ];
    for (name, function) in functions {
        for (flush, ftz) in [(false, ""), (true, ".ftz")] {
            if flush && name == "tanh" {
                continue;
            }
            for (kind, suffix) in [(Kind::F32, ""), (Kind::Near, "-near")] {
                let instruction = format!("{name}.approx{ftz}.f32");
                let statement = format!("{instruction} {{d}}, {{a}};");
                let name = format!("{instruction}{suffix}");
                let program = Program::lane(&name, &[kind], (32, Shape::F32), &statement, move |x| {
                    approx32(function, x[0] as u32, flush).into()
                });
                all.push(program.approximate());
            }
        }
    }
    for (flush, ftz) in [(false, ""), (true, ".ftz")] {
        for (full, name) in [(false, "approx"), (true, "full")] {
            let instruction = format!("div.{name}{ftz}.f32");
            let statement = format!("{instruction} {{d}}, {{a}}, {{b}};");
            let program = Program::lane(&instruction, &[Kind::F32; 2], (32, Shape::F32), &statement, move |x| {
                div_approx32(x[0] as u32, x[1] as u32, full, flush).into()
            });
            all.push(program.approximate());
        }
    }
    for (name, function) in [("rcp", Function::Reciprocal), ("rsqrt", Function::ReciprocalSquareRoot)] {
        let instruction = format!("{name}.approx.ftz.f64");
        let statement = format!("{instruction} {{d}}, {{a}};");
        let program =
            Program::lane(&instruction, &[Kind::F64], (64, Shape::F64), &statement, move |x| approx64(function, x[0]));
        all.push(program.approximate());
    }
    let roots = "rsqrt.approx.f64 {d}, {a};";
    let program = Program::lane("rsqrt.approx.f64", &[Kind::F64], (64, Shape::F64), roots, |x| rsqrt64(x[0]));
    all.push(program.approximate());
    let halves = [
        ("ex2.approx.f16", Function::Exp2, Half::F16, false),
        ("ex2.approx.ftz.bf16", Function::Exp2, Half::Bf16, true),
        ("tanh.approx.f16", Function::Tanh, Half::F16, false),
        ("tanh.approx.bf16", Function::Tanh, Half::Bf16, false),
    ];
    for (name, function, half, flush) in halves {
        let (kind, shape) = match half {
            Half::F16 => (Kind::F16, Shape::F16),
            Half::Bf16 => (Kind::Bf16, Shape::Bf16),
        };
        let statement = format!("{name} {{d}}, {{a}};");
        let program = Program::lane(name, &[kind], (16, shape), &statement, move |x| {
            approx16(function, half, x[0] as u16, flush).into()
        });
        all.push(program.approximate());
    }
}

pub(super) fn halves(all: &mut List) {
    let none = HalfMode::default();
    for half in [Half::F16, Half::Bf16] {
        let (one, pair, kind, both, shape, shapes) = match half {
            Half::F16 => ("f16", "f16x2", Kind::F16, Kind::Pair(false), Shape::F16, Shape::F16x2),
            Half::Bf16 => ("bf16", "bf16x2", Kind::Bf16, Kind::Pair(true), Shape::Bf16, Shape::Bf16x2),
        };
        let mut three = |name: String, count: usize, f: Box<dyn Fn(u16, u16, u16) -> u16>| {
            let letters = ["{a}", "{b}", "{c}"][..count].join(", ");
            let f = std::rc::Rc::new(f);
            let g = f.clone();
            let single = format!("{name}.{one}");
            all.push(Program::lane(
                &single,
                &[kind; 3][..count],
                (16, shape),
                &format!("{single} {{d}}, {letters};"),
                move |x| {
                    let at = |n: usize| x.get(n).copied().unwrap_or(0) as u16;
                    f(at(0), at(1), at(2)).into()
                },
            ));
            let double = format!("{name}.{pair}");
            all.push(Program::lane(
                &double,
                &[both; 3][..count],
                (32, shapes),
                &format!("{double} {{d}}, {letters};"),
                move |x| {
                    let at = |n: usize| x.get(n).copied().unwrap_or(0) as u32;
                    let result = match x.len() {
                        1 => pair1(at(0), |a| g(a, 0, 0)),
                        2 => pair2(at(0), at(1), |a, b| g(a, b, 0)),
                        _ => pair3(at(0), at(1), at(2), |a, b, c| g(a, b, c)),
                    };
                    result.into()
                },
            ));
        };
        let f16 = half == Half::F16;
        let mut modes = vec![("rn".to_string(), none)];
        if f16 {
            modes.push(("rn.ftz".into(), HalfMode { flush: true, ..none }));
            modes.push(("rn.sat".into(), HalfMode { saturate: true, ..none }));
            modes.push(("rn.ftz.sat".into(), HalfMode { flush: true, saturate: true, ..none }));
        }
        for (suffix, mode) in &modes {
            let mode = *mode;
            three(format!("add.{suffix}"), 2, Box::new(move |a, b, _| half.add(a, b, mode)));
            three(format!("sub.{suffix}"), 2, Box::new(move |a, b, _| half.sub(a, b, mode)));
            three(format!("mul.{suffix}"), 2, Box::new(move |a, b, _| half.mul(a, b, mode)));
            three(format!("fma.{suffix}"), 3, Box::new(move |a, b, c| half.fma(a, b, c, mode)));
        }
        let relu = HalfMode { relu: true, ..none };
        three("fma.rn.relu".into(), 3, Box::new(move |a, b, c| half.fma(a, b, c, relu)));
        for (max, operation) in [(false, "min"), (true, "max")] {
            for (nan, dot) in [(false, ""), (true, ".NaN")] {
                for (xorsign, sign) in [(false, ""), (true, ".xorsign.abs")] {
                    let mode = ExtremeMode { max, nan, xorsign, flush: false };
                    three(format!("{operation}{dot}{sign}"), 2, Box::new(move |a, b, _| half.extreme(a, b, mode)));
                }
            }
        }
        three("neg".into(), 1, Box::new(move |a, _, _| half.neg(a, false)));
        three("abs".into(), 1, Box::new(move |a, _, _| half.abs(a, false)));
        for (dot, relu) in [("", false), (".relu", true)] {
            let mode = HalfMode { relu, outside: true, ..none };
            let instruction = format!("fma.rn.oob{dot}.{}", if f16 { "f16" } else { "bf16" });
            let statement = format!("{instruction} {{d}}, {{a}}, {{b}}, {{c}};");
            let shape = if f16 { Shape::F16 } else { Shape::Bf16 };
            all.push(Program::lane(&instruction, &[Kind::Filled(!f16); 3], (16, shape), &statement, move |x| {
                half.fma(x[0] as u16, x[1] as u16, x[2] as u16, mode).into()
            }));
        }
    }
}

pub(super) fn conversions(all: &mut List) {
    use NumberType::{Bf16, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    let integers = [
        ("u8", U8, Kind::Byte),
        ("s8", S8, Kind::Byte),
        ("u16", U16, Kind::I16),
        ("s16", S16, Kind::I16),
        ("u32", U32, Kind::I32),
        ("s32", S32, Kind::I32),
        ("u64", U64, Kind::I64),
        ("s64", S64, Kind::I64),
    ];
    let floats = [
        ("f16", F16, Kind::F16, Shape::F16),
        ("bf16", Bf16, Kind::Bf16, Shape::Bf16),
        ("f32", F32, Kind::F32, Shape::F32),
        ("f64", F64, Kind::F64, Shape::F64),
    ];
    // Bytes are in registers of 32 bits.
    let held = |of: NumberType| if of.bits() == 8 { 32 } else { of.bits() };
    let mut push = |name: String, from: (NumberType, Kind), to: (NumberType, Shape), mode: ConvertMode| {
        let statement = format!("{name} {{d}}, {{a}};");
        all.push(Program::lane(&name, &[from.1], (held(to.0), to.1), &statement, move |x| {
            convert::convert(from.0, to.0, mode, x[0])
        }));
    };
    for (from_name, from, kind) in integers {
        for (to_name, to, _) in integers {
            let kept = ConvertMode::default();
            push(format!("cvt.{to_name}.{from_name}"), (from, kind), (to, Shape::Bits), kept);
            // `.sat` is refused where nothing can be too large.
            let holds = if from.is_signed() {
                to.is_signed() && to.bits() >= from.bits()
            } else {
                to.bits() >= from.bits() + u32::from(to.is_signed())
            };
            if !holds {
                let saturate = ConvertMode { saturate: true, ..kept };
                push(format!("cvt.sat.{to_name}.{from_name}"), (from, kind), (to, Shape::Bits), saturate);
            }
        }
        for (to_name, to, _, shape) in floats {
            for (round, rounding) in ROUNDINGS {
                // To bf16 there are only the nearest ones, and none of bytes.
                if to == Bf16 && (round != "rn" || from.bits() == 8) {
                    continue;
                }
                let mode = ConvertMode { rounding, ..ConvertMode::default() };
                push(format!("cvt.{round}.{to_name}.{from_name}"), (from, kind), (to, shape), mode);
            }
        }
    }
    for (from_name, from, kind, shape) in floats {
        for (round, rounding) in ROUNDINGS {
            let mode = ConvertMode { rounding, ..ConvertMode::default() };
            for (to_name, to, _) in integers {
                if from == Bf16 && to.bits() == 8 {
                    continue;
                }
                push(format!("cvt.{round}i.{to_name}.{from_name}"), (from, kind), (to, Shape::Bits), mode);
            }
            let integral = ConvertMode { integral: true, ..mode };
            if from != Bf16 {
                push(format!("cvt.{round}i.{from_name}.{from_name}"), (from, kind), (from, shape), integral);
            }
            for (to_name, to, _, shape) in floats {
                if to.bits() < from.bits() && !(to == Bf16 && from == F64 && round != "rn") {
                    let plain = matches!(to, F16 | Bf16) && !matches!(round, "rn" | "rz");
                    if !plain {
                        push(format!("cvt.{round}.{to_name}.{from_name}"), (from, kind), (to, shape), mode);
                    }
                }
            }
        }
    }
    let plain = ConvertMode::default();
    push("cvt.f32.f16".into(), (F16, Kind::F16), (F32, Shape::F32), plain);
    push("cvt.f32.bf16".into(), (Bf16, Kind::Bf16), (F32, Shape::F32), plain);
    push("cvt.f64.f32".into(), (F32, Kind::F32), (F64, Shape::F64), plain);
    push("cvt.f64.f16".into(), (F16, Kind::F16), (F64, Shape::F64), plain);
    let saturate = ConvertMode { saturate: true, ..plain };
    push("cvt.sat.f32.f32".into(), (F32, Kind::F32), (F32, Shape::F32), saturate);
    push("cvt.ftz.f32.f32".into(), (F32, Kind::F32), (F32, Shape::F32), ConvertMode { flush: true, ..plain });
    push("cvt.rn.sat.f16.f32".into(), (F32, Kind::F32), (F16, Shape::F16), saturate);
    let relu = ConvertMode { relu: true, ..plain };
    push("cvt.rn.relu.f16.f32".into(), (F32, Kind::F32), (F16, Shape::F16), relu);
    push("cvt.rn.relu.bf16.f32".into(), (F32, Kind::F32), (Bf16, Shape::Bf16), relu);
    let finite = ConvertMode { finite: true, ..plain };
    for (name, to, shape) in [("f16", F16, Shape::F16), ("bf16", Bf16, Shape::Bf16)] {
        push(format!("cvt.rn.satfinite.{name}.f32"), (F32, Kind::F32), (to, shape), finite);
        let both = ConvertMode { relu: true, ..finite };
        push(format!("cvt.rn.relu.satfinite.{name}.f32"), (F32, Kind::F32), (to, shape), both);
        let cut = ConvertMode { rounding: Rounding::Zero, ..finite };
        push(format!("cvt.rz.satfinite.{name}.f32"), (F32, Kind::F32), (to, shape), cut);
    }
}

pub(super) fn narrow(all: &mut List) {
    let plain = ConvertMode::default();
    for (half, name, shape) in [(Half::F16, "f16x2", Shape::F16x2), (Half::Bf16, "bf16x2", Shape::Bf16x2)] {
        for (round, rounding) in &ROUNDINGS[..2] {
            for (relu, dot) in [(false, ""), (true, ".relu")] {
                let mode = ConvertMode { rounding: *rounding, relu, ..plain };
                let instruction = format!("cvt.{round}{dot}.{name}.f32");
                let statement = format!("{instruction} {{d}}, {{a}}, {{b}};");
                all.push(Program::lane(&instruction, &[Kind::F32; 2], (32, shape), &statement, move |x| {
                    convert::pair_of_f32(half, mode, x[0] as u32, x[1] as u32).into()
                }));
            }
        }
    }
    for (quarter, name) in [(Quarter::E4m3, "e4m3x2"), (Quarter::E5m2, "e5m2x2")] {
        for (relu, dot) in [(false, ""), (true, ".relu")] {
            let instruction = format!("cvt.rn.satfinite{dot}.{name}.f32");
            let statement = format!("{instruction} {{d}}, {{a}}, {{b}};");
            for (kind, suffix) in [(Kind::F32, ""), (Kind::Near, "-near")] {
                let name = format!("{instruction}{suffix}");
                all.push(Program::lane(&name, &[kind; 2], (16, Shape::Bits), &statement, move |x| {
                    convert::quarters_of_f32(quarter, relu, x[0] as u32, x[1] as u32).into()
                }));
            }
            let instruction = format!("cvt.rn.satfinite{dot}.{name}.f16x2");
            let statement = format!("{instruction} {{d}}, {{a}};");
            all.push(Program::lane(&instruction, &[Kind::Pair(false)], (16, Shape::Bits), &statement, move |x| {
                convert::quarters_of_f16(quarter, relu, x[0] as u32).into()
            }));
            let instruction = format!("cvt.rn{dot}.f16x2.{name}");
            let statement = format!("{instruction} {{d}}, {{a}};");
            all.push(Program::lane(&instruction, &[Kind::Bytes], (32, Shape::F16x2), &statement, move |x| {
                convert::f16_of_quarters(quarter, relu, x[0] as u16).into()
            }));
        }
    }
    for (half, name, shape) in [(Half::F16, "f16x2", Shape::F16x2), (Half::Bf16, "bf16x2", Shape::Bf16x2)] {
        let mode = ConvertMode { finite: true, ..plain };
        let instruction = format!("cvt.rn.satfinite.{name}.f32");
        let statement = format!("{instruction} {{d}}, {{a}}, {{b}};");
        all.push(Program::lane(&instruction, &[Kind::F32; 2], (32, shape), &statement, move |x| {
            convert::pair_of_f32(half, mode, x[0] as u32, x[1] as u32).into()
        }));
    }
    let statement = "cvt.rna.satfinite.tf32.f32 {d}, {a};";
    let mode = ConvertMode { rounding: Rounding::NearestAway, finite: true, ..plain };
    all.push(
        Program::lane("cvt.rna.satfinite.tf32.f32", &[Kind::F32], (32, Shape::F32), statement, move |x| {
            convert::tf32(mode, x[0] as u32).into()
        })
        .approximate(),
    );
    let tf32 = [
        ("cvt.rna.tf32.f32", Rounding::NearestAway, false),
        ("cvt.rn.tf32.f32", Rounding::Nearest, false),
        ("cvt.rz.tf32.f32", Rounding::Zero, false),
        ("cvt.rn.relu.tf32.f32", Rounding::Nearest, true),
    ];
    for (name, rounding, relu) in tf32 {
        let mode = ConvertMode { rounding, relu, ..plain };
        let statement = format!("{name} {{d}}, {{a}};");
        all.push(Program::lane(name, &[Kind::F32], (32, Shape::F32), &statement, move |x| {
            convert::tf32(mode, x[0] as u32).into()
        }));
    }
    words(all, "cvt.pack.sat.u16.s32", &[Kind::I32; 2], |x| {
        convert::pack_sat(x[0] as i32, x[1] as i32, None, 16, false)
    });
    for (name, width, signed) in [("s8", 8, true), ("u8", 8, false), ("s4", 4, true), ("u4", 4, false)] {
        words(all, &format!("cvt.pack.sat.{name}.s32.b32"), &[Kind::I32; 3], move |x| {
            convert::pack_sat(x[0] as i32, x[1] as i32, Some(x[2]), width, signed)
        });
    }
}
