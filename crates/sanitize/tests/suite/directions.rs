//! Who writes an array, as a launch says.

use tilewright_sanitize::{Argument, KernelLaunch, Options, Report, sanitize};

/// Each thread copies an element of the first array to the second.
const COPY: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y) {
    .reg .b32 %r<3>;
    .reg .b64 %d<5>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d1, %r1, 4;
    ld.param.u64 %d2, [x];
    ld.param.u64 %d3, [y];
    add.s64 %d2, %d2, %d1;
    add.s64 %d3, %d3, %d1;
    ld.global.u32 %r2, [%d2];
    st.global.u32 [%d3], %r2;
    ret;
}";

fn run(x: &str, y: &str) -> Report {
    let launch = KernelLaunch::new("copy", [1, 1, 1], [32, 1, 1])
        .argument(Argument::read("x", x, 0).unwrap())
        .argument(Argument::read("y", y, 0).unwrap());
    sanitize(COPY, &launch, &Options::default()).unwrap()
}

#[test]
fn an_input_is_not_written_and_an_output_not_read_before() {
    assert!(run("in:u32[32]=range", "out:u32[32]").is_clean());
    assert!(run("inout:u32[32]=range", "inout:u32[32]=zeros").is_clean());
    let codes = |report: Report| report.findings.iter().map(|own| own.code()).collect::<Vec<_>>();
    assert_eq!(codes(run("in:u32[32]=range", "in:u32[32]=zeros")), ["E1046"]);
    assert_eq!(codes(run("out:u32[32]", "out:u32[32]")), ["E1012"]);
}
