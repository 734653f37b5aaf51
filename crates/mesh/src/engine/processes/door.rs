//! The listener that accepts the processes of a job.
//!
//! Law: greetings are read concurrently, so a silent or slow connection delays no other. A
//! connection that is not from a process of this job is sent the reason, recorded with its address,
//! and closed; the listener stays open for the others. At most [`MAX_WAITING`] connections are read
//! at a time, each for at most [`GREETING`] and [`MAX_GREETING`] bytes.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::super::Place;
use super::super::frame::{FrameKind, HEAD, Head, encoded, send};
use crate::error::MeshError;

/// The time limit for a complete greeting. Processes of the job greet at once.
const GREETING: Duration = Duration::from_secs(5);

/// The most bytes of a greeting: a version, three numbers and a token.
const MAX_GREETING: usize = 1024;

/// The most connections whose greetings are read at a time. Beyond that, the oldest one is closed;
/// a process of the job would have greeted long before.
const MAX_WAITING: usize = 1024;

/// The most ignored connections whose addresses are recorded; further ones are only counted.
const MAX_NAMED: usize = 16;

/// The interval between two checks for connections.
const REST: Duration = Duration::from_millis(2);

/// The greeting that a process sends.
pub(super) fn greeting(place: &Place, port: u16) -> String {
    let token = place.token.as_ref().map_or("", |token| token.reveal());
    format!("{}\n{}\n{}\n{port}\n{token}", env!("CARGO_PKG_VERSION"), place.ranks, place.rank)
}

/// A process of this job that has connected.
pub(super) struct Guest {
    pub rank: usize,
    /// The address at which it listens.
    pub address: SocketAddr,
    pub stream: TcpStream,
}

/// A connection whose greeting is not complete.
struct Caller {
    stream: TcpStream,
    address: SocketAddr,
    since: Instant,
    bytes: Vec<u8>,
}

/// Connections that were not from processes of this job.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    pub named: Vec<String>,
    more: usize,
}

impl Ignored {
    fn note(&mut self, address: SocketAddr, why: &str) {
        match self.named.len() < MAX_NAMED {
            true => self.named.push(format!("{address}: {why}")),
            false => self.more += 1,
        }
    }

    /// All ignored connections in one line; empty if there were none.
    pub fn summary(&self) -> String {
        let more = if self.more == 0 { String::new() } else { format!("; and {} more", self.more) };
        self.named.join("; ") + &more
    }
}

/// A listener, and the connections whose greetings are not complete.
pub(super) struct Door<'a> {
    listener: TcpListener,
    place: &'a Place,
    waiting: Vec<Caller>,
    ignored: &'a mut Ignored,
}

impl<'a> Door<'a> {
    pub fn new(listener: TcpListener, place: &'a Place, ignored: &'a mut Ignored) -> Result<Door<'a>, MeshError> {
        let broken = |error: std::io::Error| MeshError::Environment { what: error.to_string().into() };
        listener.set_nonblocking(true).map_err(broken)?;
        Ok(Door { listener, place, waiting: Vec::new(), ignored })
    }

    /// The next process that connects, whose rank must be expected; None if nothing connects in
    /// time or before `is_over`. Connections without a complete greeting by then are recorded too.
    pub fn next(
        &mut self,
        until: Instant,
        is_wanted: impl Fn(usize) -> bool,
        is_over: impl Fn() -> bool,
    ) -> Option<Guest> {
        while !is_over() {
            self.admit();
            if let Some(guest) = self.listen(&is_wanted) {
                return Some(guest);
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(REST);
        }
        for caller in self.waiting.drain(..) {
            self.ignored.note(caller.address, SILENT);
        }
        None
    }

    /// Accepts the connections that are pending at the listener. After a system error, such as too
    /// many open descriptors, they stay pending until the next check.
    fn admit(&mut self) {
        for _ in 0..MAX_WAITING {
            let Ok((stream, address)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.waiting.len() >= MAX_WAITING {
                let oldest = self.waiting.remove(0);
                self.ignored.note(oldest.address, SILENT);
            }
            self.waiting.push(Caller { stream, address, since: Instant::now(), bytes: Vec::new() });
        }
    }

    /// Continues to read all greetings, up to the first one from a process of this job.
    fn listen(&mut self, is_wanted: &impl Fn(usize) -> bool) -> Option<Guest> {
        let mut at = 0;
        while let Some(caller) = self.waiting.get_mut(at) {
            let heard = match caller.hear() {
                Ok(None) if caller.since.elapsed() < GREETING => {
                    at += 1;
                    continue;
                }
                Ok(None) => Err(SILENT.to_owned()),
                Ok(Some(text)) => Ok(text),
                Err(why) => Err(why),
            };
            let caller = self.waiting.remove(at);
            let misfit = match heard {
                Ok(text) => match self.known(&text, caller.address, is_wanted) {
                    Ok((rank, address)) => return Some(Guest { rank, address, stream: caller.stream }),
                    Err(error) => {
                        // The frame is short, so it is sent at once or not at all.
                        let _ = send(&caller.stream, FrameKind::Failed, 0, encoded(&error).as_bytes());
                        error.to_string()
                    }
                },
                Err(why) => why,
            };
            self.ignored.note(caller.address, &misfit);
        }
        None
    }

    /// The rank of a process and the address at which it listens, if it is of this job.
    fn known(
        &self,
        text: &str,
        address: SocketAddr,
        is_wanted: &impl Fn(usize) -> bool,
    ) -> Result<(usize, SocketAddr), MeshError> {
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap_or_default();
        let (version, ranks, rank, port, token) = (line(), line(), line(), line(), line());
        let rank = rank.parse::<usize>().unwrap_or(usize::MAX);
        let differs = |what: &str, own: &str, other: &str| {
            Err(MeshError::Differs { rank, what: what.into(), own: own.into(), other: printable(other).into() })
        };
        if version != env!("CARGO_PKG_VERSION") {
            return differs("version", env!("CARGO_PKG_VERSION"), version);
        }
        if !self.place.token.as_ref().is_some_and(|own| own.is(token)) {
            return Err(MeshError::Token { what: format!("the job token of {address} is another one").into() });
        }
        if ranks != self.place.ranks.to_string() {
            return differs("number of processes", &self.place.ranks.to_string(), ranks);
        }
        if !is_wanted(rank) {
            return differs("place", "each other rank once", "a rank that is taken, or that is not expected here");
        }
        Ok((rank, SocketAddr::new(address.ip(), port.parse().unwrap_or(0))))
    }
}

const SILENT: &str = "it sent no greeting";
const STRANGE: &str = "it sends data that is not a greeting of tilewright";

impl Caller {
    /// The greeting, once it is complete.
    fn hear(&mut self) -> Result<Option<String>, String> {
        loop {
            let wanted = match self.bytes.first_chunk::<HEAD>() {
                None if !Head::may_begin(&self.bytes) => return Err(STRANGE.to_owned()),
                None => HEAD,
                Some(bytes) => match Head::of(bytes) {
                    Some(head) if head.is_of(FrameKind::Hello, 0) => {
                        let length = usize::try_from(head.length).ok().filter(|length| *length <= MAX_GREETING);
                        HEAD + length.ok_or_else(|| STRANGE.to_owned())?
                    }
                    _ => return Err(STRANGE.to_owned()),
                },
            };
            let left = wanted.saturating_sub(self.bytes.len());
            if left == 0 {
                let text = self.bytes.get(HEAD..).unwrap_or_default();
                return Ok(Some(String::from_utf8_lossy(text).into_owned()));
            }
            let mut piece = [0; HEAD + MAX_GREETING];
            let Some(piece) = piece.get_mut(..left) else { return Err(STRANGE.to_owned()) };
            match self.stream.read(piece) {
                Ok(0) => return Err("it closed its connection before its greeting was complete".to_owned()),
                Ok(count) => self.bytes.extend(piece.iter().take(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Printable text from an unknown sender, for one line.
fn printable(text: &str) -> String {
    text.chars().take(32).map(|c| if c.is_control() { '?' } else { c }).collect()
}
