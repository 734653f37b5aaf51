//! Measures plans of the library's computations on a device. GEMMs are in `gemm.rs`.
//!
//! Law: a plan counts only if its output in this run equals the definition. The tensors of all
//! plans are allocated at once, and plans alternate, so that the clock of the device is the same
//! for all.

use crate::{Device, GpuError, Stream};
use tilewright_kernel::machine::Machine;
use tilewright_planners::{Computation, PlanError, Planned};

use super::{Card, Effort, Kept, MeasuredPlans, PlansError, Ranked, Stopwatch, rank};
use crate::devices::bench::{BenchError, LASTING, LoadedEntry, timed};
use crate::error::one_of;

/// Rounds in which each plan is timed once.
const ROUNDS: usize = 5;
/// The most launches of a round.
const MAX_LAUNCHES: usize = 10_000;

one_of! {
    /// Why no plan is measured or kept.
    #[derive(Debug)]
    TuneError {
        /// There is no plan; an error of the device; a plan with a wrong result.
        Bench(BenchError),
        /// The plan cannot be kept.
        Plans(PlansError),
    }
}

tilewright_layout::from_variants!(TuneError: Bench(PlanError), Bench(GpuError));

/// How plans are measured on a device.
#[derive(Clone, Copy)]
pub struct TuneOptions<'a> {
    /// The most plans to measure. Those that the model predicts to be the fastest come first.
    pub plans: usize,
    /// The number of rounds, and the time after which measuring ends.
    pub effort: Effort,
    /// Milliseconds of rest before each measurement: for GEMMs, whose speed falls with the
    /// temperature of the device. Without it, work precedes each measurement.
    pub rest_ms: Option<u32>,
    /// The machine to plan for, if the device is restricted to an earlier target
    /// ([`Machine::held_to`]). Its plans are kept separately.
    pub machine: Option<&'a Machine>,
    /// Called whenever a plan was checked or timed, to display the progress.
    pub step: &'a dyn Fn(),
}

impl TuneOptions<'_> {
    /// Measures this many plans in five rounds.
    pub fn new(plans: usize) -> TuneOptions<'static> {
        TuneOptions { plans, effort: ROUNDS.into(), rest_ms: None, machine: None, step: &|| () }
    }

    /// The machine that is planned for, and the card whose plans are kept.
    ///
    /// Errors: those of the device.
    pub(super) fn planned_for(&self, device: &Device) -> Result<(Machine, Card), GpuError> {
        let (own, card) = (device.machine()?, Card::of(device));
        Ok(match self.machine {
            Some(machine) if machine.target != own.target => {
                let name = format!("{}@{}", card.name, machine.target.name());
                (machine.clone(), Card { name, ..card })
            }
            Some(machine) => (machine.clone(), card),
            None => (own, card),
        })
    }

    /// How often [`TuneOptions::step`] is called for this many plans.
    pub fn steps(&self, plans: usize) -> usize {
        plans.min(self.plans) * (self.effort.rounds + 1)
    }
}

impl From<usize> for TuneOptions<'_> {
    fn from(plans: usize) -> Self {
        TuneOptions::new(plans)
    }
}

/// Measures plans of a computation on a device, and keeps the fastest. The number of rows must be
/// known ([`RowMatrix::with_rows`](tilewright_planners::RowMatrix::with_rows)).
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
/// Errors: those of the device; the result of a plan differs from the definition; the plan cannot
/// be kept.
pub fn tune<'a>(
    device: &Device,
    plans: &MeasuredPlans,
    work: &Computation,
    options: impl Into<TuneOptions<'a>>,
) -> Result<(Vec<Ranked<Planned>>, Kept), TuneError> {
    let options = options.into();
    let (machine, card) = options.planned_for(device)?;
    let mut candidates = work.candidates(&machine)?;
    candidates.truncate(options.plans.max(1));
    let mut stopwatch = TimedKernels { device, stream: device.stream()?, step: options.step, ready: Vec::new() };
    let ranking = rank(candidates, options.effort, &mut stopwatch)?;
    let kept = plans.keep(&card, work, &ranking)?;
    Ok((ranking, kept))
}

/// Kernels with their tensors on a device, and the number of launches of each in a round.
struct TimedKernels<'d> {
    device: &'d Device,
    stream: Stream,
    step: &'d dyn Fn(),
    ready: Vec<(LoadedEntry, usize)>,
}

impl Stopwatch<Planned> for TimedKernels<'_> {
    type Error = BenchError;

    fn ready(&mut self, plan: &Planned) -> Result<(), BenchError> {
        let (mut loaded, _) = LoadedEntry::checked(self.device, &self.stream, plan)?;
        let once = timed(self.device, &self.stream, 3, || loaded.launch(&self.stream))?;
        self.ready.push((loaded, ((LASTING / once) as usize).clamp(1, MAX_LAUNCHES)));
        (self.step)();
        Ok(())
    }

    fn seconds(&mut self, number: usize) -> Result<f64, BenchError> {
        // Only plans that were prepared are timed.
        let Some((loaded, count)) = self.ready.get_mut(number) else { return Ok(f64::INFINITY) };
        let seconds = timed(self.device, &self.stream, *count, || loaded.launch(&self.stream))?;
        (self.step)();
        Ok(seconds)
    }
}
