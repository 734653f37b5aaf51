//! What a product should leave, element by element, and products run by the interpreter.
//!
//! Law: the loop here knows nothing of tiles, threads or instructions. It evaluates layouts at
//! indices and adds in f64, and says how far the roundings of the types may move a result.

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter, SetupError};
use tilewright_layout::LayoutError;

use super::byproduct::{ByProduct, Each};
use super::images::Images;
use super::matrix::Matrix;
use super::problem::Problem;
use super::scales::BLOCK;
use super::step::{Operand, Side, Step};
use super::{Product, Products};
use crate::meaning::{self, Unchecked, any_numbers, bits_at};
use crate::reduce::Statistic;

/// What an element of D should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Where it is in the tensor of D, in elements.
    pub place: i64,
    /// The value, as f64 computes it.
    pub value: f64,
    /// How far rounding may move it.
    pub bound: f64,
    element: Element,
}

impl Expected {
    /// How far bits that were found are from it, in units of the bound; 0 where they are equal.
    ///
    /// Errors: they are farther away than that ([`Unchecked::Wrong`]).
    pub fn distance(&self, found: u64) -> Result<f64, Unchecked> {
        let number = meaning::value(self.element, found);
        let greatest = greatest(self.element);
        // Floating-point numbers of 8 bits and integers end at their greatest number, others at
        // infinity.
        let ends = self.element.bits() == 8 || !self.element.is_float();
        let value = if ends { self.value.clamp(-greatest, greatest) } else { self.value };
        if number == value || number.is_nan() && value.is_nan() {
            return Ok(0.0);
        }
        // Where sums may leave the range of f32 on the way, nothing is said.
        if value.is_finite() && !self.bound.is_finite() {
            return Ok(0.0);
        }
        let beyond = number.is_infinite() && !ends && value.abs() + self.bound >= greatest;
        let off = if beyond && number.signum() == value.signum() { 0.0 } else { (number - value).abs() };
        if off.is_nan() || off > self.bound {
            return Err(Unchecked::Wrong { element: self.place as usize, found: number, wanted: value });
        }
        Ok(if off == 0.0 { 0.0 } else { off / self.bound })
    }
}

/// From here on bf16 rounds to infinity: 2^128 less half of its last place.
const PARTED: f64 = 511.0 * 664_613_997_892_457_936_451_903_530_140_172_288.0;

/// The greatest number of a type.
fn greatest(element: Element) -> f64 {
    match element {
        Element::F16 => 65_504.0,
        Element::Bf16 => half::bf16::MAX.to_f64(),
        Element::E4M3 => 448.0,
        Element::E5M2 => 57_344.0,
        Element::I32 => f64::from(i32::MAX),
        _ => f64::from(f32::MAX),
    }
}

/// What memory of D has before a product of groups, which may leave some of it.
const POISON: u8 = 0xa5;

/// Bits of an element of a tensor, counted from its beginning.
type Bits<'a> = dyn Fn(Operand, i64) -> u64 + 'a;

impl Problem {
    /// The sum of a row of A and a column of B, and how far roundings may move it.
    fn sum(&self, input: &Bits<'_>, [row, column, matrix]: [i64; 3]) -> Result<(f64, f64), LayoutError> {
        let factor = |operand, at: i64| {
            let bits = input(operand, at);
            // Instructions for tf32 leave out the low bits.
            let bits = if self.is_tf32() { bits & 0xffff_e000 } else { bits };
            meaning::value(self.factors(), bits)
        };
        let exact = self.factors() == Element::F32 && !self.is_tf32();
        let (mut sum, mut size, mut greatest) = (0.0, 0.0, 0.0_f64);
        let mut scale = 1.0;
        for k in 0..self.sizes()[2] {
            let at = self.a().place([row, k, matrix])?;
            // Of borders it is 0.
            let at = self.images().map_or(Some(at), |images| images.place(at));
            let a = at.map_or(0.0, |at| factor(Operand::A, at));
            let b = factor(Operand::B, self.b().place([column, k, matrix])?);
            if k % BLOCK == 0 {
                scale = self.scale(input, [row, column, matrix], k / BLOCK)?;
            }
            sum += a * b * scale;
            size += (a * b * scale).abs();
            greatest = greatest.max(a.abs()).max(b.abs());
            // What bf16 rounds to infinity has no parts.
            if exact && !(greatest < PARTED && a.is_finite() && b.is_finite()) {
                sum = f64::NAN;
            }
        }
        let steps = self.sizes()[2] as f64;
        let off = match self.factors() {
            Element::I8 | Element::U8 => 0.0,
            // Instructions of 32 steps along K keep 13 bits of the greatest of their terms.
            Element::E4M3 | Element::E5M2 if !self.is_promoted() => {
                size * ((steps / 32.0).ceil() + 1.0) * 2_f64.powi(-12)
            }
            // Of each block; then each block is scaled and added in f32.
            Element::E4M3 | Element::E5M2 => {
                let blocks = (steps / BLOCK as f64).ceil();
                size * (5.0 * 2_f64.powi(-12) + (blocks + 3.0) * 2_f64.powi(-24))
            }
            // Six products of parts, without the least.
            Element::F32 if exact => {
                size * ((6.0 * steps + 2.0) * 2_f64.powi(-24) + 2_f64.powi(-22)) + greatest * steps * 2_f64.powi(-130)
            }
            // Each addition rounds what has been added up.
            _ => size * (steps + 2.0) * 2_f64.powi(-24) + steps * 2_f64.powi(-149),
        };
        Ok((sum, if size > f64::from(f32::MAX) { f64::INFINITY } else { off }))
    }

    /// The scales of A and of B of a block along K, multiplied; 1 where there are none.
    fn scale(&self, input: &Bits<'_>, [row, column, matrix]: [i64; 3], block: i64) -> Result<f64, LayoutError> {
        let Some(scales) = self.scales() else { return Ok(1.0) };
        let [m, n, _] = self.multiplied();
        let of = |side, matrix_of: &Matrix, at: i64, extent: i64| {
            let own = if matrix_of.extents()[0] == extent { at } else { at / BLOCK };
            let bits = input(Operand::Scales(side), matrix_of.place([own, block, matrix])?);
            Ok(meaning::value(Element::F32, bits))
        };
        Ok(of(Side::A, &scales.a, row, m)? * of(Side::B, &scales.b, column, n)?)
    }

    /// The number of D at a row, a column and a matrix before it is rounded to its type, and how
    /// far roundings may move it.
    fn number(&self, input: &Bits<'_>, [row, column, matrix]: [i64; 3]) -> Result<(f64, f64), LayoutError> {
        let columns = match self.pairs() {
            None => vec![column],
            Some(pairs) => pairs.columns(column, self.sizes()[1]).to_vec(),
        };
        let sums = columns.iter().map(|column| self.sum(input, [row, *column, matrix]));
        let mut elements = sums.collect::<Result<Vec<_>, _>>()?;
        let Some(fused) = self.function() else { return Ok(elements[0]) };
        for (number, matrix_of) in fused.inputs.iter().enumerate() {
            let bits = input(Operand::Input(number), matrix_of.place([row, column, matrix])?);
            elements.push((meaning::value(matrix_of.element(), bits), 0.0));
        }
        Ok(fused.expression.value_of(&elements))
    }

    /// What the element of D at a row, a column and a matrix should be, where `input` has the bits
    /// of an element of A, B, scales or an input of the function, counted from the beginning of its
    /// tensor. Of rows in groups the matrix is that of the group ([`Problem::group_of`]).
    ///
    /// Errors: an offset is not representable.
    pub fn expected(&self, input: &Bits<'_>, at: [i64; 3]) -> Result<Expected, LayoutError> {
        let (value, bound) = self.number(input, at)?;
        self.rounded((value, bound), at)
    }

    fn rounded(&self, (value, bound): (f64, f64), at: [i64; 3]) -> Result<Expected, LayoutError> {
        let element = self.result();
        let last = if element.is_float() {
            meaning::step(element, value)
        } else if self.sums() == element && self.function().is_none() {
            0.0
        } else {
            // To an integer, toward zero.
            1.0
        };
        Ok(Expected { place: self.d().place(at)?, value, bound: bound + last, element })
    }

    /// What a number of a by-product should be, of a row or a column of a matrix, or of a group;
    /// none of a row of no group.
    ///
    /// Errors: an offset is not representable.
    pub fn expected_by_product(
        &self,
        input: &Bits<'_>,
        number: usize,
        [at, matrix]: [i64; 2],
    ) -> Result<Option<Expected>, LayoutError> {
        let Some(by) = self.by_products().nth(number) else { return Ok(None) };
        let [m, n, _] = self.sizes();
        let group = |row: i64| match self.groups() {
            None => Some(matrix),
            Some(_) => self.group_of(row, |group| i64::from(input(Operand::Ends, group) as u32 as i32)),
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

    /// The matrix of an operand that is given or written: none of a workspace.
    pub fn matrix(&self, operand: Operand) -> Option<&Matrix> {
        match operand {
            Operand::A => Some(self.images().map_or(self.a(), Images::matrix)),
            Operand::B => Some(self.b()),
            Operand::D => Some(self.d()),
            Operand::Input(number) => self.function().and_then(|fused| fused.inputs.get(number)),
            Operand::Scales(side) => self.scales().map(|scales| if side == Side::A { &scales.a } else { &scales.b }),
            Operand::Ends => self.ends(),
            Operand::ByProduct(number) => self.kept(number),
            Operand::Workspace(_) => None,
        }
    }

    /// A, B, the inputs of the function, scales, and where groups end.
    pub fn given(&self) -> Vec<Operand> {
        let inputs = self.function().map_or(0, |fused| fused.inputs.len());
        let scales = self.scales().map_or(&[][..], |_| &[Operand::Scales(Side::A), Operand::Scales(Side::B)]);
        let inputs = (0..inputs).map(Operand::Input);
        let ends = self.ends().map(|_| Operand::Ends);
        [Operand::A, Operand::B].into_iter().chain(inputs).chain(scales.iter().copied()).chain(ends).collect()
    }

    /// D and the by-products.
    pub fn written_operands(&self) -> Vec<Operand> {
        let kept = (0..self.by_products().count()).map(Operand::ByProduct);
        [Operand::D].into_iter().chain(kept).collect()
    }
}

/// Numbers of a row or of a column, of which one is made.
#[derive(Debug, Clone, Copy, Default)]
struct Gathered {
    value: f64,
    bound: f64,
    size: f64,
    count: u64,
    /// Whether there is a number among them.
    any: bool,
}

impl Gathered {
    fn add(&mut self, by: &ByProduct, number: (f64, f64)) {
        let (value, off) = by.of.value_of(&[number]);
        self.count += 1;
        if by.statistic == Statistic::Sum {
            self.value += value;
            self.size += value.abs() + off;
            self.bound += off;
        } else if !value.is_nan() {
            self.value = if self.any { self.value.max(value) } else { value };
            // With error bounds, the greatest number may be another one.
            self.bound = self.bound.max(off);
            self.any = true;
        }
    }

    fn expected(
        self,
        problem: &Problem,
        number: usize,
        [at, matrix]: [i64; 2],
    ) -> Result<Option<Expected>, LayoutError> {
        let (Some(by), Some(lies)) = (problem.by_products().nth(number), problem.kept(number)) else {
            return Ok(None);
        };
        let place = lies.place(if by.each == Each::Row { [at, 0, matrix] } else { [0, at, matrix] })?;
        let sum = by.statistic == Statistic::Sum;
        let value = if sum || self.any { self.value } else { f64::NAN };
        // Each addition rounds what has been added up.
        let added = if sum { self.size * (self.count as f64 + 1.0) * 2_f64.powi(-24) } else { 0.0 };
        let bound = self.bound + added + meaning::step(Element::F32, value);
        Ok(Some(Expected { place, value, bound, element: Element::F32 }))
    }
}

/// What a check of a product looked at.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the interpreter executed, kernel by kernel.
    pub checked: Vec<Checked>,
    /// How many elements of D and of by-products were compared: all.
    pub compared: usize,
    /// The greatest difference from the definition, in units of the bound that rounding gives.
    pub worst: f64,
}

impl Product {
    /// Runs the kernels in the interpreter, on random numbers, under every schedule, and
    /// compares what they leave with the definition.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::gemm::{Matrix, Problem, Product};
    ///
    /// // The copy engine cannot read rows of 9 elements: first they are moved to longer ones.
    /// let product = Product::new(&Problem::new(Element::Bf16, [10, 16, 9]).unwrap()).unwrap();
    /// assert_eq!(product.kernels().len(), 3);
    /// assert_eq!(product.check().unwrap().compared, 160);
    /// ```
    ///
    /// Errors: the interpreter finds a defect; D is not what the definition says.
    pub fn check(&self) -> Result<Report, Unchecked> {
        let problem = self.problem();
        let numbers = |operand: Operand, element: Element, count: usize| {
            let seed = match operand {
                Operand::A => 1,
                Operand::B => 2,
                Operand::Input(number) => number as u64 + 3,
                Operand::Scales(side) => 101 + side as u64,
                Operand::Ends => return problem.any_ends(5),
                Operand::D | Operand::ByProduct(_) | Operand::Workspace(_) => 0,
            };
            any_numbers(element, count, seed)
        };
        self.check_on(&numbers)
    }

    /// As [`Product::check`], where `numbers` gives the bytes of so many elements of a tensor.
    ///
    /// Errors: as [`Product::check`].
    pub fn check_on(&self, numbers: &dyn Fn(Operand, Element, usize) -> Vec<u8>) -> Result<Report, Unchecked> {
        let problem = self.problem();
        let mut memory = Memory::default();
        memory.give(0, problem, numbers)?;
        // What a kernel writes a part of keeps the rest: rows of no group, tiles that are shared.
        let checked = memory.run(self.steps(), problem.groups().is_some() || self.plan().tail > 0)?;
        let (compared, worst) = memory.compare(0, problem)?;
        Ok(Report { checked, compared, worst })
    }
}

impl Products {
    /// Runs the kernels in the interpreter, on numbers by chance, under every schedule, and
    /// compares what they leave in all problems with the definition.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::gemm::{Problem, Problems, Products};
    ///
    /// let problem = |sizes| Problem::new(Element::Bf16, sizes).unwrap();
    /// let list = Problems::new(vec![problem([10, 16, 72]), problem([70, 8, 200])]).unwrap();
    /// assert_eq!(Products::new(&list).unwrap().check().unwrap().compared, 10 * 16 + 70 * 8);
    /// ```
    ///
    /// Errors: the interpreter finds a defect; a D is not what the definition says.
    pub fn check(&self) -> Result<Report, Unchecked> {
        self.check_on(&|problem, operand, element, count| {
            let seed = match operand {
                Operand::A => 1,
                Operand::B => 2,
                Operand::Input(number) => number as u64 + 3,
                _ => 0,
            };
            any_numbers(element, count, 1000 * problem as u64 + seed)
        })
    }

    /// As [`Products::check`], where `numbers` gives the bytes of so many elements of a tensor of a
    /// problem.
    ///
    /// Errors: as [`Products::check`].
    pub fn check_on(&self, numbers: &dyn Fn(usize, Operand, Element, usize) -> Vec<u8>) -> Result<Report, Unchecked> {
        let mut memory = Memory::default();
        for (at, problem) in self.problems().problems().iter().enumerate() {
            memory.give(at, problem, &|operand, element, count| numbers(at, operand, element, count))?;
        }
        let checked = memory.run(self.steps(), false)?;
        let (mut compared, mut worst) = (0, 0.0_f64);
        for (at, problem) in self.problems().problems().iter().enumerate() {
            let (own, distance) = memory.compare(at, problem)?;
            (compared, worst) = (compared + own, worst.max(distance));
        }
        Ok(Report { checked, compared, worst })
    }
}

/// The tensors of problems, as bytes: what is given, and what kernels have left.
#[derive(Default)]
struct Memory {
    tensors: Vec<((usize, Operand), Vec<u8>)>,
}

fn setup(error: SetupError) -> Unchecked {
    Unchecked::Interpreter(CheckError::Setup(error))
}

impl Memory {
    /// The tensors that are given of a problem.
    fn give(
        &mut self,
        at: usize,
        problem: &Problem,
        numbers: &dyn Fn(Operand, Element, usize) -> Vec<u8>,
    ) -> Result<(), Unchecked> {
        for operand in problem.given() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let count = matrix.reach().map_err(Unchecked::Layout)?;
            self.tensors.push(((at, operand), numbers(operand, matrix.element(), count as usize)));
        }
        Ok(())
    }

    fn of(&self, at: usize, operand: Operand) -> Option<&Vec<u8>> {
        self.tensors.iter().find(|(known, _)| *known == (at, operand)).map(|(_, bytes)| bytes)
    }

    /// Runs kernels one after the other; `parts` says that D keeps what they do not write.
    fn run(&mut self, steps: &[Step], parts: bool) -> Result<Vec<Checked>, Unchecked> {
        let mut checked = Vec::new();
        for step in steps {
            let mut interpreter = Interpreter::new(step.kernel().program(), step.sizes()).map_err(setup)?;
            // A piece of the workspace belongs to all problems.
            let all: Vec<(usize, Operand)> = (step.problems().zip(step.operands()))
                .map(
                    |(at, operand)| {
                        if matches!(operand, Operand::Workspace(_)) { (0, *operand) } else { (at, *operand) }
                    },
                )
                .collect();
            let (from, written) = all.split_at(step.read_and_written().0.len());
            for (at, (number, operand)) in written.iter().enumerate().filter(|_| parts) {
                if matches!(operand, Operand::D | Operand::ByProduct(_)) {
                    let bytes = interpreter.bytes_of(from.len() + at).map_err(setup)?;
                    let before = self.of(*number, *operand);
                    let before = before.map_or_else(|| vec![POISON; bytes], Vec::clone);
                    interpreter.bytes(from.len() + at, &before).map_err(setup)?;
                }
            }
            for (tensor, (at, operand)) in from.iter().enumerate() {
                let Some(bytes) = self.of(*at, *operand) else { continue };
                let mut bytes = bytes.clone();
                bytes.resize(interpreter.bytes_of(tensor).map_err(setup)?, 0);
                interpreter.bytes(tensor, &bytes).map_err(setup)?;
            }
            let found = interpreter.check();
            let found = found.map_err(|findings| Unchecked::Interpreter(CheckError::Findings(findings)))?;
            for (at, to) in written.iter().enumerate() {
                self.tensors.retain(|(known, _)| known != to);
                self.tensors.push((*to, found.run.bytes(from.len() + at).map_err(setup)?.to_vec()));
            }
            checked.push(found);
        }
        Ok(checked)
    }

    /// Compares D and by-products of a problem with the definition: how many numbers, and the
    /// greatest difference in units of its bound.
    fn compare(&self, own: usize, problem: &Problem) -> Result<(usize, f64), Unchecked> {
        let widths: Vec<(Operand, usize)> = problem
            .given()
            .into_iter()
            .map(|operand| (operand, problem.matrix(operand).map_or(1, |matrix| matrix.element().bytes() as usize)))
            .collect();
        let given: Vec<(Operand, usize, &Vec<u8>)> =
            widths.into_iter().filter_map(|(operand, width)| Some((operand, width, self.of(own, operand)?))).collect();
        let input = |operand: Operand, at: i64| {
            let found = given.iter().find(|(known, ..)| *known == operand);
            found.map_or(0, |(_, width, bytes)| bits_at(bytes, *width, at as usize))
        };
        let (mut worst, mut compared) = (0.0_f64, 0);
        let [m, n, _] = problem.sizes();
        let width = problem.result().bytes() as usize;
        let Some(left) = self.of(own, Operand::D) else { return Ok((compared, worst)) };
        for matrix in 0..problem.batch() {
            // Of rows in groups there is a number of each column for each group.
            let groups = problem.groups();
            let extent = |by: &ByProduct| if by.each == Each::Row { m } else { n * groups.unwrap_or(1) };
            let kept = problem.by_products().map(|by| (by, vec![Gathered::default(); extent(by) as usize]));
            let mut kept: Vec<(&ByProduct, Vec<Gathered>)> = kept.collect();
            let end = |group: i64| i64::from(input(Operand::Ends, group) as u32 as i32);
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let group = if groups.is_some() { problem.group_of(row, end) } else { Some(matrix) };
                let Some(matrix) = group else {
                    let place = problem.d().place([row, column, 0]).map_err(Unchecked::Layout)? as usize;
                    let poison = vec![POISON; width];
                    if left.get(place * width..(place + 1) * width) != Some(&poison[..]) {
                        let found = meaning::value(problem.result(), bits_at(left, width, place));
                        let wanted = meaning::value(problem.result(), bits_at(&poison, width, 0));
                        return Err(Unchecked::Wrong { element: place, found, wanted });
                    }
                    compared += 1;
                    continue;
                };
                let at = [row, column, matrix];
                let number = problem.number(&input, at).map_err(Unchecked::Layout)?;
                for (by, all) in &mut kept {
                    let column = column + groups.map_or(0, |_| n * matrix);
                    all[if by.each == Each::Row { row } else { column } as usize].add(by, number);
                }
                let wanted = problem.rounded(number, at).map_err(Unchecked::Layout)?;
                worst = worst.max(wanted.distance(bits_at(left, width, wanted.place as usize))?);
                compared += 1;
            }
            for (number, (by, all)) in kept.into_iter().enumerate() {
                let Some(left) = self.of(own, Operand::ByProduct(number)) else { continue };
                for (at, all) in (0..).zip(all) {
                    let place =
                        if groups.is_some() && by.each == Each::Column { [at % n, at / n] } else { [at, matrix] };
                    let kept = by.each == Each::Row && groups.is_some() && problem.group_of(at, end).is_none();
                    let wanted = all.expected(problem, number, place).map_err(Unchecked::Layout)?;
                    let Some(wanted) = wanted else { continue };
                    let found = bits_at(left, 4, wanted.place as usize);
                    // A row of no group keeps what it had.
                    if kept && found != bits_at(&[POISON; 4], 4, 0) {
                        let (found, poison) = (f32::from_bits(found as u32).into(), [POISON; 4]);
                        let wanted_value = f32::from_le_bytes(poison).into();
                        return Err(Unchecked::Wrong { element: wanted.place as usize, found, wanted: wanted_value });
                    }
                    worst = worst.max(if kept { 0.0 } else { wanted.distance(found)? });
                    compared += 1;
                }
            }
        }
        Ok((compared, worst))
    }
}
