//! Kernels of a module, and their launches.
//!
//! Law: a [`Function`] is a kernel with its list of parameters, whose number and sizes agree with
//! the driver. Before the driver is called, a launch is checked against the list and against the
//! limits of the device. A launch allocates no host memory.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::context::Context;
use crate::driver::{Driver, EntryPoint, Refused};
use crate::error::{GpuError, SizeFlaw};
use crate::launch::{Launch, Resources, is_large};
use crate::module::{LoadedModule, Module};
use crate::parameter::{Argument, Parameter, Receiver, packed};
use crate::status::code;
use crate::stream::Stream;

use tilewright_kernel::program::scalar::COUNTS;

/// Numbers of `CUfunction_attribute`.
mod attribute {
    pub(super) const BLOCK_THREADS: i32 = 0;
    pub(super) const SHARED: i32 = 1;
    pub(super) const CONSTANT: i32 = 2;
    pub(super) const LOCAL: i32 = 3;
    pub(super) const REGISTERS: i32 = 4;
    pub(super) const BINARY_VERSION: i32 = 6;
    pub(super) const DYNAMIC_SHARED: i32 = 8;
    pub(super) const CLUSTER: [i32; 3] = [11, 12, 13];
    pub(super) const LARGE_CLUSTER: i32 = 14;
}

/// A kernel of a module.
pub(crate) struct Kernel {
    loaded: Arc<LoadedModule>,
    name: Arc<str>,
    entry: EntryPoint,
    parameters: Box<[Parameter]>,
    resources: Resources,
    /// The most bytes of shared memory that have been enabled for launches so far.
    shared_bytes: AtomicU32,
    /// Whether clusters of more than eight blocks have been enabled so far.
    large_clusters: AtomicBool,
}

impl Kernel {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name, shared without a copy.
    pub(crate) fn name_held(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        self.loaded.context()
    }

    /// Enables what a launch needs beyond the default limits of a kernel.
    fn allow(&self, launch: &Launch) -> Result<(), GpuError> {
        let wanted = launch.sizes().shared_bytes;
        if wanted > self.shared_bytes.load(Ordering::Relaxed) {
            // At most the limit of the device, as was checked before.
            let bytes = i32::try_from(wanted).unwrap_or(i32::MAX);
            self.context()
                .call(|driver| driver.set_function_attribute(&self.entry, attribute::DYNAMIC_SHARED, bytes))?;
            self.shared_bytes.fetch_max(wanted, Ordering::Relaxed);
        }
        let compiled = self.resources.cluster.is_some_and(is_large);
        if (launch.has_large_cluster() || compiled) && !self.large_clusters.load(Ordering::Relaxed) {
            self.context().call(|driver| driver.set_function_attribute(&self.entry, attribute::LARGE_CLUSTER, 1))?;
            self.large_clusters.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn check(&self, launch: &Launch) -> Result<(), GpuError> {
        launch.check(&self.name, self.context().attributes(), &self.resources)?;
        self.allow(launch)
    }

    /// Enqueues a launch on a stream.
    pub(crate) fn enqueue(&self, stream: &Stream, launch: &Launch, arguments: &[Argument<'_>]) -> Result<(), GpuError> {
        let context = self.context();
        context.same(stream.context(), "the stream")?;
        self.check(launch)?;
        let values = packed(Receiver { name: &self.name, context, parameters: &self.parameters }, arguments)?;
        match context.attempt(|driver| driver.launch(&self.entry, launch.sizes(), stream.handle(), &values))? {
            Some(Ok(())) => Ok(()),
            Some(Err(refused)) => Err(self.refused(launch, refused)),
            None => Err(self.other_parameters()),
        }
    }

    /// The error for a launch that the driver refused; or the loss of the device, if the driver
    /// reports that.
    fn refused(&self, launch: &Launch, refused: Refused) -> GpuError {
        match self.context().explain(refused) {
            GpuError::Driver { status, .. } => {
                let launch = format!("{}, {launch}", self.name).into();
                GpuError::LaunchFailed { refused: Some(launch), unfinished: Default::default(), status }
            }
            lost => lost,
        }
    }

    /// The error for a list of parameters that differs from the kernel's.
    fn other_parameters(&self) -> GpuError {
        let list = |sizes: &mut dyn Iterator<Item = usize>| {
            let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
            if sizes.is_empty() { "no parameters".into() } else { format!("parameters of {} bytes", sizes.join(", ")) }
        };
        GpuError::Arguments {
            kernel: self.name().into(),
            parameter: None,
            wanted: list(&mut self.entry.sizes().iter().copied()).into(),
            found: list(&mut self.parameters.iter().map(Parameter::bytes)).into(),
        }
    }
}

/// A kernel that can be launched. A clone is the same kernel.
///
/// ```no_run
/// use tilewright_gpu::{Device, ElementType, Launch, ModuleOptions, Parameter};
///
/// # fn main() -> Result<(), tilewright_gpu::GpuError> {
/// let text = r#"
///     .version 8.0
///     .target sm_80
///     .address_size 64
///     .visible .entry set(.param .u64 y, .param .u32 value) {
///         .reg .b64 %y; .reg .b32 %v;
///         ld.param.u64 %y, [y]; ld.param.u32 %v, [value];
///         cvta.to.global.u64 %y, %y;
///         st.global.u32 [%y], %v;
///         ret;
///     }"#;
/// let device = Device::open(0)?;
/// let module = device.load(text.as_bytes(), &ModuleOptions::default())?;
/// let value = Parameter::scalar("value", ElementType::U32);
/// let parameters = [Parameter::write("y", ElementType::U32).at_least(4), value];
/// let set = module.function("set", &parameters)?;
/// let (stream, mut y) = (device.stream()?, device.allocate(4)?);
/// set.launch(&stream, &Launch::new([1, 1, 1], [1, 1, 1]), &[(&mut y).into(), 7_u32.into()])?;
/// let mut bytes = [0; 4];
/// y.read(&stream, 0, &mut bytes)?;
/// assert_eq!(u32::from_le_bytes(bytes), 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Function {
    kernel: Arc<Kernel>,
}

impl Function {
    pub(crate) fn new(
        loaded: &Arc<LoadedModule>,
        name: &str,
        entry: EntryPoint,
        parameters: &[Parameter],
    ) -> Result<Function, GpuError> {
        let context = loaded.context();
        let clusters = context.attributes().cluster_launch != 0;
        let resources = context.call(|driver| resources(driver, &entry, clusters))?;
        let allowed = context.call(|driver| driver.function_attribute(&entry, attribute::DYNAMIC_SHARED))?;
        // More than 48 KiB, including the kernel's static shared memory, must be enabled.
        let usual = (48_u32 << 10).saturating_sub(resources.shared_bytes);
        let kernel = Kernel {
            loaded: loaded.clone(),
            name: name.into(),
            entry,
            parameters: parameters.into(),
            resources,
            shared_bytes: AtomicU32::new(usual.min(allowed.max(0) as u32)),
            large_clusters: AtomicBool::new(false),
        };
        if !kernel.entry.sizes().iter().copied().eq(kernel.parameters.iter().map(Parameter::bytes)) {
            return Err(kernel.other_parameters());
        }
        Ok(Function { kernel: Arc::new(kernel) })
    }

    pub(crate) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.kernel.name()
    }

    /// The parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.kernel.parameters
    }

    /// The resources of the kernel, as the compiler reports them.
    pub fn resources(&self) -> &Resources {
        &self.kernel.resources
    }

    /// Launches the kernel on a stream, and returns at once; later work on the stream waits for it.
    ///
    /// If the kernel fails while it runs, a later call reports it (E0807) and names the kernel.
    ///
    /// Errors: arguments that do not match the parameters (E0812); memory that is too small or
    /// misaligned (E0813), of another device (E0814), or shared with an argument that is written
    /// (E0815); invalid sizes (E0816); the driver refused (E0807).
    pub fn launch(&self, stream: &Stream, launch: &Launch, arguments: &[Argument<'_>]) -> Result<(), GpuError> {
        self.kernel.enqueue(stream, launch, arguments)?;
        stream.pending().note(self.kernel.name_held(), launch);
        Ok(())
    }

    /// The counter for a launch on a stream, for a kernel with a dynamic scheduler
    /// ([`Build::dynamic_scheduler`](tilewright_kernel::Build::dynamic_scheduler)). Launches on one
    /// stream run one after another and share a counter, and so do the launches of one graph that
    /// were captured on it. The compiled kernels of [`DeviceKernel`](crate::DeviceKernel) get it
    /// automatically.
    ///
    /// A graph that another library has captured must be instantiated only once. Otherwise its
    /// replays would share a counter, which concurrent launches must not share.
    ///
    /// Errors: there are more streams and captures than the module has counters (E0816); the stream
    /// is of another device (E0814).
    pub fn count_on(&self, stream: &Stream) -> Result<u32, GpuError> {
        self.kernel.context().same(stream.context(), "the stream")?;
        self.kernel.loaded.count_on(stream)?.ok_or_else(|| {
            let limit = u64::from(COUNTS);
            let what = "the number of streams and recordings that launch it";
            GpuError::LaunchSize { kernel: self.name().into(), flaw: SizeFlaw::Above { what, found: limit + 1, limit } }
        })
    }

    /// The number of blocks of a launch that are resident on a multiprocessor at once.
    ///
    /// Errors: invalid sizes (E0816).
    pub fn resident_blocks(&self, launch: &Launch) -> Result<u32, GpuError> {
        self.kernel.check(launch)?;
        let sizes = launch.sizes();
        // At most the limits of the device, as was checked.
        let threads = sizes.block.iter().product::<u32>() as i32;
        let shared = sizes.shared_bytes as usize;
        let blocks =
            self.kernel.context().call(|driver| driver.resident_blocks(&self.kernel.entry, threads, shared))?;
        Ok(blocks.max(0) as u32)
    }

    /// The number of clusters of a launch that are resident on the device at once; that of blocks,
    /// if the launch has no clusters.
    ///
    /// Errors: invalid sizes (E0816).
    pub fn resident_clusters(&self, launch: &Launch) -> Result<u32, GpuError> {
        let launch = &launch.with_clusters(self.resources().cluster);
        self.kernel.check(launch)?;
        let clusters =
            self.kernel.context().call(|driver| driver.resident_clusters(&self.kernel.entry, launch.sizes()))?;
        Ok(clusters.max(0) as u32)
    }
}

impl Module {
    /// A kernel by its name, with its parameters in order.
    ///
    /// Errors: there is no such kernel (E0811); its parameters differ in number or size (E0812).
    pub fn function(&self, entry: &str, parameters: &[Parameter]) -> Result<Function, GpuError> {
        let missing = || GpuError::NoEntry { entry: entry.into() };
        let name = CString::new(entry).map_err(|_| missing())?;
        let loaded = self.loaded();
        let context = loaded.context();
        match context.attempt(|driver| driver.entry(loaded.handle(), &name))? {
            Ok(found) => Function::new(loaded, entry, found, parameters),
            Err(refused) if refused.code == code::NOT_FOUND => Err(missing()),
            Err(refused) => Err(context.explain(refused)),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.name())
    }
}

fn resources(driver: &Driver, entry: &EntryPoint, clusters: bool) -> Result<Resources, Refused> {
    // None of these is negative.
    let number = |which| Ok::<u32, Refused>(driver.function_attribute(entry, which)?.max(0) as u32);
    let [x, y, z] = attribute::CLUSTER;
    let cluster = if clusters { [number(x)?, number(y)?, number(z)?] } else { [0; 3] };
    Ok(Resources {
        block_threads: number(attribute::BLOCK_THREADS)?,
        shared_bytes: number(attribute::SHARED)?,
        constant_bytes: number(attribute::CONSTANT)?,
        local_bytes: number(attribute::LOCAL)?,
        registers: number(attribute::REGISTERS)?,
        binary_version: number(attribute::BINARY_VERSION)?,
        cluster: (!cluster.contains(&0)).then_some(cluster),
    })
}
