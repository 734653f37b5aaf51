//! Tiled copies and tiled MMAs: instructions over threads and tiles.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use tilewright_layout::atoms;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyLayout, AnyTree, Tiler};
use tilewright_notation::Value;

use super::coordinates::Coordinates;
use super::fragment::Fragment;
use super::operand;
use super::statement::Thread;
use super::view::{View, mma_operand};
use crate::convert::{self, python};
use crate::{function, refusal};

/// A copy instruction for an element type, which `make_tiled_copy_tv` repeats over threads and
/// values, and with which parts are copied.
#[pyclass(frozen, module = "tilewright")]
pub struct CopyAtom {
    pub atom: atoms::CopyAtom,
    /// The bits of an element, if given.
    bits: Option<i64>,
}

#[pymethods]
impl CopyAtom {
    #[new]
    #[pyo3(signature = (instruction, element = None))]
    fn new(py: Python<'_>, instruction: &str, element: Option<&Bound<'_, PyAny>>) -> PyResult<CopyAtom> {
        let atom = atoms::CopyAtom::named(instruction).map_err(|error| refusal::of(py, &error))?;
        Ok(CopyAtom { atom, bits: element.map(bits_of).transpose()? })
    }

    /// The name of the instruction.
    #[getter]
    fn instruction(&self) -> String {
        self.atom.name().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<copy atom {}>", self.atom.name())
    }
}

/// The bits of an element: of a type, or as an integer.
fn bits_of(element: &Bound<'_, PyAny>) -> PyResult<i64> {
    match element.cast_exact::<PyInt>() {
        Ok(bits) => bits.extract(),
        Err(_) => Ok(i64::from(operand::element(element)?.bits())),
    }
}

/// The instruction that a name or a copy atom denotes, and the bits of its elements, if given.
fn instruction_of(object: &Bound<'_, PyAny>) -> PyResult<(atoms::CopyAtom, Option<i64>)> {
    if let Ok(atom) = object.cast::<CopyAtom>() {
        return Ok((atom.get().atom.clone(), atom.get().bits));
    }
    let name = object.extract::<String>()?;
    let atom = atoms::CopyAtom::named(&name).map_err(|error| refusal::of(object.py(), &error))?;
    Ok((atom, None))
}

/// The thread of a slice; None for the current thread.
fn thread_of(thread: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Expr>> {
    match thread {
        None => Ok(None),
        Some(thread) if thread.is_none() || thread.is_instance_of::<Thread>() => Ok(None),
        Some(thread) => operand::index(thread).map(Some),
    }
}

/// Calls the function of the package with this name on a value of the language.
fn in_the_language<'py>(name: &str, own: &Bound<'py, PyAny>, of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    own.py().import("tilewright")?.getattr(name)?.call1((own, of))
}

/// The value of a program, or of one thread of it.
fn value_of(py: Python<'_>, program: &str, thread: Option<&Expr>) -> PyResult<Value> {
    let tiled = convert::program(py, program)?;
    match thread {
        None => Ok(tiled),
        Some(thread) => function::value(py, "get_slice", &[tiled, Value::from(AnyTree::from(thread.clone()))]),
    }
}

/// A copy of tiles by many threads: an instruction by its name, and the layouts of threads and of
/// the values of each thread.
#[pyclass(frozen, module = "tilewright")]
pub struct TiledCopy {
    pub copy: atoms::TiledCopy,
    /// The thread whose partitions are made; None for the current thread.
    pub thread: Option<Expr>,
    /// The expression of the language for it.
    program: String,
}

impl TiledCopy {
    /// Its value in the language.
    pub fn value(&self, py: Python<'_>) -> PyResult<Value> {
        value_of(py, &self.program, self.thread.as_ref())
    }
}

#[pymethods]
impl TiledCopy {
    #[new]
    fn new(
        py: Python<'_>,
        instruction: &Bound<'_, PyAny>,
        element: &Bound<'_, PyAny>,
        threads: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<TiledCopy> {
        let (atom, said) = instruction_of(instruction)?;
        let bits = match (element.is_none(), said) {
            (true, Some(bits)) => bits,
            (true, None) => return Err(PyTypeError::new_err("a tiled copy is of elements of a type: say it")),
            (false, _) => bits_of(element)?,
        };
        let (threads, values) = (operand::layout(threads)?, operand::layout(values)?);
        let program = format!("make_tiled_copy_tv({}, {bits}, {threads}, {values})", atoms::word(atom.name()));
        let copy = atoms::TiledCopy::new(atom, bits, &threads, &values).map_err(|error| refusal::of(py, &error))?;
        Ok(TiledCopy { copy, thread: None, program })
    }

    /// The copy of an operand, "A", "B" or "C", of a tiled product, with the thread-value layout of
    /// that operand.
    #[staticmethod]
    fn of_operand(
        py: Python<'_>,
        instruction: &Bound<'_, PyAny>,
        mma: &Bound<'_, TiledMma>,
        operand: &str,
    ) -> PyResult<TiledCopy> {
        let (atom, _) = instruction_of(instruction)?;
        let letter = if operand == "D" { "C" } else { operand };
        let program = format!("make_tiled_copy_{letter}({}, {})", atoms::word(atom.name()), mma.get().program);
        let made = atoms::TiledCopy::of_operand(atom, &mma.get().mma, mma_operand(operand)?);
        Ok(TiledCopy { copy: made.map_err(|error| refusal::of(py, &error))?, thread: None, program })
    }

    /// The name of the instruction.
    #[getter]
    fn instruction(&self) -> String {
        self.copy.atom().name().to_string()
    }

    /// The number of threads.
    #[getter]
    fn threads(&self) -> i64 {
        self.copy.threads()
    }

    /// The shape of the tile.
    #[getter]
    fn tile(&self) -> Vec<i64> {
        self.copy.tile_shape()
    }

    /// The part of a tensor that a thread reads.
    #[pyo3(name = "partition_S")]
    fn partition_source<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if tensor.is_instance_of::<View>() || tensor.is_instance_of::<Coordinates>() {
            return tensor.call_method1("partition_source", (slf,));
        }
        in_the_language("partition_S", slf.as_any(), tensor)
    }

    /// The part of a tensor that a thread writes.
    #[pyo3(name = "partition_D")]
    fn partition_destination<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if tensor.is_instance_of::<View>() || tensor.is_instance_of::<Coordinates>() {
            return tensor.call_method1("partition_destination", (slf,));
        }
        in_the_language("partition_D", slf.as_any(), tensor)
    }

    /// The registers of a fragment, with the modes of the source part of a thread.
    #[pyo3(name = "retile_S")]
    fn retile_source<'py>(slf: &Bound<'py, Self>, fragment: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if fragment.is_instance_of::<Fragment>() {
            return fragment.call_method1("retile_source", (slf,));
        }
        in_the_language("retile_S", slf.as_any(), fragment)
    }

    /// The registers of a fragment, with the modes of the destination part of a thread.
    #[pyo3(name = "retile_D")]
    fn retile_destination<'py>(slf: &Bound<'py, Self>, fragment: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if fragment.is_instance_of::<Fragment>() {
            return fragment.call_method1("retile_destination", (slf,));
        }
        in_the_language("retile_D", slf.as_any(), fragment)
    }

    /// The copy for a thread: the current one without an argument or with `tw.thread`.
    #[pyo3(signature = (thread = None))]
    fn get_slice(&self, thread: Option<&Bound<'_, PyAny>>) -> PyResult<TiledCopy> {
        Ok(TiledCopy { copy: self.copy.clone(), thread: thread_of(thread)?, program: self.program.clone() })
    }

    fn __repr__(&self) -> String {
        let tile: Vec<String> = self.copy.tile_shape().iter().map(i64::to_string).collect();
        format!(
            "<tiled copy {} of {} threads, tile ({})>",
            self.copy.atom().name(),
            self.copy.threads(),
            tile.join(",")
        )
    }
}

/// A matrix product by many threads: an instruction by its name, and the layout of instructions
/// along (M,N,K).
#[pyclass(frozen, module = "tilewright")]
pub struct TiledMma {
    pub mma: atoms::TiledMma,
    /// The thread whose partitions are made; None for the current thread.
    pub thread: Option<Expr>,
    /// The expression of the language for it.
    program: String,
}

impl TiledMma {
    /// Its value in the language.
    pub fn value(&self, py: Python<'_>) -> PyResult<Value> {
        value_of(py, &self.program, self.thread.as_ref())
    }

    fn part<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>, operand: &str) -> PyResult<Bound<'py, PyAny>> {
        if tensor.is_instance_of::<View>() || tensor.is_instance_of::<Coordinates>() {
            return tensor.call_method1("partition_mma", (slf, operand));
        }
        in_the_language(&format!("partition_{operand}"), slf.as_any(), tensor)
    }

    /// A fragment for a part of an operand; a warpgroup MMA reads shared memory instead.
    fn made<'py>(
        slf: &Bound<'py, Self>,
        part: &Bound<'py, PyAny>,
        operand: &str,
        value: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !part.is_instance_of::<View>() {
            return in_the_language(&format!("make_fragment_{operand}"), slf.as_any(), part);
        }
        let name = slf.get().mma.atom().name();
        if name.starts_with("SM90_64x") && (operand == "B" || (operand == "A" && !name.contains("_RS"))) {
            return Ok(part.clone());
        }
        match operand::named_element(&value.to_lowercase()) {
            Some(element) => part.call_method1("fragment", (element.name(),)),
            None => part.call_method0("fragment"),
        }
    }
}

#[pymethods]
impl TiledMma {
    #[new]
    #[pyo3(signature = (instruction, atoms_layout = None, permutation = None))]
    fn new(
        py: Python<'_>,
        instruction: &str,
        atoms_layout: Option<&Bound<'_, PyAny>>,
        permutation: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TiledMma> {
        let refuse = |error: atoms::AtomError| refusal::of(py, &error);
        let layout = match atoms_layout {
            Some(layout) => operand::layout(layout)?,
            None => "(1,1,1)".parse().map_err(|error| refusal::of_layout(py, error))?,
        };
        let permutation = permutation.map_or(Ok(Tiler::Keep), operand::tiler)?;
        let atom = atoms::MmaAtom::named(instruction).map_err(refuse)?;
        let program = format!("make_tiled_mma({}, {layout}, {permutation})", atoms::word(atom.name()));
        let mma = atoms::TiledMma::new(atom, &layout, &permutation).map_err(refuse)?;
        Ok(TiledMma { mma, thread: None, program })
    }

    /// The name of the instruction.
    #[getter]
    fn instruction(&self) -> String {
        self.mma.atom().name().to_string()
    }

    /// The number of threads.
    #[getter]
    fn threads(&self) -> i64 {
        self.mma.threads()
    }

    /// The shape (M,N,K) of the tile.
    #[getter]
    fn tile(&self) -> (i64, i64, i64) {
        self.mma.tile_shape().into()
    }

    /// From (thread, value) to elements of an operand, "A", "B" or "C".
    fn thread_values<'py>(&self, py: Python<'py>, operand: &str) -> PyResult<Bound<'py, PyAny>> {
        let layout = self.mma.thread_values(mma_operand(operand)?).map_err(|error| refusal::of(py, &error))?;
        python(py, Value::Layout(AnyLayout::from(layout)))
    }

    /// The part of operand A, (M,K), of a thread.
    #[pyo3(name = "partition_A")]
    fn partition_a<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        TiledMma::part(slf, tensor, "A")
    }

    /// The part of operand B, (N,K), of a thread.
    #[pyo3(name = "partition_B")]
    fn partition_b<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        TiledMma::part(slf, tensor, "B")
    }

    /// The part of the result, (M,N), of a thread.
    #[pyo3(name = "partition_C")]
    fn partition_c<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        TiledMma::part(slf, tensor, "C")
    }

    /// A fragment for a part of operand A; the part itself, if the instruction reads memory.
    #[pyo3(name = "make_fragment_A")]
    fn make_fragment_a<'py>(slf: &Bound<'py, Self>, part: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let types = slf.get().mma.atom().types();
        TiledMma::made(slf, part, "A", &types.a.to_string())
    }

    /// A fragment for a part of operand B; the part itself, if the instruction reads memory.
    #[pyo3(name = "make_fragment_B")]
    fn make_fragment_b<'py>(slf: &Bound<'py, Self>, part: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let types = slf.get().mma.atom().types();
        TiledMma::made(slf, part, "B", &types.b.to_string())
    }

    /// An accumulator for a part of the result, of the accumulator type.
    #[pyo3(name = "make_fragment_C")]
    fn make_fragment_c<'py>(slf: &Bound<'py, Self>, part: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let types = slf.get().mma.atom().types();
        TiledMma::made(slf, part, "C", &types.c.to_string())
    }

    /// The product for a thread: the current one without an argument or with `tw.thread`.
    #[pyo3(signature = (thread = None))]
    fn get_slice(&self, thread: Option<&Bound<'_, PyAny>>) -> PyResult<TiledMma> {
        Ok(TiledMma { mma: self.mma.clone(), thread: thread_of(thread)?, program: self.program.clone() })
    }

    fn __repr__(&self) -> String {
        let [m, n, k] = self.mma.tile_shape();
        format!("<tiled product {} of {} threads, tile ({m},{n},{k})>", self.mma.atom().name(), self.mma.threads())
    }
}
