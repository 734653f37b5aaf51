//! The facts in `conformance/`: expressions and the text of their values.
//!
//! Layouts are compared with the stride of every extent of 1 set to 0, for no coordinate can show that stride. An inverse
//! that differs from the text passes when its law holds at every index and it is no smaller.

use std::collections::HashMap;

use tilewright_layout::{Layout, Leaf, Tree};
use tilewright_notation::{Environment, Value, evaluate};

const FILES: [(&str, &str); 4] = [
    ("algebra.tsv", include_str!("conformance/algebra.tsv")),
    ("documents.tsv", include_str!("conformance/documents.tsv")),
    ("dialect-static.tsv", include_str!("conformance/dialect-static.tsv")),
    ("dialect-dynamic.tsv", include_str!("conformance/dialect-dynamic.tsv")),
];

fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let mut columns = line.split('\t');
        (columns.next().unwrap(), columns.next().unwrap_or_else(|| panic!("no value: {line}")))
    })
}

fn normal(layout: &Layout) -> Layout {
    let leaf = |leaf: &Leaf| Leaf { extent: leaf.extent, stride: if leaf.extent == 1 { 0 } else { leaf.stride } };
    Layout::from_tree(layout.tree().map(leaf)).unwrap()
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Layout(a), Value::Layout(b)) => normal(a) == normal(b),
        (Value::Composed(a), Value::Composed(b)) => {
            a.outer() == b.outer() && a.offset() == b.offset() && normal(a.inner()) == normal(b.inner())
        }
        // A number stands for a tree, and a shape for its layout only where the text has strides.
        (Value::Int(a), Value::Tree(b)) => Tree::from(*a) == *b,
        _ => a == b,
    }
}

/// Whether an inverse other than the expected one keeps its law and is no smaller.
fn inverse(expression: &str, actual: &Value, expected: &Value) -> bool {
    let (Value::Layout(actual), Value::Layout(expected)) = (actual, expected) else { return false };
    let Some((name, operand)) = expression.split_once('(') else { return false };
    let operand: Layout = match evaluate(operand.strip_suffix(')').unwrap(), &mut Environment::new()) {
        Ok(Value::Layout(layout)) => layout,
        _ => return false,
    };
    let at = |layout: &Layout, index: i64| layout.eval(&index).unwrap();
    let law = match name {
        "right_inverse" => (0..actual.size()).all(|i| at(&operand, at(actual, i)) == i),
        "left_inverse" => (0..operand.size()).all(|k| at(&operand, at(actual, at(&operand, k))) == at(&operand, k)),
        _ => return false,
    };
    law && actual.size() >= expected.size()
}

/// Checks a file; returns how many lines passed and how many were skipped.
fn check(name: &str, text: &str) -> (usize, usize) {
    let corrections: HashMap<&str, &str> = rows(include_str!("conformance/corrections.tsv")).collect();
    let (mut passed, mut skipped, mut failures) = (0, 0, Vec::new());
    for (expression, written) in rows(text) {
        if [expression, written].iter().any(|side| side.contains(['@', '?'])) {
            // Coordinate steps and numbers that are not known are refused as a whole, with the code that says so.
            if expression.contains(['@', '?']) {
                let error = evaluate(expression, &mut Environment::new()).unwrap_err();
                assert_eq!(error.code, "E0210", "{expression}: {}", error.render(expression, false));
            }
            skipped += 1;
            continue;
        }
        let written = corrections.get(expression).copied().unwrap_or(written);
        let actual = evaluate(expression, &mut Environment::new());
        let verdict = match (&actual, written) {
            (Err(error), "error") => {
                assert!(error.code.starts_with("E01"), "{expression}: {}", error.render(expression, false));
                Ok(())
            }
            (Ok(value), "error") => Err(format!("{value}, expected a refusal")),
            (Err(error), _) => Err(error.render(expression, false)),
            (Ok(value), _) => {
                let expected = evaluate(written, &mut Environment::new()).unwrap_or_else(|e| panic!("{written}: {e}"));
                if same(value, &expected) || inverse(expression, value, &expected) {
                    Ok(())
                } else {
                    Err(format!("{value}, expected {written}"))
                }
            }
        };
        match verdict {
            Ok(()) => passed += 1,
            Err(failure) => failures.push(format!("{expression}\n    = {failure}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{name}: {} of {} fail\n{}",
        failures.len(),
        passed + failures.len(),
        failures.join("\n")
    );
    (passed, skipped)
}

#[test]
fn every_fact_holds() {
    let counts: Vec<(&str, (usize, usize))> = FILES.iter().map(|(name, text)| (*name, check(name, text))).collect();
    assert_eq!(
        counts,
        [
            ("algebra.tsv", (2605, 0)),
            ("documents.tsv", (38, 0)),
            ("dialect-static.tsv", (154, 27)),
            ("dialect-dynamic.tsv", (0, 50)),
        ],
        "lines that pass and lines that need numbers this version does not have"
    );
}
