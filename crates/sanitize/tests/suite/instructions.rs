//! What single instructions compute, from the text to the result.
//!
//! Law: for each lane the result is what plain Rust computes from the same bits. Operands are
//! numbers at the ends of their types and in between.

use super::tools::{kernel, run, words};
use tilewright_sanitize::{Argument, Array, Direction, Element, KernelLaunch, Options, sanitize};

/// Numbers at which instructions differ.
const EDGES: [u32; 16] =
    [0, 1, 2, 3, 31, 32, 33, 0x7f, 0x80, 0xffff, 0x10000, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, u32::MAX];

/// All pairs of edges, a word each for the two operands.
fn pairs() -> (Vec<u32>, Vec<u32>) {
    EDGES.iter().flat_map(|a| EDGES.iter().map(move |b| (*a, *b))).unzip()
}

fn array(words: &[u32]) -> Argument {
    Argument::Array(Array {
        name: String::new(),
        direction: Direction::InOut,
        element: Element::Unsigned(4),
        shape: vec![words.len() as u64],
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    })
}

/// The word that statements leave in `%r3` for operands in `%r1` and `%r2`, for all pairs.
fn results(statements: &str) -> Vec<u32> {
    let (a, b) = pairs();
    let text = kernel(
        3,
        &format!(
            "add.u64 %d10, %d0, %at4; ld.global.u32 %r1, [%d10];
             add.u64 %d11, %d1, %at4; ld.global.u32 %r2, [%d11];
             {statements}
             add.u64 %d12, %d2, %at4; st.global.u32 [%d12], %r3;"
        ),
    );
    let out = vec![0; a.len()];
    let launch =
        KernelLaunch::new("f", [2, 1, 1], [128, 1, 1]).argument(array(&a)).argument(array(&b)).argument(array(&out));
    let report = sanitize(&text, &launch, &Options { cores: Some(1), ..Options::default() }).unwrap();
    words(&report, 2)
}

#[track_caller]
fn agrees(statements: &str, law: impl Fn(u32, u32) -> u32) {
    let (a, b) = pairs();
    for ((a, b), found) in a.into_iter().zip(b).zip(results(statements)) {
        assert_eq!(found, law(a, b), "{statements} of {a:#x} and {b:#x}");
    }
}

#[test]
fn integers() {
    agrees("add.s32 %r3, %r1, %r2;", u32::wrapping_add);
    agrees("sub.u32 %r3, %r1, %r2;", u32::wrapping_sub);
    agrees("add.sat.s32 %r3, %r1, %r2;", |a, b| (a as i32).saturating_add(b as i32) as u32);
    agrees("mul.lo.s32 %r3, %r1, %r2;", u32::wrapping_mul);
    agrees("mul.hi.s32 %r3, %r1, %r2;", |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
    agrees("mul.hi.u32 %r3, %r1, %r2;", |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    agrees("mad.lo.u32 %r3, %r1, %r2, 7;", |a, b| a.wrapping_mul(b).wrapping_add(7));
    agrees("min.s32 %r3, %r1, %r2;", |a, b| (a as i32).min(b as i32) as u32);
    agrees("max.u32 %r3, %r1, %r2;", u32::max);
    agrees("div.u32 %r3, %r1, %r2;", |a, b| a.checked_div(b).unwrap_or(u32::MAX));
    agrees("or.b32 %r2, %r2, 1; rem.s32 %r3, %r1, %r2;", |a, b| (a as i32).wrapping_rem((b | 1) as i32) as u32);
    agrees("shl.b32 %r3, %r1, %r2;", |a, b| a.checked_shl(b).unwrap_or(0));
    agrees("shr.u32 %r3, %r1, %r2;", |a, b| a.checked_shr(b).unwrap_or(0));
    agrees("shr.s32 %r3, %r1, %r2;", |a, b| (a as i32 >> b.min(31)) as u32);
    agrees("xor.b32 %r3, %r1, %r2;", |a, b| a ^ b);
    agrees("not.b32 %r3, %r1;", |a, _| !a);
    agrees("neg.s32 %r3, %r1;", |a, _| a.wrapping_neg());
    agrees("abs.s32 %r3, %r1;", |a, _| (a as i32).wrapping_abs() as u32);
    agrees("popc.b32 %r3, %r1;", |a, _| a.count_ones());
    agrees("clz.b32 %r3, %r1;", |a, _| a.leading_zeros());
    agrees("brev.b32 %r3, %r1;", |a, _| a.reverse_bits());
    agrees("lop3.b32 %r3, %r1, %r2, 0x00ff00ff, 0xCA;", |a, b| a & b | !a & 0x00ff_00ff);
    agrees("shf.l.wrap.b32 %r3, %r1, %r2, 5;", |a, b| ((u64::from(b) << 32 | u64::from(a)) << 5 >> 32) as u32);
    agrees("prmt.b32 %r3, %r1, %r2, 0x3254;", |a, b| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes([b[0], b[1], a[2], a[3]])
    });
    agrees("bfe.u32 %r3, %r1, 4, 8;", |a, _| a >> 4 & 0xff);
    agrees("bfi.b32 %r3, %r1, %r2, 8, 4;", |a, b| b & !0xf00 | (a & 0xf) << 8);
    agrees("sad.u32 %r3, %r1, %r2, 1;", |a, b| a.abs_diff(b).wrapping_add(1));
    agrees("dp4a.s32.s32 %r3, %r1, %r2, 3;", |a, b| {
        let sum: i32 =
            a.to_le_bytes().iter().zip(b.to_le_bytes()).map(|(a, b)| i32::from(*a as i8) * i32::from(b as i8)).sum();
        sum.wrapping_add(3) as u32
    });
}

#[test]
fn carries_go_through_long_numbers() {
    // (r2, r1) + (r1, r2) and the same subtracted, of 64 bits in two registers.
    agrees("add.cc.u32 %r4, %r1, %r2; addc.u32 %r3, %r2, %r1;", |a, b| {
        let sum = (u64::from(b) << 32 | u64::from(a)).wrapping_add(u64::from(a) << 32 | u64::from(b));
        (sum >> 32) as u32
    });
    agrees("sub.cc.u32 %r4, %r1, %r2; subc.u32 %r3, %r2, %r1;", |a, b| {
        let difference = (u64::from(b) << 32 | u64::from(a)).wrapping_sub(u64::from(a) << 32 | u64::from(b));
        (difference >> 32) as u32
    });
    agrees("mad.lo.cc.u32 %r4, %r1, %r2, %r1; madc.hi.u32 %r3, %r1, %r2, %r2;", |a, b| {
        let sum = (u64::from(a) * u64::from(b)).wrapping_add(u64::from(b) << 32 | u64::from(a));
        (sum >> 32) as u32
    });
}

#[test]
fn comparisons_and_what_they_choose() {
    agrees("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r3, 1, 2, %p1;", |a, b| if (a as i32) < b as i32 { 1 } else { 2 });
    agrees("setp.lo.u32 %p1|%p2, %r1, %r2; selp.b32 %r3, %r1, %r2, %p2;", |a, b| if a < b { b } else { a });
    agrees("setp.eq.u32 %p2, %r1, 0; setp.gt.and.u32 %p1, %r2, 31, !%p2; selp.b32 %r3, 1, 0, %p1;", |a, b| {
        u32::from(b > 31 && a != 0)
    });
    agrees("set.ge.u32.s32 %r3, %r1, %r2;", |a, b| if a as i32 >= b as i32 { u32::MAX } else { 0 });
    agrees("slct.u32.s32 %r3, %r1, %r2, %r1;", |a, b| if a as i32 >= 0 { a } else { b });
    agrees("setp.ne.u32 %p1, %r1, %r2; mov.u32 %r3, 5; @%p1 mov.u32 %r3, 6;", |a, b| if a == b { 5 } else { 6 });
    agrees("setp.gtu.f32 %p1, %r1, %r2; selp.b32 %r3, 1, 0, %p1;", |a, b| {
        let (a, b) = (f32::from_bits(a), f32::from_bits(b));
        u32::from(a.is_nan() || b.is_nan() || a > b)
    });
}

#[test]
fn registers_are_packed_and_converted() {
    agrees("mov.b64 %d20, {%r1, %r2}; shr.u64 %d20, %d20, 16; mov.b64 {%r3, _}, %d20;", |a, b| {
        ((u64::from(b) << 32 | u64::from(a)) >> 16) as u32
    });
    agrees("mov.b32 {%h1, %h2}, %r1; mov.b32 %r3, {%h2, %h1};", |a, _| a.rotate_left(16));
    agrees(
        "cvt.s64.s32 %d20, %r1; cvt.s64.s32 %d21, %r2; add.s64 %d20, %d20, %d21; shr.s64 %d20, %d20, 1; cvt.u32.u64 %r3, %d20;",
        |a, b| ((i64::from(a as i32) + i64::from(b as i32)) >> 1) as u32,
    );
    agrees("cvt.s8.s32 %r3, %r1;", |a, _| i32::from(a as i8) as u32);
    agrees("cvt.u16.u32 %h1, %r1; cvt.u32.u16 %r3, %h1;", |a, _| a & 0xffff);
    agrees("cvt.rn.f32.s32 %f1, %r1; mov.b32 %r3, %f1;", |a, _| (a as i32 as f32).to_bits());
    agrees("cvt.rn.f32.u32 %f1, %r1; cvt.rzi.u32.f32 %r3, %f1;", |a, _| a as f32 as u32);
    agrees(
        "cvt.rn.f64.s32 %g1, %r1; cvt.rn.f64.s32 %g2, %r2; mul.rn.f64 %g3, %g1, %g2; cvt.rn.f32.f64 %f1, %g3; mov.b32 %r3, %f1;",
        |a, b| ((f64::from(a as i32) * f64::from(b as i32)) as f32).to_bits(),
    );
}

#[test]
fn floats() {
    let number = |bits: u32| f32::from_bits(bits);
    let clean = |value: f32| if value.is_nan() { 0x7fff_ffff } else { value.to_bits() };
    agrees("add.f32 %r3, %r1, %r2;", |a, b| clean(number(a) + number(b)));
    agrees("mul.rn.f32 %r3, %r1, %r2;", |a, b| clean(number(a) * number(b)));
    agrees("fma.rn.f32 %r3, %r1, %r2, 0f3F800000;", |a, b| clean(number(a).mul_add(number(b), 1.0)));
    agrees("div.rn.f32 %r3, %r1, %r2;", |a, b| clean(number(a) / number(b)));
    agrees("sqrt.rn.f32 %r3, %r1;", |a, _| clean(number(a).sqrt()));
    agrees("add.ftz.f32 %r3, %r1, 0f00000000;", |a, _| {
        let value = number(a);
        clean(if value.is_subnormal() { 0.0_f32.copysign(value) + 0.0 } else { value + 0.0 })
    });
    agrees("neg.f32 %r3, %r1;", |a, _| clean(-number(a)));
}

#[test]
fn an_unknown_instruction_is_named_where_it_is_executed() {
    let text = kernel(1, "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d0, {%r1, %r2}];");
    let report = run(&text, 1, 32, &["out:u32[4]"]).unwrap();
    let why = report.unfinished().unwrap();
    assert!(why.contains("`tex.2d.v4.f32.s32`: textures are not supported"), "{why}");
    // Behind a branch that nobody takes it does not matter.
    let text = kernel(1, "bra L; tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d0, {%r1, %r2}]; L:");
    assert!(run(&text, 1, 32, &["out:u32[4]"]).unwrap().is_clean());
}
