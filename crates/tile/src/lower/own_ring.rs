//! Loads of a loop through shared memory that each thread has for itself.
//!
//! Law: each iteration computes the same as before, in the same order. A thread copies the elements
//! that it loads to a ring of its own, by `cp.async`, some iterations before their use. It waits
//! for its own copies alone, so the block does not synchronize. Bytes in flight then take no
//! registers, and the assembler cannot delay their instructions to save registers. This is done for
//! loops that carry many registers, whose warps are few.

use tilewright_kernel::{Fragment, KernelError, View};
use tilewright_layout::Stride;
use tilewright_layout::atoms::CopyAtom;
use tilewright_layout::symbolic::Expr;

use super::early::loads_of;
use super::{Lowering, ThreadValue, iterations_of, over, staged};
use crate::program::{Loop, Operation, Statement};

/// The instructions that copy, the widest first, and their bits.
const ATOMS: [(&str, u32); 2] =
    [("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 128), ("SM80_CP_ASYNC_CACHEALWAYS<uint64_t>", 64)];
/// The most stages of a ring: the loads of three iterations are in flight while one computes.
const STAGES: i64 = 4;
/// The fewest stages of a ring: the loads of one iteration are in flight.
const LEAST_STAGES: i64 = 2;

/// A load of each iteration, and the ring `(thread, value, stage)` that it goes through: runs of
/// `each` values, of these numbers, which an instruction copies.
struct OwnRing<'s, 'k> {
    load: &'s Statement,
    ring: View<'k>,
    atom: CopyAtom,
    bits: u32,
    each: i64,
    numbers: Vec<i64>,
}

impl<'k> OwnRing<'_, 'k> {
    /// The runs of this thread in a stage.
    fn runs(&self, stage: &Expr) -> Result<Vec<View<'k>>, KernelError> {
        let part = self.ring.slice(staged(stage)?)?.thread_part()?;
        (0..self.numbers.len() as i64).map(|number| part.local_tile(self.each, Expr::from(number))).collect()
    }
}

/// The rings of a loop, their stages, and the number of its iterations.
pub(super) struct OwnRings<'s, 'k> {
    rings: Vec<OwnRing<'s, 'k>>,
    stages: i64,
    count: i64,
}

/// The runs of a load of this thread that may exist, each with its number.
type Runs<'k> = Vec<(i64, View<'k>)>;

impl<'k> Lowering<'k, '_> {
    /// Emits the iterations of a loop whose loads go through rings.
    pub(super) fn ringed_iterations(
        &mut self,
        own: &Loop,
        OwnRings { rings, stages, count }: &OwnRings<'_, 'k>,
        carried: &[Fragment<'k>],
    ) -> Result<(), KernelError> {
        let (k, stages, count) = (self.k, *stages, *count);
        for ahead in 0..stages - 1 {
            let copy = |atom: &CopyAtom, from: &View<'k>, to: &View<'k>| k.copy_predicated(atom, from, to);
            self.copied_ahead(own, (rings, stages), &Expr::from(ahead), copy)?;
        }
        k.range(count, |iteration| {
            k.wait_async(stages as u32 - 2);
            let stage = k.remainder(&iteration, stages)?;
            for own in rings {
                let Statement::Let { result, .. } = own.load else { continue };
                let held = self.distribution(*result)?;
                let nothing = k.number_of(self.placed.program.type_of(*result).element, 0.0);
                let mut numbers = vec![nothing; held.values() as usize];
                for (number, run) in own.numbers.iter().zip(own.runs(&stage)?) {
                    let begin = (number * own.each) as usize;
                    numbers[begin..begin + own.each as usize].copy_from_slice(&run.load()?.numbers()?);
                }
                self.early.insert((*result, Vec::new()), ThreadValue::Tile(self.tiled(&numbers, &held)?));
            }
            let ahead = Stride::plus(&iteration, &Expr::from(stages - 1)).ok_or_else(over)?;
            let comes = k.index(&ahead)?.lt(k.index(&Expr::from(count))?);
            self.copied_ahead(own, (rings, stages), &ahead, |atom, from, to| k.copy_when(atom, comes, from, to))?;
            self.iterations.insert(own.iteration, iteration);
            for (parameter, fragment) in own.parameters.iter().zip(carried) {
                self.values.insert(*parameter, ThreadValue::Numbers(fragment.numbers()?));
            }
            self.body(&own.body)?;
            for (next, fragment) in own.next.iter().zip(carried) {
                fragment.set(&self.numbers(*next)?)?;
            }
            Ok(())
        })?;
        k.wait_async(0);
        self.has_own_rings = true;
        rings.iter().for_each(|own| k.give_back(&own.ring));
        // Later areas may have this memory.
        k.barrier();
        Ok(())
    }

    /// The rings of the loads of a loop; None, and nothing is emitted, if some load cannot go
    /// through one.
    pub(super) fn own_rings<'s>(&mut self, own: &'s Loop) -> Result<Option<OwnRings<'s, 'k>>, KernelError> {
        let Some(count) = iterations_of(own).filter(|count| *count >= STAGES) else { return Ok(None) };
        let Some(loads) = loads_of(own, self.placed) else { return Ok(None) };
        // The second iteration, because the first one may begin at an aligned address by chance.
        self.iterations.insert(own.iteration, Expr::from(1));
        let mut bytes = 0;
        let mut found = Vec::new();
        for load in loads {
            let Statement::Let { result, .. } = load else { return Ok(None) };
            let copied = |(atom, bits)| {
                let runs = self.runs_of(load, bits).transpose()?;
                Some(runs.map(|runs| (atom, bits, runs)))
            };
            let Some(copied) = ATOMS.into_iter().find_map(copied) else { return Ok(None) };
            let (atom, bits, runs) = copied?;
            let element = self.placed.program.type_of(*result).element;
            let (threads, each) = (self.distribution(*result)?.threads(), i64::from(bits / element.bits()));
            let numbers: Vec<i64> = runs.into_iter().map(|(number, _)| number).collect();
            bytes += threads * numbers.len() as i64 * i64::from(bits / 8);
            found.push((load, element, (atom, bits), [threads, each], numbers));
        }
        let fit = |blocks: u32| self.room.of_blocks(blocks.into()) / bytes.max(1);
        let stages = match fit(self.residents[1]) {
            few if few < LEAST_STAGES => fit(1),
            stages => stages,
        };
        let stages = stages.min(STAGES);
        if stages < LEAST_STAGES {
            return Ok(None);
        }
        let mut rings = Vec::new();
        for (load, element, (atom, bits), [threads, each], numbers) in found {
            let (run, runs) = (each * threads, numbers.len() as i64);
            let layout = format!("({threads},({each},{runs}),{stages}):({each},(1,{run}),{})", runs * run);
            let ring = load.place().during(|| self.k.area_of(element, &layout))?;
            self.note(load.place());
            rings.push(OwnRing { load, ring, atom: CopyAtom::named(atom)?, bits, each, numbers });
        }
        Ok(Some(OwnRings { rings, stages, count }))
    }

    /// What this thread copies for a load at the current iteration; None if instructions of this
    /// width cannot.
    fn runs_of(&self, load: &Statement, bits: u32) -> Result<Option<Runs<'k>>, KernelError> {
        let Statement::Let { result, operation: Operation::Load { tensor, shape, at, other }, .. } = load else {
            return Ok(None);
        };
        if *other != 0.0 || other.is_sign_negative() {
            return Ok(None);
        }
        self.tile(*tensor, shape, at, &[])?.distributed_runs(&self.distribution(*result)?, bits)
    }

    /// Issues the copies of an iteration.
    fn copied_ahead(
        &mut self,
        own: &Loop,
        (rings, stages): (&[OwnRing<'_, 'k>], i64),
        iteration: &Expr,
        copy: impl Fn(&CopyAtom, &View<'k>, &View<'k>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        self.iterations.insert(own.iteration, iteration.clone());
        let stage = self.k.remainder(iteration, stages)?;
        for own in rings {
            own.load.place().during(|| {
                let runs = self.runs_of(own.load, own.bits)?.ok_or_else(over)?;
                runs.iter().zip(&own.runs(&stage)?).try_for_each(|((_, from), to)| copy(&own.atom, from, to))
            })?;
        }
        self.k.commit_async();
        Ok(())
    }
}
