//! Bodies of loops, conditions and roles.
//!
//! Law: a `for` over [`range`] runs its body once, for all turns; a `with` runs its body once, for
//! the threads that it is about.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyAny;
use tilewright_kernel::program::Location;
use tilewright_layout::AnyTree;
use tilewright_layout::symbolic::Expr;
use tilewright_notation::Value;

use super::number::Condition;
use super::operand;
use super::place;
use super::trace::{Opened, close, open};
use crate::convert::python;

/// The numbers of bodies begin at 1.
const NONE: u32 = 0;

/// The turns of a loop: `for k in tw.range(count):`.
#[pyclass(frozen, module = "tilewright")]
pub struct Range {
    count: Expr,
    place: Location,
    body: AtomicU32,
}

#[pymethods]
impl Range {
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.body.load(Ordering::Relaxed) {
            NONE => {
                let begun = open(py, self.place, Opened::Range(self.count.clone()))?;
                self.body.store(begun.body, Ordering::Relaxed);
                let index = begun.variable.unwrap_or(Expr::from(0));
                python(py, Value::from(AnyTree::from(index))).map(Some)
            }
            body => {
                self.body.store(NONE, Ordering::Relaxed);
                close(py, body)?;
                Ok(None)
            }
        }
    }
}

/// Turns of a loop of the kernel, for an index from 0 to below `count`, which may be known at
/// launch. The body is traced once; it has no `break`. Python's own `range` unrolls a loop.
#[pyfunction]
pub fn range(count: &Bound<'_, PyAny>) -> PyResult<Range> {
    let place = place::caller(count.py())?;
    Ok(Range { count: operand::index(count)?, place, body: AtomicU32::new(NONE) })
}

/// A body of some threads: `with tw.when(condition):`.
#[pyclass(frozen, module = "tilewright")]
pub struct Body {
    of: Of,
    place: Location,
    body: AtomicU32,
}

#[derive(Clone, Copy)]
enum Of {
    When(Condition),
    Otherwise,
    Role(u32, u32),
    Single,
}

#[pymethods]
impl Body {
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let opened = match self.of {
            Of::When(flag) => Opened::When(flag),
            Of::Otherwise => Opened::Otherwise,
            Of::Role(from, to) => Opened::Role(from, to),
            Of::Single => Opened::Single,
        };
        self.body.store(open(py, self.place, opened)?.body, Ordering::Relaxed);
        Ok(())
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        // With an exception the kernel is given up, and the exception goes on.
        if kind.is_none() {
            close(py, self.body.load(Ordering::Relaxed))?;
        }
        Ok(false)
    }
}

fn body(py: Python<'_>, of: Of) -> PyResult<Body> {
    Ok(Body { of, place: place::caller(py)?, body: AtomicU32::new(NONE) })
}

/// A body for the threads in which a condition is true: `with tw.when(x > 0):`.
#[pyfunction]
pub fn when(condition: &Bound<'_, PyAny>) -> PyResult<Body> {
    body(condition.py(), Of::When(Condition::asked(condition)?))
}

/// A body for the threads in which the condition of the `when` right before is not true.
#[pyfunction]
pub fn otherwise(py: Python<'_>) -> PyResult<Body> {
    body(py, Of::Otherwise)
}

/// A body for the warps from `begin` to before `end`.
#[pyfunction]
pub fn role(py: Python<'_>, begin: u32, end: u32) -> PyResult<Body> {
    body(py, Of::Role(begin, end))
}

/// A body for the first thread of the role, or of the block outside of roles.
#[pyfunction]
pub fn single(py: Python<'_>) -> PyResult<Body> {
    body(py, Of::Single)
}
