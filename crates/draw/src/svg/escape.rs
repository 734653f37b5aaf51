//! Text inside XML.
//!
//! Law: an XML reader gets the original text, with two exceptions. Characters that XML does not
//! allow are left out, and tabs and line ends become spaces.

use crate::scene::{Scene, Span};

/// The number of bytes that are tested together.
const RUN: usize = 64;

/// 1 if a byte may be part of a character that must be escaped or left out.
fn special(byte: u8) -> u8 {
    // Beyond ASCII, control characters begin with the byte C2, and the two noncharacters with EF.
    let any =
        [byte < 32, byte == 127, byte == b'&', byte == b'<', byte == b'>', byte == b'"', byte == 0xc2, byte == 0xef];
    any.into_iter().fold(0, |found, one| found | u8::from(one))
}

/// Appends text as the content of an element or attribute.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' => {}
            c => out.push(c),
        }
    }
}

/// The texts of a scene, and which runs of their bytes need no escaping. Nearly all need none, and
/// testing each text separately would cost more than writing it.
pub(super) struct Texts<'a> {
    scene: &'a Scene,
    plain: Vec<bool>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(scene: &'a Scene) -> Texts<'a> {
        // Without an early exit, the compiler can test the bytes of a run in parallel.
        let plain = |run: &[u8]| run.iter().fold(0, |found, byte| found | special(*byte)) == 0;
        Texts { scene, plain: scene.all_text().as_bytes().chunks(RUN).map(plain).collect() }
    }

    /// Appends the text of a span.
    pub(super) fn push(&self, out: &mut String, span: Span) {
        let text = self.scene.text_of(span);
        let range = span.range();
        let runs = range.start / RUN..range.end.div_ceil(RUN);
        if self.plain.get(runs).is_some_and(|runs| runs.iter().all(|plain| *plain)) {
            out.push_str(text);
        } else {
            push_escaped(out, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_the_text_or_stands_for_it() {
        for code in 0..0x1_1000 {
            let Some(c) = char::from_u32(code) else { continue };
            let mut scene = Scene::new();
            let span = scene.span(&format!("a{c}b"));
            let mut written = String::new();
            Texts::of(&scene).push(&mut written, span);
            let mut expected = String::new();
            push_escaped(&mut expected, &format!("a{c}b"));
            assert_eq!(written, expected, "{code:x}");
        }
    }
}
