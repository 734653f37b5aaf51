//! The frames of a connection between two processes.
//!
//! Law: everything that is sent is a frame: its kind, the number of its call, its length, and its
//! bytes. Both ends number calls equally, so a frame of another call is reported as a defect and
//! never used as data. A failure frame may replace any other frame.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::error::MeshError;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// A frame by which processes find each other.
    Hello,
    /// Elements.
    Data,
    /// A text on which processes must agree.
    Text,
    /// The reason why the other process gives up.
    Failed,
    /// The process for which the sender has waited in vain, as the error that the sender would
    /// return. A receiver that did not ask for it skips it.
    Waiting,
}

const KINDS: [FrameKind; 5] =
    [FrameKind::Hello, FrameKind::Data, FrameKind::Text, FrameKind::Failed, FrameKind::Waiting];

/// The most bytes of a frame without elements.
pub(super) const MAX_TEXT: usize = 1 << 24;

const MAGIC: [u8; 7] = *b"tilewri";

/// Why a frame was not sent or received.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is closed or broken.
    Gone(String),
    /// Nothing was received, or nothing could be sent, within the time limit. `midway`: whether a
    /// part of a frame had been transferred.
    Late { midway: bool },
    /// There is not enough memory for the bytes of a frame.
    NoMemory(usize),
    /// The other process reports an error.
    Reported(MeshError),
}

impl Failure {
    /// Whether the time limit passed before any byte was transferred.
    pub(super) fn is_late(&self) -> bool {
        matches!(self, Failure::Late { .. })
    }

    pub(super) fn of_io(error: &std::io::Error, midway: bool) -> Failure {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Late { midway },
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                Failure::Gone("it closed its connection".to_owned())
            }
            _ => Failure::Gone(error.to_string()),
        }
    }
}

pub(super) fn send(mut stream: &TcpStream, kind: FrameKind, call: u64, bytes: &[u8]) -> Result<(), Failure> {
    let mut head = Vec::with_capacity(24);
    head.extend_from_slice(&MAGIC);
    head.push(KINDS.iter().position(|own| *own == kind).unwrap_or(0) as u8);
    head.extend_from_slice(&call.to_le_bytes());
    head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    let sent = stream.write_all(&head).and_then(|()| stream.write_all(bytes));
    sent.map_err(|error| Failure::of_io(&error, true))
}

/// The number of bytes of a frame header.
pub(super) const HEAD: usize = 24;

/// A frame header.
pub(super) struct Head {
    kind: FrameKind,
    call: u64,
    pub length: u64,
}

impl Head {
    /// Parses a header; None if the bytes are no header of this protocol.
    pub fn of(head: &[u8; HEAD]) -> Option<Head> {
        let number = |at: usize| {
            let bytes = head.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let kind = KINDS.get(usize::from(head[7])).filter(|_| head[..7] == MAGIC)?;
        Some(Head { kind: *kind, call: number(8), length: number(16) })
    }

    /// Whether a header may begin with these bytes.
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(&MAGIC).all(|(byte, own)| byte == own)
    }

    pub fn is_of(&self, kind: FrameKind, call: u64) -> bool {
        self.kind == kind && self.call == call
    }
}

/// A connection with a deadline for reads, however slowly bytes arrive.
pub(super) struct Until<'a> {
    pub stream: &'a TcpStream,
    pub until: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        self.stream.read(bytes)
    }
}

/// Reads the header of the next frame.
fn head(stream: &mut impl Read) -> Result<Head, Failure> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head[..1]).map_err(|error| Failure::of_io(&error, false))?;
    stream.read_exact(&mut head[1..]).map_err(|error| Failure::of_io(&error, true))?;
    Head::of(&head).ok_or_else(|| Failure::Gone("it sends data that is not a message of tilewright".to_owned()))
}

/// Reads the bytes after a header: at most `limit`.
fn body(stream: &mut impl Read, length: u64, limit: usize) -> Result<Vec<u8>, Failure> {
    let fits = usize::try_from(length).ok().filter(|own| *own <= limit);
    let own = fits.ok_or_else(|| Failure::Gone(format!("it sends {length} bytes where {limit} belong")))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(own).map_err(|_| Failure::NoMemory(own))?;
    bytes.resize(own, 0);
    stream.read_exact(&mut bytes).map_err(|error| Failure::of_io(&error, true))?;
    Ok(bytes)
}

/// The bytes of the next frame, which must be of this kind and call; `length` is the expected
/// number of bytes, if it is known.
pub(super) fn receive(
    stream: &mut impl Read,
    kind: FrameKind,
    call: u64,
    length: Option<usize>,
) -> Result<Vec<u8>, Failure> {
    loop {
        let head = head(stream)?;
        match head.kind {
            FrameKind::Waiting => drop(body(stream, head.length, MAX_TEXT)?),
            FrameKind::Failed => return Err(reported(&body(stream, head.length, MAX_TEXT)?)),
            own if own != kind || head.call != call => {
                return Err(Failure::Gone("it does something else".to_owned()));
            }
            _ => {
                let limit = length.unwrap_or(MAX_TEXT);
                if length.is_some_and(|length| length as u64 != head.length) {
                    return Err(Failure::Gone(format!("it sends {} bytes where {limit} belong", head.length)));
                }
                return body(stream, head.length, limit);
            }
        }
    }
}

fn reported(bytes: &[u8]) -> Failure {
    Failure::Reported(decoded(&String::from_utf8_lossy(bytes)))
}

/// The process for which the sender waits, if the next frame is of that kind; frames of other kinds
/// are skipped, except failures.
pub(super) fn waiting(mut stream: &TcpStream) -> Result<Option<MeshError>, Failure> {
    let head = head(&mut stream)?;
    let limit = if head.kind == FrameKind::Data { usize::MAX } else { MAX_TEXT };
    let bytes = body(&mut stream, head.length, limit)?;
    match head.kind {
        FrameKind::Failed => Err(reported(&bytes)),
        FrameKind::Waiting => Ok(Some(decoded(&String::from_utf8_lossy(&bytes)))),
        _ => Ok(None),
    }
}

/// The separator of the fields of an encoded error.
const BETWEEN: char = '\u{1f}';

/// Encodes an error as a text that [`decoded`] reads.
pub(super) fn encoded(error: &MeshError) -> String {
    let between = BETWEEN;
    match error {
        MeshError::Differs { rank, what, own, other } => {
            format!("differs{between}{rank}{between}{what}{between}{own}{between}{other}")
        }
        MeshError::Lost { rank, step, why } => format!("lost{between}{rank}{between}{step}{between}{why}"),
        // Only the interrupted process itself returns this error; for all others, that process is
        // lost.
        MeshError::Interrupted { rank, step } => {
            format!("lost{between}{rank}{between}{step}{between}it was interrupted")
        }
        MeshError::OutOfMemory { rank, step, bytes } => {
            format!("memory{between}{rank}{between}{step}{between}{bytes}")
        }
        MeshError::Memory { rank, elements, needed } => {
            format!("small{between}{rank}{between}{elements}{between}{needed}")
        }
        MeshError::Absent { ranks, why } => {
            let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
            format!("absent{between}{}{between}{why}", ranks.join(","))
        }
        MeshError::Token { what } => format!("token{between}{what}"),
        MeshError::Operation { what } => format!("operation{between}{what}"),
        MeshError::Engine { what } => format!("engine{between}{what}"),
        MeshError::Processes { processes, devices } => format!("processes{between}{processes}{between}{devices}"),
        other => other.to_string(),
    }
}

pub(super) fn decoded(text: &str) -> MeshError {
    let parts: Vec<&str> = text.split(BETWEEN).collect();
    let number = |text: &str| text.parse().unwrap_or(usize::MAX);
    match parts.as_slice() {
        ["differs", rank, what, own, other] => {
            let (what, own, other) = ((*what).into(), (*own).into(), (*other).into());
            MeshError::Differs { rank: number(rank), what, own, other }
        }
        ["lost", rank, step, why] => MeshError::Lost { rank: number(rank), step: (*step).into(), why: (*why).into() },
        ["memory", rank, step, bytes] => {
            MeshError::OutOfMemory { rank: number(rank), step: (*step).into(), bytes: number(bytes) }
        }
        ["small", rank, elements, needed] => {
            let needed = needed.parse().unwrap_or(i64::MAX);
            MeshError::Memory { rank: number(rank), elements: number(elements), needed }
        }
        ["absent", ranks, why] => {
            MeshError::Absent { ranks: ranks.split(',').map(number).collect(), why: (*why).into() }
        }
        ["token", what] => MeshError::Token { what: (*what).into() },
        ["operation", what] => MeshError::Operation { what: (*what).into() },
        ["engine", what] => MeshError::Engine { what: (*what).into() },
        ["processes", processes, devices] => {
            MeshError::Processes { processes: number(processes), devices: number(devices) }
        }
        _ => MeshError::Environment { what: text.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_process_is_lost_to_all_others() {
        let interrupted = MeshError::Interrupted { rank: 3, step: "before step 1".into() };
        let lost = MeshError::Lost { rank: 3, step: "before step 1".into(), why: "it was interrupted".into() };
        assert_eq!(decoded(&encoded(&interrupted)), lost);
        assert_eq!(decoded(&encoded(&lost)), lost);
    }

    #[test]
    fn errors_arrive_as_they_were_sent() {
        let text = |text: &str| text.into();
        let all = [
            MeshError::Differs { rank: 1, what: text("mesh"), own: text("x=2"), other: text("x=3") },
            MeshError::OutOfMemory { rank: 2, step: text("step 1"), bytes: 9 },
            MeshError::Memory { rank: 2, elements: 5, needed: 12 },
            MeshError::Absent { ranks: vec![1, 4], why: text("did not come within 3 s") },
            MeshError::Token { what: text("the job token is another one") },
            MeshError::Operation { what: text("rank 1 cannot go on") },
            MeshError::Engine { what: text("NCCL cannot be opened") },
            MeshError::Processes { processes: 3, devices: 4 },
        ];
        for error in all {
            assert_eq!(decoded(&encoded(&error)), error);
        }
    }
}
