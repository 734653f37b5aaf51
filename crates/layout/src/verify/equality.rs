//! Check whether two layouts are the same function.
//!
//! Law: two layouts are the same function of an index exactly when their coalesced forms are equal.
//! Where these first differ in mode `k`, the functions agree below `P`, the size of the modes
//! before it, and wherever they differ at some index, they differ at one that is a multiple of `P`.
//! The first one is `P * j` for one of the following `j`, where `s` is the extent of one of the two
//! modes:
//!
//! * `1`, if the strides differ;
//! * `s`, at the end of the shorter mode: the next mode does not continue it, because coalescing
//!   would have merged them;
//! * `s + a` and `s + 2a`, `a` the lowest bit of `s`, for XOR strides: the next mode may agree with
//!   the continuation for a while, until the sum with `a` carries.
//!
//! So the two functions are evaluated at these indices, and the answer has the first at which the
//! values differ. If there is none below both sizes, the shorter layout is a prefix of the longer
//! one.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::refusal::error::Fits;
use crate::{Composed, Extent, Layout, LayoutError, MAX_IMAGE, OuterMap, Stride, Tree, Truth, idx2crd};

use super::{At, Verdict, open};

const OP: &str = "equal";

/// An index at which two layouts have different values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point<D: Stride = i64> {
    /// The index: the first one at which they differ.
    pub index: D::Extent,
    /// The coordinate of that index in each layout.
    pub coordinates: (Tree<D::Extent>, Tree<D::Extent>),
    /// The values of both layouts at the index.
    pub values: (D, D),
}

/// The difference of two layouts as functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<D: Stride = i64> {
    /// The sizes of both.
    pub sizes: (D::Extent, D::Extent),
    /// The first index at which their values differ; None if one layout is a prefix of the other.
    pub at: Option<Point<D>>,
}

impl<D: Stride> fmt::Display for Difference<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = &self.sizes;
        match &self.at {
            None => write!(f, "the sizes are {a} and {b}, and the shorter layout is the beginning of the other"),
            Some(Point { index, coordinates, values }) => {
                if a != b {
                    write!(f, "the sizes are {a} and {b}, and ")?;
                }
                write!(f, "at index {index} the first, at {}, has {}", At(&coordinates.0), values.0)?;
                write!(f, " and the second, at {}, has {}", At(&coordinates.1), values.1)
            }
        }
    }
}

/// Whether two layouts are the same function of an index; the result is their coalesced form.
///
/// Not decided: a number is not representable, or a fact about an extent is needed.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Layout;
///
/// let equal = |a: &str, b: &str| {
///     let (a, b): (Layout, Layout) = (a.parse().unwrap(), b.parse().unwrap());
///     verify::equal(&a, &b).to_string()
/// };
/// assert_eq!(equal("(2,4):(1,2)", "8:1"), "holds: 8:1");
/// assert_eq!(equal("(2,4):(4,1)", "8:1"), "fails: at index 1 the first, at (1,0), has 4 and the second, at (1), has 1");
/// assert_eq!(equal("4:2", "8:2"), "fails: the sizes are 4 and 8, and the shorter layout is the beginning of the other");
/// ```
pub fn equal<D: Stride>(a: &Layout<D>, b: &Layout<D>) -> Verdict<Layout<D>, Difference<D>> {
    decide(a, b).into()
}

/// Whether two layouts have the same offsets in the same order, ignoring modes that only repeat
/// offsets: whether they are [`equal`] after [`Layout::filter`]. A verifier that only considers
/// memory compares layouts in this form.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Layout;
///
/// let (a, b): (Layout, Layout) = ("(4,3):(1,0)".parse().unwrap(), "(2,2,5):(1,2,0)".parse().unwrap());
/// assert!(verify::equal(&a, &b).fails());
/// assert_eq!(verify::equal_without_broadcast(&a, &b).to_string(), "holds: 4:1");
/// ```
pub fn equal_without_broadcast<D: Stride>(a: &Layout<D>, b: &Layout<D>) -> Verdict<Layout<D>, Difference<D>> {
    match (a.filter(), b.filter()) {
        (Ok(a), Ok(b)) => equal(&a, &b),
        (Err(error), _) | (_, Err(error)) => Verdict::Undecided(error),
    }
}

/// Whether two maps, swizzled or otherwise composed, are the same function of an index; the result
/// is the coalesced form of the first.
///
/// This compares functions. To compare the swizzles too, use [`identical_composed`]; to ignore
/// broadcasts, use [`equal_composed_without_broadcast`].
///
/// If both are linear over bits, the first index at which they differ is 0 or a power of two;
/// otherwise the values at the first [`MAX_IMAGE`] indices are compared. Not decided: as
/// [`Composed::equivalent`]; they differ, but not at these indices.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Composed;
///
/// let equal = |a: &str, b: &str| {
///     let (a, b): (Composed, Composed) = (a.parse().unwrap(), b.parse().unwrap());
///     verify::equal_composed(&a, &b).to_string()
/// };
/// // The swizzle reads bits that the tile does not have.
/// assert_eq!(equal("S<1,4,3> o 0 o (8,8):(8,1)", "S<0,4,3> o 0 o (8,8):(8,1)"), "holds: S<1,4,3> o 0 o (8,8):(8,1)");
/// assert_eq!(
///     equal("S<1,0,3> o 0 o (8,8):(8,1)", "S<0,0,3> o 0 o (8,8):(8,1)"),
///     "fails: at index 1 the first, at (1,0), has 9 and the second, at (1,0), has 8"
/// );
/// ```
pub fn equal_composed(a: &Composed, b: &Composed) -> Verdict<Composed, Difference> {
    decide_composed(a, b).into()
}

/// The reason why two maps are not identical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distinct {
    /// They are different functions.
    Function(Difference),
    /// They are the same function, but their outer maps differ.
    Swizzle {
        /// The outer map of the first; None if it is the identity.
        first: Option<OuterMap>,
        /// The outer map of the second; None if it is the identity.
        second: Option<OuterMap>,
    },
    /// They are the same function with the same outer map, but their offsets differ.
    Offset {
        /// The offsets of both.
        offsets: (i64, i64),
    },
}

impl fmt::Display for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let through =
            |outer: &Option<OuterMap>| outer.as_ref().map_or_else(|| "no swizzle".into(), ToString::to_string);
        match self {
            Distinct::Function(difference) => difference.fmt(f),
            Distinct::Swizzle { first, second } => {
                write!(f, "they are one function, through {} and through {}", through(first), through(second))
            }
            Distinct::Offset { offsets: (a, b) } => {
                write!(f, "they are one function, from offset {a} and from offset {b} on")
            }
        }
    }
}

/// Whether two maps are [`equal_composed`] and also have the same outer map and the same offset. A
/// swizzle of no bits counts as no swizzle.
///
/// Two swizzles that differ only in bits that no offset has are the same function, for which
/// [`equal_composed`] is sufficient. A pass that keeps the swizzle as a part of a type, as
/// [`Candidate`](crate::candidate::Candidate) does, needs this check. Not decided: as
/// [`equal_composed`].
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Composed;
///
/// let map = |text: &str| text.parse::<Composed>().unwrap();
/// let (a, b) = (map("S<3,4,3> o 0 o 8:1"), map("S<2,4,3> o 0 o 8:1"));
/// assert!(verify::equal_composed(&a, &b).holds());
/// assert_eq!(
///     verify::identical_composed(&a, &b).to_string(),
///     "fails: they are one function, through S<3,4,3> and through S<2,4,3>"
/// );
/// assert!(verify::identical_composed(&a, &map("S<3,4,3> o 0 o (2,4):(1,2)")).holds());
/// ```
pub fn identical_composed(a: &Composed, b: &Composed) -> Verdict<Composed, Distinct> {
    let through = |map: &Composed| match map.outer() {
        OuterMap::Swizzle(swizzle) if swizzle.is_identity() => None,
        outer => Some(outer.clone()),
    };
    match equal_composed(a, b) {
        Verdict::Fails(difference) => Verdict::Fails(Distinct::Function(difference)),
        Verdict::Undecided(error) => Verdict::Undecided(error),
        Verdict::Holds(_) if through(a) != through(b) => {
            Verdict::Fails(Distinct::Swizzle { first: through(a), second: through(b) })
        }
        Verdict::Holds(_) if a.offset() != b.offset() => {
            Verdict::Fails(Distinct::Offset { offsets: (*a.offset(), *b.offset()) })
        }
        Verdict::Holds(form) => Verdict::Holds(form),
    }
}

/// Whether two maps, swizzled or otherwise composed, have the same offsets in the same order,
/// ignoring modes that only repeat offsets: [`equal_composed`] after [`Composed::filter`], as
/// [`equal_without_broadcast`] for layouts.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Composed;
///
/// let map = |text: &str| text.parse::<Composed>().unwrap();
/// let (a, b) = (map("S<1,0,2> o 0 o (8,3):(1,0)"), map("S<1,0,2> o 0 o (2,4,5):(1,2,0)"));
/// assert!(verify::equal_composed(&a, &b).fails());
/// assert!(verify::equal_composed_without_broadcast(&a, &b).holds());
/// ```
pub fn equal_composed_without_broadcast(a: &Composed, b: &Composed) -> Verdict<Composed, Difference> {
    match (a.filter(), b.filter()) {
        (Ok(a), Ok(b)) => equal_composed(&a, &b),
        (Err(error), _) | (_, Err(error)) => Verdict::Undecided(error),
    }
}

fn decide_composed(a: &Composed, b: &Composed) -> Result<Result<Composed, Difference>, LayoutError> {
    if a.equivalent(b)? {
        return Ok(Ok(a.coalesce()?));
    }
    let sizes = (a.size(), b.size());
    let common = sizes.0.min(sizes.1);
    let differs = |index: &i64| Ok(a.eval(index)? != b.eval(index)?);
    let linear = a.bit_matrix().is_ok() && b.bit_matrix().is_ok();
    let found = if linear {
        // Two linear functions that agree at the powers of two below an index agree at all sums of
        // these.
        let powers = (0..63).map(|bit| 1_i64 << bit).take_while(|power| *power < common);
        first(powers, differs)?
    } else {
        first(0..common.min(MAX_IMAGE), differs)?
    };
    let Some(index) = found else {
        if sizes.0 == sizes.1 || !(linear || common <= MAX_IMAGE) {
            return Err(LayoutError::Undecided { op: OP, limit: MAX_IMAGE as usize });
        }
        return Ok(Err(Difference { sizes, at: None }));
    };
    let place = |map: &Composed| idx2crd(&Tree::leaf(index), &map.shape());
    let (coordinates, values) = ((place(a)?, place(b)?), (a.eval(&index)?, b.eval(&index)?));
    Ok(Err(Difference { sizes, at: Some(Point { index, coordinates, values }) }))
}

/// The first of some indices that has a property.
fn first(
    indices: impl IntoIterator<Item = i64>,
    wanted: impl Fn(&i64) -> Result<bool, LayoutError>,
) -> Result<Option<i64>, LayoutError> {
    for index in indices {
        if wanted(&index)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn decide<D: Stride>(a: &Layout<D>, b: &Layout<D>) -> Result<Result<Layout<D>, Difference<D>>, LayoutError> {
    let (short_a, short_b) = (a.coalesce()?, b.coalesce()?);
    // The coalesced form of no leaf differs from that of one position, although the function is the
    // same.
    if short_a == short_b || (a.size().is_one().proved() && b.size().is_one().proved()) {
        return Ok(Ok(short_a));
    }
    let sizes = (a.size(), b.size());
    for index in marks(&short_a, &short_b)? {
        if index.less(&sizes.0).refuted() || index.less(&sizes.1).refuted() {
            continue;
        }
        let values = (a.eval(&index)?, b.eval(&index)?);
        match values.0.same(&values.1) {
            Truth::Proved => {}
            Truth::Refuted => {
                for size in [&sizes.0, &sizes.1] {
                    if !index.less(size).proved() {
                        return Err(open(OP, format_args!("{index} is less than {size}")));
                    }
                }
                let place = |layout: &Layout<D>| idx2crd(&Tree::leaf(index.clone()), &layout.shape());
                let coordinates = (place(a)?, place(b)?);
                return Ok(Err(Difference { sizes, at: Some(Point { index, coordinates, values }) }));
            }
            Truth::Open => return Err(open(OP, format_args!("{} equals {}", values.0, values.1))),
        }
    }
    match sizes.0.same(&sizes.1) {
        Truth::Refuted => Ok(Err(Difference { sizes, at: None })),
        Truth::Proved | Truth::Open => Err(open(OP, format_args!("{short_a} equals {short_b}"))),
    }
}

/// Indices, in increasing order, among which is the first one at which two coalesced layouts
/// differ, if they differ below both sizes.
fn marks<D: Stride>(a: &Layout<D>, b: &Layout<D>) -> Result<Vec<D::Extent>, LayoutError> {
    let mut before = D::Extent::one();
    let mut pairs = a.leaves().iter().zip(b.leaves());
    let (first, second) = loop {
        match pairs.next() {
            Some((first, second)) if first == second => {
                before = before.times(&first.extent).fits(OP)?;
            }
            Some((first, second)) => break (first, second),
            None => return Ok(vec![before]),
        }
    };
    let mut steps = vec![D::Extent::one()];
    for leaf in [first, second] {
        steps.push(leaf.extent.clone());
        if let Some(extent) = leaf.extent.known() {
            let lowest = extent & extent.wrapping_neg();
            let carries = [extent.checked_add(lowest), lowest.checked_mul(2).and_then(|two| extent.checked_add(two))];
            steps.extend(carries.into_iter().flatten().map(D::Extent::from));
        }
    }
    steps.sort_by(|a, b| if a.less(b).proved() { core::cmp::Ordering::Less } else { core::cmp::Ordering::Greater });
    // A product beyond 64 bits is greater than both sizes.
    Ok(steps.iter().filter_map(|step| before.times(step)).collect())
}
