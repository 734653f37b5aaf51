//! An interpreter of kernels, which checks what it executes.
//!
//! Law: a run executes the instructions of a [`Program`], the same that the PTX writer prints, for
//! every thread of a grid. It ends with the contents of the tensors, or with findings. If two
//! accesses to a byte, one of which is a write, are not ordered by barriers, a finding names the
//! two, whatever the schedule was. Code that is not executed is not checked: a run is about its
//! sizes and its input values.
//!
//! Only these order accesses: barriers of the block and of warps, phases of mbarriers, and waits
//! for copies (`clock.rs`). Shuffles, ballots, fences and atomic operations order no other
//! accesses. Only the counter of the launch orders blocks (`arrivals.rs`).

mod access;
mod arithmetic;
mod arrivals;
mod background;
mod barriers;
mod bulk;
mod claims;
mod clock;
mod cluster;
pub(crate) mod code;
pub(crate) mod compute;
mod convert;
pub(crate) mod counts;
mod element;
mod ending;
mod execute;
mod explanation;
mod finding;
pub(crate) mod lanes;
mod machine;
mod matrix;
mod message;
mod mixed;
mod phases;
mod products;
mod proxies;
mod reading;
mod registers;
mod report;
mod rounding;
mod schedule;
pub(crate) mod setup;
mod shadow;
mod stepper;
mod tensor_name;
#[cfg(test)]
pub(crate) mod tests;
mod touch;
mod turns;
mod warp;

pub use crate::launch::SetupError;
pub use counts::{AccessCount, Class, Counts};
pub use explanation::explanation;
pub use finding::{Defect, Finding, Findings, Party, PhaseFault, Place, Thread, Waiting};
pub use machine::MAX_FINDINGS;
pub use reading::Reading;
pub use schedule::{Completion, Order, Schedule};
pub use setup::MAX_MEMORY;
pub use stepper::{Executed, Held, StepEvents, Stepper, Touched};
pub use tensor_name::TensorName;
pub use touch::AccessKind;

use crate::element::{Element, ElementType};
use crate::program::Program;
use crate::program::memory::{Buffer, BufferId, Role};
use crate::program::operation::{AtomicOperation, Number, Operation};
use crate::program::scalar::Scalar;
use code::Code;
use machine::InterpretedRun;
use schedule::Random;
use setup::Setup;

/// The default limit of the warp instructions of a run.
pub const MAX_STEPS: u64 = 1 << 30;

/// A program with sizes and tensors, ready to run.
///
/// ```
/// use tilewright_kernel::Kernel;
/// use tilewright_kernel::interpret::{Class, Interpreter, Schedule};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 64 threads, four elements each.
/// let held = "(64,4):(4,1)";
/// let double = Kernel::build("double", |k| {
///     let x = k.input::<f32>("x", "M{div=256}:1")?.local_tile(256, k.block("x")?)?;
///     let y = k.output::<f32>("y", "M:1")?.local_tile(256, k.block("x")?)?;
///     k.threads(64)?;
///     let values = x.compose(held)?.thread_part()?.load()?;
///     y.compose(held)?.thread_part()?.store(&values.map(|x| Ok(x + x))?)
/// })?;
///
/// let mut interpreter = Interpreter::new(double.program(), &[("M", 512)])?;
/// let x: Vec<f32> = (0..512).map(|at| at as f32).collect();
/// interpreter.tensor("x", &x)?;
/// let run = interpreter.run(Schedule::ALL[0])?;
/// assert_eq!(run.tensor::<f32>("y")?[..4], [0.0, 2.0, 4.0, 6.0]);
/// // Two blocks of two warps; a warp loads 512 bytes at once: 16 sectors.
/// assert_eq!(run.counts.executed(Class::Load), 4);
/// assert_eq!(run.counts.accesses[0].sectors, 64);
///
/// // Every schedule, and what they leave compared.
/// interpreter.check()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Interpreter<'p> {
    program: &'p Program,
    code: Code<'p>,
    setup: Setup,
    /// The contents of each tensor in global memory; empty if none were set.
    contents: Vec<Vec<u8>>,
    scalars: Vec<Option<u64>>,
    limit: u64,
}

/// The contents and counts after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The name and the type of each tensor.
    tensors: Vec<(String, Element)>,
    contents: Vec<Vec<u8>>,
    /// The executed instructions and accesses.
    pub counts: Counts,
}

/// The result of a check without findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The run under the first schedule.
    pub run: Run,
    /// The schedules under which the kernel was run.
    pub schedules: Vec<Schedule>,
    /// The tensors to which floating-point numbers are added atomically. The order of additions is
    /// unspecified, so these were not compared between schedules.
    pub uncompared: Vec<String>,
}

fn argument(what: String) -> SetupError {
    SetupError::Argument { what }
}

impl<'p> Interpreter<'p> {
    /// A program at given sizes, each with its name.
    ///
    /// Errors: the program is malformed; a size is missing, unknown or not admitted by its facts;
    /// the tensors are too large.
    pub fn new(program: &'p Program, sizes: &[(&str, i64)]) -> Result<Interpreter<'p>, SetupError> {
        program.verify().map_err(|malformed| {
            let source = malformed.source.and_then(|source| program.sources.get(source.index())).copied();
            SetupError::Malformed { what: malformed.what, source }
        })?;
        let code = Code::new(program);
        let setup = Setup::new(program, &code, sizes)?;
        let scalars = setup.scalars.clone();
        let contents = vec![Vec::new(); program.tensors().count()];
        Ok(Interpreter { program, code, setup, contents, scalars, limit: MAX_STEPS })
    }

    /// A tensor, its index and its number of bytes.
    fn buffer(&self, tensor: TensorName<'_>) -> Result<(&'p Buffer, usize, u64), SetupError> {
        let index = tensor.index(self.program.tensors().map(|buffer| buffer.name.as_str()))?;
        Ok((&self.program.buffers[index], index, self.setup.extents[index].bytes))
    }

    /// Sets the contents of a tensor: the elements from the first to the last that its layout
    /// reaches.
    ///
    /// Errors: there is no such tensor; its element type or its number of elements differs.
    pub fn tensor<'n, T: ElementType>(
        &mut self,
        tensor: impl Into<TensorName<'n>>,
        elements: &[T],
    ) -> Result<&mut Self, SetupError> {
        let (buffer, index, bytes) = self.buffer(tensor.into())?;
        if buffer.element != T::ELEMENT {
            let name = &buffer.name;
            return Err(argument(format!("`{name}` has elements of {}, and {} are given", buffer.element, T::ELEMENT)));
        }
        let wanted = bytes / u64::from(buffer.element.bytes());
        if wanted != elements.len() as u64 {
            let name = &buffer.name;
            return Err(argument(format!("`{name}` has {wanted} elements, and {} are given", elements.len())));
        }
        let size = buffer.element.bytes() as usize;
        let bytes =
            elements.iter().flat_map(|element| element.to_bits().to_le_bytes().into_iter().take(size)).collect();
        self.contents[index] = bytes;
        Ok(self)
    }

    /// The number of bytes of a tensor, from the first to the last element that its layout reaches.
    ///
    /// Errors: there is no such tensor.
    pub fn bytes_of<'n>(&self, tensor: impl Into<TensorName<'n>>) -> Result<usize, SetupError> {
        let (buffer, _, bytes) = self.buffer(tensor.into())?;
        usize::try_from(bytes).map_err(|_| argument(format!("`{}` has {bytes} bytes", buffer.name)))
    }

    /// Sets the contents of a tensor as bytes, little-endian.
    ///
    /// Errors: there is no such tensor, or its number of bytes differs.
    pub fn bytes<'n>(&mut self, tensor: impl Into<TensorName<'n>>, bytes: &[u8]) -> Result<&mut Self, SetupError> {
        let (buffer, index, wanted) = self.buffer(tensor.into())?;
        if wanted != bytes.len() as u64 {
            return Err(argument(format!("`{}` has {wanted} bytes, and {} are given", buffer.name, bytes.len())));
        }
        self.contents[index] = bytes.to_vec();
        Ok(self)
    }

    /// Fills every tensor that is read and has no contents yet with random numbers: floating-point
    /// numbers in [-1,1], and integers from -8 to 7, or from 0 to 15 if they are unsigned.
    pub fn fill(&mut self, seed: u64) -> &mut Self {
        let mut random = Random::new(seed);
        for (index, buffer) in self.program.tensors().enumerate() {
            if buffer.role == Role::Output || !self.contents[index].is_empty() {
                continue;
            }
            let count = self.setup.extents[index].bytes / u64::from(buffer.element.bytes());
            let mut bytes = Vec::with_capacity(self.setup.extents[index].bytes as usize);
            for _ in 0..count {
                let bits = any_number(buffer.element, random.bits());
                bytes.extend(bits.to_le_bytes().into_iter().take(buffer.element.bytes() as usize));
            }
            self.contents[index] = bytes;
        }
        self
    }

    /// Sets a scalar argument, by its name.
    ///
    /// Errors: the kernel has no scalar argument with this name, or it has another type.
    pub fn number<T: ElementType>(&mut self, name: &str, value: T) -> Result<&mut Self, SetupError> {
        self.number_bits(name, T::ELEMENT, value.to_bits())
    }

    /// As [`Interpreter::number`], for a type that is a value: the bits of the number, lowest
    /// first.
    ///
    /// Errors: as [`Interpreter::number`].
    pub fn number_bits(&mut self, name: &str, given: Element, bits: u64) -> Result<&mut Self, SetupError> {
        let mut found = false;
        for (place, scalar) in self.scalars.iter_mut().zip(&self.program.scalars) {
            let Scalar::Given { name: own, element } = scalar else { continue };
            if own != name {
                continue;
            }
            if *element != given {
                return Err(argument(format!("the number `{name}` is of type {element}, and {given} is given")));
            }
            *place = Some(bits);
            found = true;
        }
        if found { Ok(self) } else { Err(argument(format!("the kernel has no number `{name}`"))) }
    }

    /// Sets the limit of the warp instructions of a run; [`MAX_STEPS`] by default.
    pub fn limit(&mut self, steps: u64) -> &mut Self {
        self.limit = steps;
        self
    }

    /// Checks that everything that a run needs was set.
    ///
    /// Errors: a tensor that is read has no contents, or a scalar argument has no value.
    pub fn is_complete(&self) -> Result<(), SetupError> {
        for (index, buffer) in self.program.tensors().enumerate() {
            let empty = self.contents[index].is_empty() && self.setup.extents[index].bytes > 0;
            if buffer.role != Role::Output && empty {
                return Err(argument(format!("the tensor `{}` has no contents", buffer.name)));
            }
        }
        for (given, scalar) in self.scalars.iter().zip(&self.program.scalars) {
            if let (None, Scalar::Given { name, .. }) = (given, scalar) {
                return Err(argument(format!("the number `{name}` is not given")));
            }
        }
        Ok(())
    }

    /// Runs the grid. Tensors without contents, and scalar arguments without values, are 0.
    ///
    /// Errors: the findings, at most [`MAX_FINDINGS`].
    pub fn run(&self, schedule: Schedule) -> Result<Run, Findings> {
        let scalars = self.scalars.iter().map(|scalar| scalar.unwrap_or(0)).collect();
        let machine =
            InterpretedRun::new(self.program, &self.code, &self.setup, scalars, &self.contents, schedule, self.limit);
        let (contents, counts) = machine.run()?;
        let tensors = self.program.tensors().map(|buffer| (buffer.name.clone(), buffer.element)).collect();
        Ok(Run { tensors, contents: contents.into_iter().take(self.contents.len()).collect(), counts })
    }

    /// A block of the grid, to be run statement by statement, together with the other blocks of its
    /// cluster only. Tensors and scalar arguments that were not set are 0.
    ///
    /// Errors: the grid has no such block.
    pub fn stepper(&self, block: [u32; 3], completion: Completion) -> Result<Stepper<'_>, SetupError> {
        let grid = self.setup.grid;
        let within = block.iter().zip(grid).all(|(block, count)| *block < count);
        if !within {
            return Err(argument(format!("the grid has {grid:?} blocks, and there is none at {block:?}")));
        }
        let extents = self.program.cluster;
        let [x, y, z]: [u64; 3] = std::array::from_fn(|axis| u64::from(block[axis] / extents[axis]));
        let [columns, rows, _]: [u64; 3] = std::array::from_fn(|axis| u64::from(grid[axis] / extents[axis]));
        let number = (z * rows + y) * columns + x;
        let scalars = self.scalars.iter().map(|scalar| scalar.unwrap_or(0)).collect();
        let schedule = Schedule { order: Order::InTurn, completion };
        let machine =
            InterpretedRun::new(self.program, &self.code, &self.setup, scalars, &self.contents, schedule, self.limit);
        Ok(Stepper::new(machine, number))
    }

    /// Runs the grid under every schedule of [`Schedule::ALL`], and compares the contents of the
    /// tensors bit by bit.
    ///
    /// Errors: the findings of the first schedule that has any; a tensor that depends on the
    /// schedule.
    pub fn check(&self) -> Result<Checked, Findings> {
        let [first, others @ ..] = Schedule::ALL;
        let run = self.run(first)?;
        let uncompared = self.added_atomically();
        for schedule in others {
            let other = self.run(schedule)?;
            for (index, buffer) in self.program.tensors().enumerate() {
                if uncompared.contains(&index) {
                    continue;
                }
                let both = run.contents[index].iter().zip(&other.contents[index]);
                let Some(byte) = both.into_iter().position(|(one, other)| one != other) else { continue };
                let size = buffer.element.bytes() as usize;
                let place = Place {
                    buffer: buffer.name.clone(),
                    layout: buffer.layout.clone(),
                    element: buffer.element,
                    byte: (byte / size * size) as i64,
                    bytes: size as u64,
                };
                let defect = Defect::OrderDependent { place, other: first };
                return Err(Findings(vec![Finding { defect, source: None, thread: None, schedule }]));
            }
        }
        let name = |index: &usize| self.program.buffer(BufferId(*index as u32)).name.clone();
        let uncompared = uncompared.iter().map(name).collect();
        Ok(Checked { run, schedules: Schedule::ALL.to_vec(), uncompared })
    }

    /// The tensors to which floating-point numbers are added atomically.
    fn added_atomically(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for instruction in self.code.instructions() {
            if let Operation::Atomic(AtomicOperation::Add, number, access)
            | Operation::Reduce(AtomicOperation::Add, number, access) = &instruction.operation
            {
                let index = access.buffer.index();
                if Number::is_float(*number) && index < self.contents.len() && !found.contains(&index) {
                    found.push(index);
                }
            }
        }
        found
    }
}

impl Run {
    /// The contents of a tensor after the run.
    ///
    /// Errors: there is no such tensor, or its element type differs.
    pub fn tensor<'n, T: ElementType>(&self, tensor: impl Into<TensorName<'n>>) -> Result<Vec<T>, SetupError> {
        let index = self.index(tensor.into())?;
        let (bytes, (name, element)) = (&self.contents[index], &self.tensors[index]);
        if *element != T::ELEMENT {
            return Err(argument(format!("`{name}` has elements of {element}, and {} are asked for", T::ELEMENT)));
        }
        let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Ok(bytes.chunks_exact(element.bytes() as usize).map(|bytes| T::from_bits(bits(bytes))).collect())
    }

    /// The contents of a tensor after the run as bytes, little-endian.
    ///
    /// Errors: there is no such tensor.
    pub fn bytes<'n>(&self, tensor: impl Into<TensorName<'n>>) -> Result<&[u8], SetupError> {
        Ok(&self.contents[self.index(tensor.into())?])
    }

    fn index(&self, tensor: TensorName<'_>) -> Result<usize, SetupError> {
        tensor.index(self.tensors.iter().map(|(name, _)| name.as_str()))
    }
}

/// A small number of a type, from random bits.
fn any_number(element: Element, bits: u64) -> u64 {
    // From -8 to 7, and in [-1,1) in steps of 2^-20.
    let (small, fraction) = ((bits % 16) as i64, (bits >> 43) as f64 / f64::from(1 << 20) - 1.0);
    let rounding = crate::program::operation::Rounding::Nearest;
    match element {
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => small as u64,
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => (small - 8) as u64,
        Element::E4M3 => rounding::E4M3.of_f64(fraction, rounding),
        Element::E5M2 => rounding::E5M2.of_f64(fraction, rounding),
        Element::F16 => rounding::F16.of_f64(fraction, rounding),
        Element::Bf16 => rounding::BF16.of_f64(fraction, rounding),
        Element::F32 => rounding::F32.of_f64(fraction, rounding),
        Element::F64 => rounding::F64.of_f64(fraction, rounding),
    }
}

/// Checks a program at given sizes, with random contents: see [`Interpreter::check`].
///
/// Errors: the program or the sizes are refused; the findings.
pub fn check(program: &Program, sizes: &[(&str, i64)]) -> Result<Checked, CheckError> {
    let mut interpreter = Interpreter::new(program, sizes).map_err(CheckError::Setup)?;
    interpreter.fill(1);
    interpreter.is_complete().map_err(CheckError::Setup)?;
    interpreter.check().map_err(CheckError::Findings)
}

/// Why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckError {
    /// The check could not begin.
    Setup(SetupError),
    /// The kernel has defects.
    Findings(Findings),
}

impl std::fmt::Display for CheckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CheckError::Setup(error) => write!(f, "{error}"),
            CheckError::Findings(findings) => write!(f, "{findings}"),
        }
    }
}

impl std::error::Error for CheckError {}
