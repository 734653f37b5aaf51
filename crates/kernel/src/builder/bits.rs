//! Numbers as bits.
//!
//! Law: bits are those in memory. Integers are combined and shifted bit by bit. Reinterpreting a
//! number as another type changes no bit.

use super::Build;
use super::fragment::Fragment;
use super::number::{Num, arithmetic, width_of};
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::Width;
use crate::program::{Location, Source};

impl<'k> Num<'k> {
    /// The same bits, as a number of another type of the same width: f32 as i32, for example.
    ///
    /// ```
    /// use tilewright_kernel::{Element, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("bits", |k| {
    ///     k.threads(32)?;
    ///     let x = k.input::<f32>("x", "(32,1):(1,32)")?.thread_part()?;
    ///     let y = k.output::<i32>("y", "(32,1):(1,32)")?.thread_part()?;
    ///     let bits = x.load()?.numbers()?[0].recast(Element::I32);
    ///     let own = k.register(Element::I32, 1)?;
    ///     own.fill(bits.bit_and(bits.like(255.0)).shift_left(bits.like(4.0)))?;
    ///     y.store(&own)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[f32::from_bits(0x4000_00a5); 32])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<i32>("y")?[0], 0xa50);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn recast(self, element: Element) -> Num<'k> {
        if self.element().bits() != element.bits() {
            let refusal = Reason::Elements { wanted: self.element(), given: element };
            self.build().complain(refusal.at("recast", Location::caller()));
            return self;
        }
        Num::new(self.build(), self.register(), element)
    }

    /// Refuses floating-point numbers, which [`Num::recast`] must reinterpret first.
    #[track_caller]
    fn whole(self, other: Num<'k>, operation: Binary, name: &'static str) -> Num<'k> {
        if self.element().is_float() {
            let refusal = Reason::Arithmetic { operation: name, element: self.element() };
            self.build().complain(refusal.at(name, Location::caller()));
            return self;
        }
        self.binary(other, operation, name)
    }

    /// Bitwise and.
    #[track_caller]
    pub fn bit_and(self, other: Num<'k>) -> Num<'k> {
        self.whole(other, Binary::And, "bit_and")
    }

    /// Bitwise or.
    #[track_caller]
    pub fn bit_or(self, other: Num<'k>) -> Num<'k> {
        self.whole(other, Binary::Or, "bit_or")
    }

    /// Bitwise exclusive or.
    #[track_caller]
    pub fn bit_xor(self, other: Num<'k>) -> Num<'k> {
        self.whole(other, Binary::Xor, "bit_xor")
    }

    /// The upper half of the product.
    #[track_caller]
    pub fn multiply_high(self, other: Num<'k>) -> Num<'k> {
        self.whole(other, Binary::MultiplyHigh, "multiply_high")
    }

    /// Shifts left by a number of 32 bits, read as unsigned. By the width or more, the result is 0.
    #[track_caller]
    pub fn shift_left(self, by: Num<'k>) -> Num<'k> {
        self.shifted(by, Binary::ShiftLeft, "shift_left")
    }

    /// Shifts right by a number of 32 bits, read as unsigned. Types with a sign are filled with the
    /// sign bit, others with zeros.
    #[track_caller]
    pub fn shift_right(self, by: Num<'k>) -> Num<'k> {
        self.shifted(by, Binary::ShiftRight, "shift_right")
    }

    #[track_caller]
    fn shifted(self, by: Num<'k>, operation: Binary, name: &'static str) -> Num<'k> {
        let location = Location::caller();
        let number = arithmetic(self.element()).filter(|_| !self.element().is_float());
        let counts = matches!(by.element(), Element::I32 | Element::U32);
        let (Some(number), true) = (number, counts) else {
            let refusal = Reason::Arithmetic { operation: name, element: self.element() };
            self.build().complain(refusal.at(name, location));
            return self;
        };
        let mut core = self.build().core_for(Source { statement: name, location });
        let inputs = [self.register(), by.register()];
        let register = core.pure(Operation::Binary(operation, number), inputs, width_of(self.element()));
        drop(core);
        Num::new(self.build(), register, self.element())
    }
}

/// The constants that convert four bits to a floating-point number without a conversion
/// instruction. Other bits are inserted around the four, so that all together are the wanted number
/// plus a constant, which is then subtracted.
struct Nibbles {
    element: Element,
    /// The bits that are inserted around the four bits.
    frame: u64,
    /// The constant that is subtracted.
    less: f64,
}

impl Nibbles {
    /// The constants for a type; None if the type has no such bits.
    fn of(element: Element, signed: bool) -> Option<Nibbles> {
        let (frame, less) = match (element, signed) {
            // If the highest of four bits is flipped, -8 to 7 become 0 to 15.
            (Element::Bf16, true) => (0x4308, 136.0),
            (Element::Bf16, false) => (0x4300, 128.0),
            (Element::F16, true) => (0x6408, 1032.0),
            (Element::F16, false) => (0x6400, 1024.0),
            (Element::F32, true) => (0x4b00_0008, 8_388_616.0),
            (Element::F32, false) => (0x4b00_0000, 8_388_608.0),
            (Element::I32, true) => (8, 8.0),
            (Element::I32, false) => (0, 0.0),
            _ => return None,
        };
        Some(Nibbles { element, frame, less })
    }

    /// The type of the arithmetic: a packed pair for types of 16 bits.
    fn number(&self) -> Number {
        match self.element {
            Element::Bf16 => Number::Bf16x2,
            Element::F16 => Number::F16x2,
            Element::F32 => Number::F32,
            _ => Number::I32,
        }
    }

    /// The same bits in each number of a register.
    fn each(&self, bits: u64) -> u64 {
        if self.element.bits() == 16 { bits * 0x1_0001 } else { bits }
    }

    /// The bits of a value, in each number of a register.
    fn bits_of(&self, value: f64) -> u64 {
        match self.element {
            Element::Bf16 => self.each(half::bf16::from_f64(value).to_bits().into()),
            Element::F16 => self.each(half::f16::from_f64(value).to_bits().into()),
            Element::F32 => u64::from((value as f32).to_bits()),
            _ => value as u64,
        }
    }

    /// The mask of the four bits, the bits around them, and the constant.
    fn constants(&self) -> [u64; 3] {
        [self.each(0xf), self.each(self.frame), self.bits_of(self.less)]
    }

    /// The constants for four bits that stay four places up. The mantissa of f16 has ten bits, so
    /// these four bits need no shift. Their value is then sixteen times as large, and so is the
    /// offset of the sign; one fused multiply-add, rounded once, gives the number.
    fn high_constants(&self) -> Option<[u64; 4]> {
        if self.element != Element::F16 {
            return None;
        }
        let flipped = self.frame & 0xf;
        let frame = self.each(self.frame - flipped + (flipped << 4));
        let less = self.bits_of(-((self.less - flipped as f64) / 16.0 + flipped as f64));
        Some([self.each(0xf0), frame, self.bits_of(1.0 / 16.0), less])
    }
}

/// `(a & b) ^ c`.
const AND_THEN_XOR: u8 = (0xf0 & 0xcc) ^ 0xaa;

impl Build {
    /// Unpacks 32-bit words to the eight 4-bit numbers in each, the lowest bits first, as elements
    /// of another type. Signed numbers are -8 to 7, unsigned ones 0 to 15. All conversions are
    /// exact.
    ///
    /// ```
    /// use tilewright_kernel::{Element, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("unpacked", |k| {
    ///     k.threads(32)?;
    ///     let words = k.input::<i32>("words", "(32,1):(1,32)")?.thread_part()?.load()?.numbers()?;
    ///     let y = k.output::<f32>("y", "(32,8):(8,1)")?.thread_part()?;
    ///     y.store(&k.nibbles(&words, Element::F32, true)?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[0x7f_10_98_21_i32; 32])?;
    /// let found = interpreter.check()?.run.tensor::<f32>("y")?;
    /// assert_eq!(found[..8], [1.0, 2.0, -8.0, -7.0, 0.0, 1.0, -1.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a word does not have 32 bits; `element` is not bf16, f16, f32 or i32.
    #[track_caller]
    pub fn nibbles<'k>(
        &'k self,
        words: &[Num<'k>],
        element: Element,
        signed: bool,
    ) -> Result<Fragment<'k>, KernelError> {
        let location = Location::caller();
        let refuse = |refusal: Reason| refusal.at("nibbles", location);
        if let Some(word) = words.iter().find(|word| !matches!(word.element(), Element::I32 | Element::U32)) {
            return Err(refuse(Reason::Elements { wanted: Element::U32, given: word.element() }));
        }
        let Some(nibbles) = Nibbles::of(element, signed) else {
            return Err(refuse(Reason::Arithmetic { operation: "four bits", element }));
        };
        let fragment =
            self.fragment_of(element, &tilewright_layout::Tree::leaf(8 * words.len().max(1) as i64)).map_err(refuse)?;
        let mut core = self.core_for(Source { statement: "nibbles", location });
        let (pairs, number) = (element.bits() == 16, nibbles.number());
        let high = nibbles.high_constants().map(|constants| constants.map(|bits| core.constant(bits, Width::Bits32)));
        let [mask, frame, less] = nibbles.constants().map(|bits| core.constant(bits, Width::Bits32));
        let each = (0..words.len()).flat_map(|word| (0..if pairs { 4_usize } else { 8 }).map(move |at| (word, at)));
        for (word, at) in each {
            // For 8-bit fields, every other shift is skipped.
            let shift = if high.is_some() { at & !1 } else { at };
            let mut moved = words[word].register();
            if shift > 0 {
                let by = core.constant(4 * shift as u64, Width::Bits32);
                moved = core.pure(Operation::Binary(Binary::ShiftRight, Number::U32), [moved, by], Width::Bits32);
            }
            let exact = match high.filter(|_| at != shift) {
                Some([mask, frame, scale, less]) => {
                    let framed = core.pure(Operation::Logic(AND_THEN_XOR), [moved, mask, frame], Width::Bits32);
                    core.pure(Operation::MultiplyAdd(number), [framed, scale, less], Width::Bits32)
                }
                None => {
                    let framed = core.pure(Operation::Logic(AND_THEN_XOR), [moved, mask, frame], Width::Bits32);
                    core.pure(Operation::Binary(Binary::Subtract, number), [framed, less], Width::Bits32)
                }
            };
            let at = 8 * word + at;
            if pairs {
                // Four bits, and the four bits 16 places above them, are converted together.
                core.set_word(fragment.cell, &[at, at + 4], exact);
            } else {
                core.cells[fragment.cell].slots[at] = super::core::Slot::Whole(exact);
            }
        }
        drop(core);
        Ok(fragment)
    }
}
