//! Events: positions in the order of a stream.
//!
//! Law: an event marks the position in a stream at which it was last recorded. It is complete when
//! all work before that position is done.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::EventHandle;
use crate::error::GpuError;

/// An event. See [`Stream`](crate::Stream) for how time is measured.
pub struct Event {
    context: Arc<Context>,
    handle: EventHandle,
}

impl Event {
    pub(crate) fn new(context: &Arc<Context>, timed: bool) -> Result<Event, GpuError> {
        let context = context.clone();
        let handle = context.call(|driver| driver.create_event(timed))?;
        Ok(Event { context, handle })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn handle(&self) -> EventHandle {
        self.handle
    }

    /// Waits until the event is complete. Returns at once if it was never recorded.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.context.call(|driver| driver.synchronize_event(self.handle))
    }

    /// Whether the event is complete.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.context.call(|driver| driver.query_event(self.handle))
    }

    /// The seconds of device time since another event, to about half a microsecond. Waits for both
    /// events.
    ///
    /// Errors: the other event is of another device (E0814); one of them was never recorded
    /// (E0819), or records no time (E0807).
    pub fn seconds_since(&self, first: &Event) -> Result<f64, GpuError> {
        self.context.same(first.context(), "the event")?;
        first.synchronize()?;
        self.synchronize()?;
        let milliseconds = self.context.call(|driver| driver.elapsed(first.handle, self.handle))?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.context.give_back(|driver| driver.destroy_event(self.handle));
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event(device {})", self.context.ordinal())
    }
}
