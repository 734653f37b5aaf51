//! Values and failures as JSON objects.
//!
//! Law: the objects are stable. Each value has `text`, which parses back to the value, and `kind`;
//! a kind may get more fields, but a field keeps its meaning. Integers are written in full, up to
//! 64 bits. A parameter, a coordinate step and an XOR step are strings, and `_` is `"_"`.

use std::ops::Range;

use serde_json::{Map, json};
use tilewright::atoms::{BulkCopy, CopyAtom, MmaAtom, ThreadValue};
use tilewright::layout::symbolic::{Expr, Symbolic};
use tilewright::layout::{
    AnyCoord, AnyLayout, AnyTiler, AnyTree, Composed, Coordinate, Extent, InnerValue, Layout, OuterMap, Slot, Stride,
    Xor,
};
use tilewright::morphism::{Class, MorphismError, MutualRefinement, Square, WorkedComposition};
use tilewright::{Tree, Value};

pub use serde_json::Value as Json;

/// The JSON object of a value.
pub fn value(value: &Value) -> Json {
    let mut object = json!({ "text": value.to_string(), "kind": value.kind() });
    let fields = match value {
        Value::Int(n) => json!({ "value": n }),
        Value::Bool(b) => json!({ "value": b }),
        Value::Tree(AnyTree::Launch(number)) if number.is_leaf() => json!({ "value": nested(&**number) }),
        Value::Tree(AnyTree::Integer(tree)) => tree_fields(tree),
        Value::Tree(AnyTree::Launch(tree)) => tree_fields(tree),
        Value::Tree(AnyTree::Coordinate(tree)) => tree_fields(tree),
        Value::Tree(AnyTree::Xor(tree)) => tree_fields(tree),
        Value::Coord(AnyCoord::Integer(coordinate)) => json!({ "value": nested(coordinate) }),
        Value::Coord(AnyCoord::Launch(coordinate)) => json!({ "value": nested(&**coordinate) }),
        Value::Layout(AnyLayout::Integer(layout)) => layout_fields(layout, layout.cosize().ok()),
        Value::Layout(AnyLayout::Launch(layout)) => layout_fields(layout, layout.cosize().ok()),
        Value::Layout(AnyLayout::Coordinate(layout)) => layout_fields(layout, layout.cosize().ok()),
        Value::Layout(AnyLayout::Xor(layout)) => layout_fields(layout, layout.cosize().ok()),
        Value::Layout(AnyLayout::Composed(map)) => composed_fields(map, json!({ "cosize": map.cosize().ok() })),
        Value::Layout(AnyLayout::LaunchComposed(map)) => composed_fields(map, json!({})),
        Value::Layout(AnyLayout::CoordinateComposed(map)) => composed_fields(map, json!({})),
        Value::Tiler(tiler) => json!({ "value": tiles(tiler) }),
        Value::Swizzle(swizzle) => {
            json!({ "bits": swizzle.bits(), "base": swizzle.base(), "shift": swizzle.shift() })
        }
        Value::Matrix(map) => json!({ "inputs": map.inputs(), "outputs": map.outputs() }),
        Value::Linear(map) => json!({
            "inputs": names(map.inputs()),
            "outputs": names(map.outputs()),
            "matrix": map.matrix().to_string(),
        }),
        Value::Morphism(f) => {
            // Counted from 1, as in the text; 0 is the base point.
            let images: Vec<usize> = f.map().images().map(|image| image.map_or(0, |image| image + 1)).collect();
            json!({ "domain": nested(&f.domain()), "codomain": nested(&f.codomain()), "map": images })
        }
        Value::List(items) => json!({ "items": items.iter().map(self::value).collect::<Vec<_>>() }),
    };
    extend(&mut object, fields);
    object
}

/// Adds the fields of one object to another.
pub fn extend(object: &mut Json, fields: Json) {
    if let (Json::Object(object), Json::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

/// The sizes of inputs or outputs, by name.
fn names(names: &[(Box<str>, usize)]) -> Json {
    let sizes = names.iter().map(|(name, bits)| (name.to_string(), Json::from(1_u64 << bits)));
    Json::Object(sizes.collect::<Map<_, _>>())
}

/// The JSON object of a failure; `place` is an expression and the location of the error in it, in
/// bytes.
pub fn failure(code: &str, message: &str, help: Option<&str>, place: Option<(&str, Range<usize>)>) -> Json {
    let mut error = json!({ "code": code, "message": message });
    if let Some((_, bytes)) = &place {
        extend(&mut error, json!({ "start": bytes.start, "end": bytes.end }));
    }
    error["help"] = help.map_or(Json::Null, Json::from);
    if let Some((source, _)) = place {
        error["source"] = Json::from(source);
    }
    json!({ "error": error })
}

/// The JSON object of a composition by mutual refinement, or of the reason why it does not apply.
pub fn composition(composite: &Layout, by: Result<&WorkedComposition, &MorphismError>, class: Option<Class>) -> Json {
    let mut object = json!({ "composite": composite.to_string() });
    let fields = match by {
        Ok(worked) => json!({
            "inner": worked.first.to_string(),
            "outer": worked.second.to_string(),
            "pullback": worked.included.to_string(),
            "pushforward": worked.pushforward.morphism.to_string(),
            "morphism": worked.morphism.to_string(),
            "weak": worked.weak.to_string(),
            "mutual_refinement": mutual(&worked.mutual),
        }),
        Err(error) => json!({ "code": error.code(), "message": error.to_string() }),
    };
    extend(&mut object, fields);
    object["class"] = class.map_or(Json::Null, |class| Json::from(class.to_string()));
    object
}

/// The JSON object of a mutual refinement.
pub fn mutual(mutual: &MutualRefinement) -> Json {
    json!({ "first": nested(mutual.first().fine()), "second": nested(mutual.second().fine()) })
}

/// The JSON object of a pullback or pushforward: both refined tuples, and the morphism between
/// them.
pub fn square(square: &Square) -> Json {
    json!({
        "domain": nested(square.domain.fine()),
        "codomain": nested(square.codomain.fine()),
        "morphism": square.morphism.to_string(),
    })
}

/// The JSON object of whether a layout is tractable.
pub fn tractable(layout: &Layout, reason: Option<&MorphismError>) -> Json {
    let mut object = json!({ "layout": layout.to_string(), "tractable": reason.is_none() });
    if let Some(reason) = reason {
        object["reason"] = Json::from(reason.to_string());
    }
    object
}

/// The JSON object of a family of atoms.
pub fn family(kind: &str, names: &str, arch: &str, count: usize) -> Json {
    json!({ "kind": kind, "names": names, "arch": arch, "count": count })
}

/// The JSON object of an instruction that multiplies matrices.
pub fn product(atom: &MmaAtom) -> Json {
    let types = atom.types();
    let operands = atom.operands().map(|(operand, held)| (operand.to_string(), thread_value(held)));
    json!({
        "name": atom.name(),
        "kind": "product",
        "arch": atom.arch().name(),
        "shape": atom.shape(),
        "d": types.d.name(),
        "a": types.a.name(),
        "b": types.b.name(),
        "c": types.c.name(),
        "threads": atom.threads().to_string(),
        "operands": Json::Object(operands.collect::<Map<_, _>>()),
    })
}

/// The JSON object of an instruction that copies.
pub fn copy(atom: &CopyAtom) -> Json {
    let mut object = json!({
        "name": atom.name(),
        "kind": "copy",
        "arch": atom.arch().name(),
        "bits": atom.bits(),
        "threads": atom.threads().to_string(),
        "reference": atom.reference().to_string(),
    });
    for (end, held) in atom.ends() {
        object[end.to_string()] = thread_value(held);
    }
    object
}

/// The JSON object of a bulk copy.
pub fn bulk_copy(copy: &BulkCopy) -> Json {
    let (fewest, most) = copy.dimensions();
    json!({
        "name": copy.name(),
        "kind": "bulk copy",
        "arch": copy.arch().name(),
        "direction": copy.direction().to_string(),
        "mode": copy.mode().to_string(),
        "dimensions": [fewest, most],
        "multicast": copy.is_multicast(),
        "ctas": copy.ctas(),
        "needs": copy.needs(),
    })
}

fn thread_value(held: &ThreadValue) -> Json {
    let mut object = json!({
        "layout": held.layout().to_string(),
        "values": held.values(),
        "holders": held.holders(),
    });
    if held.copies() > 1 {
        object["copies"] = Json::from(held.copies());
    }
    object
}

fn tree_fields<T: LeafNumber>(tree: &Tree<T>) -> Json {
    json!({ "value": nested(tree), "rank": tree.rank(), "depth": tree.depth() })
}

fn layout_fields<D: Stride + LeafNumber, N: LeafNumber>(layout: &Layout<D>, cosize: Option<N>) -> Json
where
    D::Extent: LeafNumber,
{
    json!({
        "shape": nested(&layout.shape()),
        "stride": nested(&layout.stride()),
        "size": layout.size().json(),
        "cosize": cosize.map_or(Json::Null, |cosize| cosize.json()),
        "rank": layout.rank(),
        "depth": layout.depth(),
    })
}

/// A number at a leaf.
trait LeafNumber: Clone {
    fn json(&self) -> Json;
}

impl LeafNumber for i64 {
    fn json(&self) -> Json {
        Json::from(*self)
    }
}

impl LeafNumber for Expr {
    fn json(&self) -> Json {
        // With the facts about its names, so that the text can be parsed alone.
        self.known().map_or_else(|| Json::from(self.with_facts().to_string()), Json::from)
    }
}

impl LeafNumber for Coordinate<Expr> {
    fn json(&self) -> Json {
        Json::from(self.with_facts().to_string())
    }
}

impl LeafNumber for Xor {
    fn json(&self) -> Json {
        Json::from(self.to_string())
    }
}

/// A tree of numbers as nested arrays; a single number as itself.
fn nested<T: LeafNumber>(tree: &Tree<T>) -> Json {
    match tree.leaves() {
        [only] if tree.is_leaf() => only.json(),
        _ => Json::Array(tree.modes().map(|mode| nested(&mode)).collect()),
    }
}

/// A coordinate as nested arrays; `_` is a string.
impl<N: LeafNumber> LeafNumber for Slot<N> {
    fn json(&self) -> Json {
        match self {
            Slot::At(index) => index.json(),
            Slot::All => Json::from("_"),
        }
    }
}

/// A tiler as nested arrays of the texts of its layouts.
fn tiles(tiler: &AnyTiler) -> Json {
    match tiler.layout() {
        None if !tiler.is_keep() => {
            Json::Array((0..tiler.rank()).filter_map(|mode| Some(tiles(&tiler.mode(mode)?))).collect())
        }
        _ => Json::from(tiler.to_string()),
    }
}

/// The fields of a composed layout; `cosize` if it is known.
fn composed_fields<D: InnerValue + LeafNumber>(map: &Composed<D>, cosize: Json) -> Json
where
    D::Extent: LeafNumber,
    OuterMap<D::Extent>: ToString,
    Layout<D>: ToString,
{
    let mut object = json!({
        "outer": map.outer().to_string(),
        "offset": map.offset().json(),
        "inner": map.inner().to_string(),
        "shape": nested(&map.shape()),
        "size": map.size().json(),
    });
    extend(&mut object, cosize);
    extend(&mut object, json!({ "rank": map.rank(), "depth": map.depth() }));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(program: &str) -> Json {
        value(&tilewright::evaluate(program, &mut tilewright::Environment::new()).unwrap())
    }

    #[test]
    fn a_layout_has_its_trees_as_arrays() {
        assert_eq!(
            fields("((2,2),3):((24,2),8)").to_string(),
            r#"{"text":"((2,2),3):((24,2),8)","kind":"layout","shape":[[2,2],3],"stride":[[24,2],8],"size":12,"cosize":43,"rank":2,"depth":2}"#
        );
    }

    /// Law: every kind of value has fields besides its text.
    #[test]
    fn every_kind_has_fields_of_its_own() {
        for (program, field, wanted) in [
            ("7", "value", json!(7)),
            ("M{div=8}", "value", json!("M{div=8}")),
            ("(2,(3,4))", "value", json!([2, [3, 4]])),
            ("(2,(_,4))", "value", json!([2, ["_", 4]])),
            ("(1@0,2@1)", "value", json!(["1@0", "2@1"])),
            ("1@0", "value", json!("1@0")),
            ("(^1,^9)", "value", json!(["^1", "^9"])),
            ("[2:1;_]", "value", json!(["2:1", "_"])),
            ("[2:64@0;_]", "value", json!(["2:64@0", "_"])),
            ("(M,8):(8,1)", "shape", json!(["M", 8])),
            ("(4,8):(1@0,1@1)", "stride", json!(["1@0", "1@1"])),
            ("S<3,4,3>", "bits", json!(3)),
            ("S<2,0,3> o 0 o (8,8):(8,1)", "shape", json!([8, 8])),
            ("(M,8):(8,1) o K{} o 4:1", "shape", json!(4)),
            ("(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)", "shape", json!([2, 3])),
            ("F2<2>[1,2,3]", "inputs", json!(3)),
        ] {
            let object = fields(program);
            assert_eq!(object.get(field), Some(&wanted), "{program}: {object}");
        }
    }
}
