//! Runtime functions that device code calls: `printf` and failing assertions.

use super::access::{Side, lanes, local_read};
use super::cluster::Cluster;
use super::code::{Source, Window};
use super::execute::Executes;

/// A piece of a formatted line.
enum PrintPiece {
    Text(String),
    /// A string at an address.
    TextAt(u64),
}

/// Splits a format string. `next` returns the next argument, which has this many bytes.
fn pieces(text: &str, mut next: impl FnMut(u64) -> u64) -> Vec<PrintPiece> {
    let mut pieces = Vec::new();
    let mut line = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            line.push(letter);
            continue;
        }
        let mut flags = String::new();
        while let Some(flag) = letters.next_if(|letter| "-+ #0".contains(*letter)) {
            flags.push(flag);
        }
        let number = |next: &mut dyn FnMut(u64) -> u64, letters: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            if letters.next_if_eq(&'*').is_some() {
                return Some((next(4) as i32).unsigned_abs() as usize % 4096);
            }
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits.parse::<usize>().ok().map(|value| value.min(4096))
        };
        let width = number(&mut next, &mut letters).unwrap_or(0);
        let has_precision = letters.next_if_eq(&'.').is_some();
        let precision = has_precision.then(|| number(&mut next, &mut letters).unwrap_or(0));
        let mut is_long = false;
        while let Some(letter) = letters.next_if(|letter| "hlLjzt".contains(*letter)) {
            is_long |= "lLjzt".contains(letter);
        }
        let bytes = if is_long { 8 } else { 4 };
        let signed = |value: u64| if is_long { value as i64 } else { i64::from(value as i32) };
        let shown = match letters.next() {
            Some('d' | 'i') => {
                let value = signed(next(bytes));
                match flags.contains('+') && value >= 0 {
                    true => format!("+{value}"),
                    false => value.to_string(),
                }
            }
            Some('u') => next(bytes).to_string(),
            Some('x') => format!("{}{:x}", if flags.contains('#') { "0x" } else { "" }, next(bytes)),
            Some('X') => format!("{}{:X}", if flags.contains('#') { "0X" } else { "" }, next(bytes)),
            Some('o') => format!("{:o}", next(bytes)),
            Some('c') => char::from(next(4) as u8).to_string(),
            Some('p') => format!("{:#x}", next(8)),
            Some('f' | 'F') => format!("{:.*}", precision.unwrap_or(6), f64::from_bits(next(8))),
            Some('e' | 'E') => exponent(f64::from_bits(next(8)), precision.unwrap_or(6)),
            Some('g' | 'G' | 'a' | 'A') => general(f64::from_bits(next(8)), precision.unwrap_or(6)),
            Some('s') => {
                pieces.push(PrintPiece::Text(std::mem::take(&mut line)));
                pieces.push(PrintPiece::TextAt(next(8)));
                continue;
            }
            Some('%') => "%".to_string(),
            Some(other) => format!("%{other}"),
            None => "%".to_string(),
        };
        let missing = width.saturating_sub(shown.chars().count());
        if flags.contains('-') {
            line += &shown;
            line.extend(std::iter::repeat_n(' ', missing));
        } else if flags.contains('0') {
            let (sign, digits) = match shown.strip_prefix('-') {
                Some(digits) => ("-", digits),
                None => ("", shown.as_str()),
            };
            line += sign;
            line.extend(std::iter::repeat_n('0', missing));
            line += digits;
        } else {
            line.extend(std::iter::repeat_n(' ', missing));
            line += &shown;
        }
    }
    pieces.push(PrintPiece::Text(line));
    pieces
}

/// A number in exponential notation as in C: a sign and at least two digits of the exponent.
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, power)) => match power.strip_prefix('-') {
            Some(power) => format!("{digits}e-{power:0>2}"),
            None => format!("{digits}e+{power:0>2}"),
        },
        None => text,
    }
}

/// A number in the shorter of both notations (`%g`).
fn general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let power = value.abs().log10().floor() as i64;
    let text = if power < -4 || power >= precision as i64 {
        return exponent(value, precision - 1);
    } else {
        format!("{:.*}", (precision as i64 - 1 - power).max(0) as usize, value)
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

impl Cluster<'_> {
    /// A byte at a generic address; none if nothing is.
    fn byte(&mut self, by: &Executes<'_>, lane: usize, address: u64) -> Option<u8> {
        let (side, offset) = self.side(by.block, Window::Generic, address);
        Some(match side {
            Side::Global => {
                let region = self.grid.memory.find(offset, &mut self.near)?;
                region.words.read(offset - region.address, 1) as u8
            }
            Side::Shared(rank) => self.blocks.get(rank as usize)?.shared.read(offset, 1) as u8,
            Side::Parameters => self.grid.parameters.read(offset, 1) as u8,
            Side::Local => local_read(by.warp, lane, offset, 1) as u8,
        })
    }

    fn text(&mut self, by: &Executes<'_>, lane: usize, address: u64) -> String {
        let bytes = (0..4096).map_while(|at| self.byte(by, lane, address + at).filter(|byte| *byte != 0));
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }

    /// `vprintf`.
    pub(super) fn print(&mut self, by: &Executes<'_>, arguments: &[Source]) {
        let row = |at: usize| arguments.get(at).map_or([0; 32], |source| *by.row(*source));
        let (formats, buffers) = (row(0), row(1));
        for lane in lanes(by.active) {
            let format = self.text(by, lane, formats[lane]);
            let mut at = buffers[lane];
            let line = pieces(&format, |bytes| {
                at = at.next_multiple_of(bytes);
                let value = (0..bytes).fold(0, |value, byte| {
                    value | u64::from(self.byte(by, lane, at + byte).unwrap_or(0)) << (8 * byte)
                });
                at += bytes;
                value
            });
            // Reads the strings at addresses.
            let line = line.into_iter().map(|piece| match piece {
                PrintPiece::Text(text) => text,
                PrintPiece::TextAt(address) => self.text(by, lane, address),
            });
            let line = line.collect();
            self.grid.print(line);
        }
    }

    /// `__assertfail`: the assertion, its file and its line.
    pub(super) fn assertion(&mut self, by: &Executes<'_>, arguments: &[Source]) -> String {
        let lane = by.active.trailing_zeros() as usize & 31;
        let value = |at: usize| arguments.get(at).map_or(0, |source| by.row(*source)[lane]);
        let (what, file, line, function) = (value(0), value(1), value(2) as u32, value(3));
        let what = self.text(by, lane, what);
        let file = self.text(by, lane, file);
        let function = self.text(by, lane, function);
        format!("the assertion `{what}` fails, {file}:{line} in {function}")
    }
}
