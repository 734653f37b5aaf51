//! `wgmma.mma_async`: products of a warpgroup, with operands in shared memory.
//!
//! Law: `D = A B + D` or `D = A B`, where A is 64 x K and B is K x N; K is 32 bytes of elements.
//! Warp `w` of the four has rows `16w` to `16w + 15` of A and D, as adjacent 16 x 8 blocks with the
//! layout of the D of `mma.sync`. A in registers has the layout of the A of `mma.sync`. Operands in
//! shared memory have the layout of their descriptor. With elements of `e` bytes, `T = 16 / e`, and
//! `W` units of 16 bytes in a line of the swizzle, element `(mn, k)` is this many bytes after the
//! start:
//!
//! ```text
//!                 swizzled                                    not swizzled
//! K-major         mn/8 stride + mn%8 16W + k e                mn/8 stride + mn%8 16 + k/T leading + k%T e
//! MN-major        mn/(TW) leading + mn%(TW) e                 mn/T stride + mn%T e + k/8 leading + k%8 16
//!                 + k/8 stride + k%8 16W
//! ```
//!
//! Bits 4 to 6 of the address are then xored with bits 7 to 9, of which the swizzle uses three, two
//! or one (128, 64 or 32 bytes), counted from the base offset.
//!
//! `wgmma.mma_async.sp` has an A with 64 x K / 2 stored elements, as [`super::mma::sparse`]
//! describes, and a B whose columns have 64 bytes.
//!
//! (PTX ISA, "Asynchronous Warpgroup Level Matrix Operation": descriptors, canonical layouts,
//! register fragments.)

use super::mma::sparse::Places;
use super::mma::{LANES, LaneWords, each_number_of_a, each_of_a, for_each_sum};
use super::tensor_core::{Factor, MAX_BITS, OF_ZERO, SumModel, SumType, Terms, add_products};

/// The rows of a warp.
const ROWS: usize = 16;
/// The bytes of a row of A or a column of B.
const BYTES: u32 = 32;

/// The operand types of `wgmma`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupOperands {
    /// Floating-point numbers: the type of A, and that of B.
    Floats(Factor, Factor),
    /// 8-bit integers.
    Integers {
        /// Whether A is signed: `.s8`, otherwise `.u8`.
        a_signed: bool,
        /// Whether B is signed: `.s8`, otherwise `.u8`.
        b_signed: bool,
    },
    /// `.b1` with `.and.popc`.
    AndPopc,
}

impl GroupOperands {
    /// The number of bits of an element.
    pub const fn bits(self) -> u32 {
        match self {
            GroupOperands::Floats(factor, _) => factor.bits(),
            GroupOperands::Integers { .. } => 8,
            GroupOperands::AndPopc => 1,
        }
    }
}

/// A matrix descriptor: the layout of an operand in shared memory.
///
/// ```
/// use tilewright_sanitize::isa::wgmma::Described;
///
/// // At 0x400, leading 16, stride 1024 bytes, with a swizzle of 128 bytes.
/// let described = Described::of_bits(1 << 62 | 64 << 32 | 1 << 16 | 0x40);
/// assert_eq!((described.start, described.leading, described.stride), (0x400, 16, 1024));
/// assert_eq!(described.byte([1, 0], 2, false), 0x490); // bit 7 changes bit 4
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Described {
    /// The address of the first element in shared memory.
    pub start: u32,
    /// The leading dimension byte offset.
    pub leading: u32,
    /// The stride dimension byte offset.
    pub stride: u32,
    /// The number, modulo 8, of the 128-byte line at which the swizzle pattern starts.
    pub base_offset: u32,
    /// The number of 16-byte units in a line of the swizzle: 1 (none), 2, 4 or 8.
    pub units: u32,
}

impl Described {
    /// The descriptor with these bits. Reserved bits are ignored.
    pub fn of_bits(bits: u64) -> Described {
        let field = |at: u32| ((bits >> at & 0x3fff) << 4) as u32;
        let units = match bits >> 62 {
            0 => 1,
            1 => 8,
            2 => 4,
            _ => 2,
        };
        let base_offset = (bits >> 49 & 7) as u32;
        Described { start: field(0), leading: field(16), stride: field(32), base_offset, units }
    }

    /// The address of element `(mn, k)`. Addresses wrap at 2^18, like the fields of the descriptor.
    #[inline]
    pub fn byte(&self, [mn, k]: [u32; 2], element_bytes: u32, mn_major: bool) -> u32 {
        let (line, unit) = (16 * self.units, 16 / element_bytes);
        let apart = match (mn_major, self.units) {
            (false, 1) => mn / 8 * self.stride + mn % 8 * 16 + k / unit * self.leading + k % unit * element_bytes,
            (false, _) => mn / 8 * self.stride + mn % 8 * line + k * element_bytes,
            (true, 1) => mn / unit * self.stride + mn % unit * element_bytes + k / 8 * self.leading + k % 8 * 16,
            (true, _) => {
                let along = line / element_bytes;
                mn / along * self.leading + mn % along * element_bytes + k / 8 * self.stride + k % 8 * line
            }
        };
        let at = (self.start + apart) & 0x3_ffff;
        let row = (at >> 7).wrapping_sub(self.base_offset) & (self.units - 1);
        at ^ row << 4
    }
}

/// A `wgmma.mma_async`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupProduct {
    /// The number of columns N.
    n: usize,
    operands: GroupOperands,
    sums: SumType,
    saturate: bool,
    /// Whether A and B in shared memory are MN-major.
    across: [bool; 2],
    /// Whether A and B are negated.
    negated: [bool; 2],
    /// Whether A is sparse, so that B is twice as deep.
    is_sparse: bool,
    model: SumModel,
}

/// The elements of one operand: along K, for each row of A or column of B.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMatrix(Elements);

#[derive(Debug, Clone, PartialEq)]
enum Elements {
    /// Rows of A, or the rows of B along K: values and exponents.
    Terms(Vec<f64>, Vec<i16>),
    /// Rows of A, or columns of B: extended integers.
    Integers(Vec<i32>),
    /// Rows of A, or columns of B: words of 32 single bits.
    Words(Vec<u32>),
}

impl GroupProduct {
    /// An instruction without negation and with K-major operands. None if there is no instruction
    /// of these types and columns.
    pub fn new(n: usize, operands: GroupOperands, sums: SumType, saturate: bool) -> Option<GroupProduct> {
        let fits = match operands {
            GroupOperands::Floats(Factor::F16, Factor::F16) => true,
            GroupOperands::Floats(Factor::Bf16, Factor::Bf16) | GroupOperands::Floats(Factor::Tf32, Factor::Tf32) => {
                sums == SumType::F32
            }
            GroupOperands::Floats(a, b) => a.bits() == 8 && b.bits() == 8,
            GroupOperands::Integers { .. } | GroupOperands::AndPopc => n <= 24 || n.is_multiple_of(16),
        };
        if !fits || !(8..=256).contains(&n) || !n.is_multiple_of(8) {
            return None;
        }
        let model = match operands {
            GroupOperands::Floats(factor, _) => factor.hopper(32),
            _ => SumModel { depth: 1, bits: 0, kept: 23 },
        };
        let (across, negated) = ([false; 2], [false; 2]);
        Some(GroupProduct { n, operands, sums, saturate, across, negated, is_sparse: false, model })
    }

    /// The same instruction with MN-major operands in shared memory (`imm-trans`). Elements must
    /// have 16 bits.
    pub fn across(self, across: [bool; 2]) -> GroupProduct {
        GroupProduct { across, ..self }
    }

    /// The same instruction with negated operands (`imm-scale` of -1).
    pub fn negated(self, negated: [bool; 2]) -> GroupProduct {
        GroupProduct { negated, ..self }
    }

    /// The same instruction with a sparse A, which stores half of its elements. None for single
    /// bits.
    pub fn sparse(self) -> Option<GroupProduct> {
        (self.operands != GroupOperands::AndPopc).then_some(GroupProduct { is_sparse: true, ..self })
    }

    /// Whether the layout of B in memory is undocumented: its rows have 64 bytes and the swizzle
    /// has lines of 32.
    pub fn is_undocumented(&self, of_b: &Described) -> bool {
        self.is_sparse && of_b.units == 2 && !self.across[1]
    }

    /// The same instruction with the accumulation of another device, of at most 27 bits.
    pub fn with_model(self, model: SumModel) -> GroupProduct {
        let model = SumModel { depth: model.depth.max(1), bits: model.bits.min(MAX_BITS), ..model };
        GroupProduct { model, ..self }
    }

    /// The number of columns N.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The extent K, which counts the elements of a sparse A that are not stored, too.
    pub fn k(&self) -> usize {
        if self.is_sparse { 2 * self.held() } else { self.held() }
    }

    /// The number of stored elements of a row of A.
    fn held(&self) -> usize {
        (8 * BYTES / self.operands.bits()) as usize
    }

    /// The number of bytes of a row of A or of a column of B.
    fn row_bytes(&self, of_b: bool) -> u32 {
        if of_b && self.is_sparse { 2 * BYTES } else { BYTES }
    }

    /// The number of registers of D in a thread.
    pub fn registers(&self) -> usize {
        let packed = matches!(self.operands, GroupOperands::Floats(..)) && self.sums == SumType::F16;
        if packed { self.n / 4 } else { self.n / 2 }
    }

    /// The number of bytes of a unit of the layout: an element, or 8 single bits.
    fn element_bytes(&self) -> u32 {
        self.operands.bits().div_ceil(8)
    }

    /// The addresses of the 16-byte units that are read from an operand in shared memory, for rows
    /// `first` to `first + count` of A, or for columns of B.
    pub fn units(&self, described: &Described, of_b: bool, first: usize, count: usize) -> Vec<u32> {
        let bytes = self.element_bytes();
        let unit = 16 / bytes;
        let in_row = self.row_bytes(of_b) / 16;
        let mut units = Vec::with_capacity(in_row as usize * count);
        for number in 0..in_row * count as u32 {
            let at = if self.across[usize::from(of_b)] {
                let along = (count as u32).div_ceil(unit).max(1);
                [first as u32 + number % along * unit, number / along]
            } else {
                [first as u32 + number / in_row, number % in_row * unit]
            };
            units.push(described.byte(at, bytes, self.across[usize::from(of_b)]) & !15);
        }
        units
    }

    /// The part of A of a warp, from its four registers. Missing registers count as 0.
    pub fn a_of_registers(&self, registers: &[LaneWords]) -> GroupMatrix {
        let registers = registers.get(..4).unwrap_or(registers);
        let k = self.held();
        GroupMatrix(match self.operands {
            GroupOperands::Floats(factor, _) => {
                let (mut values, mut exponents) = (vec![0.0; ROWS * k], vec![OF_ZERO; ROWS * k]);
                each_number_of_a(registers, factor, |value, exponent, row, at| {
                    values[row * k + at] = if self.negated[0] { -value } else { value };
                    exponents[row * k + at] = exponent;
                });
                Elements::Terms(values, exponents)
            }
            GroupOperands::Integers { a_signed, .. } => {
                let mut bytes = vec![0; ROWS * k];
                each_of_a(registers, 8, |bits, row, at| bytes[row * k + at] = extend(bits as u8, a_signed));
                Elements::Integers(bytes)
            }
            GroupOperands::AndPopc => {
                let mut words = vec![0; ROWS * 8];
                each_of_a(registers, 32, |bits, row, at| words[row * 8 + at] = bits);
                Elements::Words(words)
            }
        })
    }

    /// The part of A of warp `warp` of the four, from shared memory. `read` returns 16 bytes at an
    /// aligned address.
    pub fn a_of_shared(&self, warp: usize, described: &Described, read: impl FnMut(u32) -> [u8; 16]) -> GroupMatrix {
        self.of_shared(described, [ROWS * (warp % 4), ROWS], false, read)
    }

    /// B from shared memory. `read` returns 16 bytes at an aligned address.
    pub fn b_of_shared(&self, described: &Described, read: impl FnMut(u32) -> [u8; 16]) -> GroupMatrix {
        self.of_shared(described, [0, self.n], true, read)
    }

    fn of_shared(
        &self,
        described: &Described,
        [first, count]: [usize; 2],
        of_b: bool,
        mut read: impl FnMut(u32) -> [u8; 16],
    ) -> GroupMatrix {
        // Elements along K; for single bits, bytes along K.
        let bytes = self.element_bytes();
        let depth = (self.row_bytes(of_b) / bytes) as usize;
        let which = usize::from(of_b);
        let across = self.across[which];
        // Contiguous elements of 16 bytes are neighbours along the major dimension.
        let unit = (16 / bytes) as usize;
        let mut words = |mn: usize, k: usize| {
            let held = read(described.byte([(first + mn) as u32, k as u32], bytes, across));
            let mut words = [0; 4];
            for (word, bytes) in words.iter_mut().zip(held.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
            words
        };
        // For each unit: the index of its first element, and the distance to the next element.
        let units = (0..count * depth / unit).map(|number| match across {
            true => (number % (count / unit) * unit, number / (count / unit)),
            false => (number / (depth / unit), number % (depth / unit) * unit),
        });
        let step = if across { (1, 0) } else { (0, 1) };
        let of_words = |words: [u32; 4], at: usize| {
            let byte = at * bytes as usize;
            words[byte / 4] >> (8 * (byte % 4)) & u32::MAX >> (32 - 8 * bytes)
        };
        GroupMatrix(match self.operands {
            GroupOperands::Floats(a, b) => {
                let factor = if of_b { b } else { a };
                let (mut values, mut exponents) = (vec![0.0; count * depth], vec![OF_ZERO; count * depth]);
                for (mn, k) in units {
                    let words = words(mn, k);
                    for part in 0..4 / bytes {
                        let decoded = factor.decode_words(&words, part);
                        for (word, (value, exponent)) in decoded.0.into_iter().zip(decoded.1).enumerate() {
                            let at = word * (4 / bytes) as usize + part as usize;
                            let (mn, k) = (mn + at * step.0, k + at * step.1);
                            let place = if of_b { k * count + mn } else { mn * depth + k };
                            values[place] = if self.negated[which] { -value } else { value };
                            exponents[place] = exponent;
                        }
                    }
                }
                Elements::Terms(values, exponents)
            }
            GroupOperands::Integers { a_signed, b_signed } => {
                let signed = if of_b { b_signed } else { a_signed };
                let mut values = vec![0; count * depth];
                for (mn, k) in units {
                    let words = words(mn, k);
                    for at in 0..unit {
                        values[(mn + at * step.0) * depth + k + at * step.1] =
                            extend(of_words(words, at) as u8, signed);
                    }
                }
                Elements::Integers(values)
            }
            GroupOperands::AndPopc => {
                let mut all = vec![0; count * 8];
                for (mn, k) in units {
                    all[mn * 8 + k / 4..][..4].copy_from_slice(&words(mn, k));
                }
                Elements::Words(all)
            }
        })
    }

    /// Adds the product to the registers D of a warp, or, if `adds` is false, replaces them. If the
    /// matrices belong to another instruction, or registers are missing, does nothing.
    pub fn multiply(&self, a: &GroupMatrix, b: &GroupMatrix, d: &mut [LaneWords], adds: bool) {
        if !self.is_sparse {
            self.multiply_at(a, b, None, d, adds);
        }
    }

    /// As [`GroupProduct::multiply`], for a sparse A, whose elements have these places.
    pub fn multiply_sparse(&self, a: &GroupMatrix, b: &GroupMatrix, places: &Places, d: &mut [LaneWords], adds: bool) {
        if self.is_sparse && places.fits(self.held()) {
            self.multiply_at(a, b, Some(places), d, adds);
        }
    }

    fn multiply_at(&self, a: &GroupMatrix, b: &GroupMatrix, places: Option<&Places>, d: &mut [LaneWords], adds: bool) {
        let Some(d) = d.get_mut(..self.registers()) else { return };
        if !adds {
            d.fill([0; LANES]);
        }
        let (n, held, k) = (self.n, self.held(), self.k());
        match (&a.0, &b.0) {
            (Elements::Terms(a, of_a), Elements::Terms(b, of_b)) if a.len() == ROWS * held && b.len() == n * k => {
                let mut sums = vec![0; ROWS * n];
                for_each_sum(self.sums, d.len(), |register, shift, lane, row, column| {
                    sums[row * n + column] = d[register][lane] >> shift;
                });
                match places {
                    None => {
                        let factors = (Terms { values: a, exponents: of_a }, Terms { values: b, exponents: of_b });
                        add_products(self.model, self.sums, factors, (n, k), &mut sums);
                    }
                    Some(places) => {
                        for (row, sums) in sums.chunks_exact_mut(n).enumerate() {
                            let (values, exponents) = (places.gather(row, n, b), places.gather(row, n, of_b));
                            let own = row * held..(row + 1) * held;
                            let left = Terms { values: &a[own.clone()], exponents: &of_a[own] };
                            let right = Terms { values: &values, exponents: &exponents };
                            add_products(self.model, self.sums, (left, right), (n, held), sums);
                        }
                    }
                }
                d.fill([0; LANES]);
                let mask = if self.sums == SumType::F16 { 0xffff } else { u32::MAX };
                for_each_sum(self.sums, d.len(), |register, shift, lane, row, column| {
                    d[register][lane] |= (sums[row * n + column] & mask) << shift;
                });
            }
            (Elements::Integers(a), Elements::Integers(b)) if a.len() == ROWS * held && b.len() == n * k => {
                for_each_sum(SumType::F32, d.len(), |register, _, lane, row, column| {
                    let (left, right) = (&a[row * held..][..held], &b[column * k..][..k]);
                    let products: i32 = match places {
                        None => left.iter().zip(right).map(|(a, b)| a * b).sum(),
                        Some(places) => {
                            left.iter().zip(places.row(row)).map(|(a, at)| a * right[usize::from(*at)]).sum()
                        }
                    };
                    let sum = i64::from(d[register][lane] as i32) + i64::from(products);
                    let sum = if self.saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                    d[register][lane] = sum as u32;
                });
            }
            (Elements::Words(a), Elements::Words(b)) if a.len() == ROWS * 8 && b.len() == n * 8 => {
                for_each_sum(SumType::F32, d.len(), |register, _, lane, row, column| {
                    let pairs = a[row * 8..][..8].iter().zip(&b[column * 8..][..8]);
                    let count: u32 = pairs.map(|(a, b)| (a & b).count_ones()).sum();
                    d[register][lane] = d[register][lane].wrapping_add(count);
                });
            }
            _ => {}
        }
    }
}

fn extend(byte: u8, signed: bool) -> i32 {
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}
