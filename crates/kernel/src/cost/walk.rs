//! What the warps of a block execute, without memory.
//!
//! Law: addresses and predicates are computed as the interpreter computes them, wherever they
//! follow from the numbers of threads, blocks and turns and from what the launch passes. What comes
//! from memory is not known. An access whose address or predicate is not known is counted as the
//! most that it can take, and marked; a loop of unknown length ends the walk.
//!
//! Turns of a loop that do the same are multiplied: where what a loop carries grows by the same in
//! each of its last periods, whole periods are passed over, and counted as the last ones were.
//!
//! Memory orders nothing here, so warps go one after another. A condition that is not known goes
//! both ways, with all lanes.

use std::collections::BTreeMap;

use super::Uncounted;
use super::requests::Request;
use crate::interpret::code::{Choice, Code, Node, Turns};
use crate::interpret::compute::compute;
use crate::interpret::counts::{Class, Tally};
use crate::interpret::lanes::{LANES, Lanes, low, signed};
use crate::program::memory::{Access, Space};
use crate::program::operation::{Operation, Special};
use crate::program::register::Register;
use crate::program::{Instruction, Program};

/// Bytes of a row of a matrix.
const ROW: u32 = 16;

/// Turns of a loop before some are passed over, and how many there are in a long loop at least.
const TURNS: u64 = 32;
const LONG: u64 = 4 * TURNS;
/// The longest period of what a loop carries.
const PERIOD: usize = 12;

/// What one instruction took of its memories, and whether that is the most that it can take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) of: [Tally; 2],
    pub(super) at_most: bool,
}

/// Sums over the blocks that were walked.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    /// Of each node of the program.
    pub(super) taken: Vec<Taken>,
    /// How often warps executed each node.
    pub(super) executed: Vec<u64>,
    /// Nodes, of all warps.
    pub(super) steps: u64,
    /// Whether a condition was not known, so that both sides were walked.
    pub(super) both_sides: bool,
    /// Whether turns of a loop were multiplied.
    pub(super) multiplied: bool,
}

impl Sums {
    /// Adds what was counted since an earlier state of the nodes from a number on, times `turns`
    /// over `of`.
    fn multiply(&mut self, from: usize, before: &Sums, turns: u64, of: u64) {
        let more = |now: u64, before: u64| {
            let more = u128::from(now - before) * u128::from(turns) / u128::from(of.max(1));
            now.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
        };
        self.multiplied = true;
        self.steps = more(self.steps, before.steps);
        for (now, before) in self.executed[from..].iter_mut().zip(&before.executed) {
            *now = more(*now, *before);
        }
        for (now, before) in self.taken[from..].iter_mut().zip(&before.taken) {
            for (now, before) in now.of.iter_mut().zip(before.of) {
                for (now, before) in now.fields().into_iter().zip(before.clone().fields()) {
                    *now = more(*now, *before);
                }
            }
        }
    }

    /// The sums of some nodes, as they are now.
    fn part(&self, from: usize, to: usize) -> Sums {
        let (taken, executed) = (self.taken[from..to].to_vec(), self.executed[from..to].to_vec());
        Sums { taken, executed, ..*self }
    }
}

/// A walk through blocks of a grid.
pub(super) struct Walk<'a> {
    program: &'a Program,
    code: &'a Code<'a>,
    grid: [u32; 3],
    scalars: &'a [Option<u64>],
    block: [u32; 3],
    warp: usize,
    /// How many numbers of the count the cluster has had.
    drawn: u64,
    registers: Vec<Lanes>,
    known: Vec<bool>,
    pub(super) sums: Sums,
    /// Nodes that were walked, and how many there may be.
    walked: u64,
    limit: u64,
    multiplies: bool,
    /// What lanes reached, of each node the first time; none where nobody asks.
    asked: Option<BTreeMap<(usize, usize), Request>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        program: &'a Program,
        code: &'a Code<'a>,
        grid: [u32; 3],
        scalars: &'a [Option<u64>],
        limit: u64,
    ) -> Walk<'a> {
        let count = program.widths.len();
        let nodes = code.nodes.len();
        let sums = Sums {
            taken: vec![Taken::default(); nodes],
            executed: vec![0; nodes],
            steps: 0,
            both_sides: false,
            multiplied: false,
        };
        let (registers, known) = (vec![[0; LANES]; count], vec![false; count]);
        Walk {
            program,
            code,
            grid,
            scalars,
            block: [0; 3],
            warp: 0,
            drawn: 0,
            registers,
            known,
            sums,
            walked: 0,
            limit,
            multiplies: false,
            asked: None,
        }
    }

    /// The walk that keeps what lanes reach.
    pub(super) fn asking(self) -> Walk<'a> {
        Walk { asked: Some(BTreeMap::new()), ..self }
    }

    /// What lanes reached, in the order of the program.
    pub(super) fn requests(self) -> Vec<Request> {
        self.asked.into_iter().flatten().map(|(_, request)| request).collect()
    }

    /// The walk that passes over turns of long loops.
    pub(super) fn multiplying(self) -> Walk<'a> {
        Walk { multiplies: true, ..self }
    }

    /// All warps of a block.
    pub(super) fn block(&mut self, block: [u32; 3]) -> Result<(), Uncounted> {
        (0..self.program.threads.div_ceil(32)).try_for_each(|warp| self.warp(block, warp))
    }

    /// One warp of a block.
    pub(super) fn warp(&mut self, block: [u32; 3], warp: u32) -> Result<(), Uncounted> {
        (self.block, self.warp, self.drawn) = (block, warp as usize, 0);
        let here = (self.program.threads - 32 * warp).min(32);
        let exists = ((1_u64 << here) - 1) as u32;
        self.range(0, self.code.nodes.len(), exists)
    }

    /// The nodes from one to before another, with these lanes.
    fn range(&mut self, from: usize, to: usize, mask: u32) -> Result<(), Uncounted> {
        let code = self.code;
        let mut place = from;
        while place < to {
            self.sums.steps = self.sums.steps.saturating_add(1);
            self.walked += 1;
            if self.walked > self.limit {
                return Err(Uncounted::Steps { limit: self.limit });
            }
            self.sums.executed[place] = self.sums.executed[place].saturating_add(1);
            place = match code.nodes[place] {
                Node::Instruction(instruction) => {
                    self.instruction(place, instruction, mask);
                    place + 1
                }
                Node::LoopStart(number) => self.turns(&code.loops[number], mask)?,
                Node::BranchStart(number) => self.choice(&code.choices[number], mask)?,
                Node::LoopEnd(_) | Node::BranchMiddle(_) | Node::BranchEnd(_) => place + 1,
            };
        }
        Ok(())
    }

    fn set(&mut self, to: Register, from: Register) {
        self.known[to.index()] = self.is_known(from);
        if self.is_known(from) {
            self.registers[to.index()] = self.registers[from.index()];
        }
    }

    fn is_known(&self, register: Register) -> bool {
        self.known[register.index()]
    }

    /// The lanes in which a predicate is true.
    fn holds(&self, predicate: Register) -> u32 {
        let bit = |(lane, value): (usize, &u64)| u32::from(*value & 1 == 1) << lane;
        self.registers[predicate.index()].iter().enumerate().map(bit).sum()
    }

    fn turns(&mut self, turns: &Turns<'_>, mask: u32) -> Result<usize, Uncounted> {
        let step = turns.step;
        if !self.is_known(step.from) || !self.is_known(step.to) {
            return Err(Uncounted::Loop { source: *self.program.source(step.source) });
        }
        let lane = mask.trailing_zeros() as usize % LANES;
        let number = |register: Register| signed(self.registers[register.index()][lane], 32);
        let (from, to) = (number(step.from), number(step.to));
        for carried in &step.carried {
            self.set(carried.current, carried.initial);
        }
        let each = i64::from(step.step.max(1));
        let mut all = u64::try_from((to - from).max(0)).unwrap_or(0).div_ceil(each.unsigned_abs());
        if step.until.is_some() {
            // Of numbers that are dealt in turn.
            let (own, clusters) = self.cluster();
            all = all.saturating_sub(own).div_ceil(clusters);
        }
        let to = from.saturating_add(i64::try_from(all).unwrap_or(i64::MAX).saturating_mul(each));
        let mut states: Vec<Vec<Option<Lanes>>> = Vec::new();
        let mut sums: Vec<Sums> = Vec::new();
        let (mut index, mut turn) = (from, 0_u64);
        while index < to {
            self.registers[step.index.index()] = [index as u64 & 0xffff_ffff; LANES];
            self.known[step.index.index()] = true;
            self.range(turns.start + 1, turns.end, mask)?;
            // A parallel assignment: the next value of one variable may be the current value of
            // another.
            let value = |next: Register| self.is_known(next).then(|| self.registers[next.index()]);
            let next: Vec<Option<Lanes>> = step.carried.iter().map(|carried| value(carried.next)).collect();
            for (carried, next) in step.carried.iter().zip(&next) {
                self.known[carried.current.index()] = next.is_some();
                if let Some(next) = next {
                    self.registers[carried.current.index()] = *next;
                }
            }
            index += each;
            turn += 1;
            if !self.multiplies || all < LONG || turn > TURNS {
                continue;
            }
            states.push(next);
            if turn >= TURNS / 2 {
                sums.push(self.sums.part(turns.start + 1, turns.end));
            }
            if turn < TURNS {
                continue;
            }
            let widths: Vec<u32> =
                step.carried.iter().map(|carried| self.program.widths[carried.current.index()].bits()).collect();
            let Some((period, growth)) = growth(&states, &widths) else { continue };
            // The last turns are walked again: they may meet an edge.
            let periods = (all - TURNS - TURNS / 2) / period as u64;
            let whole = sums.len() - 1 - (sums.len() - 1) % period;
            let before = &sums[sums.len() - 1 - whole];
            self.sums.multiply(turns.start + 1, before, periods * period as u64, whole as u64);
            index += (periods * period as u64) as i64 * each;
            self.drawn = self.drawn.saturating_add(periods * period as u64);
            for ((carried, growth), bits) in step.carried.iter().zip(&growth).zip(&widths) {
                let register = &mut self.registers[carried.current.index()];
                for (value, growth) in register.iter_mut().zip(growth) {
                    *value = value.wrapping_add(growth.wrapping_mul(periods)) & low(*bits);
                }
            }
        }
        for carried in &step.carried {
            self.set(carried.result, carried.current);
        }
        Ok(turns.end + 1)
    }

    fn choice(&mut self, choice: &Choice<'_>, mask: u32) -> Result<usize, Uncounted> {
        let known = self.is_known(choice.step.condition);
        let then = if known { self.holds(choice.step.condition) } else { u32::MAX };
        let otherwise = if known { !then } else { u32::MAX };
        if mask & then != 0 {
            self.range(choice.start + 1, choice.middle, mask & then)?;
        }
        if mask & otherwise != 0 {
            self.range(choice.middle + 1, choice.end, mask & otherwise)?;
        }
        if !known {
            self.sums.both_sides = true;
            self.sums.taken[choice.start + 1..choice.end].iter_mut().for_each(|taken| taken.at_most = true);
        }
        for chosen in &choice.step.chosen {
            let (a, b) = (self.registers[chosen.then.index()], self.registers[chosen.otherwise.index()]);
            let (a_known, b_known) = (self.is_known(chosen.then), self.is_known(chosen.otherwise));
            let taken = |side: u32| side & mask == mask;
            let result = chosen.result.index();
            self.registers[result] = std::array::from_fn(|lane| if then >> lane & 1 == 1 { a[lane] } else { b[lane] });
            self.known[result] = known && (a_known || taken(otherwise)) && (b_known || taken(then));
        }
        Ok(choice.end + 1)
    }

    fn instruction(&mut self, place: usize, instruction: &Instruction, mask: u32) {
        let operation = &instruction.operation;
        let value = match operation {
            Operation::Special(special) => Some(self.special(*special)),
            Operation::Scalar(index) => self.scalars[*index].map(|bits| [bits; LANES]),
            _ => None,
        };
        if let Operation::Load(access) = operation
            && (self.dealt(access, instruction) || self.counted(access, instruction))
        {
            return self.accesses(place, instruction, mask);
        }
        if let Some(value) = value {
            self.registers[instruction.outputs[0].index()] = value;
            self.known[instruction.outputs[0].index()] = true;
            return;
        }
        let computed = instruction.inputs.iter().all(|input| self.is_known(*input))
            && compute(&self.program.widths, &mut self.registers, instruction);
        instruction.outputs.iter().for_each(|output| self.known[output.index()] = computed);
        if !computed && operation.accesses().next().is_some() {
            self.accesses(place, instruction, mask);
        }
    }

    /// The number of the cluster of this block, and how many there are, along the first axis.
    fn cluster(&self) -> (u64, u64) {
        let blocks = self.program.cluster[0].max(1);
        (u64::from(self.block[0] / blocks), u64::from(self.grid[0] / blocks).max(1))
    }

    /// What threads read of numbers that are dealt: each cluster has every so many, as if all took
    /// the same time. Whether it is such a load, whose numbers are known.
    fn dealt(&mut self, access: &Access, instruction: &Instruction) -> bool {
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
    fn counted(&mut self, access: &Access, instruction: &Instruction) -> bool {
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

    fn special(&self, special: Special) -> Lanes {
        let value = match special {
            Special::Thread => return std::array::from_fn(|lane| (self.warp * LANES + lane) as u64),
            Special::Lane => return std::array::from_fn(|lane| lane as u64),
            Special::Block(axis) => self.block[axis as usize],
            Special::Blocks(axis) => self.grid[axis as usize],
            Special::ClusterRank => {
                let [x, y, z] = std::array::from_fn(|axis| self.block[axis] % self.program.cluster[axis].max(1));
                x + self.program.cluster[0] * (y + self.program.cluster[1] * z)
            }
        };
        [value.into(); LANES]
    }

    fn accesses(&mut self, place: usize, instruction: &Instruction, mask: u32) {
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
                // Barriers in memory, and what matrix instructions of four warps read.
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
            match (addresses, space) {
                (Some(addresses), Space::Global) => tally.global(own, &addresses, bytes),
                (Some(addresses), Space::Shared) => tally.shared(own, &addresses, bytes),
                (None, Space::Global) => tally.global(own, &apart(), bytes),
                (None, Space::Shared) => tally.shared(own, &apart(), bytes),
            }
        }
        self.sums.taken[place].at_most |= open;
    }

    fn addresses(&self, access: &Access, register: Option<Register>) -> Lanes64 {
        let buffer = self.program.buffer(access.buffer);
        let offset = access.offset.wrapping_add(buffer.start.into());
        let Some(register) = register else { return [offset; LANES] };
        let wide = buffer.space == Space::Global;
        let extended = |value: u64| if wide { value as i64 } else { i64::from(value as u32 as i32) };
        self.registers[register.index()].map(|value| extended(value).wrapping_add(offset))
    }
}

/// The shortest period after which what a loop carries has grown by the same each time, and by how
/// much, in each lane. What is not known stays so.
fn growth(states: &[Vec<Option<Lanes>>], widths: &[u32]) -> Option<(usize, Vec<Lanes>)> {
    let last = states.len() - 1;
    (1..=PERIOD).find_map(|period| {
        let grown = |value: usize, at: usize| -> Option<Lanes> {
            let (now, then) = (states[at][value]?, states[at - period][value]?);
            Some(std::array::from_fn(|lane| now[lane].wrapping_sub(then[lane]) & low(widths[value])))
        };
        let mut growth = Vec::new();
        for value in 0..widths.len() {
            let wanted = grown(value, last);
            let known = |at: usize| states[at][value].is_some();
            let as_known = (states.len() / 2..=last).all(|at| known(at) == known(last));
            if !as_known || (states.len() / 2 + period..=last).any(|at| grown(value, at) != wanted) {
                return None;
            }
            growth.push(wanted.unwrap_or([0; LANES]));
        }
        (states.len() / 2 + period < last).then_some((period, growth))
    })
}

type Lanes64 = [i64; LANES];

/// Addresses that have nothing in common, and all their words in one bank: the worst.
fn apart() -> Lanes64 {
    std::array::from_fn(|lane| lane as i64 * 4096)
}

/// How often warps executed instructions of each class.
pub(super) fn classes(code: &Code<'_>, executed: &[u64]) -> [u64; Class::ALL.len()] {
    let mut classes = [0; Class::ALL.len()];
    for (node, executed) in code.nodes.iter().zip(executed) {
        if let Node::Instruction(instruction) = node {
            classes[Class::of(&instruction.operation) as usize] += executed;
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::{Tally, apart};

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
