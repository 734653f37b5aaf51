//! The memory accesses of a warp's instructions.

use super::Walk;
use crate::cost::requests::Request;
use crate::cost::stores::Stored;
use crate::interpret::counts::Class;
use crate::interpret::lanes::lanes as lanes_of;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::memory::{Access, Space};
use crate::program::operation::Operation;
use crate::program::register::Register;

/// Bytes of a row of a matrix.
const ROW: u32 = 16;

/// Bytes of a sector of global memory.
const SECTOR: u32 = 32;

/// An address of each lane.
type Addresses = [i64; WARP_LANES];

impl Walk<'_> {
    /// Whether a load claims indices of the tile counter whose values are known; they are then
    /// assigned. Clusters claim them in rotation, as if all iterations took the same time.
    pub(super) fn draws(&mut self, access: &Access, instruction: &Instruction) -> bool {
        let Some(counter) = self.program.tile_counter.filter(|counter| counter.numbers == access.buffer) else {
            return false;
        };
        if !self.is_known(counter.count) {
            return false;
        }
        let end = self.registers[counter.count.index()][0];
        let (own, clusters) = self.cluster();
        for (at, output) in (0..).zip(&instruction.outputs) {
            let number = self.claimed.saturating_add(at).saturating_mul(clusters).saturating_add(own);
            self.registers[output.index()] = [number.min(end); WARP_LANES];
            self.known[output.index()] = true;
        }
        self.claimed += if self.claimed == 0 { u64::from(counter.first) } else { 1 };
        true
    }

    /// Whether a load asks how many blocks were counted before its own. If so, assigns the index of
    /// its block in the grid.
    pub(super) fn counts_blocks(&mut self, access: &Access, instruction: &Instruction) -> bool {
        if self.program.counted != Some(access.buffer) {
            return false;
        }
        let [x, y, z] = self.block.map(u64::from);
        let [columns, rows, _] = self.grid.map(u64::from);
        let before = x + columns * (y + rows * z);
        for output in &instruction.outputs {
            self.registers[output.index()] = [before & u64::from(u32::MAX); WARP_LANES];
            self.known[output.index()] = true;
        }
        true
    }

    /// Counts the memory accesses of an instruction with these lanes.
    pub(super) fn accesses(&mut self, place: usize, instruction: &Instruction, mask: u32) {
        let guard = instruction.guard;
        let mut active = guard.filter(|guard| self.is_known(*guard)).map_or(mask, |guard| mask & self.holds(guard));
        let mut open = guard.is_some_and(|guard| !self.is_known(guard));
        let mut inputs = instruction.inputs.iter().copied();
        for (which, access) in instruction.operation.accesses().enumerate() {
            let address = access.addressed.then(|| inputs.next()).flatten();
            let mut own = active;
            let bytes = match &instruction.operation {
                Operation::LoadMatrix { .. } | Operation::StoreMatrix { .. } => {
                    // The lanes that supply row addresses.
                    active &= ((1_u64 << (8 * access.count.min(4))) - 1) as u32;
                    own = active;
                    ROW
                }
                Operation::CopyAsync { or_zeros: true, .. } if which == 1 => {
                    // If the last register is false, nothing is read.
                    if let Some(copied) = inputs.clone().next() {
                        match self.is_known(copied) {
                            true => own &= self.holds(copied),
                            false => open = true,
                        }
                    }
                    access.bytes()
                }
                Operation::Load(_)
                | Operation::Store(_)
                | Operation::RemoteLoad(_)
                | Operation::RemoteStore(_)
                | Operation::RemoteReduce(..)
                | Operation::Atomic(..)
                | Operation::Reduce(..)
                | Operation::CopyAsync { .. } => access.bytes(),
                operation => {
                    let next = inputs.clone().next();
                    self.bulk_access((place, which), operation, (access, address), next, own);
                    continue;
                }
            };
            open |= !self.lanes_access((place, which), instruction, (access, address), (own, open), bytes);
            if matches!(instruction.operation, Operation::Store(_)) {
                self.store((access, address), own, (bytes, open));
            }
        }
        self.sums.taken[place].at_most |= open;
    }

    /// Counts one access of an instruction by which lanes issue bulk copies or wait for them.
    /// `next` is the register after the address.
    fn bulk_access(
        &mut self,
        (place, which): (usize, usize),
        operation: &Operation,
        (access, address): (&Access, Option<Register>),
        next: Option<Register>,
        lanes: u32,
    ) {
        let bytes = match operation {
            Operation::BulkLoad { map, .. } | Operation::BulkStore { map, .. } if which == 0 => {
                // Each lane issues a box.
                let bytes = u64::from(self.program.map(*map).box_bytes(self.program));
                if let Operation::BulkLoad { barrier, .. } = operation {
                    let arrives = next.filter(|_| barrier.addressed);
                    self.boxes((access, address), (barrier, arrives), lanes, bytes);
                }
                bytes
            }
            Operation::BulkSend { bytes, .. } if which == 0 => u64::from(*bytes),
            Operation::BarrierWait { .. } => return self.waits_at(access, address, lanes),
            // Other mbarriers, and operands of wgmma.
            _ => return,
        };
        let tally = &mut self.sums.taken[place].of[0];
        tally.requests += 1;
        tally.bytes = tally.bytes.saturating_add(bytes.saturating_mul(lanes.count_ones().into()));
    }

    /// Counts one access of `bytes` bytes in each lane. `mask` may include lanes of which it is
    /// unknown whether they take part. Returns whether all addresses are known.
    fn lanes_access(
        &mut self,
        (place, which): (usize, usize),
        instruction: &Instruction,
        (access, address): (&Access, Option<Register>),
        (lanes, open): (u32, bool),
        bytes: u32,
    ) -> bool {
        let space = self.program.buffer(access.buffer).space;
        let known = address.is_none_or(|address| self.is_known(address));
        let addresses = if known { self.addresses(access, address) } else { apart() };
        if let Some(asked) = self.asked.as_mut().filter(|_| known && lanes != 0) {
            let lanes = (0..WARP_LANES as u32).filter(|lane| lanes >> lane & 1 == 1);
            asked.entry((place, which)).or_insert_with(|| Request {
                source: *self.program.source(instruction.source),
                class: Class::of(&instruction.operation),
                buffer: self.program.buffer(access.buffer).name.clone(),
                space,
                bytes,
                lanes: lanes.map(|lane| (lane, addresses[lane as usize])).collect(),
            });
        }
        let tally = &mut self.sums.taken[place].of[which];
        let before = tally.sectors;
        match space {
            Space::Global => tally.global(lanes, &addresses, bytes),
            Space::Shared => tally.shared(lanes, &addresses, bytes),
        }
        let brought = (tally.sectors - before) * u64::from(SECTOR);
        if let Some(sectors) =
            self.sectors.as_mut().filter(|_| known && !open && self.unsure == 0 && space == Space::Global)
        {
            sectors[access.buffer.index()].touch(lanes, &addresses, bytes);
        }
        match &instruction.operation {
            Operation::Load(_) => self.under_way.load(&instruction.outputs, brought),
            Operation::CopyAsync { .. } => self.under_way.copy(brought),
            _ => {}
        }
        known
    }

    /// Lists the stores of lanes, if they are to the tensor whose stores are wanted. Some of them
    /// may be unknown.
    fn store(&mut self, (access, address): (&Access, Option<Register>), lanes: u32, (bytes, open): (u32, bool)) {
        if self.stores.as_ref().is_none_or(|stores| stores.to != access.buffer) {
            return;
        }
        let (addresses, first) = (self.addresses(access, address), (self.warp * WARP_LANES) as u64);
        if let Some(stores) = &mut self.stores {
            stores.known &= !open;
            let each = lanes_of(lanes).map(|lane| (first + lane as u64, addresses[lane]));
            stores.list.extend(each.map(|(thread, at)| Stored { thread, at, bytes }));
        }
    }

    /// Records boxes that lanes load: their destinations, and the mbarrier at which they arrive.
    fn boxes(&mut self, to: (&Access, Option<Register>), barrier: (&Access, Option<Register>), lanes: u32, bytes: u64) {
        let known = [to.1, barrier.1].into_iter().flatten().all(|address| self.is_known(address));
        self.boxes_known &= known;
        if known {
            let (places, barriers) = (self.addresses(to.0, to.1), self.addresses(barrier.0, barrier.1));
            lanes_of(lanes).for_each(|lane| self.under_way.load_box(places[lane], barriers[lane], bytes));
        }
    }

    fn waits_at(&mut self, barrier: &Access, address: Option<Register>, lanes: u32) {
        // If the mbarrier is unknown, the wait is ignored.
        if address.is_none_or(|address| self.is_known(address)) {
            let barriers = self.addresses(barrier, address);
            lanes_of(lanes).for_each(|lane| self.under_way.wait_at(barriers[lane]));
        }
    }

    fn addresses(&self, access: &Access, register: Option<Register>) -> Addresses {
        let buffer = self.program.buffer(access.buffer);
        let offset = access.offset.wrapping_add(buffer.start.into());
        let Some(register) = register else { return [offset; WARP_LANES] };
        let wide = buffer.space == Space::Global;
        let extended = |value: u64| if wide { value as i64 } else { i64::from(value as u32 as i32) };
        self.registers[register.index()].map(|value| extended(value).wrapping_add(offset))
    }
}

/// Addresses for the worst case: no common sector, and all words in one bank.
fn apart() -> Addresses {
    std::array::from_fn(|lane| lane as i64 * 4096)
}

#[cfg(test)]
mod tests {
    use super::apart;
    use crate::interpret::counts::Tally;

    #[test]
    fn the_worst_addresses_are_the_worst() {
        for bytes in [4, 8, 16] {
            let (mut shared, mut global) = (Tally::default(), Tally::default());
            shared.shared(u32::MAX, &apart(), bytes);
            global.global(u32::MAX, &apart(), bytes);
            assert_eq!((shared.wavefronts, global.sectors, global.lines), (32, 32, 32));
        }
    }
}
