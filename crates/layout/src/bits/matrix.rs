//! Linear maps over bits: matrices over the field of two elements.
//!
//! Law: a [`BitMatrix`] `M` of `n` inputs and `m` outputs maps a number below `2^n` to one below
//! `2^m`, with `M(x ^ y) = M(x) ^ M(y)`. So the images of the powers of two, its columns, determine
//! it, and `M(x)` is the XOR of the columns at the bits of `x`.
//!
//! All other operations are Gaussian elimination (`space.rs`). The reduced basis of the columns
//! gives the rank, decides whether a vector is in the image, and gives its preimages; a column that
//! reduces to zero gives an element of the kernel. There are at most 64 columns, so every operation
//! takes at most a few thousand steps.

use alloc::vec::Vec;
use core::fmt;

use smallvec::SmallVec;

use super::space::{BitSpace, BitVector};
use crate::ground::words::debug_as_text;
use crate::limits::MAX_BITS;
use crate::refusal::error::LayoutError;

/// The images of the powers of two, as bits.
pub(crate) type Columns = SmallVec<[u64; 16]>;

/// A linear map over bits: a matrix over the field of two elements, from up to 64 input bits to up
/// to 64 output bits.
///
/// Every layout of power-of-two extents whose offsets are sums without carries is such a map, and
/// so is every swizzle; compositions and ranks always exist, and an inverse exists or provably does
/// not.
///
/// ```
/// use tilewright_layout::BitMatrix;
///
/// // Bit 0 stays, bit 1 flips bits 1 and 0.
/// let map = BitMatrix::new(2, [0b01, 0b11]).unwrap();
/// assert_eq!(map.apply(0b10), 0b11);
/// assert_eq!(map.inverse().unwrap(), map);
/// assert_eq!(map.to_string(), "F2<2>[1,3]");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BitMatrix {
    outputs: u8,
    columns: Columns,
}

/// The number with the lowest `bits` bits set.
pub(crate) fn low_bits(bits: usize) -> u64 {
    match bits {
        0 => 0,
        1..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}

impl BitMatrix {
    /// The map with image `columns[i]` of bit `i`, with `outputs` output bits.
    ///
    /// Errors: more than [`MAX_BITS`] inputs or outputs; a column has a bit that is not below
    /// `outputs`.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// assert!(BitMatrix::new(3, [1, 2, 4]).unwrap().is_identity());
    /// assert_eq!(BitMatrix::new(2, [1, 4]).unwrap_err().code(), "E0116");
    /// ```
    pub fn new(outputs: usize, columns: impl IntoIterator<Item = u64>) -> Result<BitMatrix, LayoutError> {
        let columns: Columns = columns.into_iter().take(MAX_BITS + 1).collect();
        for (what, value) in [("the number of inputs", columns.len()), ("the number of outputs", outputs)] {
            if value > MAX_BITS {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                return Err(LayoutError::Argument { op: OP, what, value, wanted: "at most 64" });
            }
        }
        if let Some(column) = columns.iter().find(|column| **column & !low_bits(outputs) != 0) {
            // It is the position of a bit, so it fits.
            let value = i64::from(column.ilog2());
            return Err(LayoutError::Argument {
                op: OP,
                what: "a bit of a column",
                value,
                wanted: "below the outputs",
            });
        }
        Ok(BitMatrix { outputs: outputs as u8, columns })
    }

    /// As [`BitMatrix::new`], with the number of outputs that the columns need.
    ///
    /// Errors: more than [`MAX_BITS`] columns.
    pub fn of_columns(columns: impl IntoIterator<Item = u64>) -> Result<BitMatrix, LayoutError> {
        let columns: Columns = columns.into_iter().take(MAX_BITS + 1).collect();
        let outputs = columns.iter().fold(0, |all, column| all | column).checked_ilog2().map_or(0, |top| top + 1);
        BitMatrix::new(outputs as usize, columns)
    }

    /// As [`BitMatrix::new`], without checks.
    pub(crate) fn from_valid(outputs: usize, columns: Columns) -> BitMatrix {
        debug_assert!(outputs <= MAX_BITS && columns.len() <= MAX_BITS);
        debug_assert!(columns.iter().all(|column| column & !low_bits(outputs) == 0));
        BitMatrix { outputs: outputs as u8, columns }
    }

    /// The identity map. Errors: more than [`MAX_BITS`] bits.
    pub fn identity(bits: usize) -> Result<BitMatrix, LayoutError> {
        BitMatrix::new(bits, (0..bits).map_while(|bit| 1_u64.checked_shl(bit as u32)))
    }

    /// The map with all values 0. Errors: more than [`MAX_BITS`] inputs or outputs.
    pub fn zero(outputs: usize, inputs: usize) -> Result<BitMatrix, LayoutError> {
        BitMatrix::new(outputs, core::iter::repeat_n(0, inputs))
    }

    /// The number of input bits.
    pub fn inputs(&self) -> usize {
        self.columns.len()
    }

    /// The number of output bits.
    pub fn outputs(&self) -> usize {
        usize::from(self.outputs)
    }

    /// The images of the powers of two: `columns()[i]` is the image of `2^i`.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The inputs, as bits, whose parity is output bit `row`; 0 for rows beyond the outputs.
    pub(crate) fn row(&self, row: usize) -> u64 {
        self.columns
            .iter()
            .rev()
            .fold(0, |row_bits, column| row_bits << 1 | (column.checked_shr(row as u32).unwrap_or(0) & 1))
    }

    /// The value at `x`; bits of `x` from [`BitMatrix::inputs`] on are ignored.
    #[inline]
    pub fn apply(&self, x: u64) -> u64 {
        let mut rest = x & low_bits(self.inputs());
        let mut value = 0;
        while rest != 0 {
            value ^= self.columns.get(rest.trailing_zeros() as usize).copied().unwrap_or(0);
            rest &= rest - 1;
        }
        value
    }

    /// Whether this is the identity.
    pub fn is_identity(&self) -> bool {
        self.inputs() == self.outputs() && self.columns.iter().enumerate().all(|(bit, column)| *column == 1 << bit)
    }

    /// This map after `first`: `x -> self(first(x))`.
    ///
    /// Errors: the number of outputs of `first` is not that of inputs of this map
    /// ([`LayoutError::Size`], in bits).
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let swap = BitMatrix::new(2, [2, 1]).unwrap();
    /// assert!(swap.compose(&swap).unwrap().is_identity());
    /// ```
    pub fn compose(&self, first: &BitMatrix) -> Result<BitMatrix, LayoutError> {
        self.agree("composition", self.inputs(), first.outputs())?;
        let columns = first.columns.iter().map(|column| self.apply(*column)).collect();
        Ok(BitMatrix::from_valid(self.outputs(), columns))
    }

    /// The XOR of both maps: `x -> self(x) ^ other(x)`. Errors: the numbers of inputs or outputs
    /// differ.
    pub fn add(&self, other: &BitMatrix) -> Result<BitMatrix, LayoutError> {
        self.agree("layout_add", self.inputs(), other.inputs())?;
        self.agree("layout_add", self.outputs(), other.outputs())?;
        let columns = self.columns.iter().zip(&other.columns).map(|(a, b)| a ^ b).collect();
        Ok(BitMatrix::from_valid(self.outputs(), columns))
    }

    fn agree(&self, op: &'static str, left: usize, right: usize) -> Result<(), LayoutError> {
        // Each number is at most 64.
        if left == right { Ok(()) } else { Err(LayoutError::Size { op, left: left as i64, right: right as i64 }) }
    }

    /// The transposed matrix, with rows and columns exchanged.
    pub fn transpose(&self) -> BitMatrix {
        BitMatrix::from_valid(self.inputs(), (0..self.outputs()).map(|row| self.row(row)).collect())
    }

    /// The direct sum with another map: this one is applied to the low bits, `high` to the bits
    /// above, and the results are concatenated in the same order.
    ///
    /// Errors: more than [`MAX_BITS`] inputs or outputs.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let (swap, one) = (BitMatrix::new(2, [2, 1]).unwrap(), BitMatrix::identity(1).unwrap());
    /// assert_eq!(swap.beside(&one).unwrap().to_string(), "F2<3>[2,1,4]");
    /// ```
    pub fn beside(&self, high: &BitMatrix) -> Result<BitMatrix, LayoutError> {
        let shifted = high.columns.iter().map(|column| column.checked_shl(u32::from(self.outputs)).unwrap_or(0));
        BitMatrix::new(self.outputs() + high.outputs(), self.columns.iter().copied().chain(shifted))
    }

    /// The dimension of the image: the number of independent columns.
    pub fn rank(&self) -> usize {
        eliminated(&self.columns).0.rank()
    }

    /// The reduced basis of the kernel: sorted, and the leading bit of each vector is set in no
    /// other one.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let map = BitMatrix::new(2, [1, 2, 3]).unwrap();
    /// assert_eq!(map.kernel(), [0b111]);
    /// ```
    pub fn kernel(&self) -> Vec<u64> {
        basis(&eliminated(&eliminated(&self.columns).1).0)
    }

    /// The reduced basis of the image: sorted, and the leading bit of each vector is set in no
    /// other one. The `i`-th number of the image, in increasing order, is the XOR of the basis
    /// vectors at the bits of `i`.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let map = BitMatrix::new(3, [1, 7, 6]).unwrap();
    /// assert_eq!(map.image(), [0b001, 0b110]);
    /// ```
    pub fn image(&self) -> Vec<u64> {
        basis(&eliminated(&self.columns).0)
    }

    /// Whether different numbers have different values.
    pub fn is_injective(&self) -> bool {
        self.rank() == self.inputs()
    }

    /// Whether every number of [`BitMatrix::outputs`] bits is a value.
    pub fn is_surjective(&self) -> bool {
        self.rank() == self.outputs()
    }

    /// Whether every number of [`BitMatrix::outputs`] bits is the value of exactly one number.
    pub fn is_bijective(&self) -> bool {
        self.is_injective() && self.is_surjective()
    }

    /// A number whose value is `value`; None if there is none.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let map = BitMatrix::new(3, [1, 7]).unwrap();
    /// assert_eq!(map.solve(6), Some(0b11));
    /// assert_eq!(map.solve(2), None);
    /// ```
    pub fn solve(&self, value: u64) -> Option<u64> {
        eliminated(&self.columns).0.solve(value)
    }

    /// A map `X` with `self(X(y)) = y` for every `y` of as many bits as there are outputs.
    ///
    /// Errors: the map is not surjective ([`LayoutError::NoPreimage`] with a bit that is not a
    /// value).
    pub fn right_inverse(&self) -> Result<BitMatrix, LayoutError> {
        self.left_divide_for("right_inverse", &BitMatrix::identity(self.outputs())?)
    }

    /// A map `X` with `X(self(x)) = x` for every `x` of as many bits as there are inputs.
    ///
    /// Errors: two numbers have the same value ([`LayoutError::Collapse`] with their difference).
    pub fn left_inverse(&self) -> Result<BitMatrix, LayoutError> {
        self.refuse_collapse("left_inverse")?;
        Ok(self.pseudo_inverse())
    }

    /// The inverse of a bijective map.
    ///
    /// Errors: the map is not injective ([`LayoutError::Collapse`]), or not surjective
    /// ([`LayoutError::NoPreimage`]).
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let map = BitMatrix::new(3, [2, 5, 1]).unwrap();
    /// assert!(map.inverse().unwrap().compose(&map).unwrap().is_identity());
    /// assert_eq!(BitMatrix::new(2, [3, 3]).unwrap().inverse().unwrap_err().code(), "E0114");
    /// ```
    pub fn inverse(&self) -> Result<BitMatrix, LayoutError> {
        self.refuse_collapse("inverse")?;
        self.left_divide_for("inverse", &BitMatrix::identity(self.outputs())?)
    }

    /// A map `X` with `self(X(self(x))) = self(x)` and `X(self(X(y))) = X(y)`: it maps every value
    /// to a number with this value. It always exists, and is the inverse if there is one.
    pub fn pseudo_inverse(&self) -> BitMatrix {
        let space = eliminated(&self.columns).0;
        // Outputs that are not leading bits are ignored: the leading bits determine a value.
        let mut columns = Columns::from_elem(0, self.outputs());
        for pivot in space.basis() {
            if let Some(column) = columns.get_mut(pivot.value.ilog2() as usize) {
                *column = pivot.source;
            }
        }
        BitMatrix::from_valid(self.inputs(), columns)
    }

    /// A map `X` with `self(X(x)) = b(x)`: `b` expressed by this map.
    ///
    /// Errors: the outputs differ; a value of `b` is not a value of this map
    /// ([`LayoutError::NoPreimage`] with the value).
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let (a, b) = (BitMatrix::new(3, [1, 7]).unwrap(), BitMatrix::new(3, [6]).unwrap());
    /// assert_eq!(a.left_divide(&b).unwrap().columns(), [3]);
    /// assert_eq!(b.left_divide(&a).unwrap_err().code(), "E0114");
    /// ```
    pub fn left_divide(&self, b: &BitMatrix) -> Result<BitMatrix, LayoutError> {
        self.left_divide_for("left_divide", b)
    }

    fn left_divide_for(&self, op: &'static str, b: &BitMatrix) -> Result<BitMatrix, LayoutError> {
        self.agree(op, self.outputs(), b.outputs())?;
        let space = eliminated(&self.columns).0;
        let solve = |column: &u64| space.solve(*column).ok_or(LayoutError::NoPreimage { op, value: *column });
        Ok(BitMatrix::from_valid(self.inputs(), b.columns.iter().map(solve).collect::<Result<Columns, LayoutError>>()?))
    }

    fn refuse_collapse(&self, op: &'static str) -> Result<(), LayoutError> {
        match self.kernel().first() {
            Some(difference) => Err(LayoutError::Collapse { op, difference: *difference }),
            None => Ok(()),
        }
    }
}

const OP: &str = "bit_matrix";

/// The space of the columns, and a basis of the sets of columns whose XOR is 0.
#[inline]
fn eliminated(columns: &[u64]) -> (BitSpace, Columns) {
    let (mut space, mut kernel) = (BitSpace::default(), Columns::new());
    for (position, column) in columns.iter().enumerate().take(MAX_BITS) {
        let rest = space.insert(BitVector { value: *column, source: 1 << position });
        if rest.value == 0 {
            kernel.push(rest.source);
        }
    }
    (space, kernel)
}

/// The basis of a space as numbers.
fn basis(space: &BitSpace) -> Vec<u64> {
    space.basis().iter().map(|vector| vector.value).collect()
}

/// The remainder of `value` modulo the space that `columns` span: 0 if it is in the space, and
/// otherwise the least number of its coset.
pub(crate) fn remainder(columns: &[u64], value: u64) -> u64 {
    eliminated(columns).0.rest(value.into()).value
}

impl fmt::Display for BitMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "F2<{}>[", self.outputs)?;
        for (position, column) in self.columns.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{column}")?;
        }
        f.write_str("]")
    }
}

debug_as_text!(BitMatrix);

impl core::str::FromStr for BitMatrix {
    type Err = LayoutError;

    /// Parses `F2<outputs>[column,..]`, with columns in decimal or, after `0x`, in hexadecimal.
    fn from_str(text: &str) -> Result<BitMatrix, LayoutError> {
        let syntax = || LayoutError::Syntax { at: 0, expected: "a bit matrix F2<outputs>[column,..]" };
        let inner = text.trim().strip_prefix("F2<").and_then(|rest| rest.strip_suffix(']')).ok_or_else(syntax)?;
        let (outputs, columns) = inner.split_once('>').ok_or_else(syntax)?;
        let columns = columns.trim_start().strip_prefix('[').ok_or_else(syntax)?;
        let number = |text: &str| {
            let text = text.trim();
            // The parser of integers would accept a sign, which is not a digit.
            match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
                Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
                None if !text.starts_with('+') => text.parse::<u64>().ok(),
                _ => None,
            }
            .ok_or_else(syntax)
        };
        let outputs = usize::try_from(number(outputs)?).map_err(|_| syntax())?;
        if columns.trim().is_empty() {
            return BitMatrix::new(outputs, []);
        }
        // At most one column more than the limit is read, which is enough to refuse them.
        let columns: Columns = columns.split(',').take(MAX_BITS + 1).map(number).collect::<Result<_, _>>()?;
        BitMatrix::new(outputs, columns)
    }
}
