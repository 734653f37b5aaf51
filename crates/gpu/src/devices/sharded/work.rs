//! Operations on sharded tensors, on devices of this process with peer access.
//!
//! Law: a step begins when the previous one has finished on all devices, which events signal; the
//! host does not wait.

use std::fmt;
use std::sync::Arc;

use crate::{Argument, Device, GpuError, Memory, ModuleOptions, PeerMemory, SizedKernel};
use tilewright_mesh::MeshError;
use tilewright_planners::Planned;

use super::ShardedError;
use super::steps::{Tensor, WorkPlan, WorkStep};
use crate::devices::gemm::DeviceProduct;
use crate::devices::reshard::{DeviceReshard, Lanes, Readers, as_many, compiled};

/// A compiled kernel, the scratch memory between its blocks or before its second kernel, and that
/// second kernel.
struct LoadedWork {
    kernel: SizedKernel,
    second: Option<SizedKernel>,
    left: Vec<Memory>,
}

impl LoadedWork {
    fn new(device: &Device, planned: &Planned) -> Result<LoadedWork, GpuError> {
        let kernel = compiled(device, planned)?;
        let launch = planned.kernel().program().launch(planned.sizes())?;
        let left = launch.bytes.get(planned.between()).unwrap_or_default();
        let left = left.iter().map(|bytes| device.allocate(*bytes)).collect::<Result<_, GpuError>>()?;
        let second = |kernel| device.compile(kernel, &ModuleOptions::default())?.at(planned.sizes());
        Ok(LoadedWork { kernel, second: planned.second().map(second).transpose()?, left })
    }
}

enum OnDevices {
    Move(Box<DeviceReshard>, Tensor),
    Launch(Vec<LoadedWork>, Vec<(Tensor, u64)>),
    Multiply(Vec<DeviceProduct>, [Tensor; 2]),
}

/// An operation on sharded tensors, compiled for the devices of a mesh from a [`WorkPlan`]. It can
/// be launched any number of times.
pub struct ShardedWork {
    devices: Vec<Device>,
    lanes: Arc<Lanes>,
    plan: WorkPlan,
    steps: Vec<OnDevices>,
    /// For each intermediate tensor, its memory on each device.
    between: Vec<Vec<Memory>>,
}

impl ShardedWork {
    /// Compiles a plan for devices in the order of ranks.
    ///
    /// Errors: the number of devices differs from the plan (E1110); there is not enough memory for
    /// intermediate tensors; devices have no peer access, or the driver refuses a kernel.
    pub fn new(devices: &[Device], plan: &WorkPlan) -> Result<ShardedWork, ShardedError> {
        as_many(&[devices.len()], plan.devices())?;
        let lanes = Arc::new(Lanes::new(devices)?);
        let mut steps = Vec::new();
        for step in plan.steps() {
            steps.push(match step {
                WorkStep::Move { plan, element, combine, from, .. } => {
                    let by = (*combine, Readers::BySize);
                    OnDevices::Move(Box::new(DeviceReshard::on(devices, &lanes, plan, *element, by)?), *from)
                }
                WorkStep::Launch { planned, inputs, .. } => {
                    let loaded = devices.iter().map(|device| LoadedWork::new(device, planned));
                    OnDevices::Launch(loaded.collect::<Result<_, GpuError>>()?, inputs.clone())
                }
                WorkStep::LaunchEach { planned, inputs, .. } => {
                    let of_ranks = devices.iter().zip(planned);
                    let loaded = of_ranks.map(|(device, planned)| LoadedWork::new(device, planned));
                    let inputs = inputs.iter().map(|tensor| (*tensor, 0)).collect();
                    OnDevices::Launch(loaded.collect::<Result<_, GpuError>>()?, inputs)
                }
                WorkStep::Multiply { product, operands, .. } => {
                    let options = ModuleOptions::default();
                    let of = |device| DeviceProduct::of(device, (**product).clone(), &options);
                    OnDevices::Multiply(devices.iter().map(of).collect::<Result<_, _>>()?, *operands)
                }
            });
        }
        let [_, between] = plan.tensors();
        let memory = |number| {
            let bytes = plan.bytes(Tensor::Between(number)).unwrap_or(0);
            devices.iter().map(|device| device.allocate(bytes)).collect::<Result<Vec<_>, GpuError>>()
        };
        let between = (0..between).map(memory).collect::<Result<_, GpuError>>()?;
        Ok(ShardedWork { devices: devices.to_vec(), lanes, plan: plan.clone(), steps, between })
    }

    /// Launches the operation, and returns at once. The memories are those of the devices, in the
    /// order of ranks. Work on other streams is not waited for.
    ///
    /// Errors: another number of operands ([`MeshError::Operation`]); memory that is missing, too
    /// small, or of another device; the driver refused.
    pub fn launch(&mut self, operands: &[&[Memory]], result: &mut [Memory]) -> Result<(), ShardedError> {
        let [wanted, _] = self.plan.tensors();
        if operands.len() != wanted {
            let what = format!("the plan has {wanted} operands, and {} were given", operands.len());
            return Err(MeshError::Operation { what: what.into() }.into());
        }
        let given: Vec<usize> = operands.iter().map(|operand| operand.len()).chain([result.len()]).collect();
        as_many(&given, self.devices.len())?;
        for (step, on) in self.plan.steps().iter().zip(&mut self.steps) {
            self.lanes.fence()?;
            // The tensor that is written is removed from the list, so that the others can be
            // borrowed.
            let place = match step.to() {
                Tensor::Between(number) => Some(number),
                _ => None,
            };
            let mut taken = place.and_then(|number| self.between.get_mut(number)).map(std::mem::take);
            let read = |tensor: Tensor| match tensor {
                Tensor::Operand(number) => operands.get(number).copied().unwrap_or_default(),
                Tensor::Between(number) => self.between.get(number).map_or(&[][..], Vec::as_slice),
                Tensor::Result => &[],
            };
            let target = taken.as_mut().map_or(&mut *result, |taken| taken.as_mut_slice());
            let done = on.launch(&self.devices, &self.lanes, read, target);
            if let (Some(number), Some(taken)) = (place, taken)
                && let Some(place) = self.between.get_mut(number)
            {
                *place = taken;
            }
            done?;
        }
        Ok(())
    }

    /// Waits until all devices are done.
    ///
    /// Errors: a kernel failed.
    pub fn wait(&self) -> Result<(), ShardedError> {
        self.devices.iter().try_for_each(|device| Ok(device.synchronize()?))
    }
}

impl OnDevices {
    fn launch<'a>(
        &mut self,
        devices: &[Device],
        lanes: &Lanes,
        read: impl Fn(Tensor) -> &'a [Memory],
        target: &mut [Memory],
    ) -> Result<(), ShardedError> {
        let of_ranks = devices.iter().zip(target.iter_mut()).enumerate();
        match self {
            OnDevices::Move(reshard, from) => reshard.launch(read(*from), target)?,
            OnDevices::Launch(loaded, inputs) => {
                for ((rank, (device, own)), loaded) in of_ranks.zip(loaded) {
                    let Some(lane) = lanes.of(rank) else { continue };
                    let seen = inputs.iter().filter_map(|(tensor, at)| Some((read(*tensor).get(rank)?, *at)));
                    let seen: Vec<PeerMemory<'_>> = seen
                        .map(|(memory, at)| memory.seen_by(device)?.part(at, memory.bytes().saturating_sub(at)))
                        .collect::<Result<_, _>>()?;
                    let mut arguments: Vec<Argument<'_>> = seen.iter().map(Argument::from).collect();
                    let LoadedWork { kernel, second, left } = loaded;
                    arguments.extend(left.iter_mut().map(Argument::from));
                    let Some(second) = second else {
                        arguments.push(Argument::from(own));
                        kernel.launch(&lane.local, &arguments)?;
                        continue;
                    };
                    kernel.launch(&lane.local, &arguments)?;
                    drop(arguments);
                    let arguments: Vec<Argument<'_>> =
                        left.iter().map(Argument::from).chain([Argument::from(own)]).collect();
                    second.launch(&lane.local, &arguments)?;
                }
            }
            OnDevices::Multiply(products, operands) => {
                for ((rank, (_, own)), product) in of_ranks.zip(products) {
                    let Some(lane) = lanes.of(rank) else { continue };
                    let inputs = operands.iter().filter_map(|operand| read(*operand).get(rank));
                    let inputs: Vec<Argument<'_>> = inputs.map(Argument::from).collect();
                    product.launch(&lane.local, &inputs, &[own.into()])?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ShardedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardedWork({} devices, {} steps)", self.devices.len(), self.steps.len())
    }
}
