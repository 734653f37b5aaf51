//! `tilewright mesh map`, `reduce` and `softmax` with `--device`: on the GPUs of this machine.
//!
//! Law: the result is poisoned before, and every element is compared with its definition before a
//! time counts. Printed figures were measured in this run.

use std::fmt::Write as _;
use std::time::Instant;

use clap::{Args, ValueEnum};
use half::{bf16, f16};
use serde_json::json;
use tilewright::gpu::{Device, Memory};
use tilewright::kernel::Element;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx::Target;
use tilewright::measured::DevicePlanner;
use tilewright::mesh::{MeshError, ShardedLayout};
use tilewright::planners::Planner;
use tilewright::sharded::{ShardedError, ShardedWork, WorkPlan};

use super::run;
use crate::json::Json;
use crate::kernel::bench::median;
use crate::output::Failure;
use crate::terminal::Terminal;

/// The largest number of elements of one tensor in the memory of all GPUs together.
const MAX_MEMORY: i64 = 1 << 28;
/// The seconds of launches that are timed together, and the number of repetitions.
const ROUND: f64 = 0.03;
const ROUNDS: usize = 7;

#[derive(Debug, Args)]
pub struct OnDevicesOptions {
    /// Carry it out on the GPUs of this machine, compare every element, and time it.
    #[arg(long, conflicts_with = "run")]
    pub device: bool,
    /// The type of the elements on GPUs.
    #[arg(long = "type", default_value = "f32", requires = "device", value_enum)]
    element: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Type {
    F16,
    Bf16,
    F32,
    F64,
    I32,
    I64,
}

/// Numbers rounded to a type of elements, as bytes.
fn bytes_of(numbers: &[f64], element: Element) -> Vec<u8> {
    fn each<const N: usize>(numbers: &[f64], bytes: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
        numbers.iter().flat_map(|number| bytes(*number)).collect()
    }
    match element {
        Element::F16 => each(numbers, |number| f16::from_f64(number).to_le_bytes()),
        Element::Bf16 => each(numbers, |number| bf16::from_f64(number).to_le_bytes()),
        Element::F64 => each(numbers, f64::to_le_bytes),
        Element::I32 => each(numbers, |number| (number as i32).to_le_bytes()),
        Element::I64 => each(numbers, |number| (number as i64).to_le_bytes()),
        _ => each(numbers, |number| (number as f32).to_le_bytes()),
    }
}

/// The numbers in bytes, which are elements of a type.
fn numbers_of(bytes: &[u8], element: Element) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.chunks_exact(N).filter_map(|bytes| Some(number(bytes.try_into().ok()?))).collect()
    }
    match element {
        Element::F16 => each(bytes, |bytes| f16::from_le_bytes(bytes).to_f64()),
        Element::Bf16 => each(bytes, |bytes| bf16::from_le_bytes(bytes).to_f64()),
        Element::F64 => each(bytes, f64::from_le_bytes),
        Element::I32 => each(bytes, |bytes| f64::from(i32::from_le_bytes(bytes))),
        Element::I64 => each(bytes, |bytes| i64::from_le_bytes(bytes) as f64),
        _ => each(bytes, |bytes| f64::from(f32::from_le_bytes(bytes))),
    }
}

/// The planner of the first device. If there is none, opening the devices reports that later, after
/// anything that is refused on every machine.
pub fn first_planner() -> Box<dyn Planner> {
    match Device::open(0).and_then(|device| DevicePlanner::new(&device)) {
        Ok(planner) => Box::new(planner),
        Err(_) => Box::new(Machine::of_target(Target::Sm90a)),
    }
}

impl OnDevicesOptions {
    /// The type of an element on GPUs.
    pub fn element(&self) -> Element {
        match self.element {
            Type::F16 => Element::F16,
            Type::Bf16 => Element::Bf16,
            Type::F32 => Element::F32,
            Type::F64 => Element::F64,
            Type::I32 => Element::I32,
            Type::I64 => Element::I64,
        }
    }

    /// The bytes of an element on GPUs.
    pub fn bytes(&self) -> Option<i64> {
        self.device.then_some(i64::from(self.element().bytes()))
    }

    /// Half a unit in the last place of an element, relative to it; 0 for integers.
    pub fn rounding(&self) -> f64 {
        match self.element {
            Type::F16 => 2_f64.powi(-11),
            Type::Bf16 => 2_f64.powi(-8),
            Type::F32 => 2_f64.powi(-24),
            Type::F64 => 2_f64.powi(-53),
            Type::I32 | Type::I64 => 0.0,
        }
    }

    /// Checks that memory is not too large for the place of execution.
    pub fn fits(&self, layouts: &[&ShardedLayout]) -> Result<(), MeshError> {
        if self.device { run::fits_in(layouts, MAX_MEMORY) } else { run::fits(layouts) }
    }

    /// Prints the plan, and opens the devices.
    pub fn open(&self, plan: &WorkPlan, text: &str, terminal: &mut Terminal) -> Result<Vec<Device>, Failure> {
        if !terminal.json {
            terminal.text(&format!("{text}\nin these steps\n{plan}"))?;
        }
        Ok((0..plan.devices()).map(Device::open).collect::<Result<_, _>>()?)
    }

    /// Executes a plan, compares the memory of all devices by `compare`, and times it.
    pub fn carry_out(
        &self,
        (plan, devices, made): (&WorkPlan, &[Device], Element),
        operands: &[Vec<Vec<f64>>],
        mut object: Json,
        terminal: &mut Terminal,
        compare: impl Fn(&[Vec<f64>]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let refused = |error: ShardedError| Failure::refused(&error);
        let mut work = ShardedWork::new(devices, plan).map_err(refused)?;
        let mut given = Vec::new();
        for operand in operands {
            let mut on_devices = Vec::new();
            for (device, own) in devices.iter().zip(operand) {
                let bytes = bytes_of(own, self.element());
                let mut memory = device.allocate(bytes.len() as u64)?;
                memory.write(&device.stream()?, 0, &bytes)?;
                on_devices.push(memory);
            }
            given.push(on_devices);
        }
        let bytes = plan.bytes(tilewright::sharded::Tensor::Result).unwrap_or(0);
        let mut result: Vec<Memory> = Vec::new();
        for device in devices {
            let (stream, mut memory) = (device.stream()?, device.allocate(bytes)?);
            // NaN, or -1, so that unwritten elements are found.
            memory.fill_bytes(&stream, 0xff)?;
            stream.synchronize()?;
            result.push(memory);
        }
        let given: Vec<&[Memory]> = given.iter().map(Vec::as_slice).collect();
        // Twice, so that memory between steps that was read is also written again.
        for _ in 0..2 {
            work.launch(&given, &mut result).map_err(refused)?;
        }
        work.wait().map_err(refused)?;
        let mut after = Vec::new();
        for (device, memory) in devices.iter().zip(&result) {
            let mut own = vec![0; usize::try_from(bytes).unwrap_or(0)];
            memory.read(&device.stream()?, 0, &mut own)?;
            after.push(numbers_of(&own, made));
        }
        compare(&after)?;
        let mut seconds = |count: usize| -> Result<f64, Failure> {
            work.wait().map_err(refused)?;
            let since = Instant::now();
            for _ in 0..count {
                work.launch(&given, &mut result).map_err(refused)?;
            }
            work.wait().map_err(refused)?;
            Ok(since.elapsed().as_secs_f64() / count as f64)
        };
        seconds(3)?;
        let count = ((ROUND / seconds(3)?) as usize).clamp(1, 1000);
        let rounds = (0..ROUNDS).map(|_| seconds(count)).collect::<Result<Vec<_>, _>>()?;
        let seconds = median(rounds);
        if terminal.json {
            object["device"] = json!(devices.first().map(Device::name));
            object["type"] = json!(self.element().to_string());
            object["median_us"] = json!(seconds * 1e6);
            object["checked"] = json!(true);
            return Ok(terminal.object(&object)?);
        }
        let mut text = format!("all elements on {} devices equal their definition\n", devices.len());
        let _ = writeln!(text, "{:.1} us, the median of {ROUNDS} rounds", seconds * 1e6);
        Ok(terminal.text(&text)?)
    }
}
