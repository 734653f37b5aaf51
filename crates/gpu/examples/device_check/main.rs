//! Everything that needs a device, checked on one.
//!
//! ```text
//! cargo run --release -p tilewright-gpu --example device_check
//! ```
//!
//! A line for each check: `ok` or `FAILED`, its name, and what was found. What a device does not
//! have is left out, and said. With a word behind `--`, only checks whose names have it are made.
//! The exit status is 1 if a check failed, and 2 if there is no device. The last check loses the
//! device on purpose.

mod agreement;
mod dynamic_scheduling;
mod hopper;
mod indivisible;
mod kernels;
mod last;
mod limits;
mod loss;
mod memory;
mod neighbours;
mod order;
mod proxies;
mod together;

use std::error::Error;
use std::process::ExitCode;

use tilewright_gpu::{
    Device, DeviceTensor, Element, ElementType, Function, GpuError, ModuleOptions, Parameter, Stream,
};
use tilewright_layout::Layout;

const KERNELS: &str = include_str!("kernels.ptx");
const HOPPER: &str = include_str!("hopper.ptx");

type Outcome = Result<String, Box<dyn Error>>;
type Check = fn(&Device) -> Outcome;

fn main() -> ExitCode {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("{}: {error}", error.code());
            return ExitCode::from(2);
        }
    };
    let (major, minor) = device.capability();
    println!("{device:?}, compute capability {major}.{minor}, driver {}", device.driver_version());
    println!("{:?}", device.attributes());
    let checks: &[(&str, bool, Check)] = &[
        ("bytes and tensors come back as they went", true, memory::round_trips),
        ("patterns of every size fill memory", true, memory::fills),
        ("compiled, and kept by the driver, kernels are the same", true, kernels::loading),
        ("a kernel scales every element", true, kernels::scaling),
        ("numbers of every size arrive", true, kernels::numbers),
        ("a kernel written with layouts transposes", major >= 8, kernels::transposing),
        ("arithmetic is the interpreter's", major >= 8, agreement::arithmetic),
        ("conversions are the interpreter's", major >= 8, agreement::conversions),
        ("matrix products are the interpreter's", major >= 8, agreement::matrices),
        ("indivisible changes are the interpreter's", major >= 8, indivisible::agree),
        ("clusters, roles and pipelines are the interpreter's", (major, minor) == (9, 0), together::agree),
        ("launches that wait by themselves keep their order", (major, minor) == (9, 0), together::overlapping),
        ("the copy engine and threads share global memory", (major, minor) == (9, 0), proxies::agree),
        ("shared memory up to the limit", true, kernels::shared_memory),
        ("numbers of the tile counter are claimed once", (major, minor) == (9, 0), dynamic_scheduling::claimed),
        ("the last block sees what all have left", major >= 8, last::summed),
        ("threads up to the registers", true, limits::registers),
        ("sizes past 2^31 and 2^32 elements", major >= 8, limits::large),
        ("wrong lists, texts and sizes are refused", true, kernels::refusals),
        ("memory runs out", true, memory::out_of_memory),
        ("graphs replay, events measure", true, order::graphs),
        ("blocks that are resident", true, kernels::occupancy),
        ("two streams wait for each other", true, order::streams),
        ("clusters", major >= 9, hopper::clusters),
        ("overlapping launches keep their order", major >= 9, order::overlapping),
        ("tensor maps load boxes as the layouts say", (major, minor) == (9, 0), hopper::boxes),
        ("registers are reallocated without notes", (major, minor) == (9, 0), kernels::notes),
        ("nothing leaks", true, memory::leaks),
    ];
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut failed = 0;
    let mut made = 0;
    for (name, possible, check) in checks {
        if !name.contains(only.as_str()) {
            continue;
        }
        made += 1;
        if !possible {
            println!("left out  {name}: the device has none");
            continue;
        }
        failed += report(name, check(&device));
    }
    let last = "a lost device is reported";
    if last.contains(only.as_str()) {
        made += 1;
        failed += report(last, loss::losing(device));
    }
    println!("{failed} of {made} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// Prints a line, and counts a failure.
fn report(name: &str, outcome: Outcome) -> usize {
    match outcome {
        Ok(found) => println!("ok        {name}: {found}"),
        Err(error) => {
            println!("FAILED    {name}: {error}");
            return 1;
        }
    }
    0
}

/// Fails with words unless a condition holds.
fn ensure(condition: bool, words: impl FnOnce() -> String) -> Result<(), Box<dyn Error>> {
    if condition { Ok(()) } else { Err(words().into()) }
}

/// Fails unless something is refused with this code, and gives the words.
fn refused<T>(result: Result<T, GpuError>, code: &str) -> Result<String, Box<dyn Error>> {
    match result {
        Ok(_) => Err(format!("{code} was expected, but nothing was refused").into()),
        Err(error) if error.code() == code => Ok(error.to_string()),
        Err(error) => Err(format!("{code} was expected, but there is {}: {error}", error.code()).into()),
    }
}

fn function(device: &Device, text: &str, name: &str, list: &[Parameter]) -> Result<Function, GpuError> {
    device.load(text.as_bytes(), &ModuleOptions::default())?.function(name, list)
}

fn scale(device: &Device) -> Result<Function, GpuError> {
    function(device, KERNELS, "scale", &scale_list())
}

fn scale_list() -> [Parameter; 3] {
    let number = Parameter::scalar;
    [Parameter::write("x", ElementType::F32), number("factor", ElementType::F32), number("count", ElementType::U32)]
}

fn vector<T: Element>(stream: &Stream, count: i64, value: T) -> Result<DeviceTensor<T>, Box<dyn Error>> {
    Ok(DeviceTensor::filled(stream, Layout::mode_of(count, 1)?, value)?)
}
