//! `tilewright gemm --tune`: plans, measured on a device.

use std::cell::RefCell;
use std::io::Write;

use tilewright::gpu::Device;
use tilewright::measured::{MeasuredPlan, MeasuredPlans, Planning, Ranked, TuneOptions, tune_gemm};
use tilewright::planners::gemm::{Problem, Product};

use crate::machine;
use crate::output::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Measures a number of plans of a problem, optionally after a rest before each round, and keeps
/// the fastest.
pub fn tuned(
    device: &Device,
    problem: &Problem,
    ends: Option<&[u8]>,
    (count, rest_ms): (usize, Option<u32>),
    terminal: &mut Terminal,
) -> Result<(Product, MeasuredPlan), Failure> {
    let refused = |error| Failure::refused(&error);
    let candidates = Product::candidates(problem, &device.machine()?).map_err(refused)?;
    let options = TuneOptions { rest_ms, ..TuneOptions::new(count) };
    let progress = RefCell::new(Progress::new("measuring", options.steps(candidates.len()) as u64));
    let step = || progress.borrow_mut().step(1);
    let options = TuneOptions { step: &step, ..options };
    let (ranking, kept) = tune_gemm(device, &MeasuredPlans::from_environment(), problem, ends, options)?;
    progress.borrow_mut().end();
    if !terminal.json {
        for Ranked { plan, number, seconds } in &ranking {
            let model = candidates.get(*number).map_or(f64::NAN, |(model, _)| *model);
            let line = Problem::line(plan.plan());
            writeln!(terminal.out, "{:>10.2} us, {:>10.2} by the model: {line}", seconds * 1e6, model * 1e6)?;
        }
        writeln!(terminal.out, "{}", machine::said_of_kept(&kept))?;
    }
    let candidates = ranking.len();
    let fastest = ranking.into_iter().next().ok_or_else(|| Failure::Usage("there is no plan to measure".into()))?;
    let plan = Problem::line(fastest.plan.plan());
    let microseconds = fastest.seconds * 1e6;
    Ok((fastest.plan, MeasuredPlan { plan, microseconds, candidates }))
}
