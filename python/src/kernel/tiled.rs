//! Tiled copies and tiled products: instructions over threads and tiles.

use pyo3::prelude::*;
use tilewright_atoms::{self as atoms, CopyAtom, MmaAtom};
use tilewright_layout::{AnyLayout, Tiler};
use tilewright_notation::Value;

use super::operand;
use super::view::{View, factor};
use crate::convert::python;
use crate::refusal;

/// A copy of tiles by many threads: an instruction by its name, the layout of threads, and that of
/// the values of each.
#[pyclass(frozen, module = "tilewright")]
pub struct TiledCopy {
    pub copy: atoms::TiledCopy,
}

#[pymethods]
impl TiledCopy {
    #[new]
    fn new(
        py: Python<'_>,
        instruction: &str,
        element: &Bound<'_, PyAny>,
        threads: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<TiledCopy> {
        let bits = i64::from(operand::element(element)?.bits());
        let (threads, values) = (operand::layout(threads)?, operand::layout(values)?);
        let made = CopyAtom::named(instruction).and_then(|atom| atoms::TiledCopy::new(atom, bits, &threads, &values));
        Ok(TiledCopy { copy: made.map_err(|error| refusal::of(py, &error))? })
    }

    /// The copy of an operand, "A", "B" or "C", of a tiled product, in which each thread has what
    /// it has there.
    #[staticmethod]
    fn of_operand(py: Python<'_>, instruction: &str, mma: &Bound<'_, TiledMma>, operand: &str) -> PyResult<TiledCopy> {
        let operand = factor(operand)?;
        let made =
            CopyAtom::named(instruction).and_then(|atom| atoms::TiledCopy::of_operand(atom, &mma.get().mma, operand));
        Ok(TiledCopy { copy: made.map_err(|error| refusal::of(py, &error))? })
    }

    /// The name of the instruction.
    #[getter]
    fn instruction(&self) -> String {
        self.copy.atom().name().to_string()
    }

    /// How many threads copy.
    #[getter]
    fn threads(&self) -> i64 {
        self.copy.threads()
    }

    /// The shape of the tile.
    #[getter]
    fn tile(&self) -> Vec<i64> {
        self.copy.tile_shape()
    }

    /// What this thread reads of a tensor.
    #[pyo3(name = "partition_S")]
    fn partition_source<'py>(slf: &Bound<'py, Self>, view: &Bound<'py, View>) -> PyResult<Bound<'py, PyAny>> {
        view.call_method1("partition_source", (slf,))
    }

    /// What this thread writes of a tensor.
    #[pyo3(name = "partition_D")]
    fn partition_destination<'py>(slf: &Bound<'py, Self>, view: &Bound<'py, View>) -> PyResult<Bound<'py, PyAny>> {
        view.call_method1("partition_destination", (slf,))
    }

    /// The copy itself: what a thread has of it is found by its number in the kernel.
    #[pyo3(signature = (thread = None))]
    fn get_slice<'py>(slf: &Bound<'py, Self>, thread: Option<&Bound<'py, PyAny>>) -> Bound<'py, Self> {
        let _ = thread;
        slf.clone()
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

/// A product of matrices by many threads: an instruction by its name, and the layout of
/// instructions along (M,N,K).
#[pyclass(frozen, module = "tilewright")]
pub struct TiledMma {
    pub mma: atoms::TiledMma,
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
        let atom = MmaAtom::named(instruction).map_err(refuse)?;
        Ok(TiledMma { mma: atoms::TiledMma::new(atom, &layout, &permutation).map_err(refuse)? })
    }

    /// The name of the instruction.
    #[getter]
    fn instruction(&self) -> String {
        self.mma.atom().name().to_string()
    }

    /// How many threads compute.
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
        let layout = self.mma.thread_values(factor(operand)?).map_err(|error| refusal::of(py, &error))?;
        python(py, Value::Layout(AnyLayout::from(layout)))
    }

    /// What this thread has of the first factor, (M,K).
    #[pyo3(name = "partition_A")]
    fn partition_a<'py>(slf: &Bound<'py, Self>, view: &Bound<'py, View>) -> PyResult<Bound<'py, PyAny>> {
        view.call_method1("partition_mma", (slf, "A"))
    }

    /// What this thread has of the second factor, (N,K).
    #[pyo3(name = "partition_B")]
    fn partition_b<'py>(slf: &Bound<'py, Self>, view: &Bound<'py, View>) -> PyResult<Bound<'py, PyAny>> {
        view.call_method1("partition_mma", (slf, "B"))
    }

    /// What this thread has of the result, (M,N).
    #[pyo3(name = "partition_C")]
    fn partition_c<'py>(slf: &Bound<'py, Self>, view: &Bound<'py, View>) -> PyResult<Bound<'py, PyAny>> {
        view.call_method1("partition_mma", (slf, "C"))
    }

    /// A fragment of the sums for a part of the result, in the type of the sums.
    #[pyo3(name = "make_fragment_C")]
    fn make_fragment_c<'py>(&self, view: &Bound<'py, View>) -> PyResult<Bound<'py, PyAny>> {
        let name = self.mma.atom().types().c.to_string();
        match operand::named_element(&name.to_lowercase()) {
            Some(element) => view.call_method1("fragment", (element.name(),)),
            None => view.call_method0("fragment"),
        }
    }

    /// The product itself: what a thread has of it is found by its number in the kernel.
    #[pyo3(signature = (thread = None))]
    fn get_slice<'py>(slf: &Bound<'py, Self>, thread: Option<&Bound<'py, PyAny>>) -> Bound<'py, Self> {
        let _ = thread;
        slf.clone()
    }

    fn __repr__(&self) -> String {
        let [m, n, k] = self.mma.tile_shape();
        format!("<tiled product {} of {} threads, tile ({m},{n},{k})>", self.mma.atom().name(), self.mma.threads())
    }
}
