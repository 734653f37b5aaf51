//! Tiles that the threads of a block hold together.

use pyo3::prelude::*;
use tilewright_kernel::Distribution as Held;
use tilewright_layout::{AnyLayout, AnyTree};
use tilewright_notation::Value;

use super::number::arithmetic;
use super::operand;
use super::place;
use super::tiled::{TiledCopy, TiledMma};
use super::trace::{Handle, RefusedStatement, Thing, run, shown};
use super::traced::Traced;
use super::view::mma_operand;
use crate::convert::python;
use crate::refusal;

/// Who holds what of a tile: from (thread, value) to elements.
#[pyclass(frozen, module = "tilewright")]
pub struct Distribution {
    pub held: Held,
}

#[pymethods]
impl Distribution {
    /// The tile of this shape by a layout `(threads, values)`, which goes to its elements, first
    /// mode fastest.
    #[new]
    fn new(py: Python<'_>, tile: &Bound<'_, PyAny>, layout: &Bound<'_, PyAny>) -> PyResult<Distribution> {
        let (tile, layout) = (operand::shape(tile)?, operand::layout(layout)?);
        distribution(py, || Held::new(&tile, &layout))
    }

    /// What a tiled copy gives each thread of a tile: what it writes, or with `source=True` what it
    /// reads.
    #[staticmethod]
    #[pyo3(signature = (tile, copy, *, source = false))]
    fn of_copy(
        py: Python<'_>,
        tile: &Bound<'_, PyAny>,
        copy: &Bound<'_, TiledCopy>,
        source: bool,
    ) -> PyResult<Distribution> {
        let tile = operand::shape(tile)?;
        let end = if source {
            tilewright_layout::atoms::CopyEnd::Source
        } else {
            tilewright_layout::atoms::CopyEnd::Destination
        };
        distribution(py, || Held::of_copy(&tile, &copy.get().copy, end))
    }

    /// What a tiled product gives each thread of an operand, "A", "B" or "C".
    #[staticmethod]
    fn of_mma(
        py: Python<'_>,
        tile: &Bound<'_, PyAny>,
        mma: &Bound<'_, TiledMma>,
        operand: &str,
    ) -> PyResult<Distribution> {
        let (tile, operand) = (operand::shape(tile)?, mma_operand(operand)?);
        distribution(py, || Held::of_mma(&tile, &mma.get().mma, operand))
    }

    /// The shape of the tile.
    #[getter]
    fn tile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, Value::from(AnyTree::from(self.held.tile().clone())))
    }

    /// From (thread, value) to elements, first mode of the tile fastest.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, Value::Layout(AnyLayout::from(self.held.layout().clone())))
    }

    /// How many threads there are.
    #[getter]
    fn threads(&self) -> i64 {
        self.held.threads()
    }

    /// How many values a thread has.
    #[getter]
    fn values(&self) -> i64 {
        self.held.values()
    }

    fn __repr__(&self) -> String {
        format!("Distribution({}, '{}')", self.held.tile(), self.held.layout())
    }
}

/// Makes a distribution, with the location of the Python caller; it may be refused.
fn distribution(
    py: Python<'_>,
    make: impl FnOnce() -> Result<Held, tilewright_kernel::KernelError>,
) -> PyResult<Distribution> {
    let place = place::caller(py)?;
    let held = place.during(make).map_err(|error| refusal::of_kernel(py, &RefusedStatement::from(error)))?;
    Ok(Distribution { held })
}

/// A tile that the threads of the block hold together. Operators, reductions and conversions make
/// other tiles.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Tile {
    pub handle: Handle,
}

arithmetic! { Tile {
    /// What this thread holds.
    #[getter]
    fn fragment<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        operand::made(py, move |room| Ok(Thing::Fragment(room.tile(own)?.fragment().clone())))
    }

    /// Who holds what.
    #[getter]
    fn distribution(&self, py: Python<'_>) -> PyResult<Distribution> {
        let own = self.handle;
        Ok(Distribution { held: run(py, move |room| Ok(room.tile(own)?.distribution().clone()))? })
    }

    /// The type of the elements.
    #[getter]
    fn element(&self, py: Python<'_>) -> PyResult<&'static str> {
        let own = self.handle;
        run(py, move |room| Ok(room.tile(own)?.element().name()))
    }

    /// The tile reduced along some modes, which keep one element each: `reduction` is "sum",
    /// "product", "minimum" or "maximum". Every thread that held an element of a row holds its
    /// result.
    #[pyo3(signature = (*modes, reduction = "sum"))]
    fn reduce<'py>(&self, py: Python<'py>, modes: Vec<usize>, reduction: &str) -> PyResult<Bound<'py, PyAny>> {
        let (own, reduction) = (self.handle, operand::reduction(reduction)?);
        operand::made(py, move |room| Ok(Thing::Tile(room.tile(own)?.reduce(&modes, reduction)?)))
    }

    /// The greatest elements along some modes, and the place of each among them, as i32.
    #[pyo3(signature = (*modes))]
    fn argmax<'py>(
        &self,
        py: Python<'py>,
        modes: Vec<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let own = self.handle;
        let (greatest, at) = run(py, move |room| {
            let (greatest, at) = room.tile(own)?.argmax(&modes)?;
            Ok((room.keep(Thing::Tile(greatest)), room.keep(Thing::Tile(at))))
        })?;
        Ok((operand::object(py, greatest)?, operand::object(py, at)?))
    }

    /// Each element with all before it along a mode.
    #[pyo3(signature = (mode, reduction = "sum"))]
    fn scan<'py>(&self, py: Python<'py>, mode: usize, reduction: &str) -> PyResult<Bound<'py, PyAny>> {
        let (own, reduction) = (self.handle, operand::reduction(reduction)?);
        operand::made(py, move |room| Ok(Thing::Tile(room.tile(own)?.scan(mode, reduction)?)))
    }

    /// The same tile, held otherwise.
    fn convert<'py>(&self, held: &Bound<'py, Distribution>) -> PyResult<Bound<'py, PyAny>> {
        let (own, held_now, py) = (self.handle, held.get().held.clone(), held.py());
        operand::made(py, move |room| Ok(Thing::Tile(room.tile(own)?.convert(&held_now)?)))
    }

    /// The tile in another type.
    fn to<'py>(&self, py: Python<'py>, element: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (own, element) = (self.handle, operand::element(element)?);
        operand::made(py, move |room| Ok(Thing::Tile(room.tile(own)?.to(element)?)))
    }

    fn __repr__(&self) -> String {
        let own = self.handle;
        shown(own, move |room| {
            let tile = room.tile(own)?;
            let held = tile.distribution();
            Ok(format!("<tile {} of {}, held as {}>", held.tile(), tile.element(), held.layout()))
        })
    }
} }
