//! Numbers and conditions of a thread, and arithmetic on them, on fragments and on tiles.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tilewright_kernel::{KernelError, Num};

use super::operand::{self, Operand};
use super::trace::{Handle, Kind, Refused, Room, Thing, run};

/// A function of one number.
pub type Unary = for<'k> fn(Num<'k>) -> Num<'k>;
/// A function of two.
pub type Binary = for<'k> fn(Num<'k>, Num<'k>) -> Num<'k>;

/// The functions of one number, by their names.
pub mod unary {
    use super::Num;

    macro_rules! unary {
        ($($name:ident)*) => {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub fn $name(x: Num<'_>) -> Num<'_> {
                    x.$name()
                }
            )*
        };
    }

    unary! { abs sqrt rsqrt recip exp2 exp log2 tanh }

    /// `-x`.
    pub fn negate(x: Num<'_>) -> Num<'_> {
        -x
    }
}

/// The functions of two numbers.
pub mod binary {
    use super::Num;

    macro_rules! binary {
        ($($name:ident: $a:ident, $b:ident => $of:expr;)*) => {
            $(
                #[doc = concat!("`", stringify!($of), "`.")]
                pub fn $name<'k>($a: Num<'k>, $b: Num<'k>) -> Num<'k> {
                    $of
                }
            )*
        };
    }

    binary! {
        add: a, b => a + b;
        subtract: a, b => a - b;
        multiply: a, b => a * b;
        divide: a, b => a / b;
        minimum: a, b => a.min(b);
        maximum: a, b => a.max(b);
    }
}

/// A function of one number, of each element.
pub fn mapped<'k>(room: &Room<'k>, of: Handle, function: Unary) -> Result<Handle, Refused> {
    let each = |x: Num<'k>| Ok::<_, KernelError>(function(x));
    Ok(room.keep(match room.thing(of)? {
        Thing::Number(x) => Thing::Number(function(x)),
        Thing::Fragment(x) => Thing::Fragment(x.map(each)?),
        Thing::Tile(x) => Thing::Tile(x.map(each)?),
        _ => return Err(Refused::here("this has no arithmetic", "load it first")),
    }))
}

/// A function of two numbers, of elements of the same index; a single number goes with each.
pub fn combined<'k>(room: &Room<'k>, a: &Operand, b: &Operand, function: Binary) -> Result<Handle, Refused> {
    let thing = |operand: &Operand| match operand {
        Operand::Of(handle) => room.thing(*handle).map(Some),
        _ => Ok(None),
    };
    let both = |x: Num<'k>, y: Num<'k>| Ok::<_, KernelError>(function(x, y));
    // A number of Python takes the type of each element.
    let single = |operand: &Operand, element| operand.number(room, element);
    let made = match (thing(a)?, thing(b)?) {
        (Some(Thing::Fragment(x)), Some(Thing::Fragment(y))) => Thing::Fragment(x.zip(&y, both)?),
        (Some(Thing::Tile(x)), Some(Thing::Tile(y))) => Thing::Tile(x.zip(&y, both)?),
        (Some(Thing::Fragment(x)), None | Some(Thing::Number(_))) => {
            let y = single(b, x.element())?;
            Thing::Fragment(x.map(|x| both(x, y))?)
        }
        (None | Some(Thing::Number(_)), Some(Thing::Fragment(y))) => {
            let x = single(a, y.element())?;
            Thing::Fragment(y.map(|y| both(x, y))?)
        }
        (Some(Thing::Tile(x)), None | Some(Thing::Number(_))) => {
            let y = single(b, x.element())?;
            Thing::Tile(x.map(|x| both(x, y))?)
        }
        (None | Some(Thing::Number(_)), Some(Thing::Tile(y))) => {
            let x = single(a, y.element())?;
            Thing::Tile(y.map(|y| both(x, y))?)
        }
        (Some(Thing::Number(x)), _) => Thing::Number(function(x, b.beside(room, x)?)),
        (None, Some(Thing::Number(y))) => Thing::Number(function(a.beside(room, y)?, y)),
        _ => {
            return Err(Refused::here(
                "a fragment and a tile have no arithmetic together",
                "take the tile's `fragment`",
            ));
        }
    };
    Ok(room.keep(made))
}

/// What `a op b` is as an object; `NotImplemented` where the other is no operand.
pub fn operator<'py>(
    of: Handle,
    other: &Bound<'py, PyAny>,
    function: Binary,
    reversed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    let Some(other) = Operand::of(other) else { return Ok(py.NotImplemented().into_bound(py)) };
    let made = run(py, move |room| {
        let own = Operand::Of(of);
        if reversed { combined(room, &other, &own, function) } else { combined(room, &own, &other, function) }
    })?;
    operand::object(py, made)
}

/// A function of one number, of what has this place, as an object.
pub fn function(py: Python<'_>, of: Handle, function: Unary) -> PyResult<Bound<'_, PyAny>> {
    let made = run(py, move |room| mapped(room, of, function))?;
    operand::object(py, made)
}

/// The lesser or greater of two, as an object.
fn extremum<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>, function: Binary) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    let (a, b) = (operand::operand(a)?, operand::operand(b)?);
    let made = run(py, move |room| combined(room, &a, &b, function))?;
    operand::object(py, made)
}

/// The lesser of two numbers, of elements of the same index; the other one if one is NaN.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn minimum<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    extremum(a, b, binary::minimum)
}

/// The greater of two numbers, of elements of the same index; the other one if one is NaN.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn maximum<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    extremum(a, b, binary::maximum)
}

/// The one number where a condition is true, the other elsewhere.
#[pyfunction]
#[pyo3(name = "where", signature = (condition, yes, no, /))]
pub fn where_<'py>(
    condition: &Bound<'py, Flag>,
    yes: &Bound<'py, PyAny>,
    no: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = condition.py();
    let (flag, yes, no) = (condition.get().handle, operand::operand(yes)?, operand::operand(no)?);
    let made = run(py, move |room| {
        let flag = room.flag(flag)?;
        let (yes, no) = match (&yes, &no) {
            (Operand::Of(own), no) => {
                let yes = room.number(*own)?;
                (yes, no.beside(room, yes)?)
            }
            (yes, Operand::Of(own)) => {
                let no = room.number(*own)?;
                (yes.beside(room, no)?, no)
            }
            _ => return Err(Refused::here("one of both is a number of the kernel", "make one with `tw.number`")),
        };
        Ok(room.keep(Thing::Number(flag.select(yes, no))))
    })?;
    operand::object(py, made)
}

macro_rules! arithmetic {
    ($class:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::add, false)
            }

            fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::add, true)
            }

            fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::subtract, false)
            }

            fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::subtract, true)
            }

            fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::multiply, false)
            }

            fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::multiply, true)
            }

            fn __truediv__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::divide, false)
            }

            fn __rtruediv__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::divide, true)
            }

            fn __neg__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::negate)
            }

            fn __abs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::abs)
            }

            /// The square root.
            fn sqrt<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::sqrt)
            }

            /// `1 / sqrt(x)`.
            fn rsqrt<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::rsqrt)
            }

            /// `1 / x`.
            fn recip<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::recip)
            }

            /// `2 ** x`.
            fn exp2<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::exp2)
            }

            /// `e ** x`.
            fn exp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::exp)
            }

            /// The logarithm to base 2.
            fn log2<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::log2)
            }

            /// The hyperbolic tangent.
            fn tanh<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::tanh)
            }

            fn __bool__(&self) -> PyResult<bool> {
                Err($crate::kernel::number::no_truth(self.handle))
            }

            $($own)*
        }
    };
}
pub(super) use arithmetic;

/// That what a kernel computes has no truth value while it is written.
pub fn no_truth(of: Handle) -> PyErr {
    let what = if of.kind() == Kind::Flag { "a condition" } else { "what a kernel computes" };
    PyTypeError::new_err(format!(
        "{what} has no value while the kernel is written: use `with tw.when(condition):` instead of `if`, and `&`, `|`, `~` instead of `and`, `or`, `not`"
    ))
}

/// A number of a thread: arithmetic and comparisons make others.
#[pyclass(frozen, module = "tilewright")]
pub struct Number {
    pub handle: Handle,
}

arithmetic! { Number {
    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, comparison: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let Some(other) = Operand::of(other) else { return Ok(py.NotImplemented().into_bound(py)) };
        let own = self.handle;
        let made = run(py, move |room| {
            let a = room.number(own)?;
            let b = other.beside(room, a)?;
            Ok(room.keep(Thing::Flag(match comparison {
                CompareOp::Lt => a.lt(b),
                CompareOp::Le => a.le(b),
                CompareOp::Gt => a.gt(b),
                CompareOp::Ge => b.le(a),
                CompareOp::Eq => a.eq(b),
                CompareOp::Ne => a.eq(b).not(),
            })))
        })?;
        operand::object(py, made)
    }

    /// The type.
    #[getter]
    fn element(&self, py: Python<'_>) -> PyResult<&'static str> {
        let own = self.handle;
        run(py, move |room| Ok(room.number(own)?.element().name()))
    }

    /// The number in another type, rounded to nearest, or toward zero to an integer.
    fn to<'py>(&self, py: Python<'py>, element: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (own, element) = (self.handle, operand::element(element)?);
        let made = run(py, move |room| Ok(room.keep(Thing::Number(room.number(own)?.to(element)))))?;
        operand::object(py, made)
    }

    /// `self * b + c`, rounded once.
    fn multiply_add<'py>(&self, b: &Bound<'py, PyAny>, c: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, b, c) = (b.py(), self.handle, operand::operand(b)?, operand::operand(c)?);
        let made = run(py, move |room| {
            let a = room.number(own)?;
            let (b, c) = (b.beside(room, a)?, c.beside(room, a)?);
            Ok(room.keep(Thing::Number(a.multiply_add(b, c))))
        })?;
        operand::object(py, made)
    }
} }

/// A condition of a thread: `with tw.when(condition):`, or `tw.where(condition, yes, no)`.
#[pyclass(frozen, module = "tilewright")]
pub struct Flag {
    pub handle: Handle,
}

#[pymethods]
impl Flag {
    fn __and__<'py>(&self, other: &Bound<'py, Flag>) -> PyResult<Bound<'py, PyAny>> {
        let (own, with) = (self.handle, other.get().handle);
        let made = run(other.py(), move |room| Ok(room.keep(Thing::Flag(room.flag(own)?.and(room.flag(with)?)))))?;
        operand::object(other.py(), made)
    }

    fn __or__<'py>(&self, other: &Bound<'py, Flag>) -> PyResult<Bound<'py, PyAny>> {
        let (own, with) = (self.handle, other.get().handle);
        let made = run(other.py(), move |room| Ok(room.keep(Thing::Flag(room.flag(own)?.or(room.flag(with)?)))))?;
        operand::object(other.py(), made)
    }

    fn __invert__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        let made = run(py, move |room| Ok(room.keep(Thing::Flag(room.flag(own)?.not()))))?;
        operand::object(py, made)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(no_truth(self.handle))
    }
}
