//! Estimates how many registers a thread takes.
//!
//! Law: it is the most registers that are live at the same time, in the order of the program.
//! Constants and launch arguments are operands of the instructions and count nothing, nor does the
//! sum of a register and one of these. Predicates have registers of their own, and two 16-bit
//! numbers share a register. An assembler reorders instructions, so this is an estimate.

use crate::program::operation::{Binary, Format, Number, Operation, Special};
use crate::program::register::{Register, Width};
use crate::program::{Instruction, Program, Step};

/// The registers that an assembler takes for addresses and the stack, in addition to live values.
const BESIDE: u32 = 8;

/// An estimate of the 32-bit registers of a thread, at most 255.
pub(super) fn estimate(program: &Program) -> u32 {
    let (weights, roots) = weights(program);
    let mut live = Live { weights, roots, alive: vec![false; program.widths.len()], now: 0, most: 0 };
    live.steps(&program.body);
    (live.most.div_ceil(2) + BESIDE).min(255)
}

/// For each register of the program, the number of halves of a 32-bit register that it takes. And
/// the register from which it is recomputed at each use: itself, or another one.
fn weights(program: &Program) -> (Vec<u32>, Vec<Register>) {
    let of_width = |width: &Width| match width {
        Width::Predicate => 0,
        Width::Bits16 => 1,
        Width::Bits32 => 2,
        Width::Bits64 => 4,
    };
    let mut weights: Vec<u32> = program.widths.iter().map(of_width).collect();
    let mut roots: Vec<Register> = (0..program.widths.len()).map(|at| Register(at as u32)).collect();
    let mut reads = vec![0; program.widths.len()];
    for instruction in program.instructions() {
        instruction.inputs.iter().for_each(|input| reads[input.index()] += 1);
    }
    free(&program.body, &mut weights, &mut roots, &reads);
    (weights, roots)
}

/// Values that take no register, or only a part of one:
///
/// * constants, launch arguments, and values that are the same in all threads of a block;
/// * the sum of a register and one of these, which an instruction reads as a register and an
///   offset, or which is cheap to recompute;
/// * a value that is widened from a 16-bit float and read once: it is widened where it is read;
/// * the upper half of a 32-bit number that is extended by zeros.
fn free(steps: &[Step], weights: &mut [u32], roots: &mut [Register], reads: &[u32]) {
    for step in steps {
        match step {
            Step::Instruction(Instruction { operation, inputs, outputs, .. }) => {
                let uniform = matches!(
                    operation,
                    Operation::Constant(_)
                        | Operation::Scalar(_)
                        | Operation::Special(Special::Block(_) | Special::Blocks(_) | Special::ClusterRank)
                );
                if uniform {
                    outputs.iter().for_each(|output| weights[output.index()] = 0);
                }
                match operation {
                    Operation::Binary(Binary::Add, Number::I32 | Number::U32 | Number::I64 | Number::U64) => {
                        let moving: Vec<Register> =
                            inputs.iter().copied().filter(|input| weights[roots[input.index()].index()] > 0).collect();
                        match moving.as_slice() {
                            [] => weights[outputs[0].index()] = 0,
                            [one] => roots[outputs[0].index()] = roots[one.index()],
                            _ => {}
                        }
                    }
                    Operation::Convert { from: Format::Number(Number::F16 | Number::Bf16), .. }
                        if reads[outputs[0].index()] == 1 =>
                    {
                        roots[outputs[0].index()] = roots[inputs[0].index()];
                    }
                    Operation::Convert { from: Format::Number(Number::U32), to: Format::Number(_), .. } => {
                        let weight = weights[roots[inputs[0].index()].index()].min(2);
                        weights[outputs[0].index()] = weights[outputs[0].index()].min(weight);
                    }
                    _ => {}
                }
            }
            Step::Loop(looped) => free(&looped.body, weights, roots, reads),
            Step::Branch(branch) => {
                free(&branch.then, weights, roots, reads);
                free(&branch.otherwise, weights, roots, reads);
            }
        }
    }
}

/// The live registers, while the steps are visited from last to first.
struct Live {
    weights: Vec<u32>,
    roots: Vec<Register>,
    alive: Vec<bool>,
    /// The halves of registers that are live here, and the most so far.
    now: u32,
    most: u32,
}

impl Live {
    fn born(&mut self, register: Register) {
        let at = self.roots[register.index()].index();
        if !std::mem::replace(&mut self.alive[at], true) {
            self.now += self.weights[at];
            self.most = self.most.max(self.now);
        }
    }

    fn dead(&mut self, register: Register) {
        // A register that is recomputed from another one (its root) takes nothing of its own.
        let at = register.index();
        if self.roots[at] != register {
            return;
        }
        if std::mem::replace(&mut self.alive[at], false) {
            self.now -= self.weights[at];
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        // Results need a register even if nothing reads them.
        instruction.outputs.iter().for_each(|output| self.born(*output));
        instruction.outputs.iter().for_each(|output| self.dead(*output));
        instruction.inputs.iter().chain(&instruction.guard).for_each(|input| self.born(*input));
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps.iter().rev() {
            match step {
                Step::Instruction(instruction) => self.instruction(instruction),
                Step::Loop(looped) => {
                    for carried in &looped.carried {
                        self.dead(carried.result);
                        self.born(carried.next);
                    }
                    self.born(looped.to);
                    self.born(looped.index);
                    looped.until.iter().for_each(|until| self.born(*until));
                    // The second pass counts values from outside that an iteration reads: they are
                    // live in all iterations.
                    for _ in 0..2 {
                        for carried in &looped.carried {
                            self.born(carried.next);
                        }
                        self.steps(&looped.body);
                        looped.carried.iter().for_each(|carried| self.dead(carried.current));
                    }
                    self.dead(looped.index);
                    for carried in &looped.carried {
                        self.born(carried.initial);
                    }
                    self.born(looped.from);
                }
                Step::Branch(branch) => {
                    branch.chosen.iter().for_each(|chosen| self.dead(chosen.result));
                    let after = (self.alive.clone(), self.now);
                    branch.chosen.iter().for_each(|chosen| self.born(chosen.otherwise));
                    self.steps(&branch.otherwise);
                    let (otherwise, _) =
                        (std::mem::replace(&mut self.alive, after.0), std::mem::replace(&mut self.now, after.1));
                    branch.chosen.iter().for_each(|chosen| self.born(chosen.then));
                    self.steps(&branch.then);
                    // Before the condition, the live values of both bodies are needed.
                    for (at, alive) in otherwise.into_iter().enumerate() {
                        if alive {
                            self.born(Register(at as u32));
                        }
                    }
                    self.born(branch.condition);
                }
            }
        }
    }
}
