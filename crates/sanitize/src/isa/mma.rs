//! `mma.sync`: products of small matrices in the registers of a warp.
//!
//! Law: `D = A B + C`, where A is m x k and B is k x n. Registers of A and B hold `p` elements
//! each. In lane `4g + t`, register `r` of A holds row `g + 8 (r mod 2)`, columns `4p (r / 2) + p
//! t` on. Register `r` of B holds column `g`, rows `4p r + p t` on. Element `i` of C and D is `(g +
//! 8 (i / 2), 2t + i mod 2)`. If m is 8, A has only the first of each two registers, and C the
//! first two elements. The four products of `m8n8k4` of f16 belong to lanes `4q` to `4q + 3` and
//! the same lanes plus 16.
//!
//! Registers have 32 bits; an f64 occupies two of them, the lower half first.
//! [`super::tensor_core`] describes how sums of floating-point products are rounded. Hopper has no
//! instruction for two kinds, and runs a sequence of others, which this crate follows bit by bit.
//! Operands of 8 bits are converted to f16, and their products are summed from 0, those of the
//! lower halves of registers first. `m8n8k4` of f16 is a chain of `fma.f32` in order of K. Both
//! then add C in f32.
//!
//! (PTX ISA, "Matrix Fragments for mma.m8n8k4" to "mma.m16n8k256".)

pub mod sparse;

use self::sparse::Places;
use super::float::{FloatMode, add32, fma32};
use super::half::Half;
use super::tensor_core::{Factor, MAX_BITS, OF_ZERO, SumModel, SumType, Terms, add_products};

/// The lanes of a warp.
pub const LANES: usize = 32;

/// The values of a 32-bit register in all lanes.
pub type LaneWords = [u32; LANES];

/// The operand types of A and B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operands {
    /// Floating-point numbers: the type of A, and that of B.
    Floats(Factor, Factor),
    /// `.f64`
    F64,
    /// `.s8`, `.u8`, `.s4` or `.u4`.
    Integers {
        /// The number of bits: 8 or 4.
        bits: u32,
        /// Whether A is signed.
        a_signed: bool,
        /// Whether B is signed.
        b_signed: bool,
    },
    /// `.b1` with `.xor.popc`.
    XorPopc,
    /// `.b1` with `.and.popc`.
    AndPopc,
}

impl Operands {
    /// The number of bits of an element of A or B.
    pub const fn bits(self) -> u32 {
        match self {
            Operands::Floats(factor, _) => factor.bits(),
            Operands::F64 => 64,
            Operands::Integers { bits, .. } => bits,
            Operands::XorPopc | Operands::AndPopc => 1,
        }
    }
}

/// An `mma.sync` of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mma {
    shape: [usize; 3],
    operands: Operands,
    sums: SumType,
    saturate: bool,
    /// For quad pairs (`m8n8k4` of f16): whether A is column-major and B is row-major, and the type
    /// of C.
    across: Option<([bool; 2], SumType)>,
    model: SumModel,
}

/// The largest M.
const ROWS: usize = 16;
const DEPTH: usize = 256;
/// The number of columns N.
const COLUMNS: usize = 8;

impl Mma {
    /// An instruction with row-major A and column-major B. `sums` is the accumulator type for
    /// floating-point operands; `saturate` is `.satfinite` of integers. None if there is no
    /// instruction of this shape and these types.
    ///
    /// ```
    /// use tilewright_sanitize::isa::mma::{Mma, Operands};
    /// use tilewright_sanitize::isa::tensor_core::{Factor, SumType};
    ///
    /// let halves = Operands::Floats(Factor::F16, Factor::F16);
    /// let mma = Mma::new([16, 8, 16], halves, SumType::F32, false).unwrap();
    /// assert_eq!(mma.registers(), [4, 2, 4]);
    /// assert!(Mma::new([16, 8, 64], halves, SumType::F32, false).is_none());
    /// ```
    pub fn new(shape: [usize; 3], operands: Operands, sums: SumType, saturate: bool) -> Option<Mma> {
        let depths: &[usize] = match (operands, shape[0]) {
            (Operands::Floats(Factor::F16, Factor::F16), 16) => &[8, 16],
            (Operands::Floats(Factor::Bf16, Factor::Bf16), 16) if sums == SumType::F32 => &[8, 16],
            (Operands::Floats(Factor::Tf32, Factor::Tf32), 16) if sums == SumType::F32 => &[4, 8],
            (Operands::Floats(a, b), 16) if a.bits() == 8 && b.bits() == 8 => &[16, 32],
            (Operands::F64, 8) => &[4],
            (Operands::F64, 16) => &[4, 8, 16],
            (Operands::Integers { bits: 8, .. }, 8) => &[16],
            (Operands::Integers { bits: 8, .. }, 16) => &[16, 32],
            (Operands::Integers { bits: 4, .. }, 8) => &[32],
            (Operands::Integers { bits: 4, .. }, 16) => &[32, 64],
            (Operands::XorPopc | Operands::AndPopc, 8) => &[128],
            (Operands::XorPopc | Operands::AndPopc, 16) => &[128, 256],
            _ => return None,
        };
        if shape[1] != COLUMNS || !depths.contains(&shape[2]) {
            return None;
        }
        let model = match operands {
            // A device of this kind converts 8-bit operands to f16 and multiplies these.
            Operands::Floats(factor, _) if factor.bits() == 8 => Factor::F16.hopper(shape[2]),
            Operands::Floats(factor, _) => factor.hopper(shape[2]),
            _ => SumModel { depth: shape[2], bits: 0, kept: 23 },
        };
        Some(Mma { shape, operands, sums, saturate, across: None, model })
    }

    /// `mma.sync.m8n8k4` of f16: four products, each of eight lanes.
    pub fn quad_pairs(a_column_major: bool, b_row_major: bool, sums: SumType) -> Mma {
        Self::mixed_quad_pairs(a_column_major, b_row_major, [sums; 2])
    }

    /// As [`Mma::quad_pairs`], with different types of D and C.
    pub fn mixed_quad_pairs(a_column_major: bool, b_row_major: bool, [sums, of_c]: [SumType; 2]) -> Mma {
        Mma {
            shape: [8, 8, 4],
            operands: Operands::Floats(Factor::F16, Factor::F16),
            sums,
            saturate: false,
            across: Some(([a_column_major, b_row_major], of_c)),
            model: Factor::F16.hopper(4),
        }
    }

    /// The same instruction with the accumulation of another device, of at most 27 bits.
    pub fn with_model(self, model: SumModel) -> Mma {
        Mma { model: SumModel { depth: model.depth.max(1), bits: model.bits.min(MAX_BITS), ..model }, ..self }
    }

    /// The shape: M, N and K.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The number of 32-bit registers of A, of B, and of C and D. For quad pairs, the last is that
    /// of C.
    pub fn registers(&self) -> [usize; 3] {
        if let Some((_, of_c)) = self.across {
            return [2, 2, quad_registers(of_c)];
        }
        let [m, n, k] = self.shape;
        let bits = self.operands.bits() as usize;
        let words = |elements: usize, bits: usize| elements * bits / (32 * LANES);
        let sum = match self.operands {
            Operands::F64 => 64,
            Operands::Floats(..) if self.sums == SumType::F16 => 16,
            _ => 32,
        };
        [words(m * k, bits), words(n * k, bits), words(m * n, sum)]
    }

    /// The number of 32-bit registers of D.
    pub fn result_registers(&self) -> usize {
        match self.across {
            Some(_) => quad_registers(self.sums),
            None => self.registers()[2],
        }
    }

    /// Computes D. Registers beyond those of the instruction are left unchanged. If registers are
    /// missing, nothing is done.
    ///
    /// ```
    /// use tilewright_sanitize::isa::mma::{LANES, Mma, Operands};
    /// use tilewright_sanitize::isa::tensor_core::SumType;
    ///
    /// let bytes = Operands::Integers { bits: 8, a_signed: true, b_signed: true };
    /// let mma = Mma::new([8, 8, 16], bytes, SumType::F32, false).unwrap();
    /// let ones = [0x0101_0101; LANES];
    /// let mut d = [[0; LANES]; 2];
    /// mma.multiply(&[ones], &[ones], &[[5; LANES]; 2], &mut d);
    /// assert_eq!(d, [[21; LANES]; 2]);
    /// ```
    pub fn multiply(&self, a: &[LaneWords], b: &[LaneWords], c: &[LaneWords], d: &mut [LaneWords]) {
        let [in_a, in_b, in_c] = self.registers();
        let in_d = self.result_registers();
        let (Some(a), Some(b), Some(c), Some(d)) = (a.get(..in_a), b.get(..in_b), c.get(..in_c), d.get_mut(..in_d))
        else {
            return;
        };
        match self.operands {
            Operands::Floats(first, second) => match self.across {
                Some(across) => self.multiply_quads(across, a, b, c, d),
                None => self.multiply_floats((first, second), a, b, c, None, d),
            },
            Operands::F64 => self.multiply_doubles(a, b, c, d),
            Operands::Integers { bits, a_signed, b_signed } => {
                self.multiply_integers((bits, a_signed, b_signed), a, b, c, None, d);
            }
            Operands::XorPopc => self.multiply_bits(|a, b| a ^ b, a, b, c, d),
            Operands::AndPopc => self.multiply_bits(|a, b| a & b, a, b, c, d),
        }
    }

    /// Multiplies a sparse A, whose registers hold the elements at these places, by a B that is
    /// twice as deep along K. If registers are missing, does nothing.
    pub(super) fn multiply_sparse(
        &self,
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        places: &Places,
        d: &mut [LaneWords],
    ) {
        let [in_a, in_b, in_c] = self.registers();
        let (Some(a), Some(b), Some(c), Some(d)) = (a.get(..in_a), b.get(..2 * in_b), c.get(..in_c), d.get_mut(..in_c))
        else {
            return;
        };
        if !places.fits(self.shape[2]) {
            return;
        }
        match self.operands {
            Operands::Floats(first, second) => self.multiply_floats((first, second), a, b, c, Some(places), d),
            Operands::Integers { bits, a_signed, b_signed } => {
                self.multiply_integers((bits, a_signed, b_signed), a, b, c, Some(places), d);
            }
            Operands::F64 | Operands::XorPopc | Operands::AndPopc => {}
        }
    }

    fn multiply_floats(
        &self,
        (first, second): (Factor, Factor),
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        places: Option<&Places>,
        d: &mut [LaneWords],
    ) {
        let k = self.shape[2];
        // No floating-point instruction has a K above 32. The B of a sparse product is twice as
        // deep.
        let mut rows = ([0.0; ROWS * 32], [OF_ZERO; ROWS * 32]);
        let mut columns = ([0.0; COLUMNS * 64], [OF_ZERO; COLUMNS * 64]);
        each_number_of_a(a, first, |value, exponent, row, at| {
            (rows.0[row * k + at], rows.1[row * k + at]) = (value, exponent);
        });
        for (number, register) in b.iter().enumerate() {
            let packed = 32 / second.bits() as usize;
            for part in 0..packed {
                let (values, exponents) = second.decode_words(register, part as u32);
                for lane in 0..LANES {
                    let place = (packed * (4 * number + lane % 4) + part) * COLUMNS + lane / 4;
                    (columns.0[place], columns.1[place]) = (values[lane], exponents[lane]);
                }
            }
        }
        let mut sums = [0; ROWS * COLUMNS];
        for_each_sum(self.sums, c.len(), |register, shift, lane, row, column| {
            sums[row * COLUMNS + column] = c[register][lane] >> shift;
        });
        let is_narrow = first.bits() == 8;
        match places {
            None => {
                let factors = (terms(&rows.0, &rows.1, ROWS * k), terms(&columns.0, &columns.1, COLUMNS * k));
                self.add_floats(is_narrow, ROWS, factors, &mut sums);
            }
            Some(places) => {
                for (row, sums) in sums.chunks_exact_mut(COLUMNS).enumerate() {
                    let values = places.gather(row, COLUMNS, &columns.0);
                    let exponents = places.gather(row, COLUMNS, &columns.1);
                    let own = Terms { values: &rows.0[row * k..][..k], exponents: &rows.1[row * k..][..k] };
                    self.add_floats(is_narrow, 1, (own, Terms { values: &values, exponents: &exponents }), sums);
                }
            }
        }
        d.fill([0; LANES]);
        for_each_sum(self.sums, c.len(), |register, shift, lane, row, column| {
            d[register][lane] |= sums[row * COLUMNS + column] << shift;
        });
    }

    /// Adds the products of some rows of A with B to their accumulators. `is_narrow` says that
    /// operands have 8 bits.
    fn add_floats(&self, is_narrow: bool, count: usize, (a, b): (Terms<'_>, Terms<'_>), sums: &mut [u32]) {
        let k = self.shape[2];
        if !is_narrow {
            add_products(self.model, self.sums, (a, b), (COLUMNS, k), sums);
            return;
        }
        let mut halves = ([0.0; ROWS * 32], [OF_ZERO; ROWS * 32]);
        let mut of_b = ([0.0; COLUMNS * 32], [OF_ZERO; COLUMNS * 32]);
        for at in 0..k {
            // Of four elements in a register, the first two belong to the first half.
            let to = at / 4 * 2 + at % 2 + k / 2 * (at % 4 / 2);
            for row in 0..count {
                halves.0[row * k + to] = a.values[row * k + at];
                halves.1[row * k + to] = a.exponents[row * k + at];
            }
            of_b.0[to * COLUMNS..][..COLUMNS].copy_from_slice(&b.values[at * COLUMNS..][..COLUMNS]);
            of_b.1[to * COLUMNS..][..COLUMNS].copy_from_slice(&b.exponents[at * COLUMNS..][..COLUMNS]);
        }
        let mut products = [0; ROWS * COLUMNS];
        let products = &mut products[..count * COLUMNS];
        let model = SumModel { depth: self.model.depth.min(k / 2), ..self.model };
        let factors = (terms(&halves.0, &halves.1, count * k), terms(&of_b.0, &of_b.1, COLUMNS * k));
        add_products(model, SumType::F32, factors, (COLUMNS, k), products);
        for (sum, product) in sums.iter_mut().zip(products) {
            *sum = self.add_sum(*product, *sum);
        }
    }

    /// The sum of an f32 accumulator and an element of C, in f32, as an element of D.
    fn add_sum(&self, sum: u32, old: u32) -> u32 {
        let old = match self.across.map_or(self.sums, |(_, of_c)| of_c) {
            SumType::F32 => old,
            SumType::F16 => Half::F16.widen(old as u16).to_bits(),
        };
        let total = add32(old, sum, FloatMode::default());
        match self.sums {
            SumType::F32 => total,
            SumType::F16 => Half::F16.narrow(f32::from_bits(total)).into(),
        }
    }

    /// The four products of `m8n8k4`.
    fn multiply_quads(
        &self,
        ([a_across, b_across], of_c): ([bool; 2], SumType),
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        d: &mut [LaneWords],
    ) {
        d.fill([0; LANES]);
        for quad in 0..4 {
            let lanes = [0, 1, 2, 3, 16, 17, 18, 19].map(|lane| lane + 4 * quad);
            let mut rows = [0; 32];
            let mut columns = [0; 32];
            for lane in lanes {
                let (within, upper) = (lane % 4, lane / 16 * 4);
                for at in 0..4 {
                    let half = |operand: &[LaneWords]| {
                        Half::F16.widen((operand[at / 2][lane] >> (16 * (at % 2))) as u16).to_bits()
                    };
                    let (row, k) = if a_across { (at + upper, within) } else { (within + upper, at) };
                    rows[row * 4 + k] = half(a);
                    let (column, k) = if b_across { (at + upper, within) } else { (within + upper, at) };
                    columns[k * 8 + column] = half(b);
                }
            }
            let mut sums = [0; 64];
            let places =
                |kind| lanes.into_iter().flat_map(move |lane| (0..8).map(move |at| (lane, quad_sum(kind, lane, at))));
            for (lane, (register, shift, place)) in places(of_c) {
                sums[place] = c[register][lane] >> shift;
            }
            for (place, sum) in sums.iter_mut().enumerate() {
                let (row, column) = (place / 8, place % 8);
                let mode = FloatMode::default();
                let chain = (0..4).fold(0, |sum, k| fma32(rows[row * 4 + k], columns[k * 8 + column], sum, mode));
                *sum = self.add_sum(chain, *sum);
            }
            for (lane, (register, shift, place)) in places(self.sums) {
                d[register][lane] |= sums[place] << shift;
            }
        }
    }

    fn multiply_doubles(&self, a: &[LaneWords], b: &[LaneWords], c: &[LaneWords], d: &mut [LaneWords]) {
        let [m, _, k] = self.shape;
        let double = |of: &[LaneWords], number: usize, lane: usize| {
            f64::from_bits(u64::from(of[2 * number + 1][lane]) << 32 | u64::from(of[2 * number][lane]))
        };
        let halves = m / 8;
        for number in 0..2 * halves {
            let sums: [u64; LANES] = std::array::from_fn(|lane| {
                let (row, column) = (lane / 4 + 8 * (number / 2), 2 * (lane % 4) + number % 2);
                let mut sum = double(c, number, lane);
                for at in 0..k {
                    let left = double(a, at / 4 * halves + row / 8, row % 8 * 4 + at % 4);
                    let right = double(b, at / 4, column * 4 + at % 4);
                    sum = left.mul_add(right, sum);
                }
                if sum.is_nan() { super::format::F64.nan() } else { sum.to_bits() }
            });
            d[2 * number] = sums.map(|bits| bits as u32);
            d[2 * number + 1] = sums.map(|bits| (bits >> 32) as u32);
        }
    }

    fn multiply_integers(
        &self,
        (bits, a_signed, b_signed): (u32, bool, bool),
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        places: Option<&Places>,
        d: &mut [LaneWords],
    ) {
        let k = self.shape[2];
        let depth = if places.is_some() { 2 * k } else { k };
        let extend = |value: u32, signed: bool| {
            let up = value << (32 - bits);
            if signed { up as i32 >> (32 - bits) } else { (up >> (32 - bits)) as i32 }
        };
        let mut rows = [0; ROWS * 64];
        let mut columns = [0; COLUMNS * 128];
        self.each_of_a(a, bits, |value, row, at| rows[row * k + at] = extend(value, a_signed));
        each_of_b(b, bits, |value, at, column| columns[column * depth + at] = extend(value, b_signed));
        self.each_integer_sum(|register, lane, row, column| {
            let (left, right) = (&rows[row * k..][..k], &columns[column * depth..][..depth]);
            // At most 64 products below 2^16, so their sum fits.
            let products: i32 = match places {
                None => left.iter().zip(right).map(|(a, b)| a * b).sum(),
                Some(places) => left.iter().zip(places.row(row)).map(|(a, at)| a * right[usize::from(*at)]).sum(),
            };
            let sum = i64::from(c[register][lane] as i32) + i64::from(products);
            let sum = if self.saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
            d[register][lane] = sum as u32;
        });
    }

    fn multiply_bits(
        &self,
        of: impl Fn(u32, u32) -> u32,
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        d: &mut [LaneWords],
    ) {
        let words = self.shape[2] / 32;
        let mut rows = [0; ROWS * DEPTH / 32];
        let mut columns = [0; COLUMNS * DEPTH / 32];
        self.each_of_a(a, 32, |value, row, at| rows[row * words + at] = value);
        each_of_b(b, 32, |value, at, column| columns[column * words + at] = value);
        self.each_integer_sum(|register, lane, row, column| {
            let pairs = rows[row * words..][..words].iter().zip(&columns[column * words..][..words]);
            let count: u32 = pairs.map(|(a, b)| of(*a, *b).count_ones()).sum();
            d[register][lane] = c[register][lane].wrapping_add(count);
        });
    }

    /// Visits the elements of A, of 8 or 16 rows.
    fn each_of_a(&self, a: &[LaneWords], bits: u32, mut visit: impl FnMut(u32, usize, usize)) {
        if self.shape[0] == 8 {
            each_of_b(a, bits, |value, at, row| visit(value, row, at));
        } else {
            each_of_a(a, bits, visit);
        }
    }

    fn each_integer_sum(&self, mut visit: impl FnMut(usize, usize, usize, usize)) {
        for register in 0..self.shape[0] / 4 {
            for lane in 0..LANES {
                visit(register, lane, lane / 4 + 8 * (register / 2), 2 * (lane % 4) + register % 2);
            }
        }
    }
}

/// The number of accumulator registers of `m8n8k4`.
fn quad_registers(kind: SumType) -> usize {
    if kind == SumType::F16 { 4 } else { 8 }
}

/// For an accumulator of `m8n8k4`: the register, the shift within it, and the row and column in an
/// 8 x 8 matrix.
fn quad_sum(kind: SumType, lane: usize, at: usize) -> (usize, u32, usize) {
    let upper = lane / 16 * 4;
    match kind {
        SumType::F16 => (at / 2, 16 * (at as u32 % 2), (lane % 4 + upper) * 8 + at),
        SumType::F32 => {
            let (row, column) = ((lane & 1) + (at & 2) + upper, (at & 4) + (lane & 2) + (at & 1));
            (at, 0, row * 8 + column)
        }
    }
}

/// The first `count` elements and exponents.
fn terms<'a>(values: &'a [f64], exponents: &'a [i16], count: usize) -> Terms<'a> {
    Terms { values: &values[..count], exponents: &exponents[..count] }
}

/// Calls a function with the number, the exponent, the row and the column of each element of A with
/// 16 rows.
#[inline(always)]
pub(crate) fn each_number_of_a(a: &[LaneWords], factor: Factor, mut visit: impl FnMut(f64, i16, usize, usize)) {
    let packed = (32 / factor.bits()) as usize;
    for (number, register) in a.iter().enumerate() {
        for part in 0..packed {
            let (values, exponents) = factor.decode_words(register, part as u32);
            for lane in 0..LANES {
                let row = lane / 4 + 8 * (number % 2);
                visit(values[lane], exponents[lane], row, packed * (4 * (number / 2) + lane % 4) + part);
            }
        }
    }
}

/// Calls a function with the bits, the row and the column of each element of A with 16 rows.
#[inline(always)]
pub(crate) fn each_of_a(a: &[LaneWords], bits: u32, mut visit: impl FnMut(u32, usize, usize)) {
    let (packed, mask) = ((32 / bits) as usize, u32::MAX >> (32 - bits));
    for (number, register) in a.iter().enumerate() {
        for (lane, word) in register.iter().enumerate() {
            let row = lane / 4 + 8 * (number % 2);
            let first = 4 * packed * (number / 2) + packed * (lane % 4);
            for part in 0..packed {
                visit(word >> (bits * part as u32) & mask, row, first + part);
            }
        }
    }
}

/// Calls a function with the bits, the row and the column of each element of B.
#[inline(always)]
pub(crate) fn each_of_b(b: &[LaneWords], bits: u32, mut visit: impl FnMut(u32, usize, usize)) {
    let (packed, mask) = ((32 / bits) as usize, u32::MAX >> (32 - bits));
    for (number, register) in b.iter().enumerate() {
        for (lane, word) in register.iter().enumerate() {
            let first = 4 * packed * number + packed * (lane % 4);
            for part in 0..packed {
                visit(word >> (bits * part as u32) & mask, first + part, lane / 4);
            }
        }
    }
}

/// Calls a function with the register, the shift within it, the lane, the row and the column of
/// each sum; registers are those of 16 rows and any number of blocks of eight columns.
#[inline(always)]
pub(crate) fn for_each_sum(kind: SumType, registers: usize, mut visit: impl FnMut(usize, u32, usize, usize, usize)) {
    let per_register = if kind == SumType::F16 { 2 } else { 1 };
    for register in 0..registers {
        for part in 0..per_register {
            let number = register * per_register + part;
            for lane in 0..LANES {
                let row = lane / 4 + 8 * (number / 2 % 2);
                let column = number / 4 * 8 + 2 * (lane % 4) + number % 2;
                visit(register, 16 * part as u32, lane, row, column);
            }
        }
    }
}
