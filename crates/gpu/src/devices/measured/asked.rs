//! Problems that planners were asked for, and their tuning.
//!
//! Law: an [`AskedPlanner`] gives the plans of its planner, and remembers each problem once, however
//! often it is asked for.

use std::sync::{Mutex, PoisonError};

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
    /// The same of the plan that the model of the machine chooses, in the same run.
    pub model_seconds: f64,
    /// How many plans were measured.
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

/// The first plan of a ranking, which was kept and so is not empty.
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

/// A planner that remembers what it is asked for.
///
/// ```
/// use tilewright::kernel::Element;
/// use tilewright::kernel::machine::Machine;
/// use tilewright::measured::AskedPlanner;
/// use tilewright::planners::{Planner, gemm::Problem};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let h200: Machine = "H200".parse()?;
/// let planner = AskedPlanner::new(&h200);
/// planner.gemm(&Problem::new(Element::Bf16, [512, 512, 512])?)?;
/// planner.gemm(&Problem::new(Element::Bf16, [512, 512, 512])?)?;
/// let asked = planner.asked();
/// assert_eq!(asked.len(), 1);
/// assert_eq!(asked[0].kernel(), "gemm");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AskedPlanner<P> {
    planner: P,
    asked: Mutex<Vec<Asked>>,
}

impl<P: Planner> AskedPlanner<P> {
    /// With the plans of another planner.
    pub fn new(planner: P) -> AskedPlanner<P> {
        AskedPlanner { planner, asked: Mutex::new(Vec::new()) }
    }

    /// The problems that it was asked for, in their order.
    pub fn asked(self) -> Vec<Asked> {
        self.asked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, own: Asked) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.iter().any(|known| known.kernel() == own.kernel() && known.problem() == own.problem()) {
            asked.push(own);
        }
    }
}

impl<P: Planner> Planner for AskedPlanner<P> {
    fn machine(&self) -> &Machine {
        self.planner.machine()
    }

    fn computation(&self, work: &Computation) -> Result<Planned, PlanError> {
        let planned = self.planner.computation(work)?;
        self.remember(Asked::Computation(Box::new(work.clone())));
        Ok(planned)
    }

    fn gemm(&self, problem: &Problem) -> Result<Product, PlanError> {
        let product = self.planner.gemm(problem)?;
        self.remember(Asked::Gemm(Box::new(problem.clone())));
        Ok(product)
    }
}
