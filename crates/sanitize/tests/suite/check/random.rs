//! Random histories of threads in two blocks, beside sets of accesses: who knows of what.
//!
//! The first access of a history that conflicts with one that its thread does not know of is the
//! first that is found, and before it nothing is. Where the uses of reads are watched, conflicts
//! with reads that nobody uses do not count.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_sanitize::check::checker::{Checker, Fence, Kind, Lanes, Mbarrier, Order, Scope};
use tilewright_sanitize::check::finding::Finding;
use tilewright_sanitize::check::{ClusterChecker, GridChecker};

use super::scene::*;

const THREADS: [(u32, u32, u32); 6] = [(0, 0, 0), (0, 0, 3), (0, 1, 0), (0, 1, 9), (1, 0, 0), (1, 1, 31)];

/// Numbers by chance: a linear generator is enough.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

type Set = BTreeSet<usize>;

/// What a thread knows of accesses; what it has published by a fence; what waits for a fence.
#[derive(Clone, Default)]
struct Mind {
    known: Set,
    published: Set,
    pending: Set,
}

impl Mind {
    fn join(&mut self, other: &Mind) {
        self.known.extend(&other.known);
        self.published.extend(&other.published);
        self.pending.extend(&other.pending);
    }
}

/// An access: of which thread, which bytes, whether it writes.
struct Done {
    thread: usize,
    bytes: (u64, u64),
    writes: bool,
    strong: bool,
    /// Whether it writes, or what it has read is used.
    counts: bool,
}

#[derive(Default)]
struct Oracle {
    minds: Vec<Mind>,
    done: Vec<Done>,
    /// What the last write of a flag passes on: to anybody.
    flags: BTreeMap<u64, Mind>,
    gathering: [Mind; 2],
    named: [Mind; 2],
}

impl Oracle {
    /// An access; whether it conflicts with one that the thread does not know of.
    fn access(&mut self, thread: usize, (first, bytes): (u64, u64), writes: bool, strong: bool, counts: bool) -> bool {
        let known = &self.minds[thread].known;
        let conflicts = self.done.iter().enumerate().any(|(number, done)| {
            let meets = done.bytes.0 < first + bytes && first < done.bytes.1;
            meets
                && (writes || done.writes)
                && !(strong && done.strong)
                && done.thread != thread
                && !known.contains(&number)
                && counts
                && done.counts
        });
        self.minds[thread].known.insert(self.done.len());
        self.done.push(Done { thread, bytes: (first, first + bytes), writes, strong, counts });
        conflicts
    }

    /// What a relaxed access of data, or a weak write to it, does to it as a flag.
    fn flag(&mut self, thread: usize, address: u64, kind: Kind, strong: bool) {
        if !strong {
            if kind == Kind::Write {
                self.flags.remove(&address);
            }
            return;
        }
        if matches!(kind, Kind::Read | Kind::Atomic) {
            let mind = self.flags.entry(address).or_default().clone();
            self.minds[thread].pending.extend(&mind.known);
        }
        let published = self.minds[thread].published.clone();
        match kind {
            Kind::Write => {
                self.flags.insert(address, Mind { known: published, ..Mind::default() });
            }
            Kind::Atomic => self.flags.entry(address).or_default().known.extend(&published),
            _ => {}
        }
    }

    fn meet(&mut self, threads: &[usize]) {
        let mut all = Mind::default();
        threads.iter().for_each(|thread| all.join(&self.minds[*thread]));
        threads.iter().for_each(|thread| self.minds[*thread] = all.clone());
    }
}

fn lanes_of(thread: usize) -> Lanes {
    lane(THREADS[thread].1, THREADS[thread].2)
}

const BARRIER: Mbarrier = Mbarrier { rank: 0, address: 1024 };

/// The findings of accesses. Phases of the barrier go on here without anybody who cares.
fn accesses(grid: &GridChecker) -> Vec<Finding> {
    grid.findings().into_iter().filter(|finding| finding.code() != "E1042").collect()
}

/// Runs one history; whether it had a conflict. `watches` says that half of the reads are used.
fn run(seed: u64, watches: bool) -> bool {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let grid: GridChecker = grid(2, 64);
    let grid = if watches { grid.watching(&(1..50).collect()) } else { grid };
    let mut used_later: Vec<(u32, u32, u32)> = Vec::new();
    let mut checkers: Vec<ClusterChecker<'_>> = (0..2).map(|number| grid.cluster(number)).collect();
    let mut oracle = Oracle { minds: vec![Mind::default(); THREADS.len()], ..Oracle::default() };
    for checker in &mut checkers {
        checker.mbarrier_init(lane(0, 0), 999, BARRIER);
        barrier(checker, 0, 2);
    }
    let mut phases = [0u64; 2];
    for step in 1..50u32 {
        let thread = chance.below(THREADS.len() as u64) as usize;
        let (block, number, _) = THREADS[thread];
        let checker = &mut checkers[block as usize];
        let by = lanes_of(thread);
        let in_block: Vec<usize> = (0..THREADS.len()).filter(|other| THREADS[*other].0 == block).collect();
        let in_warp: Vec<usize> = in_block.iter().copied().filter(|other| THREADS[*other].1 == number).collect();
        let flag = 8192 + 64 * chance.below(2);
        let flagged = |kind, order| global(same(by, step, SHARED, kind, flag)).strong(order, Scope::Device);
        match 7 + chance.below(17) {
            0..10 => {
                let bytes = 1u64 << chance.below(4);
                let first = chance.below(64 / bytes) * bytes;
                let kind = if chance.below(5) == 0 { Kind::Write } else { Kind::Read };
                let touch = global(same(by, step, SHARED, kind, first));
                let strong = chance.below(3) == 0;
                let touch = Touch { bytes: bytes as u32, ..touch };
                let kind = if strong && kind == Kind::Write && chance.below(2) == 0 { Kind::Atomic } else { kind };
                let touch = match strong {
                    true => Touch { kind, ..touch }.strong(Order::Relaxed, Scope::Device),
                    false => touch,
                };
                let is_used = !watches || kind != Kind::Read || chance.below(2) == 0;
                match kind {
                    Kind::Read => {
                        if let Some(read) = touch.tell_watched(checker).filter(|_| is_used) {
                            match chance.below(2) {
                                0 => checker.used(read, by.mask.trailing_zeros()),
                                _ => used_later.push((block, read, by.mask.trailing_zeros())),
                            }
                        }
                    }
                    _ => touch.tell(checker),
                }
                oracle.flag(thread, first, kind, strong);
                if oracle.access(thread, (first, bytes), kind != Kind::Read, strong, is_used) {
                    for (block, read, lane) in used_later {
                        checkers[block as usize].used(read, lane);
                    }
                    drop(checkers);
                    let findings = accesses(&grid);
                    assert!(
                        findings.iter().all(|finding| finding.at == Some(step)),
                        "seed {seed}, step {step}: early {findings:?}"
                    );
                    assert!(!findings.is_empty(), "seed {seed}, step {step}");
                    assert!(watches || findings.len() == 1, "seed {seed}, step {step}");
                    return true;
                }
            }
            10 => {
                barrier(checker, 0, 2);
                oracle.meet(&in_block);
            }
            11..13 => {
                checker.warp_sync(warp(number));
                oracle.meet(&in_warp);
            }
            13 => {
                flagged(Kind::Write, Order::Release).tell(checker);
                let mind = oracle.minds[thread].clone();
                oracle.flags.insert(flag, mind);
            }
            14 => {
                flagged(Kind::Write, Order::Relaxed).tell(checker);
                let published = oracle.minds[thread].published.clone();
                oracle.flags.insert(flag, Mind { known: published, ..Mind::default() });
            }
            15 => {
                flagged(Kind::Atomic, Order::AcquireRelease).tell(checker);
                let before = oracle.flags.entry(flag).or_default().clone();
                oracle.minds[thread].join(&before);
                let mind = oracle.minds[thread].clone();
                oracle.flags.entry(flag).or_default().join(&mind);
            }
            16..18 => {
                flagged(Kind::Read, Order::Acquire).tell(checker);
                let mind = oracle.flags.entry(flag).or_default().clone();
                oracle.minds[thread].join(&mind);
            }
            18 => {
                flagged(Kind::Read, Order::Relaxed).tell(checker);
                let mind = oracle.flags.entry(flag).or_default().clone();
                oracle.minds[thread].pending.extend(&mind.known);
            }
            19 => {
                checker.fence(by, Fence::Memory(Scope::Device));
                let mind = &mut oracle.minds[thread];
                mind.known.append(&mut mind.pending);
                mind.published = mind.known.clone();
            }
            20 => {
                checker.mbarrier_arrive(by, step, BARRIER, true);
                let mind = oracle.minds[thread].clone();
                oracle.gathering[block as usize].join(&mind);
            }
            21 => {
                let phase = &mut phases[block as usize];
                checker.mbarrier_complete(BARRIER, *phase);
                checker.mbarrier_wait(by, step, BARRIER, *phase as i64, true);
                *phase += 1;
                let gathered = std::mem::take(&mut oracle.gathering[block as usize]);
                oracle.minds[thread].join(&gathered);
            }
            22 => {
                checker.barrier_arrive(by, 5);
                let mind = oracle.minds[thread].clone();
                oracle.named[block as usize].join(&mind);
            }
            _ => {
                checker.barrier_arrive(by, 5);
                checker.barrier_complete(0, 5, &[by]);
                let mut all = std::mem::take(&mut oracle.named[block as usize]);
                all.join(&oracle.minds[thread]);
                oracle.minds[thread] = all;
            }
        }
    }
    for (block, read, lane) in used_later {
        checkers[block as usize].used(read, lane);
    }
    drop(checkers);
    let findings = accesses(&grid);
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
    false
}

#[test]
fn the_first_conflict_is_found_and_nothing_before_it() {
    let conflicts = (0..6000).filter(|seed| run(*seed, false)).count();
    assert!((2000..5000).contains(&conflicts), "{conflicts} histories with a conflict");
}

#[test]
fn reads_that_nobody_uses_conflict_with_nothing() {
    let conflicts = (0..6000).filter(|seed| run(*seed, true)).count();
    assert!((1000..5000).contains(&conflicts), "{conflicts} histories with a conflict");
}
