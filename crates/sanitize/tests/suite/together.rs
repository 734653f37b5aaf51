//! What lanes and warps do together: shuffles, votes, barriers, atomic operations, blocks.

use super::tools::{codes, kernel, run, run_with, words};
use tilewright_sanitize::Options;

/// The word of each lane of a warp.
#[track_caller]
fn lanes(statements: &str) -> Vec<u32> {
    let text = kernel(1, &format!("{statements} add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r3;"));
    words(&run(&text, 1, 32, &["out:u32[32]"]).unwrap(), 0)
}

#[track_caller]
fn agrees(statements: &str, law: impl Fn(u32) -> u32) {
    let expected: Vec<u32> = (0..32).map(law).collect();
    assert_eq!(lanes(statements), expected, "{statements}");
}

#[test]
fn shuffles() {
    agrees("shfl.sync.bfly.b32 %r3, %i, 5, 31, -1;", |lane| lane ^ 5);
    agrees("shfl.sync.down.b32 %r3, %i, 3, 31, -1;", |lane| if lane + 3 < 32 { lane + 3 } else { lane });
    agrees("shfl.sync.up.b32 %r3, %i, 3, 0, -1;", |lane| if lane >= 3 { lane - 3 } else { lane });
    agrees("shfl.sync.idx.b32 %r3, %i, 9, 31, -1;", |_| 9);
    // Segments of eight lanes.
    agrees("shfl.sync.idx.b32 %r3, %i, 2, 0x1807, -1;", |lane| lane & !7 | 2);
    agrees("shfl.sync.down.b32 %r2|%p1, %i, 1, 0x1807, -1; selp.b32 %r3, %r2, -1, %p1;", |lane| {
        if lane % 8 == 7 { u32::MAX } else { lane + 1 }
    });
}

#[test]
fn votes_matches_and_reductions() {
    agrees("setp.lt.u32 %p1, %i, 5; vote.sync.ballot.b32 %r3, %p1, -1;", |_| 31);
    agrees("setp.lt.u32 %p1, %i, 5; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r3, 1, 0, %p2;", |_| 1);
    agrees("setp.lt.u32 %p1, %i, 5; vote.sync.all.pred %p2, !%p1, -1; selp.b32 %r3, 1, 0, %p2;", |_| 0);
    agrees("and.b32 %r1, %i, 3; match.any.sync.b32 %r3, %r1, -1;", |lane| 0x1111_1111 << (lane & 3));
    agrees("match.all.sync.b32 %r3|%p1, %i, -1;", |_| 0);
    agrees("redux.sync.add.s32 %r3, %i, -1;", |_| 496);
    agrees("xor.b32 %r1, %i, -1; redux.sync.max.s32 %r3, %r1, -1;", |_| u32::MAX);
    agrees(
        "mov.u32 %r3, 0; setp.ge.u32 %p2, %i, 4; @%p2 elect.sync %r2|%p1, 0xfffffff0; @%p2 selp.b32 %r3, 1, 0, %p1;",
        |lane| u32::from(lane == 4),
    );
    // Groups that have masks of their own.
    agrees("and.b32 %r1, %i, 3; match.any.sync.b32 %r2, %r1, -1; redux.sync.max.u32 %r3, %i, %r2;", |lane| {
        28 + lane % 4
    });
}

#[test]
fn lanes_that_came_apart_shuffle_together() {
    // Both sides of a branch execute the same shuffle of all lanes, at different places.
    agrees(
        "setp.lt.u32 %p1, %i, 16; @%p1 bra A;
         shfl.sync.bfly.b32 %r3, %i, 16, 31, -1; bra B;
         A: shfl.sync.bfly.b32 %r3, %i, 16, 31, -1;
         B:",
        |lane| lane ^ 16,
    );
    // One that half of the lanes do not come to.
    let text = kernel(1, "setp.lt.u32 %p1, %i, 16; @%p1 shfl.sync.bfly.b32 %r3, %i, 1, 31, -1; bar.warp.sync -1;");
    assert_eq!(codes(&run(&text, 1, 32, &["inout:u32[1]"]).unwrap()), ["E1027"]);
}

#[test]
fn blocks_add_to_one_place() {
    let text = kernel(
        1,
        "red.global.add.u32 [%d0], 1; atom.global.max.u32 %r1, [%d0+4], %i;
         atom.global.add.f32 %f1, [%d0+8], 0f3F800000; red.global.inc.u32 [%d0+12], 6;",
    );
    for cores in [1, 2] {
        let options = Options { cores: Some(cores), ..Options::default() };
        let found = words(&run_with(&text, 20, 100, &["inout:u32[4]=zeros"], &options).unwrap(), 0);
        assert_eq!(found, [2000, 1999, 2000.0_f32.to_bits(), 2000 % 7]);
    }
}

/// A sum over a block through shared memory, with a barrier between.
const TRANSPOSED: &str = "
    .shared .align 4 .b8 s[1024];
    mov.u64 %d3, s; add.u64 %d4, %d3, %at4; st.shared.u32 [%d4], %i;
    BARRIER
    sub.u32 %r1, 255, %i; mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d3, %d5; ld.shared.u32 %r3, [%d5];
    add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r3;";

#[test]
fn barriers_order_shared_memory() {
    for barrier in ["bar.sync 0;", "barrier.sync 3;", "bar.sync 5, 256;", "bar.red.popc.u32 %r9, 0, %p1;"] {
        let text = kernel(1, &TRANSPOSED.replace("BARRIER", barrier));
        let found = words(&run(&text, 1, 256, &["out:u32[256]"]).unwrap(), 0);
        assert!(found.iter().enumerate().all(|(at, word)| *word == 255 - at as u32), "{barrier}");
    }
    for missing in ["", "bar.warp.sync -1;"] {
        let text = kernel(1, &TRANSPOSED.replace("BARRIER", missing));
        let report = run(&text, 1, 256, &["out:u32[256]"]).unwrap();
        assert!(codes(&report).contains(&"E1016"), "{missing}: {report}");
    }
}

#[test]
fn barriers_in_branches_are_told() {
    // Lanes that are expected behind the barrier only.
    let text = kernel(1, "setp.lt.u32 %p1, %i, 40; @!%p1 bra L; bar.sync 0; L: st.global.u32 [%d0], 1;");
    assert_eq!(codes(&run(&text, 1, 128, &["inout:u32[1]"]).unwrap()), ["E1027"]);
    // Lanes that have left are not expected at all, and whole warps may go elsewhere.
    let text = kernel(1, "setp.ge.u32 %p1, %i, 40; @%p1 ret; bar.sync 0;");
    assert!(run(&text, 1, 128, &["inout:u32[1]"]).unwrap().is_clean());
    let text = kernel(1, "setp.lt.u32 %p1, %i, 64; @!%p1 bra L; bar.sync 1, 64; L: bar.sync 0;");
    assert!(run(&text, 1, 128, &["inout:u32[1]"]).unwrap().is_clean());
}

#[test]
fn a_flag_passes_on_what_was_written_before() {
    // Block 0 writes and sets a flag; block 1 waits for it and reads.
    let with = |release: &str, acquire: &str| {
        kernel(
            2,
            &format!(
                "setp.ne.u32 %p2, %r52, 0; @%p2 bra END; setp.eq.u32 %p1, %r50, 0; @%p1 bra WRITE;
                 L: ld.{acquire}.global.u32 %r1, [%d0]; setp.eq.u32 %p3, %r1, 0; @%p3 bra L;
                 ld.global.u32 %r2, [%d1]; st.global.u32 [%d1+4], %r2; bra END;
                 WRITE: st.global.u32 [%d1], 42; st.{release}.global.u32 [%d0], 1;
                 END:"
            ),
        )
    };
    let arguments = ["inout:u32[1]=zeros", "out:u32[2]"];
    for options in [Options { cores: Some(1), ..Options::default() }, Options { schedules: 6, ..Options::default() }] {
        let report = run_with(&with("release.gpu", "acquire.gpu"), 2, 32, &arguments, &options).unwrap();
        assert_eq!(words(&report, 1), [42, 42]);
        let report = run_with(&with("relaxed.gpu", "acquire.gpu"), 2, 32, &arguments, &options).unwrap();
        assert_eq!(codes(&report), ["E1017"], "{report}");
    }
}

#[test]
fn results_that_depend_on_the_schedule_are_told() {
    // Each block takes a ticket, and writes its own number there.
    let text = kernel(
        2,
        "setp.ne.u32 %p2, %r52, 0; @%p2 bra END;
         atom.global.add.u32 %r1, [%d0], 1; mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d1, %d5;
         st.global.u32 [%d5], %r50; END:",
    );
    let options = Options { schedules: 4, ..Options::default() };
    let report = run_with(&text, 8, 32, &["inout:u32[1]=zeros", "out:u32[8]"], &options).unwrap();
    assert_eq!(codes(&report), ["E1028"], "{report}");
    assert_eq!(report.schedules, 4);
}
