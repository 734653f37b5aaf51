//! The definition of a kernel of the library, as a plain loop.
//!
//! Law: the output of a kernel equals the result of the loop here, within the rounding of its
//! types. The loop knows nothing of tiles, threads or instructions: it evaluates layouts at indices
//! and computes in f64.

mod definition;
mod number;
mod rows;

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter, SetupError};
use tilewright_layout::LayoutError;

use crate::planned::Planned;
use crate::terms::Meaning;

pub use definition::{Definition, Wanted};
pub use number::{any_numbers, bits_at};
pub(crate) use number::{distance, step, value};

/// What a check of a kernel found.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the interpreter executed, and under which schedules.
    pub checked: Checked,
    /// The same for the second launch; None if there is none.
    pub second: Option<Checked>,
    /// Elements of the output that were compared with the definition.
    pub compared: usize,
    /// The largest difference from the definition, in units of the rounding bound; 0 if all bits
    /// agree.
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
    /// The output differs from the definition.
    Wrong {
        /// The index of the element in the output.
        element: usize,
        /// The value that the kernel wrote.
        found: f64,
        /// The value by the definition.
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

impl Planned {
    pub(crate) fn size(&self, name: &str) -> usize {
        self.sizes().iter().find(|(known, _)| *known == name).map_or(1, |(_, size)| *size as usize)
    }

    /// The number of output elements that have a definition.
    pub fn defined(&self) -> usize {
        match self.meaning() {
            Meaning::Relayout { from, .. } => from.size() as usize,
            Meaning::Map { output, .. } => output.0.size() as usize,
            Meaning::Gather { picked, columns, .. } => (picked * columns) as usize,
            Meaning::Scatter { rows, picked, columns } => (picked.min(rows) * columns) as usize,
            Meaning::Sum => self.size("M") * self.size("N"),
            Meaning::Product => self.size("M") * self.size("N") * self.size("L"),
            Meaning::Reduce { from, .. } => from.size() as usize,
            Meaning::Indices { results, .. } => *results as usize,
            Meaning::Softmax { places } | Meaning::RmsNorm { places, .. } | Meaning::LayerNorm { places, .. } => {
                self.size("M") * places.columns as usize
            }
        }
    }

    /// The number of consecutive elements that are cheapest to evaluate together; samples are whole
    /// rows.
    pub fn together(&self) -> usize {
        match self.meaning() {
            Meaning::Softmax { places } | Meaning::RmsNorm { places, .. } | Meaning::LayerNorm { places, .. } => {
                places.columns as usize
            }
            _ => 1,
        }
    }

    /// The approximate number of input elements that the definition reads for an output element.
    pub fn effort(&self) -> usize {
        match self.meaning() {
            Meaning::Product => 2 * self.size("K"),
            Meaning::Reduce { along, .. } => along.size() as usize,
            _ => 1,
        }
    }

    /// The types of the inputs in the definition. A relayout kernel may read several elements as
    /// one word; memory is the same.
    pub fn inputs(&self) -> Vec<Element> {
        match self.meaning() {
            Meaning::Relayout { source, .. } => vec![*source],
            _ => {
                let inputs = self.between().start;
                self.kernel().program().tensors().take(inputs).map(|buffer| buffer.element).collect()
            }
        }
    }

    /// Random numbers for an input of this type, as bytes, in the range that the kernel accepts.
    pub fn numbers(&self, input: usize, element: Element, count: usize) -> Vec<u8> {
        match (self.meaning(), input) {
            // Indices include the number of rows, which is no row, to test a missing row.
            (Meaning::Gather { rows, .. }, 1) => {
                let chance = any_numbers(Element::U32, count, 3);
                let row = |at: usize| (bits_at(&chance, 4, at) as i64 % (rows + 1)) as i32;
                (0..count).flat_map(|at| row(at).to_le_bytes()).collect()
            }
            // Distinct indices, out of order; those past the last row are skipped.
            (Meaning::Scatter { rows, .. }, 1) => {
                let row = |at: usize| if at < *rows as usize { *rows as usize - 1 - at } else { at };
                (0..count).flat_map(|at| (row(at) as i32).to_le_bytes()).collect()
            }
            // Every index of a device.
            (Meaning::Indices { indices, .. }, 2) => {
                let places = indices.digits.iter().map(|(extent, _)| extent).product::<i64>().max(1);
                (0..count).flat_map(|at| ((at as i64 % places) as i32).to_le_bytes()).collect()
            }
            // Small numbers for kernels that compute, so that f64 represents the results.
            (Meaning::Map { .. } | Meaning::Reduce { .. }, _)
                if matches!(element, Element::U32 | Element::U64 | Element::I64) =>
            {
                let small = any_numbers(Element::I32, count, input as u64 + 1);
                let number = |at: usize| i64::from(bits_at(&small, 4, at) as u32 as i32);
                let own = |at: usize| if element == Element::I64 { number(at) } else { number(at).abs() };
                (0..count).flat_map(|at| own(at).to_le_bytes().into_iter().take(element.bytes() as usize)).collect()
            }
            _ => any_numbers(element, count, input as u64 + 1),
        }
    }

    /// The definition of the kernel. `input` gives the bits of an element of an input, by index of
    /// input and element.
    pub fn definition<'a>(&'a self, input: &'a dyn Fn(usize, usize) -> u64) -> Definition<'a> {
        Definition::new(self, input)
    }

    /// An interpreter of the kernel, or of the first launch, with the inputs of [`Planned::check`].
    ///
    /// ```
    /// use tilewright_kernel::interpret::Completion;
    /// use tilewright_planners::{EntryOptions, named};
    ///
    /// let machine = tilewright_kernel::machine::Machine::named("H200").unwrap();
    /// let options = EntryOptions { sizes: &[("M", 40), ("N", 24)], ..EntryOptions::default() };
    /// let plan = named("transpose").unwrap().plan(&machine, options).unwrap();
    /// let interpreter = plan.interpreter().unwrap();
    /// let first = interpreter.stepper([0, 0, 0], Completion::Late).unwrap().step().unwrap().unwrap();
    /// assert!(!first.executed.is_empty());
    /// ```
    ///
    /// Errors: the sizes are not admitted, or the tensors are too large.
    pub fn interpreter(&self) -> Result<Interpreter<'_>, SetupError> {
        let mut interpreter = Interpreter::new(self.kernel().program(), self.sizes())?;
        self.given(&mut interpreter)?;
        Ok(interpreter)
    }

    /// Sets the inputs of an interpreter, and returns their bytes.
    fn given(&self, interpreter: &mut Interpreter<'_>) -> Result<Vec<Vec<u8>>, SetupError> {
        let mut given = Vec::new();
        for (index, element) in self.inputs().into_iter().enumerate() {
            let count = interpreter.bytes_of(index)? / element.bytes() as usize;
            let bytes = self.numbers(index, element, count);
            interpreter.bytes(index, &bytes)?;
            given.push(bytes);
        }
        Ok(given)
    }

    /// Runs the kernel in the interpreter, on random numbers, under every schedule, and compares
    /// the output with the definition.
    ///
    /// ```
    /// use tilewright_planners::{EntryOptions, named};
    ///
    /// let machine = tilewright_kernel::machine::Machine::named("H200").unwrap();
    /// let planned = named("transpose").unwrap().plan(&machine, EntryOptions { sizes: &[("M", 40), ("N", 70)], ..EntryOptions::default() }).unwrap();
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
        let given = self.given(&mut interpreter).map_err(setup)?;
        let found = |findings| Unchecked::Interpreter(CheckError::Findings(findings));
        let checked = interpreter.check().map_err(found)?;
        let mut last = None;
        if let Some(second) = self.second() {
            let mut then = Interpreter::new(second.program(), self.sizes()).map_err(setup)?;
            for index in types.len()..program.tensors().count() {
                then.bytes(index - types.len(), checked.run.bytes(index).map_err(setup)?).map_err(setup)?;
            }
            last = Some(then.check().map_err(found)?);
        }
        let (run, output) = match (&last, self.second()) {
            (Some(last), Some(second)) => (&last.run, second.program().tensors().count() - 1),
            _ => (&checked.run, self.between().end),
        };
        let left = run.bytes(output).map_err(setup)?.to_vec();
        let input = |tensor: usize, at: usize| bits_at(&given[tensor], types[tensor].bytes() as usize, at);
        let mut worst = 0.0_f64;
        let compared = self.defined();
        let mut definition = self.definition(&input);
        for index in 0..compared {
            let wanted = definition.wanted(index).map_err(Unchecked::Layout)?;
            worst = worst.max(wanted.distance(bits_at(&left, wanted.element.bytes() as usize, wanted.at))?);
        }
        Ok(Report { checked, second: last, compared, worst })
    }
}
