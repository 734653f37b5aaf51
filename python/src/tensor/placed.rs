//! Elements in memory with a layout.
//!
//! Law: the element at a coordinate is the element of the memory at the layout's offset. A layout
//! has at least one index; tensors without elements are in `empty`.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tilewright_layout::{AnyLayout, Extent, Layout};
use tilewright_notation::{self as notation, Value};
use tilewright_tensor::{AnyOffsets, Offsets};

use super::element::Element;
use super::exchange::Exported;
use super::memory::Memory;
use super::{Tensor, copies, views};
use crate::convert::python;
use crate::foreign::Array;
use crate::function;
use crate::refusal;

/// Elements in memory with a layout.
pub struct Placed {
    pub(super) memory: Arc<Memory>,
    /// The offset in memory of offset 0 of the layout.
    pub(super) origin: i64,
    pub(super) layout: AnyLayout,
    /// The same layout in a form for loops over elements.
    pub(super) offsets: AnyOffsets,
}

impl Placed {
    /// The tensor of some memory with a layout, whose offset 0 is at `origin`.
    ///
    /// Errors: the values of the layout are not offsets, or are outside the memory.
    pub(super) fn new(py: Python<'_>, memory: Arc<Memory>, origin: i64, layout: AnyLayout) -> PyResult<Placed> {
        let offsets = AnyOffsets::try_from(&layout).map_err(|error| refusal::of(py, &error))?;
        let (least, greatest) = offsets.range().map_err(|error| refusal::of(py, &error))?;
        let [first, last] = memory.range();
        let within = |offset: i64| origin.checked_add(offset).is_some_and(|at| (first..=last).contains(&at));
        if !within(least) || !within(greatest) {
            return Err(PyValueError::new_err(format!(
                "{layout} has offsets from {least} to {greatest}, and the memory has elements at {} to {}",
                first.saturating_sub(origin),
                last.saturating_sub(origin)
            )));
        }
        Ok(Placed { memory, origin, layout, offsets })
    }

    /// A new tensor of zeros.
    ///
    /// Errors: the layout is not injective, or that could not be decided; there is not enough
    /// memory.
    pub(super) fn zeroed(py: Python<'_>, element: Element, layout: AnyLayout) -> PyResult<Placed> {
        let offsets = AnyOffsets::try_from(&layout).map_err(|error| refusal::of(py, &error))?;
        let (least, greatest) = offsets.range().map_err(|error| refusal::of(py, &error))?;
        let memory = Memory::zeroed(py, element, least, greatest)?;
        let tensor = Placed { memory: Arc::new(memory), origin: 0, layout, offsets };
        tensor.check_written(py)?;
        Ok(tensor)
    }

    /// Refuses a read-only tensor, and one that is not injective.
    pub(super) fn check_written(&self, py: Python<'_>) -> PyResult<()> {
        self.memory.check_here()?;
        self.memory.check_writable()?;
        match self.offsets.injective() {
            Ok(true) => Ok(()),
            found => Err(refusal::of(
                py,
                &tilewright_tensor::TensorError::Shared {
                    pair: found.is_ok().then(|| self.offsets.collision()).flatten(),
                    layout: self.layout.to_string().into(),
                },
            )),
        }
    }

    /// The addresses from the first byte of an element to the end of the last.
    pub(super) fn addresses(&self, py: Python<'_>) -> PyResult<[usize; 2]> {
        let (least, greatest) = self.offsets.range().map_err(|error| refusal::of(py, &error))?;
        let bytes = self.memory.element().bytes();
        Ok([self.memory.address(self.origin + least), self.memory.address(self.origin + greatest).wrapping_add(bytes)])
    }

    /// The same memory with a layout derived from this one, `beyond` elements further on.
    pub(super) fn seen(&self, py: Python<'_>, layout: AnyLayout, beyond: i64) -> PyResult<Placed> {
        // If the layout is a plain one after an offset, the offset is moved to the tensor's origin.
        let (layout, begins) = match &layout {
            AnyLayout::Composed(composed) => match composed.to_layout() {
                Ok((plain, offset)) => (plain.into(), offset),
                Err(_) => (layout, 0),
            },
            _ => (layout, 0),
        };
        let origin = self.origin.checked_add(beyond).and_then(|origin| origin.checked_add(begins));
        let origin = origin.ok_or_else(|| PyValueError::new_err("an offset past 64 bits"))?;
        Placed::new(py, Arc::clone(&self.memory), origin, layout)
    }

    /// The result of a function of the language with this tensor's layout among its arguments: if
    /// it is a layout of some of the elements, a tensor.
    ///
    /// Errors: those of the function; it does not accept tensors; the layout would access other
    /// elements.
    pub(super) fn called<'py>(
        &self,
        py: Python<'py>,
        row: &'static notation::Function,
        arguments: &[Value],
    ) -> PyResult<Bound<'py, PyAny>> {
        if !super::takes(row) {
            let name = row.name;
            return Err(PyTypeError::new_err(format!(
                "{name} takes a layout, not a tensor: write {name}(t.layout, ..)"
            )));
        }
        let value = row.call(arguments, &[]).map_err(|refused| refusal::of_call(py, &refused))?;
        let Value::Layout(layout) = value else { return python(py, value) };
        views::check(self, row.name, arguments, &layout).map_err(|refused| match refused {
            views::RefusedView::Tensor(error) => refusal::of(py, &error),
            views::RefusedView::Call(text) => PyValueError::new_err(text),
        })?;
        Ok(Bound::new(py, Tensor::from(self.seen(py, layout, 0)?))?.into_any())
    }

    /// The memory, as an argument of kernels: one axis per mode, or, if a mode has no stride, all
    /// of it with the layout.
    ///
    /// Errors: as [`Exported::array`]; there are elements before offset 0.
    pub(super) fn array(&self) -> PyResult<Array> {
        match Exported::of(self) {
            Ok(exported) => exported.array(None),
            Err(_) => Exported::all(self)?.array(Some(Box::new(self.layout.clone()))),
        }
    }

    /// The result of the language's function with this name for the layout and further arguments.
    pub(super) fn asked(&self, py: Python<'_>, name: &'static str, more: &[Value]) -> PyResult<Value> {
        let arguments: Vec<Value> = [self.layout.clone().into()].into_iter().chain(more.iter().cloned()).collect();
        function::value(py, name, &arguments)
    }
}

impl Placed {
    /// The tensor of the indices of a mode from `from` up to `to`, excluded.
    pub(super) fn part(&self, py: Python<'_>, mode: usize, from: i64, to: i64) -> PyResult<Placed> {
        let rank = self.offsets.rank();
        let taken = Layout::mode_of(to - from, 1).map_err(|error| refusal::of_layout(py, error))?;
        let starts = (0..rank).map(|at| Value::from(if at == mode { from } else { 0 })).collect();
        let tiler = (0..rank).map(|at| if at == mode { taken.clone().into() } else { Value::open() }).collect();
        self.within(py, starts, tiler)
    }

    /// The number of indices of a mode.
    pub(super) fn size_of(&self, mode: usize) -> i64 {
        self.layout.mode(mode).and_then(|mode| mode.size().known()).unwrap_or(1)
    }

    /// The number of indices of each mode.
    pub(super) fn sizes(&self) -> Vec<i64> {
        (0..self.offsets.rank()).map(|mode| self.size_of(mode)).collect()
    }

    /// A new compact tensor with as many elements, in index order.
    pub(super) fn compact(&self, py: Python<'_>) -> PyResult<Placed> {
        let layout = Layout::compact(&self.offsets.shape()).map_err(|error| refusal::of_layout(py, error))?;
        Placed::zeroed(py, self.memory.element(), layout.into())
    }

    /// A new tensor with the elements converted to another type, and the same layout.
    pub(super) fn converted(&self, py: Python<'_>, element: Element) -> PyResult<Placed> {
        let made = Placed::zeroed(py, element, self.layout.clone())?;
        copies::copied(py, self, &made, None, None)?;
        Ok(made)
    }

    /// The addresses of one element.
    pub(super) fn one(&self, offset: i64) -> [usize; 2] {
        let address = self.memory.address(offset);
        [address, address.wrapping_add(self.memory.element().bytes())]
    }

    /// The same tensor.
    pub(super) fn again(&self) -> Placed {
        let (layout, offsets) = (self.layout.clone(), self.offsets.clone());
        Placed { memory: Arc::clone(&self.memory), origin: self.origin, layout, offsets }
    }
}
