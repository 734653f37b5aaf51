//! What a planner is asked to compute, independent of the machine, and all plans for it.
//!
//! Law: all candidates of a computation compute the same. The first candidate is the plan that the
//! planner chooses without measurements, and no two candidates print the same text.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;

use crate::error::PlanError;
use crate::planned::Planned;
use crate::reduce::ReduceOptions;
use crate::terms::{Norm, Place, RowMatrix, Statistic};
use crate::{norm, reduce, relayout, softmax};

/// A computation of the library whose plan depends on the machine. A GEMM is a
/// [`gemm::Problem`](crate::gemm::Problem).
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{Computation, RowMatrix};
///
/// # fn main() -> Result<(), tilewright_planners::PlanError> {
/// let h200 = Machine::named("H200").unwrap();
/// let rows = Computation::Softmax { matrix: RowMatrix::new(32_768, Element::F32).with_rows(4096) };
/// let plans = rows.candidates(&h200)?;
/// assert_eq!(plans[0].plan(), rows.plan(&h200)?.plan());
/// assert!(plans.len() > 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Computation {
    /// [`relayout`](crate::relayout()).
    Relayout {
        /// The layout that is read.
        from: Box<Place>,
        /// The type of its elements.
        source: Element,
        /// The layout that is written.
        to: Box<Place>,
        /// The type of its elements.
        destination: Element,
    },
    /// [`softmax`](crate::softmax()).
    Softmax {
        /// The rows.
        matrix: RowMatrix,
    },
    /// [`rms_norm`](crate::rms_norm).
    RmsNorm {
        /// The rows.
        matrix: RowMatrix,
        /// The options of the norm: weights, bias, epsilon.
        norm: Norm,
    },
    /// [`layer_norm`](crate::layer_norm).
    LayerNorm {
        /// The rows.
        matrix: RowMatrix,
        /// The options of the norm: weights, bias, epsilon.
        norm: Norm,
    },
    /// [`ReduceOptions`](crate::ReduceOptions).
    Reduce {
        /// The statistic that is computed.
        statistic: Statistic,
        /// The layout of the tensor.
        layout: Layout,
        /// The type of its elements.
        element: Element,
        /// The modes that are reduced.
        modes: Vec<usize>,
        /// The tensors begin at multiples of this number of elements.
        alignment: i64,
    },
}

impl Computation {
    /// The kernel that the planner chooses for a machine. A number of rows set by
    /// [`RowMatrix::with_rows`] becomes the size `M` of its launch.
    ///
    /// Errors: those of the function of this computation.
    pub fn plan(&self, machine: &Machine) -> Result<Planned, PlanError> {
        match self {
            Computation::Relayout { from, source, to, destination } => {
                relayout::relayout(machine, (**from).clone(), *source, (**to).clone(), *destination)
            }
            Computation::Softmax { matrix } => softmax::softmax(machine, *matrix).map(|plan| launched(plan, matrix)),
            Computation::RmsNorm { matrix, norm } => {
                norm::rms_norm(machine, *matrix, *norm).map(|plan| launched(plan, matrix))
            }
            Computation::LayerNorm { matrix, norm } => {
                norm::layer_norm(machine, *matrix, *norm).map(|plan| launched(plan, matrix))
            }
            Computation::Reduce { statistic, layout, element, modes, alignment } => {
                let options = ReduceOptions { alignment: *alignment };
                reduce::reduce(machine, *statistic, (layout, *element), modes, options)
            }
        }
    }

    /// The kernels of all plans for a machine, that of [`Computation::plan`] first.
    ///
    /// Errors: those of [`Computation::plan`].
    pub fn candidates(&self, machine: &Machine) -> Result<Vec<Planned>, PlanError> {
        let of_rows = |plans: Vec<Planned>, matrix| plans.into_iter().map(|plan| launched(plan, matrix)).collect();
        match self {
            Computation::Relayout { from, source, to, destination } => {
                relayout::candidates(machine, (&**from, *source), (&**to, *destination))
            }
            Computation::Softmax { matrix } => {
                softmax::candidates(machine, *matrix).map(|plans| of_rows(plans, matrix))
            }
            Computation::RmsNorm { matrix, norm } => {
                norm::candidates(machine, *matrix, *norm, false).map(|plans| of_rows(plans, matrix))
            }
            Computation::LayerNorm { matrix, norm } => {
                norm::candidates(machine, *matrix, *norm, true).map(|plans| of_rows(plans, matrix))
            }
            Computation::Reduce { statistic, layout, element, modes, alignment } => {
                reduce::candidates(machine, *statistic, (layout, *element), modes, *alignment)
            }
        }
    }

    /// The name of the function of this computation.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::{Computation, RowMatrix};
    ///
    /// let rows = Computation::Softmax { matrix: RowMatrix::new(1000, Element::F32) };
    /// assert_eq!(rows.name(), "softmax");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Computation::Relayout { .. } => "relayout",
            Computation::Softmax { .. } => "softmax",
            Computation::RmsNorm { .. } => "rms_norm",
            Computation::LayerNorm { .. } => "layer_norm",
            Computation::Reduce { .. } => "reduce",
        }
    }
}

/// Sets the number of rows, if it is known.
fn launched(plan: Planned, matrix: &RowMatrix) -> Planned {
    match matrix.rows {
        Some(rows) => plan.sized(&[("M", rows)]),
        None => plan,
    }
}

/// Everything that decides the time of a plan, in one line.
impl fmt::Display for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = |f: &mut fmt::Formatter<'_>, matrix: &RowMatrix| {
            let RowMatrix { columns, element, alignment, rows, pitches: [x, y] } = matrix;
            let rows = rows.map_or("any number of".to_string(), |rows| rows.to_string());
            write!(f, "{rows} rows of {columns} {element}, pitches {x} and {y}, aligned to {alignment} elements")
        };
        match self {
            Computation::Relayout { from, source, to, destination } => {
                write!(f, "{source} {from} -> {destination} {to}")
            }
            Computation::Softmax { matrix } => rows(f, matrix),
            Computation::RmsNorm { matrix, norm } | Computation::LayerNorm { matrix, norm } => {
                rows(f, matrix)?;
                let has = |has: bool| if has { "with" } else { "without" };
                write!(f, ", {} weights, {} bias", has(norm.weights), has(norm.bias))
            }
            Computation::Reduce { statistic, layout, element, modes, alignment } => {
                let modes: Vec<String> = modes.iter().map(usize::to_string).collect();
                let modes = modes.join(",");
                let name = statistic.name();
                write!(f, "{name} of {element} {layout} along modes [{modes}], aligned to {alignment} elements")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    fn computations() -> Vec<Computation> {
        let relayout = |from: &str, to: &str, element| Computation::Relayout {
            from: Box::new(Place::from(&layout(from))),
            source: element,
            to: Box::new(Place::from(&layout(to))),
            destination: element,
        };
        let reduce = |text: &str, modes: &[usize]| Computation::Reduce {
            statistic: Statistic::Sum,
            layout: layout(text),
            element: Element::F32,
            modes: modes.to_vec(),
            alignment: 4,
        };
        let rows = |columns, rows| RowMatrix::new(columns, Element::F32).with_rows(rows);
        vec![
            relayout("(64,48):(48,1)", "(64,48):(1,64)", Element::Bf16),
            relayout("(33,65):(65,1)", "(33,65):(1,33)", Element::F32),
            relayout("(7,5,600):(3000,600,1)", "(7,5,600):(600,4200,1)", Element::U8),
            Computation::Softmax { matrix: rows(9000, 2) },
            Computation::RmsNorm { matrix: rows(5000, 2), norm: Norm::new(1e-5) },
            Computation::LayerNorm { matrix: rows(5000, 2), norm: Norm::new(1e-5).without_bias() },
            reduce("(60,1000):(1000,1)", &[1]),
            reduce("60000:1", &[0]),
        ]
    }

    /// Every candidate leaves what the definition says, and the first is the planner's own.
    #[test]
    fn candidates_are_right_and_the_first_is_the_chosen_one() {
        let h200 = Machine::named("H200").unwrap();
        let mut most = 0;
        for own in computations() {
            let plans = own.candidates(&h200).unwrap();
            assert_eq!(plans[0].plan(), own.plan(&h200).unwrap().plan(), "{own}");
            for (number, plan) in plans.iter().enumerate() {
                plan.check().unwrap_or_else(|error| panic!("{own}: {plan}{error}"));
                assert!(plans[..number].iter().all(|other| other.plan() != plan.plan()), "{plan}");
            }
            most = most.max(plans.len());
            assert!(plans.len() > 1, "{own}: {}", plans[0]);
        }
        assert!(most > 2);
    }

    /// Cards without clusters have no candidate with one.
    #[test]
    fn candidates_run_on_the_machine() {
        let a100 = Machine::named("A100").unwrap();
        for own in computations() {
            for plan in own.candidates(&a100).unwrap() {
                for kernel in plan.launches() {
                    tilewright_kernel::ptx::write(kernel.program(), a100.target).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_decides_is_told_in_one_line() {
        let mut seen = Vec::new();
        for own in computations() {
            let line = format!("{} {own}", own.name());
            assert!(!line.contains(['\n', '\t']) && !seen.contains(&line), "{line}");
            seen.push(line);
        }
        let rows = |rows| Computation::Softmax { matrix: RowMatrix::new(8, Element::F32).with_rows(rows) };
        assert_ne!(rows(8).to_string(), rows(9).to_string());
    }
}
