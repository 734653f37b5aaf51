//! Refinements of nested tuples.
//!
//! Law: `T'` refines `T` when each entry of `T` is replaced by a nested tuple of that size. It is a
//! partial order, and the part of `T'` over an entry of `T` is its *relative mode* (Carlisle, Shah,
//! Stern, VanKoughnett). A refinement changes coordinates but no index: colexicographically, `T'`
//! and `T` have the same indices.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use crate::morphism::error::{Apart, Misfit, MorphismError, NotARefinement};
use crate::morphism::tuple::{positive, size};
use crate::{Path, Profile, Tree};

/// A nested tuple and one that refines it.
///
/// ```
/// use tilewright_layout::Tree;
/// use tilewright_layout::morphism::Refinement;
///
/// let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// let refinement = Refinement::new(&tree("((2,3),(4,(2,2)))"), &tree("(6,(4,4))")).unwrap();
/// assert_eq!(refinement.to_string(), "((2,3),(4,(2,2))) refines (6,(4,4))");
/// assert_eq!(refinement.parts().iter().map(Tree::to_string).collect::<Vec<_>>(), ["(2,3)", "4", "(2,2)"]);
/// assert_eq!(Refinement::new(&tree("(2,3)"), &tree("(2,4)")).unwrap_err().code(), "E0710");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Refinement {
    coarse: Tree<i64>,
    fine: Tree<i64>,
    parts: Vec<Tree<i64>>,
}

impl Refinement {
    /// The refinement of `coarse` by `fine`.
    ///
    /// Errors: `fine` does not refine `coarse`, with the position
    /// ([`MorphismError::NotARefinement`]); an entry is not positive; a size is not representable.
    pub fn new(fine: &Tree<i64>, coarse: &Tree<i64>) -> Result<Refinement, MorphismError> {
        positive("the finer tuple", fine.leaves())?;
        positive("the coarser tuple", coarse.leaves())?;
        let mut parts = Vec::with_capacity(coarse.leaves().len());
        let misfit = |path: Path, found: Misfit| {
            let (fine, coarse): (Box<str>, Box<str>) = (fine.to_string().into(), coarse.to_string().into());
            MorphismError::NotARefinement(Box::new(NotARefinement { fine, coarse, path, found }))
        };
        collect(fine.clone(), coarse.clone(), &mut Path::new(), &mut parts, &misfit)?;
        Ok(Refinement { coarse: coarse.clone(), fine: fine.clone(), parts })
    }

    /// The refinement of `coarse` that has `parts` over its entries, in order.
    ///
    /// Errors: the number of parts is not the number of entries ([`MorphismError::Arity`]); the
    /// size of a part is not that of its entry; nested too deep.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    /// use tilewright_layout::morphism::Refinement;
    ///
    /// let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
    /// let refinement = Refinement::by_parts(&tree("(6,4)"), [tree("(2,3)"), tree("4")]).unwrap();
    /// assert_eq!(refinement.fine().to_string(), "((2,3),4)");
    /// ```
    pub fn by_parts(
        coarse: &Tree<i64>,
        parts: impl IntoIterator<Item = Tree<i64>>,
    ) -> Result<Refinement, MorphismError> {
        let parts: Vec<Tree<i64>> = parts.into_iter().collect();
        let fine = substitute(coarse.profile(), &parts)?;
        Refinement::new(&fine, coarse)
    }

    /// As [`Refinement::by_parts`] for parts of the right sizes.
    pub(crate) fn from_parts(coarse: Tree<i64>, parts: Vec<Tree<i64>>) -> Result<Refinement, MorphismError> {
        let fine = substitute(coarse.profile(), &parts)?;
        Ok(Refinement { coarse, fine, parts })
    }

    /// Every tuple refines itself.
    ///
    /// Errors: an entry is not positive.
    pub fn identity(tuple: &Tree<i64>) -> Result<Refinement, MorphismError> {
        Refinement::new(tuple, tuple)
    }

    /// The finer tuple.
    #[inline]
    pub fn fine(&self) -> &Tree<i64> {
        &self.fine
    }

    /// The coarser tuple.
    #[inline]
    pub fn coarse(&self) -> &Tree<i64> {
        &self.coarse
    }

    /// The part of the finer tuple over each entry of the coarser one: the relative modes.
    #[inline]
    pub fn parts(&self) -> &[Tree<i64>] {
        &self.parts
    }

    /// The number of leaves of the finer tuple before the part over each entry.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().scan(0, |before, part| {
            let here = *before;
            *before += part.leaves().len();
            Some(here)
        })
    }

    /// Composes with a refinement of the finer tuple, to a refinement of the coarser one.
    ///
    /// Errors: `finer` does not refine the finer tuple ([`MorphismError::NotComposable`]).
    ///
    /// ```
    /// use tilewright_layout::Tree;
    /// use tilewright_layout::morphism::Refinement;
    ///
    /// let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
    /// let coarse = Refinement::new(&tree("(6,4)"), &tree("24")).unwrap();
    /// let fine = Refinement::new(&tree("((2,3),4)"), &tree("(6,4)")).unwrap();
    /// assert_eq!(coarse.compose(&fine).unwrap().to_string(), "((2,3),4) refines 24");
    /// ```
    pub fn compose(&self, finer: &Refinement) -> Result<Refinement, MorphismError> {
        if finer.coarse != self.fine {
            let (ends, begins) = (finer.coarse.to_string().into(), self.fine.to_string().into());
            let apart = Apart::of(finer.coarse.leaves(), self.fine.leaves());
            return Err(MorphismError::NotComposable { op: "compose", ends, begins, apart });
        }
        Refinement::new(&finer.fine, &self.coarse)
    }
}

/// Whether `fine` refines `coarse`.
///
/// ```
/// use tilewright_layout::morphism::refines;
///
/// let refines = |fine: &str, coarse: &str| refines(&fine.parse().unwrap(), &coarse.parse().unwrap());
/// assert!(refines("((2,3),4)", "(6,4)") && refines("((2,3),4)", "24"));
/// assert!(!refines("(2,3,4)", "(6,4)"));
/// ```
pub fn refines(fine: &Tree<i64>, coarse: &Tree<i64>) -> bool {
    Refinement::new(fine, coarse).is_ok()
}

/// Replaces each leaf of a profile by a tree.
///
/// Errors: the number of trees is not the number of leaves; nested too deep, or too large.
pub(crate) fn substitute(profile: &Profile, parts: &[Tree<i64>]) -> Result<Tree<i64>, MorphismError> {
    if profile.leaves() != parts.len() {
        return Err(MorphismError::Arity { op: "substitute", places: profile.leaves(), parts: parts.len() });
    }
    let none = Profile::leaf();
    let nested = profile.substitute(|leaf| parts.get(leaf).map_or(&none, Tree::profile))?;
    Ok(Tree::new(nested, parts.iter().flat_map(|part| part.leaves().iter().copied()))?)
}

/// Collects the relative modes, in order. The depth is bounded by [`crate::MAX_DEPTH`].
fn collect(
    fine: Tree<i64>,
    coarse: Tree<i64>,
    path: &mut Path,
    parts: &mut Vec<Tree<i64>>,
    misfit: &impl Fn(Path, Misfit) -> MorphismError,
) -> Result<(), MorphismError> {
    if let (true, [wanted]) = (coarse.is_leaf(), coarse.leaves()) {
        let found = size("refine", fine.leaves())?;
        if found != *wanted {
            return Err(misfit(path.clone(), Misfit::Size { wanted: *wanted, found }));
        }
        parts.push(fine);
        return Ok(());
    }
    let wanted = coarse.rank();
    if fine.is_leaf() {
        return Err(misfit(path.clone(), Misfit::Rank { wanted, found: None }));
    }
    if fine.rank() != wanted {
        return Err(misfit(path.clone(), Misfit::Rank { wanted, found: Some(fine.rank()) }));
    }
    for (mode, (fine, coarse)) in fine.modes().zip(coarse.modes()).enumerate() {
        path.push(mode);
        collect(fine, coarse, path, parts, misfit)?;
        path.pop();
    }
    Ok(())
}

impl fmt::Display for Refinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refines {}", self.fine, self.coarse)
    }
}

debug_as_text!(Refinement);
