//! The definition of a GEMM, element by element.
//!
//! Law: this loop knows nothing of tiles, threads or instructions. It evaluates layouts at indices,
//! adds in f64, and bounds the rounding error of the types. Products of f64 are added with twice as
//! many bits.

use tilewright_kernel::Element;
use tilewright_layout::LayoutError;

use crate::extremes::greater;
use crate::gemm::problem::Problem;
use crate::gemm::problem::blocks::BlockScales;
use crate::gemm::problem::convolution::Images;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::reductions::{Each, EpilogueReduction};
use crate::gemm::problem::scales::{SCALE_BLOCK, Scales};
use crate::gemm::step::ProductTensor;
use crate::meaning::{self, Unchecked};
use crate::terms::Statistic;

/// What an element of D should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Its offset in the tensor of D, in elements.
    pub place: i64,
    /// The value, as f64 computes it.
    pub value: f64,
    /// A bound on the rounding error.
    pub bound: f64,
    element: Element,
}

impl Expected {
    /// The distance of the bits that were found from the value, in units of the bound; 0 if they
    /// are equal.
    ///
    /// Errors: the distance is larger than 1 ([`Unchecked::Wrong`]).
    pub fn distance(&self, found: u64) -> Result<f64, Unchecked> {
        meaning::distance(self.element, found, self.value, self.bound).ok_or_else(|| {
            let found = meaning::value(self.element, found);
            Unchecked::Wrong { element: self.place as usize, found, wanted: self.value }
        })
    }
}

/// bf16 rounds to infinity from here on: 2^128 minus half a unit in its last place.
const PARTED: f64 = 511.0 * 664_613_997_892_457_936_451_903_530_140_172_288.0;

/// Half a unit in the last place of f64.
const DOUBLE: f64 = f64::EPSILON / 2.0;

/// The rounding error of `sum + a * b`, in f64: the exact number minus the computed one, except for
/// numbers that underflow.
fn left_out(sum: f64, a: f64, b: f64) -> f64 {
    let product = a * b;
    let total = sum + product;
    let added = total - sum;
    ((sum - (total - added)) + (product - added)) + a.mul_add(b, -product)
}

/// The value of an integer of four bits.
fn nibble(bits: u8, signed: bool) -> f64 {
    f64::from(bits) - if signed && bits > 7 { 16.0 } else { 0.0 }
}

/// The bits of an element of a tensor, by its offset.
type ElementBits<'a> = dyn Fn(ProductTensor, i64) -> u64 + 'a;

impl Problem {
    /// The dot product of a row of A and a column of B, and a bound on its rounding error.
    fn sum(&self, input: &ElementBits<'_>, [row, column, matrix]: [i64; 3]) -> Result<(f64, f64), LayoutError> {
        let operand_value = |operand, at: i64| {
            let bits = input(operand, at);
            // tf32 instructions ignore the low bits.
            let bits = if self.is_tf32() { bits & 0xffff_e000 } else { bits };
            meaning::value(self.operand_type(), bits)
        };
        if let Some(blocks) = self.blocks() {
            return self.block_scaled_sum(input, blocks, [row, column, matrix]);
        }
        let exact = self.operand_type() == Element::F32 && !self.is_tf32();
        let (mut sum, mut size, mut greatest) = (0.0, 0.0, 0.0_f64);
        // The rounding errors of this loop itself, where kernels add in f64 as well.
        let mut rest = 0.0;
        let mut scale = 1.0;
        for k in 0..self.sizes()[2] {
            let at = self.a().place([row, k, matrix])?;
            // Padding is 0.
            let at = self.images().map_or(Some(at), |images| images.place(at));
            if self.int4_scales().is_some() {
                let a = at.map_or(0.0, |at| operand_value(ProductTensor::A, at));
                let b = self.int4_weight(|at| input(ProductTensor::B, at), [column, k])?;
                if k % SCALE_BLOCK == 0 {
                    scale = self.scale(input, [row, column, matrix], k / SCALE_BLOCK)?;
                }
                sum += a * b * scale;
                size += (a * b * scale).abs();
                continue;
            }
            let from_b = self.b().place([column, k, matrix])?;
            if self.has_nibbles() {
                let bits = |operand, at: i64| input(operand, at) as u8;
                let (a, b) = (at.map_or(0, |at| bits(ProductTensor::A, at)), bits(ProductTensor::B, from_b));
                let signed = self.operand_type() == Element::I8;
                sum +=
                    nibble(a & 15, signed) * nibble(b & 15, signed) + nibble(a >> 4, signed) * nibble(b >> 4, signed);
                continue;
            }
            let a = at.map_or(0.0, |at| operand_value(ProductTensor::A, at));
            let b = operand_value(ProductTensor::B, from_b);
            if k % SCALE_BLOCK == 0 {
                scale = self.scale(input, [row, column, matrix], k / SCALE_BLOCK)?;
            }
            if self.operand_type() == Element::F64 {
                rest += left_out(sum, a, b);
            }
            sum += a * b * scale;
            size += (a * b * scale).abs();
            greatest = greatest.max(a.abs()).max(b.abs());
            // A number that bf16 rounds to infinity cannot be split into parts of bf16.
            if exact && !(greatest < PARTED && a.is_finite() && b.is_finite()) {
                sum = f64::NAN;
            }
        }
        let steps = self.sizes()[2] as f64;
        let least = steps * f64::from_bits(1);
        let off = match self.operand_type() {
            Element::F64 => {
                sum += if rest.is_finite() { rest } else { 0.0 };
                return Ok((sum, if size.is_finite() { size * (steps + 2.0) * DOUBLE + least } else { f64::INFINITY }));
            }
            Element::I8 | Element::U8 => 0.0,
            // FP8 instructions, which add 32 terms along K, keep 13 bits below the largest term.
            Element::E4M3 | Element::E5M2 if !self.is_promoted() => {
                size * ((steps / 32.0).ceil() + 1.0) * 2_f64.powi(-12)
            }
            // Each block is rounded like this; then it is scaled and added in f32.
            Element::E4M3 | Element::E5M2 => {
                let blocks = (steps / SCALE_BLOCK as f64).ceil();
                size * (5.0 * 2_f64.powi(-12) + (blocks + 3.0) * 2_f64.powi(-24))
            }
            // Six of the nine products of parts are added; the smallest three are omitted.
            Element::F32 if exact => {
                size * ((6.0 * steps + 2.0) * 2_f64.powi(-24) + 2_f64.powi(-22)) + greatest * steps * 2_f64.powi(-130)
            }
            // Each addition rounds the running sum; with scales, so do those of groups.
            _ if self.int4_scales().is_some() => {
                let groups = (steps / SCALE_BLOCK as f64).ceil();
                size * (steps + groups + 3.0) * 2_f64.powi(-24) + steps * 2_f64.powi(-149)
            }
            _ => size * (steps + 2.0) * 2_f64.powi(-24) + steps * 2_f64.powi(-149),
        };
        Ok((sum, if size > f64::from(f32::MAX) { f64::INFINITY } else { off }))
    }

    /// The dot product of a row of A and a column of B of a block-scaled format, and a bound on its
    /// rounding error: each addition rounds the running sum to f32.
    fn block_scaled_sum(
        &self,
        input: &ElementBits<'_>,
        BlockScales { format, scales }: &BlockScales,
        [row, column, matrix]: [i64; 3],
    ) -> Result<(f64, f64), LayoutError> {
        let (packed, block) = (i64::from(format.packed()), i64::from(format.block()));
        let factor = |operand, of: &Matrix, (scale, scales_of): (ProductTensor, &Matrix), line: i64, k: i64| {
            let byte = input(operand, of.place([line, k / packed, matrix])?);
            let scale = format.scale(input(scale, scales_of.place([line, k / block, matrix])?) as u8);
            Ok::<f64, LayoutError>(format.element(if k % packed == 1 { byte >> 4 } else { byte }) * scale)
        };
        let (mut sum, mut size) = (0.0, 0.0);
        let terms = self.sizes()[2] * packed;
        for k in 0..terms {
            let a = factor(ProductTensor::A, self.a(), (ProductTensor::ScalesA, &scales.a), row, k)?;
            let b = factor(ProductTensor::B, self.b(), (ProductTensor::ScalesB, &scales.b), column, k)?;
            sum += a * b;
            size += (a * b).abs();
        }
        let off = size * (terms as f64 + 2.0) * 2_f64.powi(-24) + terms as f64 * 2_f64.powi(-149);
        Ok((sum, if size > f64::from(f32::MAX) { f64::INFINITY } else { off }))
    }

    /// The scale of A times the scale of B of a block along K; 1 if there are none.
    fn scale(&self, input: &ElementBits<'_>, [row, column, matrix]: [i64; 3], block: i64) -> Result<f64, LayoutError> {
        if let Some(scales) = self.int4_scales() {
            let bits = input(ProductTensor::ScalesB, scales.place([column, block, matrix])?);
            return Ok(meaning::value(scales.element(), bits));
        }
        let Some(scales) = self.scales() else { return Ok(1.0) };
        let [m, n, _] = self.mma_sizes();
        let of = |scales: ProductTensor, matrix_of: &Matrix, at: i64, extent: i64| {
            let own = if matrix_of.extents()[0] == extent { at } else { at / SCALE_BLOCK };
            let bits = input(scales, matrix_of.place([own, block, matrix])?);
            Ok(meaning::value(Element::F32, bits))
        };
        Ok(of(ProductTensor::ScalesA, &scales.a, row, m)? * of(ProductTensor::ScalesB, &scales.b, column, n)?)
    }

    /// The element of D at a row, a column and a matrix before it is rounded to its type, and a
    /// bound on its rounding error.
    pub(crate) fn number(
        &self,
        input: &ElementBits<'_>,
        [row, column, matrix]: [i64; 3],
    ) -> Result<(f64, f64), LayoutError> {
        let columns = match self.pairs() {
            None => vec![column],
            Some(pairs) => pairs.columns(column, self.sizes()[1]).to_vec(),
        };
        let sums = columns.iter().map(|column| self.sum(input, [row, *column, matrix]));
        let mut elements = sums.collect::<Result<Vec<_>, _>>()?;
        let Some(fused) = self.epilogue() else { return Ok(elements[0]) };
        for (number, matrix_of) in fused.inputs.iter().enumerate() {
            let bits = input(ProductTensor::Input(number), matrix_of.place([row, column, matrix])?);
            elements.push((meaning::value(matrix_of.element(), bits), 0.0));
        }
        Ok(fused.expression.value_in(self.computed_type(), &elements))
    }

    /// The value that the element of D at a row, a column and a matrix should have. `input` gives
    /// the bits of an element of A, B, scales or an epilogue input by its offset. With row groups,
    /// the matrix is that of the group ([`Problem::row_group_of`]).
    ///
    /// Errors: an offset does not fit in 64 bits.
    pub fn expected(&self, input: &ElementBits<'_>, at: [i64; 3]) -> Result<Expected, LayoutError> {
        let (value, bound) = self.number(input, at)?;
        self.rounded((value, bound), at)
    }

    pub(crate) fn rounded(&self, (value, bound): (f64, f64), at: [i64; 3]) -> Result<Expected, LayoutError> {
        let element = self.result_type();
        let last = if element.is_float() {
            meaning::step(element, value)
        } else if self.accumulator_type() == element && self.epilogue().is_none() {
            0.0
        } else {
            // Conversion to an integer truncates toward zero.
            1.0
        };
        Ok(Expected { place: self.d().place(at)?, value, bound: bound + last, element })
    }

    /// The value that a number of a reduction should have, for a row or a column of a matrix or of
    /// a group; None for a row of no group.
    ///
    /// Errors: an offset does not fit in 64 bits.
    pub fn expected_reduction(
        &self,
        input: &ElementBits<'_>,
        number: usize,
        [at, matrix]: [i64; 2],
    ) -> Result<Option<Expected>, LayoutError> {
        let Some(by) = self.reductions().nth(number) else { return Ok(None) };
        let [m, n, _] = self.sizes();
        let group = |row: i64| match self.row_groups() {
            None => Some(matrix),
            Some(_) => self.row_group_of(row, |group| i64::from(input(ProductTensor::Ends, group) as u32 as i32)),
        };
        let mut all = Gathered::default();
        match by.each {
            Each::Row => {
                let Some(group) = group(at) else { return Ok(None) };
                for column in 0..n {
                    all.add(by, self.number(input, [at, column, group])?);
                }
            }
            Each::Column => {
                for row in (0..m).filter(|row| group(*row) == Some(matrix)) {
                    all.add(by, self.number(input, [row, at, matrix])?);
                }
            }
        }
        all.expected(self, number, [at, matrix])
    }

    /// The scales, in f32 or of a block-scaled format.
    fn all_scales(&self) -> Option<&Scales> {
        self.scales().or(self.blocks().map(|blocks| &blocks.scales))
    }

    /// The matrix of an operand that is read or written; None for a workspace.
    pub fn matrix(&self, operand: ProductTensor) -> Option<&Matrix> {
        match operand {
            ProductTensor::A => Some(self.images().map_or(self.a(), Images::matrix)),
            ProductTensor::B => Some(self.b()),
            ProductTensor::D => Some(self.d()),
            ProductTensor::Input(number) => self.epilogue().and_then(|fused| fused.inputs.get(number)),
            ProductTensor::ScalesA => self.all_scales().map(|scales| &scales.a),
            ProductTensor::ScalesB => self.all_scales().map(|scales| &scales.b).or(self.int4_scales()),
            ProductTensor::Ends => self.group_ends(),
            ProductTensor::Reduction(number) => self.kept(number),
            ProductTensor::Workspace(_) => None,
        }
    }

    /// The inputs: A, B, epilogue inputs, scales, and the ends of row groups.
    pub fn given(&self) -> Vec<ProductTensor> {
        let inputs = self.epilogue().map_or(0, |fused| fused.inputs.len());
        let scales = match (self.all_scales(), self.int4_scales()) {
            (Some(_), _) => &[ProductTensor::ScalesA, ProductTensor::ScalesB][..],
            (_, Some(_)) => &[ProductTensor::ScalesB][..],
            _ => &[][..],
        };
        let inputs = (0..inputs).map(ProductTensor::Input);
        let ends = self.group_ends().map(|_| ProductTensor::Ends);
        [ProductTensor::A, ProductTensor::B]
            .into_iter()
            .chain(inputs)
            .chain(scales.iter().copied())
            .chain(ends)
            .collect()
    }

    /// The outputs: D and the reductions of rows or columns.
    pub fn outputs(&self) -> Vec<ProductTensor> {
        let kept = (0..self.reductions().count()).map(ProductTensor::Reduction);
        [ProductTensor::D].into_iter().chain(kept).collect()
    }
}

/// A running reduction of a row or of a column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gathered {
    value: f64,
    bound: f64,
    size: f64,
    count: u64,
}

impl Gathered {
    pub(crate) fn add(&mut self, by: &EpilogueReduction, number: (f64, f64)) {
        let (value, off) = by.of.value_of(&[number]);
        self.count += 1;
        if by.statistic == Statistic::Sum {
            self.value += value;
            self.size += value.abs() + off;
            self.bound += off;
        } else {
            self.value = if self.count == 1 { value } else { greater(self.value, value) };
            // With error bounds, another number may be the largest one.
            self.bound = self.bound.max(off);
        }
    }

    pub(crate) fn expected(
        self,
        problem: &Problem,
        number: usize,
        [at, matrix]: [i64; 2],
    ) -> Result<Option<Expected>, LayoutError> {
        let (Some(by), Some(results)) = (problem.reductions().nth(number), problem.kept(number)) else {
            return Ok(None);
        };
        let place = results.place(if by.each == Each::Row { [at, 0, matrix] } else { [0, at, matrix] })?;
        let sum = by.statistic == Statistic::Sum;
        let value = if self.count == 0 { by.statistic.neutral() } else { self.value };
        // Each addition rounds the running sum.
        let added = if sum { self.size * (self.count as f64 + 1.0) * 2_f64.powi(-24) } else { 0.0 };
        let bound = self.bound + added + meaning::step(Element::F32, value);
        Ok(Some(Expected { place, value, bound, element: Element::F32 }))
    }
}
