//! The interface of planners, which choose one of the plans of a problem.
//!
//! Law: every plan that a planner returns computes what the problem specifies; planners differ in
//! speed alone. A machine chooses by its model. A table of measured plans chooses the plan that was
//! measured to be the fastest, and the model's plan if nothing was measured.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;

use crate::computation::Computation;
use crate::error::PlanError;
use crate::gemm::{Problem, Product};
use crate::planned::Planned;
use crate::terms::{Place, Statistic};
use crate::units::WHOLE;

/// Chooses among the plans of a problem, for one machine.
///
/// A [`Machine`] is a planner: its model chooses.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{Computation, Planner, RowMatrix};
///
/// # fn main() -> Result<(), tilewright_planners::PlanError> {
/// let h200 = Machine::named("H200").unwrap();
/// let rows = Computation::Softmax { matrix: RowMatrix::new(1000, Element::F32).with_rows(64) };
/// assert_eq!(h200.computation(&rows)?.plan(), rows.plan(&h200)?.plan());
/// # Ok(())
/// # }
/// ```
pub trait Planner {
    /// The machine for which the planner plans.
    fn machine(&self) -> &Machine;

    /// The kernel of a computation.
    ///
    /// Errors: those of [`Computation::plan`].
    fn computation(&self, work: &Computation) -> Result<Planned, PlanError>;

    /// The kernels of a GEMM.
    ///
    /// Errors: those of [`Product::new`].
    fn gemm(&self, problem: &Problem) -> Result<Product, PlanError>;

    /// The kernel of a relayout; see [`relayout`](crate::relayout()).
    ///
    /// Errors: those of [`relayout`](crate::relayout()).
    fn relayout(
        &self,
        (from, source): (Place, Element),
        (to, destination): (Place, Element),
    ) -> Result<Planned, PlanError> {
        self.computation(&Computation::Relayout { from: Box::new(from), source, to: Box::new(to), destination })
    }

    /// The kernels that compute a statistic along modes of a tensor, which begins at a multiple of
    /// this number of elements; see [`reduce`](crate::reduce()).
    ///
    /// Errors: those of [`reduce`](crate::reduce()).
    fn reduce(
        &self,
        statistic: Statistic,
        (layout, element): (&Layout, Element),
        modes: &[usize],
        alignment: Option<i64>,
    ) -> Result<Planned, PlanError> {
        let alignment = alignment.unwrap_or(WHOLE);
        let (layout, modes) = (layout.clone(), modes.to_vec());
        self.computation(&Computation::Reduce { statistic, layout, element, modes, alignment })
    }
}

impl<P: Planner + ?Sized> Planner for &P {
    fn machine(&self) -> &Machine {
        (**self).machine()
    }

    fn computation(&self, work: &Computation) -> Result<Planned, PlanError> {
        (**self).computation(work)
    }

    fn gemm(&self, problem: &Problem) -> Result<Product, PlanError> {
        (**self).gemm(problem)
    }
}

impl Planner for Machine {
    fn machine(&self) -> &Machine {
        self
    }

    fn computation(&self, work: &Computation) -> Result<Planned, PlanError> {
        work.plan(self)
    }

    fn gemm(&self, problem: &Problem) -> Result<Product, PlanError> {
        Product::new(problem, self)
    }
}
