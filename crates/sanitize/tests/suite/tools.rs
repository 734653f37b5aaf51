//! What the tests share: a kernel around statements, and its results.

use tilewright_sanitize::{Argument, KernelLaunch, LaunchError, Options, Report, sanitize};

/// A module with an entry `f` of pointers `p0` .., whose registers are declared, around statements.
/// `%i` is the thread in the grid, `%d0` .. hold the pointers.
pub fn kernel(pointers: usize, statements: &str) -> String {
    let parameters: Vec<String> = (0..pointers).map(|at| format!(".param .u64 p{at}")).collect();
    let loads: String = (0..pointers).map(|at| format!("ld.param.u64 %d{at}, [p{at}];\n")).collect();
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n\
         .visible .entry f({}) {{\n\
         .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %d<40>; .reg .f32 %f<30>;\n\
         .reg .f64 %g<20>; .reg .b32 %i; .reg .b64 %at4; .reg .b64 %at8;\n\
         {loads}\
         mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mov.u32 %r52, %tid.x;\n\
         mad.lo.u32 %i, %r50, %r51, %r52; mul.wide.u32 %at4, %i, 4; mul.wide.u32 %at8, %i, 8;\n\
         {statements}\nret;\n}}\n",
        parameters.join(", ")
    )
}

/// Runs a kernel of [`kernel`] with arrays as arguments.
pub fn run(text: &str, blocks: u32, threads: u32, arguments: &[&str]) -> Result<Report, LaunchError> {
    run_with(text, blocks, threads, arguments, &Options { cores: Some(1), ..Options::default() })
}

pub fn run_with(
    text: &str,
    blocks: u32,
    threads: u32,
    arguments: &[&str],
    options: &Options<'_>,
) -> Result<Report, LaunchError> {
    let mut launch = KernelLaunch::new("f", [blocks, 1, 1], [threads, 1, 1]);
    for (seed, argument) in arguments.iter().enumerate() {
        launch = launch.argument(Argument::read("", argument, seed as u64)?);
    }
    sanitize(text, &launch, options)
}

/// The words of 32 bits of the result of an argument, of a run in which nothing is found.
pub fn words(report: &Report, argument: usize) -> Vec<u32> {
    assert!(report.is_clean(), "{report}");
    let own = report.results.iter().find(|own| own.argument == argument).unwrap();
    own.bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The codes of what is found.
pub fn codes(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.code()).collect()
}
