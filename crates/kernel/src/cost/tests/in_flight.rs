//! Bytes in flight, compared with numbers by hand and with a list of loads and uses.

use super::cost;
use crate::cost::{InFlight, Machine};
use crate::element::Element;
use crate::interpret::tests::assembler::Assembler;
use crate::program::Program;
use crate::program::memory::{BufferId, Role};
use crate::program::operation::{Binary, Comparison, Operation};
use crate::program::register::{Register, Width};
use tilewright_layout::atoms::SwizzleMode;

/// The bytes that a warp loads at once if each lane loads four different bytes.
const WARP: u64 = 128;

/// The bytes that a block has in flight.
fn of_block(program: &Program) -> u64 {
    cost(program).in_flight.unwrap().block_bytes
}

/// A kernel of one block, its input, and for each thread the address of its four bytes.
fn begun(threads: u32) -> (Assembler, BufferId, Register) {
    let mut k = Assembler::new(1, threads);
    let x = k.global(Role::Input, Element::U32, 1 << 20);
    let thread = k.thread();
    let own = k.scaled(thread, 4, 0);
    (k, x, own)
}

fn load_further(k: &mut Assembler, x: BufferId, own: Register, bytes: i64) -> Register {
    let at = k.scaled(own, 1, bytes);
    k.load(x, at)
}

#[test]
fn loads_before_the_first_use_are_under_way_together() {
    // Two loads, then a use; in each of two warps.
    let (mut k, x, own) = begun(64);
    let (a, b) = (k.load(x, own), load_further(&mut k, x, own, 4096));
    k.binary(Binary::Add, a, b);
    assert_eq!(of_block(&k.program()), 2 * 2 * WARP);
    // Each load is used before the next.
    let (mut k, x, own) = begun(64);
    for iteration in 0..5 {
        let a = load_further(&mut k, x, own, 4096 * iteration);
        k.binary(Binary::Add, a, own);
    }
    assert_eq!(of_block(&k.program()), 2 * WARP);
    // The second load is used first: the first one is still in flight together with the third.
    let (mut k, x, own) = begun(32);
    let (_, b) = (k.load(x, own), load_further(&mut k, x, own, 4096));
    k.binary(Binary::Add, b, own);
    load_further(&mut k, x, own, 8192);
    assert_eq!(of_block(&k.program()), 2 * WARP);
    // A load whose address is loaded waits for the first load.
    let (mut k, x, own) = begun(32);
    let a = k.load(x, own);
    k.load(x, a);
    assert_eq!(of_block(&k.program()), 32 * 32);
    // Loads from shared memory do not count.
    let (mut k, _, own) = begun(32);
    let s = k.shared(Element::U32, 32);
    k.store(s, own, own);
    k.load(s, own);
    assert_eq!(of_block(&k.program()), 0);
}

#[test]
fn a_load_has_the_sectors_that_its_lanes_reach() {
    // All lanes the same four bytes; then a sector each, of 16 bytes; then none of them.
    for (factor, bytes) in [(0, 32), (32, 32 * 32), (128, 32 * 32)] {
        let (mut k, x, _) = begun(32);
        let thread = k.thread();
        let at = k.scaled(thread, factor, 0);
        k.load_vector(x, at, 32, 4);
        assert_eq!(of_block(&k.program()), bytes);
    }
    let (mut k, x, own) = begun(32);
    let none = k.compare(Comparison::Less, own, 0);
    k.guarded(none, |k| {
        k.load(x, own);
    });
    assert_eq!(of_block(&k.program()), 0);
}

#[test]
fn other_names_wait_for_nothing() {
    let named = |then: &dyn Fn(&mut Assembler, BufferId, Register, Register)| {
        let (mut k, x, own) = begun(32);
        let halves = k.load_vector(x, own, 16, 2);
        let word = k.one(Operation::Pack, &halves, Width::Bits32);
        let parts = k.emit(Operation::Unpack, &[word], &[Width::Bits16; 2]);
        let moved = k.one(Operation::Move, &[parts[1]], Width::Bits16);
        let last = k.one(Operation::Pack, &[moved, moved], Width::Bits32);
        then(&mut k, x, own, last);
        of_block(&k.program())
    };
    let other = |k: &mut Assembler, x: BufferId, own: Register| {
        load_further(k, x, own, 4096);
    };
    assert_eq!(named(&|k, x, own, _| other(k, x, own)), 2 * WARP);
    // A read of the last register waits for the whole load.
    let read = named(&|k, x, own, last| {
        k.binary(Binary::Add, last, own);
        other(k, x, own);
    });
    assert_eq!(read, WARP);
}

/// A loop that adds the values that it loads, each loaded `by` iterations ahead.
fn ahead(iterations: i64, by: usize) -> Program {
    let (mut k, x, own) = begun(32);
    let (zero, many) = (k.constant(0), k.constant(iterations));
    let mut initial = vec![own];
    for iteration in 0..by {
        initial.push(load_further(&mut k, x, own, 128 * iteration as i64));
    }
    let ends = k.iterations_carrying(zero, many, 1, &initial, |k, iteration, carried| {
        let at = k.scaled(iteration, 128, 128 * by as i64);
        let at = k.binary(Binary::Add, at, own);
        let next = k.load(x, at);
        let mut left: Vec<Register> = carried[1..].to_vec();
        left.push(next);
        let used = left.remove(0);
        let mut values = vec![k.binary(Binary::Add, carried[0], used)];
        values.extend(left);
        values
    });
    let y = k.global(Role::Output, Element::U32, 32);
    k.store(y, own, ends[0]);
    k.program()
}

#[test]
fn a_loop_has_under_way_what_it_loads_ahead() {
    for by in 0..5 {
        for iterations in [1, 20, 5000] {
            let wanted = if by == 0 { 1 } else { by as u64 + 1 };
            assert_eq!(of_block(&ahead(iterations, by)), wanted * WARP, "{by} ahead in {iterations} iterations");
        }
    }
    // A value that is never read must arrive before its register is written again.
    let (mut k, x, own) = begun(32);
    let (zero, many) = (k.constant(0), k.constant(9));
    k.iterations(zero, many, |k, _| {
        k.load(x, own);
    });
    assert_eq!(of_block(&k.program()), WARP);
}

#[test]
fn copies_are_under_way_until_their_group_is_waited_for() {
    let copies = |waits: u32| {
        let (mut k, x, own) = begun(64);
        let s = k.shared(Element::U32, 1024);
        for stage in 0..6 {
            let (from, to) = (k.scaled(own, 1, 256 * stage), k.scaled(own, 1, 256 * (stage % 4)));
            let from = k.wide(from);
            let (to_access, from_access) = (k.access(s, 32, 1), k.access(x, 32, 1));
            let operation = Operation::CopyAsync { to: to_access, from: from_access, or_zeros: false };
            k.emit(operation, &[to, from], &[]);
            k.plain(Operation::CommitAsync);
            k.plain(Operation::WaitAsync(waits));
        }
        of_block(&k.program())
    };
    // This many groups stay in flight, and one more begins.
    for waits in 0..4 {
        assert_eq!(copies(waits), u64::from(waits + 1) * 2 * WARP);
    }
    assert_eq!(copies(9), 6 * 2 * WARP);
}

/// One warp copies boxes of 512 bytes into a ring of stages, one box in each of `iterations`. In
/// each iteration it waits for the box of `behind` iterations before; if None, other warps wait.
fn ring(stages: i64, iterations: i64, behind: Option<i64>) -> Program {
    let mut k = Assembler::new(1, 32);
    let x = k.global(Role::Input, Element::U32, 1 << 16);
    let map = k.map(x, [32, 1 << 11], [32, 4], SwizzleMode::None);
    let (room, objects) = (k.shared(Element::U32, 128 * stages), k.shared(Element::U64, stages));
    let (zero, end) = (k.constant(0), k.constant(iterations));
    let stage_of = |k: &mut Assembler, iteration: Register| {
        let count = k.constant(stages);
        k.binary(Binary::Remainder, iteration, count)
    };
    k.iterations(zero, end, |k, iteration| {
        let stage = stage_of(k, iteration);
        let (to, object, row) = (k.scaled(stage, 512, 0), k.scaled(stage, 8, 0), k.scaled(iteration, 4, 0));
        k.only(0, |k| {
            let (to_access, barrier) = (k.access(room, 32, 1), k.access(objects, 64, 1));
            let operation = Operation::BulkLoad { map, to: to_access, barrier, multicast: false };
            k.emit(operation, &[to, object, zero, row], &[]);
        });
        let Some(behind) = behind else { return };
        let before = k.scaled(iteration, 1, stages - behind);
        let stage = stage_of(k, before);
        let object = k.scaled(stage, 8, 0);
        let access = k.access(objects, 64, 1);
        k.emit(Operation::BarrierWait { access }, &[object, zero], &[]);
    });
    k.program()
}

#[test]
fn boxes_are_under_way_until_their_barrier_is_waited_for() {
    for (stages, iterations) in [(4, 3), (4, 40), (10, 100_000), (10, 100_003), (10, 100_007), (40, 30_000)] {
        for behind in (0..stages).step_by(stages as usize / 2) {
            let wanted = (behind + 1).min(iterations) as u64 * 512;
            assert_eq!(of_block(&ring(stages, iterations, Some(behind))), wanted, "{stages} {iterations} {behind}");
        }
        // If other warps wait, all stages are in flight.
        assert_eq!(of_block(&ring(stages, iterations, None)), stages.min(iterations) as u64 * 512);
    }
}

#[test]
fn blocks_are_those_that_a_multiprocessor_has() {
    let machine = Machine::named("H200").unwrap();
    for (blocks, each) in [(1, 1), (132, 1), (133, 2), (132 * 8, 8), (132 * 8 + 1, 8), (1 << 20, 8)] {
        let mut k = Assembler::new(blocks, 256);
        let x = k.global(Role::Input, Element::U32, 1 << 20);
        let thread = k.thread();
        let own = k.scaled(thread, 4, 0);
        k.load(x, own);
        let held = k.program().cost(&machine, &[]).unwrap().in_flight.unwrap();
        let wanted = InFlight { block_bytes: 8 * WARP, blocks: each, at_most: false };
        assert_eq!((held, held.bytes()), (wanted, u64::from(each) * 8 * WARP));
    }
}

#[test]
fn what_memory_decides_is_marked() {
    let held = cost(&super::gathered()).in_flight.unwrap();
    // A byte of each lane, then at most a sector of each lane, in two warps.
    assert_eq!(held, InFlight { block_bytes: 2 * 32 * 32, blocks: 1, at_most: true });
}

/// The most bytes in flight: after each instruction, those of the earlier loads of which no value
/// has been read.
fn by_list(events: &[Event]) -> u64 {
    let loads = |place: &usize| matches!(events[*place], Event::Load);
    let waited = |load: usize, place: usize| events[..=place].contains(&Event::Use(load));
    let under_way = |place: usize| (0..=place).filter(loads).filter(|load| !waited(*load, place)).count() as u64;
    (0..events.len()).map(under_way).max().unwrap_or(0)
}

#[derive(Clone, Copy, PartialEq)]
enum Event {
    Load,
    /// A use of the value that was loaded at this event.
    Use(usize),
}

#[test]
fn what_is_under_way_is_what_nobody_has_read() {
    let mut random = 5_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..300 {
        let (mut k, x, own) = begun(32);
        let mut events = Vec::new();
        let mut loaded: Vec<(usize, Register)> = Vec::new();
        for place in 0..next(30) + 1 {
            if loaded.is_empty() || next(3) > 0 {
                loaded.push((place, load_further(&mut k, x, own, 128 * place as i64)));
                events.push(Event::Load);
            } else {
                let (load, register) = loaded[next(loaded.len())];
                k.binary(Binary::Add, register, own);
                events.push(Event::Use(load));
            }
        }
        assert_eq!(of_block(&k.program()), by_list(&events) * WARP);
    }
}
