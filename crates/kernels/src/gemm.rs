//! Products of matrices for Hopper, planned by a model of the machine.
//!
//! Law: `D(m,n,l) = f(sum over k of A(m,k,l) * B(n,k,l), ..)`, sums in f32, or in i32 of integers,
//! rounded once at the end, after the function of the sum and of further tensors, if there is one.
//! The same problem and plan give the same bits each time.
//!
//! What is multiplied is a [`Problem`]; how it is cut is a [`Plan`]: tile, stages, who multiplies,
//! how many blocks share a tile, in which order tiles are taken. The plan is chosen from sizes
//! alone by a model of the machine; a [`Product`] is the kernels of both.
//!
//! ```text
//! fold       factors whose modes are folded, as boxes
//! images     convolutions of images with borders
//! groups     groups of rows with matrices of their own
//! matrix     where the elements of a tensor lie      fused      elements of further tensors beside sums
//! problem    types, sizes, batch                     schedule   which tile a block takes when
//! pairs      columns of B that make one of D         mainloop   the kernel: one warp copies, groups multiply
//! scales     scales of blocks, and promoted sums     epilogue   how sums leave a block
//! plan       tile, stages, groups, splits            order      groups that take tiles in turn
//! model      how long a plan takes                   byproduct  sums and greatest numbers of rows and columns
//! edges      what is loaded of the last tiles        partials   sums of blocks that share a tile
//! problems   lists of problems in one launch         list       which tile of which problem a block takes
//! definition what an element of D should be          check      products run by the interpreter
//! ```

mod byproduct;
mod check;
mod definition;
mod edges;
mod epilogue;
mod factor;
mod fold;
mod fused;
mod groups;
mod images;
mod lines;
mod list;
mod mainloop;
mod matrix;
mod model;
mod order;
mod pack;
mod pairs;
mod partials;
mod plan;
mod prepare;
mod problem;
mod problems;
mod scales;
mod schedule;
mod step;

use tilewright_kernel::Kernel;
use tilewright_kernel::cost::Machine;

use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;

pub use byproduct::{ByProduct, Each};
pub use check::Report;
pub use definition::Expected;
pub use images::Window;
pub use matrix::Matrix;
pub use pairs::Pairs;
pub use plan::{Plan, Tile};
pub use problem::{Fused, Problem};
pub use problems::{Problems, Products};
pub use scales::Scales;
pub use step::{ProductTensor, Step};

use prepare::Prepared;

/// The kernels of a product, for its sizes alone: launches take no numbers.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::gemm::{Problem, Product};
///
/// let product = Product::new(&Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap()).unwrap();
/// // 512 tiles of 128 x 256 in four turns of 128 blocks, by one kernel.
/// assert_eq!(product.plan().blocks, 128);
/// assert_eq!((product.kernels().len(), product.workspace()), (1, 0));
/// ```
#[derive(Debug, Clone)]
pub struct Product {
    problem: Problem,
    plan: Plan,
    steps: Vec<Step>,
    workspaces: Vec<i64>,
    lines: Vec<String>,
}

impl Product {
    /// The kernels of the plan that takes the least time on an H200, by the model.
    ///
    /// Errors: more tiles or elements than a launch takes ([`PlanError::TooLarge`],
    /// [`PlanError::Kernel`]); no tile suits the groups of rows ([`PlanError::Plan`]).
    pub fn new(problem: &Problem) -> Result<Product, PlanError> {
        let prepared = Prepared::of(problem)?;
        let machine = machine()?;
        let plan =
            match prepared.inner.groups() {
                None => Plan::of(&prepared.inner, &machine),
                Some(_) => groups::plans(&prepared.inner, &machine)?.into_iter().next().map(|(_, plan)| plan).ok_or(
                    PlanError::Plan { because: "no tile divides the groups so that copies and stores take it" },
                )?,
            };
        Product::build(problem, prepared, &plan)
    }

    /// The kernels of a plan.
    ///
    /// Errors: as [`Product::new`]; the plan cannot be carried out ([`PlanError::Plan`]).
    pub fn planned(problem: &Problem, plan: &Plan) -> Result<Product, PlanError> {
        Product::build(problem, Prepared::of(problem)?, plan)
    }

    /// The plans that [`Product::planned`] takes, the one first that takes the least time by the
    /// model, each with the seconds that the model gives it.
    ///
    /// Errors: as [`Product::new`].
    pub fn candidates(problem: &Problem) -> Result<Vec<(f64, Plan)>, PlanError> {
        let (inner, machine) = (Prepared::of(problem)?.inner, machine()?);
        match inner.groups() {
            None => Ok(Plan::candidates(&inner, &machine)),
            Some(_) => groups::plans(&inner, &machine),
        }
    }

    /// The product of a problem that is prepared, by a plan.
    fn build(problem: &Problem, prepared: Prepared, plan: &Plan) -> Result<Product, PlanError> {
        let Prepared { inner, operands, before, after, mut workspaces } = prepared;
        if let Some(because) = plan.refusal(&inner) {
            return Err(PlanError::Plan { because });
        }
        let mut steps = before;
        let kernel = mainloop::kernel("product_groups", &inner, plan, true)?;
        let does = "multiplies".to_string();
        // A, B, and what is read beside the sums, then D.
        let (given, d) = operands.split_at(operands.len().saturating_sub(1));
        let mut operands = operands.clone();
        if inner.groups().is_some() {
            workspaces.push(groups::bytes(&inner, plan));
            let tiles = ProductTensor::Workspace(workspaces.len() - 1);
            let does = "writes where the tiles of the groups are".to_string();
            steps.push(Step::new(groups::table(&inner, plan)?, vec![ProductTensor::Ends, tiles], does));
            operands.insert(given.len(), tiles);
        }
        if plan.tail > 0 {
            workspaces.push(plan.workspace(&inner));
            let sums = ProductTensor::Workspace(workspaces.len() - 1);
            let mut made = Step::new(kernel, operands, does);
            made.operands.push(sums);
            made.writes = 2;
            steps.push(made);
            let does = "adds the sums of blocks that share the last tiles".to_string();
            steps.push(Step::new(partials::last(&inner, plan)?, [&[sums], d].concat(), does));
        } else if plan.splits > 1 {
            workspaces.push(plan.workspace(&inner));
            let sums = ProductTensor::Workspace(workspaces.len() - 1);
            let inputs = inner.function().map_or(0, |fused| fused.inputs.len());
            let (factors, beside) = given.split_at(2);
            let (inputs, scales) = beside.split_at(inputs);
            steps.push(Step::new(kernel, [factors, scales, &[sums]].concat(), does));
            let plain = inner.function().is_none() && inner.is_dense();
            let each = if inner.pairs().is_some() { 2 } else { 1 };
            let (kernel, copies) = match plain {
                true => (partials::added(&inner, plan.splits)?, 1),
                // Of pairs there are two sums.
                false => (partials::mapped(&inner, plan.splits)?, plan.splits as usize * each),
            };
            let operands = [&vec![sums; copies], inputs, d].concat();
            steps.push(Step::new(kernel, operands, "adds the sums of blocks that share a tile".to_string()));
        } else {
            let mut made = Step::new(kernel, operands, does);
            let mut then = Vec::new();
            for (number, by) in inner.by_products().enumerate() {
                let kept = byproduct::steps(by, number, (&inner, plan), &mut workspaces)?;
                made.operands.push(kept.0);
                made.writes += 1;
                then.extend(kept.1);
            }
            steps.push(made);
            steps.extend(then);
        }
        steps.extend(after);
        let mut lines: Vec<String> = Vec::new();
        for step in &steps {
            match step.does.as_str() {
                "multiplies" => {
                    lines.extend(plan.to_string().lines().map(str::to_string));
                    lines.extend(lines::of_kernel(&inner, plan));
                }
                does => lines.push(format!("a kernel {does}")),
            }
        }
        Ok(Product { problem: problem.clone(), plan: plan.clone(), steps, workspaces, lines })
    }

    /// What is multiplied.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// How it is cut.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The kernels, in the order in which they run: one from A and B into D, or, where blocks share
    /// tiles, one from A and B into the workspace and one from there into D; before and after them,
    /// those that move what the copy engine cannot read or write.
    pub fn kernels(&self) -> Vec<&Kernel> {
        self.steps.iter().map(|step| &step.kernel).collect()
    }

    /// The kernels with what each reads and writes.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Bytes of device memory besides the tensors.
    pub fn workspace(&self) -> i64 {
        self.workspaces.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Bytes of each piece of it: those of [`ProductTensor::Workspace`].
    pub fn workspaces(&self) -> &[i64] {
        &self.workspaces
    }

    /// What was chosen, a line each.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// The plan of one kernel, without a workspace, that takes the least time on an H200.
pub(crate) fn alone(name: &str, problem: &Problem) -> Result<Planned, PlanError> {
    let plan =
        model::fastest(problem, &machine()?, |plan| plan.splits == 1 && !plan.side_by_side() && !plan.alternates);
    let kernel = mainloop::kernel(name, problem, &plan, false)?;
    let mut lines: Vec<String> = plan.to_string().lines().map(str::to_string).collect();
    lines.extend(lines::of_kernel(problem, &plan));
    Ok(Planned::new(kernel, lines, Meaning::Product).sized(&problem.named()))
}

/// What the number of blocks and the stages are chosen for.
fn machine() -> Result<Machine, PlanError> {
    let unknown =
        || PlanError::Unknown { what: "machine", given: "H200".to_string(), known: Machine::NAMES.join(", ") };
    Machine::named("H200").ok_or_else(unknown)
}
