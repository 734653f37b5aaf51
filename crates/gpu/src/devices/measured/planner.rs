//! The planner of a device: it uses measured plans, and else those of the model.
//!
//! Law: everything that launches planned kernels on a device of this process uses a
//! [`DevicePlanner`], so a plan that was measured once is used everywhere.

use tilewright_kernel::machine::Machine;
use tilewright_planners::gemm::{Problem, Product};
use tilewright_planners::{Computation, PlanError, Planned, Planner};
use tilewright_tile::{Compiled, Program, TileError};

use super::file::Contents;
use super::work::{Planning, TileWork};
use super::{Card, MeasuredPlan, MeasuredPlans, PlansError, contents, shipped};
use crate::{Device, GpuError};

/// Chooses the plans for a device: the measured plan that was kept for a problem, or else the one
/// that the model of the machine chooses. The file of measured plans is read once, when the planner
/// is made.
///
/// ```
/// use tilewright::gpu::Device;
/// use tilewright::kernel::Element;
/// use tilewright::measured::DevicePlanner;
/// use tilewright::planners::{Computation, Planner, RowMatrix};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rows = Computation::Softmax { matrix: RowMatrix::new(32_768, Element::F32).with_rows(4096) };
/// // On a computer with a GPU.
/// if let Ok(device) = Device::open(0) {
///     println!("{}", DevicePlanner::new(&device)?.computation(&rows)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DevicePlanner {
    machine: Machine,
    card: Card,
    kept: Contents,
    /// Whether the table that comes with the library is used.
    shipped: bool,
    unread: Option<PlansError>,
}

impl DevicePlanner {
    /// A planner with the measured plans of the user ([`MeasuredPlans::from_environment`]).
    ///
    /// Errors: those of the device.
    pub fn new(device: &Device) -> Result<DevicePlanner, GpuError> {
        DevicePlanner::with(device, &MeasuredPlans::from_environment())
    }

    /// A planner with the measured plans of a folder. If their file cannot be read, there are none,
    /// and [`DevicePlanner::unread`] says why.
    ///
    /// Errors: those of the device.
    pub fn with(device: &Device, plans: &MeasuredPlans) -> Result<DevicePlanner, GpuError> {
        let card = Card::of(device);
        let kept = plans.path(&card).map_or_else(|| Ok(Contents::default()), |path| contents(&path, &card));
        let (kept, unread) = match kept {
            Ok(kept) => (kept, None),
            Err(error) => (Contents::default(), Some(error)),
        };
        Ok(DevicePlanner { machine: device.machine()?, card, kept, shipped: plans.shipped, unread })
    }

    /// Why no measured plan is used, if their file cannot be read.
    pub fn unread(&self) -> Option<&PlansError> {
        self.unread.as_ref()
    }

    /// The measured plan for a problem. None if none was measured, or if the library no longer has
    /// this plan for the machine.
    pub fn measured<W: Planning>(&self, work: &W) -> Option<(W::Plan, MeasuredPlan)> {
        let (kernel, problem) = (work.kernel(), work.problem());
        let kept = self.kept.find(kernel, &problem).cloned();
        let found = kept.or_else(|| shipped::find(&self.card, kernel, &problem).filter(|_| self.shipped))?;
        Some((work.read(&self.machine, &found.plan)?, found))
    }

    /// A compiled tile program: the kernel that was measured to be the fastest at these sizes, or
    /// else the one that the machine's costs choose.
    ///
    /// Errors: as [`Program::compile`].
    pub fn tile(&self, program: &Program, sizes: &[(&str, i64)]) -> Result<Compiled, TileError> {
        let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        match self.measured(&TileWork { program, sizes }) {
            Some((compiled, _)) => Ok(compiled),
            None => program.compile(&self.machine),
        }
    }
}

impl Planner for DevicePlanner {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn computation(&self, work: &Computation) -> Result<Planned, PlanError> {
        self.measured(work).map_or_else(|| work.plan(&self.machine), |(planned, _)| Ok(planned))
    }

    fn gemm(&self, problem: &Problem) -> Result<Product, PlanError> {
        match self.measured(problem) {
            Some((plan, _)) => Product::planned(problem, &plan, &self.machine),
            None => Product::new(problem, &self.machine),
        }
    }
}
