//! The time of work on a stream of a device, compared with the driver's copy of equally many bytes.
//!
//! Law: kernel and copy alternate, and the time of each is the median. Short launches of kernel and
//! copy are captured into graphs, because otherwise the time would be that of the host's calls.

use crate::{Device, GpuError, Graph, Stream};

/// The default number of timed repetitions of kernel and copy.
pub const REPEATS: u16 = 9;
/// The approximate length of each timed repetition, in seconds.
pub const LASTING: f64 = 0.02;
/// Launches shorter than this, in seconds, are replayed from a graph of several launches.
const SHORT: f64 = 50e-6;
const RECORDED: usize = 200;
/// The driver takes up to twice the time for copies that are not a multiple of this size, in bytes.
const PAGE: u64 = 4096;

/// The times of a kernel and of a copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// The median time of a launch, in seconds.
    pub seconds: f64,
    /// The median time in which the driver copies equally many bytes, in seconds.
    pub copy_seconds: f64,
    /// The number of launches in a graph, if they are too short to be launched one by one;
    /// otherwise 0.
    pub recorded: usize,
    /// The number of measurements whose median is reported.
    pub repeats: u16,
}

/// The number of bytes that a copy reads, and also writes, so that it moves `bytes` in total: half
/// of them, in whole pages.
///
/// ```
/// assert_eq!(tilewright::bench::copied(16384), 8192);
/// assert_eq!(tilewright::bench::copied(3), 4096);
/// ```
pub fn copied(bytes: i64) -> u64 {
    u64::try_from(bytes / 2).unwrap_or(1).max(1).next_multiple_of(PAGE)
}

/// The median of some times; NaN if there are none.
///
/// ```
/// assert_eq!(tilewright::bench::median(vec![3.0, 1.0, 9.0]), 3.0);
/// ```
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The time of one repetition of some work on a stream, in seconds, measured over `count`
/// repetitions.
///
/// ```
/// use tilewright::{bench, gpu::Device};
///
/// // On a machine with a GPU.
/// if let Ok(device) = Device::open(0) {
///     let stream = device.stream()?;
///     let mut memory = device.allocate(1 << 20)?;
///     assert!(bench::timed(&device, &stream, 10, || memory.fill_bytes(&stream, 0))? > 0.0);
/// }
/// # Ok::<(), tilewright::gpu::GpuError>(())
/// ```
///
/// Errors: those of the device; those of `work`.
pub fn timed(
    device: &Device,
    stream: &Stream,
    count: usize,
    mut work: impl FnMut() -> Result<(), GpuError>,
) -> Result<f64, GpuError> {
    let (first, last) = (device.event()?, device.event()?);
    stream.record(&first)?;
    for _ in 0..count {
        work()?;
    }
    stream.record(&last)?;
    last.synchronize()?;
    Ok(last.seconds_since(&first)? / count as f64)
}

/// The median times of some launches, and of a copy of equally many bytes.
pub(super) fn beside_copy(
    device: &Device,
    stream: &Stream,
    (bytes, repeats): (i64, u16),
    mut launch: impl FnMut() -> Result<(), GpuError>,
) -> Result<Timing, GpuError> {
    let half = copied(bytes);
    let from = device.allocate(half)?;
    let mut to = device.allocate(half)?;
    let once = timed(device, stream, 3, &mut launch)?;
    let count = ((LASTING / once) as usize).clamp(1, 10_000);
    let recorded = if once < SHORT { RECORDED } else { 0 };
    let (mut kernels, mut copies) = (Vec::new(), Vec::new());
    if recorded > 0 {
        let own = Graph::capture(stream, |_| (0..recorded).try_for_each(|_| launch()))?;
        let other = Graph::capture(stream, |_| (0..recorded).try_for_each(|_| to.copy_from(stream, &from)))?;
        let replays = count.div_ceil(recorded);
        for _ in 0..repeats {
            for (graph, into) in [(&own, &mut kernels), (&other, &mut copies)] {
                into.push(timed(device, stream, replays, || graph.launch(stream))? / recorded as f64);
            }
        }
    } else {
        for _ in 0..repeats {
            kernels.push(timed(device, stream, count, &mut launch)?);
            copies.push(timed(device, stream, count, || to.copy_from(stream, &from))?);
        }
    }
    Ok(Timing { seconds: median(kernels), copy_seconds: median(copies), recorded, repeats })
}
