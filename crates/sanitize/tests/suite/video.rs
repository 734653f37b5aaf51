//! Video instructions from their text to their results, against laws written with wide integers.

use tilewright_sanitize::{Argument, Array, Direction, Element, KernelLaunch, Options, sanitize};

use crate::isa::random::Random;
use crate::tools::kernel;

type Law = fn(u32, u32, u32) -> i64;

/// Words that are likely to reach the ends of parts.
fn words(random: &mut Random) -> Vec<u32> {
    let special = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff_ffff, 0x7fff_ffff, 0x8000_0000, 0x80ff_7f01];
    let mut word = || match random.below(3) {
        0 => special[random.below(special.len() as u64) as usize],
        _ => random.bits() as u32,
    };
    (0..128).map(|_| word()).collect()
}

/// Runs a statement on `%r1`, `%r2` and `%r3` in 128 threads.
fn agrees(statement: &str, law: Law) {
    let mut random = Random::new(statement.len() as u64 * 13);
    let given: Vec<Vec<u32>> = (0..3).map(|_| words(&mut random)).collect();
    let text = kernel(
        4,
        &format!(
            "add.u64 %d0, %d0, %at4; add.u64 %d1, %d1, %at4; add.u64 %d2, %d2, %at4; add.u64 %d3, %d3, %at4;
             ld.global.u32 %r1, [%d0]; ld.global.u32 %r2, [%d1]; ld.global.u32 %r3, [%d2];
             {statement} st.global.u32 [%d3], %r4;"
        ),
    );
    let array = |direction, words: &[u32]| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Argument::Array(Array {
            name: String::new(),
            direction,
            element: Element::Unsigned(4),
            shape: vec![128],
            bytes,
        })
    };
    let mut launch = KernelLaunch::new("f", [1, 1, 1], [128, 1, 1]);
    for words in &given {
        launch = launch.argument(array(Direction::In, words));
    }
    launch = launch.argument(array(Direction::Out, &[0; 128]));
    let report = sanitize(&text, &launch, &Options::default()).unwrap();
    assert!(report.is_clean(), "{statement}: {report}");
    for (at, bytes) in report.results[0].bytes.chunks_exact(4).enumerate() {
        let [a, b, c] = [given[0][at], given[1][at], given[2][at]];
        let found = u32::from_le_bytes(bytes.try_into().unwrap());
        assert_eq!(found, law(a, b, c) as u32, "{statement} of {a:#x}, {b:#x} and {c:#x}");
    }
}

fn byte(word: u32, at: usize) -> i64 {
    i64::from(word.to_le_bytes()[at])
}

fn signed_byte(word: u32, at: usize) -> i64 {
    i64::from(word.to_le_bytes()[at] as i8)
}

fn half(word: u32, at: u32) -> i64 {
    i64::from(word / (1 << (16 * at)) % 65536)
}

fn signed_half(word: u32, at: u32) -> i64 {
    i64::from(half(word, at) as u16 as i16)
}

fn signed(word: u32) -> i64 {
    i64::from(word as i32)
}

#[test]
fn parts_of_registers_are_added_shifted_and_compared() {
    agrees("vadd.s32.s32.u32 %r4, %r1.b1, %r2.h1;", |a, b, _| signed_byte(a, 1) + half(b, 1));
    agrees("vadd.s32.s32.s32.sat %r4, %r1.h0, %r2;", |a, b, _| {
        (signed_half(a, 0) + signed(b)).clamp(i32::MIN.into(), i32::MAX.into())
    });
    agrees("vsub.u32.s32.s32.sat %r4, %r1.h0, %r2.b1;", |a, b, _| (signed_half(a, 0) - signed_byte(b, 1)).max(0));
    agrees("vsub.s32.u32.s32.add %r4, %r1.h0, %r2.b3, %r3;", |a, b, c| half(a, 0) - signed_byte(b, 3) + signed(c));
    agrees("vmin.s32.u32.s32 %r4, %r1, %r2;", |a, b, _| i64::from(a).min(signed(b)));
    agrees("vmax.u32.u32.u32 %r4, %r1.b3, %r2.h1;", |a, b, _| byte(a, 3).max(half(b, 1)));
    agrees("vshl.u32.u32.u32.clamp %r4, %r1, %r2.b0;", |a, b, _| {
        let amount = byte(b, 0).min(32);
        (i128::from(a) << amount) as i64
    });
    agrees("vshr.s32.s32.u32.wrap %r4, %r1, %r2;", |a, b, _| signed(a) >> (b % 32));
    agrees("vshr.u32.u32.u32.clamp %r4, %r1, %r2;", |a, b, _| i64::from(a) >> b.min(32));
    agrees("vset.s32.s32.ge %r4, %r1.b2, %r2.b2;", |a, b, _| i64::from(signed_byte(a, 2) >= signed_byte(b, 2)));
    agrees("vset.u32.u32.lt.add %r4, %r1, %r2, %r3;", |a, b, c| i64::from(a < b) + i64::from(c));
}

#[test]
fn results_replace_parts_of_the_third_operand() {
    agrees("vabsdiff.s32.s32.s32.sat %r4.b2, %r1.b0, %r2.b0, %r3;", |a, b, c| {
        let difference = (signed_byte(a, 0) - signed_byte(b, 0)).abs().min(127);
        i64::from(c & 0xff00_ffff) | difference << 16
    });
    agrees("vsub.u32.u32.u32 %r4.h1, %r1.h0, %r2.h1, %r3;", |a, b, c| {
        i64::from(c & 0xffff) | ((half(a, 0) - half(b, 1)) & 0xffff) << 16
    });
    agrees("vmax.s32.s32.s32 %r4.h0, %r1, %r2, %r3;", |a, b, c| {
        i64::from(c & 0xffff_0000) | signed(a).max(signed(b)) & 0xffff
    });
}

#[test]
fn products_of_parts_are_shifted_and_negated() {
    agrees("vmad.s32.s32.s32 %r4, %r1.h0, %r2.h1, %r3;", |a, b, c| signed_half(a, 0) * signed_half(b, 1) + signed(c));
    agrees("vmad.u32.u32.u32.shr7 %r4, %r1.b1, %r2.h0, %r3;", |a, b, c| {
        ((byte(a, 1) * half(b, 0) + signed(c)) as u64 >> 7) as i64
    });
    agrees("vmad.s32.s32.u32.sat.shr15 %r4, %r1.h1, %r2, %r3;", |a, b, c| {
        ((signed_half(a, 1) * i64::from(b) + signed(c)) >> 15).clamp(i32::MIN.into(), i32::MAX.into())
    });
    agrees("vmad.s32.u32.u32 %r4, -%r1.b0, %r2.b1, %r3;", |a, b, c| signed(c) - byte(a, 0) * byte(b, 1));
    agrees("vmad.s32.s32.s32.shr7 %r4, %r1.h0, %r2.h0, -%r3;", |a, b, c| {
        (signed_half(a, 0) * signed_half(b, 0) - signed(c)) >> 7
    });
    agrees("vmad.u32.u32.u32.po %r4, %r1.b3, %r2.b3, %r3;", |a, b, c| byte(a, 3) * byte(b, 3) + signed(c) + 1);
}

#[test]
fn numbers_of_a_register_are_chosen_and_masked() {
    // Parts 0 to 3 are those of the first register, 4 to 7 those of the second.
    agrees("vadd4.u32.u32.u32 %r4.b20, %r1.b7012, %r2.b3456, %r3;", |a, b, c| {
        let part = |at: usize| if at < 4 { byte(a, at) } else { byte(b, at - 4) };
        let low = (part(2) + part(6)) & 0xff;
        let high = (part(0) + part(4)) & 0xff;
        i64::from(c & 0xff00_ff00) | low | high << 16
    });
    agrees("vavrg2.s32.s32.s32 %r4, %r1, %r2, %r3;", |a, b, _| {
        let mean = |at| {
            let sum = signed_half(a, at) + signed_half(b, at);
            // Up from 0 on, and down below.
            (if sum >= 0 { (sum + 1).div_euclid(2) } else { sum.div_euclid(2) }) & 0xffff
        };
        mean(0) | mean(1) << 16
    });
    agrees("vset2.s32.s32.gt.add %r4.h1, %r1.h20, %r2.h31, %r3;", |_, b, c| {
        // Part 1 compares the low half of the second register with its high half.
        i64::from(signed_half(b, 0) > signed_half(b, 1)) + i64::from(c)
    });
    agrees("vset4.u32.u32.ne %r4, %r1, %r2, %r3;", |a, b, _| {
        (0..4).map(|at| i64::from(byte(a, at) != byte(b, at)) << (8 * at)).sum()
    });
}

#[test]
fn forms_that_devices_and_the_document_compute_differently_are_refused() {
    for statement in [
        "vadd.u32.u32.u32.sat %r4, %r1, %r2;",
        "vsub.u32.u32.s32.sat.min %r4, %r1.h0, %r2, %r3;",
        "vadd.s32.s32.s32.sat %r4.b2, %r1.b0, %r2.b0, %r3;",
        "vshl.u32.u32.u32.sat.clamp %r4, %r1, %r2;",
        "vshl.s32.s32.u32.wrap.max %r4, %r1, %r2, %r3;",
        "vadd.s32.s32.s32.min %r4, %r1, %r2, %r3;",
    ] {
        let launch = KernelLaunch::new("f", [1, 1, 1], [1, 1, 1]);
        let why =
            sanitize(&kernel(0, statement), &launch, &Options::default()).unwrap().unfinished().unwrap_or_default();
        assert!(why.contains("the document and devices give different results"), "{statement}: {why}");
    }
}
