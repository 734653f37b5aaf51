//! Lists of problems for one launch.

use std::fmt;

use crate::error::PlanError;
use crate::gemm::problem::Problem;

/// The most problems of a list.
const MAX_PROBLEMS: i64 = 64;

/// Problems of any sizes that are multiplied in one launch.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::gemm::{Problem, Problems, Products};
///
/// let problem = |sizes| Problem::new(Element::Bf16, sizes).unwrap();
/// let list = Problems::new(vec![problem([512, 1024, 256]), problem([64, 4096, 4096])]).unwrap();
/// let h200 = Machine::named("H200").unwrap();
/// let products = Products::new(&list, &h200).unwrap();
/// assert_eq!((products.kernels().len(), products.workspace()), (1, 0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Problems {
    problems: Vec<Problem>,
}

impl Problems {
    /// A list of problems with the same types and the same epilogue function. Each problem has its
    /// own epilogue inputs, sizes and layouts.
    ///
    /// Errors: no problem, or more than 64 ([`PlanError::Size`], [`PlanError::TooLarge`]); a
    /// problem whose types, function or gated pairs differ from the first ([`PlanError::Unlike`]);
    /// a problem that is a batch, or has row groups, padded images, block scales or reductions
    /// ([`PlanError::Together`]).
    pub fn new(problems: Vec<Problem>) -> Result<Problems, PlanError> {
        let count = problems.len() as i64;
        let Some(first) = problems.first() else {
            return Err(PlanError::Size { name: "of the list".to_string(), given: count });
        };
        if count > MAX_PROBLEMS {
            return Err(PlanError::TooLarge { what: "problems", asked: count, limit: MAX_PROBLEMS });
        }
        for (number, problem) in problems.iter().enumerate() {
            for (is, what) in [
                (problem.batch() > 1, "batches"),
                (problem.row_groups().is_some(), "groups of rows"),
                (problem.window().is_some(), "windows of images"),
                (problem.scales().is_some() || problem.blocks().is_some(), "scales of blocks"),
                (problem.reductions().next().is_some(), "reductions in the epilogue"),
            ] {
                if is {
                    return Err(PlanError::Together { what, with: "others in its launch" });
                }
            }
            let types = |problem: &Problem| {
                let (tf32, fast) = (problem.is_tf32(), problem.is_promoted());
                let how = if tf32 { " as tf32" } else { "" };
                format!(
                    "{}{how} to {}{}",
                    problem.operand_name(),
                    problem.result_type(),
                    if fast { ", promoted accumulators" } else { "" }
                )
            };
            let function = |problem: &Problem| {
                problem.epilogue().map_or("none".to_string(), |fused| {
                    let inputs: Vec<String> =
                        fused.inputs.iter().map(|input| input.element().name().to_string()).collect();
                    format!("{} of {}", fused.expression, inputs.join(", "))
                })
            };
            let pairs = |problem: &Problem| problem.pairs().map_or("none".to_string(), |pairs| format!("{pairs:?}"));
            for (what, of) in [
                ("types", &types as &dyn Fn(&Problem) -> String),
                ("epilogue function", &function),
                ("pairs of columns", &pairs),
            ] {
                let (given, wanted) = (of(problem), of(first));
                if given != wanted {
                    return Err(PlanError::Unlike { number, what, given, first: wanted });
                }
            }
        }
        Ok(Problems { problems })
    }

    /// The problems, in the order in which they were given.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Floating-point operations of all problems.
    pub fn operations(&self) -> i64 {
        self.problems.iter().map(Problem::operations).fold(0, i64::saturating_add)
    }

    /// The bytes of all tensors, each element once.
    pub fn bytes(&self) -> i64 {
        self.problems.iter().map(Problem::bytes).fold(0, i64::saturating_add)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if number > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}
