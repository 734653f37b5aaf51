//! Views: tensors in global and shared memory.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright_kernel::{Build, View as KernelView};
use tilewright_layout::atoms::{CopyEnd, Operand as MmaOperand};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyLayout, AnyTree, Coord, Extent, Slot, Tree};
use tilewright_notation::Value;

use super::fragment::Fragment;
use super::operand::{self, Operand};
use super::statement::Thread;
use super::tile::{Distribution, Tile};
use super::tiled::{TiledCopy, TiledMma};
use super::trace::{Handle, ObjectKind, RefusedStatement, Thing, run, shown};
use super::traced::Traced;
use crate::convert::{self, python};

/// A tensor in memory, or a part of one. Operations that cut it return another view of the same
/// memory.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct View {
    pub handle: Handle,
}

impl View {
    /// A part of this view, or another view of its elements.
    fn cut<'py>(
        &self,
        py: Python<'py>,
        cut: impl for<'k> FnOnce(&'k Build, KernelView<'k>) -> Result<KernelView<'k>, RefusedStatement> + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        operand::made(py, move |room| Ok(Thing::View(cut(room.build, room.view(own)?)?)))
    }

    /// A property of this view, from the builder.
    fn tell<R: 'static>(
        &self,
        py: Python<'_>,
        tell: impl for<'k> FnOnce(KernelView<'k>) -> Result<R, RefusedStatement> + 'static,
    ) -> PyResult<R> {
        let own = self.handle;
        run(py, move |room| tell(room.view(own)?))
    }
}

impl View {
    fn partition<'py>(&self, copy: &Bound<'py, TiledCopy>, end: CopyEnd) -> PyResult<Bound<'py, PyAny>> {
        let (by, thread) = (copy.get().copy.clone(), copy.get().thread.clone());
        self.cut(copy.py(), move |_, view| match &thread {
            None => Ok(view.partition(&by, end)?),
            Some(thread) => Ok(view.partition_at(&by, end, thread)?),
        })
    }
}

/// The coordinate with an index for each nested mode; a single number for a nested mode is split
/// into digits.
pub fn digits(build: &Build, shape: &Tree<Expr>, at: &Coord<Expr>) -> Result<Coord<Expr>, RefusedStatement> {
    if at.is_leaf() {
        let [Slot::At(index)] = at.leaves() else { return Ok(at.clone()) };
        if shape.is_leaf() || index.known().is_some() {
            return Ok(at.clone());
        }
        let Some(extents) = shape.leaves().iter().map(Extent::known).collect::<Option<Vec<i64>>>() else {
            return Err(RefusedStatement::here(
                format!(
                    "{index} stands for a mode of shape {shape}, of which the kernel knows too little to take it apart"
                ),
                "write the index of each mode, as a tuple",
            ));
        };
        let mut digits = build.coordinate(index, &extents)?.into_iter();
        return Ok(shape.map(|_| Slot::At(digits.next().unwrap_or(Expr::from(0)))));
    }
    let parts = at.modes().enumerate().map(|(mode, part)| match shape.mode(mode) {
        Some(shape) => digits(build, &shape, &part),
        // The slice itself refuses a coordinate with too many indices.
        None => Ok(part),
    });
    let modes: Vec<Coord<Expr>> = parts.collect::<Result<_, _>>()?;
    Ok(Tree::tuple(&modes)?)
}

#[pymethods]
impl View {
    /// The layout, in elements from the start of the view.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, Value::Layout(self.tell(py, |view| Ok(AnyLayout::from(view.layout().clone())))?))
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, Value::from(self.tell(py, |view| Ok(AnyTree::from(view.shape())))?))
    }

    /// The element type.
    #[getter]
    fn element(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.tell(py, |view| Ok(view.element().name()))
    }

    /// The number of modes.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.tell(py, |view| Ok(view.layout().rank()))
    }

    /// The part at a coordinate, in which `None` keeps a mode: `tiles[(None, None),
    /// tw.block("(x,y)")]`. A number for a nested mode is split into its digits, first mode
    /// fastest. `[tw.thread, None]` is the part of this thread.
    fn __getitem__<'py>(&self, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = at.py();
        if let Ok(items) = at.cast::<PyTuple>()
            && items.iter_borrowed().any(|item| item.is_instance_of::<Thread>())
        {
            let rest = items.iter_borrowed().skip(1).all(|item| item.is_none());
            let first = items.iter_borrowed().next().is_some_and(|item| item.is_instance_of::<Thread>());
            if !first || !rest {
                let text =
                    "the thread itself stands first, and None for the rest; elsewhere its number is `tw.thread()`";
                return Err(PyTypeError::new_err(text));
            }
            return self.thread_part(py);
        }
        let at = operand::coordinate(at)?;
        self.cut(py, move |build, view| Ok(view.slice(digits(build, &view.shape(), &at)?)?))
    }

    /// The tile of this shape at a coordinate of tiles; `None` keeps tiles as modes after those of
    /// the tile. `proj` selects the modes of tile and coordinate that the tensor has: 1 for those,
    /// None for the others.
    #[pyo3(signature = (tiler, coord, proj = None))]
    fn local_tile<'py>(
        &self,
        tiler: &Bound<'py, PyAny>,
        coord: &Bound<'py, PyAny>,
        proj: Option<&Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, (tiler, coord)) = (tiler.py(), operand::projected(tiler, coord, proj)?);
        self.cut(py, move |_, view| Ok(view.local_tile(&tiler, coord)?))
    }

    /// Tiles and the modes over tiles, as `((tile),(rest))`.
    fn zipped_divide<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let text = operand::text(tiler)?;
        self.cut(tiler.py(), move |_, view| Ok(view.zipped_divide(&text)?))
    }

    /// The composition with a layout of its indices, or with a tiler. `tiler`, if given, must be
    /// the shape of the view.
    #[pyo3(signature = (by, tiler = None))]
    fn compose<'py>(&self, by: &Bound<'py, PyAny>, tiler: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let tiler = tiler.map(|tiler| convert::value(tiler).map(|value| value.to_string())).transpose()?;
        let text = operand::text(by)?;
        self.cut(by.py(), move |_, view| {
            let shape = view.shape().to_string();
            if let Some(tiler) = tiler.filter(|tiler| *tiler != shape) {
                let what = format!("the tile has the shape {shape}, and {tiler} is given");
                return Err(RefusedStatement::here(
                    what,
                    "compose a tile with the layout of its own threads and values",
                ));
            }
            Ok(view.compose(&text)?)
        })
    }

    /// As `compose`.
    fn composition<'py>(&self, by: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compose(by, None)
    }

    /// These modes, in this order: `x.select(1, 0)` is the transposed matrix.
    #[pyo3(signature = (*modes))]
    fn select<'py>(&self, py: Python<'py>, modes: Vec<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.cut(py, move |_, view| Ok(view.select(&modes)?))
    }

    /// The modes from `begin` to `end - 1` as one.
    fn group<'py>(&self, py: Python<'py>, begin: usize, end: usize) -> PyResult<Bound<'py, PyAny>> {
        self.cut(py, move |_, view| Ok(view.group(begin..end)?))
    }

    /// The same memory as elements of another type, under a layout of their own.
    fn recast<'py>(&self, element: &Bound<'py, PyAny>, layout: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, element, layout) = (layout.py(), operand::element(element)?, operand::text(layout)?);
        self.cut(py, move |_, view| Ok(view.recast(element, &layout)?))
    }

    /// The part that a thread reads by a tiled copy: the current thread, or the one of the copy's
    /// slice.
    fn partition_source<'py>(&self, copy: &Bound<'py, TiledCopy>) -> PyResult<Bound<'py, PyAny>> {
        self.partition(copy, CopyEnd::Source)
    }

    /// The part that a thread writes by a tiled copy.
    fn partition_destination<'py>(&self, copy: &Bound<'py, TiledCopy>) -> PyResult<Bound<'py, PyAny>> {
        self.partition(copy, CopyEnd::Destination)
    }

    /// The part of an operand, "A", "B" or "C", of a tiled product of a thread.
    fn partition_mma<'py>(&self, mma: &Bound<'py, TiledMma>, operand: &str) -> PyResult<Bound<'py, PyAny>> {
        let (by, thread, operand) = (mma.get().mma.clone(), mma.get().thread.clone(), mma_operand(operand)?);
        self.cut(mma.py(), move |_, view| match &thread {
            None => Ok(view.partition_mma(&by, operand)?),
            Some(thread) => Ok(view.partition_mma_at(&by, operand, thread)?),
        })
    }

    /// Mode 0 at this thread, with the other modes.
    fn thread_part<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.cut(py, |_, view| Ok(view.thread_part()?))
    }

    /// The elements in registers. `predicated`: those past the edges of the tensor are 0.
    #[pyo3(signature = (*, predicated = false))]
    fn load<'py>(&self, py: Python<'py>, predicated: bool) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        operand::made(py, move |room| {
            let view = room.view(own)?;
            let loaded = if predicated { view.load_predicated()? } else { view.load()? };
            Ok(Thing::Fragment(loaded))
        })
    }

    /// Writes a fragment, or one number to each element. `predicated`: not past the edges of the
    /// tensor.
    #[pyo3(signature = (fragment, *, predicated = false))]
    fn store(&self, fragment: &Bound<'_, PyAny>, predicated: bool) -> PyResult<()> {
        let (own, from) = (self.handle, operand::operand(fragment)?);
        run(fragment.py(), move |room| {
            let view = room.view(own)?;
            let from = match from {
                Operand::Of(handle) if handle.kind() == ObjectKind::Fragment => room.fragment(handle)?,
                number => {
                    let filled = view.fragment()?;
                    filled.fill(number.number(room, filled.element())?)?;
                    filled
                }
            };
            let stored = if predicated { view.store_predicated(&from) } else { view.store(&from) };
            Ok(stored?)
        })
    }

    /// Updates the tensor atomically by a fragment: the sum, the product, the minimum or the
    /// maximum.
    #[pyo3(signature = (fragment, reduction = "sum"))]
    fn accumulate(&self, fragment: &Bound<'_, Fragment>, reduction: &str) -> PyResult<()> {
        let (own, from, reduction) = (self.handle, fragment.get().handle, operand::reduction(reduction)?);
        run(fragment.py(), move |room| Ok(room.view(own)?.accumulate(&room.fragment(from)?, reduction)?))
    }

    /// A fragment of the same shape without values; of another element type, if given.
    #[pyo3(signature = (element = None))]
    fn fragment<'py>(&self, py: Python<'py>, element: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let (own, element) = (self.handle, element.map(operand::element).transpose()?);
        operand::made(py, move |room| {
            let view = room.view(own)?;
            let fragment = match element {
                Some(element) => view.fragment_of(element)?,
                None => view.fragment()?,
            };
            Ok(Thing::Fragment(fragment))
        })
    }

    /// The tile in the registers of all threads, with the given distribution. `predicated`:
    /// elements past the edges are 0, or `other`.
    #[pyo3(signature = (held, *, predicated = false, other = None))]
    fn load_tile<'py>(
        &self,
        held: &Bound<'py, Distribution>,
        predicated: bool,
        other: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, held) = (held.py(), self.handle, held.get().held.clone());
        operand::made(py, move |room| {
            let view = room.view(own)?;
            let tile = match (other, predicated) {
                (Some(other), _) => view.load_distributed_or(&held, room.build.number_of(view.element(), other))?,
                (None, true) => view.load_distributed_predicated(&held)?,
                (None, false) => view.load_distributed(&held)?,
            };
            Ok(Thing::Tile(tile))
        })
    }

    /// Writes a tile in the registers of all threads. `predicated`: not past the edges of the
    /// tensor.
    #[pyo3(signature = (tile, *, predicated = false))]
    fn store_tile(&self, tile: &Bound<'_, Tile>, predicated: bool) -> PyResult<()> {
        let (own, from) = (self.handle, tile.get().handle);
        run(tile.py(), move |room| {
            let (view, tile) = (room.view(own)?, room.tile(from)?);
            let stored =
                if predicated { view.store_distributed_predicated(&tile) } else { view.store_distributed(&tile) };
            Ok(stored?)
        })
    }

    fn __repr__(&self) -> String {
        let own = self.handle;
        shown(own, move |room| {
            let view = room.view(own)?;
            Ok(format!("<tensor {} of {}>", view.text(), view.element()))
        })
    }
}

/// The operand of an MMA with a letter.
pub fn mma_operand(letter: &str) -> PyResult<MmaOperand> {
    match letter {
        "A" => Ok(MmaOperand::A),
        "B" => Ok(MmaOperand::B),
        "C" | "D" => Ok(MmaOperand::C),
        _ => Err(PyValueError::new_err(format!("a product has the operands A, B and C, not '{letter}'"))),
    }
}
