//! Blocks that are counted, and what the last block may rely on.

use super::assembler::{Assembler, finds, is_right, runs};
use crate::element::Element;
use crate::program::Program;
use crate::program::memory::Role;
use crate::program::operation::{Binary, Comparison, Number, Operation};
use crate::program::register::Width;
use crate::program::scalar::Scalar;

const BLOCKS: i64 = 4;
const THREADS: i64 = 64;

/// The possible defects of a kernel whose last block adds the results of all blocks.
#[derive(Clone, Copy)]
struct How {
    /// The role of the partial results.
    role: Role,
    /// Whether a partial result is stored before the block is counted, and whether one is stored
    /// after.
    before: bool,
    after: bool,
    /// Whether the threads of a block synchronise before the block is counted, and after.
    meet: [bool; 2],
    /// The index of the block that adds, in the order of counting, and how often each block is
    /// counted.
    adds: i64,
    times: i64,
    /// The blocks that are counted, and the number of blocks in the counter.
    counted: i64,
    all: i64,
}

const RIGHT: How = How {
    role: Role::Output,
    before: true,
    after: false,
    meet: [true; 2],
    adds: BLOCKS - 1,
    times: 1,
    counted: BLOCKS,
    all: BLOCKS,
};

/// Each thread stores a number; each thread of the last block adds the numbers of the corresponding
/// threads of all blocks.
fn added(how: How) -> Program {
    let mut k = Assembler::new(BLOCKS, THREADS as u32);
    let parts = k.global(how.role, Element::U32, BLOCKS * THREADS);
    let sums = k.global(Role::Output, Element::U32, THREADS);
    let told = k.shared(Element::U32, 1);
    k.raw().counted = Some(told);
    k.raw().scalars.push(Scalar::Count);
    let which = k.one(Operation::Scalar(0), &[], Width::Bits32);
    let last = k.constant(how.all - 1);
    let (block, thread) = (k.block(), k.thread());
    let (first, own) = (k.scaled(block, 4 * THREADS, 0), k.scaled(thread, 4, 0));
    let mine = k.binary(Binary::Add, first, own);
    let number = k.binary(Binary::Add, thread, block);
    if how.before {
        k.store(parts, mine, number);
    }
    if how.meet[0] {
        k.barrier();
    }
    let zero = k.constant(0);
    k.only(0, |k| {
        let counts = k.compare(Comparison::Less, block, how.counted);
        k.branch(
            counts,
            |k| {
                for _ in 0..how.times {
                    let came = k.one(Operation::CountBlock, &[which, last], Width::Bits32);
                    k.store(told, zero, came);
                }
            },
            |k| k.store(told, zero, zero),
        );
    });
    if how.meet[1] {
        k.barrier();
    }
    if how.after {
        k.store(parts, mine, number);
        k.barrier();
    }
    let came = k.load(told, zero);
    let adds = k.compare(Comparison::Equal, came, how.adds);
    k.branch(
        adds,
        |k| {
            let flip = k.constant(4);
            let beside = k.binary(Binary::Xor, own, flip);
            let mut sum = zero;
            for block in 0..BLOCKS {
                let at = k.scaled(beside, 1, block * 4 * THREADS);
                let part = k.load(parts, at);
                sum = k.binary(Binary::Add, sum, part);
            }
            k.store(sums, own, sum);
        },
        |_| {},
    );
    k.program()
}

#[test]
pub(super) fn the_last_block_sees_what_all_have_left() {
    for role in [Role::Output, Role::Both] {
        let sums = is_right(&added(How { role, ..RIGHT })).tensor::<u32>(1).unwrap();
        assert!(sums.iter().zip(0..).all(|(sum, thread)| *sum == 4 * (thread ^ 1) + 6));
    }
}

#[test]
pub(super) fn what_is_not_passed_on_is_found() {
    for role in [Role::Output, Role::Both] {
        // The threads of a block do not synchronise before one of them counts the block.
        finds(&added(How { role, meet: [false, true], ..RIGHT }), "E1017");
        // A partial result is stored after the block is counted, or stored again.
        finds(&added(How { role, after: true, ..RIGHT }), "E1017");
        finds(&added(How { role, before: role == Role::Both, after: true, meet: [false, true], ..RIGHT }), "E1017");
    }
    // A block that is not the last one adds. If partial results are no outputs, it finds something
    // to read.
    for adds in 0..BLOCKS - 1 {
        let program = added(How { role: Role::Both, adds, ..RIGHT });
        for run in runs(&program) {
            let findings = run.unwrap_err();
            assert!(findings.iter().all(|finding| finding.code() == "E1017"), "{}", findings[0]);
        }
    }
    // Nothing has been written to the output yet.
    for run in runs(&added(How { adds: BLOCKS - 2, ..RIGHT })) {
        assert!(run.unwrap_err().iter().any(|finding| finding.code() == "E1012"));
    }
    // Without the barrier after the count, a thread may read before the block is known to be the
    // last.
    for run in runs(&added(How { meet: [true, false], ..RIGHT })) {
        let codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
        assert!(codes.contains(&"E1016") && codes.iter().all(|code| ["E1015", "E1016"].contains(code)), "{codes:?}");
    }
}

#[test]
pub(super) fn blocks_that_are_not_counted_once_are_found() {
    finds(&added(How { counted: BLOCKS - 1, ..RIGHT }), "E1040");
    finds(&added(How { times: 2, ..RIGHT }), "E1040");
    finds(&added(How { all: BLOCKS + 1, ..RIGHT }), "E1040");
    finds(&added(How { all: BLOCKS - 1, ..RIGHT }), "E1040");
}

#[test]
pub(super) fn outputs_are_read_by_nobody_who_was_not_told() {
    let program = |first: bool| {
        let mut k = Assembler::new(2, 32);
        let parts = k.global(Role::Output, Element::U32, 64);
        let (block, thread) = (k.block(), k.thread());
        let own = k.scaled(thread, 4, 0);
        let row = k.scaled(block, 128, 0);
        let mine = k.binary(Binary::Add, row, own);
        k.store(parts, mine, thread);
        let read = if first { own } else { mine };
        let value = k.load(parts, read);
        let zero = k.constant(0);
        k.one(Operation::MultiplyAdd(Number::I32), &[value, zero, zero], Width::Bits32);
        k.program()
    };
    finds(&program(false), "E1015");
    for run in runs(&program(true)) {
        assert!(run.unwrap_err().iter().all(|finding| ["E1012", "E1015"].contains(&finding.code())));
    }
}
