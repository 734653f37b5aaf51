//! Blocks of a cluster: their barrier, and distributed shared memory.

use super::assembler::{Assembler, finds, is_right, runs};
use crate::element::Element;
use crate::program::Program;
use crate::program::memory::{BufferId, Role};
use crate::program::operation::{Binary, Comparison, Fence, Operation, Special};
use crate::program::register::{Register, Width};

fn cluster(blocks: u32, of: u32, threads: u32) -> Assembler {
    let mut k = Assembler::new(blocks.into(), threads);
    k.raw().cluster = [of, 1, 1];
    k
}

fn meet(k: &mut Assembler) {
    k.plain(Operation::ClusterArrive);
    k.plain(Operation::ClusterWait);
}

fn rank(k: &mut Assembler) -> Register {
    k.one(Operation::Special(Special::ClusterRank), &[], Width::Bits32)
}

/// The rank of the other of two blocks.
fn other(k: &mut Assembler) -> Register {
    let (rank, one) = (rank(k), k.constant(1));
    k.binary(Binary::Xor, rank, one)
}

fn load_there(k: &mut Assembler, memory: BufferId, address: Register, rank: Register) -> Register {
    let access = k.access(memory, 32, 1);
    k.one(Operation::RemoteLoad(access), &[address, rank], Width::Bits32)
}

fn store_there(k: &mut Assembler, memory: BufferId, address: Register, rank: Register, value: Register) {
    let access = k.access(memory, 32, 1);
    k.emit(Operation::RemoteStore(access), &[address, rank, value], &[]);
}

fn arrive_there(k: &mut Assembler, objects: BufferId, address: Register, rank: Register) {
    let access = k.access(objects, 64, 1);
    k.emit(Operation::RemoteArrive { access, releases: false }, &[address, rank], &[]);
}

/// The positions of cluster barriers in a kernel in which each thread of two blocks writes a
/// number. It then reads the number of the other block, or it writes its number to the other block.
#[derive(Clone, Copy)]
struct Barriers {
    first: bool,
    between: bool,
    last: bool,
    gives: bool,
}

const TAKES: Barriers = Barriers { first: false, between: true, last: true, gives: false };
const GIVES: Barriers = Barriers { first: true, between: true, last: false, gives: true };

fn exchange(how: Barriers, blocks: u32, threads: u32) -> Program {
    let mut k = cluster(blocks, 2, threads);
    let target = k.global(Role::Output, Element::U32, i64::from(blocks * threads));
    let shared = k.shared(Element::U32, threads.into());
    let (thread, block, other) = (k.thread(), k.block(), other(&mut k));
    let place = k.scaled(thread, 4, 0);
    let row = k.scaled(block, 4 * i64::from(threads), 0);
    let own = k.binary(Binary::Add, place, row);
    if how.first {
        meet(&mut k);
    }
    if how.gives {
        store_there(&mut k, shared, place, other, own);
    } else {
        k.store(shared, place, own);
    }
    if how.between {
        meet(&mut k);
    }
    let value = if how.gives { k.load(shared, place) } else { load_there(&mut k, shared, place, other) };
    if how.last {
        meet(&mut k);
    }
    k.store(target, own, value);
    k.program()
}

#[test]
pub(super) fn blocks_of_a_cluster_exchange_numbers() {
    for how in [TAKES, GIVES] {
        for (blocks, threads) in [(2, 32), (6, 32), (4, 40), (2, 96)] {
            let run = is_right(&exchange(how, blocks, threads));
            let found = run.tensor::<u32>(0).unwrap();
            for (at, value) in found.iter().enumerate() {
                let (block, thread) = (at as u32 / threads, at as u32 % threads);
                assert_eq!(*value, ((block ^ 1) * threads + thread) * 4);
            }
        }
    }
    // A barrier of one block does not order the accesses of two blocks.
    finds(&exchange(Barriers { between: false, last: true, ..GIVES }, 2, 32), "E1016");
    finds(&exchange(Barriers { between: false, last: true, ..GIVES }, 4, 64), "E1016");
}

#[test]
pub(super) fn a_block_is_there_from_its_beginning_to_its_end() {
    finds(&exchange(Barriers { first: false, ..GIVES }, 2, 32), "E1035");
    finds(&exchange(Barriers { last: false, ..TAKES }, 2, 32), "E1035");
    finds(&exchange(Barriers { last: false, ..TAKES }, 6, 64), "E1035");
    // One thread that stays keeps its block alive.
    let stays = |waits: bool| {
        let mut k = cluster(2, 2, 64);
        let shared = k.shared(Element::U32, 1);
        let (rank, other) = (rank(&mut k), other(&mut k));
        let zero = k.constant(0);
        k.only(0, |k| k.store(shared, zero, zero));
        meet(&mut k);
        let reads = k.compare(Comparison::Equal, rank, 0);
        k.branch(
            reads,
            |k| {
                k.only(0, |k| {
                    load_there(k, shared, zero, other);
                });
                meet(k);
            },
            |k| {
                let thread = k.thread();
                let second = k.compare(Comparison::Less, thread, 32);
                k.branch(
                    second,
                    |k| {
                        if waits {
                            meet(k)
                        }
                    },
                    |_| {},
                );
            },
        );
        k.program()
    };
    is_right(&stays(true));
    finds(&stays(false), "E1035");
    // A rank that the cluster does not have.
    let mut k = cluster(2, 2, 32);
    let shared = k.shared(Element::U32, 32);
    let (zero, two) = (k.constant(0), k.constant(2));
    meet(&mut k);
    load_there(&mut k, shared, zero, two);
    finds(&k.program(), "E1035");
}

#[test]
pub(super) fn arrivals_at_other_blocks_say_what_was_read() {
    // Block 0 overwrites what block 1 has read, when block 1 has arrived.
    #[derive(Clone, Copy, PartialEq)]
    enum Does {
        Reads,
        Writes,
        /// Half of the lanes write; the other lanes, which know of the writes, arrive.
        OthersWrite,
    }
    let program = |does: Does, waits: bool, last: bool| {
        let mut k = cluster(2, 2, 32);
        let shared = k.shared(Element::U32, 32);
        let objects = k.shared(Element::U64, 1);
        let (rank, thread, zero) = (rank(&mut k), k.thread(), k.constant(0));
        let place = k.scaled(thread, 4, 0);
        k.only(0, |k| {
            let access = k.access(objects, 64, 1);
            let count = if does == Does::OthersWrite { 16 } else { 32 };
            k.emit(Operation::BarrierInit { access, count }, &[zero], &[]);
            k.fence(Fence::BarrierInit);
        });
        k.store(shared, place, thread);
        meet(&mut k);
        let half = k.compare(Comparison::Less, thread, 16);
        let first = k.compare(Comparison::Equal, rank, 0);
        k.branch(
            first,
            |k| {
                let one = k.constant(1);
                if waits {
                    let access = k.access(objects, 64, 1);
                    k.emit(Operation::BarrierWait { access }, &[zero, zero], &[]);
                }
                store_there(k, shared, place, one, zero);
            },
            |k| {
                match does {
                    Does::Reads => {
                        k.load(shared, place);
                    }
                    Does::Writes => k.store(shared, place, zero),
                    Does::OthersWrite => {
                        k.branch(half, |_| {}, |k| k.store(shared, place, zero));
                        k.plain(Operation::WarpBarrier);
                    }
                }
                if does == Does::OthersWrite {
                    k.guarded(half, |k| arrive_there(k, objects, zero, zero));
                } else {
                    arrive_there(k, objects, zero, zero);
                }
            },
        );
        if last {
            meet(&mut k);
        }
        k.program()
    };
    is_right(&program(Does::Reads, true, true));
    // The store is not published.
    finds(&program(Does::Writes, true, true), "E1016");
    finds(&program(Does::OthersWrite, true, true), "E1016");
    finds(&program(Does::Reads, false, true), "E1016");
    finds(&program(Does::Reads, true, false), "E1035");
}

#[test]
pub(super) fn the_barrier_of_a_cluster_is_used_in_turns() {
    let program = |what: usize| {
        let mut k = cluster(4, 2, 64);
        let half = |k: &mut Assembler| {
            let thread = k.thread();
            k.compare(Comparison::Less, thread, 16)
        };
        match what {
            0 => {
                meet(&mut k);
                meet(&mut k);
            }
            1 => {
                k.plain(Operation::ClusterWait);
            }
            2 => {
                k.plain(Operation::ClusterArrive);
                k.plain(Operation::ClusterArrive);
                k.plain(Operation::ClusterWait);
            }
            3 => {
                k.plain(Operation::ClusterArrive);
                let half = half(&mut k);
                k.branch(half, |k| k.plain(Operation::ClusterWait), |_| {});
            }
            _ => {
                let half = half(&mut k);
                k.branch(half, |k| k.plain(Operation::ClusterArrive), |_| {});
            }
        }
        k.program()
    };
    is_right(&program(0));
    for what in 1..4 {
        finds(&program(what), "E1036");
    }
    finds(&program(4), "E1021");
}

#[test]
pub(super) fn whoever_waits_for_another_block_is_named() {
    let mut k = cluster(2, 2, 32);
    let objects = k.shared(Element::U64, 1);
    let (rank, zero) = (rank(&mut k), k.constant(0));
    k.only(0, |k| {
        let access = k.access(objects, 64, 1);
        k.emit(Operation::BarrierInit { access, count: 32 }, &[zero], &[]);
    });
    meet(&mut k);
    let first = k.compare(Comparison::Equal, rank, 0);
    k.branch(
        first,
        |k| {
            let access = k.access(objects, 64, 1);
            k.emit(Operation::BarrierWait { access }, &[zero, zero], &[]);
            meet(k);
        },
        meet,
    );
    let program = k.program();
    finds(&program, "E1022");
    let text = runs(&program).remove(0).unwrap_err()[0].to_string();
    assert!(text.contains("of the block of rank 0 wait for phase 0"), "{text}");
    assert!(text.contains("of the block of rank 1 wait at the barrier of the cluster, at which 1 of 2"), "{text}");
}

#[test]
pub(super) fn bytes_are_sent_to_another_block() {
    // Each block sends 128 bytes to the other.
    let program = |fenced: bool, waits: bool, expected: u32, last: bool| {
        let mut k = cluster(2, 2, 32);
        let target = k.global(Role::Output, Element::U32, 64);
        let (from, to) = (k.shared(Element::U32, 32), k.shared(Element::U32, 32));
        let objects = k.shared(Element::U64, 1);
        let (thread, block, other, zero) = (k.thread(), k.block(), other(&mut k), k.constant(0));
        let place = k.scaled(thread, 4, 0);
        let row = k.scaled(block, 128, 0);
        let own = k.binary(Binary::Add, place, row);
        k.only(0, |k| {
            let access = k.access(objects, 64, 1);
            k.emit(Operation::BarrierInit { access, count: 1 }, &[zero], &[]);
            k.fence(Fence::BarrierInit);
        });
        k.store(from, place, own);
        if fenced {
            k.fence(Fence::AsyncShared);
        }
        meet(&mut k);
        k.only(0, |k| {
            let barrier = k.access(objects, 64, 1);
            k.emit(Operation::BarrierArrive { access: barrier, expect: expected }, &[zero], &[]);
            let [to, from] = [to, from].map(|buffer| k.access(buffer, 64, 2));
            k.emit(Operation::BulkSend { to, barrier, from, bytes: 128 }, &[zero, zero, zero, other], &[]);
        });
        if waits {
            let access = k.access(objects, 64, 1);
            k.emit(Operation::BarrierWait { access }, &[zero, zero], &[]);
        }
        let value = k.load(to, place);
        if last {
            meet(&mut k);
        }
        k.store(target, own, value);
        k.program()
    };
    let run = is_right(&program(true, true, 128, true));
    let found = run.tensor::<u32>(0).unwrap();
    assert!(found.iter().enumerate().all(|(at, value)| *value == 4 * (at as u32 ^ 32)));
    finds(&program(false, true, 128, true), "E1019");
    finds(&program(true, true, 144, true), "E1024");
    // The source may still be read when its block exits.
    finds(&program(true, true, 128, false), "E1035");
    for run in runs(&program(true, false, 128, true)) {
        let codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
        assert!(codes.contains(&"E1018"), "{codes:?}");
    }
}
