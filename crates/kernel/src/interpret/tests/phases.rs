//! Waits and arrivals whose phase depends on timing alone.

use super::assembler::{Assembler, finds, is_right};
use super::barriers::{arrive, init, wait};
use crate::element::Element;
use crate::program::Program;
use crate::program::operation::{Operation, Special};
use crate::program::register::Width;

/// Two warps and an mbarrier that expects `count` arrivals. In each of `iterations`, the first lane
/// of each warp below `arrives` arrives, and all lanes of the warps below `waits` wait for the
/// phase. Then the block synchronises, or each warp, or neither.
struct Phases {
    count: u32,
    arrives: i64,
    waits: i64,
    iterations: i64,
    meets: Option<Operation>,
}

fn phases(how: Phases) -> Program {
    let mut k = Assembler::new(1, 64);
    let objects = k.shared(Element::U64, 1);
    let zero = k.constant(0);
    k.only(0, |k| init(k, objects, zero, how.count));
    k.barrier();
    for iteration in 0..how.iterations {
        let parity = k.constant(iteration % 2);
        k.below(32 * how.arrives, |k| {
            let lane = k.one(Operation::Special(Special::Lane), &[], Width::Bits32);
            let first = k.compare(crate::program::operation::Comparison::Equal, lane, 0);
            k.guarded(first, |k| arrive(k, objects, zero, 0));
        });
        k.below(32 * how.waits, |k| wait(k, objects, zero, parity));
        if let Some(meets) = &how.meets {
            k.plain(meets.clone());
        }
    }
    k.program()
}

#[test]
pub(super) fn a_phase_waits_for_those_who_wait_for_the_one_before() {
    let block = || Some(Operation::Barrier);
    for iterations in [1, 2, 5] {
        is_right(&phases(Phases { count: 2, arrives: 2, waits: 2, iterations, meets: block() }));
        is_right(&phases(Phases { count: 2, arrives: 2, waits: 2, iterations, meets: Some(Operation::WarpBarrier) }));
        is_right(&phases(Phases { count: 1, arrives: 1, waits: 2, iterations, meets: block() }));
    }
    is_right(&phases(Phases { count: 1, arrives: 1, waits: 2, iterations: 1, meets: None }));
    // The second warp waits, and the first one does not wait for it.
    for iterations in [2, 3, 4] {
        finds_phases(Phases { count: 1, arrives: 1, waits: 2, iterations, meets: Some(Operation::WarpBarrier) });
    }
    // Each lane of a warp waits separately, and one lane arrives for all.
    for iterations in [2, 4] {
        finds_phases(Phases { count: 2, arrives: 2, waits: 2, iterations, meets: None });
    }
}

/// Checks that every schedule finds this defect, and otherwise only threads that wait forever.
fn finds_phases(how: Phases) {
    let program = phases(how);
    for run in super::assembler::runs(&program) {
        let codes: Vec<_> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
        assert!(codes.contains(&"E1042") && codes.iter().all(|code| ["E1042", "E1022"].contains(code)), "{codes:?}");
    }
}

#[test]
pub(super) fn an_arrival_comes_after_the_phase_before() {
    // Each of two warps arrives twice: one arrival of each is intended for each phase.
    let twice = |meets: bool, waits: bool| {
        let mut k = Assembler::new(1, 64);
        let objects = k.shared(Element::U64, 1);
        let (zero, one) = (k.constant(0), k.constant(1));
        k.only(0, |k| init(k, objects, zero, 2));
        k.barrier();
        for iteration in 0..2 {
            for warp in 0..2 {
                k.only(32 * warp, |k| arrive(k, objects, zero, 0));
            }
            if iteration == 0 && meets {
                k.barrier();
            }
        }
        if waits {
            wait(&mut k, objects, zero, one);
        }
        k.program()
    };
    // The barrier orders all arrivals, and so the completion of the phase.
    is_right(&twice(true, false));
    // No thread waits, so the phase of an arrival makes no difference.
    is_right(&twice(false, false));
    finds(&twice(false, true), "E1042");
}
