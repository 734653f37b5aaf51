//! Writing trees and layouts.
//!
//! Law: what is printed reads back as the same value, without spaces and with every pair of parentheses that the value has.
//!
//! Text is gathered in a buffer on the stack and handed on in one piece: a formatter call for every bracket and number would
//! cost ten times as much as the digits.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use smallvec::SmallVec;

use crate::layout::Layout;
use crate::number::Stride;
use crate::profile::{LEAF, ProfileRef};

/// How much text is gathered before it is handed on.
const BUFFER: usize = 256;

/// The most that is written between two looks at the room left: an integer, and the marks on both sides of it.
const PIECE: usize = 48;

/// The most leaves for which the brackets are worked out once, for extents and strides together.
const SHORT: usize = 16;

/// Text on its way to a formatter or a vector.
pub struct Printer<'a> {
    sink: Sink<'a>,
    buffer: [u8; BUFFER],
    len: usize,
    failed: bool,
}

enum Sink<'a> {
    Text(&'a mut dyn Write),
    Bytes(&'a mut Vec<u8>),
}

/// `0`, .. `99` and how many digits each has.
const SMALL: [([u8; 2], u8); 100] = {
    let mut small = [([b'0'; 2], 1); 100];
    let mut n = 0;
    while n < 100 {
        let (tens, ones) = (b'0' + (n / 10) as u8, b'0' + (n % 10) as u8);
        small[n] = if n < 10 { ([ones, b'0'], 1) } else { ([tens, ones], 2) };
        n += 1;
    }
    small
};

/// Up to eight bytes of brackets and commas, and how many.
#[derive(Clone, Copy, Default)]
struct Marks {
    bytes: u64,
    len: u32,
}

impl Marks {
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.bytes |= u64::from(byte).checked_shl(8 * self.len).unwrap_or(0);
        self.len += 1;
    }
}

/// Works out what stands before each leaf of a short profile, and at its end; gives the number of leaves, `None` where a mark
/// needs more than eight bytes or there are more than [`SHORT`] leaves.
#[inline(always)]
fn mark(profile: ProfileRef<'_>, marks: &mut [Marks; SHORT + 1]) -> Option<usize> {
    let mut ends = [usize::MAX; 8];
    let (mut open, mut leaf, mut here) = (0, 0, Marks::default());
    for (position, node) in profile.nodes().iter().enumerate() {
        if *node == LEAF {
            if leaf == SHORT || here.len > 7 {
                return None;
            }
            marks[leaf] = here;
            leaf += 1;
            here = Marks::default();
        } else {
            if open == 7 || *node == 1 {
                return None;
            }
            open += 1;
            ends[open] = position + usize::from(*node);
            here.push(b'(');
            continue;
        }
        // What follows a leaf: closing brackets, and a comma unless that is the end.
        while ends[open] == position + 1 {
            here.push(b')');
            open -= 1;
        }
        if open > 0 {
            here.push(b',');
        }
    }
    marks[leaf] = here;
    (here.len <= 8).then_some(leaf)
}

impl<'a> Printer<'a> {
    #[inline(always)]
    pub(crate) fn to_text(sink: &'a mut dyn Write) -> Printer<'a> {
        Printer { sink: Sink::Text(sink), buffer: [0; BUFFER], len: 0, failed: false }
    }

    #[inline(always)]
    fn to_bytes(sink: &'a mut Vec<u8>) -> Printer<'a> {
        Printer { sink: Sink::Bytes(sink), buffer: [0; BUFFER], len: 0, failed: false }
    }

    /// Makes room for a piece.
    #[inline(always)]
    fn room(&mut self) {
        if self.len > BUFFER - PIECE {
            self.flush();
        }
    }

    #[inline]
    fn flush(&mut self) {
        let text = self.buffer.get(..self.len).unwrap_or_default();
        match &mut self.sink {
            Sink::Bytes(bytes) => bytes.extend_from_slice(text),
            Sink::Text(sink) => {
                let written = core::str::from_utf8(text).is_ok_and(|text| sink.write_str(text).is_ok());
                self.failed |= !written;
            }
        }
        self.len = 0;
    }

    /// One byte of ASCII, with room for it.
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.buffer.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    /// All eight bytes are written, and those that count are kept.
    #[inline(always)]
    fn marks(&mut self, marks: Marks) {
        if let Some(place) = self.buffer.get_mut(self.len..self.len + 8) {
            place.copy_from_slice(&marks.bytes.to_le_bytes());
            self.len += marks.len as usize;
        }
    }

    /// An integer in decimal.
    #[inline(always)]
    pub fn integer(&mut self, value: i64) {
        self.room();
        match SMALL.get(value as usize) {
            Some((digits, count)) => {
                if let Some(place) = self.buffer.get_mut(self.len..self.len + 2) {
                    place.copy_from_slice(digits);
                    self.len += usize::from(*count);
                }
            }
            None => self.long(value),
        }
    }

    #[inline(never)]
    fn long(&mut self, value: i64) {
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        let mut rest = value.unsigned_abs();
        while let Some(place) = first.checked_sub(1).and_then(|place| digits.get_mut(place)) {
            *place = b'0' + (rest % 10) as u8;
            first -= 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self.byte(b'-');
        }
        let digits = digits.get(first..).unwrap_or_default();
        if let Some(place) = self.buffer.get_mut(self.len..self.len + digits.len()) {
            place.copy_from_slice(digits);
            self.len += digits.len();
        }
    }

    /// The brackets and commas of a profile of any size, and each leaf by `leaf`.
    pub(crate) fn tree(&mut self, profile: ProfileRef<'_>, mut leaf: impl FnMut(&mut Self, usize)) {
        let mut ends: SmallVec<[usize; 16]> = SmallVec::new();
        let (mut leaves, mut after) = (0, false);
        for (position, node) in profile.nodes().iter().enumerate() {
            while ends.last().is_some_and(|end| *end <= position) {
                ends.pop();
                self.room();
                self.byte(b')');
            }
            self.room();
            if after {
                self.byte(b',');
            }
            if *node == LEAF {
                leaf(self, leaves);
                leaves += 1;
                after = true;
            } else {
                ends.push(position + usize::from(*node));
                self.byte(b'(');
                after = *node == 1;
            }
        }
        for _ in ends {
            self.room();
            self.byte(b')');
        }
    }

    #[inline(always)]
    fn layout<D: Stride>(&mut self, layout: &Layout<D>) {
        let (profile, leaves) = (layout.profile().as_ref(), layout.leaves());
        let mut marks = [Marks::default(); SHORT + 1];
        if let Some(count) = mark(profile, &mut marks) {
            let last = marks[count];
            for (leaf, before) in leaves.iter().zip(&marks) {
                self.marks(*before);
                leaf.extent.print(self);
            }
            self.marks(last);
            self.byte(b':');
            for (leaf, before) in leaves.iter().zip(&marks) {
                self.marks(*before);
                leaf.stride.print(self);
            }
            self.marks(last);
            return;
        }
        self.tree(profile, |out, number| {
            if let Some(leaf) = leaves.get(number) {
                leaf.extent.print(out);
            }
        });
        self.room();
        self.byte(b':');
        self.tree(profile, |out, number| {
            if let Some(leaf) = leaves.get(number) {
                leaf.stride.print(out);
            }
        });
    }

    pub(crate) fn finish(mut self) -> fmt::Result {
        self.flush();
        if self.failed { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Write for Printer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.room();
            self.byte(byte);
        }
        Ok(())
    }
}

impl<D: Stride> Layout<D> {
    /// Appends the text of the layout to a buffer: what `Display` gives, without a formatter on the way.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,8):(8,1)".parse().unwrap();
    /// let mut line = b"A = ".to_vec();
    /// layout.write_to(&mut line);
    /// assert_eq!(line, b"A = (4,8):(8,1)");
    /// ```
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut printer = Printer::to_bytes(out);
        printer.layout(self);
        printer.flush();
    }
}

impl<D: Stride> fmt::Display for Layout<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::to_text(f);
        printer.layout(self);
        printer.finish()
    }
}

impl<D: Stride> fmt::Debug for Layout<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}
