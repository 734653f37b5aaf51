//! Printing of trees and layouts.
//!
//! Law: the printed text parses to the same value. It has no spaces, and every pair of parentheses
//! of the value.
//!
//! Text is collected in a buffer on the stack and passed to the formatter in one piece. A formatter
//! call for every bracket and number would cost ten times as much as the digits.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use smallvec::SmallVec;

use crate::ground::words::debug_as_text;
use crate::value::kind::{StrideKind, TextOut};
use crate::value::layout::Layout;
use crate::value::number::Stride;
use crate::value::profile::{LEAF, ProfileRef};

/// The size of the buffer, in bytes.
const BUFFER: usize = 256;

/// The most text that is written between two checks of the free space, in bytes: an integer, and
/// the marks on both sides of it.
const PIECE: usize = 48;

/// Buffered text for a formatter or a vector.
pub(crate) struct Printer<'a> {
    sink: Sink<'a>,
    buffer: [u8; BUFFER],
    len: usize,
    failed: bool,
}

enum Sink<'a> {
    Text(&'a mut dyn Write),
    Bytes(&'a mut Vec<u8>),
}

/// The space for the text of a short layout, in bytes: it fits eight leaves with numbers of common
/// size.
const ROOM: usize = 128;

/// The most leaves of a short layout, and the most tuples.
const SHORT: (usize, usize) = (8, 6);

/// The digits `000` to `999`, the first digit in the lowest byte.
const PADDED: [u32; 1000] = {
    let mut numbers = [0; 1000];
    let mut n = 0;
    while n < 1000 {
        let number = n as u32;
        numbers[n] = 0x30_30_30 + number / 100 + ((number / 10 % 10) << 8) + ((number % 10) << 16);
        n += 1;
    }
    numbers
};

/// The digits `0` to `999`, the first digit in the lowest byte; the byte above the digits has their
/// number.
const NUMBERS: [u32; 1000] = {
    let mut numbers = PADDED;
    let mut n = 0;
    while n < 1000 {
        let digits = if n < 10 { 1 } else { 2 + n as u32 / 100 };
        let digits = if digits > 3 { 3 } else { digits };
        numbers[n] = numbers[n] >> (8 * (3 - digits)) | digits << 24;
        n += 1;
    }
    numbers
};

/// The digits of a number from 0 to 999. The comparison is in 64 bits, because a `usize` may have
/// fewer.
#[inline(always)]
fn short(value: i64) -> Option<&'static u32> {
    if (value as u64) < NUMBERS.len() as u64 { NUMBERS.get(value as usize) } else { None }
}

/// The marks between two leaves, the first one in the lowest byte; the highest byte has their
/// number. The index is eight times the number of tuples that end between the leaves, plus the
/// number of tuples that begin there. Both are at most six, so there are at most seven marks.
const BETWEEN: [u64; 64] = {
    let mut between = [0; 64];
    let mut place = 0;
    while place < 64 {
        let (ends, begins) = (place / 8, place % 8);
        if ends + begins <= SHORT.1 {
            let mut bytes = [0; 8];
            let mut at = 0;
            while at < ends + 1 + begins {
                bytes[at] = if at < ends { b')' } else { b'(' };
                at += 1;
            }
            bytes[ends] = b',';
            bytes[7] = at as u8;
            between[place] = u64::from_le_bytes(bytes);
        }
        place += 1;
    }
    between
};

/// The longest integer, `-9223372036854775808`, in bytes.
const DIGITS: usize = 20;

/// The decimal text of an integer, in the last bytes of `room`.
fn decimal(value: i64, room: &mut [u8; DIGITS]) -> &[u8] {
    let (mut rest, mut first) = (value.unsigned_abs(), DIGITS);
    for (position, place) in room.iter_mut().enumerate().rev() {
        if rest == 0 && first < DIGITS {
            if value < 0 {
                *place = b'-';
                first = position;
            }
            break;
        }
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        first = position;
    }
    room.get(first..).unwrap_or_default()
}

/// The text of a short layout, written from left to right.
///
/// Eight or four bytes are written at a time; the next piece overwrites the superfluous ones.
struct Short<'a> {
    text: &'a mut [u8; ROOM],
    len: usize,
}

impl Short<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], count: usize) -> Option<()> {
        if self.len > ROOM - N {
            return None;
        }
        self.text.get_mut(self.len..self.len + N)?.copy_from_slice(&bytes);
        self.len += count;
        Some(())
    }

    /// Writes the marks between two leaves.
    #[inline(always)]
    fn between(&mut self, place: u64) -> Option<()> {
        let marks = BETWEEN.get((place & 63) as usize)?;
        self.put(marks.to_le_bytes(), (marks >> 56) as usize)
    }

    #[inline(always)]
    fn integer(&mut self, value: i64) -> Option<()> {
        if let Some(number) = short(value) {
            return self.put(number.to_le_bytes(), (number >> 24) as usize);
        }
        // A call here for longer numbers would cost registers in the path for short ones.
        let value = u32::try_from(value).ok()?;
        let high = NUMBERS.get((value / 1000) as usize)?;
        self.put(high.to_le_bytes(), (high >> 24) as usize)?;
        self.put(PADDED.get((value % 1000) as usize)?.to_le_bytes(), 3)
    }

    /// Writes a layout of few leaves and tuples, without an empty tuple, whose numbers have at most
    /// six digits and no sign. None for any other layout, or if there is not enough space; then
    /// part of the text may have been written.
    #[inline(always)]
    fn layout<D: Stride>(&mut self, layout: &Layout<D>) -> Option<()> {
        let (nodes, leaves) = (layout.profile().as_ref().nodes(), layout.leaves());
        if leaves.len() > SHORT.0 || nodes.len() > leaves.len() + SHORT.1 {
            return None;
        }
        // The brackets are computed once. `ending` has a group of four bits for each node from the
        // current one on: the number of tuples that end with it. A tuple of `n` nodes ends `n - 1`
        // groups later, and there are at most fourteen nodes.
        let mut ending = 0_u64;
        // The index in `BETWEEN` of the marks before the next leaf, and the indices for the leaves
        // so far, the last one highest.
        let (mut place, mut places) = (0_u64, 0_u64);
        let mut rest = leaves.iter();
        for node in nodes {
            if *node == LEAF {
                // The comma before the first leaf is superfluous; in the strides the colon
                // overwrites it.
                if places == 0 {
                    self.put([b'('; 8], place as usize)?;
                } else {
                    self.between(place)?;
                }
                self.integer(rest.next()?.extent.decimal()?)?;
                places = places >> 8 | place << 56;
                place = (ending & 15) << 3;
            } else {
                // An empty tuple has no leaf with which its brackets could be written.
                if *node == 1 {
                    return None;
                }
                place += 1;
                ending += 1_u64.wrapping_shl(4 * (u32::from(*node) - 1));
            }
            ending >>= 4;
        }
        let ends = (place >> 3) as usize;
        self.put([b')'; 8], ends)?;
        let colon = self.len;
        places >>= 64_usize.checked_sub(8 * leaves.len()).filter(|bits| *bits < 64)?;
        for leaf in leaves {
            self.between(places & 63)?;
            self.integer(leaf.stride.decimal()?)?;
            places >>= 8;
        }
        *self.text.get_mut(colon)? = b':';
        self.put([b')'; 8], ends)
    }
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

    /// Makes space for one piece.
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

    /// Writes one byte of ASCII; there is space for it.
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.buffer.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    #[inline(never)]
    fn long(&mut self, value: i64) {
        let mut room = [0; DIGITS];
        let digits = decimal(value, &mut room);
        if let Some(place) = self.buffer.get_mut(self.len..self.len + digits.len()) {
            place.copy_from_slice(digits);
            self.len += digits.len();
        }
    }

    /// Writes the brackets and commas of a profile of any size; `leaf` writes each leaf.
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

impl TextOut for Printer<'_> {
    #[inline]
    fn mark(&mut self, byte: u8) {
        self.room();
        self.byte(byte);
    }

    #[inline(always)]
    fn integer(&mut self, value: i64) {
        self.room();
        match short(value) {
            Some(number) => {
                let count = (number >> 24) as usize;
                if let Some(place) = self.buffer.get_mut(self.len..self.len + 4) {
                    place.copy_from_slice(&number.to_le_bytes());
                    self.len += count;
                }
            }
            None => self.long(value),
        }
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
    /// Appends the text of the layout to a buffer. The text is that of `Display`, but no formatter
    /// is used.
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
        let start = out.len();
        // The text is written directly into the buffer, which is then shortened to the length of
        // the text.
        out.extend_from_slice(&[0; ROOM]);
        if let Some(text) = out.get_mut(start..).and_then(|room| room.first_chunk_mut()) {
            let mut short = Short { text, len: 0 };
            if short.layout(self).is_some() {
                let len = short.len;
                return out.truncate(start + len);
            }
        }
        out.truncate(start);
        self.write_long(out);
    }

    #[inline(never)]
    fn write_long(&self, out: &mut Vec<u8>) {
        let mut printer = Printer::to_bytes(out);
        printer.layout(self);
        printer.flush();
    }
}

impl<D: Stride> fmt::Display for Layout<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut short = Short { text: &mut [0; ROOM], len: 0 };
        if short.layout(self).is_some() {
            let text = short.text.get(..short.len).unwrap_or_default();
            return f.write_str(core::str::from_utf8(text).map_err(|_| fmt::Error)?);
        }
        let mut printer = Printer::to_text(f);
        printer.layout(self);
        printer.finish()
    }
}

debug_as_text!(Layout<D: Stride>);
