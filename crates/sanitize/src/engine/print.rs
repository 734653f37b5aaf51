//! `printf` on the device.

/// A piece of a line.
pub(super) enum PrintPiece {
    Text(String),
    /// A text at an address.
    TextAt(u64),
}

/// Formats; `next` gives the next argument, of so many bytes.
pub(super) fn format(text: &str, mut next: impl FnMut(u64) -> u64) -> Vec<PrintPiece> {
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

/// As C writes an exponent: a sign and two digits.
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

/// The shorter of both forms.
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
