//! Finished kernels: costs, PTX, and runs on the interpreter.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tilewright_kernel::cost::Cost;
use tilewright_kernel::interpret::{CheckError, Findings, Interpreter, Schedule, SetupError};
use tilewright_kernel::machine::{Machine, UnknownMachine};
use tilewright_kernel::program::Location;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::ptx::{self, Target};
use tilewright_kernel::{Element, Kernel, Launch, LaunchArguments, Written};
use tilewright_layout::Refusal;

use super::drawing;
use super::trace::{self, RefusedStatement};
use crate::foreign::Array;
use crate::interrupt::interruptible;
use crate::picture::Picture;
use crate::refusal;

/// A finished kernel: one program, which the interpreter runs, and which is printed for a GPU.
#[pyclass(frozen, module = "tilewright")]
pub struct Program {
    pub kernel: Kernel,
    /// The decisions of the plan; empty if the kernel was not planned.
    pub plan: Vec<String>,
    /// The sizes that the plan fixes.
    pub fixed: Sizes,
}

/// Builds a kernel: the function is called once, without arguments.
#[pyfunction]
pub fn write_kernel(
    py: Python<'_>,
    name: &str,
    function: &Bound<'_, PyAny>,
    place: (String, u32, u32, Option<(u32, u32)>),
) -> PyResult<Program> {
    let (file, line, column, end) = place;
    let kernel = trace::written(py, name, function, Location::new(&file, line, column, end))?;
    let program = kernel.program();
    if let Err(malformed) = program.verify() {
        // For example an index of a loop that is used after the loop.
        let at = malformed.source.and_then(|source| program.sources.get(source.index())).map(|source| source.location);
        let help = "what a body computes, and the index of a loop, are gone when the body is over".to_string();
        return Err(refusal::of_kernel(py, &RefusedStatement::Here(malformed.what.to_string(), help, at)));
    }
    Ok(Program { kernel, plan: Vec::new(), fixed: Vec::new() })
}

/// Sizes, each with its name.
pub type Sizes = Vec<(String, i64)>;

/// Sizes by name.
pub fn sizes_of(sizes: &Bound<'_, PyDict>) -> PyResult<Sizes> {
    sizes.iter().map(|(name, size)| Ok((name.extract::<String>()?, size.extract::<i64>()?))).collect()
}

/// Sizes in the form that functions of kernels take.
pub fn borrowed(sizes: &[(String, i64)]) -> Vec<(&str, i64)> {
    sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect()
}

/// The exception for sizes or contents that the program does not accept.
pub fn of_setup(py: Python<'_>, error: &SetupError) -> PyErr {
    let at = match error {
        SetupError::Malformed { source: Some(source), .. } => Some(source.location),
        _ => None,
    };
    refusal::of_run(py, Refusal::code(error), &error.to_string(), None, at)
}

/// A refusal or a finding of a check.
pub fn of_check(py: Python<'_>, error: &CheckError) -> PyErr {
    match error {
        CheckError::Setup(error) => of_setup(py, error),
        CheckError::Findings(findings) => of_findings(py, findings),
    }
}

fn of_findings(py: Python<'_>, findings: &Findings) -> PyErr {
    let first = findings.first();
    let code = first.map_or("", |finding| finding.code());
    let at = first.and_then(|finding| finding.source).map(|source| source.location);
    let mut told = findings.to_string();
    if let Some(rest) = told.strip_prefix(code) {
        told = rest.trim_start_matches(": ").to_string();
    }
    refusal::of_run(py, code, &told, None, at)
}

/// The bits of a number of Python in a type.
pub fn bits_of(value: &Bound<'_, PyAny>, element: Element) -> PyResult<u64> {
    if !element.is_float() {
        let fits = |least: i128, greatest: i128, value: i128| (least..=greatest).contains(&value);
        let number = value.extract::<i128>()?;
        let bits = element.bits();
        let (least, greatest) = if element.is_signed_integer() {
            (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
        } else {
            (0, (1_i128 << bits) - 1)
        };
        if !fits(least, greatest, number) {
            return Err(PyValueError::new_err(format!("{number} is no number of type {element}")));
        }
        return Ok(number as u64 & if bits == 64 { u64::MAX } else { (1_u64 << bits) - 1 });
    }
    let number = value.extract::<f64>()?;
    Ok(match element {
        Element::F64 => number.to_bits(),
        Element::F32 => u64::from((number as f32).to_bits()),
        Element::F16 => u64::from(half::f16::from_f64(number).to_bits()),
        Element::Bf16 => u64::from(half::bf16::from_f64(number).to_bits()),
        _ => return Err(PyTypeError::new_err(format!("numbers of type {element} are not passed"))),
    })
}

/// The numbers of a cost report.
fn numbers_of<'py>(py: Python<'py>, cost: &Cost) -> PyResult<Bound<'py, PyDict>> {
    let numbers = PyDict::new(py);
    numbers.set_item("machine", &cost.machine.name)?;
    numbers.set_item("grid", PyTuple::new(py, cost.grid)?)?;
    numbers.set_item("threads", cost.threads)?;
    numbers.set_item("registers", cost.registers)?;
    numbers.set_item("shared_bytes", cost.shared_bytes)?;
    numbers.set_item("resident_blocks", cost.occupancy.blocks)?;
    numbers.set_item("resident_warps", cost.occupancy.warps)?;
    numbers.set_item("tensor_bytes", cost.tensor_bytes)?;
    let counted = cost.counted.as_ref().ok();
    numbers.set_item("exact", counted.map(|own| own.is_exact()))?;
    numbers.set_item("instructions", counted.map(|own| own.instructions()))?;
    numbers.set_item("wavefronts", counted.map(|own| own.wavefronts().0))?;
    numbers.set_item("operations", counted.map(|own| own.operations.total()))?;
    numbers.set_item("sectors", counted.map(|_| cost.sectors()))?;
    numbers.set_item("bytes_in_flight", cost.in_flight.as_ref().map(|own| own.bytes()))?;
    let bounds = PyDict::new(py);
    for bound in cost.bounds() {
        bounds.set_item(bound.what, bound.seconds)?;
    }
    numbers.set_item("bounds", bounds)?;
    Ok(numbers)
}

#[pymethods]
impl Program {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.kernel.name()
    }

    /// The decisions of the plan, one per line.
    #[getter]
    fn plan(&self) -> Vec<String> {
        self.plan.clone()
    }

    /// The sizes that the plan fixes.
    #[getter]
    fn fixed(&self) -> Vec<(String, i64)> {
        self.fixed.clone()
    }

    /// The sizes known at launch, with the declared facts of each.
    #[getter]
    fn sizes(&self) -> Vec<String> {
        self.kernel.program().sizes.iter().map(ToString::to_string).collect()
    }

    /// The tensors, in the order of the arguments: name, type, role and layout.
    #[getter]
    fn tensors(&self) -> Vec<(String, &'static str, &'static str, String)> {
        let role = |role| match role {
            Role::Input => "input",
            Role::Output => "output",
            Role::Both => "tensor",
        };
        let tensors = self.kernel.program().tensors();
        tensors.map(|own| (own.name.clone(), own.element.name(), role(own.role), own.layout.clone())).collect()
    }

    /// The scalar arguments of the launch: name and type.
    #[getter]
    fn numbers(&self) -> Vec<(String, &'static str)> {
        let scalars = self.kernel.program().scalars.iter();
        let given = scalars.filter_map(|scalar| match scalar {
            Scalar::Given { name, element } => Some((name.clone(), element.name())),
            _ => None,
        });
        given.collect()
    }

    /// The outputs, and whether each of their elements is proved to be written by one thread.
    #[getter]
    fn outputs(&self) -> Vec<(String, bool)> {
        let outputs = self.kernel.outputs().iter();
        outputs.map(|own| (own.tensor.clone(), own.written == Written::Once)).collect()
    }

    /// For each tensor, whether it is read, whether it is written, and the fewest bytes that an
    /// instruction accesses; 0 if none does.
    fn uses(&self) -> Vec<(bool, bool, u32)> {
        self.kernel.program().uses().iter().map(|own| (own.read, own.written, own.fewest_bytes)).collect()
    }

    /// The number of threads per block.
    #[getter]
    fn threads(&self) -> u32 {
        self.kernel.program().threads
    }

    /// The bytes of shared memory per block.
    #[getter]
    fn shared_bytes(&self) -> u32 {
        self.kernel.program().shared_bytes
    }

    /// The number of blocks along each axis, as expressions of the sizes.
    #[getter]
    fn grid(&self) -> (String, String, String) {
        let [x, y, z] = &self.kernel.program().grid;
        (x.to_string(), y.to_string(), z.to_string())
    }

    /// The PTX for a target: "sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100", "sm_120" or
    /// "sm_121".
    #[pyo3(signature = (target = "sm_90a"))]
    fn ptx(&self, py: Python<'_>, target: &str) -> PyResult<String> {
        let target = Target::named(target).ok_or_else(|| {
            PyValueError::new_err(format!("there is no target '{target}'; there are {}", Target::names()))
        })?;
        ptx::write(self.kernel.program(), target).map_err(|error| refusal::of(py, &error))
    }

    /// The cost of a launch at sizes on a machine, such as "H200" or "RTX 4090": as text, and as
    /// numbers by their names.
    #[pyo3(signature = (sizes, machine = "H200"))]
    fn cost<'py>(
        &self,
        py: Python<'py>,
        sizes: &Bound<'py, PyDict>,
        machine: &str,
    ) -> PyResult<(String, Bound<'py, PyDict>)> {
        let machine: Machine =
            machine.parse().map_err(|error: UnknownMachine| PyValueError::new_err(error.to_string()))?;
        let sizes = self.with_fixed(sizes_of(sizes)?);
        let cost = interruptible(py, || self.kernel.program().cost(&machine, &borrowed(&sizes)))?;
        let cost = cost.map_err(|error| of_setup(py, &error))?;
        Ok((cost.to_string(), numbers_of(py, &cost)?))
    }

    /// The number of blocks along each axis at sizes.
    fn blocks(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>) -> PyResult<(u32, u32, u32)> {
        Ok(self.launch(py, sizes)?.grid.into())
    }

    /// The bytes of each tensor at sizes, from its first element to its last.
    fn tensor_bytes(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>) -> PyResult<Vec<u64>> {
        Ok(self.launch(py, sizes)?.bytes.to_vec())
    }

    /// The sizes at which these arrays are the tensors, including the given ones.
    #[pyo3(name = "fit")]
    fn sizes_for<'py>(
        &self,
        py: Python<'py>,
        arrays: &Bound<'py, PyList>,
        given: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let read = arrays.iter().map(|array| Array::of(&array)).collect::<PyResult<Vec<_>>>()?;
        let given = self.with_fixed(sizes_of(given)?);
        let sizes = PyDict::new(py);
        let fitted = if self.plan.is_empty() {
            self.fit(py, &read, &given)?
        } else {
            self.check_memory(py, &read, &given)?;
            given
        };
        for (name, size) in fitted {
            sizes.set_item(name, size)?;
        }
        Ok(sizes)
    }

    /// Runs the grid on the interpreter, on the bytes of each tensor, and returns the new bytes;
    /// None for inputs. `all_schedules`: under every schedule of the interpreter, which must all
    /// give the same result.
    #[pyo3(signature = (sizes, contents, numbers, *, all_schedules))]
    fn interpret<'py>(
        &self,
        py: Python<'py>,
        sizes: &Bound<'py, PyDict>,
        contents: Vec<PyReadonlyArray1<'py, u8>>,
        numbers: &Bound<'py, PyDict>,
        all_schedules: bool,
    ) -> PyResult<Vec<Option<Bound<'py, PyArray1<u8>>>>> {
        let program = self.kernel.program();
        let sizes = sizes_of(sizes)?;
        let mut interpreter = Interpreter::new(program, &borrowed(&sizes)).map_err(|error| of_setup(py, &error))?;
        for (number, bytes) in contents.iter().enumerate() {
            let bytes = bytes.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))?;
            interpreter.bytes(number, bytes).map_err(|error| of_setup(py, &error))?;
        }
        self.give(py, &mut interpreter, numbers)?;
        interpreter.is_complete().map_err(|error| of_setup(py, &error))?;
        let ran = interruptible(py, || {
            if all_schedules {
                interpreter.check().map(|checked| checked.run)
            } else {
                interpreter.run(Schedule::ALL[0])
            }
        })?;
        let run = ran.map_err(|findings| of_findings(py, &findings))?;
        let left = program.tensors().enumerate().map(|(number, buffer)| {
            if buffer.role == Role::Input {
                return Ok(None);
            }
            let bytes = run.bytes(number).map_err(|error| of_setup(py, &error))?;
            Ok(Some(PyArray1::from_slice(py, bytes)))
        });
        left.collect()
    }

    /// Runs the grid under every schedule with random contents, and reports the defects.
    fn check(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>, numbers: &Bound<'_, PyDict>) -> PyResult<()> {
        let sizes = self.with_fixed(sizes_of(sizes)?);
        let mut interpreter =
            Interpreter::new(self.kernel.program(), &borrowed(&sizes)).map_err(|error| of_setup(py, &error))?;
        self.give(py, &mut interpreter, numbers)?;
        interpreter.fill(1);
        interpreter.is_complete().map_err(|error| of_setup(py, &error))?;
        interruptible(py, || interpreter.check())?.map_err(|findings| of_findings(py, &findings))?;
        Ok(())
    }

    /// The picture of the accesses of a warp of a block, statement by statement, or of one line.
    #[pyo3(signature = (sizes, block, warp = 0, line = None))]
    fn draw(
        &self,
        py: Python<'_>,
        sizes: &Bound<'_, PyDict>,
        block: [u32; 3],
        warp: u32,
        line: Option<u32>,
    ) -> PyResult<Picture> {
        drawing::drawn(py, self, sizes, block, warp, line)
    }

    fn __repr__(&self) -> String {
        let program = self.kernel.program();
        let tensors: Vec<String> =
            program.tensors().map(|own| format!("{}: {} {}", own.name, own.element, own.layout)).collect();
        format!("<kernel {} of {} threads, on {}>", program.name, program.threads, tensors.join(", "))
    }
}

impl Program {
    /// Sizes, including those that the plan fixes.
    pub fn with_fixed(&self, mut sizes: Sizes) -> Sizes {
        for (name, size) in &self.fixed {
            if !sizes.iter().any(|(own, _)| own == name) {
                sizes.push((name.clone(), *size));
            }
        }
        sizes
    }

    /// The launch at these sizes, with 0 for every scalar argument.
    fn launch(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>) -> PyResult<Launch> {
        let sizes = self.with_fixed(sizes_of(sizes)?);
        let sizes = LaunchArguments { sizes: &borrowed(&sizes), numbers: Some(&|_, _| Some(0)) };
        self.kernel.program().launch(sizes).map_err(|error| of_setup(py, &error))
    }

    fn give(&self, py: Python<'_>, interpreter: &mut Interpreter<'_>, numbers: &Bound<'_, PyDict>) -> PyResult<()> {
        for (name, value) in numbers {
            let name = name.extract::<String>()?;
            let element = self.kernel.program().scalars.iter().find_map(|scalar| match scalar {
                Scalar::Given { name: own, element } if *own == name => Some(*element),
                _ => None,
            });
            // A scalar that the kernel never uses is not passed.
            let Some(element) = element else { continue };
            let bits = bits_of(&value, element)?;
            interpreter.number_bits(&name, element, bits).map_err(|error| of_setup(py, &error))?;
        }
        Ok(())
    }
}
