//! Tensors on several devices of one machine, moved from one sharded layout to another.
//!
//! Law: what a device receives in a step it reads itself, from the memory of the devices that have
//! it, and puts where the layout after says: a relayout whose source lies elsewhere, or a sum of
//! such sources ([`DeviceReshard`]). Nothing is packed or unpacked, and elements cross between
//! devices once. A step begins when the one before is done on all devices.
//!
//! Devices that do not reach each other's memory go through NCCL ([`NcclReshard`]): what does not
//! lie in one piece is packed before, and put in its place after.

mod packed;
mod through_nccl;

use std::fmt;

use tilewright_gpu::{Argument, Device, GpuError, Memory, ModuleOptions, NcclError, PeerMemory, SizedKernel, Stream};
use tilewright_kernel::Element;
use tilewright_kernels::{Expression, Place, PlanError, Planned, map_at, relayout_for};
use tilewright_layout::{Composed, Layout, LayoutError, Leaf, Refusal, Tree};
use tilewright_mesh::{Exchange, Footprint, MeshError, Message, Plan};

pub use packed::{Packed, Side, packed};
pub use through_nccl::NcclReshard;

/// The most kernels that a device launches in a step.
pub const MAX_LAUNCHES: usize = 4096;

/// Why a tensor was not moved.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReshardError {
    /// The layouts, or the devices of the mesh.
    Mesh(MeshError),
    /// A kernel cannot be planned.
    Plan(PlanError),
    /// The driver, or a launch.
    Gpu(GpuError),
    /// NCCL, or its absence.
    Nccl(NcclError),
}

impl From<NcclError> for ReshardError {
    fn from(error: NcclError) -> ReshardError {
        ReshardError::Nccl(error)
    }
}

impl From<MeshError> for ReshardError {
    fn from(error: MeshError) -> ReshardError {
        ReshardError::Mesh(error)
    }
}

impl From<LayoutError> for ReshardError {
    fn from(error: LayoutError) -> ReshardError {
        ReshardError::Mesh(error.into())
    }
}

impl From<PlanError> for ReshardError {
    fn from(error: PlanError) -> ReshardError {
        ReshardError::Plan(error)
    }
}

impl From<GpuError> for ReshardError {
    fn from(error: GpuError) -> ReshardError {
        ReshardError::Gpu(error)
    }
}

impl fmt::Display for ReshardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReshardError::Mesh(error) => error.fmt(f),
            ReshardError::Plan(error) => error.fmt(f),
            ReshardError::Gpu(error) => error.fmt(f),
            ReshardError::Nccl(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReshardError {}

impl Refusal for ReshardError {
    fn code(&self) -> &'static str {
        match self {
            ReshardError::Mesh(error) => error.code(),
            ReshardError::Plan(error) => error.code(),
            ReshardError::Gpu(error) => error.code(),
            // NCCL is another library, whose errors have no page here: that of the driver's
            // refusals.
            ReshardError::Nccl(_) => "E0807",
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            ReshardError::Mesh(error) => error.help(),
            ReshardError::Plan(error) => error.help(),
            ReshardError::Gpu(error) => Refusal::help(error),
            ReshardError::Nccl(_) => None,
        }
    }
}

/// A kernel that a device runs in a step: its inputs are the memories of these ranks.
#[derive(Debug)]
pub struct Pull {
    /// The kernel.
    pub planned: Planned,
    /// The ranks whose memory it reads, in the order of its inputs.
    pub sources: Vec<usize>,
    /// A second kernel: the first one writes memory beside the tensor then, and this puts in place
    /// what it wrote.
    pub then: Option<Planned>,
}

/// The kernels by which a device of so many processors makes what it holds after a step. They write
/// different elements, so their order does not matter; in a sum the summands are added in order.
///
/// Errors: a sum of integers; more than [`MAX_LAUNCHES`] kernels; what a relayout refuses.
///
/// ```
/// use tilewright::kernel::Element;
/// use tilewright::mesh::{Exchange, Mesh, ShardedLayout};
/// use tilewright::reshard::pulls;
///
/// # fn main() -> Result<(), tilewright::reshard::ReshardError> {
/// let mesh: Mesh = "tp=2".parse()?;
/// let rows = ShardedLayout::parse(&mesh, "((512,2),1024):((1024,1@tp),1)")?;
/// let columns = ShardedLayout::parse(&mesh, "(1024,(512,2)):(512,(1,1@tp))")?;
/// let pulls = pulls(&Exchange::new(&rows, &columns)?, 0, Element::F32, 132)?;
/// assert_eq!(pulls.iter().map(|pull| pull.sources[0]).collect::<Vec<_>>(), [0, 1]);
/// # Ok(())
/// # }
/// ```
pub fn pulls(exchange: &Exchange, rank: usize, element: Element, processors: u32) -> Result<Vec<Pull>, ReshardError> {
    pulls_of(exchange.messages_to(rank), exchange.added(), element, processors, |message, run| {
        let start = message.footprint.starts.get(run).map_or(0, |start| start.0);
        Ok((sides(&message.footprint)?[0].clone(), start))
    })
}

/// The kernels for these messages, each of `added` summands; `read` says where the elements of a
/// run lie in the memory that is read.
fn pulls_of(
    messages: Vec<Message>,
    added: i64,
    element: Element,
    processors: u32,
    read: impl Fn(&Message, usize) -> Result<(Layout, i64), ReshardError>,
) -> Result<Vec<Pull>, ReshardError> {
    let added = usize::try_from(added).unwrap_or(1).max(1);
    let mut pulls = Vec::new();
    for summands in messages.chunks(added) {
        let Some(first) = summands.first() else { continue };
        let starts = &first.footprint.starts;
        if starts.len().saturating_add(pulls.len()) > MAX_LAUNCHES {
            let limit = MAX_LAUNCHES as i64;
            return Err(MeshError::TooLarge { what: "kernels of a device in one step", limit }.into());
        }
        let sources: Vec<usize> = summands.iter().map(|message| message.from).collect();
        let [_, to] = sides(&first.footprint)?;
        for (run, (_, write)) in starts.iter().enumerate() {
            let from = summands.iter().map(|message| read(message, run)).collect::<Result<Vec<_>, _>>()?;
            let [(first_from, start), ..] = from.as_slice() else { continue };
            let (planned, then) = if added == 1 {
                let target = place(&to, *write)?;
                (relayout_for(processors, place(first_from, *start)?, element, target, element)?, None)
            } else {
                let inputs: Vec<_> = from.iter().map(|(layout, start)| (layout, element, *start)).collect();
                let sum = (1..added).fold(Expression::input(0), |sum, number| sum + Expression::input(number));
                // A sum goes through memory in one order, that of the elements it reads; where they
                // are wanted in another, a relayout turns them, which reads no other device.
                if fastest(first_from) == fastest(&to) {
                    (map_at("sum_of_devices", &sum, &inputs, (&to, element, *write))?, None)
                } else {
                    let beside = compact_like(first_from)?;
                    let planned = map_at("sum_of_devices", &sum, &inputs, (&beside, element, 0))?;
                    let target = place(&to, *write)?;
                    (planned, Some(relayout_for(processors, &beside, element, target, element)?))
                }
            };
            pulls.push(Pull { planned, sources: sources.clone(), then });
        }
    }
    Ok(pulls)
}

/// The mode along which the elements of a layout lie closest.
fn fastest(layout: &Layout) -> Option<usize> {
    let moving = layout.leaves().iter().enumerate().filter(|(_, leaf)| leaf.extent > 1);
    moving.min_by_key(|(_, leaf)| leaf.stride).map(|(mode, _)| mode)
}

/// The same modes without gaps, in the order of the strides.
fn compact_like(layout: &Layout) -> Result<Layout, LayoutError> {
    let mut leaves = layout.leaves().to_vec();
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    order.sort_by_key(|mode| leaves.get(*mode).map(|leaf| leaf.stride));
    let mut next = 1;
    for mode in order {
        if let Some(leaf) = leaves.get_mut(mode) {
            leaf.stride = next;
            next *= leaf.extent;
        }
    }
    if leaves.len() == 1 {
        let only = leaves.first().copied().unwrap_or(Leaf { extent: 1, stride: 0 });
        return Layout::mode_of(only.extent, only.stride);
    }
    Layout::from_tree(Tree::flat(leaves)?)
}

/// The modes of a footprint as layouts of what is read and what is written.
fn sides(footprint: &Footprint) -> Result<[Layout; 2], LayoutError> {
    let layout = |step: &dyn Fn(&(i64, i64, i64)) -> i64| {
        let leaves = footprint.modes.iter().map(|mode| Leaf { extent: mode.0, stride: step(mode) });
        if footprint.modes.is_empty() { Ok(Layout::unit()) } else { Layout::from_tree(Tree::flat(leaves)?) }
    };
    Ok([layout(&|mode| mode.1)?, layout(&|mode| mode.2)?])
}

/// A layout behind its first offset.
fn place(layout: &Layout, start: i64) -> Result<Place, ReshardError> {
    if start == 0 {
        return Ok(Place::from(layout));
    }
    let behind: Composed = format!("S<0,0,0> o {start} o {layout}").parse()?;
    Ok(Place::try_from(&behind)?)
}

/// A kernel on its device, with the ranks whose memory it reads, and the one after it.
struct Loaded {
    kernel: SizedKernel,
    sources: Vec<usize>,
    then: Option<SizedKernel>,
}

impl Loaded {
    /// A pull that was compiled for a device; `beside` becomes at least as many bytes as it has to
    /// have beside the tensor.
    fn new(device: &Device, pull: Pull, beside: &mut u64) -> Result<Loaded, GpuError> {
        let compiled =
            |planned: &Planned| device.compile(planned.kernel(), &ModuleOptions::default())?.at(planned.sizes());
        if let Some(then) = &pull.then {
            // Each element is read and written once.
            *beside = (*beside).max(u64::try_from(then.bytes()).unwrap_or(u64::MAX) / 2);
        }
        let then = pull.then.as_ref().map(compiled).transpose()?;
        Ok(Loaded { kernel: compiled(&pull.planned)?, sources: pull.sources, then })
    }

    /// Gives the kernels to a stream.
    fn launch(
        &self,
        stream: &Stream,
        inputs: &[Argument<'_>],
        own: &mut Memory,
        beside: &mut Memory,
    ) -> Result<(), GpuError> {
        let into = if self.then.is_some() { &mut *beside } else { &mut *own };
        let arguments: Vec<Argument<'_>> = inputs.iter().copied().chain([Argument::from(into)]).collect();
        self.kernel.launch(stream, &arguments)?;
        match &self.then {
            Some(then) => then.launch(stream, &[Argument::from(&*beside), Argument::from(own)]),
            None => Ok(()),
        }
    }
}

/// A plan that was compiled for the devices of a mesh, with the memory between its steps: carried
/// out as often as wanted.
pub struct DeviceReshard {
    devices: Vec<Device>,
    /// For each device: what reads other devices, and what stays on this one.
    streams: Vec<[Stream; 2]>,
    /// For each step and device.
    steps: Vec<Vec<Vec<Loaded>>>,
    /// Between the steps, for each device.
    between: Vec<Vec<Memory>>,
    /// Beside the tensor, for each device.
    beside: Vec<Memory>,
    /// What each device needs before and after, in bytes.
    bytes: [u64; 2],
}

impl DeviceReshard {
    /// A plan for devices in the order of ranks, all of which reach each other's memory.
    ///
    /// Errors: as many devices as the mesh has are needed (E1110); as [`pulls`]; the driver refuses
    /// a kernel, or there is no memory for what lies between steps.
    pub fn new(devices: &[Device], plan: &Plan, element: Element) -> Result<DeviceReshard, ReshardError> {
        let size = plan.from().mesh().size();
        if devices.len() != size {
            return Err(MeshError::Processes { processes: devices.len(), devices: size }.into());
        }
        let bytes = |reach: i64| (reach as u64).saturating_mul(u64::from(element.bytes()));
        let (mut steps, mut between) = (Vec::new(), Vec::new());
        let mut room = vec![0_u64; size];
        for (number, step) in plan.steps().iter().enumerate() {
            let mut of_devices = Vec::new();
            for (rank, (device, room)) in devices.iter().zip(&mut room).enumerate() {
                let pulls = pulls(&step.exchange, rank, element, device.attributes().multiprocessors)?;
                let loaded = pulls.into_iter().map(|pull| Loaded::new(device, pull, room));
                of_devices.push(loaded.collect::<Result<_, _>>()?);
            }
            steps.push(of_devices);
            if number + 1 < plan.steps().len() {
                let reach = bytes(step.exchange.to().reach());
                between.push(devices.iter().map(|device| device.allocate(reach)).collect::<Result<_, _>>()?);
            }
        }
        let streams = devices.iter().map(|device| Ok([device.stream()?, device.stream()?]));
        let streams = streams.collect::<Result<_, GpuError>>()?;
        let beside = devices.iter().zip(room).map(|(device, room)| device.allocate(room));
        let beside = beside.collect::<Result<_, GpuError>>()?;
        let bytes = [bytes(plan.from().reach()), bytes(plan.to().reach())];
        Ok(DeviceReshard { devices: devices.to_vec(), streams, steps, between, beside, bytes })
    }

    /// What each device needs before and after, in bytes.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// Moves the tensor from the memories of the devices to others, and returns when it is there.
    /// What has been given to other streams before is waited for.
    ///
    /// Errors: memory that is missing, too small, or of another device; devices that do not reach
    /// each other; the driver refused.
    pub fn run(&mut self, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        self.wait()?;
        let last = self.steps.len().saturating_sub(1);
        for number in 0..self.steps.len() {
            // The memory that a step writes is taken out, so that the one before it may be read.
            let mut taken = if number < last { self.between.get_mut(number).map(std::mem::take) } else { None };
            let target = taken.as_mut().map_or(&mut *to, |taken| taken.as_mut_slice());
            let before = number.checked_sub(1).and_then(|before| self.between.get_mut(before)).map(std::mem::take);
            let source = before.as_deref().unwrap_or(from);
            let done = self.launch_step(number, source, target).and_then(|()| self.wait());
            let put_back = [(number, taken), (number.wrapping_sub(1), before)];
            for (at, memory) in put_back {
                if let (Some(place), Some(memory)) = (self.between.get_mut(at), memory) {
                    *place = memory;
                }
            }
            done?;
        }
        Ok(())
    }

    /// Gives the only step of a plan to the devices, and returns at once; plans of several steps
    /// are refused.
    ///
    /// Errors: as [`DeviceReshard::run`]; the plan has more steps than one.
    pub fn launch(&mut self, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        if self.steps.len() > 1 {
            return Err(MeshError::TooLarge { what: "steps to launch without waiting", limit: 1 }.into());
        }
        self.launch_step(0, from, to)
    }

    /// Waits until all devices are done.
    ///
    /// Errors: a kernel failed.
    pub fn wait(&self) -> Result<(), ReshardError> {
        self.devices.iter().try_for_each(|device| Ok(device.synchronize()?))
    }

    fn launch_step(&mut self, number: usize, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        let size = self.devices.len();
        for given in [from.len(), to.len()] {
            if given != size {
                return Err(MeshError::Processes { processes: given, devices: size }.into());
            }
        }
        let kernels = self.steps.get(number).map_or(&[] as &[_], Vec::as_slice);
        let devices = self.devices.iter().zip(&self.streams).zip(&mut self.beside);
        for (rank, (((device, [far, near]), beside), (kernels, own))) in devices.zip(kernels.iter().zip(to)).enumerate()
        {
            for loaded in kernels {
                let seen = loaded.sources.iter().filter_map(|source| from.get(*source));
                let seen: Vec<PeerMemory<'_>> = seen.map(|memory| memory.seen_by(device)).collect::<Result<_, _>>()?;
                let inputs: Vec<Argument<'_>> = seen.iter().map(Argument::from).collect();
                // What uses the memory beside the tensor goes one after another.
                let stays = loaded.then.is_none() && loaded.sources.iter().all(|source| *source == rank);
                loaded.launch(if stays { near } else { far }, &inputs, own, beside)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DeviceReshard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceReshard({} devices, {} steps)", self.devices.len(), self.steps.len())
    }
}
