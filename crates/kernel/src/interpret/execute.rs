//! One instruction of a warp.

use super::arithmetic;
use super::convert;
use super::counts::Class;
use super::finding::Defect;
use super::lanes::{LANES, Lanes, low, one, three, two};
use super::machine::{Machine, Stop};
use super::matrix;
use super::warp::{State, Warp};
use crate::program::Instruction;
use crate::program::operation::{Operation, Shuffle, Special};

const ALL: u32 = u32::MAX;

impl Machine<'_> {
    /// Executes an instruction in the lanes that are active; what the warp does then.
    pub(super) fn execute(&mut self, warp: &mut Warp, place: usize, instruction: &Instruction) -> Result<State, Stop> {
        self.classes[Class::of(&instruction.operation) as usize] += 1;
        let input = |warp: &Warp, at: usize| warp.registers[instruction.inputs[at].index()];
        let output = |at: usize| instruction.outputs[at].index();
        match &instruction.operation {
            Operation::Constant(bits) => {
                let width = self.program.width(instruction.outputs[0]).bits();
                warp.registers[output(0)] = [bits & low(width); LANES];
            }
            Operation::Special(special) => self.special(warp, *special, output(0)),
            Operation::Scalar(index) => warp.registers[output(0)] = [self.scalars[*index]; LANES],
            Operation::Unary(operation, number) => {
                let mask = low(self.program.width(instruction.outputs[0]).bits());
                let a = input(warp, 0);
                arithmetic::unary(*operation, *number, mask, &a, &mut warp.registers[output(0)]);
            }
            Operation::Binary(operation, number) => {
                let (a, b) = (input(warp, 0), input(warp, 1));
                arithmetic::binary(*operation, *number, &a, &b, &mut warp.registers[output(0)]);
            }
            Operation::MultiplyAdd(number) => {
                let (a, b, c) = (input(warp, 0), input(warp, 1), input(warp, 2));
                arithmetic::multiply_add(*number, &a, &b, &c, &mut warp.registers[output(0)]);
            }
            Operation::MultiplyAddWide(number) => {
                let (a, b, c) = (input(warp, 0), input(warp, 1), input(warp, 2));
                arithmetic::multiply_add_wide(*number, &a, &b, &c, &mut warp.registers[output(0)]);
            }
            Operation::Compare(comparison, number) => {
                let (a, b) = (input(warp, 0), input(warp, 1));
                arithmetic::compare(*comparison, *number, &a, &b, &mut warp.registers[output(0)]);
            }
            Operation::Select => {
                let (condition, a, b) = (input(warp, 0), input(warp, 1), input(warp, 2));
                let out = &mut warp.registers[output(0)];
                three(&condition, &a, &b, out, |condition, a, b| if condition & 1 == 1 { a } else { b });
            }
            Operation::Convert { from, to, rounding } => {
                let a = input(warp, 0);
                convert::convert(*from, *to, *rounding, &a, &mut warp.registers[output(0)]);
            }
            Operation::ConvertPair { to } => {
                let (a, b) = (input(warp, 0), input(warp, 1));
                convert::convert_pair(*to, &a, &b, &mut warp.registers[output(0)]);
            }
            Operation::WidenPair { from } => {
                let a = input(warp, 0);
                convert::widen_pair(*from, &a, &mut warp.registers[output(0)]);
            }
            Operation::Pack => {
                let width = self.program.width(instruction.inputs[0]).bits();
                let mut packed = [0; LANES];
                for (part, register) in instruction.inputs.iter().enumerate() {
                    for (packed, value) in packed.iter_mut().zip(&warp.registers[register.index()]) {
                        *packed |= value << (width * part as u32);
                    }
                }
                warp.registers[output(0)] = packed;
            }
            Operation::Unpack => {
                let width = self.program.width(instruction.outputs[0]).bits();
                let a = input(warp, 0);
                for (part, register) in instruction.outputs.iter().enumerate() {
                    let out = &mut warp.registers[register.index()];
                    one(&a, out, |a| a >> (width * part as u32) & low(width));
                }
            }
            Operation::Permute(selector) => {
                let (a, b) = (input(warp, 0), input(warp, 1));
                two(&a, &b, &mut warp.registers[output(0)], |a, b| permuted(a | b << 32, *selector));
            }
            Operation::FunnelShiftLeft => {
                let (a, b, c) = (input(warp, 0), input(warp, 1), input(warp, 2));
                three(&a, &b, &c, &mut warp.registers[output(0)], |a, b, c| ((a | b << 32) << (c % 32)) >> 32);
            }
            Operation::FunnelShiftRight => {
                let (a, b, c) = (input(warp, 0), input(warp, 1), input(warp, 2));
                three(&a, &b, &c, &mut warp.registers[output(0)], |a, b, c| (a | b << 32) >> (c % 32) & low(32));
            }
            Operation::Shuffle(shuffle) => {
                self.whole_warp(warp, place)?;
                let a = input(warp, 0);
                let from = if *shuffle == Shuffle::Index { input(warp, 1) } else { [0; LANES] };
                let out = &mut warp.registers[output(0)];
                for lane in 0..LANES {
                    out[lane] = a[shuffled(*shuffle, lane, from[lane])];
                }
            }
            Operation::Ballot => {
                self.whole_warp(warp, place)?;
                let bits = warp.holds(instruction.inputs[0].index()) & warp.mask;
                warp.registers[output(0)] = [bits.into(); LANES];
            }
            Operation::Multiply(matrix) => {
                self.whole_warp(warp, place)?;
                let [a, b, c] = matrix.registers();
                let inputs: smallvec::SmallVec<[&Lanes; 12]> =
                    instruction.inputs.iter().map(|input| &warp.registers[input.index()]).collect();
                let mut sums = [[0; LANES]; 4];
                matrix::multiply(*matrix, &inputs[..a], &inputs[a..a + b], &inputs[a + b..], &mut sums[..c]);
                drop(inputs);
                for (output, sum) in instruction.outputs.iter().zip(sums) {
                    warp.registers[output.index()] = sum;
                }
            }
            Operation::Load(access) => self.load(warp, place, instruction, access)?,
            Operation::Store(access) => self.store(warp, place, instruction, access)?,
            Operation::Atomic(operation, number, access) => {
                self.atomic(warp, place, instruction, (*operation, *number), access, true)?;
            }
            Operation::Reduce(operation, number, access) => {
                self.atomic(warp, place, instruction, (*operation, *number), access, false)?;
            }
            Operation::LoadMatrix { access, transposed } => {
                self.whole_warp(warp, place)?;
                self.load_matrix(warp, place, instruction, access, *transposed)?;
            }
            Operation::StoreMatrix { access, transposed } => {
                self.whole_warp(warp, place)?;
                self.store_matrix(warp, place, instruction, access, *transposed)?;
            }
            Operation::CopyAsync { to, from, or_zeros } => {
                self.copy_async(warp, place, instruction, to, from, *or_zeros)?;
            }
            Operation::CommitAsync => self.commit_copies(warp),
            Operation::WaitAsync(groups) => self.wait_copies(warp, *groups),
            Operation::BulkLoad { map, to, barrier } => self.bulk_load(warp, place, instruction, *map, to, barrier)?,
            Operation::BulkStore { map, from } => self.bulk_store(warp, place, instruction, *map, from)?,
            Operation::CommitBulk => self.commit_stores(warp),
            Operation::WaitBulk { groups, read } => self.wait_stores(warp, *groups, *read),
            Operation::Barrier => return self.arrive(warp, place, 0, self.program.threads),
            Operation::NamedBarrier { number, threads } => {
                return self.arrive(warp, place, *number as usize, *threads);
            }
            Operation::WarpBarrier => self.warp_barrier(warp, place)?,
            Operation::Fence(fence) => self.fence(warp, *fence)?,
            Operation::BarrierInit { access, count } => self.init_object(warp, place, instruction, access, *count)?,
            Operation::BarrierArrive { access, expect } => {
                self.arrive_at_object(warp, place, instruction, access, *expect)?;
            }
            Operation::BarrierWait { .. } => {
                warp.state = State::Phase { place, lanes: warp.mask };
                self.poll(warp)?;
                return Ok(warp.state);
            }
            Operation::Trap => {
                let thread = warp.thread(warp.mask.trailing_zeros() as usize % LANES);
                self.report(Defect::Trap, place, Some(thread))?;
                return Err(Stop);
            }
        }
        Ok(State::Ready)
    }

    /// An instruction that all lanes of a warp execute together.
    fn whole_warp(&mut self, warp: &Warp, place: usize) -> Result<(), Stop> {
        if warp.mask == ALL {
            return Ok(());
        }
        let thread = warp.thread(warp.mask.trailing_zeros() as usize % LANES);
        self.report(Defect::Divergence { active: warp.mask }, place, Some(thread))
    }

    /// The lanes in which an instruction with a predicate does something.
    pub(super) fn active(&self, warp: &Warp, instruction: &Instruction) -> u32 {
        instruction.guard.map_or(warp.mask, |guard| warp.mask & warp.holds(guard.index()))
    }

    fn special(&self, warp: &mut Warp, special: Special, output: usize) {
        let first = warp.thread(0) as u64;
        let value = match special {
            Special::Thread => {
                return warp.registers[output].iter_mut().zip(first..).for_each(|(out, thread)| *out = thread);
            }
            Special::Lane => {
                return warp.registers[output].iter_mut().zip(0..).for_each(|(out, lane)| *out = lane);
            }
            Special::Block(axis) => self.block.index[axis as usize],
            Special::Blocks(axis) => self.setup.grid[axis as usize],
            Special::ClusterRank => self.block.index[0] % self.program.cluster,
        };
        warp.registers[output] = [value.into(); LANES];
    }
}

/// From which lane a lane takes.
fn shuffled(shuffle: Shuffle, lane: usize, index: u64) -> usize {
    match shuffle {
        Shuffle::Index => index as usize % LANES,
        Shuffle::Butterfly(mask) => lane ^ (mask as usize % LANES),
        Shuffle::Up(by) => lane.checked_sub(by as usize).unwrap_or(lane),
        Shuffle::Down(by) => Some(lane + by as usize).filter(|from| *from < LANES).unwrap_or(lane),
    }
}

/// Four bytes of eight.
fn permuted(bytes: u64, selector: u16) -> u64 {
    (0..4).map(|place| (bytes >> (8 * (selector >> (4 * place) & 7)) & 0xff) << (8 * place)).sum()
}
