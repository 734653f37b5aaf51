//! Instructions of one lane: of integers and bits here, of floats in `numbers`.

mod numbers;

use tilewright_sanitize::isa::bits::{self, Amount, PermuteMode};
use tilewright_sanitize::isa::compare::{Comparison, slct_f32, slct_s32};
use tilewright_sanitize::isa::format::Rounding;
use tilewright_sanitize::isa::half::Half;
use tilewright_sanitize::isa::integer::{self, Integer};
use tilewright_sanitize::isa::video::{
    PartInstruction, PartOperation, RegisterPart, ScalarVideo, Secondary, ShiftLimit, VideoProduct,
};

use crate::program::{Kind, Program, Shape};

const ROUNDINGS: [(&str, Rounding); 4] =
    [("rn", Rounding::Nearest), ("rz", Rounding::Zero), ("rm", Rounding::Down), ("rp", Rounding::Up)];

/// All instructions of one lane.
pub(crate) fn programs() -> Vec<Program> {
    let mut all = Vec::new();
    typed::<u16>(&mut all, "u16", Kind::I16);
    typed::<i16>(&mut all, "s16", Kind::I16);
    typed::<u32>(&mut all, "u32", Kind::I32);
    typed::<i32>(&mut all, "s32", Kind::I32);
    typed::<u64>(&mut all, "u64", Kind::I64);
    typed::<i64>(&mut all, "s64", Kind::I64);
    integers(&mut all);
    on_bits(&mut all);
    parts(&mut all);
    video(&mut all);
    comparisons(&mut all);
    numbers::floats(&mut all);
    numbers::doubles(&mut all);
    numbers::approximations(&mut all);
    numbers::halves(&mut all);
    numbers::conversions(&mut all);
    numbers::narrow(&mut all);
    all
}

/// `vabsdiff4` and its like: two or four numbers in a register.
fn parts(all: &mut List) {
    let operations = [
        ("vadd", PartOperation::Add),
        ("vsub", PartOperation::Sub),
        ("vavrg", PartOperation::Average),
        ("vabsdiff", PartOperation::AbsDiff),
        ("vmin", PartOperation::Min),
        ("vmax", PartOperation::Max),
        ("vset", PartOperation::Compare(Comparison::Lt)),
    ];
    for (name, operation) in operations {
        let is_set = name == "vset";
        for (count, bits, choice) in [(2, 16, ["h1", "h21", "h03"]), (4, 8, ["b20", "b7130", "b0246"])] {
            for (kind, signed) in [("u32", false), ("s32", true)] {
                let base = PartInstruction {
                    signed: [signed && !is_set, signed, signed],
                    ..PartInstruction::new(operation, bits)
                };
                let chosen = match count {
                    2 => [[1, 2, 0, 0], [3, 0, 0, 0]],
                    _ => [[0, 3, 1, 7], [6, 4, 2, 0]],
                };
                let crossed = PartInstruction { chosen, mask: if count == 2 { 2 } else { 5 }, ..base };
                let types = if is_set { format!("{kind}.{kind}.lt") } else { format!("{kind}.{kind}.{kind}") };
                for (end, saturates, sums) in [("", false, false), (".sat", true, false), (".add", false, true)] {
                    if is_set && saturates {
                        continue;
                    }
                    for (own, parts) in [(base, [""; 3]), (crossed, choice)] {
                        let own = PartInstruction { saturates, sums, ..own };
                        let suffix = parts.map(|part| if part.is_empty() { String::new() } else { format!(".{part}") });
                        let [d, a, b] = suffix;
                        let instruction = format!("{name}{count}.{types}{end}");
                        let statement = format!("{instruction} {{d}}{d}, {{a}}{a}, {{b}}{b}, {{c}};");
                        let law = move |x: &[u64]| own.of(x[0] as u32, x[1] as u32, x[2] as u32).into();
                        let title = format!("{instruction}{a}{b}");
                        all.push(Program::lane(&title, &[Kind::I32; 3], (32, Shape::Bits), &statement, law));
                    }
                }
            }
        }
    }
}

/// `vadd` and its like: one number, of parts of registers.
fn video(all: &mut List) {
    let [clamp, wrap] = [ShiftLimit::Clamp, ShiftLimit::Wrap];
    let operations = [
        ("vadd", "", PartOperation::Add),
        ("vsub", "", PartOperation::Sub),
        ("vabsdiff", "", PartOperation::AbsDiff),
        ("vmin", "", PartOperation::Min),
        ("vmax", "", PartOperation::Max),
        ("vshl", ".clamp", PartOperation::ShiftLeft(clamp)),
        ("vshl", ".wrap", PartOperation::ShiftLeft(wrap)),
        ("vshr", ".clamp", PartOperation::ShiftRight(clamp)),
        ("vshr", ".wrap", PartOperation::ShiftRight(wrap)),
        ("vset", ".ge", PartOperation::Compare(Comparison::Ge)),
    ];
    let parts = [("", RegisterPart::Whole), (".h1", RegisterPart::Half(1)), (".b2", RegisterPart::Byte(2))];
    let ends = [
        ("", "", Secondary::Nothing),
        (".add", "", Secondary::Add),
        (".min", "", Secondary::Min),
        (".max", "", Secondary::Max),
        ("", ".b1", Secondary::Merge(RegisterPart::Byte(1))),
        ("", ".h0", Secondary::Merge(RegisterPart::Half(0))),
    ];
    let kind = |signed: bool| if signed { "s32" } else { "u32" };
    for (name, mode, operation) in operations {
        let (is_shift, is_set) = (name.starts_with("vsh"), name == "vset");
        for signs in 0..8 {
            let signed = [0, 1, 2].map(|at| signs >> at & 1 == 1);
            // Amounts of shifts have no sign, and neither has what `vset` gives.
            if is_shift && signed[2] || is_set && signed[0] {
                continue;
            }
            for (number, (end, to, secondary)) in ends.iter().enumerate() {
                let (a, first) = parts[(number + signs) % 3];
                let (b, second) = parts[(number + signs / 2) % 3];
                for saturates in [false, true] {
                    if is_set && saturates {
                        continue;
                    }
                    let own =
                        ScalarVideo { operation, parts: [first, second], signed, saturates, secondary: *secondary };
                    if own.is_open() {
                        continue;
                    }
                    let [of_d, of_a, of_b] = signed.map(kind);
                    let types = if is_set { format!("{of_a}.{of_b}") } else { format!("{of_d}.{of_a}.{of_b}") };
                    let sat = if saturates { ".sat" } else { "" };
                    let instruction = format!("{name}.{types}{sat}{mode}{end}");
                    let third = if *secondary == Secondary::Nothing { "" } else { ", {c}" };
                    let statement = format!("{instruction} {{d}}{to}, {{a}}{a}, {{b}}{b}{third};");
                    let operands = [Kind::I32, if is_shift { Kind::Small(70) } else { Kind::I32 }, Kind::I32];
                    let law = move |x: &[u64]| own.of(x[0] as u32, x[1] as u32, x[2] as u32).into();
                    let title = format!("{instruction} d{to} a{a} b{b}");
                    all.push(Program::lane(&title, &operands, (32, Shape::Bits), &statement, law));
                }
            }
        }
    }
    for (plus_one, negated, signs) in [
        (false, [false; 2], ["", "", ""]),
        (true, [false; 2], ["", "", ""]),
        (false, [true, false], ["-", "", ""]),
        (false, [false, true], ["", "", "-"]),
    ] {
        for signed in [[false, false], [true, false], [true, true]] {
            for (shift, scale) in [(0, ""), (7, ".shr7"), (15, ".shr15")] {
                for saturates in [false, true] {
                    let parts = [RegisterPart::Half(0), RegisterPart::Byte(3)];
                    let own = VideoProduct { parts, signed, negated, plus_one, shift, saturates };
                    let [of_a, of_b] = signed.map(kind);
                    let po = if plus_one { ".po" } else { "" };
                    let of_d = kind(signed.contains(&true) || negated.contains(&true));
                    let instruction =
                        format!("vmad.{of_d}.{of_a}.{of_b}{po}{}{scale}", if saturates { ".sat" } else { "" });
                    let [a, b, c] = signs;
                    let statement = format!("{instruction} {{d}}, {a}{{a}}.h0, {b}{{b}}.b3, {c}{{c}};");
                    let law = move |x: &[u64]| own.of(x[0] as u32, x[1] as u32, x[2] as u32).into();
                    let title = format!("{instruction} {a}a {b}b {c}c");
                    all.push(Program::lane(&title, &[Kind::I32; 3], (32, Shape::Bits), &statement, law));
                }
            }
        }
    }
}

type List = Vec<Program>;
type OfWords = Box<dyn Fn(&[u32]) -> u32>;
type OfLongs = Box<dyn Fn(&[u64]) -> u64>;

fn typed<T: Integer + 'static>(all: &mut List, name: &str, kind: Kind) {
    let of = |bits: u64| T::of_bits(bits);
    let result = (T::BITS, Shape::Bits);
    let mut two = |operation: &str, f: fn(T, T) -> T| {
        let statement = format!("{operation}.{name} {{d}}, {{a}}, {{b}};");
        all.push(Program::lane(&format!("{operation}.{name}"), &[kind; 2], result, &statement, move |x| {
            f(of(x[0]), of(x[1])).bits()
        }));
    };
    two("add", T::add);
    two("sub", T::sub);
    two("mul.lo", T::mul);
    two("mul.hi", T::mul_hi);
    two("div", T::div);
    two("rem", T::rem);
    two("min", |a, b| a.min(b));
    two("max", |a, b| a.max(b));
    let mut three = |operation: &str, f: fn(T, T, T) -> T| {
        let statement = format!("{operation}.{name} {{d}}, {{a}}, {{b}}, {{c}};");
        all.push(Program::lane(&format!("{operation}.{name}"), &[kind; 3], result, &statement, move |x| {
            f(of(x[0]), of(x[1]), of(x[2])).bits()
        }));
    };
    three("mad.lo", integer::mad_lo);
    three("mad.hi", integer::mad_hi);
    three("sad", integer::sad);
    if T::SIGNED {
        for (operation, f) in [("neg", T::neg as fn(T) -> T), ("abs", T::abs)] {
            let statement = format!("{operation}.{name} {{d}}, {{a}};");
            all.push(Program::lane(&format!("{operation}.{name}"), &[kind], result, &statement, move |x| {
                f(of(x[0])).bits()
            }));
        }
    }
    let statement = format!("shr.{name} {{d}}, {{a}}, {{b}};");
    all.push(Program::lane(&format!("shr.{name}"), &[kind, Kind::Small(70)], result, &statement, move |x| {
        of(x[0]).shr(x[1] as u32).bits()
    }));
    if !T::SIGNED {
        let statement = format!("shl.b{} {{d}}, {{a}}, {{b}};", T::BITS);
        all.push(Program::lane(&format!("shl.b{}", T::BITS), &[kind, Kind::Small(70)], result, &statement, move |x| {
            of(x[0]).shl(x[1] as u32).bits()
        }));
    }
    if T::BITS >= 32 {
        type Carries<T> = [(&'static str, fn(T, T, T) -> T); 2];
        let carries: Carries<T> = [
            ("add", |a, b, c| {
                let (low, carry) = integer::add_carry(a, b, false);
                low.add(integer::add_carry(c, T::of_bits(0), carry).0)
            }),
            ("sub", |a, b, c| {
                let (low, borrow) = integer::sub_borrow(a, b, false);
                low.add(integer::sub_borrow(c, T::of_bits(0), borrow).0)
            }),
        ];
        for (operation, f) in carries {
            let high = register_of(T::BITS, 8);
            let low = register_of(T::BITS, 9);
            let statement = format!(
                "{operation}.cc.{name} {low}, {{a}}, {{b}}; {operation}c.{name} {high}, {{c}}, 0; add.{name} {{d}}, {low}, {high};"
            );
            all.push(Program::lane(&format!("{operation}c.{name}"), &[kind; 3], result, &statement, move |x| {
                f(of(x[0]), of(x[1]), of(x[2])).bits()
            }));
        }
    }
}

fn register_of(bits: u32, number: u32) -> String {
    if bits == 64 { format!("%d{number}") } else { format!("%r{number}") }
}

/// A helper for results of 32 bits from operands of 32 bits.
fn words(all: &mut List, name: &str, operands: &[Kind], f: impl Fn(&[u32]) -> u32 + 'static) {
    let letters = ["{a}", "{b}", "{c}", "{e}"][..operands.len()].join(", ");
    let statement = format!("{name} {{d}}, {letters};");
    all.push(Program::lane(name, operands, (32, Shape::Bits), &statement, move |x| {
        let x: Vec<u32> = x.iter().map(|value| *value as u32).collect();
        f(&x).into()
    }));
}

fn integers(all: &mut List) {
    let two = [Kind::I32; 2];
    let three = [Kind::I32; 3];
    words(all, "add.sat.s32", &two, |x| (x[0] as i32).add_sat(x[1] as i32) as u32);
    words(all, "sub.sat.s32", &two, |x| (x[0] as i32).sub_sat(x[1] as i32) as u32);
    words(all, "mad.hi.sat.s32", &three, |x| integer::mad_hi_sat(x[0] as i32, x[1] as i32, x[2] as i32) as u32);
    words(all, "mul24.lo.u32", &two, |x| integer::mul24_lo(x[0], x[1]));
    words(all, "mul24.hi.u32", &two, |x| integer::mul24_hi(x[0], x[1]));
    words(all, "mul24.lo.s32", &two, |x| integer::mul24_lo(x[0] as i32, x[1] as i32) as u32);
    words(all, "mul24.hi.s32", &two, |x| integer::mul24_hi(x[0] as i32, x[1] as i32) as u32);
    words(all, "mad24.lo.u32", &three, |x| integer::mad24_lo(x[0], x[1], x[2]));
    words(all, "mad24.hi.s32", &three, |x| integer::mad24_hi(x[0] as i32, x[1] as i32, x[2] as i32) as u32);
    words(all, "mad24.hi.sat.s32", &three, |x| integer::mad24_hi_sat(x[0] as i32, x[1] as i32, x[2] as i32) as u32);
    for (a, a_name) in [(false, "u32"), (true, "s32")] {
        for (b, b_name) in [(false, "u32"), (true, "s32")] {
            words(all, &format!("dp4a.{a_name}.{b_name}"), &three, move |x| integer::dp4a(x[0], a, x[1], b, x[2]));
            for (upper, half) in [(false, "lo"), (true, "hi")] {
                words(all, &format!("dp2a.{half}.{a_name}.{b_name}"), &three, move |x| {
                    integer::dp2a(x[0], a, x[1], b, upper, x[2])
                });
            }
        }
    }
    words(all, "add.u16x2", &two, |x| integer::pairwise(x[0], x[1], u16::add));
    words(all, "min.s16x2", &two, |x| integer::pairwise(x[0], x[1], |a: i16, b| a.min(b)));
    words(all, "max.u16x2", &two, |x| integer::pairwise(x[0], x[1], |a: u16, b| a.max(b)));
    words(all, "max.s16x2.relu", &two, |x| integer::pairwise(x[0], x[1], |a: i16, b| integer::relu(a.max(b))));
    words(all, "min.relu.s32", &two, |x| integer::relu((x[0] as i32).min(x[1] as i32)) as u32);
    let wide = |name: &str, kind: Kind, bits: u32, f: fn(u64, u64) -> u64| {
        let statement = format!("{name} {{d}}, {{a}}, {{b}};");
        Program::lane(name, &[kind; 2], (bits, Shape::Bits), &statement, move |x| f(x[0], x[1]))
    };
    all.push(wide("mul.wide.u16", Kind::I16, 32, |a, b| (a as u16).mul_wide(b as u16).into()));
    all.push(wide("mul.wide.s16", Kind::I16, 32, |a, b| (a as i16).mul_wide(b as i16) as u32 as u64));
    all.push(wide("mul.wide.u32", Kind::I32, 64, |a, b| (a as u32).mul_wide(b as u32)));
    all.push(wide("mul.wide.s32", Kind::I32, 64, |a, b| (a as i32).mul_wide(b as i32) as u64));
}

fn on_bits(all: &mut List) {
    let word = [Kind::I32];
    words(all, "popc.b32", &word, |x| bits::popc(x[0].into()));
    words(all, "clz.b32", &word, |x| bits::clz32(x[0]));
    words(all, "brev.b32", &word, |x| bits::brev32(x[0]));
    words(all, "cnot.b32", &word, |x| bits::cnot(x[0].into()) as u32);
    let long = |name: &str, bits: u32, f: fn(u64) -> u64| {
        let statement = format!("{name} {{d}}, {{a}};");
        Program::lane(name, &[Kind::I64], (bits, Shape::Bits), &statement, move |x| f(x[0]))
    };
    all.push(long("popc.b64", 32, |a| bits::popc(a).into()));
    all.push(long("clz.b64", 32, |a| bits::clz64(a).into()));
    all.push(long("brev.b64", 64, bits::brev64));
    all.push(long("cnot.b64", 64, bits::cnot));
    for (name, width, signed) in [("u32", 32, false), ("s32", 32, true), ("u64", 64, false), ("s64", 64, true)] {
        let kind = if width == 32 { Kind::I32 } else { Kind::I64 };
        for (suffix, shift) in [("", false), (".shiftamt", true)] {
            let name = format!("bfind{suffix}.{name}");
            let statement = format!("{name} {{d}}, {{a}};");
            all.push(Program::lane(&name, &[kind], (32, Shape::Bits), &statement, move |x| {
                bits::bfind(x[0], width, signed, shift).into()
            }));
        }
        let statement = format!("bfe.{name} {{d}}, {{a}}, {{b}}, {{c}};");
        let operands = [kind, Kind::Small(70), Kind::Small(70)];
        all.push(Program::lane(&format!("bfe.{name}"), &operands, (width, Shape::Bits), &statement, move |x| {
            bits::bfe(x[0], x[1] as u32, x[2] as u32, width, signed)
        }));
    }
    for (width, kind) in [(32, Kind::I32), (64, Kind::I64)] {
        let name = format!("bfi.b{width}");
        let statement = format!("{name} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};");
        let operands = [kind, kind, Kind::Small(70), Kind::Small(70)];
        all.push(Program::lane(&name, &operands, (width, Shape::Bits), &statement, move |x| {
            bits::bfi(x[0], x[1], x[2] as u32, x[3] as u32, width)
        }));
    }
    for (mode, name) in [(Amount::Clamp, "clamp"), (Amount::Wrap, "wrap")] {
        let small = Kind::Small(70);
        words(all, &format!("szext.{name}.u32"), &[Kind::I32, small], move |x| bits::szext(x[0], x[1], mode, false));
        words(all, &format!("szext.{name}.s32"), &[Kind::I32, small], move |x| bits::szext(x[0], x[1], mode, true));
        words(all, &format!("bmsk.{name}.b32"), &[small, small], move |x| bits::bmsk(x[0], x[1], mode));
        let operands = [Kind::I32, Kind::I32, small];
        words(all, &format!("shf.l.{name}.b32"), &operands, move |x| bits::shf_left(x[0], x[1], x[2], mode));
        words(all, &format!("shf.r.{name}.b32"), &operands, move |x| bits::shf_right(x[0], x[1], x[2], mode));
    }
    let statement = "and.b32 %r8, {b}, 31; bfe.s32 %r9, {c}, 0, 5; fns.b32 {d}, {a}, %r8, %r9;";
    all.push(Program::lane("fns.b32", &[Kind::I32; 3], (32, Shape::Bits), statement, |x| {
        bits::fns(x[0] as u32, x[1] as u32 & 31, bits::bfe(x[2], 0, 5, 32, true) as u32 as i32).into()
    }));
    let modes = [
        ("", PermuteMode::Generic),
        (".f4e", PermuteMode::Forward),
        (".b4e", PermuteMode::Backward),
        (".rc8", PermuteMode::ReplicateByte),
        (".ecl", PermuteMode::EdgeClampLeft),
        (".ecr", PermuteMode::EdgeClampRight),
        (".rc16", PermuteMode::ReplicateHalf),
    ];
    for (suffix, mode) in modes {
        words(all, &format!("prmt.b32{suffix}"), &[Kind::I32; 3], move |x| bits::prmt(x[0], x[1], x[2], mode));
    }
    for table in [0x96_u8, 0xe8, 0x1b, 0xf8, 0x6a] {
        let statement = format!("lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};");
        all.push(Program::lane(
            &format!("lop3.b32-{table:x}"),
            &[Kind::I32; 3],
            (32, Shape::Bits),
            &statement,
            move |x| bits::lop3(x[0] as u32, x[1] as u32, x[2] as u32, table).into(),
        ));
    }
    words(all, "slct.b32.s32", &[Kind::I32; 3], |x| slct_s32(x[0], x[1], x[2] as i32));
    words(all, "slct.b32.f32", &[Kind::I32, Kind::I32, Kind::F32], |x| slct_f32(x[0], x[1], x[2], false));
    words(all, "slct.ftz.b32.f32", &[Kind::I32, Kind::I32, Kind::F32], |x| slct_f32(x[0], x[1], x[2], true));
}

fn comparisons(all: &mut List) {
    use Comparison::{Eq, Equ, Ge, Geu, Gt, Gtu, Le, Leu, Lt, Ltu, Nan, Ne, Neu, Num};
    let ordered = [("eq", Eq), ("ne", Ne), ("lt", Lt), ("le", Le), ("gt", Gt), ("ge", Ge)];
    let rest = [
        ("equ", Equ),
        ("neu", Neu),
        ("ltu", Ltu),
        ("leu", Leu),
        ("gtu", Gtu),
        ("geu", Geu),
        ("num", Num),
        ("nan", Nan),
    ];
    type Holds = fn(Comparison, u64, u64) -> bool;
    let types: [(&str, Kind, bool, Holds); 11] = [
        ("u16", Kind::I16, false, |c, a, b| c.integers(a as u16, b as u16)),
        ("s16", Kind::I16, false, |c, a, b| c.integers(a as i16, b as i16)),
        ("u32", Kind::I32, false, |c, a, b| c.integers(a as u32, b as u32)),
        ("s32", Kind::I32, false, |c, a, b| c.integers(a as i32, b as i32)),
        ("u64", Kind::I64, false, |c, a, b| c.integers(a, b)),
        ("s64", Kind::I64, false, |c, a, b| c.integers(a as i64, b as i64)),
        ("f32", Kind::F32, true, |c, a, b| c.f32(a as u32, b as u32, false)),
        ("ftz.f32", Kind::F32, true, |c, a, b| c.f32(a as u32, b as u32, true)),
        ("f64", Kind::F64, true, |c, a, b| c.f64(a, b)),
        ("f16", Kind::F16, true, |c, a, b| c.floats(Half::F16.widen(a as u16), Half::F16.widen(b as u16))),
        ("bf16", Kind::Bf16, true, |c, a, b| c.floats(Half::Bf16.widen(a as u16), Half::Bf16.widen(b as u16))),
    ];
    for (name, kind, float, holds) in types {
        for (operation, comparison) in ordered.iter().chain(if float { &rest[..] } else { &[] }) {
            let comparison = *comparison;
            let instruction = format!("setp.{operation}.{name}");
            let statement = format!("{instruction} %p1, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, %p1;");
            all.push(Program::lane(&instruction, &[kind; 2], (32, Shape::Bits), &statement, move |x| {
                holds(comparison, x[0], x[1]).into()
            }));
        }
    }
}
