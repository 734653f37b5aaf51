//! Register allocation of wgmma accumulators, which are updated in place.
//!
//! Law: a wgmma updates registers in place, and nothing may access them while it is in flight. In a
//! program, its accumulators are SSA values: its inputs, its outputs, and loop-carried values
//! between them. These are merged into one register. That is possible because each is read once, by
//! the wgmma or the loop that defines the next one; a copy in between would read a register in
//! flight. A wgmma that starts from zero reuses a register whose value was read before, in the same
//! iteration.

use std::collections::HashMap;

use super::PtxError;
use crate::program::operation::Operation;
use crate::program::register::Register;
use crate::program::{Program, SourceId, Step};

/// Sets of merged registers.
struct Classes {
    of: Vec<u32>,
    /// Whether a wgmma reads or writes it.
    summed: Vec<bool>,
}

impl Classes {
    fn find(&self, register: Register) -> u32 {
        let mut at = register.0;
        while self.of[at as usize] != at {
            at = self.of[at as usize];
        }
        at
    }

    fn join(&mut self, a: Register, b: Register) {
        let (a, b) = (self.find(a), self.find(b));
        // The smallest register represents the set.
        self.of[a.max(b) as usize] = a.min(b);
    }
}

/// The program with accumulators merged into one register; None if there is no wgmma.
///
/// Errors: an accumulator that is read twice, or whose initial value is also used elsewhere.
pub(super) fn in_place(program: &Program) -> Result<Option<Program>, PtxError> {
    let mut classes =
        Classes { of: (0..program.widths.len() as u32).collect(), summed: vec![false; program.widths.len()] };
    let count = program.widths.len();
    let mut uses = Uses { count: HashMap::new(), last: HashMap::new(), own: vec![false; count], home: vec![0; count] };
    gather(&program.body, &mut classes, &mut uses, &mut ProgramPlace::default());
    if !classes.summed.contains(&true) {
        return Ok(None);
    }
    check(program, &program.body, &uses, &mut ProgramPlace::default())?;
    // A loop-carried accumulator is merged with its initial and final values, from the inner loops
    // to the outer ones, until nothing changes.
    loop {
        let before = (classes.of.clone(), classes.summed.clone());
        carry(&program.body, &mut classes, &uses);
        if before == (classes.of.clone(), classes.summed.clone()) {
            break;
        }
    }
    let mut result = program.clone();
    rewrite(&mut result.body, &classes);
    Ok(Some(result))
}

/// Where and how often registers are read.
struct Uses {
    count: HashMap<Register, u32>,
    /// The position of the last read, in the order of the program.
    last: HashMap<Register, u32>,
    /// Whether only its writer uses the register.
    own: Vec<bool>,
    /// The loop whose body writes it; 0 outside of loops.
    home: Vec<u32>,
}

impl Uses {
    fn read(&mut self, register: Register, at: u32) {
        *self.count.entry(register).or_default() += 1;
        self.last.insert(register, at);
    }
}

/// A position in the order of the program, and the enclosing loop.
#[derive(Clone, Copy, Default)]
struct ProgramPlace {
    at: u32,
    iterations: u32,
    /// The number of loops so far.
    loops: u32,
}

impl ProgramPlace {
    /// Advances to the next instruction.
    fn next(&mut self) -> u32 {
        self.at += 1;
        self.at
    }

    /// Visits the body of a loop.
    fn within<T>(&mut self, body: impl FnOnce(&mut ProgramPlace) -> T) -> T {
        let around = self.iterations;
        self.loops += 1;
        self.iterations = self.loops;
        let found = body(self);
        self.iterations = around;
        found
    }
}

fn gather(steps: &[Step], classes: &mut Classes, uses: &mut Uses, place: &mut ProgramPlace) {
    for step in steps {
        match step {
            Step::Instruction(instruction) => {
                let at = place.next();
                instruction.inputs.iter().chain(&instruction.guard).for_each(|register| uses.read(*register, at));
                instruction.outputs.iter().for_each(|output| uses.home[output.index()] = place.iterations);
                if let Some(first) = instruction.operation.first_sum() {
                    for (from, to) in instruction.inputs[first..].iter().zip(&instruction.outputs) {
                        classes.join(*from, *to);
                        classes.summed[from.index()] = true;
                        classes.summed[to.index()] = true;
                        uses.own[to.index()] = true;
                    }
                }
                if instruction.operation == Operation::Move {
                    instruction.outputs.iter().for_each(|output| uses.own[output.index()] = true);
                }
            }
            Step::Loop(looped) => {
                let at = place.next();
                for carried in &looped.carried {
                    uses.read(carried.initial, at);
                    uses.own[carried.current.index()] = true;
                    uses.own[carried.result.index()] = true;
                    uses.home[carried.result.index()] = place.iterations;
                }
                place.within(|place| {
                    for carried in &looped.carried {
                        uses.home[carried.current.index()] = place.iterations;
                    }
                    gather(&looped.body, classes, uses, place);
                    let at = place.next();
                    looped.carried.iter().for_each(|carried| uses.read(carried.next, at));
                });
            }
            Step::Branch(branch) => {
                gather(&branch.then, classes, uses, place);
                gather(&branch.otherwise, classes, uses, place);
                let at = place.next();
                for chosen in &branch.chosen {
                    uses.read(chosen.then, at);
                    uses.read(chosen.otherwise, at);
                    uses.home[chosen.result.index()] = place.iterations;
                }
            }
        }
    }
}

/// Refuses accumulators that cannot stay in their registers.
fn check(program: &Program, steps: &[Step], uses: &Uses, place: &mut ProgramPlace) -> Result<(), PtxError> {
    let refuse = |source: SourceId| {
        let what = "accumulator of a wgmma that is read twice, or is not a register of its own";
        PtxError::Operation { what: what.to_string(), statement: program.source(source).to_string() }
    };
    for step in steps {
        match step {
            Step::Instruction(instruction) => {
                let at = place.next();
                let Some(first) = instruction.operation.first_sum() else { continue };
                let anew = matches!(instruction.operation, Operation::Wgmma { adds: false, .. });
                // A wgmma that starts from zero is the last reader of these registers, and writes
                // them in the same iteration.
                let over = |sum: &Register| {
                    anew && uses.last.get(sum) == Some(&at) && uses.home[sum.index()] == place.iterations
                };
                let kept = |sum: &Register| uses.own[sum.index()] && (uses.count.get(sum) == Some(&1) || over(sum));
                if !instruction.inputs[first..].iter().all(kept) {
                    return Err(refuse(instruction.source));
                }
            }
            Step::Loop(looped) => {
                place.next();
                place.within(|place| {
                    check(program, &looped.body, uses, place)?;
                    place.next();
                    Ok(())
                })?;
            }
            Step::Branch(branch) => {
                check(program, &branch.then, uses, place)?;
                check(program, &branch.otherwise, uses, place)?;
                place.next();
            }
        }
    }
    Ok(())
}

fn carry(steps: &[Step], classes: &mut Classes, uses: &Uses) {
    for step in steps {
        match step {
            Step::Instruction(_) => {}
            Step::Loop(looped) => {
                carry(&looped.body, classes, uses);
                for carried in &looped.carried {
                    if !classes.summed[carried.current.index()] || !classes.summed[carried.next.index()] {
                        continue;
                    }
                    classes.join(carried.current, carried.next);
                    classes.join(carried.current, carried.result);
                    classes.summed[carried.result.index()] = true;
                    // If several loops begin with the same value, it is copied before the loop. A
                    // value that only this loop uses stays in its register: wgmma may be in flight,
                    // also in enclosing loops that carry it.
                    let initial = carried.initial;
                    let is_taken_here = uses.count.get(&initial) == Some(&1)
                        && uses.home[initial.index()] == uses.home[carried.result.index()];
                    if uses.own[initial.index()] && (classes.summed[initial.index()] || is_taken_here) {
                        classes.join(carried.current, initial);
                        classes.summed[initial.index()] = true;
                    }
                }
            }
            Step::Branch(branch) => {
                carry(&branch.then, classes, uses);
                carry(&branch.otherwise, classes, uses);
            }
        }
    }
}

fn rewrite(steps: &mut [Step], classes: &Classes) {
    let real = |register: &mut Register| *register = Register(classes.find(*register));
    for step in steps {
        match step {
            Step::Instruction(instruction) => {
                instruction
                    .inputs
                    .iter_mut()
                    .chain(&mut instruction.outputs)
                    .chain(&mut instruction.guard)
                    .for_each(real);
            }
            Step::Loop(looped) => {
                for carried in &mut looped.carried {
                    let all = [&mut carried.initial, &mut carried.current, &mut carried.next, &mut carried.result];
                    all.into_iter().for_each(real);
                }
                rewrite(&mut looped.body, classes);
            }
            Step::Branch(branch) => {
                for chosen in &mut branch.chosen {
                    [&mut chosen.then, &mut chosen.otherwise, &mut chosen.result].into_iter().for_each(real);
                }
                rewrite(&mut branch.then, classes);
                rewrite(&mut branch.otherwise, classes);
            }
        }
    }
}
