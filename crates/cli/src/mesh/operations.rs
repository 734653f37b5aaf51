//! `tilewright mesh map`, `reduce` and `softmax`; and these and `multiply` with `--run`, between
//! processes.
//!
//! Law: the result of processes equals that of the simulated plan, bit by bit. Before that, the
//! simulated result is compared with the definition, element by element. Inputs are integers, so
//! that sums and products are exact. The result of GPUs (`--device`) is compared with the
//! definition directly.

use clap::{Args, ValueEnum};
use serde_json::json;
use tilewright::kernel::Element;
use tilewright::mesh::{
    ArgmaxPlan, Engine, Machine, MapPlan, Mesh, MeshError, ProductPlan, ReducePlan, Reduction, ShardedLayout,
    SoftmaxPlan, argmax, map, reduce, softmax,
};
use tilewright::planners::Expression;
use tilewright::sharded::{ShardedError, WorkPlan};

use super::on_devices::{OnDevicesOptions, first_planner};
use super::run::{Beside, Job, filled, fits, right};
use super::{Costs, plan_json};
use crate::output::Failure;
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub struct OperationOptions {
    /// The modes, numbered from 0: `1`, or `0,2`.
    #[arg(long, required = true, value_delimiter = ',', value_name = "MODES")]
    over: Vec<usize>,
    #[command(flatten)]
    costs: Costs,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    here: OnDevicesOptions,
}

/// Where it is carried out.
#[derive(Debug, Args)]
pub struct On {
    /// Carry it out between processes, one for each device, on elements of f64, and check it.
    #[arg(long)]
    pub run: bool,
    #[command(flatten)]
    beside: Beside,
}

/// How the elements along modes become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Sum,
    Mean,
    Max,
    Argmax,
}

/// The bytes of the elements with which processes compute.
const BYTES: i64 = size_of::<f64>() as i64;
/// The relative tolerance of rounded `f64` results, and that of f32 results of GPUs: the
/// exponential of a number with a magnitude of up to 64, divided by a sum of such exponentials.
const ROUNDED: f64 = 1e-12;
const ROUNDED_F32: f64 = 1e-5;

impl On {
    /// The bytes of an element.
    pub fn bytes(&self, costs: &Costs) -> i64 {
        if self.run { BYTES } else { costs.bytes }
    }
}

/// The value of a summand of the element with this index; there are few different values.
fn value(element: i64, summand: i64) -> f64 {
    (element * 31 % 61 + summand) as f64
}

/// The value of an element that is the sum of this many summands.
fn whole(element: i64, sums: i64) -> f64 {
    whole_of(value, element, sums)
}

fn whole_of(value: impl Fn(i64, i64) -> f64, element: i64, sums: i64) -> f64 {
    (0..sums).map(|summand| value(element, summand)).sum()
}

/// The summands of elements of a type on GPUs. 16-bit elements represent them exactly, and they are
/// small enough for sums in f16.
fn value_on(element: Element) -> fn(i64, i64) -> f64 {
    match element {
        Element::F16 => |element, summand| (element * 31 % 13 + summand) as f64 / 64.0,
        Element::Bf16 => |element, summand| (element * 31 % 13 + summand) as f64,
        _ => value,
    }
}

/// Compares the memory of devices with the definition, at each offset of each copy, with a relative
/// and an absolute tolerance.
fn defined(
    layout: &ShardedLayout,
    memory: &[Vec<f64>],
    wanted: &[f64],
    [part, least]: [f64; 2],
) -> Result<(), Failure> {
    let copies = usize::try_from(layout.copies()).unwrap_or(1);
    for (element, wanted) in wanted.iter().enumerate() {
        let places = layout.places(element as i64)?;
        for copy in 0..copies {
            let summands = places.iter().skip(copy).step_by(copies);
            let at = |(rank, offset): &(usize, i64)| memory.get(*rank)?.get(usize::try_from(*offset).ok()?).copied();
            let found: f64 = summands.map(|place| at(place).unwrap_or(f64::NAN)).sum();
            // A NaN is also wrong.
            let is_right = (found - wanted).abs() <= part * wanted.abs() + least;
            if !is_right {
                return Err(Failure::Value(format!("element {element} is {found}, and should be {wanted}")));
            }
        }
    }
    Ok(())
}

/// For each element of a result, the elements of a tensor that are reduced to it, in order.
fn groups(sizes: &[i64], over: &[usize]) -> Vec<Vec<i64>> {
    let kept = |mode: &usize| !over.contains(mode);
    let results: i64 = sizes.iter().enumerate().filter(|(mode, _)| kept(mode)).map(|(_, size)| size).product();
    let mut groups = vec![Vec::new(); usize::try_from(results).unwrap_or(0)];
    for element in 0..sizes.iter().product::<i64>() {
        let (mut rest, mut at, mut weight) = (element, 0, 1);
        for (mode, size) in sizes.iter().enumerate() {
            if kept(&mode) {
                at += rest % size * weight;
                weight *= size;
            }
            rest /= size;
        }
        usize::try_from(at).ok().and_then(|at| groups.get_mut(at)).into_iter().for_each(|group| group.push(element));
    }
    groups
}

/// An operation with one operand.
enum Single {
    Reduce(ReducePlan),
    Argmax(Box<ArgmaxPlan>),
    Softmax(SoftmaxPlan),
}

/// An operation, with the memory of all devices before and after it.
struct Given {
    single: Single,
    before: Vec<Vec<f64>>,
    after: Vec<Vec<f64>>,
}

/// Indices as floating-point numbers, which represent them exactly.
fn numbers(indices: Vec<i64>) -> Vec<f64> {
    indices.into_iter().map(|index| index as f64).collect()
}

impl Job for Given {
    fn once<E: Engine>(&self, engine: &mut E) -> Result<usize, Failure> {
        let rank = engine.rank();
        let own = self.before.get(rank).map_or(&[][..], Vec::as_slice);
        let done = match &self.single {
            Single::Reduce(plan) => plan.run(engine, own)?,
            Single::Argmax(plan) => numbers(plan.run(engine, own)?),
            Single::Softmax(plan) => plan.run(engine, own)?,
        };
        right(rank, &done, &self.after)
    }
}

/// The layouts of an operand and its result.
fn parsed(mesh: &str, layouts: [&String; 2]) -> Result<[ShardedLayout; 2], MeshError> {
    let mesh: Mesh = mesh.parse()?;
    let [from, to] = layouts.map(|text| ShardedLayout::parse(&mesh, text));
    Ok([from?, to?])
}

/// `mesh reduce`.
pub fn reduced(
    mesh: &str,
    layouts: [&String; 2],
    by: By,
    options: &OperationOptions,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let [from, to] = parsed(mesh, layouts)?;
    let OperationOptions { over, costs, on, here } = options;
    let machine: Machine = costs.machine.parse()?;
    let bytes = here.bytes().unwrap_or(on.bytes(costs));
    let reduction = match by {
        By::Sum => Reduction::Sum,
        By::Mean => Reduction::Mean,
        By::Max => Reduction::Max,
        By::Argmax => {
            let plan = argmax(&from, over, &to, bytes, &machine)?;
            let (text, [operand, parts]) = (plan.to_string(), plan.moves().map(plan_json));
            let object = json!({ "operand": operand, "parts": parts, "result": plan.result().map(plan_json), "seconds": plan.seconds() });
            return one(Single::Argmax(Box::new(plan)), (text, object), [&from, &to], options, terminal, |group| {
                let greatest = group.iter().copied().fold(f64::MIN, f64::max);
                group.iter().position(|value| *value == greatest).unwrap_or(0) as f64
            });
        }
    };
    let plan = reduce(&from, over, reduction, &to, bytes, &machine)?;
    let text = plan.to_string();
    let object = json!({
        "operand": plan_json(plan.operand()),
        "parts": plan_json(plan.parts()),
        "result": plan.result().map(plan_json),
        "seconds": plan.seconds(),
    });
    one(Single::Reduce(plan), (text, object), [&from, &to], options, terminal, |group| match reduction {
        Reduction::Max => group.iter().copied().fold(f64::MIN, f64::max),
        Reduction::Mean => group.iter().sum::<f64>() / group.len() as f64,
        _ => group.iter().sum(),
    })
}

/// `mesh softmax`.
pub fn softmaxed(
    mesh: &str,
    layouts: [&String; 2],
    options: &OperationOptions,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let [from, to] = parsed(mesh, layouts)?;
    let machine: Machine = options.costs.machine.parse()?;
    let bytes = options.here.bytes().unwrap_or(options.on.bytes(&options.costs));
    let plan = softmax(&from, &options.over, &to, bytes, &machine)?;
    let text = plan.to_string();
    let [operand, pairs, result] = plan.moves().map(plan_json);
    let object = json!({ "operand": operand, "pairs": pairs, "result": result, "seconds": plan.seconds() });
    one(Single::Softmax(plan), (text, object), [&from, &to], options, terminal, |_| 0.0)
}

/// Prints the plan of an operation with one operand, or executes it; `result` defines an element of
/// the result of a reduction.
fn one(
    single: Single,
    (text, object): (String, crate::json::Json),
    [from, to]: [&ShardedLayout; 2],
    OperationOptions { over, on, here, .. }: &OperationOptions,
    terminal: &mut Terminal,
    result: impl Fn(&[f64]) -> f64,
) -> Result<(), Failure> {
    if !on.run && !here.device {
        return said(&text, &object, terminal);
    }
    here.fits(&[from, to])?;
    let refused = |error: ShardedError| Failure::refused(&error);
    let work = match &single {
        _ if !here.device => None,
        Single::Reduce(plan) => Some(WorkPlan::reduce(&*first_planner(), plan, here.element()).map_err(refused)?),
        Single::Softmax(plan) => Some(WorkPlan::softmax(&*first_planner(), plan, here.element()).map_err(refused)?),
        Single::Argmax(plan) => Some(WorkPlan::argmax(&*first_planner(), plan, here.element()).map_err(refused)?),
    };
    let devices = work.as_ref().map(|work| here.open(work, &text, terminal)).transpose()?;
    let groups = groups(&from.mode_sizes(), over);
    let value = if here.device { value_on(here.element()) } else { value };
    let of_group =
        |group: &Vec<i64>| -> Vec<f64> { group.iter().map(|at| whole_of(value, *at, from.sums())).collect() };
    let mut wanted: Vec<f64> = Vec::new();
    if let Single::Softmax(_) = single {
        wanted.resize(usize::try_from(from.size()).unwrap_or(0), 0.0);
        for group in &groups {
            let values = of_group(group);
            let greatest = values.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = values.iter().map(|value| (value - greatest).exp()).sum();
            for (at, value) in group.iter().zip(values) {
                let place = usize::try_from(*at).ok().and_then(|at| wanted.get_mut(at));
                place.into_iter().for_each(|place| *place = (value - greatest).exp() / sum);
            }
        }
    } else {
        wanted.extend(groups.iter().map(|group| result(&of_group(group))));
    }
    let is_softmax = matches!(single, Single::Softmax(_));
    if let (Some(work), Some(devices)) = (work, devices) {
        let (element, before) = (here.element(), [filled(from, value)?]);
        let bounds = bounds(&single, from, here);
        let made = if matches!(single, Single::Argmax(_)) { Element::I64 } else { element };
        let compare = |after: &[Vec<f64>]| defined(to, after, &wanted, bounds);
        return here.carry_out((&work, &devices, made), &before, object, terminal, compare);
    }
    let before = filled(from, value)?;
    let after = match &single {
        Single::Reduce(plan) => plan.simulate(&before)?,
        Single::Argmax(plan) => plan.simulate(&before)?.into_iter().map(numbers).collect(),
        Single::Softmax(plan) => plan.simulate(&before)?,
    };
    defined(to, &after, &wanted, [if !is_softmax && to.sums() == 1 { 0.0 } else { ROUNDED }, 0.0])?;
    on.beside.carry_out(&Given { single, before, after }, &format!("{text}\n"), terminal)
}

/// The relative and absolute tolerance of results of GPUs.
fn bounds(single: &Single, from: &ShardedLayout, here: &OnDevicesOptions) -> [f64; 2] {
    let (rounding, element) = (here.rounding(), here.element());
    match single {
        Single::Argmax(_) => [0.0; 2],
        _ if !element.is_float() => [0.0; 2],
        // The smallest numbers of f16 have fewer digits.
        Single::Softmax(_) => [ROUNDED_F32 + rounding, if element == Element::F16 { 2_f64.powi(-25) } else { 0.0 }],
        Single::Reduce(plan) => match (plan.by(), element) {
            (Reduction::Max, _) => [0.0; 2],
            // Sums of f32 and f64 are of integers, and exact.
            (Reduction::Sum, Element::F32 | Element::F64) => [0.0; 2],
            (_, Element::F64) => [2.0 * rounding, 0.0],
            // One rounding on each device, one for each summand that is added, and one for a mean.
            _ => [ROUNDED_F32 + rounding * (from.mesh().size() + 2) as f64, 0.0],
        },
    }
}

fn said(text: &str, object: &crate::json::Json, terminal: &mut Terminal) -> Result<(), Failure> {
    match terminal.json {
        true => Ok(terminal.object(object)?),
        false => Ok(terminal.prose(&format!("{text}\n"))?),
    }
}

/// A function of elements, and the memory of all devices.
struct Mapped {
    plan: MapPlan,
    before: Vec<Vec<Vec<f64>>>,
    after: Vec<Vec<f64>>,
}

/// The function that `mesh map --run` computes.
fn squares(of: &[f64]) -> f64 {
    of.iter().map(|value| value * value).sum()
}

impl Job for Mapped {
    fn once<E: Engine>(&self, engine: &mut E) -> Result<usize, Failure> {
        let rank = engine.rank();
        let own = |memory: &'_ Vec<Vec<f64>>| memory.get(rank).cloned().unwrap_or_default();
        let own: Vec<Vec<f64>> = self.before.iter().map(own).collect();
        let own: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        right(rank, &self.plan.run(engine, &own, squares)?, &self.after)
    }
}

/// `mesh map`.
pub fn mapped(
    mesh: &str,
    to: &str,
    operands: &[String],
    (costs, on, here): (&Costs, &On, &OnDevicesOptions),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let mesh: Mesh = mesh.parse()?;
    let to = ShardedLayout::parse(&mesh, to)?;
    let layouts = operands.iter().map(|text| ShardedLayout::parse(&mesh, text)).collect::<Result<Vec<_>, _>>()?;
    let given: Vec<&ShardedLayout> = layouts.iter().collect();
    let plan = map(&given, &to, here.bytes().unwrap_or(on.bytes(costs)), &costs.machine.parse()?)?;
    let operands: Vec<_> = plan.operands().iter().map(plan_json).collect();
    let object = json!({ "operands": operands, "result": plan_json(plan.result()), "seconds": plan.seconds() });
    if !on.run && !here.device {
        return said(&plan.to_string(), &object, terminal);
    }
    here.fits(&[given.as_slice(), &[&to]].concat())?;
    let square = |number: usize| Expression::input(number) * Expression::input(number);
    let function = (1..given.len()).map(square).fold(square(0), |sum, next| sum + next);
    let work = here.device.then(|| WorkPlan::map(&*first_planner(), &plan, &function, here.element()));
    let work = work.transpose().map_err(|error| Failure::refused(&error))?;
    let devices = work.as_ref().map(|work| here.open(work, &plan.to_string(), terminal)).transpose()?;
    let value = if here.device { value_on(here.element()) } else { value };
    let of = |element: i64| given.iter().map(|layout| whole_of(value, element, layout.sums())).collect::<Vec<f64>>();
    let wanted: Vec<f64> = (0..to.size()).map(|element| squares(&of(element))).collect();
    if let (Some(work), Some(devices)) = (work, devices) {
        let before = given.iter().map(|layout| filled(layout, value)).collect::<Result<Vec<_>, MeshError>>()?;
        // Squares in 16-bit types are rounded, and summands of a result are added here.
        let is_small = here.element().bytes() == 2;
        let bounds = [if is_small { here.rounding() * to.sums() as f64 } else { 0.0 }, 0.0];
        let compare = |after: &[Vec<f64>]| defined(&to, after, &wanted, bounds);
        return here.carry_out((&work, &devices, here.element()), &before, object, terminal, compare);
    }
    let before = given.iter().map(|layout| filled(layout, value)).collect::<Result<Vec<_>, _>>()?;
    let memory: Vec<&[Vec<f64>]> = before.iter().map(Vec::as_slice).collect();
    let after = plan.simulate(&memory, squares)?;
    defined(&to, &after, &wanted, [0.0; 2])?;
    let text = format!("{plan}\n");
    on.beside.carry_out(&Mapped { plan, before, after }, &text, terminal)
}

/// A matmul, with the memory of all devices.
struct Multiplied<'a> {
    plan: &'a ProductPlan,
    before: [Vec<Vec<f64>>; 2],
    after: Vec<Vec<f64>>,
}

impl Job for Multiplied<'_> {
    fn once<E: Engine>(&self, engine: &mut E) -> Result<usize, Failure> {
        let rank = engine.rank();
        let [a, b] = self.before.each_ref().map(|memory| memory.get(rank).map_or(&[][..], Vec::as_slice));
        right(rank, &self.plan.run(engine, a, b)?, &self.after)
    }
}

/// `mesh multiply --run`.
pub fn multiplied(plan: &ProductPlan, on: &On, terminal: &mut Terminal) -> Result<(), Failure> {
    let [a, b, d] = plan.moves();
    let (a, b, d) = (a.from(), b.from(), d.to());
    fits(&[a, b, d])?;
    let before = [filled(a, value)?, filled(b, value)?];
    let after = plan.simulate(&before[0], &before[1])?;
    let [m, n, k] = plan.sizes();
    let of = |layout: &ShardedLayout, element: i64| whole(element, layout.sums());
    let sum = |row: i64, column: i64| (0..k).map(|depth| of(a, row + m * depth) * of(b, depth + k * column)).sum();
    let wanted: Vec<f64> = (0..m * n).map(|element| sum(element % m, element / m)).collect();
    defined(d, &after, &wanted, [0.0; 2])?;
    on.beside.carry_out(&Multiplied { plan, before, after }, &format!("{plan}\n"), terminal)
}
