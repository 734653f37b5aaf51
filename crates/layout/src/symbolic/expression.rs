//! Expressions: numbers that are known now or become known at launch.
//!
//! Law: an expression has a value for every admissible choice of its parameters, and arithmetic on
//! expressions is arithmetic on the values. Equal polynomials are equal expressions. A proof or
//! refutation holds for every admissible value.
//!
//! A known number is stored as an integer: its arithmetic costs as much as that of `i64`, and
//! allocates nothing. Every other expression is a shared polynomial ([`super::polynomial`]).

use alloc::sync::Arc;

use super::bounds::{Bounds, not_negative};
use super::parameter::Parameter;
use super::polynomial::{self, Atom, Polynomial, Term, Terms};
use super::{divisor, quotient};
use crate::ground::words::debug_as_text;
use crate::value::number::{Extent, Stride, Truth};

/// An integer over parameters that become known at launch.
///
/// It is an extent and a stride: `Layout<Expr>` is a layout of such numbers. Comparison with `==`
/// is by canonical form: equal polynomials are equal. Whether two expressions have the same *value*
/// is a question with three answers, [`Stride::same`].
///
/// An expression of more than 256 terms, or one with a coefficient beyond 64 bits, counts as not
/// representable, as does a number beyond 64 bits.
///
/// ```
/// use tilewright_layout::symbolic::Expr;
/// use tilewright_layout::{Extent, Stride, Truth};
///
/// let m: Expr = "M{div=128}".parse().unwrap();
/// let tiles = m.divide_up(&Expr::from(128)).unwrap();
/// assert_eq!(tiles.to_string(), "M/128");
/// assert_eq!(tiles.times(&Expr::from(128)).unwrap(), m);
/// assert_eq!(Expr::from(64).divides(&m), Truth::Proved);
/// assert_eq!(Expr::from(256).divides(&m), Truth::Open);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expr(ExprForm);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ExprForm {
    Known(i64),
    Symbolic(Arc<Polynomial>),
}

use ExprForm::{Known, Symbolic};

impl From<i64> for Expr {
    #[inline(always)]
    fn from(value: i64) -> Expr {
        Expr(Known(value))
    }
}

impl From<Parameter> for Expr {
    /// The value of the parameter; a known number if the facts admit only one value.
    fn from(parameter: Parameter) -> Expr {
        let facts = parameter.facts();
        if let (Some(least), Some(greatest)) = (facts.least(), facts.greatest())
            && least == greatest
        {
            return Expr::known(least);
        }
        Expr::of_atom(Atom::Unit(parameter), facts.divisor())
    }
}

/// The terms of an expression, by reference if they are stored.
pub(crate) enum TermsOf<'a> {
    Own(Option<Term>),
    Shared(&'a [Term]),
}

impl core::ops::Deref for TermsOf<'_> {
    type Target = [Term];

    fn deref(&self) -> &[Term] {
        match self {
            TermsOf::Own(term) => term.as_slice(),
            TermsOf::Shared(terms) => terms,
        }
    }
}

impl Expr {
    #[inline(always)]
    pub(crate) fn known(value: i64) -> Expr {
        Expr(Known(value))
    }

    /// `coefficient * atom`.
    pub(crate) fn of_atom(atom: Atom, coefficient: i64) -> Expr {
        let mut terms = Terms::new();
        if coefficient != 0 {
            terms.push(Term { monomial: core::iter::once(atom).collect(), coefficient });
        }
        Expr::from_terms(terms)
    }

    /// The sum of terms that are sorted.
    pub(crate) fn from_terms(terms: Terms) -> Expr {
        match terms.as_slice() {
            [] => Expr(Known(0)),
            [only] if only.monomial.is_empty() => Expr(Known(only.coefficient)),
            _ => Expr(Symbolic(Arc::new(Polynomial::new(terms)))),
        }
    }

    /// The terms, the greatest monomial first; empty for 0.
    pub(crate) fn terms(&self) -> TermsOf<'_> {
        match &self.0 {
            Known(0) => TermsOf::Own(None),
            Known(value) => TermsOf::Own(Some(Term::constant(*value))),
            Symbolic(polynomial) => TermsOf::Shared(&polynomial.terms),
        }
    }

    /// The bounds of the value, from those of the parameters.
    pub(crate) fn bounds(&self) -> Bounds {
        match &self.0 {
            Known(value) => Bounds::exactly(*value),
            Symbolic(polynomial) => polynomial.bounds,
        }
    }

    /// A lower and an upper bound of all admissible values, as far as the facts imply them.
    ///
    /// ```
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let bounds = |text: &str| text.parse::<Expr>().unwrap().range();
    /// assert_eq!(bounds("16*M{min=4}+1"), (Some(65), None));
    /// assert_eq!(bounds("ceil(M{max=100}/8)"), (Some(1), Some(13)));
    /// ```
    pub fn range(&self) -> (Option<i64>, Option<i64>) {
        match &self.0 {
            Known(value) => (Some(*value), Some(*value)),
            Symbolic(polynomial) => (polynomial.bounds.least(), polynomial.bounds.greatest()),
        }
    }

    pub(crate) fn plus_expr(&self, other: &Expr) -> Option<Expr> {
        self.combine(other, 1)
    }

    pub(crate) fn minus_expr(&self, other: &Expr) -> Option<Expr> {
        self.combine(other, -1)
    }

    pub(crate) fn negated(&self) -> Option<Expr> {
        self.times_expr(&Expr::known(-1))
    }

    /// `self + factor * other`.
    #[inline(never)]
    fn combine(&self, other: &Expr, factor: i64) -> Option<Expr> {
        let terms = match (&self.0, &other.0) {
            (_, Known(0)) => return Some(self.clone()),
            (Known(a), Known(b)) => return Some(Expr::known(a.checked_add(b.checked_mul(factor)?)?)),
            (Symbolic(a), Known(b)) => polynomial::affine(&a.terms, 1, b.checked_mul(factor)?)?,
            (Known(0), Symbolic(_)) if factor == 1 => return Some(other.clone()),
            (Known(a), Symbolic(b)) => polynomial::affine(&b.terms, factor, *a)?,
            (Symbolic(a), Symbolic(b)) => polynomial::add(&a.terms, &b.terms, factor)?,
        };
        Some(Expr::from_terms(terms))
    }

    #[inline(never)]
    pub(crate) fn times_expr(&self, other: &Expr) -> Option<Expr> {
        match (&self.0, &other.0) {
            (Known(0), _) | (_, Known(0)) => Some(Expr::known(0)),
            (Known(1), _) => Some(other.clone()),
            (_, Known(1)) => Some(self.clone()),
            (Known(a), Known(b)) => a.checked_mul(*b).map(Expr::known),
            (Known(factor), Symbolic(p)) | (Symbolic(p), Known(factor)) => {
                Some(Expr::from_terms(polynomial::affine(&p.terms, *factor, 0)?))
            }
            (Symbolic(a), Symbolic(b)) => Some(Expr::from_terms(polynomial::multiply(&a.terms, &b.terms)?)),
        }
    }

    /// Whether the difference `self - other` is proved to be at least `by`.
    fn exceeds(&self, other: &Expr, by: i64) -> bool {
        let (own, others) = (self.bounds(), other.bounds());
        if let (Some(least), Some(greatest)) = (own.least(), others.greatest())
            && i128::from(least) - i128::from(greatest) >= i128::from(by)
        {
            return true;
        }
        self.minus_expr(other)
            .and_then(|difference| difference.minus_expr(&Expr::known(by)))
            .is_some_and(|p| not_negative(&p))
    }

    #[inline(never)]
    fn less_expr(&self, other: &Expr) -> Truth {
        let (own, others) = (self.bounds(), other.bounds());
        if own.greatest < others.least {
            return Truth::Proved;
        }
        if own.least > others.greatest {
            return Truth::Refuted;
        }
        // The bounds of the difference usually decide, and cost less than the difference.
        let Some(bounds) = polynomial::bounds_of_difference(&other.terms(), &self.terms()) else { return Truth::Open };
        if bounds.least >= 1 {
            return Truth::Proved;
        }
        if bounds.greatest <= 0 {
            return Truth::Refuted;
        }
        let Some(room) = other.minus_expr(self) else { return Truth::Open };
        if room.minus_expr(&Expr::known(1)).is_some_and(|excess| not_negative(&excess)) {
            Truth::Proved
        } else if room.negated().is_some_and(|excess| not_negative(&excess)) {
            Truth::Refuted
        } else {
            Truth::Open
        }
    }

    #[inline(never)]
    fn same_expr(&self, other: &Expr) -> Truth {
        if self == other {
            return Truth::Proved;
        }
        let (own, others) = (self.bounds(), other.bounds());
        if own.greatest < others.least || others.greatest < own.least {
            return Truth::Refuted;
        }
        let Some(difference) = self.minus_expr(other) else { return Truth::Open };
        // If all terms of a difference but the last are divisible by a number, and the last is not,
        // the difference is not 0.
        if quotient::indivisible(&difference) || self.exceeds(other, 1) || other.exceeds(self, 1) {
            return Truth::Refuted;
        }
        if self.exceeds(other, 0) && other.exceeds(self, 0) { Truth::Proved } else { Truth::Open }
    }
}

impl Stride for Expr {
    type Extent = Expr;

    #[inline(always)]
    fn zero() -> Expr {
        Expr(Known(0))
    }

    #[inline(always)]
    fn is_zero(&self) -> Truth {
        match &self.0 {
            Known(value) => Truth::from(*value == 0),
            Symbolic(_) => self.same_expr(&Expr::known(0)),
        }
    }

    #[inline(always)]
    fn plus(&self, other: &Expr) -> Option<Expr> {
        match (&self.0, &other.0) {
            (Known(a), Known(b)) => a.checked_add(*b).map(Expr::known),
            _ => self.plus_expr(other),
        }
    }

    #[inline(always)]
    fn times(&self, count: &Expr) -> Option<Expr> {
        match (&self.0, &count.0) {
            (Known(a), Known(b)) => a.checked_mul(*b).map(Expr::known),
            _ => self.times_expr(count),
        }
    }

    #[inline]
    fn continues(&self, extent: &Expr, next: &Expr) -> Truth {
        match self.times(extent) {
            Some(end) if end == *next => Truth::Proved,
            Some(end) => end.same(next),
            None => Truth::Open,
        }
    }

    #[inline(always)]
    fn same(&self, other: &Expr) -> Truth {
        match (&self.0, &other.0) {
            (Known(a), Known(b)) => Truth::from(a == b),
            _ => self.same_expr(other),
        }
    }
}

impl Extent for Expr {
    #[inline(always)]
    fn one() -> Expr {
        Expr(Known(1))
    }

    #[inline(always)]
    fn minus(&self, other: &Expr) -> Option<Expr> {
        match (&self.0, &other.0) {
            (Known(a), Known(b)) => a.checked_sub(*b).map(Expr::known),
            _ => self.minus_expr(other),
        }
    }

    #[inline(always)]
    fn divide(&self, divisor: &Expr) -> Option<(Expr, Expr)> {
        match (&self.0, &divisor.0) {
            (Known(a), Known(b)) => {
                let (quotient, remainder) = a.divide(b)?;
                Some((Expr(Known(quotient)), Expr(Known(remainder))))
            }
            _ => quotient::truncated(self, divisor),
        }
    }

    #[inline(always)]
    fn divides(&self, other: &Expr) -> Truth {
        match (&self.0, &other.0) {
            (Known(a), Known(b)) => a.divides(b),
            _ => quotient::divides(self, other),
        }
    }

    #[inline(always)]
    fn less(&self, other: &Expr) -> Truth {
        match (&self.0, &other.0) {
            (Known(a), Known(b)) => Truth::from(a < b),
            _ => self.less_expr(other),
        }
    }

    #[inline(always)]
    fn known(&self) -> Option<i64> {
        match &self.0 {
            Known(value) => Some(*value),
            Symbolic(_) => None,
        }
    }

    fn greatest_divisor(&self, other: &Expr) -> Option<Expr> {
        divisor::greatest(self, other)
    }

    fn shared_divisor(&self, other: &Expr) -> Expr {
        divisor::shared(self, other)
    }

    #[inline]
    fn divide_up(&self, divisor: &Expr) -> Option<Expr> {
        match (&self.0, &divisor.0) {
            (Known(a), Known(b)) => a.divide_up(b).map(Expr::known),
            _ => quotient::ceil(self, divisor),
        }
    }
}

debug_as_text!(Expr);
