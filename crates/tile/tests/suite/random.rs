//! Random programs: text and back, and what each pass leaves of them, bit for bit.
//!
//! Numbers are small and whole, so that sums of f32 are exact in every order: what a program means,
//! what it means with conversions between layouts, and what the kernel does under every schedule
//! must be the same bits.

mod body;
mod chance;
mod layout;
mod program;

use crate::programs::run::{Case, kernel};
use chance::Chance;
use program::{LAYOUTS, SEVERAL, any, stored};
use tilewright_layout::Refusal;
use tilewright_tile::{Element, GradientOptions, Program, interpret};

/// What stands in some of the programs at least.
const WORDS: [&str; 44] = [
    "abs(",
    "arange(",
    "argmax(",
    "as_f32(",
    "as_i32(",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "broadcast(",
    "e4m3(",
    "e5m2(",
    "f16(",
    "fma(",
    "held(",
    "histogram(",
    "i8(",
    "load(x, (16,16), (block.x, v",
    "load(x, (8,32), (v",
    "lshr(",
    "min(",
    "neg(",
    "random(",
    "recip(",
    "reduce_min(",
    "reduce_product(",
    "scan_before_",
    "scan_max(",
    "scan_min(",
    "select(",
    "shl(",
    "size(ceil(M/4))",
    "sqrt(",
    "stage(w, ",
    "store(turned, (v",
    "tanh(",
    "top(",
    "transpose(",
    "u8(",
    "unpack_i4(",
    "unpack_u4(",
    " / ",
    " < [v",
    " < [block.y*2",
    "\n        loop ",
];

#[test]
fn every_stage_of_random_programs_agrees() {
    let rounds = std::env::var("TILEWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(80);
    let from = std::env::var("TILEWRIGHT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut staged = 0;
    let mut counts = [0_u64; WORDS.len()];
    for round in from..from + rounds {
        let (text, placed) = agrees(round);
        counts.iter_mut().zip(WORDS).for_each(|(count, word)| *count += u64::from(text.contains(word)));
        staged += u64::from(placed.contains("stage("));
    }
    // Some of them multiply tiles that go through shared memory.
    assert!(staged * 50 >= rounds, "{staged} of {rounds}");
    // Each operation is in some of them.
    let rare: Vec<_> = WORDS.iter().zip(counts).filter(|(_, count)| count * 100 < rounds).collect();
    assert!(rare.is_empty(), "{rare:?} of {rounds}");
}

/// The gradient of each random program that has one, against differences of the program.
#[test]
fn gradients_of_random_programs_agree_with_differences() {
    let rounds = std::env::var("TILEWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let (mut derived, mut compared) = (0, 0_u64);
    for round in 0..rounds {
        if let Some(elements) = differs(round) {
            derived += 1;
            compared += elements as u64;
        }
    }
    assert!(derived * 6 >= rounds, "{derived} of {rounds} have a gradient");
    assert!(compared >= derived, "{compared} elements of {derived} programs");
}

/// Compares the gradient of the program of a number with differences of the program, and returns at
/// how many elements; none if the program is refused.
fn differs(round: u64) -> Option<usize> {
    let mut chance = Chance(round * 6271 + 11);
    let (layout, whole) = chance.one(&LAYOUTS);
    let program = any(&mut chance, Element::F32, layout).unwrap_or_else(|error| panic!("program {round}: {error}"));
    let options = GradientOptions { of: vec!["x".to_string()], atomic: true, ..GradientOptions::default() };
    let gradient = match program.gradient(&options) {
        Ok(gradient) => gradient,
        Err(error) => {
            assert_eq!(error.code(), "E1213", "program {round}: {error}\n{program}");
            return None;
        }
    };
    for own in gradient.programs() {
        let read: Program = own.to_string().parse().unwrap_or_else(|error| panic!("program {round}: {error}\n{own}"));
        assert_eq!(read.to_string(), own.to_string(), "program {round}");
    }
    // A number of 16 bits stays the same where it moves by less than its last digit.
    let text = program.to_string();
    if ["f16(", "e4m3(", "e5m2(", "dot("].iter().any(|word| text.contains(word)) {
        return Some(0);
    }
    let (m, n) = (if whole == 2 { 16 } else { 13 }, if whole > 0 { 32 } else { 29 });
    // Fractions, so that few elements are equal or lie where a function has a corner.
    let mut input = |count: i64| -> Vec<f64> { (0..count).map(|_| chance.below(4093) as f64 / 2048.0).collect() };
    let mut inputs = vec![("x", input(m * n)), ("z", input(m * n)), ("w", input(SEVERAL * 512))];
    for (name, count) in [("counts", 64), ("sums", 1), ("turned", 32 * 64)] {
        if program.tensors().iter().any(|tensor| tensor.name == name) {
            inputs.push((name, vec![0.0; count]));
        }
    }
    let mut sizes = vec![("M", m), ("N", n)];
    let blocks = [(m + 15) / 16, (n + 31) / 32];
    let shapes: Vec<i64> = stored(&program).into_iter().flatten().collect();
    for (at, name) in ["A0", "B0", "A1", "B1"].into_iter().enumerate() {
        sizes.push((name, shapes[at] * blocks[at % 2]));
    }
    // The derivative by an element of an output is 1, 2 or 3; by others than f32 it is 0.
    let weight = |at: usize| (at % 3 + 1) as f64;
    let is_float =
        |name: &str| program.tensors().iter().any(|tensor| tensor.name == name && tensor.element == Element::F32);
    let loss = |inputs: &[(&str, Vec<f64>)]| -> (f64, f64) {
        let outputs = interpret::run(&program, &sizes, inputs).unwrap_or_else(|error| panic!("{round}: {error}"));
        let all = outputs.iter().filter(|(name, _)| is_float(name));
        let terms = all.flat_map(|(_, all)| all.iter().enumerate().map(|(at, own)| weight(at) * own.unwrap_or(0.0)));
        terms.fold((0.0, 0.0), |(sum, most), term| (sum + term, most + term.abs()))
    };
    let outputs = interpret::run(&program, &sizes, &inputs).unwrap_or_else(|error| panic!("{round}: {error}"));
    let by = |name: &str, at: usize| if is_float(name) { weight(at) } else { 0.0 };
    let names: Vec<(String, Vec<f64>)> = outputs
        .iter()
        .map(|(name, all)| (format!("d_{name}"), (0..all.len()).map(|at| by(name, at)).collect()))
        .collect();
    let mut given = inputs.clone();
    given.extend(names.iter().map(|(name, all)| (name.as_str(), all.clone())));
    given.push(("d_x", vec![0.0; (m * n) as usize]));
    let found = gradient.run(&sizes, &given).unwrap_or_else(|error| panic!("program {round}: {error}\n{gradient}"));
    let derivatives = &found.iter().find(|(name, _)| name == "d_x").expect("it was asked for").1;
    let mut compared = 0;
    for step in 0..8 {
        let element = (step * 97 + round as usize) % derivatives.len();
        let difference = |by: f64| {
            let at = |by: f64| {
                let mut moved = inputs.clone();
                moved[0].1[element] += by;
                loss(&moved)
            };
            ((at(by).0 - at(-by).0) / (2.0 * by), at(by).1 * 1e-7 / by)
        };
        let ((wide, rough), (narrow, rounded)) = (difference(1.0 / 256.0), difference(1.0 / 512.0));
        let allowed = 1e-2 * (1.0 + narrow.abs()) + 20.0 * rough.max(rounded);
        // Where both differ there is a corner or a jump in between.
        if !narrow.is_finite() || (wide - narrow).abs() > allowed / 4.0 {
            continue;
        }
        compared += 1;
        let derivative = derivatives[element].unwrap_or(0.0);
        assert!(
            (derivative - narrow).abs() <= allowed,
            "program {round}: d_x[{element}] is {derivative}, and differences give {narrow}\n{program}\n{gradient}"
        );
    }
    Some(compared)
}

/// Compares the stages of the program of a number; its text, and that with conversions.
fn agrees(round: u64) -> (String, String) {
    let mut chance = Chance(round * 7919 + 5);
    let element = chance.one(&[Element::F32, Element::Bf16, Element::F16, Element::I8, Element::U8, Element::E4M3]);
    let (layout, whole) = chance.one(&LAYOUTS);
    let program = any(&mut chance, element, layout).unwrap_or_else(|error| panic!("program {round}: {error}"));
    let text = program.to_string();
    program.verify().unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
    let read: Program = text.parse().unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
    assert_eq!(read.to_string(), text, "program {round}");
    let (m, n) = (
        if whole == 2 { 8 * (1 + chance.below(4) as i64) } else { 1 + chance.below(32) as i64 },
        if whole > 0 { 8 * (1 + chance.below(8) as i64) } else { 1 + chance.below(64) as i64 },
    );
    let mut input = |count: i64| -> Vec<f64> { (0..count).map(|_| chance.below(7) as f64).collect() };
    let mut inputs = vec![("x", input(m * n)), ("z", input(m * n)), ("w", input(SEVERAL * 512))];
    for (name, count) in [("counts", 64), ("sums", 1), ("turned", 32 * 64)] {
        if program.tensors().iter().any(|tensor| tensor.name == name) {
            inputs.push((name, input(count)));
        }
    }
    let mut sizes = vec![("M", m), ("N", n)];
    // Outputs are as large as all tiles of the grid.
    let blocks = [(m + 15) / 16, (n + 31) / 32];
    let names = ["A0", "B0", "A1", "B1"];
    let shapes: Vec<i64> = stored(&program).into_iter().flatten().collect();
    for (at, name) in names.into_iter().enumerate() {
        sizes.push((name, shapes[at] * blocks[at % 2]));
    }
    let meant =
        interpret::run(&program, &sizes, &inputs).unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
    assert_eq!(interpret::run(&read, &sizes, &inputs).unwrap(), meant, "program {round}, read again\n{text}");
    let compiled = program.compile(None).unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
    let placed = compiled.placed();
    placed.verify().unwrap_or_else(|error| panic!("program {round}, placed: {error}\n{placed}"));
    let found = interpret::run(placed, &sizes, &inputs).unwrap();
    assert_eq!(found, meant, "program {round}: conversions change it\n{text}\n{placed}");
    let case = Case::new(&sizes, &inputs);
    for (name, wanted) in &meant {
        let found = kernel(&compiled, &case, name);
        for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let wanted = wanted.unwrap_or_else(|| panic!("program {round}: {name} at {at} is not written\n{text}"));
            assert!(*found == wanted, "program {round}: {name} at {at} is {found}, not {wanted}\n{text}\n{placed}");
        }
    }
    (text, placed.to_string())
}
