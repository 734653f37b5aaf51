//! What CuTe itself computes: recorded texts and offsets, `tests/cute.tsv`.
//!
//! Each line of the file was written by CuTe's own headers (`scripts/read-cute`): a text as CuTe
//! prints it or a compiler names it, and the values of the layout at the first 64 indices. The
//! offsets of swizzled tensors are addresses of elements in memory.

use std::sync::LazyLock;

use tilewright_layout::AnyTree;
use tilewright_read::{Options, Reading, expression};

/// The recorded facts, or those of the file that `CUTE_FACTS` names.
fn recorded() -> &'static str {
    static FACTS: LazyLock<String> = LazyLock::new(|| match std::env::var("CUTE_FACTS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("../cute.tsv").to_owned(),
    });
    &FACTS
}

/// The facts of a kind: text and values.
fn facts(kinds: &'static [&'static str]) -> impl Iterator<Item = (&'static str, String, &'static str)> {
    recorded().lines().filter(|line| !line.starts_with('#')).filter_map(move |line| {
        let mut fields = line.split('\t');
        let (kind, text, values) = (fields.next()?, fields.next()?, fields.next()?);
        let kind = kinds.iter().find(|known| **known == kind)?;
        Some((*kind, text.replace("\\n", "\n").replace("\\t", "\t"), values))
    })
}

fn read(text: &str) -> Reading {
    expression(text, &Options::default()).unwrap_or_else(|refused| panic!("{text}\n{refused}"))
}

/// Where the layout sends an index, as CuTe prints it.
fn value(reading: &Reading, index: i64) -> String {
    let layout = reading.layout().unwrap_or_else(|| panic!("{reading} is no layout"));
    match layout.eval(index).unwrap() {
        AnyTree::Coordinate(coordinate) => coordinate.to_string(),
        other => other.to_string(),
    }
}

#[test]
fn offsets_are_those_that_cute_computes() {
    let mut count = 0;
    for (kind, text, values) in facts(&["print", "type", "pretty"]) {
        let reading = read(&text);
        for (index, expected) in values.split(',').enumerate() {
            assert_eq!(value(&reading, index as i64), expected, "{kind} {text}: {reading} at {index}");
        }
        count += 1;
    }
    assert!(count >= 180, "{count}");
}

#[test]
fn coordinates_are_those_that_cute_computes() {
    let mut count = 0;
    for (_, text, values) in facts(&["coordinates"]) {
        let reading = read(&text);
        assert_eq!(reading.unit, tilewright_read::Unit::Coordinates, "{text}");
        // An extent that C++ does not know is not known here.
        let known = reading.layout().unwrap().parameters().is_empty();
        for (index, expected) in values.split(';').enumerate().filter(|_| known) {
            assert_eq!(value(&reading, index as i64), expected, "{text}: {reading} at {index}");
        }
        count += 1;
    }
    assert!(count >= 10, "{count}");
}

/// A block is read with the layouts of its whole tile, which CuTe prints beside it.
#[test]
fn tiles_of_blocks_are_those_that_cute_computes() {
    let mut count = 0;
    for (kind, text, values) in facts(&["block", "block-type"]) {
        let reading = read(&text);
        let expected: Vec<Reading> = values.split(" ; ").map(read).collect();
        let names: &[&str] = match (reading.what, kind) {
            ("tiled product", "block") => &["tile A", "tile B", "tile C"],
            ("tiled product", _) => &["LayoutA_TV", "LayoutB_TV", "LayoutC_TV"],
            // Source and destination of these copies are as the tile is.
            _ => &["TiledLayout_TV", "TiledLayout_TV"],
        };
        assert_eq!(names.len(), expected.len(), "{text}");
        for (name, expected) in names.iter().zip(&expected) {
            let part =
                reading.parts.iter().find(|part| part.name == *name).unwrap_or_else(|| panic!("{name} of {text}"));
            let tilewright_notation::Value::Layout(layout) = &part.value else { panic!("{name} of {text}") };
            let expected = expected.layout().unwrap();
            let size = expected.size();
            assert_eq!(layout.size(), size, "{name} of {text}");
            for index in 0..expected.integer().unwrap().size() {
                assert_eq!(layout.eval(index).unwrap(), expected.eval(index).unwrap(), "{name} of {text} at {index}");
            }
        }
        count += 1;
    }
    assert!(count >= 16, "{count}");
}
