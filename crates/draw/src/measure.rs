//! The width of a text.
//!
//! Widths are those of the embedded font ([`crate::theme`] names it first), so that measured text
//! fits in every format. A font of the reader's system may differ a little, and cells leave space
//! for that.

/// The advance of each printable ASCII character, in thousandths of the font size.
const ADVANCES: [u16; 95] = [
    281, 288, 466, 633, 642, 982, 644, 300, 365, 365, 501, 662, 288, 460, 288, 360, 648, 648, 648, 648, 648, 648, 648,
    648, 648, 648, 288, 302, 662, 662, 662, 511, 966, 690, 654, 730, 722, 601, 590, 746, 743, 269, 571, 672, 565, 903,
    753, 765, 639, 765, 644, 642, 646, 744, 690, 985, 682, 679, 629, 365, 360, 365, 471, 456, 323, 562, 612, 571, 612,
    583, 370, 613, 591, 242, 242, 549, 242, 876, 591, 600, 612, 612, 376, 528, 327, 591, 562, 818, 546, 562, 552, 426,
    333, 426, 662,
];

/// The largest advances of the Latin, Greek and Cyrillic letters from U+00A0 on, one for each
/// sixteen characters, in hundredths of the font size.
const LETTERS: [u8; 73] = [
    100, 99, 104, 81, 100, 69, 80, 80, 93, 74, 94, 112, 78, 106, 84, 100, 104, 81, 149, 81, 104, 149, 81, 80, 84, 104,
    82, 84, 100, 100, 88, 81, 116, 57, 50, 50, 63, 50, 0, 0, 0, 0, 0, 0, 0, 98, 97, 95, 89, 67, 84, 94, 105, 95, 110,
    117, 127, 95, 106, 95, 130, 134, 92, 117, 122, 106, 117, 117, 81, 99, 123, 123, 122,
];
/// The widths of characters from U+2010 on: punctuation, arrows, mathematics.
const SIGNS: [u8; 47] = [
    100, 92, 180, 100, 100, 0, 53, 53, 64, 145, 82, 105, 0, 0, 105, 116, 115, 122, 129, 84, 142, 160, 143, 125, 135,
    84, 84, 84, 135, 84, 84, 88, 94, 124, 125, 84, 102, 105, 84, 84, 139, 88, 100, 100, 143, 100, 111,
];

/// The assumed width of any other character.
const OTHER: u64 = 1050;

/// The largest factor by which a text with other letters is wider than the same text in the first
/// font.
const WIDER: f64 = 1.3;

/// The largest factor by which the bold weight is wider.
const STRONG: f64 = 1.05;

/// The width of a text at a font size, in the same unit.
///
/// ```
/// use tilewright_draw::text_width;
///
/// assert!(text_width("128", 10.0, false) > text_width("12", 10.0, false));
/// ```
pub fn text_width(text: &str, size: f64, strong: bool) -> f64 {
    let thousandths: u64 = text.chars().map(advance).sum();
    // Words with other letters are drawn in a wider font.
    let other = text.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    let width = thousandths as f64 * size / 1000.0 * if other { WIDER } else { 1.0 };
    if strong { width * STRONG } else { width }
}

/// The advance of a character, in thousandths of the font size: its own, or the largest of its
/// group.
fn advance(c: char) -> u64 {
    let code = u32::from(c);
    let ascii = usize::try_from(code).ok().and_then(|code| ADVANCES.get(code.checked_sub(32)?));
    let among = |table: &[u8], first: u32| {
        let row = usize::try_from(code.checked_sub(first)? / 16).ok()?;
        table.get(row).map(|width| u64::from(*width) * 10)
    };
    match (c, ascii) {
        (_, Some(width)) => u64::from(*width),
        // The group of this character contains the sign for ten thousandths, which is twice as
        // wide.
        ('…', None) => 920,
        _ => among(&LETTERS, 0xa0).or_else(|| among(&SIGNS, 0x2010)).unwrap_or(OTHER),
    }
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

/// The text in lines of at most a width, broken between words. A word that is longer than a line,
/// as a layout may be, is broken too: after a comma, colon or parenthesis if it has one, otherwise
/// anywhere.
pub(crate) fn wrapped(text: &str, size: f64, strong: bool, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if text_width(&longer, size, strong) <= width {
                line = longer;
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            let mut rest = word;
            while let Some((head, tail)) = broken(rest, size, strong, width) {
                lines.push(head.to_owned());
                rest = tail;
            }
            rest.clone_into(&mut line);
        }
        lines.push(line);
    }
    lines
}

/// A word that is longer than a width, split into the part that fits and the rest; None if it fits
/// or cannot be split.
fn broken(word: &str, size: f64, strong: bool, width: f64) -> Option<(&str, &str)> {
    let (mut taken, mut fits, mut after_mark) = (0.0, 0, 0);
    for (at, c) in word.char_indices() {
        let end = at + c.len_utf8();
        taken += text_width(word.get(at..end)?, size, strong);
        // Every line has at least one character.
        if taken > width && at > 0 {
            let cut = if after_mark > fits / 2 { after_mark } else { fits };
            return Some((word.get(..cut)?, word.get(cut..)?));
        }
        fits = end;
        if matches!(c, ',' | ':' | ')' | ';') {
            after_mark = end;
        }
    }
    None
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
        let lines = wrapped("one two three four five six", 10.0, false, 50.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| text_width(line, 10.0, false) <= 50.0));
        assert_eq!(lines.join(" "), "one two three four five six");
    }

    #[test]
    fn long_words_are_broken_and_nothing_is_lost() {
        let word = "((2,2),(2,4)):((1,4),(2,8))";
        for width in 1..300 {
            let lines = wrapped(word, 10.0, true, f64::from(width));
            assert_eq!(lines.concat(), word, "{width}");
            let fits = |line: &String| line.chars().count() == 1 || text_width(line, 10.0, true) <= f64::from(width);
            assert!(lines.iter().all(fits), "{width}: {lines:?}");
        }
        // A line begins at a mode or a stride.
        assert_eq!(wrapped(word, 10.0, false, 60.0), ["((2,2),(2,4)):", "((1,4),(2,8))"]);
    }

    #[cfg(feature = "png")]
    #[test]
    fn other_letters_are_no_wider_than_measured() {
        let fonts = crate::font::Fonts::new();
        let blocks = [0xa0..=0x52f, 0x2010..=0x22ff, 0x2500..=0x257f];
        for code in blocks.into_iter().flatten() {
            let Some(c) = char::from_u32(code).filter(|c| fonts.has(*c)) else { continue };
            for strong in [false, true] {
                let (_, drawn) = fonts.line(&c.to_string(), strong);
                let measured = text_width(&c.to_string(), 1.0, strong);
                assert!(drawn <= measured + 1e-9, "U+{code:04X} {c} {strong}: {drawn} > {measured}");
            }
        }
        for text in ["Größe der Kachel 128", "κόσμος 4×8", "Привет, мир: 64 → 32", "x ∈ ℝ, ∑ ≤ ∫", "naïve WWW mmm"]
        {
            for strong in [false, true] {
                assert!(fonts.line(text, strong).1 <= text_width(text, 1.0, strong), "{text} {strong}");
            }
        }
    }
}
