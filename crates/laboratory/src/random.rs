//! `tilewright-lab random`: random GEMMs, checked.
//!
//! Law: a case is determined by its number: a problem (`random/problem.rs`) or a list of problems
//! (`random/list.rs`), and its inputs. So is its plan: usually that of the model, sometimes another
//! candidate. On a device, each case runs once, with D filled with poison before. Random elements
//! are compared with sums in f64; every byte beside D, beside reductions and after the workspace
//! must be unchanged. Without a device, the interpreter runs small problems, and all elements are
//! compared. A third of these have a large K and few stages, so that the ring wraps several times
//! and edge tiles are loaded partially. With `--plan`, problems of the sizes of a device are
//! planned for any machine, and the text of their kernels is written. Nothing runs.

mod list;
mod problem;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use tilewright::bench::tensors::{Block, Tensors, compare_kept, group_of, ready};
use tilewright::gpu::{Device, Memory, Stream};
use tilewright::kernel::machine::Machine;
use tilewright::kernel::{Element, ptx};
use tilewright::planners::gemm::{
    Matrix, Plan, Problem, Problems, Product, ProductTensor, Products, Step, needs_types,
};
use tilewright::planners::{PlanError, Unchecked, any_numbers, bits_at};
use tilewright_cli::shared::{Failure, Terminal, to_plan_for};

use self::problem::Chance;

/// The number of elements that are compared on a device, for each problem, or for all problems of a
/// list.
const COMPARED: u64 = 300;
/// The period of the random numbers of a tensor: a prime.
const PERIOD: usize = 65_521;
/// The largest size of problems for the interpreter.
const SMALL: i64 = 256;
/// The byte that fills memory that a kernel has not written, and the number of guard bytes after a
/// tensor.
const POISON: u8 = 0xff;
const BEHIND: u64 = 256;
/// The greatest number of stages of a problem that is long along K.
const FEW_STAGES: i64 = 4;

/// The distribution of the inputs of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Small,
    Tiny,
    Large,
    Special,
}

/// The work of a case: one problem, or several in one launch.
enum Work {
    One(Box<Problem>),
    List(Problems),
}

/// The kernels of a case.
enum Made {
    One(Box<Product>),
    List(Box<Products>),
}

impl Made {
    fn steps(&self) -> &[Step] {
        match self {
            Made::One(product) => product.steps(),
            Made::List(products) => products.steps(),
        }
    }

    fn workspaces(&self) -> &[i64] {
        match self {
            Made::One(product) => product.workspaces(),
            Made::List(products) => products.workspaces(),
        }
    }
}

/// Plans, with the seconds that the model predicts for them.
type Plans = Vec<(f64, Plan)>;

/// A case: problem, inputs and plan.
struct Task {
    work: Work,
    numbers: Numbers,
    /// The index of its plan among the candidates, modulo their number; None for the plan of the
    /// model.
    plan: Option<usize>,
    /// Whether K is long: no split-K, and few stages.
    long: bool,
}

impl Task {
    /// The case of this number, with sizes up to the largest: every sixteenth case is a list.
    fn of(number: u64, largest: i64) -> Result<Task, PlanError> {
        let long = largest <= SMALL && number / 4 % 3 == 1;
        let task = match number % 16 {
            3 => list::task(number, largest, long)?,
            _ => problem::task(number, largest, long)?,
        };
        Ok(Task { long, ..task })
    }

    fn new(chance: &mut Chance, work: Work, numbers: Numbers) -> Task {
        let plan = (chance.below(3) == 0).then(|| chance.next() as usize);
        Task { work, numbers, plan, long: false }
    }

    fn problems(&self) -> &[Problem] {
        match &self.work {
            Work::One(problem) => std::slice::from_ref(problem),
            Work::List(list) => list.problems(),
        }
    }

    fn text(&self) -> String {
        let text = |problem: &Problem| {
            let [a, b, d] = [problem.a(), problem.b(), problem.d()];
            format!("{problem}, A {a}, B {b}, D {d}")
        };
        let problems: Vec<String> = self.problems().iter().map(text).collect();
        let which = self.plan.map_or_else(String::new, |plan| format!(", plan {plan} of all, counted round"));
        let few = if self.long { format!(", at most {FEW_STAGES} stages") } else { String::new() };
        format!("{}, {:?} numbers{which}{few}", problems.join("; "), self.numbers)
    }

    fn build(&self, machine: &Machine) -> Result<Made, PlanError> {
        Ok(match &self.work {
            Work::One(problem) => Made::One(Box::new(self.by_plan(
                (&**problem, machine),
                Product::candidates,
                Product::planned,
                Product::new,
            )?)),
            Work::List(list) => Made::List(Box::new(self.by_plan(
                (list, machine),
                Products::candidates,
                Products::planned,
                Products::new,
            )?)),
        })
    }

    /// The kernels of the plan that the case selects.
    fn by_plan<W, P>(
        &self,
        (work, machine): (&W, &Machine),
        candidates: fn(&W, &Machine) -> Result<Plans, PlanError>,
        planned: fn(&W, &Plan, &Machine) -> Result<P, PlanError>,
        new: fn(&W, &Machine) -> Result<P, PlanError>,
    ) -> Result<P, PlanError> {
        if self.plan.is_none() && !self.long {
            return new(work, machine);
        }
        let mut plans = candidates(work, machine)?;
        plans.retain(|(_, plan)| !self.long || plan.split_k == 1);
        match plans.get(self.plan.unwrap_or(0) % plans.len().max(1)) {
            Some((_, plan)) if self.long => {
                planned(work, &Plan { stages: plan.stages.min(FEW_STAGES), ..plan.clone() }, machine)
            }
            Some((_, plan)) => planned(work, plan, machine),
            None => new(work, machine),
        }
    }

    /// Checks the case in the interpreter; returns the number of compared elements.
    fn interpreted(&self, number: u64, machine: &Machine) -> Result<u64, Failure> {
        let report = match self.build(machine).map_err(|error| Failure::refused(&error))? {
            Made::One(product) => product.check_on(&|operand, element, count| match operand {
                ProductTensor::Ends => product.problem().any_ends(number),
                _ => block(self.numbers, operand, product.problem().random_type(operand, element), count),
            }),
            Made::List(products) => products.check_on(&|problem, operand, element, count| {
                // Each problem has its own random numbers.
                let mut bytes = block(self.numbers, operand, element, count + problem);
                bytes.drain(..problem * element.bytes() as usize);
                bytes
            }),
        };
        Ok(report.map_err(wrong)?.compared as u64)
    }

    /// Plans the case and writes its kernels; returns their number.
    fn written(&self, machine: &Machine) -> Result<u64, Failure> {
        let made = self.build(machine).map_err(|error| Failure::refused(&error))?;
        for step in made.steps() {
            ptx::write(step.kernel().program(), machine.target).map_err(|error| Failure::refused(&error))?;
        }
        Ok(made.steps().len() as u64)
    }

    /// Checks the case on a device; returns the number of compared elements.
    fn launched(&self, number: u64, machine: &Machine, device: &Device) -> Result<u64, Failure> {
        let made = self.build(machine).map_err(|error| Failure::refused(&error))?;
        let stream = device.stream()?;
        let kernels = ready(device, made.steps(), machine)?;
        let problems = self.problems();
        let (mut all, mut blocks) = (Vec::new(), Vec::new());
        for (place, problem) in problems.iter().enumerate() {
            // The workspace belongs to the first problem, and serves all problems.
            let workspaces = if place == 0 { made.workspaces() } else { &[] };
            let (tensors, given) = filled(device, &stream, (problem, place), (self.numbers, number), workspaces)?;
            all.push(tensors);
            blocks.push(given);
        }
        Tensors::launch_all(&mut all, &stream, &kernels)?;
        stream.synchronize()?;
        let each = COMPARED / problems.len() as u64;
        let made = problems.iter().zip(all.iter().zip(&blocks));
        made.map(|(problem, (tensors, given))| compared(&stream, problem, (tensors, given), number, each)).sum()
    }
}

/// Random numbers for a tensor, as bytes.
fn block(numbers: Numbers, operand: ProductTensor, element: Element, count: usize) -> Vec<u8> {
    let seed = match operand {
        ProductTensor::A => 1,
        ProductTensor::B => 2,
        ProductTensor::Input(number) => 3 + number as u64,
        ProductTensor::ScalesA => 101,
        ProductTensor::ScalesB => 102,
        ProductTensor::Ends | ProductTensor::D | ProductTensor::Reduction(_) | ProductTensor::Workspace(_) => 0,
    };
    let mut bytes = any_numbers(element, count, seed);
    let width = element.bytes() as usize;
    // For each type: the amount added to or subtracted from the bits to change the exponent, and
    // the bits of infinity and NaN.
    let (shift, inf, nan) = match element {
        Element::Bf16 => (60 << 7, 0x7f80, 0x7fc0),
        Element::F16 => (10 << 10, 0x7c00, 0x7e00),
        _ => (60 << 23, 0x7f80_0000, 0x7fc0_0000),
    };
    for (at, place) in bytes.chunks_exact_mut(width).enumerate() {
        let bits = bits_at(place, width, 0);
        let size = bits & !(1 << (8 * width - 1));
        let other = match numbers {
            Numbers::Small => continue,
            // Numbers too small to be shifted become 0.
            Numbers::Tiny => bits - if size >= shift { shift } else { size },
            Numbers::Large => bits + if size > 0 { shift } else { 0 },
            Numbers::Special if at % 997 == 5 => inf,
            Numbers::Special if at % 1499 == 7 => nan,
            Numbers::Special => continue,
        };
        place.copy_from_slice(&other.to_le_bytes()[..width]);
    }
    bytes
}

fn wrong(unchecked: Unchecked) -> Failure {
    Failure::Value(unchecked.to_string())
}

/// The tensors of a problem on a device: inputs with random numbers, which differ between the
/// problems of a list, and outputs and workspaces filled with poison.
fn filled(
    device: &Device,
    stream: &Stream,
    (problem, place): (&Problem, usize),
    (numbers, number): (Numbers, u64),
    workspaces: &[i64],
) -> Result<(Tensors, Vec<Block>), Failure> {
    let mut tensors = Tensors { memory: Vec::new() };
    let mut blocks: Vec<Block> = Vec::new();
    let allocate = |bytes: i64| -> Result<Memory, Failure> {
        let mut memory = device.allocate(bytes as u64 + BEHIND)?;
        memory.fill_bytes(stream, POISON)?;
        Ok(memory)
    };
    for operand in problem.given() {
        let Some(matrix) = problem.matrix(operand) else { continue };
        let width = matrix.element().bytes() as usize;
        let mut block = match operand {
            ProductTensor::Ends => problem.any_ends(number),
            _ => block(numbers, operand, problem.random_type(operand, matrix.element()), PERIOD),
        };
        // Each problem of a list begins at another position of the same random numbers.
        if operand != ProductTensor::Ends {
            block.rotate_left(width * (place * 1009 % PERIOD));
        }
        let bytes = matrix.reach()? as u64 * width as u64;
        let mut memory = allocate(bytes as i64)?;
        memory.repeat(stream, bytes, &block)?;
        blocks.push((operand, width, block));
        tensors.memory.push((operand, memory));
    }
    for (at, bytes) in workspaces.iter().enumerate() {
        tensors.memory.push((ProductTensor::Workspace(at), allocate(*bytes)?));
    }
    for operand in problem.outputs() {
        let Some(matrix) = problem.matrix(operand) else { continue };
        tensors.memory.push((operand, allocate(matrix.reach()? * i64::from(matrix.element().bytes()))?));
    }
    Ok((tensors, blocks))
}

/// Compares random elements of D, and reductions; returns the number of compared elements.
fn compared(
    stream: &Stream,
    problem: &Problem,
    (tensors, blocks): (&Tensors, &[Block]),
    number: u64,
    elements: u64,
) -> Result<u64, Failure> {
    let Some(d) = tensors.of(ProductTensor::D) else { return Ok(0) };
    let width = problem.result_type().bytes() as usize;
    let mut left = vec![0; usize::try_from(d.bytes()).unwrap_or(0)];
    d.read(stream, 0, &mut left)?;
    beside(&left, problem.d()).map_err(|words| Failure::Value(format!("D: {words}")))?;
    for (operand, memory) in &tensors.memory {
        let found = match operand {
            ProductTensor::Reduction(_) => {
                let mut bytes = vec![0; usize::try_from(memory.bytes()).unwrap_or(0)];
                memory.read(stream, 0, &mut bytes)?;
                problem.matrix(*operand).map_or(Ok(()), |matrix| beside(&bytes, matrix))
            }
            ProductTensor::Workspace(_) => {
                let mut behind = [0; BEHIND as usize];
                memory.read(stream, memory.bytes() - BEHIND, &mut behind)?;
                if behind == [POISON; BEHIND as usize] {
                    Ok(())
                } else {
                    Err("bytes behind it were written".to_string())
                }
            }
            _ => Ok(()),
        };
        found.map_err(|words| Failure::Value(format!("{operand:?}: {words}")))?;
    }
    let input = |operand: ProductTensor, at: i64| {
        let found = blocks.iter().find(|(known, ..)| *known == operand);
        found.map_or(0, |(_, width, block)| bits_at(block, *width, at as usize % PERIOD))
    };
    let ([m, n, _], batch) = (problem.sizes(), problem.batch());
    let mut chance = Chance(number);
    for at in 0..elements {
        // Compares the last element, and random others.
        let place = match at {
            0 => [m - 1, n - 1, batch - 1],
            _ => [m, n, batch].map(|size| chance.below(size as u64) as i64),
        };
        let own = if problem.row_groups().is_some() { group_of(problem, &input, place[0]) } else { Some(place[2]) };
        let Some(matrix) = own else {
            // A row that is in no group must be unchanged.
            let at = problem.d().place(place)? as usize;
            if bits_at(&left, width, at) != u64::MAX >> (64 - 8 * width) {
                return Err(Failure::Value(format!("D has a number at {at}, in a row of no group")));
            }
            continue;
        };
        let wanted = problem.expected(&input, [place[0], place[1], matrix])?;
        wanted.distance(bits_at(&left, width, wanted.place as usize)).map_err(wrong)?;
    }
    let kept = compare_kept(problem, stream, &input, tensors, &mut 0.0)?;
    Ok(elements + kept as u64)
}

/// Checks that every byte that belongs to no element of a matrix is unchanged.
fn beside(left: &[u8], matrix: &Matrix) -> Result<(), String> {
    let (width, [rows, columns, matrices]) = (matrix.element().bytes() as usize, matrix.extents());
    let mut own = vec![false; left.len() / width + 1];
    for matrix_number in 0..matrices {
        for column in 0..columns {
            for row in 0..rows {
                let place = matrix.place([row, column, matrix_number]).map_err(|error| error.to_string())?;
                if let Some(own) = own.get_mut(usize::try_from(place).unwrap_or(usize::MAX)) {
                    *own = true;
                }
            }
        }
    }
    match left.iter().enumerate().find(|(at, byte)| !own[at / width] && **byte != POISON) {
        None => Ok(()),
        Some((at, _)) => Err(format!("byte {at} was written, and belongs to no element of {}", matrix.layout())),
    }
}

/// How a case is checked.
enum Check {
    Plan,
    Interpret,
    Launch(Device),
}

/// Checks the problem, or the list, of this number; returns the number of compared elements, or of
/// written kernels. A failure describes the problem.
fn checked(number: u64, largest: i64, machine: &Machine, check: &Check) -> Result<u64, (String, Failure)> {
    let task = Task::of(number, largest).map_err(|error| (String::new(), Failure::refused(&error)))?;
    // A machine without 8-bit floats has no plan for problems of these types.
    if task.problems().iter().any(|problem| needs_types(problem, machine).is_err()) {
        return Ok(0);
    }
    let checked = match check {
        Check::Launch(device) => task.launched(number, machine, device),
        Check::Interpret => task.interpreted(number, machine),
        Check::Plan => task.written(machine),
    };
    checked.map_err(|failure| (task.text(), failure))
}

/// Which problems are checked, and where.
#[derive(Debug, Args)]
pub struct RandomOptions {
    /// The number of problems, of all types and layouts.
    #[arg(value_name = "COUNT", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// The number of the first problem.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    first: u32,
    /// Run larger problems on the first GPU, instead of small ones in the interpreter.
    #[arg(long)]
    device: bool,
    /// Plan problems of device sizes and write their kernels, without running them.
    #[arg(long, conflicts_with = "device")]
    plan: bool,
    /// The greatest size; 96 in the interpreter if omitted, and 5000 on a device and with --plan.
    #[arg(long = "m", value_name = "SIZE", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    largest: Option<u32>,
    /// The GPU to plan for, by name; if omitted, the first GPU with --device, or an H200 otherwise.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

/// Checks random problems, planned for a machine: on the device, or in the interpreter.
pub fn run(options: &RandomOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let device = options.device;
    let largest = options.largest.map_or(if device || options.plan { 5000 } else { 96 }, i64::from);
    let own = device.then(|| Device::open(0)).transpose()?;
    let machine = &to_plan_for(options.machine.as_deref(), own.as_ref())?;
    let numbers = u64::from(options.first)..u64::from(options.first) + u64::from(options.count);
    let (first, count) = (numbers.start, numbers.end - numbers.start);
    let (next, compared, over) = (AtomicU64::new(first), AtomicU64::new(0), AtomicBool::new(false));
    let failed: Mutex<Option<(u64, String, Failure)>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(count.max(1) as usize);
    let work = || -> Result<(), Failure> {
        let check = match (device, options.plan) {
            (true, _) => Check::Launch(Device::open(0)?),
            (_, true) => Check::Plan,
            _ => Check::Interpret,
        };
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                break;
            }
            match checked(number, largest, machine, &check) {
                Ok(elements) => {
                    compared.fetch_add(elements, Ordering::Relaxed);
                }
                Err((text, failure)) => {
                    over.store(true, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((number, text, failure));
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut outcome = Ok(());
        for worker in workers {
            // A panic is a failure of a problem too, and has been reported.
            outcome = outcome.and(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        outcome
    })?;
    if let Some((number, text, failure)) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(Failure::Value(format!("problem {number}, {text}: {}", failure.text(false).trim_end())));
    }
    let where_ = if device { "on the device" } else { "in the interpreter" };
    let compared = compared.into_inner();
    if options.plan {
        let target = machine.target.name();
        if terminal.json {
            let object = serde_json::json!({ "problems": count, "first": first, "kernels": compared });
            return Ok(terminal.object(&object)?);
        }
        return Ok(terminal.text(&format!(
            "{count} problems from number {first} on are planned for {}: {compared} kernels, written for {target}\n",
            machine.name
        ))?);
    }
    if terminal.json {
        return Ok(terminal.object(&serde_json::json!({ "problems": count, "first": first, "compared": compared }))?);
    }
    Ok(terminal.text(&format!(
        "{count} problems from number {first} on {where_}: {compared} elements compared with f64, all within their bounds\n"
    ))?)
}

#[cfg(test)]
mod tests {
    use super::{Check, Machine, checked};

    #[test]
    fn problems_by_chance_are_right() {
        let h200 = Machine::named("H200").unwrap();
        for number in 0..24 {
            checked(number, 80, &h200, &Check::Interpret)
                .unwrap_or_else(|(text, failure)| panic!("{number}: {text}: {}", failure.text(false)));
        }
    }

    #[test]
    fn problems_by_chance_are_planned_for_every_kind_of_card() {
        for name in ["H200", "H200@sm_90", "A100", "RTX 4090", "RTX 5090"] {
            let machine = Machine::named(name).unwrap();
            for number in 0..8 {
                checked(number, 5000, &machine, &Check::Plan)
                    .unwrap_or_else(|(text, failure)| panic!("{name}, {number}: {text}: {}", failure.text(false)));
            }
        }
    }
}
