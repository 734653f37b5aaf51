//! Squeezing, sorting and coalescing of morphisms.
//!
//! Laws. `squeeze` drops entries 1 on both sides and is a functor: `squeeze(g o f) = squeeze g o
//! squeeze f`. `sort` orders the domain by its images. `coalesce` merges contiguous entries, and
//! the layout encoded by the result is the coalesced layout: `L(coal f) = coal(L(f))` (theorem C).

use crate::morphism::error::MorphismError;
use crate::morphism::pointed::{Images, PointedMap};
use crate::morphism::tuple::{Entries, TupleMorphism};

impl TupleMorphism {
    /// The morphism without the entries 1 of domain and codomain.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(1,4,1) -> (1,4,2,1) : (4,2,*)".parse().unwrap();
    /// assert_eq!(f.squeeze().to_string(), "(4) -> (4,2) : (1)");
    /// ```
    pub fn squeeze(&self) -> TupleMorphism {
        let mut places = 0;
        // The new position of each entry of the codomain.
        let moved: Images = self
            .codomain()
            .iter()
            .map(|extent| {
                places += u16::from(*extent > 1);
                if *extent > 1 { places } else { 0 }
            })
            .collect();
        let kept = || self.domain().iter().zip(self.map().images()).filter(|(extent, _)| **extent > 1);
        // An entry above 1 maps to an equal entry, which is kept.
        let images = kept().map(|(_, image)| image.and_then(|image| moved.get(image).copied()).unwrap_or(0)).collect();
        let domain = kept().map(|(extent, _)| *extent).collect();
        let codomain: Entries = self.codomain().iter().copied().filter(|extent| *extent > 1).collect();
        let map = PointedMap::from_images(codomain.len(), images);
        TupleMorphism::from_valid(domain, codomain, map)
    }

    /// The morphism with its domain in the order of the codomain; entries that map to the base
    /// point come first, by size.
    ///
    /// The layout of the result is the sorted layout: by stride, equal strides by extent.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,3,7,5) -> (5,3,2) : (3,2,*,1)".parse().unwrap();
    /// assert_eq!(f.sort().to_string(), "(7,5,3,2) -> (5,3,2) : (*,1,2,3)");
    /// ```
    pub fn sort(&self) -> TupleMorphism {
        let mut order: smallvec::SmallVec<[(u16, i64); 12]> =
            self.map().images.iter().copied().zip(self.domain().iter().copied()).collect();
        order.sort();
        let images = order.iter().map(|(place, _)| *place).collect();
        let domain = order.iter().map(|(_, extent)| *extent).collect();
        let map = PointedMap::from_images(self.codomain().len(), images);
        TupleMorphism::from_valid(domain, self.codomain().into(), map)
    }

    /// Whether the domain is in the order of the codomain, with entries that map to the base point
    /// first.
    pub fn is_sorted(&self) -> bool {
        let order = || self.map().images.iter().zip(self.domain());
        order().zip(order().skip(1)).all(|(left, right)| left <= right)
    }

    /// Whether no entry of the domain is 1 and no two neighbours are contiguous, so that the
    /// encoded layout is coalesced.
    pub fn is_coalesced(&self) -> bool {
        let apart = |left: Option<usize>, right: Option<usize>| match (left, right) {
            (None, None) => false,
            (Some(left), Some(right)) => {
                left > right
                    || self.codomain().get(left + 1..right).is_some_and(|between| between.iter().any(|t| *t > 1))
            }
            _ => true,
        };
        let images = || self.map().images();
        self.domain().iter().all(|extent| *extent > 1)
            && images().zip(images().skip(1)).all(|(left, right)| apart(left, right))
    }

    /// Merges neighbours that are contiguous in both domain and codomain, and drops entries 1.
    ///
    /// Neighbours are merged if all of them map to the base point, or to successive entries of the
    /// codomain. Entries of the codomain that are not hit are not merged;
    /// [`TupleMorphism::coalesce_strongly`] merges them too.
    ///
    /// Errors: a product of entries is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,2,3,3) -> (2,2,5,5,3) : (1,2,*,5)".parse().unwrap();
    /// assert_eq!(f.coalesce().unwrap().to_string(), "(4,3,3) -> (4,5,5,3) : (1,*,4)");
    /// assert_eq!(f.coalesce_strongly().unwrap().to_string(), "(4,3,3) -> (4,25,3) : (1,*,3)");
    /// ```
    pub fn coalesce(&self) -> Result<TupleMorphism, MorphismError> {
        self.merged(false)
    }

    /// As [`TupleMorphism::coalesce`], with successive entries of the codomain that are not hit
    /// merged as well.
    ///
    /// Errors: a product of entries is not representable.
    pub fn coalesce_strongly(&self) -> Result<TupleMorphism, MorphismError> {
        self.merged(true)
    }

    fn merged(&self, strongly: bool) -> Result<TupleMorphism, MorphismError> {
        let squeezed = self.squeeze();
        let preimages = squeezed.map().preimages();
        // Each entry of the codomain is merged with the one before it if their preimages are
        // adjacent, in order.
        let mut codomain = Entries::new();
        let mut moved = Images::new();
        let mut before: Option<Option<u16>> = None;
        for (extent, preimage) in squeezed.codomain().iter().zip(&preimages) {
            let joins = match (before, preimage) {
                (Some(Some(left)), Some(right)) => left + 1 == *right,
                (Some(None), None) => strongly,
                _ => false,
            };
            match codomain.last_mut().filter(|_| joins) {
                Some(last) => {
                    *last = last.checked_mul(*extent).ok_or_else(|| crate::morphism::error::overflow("coalesce"))?
                }
                None => codomain.push(*extent),
            }
            moved.push(codomain.len() as u16);
            before = Some(*preimage);
        }
        let (mut domain, mut images) = (Entries::new(), Images::new());
        let mut last: Option<u16> = None;
        for (extent, image) in squeezed.domain().iter().zip(squeezed.map().images()) {
            let place = image.and_then(|image| moved.get(image).copied()).unwrap_or(0);
            match domain.last_mut().filter(|_| last == Some(place)) {
                // The product divides the size of the domain, which is representable.
                Some(run) => *run *= extent,
                None => {
                    domain.push(*extent);
                    images.push(place);
                }
            }
            last = Some(place);
        }
        let map = PointedMap::from_images(codomain.len(), images);
        Ok(TupleMorphism::from_valid(domain, codomain, map))
    }
}
