//! What CuTe itself computes: recorded texts and offsets, `tests/cute.tsv`.
//!
//! Each line of the file was written by CuTe's own headers (`scripts/read-cute`): a text as CuTe
//! prints it or a compiler names it, and the values of the layout at the first 64 indices. The
//! offsets of swizzled tensors are addresses of elements in memory.

use tilewright_layout::AnyTree;
use tilewright_read::{Options, Reading, expression};

const FACTS: &str = include_str!("../cute.tsv");

/// The facts of a kind: text and values.
fn facts(kinds: &'static [&'static str]) -> impl Iterator<Item = (&'static str, String, &'static str)> {
    FACTS.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| {
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
    assert!(count >= 200, "{count}");
}
