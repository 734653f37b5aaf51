//! Lists the elements that a block stores.
//!
//! Law: they form a box if one thread stores each coordinate of the box, and no other coordinate is
//! stored.

use std::collections::HashMap;

use tilewright_layout::ModePath;
use tilewright_layout::symbolic::{Expr, Parameter};

use super::threads::ThreadValues;
use super::{Along, Doubt, Write, real, undecided};
use crate::builder::core::Core;
use crate::program::Program;
use crate::program::register::Register;

/// The most elements of a block that are listed.
pub(super) const MAX_LISTED: usize = 1 << 21;

/// Why the elements of a block do not form a box.
pub(super) enum NoBox {
    Twice(usize, usize, Vec<i64>),
    Hole(Vec<i64>),
    Negative,
}

/// The elements of a block: the thread that writes each coordinate.
pub(super) struct Listed {
    /// The upper bounds of the extents of the modes, if there are any.
    extents: Vec<Option<i64>>,
    pub(super) writers: HashMap<Vec<i64>, usize>,
    twice: Option<(usize, usize, Vec<i64>)>,
    /// Whether threads have different elements, or some threads do not store.
    pub(super) by_threads: bool,
}

impl Listed {
    pub(super) fn new(bounds: &[(ModePath, Expr)]) -> Listed {
        let extents = bounds.iter().map(|(_, extent)| extent.range().1).collect();
        Listed { extents, writers: HashMap::new(), twice: None, by_threads: false }
    }

    pub(super) fn add(
        &mut self,
        write: &Write,
        all: &[Along],
        core: &Core,
        values: &ThreadValues,
        program: &Program,
    ) -> Result<(), Doubt> {
        let threads = program.threads as usize;
        let name = || program.sources[write.source.index()].to_string();
        let elements = write.elements.as_ref().ok_or_else(|| undecided(format!("{} has no known part", name())))?;
        let mut stores = vec![true; threads];
        for (register, wanted) in &write.conditions {
            let holds = values.get(real(core, *register));
            let holds = holds
                .ok_or_else(|| undecided(format!("{} happens under a condition of more than the thread", name())))?;
            stores.iter_mut().zip(holds).for_each(|(stores, holds)| *stores &= (*holds != 0) == *wanted);
        }
        let apart = all.iter().any(|along| !along.inner.is_empty()) || stores.contains(&false);
        self.by_threads |= apart;
        // Threads that all have the same elements are listed as one.
        let threads = if apart { threads } else { 1 };
        let storing = stores[..threads].iter().filter(|stores| **stores).count();
        if elements.len().saturating_mul(storing).saturating_add(self.writers.len()) > MAX_LISTED {
            return Err(undecided(format!("{} has more elements in a block than are listed", name())));
        }
        for thread in (0..threads).filter(|thread| stores[*thread]) {
            let starts: Vec<i64> = all
                .iter()
                .map(|along| {
                    let value = |register: Register| values.get(register).map_or(0, |values| values[thread]);
                    along.inner.iter().fold(along.constant, |sum, (factor, register)| sum + factor * value(*register))
                })
                .collect();
            for element in elements {
                let at: Vec<i64> = starts.iter().zip(element).map(|(start, step)| start + step).collect();
                if let Some(before) = self.writers.insert(at.clone(), thread)
                    && before != thread
                    && self.exists(&at)
                {
                    self.twice.get_or_insert((before, thread, at));
                }
            }
        }
        Ok(())
    }

    /// Whether a coordinate of the first block is inside the tensor for some admissible size.
    fn exists(&self, at: &[i64]) -> bool {
        at.iter().zip(&self.extents).all(|(at, extent)| extent.is_none_or(|extent| *at < extent))
    }

    /// The sides of the box from `low` on that the elements form, if none is written twice and none
    /// is missing.
    pub(super) fn sides(self, outer: &[Vec<(i64, Parameter)>], low: &[i64]) -> Result<Vec<i64>, NoBox> {
        if let Some((one, other, at)) = self.twice {
            return Err(NoBox::Twice(one, other, at));
        }
        // Past the greatest extent nothing is written, if no outer variable moves the part.
        let past = |at: &[i64]| {
            at.iter()
                .zip(&self.extents)
                .zip(outer)
                .any(|((at, extent), outer)| outer.is_empty() && extent.is_some_and(|extent| *at >= extent))
        };
        let mut sides = vec![0; outer.len()];
        let mut count = 0_u64;
        for at in self.writers.keys().filter(|at| !past(at)) {
            if at.iter().any(|at| *at < 0) {
                return Err(NoBox::Negative);
            }
            sides.iter_mut().zip(at).zip(low).for_each(|((side, at), low)| *side = (*side).max(at - low + 1));
            count += 1;
        }
        let size = sides.iter().try_fold(1_u64, |size, side| size.checked_mul(side.unsigned_abs()));
        if size == Some(count) {
            return Ok(sides);
        }
        // The first coordinate of the box that is missing.
        let mut at = low.to_vec();
        while self.writers.contains_key(&at) {
            for ((at, side), low) in at.iter_mut().zip(&sides).zip(low) {
                *at += 1;
                if *at - low < *side {
                    break;
                }
                *at = *low;
            }
        }
        Err(NoBox::Hole(at))
    }
}
