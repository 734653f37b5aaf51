//! The state that the checkers of all clusters share: the shadow of global memory, the flags in it,
//! and the findings.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::checker::{At, Kind, Launch, Scope};
use super::clock::View;
use super::cluster::ClusterChecker;
use super::event::{Code, Event};
use super::finding::{Finding, Thread};
use super::report::Reports;
use super::shadow::{PAGE_BYTES, PAGE_SHIFT, Page, Stands};
use super::uses::{Kept, Uses, UsesOfGrid};

/// What a strong write releases.
#[derive(Debug, Clone)]
pub(super) struct Release {
    /// What the thread knew.
    pub(super) view: Arc<View>,
    /// The number of the thread's block in the grid.
    pub(super) block: u32,
    /// The scope: which threads can acquire it.
    pub(super) scope: Scope,
}

/// An address that strong accesses have written.
#[derive(Debug, Default)]
pub(super) struct Flag {
    /// What its last write releases, followed by the releases that it continues: an atomic
    /// operation continues the release sequence of the previous write.
    pub(super) releases: Vec<Release>,
    /// Whether one of these writes releases nothing.
    pub(super) plain: bool,
    /// Incremented with each write.
    pub(super) version: u64,
}

/// A page of global memory.
#[derive(Debug)]
pub(super) struct GlobalPage {
    pub(super) page: Page,
    /// The flags of the page, by address.
    pub(super) flags: HashMap<u64, Flag>,
}

/// The checker of a launch. It makes a checker for each cluster, and collects the findings.
///
/// Each page of global memory has a lock, so that clusters may run in parallel. Which of two
/// unordered accesses comes first depends on the run, but not that they conflict. Findings are
/// sorted, each with the smaller instruction first.
#[derive(Debug)]
pub struct GridChecker {
    pub(super) launch: Launch,
    pub(super) code: Code,
    pages: Vec<Vec<OnceLock<Box<Mutex<GlobalPage>>>>>,
    reports: Mutex<Reports>,
    /// For each instruction, whether the use of the values that it reads is watched; empty if none
    /// is watched.
    watched: Vec<bool>,
    uses: Mutex<UsesOfGrid>,
    /// How much is kept about watched reads.
    pub(super) kept: Kept,
}

impl GridChecker {
    /// A checker for a launch.
    ///
    /// # Errors
    /// Errors: the blocks and the instructions of the launch leave too few bits for counts; the
    /// text says what is too large.
    pub fn new(mut launch: Launch) -> Result<GridChecker, String> {
        let Some(code) = Code::new(&launch) else {
            let blocks: u64 = launch.grid.iter().map(|extent| u64::from(*extent)).product();
            return Err(format!(
                "{blocks} blocks with {} instructions are too many to be checked; run fewer blocks",
                launch.instructions
            ));
        };
        launch.allocations.sort_by_key(|allocation| allocation.address);
        let pages = launch.allocations.iter().map(|allocation| {
            let count = allocation.bytes.div_ceil(PAGE_BYTES) as usize;
            std::iter::repeat_with(OnceLock::new).take(count).collect()
        });
        let pages = pages.collect();
        let (reports, uses) = (Mutex::default(), Mutex::default());
        Ok(GridChecker { launch, code, pages, reports, watched: Vec::new(), uses, kept: Kept::default() })
    }

    /// The same checker, which also watches how values are used that some instructions read. A
    /// finding about such a read counts only if the engine reports that the value is used.
    pub fn watching(mut self, instructions: &BTreeSet<At>) -> GridChecker {
        let last = instructions.last().map_or(0, |last| *last as usize + 1);
        self.watched = vec![false; last];
        instructions.iter().for_each(|at| self.watched[*at as usize] = true);
        self
    }

    /// The reading instructions that appear in findings, except those that are watched already. A
    /// run that watches them decides which of the findings count.
    pub fn suspects(&self) -> BTreeSet<At> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).suspects.clone()
    }

    /// Whether more watched reads occurred than can be kept, so that findings may be missing.
    pub fn has_lost_uses(&self) -> bool {
        let lost = |page: &Mutex<GlobalPage>| page.lock().unwrap_or_else(PoisonError::into_inner).page.lost;
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).gave_up
            || self.watches_any() && self.pages.iter().flatten().filter_map(OnceLock::get).any(|page| lost(page))
    }

    #[inline]
    pub(super) fn watches_any(&self) -> bool {
        !self.watched.is_empty()
    }

    #[inline]
    pub(super) fn watches(&self, at: At) -> bool {
        self.watched.get(at as usize).is_some_and(|own| *own)
    }

    /// Which earlier reads an access replaces.
    #[inline]
    pub(super) fn stands(&self, at: At, kind: Kind) -> Stands {
        match self.watches_any() {
            false => Stands::All,
            true if kind == Kind::Read && self.watches(at) => Stands::Nothing,
            true => Stands::Own,
        }
    }

    /// Which earlier reads an access through the async proxy replaces.
    pub(super) fn stands_of_engines(&self) -> Stands {
        if self.watches_any() { Stands::Own } else { Stands::All }
    }

    pub(super) fn add_uses(&self, cluster: u32, uses: Uses) {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).add(cluster, uses);
    }

    /// The checker of the cluster with a number. Clusters are numbered like blocks, x first.
    pub fn cluster(&self, number: u32) -> ClusterChecker<'_> {
        ClusterChecker::new(self, number)
    }

    /// The number of blocks of a cluster.
    pub(super) fn ranks(&self) -> u32 {
        self.launch.cluster.iter().product::<u32>().max(1)
    }

    /// A thread, by the number of its block. Here the blocks of a cluster have consecutive numbers.
    pub(super) fn thread(&self, block: u32, warp: u32, lane: u32) -> Thread {
        let ranks = self.ranks();
        let (cluster, rank) = (block / ranks, block % ranks);
        let [x, y, z] = self.launch.cluster.map(|extent| extent.max(1));
        let [columns, rows, _] = std::array::from_fn(|mode| self.launch.grid[mode].div_ceil([x, y, z][mode]).max(1));
        let of_cluster = [cluster % columns, cluster / columns % rows, cluster / columns / rows];
        let of_rank = [rank % x, rank / x % y, rank / x / y];
        let block = std::array::from_fn(|mode| of_cluster[mode] * [x, y, z][mode] + of_rank[mode]);
        Thread { block, warp, lane }
    }

    /// The allocation that contains an address. The search begins at `guess`.
    #[inline]
    pub(super) fn allocation(&self, address: u64, guess: usize) -> Option<usize> {
        let holds = |at: usize| {
            let allocation = self.launch.allocations.get(at)?;
            (address.wrapping_sub(allocation.address) < allocation.bytes).then_some(at)
        };
        holds(guess).or_else(|| {
            let after = self.launch.allocations.partition_point(|allocation| allocation.address <= address);
            holds(after.checked_sub(1)?)
        })
    }

    /// The page of an allocation that contains an offset.
    #[inline]
    pub(super) fn page(&self, allocation: usize, offset: u64, bytes: u32) -> MutexGuard<'_, GlobalPage> {
        let page = self.pages[allocation][(offset >> PAGE_SHIFT) as usize].get_or_init(|| {
            let initial = if self.launch.allocations[allocation].initialised { Event::INITIAL } else { Event::NONE };
            Box::new(Mutex::new(GlobalPage { page: Page::new(initial, offset, bytes), flags: HashMap::new() }))
        });
        page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, reports: Reports) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).merge(reports);
    }

    /// The findings of all clusters whose checkers were dropped, in the order of their
    /// instructions.
    pub fn findings(&self) -> Vec<Finding> {
        let decided = self.uses.lock().unwrap_or_else(PoisonError::into_inner).decide(&self.code, self.ranks());
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        decided.into_iter().for_each(|finding| reports.add(finding));
        reports.sorted()
    }

    /// Whether a count overflowed, so that not everything was checked.
    pub fn is_incomplete(&self) -> bool {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).overflowed
    }
}

impl Flag {
    /// Records a strong write that releases `releases`. `continues` is true for an atomic
    /// operation.
    pub(super) fn write(&mut self, releases: Vec<Release>, continues: bool) {
        self.version += 1;
        if !continues {
            self.releases.clear();
            self.plain = false;
        }
        self.plain |= releases.is_empty();
        for release in releases {
            self.add(release);
        }
    }

    /// Adds a release. Releases to all threads are joined, so that the list of a counter stays
    /// short.
    fn add(&mut self, release: Release) {
        let same = |old: &Release| old.scope == release.scope && old.block == release.block;
        if let Some(old) = self.releases.iter_mut().find(|old| same(old)) {
            *old = release_after(old, release);
            return;
        }
        self.releases.push(release);
    }

    /// Joins all that a device-wide counter releases into one view, which holds what many blocks
    /// have added.
    pub(super) fn fold(&mut self, here: u32, ranks: u32) {
        const MANY: usize = 8;
        if self.releases.len() < MANY || self.releases.iter().any(|release| release.scope < Scope::Device) {
            return;
        }
        let mut known = View::default();
        for release in &self.releases {
            known.join(here, &release.view, release.block / ranks);
        }
        let block = here * ranks;
        self.releases.clear();
        self.releases.push(Release { view: Arc::new(known), block, scope: Scope::System });
    }
}

/// The later of two releases of the same block.
fn release_after(old: &Release, new: Release) -> Release {
    let mut view = (*new.view).clone();
    // Both are of one cluster, so the number of the cluster does not matter.
    view.join(0, &old.view, 0);
    Release { view: Arc::new(view), ..new }
}

/// The scope that two threads need to synchronise: block, cluster, or device.
pub(super) fn needed(first: u32, second: u32, ranks: u32) -> Scope {
    if first == second {
        Scope::Block
    } else if first / ranks == second / ranks {
        Scope::Cluster
    } else {
        Scope::Device
    }
}
