//! Bodies of loops, conditions and roles.
//!
//! Law: a `for` over [`range`] runs its body once, on behalf of all iterations. A `with` runs its
//! body once, on behalf of the threads that it selects.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyAny;
use tilewright_kernel::program::Location;
use tilewright_layout::AnyTree;
use tilewright_layout::symbolic::Expr;
use tilewright_notation::Value;

use super::number::Condition;
use super::operand;
use super::place;
use super::trace::{OpenedBody, close, open};
use super::traced::{self, Traced};
use crate::convert::python;
use crate::refusal;

/// Bodies are numbered from 1.
const NONE: u32 = 0;

/// The iterations of a loop: `for k in tw.range(count):`.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Range {
    count: Expr,
    place: Location,
    body: AtomicU32,
    names: Names,
}

/// The names of a function of Python at the start of a body: see `_bodies.py`.
#[derive(Default)]
struct Names(Mutex<Option<Py<PyAny>>>);

impl Names {
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        let names = py.import(intern!(py, "tilewright._bodies"))?.call_method0(intern!(py, "begin"))?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(names.unbind());
        Ok(())
    }

    /// An error if the body has rebound names that are read afterwards.
    fn end(&self, py: Python<'_>, statement: &str, instead: &str) -> PyResult<()> {
        let Some(names) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        let module = py.import(intern!(py, "tilewright._bodies"))?;
        module.call_method1(intern!(py, "end"), (names, statement, instead)).map(drop)
    }
}

#[pymethods]
impl Range {
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let module = slf.py().import(intern!(slf.py(), "tilewright._bodies"))?;
        if !module.call_method0(intern!(slf.py(), "iterates"))?.is_truthy()? {
            return Err(refusal::of_traced(slf.as_any(), "__iter__"));
        }
        Ok(slf.clone())
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.body.load(Ordering::Relaxed) {
            NONE => {
                let begun = open(py, self.place, OpenedBody::Range(self.count.clone()))?;
                self.body.store(begun.body, Ordering::Relaxed);
                self.names.begin(py)?;
                let index = begun.variable.unwrap_or(Expr::from(0));
                python(py, Value::from(AnyTree::from(index))).map(Some)
            }
            body => {
                self.body.store(NONE, Ordering::Relaxed);
                close(py, body)?;
                let instead = "write into a fragment that is made before the loop: `sums += x`, `last.set(x)`";
                self.names.end(py, "tw.range", instead)?;
                Ok(None)
            }
        }
    }
}

/// Iterations of a loop of the kernel, for an index from 0 to below `count`, which may be known at
/// launch. The body is traced once, and must not contain `break`. Python's own `range` unrolls a
/// loop.
#[pyfunction]
pub fn range<'py>(count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Range>> {
    let place = place::caller(count.py())?;
    let range = Range { count: operand::index(count)?, place, body: AtomicU32::new(NONE), names: Names::default() };
    traced::object(count.py(), range)
}

/// A body of some threads: `with tw.when(condition):`.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Body {
    of: Of,
    place: Location,
    body: AtomicU32,
    names: Names,
}

/// The advice for a name that is rebound in the body of a condition.
const CHOSEN: &str =
    "choose with `tw.where(condition, yes, no)`, or write into a fragment that is made before: `x.set(y)`";
/// The hint for a name that is rebound in a body for some of the threads.
const SHARED: &str = "write what all threads read to shared memory: `tw.shared(..)`";

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
            Of::When(flag) => OpenedBody::When(flag),
            Of::Otherwise => OpenedBody::Otherwise,
            Of::Role(from, to) => OpenedBody::Role(from, to),
            Of::Single => OpenedBody::Single,
        };
        self.body.store(open(py, self.place, opened)?.body, Ordering::Relaxed);
        self.names.begin(py)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        // After an exception the kernel is abandoned, and the exception is raised.
        if kind.is_none() {
            close(py, self.body.load(Ordering::Relaxed))?;
            let (statement, instead) = match self.of {
                Of::When(_) => ("tw.when", CHOSEN),
                Of::Otherwise => ("tw.otherwise", CHOSEN),
                Of::Role(..) => ("tw.role", SHARED),
                Of::Single => ("tw.single", SHARED),
            };
            self.names.end(py, statement, instead)?;
        }
        Ok(false)
    }
}

fn body(py: Python<'_>, of: Of) -> PyResult<Bound<'_, Body>> {
    let body = Body { of, place: place::caller(py)?, body: AtomicU32::new(NONE), names: Names::default() };
    traced::object(py, body)
}

/// A body for the threads in which a condition is true: `with tw.when(x > 0):`.
#[pyfunction]
pub fn when<'py>(condition: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Body>> {
    body(condition.py(), Of::When(Condition::asked(condition)?))
}

/// A body for the threads in which the condition of the preceding `when` is false.
#[pyfunction]
pub fn otherwise(py: Python<'_>) -> PyResult<Bound<'_, Body>> {
    body(py, Of::Otherwise)
}

/// A body for the warps from `begin` to `end - 1`.
#[pyfunction]
pub fn role(py: Python<'_>, begin: u32, end: u32) -> PyResult<Bound<'_, Body>> {
    body(py, Of::Role(begin, end))
}

/// A body for the first thread of the role, or of the block outside of roles.
#[pyfunction]
pub fn single(py: Python<'_>) -> PyResult<Bound<'_, Body>> {
    body(py, Of::Single)
}
