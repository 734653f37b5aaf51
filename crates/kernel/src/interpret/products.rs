//! wgmma in flight: the checks of their registers and their operands.
//!
//! Law: from its issue until its warp has waited for its group, a wgmma may read its operands and
//! write its accumulators at any time. Memory records this with an agent of the warp (`clock.rs`):
//! overwriting an operand in between is a race. For registers, these are defects: reading an
//! accumulator in between, a wgmma that adds to a register without a `wgmma.fence` after its last
//! write, and writing a register from which a wgmma in flight reads A. Values are those at the time
//! of issue.
//!
//! A warp reads the 16 rows of A of its accumulators, and all of B. Whether the warps of a
//! warpgroup execute a wgmma together is checked when the block exits: each must have issued the
//! same instructions, with operands at the same addresses.

use std::collections::HashMap;

use super::access::addresses;
use super::clock::{Agent, MAX_COUNT, Work};
use super::code::Node;
use super::convert::{from_e4m3, from_e5m2};
use super::finding::Defect;
use super::lanes::{Lanes, low};
use super::machine::{InterpretedRun, Stop};
use super::rounding::{from_bf16, from_f16};
use super::touch::{AccessKind, Actor, Span, Touch};
use super::warp::Warp;
use tilewright_layout::atoms::SwizzleMode;

use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::{OPERAND_REGISTERS, Operation};
use crate::program::wgmma::{Described, WgmmaOperands};

/// Rows of A for each warp.
const ROWS: i64 = 16;
/// Bytes along K of an instruction.
const DEPTH: i64 = 32;
/// Bytes that are recorded at once.
const UNIT: i64 = 16;

/// A wgmma that was issued: its node, and the first bytes of A and B.
pub(super) type Product = (usize, [i64; 2]);

/// The state of the registers of a warp's wgmma.
#[derive(Debug, Default)]
pub(super) struct WgmmaSums {
    /// The number of committed groups, and that of completed groups.
    committed: u32,
    /// A count of writes and fences.
    now: u64,
    fence: u64,
    /// When each register was written by an instruction other than wgmma.
    written: HashMap<usize, u64>,
    /// For registers that a wgmma may still write, its group and its node.
    pending: HashMap<usize, (u32, usize)>,
    /// For registers that a wgmma may still read, its group and its node.
    read: HashMap<usize, (u32, usize)>,
    /// The wgmma whose registers of A a loop or a condition has just overwritten.
    replaced: Option<usize>,
}

impl WgmmaSums {
    /// Whether no wgmma is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.read.is_empty()
    }

    /// Records a register that was written by an instruction that a fence must follow.
    pub(super) fn written(&mut self, register: usize) {
        self.now += 1;
        self.written.insert(register, self.now);
    }

    /// Records that a value was moved from one register to another.
    pub(super) fn moved(&mut self, from: usize, to: usize) {
        if let Some((_, by)) = self.read.get(&to) {
            self.replaced = Some(*by);
        }
        match self.pending.get(&from).copied() {
            Some(pending) => {
                self.pending.insert(to, pending);
            }
            // If no wgmma was ever issued or prepared, nothing is checked.
            None if self.written.contains_key(&from) || self.fence > 0 => self.written(to),
            None => {}
        }
    }

    pub(super) fn fence(&mut self) {
        self.now += 1;
        self.fence = self.now;
    }

    pub(super) fn commit(&mut self) {
        self.committed = (self.committed + 1).min(MAX_COUNT - 1);
    }
}

impl InterpretedRun<'_> {
    /// Reports an instruction that reads a register that a wgmma may still write.
    pub(super) fn check_sums(&mut self, warp: &Warp, place: usize, instruction: &Instruction) -> Result<(), Stop> {
        let mut written = instruction.outputs.iter();
        let replaced = written.find_map(|register| Some(warp.sums.read.get(&register.index())?.1));
        if let Some(by) = replaced.or(warp.sums.replaced) {
            let before = Some(self.source_at(by));
            self.report(Defect::Sums { before, fence: false }, place, Some(warp.thread(0)))?;
        }
        // wgmma in flight may add to the same accumulators one after another. A in registers is
        // read like any number.
        let inputs = match instruction.operation {
            Operation::Wgmma { a: None, .. } => &instruction.inputs[..OPERAND_REGISTERS],
            Operation::Wgmma { .. } => &[],
            _ => &instruction.inputs[..],
        };
        let mut read = inputs.iter().chain(&instruction.guard);
        let found = read.find_map(|register| warp.sums.pending.get(&register.index()).copied());
        let Some((_, by)) = found else { return Ok(()) };
        let before = Some(self.source_at(by));
        self.report(Defect::Sums { before, fence: false }, place, Some(warp.thread(0)))
    }

    pub(super) fn multiply_group(
        &mut self,
        warp: &mut Warp,
        place: usize,
        instruction: &Instruction,
        (operands, columns, adds): (WgmmaOperands, u32, bool),
        (a, b): (Option<&Described>, &Described),
    ) -> Result<(), Stop> {
        let owner = warp.thread(0);
        let mut input = if a.is_none() { OPERAND_REGISTERS } else { 0 };
        let starts = self.starts(warp, place, instruction, [a, Some(b)], &mut input)?;
        let sums = &instruction.inputs[input..];
        // Registers that another instruction wrote need a fence, and the first wgmma always needs
        // one.
        let late = sums.iter().any(|sum| warp.sums.written.get(&sum.index()).is_some_and(|at| *at >= warp.sums.fence));
        if warp.sums.fence == 0 || late {
            self.report(Defect::Sums { before: None, fence: true }, place, Some(owner))?;
        }
        self.block.products[warp.number].push((place, starts));
        let group = warp.sums.committed + 1;
        let rows = ROWS * (warp.local as i64 % 4);
        let mut values: [Vec<f32>; 2] = Default::default();
        let parts = [(a, rows, ROWS), (Some(b), 0, i64::from(columns))];
        for (at, (operand, first, count)) in parts.into_iter().enumerate() {
            values[at] = match operand {
                Some(operand) => {
                    self.touch_operand(
                        Actor { place, thread: owner },
                        operand,
                        operands,
                        starts[at],
                        (first, count),
                        group,
                    )?;
                    self.operand(warp.rank, operand, operands, starts[at], (first, count))
                }
                None => {
                    let registers = &instruction.inputs[..OPERAND_REGISTERS];
                    for register in registers {
                        warp.sums.read.insert(register.index(), (group, place));
                    }
                    held(operands, &[0, 1, 2, 3].map(|at| &warp.registers[registers[at].index()]))
                }
            };
        }
        for (number, (from, to)) in sums.iter().zip(&instruction.outputs).enumerate() {
            warp.registers[to.index()] = if adds { warp.registers[from.index()] } else { [0; WARP_LANES] };
            add_products(operands, &values, number, &mut warp.registers[to.index()]);
            warp.sums.pending.insert(to.index(), (group, place));
        }
        Ok(())
    }

    /// The addresses of A and B in shared memory; 0 for an operand in registers. All lanes supply
    /// the same address.
    fn starts(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        operands: [Option<&Described>; 2],
        input: &mut usize,
    ) -> Result<[i64; 2], Stop> {
        let mut starts = [0; 2];
        for (start, operand) in starts.iter_mut().zip(operands) {
            let Some(operand) = operand else { continue };
            let lanes = addresses(warp, instruction, &operand.access, false, input);
            *start = lanes[0] + i64::from(self.program.buffer(operand.access.buffer).start);
            if lanes.iter().any(|lane| *lane != lanes[0]) {
                let products = self.block.products.iter().map(|own| own.len() as u64).max().unwrap_or(0);
                let first = warp.local as u32 / 4 * 4;
                self.report(Defect::Group { first, products: [products; 4] }, place, Some(warp.thread(0)))?;
                return Err(Stop);
            }
        }
        Ok(starts)
    }

    /// Records that a wgmma reads the rows of an operand.
    fn touch_operand(
        &mut self,
        by: Actor,
        operand: &Described,
        operands: WgmmaOperands,
        start: i64,
        (first, count): (i64, i64),
        group: u32,
    ) -> Result<(), Stop> {
        let bytes = i64::from(operands.bytes());
        let memory = self.own(operand.access.buffer, by.thread);
        let begin = i64::from(self.program.buffer(memory.buffer).start);
        let event = self.block.clocks.background(by.thread, Work::Multiply, group, by.place);
        let unit = UNIT / bytes;
        let rows = count * DEPTH / bytes / unit;
        for number in 0..rows {
            // Units are contiguous along K or along the other dimension.
            let [mn, k] = match operand.major {
                tilewright_layout::atoms::Major::K => [first + number / 2, number % 2 * unit],
                tilewright_layout::atoms::Major::MN => {
                    [first + number % (count / unit) * unit, number / (count / unit)]
                }
            };
            let at = operand.byte(start, bytes, [mn, k]) - begin;
            let span = Span { memory, address: at, bytes: UNIT as u64 };
            if !self.inside(by, &span, UNIT as u32)? {
                return Err(Stop);
            }
            self.fenced(by, span)?;
            self.same_swizzle(by, span, operand.mode)?;
            self.touch(&Touch { by, span, kind: AccessKind::Read, event })?;
        }
        Ok(())
    }

    /// Checks that data of a bulk load is read with the swizzle with which it was written.
    fn same_swizzle(&mut self, by: Actor, span: Span, reads: SwizzleMode) -> Result<(), Stop> {
        let cell = self.shared_at(span.memory, span.address) >> self.setup.shared_shift;
        let written = self.block.cells[cell as usize].last_write();
        if !written.is_some() || !matches!(self.block.clocks.agent(written.agent()), Agent::Load(_)) {
            return Ok(());
        }
        let Some(Node::Instruction(load)) = self.code.nodes.get(written.place()) else { return Ok(()) };
        let Operation::BulkLoad { map, .. } = &load.operation else { return Ok(()) };
        let wrote = self.program.map(*map).swizzle;
        if wrote == reads {
            return Ok(());
        }
        let (place, before) = (self.place_of(&span), self.party(written));
        let [wrote, reads] = [wrote, reads].map(|mode| 16 * mode.units() as u32);
        self.report_by(by, Defect::Permuted { place, before, wrote, reads })
    }

    /// The values of the rows of an operand, K fastest.
    fn operand(
        &self,
        rank: usize,
        operand: &Described,
        operands: WgmmaOperands,
        start: i64,
        (first, count): (i64, i64),
    ) -> Vec<f32> {
        let (bytes, depth) = (i64::from(operands.bytes()), i64::from(operands.depth()));
        let shared = &self.block.shared[rank * self.setup.shared_bytes..];
        let mut values = Vec::with_capacity((count * depth) as usize);
        for mn in first..first + count {
            for k in 0..depth {
                let at = operand.byte(start, bytes, [mn, k]) as usize;
                let bits = &shared[at..at + bytes as usize];
                let bits = bits.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                values.push(value(operands, bits));
            }
        }
        values
    }

    pub(super) fn wait_products(&mut self, warp: &mut Warp, groups: u32) {
        let done = warp.sums.committed.saturating_sub(groups);
        warp.sums.pending.retain(|_, (group, _)| *group > done);
        warp.sums.read.retain(|_, (group, _)| *group > done);
        let owner = warp.thread(0);
        self.block.clocks.finish_for(warp.threads(warp.exists), owner, Work::Multiply, done);
    }

    /// Checks that no wgmma is in flight when a warp exits.
    pub(super) fn end_of_products(&mut self, warp: &Warp) -> Result<(), Stop> {
        let Some((_, place)) = warp.sums.pending.values().copied().min() else { return Ok(()) };
        let what = "no warp has waited for a wgmma";
        self.report(Defect::PendingAtExit { what }, place, Some(warp.thread(0)))
    }

    /// Checks that the four warps of a warpgroup execute a wgmma together.
    pub(super) fn check_groups(&mut self) -> Result<(), Stop> {
        let own = |warp: usize| self.block.products.get(warp).map_or(&[][..], Vec::as_slice);
        let mut found = None;
        let warps = self.setup.padded / WARP_LANES;
        // Warps of a block, four at a time.
        let firsts = (0..self.block.products.len()).filter(|warp| (warp % warps).is_multiple_of(4));
        for first in firsts {
            let last = first / warps * warps + warps;
            let four = [0, 1, 2, 3].map(|warp| if first + warp < last { own(first + warp) } else { &[] });
            let longest = four.into_iter().max_by_key(|products| products.len()).unwrap_or(&[]);
            let differing = four.into_iter().find_map(|products| {
                longest
                    .iter()
                    .enumerate()
                    .find(|(at, product)| products.get(*at) != Some(product))
                    .map(|(_, product)| product.0)
            });
            if let Some(place) = differing {
                found = Some((place, first, four.map(|products| products.len() as u64)));
                break;
            }
        }
        let Some((place, first, products)) = found else { return Ok(()) };
        self.report(Defect::Group { first: (first % warps) as u32, products }, place, Some(first * WARP_LANES))
    }
}

/// The value of an operand element with these bits.
fn value(operands: WgmmaOperands, bits: u64) -> f32 {
    match operands {
        WgmmaOperands::F16 => from_f16(bits),
        WgmmaOperands::Bf16 => from_bf16(bits),
        WgmmaOperands::Tf32 => f32::from_bits(bits as u32 & 0xffff_e000),
        WgmmaOperands::E4M3 => from_e4m3(bits as u8),
        WgmmaOperands::E5M2 => from_e5m2(bits as u8),
        WgmmaOperands::I8 => f32::from(bits as u8 as i8),
        WgmmaOperands::U8 => f32::from(bits as u8),
    }
}

/// Multiplies the rows of A of a warp by all of B, into an accumulator register, by its index.
fn add_products(operands: WgmmaOperands, [a, b]: &[Vec<f32>; 2], number: usize, sums: &mut Lanes) {
    let depth = operands.depth() as usize;
    for (lane, sum) in sums.iter_mut().enumerate() {
        let row = lane / 4 + 8 * (number / 2 % 2);
        let column = number / 4 * 8 + lane % 4 * 2 + number % 2;
        let terms = a[row * depth..][..depth].iter().zip(&b[column * depth..][..depth]);
        let bits = if operands.is_integer() {
            // Products of bytes are exact in f32, and sums wrap.
            terms.fold(*sum as u32, |sum, (a, b)| sum.wrapping_add((a * b) as i32 as u32))
        } else {
            terms.fold(f32::from_bits(*sum as u32), |sum, (a, b)| sum + a * b).to_bits()
        };
        *sum = bits.into();
    }
}

/// The values of the 16 rows that a warp holds in registers, K fastest. For rows `g` and `g + 8`,
/// lane `4g + t` holds the values in registers `2h` and `2h + 1`, from `t` of each half `h` of K on
/// (PTX ISA, "Register Fragments for wgmma.mma_async").
fn held(operands: WgmmaOperands, registers: &[&Lanes; OPERAND_REGISTERS]) -> Vec<f32> {
    let packed = 4 / operands.bytes() as usize;
    let depth = operands.depth() as usize;
    let mut values = vec![0.0; ROWS as usize * depth];
    for (number, register) in registers.iter().enumerate() {
        for (lane, word) in register.iter().enumerate() {
            let row = lane / 4 + 8 * (number % 2);
            for part in 0..packed {
                let k = (number / 2 * 4 + lane % 4) * packed + part;
                values[row * depth + k] = value(operands, word >> (32 / packed * part) & low(32 / packed as u32));
            }
        }
    }
    values
}
