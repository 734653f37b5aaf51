//! Copies, conversions, fillings, reductions and products, without the interpreter's lock.
//!
//! Law: each does to the elements what the function of its name in `tilewright-tensor` does. Long
//! work is done in parts: between two of them an interrupt ends it, with the parts that are done
//! left done, and `progress(done, total)` is called, in elements or multiplications. A copy between
//! tensors whose memory overlaps reads all of the source first.
//!
//! Reason for unsafe code: views of memory that Python shares; each says why its claim holds.
#![allow(unsafe_code)]

use bytemuck::{NoUninit, Pod};
use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright_layout::{Layout, Tree};
use tilewright_tensor::{self as cpu, CopyOptions, Numbers, Offsets, Plan, TensorError};

use super::element::Element;
use super::memory::Guard;
use super::{Tensor, is_overlapping};
use crate::refusal;

/// The elements of a part of a copy or reduction: some tenths of a second, where they come from
/// memory.
const PART: i64 = 1 << 26;
/// The multiplications of a part of a product.
const PART_OF_PRODUCT: i64 = 1 << 34;
/// The fewest columns of a part of a product, so that packing A again costs little.
const COLUMNS: i64 = 1024;

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
    copied(py, src.get(), dst.get(), threads, progress)
}

pub(super) fn copied(
    py: Python<'_>,
    src: &Tensor,
    dst: &Tensor,
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
        // Within one part the order is free, so what is written might be read.
        let copy = src.compact(py)?;
        copied(py, src, &copy, threads, None)?;
        return copied(py, &copy, dst, threads, progress);
    }
    let _guard = Guard::new(&[(from, false), (to, true)])?;
    let parts = parts(py, [(src, None), (dst, None)], first, PART)?;
    in_parts(py, &parts, progress, |[src, dst]| moved(py, src, dst, threads))
}

/// Moves the elements of a part.
fn moved(py: Python<'_>, src: &Tensor, dst: &Tensor, threads: Option<usize>) -> PyResult<()> {
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
    src: &Tensor,
    dst: &Tensor,
    threads: Option<usize>,
) -> PyResult<()> {
    let moved = py.detach(|| {
        let options = CopyOptions { threads, ..CopyOptions::default() };
        let plan = Plan::new(&src.offsets, &dst.offsets, size_of::<T>(), options)?;
        // SAFETY: `copied` holds a guard and has found the destination to be writable, here, with
        // no offset twice, and elsewhere than the source; a tensor's layout stays within its
        // memory.
        let (from, mut to) = unsafe {
            (src.memory.view::<T>(src.origin, &src.offsets), dst.memory.view_mut::<T>(dst.origin, &dst.offsets))
        };
        plan.run(&from, &mut to)
    });
    moved.map_err(|error| refusal::of(py, &error))
}

/// A number that another is converted to: floats to the nearest, ties to even; a float to an
/// integer toward zero, within its range.
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

fn converted(py: Python<'_>, src: &Tensor, dst: &Tensor, threads: Option<usize>) -> PyResult<()> {
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

fn each<A: From64, B: From64>(py: Python<'_>, src: &Tensor, dst: &Tensor, threads: Option<usize>) -> PyResult<()> {
    on_threads(py, threads, || {
        // SAFETY: as in `plain`; the types are those of the elements.
        let (from, mut to) = unsafe {
            (src.memory.view::<A>(src.origin, &src.offsets), dst.memory.view_mut::<B>(dst.origin, &dst.offsets))
        };
        cpu::transform(&from, &mut to, |a, b| *b = B::from_f64(a.to_f64()))
    })
}

/// Makes every element the one of these bytes.
pub(super) fn filled(py: Python<'_>, dst: &Tensor, bytes: &[u8], _guard: &Guard) -> PyResult<()> {
    fn with<T: Pod + Send + Sync>(py: Python<'_>, dst: &Tensor, bytes: &[u8]) -> PyResult<()> {
        let value: T = bytemuck::pod_read_unaligned(bytes);
        on_threads(py, None, || {
            // SAFETY: the caller holds a guard and has found the tensor writable, with no offset
            // twice.
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

/// What elements are reduced to.
#[derive(Clone, Copy)]
pub(super) enum Reduction {
    Sum,
    Max,
    Min,
}

/// The elements reduced over some modes, or over all to a number.
pub(super) fn reduced<'py>(
    py: Python<'py>,
    src: &Tensor,
    how: Reduction,
    mode: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    src.memory.check_here()?;
    let rank = src.offsets.rank();
    let modes = match mode {
        None => (0..rank).collect(),
        Some(mode) => numbers_of_modes(mode, rank)?,
    };
    let sizes: Vec<i64> = (0..rank).map(|mode| src.size_of(mode)).collect();
    let kept: Vec<i64> = (0..rank).filter(|mode| !modes.contains(mode)).map(|mode| sizes[mode]).collect();
    let refused = |error| refusal::of_layout(py, error);
    let layout = Layout::row_major(&Tree::flat(kept.iter().copied()).map_err(refused)?).map_err(refused)?;
    let element = src.memory.element();
    let sums = match (how, element) {
        (_, Element::F16 | Element::BF16) => Element::F32,
        (Reduction::Sum, Element::U64) => Element::U64,
        (Reduction::Sum, element) if element.is_integer() => Element::I64,
        (_, element) => element,
    };
    let dst = Tensor::zeroed(py, sums, layout.into())?;
    let _guard = Guard::new(&[(src.addresses(py)?, false)])?;
    // Cut along the last mode that is kept, of which each part of the result has its own.
    let cut = (0..rank).rev().find(|mode| !modes.contains(mode));
    let parts = match cut {
        Some(mode) => parts(py, [(src, Some(mode)), (&dst, Some(kept.len() - 1))], src.offsets.size(), PART)?,
        None => vec![([src.again(), dst.again()], src.offsets.size())],
    };
    in_parts(py, &parts, progress, |[src, dst]| reduced_part(py, src, dst, how, &modes, threads))?;
    // The greatest of some numbers is one of them.
    let dst = if matches!(how, Reduction::Sum) || sums == element { dst } else { dst.converted(py, element)? };
    match mode {
        Some(_) => Ok(Bound::new(py, dst)?.into_any()),
        None => dst.memory.element().number(py, &dst.memory.read(dst.origin)?),
    }
}

fn reduced_part(
    py: Python<'_>,
    src: &Tensor,
    dst: &Tensor,
    how: Reduction,
    modes: &[usize],
    threads: Option<usize>,
) -> PyResult<()> {
    macro_rules! rows {
        ($($element:ident as $a:ty: $sum:ty;)+) => {
            match src.memory.element() {
                $(Element::$element => match how {
                    Reduction::Sum => by::<$a, $sum>(py, src, dst, modes, threads, <$sum>::ZERO, <$sum>::plus),
                    Reduction::Max => by::<$a, <$a as Ordered>::Held>(
                        py, src, dst, modes, threads, <$a as Ordered>::Held::LEAST, <$a as Ordered>::Held::greater,
                    ),
                    Reduction::Min => by::<$a, <$a as Ordered>::Held>(
                        py, src, dst, modes, threads, <$a as Ordered>::Held::GREATEST, <$a as Ordered>::Held::lesser,
                    ),
                },)+
                other => Err(PyTypeError::new_err(format!("elements of {} are not reduced", other.name()))),
            }
        };
    }
    rows! {
        I8 as i8: i64;
        I16 as i16: i64;
        I32 as i32: i64;
        I64 as i64: i64;
        U8 as u8: i64;
        U16 as u16: i64;
        U32 as u32: i64;
        U64 as u64: u64;
        F16 as f16: f32;
        BF16 as bf16: f32;
        F32 as f32: f32;
        F64 as f64: f64;
    }
}

/// Reduces a part whose elements are of `A` to values of `T`.
fn by<A: Pod + Send + Sync + Into<T>, T: Pod + Send + Sync>(
    py: Python<'_>,
    src: &Tensor,
    dst: &Tensor,
    modes: &[usize],
    threads: Option<usize>,
    initial: T,
    join: impl Fn(T, T) -> T + Sync + Send,
) -> PyResult<()> {
    on_threads(py, threads, || {
        // SAFETY: `reduced` holds a guard of the source; the result is new and nobody else has it.
        // The types are those of the elements.
        let (from, mut to) = unsafe {
            (src.memory.view::<A>(src.origin, &src.offsets), dst.memory.view_mut::<T>(dst.origin, &dst.offsets))
        };
        cpu::reduce_with(&from, modes, &mut to, initial, |value, a| join(value, (*a).into()), &join)
    })
}

/// A number that sums and extremes are held in.
trait Held: Copy {
    const ZERO: Self;
    const LEAST: Self;
    const GREATEST: Self;
    /// The sum; of integers modulo two to the number of bits.
    fn plus(self, other: Self) -> Self;
    /// The greater one, and NaN if one is.
    fn greater(self, other: Self) -> Self;
    /// The lesser one, and NaN if one is.
    fn lesser(self, other: Self) -> Self;
}

macro_rules! held {
    (integers: $($kind:ty)+) => {
        $(impl Held for $kind {
            const ZERO: Self = 0;
            const LEAST: Self = <$kind>::MIN;
            const GREATEST: Self = <$kind>::MAX;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                self.max(other)
            }
            #[inline(always)]
            fn lesser(self, other: Self) -> Self {
                self.min(other)
            }
        })+
    };
    (floats: $($kind:ty)+) => {
        $(impl Held for $kind {
            const ZERO: Self = 0.0;
            const LEAST: Self = <$kind>::NEG_INFINITY;
            const GREATEST: Self = <$kind>::INFINITY;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn lesser(self, other: Self) -> Self {
                if self < other || self.is_nan() { self } else { other }
            }
        })+
    };
}

held! { integers: i8 i16 i32 i64 u8 u16 u32 u64 }
held! { floats: f32 f64 }

/// A number with a type in which its extremes are held.
trait Ordered {
    type Held: Held;
}

macro_rules! ordered {
    ($($kind:ty: $held:ty;)+) => {
        $(impl Ordered for $kind {
            type Held = $held;
        })+
    };
}

ordered! {
    i8: i8; i16: i16; i32: i32; i64: i64; u8: u8; u16: u16; u32: u32; u64: u64;
    f16: f32; bf16: f32; f32: f32; f64: f64;
}

/// `C = alpha * A * B + beta * C`, with A of modes (M,K), B of (N,K) and C of (M,N): the tensor C,
/// a new one where none is given.
///
/// Factors are of float32, float64, float16, bfloat16 or int8; sums of 16-bit floats in float32, of
/// int8 in int32.
///
/// Errors: modes or types that do not fit; C overlaps a factor, is to be read only or has an
/// element twice; another thread is at work on the memory.
#[pyfunction]
#[pyo3(signature = (a, b, c = None, *, alpha = None, beta = None, threads = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "as the caller in Python names them")]
pub fn gemm<'py>(
    py: Python<'py>,
    a: &Bound<'py, Tensor>,
    b: &Bound<'py, Tensor>,
    c: Option<&Bound<'py, Tensor>>,
    alpha: Option<f64>,
    beta: Option<f64>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, Tensor>> {
    let (left, right) = (a.get(), b.get());
    let element = left.memory.element();
    let sums = match element {
        Element::F16 | Element::BF16 | Element::F32 => Element::F32,
        Element::F64 => Element::F64,
        Element::I8 => Element::I32,
        other => return Err(PyTypeError::new_err(format!("matrices of {} are not multiplied", other.name()))),
    };
    if right.memory.element() != element {
        let (a, b) = (left.dtype(), right.dtype());
        return Err(PyTypeError::new_err(format!("A is of {a}, B of {b}: relayout(dtype=..) converts one")));
    }
    if left.offsets.rank() != 2 || right.offsets.rank() != 2 {
        let (a, b) = (&left.layout, &right.layout);
        return Err(PyValueError::new_err(format!("A has modes (M,K), B (N,K), not {a} and {b}")));
    }
    if c.is_none() && beta.is_some_and(|beta| beta != 0.0) {
        return Err(PyTypeError::new_err("beta is a factor of C, and there is none"));
    }
    let (m, n, k) = (left.size_of(0), right.size_of(0), left.size_of(1));
    let made = match c {
        Some(c) => c.clone(),
        None => {
            let refused = |error| refusal::of_layout(py, error);
            let layout = Layout::row_major(&Tree::flat([m, n]).map_err(refused)?).map_err(refused)?;
            Bound::new(py, Tensor::zeroed(py, sums, layout.into())?)?
        }
    };
    let result = made.get();
    if result.memory.element() != sums {
        let (found, wanted) = (result.dtype(), sums.name());
        return Err(PyTypeError::new_err(format!(
            "products of {} are of {wanted}, and C is of {found}",
            element.name()
        )));
    }
    left.memory.check_here()?;
    right.memory.check_here()?;
    result.check_written(py)?;
    let (of_a, of_b, of_c) = (left.addresses(py)?, right.addresses(py)?, result.addresses(py)?);
    if is_overlapping(of_a, of_c) || is_overlapping(of_b, of_c) {
        return Err(PyValueError::new_err("C overlaps a factor, which would change while it is read"));
    }
    let _guard = Guard::new(&[(of_a, false), (of_b, false), (of_c, true)])?;
    let scales = (alpha.unwrap_or(1.0), beta.unwrap_or(0.0));
    // By columns of C, so that no sum is divided.
    let work = m.saturating_mul(k).saturating_mul(n);
    let most = PART_OF_PRODUCT.max(m.saturating_mul(k).saturating_mul(COLUMNS));
    let agree = result.offsets.rank() == 2 && result.size_of(1) == n;
    let parts = match agree {
        true => parts(py, [(right, Some(0)), (result, Some(1))], work, most)?,
        // The product says what does not fit.
        false => vec![([right.again(), result.again()], work)],
    };
    in_parts(py, &parts, progress, |[b, c]| match element {
        Element::F16 => multiplied::<f16>(py, left, b, c, (scales.0 as f32, scales.1 as f32), threads),
        Element::BF16 => multiplied::<bf16>(py, left, b, c, (scales.0 as f32, scales.1 as f32), threads),
        Element::F32 => multiplied::<f32>(py, left, b, c, (scales.0 as f32, scales.1 as f32), threads),
        Element::F64 => multiplied::<f64>(py, left, b, c, scales, threads),
        _ => multiplied::<i8>(py, left, b, c, whole(scales)?, threads),
    })?;
    Ok(made)
}

/// Factors of integers.
fn whole((alpha, beta): (f64, f64)) -> PyResult<(i32, i32)> {
    let one = |factor: f64| match factor as i32 {
        whole if f64::from(whole) == factor => Ok(whole),
        _ => Err(PyValueError::new_err(format!("{factor} is no integer of 32 bits, as factors of integers are"))),
    };
    Ok((one(alpha)?, one(beta)?))
}

fn multiplied<S: Numbers + Send + Sync>(
    py: Python<'_>,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    (alpha, beta): (S::Sum, S::Sum),
    threads: Option<usize>,
) -> PyResult<()>
where
    S::Sum: Send + Sync,
{
    on_threads(py, threads, || {
        let mma = cpu::cpu_mma::<S>(threads.unwrap_or(0))?;
        // SAFETY: `gemm` holds a guard and has found C writable, here, with no offset twice, and
        // elsewhere than the factors; the types are those of the elements.
        let (left, right, mut sums) = unsafe {
            (
                a.memory.view::<S>(a.origin, &a.offsets),
                b.memory.view::<S>(b.origin, &b.offsets),
                c.memory.view_mut::<S::Sum>(c.origin, &c.offsets),
            )
        };
        cpu::gemm(&mma, alpha, &left, &right, beta, &mut sums)
    })
}

/// The numbers of modes that Python names: an integer or several, from the end where negative.
fn numbers_of_modes(mode: &Bound<'_, PyAny>, rank: usize) -> PyResult<Vec<usize>> {
    let items: Vec<i64> = match mode.extract::<i64>() {
        Ok(number) => vec![number],
        Err(_) => mode.extract::<Vec<i64>>().map_err(|_| PyTypeError::new_err("mode is an integer or several"))?,
    };
    items
        .into_iter()
        .map(|number| {
            let counted = if number < 0 { number + rank as i64 } else { number };
            usize::try_from(counted)
                .ok()
                .filter(|mode| *mode < rank)
                .ok_or_else(|| PyValueError::new_err(format!("there is no mode {number}: the tensor has {rank}")))
        })
        .collect()
}

/// Parts of a pair of tensors, and the work of each.
type Parts = Vec<([Tensor; 2], i64)>;

/// Cuts two tensors alike along a mode each, without one the last, into parts of about so much
/// work; leaves them whole where their modes differ, or have parts that are no layouts.
fn parts(py: Python<'_>, pair: [(&Tensor, Option<usize>); 2], work: i64, most: i64) -> PyResult<Parts> {
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

/// Does one part after another; in between an interrupt ends the work, and progress is told.
fn in_parts(
    py: Python<'_>,
    parts: &[([Tensor; 2], i64)],
    progress: Option<&Bound<'_, PyAny>>,
    mut run: impl FnMut([&Tensor; 2]) -> PyResult<()>,
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

/// Computes without the interpreter's lock, on so many threads where a number is given.
fn on_threads<R: Send>(
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
