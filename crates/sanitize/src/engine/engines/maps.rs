//! Tensor maps in memory: the maps that copies read, and the maps that kernels modify.

use super::copies::BoxPlace;
use super::{Executes, lanes_of};
use crate::check::checker::{Access, Fence, Kind, Order, Scope, Space, Span, Values};
use crate::engine::access::Side;
use crate::engine::cluster::{Cluster, Stop};
use crate::engine::code::{Reference, Source};
use crate::isa::tensor_map::{MAP_BYTES, MapField, TensorMap, Walk};

/// The number of bytes of a map in one report to the checker.
const PART: usize = 32;

/// A part of a map that is written: the new bytes and the old bytes.
struct Part([u8; PART], [u8; PART]);

impl Values for Part {
    fn written(&self, _: usize) -> Option<[u8; PART]> {
        Some(self.0)
    }

    fn held(&self, _: usize) -> [u8; PART] {
        self.1
    }
}

impl Cluster<'_> {
    /// The tensor map that a lane passes.
    pub(super) fn map(
        &mut self,
        by: &Executes<'_>,
        (map, .., is_im2col): BoxPlace<'_>,
        lane: usize,
        dimensions: usize,
    ) -> Result<TensorMap, Stop> {
        let refused = |why: &str| Stop::Refused(by.at, why.to_string());
        let address = self.addresses(by.warp, by.fragment.frame, by.code, map)[lane];
        let (side, offset) = self.side(by.block, map.window, address);
        let mut bytes = [0; MAP_BYTES];
        let parameters = self.grid.parameters.bytes();
        match side {
            Side::Parameters => self.grid.parameters.read_into(offset, &mut bytes),
            // The name of a parameter stands for its address among the parameters.
            Side::Global if offset < parameters => self.grid.parameters.read_into(offset, &mut bytes),
            Side::Global => match self.grid.memory.find(offset, &mut self.near) {
                Some(region) => {
                    region.words.read_into(offset - region.address, &mut bytes);
                    // The host has written the map, or a kernel has. If a kernel has, a
                    // synchronisation with this thread is necessary.
                    if !region.is_read_only {
                        let lanes = self.lane(by, lane);
                        let map = Span { space: Space::Global, address: offset, bytes: MAP_BYTES as u32 };
                        self.check.map_read(lanes, by.at, map);
                    }
                }
                None => return Err(refused("the address of the tensor map is none of the launch's memory")),
            },
            _ => return Err(refused("a tensor map lies in global memory or among the parameters")),
        }
        let map = TensorMap::of_bytes(&bytes).ok_or_else(|| {
            refused("the tensor map is none that the launch has made: an argument `map:..` makes one")
        })?;
        if map.rank != dimensions {
            return Err(refused(&format!("the tensor map has {} dimensions, the instruction {dimensions}", map.rank)));
        }
        if matches!(map.walk, Walk::Im2col { .. }) != is_im2col {
            return Err(refused("one of the tensor map and the instruction is tiled, the other im2col"));
        }
        Ok(map)
    }

    /// Reports that a lane reads or writes a map. `bytes` are the bytes that it writes.
    #[allow(clippy::too_many_arguments)]
    fn tell_map(
        &mut self,
        by: &Executes<'_>,
        lane: usize,
        side: Side,
        address: u64,
        kind: Kind,
        bytes: &[u8; MAP_BYTES],
    ) {
        let space = match side {
            Side::Global => Space::Global,
            Side::Shared(rank) => Space::Shared { rank },
            _ => return,
        };
        let held = self.map_bytes(side, address);
        let lanes = self.lane(by, lane);
        for start in (0..MAP_BYTES).step_by(PART) {
            let part = |all: &[u8; MAP_BYTES]| std::array::from_fn(|byte| all[start + byte]);
            let mut addresses = [0; 32];
            addresses[lane] = address + start as u64;
            self.check.access(&Access {
                by: lanes,
                at: by.at,
                space,
                kind,
                order: Order::Weak,
                scope: Scope::Device,
                bytes: PART as u32,
                addresses: &addresses,
                values: &Part(part(bytes), part(&held)),
            });
        }
    }

    /// The bytes of a map that is inside of its memory.
    fn map_bytes(&mut self, side: Side, address: u64) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        match side {
            Side::Shared(rank) => self.blocks[rank as usize].shared.read_into(address, &mut bytes),
            _ => {
                if let Some(region) = self.grid.memory.find(address, &mut self.near) {
                    region.words.read_into(address - region.address, &mut bytes);
                }
            }
        }
        bytes
    }

    fn put_map(&mut self, side: Side, address: u64, bytes: &[u8; MAP_BYTES]) {
        match side {
            Side::Shared(rank) => self.blocks[rank as usize].shared.write_from(address, bytes, true),
            _ => {
                if let Some(region) = self.grid.memory.find(address, &mut self.near) {
                    region.words.write_from(address - region.address, bytes, self.grid.alone);
                }
            }
        }
        self.tell_news();
    }

    /// `tensormap.replace`: replaces one field of a map in shared or global memory.
    pub(super) fn replace_map(
        &mut self,
        by: &Executes<'_>,
        at: &Reference,
        field: MapField,
        value: Source,
    ) -> Result<(), Stop> {
        let values = *by.row(value);
        let size = (MAP_BYTES as u64, MAP_BYTES as u64);
        for lane in lanes_of(by.active) {
            let Some((side, address)) = self.spot(by, at, lane, size, true) else { continue };
            if !matches!(side, Side::Global | Side::Shared(_)) {
                return Err(Stop::Refused(by.at, "a tensor map lies in global or shared memory".to_string()));
            }
            let old = self.map_bytes(side, address);
            let new = TensorMap::replaced(&old, field, values[lane]).map_err(|why| Stop::Refused(by.at, why))?;
            self.tell_map(by, lane, side, address, Kind::Read, &old);
            self.tell_map(by, lane, side, address, Kind::Write, &new);
            self.put_map(side, address, &new);
        }
        Ok(())
    }

    /// `tensormap.cp_fenceproxy`: the warp copies a map from shared to global memory and publishes
    /// it. The first lane stands for all.
    pub(super) fn publish_map(&mut self, by: &Executes<'_>, to: &Reference, from: &Reference) {
        let size = (MAP_BYTES as u64, MAP_BYTES as u64);
        let Some(lane) = lanes_of(by.active).next() else { return };
        let Some((source, read)) = self.spot(by, from, lane, size, false) else { return };
        let Some((target, written)) = self.spot(by, to, lane, size, true) else { return };
        let bytes = self.map_bytes(source, read);
        self.tell_map(by, lane, source, read, Kind::Read, &bytes);
        self.tell_map(by, lane, target, written, Kind::Write, &bytes);
        self.put_map(target, written, &bytes);
        let lanes = self.lanes(by.block, by.warp, by.active);
        self.check.fence(lanes, Fence::Memory(to.scope));
    }
}
