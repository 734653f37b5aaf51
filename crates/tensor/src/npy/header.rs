//! The header of a `.npy` file.
//!
//! Law: a header that is written reads back with the same kind, size, order and shape.
//!
//! A header is six bytes `\x93NUMPY`, two bytes of the version, and the length of what follows, in
//! two bytes (version 1) or four (from version 2 on). Then there is a Python dictionary as text,
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, padded with spaces to a multiple
//! of 64 bytes.

use std::io::Read;

use tilewright_layout::Tree;

use super::{NpyError, exactly, malformed, shape_of};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The largest header in bytes; longer ones are refused. A header for numbers takes less than a
/// hundred bytes, and some for each axis.
const MAX_HEADER: u32 = 1 << 16;

/// NumPy's limit on the number of axes.
const MAX_RANK: usize = 64;

/// Kinds of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed integers, `i`.
    Signed,
    /// Unsigned integers, `u`.
    Unsigned,
    /// Floats, `f`.
    Float,
    /// Complex numbers: pairs of floats, `c`.
    Complex,
    /// Booleans, `b`.
    Bool,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Signed, Kind::Unsigned, Kind::Float, Kind::Complex, Kind::Bool];

    /// NumPy's letter for the kind.
    fn letter(self) -> char {
        match self {
            Kind::Signed => 'i',
            Kind::Unsigned => 'u',
            Kind::Float => 'f',
            Kind::Complex => 'c',
            Kind::Bool => 'b',
        }
    }

    /// The sizes of this kind, in bytes.
    fn sizes(self) -> &'static [usize] {
        match self {
            Kind::Signed | Kind::Unsigned => &[1, 2, 4, 8],
            Kind::Float => &[2, 4, 8],
            Kind::Complex => &[8, 16],
            Kind::Bool => &[1],
        }
    }
}

/// The order of the elements in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// C order: the last mode is the fastest, so rows of a matrix are contiguous.
    C,
    /// Fortran order: the first mode is the fastest, so columns of a matrix are contiguous.
    Fortran,
}

/// The description of the elements of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    kind: Kind,
    size: usize,
    big: bool,
    order: Order,
    shape: Tree<i64>,
}

impl Header {
    pub(super) fn new(kind: Kind, size: usize, order: Order, shape: Tree<i64>) -> Header {
        Header { kind, size, big: cfg!(target_endian = "big"), order, shape }
    }

    /// The kind of the elements.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The size of an element in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The order of the elements.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The extents, mode 0 first.
    pub fn shape(&self) -> &Tree<i64> {
        &self.shape
    }

    /// The type of the elements, as NumPy writes it.
    pub fn descr(&self) -> String {
        let order = match (self.size, self.big) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        format!("{order}{}{}", self.kind.letter(), self.size)
    }

    /// The type of native elements, as NumPy writes it.
    pub(super) fn type_text(kind: Kind, size: usize) -> String {
        Header::new(kind, size, Order::C, Tree::leaf(1)).descr()
    }

    /// Whether the bytes of an element are in the opposite of the native order.
    pub(super) fn swapped(&self) -> bool {
        self.size > 1 && self.big != cfg!(target_endian = "big")
    }

    /// The number of bytes of all elements; None if that is not representable.
    pub fn bytes(&self) -> Option<u64> {
        let size = u64::try_from(self.size).ok()?;
        self.shape.leaves().iter().try_fold(size, |bytes, extent| bytes.checked_mul(u64::try_from(*extent).ok()?))
    }

    /// The bytes of the header.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let order = if self.order == Order::Fortran { "True" } else { "False" };
        let extents: Vec<String> = self.shape.leaves().iter().map(i64::to_string).collect();
        let shape = if let [only] = extents.as_slice() { format!("{only},") } else { extents.join(", ") };
        let mut text = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({shape}), }}", self.descr());
        // The elements begin at a multiple of 64 bytes; the text ends with a line feed. At most 64
        // extents of 20 characters each fit version 1.
        let begin = MAGIC.len() + 4;
        let filled = (begin + text.len() + 1).next_multiple_of(64) - begin;
        text.extend(std::iter::repeat_n(' ', filled - text.len() - 1));
        text.push('\n');
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        [MAGIC.as_slice(), &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat()
    }
}

/// Reads the header of a file. Returns the header and its length in bytes.
pub(super) fn read(file: &mut impl Read) -> Result<(Header, u64), NpyError> {
    const WHOLE: &str = "a whole header";
    let mut begin = [0; 8];
    let got = read_up_to(file, &mut begin)?;
    let Some(&[major, _]) = begin.strip_prefix(MAGIC).filter(|_| got == 8) else {
        let shown = begin.get(..got).unwrap_or_default().escape_ascii();
        return Err(malformed("a .npy file, which begins with \\x93NUMPY", format_args!("'{shown}'")));
    };
    let (length, before) = match major {
        1 => {
            let mut length = [0; 2];
            exactly(file, &mut length, WHOLE)?;
            (u32::from(u16::from_le_bytes(length)), 10)
        }
        2 | 3 => {
            let mut length = [0; 4];
            exactly(file, &mut length, WHOLE)?;
            (u32::from_le_bytes(length), 12)
        }
        _ => return Err(malformed("a .npy file of version 1, 2 or 3", format_args!("version {major}"))),
    };
    if length > MAX_HEADER {
        return Err(malformed("a header of at most 65536 bytes", format_args!("{length} bytes")));
    }
    let mut text = vec![0; length as usize];
    exactly(file, &mut text, WHOLE)?;
    let text = std::str::from_utf8(&text).map_err(|_| malformed("a header that is text", "other bytes"))?;
    Ok((parse(text)?, before + u64::from(length)))
}

/// Fills a buffer as far as the file has bytes. Returns their number.
fn read_up_to(file: &mut impl Read, place: &mut [u8]) -> Result<usize, NpyError> {
    let mut got = 0;
    while let Some(rest) = place.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            more => got += more,
        }
    }
    Ok(got)
}

/// Parses a dictionary literal as a header.
fn parse(text: &str) -> Result<Header, NpyError> {
    let mut cursor = HeaderCursor { rest: text };
    let (mut number, mut order, mut shape) = (None, None, None);
    cursor.expect('{', "a dictionary")?;
    while !cursor.eat('}') {
        let key = cursor.string()?;
        cursor.expect(':', "':' after a key")?;
        match key {
            "descr" => number = Some(cursor.descr()?),
            "fortran_order" => order = Some(cursor.truth()?),
            "shape" => shape = Some(cursor.extents()?),
            other => return Err(malformed("the keys descr, fortran_order and shape", format_args!("'{other}'"))),
        }
        if !cursor.eat(',') {
            cursor.expect('}', "',' or '}' after a value")?;
            break;
        }
    }
    if !cursor.rest.trim().is_empty() {
        return Err(cursor.wrong("the end of the header"));
    }
    match (number, order, shape) {
        (Some((kind, size, big)), Some(fortran), Some(shape)) => {
            let order = if fortran { Order::Fortran } else { Order::C };
            Ok(Header { kind, size, big, order, shape: shape_of(shape)? })
        }
        _ => Err(malformed("the keys descr, fortran_order and shape", "a header without one of them")),
    }
}

struct HeaderCursor<'a> {
    rest: &'a str,
}

impl<'a> HeaderCursor<'a> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char, what: &'static str) -> Result<(), NpyError> {
        if self.eat(wanted) { Ok(()) } else { Err(self.wrong(what)) }
    }

    fn wrong(&self, expected: &'static str) -> NpyError {
        let shown: String = self.rest.trim().chars().take(20).collect();
        malformed(expected, format_args!("'{}'", shown.escape_debug()))
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        self.skip_spaces();
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        let inside = quote.and_then(|quote| self.rest.strip_prefix(quote)?.split_once(quote));
        let (text, rest) = inside.ok_or_else(|| self.wrong("a string"))?;
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, NpyError> {
        self.skip_spaces();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.wrong("True or False"))
    }

    /// Kind, size and byte order of the elements.
    fn descr(&mut self) -> Result<(Kind, usize, bool), NpyError> {
        const WANTED: &str = "integers of 8 to 64 bits, floats of 16 to 64, complex numbers of 64 or 128, or bool";
        self.skip_spaces();
        if self.rest.starts_with('[') {
            return Err(malformed(WANTED, "elements with several fields"));
        }
        let text = self.string()?;
        let refused = || malformed(WANTED, format_args!("'{text}'"));
        let mut letters = text.chars();
        let big = match letters.next() {
            Some('<' | '|') => false,
            Some('>') => true,
            Some('=') => cfg!(target_endian = "big"),
            _ => return Err(refused()),
        };
        let letter = letters.next().ok_or_else(refused)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.letter() == letter).ok_or_else(refused)?;
        let size: usize = letters.as_str().parse().map_err(|_| refused())?;
        if !kind.sizes().contains(&size) {
            return Err(refused());
        }
        Ok((kind, size, big))
    }

    /// A tuple of extents.
    fn extents(&mut self) -> Result<Vec<i64>, NpyError> {
        self.expect('(', "a tuple of extents")?;
        let mut extents = Vec::new();
        while !self.eat(')') {
            self.skip_spaces();
            let digits = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at_checked(digits).unwrap_or(("", self.rest));
            let extent = number.parse().map_err(|_| self.wrong("an extent"))?;
            // Python 2 wrote long integers with a letter after them.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if extents.len() == MAX_RANK {
                return Err(malformed("at most 64 axes", "more"));
            }
            extents.push(extent);
            if !self.eat(',') {
                self.expect(')', "',' or ')' after an extent")?;
                break;
            }
        }
        Ok(extents)
    }
}
