//! What libraries of CUDA and compilers use: the heap, the barrier of a grid, atomic operations on
//! 128 bits, numbers in parts of a register, tensor maps that a kernel makes.

use super::tools::{codes, kernel, run, run_with, words};
use tilewright_sanitize::Options;
use tilewright_sanitize::isa::video::{PartInstruction, PartOperation};

/// Threads take memory from the heap, each its own, and read it back.
fn heap(written: &str) -> String {
    let body = format!(
        "{{ .param .b64 size; .param .b64 got; st.param.b64 [size], 24;
           call.uni (got), malloc, (size); ld.param.b64 %d5, [got]; }}
         {written}
         ld.u32 %r2, [%d5+16];
         {{ .param .b64 old; st.param.b64 [old], %d5; call.uni free, (old); }}
         add.u64 %d6, %d0, %at4; st.global.u32 [%d6], %r2;"
    );
    let declared =
        ".extern .func (.param .b64 r) malloc (.param .b64 s);\n.extern .func free (.param .b64 p);\n.visible";
    kernel(1, &body).replacen(".visible", declared, 1)
}

#[test]
fn the_heap_gives_each_thread_memory_of_its_own() {
    let report = run(&heap("st.u32 [%d5+16], %i;"), 2, 64, &["out:u32[128]"]).unwrap();
    assert_eq!(words(&report, 0), (0..128).collect::<Vec<u32>>());
    // What malloc gives holds nothing.
    let report = run(&heap(""), 1, 32, &["out:u32[32]"]).unwrap();
    assert_eq!(codes(&report), ["E1012"], "{report}");
    // A heap that is full gives a pointer to nothing.
    let text = heap("st.u32 [%d5+16], %i;").replace("[size], 24", "[size], 16000000");
    assert!(codes(&run(&text, 1, 32, &["out:u32[32]"]).unwrap()).contains(&"E1010"));
}

/// Each block writes a word, all meet at the driver's barrier, and each reads what another wrote.
fn grid_barrier(release: &str) -> String {
    kernel(
        1,
        &format!(
            "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %d5, {{%r2, %r1}};
             add.u64 %d6, %d0, %at4; st.global.u32 [%d6], %i;
             bar.sync 0;
             setp.ne.u32 %p1, %r52, 0; @%p1 bra WAITED;
             {release}
             atom.global.add.u32 %r3, [%d5+4], 1;
             POLL: ld.acquire.gpu.global.u32 %r4, [%d5+4]; setp.lt.u32 %p2, %r4, 3; @%p2 bra POLL;
             WAITED: bar.sync 0;
             sub.u32 %r5, 95, %i; mul.wide.u32 %d7, %r5, 4; add.u64 %d7, %d0, %d7;
             ld.global.u32 %r6, [%d7]; bar.sync 0;
             add.u64 %d6, %d6, 384; st.global.u32 [%d6], %r6;"
        ),
    )
}

#[test]
fn blocks_of_a_grid_meet_at_the_barrier_of_the_driver() {
    let several = Options { schedules: 4, ..Options::default() };
    let report = run_with(&grid_barrier("fence.acq_rel.gpu;"), 3, 32, &["inout:u32[192]=zeros"], &several).unwrap();
    let expected: Vec<u32> = (0..96).chain((0..96).rev()).collect();
    assert_eq!(words(&report, 0), expected);
    let report = run(&grid_barrier(""), 3, 32, &["inout:u32[192]=zeros"]).unwrap();
    assert_eq!(codes(&report), ["E1017"], "{report}");
}

#[test]
fn pairs_of_words_change_in_one_piece() {
    // All threads add (1, 2) to a pair, by cas in a loop; the last exchange takes the pair out.
    let text = kernel(
        2,
        ".reg .b128 %q<4>;
         ld.relaxed.gpu.global.b128 %q0, [%d0];
         AGAIN: mov.b128 {%d3, %d4}, %q0; add.u64 %d5, %d3, 1; add.u64 %d6, %d4, 2; mov.b128 %q1, {%d5, %d6};
         atom.acq_rel.gpu.global.cas.b128 %q2, [%d0], %q0, %q1;
         mov.b128 {%d7, %d8}, %q2; setp.eq.u64 %p1, %d7, %d3; setp.eq.and.u64 %p1, %d8, %d4, %p1;
         mov.b128 %q0, %q2; @!%p1 bra AGAIN;
         add.u64 %d9, %at8, %at8; add.u64 %d9, %d1, %d9;
         mov.b128 %q3, {%at8, %at4}; atom.exch.b128 %q3, [%d9], %q3;",
    );
    for cores in [1, 2] {
        let options = Options { cores: Some(cores), ..Options::default() };
        let report = run_with(&text, 4, 64, &["inout:u64[2]=zeros", "inout:u64[512]=zeros"], &options).unwrap();
        assert_eq!(words(&report, 0), [256, 0, 512, 0]);
        let pairs: Vec<u32> = (0..256).flat_map(|at| [8 * at, 0, 4 * at, 0]).collect();
        assert_eq!(words(&report, 1), pairs);
    }
    let report = run(&text.replace("[%d9], %q3", "[%d9+8], %q3"), 1, 32, &["inout:u64[2]=zeros", "inout:u64[512]"]);
    assert!(codes(&report.unwrap()).contains(&"E1011"), "16 bytes are aligned to 16");
}

/// What an operation makes of two parts, before it is cut to their size.
type Law = fn(i32, i32) -> i32;

#[test]
fn parts_of_registers_are_numbers_of_their_own() {
    let words = [0, 1, 0x7f80_ff01, 0x8000_7fff, u32::MAX, 0x0102_0304, 0xfefd_fcfb];
    for bits in [8_u32, 16] {
        for signed in [false, true] {
            for (saturates, sums) in [(false, false), (true, false), (false, true)] {
                for (a, b) in words.iter().flat_map(|a| words.iter().map(move |b| (*a, *b))) {
                    let parts = |word: u32| -> Vec<i32> {
                        let bytes = word.to_le_bytes();
                        match (bits, signed) {
                            (8, true) => bytes.map(|byte| i32::from(byte as i8)).to_vec(),
                            (8, false) => bytes.map(i32::from).to_vec(),
                            (_, true) => [word as i16, (word >> 16) as i16].map(i32::from).to_vec(),
                            _ => [word as u16, (word >> 16) as u16].map(i32::from).to_vec(),
                        }
                    };
                    let own: [(PartOperation, Law); 5] = [
                        (PartOperation::Add, |a, b| a + b),
                        (PartOperation::Sub, |a, b| a - b),
                        (PartOperation::AbsDiff, |a, b| (a - b).abs()),
                        (PartOperation::Min, i32::min),
                        (PartOperation::Max, i32::max),
                    ];
                    for (operation, law) in own {
                        let part = PartInstruction::new(operation, bits);
                        let part = PartInstruction { signed: [signed; 3], saturates, sums, ..part };
                        let exact = parts(a).into_iter().zip(parts(b)).map(|(a, b)| law(a, b));
                        let held: Vec<i64> = exact
                            .map(|value| match (saturates, bits, signed) {
                                (false, ..) => i64::from(value),
                                (_, 8, true) => i64::from(value.clamp(-128, 127)),
                                (_, 8, false) => i64::from(value.clamp(0, 255)),
                                (_, _, true) => i64::from(value.clamp(-32768, 32767)),
                                _ => i64::from(value.clamp(0, 65535)),
                            })
                            .collect();
                        let wanted = match sums {
                            true => held.iter().fold(7_u32, |all, own| all.wrapping_add(*own as u32)),
                            false => {
                                held.iter().rev().fold(0_u64, |all, own| all << bits | *own as u64 & ((1 << bits) - 1))
                                    as u32
                            }
                        };
                        assert_eq!(part.of(a, b, 7), wanted, "{part:?} of {a:#x} and {b:#x}");
                    }
                }
            }
        }
    }
    let text = kernel(
        1,
        "mov.u32 %r1, 0x0500ff10; mov.u32 %r2, 0x03010020; mov.u32 %r3, 5;
         vabsdiff4.u32.u32.u32.add %r4, %r1, %r2, %r3; st.global.u32 [%d0], %r4;
         vmax2.s32.s32.s32 %r4, %r1, %r2, %r3; st.global.u32 [%d0+4], %r4;",
    );
    assert_eq!(words_of(&text), [279, 0x0500_0020]);
    let text = kernel(1, "vshl2.u32.u32.u32 %r4, %r1, %r2, %r3;");
    let why = run(&text, 1, 1, &["out:u32[2]"]).unwrap().unfinished().unwrap();
    assert!(why.contains("vshl2"), "{why}");
}

fn words_of(text: &str) -> Vec<u32> {
    words(&run(text, 1, 1, &["out:u32[2]"]).unwrap(), 0)
}

#[test]
fn sums_that_are_rounded_in_other_orders_are_the_same_result() {
    // Lanes of one instruction write sums that differ in the last place.
    let store = |second: &str| {
        kernel(
            1,
            &format!("setp.eq.u32 %p1, %r52, 0; selp.b32 %r1, 0x3f800000, {second}, %p1; st.global.u32 [%d0], %r1;"),
        )
    };
    assert!(run(&store("0x3f800003"), 1, 2, &["out:f32[1]"]).unwrap().is_clean());
    assert_eq!(codes(&run(&store("0x3f800100"), 1, 2, &["out:f32[1]"]).unwrap()), ["E1016"]);
    assert_eq!(codes(&run(&store("0x00000003"), 1, 2, &["out:u32[1]"]).unwrap()), ["E1016"]);
    // Atomic additions of other orders.
    let add = kernel(
        1,
        "cvt.rn.f32.u32 %f1, %i; add.f32 %f1, %f1, 0f3F19999A; rcp.rn.f32 %f1, %f1; red.global.add.f32 [%d0], %f1;",
    );
    let several = Options { schedules: 6, ..Options::default() };
    assert!(run_with(&add, 4, 64, &["inout:f32[1]=zeros"], &several).unwrap().is_clean());
    // Of what is no sum, the last one stays.
    let last = kernel(1, "cvt.rn.f32.u32 %f1, %i; mov.b32 %r1, %f1; atom.global.exch.b32 %r2, [%d0], %r1;");
    let report = run_with(&last, 4, 64, &["inout:f32[1]=zeros"], &several).unwrap();
    assert_eq!(codes(&report), ["E1028"], "{report}");
}
