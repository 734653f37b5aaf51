//! What instructions of a warp take of memory.

use super::Walk;
use crate::cost::requests::Request;
use crate::interpret::counts::Class;
use crate::interpret::lanes::{LANES, lanes as lanes_of};
use crate::program::Instruction;
use crate::program::memory::{Access, Space};
use crate::program::operation::Operation;
use crate::program::register::Register;

/// Bytes of a row of a matrix.
const ROW: u32 = 16;

/// Bytes of a sector of global memory.
const SECTOR: u32 = 32;

/// An address of each lane.
type Addresses = [i64; LANES];

impl Walk<'_> {
    /// What threads read of numbers that are dealt: each cluster has every so many, as if all took
    /// the same time. Whether it is such a load, whose numbers are known.
    pub(super) fn dealt(&mut self, access: &Access, instruction: &Instruction) -> bool {
        let Some(dealt) = self.program.dealt.filter(|dealt| dealt.numbers == access.buffer) else { return false };
        if !self.is_known(dealt.count) {
            return false;
        }
        let end = self.registers[dealt.count.index()][0];
        let (own, clusters) = self.cluster();
        for (at, output) in (0..).zip(&instruction.outputs) {
            let number = self.drawn.saturating_add(at).saturating_mul(clusters).saturating_add(own);
            self.registers[output.index()] = [number.min(end); LANES];
            self.known[output.index()] = true;
        }
        self.drawn += if self.drawn == 0 { u64::from(dealt.first) } else { 1 };
        true
    }

    /// What threads read of the number of blocks that came before theirs: those before it in the
    /// grid. Whether it is such a load.
    pub(super) fn counted(&mut self, access: &Access, instruction: &Instruction) -> bool {
        if self.program.counted != Some(access.buffer) {
            return false;
        }
        let [x, y, z] = self.block.map(u64::from);
        let [columns, rows, _] = self.grid.map(u64::from);
        let before = x + columns * (y + rows * z);
        for output in &instruction.outputs {
            self.registers[output.index()] = [before & u64::from(u32::MAX); LANES];
            self.known[output.index()] = true;
        }
        true
    }

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
                    // The lanes that name rows.
                    active &= ((1_u64 << (8 * access.count.min(4))) - 1) as u32;
                    own = active;
                    ROW
                }
                Operation::CopyAsync { or_zeros: true, .. } if which == 1 => {
                    // Where the last register is false nothing is read.
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
                Operation::BulkLoad { map, .. } | Operation::BulkStore { map, .. } if which == 0 => {
                    // Each lane has the copy engine move a box.
                    let bytes = u64::from(self.program.map(*map).box_bytes(self.program));
                    if let Operation::BulkLoad { barrier, .. } = &instruction.operation {
                        let arrives = barrier.addressed.then(|| inputs.clone().next()).flatten();
                        self.boxes((access, address), (barrier, arrives), own, bytes);
                    }
                    let tally = &mut self.sums.taken[place].of[0];
                    tally.requests += 1;
                    tally.bytes = tally.bytes.saturating_add(bytes.saturating_mul(own.count_ones().into()));
                    continue;
                }
                Operation::BulkSend { bytes, .. } if which == 0 => {
                    let tally = &mut self.sums.taken[place].of[0];
                    tally.requests += 1;
                    tally.bytes = tally.bytes.saturating_add(u64::from(own.count_ones() * bytes));
                    continue;
                }
                Operation::BarrierWait { .. } => {
                    self.waits_at(access, address, own);
                    continue;
                }
                // Other barriers in memory, and what matrix instructions of four warps read.
                _ => continue,
            };
            let space = self.program.buffer(access.buffer).space;
            let addresses = match address {
                Some(register) if !self.is_known(register) => {
                    open = true;
                    None
                }
                register => Some(self.addresses(access, register)),
            };
            if let (Some(asked), Some(addresses), true) = (&mut self.asked, &addresses, own != 0) {
                let lanes = (0..LANES as u32).filter(|lane| own >> lane & 1 == 1);
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
            match (addresses, space) {
                (Some(addresses), Space::Global) => tally.global(own, &addresses, bytes),
                (Some(addresses), Space::Shared) => tally.shared(own, &addresses, bytes),
                (None, Space::Global) => tally.global(own, &apart(), bytes),
                (None, Space::Shared) => tally.shared(own, &apart(), bytes),
            }
            let brought = (tally.sectors - before) * u64::from(SECTOR);
            match &instruction.operation {
                Operation::Load(_) => self.under_way.load(&instruction.outputs, brought),
                Operation::CopyAsync { .. } => self.under_way.copy(brought),
                _ => {}
            }
        }
        self.sums.taken[place].at_most |= open;
    }

    /// Boxes that lanes load: where they go, and the barrier at which they arrive.
    fn boxes(&mut self, to: (&Access, Option<Register>), barrier: (&Access, Option<Register>), lanes: u32, bytes: u64) {
        let known = [to.1, barrier.1].into_iter().flatten().all(|address| self.is_known(address));
        self.boxes_known &= known;
        if known {
            let (places, barriers) = (self.addresses(to.0, to.1), self.addresses(barrier.0, barrier.1));
            lanes_of(lanes).for_each(|lane| self.under_way.load_box(places[lane], barriers[lane], bytes));
        }
    }

    fn waits_at(&mut self, barrier: &Access, address: Option<Register>, lanes: u32) {
        // Where it waits is not known: then for nothing.
        if address.is_none_or(|address| self.is_known(address)) {
            let barriers = self.addresses(barrier, address);
            lanes_of(lanes).for_each(|lane| self.under_way.wait_at(barriers[lane]));
        }
    }

    fn addresses(&self, access: &Access, register: Option<Register>) -> Addresses {
        let buffer = self.program.buffer(access.buffer);
        let offset = access.offset.wrapping_add(buffer.start.into());
        let Some(register) = register else { return [offset; LANES] };
        let wide = buffer.space == Space::Global;
        let extended = |value: u64| if wide { value as i64 } else { i64::from(value as u32 as i32) };
        self.registers[register.index()].map(|value| extended(value).wrapping_add(offset))
    }
}

/// Addresses that have nothing in common, and all their words in one bank: the worst.
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
