//! The values of registers in each thread of a block.
//!
//! Law: if a register depends only on the index of the thread and on constants, its values are
//! computed by the instructions of the program, as the interpreter executes them. The result of a
//! shuffle is known if all lanes have the same value.

use std::collections::HashMap;

use crate::interpret::compute::compute;
use crate::interpret::lanes::{Lanes, signed};
use crate::program::WARP_LANES;
use crate::program::operation::{Operation, Special};
use crate::program::register::{Register, Width};
use crate::program::{Instruction, Step};

/// The values of registers in each thread; None for registers that depend on anything else.
pub(in crate::builder) struct ThreadValues {
    values: HashMap<Register, Vec<i64>>,
    threads: usize,
}

/// All instructions, with bodies inlined.
fn flatten<'s>(steps: &'s [Step], found: &mut Vec<&'s Instruction>) {
    for step in steps {
        match step {
            Step::Instruction(instruction) => found.push(instruction),
            Step::Loop(looped) => flatten(&looped.body, found),
            Step::Branch(branch) => {
                flatten(&branch.then, found);
                flatten(&branch.otherwise, found);
            }
        }
    }
}

impl ThreadValues {
    pub(super) fn of(steps: &[Step], widths: &[Width], threads: u32, wanted: &[Register]) -> ThreadValues {
        let mut all = Vec::new();
        flatten(steps, &mut all);
        // The registers on which the wanted ones depend. A register is written before it is read.
        let mut needed = vec![false; widths.len()];
        wanted.iter().for_each(|register| needed[register.index()] = true);
        let mut chain: Vec<&Instruction> = Vec::new();
        for instruction in all.into_iter().rev() {
            if instruction.outputs.iter().any(|output| needed[output.index()]) {
                instruction.inputs.iter().for_each(|input| needed[input.index()] = true);
                chain.push(instruction);
            }
        }
        chain.reverse();
        let mut values: HashMap<Register, Vec<i64>> = HashMap::new();
        let mut registers: Vec<Lanes> = vec![[0; WARP_LANES]; widths.len()];
        for warp in 0..(threads as usize).div_ceil(WARP_LANES) {
            let mut known = vec![false; widths.len()];
            for instruction in &chain {
                let result = match &instruction.operation {
                    Operation::Special(Special::Thread) => {
                        registers[instruction.outputs[0].index()] =
                            std::array::from_fn(|lane| (warp * WARP_LANES + lane) as u64);
                        true
                    }
                    Operation::Special(Special::Lane) => {
                        registers[instruction.outputs[0].index()] = std::array::from_fn(|lane| lane as u64);
                        true
                    }
                    Operation::Shuffle(_) => {
                        let of = instruction.inputs[0].index();
                        let lanes = registers[of];
                        registers[instruction.outputs[0].index()] = lanes;
                        known[of] && lanes.iter().all(|lane| *lane == lanes[0])
                    }
                    _ => {
                        instruction.inputs.iter().all(|input| known[input.index()])
                            && compute(widths, &mut registers, instruction)
                    }
                };
                instruction.outputs.iter().for_each(|output| known[output.index()] = result);
            }
            for register in wanted.iter().filter(|register| known[register.index()]) {
                let here = WARP_LANES.min(threads as usize - warp * WARP_LANES);
                let bits = widths[register.index()].bits();
                let lanes = registers[register.index()][..here].iter();
                let lanes = lanes.map(|value| if bits == 1 { (value & 1) as i64 } else { signed(*value, bits) });
                let list = values.entry(*register).or_default();
                // A register that is wanted twice is evaluated once.
                if list.len() == warp * WARP_LANES {
                    list.extend(lanes);
                }
            }
        }
        ThreadValues { values, threads: threads as usize }
    }

    /// The values of a register, one for each thread.
    pub(super) fn get(&self, register: Register) -> Option<&[i64]> {
        self.values.get(&register).map(Vec::as_slice).filter(|values| values.len() == self.threads)
    }
}
