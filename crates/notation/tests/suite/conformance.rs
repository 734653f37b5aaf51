//! The facts in `conformance/`: expressions and the text of their values.
//!
//! Layouts are compared with the stride of every extent of 1 set to 0, for no coordinate can show
//! that stride. A `?` in the expected text stands for any number that is not known. An inverse that
//! differs from the text passes when its law holds at every index and it is no smaller.

use std::collections::HashMap;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyLayout, AnyTree, Coordinate, Extent, Layout, OuterMap, Stride, Tree, coordinates};
use tilewright_notation::{Environment, Value, evaluate};

const FILES: [(&str, &str); 4] = [
    ("algebra.tsv", include_str!("../conformance/algebra.tsv")),
    ("documents.tsv", include_str!("../conformance/documents.tsv")),
    ("dialect-static.tsv", include_str!("../conformance/dialect-static.tsv")),
    ("dialect-dynamic.tsv", include_str!("../conformance/dialect-dynamic.tsv")),
];

fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let mut columns = line.split('\t');
        (columns.next().unwrap(), columns.next().unwrap_or_else(|| panic!("no value: {line}")))
    })
}

type Step = Coordinate<Expr>;

/// A number or a tuple as a tree of steps, of which a plain number is one.
fn tree(value: &Value) -> Option<Tree<Step>> {
    let plain = |tree: &Tree<Expr>| tree.map(|number| Step::integer(number.clone()));
    match value {
        Value::Int(number) => Some(Tree::leaf(Step::integer(Expr::from(*number)))),
        Value::Tree(AnyTree::Integer(tree)) => Some(tree.map(|number| Step::integer(Expr::from(*number)))),
        Value::Tree(AnyTree::Launch(tree)) => Some(plain(tree)),
        Value::Tree(AnyTree::Coordinate(tree)) => Some((**tree).clone()),
        _ => None,
    }
}

/// The shape and the strides of a layout.
fn layout(value: &Value) -> Option<(Tree<Step>, Tree<Step>)> {
    let of = |value: Value| tree(&value);
    match value {
        Value::Layout(AnyLayout::Integer(layout)) => Some((of(layout.shape().into())?, of(layout.stride().into())?)),
        Value::Layout(AnyLayout::Launch(layout)) => Some((of(layout.shape().into())?, of(layout.stride().into())?)),
        Value::Layout(AnyLayout::Coordinate(layout)) => Some((of(layout.shape().into())?, layout.stride())),
        _ => None,
    }
}

/// Whether one step is another, or both are steps along the same paths by numbers that are not
/// known.
fn like(actual: &Step, expected: &Step) -> bool {
    let unknown = |scale: &Expr| scale.known().is_none();
    let paths = |step: &Step| step.terms().map(|(path, _)| path).collect::<Vec<_>>();
    actual == expected
        || paths(actual) == paths(expected)
            && actual.terms().zip(expected.terms()).all(|((_, a), (_, e))| a == e || unknown(a) && unknown(e))
}

fn trees_alike(actual: &Tree<Step>, expected: &Tree<Step>) -> bool {
    actual.congruent(expected) && actual.leaves().iter().zip(expected.leaves()).all(|(a, e)| like(a, e))
}

fn layouts_alike(actual: &(Tree<Step>, Tree<Step>), expected: &(Tree<Step>, Tree<Step>)) -> bool {
    let one = Step::integer(Expr::from(1));
    let normal = |(shape, stride): &(Tree<Step>, Tree<Step>)| {
        let leaves = shape.leaves().iter().zip(stride.leaves());
        let strides = leaves.map(|(extent, stride)| if *extent == one { Step::zero() } else { stride.clone() });
        Tree::new(shape.profile().clone(), strides).unwrap()
    };
    trees_alike(&actual.0, &expected.0) && trees_alike(&normal(actual), &normal(expected))
}

fn maps_alike(actual: &OuterMap<Expr>, expected: &OuterMap<Expr>) -> bool {
    match (actual, expected) {
        (OuterMap::Layout(a), OuterMap::Layout(e)) => same(&a.clone().into(), &e.clone().into()),
        _ => actual == expected,
    }
}

fn same(a: &Value, e: &Value) -> bool {
    if let (Some(a), Some(e)) = (layout(a), layout(e)) {
        return layouts_alike(&a, &e);
    }
    if let (Some(a), Some(e)) = (tree(a), tree(e)) {
        // A number stands for a tree, and a shape for its layout only where the text has strides.
        return trees_alike(&a, &e) || a.leaves() == e.leaves() && matches!((a.leaves(), e.leaves()), ([_], [_]));
    }
    match (a, e) {
        (Value::Layout(AnyLayout::Composed(a)), Value::Layout(AnyLayout::Composed(e))) => {
            a.outer() == e.outer()
                && a.offset() == e.offset()
                && same(&a.inner().clone().into(), &e.inner().clone().into())
        }
        (Value::Layout(AnyLayout::LaunchComposed(a)), Value::Layout(AnyLayout::LaunchComposed(e))) => {
            maps_alike(a.outer(), e.outer())
                && like(&Step::integer(a.offset().clone()), &Step::integer(e.offset().clone()))
                && same(&a.inner().clone().into(), &e.inner().clone().into())
        }
        _ => a == e,
    }
}

/// Whether an inverse other than the expected one keeps its law and is no smaller.
fn inverse(expression: &str, actual: &Value, expected: &Value) -> bool {
    let (Value::Layout(AnyLayout::Integer(actual)), Value::Layout(AnyLayout::Integer(expected))) = (actual, expected)
    else {
        return false;
    };
    let Some((name, operand)) = expression.split_once('(') else { return false };
    let operand = evaluate(operand.strip_suffix(')').unwrap(), &mut Environment::new()).unwrap();
    let at = |layout: &Layout, index: i64| layout.eval(&index).unwrap();
    let law = match (name, &operand) {
        ("right_inverse", Value::Layout(AnyLayout::Integer(operand))) => {
            (0..actual.size()).all(|i| at(operand, at(actual, i)) == i)
        }
        ("left_inverse", Value::Layout(AnyLayout::Integer(operand))) => {
            (0..operand.size()).all(|k| at(operand, at(actual, at(operand, k))) == at(operand, k))
        }
        ("right_inverse", Value::Layout(AnyLayout::Coordinate(operand))) => {
            let codomain = operand.coprofile().unwrap();
            coordinates(&actual.shape()).unwrap().all(|c| {
                let index = actual.eval_at(&c).unwrap();
                let value = operand.eval(&Expr::from(index)).unwrap().in_profile(&codomain);
                value.is_ok_and(|value| {
                    value == c.map(|k| Expr::from(*k)) || flat(&value) == flat(&c.map(|k| Expr::from(*k)))
                })
            })
        }
        ("left_inverse", Value::Layout(AnyLayout::Coordinate(operand))) => {
            let codomain = operand.coprofile().unwrap();
            let size = operand.size().known().unwrap();
            let value = |k: i64| operand.eval(&Expr::from(k)).unwrap();
            (0..size).all(|k| {
                let coordinate = value(k).in_profile(&codomain).unwrap().map(|n| n.known().unwrap());
                value(actual.eval_at(&coordinate).unwrap()) == value(k)
            })
        }
        _ => return false,
    };
    law && actual.size() >= expected.size()
}

/// A coordinate without the zeros at its end.
fn flat(coordinate: &Tree<Expr>) -> Vec<Expr> {
    let mut leaves = coordinate.leaves().to_vec();
    while leaves.last().is_some_and(|last| *last == Expr::from(0)) {
        leaves.pop();
    }
    leaves
}

/// Checks a file; returns how many lines there are.
fn check(name: &str, text: &str) -> usize {
    let corrections: HashMap<&str, &str> = rows(include_str!("../conformance/corrections.tsv")).collect();
    let (mut passed, mut failures) = (0, Vec::new());
    for (expression, written) in rows(text) {
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
    passed
}

#[test]
fn every_fact_holds() {
    let counts = FILES.map(|(name, text)| (name, check(name, text)));
    assert_eq!(
        counts,
        [("algebra.tsv", 2605), ("documents.tsv", 38), ("dialect-static.tsv", 181), ("dialect-dynamic.tsv", 50)]
    );
}
