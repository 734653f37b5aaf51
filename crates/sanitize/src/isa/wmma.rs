//! `wmma`: matrix products whose fragments have no specified layout.
//!
//! Law: `D = A B + C`. The PTX ISA does not specify which lane holds which element. A program may
//! only pass fragments from loads to products to stores, or treat all elements alike. Here, the
//! elements of A and C are distributed row by row, and those of B column by column, with equally
//! many consecutive elements in each lane. Fragments of f16 have eight registers; if there are
//! fewer elements, an element is held more than once. Accumulation is that of `mma.sync`
//! ([`super::tensor_core`]).
//!
//! (PTX ISA, "Warp-level Matrix Load, Store and Multiply-and-Accumulate Instructions".)

use super::half::Half;
use super::mma::{LANES, LaneWords, Mma, Operands};
use super::tensor_core::{Factor, OF_ZERO, SumType, Terms, add_products};

/// A matrix of a `wmma`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WmmaMatrix {
    /// A, of m x k.
    A,
    /// B, of k x n.
    B,
    /// C or D, of m x n.
    C,
}

/// A `wmma` of a warp. An element of f64 has two words, the lower one first.
///
/// ```
/// use tilewright_sanitize::isa::mma::Operands;
/// use tilewright_sanitize::isa::tensor_core::{Factor, SumType};
/// use tilewright_sanitize::isa::wmma::{WmmaMatrix, Wmma};
///
/// let halves = Operands::Floats(Factor::F16, Factor::F16);
/// let wmma = Wmma::new([16, 16, 16], halves, SumType::F32, false).unwrap();
/// assert_eq!(wmma.registers(WmmaMatrix::A), 8);
/// assert_eq!(wmma.place(WmmaMatrix::A, 3, 1), (1, 9)); // lane 3 has the second half of row 1
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wmma {
    shape: [usize; 3],
    operands: Operands,
    sums: SumType,
    saturate: bool,
}

impl Wmma {
    /// The instruction of a shape; None if there is none of this shape and these types.
    pub fn new(shape: [usize; 3], operands: Operands, sums: SumType, saturate: bool) -> Option<Wmma> {
        let fits = match operands {
            Operands::Floats(Factor::F16, Factor::F16) | Operands::Integers { bits: 8, .. } => {
                matches!(shape, [16, 16, 16] | [32, 8, 16] | [8, 32, 16])
            }
            Operands::Floats(Factor::Bf16, Factor::Bf16) => {
                sums == SumType::F32 && matches!(shape, [16, 16, 16] | [32, 8, 16] | [8, 32, 16])
            }
            Operands::Floats(Factor::Tf32, Factor::Tf32) => sums == SumType::F32 && shape == [16, 16, 8],
            Operands::Integers { bits: 4, .. } => shape == [8, 8, 32],
            Operands::XorPopc | Operands::AndPopc => shape == [8, 8, 128],
            Operands::F64 => shape == [8, 8, 4],
            _ => false,
        };
        fits.then_some(Wmma { shape, operands, sums, saturate })
    }

    /// The number of rows and columns of a matrix.
    pub fn extents(&self, fragment: WmmaMatrix) -> [usize; 2] {
        let [m, n, k] = self.shape;
        match fragment {
            WmmaMatrix::A => [m, k],
            WmmaMatrix::B => [k, n],
            WmmaMatrix::C => [m, n],
        }
    }

    /// The number of bits of an element of a matrix.
    pub fn bits(&self, fragment: WmmaMatrix) -> usize {
        match (fragment, self.operands) {
            (WmmaMatrix::C, Operands::Floats(..)) if self.sums == SumType::F16 => 16,
            (_, Operands::F64) => 64,
            (WmmaMatrix::C, _) => 32,
            _ => self.operands.bits() as usize,
        }
    }

    /// The number of different elements of a matrix in a lane.
    fn elements(&self, fragment: WmmaMatrix) -> usize {
        self.extents(fragment).into_iter().product::<usize>() / LANES
    }

    /// The number of registers of a matrix.
    pub fn registers(&self, fragment: WmmaMatrix) -> usize {
        match (fragment, self.operands) {
            (WmmaMatrix::A | WmmaMatrix::B, Operands::Floats(Factor::F16, _)) => 8,
            _ => self.elements(fragment) * self.bits(fragment) / 32,
        }
    }

    /// The row and the column of an element of a lane. `place` counts over the lane's registers.
    pub fn place(&self, fragment: WmmaMatrix, lane: usize, place: usize) -> (usize, usize) {
        let elements = self.elements(fragment);
        let index = lane * elements + place % elements;
        let [rows, columns] = self.extents(fragment);
        match fragment {
            WmmaMatrix::B => (index % rows, index / rows),
            _ => (index / columns, index % columns),
        }
    }

    /// The bits of each element, row by row; for B, column by column.
    fn gather(&self, fragment: WmmaMatrix, registers: &[LaneWords]) -> Vec<u32> {
        let (bits, elements) = (self.bits(fragment), self.elements(fragment));
        let (packed, mask) = (32 / bits, u32::MAX >> (32 - bits));
        let all = (0..LANES * elements).map(|index| {
            let (lane, place) = (index / elements, index % elements);
            registers[place / packed][lane] >> (bits * (place % packed)) & mask
        });
        all.collect()
    }

    /// The registers of a C or D of f16, converted to f32. Both have the same layout.
    pub fn widened(of_f16: &[LaneWords]) -> Vec<LaneWords> {
        let half = |word: u32, part: u32| Half::F16.widen((word >> (16 * part)) as u16).to_bits();
        of_f16.iter().flat_map(|lanes| [0, 1].map(|part| lanes.map(|word| half(word, part)))).collect()
    }

    /// The registers of a C or D of f32, rounded to f16.
    pub fn narrowed(of_f32: &[LaneWords]) -> Vec<LaneWords> {
        let half = |word: u32| u32::from(Half::F16.narrow(f32::from_bits(word)));
        let pair =
            |low: &LaneWords, high: &LaneWords| std::array::from_fn(|lane| half(low[lane]) | half(high[lane]) << 16);
        of_f32.as_chunks::<2>().0.iter().map(|[low, high]| pair(low, high)).collect()
    }

    /// Computes D. If there are too few registers, nothing is done.
    pub fn multiply(&self, a: &[LaneWords], b: &[LaneWords], c: &[LaneWords], d: &mut [LaneWords]) {
        let count = |fragment| self.registers(fragment);
        let (Some(a), Some(b), Some(c), Some(d)) = (
            a.get(..count(WmmaMatrix::A)),
            b.get(..count(WmmaMatrix::B)),
            c.get(..count(WmmaMatrix::C)),
            d.get_mut(..count(WmmaMatrix::C)),
        ) else {
            return;
        };
        let [m, n, k] = self.shape;
        if self.operands == Operands::F64 {
            // Positions here are those of `mma.sync`.
            if let Some(mma) = Mma::new(self.shape, self.operands, self.sums, false) {
                mma.multiply(a, b, c, d);
            }
            return;
        }
        let (a, b) = (self.gather(WmmaMatrix::A, a), self.gather(WmmaMatrix::B, b));
        let mut sums = self.gather(WmmaMatrix::C, c);
        match self.operands {
            Operands::Floats(first, second) => {
                let (values, exponents): (Vec<f64>, Vec<i16>) = a.iter().map(|bits| first.decode(*bits)).unzip();
                let rows = Terms { values: &values, exponents: &exponents };
                let (mut values, mut exponents) = (vec![0.0; k * n], vec![OF_ZERO; k * n]);
                for (index, bits) in b.iter().enumerate() {
                    let place = index % k * n + index / k;
                    (values[place], exponents[place]) = second.decode(*bits);
                }
                let columns = Terms { values: &values, exponents: &exponents };
                add_products(first.hopper(k), self.sums, (rows, columns), (n, k), &mut sums);
            }
            Operands::Integers { bits, a_signed, b_signed } => {
                let extend = |value: u32, signed: bool| {
                    let up = value << (32 - bits);
                    if signed { up as i32 >> (32 - bits) } else { (up >> (32 - bits)) as i32 }
                };
                for (at, sum) in sums.iter_mut().enumerate() {
                    let pairs = a[at / n * k..][..k].iter().zip(&b[at % n * k..][..k]);
                    let product: i32 = pairs.map(|(a, b)| extend(*a, a_signed) * extend(*b, b_signed)).sum();
                    let total = i64::from(*sum as i32) + i64::from(product);
                    let total = if self.saturate { total.clamp(i32::MIN.into(), i32::MAX.into()) } else { total };
                    *sum = total as u32;
                }
            }
            Operands::XorPopc | Operands::AndPopc => {
                let xor = self.operands == Operands::XorPopc;
                for (at, sum) in sums.iter_mut().enumerate() {
                    let pairs = a[at / n * k..][..k].iter().zip(&b[at % n * k..][..k]);
                    *sum = sum.wrapping_add(pairs.map(|(a, b)| if xor { a ^ b } else { a & b }).sum());
                }
            }
            Operands::F64 => {}
        }
        let (bits, elements) = (self.bits(WmmaMatrix::C), self.elements(WmmaMatrix::C));
        let (packed, mask) = (32 / bits, u32::MAX >> (32 - bits));
        d.fill([0; LANES]);
        for (index, sum) in sums.iter().enumerate().take(m * n) {
            let (lane, place) = (index / elements, index % elements);
            d[place / packed][lane] |= (sum & mask) << (bits * (place % packed));
        }
    }
}
