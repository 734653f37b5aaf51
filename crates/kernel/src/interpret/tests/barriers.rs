//! mbarriers.

use super::assembler::{Assembler, finds, is_right, runs};
use crate::element::Element;
use crate::program::memory::BufferId;
use crate::program::operation::{Binary, Comparison, Operation};
use crate::program::register::Register;

pub(super) fn init(k: &mut Assembler, objects: BufferId, address: Register, count: u32) {
    let access = k.access(objects, 64, 1);
    k.emit(Operation::BarrierInit { access, count }, &[address], &[]);
}

pub(super) fn arrive(k: &mut Assembler, objects: BufferId, address: Register, expect: u32) {
    let access = k.access(objects, 64, 1);
    k.emit(Operation::BarrierArrive { access, expect }, &[address], &[]);
}

pub(super) fn wait(k: &mut Assembler, objects: BufferId, address: Register, parity: Register) {
    let access = k.access(objects, 64, 1);
    k.emit(Operation::BarrierWait { access }, &[address, parity], &[]);
}

/// How the threads of two warps publish their stores to each other by an mbarrier.
#[derive(Clone, Copy)]
struct Exchange {
    count: u32,
    /// Threads below this one arrive.
    arrivals: i64,
    init: bool,
    publish: bool,
    wait: bool,
    parity: i64,
    iterations: i64,
}

const EXCHANGE: Exchange =
    Exchange { count: 64, arrivals: 64, init: true, publish: true, wait: true, parity: 0, iterations: 1 };

fn exchange(how: Exchange) -> crate::program::Program {
    let mut k = Assembler::new(1, 64);
    let shared = k.shared(Element::U32, 64 * how.iterations);
    let objects = k.shared(Element::U64, 1);
    let thread = k.thread();
    let zero = k.constant(0);
    if how.init {
        k.only(0, |k| init(k, objects, zero, how.count));
    }
    if how.publish {
        k.barrier();
    }
    let (from, to) = (k.constant(0), k.constant(how.iterations));
    k.iterations(from, to, |k, iteration| {
        let (row, stage) = (k.scaled(thread, 4, 0), k.scaled(iteration, 256, 0));
        let address = k.binary(Binary::Add, row, stage);
        k.store(shared, address, thread);
        let arrives = k.compare(Comparison::Less, thread, how.arrivals);
        k.guarded(arrives, |k| arrive(k, objects, zero, 0));
        if how.wait {
            let one = k.constant(1);
            let parity = k.scaled(iteration, 1, how.parity);
            let parity = k.binary(Binary::And, parity, one);
            wait(k, objects, zero, parity);
        }
        let flip = k.constant(33 * 4);
        let other = k.binary(Binary::Xor, address, flip);
        k.load(shared, other);
    });
    k.program()
}

#[test]
pub(super) fn phases_order_those_who_arrive_before_those_who_wait() {
    is_right(&exchange(EXCHANGE));
    is_right(&exchange(Exchange { iterations: 5, ..EXCHANGE }));
    // No thread waits.
    finds(&exchange(Exchange { wait: false, ..EXCHANGE }), "E1016");
    finds(&exchange(Exchange { wait: false, iterations: 3, ..EXCHANGE }), "E1016");
    // All threads wait for the phase before the first one, which has completed, until the first
    // phase completes.
    for run in runs(&exchange(Exchange { parity: 1, ..EXCHANGE })) {
        let codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
        assert!(codes.iter().all(|code| ["E1016", "E1022", "E1042"].contains(code)), "{codes:?}");
    }
    // Half of the threads arrive, and the expected count is half: the stores of the others are not
    // visible.
    finds(&exchange(Exchange { arrivals: 32, count: 32, ..EXCHANGE }), "E1016");
}

#[test]
pub(super) fn too_few_arrivals_are_a_deadlock() {
    let how = Exchange { arrivals: 63, ..EXCHANGE };
    finds(&exchange(how), "E1022");
    finds(&exchange(Exchange { count: 65, ..EXCHANGE }), "E1022");
    finds(&exchange(Exchange { arrivals: 63, iterations: 3, ..EXCHANGE }), "E1022");
    let findings = runs(&exchange(how)).remove(0).unwrap_err();
    let text = findings[0].to_string();
    assert!(text.contains("63 of 64 arrivals") && text.contains("threads 0 to 63"), "{text}");
}

#[test]
pub(super) fn a_phase_that_is_left_unfinished_is_found() {
    let alone = |count: u32, arrivals: i64| {
        let mut k = Assembler::new(1, 64);
        let objects = k.shared(Element::U64, 1);
        let zero = k.constant(0);
        k.only(0, |k| init(k, objects, zero, count));
        k.barrier();
        k.below(arrivals, |k| arrive(k, objects, zero, 0));
        k.program()
    };
    is_right(&alone(16, 64));
    is_right(&alone(64, 64));
    is_right(&alone(64, 0));
    finds(&alone(64, 63), "E1023");
    finds(&alone(48, 64), "E1023");
    finds(&alone(65, 64), "E1023");
}

#[test]
pub(super) fn more_arrivals_than_a_phase_counts_are_found() {
    // The phase cannot complete, because bytes are pending; a second thread arrives meanwhile.
    let program = |second: bool, expect: u32| {
        let mut k = Assembler::new(1, 32);
        let objects = k.shared(Element::U64, 1);
        let zero = k.constant(0);
        k.only(0, |k| init(k, objects, zero, 1));
        k.barrier();
        k.only(0, |k| arrive(k, objects, zero, expect));
        if second {
            k.only(1, |k| arrive(k, objects, zero, 0));
        }
        k.program()
    };
    is_right(&program(false, 0));
    is_right(&program(true, 0));
    for expect in [1, 16, 4096] {
        for run in runs(&program(true, expect)) {
            let findings = run.unwrap_err();
            assert_eq!(findings[0].code(), "E1023", "{}", findings[0]);
        }
        finds(&program(false, expect), "E1024");
    }
}

#[test]
pub(super) fn barriers_have_to_be_initialised() {
    finds(&exchange(Exchange { init: false, ..EXCHANGE }), "E1025");
    // Another thread uses the mbarrier before its initialisation is visible: its access may also
    // come first, or during the initialisation.
    for run in runs(&exchange(Exchange { publish: false, ..EXCHANGE })) {
        let findings = run.unwrap_err();
        assert!(findings.iter().any(|finding| finding.code() == "E1025"), "{}", findings[0]);
    }
    let program = |address: i64| {
        let mut k = Assembler::new(1, 32);
        let objects = k.shared(Element::U64, 4);
        let (zero, other) = (k.constant(0), k.constant(address));
        k.only(0, |k| {
            init(k, objects, zero, 1);
            arrive(k, objects, other, 0);
        });
        k.program()
    };
    is_right(&program(0));
    finds(&program(8), "E1025");
    finds(&program(24), "E1025");
}

#[test]
pub(super) fn bytes_of_a_barrier_are_no_ones_else() {
    let program = |what: usize| {
        let mut k = Assembler::new(1, 32);
        let objects = k.shared(Element::U64, 4);
        let zero = k.constant(0);
        k.only(0, |k| {
            init(k, objects, zero, 1);
            let (first, next) = (k.constant(4), k.constant(8));
            match what {
                0 => k.store(objects, next, zero),
                1 => k.store(objects, first, zero),
                2 => {
                    k.load(objects, zero);
                }
                _ => init(k, objects, zero, 1),
            }
        });
        k.program()
    };
    is_right(&program(0));
    for what in 1..4 {
        finds(&program(what), "E1031");
    }
}
