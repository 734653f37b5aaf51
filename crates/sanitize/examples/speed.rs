//! How many instructions of threads a core executes in a second: a kernel that computes, one that
//! reads and writes global memory, and one that sums in shared memory behind barriers; unchecked,
//! then checked.
//!
//! ```text
//! cargo run --release -p tilewright-sanitize --example speed
//! ```

use std::time::{Duration, Instant};

use tilewright_sanitize::{Argument, KernelLaunch, LaunchError, Options, sanitize};

/// The least that is asked for, in instructions of threads a second and core.
const WANTED: f64 = 40e6;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn kernels() -> [(&'static str, String); 3] {
    let loop_ = "
        mov.u32 %r9, 0; LOOP:
        BODY
        add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 256; @%p1 bra LOOP;";
    let kernel = |before: &str, body: &str, after: &str| {
        format!(
            "{HEAD}.visible .entry f(.param .u64 a, .param .u64 b) {{
             .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<20>; .shared .align 4 .b8 s[1024];
             ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];
             mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
             mul.wide.u32 %d3, %r4, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
             shl.b32 %r5, %r1, 2; mov.u32 %r6, s; add.u32 %r6, %r6, %r5; xor.b32 %r7, %r6, 512;
             {before} {} {after} ret; }}",
            loop_.replace("BODY", body)
        )
    };
    [
        (
            "computes",
            kernel(
                "mov.f32 %f1, 0f3F800000; mov.u32 %r10, %r4;",
                "mad.lo.u32 %r10, %r10, 1664525, 1013904223; shr.u32 %r11, %r10, 9; xor.b32 %r10, %r10, %r11;
                 cvt.rn.f32.u32 %f2, %r11; fma.rn.f32 %f1, %f1, 0f3F000000, %f2; add.f32 %f3, %f1, %f2;
                 setp.gt.f32 %p2, %f3, %f2; selp.f32 %f1, %f1, %f3, %p2;",
                "st.global.f32 [%d2], %f1;",
            ),
        ),
        (
            "reads and writes global memory",
            kernel("", "ld.global.f32 %f1, [%d1]; add.f32 %f1, %f1, %f1; st.global.f32 [%d2], %f1;", ""),
        ),
        (
            "sums in shared memory",
            kernel(
                "mov.f32 %f1, 0f3F800000;",
                "st.shared.f32 [%r6], %f1; bar.sync 0; ld.shared.f32 %f2, [%r7]; add.f32 %f1, %f1, %f2; bar.sync 0;",
                "st.global.f32 [%d2], %f1;",
            ),
        ),
    ]
}

/// The time that this process had on a core, where the system tells of it: others that share the
/// machine do not count. Ticks are hundredths of a second.
fn busy(begin: Instant) -> Duration {
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|text| {
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(11);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    });
    ticks.map_or_else(|| begin.elapsed(), |ticks| Duration::from_millis(10 * ticks))
}

fn main() -> Result<(), LaunchError> {
    let start = Instant::now();
    let mut slow = 0;
    for (what, text) in kernels() {
        for checks in [false, true] {
            let launch = KernelLaunch::new("f", [64, 1, 1], [256, 1, 1])
                .argument(Argument::read("a", "in:f32[16384]", 0)?)
                .argument(Argument::read("b", "out:f32[16384]", 0)?);
            let begin = busy(start);
            let report = sanitize(&text, &launch, &Options { cores: Some(1), checks, ..Options::default() })?;
            let rate = report.thread_instructions as f64 / (busy(start) - begin).as_secs_f64().max(0.01);
            assert!(report.is_clean(), "{report}");
            println!("{:>7.1} million a second: {what}{}", rate / 1e6, if checks { ", checked" } else { "" });
            slow += u32::from(rate < WANTED);
        }
    }
    println!("{slow} of 6 are below {:.0} million a second", WANTED / 1e6);
    Ok(())
}
