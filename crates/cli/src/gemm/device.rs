//! `tilewright gemm --device`: a product on a GPU, planned, checked and timed.
//!
//! Law: what is printed was measured in this run. D is poisoned before the kernels run, and
//! compared with sums in f64 of the same numbers: at how many places is said. Ours and cuBLAS' take
//! turns, where there is a cuBLAS, and the figure of each is the median over the turns. Without a
//! device nothing is printed but the plan, where that is asked for.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use tilewright::gemm::{Tuned, TunedPlans};
use tilewright::gpu::{
    Argument, Cache, Cublas, CublasError, CublasMatrix, CublasProduct, Device, GpuError, Memory, ModuleOptions,
    SizedKernel, Stream,
};
use tilewright::kernel::Element;
use tilewright::kernel::cost::Rates;
use tilewright::kernels::gemm::{Each, Expected, Matrix, Operand, Problem, Product, Side, Step};
use tilewright::kernels::{any_numbers, bits_at};

use super::task::{self, Paired, Stored};
use super::tune;
use crate::kernel::bench::{TURN, TURNS, median, timed};
use crate::output::Failure;
use crate::terminal::Terminal;

/// How many multiplications are spent on checking a product, about.
const CHECKED: i64 = 1 << 25;
/// Inputs repeat after so many elements: a prime, so that no row is like the next.
const PERIOD: usize = 1_048_573;

/// What is asked of a device.
#[derive(Debug, Args)]
#[command(next_help_heading = "On a device")]
pub struct OnDevice {
    /// The first GPU multiplies, and the product is checked and timed beside cuBLAS where there is
    /// one.
    #[arg(long)]
    device: bool,
    /// The plan: the kernels, and how the product is cut. Without --device on any machine.
    #[arg(long)]
    plan: bool,
    /// So many plans are measured on the device, those first that the model takes for the fastest;
    /// the winner is kept in a file, which --device and --plan read afterwards.
    #[arg(long, value_name = "PLANS", num_args = 0..=1, default_missing_value = "24", requires = "device", value_parser = clap::value_parser!(u32).range(1..))]
    tune: Option<u32>,
    /// So many products by chance are checked instead, of every type and layout: on the device, or
    /// small ones in the interpreter.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    random: Option<u32>,
    /// The number of the first product by chance.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u32,
    /// How many products of these sizes, one after the other in memory.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// The type of the result: that of the factors, i32 of bytes, bf16 of floats of 8 bits, where
    /// nothing is said.
    #[arg(long, value_name = "TYPE")]
    pub result: Option<Stored>,
    /// Where A, (M,K), lies: `row`, `column`, or a layout, perhaps behind an offset:
    /// `3 o (64,32):(32,1)`.
    #[arg(long, value_name = "LAYOUT", default_value = "row")]
    pub lies_a: String,
    /// Where B, (K,N), lies.
    #[arg(long, value_name = "LAYOUT", default_value = "column")]
    pub lies_b: String,
    /// Where the result, (M,N), lies.
    #[arg(long, value_name = "LAYOUT", default_value = "row")]
    pub lies_d: String,
    /// A function of the sum `x`, and of `c`, (M,N), `bias`, (N), and `column`, (M):
    /// `gelu(x + bias) + c`; of pairs also of `y`, the sum of the second column.
    #[arg(long, value_name = "EXPRESSION")]
    pub epilogue: Option<String>,
    /// Two columns of B make a column of the result, which has N/2: neighbours, or those of both
    /// halves. The epilogue says how: `silu(x) * y`.
    #[arg(long, value_name = "WHICH", requires = "epilogue")]
    pub pairs: Option<Paired>,
    /// A number of each row or column is kept besides: `row` or `column`, `sum` or `max`, and of
    /// what, an expression of the result `d`: `row max abs(d)`. Several may be kept.
    #[arg(long, value_name = "WHAT")]
    pub keep: Vec<String>,
    /// Blocks of e4m3 or e5m2 have scales in f32: 128 elements of a row of A, 128 x 128 of B.
    #[arg(long)]
    pub scales: bool,
    /// Sums of e4m3 and e5m2 are left to the instructions, which keep 13 bits; else those of 128
    /// steps along K are added in f32.
    #[arg(long)]
    pub fast: bool,
}

impl OnDevice {
    pub fn is_asked(&self) -> bool {
        self.device || self.plan || self.random.is_some()
    }

    /// An option that only a device has, if one was given.
    pub fn other(&self) -> Option<&'static str> {
        let lies = [
            ("--lies-a", &self.lies_a, "row"),
            ("--lies-b", &self.lies_b, "column"),
            ("--lies-d", &self.lies_d, "row"),
        ];
        lies.into_iter()
            .find(|(_, given, usual)| given != usual)
            .map(|(option, ..)| option)
            .or(self.epilogue.as_ref().map(|_| "--epilogue"))
            .or(self.result.as_ref().map(|_| "--result"))
            .or(self.pairs.map(|_| "--pairs"))
            .or(self.keep.first().map(|_| "--keep"))
            .or(self.scales.then_some("--scales"))
            .or(self.fast.then_some("--fast"))
            .or((self.batch > 1).then_some("--batch"))
    }
}

pub fn run(options: &super::Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let cpu = [
        ("--a", options.a.is_some()),
        ("--b", options.b.is_some()),
        ("--output", options.output.is_some()),
        ("--atom", options.atom.is_some()),
    ];
    if let Some((option, _)) = cpu.into_iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!("{option} is for products on the processor")));
    }
    if let Some(count) = options.device.random {
        let device = options.device.device;
        let largest = options.extents()[0].map_or(if device { 5000 } else { 96 }, i64::from);
        return super::random::run(count.into(), options.device.first.into(), largest, device, terminal);
    }
    let (problem, names) = task::problem(options)?;
    let device = match (options.device.device, options.device.plan) {
        (true, _) => Some(Device::open(0)?),
        // A plan may have been kept for a device, if there is one.
        (false, true) => Device::open(0).ok(),
        _ => None,
    };
    let tuned = match (&device, options.device.tune) {
        (Some(device), Some(count)) => Some(tune::tuned(device, &problem, count as usize, terminal)?),
        (Some(device), None) => TunedPlans::from_environment().find(device, &problem),
        (None, _) => None,
    };
    let kept = tuned.and_then(|tuned| Product::planned(&problem, &tuned.plan).ok().map(|product| (product, tuned)));
    let (product, tuned) = match kept {
        Some((product, tuned)) => (product, Some(tuned)),
        None => (Product::new(&problem).map_err(|error| Failure::refused(&error))?, None),
    };
    let named = |operand: Operand| match operand {
        Operand::A => "A".to_owned(),
        Operand::B => "B".to_owned(),
        Operand::D => "D".to_owned(),
        Operand::Input(number) => names.get(number).map_or_else(|| format!("x{number}"), |name| (*name).to_owned()),
        Operand::Scales(Side::A) => "scales of A".to_owned(),
        Operand::Scales(Side::B) => "scales of B".to_owned(),
        Operand::ByProduct(number) => format!("kept {number}"),
        Operand::Workspace(number) => format!("workspace {number}"),
    };
    let measured = match &device {
        Some(device) if options.device.device => Some(measured(device, &product)?),
        _ => None,
    };
    if terminal.json {
        let mut object = described(&product, &named);
        object["tuned"] =
            json!(tuned.as_ref().map(|tuned| json!({ "median_us": tuned.microseconds, "plans": tuned.candidates })));
        if let Some(measured) = &measured {
            measured.json(&product, &mut object);
        }
        return Ok(terminal.object(&object)?);
    }
    let mut text = format!("{problem}\n");
    for operand in problem.given().into_iter().chain(problem.written_operands()) {
        if let Some(matrix) = problem.matrix(operand) {
            let turned = if operand == Operand::B { ", as (N,K)" } else { "" };
            let _ = writeln!(text, "  {} {matrix}{turned}", named(operand));
        }
    }
    for line in product.lines() {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(Tuned { microseconds, candidates, .. }) = tuned {
        let _ = writeln!(
            text,
            "  the fastest of {candidates} plans that were measured on this device: {microseconds:.1} us then"
        );
    }
    if options.device.plan || product.workspace() > 0 {
        let _ = writeln!(text, "  {} bytes of workspace", product.workspace());
    }
    if options.device.plan {
        for step in product.steps() {
            let operands: Vec<String> = step.operands().iter().map(|operand| named(*operand)).collect();
            let program = step.kernel().program();
            let grid: Vec<String> = program.grid.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                text,
                "  {} ({}): ({}) blocks of {} threads, {} bytes of shared memory",
                step.kernel().name(),
                operands.join(", "),
                grid.join(","),
                program.threads,
                program.shared_bytes
            );
        }
    }
    if let Some(measured) = &measured {
        measured.text(&product, &mut text);
    }
    Ok(terminal.text(&text)?)
}

/// The sizes, types, layouts and plan.
fn described(product: &Product, named: &dyn Fn(Operand) -> String) -> serde_json::Value {
    let problem = product.problem();
    let [m, n, k] = problem.sizes();
    let mut layouts = serde_json::Map::new();
    for operand in problem.given().into_iter().chain(problem.written_operands()) {
        if let Some(matrix) = problem.matrix(operand) {
            let lies = json!({ "type": matrix.element().name(), "layout": matrix.layout().to_string(), "offset": matrix.offset() });
            layouts.insert(named(operand), lies);
        }
    }
    json!({
        "m": m, "n": n, "k": k,
        "batch": problem.batch(),
        "types": { "factors": problem.factors().name(), "tf32": problem.is_tf32(), "sums": problem.sums().name(), "result": problem.result().name() },
        "layouts": layouts,
        "epilogue": problem.function().map(|fused| fused.expression.to_string()),
        "kept": problem.by_products().map(|by| by.to_string()).collect::<Vec<_>>(),
        "plan": product.lines(),
        "kernels": product.steps().iter().map(|step| step.kernel().name()).collect::<Vec<_>>(),
        "workspace": product.workspace(),
    })
}

/// What a run on a device gave.
struct Measured {
    device: String,
    seconds: f64,
    /// The median of cuBLAS, or why there is none.
    cublas: Result<f64, String>,
    /// The median of the same product without a function of its sums and without by-products,
    /// where there are some.
    bare: Option<f64>,
    compared: usize,
    /// The greatest error, and the bound there.
    error: f64,
    bound: f64,
    /// The greatest error in units of its bound.
    worst: f64,
    /// Operations a second that the device reaches at most.
    peak: f64,
}

impl Measured {
    fn text(&self, product: &Product, text: &mut String) {
        let problem = product.problem();
        let rate = problem.operations() as f64 / self.seconds;
        let (sizes, unit) = (self.seconds * 1e6, if problem.sums() == Element::I32 { "TOP/s" } else { "TFLOP/s" });
        let _ = writeln!(text, "  {}", self.device);
        let _ = writeln!(
            text,
            "  {sizes:.1} us, the median of {TURNS} turns; {:.1} {unit}, {:.3} of the {:.0} of the data sheet's clock",
            rate / 1e12,
            rate / self.peak,
            self.peak / 1e12
        );
        let _ = match &self.cublas {
            Ok(seconds) => {
                writeln!(text, "  cuBLAS {:.1} us: {:.3} of its rate", seconds * 1e6, seconds / self.seconds)
            }
            Err(because) => writeln!(text, "  no cuBLAS beside it: {because}"),
        };
        if let Some(bare) = self.bare {
            let _ = writeln!(text, "  the bare product {:.1} us: {:.3} of its time", bare * 1e6, self.seconds / bare);
        }
        let [m, n, _] = problem.sizes();
        let _ = writeln!(
            text,
            "  {} of {} elements compared with f64: the greatest error {:.3e}, within its bound {:.3e}; at most {:.3} of a bound",
            self.compared,
            m * n * problem.batch(),
            self.error,
            self.bound,
            self.worst
        );
    }

    fn json(&self, product: &Product, object: &mut serde_json::Value) {
        let rate = product.problem().operations() as f64 / self.seconds;
        object["device"] = json!(self.device);
        object["median_us"] = json!(self.seconds * 1e6);
        object["tflops"] = json!(rate / 1e12);
        object["of_peak"] = json!(rate / self.peak);
        object["checked"] = json!(true);
        object["compared"] = json!(self.compared);
        object["error"] = json!(self.error);
        object["error_bound"] = json!(self.bound);
        object["worst"] = json!(self.worst);
        object["cublas_us"] = json!(self.cublas.as_ref().ok().map(|seconds| seconds * 1e6));
        object["bare_us"] = json!(self.bare.map(|seconds| seconds * 1e6));
        if let Err(because) = &self.cublas {
            object["no_cublas"] = json!(because);
        }
    }
}

/// A kernel at its sizes, and its step.
pub(super) type Ready = (SizedKernel, Step);

/// The memory of the tensors of a product.
pub(super) struct Tensors {
    pub(super) memory: Vec<(Operand, Memory)>,
}

/// The numbers of an input, which repeat: their width in bytes, and the bytes.
pub(super) type Block = (Operand, usize, Vec<u8>);

impl Tensors {
    /// Inputs that repeat a block of numbers, and poisoned memory for the rest.
    pub(super) fn filled(
        device: &Device,
        stream: &Stream,
        problem: &Problem,
        workspaces: &[i64],
    ) -> Result<(Tensors, Vec<Block>), Failure> {
        let mut tensors = Tensors { memory: Vec::new() };
        let mut blocks = Vec::new();
        let bytes_of = |matrix: &Matrix| matrix.reach().map(|reach| reach as u64 * u64::from(matrix.element().bytes()));
        for (number, operand) in problem.given().into_iter().enumerate() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let block = any_numbers(matrix.element(), PERIOD, number as u64 + 1);
            let bytes = bytes_of(matrix)?;
            // Kernels may ask for more than the last element, up to a line.
            let mut memory = device.allocate(bytes + 256)?;
            for from in (0..bytes).step_by(block.len()) {
                let end = usize::try_from(bytes - from).unwrap_or(usize::MAX).min(block.len());
                memory.write(stream, from, &block[..end])?;
            }
            blocks.push((operand, matrix.element().bytes() as usize, block));
            tensors.memory.push((operand, memory));
        }
        for (number, bytes) in workspaces.iter().enumerate() {
            let mut memory = device.allocate(*bytes as u64)?;
            memory.fill_bytes(stream, 0xa5)?;
            tensors.memory.push((Operand::Workspace(number), memory));
        }
        for operand in problem.written_operands() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let mut memory = device.allocate(bytes_of(matrix)?)?;
            memory.fill_bytes(stream, 0xa5)?;
            tensors.memory.push((operand, memory));
        }
        Ok((tensors, blocks))
    }

    /// Poisons what is written.
    pub(super) fn poison(&mut self, stream: &Stream, problem: &Problem) -> Result<(), GpuError> {
        let written = problem.written_operands();
        for (_, memory) in self.memory.iter_mut().filter(|(operand, _)| written.contains(operand)) {
            memory.fill_bytes(stream, 0xa5)?;
        }
        Ok(())
    }

    pub(super) fn launch(&mut self, stream: &Stream, kernels: &[Ready]) -> Result<(), GpuError> {
        for (kernel, step) in kernels {
            let (from, to) = step.read_and_written();
            // Those that are written are taken out meanwhile.
            let mut written = Vec::new();
            for operand in to {
                if let Some(at) = self.memory.iter().position(|(known, _)| known == operand) {
                    written.push(self.memory.swap_remove(at));
                }
            }
            let read = from.iter().filter_map(|operand| self.memory.iter().find(|(known, _)| known == operand));
            let mut arguments: Vec<Argument<'_>> = read.map(|(_, memory)| Argument::from(memory)).collect();
            arguments.extend(written.iter_mut().map(|(_, memory)| Argument::from(memory)));
            let launched = kernel.launch(stream, &arguments);
            drop(arguments);
            self.memory.extend(written);
            launched?;
        }
        Ok(())
    }

    pub(super) fn of(&self, operand: Operand) -> Option<&Memory> {
        self.memory.iter().find(|(known, _)| *known == operand).map(|(_, memory)| memory)
    }
}

/// The kernels of a product, compiled.
pub(super) fn ready(device: &Device, product: &Product) -> Result<Vec<Ready>, Failure> {
    let compiled = product.steps().iter().map(|step| {
        // The linker, from which machine code comes that can be kept, leaves threads other
        // registers.
        let compiled = device.compile(step.kernel(), &ModuleOptions::default().cache(Cache::none()))?;
        Ok((compiled.at(step.sizes())?, step.clone()))
    });
    compiled.collect()
}

fn measured(device: &Device, product: &Product) -> Result<Measured, Failure> {
    let problem = product.problem();
    let stream = device.stream()?;
    let kernels = ready(device, product)?;
    let more = problem.function().is_some() || problem.by_products().next().is_some();
    let bare = if more && problem.pairs().is_none() {
        let bare = problem.clone().bare();
        let bare = Product::new(&bare).map_err(|error| Failure::refused(&error))?;
        // Tensors are shared, and so is a workspace that is large enough.
        let fits = bare.workspaces().iter().zip(product.workspaces()).all(|(own, other)| own <= other);
        let fits = fits && bare.workspaces().len() <= product.workspaces().len();
        if fits { Some(ready(device, &bare)?) } else { None }
    } else {
        None
    };
    let (mut tensors, blocks) = Tensors::filled(device, &stream, problem, product.workspaces())?;
    tensors.launch(&stream, &kernels)?;
    stream.synchronize()?;
    let elements = wanted(problem, &blocks, CHECKED)?;
    let [error, bound, mut worst] = compare(problem, &stream, &elements, &tensors)?;
    let input = |operand: Operand, at: i64| of_block(&blocks, operand, at);
    let compared = elements.len() + compare_kept(problem, &stream, &input, &tensors, &mut worst)?;

    let once = timed(device, &stream, 3, || tensors.launch(&stream, &kernels))?;
    let count = ((TURN / once) as usize).clamp(1, 10_000);
    let mut rival = Rival::of(device, problem);
    let (mut ours, mut theirs, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        ours.push(timed(device, &stream, count, || tensors.launch(&stream, &kernels))?);
        if let Some(bare) = &bare {
            plain.push(timed(device, &stream, count, || tensors.launch(&stream, bare))?);
        }
        if let Ok(rival) = &mut rival {
            match rival.timed(device, &stream, &tensors, count)? {
                Ok(seconds) => theirs.push(seconds),
                Err(because) => rival.refused = Some(because),
            }
        }
    }
    let cublas = match rival {
        Ok(Rival { refused: Some(because), .. }) | Err(because) => Err(because),
        Ok(_) => Ok(median(theirs)),
    };
    let has = device.attributes();
    let rates = Rates::of(device.capability(), has.multiprocessors, f64::from(has.clock_khz) * 1e3);
    let peak = match problem.factors() {
        Element::F32 => rates.matrix_tf32,
        element if element.bytes() == 1 => rates.matrix_8,
        _ => rates.matrix_16,
    };
    Ok(Measured {
        device: device.name().to_owned(),
        seconds: median(ours),
        cublas,
        bare: (!plain.is_empty()).then(|| median(plain)),
        compared,
        error,
        bound,
        worst,
        peak,
    })
}

/// cuBLAS at the same product.
struct Rival {
    library: Cublas,
    product: CublasProduct,
    d: Memory,
    refused: Option<String>,
}

impl Rival {
    fn of(device: &Device, problem: &Problem) -> Result<Rival, String> {
        let library = Cublas::open(device).ok_or("none was found")?;
        if problem.pairs().is_some() || problem.scales().is_some() {
            return Err("its interface has no pairs and no scales of blocks".into());
        }
        let lies = |matrix: &Matrix, turned: bool| {
            let folded = || "its layouts are none of its interface".to_string();
            let layout = matrix.layout();
            let [rows, columns, batch] = matrix.extents();
            if layout.leaves().len() != layout.rank() || matrix.offset() > 0 {
                return Err(folded());
            }
            let stride = |mode: usize| layout.leaves().get(mode).map_or(0, |leaf| leaf.stride);
            let (contiguous, line) = match (stride(0), stride(1)) {
                (line, 1) => (true, line.max(columns)),
                (1, line) => (false, line.max(rows)),
                _ => return Err(folded()),
            };
            Ok(CublasMatrix { rows: contiguous != turned, line, step: if batch > 1 { stride(2) } else { 0 } })
        };
        let product = CublasProduct {
            sizes: problem.sizes(),
            batch: problem.batch(),
            factors: problem.factors().into(),
            tf32: problem.is_tf32(),
            result: problem.result().into(),
            a: lies(problem.a(), false)?,
            b: lies(problem.b(), true)?,
            d: lies(problem.d(), false)?,
        };
        if problem.factors().bytes() == 1 && problem.factors() != Element::I8 {
            return Err("its interface has not these types".into());
        }
        let reach = problem.d().reach().map_err(|error| error.to_string())?;
        let bytes = reach as u64 * u64::from(problem.result().bytes());
        let d = device.allocate(bytes + 256).map_err(|error| error.to_string())?;
        Ok(Rival { library, product, d, refused: None })
    }

    /// The seconds of one of so many products, or why there are none.
    fn timed(
        &mut self,
        device: &Device,
        stream: &Stream,
        tensors: &Tensors,
        count: usize,
    ) -> Result<Result<f64, String>, Failure> {
        if let Some(because) = &self.refused {
            return Ok(Err(because.clone()));
        }
        let (Some(a), Some(b)) = (tensors.of(Operand::A), tensors.of(Operand::B)) else {
            return Ok(Err("there are no factors".into()));
        };
        let mut said = None;
        let (library, product, d) = (&self.library, &self.product, &mut self.d);
        let seconds = timed(device, stream, count, || match library.multiply(stream, product, [a, b], d) {
            Ok(()) => Ok(()),
            Err(CublasError::Gpu(error)) => Err(error),
            Err(other) => {
                said = Some(other.to_string());
                Ok(())
            }
        })?;
        Ok(said.map_or(Ok(seconds), Err))
    }
}

/// What elements of D should be, spread over all of it: as many as so many multiplications tell.
pub(super) fn wanted(problem: &Problem, blocks: &[Block], multiplications: i64) -> Result<Vec<Expected>, Failure> {
    let [m, n, k] = problem.sizes();
    let all = m * n * problem.batch();
    let taken = (multiplications / k).clamp(64, all.max(64)).min(all);
    let input = |operand: Operand, at: i64| of_block(blocks, operand, at);
    let of = |number: i64| {
        // The first, the last, and steps of equal length between; all, where they are few.
        let index =
            if taken < 2 { 0 } else { (i128::from(number) * i128::from(all - 1) / i128::from(taken - 1)) as i64 };
        Ok(problem.expected(&input, [index / n % m, index % n, index / (n * m)])?)
    };
    (0..taken).map(of).collect()
}

/// The bits of an element of an input.
fn of_block(blocks: &[Block], operand: Operand, at: i64) -> u64 {
    let found = blocks.iter().find(|(known, ..)| *known == operand);
    found.map_or(0, |(_, width, block)| bits_at(block, *width, at as usize % PERIOD))
}

/// Compares elements of D with what they should be: the greatest error and its bound, and the
/// greatest in units of its bound.
pub(super) fn compare(
    problem: &Problem,
    stream: &Stream,
    wanted: &[Expected],
    tensors: &Tensors,
) -> Result<[f64; 3], Failure> {
    let Some(d) = tensors.of(Operand::D) else { return Ok([0.0; 3]) };
    let mut left = vec![0; usize::try_from(d.bytes()).unwrap_or(0)];
    d.read(stream, 0, &mut left)?;
    let width = problem.result().bytes() as usize;
    let (mut greatest, mut bound, mut worst) = (0.0_f64, 0.0_f64, 0.0_f64);
    for wanted in wanted {
        let found = bits_at(&left, width, wanted.place as usize);
        let distance = wanted.distance(found).map_err(|wrong| Failure::Value(wrong.to_string()))?;
        worst = worst.max(distance);
        let error = distance * wanted.bound;
        if error >= greatest {
            (greatest, bound) = (error, wanted.bound);
        }
    }
    Ok([greatest, bound, worst])
}

/// Compares some numbers of each by-product with the definition: how many.
pub(super) fn compare_kept(
    problem: &Problem,
    stream: &Stream,
    input: &dyn Fn(Operand, i64) -> u64,
    tensors: &Tensors,
    worst: &mut f64,
) -> Result<usize, Failure> {
    let [m, n, k] = problem.sizes();
    let mut compared = 0;
    for (number, by) in problem.by_products().enumerate() {
        let Some(memory) = tensors.of(Operand::ByProduct(number)) else { continue };
        let mut left = vec![0; usize::try_from(memory.bytes()).unwrap_or(0)];
        memory.read(stream, 0, &mut left)?;
        let (extent, along) = if by.each == Each::Row { (m, n) } else { (n, m) };
        let all = extent * problem.batch();
        let taken = (CHECKED / (k * along).max(1)).clamp(2, 64).min(all);
        for at in 0..taken {
            // The first, the last, and some between.
            let index = if taken < 2 { 0 } else { at * (all - 1) / (taken - 1) };
            let Some(wanted) = problem.expected_by_product(input, number, [index % extent, index / extent])? else {
                continue;
            };
            let distance = wanted.distance(bits_at(&left, 4, wanted.place as usize));
            *worst = worst.max(distance.map_err(|wrong| Failure::Value(wrong.to_string()))?);
            compared += 1;
        }
    }
    Ok(compared)
}
