//! Checks that the kernel of a program computes what the program means, at given sizes.
//!
//! Law: the interpreter of tile programs runs the program and the interpreter of kernels runs the
//! kernel, on the same numbers and under every schedule. Every element that the program writes is
//! compared. A check proves nothing about other sizes and numbers.
//!
//! Scalar arguments of the launch are 3 for integers and 0.75 for floating-point numbers. Inputs
//! are multiples of 1/8 in [-1,1], so that products of two and sums of many are exact in f32; small
//! 8-bit integers; and integers of 32 and 64 bits that count from 0, so that they are distinct as
//! indices.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter};
use tilewright_kernel::program::scalar::Scalar as Passed;

use crate::compile::Compiled;
use crate::error::TileError;
use crate::interpret::{self, Number};
use crate::program::statement::definitions;
use crate::program::{Program, Role, ValueId};

/// The result of a check.
///
/// ```
/// use tilewright_tile::{LIBRARY, Program};
///
/// let entry = LIBRARY[0];
/// let report = Program::read(entry.name, entry.text)?.compile(None)?.check(&[("M", 3)]).expect("nothing is found");
/// assert_eq!((report.outputs[0].tensor.as_str(), report.outputs[0].compared), ("y", 3 * 4096));
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The result of the run on the interpreter of kernels.
    pub checked: Checked,
    /// The comparison of each tensor that the program writes, in the order of declaration.
    pub outputs: Vec<Compared>,
}

/// The comparison of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Its name.
    pub tensor: String,
    /// The number of its elements that were compared.
    pub compared: u64,
    /// The largest difference between an element of the kernel and of the program, divided by the
    /// largest magnitude that the program writes to this tensor; 0 if all elements are equal.
    pub farthest: f64,
    /// The tolerance: a relative difference up to it counts as rounding. See [`Compiled::check`].
    pub rounding: f64,
}

/// Why a check did not pass.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Unchecked {
    /// The program has no meaning at these sizes.
    Program(TileError),
    /// The interpreter of kernels refused the sizes, or found defects.
    Interpreter(CheckError),
    /// An element of the kernel differs from that of the program.
    Wrong {
        /// The tensor.
        tensor: String,
        /// The offset of the element in the tensor.
        offset: usize,
        /// The value that the kernel wrote.
        found: f64,
        /// The value that the program computes.
        wanted: f64,
        /// The tolerance, relative to the largest magnitude of the tensor.
        rounding: f64,
    },
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unchecked::Program(error) => error.fmt(f),
            Unchecked::Interpreter(error) => error.fmt(f),
            Unchecked::Wrong { tensor, offset, found, wanted, rounding } => {
                write!(f, "the element at offset {offset} of {tensor} is {found}, and the program means {wanted}")?;
                if *rounding > 0.0 { write!(f, "; rounding explains a difference of {rounding}") } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for Unchecked {}

tilewright_layout::from_variants!(Unchecked: Program(TileError), Interpreter(CheckError));

/// The options of [`Compiled::check`]. A list of sizes converts to options with contents that the
/// check chooses.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// Sizes, each by its name, in elements.
    pub sizes: &'a [(&'a str, i64)],
    /// The bytes of some tensors and scalar arguments, by their names. The check chooses the
    /// others.
    pub contents: &'a [(&'a str, &'a [u8])],
}

impl<'a, 'n: 'a> From<&'a [(&'n str, i64)]> for CheckOptions<'a> {
    fn from(sizes: &'a [(&'n str, i64)]) -> Self {
        CheckOptions { sizes, contents: &[] }
    }
}

impl<'a, 'n: 'a, const N: usize> From<&'a [(&'n str, i64); N]> for CheckOptions<'a> {
    fn from(sizes: &'a [(&'n str, i64); N]) -> Self {
        sizes.as_slice().into()
    }
}

impl<'a, 'n: 'a> From<&'a Vec<(&'n str, i64)>> for CheckOptions<'a> {
    fn from(sizes: &'a Vec<(&'n str, i64)>) -> Self {
        sizes.as_slice().into()
    }
}

/// The bytes of tensors, by their names.
pub type TensorBytes = Vec<(String, Vec<u8>)>;

impl Compiled {
    /// Runs the kernel on the interpreter at given sizes, and compares the results with those of
    /// the program.
    ///
    /// Integers must be equal. Floating-point numbers may differ, because sums are added in another
    /// order and functions are approximated. The tolerance is relative to the largest magnitude of
    /// the tensor: two units of the last digit of the narrowest floating-point type in the program,
    /// 2^-16 if all are f32 or wider, and 2^-44 if all are f64. The tolerance is no bound of the
    /// rounding error, so the report gives the largest difference.
    ///
    /// Errors: a size is missing or not admitted; the contents of a tensor have another number of
    /// bytes than the tensor; the run would take too much work; the kernel has a defect; an element
    /// differs from that of the program.
    pub fn check<'a>(&self, options: impl Into<CheckOptions<'a>>) -> Result<Report, Unchecked> {
        let CheckOptions { sizes, contents } = options.into();
        let setup = |error| Unchecked::Interpreter(CheckError::Setup(error));
        let mut interpreter = Interpreter::new(self.kernel().program(), sizes).map_err(setup)?;
        let is_number = |name: &str| self.source.scalars().iter().any(|own| own.name == name);
        for (name, bytes) in contents.iter().filter(|(name, _)| !is_number(name)) {
            interpreter.bytes(*name, bytes).map_err(setup)?;
        }
        // The kernel does not have a scalar argument that the program does not use.
        let passed = &self.kernel().program().scalars;
        let takes = |name: &str| passed.iter().any(|own| matches!(own, Passed::Given { name: own, .. } if own == name));
        for scalar in self.source.scalars().iter().filter(|own| takes(&own.name)) {
            let bits = match contents.iter().find(|(name, _)| *name == scalar.name) {
                Some((_, bytes)) => bits_of(bytes),
                None => number_of_check(scalar.element),
            };
            interpreter.number_bits(&scalar.name, scalar.element, bits).map_err(setup)?;
        }
        let (inputs, meant) = self.meant_on(sizes, contents)?;
        for (name, bytes) in &inputs {
            interpreter.bytes(name.as_str(), bytes).map_err(setup)?;
        }
        let checked = interpreter.check().map_err(CheckError::Findings)?;
        let outputs = meant.compared(|tensor| checked.run.bytes(tensor).map(<[u8]>::to_vec).map_err(setup))?;
        Ok(Report { checked, outputs })
    }

    /// The contents with which a check fills all tensors except outputs, by their names, and the
    /// results that the program computes from them. Use it to check a run of the kernel elsewhere,
    /// such as on a device.
    ///
    /// ```
    /// use tilewright_tile::{LIBRARY, Program};
    ///
    /// let entry = LIBRARY[0];
    /// let compiled = Program::read(entry.name, entry.text)?.compile(None)?;
    /// let (inputs, meant) = compiled.meant(&[("M", 1)]).expect("a row is no work");
    /// assert_eq!((inputs[0].0.as_str(), inputs[0].1.len()), ("x", 2 * 4096));
    /// // A result of zeros is not a softmax.
    /// assert!(meant.compared(|_| Ok::<_, tilewright_tile::Unchecked>(vec![0; 2 * 4096])).is_err());
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: a size is missing or not admitted; the run would take too much work.
    pub fn meant(&self, sizes: &[(&str, i64)]) -> Result<(TensorBytes, Meant), Unchecked> {
        self.meant_on(sizes, &[])
    }

    fn meant_on(&self, sizes: &[(&str, i64)], given: &[(&str, &[u8])]) -> Result<(TensorBytes, Meant), Unchecked> {
        let setup = |error| Unchecked::Interpreter(CheckError::Setup(error));
        let interpreter = Interpreter::new(self.kernel().program(), sizes).map_err(setup)?;
        let (mut inputs, mut contents) = (Vec::new(), Vec::new());
        for (number, tensor) in self.source.tensors().iter().enumerate() {
            if tensor.role == Role::Output {
                continue;
            }
            let (name, element) = (tensor.name.as_str(), tensor.element);
            let width = element.bytes() as usize;
            let count = interpreter.bytes_of(name).map_err(setup)? / width;
            if let Some((_, bytes)) = given.iter().find(|(own, _)| *own == name) {
                let numbers = bytes.chunks_exact(width).map(|bytes| Number::of_bits(bits_of(bytes), element));
                inputs.push((name.to_string(), numbers.collect::<Vec<_>>()));
                contents.push((name.to_string(), bytes.to_vec()));
                continue;
            }
            let numbers: Vec<f64> = (0..count).map(|at| number_at(element, at, number)).collect();
            let bytes = numbers.iter().flat_map(|value| element.of_f64(*value).to_le_bytes().into_iter().take(width));
            contents.push((name.to_string(), bytes.collect::<Vec<u8>>()));
            inputs.push((name.to_string(), numbers.iter().map(|value| Number::of(*value, element)).collect()));
        }
        for scalar in self.source.scalars() {
            let bits = match given.iter().find(|(own, _)| *own == scalar.name) {
                Some((_, bytes)) => bits_of(bytes),
                None => number_of_check(scalar.element),
            };
            inputs.push((scalar.name.clone(), vec![Number::of_bits(bits, scalar.element)]));
        }
        let meant = interpret::run_numbers(&self.source, sizes, &inputs)?;
        let element = |tensor: &str| interpret::element_of(&self.source, tensor);
        let outputs = meant.into_iter().map(|(tensor, wanted)| (element(&tensor), tensor, wanted)).collect();
        Ok((contents, Meant { outputs, rounding: rounding(&self.source) }))
    }
}

/// The bits of the scalar argument that a check passes, by its type: 3 for i32, 0.75 for f32.
pub fn number_of_check(element: Element) -> u64 {
    element.of_f64(if element.is_float() { 0.75 } else { 3.0 })
}

/// The bits of a number, from its bytes in little-endian order.
fn bits_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The contents that the kernel should write to each tensor: see [`Compiled::meant`].
pub struct Meant {
    outputs: Vec<(Element, String, Vec<Option<Number>>)>,
    rounding: f64,
}

impl Meant {
    /// Compares the contents of each tensor after a run of the kernel.
    ///
    /// Errors: an element differs from that of the program; an error of `left`.
    pub fn compared<E: From<Unchecked>>(
        &self,
        mut left: impl FnMut(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<Compared>, E> {
        let mut found = Vec::new();
        for (element, tensor, wanted) in &self.outputs {
            let bytes = left(tensor)?;
            found.push(compared(tensor.clone(), (*element, &bytes), wanted, self.rounding)?);
        }
        Ok(found)
    }
}

/// Compares the contents of a tensor after a run of the kernel with those that the program
/// computes.
fn compared(
    tensor: String,
    (element, bytes): (Element, &[u8]),
    wanted: &[Option<Number>],
    rounding: f64,
) -> Result<Compared, Unchecked> {
    let rounding = if element.is_float() { rounding } else { 0.0 };
    // Integers of 64 bits are compared exactly. They become f64 in messages alone.
    let real = |number: Number| element.to_f64(number.to_bits(element));
    let written = wanted.iter().flatten().map(|value| real(*value)).filter(|value| value.is_finite());
    let greatest = written.fold(0.0_f64, |greatest, value| greatest.max(value.abs()));
    let (mut compared, mut farthest) = (0, 0.0_f64);
    for (offset, (bytes, wanted)) in bytes.chunks_exact(element.bytes() as usize).zip(wanted).enumerate() {
        let Some(wanted) = *wanted else { continue };
        let own = Number::of_bits(bits_of(bytes), element);
        compared += 1;
        let (found, number) = (real(own), wanted);
        let wanted = real(wanted);
        if own == number || element.is_float() && found == wanted || (found.is_nan() && wanted.is_nan()) {
            continue;
        }
        let apart = (found - wanted).abs();
        // This is false if one of them is NaN or infinite.
        if apart <= rounding * greatest {
            farthest = farthest.max(apart / greatest);
            continue;
        }
        return Err(Unchecked::Wrong { tensor, offset, found, wanted, rounding: rounding * greatest });
    }
    Ok(Compared { tensor, compared, farthest, rounding })
}

/// The value with which a check fills the element at an offset of a tensor. `tensor` is the number
/// of the tensor.
fn number_at(element: Element, at: usize, tensor: usize) -> f64 {
    match element {
        Element::I32 => return (at as i32).into(),
        Element::I64 => return at as f64,
        _ => {}
    }
    // A pseudorandom number: the high bits after two multiplications.
    let state = (at as u64 + 1).wrapping_mul(6_364_136_223_846_793_005);
    let state = state.wrapping_add((tensor as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let chance = (state.wrapping_mul(0xd134_2543_de82_ef95) >> 40) as f64;
    match element {
        Element::I8 => chance % 16.0 - 8.0,
        Element::U8 => chance % 16.0,
        _ => (chance % 17.0 - 8.0) / 8.0,
    }
}

/// The tolerance for rounding, relative to the largest number of a tensor.
fn rounding(program: &Program) -> f64 {
    let of = |value: ValueId| match program.type_of(value).element {
        Element::E5M2 => 2.0_f64.powi(-1),
        Element::E4M3 => 2.0_f64.powi(-2),
        Element::Bf16 => 2.0_f64.powi(-6),
        Element::F16 => 2.0_f64.powi(-9),
        Element::F32 => 2.0_f64.powi(-16),
        Element::F64 => 2.0_f64.powi(-44),
        _ => 0.0,
    };
    definitions(&program.body).map(|own| of(own.0)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_that_is_another_one_is_found() {
        let bytes: Vec<u8> = [1.0_f32, -2.0, f32::NAN].iter().flat_map(|value| value.to_le_bytes()).collect();
        let of = |wanted: [f64; 3]| {
            compared("y".to_string(), (Element::F32, &bytes), &wanted.map(Number::real).map(Some), 2.0_f64.powi(-16))
        };
        let equal = of([1.0, -2.0, f64::NAN]).unwrap();
        assert_eq!((equal.compared, equal.farthest), (3, 0.0));
        let near = of([1.0, -2.0 + 2.0_f64.powi(-20), f64::NAN]).unwrap();
        assert!(near.farthest > 0.0 && near.farthest < near.rounding, "{near:?}");
        for wanted in
            [[1.001, -2.0, f64::NAN], [f64::NAN, -2.0, f64::NAN], [1.0, -2.0, 1.0], [1.0, f64::INFINITY, f64::NAN]]
        {
            assert!(matches!(of(wanted), Err(Unchecked::Wrong { .. })), "{wanted:?}");
        }
        // An integer must be equal.
        let two = 2_i32.to_le_bytes();
        let of = |wanted: f64| compared("y".to_string(), (Element::I32, &two), &[Some(Number::real(wanted))], 0.5);
        assert!(of(2.0).is_ok() && of(3.0).is_err());
    }
}
