//! Nested tuples as morphisms: the category Ref.
//!
//! Law: a nested tuple `X` is a morphism from the flat tuple of its leaves to the tuple of the
//! sizes of its modes. Composition grafts: the modes of the finer one replace the leaves of the
//! coarser one. Flattening each mode is a functor to Fact. A factorisation, as a nested tuple of
//! depth 2 in which a block of one entry is a leaf, is a section of it.

use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use crate::morphism::error::MorphismError;
use crate::morphism::fact::Fact;
use crate::morphism::refine::substitute;
use crate::morphism::tuple::{Entries, not_composable, positive, size};
use crate::{LayoutError, Tree};

/// A nested tuple, as the refinement of the sizes of its modes.
///
/// ```
/// use tilewright_layout::morphism::Ref;
///
/// let finer = Ref::new("((2,3),4,(2,2))".parse().unwrap()).unwrap();
/// assert_eq!((finer.domain(), finer.codomain()), (&[2, 3, 4, 2, 2][..], &[6, 4, 4][..]));
///
/// let coarser = Ref::new("(6,(4,4))".parse().unwrap()).unwrap();
/// assert_eq!(coarser.compose(&finer).unwrap().to_string(), "((2,3),(4,(2,2)))");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ref {
    tree: Tree<i64>,
    codomain: Entries,
}

impl Ref {
    /// The morphism of a nested tuple.
    ///
    /// Errors: a number alone, which has no modes ([`LayoutError::Argument`]); an entry is not
    /// positive; the size is not representable.
    pub fn new(tree: Tree<i64>) -> Result<Ref, MorphismError> {
        if tree.is_leaf() {
            return Err(LayoutError::Argument {
                op: "refinement",
                what: "the number",
                value: tree.leaves().first().copied().unwrap_or_default(),
                wanted: "a tuple",
            }
            .into());
        }
        positive("the tuple", tree.leaves())?;
        size("size", tree.leaves())?;
        let codomain = tree.modes().map(|mode| size("size", mode.leaves())).collect::<Result<Entries, _>>()?;
        Ok(Ref { tree, codomain })
    }

    /// The identity of a tuple: the tuple itself.
    ///
    /// Errors: an entry is not positive; the size is not representable.
    pub fn identity(tuple: &[i64]) -> Result<Ref, MorphismError> {
        Ref::new(Tree::flat(tuple.iter().copied())?)
    }

    /// The nested tuple.
    #[inline]
    pub fn tree(&self) -> &Tree<i64> {
        &self.tree
    }

    /// The finer tuple: the leaves.
    #[inline]
    pub fn domain(&self) -> &[i64] {
        self.tree.leaves()
    }

    /// The coarser tuple: the sizes of the modes.
    #[inline]
    pub fn codomain(&self) -> &[i64] {
        &self.codomain
    }

    /// `self` after `first`: the modes of `first` are grafted onto the leaves of `self`.
    ///
    /// Errors: `first` does not end where `self` begins ([`MorphismError::NotComposable`]); nested
    /// too deep.
    pub fn compose(&self, first: &Ref) -> Result<Ref, MorphismError> {
        if *first.codomain != *self.tree.leaves() {
            return Err(not_composable("compose", &first.codomain, self.tree.leaves()));
        }
        let modes: Vec<Tree<i64>> = first.tree.modes().collect();
        Ok(Ref { tree: substitute(self.tree.profile(), &modes)?, codomain: self.codomain.clone() })
    }

    /// The concatenated modes of both.
    ///
    /// Errors: the size is not representable; too many leaves.
    pub fn sum(&self, other: &Ref) -> Result<Ref, MorphismError> {
        let modes: Vec<Tree<i64>> = self.tree.modes().chain(other.tree.modes()).collect();
        Ref::new(Tree::tuple(modes.iter())?)
    }

    /// The factorisation that consists of the leaves of each mode. This is a functor.
    ///
    /// Errors: none for a value that exists; the sizes are checked again.
    ///
    /// ```
    /// use tilewright_layout::morphism::{Fact, Ref};
    ///
    /// let nested = Ref::new("((2,(3,5)),4)".parse().unwrap()).unwrap();
    /// assert_eq!(nested.to_fact().unwrap().to_string(), "((2,3,5),(4))");
    /// assert_eq!(Ref::from_fact(&nested.to_fact().unwrap()).unwrap().to_string(), "((2,3,5),4)");
    /// ```
    pub fn to_fact(&self) -> Result<Fact, MorphismError> {
        Fact::new(self.tree.modes().map(|mode| mode.leaves().to_vec()))
    }

    /// The nested tuple with the blocks of a factorisation as its modes; a block of one entry is a
    /// leaf.
    ///
    /// Errors: too many leaves.
    pub fn from_fact(fact: &Fact) -> Result<Ref, MorphismError> {
        let modes = fact.blocks().map(|block| match block {
            [only] => Ok(Tree::leaf(*only)),
            _ => Tree::flat(block.iter().copied()),
        });
        let modes: Vec<Tree<i64>> = modes.collect::<Result<_, _>>()?;
        Ref::new(Tree::tuple(modes.iter())?)
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.fmt(f)
    }
}

debug_as_text!(Ref);
