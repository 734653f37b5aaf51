//! `tilewright mesh devices`: executes a plan between the GPUs of this machine.
//!
//! Law: before any time is printed, the memory of the devices after the plan is compared, bit by
//! bit, with that of the simulated plan. Printed figures were measured in this run.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::AddAssign;
use std::time::Instant;

use bytemuck::Pod;
use clap::{Args, ValueEnum};
use half::{bf16, f16};
use serde_json::json;
use tilewright::gpu::{Device, Memory};
use tilewright::kernel::Element;
use tilewright::mesh::{Machine, Mesh, MeshError, Plan, ShardedLayout, reshard};
use tilewright::reshard::{DeviceReshard, NcclReshard, Readers, ReshardError};

use crate::kernel::bench::median;
use crate::output::Failure;
use crate::terminal::Terminal;

/// The largest number of elements in the memory of a device, before or after.
const MAX_MEMORY: i64 = 1 << 30;
/// The seconds of launches that are timed together, and the number of repetitions.
const ROUND: f64 = 0.03;
const ROUNDS: usize = 7;

#[derive(Debug, Args)]
pub struct DevicesOptions {
    /// The type of the elements.
    #[arg(long = "type", default_value = "f32", value_parser = ["f16", "bf16", "f32", "f64", "i32", "i64"])]
    element: String,
    /// The devices of a node, and the links, by which the steps are chosen.
    #[arg(long, default_value = "hgx-h200")]
    machine: String,
    /// Transfer between devices: direct reads of the memory of others, by copy engines (DMA) if
    /// large messages are contiguous on both sides, by kernels only, or by copy engines whenever
    /// lines are long enough; or NCCL.
    #[arg(long, value_enum, default_value = "memory")]
    through: DeviceTransport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceTransport {
    Memory,
    Kernels,
    Engines,
    Nccl,
}

impl DeviceTransport {
    fn name(self) -> &'static str {
        match self {
            DeviceTransport::Memory => "memory",
            DeviceTransport::Kernels => "kernels",
            DeviceTransport::Engines => "engines",
            DeviceTransport::Nccl => "nccl",
        }
    }
}

/// A plan on the devices.
enum DeviceMoves {
    Memory(DeviceReshard),
    Nccl(NcclReshard),
}

impl DeviceMoves {
    fn new(
        through: DeviceTransport,
        devices: &[Device],
        plan: &Plan,
        element: Element,
    ) -> Result<DeviceMoves, ReshardError> {
        let readers = match through {
            DeviceTransport::Nccl => return Ok(DeviceMoves::Nccl(NcclReshard::new(devices, plan, element)?)),
            DeviceTransport::Memory => Readers::BySize,
            DeviceTransport::Kernels => Readers::Kernels,
            DeviceTransport::Engines => Readers::Engines,
        };
        Ok(DeviceMoves::Memory(DeviceReshard::read_by(devices, plan, element, readers)?))
    }

    fn bytes(&self) -> [u64; 2] {
        match self {
            DeviceMoves::Memory(moving) => moving.bytes(),
            DeviceMoves::Nccl(moving) => moving.bytes(),
        }
    }

    /// Enqueues the plan on the devices, and returns at once.
    fn go(&mut self, from: &[Memory], to: &mut [Memory]) -> Result<(), ReshardError> {
        match self {
            DeviceMoves::Memory(moving) => moving.launch(from, to),
            DeviceMoves::Nccl(moving) => moving.launch(from, to),
        }
    }

    /// The transport to the first device, one line for each step.
    fn ways(&self) -> Vec<String> {
        match self {
            DeviceMoves::Memory(moving) => moving.ways(0),
            DeviceMoves::Nccl(_) => Vec::new(),
        }
    }

    fn wait(&self) -> Result<(), ReshardError> {
        match self {
            DeviceMoves::Memory(moving) => moving.wait(),
            DeviceMoves::Nccl(moving) => moving.wait(),
        }
    }
}

pub fn run(
    mesh: &str,
    layouts: [&String; 2],
    options: &DevicesOptions,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let mesh: Mesh = mesh.parse()?;
    let machine: Machine = options.machine.parse()?;
    let [from, to] = layouts.map(|text| ShardedLayout::parse(&mesh, text));
    let (from, to) = (from?, to?);
    if from.reach().max(to.reach()) > MAX_MEMORY {
        return Err(MeshError::TooLarge { what: "elements of memory on a device", limit: MAX_MEMORY }.into());
    }
    let plan = |bytes: usize| reshard(&from, &to, bytes as i64, &machine);
    let through = options.through;
    match options.element.as_str() {
        "f16" => timed(&plan(2)?, Element::F16, |number| f16::from_f32(f32::from(number)), through, terminal),
        "bf16" => timed(&plan(2)?, Element::Bf16, |number| bf16::from_f32(f32::from(number)), through, terminal),
        "f64" => timed(&plan(8)?, Element::F64, f64::from, through, terminal),
        "i32" => timed(&plan(4)?, Element::I32, i32::from, through, terminal),
        "i64" => timed(&plan(8)?, Element::I64, i64::from, through, terminal),
        _ => timed(&plan(4)?, Element::F32, f32::from, through, terminal),
    }
}

/// Makes a value for each rank, in one thread each, because large tensors take the host seconds.
fn each<T: Send>(
    ranks: usize,
    make: impl Fn(usize) -> Result<Vec<T>, MeshError> + Sync,
) -> Result<Vec<Vec<T>>, MeshError> {
    std::thread::scope(|scope| {
        let make = &make;
        let started: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || make(rank))).collect();
        let joined = started.into_iter().map(|thread| thread.join());
        joined.map(|made| made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Runs a plan on the devices, compares their memory with the simulated plan, and returns the time.
fn timed<T: Pod + Send + Sync + Default + AddAssign + PartialEq>(
    plan: &Plan,
    element: Element,
    number: impl Fn(u8) -> T + Sync,
    through: DeviceTransport,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let size = plan.from().mesh().size();
    let devices = (0..size).map(Device::open).collect::<Result<Vec<_>, _>>()?;
    let refused = |error: ReshardError| Failure::refused(&error);
    let mut resharding = DeviceMoves::new(through, &devices, plan, element).map_err(refused)?;
    // Small nonzero numbers, so that sums are exact and unwritten elements are detected.
    let value = |rank: usize, offset: i64| number(((rank as i64 * 31 + offset * 7) % 61 + 1) as u8);
    let reach = plan.from().reach();
    let before = each(size, |rank| Ok((0..reach).map(|offset| value(rank, offset)).collect()))?;
    let right = simulated(plan, &before)?;
    let (from, mut to) = memories(&devices, &before, resharding.bytes())?;
    resharding.go(&from, &mut to).map_err(refused)?;
    resharding.wait().map_err(refused)?;
    check_contents(&devices, &to, &right)?;
    let seconds = median_seconds(&mut resharding, &from, &mut to)?;
    report(plan, element, &devices, &resharding, seconds, through, terminal)
}

/// The memory of each device after a plan.
fn simulated<'a, T: Send + Sync + Copy + Default + AddAssign>(
    plan: &Plan,
    before: &'a [Vec<T>],
) -> Result<Cow<'a, [Vec<T>]>, MeshError> {
    let mut held = Cow::Borrowed(before);
    for step in plan.steps() {
        held = Cow::Owned(each(held.len(), |rank| step.exchange.simulate_one(&held, rank))?);
    }
    Ok(held)
}

/// The memory of each device before the plan, and zeroed memory for the result.
fn memories<T: Pod>(
    devices: &[Device],
    before: &[Vec<T>],
    [read, written]: [u64; 2],
) -> Result<(Vec<Memory>, Vec<Memory>), Failure> {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (device, before) in devices.iter().zip(before) {
        let stream = device.stream()?;
        let mut memory = device.allocate(read)?;
        memory.write(&stream, 0, bytemuck::cast_slice(before))?;
        from.push(memory);
        let mut memory = device.allocate(written)?;
        memory.fill_bytes(&stream, 0)?;
        to.push(memory);
        stream.synchronize()?;
    }
    Ok((from, to))
}

/// Compares the memory of devices with the expected one.
fn check_contents<T: Pod + Default + PartialEq>(
    devices: &[Device],
    held: &[Memory],
    right: &[Vec<T>],
) -> Result<(), Failure> {
    for (rank, ((device, memory), right)) in devices.iter().zip(held).zip(right).enumerate() {
        let mut left = vec![T::default(); right.len()];
        memory.read(&device.stream()?, 0, bytemuck::cast_slice_mut(&mut left))?;
        if let Some(at) = left.iter().zip(right).position(|(left, right)| left != right) {
            let what = format!("element {at} in the memory of device {rank} differs from the plan");
            return Err(Failure::Value(what));
        }
    }
    Ok(())
}

/// The seconds of the plan: the median of several rounds, each with enough launches to be timed.
fn median_seconds(resharding: &mut DeviceMoves, from: &[Memory], to: &mut [Memory]) -> Result<f64, Failure> {
    let mut seconds = |count: usize| -> Result<f64, ReshardError> {
        resharding.wait()?;
        let since = Instant::now();
        for _ in 0..count {
            resharding.go(from, to)?;
        }
        resharding.wait()?;
        Ok(since.elapsed().as_secs_f64() / count as f64)
    };
    let mut rounds = || -> Result<Vec<f64>, ReshardError> {
        seconds(3)?;
        let count = ((ROUND / seconds(3)?) as usize).clamp(1, 1000);
        (0..ROUNDS).map(|_| seconds(count)).collect()
    };
    Ok(median(rounds().map_err(|error| Failure::refused(&error))?))
}

fn report(
    plan: &Plan,
    element: Element,
    devices: &[Device],
    resharding: &DeviceMoves,
    seconds: f64,
    through: DeviceTransport,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let received = (0..devices.len()).map(|rank| plan.received(rank)).max().unwrap_or(0);
    let rate = received as f64 / seconds / 1e9;
    if terminal.json {
        let steps: Vec<String> = plan.steps().iter().map(|step| step.kind.to_string()).collect();
        return Ok(terminal.object(&json!({
            "from": plan.from().to_string(),
            "to": plan.to().to_string(),
            "type": element.to_string(),
            "device": devices.first().map(Device::name),
            "steps": steps,
            "through": through.name(),
            "ways": resharding.ways(),
            "received_bytes": received,
            "median_us": seconds * 1e6,
            "gb_per_s": rate,
            "model_us": plan.seconds() * 1e6,
            "checked": true,
        }))?);
    }
    let mut text = format!("{plan}\n");
    for (number, way) in resharding.ways().iter().enumerate() {
        let _ = writeln!(text, "step {} on device 0: {way}", number + 1);
    }
    let _ = writeln!(text, "all elements on {} devices as simulated, bit by bit", devices.len());
    let _ = writeln!(text, "{:.1} us, the median of {ROUNDS} rounds: {rate:.1} GB/s received", seconds * 1e6);
    Ok(terminal.text(&text)?)
}
