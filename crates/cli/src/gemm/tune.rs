//! `tilewright gemm --tune`: plans, measured.
//!
//! Law: every plan that counts has left the right numbers of D in this run, at places spread over
//! all of it, and the fastest is kept. Plans alternate, so that the clock of the device is the same
//! for all; the figure of each is the median over the rounds.

use std::io::Write;

use tilewright::gpu::{Device, Stream};
use tilewright::measured::{Card, MeasuredPlan, MeasuredPlans, Planning, Ranked, Stopwatch, rank};
use tilewright::planners::gemm::{Expected, Problem, Product};

use super::round::Round;
use super::tensors::{Ready, Tensors, compare, ready, wanted};
use crate::kernel::bench::timed;
use crate::machine;
use crate::output::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// How often plans alternate.
const ROUNDS: usize = 5;
/// The approximate number of multiplications for checking each plan.
const CHECKED: i64 = 1 << 23;

/// Products with one set of tensors on a device.
struct TunedProducts<'a> {
    device: &'a Device,
    stream: &'a Stream,
    problem: &'a Problem,
    tensors: Tensors,
    wanted: Vec<Expected>,
    rest: Option<u32>,
    ready: Vec<(Vec<Ready>, Round)>,
    progress: Progress,
}

impl Stopwatch<Product> for TunedProducts<'_> {
    type Error = Failure;

    fn ready(&mut self, product: &Product) -> Result<(), Failure> {
        let (device, stream, tensors) = (self.device, self.stream, &mut self.tensors);
        let kernels = ready(device, product.steps())?;
        tensors.poison(stream, self.problem)?;
        tensors.launch(stream, &kernels)?;
        stream.synchronize()?;
        compare(self.problem, stream, &self.wanted, tensors)?;
        let once = timed(device, stream, 3, || tensors.launch(stream, &kernels))?;
        self.ready.push((kernels, Round::new(device, once, self.rest)?));
        self.progress.step(1);
        Ok(())
    }

    fn seconds(&mut self, number: usize) -> Result<f64, Failure> {
        let Some((kernels, round)) = self.ready.get_mut(number) else { return Ok(f64::INFINITY) };
        let (stream, tensors) = (self.stream, &mut self.tensors);
        let seconds = round.timed(self.device, stream, || tensors.launch(stream, kernels))?;
        self.progress.step(1);
        Ok(seconds)
    }
}

/// Measures a number of plans of a problem, optionally after a rest before each round, and keeps
/// the fastest.
pub fn tuned(
    device: &Device,
    problem: &Problem,
    ends: Option<&[u8]>,
    (count, rest): (usize, Option<u32>),
    terminal: &mut Terminal,
) -> Result<(Product, MeasuredPlan), Failure> {
    let refused = |error| Failure::refused(&error);
    let machine = device.machine()?;
    let candidates = Product::candidates(problem, &machine).map_err(refused)?;
    let candidates = &candidates[..count.min(candidates.len())];
    let products = candidates.iter().map(|(_, plan)| Product::planned(problem, plan, &machine));
    let products: Vec<Product> = products.collect::<Result<_, _>>().map_err(refused)?;
    // Workspace for the plan that needs the most of each piece.
    let mut workspaces: Vec<i64> = Vec::new();
    for product in &products {
        workspaces.resize(workspaces.len().max(product.workspaces().len()), 0);
        for (all, own) in workspaces.iter_mut().zip(product.workspaces()) {
            *all = (*all).max(*own);
        }
    }
    let stream = device.stream()?;
    let (tensors, blocks) = Tensors::filled(device, &stream, (problem, 0), ends, &workspaces)?;
    let wanted = wanted(problem, &blocks, CHECKED)?;
    let progress = Progress::new("measuring", (products.len() * (ROUNDS + 1)) as u64);
    let mut on_device =
        TunedProducts { device, stream: &stream, problem, tensors, wanted, rest, ready: Vec::new(), progress };
    let measured = rank(products, ROUNDS, &mut on_device)?;
    on_device.progress.end();
    let plan_of =
        |own: &Ranked<Product>| Ranked { plan: own.plan.plan().clone(), number: own.number, seconds: own.seconds };
    let ranking: Vec<Ranked<_>> = measured.iter().map(plan_of).collect();
    let kept = MeasuredPlans::from_environment().keep(&Card::of(device), problem, &ranking);
    let kept = kept.map_err(|error| Failure::Value(format!("the plan is not kept: {error}")))?;
    if !terminal.json {
        for Ranked { plan, number, seconds } in &ranking {
            let model = candidates.get(*number).map_or(f64::NAN, |(model, _)| *model);
            writeln!(terminal.out, "{:>10.2} us, {:>10.2} by the model: {}", seconds * 1e6, model * 1e6, plan.line())?;
        }
        writeln!(terminal.out, "{}", machine::said_of_kept(&kept))?;
    }
    let candidates = measured.len();
    let fastest = measured.into_iter().next().ok_or_else(|| Failure::Usage("there is no plan to measure".into()))?;
    let plan = Problem::line(fastest.plan.plan());
    let microseconds = fastest.seconds * 1e6;
    Ok((fastest.plan, MeasuredPlan { plan, microseconds, candidates }))
}
