//! What a kernel of the library computes, as a plain loop.
//!
//! Law: a kernel leaves in its output what the loop here does, within the rounding of its types.
//! The loop knows nothing of tiles, threads or instructions: it evaluates layouts at indices and
//! computes in f64.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter};
use tilewright_layout::{Layout, LayoutError};

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
    /// An offset of a layout is not representable.
    Layout(LayoutError),
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
            Unchecked::Layout(error) => error.fmt(f),
            Unchecked::Wrong { element, found, wanted } => {
                write!(f, "element {element} of the output is {found}, and the definition says {wanted}")
            }
        }
    }
}

impl std::error::Error for Unchecked {}

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

/// The bits of an element of so many bytes.
pub fn bits_at(bytes: &[u8], width: usize, at: usize) -> u64 {
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

/// What the definition says of one element of the output.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Which: counted from the first element of the output.
    pub at: usize,
    /// The type of the output.
    pub element: Element,
    /// All bits, where no rounding is allowed.
    bits: Option<u64>,
    value: f64,
    bound: f64,
}

impl Wanted {
    /// How far bits that were found are from it, in units of the bound that rounding gives, 0 where
    /// they are equal.
    ///
    /// Errors: they are farther away than that ([`Unchecked::Wrong`]).
    pub fn distance(&self, found: u64) -> Result<f64, Unchecked> {
        let value = value(self.element, found);
        let wrong = Unchecked::Wrong { element: self.at, found: value, wanted: self.value };
        if let Some(bits) = self.bits {
            return if bits == found { Ok(0.0) } else { Err(wrong) };
        }
        let off = (value - self.value).abs();
        if off.is_nan() || off > self.bound {
            return Err(wrong);
        }
        Ok(if off == 0.0 { 0.0 } else { off / self.bound })
    }
}

/// Small numbers of a type by chance, as bytes: tensors of a kernel that is checked are made of them.
pub fn any_numbers(element: Element, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut bytes = Vec::with_capacity(count * element.bytes() as usize);
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = number(element, state >> 33);
        bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes() as usize]);
    }
    bytes
}

impl Planned {
    fn size(&self, name: &str) -> usize {
        self.sizes().iter().find(|(known, _)| *known == name).map_or(1, |(_, size)| *size as usize)
    }

    /// How many elements of the output the definition says something of.
    pub fn defined(&self) -> usize {
        match self.meaning() {
            Meaning::Relayout { from, .. } => from.size() as usize,
            Meaning::Sum | Meaning::Product => self.size("M") * self.size("N"),
        }
    }

    /// The types of the inputs as the definition reads them. The kernel may take several elements of
    /// a relayout as one word; memory is the same.
    pub fn inputs(&self) -> Vec<Element> {
        match self.meaning() {
            Meaning::Relayout { source, .. } => vec![*source],
            Meaning::Sum | Meaning::Product => {
                let tensors: Vec<Element> = self.kernel().program().tensors().map(|buffer| buffer.element).collect();
                tensors[..2].to_vec()
            }
        }
    }

    /// What the definition says of element `index` of those that it defines, where `input` has the
    /// bits of an element of an input, by their numbers.
    ///
    /// Errors: an offset is not representable.
    pub fn wanted(&self, index: usize, input: &dyn Fn(usize, usize) -> u64) -> Result<Wanted, LayoutError> {
        let types = self.inputs();
        let output = self.kernel().program().tensors().last().map_or(Element::U8, |buffer| buffer.element);
        let value_of = |tensor: usize, at: usize| value(types[tensor], input(tensor, at));
        Ok(match self.meaning() {
            Meaning::Relayout { from, source, to, destination } => {
                let (at, place) = (from.eval(&(index as i64))? as usize, to.eval(&(index as i64))? as usize);
                let bits = input(0, at);
                let value = value(*source, bits);
                let exact = (source == destination).then_some(bits);
                Wanted { at: place, element: *destination, bits: exact, value, bound: step(*destination, value) }
            }
            Meaning::Sum => {
                let value = value_of(0, index) + value_of(1, index);
                Wanted { at: index, element: output, bits: None, value, bound: step(output, value) }
            }
            Meaning::Product => {
                let (n, k) = (self.size("N"), self.size("K"));
                let (row, column) = (index / n, index % n);
                let terms = (0..k).map(|at| value_of(0, row * k + at) * value_of(1, column * k + at));
                let (sum, whole) = terms.fold((0.0, 0.0), |(sum, whole), term| (sum + term, whole + f64::abs(term)));
                // Each of k additions rounds what has been summed, which the sum of magnitudes bounds.
                let bound = (k as f64) * step(Element::F32, whole) + step(output, sum);
                Wanted { at: index, element: output, bits: None, value: sum, bound }
            }
        })
    }

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
        let types = self.inputs();
        let mut given = Vec::new();
        for (index, element) in types.iter().enumerate() {
            let count = interpreter.bytes_of(index).map_err(setup)? / element.bytes() as usize;
            let bytes = any_numbers(*element, count, index as u64 + 1);
            interpreter.bytes(index, &bytes).map_err(setup)?;
            given.push(bytes);
        }
        let checked = interpreter.check().map_err(|findings| Unchecked::Interpreter(CheckError::Findings(findings)))?;
        let left = checked.run.bytes(types.len()).map_err(setup)?.to_vec();
        let input = |tensor: usize, at: usize| bits_at(&given[tensor], types[tensor].bytes() as usize, at);
        let mut worst = 0.0_f64;
        let compared = self.defined();
        for index in 0..compared {
            let wanted = self.wanted(index, &input).map_err(Unchecked::Layout)?;
            worst = worst.max(wanted.distance(bits_at(&left, wanted.element.bytes() as usize, wanted.at))?);
        }
        Ok(Report { checked, compared, worst })
    }
}
