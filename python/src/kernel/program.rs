//! Kernels that are written: what they cost, their text, and runs on the interpreter.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tilewright_kernel::cost::Machine;
use tilewright_kernel::interpret::{Findings, Interpreter, Schedule, SetupError};
use tilewright_kernel::program::memory::{Buffer, Role};
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::ptx::{self, Target};
use tilewright_kernel::{Element, Kernel, Written};
use tilewright_layout::symbolic::{Expr, Parameter, Symbolic};
use tilewright_layout::{AnyLayout, Extent, Layout, Refusal};
use tilewright_notation::Value;

use super::drawing;
use super::trace::{self, Refused};
use crate::convert::python;
use crate::foreign::Array;
use crate::interrupt::interruptible;
use crate::picture::Picture;
use crate::refusal;
use tilewright_kernel::program::Location;

/// A kernel that is written: one program, which the interpreter runs, and which is printed for a
/// GPU.
#[pyclass(frozen, module = "tilewright")]
pub struct Program {
    pub kernel: Kernel,
    /// What was planned, where it was.
    pub plan: Vec<String>,
    /// The sizes that the plan fixes.
    pub fixed: Vec<(String, i64)>,
}

/// Writes a kernel: the function is called once, without arguments.
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
        // An index of a loop that is used behind it, say.
        let at = malformed.source.and_then(|source| program.sources.get(source.index())).map(|source| source.location);
        let help = "what a body computes, and the index of a loop, are gone when the body is over".to_string();
        return Err(refusal::of_kernel(py, &Refused::Here(malformed.what.to_string(), help, at)));
    }
    Ok(Program { kernel, plan: Vec::new(), fixed: Vec::new() })
}

/// Sizes by their names.
pub fn sizes_of(sizes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, i64)>> {
    sizes.iter().map(|(name, size)| Ok((name.extract::<String>()?, size.extract::<i64>()?))).collect()
}

/// Sizes as the kernels' functions take them.
pub fn borrowed(sizes: &[(String, i64)]) -> Vec<(&str, i64)> {
    sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect()
}

/// The exception of sizes or contents that the program does not take.
pub fn of_setup(py: Python<'_>, error: &SetupError) -> PyErr {
    let at = match error {
        SetupError::Malformed { source: Some(source), .. } => Some(source.location),
        _ => None,
    };
    refusal::of_run(py, Refusal::code(error), &error.to_string(), None, at)
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

/// The layout with numbers known at launch that a tensor was declared with; none of those behind a
/// swizzle.
fn declared(buffer: &Buffer) -> Option<Layout<Expr>> {
    buffer.layout.parse().ok()
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

impl Program {
    /// The sizes at which the tensors of the kernel are these arrays. `given` are those that are
    /// known otherwise.
    ///
    /// Errors: another number of arrays; an array of another type, or one that may not be written;
    /// a size that no array tells; an array that does not lie as the kernel says.
    pub fn fit(&self, py: Python<'_>, arrays: &[Array], given: &[(String, i64)]) -> PyResult<Vec<(String, i64)>> {
        let program = self.kernel.program();
        let refuse = |what: String, help: &str| Err(refusal::of_run(py, "E1003", &what, Some(help), None));
        let count = program.tensors().count();
        if count != arrays.len() {
            return refuse(format!("`{}` takes {count} arrays, and {} are given", program.name, arrays.len()), "");
        }
        let mut sizes: Vec<(String, i64)> = given.to_vec();
        for (buffer, array) in program.tensors().zip(arrays) {
            let name = &buffer.name;
            if buffer.element != array.element {
                let what = format!("`{name}` has elements of type {}, and {} is given", buffer.element, array.element);
                return refuse(what, "convert the array, or write the kernel for its type");
            }
            if buffer.role != Role::Input && array.read_only {
                return refuse(format!("`{name}` is written, and the array may only be read"), "");
            }
        }
        // Extents first: a stride tells the size of something else where an array lies otherwise
        // than the kernel says.
        let mut other_rank = None;
        for strides in [false, true] {
            for (buffer, array) in program.tensors().zip(arrays) {
                let Some(layout) = declared(buffer) else { continue };
                if layout.rank() != array.shape.len() {
                    other_rank = other_rank.or(Some((buffer, array)));
                    continue;
                }
                let modes = (0..layout.rank()).filter_map(|mode| layout.mode(mode));
                for (mode, value) in modes.zip(if strides { &array.strides } else { &array.shape }) {
                    let [leaf] = mode.leaves() else { continue };
                    let of = if strides { &leaf.stride } else { &leaf.extent };
                    let parameters = of.parameters();
                    let [parameter] = parameters.as_slice() else { continue };
                    let known = |name: &str| sizes.iter().any(|(own, _)| own == name);
                    let Some(own) = parameter.name().filter(|own| !known(own)) else { continue };
                    if Expr::from(parameter.clone()) == *of {
                        sizes.push((own.to_string(), *value));
                    }
                }
            }
        }
        let known = |size: &str| sizes.iter().any(|(own, _)| own == size);
        let all_known = program.sizes.iter().filter_map(Parameter::name).all(known);
        if let (false, Some((buffer, array))) = (all_known, other_rank) {
            let (name, layout, lies) = (&buffer.name, &buffer.layout, array.text());
            return refuse(
                format!(
                    "`{name}` is {layout} in the kernel, and the array, with another number of axes, lies as {lies}"
                ),
                "pass an array of as many axes, or the sizes by their names",
            );
        }
        // What nothing has is refused here, and facts are checked.
        let layouts = program.layouts(&borrowed(&sizes)).map_err(|error| of_setup(py, &error))?;
        for ((buffer, array), layout) in program.tensors().zip(arrays).zip(&layouts) {
            if !lies(array, layout) {
                let name = &buffer.name;
                let what = format!(
                    "`{name}` is {} in the kernel, at these sizes {layout}, and the array lies as {}",
                    buffer.layout,
                    array.text()
                );
                return refuse(
                    what,
                    "pass an array that lies so, as by `.contiguous()`, or declare the layout that it has",
                );
            }
        }
        Ok(sizes)
    }

    /// Whether arrays are as large as the tensors of the kernel at sizes.
    pub fn is_memory(&self, py: Python<'_>, arrays: &[Array], sizes: &[(String, i64)]) -> PyResult<()> {
        let program = self.kernel.program();
        let launch = program.launch_with(&borrowed(sizes), |_, _| Some(0)).map_err(|error| of_setup(py, &error))?;
        for ((buffer, array), bytes) in program.tensors().zip(arrays).zip(&launch.bytes) {
            let there = array.span().unwrap_or(0).unsigned_abs() * u64::from(array.element.bytes());
            let read_only = buffer.role != Role::Input && array.read_only;
            if there < *bytes || !holds(buffer.element, array.element) || read_only {
                let what = format!(
                    "`{}` has {bytes} bytes of {}, and the array has {there} of {}",
                    buffer.name, buffer.element, array.element
                );
                return Err(refusal::of_run(py, "E1003", &what, None, None));
            }
        }
        Ok(())
    }
}

/// Whether what a planned kernel knows as one type may be an array of another: a copy whose runs
/// lie alike in both arrays moves several elements as one unsigned number of as many bits.
fn holds(kernel: Element, array: Element) -> bool {
    let moved = matches!(kernel, Element::U16 | Element::U32 | Element::U64) && kernel.bytes() > array.bytes();
    kernel == array || moved
}

/// Whether an array has its elements where a layout has them: mode by mode; or one after another,
/// as many as the layout reaches.
fn lies(array: &Array, layout: &AnyLayout) -> bool {
    if let Some(own) = &array.layout {
        return own.same_function(layout).is_ok_and(|same| same.proved());
    }
    let of_array = || -> Option<Layout> {
        let modes = array.shape.iter().zip(&array.strides);
        let modes: Vec<Layout> =
            modes.map(|(extent, stride)| Layout::mode_of(*extent, *stride)).collect::<Result<_, _>>().ok()?;
        Layout::tuple(&modes).ok()
    };
    if let Some(layout) = layout.integer()
        && layout.rank() == array.shape.len()
        && let Some(own) = of_array()
    {
        let same = |mode: usize| match (layout.mode(mode), own.mode(mode)) {
            (Some(a), Some(b)) => matches!((a.coalesce(), b.coalesce()), (Ok(a), Ok(b)) if a == b),
            _ => false,
        };
        let sizes = |layout: &Layout| layout.modes().map(|mode| mode.size()).collect::<Vec<i64>>();
        return sizes(layout) == sizes(&own) && (0..layout.rank()).all(same);
    }
    let reached = layout.cosize().ok().and_then(|cosize| cosize.known());
    matches!((&array.shape[..], &array.strides[..]), ([extent], [1]) if reached == Some(*extent))
}

#[pymethods]
impl Program {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.kernel.name()
    }

    /// What was planned, a line for each decision.
    #[getter]
    fn plan(&self) -> Vec<String> {
        self.plan.clone()
    }

    /// The sizes that the plan fixes.
    #[getter]
    fn fixed(&self) -> Vec<(String, i64)> {
        self.fixed.clone()
    }

    /// The numbers that become known at launch, with what is promised about each.
    #[getter]
    fn sizes(&self) -> Vec<String> {
        self.kernel.program().sizes.iter().map(ToString::to_string).collect()
    }

    /// The tensors, in the order in which they are passed: name, type, role and layout.
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

    /// The numbers that the launch passes: name and type.
    #[getter]
    fn numbers(&self) -> Vec<(String, &'static str)> {
        let scalars = self.kernel.program().scalars.iter();
        let given = scalars.filter_map(|scalar| match scalar {
            Scalar::Given { name, element } => Some((name.clone(), element.name())),
            _ => None,
        });
        given.collect()
    }

    /// The outputs, and whether each of their elements is shown to be written by one thread.
    #[getter]
    fn outputs(&self) -> Vec<(String, bool)> {
        let outputs = self.kernel.outputs().iter();
        outputs.map(|own| (own.tensor.clone(), own.written == Written::Once)).collect()
    }

    /// How many threads a block has.
    #[getter]
    fn threads(&self) -> u32 {
        self.kernel.program().threads
    }

    /// How many bytes of shared memory a block takes.
    #[getter]
    fn shared_bytes(&self) -> u32 {
        self.kernel.program().shared_bytes
    }

    /// How many blocks there are along each axis, as expressions of the sizes.
    #[getter]
    fn grid(&self) -> (String, String, String) {
        let [x, y, z] = &self.kernel.program().grid;
        (x.to_string(), y.to_string(), z.to_string())
    }

    /// The text for a GPU: for "sm_80", "sm_89" or "sm_90a".
    #[pyo3(signature = (target = "sm_90a"))]
    fn ptx(&self, py: Python<'_>, target: &str) -> PyResult<String> {
        let known = || Target::ALL.map(Target::name).join(", ");
        let target = Target::named(target)
            .ok_or_else(|| PyValueError::new_err(format!("there is no target '{target}'; there are {}", known())))?;
        ptx::write(self.kernel.program(), target).map_err(|error| refusal::of(py, &error))
    }

    /// What a launch at sizes costs on a machine, "H200", "H100" or "A100", as text.
    #[pyo3(signature = (sizes, machine = "H200"))]
    fn cost(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>, machine: &str) -> PyResult<String> {
        let known = || Machine::NAMES.join(", ");
        let machine = Machine::named(machine)
            .ok_or_else(|| PyValueError::new_err(format!("there is no machine '{machine}'; there are {}", known())))?;
        let sizes = self.with_fixed(sizes_of(sizes)?);
        let cost = interruptible(py, || self.kernel.program().cost(&machine, &borrowed(&sizes)))?;
        cost.map(|cost| cost.to_string()).map_err(|error| of_setup(py, &error))
    }

    /// How many blocks there are along each axis at sizes.
    fn blocks(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>) -> PyResult<(u32, u32, u32)> {
        let sizes = self.with_fixed(sizes_of(sizes)?);
        let launch = self.kernel.program().launch_with(&borrowed(&sizes), |_, _| Some(0));
        Ok(launch.map_err(|error| of_setup(py, &error))?.grid.into())
    }

    /// How many bytes each tensor has at sizes, from its first element to its last.
    fn tensor_bytes(&self, py: Python<'_>, sizes: &Bound<'_, PyDict>) -> PyResult<Vec<u64>> {
        let sizes = self.with_fixed(sizes_of(sizes)?);
        let launch = self.kernel.program().launch_with(&borrowed(&sizes), |_, _| Some(0));
        Ok(launch.map_err(|error| of_setup(py, &error))?.bytes.to_vec())
    }

    /// The sizes at which these arrays are the tensors, those given among them.
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
            self.is_memory(py, &read, &given)?;
            given
        };
        for (name, size) in fitted {
            sizes.set_item(name, size)?;
        }
        Ok(sizes)
    }

    /// Runs the grid on the interpreter, on the bytes of each tensor, and gives those that are
    /// left; none for inputs. `all_schedules`: under every order in which it may run, which must
    /// not matter.
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

    /// Runs the grid under every schedule with contents by chance, and finds what is wrong.
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

    /// The picture of what a warp of a block reaches, statement by statement, or of one line's.
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
    /// Sizes, with those that the plan fixes.
    pub fn with_fixed(&self, mut sizes: Vec<(String, i64)>) -> Vec<(String, i64)> {
        for (name, size) in &self.fixed {
            if !sizes.iter().any(|(own, _)| own == name) {
                sizes.push((name.clone(), *size));
            }
        }
        sizes
    }

    fn give(&self, py: Python<'_>, interpreter: &mut Interpreter<'_>, numbers: &Bound<'_, PyDict>) -> PyResult<()> {
        for (name, value) in numbers {
            let name = name.extract::<String>()?;
            let element = self.kernel.program().scalars.iter().find_map(|scalar| match scalar {
                Scalar::Given { name: own, element } if *own == name => Some(*element),
                _ => None,
            });
            // A number that the kernel never uses is not passed.
            let Some(element) = element else { continue };
            let bits = bits_of(&value, element)?;
            interpreter.number_bits(&name, element, bits).map_err(|error| of_setup(py, &error))?;
        }
        Ok(())
    }
}

/// The axes of an array: the type of its elements, extents, strides, the CUDA device, and how many
/// elements there are from a multiple of 16 bytes to the first.
type Axes<'py> = (&'static str, Bound<'py, PyTuple>, Bound<'py, PyTuple>, Option<usize>, i64);

/// The type of the elements of an array, the extents and strides of its axes, the number of its
/// CUDA device, and how many elements before the first one memory is aligned as copies of 16 bytes
/// need it; 0 on the host, where nothing depends on it.
///
/// Errors: it is no array, has no elements, or an axis goes backwards.
#[pyfunction]
pub fn array_axes<'py>(array: &Bound<'py, PyAny>) -> PyResult<Axes<'py>> {
    let (py, read) = (array.py(), Array::of(array)?);
    read.check_ascending()?;
    let (shape, strides) = (PyTuple::new(py, &read.shape)?, PyTuple::new(py, &read.strides)?);
    Ok((read.element.name(), shape, strides, read.device, read.before()))
}

/// The type of the elements of an array, and the layout that it has.
#[pyfunction]
pub fn array_layout<'py>(array: &Bound<'py, PyAny>) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
    let read = Array::of(array)?;
    read.check_ascending()?;
    if let Some(layout) = read.layout {
        return Ok((read.element.name(), python(array.py(), Value::Layout(*layout))?));
    }
    let modes = read.shape.iter().zip(&read.strides);
    let modes: Vec<Layout> = modes
        .map(|(extent, stride)| Layout::mode_of(*extent, *stride))
        .collect::<Result<_, _>>()
        .map_err(|error| refusal::of_layout(array.py(), error))?;
    let layout = match modes.as_slice() {
        [only] => Ok(only.clone()),
        several => Layout::tuple(several),
    };
    let layout = layout.map_err(|error| refusal::of_layout(array.py(), error))?;
    Ok((read.element.name(), python(array.py(), Value::Layout(AnyLayout::from(layout)))?))
}
