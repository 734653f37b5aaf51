//! Elementwise functions of distributed tiles.
//!
//! Law: each element of the result is the function of the elements with the same coordinate,
//! whichever threads hold them.

use super::core::{Core, Slot};
use super::distributed::Distributed;
use super::number::{Num, arithmetic};
use super::reduction::Reduction;
use crate::distribution::Distribution;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Format, Number, Operation};
use crate::program::register::Width;
use crate::program::{Location, Source};

impl<'k> Distributed<'k> {
    /// A tile of the same shape whose elements are a function of this tile's elements.
    ///
    /// Errors: an element has no value yet; those of the function.
    #[track_caller]
    pub fn map(&self, each: impl Fn(Num<'k>) -> Result<Num<'k>, KernelError>) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let values = self.fragment.numbers_at("map", location)?;
        let values = values.into_iter().map(each).collect::<Result<Vec<_>, _>>()?;
        self.fragment.build.core().begin(Source { statement: "map", location });
        self.with_values(&values).map_err(|refusal| refusal.at("map", location))
    }

    /// Converts the elements to another type.
    ///
    /// Errors: an element has no value yet.
    #[track_caller]
    pub fn to(&self, element: Element) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let refuse = |refusal: Reason| refusal.at("to", location);
        let values = self.fragment.numbers_at("to", location)?;
        let build = self.fragment.build;
        build.core().begin(Source { statement: "to", location });
        // One instruction converts two numbers to 16 bits, in one register.
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
        // Of four 8-bit elements, two are converted at a time.
        let bytes = match element {
            Element::E4M3 => Some(Format::E4M3),
            Element::E5M2 => Some(Format::E5M2),
            _ => None,
        };
        if let Some(to) = bytes.filter(|_| self.element() == Element::F32 && values.len().is_multiple_of(4)) {
            let shape = tilewright_layout::Tree::leaf(values.len() as i64);
            let fragment = build.fragment_of(element, &shape).map_err(refuse)?;
            let mut core = build.core();
            for (four, at) in values.chunks(4).zip((0..).step_by(4)) {
                let half = |core: &mut Core, [low, high]: [usize; 2]| {
                    let inputs = [four[low].register(), four[high].register()];
                    core.pure(Operation::ConvertPair { to }, inputs, Width::Bits16)
                };
                let halves = [half(&mut core, [0, 1]), half(&mut core, [2, 3])];
                let word = core.pure(Operation::Pack, halves, Width::Bits32);
                core.set_word(fragment.cell, &[at, at + 1, at + 2, at + 3], word);
            }
            drop(core);
            return Ok(Distributed { fragment, held: self.held.clone() });
        }
        let to = |value: Num<'k>| {
            Num::new(build, build.core().converted(value.register(), value.element(), element), element)
        };
        let values: Vec<Num<'k>> = values.into_iter().map(to).collect();
        self.with_values(&values).map_err(refuse)
    }

    /// A tile whose elements are a function of the elements of this tile and of another one at the
    /// same coordinate. If the other tile has extent 1 along a mode, it is broadcast; elements of
    /// it that a thread needs but does not hold are moved, as by [`Distributed::convert`].
    ///
    /// Errors: an extent of the other tile is neither that of this tile nor 1; an element has no
    /// value yet; those of the function.
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
        self.with_values(&values).map_err(refuse)
    }

    /// Converts another tile so that each thread holds the elements that match its own, and returns
    /// the matching value for each.
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

    /// Combines two tiles of one distribution element by element, numbers of 16 bits two at a time.
    ///
    /// Errors: the distributions differ; the types differ, or are types without arithmetic.
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
            let number = pairs.unwrap_or(number);
            let operation = Operation::Binary(reduction.binary(number), number);
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
}

impl Distribution {
    /// The value of [`Distribution::along_others`] that matches each value of this one.
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
