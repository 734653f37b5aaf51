//! Numbers as text, without the cost of formatting: a picture has many thousands of them.

/// Appends an integer.
pub(crate) fn push_integer(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_digits(out, value.unsigned_abs());
}

/// Appends a length, rounded to hundredths, without zeros at the end. What is no number becomes 0.
pub(crate) fn push_length(out: &mut String, value: f64) {
    // A float becomes the nearest integer toward zero; no number becomes 0.
    let hundredths = (value.abs() * 100.0 + 0.5) as u64;
    if value < 0.0 && hundredths > 0 {
        out.push('-');
    }
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    push_digits(out, whole);
    if rest > 0 {
        out.push('.');
        push_digit(out, rest / 10);
        if !rest.is_multiple_of(10) {
            push_digit(out, rest % 10);
        }
    }
}

/// Appends the last digit of a number.
#[inline]
fn push_digit(out: &mut String, value: u64) {
    out.push(char::from(b'0' + (value % 10) as u8));
}

/// Appends a number. Most have three digits or fewer.
#[inline]
fn push_digits(out: &mut String, value: u64) {
    match value {
        0..10 => push_digit(out, value),
        10..100 => {
            push_digit(out, value / 10);
            push_digit(out, value);
        }
        100..1000 => {
            push_digit(out, value / 100);
            push_digit(out, value / 10);
            push_digit(out, value);
        }
        _ => {
            push_digits_of(out, value / 1000);
            for place in [100, 10, 1] {
                push_digit(out, value / place);
            }
        }
    }
}

/// As [`push_digits`], for what lies before the last three digits.
#[inline(never)]
fn push_digits_of(out: &mut String, value: u64) {
    push_digits(out, value);
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
