//! What a product should leave, element by element, and products run by the interpreter.
//!
//! Law: the loop here knows nothing of tiles, threads or instructions. It evaluates layouts at
//! indices and adds in f64, and says how far the roundings of the types may move a result.

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter};
use tilewright_layout::LayoutError;

use super::Product;
use super::problem::Problem;
use super::step::Operand;
use crate::meaning::{self, Unchecked, any_numbers, bits_at};

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

impl Problem {
    /// What the element of D at a row, a column and a matrix should be, where `input` has the bits
    /// of an element of A, B or an input of the function, counted from the beginning of its tensor.
    ///
    /// Errors: an offset is not representable.
    pub fn expected(
        &self,
        input: &dyn Fn(Operand, i64) -> u64,
        [row, column, matrix]: [i64; 3],
    ) -> Result<Expected, LayoutError> {
        let factor = |operand, at: i64| {
            let bits = input(operand, at);
            // Instructions for tf32 leave out the low bits.
            let bits = if self.is_tf32() { bits & 0xffff_e000 } else { bits };
            meaning::value(self.factors(), bits)
        };
        let exact = self.factors() == Element::F32 && !self.is_tf32();
        let (mut sum, mut size, mut greatest) = (0.0, 0.0, 0.0_f64);
        for k in 0..self.sizes()[2] {
            let a = factor(Operand::A, self.a().place([row, k, matrix])?);
            let b = factor(Operand::B, self.b().place([column, k, matrix])?);
            sum += a * b;
            size += (a * b).abs();
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
            Element::E4M3 | Element::E5M2 => size * ((steps / 32.0).ceil() + 1.0) * 2_f64.powi(-12),
            // Six products of parts, without the least.
            Element::F32 if exact => {
                size * ((6.0 * steps + 2.0) * 2_f64.powi(-24) + 2_f64.powi(-22)) + greatest * steps * 2_f64.powi(-130)
            }
            // Each addition rounds what has been added up.
            _ => size * (steps + 2.0) * 2_f64.powi(-24) + steps * 2_f64.powi(-149),
        };
        let off = if size > f64::from(f32::MAX) { f64::INFINITY } else { off };
        let (value, bound) = match self.function() {
            None => (sum, off),
            Some(fused) => {
                let mut elements = vec![(sum, off)];
                for (number, matrix_of) in fused.inputs.iter().enumerate() {
                    let bits = input(Operand::Input(number), matrix_of.place([row, column, matrix])?);
                    elements.push((meaning::value(matrix_of.element(), bits), 0.0));
                }
                fused.expression.value_of(&elements)
            }
        };
        let element = self.result();
        let last = if element.is_float() {
            meaning::step(element, value)
        } else if self.sums() == element && self.function().is_none() {
            0.0
        } else {
            // To an integer, toward zero.
            1.0
        };
        Ok(Expected { place: self.d().place([row, column, matrix])?, value, bound: bound + last, element })
    }

    /// The matrix of an operand that is given or written: none of a workspace.
    pub fn matrix(&self, operand: Operand) -> Option<&super::Matrix> {
        match operand {
            Operand::A => Some(self.a()),
            Operand::B => Some(self.b()),
            Operand::D => Some(self.d()),
            Operand::Input(number) => self.function().and_then(|fused| fused.inputs.get(number)),
            Operand::Workspace(_) => None,
        }
    }

    /// A, B and the inputs of the function.
    pub fn given(&self) -> Vec<Operand> {
        let inputs = self.function().map_or(0, |fused| fused.inputs.len());
        [Operand::A, Operand::B].into_iter().chain((0..inputs).map(Operand::Input)).collect()
    }
}

/// What a check of a product looked at.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the interpreter executed, kernel by kernel.
    pub checked: Vec<Checked>,
    /// How many elements of D were compared: all.
    pub compared: usize,
    /// The greatest difference from the definition, in units of the bound that rounding gives.
    pub worst: f64,
}

impl Product {
    /// Runs the kernels in the interpreter, on numbers by chance, under every schedule, and
    /// compares what they leave with the definition.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::gemm::{Matrix, Problem, Product};
    ///
    /// // Rows of 9 elements, which the copy engine cannot read: they are moved to longer ones before.
    /// let product = Product::new(&Problem::new(Element::Bf16, [10, 16, 9]).unwrap()).unwrap();
    /// assert_eq!(product.kernels().len(), 3);
    /// assert_eq!(product.check().unwrap().compared, 160);
    /// ```
    ///
    /// Errors: the interpreter finds a defect; D is not what the definition says.
    pub fn check(&self) -> Result<Report, Unchecked> {
        let numbers = |operand: Operand, element: Element, count: usize| {
            let seed = match operand {
                Operand::A => 1,
                Operand::B => 2,
                Operand::Input(number) => number as u64 + 3,
                Operand::D | Operand::Workspace(_) => 0,
            };
            any_numbers(element, count, seed)
        };
        self.check_on(&numbers)
    }

    /// As [`Product::check`], where `numbers` gives the bytes of so many elements of a tensor.
    ///
    /// Errors: as there.
    pub fn check_on(&self, numbers: &dyn Fn(Operand, Element, usize) -> Vec<u8>) -> Result<Report, Unchecked> {
        let problem = self.problem();
        let setup = |error| Unchecked::Interpreter(CheckError::Setup(error));
        let mut memory: Vec<(Operand, Vec<u8>)> = Vec::new();
        for operand in problem.given() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let count = matrix.reach().map_err(Unchecked::Layout)?;
            memory.push((operand, numbers(operand, matrix.element(), count as usize)));
        }
        let given = memory.len();
        let mut checked = Vec::new();
        for step in self.steps() {
            let mut interpreter = Interpreter::new(step.kernel().program(), &[]).map_err(setup)?;
            let Some((to, from)) = step.operands().split_last() else { continue };
            for (tensor, operand) in from.iter().enumerate() {
                let Some((_, bytes)) = memory.iter().find(|(known, _)| known == operand) else { continue };
                let mut bytes = bytes.clone();
                bytes.resize(interpreter.bytes_of(tensor).map_err(setup)?, 0);
                interpreter.bytes(tensor, &bytes).map_err(setup)?;
            }
            let found = interpreter.check();
            let found = found.map_err(|findings| Unchecked::Interpreter(CheckError::Findings(findings)))?;
            memory.push((*to, found.run.bytes(from.len()).map_err(setup)?.to_vec()));
            checked.push(found);
        }
        let of = |operand: Operand| memory.iter().find(|(known, _)| *known == operand).map(|(_, bytes)| bytes);
        let widths: Vec<usize> = memory[..given]
            .iter()
            .map(|(operand, _)| problem.matrix(*operand).map_or(1, |matrix| matrix.element().bytes() as usize))
            .collect();
        let input = |operand: Operand, at: i64| {
            let found = memory[..given].iter().position(|(known, _)| *known == operand);
            found.map_or(0, |found| bits_at(&memory[found].1, widths[found], at as usize))
        };
        let (mut worst, mut compared) = (0.0_f64, 0);
        let [m, n, _] = problem.sizes();
        let width = problem.result().bytes() as usize;
        let Some(left) = of(Operand::D) else { return Ok(Report { checked, compared, worst }) };
        for matrix in 0..problem.batch() {
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let wanted = problem.expected(&input, [row, column, matrix]).map_err(Unchecked::Layout)?;
                worst = worst.max(wanted.distance(bits_at(left, width, wanted.place as usize))?);
                compared += 1;
            }
        }
        Ok(Report { checked, compared, worst })
    }
}
