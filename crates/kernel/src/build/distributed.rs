//! Tiles in the registers of the threads of a block.
//!
//! Law: a distributed tile is a function from the coordinates of a tile to numbers, and beside it
//! who holds each of them ([`Distribution`]). What is done to it is said about the tile; which
//! registers, lanes and warps it concerns follows.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Stride};

use super::Build;
use super::core::{Core, Slot};
use super::fragment::Fragment;
use super::number::{Num, arithmetic};
use super::reduction::Reduction;
use crate::distribution::Distribution;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Format, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// A tile whose elements the threads of a block hold in registers.
///
/// ```
/// use tilewright_kernel::{Distribution, Kernel, Reduction, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Rows of 256 numbers less the greatest of the row; a warp has a row.
/// let rows = Distribution::new("(4,256)", "((32,4),(4,2)):((16,1),(4,512))")?;
/// let kernel = Kernel::build("below_maximum", |k| {
///     let (x, y) = (k.input::<f32>("x", "(M{div=4},256):(256,1)")?, k.output::<f32>("y", "(M,256):(256,1)")?);
///     let x = x.local_tile("(4,256)", k.block("(x,0)")?)?.load_distributed(&rows)?;
///     let greatest = x.reduce(&[1], Reduction::Maximum)?;
///     let below = x.zip(&greatest, |x, greatest| Ok(x - greatest))?;
///     y.local_tile("(4,256)", k.block("(x,0)")?)?.store_distributed(&below)
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
    /// A predicate that is true in the threads whose digits are all 0; none where there are none.
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
    /// The fragment as a tile that all threads hold together: value `i` of each thread is element
    /// `i` of its fragment.
    ///
    /// Errors: the fragment has another number of elements than a thread has values; the block has
    /// another number of threads.
    #[track_caller]
    pub fn distributed(&self, held: &Distribution) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        self.build.core().begin(Source { statement: "distributed", location });
        self.as_tile(held).map_err(|refusal| refusal.at("distributed", location))
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
        Ok(Distributed { fragment: self.clone(), held: held.clone() })
    }

    /// A fragment of these elements of this one, in this order: the same registers.
    pub(crate) fn chosen(&self, elements: &[usize]) -> Result<Fragment<'k>, Reason> {
        let slots = self.slots()?;
        let mut core = self.build.core();
        let cell = core.new_cell(self.element.bits(), elements.len() as i64)?;
        for (to, from) in elements.iter().enumerate() {
            core.cells[cell].slots[to] = core.cells[self.cell].slots[slots[*from]];
        }
        let layout = Layout::mode_of(elements.len().max(1) as i64, i64::from(elements.len() > 1))?;
        Ok(Fragment { build: self.build, cell, element: self.element, start: 0, layout })
    }
}

impl<'k> Distributed<'k> {
    /// What this thread holds.
    pub fn fragment(&self) -> &Fragment<'k> {
        &self.fragment
    }

    /// Who holds what.
    pub fn distribution(&self) -> &Distribution {
        &self.held
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.fragment.element
    }

    pub(crate) fn made(&self, values: &[Num<'k>]) -> Result<Distributed<'k>, Reason> {
        let build = self.fragment.build;
        let element = values.first().map_or(self.element(), |value| value.element());
        let fragment = build.fragment_of(element, &tilewright_layout::Tree::leaf(values.len().max(1) as i64))?;
        fragment.put(values)?;
        Ok(Distributed { fragment, held: self.held.clone() })
    }

    /// A tile of the same shape, each element a function of this one's.
    ///
    /// Errors: an element has no value yet; the function refuses.
    #[track_caller]
    pub fn map(&self, each: impl Fn(Num<'k>) -> Result<Num<'k>, KernelError>) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let values = self.fragment.numbers_at("map", location)?;
        let values = values.into_iter().map(each).collect::<Result<Vec<_>, _>>()?;
        self.fragment.build.core().begin(Source { statement: "map", location });
        self.made(&values).map_err(|refusal| refusal.at("map", location))
    }

    /// The elements in another type.
    ///
    /// Errors: an element has no value yet.
    #[track_caller]
    pub fn to(&self, element: Element) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let refuse = |refusal: Reason| refusal.at("to", location);
        let values = self.fragment.numbers_at("to", location)?;
        let build = self.fragment.build;
        build.core().begin(Source { statement: "to", location });
        // Two numbers of 16 bits are made by one instruction, in one register.
        let narrow = match element {
            Element::F16 => Some(Format::Number(Number::F16)),
            Element::Bf16 => Some(Format::Number(Number::Bf16)),
            _ => None,
        };
        if let Some(to) = narrow.filter(|_| self.element() == Element::F32 && values.len().is_multiple_of(2)) {
            let shape = tilewright_layout::Tree::leaf(values.len() as i64);
            let fragment = build.fragment_of(element, &shape).map_err(refuse)?;
            let mut core = build.core();
            for (pair, at) in values.chunks(2).zip((0..).step_by(2)) {
                let inputs = [pair[0].register(), pair[1].register()];
                let word = core.pure(Operation::ConvertPair { to }, inputs, Width::Bits32);
                core.set_word(fragment.cell, &[at, at + 1], word);
            }
            drop(core);
            return Ok(Distributed { fragment, held: self.held.clone() });
        }
        let to = |value: Num<'k>| {
            Num::new(build, build.core().converted(value.register(), value.element(), element), element)
        };
        let values: Vec<Num<'k>> = values.into_iter().map(to).collect();
        self.made(&values).map_err(refuse)
    }

    /// A tile each element of which is a function of this one's and another's of the same
    /// coordinate. Where the other has one element along a mode, it stands for all
    /// (broadcasting); what a thread needs of it and does not hold is fetched, as
    /// [`Distributed::convert`] does.
    ///
    /// Errors: the other has other extents than this one or 1; an element has no value yet; the
    /// function refuses.
    #[track_caller]
    pub fn zip(
        &self,
        other: &Distributed<'k>,
        each: impl Fn(Num<'k>, Num<'k>) -> Result<Num<'k>, KernelError>,
    ) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let refuse = |refusal: Reason| refusal.at("zip", location);
        self.fragment.build.core().begin(Source { statement: "zip", location });
        let (other, values) = self.beside(other).map_err(refuse)?;
        let numbers = |tile: &Distributed<'k>| tile.fragment.numbers_at("zip", location);
        let (mine, others) = (numbers(self)?, numbers(&other)?);
        let pairs = mine.into_iter().zip(values);
        let values = pairs.map(|(a, at)| each(a, others[at])).collect::<Result<Vec<_>, _>>()?;
        self.fragment.build.core().begin(Source { statement: "zip", location });
        self.made(&values).map_err(refuse)
    }

    /// Another tile so that each thread has what goes with its own elements, and which value of it
    /// goes with each.
    fn beside(&self, other: &Distributed<'k>) -> Result<(Distributed<'k>, Vec<usize>), Reason> {
        let extents = |tile: &tilewright_layout::Tree<i64>| -> Result<Vec<i64>, Reason> {
            if tile.is_leaf() {
                return Ok(vec![tile.product()?]);
            }
            Ok(tile.modes().map(|mode| mode.product()).collect::<Result<_, _>>()?)
        };
        let (mine, others) = (extents(self.held.tile())?, extents(other.held.tile())?);
        let fits = mine.len() == others.len() && mine.iter().zip(&others).all(|(a, b)| a == b || *b == 1);
        if !fits {
            return Err(Reason::Sizes {
                left: "the first tile".to_string(),
                left_size: self.held.tile().to_string(),
                right: "the second".to_string(),
                right_size: other.held.tile().to_string(),
            });
        }
        let modes: Vec<usize> = (0..mine.len()).filter(|mode| mine[*mode] != others[*mode]).collect();
        let wanted = if modes.is_empty() { self.held.clone() } else { self.held.along_others(&modes)? };
        let moved = other.moved_to(&wanted)?;
        let values =
            if modes.is_empty() { (0..self.held.values() as usize).collect() } else { self.held.values_onto(&modes) };
        Ok((moved, values))
    }

    /// Two tiles of one distribution combined element by element, numbers of 16 bits two at a time.
    ///
    /// Errors: the distributions differ; types differ, or are only stored.
    #[track_caller]
    pub fn combine(&self, other: &Distributed<'k>, reduction: Reduction) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let build = self.fragment.build;
        build.core().begin(Source { statement: "combine", location });
        let combine = || {
            let (element, wanted) = (self.element(), other.element());
            let number = match arithmetic(element) {
                _ if self.held != other.held => {
                    let because = format!("the other tile is distributed as {}", other.held);
                    return Err(Reason::Distribution { layout: self.held.to_string(), because });
                }
                _ if element != wanted => return Err(Reason::Elements { wanted: element, given: wanted }),
                None => return Err(Reason::Arithmetic { operation: "combination", element }),
                Some(number) => number,
            };
            let pairs = match number {
                Number::F16 => Some(Number::F16x2),
                Number::Bf16 => Some(Number::Bf16x2),
                _ => None,
            };
            let (mine, others) = (self.fragment.slots()?, other.fragment.slots()?);
            let pairs = pairs.filter(|_| mine.len().is_multiple_of(2));
            let together = if pairs.is_some() { 2 } else { 1 };
            let operation = Operation::Binary(reduction.binary(), pairs.unwrap_or(number));
            let fragment = build.fragment_of(element, &tilewright_layout::Tree::leaf(mine.len() as i64))?;
            let mut core = build.core();
            for (at, (a, b)) in mine.chunks(together).zip(others.chunks(together)).enumerate() {
                let mut one = |cell: usize, slots: &[usize]| match slots {
                    [one] => core.element_register(cell, *one),
                    pair => core.word_of(cell, pair),
                };
                let inputs = [one(self.fragment.cell, a)?, one(other.fragment.cell, b)?];
                let width = core.width(inputs[0]);
                let result = core.pure(operation.clone(), inputs, width);
                if together == 2 {
                    core.set_word(fragment.cell, &[2 * at, 2 * at + 1], result);
                } else {
                    core.cells[fragment.cell].slots[at] = Slot::Whole(result);
                }
            }
            drop(core);
            Ok(Distributed { fragment, held: self.held.clone() })
        };
        combine().map_err(|refusal| refusal.at("combine", location))
    }

    /// The tiles at each index of a mode, without that mode. What is done to one after another
    /// takes fewer registers than what is done to all.
    ///
    /// Errors: there is no such mode, or no other; threads differ in what they have along it.
    #[track_caller]
    pub fn split(&self, mode: usize) -> Result<Vec<Distributed<'k>>, KernelError> {
        let location = Location::caller();
        self.fragment.build.core().begin(Source { statement: "split", location });
        let split = || {
            let (held, places) = self.held.without(mode)?;
            let parts = places
                .iter()
                .map(|values| Ok(Distributed { fragment: self.fragment.chosen(values)?, held: held.clone() }));
            parts.collect::<Result<Vec<_>, Reason>>()
        };
        split().map_err(|refusal| refusal.at("split", location))
    }

    /// The coordinate along a mode of the tile, of type i32.
    ///
    /// Errors: there is no such mode.
    #[track_caller]
    pub fn index(&self, mode: usize) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        self.fragment.build.core().begin(Source { statement: "index", location });
        let index = self.fragment.build.indices(&self.held, &[mode]);
        index.map_err(|refusal| refusal.at("index", location))
    }
}

impl Distribution {
    /// Which value of [`Distribution::along_others`] goes with each value of this one.
    pub(crate) fn values_onto(&self, modes: &[usize]) -> Vec<usize> {
        let digits = self.value_digits();
        let kept = |digit: &&crate::distribution::Digit| {
            !digit.copies() && digit.steps.iter().all(|(mode, _)| !modes.contains(mode))
        };
        let onto = |value: i64| {
            let mut below = 1;
            digits.iter().filter(kept).fold(0, |sum, digit| {
                let at = digit.of(value) * below;
                below *= digit.extent;
                sum + at
            })
        };
        (0..self.values()).map(|value| onto(value) as usize).collect()
    }
}

impl Build {
    /// The coordinate of each element along a mode of the tile of a distribution, of type i32.
    ///
    /// Errors: there is no such mode; the block has another number of threads.
    #[track_caller]
    pub fn distributed_index(&self, held: &Distribution, mode: usize) -> Result<Distributed<'_>, KernelError> {
        let location = Location::caller();
        self.core().begin(Source { statement: "distributed_index", location });
        self.indices(held, &[mode]).map_err(|refusal| refusal.at("distributed_index", location))
    }

    /// The number of each element among those along some modes of the tile, the first mode fastest,
    /// of type i32.
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
