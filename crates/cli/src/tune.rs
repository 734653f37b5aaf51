//! `tilewright tune`: measures the plans of several problems on a device, and keeps the fastest of
//! each.
//!
//! Law: a plan is kept only if its result was right in this run. Each problem is stored as soon as
//! it was measured, so an interruption of the command loses at most one problem.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tilewright::gpu::Device;
use tilewright::measured::{Asked, AskedPlanner, AskedProblems, Effort, MeasuredPlans, TuneOptions, Tuned};
use tilewright::planners::Planner;

use crate::machine;
use crate::output::Failure;
use crate::problem_line::{self, ProblemLine};
use crate::progress::Progress;
use crate::terminal::Terminal;

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright tune 'gemm 4096 4096 4096 --type bf16' 'transpose M=8192 N=8192 --type bf16'
  tilewright tune --list problems.txt --seconds 300

A problem is written as for `tilewright gemm`, or as for `tilewright kernel bench`: the name of a
kernel, sizes and a type. A list has one in each line; empty lines and those that begin with # are
skipped.

Every plan is checked before it is timed. The fastest is kept for this card, driver and version in
the folder `plans` of TILEWRIGHT_CACHE_DIR, or of the cache directory of the user, and is found
there by everything that plans for this device. The model's time is that of the plan that is taken
without measurements.";

/// What is measured, and for how long.
#[derive(Debug, Args)]
pub struct TuneCommandOptions {
    /// Problems, each in quotes.
    #[arg(value_name = "PROBLEM")]
    problems: Vec<String>,
    /// A file with a problem in each line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// How many seconds all take, about. Problems share them equally.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// The GPU to plan for, such as device@sm_80: the first GPU, held to an earlier target. Plans
    /// that are measured so are kept apart, and not used.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// The most plans of a problem, those first that the model takes for the fastest.
    #[arg(long, value_name = "COUNT", default_value_t = 16, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1000))]
    plans: u16,
}

pub fn run(options: &TuneCommandOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let lines = problem_line::lines(&options.problems, options.list.as_deref())?;
    if lines.is_empty() {
        return Err(Failure::Usage("name a problem, such as 'gemm 4096 4096 4096 --type bf16', or a --list".into()));
    }
    let device = Device::open(0)?;
    let machine = machine::to_plan_for(options.machine.as_deref(), Some(&device))?;
    let asked = lines.iter().map(|line| asked(line, &machine).map_err(|failure| failure.about(line)));
    let asked: Vec<Asked> = asked.collect::<Result<_, _>>()?;
    let plans = MeasuredPlans::from_environment();
    let end = Instant::now() + Duration::from_secs(options.seconds.into());
    let mut logarithms = 0.0;
    for (number, (line, problem)) in lines.iter().zip(&asked).enumerate() {
        let own = end.saturating_duration_since(Instant::now()) / (asked.len() - number) as u32;
        let until = Some(Instant::now() + own);
        let tune = TuneOptions::new(options.plans.into());
        let tune = TuneOptions { effort: Effort { until, ..tune.effort }, machine: Some(&machine), ..tune };
        let progress = RefCell::new(Progress::new("measuring", tune.steps(options.plans.into()) as u64));
        let step = || progress.borrow_mut().step(1);
        let tuned = problem.tune(&device, &plans, TuneOptions { step: &step, ..tune });
        progress.borrow_mut().end();
        let tuned = tuned.map_err(|error| Failure::from(error).about(line))?;
        logarithms += (tuned.model_seconds / tuned.seconds).ln();
        report(line, &tuned, terminal)?;
    }
    let mean = (logarithms / asked.len() as f64).exp();
    if !terminal.json && asked.len() > 1 {
        terminal
            .text(&format!("the plans of the model take {mean:.3} of the time of the fastest, in geometric mean\n"))?;
    }
    Ok(())
}

fn report(line: &str, tuned: &Tuned, terminal: &mut Terminal) -> Result<(), Failure> {
    let Tuned { plan, seconds, model_seconds, candidates, kept } = tuned;
    if terminal.json {
        return Ok(terminal.object(&json!({
            "problem": line,
            "plan": plan,
            "median_us": seconds * 1e6,
            "model_us": model_seconds * 1e6,
            "plans": candidates,
            "is_new": kept.is_new,
            "file": kept.path.display().to_string(),
        }))?);
    }
    let mut text = format!("{line}\n");
    let _ = writeln!(
        text,
        "  {:.2} us, the fastest of {candidates}; the plan of the model {:.2} us",
        seconds * 1e6,
        model_seconds * 1e6
    );
    let _ = writeln!(text, "  {plan}\n  {}", machine::said_of_kept(kept));
    Ok(terminal.text(&text)?)
}

/// The problem in a line.
fn asked(line: &str, planner: &dyn Planner) -> Result<Asked, Failure> {
    let problems = AskedProblems::default();
    let asked = AskedPlanner::new(planner, &problems);
    match ProblemLine::read(line)? {
        ProblemLine::Gemm(options) => {
            asked.gemm(&crate::gemm::problem(&options)?).map_err(|error| Failure::refused(&error))?;
        }
        ProblemLine::Kernel(kernel) => {
            kernel.planned(&asked, true)?;
        }
    }
    problems.since(0).into_iter().next().ok_or_else(|| {
        let known = "a GEMM, a relayout, a reduction, a softmax or a norm";
        Failure::Value(format!("this kernel has one plan, so there is nothing to measure: name {known}"))
    })
}

#[cfg(test)]
mod tests {
    use tilewright::kernel::machine::Machine;

    use super::*;

    fn of(line: &str) -> Result<Asked, Failure> {
        asked(line, &Machine::named("H200").unwrap())
    }

    #[test]
    fn a_line_is_the_problem_of_its_command() {
        for (line, kernel, part) in [
            ("gemm 512 256 128 --type bf16", "gemm", "512"),
            ("gemm 512 256 128 --type f16 --epilogue 'max(x + bias, 0)'", "gemm", "max"),
            ("transpose M=300 N=200 --type bf16", "relayout", "300"),
            ("softmax M=64 --type bf16", "softmax", "64"),
        ] {
            let asked = of(line).unwrap_or_else(|failure| panic!("{line}: {failure:?}"));
            assert_eq!(asked.kernel(), kernel);
            assert!(asked.problem().contains(part), "{line}: {}", asked.problem());
        }
    }

    #[test]
    fn a_line_without_a_choice_of_plans_is_refused() {
        for line in ["gemm 512 256", "gemm 1 2 3 --wrong", "nothing", "add N=1000", "gemm 'a", "softmax X=3"] {
            assert!(of(line).is_err(), "{line}");
        }
    }
}
