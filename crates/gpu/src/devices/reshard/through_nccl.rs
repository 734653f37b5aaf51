//! Reshards whose bytes go through NCCL.
//!
//! Law: packing, sending and unpacking of a step are on one stream of each device. So a device
//! waits only for what it receives, and steps follow each other without waits on the host.

use std::fmt;

use crate::{Argument, Device, GpuError, Memory, Nccl, SizedKernel, Stream, Transfer};
use tilewright_kernel::Element;
use tilewright_mesh::{MeshError, Plan};
use tilewright_planners::Planner;

use super::on_devices::{LoadedStep, compiled};
use super::packed::{MessageMemory, Packed, packed};
use super::{ReshardError, as_many};
use crate::devices::measured::DevicePlanner;

/// The work and the buffers of a device in a step.
struct NcclStep {
    packs: Vec<SizedKernel>,
    places: Vec<LoadedStep>,
    /// The send and receive buffers, and the buffer for sums before they are unpacked.
    sent: Memory,
    received: Memory,
    beside: Memory,
}

struct Step {
    devices: Vec<NcclStep>,
    transfers: Vec<Transfer>,
    sides: [MessageMemory; 2],
}

/// A reshard plan between devices of this process, through NCCL.
pub struct NcclReshard {
    nccl: Nccl,
    streams: Vec<Stream>,
    steps: Vec<Step>,
    /// The tensors between the steps, for each device.
    between: Vec<Vec<Memory>>,
    bytes: [u64; 2],
}

impl NcclReshard {
    /// Compiles a plan for devices in the order of ranks.
    ///
    /// Errors: the number of devices differs from the mesh (E1110); as [`super::pulls`]; the driver
    /// refuses a kernel, or there is not enough memory; NCCL cannot be opened, or does not accept
    /// the devices.
    pub fn new(devices: &[Device], plan: &Plan, element: Element) -> Result<NcclReshard, ReshardError> {
        let size = plan.from().mesh().size();
        as_many(&[devices.len()], size)?;
        let nccl = Nccl::open(devices)?;
        let bytes = |elements: i64| (elements as u64).saturating_mul(u64::from(element.bytes()));
        // The packing kernels are the same on all devices. They are planned for the device with the
        // fewest multiprocessors.
        let planners = devices.iter().map(DevicePlanner::new).collect::<Result<Vec<_>, _>>()?;
        let least = planners.into_iter().min_by_key(|planner| planner.machine().multiprocessors);
        let planner = least.ok_or(MeshError::Processes { processes: 0, devices: size })?;
        let (mut steps, mut between) = (Vec::new(), Vec::new());
        for (number, step) in plan.steps().iter().enumerate() {
            let last = number + 1 == plan.steps().len();
            let Packed { packs, transfers, sent, received, places, room } = packed(&step.exchange, element, &planner)?;
            let mut on_devices = Vec::new();
            for (((device, packs), places), [send, receive]) in devices.iter().zip(packs).zip(places).zip(room) {
                let mut beside = 0;
                let places = places.into_iter().map(|pull| LoadedStep::new(device, pull, &mut beside));
                let places = places.collect::<Result<_, GpuError>>()?;
                on_devices.push(NcclStep {
                    packs: packs.iter().map(|pack| compiled(device, pack)).collect::<Result<_, GpuError>>()?,
                    places,
                    sent: device.allocate(bytes(send))?,
                    received: device.allocate(bytes(receive))?,
                    beside: device.allocate(beside)?,
                });
            }
            steps.push(Step { devices: on_devices, transfers, sides: [sent, received] });
            if !last {
                let reach = bytes(step.exchange.to().reach());
                between.push(devices.iter().map(|device| device.allocate(reach)).collect::<Result<_, _>>()?);
            }
        }
        let streams = devices.iter().map(Device::stream).collect::<Result<_, GpuError>>()?;
        let bytes = [bytes(plan.from().reach()), bytes(plan.to().reach())];
        Ok(NcclReshard { nccl, streams, steps, between, bytes })
    }

    /// The memory that each device needs for the tensor before and after the reshard, in bytes.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// Enqueues the reshard on the streams of the devices, and returns at once. Work on other
    /// streams is not waited for.
    ///
    /// Errors: memory that is missing, too small, or of another device; the driver or NCCL refused.
    pub fn launch(&mut self, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        as_many(&[from.len(), to.len()], self.streams.len())?;
        let last = self.steps.len().saturating_sub(1);
        for (number, step) in self.steps.iter_mut().enumerate() {
            // The memory that a step writes is removed from the list, so that the memory of the
            // previous step can be borrowed.
            let mut taken = if number < last { self.between.get_mut(number).map(std::mem::take) } else { None };
            let target = taken.as_mut().map_or(&mut *to, |taken| taken.as_mut_slice());
            let source = number.checked_sub(1).and_then(|before| self.between.get(before)).map_or(from, Vec::as_slice);
            let done = step.launch(&self.nccl, &self.streams, source, target);
            if let (Some(place), Some(taken)) = (self.between.get_mut(number), taken) {
                *place = taken;
            }
            done?;
        }
        Ok(())
    }

    /// Waits until all devices are done.
    ///
    /// Errors: a kernel failed.
    pub fn wait(&self) -> Result<(), ReshardError> {
        self.streams.iter().try_for_each(|stream| Ok(stream.synchronize()?))
    }
}

impl Step {
    fn launch(
        &mut self,
        nccl: &Nccl,
        streams: &[Stream],
        from: &[Memory],
        to: &mut [Memory],
    ) -> Result<(), ReshardError> {
        for ((device, stream), tensor) in self.devices.iter_mut().zip(streams).zip(from) {
            for pack in &device.packs {
                pack.launch(stream, &[Argument::from(tensor), Argument::from(&mut device.sent)])?;
            }
        }
        if !self.transfers.is_empty() {
            let buffers = self.devices.iter_mut().map(|NcclStep { sent, received, .. }| (&*sent, received));
            let (sent, received): (Vec<&Memory>, Vec<&mut Memory>) = buffers.unzip();
            let [send, receive] = self.sides;
            let read = if send == MessageMemory::Tensor { from.iter().collect() } else { sent };
            let mut written = if receive == MessageMemory::Tensor { to.iter_mut().collect() } else { received };
            let streams: Vec<&Stream> = streams.iter().collect();
            nccl.transfer(&streams, &read, &mut written, &self.transfers)?;
        }
        for (rank, ((device, stream), own)) in self.devices.iter_mut().zip(streams).zip(to).enumerate() {
            let NcclStep { places, received, beside, .. } = device;
            for loaded in places {
                let memory = |source: &usize| if *source == rank { from.get(rank) } else { Some(&*received) };
                let inputs: Vec<Argument<'_>> =
                    loaded.sources().iter().filter_map(memory).map(Argument::from).collect();
                loaded.launch(stream, &inputs, own, beside)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for NcclReshard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NcclReshard({:?}, {} steps)", self.nccl, self.steps.len())
    }
}
