//! Races between threads of a warp, warps, and blocks: each combination of two accesses.

use super::assembler::{Assembler, finds, is_right};
use crate::element::Element;
use crate::program::memory::{BufferId, Role};
use crate::program::operation::{AtomicOperation, Binary, Comparison, Fence, Matrix, Number, Operation, Shuffle};
use crate::program::register::{Register, Width};

/// Each thread writes its element, and reads that of the thread `apart` further, cyclically.
fn exchange(threads: u32, apart: i64, between: &[Operation]) -> Assembler {
    let mut k = Assembler::new(1, threads);
    let target = k.global(Role::Output, Element::U32, threads.into());
    let shared = k.shared(Element::U32, threads.into());
    let thread = k.thread();
    let address = k.scaled(thread, 4, 0);
    k.store(shared, address, thread);
    for operation in between {
        k.plain(operation.clone());
    }
    let count = k.constant(threads.into());
    let next = k.scaled(thread, 1, apart);
    let next = k.binary(Binary::Remainder, next, count);
    let other = k.scaled(next, 4, 0);
    let value = k.load(shared, other);
    k.store(target, address, value);
    k
}

#[test]
pub(super) fn a_read_after_a_write_of_another_thread_needs_a_barrier() {
    let run = is_right(&exchange(128, 1, &[Operation::Barrier]).program());
    let expected: Vec<u32> = (0..128).map(|thread| (thread + 1) % 128).collect();
    assert_eq!(run.tensor::<u32>(0).unwrap(), expected);
    is_right(&exchange(128, 0, &[]).program());
    finds(&exchange(128, 32, &[Operation::WarpBarrier]).program(), "E1016");
    finds(&exchange(128, 1, &[Operation::Fence(Fence::Block)]).program(), "E1016");
}

#[test]
pub(super) fn lanes_of_a_warp_need_a_barrier_too() {
    is_right(&exchange(32, 1, &[Operation::WarpBarrier]).program());
    is_right(&exchange(32, 1, &[Operation::Barrier]).program());
    finds(&exchange(32, 1, &[]).program(), "E1016");
    finds(&exchange(32, 31, &[Operation::Fence(Fence::Device)]).program(), "E1016");
    // With two warps, a barrier of the warp orders accesses within each warp, but not between them.
    finds(&exchange(64, 1, &[Operation::WarpBarrier]).program(), "E1016");
}

#[test]
pub(super) fn shuffles_and_ballots_order_no_memory() {
    let program = |barrier: bool, ballot: bool| {
        let mut k = Assembler::new(1, 32);
        let shared = k.shared(Element::U32, 32);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        k.store(shared, address, thread);
        if ballot {
            let all = k.compare(Comparison::GreaterEqual, thread, 0);
            k.one(Operation::Ballot, &[all], Width::Bits32);
        } else {
            k.one(Operation::Shuffle(Shuffle::Butterfly(1)), &[thread], Width::Bits32);
        }
        if barrier {
            k.plain(Operation::WarpBarrier);
        }
        let flip = k.constant(4);
        let other = k.binary(Binary::Xor, address, flip);
        k.load(shared, other);
        k.program()
    };
    for ballot in [false, true] {
        is_right(&program(true, ballot));
        finds(&program(false, ballot), "E1016");
    }
}

#[test]
pub(super) fn a_write_after_a_read_needs_a_barrier() {
    let program = |iterations: i64, barriers: bool| {
        let mut k = Assembler::new(1, 64);
        let shared = k.shared(Element::U32, 64);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        let flip = k.constant(128);
        let other = k.binary(Binary::Xor, address, flip);
        let (from, to) = (k.constant(0), k.constant(iterations));
        k.iterations(from, to, |k, iteration| {
            k.store(shared, address, iteration);
            k.barrier();
            k.load(shared, other);
            if barriers {
                k.barrier();
            }
        });
        k.program()
    };
    is_right(&program(1, false));
    is_right(&program(5, true));
    finds(&program(2, false), "E1016");
    finds(&program(5, false), "E1016");
}

#[test]
pub(super) fn two_writes_are_a_race() {
    let program = |between: bool, divide: i64| {
        let mut k = Assembler::new(1, 64);
        let shared = k.shared(Element::U32, 128);
        let thread = k.thread();
        let divisor = k.constant(divide);
        let index = k.binary(Binary::Divide, thread, divisor);
        let address = k.scaled(index, 4, 0);
        k.store(shared, address, thread);
        if between {
            k.barrier();
        }
        // The elements in the reverse order.
        let address = k.scaled(index, -4, 252);
        k.store(shared, address, thread);
        k.program()
    };
    is_right(&program(true, 1));
    finds(&program(false, 1), "E1016");
    // Two lanes of one instruction.
    finds(&program(true, 2), "E1016");
    finds(&program(true, 64), "E1016");
}

#[test]
pub(super) fn bytes_of_one_word_are_different_bytes() {
    let program = |step: i64| {
        let mut k = Assembler::new(1, 64);
        let shared = k.shared(Element::U8, 256);
        let thread = k.thread();
        let address = k.scaled(thread, step, 0);
        let byte = k.one(Operation::Constant(1), &[], Width::Bits16);
        k.store_vector(shared, address, 8, &[byte]);
        k.program()
    };
    is_right(&program(1));
    is_right(&program(3));
    finds(&program(0), "E1016");
}

#[test]
pub(super) fn many_readers_are_all_remembered() {
    // All threads read one word, then one thread writes it: this requires a barrier of all threads
    // in between.
    let program = |threads: u32, writer: i64, waits: Option<u32>| {
        let mut k = Assembler::new(1, threads);
        let shared = k.shared(Element::U32, 1);
        let zero = k.constant(0);
        k.only(0, |k| k.store(shared, zero, zero));
        k.barrier();
        k.load(shared, zero);
        match waits {
            Some(0) => k.barrier(),
            Some(first) => {
                // The first warps synchronise; the others do not.
                k.below(first.into(), |k| k.plain(Operation::NamedBarrier { number: 1, threads: first }));
            }
            None => {}
        }
        k.only(writer, |k| k.store(shared, zero, zero));
        k.program()
    };
    for threads in [64, 512, 1024] {
        is_right(&program(threads, 5, Some(0)));
        finds(&program(threads, 5, None), "E1016");
        finds(&program(threads, 5, Some(threads - 32)), "E1016");
    }
    // A thread may write what only it has read.
    is_right(&program(1, 0, None));
}

#[test]
pub(super) fn named_barriers_order_those_who_meet() {
    // Two pairs of warps exchange numbers; the pairs do not synchronise with each other.
    let program = |partner: i64, number: u32| {
        let mut k = Assembler::new(1, 128);
        let shared = k.shared(Element::U32, 128);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        k.store(shared, address, thread);
        let first = k.compare(Comparison::Less, thread, 64);
        k.branch(
            first,
            |k| k.plain(Operation::NamedBarrier { number: 1, threads: 64 }),
            |k| k.plain(Operation::NamedBarrier { number, threads: 64 }),
        );
        let flip = k.constant(4 * partner);
        let other = k.binary(Binary::Xor, address, flip);
        k.load(shared, other);
        k.program()
    };
    is_right(&program(32, 2));
    is_right(&program(1, 2));
    finds(&program(64, 2), "E1016");
    finds(&program(96, 2), "E1016");
}

#[test]
pub(super) fn knowledge_is_passed_on() {
    // Warp 0 writes and synchronises with warp 1, which synchronises with warp 2, which reads.
    let program = |second: bool| {
        let mut k = Assembler::new(1, 96);
        let shared = k.shared(Element::U32, 32);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        k.below(32, |k| k.store(shared, address, thread));
        k.below(64, |k| k.plain(Operation::NamedBarrier { number: 1, threads: 64 }));
        let late = k.compare(Comparison::GreaterEqual, thread, 32);
        k.branch(
            late,
            |k| {
                if second {
                    k.plain(Operation::NamedBarrier { number: 2, threads: 64 });
                }
            },
            |_| {},
        );
        let last = k.compare(Comparison::GreaterEqual, thread, 64);
        let address = k.scaled(thread, 4, -256);
        k.guarded(last, |k| {
            k.load(shared, address);
        });
        k.program()
    };
    is_right(&program(true));
    // Without the second barrier, the write is not visible to warp 2.
    finds(&program(false), "E1016");
}

fn atomic_add(k: &mut Assembler, buffer: BufferId, address: Register, value: Register, wide: bool) {
    let address = if wide { k.wide(address) } else { address };
    let operation = Operation::Reduce(AtomicOperation::Add, Number::U32, k.access(buffer, 32, 1));
    k.emit(operation, &[address, value], &[]);
}

#[test]
pub(super) fn atomic_operations_do_not_race_with_each_other() {
    let program = |before: bool, after: bool| {
        let mut k = Assembler::new(1, 64);
        let target = k.global(Role::Output, Element::U32, 1);
        let shared = k.shared(Element::U32, 1);
        let zero = k.constant(0);
        let thread = k.thread();
        k.only(0, |k| k.store(shared, zero, zero));
        if before {
            k.barrier();
        }
        atomic_add(&mut k, shared, zero, thread, false);
        if after {
            k.barrier();
        }
        k.only(0, |k| {
            let value = k.load(shared, zero);
            k.store(target, zero, value);
        });
        k.program()
    };
    let run = is_right(&program(true, true));
    assert_eq!(run.tensor::<u32>(0).unwrap(), [64 * 63 / 2]);
    for (before, after) in [(false, true), (true, false), (false, false)] {
        finds(&program(before, after), "E1016");
    }
}

#[test]
pub(super) fn blocks_are_not_ordered() {
    // Each block reads what the previous one wrote; adds to one element, atomically or not; or
    // reads memory that no block writes.
    let program = |read: i64, write: i64| {
        let mut k = Assembler::new(4, 32);
        let memory = k.global(Role::Both, Element::U32, 512);
        let (block, thread) = (k.block(), k.thread());
        let address = k.scaled(block, 128, 0);
        let row = k.scaled(thread, 4, 0);
        let address = k.binary(Binary::Add, address, row);
        let from = k.scaled(address, 1, read);
        let value = k.load(memory, from);
        let to = k.scaled(address, 1, write);
        k.store(memory, to, value);
        k.program()
    };
    is_right(&program(0, 0));
    is_right(&program(0, 1024));
    finds(&program(0, 128), "E1017");
    finds(&program(128, 0), "E1017");
    finds(&program(256, 128), "E1017");
}

#[test]
pub(super) fn blocks_may_add_to_one_element() {
    let program = |atomic: bool, read: bool| {
        let mut k = Assembler::new(4, 32);
        let memory = k.global(Role::Both, Element::U32, 1);
        let zero = k.constant(0);
        let thread = k.thread();
        if atomic {
            atomic_add(&mut k, memory, zero, thread, true);
        } else {
            k.only(0, |k| k.store(memory, zero, thread));
        }
        if read {
            k.only(0, |k| {
                k.load(memory, zero);
            });
        }
        k.program()
    };
    is_right(&program(true, false));
    finds(&program(false, false), "E1017");
    for run in super::assembler::runs(&program(true, true)) {
        let codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
        assert!(codes.iter().all(|code| ["E1016", "E1017"].contains(code)), "{codes:?}");
    }
}

#[test]
pub(super) fn threads_of_a_block_race_in_global_memory() {
    let program = |barrier: bool, apart: i64| {
        let mut k = Assembler::new(2, 64);
        let memory = k.global(Role::Both, Element::U32, 128);
        let (block, thread) = (k.block(), k.thread());
        let (address, row) = (k.scaled(block, 256, 0), k.scaled(thread, 4, 0));
        let address = k.binary(Binary::Add, address, row);
        k.store(memory, address, thread);
        if barrier {
            k.barrier();
        }
        let flip = k.constant(4 * apart);
        let other = k.binary(Binary::Xor, address, flip);
        k.load(memory, other);
        k.program()
    };
    is_right(&program(true, 32));
    is_right(&program(false, 0));
    finds(&program(false, 32), "E1016");
    finds(&program(false, 1), "E1016");
}

#[test]
pub(super) fn rows_of_matrices_race_with_stores() {
    // A warp stores a matrix, a row per lane, and loads it by `ldmatrix`, from its own rows or from
    // those of other lanes.
    let program = |barrier: bool| {
        let mut k = Assembler::new(1, 32);
        let shared = k.shared(Element::U16, 256);
        let thread = k.thread();
        let mine = k.scaled(thread, 16, 0);
        k.store_vector(shared, mine, 32, &[thread; 4]);
        if barrier {
            k.plain(Operation::WarpBarrier);
        }
        let turned = k.scaled(thread, -16, 31 * 16);
        let operation = Operation::LoadMatrix { access: k.access(shared, 32, 4), transposed: false };
        let parts = k.emit(operation, &[turned], &[Width::Bits32; 4]);
        let (a, b, c) = (&parts[..], &parts[..2], &parts[..]);
        k.emit(Operation::Multiply(Matrix::F16F32), &[a, b, c].concat(), &[Width::Bits32; 4]);
        k.program()
    };
    let small = |barrier: bool| {
        let mut program = program(barrier);
        program.shared_bytes = 512;
        program
    };
    is_right(&small(true));
    finds(&small(false), "E1016");
}

#[test]
pub(super) fn an_atomic_operation_races_with_what_another_block_does() {
    // The first block adds; the second one loads, stores, or adds too.
    let program = |what: usize| {
        let mut k = Assembler::new(2, 32);
        let memory = k.global(Role::Both, Element::U32, 1);
        let (zero, wide, block) = (k.constant(0), k.wide_constant(0), k.block());
        let first = k.compare(Comparison::Equal, block, 0);
        let second = k.compare(Comparison::Equal, block, 1);
        let add = Operation::Reduce(AtomicOperation::Add, Number::U32, k.access(memory, 32, 1));
        k.guarded(first, |k| {
            k.emit(add.clone(), &[wide, zero], &[]);
        });
        k.only(0, |k| {
            k.guarded(second, |k| match what {
                0 => {
                    k.emit(add, &[wide, zero], &[]);
                }
                1 => {
                    k.emit(Operation::Load(k.access(memory, 32, 1)), &[wide], &[Width::Bits32]);
                }
                _ => {
                    k.emit(Operation::Store(k.access(memory, 32, 1)), &[wide, zero], &[]);
                }
            });
        });
        k.program()
    };
    is_right(&program(0));
    finds(&program(1), "E1017");
    finds(&program(2), "E1017");
}
