//! `alloca`, `stacksave` and `stackrestore`.

use crate::tools::{kernel, run, words};

#[test]
fn memory_of_the_stack_is_the_threads_own() {
    // Each thread takes as many bytes as its number says, writes them and adds them up.
    let text = kernel(
        1,
        "add.u32 %r1, %r52, 1; shl.b32 %r2, %r1, 2;
         alloca.u32 %r3, %r2;
         mov.u32 %r4, 0; mov.u32 %r5, 0;
         WRITE: shl.b32 %r6, %r4, 2; add.u32 %r7, %r3, %r6; mul.lo.u32 %r8, %r4, %r1;
         st.local.u32 [%r7], %r8; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r1; @%p1 bra WRITE;
         cvt.u64.u32 %d1, %r3; cvta.local.u64 %d2, %d1; mov.u32 %r4, 0;
         READ: mul.wide.u32 %d3, %r4, 4; add.u64 %d3, %d2, %d3; ld.u32 %r9, [%d3]; add.u32 %r5, %r5, %r9;
         add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r1; @%p1 bra READ;
         add.u64 %d0, %d0, %at4; st.global.u32 [%d0], %r5;",
    );
    let found = words(&run(&text, 1, 32, &["out:u32[32]"]).unwrap(), 0);
    let wanted: Vec<u32> = (0..32).map(|own| (own + 1) * own * (own + 1) / 2).collect();
    assert_eq!(found, wanted);
}

#[test]
fn what_is_taken_is_aligned_and_given_back() {
    let text = kernel(
        1,
        "stacksave.u32 %r1;
         alloca.u32 %r2, 5; alloca.u32 %r3, 12, 64; stacksave.u32 %r4;
         stackrestore.u32 %r1; alloca.u64 %d1, 5; cvt.u32.u64 %r5, %d1;
         sub.u32 %r6, %r1, %r2; st.global.u32 [%d0], %r6;
         and.b32 %r6, %r3, 63; st.global.u32 [%d0+4], %r6;
         sub.u32 %r6, %r4, %r3; st.global.u32 [%d0+8], %r6;
         sub.u32 %r6, %r2, %r5; st.global.u32 [%d0+12], %r6;",
    );
    assert_eq!(words(&run(&text, 1, 1, &["out:u32[4]"]).unwrap(), 0), [8, 0, 0, 0]);
}

#[test]
fn what_a_function_takes_is_free_when_it_returns() {
    let text = "
        .version 8.7
        .target sm_90a
        .address_size 64
        .func (.reg .u32 %r) sum(.reg .u32 %n) {
            .reg .b32 %a<4>;
            .local .align 4 .b8 own[16];
            alloca.u32 %a0, 4096;
            st.local.u32 [%a0+4092], %n;
            st.local.u32 [own], %n;
            ld.local.u32 %a1, [%a0+4092];
            ld.local.u32 %a2, [own];
            add.u32 %r, %a1, %a2;
            ret;
        }
        .visible .entry f(.param .u64 p0) {
            .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<2>;
            ld.param.u64 %d0, [p0];
            mov.u32 %r1, 0; mov.u32 %r2, 0;
            AGAIN: call.uni (%r3), sum, (%r1); add.u32 %r2, %r2, %r3; add.u32 %r1, %r1, 1;
            setp.lt.u32 %p1, %r1, 1000; @%p1 bra AGAIN;
            st.global.u32 [%d0], %r2;
            ret;
        }";
    // A thousand calls take 4 MB in all, more than there is.
    assert_eq!(words(&run(text, 1, 1, &["out:u32[1]"]).unwrap(), 0), [999 * 1000]);
}

#[test]
fn a_stack_that_is_too_large_is_refused() {
    let why = |statements: &str| {
        let report = run(&kernel(1, statements), 1, 1, &["out:u32[1]"]).unwrap();
        report.unfinished().unwrap_or_default()
    };
    assert!(why("alloca.u32 %r1, 1000000;").contains("more than 524288 bytes of local memory"));
    assert!(why("mov.u64 %d1, -8; alloca.u64 %d2, %d1;").contains("more than 524288 bytes of local memory"));
    assert!(why("alloca.u32 %r1, 8, 24;").contains("24 is no power of two"));
    assert!(why("alloca.u32 %r1, 8; stackrestore.u32 0;").contains("no place of the stack that was saved"));
}
