//! Tiles that the registers of a block's threads hold together.
//!
//! Law: a distributed tile is a function from the coordinates of a tile to numbers, with a
//! [`Distribution`] that says which thread holds each of them. Operations are stated for the tile.
//! The registers, lanes and warps that take part follow from the distribution.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Stride};

use super::Build;
use super::core::Core;
use super::fragment::Fragment;
use super::number::Num;
use crate::distribution::Distribution;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Number, Operation};
use crate::program::register::{Register, Width};

/// A tile whose elements the threads of a block hold in registers.
///
/// ```
/// use tilewright_kernel::{Distribution, Kernel, Reduction, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Rows of 256 numbers less the greatest of the row; a warp has a row.
/// let rows = Distribution::new((4, 256), "((32,4),(4,2)):((16,1),(4,512))")?;
/// let kernel = Kernel::build("below_maximum", |k| {
///     let (x, y) = (k.input::<f32>("x", "(M{div=4},256):(256,1)")?, k.output::<f32>("y", "(M,256):(256,1)")?);
///     let x = x.local_tile((4, 256), k.block("(x,0)")?)?.load_distributed(&rows)?;
///     let greatest = x.reduce(&[1], Reduction::Maximum)?;
///     let below = x.zip(&greatest, |x, greatest| Ok(x - greatest))?;
///     y.local_tile((4, 256), k.block("(x,0)")?)?.store_distributed(&below)
/// })?;
/// interpret::check(kernel.program(), &[("M", 12)])?;
/// assert_eq!(kernel.program().shared_bytes, 0); // shuffles suffice
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Distributed<'k> {
    pub(crate) fragment: Fragment<'k>,
    pub(crate) held: Distribution,
}

impl Core {
    /// A predicate that is true in the threads for which all digits are 0; None if there are no
    /// digits.
    pub(crate) fn all_zero(&mut self, digits: &[(i64, i64)]) -> Result<Option<Register>, Reason> {
        let thread = self.thread()?;
        let mut all = None;
        for (below, extent) in digits {
            let digit = self.digit(&thread, *below, *extent)?;
            let digit = self.lower(&digit, Width::Bits32)?;
            let zero = self.constant(0, Width::Bits32);
            let own = self.pure(Operation::Compare(Comparison::Equal, Number::U32), [digit, zero], Width::Predicate);
            all = Some(match all {
                None => own,
                Some(all) => self.pure(Operation::Binary(Binary::And, Number::U16), [all, own], Width::Predicate),
            });
        }
        Ok(all)
    }
}

impl<'k> Fragment<'k> {
    /// The fragment as a distributed tile: value `i` of each thread is element `i` of its fragment.
    ///
    /// Errors: the number of elements of the fragment is not that of the values of a thread; the
    /// block has another number of threads.
    #[track_caller]
    pub fn distributed(&self, held: &Distribution) -> Result<Distributed<'k>, KernelError> {
        self.build.statement("distributed", || self.as_tile(held))
    }

    pub(crate) fn as_tile(&self, held: &Distribution) -> Result<Distributed<'k>, Reason> {
        self.build.core().say_threads(held.threads())?;
        if self.size() as i64 != held.values() {
            return Err(Reason::Sizes {
                left: format!("the fragment {}", self.layout),
                left_size: self.size().to_string(),
                right: format!("a thread of {held}"),
                right_size: held.values().to_string(),
            });
        }
        // Its contents follow from the distribution, and not from a tiled instruction.
        Ok(Distributed { fragment: Fragment { part: None, ..self.clone() }, held: held.clone() })
    }

    /// A fragment of these elements, in this order, in the same registers.
    pub(crate) fn chosen(&self, elements: &[usize]) -> Result<Fragment<'k>, Reason> {
        let slots = self.slots()?;
        let mut core = self.build.core();
        let cell = core.new_cell(self.element.bits(), elements.len() as i64)?;
        for (to, from) in elements.iter().enumerate() {
            core.cells[cell].slots[to] = core.cells[self.cell].slots[slots[*from]];
        }
        let layout = Layout::mode_of(elements.len().max(1) as i64, i64::from(elements.len() > 1))?;
        Ok(Fragment { build: self.build, cell, element: self.element, start: 0, layout, part: None })
    }
}

impl<'k> Distributed<'k> {
    /// The elements of this thread.
    pub fn fragment(&self) -> &Fragment<'k> {
        &self.fragment
    }

    /// The distribution over threads.
    pub fn distribution(&self) -> &Distribution {
        &self.held
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.fragment.element
    }

    /// A tile with the same distribution and other values.
    pub(crate) fn with_values(&self, values: &[Num<'k>]) -> Result<Distributed<'k>, Reason> {
        let build = self.fragment.build;
        let element = values.first().map_or(self.element(), |value| value.element());
        let fragment = build.fragment_of(element, &tilewright_layout::Tree::leaf(values.len().max(1) as i64))?;
        fragment.put(values)?;
        Ok(Distributed { fragment, held: self.held.clone() })
    }

    /// The tiles at each index of a mode, without that mode. Processing one of them after another
    /// takes fewer registers than processing the whole tile.
    ///
    /// Errors: there is no such mode, or no other; threads have different elements along it.
    #[track_caller]
    pub fn split(&self, mode: usize) -> Result<Vec<Distributed<'k>>, KernelError> {
        self.fragment.build.statement("split", || {
            let (held, places) = self.held.without(mode)?;
            let parts = places
                .iter()
                .map(|values| Ok(Distributed { fragment: self.fragment.chosen(values)?, held: held.clone() }));
            parts.collect::<Result<Vec<_>, Reason>>()
        })
    }

    /// The coordinate along a mode of the tile, of type i32.
    ///
    /// Errors: there is no such mode.
    #[track_caller]
    pub fn index(&self, mode: usize) -> Result<Distributed<'k>, KernelError> {
        self.fragment.build.statement("index", || self.fragment.build.indices(&self.held, &[mode]))
    }
}

impl Build {
    /// The coordinate along a mode of each element of a tile with a distribution, of type i32.
    ///
    /// Errors: there is no such mode; the block has another number of threads.
    #[track_caller]
    pub fn distributed_index(&self, held: &Distribution, mode: usize) -> Result<Distributed<'_>, KernelError> {
        self.statement("distributed_index", || self.indices(held, &[mode]))
    }

    /// The index of each element along some modes of the tile together, the first mode fastest, of
    /// type i32.
    pub(crate) fn indices(&self, held: &Distribution, modes: &[usize]) -> Result<Distributed<'_>, Reason> {
        let rank = if held.tile().is_leaf() { 1 } else { held.tile().rank() };
        if let Some(mode) = modes.iter().find(|mode| **mode >= rank) {
            return Err(tilewright_layout::LayoutError::NoSuchMode { op: "index", mode: *mode, rank }.into());
        }
        let overflow = || Reason::Layout(tilewright_layout::LayoutError::Overflow { op: "index" });
        let mut below = Vec::new();
        let mut size = 1;
        for mode in 0..rank {
            let counted = modes.contains(&mode);
            below.push(if counted { size } else { 0 });
            if counted {
                let extent = if held.tile().is_leaf() { Some(held.tile().clone()) } else { held.tile().mode(mode) };
                size *= extent.map_or(Ok(1), |extent| extent.product())?;
            }
        }
        let step = |steps: &[(usize, i64)]| steps.iter().map(|(mode, scale)| below[*mode] * scale).sum::<i64>();
        let mut core = self.core();
        core.say_threads(held.threads())?;
        let thread = core.thread()?;
        let mut start = Expr::from(0);
        for digit in held.thread_digits() {
            let by = step(&digit.steps);
            if by != 0 {
                let digit = core.digit(&thread, digit.below, digit.extent)?;
                let part = Stride::times(&digit, &Expr::from(by)).ok_or_else(overflow)?;
                start = Stride::plus(&start, &part).ok_or_else(overflow)?;
            }
        }
        let digits = held.value_digits();
        let mut values = Vec::new();
        for value in 0..held.values() {
            let offset: i64 = digits.iter().map(|digit| digit.of(value) * step(&digit.steps)).sum();
            let at = Stride::plus(&start, &Expr::from(offset)).ok_or_else(overflow)?;
            values.push(core.lower(&at, Width::Bits32)?);
        }
        drop(core);
        let values: Vec<Num<'_>> = values.into_iter().map(|at| Num::new(self, at, Element::I32)).collect();
        let fragment = self.fragment_of(Element::I32, &tilewright_layout::Tree::leaf(held.values()))?;
        fragment.put(&values)?;
        Ok(Distributed { fragment, held: held.clone() })
    }
}
