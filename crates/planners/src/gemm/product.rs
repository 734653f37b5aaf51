//! A problem, its plan and its kernels.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, Kernel};

use crate::error::PlanError;
use crate::gemm::candidates;
use crate::gemm::epilogue::{reductions, split_k};
use crate::gemm::lines;
use crate::gemm::mainloop;
use crate::gemm::plan::{Plan, needs_types};
use crate::gemm::prepare::Prepared;
use crate::gemm::problem::Problem;
use crate::gemm::schedule::grouped;
use crate::gemm::step::{ProductTensor, ProductTensors, Step, StepKind};
use crate::planned::Planned;
use crate::terms::Meaning;

/// The kernels of a GEMM for fixed sizes: launches take no size arguments.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::gemm::{Problem, Product};
///
/// let h200 = Machine::named("H200").unwrap();
/// let product = Product::new(&Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap(), &h200).unwrap();
/// // 512 tiles of 128 x 256 in four waves of 128 blocks, by one kernel.
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
    /// The kernels of the plan that takes the least time on a machine, by the model.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Problem, Product};
    ///
    /// let problem = Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap();
    /// // Warps multiply by mma.sync.
    /// let product = Product::new(&problem, &Machine::named("A100").unwrap()).unwrap();
    /// assert!(product.plan().warps.is_some());
    /// ```
    ///
    /// Errors: the machine has no 8-bit floats, and the problem does ([`PlanError::Unknown`]); more
    /// tiles or elements than a launch takes ([`PlanError::TooLarge`], [`PlanError::Kernel`]); no
    /// tile suits the row groups ([`PlanError::Plan`]).
    pub fn new(problem: &Problem, machine: &Machine) -> Result<Product, PlanError> {
        needs_types(problem, machine)?;
        let prepared = Prepared::of(problem, machine)?;
        let plan = match prepared.inner.row_groups() {
            None => Plan::of(&prepared.inner, machine),
            Some(_) => candidates::grouped(&prepared.inner, machine)?
                .into_iter()
                .next()
                .map(|(_, plan)| plan)
                .ok_or(PlanError::Plan { because: "no tile suits the row groups" })?,
        };
        Product::build(problem, prepared, &plan, machine)
    }

    /// The kernels of a plan.
    ///
    /// Errors: as [`Product::new`]; the plan cannot be carried out ([`PlanError::Plan`]).
    pub fn planned(problem: &Problem, plan: &Plan, machine: &Machine) -> Result<Product, PlanError> {
        needs_types(problem, machine)?;
        Product::build(problem, Prepared::of(problem, machine)?, plan, machine)
    }

    /// The plans that [`Product::planned`] accepts, sorted by the seconds that the model estimates.
    ///
    /// Errors: as [`Product::new`].
    pub fn candidates(problem: &Problem, machine: &Machine) -> Result<Vec<(f64, Plan)>, PlanError> {
        needs_types(problem, machine)?;
        let inner = Prepared::of(problem, machine)?.inner;
        match inner.row_groups() {
            None => Ok(Plan::candidates(&inner, machine)),
            Some(_) => candidates::grouped(&inner, machine),
        }
    }

    /// The kernels of a prepared problem, by a plan.
    fn build(problem: &Problem, prepared: Prepared, plan: &Plan, machine: &Machine) -> Result<Product, PlanError> {
        let Prepared { inner, operands, before, after, mut workspaces } = prepared;
        if let Some(because) = plan.refusal(&inner, machine) {
            return Err(PlanError::Plan { because });
        }
        let mut steps = before;
        let kernel = mainloop::kernel("product_groups", &inner, (plan, machine), true)?;
        let ProductTensors { a, b, inputs, scales, d } = operands;
        // What the GEMM reads: A, B, epilogue inputs, and the table of row groups.
        let mut read = [vec![a, b], inputs.clone(), scales.clone()].concat();
        let gemm = |operands: Vec<ProductTensor>| Step::new(StepKind::Gemm, kernel, operands, "multiplies".to_string());
        let mut workspace = |bytes: i64| {
            workspaces.push(bytes);
            ProductTensor::Workspace(workspaces.len() - 1)
        };
        if inner.row_groups().is_some() {
            let tiles = workspace(grouped::bytes(&inner, plan));
            let does = "writes the table of the tiles of all row groups".to_string();
            let kernel = grouped::table(&inner, plan, machine)?;
            steps.push(Step::new(StepKind::Tiles, kernel, vec![ProductTensor::Ends, tiles], does));
            read.push(tiles);
        }
        if plan.tail > 0 {
            let partial = workspace(plan.workspace(&inner));
            steps.push(Step { writes: 2, ..gemm([read, vec![d, partial]].concat()) });
            let does = "adds the partial accumulators of the tail".to_string();
            steps.push(Step::new(StepKind::SplitK, split_k::last(&inner, plan, machine)?, vec![partial, d], does));
        } else if plan.split_k > 1 {
            let partial = workspace(plan.workspace(&inner));
            steps.push(gemm([vec![a, b], scales, vec![partial]].concat()));
            let plain = inner.epilogue().is_none() && inner.is_dense();
            let each = if inner.pairs().is_some() { 2 } else { 1 };
            let (kernel, copies) = match plain {
                true => (split_k::added(&inner, machine, plan.split_k)?, 1),
                // A gated pair has two accumulators.
                false => (split_k::mapped(&inner, machine, plan.split_k)?, plan.split_k as usize * each),
            };
            let operands = [vec![partial; copies], inputs, vec![d]].concat();
            let does = "adds the partial accumulators of split-K".to_string();
            steps.push(Step::new(StepKind::SplitK, kernel, operands, does));
        } else {
            let mut made = gemm([read, vec![d]].concat());
            let mut then = Vec::new();
            for (number, by) in inner.reductions().enumerate() {
                let kept = reductions::steps((by, number), (&inner, plan), machine, &mut workspaces)?;
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
            match step.kind {
                StepKind::Gemm => {
                    lines.extend(plan.to_string().lines().map(str::to_string));
                    lines.extend(lines::of_kernel(&inner, plan, machine));
                }
                _ => lines.push(format!("a kernel {}", step.does)),
            }
        }
        Ok(Product { problem: problem.clone(), plan: plan.clone(), steps, workspaces, lines })
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The kernels, in launch order: one from A and B into D; or, with split-K, one from A and B
    /// into the workspace and one from there into D. Kernels that copy what TMA cannot read or
    /// write come before and after them.
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

    /// Bytes of each workspace, as numbered by [`ProductTensor::Workspace`].
    pub fn workspaces(&self) -> &[i64] {
        &self.workspaces
    }

    /// The plan as text, line by line.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// The kernel of a GEMM with the sizes as arguments: A, `(M,K):(K,1)`, and B, `(N,K):(K,1)`, into
/// D, `(M,N):(N,1)`, all of f16 or bf16. It is the fastest plan, by the model, that has one kernel
/// and no workspace: by wgmma and TMA where the machine has them, else by `mma.sync`.
///
/// The sizes `[M, N, K]` determine the tile and the known divisors of M, N and K; other sizes with
/// the same divisors may be launched. N and K are multiples of 8, so that rows begin at multiples
/// of 16 bytes.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::product;
///
/// let [h200, a100] = ["H200", "A100"].map(|name| Machine::named(name).unwrap());
/// let planned = product(&h200, "product", Element::Bf16, [4096, 4096, 4096]).unwrap();
/// assert!(planned.to_string().contains("2 consumer warpgroups"));
/// let planned = product(&a100, "product", Element::Bf16, [4096, 4096, 4096]).unwrap();
/// assert!(planned.to_string().contains("SM80_16x8x16_F32BF16BF16F32_TN"));
/// ```
///
/// Errors: types without an instruction, or sizes below 1 ([`PlanError::Layout`],
/// [`PlanError::Unknown`]).
pub fn product(machine: &Machine, name: &str, element: Element, sizes: [i64; 3]) -> Result<Planned, PlanError> {
    let problem = &Problem::new(element, sizes)?;
    let one = |plan: &Plan| plan.split_k == 1 && !plan.side_by_side() && !plan.ping_pong;
    let plan = candidates::fastest(problem, machine, one);
    let kernel = mainloop::kernel(name, problem, (&plan, machine), false)?;
    let mut lines: Vec<String> = plan.to_string().lines().map(str::to_string).collect();
    lines.extend(lines::of_kernel(problem, &plan, machine));
    Ok(Planned::new(kernel, lines, Meaning::Product).sized(&problem.named()))
}
