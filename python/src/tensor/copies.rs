//! Copies, conversions and fills, without the interpreter's lock.
//!
//! Law: each function has the effect of the function with its name in `tilewright-tensor`, in parts
//! (`work.rs`). A copy between tensors whose memory overlaps reads all of the source first.
//!
//! Reason for unsafe code: views of memory that Python shares; each comment says why it is sound.
#![allow(unsafe_code)]

use bytemuck::{NoUninit, Pod};
use half::{bf16, f16};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tilewright_tensor::{self as cpu, CopyOptions, Offsets, Plan, TensorError};

use super::element::Element;
use super::memory::Guard;
use super::placed::Placed;
use super::work::{PART, in_parts, on_threads, parts};
use super::{Tensor, TensorBody, is_overlapping};
use crate::refusal;

/// Copies every element of `src` to the one of `dst` at the same index, converting it where the
/// types differ.
///
/// Errors: the sizes differ; `dst` is to be read only or has an element twice; no conversion is
/// known; another thread is at work on the memory.
#[pyfunction]
#[pyo3(signature = (src, dst, *, threads = None, progress = None))]
pub fn copy(
    py: Python<'_>,
    src: &Bound<'_, Tensor>,
    dst: &Bound<'_, Tensor>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    copied_tensors(py, src.get(), dst.get(), threads, progress)
}

/// As [`copy`]. Nothing is copied if there are no elements.
pub(super) fn copied_tensors(
    py: Python<'_>,
    src: &Tensor,
    dst: &Tensor,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    match (&src.0, &dst.0) {
        (TensorBody::Placed(src), TensorBody::Placed(dst)) => copied(py, src, dst, threads, progress),
        (_, TensorBody::Empty(dst)) => {
            dst.check_writable()?;
            dst.check_size(py, src.sizes().iter().product(), 0)
        }
        (TensorBody::Empty(src), TensorBody::Placed(dst)) => src.check_size(py, 0, dst.offsets.size()),
    }
}

pub(super) fn copied(
    py: Python<'_>,
    src: &Placed,
    dst: &Placed,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    src.memory.check_here()?;
    dst.check_written(py)?;
    let (first, second) = (src.offsets.size(), dst.offsets.size());
    if first != second {
        return Err(refusal::of(py, &TensorError::Sizes { first, second }));
    }
    let (from, to) = (src.addresses(py)?, dst.addresses(py)?);
    if is_overlapping(from, to) {
        // The order within one part is unspecified, so an element might be read after it was
        // overwritten.
        let copy = src.compact(py)?;
        copied(py, src, &copy, threads, None)?;
        return copied(py, &copy, dst, threads, progress);
    }
    let _guard = Guard::new(&[(from, false), (to, true)])?;
    let parts = parts(py, [(src, None), (dst, None)], first, PART)?;
    in_parts(py, &parts, progress, |[src, dst]| moved(py, src, dst, threads))
}

/// Copies the elements of a part.
fn moved(py: Python<'_>, src: &Placed, dst: &Placed, threads: Option<usize>) -> PyResult<()> {
    let (from, to) = (src.memory.element(), dst.memory.element());
    if from != to {
        return converted(py, src, dst, threads);
    }
    match from.bytes() {
        1 => plain::<u8>(py, src, dst, threads),
        2 => plain::<u16>(py, src, dst, threads),
        4 => plain::<u32>(py, src, dst, threads),
        8 => plain::<u64>(py, src, dst, threads),
        _ => plain::<[u64; 2]>(py, src, dst, threads),
    }
}

fn plain<T: NoUninit + Send + Sync>(
    py: Python<'_>,
    src: &Placed,
    dst: &Placed,
    threads: Option<usize>,
) -> PyResult<()> {
    let moved = py.detach(|| {
        let options = CopyOptions { threads, ..CopyOptions::default() };
        let plan = Plan::new(&src.offsets, &dst.offsets, size_of::<T>(), options)?;
        // SAFETY: `copied` holds a guard. It has checked that the destination is writable, on the
        // CPU, injective, and disjoint from the source. A tensor's layout stays within its memory.
        let (from, mut to) = unsafe {
            (src.memory.view::<T>(src.origin, &src.offsets), dst.memory.view_mut::<T>(dst.origin, &dst.offsets))
        };
        plan.run(&from, &mut to)
    });
    moved.map_err(|error| refusal::of(py, &error))
}

/// A number type to which others are converted: floats are rounded to nearest, ties to even; a
/// float becomes an integer toward zero, within its range.
trait From64: Pod + Send + Sync {
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! from64 {
    ($($kind:ty: $of:expr, $to:expr;)+) => {
        $(impl From64 for $kind {
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $of(value)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to(self)
            }
        })+
    };
}

from64! {
    u8: |value| value as u8, f64::from;
    i8: |value| value as i8, f64::from;
    i32: |value| value as i32, f64::from;
    f16: f16::from_f64, f16::to_f64;
    bf16: bf16::from_f64, bf16::to_f64;
    f32: |value| value as f32, f64::from;
    f64: |value| value, |value| value;
}

fn converted(py: Python<'_>, src: &Placed, dst: &Placed, threads: Option<usize>) -> PyResult<()> {
    macro_rules! pairs {
        ($($from:ident as $a:ty: $($to:ident as $b:ty),+;)+) => {
            match (src.memory.element(), dst.memory.element()) {
                $($((Element::$from, Element::$to) => each::<$a, $b>(py, src, dst, threads),)+)+
                (from, to) => Err(PyTypeError::new_err(format!(
                    "elements are not converted from {} to {}: by way of float32, or in the package that they come from",
                    from.name(),
                    to.name()
                ))),
            }
        };
    }
    pairs! {
        F32 as f32: F64 as f64, F16 as f16, BF16 as bf16, I32 as i32, I8 as i8, U8 as u8;
        F64 as f64: F32 as f32, F16 as f16, BF16 as bf16, I32 as i32, I8 as i8, U8 as u8;
        F16 as f16: F32 as f32, F64 as f64, BF16 as bf16;
        BF16 as bf16: F32 as f32, F64 as f64, F16 as f16;
        I32 as i32: F32 as f32, F64 as f64;
        I8 as i8: F32 as f32, F64 as f64, I32 as i32;
        U8 as u8: F32 as f32, F64 as f64, I32 as i32;
    }
}

fn each<A: From64, B: From64>(py: Python<'_>, src: &Placed, dst: &Placed, threads: Option<usize>) -> PyResult<()> {
    on_threads(py, threads, || {
        // SAFETY: as in `plain`; the types are those of the elements.
        let (from, mut to) = unsafe {
            (src.memory.view::<A>(src.origin, &src.offsets), dst.memory.view_mut::<B>(dst.origin, &dst.offsets))
        };
        cpu::transform(&from, &mut to, |a, b| *b = B::from_f64(a.to_f64()))
    })
}

/// Writes these bytes to every element.
pub(super) fn filled(py: Python<'_>, dst: &Placed, bytes: &[u8], _guard: &Guard) -> PyResult<()> {
    fn with<T: Pod + Send + Sync>(py: Python<'_>, dst: &Placed, bytes: &[u8]) -> PyResult<()> {
        let value: T = bytemuck::pod_read_unaligned(bytes);
        on_threads(py, None, || {
            // SAFETY: the caller holds a guard and has checked that the tensor is writable and
            // injective.
            let mut to = unsafe { dst.memory.view_mut::<T>(dst.origin, &dst.offsets) };
            cpu::fill(&mut to, value)
        })
    }
    match bytes.len() {
        1 => with::<u8>(py, dst, bytes),
        2 => with::<u16>(py, dst, bytes),
        4 => with::<u32>(py, dst, bytes),
        8 => with::<u64>(py, dst, bytes),
        _ => with::<[u64; 2]>(py, dst, bytes),
    }
}
