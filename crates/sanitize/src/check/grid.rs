//! What the checkers of all clusters of a launch share: the shadow of global memory, what flags in
//! it pass on, and the findings.

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

/// What a strong write passes on to those who see it.
#[derive(Debug, Clone)]
pub(super) struct Release {
    /// What is passed on.
    pub(super) view: Arc<View>,
    /// By a thread of which block, of all blocks.
    pub(super) block: u32,
    /// To which threads.
    pub(super) scope: Scope,
}

/// A location that strong accesses have written.
#[derive(Debug, Default)]
pub(super) struct Flag {
    /// What its last write passes on, and those before it of which it is the continuation: an
    /// atomic operation continues the one before it.
    pub(super) releases: Vec<Release>,
    /// Whether one of these writes passes nothing on.
    pub(super) plain: bool,
    /// Rises with each write.
    pub(super) version: u64,
}

/// A page of global memory.
#[derive(Debug)]
pub(super) struct GlobalPage {
    pub(super) page: Page,
    /// By address.
    pub(super) flags: HashMap<u64, Flag>,
}

/// All that is known of a launch. It gives a checker to each cluster, and has the findings at the
/// end.
///
/// Pages of global memory have a lock each, so that clusters may run in parallel. Which of two
/// accesses that nothing orders comes first depends on the run; that they conflict does not, and
/// findings are sorted, each with the smaller instruction first.
#[derive(Debug)]
pub struct GridChecker {
    pub(super) launch: Launch,
    pub(super) code: Code,
    pages: Vec<Vec<OnceLock<Box<Mutex<GlobalPage>>>>>,
    reports: Mutex<Reports>,
    /// Whether the use of what an instruction reads is watched, for each; empty if of none.
    watched: Vec<bool>,
    uses: Mutex<UsesOfGrid>,
    /// How much is kept of watched reads.
    pub(super) kept: Kept,
}

impl GridChecker {
    /// A checker of a launch.
    ///
    /// # Errors
    /// Says what is too large: the launch and its program leave no bits to count with.
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

    /// The same, which watches what becomes of what some instructions read. A finding of such a
    /// read counts only if what was read is used, as the engine tells.
    pub fn watching(mut self, instructions: &BTreeSet<At>) -> GridChecker {
        let last = instructions.last().map_or(0, |last| *last as usize + 1);
        self.watched = vec![false; last];
        instructions.iter().for_each(|at| self.watched[*at as usize] = true);
        self
    }

    /// The instructions that read and of which something was found: a run that watches them decides
    /// what of it counts. Those that are watched already are not among them.
    pub fn suspects(&self) -> BTreeSet<At> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).suspects.clone()
    }

    /// Whether more reads were watched than can be kept, so that findings are missing.
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

    /// For which earlier reads an access stands.
    #[inline]
    pub(super) fn stands(&self, at: At, kind: Kind) -> Stands {
        match self.watches_any() {
            false => Stands::All,
            true if kind == Kind::Read && self.watches(at) => Stands::Nothing,
            true => Stands::Own,
        }
    }

    /// For which earlier reads one of an asynchronous engine stands.
    pub(super) fn stands_of_engines(&self) -> Stands {
        if self.watches_any() { Stands::Own } else { Stands::All }
    }

    pub(super) fn add_uses(&self, cluster: u32, uses: Uses) {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).add(cluster, uses);
    }

    /// The checker of the cluster of a number; clusters are numbered as blocks are, x first.
    pub fn cluster(&self, number: u32) -> ClusterChecker<'_> {
        ClusterChecker::new(self, number)
    }

    /// How many blocks a cluster has.
    pub(super) fn ranks(&self) -> u32 {
        self.launch.cluster.iter().product::<u32>().max(1)
    }

    /// The number of the block of a rank of a cluster: of all blocks, those of a cluster in a row.
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

    /// The allocation of an address, beginning the search at a guess.
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

    /// A page of an allocation.
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

    /// The findings of all clusters whose checkers are gone, in the order of their instructions.
    pub fn findings(&self) -> Vec<Finding> {
        let decided = self.uses.lock().unwrap_or_else(PoisonError::into_inner).decide(&self.code, self.ranks());
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        decided.into_iter().for_each(|finding| reports.add(finding));
        reports.sorted()
    }

    /// Whether a count overflowed, so that not all was checked.
    pub fn is_incomplete(&self) -> bool {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).overflowed
    }
}

impl Flag {
    /// A strong write that passes on what is given; `continues` for an atomic operation.
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

    /// Adds to what is passed on; what goes to all threads is joined, so that a counter stays
    /// small.
    fn add(&mut self, release: Release) {
        let same = |old: &Release| old.scope == release.scope && old.block == release.block;
        if let Some(old) = self.releases.iter_mut().find(|old| same(old)) {
            *old = release_after(old, release);
            return;
        }
        self.releases.push(release);
    }

    /// One view of all that a device-wide counter passes on: what many blocks have added.
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

/// The later release of two of the same block.
fn release_after(old: &Release, new: Release) -> Release {
    let mut view = (*new.view).clone();
    // Of one block, so of one cluster: any number does.
    view.join(0, &old.view, 0);
    Release { view: Arc::new(view), ..new }
}

/// Which scope two threads need to meet: the same block, the same cluster, or any.
pub(super) fn needed(first: u32, second: u32, ranks: u32) -> Scope {
    if first == second {
        Scope::Block
    } else if first / ranks == second / ranks {
        Scope::Cluster
    } else {
        Scope::Device
    }
}
