//! Reshards between devices with peer access.

use std::fmt;
use std::sync::Arc;

use crate::{Argument, Device, Event, GpuError, Memory, ModuleOptions, PeerMemory, PeerMemoryMut, SizedKernel, Stream};
use tilewright_kernel::Element;
use tilewright_mesh::Plan;
use tilewright_planners::Planned;

use super::lanes::{Lane, Lanes};
use super::transfers::{EngineCopy, MIN_DIRECT_BYTES, MIN_STAGED_BYTES, Transfers, transfers};
use super::{Combine, Pull, ReshardError, as_many};
use crate::devices::measured::DevicePlanner;

/// The number of staging buffers: one is filled while the other is unpacked.
const SLOTS: usize = 2;

/// What reads the memory of other devices: kernels or copy engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Readers {
    /// Copy engines read messages of at least [`MIN_DIRECT_BYTES`] bytes directly to their
    /// destination, if lines are contiguous there, and others of at least [`MIN_STAGED_BYTES`]
    /// bytes in staged parts; kernels read the rest.
    #[default]
    BySize,
    /// Kernels read everything.
    Kernels,
    /// Copy engines read everything whose lines are long enough. If the lines are not contiguous at
    /// the destination, they are staged in parts.
    Engines,
}

/// A compiled kernel, the ranks whose memory it reads, and the second kernel, if any.
pub(super) struct LoadedStep {
    kernel: SizedKernel,
    sources: Vec<usize>,
    then: Option<SizedKernel>,
}

impl LoadedStep {
    /// Compiles a pull for a device. `beside` is raised to the size of the staging buffer that it
    /// needs.
    pub fn new(device: &Device, pull: Pull, beside: &mut u64) -> Result<LoadedStep, GpuError> {
        if let Some(then) = &pull.then {
            // Each element is read and written once.
            *beside = (*beside).max(u64::try_from(then.bytes()).unwrap_or(u64::MAX) / 2);
        }
        let then = pull.then.as_ref().map(|then| compiled(device, then)).transpose()?;
        Ok(LoadedStep { kernel: compiled(device, &pull.planned)?, sources: pull.sources, then })
    }

    /// The ranks whose memory the kernel reads.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// Enqueues the kernels on a stream.
    pub fn launch(
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

pub(crate) fn compiled(device: &Device, planned: &Planned) -> Result<SizedKernel, GpuError> {
    device.compile(planned.kernel(), &ModuleOptions::default())?.at(planned.sizes())
}

/// The work of a device in a step.
struct DeviceStep {
    /// Whether the tensor of the device after the step is a summand of 0.
    is_zero: bool,
    pulls: Vec<LoadedStep>,
    engine_copies: Vec<EngineCopy>,
    puts: Vec<SizedKernel>,
}

impl DeviceStep {
    /// The transfer method, as text.
    fn way(&self) -> String {
        let mut ways = Vec::new();
        for (is_put, what) in [(false, "in place"), (true, "each unpacked by a kernel while the next one is in flight")]
        {
            let engine_copies = self.engine_copies.iter().filter(|copy| copy.put.is_some() == is_put);
            let bytes: Vec<u64> = engine_copies.map(|copy| copy.lines.count * copy.lines.bytes).collect();
            if let [first, ..] = bytes[..] {
                let (sum, count) = (bytes.iter().sum::<u64>(), bytes.len());
                let parts =
                    if count == 1 { "1 part".to_owned() } else { format!("{count} parts, the first of {first}") };
                ways.push(format!("copy engines transfer {sum} bytes, {parts}, {what}"));
            }
        }
        match self.pulls.len() {
            0 => {}
            1 => ways.push("1 kernel reads the source".to_owned()),
            many => ways.push(format!("{many} kernels read the source")),
        }
        if ways.is_empty() { "nothing".to_owned() } else { ways.join("; ") }
    }
}

/// A staging buffer, with events for when it has been filled and unpacked.
struct Slot {
    memory: Memory,
    come: Event,
    put: Event,
}

/// A reshard plan that was compiled for the devices of a mesh, with the memory between its steps.
/// It can be run any number of times.
pub struct DeviceReshard {
    devices: Vec<Device>,
    lanes: Arc<Lanes>,
    /// The work of each step and device.
    steps: Vec<Vec<DeviceStep>>,
    /// The tensors between the steps, for each device.
    between: Vec<Vec<Memory>>,
    /// The staging buffers of each device, for sums and for parts.
    beside: Vec<Memory>,
    slots: Vec<Vec<Slot>>,
    /// The memory that each device needs for the tensor before and after the reshard, in bytes.
    bytes: [u64; 2],
}

impl DeviceReshard {
    /// Compiles a plan for devices in the order of ranks, all of which have peer access to each
    /// other.
    ///
    /// Errors: the number of devices differs from the mesh (E1110); as [`super::pulls`]; the driver
    /// refuses a kernel, or there is not enough memory for intermediate tensors.
    pub fn new(devices: &[Device], plan: &Plan, element: Element) -> Result<DeviceReshard, ReshardError> {
        DeviceReshard::read_by(devices, plan, element, Readers::BySize)
    }

    /// As [`DeviceReshard::new`], with a choice of what reads the memory of other devices.
    ///
    /// Errors: as [`DeviceReshard::new`].
    pub fn read_by(
        devices: &[Device],
        plan: &Plan,
        element: Element,
        readers: Readers,
    ) -> Result<DeviceReshard, ReshardError> {
        let lanes = Arc::new(Lanes::new(devices)?);
        DeviceReshard::on(devices, &lanes, plan, element, (Combine::Sum, readers))
    }

    /// As [`DeviceReshard::new`], on streams that also do other work.
    pub(crate) fn on(
        devices: &[Device],
        lanes: &Arc<Lanes>,
        plan: &Plan,
        element: Element,
        (combine, readers): (Combine, Readers),
    ) -> Result<DeviceReshard, ReshardError> {
        let size = plan.from().mesh().size();
        as_many(&[devices.len()], size)?;
        let least = match readers {
            Readers::BySize => [MIN_DIRECT_BYTES, MIN_STAGED_BYTES],
            Readers::Kernels => [u64::MAX; 2],
            Readers::Engines => [0; 2],
        };
        let bytes = |reach: i64| (reach as u64).saturating_mul(u64::from(element.bytes()));
        let planners = devices.iter().map(DevicePlanner::new).collect::<Result<Vec<_>, _>>()?;
        let (mut steps, mut between) = (Vec::new(), Vec::new());
        let mut rooms = vec![[0_u64; 2]; size];
        for (number, step) in plan.steps().iter().enumerate() {
            let mut of_devices = Vec::new();
            for (rank, ((device, planner), [sums, part])) in devices.iter().zip(&planners).zip(&mut rooms).enumerate() {
                let Transfers { pulls, engine_copies, puts, room } =
                    transfers(&step.exchange, rank, element, planner, combine, least)?;
                *part = (*part).max(room);
                let pulls = pulls.into_iter().map(|pull| LoadedStep::new(device, pull, sums));
                let pulls = pulls.collect::<Result<Vec<_>, GpuError>>()?;
                let puts = puts.iter().map(|put| compiled(device, put)).collect::<Result<_, GpuError>>()?;
                let is_zero = step.exchange.to().sums() > 1 && pulls.is_empty() && engine_copies.is_empty();
                of_devices.push(DeviceStep { is_zero, pulls, engine_copies, puts });
            }
            steps.push(of_devices);
            if number + 1 < plan.steps().len() {
                let reach = bytes(step.exchange.to().reach());
                between.push(devices.iter().map(|device| device.allocate(reach)).collect::<Result<_, _>>()?);
            }
        }
        let (mut beside, mut slots) = (Vec::new(), Vec::new());
        for (device, [sums, part]) in devices.iter().zip(rooms) {
            beside.push(device.allocate(sums)?);
            let slot = |_| Ok(Slot { memory: device.allocate(part)?, come: device.mark()?, put: device.mark()? });
            slots.push((0..if part > 0 { SLOTS } else { 0 }).map(slot).collect::<Result<_, GpuError>>()?);
        }
        let bytes = [bytes(plan.from().reach()), bytes(plan.to().reach())];
        Ok(DeviceReshard { devices: devices.to_vec(), lanes: lanes.clone(), steps, between, beside, slots, bytes })
    }

    /// The memory that each device needs for the tensor before and after the reshard, in bytes.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// The transfer methods of a device, one line for each step.
    pub fn ways(&self, rank: usize) -> Vec<String> {
        self.steps.iter().filter_map(|step| step.get(rank)).map(DeviceStep::way).collect()
    }

    /// Moves the tensor from the memories of the devices to other memories, and returns when it has
    /// arrived. Waits for work that was enqueued on other streams before.
    ///
    /// Errors: memory that is missing, too small, or of another device; devices without peer
    /// access; the driver refused.
    pub fn run(&mut self, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        self.wait()?;
        self.launch(from, to)?;
        self.wait()
    }

    /// Enqueues the reshard on the devices, and returns at once. Launches of one plan follow one
    /// another. Work on other streams is not waited for.
    ///
    /// Errors: as [`DeviceReshard::run`].
    pub fn launch(&mut self, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        let last = self.steps.len().saturating_sub(1);
        for number in 0..self.steps.len() {
            if last > 0 {
                self.lanes.fence()?;
            }
            // The memory that a step writes is removed from the list, so that the memory of the
            // previous step can be borrowed.
            let mut taken = if number < last { self.between.get_mut(number).map(std::mem::take) } else { None };
            let target = taken.as_mut().map_or(&mut *to, |taken| taken.as_mut_slice());
            let before = number.checked_sub(1).and_then(|before| self.between.get_mut(before)).map(std::mem::take);
            let source = before.as_deref().unwrap_or(from);
            let done = self.launch_step(number, source, target);
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

    /// Waits until all devices are done.
    ///
    /// Errors: a kernel failed.
    pub fn wait(&self) -> Result<(), ReshardError> {
        self.devices.iter().try_for_each(|device| Ok(device.synchronize()?))
    }

    fn launch_step(&mut self, number: usize, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        let size = self.devices.len();
        as_many(&[from.len(), to.len()], size)?;
        let kernels = self.steps.get(number).map_or(&[] as &[_], Vec::as_slice);
        // All devices start at the same time: the first part of each, then the second.
        let engine_copies = kernels.iter().map(|on| on.engine_copies.len()).max().unwrap_or(0);
        for part in 0..engine_copies {
            let devices = self.devices.iter().zip(&mut self.slots).zip(kernels.iter().zip(&mut *to));
            for (rank, ((device, slots), (on, own))) in devices.enumerate() {
                let (Some(copy), Some(lane)) = (on.engine_copies.get(part), self.lanes.of(rank)) else { continue };
                let Some(source) = from.get(copy.source) else { continue };
                let put = copy.put.and_then(|put| on.puts.get(put));
                let slot = slots.get_mut(part % SLOTS);
                start_engine_copy(device, lane, copy, source, own, put.zip(slot))?;
            }
        }
        let devices = self.devices.iter().zip(&mut self.beside);
        for (rank, ((device, beside), (on, own))) in devices.zip(kernels.iter().zip(to)).enumerate() {
            let Some(lane) = self.lanes.of(rank) else { continue };
            if on.is_zero {
                own.fill_bytes(&lane.local, 0)?;
            }
            for loaded in &on.pulls {
                let seen = loaded.sources().iter().filter_map(|source| from.get(*source));
                let seen: Vec<PeerMemory<'_>> = seen.map(|memory| memory.seen_by(device)).collect::<Result<_, _>>()?;
                let inputs: Vec<Argument<'_>> = seen.iter().map(Argument::from).collect();
                // Uses of the staging buffer are serialized.
                let stays = loaded.then.is_none() && loaded.sources().iter().all(|source| *source == rank);
                loaded.launch(if stays { &lane.local } else { &lane.remote }, &inputs, own, beside)?;
            }
        }
        Ok(())
    }
}

/// Enqueues the copy of a part on the copy engines of a device, and the kernel that unpacks it.
fn start_engine_copy(
    device: &Device,
    lane: &Lane,
    copy: &EngineCopy,
    source: &Memory,
    own: &mut Memory,
    beside: Option<(&SizedKernel, &mut Slot)>,
) -> Result<(), GpuError> {
    let EngineCopy { read, lines, write, .. } = *copy;
    let seen = source.seen_by(device)?.part(read, source.bytes().saturating_sub(read))?;
    let room = own.bytes().saturating_sub(write);
    let mut target = own.written_by(device)?.part(write, room)?;
    // A contiguous range is one copy.
    let transfer = |mut target: PeerMemoryMut<'_>, seen: PeerMemory<'_>| match lines.count {
        1 => target.part(0, lines.bytes)?.copy_from(&lane.copies, &seen.part(0, lines.bytes)?),
        _ => target.copy_lines(&lane.copies, &seen, lines),
    };
    let Some((put, Slot { memory, come, put: done })) = beside else {
        return transfer(target, seen);
    };
    lane.copies.wait(done)?;
    transfer(memory.written_by(device)?, seen)?;
    lane.copies.record(come)?;
    lane.remote.wait(come)?;
    put.launch(&lane.remote, &[Argument::from(&*memory), Argument::from(&mut target)])?;
    lane.remote.record(done)
}

impl fmt::Debug for DeviceReshard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceReshard({} devices, {} steps)", self.devices.len(), self.steps.len())
    }
}
