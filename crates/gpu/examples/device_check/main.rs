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
mod indivisible;
mod neighbours;
mod together;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use half::bf16;
use tilewright_atoms::{SwizzleMode, TensorMap};
use tilewright_gpu::{
    Access, Cache, Device, DeviceTensor, Element, ElementType, EncodedTensorMap, Function, GpuError, Graph, Launch,
    ModuleOptions, Origin, Outside, Parameter, Promotion, Stream,
};
use tilewright_kernel::Kernel;
use tilewright_layout::{Composed, Layout};
use tilewright_tensor::Tensor;

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
        ("bytes and tensors come back as they went", true, round_trips),
        ("patterns of every size fill memory", true, fills),
        ("compiled, cached and loaded alone, kernels are the same", true, loading),
        ("a kernel scales every element", true, scaling),
        ("numbers of every size arrive", true, numbers),
        ("a kernel written with layouts transposes", major >= 8, transposing),
        ("arithmetic is the interpreter's", major >= 8, agreement::arithmetic),
        ("conversions are the interpreter's", major >= 8, agreement::conversions),
        ("matrix products are the interpreter's", major >= 8, agreement::matrices),
        ("indivisible changes are the interpreter's", major >= 8, indivisible::agree),
        ("clusters, roles and pipelines are the interpreter's", (major, minor) == (9, 0), together::agree),
        ("launches that wait by themselves keep their order", (major, minor) == (9, 0), together::overlapping),
        ("shared memory up to the limit", true, shared_memory),
        ("wrong lists, texts and sizes are refused", true, refusals),
        ("memory runs out", true, out_of_memory),
        ("graphs replay, events measure", true, graphs),
        ("blocks that are resident", true, occupancy),
        ("two streams wait for each other", true, streams),
        ("clusters", major >= 9, clusters),
        ("overlapping launches keep their order", major >= 9, overlapping),
        ("tensor maps load boxes as the layouts say", (major, minor) == (9, 0), boxes),
        ("notes of the linker", (major, minor) == (9, 0), notes),
        ("nothing leaks", true, leaks),
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
        failed += report(last, losing(device));
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

fn uncached() -> ModuleOptions {
    ModuleOptions::default().cache(Cache::none())
}

fn function(device: &Device, text: &str, name: &str, list: &[Parameter]) -> Result<Function, GpuError> {
    device.load(text.as_bytes(), &uncached())?.function(name, list)
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

fn round_trip<T: Element + PartialEq>(stream: &Stream, value: impl Fn(i64) -> T) -> Result<(), Box<dyn Error>> {
    for layout in ["(37,61):(61,1)", "(3,5):(1,4)", "7:-2", "((2,2),3):((1,6),2)", "1:0", "(1000,999):(1,1001)"] {
        let host = Tensor::from_fn(layout.parse::<Layout>()?, &value)?;
        let back = DeviceTensor::from_tensor(stream, &host)?.read(stream)?;
        ensure(back.as_slice() == host.as_slice(), || format!("{layout} of {} came back otherwise", T::TYPE))?;
    }
    Ok(())
}

fn round_trips(device: &Device) -> Outcome {
    let stream = device.stream()?;
    round_trip(&stream, |index| index as u8)?;
    round_trip(&stream, |index| index as i16)?;
    round_trip(&stream, |index| bf16::from_f32(index as f32))?;
    round_trip(&stream, |index| index as f32)?;
    round_trip(&stream, |index| index as f64)?;
    round_trip(&stream, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64))?;
    let swizzled: Composed = "S<3,3,3> o 0 o (64,64):(64,1)".parse()?;
    let host = Tensor::from_fn(swizzled, |index| index as u16)?;
    let back = DeviceTensor::from_tensor(&stream, &host)?.read(&stream)?;
    ensure(back.as_slice() == host.as_slice(), || "a swizzled tensor came back otherwise".into())?;
    Ok("six types, seven layouts".into())
}

fn fill<T: Element + PartialEq>(stream: &Stream, value: T) -> Result<(), Box<dyn Error>> {
    for count in [1, 2, 3, 1000, 1 << 20] {
        let tensor = vector(stream, count, value)?;
        let there = tensor.read(stream)?;
        ensure(there.as_slice().iter().all(|found| *found == value), || format!("{count} of {}", T::TYPE))?;
    }
    Ok(())
}

fn fills(device: &Device) -> Outcome {
    let stream = device.stream()?;
    fill(&stream, 0xa5_u8)?;
    fill(&stream, 0xa55a_u16)?;
    fill(&stream, 0xdead_beef_u32)?;
    fill(&stream, -1.5e300_f64)?;
    Ok("1 to 2^20 elements of 1, 2, 4 and 8 bytes".into())
}

/// The same text by way of the linker, from the cache and alone: times, and the resources of each
/// kernel.
fn loading(device: &Device) -> Outcome {
    let folder = tempfile::tempdir()?;
    let kept = ModuleOptions::default().cache(Cache::in_folder(folder.path()));
    // A text that nobody has compiled before.
    let text = format!("// {:?}\n{KERNELS}", std::time::SystemTime::now());
    let mut found = Vec::new();
    let mut resources = Vec::new();
    for (options, origin) in [(&kept, Origin::Compiled), (&kept, Origin::Cached), (&uncached(), Origin::Compiled)] {
        let begin = Instant::now();
        let module = device.load(text.as_bytes(), options)?;
        let scale = module.function("scale", &scale_list())?;
        found.push(format!("{:.2} ms", begin.elapsed().as_secs_f64() * 1e3));
        ensure(module.origin() == origin, || format!("{origin:?} was expected, but it is {:?}", module.origin()))?;
        resources.push(*scale.resources());
    }
    let [first, .., last] = resources.as_slice() else { return Err("no resources".into()) };
    ensure(resources.iter().all(|these| these == first), || format!("linked {first:?}, alone {last:?}"))?;
    let [compiled, cached, alone] = found.as_slice() else { return Err("no times".into()) };
    Ok(format!("compiled {compiled}, cached {cached}, alone {alone}; {first:?}"))
}

fn scaling(device: &Device) -> Outcome {
    let (stream, scale) = (device.stream()?, scale(device)?);
    for count in [1_u32, 255, 256, 257, 1 << 20, (1 << 24) + 3] {
        let host = Tensor::from_fn(Layout::mode_of(i64::from(count), 1)?, |index| index as f32)?;
        let mut x = DeviceTensor::from_tensor(&stream, &host)?;
        let launch = Launch::new([count.div_ceil(256), 1, 1], [256, 1, 1]);
        scale.launch(&stream, &launch, &[(&mut x).into(), 0.5_f32.into(), count.into()])?;
        let found = x.read(&stream)?;
        let wrong = found.as_slice().iter().zip(host.as_slice()).position(|(found, input)| *found != input * 0.5);
        ensure(wrong.is_none(), || format!("element {wrong:?} of {count}"))?;
    }
    Ok("1 to 2^24 + 3 elements".into())
}

fn numbers(device: &Device) -> Outcome {
    let list = [
        Parameter::write("out", ElementType::U64).at_least(48),
        Parameter::scalar("a", ElementType::U8),
        Parameter::scalar("b", ElementType::U16),
        Parameter::scalar("c", ElementType::U32),
        Parameter::scalar("d", ElementType::U64),
        Parameter::scalar("e", ElementType::F32),
        Parameter::scalar("f", ElementType::F64),
    ];
    let (stream, numbers) = (device.stream()?, function(device, KERNELS, "numbers", &list)?);
    let mut out = vector(&stream, 6, 0_u64)?;
    let arguments = [
        (&mut out).into(),
        0xab_u8.into(),
        0xabcd_u16.into(),
        0xabcd_ef01_u32.into(),
        0x0123_4567_89ab_cdef_u64.into(),
        1.25_f32.into(),
        (-2.5_f64).into(),
    ];
    numbers.launch(&stream, &Launch::new([1, 1, 1], [1, 1, 1]), &arguments)?;
    let found = out.read(&stream)?;
    let wanted =
        [0xab, 0xabcd, 0xabcd_ef01, 0x0123_4567_89ab_cdef, u64::from(1.25_f32.to_bits()), (-2.5_f64).to_bits()];
    ensure(found.as_slice() == wanted, || format!("{found:?} instead of {wanted:x?}"))?;
    Ok("8 to 64 bits".into())
}

/// Transposes a matrix through shared memory, in tiles of 32 x 32.
fn transposed() -> Result<Kernel, Box<dyn Error>> {
    let kernel = Kernel::build("transposed", |k| {
        let from = k.input::<f32>("from", "(M{div=32},N{div=32}):(N,1)")?;
        let to = k.output::<f32>("to", "(N,M):(M,1)")?;
        let tile = k.shared::<f32>("(32,32):(33,1)")?;
        let held = "(256,4):(1,256)".parse()?;
        let from = from.local_tile("(32,32)", k.block("(x,y)")?)?.select(&[1, 0])?;
        let to = to.local_tile("(32,32)", k.block("(y,x)")?)?.select(&[1, 0])?;
        k.threads(256)?;
        let rows = from.compose_layout(&held)?.thread_part()?.load()?;
        tile.select(&[1, 0])?.compose_layout(&held)?.thread_part()?.store(&rows)?;
        k.barrier();
        let columns = tile.compose_layout(&held)?.thread_part()?.load()?;
        to.compose_layout(&held)?.thread_part()?.store(&columns)
    })?;
    Ok(kernel)
}

/// A kernel that was written with layouts.
fn transposing(device: &Device) -> Outcome {
    let kernel = transposed()?;
    let stream = device.stream()?;
    let compiled = device.compile(&kernel, &uncached())?;
    let mut found = 0;
    for [m, n] in [[32, 32], [1024, 96], [64, 2048]] {
        let (rows, columns): (Layout, Layout) =
            (format!("({m},{n}):({n},1)").parse()?, format!("({n},{m}):({m},1)").parse()?);
        let numbers = Tensor::from_vec((0..m * n).map(|at| at as f32).collect(), rows)?;
        let from = DeviceTensor::from_tensor(&stream, &numbers)?;
        let mut to = DeviceTensor::filled(&stream, columns, f32::NAN)?;
        compiled.at(&[("M", m), ("N", n)])?.launch(&stream, &[(&from).into(), (&mut to).into()])?;
        let to = to.read(&stream)?;
        for row in 0..m {
            for column in 0..n {
                let (wanted, got) = (numbers.get([row, column])?, to.get([column, row])?);
                ensure(wanted == got, || format!("({column},{row}) of {n} x {m} is {got}, and should be {wanted}"))?;
                found += 1;
            }
        }
    }
    Ok(format!("{found} elements, {} registers", compiled.at(&[("M", 32), ("N", 32)])?.resources().registers))
}

fn shared_memory(device: &Device) -> Outcome {
    let list = [Parameter::write("x", ElementType::U32), Parameter::scalar("pitch", ElementType::U32)];
    let (stream, reverse) = (device.stream()?, function(device, KERNELS, "reverse", &list)?);
    let limit = device.attributes().block_shared_bytes;
    for bytes in [1024, 48 << 10, (48 << 10) + 1024, limit] {
        let host = Tensor::from_fn(Layout::mode_of(256, 1)?, |index| index as u32)?;
        let mut x = DeviceTensor::from_tensor(&stream, &host)?;
        let launch = Launch::new([1, 1, 1], [256, 1, 1]).shared_bytes(bytes);
        reverse.launch(&stream, &launch, &[(&mut x).into(), (bytes / 256).into()])?;
        let found = x.read(&stream)?;
        let right = found.as_slice().iter().zip(0..256).all(|(found, index)| *found == 255 - index);
        ensure(right, || format!("{bytes} bytes"))?;
    }
    let mut x = vector(&stream, 256, 0_u32)?;
    let launch = Launch::new([1, 1, 1], [256, 1, 1]).shared_bytes(limit + 1);
    refused(reverse.launch(&stream, &launch, &[(&mut x).into(), 4_u32.into()]), "E0816")?;
    Ok(format!("up to {limit} bytes, and one more refused"))
}

fn refusals(device: &Device) -> Outcome {
    let module = device.load(KERNELS.as_bytes(), &uncached())?;
    refused(module.function("nobody", &[]), "E0811")?;
    let list = scale_list();
    refused(module.function("scale", list.get(..2).unwrap_or(&[])), "E0812")?;
    let more = [list.as_slice(), &[Parameter::scalar("more", ElementType::U8)]].concat();
    refused(module.function("scale", &more), "E0812")?;
    for options in [uncached(), ModuleOptions::default().cache(Cache::in_folder(tempfile::tempdir()?.path()))] {
        let load = |text: &str| device.load(text.as_bytes(), &options);
        let log = refused(load(&KERNELS.replace("red.global", "read.global")), "E0808")?;
        ensure(log.contains("read"), || format!("the log does not name the word: {log}"))?;
        refused(load(&KERNELS.replace("sm_80", "sm_121a")), "E0804")?;
        refused(load(&KERNELS.replace(".version 8.0", ".version 99.9")), "E0802")?;
    }
    let (stream, trouble) = (device.stream()?, device.load(b"\x7fELF is not all", &uncached()));
    refused(trouble, "E0809")?;
    let scale = scale(device)?;
    let mut x = vector(&stream, 8, 1.0_f32)?;
    let arguments = [(&mut x).into(), 1.0_f32.into(), 8_u32.into()];
    let threads = scale.resources().block_threads;
    let wide = Launch::new([1, 1, 1], [threads / 32, 33, 1]);
    refused(scale.launch(&stream, &wide, &arguments), "E0816")?;
    // What only the driver knows: more blocks than are resident at once.
    let many = Launch::new([1 << 20, 1, 1], [256, 1, 1]).cooperative();
    let words = refused(scale.launch(&stream, &many, &arguments), "E0807")?;
    // None of this harmed the device.
    scale.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]).cooperative(), &arguments)?;
    stream.synchronize()?;
    Ok(words)
}

fn out_of_memory(device: &Device) -> Outcome {
    let words = refused(device.allocate(device.attributes().memory_bytes + 1), "E0805")?;
    refused(device.allocate(u64::MAX), "E0805")?;
    drop(device.allocate(1 << 20)?);
    Ok(words)
}

fn graphs(device: &Device) -> Outcome {
    let (stream, scale) = (device.stream()?, scale(device)?);
    let count = 1_u32 << 20;
    let mut x = vector(&stream, i64::from(count), 1.0_f32)?;
    let launch = Launch::new([count / 256, 1, 1], [256, 1, 1]);
    let seconds = {
        let arguments = [(&mut x).into(), 2.0_f32.into(), count.into()];
        let graph =
            Graph::capture(&stream, |capture| (0..10).try_for_each(|_| capture.launch(&scale, &launch, &arguments)))?;
        let (begin, end) = (device.event()?, device.event()?);
        stream.record(&begin)?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        stream.record(&end)?;
        end.seconds_since(&begin)?
    };
    let found = x.read(&stream)?;
    ensure(found.as_slice().iter().all(|found| *found == 1048576.0), || "not 2^20".into())?;
    ensure(seconds > 0.0, || format!("{seconds} s"))?;
    let unmeasured = device.event()?;
    refused(unmeasured.seconds_since(&device.event()?), "E0819")?;
    Ok(format!("20 launches of 4 MiB in two replays, {:.1} us each", seconds / 20.0 * 1e6))
}

fn occupancy(device: &Device) -> Outcome {
    let scale = scale(device)?;
    let blocks = scale.resident_blocks(&Launch::new([1, 1, 1], [256, 1, 1]))?;
    let wanted = device.attributes().multiprocessor_threads / 256;
    ensure(blocks == wanted, || format!("{blocks} instead of {wanted} blocks of 256 threads"))?;
    Ok(format!("{blocks} blocks of 256 threads on a multiprocessor"))
}

fn streams(device: &Device) -> Outcome {
    let (first, second, scale) = (device.stream()?, device.stream()?, scale(device)?);
    let (count, mut launched) = (1_u32 << 22, device.event()?);
    let mut x = vector(&first, i64::from(count), 1.0_f32)?;
    let launch = Launch::new([count / 256, 1, 1], [256, 1, 1]);
    for _ in 0..8 {
        for (stream, other) in [(&first, &second), (&second, &first)] {
            scale.launch(stream, &launch, &[(&mut x).into(), 2.0_f32.into(), count.into()])?;
            stream.record(&launched)?;
            other.wait(&launched)?;
            launched = device.event()?;
        }
    }
    let found = x.read(&first)?;
    ensure(found.as_slice().iter().all(|found| *found == 65536.0), || "not 2^16".into())?;
    Ok("16 launches, one after another".into())
}

fn clusters(device: &Device) -> Outcome {
    let list = [Parameter::write("out", ElementType::U32)];
    let (stream, ranks) = (device.stream()?, function(device, HOPPER, "ranks", &list)?);
    let mut held = Vec::new();
    for blocks in [1_u32, 2, 4, 8, 16] {
        let mut out = vector(&stream, 2 * 64, u32::MAX)?;
        let launch = Launch::new([64, 1, 1], [32, 1, 1]).cluster([blocks, 1, 1]);
        ranks.launch(&stream, &launch, &[(&mut out).into()])?;
        let found = out.read(&stream)?;
        let wanted: Vec<u32> = (0..64).flat_map(|block| [block % blocks, blocks]).collect();
        ensure(found.as_slice() == wanted, || format!("clusters of {blocks}: {found:?}"))?;
        held.push(format!("{} of {blocks}", ranks.resident_clusters(&launch)?));
    }
    Ok(format!("clusters held at once: {}", held.join(", ")))
}

fn overlapping(device: &Device) -> Outcome {
    let (stream, chain) =
        (device.stream()?, function(device, HOPPER, "chain", &[Parameter::write("x", ElementType::U32)])?);
    let launch = Launch::new([1, 1, 1], [1, 1, 1]).overlapping();
    for _ in 0..100 {
        let mut x = vector(&stream, 1, 0_u32)?;
        (0..31).try_for_each(|_| chain.launch(&stream, &launch, &[(&mut x).into()]))?;
        let found = *x.read(&stream)?.get(0)?;
        ensure(found == (1 << 31) - 1, || format!("{found:#x}"))?;
    }
    Ok("100 chains of 31 launches".into())
}

/// Loads boxes by tensor maps, in every swizzle, and compares shared memory as it lies with the
/// layouts.
fn boxes(device: &Device) -> Outcome {
    let list = [
        Parameter::tensor_map("map", Access::Read),
        Parameter::write("out", ElementType::F32).at_least(8192),
        Parameter::scalar("column", ElementType::S32),
        Parameter::scalar("row", ElementType::S32),
    ];
    let (stream, load) = (device.stream()?, function(device, HOPPER, "load", &list)?);
    let (rows, columns) = (300_i64, 104_i64);
    let layout: Layout = format!("({rows},{columns}):({columns},1)").parse()?;
    let host = Tensor::from_fn(layout.clone(), |index| (index + 1) as f32)?;
    let tensor = DeviceTensor::from_tensor(&stream, &host)?;
    for (swizzle, width) in
        [(SwizzleMode::None, 32), (SwizzleMode::Bytes32, 8), (SwizzleMode::Bytes64, 16), (SwizzleMode::Bytes128, 32)]
    {
        let height = 2048 / width;
        let shared: Layout = format!("({height},{width}):({width},1)").parse()?;
        let boxes = TensorMap::new(&layout, &format!("({height},{width})").parse()?, &shared, 32, swizzle)?;
        let map = EncodedTensorMap::new(&tensor, &boxes, swizzle, Promotion::Bytes128, Outside::Zeros)?;
        let places = Composed::new(swizzle.swizzle(32)?, 0, shared)?;
        for (column, row) in [(0_i32, 0_i32), (64, 50), (96, 290), (-8, -3)] {
            let mut out = vector(&stream, 2048, f32::NAN)?;
            let arguments = [(&map).into(), (&mut out).into(), column.into(), row.into()];
            load.launch(&stream, &Launch::new([1, 1, 1], [128, 1, 1]).shared_bytes(8192), &arguments)?;
            let found = out.read(&stream)?;
            for index in 0..2048 {
                let (i, j) = (index % height + i64::from(row), index / height + i64::from(column));
                let inside = (0..rows).contains(&i) && (0..columns).contains(&j);
                let wanted = if inside { (i + j * rows + 1) as f32 } else { 0.0 };
                let there = *found.get(places.eval(&index)?)?;
                ensure(there == wanted, || {
                    format!("{swizzle}, box at ({row},{column}), ({i},{j}): {there}, not {wanted}")
                })?;
            }
        }
    }
    Ok("four swizzles, boxes inside and past every edge".into())
}

/// What the linker notes is not in what is loaded.
fn notes(device: &Device) -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = ModuleOptions::default().cache(Cache::in_folder(folder.path()));
    let module = device.load(HOPPER.as_bytes(), &options)?;
    let speed = module.notes().lines().find(|line| line.contains("(C75"));
    let entries = std::fs::read_dir(folder.path())?.count();
    ensure(speed.is_none(), || format!("{speed:?}"))?;
    let alone = device.load(HOPPER.as_bytes(), &uncached().refuse_notes())?;
    let list = [Parameter::write("x", ElementType::U32)];
    let (kept, alone) = (module.function("registers", &list)?, alone.function("registers", &list)?);
    ensure(kept.resources() == alone.resources(), || format!("{:?}, alone {:?}", kept.resources(), alone.resources()))?;
    Ok(format!("{} entries in the cache, {:?}, notes: {:?}", entries, kept.resources(), module.notes()))
}

fn leaks(device: &Device) -> Outcome {
    let free = device.free_bytes()?;
    for _ in 0..200 {
        let (stream, scale) = (device.stream()?, scale(device)?);
        let mut x = vector(&stream, 1 << 22, 1.0_f32)?;
        let (launch, count) = (Launch::new([1 << 14, 1, 1], [256, 1, 1]), 1_u32 << 22);
        let arguments = [(&mut x).into(), 1.0_f32.into(), count.into()];
        let graph = Graph::capture(&stream, |capture| capture.launch(&scale, &launch, &arguments))?;
        graph.launch(&stream)?;
        device.event()?;
    }
    let now = device.free_bytes()?;
    ensure(now + (64 << 20) > free, || format!("{free} bytes were free, and {now} are"))?;
    Ok(format!("{free} bytes were free before 200 rounds of 16 MiB, {now} are after"))
}

/// Loses the device, gives everything back, and opens it again.
fn losing(device: Device) -> Outcome {
    let (stream, ordinal) = (device.stream()?, device.ordinal());
    let astray = function(&device, KERNELS, "astray", &[])?;
    astray.launch(&stream, &Launch::new([3, 1, 1], [32, 1, 1]), &[])?;
    let words = refused(stream.synchronize(), "E0807")?;
    ensure(words.contains("astray, grid (3,1,1), block (32,1,1)"), || words.clone())?;
    refused(stream.synchronize(), "E0806")?;
    refused(device.allocate(16), "E0806")?;
    drop((astray, stream, device));
    // The manual promises nothing here, so either is right if it is said.
    let again = match Device::open(ordinal).and_then(|again| scale_once(&again)) {
        Ok(()) => "opened again, it works".into(),
        Err(error) => format!("opened again: {}: {error}", error.code()),
    };
    Ok(format!("{words}; {again}"))
}

fn scale_once(device: &Device) -> Result<(), GpuError> {
    let (stream, scale, mut x) = (device.stream()?, scale(device)?, device.allocate(16)?);
    let arguments = [(&mut x).into(), 1.0_f32.into(), 4_u32.into()];
    scale.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &arguments)?;
    stream.synchronize()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_transpose_is_in_order() {
        let kernel = super::transposed().unwrap();
        tilewright_kernel::interpret::check(kernel.program(), &[("M", 64), ("N", 96)]).unwrap();
    }
}
