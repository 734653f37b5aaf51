//! Questions about a value, and functions that move its modes.

use std::ops::Range;

use tilewright_layout::{Composed, Layout, LayoutError, Tiler, Tree};

use super::{Function, MANY};
use crate::arguments::{Arguments, Fault};
use crate::value::{Value, number_tree};

const QUESTIONS: &str = "Size and structure";
const MODES: &str = "Modes";

/// What the mode numbers from argument `first` on lead to.
fn descend(a: &Arguments<'_>, first: usize) -> Result<Value, Fault> {
    let path = a.modes(first)?;
    let mut value = match a.get(0) {
        Some(map @ (Value::Layout(_) | Value::Composed(_) | Value::Tiler(_))) => map.clone(),
        Some(Value::List(values)) => Value::List(values.clone()),
        Some(other) => match number_tree(other) {
            Some(tree) => Value::from(tree),
            None => return a.kind(0, "a layout or a tuple"),
        },
        None => return a.kind(0, "a layout or a tuple"),
    };
    for (position, mode) in path.into_iter().enumerate() {
        let (inner, rank) = match &value {
            Value::Layout(layout) => (layout.mode(mode).map(Value::Layout), layout.rank()),
            Value::Composed(composed) => (composed.mode(mode).map(Value::Composed), composed.rank()),
            Value::Tree(tree) => (tree.mode(mode).map(Value::from), tree.rank()),
            Value::List(values) => (values.get(mode).cloned(), values.len()),
            Value::Tiler(Tiler::Modes(modes)) => {
                (modes.items().get(mode).cloned().map(Value::from), modes.items().len())
            }
            other => ((mode == 0).then(|| other.clone()), 1),
        };
        let Some(inner) = inner else {
            let error = LayoutError::NoSuchMode { op: a.function, mode, rank };
            return Err(Fault::At(if a.len() == first + 1 { first } else { first + position }, error));
        };
        value = inner;
    }
    Ok(value)
}

/// `a[k]` and `get(a, k)`.
pub(crate) fn get(a: Arguments<'_>) -> Result<Value, Fault> {
    descend(&a, 1)
}

/// A function of the shape of what the path leads to.
fn of_tree<T>(
    a: &Arguments<'_>,
    of_layout: impl Fn(&Layout) -> Result<T, LayoutError>,
    of_composed: impl Fn(&Composed) -> Result<T, LayoutError>,
    of_tree: impl Fn(&Tree<i64>) -> Result<T, LayoutError>,
) -> Result<T, Fault> {
    match descend(a, 1)? {
        Value::Layout(layout) => Ok(of_layout(&layout)?),
        Value::Composed(composed) => Ok(of_composed(&composed)?),
        other => match number_tree(&other) {
            Some(tree) => Ok(of_tree(&tree)?),
            None => a.kind(0, "a layout or a tuple"),
        },
    }
}

fn number(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Applies one of two functions of the same name, to a layout or to a tuple; to a composed layout where it has one too.
pub(super) fn either(
    a: &Arguments<'_>,
    of_layout: impl Fn(&Layout) -> Result<Layout, LayoutError>,
    of_tree: impl Fn(&Tree<i64>) -> Result<Tree<i64>, LayoutError>,
) -> Result<Value, Fault> {
    match a.get(0) {
        Some(Value::Layout(layout)) => Ok(of_layout(layout)?.into()),
        Some(other) => match number_tree(other) {
            Some(tree) => Ok(of_tree(&tree)?.into()),
            None => a.kind(0, "a layout or a tuple"),
        },
        None => a.kind(0, "a layout or a tuple"),
    }
}

/// Applies one of two functions of a value and a mode of the same kind.
fn either_with(
    a: &Arguments<'_>,
    argument: usize,
    of_layout: impl Fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
    of_tree: impl Fn(&Tree<i64>, &Tree<i64>) -> Result<Tree<i64>, LayoutError>,
) -> Result<Value, Fault> {
    match a.get(0).and_then(number_tree) {
        Some(tree) => Ok(of_tree(&tree, &a.tree(argument)?)?.into()),
        None => Ok(of_layout(&*a.layout(0)?, &*a.layout(argument)?)?.into()),
    }
}

/// Applies an operation on a range of modes, given as its begin and its end, to whatever has modes.
fn by_range(
    a: &Arguments<'_>,
    of_composed: impl Fn(&Composed, Range<usize>) -> Result<Composed, LayoutError>,
    of_layout: impl Fn(&Layout, Range<usize>) -> Result<Layout, LayoutError>,
    of_tree: impl Fn(&Tree<i64>, Range<usize>) -> Result<Tree<i64>, LayoutError>,
) -> Result<Value, Fault> {
    let range = a.mode(1)?..a.mode(2)?;
    if let Some(Value::Composed(map)) = a.get(0) {
        return Ok(of_composed(map, range)?.into());
    }
    either(a, |layout| of_layout(layout, range.clone()), |tree| of_tree(tree, range.clone()))
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "size",
        signature: "size(A, mode...)",
        summary: "the number of coordinates: the product of the extents",
        example: "size((4,8):(8,1))",
        result: "32",
        section: QUESTIONS,
        least: 1,
        most: MANY,
        run: |a| Ok(of_tree(&a, |layout| Ok(layout.size()), |map| Ok(map.size()), Tree::product)?.into()),
    },
    Function {
        name: "cosize",
        signature: "cosize(A, mode...)",
        summary: "the largest offset plus one",
        example: "cosize((2,3):(1,4))",
        result: "10",
        section: QUESTIONS,
        least: 1,
        most: MANY,
        run: |a| Ok(of_tree(&a, |layout| layout.cosize(), |map| map.cosize(), Tree::product)?.into()),
    },
    Function {
        name: "rank",
        signature: "rank(A, mode...)",
        summary: "the number of modes at the top level",
        example: "rank((4,(2,3)):(1,(4,8)))",
        result: "2",
        section: QUESTIONS,
        least: 1,
        most: MANY,
        run: |a| match descend(&a, 1)? {
            Value::List(values) => Ok(number(values.len())),
            Value::Tiler(Tiler::Modes(modes)) => Ok(number(modes.items().len())),
            _ => Ok(number(of_tree(&a, |layout| Ok(layout.rank()), |map| Ok(map.rank()), |tree| Ok(tree.rank()))?)),
        },
    },
    Function {
        name: "depth",
        signature: "depth(A, mode...)",
        summary: "how deeply the modes nest: 0 for one mode alone",
        example: "depth((4,(2,3)):(1,(4,8)))",
        result: "2",
        section: QUESTIONS,
        least: 1,
        most: MANY,
        run: |a| Ok(number(of_tree(&a, |layout| Ok(layout.depth()), |map| Ok(map.depth()), |tree| Ok(tree.depth()))?)),
    },
    Function {
        name: "shape",
        signature: "shape(A, mode...)",
        summary: "the extents",
        example: "shape((4,(2,3)):(1,(4,8)))",
        result: "(4,(2,3))",
        section: QUESTIONS,
        least: 1,
        most: MANY,
        run: |a| Ok(of_tree(&a, |layout| Ok(layout.shape()), |map| Ok(map.shape()), |tree| Ok(tree.clone()))?.into()),
    },
    Function {
        name: "stride",
        signature: "stride(A, mode...)",
        summary: "the strides",
        example: "stride((4,(2,3)):(1,(4,8)))",
        result: "(1,(4,8))",
        section: QUESTIONS,
        least: 1,
        most: MANY,
        run: |a| {
            if let Some(Value::Composed(_)) = a.get(0) {
                return a.kind(0, "a layout or a shape; a composed layout has no strides");
            }
            let strides = |tree: &Tree<i64>| Ok(Layout::compact(tree)?.stride());
            Ok(of_tree(&a, |layout| Ok(layout.stride()), |map| Ok(map.inner().stride()), strides)?.into())
        },
    },
    Function {
        name: "get",
        signature: "get(A, mode...)",
        summary: "the mode with this number, and so on inwards; A[k] is get(A, k)",
        example: "get((4,(2,3)):(1,(4,8)), 1, 0)",
        result: "2:4",
        section: MODES,
        least: 1,
        most: MANY,
        run: get,
    },
    Function {
        name: "flatten",
        signature: "flatten(A)",
        summary: "the same leaves in one flat tuple",
        example: "flatten((4,(2,3)):(1,(4,8)))",
        result: "(4,2,3):(1,4,8)",
        section: MODES,
        least: 1,
        most: 1,
        run: |a| {
            if let Some(Value::Composed(map)) = a.get(0) {
                return Ok(map.flatten()?.into());
            }
            either(&a, |layout| layout.flatten(), |tree| tree.flatten())
        },
    },
    Function {
        name: "unflatten",
        signature: "unflatten(A, profile)",
        summary: "the same leaves in the nesting of the second argument",
        example: "unflatten((4,2,3):(1,4,8), (1,(1,1)))",
        result: "(4,(2,3)):(1,(4,8))",
        section: MODES,
        least: 2,
        most: 2,
        run: |a| {
            let profile = a.shape(1)?;
            either(&a, |layout| layout.unflatten(profile.profile()), |tree| tree.unflatten(profile.profile()))
        },
    },
    Function {
        name: "group",
        signature: "group(A, begin, end)",
        summary: "modes begin up to end, end not included, as one mode",
        example: "group((2,3,5):(1,2,6), 0, 2)",
        result: "((2,3),5):((1,2),6)",
        section: MODES,
        least: 3,
        most: 3,
        run: |a| by_range(&a, Composed::group, Layout::group, Tree::group),
    },
    Function {
        name: "take",
        signature: "take(A, begin, end)",
        summary: "modes begin up to end, end not included",
        example: "take((2,3,5):(1,2,6), 1, 3)",
        result: "(3,5):(2,6)",
        section: MODES,
        least: 3,
        most: 3,
        run: |a| by_range(&a, Composed::take, Layout::take, Tree::take),
    },
    Function {
        name: "select",
        signature: "select(A, mode...)",
        summary: "the modes with these numbers, in this order",
        example: "select((2,3,5):(1,2,6), 2, 0)",
        result: "(5,2):(6,1)",
        section: MODES,
        least: 1,
        most: MANY,
        run: |a| {
            let modes = a.modes(1)?;
            if let Some(Value::Composed(map)) = a.get(0) {
                return Ok(map.select(&modes)?.into());
            }
            either(&a, |layout| layout.select(&modes), |tree| tree.select(&modes))
        },
    },
    Function {
        name: "append",
        signature: "append(A, B)",
        summary: "the modes of A, then B as one mode",
        example: "append((2,3):(1,2), 5:6)",
        result: "(2,3,5):(1,2,6)",
        section: MODES,
        least: 2,
        most: 2,
        run: |a| {
            if let Some(Value::Composed(map)) = a.get(0) {
                return Ok(map.append(&*a.layout(1)?)?.into());
            }
            either_with(&a, 1, |layout, mode| layout.append(mode), |tree, mode| tree.append(mode))
        },
    },
    Function {
        name: "prepend",
        signature: "prepend(A, B)",
        summary: "B as one mode, then the modes of A",
        example: "prepend((2,3):(1,2), 5:6)",
        result: "(5,2,3):(6,1,2)",
        section: MODES,
        least: 2,
        most: 2,
        run: |a| either_with(&a, 1, |layout, mode| layout.prepend(mode), |tree, mode| tree.prepend(mode)),
    },
    Function {
        name: "append_to_rank",
        signature: "append_to_rank(A, rank, filler = 1:0)",
        summary: "A with the filler appended until it has this many modes",
        example: "append_to_rank((2,3):(1,2), 3)",
        result: "(2,3,1):(1,2,0)",
        section: MODES,
        least: 2,
        most: 3,
        run: |a| pad(&a, |l, rank, by| l.append_to_rank(rank, by), |t, rank, by| t.append_to_rank(rank, by)),
    },
    Function {
        name: "prepend_to_rank",
        signature: "prepend_to_rank(A, rank, filler = 1:0)",
        summary: "A with the filler put before it until it has this many modes",
        example: "prepend_to_rank((2,3):(1,2), 3)",
        result: "(1,2,3):(0,1,2)",
        section: MODES,
        least: 2,
        most: 3,
        run: |a| pad(&a, |l, rank, by| l.prepend_to_rank(rank, by), |t, rank, by| t.prepend_to_rank(rank, by)),
    },
    Function {
        name: "replace",
        signature: "replace(A, mode, B)",
        summary: "A with this mode replaced by B",
        example: "replace((2,3):(1,2), 1, 5:6)",
        result: "(2,5):(1,6)",
        section: MODES,
        least: 3,
        most: 3,
        run: |a| {
            let mode = a.mode(1)?;
            either_with(&a, 2, |layout, by| layout.replace(mode, by), |tree, by| tree.replace(mode, by))
        },
    },
    Function {
        name: "remove",
        signature: "remove(A, mode)",
        summary: "A without this mode",
        example: "remove((2,3,5):(1,2,6), 1)",
        result: "(2,5):(1,6)",
        section: MODES,
        least: 2,
        most: 2,
        run: |a| {
            let mode = a.mode(1)?;
            either(&a, |layout| layout.remove(mode), |tree| tree.remove(mode))
        },
    },
    Function {
        name: "reverse",
        signature: "reverse(A)",
        summary: "the modes in reverse order, at every level",
        example: "reverse((4,(2,3)):(1,(4,8)))",
        result: "((3,2),4):((8,4),1)",
        section: MODES,
        least: 1,
        most: 1,
        run: |a| either(&a, |layout| layout.reverse(), |tree| tree.reverse()),
    },
    Function {
        name: "zip",
        signature: "zip(A) or zip(A, B)",
        summary: "modes of modes transposed: mode j holds mode j of every mode, or of A and of B",
        example: "zip((2,3):(1,2), (5,7):(6,30))",
        result: "((2,5),(3,7)):((1,6),(2,30))",
        section: MODES,
        least: 1,
        most: 2,
        run: |a| match a.len() {
            1 => either(&a, |layout| layout.zip(), |tree| tree.zip()),
            _ => either_with(&a, 1, |l, other| l.zip_with(other), |t, other| t.zip_with(other)),
        },
    },
    Function {
        name: "unzip",
        signature: "unzip(A, guide)",
        summary: "((A,a),(B,b),c) as ((A,B),(a,b,c)), down to the leaves of the guide",
        example: "unzip(((2,3),(5,7)):((1,2),(6,30)), (1,1))",
        result: "((2,5),(3,7)):((1,6),(2,30))",
        section: MODES,
        least: 2,
        most: 2,
        run: |a| {
            let guide = a.shape(1)?;
            either(&a, |layout| layout.unzip(guide.profile()), |tree| tree.zip_by(guide.profile()))
        },
    },
];

/// A value padded with a filler to a rank.
fn pad(
    a: &Arguments<'_>,
    of_layout: impl Fn(&Layout, usize, &Layout) -> Result<Layout, LayoutError>,
    of_tree: impl Fn(&Tree<i64>, usize, &Tree<i64>) -> Result<Tree<i64>, LayoutError>,
) -> Result<Value, Fault> {
    let rank = a.mode(1)?;
    let filled = a.len() > 2;
    match a.get(0).and_then(number_tree) {
        Some(tree) => {
            let filler = if filled { a.tree(2)? } else { Tree::leaf(1) };
            Ok(of_tree(&tree, rank, &filler)?.into())
        }
        None => {
            let filler = if filled { a.layout(2)?.into_owned() } else { Layout::unit() };
            Ok(of_layout(&*a.layout(0)?, rank, &filler)?.into())
        }
    }
}
