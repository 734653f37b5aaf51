//! The kernel that a thread is tracing.
//!
//! Law: a Python statement is a statement of the builder, executed when it is called. The bodies of
//! `for` and `with` are guards of the builder ([`OpenLoop`], [`OpenBody`]), which are stored here
//! in the order in which they were opened.
//!
//! The builder and its values stay in this module: Python objects are indices into a list
//! ([`Handle`]). A handle is valid while its kernel is being traced, in the tracing thread, until
//! the end of the body in which it was made.
//!
//! After a refusal no more statements are added: later statements are refused for the same reason.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use self_cell::self_cell;
use tilewright_kernel::program::Location;
use tilewright_kernel::{
    Build, Coordinates, Cursor, Distributed, Flag, Fragment, Kernel, KernelError, Num, OpenBody, OpenLoop, Pipeline,
    Predicates, Stage, View,
};
use tilewright_layout::LayoutError;
use tilewright_layout::symbolic::Expr;

use super::number::Condition;
use super::place;
use crate::refusal;

/// The reason why a statement is refused.
#[derive(Debug, Clone)]
pub enum RefusedStatement {
    /// The builder refuses it.
    Kernel(KernelError),
    /// It is not a statement: the message, the help, and the location, if that is not the location
    /// of the statement.
    Here(String, String, Option<Location>),
}

impl From<KernelError> for RefusedStatement {
    fn from(error: KernelError) -> RefusedStatement {
        RefusedStatement::Kernel(error)
    }
}

impl From<LayoutError> for RefusedStatement {
    fn from(error: LayoutError) -> RefusedStatement {
        RefusedStatement::Kernel(error.into())
    }
}

impl RefusedStatement {
    /// An error of this module, at the location of the statement.
    pub fn here(what: impl Into<String>, help: impl Into<String>) -> RefusedStatement {
        RefusedStatement::Here(what.into(), help.into(), None)
    }
}

/// A reference to a value of the kernel: the kernel, the index of the value, and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    trace: u64,
    number: usize,
    kind: ObjectKind,
}

impl Handle {
    /// The kind of the value.
    pub fn kind(self) -> ObjectKind {
        self.kind
    }
}

/// The classes of Python objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    View,
    Fragment,
    Coordinates,
    Predicates,
    Number,
    Flag,
    Tile,
    Pipeline,
    Cursor,
    Stage,
}

/// A value of the kernel with a Python object.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "a kernel holds some dozens of them, and most are tensors")]
pub enum Thing<'k> {
    View(View<'k>),
    Fragment(Fragment<'k>),
    Coordinates(Coordinates<'k>),
    Predicates(Predicates<'k>),
    Number(Num<'k>),
    Flag(Flag<'k>),
    Tile(Distributed<'k>),
    Pipeline(Pipeline<'k>),
    Cursor(Rc<Cursor<'k>>),
    Stage(Rc<Stage<'k>>),
}

/// The guard that ends a body.
enum BodyGuard<'k> {
    Loop(OpenLoop<'k>),
    Body(OpenBody<'k>),
}

impl BodyGuard<'_> {
    fn close(self) -> Result<(), KernelError> {
        match self {
            BodyGuard::Loop(guard) => guard.close(),
            BodyGuard::Body(guard) => guard.close(),
        }
    }
}

/// An open body.
struct Open<'k> {
    number: u32,
    /// The statement that opened it, and its location.
    statement: &'static str,
    place: Location,
    guard: BodyGuard<'k>,
}

/// The builder, and the values of the kernel with Python objects.
pub struct Room<'k> {
    pub build: &'k Build,
    trace: u64,
    things: RefCell<Vec<(u32, Thing<'k>)>>,
    open: RefCell<Vec<Open<'k>>>,
    /// The ended body of a `when`, while its `otherwise` may follow.
    condition: RefCell<Option<OpenBody<'k>>>,
    bodies: Cell<u32>,
    /// The first refusal.
    failed: RefCell<Option<RefusedStatement>>,
}

/// The number of the outermost body, the kernel itself.
const KERNEL: u32 = 0;

macro_rules! things {
    ($($method:ident $variant:ident $type:ty, $name:literal;)*) => {
        $(
            #[doc = concat!("The ", $name, " that a handle is.")]
            pub fn $method(&self, handle: Handle) -> Result<$type, RefusedStatement> {
                match self.thing(handle)? {
                    Thing::$variant(thing) => Ok(thing),
                    _ => Err(RefusedStatement::here(concat!("this is no ", $name), "")),
                }
            }
        )*
    };
}

impl<'k> Room<'k> {
    /// Stores a value for Python.
    pub fn keep(&self, thing: Thing<'k>) -> Handle {
        let body = self.open.borrow().last().map_or(KERNEL, |open| open.number);
        let kind = match thing {
            Thing::View(_) => ObjectKind::View,
            Thing::Fragment(_) => ObjectKind::Fragment,
            Thing::Coordinates(_) => ObjectKind::Coordinates,
            Thing::Predicates(_) => ObjectKind::Predicates,
            Thing::Number(_) => ObjectKind::Number,
            Thing::Flag(_) => ObjectKind::Flag,
            Thing::Tile(_) => ObjectKind::Tile,
            Thing::Pipeline(_) => ObjectKind::Pipeline,
            Thing::Cursor(_) => ObjectKind::Cursor,
            Thing::Stage(_) => ObjectKind::Stage,
        };
        let mut things = self.things.borrow_mut();
        things.push((body, thing));
        Handle { trace: self.trace, number: things.len() - 1, kind }
    }

    /// The value of a handle.
    pub fn thing(&self, handle: Handle) -> Result<Thing<'k>, RefusedStatement> {
        let things = self.things.borrow();
        let Some((body, thing)) = things.get(handle.number).filter(|_| handle.trace == self.trace) else {
            return Err(of_another(handle.trace, self.trace));
        };
        if *body != KERNEL && !self.open.borrow().iter().any(|open| open.number == *body) {
            return Err(RefusedStatement::here(
                "this was made in a body that is over: of a loop, a condition or a role",
                "make a fragment before the body, and write to it there: `sums.set(..)`, `sums += ..`",
            ));
        }
        Ok(thing.clone())
    }

    things! {
        view View View<'k>, "tensor in memory";
        fragment Fragment Fragment<'k>, "fragment";
        coordinates Coordinates Coordinates<'k>, "identity tensor";
        predicates Predicates Predicates<'k>, "predicate";
        number Number Num<'k>, "number";
        flag Flag Flag<'k>, "condition";
        tile Tile Distributed<'k>, "tile";
        pipeline Pipeline Pipeline<'k>, "pipeline";
        cursor Cursor Rc<Cursor<'k>>, "cursor";
        stage Stage Rc<Stage<'k>>, "stage";
    }

    /// Executes a statement; the first refusal is stored, and refuses all later statements. An
    /// operator returns no error, so the builder is asked whether it failed.
    fn does<R>(&self, statement: impl FnOnce() -> Result<R, RefusedStatement>) -> Result<R, RefusedStatement> {
        if let Some(refused) = &*self.failed.borrow() {
            return Err(refused.clone());
        }
        // This is set until the statement is done, so that after a panic the kernel is abandoned.
        self.failed.replace(Some(RefusedStatement::here("the kernel is given up", "")));
        let answer =
            statement().and_then(|answer| self.build.complaint().map(|()| answer).map_err(RefusedStatement::from));
        self.failed.replace(answer.as_ref().err().cloned());
        answer
    }

    /// Ends a condition without an `otherwise`.
    fn settle(&self) -> Result<(), RefusedStatement> {
        self.condition.take().map_or(Ok(()), |body| body.close().map_err(RefusedStatement::from))
    }

    /// The error that a body was left before its end.
    fn left(&self) -> RefusedStatement {
        let open = self.open.borrow();
        let (statement, place) = open.last().map_or(("body", None), |open| (open.statement, Some(open.place)));
        let what = format!("the body of this `{statement}` was left before its end");
        let help = "a body has no `break` and no `return`: put what is left out under `tw.when`";
        RefusedStatement::Here(what, help.into(), place)
    }

    fn open(&self, place: Location, opened: OpenedBody) -> Result<Begun, RefusedStatement> {
        let condition = match opened {
            OpenedBody::Otherwise => self.condition.take(),
            _ => {
                self.settle()?;
                None
            }
        };
        let build = self.build;
        let (statement, guard) = place.during(|| {
            Ok(match opened {
                OpenedBody::Range(count) => ("range", BodyGuard::Loop(build.open_loop(count)?)),
                OpenedBody::Role(from, to) => ("role", BodyGuard::Body(build.open_role(from..to)?)),
                OpenedBody::Single => ("single", BodyGuard::Body(build.open_single()?)),
                OpenedBody::When(flag) => ("when", BodyGuard::Body(build.open_when(flag.flag(self)?)?)),
                OpenedBody::Otherwise => match condition {
                    Some(body) => ("otherwise", BodyGuard::Body(body.otherwise()?)),
                    None => {
                        let help = "write it behind the body of `tw.when`, with nothing between";
                        return Err(RefusedStatement::here("there is no condition before", help));
                    }
                },
            })
        })?;
        let variable = match &guard {
            BodyGuard::Loop(guard) => Some(guard.index()),
            BodyGuard::Body(_) => None,
        };
        let number = self.bodies.get() + 1;
        self.bodies.set(number);
        self.open.borrow_mut().push(Open { number, statement, place, guard });
        Ok(Begun { body: number, variable })
    }

    fn close(&self, body: u32) -> Result<(), RefusedStatement> {
        if self.open.borrow().last().map(|open| open.number) != Some(body) {
            return Err(self.left());
        }
        self.settle()?;
        match self.open.borrow_mut().pop() {
            Some(Open { statement: "when", guard: BodyGuard::Body(guard), .. }) => {
                self.condition.replace(Some(guard));
                Ok(())
            }
            Some(Open { place, guard, .. }) => place.during(|| guard.close()).map_err(RefusedStatement::from),
            None => Ok(()),
        }
    }

    fn finish(&self) -> Result<(), RefusedStatement> {
        self.does(|| if self.open.borrow().is_empty() { self.settle() } else { Err(self.left()) })
    }
}

/// The kind of body that a statement opens.
pub enum OpenedBody {
    /// The iterations of a loop.
    Range(Expr),
    /// The threads for which a condition is true.
    When(Condition),
    /// The threads for which the previous condition is false.
    Otherwise,
    /// Some warps.
    Role(u32, u32),
    /// One thread.
    Single,
}

/// The state at the beginning of a body.
pub struct Begun {
    /// Its number.
    pub body: u32,
    /// The variable of a loop.
    pub variable: Option<Expr>,
}

self_cell!(
    /// The builder, and the values that refer to it.
    struct WrittenKernel {
        owner: Build,
        #[not_covariant]
        dependent: Room,
    }
);

/// A kernel that is being traced.
struct Trace {
    /// Its number; kernels are counted from 1.
    number: u64,
    written: WrittenKernel,
}

impl Trace {
    fn begin(name: &str, place: Location) -> Trace {
        let number = numbered(name);
        let written = WrittenKernel::new(place.during(|| Build::open(name)), |build| Room {
            build,
            trace: number,
            things: RefCell::default(),
            open: RefCell::default(),
            condition: RefCell::default(),
            bodies: Cell::new(KERNEL),
            failed: RefCell::default(),
        });
        Trace { number, written }
    }

    fn end(self) -> Result<Kernel, RefusedStatement> {
        self.written.with_dependent(|_, room| room.finish())?;
        Ok(self.written.into_owner().close()?)
    }
}

thread_local! {
    /// The kernels that this thread is tracing, each nested in the previous one.
    static TRACES: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

/// The largest number of kernels whose names are known for messages: the most recently traced ones.
const NAMED: usize = 1024;

/// The numbers of traced kernels, and their names.
static NAMES: Mutex<VecDeque<(u64, String)>> = Mutex::new(VecDeque::new());

/// A new number, for a kernel or a tile program whose tracing begins.
fn numbered(name: &str) -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(OUTSIDE + 1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.push_back((number, name.to_owned()));
    if names.len() > NAMED {
        names.pop_front();
    }
    number
}

/// The name of a kernel by its number; None if it was traced long ago.
fn name_of(number: u64) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().rev().find(|(own, _)| *own == number).map(|(_, name)| name.clone())
}

/// The error that a value belongs to the kernel with the first number, while the one with the
/// second number is being traced.
pub fn of_another(number: u64, here: u64) -> RefusedStatement {
    let other = name_of(number).map_or("another kernel".to_owned(), |name| format!("the kernel `{name}`"));
    match here {
        OUTSIDE => RefusedStatement::here(
            format!("this belongs to {other}, which is not being traced"),
            "use it within that kernel, while that is traced",
        ),
        here => {
            let here = name_of(here);
            let what = match &here {
                Some(here) if name_of(number) == Some(here.clone()) => {
                    format!("this belongs to an earlier trace of {other}, whose sizes were others")
                }
                Some(here) => format!("this belongs to {other}, and `{here}` is being traced"),
                None => format!("this belongs to {other}"),
            };
            RefusedStatement::here(
                what,
                "use tensors, layouts and numbers of the kernel that is being traced; a layout for several kernels is made \
                 outside of all: `tw.Layout(\"(M,8):(8,1)\")`",
            )
        }
    }
}

/// The kernel of a Python function, which is called once, without arguments.
///
/// Errors: exceptions of the function; refusals.
pub fn written(py: Python<'_>, name: &str, function: &Bound<'_, PyAny>, place: Location) -> PyResult<Kernel> {
    TRACES.with_borrow_mut(|traces| traces.push(Trace::begin(name, place)));
    let called = panic::catch_unwind(AssertUnwindSafe(|| function.call0()));
    // The kernel is removed before a panic continues, because otherwise the thread would continue
    // to trace it.
    let trace = TRACES.with_borrow_mut(Vec::pop);
    called.unwrap_or_else(|payload| panic::resume_unwind(payload))?;
    let trace = trace.ok_or_else(|| PyRuntimeError::new_err("the kernel that is being written is gone"))?;
    trace.end().map_err(|refused| refusal::of_kernel(py, &refused))
}

/// The number that means outside of any kernel.
pub const OUTSIDE: u64 = 0;

/// The number of the kernel that this thread is tracing; [`OUTSIDE`] if there is none.
pub fn current() -> u64 {
    TRACES.with_borrow(|traces| traces.last().map_or(OUTSIDE, |trace| trace.number))
}

thread_local! {
    /// The tile programs that this thread is tracing, each nested in the previous one.
    static TILES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Tells that this thread begins to trace a tile program of a name; without a name, that the last
/// one is finished.
#[pyfunction]
#[pyo3(signature = (begins))]
pub fn writes_tiles(begins: Option<&str>) {
    let begun = begins.map(numbered);
    TILES.with_borrow_mut(|tiles| match begun {
        Some(number) => tiles.push(number),
        None => drop(tiles.pop()),
    });
}

/// Whether this thread is tracing a tile program.
pub fn is_writing_tiles() -> bool {
    TILES.with_borrow(|tiles| !tiles.is_empty())
}

/// The number of the kernel or the tile program that this thread is tracing, whichever is the inner
/// one; [`OUTSIDE`] if there is none.
pub fn owner() -> u64 {
    current().max(TILES.with_borrow(|tiles| tiles.last().copied().unwrap_or(OUTSIDE)))
}

/// Whether this thread is tracing a kernel.
#[pyfunction]
pub fn is_tracing() -> bool {
    TRACES.with_borrow(|traces| !traces.is_empty())
}

/// Accesses the kernel that is being traced.
fn with_room<R>(py: Python<'_>, work: impl for<'k> FnOnce(&Room<'k>) -> Result<R, RefusedStatement>) -> PyResult<R> {
    let answer = TRACES.with_borrow(|traces| {
        let Some(trace) = traces.last() else {
            let help = "call it in a function under `@tw.jit`, in the thread that traces it";
            return Err(RefusedStatement::here("no kernel is being written here", help));
        };
        trace.written.with_dependent(|_, room| room.does(|| work(room)))
    });
    answer.map_err(|refused| refusal::of_kernel(py, &refused))
}

/// Executes a statement, with the location of the Python line that calls it.
///
/// Errors: it is refused; no kernel is being traced.
pub fn run<R>(py: Python<'_>, work: impl for<'k> FnOnce(&Room<'k>) -> Result<R, RefusedStatement>) -> PyResult<R> {
    let place = place::caller(py)?;
    with_room(py, |room| {
        room.settle()?;
        place.during(|| work(room))
    })
}

/// The text of a value for `repr`, which never fails. It needs no statement, or it says that the
/// value does not exist here.
pub fn shown(of: Handle, work: impl for<'k> FnOnce(&Room<'k>) -> Result<String, RefusedStatement>) -> String {
    let told = TRACES.with_borrow(|traces| {
        let trace = traces.last().filter(|trace| trace.number == of.trace)?;
        trace.written.with_dependent(|_, room| work(room).ok())
    });
    told.unwrap_or_else(|| format!("<{:?} of a kernel that is not written here>", of.kind))
}

/// Opens a body at a location.
///
/// Errors: as [`run`].
pub fn open(py: Python<'_>, place: Location, opened: OpenedBody) -> PyResult<Begun> {
    with_room(py, |room| room.open(place, opened))
}

/// Ends the body with this number.
///
/// Errors: as [`run`]; a body within it was left before its end.
pub fn close(py: Python<'_>, body: u32) -> PyResult<()> {
    with_room(py, |room| room.close(body))
}
