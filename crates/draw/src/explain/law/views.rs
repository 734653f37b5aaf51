//! Laws of operations whose results are not maps, or are another view of the same bits.

use tilewright_layout::{Layout, Tree};
use tilewright_notation::Value;

use super::Verdict;
use crate::explain::map::{self, Map};

/// The law of an operation that is checked here; `None` for every other operation.
pub fn of(operation: &str, arguments: &[Value], value: &Value) -> Option<Verdict> {
    match (operation, arguments, value) {
        ("make_layout_tv", [threads, values], Value::List(parts)) => {
            let [tile, Value::Layout(result)] = parts.as_slice() else { return None };
            Some(thread_values(&layout(threads)?, &layout(values)?, &tree(tile)?, result.integer()?))
        }
        // In method form the layout is the first argument.
        (
            "recast_layout",
            [Value::Int(new), Value::Int(old), a] | [a, Value::Int(new), Value::Int(old)],
            Value::Layout(result),
        ) => super::width::recast(*new, *old, &map::of_operand(a)?, &Map::new(result)?),
        ("mutual_refinement", [first, second], Value::Tree(result)) => {
            Some(refinement(&shape(first)?, &shape(second)?, result.integer()?))
        }
        _ => None,
    }
}

/// A layout, or the compact layout of a shape.
fn layout(value: &Value) -> Option<Layout> {
    match value {
        Value::Layout(layout) => layout.integer().cloned(),
        value => Layout::compact(&tree(value)?).ok(),
    }
}

fn tree(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Int(number) => Some(Tree::leaf(*number)),
        Value::Tree(tree) => tree.integer().cloned(),
        _ => None,
    }
}

/// The value as a shape, or the shape of the layout.
fn shape(value: &Value) -> Option<Tree<i64>> {
    if let Value::Layout(layout) = value { Some(layout.integer()?.shape()) } else { tree(value) }
}

/// The size of each mode; a layout without modes counts as one mode.
fn sizes(layout: &Layout) -> Vec<i64> {
    if layout.profile().is_leaf() { vec![layout.size()] } else { layout.modes().map(|mode| mode.size()).collect() }
}

/// The index in each mode.
fn digits(mut index: i64, sizes: &[i64]) -> Vec<i64> {
    let digit = |size: &i64| {
        let digit = index % size;
        index /= size;
        digit
    };
    sizes.iter().map(digit).collect()
}

/// Thread `T(t)` and value `V(v)` have the element at `v + |V| * t`, mode by mode.
fn thread_values(threads: &Layout, values: &Layout, tile: &Tree<i64>, result: &Layout) -> Verdict {
    let law = "R(T(t), V(v)) is the element v + |V| * t of the tile, mode by mode";
    let (mut outer, mut inner) = (sizes(threads), sizes(values));
    let rank = outer.len().max(inner.len());
    outer.resize(rank, 1);
    inner.resize(rank, 1);
    let extents: Vec<i64> = outer.iter().zip(&inner).map(|(t, v)| t * v).collect();
    let found: Vec<i64> = if tile.is_leaf() {
        tile.leaves().to_vec()
    } else {
        tile.modes().map(|m| m.leaves().iter().product()).collect()
    };
    let total = threads.size() * values.size();
    let fails = |failure: String| Verdict { law: law.into(), tested: 0, total, failure: Some(failure) };
    if found != extents {
        return fails(format!("the tile has the extents {found:?}, and threads and values make {extents:?}"));
    }
    let held = result.mode(0).map_or(1, |mode| mode.size());
    super::test(law, total, |index| {
        let (t, v) = (index / values.size(), index % values.size());
        let (thread, value) = (threads.eval(&t), values.eval(&v));
        let (Ok(thread), Ok(value)) = (thread, value) else { return Err("a number does not fit in 64 bits".into()) };
        let (place_t, place_v) = (digits(t, &outer), digits(v, &inner));
        let (mut expected, mut step) = (0, 1);
        for ((t, v), (size, extent)) in place_t.iter().zip(&place_v).zip(inner.iter().zip(&extents)) {
            expected += (v + size * t) * step;
            step *= extent;
        }
        let at = value.checked_mul(held).and_then(|value| value.checked_add(thread));
        match at.map(|at| result.eval(&at)) {
            Some(Ok(element)) if element == expected => Ok(()),
            Some(Ok(element)) => Err(format!("thread {thread}, value {value}: R = {element}, but it is {expected}")),
            _ => Err("a number does not fit in 64 bits".into()),
        }
    })
}

/// Whether each entry of the coarse tuple is the product of its part of the fine tuple.
fn refines(fine: &Tree<i64>, coarse: &Tree<i64>) -> bool {
    if coarse.is_leaf() {
        return fine.leaves().iter().product::<i64>() == coarse.leaves().first().copied().unwrap_or(1);
    }
    !fine.is_leaf()
        && fine.rank() == coarse.rank()
        && fine.modes().zip(coarse.modes()).all(|(fine, coarse)| refines(&fine, &coarse))
}

/// Both tuples are refined, and the leaves of the first are the first leaves of the second.
fn refinement(first: &Tree<i64>, second: &Tree<i64>, result: &Tree<i64>) -> Verdict {
    let law = "S' refines S, T' refines T, and the leaves of S' are the first leaves of T'";
    let failure = match (result.mode(0), result.mode(1)) {
        (Some(fine), _) if !refines(&fine, first) => Some(format!("{fine} does not refine {first}")),
        (_, Some(fine)) if !refines(&fine, second) => Some(format!("{fine} does not refine {second}")),
        (Some(left), Some(right)) if !right.leaves().starts_with(left.leaves()) => {
            Some(format!("the leaves of {left} are not the first ones of {right}"))
        }
        (Some(_), Some(_)) => None,
        _ => Some("the result is not a pair of tuples".to_owned()),
    };
    Verdict { law: law.into(), tested: 1, total: 1, failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        tilewright_notation::evaluate(text, &mut tilewright_notation::Environment::new()).unwrap()
    }

    /// Each law must accept the result of the operation and refuse a wrong one.
    #[test]
    fn laws_can_fail() {
        let cases: [(&str, &[&str], &str); 6] = [
            ("make_layout_tv", &["(4,8):(8,1)", "(2,2):(2,1)"], "((8,16),((8,4),(2,2)):((16,2),(8,2)))"),
            ("make_layout_tv", &["(4,8):(8,1)", "(2,2):(2,1)"], "((8,32),((8,4),(2,2)):((16,2),(8,1)))"),
            ("make_layout_tv", &["8", "(2,4)"], "((16,4),(8,8):(2,2))"),
            ("mutual_refinement", &["(6,6)", "(12,3,6)"], "((6,(2,3)),((6,2),2,6))"),
            ("mutual_refinement", &["(6,6)", "(12,3,6)"], "((6,(3,2)),((6,2),3,6))"),
            ("mutual_refinement", &["6", "12"], "(6,(3,4))"),
        ];
        for (operation, arguments, wrong) in cases {
            let right = value(&format!("{operation}({})", arguments.join(", ")));
            let arguments: Vec<Value> = arguments.iter().map(|text| value(text)).collect();
            let held = of(operation, &arguments, &right).unwrap();
            assert!(held.failure.is_none() && held.tested > 0, "{operation} = {right}: {:?}", held.failure);
            let failed = of(operation, &arguments, &value(wrong)).unwrap();
            assert!(failed.failure.is_some(), "{operation} = {wrong} passes");
        }
    }
}
