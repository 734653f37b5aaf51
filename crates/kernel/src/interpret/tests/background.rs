//! Asynchronous copies: when their results may be read, which memory may be accessed meanwhile, and
//! how a kernel may end.

use super::assembler::{Assembler, finds, is_right};
use crate::element::Element;
use crate::program::memory::{BufferId, Role};
use crate::program::operation::{Binary, Comparison, Operation};
use crate::program::register::Register;

fn copy_async(k: &mut Assembler, to: (BufferId, Register), from: (BufferId, Register), copied: Option<Register>) {
    let source = k.wide(from.1);
    let operation =
        Operation::CopyAsync { to: k.access(to.0, 32, 4), from: k.access(from.0, 32, 4), or_zeros: copied.is_some() };
    let inputs: Vec<Register> = [to.1, source].into_iter().chain(copied).collect();
    k.emit(operation, &inputs, &[]);
}

/// Each thread copies 16 bytes, executes `between`, and loads the bytes that another thread copied,
/// `apart` threads further.
fn exchange(apart: i64, between: &[Operation]) -> Assembler {
    let mut k = Assembler::new(2, 64);
    let source = k.global(Role::Input, Element::U32, 256);
    let target = k.global(Role::Output, Element::U32, 512);
    let shared = k.shared(Element::U32, 256);
    let (thread, block) = (k.thread(), k.block());
    let address = k.scaled(thread, 16, 0);
    copy_async(&mut k, (shared, address), (source, address), None);
    for operation in between {
        k.plain(operation.clone());
    }
    let flip = k.constant(16 * apart);
    let other = k.binary(Binary::Xor, address, flip);
    let values = k.load_vector(shared, other, 32, 4);
    let row = k.scaled(block, 1024, 0);
    let to = k.binary(Binary::Add, row, address);
    k.store_vector(target, to, 32, &values);
    k
}

const WAIT: Operation = Operation::WaitAsync(0);

#[test]
pub(super) fn copies_are_read_after_waiting() {
    use Operation::{Barrier, CommitAsync, WarpBarrier};
    let run = is_right(&exchange(33, &[CommitAsync, WAIT, Barrier]).program());
    let (source, target) = (run.tensor::<u32>(0).unwrap(), run.tensor::<u32>(1).unwrap());
    for (at, value) in target.iter().enumerate() {
        assert_eq!(*value, source[(at % 256) ^ (33 * 4)], "{at}");
    }
    is_right(&exchange(0, &[CommitAsync, WAIT]).program());
    is_right(&exchange(1, &[CommitAsync, WAIT, WarpBarrier]).program());
    // Three defects: the copy is waited for without a barrier; the barrier comes before the wait;
    // the copy is not committed, so it is not waited for.
    finds(&exchange(1, &[CommitAsync, WAIT]).program(), "E1018");
    finds(&exchange(33, &[CommitAsync, Barrier, WAIT]).program(), "E1018");
}

#[test]
pub(super) fn copies_that_are_not_waited_for_are_found() {
    use Operation::{Barrier, CommitAsync};
    // The bytes are read too early, and the copy is still pending at the end.
    for between in
        [vec![CommitAsync, Barrier], vec![WAIT, Barrier], vec![CommitAsync, Operation::WaitAsync(1), Barrier]]
    {
        for run in super::assembler::runs(&exchange(33, &between).program()) {
            let mut codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
            codes.sort_unstable();
            assert_eq!(codes, ["E1018", "E1020"]);
        }
    }
}

/// A ring of `stages`: each iteration waits for the oldest stage, reads it, and copies to the stage
/// that was read before.
fn ring(stages: i64, left: u32, barriers: [bool; 2]) -> Assembler {
    let iterations = 6;
    let mut k = Assembler::new(1, 64);
    let source = k.global(Role::Input, Element::U32, 256 * iterations);
    let target = k.global(Role::Output, Element::U32, 256 * iterations);
    let shared = k.shared(Element::U32, 256 * stages);
    let thread = k.thread();
    let (zero, count, last) = (k.constant(0), k.constant(iterations), k.constant(stages));
    let row = k.scaled(thread, 16, 0);
    let fill = |k: &mut Assembler, iteration: Register| {
        let stage = k.binary(Binary::Remainder, iteration, last);
        let (to, from) = (k.scaled(stage, 1024, 0), k.scaled(iteration, 1024, 0));
        let (to, from) = (k.binary(Binary::Add, to, row), k.binary(Binary::Add, from, row));
        let real = k.compare(Comparison::Less, iteration, iterations);
        let source_address = k.wide(from);
        k.guarded(real, |k| {
            let operation =
                Operation::CopyAsync { to: k.access(shared, 32, 4), from: k.access(source, 32, 4), or_zeros: false };
            k.emit(operation, &[to, source_address], &[]);
        });
        k.plain(Operation::CommitAsync);
    };
    let first = k.constant(stages - 1);
    k.iterations(zero, first, |k, iteration| fill(k, iteration));
    k.iterations(zero, count, |k, iteration| {
        k.plain(Operation::WaitAsync(left));
        if barriers[0] {
            k.barrier();
        }
        let ahead = k.scaled(iteration, 1, stages - 1);
        let stage = k.binary(Binary::Remainder, iteration, last);
        let (from, to) = (k.scaled(stage, 1024, 0), k.scaled(iteration, 1024, 0));
        let flip = k.constant(16 * 33);
        let other = k.binary(Binary::Xor, row, flip);
        let (from, to) = (k.binary(Binary::Add, from, other), k.binary(Binary::Add, to, row));
        let values = k.load_vector(shared, from, 32, 4);
        k.store_vector(target, to, 32, &values);
        if barriers[1] {
            k.barrier();
        }
        fill(k, ahead);
    });
    k.plain(Operation::WaitAsync(0));
    k
}

#[test]
pub(super) fn rings_of_stages_work() {
    for stages in [2, 3, 4] {
        is_right(&ring(stages, stages as u32 - 2, [true, true]).program());
        // The barrier of the next iteration comes before the next copy to the stage that this one
        // reads.
        let run = is_right(&ring(stages, stages as u32 - 2, [true, false]).program());
        let (source, target) = (run.tensor::<u32>(0).unwrap(), run.tensor::<u32>(1).unwrap());
        for (at, value) in target.iter().enumerate() {
            assert_eq!(*value, source[at ^ (33 * 4)], "{at}");
        }
    }
}

#[test]
pub(super) fn rings_with_a_defect_are_found() {
    // One group too many may be in flight: that of the stage that is read.
    finds(&ring(3, 2, [true, true]).program(), "E1018");
    finds(&ring(2, 1, [true, true]).program(), "E1018");
    finds(&ring(4, 3, [true, true]).program(), "E1018");
    // No barrier lets the other threads know that these have waited.
    finds(&ring(3, 1, [false, true]).program(), "E1018");
}

#[test]
pub(super) fn bytes_are_left_alone_while_they_are_copied() {
    // Three defects: a store to the destination, a store to the source, and another copy to the
    // same destination.
    let program = |what: usize, wait: bool| {
        let mut k = Assembler::new(1, 32);
        let memory = k.global(Role::Both, Element::U32, 128);
        let shared = k.shared(Element::U32, 128);
        let thread = k.thread();
        let address = k.scaled(thread, 16, 0);
        copy_async(&mut k, (shared, address), (memory, address), None);
        k.plain(Operation::CommitAsync);
        if wait {
            k.plain(WAIT);
        }
        match what {
            0 => k.store(shared, address, thread),
            1 => k.store(memory, address, thread),
            _ => copy_async(&mut k, (shared, address), (memory, address), None),
        }
        k.plain(Operation::CommitAsync);
        k.plain(WAIT);
        k.program()
    };
    for what in 0..3 {
        is_right(&program(what, true));
        finds(&program(what, false), "E1018");
    }
}

#[test]
pub(super) fn a_copy_comes_after_what_was_done_before() {
    // Another thread reads or writes the destination before the copy.
    let program = |barrier: bool, write: bool| {
        let mut k = Assembler::new(1, 64);
        let source = k.global(Role::Input, Element::U32, 256);
        let shared = k.shared(Element::U32, 256);
        let thread = k.thread();
        let address = k.scaled(thread, 16, 0);
        k.store_vector(shared, address, 32, &[thread; 4]);
        k.barrier();
        let flip = k.constant(512);
        let other = k.binary(Binary::Xor, address, flip);
        if write {
            k.store_vector(shared, other, 32, &[thread; 4]);
        } else {
            k.load_vector(shared, other, 32, 4);
        }
        if barrier {
            k.barrier();
        }
        copy_async(&mut k, (shared, address), (source, address), None);
        k.plain(Operation::CommitAsync);
        k.plain(WAIT);
        k.program()
    };
    for write in [false, true] {
        is_right(&program(true, write));
        // The defect is found whichever access comes first.
        finds(&program(false, write), "E1018");
    }
}

#[test]
pub(super) fn zeros_where_nothing_is_copied() {
    let program = |elements: i64, end: i64| {
        let mut k = Assembler::new(1, 32);
        let source = k.global(Role::Input, Element::U32, elements);
        let target = k.global(Role::Output, Element::U32, 128);
        let shared = k.shared(Element::U32, 128);
        let thread = k.thread();
        let address = k.scaled(thread, 16, 0);
        let copied = k.compare(Comparison::Less, thread, end);
        copy_async(&mut k, (shared, address), (source, address), Some(copied));
        k.plain(Operation::CommitAsync);
        k.plain(WAIT);
        let values = k.load_vector(shared, address, 32, 4);
        k.store_vector(target, address, 32, &values);
        k.program()
    };
    let run = is_right(&program(80, 20));
    let target = run.tensor::<u32>(1).unwrap();
    assert_eq!(target[..80], run.tensor::<u32>(0).unwrap());
    assert!(target[80..].iter().all(|value| *value == 0));
    finds(&program(80, 21), "E1010");
    is_right(&program(128, 32));
}

#[test]
pub(super) fn empty_groups_may_be_left_behind() {
    let program = |copy: bool| {
        let mut k = Assembler::new(1, 32);
        let source = k.global(Role::Input, Element::U32, 128);
        let shared = k.shared(Element::U32, 128);
        let thread = k.thread();
        let address = k.scaled(thread, 16, 0);
        copy_async(&mut k, (shared, address), (source, address), None);
        k.plain(Operation::CommitAsync);
        k.plain(Operation::WaitAsync(0));
        if copy {
            copy_async(&mut k, (shared, address), (source, address), None);
        }
        k.plain(Operation::CommitAsync);
        k.plain(Operation::CommitAsync);
        k.plain(Operation::WaitAsync(2));
        k.program()
    };
    is_right(&program(false));
    finds(&program(true), "E1020");
}
