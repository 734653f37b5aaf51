//! The turns in which products and their peers are timed.
//!
//! Law: all that is compared has turns of one kind: as many repetitions, behind as long a rest. The
//! work runs once before it is timed, so that the device is not idle while the host sets off the
//! first launch. Behind a rest, work that outlasts a turn is timed alone: a repetition before it
//! would leave it a device as warm as without the rest, and beside its time the host's call is
//! nothing.

use std::time::Duration;

use tilewright::gpu::{Device, GpuError, Stream};

use crate::kernel::bench::{TURN, timed};

/// How long a turn takes about behind a rest, in seconds.
const SHORT_TURN: f64 = 0.002;

pub(super) struct Turn {
    count: usize,
    rest: Option<Duration>,
}

impl Turn {
    /// For work that takes so many seconds, behind so many milliseconds of rest.
    pub(super) fn new(seconds: f64, rest: Option<u32>) -> Turn {
        let rest = rest.map(|milliseconds| Duration::from_millis(milliseconds.into()));
        let length = if rest.is_some() { SHORT_TURN } else { TURN };
        Turn { count: ((length / seconds) as usize).clamp(1, 10_000), rest }
    }

    /// Whether the work runs once before it is timed.
    fn begins_warm(&self) -> bool {
        self.rest.is_none() || self.count > 1
    }

    /// The seconds of one repetition.
    pub(super) fn timed(
        &self,
        device: &Device,
        stream: &Stream,
        mut work: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<f64, GpuError> {
        if let Some(rest) = self.rest {
            std::thread::sleep(rest);
        }
        if self.begins_warm() {
            work()?;
        }
        timed(device, stream, self.count, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outlasts_a_turn_behind_a_rest_is_timed_alone() {
        for (seconds, rest, count, warm) in [
            (1e-4, None, (TURN / 1e-4) as usize, true),
            (1e-4, Some(4), 20, true),
            (1.5e-3, Some(4), 1, false),
            (11e-3, Some(10), 1, false),
            (1.0, None, 1, true),
            (0.0, Some(4), 10_000, true),
        ] {
            let turn = Turn::new(seconds, rest);
            assert_eq!((turn.count, turn.begins_warm()), (count, warm), "{seconds} {rest:?}");
        }
    }
}
