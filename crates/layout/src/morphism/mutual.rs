//! Mutual refinement.
//!
//! Law: a mutual refinement of `(T, U)` is a refinement `T'` of `T` and a refinement `U'` of `U`
//! such that the leaves of `T'` are the first leaves of `U'`. It exists exactly when the prefix
//! products of `T`, together with those of `U` up to the size of `T` and the first one above, form
//! a divisibility chain, and `U` is at least as large as `T` (Carlisle, Shah, Stern, VanKoughnett,
//! 4.1.1, with two corrections: if `T` is larger than `U` there is none, and remaining entries of
//! `U` stay unchanged).
//!
//! The walk removes the largest common piece from the front of both tuples. An entry 1 is a piece
//! of size 1 of the entry of the other tuple, so entries 1 need special care only at the end: a
//! last 1 of `T` is a piece of the last entry of `U`; if `U` has no entries, it becomes `()`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use crate::morphism::error::{MorphismError, NoMutualRefinement};
use crate::morphism::nest::NestMorphism;
use crate::morphism::pointed::PointedMap;
use crate::morphism::refine::Refinement;
use crate::morphism::tuple::{TupleMorphism, positive, size, text};
use crate::{CommonDigits, Digit, Tree};
use smallvec::SmallVec;

/// A leaf that the refined tuples share, or that only the second one has.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) extent: i64,
    /// The entry of the first tuple that it is part of.
    pub(crate) first: Option<u16>,
    /// The entry of the second tuple that it is part of.
    pub(crate) second: u16,
}

pub(crate) type PieceList = SmallVec<[Piece; 12]>;

/// The position at which the walk stops: the entry of the first tuple and its rest, the same for
/// the second tuple, and the pieces before.
pub(crate) struct StopPosition {
    left: (usize, i64),
    right: Option<(usize, i64)>,
    before: i64,
}

/// The leaves of the refined second tuple, in order. All entries are positive.
#[inline]
pub(crate) fn walk(first: &[i64], second: &[i64]) -> Result<PieceList, StopPosition> {
    let mut digits = CommonDigits::new([first, second]);
    let piece = |extent, first: Option<usize>, second: usize| Piece {
        extent,
        first: first.map(|entry| entry as u16),
        second: second as u16,
    };
    let shared = digits.by_ref().map(|Digit { extent, parts: [(i, _), (j, _)] }| piece(extent, Some(i), j));
    let mut pieces: PieceList = shared.collect();
    // The product of the pieces divides the first tuple, whose size is representable up to here;
    // otherwise the message has less detail.
    let before = |pieces: &PieceList| pieces.iter().fold(1_i64, |before, piece| before.saturating_mul(piece.extent));
    let [(mut i, mut taken), (mut j, mut taken_of_second)] = digits.next_parts();
    if let Some([left, right]) = digits.left() {
        return Err(StopPosition { left: (i, left), right: Some((j, right)), before: before(&pieces) });
    }
    while let Some(entry) = first.get(i) {
        // The second tuple has ended, so only entries 1 may follow.
        if entry / taken > 1 {
            return Err(StopPosition { left: (i, entry / taken), right: None, before: before(&pieces) });
        }
        if let Some(last) = second.len().checked_sub(1) {
            pieces.push(piece(1, Some(i), last));
        }
        (i, taken) = (i + 1, 1);
    }
    while let Some(entry) = second.get(j) {
        pieces.push(piece(entry / taken_of_second, None, j));
        (j, taken_of_second) = (j + 1, 1);
    }
    Ok(pieces)
}

/// The error for the position at which the walk stopped.
#[cold]
pub(crate) fn refused(first: &[i64], second: &[i64], stop: StopPosition) -> MorphismError {
    let StopPosition { left, right, before } = stop;
    let (first, second) = (text(first), text(second));
    MorphismError::NoMutualRefinement(Box::new(NoMutualRefinement { first, second, left, right, before }))
}

/// Two nested tuples, refined such that the leaves of the first are the first leaves of the second.
///
/// ```
/// use tilewright_layout::Tree;
/// use tilewright_layout::morphism::MutualRefinement;
///
/// let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// let mutual = MutualRefinement::new(&tree("(6,6)"), &tree("(2,6,6)")).unwrap();
/// assert_eq!(mutual.to_string(), "((2,3),(2,3)) | (2,(3,2),(3,2))");
///
/// let refusal = MutualRefinement::new(&tree("(8,8)"), &tree("(3,8,8)")).unwrap_err();
/// assert!(refusal.to_string().contains("8 of entry 1 of the first and 3 of entry 1 of the second"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MutualRefinement {
    first: Refinement,
    second: Refinement,
}

impl MutualRefinement {
    /// The coarsest mutual refinement of two tuples.
    ///
    /// Errors: there is none, with the two entries at which the walk stops
    /// ([`MorphismError::NoMutualRefinement`]); an entry is not positive; a size is not
    /// representable.
    pub fn new(first: &Tree<i64>, second: &Tree<i64>) -> Result<MutualRefinement, MorphismError> {
        positive("the first tuple", first.leaves())?;
        positive("the second tuple", second.leaves())?;
        size("mutual_refinement", first.leaves())?;
        size("mutual_refinement", second.leaves())?;
        let pieces =
            walk(first.leaves(), second.leaves()).map_err(|stop| refused(first.leaves(), second.leaves(), stop))?;
        let left = parts(first.leaves().len(), pieces.iter().filter_map(|piece| Some((piece.first?, piece.extent))))?;
        let right = parts(second.leaves().len(), pieces.iter().map(|piece| (piece.second, piece.extent)))?;
        Ok(MutualRefinement {
            first: Refinement::from_parts(first.clone(), left)?,
            second: Refinement::from_parts(second.clone(), right)?,
        })
    }

    /// The refinement of the first tuple.
    #[inline]
    pub fn first(&self) -> &Refinement {
        &self.first
    }

    /// The refinement of the second tuple.
    #[inline]
    pub fn second(&self) -> &Refinement {
        &self.second
    }

    /// The inclusion of the leaves of the first refined tuple as the first leaves of the second.
    ///
    /// Errors: too many leaves.
    ///
    /// ```
    /// use tilewright_layout::morphism::mutual_refinement;
    ///
    /// let mutual = mutual_refinement(&"(6,6)".parse().unwrap(), &"(12,3,6)".parse().unwrap()).unwrap();
    /// assert_eq!(mutual.inclusion().unwrap().to_string(), "(6,(2,3)) -> ((6,2),3,6) : (1,(2,3))");
    /// ```
    pub fn inclusion(&self) -> Result<NestMorphism, MorphismError> {
        let (fine, into) = (self.first.fine(), self.second.fine());
        let images = (1..=fine.leaves().len()).map(|place| place as u16).collect();
        let map = PointedMap::from_images(into.leaves().len(), images);
        let flat = TupleMorphism::from_valid(fine.leaves().into(), into.leaves().into(), map);
        Ok(NestMorphism::from_parts(flat, fine.profile().clone(), into.profile().clone()))
    }
}

/// The parts for this many entries, from pieces with their entries. A single piece is a leaf.
fn parts(entries: usize, pieces: impl Iterator<Item = (u16, i64)>) -> Result<Vec<Tree<i64>>, MorphismError> {
    let mut lists: Vec<SmallVec<[i64; 4]>> = alloc::vec![SmallVec::new(); entries];
    for (entry, extent) in pieces {
        if let Some(list) = lists.get_mut(usize::from(entry)) {
            list.push(extent);
        }
    }
    let part = |list: SmallVec<[i64; 4]>| match *list {
        [only] => Ok(Tree::leaf(only)),
        _ => Ok(Tree::flat(list)?),
    };
    lists.into_iter().map(part).collect()
}

/// The coarsest mutual refinement; see [`MutualRefinement::new`].
///
/// Errors: there is none.
pub fn mutual_refinement(first: &Tree<i64>, second: &Tree<i64>) -> Result<MutualRefinement, MorphismError> {
    MutualRefinement::new(first, second)
}

impl fmt::Display for MutualRefinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", self.first.fine(), self.second.fine())
    }
}

debug_as_text!(MutualRefinement);
