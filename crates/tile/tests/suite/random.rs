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
use tilewright_tile::{Element, Program, interpret};

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
