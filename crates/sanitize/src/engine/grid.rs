//! Runs all clusters of a launch on the cores of the host.
//!
//! Law: a cluster starts when no earlier cluster can continue, or when a core is free. So a block
//! may wait for earlier blocks, as on a device with few resident blocks, and a launch that needs
//! all its blocks to be resident runs too. If no thread of any cluster can continue, and no cluster
//! is left to start, the launch hangs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::cluster::{Cluster, Grid, Stop, Turn};
use crate::check::checker::Checker;

/// The most clusters that a core holds at a time, and the most bytes of their registers and shared
/// memory.
const MAX_RESIDENT: u64 = 65_536;
const MAX_RESIDENT_BYTES: u64 = 4 << 30;
/// The most clusters whose waiting threads are reported.
const MAX_TOLD: usize = 4;
/// The value in `idle` of a core that has no work left.
const FINISHED: u64 = u64::MAX;

/// Makes the checker of a cluster.
pub(crate) type Checkers<'g> = dyn Fn(u64) -> Box<dyn Checker + Send + 'g> + Sync + 'g;

struct Common<'g> {
    grid: &'g Grid<'g>,
    checkers: &'g Checkers<'g>,
    clusters: u64,
    next: AtomicU64,
    is_stopping: AtomicBool,
    stop: Mutex<Option<Stop>>,
    /// For each core, one more than the news counter at which it had nothing to do; 0 while it
    /// works.
    idle: Vec<AtomicU64>,
}

/// Runs all clusters on this many cores. Returns why it stopped early; None if all threads exited.
pub(crate) fn run<'g>(grid: &'g Grid<'g>, checkers: &'g Checkers<'g>, cores: usize) -> Option<Stop> {
    let clusters = (0..3).map(|axis| u64::from(grid.grid[axis].div_ceil(grid.cluster[axis]))).product();
    let common = Common {
        grid,
        checkers,
        clusters,
        next: AtomicU64::new(0),
        is_stopping: AtomicBool::new(false),
        stop: Mutex::new(None),
        idle: (0..cores).map(|_| AtomicU64::new(0)).collect(),
    };
    if cores == 1 {
        work(&common, 0);
    } else {
        std::thread::scope(|scope| {
            for core in 1..cores {
                let common = &common;
                scope.spawn(move || work(common, core));
            }
            work(&common, 0);
        });
    }
    common.stop.into_inner().unwrap_or(None)
}

impl<'g> Common<'g> {
    fn take(&self) -> Option<Cluster<'g>> {
        let number = self.next.fetch_add(1, SeqCst);
        if number >= self.clusters {
            return None;
        }
        let number = self.grid.schedule.cluster(number, self.clusters);
        Some(Cluster::new(self.grid, number, (self.checkers)(number)))
    }

    fn end(&self, stop: Stop) {
        if let Ok(mut own) = self.stop.lock() {
            own.get_or_insert(stop);
        }
        self.is_stopping.store(true, SeqCst);
    }

    /// Whether no core could do anything since the news counter had this value.
    fn hangs(&self, news: u64) -> bool {
        self.idle.iter().all(|own| {
            let own = own.load(SeqCst);
            own == FINISHED || own == news + 1
        })
    }
}

fn work(common: &Common<'_>, core: usize) {
    let mut active: Vec<Cluster<'_>> = Vec::new();
    let resident = common.grid.schedule.resident();
    let most = (MAX_RESIDENT_BYTES / common.grid.cluster_bytes().max(1)).clamp(resident as u64, MAX_RESIDENT);
    while !common.is_stopping.load(SeqCst) {
        while active.len() < resident
            && let Some(cluster) = common.take()
        {
            active.push(cluster);
        }
        if active.is_empty() {
            break;
        }
        let mut is_moved = false;
        let mut at = 0;
        while at < active.len() {
            match active[at].turn() {
                Ok(Turn::Done) => {
                    active.remove(at);
                    is_moved = true;
                }
                Ok(Turn::More) => {
                    is_moved = true;
                    at += 1;
                }
                Ok(Turn::Waits) => {
                    at += 1;
                    continue;
                }
                Err(stop) => {
                    common.end(stop);
                    break;
                }
            }
            if resident == 1 {
                break;
            }
        }
        if is_moved {
            common.idle[core].store(0, SeqCst);
            continue;
        }
        if (active.len() as u64) < most
            && let Some(cluster) = common.take()
        {
            active.push(cluster);
            continue;
        }
        let news = common.grid.news.load(SeqCst);
        if !active.iter().all(Cluster::hangs) {
            common.idle[core].store(0, SeqCst);
            continue;
        }
        common.idle[core].store(news + 1, SeqCst);
        if common.hangs(news) && common.grid.news.load(SeqCst) == news {
            if !common.is_stopping.swap(true, SeqCst) {
                active.iter_mut().take(MAX_TOLD).for_each(Cluster::tell_hang);
            }
            common.end(Stop::Hung);
        } else {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    common.idle[core].store(FINISHED, SeqCst);
}
