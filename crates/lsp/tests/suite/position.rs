//! Places against UTF-16 itself: a line as a list of units.

use tilewright_lsp::{Position, Span, Text};

use crate::Random;

/// The units of each line, by another way than the library's.
fn units(text: &str) -> Vec<Vec<u16>> {
    let unix = text.replace("\r\n", "\n").replace('\r', "\n");
    unix.split('\n').map(|line| line.encode_utf16().collect()).collect()
}

#[test]
fn every_character_has_its_place_and_every_place_its_character() {
    for text in ["", "a", "a\nb\n", "ä𝄞b\r\n\r\nx\ry𝄞", "\n\n\n", "# größer\n\ttab 𝒳𝒴"] {
        let own = Text::new(text.to_owned());
        let lines = units(text);
        assert_eq!(own.lines() as usize, lines.len(), "{text:?}");
        for (line, units) in lines.iter().enumerate() {
            assert_eq!(own.line_text(line as u32).encode_utf16().collect::<Vec<_>>(), *units, "{text:?}");
            let end = own.offset(Position { line: line as u32, character: 1000 });
            assert_eq!(own.position(end), Position { line: line as u32, character: units.len() as u32 });
        }
        for (at, _) in text.char_indices().filter(|(_, c)| !matches!(c, '\n' | '\r')) {
            assert_eq!(own.offset(own.position(at)), at, "{text:?} at {at}");
        }
        assert_eq!(own.offset(Position { line: 99, character: 0 }), text.len());
    }
}

#[test]
fn changes_are_those_of_a_list_of_lines() {
    let mut random = Random::new(7);
    let pieces = ["x", "𝄞", "\n", "tile", " = ", "ä", "\r\n", "(1,2)", ""];
    for _ in 0..300 {
        let mut text: String = (0..12).map(|_| pieces[random.below(pieces.len())]).collect();
        for _ in 0..4 {
            let boundaries: Vec<usize> = text
                .char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .filter(|at| !(text[..*at].ends_with('\r') && text[*at..].starts_with('\n')))
                .collect();
            let (a, b) = (boundaries[random.below(boundaries.len())], boundaries[random.below(boundaries.len())]);
            let (start, end) = (a.min(b), a.max(b));
            let with = pieces[random.below(pieces.len())];
            let own = Text::new(text.clone());
            let span = Span { start: own.position(start), end: own.position(end) };
            let wanted = format!("{}{with}{}", &text[..start], &text[end..]);
            assert_eq!(own.changed(span, with).as_str(), wanted, "{text:?} {start}..{end} {with:?}");
            text = wanted;
        }
    }
}
