//! The library's kernels as PTX, read back and run by the sanitizer.
//!
//! Law: what `ptx::write` prints of a kernel of the library leaves what the definition says, and
//! nothing is found in it. The sanitizer shares no code with the interpreter of kernels: it reads
//! the text.

use tilewright::kernel::Program;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx;
use tilewright::planners::{EntryOptions, Planned, bits_at, library, named};
use tilewright::sanitize::{Argument, Array, Direction, Element, KernelLaunch, Options, Report, sanitize};

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
    for ((tensor, bytes), contents) in program.tensors().zip(&launch.bytes).zip(contents) {
        let (direction, contents) = match contents {
            Some(contents) => (Direction::In, contents.clone()),
            None => (Direction::Out, vec![0; *bytes as usize]),
        };
        own = own.argument(array(&tensor.name, direction, contents));
    }
    for (scalar, bits) in program.scalars.iter().zip(&launch.scalars) {
        own = own.argument(Argument::Value(bits.to_le_bytes()[..scalar.bits() as usize / 8].to_vec()));
    }
    sanitize(text, &own, &Options { schedules: 2, ..Options::default() })
        .unwrap_or_else(|error| panic!("{}: {error}", program.name))
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
