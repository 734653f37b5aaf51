//! The kernel that a thread is writing.
//!
//! Law: a kernel is written by one call of [`Kernel::build`], as in Rust. That call runs as a
//! coroutine on a stack of its own: it waits for the next statement, does it, and hands back what
//! came of it. A loop, a condition or a role is a call within the call, whose body ends with the
//! statement that says so. So the builder sees the nesting that it asks for, and Python's `for` and
//! `with` come out of it one statement at a time.
//!
//! No code of Python runs on the coroutine's stack, and nothing that belongs to it leaves it: what
//! Python holds are numbers of places in a list ([`Handle`]). A handle is good as long as its
//! kernel is being written, in the thread that writes it, and until the body in which it was made
//! is over.
//!
//! After a refusal nothing more is written: whatever follows is refused for the same reason.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use tilewright_kernel::program::Location;
use tilewright_kernel::{
    Build, Coordinates, Cursor, Distributed, Flag, Fragment, Kernel, KernelError, Num, Pipeline, Predicates, Stage,
    View,
};
use tilewright_layout::LayoutError;
use tilewright_layout::symbolic::Expr;

use super::number::Condition;
use super::place;
use crate::refusal;

/// Bytes of the stack on which the builder runs; only what is touched is taken.
const STACK: usize = 8 << 20;

/// Why a statement is refused.
#[derive(Debug, Clone)]
pub enum Refused {
    /// The builder refuses it.
    Kernel(KernelError),
    /// It is no statement here: what is wrong, what would help, and where, if that is not where the
    /// statement stands.
    Here(String, String, Option<Location>),
}

impl From<KernelError> for Refused {
    fn from(error: KernelError) -> Refused {
        Refused::Kernel(error)
    }
}

impl From<LayoutError> for Refused {
    fn from(error: LayoutError) -> Refused {
        Refused::Kernel(error.into())
    }
}

impl Refused {
    /// What is no statement at its place.
    pub fn here(what: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused::Here(what.into(), help.into(), None)
    }
}

/// The place of something of the kernel: which kernel, its number there, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    trace: u64,
    number: usize,
    kind: Kind,
}

impl Handle {
    /// What it is the place of.
    pub fn kind(self) -> Kind {
        self.kind
    }
}

/// What Python holds, by its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
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

/// Something of the kernel that Python holds.
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

/// A body that is being written.
struct Open {
    number: u32,
    /// What it is the body of, and where that is written; none of the kernel itself.
    of: Option<(&'static str, Location)>,
}

/// The builder, and what Python holds of the kernel.
pub struct Room<'k> {
    pub build: &'k Build,
    trace: u64,
    things: RefCell<Vec<(u32, Thing<'k>)>>,
    open: RefCell<Vec<Open>>,
    bodies: Cell<u32>,
    /// The first refusal.
    failed: Rc<RefCell<Option<Refused>>>,
}

macro_rules! things {
    ($($method:ident $variant:ident $type:ty, $name:literal;)*) => {
        $(
            #[doc = concat!("The ", $name, " that a handle is.")]
            pub fn $method(&self, handle: Handle) -> Result<$type, Refused> {
                match self.thing(handle)? {
                    Thing::$variant(thing) => Ok(thing),
                    _ => Err(Refused::here(concat!("this is no ", $name), "")),
                }
            }
        )*
    };
}

impl<'k> Room<'k> {
    /// Keeps something for Python.
    pub fn keep(&self, thing: Thing<'k>) -> Handle {
        let body = self.open.borrow().last().map_or(0, |open| open.number);
        let kind = match thing {
            Thing::View(_) => Kind::View,
            Thing::Fragment(_) => Kind::Fragment,
            Thing::Coordinates(_) => Kind::Coordinates,
            Thing::Predicates(_) => Kind::Predicates,
            Thing::Number(_) => Kind::Number,
            Thing::Flag(_) => Kind::Flag,
            Thing::Tile(_) => Kind::Tile,
            Thing::Pipeline(_) => Kind::Pipeline,
            Thing::Cursor(_) => Kind::Cursor,
            Thing::Stage(_) => Kind::Stage,
        };
        let mut things = self.things.borrow_mut();
        things.push((body, thing));
        Handle { trace: self.trace, number: things.len() - 1, kind }
    }

    /// What a handle is the place of.
    pub fn thing(&self, handle: Handle) -> Result<Thing<'k>, Refused> {
        let things = self.things.borrow();
        let Some((body, thing)) = things.get(handle.number).filter(|_| handle.trace == self.trace) else {
            return Err(of_another(handle.trace, self.trace));
        };
        if !self.open.borrow().iter().any(|open| open.number == *body) {
            return Err(Refused::here(
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

    /// What a statement gives; the first refusal is remembered. An operator has no result to refuse
    /// with, so the builder is asked whether it did.
    fn answer<R>(&self, answer: Result<R, Refused>) -> Result<R, Refused> {
        let answer = answer.and_then(|answer| self.build.complaint().map(|()| answer).map_err(Refused::from));
        answer.inspect_err(|refused| {
            self.failed.borrow_mut().get_or_insert_with(|| refused.clone());
        })
    }

    fn first_refusal(&self) -> Result<(), Refused> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }
}

/// What a statement does, and what it gives.
type Work = Box<dyn for<'k> FnOnce(&Room<'k>) -> Result<Box<dyn Any>, Refused>>;
type Answer = Result<Box<dyn Any>, Refused>;

/// The body that a statement opens.
pub enum Opened {
    /// Turns of a loop.
    Range(Expr),
    /// What threads do where a condition is true.
    When(Condition),
    /// What they do where the condition before is not.
    Otherwise,
    /// What some warps do.
    Role(u32, u32),
    /// What one thread does.
    Single,
}

/// What the coroutine receives.
enum Order {
    Do(Location, Work),
    Open(Location, Opened),
    /// The end of the body of this number.
    Close(u32),
    Finish,
    /// Nothing more comes.
    Abandon,
}

/// The conversation as the coroutine sees it.
struct Talk<'y> {
    yielder: &'y Yielder<Order, Answer>,
    /// An order that was received and is not done.
    next: RefCell<Option<Order>>,
    /// Whether nothing more comes.
    abandoned: Cell<bool>,
}

impl Talk<'_> {
    fn order(&self) -> Order {
        self.next.borrow_mut().take().unwrap_or(Order::Abandon)
    }

    /// Answers, and waits for the next order.
    fn answer(&self, answer: Answer) {
        let next = self.yielder.suspend(answer);
        *self.next.borrow_mut() = Some(next);
    }

    fn done(&self) {
        self.answer(Ok(Box::new(())));
    }

    /// Leaves the kernel as it is.
    fn abandon(&self) -> Result<(), KernelError> {
        self.abandoned.set(true);
        // Nobody reads it.
        Err(LayoutError::Overflow { op: "a kernel that is abandoned" }.into())
    }

    /// Does what is ordered until the body is over.
    fn serve(&self, room: &Room<'_>) -> Result<(), KernelError> {
        loop {
            let order = self.order();
            let depth = room.open.borrow().len();
            match (order, room.first_refusal()) {
                (Order::Abandon, _) => return self.abandon(),
                (Order::Finish, Err(_)) => return self.abandon(),
                (_, Err(refused)) => self.answer(Err(refused)),
                (Order::Do(place, work), Ok(())) => {
                    let answer = place.during(|| work(room));
                    self.answer(room.answer(answer));
                }
                (Order::Open(place, opened), Ok(())) => self.open(room, place, opened)?,
                (Order::Close(body), Ok(())) => {
                    let own = room.open.borrow().last().map(|open| open.number);
                    if own == Some(body) {
                        return Ok(());
                    }
                    self.answer(room.answer(Err(self.left(room))));
                }
                (Order::Finish, Ok(())) if depth == 1 => return Ok(()),
                (Order::Finish, Ok(())) => {
                    let refused = self.left(room);
                    room.failed.borrow_mut().get_or_insert(refused);
                    return self.abandon();
                }
            }
        }
    }

    /// That a body was left before its end.
    fn left(&self, room: &Room<'_>) -> Refused {
        let open = room.open.borrow();
        let (what, at) = open.last().and_then(|open| open.of).map_or(("body", None), |(what, at)| (what, Some(at)));
        let what = format!("the body of this `{what}` was left before its end");
        Refused::Here(what, "a body has no `break` and no `return`: put what is left out under `tw.when`".into(), at)
    }

    /// A body, to its end. The statement is answered when the body begins, with its number and the
    /// variable of the loop, and the end of the body when that is done.
    fn open(&self, room: &Room<'_>, place: Location, opened: Opened) -> Result<(), KernelError> {
        let body = |name: &'static str, variable: Option<Expr>| {
            Location::elsewhere(|| {
                let number = room.bodies.get() + 1;
                room.bodies.set(number);
                room.open.borrow_mut().push(Open { number, of: Some((name, place)) });
                self.answer(Ok(Box::new(Begun { body: number, variable })));
                let served = self.serve(room);
                room.open.borrow_mut().pop();
                served
            })
        };
        // Whether the order that waits is the next one, and no longer the end of the body.
        let answered = Cell::new(false);
        let done = match opened {
            Opened::Range(count) => place.during(|| room.build.range(count, |turn| body("range", Some(turn)))),
            Opened::Role(from, to) => place.during(|| room.build.role(from..to, || body("role", None))),
            Opened::Single => place.during(|| room.build.single(|| body("single", None))),
            Opened::When(flag) => {
                let otherwise = || {
                    // Whether there is another body is seen by what comes next.
                    Location::elsewhere(|| self.done());
                    if matches!(&*self.next.borrow(), Some(Order::Open(_, Opened::Otherwise))) {
                        self.order();
                        return body("otherwise", None);
                    }
                    answered.set(true);
                    Ok(())
                };
                match flag.flag(room) {
                    Ok(flag) => place.during(|| room.build.choose(flag, || body("when", None), otherwise)),
                    Err(refused) => {
                        self.answer(room.answer(Err(refused)));
                        return Ok(());
                    }
                }
            }
            Opened::Otherwise => {
                let help = "write it behind the body of `tw.when`, with nothing between";
                self.answer(room.answer(Err(Refused::here("there is no condition before", help))));
                return Ok(());
            }
        };
        if self.abandoned.get() {
            return done;
        }
        match room.answer(done.map_err(Refused::from)) {
            // The order that waits is refused for this reason.
            _ if answered.get() => {}
            Ok(()) => self.done(),
            Err(refused) => self.answer(Err(refused)),
        }
        Ok(())
    }
}

/// What is known of a body at its beginning.
pub struct Begun {
    /// Its number.
    pub body: u32,
    /// The variable of a loop.
    pub variable: Option<Expr>,
}

/// A kernel that is being written.
struct Trace {
    /// Its number; they begin at 1.
    number: u64,
    coroutine: Coroutine<Order, Answer, Result<Kernel, Refused>>,
}

thread_local! {
    /// The kernels that this thread is writing, each within the one before.
    static TRACES: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

/// How many kernels messages know by their names: those that were traced last.
const NAMED: usize = 1024;

/// The numbers of kernels that were traced, and their names.
static NAMES: Mutex<VecDeque<(u64, String)>> = Mutex::new(VecDeque::new());

/// The number of a kernel or of a tile program that begins to be traced.
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

/// The name of a kernel by its number; none where it was traced long ago.
fn name_of(number: u64) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().rev().find(|(own, _)| *own == number).map(|(_, name)| name.clone())
}

/// That something belongs to the kernel of the first number, and the second is the one that is
/// traced.
pub fn of_another(number: u64, here: u64) -> Refused {
    let other = name_of(number).map_or("another kernel".to_owned(), |name| format!("the kernel `{name}`"));
    match here {
        OUTSIDE => Refused::here(
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
            Refused::here(
                what,
                "use tensors, layouts and numbers of the kernel that is being traced; a layout for several kernels is made \
                 outside of all: `tw.Layout(\"(M,8):(8,1)\")`",
            )
        }
    }
}

fn started(name: String, place: Location) -> PyResult<Trace> {
    let trace = numbered(&name);
    let stack = DefaultStack::new(STACK).map_err(|error| PyMemoryError::new_err(error.to_string()))?;
    let coroutine = Coroutine::with_stack(stack, move |yielder, first| {
        let talk = Talk { yielder, next: RefCell::new(Some(first)), abandoned: Cell::new(false) };
        let failed = Rc::new(RefCell::new(None));
        let write = |build: &Build| {
            let open = RefCell::new(vec![Open { number: 0, of: None }]);
            let (things, bodies) = (RefCell::new(Vec::new()), Cell::new(0));
            let room = Room { build, trace, things, open, bodies, failed: failed.clone() };
            Location::elsewhere(|| talk.serve(&room))
        };
        let written = place.during(|| Kernel::build(&name, write));
        match failed.take() {
            Some(refused) => Err(refused),
            None => written.map_err(Refused::from),
        }
    });
    Ok(Trace { number: trace, coroutine })
}

/// The kernel that a function of Python writes, which is called once, without arguments.
///
/// Errors: what the function raises; what is refused.
pub fn written(py: Python<'_>, name: &str, function: &Bound<'_, PyAny>, place: Location) -> PyResult<Kernel> {
    let trace = started(name.to_owned(), place)?;
    TRACES.with_borrow_mut(|traces| traces.push(trace));
    // A panic goes on when the kernel is given up: else the thread would go on writing it.
    let called = panic::catch_unwind(AssertUnwindSafe(|| function.call0()));
    let Some(mut trace) = TRACES.with_borrow_mut(Vec::pop) else {
        return Err(PyRuntimeError::new_err("the kernel that is being written is gone"));
    };
    let called = called.unwrap_or_else(|payload| {
        if !trace.coroutine.done() {
            trace.coroutine.resume(Order::Abandon);
        }
        panic::resume_unwind(payload)
    });
    if trace.coroutine.done() {
        // It has panicked, and the exception of that was raised.
        return Err(called.err().unwrap_or_else(|| PyRuntimeError::new_err("the kernel ended before its function")));
    }
    let last = if called.is_ok() { Order::Finish } else { Order::Abandon };
    let ended = trace.coroutine.resume(last);
    called?;
    match ended {
        CoroutineResult::Return(written) => written.map_err(|refused| refusal::of_kernel(py, &refused)),
        CoroutineResult::Yield(answer) => Err(match answer {
            Err(refused) => refusal::of_kernel(py, &refused),
            Ok(_) => PyRuntimeError::new_err("the kernel did not end"),
        }),
    }
}

/// The number of no kernel.
pub const OUTSIDE: u64 = 0;

/// The number of the kernel that this thread is writing; [`OUTSIDE`] where it writes none.
pub fn current() -> u64 {
    TRACES.with_borrow(|traces| traces.last().map_or(OUTSIDE, |trace| trace.number))
}

thread_local! {
    /// The tile programs that this thread is writing, each within the one before.
    static TILES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Says that this thread begins to write a tile program of a name; without one, that the last one is
/// written.
#[pyfunction]
#[pyo3(signature = (begins))]
pub fn writes_tiles(begins: Option<&str>) {
    let begun = begins.map(numbered);
    TILES.with_borrow_mut(|tiles| match begun {
        Some(number) => tiles.push(number),
        None => drop(tiles.pop()),
    });
}

/// Whether this thread is writing a tile program.
pub fn is_writing_tiles() -> bool {
    TILES.with_borrow(|tiles| !tiles.is_empty())
}

/// The number of the kernel or the tile program that this thread is writing, the inner one of both;
/// [`OUTSIDE`] where it writes none.
pub fn owner() -> u64 {
    current().max(TILES.with_borrow(|tiles| tiles.last().copied().unwrap_or(OUTSIDE)))
}

/// Whether this thread is writing a kernel.
#[pyfunction]
pub fn is_tracing() -> bool {
    TRACES.with_borrow(|traces| !traces.is_empty())
}

/// Gives an order to the kernel that is being written.
fn order<R: 'static>(py: Python<'_>, order: Order) -> PyResult<R> {
    let answer = TRACES.with_borrow_mut(|traces| {
        let trace = traces.last_mut().ok_or_else(|| {
            let help = "call it in a function under `@tw.jit`, in the thread that traces it";
            Refused::here("no kernel is being written here", help)
        })?;
        if trace.coroutine.done() {
            return Err(Refused::here("the kernel is given up", ""));
        }
        match trace.coroutine.resume(order) {
            CoroutineResult::Yield(answer) => answer,
            CoroutineResult::Return(Ok(_)) => Err(Refused::here("the kernel is written already", "")),
            CoroutineResult::Return(Err(refused)) => Err(refused),
        }
    });
    let answer = answer.map_err(|refused| refusal::of_kernel(py, &refused))?;
    match answer.downcast::<R>() {
        Ok(answer) => Ok(*answer),
        Err(_) => Err(PyRuntimeError::new_err("a statement was answered as another")),
    }
}

/// Does a statement, at the line of Python that calls it.
///
/// Errors: it is refused; no kernel is being written.
pub fn run<R: 'static>(
    py: Python<'_>,
    work: impl for<'k> FnOnce(&Room<'k>) -> Result<R, Refused> + 'static,
) -> PyResult<R> {
    let place = place::caller(py)?;
    let work: Work = Box::new(|room| Ok(Box::new(work(room)?)));
    order(py, Order::Do(place, work))
}

/// What something of the kernel is, for `repr`, which never fails: text of a statement that changes
/// nothing, or that there is no such thing here.
pub fn shown(
    py: Python<'_>,
    of: Handle,
    work: impl for<'k> FnOnce(&Room<'k>) -> Result<String, Refused> + 'static,
) -> String {
    let told = if of.trace == current() { run(py, work).ok() } else { None };
    told.unwrap_or_else(|| format!("<{:?} of a kernel that is not written here>", of.kind))
}

/// Begins a body, which is written at a place.
///
/// Errors: as [`run`].
pub fn open(py: Python<'_>, place: Location, opened: Opened) -> PyResult<Begun> {
    order(py, Order::Open(place, opened))
}

/// Ends the body of this number.
///
/// Errors: as [`run`]; a body within it was left before its end.
pub fn close(py: Python<'_>, body: u32) -> PyResult<()> {
    order(py, Order::Close(body))
}
