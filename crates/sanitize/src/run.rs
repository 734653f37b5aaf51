//! Runs a launch, from the PTX text to the report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::check::GridChecker;
use crate::check::checker::{Allocation, At, Checker, Launch as CheckedLaunch};
use crate::check::finding::{Defect, Finding, Place};
use crate::costs::{Costs, Counting, CountsOfLaunch};
use crate::engine::{GLOBAL, Grid, Memory, Program, Region, Schedule, Stop, Words};
use crate::launch::{Argument, Array, Direction, KernelLaunch, MapArray};
use crate::ptx::{Module, parse};
use crate::refusal::LaunchError;
use crate::report::{Ending, Report, ResultArray, StatementSource};

/// The most bytes of shared memory of a block: those of an H100.
pub const MAX_SHARED_BYTES: u64 = 227 << 10;

/// The most bytes of host memory for the registers and the shared memory of a cluster.
const MAX_CLUSTER_BYTES: u64 = 2 << 30;

/// The options of a run.
pub struct Options<'s> {
    /// The number of schedules. The results of later schedules are compared with those of the
    /// first.
    pub schedules: u32,
    /// The seed of random schedules.
    pub seed: u64,
    /// The most thread instructions of a schedule.
    pub limit: u64,
    /// The number of host cores to use; None for all. Each of several schedules runs on one core.
    pub cores: Option<usize>,
    /// Whether memory accesses and synchronisation are checked. If not, only the engine's own
    /// checks run.
    pub checks: bool,
    /// Whether the first schedule counts its costs: [`Report::costs`](crate::Report::costs).
    pub costs: bool,
    /// Called from time to time. If it returns true, the run stops.
    pub stop: Option<&'s (dyn Fn() -> bool + Sync)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { schedules: 1, seed: 0, limit: 100_000_000_000, cores: None, checks: true, costs: false, stop: None }
    }
}

/// Runs an entry of a PTX text, and reports its defects.
///
/// ```
/// use tilewright_sanitize::{Argument, KernelLaunch, Options, sanitize};
///
/// // Each thread reads what its neighbour writes, and nothing orders the two.
/// let ptx = "
///     .version 8.0
///     .target sm_80
///     .address_size 64
///     .visible .entry shift(.param .u64 out) {
///         .reg .b32 %r<4>;
///         .reg .b64 %d<4>;
///         .shared .align 4 .b8 s[256];
///         mov.u32 %r1, %tid.x;
///         mul.wide.u32 %d1, %r1, 4;
///         mov.u64 %d2, s;
///         add.s64 %d2, %d2, %d1;
///         st.shared.u32 [%d2], %r1;
///         xor.b64 %d2, %d2, 128;
///         ld.shared.u32 %r2, [%d2];
///         ld.param.u64 %d3, [out];
///         add.s64 %d3, %d3, %d1;
///         st.global.u32 [%d3], %r2;
///         ret;
///     }";
/// let launch = KernelLaunch::new("shift", [1, 1, 1], [64, 1, 1])
///     .argument(Argument::read("out", "out:u32[64]", 0)?);
/// let report = sanitize(ptx, &launch, &Options::default())?;
/// assert_eq!(report.findings[0].code(), "E1016"); // a race in a block
///
/// let mended = ptx.replace("xor.b64", "bar.sync 0; xor.b64");
/// assert!(sanitize(&mended, &launch, &Options::default())?.is_clean());
/// # Ok::<(), tilewright_sanitize::LaunchError>(())
/// ```
///
/// # Errors
///
/// Errors: the text cannot be parsed, or has no such entry; the launch does not fit the entry.
pub fn sanitize(ptx: &str, launch: &KernelLaunch, options: &Options<'_>) -> Result<Report, LaunchError> {
    let module = parse(ptx).map_err(|error| LaunchError::new(format!("PTX {error}")))?;
    let program =
        crate::engine::program(&module, &launch.entry).map_err(|error| LaunchError::new(format!("PTX {error}")))?;
    let sizes = Sizes::new(launch, &program)?;
    let schedules = Schedule::several(options.schedules.max(1), options.seed);
    let mut report: Option<Report> = None;
    let mut watched = BTreeSet::new();
    for schedule in &schedules {
        let counts = options.costs && report.is_none();
        let run = |counts: bool, watched: &BTreeSet<At>| {
            let flags = RunFlags { is_one_of_several: schedules.len() > 1, counts, watched };
            run(&module, &program, launch, &sizes, options, *schedule, &flags)
        };
        let own = decided(counts, &mut watched, run)?;
        let mut own = Report { places: places(&module, &program, &own), ..own };
        own.join_lines();
        match &mut report {
            None => report = Some(own),
            Some(first) => merge(first, own, [&schedules[0], schedule]),
        }
        if report.as_ref().is_some_and(|own| own.ending != Ending::Complete) {
            break;
        }
    }
    report.ok_or_else(|| LaunchError::new("no schedule was run"))
}

/// The most runs of a schedule. Each run watches the reads that appear in findings of the previous
/// runs. More than three runs are rare.
const MAX_RUNS: u32 = 8;

/// A report in which findings about reads count only if the values are used. If a run has such
/// findings, it is repeated, and the repetition watches these reads.
fn decided(
    counts: bool,
    watched: &mut BTreeSet<At>,
    run: impl Fn(bool, &BTreeSet<At>) -> Result<Watched, LaunchError>,
) -> Result<Report, LaunchError> {
    let mut first = run(counts, &BTreeSet::new())?;
    watched.append(&mut first.suspects);
    if first.report.findings.is_empty() || watched.is_empty() || first.report.ending != Ending::Complete {
        return Ok(first.report);
    }
    for _ in 1..MAX_RUNS {
        let mut own = run(false, watched)?;
        if own.has_lost_uses || own.report.ending != Ending::Complete {
            break;
        }
        let is_last = own.suspects.is_subset(watched);
        watched.append(&mut own.suspects);
        if is_last {
            let (costs, thread_instructions) = (first.report.costs, first.report.thread_instructions);
            return Ok(Report { costs, thread_instructions, ..own.report });
        }
    }
    Ok(first.report)
}

/// Merges the report of a later schedule into that of the first.
fn merge(first: &mut Report, other: Report, schedules: [&Schedule; 2]) {
    for finding in other.findings {
        let is_same =
            |own: &Finding| own.code() == finding.code() && own.at == finding.at && own.other() == finding.other();
        if !first.findings.iter().any(is_same) {
            first.findings.push(finding);
        }
    }
    first.places.extend(other.places);
    first.thread_instructions += other.thread_instructions;
    first.schedules += other.schedules;
    if other.ending != Ending::Complete {
        first.ending = other.ending;
        return;
    }
    for (own, other) in first.results.iter().zip(&other.results) {
        let bytes = own.element.bytes();
        let Some(byte) = own.first_other_than_rounded(&other.bytes) else { continue };
        let place = Place { memory: format!("`{}`", own.name), byte: byte as i64, bytes };
        let names = schedules.map(|schedule| schedule.to_string());
        let is_told = first.findings.iter().any(|finding| match &finding.defect {
            Defect::OrderDependent { place: told, .. } => told.memory == place.memory,
            _ => false,
        });
        if !is_told {
            let defect = Defect::OrderDependent { place, schedules: names };
            first.findings.push(Finding { defect, at: None, thread: None, count: 1 });
        }
    }
}

/// The sizes of a launch.
struct Sizes {
    cluster: [u32; 3],
    is_cluster: bool,
    shared_bytes: u64,
}

impl Sizes {
    fn new(launch: &KernelLaunch, program: &Program) -> Result<Self, LaunchError> {
        let wrong = |why: String| Err(LaunchError::new(why));
        let threads = launch.block.iter().try_fold(1_u32, |all, own| all.checked_mul(*own)).unwrap_or(u32::MAX);
        if !(1..=1024).contains(&threads) {
            return wrong(format!("a block of {:?} threads; 1 to 1024 are possible", launch.block));
        }
        if launch.grid.contains(&0) || launch.grid.iter().map(|own| u64::from(*own)).product::<u64>() > 1 << 31 {
            return wrong(format!("a grid of {:?} blocks; 1 to 2^31 are possible", launch.grid));
        }
        if let Some(required) = program.required_threads
            && required.iter().product::<u32>() != threads
        {
            return wrong(format!("the kernel requires blocks of {required:?} threads, not {:?}", launch.block));
        }
        if let Some(most) = program.most_threads
            && u64::from(threads) > most.iter().map(|own| u64::from(*own)).product::<u64>()
        {
            return wrong(format!("the kernel allows blocks of {most:?} threads, not {:?}", launch.block));
        }
        let cluster = match (launch.cluster, program.required_cluster) {
            (Some(own), Some(required)) if own != required => {
                return wrong(format!("the kernel requires clusters of {required:?} blocks, not {own:?}"));
            }
            (Some(own), _) | (None, Some(own)) => Some(own),
            (None, None) => None,
        };
        let is_cluster = cluster.is_some();
        let cluster = cluster.unwrap_or([1; 3]);
        let blocks = cluster.iter().try_fold(1_u32, |all, own| all.checked_mul(*own)).unwrap_or(u32::MAX);
        if !(1..=16).contains(&blocks) {
            return wrong(format!("a cluster of {cluster:?} blocks; 1 to 16 are possible"));
        }
        if (0..3).any(|axis| !launch.grid[axis].is_multiple_of(cluster[axis])) {
            return wrong(format!("a grid of {:?} blocks is not made of clusters of {cluster:?}", launch.grid));
        }
        let shared_bytes = program.static_shared.saturating_add(launch.shared_bytes);
        if shared_bytes > MAX_SHARED_BYTES {
            return wrong(format!("{shared_bytes} bytes of shared memory; a block has at most {MAX_SHARED_BYTES}"));
        }
        Ok(Self { cluster, is_cluster, shared_bytes })
    }
}

/// The global memory of a launch, its parameters, and the region of each array.
struct Arguments {
    memory: Memory,
    parameters: Vec<u8>,
    allocations: Vec<Allocation>,
    /// The number of the argument and the number of its region.
    arrays: Vec<(usize, usize)>,
}

/// The name of an array: its own, or that of the parameter.
fn array_name<'n>(array: &'n Array, program: &'n Program, number: usize) -> &'n str {
    match program.entry.parameters.get(number) {
        Some((name, ..)) if array.name.is_empty() => name,
        _ => &array.name,
    }
}

/// The number of bytes between the end of an array and the next array. They belong to no array.
const GAP: u64 = 1 << 21;

fn arguments(program: &Program, launch: &KernelLaunch) -> Result<Arguments, LaunchError> {
    let wanted = &program.entry.parameters;
    if wanted.len() != launch.arguments.len() {
        let own: Vec<String> = wanted.iter().map(|(name, _, bytes)| format!("{name} ({bytes} bytes)")).collect();
        return Err(LaunchError::new(format!(
            "the kernel takes {} argument{} and was given {}; it takes {}",
            wanted.len(),
            if wanted.len() == 1 { "" } else { "s" },
            launch.arguments.len(),
            if own.is_empty() { "none".to_owned() } else { own.join(", ") }
        )));
    }
    let mut own = Arguments {
        memory: Memory::default(),
        parameters: vec![0; program.entry.parameter_bytes as usize],
        allocations: Vec::new(),
        arrays: Vec::new(),
    };
    for variable in &program.variables {
        let mut bytes = variable.bytes.clone();
        bytes.resize(variable.size as usize, 0);
        own.place(&variable.name, variable.address, &bytes, variable.is_initialised, variable.is_const);
    }
    let mut next = GLOBAL + (1 << 40);
    let mut total = 0_u64;
    let mut addresses = Vec::new();
    for (number, argument) in launch.arguments.iter().enumerate() {
        let array = match argument {
            Argument::Array(array) => Some(array),
            Argument::Map { array: MapArray::Own(array), .. } => Some(array),
            _ => None,
        };
        let address = array.map(|array| {
            let address = next;
            next = (next + array.bytes.len() as u64 + GAP).next_multiple_of(GAP);
            address
        });
        if let (Some(array), Some(address)) = (array, address) {
            total += array.bytes.len() as u64;
            if total > crate::launch::MAX_ARGUMENT_BYTES {
                return Err(LaunchError::new("the arguments are too large"));
            }
            own.arrays.push((number, own.memory.regions.len()));
            own.place(
                array_name(array, program, number),
                address,
                &array.bytes,
                array.direction != Direction::Out,
                array.direction == Direction::In,
            );
        }
        addresses.push(address);
    }
    for (number, (argument, (name, offset, bytes))) in launch.arguments.iter().zip(wanted).enumerate() {
        let value = match argument {
            Argument::Array(_) => addresses[number].unwrap_or(0).to_le_bytes().to_vec(),
            Argument::Value(value) => value.clone(),
            Argument::Map { array, view } => {
                let (array, address): (&Array, u64) = match array {
                    MapArray::Own(array) => (array, addresses[number].unwrap_or(0)),
                    MapArray::Argument(other) => match (launch.arguments.get(*other), addresses.get(*other)) {
                        (Some(Argument::Array(array)), Some(Some(address))) => (array, *address),
                        _ => return Err(LaunchError::new(format!("argument {other} is no array"))),
                    },
                };
                crate::engine::tensor_map(array.element, &array.shape, address, view)
                    .map_err(|why| LaunchError::new(format!("the tensor map of argument {number}: {why}")))?
            }
        };
        if value.len() as u64 != *bytes {
            return Err(LaunchError::new(format!(
                "the parameter `{name}` has {bytes} bytes, and argument {number} has {}",
                value.len()
            )));
        }
        let at = *offset as usize;
        own.parameters[at..at + value.len()].copy_from_slice(&value);
    }
    Ok(own)
}

impl Arguments {
    fn place(&mut self, name: &str, address: u64, bytes: &[u8], initialised: bool, is_read_only: bool) {
        let words = Words::from_bytes(bytes);
        self.memory.regions.push(Region { name: name.to_string(), address, words, is_read_only });
        let bytes = bytes.len() as u64;
        self.allocations.push(Allocation { name: name.to_string(), address, bytes, initialised });
    }
}

/// The settings that differ between the runs of a launch.
struct RunFlags<'w> {
    is_one_of_several: bool,
    counts: bool,
    /// The reading instructions whose use is watched.
    watched: &'w BTreeSet<At>,
}

/// The result of a run.
struct Watched {
    report: Report,
    /// The reading instructions that appear in findings and are not watched.
    suspects: BTreeSet<At>,
    has_lost_uses: bool,
}

fn run(
    module: &Module<'_>,
    program: &Program,
    launch: &KernelLaunch,
    sizes: &Sizes,
    options: &Options<'_>,
    schedule: Schedule,
    flags: &RunFlags<'_>,
) -> Result<Watched, LaunchError> {
    let arguments = arguments(program, launch)?;
    let cores = match options.cores {
        _ if flags.is_one_of_several => 1,
        Some(cores) => cores.max(1),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let clusters = (0..3).map(|axis| u64::from(launch.grid[axis] / sizes.cluster[axis])).product::<u64>();
    let cores = cores.min(usize::try_from(clusters).unwrap_or(usize::MAX)).max(1);
    let counted = flags.counts.then(|| CountsOfLaunch::new(program.statements.len(), &arguments.allocations));
    let checker = GridChecker::new(CheckedLaunch {
        grid: launch.grid,
        block: launch.block,
        cluster: sizes.cluster,
        shared_bytes: sizes.shared_bytes as u32,
        allocations: arguments.allocations,
        instructions: program.statements.len() as u32,
        asynchronous: program.has_async,
    })
    .map_err(LaunchError::new)?
    .watching(flags.watched);
    let never = || false;
    let stop: &(dyn Fn() -> bool + Sync) = match options.stop {
        Some(stop) => stop,
        None => &never,
    };
    let unchecked = Mutex::new(Vec::new());
    let grid = Grid {
        program,
        memory: &arguments.memory,
        parameters: Words::from_bytes(&arguments.parameters),
        grid: launch.grid,
        block: launch.block,
        cluster: sizes.cluster,
        is_cluster: sizes.is_cluster,
        shared_bytes: sizes.shared_bytes,
        dynamic_bytes: launch.shared_bytes,
        alone: cores == 1,
        schedule,
        steps: AtomicU64::new(0),
        limit: options.limit,
        news: AtomicU64::new(0),
        strong: Mutex::new(()),
        printed: Mutex::new(Vec::new()),
        allocated: AtomicU64::new(0),
        stop,
    };
    if grid.cluster_bytes() > MAX_CLUSTER_BYTES {
        return Err(LaunchError::new(format!(
            "registers and shared memory of a cluster take {} bytes here; {MAX_CLUSTER_BYTES} are possible",
            grid.cluster_bytes()
        )));
    }
    let stopped = {
        let checkers = |number: u64| -> Box<dyn Checker + Send + '_> {
            let own: Box<dyn Checker + Send + '_> = match options.checks {
                true => Box::new(checker.cluster(number as u32)),
                false => Box::new(Reporting(&unchecked)),
            };
            match &counted {
                Some(counted) => Box::new(Counting::new(own, counted, number)),
                None => own,
            }
        };
        crate::engine::run(&grid, &checkers, cores)
    };
    let (suspects, has_lost_uses) = (checker.suspects(), checker.has_lost_uses());
    let mut findings = checker.findings();
    findings.append(&mut unchecked.into_inner().unwrap_or_default());
    let ending = match stopped {
        None | Some(Stop::Trapped | Stop::Hung | Stop::Full) => Ending::Complete,
        Some(Stop::Refused(at, why)) => Ending::Refused(at, why),
        Some(Stop::Limit) => Ending::Limit(options.limit),
        Some(Stop::Interrupted) => Ending::Interrupted,
    };
    let thread_instructions = grid.steps.into_inner();
    let printed = grid.printed.into_inner().unwrap_or_default();
    let mut results = Vec::new();
    for (number, region) in arguments.arrays {
        let array = match &launch.arguments[number] {
            Argument::Array(array) | Argument::Map { array: MapArray::Own(array), .. } => array,
            _ => continue,
        };
        if array.direction != Direction::In {
            results.push(ResultArray {
                argument: number,
                name: array_name(array, program, number).to_string(),
                element: array.element,
                shape: array.shape.clone(),
                bytes: arguments.memory.regions[region].words.to_bytes(),
            });
        }
    }
    let blocks = launch.grid.iter().map(|own| u64::from(*own)).product();
    let costs = counted.map(|counted| Costs::new(module, program, counted, &arguments.memory, blocks));
    let places = BTreeMap::new();
    let report = Report { findings, ending, places, results, printed, thread_instructions, schedules: 1, costs };
    Ok(Watched { report, suspects, has_lost_uses })
}

/// Keeps the findings of the engine itself, once for each statement.
struct Reporting<'g>(&'g Mutex<Vec<Finding>>);

impl Checker for Reporting<'_> {
    fn report(&mut self, finding: Finding) {
        if let Ok(mut all) = self.0.lock() {
            match all.iter_mut().find(|own| own.at == finding.at && own.code() == finding.code()) {
                Some(own) => own.count += finding.count,
                None => all.push(finding),
            }
        }
    }
}

/// The locations of the statements that a report names.
fn places(module: &Module<'_>, program: &Program, report: &Report) -> BTreeMap<u32, StatementSource> {
    let mut all: Vec<u32> = Vec::new();
    for finding in &report.findings {
        all.extend(finding.at);
        all.extend(finding.other());
        if let Defect::Deadlock { waiting } = &finding.defect {
            all.extend(waiting.iter().filter_map(|own| own.at));
        }
    }
    if let Ending::Refused(at, _) = &report.ending {
        all.push(*at);
    }
    let place = |at: u32| {
        let own = program.statements.get(at as usize)?;
        let location = own.location.and_then(|location| module.locations.get(location as usize));
        let known = location.filter(|location| location.line != 0);
        let source = known.and_then(|_| module.describe(own.location?));
        let file = known.and_then(|location| Some((module.file(location.file)?.to_string(), location.line)));
        let function = program.functions.get(own.function as usize)?.name.clone();
        Some((at, StatementSource { function, line: own.line, source, file }))
    };
    all.into_iter().filter_map(place).collect()
}
