//! Properties of a value, and functions that rearrange its modes.

use std::borrow::Cow;

use tilewright_layout::{AnyLayout, AnyTree, Layout, LayoutError, Profile};

use super::{Function, MANY, function, nested, nested_with};
use crate::arguments::{Arguments, Fault, Nested, shape_of};
use crate::reading::{any_tree, compact};
use crate::value::Value;

/// The mode at the path of the numbers from argument `first` on.
fn descend(a: &Arguments<'_>, first: usize) -> Result<Value, Fault> {
    let path = a.modes(first)?;
    let mut value = a.get(0).cloned().unwrap_or(Value::Bool(false));
    for (position, mode) in path.into_iter().enumerate() {
        let (inner, rank) = match &value {
            Value::Layout(layout) => (layout.mode(mode).map(Value::from), layout.rank()),
            Value::Tree(AnyTree::Launch(number)) if number.is_leaf() => ((mode == 0).then(|| value.clone()), 1),
            Value::Tree(tree) => (tree.mode(mode).map(Value::from), tree.rank()),
            Value::List(values) => (values.get(mode).cloned(), values.len()),
            Value::Tiler(tiler) => (tiler.mode(mode).map(Value::from), tiler.rank()),
            Value::Int(_) => ((mode == 0).then(|| value.clone()), 1),
            _ => return a.kind(0, "a layout or a tuple"),
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
    match a.get(0) {
        Some(Value::Bool(_) | Value::Swizzle(_) | Value::Coord(_) | Value::Matrix(_) | Value::Linear(_)) | None => {
            a.kind(0, "a layout or a tuple")
        }
        _ => descend(&a, 1),
    }
}

fn number(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) const QUESTIONS: &[Function] = &[
    function("size(A, mode...)", "the number of coordinates: the product of the extents")
        .example("size((4,8):(8,1))", "32")
        .run(1..=MANY, |a| match descend(&a, 1)? {
            Value::Layout(layout) => Ok(layout.size().into()),
            value => Ok(product(&a, &value)?.into()),
        }),
    function("cosize(A, mode...)", "the largest offset plus one").example("cosize((2,3):(1,4))", "10").run(
        1..=MANY,
        |a| match descend(&a, 1)? {
            Value::Layout(layout) => Ok(layout.cosize()?.into()),
            value => Ok(product(&a, &value)?.into()),
        },
    ),
    function("rank(A, mode...)", "the number of modes at the top level").example("rank((4,(2,3)):(1,(4,8)))", "2").run(
        1..=MANY,
        |a| match descend(&a, 1)? {
            Value::List(values) => Ok(number(values.len())),
            Value::Tiler(tiler) => Ok(number(tiler.rank())),
            value => Ok(number(nesting(&a, &value)?.rank())),
        },
    ),
    function("depth(A, mode...)", "the nesting depth: 0 for a single mode")
        .example("depth((4,(2,3)):(1,(4,8)))", "2")
        .run(1..=MANY, |a| Ok(number(nesting(&a, &descend(&a, 1)?)?.depth()))),
    function("shape(A, mode...)", "the extents").example("shape((4,(2,3)):(1,(4,8)))", "(4,(2,3))").run(
        1..=MANY,
        |a| {
            let value = descend(&a, 1)?;
            Ok(extents(&a, &value)?.into_owned().into())
        },
    ),
    function("stride(A, mode...)", "the strides").example("stride((4,(2,3)):(1,(4,8)))", "(1,(4,8))").run(
        1..=MANY,
        |a| {
            let value = descend(&a, 1)?;
            let layout = match value {
                Value::Layout(layout) => layout,
                value => match compact(&*extents(&a, &value)?) {
                    Some(layout) => layout?,
                    None => return a.kind(0, "a layout or a shape"),
                },
            };
            match layout.stride() {
                Some(stride) => Ok(stride.into()),
                None => a.kind(0, "a layout or a shape; a composed layout has no strides"),
            }
        },
    ),
];

pub(super) const MODES: &[Function] = &[
    function("get(A, mode...)", "the mode with this number, and so on inwards; also written A[k]")
        .example("get((4,(2,3)):(1,(4,8)), 1, 0)", "2:4")
        .run(1..=MANY, get),
    function("flatten(A)", "the same leaves in one flat tuple")
        .example("flatten((4,(2,3)):(1,(4,8)))", "(4,2,3):(1,4,8)")
        .run(1..=1, |a| nested!(a, x => x.flatten()?)),
    function("unflatten(A, profile)", "the same leaves in the nesting of the second argument")
        .example("unflatten((4,2,3):(1,4,8), (1,(1,1)))", "(4,(2,3)):(1,(4,8))")
        .run(2..=2, |a| {
            let profile = a.profile(1)?;
            nested!(a, x => x.unflatten(&profile)?)
        }),
    function("group(A, begin, end) or group(A, modes)", "the modes from begin to end (excluded), or those of a tuple, grouped into one mode at the position of the first")
        .example("group((2,3,5):(1,2,6), 0, 2)", "((2,3),5):((1,2),6)")
        .run(2..=3, |a| {
            if a.len() == 3 {
                let range = a.mode(1)?..a.mode(2)?;
                return nested!(a, x => x.group(range)?);
            }
            let modes = a.modes(1)?;
            if let Some(twice) = modes.iter().enumerate().find(|(at, mode)| modes.iter().take(*at).any(|m| m == *mode))
            {
                let value = i64::try_from(*twice.1).unwrap_or(i64::MAX);
                let error = LayoutError::Argument { op: a.function, what: "the mode", value, wanted: "named once" };
                return Err(Fault::At(1, error));
            }
            let first = modes.first().copied().unwrap_or(0);
            nested!(a, x => {
                let others = (0..x.rank()).filter(|mode| !modes.contains(mode));
                // The kept modes before the first listed one, the listed modes, and the other
                // modes.
                let (start, end): (Vec<usize>, Vec<usize>) = others.partition(|mode| *mode < first);
                let before = start.len();
                let order: Vec<usize> = start.into_iter().chain(modes.iter().copied()).chain(end).collect();
                x.select(&order)?.group(before..before + modes.len())?
            })
        }),
    function("take(A, begin, end)", "the modes from begin to end (excluded)")
        .example("take((2,3,5):(1,2,6), 1, 3)", "(3,5):(2,6)")
        .run(3..=3, |a| {
            let range = a.mode(1)?..a.mode(2)?;
            nested!(a, x => x.take(range)?)
        }),
    function("select(A, mode...)", "the modes with these numbers, in this order")
        .example("select((2,3,5):(1,2,6), 2, 0)", "(5,2):(6,1)")
        .run(1..=MANY, |a| {
            let modes = a.modes(1)?;
            nested!(a, x => x.select(&modes)?)
        }),
    function("append(A, B)", "the modes of A, then B as one mode")
        .example("append((2,3):(1,2), 5:6)", "(2,3,5):(1,2,6)")
        .run(2..=2, |a| nested_with!(a, 1, (x, mode) => x.append(&mode))),
    function("prepend(A, B)", "B as one mode, then the modes of A")
        .example("prepend((2,3):(1,2), 5:6)", "(5,2,3):(6,1,2)")
        .run(2..=2, |a| nested_with!(a, 1, (x, mode) => x.prepend(&mode))),
    function("append_to_rank(A, rank, filler = 1:0)", "A with the filler appended until it has this many modes")
        .example("append_to_rank((2,3):(1,2), 3)", "(2,3,1):(1,2,0)")
        .run(2..=3, |a| pad(&a, Side::End)),
    function("prepend_to_rank(A, rank, filler = 1:0)", "A with the filler put before it until it has this many modes")
        .example("prepend_to_rank((2,3):(1,2), 3)", "(1,2,3):(0,1,2)")
        .run(2..=3, |a| pad(&a, Side::Begin)),
    function("replace(A, mode, B)", "A with this mode replaced by B")
        .example("replace((2,3):(1,2), 1, 5:6)", "(2,5):(1,6)")
        .run(3..=3, |a| {
            let mode = a.mode(1)?;
            nested_with!(a, 2, (x, by) => x.replace(mode, &by))
        }),
    function("remove(A, mode)", "A without this mode")
        .example("remove((2,3,5):(1,2,6), 1)", "(2,5):(1,6)")
        .run(2..=2, |a| {
            let mode = a.mode(1)?;
            nested!(a, x => x.remove(mode)?)
        }),
    function("reverse(A)", "the modes in reverse order, at every level")
        .example("reverse((4,(2,3)):(1,(4,8)))", "((3,2),4):((8,4),1)")
        .run(1..=1, |a| nested!(a, x => x.reverse()?)),
    function("zip(A) or zip(A, B)", "modes of modes transposed: mode j holds mode j of every mode, or of A and of B")
        .example("zip((2,3):(1,2), (5,7):(6,30))", "((2,5),(3,7)):((1,6),(2,30))")
        .run(1..=2, |a| match a.len() {
            1 => nested!(a, x => x.zip()?),
            _ => nested_with!(a, 1, (x, other) => x.zip_with(&other)),
        }),
    function("unzip(A, guide)", "((A,a),(B,b),c) as ((A,B),(a,b,c)), down to the leaves of the guide")
        .example("unzip(((2,3),(5,7)):((1,2),(6,30)), (1,1))", "((2,5),(3,7)):((1,6),(2,30))")
        .run(2..=2, |a| {
            let guide = a.profile(1)?;
            match a.nested(0)? {
                Nested::Tree(tree) if !tree.is_leaf() => Ok(tree.zip_by(&guide)?.into()),
                _ => Ok(a.layout(0)?.unzip(&guide)?.into()),
            }
        }),
];

/// The end at which modes are added.
enum Side {
    Begin,
    End,
}

/// A value padded with a filler to a rank.
fn pad(a: &Arguments<'_>, side: Side) -> Result<Value, Fault> {
    let rank = a.mode(1)?;
    let tuple = a.get(0).is_some_and(|value| any_tree(value).is_some());
    let filler = match a.get(2) {
        Some(filler) => filler.clone(),
        None if tuple => Value::Int(1),
        None => Value::Layout(AnyLayout::Integer(Layout::unit())),
    };
    let values: Vec<Value> = a.get(0).into_iter().cloned().chain([filler]).collect();
    let padded = Arguments { function: a.function, values: (&values).into() };
    match side {
        Side::Begin => nested_with!(padded, 1, (x, by) => x.prepend_to_rank(rank, &by)),
        Side::End => nested_with!(padded, 1, (x, by) => x.append_to_rank(rank, &by)),
    }
}

/// The value as a shape, or its shape.
fn extents<'a>(a: &Arguments<'_>, value: &'a Value) -> Result<Cow<'a, AnyTree>, Fault> {
    a.wanted(
        0,
        shape_of(value).filter(|shape| matches!(&**shape, AnyTree::Integer(_) | AnyTree::Launch(_))),
        "a layout or a tuple",
    )
}

/// The product of the extents.
fn product(a: &Arguments<'_>, value: &Value) -> Result<AnyTree, Fault> {
    match &*extents(a, value)? {
        AnyTree::Integer(shape) => Ok(shape.product()?.into()),
        shape => match shape.launch() {
            Some(shape) => Ok(shape.product()?.into()),
            None => a.kind(0, "a layout or a tuple"),
        },
    }
}

/// The nesting of a value.
fn nesting(a: &Arguments<'_>, value: &Value) -> Result<Profile, Fault> {
    Arguments { function: a.function, values: std::slice::from_ref(value).into() }
        .profile(0)
        .or_else(|_| a.kind(0, "a layout or a tuple"))
}
