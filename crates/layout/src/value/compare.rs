//! Orders on nested tuples.
//!
//! Law: there are three, and they agree on numbers.
//!
//! * *elementwise*: every leaf is compared with its partner; a partial order. It decides whether a
//!   coordinate is inside a shape.
//! * *lexicographic*: the first mode decides, then the next; the order of indices in a row-major
//!   shape.
//! * *colexicographic*: the last mode decides, then the one before; the order of indices in a
//!   column-major shape.
//!
//! A number and a tuple of one number are equal. If ranks differ, modes are paired from the end
//! that decides first, and of two tuples that agree there the one of lower rank is less.
//! Elementwise, excess modes of the greater side are ignored, and excess modes of the smaller side
//! refute the comparison (CuTe `elem_less`, `lex_less`, `colex_less` and similar functions).

use core::cmp::Ordering;

use crate::value::number::{Extent, Truth};
use crate::value::shape::both;
use crate::value::tree::{Tree, TreeRef};

impl<N: Extent> Tree<N> {
    /// Whether every leaf is less than its partner in `other`.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let inside = |coord: &str, shape: &str| {
    ///     let (coord, shape): (Tree<i64>, Tree<i64>) = (coord.parse().unwrap(), shape.parse().unwrap());
    ///     coord.elem_less(&shape).proved()
    /// };
    /// assert!(inside("(3,(1,2))", "(4,(2,3))") && !inside("(3,(2,0))", "(4,(2,3))"));
    /// ```
    pub fn elem_less(&self, other: &Tree<N>) -> Truth {
        elementwise(self.as_ref(), other.as_ref(), &|a, b| a.less(b))
    }

    /// Whether every leaf is at most its partner in `other`.
    pub fn elem_leq(&self, other: &Tree<N>) -> Truth {
        elementwise(self.as_ref(), other.as_ref(), &|a, b| not(b.less(a)))
    }

    /// Whether every leaf of `other` is less than its partner here.
    pub fn elem_gtr(&self, other: &Tree<N>) -> Truth {
        other.elem_less(self)
    }

    /// Whether every leaf of `other` is at most its partner here.
    pub fn elem_geq(&self, other: &Tree<N>) -> Truth {
        other.elem_leq(self)
    }

    /// The lexicographic order; None if it depends on a value that is not known.
    ///
    /// ```
    /// use core::cmp::Ordering;
    /// use tilewright_layout::Tree;
    ///
    /// let (a, b): (Tree<i64>, Tree<i64>) = ("(1,5)".parse().unwrap(), "(2,0)".parse().unwrap());
    /// assert_eq!(a.lex_cmp(&b), Some(Ordering::Less));
    /// assert_eq!(a.colex_cmp(&b), Some(Ordering::Greater));
    /// ```
    pub fn lex_cmp(&self, other: &Tree<N>) -> Option<Ordering> {
        lexicographic(self.as_ref(), other.as_ref())
    }

    /// Whether this comes before `other` lexicographically.
    pub fn lex_less(&self, other: &Tree<N>) -> Truth {
        answer(self.lex_cmp(other), Ordering::is_lt)
    }

    /// Whether this does not come after `other` lexicographically.
    pub fn lex_leq(&self, other: &Tree<N>) -> Truth {
        answer(self.lex_cmp(other), Ordering::is_le)
    }

    /// Whether this comes after `other` lexicographically.
    pub fn lex_gtr(&self, other: &Tree<N>) -> Truth {
        answer(self.lex_cmp(other), Ordering::is_gt)
    }

    /// Whether this does not come before `other` lexicographically.
    pub fn lex_geq(&self, other: &Tree<N>) -> Truth {
        answer(self.lex_cmp(other), Ordering::is_ge)
    }

    /// The colexicographic order; None if it depends on a value that is not known.
    pub fn colex_cmp(&self, other: &Tree<N>) -> Option<Ordering> {
        colexicographic(self.as_ref(), other.as_ref())
    }

    /// Whether this comes before `other` colexicographically.
    pub fn colex_less(&self, other: &Tree<N>) -> Truth {
        answer(self.colex_cmp(other), Ordering::is_lt)
    }

    /// Whether this does not come after `other` colexicographically.
    pub fn colex_leq(&self, other: &Tree<N>) -> Truth {
        answer(self.colex_cmp(other), Ordering::is_le)
    }

    /// Whether this comes after `other` colexicographically.
    pub fn colex_gtr(&self, other: &Tree<N>) -> Truth {
        answer(self.colex_cmp(other), Ordering::is_gt)
    }

    /// Whether this does not come before `other` colexicographically.
    pub fn colex_geq(&self, other: &Tree<N>) -> Truth {
        answer(self.colex_cmp(other), Ordering::is_ge)
    }
}

fn not(truth: Truth) -> Truth {
    match truth {
        Truth::Proved => Truth::Refuted,
        Truth::Refuted => Truth::Proved,
        Truth::Open => Truth::Open,
    }
}

fn answer(order: Option<Ordering>, test: fn(Ordering) -> bool) -> Truth {
    order.map_or(Truth::Open, |order| Truth::from(test(order)))
}

/// The two numbers, if both sides are numbers.
fn numbers<'a, N>(a: TreeRef<'a, N>, b: TreeRef<'a, N>) -> Option<(&'a N, &'a N)> {
    if a.is_leaf() && b.is_leaf() { a.leaves.first().zip(b.leaves.first()) } else { None }
}

fn elementwise<N: Extent>(a: TreeRef<'_, N>, b: TreeRef<'_, N>, test: &dyn Fn(&N, &N) -> Truth) -> Truth {
    if let Some((a, b)) = numbers(a, b) {
        return test(a, b);
    }
    if a.rank() > b.rank() {
        return Truth::Refuted;
    }
    a.modes().zip(b.modes()).fold(Truth::Proved, |truth, (a, b)| both(truth, elementwise(a, b, test)))
}

fn leaf_order<N: Extent>(a: &N, b: &N) -> Option<Ordering> {
    if a.same(b).proved() {
        Some(Ordering::Equal)
    } else if a.less(b).proved() {
        Some(Ordering::Less)
    } else if b.less(a).proved() {
        Some(Ordering::Greater)
    } else {
        None
    }
}

fn lexicographic<N: Extent>(a: TreeRef<'_, N>, b: TreeRef<'_, N>) -> Option<Ordering> {
    if let Some((a, b)) = numbers(a, b) {
        return leaf_order(a, b);
    }
    for (a, b) in a.modes().zip(b.modes()) {
        match lexicographic(a, b)? {
            Ordering::Equal => {}
            order => return Some(order),
        }
    }
    Some(a.rank().cmp(&b.rank()))
}

fn colexicographic<N: Extent>(a: TreeRef<'_, N>, b: TreeRef<'_, N>) -> Option<Ordering> {
    if let Some((a, b)) = numbers(a, b) {
        return leaf_order(a, b);
    }
    // The modes are paired from the end. The last pair that differs decides, whatever the earlier
    // pairs are.
    let (excess_a, excess_b) = (a.rank().saturating_sub(b.rank()), b.rank().saturating_sub(a.rank()));
    let mut order = Some(a.rank().cmp(&b.rank()));
    for (a, b) in a.modes().skip(excess_a).zip(b.modes().skip(excess_b)) {
        match colexicographic(a, b) {
            Some(Ordering::Equal) => {}
            decided => order = decided,
        }
    }
    order
}
