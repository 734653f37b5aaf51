//! Parts of a tensor whose begin and end are numbers that a kernel reads.
//!
//! Law: the element at `c` of a view that is shifted by an offset `o` is the element at `c + o` of
//! the original. A view that ends at `e` has only the coordinates below `e`. Both know the
//! coordinates of the whole tensor: a predicated access skips elements past the end of either, even
//! if the numbers were read at run time.

use tilewright_layout::symbolic::{Expr, Node};
use tilewright_layout::{Extent, Layout, ModePath, Stride};

use super::Build;
use super::number::Num;
use super::tensor::View;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::Width;
use crate::program::{Location, Source};

fn overflow() -> Reason {
    Reason::Layout(tilewright_layout::LayoutError::Overflow { op: "domain_offset" })
}

/// A mode that consists of one leaf.
fn leaf<D: Stride<Extent = Expr>>(layout: &Layout<D>, mode: usize) -> Option<Layout<D>> {
    layout.mode(mode).filter(|mode| mode.profile().is_leaf())
}

impl<'k> View<'k> {
    /// The same modes from a coordinate on (CuTe `domain_offset`), with a number for each mode,
    /// which may be read at run time ([`Build::index_up_to`]).
    ///
    /// The extents do not change, so the last elements may be past the tensor. Accesses there are
    /// predicated, and bulk copies read zeros.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The 32 elements from an offset on that is read from memory; 0 past the end.
    /// let kernel = Kernel::build("window", |k| {
    ///     let (x, from) = (k.input::<f32>("x", "100:1")?, k.input::<i32>("from", "1:1")?);
    ///     let y = k.output::<f32>("y", "32:1")?;
    ///     k.threads(32)?;
    ///     let (thread, from) = (k.thread()?, k.index_up_to(from.load()?.numbers()?[0], 100)?);
    ///     y.at(&thread)?.store(&x.domain_offset(&[from])?.at(&thread)?.load_predicated()?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &(0..100).map(|at| at as f32).collect::<Vec<f32>>())?;
    /// interpreter.tensor(1, &[98_i32])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<f32>("y")?[..3], [98.0, 99.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: there is not one number for each mode; a shifted mode consists of several modes,
    /// along which neither coordinates nor offsets add up.
    #[track_caller]
    pub fn domain_offset(&self, at: &[Expr]) -> Result<View<'k>, KernelError> {
        self.build.statement("domain_offset", || self.moved_by(at))
    }

    fn moved_by(&self, at: &[Expr]) -> Result<View<'k>, Reason> {
        let refuse = |because: &str| Reason::Instruction { name: self.text(), because: because.to_string() };
        if at.len() != self.layout.rank() {
            return Err(refuse("an offset has a number for each mode"));
        }
        let (mut offset, mut start) = (self.offset.clone(), self.place.start.clone());
        for (mode, by) in at.iter().enumerate().filter(|(_, by)| by.known() != Some(0)) {
            let (Some(own), Some(place)) = (leaf(&self.layout, mode), leaf(&self.place.layout, mode)) else {
                return Err(refuse("a mode that is moved has no modes of its own"));
            };
            offset = Stride::plus(&offset, &own.eval(by)?).ok_or_else(overflow)?;
            start = start.plus(&place.eval(by)?).ok_or_else(overflow)?;
        }
        Ok(View {
            offset,
            place: super::tensor::ViewPlace { start, layout: self.place.layout.clone() },
            ..self.clone()
        })
    }

    /// The same tensor with a mode that ends at a number, if the number is less than its extent.
    /// Predicated accesses to it, and to parts of it, skip the elements from there on. The number
    /// may be read at run time.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret, program::memory::Role, Element};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The first elements are set; the others stay.
    /// let kernel = Kernel::build("head", |k| {
    ///     let (x, end) = (k.input::<f32>("x", "64:1")?, k.input::<i32>("end", "1:1")?);
    ///     let y = k.tensor_of(Element::F32, "y", "64:1", Role::Both)?;
    ///     k.threads(64)?;
    ///     let (thread, end) = (k.thread()?, k.index_up_to(end.load()?.numbers()?[0], 64)?);
    ///     y.ending_at(0, &end)?.at(&thread)?.store_predicated(&x.at(&thread)?.load()?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[1.0_f32; 64])?.tensor(1, &[40_i32])?.tensor(2, &[0.0_f32; 64])?;
    /// let checked = interpreter.check()?;
    /// assert_eq!(checked.run.tensor::<f32>("y")?[38..42], [1.0, 1.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: it is not a whole tensor, as it was declared; the mode consists of several modes.
    #[track_caller]
    pub fn ending_at(&self, mode: usize, end: &Expr) -> Result<View<'k>, KernelError> {
        self.build.statement("ending_at", || self.ended(mode, end))
    }

    fn ended(&self, mode: usize, end: &Expr) -> Result<View<'k>, Reason> {
        let refuse = |because: &str| Reason::Instruction { name: self.text(), because: because.to_string() };
        let path = ModePath::ROOT;
        let path = if self.layout.profile().is_leaf() { path } else { path.then(mode)? };
        let is_whole =
            self.place.start == tilewright_layout::Coordinate::zero() && self.place.layout.shape() == self.whole;
        let Some((_, extent)) = self.bounds().into_iter().find(|(own, _)| *own == path).filter(|_| is_whole) else {
            return Err(refuse("a mode that ends is a leaf of a whole tensor"));
        };
        let apart = extent.minus(end).map_or((None, None), |apart| apart.range());
        let least = match (end.range().0, apart) {
            (_, (_, Some(..=0))) => return Ok(self.clone()),
            // Accesses with several elements require a known divisor of the end.
            (Some(0..), (Some(0..), _)) => end.clone(),
            _ => self.lesser(end, &extent)?,
        };
        let mut ends = self.ends.clone();
        ends.retain(|(own, _)| *own != path);
        ends.push((path, least));
        Ok(View { ends, ..self.clone() })
    }

    /// The minimum of an end and an extent, which is computed at run time; 0 for a negative end,
    /// before which there are no elements. It is a multiple of the power of two of which both are
    /// multiples.
    fn lesser(&self, end: &Expr, extent: &Expr) -> Result<Expr, Reason> {
        let mut core = self.build.core();
        let both = [core.lower(end, Width::Bits32)?, core.lower(extent, Width::Bits32)?];
        let mut register = core.pure(Operation::Binary(Binary::Minimum, Number::I32), both, Width::Bits32);
        if !core.is_natural(end) {
            let zero = core.constant(0, Width::Bits32);
            register = core.pure(Operation::Binary(Binary::Maximum, Number::I32), [register, zero], Width::Bits32);
        }
        let greatest = extent.range().1.unwrap_or(i32::MAX.into());
        let divides = |by: &i64| [end, extent].iter().all(|own| Expr::from(*by).divides(own).proved());
        let by = (1..=MOST_BESIDE).rev().map(|bits| 1 << bits).find(divides).unwrap_or(1_i64);
        let below = Stride::plus(extent, &Expr::from(1));
        Ok(core.new_multiple(register, (by, greatest), below))
    }
}

/// The logarithm to base 2 of the most elements of an access: 16 elements of a byte.
const MOST_BESIDE: u32 = 4;

impl Build {
    /// As [`Build::index_of`], but larger and negative numbers are replaced by `greatest`, so that
    /// expressions of the index have bounds.
    ///
    /// Errors: the number has another type; `greatest` is negative, or does not fit in 32 bits.
    #[track_caller]
    pub fn index_up_to(&self, number: Num<'_>, greatest: i64) -> Result<Expr, KernelError> {
        let location = Location::caller();
        let refusal = match number.element() {
            Element::I32 | Element::U32 if (0..=i64::from(i32::MAX)).contains(&greatest) => None,
            Element::I32 | Element::U32 => {
                let (asked, limit) = (greatest.unsigned_abs(), i32::MAX as u64);
                Some(Reason::TooMuch { what: "values of an index", asked, limit })
            }
            given => Some(Reason::Elements { wanted: Element::I32, given }),
        };
        if let Some(refusal) = refusal {
            return Err(refusal.at("index_up_to", location));
        }
        let mut core = self.core_for(Source { statement: "index_up_to", location });
        // Without a sign, negative numbers are greater than all others.
        let most = core.constant(greatest as u64, Width::Bits32);
        let least = Operation::Binary(Binary::Minimum, Number::U32);
        let register = core.pure(least, [number.register(), most], Width::Bits32);
        let limited = core.new_variable(register, greatest, None);
        if let (Some(index), Node::Parameter(own)) = (core.index_in(number.register()), limited.node()) {
            core.limited.push((own, index, greatest));
        }
        Ok(limited)
    }
}
