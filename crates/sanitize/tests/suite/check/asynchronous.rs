//! Copies and products behind a thread's back, their groups, phases and proxies.

use tilewright_sanitize::check::ClusterChecker;
use tilewright_sanitize::check::checker::{
    Bulk, Checker, Completion, CopyAsync, Fence, Kind, Lanes, Mbarrier, Space, Span, Wgmma,
};

use tilewright_sanitize::check::message::NoSources;

use super::scene::*;

fn copy(checker: &mut ClusterChecker<'_>, by: Lanes, at: u32, to: u64) {
    let shared = std::array::from_fn(|lane| to + 16 * lane as u64);
    let global = std::array::from_fn(|lane| BASE + 16 * lane as u64);
    checker.copy(&CopyAsync { by, at, bytes: 16, shared: &shared, global: &global, read: &[16; 32] });
}

#[test]
fn copies_are_over_when_their_group_was_waited_for() {
    let history = |pending, meets: bool| {
        found(move |checker| {
            copy(checker, warp(0), 1, 0);
            checker.copy_commit(warp(0));
            copy(checker, warp(0), 2, 4096);
            checker.copy_commit(warp(0));
            checker.copy_wait(warp(0), pending);
            if meets {
                barrier(checker, 0, 2);
            }
            read(warp(1), 3, 0).row().tell(checker);
            checker.copy_wait(warp(0), 0);
        })
    };
    silent(&history(1, true));
    let text = one(&history(2, true), "E1018");
    assert!(text.contains("while a `cp.async` may be in flight"), "{text}");
    one(&history(1, false), "E1018");
}

#[test]
fn the_thread_itself_has_to_wait_too() {
    let history = |waits: bool| {
        found(move |checker| {
            copy(checker, warp(0), 1, 0);
            checker.copy_commit(warp(0));
            if waits {
                checker.copy_wait(warp(0), 0);
            }
            Touch { bytes: 16, ..read(warp(0), 3, 0) }.row().tell(checker);
            checker.copy_wait(warp(0), 0);
        })
    };
    silent(&history(true));
    one(&history(false), "E1018");
}

#[test]
fn a_buffer_is_copied_to_only_after_its_readers() {
    let history = |meets: bool| {
        found(move |checker| {
            write(warp(0), 1, 0).row().tell(checker);
            barrier(checker, 0, 2);
            read(warp(1), 2, 0).row().tell(checker);
            if meets {
                barrier(checker, 0, 2);
            }
            copy(checker, warp(0), 3, 0);
            checker.copy_commit(warp(0));
            checker.copy_wait(warp(0), 0);
        })
    };
    silent(&history(true));
    let text = one(&history(false), "E1018");
    assert!(text.contains("nothing orders after the read of"), "{text}");
}

#[test]
fn groups_that_are_left_open() {
    let text = one(
        &found(|checker| {
            copy(checker, warp(0), 1, 0);
            checker.copy_commit(warp(0));
            checker.exit(warp(0), 9);
        }),
        "E1020",
    );
    assert!(text.contains("[instruction 1]"), "{text}");
    silent(&found(|checker| {
        copy(checker, warp(0), 1, 0);
        checker.copy_commit(warp(0));
        checker.copy_wait(warp(0), 0);
        checker.exit(warp(0), 9);
    }));
}

const FULL: Mbarrier = Mbarrier { rank: 0, address: 60_000 };
const OTHER: Mbarrier = Mbarrier { rank: 0, address: 60_008 };

fn load(checker: &mut ClusterChecker<'_>, at: u32, barrier: Mbarrier, to: u64) {
    let reads = [Span { space: Space::Global, address: BASE, bytes: 256 }];
    let writes = [Span { space: SHARED, address: to, bytes: 256 }];
    let completion = Completion::Mbarrier(barrier);
    checker.bulk(&Bulk { by: lane(0, 0), at, reads: &reads, writes: &writes, reduces: false, completion });
}

fn begin(checker: &mut ClusterChecker<'_>) {
    checker.mbarrier_init(lane(0, 0), 100, FULL);
    checker.mbarrier_init(lane(0, 0), 101, OTHER);
    barrier(checker, 0, 2);
}

#[test]
fn a_bulk_load_is_over_with_its_phase() {
    let history = |waits: Option<Mbarrier>| {
        found(move |checker| {
            begin(checker);
            for barrier in [FULL, OTHER] {
                checker.mbarrier_arrive(lane(0, 0), 1, barrier, true);
            }
            load(checker, 2, FULL, 0);
            load(checker, 3, OTHER, 1024);
            for barrier in [FULL, OTHER] {
                checker.mbarrier_complete(barrier, 0);
            }
            if let Some(barrier) = waits {
                checker.mbarrier_wait(warp(1), 4, barrier, 0, true);
            }
            read(warp(1), 5, 0).row().tell(checker);
        })
    };
    silent(&history(Some(FULL)));
    let text = one(&history(None), "E1018");
    assert!(text.contains("while a bulk copy may be in flight, that of instruction 2"), "{text}");
    one(&history(Some(OTHER)), "E1018");
}

#[test]
fn the_phase_before_the_first_tells_nothing() {
    let findings = found(|checker| {
        begin(checker);
        checker.mbarrier_arrive(lane(0, 0), 1, FULL, true);
        load(checker, 2, FULL, 0);
        checker.mbarrier_wait(warp(1), 4, FULL, -1, true);
        read(warp(1), 5, 0).row().tell(checker);
    });
    one(&findings, "E1018");
}

#[test]
fn a_stage_is_loaded_again_when_its_readers_have_arrived() {
    let history = |arrives: bool| {
        found(move |checker| {
            begin(checker);
            checker.mbarrier_arrive(lane(0, 0), 1, FULL, true);
            load(checker, 2, FULL, 0);
            checker.mbarrier_complete(FULL, 0);
            checker.mbarrier_wait(warp(1), 3, FULL, 0, true);
            read(warp(1), 4, 0).row().tell(checker);
            if arrives {
                checker.mbarrier_arrive(warp(1), 5, OTHER, true);
                checker.mbarrier_complete(OTHER, 0);
                checker.mbarrier_wait(lane(0, 0), 6, OTHER, 0, true);
            }
            load(checker, 7, FULL, 0);
        })
    };
    silent(&history(true));
    assert!(codes(&history(false)).contains(&"E1018"));
}

#[test]
fn a_phase_that_was_not_seen_may_be_mistaken() {
    // One lane arrives and warp 1 waits, phase after phase, and tells the lane that it has.
    let history = |waits: bool, knows: bool, tells: bool| {
        found(move |checker| {
            begin(checker);
            for phase in 0..2 {
                if phase == 1 && tells {
                    checker.mbarrier_arrive(warp(1), 4, OTHER, true);
                    checker.mbarrier_complete(OTHER, 0);
                    checker.mbarrier_wait(lane(0, 0), 5, OTHER, 0, true);
                }
                if phase == 1 && knows && !tells {
                    checker.mbarrier_wait(lane(0, 0), 5, FULL, 0, true);
                }
                checker.mbarrier_arrive(lane(0, 0), 1, FULL, true);
                if phase == 0 {
                    load(checker, 2, FULL, 0);
                }
                checker.mbarrier_complete(FULL, phase);
                if waits || phase == 1 {
                    checker.mbarrier_wait(warp(1), 3, FULL, phase as i64, true);
                }
            }
        })
    };
    silent(&history(true, true, true));
    let text = one(&history(false, true, false), "E1042");
    assert!(text.contains("may see phase -1 instead"), "{text}");
    let text = one(&history(true, true, false), "E1042");
    assert!(text.contains("may miss phase 0"), "{text}");
    let all = history(false, false, false);
    let texts: Vec<String> = all.iter().map(|finding| finding.text(&NoSources)).collect();
    assert!(texts.iter().any(|text| text.contains("arrival for phase 1") && text.contains("phase 0")), "{texts:#?}");
}

fn store(checker: &mut ClusterChecker<'_>, at: u32, from: u64) {
    let reads = [Span { space: SHARED, address: from, bytes: 128 }];
    let writes = [Span { space: Space::Global, address: BASE, bytes: 128 }];
    checker.bulk(&Bulk {
        by: lane(0, 0),
        at,
        reads: &reads,
        writes: &writes,
        reduces: false,
        completion: Completion::Group,
    });
}

const SHARED_FENCE: Fence = Fence::ProxyAsync { shared: true, global: false };

#[test]
fn a_bulk_store_needs_the_fence_of_its_proxy() {
    let history = |before: bool, after: bool, fence: Fence| {
        found(move |checker| {
            write(warp(1), 1, 0).row().tell(checker);
            if before {
                checker.fence(warp(1), fence);
            }
            barrier(checker, 0, 2);
            if after {
                checker.fence(lane(0, 0), fence);
            }
            store(checker, 2, 0);
            checker.bulk_commit(lane(0, 0));
            checker.bulk_wait(lane(0, 0), 0, true);
        })
    };
    silent(&history(true, false, SHARED_FENCE));
    silent(&history(false, true, SHARED_FENCE));
    silent(&history(true, false, Fence::ProxyAsync { shared: true, global: true }));
    let text = one(&history(false, false, SHARED_FENCE), "E1019");
    assert!(text.contains("the threads that store need `fence.proxy.async` before the barrier"), "{text}");
    one(&history(true, false, Fence::ProxyAsync { shared: false, global: true }), "E1019");
    // A fence of another thread that does not know of the write helps nobody.
    one(
        &found(|checker| {
            write(warp(1), 1, 0).row().tell(checker);
            checker.fence(warp(0), SHARED_FENCE);
            barrier(checker, 0, 2);
            store(checker, 2, 0);
        }),
        "E1019",
    );
}

#[test]
fn shared_memory_is_written_again_when_the_store_has_read_it() {
    let history = |waits: bool| {
        found(move |checker| {
            write(lane(0, 0), 1, 0).tell(checker);
            write(warp(0), 1, 4).row().tell(checker);
            checker.fence(warp(0), SHARED_FENCE);
            checker.warp_sync(warp(0));
            store(checker, 2, 0);
            checker.bulk_commit(lane(0, 0));
            if waits {
                checker.bulk_wait(lane(0, 0), 0, true);
            }
            checker.warp_sync(warp(0));
            write(warp(0), 3, 0).row().tell(checker);
            checker.bulk_wait(lane(0, 0), 0, true);
        })
    };
    silent(&history(true));
    let text = one(&history(false), "E1018");
    assert!(text.contains("while a bulk store, which reads them, may be in flight"), "{text}");
}

#[test]
fn what_a_bulk_store_writes_is_there_after_the_whole_wait() {
    let history = |reads: bool| {
        found(move |checker| {
            write(warp(0), 1, 0).row().tell(checker);
            checker.fence(warp(0), SHARED_FENCE);
            checker.warp_sync(warp(0));
            store(checker, 2, 0);
            checker.bulk_commit(lane(0, 0));
            checker.bulk_wait(lane(0, 0), 0, reads);
            global(read(lane(0, 0), 3, 0)).tell(checker);
        })
    };
    silent(&history(false));
    one(&history(true), "E1018");
}

fn product(checker: &mut ClusterChecker<'_>, at: u32, accumulators: &[u32]) {
    let reads = [Span { space: SHARED, address: 0, bytes: 256 }];
    checker.wgmma(&Wgmma { by: warp(1), at, reads: &reads, accumulators, operands: &[] });
}

#[test]
fn products_read_behind_the_warp() {
    let history = |waits: bool| {
        found(move |checker| {
            begin(checker);
            checker.mbarrier_arrive(lane(0, 0), 1, FULL, true);
            load(checker, 2, FULL, 0);
            checker.mbarrier_complete(FULL, 0);
            checker.mbarrier_wait(warp(1), 3, FULL, 0, true);
            checker.wgmma_fence(warp(1));
            product(checker, 4, &[1, 2]);
            checker.wgmma_commit(warp(1));
            if waits {
                checker.wgmma_wait(warp(1), 0);
            }
            checker.mbarrier_arrive(warp(1), 5, OTHER, true);
            checker.mbarrier_complete(OTHER, 0);
            checker.mbarrier_wait(lane(0, 0), 6, OTHER, 0, true);
            load(checker, 7, FULL, 0);
        })
    };
    silent(&history(true));
    let text = one(&history(false), "E1018");
    assert!(text.contains("a wgmma, which reads them,"), "{text}");
}

#[test]
fn accumulators_are_read_after_the_wait() {
    let filled = |checker: &mut ClusterChecker<'_>| {
        write(warp(1), 1, 0).row().tell(checker);
        Touch { addresses: [128; 32], ..write(warp(1), 1, 0) }.row().tell(checker);
        checker.fence(warp(1), SHARED_FENCE);
        checker.warp_sync(warp(1));
    };
    let history = |groups: u32, pending: u32| {
        found(move |checker| {
            filled(checker);
            checker.wgmma_fence(warp(1));
            product(checker, 4, &[1, 2]);
            checker.wgmma_commit(warp(1));
            for _ in 1..groups {
                product(checker, 5, &[3, 4]);
                checker.wgmma_commit(warp(1));
            }
            checker.wgmma_wait(warp(1), pending);
            checker.registers(warp(1), 6, &[1], &[7]);
            checker.wgmma_wait(warp(1), 0);
        })
    };
    silent(&history(1, 0));
    silent(&history(2, 1));
    one(&history(1, 1), "E1033");
    one(&history(2, 2), "E1033");
    // A move hands the register on, and the copy is as forbidden as the register.
    let moved = |waits: bool| {
        found(move |checker| {
            filled(checker);
            checker.wgmma_fence(warp(1));
            product(checker, 4, &[1, 2]);
            checker.wgmma_commit(warp(1));
            checker.register_copy(warp(1), 1, 9);
            if waits {
                checker.wgmma_wait(warp(1), 0);
            }
            checker.registers(warp(1), 6, &[9], &[]);
            checker.wgmma_wait(warp(1), 0);
        })
    };
    silent(&moved(true));
    one(&moved(false), "E1033");
    // Registers written since the last fence.
    let written = |fences: bool| {
        found(move |checker| {
            filled(checker);
            checker.wgmma_fence(warp(1));
            product(checker, 4, &[1, 2]);
            checker.wgmma_commit(warp(1));
            checker.wgmma_wait(warp(1), 0);
            checker.registers(warp(1), 5, &[], &[2]);
            if fences {
                checker.wgmma_fence(warp(1));
            }
            product(checker, 6, &[1, 2]);
            checker.wgmma_commit(warp(1));
            checker.wgmma_wait(warp(1), 0);
        })
    };
    silent(&written(true));
    let text = one(&written(false), "E1033");
    assert!(text.contains("`wgmma.fence` between"), "{text}");
}

#[test]
fn a_load_that_nobody_waits_for() {
    let history = |waits: bool| {
        found(move |checker| {
            begin(checker);
            checker.mbarrier_arrive(lane(0, 0), 1, FULL, true);
            load(checker, 2, FULL, 0);
            checker.mbarrier_complete(FULL, 0);
            if waits {
                checker.mbarrier_wait(warp(1), 3, FULL, 0, true);
            }
            checker.exit(warp(0), 9);
            checker.exit(warp(1), 9);
            checker.block_exit(0);
        })
    };
    silent(&history(true));
    one(&history(false), "E1020");
}

#[test]
fn copies_may_arrive_at_a_barrier_in_memory() {
    let history = |arrives: bool| {
        found(move |checker| {
            begin(checker);
            copy(checker, warp(0), 1, 0);
            if arrives {
                checker.mbarrier_arrive_copies(warp(0), 2, FULL);
            }
            checker.mbarrier_arrive(warp(0), 3, FULL, true);
            checker.mbarrier_complete(FULL, 0);
            checker.mbarrier_wait(warp(1), 4, FULL, 0, true);
            read(warp(1), 5, 0).row().tell(checker);
        })
    };
    silent(&history(true));
    one(&history(false), "E1018");
}

#[test]
fn global_memory_needs_a_fence_of_its_own() {
    let history = |fence: Option<Fence>| {
        found(move |checker| {
            begin(checker);
            let row = global(same(warp(1), 1, SHARED, Kind::Write, 0).row());
            row.tell(checker);
            barrier(checker, 0, 2);
            if let Some(fence) = fence {
                checker.fence(lane(0, 0), fence);
            }
            checker.mbarrier_arrive(lane(0, 0), 1, FULL, true);
            load(checker, 2, FULL, 0);
        })
    };
    silent(&history(Some(Fence::ProxyAsync { shared: false, global: true })));
    let text = one(&history(None), "E1019");
    assert!(text.contains("in the block that issues it"), "{text}");
    one(&history(Some(SHARED_FENCE)), "E1019");
}
