//! Plans of a GEMM, measured on a device.
//!
//! Law: a plan counts only if it computed the right numbers of D in this run, at positions spread
//! over all of it. Plans alternate on one set of tensors, so that the clock of the device is the
//! same for all.

use tilewright_planners::gemm::{Expected, Problem, Product};

use super::{Kept, MeasuredPlans, Ranked, Stopwatch, TuneError, TuneOptions, rank};
use crate::devices::bench::tensors::{Ready, Tensors, compare, ready, wanted};
use crate::devices::bench::{BenchError, Round, timed};
use crate::{Device, Stream};

/// The approximate number of multiplications for checking each plan.
const CHECKED: i64 = 1 << 23;

/// Measures plans of a GEMM on a device, and keeps the fastest. Row groups end at `ends`, or at
/// random rows.
///
/// ```
/// use tilewright::gpu::Device;
/// use tilewright::kernel::Element;
/// use tilewright::measured::{self, MeasuredPlans};
/// use tilewright::planners::gemm::Problem;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let problem = Problem::new(Element::Bf16, [4096, 4096, 4096])?;
/// // On a computer with a GPU.
/// if let Ok(device) = Device::open(0) {
///     let (ranking, _) = measured::tune_gemm(&device, &MeasuredPlans::from_environment(), &problem, None, 8)?;
///     println!("{:.1} us: {:?}", ranking[0].seconds * 1e6, ranking[0].plan.plan());
/// }
/// # Ok(())
/// # }
/// ```
///
/// Errors: there is no plan for the device; those of the device; the result of a plan differs from
/// the definition; the plan cannot be kept.
pub fn tune_gemm<'a>(
    device: &Device,
    plans: &MeasuredPlans,
    problem: &Problem,
    ends: Option<&[u8]>,
    options: impl Into<TuneOptions<'a>>,
) -> Result<(Vec<Ranked<Product>>, Kept), TuneError> {
    let options = options.into();
    let (machine, card) = options.planned_for(device)?;
    let candidates = Product::candidates(problem, &machine)?;
    let candidates = &candidates[..options.plans.clamp(1, candidates.len().max(1)).min(candidates.len())];
    let products = candidates.iter().map(|(_, plan)| Product::planned(problem, plan, &machine));
    let products: Vec<Product> = products.collect::<Result<_, _>>()?;
    // For each workspace, the size that the most demanding plan needs.
    let mut workspaces: Vec<i64> = Vec::new();
    for product in &products {
        workspaces.resize(workspaces.len().max(product.workspaces().len()), 0);
        for (all, own) in workspaces.iter_mut().zip(product.workspaces()) {
            *all = (*all).max(*own);
        }
    }
    let stream = device.stream()?;
    let (tensors, blocks) = Tensors::filled(device, &stream, (problem, 0), ends, &workspaces)?;
    let wanted = wanted(problem, &blocks, CHECKED)?;
    let mut on_device = TunedProducts { device, stream: &stream, problem, tensors, wanted, options, ready: Vec::new() };
    let ranking = rank(products, options.effort, &mut on_device)?;
    let plan_of =
        |own: &Ranked<Product>| Ranked { plan: own.plan.plan().clone(), number: own.number, seconds: own.seconds };
    let kept = plans.keep(&card, problem, &ranking.iter().map(plan_of).collect::<Vec<_>>())?;
    Ok((ranking, kept))
}

/// Compiled GEMMs with one set of tensors on a device.
struct TunedProducts<'a> {
    device: &'a Device,
    stream: &'a Stream,
    problem: &'a Problem,
    tensors: Tensors,
    wanted: Vec<Expected>,
    options: TuneOptions<'a>,
    ready: Vec<(Vec<Ready>, Round)>,
}

impl Stopwatch<Product> for TunedProducts<'_> {
    type Error = BenchError;

    fn ready(&mut self, product: &Product) -> Result<(), BenchError> {
        let (device, stream, tensors) = (self.device, self.stream, &mut self.tensors);
        let (machine, _) = self.options.planned_for(device)?;
        let kernels = ready(device, product.steps(), &machine)?;
        tensors.poison(stream, self.problem)?;
        tensors.launch(stream, &kernels)?;
        stream.synchronize()?;
        compare(self.problem, stream, &self.wanted, tensors)?;
        let once = timed(device, stream, 3, || tensors.launch(stream, &kernels))?;
        self.ready.push((kernels, Round::new(device, once, self.options.rest_ms)?));
        (self.options.step)();
        Ok(())
    }

    fn seconds(&mut self, number: usize) -> Result<f64, BenchError> {
        let Some((kernels, round)) = self.ready.get_mut(number) else { return Ok(f64::INFINITY) };
        let (stream, tensors) = (self.stream, &mut self.tensors);
        let seconds = round.timed(self.device, stream, || tensors.launch(stream, kernels))?;
        (self.options.step)();
        Ok(seconds)
    }
}
