//! The asynchronous engines: mbarriers, bulk copies, tensor maps, wgmma.
//!
//! [`decode`] decodes their statements into operations; [`Cluster::asynchronous`] executes an
//! operation.
//!
//! Law: the engine reports a transfer to the checker when it is issued. Its bytes move at a time
//! that the schedule chooses between the issue and the first wait that needs them: at once, as late
//! as possible, or at random. So data that is read or overwritten too early is wrong under some
//! schedule.

mod barriers;
mod copies;
mod fragments;
mod maps;
mod products;
mod reading;

use std::collections::{HashMap, VecDeque};

use super::access::Side;
use super::cluster::{Cluster, Stop};
use super::code::{Reference, Row, Source, Target, Truth};
use super::execute::{Executes, Flow};
use super::warp::Warp;
use crate::check::finding::{Defect, Finding};
use crate::isa::mbarrier::BarrierWord;
use crate::isa::mma::sparse::Sparsity;
use crate::isa::tensor_map::{MapElement, MapField, Outside, TensorMap, Walk};
use crate::isa::wgmma::GroupProduct;

pub(super) use reading::decode;

/// Warps of a warpgroup.
const WARPS_OF_GROUP: u32 = 4;

/// How threads arrive at an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArriveMode {
    drops: bool,
    releases: bool,
}

/// What a wait tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The phase of the state token that an arrival returned.
    State(Source),
    /// The phase with a parity.
    Parity(Source),
}

/// The operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduces {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

/// A reduction and its element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReduceKind {
    what: Reduces,
    kind: crate::ptx::Scalar,
}

/// How the completion of a transfer is signalled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Barrier(Reference),
    Group,
}

/// An operation of the asynchronous engines.
pub(crate) enum AsyncOp {
    Nothing,
    Init {
        at: Reference,
        count: Source,
    },
    Invalidate(Reference),
    Arrive {
        at: Reference,
        d: Option<Target>,
        count: Option<Source>,
        bytes: Option<Source>,
        mode: ArriveMode,
    },
    Expect(Reference, Source),
    Complete(Reference, Source),
    Test {
        p: Option<u32>,
        at: Reference,
        asked: Asked,
        acquires: bool,
    },
    Pending(Target, Source),
    /// `cp.async.mbarrier.arrive`; true if it also increments the pending count (without `.noinc`).
    CopiesArrive(Reference, bool),
    Bulk {
        to: Reference,
        from: Reference,
        size: Source,
        ends: Ends,
        mask: Option<Source>,
        reduces: Option<ReduceKind>,
    },
    /// A TMA load: a copy of a box from global to shared memory.
    BoxLoad {
        to: Reference,
        map: Reference,
        coordinates: Box<[Source]>,
        offsets: Box<[Source]>,
        barrier: Reference,
        mask: Option<Source>,
        is_im2col: bool,
    },
    BoxStore {
        map: Reference,
        coordinates: Box<[Source]>,
        from: Reference,
        reduces: Option<Reduces>,
        is_im2col: bool,
    },
    /// `tensormap.replace`.
    ReplaceMap {
        at: Reference,
        field: MapField,
        value: Source,
    },
    /// `tensormap.cp_fenceproxy`: the destination and the source of the map.
    PublishMap(Reference, Reference),
    BulkCommit,
    BulkWait {
        pending: u32,
        reads: bool,
    },
    /// `st.async` and `red.async`.
    StoreRemote {
        to: Reference,
        from: Box<[Source]>,
        barrier: Reference,
        reduces: Option<ReduceKind>,
    },
    Product {
        wgmma: GroupProduct,
        d: Box<[Target]>,
        a: Result<Box<[Source]>, Source>,
        b: Source,
        /// The metadata of a sparse A.
        sparsity: Option<(Source, Sparsity)>,
        adds: Truth,
    },
    ProductFence,
    ProductCommit,
    ProductWait(u32),
}

impl AsyncOp {
    /// Whether it is executed repeatedly until its condition holds.
    pub(super) fn waits_in_place(&self) -> bool {
        matches!(self, Self::ProductWait(_))
    }

    /// Whether all lanes of a warp execute it together.
    pub(super) fn is_of_warps(&self) -> bool {
        matches!(self, Self::Product { .. } | Self::ProductFence | Self::ProductCommit | Self::ProductWait(_))
    }
}

/// The registers that an operation of the engines reads and writes.
#[derive(Default)]
pub(super) struct AsyncOperands {
    pub(super) sources: Vec<Source>,
    pub(super) truth: Option<Truth>,
    pub(super) targets: Vec<u32>,
    pub(super) predicates: Vec<u32>,
}

impl AsyncOp {
    /// The registers that it reads and writes.
    pub(super) fn operands(&self) -> AsyncOperands {
        let mut own = AsyncOperands::default();
        let AsyncOperands { sources, truth, targets, predicates } = &mut own;
        match self {
            Self::Nothing
            | Self::BulkCommit
            | Self::BulkWait { .. }
            | Self::ProductFence
            | Self::ProductCommit
            | Self::ProductWait(_) => {}
            Self::Init { at, count } => sources.extend([at.base, *count]),
            Self::Invalidate(at) | Self::CopiesArrive(at, _) => sources.push(at.base),
            Self::Arrive { at, d, count, bytes, .. } => {
                sources.push(at.base);
                sources.extend(count.iter().chain(bytes));
                targets.extend(d.map(|target| target.slot));
            }
            Self::Expect(at, bytes) | Self::Complete(at, bytes) => sources.extend([at.base, *bytes]),
            Self::Test { p, at, asked: Asked::State(asked) | Asked::Parity(asked), .. } => {
                sources.extend([at.base, *asked]);
                predicates.extend(p);
            }
            Self::Pending(d, state) => {
                sources.push(*state);
                targets.push(d.slot);
            }
            Self::Bulk { to, from, size, ends, mask, .. } => {
                sources.extend([to.base, from.base, *size]);
                sources.extend(mask);
                if let Ends::Barrier(at) = ends {
                    sources.push(at.base);
                }
            }
            Self::BoxLoad { to, map, coordinates, offsets, barrier, mask, .. } => {
                sources.extend([to.base, map.base, barrier.base]);
                sources.extend(coordinates.iter().chain(offsets).chain(mask));
            }
            Self::BoxStore { map, coordinates, from, .. } => {
                sources.extend([map.base, from.base]);
                sources.extend(coordinates);
            }
            Self::ReplaceMap { at, value, .. } => sources.extend([at.base, *value]),
            Self::PublishMap(to, from) => sources.extend([to.base, from.base]),
            Self::StoreRemote { to, from, barrier, .. } => {
                sources.extend([to.base, barrier.base]);
                sources.extend(from);
            }
            Self::Product { d, a, b, sparsity, adds, .. } => {
                sources.extend(sparsity.map(|(metadata, _)| metadata));
                sources.extend(d.iter().map(|target| Source(target.slot)));
                match a {
                    Ok(a) => sources.extend(a),
                    Err(a) => sources.push(*a),
                }
                sources.push(*b);
                *truth = Some(*adds);
                targets.extend(d.iter().map(|target| target.slot));
            }
        }
        own
    }
}

/// An mbarrier, and the thread that last tested it without success.
struct BarrierRecord {
    state: BarrierWord,
    waiter: Option<(usize, u32, u32, u32)>,
}

/// The source or the destination of a byte of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Global(u64),
    Shared(u32, u64),
    /// No memory: an element with these bits, for elements outside of a tensor.
    Fill(u64),
    /// No memory: bytes that an instruction has passed.
    Given([u8; 16]),
}

/// Contiguous bytes of a transfer.
#[derive(Clone, Copy, Debug)]
struct Move {
    to: Spot,
    from: Spot,
    bytes: u32,
}

/// A transfer that has not been performed.
struct Transfer {
    number: u64,
    moves: Vec<Move>,
    /// Bytes of an element.
    element: u32,
    reduces: Option<ReduceKind>,
    /// The mbarrier that counts its bytes: rank, address, and number of bytes.
    barrier: Option<(u32, u64, u32)>,
}

/// The bulk groups of a thread.
#[derive(Default)]
struct BulkGroups {
    open: Vec<u64>,
    closed: VecDeque<Vec<u64>>,
}

/// The state of the asynchronous engines of a cluster.
#[derive(Default)]
pub(crate) struct AsyncState {
    /// The mbarriers, by the rank of their block and their address.
    barriers: HashMap<(u32, u64), BarrierRecord>,
    transfers: Vec<Transfer>,
    issued: u64,
    groups: HashMap<(u32, u32, u32), BulkGroups>,
    /// The number of wgmma groups that each warp has closed, by the rank of its block and its
    /// number.
    products: HashMap<(u32, u32), u64>,
    /// The state of the engines' random numbers.
    drawn: u64,
}

impl Cluster<'_> {
    /// Executes an operation of the engines for the lanes `active`.
    pub(super) fn asynchronous(&mut self, by: &mut Executes<'_>, op: &AsyncOp) -> Result<Flow, Stop> {
        let Executes { block, active, .. } = *by;
        match op {
            AsyncOp::Nothing => {}
            AsyncOp::Init { at, count } => self.barrier_init(by, at, *count),
            AsyncOp::Invalidate(at) => self.barrier_invalidate(by, at),
            AsyncOp::Arrive { at, d, count, bytes, mode } => {
                self.barrier_arrive(by, at, (*d, *count, *bytes), *mode);
            }
            AsyncOp::Expect(at, bytes) => self.barrier_bytes(by, at, *bytes, true),
            AsyncOp::Complete(at, bytes) => self.barrier_bytes(by, at, *bytes, false),
            AsyncOp::Test { p, at, asked, acquires } => {
                return Ok(self.barrier_test(by, *p, at, *asked, *acquires));
            }
            AsyncOp::Pending(d, state) => {
                let out: Row = by.row(*state).map(|token| BarrierWord::pending_of(token).into());
                by.warp.frames[by.fragment.frame].put(*d, &out, active, false);
            }
            AsyncOp::CopiesArrive(at, adds) => self.copies_arrive(by, at, *adds),
            AsyncOp::Bulk { to, from, size, ends, mask, reduces } => {
                self.bulk(by, (to, from), *size, ends, *mask, *reduces);
            }
            AsyncOp::BoxLoad { to, map, coordinates, offsets, barrier, mask, is_im2col } => {
                let place = (map, &coordinates[..], &offsets[..], *is_im2col);
                self.box_load(by, to, place, barrier, *mask)?;
            }
            AsyncOp::BoxStore { map, coordinates, from, reduces, is_im2col } => {
                self.box_store(by, (map, coordinates, &[], *is_im2col), from, *reduces)?;
            }
            AsyncOp::ReplaceMap { at, field, value } => {
                self.replace_map(by, at, *field, *value)?;
            }
            AsyncOp::PublishMap(to, from) => {
                if !self.is_whole(by.warp, by.fragment, active) {
                    return Ok(Flow::Parked);
                }
                self.publish_map(by, to, from);
            }
            AsyncOp::BulkCommit => {
                let rank = self.blocks[block].rank;
                for lane in lanes_of(active) {
                    let groups = self.asynchronous.groups.entry((rank, by.warp.number, lane as u32)).or_default();
                    let open = std::mem::take(&mut groups.open);
                    groups.closed.push_back(open);
                }
                let lanes = self.lanes(block, by.warp, active);
                self.check.bulk_commit(lanes);
            }
            AsyncOp::BulkWait { pending, reads } => {
                let rank = self.blocks[block].rank;
                for lane in lanes_of(active) {
                    let groups = self.asynchronous.groups.entry((rank, by.warp.number, lane as u32)).or_default();
                    let count = groups.closed.len().saturating_sub(*pending as usize);
                    let done: Vec<u64> = groups.closed.drain(..count).flatten().collect();
                    self.finish_transfers(|transfer| done.contains(&transfer.number));
                }
                let lanes = self.lanes(block, by.warp, active);
                self.check.bulk_wait(lanes, *pending, *reads);
            }
            AsyncOp::StoreRemote { to, from, barrier, reduces } => {
                self.store_remote(by, to, from, barrier, *reduces);
            }
            AsyncOp::Product { wgmma, d, a, b, sparsity, adds } => {
                if !self.is_whole(by.warp, by.fragment, active) {
                    return Ok(Flow::Parked);
                }
                self.product(by, wgmma, d, (a, *b, *sparsity), *adds)?;
            }
            AsyncOp::ProductFence | AsyncOp::ProductCommit | AsyncOp::ProductWait(_) => {
                if !self.is_whole(by.warp, by.fragment, active) {
                    return Ok(Flow::Parked);
                }
                let lanes = self.lanes(block, by.warp, by.fragment.mask);
                if let AsyncOp::ProductWait(pending) = op
                    && let Some(missing) = self.missing_products(block, by.warp, *pending)
                {
                    // It looks again.
                    by.fragment.is_forced = by.fragment.mask != by.warp.live;
                    let parks = self.poll(by.fragment, missing);
                    return Ok(if parks { Flow::Parked } else { Flow::Jumped });
                }
                match op {
                    AsyncOp::ProductFence => self.check.wgmma_fence(lanes),
                    AsyncOp::ProductCommit => {
                        *self.asynchronous.products.entry((lanes.rank, by.warp.number)).or_default() += 1;
                        self.check.wgmma_commit(lanes);
                        self.tell_news();
                    }
                    AsyncOp::ProductWait(pending) => self.check.wgmma_wait(lanes, *pending),
                    _ => {}
                }
            }
        }
        Ok(Flow::Next)
    }

    /// How many wgmma groups another warp of the warpgroup must still close before this warp can
    /// pass a wait, because a wgmma completes for all four warps at once. None if the warp can
    /// pass.
    fn missing_products(&self, block: usize, warp: &Warp, pending: u32) -> Option<u64> {
        let rank = self.blocks[block].rank;
        let closed = |number: u32| self.asynchronous.products.get(&(rank, number)).copied().unwrap_or(0);
        let needed = closed(warp.number).saturating_sub(pending.into());
        let first = warp.number / WARPS_OF_GROUP * WARPS_OF_GROUP;
        let others = (first..first + WARPS_OF_GROUP).filter(|number| *number != warp.number);
        let is_alive = |number: &u32| self.blocks[block].warps.get(*number as usize).is_some_and(|own| own.live != 0);
        let least = others.filter(is_alive).map(closed).min()?;
        (least < needed).then(|| needed - least)
    }

    /// Reports the mbarriers of an exiting block that have missing or unexpected bytes.
    pub(super) fn check_bytes(&mut self, rank: u32) {
        let mut left: Vec<(u64, i64)> = Vec::new();
        for ((of, address), record) in &self.asynchronous.barriers {
            let flying = self.asynchronous.transfers.iter().filter_map(|transfer| transfer.barrier);
            let flying = flying.filter(|(rank, at, _)| (rank, at) == (of, address));
            let bytes = record.state.bytes() - flying.map(|(_, _, bytes)| i64::from(bytes)).sum::<i64>();
            if *of == rank && bytes != 0 {
                left.push((*address, bytes));
            }
        }
        left.sort_unstable();
        for (address, expects) in left {
            let (place, _) = self.place(Side::Shared(rank), address, 8);
            let defect = Defect::TransactionBytes { place, expects };
            self.check.report(Finding { defect, at: None, thread: None, count: 1 });
        }
    }

    /// What a polling fragment waits for, as text.
    pub(super) fn awaited(&self, op: &AsyncOp) -> String {
        match op {
            AsyncOp::Test { .. } => "for a phase of a barrier in shared memory".to_string(),
            AsyncOp::ProductWait(_) => "for products that other warps of the warpgroup do not issue".to_string(),
            _ => "and runs".to_string(),
        }
    }
}

/// The lanes of a mask.
fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// The 128 bytes of a tensor map of an array.
pub(crate) fn tensor_map(
    element: crate::Element,
    shape: &[u64],
    address: u64,
    view: &crate::MapView,
) -> Result<Vec<u8>, String> {
    let element = match element {
        crate::Element::F16 => MapElement::F16,
        crate::Element::Bf16 => MapElement::Bf16,
        crate::Element::F32 => MapElement::F32,
        crate::Element::F64 => MapElement::F64,
        crate::Element::Signed(4) => MapElement::S32,
        crate::Element::Signed(8) => MapElement::S64,
        other => match other.bytes() {
            1 => MapElement::U8,
            2 => MapElement::U16,
            4 => MapElement::U32,
            _ => MapElement::U64,
        },
    };
    let mut map = TensorMap::dense(element, shape, address)?;
    map.units = match view.swizzle {
        crate::MapSwizzle::None => 1,
        crate::MapSwizzle::Bytes32 => 2,
        crate::MapSwizzle::Bytes64 => 4,
        crate::MapSwizzle::Bytes128 => 8,
    };
    if view.fills_nan {
        map.outside = Outside::Nan;
    }
    // A tensor map lists the contiguous dimension first.
    let rank = map.rank;
    if !view.steps.is_empty() {
        if view.steps.len() != rank {
            return Err(format!("{} steps for an array of {rank} dimensions", view.steps.len()));
        }
        if view.steps.last() != Some(&1) {
            return Err("the step of the last dimension is 1".to_string());
        }
        map.steps[..rank].copy_from_slice(&view.steps.iter().rev().copied().collect::<Vec<u32>>());
    }
    match &view.walk {
        crate::MapWalk::Tiled(extents) => map.set_box(extents)?,
        crate::MapWalk::Im2col { pixels, channels, lower, upper } => {
            let spatial = rank.saturating_sub(2);
            let corner = |name: &str, numbers: &[i32]| -> Result<[i16; 3], String> {
                let mut own = [0; 3];
                if numbers.is_empty() {
                    return Ok(own);
                }
                if numbers.len() != spatial {
                    return Err(format!("`{name}` has {} numbers for {spatial} spatial dimensions", numbers.len()));
                }
                for (into, number) in own.iter_mut().zip(numbers.iter().rev()) {
                    *into = i16::try_from(*number).map_err(|_| format!("`{name}` holds {number}, which is too far"))?;
                }
                Ok(own)
            };
            map.walk = Walk::Im2col {
                lower: corner("lower", lower)?,
                upper: corner("upper", upper)?,
                channels: *channels,
                pixels: *pixels,
            };
        }
    }
    map.check()?;
    Ok(map.bytes().to_vec())
}
