//! Kernels of CUDA C++ from `crates/sanitize/corpus`, as NVRTC compiled them: in the right ones
//! nothing is found, and in the wrong ones what the corpus says, at a line of the source.
//! `scripts/sanitize-corpus --keep` writes them anew.

use std::fs;
use std::path::Path;

use tilewright_sanitize::{Argument, Ending, KernelLaunch, Options, Report, sanitize};

fn extents(text: &str) -> [u32; 3] {
    let mut all = [1; 3];
    for (own, part) in all.iter_mut().zip(text.split(',')) {
        *own = part.parse().expect("a number");
    }
    all
}

/// All kept runs, without and with counts: the name, the codes that are expected, and the report.
fn reports() -> Vec<(String, Vec<String>, Report)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/corpus");
    let list = fs::read_to_string(folder.join("runs.tsv")).expect("the list");
    let run = |line: &str, costs: bool| {
        let [name, grid, block, cluster, shared, arguments, finds] =
            line.split('\t').collect::<Vec<&str>>().try_into().expect("seven fields");
        let ptx = fs::read_to_string(folder.join(format!("{name}.ptx"))).expect("its PTX");
        let mut launch = KernelLaunch::new(name, extents(grid), extents(block)).shared(shared.parse().unwrap_or(0));
        launch.cluster = (!cluster.is_empty()).then(|| extents(cluster));
        for (number, text) in arguments.split(' ').enumerate() {
            let plain = text.contains('[') && !text.contains('=') && !text.starts_with("out:");
            let text = if plain { format!("{text}=random") } else { text.to_string() };
            launch = launch.argument(Argument::read("", &text, number as u64).expect(&text));
        }
        let report = sanitize(&ptx, &launch, &Options { costs, ..Options::default() }).expect(name);
        let finds = finds.split(',').filter(|code| !code.is_empty()).map(str::to_string).collect();
        (name.to_string(), finds, report)
    };
    // Counting what a kernel costs changes nothing of what is found.
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| [run(line, false), run(line, true)]).collect()
}

#[test]
fn kernels_of_cuda_are_right_or_wrong_as_the_corpus_says() {
    let all = reports();
    assert!(all.len() >= 32, "{} runs", all.len());
    for (name, finds, report) in &all {
        assert_eq!(report.ending, Ending::Complete, "{name}: {:?}", report.unfinished());
        let texts: Vec<String> = report.findings.iter().map(|finding| finding.text(report)).collect();
        if finds.is_empty() {
            assert!(texts.is_empty(), "{name}: {texts:#?}");
            continue;
        }
        let named = |code: &str| report.findings.iter().any(|finding| finding.code() == code);
        assert!(!texts.is_empty(), "{name}: nothing is found");
        assert!(finds.iter().any(|code| code == "any" || named(code)), "{name}: {texts:#?}");
        assert!(texts.iter().any(|text| text.contains(".cu:")), "{name}: no line of the source in {texts:#?}");
        let log = report.to_sarif("kernel.ptx", "");
        assert!(log.contains("\"uri\": \"cuda/zoo.cu\"") || log.contains("\"uri\": \"cuda/ptx.cuh\""), "{name}: {log}");
    }
}
