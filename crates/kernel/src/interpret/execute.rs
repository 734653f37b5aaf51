//! Executes one instruction of a warp.

use super::compute::compute;
use super::counts::Class;
use super::finding::Defect;
use super::lanes::Lanes;
use super::machine::{InterpretedRun, Stop};
use super::matrix;
use super::schedule::Order;
use super::warp::{State, Warp};
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::{Operation, Shuffle, Special, computes, shuffled};

const ALL: u32 = u32::MAX;

impl InterpretedRun<'_> {
    /// Executes an instruction in the active lanes. Returns what the warp does next.
    pub(super) fn execute(&mut self, warp: &mut Warp, place: usize, instruction: &Instruction) -> Result<State, Stop> {
        self.classes[Class::of(&instruction.operation) as usize] += 1;
        if !warp.sums.is_empty() {
            self.check_sums(warp, place, instruction)?;
        }
        if compute(&self.program.widths, &mut warp.registers, instruction) {
            return Ok(State::Ready);
        }
        let input = |warp: &Warp, at: usize| warp.registers[instruction.inputs[at].index()];
        let output = |at: usize| instruction.outputs[at].index();
        match &instruction.operation {
            Operation::Special(special) => self.special(warp, *special, output(0)),
            Operation::Scalar(index) => warp.registers[output(0)] = [self.scalars[*index]; WARP_LANES],
            Operation::Shuffle(shuffle) => {
                self.whole_warp(warp, place)?;
                let a = input(warp, 0);
                let from = if *shuffle == Shuffle::Index { input(warp, 1) } else { [0; WARP_LANES] };
                let out = &mut warp.registers[output(0)];
                for lane in 0..WARP_LANES {
                    out[lane] = a[shuffled(*shuffle, lane, from[lane])];
                }
            }
            Operation::Ballot => {
                self.whole_warp(warp, place)?;
                let bits = warp.holds(instruction.inputs[0].index()) & warp.mask;
                warp.registers[output(0)] = [bits.into(); WARP_LANES];
            }
            Operation::Multiply(matrix) => {
                self.whole_warp(warp, place)?;
                let [a, b, c] = matrix.registers();
                let inputs: smallvec::SmallVec<[&Lanes; 12]> =
                    instruction.inputs.iter().map(|input| &warp.registers[input.index()]).collect();
                let mut sums = [[0; WARP_LANES]; 4];
                let (operands, added) = inputs.split_at(a + b);
                let (added, scales) = added.split_at(c);
                matrix::multiply(*matrix, (&operands[..a], &operands[a..], scales), added, &mut sums[..c]);
                drop(inputs);
                for (output, sum) in instruction.outputs.iter().zip(sums) {
                    warp.registers[output.index()] = sum;
                }
            }
            Operation::Move => {
                let values: Vec<Lanes> = instruction.inputs.iter().map(|input| warp.registers[input.index()]).collect();
                for (output, value) in instruction.outputs.iter().zip(values) {
                    warp.registers[output.index()] = value;
                    warp.sums.written(output.index());
                }
            }
            Operation::Wgmma { operands, columns, a, b, adds } => {
                self.whole_warp(warp, place)?;
                self.multiply_group(warp, place, instruction, (*operands, *columns, *adds), (a.as_ref(), b))?;
            }
            Operation::FenceRegisters => warp.sums.fence(),
            Operation::CommitMultiply => warp.sums.commit(),
            Operation::WaitMultiply(groups) => self.wait_products(warp, *groups),
            Operation::Load(access) => self.load(warp, place, instruction, access, false)?,
            Operation::Store(access) => self.store(warp, place, instruction, access, false)?,
            Operation::RemoteLoad(access) => self.load(warp, place, instruction, access, true)?,
            Operation::RemoteStore(access) => self.store(warp, place, instruction, access, true)?,
            Operation::RemoteArrive { access, releases } => {
                self.arrive_elsewhere(warp, place, instruction, access, *releases)?;
            }
            Operation::Atomic(operation, number, access) => {
                self.atomic(warp, place, instruction, (*operation, *number), access, false)?;
            }
            Operation::Reduce(operation, number, access) => {
                self.atomic(warp, place, instruction, (*operation, *number), access, false)?;
            }
            Operation::RemoteReduce(operation, number, access) => {
                self.atomic(warp, place, instruction, (*operation, *number), access, true)?;
            }
            Operation::Claim => self.claim(warp, place, instruction)?,
            Operation::CountBlock => self.count_block(warp, place, instruction)?,
            Operation::AwaitTurn { access } => self.await_turn(warp, place, instruction, access)?,
            Operation::PassTurn { access } => self.pass_turn(warp, place, instruction, access)?,
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
            Operation::BulkLoad { map, to, barrier, multicast } => {
                self.bulk_load(warp, place, instruction, *map, (to, barrier), *multicast)?;
            }
            Operation::BulkSend { to, barrier, from, bytes } => {
                self.bulk_send(warp, place, instruction, [to, barrier, from], *bytes)?;
            }
            Operation::BulkStore { map, from } => self.bulk_store(warp, place, instruction, *map, from)?,
            Operation::CommitBulk => self.commit_stores(warp),
            Operation::WaitBulk { groups, read } => self.wait_stores(warp, *groups, *read),
            Operation::Barrier => return self.arrive(warp, place, 0, self.program.threads),
            Operation::NamedBarrier { number, threads } => {
                return self.arrive(warp, place, *number as usize, *threads);
            }
            Operation::NamedArrive { number, threads } => {
                self.arrive_early(warp, place, *number as usize, *threads)?;
            }
            Operation::WarpBarrier => self.warp_barrier(warp, place)?,
            Operation::Elect => {
                self.whole_warp(warp, place)?;
                // The elected lane is unspecified: schedules in reverse order elect another one.
                let lane = match self.schedule.order {
                    Order::Backward => 31 - warp.mask.leading_zeros().min(31),
                    _ => warp.mask.trailing_zeros().min(31),
                };
                warp.registers[output(0)] = std::array::from_fn(|at| u64::from(at == lane as usize));
            }
            Operation::SetRegisters { count, more } => return self.set_registers(warp, place, *count, *more),
            Operation::WaitLaunches => self.wait_for_launches(warp),
            Operation::LaunchNext => {}
            Operation::ClusterArrive => self.arrive_at_cluster(warp, place)?,
            Operation::ClusterWait => return self.wait_for_cluster(warp, place),
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
                let thread = warp.thread(warp.mask.trailing_zeros() as usize % WARP_LANES);
                self.report(Defect::Trap, place, Some(thread))?;
                return Err(Stop);
            }
            // `compute` executes these. They are listed, so that a new operation is not forgotten.
            computes!() => {}
        }
        Ok(State::Ready)
    }

    /// Checks that all lanes of a warp execute an instruction together.
    fn whole_warp(&mut self, warp: &Warp, place: usize) -> Result<(), Stop> {
        if warp.mask == ALL {
            return Ok(());
        }
        let thread = warp.thread(warp.mask.trailing_zeros() as usize % WARP_LANES);
        self.report(Defect::Divergence { active: warp.mask }, place, Some(thread))
    }

    /// The lanes in which a predicated instruction is executed.
    pub(super) fn active(&self, warp: &Warp, instruction: &Instruction) -> u32 {
        instruction.guard.map_or(warp.mask, |guard| warp.mask & warp.holds(guard.index()))
    }

    fn special(&self, warp: &mut Warp, special: Special, output: usize) {
        let first = (warp.local * WARP_LANES) as u64;
        let value = match special {
            Special::Thread => {
                return warp.registers[output].iter_mut().zip(first..).for_each(|(out, thread)| *out = thread);
            }
            Special::Lane => {
                return warp.registers[output].iter_mut().zip(0..).for_each(|(out, lane)| *out = lane);
            }
            Special::Block(axis) => {
                let within = self.program.place_in_cluster(warp.rank as u32);
                self.block.first[axis as usize] + within[axis as usize]
            }
            Special::Blocks(axis) => self.setup.grid[axis as usize],
            Special::ClusterRank => warp.rank as u32,
        };
        warp.registers[output] = [value.into(); WARP_LANES];
    }
}
