//! Coordinates as strides: layouts whose value is a coordinate, such as `(4,8):(1@0,1@1)`.
//!
//! Law: `3@1` is three steps in mode 1, and a [`Coordinate`] is a sum of such terms, each a scale
//! and the path of a mode: an element of the free module over paths. A path is written innermost
//! mode first, as CuTe does: `1@1@0` is one step in mode 1 of mode 0. A sum is written `1@0+2@1`,
//! or `1@0-2@1`; `0` is the empty sum.
//!
//! *The empty path means a codomain that is not a tuple*, so that a plain integer is a coordinate,
//! too: `4:1` maps an index to itself. Terms are formal, and any terms can be added. But the
//! strides of one layout must have a common codomain, in which a mode is either a number or a
//! tuple: **no path may end at a mode through which another path continues**. A layout or a tree of
//! strides that violates this is refused ([`LayoutError::Mixed`]); an integer stride next to basis
//! steps is such a case, with the empty path. Zero belongs to every codomain.
//!
//! Representation: terms sorted by path, none with a scale known to be 0, so that equal sums are
//! equal values. Two terms, and paths of up to [`MAX_PATH`] modes with numbers up to
//! [`MAX_PATH_MODE`], need no heap.

mod codomain;
mod complement;
pub(crate) mod composition;
mod descriptor;
mod inverse;
mod kind;
mod text;

pub use descriptor::Descriptor;

use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt;

use smallvec::SmallVec;

use crate::limits::{MAX_PATH, MAX_PATH_MODE};
use crate::refusal::error::{LayoutError, Limit};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::{Profile, ProfileBuilder, ProfileRef};
use crate::value::tree::{Leaves, Tree};

/// The path of a mode, outermost mode first: at most [`MAX_PATH`] modes with numbers up to
/// [`MAX_PATH_MODE`].
///
/// Paths are ordered mode by mode, and a path precedes those that continue it.
///
/// ```
/// use tilewright_layout::ModePath;
///
/// let path = ModePath::new(&[0, 1]).unwrap();
/// assert_eq!(path.modes().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(path.to_string(), "@1@0"); // innermost first
/// assert!(ModePath::new(&[0]).unwrap().leads_to(path));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModePath {
    /// One byte for each mode, the outermost in the highest byte: the mode number plus 1; 0 after
    /// the last mode.
    bytes: u64,
}

impl ModePath {
    /// The empty path, which is the whole codomain.
    pub const ROOT: ModePath = ModePath { bytes: 0 };

    /// The path of these modes, outermost first.
    ///
    /// Errors: more than [`MAX_PATH`] modes; a mode above [`MAX_PATH_MODE`].
    pub fn new(modes: &[usize]) -> Result<ModePath, LayoutError> {
        modes.iter().try_fold(ModePath::ROOT, |path, mode| path.then(*mode))
    }

    /// This path extended by mode `mode`.
    ///
    /// Errors: as [`ModePath::new`].
    pub fn then(self, mode: usize) -> Result<ModePath, LayoutError> {
        let len = self.len();
        if len == MAX_PATH {
            return Err(LayoutError::TooLarge { limit: Limit::Path, value: len + 1 });
        }
        if mode > MAX_PATH_MODE {
            return Err(LayoutError::TooLarge { limit: Limit::PathMode, value: mode });
        }
        Ok(ModePath { bytes: self.bytes | (mode as u64 + 1) << (56 - 8 * len) })
    }

    /// The number of modes.
    #[inline]
    pub fn len(self) -> usize {
        MAX_PATH - self.bytes.trailing_zeros() as usize / 8
    }

    /// Whether this is the empty path.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// The modes, outermost first.
    pub fn modes(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..self.len()).map(move |at| ((self.bytes >> (56 - 8 * at)) & 0xff) as usize - 1)
    }

    /// Whether `other` is this path or continues it.
    #[inline]
    pub fn leads_to(self, other: ModePath) -> bool {
        let mask = if self.is_empty() { 0 } else { u64::MAX << (64 - 8 * self.len()) };
        other.bytes & mask == self.bytes
    }
}

impl fmt::Display for ModePath {
    /// Prints `@1@0`, innermost mode first; nothing for the empty path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.modes().rev().try_for_each(|mode| write!(f, "@{mode}"))
    }
}

/// A sum of steps along modes, such as `3@1`: the stride of a layout whose value is a coordinate.
///
/// ```
/// use tilewright_layout::{Coordinate, Layout, Profile, Stride};
///
/// let identity: Layout<Coordinate> = "(4,8):(1@0,1@1)".parse().unwrap();
/// let value = identity.eval(&9).unwrap();
/// assert_eq!(value.to_string(), "1@0+2@1");
/// assert_eq!(value.in_profile(&identity.coprofile().unwrap()).unwrap().to_string(), "(1,2)");
/// assert_eq!(value.times(&3).unwrap(), "3@0+6@1".parse().unwrap());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Coordinate<N: Extent = i64> {
    /// The first two terms; an absent term has the empty path and scale 0.
    first: CoordinateTerm<N>,
    second: CoordinateTerm<N>,
    /// The other terms.
    more: Option<Box<[CoordinateTerm<N>]>>,
}

/// `scale` steps in the mode at `path`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CoordinateTerm<N> {
    path: ModePath,
    scale: N,
}

impl<N: Extent> CoordinateTerm<N> {
    #[inline(always)]
    fn none() -> CoordinateTerm<N> {
        CoordinateTerm { path: ModePath::ROOT, scale: N::zero() }
    }

    /// Whether the scale is known to be 0, which means that there is no term.
    #[inline(always)]
    fn is_none(&self) -> bool {
        self.scale.is_zero().proved()
    }
}

impl<N: Extent> Coordinate<N> {
    /// `scale` steps in the mode at `path`.
    #[inline]
    pub fn step(scale: N, path: ModePath) -> Coordinate<N> {
        let path = if scale.is_zero().proved() { ModePath::ROOT } else { path };
        Coordinate { first: CoordinateTerm { path, scale }, second: CoordinateTerm::none(), more: None }
    }

    /// The coordinate in a codomain that is not a tuple.
    #[inline]
    pub fn integer(value: N) -> Coordinate<N> {
        Coordinate::step(value, ModePath::ROOT)
    }

    /// The sum of the leaves of a nested coordinate, each a step in its own mode: the inverse of
    /// [`Coordinate::in_profile`].
    ///
    /// Errors: a path is longer than [`MAX_PATH`], or a mode number above [`MAX_PATH_MODE`].
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Tree};
    ///
    /// let nested: Tree<i64> = "(4,(0,2))".parse().unwrap();
    /// assert_eq!(Coordinate::of_tree(&nested).unwrap().to_string(), "4@0+2@1@1");
    /// ```
    pub fn of_tree(coordinate: &Tree<N>) -> Result<Coordinate<N>, LayoutError> {
        let mut terms: CoordinateTerms<N> = SmallVec::new();
        let mut leaves = coordinate.leaves().iter();
        unit_paths(coordinate.profile().as_ref(), &mut |path| {
            if let Some(scale) = leaves.next().filter(|scale| !scale.is_zero().proved()) {
                terms.push(CoordinateTerm { path: path?, scale: scale.clone() });
            }
            Ok(())
        })?;
        Ok(Coordinate::of_terms(terms))
    }

    /// This coordinate as a nested coordinate of the given nesting: each leaf has the scale of the
    /// term at its path, or 0.
    ///
    /// Errors: a path is not that of a leaf of the profile ([`LayoutError::NoPath`]).
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Tree};
    ///
    /// let value: Coordinate = "3@0+5@1@1".parse().unwrap();
    /// let codomain: Tree<i64> = "(0,(0,0),0)".parse().unwrap();
    /// assert_eq!(value.in_profile(codomain.profile()).unwrap().to_string(), "(3,(0,5),0)");
    /// ```
    pub fn in_profile(&self, profile: &Profile) -> Result<Tree<N>, LayoutError> {
        let mut scales: Leaves<N> = Leaves::new();
        scales.extend(core::iter::repeat_n(N::zero(), profile.leaves()));
        for (path, scale) in self.terms() {
            match leaf_at(profile.as_ref(), path).and_then(|leaf| scales.get_mut(leaf)) {
                Some(place) => *place = scale.clone(),
                None => {
                    return Err(LayoutError::NoPath {
                        op: "coordinate",
                        path: Default::default(),
                        step: self.to_string().into(),
                        profile: Box::new(profile.clone()),
                    });
                }
            }
        }
        Tree::new(profile.duplicate(), scales)
    }

    /// The terms in the order of paths: path and scale of each. No scale is known to be 0.
    pub fn terms(&self) -> impl Iterator<Item = (ModePath, &N)> + Clone {
        let places = [&self.first, &self.second];
        let used = if self.first.is_none() { 0 } else { 1 + usize::from(!self.second.is_none()) };
        let more = self.more.as_deref().unwrap_or_default();
        places.into_iter().take(used).chain(more).map(|term| (term.path, &term.scale))
    }

    /// Path and scale of the only term; None if there is no term or more than one.
    #[inline]
    pub fn term(&self) -> Option<(ModePath, &N)> {
        (self.second.is_none() && !self.first.is_none()).then_some((self.first.path, &self.first.scale))
    }

    /// The scale of the term at `path`, or 0.
    pub fn scale_at(&self, path: ModePath) -> N {
        self.terms().find(|(at, _)| *at == path).map_or(N::zero(), |(_, scale)| scale.clone())
    }

    /// The sum of terms that are sorted by path and not zero.
    fn of_terms(terms: CoordinateTerms<N>) -> Coordinate<N> {
        let mut terms = terms.into_iter();
        let first = terms.next().unwrap_or_else(CoordinateTerm::none);
        let second = terms.next().unwrap_or_else(CoordinateTerm::none);
        let more: CoordinateTerms<N> = terms.collect();
        Coordinate { first, second, more: if more.is_empty() { None } else { Some(more.into_boxed_slice()) } }
    }

    /// The same terms with scales of another type; `scale` maps nonzero scales to nonzero ones.
    pub(crate) fn map_scales<M: Extent>(&self, scale: impl Fn(&N) -> M) -> Coordinate<M> {
        Coordinate::of_terms(self.terms().map(|(path, own)| CoordinateTerm { path, scale: scale(own) }).collect())
    }

    /// Adds `count` times a sum of several terms.
    #[cold]
    #[inline(never)]
    fn add_sum(&mut self, count: &N, sum: &Coordinate<N>) -> Option<()> {
        *self = self.plus(&sum.times(count)?)?;
        Some(())
    }

    /// The sum of both: scales at the same path are added.
    fn merged(&self, other: &Coordinate<N>) -> Option<Coordinate<N>> {
        let (mut left, mut right) = (self.terms().peekable(), other.terms().peekable());
        let mut terms: CoordinateTerms<N> = SmallVec::new();
        loop {
            let (path, scale) = match (left.peek(), right.peek()) {
                (None, None) => return Some(Coordinate::of_terms(terms)),
                (Some((p, a)), Some((q, b))) if p == q => {
                    let sum = (*p, a.plus(b)?);
                    left.next();
                    right.next();
                    sum
                }
                (Some((p, a)), right) if right.is_none_or(|(q, _)| p < q) => {
                    let term = (*p, (*a).clone());
                    left.next();
                    term
                }
                (_, Some((q, b))) => {
                    let term = (*q, (*b).clone());
                    right.next();
                    term
                }
                (Some(_), None) => return None,
            };
            if !scale.is_zero().proved() {
                terms.push(CoordinateTerm { path, scale });
            }
        }
    }
}

/// A list of terms that is being built.
type CoordinateTerms<N> = SmallVec<[CoordinateTerm<N>; 4]>;

/// Calls `visit` with the path of each leaf of a profile, in order; with an error for a path beyond
/// the limits.
pub(crate) fn unit_paths(
    profile: ProfileRef<'_>,
    visit: &mut impl FnMut(Result<ModePath, LayoutError>) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    each_leaf(profile, ModePath::ROOT, visit)
}

fn each_leaf(
    profile: ProfileRef<'_>,
    path: ModePath,
    visit: &mut impl FnMut(Result<ModePath, LayoutError>) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    if profile.is_leaf() {
        return visit(Ok(path));
    }
    for (position, mode) in profile.modes().enumerate() {
        match path.then(position) {
            Ok(path) => each_leaf(mode, path, visit)?,
            Err(error) => (0..mode.leaves()).try_for_each(|_| visit(Err(error.clone())))?,
        }
    }
    Ok(())
}

/// The number of the leaf at a path; None if there is no leaf.
pub(crate) fn leaf_at(profile: ProfileRef<'_>, path: ModePath) -> Option<usize> {
    let (mut here, mut leaf) = (profile, 0);
    for mode in path.modes() {
        if here.is_leaf() {
            return None;
        }
        let mut modes = here.modes();
        leaf += modes.by_ref().take(mode).map(ProfileRef::leaves).sum::<usize>();
        here = modes.next()?;
    }
    here.is_leaf().then_some(leaf)
}

/// The smallest profile in which each of these paths is that of a leaf. The paths are sorted, and
/// none continues another. Modes that no path names are leaves, too.
///
/// Errors: more nodes than a profile has.
pub(crate) fn profile_of(paths: &[ModePath]) -> Result<Profile, LayoutError> {
    let mut builder = ProfileBuilder::new();
    span(paths, 0, &mut builder);
    builder.finish()
}

fn span(paths: &[ModePath], depth: usize, out: &mut ProfileBuilder) {
    let mode_of = |path: &ModePath| path.modes().nth(depth);
    let mut rest = paths;
    if rest.first().and_then(mode_of).is_none() {
        return out.leaf();
    }
    out.open();
    let mut next = 0;
    while let Some(mode) = rest.first().and_then(mode_of) {
        let end = rest.partition_point(|path| mode_of(path) == Some(mode));
        let (inner, after) = rest.split_at(end);
        (next..mode).for_each(|_| out.leaf());
        span(inner, depth + 1, out);
        (next, rest) = (mode + 1, after);
    }
    out.close();
}

/// The paths of some strides, sorted, each with the number of the first stride that has it.
pub(crate) fn paths_of<'a, N: Extent + 'a>(
    strides: impl Iterator<Item = &'a Coordinate<N>>,
) -> SmallVec<[(ModePath, usize); 8]> {
    let mut paths: SmallVec<[(ModePath, usize); 8]> = SmallVec::new();
    for (number, stride) in strides.enumerate() {
        for (path, _) in stride.terms() {
            if paths.last().is_none_or(|(last, _)| *last != path) {
                paths.push((path, number));
            }
        }
    }
    paths.sort_unstable();
    paths.dedup_by_key(|(path, _)| *path);
    paths
}

impl<N: Extent> Stride for Coordinate<N> {
    type Extent = N;

    #[inline(always)]
    fn zero() -> Coordinate<N> {
        Coordinate { first: CoordinateTerm::none(), second: CoordinateTerm::none(), more: None }
    }

    #[inline]
    fn is_zero(&self) -> Truth {
        let mut answer = Truth::Proved;
        for (_, scale) in self.terms() {
            match scale.is_zero() {
                Truth::Refuted => return Truth::Refuted,
                Truth::Open => answer = Truth::Open,
                Truth::Proved => {}
            }
        }
        answer
    }

    #[inline]
    fn plus(&self, other: &Coordinate<N>) -> Option<Coordinate<N>> {
        if other.first.is_none() {
            return Some(self.clone());
        }
        if self.first.is_none() {
            return Some(other.clone());
        }
        if self.second.is_none() && other.second.is_none() {
            let (a, b) = (&self.first, &other.first);
            if a.path == b.path {
                return Some(Coordinate::step(a.scale.plus(&b.scale)?, a.path));
            }
            let (first, second) = if a.path < b.path { (a, b) } else { (b, a) };
            return Some(Coordinate { first: first.clone(), second: second.clone(), more: None });
        }
        self.merged(other)
    }

    #[inline]
    fn times(&self, count: &N) -> Option<Coordinate<N>> {
        if self.second.is_none() {
            return Some(Coordinate::step(self.first.scale.times(count)?, self.first.path));
        }
        let mut terms: CoordinateTerms<N> = SmallVec::new();
        for (path, scale) in self.terms() {
            let scale = scale.times(count)?;
            if !scale.is_zero().proved() {
                terms.push(CoordinateTerm { path, scale });
            }
        }
        Some(Coordinate::of_terms(terms))
    }

    #[inline]
    fn continues(&self, extent: &N, next: &Coordinate<N>) -> Truth {
        if self.second.is_none() && next.second.is_none() {
            if self.first.path == next.first.path {
                return match self.first.scale.times(extent) {
                    Some(end) => end.same(&next.first.scale),
                    None => Truth::Refuted,
                };
            }
            // A step in another mode is never equal to these.
            if next.first.scale.is_zero().refuted() {
                return Truth::Refuted;
            }
        }
        match self.times(extent) {
            Some(end) => end.same(next),
            None => Truth::Refuted,
        }
    }

    fn same(&self, other: &Coordinate<N>) -> Truth {
        if self == other {
            return Truth::Proved;
        }
        let mut answer = Truth::Proved;
        let (ours, theirs) = (self.terms(), other.terms());
        for path in ours.chain(theirs).map(|(path, _)| path) {
            match self.scale_at(path).same(&other.scale_at(path)) {
                Truth::Refuted => return Truth::Refuted,
                Truth::Open => answer = Truth::Open,
                Truth::Proved => {}
            }
        }
        answer
    }
}

/// The first two strides of which one has a path that a path of the other continues.
fn clash<'a, N: Extent + 'a>(strides: impl Iterator<Item = &'a Coordinate<N>> + Clone) -> Option<(usize, usize)> {
    // Different paths of the same length are paths of different modes.
    let mut lengths = strides.clone().flat_map(Coordinate::terms).map(|(path, _)| path.len());
    let first = lengths.next()?;
    if lengths.all(|length| length == first) {
        return None;
    }
    // In the order of paths, the continuations of a path follow it directly.
    let paths = paths_of(strides);
    paths.windows(2).find_map(|pair| match pair {
        [(short, i), (long, j)] if short.leads_to(*long) => Some((*i.min(j), *i.max(j))),
        _ => None,
    })
}
