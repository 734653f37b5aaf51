//! Linear maps over bits: matrices over the field of two elements.
//!
//! Law: a [`BitMatrix`] `M` of `n` inputs and `m` outputs sends a number below `2^n` to one below
//! `2^m` with `M(x ^ y) = M(x) ^ M(y)`. So it is given by the images of the powers of two, its
//! columns, and `M(x)` is the XOR of the columns at the bits of `x`.
//!
//! Everything else is elimination (`space.rs`). The reduced basis of the columns tells the rank,
//! whether a vector is in the image, and what is sent there; a column that vanishes tells an
//! element of the kernel. There are at most 64 of them, so that every question takes at most a few
//! thousand operations.

use alloc::vec::Vec;
use core::fmt;

use smallvec::SmallVec;

use super::space::{BitSpace, BitVector};
use crate::ground::words::debug_as_text;
use crate::limits::MAX_BITS;
use crate::refusal::error::LayoutError;

/// The images of the powers of two.
pub(crate) type Columns = SmallVec<[u64; 16]>;

/// A linear map over bits: a matrix over the field of two elements, from up to 64 input bits to up
/// to 64 output bits.
///
/// Every layout of power-of-two extents whose offsets are sums without carries is such a map, and
/// so is every swizzle; compositions, inverses and ranks of such maps always exist or provably do
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

/// The numbers below `2^bits`, as the highest of them.
pub(crate) fn low_bits(bits: usize) -> u64 {
    match bits {
        0 => 0,
        1..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}

impl BitMatrix {
    /// The map that sends bit `i` to `columns[i]`, with `outputs` output bits.
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
            // The position of a bit, so that it fits.
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

    /// As [`BitMatrix::new`], with as many outputs as the columns need.
    ///
    /// Errors: more than [`MAX_BITS`] columns.
    pub fn of_columns(columns: impl IntoIterator<Item = u64>) -> Result<BitMatrix, LayoutError> {
        let columns: Columns = columns.into_iter().take(MAX_BITS + 1).collect();
        let outputs = columns.iter().fold(0, |all, column| all | column).checked_ilog2().map_or(0, |top| top + 1);
        BitMatrix::new(outputs as usize, columns)
    }

    /// As [`BitMatrix::new`] where inputs, outputs and columns are known to fit.
    pub(crate) fn from_valid(outputs: usize, columns: Columns) -> BitMatrix {
        debug_assert!(outputs <= MAX_BITS && columns.len() <= MAX_BITS);
        debug_assert!(columns.iter().all(|column| column & !low_bits(outputs) == 0));
        BitMatrix { outputs: outputs as u8, columns }
    }

    /// The map that keeps every bit. Errors: more than [`MAX_BITS`] bits.
    pub fn identity(bits: usize) -> Result<BitMatrix, LayoutError> {
        BitMatrix::new(bits, (0..bits).map_while(|bit| 1_u64.checked_shl(bit as u32)))
    }

    /// The map that sends everything to 0. Errors: more than [`MAX_BITS`] inputs or outputs.
    pub fn zero(outputs: usize, inputs: usize) -> Result<BitMatrix, LayoutError> {
        BitMatrix::new(outputs, core::iter::repeat_n(0, inputs))
    }

    /// How many bits are read.
    pub fn inputs(&self) -> usize {
        self.columns.len()
    }

    /// How many bits a value has at most.
    pub fn outputs(&self) -> usize {
        usize::from(self.outputs)
    }

    /// The images of the powers of two: `columns()[i]` is that of `2^i`.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The inputs that output bit `row` is the parity of, as bits; none past the outputs.
    pub(crate) fn row(&self, row: usize) -> u64 {
        self.columns
            .iter()
            .rev()
            .fold(0, |row_bits, column| row_bits << 1 | (column.checked_shr(row as u32).unwrap_or(0) & 1))
    }

    /// The value at `x`; bits of `x` from [`BitMatrix::inputs`] on are not read.
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
    /// Errors: `first` has not as many outputs as this map has inputs ([`LayoutError::Size`], in
    /// bits).
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

    /// The XOR of both: `x -> self(x) ^ other(x)`. Errors: inputs or outputs differ.
    pub fn add(&self, other: &BitMatrix) -> Result<BitMatrix, LayoutError> {
        self.agree("layout_add", self.inputs(), other.inputs())?;
        self.agree("layout_add", self.outputs(), other.outputs())?;
        let columns = self.columns.iter().zip(&other.columns).map(|(a, b)| a ^ b).collect();
        Ok(BitMatrix::from_valid(self.outputs(), columns))
    }

    fn agree(&self, op: &'static str, left: usize, right: usize) -> Result<(), LayoutError> {
        // At most 64 each.
        if left == right { Ok(()) } else { Err(LayoutError::Size { op, left: left as i64, right: right as i64 }) }
    }

    /// The matrix with rows and columns exchanged: input bit `j` of the result goes to the inputs
    /// that output bit `j` of this map reads.
    pub fn transpose(&self) -> BitMatrix {
        BitMatrix::from_valid(self.inputs(), (0..self.outputs()).map(|row| self.row(row)).collect())
    }

    /// The direct sum with another map: the low bits go through this one, the bits above through
    /// `high`, and the results are concatenated in the same way.
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

    /// The dimension of the image: how many columns are independent.
    pub fn rank(&self) -> usize {
        eliminated(&self.columns).0.rank()
    }

    /// A basis of the numbers that are sent to 0, reduced: sorted, and the leading bit of each is
    /// in no other.
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

    /// A basis of the values, reduced: sorted, and the leading bit of each is in no other. The
    /// `i`-th number of the image, in increasing order, is the XOR of the basis vectors at the bits
    /// of `i`.
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

    /// A number with the value `value`; none when there is none.
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
    /// Errors: the map is not onto ([`LayoutError::NoPreimage`] with a bit that is not a value).
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

    /// The inverse, of as many inputs as outputs.
    ///
    /// Errors: the map is not one to one ([`LayoutError::Collapse`]), or not onto
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

    /// A map `X` with `self(X(self(x))) = self(x)` and `X(self(X(y))) = X(y)`: it sends every value
    /// back to a number that has it. It always exists, and is the inverse where there is one.
    pub fn pseudo_inverse(&self) -> BitMatrix {
        let space = eliminated(&self.columns).0;
        // Bits that do not lead stay behind: a value is known by its leading bits.
        let mut columns = Columns::from_elem(0, self.outputs());
        for pivot in space.basis() {
            if let Some(column) = columns.get_mut(pivot.value.ilog2() as usize) {
                *column = pivot.source;
            }
        }
        BitMatrix::from_valid(self.inputs(), columns)
    }

    /// A map `X` with `self(X(x)) = b(x)`: what `b` does, in terms of this map.
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

/// The space of columns, and sets of them that add up to 0, a basis.
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

/// A basis as numbers.
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

    /// Reads `F2<outputs>[column,..]`, the columns decimal or, after `0x`, hexadecimal.
    fn from_str(text: &str) -> Result<BitMatrix, LayoutError> {
        let syntax = || LayoutError::Syntax { at: 0, expected: "a bit matrix F2<outputs>[column,..]" };
        let inner = text.trim().strip_prefix("F2<").and_then(|rest| rest.strip_suffix(']')).ok_or_else(syntax)?;
        let (outputs, columns) = inner.split_once('>').ok_or_else(syntax)?;
        let columns = columns.trim_start().strip_prefix('[').ok_or_else(syntax)?;
        let number = |text: &str| {
            let text = text.trim();
            // A sign is not a digit.
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
        // One more than fits is enough to refuse them.
        let columns: Columns = columns.split(',').take(MAX_BITS + 1).map(number).collect::<Result<_, _>>()?;
        BitMatrix::new(outputs, columns)
    }
}
