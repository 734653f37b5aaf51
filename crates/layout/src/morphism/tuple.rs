//! Morphisms of tuples: the category Tuple.
//!
//! Law: an object is a tuple of positive integers; a morphism `f: S -> T` is a tractable map `a` of
//! their indices with `S_i = T_a(i)` wherever `i` does not map to the base point. Morphisms compose
//! as their maps do (Carlisle, Shah, Stern, VanKoughnett).
//!
//! The meaning: a tuple is a box of coordinates, and `f` maps each axis of `S` to an axis of `T`;
//! an axis that maps to the base point is dropped, and an axis of `T` outside of the image stays at
//! 0.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use smallvec::SmallVec;

use crate::morphism::error::{Apart, MorphismError, Side, overflow};
use crate::morphism::pointed::{Images, PointedMap, known, write_list};

/// The entries of a tuple. Codomains have about twice as many entries as domains, because gaps of a
/// layout are entries, too.
pub(crate) type Entries = SmallVec<[i64; 12]>;

/// A morphism of flat tuples.
///
/// ```
/// use tilewright_layout::morphism::TupleMorphism;
///
/// let f = TupleMorphism::new([4, 5], [4, 16, 5], [Some(0), Some(2)]).unwrap();
/// assert_eq!(f.to_string(), "(4,5) -> (4,16,5) : (1,3)");
/// assert_eq!(f.encoded_layout().unwrap().to_string(), "(4,5):(1,64)");
/// assert_eq!(TupleMorphism::new([4, 5], [4, 16, 5], [Some(0), Some(1)]).unwrap_err().code(), "E0704");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TupleMorphism {
    domain: Entries,
    codomain: Entries,
    map: PointedMap,
}

impl TupleMorphism {
    /// The morphism from `domain` to `codomain` over the map with these images; `None` is the base
    /// point.
    ///
    /// The size of the domain, the product of its entries, has to be representable; that of the
    /// codomain need not be, since no index reaches it.
    ///
    /// Errors: the number of images is not that of entries ([`MorphismError::MapLength`]); an image
    /// is past the codomain ([`MorphismError::Target`]); two images are equal
    /// ([`MorphismError::SentTwice`]); an entry and its image have different sizes
    /// ([`MorphismError::Unequal`]); an entry that is not positive
    /// ([`MorphismError::NotPositive`]); a size that does not fit.
    pub fn new(
        domain: impl IntoIterator<Item = i64>,
        codomain: impl IntoIterator<Item = i64>,
        images: impl IntoIterator<Item = Option<usize>>,
    ) -> Result<TupleMorphism, MorphismError> {
        let codomain: Entries = codomain.into_iter().collect();
        let map = PointedMap::new(codomain.len(), images)?;
        TupleMorphism::over(domain.into_iter().collect(), codomain, map)
    }

    pub(crate) fn over(domain: Entries, codomain: Entries, map: PointedMap) -> Result<TupleMorphism, MorphismError> {
        positive("the domain", &domain)?;
        positive("the codomain", &codomain)?;
        size("size", &domain)?;
        if map.domain() != domain.len() {
            return Err(MorphismError::MapLength { domain: domain.len(), map: map.domain() });
        }
        for (entry, (extent, image)) in domain.iter().zip(map.images()).enumerate() {
            if let Some(target) = image
                && let Some(found) = codomain.get(target)
                && found != extent
            {
                return Err(MorphismError::Unequal { entry, extent: *extent, target, found: *found });
            }
        }
        Ok(TupleMorphism { domain, codomain, map })
    }

    /// As [`TupleMorphism::over`], for operations that preserve the conditions.
    #[inline]
    pub(crate) fn from_valid(domain: Entries, codomain: Entries, map: PointedMap) -> TupleMorphism {
        debug_assert!(TupleMorphism::over(domain.clone(), codomain.clone(), map.clone()).is_ok());
        TupleMorphism { domain, codomain, map }
    }

    /// The identity of a tuple.
    ///
    /// Errors: an entry is not positive; the size is not representable; too many entries.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// assert_eq!(TupleMorphism::identity([4, 5]).unwrap().to_string(), "(4,5) -> (4,5) : (1,2)");
    /// ```
    pub fn identity(tuple: impl IntoIterator<Item = i64>) -> Result<TupleMorphism, MorphismError> {
        let entries: Entries = tuple.into_iter().collect();
        let map = PointedMap::identity(entries.len())?;
        TupleMorphism::over(entries.clone(), entries, map)
    }

    /// The tuple where the arrows start.
    #[inline]
    pub fn domain(&self) -> &[i64] {
        &self.domain
    }

    /// The tuple where the arrows end.
    #[inline]
    pub fn codomain(&self) -> &[i64] {
        &self.codomain
    }

    /// The underlying map of indices.
    #[inline]
    pub fn map(&self) -> &PointedMap {
        &self.map
    }

    /// The product of the domain: the number of indices.
    #[inline]
    pub fn size(&self) -> i64 {
        // The constructor has checked that the product is representable.
        self.domain.iter().fold(1, |size, extent| size.saturating_mul(*extent))
    }

    /// The product of the codomain, a bound of the values.
    ///
    /// Errors: it is not representable.
    pub fn codomain_size(&self) -> Result<i64, MorphismError> {
        size("codomain_size", &self.codomain)
    }

    /// `self` after `first`: `first` is applied first, as in the composition of layouts.
    ///
    /// Errors: the codomain of `first` is not the domain of `self`.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,2) -> (5,2,5,2) : (2,4)".parse().unwrap();
    /// let g: TupleMorphism = "(5,2,5,2) -> (5,5,2,2) : (1,3,2,4)".parse().unwrap();
    /// assert_eq!(g.compose(&f).unwrap().to_string(), "(2,2) -> (5,5,2,2) : (3,4)");
    /// ```
    pub fn compose(&self, first: &TupleMorphism) -> Result<TupleMorphism, MorphismError> {
        if first.codomain != self.domain {
            return Err(not_composable("compose", &first.codomain, &self.domain));
        }
        Ok(TupleMorphism::from_valid(first.domain.clone(), self.codomain.clone(), self.map.after(&first.map)))
    }

    /// The two morphisms side by side: domains and codomains are concatenated.
    ///
    /// Errors: the size of the domain is not representable; too many entries.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(4) -> (2,4) : (2)".parse().unwrap();
    /// let g: TupleMorphism = "(5,3) -> (5) : (1,*)".parse().unwrap();
    /// assert_eq!(f.sum(&g).unwrap().to_string(), "(4,5,3) -> (2,4,5) : (2,3,*)");
    /// ```
    pub fn sum(&self, other: &TupleMorphism) -> Result<TupleMorphism, MorphismError> {
        let domain = joined(&self.domain, &other.domain);
        size("size", &domain)?;
        let map = self.map.sum(&other.map)?;
        Ok(TupleMorphism::from_valid(domain, joined(&self.codomain, &other.codomain), map))
    }

    /// The morphism on some of the entries of the domain, in the same order.
    ///
    /// Errors: an entry does not exist, or is named out of order ([`MorphismError::NoSuchEntry`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(4,5,2) -> (2,5,4) : (3,2,1)".parse().unwrap();
    /// assert_eq!(f.restrict(&[0, 2]).unwrap().to_string(), "(4,2) -> (2,5,4) : (3,1)");
    /// ```
    pub fn restrict(&self, entries: &[usize]) -> Result<TupleMorphism, MorphismError> {
        ascending("restrict", Side::Domain, entries, self.domain.len())?;
        let domain = entries.iter().filter_map(|entry| self.domain.get(*entry).copied()).collect();
        let images = entries.iter().filter_map(|entry| self.map.images.get(*entry).copied()).collect();
        Ok(TupleMorphism::from_valid(
            domain,
            self.codomain.clone(),
            PointedMap::from_images(self.codomain.len(), images),
        ))
    }

    /// The morphism into some of the entries of the codomain, in the same order: it factors through
    /// their inclusion.
    ///
    /// Errors: an entry does not exist, or is named out of order; an entry that is hit is left out
    /// ([`MorphismError::Lost`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(4,5) -> (4,7,5) : (1,3)".parse().unwrap();
    /// assert_eq!(f.factorise(&[0, 2]).unwrap().to_string(), "(4,5) -> (4,5) : (1,2)");
    /// assert_eq!(f.factorise(&[0, 1]).unwrap_err().code(), "E0713"); // 5 would have no image
    /// ```
    pub fn factorise(&self, entries: &[usize]) -> Result<TupleMorphism, MorphismError> {
        ascending("factorise", Side::Codomain, entries, self.codomain.len())?;
        let mut images = Images::new();
        for (entry, image) in self.map.images().enumerate() {
            images.push(match image {
                None => 0,
                Some(target) => match entries.binary_search(&target) {
                    Ok(place) => place as u16 + 1,
                    Err(_) => return Err(MorphismError::Lost { entry, target }),
                },
            });
        }
        let codomain = entries.iter().filter_map(|entry| self.codomain.get(*entry).copied()).collect();
        Ok(TupleMorphism::from_valid(self.domain.clone(), codomain, PointedMap::from_images(entries.len(), images)))
    }

    /// Two morphisms into the same tuple, side by side: their domains are concatenated, their
    /// images are disjoint.
    ///
    /// Errors: the codomains differ; the images meet ([`MorphismError::ImagesMeet`]); the size of
    /// the domain is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(4) -> (4,2,8) : (1)".parse().unwrap();
    /// let g: TupleMorphism = "(8) -> (4,2,8) : (3)".parse().unwrap();
    /// assert_eq!(f.concat(&g).unwrap().to_string(), "(4,8) -> (4,2,8) : (1,3)");
    /// assert_eq!(f.concat(&f).unwrap_err().code(), "E0709");
    /// ```
    pub fn concat(&self, other: &TupleMorphism) -> Result<TupleMorphism, MorphismError> {
        if self.codomain != other.codomain {
            return Err(not_composable("concat", &self.codomain, &other.codomain));
        }
        let taken = self.map.preimages();
        for (second, image) in other.map.images().enumerate() {
            if let Some(target) = image
                && let Some(Some(first)) = taken.get(target)
            {
                return Err(MorphismError::ImagesMeet { first: usize::from(*first), second, target });
            }
        }
        let domain = joined(&self.domain, &other.domain);
        size("size", &domain)?;
        let images: Images = self.map.images.iter().chain(&other.map.images).copied().collect();
        Ok(TupleMorphism::from_valid(
            domain,
            self.codomain.clone(),
            PointedMap::from_images(self.codomain.len(), images),
        ))
    }

    /// Whether it has an inverse: no entry is sent to the base point and every entry of the
    /// codomain is hit.
    pub fn is_isomorphism(&self) -> bool {
        self.domain.len() == self.codomain.len() && self.is_injective()
    }

    /// Whether no entry is sent to the base point. Then the encoded layout is injective.
    ///
    /// Entries 1 count, too: the answer is no if one maps to the base point, although the layout
    /// function is not affected.
    pub fn is_injective(&self) -> bool {
        self.map.images.iter().all(|place| *place > 0)
    }

    /// The inverse of an isomorphism.
    ///
    /// Errors: there is none ([`MorphismError::NotIsomorphism`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(4,5,2) -> (2,4,5) : (2,3,1)".parse().unwrap();
    /// assert_eq!(f.inverse().unwrap().to_string(), "(2,4,5) -> (4,5,2) : (3,1,2)");
    /// ```
    pub fn inverse(&self) -> Result<TupleMorphism, MorphismError> {
        if let Some(entry) = self.map.images.iter().position(|place| *place == 0) {
            return Err(MorphismError::NotIsomorphism { entry, side: Side::Domain });
        }
        let preimages = self.map.preimages();
        if let Some(entry) = preimages.iter().position(Option::is_none) {
            return Err(MorphismError::NotIsomorphism { entry, side: Side::Codomain });
        }
        let images = preimages.iter().flatten().map(|entry| entry + 1).collect();
        let map = PointedMap::from_images(self.domain.len(), images);
        Ok(TupleMorphism::from_valid(self.codomain.clone(), self.domain.clone(), map))
    }
}

/// Refuses entries that are not positive.
pub(crate) fn positive(what: &'static str, entries: &[i64]) -> Result<(), MorphismError> {
    match entries.iter().position(|extent| *extent < 1) {
        Some(entry) => {
            Err(MorphismError::NotPositive { what, entry, value: entries.get(entry).copied().unwrap_or_default() })
        }
        None => Ok(()),
    }
}

/// The product of the entries.
pub(crate) fn size(op: &'static str, entries: &[i64]) -> Result<i64, MorphismError> {
    entries.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent)).ok_or_else(|| overflow(op))
}

pub(crate) fn joined(left: &[i64], right: &[i64]) -> Entries {
    left.iter().chain(right).copied().collect()
}

/// The error for two tuples that should be equal: the end of a morphism and the start of the next.
pub(crate) fn not_composable(op: &'static str, ends: &[i64], begins: &[i64]) -> MorphismError {
    MorphismError::NotComposable { op, ends: text(ends), begins: text(begins), apart: Apart::of(ends, begins) }
}

/// A tuple as text.
pub(crate) fn text(entries: &[i64]) -> Box<str> {
    format!("{}", Listed(entries)).into_boxed_str()
}

/// Numbers in parentheses.
pub(crate) struct Listed<'a>(pub(crate) &'a [i64]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.0, |f, extent| extent.fmt(f))
    }
}

/// Refuses entries that do not exist or are not in increasing order.
fn ascending(op: &'static str, side: Side, chosen: &[usize], entries: usize) -> Result<(), MorphismError> {
    let mut least = 0;
    for entry in chosen {
        known(op, side, *entry, entries)?;
        if *entry < least {
            return Err(MorphismError::NoSuchEntry { op, side, entry: *entry, entries });
        }
        least = entry + 1;
    }
    Ok(())
}
