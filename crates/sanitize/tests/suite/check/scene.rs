//! A small language for histories.

use tilewright_sanitize::check::checker::{
    Access, Allocation, Checker, Kind, Lanes, Launch, NoValues, Order, Scope, Space, Values,
};
use tilewright_sanitize::check::finding::Finding;
use tilewright_sanitize::check::message::NoSources;
use tilewright_sanitize::check::{ClusterChecker, GridChecker};

/// Where the one allocation begins; it has `BYTES` bytes with values.
pub(crate) const BASE: u64 = 0x10000;
pub(crate) const BYTES: u64 = 1 << 16;
/// Where memory begins that nobody has written.
pub(crate) const OUT: u64 = 0x100000;

pub(crate) fn grid(blocks: u32, threads: u32) -> GridChecker {
    clustered(blocks, threads, 1)
}

pub(crate) fn clustered(blocks: u32, threads: u32, ranks: u32) -> GridChecker {
    let allocation =
        |name: &str, address, initialised| Allocation { name: name.to_string(), address, bytes: BYTES, initialised };
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: [ranks, 1, 1],
        shared_bytes: 1 << 16,
        allocations: vec![allocation("x", BASE, true), allocation("y", OUT, false)],
        instructions: 1000,
        asynchronous: true,
    };
    GridChecker::new(launch).expect("a small launch")
}

/// All lanes of a warp.
pub(crate) fn warp(number: u32) -> Lanes {
    Lanes { rank: 0, warp: number, mask: u32::MAX }
}

/// One lane of a warp.
pub(crate) fn lane(number: u32, lane: u32) -> Lanes {
    Lanes { mask: 1 << lane, ..warp(number) }
}

/// The same lanes of the block of a rank.
pub(crate) fn of(rank: u32, lanes: Lanes) -> Lanes {
    Lanes { rank, ..lanes }
}

pub(crate) const SHARED: Space = Space::Shared { rank: 0 };

/// An access to the same address by each lane, of 4 bytes.
pub(crate) fn same(by: Lanes, at: u32, space: Space, kind: Kind, address: u64) -> Touch {
    Touch { by, at, space, kind, order: Order::Weak, scope: Scope::Device, bytes: 4, addresses: [address; 32] }
}

pub(crate) fn read(by: Lanes, at: u32, address: u64) -> Touch {
    same(by, at, SHARED, Kind::Read, address)
}

pub(crate) fn write(by: Lanes, at: u32, address: u64) -> Touch {
    same(by, at, SHARED, Kind::Write, address)
}

pub(crate) fn global(touch: Touch) -> Touch {
    Touch { space: Space::Global, addresses: touch.addresses.map(|address| address + BASE), ..touch }
}

/// An access, owned.
#[derive(Clone, Copy)]
pub(crate) struct Touch {
    pub by: Lanes,
    pub at: u32,
    pub space: Space,
    pub kind: Kind,
    pub order: Order,
    pub scope: Scope,
    pub bytes: u32,
    pub addresses: [u64; 32],
}

impl Touch {
    /// Lane by lane, one after another in memory.
    pub(crate) fn row(mut self) -> Touch {
        for (lane, address) in self.addresses.iter_mut().enumerate() {
            *address += u64::from(self.bytes) * lane as u64;
        }
        self
    }

    pub(crate) fn strong(self, order: Order, scope: Scope) -> Touch {
        Touch { order, scope, ..self }
    }

    pub(crate) fn tell(&self, checker: &mut ClusterChecker<'_>) {
        self.tell_values(checker, &NoValues);
    }

    /// Tells of a read, and gives its number if its use is watched.
    pub(crate) fn tell_watched(&self, checker: &mut ClusterChecker<'_>) -> Option<u32> {
        self.tell(checker);
        checker.watched(&self.access(&NoValues))
    }

    pub(crate) fn tell_values(&self, checker: &mut ClusterChecker<'_>, values: &dyn Values) {
        checker.access(&self.access(values));
    }

    fn access<'a>(&'a self, values: &'a dyn Values) -> Access<'a> {
        let Touch { by, at, space, kind, order, scope, bytes, addresses } = self;
        Access {
            by: *by,
            at: *at,
            space: *space,
            kind: *kind,
            order: *order,
            scope: *scope,
            bytes: *bytes,
            addresses,
            values,
        }
    }
}

/// A barrier of all warps of the block of a rank.
pub(crate) fn barrier(checker: &mut ClusterChecker<'_>, rank: u32, warps: u32) {
    let all: Vec<Lanes> = (0..warps).map(|number| of(rank, warp(number))).collect();
    all.iter().for_each(|lanes| checker.barrier_arrive(*lanes, 0));
    checker.barrier_complete(rank, 0, &all);
}

/// What is found in the history of one block of two warps.
pub(crate) fn found(history: impl FnOnce(&mut ClusterChecker<'_>)) -> Vec<Finding> {
    let grid = grid(4, 64);
    let mut checker = grid.cluster(0);
    history(&mut checker);
    drop(checker);
    grid.findings()
}

/// The codes of findings.
pub(crate) fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(Finding::code).collect()
}

/// Nothing was found.
pub(crate) fn silent(findings: &[Finding]) {
    let all: Vec<String> = findings.iter().map(|finding| finding.text(&NoSources)).collect();
    assert!(all.is_empty(), "{all:#?}");
}

/// One finding, and its text.
pub(crate) fn one(findings: &[Finding], code: &str) -> String {
    let all: Vec<String> = findings.iter().map(|finding| finding.text(&NoSources)).collect();
    assert_eq!(codes(findings), [code], "{all:#?}");
    all.into_iter().next().unwrap_or_default()
}
