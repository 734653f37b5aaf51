//! Checks on a device that kernels write nothing beside their results.
//!
//! ```text
//! cargo build --release -p tilewright --example device_edges
//! target/release/examples/device_edges             # about four minutes on an H200
//! target/release/examples/device_edges --seconds 60 --first 1000
//! ```
//!
//! First TMA: boxes at every edge, with the result of the interpreter beside that of the device, a
//! line for each (`engine.rs`). Then kernels of the library, with random sizes, pitches and bases:
//! each output has guards before it, after it and between its rows, and its numbers are compared
//! with the definition (`chance.rs`). The exit status is 1 if something differs, and 2 if there is
//! no device. It needs only the driver.

mod addresses;
mod chance;
mod engine;
mod guarded;
mod products;
mod tiles;

use std::process::ExitCode;
use std::time::Duration;

use tilewright::gpu::Device;

/// How long kernels are checked, and how many at most.
const SECONDS: u64 = 180;
const COUNT: u64 = 2000;

/// A number behind a word of the arguments.
fn argument(name: &str) -> Option<u64> {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|word| word == name)?;
    arguments.get(at + 1)?.parse().ok()
}

fn main() -> ExitCode {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("{}: {error}", error.code());
            return ExitCode::from(2);
        }
    };
    if let Some(number) = argument("--fact") {
        return fact(&device, number as usize);
    }
    if let Some(number) = argument("--case") {
        let outcome = chance::case(&device, number);
        println!("{number}: {outcome:?}");
        return ExitCode::from(u8::from(outcome.is_err()));
    }
    let (major, minor) = device.capability();
    println!("{device:?}, compute capability {major}.{minor}, driver {}", device.driver_version());
    let mut failed = 0;
    if (major, minor) == (9, 0) {
        match engine::compare(&device) {
            Ok(differ) => failed += differ,
            Err(error) => {
                println!("FAILED    the copy engine: {error}");
                failed += 1;
            }
        }
    } else {
        println!("left out  the copy engine: the device has none");
    }
    let seconds = Duration::from_secs(argument("--seconds").unwrap_or(SECONDS));
    let count = argument("--count").unwrap_or(COUNT);
    failed += chance::all(argument("--first").unwrap_or(0), count, seconds);
    println!("{failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// Runs one box, which is expected to trap.
fn fact(device: &Device, number: usize) -> ExitCode {
    let all = engine::facts();
    let Some(fact) = all.get(number) else { return ExitCode::from(2) };
    match fact.launched(device) {
        Ok(found) => {
            println!("{}: {found}", fact.words());
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{}: {error}", fact.words());
            // A kernel that failed (E0807) has trapped.
            let trapped =
                error.downcast_ref::<tilewright::gpu::GpuError>().is_some_and(|error| error.code() == "E0807");
            ExitCode::from(if trapped { engine::TRAPPED } else { 1 })
        }
    }
}
