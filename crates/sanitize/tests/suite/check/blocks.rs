//! Threads of one block and of one cluster.

use tilewright_sanitize::check::checker::{Checker, Kind, Lanes, Mbarrier, Order, Scope, Space, Values};

use super::scene::*;

#[test]
fn a_barrier_of_the_block_orders() {
    silent(&found(|checker| {
        write(warp(0), 1, 0).row().tell(checker);
        barrier(checker, 0, 2);
        read(warp(1), 2, 0).row().tell(checker);
        barrier(checker, 0, 2);
        write(warp(0), 3, 0).row().tell(checker);
    }));
    let text = one(
        &found(|checker| {
            write(warp(0), 1, 0).row().tell(checker);
            read(warp(1), 2, 0).row().tell(checker);
        }),
        "E1016",
    );
    assert_eq!(
        text,
        "E1016: a race: nothing orders this read of bytes 0 to 3 of shared memory after the write of block (0,0,0) \
         warp 0 lane 0, instruction 1; a barrier of the block (`__syncthreads`) between would [instruction 2] \
         [block (0,0,0) warp 1 lane 0] [32 times]"
    );
}

#[test]
fn a_write_after_reads_needs_a_barrier_too() {
    let findings = found(|checker| {
        write(warp(0), 1, 0).row().tell(checker);
        barrier(checker, 0, 2);
        read(warp(0), 2, 0).tell(checker);
        read(warp(1), 2, 0).tell(checker);
        write(lane(0, 0), 3, 0).tell(checker);
    });
    let text = one(&findings, "E1016");
    assert!(text.contains("this write") && text.contains("the read of block (0,0,0) warp 0 lane 1"), "{text}");
}

#[test]
fn lanes_of_a_warp_are_ordered_by_its_barrier_alone() {
    silent(&found(|checker| {
        write(warp(0), 1, 0).row().tell(checker);
        checker.warp_sync(warp(0));
        read(warp(0), 2, 4).tell(checker);
    }));
    let text = one(
        &found(|checker| {
            write(warp(0), 1, 0).row().tell(checker);
            read(warp(0), 2, 4).tell(checker);
        }),
        "E1016",
    );
    assert!(text.contains("__syncwarp"), "{text}");
    // A barrier of half of the warp says nothing of the other half.
    let half = Lanes { mask: 0xffff, ..warp(0) };
    let far = found(|checker| {
        write(warp(0), 1, 0).row().tell(checker);
        checker.warp_sync(half);
        read(half, 2, 4 * 20).tell(checker);
    });
    one(&far, "E1016");
}

#[test]
fn what_is_told_through_a_warp_goes_on_through_a_barrier() {
    // Lane 0 of each warp writes, the warps meet, and the barrier passes it on.
    silent(&found(|checker| {
        write(lane(0, 0), 1, 0).tell(checker);
        checker.warp_sync(warp(0));
        barrier(checker, 0, 2);
        read(warp(1), 2, 0).tell(checker);
    }));
}

#[test]
fn narrow_accesses_cut_cells() {
    let byte = |touch: Touch| Touch { bytes: 1, ..touch };
    // Bytes of one word, by different threads: no conflict.
    silent(&found(|checker| {
        byte(write(lane(0, 0), 1, 0)).tell(checker);
        byte(write(lane(1, 0), 1, 1)).tell(checker);
        byte(write(lane(1, 0), 2, 3)).tell(checker);
    }));
    // A word over a byte.
    let findings = found(|checker| {
        write(lane(0, 0), 1, 0).tell(checker);
        byte(write(lane(1, 0), 2, 3)).tell(checker);
    });
    one(&findings, "E1016");
    let findings = found(|checker| {
        Touch { bytes: 16, ..write(lane(0, 0), 1, 16) }.tell(checker);
        Touch { bytes: 2, ..read(lane(1, 0), 2, 30) }.tell(checker);
    });
    one(&findings, "E1016");
}

#[test]
fn memory_that_nobody_wrote() {
    let text = one(&found(|checker| read(lane(0, 3), 7, 64).tell(checker)), "E1012");
    assert_eq!(
        text,
        "E1012: a read of memory that was not written: bytes 64 to 67 of shared memory [instruction 7] \
         [block (0,0,0) warp 0 lane 3]"
    );
    let out = |by, at, kind| Touch { addresses: [OUT; 32], ..global(same(by, at, SHARED, kind, 0)) };
    one(&found(|checker| out(lane(0, 0), 1, Kind::Read).tell(checker)), "E1012");
    silent(&found(|checker| {
        out(lane(0, 0), 1, Kind::Write).tell(checker);
        out(lane(0, 0), 2, Kind::Read).tell(checker);
    }));
    silent(&found(|checker| global(read(lane(0, 0), 1, 0)).tell(checker)));
}

#[test]
fn a_read_that_came_before_its_write_is_one_finding() {
    // In this run the reader was first: what it read was not written yet, and that is the race.
    let findings = found(|checker| {
        read(warp(1), 2, 0).row().tell(checker);
        write(warp(0), 1, 0).row().tell(checker);
    });
    let text = one(&findings, "E1016");
    assert!(text.contains("this write") && text.contains("the read of block (0,0,0) warp 1 lane 0"), "{text}");
}

#[test]
fn lanes_that_have_ended_are_not_spoken_for() {
    // Lane 0 arrives at a barrier in memory when the others have ended, and they have not met.
    const BARRIER: Mbarrier = Mbarrier { rank: 0, address: 1024 };
    let findings = found(|checker| {
        checker.mbarrier_init(lane(0, 0), 1, BARRIER);
        barrier(checker, 0, 2);
        write(warp(0), 2, 0).row().tell(checker);
        checker.exit(Lanes { mask: !1, ..warp(0) }, 3);
        checker.mbarrier_arrive(lane(0, 0), 4, BARRIER, true);
        checker.mbarrier_complete(BARRIER, 0);
        checker.mbarrier_wait(warp(1), 5, BARRIER, 0, true);
        read(warp(1), 6, 0).row().tell(checker);
    });
    let text = one(&findings, "E1016");
    assert!(text.contains("warp 0 lane 1,") && text.contains("[31 times]"), "{text}");
}

/// The same value is written, or another.
struct Written(u8, u8);

impl Values for Written {
    fn written(&self, lane: usize) -> Option<[u8; 32]> {
        Some([if self.0 == u8::MAX { lane as u8 } else { self.0 }; 32])
    }

    fn held(&self, _: usize) -> [u8; 32] {
        [self.1; 32]
    }
}

#[test]
fn the_same_value_twice_is_harmless() {
    let twice = |values: Written| {
        found(|checker| {
            write(lane(0, 0), 1, 0).tell_values(checker, &Written(1, 0));
            write(lane(1, 0), 2, 0).tell_values(checker, &values);
        })
    };
    silent(&twice(Written(1, 1)));
    one(&twice(Written(2, 1)), "E1016");
    // All lanes of one instruction write one value, or each its own.
    let once = |values: Written| found(|checker| write(warp(0), 1, 0).tell_values(checker, &values));
    silent(&once(Written(1, 0)));
    let text = one(&once(Written(u8::MAX, 0)), "E1016");
    assert!(text.contains("let one lane write"), "{text}");
}

#[test]
fn a_named_barrier_orders_who_waits() {
    let history = |reader: u32, checker: &mut tilewright_sanitize::check::ClusterChecker<'_>| {
        write(warp(0), 1, 0).row().tell(checker);
        checker.barrier_arrive(warp(0), 3);
        // What comes after the arrival is not passed on.
        write(warp(0), 2, 256).row().tell(checker);
        checker.barrier_arrive(warp(1), 3);
        checker.barrier_complete(0, 3, &[warp(1)]);
        read(warp(1), 3, u64::from(reader)).row().tell(checker);
    };
    silent(&found(|checker| history(0, checker)));
    one(&found(|checker| history(256, checker)), "E1016");
}

#[test]
fn who_only_arrives_at_a_barrier_learns_nothing() {
    let findings = found(|checker| {
        write(warp(1), 1, 0).row().tell(checker);
        checker.barrier_arrive(warp(0), 3);
        checker.barrier_arrive(warp(1), 3);
        checker.barrier_complete(0, 3, &[warp(1)]);
        read(warp(0), 2, 0).row().tell(checker);
    });
    one(&findings, "E1016");
}

#[test]
fn threads_that_have_ended_do_not_hold_a_barrier() {
    silent(&found(|checker| {
        write(warp(1), 1, 0).row().tell(checker);
        checker.exit(Lanes { mask: 0xffff_0000, ..warp(0) }, 2);
        let rest = [Lanes { mask: 0xffff, ..warp(0) }, warp(1)];
        rest.iter().for_each(|lanes| checker.barrier_arrive(*lanes, 0));
        checker.barrier_complete(0, 0, &rest);
        read(rest[0], 3, 0).row().tell(checker);
    }));
}

fn in_cluster(
    history: impl FnOnce(&mut tilewright_sanitize::check::ClusterChecker<'_>),
) -> Vec<tilewright_sanitize::check::finding::Finding> {
    let grid = clustered(2, 32, 2);
    let mut checker = grid.cluster(0);
    history(&mut checker);
    drop(checker);
    grid.findings()
}

fn meet(checker: &mut tilewright_sanitize::check::ClusterChecker<'_>) {
    let both = [of(0, warp(0)), of(1, warp(0))];
    both.iter().for_each(|lanes| checker.cluster_arrive(*lanes, true));
    checker.cluster_complete();
    both.iter().for_each(|lanes| checker.cluster_wait(*lanes, true));
}

#[test]
fn a_barrier_of_the_cluster_orders_and_keeps_blocks() {
    let remote = |at| Touch { space: Space::Shared { rank: 1 }, ..read(of(0, warp(0)), at, 0).row() };
    let fill = |at| Touch { space: Space::Shared { rank: 1 }, ..write(of(1, warp(0)), at, 0).row() };
    let end = |checker: &mut tilewright_sanitize::check::ClusterChecker<'_>, rank| {
        checker.exit(of(rank, warp(0)), 9);
        checker.block_exit(rank);
    };
    silent(&in_cluster(|checker| {
        fill(1).tell(checker);
        meet(checker);
        remote(2).tell(checker);
        meet(checker);
        end(checker, 1);
        end(checker, 0);
    }));
    // Without the second one the owner may be gone.
    let text = one(
        &in_cluster(|checker| {
            fill(1).tell(checker);
            meet(checker);
            remote(2).tell(checker);
            end(checker, 1);
            end(checker, 0);
        }),
        "E1035",
    );
    assert!(text.contains("the block of rank 1 may have ended"), "{text}");
    // Without the first one it may not have begun, and its writes race.
    let findings = in_cluster(|checker| {
        fill(1).tell(checker);
        remote(2).tell(checker);
        meet(checker);
        end(checker, 1);
        end(checker, 0);
    });
    assert_eq!(codes(&findings), ["E1016", "E1035"]);
    let text = findings[0].text(&tilewright_sanitize::check::message::NoSources);
    assert!(text.contains("a barrier of the cluster between would"), "{text}");
}

#[test]
fn barriers_in_memory_pass_on_what_arrives() {
    const BARRIER: Mbarrier = Mbarrier { rank: 0, address: 1024 };
    let history = |release, acquire| {
        found(|checker| {
            checker.mbarrier_init(lane(0, 0), 1, BARRIER);
            barrier(checker, 0, 2);
            write(warp(0), 2, 0).row().tell(checker);
            checker.mbarrier_arrive(warp(0), 3, BARRIER, release);
            checker.mbarrier_complete(BARRIER, 0);
            checker.mbarrier_wait(warp(1), 4, BARRIER, 0, acquire);
            read(warp(1), 5, 0).row().tell(checker);
        })
    };
    silent(&history(true, true));
    one(&history(false, true), "E1016");
    one(&history(true, false), "E1016");
    // One lane arrives for its warp, once the warp has met; or without.
    let elected = |meets: bool| {
        found(|checker| {
            checker.mbarrier_init(lane(0, 0), 1, BARRIER);
            barrier(checker, 0, 2);
            write(warp(0), 2, 0).row().tell(checker);
            if meets {
                checker.warp_sync(warp(0));
            }
            checker.mbarrier_arrive(lane(0, 0), 3, BARRIER, true);
            checker.mbarrier_complete(BARRIER, 0);
            checker.mbarrier_wait(warp(1), 4, BARRIER, 0, true);
            read(warp(1), 5, 0).row().tell(checker);
        })
    };
    silent(&elected(true));
    one(&elected(false), "E1016");
}

#[test]
fn a_barrier_in_memory_has_to_be_made_and_published() {
    const BARRIER: Mbarrier = Mbarrier { rank: 0, address: 1024 };
    one(&found(|checker| checker.mbarrier_arrive(lane(0, 0), 3, BARRIER, true)), "E1025");
    let text = one(
        &found(|checker| {
            checker.mbarrier_init(lane(0, 0), 1, BARRIER);
            checker.mbarrier_arrive(lane(1, 0), 3, BARRIER, true);
        }),
        "E1025",
    );
    assert!(text.contains("not known here yet"), "{text}");
    one(
        &found(|checker| {
            checker.mbarrier_init(lane(0, 0), 1, BARRIER);
            write(lane(0, 0), 2, 1028).tell(checker);
        }),
        "E1031",
    );
    silent(&found(|checker| {
        checker.mbarrier_init(lane(0, 0), 1, BARRIER);
        checker.mbarrier_invalidate(lane(0, 0), 2, BARRIER);
        write(lane(0, 0), 3, 1028).tell(checker);
    }));
}

#[test]
fn flags_in_shared_memory_work_at_the_scope_of_the_block() {
    let flag = |touch: Touch, order| touch.strong(order, Scope::Block);
    silent(&found(|checker| {
        write(lane(0, 0), 1, 0).tell(checker);
        flag(write(lane(0, 0), 2, 64), Order::Release).tell(checker);
        flag(read(lane(1, 0), 3, 64), Order::Acquire).tell(checker);
        read(lane(1, 0), 4, 0).tell(checker);
    }));
    one(
        &found(|checker| {
            write(lane(0, 0), 1, 0).tell(checker);
            flag(write(lane(0, 0), 2, 64), Order::Relaxed).tell(checker);
            flag(read(lane(1, 0), 3, 64), Order::Acquire).tell(checker);
            read(lane(1, 0), 4, 0).tell(checker);
        }),
        "E1016",
    );
}
