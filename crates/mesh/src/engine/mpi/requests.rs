//! Single MPI messages.
//!
//! Law: a request is started, and tested until it completes. Its bytes do not move meanwhile, and
//! are leaked if it cannot be known when it completes.
//!
//! Reason for unsafe code: addresses of bytes are passed to functions of the library.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::time::Instant;

use super::library::{Functions, Handle, Status};
use super::{GRACE, MAX_TEXT, Mpi};

/// A request that was started; its bytes do not move until it completes.
pub(super) struct Request {
    pub(super) rank: usize,
    handle: Handle,
    /// The index of the request among those of a call.
    pub(super) number: usize,
    /// The received bytes; the bytes that are sent are kept alive by the caller.
    pub(super) bytes: Vec<u8>,
}

impl Mpi {
    /// Starts to send bytes, which must not move until the request completes.
    pub(super) fn begin_send(&self, rank: usize, tag: c_int, bytes: &[u8]) -> Result<Request, String> {
        let (count, to) = (bytes.len() as c_int, rank as c_int);
        let mut handle = std::ptr::null_mut();
        let Functions { world, byte, send, .. } = self.functions;
        // SAFETY: the bytes are valid, at most `MESSAGE` many, and outlive the request in all
        // callers, or are leaked.
        let status = unsafe { send(bytes.as_ptr().cast(), count, byte, to, tag, world, &mut handle) };
        if status == 0 { Ok(Request { rank, handle, number: 0, bytes: Vec::new() }) } else { Err(refused(status)) }
    }

    /// Starts to receive this many bytes.
    pub(super) fn begin_receive(&self, rank: usize, tag: c_int, mut bytes: Vec<u8>) -> Result<Request, String> {
        let (count, from) = (bytes.len() as c_int, rank as c_int);
        let mut handle = std::ptr::null_mut();
        let Functions { world, byte, receive, .. } = self.functions;
        // SAFETY: the bytes are kept with the request, and not freed before it completes.
        let status = unsafe { receive(bytes.as_mut_ptr().cast(), count, byte, from, tag, world, &mut handle) };
        if status == 0 { Ok(Request { rank, handle, number: 0, bytes }) } else { Err(refused(status)) }
    }

    /// Whether a request has completed.
    pub(super) fn is_done(&self, request: &mut Request) -> Result<bool, String> {
        let (mut done, mut status) = (0, Status::default());
        // SAFETY: the handle is that of a request that was started, and it is not tested again
        // after it completes.
        let answer = unsafe { (self.functions.test)(&mut request.handle, &mut done, &mut status) };
        if answer == 0 { Ok(done != 0) } else { Err(refused(answer)) }
    }

    /// The next message with a tag from a rank, or from any rank, if one has arrived.
    pub(super) fn heard(&self, from: c_int, tag: c_int) -> Option<(usize, Vec<u8>)> {
        let Functions { world, byte, probe, count, .. } = self.functions;
        let (mut there, mut status, mut bytes) = (0, Status::default(), 0);
        // SAFETY: pointers to the results are valid.
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
        // The message has arrived, so this loop ends at once.
        while !self.is_done(&mut request).ok()? {
            if Instant::now() > until {
                std::mem::forget(request.bytes);
                return None;
            }
        }
        Some((rank, request.bytes))
    }

    /// Sends a short text. Its memory is leaked, because nothing waits for the request.
    pub(super) fn say(&self, rank: usize, tag: c_int, text: &str) -> Option<Request> {
        let bytes: &'static [u8] = Box::leak(text.as_bytes().to_vec().into_boxed_slice());
        self.begin_send(rank, tag, bytes).ok()
    }
}

fn refused(status: c_int) -> String {
    format!("MPI answered with status {status}")
}
