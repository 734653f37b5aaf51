//! Records the problems that planners were asked for, to tune them later.
//!
//! Law: an [`AskedPlanner`] returns the plans of its planner, and records each problem once,
//! however often it is asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_kernel::machine::Machine;
use tilewright_planners::gemm::{Problem, Product};
use tilewright_planners::{Computation, PlanError, Planned, Planner};

use super::{Kept, MeasuredPlans, Planning, Ranked, TuneError, TuneOptions, tune, tune_gemm};
use crate::Device;

/// A problem that a planner was asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Asked {
    /// A GEMM.
    Gemm(Box<Problem>),
    /// A computation of the library.
    Computation(Box<Computation>),
}

/// The fastest plan of a problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The plan, in one line.
    pub plan: String,
    /// The median time of a launch, in seconds.
    pub seconds: f64,
    /// The median time of a launch of the plan that the machine's model chooses, in seconds, from
    /// the same run.
    pub model_seconds: f64,
    /// The number of plans that were measured.
    pub candidates: usize,
    /// Where the plan is kept.
    pub kept: Kept,
}

impl Asked {
    /// The name of the kernel: `gemm`.
    pub fn kernel(&self) -> &str {
        match self {
            Asked::Gemm(problem) => problem.kernel(),
            Asked::Computation(work) => work.kernel(),
        }
    }

    /// The problem in one line.
    pub fn problem(&self) -> String {
        match self {
            Asked::Gemm(problem) => problem.problem(),
            Asked::Computation(work) => work.problem(),
        }
    }

    /// Measures plans of the problem on a device, and keeps the fastest.
    ///
    /// Errors: as [`tune`] and [`tune_gemm`].
    pub fn tune<'a>(
        &self,
        device: &Device,
        plans: &MeasuredPlans,
        options: impl Into<TuneOptions<'a>>,
    ) -> Result<Tuned, TuneError> {
        match self {
            Asked::Gemm(problem) => {
                let (ranking, kept) = tune_gemm(device, plans, problem, None, options)?;
                Ok(tuned(&ranking, kept, |product| Problem::line(product.plan())))
            }
            Asked::Computation(work) => {
                let (ranking, kept) = tune(device, plans, work, options)?;
                Ok(tuned(&ranking, kept, Computation::line))
            }
        }
    }
}

/// The first plan of a ranking. The ranking was kept, so it is not empty.
fn tuned<P>(ranking: &[Ranked<P>], kept: Kept, line: impl Fn(&P) -> String) -> Tuned {
    let fastest = ranking.first();
    let of_model = ranking.iter().find(|own| own.number == 0);
    let seconds = |own: Option<&Ranked<P>>| own.map_or(f64::NAN, |own| own.seconds);
    Tuned {
        plan: fastest.map_or_else(String::new, |own| line(&own.plan)),
        seconds: seconds(fastest),
        model_seconds: seconds(of_model),
        candidates: ranking.len(),
        kept,
    }
}

/// The most problems that are recorded, so that shapes that never repeat do not fill memory.
const MAX_ASKED: usize = 1024;

/// The problems that planners were asked for. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct AskedProblems {
    list: Arc<Mutex<AskedList>>,
}

#[derive(Debug, Default)]
struct AskedList {
    /// How often planners were asked.
    count: u64,
    /// Each problem, with the count at which it was last asked for; in that order.
    last: Vec<(u64, Asked)>,
}

impl AskedProblems {
    fn locked(&self) -> MutexGuard<'_, AskedList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often planners were asked so far.
    pub fn count(&self) -> u64 {
        self.locked().count
    }

    /// The problems that were asked for after planners had been asked `count` times, each once, in
    /// the order in which they were last asked for. With 0, all problems.
    pub fn since(&self, count: u64) -> Vec<Asked> {
        let list = self.locked();
        list.last.iter().filter(|(last, _)| *last >= count).map(|(_, asked)| asked.clone()).collect()
    }

    fn remember(&self, own: Asked) {
        let mut list = self.locked();
        let problem = own.problem();
        list.last.retain(|(_, known)| known.kernel() != own.kernel() || known.problem() != problem);
        if list.last.len() >= MAX_ASKED {
            list.last.remove(0);
        }
        let count = list.count;
        list.last.push((count, own));
        list.count += 1;
    }
}

/// A planner that records the problems that it is asked for.
///
/// ```
/// use tilewright::kernel::Element;
/// use tilewright::kernel::machine::Machine;
/// use tilewright::measured::{AskedPlanner, AskedProblems};
/// use tilewright::planners::{Planner, gemm::Problem};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let h200: Machine = "H200".parse()?;
/// let problems = AskedProblems::default();
/// let planner = AskedPlanner::new(&h200, &problems);
/// planner.gemm(&Problem::new(Element::Bf16, [512, 512, 512])?)?;
/// planner.gemm(&Problem::new(Element::Bf16, [512, 512, 512])?)?;
/// assert_eq!(problems.since(0).len(), 1);
/// assert_eq!(problems.since(0)[0].kernel(), "gemm");
/// assert!(problems.since(problems.count()).is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AskedPlanner<P> {
    planner: P,
    problems: AskedProblems,
}

impl<P: Planner> AskedPlanner<P> {
    /// A planner with the plans of `planner`. Problems are added to the list.
    pub fn new(planner: P, problems: &AskedProblems) -> AskedPlanner<P> {
        AskedPlanner { planner, problems: problems.clone() }
    }
}

impl<P: Planner> Planner for AskedPlanner<P> {
    fn machine(&self) -> &Machine {
        self.planner.machine()
    }

    fn computation(&self, work: &Computation) -> Result<Planned, PlanError> {
        let planned = self.planner.computation(work)?;
        self.problems.remember(Asked::Computation(Box::new(work.clone())));
        Ok(planned)
    }

    fn gemm(&self, problem: &Problem) -> Result<Product, PlanError> {
        let product = self.planner.gemm(problem)?;
        self.problems.remember(Asked::Gemm(Box::new(problem.clone())));
        Ok(product)
    }
}
