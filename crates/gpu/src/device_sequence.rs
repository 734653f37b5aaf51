//! Tile programs that run one after another on a device.
//!
//! Law: the device runs the programs of a [`Sequence`] in order, on tensors that the caller passes
//! by name. All arguments are checked before anything is launched, so a refusal leaves every tensor
//! unchanged. Two tensors may share memory only if no program writes either of them. Workspaces are
//! memory of the sequence: a launch on another stream than the last one waits for the last one, so
//! two launches never use the workspaces at once.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_kernel::interpret::SetupError;
use tilewright_kernel::{Element, LaunchArguments};
use tilewright_tile::{Sequence, SequenceKernels, SequenceTensor};

use crate::context::Context;
use crate::device::Device;
use crate::device_kernel::{DeviceKernel, SizedKernel};
use crate::driver::Order;
use crate::error::GpuError;
use crate::event::Event;
use crate::memory::Memory;
use crate::module::ModuleOptions;
use crate::parameter::{Argument, Parameter, Receiver, packed};
use crate::stream::Stream;

/// The kernels of a sequence, compiled for a device. [`Device::compile_sequence`] makes it.
///
/// ```
/// use tilewright_gpu::{Device, DeviceTensor, GpuError, ModuleOptions};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::Tensor;
/// use tilewright_tile::{Program, Sequence};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares: Program = "
/// tile squares {
///     input  x: f32 N:1
///     output square: f32 N:1
///     grid ceil(N/4)
///     a = load(x, (4), (block.x))
///     store(square, (block.x), a * a)
/// }"
/// .parse()?;
/// let total: Program = "
/// tile total {
///     input  square: f32 N:1
///     output sum: f32 (1):(1)
///     grid 1
///     store(sum, (0), reduce_sum(load(square, (8), (0)), 0))
/// }"
/// .parse()?;
/// let both = Sequence::new(vec![squares, total]);
///
/// let summed = || -> Result<Tensor<f32>, GpuError> {
///     let device = Device::open(0)?;
///     let stream = device.stream()?;
///     let both = device.compile_sequence(&both, &ModuleOptions::default())?;
///
///     let x = DeviceTensor::filled(&stream, "8:1".parse::<Layout>()?, 3.0_f32)?;
///     let mut sum = DeviceTensor::filled(&stream, "(1):(1)".parse::<Layout>()?, 0.0_f32)?;
///     let mut sized = both.at(&[("N", 8)])?;
///     sized.launch(&stream, &[("x", (&x).into()), ("sum", (&mut sum).into())])?;
///     sum.read(&stream)
/// };
/// match summed() {
///     Ok(sum) => assert_eq!(sum.as_slice(), [72.0]),
///     // On a machine without a device.
///     Err(error) => assert!(["E0801", "E0802", "E0803"].contains(&error.code()), "{error}"),
/// }
/// # Ok(())
/// # }
/// ```
pub struct DeviceSequence {
    context: Arc<Context>,
    kernels: Vec<DeviceKernel>,
    plan: Arc<SequenceKernels>,
    name: Arc<str>,
}

impl Device {
    /// Compiles the programs of a sequence for this device.
    ///
    /// Errors: a program does not compile, as [`tilewright_tile::Program::compile`]; two programs
    /// have tensors of one name and different types (E1214); as [`Device::compile`].
    pub fn compile_sequence(&self, sequence: &Sequence, options: &ModuleOptions) -> Result<DeviceSequence, GpuError> {
        self.compile_kernels(sequence.compile(&self.machine()?)?, options)
    }

    /// Compiles kernels that run one after another on this device; see
    /// [`Device::compile_sequence`].
    ///
    /// Errors: as [`Device::compile`].
    pub fn compile_kernels(&self, plan: SequenceKernels, options: &ModuleOptions) -> Result<DeviceSequence, GpuError> {
        let kernels = plan.kernels().iter().map(|kernel| self.compile(kernel, options)).collect::<Result<_, _>>()?;
        let names: Vec<&str> = plan.kernels().iter().map(|kernel| kernel.name()).collect();
        let name = match names.as_slice() {
            [first, .., last] => format!("{first} .. {last}").into(),
            names => names.concat().into(),
        };
        Ok(DeviceSequence { context: self.context().clone(), kernels, plan: Arc::new(plan), name })
    }
}

impl DeviceSequence {
    /// The sequence at given sizes, each with its name, and with scalar arguments if it has any.
    /// The result can be launched many times. [`SizedSequence::set_number`] changes a scalar
    /// argument.
    ///
    /// Errors: a size is missing, given twice, used by no program, or not admitted by the facts of
    /// a program (E1002); a scalar argument is missing (E1003).
    pub fn at<'a>(&self, arguments: impl Into<LaunchArguments<'a>>) -> Result<SizedSequence, GpuError> {
        let LaunchArguments { sizes, numbers } = arguments.into();
        let at = self.plan.at(sizes)?;
        let sized = self.kernels.iter().zip(&at.sizes);
        let sized = sized.map(|(kernel, sizes)| kernel.at(LaunchArguments { sizes, numbers }));
        let parameter = |(place, tensor): (usize, &SequenceTensor)| {
            let element = tensor.element.into();
            let parameter = match tensor.purpose.is_written() {
                true => Parameter::write(&tensor.name, element),
                false => Parameter::read(&tensor.name, element),
            };
            parameter.aligned(self.plan.alignment(place)).at_least(at.bytes[place])
        };
        let spaces = at.workspaces.iter().zip(&at.bytes).map(|(first, bytes)| Some(((*first)?, *bytes)));
        Ok(SizedSequence {
            context: self.context.clone(),
            kernels: sized.collect::<Result<_, _>>()?,
            parameters: self.plan.tensors().iter().enumerate().map(parameter).collect(),
            spaces: spaces.collect(),
            workspace_bytes: at.workspace_bytes,
            plan: self.plan.clone(),
            name: self.name.clone(),
            room: None,
        })
    }

    /// The kernels, in the order in which they are launched.
    pub fn kernels(&self) -> &[DeviceKernel] {
        &self.kernels
    }

    /// The tensors: their names, types and layouts, and how the caller uses them.
    pub fn tensors(&self) -> &[SequenceTensor] {
        self.plan.tensors()
    }

    /// The names of the sizes.
    pub fn sizes(&self) -> Vec<&str> {
        self.plan.sizes()
    }

    /// The names and types of the scalar arguments.
    pub fn numbers(&self) -> &[(String, Element)] {
        self.plan.numbers()
    }
}

impl fmt::Debug for DeviceSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSequence({}, device {})", self.name, self.context.ordinal())
    }
}

/// A sequence on a device at given sizes, which is launched with its tensors alone.
/// [`DeviceSequence::at`] makes it.
pub struct SizedSequence {
    context: Arc<Context>,
    kernels: Vec<SizedKernel>,
    plan: Arc<SequenceKernels>,
    name: Arc<str>,
    /// The requirements on the memory of each tensor.
    parameters: Box<[Parameter]>,
    /// The offset and the number of bytes of each workspace; None for other tensors.
    spaces: Box<[Option<(u64, u64)>]>,
    workspace_bytes: u64,
    room: Option<Room>,
}

/// The memory of the workspaces.
struct Room {
    memory: Memory,
    /// Records when the last launch that uses the workspaces is done, and on which stream or
    /// capture it was.
    used: Event,
    on: Option<Order>,
}

/// The arguments for the tensors of the plan, or of one kernel, in order.
type Arguments<'a> = SmallVec<[Argument<'a>; 16]>;

impl SizedSequence {
    /// Launches the programs on a stream, one after another, and returns at once; later work on the
    /// stream waits for them. Each tensor is passed with its name, in any order: `&` for tensors
    /// that are read, `&mut` for tensors that are written. Workspaces may be omitted. The first
    /// launch that needs them allocates them ([`SizedSequence::reserve`] does so earlier), and
    /// later launches reuse them.
    ///
    /// Errors, before anything is launched: a tensor is missing, is passed twice, or is in no
    /// program (E1214); it has another type, or is only read where it is written (E0812); it has
    /// too few bytes or is misaligned (E0813), is of another device (E0814), has another layout
    /// than a program's (E0820), or shares memory with another tensor while one of both is written
    /// (E0815); there is too little memory for workspaces (E0805); the launch is captured into a
    /// graph and a workspace is not passed (E0823). Errors of a launch: as [`SizedKernel::launch`].
    pub fn launch(&mut self, stream: &Stream, tensors: &[(&str, Argument<'_>)]) -> Result<(), GpuError> {
        self.context.same(stream.context(), "the stream")?;
        let names: SmallVec<[&str; 16]> = tensors.iter().map(|(name, _)| *name).collect();
        let bound = self.plan.bind(&names)?;
        let needs_room = bound.iter().zip(&self.spaces).any(|(given, space)| given.is_none() && space.is_some());
        let order = if needs_room { Some(self.order_of(stream)?) } else { None };
        if needs_room {
            self.reserve()?;
        }
        let launched = self.given(stream, tensors, &bound, order)?;
        match (&mut self.room, order) {
            (Some(room), Some(order)) => {
                // This also applies if a later kernel was refused: the earlier ones use the
                // workspaces.
                let recorded = stream.record(&room.used);
                room.on = Some(order);
                if recorded.is_err() {
                    // Later launches cannot wait for this one, so they get other memory. The driver
                    // waits before it frees this memory.
                    self.room = None;
                }
                launched.and(recorded)
            }
            _ => launched,
        }
    }

    /// Checks the arguments, and launches the kernels. The inner result is that of the launches.
    ///
    /// Errors: the arguments are refused, and nothing was launched.
    fn given(
        &self,
        stream: &Stream,
        tensors: &[(&str, Argument<'_>)],
        bound: &[Option<usize>],
        order: Option<Order>,
    ) -> Result<Result<(), GpuError>, GpuError> {
        let taken = self.taken(tensors, bound)?;
        let receiver = Receiver { name: &self.name, context: &self.context, parameters: &self.parameters };
        packed(receiver, &taken)?;
        let own = |kernel: usize| -> Arguments<'_> {
            self.plan.places(kernel).iter().filter_map(|place| taken.get(*place).copied()).collect()
        };
        for (number, kernel) in self.kernels.iter().enumerate() {
            kernel.check_layouts(&own(number))?;
        }
        if let (Some(room), Some(order)) = (&self.room, order)
            && room.on.is_some_and(|last| last != order)
        {
            stream.wait(&room.used)?;
        }
        let mut kernels = self.kernels.iter().enumerate();
        Ok(kernels.try_for_each(|(number, kernel)| kernel.give(stream, &own(number))))
    }

    /// The order to which a launch on a stream belongs.
    ///
    /// Errors: the launch is captured into a graph, which may be replayed concurrently with any
    /// other launch (E0823).
    fn order_of(&self, stream: &Stream) -> Result<Order, GpuError> {
        match self.context.call(|driver| driver.order_of(stream.handle()))? {
            Order::Recording { .. } => {
                let spaces = self.plan.tensors().iter().zip(&self.spaces).filter(|(_, space)| space.is_some());
                let names: Vec<String> = spaces.map(|(tensor, _)| format!("`{}`", tensor.name)).collect();
                let what = format!("the workspaces of {}, {}", self.name, names.join(", ")).into();
                let because = "the launch is recorded into a graph, which may be replayed beside other launches";
                Err(GpuError::Unordered { what, because: because.into() })
            }
            order => Ok(order),
        }
    }

    /// The arguments for the tensors of the plan, in order.
    fn taken<'a>(&'a self, given: &[(&str, Argument<'a>)], bound: &[Option<usize>]) -> Result<Arguments<'a>, GpuError> {
        let place = |(at, space): (&Option<usize>, &Option<(u64, u64)>)| match (at, space, &self.room) {
            (Some(at), ..) => Ok(given[*at].1),
            (None, Some((first, bytes)), Some(room)) => Ok(room.memory.inside(*first, *bytes, true)?.into()),
            // A tensor that is not passed is a workspace. Its memory has been allocated.
            (None, ..) => Err(GpuError::OutOfMemory { bytes: self.workspace_bytes, left: None }),
        };
        bound.iter().zip(&self.spaces).map(place).collect()
    }

    /// Allocates the workspaces, if that has not been done, so that no later launch allocates.
    ///
    /// Errors: too little memory is free (E0805).
    pub fn reserve(&mut self) -> Result<(), GpuError> {
        if self.room.is_none() && self.workspace_bytes > 0 {
            let memory = Memory::in_context(&self.context, self.workspace_bytes)?;
            let used = Event::new(&self.context, false)?;
            self.room = Some(Room { memory, used, on: None });
        }
        Ok(())
    }

    /// The number of bytes of all workspaces.
    pub fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes
    }

    /// Sets a scalar argument by its name, in all programs that have it. `bits` holds its bits, the
    /// lowest first.
    ///
    /// Errors: no program has a scalar argument with this name and type (E1003).
    pub fn set_number(&mut self, name: &str, element: Element, bits: u64) -> Result<(), GpuError> {
        let mut found = false;
        for kernel in &mut self.kernels {
            found |= kernel.set_number(name, element, bits).is_ok();
        }
        if found {
            return Ok(());
        }
        let what = format!("{} has no number `{name}` of type {element}", self.name);
        Err(SetupError::Argument { what }.into())
    }

    /// The kernels at these sizes, in launch order.
    pub fn kernels(&self) -> &[SizedKernel] {
        &self.kernels
    }
}

impl fmt::Debug for SizedSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SizedSequence({}, {} bytes of workspaces)", self.name, self.workspace_bytes)
    }
}
