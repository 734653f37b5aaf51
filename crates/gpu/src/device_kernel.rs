//! Kernels on a device.
//!
//! Law: the device runs the same program that was built and checked. Its PTX is written for the
//! device. A launch passes sizes that satisfy the facts of the kernel, and tensors with the types
//! and layouts of the kernel's tensors at these sizes, or memory of the same size. So everything
//! that was proved when the kernel was built holds on the device.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tilewright_kernel::interpret::SetupError;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::ptx::{self, Target};
use tilewright_kernel::{BoxMap, Element, Kernel, LaunchArguments, Program};
use tilewright_layout::AnyLayout;

use crate::device::Device;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::function::Function;
use crate::launch::{Launch, Resources};
use crate::module::{Module, ModuleOptions};
use crate::parameter::{Access, Argument, Parameter, Place};
use crate::stream::Stream;
use crate::tensor_map::{EncodedTensorMap, Outside, Promotion, Wanted};

/// A kernel that was compiled for a device.
///
/// ```
/// use tilewright_gpu::{Device, DeviceTensor, GpuError, ModuleOptions};
/// use tilewright_kernel::Kernel;
/// use tilewright_layout::Layout;
/// use tilewright_tensor::Tensor;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // y = 2 x for rows of four, one a thread.
/// let twice = Kernel::build("twice", |k| {
///     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
///     k.threads(128)?;
///     let rows = x.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
///     let doubled = rows.map(|x| Ok(x * 2.0))?;
///     y.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&doubled)
/// })?;
///
/// let doubled = || -> Result<Tensor<f32>, GpuError> {
///     let device = Device::open(0)?;
///     let stream = device.stream()?;
///     let twice = device.compile(&twice, &ModuleOptions::default())?;
///
///     let rows: Layout = "(1000,4):(4,1)".parse()?;
///     let x = DeviceTensor::filled(&stream, rows.clone(), 1.5_f32)?;
///     let mut y = DeviceTensor::filled(&stream, rows, 0.0_f32)?;
///     twice.at(&[("N", 1000)])?.launch(&stream, &[(&x).into(), (&mut y).into()])?;
///     y.read(&stream)
/// };
/// match doubled() {
///     Ok(y) => assert!(y.as_slice().iter().all(|y| *y == 3.0)),
///     // On a machine without a device.
///     Err(error) => assert!(["E0801", "E0802", "E0803"].contains(&error.code()), "{error}"),
/// }
/// # Ok(())
/// # }
/// ```
pub struct DeviceKernel {
    module: Module,
    program: Program,
    target: Target,
}

impl Device {
    /// Writes a kernel as PTX for this device, and compiles it.
    ///
    /// Errors: the device is older than any target (E0804); the kernel has an instruction that the
    /// device lacks (E0921); as [`Device::load`].
    pub fn compile(&self, kernel: &Kernel, options: &ModuleOptions) -> Result<DeviceKernel, GpuError> {
        let text = ptx::write(kernel.program(), self.target()?)?;
        self.compile_text(kernel.program(), &text, options)
    }

    /// Writes a kernel as PTX for a target, which may be earlier than that of this device, and
    /// compiles it.
    ///
    /// Errors: the PTX does not run on this device (E0804); the kernel has an instruction that the
    /// target lacks (E0921); as [`Device::load`].
    pub fn compile_for(
        &self,
        kernel: &Kernel,
        target: Target,
        options: &ModuleOptions,
    ) -> Result<DeviceKernel, GpuError> {
        let (program, text) = (kernel.program().clone(), ptx::write(kernel.program(), target)?);
        Ok(DeviceKernel { module: self.load(text.as_bytes(), options)?, program, target })
    }

    /// Compiles the PTX of a program: as [`ptx::write`] writes it, or edited by hand. Its entry has
    /// the name and the parameters of the program. Nothing is proved about edited PTX.
    ///
    /// Errors: the device is older than any target (E0804); as [`Device::load`].
    pub fn compile_text(
        &self,
        program: &Program,
        text: &str,
        options: &ModuleOptions,
    ) -> Result<DeviceKernel, GpuError> {
        let (program, target) = (program.clone(), self.target()?);
        Ok(DeviceKernel { module: self.load(text.as_bytes(), options)?, program, target })
    }

    /// The target for which kernels are compiled here: the latest that runs on this device.
    ///
    /// Errors: no target is as old as the device (E0804).
    pub fn target(&self) -> Result<Target, GpuError> {
        let own = self.capability();
        Target::latest(own).ok_or_else(|| GpuError::Architecture {
            target: Some(Target::Sm80.name().into()),
            device: self.name().into(),
            capability: own,
        })
    }
}

impl DeviceKernel {
    /// The kernel at given sizes, each with its name, and with scalar arguments if it has any. The
    /// result can be launched many times. [`SizedKernel::set_number`] changes a scalar argument.
    ///
    /// Errors: a size is missing, unknown or not admitted by the facts of the kernel (E1002); a
    /// scalar argument is missing (E1003); a tensor has more bytes than fit in 64 bits.
    pub fn at<'a>(&self, arguments: impl Into<LaunchArguments<'a>>) -> Result<SizedKernel, GpuError> {
        let (program, arguments) = (&self.program, arguments.into());
        let launch = program.launch(arguments)?;
        let function = self.module.function(&program.name, &parameters(program, &launch.bytes))?;
        let alone = Launch::new(launch.grid, [program.threads, 1, 1]).shared_bytes(program.shared_bytes);
        let scalars = program.scalars.iter().map(passed).zip(launch.scalars.iter().copied());
        let numbers = program.scalars.iter().enumerate().filter_map(|(at, scalar)| match scalar {
            Scalar::Given { name, element } => Some((name.as_str().into(), *element, at)),
            _ => None,
        });
        Ok(SizedKernel {
            encoded: Mutex::new(launch.maps.iter().map(|_| None).collect()),
            count: program.scalars.iter().position(|scalar| *scalar == Scalar::Count),
            numbers: numbers.collect(),
            function,
            launch: if program.waits_for_launches() { alone.overlapping() } else { alone },
            scalars: scalars.collect(),
            layouts: program.layouts(arguments.sizes)?,
            maps: launch
                .maps
                .into_iter()
                .zip(&program.maps)
                .map(|(map, of)| (map, program.buffer(of.buffer).element.into()))
                .collect(),
        })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The target of the PTX.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The module, and what the compiler noted.
    pub fn module(&self) -> &Module {
        &self.module
    }
}

impl fmt::Debug for DeviceKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKernel({}, {:?})", self.program.name, self.module)
    }
}

/// A kernel on a device at given sizes, which is launched with its tensors alone.
/// [`DeviceKernel::at`] makes it.
pub struct SizedKernel {
    function: Function,
    launch: Launch,
    /// The scalar parameters, each with the type in which it is passed and its bits.
    scalars: SmallVec<[(ElementType, u64); 8]>,
    /// The index of the parameter for the counter of the launch; None if the kernel needs no
    /// counter.
    count: Option<usize>,
    /// The scalar arguments that the caller sets: name, type, and index among the parameters.
    numbers: Box<[(Box<str>, Element, usize)]>,
    /// The layouts of the tensors at these sizes.
    layouts: Vec<AnyLayout>,
    maps: Box<[(BoxMap, ElementType)]>,
    /// The tensor maps of the last launch, because the next launch often uses the same memory.
    encoded: Mutex<Box<[Option<Encoded>]>>,
}

/// An encoded tensor map of memory from an address on.
struct Encoded {
    address: u64,
    map: EncodedTensorMap<'static>,
}

impl Encoded {
    /// Whether this map is for the same memory. Everything else follows from the kernel.
    fn is_of(&self, place: &Place<'_>) -> bool {
        let map = self.map.mapped();
        (self.address, map.range, map.writable) == (place.address, place.range, place.writable)
            && Arc::ptr_eq(map.context, place.context)
    }
}

impl SizedKernel {
    /// Launches the kernel on a stream, and returns at once; later work on the stream waits for it.
    /// A kernel that executes `griddepcontrol.wait` may start before earlier launches have
    /// finished. The arguments are the tensors of the kernel, in the order in which it declares
    /// them, or their memory.
    ///
    /// Errors: a tensor has another layout than the kernel's (E0820); as [`Function::launch`]:
    /// another number or type of tensors (E0812), too few bytes or misaligned memory (E0813),
    /// memory of another device (E0814), an output that shares memory with another tensor (E0815);
    /// invalid sizes (E0816); the driver refused (E0807).
    pub fn launch(&self, stream: &Stream, tensors: &[Argument<'_>]) -> Result<(), GpuError> {
        self.check_layouts(tensors)?;
        self.give(stream, tensors)
    }

    /// Refuses tensors with other layouts than the kernel's.
    pub(crate) fn check_layouts(&self, tensors: &[Argument<'_>]) -> Result<(), GpuError> {
        for (number, (tensor, wanted)) in tensors.iter().zip(&self.layouts).enumerate() {
            let Some(layout) = tensor.layout() else { continue };
            if !layout.is_same(wanted)? {
                return Err(GpuError::Layout {
                    kernel: self.function.name().into(),
                    parameter: self.function.parameters()[number].name().into(),
                    wanted: wanted.to_string().into(),
                    found: layout.text().into(),
                });
            }
        }
        Ok(())
    }

    /// Launches the kernel on tensors whose layouts were checked.
    pub(crate) fn give(&self, stream: &Stream, tensors: &[Argument<'_>]) -> Result<(), GpuError> {
        // A missing tensor, or an argument that is no memory, is refused together with the other
        // arguments.
        let memory = |map: &BoxMap| tensors.get(map.tensor).and_then(Argument::memory);
        let mut maps: SmallVec<[EncodedTensorMap<'_>; 4]> = SmallVec::new();
        let mut encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        for ((map, element), last) in self.maps.iter().zip(encoded.iter_mut()) {
            let Some(place) = memory(map) else { continue };
            let known = match last.take().filter(|known| known.is_of(place)) {
                Some(known) => known.map,
                None => {
                    let wanted = Wanted {
                        element: *element,
                        address: place.address,
                        dimensions: &map.dimensions,
                        swizzle: map.swizzle,
                        promotion: promotion(map),
                        outside: Outside::Zeros,
                    };
                    EncodedTensorMap::in_memory(place.context, place.range, &wanted, place.writable)?
                }
            };
            maps.push(known.again());
            *last = Some(Encoded { address: place.address, map: known });
        }
        drop(encoded);
        let count = self.count.map(|at| Ok::<_, GpuError>((at, self.function.count_on(stream)?))).transpose()?;
        let numbers = self.scalars.iter().enumerate().map(|(place, (element, value))| match count {
            Some((at, count)) if at == place => count.into(),
            _ => number(*element, *value),
        });
        let arguments: SmallVec<[Argument<'_>; 16]> =
            tensors.iter().copied().chain(numbers).chain(maps.iter().map(Argument::from)).collect();
        self.function.launch(stream, &self.launch, &arguments)
    }

    /// Sets a scalar argument by its name. `bits` holds its bits, the lowest first.
    ///
    /// Errors: the kernel has no scalar argument with this name and type (E1003).
    pub fn set_number(&mut self, name: &str, element: Element, bits: u64) -> Result<(), GpuError> {
        let known = self.numbers.iter().find(|(own, of, _)| **own == *name && *of == element);
        let Some((_, _, at)) = known else {
            let what = format!("the kernel has no number `{name}` of type {element}");
            return Err(SetupError::Argument { what }.into());
        };
        if let Some((_, value)) = self.scalars.get_mut(*at) {
            *value = bits;
        }
        Ok(())
    }

    /// The grid, the block and the shared memory of the launch.
    pub fn sizes(&self) -> &Launch {
        &self.launch
    }

    /// The resources of the kernel, as the compiler reports them.
    pub fn resources(&self) -> &Resources {
        self.function.resources()
    }

    /// The number of blocks that are resident on a multiprocessor at once.
    ///
    /// Errors: invalid sizes (E0816).
    pub fn resident_blocks(&self) -> Result<u32, GpuError> {
        self.function.resident_blocks(&self.launch)
    }
}

impl fmt::Debug for SizedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SizedKernel({}, {:?})", self.function.name(), self.launch)
    }
}

/// The driver treats floating-point numbers of 8 bits as bytes.
impl From<Element> for ElementType {
    fn from(element: Element) -> ElementType {
        match element {
            Element::U8 | Element::E4M3 | Element::E5M2 => ElementType::U8,
            Element::I8 => ElementType::S8,
            Element::U16 => ElementType::U16,
            Element::I16 => ElementType::S16,
            Element::U32 => ElementType::U32,
            Element::I32 => ElementType::S32,
            Element::U64 => ElementType::U64,
            Element::I64 => ElementType::S64,
            Element::F16 => ElementType::F16,
            Element::Bf16 => ElementType::BF16,
            Element::F32 => ElementType::F32,
            Element::F64 => ElementType::F64,
        }
    }
}

/// The L2 promotion of a tensor map: two cache lines if rows start at cache lines; otherwise one,
/// because the second would often not be used.
fn promotion(map: &BoxMap) -> Promotion {
    let aligned = map.dimensions.iter().skip(1).all(|dimension| dimension.stride % 256 == 0);
    if aligned { Promotion::Bytes256 } else { Promotion::Bytes128 }
}

/// The type in which a scalar argument is passed.
fn passed(scalar: &Scalar) -> ElementType {
    match scalar.bits() {
        64 => ElementType::U64,
        32 => ElementType::U32,
        _ => ElementType::U16,
    }
}

/// A number as a launch argument: its lowest bits.
fn number(element: ElementType, value: u64) -> Argument<'static> {
    match element {
        ElementType::U64 => value.into(),
        ElementType::U32 => (value as u32).into(),
        _ => (value as u16).into(),
    }
}

/// The PTX parameters of a program: its tensors with these numbers of bytes, its scalar arguments,
/// and its tensor maps, which use the memory of the tensors.
fn parameters(program: &Program, bytes: &[u64]) -> Vec<Parameter> {
    let tensors = program.tensors().zip(bytes).map(|(buffer, bytes)| {
        let element = buffer.element.into();
        let parameter = match buffer.role {
            Role::Input => Parameter::read(&buffer.name, element),
            Role::Output | Role::Both => Parameter::write(&buffer.name, element),
        };
        parameter.aligned(buffer.alignment.into()).at_least(*bytes)
    });
    let numbers = program.scalars.iter().enumerate();
    let numbers = numbers.map(|(at, scalar)| Parameter::scalar(&format!("scalar{at}"), passed(scalar)));
    let count = program.tensors().count();
    let maps = program.maps.iter().enumerate().map(|(at, map)| {
        let access = match program.buffer(map.buffer).role {
            Role::Input => Access::Read,
            Role::Output | Role::Both => Access::Write,
        };
        Parameter::tensor_map(&format!("map{at}"), access).memory_of(map.buffer.index())
    });
    debug_assert!(program.maps.iter().all(|map| map.buffer.index() < count));
    tensors.chain(numbers).chain(maps).collect()
}
