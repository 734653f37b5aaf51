//! Restriction, factorisation, squeezing and sorting of nested morphisms.
//!
//! Law: each is the operation of Tuple on the flat morphism, and the remaining entries keep their
//! position in the nesting. A tuple that loses all of its entries is removed; one with a single
//! remaining entry stays a tuple, so that the lengths of paths do not change. Sorting flattens the
//! domain, because entries of different modes may be exchanged.

use alloc::vec::Vec;

use crate::Profile;
use crate::morphism::error::MorphismError;
use crate::morphism::nest::NestMorphism;

impl NestMorphism {
    /// The restriction to some of the entries of the domain, in the same order and nesting.
    ///
    /// Errors: an entry does not exist, or is named out of order ([`MorphismError::NoSuchEntry`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((2,3),(4,5)) -> (5,4,3,2) : ((4,3),(2,1))".parse().unwrap();
    /// assert_eq!(f.restrict(&[1, 2, 3]).unwrap().to_string(), "((3),(4,5)) -> (5,4,3,2) : ((3),(2,1))");
    /// assert_eq!(f.restrict(&[3]).unwrap().to_string(), "((5)) -> (5,4,3,2) : ((1))");
    /// ```
    pub fn restrict(&self, entries: &[usize]) -> Result<NestMorphism, MorphismError> {
        let flat = self.flatten().restrict(entries)?;
        let domain = kept(self.domain_profile(), |entry| entries.binary_search(&entry).is_ok())?;
        Ok(NestMorphism::from_parts(flat, domain, self.codomain_profile().clone()))
    }

    /// The morphism into some of the entries of the codomain, in the same order and the same
    /// nesting: it factors through their inclusion.
    ///
    /// Errors: an entry does not exist, or is named out of order; an entry that is hit is left out
    /// ([`MorphismError::Lost`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "(2,5) -> ((5,4),(3,2)) : (4,1)".parse().unwrap();
    /// assert_eq!(f.factorise(&[0, 3]).unwrap().to_string(), "(2,5) -> ((5),(2)) : (2,1)");
    /// ```
    pub fn factorise(&self, entries: &[usize]) -> Result<NestMorphism, MorphismError> {
        let flat = self.flatten().factorise(entries)?;
        let codomain = kept(self.codomain_profile(), |entry| entries.binary_search(&entry).is_ok())?;
        Ok(NestMorphism::from_parts(flat, self.domain_profile().clone(), codomain))
    }

    /// The morphism without the entries 1 of domain and codomain. This is a functor:
    /// `squeeze(g o f) = squeeze g o squeeze f`.
    ///
    /// Errors: none for a morphism that exists.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((1,4),1) -> ((1,4),(2,1)) : ((4,2),*)".parse().unwrap();
    /// assert_eq!(f.squeeze().unwrap().to_string(), "((4)) -> ((4),(2)) : ((1))");
    /// ```
    pub fn squeeze(&self) -> Result<NestMorphism, MorphismError> {
        let above = |entries: &[i64], entry: usize| entries.get(entry).is_some_and(|extent| *extent > 1);
        let domain = kept(self.domain_profile(), |entry| above(self.flatten().domain(), entry))?;
        let codomain = kept(self.codomain_profile(), |entry| above(self.flatten().codomain(), entry))?;
        Ok(NestMorphism::from_parts(self.flatten().squeeze(), domain, codomain))
    }

    /// The morphism with its domain flattened and sorted in the order of the codomain; entries that
    /// map to the base point come first, by size.
    ///
    /// Errors: none for a morphism that exists.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((2,3),(7,5)) -> (5,(3,2)) : ((3,2),(*,1))".parse().unwrap();
    /// assert_eq!(f.sort().unwrap().to_string(), "(7,5,3,2) -> (5,(3,2)) : (*,1,2,3)");
    /// ```
    pub fn sort(&self) -> Result<NestMorphism, MorphismError> {
        let flat = self.flatten().sort();
        let domain = Profile::flat(flat.domain().len())?;
        Ok(NestMorphism::from_parts(flat, domain, self.codomain_profile().clone()))
    }
}

/// The profile without some of its leaves, and without the tuples that become empty. A single leaf
/// that is removed leaves the empty tuple.
fn kept(profile: &Profile, keep: impl Fn(usize) -> bool) -> Result<Profile, MorphismError> {
    match part(&mut profile.nodes().iter().copied(), &mut 0, &keep)?.0 {
        Some(profile) => Ok(profile),
        None => Ok(Profile::flat(0)?),
    }
}

/// Appends what is kept of one mode, if anything, and returns the number of nodes of the mode. The
/// depth is bounded by [`crate::MAX_DEPTH`].
fn part(
    nodes: &mut impl Iterator<Item = u16>,
    leaf: &mut usize,
    keep: &impl Fn(usize) -> bool,
) -> Result<(Option<Profile>, usize), MorphismError> {
    // A tuple is written as its number of nodes, a leaf as 0.
    let length = usize::from(nodes.next().unwrap_or_default());
    if length == 0 {
        let here = *leaf;
        *leaf += 1;
        return Ok((keep(here).then(Profile::leaf), 1));
    }
    let (mut modes, mut read, mut gone) = (Vec::new(), 1, false);
    while read < length {
        let (mode, count) = part(nodes, leaf, keep)?;
        read += count;
        gone |= mode.is_none();
        modes.extend(mode);
    }
    let empty = gone && modes.iter().all(|mode: &Profile| mode.leaves() == 0);
    Ok((if empty { None } else { Some(Profile::tuple(modes.iter())?) }, length))
}
