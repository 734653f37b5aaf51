//! Domains shared by two shapes.
//!
//! A flat shape without extents of 1 is the chain of its prefix products: `(5,3,4)` is `1 | 5 | 15
//! | 60`, and mode `i` holds the digit between two neighbours, `p[i] .. p[i+1]`. A nested shape is
//! treated as the tuple of its leaves. Compatible shapes are ordered by refinement: `T` refines `S`
//! exactly when the chain of `T` contains that of `S`.
//!
//! * [`common_refinement`]: the coarsest shape that refines both (the join). Its chain contains
//!   both, so it is their union, and there is one exactly when the union is a divisibility chain.
//! * [`common_coarsening`]: the finest shape that both refine (the meet). Its chain is the
//!   intersection, which is always one.
//! * [`greatest_common_domain`]: the layout `G` of indices on which every layout of either shape is
//!   linear mode by mode. Its modes are the digits that lie within one mode of both: for modes `i`
//!   and `j` of the two shapes with `e = lcm(p[i], q[j])` and `f = gcd(p[i+1], q[j+1])`, the mode
//!   `f/e : e` where `e | f` and `e < f`. A mode `h:d` lies within both modes exactly when `e | d`
//!   and `h*d | f`; so it lies within that mode of `G`, and `G` is the greatest. Of the pairs of
//!   modes only those can share a digit whose ranges overlap, and these are met by walking both
//!   chains at once, always past the lesser end. Each `f` divides a prefix product that divides
//!   every later `e`, so the modes of `G` are themselves a divisibility chain: `G` is injective and
//!   increasing.
//! * [`domain_distribute`]: the part of a shape that a number of workers can share evenly.
//!
//! An extent that may be 1 is treated as greater than 1; if it is 1 at launch, the result has a
//! mode of extent 1 there. Products must be known to be in order, or to be equal, as far as the
//! result depends on it.

use smallvec::SmallVec;

use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::coord::check_extents;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Truth};
use crate::value::profile::Profile;
use crate::value::tree::{Leaves, Tree};

/// The prefix products of a shape, from 1 to its size, increasing, each with the leaf that it ends.
type PrefixProducts<N> = SmallVec<[(N, usize); 9]>;

fn chain<N: Extent>(op: &'static str, shape: &Tree<N>) -> Result<PrefixProducts<N>, LayoutError> {
    check_extents(shape)?;
    let mut chain = PrefixProducts::new();
    let mut product = N::one();
    chain.push((product.clone(), 0));
    for (position, extent) in shape.leaves().iter().enumerate() {
        if !extent.is_one().proved() {
            product = product.times(extent).fits_as::<N>(op)?;
            chain.push((product.clone(), position));
        }
    }
    Ok(chain)
}

/// The flat shape with these prefix products, without extents of 1. A shape of one extent is a
/// leaf, not a tuple.
fn shape_of<N: Extent>(op: &'static str, products: impl Iterator<Item = N>) -> Result<Tree<N>, LayoutError> {
    let mut extents = Leaves::new();
    let mut before = N::one();
    for product in products {
        if !product.same(&before).proved() {
            extents.push(quotient(op, &product, &before)?);
            before = product;
        }
    }
    match extents.len() {
        0 => Ok(Tree::leaf(N::one())),
        1 => Ok(Tree::from_parts(Profile::leaf(), extents)),
        count => Ok(Tree::from_parts(Profile::flat(count)?, extents)),
    }
}

/// An exact quotient.
fn quotient<N: Extent>(op: &'static str, dividend: &N, divisor: &N) -> Result<N, LayoutError> {
    dividend.divide(divisor).map(|(quotient, _)| quotient).fits_as::<N>(op)
}

/// The greatest common divisor, or an error with the fact that would determine it.
fn common<N: Extent>(op: &'static str, a: &N, b: &N) -> Result<N, LayoutError> {
    a.greatest_divisor(b).ok_or_else(|| {
        let (divisor, other) = if a.known().is_some() { (a, b) } else { (b, a) };
        LayoutError::open(op, Condition::Divides, divisor, other)
    })
}

fn same_size<N: Extent>(op: &'static str, a: &PrefixProducts<N>, b: &PrefixProducts<N>) -> Result<(), LayoutError> {
    match (a.last(), b.last()) {
        (Some((left, _)), Some((right, _))) if !left.same(right).proved() => Err(match (left.known(), right.known()) {
            (Some(left), Some(right)) => LayoutError::Size { op, left, right },
            _ => LayoutError::open(op, Condition::Equal, left, right),
        }),
        _ => Ok(()),
    }
}

/// The coarsest shape that refines both: flat, without extents of 1 (the join of the refinement
/// order).
///
/// Its prefix products are those of `a` together with those of `b`. The sizes must agree.
///
/// Errors: the sizes differ ([`LayoutError::Size`]); a prefix product of one shape and one of the
/// other do not divide each other ([`LayoutError::NotDivisible`], at the leaf of `a` within which
/// they meet), so that no shape refines both; an extent is not positive; a condition depends on
/// numbers that are not known ([`LayoutError::Open`]).
///
/// ```
/// use tilewright_layout::symbolic::Expr;
/// use tilewright_layout::{Tree, common_refinement};
///
/// let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// assert_eq!(common_refinement(&shape("(4,6)"), &shape("(2,12)")).unwrap().to_string(), "(2,2,6)");
/// let error = common_refinement(&shape("(4,6)"), &shape("(6,4)")).unwrap_err();
/// assert_eq!(error.to_string(), "common_refinement: in mode 1, 4 does not divide 6");
///
/// let (a, b): (Tree<Expr>, Tree<Expr>) = ("(M{div=128},K)".parse().unwrap(), "(128,M{div=128}/128,K)".parse().unwrap());
/// assert_eq!(common_refinement(&a, &b).unwrap().to_string(), "(128,M/128,K)");
/// ```
pub fn common_refinement<N: Extent>(a: &Tree<N>, b: &Tree<N>) -> Result<Tree<N>, LayoutError> {
    const OP: &str = "common_refinement";
    let (left, right) = (chain(OP, a)?, chain(OP, b)?);
    same_size(OP, &left, &right)?;
    let mut union: SmallVec<[N; 16]> = SmallVec::new();
    let (mut ours, mut theirs) = (left.iter().peekable(), right.iter().peekable());
    // The sizes are equal, so both chains end together.
    while let (Some((p, leaf)), Some((q, _))) = (ours.peek().copied(), theirs.peek().copied()) {
        // The order of two products is proved except for equality: if they may be equal, either may
        // be first.
        let next = match (q.less(p), p.less(q)) {
            (Truth::Refuted, _) => p,
            (_, Truth::Refuted) => q,
            _ => return Err(LayoutError::open(OP, Condition::Ordered, p, q)),
        };
        if let Some(before) = union.last()
            && !before.divides(next).proved()
        {
            return Err(match (next.known(), before.known()) {
                (Some(value), Some(divisor)) => {
                    LayoutError::NotDivisible { op: OP, path: a.profile().path(*leaf), value, divisor }
                }
                _ => LayoutError::open(OP, Condition::Divides, before, next),
            });
        }
        ours.next_if(|(p, _)| p.same(next).proved());
        theirs.next_if(|(q, _)| q.same(next).proved());
        union.push(next.clone());
    }
    shape_of(OP, union.into_iter())
}

/// The finest shape that both refine: flat, without extents of 1 (the meet of the refinement
/// order).
///
/// Its prefix products are those that `a` and `b` share. The sizes must agree.
///
/// Errors: the sizes differ ([`LayoutError::Size`]); an extent is not positive; whether two
/// products are equal is not known ([`LayoutError::Open`]).
///
/// ```
/// use tilewright_layout::{Tree, common_coarsening};
///
/// let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// assert_eq!(common_coarsening(&shape("(2,3,4)"), &shape("(3,2,2,2)")).unwrap().to_string(), "(6,4)");
/// ```
pub fn common_coarsening<N: Extent>(a: &Tree<N>, b: &Tree<N>) -> Result<Tree<N>, LayoutError> {
    const OP: &str = "common_coarsening";
    let (left, right) = (chain(OP, a)?, chain(OP, b)?);
    same_size(OP, &left, &right)?;
    let mut shared: SmallVec<[N; 9]> = SmallVec::new();
    // Products of one shape that have not been matched with one of the other shape yet.
    let (mut ours, mut theirs): (SmallVec<[&N; 9]>, SmallVec<[&N; 9]>) = (SmallVec::new(), SmallVec::new());
    let mut rest = right.as_slice();
    for (p, _) in &left {
        let passed = rest.iter().position(|(q, _)| q.same(p).proved() || p.less(q).proved()).unwrap_or(rest.len());
        let (before, from) = rest.split_at(passed);
        match from.split_first() {
            Some(((q, _), after)) if q.same(p).proved() => {
                theirs.extend(before.iter().map(|(q, _)| q));
                shared.push(p.clone());
                rest = after;
            }
            // No common product so far; a product that was passed may equal a later one.
            _ => ours.push(p),
        }
    }
    theirs.extend(rest.iter().map(|(q, _)| q));
    // If two of these are equal for some values, they are common for those values only.
    for p in ours {
        if let Some(q) = theirs.iter().find(|q| q.same(p) == Truth::Open) {
            return Err(LayoutError::open(OP, Condition::Equal, p, *q));
        }
    }
    shape_of(OP, shared.into_iter())
}

/// The greatest layout of indices each of whose modes lies within one mode of `a` and within one
/// mode of `b`.
///
/// For any layout `A` of shape `a`, and likewise for `b`, `A(G(c)) = sum of c[k] * A(e[k])` over
/// the modes `g:e` of `G`: nothing carries. `G` is flat and increasing, its strides form a
/// divisibility chain, and its size divides both sizes, which need not agree. (Definition and
/// examples: Cecka, "CuTe Layout Representation and Algebra".)
///
/// Errors: an extent is not positive; a size is not representable; a divisor depends on numbers
/// that are not known ([`LayoutError::Open`]).
///
/// ```
/// use tilewright_layout::{Tree, greatest_common_domain};
///
/// let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// let domain = |a: &str, b: &str| greatest_common_domain(&shape(a), &shape(b)).unwrap().to_string();
/// assert_eq!(domain("(5,3,4)", "(10,6)"), "(5,2):(1,30)");
/// assert_eq!(domain("(2,21)", "(3,14)"), "7:6");
/// assert_eq!(domain("(4,3)", "(4,3)"), "(4,3):(1,4)");
/// ```
pub fn greatest_common_domain<N: Extent>(a: &Tree<N>, b: &Tree<N>) -> Result<Layout<N>, LayoutError> {
    const OP: &str = "greatest_common_domain";
    let (left, right) = (chain(OP, a)?, chain(OP, b)?);
    let mut modes = Leaves::new();
    let mut first = 0;
    for ours in left.windows(2) {
        let [(p, _), (p_end, _)] = ours else { continue };
        for (j, theirs) in right.windows(2).enumerate().skip(first) {
            let [(q, _), (q_end, _)] = theirs else { continue };
            // Modes share a digit only where their ranges overlap.
            if p.less(q_end).refuted() {
                first = j + 1;
                continue;
            }
            if q.less(p_end).refuted() {
                break;
            }
            let end = common(OP, p_end, q_end)?;
            let step = match quotient(OP, p, &common(OP, p, q)?)?.times(q) {
                Some(step) => step,
                // A number too large to represent is past every end.
                None if p.known().is_some() && q.known().is_some() => continue,
                None => return Err(N::overflow(OP)),
            };
            match step.divides(&end) {
                Truth::Refuted => {}
                Truth::Proved if step.same(&end).proved() => {}
                Truth::Proved => modes.push(Leaf { extent: quotient(OP, &end, &step)?, stride: step }),
                Truth::Open => return Err(LayoutError::open(OP, Condition::Divides, &step, &end)),
            }
        }
    }
    Layout::flat(modes)
}

/// The largest layout of indices of shape `a` whose size divides that of `b` and which consists, in
/// each mode of `a`, of a first part that divides the mode (CuTe `domain_distribute`). It describes
/// how `size(b)` workers share the coordinates of `a` evenly.
///
/// `R` is coalesced and strictly increasing from 0, and its size is `gcd(size(a), size(b))`. Modes
/// of `a` are used from the left: mode `i` contributes `gcd(a[i], r)` positions, where `r` is
/// `size(b)` divided by the contributions so far. The result is always the largest: a prime factor
/// that remains in `r` after mode `i` does not divide the rest of `a[i]`. If the sizes are coprime,
/// the result is `1:0`.
///
/// Errors: an extent is not positive; a size is not representable; a divisor depends on numbers
/// that are not known ([`LayoutError::Open`]).
///
/// ```
/// use tilewright_layout::{Tree, domain_distribute};
///
/// let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// let share = |a: &str, b: &str| domain_distribute(&shape(a), &shape(b)).unwrap().to_string();
/// assert_eq!(share("(15,14)", "6"), "(3,2):(1,15)");
/// assert_eq!(share("(5,7)", "6"), "1:0");
/// ```
pub fn domain_distribute<N: Extent>(a: &Tree<N>, b: &Tree<N>) -> Result<Layout<N>, LayoutError> {
    const OP: &str = "domain_distribute";
    let mut left = chain(OP, b)?.last().map_or(N::one(), |(size, _)| size.clone());
    let mut modes = Leaves::new();
    for pair in chain(OP, a)?.windows(2) {
        let [(step, _), (end, _)] = pair else { continue };
        if left.is_one().proved() {
            break;
        }
        let extent = common(OP, &quotient(OP, end, step)?, &left)?;
        left = quotient(OP, &left, &extent)?;
        if !extent.is_one().proved() {
            modes.push(Leaf { extent, stride: step.clone() });
        }
    }
    Layout::flat(crate::algebra::coalesce::coalesced(&modes).fits_as::<N>(OP)?)
}
