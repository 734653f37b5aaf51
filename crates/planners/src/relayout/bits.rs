//! Relayout of layouts that are linear over bits.
//!
//! Law: on both sides, the offset of an index is the XOR of the offsets of its bits. A tile is a
//! linear space of indices: all XOR sums of an index of a run of the source and an index of a run
//! of the destination. So each XOR with a fixed index of one run leaves a run of the other side.
//! Blocks iterate over a complement of the tile.
//!
//! * **Words.** A thread reads vectors of 16 bytes, and stores them in shared memory word by word.
//!   It reads its vectors of the destination back element by element.
//! * **Offsets.** The offset of an access is the XOR of an offset of the block, one of the thread,
//!   and one of the iteration. Offsets that have no bit in common are added instead.
//! * **Banks.** Lanes store words that are a vector apart in the source, and read elements that are
//!   a vector apart in the destination. The indices of the lanes form one linear space for stores
//!   and one for loads. Both spaces have a common complement, which becomes the rows of shared
//!   memory, so neither stores nor loads have bank conflicts.

mod plan;
mod space;

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Element, Kernel, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree};

use super::sum::plus;
use super::{Sides, blocks};
use crate::error::PlanError;
use crate::terms::Place;

pub(super) use plan::BitsPlan;

/// A part of an index, and the bits that may be set in it.
#[derive(Debug, Clone)]
struct Part {
    index: Expr,
    bits: u64,
}

impl Part {
    fn known(value: u64) -> Part {
        Part { index: Expr::from(value as i64), bits: value }
    }

    /// The XOR of the columns that the bits of a number select.
    fn over(k: &Build, number: &Expr, columns: &[u64]) -> Result<Part, KernelError> {
        let bits = columns.iter().fold(0, |all, column| all | column);
        Ok(Part { index: k.over_bits(number, columns)?, bits })
    }

    /// The XOR of both parts: their sum if they have no bit in common.
    fn with(&self, k: &Build, other: &Part) -> Result<Part, KernelError> {
        let index = match self.bits & other.bits {
            0 => plus(&self.index, &other.index)?,
            _ => k.exclusive_or(&self.index, &other.index)?,
        };
        Ok(Part { index, bits: self.bits | other.bits })
    }
}

/// One vector of a tensor of vectors.
fn vector<'k>(view: &View<'k>, at: &Expr) -> Result<View<'k>, KernelError> {
    let slot: Coord<Expr> = Tree::flat([Slot::All, Slot::At(at.clone())])?;
    view.slice(slot)
}

/// The kernel.
pub(super) fn kernel(sides: &Sides, plan: &BitsPlan, from: &Place, to: &Place) -> Result<Kernel, PlanError> {
    let places = |place: &Place| match &place.bits {
        None => Ok(place.layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect()),
        Some(_) => place.modes_over_bits().ok_or_else(|| PlanError::Kind { layout: place.to_string() }),
    };
    let (source_modes, target_modes): (Vec<_>, Vec<_>) = (places(from)?, places(to)?);
    let total = blocks(1 << plan.blocks.len())?;
    let (length, wide) = (1_i64 << plan.vector, plan.element);
    // Words of 4 bytes, or longer elements.
    let word = if wide.bytes() == 8 { Element::U64 } else { Element::U32 };
    let in_word = i64::from(word.bytes() / wide.bytes());
    let reach = |side: i64, element: Element| side * i64::from(element.bytes()) / i64::from(wide.bytes());
    let reach = (reach(sides.reach.0, sides.source), reach(sides.reach.1, sides.destination));
    Ok(Kernel::build("relayout_bits", |k| {
        k.threads(1 << plan.threads)?;
        k.grid(operation::Axis::X, total)?;
        let source = k.tensor_of(sides.source, "source", sides.declared(0, &source_modes), Role::Input)?;
        let target = k.tensor_of(sides.destination, "destination", sides.declared(1, &target_modes), Role::Output)?;
        let words = length / in_word;
        let source = source.recast(word, Layout::strided((words, reach.0 / length), (1, words)))?;
        let target = target.recast(wide, Layout::strided((length, reach.1 / length), (1, length)))?;
        let tile = k.shared_of(word, Layout::strided((1 << plan.read.len()) / in_word, 1))?;
        let elements = tile.recast(wide, Layout::strided(1_i64 << plan.read.len(), 1))?;
        let (block, thread) = (k.block_number(operation::Axis::X), k.thread()?);
        let iterations = 1_u64 << (plan.read.len() - plan.vector as usize - plan.threads as usize);
        // Offsets in vectors: a vector is a power of two of elements, and aligned to its size.
        let vectors = |columns: &[u64]| -> Vec<u64> { columns.iter().map(|column| column >> plan.vector).collect() };
        let iteration_of =
            |columns: &[u64], iteration: u64| space::chosen(&columns[plan.threads as usize..], iteration);
        let own = |columns: &[u64]| Part::over(k, &thread, &columns[..plan.threads as usize]);

        let read = vectors(&plan.read);
        let begin = Part::over(k, &block, &vectors(&plan.source_blocks))?;
        let begin = begin.with(k, &own(&read[plan.vector as usize..])?)?;
        let stored = own(&plan.stored[plan.vector as usize..])?;
        let mut waiting = Vec::new();
        for iteration in 0..iterations {
            let at = begin.with(k, &Part::known(iteration_of(&read[plan.vector as usize..], iteration)))?;
            waiting.push(vector(&source, &at.index)?.load_predicated()?.numbers()?);
        }
        for (iteration, numbers) in (0..iterations).zip(waiting) {
            let row = iteration_of(&plan.stored[plan.vector as usize..], iteration);
            for (number, value) in numbers.into_iter().enumerate() {
                let inside = space::chosen(&plan.stored, number as u64 * in_word as u64);
                let place = stored.with(k, &Part::known(row ^ inside))?;
                let one = k.register(word, 1)?;
                one.set(&[value])?;
                tile.at(&k.quotient(&place.index, in_word)?)?.store_predicated(&one)?;
            }
        }
        k.barrier();
        let written = vectors(&plan.written);
        let begin = Part::over(k, &block, &vectors(&plan.target_blocks))?;
        let begin = begin.with(k, &own(&written[plan.vector as usize..])?)?;
        let loaded = Part::over(k, &block, &plan.apart)?.with(k, &own(&plan.loaded[plan.vector as usize..])?)?;
        for iteration in 0..iterations {
            let row = iteration_of(&plan.loaded[plan.vector as usize..], iteration);
            let mut numbers = Vec::new();
            for element in 0..length as u64 {
                let place = loaded.with(k, &Part::known(row ^ space::chosen(&plan.loaded, element)))?;
                numbers.push(elements.at(&place.index)?.load_predicated()?.numbers()?[0]);
            }
            let values = k.register(wide, &length.to_string())?;
            values.set(&numbers)?;
            let at = begin.with(k, &Part::known(iteration_of(&written[plan.vector as usize..], iteration)))?;
            vector(&target, &at.index)?.store_predicated(&values)?;
        }
        Ok(())
    })?)
}
