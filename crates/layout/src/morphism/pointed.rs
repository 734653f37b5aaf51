//! Maps of pointed finite sets.
//!
//! Law: a pointed map from `<m>` to `<n>` maps each of `m` entries to one of `n` entries or to the
//! *base point*, and the base point to itself. It is *tractable* if no entry other than the base
//! point is hit twice. Such maps compose, and composition is associative with the identities as
//! units (Carlisle, Shah, Stern, VanKoughnett).
//!
//! Entries are counted from 0 in the interface, as usual in Rust, and from 1 in text, as in the
//! paper: `(1,*,3)`.

use core::fmt;

use crate::morphism::error::{MorphismError, Side};
use crate::{LayoutError, Limit, MAX_NODES};
use smallvec::SmallVec;

/// Encoded images: 0 is the base point, `k + 1` is entry `k`.
pub(crate) type Images = SmallVec<[u16; 8]>;

/// A tractable map of pointed finite sets.
///
/// ```
/// use tilewright_layout::morphism::PointedMap;
///
/// let map = PointedMap::new(3, [Some(0), None, Some(2)]).unwrap();
/// assert_eq!(map.to_string(), "(1,*,3)");
/// assert_eq!((map.image(0), map.image(1), map.preimage(2)), (Some(0), None, Some(2)));
/// assert_eq!(PointedMap::new(3, [Some(0), Some(0)]).unwrap_err().code(), "E0703");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PointedMap {
    pub(crate) images: Images,
    pub(crate) codomain: u16,
}

impl PointedMap {
    /// The map to `codomain` entries with these images; `None` is the base point.
    ///
    /// Errors: an image is past the codomain ([`MorphismError::NoSuchEntry`]); two images are equal
    /// ([`MorphismError::SentTwice`]); more entries than a tuple may have.
    pub fn new(codomain: usize, images: impl IntoIterator<Item = Option<usize>>) -> Result<PointedMap, MorphismError> {
        let width = bounded(codomain)?;
        let mut list = Images::new();
        // The entry that maps to each entry of the codomain so far.
        let mut taken: SmallVec<[Option<u16>; 16]> = SmallVec::from_elem(None, codomain);
        for (entry, image) in images.into_iter().enumerate() {
            let second = bounded(entry + 1)? - 1;
            let Some(target) = image else {
                list.push(0);
                continue;
            };
            match taken.get_mut(target) {
                None => return Err(MorphismError::Target { entry, target, entries: codomain }),
                Some(Some(first)) => {
                    return Err(MorphismError::SentTwice { first: usize::from(*first), second: entry, target });
                }
                Some(place) => *place = Some(second),
            }
            list.push(target as u16 + 1);
        }
        Ok(PointedMap { images: list, codomain: width })
    }

    /// As [`PointedMap::new`] where the images are distinct and in range by construction.
    #[inline]
    pub(crate) fn from_images(codomain: usize, images: Images) -> PointedMap {
        PointedMap { images, codomain: codomain as u16 }
    }

    /// The identity on `places` entries.
    ///
    /// Errors: more entries than a tuple may have.
    pub fn identity(places: usize) -> Result<PointedMap, MorphismError> {
        let codomain = bounded(places)?;
        Ok(PointedMap { images: (1..=codomain).collect(), codomain })
    }

    /// The size of the domain.
    #[inline]
    pub fn domain(&self) -> usize {
        self.images.len()
    }

    /// The size of the codomain.
    #[inline]
    pub fn codomain(&self) -> usize {
        usize::from(self.codomain)
    }

    /// The image of an entry; None for the base point, and for an entry outside of the domain.
    #[inline]
    pub fn image(&self, place: usize) -> Option<usize> {
        usize::from(*self.images.get(place)?).checked_sub(1)
    }

    /// The images, in order; None is the base point.
    #[inline]
    pub fn images(&self) -> impl ExactSizeIterator<Item = Option<usize>> + Clone + '_ {
        self.images.iter().map(|place| usize::from(*place).checked_sub(1))
    }

    /// The entry that maps to `target`; None if there is none.
    pub fn preimage(&self, target: usize) -> Option<usize> {
        self.images().position(|image| image == Some(target))
    }

    /// The preimage of each entry of the codomain.
    pub(crate) fn preimages(&self) -> SmallVec<[Option<u16>; 16]> {
        let mut preimages: SmallVec<[Option<u16>; 16]> = SmallVec::from_elem(None, self.codomain());
        for (entry, image) in self.images().enumerate() {
            if let Some(place) = image.and_then(|image| preimages.get_mut(image)) {
                *place = Some(entry as u16);
            }
        }
        preimages
    }

    /// `self` after `first`.
    ///
    /// Errors: `first` does not end where `self` begins ([`MorphismError::MapLength`]).
    ///
    /// ```
    /// use tilewright_layout::morphism::PointedMap;
    ///
    /// let f = PointedMap::new(3, [Some(2), None]).unwrap();
    /// let g = PointedMap::new(2, [None, None, Some(0)]).unwrap();
    /// assert_eq!(g.compose(&f).unwrap().to_string(), "(1,*)");
    /// ```
    pub fn compose(&self, first: &PointedMap) -> Result<PointedMap, MorphismError> {
        if first.codomain() != self.domain() {
            return Err(MorphismError::MapLength { domain: first.codomain(), map: self.domain() });
        }
        Ok(self.after(first))
    }

    /// As [`PointedMap::compose`], for maps that can be composed.
    #[inline]
    pub(crate) fn after(&self, first: &PointedMap) -> PointedMap {
        let images = first.images.iter().map(|place| match usize::from(*place).checked_sub(1) {
            Some(place) => self.images.get(place).copied().unwrap_or(0),
            None => 0,
        });
        PointedMap { images: images.collect(), codomain: self.codomain }
    }

    /// The two maps side by side (the wedge of pointed sets).
    ///
    /// Errors: more entries than a tuple may have.
    pub fn sum(&self, other: &PointedMap) -> Result<PointedMap, MorphismError> {
        let codomain = bounded(self.codomain() + other.codomain())?;
        bounded(self.domain() + other.domain())?;
        let moved = other.images.iter().map(|place| if *place == 0 { 0 } else { place + self.codomain });
        Ok(PointedMap { images: self.images.iter().copied().chain(moved).collect(), codomain })
    }
}

/// Refuses a number of entries that a tuple cannot have.
fn bounded(places: usize) -> Result<u16, MorphismError> {
    match u16::try_from(places) {
        // The tuple is itself a node in addition to its entries.
        Ok(places) if usize::from(places) < MAX_NODES => Ok(places),
        _ => Err(LayoutError::TooLarge { limit: Limit::Nodes, value: places }.into()),
    }
}

/// Writes items in parentheses, with commas between them.
pub(crate) fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str("(")?;
    for (place, item) in items.into_iter().enumerate() {
        f.write_str(if place > 0 { "," } else { "" })?;
        write(f, item)?;
    }
    f.write_str(")")
}

/// Writes an image as in the paper: counted from 1, `*` for the base point.
pub(crate) fn write_image(f: &mut fmt::Formatter<'_>, image: Option<usize>) -> fmt::Result {
    match image {
        Some(image) => write!(f, "{}", image + 1),
        None => f.write_str("*"),
    }
}

impl fmt::Display for PointedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.images(), write_image)
    }
}

impl fmt::Debug for PointedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PointedMap({self} to {})", self.codomain)
    }
}

/// Refuses an entry that domain or codomain does not have.
pub(crate) fn known(op: &'static str, side: Side, entry: usize, entries: usize) -> Result<(), MorphismError> {
    if entry < entries { Ok(()) } else { Err(MorphismError::NoSuchEntry { op, side, entry, entries }) }
}
