//! The bytes of global memory that a warp has in flight: see [`InFlight`](crate::cost::InFlight).
//!
//! Law: bytes are added when a load or a copy is issued, and subtracted when the warp waits for it,
//! in the order of the walk.

use std::collections::{BTreeMap, HashMap, VecDeque};

use smallvec::SmallVec;

use crate::program::Instruction;
use crate::program::operation::Operation;
use crate::program::register::Register;

/// A load, identified by its number.
type LoadNumber = u64;
/// The loads that a register depends on.
type Numbers = SmallVec<[LoadNumber; 2]>;

/// A load whose registers have not been read yet.
#[derive(Debug, Clone, Copy)]
struct Loading {
    bytes: u64,
    /// The number of registers that hold a part of it.
    held: u32,
}

/// The bytes that one warp has in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct UnderWay {
    /// The loads that each register depends on.
    sources: Vec<Numbers>,
    loads: HashMap<LoadNumber, Loading>,
    next: LoadNumber,
    /// Asynchronous copies, in bytes: since the last group, and in each group.
    open: u64,
    groups: VecDeque<u64>,
    /// Boxes, by their destination: the mbarrier at which they arrive, and the number of bytes.
    boxes: BTreeMap<i64, (i64, u64)>,
    now: u64,
    /// The maximum so far.
    most: u64,
}

impl UnderWay {
    pub(super) fn of(registers: usize) -> UnderWay {
        UnderWay { sources: vec![Numbers::new(); registers], ..UnderWay::default() }
    }

    /// The maximum for the warp.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// The current number of bytes.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Iterations of a loop are skipped. Boxes then have other destinations, so the earlier ones
    /// count as arrived.
    pub(super) fn pass_over(&mut self) {
        self.now -= self.boxes.values().map(|(_, bytes)| *bytes).sum::<u64>();
        self.boxes.clear();
    }

    /// Begins another warp.
    pub(super) fn begin(&mut self) {
        self.sources.iter_mut().for_each(Numbers::clear);
        self.loads.clear();
        self.boxes.clear();
        self.groups.clear();
        (self.open, self.now, self.most) = (0, 0, 0);
    }

    /// Before an instruction loads or copies, it waits for the loads whose registers it reads.
    pub(super) fn executes(&mut self, instruction: &Instruction) {
        let Instruction { operation, inputs, outputs, guard, .. } = instruction;
        match operation {
            Operation::Pack | Operation::Unpack => {
                return self.rename(outputs.iter().map(|output| (inputs.as_slice(), *output)));
            }
            Operation::Move => {
                return self.rename(inputs.chunks(1).zip(outputs.iter().copied()));
            }
            Operation::CommitAsync => self.commit(),
            Operation::WaitAsync(groups) => self.wait(*groups),
            _ => {}
        }
        inputs.iter().chain(guard).for_each(|input| self.read(*input));
        outputs.iter().for_each(|output| self.release(*output));
    }

    fn more(&mut self, bytes: u64) {
        self.now = self.now.saturating_add(bytes);
        self.most = self.most.max(self.now);
    }

    /// Records a load into registers.
    pub(super) fn load(&mut self, outputs: &[Register], bytes: u64) {
        if outputs.is_empty() || bytes == 0 {
            return;
        }
        self.next += 1;
        self.loads.insert(self.next, Loading { bytes, held: outputs.len() as u32 });
        for output in outputs {
            self.sources[output.index()].push(self.next);
        }
        self.more(bytes);
    }

    /// Records that a register is read.
    pub(super) fn read(&mut self, register: Register) {
        for number in std::mem::take(&mut self.sources[register.index()]) {
            if let Some(load) = self.loads.remove(&number) {
                self.now -= load.bytes;
            }
        }
    }

    /// Renames registers: each of these registers gets the loads of others, all at the same time,
    /// without a wait.
    pub(super) fn rename<'r>(&mut self, values: impl Iterator<Item = (&'r [Register], Register)>) {
        let mut renamed: SmallVec<[(Register, Numbers); 4]> = SmallVec::new();
        for (from, to) in values {
            let mut numbers = Numbers::new();
            for number in from.iter().flat_map(|from| &self.sources[from.index()]) {
                if let Some(load) = self.loads.get_mut(number)
                    && !numbers.contains(number)
                {
                    load.held += 1;
                    numbers.push(*number);
                }
            }
            renamed.push((to, numbers));
        }
        for (to, numbers) in renamed {
            self.release(to);
            self.sources[to.index()] = numbers;
        }
    }

    /// A register is overwritten. Loads that no other register depends on count as arrived.
    fn release(&mut self, register: Register) {
        for number in std::mem::take(&mut self.sources[register.index()]) {
            let Some(load) = self.loads.get_mut(&number) else { continue };
            load.held -= 1;
            if load.held == 0 {
                self.now -= load.bytes;
                self.loads.remove(&number);
            }
        }
    }

    /// Records an asynchronous copy.
    pub(super) fn copy(&mut self, bytes: u64) {
        self.open += bytes;
        self.more(bytes);
    }

    /// Closes a group of the copies since the last one.
    fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.open));
    }

    /// Waits until this many groups are in flight.
    fn wait(&mut self, groups: u32) {
        while self.groups.len() > groups as usize {
            self.now -= self.groups.pop_front().unwrap_or(0);
        }
    }

    /// Records a box to a place in shared memory. An earlier box to this place has arrived.
    pub(super) fn load_box(&mut self, place: i64, barrier: i64, bytes: u64) {
        if let Some((_, before)) = self.boxes.insert(place, (barrier, bytes)) {
            self.now -= before;
        }
        self.more(bytes);
    }

    /// Records a wait at an mbarrier.
    pub(super) fn wait_at(&mut self, barrier: i64) {
        let now = &mut self.now;
        self.boxes.retain(|_, (own, bytes)| {
            if *own == barrier {
                *now -= *bytes;
            }
            *own != barrier
        });
    }
}
