//! Blocks that pass on through flags and counters in global memory.

use tilewright_sanitize::check::checker::{Checker, Fence, Kind, Order, Scope};
use tilewright_sanitize::check::finding::Finding;
use tilewright_sanitize::check::{ClusterChecker, GridChecker};

use super::scene::*;

/// Two blocks of a launch.
fn two(history: impl FnOnce(&mut ClusterChecker<'_>, &mut ClusterChecker<'_>)) -> Vec<Finding> {
    let grid: GridChecker = grid(4, 64);
    let (mut first, mut second) = (grid.cluster(0), grid.cluster(1));
    history(&mut first, &mut second);
    drop((first, second));
    grid.findings()
}

const FLAG: u64 = 4096;

fn data(by: tilewright_sanitize::check::checker::Lanes, at: u32, kind: Kind) -> Touch {
    global(same(by, at, SHARED, kind, 0).row())
}

fn flag(by: tilewright_sanitize::check::checker::Lanes, at: u32, kind: Kind, order: Order) -> Touch {
    global(same(by, at, SHARED, kind, FLAG)).strong(order, Scope::Device)
}

#[test]
fn nothing_orders_two_blocks() {
    let text = one(
        &two(|first, second| {
            data(warp(0), 1, Kind::Write).tell(first);
            data(warp(0), 2, Kind::Read).tell(second);
        }),
        "E1017",
    );
    assert_eq!(
        text,
        "E1017: a race between blocks: nothing orders this read of bytes 0 to 3 of `x` after the write of block (0,0,0) \
         warp 0 lane 0, instruction 1; a release by the first block and an acquire by the second, through a flag or a \
         counter, would; or launch twice [instruction 2] [block (1,0,0) warp 0 lane 0] [32 times]"
    );
    // Reads alone do not conflict, and a write after the reads of two blocks does.
    silent(&two(|first, second| {
        data(warp(0), 1, Kind::Read).tell(first);
        data(warp(0), 2, Kind::Read).tell(second);
    }));
    one(
        &two(|first, second| {
            data(warp(0), 1, Kind::Read).tell(first);
            data(warp(0), 2, Kind::Read).tell(second);
            data(warp(0), 3, Kind::Write).tell(second);
        }),
        "E1017",
    );
}

/// One lane of the first block writes and sets a flag; the second reads the flag and then the data.
fn through(release: Order, write_fence: Option<Scope>, acquire: Order, read_fence: Option<Scope>) -> Vec<Finding> {
    two(|first, second| {
        data(warp(1), 1, Kind::Write).tell(first);
        barrier(first, 0, 2);
        if let Some(scope) = write_fence {
            first.fence(lane(0, 0), Fence::Memory(scope));
        }
        flag(lane(0, 0), 2, Kind::Write, release).tell(first);
        flag(lane(0, 0), 3, Kind::Read, acquire).tell(second);
        if let Some(scope) = read_fence {
            second.fence(lane(0, 0), Fence::Memory(scope));
        }
        barrier(second, 0, 2);
        data(warp(1), 4, Kind::Read).tell(second);
    })
}

#[test]
fn a_release_and_an_acquire_order() {
    let device = Some(Scope::Device);
    silent(&through(Order::Release, None, Order::Acquire, None));
    silent(&through(Order::Relaxed, device, Order::Relaxed, device));
    silent(&through(Order::Volatile, device, Order::Volatile, device));
    silent(&through(Order::Release, None, Order::Volatile, Some(Scope::System)));
    let text = one(&through(Order::Relaxed, None, Order::Acquire, None), "E1017");
    assert!(text.contains("written without a release"), "{text}");
    let text = one(&through(Order::Release, None, Order::Relaxed, None), "E1017");
    assert!(text.contains("read without an acquire"), "{text}");
    let text = one(&through(Order::Relaxed, Some(Scope::Block), Order::Acquire, None), "E1017");
    assert!(text.contains("`.gpu` includes both blocks"), "{text}");
    one(&through(Order::Relaxed, device, Order::Relaxed, Some(Scope::Block)), "E1017");
}

#[test]
fn scopes_have_to_include_the_other_block() {
    let scoped = |first_scope, second_scope| {
        two(|first, second| {
            data(warp(0), 1, Kind::Write).tell(first);
            first.warp_sync(warp(0));
            flag(lane(0, 0), 2, Kind::Atomic, Order::Release).strong(Order::Release, first_scope).tell(first);
            flag(lane(0, 0), 3, Kind::Atomic, Order::Acquire).strong(Order::Acquire, second_scope).tell(second);
            second.warp_sync(warp(0));
            data(warp(0), 4, Kind::Read).tell(second);
        })
    };
    silent(&scoped(Scope::Device, Scope::System));
    // Atomic operations whose scope is the block race with those of other blocks, and order
    // nothing.
    let findings = scoped(Scope::Block, Scope::Device);
    assert_eq!(codes(&findings), ["E1017", "E1017"]);
    assert_eq!(codes(&scoped(Scope::Device, Scope::Block)), ["E1017", "E1017"]);
}

/// The last of several blocks to be counted reads what all have written.
fn counted(order: Order, fence: bool, fence_all: bool, acquire_fence: bool) -> Vec<Finding> {
    counted_of(4, order, fence, fence_all, acquire_fence)
}

fn counted_of(count: u32, order: Order, fence: bool, fence_all: bool, acquire_fence: bool) -> Vec<Finding> {
    let grid = grid(count, 64);
    let mut blocks: Vec<ClusterChecker<'_>> = (0..count).map(|number| grid.cluster(number)).collect();
    for (number, block) in blocks.iter_mut().enumerate() {
        global(write(lane(1, 5), 1, 8 * number as u64)).tell(block);
        if fence_all {
            block.fence(warp(0), Fence::Memory(Scope::Device));
            block.fence(warp(1), Fence::Memory(Scope::Device));
        }
        barrier(block, 0, 2);
        if fence {
            block.fence(lane(0, 0), Fence::Memory(Scope::Device));
        }
        flag(lane(0, 0), 2, Kind::Atomic, order).tell(block);
        barrier(block, 0, 2);
    }
    let last = &mut blocks[count as usize - 1];
    if acquire_fence {
        last.fence(warp(0), Fence::Memory(Scope::Device));
    }
    for number in 0..u64::from(count) {
        global(read(warp(0), 3, 8 * number)).tell(last);
    }
    drop(blocks);
    grid.findings()
}

#[test]
fn a_counter_of_blocks_passes_on_what_all_have_written() {
    silent(&counted(Order::AcquireRelease, false, false, false));
    silent(&counted(Order::Relaxed, true, false, true));
    silent(&counted(Order::Relaxed, false, true, true));
    let text = one(&counted(Order::Relaxed, false, false, true), "E1017");
    assert!(text.contains("written without a release"), "{text}");
    let text = one(&counted(Order::Relaxed, true, false, false), "E1017");
    assert!(text.contains("read without an acquire"), "{text}");
}

#[test]
fn a_counter_of_many_blocks_passes_on_what_all_have_written() {
    silent(&counted_of(30, Order::AcquireRelease, false, false, false));
    silent(&counted_of(30, Order::Relaxed, true, false, true));
    one(&counted_of(30, Order::Relaxed, false, false, true), "E1017");
}

#[test]
fn a_plain_store_to_a_flag_begins_anew() {
    // The second block overwrites the flag without a release: who reads that learns nothing.
    let grid = grid(4, 64);
    let mut blocks: Vec<ClusterChecker<'_>> = (0..3).map(|number| grid.cluster(number)).collect();
    data(warp(0), 1, Kind::Write).tell(&mut blocks[0]);
    blocks[0].warp_sync(warp(0));
    flag(lane(0, 0), 2, Kind::Write, Order::Release).tell(&mut blocks[0]);
    flag(lane(0, 0), 3, Kind::Write, Order::Relaxed).tell(&mut blocks[1]);
    flag(lane(0, 0), 4, Kind::Read, Order::Acquire).tell(&mut blocks[2]);
    blocks[2].warp_sync(warp(0));
    data(warp(0), 5, Kind::Read).tell(&mut blocks[2]);
    drop(blocks);
    one(&grid.findings(), "E1017");
}

#[test]
fn a_fence_reaches_no_further_than_the_write_behind_it() {
    // The fence is for the device, and the flag is written for the block alone.
    let history = |scope| {
        two(|first, second| {
            data(warp(0), 1, Kind::Write).tell(first);
            first.warp_sync(warp(0));
            first.fence(lane(0, 0), Fence::Memory(Scope::Device));
            flag(lane(0, 0), 2, Kind::Write, Order::Relaxed).strong(Order::Relaxed, scope).tell(first);
            flag(lane(0, 0), 3, Kind::Read, Order::Acquire).tell(second);
            second.warp_sync(warp(0));
            data(warp(0), 4, Kind::Read).tell(second);
        })
    };
    silent(&history(Scope::Device));
    let findings = history(Scope::Block);
    assert_eq!(findings.iter().map(|finding| finding.at).collect::<Vec<_>>(), [Some(3), Some(4)]);
}

#[test]
fn a_weak_store_to_a_flag_passes_nothing_on() {
    // The flag is set by a release, and then again by a weak store of the same thread: the reader
    // races with that, and learns nothing of the data.
    let history = |weak: bool| {
        two(|first, second| {
            data(warp(0), 1, Kind::Write).tell(first);
            first.warp_sync(warp(0));
            flag(lane(0, 0), 2, Kind::Write, Order::Release).tell(first);
            if weak {
                flag(lane(0, 0), 3, Kind::Write, Order::Weak).tell(first);
            }
            flag(lane(0, 0), 4, Kind::Read, Order::Acquire).tell(second);
            second.warp_sync(warp(0));
            data(warp(0), 5, Kind::Read).tell(second);
        })
    };
    silent(&history(false));
    let findings = history(true);
    assert_eq!(findings.iter().map(|finding| finding.at).collect::<Vec<_>>(), [Some(4), Some(5)]);
}

#[test]
fn knowledge_goes_from_block_to_block() {
    // As in a scan with look-back: each block learns from the one before it.
    let chain = |broken: Option<usize>| {
        let grid = grid(6, 64);
        let mut blocks: Vec<ClusterChecker<'_>> = (0..6).map(|number| grid.cluster(number)).collect();
        data(warp(0), 1, Kind::Write).tell(&mut blocks[0]);
        for number in 0..5 {
            blocks[number].warp_sync(warp(0));
            let to = FLAG + 64 * number as u64;
            let order = if broken == Some(number) { Order::Relaxed } else { Order::Release };
            global(same(lane(0, 0), 2, SHARED, Kind::Write, to)).strong(order, Scope::Device).tell(&mut blocks[number]);
            let next = &mut blocks[number + 1];
            global(same(lane(0, 0), 3, SHARED, Kind::Read, to)).strong(Order::Acquire, Scope::Device).tell(next);
        }
        blocks[5].warp_sync(warp(0));
        data(warp(0), 4, Kind::Read).tell(&mut blocks[5]);
        drop(blocks);
        grid.findings()
    };
    silent(&chain(None));
    one(&chain(Some(2)), "E1017");
}

#[test]
fn strong_accesses_do_not_race_and_weak_ones_do() {
    silent(&two(|first, second| {
        flag(lane(0, 0), 1, Kind::Atomic, Order::Relaxed).tell(first);
        flag(lane(0, 0), 2, Kind::Write, Order::Volatile).tell(second);
        flag(lane(0, 0), 3, Kind::Read, Order::Relaxed).tell(first);
    }));
    one(
        &two(|first, second| {
            flag(lane(0, 0), 1, Kind::Atomic, Order::Relaxed).tell(first);
            flag(lane(0, 0), 2, Kind::Read, Order::Weak).tell(second);
        }),
        "E1017",
    );
}

#[test]
fn a_strong_write_does_not_hide_the_weak_one_before_it() {
    // A counter is set to zero by one lane and counted up by all, which do not know of the zero.
    let history = |meets: bool| {
        found(move |checker| {
            write(lane(0, 0), 1, 0).tell(checker);
            if meets {
                barrier(checker, 0, 2);
            }
            for number in 0..2 {
                same(warp(number), 2, SHARED, Kind::Atomic, 0).strong(Order::Relaxed, Scope::Device).tell(checker);
            }
            if meets {
                barrier(checker, 0, 2);
            }
            read(warp(1), 3, 0).tell(checker);
        })
    };
    silent(&history(true));
    assert_eq!(codes(&history(false)), ["E1016", "E1016"]);
}

#[test]
fn the_non_coherent_cache_sees_no_write_of_the_launch() {
    let history = |order| {
        found(|checker| {
            data(warp(0), 1, Kind::Write).tell(checker);
            barrier(checker, 0, 2);
            data(warp(1), 2, Kind::Read).strong(order, Scope::Device).tell(checker);
        })
    };
    silent(&history(Order::Weak));
    one(&history(Order::NonCoherent), "E1044");
}
