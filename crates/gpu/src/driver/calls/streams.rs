//! Streams, events and graphs.

use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;
use std::thread::ThreadId;

use super::{Driver, Refused};
use crate::driver::table::{EventHandle, GraphHandle, ReplayHandle, StreamHandle};
use crate::status::code;

/// The captured graph, unless the capture was invalidated.
pub(crate) type Captured = Option<GraphHandle>;

/// The order to which a launch belongs: launches with the same order run one after another. They
/// are the launches of one stream, or of one capture on it. A graph may be replayed on any stream,
/// so its launches are unordered with all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// A stream, by a number that is unique as long as the program runs.
    Stream(u64),
    /// The launches that a thread captures on a stream, in the capture with this number.
    Recording { recording: u64, stream: StreamHandle, thread: ThreadId },
}

impl Driver {
    pub(crate) fn create_stream(&self, urgent: bool) -> Result<StreamHandle, Refused> {
        /// The stream does not synchronize with the null stream, which others may use.
        const NON_BLOCKING: c_uint = 1;
        /// Stream priorities. Lower numbers have higher priority; 0 is the default.
        const PRIORITIES: [c_int; 2] = [0, -1];
        let mut stream = StreamHandle(0);
        call!(self, create_stream(&raw mut stream, NON_BLOCKING, PRIORITIES[usize::from(urgent)]))?;
        Ok(stream)
    }

    pub(crate) fn destroy_stream(&self, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, destroy_stream(stream))
    }

    pub(crate) fn synchronize_stream(&self, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, synchronize_stream(stream))
    }

    pub(crate) fn query_stream(&self, stream: StreamHandle) -> Result<bool, Refused> {
        ready(call!(self, query_stream(stream)))
    }

    /// The order of launches on a stream.
    pub(crate) fn order_of(&self, stream: StreamHandle) -> Result<Order, Refused> {
        const RECORDS_NOTHING: c_int = 0;
        let (mut number, mut status, mut recording) = (0, 0, 0);
        call!(self, capture_of(stream, &raw mut status, &raw mut recording, null_mut(), null_mut(), null_mut()))?;
        if status != RECORDS_NOTHING {
            // A stream that is being captured has no number; and one handle stands for a different
            // stream in each thread.
            return Ok(Order::Recording { recording, stream, thread: std::thread::current().id() });
        }
        call!(self, stream_number(stream, &raw mut number))?;
        Ok(Order::Stream(number))
    }

    pub(crate) fn wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<(), Refused> {
        call!(self, wait_event(stream, event, 0))
    }

    pub(crate) fn begin_capture(&self, stream: StreamHandle) -> Result<(), Refused> {
        /// Other threads are not affected by the capture.
        const THREAD_LOCAL: c_int = 1;
        call!(self, begin_capture(stream, THREAD_LOCAL))
    }

    pub(crate) fn end_capture(&self, stream: StreamHandle) -> Result<Captured, Refused> {
        let mut graph = GraphHandle(0);
        call!(self, end_capture(stream, &raw mut graph))?;
        Ok((graph != GraphHandle(0)).then_some(graph))
    }

    pub(crate) fn create_event(&self, timed: bool) -> Result<EventHandle, Refused> {
        const WITHOUT_TIME: c_uint = 2;
        let mut event = EventHandle(0);
        call!(self, create_event(&raw mut event, if timed { 0 } else { WITHOUT_TIME }))?;
        Ok(event)
    }

    pub(crate) fn destroy_event(&self, event: EventHandle) -> Result<(), Refused> {
        call!(self, destroy_event(event))
    }

    pub(crate) fn record_event(&self, event: EventHandle, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, record_event(event, stream))
    }

    pub(crate) fn synchronize_event(&self, event: EventHandle) -> Result<(), Refused> {
        call!(self, synchronize_event(event))
    }

    pub(crate) fn query_event(&self, event: EventHandle) -> Result<bool, Refused> {
        ready(call!(self, query_event(event)))
    }

    /// Milliseconds between two events.
    pub(crate) fn elapsed(&self, first: EventHandle, last: EventHandle) -> Result<f32, Refused> {
        let mut milliseconds = 0.0;
        call!(self, elapsed(&raw mut milliseconds, first, last))?;
        Ok(milliseconds)
    }

    pub(crate) fn instantiate_graph(&self, graph: GraphHandle) -> Result<ReplayHandle, Refused> {
        let mut replay = ReplayHandle(0);
        call!(self, instantiate_graph(&raw mut replay, graph, 0))?;
        Ok(replay)
    }

    pub(crate) fn launch_graph(&self, replay: ReplayHandle, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, launch_graph(replay, stream))
    }

    pub(crate) fn destroy_replay(&self, replay: ReplayHandle) -> Result<(), Refused> {
        call!(self, destroy_replay(replay))
    }

    pub(crate) fn destroy_graph(&self, graph: GraphHandle) -> Result<(), Refused> {
        call!(self, destroy_graph(graph))
    }
}

/// Converts a refusal that only means that something is not done yet.
fn ready(answer: Result<(), Refused>) -> Result<bool, Refused> {
    match answer {
        Ok(()) => Ok(true),
        Err(Refused { code: code::NOT_READY, .. }) => Ok(false),
        Err(refused) => Err(refused),
    }
}
