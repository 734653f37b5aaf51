//! Problems that have several plans.

use std::fmt::Write as _;

use tilewright_kernel::machine::Machine;
use tilewright_planners::gemm::{Plan, Problem, Product};
use tilewright_planners::{Computation, PlanError, Planned};
use tilewright_tile::{Compiled, Program, TileError};

use super::file::hash;

/// A problem with several plans, which can be measured and kept.
///
/// Law: [`Planning::read`] of the [line](Planning::line) of a candidate is that candidate, and two
/// problems with the same [kernel](Planning::kernel) and [problem](Planning::problem) have the same
/// fastest plan on a device.
pub trait Planning {
    /// A plan.
    type Plan;
    /// Why there are no plans.
    type Error: std::error::Error + 'static;

    /// The name of the kernel: `gemm`.
    fn kernel(&self) -> &str;

    /// Everything that determines the time of a plan on a device, in one line without tabs.
    fn problem(&self) -> String;

    /// All plans for a machine. Those that a model predicts to be the fastest come first.
    ///
    /// Errors: there is no plan for the machine.
    fn candidates(&self, machine: &Machine) -> Result<Vec<Self::Plan>, Self::Error>;

    /// A plan as one line without tabs. Different plans have different lines.
    fn line(plan: &Self::Plan) -> String;

    /// The plan of a line for a machine; None if there is no such plan.
    fn read(&self, machine: &Machine, line: &str) -> Option<Self::Plan>;
}

impl Planning for Problem {
    type Plan = Plan;
    type Error = PlanError;

    fn kernel(&self) -> &str {
        "gemm"
    }

    fn problem(&self) -> String {
        let mut text = self.to_string();
        for operand in self.given().into_iter().chain(self.outputs()) {
            if let Some(matrix) = self.matrix(operand) {
                let _ = write!(text, "; {operand:?} {matrix}");
            }
        }
        if self.is_tf32() {
            text.push_str("; tf32");
        }
        text
    }

    fn candidates(&self, machine: &Machine) -> Result<Vec<Plan>, PlanError> {
        Ok(Product::candidates(self, machine)?.into_iter().map(|(_, plan)| plan).collect())
    }

    fn line(plan: &Plan) -> String {
        plan.line()
    }

    fn read(&self, machine: &Machine, line: &str) -> Option<Plan> {
        let plan = Plan::from_line(line)?;
        Product::planned(self, &plan, machine).ok()?;
        Some(plan)
    }
}

impl Planning for Computation {
    type Plan = Planned;
    type Error = PlanError;

    fn kernel(&self) -> &str {
        self.name()
    }

    fn problem(&self) -> String {
        self.to_string()
    }

    fn candidates(&self, machine: &Machine) -> Result<Vec<Planned>, PlanError> {
        Computation::candidates(self, machine)
    }

    /// The text of the plan.
    fn line(plan: &Planned) -> String {
        plan.plan().join("; ")
    }

    fn read(&self, machine: &Machine, line: &str) -> Option<Planned> {
        let all = Computation::candidates(self, machine).ok()?;
        all.into_iter().find(|plan| Self::line(plan) == line)
    }
}

/// A tile program at given sizes.
///
/// ```
/// use tilewright::measured::{Planning, TileWork};
/// use tilewright::tile::Program;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let program: Program = "
/// tile sums {
///     input x: f32 (M,256):(256,1)
///     output y: f32 (M,1):(1,1)
///     grid ceil(M/8)
///     store(y, (block.x, 0), reduce_sum(load(x, (8,256), (block.x, 0)), 1))
/// }"
/// .parse()?;
/// let work = TileWork { program: &program, sizes: vec![("M".into(), 4096)] };
/// let plans = work.candidates(&"H200".parse()?)?;
/// assert!(plans.len() > 1);
/// assert_eq!(plans[0].warps(), program.compile(None)?.warps());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TileWork<'p> {
    /// The program.
    pub program: &'p Program,
    /// The sizes of a launch, each with its name.
    pub sizes: Vec<(String, i64)>,
}

impl Planning for TileWork<'_> {
    type Plan = Compiled;
    type Error = TileError;

    fn kernel(&self) -> &str {
        "tile"
    }

    /// The name of the program, a checksum of its text, and the sizes.
    fn problem(&self) -> String {
        let mut text = format!("{} {:016x}", self.program.name(), hash(self.program.to_string().as_bytes()));
        for (name, size) in &self.sizes {
            let _ = write!(text, " {name}={size}");
        }
        text
    }

    fn candidates(&self, machine: &Machine) -> Result<Vec<Compiled>, TileError> {
        self.program.candidates(machine)
    }

    fn line(plan: &Compiled) -> String {
        plan.line()
    }

    fn read(&self, machine: &Machine, line: &str) -> Option<Compiled> {
        self.program.candidates(machine).ok()?.into_iter().find(|plan| plan.line() == line)
    }
}
