//! Conditions: comparisons of tiles, and their combinations.
//!
//! Law: a condition is not an operation of a program. A selection by a condition becomes one
//! selection for each comparison, so whatever is proved about a comparison also holds there.

use std::ops;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use super::{Build, Value};
use crate::program::{Comparison, Operation, ValueId, here};

/// The most comparisons of a condition. A condition with more becomes a tile first. Otherwise a
/// condition that is built by repeatedly combining it with itself would grow exponentially.
const MAX_COMPARISONS: usize = 32;

/// A condition. It refers to its parts by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition {
    Compare(Comparison, ValueId, ValueId),
    Not(usize),
    Both(usize, usize),
    Either(usize, usize),
}

/// Whether something holds of tiles, element by element: a comparison, or conditions combined by
/// `&`, `|` and `!`. It selects between two tiles.
///
/// ```
/// use tilewright_tile::{Element, Program, interpret};
///
/// // A causal mask with a window of 8 keys.
/// let mask = Program::build("mask", |t| {
///     let y = t.output(Element::F32, "y", "(16,16):(16,1)")?;
///     let [query, key] = [0, 1].map(|mode| t.arange(&[16, 16], mode));
///     let seen = key.le(query) & (query - key).lt(t.integer(8));
///     t.store(y, &[0.into(), 0.into()], seen.select(t.number(0.0), t.number(f64::NEG_INFINITY)));
///     Ok(())
/// })?;
/// let found = &interpret::run(&mask, &[], &[])?[0].1;
/// assert_eq!((found[9 * 16 + 1], found[9 * 16 + 2]), (Some(f64::NEG_INFINITY), Some(0.0)));
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Mask<'t> {
    build: &'t Build,
    number: usize,
    /// The number of comparisons of the condition.
    size: usize,
}

impl<'t> Mask<'t> {
    fn of(build: &'t Build, condition: Condition, size: usize) -> Mask<'t> {
        let mut conditions = build.conditions.borrow_mut();
        conditions.push(condition);
        Mask { build, number: conditions.len() - 1, size }
    }

    pub(crate) fn compared(comparison: Comparison, left: Value<'t>, right: Value<'t>) -> Mask<'t> {
        Mask::of(left.build, Condition::Compare(comparison, left.id, right.id), 1)
    }

    fn joined(self, other: Mask<'t>, place: Location, of: fn(usize, usize) -> Condition) -> Mask<'t> {
        let short = |own: Mask<'t>| match self.size + other.size > MAX_COMPARISONS && own.size > 1 {
            true => {
                let number = own.number_at(place);
                !Mask::compared(Comparison::Equal, number, number.constant(0.0, place))
            }
            false => own,
        };
        let (a, b) = (short(self), short(other));
        Mask::of(self.build, of(a.number, b.number), a.size + b.size)
    }

    /// `yes` where the condition is true, `no` elsewhere.
    #[track_caller]
    pub fn select(self, yes: Value<'t>, no: Value<'t>) -> Value<'t> {
        self.selected(yes, no, here())
    }

    /// A tile of i32: 1 where the condition is true, 0 elsewhere. [`Value::is_set`] turns such a
    /// tile into a condition again.
    #[track_caller]
    pub fn number(self) -> Value<'t> {
        self.number_at(here())
    }

    pub(crate) fn number_at(self, place: Location) -> Value<'t> {
        let constant = |value: f64| self.build.apply("number", Operation::Constant(Element::I32, value), &[], place);
        let (yes, no) = (constant(1.0), constant(0.0));
        self.selected(yes, no, place)
    }

    pub(crate) fn selected(self, mut yes: Value<'t>, mut no: Value<'t>, place: Location) -> Value<'t> {
        let build = self.build;
        let mut number = self.number;
        loop {
            let condition = build.conditions.borrow().get(number).copied();
            let inner = |part: usize| Mask { build, number: part, size: 1 }.selected(yes, no, place);
            match condition {
                Some(Condition::Compare(comparison, left, right)) => {
                    let [left, right] = [left, right].map(|id| Value { build, id });
                    let all = Value::together([left, right, yes, no], "select", place);
                    return build.apply("select", Operation::Select(comparison), &all.map(|value| value.id), place);
                }
                Some(Condition::Not(part)) => {
                    std::mem::swap(&mut yes, &mut no);
                    number = part;
                }
                Some(Condition::Both(first, second)) => {
                    yes = inner(second);
                    number = first;
                }
                Some(Condition::Either(first, second)) => {
                    no = inner(second);
                    number = first;
                }
                None => return yes,
            }
        }
    }
}

impl<'t> Value<'t> {
    /// Whether each element is less than another's.
    pub fn lt(self, other: Value<'t>) -> Mask<'t> {
        Mask::compared(Comparison::Less, self, other)
    }

    /// Whether each element is at most another's.
    pub fn le(self, other: Value<'t>) -> Mask<'t> {
        Mask::compared(Comparison::LessEqual, self, other)
    }

    /// Whether each element equals another's.
    pub fn eq(self, other: Value<'t>) -> Mask<'t> {
        Mask::compared(Comparison::Equal, self, other)
    }

    /// Whether each element of i32 is different from 0: turns a tile of 1 and 0 into a condition.
    #[track_caller]
    pub fn is_set(self) -> Mask<'t> {
        let zero = self.constant(0.0, here());
        !self.eq(zero)
    }
}

impl<'t> ops::BitAnd for Mask<'t> {
    type Output = Mask<'t>;

    #[track_caller]
    fn bitand(self, other: Mask<'t>) -> Mask<'t> {
        self.joined(other, here(), Condition::Both)
    }
}

impl<'t> ops::BitOr for Mask<'t> {
    type Output = Mask<'t>;

    #[track_caller]
    fn bitor(self, other: Mask<'t>) -> Mask<'t> {
        self.joined(other, here(), Condition::Either)
    }
}

impl<'t> ops::Not for Mask<'t> {
    type Output = Mask<'t>;

    fn not(self) -> Mask<'t> {
        Mask::of(self.build, Condition::Not(self.number), self.size)
    }
}
