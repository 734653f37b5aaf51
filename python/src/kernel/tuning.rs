//! Plans measured on a device.
//!
//! Law: problems that were planned for the device in this process are measured. A plan is kept only
//! if its result was right.

use std::time::{Duration, Instant};

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use tilewright::measured::{Asked, Effort, MeasuredPlans, TuneError, TuneOptions};

use super::bench::of_bench;
use crate::device::opened;
use crate::interrupt::interruptible;
use crate::refusal;

/// How often problems were planned for a device in this process.
#[pyfunction]
pub fn asked_count(py: Python<'_>, ordinal: usize) -> PyResult<u64> {
    Ok(opened(py, ordinal)?.problems.count())
}

/// Problems that were planned for a device, each once.
#[pyclass(frozen, module = "tilewright")]
pub struct Problems {
    ordinal: usize,
    problems: Vec<Asked>,
}

#[pymethods]
impl Problems {
    /// Those that were asked for since planners had been asked so often.
    #[new]
    fn new(py: Python<'_>, ordinal: usize, since: u64) -> PyResult<Problems> {
        Ok(Problems { ordinal, problems: opened(py, ordinal)?.problems.since(since) })
    }

    fn __len__(&self) -> usize {
        self.problems.len()
    }

    /// The name of the kernel and the problem, each in one line.
    fn name(&self, number: usize) -> PyResult<(String, String)> {
        let asked = self.problem(number)?;
        Ok((asked.kernel().to_owned(), asked.problem()))
    }

    /// Measures plans of a problem for some seconds, and keeps the fastest: the plan, its
    /// microseconds, those of the model's plan, how many were measured, and the file.
    fn tune(
        &self,
        py: Python<'_>,
        number: usize,
        seconds: f64,
        plans: usize,
    ) -> PyResult<(String, f64, f64, usize, String)> {
        let asked = self.problem(number)?;
        let left = Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err(format!("seconds are a number from 0, not {seconds}")))?;
        let until = Instant::now().checked_add(left);
        let device = opened(py, self.ordinal)?.device.clone();
        let effort = Effort { until, ..TuneOptions::new(plans).effort };
        let tuned = interruptible(py, || {
            asked.tune(&device, &MeasuredPlans::from_environment(), TuneOptions { effort, ..TuneOptions::new(plans) })
        })?;
        let tuned = tuned.map_err(|error| match error {
            TuneError::Bench(error) => of_bench(py, error),
            error => refusal::of_run(py, "", &format!("the plan is not kept: {error}"), None, None),
        })?;
        let path = tuned.kept.path.display().to_string();
        Ok((tuned.plan, tuned.seconds * 1e6, tuned.model_seconds * 1e6, tuned.candidates, path))
    }
}

impl Problems {
    fn problem(&self, number: usize) -> PyResult<&Asked> {
        self.problems
            .get(number)
            .ok_or_else(|| PyIndexError::new_err(format!("there are {} problems", self.problems.len())))
    }
}
