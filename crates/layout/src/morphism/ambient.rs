//! Maps of tuples up to divisibility: the category that contains both morphisms and refinements.
//!
//! Law: a morphism `S -> T` is a map of indices, which may map several indices to one, and some to
//! the base point, such that the product of the entries that map to `T_j` divides `T_j`, for each
//! `j`; the product of no entries is 1. Such maps compose, because what divides a factor divides
//! the product. It is the category of operators of the positive integers under divisibility, with
//! multiplication for the tensor product.
//!
//! * *Tuple* is the subcategory of the maps that hit no place twice and send each entry to an equal
//!   one.
//! * The refinements (Ref, and Fact without the nesting) are the maps that are *active* (nothing
//!   goes to the base point), onto, never decrease, and under which the products are the entries.
//!
//! A span `U <- X -> V` is then one of each from `X`. The square by which spans compose commutes
//! here as far as it goes: [`Span::compose`] leaves out what the morphism forgets.
//!
//! [`Span::compose`]: crate::morphism::Span::compose

use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use crate::morphism::error::MorphismError;
use crate::morphism::fact::Fact;
use crate::morphism::tuple::{Entries, Listed, TupleMorphism, not_composable, positive, size};

/// A map of the entries of tuples under which products divide.
///
/// ```
/// use tilewright_layout::morphism::AmbientMorphism;
///
/// // 2 and 3 map to 12, 4 maps to 8; 5 is dropped.
/// let f = AmbientMorphism::new([2, 3, 4, 5], [12, 8], [Some(0), Some(0), Some(1), None]).unwrap();
/// assert_eq!(f.to_string(), "(2,3,4,5) -> (12,8) : (1,1,2,*)");
/// assert!(!f.is_active() && f.to_morphism().is_none());
/// assert!(AmbientMorphism::new([2, 4], [12], [Some(0), Some(0)]).is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AmbientMorphism {
    domain: Entries,
    codomain: Entries,
    images: Vec<Option<usize>>,
}

impl AmbientMorphism {
    /// The morphism from `domain` to `codomain` over the map with these images; `None` is the base
    /// point.
    ///
    /// Errors: a map of another length ([`MorphismError::MapLength`]) or past the codomain
    /// ([`MorphismError::Target`]); a product that does not divide its entry
    /// ([`MorphismError::Undivided`]); an entry that is not positive; a size that is not
    /// representable.
    pub fn new(
        domain: impl IntoIterator<Item = i64>,
        codomain: impl IntoIterator<Item = i64>,
        images: impl IntoIterator<Item = Option<usize>>,
    ) -> Result<AmbientMorphism, MorphismError> {
        let (domain, codomain): (Entries, Entries) = (domain.into_iter().collect(), codomain.into_iter().collect());
        let images: Vec<Option<usize>> = images.into_iter().collect();
        positive("the domain", &domain)?;
        positive("the codomain", &codomain)?;
        size("size", &domain)?;
        if images.len() != domain.len() {
            return Err(MorphismError::MapLength { domain: domain.len(), map: images.len() });
        }
        let made = AmbientMorphism { domain, codomain, images };
        let products = made.products()?;
        for (target, (entry, product)) in made.codomain.iter().zip(&products).enumerate() {
            if entry % product != 0 {
                return Err(MorphismError::Undivided { target, entry: *entry, product: *product });
            }
        }
        Ok(made)
    }

    /// The product of the entries that map to each entry of the codomain.
    fn products(&self) -> Result<Entries, MorphismError> {
        let mut products: Entries = self.codomain.iter().map(|_| 1).collect();
        for (entry, (extent, image)) in self.domain.iter().zip(&self.images).enumerate() {
            let Some(target) = *image else { continue };
            let Some(product) = products.get_mut(target) else {
                return Err(MorphismError::Target { entry, target, entries: self.codomain.len() });
            };
            // The product divides the size of the domain, which is representable.
            *product = product.saturating_mul(*extent);
        }
        Ok(products)
    }

    /// The identity of a tuple.
    ///
    /// Errors: an entry is not positive; the size is not representable.
    pub fn identity(tuple: impl IntoIterator<Item = i64>) -> Result<AmbientMorphism, MorphismError> {
        let entries: Entries = tuple.into_iter().collect();
        let images: Vec<Option<usize>> = (0..entries.len()).map(Some).collect();
        AmbientMorphism::new(entries.iter().copied(), entries.iter().copied(), images)
    }

    /// The tuple where the arrows start.
    pub fn domain(&self) -> &[i64] {
        &self.domain
    }

    /// The tuple where they end.
    pub fn codomain(&self) -> &[i64] {
        &self.codomain
    }

    /// The image of each entry; None is the base point.
    pub fn images(&self) -> &[Option<usize>] {
        &self.images
    }

    /// `self` after `first`.
    ///
    /// Errors: `first` does not end where `self` begins ([`MorphismError::NotComposable`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::AmbientMorphism;
    ///
    /// let f = AmbientMorphism::new([2, 3, 5], [6, 5], [Some(0), Some(0), Some(1)]).unwrap();
    /// let g = AmbientMorphism::new([6, 5], [60], [Some(0), Some(0)]).unwrap();
    /// assert_eq!(g.compose(&f).unwrap().to_string(), "(2,3,5) -> (60) : (1,1,1)");
    /// ```
    pub fn compose(&self, first: &AmbientMorphism) -> Result<AmbientMorphism, MorphismError> {
        if first.codomain != self.domain {
            return Err(not_composable("compose", &first.codomain, &self.domain));
        }
        let through = |image: &Option<usize>| image.and_then(|place| self.images.get(place).copied().flatten());
        let images = first.images.iter().map(through).collect();
        Ok(AmbientMorphism { domain: first.domain.clone(), codomain: self.codomain.clone(), images })
    }

    /// Whether no entry goes to the base point.
    pub fn is_active(&self) -> bool {
        self.images.iter().all(Option::is_some)
    }

    /// Whether every entry of the codomain is hit.
    pub fn is_surjective(&self) -> bool {
        (0..self.codomain.len()).all(|place| self.images.contains(&Some(place)))
    }

    /// Whether entries that do not map to the base point keep their order; several may map to the
    /// same entry.
    pub fn is_monotone(&self) -> bool {
        let sent: Vec<usize> = self.images.iter().copied().flatten().collect();
        sent.is_sorted()
    }

    /// Whether the product of the entries that map to an entry equals it, for each entry in the
    /// image.
    pub fn is_exact(&self) -> bool {
        // The constructor has checked that every image is an index of the codomain.
        let products = self.products().unwrap_or_default();
        let hit = |place: usize| self.images.contains(&Some(place));
        self.codomain.iter().zip(&products).enumerate().all(|(place, (entry, product))| !hit(place) || entry == product)
    }

    /// This map as a morphism of tuples: it must be exact, and no entry may be hit twice. None
    /// otherwise.
    ///
    /// ```
    /// use tilewright_layout::morphism::{AmbientMorphism, TupleMorphism};
    ///
    /// let f: TupleMorphism = "(4,5) -> (4,16,5) : (1,3)".parse().unwrap();
    /// assert_eq!(AmbientMorphism::from(&f).to_morphism(), Some(f));
    /// ```
    pub fn to_morphism(&self) -> Option<TupleMorphism> {
        let images = self.images.iter().copied();
        TupleMorphism::new(self.domain.iter().copied(), self.codomain.iter().copied(), images).ok()
    }

    /// This map as a factorisation: it must be active, surjective, monotone and exact. None
    /// otherwise.
    ///
    /// ```
    /// use tilewright_layout::morphism::{AmbientMorphism, Fact};
    ///
    /// let blocks = Fact::new([vec![2, 3], vec![4]]).unwrap();
    /// let refinement = AmbientMorphism::from(&blocks);
    /// assert_eq!(refinement.to_string(), "(2,3,4) -> (6,4) : (1,1,2)");
    /// assert_eq!(refinement.to_factorisation(), Some(blocks));
    /// ```
    pub fn to_factorisation(&self) -> Option<Fact> {
        if !(self.is_active() && self.is_surjective() && self.is_monotone() && self.is_exact()) {
            return None;
        }
        let block = |place: usize| {
            let sent = self.domain.iter().zip(&self.images).filter(move |(_, image)| **image == Some(place));
            sent.map(|(extent, _)| *extent).collect::<Vec<i64>>()
        };
        Fact::new((0..self.codomain.len()).map(block)).ok()
    }
}

impl From<&TupleMorphism> for AmbientMorphism {
    /// Tuple is a subcategory.
    fn from(f: &TupleMorphism) -> AmbientMorphism {
        AmbientMorphism { domain: f.domain().into(), codomain: f.codomain().into(), images: f.map().images().collect() }
    }
}

impl From<&Fact> for AmbientMorphism {
    /// Refinements are the arrows from the finer tuple to the coarser one. Nothing maps to a block
    /// without entries.
    fn from(fact: &Fact) -> AmbientMorphism {
        let images = fact.blocks().enumerate().flat_map(|(place, block)| block.iter().map(move |_| Some(place)));
        AmbientMorphism { domain: fact.domain().into(), codomain: fact.codomain().into(), images: images.collect() }
    }
}

impl fmt::Display for AmbientMorphism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} : (", Listed(&self.domain), Listed(&self.codomain))?;
        for (entry, image) in self.images.iter().enumerate() {
            if entry > 0 {
                f.write_str(",")?;
            }
            match image {
                Some(place) => write!(f, "{}", place + 1)?,
                None => f.write_str("*")?,
            }
        }
        f.write_str(")")
    }
}

debug_as_text!(AmbientMorphism);
