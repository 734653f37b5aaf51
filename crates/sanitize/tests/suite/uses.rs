//! Reads whose values are not used, and those that are.
//!
//! Law: a read that races, or that reads what nobody has written, is found if and only if a result
//! of the launch, an address or the way of a thread may depend on it.

use tilewright_sanitize::{Argument, KernelLaunch, Options, sanitize};

use super::tools::kernel;

/// What is found in a kernel of one block in five schedules. Shared memory `s` has 4096 bytes and
/// nothing in it; `%d0` is the first array.
fn found(functions: &str, statements: &str, threads: u32) -> Vec<&'static str> {
    let text = kernel(1, &format!(".shared .align 16 .b8 s[4096]; {statements}"));
    let text = text.replacen(".visible .entry", &format!("{functions}\n.visible .entry"), 1);
    let launch = KernelLaunch::new("f", [1, 1, 1], [threads, 1, 1])
        .argument(Argument::read("x", "inout:u32[1024]=random", 3).expect("an array"));
    let report = sanitize(&text, &launch, &Options { schedules: 5, ..Options::default() }).expect(&text);
    assert!(report.unfinished().is_none(), "{text}: {:?}", report.unfinished());
    // That results differ between schedules follows from a race.
    let all = report.findings.iter().map(|finding| finding.code());
    let mut codes: Vec<&str> = all.filter(|code| *code != "E1028").collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// A word that nobody has written, `%r1` of lane 5 alone; the other lanes have 7. `%r9` is the
/// lane.
const UNWRITTEN: &str = "
    mov.u32 %r9, %laneid;
    mov.u32 %r1, 7;
    setp.eq.u32 %p1, %r9, 5;
    @%p1 ld.shared.u32 %r1, [s];
";
/// Stores `%r2`, of all lanes and of all but lane 5.
const STORE: &str = "add.u64 %d1, %d0, %at4; st.global.u32 [%d1], %r2;";
const STORE_OTHERS: &str = "add.u64 %d1, %d0, %at4; @!%p1 st.global.u32 [%d1], %r2;";

/// What is done with the word, whether that uses it, and with functions before the kernel.
const CASES: &[(&str, bool, &str)] = &[
    // Stored, or not.
    ("mov.u32 %r2, %r1; STORE", true, ""),
    ("mov.u32 %r2, %r1; STORE_OTHERS", false, ""),
    ("add.u32 %r2, %r1, 1; mul.lo.u32 %r2, %r2, %r9; STORE", true, ""),
    ("add.u32 %r2, %r1, 1; mul.lo.u32 %r2, %r2, %r9; STORE_OTHERS", false, ""),
    ("mov.u32 %r2, %r1; mov.u32 %r2, 3; STORE", false, ""),
    // Chosen, or not, by what is known and by the word itself.
    ("selp.u32 %r2, %r9, %r1, %p1; STORE", false, ""),
    ("selp.u32 %r2, %r1, %r9, %p1; STORE", true, ""),
    ("setp.gt.u32 %p2, %r1, 100; selp.u32 %r2, 1, 2, %p2; STORE", true, ""),
    ("setp.gt.u32 %p2, %r1, 100; selp.u32 %r2, 2, 2, %p2; STORE", false, ""),
    ("setp.gt.u32 %p2, %r1, 100; and.pred %p3, %p2, !%p1; selp.u32 %r2, 1, 2, %p3; STORE", false, ""),
    ("setp.gt.u32 %p2, %r1, 100; or.pred %p3, %p2, !%p1; selp.u32 %r2, 1, 2, %p3; STORE", true, ""),
    ("setp.gt.u32 %p2, %r1, 100; or.pred %p3, %p1, %p2; selp.u32 %r2, 1, 2, %p3; STORE", false, ""),
    ("setp.gt.and.u32 %p2, %r1, 100, !%p1; selp.u32 %r2, 1, 2, %p2; STORE", false, ""),
    ("setp.gt.or.u32 %p2, %r1, 100, !%p1; selp.u32 %r2, 1, 2, %p2; STORE", true, ""),
    ("mov.u32 %r2, 1; setp.gt.u32 %p2, %r1, 100; @%p2 mov.u32 %r2, 2; STORE", true, ""),
    ("mov.u32 %r2, 1; setp.gt.u32 %p2, %r1, 100; @%p2 mov.u32 %r2, 2; STORE_OTHERS", false, ""),
    ("add.cc.u32 %r2, %r1, -1; addc.u32 %r2, 0, 0; STORE", true, ""),
    ("add.cc.u32 %r2, %r1, -1; addc.u32 %r2, 0, 0; STORE_OTHERS", false, ""),
    // It decides a way, an access, an address or a barrier.
    ("setp.gt.u32 %p2, %r1, 100; @%p2 bra L; L: mov.u32 %r2, 1; STORE", true, ""),
    ("setp.gt.u32 %p2, %r1, 100; @%p2 exit; mov.u32 %r2, 1; STORE", true, ""),
    ("mov.u32 %r2, 1; setp.gt.u32 %p2, %r1, 100; add.u64 %d1, %d0, %at4; @%p2 st.global.u32 [%d1], %r2;", true, ""),
    ("and.b32 %r2, %r1, 12; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; @%p1 st.shared.u32 [%r3+64], %r9;", true, ""),
    ("and.b32 %r2, %r1, 0; bar.sync %r2;", true, ""),
    ("red.global.add.u32 [%d0], %r1;", true, ""),
    ("@!%p1 red.global.add.u32 [%d0], %r1;", false, ""),
    // Through lanes.
    ("shfl.sync.idx.b32 %r2, %r1, 4, 31, -1; STORE", false, ""),
    ("shfl.sync.idx.b32 %r2, %r1, 5, 31, -1; STORE", true, ""),
    (
        "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; setp.eq.u32 %p2, %r9, 4; add.u64 %d1, %d0, %at4; \
      @!%p2 st.global.u32 [%d1], %r2;",
        false,
        "",
    ),
    ("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; STORE_OTHERS", true, ""),
    ("setp.gt.u32 %p2, %r1, 100; vote.sync.ballot.b32 %r2, %p2, -1; STORE_OTHERS", true, ""),
    ("setp.gt.u32 %p2, %r1, 100; vote.sync.any.pred %p3, %p2, -1; selp.u32 %r2, 1, 2, %p3; STORE_OTHERS", true, ""),
    (
        "setp.gt.u32 %p2, %r1, 100; or.pred %p2, %p2, !%p1; vote.sync.any.pred %p3, %p2, -1; \
      selp.u32 %r2, 1, 2, %p3; STORE",
        false,
        "",
    ),
    ("redux.sync.add.u32 %r2, %r1, -1; STORE_OTHERS", true, ""),
    ("redux.sync.add.u32 %r2, %r1, -1;", false, ""),
    // Through memory, and functions.
    (".local .align 8 .b8 mine[64]; st.local.u32 [mine+8], %r1; ld.local.u32 %r2, [mine+8]; STORE", true, ""),
    (".local .align 8 .b8 mine[64]; st.local.u32 [mine+8], %r1; ld.local.u32 %r2, [mine+8]; STORE_OTHERS", false, ""),
    (
        ".local .align 8 .b8 mine[64]; st.local.u32 [mine+8], %r1; st.local.u32 [mine+8], %r9; \
      ld.local.u32 %r2, [mine+8]; STORE",
        false,
        "",
    ),
    (
        "mov.u64 %d2, s; add.u64 %d2, %d2, %at4; st.shared.u32 [%d2+64], %r1; bar.sync 0; \
      ld.shared.u32 %r2, [s+80]; STORE",
        false,
        "",
    ),
    (
        "mov.u64 %d2, s; add.u64 %d2, %d2, %at4; st.shared.u32 [%d2+64], %r1; bar.sync 0; \
      ld.shared.u32 %r2, [s+84]; STORE",
        true,
        "",
    ),
    (
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r2, [b]; } STORE",
        true,
        TWICE,
    ),
    (
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r2, [b]; } \
      STORE_OTHERS",
        false,
        TWICE,
    ),
];

const TWICE: &str = "
    .func (.param .b32 out) twice(.param .b32 in) {
        .reg .b32 %q<3>;
        ld.param.b32 %q1, [in];
        add.u32 %q2, %q1, %q1;
        st.param.b32 [out], %q2;
        ret;
    }
";

#[test]
fn a_word_that_nobody_has_written_is_found_where_it_is_used() {
    for (what, is_used, functions) in CASES {
        let what = what.replace("STORE_OTHERS", STORE_OTHERS).replace("STORE", STORE);
        let codes = found(functions, &format!("{UNWRITTEN} {what}"), 32);
        assert_eq!(codes, if *is_used { vec!["E1012"] } else { vec![] }, "{what}");
    }
}

/// Two warps read what the first of them rewrites, and nothing orders them.
#[test]
fn copies_of_a_tile_that_are_dropped_race_with_nothing() {
    let body = |store: &str| {
        format!(
            "mov.u32 %r9, %laneid; mul.wide.u32 %d2, %r9, 4; add.u64 %d1, %d0, %d2; ld.global.u32 %r1, [%d1];
             add.u32 %r2, %r1, 1; setp.lt.u32 %p1, %i, 32; {store}"
        )
    };
    let right = body("@%p1 st.global.u32 [%d1], %r2;");
    assert!(found("", &right, 64).is_empty());
    // The second warp stores what it has read elsewhere.
    assert_eq!(found("", &body("@%p1 st.global.u32 [%d1], %r2; @!%p1 st.global.u32 [%d1+512], %r2;"), 64), ["E1016"]);
    // It decides by what it has read whether it waits.
    let branches = body("@%p1 st.global.u32 [%d1], %r2; setp.gt.u32 %p2, %r1, 9; @%p2 bra L; nanosleep.u32 1; L:");
    assert_eq!(found("", &branches, 64), ["E1016"]);
    // A second read of the same bytes, which is dropped, does not hide the first.
    let twice = body("@%p1 st.global.u32 [%d1], %r2; @!%p1 st.global.u32 [%d1+512], %r2; ld.global.u32 %r3, [%d1];");
    assert_eq!(found("", &twice, 64), ["E1016"]);
}

/// Nobody has written one row of A. All other rows of the product are right, and may be stored.
#[test]
fn rows_of_products_depend_on_their_own_rows_alone() {
    // A is one word for each element pair; rows `g` are in the first register, rows `g + 8` in the
    // second.
    let body = |register: u32, column: bool, store: &str| {
        format!(
            "mov.u32 %r9, %laneid; shr.u32 %r8, %r9, 2; setp.eq.u32 %p1, %r8, 5;
             mov.u32 %r1, 0x3c003c00; mov.u32 %r2, %r1; mov.u32 %r3, %r1; mov.f32 %f0, 0f00000000;
             @%p1 ld.shared.u32 %r{}, [s];
             mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, {{%r3}},
                 {{%f0, %f0, %f0, %f0}};
             add.u64 %d1, %d0, %at4; and.b32 %r7, %r9, 3; setp.eq.u32 %p2, %r7, 2; {store}",
            if column { 3 } else { register }
        )
    };
    let stores = |guards: [&str; 4]| -> String {
        guards.iter().zip(1..).map(|(guard, at)| format!("{guard} st.global.f32 [%d1+{}], %f{at};", 128 * at)).collect()
    };
    // Row 5, in lanes 20 to 23: the first two sums.
    assert!(found("", &body(1, false, &stores(["@!%p1", "@!%p1", "", ""])), 32).is_empty());
    assert_eq!(found("", &body(1, false, &stores(["", "@!%p1", "", ""])), 32), ["E1012"]);
    // Row 13: the last two.
    assert!(found("", &body(2, false, &stores(["", "", "@!%p1", "@!%p1"])), 32).is_empty());
    assert_eq!(found("", &body(2, false, &stores(["", "", "@!%p1", ""])), 32), ["E1012"]);
    // Column 5 of B: the second and the fourth sum of lanes 2, 6, ..
    assert!(found("", &body(0, true, &stores(["", "@!%p2", "", "@!%p2"])), 32).is_empty());
    assert_eq!(found("", &body(0, true, &stores(["", "@!%p2", "", ""])), 32), ["E1012"]);
}
