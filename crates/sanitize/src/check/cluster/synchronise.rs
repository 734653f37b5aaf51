//! Flags: synchronisation by strong accesses and fences.
//!
//! A write releases what its thread knows, if it is a release, or what a fence before it published.
//! A read that observes the write acquires this, if it is an acquire; otherwise a later fence
//! acquires it. Both hold only if each scope includes the other thread. What a fence has published,
//! and what waits for a fence, is also passed on by barriers: a fence of each thread, a barrier,
//! and then one relaxed atomic operation of one thread release what all threads have written.

use std::sync::Arc;

use super::super::checker::{Access, Fence, Kind, Lanes, Order, Scope, Space};
use super::super::clock::View;
use super::super::event::strength;
use super::super::finding::Missing;
use super::super::grid::{Flag, Release, needed};
use super::{ClusterChecker, lanes};

impl ClusterChecker<'_> {
    /// Updates what a strong access releases and acquires.
    pub(super) fn synchronise(&mut self, access: &Access<'_>) {
        let (acquires, releases) = match access.order {
            Order::Weak | Order::NonCoherent => return,
            Order::Relaxed | Order::Volatile => (false, false),
            Order::Acquire => (true, false),
            Order::Release => (false, true),
            Order::AcquireRelease => (true, true),
        };
        let scope = if access.order == Order::Volatile { Scope::System } else { access.scope };
        let mut rest = access.by.mask;
        while rest != 0 {
            let address = access.addresses[rest.trailing_zeros() as usize];
            let same = lanes(rest).filter(|lane| access.addresses[*lane as usize] == address);
            let mask = same.fold(0, |mask, lane| mask | 1 << lane);
            rest &= !mask;
            let by = Lanes { mask, ..access.by };
            if matches!(access.kind, Kind::Read | Kind::Atomic) {
                self.read_flag(by, access.space, address, scope, acquires);
            }
            if access.kind != Kind::Read {
                self.write_flag(by, access.space, address, scope, releases, access.kind != Kind::Write);
            }
        }
    }

    fn with_flag<T>(&mut self, space: Space, address: u64, run: impl FnOnce(&mut Flag) -> T) -> Option<T> {
        match space {
            Space::Shared { rank } => Some(run(self.memories[rank as usize].flags.entry(address).or_default())),
            Space::Global => {
                let allocation = self.grid.allocation(address, self.guess)?;
                let offset = address - self.grid.launch.allocations[allocation].address;
                let mut page = self.grid.page(allocation, offset, 4);
                Some(run(page.flags.entry(address).or_default()))
            }
        }
    }

    fn read_flag(&mut self, by: Lanes, space: Space, address: u64, scope: Scope, acquires: bool) {
        let key = match space {
            Space::Shared { rank } => (Some(rank), address),
            Space::Global => (None, address),
        };
        let last = self.warps[self.warp_at(by)].acquired;
        let seen = self.with_flag(space, address, |flag| {
            let known = last.is_some_and(|(of, version, mask, acquired)| {
                of == key && version == flag.version && by.mask & !mask == 0 && (acquired || !acquires)
            });
            (!known).then(|| (flag.releases.clone(), flag.plain, flag.version))
        });
        let Some(Some((releases, plain, version))) = seen else { return };
        let (here, ranks, own) = (self.here.cluster, self.here.ranks, self.block(by.rank));
        if plain {
            self.suspicion = Some(Missing::Release);
        }
        for release in releases {
            let least = needed(own, release.block, ranks);
            let there = release.block / ranks;
            if release.scope < least || scope < least {
                self.suspicion = Some(Missing::Scope(least));
                continue;
            }
            if acquires {
                self.learn(by, |view| view.join(here, &release.view, there));
            } else {
                if least == Scope::Device {
                    self.suspicion = Some(Missing::Acquire);
                }
                let level = (least as usize).min(2);
                self.learn(by, |view| view.suspend(here, level, &release.view.known, there));
            }
        }
        self.warp_mut(by).acquired = Some((key, version, by.mask, acquires));
    }

    fn write_flag(&mut self, by: Lanes, space: Space, address: u64, scope: Scope, releases: bool, continues: bool) {
        let block = self.block(by.rank);
        let mut given = Vec::new();
        if releases {
            let view = Arc::new(self.released(by));
            given.push(Release { view, block, scope });
        } else {
            let joint = self.joint(by);
            let top = (strength(scope) - 1) as usize;
            let mut last = None;
            for level in (0..=top).rev() {
                let Some(published) = &joint.published[level] else { continue };
                if last.is_some_and(|last| Arc::ptr_eq(last, published)) {
                    continue;
                }
                last = Some(published);
                let view = View { known: (**published).clone(), fenced: joint.fenced.clone(), ..View::default() };
                let scope = [Scope::Block, Scope::Cluster, Scope::Device][level];
                given.push(Release { view: Arc::new(view), block, scope });
            }
        }
        let (here, ranks) = (self.here.cluster, self.here.ranks);
        self.with_flag(space, address, |flag| {
            flag.write(given, continues);
            flag.fold(here, ranks);
        });
        if releases {
            self.tick(by);
        }
    }

    pub(super) fn fence_lanes(&mut self, by: Lanes, fence: Fence) {
        match fence {
            Fence::Memory(scope) => {
                let level = (strength(scope) - 1) as usize;
                self.publish(by, level);
            }
            // A later arrival at the cluster barrier, even one without release, makes the
            // initialisation known.
            Fence::MbarrierInit => self.publish(by, Scope::Cluster as usize),
            Fence::ProxyAsync { .. } | Fence::ProxyTensormap { acquires: true } => {
                let asked = match fence {
                    Fence::ProxyAsync { shared, global } => [shared, global, false],
                    _ => [false, false, true],
                };
                let known = Arc::new(self.released(by).known);
                let here = self.here.cluster;
                self.learn(by, |view| {
                    for (part, asked) in view.fenced.iter_mut().zip(asked) {
                        if asked {
                            let mut fenced = (*known).clone();
                            if let Some(before) = part {
                                fenced.join(here, before, here);
                            }
                            *part = Some(Arc::new(fenced));
                        }
                    }
                });
                self.tick(by);
            }
            Fence::ProxyTensormap { acquires: false } => {}
        }
    }

    /// A fence of some scope: acquires the releases that were observed, and publishes what is
    /// known.
    fn publish(&mut self, by: Lanes, level: usize) {
        let here = self.here.cluster;
        self.learn(by, |view| {
            for pending in &mut view.pending[..=level] {
                if let Some(pending) = pending.take() {
                    view.known.join(here, &pending, here);
                }
            }
        });
        let known = Arc::new(self.released(by).known);
        self.learn(by, |view| view.published[..=level].iter_mut().for_each(|part| *part = Some(Arc::clone(&known))));
        self.tick(by);
    }
}
