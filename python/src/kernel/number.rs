//! Numbers and conditions of a thread, and arithmetic on them, on fragments and on tiles.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use tilewright_kernel::{KernelError, Num};
use tilewright_layout::{Extent, LayoutError, Stride, Truth};
use tilewright_notation::Value;

use super::operand::{self, Operand};
use super::trace::{self, Handle, RefusedStatement, Room, Thing, run, shown};
use super::traced::{self, Traced};
use crate::convert;
use crate::object::Object;
use crate::refusal;

/// A function of one number.
pub type Unary = for<'k> fn(Num<'k>) -> Num<'k>;
/// A function of two numbers.
pub type Binary = for<'k> fn(Num<'k>, Num<'k>) -> Num<'k>;

/// The functions of one number, by name.
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

/// The functions of two numbers, by name.
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
        fmin: a, b => a.fmin(b);
        fmax: a, b => a.fmax(b);
    }
}

/// A function of one number, applied to each element.
pub fn mapped<'k>(room: &Room<'k>, of: Handle, function: Unary) -> Result<Handle, RefusedStatement> {
    let each = |x: Num<'k>| Ok::<_, KernelError>(function(x));
    Ok(room.keep(match room.thing(of)? {
        Thing::Number(x) => Thing::Number(function(x)),
        Thing::Fragment(x) => Thing::Fragment(x.map(each)?),
        Thing::Tile(x) => Thing::Tile(x.map(each)?),
        _ => return Err(RefusedStatement::here("this has no arithmetic", "load it first")),
    }))
}

/// A function of two numbers, elementwise; a single number applies to each element.
pub fn combined<'k>(room: &Room<'k>, a: &Operand, b: &Operand, function: Binary) -> Result<Handle, RefusedStatement> {
    let thing = |operand: &Operand| match operand {
        Operand::Of(handle) => room.thing(*handle).map(Some),
        _ => Ok(None),
    };
    let both = |x: Num<'k>, y: Num<'k>| Ok::<_, KernelError>(function(x, y));
    // A Python number takes the type of each element.
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
            return Err(RefusedStatement::here(
                "a fragment and a tile have no arithmetic together",
                "take the tile's `fragment`",
            ));
        }
    };
    Ok(room.keep(made))
}

/// The result of `a op b` as an object; `NotImplemented` if the other object is not an operand.
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

/// A function of one number as an object, with the location of the caller.
pub fn function(py: Python<'_>, of: Handle, function: Unary) -> PyResult<Bound<'_, PyAny>> {
    let made = run(py, move |room| mapped(room, of, function))?;
    operand::object(py, made)
}

/// The minimum or maximum of two numbers as an object. For two indices it is an index.
fn extremum<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    is_minimum: bool,
    function: Binary,
) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    let (a, b) = (operand::operand(a)?, operand::operand(b)?);
    if let (Some(x), Some(y)) = (a.index(), b.index()) {
        let least = if is_minimum { x.minimum(&y) } else { x.maximum(&y) };
        let least = least.ok_or(LayoutError::Overflow { op: "an index" });
        return convert::python(py, Value::from(least.map_err(|error| refusal::of_layout(py, error))?));
    }
    let made = run(py, move |room| combined(room, &a, &b, function))?;
    operand::object(py, made)
}

/// The minimum of two numbers, elementwise; NaN if one is NaN, as in NumPy.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn minimum<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    extremum(a, b, true, binary::minimum)
}

/// The maximum of two numbers, elementwise; NaN if one is NaN, as in NumPy.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn maximum<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    extremum(a, b, false, binary::maximum)
}

/// The minimum of two numbers, elementwise; the other one if one is NaN.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn fmin<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    extremum(a, b, true, binary::fmin)
}

/// The maximum of two numbers, elementwise; the other one if one is NaN.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn fmax<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    extremum(a, b, false, binary::fmax)
}

/// The first number where a condition is true, the second elsewhere.
#[pyfunction]
#[pyo3(name = "where", signature = (condition, yes, no, /))]
pub fn where_<'py>(
    condition: &Bound<'py, PyAny>,
    yes: &Bound<'py, PyAny>,
    no: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = condition.py();
    let (flag, yes, no) = (Condition::asked(condition)?, operand::operand(yes)?, operand::operand(no)?);
    operand::made(py, move |room| {
        let flag = flag.flag(room)?;
        let (yes, no) = match (&yes, &no) {
            (Operand::Of(own), no) => {
                let yes = room.number(*own)?;
                (yes, no.beside(room, yes)?)
            }
            (yes, Operand::Of(own)) => {
                let no = room.number(*own)?;
                (yes.beside(room, no)?, no)
            }
            // Indices have type i32.
            (Operand::Index(own), no) => {
                let yes = room.build.index(own)?;
                (yes, no.beside(room, yes)?)
            }
            (yes, Operand::Index(own)) => {
                let no = room.build.index(own)?;
                (yes.beside(room, no)?, no)
            }
            _ => {
                return Err(RefusedStatement::here(
                    "one of both is a number of the kernel",
                    "make one with `tw.number`",
                ));
            }
        };
        Ok(Thing::Number(flag.select(yes, no)))
    })
}

/// The methods of a class of numbers: its own methods; operators of two numbers, each with the
/// variant for a number on the left; and functions of one number.
macro_rules! arithmetic {
    ($class:ident { $($own:tt)* }) => {
        arithmetic! {
            $class { $($own)* }
            {
                add: __add__ __radd__;
                subtract: __sub__ __rsub__;
                multiply: __mul__ __rmul__;
                divide: __truediv__ __rtruediv__;
            }
            {
                negate: __neg__;
                abs: __abs__;
                /// The square root.
                sqrt: sqrt;
                /// `1 / sqrt(x)`.
                rsqrt: rsqrt;
                /// `1 / x`.
                recip: recip;
                /// `2 ** x`.
                exp2: exp2;
                /// `e ** x`.
                exp: exp;
                /// The logarithm to base 2.
                log2: log2;
                /// The hyperbolic tangent.
                tanh: tanh;
            }
        }
    };
    (
        $class:ident { $($own:tt)* }
        { $($binary:ident: $operator:ident $reversed:ident;)* }
        { $($(#[$about:meta])* $unary:ident: $function:ident;)* }
    ) => {
        #[pymethods]
        impl $class {
            $(
                fn $operator<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::$binary, false)
                }

                fn $reversed<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    $crate::kernel::number::operator(self.handle, other, $crate::kernel::number::binary::$binary, true)
                }
            )*

            $(
                $(#[$about])*
                fn $function<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    $crate::kernel::number::function(py, self.handle, $crate::kernel::number::unary::$unary)
                }
            )*

            $($own)*
        }
    };
}
pub(super) use arithmetic;

/// The comparison of two numbers: a condition of each thread. Its truth is known while the kernel
/// is traced if it is the same for all sizes, blocks and threads.
///
/// Errors (`TypeError`): `other` is not a number. Values of different kinds do not compare as
/// unequal, because `tw.thread() == "0"` is a mistake.
pub fn compared<'py>(
    own: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
    comparison: CompareOp,
) -> PyResult<Bound<'py, PyAny>> {
    let py = own.py();
    for side in [own, other] {
        if let Ok(known) = side.cast::<Object>() {
            known.get().check_owner(py)?;
        }
    }
    let (Some(a), Some(b)) = (Operand::of(own), Operand::of(other)) else {
        let kind = other.get_type();
        return Err(PyTypeError::new_err(format!(
            "a number of a kernel is compared with numbers, not with {}",
            kind.name()?
        )));
    };
    let known = truth(&a, &b, comparison);
    if trace::is_writing_tiles() && !trace::is_tracing() {
        // Sizes are not tiles.
        let truth = known.ok_or_else(|| refusal::of_traced(own, "__bool__"))?;
        return Ok(PyBool::new(py, truth).to_owned().into_any());
    }
    let made = run(py, move |room| {
        let number = |operand: &Operand| match operand {
            Operand::Of(handle) => room.number(*handle).map(Some),
            Operand::Index(index) => Ok(Some(room.build.index(index)?)),
            Operand::Value(_) | Operand::Whole(_) => Ok(None),
        };
        let (a, b) = match (number(&a)?, number(&b)?) {
            (Some(x), Some(y)) => (x, y),
            (Some(x), None) => (x, b.beside(room, x)?),
            (None, Some(y)) => (a.beside(room, y)?, y),
            (None, None) => {
                return Err(RefusedStatement::here("both are constants", "compare them as numbers of Python"));
            }
        };
        Ok(room.keep(Thing::Flag(match comparison {
            CompareOp::Lt => a.lt(b),
            CompareOp::Le => a.le(b),
            CompareOp::Gt => a.gt(b),
            CompareOp::Ge => b.le(a),
            CompareOp::Eq => a.eq(b),
            CompareOp::Ne => a.eq(b).not(),
        })))
    })?;
    let of = |side: &Bound<'py, PyAny>| side.cast::<Object>().map_or(Vec::new(), |known| known.get().sizes());
    let sizes = [of(own), of(other)].concat();
    Ok(traced::object(py, Flag { handle: made, known, sizes })?.into_any())
}

/// The truth of a comparison of indices, if it is the same for all their values.
fn truth(a: &Operand, b: &Operand, comparison: CompareOp) -> Option<bool> {
    let (a, b) = (a.index()?, b.index()?);
    let holds = match comparison {
        CompareOp::Lt => a.less(&b),
        CompareOp::Gt => b.less(&a),
        CompareOp::Ge => return Some(!known(a.less(&b))?),
        CompareOp::Le => return Some(!known(b.less(&a))?),
        CompareOp::Eq => a.same(&b),
        CompareOp::Ne => return Some(!known(a.same(&b))?),
    };
    known(holds)
}

fn known(truth: Truth) -> Option<bool> {
    (truth != Truth::Open).then_some(truth.proved())
}

/// A number of a thread; arithmetic and comparisons make others.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Number {
    pub handle: Handle,
}

arithmetic! { Number {
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        compared(slf.as_any(), other, comparison)
    }

    fn __repr__(&self) -> String {
        let own = self.handle;
        shown(own, move |room| Ok(format!("<number of a thread, of type {}>", room.number(own)?.element())))
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
        operand::made(py, move |room| Ok(Thing::Number(room.number(own)?.to(element))))
    }

    /// `self * b + c`, rounded once.
    fn multiply_add<'py>(&self, b: &Bound<'py, PyAny>, c: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, b, c) = (b.py(), self.handle, operand::operand(b)?, operand::operand(c)?);
        operand::made(py, move |room| {
            let a = room.number(own)?;
            let (b, c) = (b.beside(room, a)?, c.beside(room, a)?);
            Ok(Thing::Number(a.multiply_add(b, c)))
        })
    }
} }

/// A condition of a thread: `with tw.when(condition):`, or `tw.where(condition, yes, no)`.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Flag {
    pub handle: Handle,
    /// Its value in every thread of every launch, if known.
    pub known: Option<bool>,
    /// The names of the sizes that are compared.
    pub sizes: Vec<String>,
}

/// A condition as an argument: one of the kernel, or a constant.
#[derive(Debug, Clone, Copy)]
pub enum Condition {
    Of(Handle),
    Known(bool),
}

impl Condition {
    /// An object as a condition; None if it is not one.
    pub fn of(object: &Bound<'_, PyAny>) -> Option<Condition> {
        match object.cast::<Flag>() {
            Ok(flag) => Some(Condition::Of(flag.get().handle)),
            Err(_) => object.cast_exact::<PyBool>().ok().map(|truth| Condition::Known(truth.is_true())),
        }
    }

    /// An object as a condition; an error if it is not one.
    pub fn asked(object: &Bound<'_, PyAny>) -> PyResult<Condition> {
        match Condition::of(object) {
            Some(condition) => Ok(condition),
            None => Err(PyTypeError::new_err(format!(
                "expected a condition, such as `x < y`, not {}",
                object.get_type().name()?
            ))),
        }
    }

    /// The condition in the kernel.
    pub fn flag<'k>(self, room: &Room<'k>) -> Result<tilewright_kernel::Flag<'k>, RefusedStatement> {
        match self {
            Condition::Of(handle) => room.flag(handle),
            Condition::Known(truth) => Ok(room.build.flag(truth)),
        }
    }
}

/// A function of two conditions, on conditions of the kernel and on known values.
type Joined = for<'k> fn(tilewright_kernel::Flag<'k>, tilewright_kernel::Flag<'k>) -> tilewright_kernel::Flag<'k>;

impl Flag {
    fn joined<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        join: Joined,
        known: fn(Option<bool>, Option<bool>) -> Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (other.py(), self.handle);
        let Some(with) = Condition::of(other) else { return Ok(py.NotImplemented().into_bound(py)) };
        let mut sizes = self.sizes.clone();
        let of_other = match (&with, other.cast::<Flag>()) {
            (Condition::Known(truth), _) => Some(*truth),
            (_, Ok(flag)) => {
                sizes.extend_from_slice(&flag.get().sizes);
                flag.get().known
            }
            _ => None,
        };
        let made = run(py, move |room| Ok(room.keep(Thing::Flag(join(room.flag(own)?, with.flag(room)?)))))?;
        Ok(traced::object(py, Flag { handle: made, known: known(self.known, of_other), sizes })?.into_any())
    }

    fn and<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.joined(
            other,
            |a, b| a.and(b),
            |a, b| match (a, b) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
        )
    }

    fn or<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.joined(
            other,
            |a, b| a.or(b),
            |a, b| match (a, b) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        )
    }

    fn differs<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.joined(other, |a, b| a.or(b).and(a.and(b).not()), |a, b| Some(a? != b?))
    }
}

#[pymethods]
impl Flag {
    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.and(other)
    }

    fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.and(other)
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.or(other)
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.or(other)
    }

    fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.differs(other)
    }

    fn __rxor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.differs(other)
    }

    fn __invert__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        let made = run(py, move |room| Ok(room.keep(Thing::Flag(room.flag(own)?.not()))))?;
        Ok(traced::object(py, Flag { handle: made, known: self.known.map(|known| !known), sizes: self.sizes.clone() })?
            .into_any())
    }

    /// Conditions are compared with conditions: `a == b` is true if both are true or both are
    /// false.
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = match comparison {
            CompareOp::Eq => "__eq__",
            CompareOp::Ne => "__ne__",
            _ => "__lt__",
        };
        if Condition::of(other).is_none() || name == "__lt__" {
            return Err(refusal::of_traced(slf.as_any(), name));
        }
        let differs = slf.get().differs(other)?;
        if name == "__ne__" { Ok(differs) } else { differs.call_method0("__invert__") }
    }

    fn __repr__(&self) -> &'static str {
        match self.known {
            Some(true) => "<condition of a thread, which always holds>",
            Some(false) => "<condition of a thread, which never holds>",
            None => "<condition of a thread>",
        }
    }

    /// The truth of a condition that has the same value in every thread of every launch.
    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        slf.get().known.ok_or_else(|| refusal::of_traced(slf.as_any(), "__bool__"))
    }
}
