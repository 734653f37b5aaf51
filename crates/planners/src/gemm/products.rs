//! Many problems in one launch: the list, its plan and its kernels.
//!
//! Law: `D_i = f(sum over k of A_i(m,k) * B_i(n,k), ..)` for each problem `i` of a list, each with
//! its own sizes and tensors. Types and epilogue function are the same in all. One kernel
//! multiplies them (`list.rs`); kernels before and after it copy what it cannot read or write in
//! place.

use tilewright_kernel::Kernel;
use tilewright_kernel::machine::Machine;

use crate::error::PlanError;
use crate::gemm::fitted::BAND;
use crate::gemm::lines;
use crate::gemm::mainloop;
use crate::gemm::model;
use crate::gemm::plan::{Plan, TileChoice, needs_types};
use crate::gemm::prepare::{Alike, Prepared};
use crate::gemm::problem::Problem;
use crate::gemm::problem::list::Problems;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::step::{ProductTensor, ProductTensors, Step, StepKind};

/// The most bytes of the arguments of a launch. A tensor map takes 128 bytes and a tensor one
/// address.
const ARGUMENT_BYTES: i64 = 32_764;
const MAP_BYTES: i64 = 128;
/// The number of problems whose tiles are considered for a plan: those with the most operations.
const PLANNED_PROBLEMS: usize = 8;
/// The kernels of a list of problems for fixed sizes: launches take no size arguments.
#[derive(Debug, Clone)]
pub struct Products {
    problems: Problems,
    plan: Plan,
    steps: Vec<Step>,
    workspaces: Vec<i64>,
    lines: Vec<String>,
}

/// The problems that the kernel of a list multiplies, and the kernels around it.
struct Ready {
    /// The problems with the most k-tiles come first, in the layouts that the kernel reads.
    problems: Vec<Problem>,
    /// The index of each problem in the list, and its tensors.
    operands: Vec<(usize, ProductTensors)>,
    before: Vec<Step>,
    after: Vec<Step>,
    workspaces: Vec<i64>,
}

impl Ready {
    fn of(list: &Problems, machine: &Machine) -> Result<Ready, PlanError> {
        let prepared = list.problems().iter().map(|problem| Prepared::of(problem, machine));
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        let same = |of: &dyn Fn(&Problem) -> Option<Contiguous>| {
            let found: Vec<_> = prepared.iter().map(|prepared| of(&prepared.inner)).collect();
            found[0].filter(|_| found.iter().all(|own| *own == found[0]))
        };
        // If K is contiguous in some problems only, it is made contiguous in all; bulk copies store
        // D.
        let alike = Alike {
            along: [0, 1].map(|side| same(&|own| own.readable_on(machine)[side].ok()).is_none()),
            stored: same(&|own| own.stored().ok()).or(Some(Contiguous::Columns)),
        };
        let mut ready = Ready {
            problems: Vec::new(),
            operands: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            workspaces: Vec::new(),
        };
        let mut order: Vec<usize> = (0..list.problems().len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(list.problems()[*number].sizes()[2]));
        for number in order {
            let prepared = Prepared::like(&list.problems()[number], machine, alike)?;
            let pieces = ready.workspaces.len();
            let moved = |operand: ProductTensor| match operand {
                ProductTensor::Workspace(own) => ProductTensor::Workspace(own + pieces),
                other => other,
            };
            let own = |mut step: Step| {
                step.operands = step.operands.into_iter().map(moved).collect();
                step.problems = vec![number; step.operands.len()];
                step
            };
            ready.before.extend(prepared.before.into_iter().map(own));
            ready.after.extend(prepared.after.into_iter().map(own));
            let ProductTensors { a, b, inputs, scales, d } = prepared.operands;
            let all = |tensors: Vec<ProductTensor>| tensors.into_iter().map(moved).collect();
            let operands =
                ProductTensors { a: moved(a), b: moved(b), inputs: all(inputs), scales: all(scales), d: moved(d) };
            ready.operands.push((number, operands));
            ready.workspaces.extend(prepared.workspaces);
            ready.problems.push(prepared.inner);
        }
        Ok(ready)
    }

    /// The plans that can be carried out, the fastest one first by the model.
    fn plans(&self, machine: &Machine) -> Result<Vec<(f64, Plan)>, PlanError> {
        let mut largest: Vec<&Problem> = self.problems.iter().collect();
        largest.sort_by_key(|problem| std::cmp::Reverse(problem.operations()));
        largest.dedup_by_key(|problem| problem.mma_sizes());
        let mut tiles: Vec<TileChoice> = Vec::new();
        for problem in largest.into_iter().take(PLANNED_PROBLEMS) {
            for (_, plan) in Plan::candidates(problem, machine) {
                let tile = plan.tile();
                if !tiles.contains(&tile) {
                    tiles.push(tile);
                }
            }
        }
        let plan = |tile: TileChoice| {
            let mut plan = Plan::tiled(&self.problems[0], machine, tile);
            let stages = |problem: &Problem| plan.most_stages(problem, machine);
            plan.stages = self.problems.iter().map(stages).min().unwrap_or(0);
            plan.raster_band = BAND;
            let units = self.problems.iter().map(|problem| plan.of_problem(problem).units(problem));
            let slots = i64::from(machine.multiprocessors) * plan.blocks_per_sm;
            plan.blocks = units.fold(0, i64::saturating_add).min(slots);
            plan.programmatic_launch = false;
            plan
        };
        let plans = tiles.into_iter().map(plan).filter(|plan| self.refusal(plan, machine).is_none());
        let mut plans: Vec<(f64, Plan)> =
            plans.map(|plan| (model::seconds_of_list(&plan, &self.problems, machine), plan)).collect();
        plans.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        match plans.is_empty() {
            true => Err(PlanError::Plan { because: "no tile is multiplied in all problems of the list" }),
            false => Ok(plans),
        }
    }

    /// Why a plan cannot be carried out; None if it can.
    fn refusal(&self, plan: &Plan, machine: &Machine) -> Option<&'static str> {
        if plan.split_k > 1 || plan.tail > 0 || plan.cluster > 1 || plan.ping_pong {
            return Some("a list excludes split-K, clusters and ping-pong");
        }
        self.problems.iter().find_map(|problem| plan.of_problem(problem).refusal(problem, machine))
    }
}

impl Products {
    /// The kernels of the plan that takes the least time on a machine, by the model.
    ///
    /// Errors: as [`Product::new`](super::Product::new) for each problem; more than 8 problems with
    /// an input that is not prefetched, or more arguments than a launch takes
    /// ([`PlanError::TooLarge`]).
    pub fn new(problems: &Problems, machine: &Machine) -> Result<Products, PlanError> {
        problems.problems().iter().try_for_each(|problem| needs_types(problem, machine))?;
        let ready = Ready::of(problems, machine)?;
        let plans = ready.plans(machine)?;
        Products::build(problems, ready, &plans[0].1, machine)
    }

    /// The kernels of a plan.
    ///
    /// Errors: as [`Products::new`]; the plan cannot be carried out ([`PlanError::Plan`]).
    pub fn planned(problems: &Problems, plan: &Plan, machine: &Machine) -> Result<Products, PlanError> {
        problems.problems().iter().try_for_each(|problem| needs_types(problem, machine))?;
        Products::build(problems, Ready::of(problems, machine)?, plan, machine)
    }

    /// The plans that [`Products::planned`] accepts, sorted by the seconds that the model
    /// estimates.
    ///
    /// Errors: as [`Products::new`].
    pub fn candidates(problems: &Problems, machine: &Machine) -> Result<Vec<(f64, Plan)>, PlanError> {
        problems.problems().iter().try_for_each(|problem| needs_types(problem, machine))?;
        Ready::of(problems, machine)?.plans(machine)
    }

    fn build(problems: &Problems, ready: Ready, plan: &Plan, machine: &Machine) -> Result<Products, PlanError> {
        if let Some(because) = ready.refusal(plan, machine) {
            return Err(PlanError::Plan { because });
        }
        // The only problem of a list is planned like a single GEMM, in which fewer tiles lie
        // outside.
        let plan = match &ready.problems[..] {
            [only] => &plan.of_problem(only),
            _ => plan,
        };
        let tiles = ready.problems.iter().map(|problem| plan.of_problem(problem).units(problem));
        let tiles = tiles.fold(0, i64::saturating_add);
        let limit = i64::from(i32::MAX) - plan.blocks;
        if tiles > limit {
            return Err(PlanError::TooLarge { what: "tiles of a list", asked: tiles, limit });
        }
        let kernel = mainloop::kernel_of("product_list", &ready.problems, (plan, machine), true)?;
        let program = kernel.program();
        let bytes = program.tensors().count() as i64 * size_of::<u64>() as i64 + program.maps.len() as i64 * MAP_BYTES;
        if bytes > ARGUMENT_BYTES {
            return Err(PlanError::TooLarge { what: "bytes of arguments", asked: bytes, limit: ARGUMENT_BYTES });
        }
        // A and B of all problems, then all epilogue inputs, then all D.
        let all = |part: &dyn Fn(&ProductTensors) -> Vec<ProductTensor>| {
            let of = |(number, own): &(usize, ProductTensors)| {
                part(own).into_iter().map(|own| (*number, own)).collect::<Vec<_>>()
            };
            ready.operands.iter().flat_map(of).collect::<Vec<(usize, ProductTensor)>>()
        };
        let results = all(&|own| vec![own.d]);
        let writes = results.len();
        let read = [all(&|own| vec![own.a, own.b]), all(&|own| own.inputs.clone())].concat();
        let (problem_of, operands) = read.into_iter().chain(results).unzip();
        let mut step = Step::new(StepKind::Gemm, kernel, operands, "multiplies".to_string());
        (step.problems, step.writes) = (problem_of, writes);
        let mut lines: Vec<String> = plan.to_string().lines().map(str::to_string).collect();
        lines.push(format!("{tiles} tiles of {} problems, those with the most k-tiles first", ready.problems.len()));
        lines.extend(lines::of_kernel(&ready.problems[0], plan, machine));
        let moves = |steps: &[Step]| {
            let line = |step: &Step| format!("a kernel {}, of problem {}", step.does, step.problems[0]);
            steps.iter().map(line).collect::<Vec<_>>()
        };
        let lines = [moves(&ready.before), lines, moves(&ready.after)].concat();
        let steps = ready.before.into_iter().chain([step]).chain(ready.after).collect();
        Ok(Products { problems: problems.clone(), plan: plan.clone(), steps, workspaces: ready.workspaces, lines })
    }

    /// The problems.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// The plan for the tiles of all problems.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The kernels, in launch order: one GEMM kernel for all problems; kernels before and after it
    /// copy what it cannot read or write in place.
    pub fn kernels(&self) -> Vec<&Kernel> {
        self.steps.iter().map(Step::kernel).collect()
    }

    /// The kernels with the tensors that each reads and writes, and the problem of each tensor
    /// ([`Step::problems`]).
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Bytes of device memory besides the tensors.
    pub fn workspace(&self) -> i64 {
        self.workspaces.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Bytes of each workspace, as numbered by [`ProductTensor::Workspace`].
    pub fn workspaces(&self) -> &[i64] {
        &self.workspaces
    }

    /// The plan as text, line by line.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}
