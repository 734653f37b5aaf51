//! Streams: ordered work on a device.
//!
//! Law: the work of one stream is done in the order in which it was enqueued. Two streams wait for
//! each other only through an [`Event`]. A stream is synchronized when it is dropped, unless it is
//! borrowed.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::{Driver, Refused, StreamHandle};
use crate::error::GpuError;
use crate::event::Event;
use crate::pending::Pending;

/// A stream.
///
/// ```no_run
/// # fn main() -> Result<(), tilewright_gpu::GpuError> {
/// let device = tilewright_gpu::Device::open(0)?;
/// let stream = device.stream()?;
/// let (begin, end) = (device.event()?, device.event()?);
/// stream.record(&begin)?;
/// // Launches ..
/// stream.record(&end)?;
/// println!("{} s", end.seconds_since(&begin)?);
/// # Ok(())
/// # }
/// ```
pub struct Stream {
    context: Arc<Context>,
    handle: StreamHandle,
    pending: Arc<Pending>,
    /// Whether this crate created it, and not another library.
    owned: bool,
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>, urgent: bool) -> Result<Stream, GpuError> {
        let context = context.clone();
        let handle = context.call(|driver| driver.create_stream(urgent))?;
        let pending = context.new_pending();
        Ok(Stream { context, handle, pending, owned: true })
    }

    /// A stream of another library.
    pub(crate) fn of_handle(context: &Arc<Context>, handle: StreamHandle) -> Stream {
        let context = context.clone();
        let pending = context.new_pending();
        Stream { context, handle, pending, owned: false }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        self.handle
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Enqueues work on the stream.
    pub(crate) fn enqueue(
        &self,
        work: impl FnOnce(&Driver, StreamHandle) -> Result<(), Refused>,
    ) -> Result<(), GpuError> {
        self.context.call(|driver| work(driver, self.handle))
    }

    /// Enqueues work on the stream, and waits for the stream.
    pub(crate) fn finish(
        &self,
        work: impl FnOnce(&Driver, StreamHandle) -> Result<(), Refused>,
    ) -> Result<(), GpuError> {
        self.enqueue(work)?;
        self.pending.clear();
        Ok(())
    }

    /// Waits until all work of the stream is done.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.finish(|driver, handle| driver.synchronize_stream(handle))
    }

    /// Whether all work of the stream is done.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn is_done(&self) -> Result<bool, GpuError> {
        let done = self.context.call(|driver| driver.query_stream(self.handle))?;
        if done {
            self.pending.clear();
        }
        Ok(done)
    }

    /// Records an event at the current position of the stream.
    ///
    /// Errors: the event is of another device (E0814).
    pub fn record(&self, event: &Event) -> Result<(), GpuError> {
        self.context.same(event.context(), "the event")?;
        self.enqueue(|driver, handle| driver.record_event(event.handle(), handle))
    }

    /// Later work of this stream waits for an event, which may be of any stream of this device or
    /// of another.
    ///
    /// Errors: the driver refused (E0807).
    pub fn wait(&self, event: &Event) -> Result<(), GpuError> {
        event.context().usable()?;
        self.enqueue(|driver, handle| driver.wait_event(handle, event.handle()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.owned {
            return self.context.forget(&self.pending);
        }
        // Synchronizes, so that a failure is attributed to one of these launches.
        if self.context.usable().is_ok() {
            let _ = self.synchronize();
        }
        self.context.forget(&self.pending);
        self.context.give_back(|driver| driver.destroy_stream(self.handle));
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream(device {})", self.context.ordinal())
    }
}
