//! Triton's encodings against what its package answers: text, shape and bases as recorded by
//! `scripts/triton_layouts.py`, compared at every basis; and against what its own tests state.

use std::fs;

use tilewright_layout::{AnyLayout, LinearLayout};
use tilewright_notation::Value;
use tilewright_read::{Missing, Options, Reading, Refused, document, expression};

/// One recorded fact: kind, text, shape, and the bases that the package has.
struct Fact {
    kind: String,
    text: String,
    shape: Vec<i64>,
    bases: String,
}

fn facts() -> Vec<Fact> {
    // The nightly script names a file of some thousands.
    let path = std::env::var("TILEWRIGHT_TRITON_FACTS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/triton_facts.tsv").to_owned());
    let lines = fs::read_to_string(path).unwrap();
    let fact = |line: &str| {
        let [kind, text, shape, bases] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let shape = shape.split(',').map(|extent| extent.parse().unwrap()).collect();
        Fact { kind: kind.into(), text: text.into(), shape, bases: bases.replace(" block=[]", "") }
    };
    lines.lines().map(fact).collect()
}

fn read(text: &str, shape: &[i64]) -> Result<Reading, Refused> {
    expression(text, &Options { shape: Some(shape.to_vec()), ..Options::default() })
}

/// What padding adds to an offset: after each interval its padding, by the documentation.
fn padding(fact: &Fact, offset: i64) -> i64 {
    if fact.kind != "padded" {
        return 0;
    }
    let pairs = fact.text.split_once('[').unwrap().1.split_once(']').unwrap().0;
    let pair = |pair: &str| {
        let (interval, padding) = pair.trim().split_once(":+").unwrap();
        offset / interval.parse::<i64>().unwrap() * padding.parse::<i64>().unwrap()
    };
    pairs.split(',').map(pair).sum()
}

/// Where the layout puts the element with this number, first mode fastest.
fn offset(layout: &AnyLayout, element: i64) -> i64 {
    match layout {
        AnyLayout::Integer(layout) => layout.eval(&element).unwrap(),
        AnyLayout::Composed(layout) => layout.eval(&element).unwrap(),
        other => panic!("{other} is no layout of offsets"),
    }
}

fn check(fact: &Fact) -> Result<(), String> {
    let read = read(&fact.text, &fact.shape).map_err(|error| error.to_string())?;
    let wanted: LinearLayout = fact.bases.parse().unwrap();
    let offsets = wanted.bases("offset").map(|bases| bases.len());
    match (read.value().unwrap(), offsets) {
        (Value::Linear(map), None) if map.to_string() == fact.bases => Ok(()),
        (Value::Layout(layout), Some(bits)) => {
            for bit in 0..wanted.matrix().inputs() {
                let element = wanted.matrix().apply(1 << bit) as i64;
                // A bit of the offset that leads to padding.
                if element == 0 && fact.kind == "fp4" {
                    continue;
                }
                // Blocks that hold copies are not told from each other.
                let place = if bit < bits { 1_i64 << bit } else { 0 };
                let found = offset(layout, element);
                if found != place + padding(fact, place) {
                    return Err(format!("{layout} has element {element} at {found}"));
                }
            }
            Ok(())
        }
        (Value::Linear(map), Some(_)) => {
            // The elements of several blocks: forth and back is where one was.
            let names: Vec<String> = map.outputs().iter().map(|(name, _)| name.to_string()).collect();
            for element in 0..wanted.matrix().inputs() {
                let image = wanted.matrix().apply(1 << element);
                let place = map.matrix().apply(image);
                let back = place == 1 << element || image == 0 && place == 0;
                let back =
                    back || wanted.bases("block").unwrap().iter().any(|basis| basis.iter().all(|index| *index == 0));
                if !back {
                    return Err(format!("{map} ({names:?}) has {image} at {place}"));
                }
            }
            Ok(())
        }
        (value, _) => Err(format!("have {value}")),
    }
}

#[test]
fn recorded_facts_of_triton() {
    let facts = facts();
    assert!(facts.len() >= 250, "{}", facts.len());
    let wrong: Vec<String> = facts
        .iter()
        .filter_map(|fact| {
            let because = check(fact).err()?;
            Some(format!("{} {:?}\n  want {}\n  {because}", fact.text, fact.shape, fact.bases))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), facts.len(), wrong[..wrong.len().min(5)].join("\n"));
}

/// The suite of Triton itself: `tests/triton_cases.tsv` has the inputs and the stated bases of its
/// tests of linear layouts in C++, for every encoding that is read.
#[test]
fn cases_of_triton_hold() {
    let cases = include_str!("../triton_cases.tsv").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in cases {
        let [kind, text, shape, stated] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let shape: Vec<i64> = shape.split(',').map(|extent| extent.parse().unwrap()).collect();
        if kind == "same" {
            let map = |text: &str| read(text, &shape).unwrap_or_else(|error| panic!("{text}: {error}")).to_string();
            assert_eq!(map(text), map(stated), "{text} {shape:?}");
        } else {
            let bases = stated.replace(" block=[]", "");
            let fact = Fact { kind: kind.into(), text: text.into(), shape, bases };
            check(&fact).unwrap_or_else(|because| panic!("{text} {:?}\n  want {stated}\n  {because}", fact.shape));
        }
        count += 1;
    }
    assert!(count >= 250, "{count}");
}

const FILE: &str = "\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {\"ttg.num-warps\" = 4 : i32} {
  tt.func public @f(%arg0: !tt.ptr<f16>) {
    %a = tt.load %p : tensor<64x32x!tt.ptr<f16>, #blocked>
    %b = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    %c = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
    %d = tt.splat %x : f32 -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
    %e = tt.fadd : tensor<64x32xf16, #nobody>
    tt.return
  }
}
";

#[test]
fn a_file_with_aliases_is_read() {
    let found = document(FILE, &Options::default());
    let texts: Vec<(usize, String)> = found
        .items
        .iter()
        .map(|item| (item.place.line, item.answer.as_ref().map_or_else(|e| e.to_string(), |r| r.to_string())))
        .collect();
    let wanted = [
        (
            7,
            "register=[(0,1),(0,2),(16,0),(32,0)] lane=[(0,4),(0,8),(0,16),(1,0),(2,0)] warp=[(4,0),(8,0)] -> dim0:64 dim1:32",
        ),
        (8, "S<3,3,3> o 0 o (3,64,64):(4096,64,1)"),
        (9, "S<3,3,3> o 0 o (64,64):(64,1)"),
        (
            9,
            "register=[(0,1),(8,0),(0,8),(0,16),(0,32),(32,0)] lane=[(0,2),(0,4),(1,0),(2,0),(4,0)] warp=[(0,0),(16,0)] -> dim0:64 dim1:64",
        ),
        (10, "register=[(8),(32)] lane=[(0),(0),(1),(2),(4)] warp=[(0),(16)] -> dim0:64"),
        (11, "the text does not define #nobody"),
    ];
    let wanted: Vec<(usize, String)> = wanted.iter().map(|(line, text)| (*line, text.to_string())).collect();
    assert_eq!(texts, wanted);
    // The rows of the product are held by four lanes and two warps each.
    assert_eq!(
        found.items[4].answer.as_ref().unwrap().notes,
        ["a thread has 4 registers of the 64 tensor; 8 threads hold each element"]
    );
}

#[test]
fn older_spellings_mean_the_same() {
    let new = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>";
    let old = "#triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CTAsPerCGA = [1, 2], CTASplitNum = [1, 2], CTAOrder = [1, 0]}>";
    assert_eq!(read(new, &[64, 64]).unwrap().to_string(), read(old, &[64, 64]).unwrap().to_string());
    let new = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let old = "#triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = false}>";
    assert_eq!(read(new, &[64, 64]).unwrap().to_string(), read(old, &[64, 64]).unwrap().to_string());
}

#[test]
fn what_is_missing_is_asked_and_what_is_wrong_is_refused() {
    let blocked =
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
    let asked = expression(blocked, &Options::default()).unwrap_err();
    assert!(matches!(&asked, Refused::Question(question) if question.missing == Missing::Shape), "{asked}");
    assert!(asked.to_string().contains("a tensor of 2 dimensions"), "{asked}");
    for (text, shape, part) in [
        (
            "#ttg.nvidia_mma<{versionMajor = 1, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 16]}>",
            vec![64, 64],
            "version 1",
        ),
        (blocked, vec![64], "an order of the 1 dimensions"),
        (blocked, vec![64, 48], "48 is none"),
        (
            "#ttg.blocked<{sizePerThread = [1, 3], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
            vec![64, 64],
            "powers of two",
        ),
        (
            "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 1]}>",
            vec![64, 64],
            "an order of the 2 dimensions",
        ),
        ("#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8", vec![64, 64], "cut off"),
        (
            "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
            vec![64, 32],
            "larger than this tensor",
        ),
        (
            "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = true}>",
            vec![64, 64],
            "hasLeadingOffset",
        ),
        (
            "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CTASPerCGA = [2, 1]}>",
            vec![64, 64],
            "the field CTASPerCGA is not known",
        ),
        (
            "gl.SwizzledSharedLayout(8, 1, 8, [1, 0], transposed=True)",
            vec![64, 64],
            "the field transposed is not known",
        ),
        (
            "#ttg.amd_wmma<{version = 3, isTranspose = false, warpsPerCTA = [2, 2], tilesPerWarp = [2, 2]}>",
            vec![64, 64],
            "the field tilesPerWarp is not known",
        ),
        (
            "#ttg.amd_wmma<{version = 2, isTranspose = false, warpsPerCTA = [2, 2], instrShape = [32, 16, 128]}>",
            vec![64, 64],
            "in version 3",
        ),
        // The package ends the process here.
        (
            "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8, 16]}>",
            vec![64, 64],
            "instrShape does not belong",
        ),
    ] {
        let error = read(text, &shape).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// Every prefix of every recorded text is read or refused, and none panics.
#[test]
fn texts_that_are_cut_off_are_refused() {
    for fact in facts().iter().step_by(7) {
        for end in 0..fact.text.len() {
            if let Some(part) = fact.text.get(..end) {
                let _ = read(part, &fact.shape);
            }
        }
    }
    let deep = "#ttg.slice<{dim = 0, parent = ".repeat(5000);
    assert!(read(&deep, &[4]).is_err());
    let _ = document(&"#ttg.blocked<a ".repeat(200_000), &Options::default());
    let _ = document(&"tensor<1x".repeat(200_000), &Options::default());
    let _ = document(&"tensor<4xf16, #a>\n#a = #a\n".repeat(1000), &Options::default());
}
