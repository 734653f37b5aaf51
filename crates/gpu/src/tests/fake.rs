//! A fake driver in memory.
//!
//! Law: the functions have the parameters of the real ones, and the same behaviour. Objects that
//! are created are live until they are destroyed; calls require a current context; an error of a
//! kernel is reported at the next synchronisation and by every call after it. Device memory is
//! memory of this process, and kernels are functions here, with the names of kernel entries.
//!
//! The thread of each test has its own driver.
//!
//! Reason for unsafe code: C functions, which receive pointers.
#![allow(unsafe_code)]

mod functions;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::Arc;

pub(super) use functions::find;

use crate::driver::Driver;
use crate::error::GpuError;
use crate::status::Code;

/// The context of the first device. The contexts of further devices follow it.
const CONTEXT: usize = 0xc0de;

/// The state of a fake driver.
#[derive(Default)]
pub(crate) struct Books {
    /// The objects that were created and not destroyed: the handle and the kind.
    pub(super) live: BTreeMap<usize, &'static str>,
    next: usize,
    memory: BTreeMap<u64, Vec<u64>>,
    texts: BTreeMap<usize, String>,
    functions: BTreeMap<usize, (String, Vec<usize>)>,
    /// All calls, in order.
    pub(super) trace: Vec<&'static str>,
    /// The index of the call that fails, counted from 0, and its status.
    pub(super) fail: Option<(usize, Code)>,
    /// The error of a kernel that has not been reported yet, and the one that every call reports.
    failing: Option<Code>,
    sticky: Option<Code>,
    pub(super) version: i32,
    pub(crate) devices: i32,
    pub(super) init: Code,
    pub(super) missing: Option<&'static str>,
    /// Attributes whose values differ from those of an H200.
    pub(super) attributes: BTreeMap<c_int, c_int>,
    /// The number of bytes of device memory in use.
    pub(crate) bytes: usize,
    /// Pairs of contexts. The first context of a pair may access the memory of the second.
    pub(super) peers: BTreeSet<(usize, usize)>,
    pub(super) capture: Option<Vec<Launched>>,
    /// The number of captures that were begun.
    recordings: u64,
    graphs: BTreeMap<usize, Vec<Launched>>,
    /// The last launch.
    pub(super) last: Option<Launched>,
    pub(super) launches: usize,
    /// All launches, if a test requests them; otherwise None.
    pub(super) history: Option<Vec<Launched>>,
    /// The address, the extents, the strides and the box of the tensor map that was encoded last.
    pub(super) encoded: Option<Encoded>,
    /// Whether something was launched that nobody has waited for.
    busy: bool,
    /// The contexts below the current one on the stack.
    stack: Vec<usize>,
}

pub(super) type Encoded = (u64, Vec<u64>, Vec<u64>, Vec<u32>);

/// A launch, with the bytes of its arguments and the values of its attributes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Launched {
    pub(super) entry: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    pub(super) attributes: Vec<(u32, [u32; 3])>,
    pub(super) arguments: Vec<Vec<u8>>,
}

thread_local! {
    static BOOKS: RefCell<Books> = RefCell::default();
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// Accesses the state of this thread's driver.
pub(super) fn books<R>(look: impl FnOnce(&mut Books) -> R) -> R {
    BOOKS.with_borrow_mut(look)
}

/// The current context.
pub(super) fn current() -> usize {
    CURRENT.get()
}

pub(super) fn set_current(context: usize) {
    CURRENT.set(context);
}

/// Resets the state to that of a new driver.
pub(super) fn begin() {
    CURRENT.set(0);
    let trace = Vec::with_capacity(1 << 16);
    books(|books| {
        *books = Books { version: 13_000, devices: 1, bytes: 1 << 24, next: 0x1000, trace, ..Books::default() };
    });
}

/// A driver with new state, modified by the test.
pub(crate) fn driver_with(change: impl FnOnce(&mut Books)) -> Result<Arc<Driver>, GpuError> {
    begin();
    books(change);
    // SAFETY: the functions below have the parameters of the driver functions with these names.
    unsafe { Driver::start(find) }.map(Arc::new)
}

pub(super) fn driver() -> Arc<Driver> {
    driver_with(|_| {}).unwrap()
}

type Answer = Result<(), Code>;

/// A call: it is recorded, and it fails if the test requests that, if a kernel has failed, or if it
/// requires a context and none is current.
fn call(symbol: &'static str, wants_context: bool, work: impl FnOnce(&mut Books) -> Answer) -> Code {
    let answer = books(|books| {
        let number = books.trace.len();
        books.trace.push(symbol);
        let fail = books.fail.filter(|(at, _)| *at == number).map(|(_, code)| code);
        // Calls that free something are executed in any case.
        let gives_back = ["Destroy", "Free", "Unload", "Release", "EndCapture", "PopCurrent"]
            .iter()
            .any(|word| symbol.contains(word));
        if let Some(code) = fail {
            if [700, 719].contains(&code) {
                books.sticky = Some(code);
            }
            if symbol == "cuStreamEndCapture" {
                books.capture = None;
            } else if gives_back {
                let _ = work(books);
            }
            return Err(code);
        }
        if wants_context && !(CONTEXT..CONTEXT + books.devices as usize).contains(&CURRENT.get()) {
            return Err(201);
        }
        if let Some(code) = books.sticky.filter(|_| wants_context && !gives_back) {
            return Err(code);
        }
        work(books)
    });
    answer.err().unwrap_or(0)
}

impl Books {
    fn make(&mut self, what: &'static str) -> usize {
        self.next += 8;
        self.live.insert(self.next, what);
        self.next
    }

    fn destroy(&mut self, handle: usize, what: &'static str) -> Answer {
        match self.live.remove(&handle) {
            Some(known) if known == what => Ok(()),
            other => panic!("{what} {handle:#x} is destroyed, which is {other:?}"),
        }
    }

    fn wait(&mut self) -> Answer {
        self.busy = false;
        if let Some(code) = self.failing.take() {
            self.sticky = Some(code);
        }
        self.sticky.map_or(Ok(()), Err)
    }

    /// Frees the code that nothing executes; after a failure, that cannot be known.
    fn unused(&self) {
        assert!(!self.busy || self.fail.is_some() || self.sticky.is_some(), "code goes while it may run");
    }

    /// Runs a kernel.
    fn run(&mut self, launched: &Launched) {
        self.busy = true;
        let word = |at: usize| u32::from_ne_bytes(launched.arguments[at][..4].try_into().unwrap());
        match launched.entry.as_str() {
            "trap" => self.failing = Some(719),
            "scale" => {
                let address = u64::from_ne_bytes(launched.arguments[0][..].try_into().unwrap());
                let (factor, count) = (f32::from_bits(word(1)), word(2) as usize);
                let x = std::ptr::with_exposed_provenance_mut::<f32>(address as usize);
                // SAFETY: the test passes memory of this process with this many elements.
                unsafe { std::slice::from_raw_parts_mut(x, count) }.iter_mut().for_each(|x| *x *= factor);
            }
            _ => {}
        }
        self.launches += 1;
        if let Some(history) = &mut self.history {
            history.push(launched.clone());
        }
        self.last = Some(launched.clone());
    }
}

/// Every symbol of the table has a function here.
#[test]
fn the_fake_is_complete() {
    begin();
    let missing: BTreeSet<_> = crate::driver::SYMBOLS.iter().filter(|symbol| find(symbol).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
