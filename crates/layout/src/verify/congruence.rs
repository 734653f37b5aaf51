//! Checks of nestings and paths.
//!
//! Law: two tuples are *congruent* when they have the same profile. A coordinate is *weakly
//! congruent* to a shape when the shape is the coordinate with leaves replaced by tuples. Otherwise
//! the answer has the outermost, leftmost mode at which they differ, and the profiles of both
//! there.

use core::fmt;

use crate::{Layout, LayoutError, Path, Profile, Tree};

use super::{In, Verdict};

/// Two tuples with the wrong nestings: the mode at which they differ, and both profiles there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incongruent {
    /// The mode; empty for the whole.
    pub path: Path,
    /// The name of the first tuple, in a word.
    pub first: &'static str,
    /// The profile of the first tuple there.
    pub first_profile: Profile,
    /// The name of the second tuple, in a word.
    pub second: &'static str,
    /// The profile of the second tuple there.
    pub second_profile: Profile,
}

impl fmt::Display for Incongruent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}the {} nests as {} but the {} as {}",
            In(&self.path),
            self.first,
            self.first_profile,
            self.second,
            self.second_profile
        )
    }
}

/// Whether a shape and strides have the same nesting, so that they form a layout; the result is the
/// profile.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Tree;
///
/// let (shape, stride): (Tree<i64>, Tree<i64>) = ("(4,(2,3))".parse().unwrap(), "(1,4)".parse().unwrap());
/// let verdict = verify::congruent(&shape, &stride);
/// assert_eq!(verdict.to_string(), "fails: in mode 1, the shape nests as (*,*) but the stride as *");
/// ```
pub fn congruent<N, D>(shape: &Tree<N>, stride: &Tree<D>) -> Verdict<Profile, Incongruent> {
    nests_alike(("shape", shape), ("stride", stride))
}

/// [`congruent`] for any two tuples.
pub(super) fn nests_alike<A, B>(
    (first, a): (&'static str, &Tree<A>),
    (second, b): (&'static str, &Tree<B>),
) -> Verdict<Profile, Incongruent> {
    if a.congruent(b) {
        return Verdict::Holds(a.profile().clone());
    }
    // The error of constructing a layout has the position at which they differ.
    match Layout::<i64>::new(&a.map(|_| 1), &b.map(|_| 0)) {
        Ok(_) => Verdict::Holds(a.profile().clone()),
        Err(LayoutError::NotCongruent { path, .. }) => Verdict::Fails(differing(path, (first, a), (second, b))),
        Err(error) => Verdict::Undecided(error),
    }
}

/// Whether a coordinate fits a shape, that is, the shape has the same nesting or a deeper one; the
/// result is the profile of the shape.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Tree;
///
/// let fits = |coord: &str, shape: &str| {
///     let (coord, shape): (Tree<i64>, Tree<i64>) = (coord.parse().unwrap(), shape.parse().unwrap());
///     verify::weakly_congruent(&coord, &shape).to_string()
/// };
/// assert_eq!(fits("(1,2)", "(4,(2,3))"), "holds: (*,(*,*))");
/// assert_eq!(fits("(1,(2,3))", "(4,6)"), "fails: in mode 1, the coordinate nests as (*,*) but the shape as *");
/// ```
pub fn weakly_congruent<A, B>(coord: &Tree<A>, shape: &Tree<B>) -> Verdict<Profile, Incongruent> {
    // The products of ones at the leaves of the coordinate exist exactly when the shape has
    // subtrees there.
    match shape.map(|_| 1_i64).product_like(coord.profile()) {
        Ok(_) => Verdict::Holds(shape.profile().clone()),
        Err(LayoutError::Rank { path, .. }) => Verdict::Fails(differing(path, ("coordinate", coord), ("shape", shape))),
        Err(error) => Verdict::Undecided(error),
    }
}

fn differing<A, B>(
    path: Path,
    (first, a): (&'static str, &Tree<A>),
    (second, b): (&'static str, &Tree<B>),
) -> Incongruent {
    let first_profile = profile_at(a, &path);
    let second_profile = profile_at(b, &path);
    Incongruent { path, first, first_profile, second, second_profile }
}

fn profile_at<T>(tree: &Tree<T>, path: &[usize]) -> Profile {
    tree.map(|_| ()).at(path).map_or_else(|| tree.profile().clone(), |mode| mode.profile().clone())
}

/// The reason why there is no mode at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingMode {
    /// There are fewer modes.
    OutOfRange {
        /// The number of modes of the path that were followed before this one.
        depth: usize,
        /// The requested mode.
        mode: usize,
        /// The number of modes.
        rank: usize,
    },
    /// The path continues at a single number.
    PastLeaf {
        /// The number of modes of the path that were followed.
        depth: usize,
        /// The number of remaining modes of the path.
        extra: usize,
    },
}

impl fmt::Display for MissingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingMode::OutOfRange { depth, mode, rank } => {
                write!(f, "mode {mode} at depth {depth} is not in [0,{rank})")
            }
            MissingMode::PastLeaf { depth, extra } => {
                let modes = if *extra == 1 { "mode is" } else { "modes are" };
                write!(f, "the path meets a single number at depth {depth}, where {extra} more {modes} asked for")
            }
        }
    }
}

/// The subtree at a path of mode numbers, outermost first.
///
/// A single number is not its own mode 0 here: a path stops there.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Tree;
///
/// let shape: Tree<i64> = "(4,(2,3))".parse().unwrap();
/// assert_eq!(verify::mode_at(&shape, &[1, 0]).to_string(), "holds: 2");
/// assert_eq!(verify::mode_at(&shape, &[1, 2]).to_string(), "fails: mode 2 at depth 1 is not in [0,2)");
/// assert_eq!(
///     verify::mode_at(&shape, &[0, 0]).to_string(),
///     "fails: the path meets a single number at depth 1, where 1 more mode is asked for"
/// );
/// ```
pub fn mode_at<T: Clone>(tree: &Tree<T>, path: &[usize]) -> Verdict<Tree<T>, MissingMode> {
    let mut here = tree.clone();
    for (depth, mode) in path.iter().enumerate() {
        if here.is_leaf() {
            return Verdict::Fails(MissingMode::PastLeaf { depth, extra: path.len() - depth });
        }
        here = match here.mode(*mode) {
            Some(next) => next,
            None => return Verdict::Fails(MissingMode::OutOfRange { depth, mode: *mode, rank: here.rank() }),
        };
    }
    Verdict::Holds(here)
}
