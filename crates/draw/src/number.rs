//! Numbers as text, without the cost of formatting: a picture has many thousands of them.

/// Appends an integer.
pub(crate) fn push_integer(out: &mut String, value: i64) {
    let mut digits = Digits::default();
    digits.number(value.unsigned_abs());
    if value < 0 {
        digits.byte(b'-');
    }
    digits.append(out);
}

/// Appends a length, rounded to hundredths, without zeros at the end. What is no number becomes 0.
pub(crate) fn push_length(out: &mut String, value: f64) {
    // A float becomes the nearest integer toward zero; no number becomes 0.
    let hundredths = (value.abs() * 100.0 + 0.5) as u64;
    let mut digits = Digits::default();
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    if rest > 0 {
        if !rest.is_multiple_of(10) {
            digits.number(rest % 10);
        }
        digits.number(rest / 10);
        digits.byte(b'.');
    }
    digits.number(whole);
    if value < 0.0 && hundredths > 0 {
        digits.byte(b'-');
    }
    digits.append(out);
}

/// A number as text, written from its end to its begin.
struct Digits {
    bytes: [u8; 26],
    start: usize,
}

impl Default for Digits {
    fn default() -> Digits {
        Digits { bytes: [b'0'; 26], start: 26 }
    }
}

impl Digits {
    fn byte(&mut self, byte: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(slot) = self.bytes.get_mut(self.start) {
            *slot = byte;
        }
    }

    fn number(&mut self, mut value: u64) {
        loop {
            self.byte(b'0' + (value % 10) as u8);
            value /= 10;
            if value == 0 {
                return;
            }
        }
    }

    fn append(&self, out: &mut String) {
        let text = self.bytes.get(self.start..).and_then(|bytes| std::str::from_utf8(bytes).ok());
        out.push_str(text.unwrap_or("0"));
    }
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
