//! What a kernel of the library computes, as a plain loop.
//!
//! Law: a kernel leaves in its output what the loop here does, within the rounding of its types.
//! The loop knows nothing of tiles, threads or instructions: it evaluates layouts at indices and
//! computes in f64.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter};
use tilewright_layout::Layout;

use crate::planned::Planned;

/// What a kernel computes.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// `destination[to(i)] = source[from(i)]`, converted where the types differ.
    Relayout {
        /// Where elements are in the source.
        from: Box<Layout>,
        /// Their type there.
        source: Element,
        /// Where they go.
        to: Box<Layout>,
        /// Their type then.
        destination: Element,
    },
    /// `c = a + b`, all `(M,N):(N,1)`.
    Sum,
    /// `c(m,n) = sum over k of a(m,k) b(n,k)`, K contiguous in a and b, N in c.
    Product,
}

/// What a check of a kernel looked at.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the interpreter executed, and under which schedules.
    pub checked: Checked,
    /// How many elements of the output were compared with the definition.
    pub compared: usize,
    /// The greatest difference from the definition, in units of the bound that rounding gives; 0
    /// where all bits agree.
    pub worst: f64,
}

/// Why a check did not pass.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Unchecked {
    /// The interpreter refused the program or found defects.
    Interpreter(CheckError),
    /// The output is not what the definition says.
    Wrong {
        /// The element of the output, counted from its first.
        element: usize,
        /// What the kernel left there.
        found: f64,
        /// What the definition says.
        wanted: f64,
    },
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unchecked::Interpreter(error) => error.fmt(f),
            Unchecked::Wrong { element, found, wanted } => {
                write!(f, "element {element} of the output is {found}, and the definition says {wanted}")
            }
        }
    }
}

impl std::error::Error for Unchecked {}

/// Small numbers of a type, different from place to place, and their values.
fn numbers(element: Element, count: usize, seed: u64) -> (Vec<u8>, Vec<f64>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut bytes = Vec::with_capacity(count * element.bytes() as usize);
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = number(element, state >> 33);
        bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes() as usize]);
        values.push(value(element, bits));
    }
    (bytes, values)
}

/// A number of a type from bits by chance: eighths in [-4, 4), or any bits where only bits matter.
fn number(element: Element, chance: u64) -> u64 {
    let eighths = (chance % 64) as f64 / 8.0 - 4.0;
    match element {
        Element::F16 => u64::from(half::f16::from_f64(eighths).to_bits()),
        Element::Bf16 => u64::from(half::bf16::from_f64(eighths).to_bits()),
        Element::F32 => u64::from((eighths as f32).to_bits()),
        Element::F64 => eighths.to_bits(),
        Element::I32 => u64::from((chance % 2001) as u32).wrapping_sub(1000) & 0xffff_ffff,
        _ => chance.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

fn value(element: Element, bits: u64) -> f64 {
    match element {
        Element::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Element::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Element::F32 => f64::from(f32::from_bits(bits as u32)),
        Element::F64 => f64::from_bits(bits),
        Element::I32 => f64::from(bits as u32 as i32),
        _ => bits as f64,
    }
}

fn bits_at(bytes: &[u8], width: usize, at: usize) -> u64 {
    bytes[at * width..(at + 1) * width].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The distance between neighbours of a type at a value: how far rounding may go, twice over.
fn step(element: Element, at: f64) -> f64 {
    let digits = match element {
        Element::F16 => 10,
        Element::Bf16 => 7,
        Element::F32 => 23,
        Element::F64 => 52,
        _ => return 0.0,
    };
    at.abs().max(f64::MIN_POSITIVE) * 2_f64.powi(-digits)
}

impl Planned {
    /// Runs the kernel in the interpreter, on numbers by chance, under every schedule, and compares
    /// what it leaves with its definition.
    ///
    /// ```
    /// use tilewright_kernels::named;
    ///
    /// let planned = named("transpose").unwrap().plan(&[("M", 40), ("N", 70)], None).unwrap();
    /// let report = planned.check().unwrap();
    /// assert_eq!((report.compared, report.worst), (40 * 70, 0.0));
    /// ```
    ///
    /// Errors: the interpreter finds a defect; the output is not what the definition says.
    pub fn check(&self) -> Result<Report, Unchecked> {
        let program = self.kernel().program();
        let setup = |error| Unchecked::Interpreter(CheckError::Setup(error));
        let mut interpreter = Interpreter::new(program, self.sizes()).map_err(setup)?;
        let tensors: Vec<Element> = program.tensors().map(|buffer| buffer.element).collect();
        let (output, inputs) = tensors.split_last().expect("a kernel of the library has an output");
        let mut given = Vec::new();
        for (index, element) in inputs.iter().enumerate() {
            let count = interpreter.bytes_of(index).map_err(setup)? / element.bytes() as usize;
            let (bytes, values) = numbers(*element, count, index as u64 + 1);
            interpreter.bytes(index, &bytes).map_err(setup)?;
            given.push((bytes, values));
        }
        let checked = interpreter.check().map_err(|findings| Unchecked::Interpreter(CheckError::Findings(findings)))?;
        let left = checked.run.bytes(inputs.len()).map_err(setup)?.to_vec();
        let (compared, worst) = self.compare(&given, &left, *output)?;
        Ok(Report { checked, compared, worst })
    }

    fn compare(&self, given: &[(Vec<u8>, Vec<f64>)], left: &[u8], output: Element) -> Result<(usize, f64), Unchecked> {
        let width = output.bytes() as usize;
        let size =
            |name: &str| self.sizes().iter().find(|(known, _)| *known == name).map_or(1, |(_, size)| *size as usize);
        let mut worst = 0.0_f64;
        let mut near = |element: usize, wanted: f64, bound: f64| {
            let found = value(output, bits_at(left, width, element));
            let off = (found - wanted).abs();
            if off.is_nan() || off > bound {
                return Err(Unchecked::Wrong { element, found, wanted });
            }
            worst = worst.max(if off == 0.0 { 0.0 } else { off / bound });
            Ok(())
        };
        match self.meaning() {
            Meaning::Relayout { from, source, to, destination } => {
                // The kernel may take several elements as one word; memory is the same.
                let widths = (source.bytes() as usize, destination.bytes() as usize);
                for index in 0..from.size() {
                    let (Ok(at), Ok(target)) = (from.eval(&index), to.eval(&index)) else { continue };
                    let target = target as usize;
                    let (wanted, found) =
                        (bits_at(&given[0].0, widths.0, at as usize), bits_at(left, widths.1, target));
                    let values = (value(*source, wanted), value(*destination, found));
                    let same = if source == destination {
                        wanted == found
                    } else {
                        (values.0 - values.1).abs() <= step(*destination, values.0)
                    };
                    if !same {
                        return Err(Unchecked::Wrong { element: target, found: values.1, wanted: values.0 });
                    }
                }
                Ok((from.size() as usize, 0.0))
            }
            Meaning::Sum => {
                let count = size("M") * size("N");
                for at in 0..count {
                    let sum = given[0].1[at] + given[1].1[at];
                    near(at, sum, step(output, sum))?;
                }
                Ok((count, worst))
            }
            Meaning::Product => {
                let [m, n, k] = ["M", "N", "K"].map(size);
                for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                    let terms = (0..k).map(|at| given[0].1[row * k + at] * given[1].1[column * k + at]);
                    let (sum, whole) =
                        terms.fold((0.0, 0.0), |(sum, whole), term| (sum + term, whole + f64::abs(term)));
                    // Each of k additions rounds what has been summed, which the sum of magnitudes
                    // bounds.
                    let bound = (k as f64) * step(Element::F32, whole) + step(output, sum);
                    near(row * n + column, sum, bound)?;
                }
                Ok((m * n, worst))
            }
        }
    }
}
