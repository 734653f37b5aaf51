//! Predicates of layouts of expressions.
//!
//! Law: an answer is that of [the predicates of numbers](crate::Layout) for every admissible value.
//! If it is not the same for all values, or no proof is found, the error has a fact that would
//! decide it.
//!
//! The criteria are those of numbers (`predicate.rs`), with the modes `s_k:d_k` sorted by the
//! magnitudes of their strides and `r_k` the reach of those before: an interval where
//! `d_k <= r_k + 1`, distinct where `d_k > r_k`, a bijection where `d_k` is the product of the
//! extents before. A mode of one position adds nothing to the reach, and its stride does not
//! matter. So a criterion is tested only for the values at which its mode has several positions. If
//! it fails for all of these, and the mode certainly has several positions, the predicate is false.
//!
//! That values are *not* distinct is proved by a collision: a stride that is `q` times another one,
//! of a mode of more than `q` positions; or by counting: more coordinates than there are multiples
//! of a common stride within reach. That they are *not* an interval is certain if no stride is 1.
//! Neither proof needs the order of the strides.

use smallvec::SmallVec;

use super::expression::Expr;
use super::polynomial::Term;
use crate::algebra::complement::{MovingMode, by_stride};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::kind::ExtentKind;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::tree::Tree;

type SymbolicModes = SmallVec<[MovingMode<Expr>; 8]>;

/// An answer that is being computed: false as soon as one criterion fails for every value, open if
/// one may fail.
struct PartialAnswer {
    op: &'static str,
    open: Option<LayoutError>,
}

impl PartialAnswer {
    fn new(op: &'static str) -> PartialAnswer {
        PartialAnswer { op, open: None }
    }

    fn ask(&mut self, condition: Condition, left: &Expr, right: &Expr) {
        if self.open.is_none() {
            self.open = Some(LayoutError::open(self.op, condition, left, right));
        }
    }

    /// Adds a criterion of a mode with `extent` positions, tested for the values at which there are
    /// several. Returns whether the predicate is false.
    fn refutes(&mut self, holds: Truth, extent: &Expr, (condition, left, right): (Condition, &Expr, &Expr)) -> bool {
        match holds {
            Truth::Proved => false,
            Truth::Refuted => self.fails(extent),
            Truth::Open => {
                self.ask(condition, left, right);
                false
            }
        }
    }

    /// Adds the failure of a mode in case it has several positions. Returns whether it always has.
    fn fails(&mut self, extent: &Expr) -> bool {
        let several = Expr::one().less(extent);
        if several == Truth::Open {
            self.ask(Condition::Less, &Expr::one(), extent);
        }
        several.proved()
    }

    /// The answer if no criterion has failed for every value.
    fn answer(self) -> Result<bool, LayoutError> {
        self.open.map_or(Ok(true), Err)
    }
}

/// The opposite answer.
fn not(truth: Truth) -> Truth {
    match truth {
        Truth::Proved => Truth::Refuted,
        Truth::Refuted => Truth::Proved,
        Truth::Open => Truth::Open,
    }
}

/// The layout of integers if all numbers are known.
fn numbers(layout: &Layout<Expr>) -> Option<Layout> {
    let leaf = |leaf: &Leaf<Expr>| Some(Leaf { extent: leaf.extent.known()?, stride: leaf.stride.known()? });
    Layout::from_tree(layout.tree().try_map(|own| leaf(own).ok_or(())).ok()?).ok()
}

/// The reach `before` plus `stride * (extent - 1)`.
fn reached(op: &'static str, before: &Expr, extent: &Expr, stride: &Expr) -> Result<Expr, LayoutError> {
    let reach = extent.minus(&Expr::one()).and_then(|last| stride.times(&last)).and_then(|own| before.plus(&own));
    reach.fits_as::<Expr>(op)
}

/// Whether two numbers are equal, assuming that `extent` is at least 2.
fn same_given(a: &Expr, b: &Expr, extent: &Expr) -> Truth {
    match a.same(b) {
        Truth::Open => match (a.less_given(b, &[extent]), b.less_given(a, &[extent])) {
            (Truth::Refuted, Truth::Refuted) => Truth::Proved,
            (Truth::Proved, _) | (_, Truth::Proved) => Truth::Refuted,
            _ => Truth::Open,
        },
        answer => answer,
    }
}

/// Adds the criterion of `op` that no mode has a negative stride. Returns whether the predicate is
/// false.
fn steps_down(verdict: &mut PartialAnswer, layout: &Layout<Expr>) -> bool {
    layout.leaves().iter().filter(|leaf| !leaf.extent.is_one().proved()).any(|leaf| {
        let forward = not(leaf.stride.less(&Expr::zero()));
        verdict.refutes(forward, &leaf.extent, (Condition::AtMost, &Expr::zero(), &leaf.stride))
    })
}

/// Whether a layout certainly has several values, and none next to 0.
fn sparse(layout: &Layout<Expr>) -> bool {
    let one = Expr::one();
    let longer = |stride: &Expr| one.less(stride).proved() || stride.less(&Expr::known(-1)).proved();
    let moving = |leaf: &&Leaf<Expr>| !leaf.stride.is_zero().proved() && !leaf.extent.is_one().proved();
    let mut moving = layout.leaves().iter().filter(moving);
    moving.clone().all(|leaf| longer(&leaf.stride)) && moving.any(|leaf| one.less(&leaf.extent).proved())
}

/// Whether the values of a layout form an interval.
fn interval(mut verdict: PartialAnswer, layout: &Layout<Expr>) -> Result<bool, LayoutError> {
    if sparse(layout) {
        return Ok(false);
    }
    let modes = layout.asked(&mut verdict)?;
    let mut reach = Expr::zero();
    for (extent, stride, _) in &modes {
        let next = reach.plus(&Expr::one()).fits_as::<Expr>(verdict.op)?;
        let closed = not(next.less_given(stride, &[extent]));
        if verdict.refutes(closed, extent, (Condition::AtMost, stride, &next)) {
            return Ok(false);
        }
        reach = reached(verdict.op, &reach, extent, stride)?;
    }
    verdict.answer()
}

/// [`Layout::is_injective`] for expressions.
pub(super) fn injective(layout: &Layout<Expr>) -> Result<bool, LayoutError> {
    const OP: &str = "is_injective";
    if let Some(numbers) = numbers(layout) {
        return numbers.is_injective();
    }
    let mut verdict = PartialAnswer::new(OP);
    for leaf in layout.leaves().iter().filter(|leaf| leaf.stride.is_zero().proved()) {
        if !leaf.extent.is_one().proved() && verdict.fails(&leaf.extent) {
            return Ok(false);
        }
    }
    if meet(layout) {
        return Ok(false);
    }
    let modes = layout.asked(&mut verdict)?;
    if let Some(scaled) = scaled(&modes) {
        let injective = scaled.is_injective()?;
        return if injective { verdict.answer() } else { Ok(false) };
    }
    let mut reach = Expr::zero();
    for (extent, stride, _) in &modes {
        match (reach.less_given(stride, &[extent]), Expr::one().less(extent)) {
            (Truth::Proved, _) => {}
            // The values may still be distinct, unless a collision is found.
            (Truth::Refuted, Truth::Open) => verdict.ask(Condition::Less, &Expr::one(), extent),
            _ => verdict.ask(Condition::Less, &reach, stride),
        }
        reach = reached(OP, &reach, extent, stride)?;
    }
    if verdict.open.is_some() && crowded(&modes, &reach).unwrap_or(false) {
        return Ok(false);
    }
    verdict.answer()
}

/// The same layout with constants, if extents are constants and strides are constants times one
/// nonzero expression.
fn scaled(modes: &[MovingMode<Expr>]) -> Option<Layout> {
    let (_, first, _) = modes.first()?;
    let lead = first.terms().first()?.coefficient;
    let content = first
        .terms()
        .iter()
        .try_fold(lead, |common, term| common.greatest_divisor(&term.coefficient).filter(|common| *common > 0))?;
    let unit = Expr::from_terms(
        first
            .terms()
            .iter()
            .map(|term| Term { monomial: term.monomial.clone(), coefficient: term.coefficient / content })
            .collect(),
    );
    let leaf = |(extent, stride, _): &MovingMode<Expr>| {
        let (factor, rest) = stride.divide(&unit)?;
        rest.is_zero().proved().then_some(())?;
        Some(Leaf { extent: extent.known()?, stride: factor.known()? })
    };
    Layout::from_tree(Tree::flat(modes.iter().map(leaf).collect::<Option<SmallVec<[Leaf; 8]>>>()?).ok()?).ok()
}

/// Whether one step of a mode certainly equals several steps of another one.
fn meet(layout: &Layout<Expr>) -> bool {
    let moving = |leaf: &&Leaf<Expr>| !leaf.stride.is_zero().proved();
    let leaves: SmallVec<[(&Expr, Expr); 8]> = layout
        .leaves()
        .iter()
        .filter(moving)
        .filter_map(|leaf| Some((&leaf.extent, leaf.stride.magnitude()?)))
        .collect();
    leaves.iter().enumerate().any(|(number, (many, outer))| {
        Expr::one().less(many).proved()
            && leaves.iter().enumerate().any(|(other, (extent, inner))| {
                let whole = || outer.divide(inner).filter(|(_, rest)| rest.is_zero().proved());
                number != other && whole().is_some_and(|(count, _)| count.less(extent).proved())
            })
    })
}

/// Whether there are more coordinates than multiples of the least stride within reach; None if not
/// known.
fn crowded(modes: &[MovingMode<Expr>], reach: &Expr) -> Option<bool> {
    let (_, unit, _) = modes.first()?;
    if !modes.iter().all(|(_, stride, _)| unit.divides(stride).proved()) {
        return None;
    }
    let size = modes.iter().try_fold(Expr::one(), |size, (extent, ..)| size.times(extent))?;
    Some(reach.less(&unit.times(&size.minus(&Expr::one())?)?).proved())
}

impl Layout<Expr> {
    /// [`Layout::<i64>::is_surjective`](crate::Layout#method.is_surjective), for every admissible
    /// value.
    ///
    /// Errors: the answer depends on the parameters ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let surjective = |text: &str| text.parse::<Layout<Expr>>().unwrap().is_surjective();
    /// assert!(surjective("(M,K):(K,1)").unwrap());
    /// assert!(!surjective("(M{min=2},K):(2*K,1)").unwrap());
    /// ```
    pub fn is_surjective(&self) -> Result<bool, LayoutError> {
        let mut verdict = PartialAnswer::new("is_surjective");
        if steps_down(&mut verdict, self) {
            return Ok(false);
        }
        interval(verdict, self)
    }

    /// Whether the layout is a bijection onto `0..size`, for every admissible value.
    ///
    /// Errors: the answer depends on the parameters ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let bijective = |text: &str| text.parse::<Layout<Expr>>().unwrap().is_bijective();
    /// assert!(bijective("(M,(8,K)):(8*K,(1,8))").unwrap());
    /// let error = bijective("(M,8):(16,1)").unwrap_err();
    /// assert_eq!(error.to_string(), "is_bijective: needs 1 to be less than M; declare `M{min=2}`");
    /// ```
    pub fn is_bijective(&self) -> Result<bool, LayoutError> {
        let mut verdict = PartialAnswer::new("is_bijective");
        if steps_down(&mut verdict, self) {
            return Ok(false);
        }
        for leaf in self.leaves().iter().filter(|leaf| leaf.stride.is_zero().proved()) {
            if !leaf.extent.is_one().proved() && verdict.fails(&leaf.extent) {
                return Ok(false);
            }
        }
        if sparse(self) || meet(self) {
            return Ok(false);
        }
        let mut covered = Expr::one();
        for (extent, stride, _) in &self.asked(&mut verdict)? {
            let holds = same_given(stride, &covered, extent);
            if verdict.refutes(holds, extent, (Condition::Equal, stride, &covered)) {
                return Ok(false);
            }
            covered = covered.times(extent).fits_as::<Expr>("is_bijective")?;
        }
        verdict.answer()
    }

    /// The same as [`Layout::is_bijective`]: no offset is missing and none is shared, for every
    /// admissible value.
    pub fn is_compact(&self) -> Result<bool, LayoutError> {
        self.is_bijective()
    }

    /// Whether the values form an interval, for every admissible value.
    ///
    /// Errors: the answer depends on the parameters ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let contiguous = |text: &str| text.parse::<Layout<Expr>>().unwrap().is_contiguous();
    /// assert!(contiguous("(M,K):(1,M)").unwrap() && contiguous("(M,8):(4,1)").unwrap());
    /// let error = contiguous("(M,K):(1,M+8)").unwrap_err();
    /// assert_eq!(error.to_string(), "is_contiguous: needs 1 to be less than K; declare `K{min=2}`");
    /// ```
    pub fn is_contiguous(&self) -> Result<bool, LayoutError> {
        interval(PartialAnswer::new("is_contiguous"), self)
    }

    /// Whether the values increase strictly with the index, for every admissible value.
    ///
    /// Errors: the answer depends on the parameters ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let ordered = |text: &str| text.parse::<Layout<Expr>>().unwrap().is_ordered();
    /// assert!(ordered("(M,K):(1,M+8)").unwrap());
    /// assert!(!ordered("(M{min=2},K{min=2}):(K,1)").unwrap());
    /// ```
    pub fn is_ordered(&self) -> Result<bool, LayoutError> {
        let mut verdict = PartialAnswer::new("is_ordered");
        let mut reach = Expr::zero();
        for Leaf { extent, stride } in self.leaves().iter().filter(|leaf| !leaf.extent.is_one().proved()) {
            let holds = reach.less_given(stride, &[extent]);
            if verdict.refutes(holds, extent, (Condition::Less, &reach, stride)) {
                return Ok(false);
            }
            reach = reached(verdict.op, &reach, extent, stride)?;
        }
        verdict.answer()
    }

    /// Whether the layout comes from a morphism of nested tuples, for every admissible value:
    /// sorted by stride, `extent * stride` of each mode of positive stride divides the next stride.
    ///
    /// Errors: the answer depends on the parameters ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let tractable = |text: &str| text.parse::<Layout<Expr>>().unwrap().is_tractable();
    /// assert!(tractable("(M,K):(2*K,2)").unwrap());
    /// let error = tractable("(8,K):(1,S{div=4})").unwrap_err();
    /// assert_eq!(error.to_string(), "is_tractable: needs S to be a multiple of 8; declare `S{div=8}`");
    /// ```
    pub fn is_tractable(&self) -> Result<bool, LayoutError> {
        let mut verdict = PartialAnswer::new("is_tractable");
        if steps_down(&mut verdict, self) {
            return Ok(false);
        }
        for pair in self.asked(&mut verdict)?.windows(2) {
            let [(inner, step, _), (outer, next, _)] = pair else { continue };
            let covered = step.times(inner).fits_as::<Expr>("is_tractable")?;
            let divides = covered.divides(next);
            let several = Expr::one().less(inner).proved();
            match divides {
                Truth::Refuted if !several => verdict.ask(Condition::Less, &Expr::one(), inner),
                _ if verdict.refutes(divides, outer, (Condition::Divides, &covered, next)) => return Ok(false),
                _ => {}
            }
        }
        verdict.answer()
    }

    /// The sorted modes; the open question if their order is not known.
    fn asked(&self, verdict: &mut PartialAnswer) -> Result<SymbolicModes, LayoutError> {
        by_stride(verdict.op, self).map_err(|error| verdict.open.take().unwrap_or(error))
    }
}
