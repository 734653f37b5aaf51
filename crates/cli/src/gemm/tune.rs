//! `tilewright gemm --tune`: plans, measured.
//!
//! Law: every plan that counts has left the right numbers of D in this run, at places spread over
//! all of it, and the fastest is kept in a file, whole or not at all. Plans alternate, so that the
//! clock of the device is the same for all; the figure of each is the median over the rounds.

use std::io::Write;

use tilewright::gemm::{Tuned, TunedPlans};
use tilewright::gpu::Device;
use tilewright::kernels::gemm::{Problem, Product};

use super::round::Round;
use super::tensors::{Tensors, compare, ready, wanted};
use crate::kernel::bench::{median, timed};
use crate::output::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// How often plans alternate.
const ROUNDS: usize = 5;
/// How many multiplications are spent on what each plan is compared with, about.
const CHECKED: i64 = 1 << 23;

/// Measures so many plans of a problem, perhaps after a rest of so many milliseconds before each
/// round, and keeps the fastest.
pub fn tuned(
    device: &Device,
    problem: &Problem,
    ends: Option<&[u8]>,
    (count, rest): (usize, Option<u32>),
    terminal: &mut Terminal,
) -> Result<Tuned, Failure> {
    let refused = |error| Failure::refused(&error);
    let machine = device.machine()?;
    let candidates = Product::candidates(problem, &machine).map_err(refused)?;
    let products =
        candidates.iter().take(count).map(|(seconds, plan)| Ok((*seconds, Product::planned(problem, plan, &machine)?)));
    let products: Vec<(f64, Product)> = products.collect::<Result<_, _>>().map_err(refused)?;
    // Workspace for the plan that needs the most of each piece.
    let mut workspaces: Vec<i64> = Vec::new();
    for (_, product) in &products {
        workspaces.resize(workspaces.len().max(product.workspaces().len()), 0);
        for (all, own) in workspaces.iter_mut().zip(product.workspaces()) {
            *all = (*all).max(*own);
        }
    }
    let stream = device.stream()?;
    let (mut tensors, blocks) = Tensors::filled(device, &stream, (problem, 0), ends, &workspaces)?;
    let wanted = wanted(problem, &blocks, CHECKED)?;
    let mut progress = Progress::new("measuring", (products.len() * (ROUNDS + 1)) as u64);
    let mut all = Vec::new();
    for (seconds, product) in &products {
        let kernels = ready(device, product.steps())?;
        tensors.poison(&stream, problem)?;
        tensors.launch(&stream, &kernels)?;
        stream.synchronize()?;
        compare(problem, &stream, &wanted, &tensors)?;
        let once = timed(device, &stream, 3, || tensors.launch(&stream, &kernels))?;
        all.push((seconds, product, kernels, Round::new(device, once, rest)?, Vec::new()));
        progress.step(1);
    }
    for _ in 0..ROUNDS {
        for (.., kernels, round, times) in &mut all {
            times.push(round.timed(device, &stream, || tensors.launch(&stream, kernels))?);
            progress.step(1);
        }
    }
    progress.end();
    let measured = all.into_iter().map(|(model, product, .., times)| (median(times), *model, product.plan()));
    let mut measured: Vec<_> = measured.collect();
    measured.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let Some((seconds, _, plan)) = measured.first() else {
        return Err(Failure::Usage("there is no plan to measure".into()));
    };
    let tuned = Tuned { plan: (*plan).clone(), microseconds: seconds * 1e6, candidates: measured.len() };
    let path = TunedPlans::from_environment().keep(device, problem, &tuned);
    let path = path.map_err(|error| Failure::Value(format!("the plan is not kept: {error}")))?;
    if !terminal.json {
        for (seconds, model, plan) in &measured {
            writeln!(terminal.out, "{:>10.2} us, {:>10.2} by the model: {}", seconds * 1e6, model * 1e6, plan.line())?;
        }
        writeln!(terminal.out, "the first is kept in {}", path.display())?;
    }
    Ok(tuned)
}
