//! Graphs: launches that are captured once and replayed.
//!
//! Law: replaying a graph does the same as its launches, one after another, on the stream. The
//! graph holds the kernels, and borrows the memory of the arguments as long as it lives.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::{GraphHandle, ReplayHandle};
use crate::error::GpuError;
use crate::function::Function;
use crate::launch::Launch;
use crate::parameter::Argument;
use crate::stream::Stream;

/// Captures launches into a graph.
pub struct Capture<'s, 'a> {
    stream: &'s Stream,
    launches: RefCell<Vec<(Arc<str>, Launch)>>,
    /// Arguments must have exactly this lifetime.
    arguments: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a> Capture<'_, 'a> {
    /// Captures a launch. Several launches may use the same arguments.
    ///
    /// Errors: as [`Function::launch`].
    pub fn launch(&self, function: &Function, launch: &Launch, arguments: &[Argument<'a>]) -> Result<(), GpuError> {
        function.kernel().enqueue(self.stream, launch, arguments)?;
        self.launches.borrow_mut().push((function.kernel().name_held().clone(), *launch));
        Ok(())
    }
}

/// A capture in progress. It is discarded if it is not ended.
struct Begun<'s> {
    stream: &'s Stream,
    open: bool,
}

impl Begun<'_> {
    fn end(&mut self) -> Result<Option<Recorded>, GpuError> {
        self.open = false;
        let context = self.stream.context();
        let graph = context.call(|driver| driver.end_capture(self.stream.handle()))?;
        Ok(graph.map(|handle| Recorded { context: context.clone(), handle }))
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.open {
            // Discards the captured work.
            let _ = self.end();
        }
    }
}

/// The launches of a captured graph.
struct Recorded {
    context: Arc<Context>,
    handle: GraphHandle,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.context.give_back(|driver| driver.destroy_graph(self.handle));
    }
}

/// A graph of launches that can be replayed.
///
/// ```no_run
/// use tilewright_gpu::{Argument, Device, Function, Graph, Launch, Memory, Stream};
///
/// # fn replay(step: &Function, stream: &Stream, x: &mut Memory) -> Result<(), tilewright_gpu::GpuError> {
/// let argument = [Argument::from(x)];
/// let graph = Graph::capture(stream, |capture| {
///     (0..10).try_for_each(|_| capture.launch(step, &Launch::new([64, 1, 1], [256, 1, 1]), &argument))
/// })?;
/// graph.launch(stream)?;
/// stream.synchronize()
/// # }
/// ```
pub struct Graph<'a> {
    context: Arc<Context>,
    handle: ReplayHandle,
    launches: Vec<(Arc<str>, Launch)>,
    arguments: PhantomData<&'a ()>,
}

impl<'a> Graph<'a> {
    /// Captures launches without running them.
    ///
    /// Errors: those of the launches; the driver refused an operation that cannot be captured
    /// (E0819).
    pub fn capture(
        stream: &Stream,
        work: impl FnOnce(&Capture<'_, 'a>) -> Result<(), GpuError>,
    ) -> Result<Graph<'a>, GpuError> {
        stream.enqueue(|driver, handle| driver.begin_capture(handle))?;
        let mut begun = Begun { stream, open: true };
        let capture = Capture { stream, launches: RefCell::default(), arguments: PhantomData };
        let worked = work(&capture);
        let recorded = begun.end();
        worked?;
        let context = stream.context();
        let broken_off = || GpuError::LaunchFailed {
            refused: Some("a graph".into()),
            unfinished: Default::default(),
            status: context.driver().status(INVALIDATED),
        };
        let recorded = recorded?.ok_or_else(broken_off)?;
        let handle = context.call(|driver| driver.instantiate_graph(recorded.handle))?;
        let launches = capture.launches.into_inner();
        Ok(Graph { context: context.clone(), handle, launches, arguments: PhantomData })
    }

    /// The number of launches.
    pub fn len(&self) -> usize {
        self.launches.len()
    }

    /// Whether it has no launches.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    /// Replays the launches on a stream, and returns at once.
    ///
    /// Errors: the stream is of another device (E0814); the driver refused (E0819).
    pub fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        self.context.same(stream.context(), "the stream")?;
        stream.enqueue(|driver, handle| driver.launch_graph(self.handle, handle))?;
        stream.pending().note_all(&self.launches);
        Ok(())
    }
}

/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
const INVALIDATED: i32 = 901;

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        self.context.give_back(|driver| {
            // A replay may still run, and its memory is about to be freed.
            let _ = driver.synchronize_context();
            driver.destroy_replay(self.handle)
        });
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} launches)", self.len())
    }
}
