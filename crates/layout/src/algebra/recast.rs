//! Recasting: the same memory as wider or narrower elements.
//!
//! Element `x` of `w` bits occupies the bits `[x*w, (x+1)*w)`.
//!
//! Law of widening, [`Layout::recast`] from elements of `w` bits to `n*w`: the result `R` has the
//! profile of `L`, each leaf extent `s` divided by some `f`, the `f` of all leaves multiplying up
//! to `n`, and for every coordinate `c` of `R` the `n` elements `L(f*c + j)`, `0 <= j < f` at every
//! leaf, are the elements `n*R(c), n*R(c)+1, .., n*R(c)+n-1`, each once: element `c` of `R` covers
//! exactly the bits of that box of elements of `L`.
//!
//! Law of narrowing, from `r*w` bits to `w`: there is a leaf of `L`, the *run leaf*, such that
//! element `(.., r*c + j, ..)` of `R` is part `j` of element `(.., c, ..)` of `L`:
//! `R(.., r*c + j, ..) = r*L(.., c, ..) + j` for `0 <= j < r`.
//!
//! *Widening is decided leaf by leaf.* The box at `c = 0` is onto `[0, n)`, so its modes `f:d` with
//! `f > 1` have positive strides which, sorted, start at 1, and each is what the ones before cover.
//! What remains of a leaf, `s/f : f*d`, moves whole wide elements, so `n` divides `f*d` wherever
//! `s/f > 1`. Hence a leaf whose stride is a multiple of `n` has `f = 1`; any other has a stride
//! that divides `n` and `f = min(s, n/d)`, which must divide `s`. There is no choice: the result is
//! unique, or there is none.
//!
//! *Narrowing always succeeds*, since every element can be cut into parts; only the leaf for the
//! parts must be chosen. The choice keeps the profile if possible: the first leaf of stride 1 (and
//! extent above 1), else the first leaf of extent 1, where a widening may have left its box; else
//! the first leaf `s:d` of nonzero stride becomes the pair `(r,s):(1,r*d)`. With numbers that are
//! not known, substituting values gives the same result and profile as narrowing after the
//! substitution, unless a value makes an extent 1, or a stride 0 or 1: then the choice of the leaf
//! may differ. The law holds for those values too.
//!
//! [`Layout::upcast`] and [`Layout::downcast`] apply CuTe's formulas leaf by leaf, without these
//! conditions.
//!
//! *Numbers that are not known* need facts: whether `n` divides a stride, and `f` an extent. A leaf
//! that may have one position is treated as any other, because the stride of a leaf of extent 1 is
//! not observed.

use alloc::boxed::Box;

use crate::algebra::complement::no_magnitude;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::{Chain, Condition};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Truth, gcd};
use crate::value::profile::{Profile, ProfileBuilder};
use crate::value::tree::{Leaves, Tree};

const OP: &str = "recast_layout";

impl<N: Extent> Layout<N> {
    /// The layout in elements `n` times as wide, rounded up (CuTe `upcast<n>`).
    ///
    /// A leaf `s:d` becomes `ceil(s / ceil(n / |d|)) : ceil(|d| / n)` with the sign of `d`; a
    /// stride of 0 stays. The result *covers* the elements: a wide element that is only partly
    /// filled is included, and a stride that is not a multiple of `n` is rounded away from zero. So
    /// it is a layout of the same memory only if [`Layout::recast`] succeeds.
    ///
    /// Errors: `n` is not positive; it is not known whether a stride is negative, zero or positive
    /// ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let upcast = |text: &str, n| text.parse::<Layout>().unwrap().upcast(n).unwrap().to_string();
    /// assert_eq!(upcast("(4,6):(1,4)", 2), "(2,6):(1,2)");
    /// assert_eq!(upcast("(5,3):(5,0)", 2), "(5,3):(3,0)"); // rounded up: 5 elements are 2.5 wide ones
    /// let launch: Layout<Expr> = "(M{div=8},K):(1,M)".parse().unwrap();
    /// assert_eq!(launch.upcast(8).unwrap().to_string(), "(M/8,K):(1,M/8)");
    /// ```
    pub fn upcast(&self, n: i64) -> Result<Layout<N>, LayoutError> {
        let count = N::from(factor("upcast", n)?);
        Layout::from_tree(self.tree().try_map(|leaf| widen(leaf, &count))?)
    }

    /// The layout in elements `n` times as narrow, by stride (CuTe `downcast<n>`).
    ///
    /// Every leaf of stride 1 has its extent multiplied by `n`, every other one its stride. This is
    /// a layout of the same memory only if exactly one leaf has stride 1; [`Layout::recast`] is
    /// always exact.
    ///
    /// Errors: `n` is not positive; a leaf has stride -1, whose parts would be in reverse order; it
    /// is not known whether a stride is 1 or -1 ([`LayoutError::Open`]); a number does not fit.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let downcast = |text: &str, n| text.parse::<Layout>().unwrap().downcast(n).unwrap().to_string();
    /// assert_eq!(downcast("(4,6):(6,1)", 2), "(4,12):(12,1)");
    /// assert_eq!(downcast("3:2", 2), "3:4"); // the first half of each element only
    /// ```
    pub fn downcast(&self, n: i64) -> Result<Layout<N>, LayoutError> {
        const OP: &str = "downcast";
        let count = N::from(factor(OP, n)?);
        let mut position = 0;
        let tree = self.tree().try_map(|leaf| {
            position += 1;
            let (extent, stride) = (&leaf.extent, &leaf.stride);
            let wider = || extent.times(&count).fits_as::<N>(OP);
            if n == 1 && !extent.is_one().proved() {
                return Ok(leaf.clone());
            }
            match (stride.same(&N::one()), stride.same(&N::from(-1))) {
                (Truth::Proved, _) => Ok(Leaf { extent: wider()?, stride: N::one() }),
                (Truth::Refuted, _) if extent.is_one().proved() => Ok(Leaf { extent: N::one(), stride: N::zero() }),
                (Truth::Refuted, Truth::Refuted) => {
                    Ok(Leaf { extent: extent.clone(), stride: stride.times(&count).fits_as::<N>(OP)? })
                }
                (_, Truth::Proved) => {
                    Err(LayoutError::Negative { op: OP, path: self.profile().path(position - 1), stride: -1 })
                }
                _ => Err(LayoutError::open(OP, Condition::Less, &N::one(), stride)),
            }
        })?;
        Layout::from_tree(tree)
    }

    /// The layout of the same bits in elements of `new_bits`, where this one has elements of
    /// `old_bits`, exactly (CuTe `recast_layout`).
    ///
    /// Only the ratio of the widths matters: with `g = gcd(new_bits, old_bits)` elements are cut
    /// into `old_bits / g` parts, and `new_bits / g` parts are put together. Widening keeps the
    /// profile; narrowing keeps it unless no leaf has stride 1 or extent 1: then one leaf becomes a
    /// pair. The laws are at the head of this file.
    ///
    /// Errors: a width is not positive; elements do not pack into wide ones: a stride or an extent
    /// does not divide ([`LayoutError::NotDivisible`], numbers in elements of `g` bits), a mode
    /// runs backwards within a wide element ([`LayoutError::Negative`]), too few are contiguous for
    /// a wide one ([`LayoutError::Apart`]), or modes overlap within one; it is not known whether
    /// they do ([`LayoutError::Open`]); a number does not fit.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let recast = |new, old, text: &str| text.parse::<Layout>().unwrap().recast(new, old);
    /// assert_eq!(recast(16, 32, "(4,8):(1,4)").unwrap().to_string(), "(8,8):(1,8)");
    /// assert_eq!(recast(32, 16, "(8,8):(1,8)").unwrap().to_string(), "(4,8):(1,4)");
    /// assert_eq!(recast(24, 16, "(6,2):(1,9)").unwrap().to_string(), "(4,2):(1,6)");
    /// assert_eq!(recast(16, 32, "3:2").unwrap().to_string(), "(2,3):(1,4)");
    /// let error = recast(32, 16, "(3,2):(1,4)").unwrap_err();
    /// assert_eq!(error.to_string(), "recast_layout: in mode 0, 2 does not divide 3");
    /// let error = recast(32, 16, "8:2").unwrap_err();
    /// let apart = "a wide element is 2 elements side by side, and here no two are";
    /// assert_eq!(error.to_string(), format!("recast_layout: {apart}"));
    ///
    /// let launch = |text: &str| text.parse::<Layout<Expr>>().unwrap().recast(32, 16);
    /// assert_eq!(launch("(K,M{div=8}):(M,1)").unwrap().to_string(), "(K,M/2):(M/2,1)");
    /// let error = launch("(K,M):(M,1)").unwrap_err();
    /// assert_eq!(error.to_string(), "recast_layout: needs M to be a multiple of 2; declare `M{div=2}`");
    /// ```
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Layout<N>, LayoutError> {
        for (what, value) in [("new_bits", new_bits), ("old_bits", old_bits)] {
            if value <= 0 {
                return Err(LayoutError::Argument { op: OP, what, value, wanted: "positive" });
            }
        }
        let divisor = gcd(new_bits, old_bits) as i64;
        let parts = cut(self.leaves(), old_bits / divisor).fits_as::<N>(OP)?;
        let leaves = pack(self.profile(), &parts, new_bits / divisor)?;
        let profile = match parts.run {
            ProfileCut::Kept => self.profile().duplicate(),
            ProfileCut::Pair(pair) => {
                let mut builder = ProfileBuilder::new();
                builder.substitute(self.profile().as_ref(), &mut |leaf, out| {
                    if leaf == pair { out.flat(2) } else { out.leaf() }
                });
                builder.finish()?
            }
            ProfileCut::Added => Profile::flat(1)?,
        };
        Layout::from_tree(Tree::from_parts(profile, leaves))
    }

    /// The largest `n` such that the coalesced layout recasts exactly to elements `n` times as wide
    /// (CuTe `max_alignment`): every aligned group of this many elements is contiguous, so that one
    /// load or store can move it.
    ///
    /// With numbers that are not known, it is the largest `n` for which the facts prove this for
    /// every admissible value; for particular values a larger `n` may exist.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let alignment = |text: &str| text.parse::<Layout>().unwrap().max_alignment();
    /// assert_eq!(alignment("(4,8):(1,4)"), 32);
    /// assert_eq!(alignment("(4,8):(1,6)"), 2);
    /// assert_eq!(alignment("4:2"), 1);
    ///
    /// let launch = |text: &str| text.parse::<Layout<Expr>>().unwrap().max_alignment().to_string();
    /// assert_eq!(launch("(M{div=8},K):(1,S{div=16})"), "8");
    /// assert_eq!(launch("(M{div=8},K):(1,M)"), "K*M");
    /// ```
    pub fn max_alignment(&self) -> N {
        self.alignment_within(&N::zero())
    }

    /// The largest such `n` that divides `whole`; every `n` divides 0.
    pub(crate) fn alignment_within(&self, whole: &N) -> N {
        // The box of the law consists of whole leaves, in the order of their strides, and of a
        // divisor of one more leaf. Every other stride must be a multiple of their product. A
        // larger box would consist of the same leaves and more, so the first leaf that is not whole
        // ends it.
        let Some(mut leaves) = crate::algebra::coalesce::coalesced(self.leaves()) else { return N::one() };
        leaves.retain(|leaf| !leaf.stride.is_zero().proved());
        let mut n = N::one();
        while let Some(next) = leaves.iter().position(|leaf| leaf.stride.same(&n).proved()) {
            let leaf = leaves.remove(next);
            let others = leaves.iter().fold(whole.clone(), |common, leaf| common.shared_divisor(&leaf.stride));
            let Some((others, _)) = others.divide(&n).filter(|(_, rest)| rest.is_zero().proved()) else { break };
            let part = leaf.extent.shared_divisor(&others);
            match n.times(&part) {
                Some(product) => n = product,
                None => break,
            }
            if !part.same(&leaf.extent).proved() {
                break;
            }
        }
        n
    }
}

fn factor(op: &'static str, n: i64) -> Result<i64, LayoutError> {
    if n > 0 { Ok(n) } else { Err(LayoutError::Argument { op, what: "the factor", value: n, wanted: "positive" }) }
}

/// CuTe's upcast of one leaf.
fn widen<N: Extent>(leaf: &Leaf<N>, n: &N) -> Result<Leaf<N>, LayoutError> {
    const OP: &str = "upcast";
    let (extent, stride) = (&leaf.extent, &leaf.stride);
    if extent.is_one().proved() {
        return Ok(Leaf { extent: N::one(), stride: N::zero() });
    }
    if stride.is_zero().proved() || n.is_one().proved() {
        return Ok(leaf.clone());
    }
    let negative = match stride.less(&N::zero()) {
        Truth::Open => return Err(no_magnitude(OP, stride)),
        answer => answer.proved(),
    };
    let magnitude = || if negative { N::zero().minus(stride) } else { Some(stride.clone()) };
    if stride.is_zero() == Truth::Open {
        return Err(LayoutError::open(OP, Condition::Less, &N::zero(), stride));
    }
    // `i64::MIN` has no magnitude in i64, but it is large enough here.
    let wide = match negative {
        true => N::zero().minus(n).is_some_and(|end| end.less(stride).refuted()),
        false => stride.less(n).refuted(),
    };
    let extent = match wide {
        true => extent.clone(),
        false => magnitude()
            .and_then(|step| n.divide_up(&step))
            .and_then(|count| extent.divide_up(&count))
            .fits_as::<N>(OP)?,
    };
    if extent.is_one().proved() {
        return Ok(Leaf { extent, stride: N::zero() });
    }
    let stride = match stride.divide(n) {
        Some((quotient, rest)) if rest.is_zero().proved() => Some(quotient),
        Some((quotient, rest)) if negative && rest.is_zero().refuted() => quotient.minus(&N::one()),
        _ if negative => magnitude().and_then(|step| N::zero().minus(&step.divide_up(n)?)),
        _ => stride.divide_up(n),
    };
    Ok(Leaf { extent, stride: stride.fits_as::<N>(OP)? })
}

/// How narrowing changed the profile.
enum ProfileCut {
    Kept,
    /// The leaf with this index became two leaves.
    Pair(usize),
    /// The layout had no leaf and now has one.
    Added,
}

/// The leaves of a layout whose elements were cut into parts.
struct CutLeaves<N: Extent> {
    leaves: Leaves<Leaf<N>>,
    run: ProfileCut,
}

impl<N: Extent> CutLeaves<N> {
    /// The path of a leaf in the layout before it was cut.
    fn path(&self, profile: &Profile, leaf: usize) -> crate::Path {
        match self.run {
            ProfileCut::Pair(pair) if leaf > pair => profile.path(leaf - 1),
            ProfileCut::Added => crate::Path::new(),
            _ => profile.path(leaf),
        }
    }
}

/// Narrows by `r`; None if a number is not representable.
fn cut<N: Extent>(leaves: &[Leaf<N>], r: i64) -> Option<CutLeaves<N>> {
    let canonical = |leaf: &Leaf<N>| match leaf.extent.is_one().proved() {
        true => Leaf { extent: N::one(), stride: N::zero() },
        false => leaf.clone(),
    };
    if r == 1 {
        return Some(CutLeaves { leaves: leaves.iter().map(canonical).collect(), run: ProfileCut::Kept });
    }
    let (found, count) = (run_leaf(leaves), N::from(r));
    let mut out = Leaves::new();
    let mut run = ProfileCut::Kept;
    for (position, leaf) in leaves.iter().map(canonical).enumerate() {
        let moved = Leaf { extent: leaf.extent.clone(), stride: leaf.stride.times(&count)? };
        if found != Some(position) {
            out.push(moved);
        } else if leaf.extent.is_one().proved() || leaf.stride.same(&N::one()).proved() {
            out.push(Leaf { extent: leaf.extent.times(&count)?, stride: N::one() });
        } else {
            run = ProfileCut::Pair(position);
            out.push(Leaf { extent: count.clone(), stride: N::one() });
            out.push(moved);
        }
    }
    if found.is_none() {
        run = ProfileCut::Added;
        out.push(Leaf { extent: count, stride: N::one() });
    }
    Some(CutLeaves { leaves: out, run })
}

/// The leaf that receives the parts of an element: one that keeps the profile, or the first of
/// nonzero stride. Any leaf would satisfy the law.
fn run_leaf<N: Extent>(leaves: &[Leaf<N>]) -> Option<usize> {
    let one = |leaf: &Leaf<N>| leaf.extent.is_one().proved();
    let contiguous = leaves.iter().position(|leaf| !one(leaf) && leaf.stride.same(&N::one()).proved());
    let single = || leaves.iter().position(one);
    let moving = || leaves.iter().position(|leaf| !leaf.stride.is_zero().proved());
    contiguous.or_else(single).or_else(moving).or(if leaves.is_empty() { None } else { Some(0) })
}

/// A mode of the wide element at 0: extent, stride, leaf.
type Inside = (i64, i64, usize);

/// Widens by `n`, or returns the reason why the elements do not pack.
fn pack<N: Extent>(profile: &Profile, parts: &CutLeaves<N>, n: i64) -> Result<Leaves<Leaf<N>>, LayoutError> {
    let uneven =
        |leaf, value, divisor| LayoutError::NotDivisible { op: OP, path: parts.path(profile, leaf), value, divisor };
    let wide = N::from(n);
    let mut inside: Leaves<Inside> = Leaves::new();
    let mut out = Leaves::new();
    for (position, leaf) in parts.leaves.iter().enumerate() {
        if wide.divides(&leaf.stride).proved() {
            let (stride, _) = leaf.stride.divide(&wide).fits_as::<N>(OP)?;
            out.push(Leaf { extent: leaf.extent.clone(), stride });
            continue;
        }
        let Some(stride) = leaf.stride.known() else {
            return Err(LayoutError::open(OP, Condition::Divides, &wide, &leaf.stride));
        };
        if stride < 0 || n % stride != 0 {
            // If the leaf has one position, its stride does not matter.
            return Err(match N::one().less(&leaf.extent) {
                Truth::Proved if stride < 0 => {
                    LayoutError::Negative { op: OP, path: parts.path(profile, position), stride }
                }
                Truth::Proved => uneven(position, stride, n),
                _ => LayoutError::open(OP, Condition::AtMost, &leaf.extent, &N::one()),
            });
        }
        let room = N::from(n / stride);
        let part = match (leaf.extent.less(&room), leaf.extent.known()) {
            (Truth::Refuted, _) => n / stride,
            (Truth::Proved, Some(extent)) => extent,
            _ => return Err(LayoutError::open(OP, Condition::AtMost, &room, &leaf.extent)),
        };
        let divided = leaf.extent.divide(&N::from(part)).fits_as::<N>(OP)?;
        let (rest, left) = divided;
        if !left.is_zero().proved() {
            return Err(match leaf.extent.known() {
                Some(extent) => uneven(position, extent, part),
                None => LayoutError::open(OP, Condition::Divides, &N::from(part), &leaf.extent),
            });
        }
        inside.push((part, stride, position));
        let stride = if rest.is_one().proved() { N::zero() } else { N::one() };
        out.push(Leaf { extent: rest, stride });
    }
    inside.sort_by_key(|(_, stride, _)| *stride);
    let mut covered = 1;
    let mut last: Option<Inside> = None;
    for mode in inside {
        let (part, stride, position) = mode;
        if stride > covered {
            let path = parts.path(profile, position);
            return Err(LayoutError::Apart { op: OP, path, together: covered, needed: n });
        }
        if stride < covered {
            let inner = last.map(|(part, stride, leaf)| (parts.path(profile, leaf), part, stride));
            let outer = (parts.path(profile, position), part, stride);
            return Err(LayoutError::Overlap(Box::new(Chain { op: OP, inner, covered, outer })));
        }
        // The product is at most n, because the part is at most n / stride.
        covered *= part;
        last = Some(mode);
    }
    if covered < n {
        let path = last.map(|(_, _, leaf)| parts.path(profile, leaf)).unwrap_or_default();
        return Err(LayoutError::Apart { op: OP, path, together: covered, needed: n });
    }
    Ok(out)
}
