//! `tilewright mesh map`, `reduce` and `softmax` with `--device`: on the GPUs of this machine.
//!
//! Law: the result is poisoned before, and every element of it is compared with its definition
//! before a time counts. What is printed was measured in this run.

use std::fmt::Write as _;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tilewright::gpu::{Device, Memory};
use tilewright::mesh::{MeshError, ShardedLayout};
use tilewright::sharded::{ShardedError, ShardedWork, WorkPlan};

use super::run;
use crate::json::Json;
use crate::kernel::bench::median;
use crate::output::Failure;
use crate::terminal::Terminal;

/// The most elements of memory of GPUs together, of one tensor.
const MAX_MEMORY: i64 = 1 << 28;
/// How long launches are timed at once, in seconds, and how often that is done.
const TURN: f64 = 0.03;
const TURNS: usize = 7;

#[derive(Debug, Args)]
pub struct OnDevices {
    /// Carry it out on the GPUs of this machine, on elements of f32, compare every element, and
    /// time it.
    #[arg(long, conflicts_with = "run")]
    pub device: bool,
}

/// Memory of all devices as f32.
pub fn f32s(memory: &[Vec<f64>]) -> Vec<Vec<f32>> {
    memory.iter().map(|own| own.iter().map(|value| *value as f32).collect()).collect()
}

impl OnDevices {
    /// The bytes of an element there.
    pub fn bytes(&self) -> Option<i64> {
        self.device.then_some(size_of::<f32>() as i64)
    }

    /// That memory is not too large for where it is carried out.
    pub fn fits(&self, layouts: &[&ShardedLayout]) -> Result<(), MeshError> {
        if !self.device {
            return run::fits(layouts);
        }
        let all = |layout: &&ShardedLayout| layout.reach().saturating_mul(layout.mesh().size() as i64);
        match layouts.iter().map(all).max() > Some(MAX_MEMORY) {
            true => Err(MeshError::TooLarge { what: "elements of memory on all devices", limit: MAX_MEMORY }),
            false => Ok(()),
        }
    }

    /// That GPUs are not wanted for what they do not do.
    pub fn refused(&self, what: &str) -> Result<(), Failure> {
        match self.device {
            true => Err(Failure::Usage(format!("{what} is not computed on GPUs yet: use --run between processes"))),
            false => Ok(()),
        }
    }

    /// Prints what is done, and opens the devices.
    pub fn open(&self, plan: &WorkPlan, text: &str, terminal: &mut Terminal) -> Result<Vec<Device>, Failure> {
        if !terminal.json {
            terminal.text(&format!("{text}\nin these steps\n{plan}"))?;
        }
        Ok((0..plan.devices()).map(Device::open).collect::<Result<_, _>>()?)
    }

    /// Carries a plan out, compares the memory of all devices by `compare`, and times it.
    pub fn carry_out(
        &self,
        (plan, devices): (&WorkPlan, &[Device]),
        operands: &[Vec<Vec<f32>>],
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
                let bytes: &[u8] = bytemuck::cast_slice(own);
                let mut memory = device.allocate(bytes.len() as u64)?;
                memory.write(&device.stream()?, 0, bytes)?;
                on_devices.push(memory);
            }
            given.push(on_devices);
        }
        let bytes = plan.bytes(tilewright::sharded::Tensor::Result).unwrap_or(0);
        let mut result: Vec<Memory> = Vec::new();
        for device in devices {
            let (stream, mut memory) = (device.stream()?, device.allocate(bytes)?);
            // NaN: what is not written is found.
            memory.fill_bytes(&stream, 0xff)?;
            stream.synchronize()?;
            result.push(memory);
        }
        let given: Vec<&[Memory]> = given.iter().map(Vec::as_slice).collect();
        // Twice, so that memory between steps is written again that has been read.
        for _ in 0..2 {
            work.launch(&given, &mut result).map_err(refused)?;
        }
        work.wait().map_err(refused)?;
        let mut after = Vec::new();
        for (device, memory) in devices.iter().zip(&result) {
            let mut own = vec![0.0_f32; usize::try_from(bytes).unwrap_or(0) / size_of::<f32>()];
            memory.read(&device.stream()?, 0, bytemuck::cast_slice_mut(&mut own))?;
            after.push(own.into_iter().map(f64::from).collect());
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
        let count = ((TURN / seconds(3)?) as usize).clamp(1, 1000);
        let turns = (0..TURNS).map(|_| seconds(count)).collect::<Result<Vec<_>, _>>()?;
        let seconds = median(turns);
        if terminal.json {
            object["device"] = json!(devices.first().map(Device::name));
            object["median_us"] = json!(seconds * 1e6);
            object["checked"] = json!(true);
            return Ok(terminal.object(&object)?);
        }
        let mut text = format!("all elements on {} devices are what defines them\n", devices.len());
        let _ = writeln!(text, "{:.1} us, the median of {TURNS} turns", seconds * 1e6);
        Ok(terminal.text(&text)?)
    }
}
