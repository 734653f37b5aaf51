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
    // A float becomes the nearest integer there is; no number becomes 0.
    let hundredths = (value * 100.0).round() as i64;
    if hundredths < 0 {
        out.push('-');
    }
    let hundredths = hundredths.unsigned_abs();
    push_digits(out, hundredths / 100);
    let rest = hundredths % 100;
    if rest > 0 {
        out.push('.');
        out.push(digit(rest / 10));
        if !rest.is_multiple_of(10) {
            out.push(digit(rest % 10));
        }
    }
}

fn digit(value: u64) -> char {
    char::from(b'0' + u8::try_from(value % 10).unwrap_or(0))
}

fn push_digits(out: &mut String, value: u64) {
    if value < 10 {
        out.push(digit(value));
        return;
    }
    // From the last digit to the first; 20 hold any.
    let mut digits = [b'0'; 20];
    let (mut rest, mut start) = (value, digits.len());
    for (place, slot) in digits.iter_mut().enumerate().rev() {
        if rest == 0 {
            break;
        }
        *slot = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        start = place;
    }
    out.extend(digits.iter().skip(start).map(|byte| char::from(*byte)));
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
