//! Long work in parts, without the interpreter's lock.
//!
//! Law: between two parts an interrupt ends the work, and the completed parts remain. Between two
//! parts `progress(done, total)` is also called, in elements or multiplications.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright_tensor::{Offsets, TensorError};

use super::placed::Placed;
use crate::refusal;

/// The number of elements of a part of a copy or reduction: some tenths of a second from memory.
pub(super) const PART: i64 = 1 << 26;

/// Parts of a pair of tensors, each with its amount of work.
pub(super) type Parts = Vec<([Placed; 2], i64)>;

/// Splits two tensors in the same way along one mode each, by default the last one, into parts of
/// about the same work. Leaves them whole if their modes differ, or have parts that are not
/// layouts.
pub(super) fn parts(py: Python<'_>, pair: [(&Placed, Option<usize>); 2], work: i64, most: i64) -> PyResult<Parts> {
    let whole = || vec![(pair.map(|(tensor, _)| tensor.again()), work)];
    let modes = pair.map(|(tensor, mode)| mode.or_else(|| tensor.offsets.rank().checked_sub(1)));
    let [Some(first), Some(second)] = modes else { return Ok(whole()) };
    let size = pair[0].0.size_of(first);
    let congruent = pair.iter().all(|(_, mode)| mode.is_some()) || pair[0].0.sizes() == pair[1].0.sizes();
    if work <= most || size != pair[1].0.size_of(second) || !congruent {
        return Ok(whole());
    }
    let count = (work / most + 1).clamp(1, size);
    let mut parts = Vec::new();
    for number in 0..count {
        let (from, to) = (size * number / count, size * (number + 1) / count);
        let both = (pair[0].0.part(py, first, from, to), pair[1].0.part(py, second, from, to));
        let (Ok(one), Ok(other)) = both else { return Ok(whole()) };
        parts.push(([one, other], work / size.max(1) * (to - from)));
    }
    Ok(parts)
}

/// Executes the parts in sequence. Between two parts an interrupt ends the work, and progress is
/// reported.
pub(super) fn in_parts(
    py: Python<'_>,
    parts: &[([Placed; 2], i64)],
    progress: Option<&Bound<'_, PyAny>>,
    mut run: impl FnMut([&Placed; 2]) -> PyResult<()>,
) -> PyResult<()> {
    let total: i64 = parts.iter().map(|(_, work)| work).sum();
    let mut done = 0;
    for ([first, second], work) in parts {
        run([first, second])?;
        py.check_signals()?;
        done += work;
        if let Some(progress) = progress {
            progress.call1(PyTuple::new(py, [done, total])?)?;
        }
    }
    Ok(())
}

/// Computes without the interpreter's lock, on this many threads if a number is given.
pub(super) fn on_threads<R: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    compute: impl FnOnce() -> Result<R, TensorError> + Send,
) -> PyResult<R> {
    let computed = py.detach(|| match threads {
        None => Ok(compute()),
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
            pool.map(|pool| pool.install(compute))
        }
    });
    let computed = computed.map_err(|error| PyValueError::new_err(format!("no threads: {error}")))?;
    computed.map_err(|error| refusal::of(py, &error))
}
