//! The last passes over a program: they replace aliases of registers, and remove dead code.
//!
//! Law: the program keeps its effects. Every instruction with an effect remains; an instruction
//! without an effect remains if one that remains reads its result.

use std::collections::HashMap;

use tilewright_layout::symbolic::{Parameter, Symbolic};

use super::core::Core;
use crate::error::Reason;
use crate::program::memory::BufferId;
use crate::program::operation::{Axis, Effect, Operation, Special};
use crate::program::register::Register;
use crate::program::scalar::Scalar;
use crate::program::{Instruction, Step};

/// The numbers that a launch passes: those in the layouts of tensors, in computations, and in the
/// grid.
pub(super) fn sizes(core: &Core) -> Vec<Parameter> {
    let of_scalar = |scalar: &Scalar| match scalar {
        Scalar::Size { value, .. } => value.parameters(),
        Scalar::Multiplier { divisor } | Scalar::Shift { divisor } => divisor.parameters(),
        Scalar::Count | Scalar::Given { .. } => Vec::new(),
    };
    let computed = core.scalars.iter().flat_map(of_scalar);
    let counts = core.grid.iter().flatten().flat_map(Symbolic::parameters);
    let mut found = core.sizes.clone();
    for parameter in computed.chain(counts).filter(|parameter| parameter.name().is_some()) {
        if !found.iter().any(|own| own.stands_for(&parameter)) {
            found.push(parameter);
        }
    }
    found
}

/// Replaces aliases by their registers.
pub(super) fn replace(steps: &mut [Step], aliases: &HashMap<Register, Register>) {
    let real = |register: &mut Register| {
        while let Some(other) = aliases.get(register) {
            *register = *other;
        }
    };
    for step in steps {
        match step {
            Step::Instruction(instruction) => {
                instruction.inputs.iter_mut().chain(&mut instruction.guard).for_each(real);
            }
            Step::Loop(looped) => {
                real(&mut looped.from);
                real(&mut looped.to);
                for carried in &mut looped.carried {
                    real(&mut carried.initial);
                    real(&mut carried.next);
                }
                looped.until.iter_mut().for_each(real);
                replace(&mut looped.body, aliases);
            }
            Step::Branch(branch) => {
                real(&mut branch.condition);
                for chosen in &mut branch.chosen {
                    real(&mut chosen.then);
                    real(&mut chosen.otherwise);
                }
                replace(&mut branch.then, aliases);
                replace(&mut branch.otherwise, aliases);
            }
        }
    }
}

/// Renumbers buffers.
pub(super) fn rename(steps: &mut [Step], numbers: &HashMap<BufferId, BufferId>) {
    for step in steps {
        match step {
            Step::Instruction(instruction) => instruction.operation.rename(numbers),
            Step::Loop(looped) => rename(&mut looped.body, numbers),
            Step::Branch(branch) => {
                rename(&mut branch.then, numbers);
                rename(&mut branch.otherwise, numbers);
            }
        }
    }
}

impl Core {
    /// Checks that the number of blocks is set along each axis along which the program
    /// distinguishes blocks.
    pub(crate) fn says_blocks(&self, body: &[Step]) -> Result<(), Reason> {
        let unsaid = |axis: &&Axis| self.blocks[**axis as usize].is_some() && self.grid[**axis as usize].is_none();
        match Axis::ALL.iter().filter(unsaid).any(|axis| tells_blocks(body, *axis)) {
            true => Err(Reason::Unsaid {
                what: "the number of blocks",
                help: "cut a tensor at the block with `local_tile`, or say it with `k.grid`",
            }),
            false => Ok(()),
        }
    }
}

/// Whether a program without dead code reads the index of the block along an axis.
fn tells_blocks(steps: &[Step], axis: Axis) -> bool {
    steps.iter().any(|step| match step {
        Step::Instruction(instruction) => instruction.operation == Operation::Special(Special::Block(axis)),
        Step::Loop(looped) => tells_blocks(&looped.body, axis),
        Step::Branch(branch) => tells_blocks(&branch.then, axis) || tells_blocks(&branch.otherwise, axis),
    })
}

/// Whether an instruction must remain even if nothing reads its results.
fn has_effect(instruction: &Instruction) -> bool {
    instruction.operation.effect() == Effect::Acts
}

/// Removes instructions whose results nothing reads.
pub(super) fn sweep(steps: &mut Vec<Step>, registers: usize) {
    let mut read = vec![false; registers];
    // A loop-carried value may be read only to compute its own next value, so repeat until nothing
    // changes.
    loop {
        let before = read.clone();
        mark(steps, &mut read);
        if read == before {
            break;
        }
    }
    drop_unread(steps, &read);
}

fn mark(steps: &[Step], read: &mut [bool]) {
    for step in steps.iter().rev() {
        match step {
            Step::Instruction(instruction) => {
                let needed = has_effect(instruction) || instruction.outputs.iter().any(|output| read[output.index()]);
                if needed {
                    instruction.inputs.iter().chain(&instruction.guard).for_each(|input| read[input.index()] = true);
                }
            }
            Step::Loop(looped) => {
                read[looped.from.index()] = true;
                read[looped.to.index()] = true;
                looped.until.iter().for_each(|until| read[until.index()] = true);
                for carried in &looped.carried {
                    if read[carried.result.index()] || read[carried.current.index()] {
                        read[carried.next.index()] = true;
                        read[carried.initial.index()] = true;
                    }
                }
                mark(&looped.body, read);
            }
            Step::Branch(branch) => {
                read[branch.condition.index()] = true;
                for chosen in branch.chosen.iter().filter(|chosen| read[chosen.result.index()]).collect::<Vec<_>>() {
                    read[chosen.then.index()] = true;
                    read[chosen.otherwise.index()] = true;
                }
                mark(&branch.then, read);
                mark(&branch.otherwise, read);
            }
        }
    }
}

fn drop_unread(steps: &mut Vec<Step>, read: &[bool]) {
    steps.retain_mut(|step| match step {
        Step::Instruction(instruction) => {
            has_effect(instruction) || instruction.outputs.iter().any(|output| read[output.index()])
        }
        Step::Loop(looped) => {
            looped.carried.retain(|carried| read[carried.result.index()] || read[carried.current.index()]);
            drop_unread(&mut looped.body, read);
            // Even without a body, loop-carried values may be read after the loop.
            !looped.body.is_empty() || !looped.carried.is_empty()
        }
        Step::Branch(branch) => {
            branch.chosen.retain(|chosen| read[chosen.result.index()]);
            drop_unread(&mut branch.then, read);
            drop_unread(&mut branch.otherwise, read);
            !branch.then.is_empty() || !branch.otherwise.is_empty() || !branch.chosen.is_empty()
        }
    });
}
