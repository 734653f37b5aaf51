//! Programs on layouts whose extents and strides are known at launch.
//!
//! A program is run on expressions, and for many admissible values of its parameters on numbers.
//! Where the expressions give a layout, it has the function of the layout that the numbers give, at
//! every index, and that satisfies the definition of the last operation. Where they refuse although
//! the numbers give a layout for all tried values, the program is counted; the share is printed and
//! limited.

mod generator;
mod program;

use crate::oracle::{Flat, composite_exists, value};
use crate::random::Random;
use generator::{Generator, parameters};
use program::{AsIs, Program};
use std::collections::BTreeMap;

use tilewright_layout::symbolic::{Declarations, Expr, Parameter, Symbolic, Values};
use tilewright_layout::{Layout, LayoutError};

fn plain(layout: &Layout) -> Flat {
    layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect()
}

/// The indices that are looked at: all of a small layout, some of a large one.
fn indices(random: &mut Random, size: i64) -> Vec<i64> {
    if size <= 600 {
        return (0..size).collect();
    }
    let mut some: Vec<i64> = (0..120).map(|_| random.below(size)).collect();
    some.extend([0, 1, 2, size / 2, size - 2, size - 1]);
    some
}

/// Asserts that the layout has what the definition of the last operation asks for.
fn satisfies(program: &Program, operands: &[Layout], result: &Layout, values: &Values, random: &mut Random) {
    let size = result.size();
    let got = plain(result);
    match program {
        Program::Compose(..) => {
            let (a, b) = (plain(&operands[0]), &operands[1]);
            assert_eq!(size, b.size());
            assert!(size > 300 || composite_exists(&a, &plain(b)), "{program:?}");
            for i in indices(random, size) {
                assert_eq!(value(&got, i), value(&a, value(&plain(b), i)), "{program:?} at {i}");
            }
        }
        Program::RightInverse(_) => {
            let a = plain(&operands[0]);
            for i in indices(random, size) {
                assert_eq!(value(&a, value(&got, i)), i, "{program:?} at {i}");
            }
        }
        Program::LeftInverse(_) => {
            let a = plain(&operands[0]);
            for k in indices(random, operands[0].size()) {
                let offset = value(&a, k);
                assert_eq!(value(&a, value(&got, offset)), offset, "{program:?} at {k}");
            }
        }
        Program::Complement(_, target) => {
            let a = operands[0].filter().unwrap();
            let (target, covered) = (target.numbers(values).unwrap(), a.size() * size);
            assert!(covered >= target, "{program:?}");
            if covered <= 5_000 {
                let mut seen = vec![false; covered as usize];
                for i in 0..a.size() {
                    for j in 0..size {
                        let offset = value(&plain(&a), i) + value(&got, j);
                        assert!(!std::mem::replace(&mut seen[offset as usize], true), "{program:?}");
                    }
                }
            }
        }
        _ => {}
    }
}

/// Runs programs, and gives how many percent are refused although all tried values have a layout.
fn measure(wild: bool, seed: u64, count: u32) -> f64 {
    let parameters = parameters();
    let mut names = Declarations::new();
    for (parameter, _) in &parameters {
        names.declare(parameter.name().unwrap(), parameter.facts()).unwrap();
    }
    let mut generator = Generator { random: Random(seed), wild, names };
    let mut random = Random(seed + 1);
    let (mut programs, mut answered, mut failing) = (0, 0, 0);
    let mut refused: Vec<(Program, LayoutError)> = Vec::new();
    while programs < count {
        let depth = 1 + generator.random.below(3) as u32;
        let program = generator.program(depth);
        // The least values first: that is where extents are 1.
        let samples: Vec<Values> = (0..24)
            .map(|place| {
                let mut values = Values::new();
                for (parameter, tried) in &parameters {
                    let value = if place == 0 { tried[0] } else { tried[random.below(tried.len() as i64) as usize] };
                    values.set(parameter, value);
                }
                values
            })
            .collect();
        let results: Vec<_> = samples.iter().map(|values| program.run(values)).collect();
        if results.iter().any(|result| result.as_ref().is_err_and(misfit)) {
            continue;
        }
        programs += 1;
        match program.run(&AsIs) {
            Ok(layout) => {
                answered += 1;
                samples.iter().for_each(|values| agrees(&program, &layout, values, &mut random));
            }
            Err(error) if results.iter().all(Result::is_ok) && holds(&program, &parameters, &mut random) => {
                refused.push((*program, error));
            }
            Err(_) => failing += 1,
        }
    }
    let share = 100.0 * refused.len() as f64 / f64::from(programs);
    println!(
        "{programs} programs: {answered} answered, {failing} without a layout for some values, {} refused although all \
         tried values have one ({share:.2} %)",
        refused.len()
    );
    let mut by_name = BTreeMap::new();
    for (program, _) in &refused {
        *by_name.entry(program.name()).or_insert(0) += 1;
    }
    println!("refused, by last operation: {by_name:?}");
    for (program, error) in refused.iter().take(SHOWN) {
        println!("  {program:?}\n      {error}");
    }
    share
}

/// Whether a program has a layout for many more values, also such as no tiling has.
fn holds(program: &Program, parameters: &[(Parameter, Vec<i64>)], random: &mut Random) -> bool {
    (0..40).all(|_| {
        let mut values = Values::new();
        for (parameter, tried) in parameters {
            let facts = parameter.facts();
            let value = match facts.least().unwrap_or(1) {
                // An index, which is below an extent.
                0 => tried[random.below(tried.len() as i64) as usize],
                least => facts.divisor() * (((least + facts.divisor() - 1) / facts.divisor()) + random.below(40)),
            };
            values.set(parameter, value);
        }
        program.run(&values).is_ok()
    })
}

/// How many refused programs are printed.
const SHOWN: usize = 40;

/// Whether a program makes no sense, or leaves what can be represented, rather than that it has no
/// layout.
fn misfit(error: &LayoutError) -> bool {
    matches!(
        error,
        LayoutError::NoSuchMode { .. }
            | LayoutError::Tiler { .. }
            | LayoutError::Coordinate { .. }
            | LayoutError::Rank { .. }
            | LayoutError::Overflow { .. }
            | LayoutError::Undecided { .. }
    )
}

/// Asserts that the layout of a program is, for some values, what the last operation gives on
/// numbers.
///
/// The operation on numbers takes the operands as they are here: a program of several operations on
/// numbers may have others on the way, where an extent is 1 and its stride cannot be observed.
fn agrees(program: &Program, layout: &Layout<Expr>, values: &Values, random: &mut Random) {
    let operands = program.operands().into_iter().map(|operand| operand.run(&AsIs).unwrap().numbers(values).unwrap());
    let operands: Vec<Layout> = operands.collect();
    let result = program.apply(&operands, values);
    let result = result.unwrap_or_else(|error| panic!("{program:?} = {layout}: {error} for {values:?}"));
    let substituted = layout.numbers(values).unwrap();
    // A left inverse is not unique; its law is asked below.
    if !matches!(program, Program::LeftInverse(_)) {
        assert_eq!(substituted.size(), result.size(), "{program:?} = {layout}, {result} for {values:?}");
        let (ours, theirs) = (plain(&substituted), plain(&result));
        for i in indices(random, result.size()) {
            assert_eq!(value(&ours, i), value(&theirs, i), "{program:?} = {layout}, {result} at {i} for {values:?}");
        }
    }
    satisfies(program, &operands, &substituted, values, random);
}

#[test]
fn tilings_are_right_for_every_value_and_rarely_refused() {
    assert!(measure(false, 7, programs(3_000)) < 1.0);
}

#[test]
fn all_programs_are_right_for_every_value() {
    measure(true, 8, programs(2_000));
}

fn programs(usual: u32) -> u32 {
    std::env::var("TILEWRIGHT_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
