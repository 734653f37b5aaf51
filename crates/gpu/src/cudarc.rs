//! Memory and streams of the crate `cudarc`, without copying.
//!
//! Law: a slice of cudarc is memory of its elements for launches on a stream of cudarc, in the
//! primary context of the device. Before the launches, the stream waits for the work that cudarc
//! knows to use the slice. When the call returns, cudarc knows that the launches use it. So the
//! slice may be read, written or dropped at once, as after a launch of cudarc's own.
//!
//! *Invariant:* the address of a slice is used only inside `CudarcStream::on_slices`, which holds
//! the borrows of the slices and the guards of cudarc until the launches are enqueued. The guards
//! never leave that function, so nobody can leak them. If cudarc records no events, a slice is
//! accepted only on its own stream, whose order is sufficient.
//!
//! Reason for unsafe code: a stream handle is a number. It belongs to the stream that the
//! [`CudarcStream`] holds.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DriverError, SyncOnDrop,
};
use smallvec::SmallVec;

use crate::device::Device;
use crate::device_kernel::SizedKernel;
use crate::device_sequence::SizedSequence;
use crate::driver::StreamHandle;
use crate::element::{Element, ElementType};
use crate::error::GpuError;
use crate::parameter::{Argument, Place};
use crate::stream::Stream;

impl Device {
    /// The device of a context of cudarc, which is its primary context.
    ///
    /// ```no_run
    /// use cudarc::driver::CudaContext;
    /// use tilewright_gpu::Device;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = CudaContext::new(0)?;
    /// let device = Device::of_cudarc(&context)?;
    /// assert_eq!(device.ordinal(), context.ordinal());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Device::open`]; the context is not the primary one (E0822).
    pub fn of_cudarc(context: &CudaContext) -> Result<Device, GpuError> {
        let device = Device::open(context.ordinal())?;
        is_of(&device, context, "the context")?;
        Ok(device)
    }

    /// A cudarc error as an error of this crate.
    fn refused_by_cudarc(&self, call: &'static str, error: DriverError) -> GpuError {
        GpuError::Driver { call, status: self.context().driver().status(error.0 as i32) }
    }
}

/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// Refuses an object that does not belong to the primary context of the device.
fn is_of(device: &Device, context: &CudaContext, what: &str) -> Result<(), GpuError> {
    if device.context().is_handle(context.cu_ctx() as usize) {
        return Ok(());
    }
    let (found, wanted) = (context.ordinal(), device.ordinal());
    if found == wanted {
        return Err(GpuError::OtherContext { what: what.into(), device: wanted });
    }
    Err(GpuError::OtherDevice { what: what.into(), found, wanted })
}

/// A stream of cudarc, on which kernels are launched.
///
/// ```no_run
/// use cudarc::driver::CudaContext;
/// use tilewright_gpu::cudarc::CudarcStream;
/// use tilewright_gpu::{Device, ModuleOptions};
/// use tilewright_tile::{Program, Sequence};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let twice: Program = "
/// tile twice {
///     input  x: f32 N:1
///     output y: f32 N:1
///     grid ceil(N/256)
///     a = load(x, (256), (block.x))
///     store(y, (block.x), a + a)
/// }"
/// .parse()?;
/// let context = CudaContext::new(0)?;
/// let (device, stream) = (Device::of_cudarc(&context)?, context.default_stream());
/// let twice = device.compile_sequence(&Sequence::new(vec![twice]), &ModuleOptions::default())?;
///
/// let x = stream.clone_htod(&vec![1.5_f32; 1000])?;
/// let mut y = stream.alloc_zeros::<f32>(1000)?;
/// let mut sized = twice.at(&[("N", 1000)])?;
/// CudarcStream::new(&device, &stream)?
///     .launch_sequence(&mut sized, &mut [("x", (&x).into()), ("y", (&mut y).into())])?;
/// assert_eq!(stream.clone_dtoh(&y)?, vec![3.0; 1000]);
/// # Ok(())
/// # }
/// ```
pub struct CudarcStream {
    device: Device,
    /// Dropped before the stream whose handle it has.
    stream: Stream,
    of: Arc<CudaStream>,
}

impl CudarcStream {
    /// A stream of cudarc. The result keeps it alive.
    ///
    /// Errors: the stream is of another device (E0814), or of another context than the primary one
    /// (E0822).
    pub fn new(device: &Device, stream: &Arc<CudaStream>) -> Result<CudarcStream, GpuError> {
        is_of(device, stream.context(), "the stream")?;
        // SAFETY: the handle belongs to a stream of the primary context of this device, as was
        // checked, and the result holds that stream.
        let handle = unsafe { StreamHandle::foreign(stream.cu_stream() as usize) };
        let borrowed = Stream::of_handle(device.context(), handle);
        Ok(CudarcStream { device: device.clone(), stream: borrowed, of: stream.clone() })
    }

    /// The stream, for launches on memory that is not cudarc's, and for events.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream of cudarc.
    pub fn cudarc(&self) -> &Arc<CudaStream> {
        &self.of
    }

    /// Launches a sequence of programs on tensors by their names.
    ///
    /// Errors: as [`SizedSequence::launch`]; a slice is of another device (E0814) or context
    /// (E0822); a slice is of another stream, and cudarc does not order streams (E0823); cudarc
    /// refused (E0819).
    pub fn launch_sequence(
        &self,
        sequence: &mut SizedSequence,
        tensors: &mut [(&str, CudarcArgument<'_>)],
    ) -> Result<(), GpuError> {
        let (names, arguments): (SmallVec<[&str; 16]>, SmallVec<[&mut CudarcArgument<'_>; 16]>) =
            tensors.iter_mut().map(|(name, argument)| (*name, argument)).unzip();
        self.on_slices(arguments, |taken| {
            let named: SmallVec<[(&str, Argument<'_>); 16]> =
                names.iter().copied().zip(taken.iter().copied()).collect();
            sequence.launch(&self.stream, &named)
        })
    }

    /// Launches a kernel on its tensors, in the order in which it declares them.
    ///
    /// Errors: as [`SizedKernel::launch`], and as [`CudarcStream::launch_sequence`].
    pub fn launch(&self, kernel: &SizedKernel, tensors: &mut [CudarcArgument<'_>]) -> Result<(), GpuError> {
        self.on_slices(tensors.iter_mut().collect(), |taken| kernel.launch(&self.stream, taken))
    }

    /// Launches something on slices, while the guards of cudarc are alive.
    fn on_slices(
        &self,
        arguments: SmallVec<[&mut CudarcArgument<'_>; 16]>,
        launch: impl FnOnce(&[Argument<'_>]) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        for argument in &arguments {
            self.check(argument)?;
        }
        let (context, of) = (self.device.context(), self.of.context());
        let refused = |error| self.device.refused_by_cudarc("cuStreamWaitEvent", error);
        // An earlier error of cudarc is not an error of these launches.
        of.check_err().map_err(|error| self.device.refused_by_cudarc("an earlier call of cudarc", error))?;
        let mut guards: SmallVec<[SyncOnDrop<'_>; 16]> = SmallVec::new();
        let mut taken: SmallVec<[Argument<'_>; 16]> = SmallVec::new();
        for argument in arguments {
            let (part, writable) = match &mut argument.0 {
                CudarcKind::Own(own) => {
                    taken.push(*own);
                    continue;
                }
                CudarcKind::Read(slice) => (slice.taken(&self.of), false),
                CudarcKind::Write(slice) => (slice.taken_mut(&self.of), true),
            };
            let SlicePart { address, bytes, element, guard } = part;
            let (range, element) = ((address, bytes), Some(element));
            taken.push(Place { context, range, address, writable, element, layout: None }.into());
            guards.push(guard);
        }
        // cudarc stores the error of a wait until it is asked for it.
        of.check_err().map_err(refused)?;
        let launched = launch(&taken);
        // Dropping the guards makes cudarc record on the stream that the launches use the slices.
        drop(guards);
        launched?;
        of.check_err().map_err(|error| self.device.refused_by_cudarc("cuEventRecord", error))
    }

    /// Refuses a slice that belongs to another context, or whose uses would be unordered.
    fn check(&self, argument: &CudarcArgument<'_>) -> Result<(), GpuError> {
        let own = match &argument.0 {
            CudarcKind::Own(_) => return Ok(()),
            CudarcKind::Read(slice) => slice.own_stream(),
            CudarcKind::Write(slice) => slice.own_stream(),
        };
        is_of(&self.device, own.context(), "a slice")?;
        // The per-thread handle stands for a different stream in each thread.
        let is_own = own.cu_stream() == self.of.cu_stream() && own.cu_stream() as usize != PER_THREAD;
        // The context of the slice decides whether the slice is waited for; that of the stream
        // decides whether its use is recorded. They may be two objects for one context.
        let contexts = [own.context(), self.of.context()];
        if is_own || contexts.iter().all(|context| context.is_managing_stream_synchronization()) {
            return Ok(());
        }
        let because = "it belongs to another stream than the launch, and cudarc keeps no events between streams";
        Err(GpuError::Unordered { what: "a slice of cudarc".into(), because: because.into() })
    }
}

impl fmt::Debug for CudarcStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudarcStream(device {})", self.device.ordinal())
    }
}

/// The memory of a slice, and the guard by which cudarc learns of its use.
struct SlicePart<'s> {
    address: u64,
    bytes: u64,
    element: ElementType,
    guard: SyncOnDrop<'s>,
}

impl<'s> SlicePart<'s> {
    /// The memory of this many elements from an address on.
    fn of<T: Element>(elements: usize, (address, guard): (u64, SyncOnDrop<'s>)) -> SlicePart<'s> {
        // A slice has at most as many bytes as its allocation, so the number fits in 64 bits.
        let bytes = (elements as u64).saturating_mul(size_of::<T>() as u64);
        SlicePart { address, bytes, element: T::TYPE, guard }
    }
}

/// A slice that kernels may read.
trait ReadSlice {
    fn own_stream(&self) -> &Arc<CudaStream>;
    fn taken<'s>(&'s self, stream: &'s CudaStream) -> SlicePart<'s>;
}

/// A slice that kernels may write.
trait WriteSlice {
    fn own_stream(&self) -> &Arc<CudaStream>;
    fn taken_mut<'s>(&'s mut self, stream: &'s CudaStream) -> SlicePart<'s>;
}

macro_rules! slices {
    ($($method:ident of $own:ident by $pointer:ident, $($kind:ty),+;)+) => {$($(
        impl<T: Element> $own for $kind {
            fn own_stream(&self) -> &Arc<CudaStream> {
                ::cudarc::driver::DeviceSlice::stream(self)
            }

            slices!(@ $method $pointer);
        }
    )+)+};
    (@ taken $pointer:ident) => {
        fn taken<'s>(&'s self, stream: &'s CudaStream) -> SlicePart<'s> {
            SlicePart::of::<T>(self.len(), self.$pointer(stream))
        }
    };
    (@ taken_mut $pointer:ident) => {
        fn taken_mut<'s>(&'s mut self, stream: &'s CudaStream) -> SlicePart<'s> {
            SlicePart::of::<T>(self.len(), self.$pointer(stream))
        }
    };
}

slices! {
    taken of ReadSlice by device_ptr, CudaSlice<T>, CudaView<'_, T>, CudaViewMut<'_, T>;
    taken_mut of WriteSlice by device_ptr_mut, CudaSlice<T>, CudaViewMut<'_, T>;
}

/// An argument of a launch on a stream of cudarc.
///
/// Made by `From`: of `&CudaSlice`, `&CudaView` and `&CudaViewMut` for memory that is read, of
/// `&mut CudaSlice` and `&mut CudaViewMut` for memory that is written, and of an [`Argument`] for
/// memory of this crate. Elements have the types of [`ElementType`], with `f16` and `bf16` of the
/// crate `half`. A slice has no layout: the kernel's layout applies to its elements.
pub struct CudarcArgument<'a>(CudarcKind<'a>);

enum CudarcKind<'a> {
    Read(&'a dyn ReadSlice),
    Write(&'a mut dyn WriteSlice),
    Own(Argument<'a>),
}

macro_rules! arguments {
    ($($kind:ident: $reference:ty;)+) => {$(
        impl<'a, T: Element> From<$reference> for CudarcArgument<'a> {
            fn from(slice: $reference) -> Self {
                CudarcArgument(CudarcKind::$kind(slice))
            }
        }
    )+};
}

arguments! {
    Read: &'a CudaSlice<T>;
    Read: &'a CudaView<'_, T>;
    Read: &'a CudaViewMut<'_, T>;
    Write: &'a mut CudaSlice<T>;
    Write: &'a mut CudaViewMut<'_, T>;
}

impl<'a> From<Argument<'a>> for CudarcArgument<'a> {
    fn from(argument: Argument<'a>) -> Self {
        CudarcArgument(CudarcKind::Own(argument))
    }
}

impl fmt::Debug for CudarcArgument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CudarcKind::Read(_) => f.write_str("a slice of cudarc that may only be read"),
            CudarcKind::Write(_) => f.write_str("a slice of cudarc that may be written"),
            CudarcKind::Own(own) => own.fmt(f),
        }
    }
}
