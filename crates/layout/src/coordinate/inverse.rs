//! Inverses of layouts of coordinates, mode by mode of the codomain.
//!
//! # Laws
//!
//! * Right: `L(R(c)) = c` for every coordinate `c` in the shape of `R`, with `R(c)` an index of
//!   `L`.
//! * Left: `L(R(L(k))) = L(k)` for every index `k` of `L`; on an injective layout `R(L(k)) = k`.
//!
//! Both are layouts of integers over the codomain of `L`: their shape refines the nesting of
//! [`Layout::coprofile`].
//!
//! # How
//!
//! If each stride has one term, the leaves of `L` are partitioned by their paths; the leaves at
//! path `p` are the *part* `L_p`. `R` consists of a mode `R_p` for each path: an inverse of `L_p`
//! as a layout of integers, whose values are indices of `L` that are nonzero only in the leaves of
//! the part. Then the indices of different modes add without carries, and the laws hold for all
//! modes together because they hold for each.
//!
//! The chain of strides of a part ([`crate::algebra::inverse`]) gives such indices directly. If
//! there is no chain, an inverse of the part alone is searched. The layout that maps an index of
//! the part to the index of `L` is then composed with it; this composition may not exist. A left
//! inverse found in this way must have only indices of the part as values; one that uses the mirror
//! image of the layout below zero does not.
//!
//! *The largest right inverse* has along each mode a right inverse of the part, since its
//! coordinates at one path come from indices with that value and 0 elsewhere. So `R` is the largest
//! if each chain is, that is, unless modes of a part overlap or have negative strides.

use smallvec::SmallVec;

use super::codomain::paths;
use super::complement::refuse_diagonal;
use super::composition::moves;
use super::{Coordinate, ModePath, profile_of, unit_paths};
use crate::algebra::coalesce::push_merged;
use crate::algebra::inverse::{left_chain, right_chain};
use crate::algebra::search::MAX_TABLE;
use crate::limits::MAX_CANDIDATES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::Profile;
use crate::value::tree::{Leaves, Tree};

/// The leaves of a layout at one path.
struct PathLeaves<N: Extent> {
    /// The whole layout with the scales at the path as strides; its indices are those of the whole
    /// layout.
    within: Layout<N>,
    /// The leaves at the path alone, and the layout that maps an index of these to the index of the
    /// whole.
    alone: Layout<N>,
    spread: Layout<N>,
}

impl<N: Extent> PathLeaves<N> {
    fn new(op: &'static str, layout: &Layout<Coordinate<N>>, path: ModePath) -> Result<PathLeaves<N>, LayoutError> {
        let scaled =
            |leaf: &Leaf<Coordinate<N>>| Leaf { extent: leaf.extent.clone(), stride: leaf.stride.scale_at(path) };
        let within = Layout::from_valid(layout.tree().map(scaled));
        let steps = index_steps(layout.leaves()).fits_as::<N>(op)?;
        let (mut alone, mut spread): (Leaves<Leaf<N>>, Leaves<Leaf<N>>) = (Leaves::new(), Leaves::new());
        for (leaf, step) in within.leaves().iter().zip(steps).filter(|(leaf, _)| moves(leaf)) {
            alone.push(leaf.clone());
            spread.push(Leaf { extent: leaf.extent.clone(), stride: step });
        }
        Ok(PathLeaves { within, alone: Layout::flat(alone)?, spread: Layout::flat(spread)? })
    }

    /// The indices of the part as indices of the whole layout; None if their composition does not
    /// exist.
    fn spread(&self, places: &Layout<N>) -> Option<Layout<N>> {
        let spread = self.spread.compose(places).ok()?;
        let mut leaves = Leaves::new();
        for leaf in spread.leaves().iter().filter(|leaf| !leaf.extent.is_one().proved()) {
            push_merged(&mut leaves, leaf)?;
        }
        Layout::flat(leaves).ok()
    }

    /// Whether a left inverse of the part maps all its values to indices of the part.
    fn stays_inside(&self, inverse: &Layout<N>) -> bool {
        let size = self.alone.size();
        let Some(count) = size.known().filter(|count| *count <= MAX_TABLE) else { return false };
        (0..count).all(|index| {
            let back = self.alone.eval(&N::from(index)).and_then(|value| inverse.eval(&value));
            back.is_ok_and(|back| back.less(&N::zero()).refuted() && back.less(&size).proved())
        })
    }

    fn right_inverse(&self) -> Result<Layout<N>, LayoutError> {
        let mut chain = Layout::blank();
        let (covered, longer) = right_chain(&self.within, &mut chain)?;
        chain.nest_flat()?;
        if longer {
            let found = self.alone.right_inverse()?;
            if covered.less(&found.size()).proved()
                && let Some(found) = self.spread(&found)
            {
                return Ok(found);
            }
        }
        Ok(chain)
    }

    /// `exact` means that only the leaves of the part have values at its path.
    fn left_inverse(&self, exact: bool) -> Result<Layout<N>, LayoutError> {
        let mut chain = Layout::blank();
        if left_chain(&self.within, &mut chain)? {
            chain.nest_flat()?;
            return Ok(chain);
        }
        let undecided = || LayoutError::Undecided { op: "left_inverse", limit: MAX_CANDIDATES };
        match self.alone.left_inverse() {
            // Indices outside the part, mirrored or past its end, would carry into those of other
            // parts.
            Ok(found) if self.stays_inside(&found) => self.spread(&found).ok_or_else(undecided),
            Ok(_) => Err(undecided()),
            Err(LayoutError::NoLeftInverse(mut none)) if exact => {
                // The error has an index of the part; the whole layout has another index for the
                // same offset.
                let index = self.spread.eval(&N::from(none.index))?;
                none.index = index.known().ok_or_else(undecided)?;
                Err(LayoutError::NoLeftInverse(none))
            }
            Err(LayoutError::NoLeftInverse(_)) => Err(undecided()),
            Err(other) => Err(other),
        }
    }
}

/// The layout over the codomain whose mode at each path is `invert` of the part at that path.
fn over_codomain<N: Extent>(
    op: &'static str,
    layout: &Layout<Coordinate<N>>,
    invert: impl Fn(&PathLeaves<N>) -> Result<Layout<N>, LayoutError>,
) -> Result<Layout<N>, LayoutError> {
    refuse_diagonal(op, layout)?;
    inverted(op, layout, profile_of(&paths(layout.leaves()))?, invert)
}

/// The same over a codomain that may have more modes; they stay at index 0.
fn inverted<N: Extent>(
    op: &'static str,
    layout: &Layout<Coordinate<N>>,
    codomain: Profile,
    invert: impl Fn(&PathLeaves<N>) -> Result<Layout<N>, LayoutError>,
) -> Result<Layout<N>, LayoutError> {
    let named = paths(layout.leaves());
    let mut modes: SmallVec<[Layout<N>; 4]> = SmallVec::new();
    unit_paths(codomain.as_ref(), &mut |path| {
        let path = path?;
        let mode = match named.binary_search(&path) {
            Ok(_) => invert(&PathLeaves::new(op, layout, path)?)?,
            Err(_) => Layout::unit(),
        };
        modes.push(mode);
        Ok(())
    })?;
    let whole = Profile::leaf();
    let nesting = codomain.substitute(|leaf| modes.get(leaf).map_or(&whole, Layout::profile))?;
    let leaves: Leaves<Leaf<N>> = modes.iter().flat_map(|mode| mode.leaves().iter().cloned()).collect();
    Layout::from_tree(Tree::new(nesting, leaves)?)
}

impl<N: Extent> Layout<Coordinate<N>> {
    /// The largest layout `R` of integers over the codomain with `L(R(c)) = c` for every coordinate
    /// `c` in its shape.
    ///
    /// If modes overlap or have negative strides, it is the largest one that a search of
    /// [`crate::limits::MAX_CANDIDATES`] candidates finds in each mode. Errors: a stride has
    /// several terms ([`LayoutError::Diagonal`]); a number is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let right = |text: &str| text.parse::<Layout<Coordinate>>().unwrap().right_inverse().unwrap().to_string();
    /// assert_eq!(right("(4,5):(1@1,1@0)"), "(5,4):(4,1)");
    /// assert_eq!(right("((4,2),4):((1@1,4@0),1@0)"), "((4,2),4):((8,4),1)");
    /// assert_eq!(right("(4,5):(2@0,1@1)"), "(1,5):(0,4)"); // no value has index 1 in mode 0
    /// ```
    pub fn right_inverse(&self) -> Result<Layout<N>, LayoutError> {
        over_codomain("right_inverse", self, PathLeaves::right_inverse)
    }

    /// A layout `R` of integers over the codomain with `L(R(L(k))) = L(k)` for every index `k`.
    ///
    /// Errors: no layout does this ([`LayoutError::NoLeftInverse`]); the strides in a mode do not
    /// divide each other, and the search does not decide ([`LayoutError::Undecided`]); a stride has
    /// several terms ([`LayoutError::Diagonal`]).
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let left = |text: &str| text.parse::<Layout<Coordinate>>().unwrap().left_inverse().unwrap().to_string();
    /// assert_eq!(left("(4,5):(1@1,1@0)"), "(5,4):(4,1)");
    /// assert_eq!(left("(4,5):(2@0,2@1)"), "((2,4),(2,5)):((0,1),(0,4))");
    /// assert_eq!(left("4:1@0+1@1"), "(4,1):(1,0)"); // mode 0 determines the index
    /// ```
    pub fn left_inverse(&self) -> Result<Layout<N>, LayoutError> {
        // An index of leaves of stride 0 would also be a left inverse for a part.
        let exact = self.leaves().iter().all(|leaf| {
            leaf.extent.is_one().proved()
                || leaf.stride.term().is_some_and(|(_, scale)| N::zero().less(scale) == Truth::Proved)
        });
        let invert = |part: &PathLeaves<N>| part.left_inverse(exact);
        let codomain = || profile_of(&paths(self.leaves()));
        match seen_enough(self)? {
            Some(seen) => inverted("left_inverse", &seen, codomain()?, invert),
            None => over_codomain("left_inverse", self, invert),
        }
    }
}

/// The largest number of paths, for steps in several modes at once, of which all combinations are
/// tried.
const MAX_PATHS: usize = 8;

/// For a layout with steps in several modes at once: the layout with one term for each leaf, at
/// paths whose coordinates alone determine the index. None if no step is in several modes, or no
/// such paths exist.
fn seen_enough<N: Extent>(layout: &Layout<Coordinate<N>>) -> Result<Option<Layout<Coordinate<N>>>, LayoutError> {
    const OP: &str = "left_inverse";
    let all = paths(layout.leaves());
    if refuse_diagonal(OP, layout).is_ok() || all.len() > MAX_PATHS {
        return Ok(None);
    }
    for chosen in 1..1_usize << all.len() {
        let seen = |leaf: &Leaf<Coordinate<N>>| {
            let paths = all.iter().enumerate().filter(|(number, _)| chosen >> number & 1 == 1);
            let term = |(_, path): (usize, &ModePath)| Coordinate::step(leaf.stride.scale_at(*path), *path);
            let sum = paths.map(term).try_fold(Coordinate::zero(), |sum: Coordinate<N>, step| sum.plus(&step));
            Ok(Leaf { extent: leaf.extent.clone(), stride: sum.fits_as::<N>(OP)? })
        };
        let seen = Layout::from_tree(layout.tree().try_map(seen)?)?;
        if refuse_diagonal(OP, &seen).is_err() {
            continue;
        }
        match seen.is_injective() {
            Ok(true) => return Ok(Some(seen)),
            Err(error @ LayoutError::Interrupted { .. }) => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

impl<N: Extent> Layout<Coordinate<N>> {
    /// Whether different indices have different values.
    ///
    /// Errors: [`LayoutError::Undecided`] and [`LayoutError::Open`], as for integers; with steps in
    /// several modes at once, the bounding box of the values has more than 2^63 - 1 elements.
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let injective = |text: &str| text.parse::<Layout<Coordinate>>().unwrap().is_injective().unwrap();
    /// assert!(injective("(4,4):(1@0,1@1)") && !injective("(4,4):(1@0,2@0)"));
    /// assert!(injective("(4,4):(1@0+1@1,1@1)") && !injective("(2,2,2):(1@0+1@1,1@0,1@1)"));
    /// ```
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        const OP: &str = "is_injective";
        if refuse_diagonal(OP, self).is_err() {
            let mut paths = paths(self.leaves());
            let decided = self.places(OP, &paths).and_then(|places| places.is_injective());
            // For sizes known at launch, another order may prove more.
            if let Err(LayoutError::Open { .. }) = decided {
                paths.reverse();
                return self.places(OP, &paths).and_then(|places| places.is_injective()).or(decided);
            }
            return decided;
        }
        // A mode of stride 0 repeats all values; modes that step at different paths are
        // independent.
        for leaf in self.leaves().iter().filter(|leaf| leaf.stride.is_zero().proved()) {
            match N::one().less(&leaf.extent) {
                Truth::Proved => return Ok(false),
                Truth::Refuted => {}
                Truth::Open => return Err(LayoutError::open(OP, Condition::AtMost, &leaf.extent, &N::one())),
            }
        }
        self.every_part(OP, |part| part.is_injective())
    }

    /// Whether the values are exactly the coordinates in the coshape. `holds` decides this for the
    /// leaves at each path, as a layout of the scales there.
    ///
    /// If a leaf steps in several modes at once, the answer is no. Either a value has a negative
    /// index; or the coordinate that is the largest in one of these modes and 0 in another is not a
    /// value, because the leaf would have to be at its last and at its first position.
    ///
    /// Errors: it is not known whether such a leaf has more than one position
    /// ([`LayoutError::Diagonal`]); `holds` returns an error.
    pub(crate) fn is_onto(
        &self,
        op: &'static str,
        holds: impl Fn(&Layout<N>) -> Result<bool, LayoutError>,
    ) -> Result<bool, LayoutError> {
        let several = |leaf: &Leaf<Coordinate<N>>| {
            let steps = leaf.stride.terms().filter(|(_, scale)| scale.is_zero().refuted());
            steps.count() > 1 && N::one().less(&leaf.extent).proved()
        };
        if self.leaves().iter().any(several) {
            return Ok(false);
        }
        refuse_diagonal(op, self)?;
        self.every_part(op, holds)
    }

    fn every_part(
        &self,
        op: &'static str,
        holds: impl Fn(&Layout<N>) -> Result<bool, LayoutError>,
    ) -> Result<bool, LayoutError> {
        for path in paths(self.leaves()) {
            if !holds(&PathLeaves::new(op, self, path)?.alone)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The positions of the values in their bounding box, as an integer layout: values are equal
    /// exactly if their positions are. A position counts along one path after the other, and the
    /// value 0 is at position 0.
    fn places(&self, op: &'static str, paths: &[ModePath]) -> Result<Layout<N>, LayoutError> {
        let overflow = || N::overflow(op);
        let mut strides: SmallVec<[N; 8]> = self.leaves().iter().map(|_| N::zero()).collect();
        let mut step = N::one();
        for path in paths.iter().copied() {
            let mut width = N::one();
            for (leaf, stride) in self.leaves().iter().zip(&mut strides) {
                let scale = leaf.stride.scale_at(path);
                let magnitude = scale.magnitude().ok_or_else(|| match scale.less(&N::zero()) {
                    Truth::Open => LayoutError::open(op, Condition::AtMost, &N::zero(), &scale),
                    _ => overflow(),
                })?;
                let last = leaf.extent.minus(&N::one()).fits_as::<N>(op)?;
                width = magnitude.times(&last).and_then(|reach| width.plus(&reach)).fits_as::<N>(op)?;
                *stride = scale.times(&step).and_then(|term| stride.plus(&term)).fits_as::<N>(op)?;
            }
            step = step.times(&width).fits_as::<N>(op)?;
        }
        let extents = self.leaves().iter().map(|leaf| leaf.extent.clone());
        let leaves: Leaves<Leaf<N>> = extents.zip(strides).map(|(extent, stride)| Leaf { extent, stride }).collect();
        Layout::from_tree(Tree::new(self.profile().duplicate(), leaves)?)
    }
}
