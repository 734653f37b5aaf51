//! Processes that MPI connects.
//!
//! Law: MPI carries bytes from process to process and does nothing else; what is sent is what the
//! law of the engines says. No call of MPI is made that waits: requests are begun and asked for, so
//! that a process that waits hears what others have to say. It waits for nothing from a process for
//! longer than the engine's *patience*: then it asks those that it waits for whom they wait for.
//! Who does not answer within a second is lost, and that goes to all others. So every process ends
//! with the same kind of error within the patience and three seconds. After a failure MPI is not
//! finalised, for that would wait for the one that is lost.
//!
//! MPI is opened by name when it is wanted, like the driver: nothing is needed to build this, and
//! one program runs with it and without. It has to be Open MPI 4 or 5, whose handles and constants
//! are those below; another library of this name is refused by what it says of itself.
//!
//! Reason for unsafe code: a library is loaded, its symbols are taken for functions and handles,
//! and addresses of bytes are passed to them.
#![allow(unsafe_code)]

mod meanwhile;

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::frame::{decoded, encoded};
use super::{Engine, Interrupter, Meanwhile, difference};
use crate::error::MeshError;

/// The names of the library.
const LIBRARIES: [&str; 2] = ["libmpi.so.40", "libmpi.so"];
/// What it says of itself.
const KNOWN: [&str; 2] = ["Open MPI v4.", "Open MPI v5."];

/// MPI_THREAD_FUNNELED: all calls are made by one thread.
const FUNNELED: c_int = 1;
/// MPI_ANY_SOURCE.
const ANY_SOURCE: c_int = -1;
/// Tags: a failure, the question for whom one waits, its answer; from the last one on those of
/// calls.
const FAILED: c_int = 1;
const ASK: c_int = 2;
const ANSWER: c_int = 3;
const CALLS: c_int = 16;
/// Tags of calls are used again after so many.
const TAGS: u64 = 16_384;
/// The most bytes of one message.
const MESSAGE: usize = 1 << 30;
/// The most bytes of what processes say to each other.
const MAX_TEXT: usize = 1 << 24;
/// How long an answer is waited for, and how long a failure may take on its way to others.
const GRACE: Duration = Duration::from_secs(1);

type Handle = *mut c_void;

/// MPI_Status of Open MPI.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    count: usize,
}

type LibraryVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
type Flag = unsafe extern "C" fn(*mut c_int) -> c_int;
type InitThread = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
type OfComm = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type SetHandler = unsafe extern "C" fn(Handle, Handle) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut Status) -> c_int;
type Probe = unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, *mut Status) -> c_int;
type Count = unsafe extern "C" fn(*const Status, Handle, *mut c_int) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;

/// The functions and handles that are used.
struct Functions {
    world: Handle,
    byte: Handle,
    send: Send,
    receive: Receive,
    test: Test,
    probe: Probe,
    count: Count,
    finalize: Finalize,
}

/// Processes that MPI connects. It is used by the thread that opened it.
pub struct Mpi {
    functions: Functions,
    rank: usize,
    ranks: usize,
    patience: Duration,
    calls: u64,
    failed: Option<MeshError>,
    interrupter: Interrupter,
    version: String,
}

/// A message that was begun; its bytes stay where they are until it is done.
struct Request {
    rank: usize,
    handle: Handle,
    /// Its place among those of a call.
    number: usize,
    /// What is received; what is sent lives longer.
    bytes: Vec<u8>,
}

/// Whether MPI was initialised by an engine of this process: it can be but once.
static OPENED: AtomicBool = AtomicBool::new(false);

fn absent(what: impl Into<Box<str>>) -> MeshError {
    MeshError::Engine { what: what.into() }
}

impl Mpi {
    /// Initialises MPI in a process that mpirun or srun started.
    ///
    /// Errors: there is no library, it is no Open MPI 4 or 5, or does not begin
    /// ([`MeshError::Engine`]); it was opened before in this process.
    pub fn open(patience: Duration) -> Result<Mpi, MeshError> {
        let mut why = String::new();
        let opened = LIBRARIES.iter().find_map(|name| {
            // SAFETY: the initialisers of the library may run in any program. Its parts look for
            // symbols of the library among those of the program, so they are made known there.
            unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_GLOBAL) }
                .map_err(|error| why = format!("{name}: {error}"))
                .ok()
        });
        let Some(library) = opened else { return Err(absent(format!("there is no MPI: {why}"))) };
        // It is never unloaded, for threads of its own may run in it.
        let library: &'static Library = Box::leak(Box::new(library));
        let missing = |error: libloading::Error| absent(format!("this MPI lacks a function: {error}"));
        // SAFETY: the function has this name and these parameters in every MPI since version 3, and
        // may be called before MPI is initialised.
        let version = unsafe {
            let version = *library.get::<LibraryVersion>(b"MPI_Get_library_version\0").map_err(missing)?;
            let mut text = [0_u8; 8192];
            let mut length = 0;
            version(text.as_mut_ptr().cast(), &mut length);
            let length = usize::try_from(length).unwrap_or(0).min(text.len());
            String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned()
        };
        let version = version.lines().next().unwrap_or_default().trim_end_matches('\0').to_owned();
        if !KNOWN.iter().any(|known| version.starts_with(known)) {
            return Err(absent(format!("this MPI is `{version}`, and Open MPI 4 or 5 is wanted")));
        }
        if OPENED.swap(true, Ordering::SeqCst) {
            return Err(absent("MPI was opened before in this process, and can be but once"));
        }
        // SAFETY: in Open MPI 4 and 5 the functions have these parameters, and handles are the
        // addresses of these symbols.
        let (functions, initialized, init, rank, size, set_handler, errors) = unsafe {
            (
                Functions {
                    world: *library.get::<Handle>(b"ompi_mpi_comm_world\0").map_err(missing)?,
                    byte: *library.get::<Handle>(b"ompi_mpi_byte\0").map_err(missing)?,
                    send: *library.get::<Send>(b"MPI_Isend\0").map_err(missing)?,
                    receive: *library.get::<Receive>(b"MPI_Irecv\0").map_err(missing)?,
                    test: *library.get::<Test>(b"MPI_Test\0").map_err(missing)?,
                    probe: *library.get::<Probe>(b"MPI_Iprobe\0").map_err(missing)?,
                    count: *library.get::<Count>(b"MPI_Get_count\0").map_err(missing)?,
                    finalize: *library.get::<Finalize>(b"MPI_Finalize\0").map_err(missing)?,
                },
                *library.get::<Flag>(b"MPI_Initialized\0").map_err(missing)?,
                *library.get::<InitThread>(b"MPI_Init_thread\0").map_err(missing)?,
                *library.get::<OfComm>(b"MPI_Comm_rank\0").map_err(missing)?,
                *library.get::<OfComm>(b"MPI_Comm_size\0").map_err(missing)?,
                *library.get::<SetHandler>(b"MPI_Comm_set_errhandler\0").map_err(missing)?,
                *library.get::<Handle>(b"ompi_mpi_errors_return\0").map_err(missing)?,
            )
        };
        let (mut begun, mut level, mut own, mut all) = (0, 0, 0, 0);
        // SAFETY: places for the answers are given; no arguments of the program are passed on.
        let answers = unsafe {
            let asked = initialized(&mut begun);
            if begun != 0 {
                return Err(absent("this program has initialised MPI itself"));
            }
            let started = init(std::ptr::null_mut(), std::ptr::null_mut(), FUNNELED, &mut level);
            let world = functions.world;
            [asked, started, set_handler(world, errors), rank(world, &mut own), size(world, &mut all)]
        };
        let (Ok(rank), Ok(ranks)) = (usize::try_from(own), usize::try_from(all)) else {
            return Err(absent("MPI does not say which process this is"));
        };
        if let Some(status) = answers.iter().find(|status| **status != 0) {
            return Err(absent(format!("MPI does not begin: it answered with status {status}")));
        }
        let (calls, failed, interrupter) = (0, None, Interrupter::default());
        Ok(Mpi { functions, rank, ranks, patience, calls, failed, interrupter, version })
    }

    /// What the library says of itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What ends the calls of this engine from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    fn tag(&self) -> c_int {
        CALLS + (self.calls % TAGS) as c_int
    }

    /// Begins to send bytes, which stay where they are until that is done.
    fn begin_send(&self, rank: usize, tag: c_int, bytes: &[u8]) -> Result<Request, String> {
        let (count, to) = (bytes.len() as c_int, rank as c_int);
        let mut handle = std::ptr::null_mut();
        let Functions { world, byte, send, .. } = self.functions;
        // SAFETY: the bytes are there, at most as many as `MESSAGE`, and outlive the request in all
        // callers, or are kept for ever.
        let status = unsafe { send(bytes.as_ptr().cast(), count, byte, to, tag, world, &mut handle) };
        if status == 0 { Ok(Request { rank, handle, number: 0, bytes: Vec::new() }) } else { Err(refused(status)) }
    }

    /// Begins to receive as many bytes.
    fn begin_receive(&self, rank: usize, tag: c_int, mut bytes: Vec<u8>) -> Result<Request, String> {
        let (count, from) = (bytes.len() as c_int, rank as c_int);
        let mut handle = std::ptr::null_mut();
        let Functions { world, byte, receive, .. } = self.functions;
        // SAFETY: the bytes are kept with the request, and never freed while it is not done.
        let status = unsafe { receive(bytes.as_mut_ptr().cast(), count, byte, from, tag, world, &mut handle) };
        if status == 0 { Ok(Request { rank, handle, number: 0, bytes }) } else { Err(refused(status)) }
    }

    /// Whether a request is done.
    fn is_done(&self, request: &mut Request) -> Result<bool, String> {
        let (mut done, mut status) = (0, Status::default());
        // SAFETY: the handle is that of a request that was begun, and is not asked for again when
        // it is done.
        let answer = unsafe { (self.functions.test)(&mut request.handle, &mut done, &mut status) };
        if answer == 0 { Ok(done != 0) } else { Err(refused(answer)) }
    }

    /// The next message of a tag from a rank, or from any, if one has come.
    fn heard(&self, from: c_int, tag: c_int) -> Option<(usize, Vec<u8>)> {
        let Functions { world, byte, probe, count, .. } = self.functions;
        let (mut there, mut status, mut bytes) = (0, Status::default(), 0);
        // SAFETY: places for the answers are given.
        let answer = unsafe {
            let answer = probe(from, tag, world, &mut there, &mut status);
            if there != 0 { answer.max(count(&status, byte, &mut bytes)) } else { answer }
        };
        let (rank, length) = (usize::try_from(status.source).ok()?, usize::try_from(bytes).ok()?);
        if answer != 0 || there == 0 || length > MAX_TEXT {
            return None;
        }
        let mut request = self.begin_receive(rank, tag, vec![0; length]).ok()?;
        let until = Instant::now() + GRACE;
        // It has come, so this takes no time.
        while !self.is_done(&mut request).ok()? {
            if Instant::now() > until {
                std::mem::forget(request.bytes);
                return None;
            }
        }
        Some((rank, request.bytes))
    }

    /// Sends a short text; what it takes for that is kept for ever, as nobody waits for it.
    fn say(&self, rank: usize, tag: c_int, text: &str) -> Option<Request> {
        let bytes: &'static [u8] = Box::leak(text.as_bytes().to_vec().into_boxed_slice());
        self.begin_send(rank, tag, bytes).ok()
    }

    /// What another process gave up for, if one did; answers who asks.
    fn listen(&self, waiting: &[usize]) -> Option<MeshError> {
        while let Some((rank, _)) = self.heard(ANY_SOURCE, ASK) {
            let text = waiting.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            self.say(rank, ANSWER, &text);
        }
        let (_, text) = self.heard(ANY_SOURCE, FAILED)?;
        Some(decoded(&String::from_utf8_lossy(&text)))
    }

    /// Looks once at all requests, and for what others say: those that are done go to `done`.
    /// `since` is when one was done last, or this process worked.
    fn look(
        &mut self,
        step: &str,
        requests: &mut Vec<Request>,
        done: &mut Vec<Request>,
        since: &mut Instant,
    ) -> Result<(), MeshError> {
        let (before, mut broken) = (requests.len(), None);
        for mut request in std::mem::take(requests) {
            match self.is_done(&mut request) {
                Ok(true) => done.push(request),
                Ok(false) => requests.push(request),
                Err(why) => broken = Some((request.rank, why)),
            }
        }
        if requests.len() < before {
            *since = Instant::now();
        }
        let ranks: Vec<usize> = requests.iter().map(|request| request.rank).collect();
        let mut ended = broken.map(|(rank, why)| MeshError::Lost { rank, step: step.into(), why: why.into() });
        if ended.is_none() {
            ended = self.listen(&ranks);
        }
        if self.interrupter.is_interrupted() {
            ended = Some(MeshError::Interrupted { rank: self.rank, step: step.into() });
        }
        if ended.is_none() && !requests.is_empty() && since.elapsed() > self.patience {
            ended = self.investigate(step, &ranks);
            *since = Instant::now();
        }
        match ended {
            Some(error) => Err(self.abandon(requests, error)),
            None => Ok(()),
        }
    }

    /// Ends the engine with an error while requests go on: MPI may still use their bytes.
    fn abandon(&mut self, requests: &mut Vec<Request>, error: MeshError) -> MeshError {
        requests.drain(..).for_each(|request| std::mem::forget(request.bytes));
        self.fail(error)
    }

    /// Waits for all requests, and gives what was received.
    fn finish(&mut self, step: &str, mut requests: Vec<Request>) -> Result<Vec<(usize, Vec<u8>)>, MeshError> {
        let (mut done, mut since) = (Vec::new(), Instant::now());
        requests.iter_mut().enumerate().for_each(|(number, request)| request.number = number);
        while !requests.is_empty() {
            self.look(step, &mut requests, &mut done, &mut since)?;
            if !requests.is_empty() && since.elapsed() > Duration::from_millis(1) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        done.sort_by_key(|request| request.number);
        Ok(done.into_iter().map(|request| (request.rank, request.bytes)).collect())
    }

    /// Who is lost, of those that are waited for and those that these wait for; none where all
    /// answer.
    fn investigate(&self, step: &str, waiting: &[usize]) -> Option<MeshError> {
        let (mut asked, mut answered) = (BTreeSet::new(), BTreeSet::from([self.rank]));
        let mut next: Vec<usize> = waiting.to_vec();
        let mut until = Instant::now() + GRACE;
        loop {
            for rank in next.drain(..) {
                if rank != self.rank && asked.insert(rank) {
                    self.say(rank, ASK, "");
                    until = Instant::now() + GRACE;
                }
            }
            if let Some(error) = self.listen(waiting) {
                return Some(error);
            }
            while let Some((rank, text)) = self.heard(ANY_SOURCE, ANSWER) {
                answered.insert(rank);
                next.extend(String::from_utf8_lossy(&text).split(',').filter_map(|rank| rank.parse::<usize>().ok()));
            }
            let silent = asked.iter().find(|rank| !answered.contains(*rank));
            match silent {
                None if next.is_empty() => return None,
                Some(rank) if next.is_empty() && Instant::now() > until => {
                    let why = format!("it did not answer within {} s", self.patience.as_secs_f64());
                    return Some(MeshError::Lost { rank: *rank, step: step.into(), why: why.into() });
                }
                _ => thread::sleep(Duration::from_micros(100)),
            }
        }
    }

    /// Ends the engine with an error, which goes to all others.
    fn fail(&mut self, error: MeshError) -> MeshError {
        let text = encoded(&error);
        let others = (0..self.ranks).filter(|rank| *rank != self.rank);
        let mut requests: Vec<Request> = others.filter_map(|rank| self.say(rank, FAILED, &text)).collect();
        let until = Instant::now() + GRACE;
        while !requests.is_empty() && Instant::now() < until {
            requests.retain_mut(|request| self.is_done(request) == Ok(false));
            thread::sleep(Duration::from_micros(100));
        }
        self.failed = Some(error.clone());
        error
    }

    /// Begins a call: refused after a failure.
    fn begin(&mut self) -> Result<c_int, MeshError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.calls += 1;
        Ok(self.tag())
    }

    /// Sends and receives bytes: each place for them comes back filled, in the order of `places`.
    fn transfer(
        &mut self,
        step: &str,
        sends: &[(usize, &[u8])],
        places: Vec<(usize, Vec<u8>)>,
    ) -> Result<Vec<(usize, Vec<u8>)>, MeshError> {
        let tag = self.begin()?;
        let lost = |rank: usize, why: String| MeshError::Lost { rank, step: step.into(), why: why.into() };
        let (mut requests, mut broken) = (Vec::new(), None);
        let lengths: Vec<(usize, usize)> = places.iter().map(|(rank, bytes)| (*rank, bytes.len())).collect();
        for (rank, mut bytes) in places {
            // Of one sender messages come in their order.
            while bytes.len() > MESSAGE {
                let rest = bytes.split_off(MESSAGE);
                match self.begin_receive(rank, tag, std::mem::replace(&mut bytes, rest)) {
                    Ok(request) => requests.push(request),
                    Err(why) => broken = Some(lost(rank, why)),
                }
            }
            match self.begin_receive(rank, tag, bytes) {
                Ok(request) => requests.push(request),
                Err(why) => broken = Some(lost(rank, why)),
            }
        }
        for (rank, bytes) in sends {
            let mut pieces: Vec<&[u8]> = bytes.chunks(MESSAGE).collect();
            if pieces.is_empty() {
                pieces.push(&[]);
            }
            for piece in pieces {
                match self.begin_send(*rank, tag, piece) {
                    Ok(request) => requests.push(request),
                    Err(why) => broken = Some(lost(*rank, why)),
                }
            }
        }
        if let Some(error) = broken {
            return Err(self.abandon(&mut requests, error));
        }
        let mut come = self.finish(step, requests)?;
        let mut filled = Vec::new();
        for (rank, length) in lengths {
            let mut whole: Vec<u8> = Vec::new();
            while whole.len() < length {
                let next = come.iter().position(|(from, bytes)| *from == rank && !bytes.is_empty());
                let Some(next) = next else { break };
                let (_, mut piece) = come.remove(next);
                if whole.is_empty() { whole = piece } else { whole.append(&mut piece) }
            }
            filled.push((rank, whole));
        }
        Ok(filled)
    }
}

fn refused(status: c_int) -> String {
    format!("MPI answered with status {status}")
}

impl Engine for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn exchange(
        &mut self,
        step: &str,
        sends: &[(usize, Vec<u8>)],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError> {
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|(rank, bytes)| (*rank, bytes.as_slice())).collect();
        let places = receives.iter_mut().map(|(rank, bytes)| (*rank, std::mem::take(bytes))).collect();
        let filled = self.transfer(step, &sends, places)?;
        receives.iter_mut().zip(filled).for_each(|((_, place), (_, bytes))| *place = bytes);
        Ok(())
    }

    fn exchange_while(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        self.overlapped(step, targets, sources, meanwhile)
    }

    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError> {
        let own = text.as_bytes();
        // The lengths first, then the texts, then that all agree.
        let length = (own.len().min(MAX_TEXT) as u64).to_le_bytes();
        if self.rank > 0 {
            self.transfer(step, &[(0, &length)], Vec::new())?;
            self.transfer(step, &[(0, own)], Vec::new())?;
            return self.transfer(step, &[], vec![(0, vec![0; 1])]).map(drop);
        }
        let others = 1..self.ranks;
        let lengths = self.transfer(step, &[], others.clone().map(|rank| (rank, vec![0; 8])).collect())?;
        let place = |(rank, bytes): (usize, Vec<u8>)| {
            let length = <[u8; 8]>::try_from(bytes.as_slice()).map_or(0, u64::from_le_bytes);
            (rank, vec![0; usize::try_from(length).unwrap_or(0).min(MAX_TEXT)])
        };
        let said = self.transfer(step, &[], lengths.into_iter().map(place).collect())?;
        for (rank, said) in said {
            if let Some(error) = difference(text, &String::from_utf8_lossy(&said), rank) {
                return Err(self.fail(error));
            }
        }
        let yes: Vec<(usize, &[u8])> = others.map(|rank| (rank, [1].as_slice())).collect();
        self.transfer(step, &yes, Vec::new()).map(drop)
    }

    fn give_up(&mut self, error: MeshError) -> MeshError {
        if self.failed.is_some() { error } else { self.fail(error) }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if self.failed.is_none() {
            // SAFETY: MPI was initialised, and all that was begun is done.
            let _ = unsafe { (self.functions.finalize)() };
        }
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi(rank {} of {}, {})", self.rank, self.ranks, self.version)
    }
}
