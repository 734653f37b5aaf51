//! Comparisons of sums of coordinates.
//!
//! Law: if both sides of a comparison are sums of coordinates, the values of a thread differ by
//! constants. So `left <= right` is `constant <= limit`, with a constant for each value and one
//! limit for all of them, instead of a register for each coordinate. Both sides are sums of
//! non-negative terms that fit in 32 bits, and so does their difference. A value for which all
//! threads have the same answer needs no comparison: of rows of 768 elements in tiles of 1024, the
//! last quarter is past the end in every thread.

use tilewright_kernel::{Element, KernelError, Num};
use tilewright_layout::Stride;
use tilewright_layout::symbolic::Expr;

use super::{Lowering, over};
use crate::program::{Comparison, Counter, Index, ValueId};
use crate::sums::{SumTerm, Sums};

/// The condition under which each value of a thread selects the first tile.
pub(super) struct Limits<'k> {
    /// For each value, a constant. The first tile is selected if the constant is at most `limit`.
    pub(super) constants: Vec<i64>,
    pub(super) limit: Num<'k>,
    /// For each value, whether it selects the first tile; None if threads differ.
    pub(super) known: Vec<Option<bool>>,
}

impl<'k> Lowering<'k, '_> {
    /// The limits of a selection; None if the comparison is not between sums of coordinates.
    pub(super) fn limit(
        &self,
        result: ValueId,
        comparison: Comparison,
        operands: &[ValueId],
    ) -> Result<Option<Limits<'k>>, KernelError> {
        let k = self.k;
        let Some((difference, bound)) = Sums::new(&self.placed.program).counted(comparison, operands) else {
            return Ok(None);
        };
        let Some(constant) = difference.constant().filter(|_| !difference.coordinates.is_empty()) else {
            return Ok(None);
        };
        // Terms that change in each iteration are added last, so that the rest is computed once.
        let (mut fixed, mut turned) = (Expr::from(bound - constant), Expr::from(0));
        for (term, by) in &difference.terms {
            let one = match term {
                SumTerm::Name(name) => self.index(&Index { terms: vec![(*name, 1)], ..Index::from(0) })?,
                SumTerm::Size(text) => k.size(text)?,
            };
            let part = Stride::times(&one, &Expr::from(-by)).ok_or_else(over)?;
            let turns = matches!(term, SumTerm::Name(name) if matches!(name.counter(), Counter::Iteration(_)));
            let sum = if turns { &mut turned } else { &mut fixed };
            *sum = Stride::plus(sum, &part).ok_or_else(over)?;
        }
        let mut limit = k.index(&fixed)?;
        let held = self.held(result)?;
        let shape = &self.placed.program.type_of(result).shape;
        let mut constants = vec![0; held.values() as usize];
        // The least and the greatest sum of the terms that depend on the bits of the thread's
        // index.
        let (mut least, mut most) = (0, 0);
        for (mode, (by, extent)) in &difference.coordinates {
            let coordinates = k.distributed_index(&self.distribution(result)?, *mode)?.fragment().numbers()?;
            let first = *coordinates.first().ok_or_else(over)?;
            limit = match by {
                1 => limit - first,
                -1 => limit + first,
                by => limit - first * k.number_of(Element::I32, *by as f64),
            };
            let below: i64 = shape[..*mode].iter().product();
            for (value, constant) in constants.iter_mut().enumerate() {
                *constant += by * (held.element(0, value as i64) / below % extent);
            }
            let of_threads = by * (held.element(held.threads() - 1, 0) / below % extent);
            (least, most) = (least + of_threads.min(0), most + of_threads.max(0));
        }
        if turned != Expr::from(0) {
            limit = limit + k.index(&turned)?;
        }
        let known = |own: &i64| match own {
            _ if !difference.terms.is_empty() => None,
            own if own + most <= bound - constant => Some(true),
            own if own + least > bound - constant => Some(false),
            _ => None,
        };
        let known = constants.iter().map(known).collect();
        Ok(Some(Limits { constants, limit, known }))
    }
}
