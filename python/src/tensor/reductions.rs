//! Sums, maxima and minima along modes, without the interpreter's lock.
//!
//! Law: each is the result of `reduce_with` of `tilewright-tensor`, in parts (`work.rs`); NaN is
//! propagated.
//!
//! Reason for unsafe code: views of memory that Python shares; each comment says why it is sound.
#![allow(unsafe_code)]

use bytemuck::Pod;
use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tilewright_layout::{Layout, Tree};
use tilewright_tensor::{self as cpu, Offsets};

use super::element::Element;
use super::memory::Guard;
use super::placed::Placed;
use super::work::{PART, in_parts, on_threads, parts};
use super::{Tensor, TensorBody};
use crate::refusal;

/// The kind of reduction.
#[derive(Clone, Copy)]
pub(super) enum Reduction {
    Sum,
    Max,
    Min,
}

impl Reduction {
    fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }

    /// The type of the result, for elements of a type.
    fn result(self, element: Element) -> Element {
        match self {
            Reduction::Sum => self.held(element),
            _ => element,
        }
    }

    /// The type of the accumulator, for elements of a type.
    fn held(self, element: Element) -> Element {
        match (self, element) {
            (_, Element::F16 | Element::BF16) => Element::F32,
            (Reduction::Sum, Element::U64) => Element::U64,
            (Reduction::Sum, element) if element.is_integer() => Element::I64,
            (_, element) => element,
        }
    }
}

/// The reduction over some modes, or over all modes to a number.
pub(super) fn reduced<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    how: Reduction,
    mode: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let sizes = tensor.sizes();
    let rank = sizes.len();
    let modes = match mode {
        None => (0..rank).collect(),
        Some(mode) => numbers_of_modes(mode, rank)?,
    };
    let kept: Vec<i64> = (0..rank).filter(|mode| !modes.contains(mode)).map(|mode| sizes[mode]).collect();
    let element = tensor.element();
    let src = match &tensor.0 {
        TensorBody::Placed(src) => src,
        TensorBody::Empty(_) => {
            if !matches!(how, Reduction::Sum) && modes.iter().any(|mode| sizes[*mode] == 0) {
                let name = how.name();
                return Err(PyValueError::new_err(format!("{name} of no elements: the modes that go have size 0")));
            }
            let result = Tensor::zeros_of(py, how.result(element), &kept)?;
            return match (&result.0, mode) {
                (TensorBody::Placed(zero), None) => zero.memory.element().number(py, &zero.memory.read(zero.origin)?),
                _ => Ok(Bound::new(py, result)?.into_any()),
            };
        }
    };
    src.memory.check_here()?;
    let refused = |error| refusal::of_layout(py, error);
    let layout = Layout::row_major(&Tree::flat(kept.iter().copied()).map_err(refused)?).map_err(refused)?;
    let sums = how.held(element);
    let dst = Placed::zeroed(py, sums, layout.into())?;
    let _guard = Guard::new(&[(src.addresses(py)?, false)])?;
    // Split along the last kept mode, so that each part writes its own elements of the result.
    let cut = (0..rank).rev().find(|mode| !modes.contains(mode));
    let parts = match cut {
        Some(mode) => parts(py, [(src, Some(mode)), (&dst, Some(kept.len() - 1))], src.offsets.size(), PART)?,
        None => vec![([src.again(), dst.again()], src.offsets.size())],
    };
    in_parts(py, &parts, progress, |[src, dst]| reduced_part(py, src, dst, how, &modes, threads))?;
    // The maximum of some numbers is one of them, so its conversion is exact.
    let dst = if how.result(element) == sums { dst } else { dst.converted(py, element)? };
    match mode {
        Some(_) => Ok(Bound::new(py, Tensor::from(dst))?.into_any()),
        None => dst.memory.element().number(py, &dst.memory.read(dst.origin)?),
    }
}

fn reduced_part(
    py: Python<'_>,
    src: &Placed,
    dst: &Placed,
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
    src: &Placed,
    dst: &Placed,
    modes: &[usize],
    threads: Option<usize>,
    initial: T,
    join: impl Fn(T, T) -> T + Sync + Send,
) -> PyResult<()> {
    on_threads(py, threads, || {
        // SAFETY: `reduced` holds a guard of the source; the result is new and not shared. The
        // types are those of the elements.
        let (from, mut to) = unsafe {
            (src.memory.view::<A>(src.origin, &src.offsets), dst.memory.view_mut::<T>(dst.origin, &dst.offsets))
        };
        cpu::reduce_with(&from, modes, &mut to, initial, |value, a| join(value, (*a).into()), &join)
    })
}

/// A type of accumulators.
trait HeldNumber: Copy {
    const ZERO: Self;
    const LEAST: Self;
    const GREATEST: Self;
    /// The sum; for integers modulo 2 to the number of bits.
    fn plus(self, other: Self) -> Self;
    /// The maximum; NaN if one number is NaN.
    fn greater(self, other: Self) -> Self;
    /// The minimum; NaN if one number is NaN.
    fn lesser(self, other: Self) -> Self;
}

macro_rules! held {
    (integers: $($kind:ty)+) => {
        $(impl HeldNumber for $kind {
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
        $(impl HeldNumber for $kind {
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

/// A number with an accumulator type for its extremes.
trait Ordered {
    type Held: HeldNumber;
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

/// The mode numbers that Python passes: an integer or several, which count from the end if
/// negative.
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
