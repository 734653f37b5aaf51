//! Questions about a value, and functions that move its modes.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, LayoutError, Profile, Stride, Tiler, Tree};

use super::predicates::cosize_at_launch;
use super::{Function, MANY, mapped, nested, nested_with, paired};
use crate::arguments::{Arguments, Fault, Map, Trees, symbol_shape};
use crate::reading::{step_tree, symbol_tree, xor_tree};
use crate::value::Value;

const QUESTIONS: &str = "Size and structure";
const MODES: &str = "Modes";

/// What the mode numbers from argument `first` on lead to.
fn descend(a: &Arguments<'_>, first: usize) -> Result<Value, Fault> {
    let path = a.modes(first)?;
    let mut value = a.get(0).cloned().unwrap_or(Value::Bool(false));
    for (position, mode) in path.into_iter().enumerate() {
        let (inner, rank) = match &value {
            Value::Layout(layout) => (layout.mode(mode).map(Value::from), layout.rank()),
            Value::SymbolLayout(layout) => (layout.mode(mode).map(Value::from), layout.rank()),
            Value::StepLayout(layout) => (layout.mode(mode).map(Value::from), layout.rank()),
            Value::XorLayout(layout) => (layout.mode(mode).map(Value::from), layout.rank()),
            Value::Composed(composed) => (composed.mode(mode).map(Value::from), composed.rank()),
            Value::SymbolComposed(composed) => (composed.mode(mode).map(Value::from), composed.rank()),
            Value::StepComposed(composed) => (composed.mode(mode).map(Value::from), composed.rank()),
            Value::Tree(tree) => (tree.mode(mode).map(Value::from), tree.rank()),
            Value::SymbolTree(tree) => (tree.mode(mode).map(Value::from), tree.rank()),
            Value::StepTree(tree) => (tree.mode(mode).map(Value::from), tree.rank()),
            Value::XorTree(tree) => (tree.mode(mode).map(Value::from), tree.rank()),
            Value::List(values) => (values.get(mode).cloned(), values.len()),
            Value::Tiler(tiler) => item(tiler, mode),
            Value::SymbolTiler(tiler) => item(tiler, mode),
            Value::StepTiler(tiler) => item(tiler, mode),
            Value::Int(_) | Value::Symbol(_) => ((mode == 0).then(|| value.clone()), 1),
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

/// The tiler of a mode, and the number of modes.
fn item<D: Stride>(tiler: &Tiler<D>, mode: usize) -> (Option<Value>, usize)
where
    Value: From<Tiler<D>>,
{
    match tiler {
        Tiler::Modes(modes) => (modes.items().get(mode).cloned().map(Value::from), modes.items().len()),
        tiler => ((mode == 0).then(|| Value::from(tiler.clone())), 1),
    }
}

/// `a[k]` and `get(a, k)`.
pub(crate) fn get(a: Arguments<'_>) -> Result<Value, Fault> {
    match a.get(0) {
        Some(
            Value::Bool(_)
            | Value::Swizzle(_)
            | Value::Coord(_)
            | Value::SymbolCoord(_)
            | Value::Matrix(_)
            | Value::Linear(_),
        )
        | None => a.kind(0, "a layout or a tuple"),
        _ => descend(&a, 1),
    }
}

fn number(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
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
        run: |a| match descend(&a, 1)? {
            Value::Layout(layout) => Ok(layout.size().into()),
            value => Ok(extents(&a, &value)?.product()?.into()),
        },
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
        run: |a| match descend(&a, 1)? {
            Value::Layout(layout) => Ok(layout.cosize()?.into()),
            Value::SymbolLayout(layout) => Ok(layout.cosize()?.into()),
            Value::StepLayout(layout) => Ok(layout.cosize()?.into()),
            Value::XorLayout(layout) => Ok(layout.cosize()?.into()),
            Value::Composed(map) => Ok(map.cosize()?.into()),
            value @ (Value::SymbolComposed(_) | Value::StepComposed(_)) => {
                let a = Arguments { function: a.function, values: &[value] };
                match a.map_of_indices(0)? {
                    Map::Composed(map) => Ok(map.cosize()?.into()),
                    Map::SymbolComposed(map) => cosize_at_launch(&a, &map),
                    _ => a.kind(0, "a layout"),
                }
            }
            value => Ok(extents(&a, &value)?.product()?.into()),
        },
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
            Value::SymbolTiler(tiler) => Ok(number(item(&*tiler, 0).1)),
            Value::StepTiler(tiler) => Ok(number(item(&*tiler, 0).1)),
            value => Ok(number(nesting(&a, &value)?.rank())),
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
        run: |a| Ok(number(nesting(&a, &descend(&a, 1)?)?.depth())),
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
        run: |a| Ok(extents(&a, &descend(&a, 1)?)?.into()),
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
        run: |a| match descend(&a, 1)? {
            Value::Layout(layout) => Ok(layout.stride().into()),
            Value::SymbolLayout(layout) => Ok(layout.stride().into()),
            Value::StepLayout(layout) => Ok(layout.stride().into()),
            Value::XorLayout(layout) => Ok(layout.stride().into()),
            Value::Composed(_) | Value::SymbolComposed(_) | Value::StepComposed(_) => {
                a.kind(0, "a layout or a shape; a composed layout has no strides")
            }
            value => Ok(Layout::compact(&extents(&a, &value)?)?.stride().into()),
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
        run: |a| nested!(a, a.get(0), x => x.flatten()?),
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
            let profile = a.profile(1)?;
            nested!(a, a.get(0), x => x.unflatten(&profile)?)
        },
    },
    Function {
        name: "group",
        signature: "group(A, begin, end) or group(A, modes)",
        summary: "modes begin up to end, end not included, or those of a tuple, as one mode where the first of them stood",
        example: "group((2,3,5):(1,2,6), 0, 2)",
        result: "((2,3),5):((1,2),6)",
        section: MODES,
        least: 2,
        most: 3,
        run: |a| {
            if a.len() == 3 {
                let range = a.mode(1)?..a.mode(2)?;
                return nested!(a, a.get(0), x => x.group(range)?);
            }
            let modes = a.modes(1)?;
            if let Some(twice) = modes.iter().enumerate().find(|(at, mode)| modes.iter().take(*at).any(|m| m == *mode))
            {
                let value = i64::try_from(*twice.1).unwrap_or(i64::MAX);
                let error = LayoutError::Argument { op: a.function, what: "the mode", value, wanted: "named once" };
                return Err(Fault::At(1, error));
            }
            let first = modes.first().copied().unwrap_or(0);
            // The modes before the first of the list that stay, those of the list, and the others.
            let before = (0..first).filter(|mode| !modes.contains(mode)).count();
            nested!(a, a.get(0), x => {
                let others = (0..x.rank()).filter(|mode| !modes.contains(mode));
                let (start, end): (Vec<usize>, Vec<usize>) = others.partition(|mode| *mode < first);
                let order: Vec<usize> = start.into_iter().chain(modes.iter().copied()).chain(end).collect();
                x.select(&order)?.group(before..before + modes.len())?
            })
        },
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
        run: |a| {
            let range = a.mode(1)?..a.mode(2)?;
            nested!(a, a.get(0), x => x.take(range)?)
        },
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
            nested!(a, a.get(0), x => x.select(&modes)?)
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
        run: |a| nested_with!(a, 1, (x, mode) => x.append(&mode)?),
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
        run: |a| nested_with!(a, 1, (x, mode) => x.prepend(&mode)?),
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
        run: |a| pad(&a, Side::End),
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
        run: |a| pad(&a, Side::Begin),
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
            nested_with!(a, 2, (x, by) => x.replace(mode, &by)?)
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
            nested!(a, a.get(0), x => x.remove(mode)?)
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
        run: |a| nested!(a, a.get(0), x => x.reverse()?),
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
            1 => nested!(a, a.get(0), x => x.zip()?),
            _ => match a.trees(0, 1) {
                Some(Trees::Integer(x, other)) => Ok(x.zip_with(&other)?.into()),
                Some(Trees::Symbol(x, other)) => Ok(x.zip_with(&other)?.into()),
                Some(Trees::Step(x, other)) => Ok(x.zip_with(&other)?.into()),
                Some(Trees::Xor(x, other)) => Ok(x.zip_with(&other)?.into()),
                None => paired!(a, 0, 1, (x, other) => x.zip_with(&other)?),
            },
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
            let guide = a.profile(1)?;
            match a.get(0) {
                Some(Value::Tree(tree)) => Ok(tree.zip_by(&guide)?.into()),
                Some(Value::SymbolTree(tree)) => Ok(tree.zip_by(&guide)?.into()),
                Some(Value::StepTree(tree)) => Ok(tree.zip_by(&guide)?.into()),
                Some(Value::XorTree(tree)) => Ok(tree.zip_by(&guide)?.into()),
                _ => mapped!(a, layout => layout.unzip(&guide)?),
            }
        },
    },
];

/// Where modes are added.
enum Side {
    Begin,
    End,
}

/// A value padded with a filler to a rank.
fn pad(a: &Arguments<'_>, side: Side) -> Result<Value, Fault> {
    let rank = a.mode(1)?;
    let tuple = a
        .get(0)
        .is_some_and(|value| symbol_tree(value).is_some() || step_tree(value).is_some() || xor_tree(value).is_some());
    let filler = match a.get(2) {
        Some(filler) => filler.clone(),
        None if tuple => Value::Int(1),
        None => Value::Layout(Layout::unit()),
    };
    let values: Vec<Value> = a.get(0).into_iter().cloned().chain([filler]).collect();
    let padded = Arguments { function: a.function, values: &values };
    match side {
        Side::Begin => nested_with!(padded, 1, (x, by) => x.prepend_to_rank(rank, &by)?),
        Side::End => nested_with!(padded, 1, (x, by) => x.append_to_rank(rank, &by)?),
    }
}

/// The shape that a value is or has.
fn extents(a: &Arguments<'_>, value: &Value) -> Result<Tree<Expr>, Fault> {
    match symbol_shape(value) {
        Some(shape) => Ok(shape),
        None => a.kind(0, "a layout or a tuple"),
    }
}

/// How a value nests.
fn nesting(a: &Arguments<'_>, value: &Value) -> Result<Profile, Fault> {
    Arguments { function: a.function, values: std::slice::from_ref(value) }
        .profile(0)
        .or_else(|_| a.kind(0, "a layout or a tuple"))
}
