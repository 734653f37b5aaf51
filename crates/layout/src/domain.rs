//! Domains shared by two shapes.
//!
//! A flat shape without extents of 1 is the chain of its prefix products: `(5,3,4)` is `1 | 5 | 15 | 60`, and mode `i` holds the digit
//! between two neighbours, `p[i] .. p[i+1]`. A nested shape counts here by its leaves. Compatible shapes are ordered by refinement:
//! `T` refines `S` exactly when the chain of `T` contains that of `S`.
//!
//! * [`common_refinement`]: the coarsest shape that refines both (the join). Its chain contains both, so it is their union, and there is one
//!   exactly when the union is a divisibility chain.
//! * [`common_coarsening`]: the finest shape that both refine (the meet). Its chain is the intersection, which is always one.
//! * [`greatest_common_domain`]: the layout `G` of indices on which every layout of either shape is linear mode by mode. Its modes are the
//!   digits that lie within one mode of both: for modes `i` and `j` of the two shapes with `e = lcm(p[i], q[j])` and
//!   `f = gcd(p[i+1], q[j+1])`, the mode `f/e : e` where `e | f` and `e < f`. A mode `h:d` lies within both modes exactly when
//!   `e | d` and `h*d | f`; so it lies within that mode of `G`, and `G` is the greatest. Of the pairs of modes only those can share a digit
//!   whose ranges overlap, and these are met by walking both chains at once, always past the lesser end. Each `f` divides a prefix
//!   product that divides every later `e`, so the modes of `G` are themselves a divisibility chain: `G` is injective and increasing.
//! * [`domain_distribute`]: a share of a shape that a number of workers can fill evenly.

use smallvec::SmallVec;

use crate::coord::check_extents;
use crate::error::LayoutError;
use crate::layout::{Layout, Leaf};
use crate::number::{gcd, lcm};
use crate::profile::Profile;
use crate::tree::{Leaves, Tree};

/// The prefix products of a shape, from 1 to its size, strictly increasing, each with the leaf that it ends.
type Chain = SmallVec<[(i64, usize); 9]>;

fn chain(op: &'static str, shape: &Tree<i64>) -> Result<Chain, LayoutError> {
    check_extents(shape)?;
    let mut chain = Chain::new();
    let mut product: i64 = 1;
    chain.push((product, 0));
    for (position, extent) in shape.leaves().iter().enumerate() {
        if *extent > 1 {
            product = product.checked_mul(*extent).ok_or_else(|| LayoutError::overflow(op))?;
            chain.push((product, position));
        }
    }
    Ok(chain)
}

/// The flat shape with these prefix products; one extent stands alone, none is 1.
fn shape_of(products: impl Iterator<Item = i64>) -> Result<Tree<i64>, LayoutError> {
    let mut extents = Leaves::new();
    let mut before = 1;
    for product in products {
        if product > before {
            extents.push(product / before);
            before = product;
        }
    }
    match extents.len() {
        0 => Ok(Tree::leaf(1)),
        1 => Ok(Tree::from_parts(Profile::leaf(), extents)),
        count => Ok(Tree::from_parts(Profile::flat(count)?, extents)),
    }
}

fn same_size(op: &'static str, a: &Chain, b: &Chain) -> Result<(), LayoutError> {
    match (a.last(), b.last()) {
        (Some((left, _)), Some((right, _))) if left != right => {
            Err(LayoutError::Size { op, left: *left, right: *right })
        }
        _ => Ok(()),
    }
}

/// The coarsest shape that refines both: flat, without extents of 1 (the join of the refinement order).
///
/// Its prefix products are those of `a` together with those of `b`. The sizes must agree.
///
/// Errors: the sizes differ ([`LayoutError::Size`]); a prefix product of one shape and one of the other do not divide each other
/// ([`LayoutError::NotDivisible`], at the leaf of `a` within which they meet), so that no shape refines both; an extent is not
/// positive.
///
/// ```
/// use tilewright_layout::{Tree, common_refinement};
///
/// let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// assert_eq!(common_refinement(&shape("(4,6)"), &shape("(2,12)")).unwrap().to_string(), "(2,2,6)");
/// let error = common_refinement(&shape("(4,6)"), &shape("(6,4)")).unwrap_err();
/// assert_eq!(error.to_string(), "common_refinement: in mode 1, 4 does not divide 6");
/// ```
pub fn common_refinement(a: &Tree<i64>, b: &Tree<i64>) -> Result<Tree<i64>, LayoutError> {
    const OP: &str = "common_refinement";
    let (left, right) = (chain(OP, a)?, chain(OP, b)?);
    same_size(OP, &left, &right)?;
    let mut union: SmallVec<[i64; 16]> = SmallVec::new();
    let (mut ours, mut theirs) = (left.iter().peekable(), right.iter().peekable());
    // The sizes agree, so both chains end together.
    while let (Some((p, leaf)), Some((q, _))) = (ours.peek(), theirs.peek()) {
        let next = *p.min(q);
        if let Some(before) = union.last()
            && next % before != 0
        {
            return Err(LayoutError::NotDivisible {
                op: OP,
                path: a.profile().path(*leaf),
                value: next,
                divisor: *before,
            });
        }
        union.push(next);
        ours.next_if(|(p, _)| *p == next);
        theirs.next_if(|(q, _)| *q == next);
    }
    shape_of(union.into_iter())
}

/// The finest shape that both refine: flat, without extents of 1 (the meet of the refinement order).
///
/// Its prefix products are those that `a` and `b` share. The sizes must agree.
///
/// Errors: the sizes differ ([`LayoutError::Size`]); an extent is not positive.
///
/// ```
/// use tilewright_layout::{Tree, common_coarsening};
///
/// let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// assert_eq!(common_coarsening(&shape("(2,3,4)"), &shape("(3,2,2,2)")).unwrap().to_string(), "(6,4)");
/// ```
pub fn common_coarsening(a: &Tree<i64>, b: &Tree<i64>) -> Result<Tree<i64>, LayoutError> {
    const OP: &str = "common_coarsening";
    let (left, right) = (chain(OP, a)?, chain(OP, b)?);
    same_size(OP, &left, &right)?;
    let mut theirs = right.iter().peekable();
    shape_of(left.into_iter().filter_map(move |(p, _)| {
        while theirs.next_if(|(q, _)| *q < p).is_some() {}
        theirs.next_if(|(q, _)| *q == p).map(|_| p)
    }))
}

/// The greatest layout of indices each of whose modes lies within one mode of `a` and within one mode of `b`.
///
/// For any layout `A` of shape `a`, and likewise for `b`, `A(G(c)) = sum of c[k] * A(e[k])` over the modes `g:e` of `G`: nothing carries.
/// `G` is flat and increasing, its strides form a divisibility chain, and its size divides both sizes, which need not agree. (Definition and
/// examples: Cecka, "CuTe Layout Representation and Algebra".)
///
/// Errors: an extent is not positive; a size is not representable.
///
/// ```
/// use tilewright_layout::{Tree, greatest_common_domain};
///
/// let domain = |a: &str, b: &str| greatest_common_domain(&a.parse().unwrap(), &b.parse().unwrap()).unwrap().to_string();
/// assert_eq!(domain("(5,3,4)", "(10,6)"), "(5,2):(1,30)");
/// assert_eq!(domain("(2,21)", "(3,14)"), "7:6");
/// assert_eq!(domain("(4,3)", "(4,3)"), "(4,3):(1,4)");
/// ```
pub fn greatest_common_domain(a: &Tree<i64>, b: &Tree<i64>) -> Result<Layout, LayoutError> {
    const OP: &str = "greatest_common_domain";
    let (left, right) = (chain(OP, a)?, chain(OP, b)?);
    let mut modes = Leaves::new();
    let (mut i, mut j) = (0, 0);
    while let (Some([(p, _), (p_end, _)]), Some([(q, _), (q_end, _)])) = (left.get(i..i + 2), right.get(j..j + 2)) {
        let end = gcd(*p_end, *q_end) as i64;
        // A step too large to represent is past every end.
        if let Some(step) = lcm(*p, *q)
            && step < end
            && end % step == 0
        {
            modes.push(Leaf { extent: end / step, stride: step });
        }
        i += usize::from(p_end <= q_end);
        j += usize::from(q_end <= p_end);
    }
    Layout::flat(modes)
}

/// The largest layout of indices of shape `a`, of a size that divides that of `b`, which takes from each mode of `a` a first
/// part that divides it (CuTe `domain_distribute`): how `size(b)` workers share the coordinates of `a` evenly.
///
/// `R` is coalesced and strictly increasing from 0, and its size is `gcd(size(a), size(b))`. Modes of `a` are used from the left: mode `i`
/// gives `gcd(a[i], what is left of size(b))` of its positions. That is the largest in every case: a prime that is left over of `size(b)`
/// after mode `i` has used up all of its kind in `a[i]`. So nothing is refused, and `1:0` is the answer where the sizes are coprime.
///
/// Errors: an extent is not positive; a size is not representable.
///
/// ```
/// use tilewright_layout::{Tree, domain_distribute};
///
/// let share = |a: &str, b: &str| domain_distribute(&a.parse().unwrap(), &b.parse().unwrap()).unwrap().to_string();
/// assert_eq!(share("(15,14)", "6"), "(3,2):(1,15)");
/// assert_eq!(share("(5,7)", "6"), "1:0");
/// ```
pub fn domain_distribute(a: &Tree<i64>, b: &Tree<i64>) -> Result<Layout, LayoutError> {
    const OP: &str = "domain_distribute";
    let mut left = chain(OP, b)?.last().map_or(1, |(size, _)| *size);
    let mut modes = Leaves::new();
    for pair in chain(OP, a)?.windows(2) {
        let [(step, _), (end, _)] = pair else { continue };
        let extent = gcd(end / step, left) as i64;
        left /= extent;
        if extent > 1 {
            modes.push(Leaf { extent, stride: *step });
        }
    }
    Layout::flat(crate::coalesce::coalesced(&modes).ok_or_else(|| LayoutError::overflow(OP))?)
}
