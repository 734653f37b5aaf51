//! Plans of the library's computations, measured on a device.
//!
//! Law: a plan counts only if its output in this run equals the definition. The tensors of all
//! plans are allocated at once, and plans alternate, so that the clock of the device is the same
//! for all.

use std::fmt;

use crate::{Device, GpuError, Stream};
use tilewright_planners::{Computation, PlanError, Planned};

use super::{Card, Kept, MeasuredPlans, PlansError, Ranked, Stopwatch, rank};
use crate::devices::bench::{BenchError, LASTING, LoadedEntry, timed};

/// Rounds in which each plan is timed once.
const ROUNDS: usize = 5;
/// The most launches of a round.
const MAX_LAUNCHES: usize = 10_000;

/// Why no plan is measured or kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum TuneError {
    /// There is no plan.
    Plan(PlanError),
    /// The device, or a plan that is wrong.
    Bench(BenchError),
    /// The plan is not kept.
    Plans(PlansError),
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuneError::Plan(error) => error.fmt(f),
            TuneError::Bench(error) => error.fmt(f),
            TuneError::Plans(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TuneError {}

impl From<PlanError> for TuneError {
    fn from(error: PlanError) -> TuneError {
        TuneError::Plan(error)
    }
}

impl From<BenchError> for TuneError {
    fn from(error: BenchError) -> TuneError {
        TuneError::Bench(error)
    }
}

impl From<GpuError> for TuneError {
    fn from(error: GpuError) -> TuneError {
        TuneError::Bench(error.into())
    }
}

impl From<PlansError> for TuneError {
    fn from(error: PlansError) -> TuneError {
        TuneError::Plans(error)
    }
}

/// Measures up to so many plans of a computation on a device, those first that the planner would
/// take, and keeps the fastest. Rows have to be counted
/// ([`RowMatrix::with_rows`](tilewright_planners::RowMatrix::with_rows)).
///
/// ```
/// use tilewright::gpu::Device;
/// use tilewright::kernel::Element;
/// use tilewright::planners::{Computation, RowMatrix};
/// use tilewright::measured::{self, MeasuredPlans};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rows = Computation::Softmax { matrix: RowMatrix::new(32_768, Element::F32).with_rows(4096) };
/// // On a computer with a GPU.
/// if let Ok(device) = Device::open(0) {
///     let (ranking, _) = measured::tune(&device, &MeasuredPlans::from_environment(), &rows, 8)?;
///     println!("{:.1} us: {}", ranking[0].seconds * 1e6, ranking[0].plan);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Errors: the device; a plan leaves something else than the definition says; the plan cannot be
/// kept.
pub fn tune(
    device: &Device,
    plans: &MeasuredPlans,
    work: &Computation,
    count: usize,
) -> Result<(Vec<Ranked<Planned>>, Kept), TuneError> {
    let mut candidates = work.candidates(&device.machine()?)?;
    candidates.truncate(count.max(1));
    let mut stopwatch = TimedKernels { device, stream: device.stream()?, ready: Vec::new() };
    let ranking = rank(candidates, ROUNDS, &mut stopwatch)?;
    let kept = plans.keep(&Card::of(device), work, &ranking)?;
    Ok((ranking, kept))
}

/// Kernels with their tensors on a device, each with how often it is launched in a round.
struct TimedKernels<'d> {
    device: &'d Device,
    stream: Stream,
    ready: Vec<(LoadedEntry, usize)>,
}

impl Stopwatch<Planned> for TimedKernels<'_> {
    type Error = BenchError;

    fn ready(&mut self, plan: &Planned) -> Result<(), BenchError> {
        let (mut loaded, _) = LoadedEntry::checked(self.device, &self.stream, plan)?;
        let once = timed(self.device, &self.stream, 3, || loaded.launch(&self.stream))?;
        self.ready.push((loaded, ((LASTING / once) as usize).clamp(1, MAX_LAUNCHES)));
        Ok(())
    }

    fn seconds(&mut self, number: usize) -> Result<f64, BenchError> {
        // Only plans that were made ready are asked for.
        let Some((loaded, count)) = self.ready.get_mut(number) else { return Ok(f64::INFINITY) };
        Ok(timed(self.device, &self.stream, *count, || loaded.launch(&self.stream))?)
    }
}
