//! Walks through what the warps of a block execute, without memory. Submodules: memory accesses
//! (`walk/memory.rs`), bytes in flight (`walk/under_way.rs`), loops (`walk/iterations.rs`), and the
//! counts (`walk/sums.rs`).
//!
//! Law: addresses and predicates are computed as by the interpreter, if they follow from the
//! indices of threads, blocks and iterations and from launch arguments. Values from memory are
//! unknown. An access whose address or predicate is unknown is counted as an upper bound, and
//! marked; a loop with an unknown number of iterations ends the walk.
//!
//! Memory orders nothing here, so warps are walked one after another. Values exchanged between
//! lanes are known if their operands are (`walk/lanes.rs`), so a warp walks only through its own
//! role. If a condition is unknown, both bodies are walked with all lanes: they count for the upper
//! bound, and not for the lower bound.

mod iterations;
mod lanes;
mod memory;
mod sums;
mod touched;
mod under_way;

use std::collections::BTreeMap;

use smallvec::SmallVec;

pub(super) use self::sums::{BlockSums, Taken};
use self::touched::Sectors;
use self::under_way::UnderWay;
use super::Uncounted;
use super::requests::Request;
use super::stores::{Stored, TensorStores};
use crate::interpret::code::{Choice, Code, Node};
use crate::interpret::compute::compute;
use crate::interpret::counts::Class;
use crate::interpret::lanes::Lanes;
use crate::program::WARP_LANES;
use crate::program::memory::BufferId;
use crate::program::operation::{Operation, Special};
use crate::program::register::Register;
use crate::program::{Instruction, Program};

/// A walk through blocks of a grid.
pub(super) struct Walk<'a> {
    program: &'a Program,
    code: &'a Code<'a>,
    grid: [u32; 3],
    scalars: &'a [Option<u64>],
    block: [u32; 3],
    warp: usize,
    /// The number of indices that the cluster has claimed.
    claimed: u64,
    registers: Vec<Lanes>,
    known: Vec<bool>,
    pub(super) sums: BlockSums,
    under_way: UnderWay,
    /// Over the walked blocks, the most bytes that the warps of one block have in flight.
    most_under_way: u64,
    /// Whether the destinations of all boxes are known.
    boxes_known: bool,
    /// The number of walked nodes, and the limit.
    walked: u64,
    limit: u64,
    multiplies: bool,
    /// The requests of each node at its first execution; None if they are not wanted.
    asked: Option<BTreeMap<(usize, usize), Request>>,
    /// The stores to one tensor; None if they are not wanted.
    stores: Option<TensorStores>,
    /// The sectors of each buffer that were touched; None if they are not wanted.
    sectors: Option<Vec<Sectors>>,
    /// The nesting depth of bodies whose conditions are unknown.
    unsure: u32,
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
        let sums = BlockSums {
            taken: vec![Taken::default(); nodes],
            executed: vec![0; nodes],
            surely: vec![0; nodes],
            steps: 0,
            both_sides: false,
            multiplied: false,
        };
        let (registers, known) = (vec![[0; WARP_LANES]; count], vec![false; count]);
        Walk {
            program,
            code,
            grid,
            scalars,
            block: [0; 3],
            warp: 0,
            claimed: 0,
            registers,
            known,
            sums,
            under_way: UnderWay::of(count),
            most_under_way: 0,
            boxes_known: true,
            walked: 0,
            limit,
            multiplies: false,
            asked: None,
            stores: None,
            sectors: None,
            unsure: 0,
        }
    }

    /// The same walk, which also records touched sectors.
    pub(super) fn touching(self) -> Walk<'a> {
        let sectors = self.program.buffers.iter().map(|_| Sectors::default()).collect();
        Walk { sectors: Some(sectors), ..self }
    }

    /// The number of touched sectors of each tensor.
    pub(super) fn touched(&self) -> Option<Vec<u64>> {
        Some(self.sectors.as_ref()?.iter().map(Sectors::count).collect())
    }

    /// The same walk, which also records requests.
    pub(super) fn asking(self) -> Walk<'a> {
        Walk { asked: Some(BTreeMap::new()), ..self }
    }

    /// The requests, in the order of the program.
    pub(super) fn requests(self) -> Vec<Request> {
        self.asked.into_iter().flatten().map(|(_, request)| request).collect()
    }

    /// The same walk, which also lists the stores to a tensor.
    pub(super) fn storing(self, to: BufferId) -> Walk<'a> {
        Walk { stores: Some(TensorStores { to, list: Vec::new(), known: true }), ..self }
    }

    /// The stores since the last call; None if some of them are unknown.
    pub(super) fn stored(&mut self) -> Option<Vec<Stored>> {
        let both_sides = self.sums.both_sides;
        self.stores.as_mut().filter(|stores| stores.known && !both_sides).map(|stores| std::mem::take(&mut stores.list))
    }

    /// The same walk, which extrapolates iterations of long loops.
    pub(super) fn multiplying(self) -> Walk<'a> {
        Walk { multiplies: true, ..self }
    }

    /// Walks all warps of a block.
    pub(super) fn block(&mut self, block: [u32; 3]) -> Result<(), Uncounted> {
        let mut under_way = 0_u64;
        for warp in 0..self.program.threads.div_ceil(32) {
            self.warp(block, warp)?;
            under_way = under_way.saturating_add(self.under_way.most());
        }
        self.most_under_way = self.most_under_way.max(under_way);
        Ok(())
    }

    /// Over the walked blocks, the most bytes that the warps of one block have in flight; None if
    /// the destination of a box is unknown.
    pub(super) fn under_way(&self) -> Option<u64> {
        self.boxes_known.then_some(self.most_under_way)
    }

    /// Walks one warp of a block.
    pub(super) fn warp(&mut self, block: [u32; 3], warp: u32) -> Result<(), Uncounted> {
        (self.block, self.warp, self.claimed) = (block, warp as usize, 0);
        self.under_way.begin();
        let here = (self.program.threads - 32 * warp).min(32);
        let exists = ((1_u64 << here) - 1) as u32;
        self.range(0, self.code.nodes.len(), exists)
    }

    /// Walks a range of nodes with these lanes.
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
            if self.unsure == 0 {
                self.sums.surely[place] = self.sums.surely[place].saturating_add(1);
            }
            place = match code.nodes[place] {
                Node::Instruction(instruction) => {
                    self.instruction(place, instruction, mask);
                    place + 1
                }
                Node::LoopStart(number) => self.iterations(&code.loops[number], mask)?,
                Node::BranchStart(number) => self.choice(&code.choices[number], mask)?,
                Node::LoopEnd(_) | Node::BranchMiddle(_) | Node::BranchEnd(_) => place + 1,
            };
        }
        Ok(())
    }

    fn set(&mut self, to: Register, from: Register) {
        self.under_way.rename(std::iter::once(([from].as_slice(), to)));
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

    fn choice(&mut self, choice: &Choice<'_>, mask: u32) -> Result<usize, Uncounted> {
        self.under_way.read(choice.step.condition);
        let known = self.is_known(choice.step.condition);
        let then = if known { self.holds(choice.step.condition) } else { u32::MAX };
        let otherwise = if known { !then } else { u32::MAX };
        self.unsure += u32::from(!known);
        if mask & then != 0 {
            self.range(choice.start + 1, choice.middle, mask & then)?;
        }
        if mask & otherwise != 0 {
            self.range(choice.middle + 1, choice.end, mask & otherwise)?;
        }
        self.unsure -= u32::from(!known);
        if !known {
            self.sums.both_sides = true;
            self.sums.taken[choice.start + 1..choice.end].iter_mut().for_each(|taken| taken.at_most = true);
        }
        for chosen in &choice.step.chosen {
            let sides = [(chosen.then, then), (chosen.otherwise, otherwise)];
            let taken = sides.iter().filter(|(_, side)| mask & side != 0).map(|(register, _)| *register);
            let taken: SmallVec<[Register; 2]> = taken.collect();
            self.under_way.rename(std::iter::once((taken.as_slice(), chosen.result)));
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
        self.under_way.executes(instruction);
        let value = match operation {
            Operation::Special(special) => Some(self.special(*special)),
            Operation::Scalar(index) => self.scalars[*index].map(|bits| [bits; WARP_LANES]),
            _ => None,
        };
        if let Operation::Load(access) = operation
            && (self.draws(access, instruction) || self.counts_blocks(access, instruction))
        {
            return self.accesses(place, instruction, mask);
        }
        if let Some(value) = value {
            self.registers[instruction.outputs[0].index()] = value;
            self.known[instruction.outputs[0].index()] = true;
            return;
        }
        let computed = instruction.inputs.iter().all(|input| self.is_known(*input))
            && (compute(&self.program.widths, &mut self.registers, instruction) || self.exchanges(instruction, mask));
        instruction.outputs.iter().for_each(|output| self.known[output.index()] = computed);
        if !computed && operation.accesses().next().is_some() {
            self.accesses(place, instruction, mask);
        }
    }

    /// The index of this block's cluster, and the number of clusters, along the first axis.
    fn cluster(&self) -> (u64, u64) {
        let blocks = self.program.cluster[0].max(1);
        (u64::from(self.block[0] / blocks), u64::from(self.grid[0] / blocks).max(1))
    }

    fn special(&self, special: Special) -> Lanes {
        let value = match special {
            Special::Thread => return std::array::from_fn(|lane| (self.warp * WARP_LANES + lane) as u64),
            Special::Lane => return std::array::from_fn(|lane| lane as u64),
            Special::Block(axis) => self.block[axis as usize],
            Special::Blocks(axis) => self.grid[axis as usize],
            Special::ClusterRank => {
                let [x, y, z] = std::array::from_fn(|axis| self.block[axis] % self.program.cluster[axis].max(1));
                x + self.program.cluster[0] * (y + self.program.cluster[1] * z)
            }
        };
        [value.into(); WARP_LANES]
    }
}

/// The number of warp instructions of each class.
pub(super) fn classes(code: &Code<'_>, executed: &[u64]) -> [u64; Class::ALL.len()] {
    let mut classes = [0; Class::ALL.len()];
    for (node, executed) in code.nodes.iter().zip(executed) {
        if let Node::Instruction(instruction) = node {
            classes[Class::of(&instruction.operation) as usize] += executed;
        }
    }
    classes
}
