//! One device in each of several processes.
//!
//! Law: one process creates an identifier, and the others get it by other means; with it, all of
//! them join at once. A process enqueues its own ends of transfers on its stream, in an order that
//! all processes share. If a process is lost, the others wait forever, so a process that waits too
//! long aborts.
//!
//! Reason for unsafe code: handles and addresses are passed to functions of the library.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt;

use super::library::{Comm, End, Library, UniqueId};
use super::{NcclError, Transfer, holds};
use crate::device::Device;
use crate::memory::Memory;
use crate::stream::Stream;

/// The identifier with which processes join: 128 bytes, which the first process creates and sends
/// to the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NcclId([u8; 128]);

impl NcclId {
    /// Creates an identifier. If this process ends, the others cannot join.
    ///
    /// Errors: as [`NcclProcess::join`].
    pub fn new() -> Result<NcclId, NcclError> {
        NcclId::by(&Library::open()?)
    }

    pub(super) fn by(library: &Library) -> Result<NcclId, NcclError> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the answer is written to a variable.
        library.answer(unsafe { (library.get_id)(&mut id) })?;
        Ok(NcclId(id.0))
    }

    /// The identifier with these bytes.
    pub fn of_bytes(bytes: [u8; 128]) -> NcclId {
        NcclId(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; 128] {
        self.0
    }
}

impl fmt::Debug for NcclId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever knows the bytes can join, so they are not printed.
        f.write_str("NcclId(..)")
    }
}

/// The device of this process, connected with the devices of other processes.
pub struct NcclProcess {
    library: Library,
    device: Device,
    comm: Option<Comm>,
    rank: usize,
    ranks: usize,
}

impl NcclProcess {
    /// Joins the other processes, and returns when all have joined.
    ///
    /// Errors: the library is missing, is too old, or lacks a function; `NCCL_NVLS_ENABLE` is not
    /// 0; the rank is not below the number of ranks; NCCL refuses.
    pub fn join(device: &Device, id: &NcclId, rank: usize, ranks: usize) -> Result<NcclProcess, NcclError> {
        NcclProcess::by(Library::open()?, device, id, rank, ranks)
    }

    pub(super) fn by(
        library: Library,
        device: &Device,
        id: &NcclId,
        rank: usize,
        ranks: usize,
    ) -> Result<NcclProcess, NcclError> {
        let count = |number: usize| c_int::try_from(number).map_err(|_| NcclError::Unfit("there are too many ranks"));
        if rank >= ranks {
            return Err(NcclError::Unfit("a rank is below the number of ranks"));
        }
        let (own, all) = (count(rank)?, count(ranks)?);
        let mut comm: Comm = std::ptr::null_mut();
        // SAFETY: the handle is written to a variable; the device is that of the current context.
        let status =
            device.context().attempt(|_| unsafe { (library.init_rank)(&mut comm, all, UniqueId(id.0), own) })?;
        library.answer(status)?;
        Ok(NcclProcess { library, device: device.clone(), comm: Some(comm), rank, ranks })
    }

    /// The version of the library, as `2.27.3`.
    pub fn version(&self) -> String {
        self.library.version()
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Enqueues the transfers that begin or end in this process on a stream, as one group, and
    /// returns at once. It sends from `from`, and receives in `to`. All processes pass the same
    /// transfers in the same order.
    ///
    /// Errors: memory that does not contain a transfer, or is of another device; a process that
    /// aborted; NCCL refuses.
    pub fn transfer(
        &mut self,
        stream: &Stream,
        from: &Memory,
        to: &mut Memory,
        transfers: &[Transfer],
    ) -> Result<(), NcclError> {
        let comm = self.comm.ok_or(NcclError::Unfit("this process aborted"))?;
        let context = self.device.context();
        context.same(stream.context(), "the stream")?;
        context.same(from.context(), "the memory that is sent")?;
        context.same(to.context(), "the memory that is written")?;
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for transfer in transfers {
            let (bytes, stream) = (transfer.bytes, stream.handle());
            let fits = transfer.from.max(transfer.to) < self.ranks && transfer.from != transfer.to;
            let sent = transfer.from != self.rank || holds(from, transfer.read, bytes);
            let received = transfer.to != self.rank || holds(to, transfer.write, bytes);
            if !(fits && sent && received) {
                return Err(NcclError::Unfit("the memory does not hold a transfer"));
            }
            if transfer.from == self.rank {
                sends.push(End { address: from.address() + transfer.read, bytes, other: transfer.to, comm, stream });
            } else if transfer.to == self.rank {
                receives.push(End {
                    address: to.address() + transfer.write,
                    bytes,
                    other: transfer.from,
                    comm,
                    stream,
                });
            }
        }
        // SAFETY: the memory and the stream belong to the device of the handle, and the memory
        // contains the bytes, as was checked above; `to` is borrowed exclusively.
        context.attempt(|_| unsafe { self.library.transfer(&sends, &receives) })?
    }

    /// The asynchronous error of the device, if any.
    ///
    /// Errors: NCCL's, such as a lost process at the other end.
    pub fn check(&mut self) -> Result<(), NcclError> {
        let Some(comm) = self.comm else { return Err(NcclError::Unfit("this process aborted")) };
        let mut status = 0;
        // SAFETY: the handle is alive, and the answer is written to a variable.
        let answer = unsafe { (self.library.async_error)(comm, &mut status) };
        self.library.answer(answer).and_then(|()| self.library.answer(status))
    }

    /// Stops transfers in progress and destroys the handle: streams that wait for a lost process
    /// continue, and what they received must not be used.
    pub fn abort(&mut self) {
        if let Some(comm) = self.comm.take() {
            // SAFETY: the handle is destroyed once.
            let _ = self.device.context().attempt(|_| unsafe { (self.library.abort)(comm) });
        }
    }
}

impl Drop for NcclProcess {
    fn drop(&mut self) {
        if let Some(comm) = self.comm.take() {
            // SAFETY: the handle is destroyed once.
            let _ = self.device.context().attempt(|_| unsafe { (self.library.destroy)(comm) });
        }
    }
}

impl fmt::Debug for NcclProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NcclProcess(rank {} of {}, NCCL {})", self.rank, self.ranks, self.version())
    }
}
