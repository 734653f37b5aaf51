//! Morphisms of nested tuples: the category Nest.
//!
//! Law: a nested tuple is its flat tuple and its profile, and a morphism `S -> T` of nested tuples
//! is a morphism of the flat ones (Carlisle, Shah, Stern, VanKoughnett). So every operation here is
//! that of Tuple, together with an operation on the profiles.

use crate::morphism::error::{Apart, MorphismError};
use crate::morphism::pointed::PointedMap;
use crate::morphism::tuple::{Entries, TupleMorphism};
use crate::{Layout, Profile, Tree};
use smallvec::SmallVec;

/// A morphism of nested tuples.
///
/// ```
/// use tilewright_layout::morphism::{NestMorphism, standard_representation};
///
/// let layout = "(32,(2,2)):(192,(24,3))".parse().unwrap();
/// let f: NestMorphism = standard_representation(&layout).unwrap();
/// assert_eq!(f.to_string(), "(32,(2,2)) -> (3,2,4,2,4,32) : (6,(4,2))");
/// assert_eq!(f.encoded_layout().unwrap(), layout);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NestMorphism {
    flat: TupleMorphism,
    domain: Profile,
    codomain: Profile,
}

impl NestMorphism {
    /// The morphism from `domain` to `codomain` over the map of their leaves with these images;
    /// `None` is the base point.
    ///
    /// Errors: as [`TupleMorphism::new`].
    pub fn new(
        domain: &Tree<i64>,
        codomain: &Tree<i64>,
        images: impl IntoIterator<Item = Option<usize>>,
    ) -> Result<NestMorphism, MorphismError> {
        let flat = TupleMorphism::new(domain.leaves().iter().copied(), codomain.leaves().iter().copied(), images)?;
        Ok(NestMorphism { flat, domain: domain.profile().clone(), codomain: codomain.profile().clone() })
    }

    /// As [`NestMorphism::new`] for parts that fit by construction.
    #[inline]
    pub(crate) fn from_parts(flat: TupleMorphism, domain: Profile, codomain: Profile) -> NestMorphism {
        debug_assert_eq!((flat.domain().len(), flat.codomain().len()), (domain.leaves(), codomain.leaves()));
        NestMorphism { flat, domain, codomain }
    }

    /// The identity of a nested tuple.
    ///
    /// Errors: an entry is not positive; the size is not representable.
    pub fn identity(tuple: &Tree<i64>) -> Result<NestMorphism, MorphismError> {
        let flat = TupleMorphism::identity(tuple.leaves().iter().copied())?;
        Ok(NestMorphism { flat, domain: tuple.profile().clone(), codomain: tuple.profile().clone() })
    }

    /// The underlying morphism of flat tuples: the flattening functor from Nest to Tuple.
    #[inline]
    pub fn flatten(&self) -> &TupleMorphism {
        &self.flat
    }

    /// The nested tuple where the arrows start.
    pub fn domain(&self) -> Tree<i64> {
        tree(&self.domain, self.flat.domain())
    }

    /// The nested tuple where the arrows end.
    pub fn codomain(&self) -> Tree<i64> {
        tree(&self.codomain, self.flat.codomain())
    }

    /// The nesting of the domain.
    #[inline]
    pub fn domain_profile(&self) -> &Profile {
        &self.domain
    }

    /// The nesting of the codomain.
    #[inline]
    pub fn codomain_profile(&self) -> &Profile {
        &self.codomain
    }

    /// The underlying map of leaves.
    #[inline]
    pub fn map(&self) -> &PointedMap {
        self.flat.map()
    }

    /// The product of the domain: the number of indices.
    #[inline]
    pub fn size(&self) -> i64 {
        self.flat.size()
    }

    /// `self` after `first`: `first` is applied first, as in the composition of layouts.
    ///
    /// Errors: the codomain of `first`, with its nesting, is not the domain of `self`.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "(2,3) -> (3,(2,4)) : (2,1)".parse().unwrap();
    /// let g: NestMorphism = "(3,(2,4)) -> (4,3,2) : (2,(3,*))".parse().unwrap();
    /// assert_eq!(g.compose(&f).unwrap().to_string(), "(2,3) -> (4,3,2) : (3,2)");
    /// ```
    pub fn compose(&self, first: &NestMorphism) -> Result<NestMorphism, MorphismError> {
        if first.codomain != self.domain || first.flat.codomain() != self.flat.domain() {
            return Err(not_composable("compose", &first.codomain(), &self.domain()));
        }
        let flat = self.flat.compose(&first.flat)?;
        Ok(NestMorphism::from_parts(flat, first.domain.clone(), self.codomain.clone()))
    }

    /// The two morphisms side by side, from a pair to a pair.
    ///
    /// Errors: the size of the domain is not representable; too many leaves, or nested too deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "(4) -> (2,4) : (2)".parse().unwrap();
    /// let g: NestMorphism = "5 -> (5) : 1".parse().unwrap();
    /// assert_eq!(f.sum(&g).unwrap().to_string(), "((4),5) -> ((2,4),(5)) : ((2),3)");
    /// ```
    pub fn sum(&self, other: &NestMorphism) -> Result<NestMorphism, MorphismError> {
        let flat = self.flat.sum(&other.flat)?;
        let domain = Profile::tuple([&self.domain, &other.domain])?;
        Ok(NestMorphism::from_parts(flat, domain, Profile::tuple([&self.codomain, &other.codomain])?))
    }

    /// Two morphisms into the same tuple, side by side: from the pair of their domains. Their
    /// images are disjoint.
    ///
    /// Errors: the codomains differ; the images meet; the size of the domain is not representable;
    /// nested too deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "4 -> (4,(2,8)) : 1".parse().unwrap();
    /// let g: NestMorphism = "(8,2) -> (4,(2,8)) : (3,2)".parse().unwrap();
    /// assert_eq!(f.concat(&g).unwrap().to_string(), "(4,(8,2)) -> (4,(2,8)) : (1,(3,2))");
    /// ```
    pub fn concat(&self, other: &NestMorphism) -> Result<NestMorphism, MorphismError> {
        if self.codomain != other.codomain {
            return Err(not_composable("concat", &self.codomain(), &other.codomain()));
        }
        let flat = self.flat.concat(&other.flat)?;
        let domain = Profile::tuple([&self.domain, &other.domain])?;
        Ok(NestMorphism::from_parts(flat, domain, self.codomain.clone()))
    }

    /// Merges neighbours that are contiguous in both domain and codomain. Both become flat: a
    /// single entry is a leaf; no entry becomes a 1 that maps to the base point, because `1:0` is
    /// the coalesced layout of size 1.
    ///
    /// Errors: a product of entries is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((2,2),3) -> ((2,2),(5,3)) : ((1,2),4)".parse().unwrap();
    /// assert_eq!(f.coalesce().unwrap().to_string(), "(4,3) -> (4,5,3) : (1,3)");
    /// ```
    pub fn coalesce(&self) -> Result<NestMorphism, MorphismError> {
        let mut flat = self.flat.coalesce()?;
        let domain = match flat.domain().len() {
            0 if self.flat.domain().is_empty() => Profile::flat(0)?,
            0 => {
                flat = TupleMorphism::new([1], flat.codomain().iter().copied(), [None])?;
                Profile::leaf()
            }
            1 => Profile::leaf(),
            many => Profile::flat(many)?,
        };
        let codomain = Profile::flat(flat.codomain().len())?;
        Ok(NestMorphism::from_parts(flat, domain, codomain))
    }

    /// The inclusion of the leaves of the codomain that are not hit, as a flat tuple.
    ///
    /// Errors: an entry is sent to the base point; the size of the new domain is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "(4,5) -> (4,(16,5)) : (1,3)".parse().unwrap();
    /// assert_eq!(f.complement().unwrap().to_string(), "(16) -> (4,(16,5)) : (2)");
    /// ```
    pub fn complement(&self) -> Result<NestMorphism, MorphismError> {
        let flat = self.flat.complement()?;
        let domain = Profile::flat(flat.domain().len())?;
        Ok(NestMorphism::from_parts(flat, domain, self.codomain.clone()))
    }

    /// Whether this divides `whole`: its codomain, including the nesting, is the domain of `whole`,
    /// and no entry maps to the base point. Then [`NestMorphism::logical_divide`] of `whole` by it
    /// exists.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let whole: NestMorphism = "(4,8) -> (8,4) : (2,1)".parse().unwrap();
    /// let tile: NestMorphism = "(8) -> (4,8) : (2)".parse().unwrap();
    /// assert!(tile.divides(&whole) && !whole.divides(&tile));
    /// ```
    pub fn divides(&self, whole: &NestMorphism) -> bool {
        self.codomain == whole.domain
            && self.flat.codomain() == whole.flat.domain()
            && self.map().images().all(|image| image.is_some())
    }

    /// Whether the two are product admissible: `self` sends no entry to the base point, and `tile`
    /// ends at the flat tuple of the entries that `self` does not hit. Then
    /// [`NestMorphism::logical_product`] of `self` and `tile` exists, unless its size is not
    /// representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "(2,2) -> (2,3,2,5) : (1,3)".parse().unwrap();
    /// let tile: NestMorphism = "5 -> (3,5) : 2".parse().unwrap();
    /// assert!(f.is_product_admissible(&tile) && !tile.is_product_admissible(&f));
    /// ```
    pub fn is_product_admissible(&self, tile: &NestMorphism) -> bool {
        let preimages = self.map().preimages();
        let entries = self.flat.codomain().iter().zip(&preimages);
        let free = entries.filter(|(_, preimage)| preimage.is_none()).map(|(extent, _)| extent);
        let flat = !tile.codomain.is_leaf() && tile.codomain.depth() <= 1;
        self.map().images().all(|image| image.is_some()) && flat && free.eq(tile.flat.codomain())
    }

    /// Logical division: `self` after (`tile`, complement of `tile`), from the pair of their
    /// domains.
    ///
    /// Errors: `tile` does not end where `self` begins; it sends an entry to the base point; nested
    /// too deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((2,2),8) -> (8,4,2) : ((3,*),1)".parse().unwrap();
    /// let tile: NestMorphism = "(2,8) -> ((2,2),8) : (2,3)".parse().unwrap();
    /// assert_eq!(f.logical_divide(&tile).unwrap().to_string(), "((2,8),(2)) -> (8,4,2) : ((*,1),(3))");
    /// ```
    pub fn logical_divide(&self, tile: &NestMorphism) -> Result<NestMorphism, MorphismError> {
        const OP: &str = "logical_divide";
        if tile.codomain != self.domain || tile.flat.codomain() != self.flat.domain() {
            return Err(not_composable(OP, &tile.codomain(), &self.domain()));
        }
        let rest = tile.flat.complement_for(OP)?;
        let flat = self.flat.compose(&tile.flat.concat(&rest)?)?;
        let domain = Profile::tuple([&tile.domain, &Profile::flat(rest.domain().len())?])?;
        Ok(NestMorphism::from_parts(flat, domain, self.codomain.clone()))
    }

    /// Logical product: (`self`, complement of `self` after `tile`), from the pair of their
    /// domains.
    ///
    /// Errors: an entry of `self` is sent to the base point; `tile` does not end at the flat tuple
    /// where the complement of `self` begins; the size of the domain is not representable; nested
    /// too deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "(2,2) -> (2,3,2,5) : (1,3)".parse().unwrap();
    /// let tile: NestMorphism = "5 -> (3,5) : 2".parse().unwrap();
    /// assert_eq!(f.logical_product(&tile).unwrap().to_string(), "((2,2),5) -> (2,3,2,5) : ((1,3),4)");
    /// ```
    pub fn logical_product(&self, tile: &NestMorphism) -> Result<NestMorphism, MorphismError> {
        const OP: &str = "logical_product";
        let free = self.flat.complement_for(OP)?;
        let begins = Profile::flat(free.domain().len())?;
        if tile.codomain != begins || tile.flat.codomain() != free.domain() {
            return Err(not_composable(OP, &tile.codomain(), &tree(&begins, free.domain())));
        }
        let flat = self.flat.concat(&free.compose(&tile.flat)?)?;
        let domain = Profile::tuple([&self.domain, &tile.domain])?;
        Ok(NestMorphism::from_parts(flat, domain, self.codomain.clone()))
    }

    /// Whether it has an inverse.
    pub fn is_isomorphism(&self) -> bool {
        self.flat.is_isomorphism()
    }

    /// The inverse of an isomorphism.
    ///
    /// Errors: there is none.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((4,5),2) -> (2,4,5) : ((2,3),1)".parse().unwrap();
    /// assert_eq!(f.inverse().unwrap().to_string(), "(2,4,5) -> ((4,5),2) : (3,1,2)");
    /// ```
    pub fn inverse(&self) -> Result<NestMorphism, MorphismError> {
        Ok(NestMorphism::from_parts(self.flat.inverse()?, self.codomain.clone(), self.domain.clone()))
    }

    /// Whether the two side by side are an isomorphism onto their common codomain.
    pub fn is_complementary_to(&self, other: &NestMorphism) -> bool {
        self.codomain == other.codomain && self.flat.is_complementary_to(&other.flat)
    }
}

/// The error for two nested morphisms that cannot be composed.
fn not_composable(op: &'static str, ends: &Tree<i64>, begins: &Tree<i64>) -> MorphismError {
    use alloc::string::ToString;
    let apart = Apart::of(ends.leaves(), begins.leaves());
    MorphismError::NotComposable { op, ends: ends.to_string().into(), begins: begins.to_string().into(), apart }
}

/// The tree with this profile and these leaves, of which there are as many as the profile has.
pub(crate) fn tree(profile: &Profile, leaves: &[i64]) -> Tree<i64> {
    Tree::new(profile.clone(), leaves.iter().copied()).unwrap_or_else(|_| Tree::leaf(1))
}

impl From<TupleMorphism> for NestMorphism {
    /// A flat morphism as a nested one: tuples of depth 1.
    fn from(flat: TupleMorphism) -> NestMorphism {
        // A map has fewer indices than a profile may have nodes.
        let profile = |leaves: usize| Profile::flat(leaves).unwrap_or_else(|_| Profile::leaf());
        let (domain, codomain) = (profile(flat.domain().len()), profile(flat.codomain().len()));
        NestMorphism { flat, domain, codomain }
    }
}

/// The extents of a layout.
pub(crate) fn extents(layout: &Layout) -> Entries {
    layout.leaves().iter().map(|leaf| leaf.extent).collect()
}

/// The running products of a tuple: for each entry the product of the entries before it; None from
/// the first product that is not representable.
pub(crate) fn steps(entries: &[i64]) -> SmallVec<[Option<i64>; 16]> {
    let mut step = Some(1_i64);
    let before = |extent: &i64| {
        let here = step;
        step = here.and_then(|step| step.checked_mul(*extent));
        here
    };
    entries.iter().map(before).collect()
}
