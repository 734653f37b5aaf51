//! How wide a text is.
//!
//! Widths are those of the embedded font ([`crate::theme`] names it first), so that what is measured here fits in every format; a reader's
//! own font may differ a little, and cells leave room for that.

/// The advance of each printable ASCII character, in thousandths of the size.
const ADVANCES: [u16; 95] = [
    281, 288, 466, 633, 642, 982, 644, 300, 365, 365, 501, 662, 288, 460, 288, 360, 648, 648, 648, 648, 648, 648, 648,
    648, 648, 648, 288, 302, 662, 662, 662, 511, 966, 690, 654, 730, 722, 601, 590, 746, 743, 269, 571, 672, 565, 903,
    753, 765, 639, 765, 644, 642, 646, 744, 690, 985, 682, 679, 629, 365, 360, 365, 471, 456, 323, 562, 612, 571, 612,
    583, 370, 613, 591, 242, 242, 549, 242, 876, 591, 600, 612, 612, 376, 528, 327, 591, 562, 818, 546, 562, 552, 426,
    333, 426, 662,
];

/// What any other character is taken to need.
const OTHER: u16 = 800;

/// How much wider the heavier weight is, at most.
const STRONG: f64 = 1.05;

/// The width of a text of a size, in the same unit.
///
/// ```
/// use tilewright_draw::text_width;
///
/// assert!(text_width("128", 10.0, false) > text_width("12", 10.0, false));
/// ```
pub fn text_width(text: &str, size: f64, strong: bool) -> f64 {
    let advance = |c: char| {
        let place = usize::try_from(u32::from(c)).ok().and_then(|code| code.checked_sub(32));
        u64::from(place.and_then(|place| ADVANCES.get(place)).copied().unwrap_or(OTHER))
    };
    let thousandths: u64 = text.chars().map(advance).sum();
    let width = thousandths as f64 * size / 1000.0;
    if strong { width * STRONG } else { width }
}

/// The text, shortened with `…` to fit a width.
pub(crate) fn fitted(text: &str, size: f64, strong: bool, width: f64) -> String {
    if text_width(text, size, strong) <= width {
        return text.to_owned();
    }
    let room = width - text_width("…", size, strong);
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if text_width(&short, size, strong) > room {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// The text in lines of at most a width, broken between words.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if text_width(&longer, size, false) > width && !line.is_empty() {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer;
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advances of a font of the fonts folder.
    fn advances(font: &[u8]) -> Vec<f64> {
        let face = ttf_parser::Face::parse(font, 0).unwrap();
        let unit = f64::from(face.units_per_em());
        let advance = |c| f64::from(face.glyph_hor_advance(face.glyph_index(c).unwrap()).unwrap());
        (' '..='~').map(|c| advance(c) * 1000.0 / unit).collect()
    }

    #[test]
    fn widths_are_those_of_the_font() {
        let regular = advances(include_bytes!("fonts/Inter-Regular.ttf"));
        let strong = advances(include_bytes!("fonts/Inter-SemiBold.ttf"));
        for ((known, regular), _) in ADVANCES.iter().zip(&regular).zip(&strong) {
            assert!((f64::from(*known) - regular).abs() <= 0.5);
        }
        for text in ["((2,2),(2,4)):((1,4),(2,8))", "T31", "before", "Swizzle<3,4,3>"] {
            let width: f64 = text.bytes().map(|b| strong.get(usize::from(b - 32)).unwrap()).sum();
            assert!(width / 1000.0 <= text_width(text, 1.0, true), "{text}");
        }
        // One width for all figures keeps columns of numbers straight.
        assert!(regular[16..26].iter().all(|width| width == &regular[16]));
    }

    #[test]
    fn what_is_fitted_fits() {
        for width in 5..200 {
            let short = fitted("((2,2),(2,4)):((1,4),(2,8))", 10.0, false, f64::from(width));
            assert!(width < 10 || text_width(&short, 10.0, false) <= f64::from(width), "{short}");
        }
        let lines = wrapped("one two three four five six", 10.0, 50.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| text_width(line, 10.0, false) <= 50.0));
        assert_eq!(lines.join(" "), "one two three four five six");
    }
}
