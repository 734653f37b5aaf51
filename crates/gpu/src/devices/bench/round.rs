//! Rounds in which kernels and those that they are compared with are timed.
//!
//! Law: everything that is compared is timed in rounds of the same kind: equally many repetitions,
//! after equally long rests. Other work precedes the timed work, so that the device does not wait
//! for the host's first call. It is the same work; or, after a rest, if one repetition is longer
//! than a round, a loop of one thread, because a repetition of the work would warm up the device as
//! if there were no rest.

use std::time::Duration;

use tilewright_kernel::{Element, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_planners::PlanError;

use super::{BenchError, LASTING, timed};
use crate::{Argument, Device, GpuError, Memory, ModuleOptions, SizedKernel, Stream};

/// The approximate length of a round after a rest, in seconds.
const SHORT_TURN: f64 = 0.002;
/// The number of dependent additions in the loop of one thread. Each takes some cycles, so that the
/// loop lasts longer than a call on the host.
const ADDITIONS: i64 = 200_000;

/// How some work is timed in a round.
#[derive(Debug)]
pub struct Round {
    count: usize,
    rest: Option<Duration>,
    before: Option<Loop>,
}

/// A kernel in which one thread loops.
#[derive(Debug)]
struct Loop {
    kernel: SizedKernel,
    sum: Memory,
}

/// The number of repetitions in a round, for work that takes `seconds` seconds; and whether a loop,
/// instead of the work itself, precedes it.
fn shape(seconds: f64, rest: bool) -> (usize, bool) {
    let length = if rest { SHORT_TURN } else { LASTING };
    let count = ((length / seconds) as usize).clamp(1, 10_000);
    (count, rest && count == 1)
}

/// A kernel in which one thread performs additions for some time.
fn additions() -> Result<Kernel, KernelError> {
    Kernel::build("additions", |k| {
        let sum = k.output::<f32>("sum", "1:1")?;
        k.threads(1)?;
        let own = k.register(Element::F32, 1)?;
        own.fill(k.number_of(Element::F32, 1.0))?;
        k.range(Expr::from(ADDITIONS), |_| own.set(&[own.numbers()?[0] + own.numbers()?[0].like(1.0)]))?;
        sum.store(&own)
    })
}

impl Round {
    /// A round for work that takes `seconds` seconds, after a rest.
    pub fn new(device: &Device, seconds: f64, rest: Option<u32>) -> Result<Round, BenchError> {
        let (count, looped) = shape(seconds, rest.is_some());
        let before = looped.then(|| {
            let kernel = device.compile(&additions().map_err(PlanError::from)?, &ModuleOptions::default())?.at(&[])?;
            Ok::<_, BenchError>(Loop { kernel, sum: device.allocate(4)? })
        });
        let rest = rest.map(|milliseconds| Duration::from_millis(milliseconds.into()));
        Ok(Round { count, rest, before: before.transpose()? })
    }

    /// The seconds of one repetition.
    pub fn timed(
        &mut self,
        device: &Device,
        stream: &Stream,
        mut work: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<f64, GpuError> {
        if let Some(rest) = self.rest {
            std::thread::sleep(rest);
        }
        match &mut self.before {
            None => work()?,
            Some(Loop { kernel, sum }) => kernel.launch(stream, &[Argument::from(sum)])?,
        }
        timed(device, stream, self.count, work)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::interpret;

    use super::*;

    #[test]
    fn what_outlasts_a_turn_behind_a_rest_is_timed_alone() {
        for (seconds, rest, expected) in [
            (1e-4, false, ((LASTING / 1e-4) as usize, false)),
            (1e-4, true, (20, false)),
            (1.5e-3, true, (1, true)),
            (11e-3, true, (1, true)),
            (1.0, false, (1, false)),
            (0.0, true, (10_000, false)),
        ] {
            assert_eq!(shape(seconds, rest), expected, "{seconds} {rest}");
        }
    }

    #[test]
    fn one_thread_adds_for_some_time() {
        let kernel = additions().unwrap();
        let checked = interpret::check(kernel.program(), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(checked.run.tensor::<f32>("sum").unwrap(), [ADDITIONS as f32 + 1.0]);
    }
}
