//! The graph of integer operations; equal operations are shared.
//!
//! Law: an operation is in the graph once, however often it is used; operands come before their
//! users; and the value of every operation is in its range, for all allowed values of the
//! variables. An operation whose value its range or its operands determine is replaced by a simpler
//! one.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::emit::range::Range;
use crate::symbolic::Rounding;

/// An operation of a graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Id(u32);

/// An operation on operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Op {
    Integer(i64),
    Truth(bool),
    /// The variable with this number.
    Variable(usize),
    Negative(Id),
    Magnitude(Id),
    Sum(Id, Id),
    Difference(Id, Id),
    Product(Id, Id),
    /// The quotient by a positive divisor.
    Quotient(Id, Id, Rounding),
    /// The remainder of the quotient with this rounding.
    Remainder(Id, Id, Rounding),
    Minimum(Id, Id),
    /// A shift to the left.
    Left(Id, u32),
    /// An arithmetic shift to the right: the quotient by a power of two, rounded down.
    Right(Id, u32),
    /// A bitwise AND with a mask.
    Bits(Id, i64),
    Xor(Id, Id),
    Less(Id, Id),
    AtLeast(Id, Id),
    Both(Id, Id),
    /// The second operand if the first is true, otherwise the third.
    Choice(Id, Id, Id),
}

impl Op {
    /// The operands, in order.
    pub(crate) fn operands(self) -> impl Iterator<Item = Id> {
        let mut operands = [None; 3];
        let mut places = operands.iter_mut();
        self.over(|operand| {
            if let Some(place) = places.next() {
                *place = Some(operand);
            }
            operand
        });
        operands.into_iter().flatten()
    }

    /// The same operation with other operands.
    pub(crate) fn over(self, mut each: impl FnMut(Id) -> Id) -> Op {
        match self {
            Op::Integer(_) | Op::Truth(_) | Op::Variable(_) => self,
            Op::Negative(a) => Op::Negative(each(a)),
            Op::Magnitude(a) => Op::Magnitude(each(a)),
            Op::Sum(a, b) => Op::Sum(each(a), each(b)),
            Op::Difference(a, b) => Op::Difference(each(a), each(b)),
            Op::Product(a, b) => Op::Product(each(a), each(b)),
            Op::Quotient(a, b, rounding) => Op::Quotient(each(a), each(b), rounding),
            Op::Remainder(a, b, rounding) => Op::Remainder(each(a), each(b), rounding),
            Op::Minimum(a, b) => Op::Minimum(each(a), each(b)),
            Op::Left(a, by) => Op::Left(each(a), by),
            Op::Right(a, by) => Op::Right(each(a), by),
            Op::Bits(a, mask) => Op::Bits(each(a), mask),
            Op::Xor(a, b) => Op::Xor(each(a), each(b)),
            Op::Less(a, b) => Op::Less(each(a), each(b)),
            Op::AtLeast(a, b) => Op::AtLeast(each(a), each(b)),
            Op::Both(a, b) => Op::Both(each(a), each(b)),
            Op::Choice(a, b, c) => Op::Choice(each(a), each(b), each(c)),
        }
    }
}

/// A named input of the text, and what is known about its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) range: Range,
    /// A number that divides every value.
    pub(crate) divisor: i64,
    /// The names of the parameters that would have to be bounded for this variable to be bounded:
    /// itself, or those of the size that it indexes.
    pub(crate) open: Vec<String>,
}

#[derive(Clone, Debug)]
struct MadeNode {
    op: Op,
    range: Range,
    /// The lowest number of a variable that the operation uses.
    first: usize,
}

/// Operations, with operands before their users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    variables: Vec<Variable>,
    made: Vec<MadeNode>,
    known: BTreeMap<Op, Id>,
}

impl Graph {
    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// A new variable.
    pub(crate) fn variable(&mut self, variable: Variable) -> Id {
        let range = variable.range;
        self.variables.push(variable);
        match range.only() {
            Some(value) => self.integer(value),
            None => self.add(Op::Variable(self.variables.len() - 1), range),
        }
    }

    /// The operation of the variable with this number.
    pub(crate) fn variable_numbered(&mut self, number: usize) -> Id {
        let range = self.variables.get(number).map_or(Range::ALL, |variable| variable.range);
        match range.only() {
            Some(value) => self.integer(value),
            None => self.add(Op::Variable(number), range),
        }
    }

    /// A graph with the same variables and no operations.
    pub(crate) fn with_variables_of(other: &Graph) -> Graph {
        Graph { variables: other.variables.clone(), ..Graph::default() }
    }

    pub(crate) fn op(&self, id: Id) -> Op {
        self.made.get(id.0 as usize).map_or(Op::Integer(0), |made| made.op)
    }

    pub(crate) fn range(&self, id: Id) -> Range {
        self.made.get(id.0 as usize).map_or(Range::ALL, |made| made.range)
    }

    /// The lowest number of a variable that an operation uses; constants sort last.
    pub(crate) fn first(&self, id: Id) -> usize {
        self.made.get(id.0 as usize).map_or(usize::MAX, |made| made.first)
    }

    /// All operations, operands first.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..self.made.len() as u32).map(Id)
    }

    pub(crate) fn constant(&self, id: Id) -> Option<i64> {
        match self.op(id) {
            Op::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Adds an operation. `range` holds in addition to the range that follows from its operands.
    pub(crate) fn add(&mut self, op: Op, range: Range) -> Id {
        if let Some(id) = self.known.get(&op) {
            let id = *id;
            if let Some(made) = self.made.get_mut(id.0 as usize) {
                made.range = made.range.and(range);
            }
            return id;
        }
        let range = self.range_of(op).and(range);
        let first = match op {
            Op::Variable(number) => number,
            _ => op.operands().map(|operand| self.first(operand)).min().unwrap_or(usize::MAX),
        };
        let id = Id(self.made.len() as u32);
        self.made.push(MadeNode { op, range, first });
        self.known.insert(op, id);
        id
    }

    fn range_of(&self, op: Op) -> Range {
        let of = |id| self.range(id);
        match op {
            Op::Integer(value) => Range::exactly(value),
            Op::Variable(_) | Op::Truth(_) | Op::Less(..) | Op::AtLeast(..) | Op::Both(..) => Range::ALL,
            Op::Negative(a) => Range::exactly(0).minus(of(a)),
            Op::Magnitude(a) => of(a).magnitude(),
            Op::Sum(a, b) => of(a).plus(of(b)),
            Op::Difference(a, b) => of(a).minus(of(b)),
            Op::Product(a, b) => of(a).times(of(b)),
            // The rounding implies that the dividend is not negative.
            Op::Quotient(a, b, rounding @ (Rounding::Plain | Rounding::Up)) => {
                of(a).quotient(of(b), rounding).and(Range { least: Some(0), greatest: None })
            }
            Op::Quotient(a, b, rounding) => of(a).quotient(of(b), rounding),
            Op::Remainder(a, b, rounding) => of(a).remainder(of(b), rounding),
            Op::Minimum(a, b) => of(a).minimum(of(b)),
            Op::Left(a, by) => of(a).times(Range::power(by)),
            Op::Right(a, by) => of(a).quotient(Range::power(by), Rounding::Down),
            Op::Bits(a, mask) => of(a).masked(mask),
            Op::Xor(a, b) => of(a).xor(of(b)),
            Op::Choice(_, a, b) => of(a).or(of(b)),
        }
    }

    pub(crate) fn integer(&mut self, value: i64) -> Id {
        self.add(Op::Integer(value), Range::ALL)
    }

    pub(crate) fn truth(&mut self, value: bool) -> Id {
        self.add(Op::Truth(value), Range::ALL)
    }

    pub(crate) fn negative(&mut self, a: Id) -> Id {
        match self.constant(a).and_then(i64::checked_neg) {
            Some(value) => self.integer(value),
            None => self.add(Op::Negative(a), Range::ALL),
        }
    }

    pub(crate) fn magnitude(&mut self, a: Id) -> Id {
        if self.range(a).not_negative() { a } else { self.add(Op::Magnitude(a), Range::ALL) }
    }

    pub(crate) fn sum(&mut self, a: Id, b: Id) -> Id {
        self.add(Op::Sum(a, b), Range::ALL)
    }

    pub(crate) fn difference(&mut self, a: Id, b: Id) -> Id {
        self.add(Op::Difference(a, b), Range::ALL)
    }

    pub(crate) fn product(&mut self, a: Id, b: Id) -> Id {
        match (self.constant(a), self.constant(b)) {
            (Some(1), _) => b,
            (_, Some(1)) => a,
            _ => self.add(Op::Product(a, b), Range::ALL),
        }
    }

    /// The quotient by a positive divisor; a shift where the divisor is a power of two and the
    /// rounding allows it.
    pub(crate) fn quotient(&mut self, n: Id, d: Id, rounding: Rounding) -> Id {
        let constant = self.constant(d);
        if constant == Some(1) {
            return n;
        }
        let rounding = match rounding {
            Rounding::TowardZero | Rounding::Down if self.range(n).not_negative() => Rounding::Plain,
            other => other,
        };
        match (power_of_two(constant), rounding) {
            (Some(by), Rounding::Exact | Rounding::Plain | Rounding::Down) => self.right(n, by),
            (Some(by), Rounding::Up) => {
                let most = self.integer((1 << by) - 1);
                let n = self.sum(n, most);
                self.right(n, by)
            }
            _ => self.add(Op::Quotient(n, d, rounding), Range::ALL),
        }
    }

    /// The remainder of a division; a mask if the divisor is a power of two and the rounding allows
    /// it.
    pub(crate) fn remainder(&mut self, n: Id, d: Id, rounding: Rounding) -> Id {
        let constant = self.constant(d);
        if constant == Some(1) || rounding == Rounding::Exact {
            return self.integer(0);
        }
        let rounding = match rounding {
            Rounding::TowardZero | Rounding::Down if self.range(n).not_negative() => Rounding::Plain,
            other => other,
        };
        match (power_of_two(constant), rounding) {
            (Some(by), Rounding::Plain | Rounding::Down) => self.bits(n, (1 << by) - 1),
            _ => self.add(Op::Remainder(n, d, rounding), Range::ALL),
        }
    }

    pub(crate) fn minimum(&mut self, a: Id, b: Id) -> Id {
        // A constant is the second operand, because some languages have no minimum function of a
        // literal.
        let (a, b) = if self.constant(a).is_some() { (b, a) } else { (a, b) };
        if a == b { a } else { self.add(Op::Minimum(a, b), Range::ALL) }
    }

    pub(crate) fn left(&mut self, a: Id, by: u32) -> Id {
        if by == 0 { a } else { self.add(Op::Left(a, by), Range::ALL) }
    }

    pub(crate) fn right(&mut self, a: Id, by: u32) -> Id {
        match self.op(a) {
            _ if by == 0 => a,
            Op::Right(inner, before) if before + by < 64 => self.right(inner, before + by),
            _ if self.range(a).within(0, (1 << by) - 1) => self.integer(0),
            _ => self.add(Op::Right(a, by), Range::ALL),
        }
    }

    pub(crate) fn bits(&mut self, a: Id, mask: i64) -> Id {
        match mask {
            0 => return self.integer(0),
            -1 => return a,
            _ => {}
        }
        // The mask has all bits that may be set.
        let low = mask > 0 && mask.checked_add(1).is_none_or(|next| next & mask == 0);
        if low && self.range(a).within(0, i128::from(mask)) { a } else { self.add(Op::Bits(a, mask), Range::ALL) }
    }

    pub(crate) fn xor(&mut self, a: Id, b: Id) -> Id {
        match (self.constant(a), self.constant(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(a), Some(b)) => self.integer(a ^ b),
            _ => self.add(Op::Xor(a, b), Range::ALL),
        }
    }

    /// The comparison `a < b`, or a constant if the ranges decide it.
    pub(crate) fn less(&mut self, a: Id, b: Id) -> Id {
        match self.range(a).less(self.range(b)) {
            Some(value) => self.truth(value),
            None => self.add(Op::Less(a, b), Range::ALL),
        }
    }

    pub(crate) fn not_negative(&mut self, a: Id) -> Id {
        if self.range(a).not_negative() {
            return self.truth(true);
        }
        let zero = self.integer(0);
        self.add(Op::AtLeast(a, zero), Range::ALL)
    }

    pub(crate) fn both(&mut self, a: Id, b: Id) -> Id {
        match (self.op(a), self.op(b)) {
            (Op::Truth(true), _) => b,
            (_, Op::Truth(true)) => a,
            (Op::Truth(false), _) => a,
            (_, Op::Truth(false)) => b,
            _ if a == b => a,
            _ => self.add(Op::Both(a, b), Range::ALL),
        }
    }

    pub(crate) fn choice(&mut self, condition: Id, yes: Id, no: Id) -> Id {
        if yes == no { yes } else { self.add(Op::Choice(condition, yes, no), Range::ALL) }
    }
}

/// The exponent of a power of two.
pub(crate) fn power_of_two(value: Option<i64>) -> Option<u32> {
    value.filter(|value| *value > 0 && value & (value - 1) == 0).map(i64::trailing_zeros)
}

impl Graph {
    /// A number that divides every value of an operation.
    pub(crate) fn divisor(&self, id: Id) -> i64 {
        match self.op(id) {
            Op::Variable(number) => self.variables.get(number).map_or(1, |variable| variable.divisor),
            _ => 1,
        }
    }
}
