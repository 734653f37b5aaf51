//! Factorisations: the category Fact.
//!
//! Law: a morphism `u -> t` of flat tuples is a list of blocks, one for each entry of `t`, whose
//! product is that entry and whose concatenation is `u`. In a composition, `(t -> v) o (u -> t)`
//! joins the blocks of `u` whose entries of `t` are in one block of `v`. It is Ref, in
//! `grafting.rs`, without the nesting.

use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use crate::morphism::error::MorphismError;
use crate::morphism::pointed::write_list;
use crate::morphism::tuple::{Entries, Listed, not_composable, positive, size};

/// A factorisation of each entry of a tuple.
///
/// ```
/// use tilewright_layout::morphism::Fact;
///
/// let finer = Fact::new([vec![2, 3], vec![4], vec![2, 2]]).unwrap();
/// assert_eq!(finer.to_string(), "((2,3),(4),(2,2))");
/// assert_eq!((finer.domain(), finer.codomain()), (&[2, 3, 4, 2, 2][..], &[6, 4, 4][..]));
///
/// let coarser = Fact::new([vec![6], vec![4, 4]]).unwrap();
/// assert_eq!(coarser.compose(&finer).unwrap().to_string(), "((2,3),(4,2,2))");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fact {
    domain: Entries,
    codomain: Entries,
    /// The end of each block in the domain.
    ends: Vec<usize>,
}

impl Fact {
    /// The factorisation with these blocks; an empty block is a factorisation of 1.
    ///
    /// Errors: an entry is not positive; a size is not representable.
    pub fn new(blocks: impl IntoIterator<Item = impl IntoIterator<Item = i64>>) -> Result<Fact, MorphismError> {
        let (mut domain, mut codomain, mut ends) = (Entries::new(), Entries::new(), Vec::new());
        for block in blocks {
            let start = domain.len();
            domain.extend(block);
            codomain.push(size("factorisation", domain.get(start..).unwrap_or_default())?);
            ends.push(domain.len());
        }
        positive("the factorisation", &domain)?;
        size("size", &codomain)?;
        Ok(Fact { domain, codomain, ends })
    }

    /// The identity of a tuple: each entry is a block.
    ///
    /// Errors: an entry is not positive; the size is not representable.
    pub fn identity(tuple: &[i64]) -> Result<Fact, MorphismError> {
        Fact::new(tuple.iter().map(|extent| [*extent]))
    }

    /// The finer tuple.
    #[inline]
    pub fn domain(&self) -> &[i64] {
        &self.domain
    }

    /// The coarser tuple.
    #[inline]
    pub fn codomain(&self) -> &[i64] {
        &self.codomain
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &[i64]> + Clone + '_ {
        let starts = core::iter::once(&0).chain(&self.ends);
        let range = move |(start, end): (&usize, &usize)| self.domain.get(*start..*end).unwrap_or_default();
        self.ends.iter().zip(starts).map(move |(end, start)| range((start, end)))
    }

    /// `self` after `first`.
    ///
    /// Errors: `first` does not end where `self` begins ([`MorphismError::NotComposable`]).
    pub fn compose(&self, first: &Fact) -> Result<Fact, MorphismError> {
        if first.codomain != self.domain {
            return Err(not_composable("compose", &first.codomain, &self.domain));
        }
        let ends = self.ends.iter().map(|end| match end.checked_sub(1) {
            Some(last) => first.ends.get(last).copied().unwrap_or(0),
            None => 0,
        });
        Ok(Fact { domain: first.domain.clone(), codomain: self.codomain.clone(), ends: ends.collect() })
    }

    /// The concatenated blocks of both.
    ///
    /// Errors: the size is not representable.
    pub fn sum(&self, other: &Fact) -> Result<Fact, MorphismError> {
        Fact::new(self.blocks().chain(other.blocks()).map(|block| block.iter().copied()).collect::<Vec<_>>())
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.blocks(), |f, block| Listed(block).fmt(f))
    }
}

debug_as_text!(Fact);
