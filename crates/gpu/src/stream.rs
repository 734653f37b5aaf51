//! Streams: work of a device in order.
//!
//! Law: what is given to one stream is done in the order in which it was given; two streams wait
//! for each other only through an [`Event`]. A stream that is dropped is waited for, unless it is
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
    /// Whether it was made here, and not by another library.
    owned: bool,
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>, urgent: bool) -> Result<Stream, GpuError> {
        let context = context.clone();
        let handle = context.call(|driver| driver.create_stream(urgent))?;
        let pending = context.new_pending();
        Ok(Stream { context, handle, pending, owned: true })
    }

    /// A stream that another library made.
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

    /// Gives work to the stream.
    pub(crate) fn enqueue(
        &self,
        work: impl FnOnce(&Driver, StreamHandle) -> Result<(), Refused>,
    ) -> Result<(), GpuError> {
        self.context.call(|driver| work(driver, self.handle))
    }

    /// Gives work to the stream that ends with waiting for it.
    pub(crate) fn finish(
        &self,
        work: impl FnOnce(&Driver, StreamHandle) -> Result<(), Refused>,
    ) -> Result<(), GpuError> {
        self.enqueue(work)?;
        self.pending.clear();
        Ok(())
    }

    /// Waits until all is done that was given to the stream.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.finish(|driver, handle| driver.synchronize_stream(handle))
    }

    /// Whether all is done that was given to the stream.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn is_done(&self) -> Result<bool, GpuError> {
        let done = self.context.call(|driver| driver.query_stream(self.handle))?;
        if done {
            self.pending.clear();
        }
        Ok(done)
    }

    /// Marks this place in the order of the stream.
    ///
    /// Errors: the event is of another device (E0814).
    pub fn record(&self, event: &Event) -> Result<(), GpuError> {
        self.context.same(event.context(), "the event")?;
        self.enqueue(|driver, handle| driver.record_event(event.handle(), handle))
    }

    /// Work given to this stream from now on waits for an event, on any stream of this device or of
    /// another.
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
        // So that a failure is known as that of one of these launches.
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
