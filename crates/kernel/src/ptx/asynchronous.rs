//! Asynchronous copies, and the mbarriers at which they arrive.

use super::writer::Writer;
use crate::program::Instruction;
use crate::program::memory::{Access, Cache, MapId};
use crate::program::operation::{Number, Operation};
use crate::program::register::{Register, Width};

impl Writer<'_> {
    pub(super) fn copy_async(&mut self, instruction: &Instruction, to: &Access, from: &Access, or_zeros: bool) {
        let mut inputs = instruction.inputs.iter().copied();
        let (write, read) = (self.place(to, &mut inputs), self.place(from, &mut inputs));
        let bytes = to.bytes();
        let level = if bytes == 16 && from.cache == Cache::NoAllocate { "cg" } else { "ca" };
        let size = match (or_zeros, inputs.next()) {
            (true, Some(predicate)) => {
                let (size, predicate) = (self.temporary(Width::Bits32), self.register(predicate));
                self.line(&format!("selp.b32 {size}, {bytes}, 0, {predicate};"));
                format!(", {size}")
            }
            _ => String::new(),
        };
        let text = format!("cp.async.{level}.shared.global {write}, {read}, {bytes}{size};");
        self.guarded(instruction.guard, &text);
    }

    pub(super) fn barrier_init(&mut self, instruction: &Instruction, access: &Access, count: u32) {
        let at = self.place(access, &mut instruction.inputs.iter().copied());
        self.guarded(instruction.guard, &format!("mbarrier.init.shared.b64 {at}, {count};"));
    }

    pub(super) fn barrier_arrive(&mut self, instruction: &Instruction, access: &Access, expect: u32) {
        let at = self.place(access, &mut instruction.inputs.iter().copied());
        let text = match expect {
            0 => format!("mbarrier.arrive.shared::cta.b64 _, {at};"),
            bytes => format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, {at}, {bytes};"),
        };
        self.guarded(instruction.guard, &text);
    }

    pub(super) fn barrier_wait(&mut self, instruction: &Instruction, access: &Access) {
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.place(access, &mut inputs);
        let parity = match inputs.next() {
            Some(parity) => self.register(parity),
            None => "0".to_string(),
        };
        let done = self.temporary(Width::Predicate);
        self.line("{");
        self.body.push_str("WAIT:\n");
        // If other blocks publish data, arrivals and waits have cluster scope.
        let given = |operation: &Operation| matches!(operation, Operation::RemoteArrive { releases: true, .. });
        let scope = if self.program.has(given) { ".acquire.cluster" } else { "" };
        self.line(&format!("mbarrier.try_wait.parity{scope}.shared::cta.b64 {done}, {at}, {parity};"));
        self.line(&format!("@!{done} bra WAIT;"));
        self.line("}");
    }

    pub(super) fn bulk_load(
        &mut self,
        instruction: &Instruction,
        map: MapId,
        (to, barrier): (&Access, &Access),
        multicast: bool,
    ) {
        let mut inputs = instruction.inputs.iter().copied();
        let (write, wait) = (self.place(to, &mut inputs), self.place(barrier, &mut inputs));
        let dimensions = self.program.map(map).dimensions.len();
        let (rank, place) = self.box_of(map, inputs.by_ref().take(dimensions));
        let (cast, mask) = match inputs.next().filter(|_| multicast) {
            Some(mask) => {
                let (mask, narrow) = (self.register(mask), self.temporary(Width::Bits16));
                self.line(&format!("cvt.u16.u32 {narrow}, {mask};"));
                (".multicast::cluster", format!(", {narrow}"))
            }
            None => ("", String::new()),
        };
        let (hint, policy) = self.hint_of(to);
        // On a target without clusters, the address is that of the block's own memory: for 12.0,
        // ptxas (13.5) uses 8 bytes of stack for the other form.
        let window = if self.target.has_clusters() { "cluster" } else { "cta" };
        if !self.target.has_clusters() {
            self.needs(8, 6);
        }
        let text = format!(
            "cp.async.bulk.tensor.{rank}d.shared::{window}.global.mbarrier::complete_tx::bytes{cast}{hint} {write}, {place}, {wait}{mask}{policy};"
        );
        self.guarded(instruction.guard, &text);
    }

    pub(super) fn bulk_send(&mut self, instruction: &Instruction, [to, barrier, from]: [&Access; 3], bytes: u32) {
        let mut inputs = instruction.inputs.iter().copied();
        let [to, barrier, from] = [to, barrier, from].map(|access| {
            let register = access.addressed.then(|| inputs.next()).flatten();
            self.shared_address(access, register)
        });
        let rank = inputs.next();
        let (to, barrier) = (self.mapped(&to, rank), self.mapped(&barrier, rank));
        let text = format!(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [{to}], [{from}], {bytes}, [{barrier}];"
        );
        self.guarded(instruction.guard, &text);
    }

    /// The cluster address, in the block with a rank, of an address that each block has.
    fn mapped(&mut self, address: &str, rank: Option<Register>) -> String {
        let rank = rank.map_or("0".to_string(), |rank| self.operand(rank, Number::U32));
        let mapped = self.temporary(Width::Bits32);
        self.line(&format!("mapa.shared::cluster.u32 {mapped}, {address}, {rank};"));
        mapped
    }

    /// The address of an access in the block whose rank is the next input after its address.
    pub(super) fn remote(&mut self, access: &Access, inputs: &mut impl Iterator<Item = Register>) -> String {
        let register = access.addressed.then(|| inputs.next()).flatten();
        let own = self.shared_address(access, register);
        let rank = inputs.next();
        self.mapped(&own, rank)
    }

    pub(super) fn remote_arrive(&mut self, instruction: &Instruction, access: &Access, releases: bool) {
        let at = self.remote(access, &mut instruction.inputs.iter().copied());
        // Without a scope if possible: the reads have finished, and a release in the cluster would
        // wait for all stores of the thread.
        let scope = if releases { ".release.cluster" } else { "" };
        self.guarded(instruction.guard, &format!("mbarrier.arrive{scope}.shared::cluster.b64 _, [{at}];"));
    }

    pub(super) fn bulk_store(&mut self, instruction: &Instruction, map: MapId, from: &Access) {
        let mut inputs = instruction.inputs.iter().copied();
        let read = self.place(from, &mut inputs);
        let (rank, place) = self.box_of(map, inputs);
        let (hint, policy) = self.hint_of(from);
        let text = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group{hint} {place}, {read}{policy};");
        self.guarded(instruction.guard, &text);
    }

    /// The cache hint of a bulk copy: its suffix, and its operand.
    fn hint_of(&mut self, shared: &Access) -> (&'static str, String) {
        if shared.cache != Cache::Streaming {
            return ("", String::new());
        }
        self.needs(7, 4);
        let policy = self.temporary(Width::Bits64);
        self.line(&format!("createpolicy.fractional.L2::evict_first.b64 {policy}, 1.0;"));
        (".L2::cache_hint", format!(", {policy}"))
    }

    /// The number of coordinates of a box, and the map with the coordinates, in brackets.
    fn box_of(&mut self, map: MapId, inputs: impl Iterator<Item = Register>) -> (usize, String) {
        let coordinates: Vec<String> = inputs.map(|input| self.operand(input, Number::I32)).collect();
        let at = self.map_address(map.index());
        (coordinates.len(), format!("[{at}, {{{}}}]", coordinates.join(", ")))
    }

    /// The generic address of a tensor map, which is a parameter.
    fn map_address(&mut self, number: usize) -> String {
        self.needs(7, 7);
        let at = self.temporary(Width::Bits64);
        self.line(&format!("mov.b64 {at}, map{number};"));
        self.line(&format!("cvta.param.u64 {at}, {at};"));
        at
    }
}
