//! Integers that are linear in blocks, iterations, sizes and coordinates.
//!
//! Law: each element of such a tile is a multiple of each name, plus a multiple of the coordinate
//! along each mode, plus a number between two bounds. These are exact integers: sums that overflow
//! 32 bits are not compared ([`crate::interpret`] refuses them).

use std::collections::{BTreeMap, HashMap};

use crate::program::statement::definitions;
use crate::program::{Binary, Comparison, Index, Name, Operation, Program, ValueId};

/// A variable of a sum: it has a value at launch, in a block, or in an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum SumTerm {
    Name(Name),
    Size(String),
}

/// A sum of terms and coordinates, plus a number between two bounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub(crate) terms: HashMap<SumTerm, i64>,
    /// For each mode, the factor of its coordinate, and its extent.
    pub(crate) coordinates: BTreeMap<usize, (i64, i64)>,
    least: i64,
    greatest: i64,
}

impl Sum {
    fn number(value: i64) -> Sum {
        Sum { least: value, greatest: value, ..Sum::default() }
    }

    /// A factor times a term.
    pub(crate) fn of_term(term: SumTerm, by: i64) -> Sum {
        Sum { terms: HashMap::from([(term, by)]), ..Sum::default() }
    }

    /// An index as a sum.
    pub(crate) fn of_index(index: &Index) -> Sum {
        let terms = index.terms.iter().map(|(name, by)| (SumTerm::Name(*name), *by)).collect();
        Sum { terms, ..Sum::number(index.constant) }
    }

    /// The constant term of the sum, if it is known exactly.
    pub(crate) fn constant(&self) -> Option<i64> {
        (self.least == self.greatest).then_some(self.least)
    }

    /// The greatest sum of the coordinates and the number, without the terms; None if it overflows.
    pub(crate) fn greatest(&self) -> Option<i64> {
        let most = |by: i64, extent: i64| by.max(0).checked_mul(extent - 1);
        self.coordinates.values().try_fold(self.greatest, |sum, (by, extent)| sum.checked_add(most(*by, *extent)?))
    }

    /// The greatest value of the sum, given a value for each term; None if a value is missing or it
    /// overflows.
    pub(crate) fn most(&self, of: impl Fn(&SumTerm) -> Option<i64>) -> Option<i64> {
        let add = |sum: i64, (term, by): (&SumTerm, &i64)| sum.checked_add(of(term)?.checked_mul(*by)?);
        self.terms.iter().try_fold(self.greatest()?, add)
    }

    /// Whether all factors, and the number, are non-negative.
    fn is_counted(&self) -> bool {
        self.least >= 0 && self.terms.values().all(|by| *by >= 0) && self.coordinates.values().all(|(by, _)| *by >= 0)
    }

    /// The sum times a factor; None if it overflows.
    pub(crate) fn scaled(&self, by: i64) -> Option<Sum> {
        let times = |own: i64| own.checked_mul(by);
        let terms = self.terms.iter().map(|(name, own)| Some((name.clone(), times(*own)?))).collect::<Option<_>>()?;
        let coordinates = self.coordinates.iter().map(|(mode, (own, extent))| Some((*mode, (times(*own)?, *extent))));
        let (a, b) = (times(self.least)?, times(self.greatest)?);
        Some(Sum { terms, coordinates: coordinates.collect::<Option<_>>()?, least: a.min(b), greatest: a.max(b) })
    }

    /// The sum of two sums; None if it overflows.
    pub(crate) fn plus(&self, other: &Sum) -> Option<Sum> {
        let mut sum = self.clone();
        for (name, by) in &other.terms {
            let own = sum.terms.entry(name.clone()).or_insert(0);
            *own = own.checked_add(*by)?;
        }
        for (mode, (by, extent)) in &other.coordinates {
            let own = sum.coordinates.entry(*mode).or_insert((0, *extent));
            own.0 = own.0.checked_add(*by)?;
        }
        sum.terms.retain(|_, by| *by != 0);
        sum.coordinates.retain(|_, (by, _)| *by != 0);
        (sum.least, sum.greatest) = (self.least.checked_add(other.least)?, self.greatest.checked_add(other.greatest)?);
        Some(sum)
    }

    /// The same sum without coordinates: their range becomes part of the number's range.
    fn without_modes(mut self) -> Option<Sum> {
        for (by, extent) in std::mem::take(&mut self.coordinates).into_values() {
            let end = by.checked_mul(extent - 1)?;
            (self.least, self.greatest) = (self.least.checked_add(end.min(0))?, self.greatest.checked_add(end.max(0))?);
        }
        Some(self)
    }
}

/// The definitions of a program's values.
pub(crate) struct Sums<'p> {
    given: HashMap<ValueId, (&'p Operation, &'p [ValueId])>,
}

impl<'p> Sums<'p> {
    pub(crate) fn new(program: &'p Program) -> Sums<'p> {
        Sums { given: definitions(&program.body).map(|(value, operation, from)| (value, (operation, from))).collect() }
    }

    /// A value as a sum; None if it is not linear.
    fn of(&self, value: ValueId) -> Option<Sum> {
        let (operation, operands) = self.given.get(&value)?;
        match operation {
            Operation::Constant(element, value) => {
                let whole = !element.is_float() && value.fract() == 0.0 && value.abs() < 1e9;
                whole.then(|| Sum::number(*value as i64))
            }
            Operation::Number(index) => Some(Sum::of_index(index)),
            Operation::Size(text) => Some(Sum::of_term(SumTerm::Size(text.trim().to_string()), 1)),
            Operation::Arange { shape, mode } => {
                let extent = *shape.get(*mode)?;
                let coordinates = (extent > 1).then_some((*mode, (1, extent))).into_iter().collect();
                Some(Sum { coordinates, ..Sum::default() })
            }
            // Broadcast modes had extent 1, so their coordinate was 0.
            Operation::Broadcast(_) | Operation::Held(_) => self.of(operands[0]),
            Operation::Transpose(order) => {
                let sum = self.of(operands[0])?;
                let moved = |(mode, own): (&usize, &(i64, i64))| Some((order.iter().position(|at| at == mode)?, *own));
                let coordinates = sum.coordinates.iter().map(moved).collect::<Option<_>>()?;
                Some(Sum { coordinates, ..sum })
            }
            Operation::Reshape(_) => self.of(operands[0])?.without_modes(),
            Operation::Binary(Binary::Add) => self.of(operands[0])?.plus(&self.of(operands[1])?),
            Operation::Binary(Binary::Subtract) => self.of(operands[0])?.plus(&self.of(operands[1])?.scaled(-1)?),
            _ => None,
        }
    }

    /// The number that all elements of a value are equal to, if it is known.
    pub(crate) fn number(&self, value: ValueId) -> Option<i64> {
        let sum = self.of(value)?;
        sum.constant().filter(|_| sum.terms.is_empty() && sum.coordinates.is_empty())
    }

    /// The sides of a comparison of two sums.
    pub(crate) fn sides(&self, operands: &[ValueId]) -> Option<[Sum; 2]> {
        let [left, right, ..] = operands else { return None };
        Some([self.of(*left)?, self.of(*right)?])
    }

    /// A comparison of two sums, as `difference <= bound`: the difference and the bound.
    pub(crate) fn difference(&self, comparison: Comparison, operands: &[ValueId]) -> Option<(Sum, i64)> {
        let bound = match comparison {
            Comparison::LessEqual => 0,
            Comparison::Less => -1,
            Comparison::Equal => return None,
        };
        let [left, right] = self.sides(operands)?;
        Some((left.plus(&right.scaled(-1)?)?, bound))
    }

    /// The same; None if a term of either side may be negative.
    pub(crate) fn counted(&self, comparison: Comparison, operands: &[ValueId]) -> Option<(Sum, i64)> {
        let counted = self.sides(operands)?.iter().all(Sum::is_counted);
        self.difference(comparison, operands).filter(|_| counted)
    }
}
