//! Counts compared with those of the interpreter, and registers compared with a list of live
//! ranges.
//!
//! Every program that the interpreter's tests find correct is counted here too, because `is_right`
//! calls this.

mod in_flight;

use super::{Cost, Machine, Uncounted};
use crate::element::Element;
use crate::interpret::tests::assembler::{Assembler, is_right};
use crate::interpret::{AccessCount, Class, Run};
use crate::program::memory::Role;
use crate::program::operation::{Binary, Comparison, Format, Number, Operation, Rounding};
use crate::program::register::Width;
use crate::program::{Instruction, Program, Step};

fn cost(program: &Program) -> Cost {
    program.cost(&Machine::named("H200").unwrap(), &[]).unwrap()
}

/// The counts of a run equal those of the cost report, or are at most those if the report says so.
#[track_caller]
pub(crate) fn agrees(program: &Program, run: &Run) {
    let Ok(counted) = cost(program).counted else { return };
    assert_eq!(counted.walked, counted.blocks);
    if counted.is_exact() {
        // The interpreter does not count the bytes that TMA moves.
        let own: Vec<AccessCount> =
            counted.accesses.iter().filter(|access| access.class != Class::Bulk).cloned().collect();
        assert_eq!(own, run.counts.accesses);
        for class in Class::ALL {
            let own = counted.executed.iter().find(|(own, _)| *own == class).map_or(0, |(_, count)| *count);
            assert_eq!(own, run.counts.executed(class), "{class:?}");
        }
        return;
    }
    let most = AccessCount::by_statement(&counted.accesses);
    for access in AccessCount::by_statement(&run.counts.accesses) {
        let most = most.iter().find(|most| (most.source, &most.buffer) == (access.source, &access.buffer)).unwrap();
        let numbers = |count: &AccessCount| [count.requests, count.bytes, count.wavefronts, count.sectors, count.lines];
        if most.at_most {
            assert!(numbers(&access).iter().zip(numbers(most)).all(|(own, most)| *own <= most), "{access:?} {most:?}");
        } else {
            assert_eq!(&access, most);
        }
    }
}

/// Each thread reads at an index that it loads from memory, and stores to its own element.
fn gathered() -> Program {
    let mut k = Assembler::new(2, 64);
    let (index, from) = (k.global(Role::Input, Element::U8, 64), k.global(Role::Input, Element::U32, 64));
    let to = k.global(Role::Output, Element::U32, 128);
    let (thread, block) = (k.thread(), k.block());
    let at = k.load_vector(index, thread, 8, 1)[0];
    let zero = k.one(crate::program::operation::Operation::Constant(0), &[], crate::program::register::Width::Bits16);
    let wide = k.one(crate::program::operation::Operation::Pack, &[at, zero], crate::program::register::Width::Bits32);
    let address = k.scaled(wide, 4, 0);
    let value = k.load(from, address);
    let own = k.scaled(block, 64, 0);
    let own = k.binary(Binary::Add, own, thread);
    let own = k.scaled(own, 4, 0);
    k.store(to, own, value);
    k.program()
}

#[test]
fn what_memory_decides_is_the_most_that_it_can_be() {
    let program = gathered();
    let run = is_right(&program);
    let counted = cost(&program).counted.unwrap();
    assert!(!counted.is_exact() && !counted.both_sides);
    let marks: Vec<bool> = counted.accesses.iter().map(|access| access.at_most).collect();
    assert_eq!(marks, [false, true, false]);
    // The report assumes a sector for each lane; the run accessed fewer.
    assert_eq!(counted.accesses[1].sectors, 4 * 32);
    assert!(run.counts.accesses[1].sectors < 4 * 32);
    assert_eq!(counted.accesses[2], run.counts.accesses[2]);
}

#[test]
fn a_condition_on_memory_goes_both_ways() {
    let mut k = Assembler::new(1, 32);
    let (x, y) = (k.global(Role::Input, Element::I32, 32), k.global(Role::Output, Element::I32, 32));
    let thread = k.thread();
    let address = k.scaled(thread, 4, 0);
    let value = k.load(x, address);
    let small = k.compare(Comparison::Less, value, 0);
    k.branch(small, |k| k.store(y, address, thread), |k| k.store(y, address, value));
    let program = k.program();
    is_right(&program);
    let counted = cost(&program).counted.unwrap();
    assert!(counted.both_sides);
    assert_eq!(counted.executed.iter().find(|(class, _)| *class == Class::Store), Some(&(Class::Store, 2)));
}

#[test]
fn a_loop_of_a_length_from_memory_is_not_counted() {
    let mut k = Assembler::new(1, 32);
    let (x, y) = (k.global(Role::Input, Element::U32, 1), k.global(Role::Output, Element::I32, 32));
    let zero = k.constant(0);
    let count = k.load(x, zero);
    let thread = k.thread();
    let sums =
        k.iterations_carrying(zero, count, 1, &[thread], |k, index, sums| vec![k.binary(Binary::Add, sums[0], index)]);
    let address = k.scaled(thread, 4, 0);
    k.store(y, address, sums[0]);
    assert!(matches!(cost(&k.program()).counted, Err(Uncounted::Loop { .. })));
}

#[test]
fn a_block_of_too_many_steps_is_not_counted() {
    // The loop-carried value grows by more in each iteration, so no two iterations are alike.
    let mut k = Assembler::new(1, 32);
    let y = k.global(Role::Output, Element::I32, 32);
    let (zero, many) = (k.constant(0), k.constant(1 << 30));
    let thread = k.thread();
    let sums =
        k.iterations_carrying(zero, many, 1, &[thread], |k, index, sums| vec![k.binary(Binary::Add, sums[0], index)]);
    let address = k.scaled(thread, 4, 0);
    k.store(y, address, sums[0]);
    assert!(matches!(cost(&k.program()).counted, Err(Uncounted::Steps { .. })));
}

#[test]
fn iterations_that_do_the_same_are_multiplied() {
    // Each iteration has two loads: one whose address is carried, and one at an address that
    // repeats after six iterations; for one iteration in three, it is a sector further.
    let program = |count: i64, iterations: i64| {
        let mut k = Assembler::new(count, 64);
        let x = k.global(Role::Input, Element::U32, 1 << 26);
        let y = k.global(Role::Output, Element::U32, 64 * count);
        let (zero, many) = (k.constant(0), k.constant(iterations));
        let thread = k.thread();
        let first = k.scaled(thread, 4, 0);
        let ends = k.iterations_carrying(zero, many, 1, &[first, zero], |k, _, at| {
            k.load(x, at[0]);
            let round = k.scaled(at[1], 16, 0);
            k.load(x, round);
            let on = k.scaled(at[0], 1, 256);
            let next = k.scaled(at[1], 1, 1);
            let end = k.compare(Comparison::Less, next, 6);
            let next = k.one(Operation::Select, &[end, next, zero], Width::Bits32);
            vec![on, next]
        });
        let block = k.block();
        let own = k.scaled(block, 64, 0);
        let own = k.binary(Binary::Add, own, thread);
        let own = k.scaled(own, 4, 0);
        k.store(y, own, ends[0]);
        cost(&k.program()).counted.unwrap()
    };
    let (short, long) = (program(1, 1000), program(100_000, 1_000));
    assert!(short.is_exact() && long.multiplied && !long.is_exact());
    for (short, long) in short.accesses.iter().zip(&long.accesses) {
        let numbers = |count: &AccessCount| [count.requests, count.bytes, count.sectors].map(|number| number as f64);
        for (short, long) in numbers(short).into_iter().zip(numbers(long)) {
            assert!((long / (100_000.0 * short) - 1.0).abs() < 0.01, "{short} {long}");
        }
    }
    // A thousand times as many iterations as are walked at most: that takes no longer.
    let longer = program(1, 1 << 20);
    assert!(longer.multiplied);
    assert_eq!(longer.accesses[0].requests, 2 << 20);
}

#[test]
fn large_grids_are_counted_in_part() {
    let mut k = Assembler::new(1_000_000, 32);
    let (x, y) = (k.global(Role::Input, Element::U32, 32_000_000), k.global(Role::Output, Element::U32, 32_000_000));
    let (thread, block) = (k.thread(), k.block());
    let first = k.scaled(block, 128, 0);
    let own = k.scaled(thread, 4, 0);
    let address = k.binary(Binary::Add, first, own);
    let value = k.load(x, address);
    k.store(y, address, value);
    let cost = cost(&k.program());
    let counted = cost.counted.clone().unwrap();
    assert!(counted.walked < 100 && !counted.is_exact());
    assert_eq!(counted.accesses[0].sectors, 4_000_000);
    assert_eq!((cost.sectors(), cost.tensor_bytes), (8_000_000, 256_000_000));
}

/// The most bits that are live at once: for each place, the registers that were written before it
/// and are read after it.
fn alive(program: &Program) -> u32 {
    let instructions: Vec<&Instruction> = program
        .body
        .iter()
        .filter_map(|step| match step {
            Step::Instruction(instruction) => Some(instruction),
            _ => None,
        })
        .collect();
    let free = |at: usize| {
        let written = instructions.iter().find(|by| by.outputs.iter().any(|output| output.index() == at));
        written.is_some_and(|by| matches!(by.operation, crate::program::operation::Operation::Constant(_)))
    };
    let bits_at = |place: usize| -> u32 {
        (0..program.widths.len())
            .filter(|at| !free(*at) && program.widths[*at].bits() > 1)
            .filter(|at| {
                let written = instructions.iter().position(|by| by.outputs.iter().any(|output| output.index() == *at));
                let read = instructions.iter().rposition(|by| by.inputs.iter().any(|input| input.index() == *at));
                // A result that is never read occupies its register while it is written.
                written.is_some_and(|written| {
                    written <= place && (read.is_some_and(|read| read > place) || written == place)
                })
            })
            .map(|at| program.widths[at].bits())
            .sum()
    };
    (0..instructions.len()).map(bits_at).max().unwrap_or(0)
}

#[test]
fn registers_are_the_lives_of_the_values() {
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..200 {
        let mut k = Assembler::new(1, 32);
        let (x, y) = (k.shared(Element::U32, 4096), k.shared(Element::U32, 4096));
        let mut values = vec![k.thread()];
        for _ in 0..next(40) + 1 {
            let (a, b) = (values[next(values.len())], values[next(values.len())]);
            match next(4) {
                0 => values.extend(k.load_vector(x, a, 32, [1, 2, 4][next(3)])),
                1 => k.store(y, a, b),
                _ => values.push(k.binary(Binary::Add, a, b)),
            }
        }
        let program = k.program();
        let found = super::registers::estimate(&program);
        assert_eq!(found, alive(&program).div_ceil(32) + 8);
    }
}

/// Widened 16-bit floats occupy half a register each until they are read, if they are read once.
#[test]
fn floats_are_widened_where_they_are_read() {
    let [from, to] = [Number::Bf16, Number::F32].map(Format::Number);
    let estimate = |reads: usize| {
        let mut k = Assembler::new(1, 32);
        let (x, y) = (k.shared(Element::Bf16, 64), k.shared(Element::F32, 64));
        let first = k.constant(0);
        let elements = k.load_vector(x, first, 16, 8);
        let widen = Operation::Convert { from, to, rounding: Rounding::Nearest };
        let wide: Vec<_> = elements.iter().map(|element| k.one(widen.clone(), &[*element], Width::Bits32)).collect();
        for _ in 0..reads {
            wide.iter().for_each(|wide| k.store(y, first, *wide));
        }
        super::registers::estimate(&k.program())
    };
    // Eight elements, in four registers or in eight.
    assert_eq!([estimate(1), estimate(2)], [8 + 4, 8 + 8]);
}
