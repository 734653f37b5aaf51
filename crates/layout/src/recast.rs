//! Recasting: the same memory, read in wider or narrower elements.
//!
//! Element `x` of `w` bits occupies the bits `[x*w, (x+1)*w)`.
//!
//! Law of widening, [`Layout::recast`] from elements of `w` bits to `n*w`: the result `R` has the profile of `L`, each leaf extent
//! `s` divided by some `f`, the `f` of all leaves multiplying up to `n`, and for every coordinate `c` of `R` the `n` elements
//! `L(f*c + j)`, `0 <= j < f` at every leaf, are the elements `n*R(c), n*R(c)+1, .., n*R(c)+n-1`, each once: element `c` of `R`
//! covers exactly the bits of that box of elements of `L`.
//!
//! Law of narrowing, from `r*w` bits to `w`: there is a leaf of `L`, the *run leaf*, such that element `(.., r*c + j, ..)` of `R`
//! is part `j` of element `(.., c, ..)` of `L`: `R(.., r*c + j, ..) = r*L(.., c, ..) + j` for `0 <= j < r`.
//!
//! *Widening is decided leaf by leaf.* The box at `c = 0` is onto `[0, n)`, so its modes `f:d` with `f > 1` have positive strides which,
//! sorted, start at 1, and each is what the ones before cover. What remains of a leaf, `s/f : f*d`, moves whole wide elements, so
//! `n` divides `f*d` wherever `s/f > 1`. Hence a leaf whose stride is a multiple of `n` has `f = 1`; any other has a stride that divides
//! `n` and `f = min(s, n/d)`, which must divide `s`. There is no choice: the result is unique, or there is none.
//!
//! *Narrowing always succeeds*, since an element can be cut at will; only the place of the parts is free. They go where they keep
//! the profile: into the first leaf of stride 1 (and extent above 1), else into the first leaf of extent 1, where a widening
//! may have left its box; else the leaf `s:d` of least stride becomes the pair `(r,s):(1,r*d)`.
//!
//! [`Layout::upcast`] and [`Layout::downcast`] are CuTe's formulas, leaf by leaf and without these conditions.

use crate::error::LayoutError;
use crate::evidence::Chain;
use crate::layout::{Layout, Leaf};
use crate::number::gcd;
use crate::profile::{Builder, Profile};
use crate::tree::{Leaves, Tree};

const OP: &str = "recast_layout";

impl Layout {
    /// The layout in elements `n` times as wide, rounded up (CuTe `upcast<n>`).
    ///
    /// A leaf `s:d` becomes `ceil(s / ceil(n / |d|)) : ceil(|d| / n)` with the sign of `d`; a stride 0 stays. The result *covers*:
    /// where elements do not fill a wide one, the wide one is there all the same, and a stride that is not a multiple of `n` is
    /// rounded away from zero. So it is a layout of the same memory only where [`Layout::recast`] agrees to it.
    ///
    /// Errors: `n` is not positive.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let upcast = |text: &str, n| text.parse::<Layout>().unwrap().upcast(n).unwrap().to_string();
    /// assert_eq!(upcast("(4,6):(1,4)", 2), "(2,6):(1,2)");
    /// assert_eq!(upcast("(5,3):(5,0)", 2), "(5,3):(3,0)"); // rounded up: 5 elements are 2.5 wide ones
    /// ```
    pub fn upcast(&self, n: i64) -> Result<Layout, LayoutError> {
        let count = factor("upcast", n)?;
        Ok(Layout::from_valid(self.tree().map(|leaf| widen(*leaf, count))))
    }

    /// The layout in elements `n` times as narrow, by stride (CuTe `downcast<n>`).
    ///
    /// Every leaf of stride 1 has its extent multiplied by `n`, every other one its stride. This is a layout of the same
    /// memory only where exactly one leaf has stride 1; [`Layout::recast`] is right everywhere.
    ///
    /// Errors: `n` is not positive; a leaf has stride -1, whose parts run the other way; a number does not fit.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let downcast = |text: &str, n| text.parse::<Layout>().unwrap().downcast(n).unwrap().to_string();
    /// assert_eq!(downcast("(4,6):(6,1)", 2), "(4,12):(12,1)");
    /// assert_eq!(downcast("3:2", 2), "3:4"); // the first half of each element only
    /// ```
    pub fn downcast(&self, n: i64) -> Result<Layout, LayoutError> {
        const OP: &str = "downcast";
        factor(OP, n)?;
        let mut position = 0;
        let tree = self.tree().try_map(|leaf| {
            position += 1;
            match (leaf.extent, leaf.stride) {
                (extent, 1) => {
                    let extent = extent.checked_mul(n).ok_or_else(|| LayoutError::overflow(OP))?;
                    Ok(Leaf { extent, stride: 1 })
                }
                (1, _) => Ok(Leaf { extent: 1, stride: 0 }),
                (_, -1) if n > 1 => {
                    Err(LayoutError::Negative { op: OP, path: self.profile().path(position - 1), stride: -1 })
                }
                (extent, stride) => {
                    Ok(Leaf { extent, stride: stride.checked_mul(n).ok_or_else(|| LayoutError::overflow(OP))? })
                }
            }
        })?;
        Layout::from_tree(tree)
    }

    /// The layout of the same bits in elements of `new_bits`, where this one has elements of `old_bits`, exactly (CuTe
    /// `recast_layout`).
    ///
    /// Only the ratio counts: with `g = gcd(new_bits, old_bits)` elements are cut into `old_bits / g` parts, and
    /// `new_bits / g` parts are put together. Widening keeps the profile; narrowing keeps it unless no leaf has stride 1 or extent 1: then
    /// one leaf becomes a pair. The laws are at the head of this file.
    ///
    /// Errors: a width is not positive; elements do not pack into wide ones: a stride or an extent does not divide
    /// ([`LayoutError::NotDivisible`], numbers in elements of `g` bits), the consecutive elements are too few for a wide one (the same,
    /// their number as the value), or modes overlap within one; a number does not fit.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let recast = |new, old, text: &str| text.parse::<Layout>().unwrap().recast(new, old);
    /// assert_eq!(recast(16, 32, "(4,8):(1,4)").unwrap().to_string(), "(8,8):(1,8)");
    /// assert_eq!(recast(32, 16, "(8,8):(1,8)").unwrap().to_string(), "(4,8):(1,4)");
    /// assert_eq!(recast(24, 16, "(6,2):(1,9)").unwrap().to_string(), "(4,2):(1,6)");
    /// assert_eq!(recast(16, 32, "3:2").unwrap().to_string(), "(2,3):(1,4)");
    /// let error = recast(32, 16, "(3,2):(1,4)").unwrap_err();
    /// assert_eq!(error.to_string(), "recast_layout: in mode 0, 2 does not divide 3");
    /// ```
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Layout, LayoutError> {
        for (what, value) in [("new_bits", new_bits), ("old_bits", old_bits)] {
            if value <= 0 {
                return Err(LayoutError::Argument { op: OP, what, value, wanted: "positive" });
            }
        }
        let divisor = gcd(new_bits, old_bits) as i64;
        let parts = cut(self.leaves(), old_bits / divisor).ok_or_else(|| LayoutError::overflow(OP))?;
        let leaves = pack(self.profile(), &parts, new_bits / divisor)?;
        let profile = match parts.run {
            Run::Kept => self.profile().duplicate(),
            Run::Pair(pair) => {
                let mut builder = Builder::new();
                builder.substitute(self.profile().as_ref(), &mut |leaf, out| {
                    if leaf == pair { out.flat(2) } else { out.leaf() }
                });
                builder.finish()?
            }
            Run::Added => Profile::flat(1)?,
        };
        Layout::from_tree(Tree::from_parts(profile, leaves))
    }

    /// The largest `n` such that the coalesced layout recasts exactly to elements `n` times as wide (CuTe `max_alignment`): so many
    /// elements, aligned, always lie together and can move as one.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let alignment = |text: &str| text.parse::<Layout>().unwrap().max_alignment();
    /// assert_eq!(alignment("(4,8):(1,4)"), 32);
    /// assert_eq!(alignment("(4,8):(1,6)"), 2);
    /// assert_eq!(alignment("4:2"), 1);
    /// ```
    pub fn max_alignment(&self) -> i64 {
        self.alignment_within(0)
    }

    /// The largest such `n` that divides `whole`; 0 is divided by all.
    pub(crate) fn alignment_within(&self, whole: i64) -> i64 {
        // The boxes of the law are made of whole leaves, sorted by stride, and a divisor of one more; every other stride must be
        // a multiple of their product. A next box would need more of the same, so the first leaf that is not whole ends it.
        let Some(mut leaves) = crate::coalesce::coalesced(self.leaves()) else { return 1 };
        leaves.retain(|leaf| leaf.stride != 0);
        leaves.sort_by_key(|leaf| leaf.stride.unsigned_abs());
        let mut outer: Leaves<i64> = Leaves::from_elem(0, leaves.len());
        let mut common = whole;
        for (slot, leaf) in outer.iter_mut().zip(&leaves).rev() {
            *slot = common;
            common = signed_gcd(common, leaf.stride);
        }
        let mut n: i64 = 1;
        for (leaf, others) in leaves.iter().zip(outer) {
            if leaf.stride != n || others % n != 0 {
                break;
            }
            let part = signed_gcd(leaf.extent, others / n);
            n *= part;
            if part < leaf.extent {
                break;
            }
        }
        n
    }
}

/// The greatest common divisor, `gcd(0, n) = |n|`; that of two numbers whose divisor is 2^63 as its half, which divides
/// every extent that it could be compared with.
pub(crate) fn signed_gcd(a: i64, b: i64) -> i64 {
    i64::try_from(gcd(a, b)).unwrap_or(1 << 62)
}

fn factor(op: &'static str, n: i64) -> Result<u64, LayoutError> {
    match u64::try_from(n) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(LayoutError::Argument { op, what: "the factor", value: n, wanted: "positive" }),
    }
}

/// CuTe's upcast of one leaf. Nothing overflows: with `n = 1` nothing changes, and else every quotient is below 2^62.
fn widen(leaf: Leaf, n: u64) -> Leaf {
    if leaf.extent == 1 {
        return Leaf { extent: 1, stride: 0 };
    }
    if leaf.stride == 0 || n == 1 {
        return leaf;
    }
    let step = leaf.stride.unsigned_abs();
    let extent = (leaf.extent as u64).div_ceil(n.div_ceil(step)) as i64;
    let stride = step.div_ceil(n) as i64 * leaf.stride.signum();
    Leaf { extent, stride: if extent == 1 { 0 } else { stride } }
}

/// How cutting changed the profile.
enum Run {
    Kept,
    /// This leaf became two.
    Pair(usize),
    /// The layout had no leaf; now it has one.
    Added,
}

/// The leaves of a layout with elements cut into parts.
struct Parts {
    leaves: Leaves<Leaf>,
    run: Run,
}

impl Parts {
    /// The path of a leaf, in the layout as it was before it was cut.
    fn path(&self, profile: &Profile, leaf: usize) -> crate::Path {
        match self.run {
            Run::Pair(pair) if leaf > pair => profile.path(leaf - 1),
            Run::Added => crate::Path::new(),
            _ => profile.path(leaf),
        }
    }
}

/// Narrows by `r`; `None` when a number does not fit.
fn cut(leaves: &[Leaf], r: i64) -> Option<Parts> {
    let canonical = |leaf: &Leaf| Leaf { extent: leaf.extent, stride: if leaf.extent == 1 { 0 } else { leaf.stride } };
    if r == 1 {
        return Some(Parts { leaves: leaves.iter().map(canonical).collect(), run: Run::Kept });
    }
    let found = run_leaf(leaves);
    let mut out = Leaves::new();
    let mut run = Run::Kept;
    for (position, leaf) in leaves.iter().map(canonical).enumerate() {
        let moved = Leaf { extent: leaf.extent, stride: leaf.stride.checked_mul(r)? };
        if found != Some(position) {
            out.push(moved);
        } else if leaf.extent == 1 || leaf.stride == 1 {
            out.push(Leaf { extent: leaf.extent.checked_mul(r)?, stride: 1 });
        } else {
            run = Run::Pair(position);
            out.push(Leaf { extent: r, stride: 1 });
            out.push(moved);
        }
    }
    if found.is_none() {
        run = Run::Added;
        out.push(Leaf { extent: r, stride: 1 });
    }
    Some(Parts { leaves: out, run })
}

/// The leaf into which the parts of an element go.
fn run_leaf(leaves: &[Leaf]) -> Option<usize> {
    let all = || leaves.iter().enumerate();
    all()
        .find(|(_, leaf)| leaf.extent > 1 && leaf.stride == 1)
        .or_else(|| all().find(|(_, leaf)| leaf.extent == 1))
        .or_else(|| all().filter(|(_, leaf)| leaf.stride != 0).min_by_key(|(_, leaf)| leaf.stride.unsigned_abs()))
        .or_else(|| all().next())
        .map(|(position, _)| position)
}

/// Widens by `n`, or says why the elements do not pack.
fn pack(profile: &Profile, parts: &Parts, n: i64) -> Result<Leaves<Leaf>, LayoutError> {
    let uneven =
        |leaf, value, divisor| LayoutError::NotDivisible { op: OP, path: parts.path(profile, leaf), value, divisor };
    // The modes of the box at 0: extent, stride, leaf.
    let mut inside: Leaves<(i64, i64, usize)> = Leaves::new();
    let mut out = Leaves::new();
    for (position, leaf) in parts.leaves.iter().enumerate() {
        if leaf.stride % n == 0 {
            out.push(Leaf { extent: leaf.extent, stride: leaf.stride / n });
            continue;
        }
        if leaf.stride < 0 || n % leaf.stride != 0 {
            return Err(uneven(position, leaf.stride, n));
        }
        let part = leaf.extent.min(n / leaf.stride);
        if leaf.extent % part != 0 {
            return Err(uneven(position, leaf.extent, part));
        }
        inside.push((part, leaf.stride, position));
        let rest = leaf.extent / part;
        out.push(Leaf { extent: rest, stride: if rest == 1 { 0 } else { 1 } });
    }
    inside.sort_by_key(|(_, stride, _)| *stride);
    let mut covered = 1;
    let mut last: Option<(i64, i64, usize)> = None;
    for mode in inside {
        let (part, stride, position) = mode;
        if stride > covered {
            return Err(uneven(position, covered, n));
        }
        if stride < covered {
            let inner = last.map(|(part, stride, leaf)| (parts.path(profile, leaf), part, stride));
            let outer = (parts.path(profile, position), part, stride);
            return Err(LayoutError::Overlap(alloc::boxed::Box::new(Chain { op: OP, inner, covered, outer })));
        }
        // At most n: the part is at most n / stride.
        covered *= part;
        last = Some(mode);
    }
    if covered < n {
        let path = last.map(|(_, _, leaf)| parts.path(profile, leaf)).unwrap_or_default();
        return Err(LayoutError::NotDivisible { op: OP, path, value: covered, divisor: n });
    }
    Ok(out)
}
