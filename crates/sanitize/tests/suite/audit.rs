//! The instructions of the PTX ISA 8.8 for targets from sm_70 to sm_90a: each form is executed, or
//! is one of the exceptions that the book prints.
//!
//! A form is a statement that the assembler accepts. Where `TILEWRIGHT_PTXAS` names an assembler,
//! all forms are assembled, which shows that the list is one of PTX and not of our own.

use std::fmt::Write;
use std::process::Command;

use tilewright_sanitize::{Argument, KernelLaunch, Options, sanitize};

/// What is not executed, by words that its message has, and the line of the book that says so.
const EXCEPTIONS: [(&str, &str); 9] = [
    (
        "the document and devices give different results",
        "scalar video instructions with `.sat` whose results an H200 does not hold as the document says",
    ),
    ("textures are not supported", "textures (`tex`, `tld4`, `txq`)"),
    ("surfaces are not supported", "surfaces (`suld`, `sust`, `sured`, `suq`)"),
    ("those of a multicast object", "`multimem`, whose addresses are those of a multicast object of several devices"),
    ("interleaved layouts are not supported", "tensor maps of interleaved layouts"),
    (
        "the special register",
        "the special registers `%pm0` to `%pm7`, `%envreg` but for 1 and 2, and `%reserved_smem_offset_0` and its like",
    ),
    ("constant variables are not told", "`isspacep.const`"),
    ("of targets from sm_100 on", "those that only later targets have"),
    ("how they lie with a swizzle of 32 bytes", "a B of `wgmma.mma_async.sp` in lines of 32 bytes along K"),
];

/// The forms of a chapter, with `*` for each of some words.
struct Chapter(&'static str, &'static [&'static str]);

/// Each text with one of the alternatives of each `{a,b,..}`.
fn expand(form: &str) -> Vec<String> {
    let Some((head, rest)) = form.split_once('<') else { return vec![form.to_string()] };
    let (choices, tail) = rest.split_once('>').unwrap();
    let tails = expand(tail);
    choices.split('|').flat_map(|choice| tails.iter().map(move |tail| format!("{head}{choice}{tail}"))).collect()
}

/// An entry with registers of all types around statements.
fn kernel(statements: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n\
         .global .align 128 .b8 room[4096];\n.const .align 8 .b8 fixed[64];\n\
         .func leaf(.reg .b32 %x) {{ ret; }}\n\
         .visible .entry f(.param .u64 p0, .param .align 64 .b8 map[128]) {{\n\
         .reg .pred %p<8>; .reg .b16 %h<24>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .b128 %q<4>;\n\
         .reg .f32 %f<40>; .reg .f64 %g<24>; .local .align 16 .b8 own[64]; .shared .align 1024 .b8 tile[32768];\n\
         .shared .align 8 .b8 bar[64]; .reg .b32 %tile, %bar;\n\
         mov.u64 %d0, room; mov.u32 %tile, tile; mov.u32 %bar, bar; mov.u64 %d1, 0; mov.u32 %r0, 0; mov.u32 %r1, 1;\n\
         mov.b32 %r3, 0x44444444; cvt.u64.u32 %d7, %bar; cvta.shared.u64 %d7, %d7;\n\
         {statements}\nret;\n}}\n"
    )
}

const CHAPTERS: &[Chapter] = &[
    Chapter(
        "Integer arithmetic",
        &[
            "<add|sub|mul.lo|mul.hi|div|rem|min|max>.<u16|s16> %h0, %h1, %h2;",
            "<add|sub|mul.lo|mul.hi|div|rem|min|max>.<u32|s32> %r4, %r0, %r1;",
            "<add|sub|mul.lo|mul.hi|div|rem|min|max>.<u64|s64> %d4, %d0, %d1;",
            "<add|min|max>.<u16x2|s16x2> %r4, %r0, %r1;",
            "<add|sub>.sat.s32 %r4, %r0, %r1;",
            "<min|max>.relu.<s32|s16x2> %r4, %r0, %r1;",
            "mul.wide.<u16|s16> %r4, %h0, %h1;",
            "mul.wide.<u32|s32> %d4, %r0, %r1;",
            "mad.<lo|hi>.<u16|s16> %h0, %h1, %h2, %h3;",
            "mad.<lo|hi>.<u32|s32> %r4, %r0, %r1, %r2;",
            "mad.<lo|hi>.<u64|s64> %d4, %d0, %d1, %d2;",
            "mad.hi.sat.s32 %r4, %r0, %r1, %r2;",
            "mad.wide.<u16|s16> %r4, %h0, %h1, %r2;",
            "mad.wide.<u32|s32> %d4, %r0, %r1, %d2;",
            "mul24.<lo|hi>.<u32|s32> %r4, %r0, %r1;",
            "mad24.<lo|hi>.<u32|s32> %r4, %r0, %r1, %r2;",
            "mad24.hi.sat.s32 %r4, %r0, %r1, %r2;",
            "sad.<u16|s16> %h0, %h1, %h2, %h3;",
            "sad.<u32|s32> %r4, %r0, %r1, %r2;",
            "sad.<u64|s64> %d4, %d0, %d1, %d2;",
            "<abs|neg>.s16 %h0, %h1;",
            "<abs|neg>.s32 %r4, %r0;",
            "<abs|neg>.s64 %d4, %d0;",
            "<popc|clz>.b32 %r4, %r0;",
            "<popc|clz>.b64 %r4, %d0;",
            "bfind.<u32|s32> %r4, %r0;",
            "bfind.shiftamt.<u64|s64> %r4, %d0;",
            "fns.b32 %r4, %r0, %r1, 1;",
            "brev.b32 %r4, %r0;",
            "brev.b64 %d4, %d0;",
            "bfe.<u32|s32> %r4, %r0, %r1, %r2;",
            "bfe.<u64|s64> %d4, %d0, %r1, %r2;",
            "bfi.b32 %r4, %r0, %r1, 3, 4;",
            "bfi.b64 %d4, %d0, %d1, 3, 4;",
            "szext.<clamp|wrap>.<u32|s32> %r4, %r0, %r1;",
            "bmsk.<clamp|wrap>.b32 %r4, %r0, %r1;",
            "dp4a.<u32|s32>.<u32|s32> %r4, %r0, %r1, %r2;",
            "dp2a.<lo|hi>.<u32|s32>.<u32|s32> %r4, %r0, %r1, %r2;",
            "add.cc.<u32|s32> %r4, %r0, %r1; addc.<cc.|>u32 %r5, %r0, %r1;",
            "sub.cc.<u32|s32> %r4, %r0, %r1; subc.<cc.|>u32 %r5, %r0, %r1;",
            "mad.<lo|hi>.cc.u32 %r4, %r0, %r1, %r2; madc.<lo|hi>.<cc.|>u32 %r5, %r0, %r1, %r2;",
            "add.cc.u64 %d4, %d0, %d1; addc.u64 %d5, %d0, %d1; sub.cc.u64 %d4, %d0, %d1; subc.u64 %d5, %d0, %d1;",
            "mad.lo.cc.u64 %d4, %d0, %d1, %d2; madc.hi.u64 %d5, %d0, %d1, %d2;",
        ],
    ),
    Chapter(
        "Floating point",
        &[
            "testp.<finite|infinite|number|notanumber|normal|subnormal>.f32 %p1, %f0;",
            "testp.<finite|infinite|number|notanumber|normal|subnormal>.f64 %p1, %g0;",
            "copysign.f32 %f1, %f2, %f3;",
            "copysign.f64 %g1, %g2, %g3;",
            "<add|sub|mul><|.rn|.rz|.rm|.rp><|.ftz><|.sat>.f32 %f1, %f2, %f3;",
            "<add|sub|mul><|.rn|.rz|.rm|.rp>.f64 %g1, %g2, %g3;",
            "<fma|mad>.<rn|rz|rm|rp><|.ftz><|.sat>.f32 %f1, %f2, %f3, %f4;",
            "<fma|mad>.<rn|rz|rm|rp>.f64 %g1, %g2, %g3, %g4;",
            "div.<approx|full|rn|rz|rm|rp><|.ftz>.f32 %f1, %f2, %f3;",
            "div.<rn|rz|rm|rp>.f64 %g1, %g2, %g3;",
            "<abs|neg><|.ftz>.f32 %f1, %f2;",
            "<abs|neg>.f64 %g1, %g2;",
            "<min|max><|.ftz><|.NaN><|.xorsign.abs>.f32 %f1, %f2, %f3;",
            "<min|max>.f64 %g1, %g2, %g3;",
            "<rcp|sqrt>.<approx|rn|rz|rm|rp><|.ftz>.f32 %f1, %f2;",
            "<rcp|sqrt>.<rn|rz|rm|rp>.f64 %g1, %g2;",
            "<rcp|rsqrt>.approx.ftz.f64 %g1, %g2;",
            "rsqrt.approx.f64 %g1, %g2;",
            "<rsqrt|sin|cos|lg2|ex2>.approx<|.ftz>.f32 %f1, %f2;",
            "tanh.approx.f32 %f1, %f2;",
            "<add|sub|mul><|.rn><|.ftz><|.sat>.f16 %h0, %h1, %h2;",
            "<add|sub|mul><|.rn><|.ftz><|.sat>.f16x2 %r4, %r0, %r1;",
            "<add|sub|mul><|.rn>.bf16 %h0, %h1, %h2;",
            "<add|sub|mul><|.rn>.bf16x2 %r4, %r0, %r1;",
            "fma.rn<|.ftz><|.sat|.relu>.f16 %h0, %h1, %h2, %h3;",
            "fma.rn<|.ftz><|.sat|.relu>.f16x2 %r4, %r0, %r1, %r2;",
            "fma.rn<|.relu>.bf16 %h0, %h1, %h2, %h3;",
            "fma.rn<|.relu>.bf16x2 %r4, %r0, %r1, %r2;",
            "fma.rn.oob<|.relu>.<f16|bf16> %h0, %h1, %h2, %h3;",
            "fma.rn.oob<|.relu>.<f16x2|bf16x2> %r4, %r0, %r1, %r2;",
            "<abs|neg><|.ftz>.f16 %h0, %h1;",
            "<abs|neg><|.ftz>.f16x2 %r4, %r0;",
            "<abs|neg>.bf16 %h0, %h1;",
            "<abs|neg>.bf16x2 %r4, %r0;",
            "<min|max><|.ftz><|.NaN><|.xorsign.abs>.f16 %h0, %h1, %h2;",
            "<min|max><|.ftz><|.NaN><|.xorsign.abs>.f16x2 %r4, %r0, %r1;",
            "<min|max><|.NaN><|.xorsign.abs>.bf16 %h0, %h1, %h2;",
            "<min|max><|.NaN><|.xorsign.abs>.bf16x2 %r4, %r0, %r1;",
            "<tanh|ex2>.approx.f16 %h0, %h1;",
            "<tanh|ex2>.approx.f16x2 %r4, %r0;",
            "tanh.approx.bf16 %h0, %h1; ex2.approx.ftz.bf16 %h0, %h1;",
            "tanh.approx.bf16x2 %r4, %r0; ex2.approx.ftz.bf16x2 %r4, %r0;",
        ],
    ),
    Chapter(
        "Comparison and logic",
        &[
            "setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.u32 %p1, %r0, %r1;",
            "setp.<eq|ne|lt|le|gt|ge>.<s32|u32>  %p1|%p2, %r0, %r1;",
            "setp.<eq|ne>.b32 %p1, %r0, %r1;",
            "setp.<lt|ge>.<and|or|xor>.<s64|u64> %p1|%p2, %d0, %d1, !%p3;",
            "setp.<lt|ge>.<s16|u16> %p1, %h0, %h1;",
            "setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan><|.ftz>.f32 %p1, %f0, %f1;",
            "setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.f64 %p1, %g0, %g1;",
            "setp.<lt|ltu|num><|.ftz>.f16 %p1, %h0, %h1;",
            "setp.<lt|ltu|num>.bf16 %p1, %h0, %h1;",
            "setp.<lt|ltu|num>.<f16x2|bf16x2> %p1|%p2, %r0, %r1;",
            "setp.<lt|ltu|num>.<and|or|xor>.f16x2 %p1|%p2, %r0, %r1, %p3;",
            "set.<lt|ge>.<u32|s32>.<u32|s32> %r4, %r0, %r1;",
            "set.<lt|ge>.f32.<u32|s32> %f1, %r0, %r1;",
            "set.<lt|ltu>.<and|or|xor>.u32.f32 %r4, %f0, %f1, %p1;",
            "set.<lt|ltu>.f16.f16 %h0, %h1, %h2;",
            "set.<lt|ltu>.<u32|s32>.f16 %r4, %h1, %h2;",
            "set.<lt|ltu>.f16x2.f16x2 %r4, %r0, %r1;",
            "set.<lt|ltu>.<and|or|xor>.<f16x2.f16x2|bf16x2.bf16x2> %r4, %r0, %r1, %p1;",
            "selp.<b16|u16|s16> %h0, %h1, %h2, %p1;",
            "selp.<b32|u32|s32> %r4, %r0, %r1, %p1;",
            "selp.f32 %f1, %f2, %f3, %p1; selp.f64 %g1, %g2, %g3, %p1; selp.b64 %d4, %d0, %d1, %p1;",
            "slct.<u32|s32|b32>.s32 %r4, %r0, %r1, %r2;",
            "slct<|.ftz>.<u32|b32>.f32 %r4, %r0, %r1, %f0;",
            "<and|or|xor>.pred %p1, %p2, %p3; not.pred %p1, %p2;",
            "<and|or|xor>.b16 %h0, %h1, %h2; <not|cnot>.b16 %h0, %h1;",
            "<and|or|xor>.b32 %r4, %r0, %r1; <not|cnot>.b32 %r4, %r0;",
            "<and|or|xor>.b64 %d4, %d0, %d1; <not|cnot>.b64 %d4, %d0;",
            "lop3.b32 %r4, %r0, %r1, %r2, 0x1b;",
            "lop3.<or|and>.b32 %r4|%p1, %r0, %r1, %r2, 0x1b, %p2;",
            "shl.b16 %h0, %h1, %r1; shl.b32 %r4, %r0, %r1; shl.b64 %d4, %d0, %r1;",
            "shr.<b16|u16|s16> %h0, %h1, %r1;",
            "shr.<b32|u32|s32> %r4, %r0, %r1;",
            "shr.<b64|u64|s64> %d4, %d0, %r1;",
            "shf.<l|r>.<clamp|wrap>.b32 %r4, %r0, %r1, %r2;",
            "prmt.b32<|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16> %r4, %r0, %r1, %r2;",
        ],
    ),
    Chapter(
        "Conversion and moves",
        &[
            "mov.pred %p1, %p2; mov.b16 %h0, %h1; mov.u32 %r4, %r0; mov.u64 %d4, %d0; mov.f32 %f1, %f2; mov.f64 %g1, %g2;",
            "mov.b32 %r4, {%h0, %h1}; mov.b32 {%h0, %h1}, %r4; mov.b64 %d4, {%r0, %r1}; mov.b64 {_, %r1}, %d4;",
            "mov.b64 %d4, {%h0, %h1, %h2, %h3}; mov.b128 %q0, {%d0, %d1}; mov.b128 {%d4, %d5}, %q0;",
            "mov.u64 %d4, room; mov.u64 %d4, leaf; mov.u64 %d4, room+16;",
            "cvt<|.sat>.<u8|s8>.<u16|s16> %h0, %h1;",
            "cvt.<u16|s16>.<u32|s32> %h0, %r0; cvt.<u32|s32>.<u64|s64> %r4, %d0; cvt.<u64|s64>.<u8|s8> %d4, %r0;",
            "cvt.<rn|rz|rm|rp>.f32.<u32|s32> %f1, %r0; cvt.<rn|rz|rm|rp>.f64.<u64|s64> %g1, %d0;",
            "cvt.<rni|rzi|rmi|rpi><|.ftz><|.sat>.<u32|s32>.f32 %r4, %f0;",
            "cvt.<rni|rzi|rmi|rpi>.<u64|s64>.f64 %d4, %g0;",
            "cvt.<rni|rzi|rmi|rpi><|.ftz><|.sat>.f32.f32 %f1, %f0;",
            "cvt.<rni|rzi|rmi|rpi>.f64.f64 %g1, %g0;",
            "cvt.<rn|rz|rm|rp><|.ftz><|.sat>.f32.f64 %f1, %g0; cvt<|.ftz>.f64.f32 %g1, %f0;",
            "cvt.<rn|rz><|.relu><|.satfinite>.f16.f32 %h0, %f0;",
            "cvt.<rn|rz><|.relu><|.satfinite>.bf16.f32 %h0, %f0;",
            "cvt.<rn|rz><|.relu><|.satfinite>.<f16x2|bf16x2>.f32 %r4, %f0, %f1;",
            "cvt.f32.<f16|bf16> %f1, %h0; cvt.f64.f16 %g1, %h0; cvt.rn.f16.f64 %h0, %g0;",
            "cvt.<rn|rz>.<f16|bf16>.<u16|s16> %h0, %h1; cvt.rn.f16.<u32|s32> %h0, %r0; cvt.rn.bf16.<u64|s64> %h0, %d0;",
            "cvt.rzi.<u16|s16>.<f16|bf16> %h0, %h1; cvt.rzi.<u64|s64>.f16 %d4, %h1;",
            "cvt.<rn|rz>.bf16.f16 %h0, %h1; cvt.rn.f16.bf16 %h0, %h1;",
            "cvt.rna<|.satfinite>.tf32.f32 %r4, %f0; cvt.<rn|rz><|.relu>.tf32.f32 %r4, %f0;",
            "cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f32 %h0, %f0, %f1;",
            "cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f16x2 %h0, %r0;",
            "cvt.rn<|.relu>.f16x2.<e4m3x2|e5m2x2> %r4, %h0;",
            "cvt.pack.sat.<u16|s16>.s32 %r4, %r0, %r1;",
            "cvt.pack.sat.<u8|s8|u4|s4|u2|s2>.s32.b32 %r4, %r0, %r1, %r2;",
            "cvta.<global|shared|local|const|param|shared::cluster>.u64 %d4, %d1;",
            "cvta.to.<global|shared|local|const|shared::cluster>.u64 %d4, %d1;",
            "isspacep.<global|shared|shared::cta|shared::cluster|local|param|const> %p1, %d0;",
            "mapa.u64 %d4, %d1, %r0; mapa.shared::cluster.u32 %r4, %tile, %r0;",
            "getctarank.shared::cluster.u32 %r4, %tile;",
        ],
    ),
    Chapter(
        "Video",
        &[
            "<vadd|vsub|vabsdiff|vmin|vmax>.<u32|s32>.<u32|s32>.s32<|.sat><|.add|.min|.max> %r4, %r0.b1, %r1.h0, %r2;",
            "<vadd|vsub|vabsdiff|vmin|vmax>.s32.u32.s32<|.sat> %r4.<b0|b3|h1>, %r0, %r1.b2, %r2;",
            "<vshl|vshr>.<u32|s32>.<u32|s32>.u32<|.sat>.<clamp|wrap> %r4, %r0.h1, %r1.b0;",
            "vmad.<s32.s32.u32|s32.s32.s32|u32.u32.u32><|.sat><|.shr7|.shr15> %r4, %r0.h0, %r1.b1, %r2;",
            "vmad.s32.s32.s32 %r4, -%r0.h0, %r1, %r2; vmad.s32.s32.s32 %r4, %r0, %r1, -%r2; vmad.s32.s32.s32.po %r4, %r0, %r1, %r2;",
            "vset.<u32|s32>.<u32|s32>.<eq|ne|lt|le|gt|ge> %r4, %r0.b0, %r1;",
            "vset.s32.s32.lt.<add|min|max> %r4, %r0, %r1, %r2; vset.s32.s32.lt %r4.h0, %r0, %r1, %r2;",
            "<vadd|vsub|vavrg|vabsdiff|vmin|vmax>2.<u32|s32>.<u32|s32>.s32<|.sat|.add> %r4, %r0, %r1, %r2;",
            "<vadd|vsub|vavrg|vabsdiff|vmin|vmax>4.<u32|s32>.<u32|s32>.s32<|.sat|.add> %r4.b20, %r0.b7120, %r1.b0123, %r2;",
            "vset2.<u32|s32>.s32.<eq|lt><|.add> %r4.h1, %r0.h20, %r1.h31, %r2;",
            "vset4.<u32|s32>.s32.<ne|ge><|.add> %r4, %r0, %r1, %r2;",
        ],
    ),
    Chapter(
        "Memory",
        &[
            "ld<|.weak|.volatile|.relaxed.cta|.relaxed.gpu|.acquire.sys>.global<|.v2|.v4>.b32 LIST, [%d0];",
            "ld.global<|.ca|.cg|.cs|.lu|.cv>.b32 %r4, [%d0]; ld.global<|.ca|.cg|.cs>.nc.b32 %r4, [%d0];",
            "ld.global<|.L1::evict_normal|.L1::evict_last|.L1::no_allocate|.L1::evict_first><|.L2::64B|.L2::128B>.b32 %r4, [%d0];",
            "createpolicy.fractional.L2::evict_last.b64 %d4, 1.0; ld.global<|.nc>.L2::cache_hint.b32 %r4, [%d0], %d4;",
            "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d4, [%d0], 128, 256;",
            "ld.global<|.nc><.v2.b64|.v2.f64> {%d4, %d5}, [%d0]; ld.global.b128 %q0, [%d0]; ldu.global.b32 %r4, [%d0];",
            "ld.global.<b8|u8|s8> %r4, [%d0]; ld.global.<b16|u16|s16> %r4, [%d0]; ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%d0];",
            "ld.mmio.relaxed.sys.global.u32 %r4, [%d0]; ld.global.b32 %r4, [%d0].unified;",
            "ld.const.b32 %r4, [fixed]; ld.param.b64 %d4, [p0]; ld.local.b32 %r4, [own]; ld.shared<|::cta|::cluster>.b32 %r4, [%tile];",
            "st<|.weak|.volatile|.relaxed.cluster|.release.gpu>.global<|.v2|.v4>.b32 [%d0], LIST;",
            "st.global<|.wb|.cg|.cs|.wt>.b32 [%d0], %r0; st.global.L1::no_allocate.b32 [%d0], %r0; st.global.b128 [%d0], %q0;",
            "st.mmio.relaxed.sys.global.u32 [%d0], %r0; st.shared<|::cta|::cluster>.v2.b64 [%tile], {%d0, %d1}; st.local.b8 [own], %r0;",
            "prefetch<.global|.local>.<L1|L2> [%d0]; prefetch.global.L2::evict_<last|normal> [%d0]; prefetchu.L1 [%d0];",
            "prefetch.tensormap [%d0]; discard.global.L2 [%d0], 128; applypriority.global.L2::evict_normal [%d0], 128;",
            "atom<|.relaxed.cta|.acq_rel.gpu|.release.sys><|.global>.<add|min|max>.<u32|s32|u64> RESULT, [%d0], VALUE;",
            "atom.<shared|shared::cluster>.<and|or|xor|exch>.b32 %r4, [%tile], %r0; atom.global.<and|or|xor|exch>.b64 %d4, [%d0], %d1;",
            "atom.global.<inc|dec>.u32 %r4, [%d0], %r0; atom.global.cas.b16 %h0, [%d0], %h1, %h2; atom.cas.b32 %r4, [%d0], %r0, %r1;",
            "atom.global.cas.b64 %d4, [%d0], %d1, %d2; atom.global.<cas.b128 %q0, [%d0], %q1, %q2|exch.b128 %q0, [%d0], %q1>;",
            "atom.global.add.f32 %f0, [%d0], %f1; atom.global.add.f64 %g0, [%d0], %g1; atom.global.add.noftz.<f16|bf16> %h0, [%d0], %h1;",
            "atom.global.add.noftz.<f16x2|bf16x2> %r4, [%d0], %r1; atom.global.<v2|v4>.f32.add LISTF, [%d0], LISTF;",
            "atom.global.v4.f16.<add|min|max>.noftz {%h0, %h1, %h2, %h3}, [%d0], {%h4, %h5, %h6, %h7};",
            "atom.global.v2.bf16x2.<add|min|max>.noftz {%r4, %r5}, [%d0], {%r0, %r1};",
            "red<|.relaxed.gpu|.release.cluster>.global.<add.u64 [%d0], %d1|add.f32 [%d0], %f1|and.b32 [%d0], %r1|max.s64 [%d0], %d1>;",
            "red.global.v4.f32.add [%d0], {%f0, %f1, %f2, %f3}; red.global.v8.bf16.add.noftz [%d0], {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7};",
            "alloca.u32 %r4, %r1; alloca.u64 %d4, %d1, 16; stacksave.u32 %r4; stackrestore.u32 %r4; stacksave.u64 %d4; stackrestore.u64 %d4;",
        ],
    ),
    Chapter(
        "Copies and barriers in shared memory",
        &[
            "cp.async.ca.shared.global<|.L2::64B|.L2::128B|.L2::256B> [%tile], [%d0], <4|8|16>;",
            "cp.async.cg.shared::cta.global [%tile], [%d0], 16<|, 8|, %r0>; cp.async.ca.shared.global [%tile], [%d0], 4, %p1;",
            "createpolicy.fractional.L2::evict_first.b64 %d4; cp.async.cg.shared.global.L2::cache_hint [%tile], [%d0], 16, %d4;",
            "cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;",
            "BARRIER cp.async.mbarrier.arrive<|.noinc><.shared|.shared::cta>.b64 [%bar]; cp.async.mbarrier.arrive.noinc.b64 [%d7];",
            "BARRIER cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%d0], 16, [%bar];",
            "BARRIER cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%tile], [%tile], 16, [%bar];",
            "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%tile], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group<|.read> 0;",
            "cp.async.bulk.prefetch.L2.global [%d0], 16; cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%d0, {%r0}];",
            "BARRIER cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.<and.b32|or.b32|xor.b32|add.u32|add.s32|add.u64|inc.u32|dec.u32|min.u32|max.s32> [%tile], [%tile], 16, [%bar];",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.<and.b64|or.b32|xor.b64|add.u32|add.s32|add.u64|add.f32|add.f64|add.noftz.f16|add.noftz.bf16|min.f16|max.bf16|min.u64|max.s32|inc.u32|dec.u32> [%d0], [%tile], 16;",
            "BARRIER st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.<b32|u32|s32> [%tile], %r0, [%bar];",
            "BARRIER st.async.shared::cluster.mbarrier::complete_tx::bytes<.v2.b32 [%tile], {%r0, %r1}|.v4.f32 [%tile], {%f0, %f1, %f2, %f3}|.b64 [%tile], %d0>, [%bar];",
            "BARRIER red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.<inc.u32|dec.u32|min.s32|max.u32|add.u32|and.b32|or.b32|xor.b32> [%tile], %r0, [%bar];",
            "BARRIER red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%tile], %d0, [%bar];",
            "BARRIER mbarrier.arrive<|.release.cta|.relaxed.cta|.release.cluster><.shared|.shared::cta>.b64 %d4, [%bar]<|, 1>;",
            "BARRIER mbarrier.arrive<|.release.cta|.relaxed.cluster>.b64 %d4, [%d7]<|, 1>; mbarrier.arrive_drop.b64 %d4, [%d7];",
            "BARRIER mbarrier.arrive.expect_tx<|.release.cta>.shared.b64 %d4, [%bar], 16; mbarrier.pending_count.b64 %r4, %d4;",
            "BARRIER mbarrier.arrive.noComplete.shared.b64 %d4, [%bar], 1; mbarrier.arrive_drop.noComplete.shared.b64 %d4, [%bar], 1;",
            "BARRIER mbarrier.arrive_drop<|.expect_tx><|.release.cta>.shared.b64 %d4, [%bar], 1;",
            "BARRIER mbarrier.arrive<|.expect_tx><|.release.cluster>.shared::cluster.b64 _, [%bar], 1;",
            "BARRIER mbarrier.<expect_tx|complete_tx><|.relaxed.cta|.relaxed.cluster>.shared::cluster.b64 [%bar], 16;",
            "BARRIER mbarrier.arrive.shared.b64 %d4, [%bar]; mbarrier.<test_wait|try_wait><|.acquire.cta|.relaxed.cta|.acquire.cluster>.shared.b64 %p1, [%bar], %d4;",
            "BARRIER mbarrier.<test_wait|try_wait>.parity<|.acquire.cta>.shared::cta.b64 %p1, [%bar], 1; mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 1, 100;",
            "BARRIER mbarrier.inval<.shared|.shared::cta>.b64 [%bar]; mbarrier.init.b64 [%d7], 1; mbarrier.inval.b64 [%d7];",
            "BARRIER cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile], [MAP, {%r0}], [%bar];",
            "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [MAP, {%r0}], [%tile];",
            "cp.reduce.async.bulk.tensor.1d.global.shared::cta.<add|min|max|inc|dec|and|or|xor>.tile.bulk_group [MAP, {%r0}], [%tile];",
            "tensormap.replace.tile.<global_address.shared::cta.b1024.b64 [%tile], %d1|rank.shared::cta.b1024.b32 [%tile], 1>;",
            "tensormap.replace.tile.<box_dim|global_dim|element_stride>.global.b1024.b32 [%d0], 0, 8;",
            "tensormap.replace.tile.global_stride.global.b1024.b64 [%d0], 0, %d1; tensormap.replace.tile.<elemtype|swizzle_mode|fill_mode>.global.b1024.b32 [%d0], 0;",
            "tensormap.replace.tile.interleave_layout.global.b1024.b32 [%d0], <0|1>;",
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.<cta|cluster|gpu|sys>.sync.aligned [%d0], [%tile], 128;",
        ],
    ),
    Chapter(
        "Synchronisation and flow",
        &[
            "bar.sync 0; barrier.sync 0; bar.cta.sync 1, 32; barrier.cta.sync.aligned 0; bar.warp.sync 0xffffffff;",
            "bar.arrive 1, 64; barrier.cta.arrive 2, 64;",
            "bar.red.popc.u32 %r4, 0, %p1; bar.red.<and|or>.pred %p2, 0, %p1; barrier.cta.red.popc.aligned.u32 %r4, 0, 32, !%p1;",
            "barrier.cluster.arrive<|.release|.relaxed><|.aligned>; barrier.cluster.wait<|.acquire><|.aligned>;",
            "membar.<cta|gl|sys>; fence<|.sc|.acq_rel>.<cta|cluster|gpu|sys>; fence.<acquire.sync_restrict::shared::cluster|release.sync_restrict::shared::cta>.cluster;",
            "fence.mbarrier_init.release.cluster; fence.proxy.alias; fence.proxy.async<|.global|.shared::cta|.shared::cluster>;",
            "fence.proxy.tensormap::generic.release.<cta|cluster|gpu|sys>; fence.proxy.tensormap::generic.acquire.gpu [%d0], 128;",
            "vote.sync.<all|any|uni>.pred %p2, %p1, -1; vote.sync.ballot.b32 %r4, %p1, -1;",
            "match.any.sync.<b32 %r4, %r0|b64 %r4, %d0>, -1; match.all.sync.b32 %r4|%p1, %r0, -1; match.all.sync.b64 %r4, %d0, -1;",
            "redux.sync.<add|min|max>.<u32|s32> %r4, %r0, -1; redux.sync.<and|or|xor>.b32 %r4, %r0, -1;",
            "shfl.sync.<up|down|bfly|idx>.b32 %r4|%p1, %r0, 1, 31, -1; elect.sync %r4|%p1, -1; elect.sync _|%p1, -1;",
            "activemask.b32 %r4; griddepcontrol.<launch_dependents|wait>; nanosleep.u32 10; pmevent 1; pmevent.mask 3;",
            "setmaxnreg.<inc|dec>.sync.aligned.u32 64;",
            "bra.uni L; L: call leaf, (%r0); call.uni leaf, (%r0);",
            "LIST1: .branchtargets L1, L2; mov.u32 %r4, 0; brx.idx %r4, LIST1; L1: L2:",
        ],
    ),
    Chapter(
        "Matrices",
        &[
            "ldmatrix.sync.aligned.m8n8.<x1|x1.trans>.shared.b16 {%r4}, [%tile]; ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {R2}, [%tile]; ldmatrix.sync.aligned.m8n8.x4<|.trans>.shared.b16 {R4}, [%tile];",
            "mma.sync.aligned.m16n8k16.row.col.f32.<f16.f16|bf16.bf16>.f32 {F4}, {R4}, {R2}, {F4};",
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {R2}, {R2}, {%r0}, {R2};",
            "mma.sync.aligned.m8n8k4.<row|col>.<row|col>.f32.f16.f16.f32 {F8}, {R2}, {R2}, {F8};",
            "mma.sync.aligned.m16n8k<4.row.col.f32.tf32.tf32.f32 {F4}, {R2}, {%r0}|8.row.col.f32.tf32.tf32.f32 {F4}, {R4}, {R2}>, {F4};",
            "mma.sync.aligned.m16n8k32.row.col.f32.<e4m3|e5m2>.<e4m3|e5m2>.f32 {F4}, {R4}, {R2}, {F4};",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g0, %g1}, {%g2}, {%g3}, {%g0, %g1};",
            "mma.sync.aligned.m16n8k16.row.col<|.satfinite>.s32.<s8|u8>.<s8|u8>.s32 {R4}, {R2}, {%r0}, {R4};",
            "mma.sync.aligned.m16n8k64.row.col<|.satfinite>.s32.<s4|u4>.<s4|u4>.s32 {R4}, {R4}, {R2}, {R4};",
            "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.<xor|and>.popc {R4}, {R4}, {R2}, {R4};",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k16.row.col.f32.<f16.f16|bf16.bf16>.f32 {F4}, {R2}, {R2}, {F4}, %r3, 3;",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k32.row.col.f32.<f16.f16|bf16.bf16>.f32 {F4}, {R4}, {R4}, {F4}, %r3, 1;",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {R2}, {R4}, {R4}, {R2}, %r3, 1;",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k<8.row.col.f32.tf32.tf32.f32 {F4}, {R2}, {R2}, {F4}, %r3, 2|16.row.col.f32.tf32.tf32.f32 {F4}, {R4}, {R4}, {F4}, %r3, 0>;",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k<32.row.col.s32.s8.u8.s32 {R4}, {R2}, {R2}, {R4}, %r3, 1|64.row.col.satfinite.s32.u8.s8.s32 {R4}, {R4}, {R4}, {R4}, %r3, 0>;",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k<64.row.col.s32.s4.u4.s32 {R4}, {R2}, {R2}, {R4}, %r3, 1|128.row.col.s32.u4.s4.s32 {R4}, {R4}, {R4}, {R4}, %r3, 0>;",
            "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k64.row.col.f32.<e4m3|e5m2>.e4m3.f32 {F4}, {R4}, {R4}, {F4}, %r3, 0;",
            "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r0; stmatrix.sync.aligned.m8n8.x2<|.trans>.shared.b16 [%tile], {R2};",
            "wmma.load.<a|b>.sync.aligned.<row|col>.m16n16k16.shared.<f16 {R8}|bf16 {R4}|s8 {R2}|u8 {R2}>, [%tile];",
            "wmma.load.c.sync.aligned.<row|col>.m16n16k16.shared.<f16 {R4}|f32 {F8}|s32 {R8}>, [%tile]; wmma.store.d.sync.aligned.row.m32n8k16.shared.f32 [%tile], {F8};",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.<f32.f32 {F8}, {R8}, {R8}, {F8}|f16.f16 {R4}, {R8}, {R8}, {R4}|f32.f16 {F8}, {R8}, {R8}, {R4}|f16.f32 {R4}, {R8}, {R8}, {F8}>;",
            "wmma.mma.sync.aligned.row.col.<m16n16k16.f32.bf16.bf16.f32 {F8}, {R4}, {R4}, {F8}|m16n16k8.f32.tf32.tf32.f32 {F8}, {R4}, {R4}, {F8}|m32n8k16.s32.s8.s8.s32 {R8}, {R4}, {%r0}, {R8}>;",
            "wmma.mma.<sync.aligned.row.col.m8n8k32.s32.s4.s4.s32|and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32> {R2}, {%r0}, {%r1}, {R2};",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m8n8k4.rn.f64.f64.f64.f64 {%g0, %g1}, {%g2}, {%g3}, {%g0, %g1};",
        ],
    ),
    Chapter(
        "Products of warpgroups",
        &[
            "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
            "wgmma.mma_async.sync.aligned.m64n8k16.<f32.f16.f16 {F4}|f32.bf16.bf16 {F4}|f16.f16.f16 {R2}>, DESC, DESC, %p1, 1, -1, <0|1>, <0|1>;",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {F4}, {R4}, DESC, %p1, 1, 1, 1;",
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {F4}, <DESC|{R4}>, DESC, %p1, -1, 1;",
            "wgmma.mma_async.sync.aligned.m64n8k32.<f32|f16>.<e4m3|e5m2>.<e4m3|e5m2> {SUM}, DESC, DESC, %p1, 1, 1;",
            "wgmma.mma_async.sync.aligned.m64n8k32<|.satfinite>.s32.<s8|u8>.<s8|u8> {R4}, <DESC|{R4}>, DESC, %p1;",
            "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {R4}, <DESC|{R4}>, DESC, %p1;",
            "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.<f16.f16|bf16.bf16> {F4}, DESC, DESC, %r3, <0|1>, %p1, 1, -1, <0|1>, <0|1>;",
            "wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {R2}, {R4}, DESC, %r3, 1, %p1, 1, 1, 0;",
            "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 {F4}, <DESC|{R4}>, DESC, %r3, 1, %p1, 1, 1;",
            "wgmma.mma_async.sp.sync.aligned.m64n8k64.<f32|f16>.<e4m3|e5m2>.e5m2 {SUM}, DESC, DESC, %r3, 0, %p1, 1, 1;",
            "wgmma.mma_async.sp.sync.aligned.m64n8k64<|.satfinite>.s32.<s8|u8>.s8 {R4}, DESC, DESC, %r3, 0, %p1;",
        ],
    ),
    Chapter(
        "Textures, surfaces and several devices",
        &[
            "tex.2d.v4.f32.s32 {F4}, [%d1, {%r0, %r1}]; tex.1d.v4.s32.f32 {R4}, [%d1, {%f0}];",
            "<tld4.r.2d.v4.f32.f32 {F4}, [%d1, {%f0, %f1}]|txq.width.b32 %r4, [%d1]>;",
            "<suld.b.1d.b32.trap %r4, [%d1, {%r0}]|sust.b.1d.b32.trap [%d1, {%r0}], %r1|suq.width.b32 %r4, [%d1]>;",
            "sured.b.add.1d.u32.trap [%d1, {%r0}], %r1;",
            "multimem.ld_reduce.relaxed.gpu.global.<add.u32 %r4|min.s32 %r4|and.b32 %r4|add.f32 %f1>, [%d0];",
            "multimem.ld_reduce.weak.global.add.<v4.f32 {F4}|acc::f32.v4.f16x2 {R4}>, [%d0];",
            "multimem.st.<weak.global.b32|release.sys.global.f32> [%d0], %r0; multimem.red.relaxed.gpu.global.add.u32 [%d0], %r0;",
        ],
    ),
    Chapter(
        "Special registers",
        &[
            "mov.u32 %r4, <%tid.x|%ntid.y|%ctaid.z|%nctaid.x|%laneid|%warpid|%nwarpid|%smid|%nsmid|%lanemask_eq|%lanemask_le|%lanemask_lt|%lanemask_ge|%lanemask_gt|%clock|%clock_hi>;",
            "mov.u32 %r4, <%clusterid.x|%nclusterid.y|%cluster_ctaid.z|%cluster_nctaid.x|%cluster_ctarank|%cluster_nctarank|%total_smem_size|%aggr_smem_size|%dynamic_smem_size>;",
            "mov.u64 %d4, <%gridid|%clock64|%globaltimer>; mov.u32 %r4, <%globaltimer_lo|%globaltimer_hi>; mov.pred %p1, %is_explicit_cluster;",
            "mov.u32 %r4, <%pm0|%pm7|%envreg0|%envreg31>; mov.u64 %d4, %pm0_64;",
        ],
    ),
];

/// The statements of a form, with the words in capitals replaced.
fn statements(form: &str) -> String {
    let list = |letter: &str, first: usize, count: usize| {
        (first..first + count).map(|at| format!("%{letter}{at}")).collect::<Vec<_>>().join(", ")
    };
    let mut text = form.to_string();
    if text.contains("BARRIER") {
        text = text.replace("BARRIER", "mbarrier.init.shared.b64 [%bar], 32;");
    }
    let width = match () {
        () if text.contains(".v4") => 4,
        () if text.contains(".v2") => 2,
        () => 1,
    };
    let vector = |letter: &str| match width {
        1 => format!("%{letter}4"),
        width => format!("{{{}}}", list(letter, 4, width)),
    };
    text = text.replace("LISTF", &vector("f"));
    if !text.contains("LIST1") {
        text = text.replace("LIST", &vector("r"));
    }
    let is_long = text.contains("u64");
    text = text.replace("RESULT", if is_long { "%d4" } else { "%r4" });
    text = text.replace("VALUE", if is_long { "%d1" } else { "%r0" });
    text = text.replace("{SUM}", if text.contains(".f16.e") { "{R2}" } else { "{F4}" });
    text = text.replace("DESC", "%d9");
    text = text.replace("MAP", "%d8");
    for count in [8, 4, 2] {
        text = text.replace(&format!("{{F{count}}}"), &format!("{{{}}}", list("f", 4, count)));
        text = text.replace(&format!("{{R{count}}}"), &format!("{{{}}}", list("r", 4, count)));
    }
    // A descriptor of lines of 128 bytes, and the map among the parameters.
    let described = "shr.u32 %r20, %tile, 4; cvt.u64.u32 %d9, %r20; or.b64 %d9, %d9, 0x4000004000010000; mov.b64 %d8, map; cvta.param.u64 %d8, %d8;";
    match text.contains("%d9") || text.contains("%d8") {
        true => format!("{described} {text}"),
        false => text,
    }
}

/// What the reader says of a form that it does not execute: the message of a refusal.
fn refusal(text: &str) -> Option<String> {
    let map = "map:inout:f32[1024]=ones:box=64";
    let mut launch = KernelLaunch::new("f", [1, 1, 1], [128, 1, 1]);
    for argument in ["out:u32[1024]", map] {
        launch = launch.argument(Argument::read("", argument, 0).unwrap());
    }
    let options = Options { limit: 1 << 20, cores: Some(1), ..Options::default() };
    match sanitize(text, &launch, &options) {
        Err(why) => Some(why.to_string()),
        // Other ends are those of a program that does nothing sensible, such as one that waits.
        Ok(report) => report.unfinished().filter(|why| {
            [
                "is not supported",
                "are not supported",
                "is not known",
                "there is no",
                "expected",
                "missing",
                "sm_100",
                "has a form",
            ]
            .iter()
            .chain(EXCEPTIONS.iter().map(|(words, _)| words))
            .any(|words| why.contains(words))
        }),
    }
}

#[test]
fn each_form_of_the_isa_is_executed_or_a_stated_exception() {
    let (mut executed, mut excepted, mut wrong) = (0, 0, String::new());
    for Chapter(name, forms) in CHAPTERS {
        for form in forms.iter().flat_map(|form| expand(form)) {
            match refusal(&kernel(&statements(&form))) {
                None => executed += 1,
                Some(why) if EXCEPTIONS.iter().any(|(words, _)| why.contains(words)) => excepted += 1,
                Some(why) => {
                    let _ = writeln!(wrong, "{name}: {form}\n    {why}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    println!("{executed} forms are executed, {excepted} are exceptions");
    assert!(executed > 2100 && excepted > 100, "{executed} and {excepted}");
}

#[test]
fn the_exceptions_are_those_of_the_book() {
    let book = include_str!("../../../../docs/book/src/sanitize.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for (_, line) in EXCEPTIONS {
        assert!(book.contains(line), "the book does not say: {line}");
    }
}

/// All forms in one module, so that the assembler is called once.
#[test]
fn the_assembler_accepts_each_form() {
    let Ok(assembler) = std::env::var("TILEWRIGHT_PTXAS") else { return };
    let path = std::env::temp_dir().join(format!("audit-{}.ptx", std::process::id()));
    let assemble = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let command = Command::new(&assembler).args(["-arch=sm_90a", "-O0", "-o", "/dev/null"]).arg(&path).output();
        let output = command.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        (!output.status.success()).then_some(errors)
    };
    let mut wrong = String::new();
    for Chapter(name, forms) in CHAPTERS {
        for form in *forms {
            // Each alternative stands in a block of its own.
            let all: String = expand(form).iter().map(|form| format!("{{ {} }}\n", statements(form))).collect();
            if let Some(errors) = assemble(&kernel(&all)) {
                let first: Vec<&str> = errors.lines().take(2).collect();
                let _ = writeln!(wrong, "{name}: {form}\n    {}", first.join("\n    "));
            }
        }
    }
    let _ = std::fs::remove_file(&path);
    assert!(wrong.is_empty(), "{wrong}");
}
