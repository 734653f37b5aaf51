//! Elements in registers.
//!
//! Law: a fragment is a tensor in the registers of a thread. Its layout is known when the kernel is
//! built, and so is the register of each element. Elements narrower than a register are packed into
//! 32-bit registers as in memory, and are unpacked only for arithmetic.

use std::fmt;

use tilewright_layout::symbolic::{Symbolic, Values};
use tilewright_layout::{Coord, IntoShape, Layout, Slot as At, Tree};

use super::Build;
use super::core::{Core, Slot};
use super::number::Num;
use super::part::ThreadPart;
use super::tensor::{View, known_shape};
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Format, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// A tensor in the registers of each thread.
///
/// It is a handle: copies of it refer to the same registers. Its shape and layout are known when
/// the kernel is built.
///
/// ```
/// use tilewright_kernel::{Element, Kernel, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let relu = Kernel::build("relu", |k| {
///     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
///     k.threads(128)?;
///     let own = x.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
///     assert_eq!((own.size(), own.element()), (4, Element::F32));
///     let positive = own.map(|x| Ok(x.max(x.like(0.0))))?; // a new fragment
///     y.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&positive)
/// })?;
/// interpret::check(relu.program(), &[("N", 300)])?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fragment<'k> {
    pub(crate) build: &'k Build,
    pub(crate) cell: usize,
    pub(crate) element: Element,
    /// The register of the element at index 0, counted in elements.
    pub(crate) start: usize,
    pub(crate) layout: Layout,
    /// The part of a tile that it holds; None if it may hold any part.
    pub(crate) part: Option<ThreadPart>,
}

impl fmt::Debug for Fragment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fragment({}, {})", self.element, self.layout)
    }
}

impl Core {
    /// A cell with this many elements without values.
    pub(crate) fn new_cell(&mut self, bits: u32, count: i64) -> Result<usize, Reason> {
        let count = super::elements_of_thread(count)?;
        self.cells.push(super::core::FragmentCell { bits, slots: vec![Slot::Empty; count] });
        Ok(self.cells.len() - 1)
    }

    /// A register that holds only this element; it has 16 bits for elements of 8.
    pub(crate) fn element_register(&mut self, cell: usize, at: usize) -> Result<Register, Reason> {
        let bits = self.cells[cell].bits;
        match self.cells[cell].slots[at] {
            Slot::Empty => Err(Reason::Unwritten { element: at }),
            Slot::Whole(register) => Ok(register),
            Slot::Part(word, part) => Ok(self.part_of(word, bits, part)),
        }
    }

    /// One of the elements of a word of 32 bits.
    pub(crate) fn part_of(&mut self, word: Register, bits: u32, part: u8) -> Register {
        if bits == 16 {
            return self.pure_many(Operation::Unpack, [word], &[Width::Bits16, Width::Bits16])[usize::from(part)];
        }
        let halves = self.pure_many(Operation::Unpack, [word], &[Width::Bits16, Width::Bits16]);
        let half = halves[usize::from(part / 2)];
        use crate::program::operation::{Binary, Number};
        if part.is_multiple_of(2) {
            let mask = self.constant(0xff, Width::Bits16);
            return self.pure(Operation::Binary(Binary::And, Number::U16), [half, mask], Width::Bits16);
        }
        let eight = self.constant(8, Width::Bits32);
        self.pure(Operation::Binary(Binary::ShiftRight, Number::U16), [half, eight], Width::Bits16)
    }

    /// A 32-bit word of the given elements, in order. If they already form one, that register.
    pub(crate) fn word_of(&mut self, cell: usize, elements: &[usize]) -> Result<Register, Reason> {
        let bits = self.cells[cell].bits;
        let slots: Vec<Slot> = elements.iter().map(|at| self.cells[cell].slots[*at]).collect();
        if let Some(Slot::Part(word, 0)) = slots.first().copied()
            && slots.iter().enumerate().all(|(part, slot)| *slot == Slot::Part(word, part as u8))
        {
            return Ok(word);
        }
        if bits == 8
            && let [first, second] = slots.chunks(2).map(half_of).collect::<Vec<_>>().as_slice()
            && let (Some(first), Some(second)) = (first, second)
        {
            // Two halves of words: adjacent bytes stay adjacent.
            let halves = [*first, *second].map(|(word, half)| {
                self.pure_many(Operation::Unpack, [word], &[Width::Bits16, Width::Bits16])[usize::from(half)]
            });
            return Ok(self.pure(Operation::Pack, halves, Width::Bits32));
        }
        let mut parts = Vec::new();
        for at in elements {
            parts.push(self.element_register(cell, *at)?);
        }
        Ok(self.packed(&parts, bits))
    }

    /// Packs elements into a 32-bit register. If they do not fill it, zeros follow.
    pub(crate) fn packed(&mut self, parts: &[Register], bits: u32) -> Register {
        use crate::program::operation::{Binary, Number};
        let zero = self.constant(0, Width::Bits16);
        let halves: Vec<Register> = if bits == 16 {
            parts.to_vec()
        } else {
            parts
                .chunks(2)
                .map(|pair| match pair {
                    [low, high] => {
                        let eight = self.constant(8, Width::Bits32);
                        let high =
                            self.pure(Operation::Binary(Binary::ShiftLeft, Number::U16), [*high, eight], Width::Bits16);
                        self.pure(Operation::Binary(Binary::Or, Number::U16), [*low, high], Width::Bits16)
                    }
                    _ => pair[0],
                })
                .collect()
        };
        let low = halves.first().copied().unwrap_or(zero);
        let high = halves.get(1).copied().unwrap_or(zero);
        self.pure(Operation::Pack, [low, high], Width::Bits32)
    }

    /// Sets elements to the parts of a 32-bit register.
    pub(crate) fn set_word(&mut self, cell: usize, elements: &[usize], word: Register) {
        if let ([one], 32) = (elements, self.cells[cell].bits) {
            self.cells[cell].slots[*one] = Slot::Whole(word);
            return;
        }
        for (part, at) in elements.iter().enumerate() {
            self.cells[cell].slots[*at] = Slot::Part(word, part as u8);
        }
    }
}

/// Checks that a coordinate is inside a shape. Otherwise it would refer to registers of another
/// fragment.
pub(super) fn is_inside(shape: &Tree<i64>, at: &Coord, layout: &Layout) -> Result<(), Reason> {
    if at.is_leaf() {
        let [At::At(index)] = at.leaves() else { return Ok(()) };
        let count = shape.product()?;
        if (0..count).contains(index) {
            return Ok(());
        }
        return Err(Reason::NoElement { layout: layout.to_string(), index: *index, count });
    }
    let modes = at.modes().enumerate();
    // The layout refuses too many modes when it is sliced.
    modes
        .filter_map(|(mode, at)| Some((shape.mode(mode)?, at)))
        .try_for_each(|(shape, at)| is_inside(&shape, &at, layout))
}

/// The half of a word that two elements of 8 bits form.
fn half_of(pair: &[Slot]) -> Option<(Register, u8)> {
    match pair {
        [Slot::Part(word, low), Slot::Part(other, high)]
            if word == other && low.is_multiple_of(2) && *high == low + 1 =>
        {
            Some((*word, low / 2))
        }
        _ => None,
    }
}

impl<'k> Fragment<'k> {
    /// The layout: from coordinates to registers, counted in elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The shape.
    pub fn shape(&self) -> Tree<i64> {
        self.layout.shape()
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The number of elements.
    pub fn size(&self) -> usize {
        self.layout.size() as usize
    }

    /// The registers of the elements, counted in elements, by index.
    pub(crate) fn slots(&self) -> Result<Vec<usize>, Reason> {
        (0..self.layout.size()).map(|index| Ok(self.start + self.layout.eval(&index)? as usize)).collect()
    }

    /// The same registers with another layout of the same size.
    ///
    /// Errors: the layout has offsets that the fragment does not have.
    #[track_caller]
    pub fn with_layout(&self, layout: &Layout) -> Result<Fragment<'k>, KernelError> {
        let location = Location::caller();
        let count = self.build.core().cells[self.cell].slots.len();
        let inside =
            layout.range().is_ok_and(|(least, greatest)| least >= 0 && self.start + (greatest as usize) < count);
        if !inside {
            let refusal = Reason::Sizes {
                left: layout.to_string(),
                left_size: layout.cosize().map(|cosize| cosize.to_string()).unwrap_or_default(),
                right: "the fragment".to_string(),
                right_size: count.to_string(),
            };
            return Err(refusal.at("with_layout", location));
        }
        Ok(Fragment { layout: layout.clone(), part: None, ..self.clone() })
    }

    /// The slice at a coordinate, in which `_` keeps a mode. It uses the same registers.
    ///
    /// Errors: the coordinate does not match the shape, or is not known when the kernel is built.
    #[track_caller]
    pub fn slice(&self, at: impl Into<tilewright_layout::Coord>) -> Result<Fragment<'k>, KernelError> {
        KernelError::within("slice", || self.sliced(&at.into()))
    }

    fn sliced(&self, at: &Coord) -> Result<Fragment<'k>, Reason> {
        is_inside(&self.layout.shape(), at, &self.layout)?;
        let (layout, offset) = self.layout.slice_and_offset(at)?;
        let keeps = at.mode(0).unwrap_or(at.clone()).leaves() == [At::All];
        let part = self.part.as_ref().filter(|_| keeps).cloned();
        Ok(Fragment { start: self.start + offset as usize, layout, part, ..self.clone() })
    }

    /// Sets the element with an index to a number.
    ///
    /// ```
    /// use tilewright_kernel::{Element, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("counted", |k| {
    ///     k.threads(32)?;
    ///     let own = k.register(Element::I32, (2, 2))?;
    ///     for index in 0..4 {
    ///         own.set_at(index, k.number(index as i32))?;
    ///     }
    ///     k.output::<i32>("y", "(32,4):(4,1)")?.thread_part()?.store(&own)
    /// })?;
    /// assert_eq!(interpret::check(kernel.program(), &[])?.run.tensor::<i32>(0)?[..5], [0, 1, 2, 3, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: there is no such element; the number has another type.
    #[track_caller]
    pub fn set_at(&self, index: i64, value: Num<'k>) -> Result<(), KernelError> {
        self.build.statement("set_at", || {
            let one = self.sliced(&Tree::leaf(At::At(index)))?;
            one.put(&[value])
        })
    }

    /// The values of the elements, by index.
    ///
    /// Errors: an element has no value yet.
    #[track_caller]
    pub fn numbers(&self) -> Result<Vec<Num<'k>>, KernelError> {
        self.numbers_at("numbers", Location::caller())
    }

    pub(crate) fn numbers_at(&self, statement: &'static str, location: Location) -> Result<Vec<Num<'k>>, KernelError> {
        self.build.core().begin(Source { statement, location });
        self.all().map_err(|refusal| refusal.at(statement, location))
    }

    pub(crate) fn all(&self) -> Result<Vec<Num<'k>>, Reason> {
        let mut core = self.build.core();
        let number = |slot| Ok(Num::new(self.build, core.element_register(self.cell, slot)?, self.element));
        self.slots()?.into_iter().map(number).collect()
    }

    /// Sets each element to the same number.
    ///
    /// Errors: the number has another type.
    #[track_caller]
    pub fn fill(&self, value: Num<'k>) -> Result<(), KernelError> {
        self.build.statement("fill", || self.put(&vec![value; self.size()]))
    }

    /// Sets each element to 0.
    #[track_caller]
    pub fn clear(&self) {
        let (mut core, _) = self.build.begin("clear");
        let bits = core.cells[self.cell].bits;
        let word = core.constant(0, Width::of_bits(bits.max(32)).unwrap_or(Width::Bits64));
        for at in self.slots().unwrap_or_default() {
            core.cells[self.cell].slots[at] = match bits {
                8 => Slot::Part(word, (at % 4) as u8),
                16 => Slot::Part(word, (at % 2) as u8),
                _ => Slot::Whole(word),
            };
        }
    }

    /// Sets each element.
    ///
    /// Errors: the numbers of values and elements differ; the types differ.
    #[track_caller]
    pub fn set(&self, values: &[Num<'k>]) -> Result<(), KernelError> {
        self.build.statement("set", || self.put(values))
    }

    pub(crate) fn put(&self, values: &[Num<'k>]) -> Result<(), Reason> {
        if values.len() != self.size() {
            return Err(Reason::Sizes {
                left: "the fragment".to_string(),
                left_size: self.size().to_string(),
                right: "the list of numbers".to_string(),
                right_size: values.len().to_string(),
            });
        }
        if let Some(other) = values.iter().find(|value| value.element() != self.element) {
            return Err(Reason::Elements { wanted: self.element, given: other.element() });
        }
        let slots = self.slots()?;
        let mut core = self.build.core();
        for (slot, value) in slots.into_iter().zip(values) {
            core.cells[self.cell].slots[slot] = Slot::Whole(value.register());
        }
        Ok(())
    }

    /// Copies the elements of another fragment, by index. Narrow elements that share a register
    /// there share one here, without unpacking.
    ///
    /// ```
    /// use tilewright_kernel::{Element, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("copied", |k| {
    ///     k.threads(32)?;
    ///     let x = k.input::<half::bf16>("x", "(32,8):(8,1)")?.thread_part()?;
    ///     let y = k.output::<half::bf16>("y", "(32,8):(8,1)")?.thread_part()?;
    ///     let own = k.register(Element::Bf16, 8)?;
    ///     own.assign(&x.load()?)?;
    ///     y.store(&own)
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<half::bf16>(0)?, run.tensor::<half::bf16>(1)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the numbers of elements differ; the types differ.
    #[track_caller]
    pub fn assign(&self, from: &Fragment<'k>) -> Result<(), KernelError> {
        self.build.statement("assign", || self.copied(from))
    }

    fn copied(&self, from: &Fragment<'k>) -> Result<(), Reason> {
        if from.size() != self.size() {
            return Err(Reason::Sizes {
                left: "the fragment".to_string(),
                left_size: self.size().to_string(),
                right: "the other one".to_string(),
                right_size: from.size().to_string(),
            });
        }
        if from.element != self.element {
            return Err(Reason::Elements { wanted: self.element, given: from.element });
        }
        let (to, from_slots) = (self.slots()?, from.slots()?);
        let mut core = self.build.core();
        let values: Vec<Slot> = from_slots.iter().map(|slot| core.cells[from.cell].slots[*slot]).collect();
        if let Some(element) = values.iter().position(|slot| *slot == Slot::Empty) {
            return Err(Reason::Unwritten { element });
        }
        for (slot, value) in to.into_iter().zip(values) {
            core.cells[self.cell].slots[slot] = value;
        }
        Ok(())
    }

    /// A new fragment of the same shape whose elements are a function of this one's.
    ///
    /// Errors: an element has no value yet; those of the function.
    #[track_caller]
    pub fn map(&self, each: impl Fn(Num<'k>) -> Result<Num<'k>, KernelError>) -> Result<Fragment<'k>, KernelError> {
        let values = self.numbers()?.into_iter().map(each).collect::<Result<Vec<_>, _>>()?;
        self.build.statement("map", || self.like(&values))
    }

    /// A new fragment of the same shape with elements of another type, as [`Num::to`]. f32 is
    /// converted to types of 16 bits two elements at a time.
    ///
    /// Errors: an element has no value yet.
    #[track_caller]
    pub fn to(&self, element: Element) -> Result<Fragment<'k>, KernelError> {
        let paired = match element {
            Element::F16 => Some(Number::F16),
            Element::Bf16 => Some(Number::Bf16),
            _ => None,
        };
        let Some(number) = paired.filter(|_| self.element == Element::F32) else {
            return self.map(|value| Ok(value.to(element)));
        };
        self.build.statement("to", || {
            let fragment = self.build.fragment_of(element, &self.layout.shape())?;
            let fragment = Fragment { part: self.part.clone(), ..fragment };
            let slots = self.slots()?;
            let mut core = self.build.core();
            for (at, pair) in slots.chunks(2).enumerate() {
                let low = core.element_register(self.cell, pair[0])?;
                let [_, second] = pair else {
                    let one = core.converted(low, self.element, element);
                    core.cells[fragment.cell].slots[2 * at] = Slot::Whole(one);
                    continue;
                };
                let high = core.element_register(self.cell, *second)?;
                let operation = Operation::ConvertPair { to: Format::Number(number) };
                let word = core.pure(operation, [low, high], Width::Bits32);
                core.set_word(fragment.cell, &[2 * at, 2 * at + 1], word);
            }
            drop(core);
            Ok(fragment)
        })
    }

    /// A new fragment of the same shape whose elements are a function of the elements of this
    /// fragment and of another one, by index.
    ///
    /// Errors: the numbers of elements differ; an element has no value yet; those of the function.
    #[track_caller]
    pub fn zip(
        &self,
        other: &Fragment<'k>,
        each: impl Fn(Num<'k>, Num<'k>) -> Result<Num<'k>, KernelError>,
    ) -> Result<Fragment<'k>, KernelError> {
        let location = Location::caller();
        let (mine, others) = (self.numbers()?, other.numbers()?);
        if mine.len() != others.len() {
            let refusal = Reason::Sizes {
                left: "the first fragment".to_string(),
                left_size: mine.len().to_string(),
                right: "the second".to_string(),
                right_size: others.len().to_string(),
            };
            return Err(refusal.at("zip", location));
        }
        let values = mine.into_iter().zip(others).map(|(a, b)| each(a, b)).collect::<Result<Vec<_>, _>>()?;
        self.build.statement("zip", || self.like(&values))
    }

    /// A new fragment of the same shape with these numbers.
    fn like(&self, values: &[Num<'k>]) -> Result<Fragment<'k>, Reason> {
        let element = values.first().map_or(self.element, |value| value.element());
        let fragment = self.build.fragment_of(element, &self.layout.shape())?;
        fragment.put(values)?;
        Ok(Fragment { part: self.part.clone(), ..fragment })
    }
}

impl<'k> View<'k> {
    /// A fragment of the same shape without values. The elements of one instruction are adjacent
    /// (CuTe `make_fragment_like`).
    ///
    /// It belongs to the part that the view is: copies and MMA accept it only as that part.
    ///
    /// Errors: an extent is not known when the kernel is built.
    #[track_caller]
    pub fn fragment(&self) -> Result<Fragment<'k>, KernelError> {
        KernelError::within("fragment", || self.fragment_like(self.element))
    }

    /// As [`View::fragment`], for another type: f32 accumulators for a 16-bit result.
    ///
    /// Errors: as [`View::fragment`].
    #[track_caller]
    pub fn fragment_of(&self, element: Element) -> Result<Fragment<'k>, KernelError> {
        KernelError::within("fragment_of", || self.fragment_like(element))
    }

    pub(crate) fn fragment_like(&self, element: Element) -> Result<Fragment<'k>, Reason> {
        // The memory order if it is known; otherwise the order of the modes. In both, the values of
        // an instruction come first.
        let like = self.layout.fragment_like().ok().and_then(|layout| layout.numbers(&Values::new()).ok());
        let layout = match like {
            Some(layout) => layout,
            None => Layout::compact(&known_shape(&self.layout.shape(), || self.text())?)?,
        };
        let cell = self.build.core().new_cell(element.bits(), layout.cosize()?)?;
        // Parts that do not come from an instruction have no order of their own.
        let part = self.part.clone().filter(ThreadPart::is_instructed);
        Ok(Fragment { build: self.build, cell, element, start: 0, layout, part })
    }
}

impl Build {
    pub(crate) fn fragment_of(&self, element: Element, shape: &Tree<i64>) -> Result<Fragment<'_>, Reason> {
        let layout = Layout::compact(shape)?;
        let cell = self.core().new_cell(element.bits(), layout.size())?;
        Ok(Fragment { build: self, cell, element, start: 0, layout, part: None })
    }

    /// A fragment of this shape and type without values.
    ///
    /// Errors: the shape is invalid.
    #[track_caller]
    pub fn register(&self, element: Element, shape: impl IntoShape) -> Result<Fragment<'_>, KernelError> {
        KernelError::within("register", || self.fragment_of(element, &shape.into_shape()?))
    }
}
