//! Vector clocks: which events happened before what a thread does next.
//!
//! Each warp has a counter, which is incremented whenever one of its lanes releases what it knows.
//! An event carries the count of its warp. For each agent, a clock has the count up to which the
//! agent's events are known, for all lanes of a warp or for each lane. After threads of a block
//! have synchronised at a barrier of the block, one number stands for all its threads, the *floor*,
//! so that most queries are one comparison.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::{AGENCIES, Code, Event};

/// The count up to which the events of an agent are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    all: u32,
    lanes: Option<Box<[u32; 32]>>,
}

impl Entry {
    #[inline]
    fn of(&self, lane: u32) -> u32 {
        self.lanes.as_ref().map_or(self.all, |lanes| lanes[lane as usize].max(self.all))
    }

    fn covers(&self, count: u32, mask: u32) -> bool {
        self.all >= count
            || self.lanes.as_ref().is_some_and(|lanes| {
                (0..32).filter(|lane| mask >> lane & 1 == 1).all(|lane| lanes[lane as usize] >= count)
            })
    }

    fn raise(&mut self, count: u32, mask: u32) {
        if mask == u32::MAX {
            self.all = self.all.max(count);
            if self.lanes.as_ref().is_some_and(|lanes| lanes.iter().all(|lane| *lane <= self.all)) {
                self.lanes = None;
            }
            return;
        }
        if self.covers(count, mask) {
            return;
        }
        let all = self.all;
        let lanes = self.lanes.get_or_insert_with(|| Box::new([all; 32]));
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            lanes[lane] = lanes[lane].max(count);
        }
        self.settle();
    }

    /// If all lanes have the same count, stores it as one number.
    fn settle(&mut self) {
        if let Some(lanes) = &self.lanes {
            let (least, most) = lanes.iter().fold((u32::MAX, 0), |(a, b), lane| (a.min(*lane), b.max(*lane)));
            self.all = self.all.max(least);
            if most <= self.all {
                self.lanes = None;
            }
        }
    }

    fn join(&mut self, other: &Entry) {
        match &other.lanes {
            None if self.lanes.is_none() => self.all = self.all.max(other.all),
            None => self.raise(other.all, u32::MAX),
            Some(theirs) => {
                let all = self.all;
                let lanes = self.lanes.get_or_insert_with(|| Box::new([all; 32]));
                for (mine, theirs) in lanes.iter_mut().zip(theirs.iter()) {
                    *mine = (*mine).max(*theirs).max(other.all);
                }
                self.settle();
            }
        }
    }
}

/// What is known about one block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BlockKnown {
    /// The count up to which all events of its threads are known.
    pub(super) floor: u32,
    /// For each agent, what is known beyond the floor. Agents past the end have nothing beyond it.
    agents: Vec<Entry>,
}

impl BlockKnown {
    #[inline]
    pub(super) fn covers(&self, local: u32, threads: bool, count: u32, mask: u32) -> bool {
        (threads && count <= self.floor)
            || self.agents.get(local as usize).is_some_and(|entry| entry.covers(count, mask))
    }

    fn raise(&mut self, local: u32, count: u32, mask: u32) {
        if self.agents.len() <= local as usize {
            self.agents.resize(local as usize + 1, Entry::default());
        }
        self.agents[local as usize].raise(count, mask);
    }

    fn join(&mut self, other: &BlockKnown) {
        self.floor = self.floor.max(other.floor);
        if self.agents.len() < other.agents.len() {
            self.agents.resize(other.agents.len(), Entry::default());
        }
        for (mine, theirs) in self.agents.iter_mut().zip(&other.agents) {
            mine.join(theirs);
        }
    }

    /// Whether any event of the block is known.
    pub(super) fn is_something(&self) -> bool {
        self.floor > 0 || self.agents.iter().any(|entry| (0..32).any(|lane| entry.of(lane) > 0))
    }
}

/// What is known about the blocks of one cluster.
type ClusterKnown = Arc<Vec<BlockKnown>>;

/// What is known about all blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// About the blocks of the clock's own cluster.
    own: ClusterKnown,
    /// About the blocks of other clusters, by the number of the cluster.
    others: Option<Arc<BTreeMap<u32, ClusterKnown>>>,
}

fn join_cluster(mine: &mut ClusterKnown, theirs: &ClusterKnown) {
    if Arc::ptr_eq(mine, theirs) || theirs.is_empty() {
        return;
    }
    if mine.is_empty() {
        *mine = Arc::clone(theirs);
        return;
    }
    let blocks = Arc::make_mut(mine);
    if blocks.len() < theirs.len() {
        blocks.resize(theirs.len(), BlockKnown::default());
    }
    for (mine, theirs) in blocks.iter_mut().zip(theirs.iter()) {
        mine.join(theirs);
    }
}

/// The cluster of a clock, and the number of blocks of each cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here {
    pub(super) cluster: u32,
    pub(super) ranks: u32,
}

impl Known {
    /// The floor of a block of the clock's own cluster.
    #[inline]
    pub(super) fn floor(&self, rank: u32) -> u32 {
        self.own.get(rank as usize).map_or(0, |block| block.floor)
    }

    /// What is known about a block of the clock's own cluster.
    pub(super) fn of_rank(&self, rank: u32) -> Option<&BlockKnown> {
        self.own.get(rank as usize)
    }

    fn block_mut(&mut self, rank: u32) -> &mut BlockKnown {
        let blocks = Arc::make_mut(&mut self.own);
        if blocks.len() <= rank as usize {
            blocks.resize(rank as usize + 1, BlockKnown::default());
        }
        &mut blocks[rank as usize]
    }

    /// Adds the events of an agent of the own cluster up to a count.
    pub(super) fn raise(&mut self, rank: u32, local: u32, count: u32, mask: u32) {
        let known = self
            .own
            .get(rank as usize)
            .is_some_and(|block| block.agents.get(local as usize).is_some_and(|entry| entry.covers(count, mask)));
        if !known {
            self.block_mut(rank).raise(local, count, mask);
        }
    }

    /// Adds the events of all threads of a block of the own cluster up to a count.
    pub(super) fn raise_floor(&mut self, rank: u32, count: u32, warps: u32) {
        let block = self.block_mut(rank);
        block.floor = block.floor.max(count);
        let threads = block.agents.len().min((warps * AGENCIES) as usize);
        for local in (0..threads).step_by(AGENCIES as usize) {
            let entry = &mut block.agents[local];
            if entry.lanes.as_ref().is_none_or(|lanes| lanes.iter().all(|lane| *lane <= count)) && entry.all <= count {
                *entry = Entry::default();
            }
        }
    }

    /// Whether an event of some lanes is known. The thread's own events must not be asked for.
    pub(super) fn covers(&self, code: &Code, here: Here, event: Event, mask: u32) -> bool {
        let block = code.block(event);
        let (cluster, rank) = (block / here.ranks, block % here.ranks);
        let blocks = if cluster == here.cluster {
            &self.own
        } else {
            match self.others.as_ref().and_then(|others| others.get(&cluster)) {
                Some(blocks) => blocks,
                None => return false,
            }
        };
        let local = code.local_of(event);
        let threads = code.is_thread(local);
        blocks.get(rank as usize).is_some_and(|block| block.covers(local, threads, code.count(event), mask))
    }

    /// Adds what a thread of a cluster knows.
    pub(super) fn join(&mut self, here: u32, other: &Known, there: u32) {
        if here == there {
            join_cluster(&mut self.own, &other.own);
        } else if !other.own.is_empty() {
            let others = Arc::make_mut(self.others.get_or_insert_default());
            join_cluster(others.entry(there).or_default(), &other.own);
        }
        let Some(theirs) = &other.others else { return };
        if self.others.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, theirs)) {
            return;
        }
        if self.others.is_none() && !theirs.contains_key(&here) {
            self.others = Some(Arc::clone(theirs));
            return;
        }
        for (cluster, blocks) in theirs.iter() {
            if *cluster == here {
                join_cluster(&mut self.own, blocks);
                continue;
            }
            let known = self.others.as_ref().and_then(|mine| mine.get(cluster));
            if known.is_none_or(|known| !Arc::ptr_eq(known, blocks) && known != blocks) {
                let others = Arc::make_mut(self.others.get_or_insert_default());
                join_cluster(others.entry(*cluster).or_default(), blocks);
            }
        }
    }
}

/// What a thread knows, and what it passes on by fences.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// The events that happened before what the thread does next.
    pub(super) known: Known,
    /// The events that happened before what other proxies do for the thread next: the async proxy
    /// in shared memory, the async proxy in global memory, and the tensormap proxy
    /// ([`Proxy`](super::cluster::Proxy)).
    pub(super) fenced: [Option<Arc<Known>>; 3],
    /// What a relaxed write releases because a fence came before it, by the scope of the fence:
    /// block, cluster, device.
    pub(super) published: [Option<Arc<Known>>; 3],
    /// What a relaxed read has observed, and what a later fence of the thread acquires, by the
    /// scope that the fence needs.
    pub(super) pending: [Option<Arc<Known>>; 3],
}

fn join_part(mine: &mut Option<Arc<Known>>, here: u32, theirs: Option<&Arc<Known>>, there: u32) {
    let Some(theirs) = theirs else { return };
    match mine {
        None if here == there => *mine = Some(Arc::clone(theirs)),
        None => {
            let mut known = Known::default();
            known.join(here, theirs, there);
            *mine = Some(Arc::new(known));
        }
        Some(mine) if here == there && Arc::ptr_eq(mine, theirs) => {}
        Some(mine) => Arc::make_mut(mine).join(here, theirs, there),
    }
}

impl View {
    /// Adds all that another view knows.
    pub(super) fn join(&mut self, here: u32, other: &View, there: u32) {
        self.known.join(here, &other.known, there);
        for (mine, theirs) in self.fenced.iter_mut().zip(&other.fenced) {
            join_part(mine, here, theirs.as_ref(), there);
        }
        for (mine, theirs) in self.published.iter_mut().zip(&other.published) {
            join_part(mine, here, theirs.as_ref(), there);
        }
        for (mine, theirs) in self.pending.iter_mut().zip(&other.pending) {
            join_part(mine, here, theirs.as_ref(), there);
        }
    }

    /// Records an observed release that a later fence of a scope acquires.
    pub(super) fn suspend(&mut self, here: u32, level: usize, other: &Known, there: u32) {
        let part = self.pending[level].get_or_insert_default();
        Arc::make_mut(part).join(here, other, there);
    }
}
