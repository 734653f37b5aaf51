//! Appends numbers to a text without the cost of formatting, because a picture has many thousands
//! of them.

/// Appends an integer.
pub(crate) fn push_integer(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_digits(out, value.unsigned_abs());
}

/// Appends a length, rounded to hundredths, without trailing zeros. NaN becomes 0.
pub(crate) fn push_length(out: &mut String, value: f64) {
    // The cast of a float truncates, and turns NaN into 0.
    let hundredths = (value.abs() * 100.0 + 0.5) as u64;
    if value < 0.0 && hundredths > 0 {
        out.push('-');
    }
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    push_digits(out, whole);
    if rest > 0 {
        out.push('.');
        match rest % 10 {
            0 => push_places::<1>(out, rest / 10),
            _ => push_places::<2>(out, rest),
        }
    }
}

/// The numbers below 1000, three digits each.
const BELOW_1000: [u8; 3000] = {
    let mut digits = [0; 3000];
    let mut number = 0;
    while number < 1000 {
        digits[3 * number] = b'0' + (number / 100) as u8;
        digits[3 * number + 1] = b'0' + (number / 10 % 10) as u8;
        digits[3 * number + 2] = b'0' + (number % 10) as u8;
        number += 1;
    }
    digits
};
static DIGITS: &str = match std::str::from_utf8(&BELOW_1000) {
    Ok(digits) => digits,
    Err(_) => "",
};

/// Appends the last `PLACES` digits of a number, at most three. The count is known at compile time,
/// so the copy is one move.
#[inline]
fn push_places<const PLACES: usize>(out: &mut String, value: u64) {
    let end = 3 * (value % 1000) as usize + 3;
    if let Some(digits) = DIGITS.get(end - PLACES..end) {
        out.push_str(digits);
    }
}

/// Appends a number. Most have three digits or fewer.
#[inline]
fn push_digits(out: &mut String, value: u64) {
    match value {
        0..10 => push_places::<1>(out, value),
        10..100 => push_places::<2>(out, value),
        100..1000 => push_places::<3>(out, value),
        _ => push_more_digits(out, value),
    }
}

/// As [`push_digits`], for more than three digits.
#[inline(never)]
fn push_more_digits(out: &mut String, value: u64) {
    push_digits(out, value / 1000);
    push_places::<3>(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_print_as_they_do_elsewhere() {
        for value in (-2000..2000).chain([i64::MIN, i64::MAX, 10_i64.pow(18)]) {
            let mut text = String::new();
            push_integer(&mut text, value);
            assert_eq!(text, value.to_string());
        }
    }

    #[test]
    fn lengths_are_rounded_to_hundredths() {
        for hundredths in -2500..2500 {
            let value = f64::from(hundredths) / 100.0;
            let mut text = String::new();
            push_length(&mut text, value + 0.001);
            assert_eq!(text.parse::<f64>().unwrap(), value);
            assert!(!text.contains('.') || !text.ends_with('0'), "{text}");
        }
        let mut text = String::new();
        push_length(&mut text, f64::NAN);
        assert_eq!(text, "0");
    }
}
