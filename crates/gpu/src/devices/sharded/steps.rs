//! Operations on sharded tensors as steps that all devices execute one after another.
//!
//! Law: a step moves a tensor from one sharded layout to another, or runs one kernel on the local
//! part of each device. The plans of `mesh` determine what is moved, and in which layout devices
//! compute; here they become kernels, before a device is opened. Tensors that need no reshard are
//! used in place.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_layout::Layout;
use tilewright_mesh::{Plan, ShardedLayout, StepKind};
use tilewright_planners::gemm::Product;
use tilewright_planners::{Planned, Planner, Statistic};

use super::ShardedError;
use super::local::Local;
use crate::devices::reshard::Combine;

/// Reduction kernels load vectors of this many bytes.
const VECTOR: i64 = 16;

/// A tensor that steps read or write. It has memory on each device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tensor {
    /// The operand with this number.
    Operand(usize),
    /// The intermediate tensor with this number.
    Between(usize),
    /// The result.
    Result,
}

/// A step of all devices.
#[derive(Debug, Clone)]
pub enum WorkStep {
    /// Reshards a tensor.
    Move {
        /// The steps between devices.
        plan: Box<Plan>,
        /// The type of the elements.
        element: Element,
        /// How summands are combined.
        combine: Combine,
        /// The source of the reshard.
        from: Tensor,
        /// The destination of the reshard.
        to: Tensor,
    },
    /// A kernel on each device.
    Launch {
        /// The kernel.
        planned: Box<Planned>,
        /// The inputs, each from a byte on.
        inputs: Vec<(Tensor, u64)>,
        /// The result.
        to: Tensor,
    },
    /// Launches kernels that differ from device to device, on whole tensors.
    LaunchEach {
        /// The kernels, in the order of ranks.
        planned: Vec<Planned>,
        /// The inputs.
        inputs: Vec<Tensor>,
        /// The result.
        to: Tensor,
    },
    /// A GEMM of the local parts of each device.
    Multiply {
        /// The kernels.
        product: Box<Product>,
        /// A and B.
        operands: [Tensor; 2],
        /// The result.
        to: Tensor,
    },
}

impl WorkStep {
    /// The tensor that the step writes.
    pub fn to(&self) -> Tensor {
        match self {
            WorkStep::Move { to, .. }
            | WorkStep::Launch { to, .. }
            | WorkStep::LaunchEach { to, .. }
            | WorkStep::Multiply { to, .. } => *to,
        }
    }
}

/// An operation on sharded tensors as steps that all devices execute one after another, with the
/// number of bytes of each tensor on each device.
#[derive(Debug, Clone)]
pub struct WorkPlan {
    devices: usize,
    operands: Vec<u64>,
    between: Vec<u64>,
    result: u64,
    steps: Vec<WorkStep>,
}

impl WorkPlan {
    /// The steps.
    pub fn steps(&self) -> &[WorkStep] {
        &self.steps
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// The number of bytes of a tensor on each device; None if there is no such tensor.
    pub fn bytes(&self, tensor: Tensor) -> Option<u64> {
        match tensor {
            Tensor::Operand(number) => self.operands.get(number).copied(),
            Tensor::Between(number) => self.between.get(number).copied(),
            Tensor::Result => Some(self.result),
        }
    }

    /// The number of operands, and that of intermediate tensors.
    pub fn tensors(&self) -> [usize; 2] {
        [self.operands.len(), self.between.len()]
    }

    /// A plan without steps, with operands of one type and a result of another.
    pub(super) fn without_steps<'a>(
        operands: impl IntoIterator<Item = &'a ShardedLayout>,
        result: &ShardedLayout,
        [of_operands, of_result]: [Element; 2],
    ) -> WorkPlan {
        let operands = operands.into_iter().map(|layout| bytes_of(layout, of_operands)).collect();
        let (devices, result) = (result.mesh().size(), bytes_of(result, of_result));
        WorkPlan { devices, operands, between: Vec::new(), result, steps: Vec::new() }
    }

    /// Adds an intermediate tensor.
    pub(super) fn add_tensor(&mut self, layout: &ShardedLayout, element: Element) -> Tensor {
        self.between.push(bytes_of(layout, element));
        Tensor::Between(self.between.len() - 1)
    }

    /// The tensor to write before these plans reshard it: the result itself, if they move nothing.
    pub(super) fn target_before(&mut self, plans: &[&Plan], layout: &ShardedLayout, element: Element) -> Tensor {
        if plans.iter().any(|plan| moves(plan)) { self.add_tensor(layout, element) } else { Tensor::Result }
    }

    pub(super) fn push(&mut self, step: WorkStep) {
        self.steps.push(step);
    }

    pub(super) fn push_move(&mut self, plan: &Plan, element: Element, combine: Combine, from: Tensor, to: Tensor) {
        self.steps.push(WorkStep::Move { plan: Box::new(plan.clone()), element, combine, from, to });
    }

    /// Reshards a tensor by a plan to a new intermediate tensor. Returns the tensor itself if the
    /// plan moves nothing.
    pub(super) fn moved(&mut self, plan: &Plan, element: Element, combine: Combine, from: Tensor) -> Tensor {
        if !moves(plan) {
            return from;
        }
        let to = self.add_tensor(plan.to(), element);
        self.push_move(plan, element, combine, from, to);
        to
    }

    /// Reshards a tensor by a plan to the result, unless it is the result.
    pub(super) fn move_to_result(&mut self, plan: &Plan, element: Element, from: Tensor) {
        if from != Tensor::Result {
            self.push_move(plan, element, Combine::Sum, from, Tensor::Result);
        }
    }

    pub(super) fn push_launch(&mut self, planned: Planned, inputs: &[Tensor], to: Tensor) {
        let inputs = inputs.iter().map(|tensor| (*tensor, 0)).collect();
        self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs, to });
    }

    /// Launches kernels that reduce the local part of each device, and that write the results in
    /// the order that the plan expects.
    pub(super) fn push_reduction(
        &mut self,
        planner: &dyn Planner,
        (statistic, element): (Statistic, Element),
        at: &Local,
        over: &[usize],
        from: Tensor,
        to: Tensor,
    ) -> Result<(), ShardedError> {
        let layout = at.modes()?;
        let is_aligned = at.start * i64::from(element.bytes()) % VECTOR == 0;
        let alignment = if is_aligned { None } else { Some(1) };
        let planned = planner.reduce(statistic, (&layout, element), over, alignment)?;
        let of_result = if statistic == Statistic::ArgMaximum { Element::I32 } else { element };
        let first = u64::try_from(at.start).unwrap_or(0) * u64::from(element.bytes());
        // The kernel writes results in the order of their elements in memory. The plan expects them
        // in the order of the modes.
        let (written, wanted) = (at.kept_by(over, |leaf| leaf.stride)?, at.kept(over)?);
        let without_reduced = |layout: &Layout| at.only_kept(over, layout);
        let (written, wanted) = (without_reduced(&written)?, without_reduced(&wanted)?);
        if written == wanted {
            self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs: vec![(from, first)], to });
            return Ok(());
        }
        self.between.push(u64::try_from(written.size()).unwrap_or(0) * u64::from(of_result.bytes()));
        let unordered = Tensor::Between(self.between.len() - 1);
        self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs: vec![(from, first)], to: unordered });
        self.push_launch(
            planner.relayout(((&written).into(), of_result), ((&wanted).into(), of_result))?,
            &[unordered],
            to,
        );
        Ok(())
    }
}

fn bytes_of(layout: &ShardedLayout, element: Element) -> u64 {
    u64::try_from(layout.reach()).unwrap_or(0).saturating_mul(u64::from(element.bytes()))
}

/// Whether a plan moves elements.
pub(super) fn moves(plan: &Plan) -> bool {
    plan.steps().iter().any(|step| step.kind != StepKind::Nothing)
}

impl fmt::Display for WorkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                WorkStep::Move { plan, element, .. } => writeln!(f, "  moves {element}: {}", plan.summary())?,
                WorkStep::Launch { planned, .. } => {
                    writeln!(f, "  computes {}", planned.plan().first().map_or("", String::as_str))?;
                }
                WorkStep::LaunchEach { planned, .. } => {
                    for (rank, planned) in planned.iter().enumerate() {
                        let what = planned.plan().first().map_or("", String::as_str);
                        writeln!(f, "  computes on device {rank} {what}")?;
                    }
                }
                WorkStep::Multiply { product, .. } => {
                    let ([m, n, k], tile) = (product.problem().sizes(), product.plan());
                    writeln!(f, "  multiplies {m} x {n} x {k}: tiles of {} x {}", tile.rows, tile.columns)?;
                }
            }
        }
        Ok(())
    }
}
