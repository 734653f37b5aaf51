//! Sequences of tile programs: what is launched with which tensors, and what is refused before the
//! launch.

use tilewright_kernel::{Element, ElementType, LaunchArguments};
use tilewright_layout::Layout;
use tilewright_tile::{Program, Sequence};

use super::fake::{Launched, books};
use super::launches::opened;
use crate::device::Device;
use crate::device_sequence::{DeviceSequence, SizedSequence};
use crate::device_tensor::DeviceTensor;
use crate::error::GpuError;
use crate::graph::Graph;
use crate::module::ModuleOptions;
use crate::stream::Stream;

/// A program in which `output` is `input` times `factor`, with rows of four and separate pitches.
fn scaled(name: &str, input: &str, output: &str) -> Program {
    let text = format!(
        "tile {name} {{
    input  {input}: f32 (N,4):({input}_pitch{{div=4}},1)
    output {output}: f32 (N,4):({output}_pitch{{div=4}},1)
    scalar factor: f32
    grid N
    store({output}, (block.x, 0), load({input}, (1,4), (block.x, 0)) * factor)
}}"
    );
    text.parse().unwrap()
}

/// A sequence of two programs: `w` from `x`, and `y` from `w`.
fn two() -> Sequence {
    Sequence::new(vec![scaled("first", "x", "w"), scaled("second", "w", "y")])
}

fn compiled(device: &Device, sequence: &Sequence) -> Result<DeviceSequence, GpuError> {
    device.compile_sequence(sequence, &ModuleOptions::default())
}

const SIZES: &[(&str, i64)] = &[("N", 3), ("x_pitch", 8), ("w_pitch", 4), ("y_pitch", 4)];

fn half(name: &str, element: Element) -> Option<u64> {
    (name == "factor" && element == Element::F32).then_some(ElementType::to_bits(0.5_f32))
}

fn sized(sequence: &DeviceSequence) -> SizedSequence {
    sequence.at(LaunchArguments { sizes: SIZES, numbers: Some(&half) }).unwrap()
}

fn rows(stream: &Stream, layout: &str) -> DeviceTensor<f32> {
    DeviceTensor::filled(stream, layout.parse::<Layout>().unwrap(), 1.0).unwrap()
}

const X: &str = "(3,4):(8,1)";
const Y: &str = "(3,4):(4,1)";

/// The launches during `work`, in order.
fn history(work: impl FnOnce()) -> Vec<Launched> {
    books(|books| books.history = Some(Vec::new()));
    work();
    books(|books| books.history.take()).unwrap()
}

/// The number of calls of a driver function during `work`.
fn calls(symbol: &str, work: impl FnOnce()) -> usize {
    let before = books(|books| books.trace.len());
    work();
    books(|books| books.trace[before..].iter().filter(|call| **call == symbol).count())
}

fn addresses(launched: &Launched) -> [u64; 2] {
    [0, 1].map(|at| u64::from_ne_bytes(launched.arguments[at][..].try_into().unwrap()))
}

#[test]
fn programs_are_launched_in_order_on_the_tensors_of_their_names() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let names: Vec<&str> = sequence.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["x", "w", "y"]);
    assert_eq!(sequence.sizes(), ["N", "x_pitch", "w_pitch", "y_pitch"]);
    assert_eq!(sequence.numbers(), [("factor".to_string(), Element::F32)]);
    let mut sized = sized(&sequence);
    assert_eq!(sized.workspace_bytes(), 48);
    let (x, mut y) = (rows(&stream, X), rows(&stream, Y));
    let mut workspaces = Vec::new();
    for _ in 0..2 {
        // Tensors may be passed in any order.
        let launched = history(|| sized.launch(&stream, &[("y", (&mut y).into()), ("x", (&x).into())]).unwrap());
        let entries: Vec<&str> = launched.iter().map(|launched| launched.entry.as_str()).collect();
        assert_eq!(entries, ["first", "second"]);
        let [[from, space], [again, to]] = [addresses(&launched[0]), addresses(&launched[1])];
        assert_eq!((from, to, space), (x.address(), y.address(), again));
        assert!(space.is_multiple_of(16) && ![x.address(), y.address()].contains(&space));
        workspaces.push(space);
        assert!(launched.iter().all(|launched| launched.grid == [3, 1, 1]));
    }
    // The memory of the workspaces is reused.
    assert_eq!(workspaces[0], workspaces[1]);
    drop((x, y, sized, sequence, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

#[test]
fn a_workspace_may_be_given() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let mut sized = sized(&sequence);
    let (x, mut y, mut w) = (rows(&stream, X), rows(&stream, Y), rows(&stream, Y));
    let allocated = calls("cuMemAlloc_v2", || {
        let given = [("x", (&x).into()), ("w", (&mut w).into()), ("y", (&mut y).into())];
        let launched = history(|| sized.launch(&stream, &given).unwrap());
        assert_eq!(addresses(&launched[0])[1], w.address());
        assert_eq!(addresses(&launched[1])[0], w.address());
    });
    assert_eq!(allocated, 0);
    // The first launch that needs workspaces allocates them, unless they were allocated before.
    let given = || [("x", (&x).into())];
    let mut launch = |sized: &mut SizedSequence| {
        let [x] = given();
        calls("cuMemAlloc_v2", || sized.launch(&stream, &[x, ("y", (&mut y).into())]).unwrap())
    };
    assert_eq!((launch(&mut sized), launch(&mut sized)), (1, 0));
    let mut other = self::sized(&sequence);
    assert_eq!(calls("cuMemAlloc_v2", || other.reserve().unwrap()), 1);
    assert_eq!(calls("cuMemAlloc_v2", || other.reserve().unwrap()), 0);
    assert_eq!(launch(&mut other), 0);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_launched() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let mut sized = sized(&sequence);
    let (x, mut y) = (rows(&stream, X), rows(&stream, Y));
    let launched = history(|| {
        let mut refused = |tensors: &[(&str, crate::parameter::Argument<'_>)]| {
            let error = sized.launch(&stream, tensors).unwrap_err();
            (error.code(), error.to_string())
        };
        // Tensors that are missing or unknown, by name.
        let missing = "a tensor is not given: `y`, an output of f32 (N,4):(y_pitch{div=4},1)";
        assert_eq!(refused(&[("x", (&x).into())]), ("E1214", missing.to_string()));
        let both = || [("x", (&x).into())];
        let [known] = both();
        assert_eq!(refused(&[known, ("y", (&mut y).into()), ("z", (&x).into())]).0, "E1214");
        assert_eq!(refused(&[known, ("y", (&mut y).into()), known]).0, "E1214");
        // An output that is passed as read-only, another type, and no memory at all.
        let (code, message) = refused(&[known, ("y", (&y).into())]);
        assert_eq!(code, "E0812");
        assert!(message.starts_with("parameter 2 of first .. second, `y`, is memory of f32 that is written"));
        let mut wide = DeviceTensor::filled(&stream, Y.parse::<Layout>().unwrap(), 0.0_f64).unwrap();
        assert_eq!(refused(&[known, ("y", (&mut wide).into())]).0, "E0812");
        assert_eq!(refused(&[known, ("y", 7_u64.into())]).0, "E0812");
        // Too few bytes, for the second program alone.
        let mut short = rows(&stream, "(2,4):(4,1)");
        let small = "`y` of first .. second takes 48 bytes, but the memory has 32".to_string();
        assert_eq!(refused(&[known, ("y", short.memory_mut().into())]), ("E0813", small));
        let mut short = device.allocate(128).unwrap();
        assert_eq!(refused(&[known, ("y", short.part_mut(8, 64).unwrap())]).0, "E0813");
        // Another memory order.
        let mut columns = rows(&stream, "(3,4):(1,3)");
        assert_eq!(refused(&[known, ("y", (&mut columns).into())]).0, "E0820");
        // The first program reads `x` and the second one writes `y`; no kernel has both.
        let mut one = rows(&stream, X);
        let same = crate::parameter::Argument::from(one.memory_mut());
        let aliased = "`x` and `y` of first .. second share memory, and one of them is written".to_string();
        assert_eq!(refused(&[("x", same), ("y", same)]), ("E0815", aliased));
    });
    assert_eq!(launched, []);
    let other = device.stream().unwrap();
    sized.launch(&other, &[("x", (&x).into()), ("y", (&mut y).into())]).unwrap();
}

#[test]
fn sizes_and_numbers_are_given_by_their_names() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let refused = |arguments: LaunchArguments<'_>| {
        let error = sequence.at(arguments).unwrap_err();
        (error.code(), error.to_string())
    };
    fn with<'a>(sizes: &'a [(&'a str, i64)]) -> LaunchArguments<'a> {
        LaunchArguments { sizes, numbers: Some(&half) }
    }
    assert_eq!(refused(with(&SIZES[..3])).0, "E1002");
    let more = [SIZES, &[("M", 1)]].concat();
    assert_eq!(refused(with(&more)).0, "E1002");
    assert_eq!(refused(with(&[("N", 3), ("x_pitch", 6), ("w_pitch", 4), ("y_pitch", 4)])).0, "E1002");
    assert_eq!(refused(LaunchArguments { sizes: SIZES, numbers: None }).0, "E1003");

    let mut sized = sized(&sequence);
    let (x, mut y) = (rows(&stream, X), rows(&stream, Y));
    let mut passed = |sized: &mut SizedSequence| {
        let launched = history(|| sized.launch(&stream, &[("x", (&x).into()), ("y", (&mut y).into())]).unwrap());
        let has = |launched: &Launched, number: f32| {
            launched.arguments[2..].iter().any(|bytes| bytes[..] == number.to_bits().to_ne_bytes())
        };
        [0.5, 3.0].map(|number| launched.iter().all(|launched| has(launched, number)))
    };
    assert_eq!(passed(&mut sized), [true, false]);
    sized.set_number("factor", Element::F32, ElementType::to_bits(3.0_f32)).unwrap();
    assert_eq!(passed(&mut sized), [false, true]);
    let error = sized.set_number("factor", Element::I32, 3).unwrap_err();
    assert_eq!(error.to_string(), "first .. second has no number `factor` of type i32");
    assert_eq!(error.code(), "E1003");
}

/// A launch on another stream waits for the last one, because both use the same workspaces.
#[test]
fn launches_on_other_streams_wait_for_the_last_one() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let mut sized = sized(&sequence);
    let other = device.stream().unwrap();
    let (x, mut y) = (rows(&stream, X), rows(&stream, Y));
    let mut waits = |on: &Stream| {
        calls("cuStreamWaitEvent", || sized.launch(on, &[("x", (&x).into()), ("y", (&mut y).into())]).unwrap())
    };
    let found = [&stream, &stream, &other, &other, &stream].map(&mut waits);
    assert_eq!(found, [0, 0, 1, 0, 1]);
    // Workspaces of the caller are managed by the caller.
    let mut w = rows(&stream, Y);
    let mut waits = |on: &Stream| {
        let given = [("x", (&x).into()), ("w", (&mut w).into()), ("y", (&mut y).into())];
        calls("cuStreamWaitEvent", || sized.launch(on, &given).unwrap())
    };
    assert_eq!([&stream, &other].map(&mut waits), [0, 0]);
}

#[test]
fn a_recorded_launch_needs_its_workspaces_given() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let mut sized = sized(&sequence);
    let (x, mut y, mut w) = (rows(&stream, X), rows(&stream, Y), rows(&stream, Y));
    let recorded = Graph::capture(&stream, |_| sized.launch(&stream, &[("x", (&x).into()), ("y", (&mut y).into())]));
    let error = recorded.unwrap_err();
    assert_eq!(error.code(), "E0823");
    assert!(error.to_string().contains("the workspaces of first .. second, `w`"), "{error}");
    let graph = Graph::capture(&stream, |_| {
        sized.launch(&stream, &[("x", (&x).into()), ("w", (&mut w).into()), ("y", (&mut y).into())])
    });
    graph.unwrap().launch(&stream).unwrap();
    assert_eq!(books(|books| books.launches), 2);
}

/// For every driver call of a launch that may fail: the error is reported, and the next launch
/// succeeds.
#[test]
fn each_call_of_a_launch_may_be_refused() {
    let (device, stream) = opened();
    let sequence = compiled(&device, &two()).unwrap();
    let mut sized = sized(&sequence);
    let other = device.stream().unwrap();
    let (x, mut y) = (rows(&stream, X), rows(&stream, Y));
    let (mut refused, mut marked) = (0, 0);
    for number in 0.. {
        let on = if number % 2 == 0 { &stream } else { &other };
        let at = books(|books| {
            let at = books.trace.len() + number / 2;
            books.fail = Some((at, 1));
            at
        });
        let result = sized.launch(on, &[("x", (&x).into()), ("y", (&mut y).into())]);
        let was_called = books(|books| {
            books.fail = None;
            books.trace.len() > at
        });
        match result {
            Ok(()) if !was_called => break,
            Ok(()) => panic!("call {number}, {}, was refused, and nobody knows", books(|books| books.trace[at])),
            Err(error) => {
                assert!(was_called && error.code().starts_with("E08"), "{error}");
                refused += 1;
            }
        }
        // Workspaces whose last use no event records are discarded.
        let is_marking = books(|books| books.trace.get(at) == Some(&"cuEventRecord"));
        let allocated = calls("cuMemAlloc_v2", || {
            sized.launch(on, &[("x", (&x).into()), ("y", (&mut y).into())]).unwrap();
        });
        assert!(!is_marking || allocated == 1);
        marked += usize::from(is_marking);
    }
    assert!(refused > 8 && marked > 0, "{refused}, {marked}");
}

#[test]
fn programs_that_do_not_fit_together_are_refused() {
    let (device, _stream) = opened();
    let other: Program = "
    tile second {
        input  w: i32 N:1
        output y: i32 N:1
        grid ceil(N/4)
        store(y, (block.x), load(w, (4), (block.x)))
    }"
    .parse()
    .unwrap();
    let error = compiled(&device, &Sequence::new(vec![scaled("first", "x", "w"), other])).unwrap_err();
    assert_eq!(error.code(), "E1214");
    assert!(matches!(error, GpuError::Tile(_)) && error.help().is_some(), "{error}");
}
