//! The order in which devices work, by an imitation of the driver that writes down what it is given
//! (`order/driver.c`): nothing is read while something may write it, on any device, and the host
//! waits for nothing. Each work runs in a process of its own, which opens the imitation.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use cudarc::driver::{CudaContext, CudaSlice};
use tilewright::gpu::cudarc::{CudarcArgument, CudarcStream};
use tilewright::gpu::{Device, GpuError, Memory, ModuleOptions};
use tilewright::kernel::Element;
use tilewright::mesh::{Machine, Mesh, ShardedLayout, argmax, multiply, reshard, softmax};
use tilewright::reshard::{DeviceReshard, Readers};
use tilewright::sharded::{ShardedPlan, ShardedProduct, ShardedWork, WorkPlan};
use tilewright::tile::Sequence;

use crate::h200;

/// The works, by the names of the tests that do them in a process of their own.
const WORKS: [&str; 7] = [
    "parts_beside_the_tensor",
    "sums_in_two_steps",
    "rows_gathered",
    "sums_scattered",
    "softmax_along_the_mesh",
    "argmax_along_the_mesh",
    "slices_of_cudarc",
];

fn layouts<const N: usize>(mesh: &str, texts: [&str; N]) -> [ShardedLayout; N] {
    let mesh: Mesh = mesh.parse().unwrap();
    texts.map(|text| ShardedLayout::parse(&mesh, text).unwrap())
}

fn opened(count: usize) -> Vec<Device> {
    (0..count).map(|ordinal| Device::open(ordinal).unwrap()).collect()
}

fn memory(devices: &[Device], bytes: u64) -> Vec<Memory> {
    devices.iter().map(|device| device.allocate(bytes).unwrap()).collect()
}

/// A line of the log of this process.
fn mark(line: &str) {
    let path = std::env::var_os("ORDER_LOG").unwrap();
    writeln!(std::fs::OpenOptions::new().append(true).open(path).unwrap(), "{line}").unwrap();
}

/// Three times, between marks.
fn repeated(mut work: impl FnMut()) {
    mark("begin");
    (0..3).for_each(|_| work());
    mark("end");
}

fn resharded(mesh: &str, texts: [&str; 2], readers: Readers) {
    let [from, to] = layouts(mesh, texts);
    let plan = reshard(&from, &to, 4, &Machine::HGX_H200).unwrap();
    let devices = opened(from.mesh().size());
    let mut moving = DeviceReshard::read_by(&devices, &plan, Element::F32, readers).unwrap();
    let [before, after] = moving.bytes();
    let (given, mut result) = (memory(&devices, before), memory(&devices, after));
    repeated(|| moving.launch(&given, &mut result).unwrap());
}

#[test]
#[ignore = "carried out by another test"]
fn parts_beside_the_tensor() {
    let texts = ["((8192,2),4096):((4096,1@x),1)", "(16384,4096):(1,16384) copied 2:1@x"];
    resharded("x=2", texts, Readers::Engines);
}

#[test]
#[ignore = "carried out by another test"]
fn sums_in_two_steps() {
    resharded("x=4", ["(8192,4096):(1,8192) summed 4:1@x", "(8192,4096):(1,8192) copied 4:1@x"], Readers::BySize);
}

fn multiplied(texts: [&str; 3]) {
    let [a, b, d] = layouts("x=2", texts);
    let plan = multiply(&a, &b, &d, 2, 7e14, &Machine::HGX_H200).unwrap();
    let plan = ShardedPlan::new(&"H200".parse::<tilewright::Machine>().unwrap(), &plan, Element::Bf16, Element::Bf16)
        .unwrap()
        .unwrap();
    let devices = opened(2);
    let mut product = ShardedProduct::new(&devices, &plan).unwrap();
    let [a, b, mut d] = plan.bytes().map(|bytes| memory(&devices, bytes));
    repeated(|| product.launch(&a, &b, &mut d).unwrap());
}

#[test]
#[ignore = "carried out by another test"]
fn rows_gathered() {
    let b = "(2048,(1024,2)):(1,(2048,1@x))";
    multiplied(["((1024,2),2048):((2048,1@x),1)", b, "(2048,(1024,2)):(1024,(1,1@x))"]);
}

#[test]
#[ignore = "carried out by another test"]
fn sums_scattered() {
    let (a, b) = ("(8192,(4096,2)):(4096,(1,1@x))", "((4096,2),8192):((1,1@x),4096)");
    multiplied([a, b, "((4096,2),8192):((8192,1@x),1)"]);
}

#[test]
#[ignore = "carried out by another test"]
fn softmax_along_the_mesh() {
    let [matrix, to] = layouts("x=2", ["(512,(256,2)):(1,(512,1@x))", "(512,(256,2)):(1,(512,1@x))"]);
    let plan = softmax(&matrix, &[1], &to, 4, &Machine::HGX_H200).unwrap();
    let plan = WorkPlan::softmax(&h200(), &plan, Element::F32).unwrap();
    let devices = opened(2);
    let mut work = ShardedWork::new(&devices, &plan).unwrap();
    let (given, mut result) = (memory(&devices, 512 * 256 * 4), memory(&devices, 512 * 256 * 4));
    repeated(|| work.launch(&[&given], &mut result).unwrap());
}

#[test]
#[ignore = "carried out by another test"]
fn argmax_along_the_mesh() {
    let [matrix, to] = layouts("x=2", ["(512,(256,2)):(1,(512,1@x))", "512:1 copied 2:1@x"]);
    let plan = argmax(&matrix, &[1], &to, 2, &Machine::HGX_H200).unwrap();
    let plan = WorkPlan::argmax(&h200(), &plan, Element::Bf16).unwrap();
    let devices = opened(2);
    let mut work = ShardedWork::new(&devices, &plan).unwrap();
    let (given, mut result) = (memory(&devices, 512 * 256 * 2), memory(&devices, 512 * 8));
    repeated(|| work.launch(&[&given], &mut result).unwrap());
}

/// `w` is twice `x`, and `y` twice `w`.
fn doubled_twice() -> Sequence {
    let program = |name: &str, [from, to]: [&str; 2]| {
        let text = format!(
            "tile {name} {{
    input  {from}: f32 N:1
    output {to}: f32 N:1
    grid ceil(N/256)
    a = load({from}, (256), (block.x))
    store({to}, (block.x), a + a)
}}"
        );
        text.parse().unwrap()
    };
    Sequence::new(vec![program("first", ["x", "w"]), program("second", ["w", "y"])])
}

/// Slices of cudarc that are written on one stream, and worked on on two others, with one memory
/// for the workspace.
#[test]
#[ignore = "carried out by another test"]
fn slices_of_cudarc() {
    let context = CudaContext::new(0).unwrap();
    let device = Device::of_cudarc(&context).unwrap();
    let sequence = device.compile_sequence(&doubled_twice(), &ModuleOptions::default()).unwrap();
    let mut sized = sequence.at(&[("N", 1000)]).unwrap();

    // One stream alone, for which cudarc keeps no events: a slice of another is refused.
    let own = context.default_stream();
    let (x, mut y) = (own.alloc_zeros::<f32>(1000).unwrap(), own.alloc_zeros::<f32>(1000).unwrap());
    let thread = CudarcStream::new(&device, &context.per_thread_stream()).unwrap();
    let mut both = [("x", (&x).into()), ("y", (&mut y).into())];
    let error = thread.launch_sequence(&mut sized, &mut both).unwrap_err();
    assert_eq!(error.code(), "E0823");
    CudarcStream::new(&device, &own).unwrap().launch_sequence(&mut sized, &mut both).unwrap();

    let copies = context.new_stream().unwrap();
    let streams = [0, 1].map(|_| CudarcStream::new(&device, &context.new_stream().unwrap()).unwrap());
    let mut x = copies.alloc_zeros::<f32>(1000).unwrap();
    // Two results side by side in one allocation: parts of a slice.
    let mut results = copies.alloc_zeros::<f32>(2048).unwrap();
    what_is_no_tensor_is_refused(&device, &streams[0], &mut sized);
    repeated(|| {
        copies.memset_zeros(&mut x).unwrap();
        let (mut first, mut second) = results.split_at_mut(1024);
        for (stream, result) in streams.iter().zip([&mut first, &mut second]) {
            stream.launch_sequence(&mut sized, &mut [("x", (&x).into()), ("y", result.into())]).unwrap();
        }
        copies.memset_zeros(&mut second).unwrap();
    });
}

/// Types, lengths, devices and what may be written are those that the sequence needs.
fn what_is_no_tensor_is_refused(device: &Device, stream: &CudarcStream, sized: &mut tilewright::gpu::SizedSequence) {
    let own = stream.cudarc();
    let x = own.alloc_zeros::<f32>(1000).unwrap();
    let mut y = own.alloc_zeros::<f32>(1001).unwrap();
    fn refused<'a>(
        stream: &CudarcStream,
        sized: &mut tilewright::gpu::SizedSequence,
        x: &'a CudaSlice<f32>,
        y: CudarcArgument<'a>,
    ) -> GpuError {
        stream.launch_sequence(sized, &mut [("x", x.into()), ("y", y)]).unwrap_err()
    }
    let error = refused(stream, sized, &x, (&y).into());
    assert_eq!(
        error.to_string(),
        "parameter 2 of first .. second, `y`, is memory of f32 that is written, but there is memory of f32 that may \
         only be read"
    );
    assert_eq!(refused(stream, sized, &x, (&mut own.alloc_zeros::<i32>(1000).unwrap()).into()).code(), "E0812");
    let error = refused(stream, sized, &x, (&mut y.slice_mut(..999)).into());
    assert_eq!(error.to_string(), "`y` of first .. second takes 4000 bytes, but the memory has 3996");
    // An address that no vector of the kernels begins at.
    assert_eq!(refused(stream, sized, &x, (&mut y.slice_mut(1..)).into()).code(), "E0813");
    assert_eq!(refused(stream, sized, &x, (&mut y.slice_mut(..0)).into()).code(), "E0813");
    let other = CudaContext::new(1).unwrap();
    let mut elsewhere = other.default_stream().alloc_zeros::<f32>(1000).unwrap();
    let error = refused(stream, sized, &x, (&mut elsewhere).into());
    assert_eq!(error.to_string(), "a slice is of device 1, but device 0 is wanted");
    assert_eq!(CudarcStream::new(device, &other.default_stream()).unwrap_err().code(), "E0814");
    // Memory of our own is an argument too.
    let mut room = device.allocate(4000).unwrap();
    let room = tilewright::gpu::Argument::from(&mut room);
    stream.launch_sequence(sized, &mut [("x", (&x).into()), ("y", room.into())]).unwrap();
}

/// The imitation, compiled.
fn folder() -> PathBuf {
    static FOLDER: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("order-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/order/driver.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-w", "-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so.1")).arg(source);
        assert!(compiler.status().unwrap().success());
        // Cudarc looks for this name first.
        std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcuda.so")).unwrap();
        folder
    });
    made.clone()
}

/// A test in a process of its own, with this many devices; and what was written down.
fn child(work: &str, devices: usize, alone: bool) -> (Output, String) {
    let log = folder().join(format!("{work}-{devices}-{alone}.log"));
    std::fs::write(&log, "").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("order::{work}"), "--exact", "--ignored", "--nocapture"]).env("LD_LIBRARY_PATH", folder());
    command.env("ORDER_LOG", &log).env("ORDER_DEVICES", devices.to_string()).env("TILEWRIGHT_CACHE_DIR", "");
    if alone {
        command.env("ORDER_ALONE", "1");
    }
    (command.output().unwrap(), std::fs::read_to_string(log).unwrap())
}

/// How far each stream has come, by its number.
type Clock = BTreeMap<u64, usize>;

fn joined(clock: &mut Clock, other: &Clock) {
    for (stream, at) in other {
        let own = clock.entry(*stream).or_insert(0);
        *own = (*own).max(*at);
    }
}

/// What is given to streams between the marks, checked: how many times something was read that was
/// written before, and how often on another stream, too.
fn checked(work: &str, log: &str) -> [usize; 2] {
    let mut allocated: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut streams, mut events): (BTreeMap<u64, Clock>, BTreeMap<u64, Clock>) = Default::default();
    // For each allocation, who wrote and read it last on each stream.
    let mut written: BTreeMap<u64, Clock> = BTreeMap::new();
    let mut read: BTreeMap<u64, Clock> = BTreeMap::new();
    let (mut between, mut counts) = (false, [0, 0]);
    for line in log.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        match (name, &numbers[..]) {
            ("begin", _) => between = true,
            ("end", _) => return counts,
            ("alloc", [address, bytes]) => {
                assert!(!between, "{work} allocates memory");
                allocated.insert(*address, *bytes);
            }
            ("sync", _) => assert!(!between, "{work}: the host waits"),
            ("record", [stream, event]) => {
                let clock = streams.entry(*stream).or_default().clone();
                events.insert(*event, clock);
            }
            ("wait", [stream, event]) => {
                // An event that was never recorded is not waited for.
                let clock = events.get(event).cloned().unwrap_or_default();
                joined(streams.entry(*stream).or_default(), &clock);
            }
            ("copy" | "set" | "launch", [stream, places @ ..]) => {
                let clock = streams.entry(*stream).or_default();
                *clock.entry(*stream).or_insert(0) += 1;
                let clock = clock.clone();
                let memory = |place: &u64| {
                    let (address, bytes) = allocated.range(..=*place).next_back()?;
                    (place - address < *bytes).then_some(*address)
                };
                let mut places: Vec<u64> = places.iter().filter_map(memory).collect();
                // A kernel writes the last of its tensors, a copy the first.
                if name == "launch" {
                    places.rotate_right(1);
                }
                let is_before = |other: &Clock| other.iter().all(|(stream, at)| clock.get(stream) >= Some(at));
                let (into, from) = places.split_first().unwrap();
                for place in from {
                    if let Some(writers) = written.get(place) {
                        assert!(is_before(writers), "{work}: {line} reads what may not be there yet");
                        counts[0] += 1;
                        counts[1] += usize::from(writers.keys().any(|other| other != stream));
                    }
                    read.entry(*place).or_default().insert(*stream, clock[stream]);
                }
                if let Some(readers) = read.get(into) {
                    assert!(is_before(readers), "{work}: {line} writes what may still be read");
                }
                written.entry(*into).or_default().insert(*stream, clock[stream]);
            }
            _ => {}
        }
    }
    panic!("{work} did not come to its end");
}

#[test]
fn nothing_is_read_while_it_may_be_written() {
    for work in WORKS {
        let (output, log) = child(work, 4, false);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let [reads, of_others] = checked(work, &log);
        assert!(reads > 2 && of_others > 0, "{work}: {reads} reads, {of_others} of other streams");
    }
}

/// The kernels that put a part in place go before those that move what stays on the device: the
/// next part waits for them.
#[test]
fn parts_are_put_in_place_first() {
    let (_, log) = child("parts_beside_the_tensor", 2, false);
    let streams = |name: &str| -> Vec<&str> {
        let words = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        words.filter(|words| words[0] == name).filter_map(|words| words.get(1).copied()).collect()
    };
    let urgent = streams("urgent");
    let launches = streams("launch");
    let put = launches.iter().filter(|stream| urgent.contains(stream)).count();
    // Three times, on two devices: four parts of 128 MiB each, and what stays.
    assert_eq!((put, launches.len() - put), (3 * 2 * 4, 3 * 2), "{urgent:?}");
    assert!(streams("copy").iter().all(|stream| !urgent.contains(stream)));
}

#[test]
fn what_cannot_be_is_refused() {
    // One device alone; and two that do not reach each other.
    for (devices, alone, words) in [(1, false, "NoDevice"), (2, true, "217")] {
        let (output, log) = child("rows_gathered", devices, alone);
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains(words), "{said}");
        assert!(!log.contains("launch"), "{log}");
    }
}
