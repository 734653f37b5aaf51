//! Realisation: from tuples to finite sets.
//!
//! Law: the realisation of a tuple `S` is the set `[0, size S)`, and that of `f: S -> T` is the
//! following function of an index. Take its coordinate in `S`; move each component to the image of
//! its axis under `f`; drop the components whose axis maps to the base point; set the remaining
//! axes of `T` to 0; and take the index of this coordinate in `T`, first entry fastest. It is a
//! functor, `|g o f| = |g| o |f|`, and `|f|` is the function of the layout that `f` encodes
//! (Carlisle, Shah, Stern, VanKoughnett, theorem B).

use alloc::vec::Vec;

use crate::morphism::error::{MorphismError, overflow};
use crate::morphism::nest::NestMorphism;
use crate::morphism::tuple::{TupleMorphism, size};
use crate::{LayoutError, Tree, crd2idx};
use smallvec::SmallVec;

const OP: &str = "realise";

/// The most values of a table.
pub const MAX_TABLE: i64 = 1 << 20;

impl TupleMorphism {
    /// The value of the realisation at an index.
    ///
    /// Errors: the index is not in `[0, size)`; the value is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,3) -> (3,5,2) : (3,1)".parse().unwrap();
    /// // Index 5 is the coordinate (1,2); it moves to (2,0,1), which is 2 + 15 * 1.
    /// assert_eq!(f.realise(5).unwrap(), 17);
    /// ```
    pub fn realise(&self, index: i64) -> Result<i64, MorphismError> {
        if index < 0 || index >= self.size() {
            return Err(LayoutError::Argument {
                op: OP,
                what: "the index",
                value: index,
                wanted: "0 or more, and below the size",
            }
            .into());
        }
        let mut moved: SmallVec<[i64; 16]> = SmallVec::from_elem(0, self.codomain().len());
        let mut rest = index;
        for (extent, image) in self.domain().iter().zip(self.map().images()) {
            if let Some(digit) = image.and_then(|image| moved.get_mut(image)) {
                *digit = rest % extent;
            }
            rest /= extent;
        }
        // Horner's rule, starting from the slowest entry.
        let digits = moved.iter().zip(self.codomain()).rev();
        let value = digits
            .into_iter()
            .try_fold(0_i64, |value, (digit, extent)| value.checked_mul(*extent)?.checked_add(*digit));
        value.ok_or_else(|| overflow(OP))
    }

    /// The realisation as a table: its value at every index, in order.
    ///
    /// Errors: the size is above [`MAX_TABLE`]; a value is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,3) -> (3,2) : (2,1)".parse().unwrap();
    /// assert_eq!(f.table().unwrap(), [0, 3, 1, 4, 2, 5]);
    /// ```
    pub fn table(&self) -> Result<Vec<i64>, MorphismError> {
        let size = self.size();
        if size > MAX_TABLE {
            return Err(MorphismError::Table { size, limit: MAX_TABLE });
        }
        (0..size).map(|index| self.realise(index)).collect()
    }
}

/// Refuses an index outside its mode. Differences of nesting are checked elsewhere.
fn within(coordinate: &Tree<i64>, shape: &Tree<i64>) -> Result<(), MorphismError> {
    if let (true, [index]) = (coordinate.is_leaf(), coordinate.leaves()) {
        if (0..size(OP, shape.leaves())?).contains(index) {
            return Ok(());
        }
        let (what, wanted) = ("an index of the coordinate", "0 or more, and below the size of its mode");
        return Err(LayoutError::Argument { op: OP, what, value: *index, wanted }.into());
    }
    if shape.is_leaf() {
        return Ok(());
    }
    coordinate.modes().zip(shape.modes()).try_for_each(|(coordinate, shape)| within(&coordinate, &shape))
}

impl NestMorphism {
    /// The value of the realisation at an index, which is that of the flat morphism.
    ///
    /// Errors: as [`TupleMorphism::realise`].
    pub fn realise(&self, index: i64) -> Result<i64, MorphismError> {
        self.flatten().realise(index)
    }

    /// The value of the realisation at a coordinate of the domain: an index for each mode, or a
    /// tuple of indices for its parts.
    ///
    /// Errors: the coordinate does not fit the domain ([`LayoutError::Coordinate`]), or is outside
    /// it; the value is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((2,3),4) -> (4,5,3,2) : ((4,3),1)".parse().unwrap();
    /// let at = |coordinate: &str| f.realise_at(&coordinate.parse().unwrap());
    /// assert_eq!((at("((1,2),3)").unwrap(), at("(5,3)").unwrap(), at("23").unwrap()), (103, 103, 103));
    /// assert!(at("(6,0)").is_err()); // mode 0 has 6 positions
    /// ```
    pub fn realise_at(&self, coordinate: &Tree<i64>) -> Result<i64, MorphismError> {
        let shape = self.domain();
        within(coordinate, &shape)?;
        self.realise(crd2idx(coordinate, &shape)?)
    }

    /// The realisation as a table.
    ///
    /// Errors: as [`TupleMorphism::table`].
    pub fn table(&self) -> Result<Vec<i64>, MorphismError> {
        self.flatten().table()
    }
}
