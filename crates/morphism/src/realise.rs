//! Realisation: from tuples to finite sets.
//!
//! Law: the realisation of a tuple `S` is the set `[0, size S)`, and that of `f: S -> T` sends an index to its coordinate in `S`, moves each
//! component to where `f` sends its axis, forgets those that are sent to the base point, puts 0 where nothing arrives, and reads the result as an
//! index of `T`, first entry fastest. It is a functor, `|g o f| = |g| o |f|`, and `|f|` is the function of the layout that `f` encodes (Carlisle,
//! Shah, Stern, VanKoughnett, theorem B).

use alloc::vec::Vec;

use smallvec::SmallVec;
use tilewright_layout::LayoutError;

use crate::error::{MorphismError, overflow};
use crate::nest::NestMorphism;
use crate::tuple::TupleMorphism;

/// The most values that a table lists.
pub const MAX_TABLE: i64 = 1 << 20;

impl TupleMorphism {
    /// The value of the realisation at an index.
    ///
    /// Errors: the index is not in `[0, size)`; the value is not representable.
    ///
    /// ```
    /// use tilewright_morphism::TupleMorphism;
    ///
    /// let f: TupleMorphism = "(2,3) -> (3,5,2) : (3,1)".parse().unwrap();
    /// // Index 5 is the coordinate (1,2); it moves to (2,0,1), which is 2 + 15 * 1.
    /// assert_eq!(f.realise(5).unwrap(), 17);
    /// ```
    pub fn realise(&self, index: i64) -> Result<i64, MorphismError> {
        const OP: &str = "realise";
        if index < 0 || index >= self.size() {
            return Err(
                LayoutError::Argument { op: OP, what: "the index", value: index, wanted: "below the size" }.into()
            );
        }
        let mut moved: SmallVec<[i64; 16]> = SmallVec::from_elem(0, self.codomain().len());
        let mut rest = index;
        for (extent, image) in self.domain().iter().zip(self.map().images()) {
            if let Some(digit) = image.and_then(|image| moved.get_mut(image)) {
                *digit = rest % extent;
            }
            rest /= extent;
        }
        // Horner's rule, from the slowest entry on.
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
    /// use tilewright_morphism::TupleMorphism;
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

impl NestMorphism {
    /// The value of the realisation at an index; that of the flat morphism.
    ///
    /// Errors: as [`TupleMorphism::realise`].
    pub fn realise(&self, index: i64) -> Result<i64, MorphismError> {
        self.flatten().realise(index)
    }

    /// The realisation as a table.
    ///
    /// Errors: as [`TupleMorphism::table`].
    pub fn table(&self) -> Result<Vec<i64>, MorphismError> {
        self.flatten().table()
    }
}
