//! The library's kernels as PTX, read back and run by the sanitizer.
//!
//! Law: what `ptx::write` prints of a kernel of the library leaves what the definition says, and
//! nothing is found in it. The sanitizer shares no code with the interpreter of kernels: it reads
//! the text.

use tilewright::atoms::SwizzleMode;
use tilewright::kernel::BoxMap;
use tilewright::kernel::Program;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx;
use tilewright::planners::gemm::{Matrix, Plan, Problem, Product};
use tilewright::planners::{EntryOptions, Planned, bits_at, library, named};
use tilewright::sanitize::{
    Argument, Array, Direction, Element, KernelLaunch, MapArray, MapSwizzle, MapView, Options, Report, sanitize,
};

/// Numbers of an input repeat after this many elements: a prime.
const PERIOD: usize = 65_521;

fn array(name: &str, direction: Direction, bytes: Vec<u8>) -> Argument {
    let shape = vec![bytes.len() as u64];
    Argument::Array(Array { name: name.into(), direction, element: Element::Unsigned(1), shape, bytes })
}

/// Runs a program on the contents of its tensors, `None` for those that it writes.
fn run(program: &Program, text: &str, sizes: &[(&str, i64)], contents: &[Option<Vec<u8>>]) -> Report {
    let launch = program.launch(sizes).unwrap();
    let mut own = KernelLaunch::new(program.name.clone(), launch.grid, [program.threads, 1, 1])
        .shared(program.shared_bytes.into());
    if program.cluster_size() > 1 {
        own = own.cluster(program.cluster);
    }
    for (number, ((tensor, bytes), contents)) in program.tensors().zip(&launch.bytes).zip(contents).enumerate() {
        let (direction, contents) = match contents {
            Some(contents) => (Direction::In, contents.clone()),
            None => (Direction::Out, vec![0; *bytes as usize]),
        };
        let argument = array(&tensor.name, direction, contents);
        own = own.argument(match launch.maps.iter().find(|map| map.tensor == number) {
            Some(map) => mapped(argument, map).unwrap_or_else(|| panic!("{}: a map of a part", program.name)),
            None => argument,
        });
    }
    for (scalar, bits) in program.scalars.iter().zip(&launch.scalars) {
        own = own.argument(Argument::Value(bits.to_le_bytes()[..scalar.bits() as usize / 8].to_vec()));
    }
    for map in &launch.maps {
        let swizzle = match map.swizzle {
            SwizzleMode::None => MapSwizzle::None,
            SwizzleMode::Bytes32 => MapSwizzle::Bytes32,
            SwizzleMode::Bytes64 => MapSwizzle::Bytes64,
            SwizzleMode::Bytes128 => MapSwizzle::Bytes128,
        };
        let extents = map.dimensions.iter().rev().map(|dimension| dimension.boxed as u32).collect();
        let (array, view) = (MapArray::Argument(map.tensor), MapView::tiled(extents, swizzle));
        own = own.argument(Argument::Map { array, view });
    }
    sanitize(text, &own, &Options { schedules: 2, ..Options::default() })
        .unwrap_or_else(|error| panic!("{}: {error}", program.name))
}

/// The same array with the shape and the elements that a tensor map of all of it has; none if the
/// map leaves something out.
fn mapped(argument: Argument, map: &BoxMap) -> Option<Argument> {
    let Argument::Array(array) = argument else { return None };
    let element = match map.dimensions.first()?.stride {
        1 => Element::Unsigned(1),
        2 => Element::Bf16,
        4 => Element::F32,
        _ => return None,
    };
    let mut step = map.dimensions.first()?.stride;
    for dimension in &map.dimensions {
        if dimension.stride != step {
            return None;
        }
        step *= dimension.extent;
    }
    let shape = map.dimensions.iter().rev().map(|dimension| dimension.extent as u64).collect();
    (array.bytes.len() as i64 == step).then_some(Argument::Array(Array { element, shape, ..array }))
}

/// Numbers of an input that repeat, as many bytes as a tensor has.
fn repeated(block: &[u8], bytes: u64) -> Vec<u8> {
    block.iter().copied().cycle().take(bytes as usize).collect()
}

/// Runs the kernels of a plan as text that is changed before, and compares what they leave.
fn check(planned: &Planned, machine: &Machine, change: impl Fn(String) -> String) -> Result<usize, String> {
    let bytes = planned.kernel().program().launch(planned.sizes()).unwrap().bytes;
    let types = planned.inputs();
    let blocks: Vec<Vec<u8>> =
        types.iter().enumerate().map(|(number, element)| planned.numbers(number, *element, PERIOD)).collect();
    let mut contents: Vec<Option<Vec<u8>>> =
        blocks.iter().zip(&bytes).map(|(block, bytes)| Some(repeated(block, *bytes))).collect();
    contents.resize(bytes.len(), None);
    let mut left = Vec::new();
    for (number, kernel) in planned.launches().enumerate() {
        let given = if number == 0 { contents.clone() } else { second(kernel.program(), planned, &left) };
        let text = change(ptx::write(kernel.program(), machine.target).map_err(|error| error.to_string())?);
        let report = run(kernel.program(), &text, planned.sizes(), &given);
        if !report.is_clean() {
            return Err(report.to_string());
        }
        left = report.results;
    }
    let output = &left.last().ok_or("nothing is written")?.bytes;
    let input = |tensor: usize, at: usize| bits_at(&blocks[tensor], types[tensor].bytes() as usize, at % PERIOD);
    let mut definition = planned.definition(&input);
    for index in 0..planned.defined() {
        let wanted = definition.wanted(index).map_err(|error| error.to_string())?;
        wanted
            .distance(bits_at(output, wanted.element.bytes() as usize, wanted.at))
            .map_err(|wrong| wrong.to_string())?;
    }
    Ok(planned.defined())
}

/// What the second launch of a plan reads is what the first one left between them.
fn second(program: &Program, planned: &Planned, left: &[tilewright::sanitize::ResultArray]) -> Vec<Option<Vec<u8>>> {
    let between = planned.between().len();
    let mut given: Vec<Option<Vec<u8>>> = left.iter().take(between).map(|own| Some(own.bytes.clone())).collect();
    given.resize(program.tensors().count(), None);
    given
}

#[test]
fn the_ptx_of_library_kernels_leaves_what_they_mean_and_nothing_is_found() {
    let (mut kernels, mut compared) = (0, 0);
    for name in ["A100", "RTX 4090", "H200"] {
        let machine = Machine::named(name).unwrap();
        for entry in library() {
            let planned = entry.plan(&machine, EntryOptions::default());
            let Ok(planned) = planned else { continue };
            // A launch of the sanitizer describes tensor maps of whole arrays alone.
            if planned.launches().any(|kernel| !kernel.program().maps.is_empty()) {
                continue;
            }
            let own = check(&planned, &machine, |text| text);
            compared += own.unwrap_or_else(|wrong| panic!("{} on {name}: {wrong}", entry.name));
            kernels += 1;
        }
    }
    assert!(kernels > 50 && compared > 400_000, "{kernels} kernels, {compared} elements");
}

#[test]
fn without_its_barriers_a_kernel_is_found_wrong() {
    let machine = Machine::named("A100").unwrap();
    for name in ["transpose", "product", "sum_columns"] {
        let planned = named(name).unwrap().plan(&machine, EntryOptions::default()).unwrap();
        let wrong = check(&planned, &machine, |text| text.replace("bar.sync", "//")).unwrap_err();
        assert!(wrong.contains("E1016") || wrong.contains("E1012"), "{name}: {wrong}");
    }
}

/// GEMMs of warps whose k-tiles a producer loads by TMA: text for `sm_90`, which runs on an H200.
#[test]
fn a_producer_and_warps_leave_what_the_definition_says_and_nothing_is_found() {
    let machine = Machine::named("H200@sm_90").unwrap();
    let bf16 = tilewright::kernel::Element::Bf16;
    let matrix = |layout: &str| Matrix::new(bf16, &layout.parse().unwrap()).unwrap();
    for (a, b, d, rows, columns, warps, swapped) in [
        ("(136,264):(264,1)", "(88,264):(264,1)", "(136,88):(88,1)", 64, 64, [2, 2], false),
        ("(136,264):(1,136)", "(88,264):(1,88)", "(136,88):(1,136)", 64, 32, [2, 1], false),
        ("(72,200):(200,1)", "(128,200):(1,128)", "(72,128):(128,1)", 64, 64, [4, 1], true),
    ] {
        let problem = Problem::of(matrix(a), matrix(b), matrix(d)).unwrap();
        let plan = Plan::of(&problem, &machine);
        let plan = Plan { swapped, rows, columns, warps: Some(warps), producer: true, stages: 3, ..plan };
        let plan = Plan { split_k: 1, tail: 0, raster_band: 1, blocks: 2, blocks_per_sm: 1, ..plan };
        let product = Product::planned(&problem, &plan, &machine).unwrap();
        let program = product.kernels()[0].program();
        let text = ptx::write(program, machine.target).unwrap();
        assert!(text.contains(".target sm_90\n") && text.contains("cp.async.bulk.tensor") && text.contains("mma.sync"));
        let operands: Vec<Vec<u8>> = [&a, &b]
            .iter()
            .zip(1..)
            .map(|(layout, seed)| {
                tilewright::planners::any_numbers(bf16, matrix(layout).reach().unwrap() as usize, seed)
            })
            .collect();
        // The operand along the rows of tiles is A all the same.
        let contents = [Some(operands[0].clone()), Some(operands[1].clone()), None];
        let report = run(program, &text, &[], &contents);
        assert!(report.is_clean(), "{problem}: {report}");
        let found = &report.results.last().unwrap().bytes;
        let input = |operand, at: i64| match operand {
            tilewright::planners::gemm::ProductTensor::A => bits_at(&operands[0], 2, at as usize),
            _ => bits_at(&operands[1], 2, at as usize),
        };
        let [m, n, _] = problem.sizes();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let wanted = problem.expected(&input, [row, column, 0]).unwrap();
            wanted.distance(bits_at(found, 2, wanted.place as usize)).unwrap();
        }
        // The fence that orders what threads wrote before the next load into the stage.
        let report = run(program, &text.replace("fence.proxy.async", "//"), &[], &contents);
        assert!(!report.is_clean(), "{problem} without its fences");
    }
}
