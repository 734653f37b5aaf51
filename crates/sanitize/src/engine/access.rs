//! Memory accesses: their memory, their bounds, and their report to the checker.

use super::cluster::Cluster;
use super::code::{FunctionCode, Reference, Row, Window};
use super::execute::MAX_LOCAL;
use super::memory::{Memory, Words};
use super::warp::Warp;
use super::windows;
use crate::check::checker::{Access, Kind, Lanes, Order, Space, Values};
use crate::check::finding::{Defect, Place};

/// The memory that lanes access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Global,
    Shared(u32),
    Local,
    Parameters,
}

/// Whether a generic address is in a window: `isspacep`.
pub(super) fn is_in(address: u64, window: Window) -> bool {
    let within = |start: u64| address.wrapping_sub(start) < windows::WINDOW;
    match window {
        Window::Generic => true,
        Window::Global => address >= windows::GLOBAL,
        Window::Const => false,
        Window::Shared => within(windows::SHARED) && address - windows::SHARED < windows::RANK,
        Window::SharedCluster => within(windows::SHARED),
        Window::Local => within(windows::LOCAL),
        Window::Param => within(windows::PARAMETERS),
    }
}

pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros();
            left &= left - 1;
            lane as usize
        })
    })
}

/// The lowest and the highest address of lanes, and the bitwise or of all addresses.
#[inline]
fn extremes(row: &Row, mask: u32) -> (u64, u64, u64) {
    let join = |(least, most, bits): (u64, u64, u64), own: u64| (own.min(least), own.max(most), bits | own);
    match mask {
        u32::MAX => row.iter().fold((u64::MAX, 0, 0), |all, own| join(all, *own)),
        mask => lanes(mask).fold((u64::MAX, 0, 0), |all, lane| join(all, row[lane])),
    }
}

/// The bytes that lanes write, and the present bytes.
struct Written<'a> {
    memory: &'a Memory,
    shared: Option<&'a Words>,
    addresses: &'a Row,
    rows: &'a [Row],
    bytes: usize,
    count: usize,
    is_known: bool,
}

impl Values for Written<'_> {
    fn written(&self, lane: usize) -> Option<[u8; 32]> {
        if !self.is_known {
            return None;
        }
        let mut all = [0; 32];
        for (row, into) in self.rows.iter().zip(all.chunks_exact_mut(self.bytes)) {
            into.copy_from_slice(&row[lane].to_le_bytes()[..self.bytes]);
        }
        Some(all)
    }

    fn held(&self, lane: usize) -> [u8; 32] {
        let mut all = [0; 32];
        let bytes = (self.bytes * self.count).min(32);
        let address = self.addresses[lane];
        match self.shared {
            Some(words) => words.read_into(address, &mut all[..bytes]),
            None => {
                if let Some(region) = self.memory.find(address, &mut 0) {
                    region.words.read_into(address - region.address, &mut all[..bytes]);
                }
            }
        }
        all
    }
}

pub(super) fn is_strong(order: Order) -> bool {
    !matches!(order, Order::Weak | Order::NonCoherent)
}

impl Cluster<'_> {
    /// The address of each lane.
    #[inline]
    pub(super) fn addresses(&self, warp: &Warp, frame: usize, code: &FunctionCode, reference: &Reference) -> Row {
        let base = warp.frames[frame].row(code, reference.base);
        let mut row = [0; 32];
        let offset = reference.offset as u64;
        for lane in 0..32 {
            row[lane] = base[lane].wrapping_add(offset);
        }
        if matches!(reference.window, Window::Shared | Window::SharedCluster | Window::Local) {
            row.iter_mut().for_each(|address| *address &= 0xffff_ffff);
        }
        row
    }

    /// The memory of an address in a window, and the address in that memory.
    #[inline]
    pub(super) fn side(&self, block: usize, window: Window, address: u64) -> (Side, u64) {
        let own = self.blocks[block].rank;
        match window {
            Window::Global | Window::Const => (Side::Global, address),
            Window::Shared => (Side::Shared(own), address),
            Window::SharedCluster => {
                let (rank, offset) = windows::rank_of(address, own);
                (Side::Shared(rank), offset)
            }
            Window::Local => (Side::Local, address),
            Window::Param => (Side::Parameters, address),
            Window::Generic => {
                if address >= windows::GLOBAL {
                    (Side::Global, address)
                } else if is_in(address, Window::SharedCluster) {
                    let (rank, offset) = windows::rank_of(address - windows::SHARED, own);
                    (Side::Shared(rank), offset)
                } else if is_in(address, Window::Local) {
                    (Side::Local, address - windows::LOCAL)
                } else if is_in(address, Window::Param) {
                    (Side::Parameters, address - windows::PARAMETERS)
                } else {
                    (Side::Global, address)
                }
            }
        }
    }

    /// Removes from `left` the lanes that access the same memory as its first lane, and writes
    /// their addresses in that memory to `row`.
    pub(super) fn group(
        &self,
        block: usize,
        window: Window,
        addresses: &Row,
        left: &mut u32,
        row: &mut Row,
    ) -> (Side, u32) {
        let first = left.trailing_zeros() as usize & 31;
        let (side, _) = self.side(block, window, addresses[first]);
        if matches!(window, Window::Global | Window::Const | Window::Shared | Window::Local | Window::Param) {
            *row = *addresses;
            return (side, std::mem::take(left));
        }
        let mut mask = 0;
        for lane in lanes(*left) {
            let (own, address) = self.side(block, window, addresses[lane]);
            if own == side {
                mask |= 1 << lane;
                row[lane] = address;
            }
        }
        *left &= !mask;
        (side, mask)
    }

    /// Whether all accesses of this many bytes between two addresses are inside of one array; and,
    /// if they write, whether that array is writable.
    #[inline]
    fn is_inside(&mut self, side: Side, least: u64, most: u64, bytes: u64, writes: bool) -> bool {
        let (from, size) = match side {
            Side::Global => match self.grid.memory.find(least, &mut self.near) {
                Some(region) if !(writes && region.is_read_only) => (region.address, region.words.bytes()),
                _ => return false,
            },
            _ => (0, self.size(side)),
        };
        bytes <= size && most - from <= size - bytes
    }

    /// The lanes whose access of this many bytes is inside and aligned. Other lanes are reported.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn allowed(
        &mut self,
        block: usize,
        warp: &Warp,
        at: u32,
        side: Side,
        mask: u32,
        row: &Row,
        bytes: u64,
        writes: bool,
    ) -> u32 {
        let (least, most, bits) = extremes(row, mask);
        if bits & (bytes - 1) == 0 && self.is_inside(side, least, most, bytes, writes) {
            return mask;
        }
        let (mut outside, mut crooked, mut frozen) = (0, 0, 0);
        match side {
            Side::Global => {
                let mut near = self.near;
                for lane in lanes(mask) {
                    let address = row[lane];
                    match self.grid.memory.find(address, &mut near) {
                        Some(region) if bytes <= region.words.bytes() - (address - region.address) => {
                            frozen |= u32::from(writes && region.is_read_only) << lane;
                        }
                        _ => outside |= 1 << lane,
                    }
                    crooked |= u32::from(address & (bytes - 1) != 0) << lane;
                }
                self.near = near;
            }
            _ => {
                let size = self.size(side);
                for lane in lanes(mask) {
                    let address = row[lane];
                    outside |= u32::from(address >= size || bytes > size - address) << lane;
                    crooked |= u32::from(address & (bytes - 1) != 0) << lane;
                }
            }
        }
        if outside | crooked | frozen == 0 {
            return mask;
        }
        let bad = [outside, frozen, crooked].into_iter().find(|own| *own != 0).unwrap_or(0);
        let address = row[bad.trailing_zeros() as usize & 31];
        let (place, size) = self.place(side, address, bytes);
        let defect = match (outside != 0, frozen != 0) {
            (true, _) => Defect::OutOfBounds { place, size, writes },
            (_, true) => Defect::ReadOnly { place },
            _ => Defect::Misaligned { place, alignment: bytes as u32 },
        };
        self.found(block, warp.number, bad, at, defect);
        mask & !(outside | crooked | frozen)
    }

    /// The number of bytes of a memory other than global memory.
    fn size(&self, side: Side) -> u64 {
        match side {
            Side::Shared(rank) if (rank as usize) < self.blocks.len() => self.grid.shared_bytes,
            Side::Shared(_) => 0,
            Side::Local => MAX_LOCAL,
            Side::Parameters => self.grid.parameters.bytes(),
            Side::Global => 0,
        }
    }

    /// A range of bytes for a message, and the number of bytes of its memory.
    pub(super) fn place(&self, side: Side, address: u64, bytes: u64) -> (Place, u64) {
        match side {
            Side::Global if address < windows::WINDOW => {
                (Place { memory: "the null pointer".to_string(), byte: address as i64, bytes }, 0)
            }
            Side::Global => match self.grid.memory.nearest(address) {
                Some(region) => {
                    let byte = address.wrapping_sub(region.address) as i64;
                    (Place { memory: format!("`{}`", region.name), byte, bytes }, region.words.bytes())
                }
                None => (Place { memory: "global memory".to_string(), byte: address as i64, bytes }, 0),
            },
            _ => {
                let memory = match side {
                    Side::Local => "local memory",
                    Side::Parameters => "the parameters",
                    _ => "shared memory",
                };
                (Place { memory: memory.to_string(), byte: address as i64, bytes }, self.size(side))
            }
        }
    }

    /// Reports an access of some lanes to the checker.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub(super) fn tell(
        &mut self,
        by: Lanes,
        at: u32,
        side: Side,
        row: &Row,
        reference: &Reference,
        kind: Kind,
        rows: &[Row],
        is_known: bool,
    ) {
        let space = match side {
            Side::Global => Space::Global,
            Side::Shared(rank) => Space::Shared { rank },
            Side::Local | Side::Parameters => return,
        };
        if reference.window == Window::Const {
            return;
        }
        let shared = match side {
            Side::Shared(rank) => Some(&self.blocks[rank as usize].shared),
            _ => None,
        };
        let values = Written {
            memory: self.grid.memory,
            shared,
            addresses: row,
            rows,
            bytes: reference.bytes as usize,
            count: reference.count as usize,
            is_known,
        };
        self.check.access(&Access {
            by,
            at,
            space,
            kind,
            order: reference.order,
            scope: reference.scope,
            bytes: u32::from(reference.bytes) * u32::from(reference.count),
            addresses: row,
            values: &values,
        });
    }
}

pub(super) fn local_read(warp: &Warp, lane: usize, address: u64, bytes: u32) -> u64 {
    let Some(own) = warp.local.get(lane) else { return 0 };
    (0..u64::from(bytes)).fold(0, |value, byte| {
        value | u64::from(own.get((address + byte) as usize).copied().unwrap_or(0)) << (8 * byte)
    })
}

pub(super) fn local_write(warp: &mut Warp, lane: usize, address: u64, bytes: u32, value: u64) {
    if warp.local.is_empty() {
        warp.local = vec![Vec::new(); 32];
    }
    let own = &mut warp.local[lane];
    let end = address as usize + bytes as usize;
    if own.len() < end {
        own.resize(end.next_multiple_of(64), 0);
    }
    own[address as usize..end].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
}
