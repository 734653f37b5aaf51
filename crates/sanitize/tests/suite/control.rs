//! Branches, loops, calls: where lanes part and meet.
//!
//! Law: each lane takes its own way, and lanes are together again where all their ways come
//! through; a lane that waits for another of its warp gets its turn.

use super::tools::{codes, kernel, run, words};

#[test]
fn lanes_part_and_meet() {
    // Collatz: each lane has its own number of steps; behind the loop all are active again.
    let text = kernel(
        1,
        "add.u32 %r1, %i, 1; mov.u32 %r2, 0;
         LOOP: setp.eq.u32 %p1, %r1, 1; @%p1 bra DONE;
         and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0; add.u32 %r2, %r2, 1;
         @%p2 bra EVEN;
         mad.lo.u32 %r1, %r1, 3, 1; bra LOOP;
         EVEN: shr.u32 %r1, %r1, 1; bra LOOP;
         DONE: activemask.b32 %r4; setp.ne.u32 %p3, %r4, -1; @%p3 mov.u32 %r2, -1;
         add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r2;",
    );
    let found = words(&run(&text, 2, 64, &["out:u32[128]"]).unwrap(), 0);
    for (at, found) in found.into_iter().enumerate() {
        let (mut value, mut steps) = (at as u32 + 1, 0);
        while value != 1 {
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            steps += 1;
        }
        assert_eq!(found, steps, "{at}");
    }
}

#[test]
fn tables_of_labels_are_jumped_through() {
    let text = kernel(
        1,
        "and.b32 %r1, %i, 3; mov.u32 %r2, 100;
         T: .branchtargets A, B, C, D;
         brx.idx %r1, T;
         A: mov.u32 %r2, 7; bra END;
         B: mov.u32 %r2, 8; bra END;
         C: mov.u32 %r2, 9;
         D: add.u32 %r2, %r2, 1;
         END: add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r2;",
    );
    let found = words(&run(&text, 1, 32, &["out:u32[32]"]).unwrap(), 0);
    assert!(found.chunks(4).all(|own| own == [7, 8, 10, 101]));
}

/// A module whose entry calls `body`, defined before it.
fn calling(functions: &str, statements: &str) -> String {
    kernel(1, statements).replacen(".visible .entry", &format!("{functions}\n.visible .entry"), 1)
}

#[test]
fn functions_call_themselves_for_some_lanes() {
    let factorial = "
        .func (.param .b32 out) factorial(.param .b32 n) {
            .reg .b32 %r<9>; .reg .pred %p;
            ld.param.u32 %r1, [n];
            setp.gt.u32 %p, %r1, 1;
            @%p bra MORE;
            st.param.b32 [out], 1;
            ret;
            MORE: sub.u32 %r2, %r1, 1;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), factorial, (a); ld.param.b32 %r3, [b]; }
            mul.lo.u32 %r3, %r3, %r1;
            st.param.b32 [out], %r3;
            ret;
        }";
    let text = calling(
        factorial,
        "and.b32 %r1, %i, 7;
         { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), factorial, (a); ld.param.b32 %r2, [b]; }
         activemask.b32 %r4; setp.ne.u32 %p3, %r4, -1; @%p3 mov.u32 %r2, -1;
         add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r2;",
    );
    let found = words(&run(&text, 1, 64, &["out:u32[64]"]).unwrap(), 0);
    for (at, found) in found.into_iter().enumerate() {
        assert_eq!(found, (1..=at as u32 % 8).product::<u32>(), "{at}");
    }
    // Without an end the calls are bounded.
    let text = text.replace("@%p bra MORE;", "bra MORE;");
    let why = run(&text, 1, 64, &["out:u32[64]"]).unwrap().unfinished().unwrap();
    assert!(why.contains("calls within each other"), "{why}");
}

#[test]
fn lanes_call_different_functions_by_address() {
    let functions = "
        .func (.param .b32 out) twice(.param .b32 n) {
            .reg .b32 %r; ld.param.u32 %r, [n]; add.u32 %r, %r, %r; st.param.b32 [out], %r; ret; }
        .func (.param .b32 out) square(.param .b32 n) {
            .reg .b32 %r; ld.param.u32 %r, [n]; mul.lo.u32 %r, %r, %r; st.param.b32 [out], %r; ret; }
        .global .u64 table[2] = {twice, square};";
    let text = calling(
        functions,
        "and.b32 %r1, %i, 1; mul.wide.u32 %d5, %r1, 8; mov.u64 %d6, table; add.u64 %d6, %d6, %d5;
         ld.global.u64 %d7, [%d6];
         P: .callprototype (.param .b32 _) _ (.param .b32 _);
         { .param .b32 a; .param .b32 b; st.param.b32 [a], %i; call (b), %d7, (a), P; ld.param.b32 %r2, [b]; }
         add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r2;",
    );
    let found = words(&run(&text, 1, 32, &["out:u32[32]"]).unwrap(), 0);
    for (at, found) in found.into_iter().enumerate() {
        let at = at as u32;
        assert_eq!(found, if at.is_multiple_of(2) { 2 * at } else { at * at });
    }
}

#[test]
fn a_lock_within_a_warp_is_passed_on() {
    // Each lane takes the lock in its turn: on devices without progress of lanes this hangs.
    let text = kernel(
        1,
        "add.u64 %d1, %d0, 4;
         TRY: atom.global.acquire.gpu.cas.b32 %r1, [%d0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
         ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;
         atom.global.release.gpu.exch.b32 %r3, [%d0], 0;",
    );
    let report = run(&text, 2, 64, &["inout:u32[2]=zeros"]).unwrap();
    assert_eq!(words(&report, 0), [0, 128]);
}

#[test]
fn what_never_ends_is_told_or_bounded() {
    // A flag that nobody sets.
    let text = kernel(1, "L: ld.acquire.gpu.global.u32 %r1, [%d0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;");
    let report = run(&text, 2, 64, &["inout:u32[1]=zeros"]).unwrap();
    assert_eq!(codes(&report), ["E1022"], "{report}");
    assert!(report.to_string().contains("byte 0 of `p0`"), "{report}");
    // A barrier that half of the block does not reach.
    let text = kernel(1, "setp.ge.u32 %p1, %i, 32; @%p1 bra L; bar.sync 0; L: bar.sync 1;");
    let report = run(&text, 1, 64, &["inout:u32[1]=zeros"]).unwrap();
    assert!(codes(&report).contains(&"E1021"), "{report}");
    // A loop that computes.
    let text = kernel(1, "L: add.u32 %r1, %r1, 1; bra L;");
    let options = tilewright_sanitize::Options { limit: 100_000, cores: Some(1), ..Default::default() };
    let report = super::tools::run_with(&text, 1, 32, &["inout:u32[1]=zeros"], &options).unwrap();
    assert!(report.unfinished().unwrap().contains("100000 instructions"));
}
