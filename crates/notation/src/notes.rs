//! Notes: remarks about a value.
//!
//! Law: a note is about a value that is correct by its definition but may not be what was meant,
//! and it says how the two differ:
//!
//! * *Outside the domain.* A coordinate, an index or a tile is outside the layout. As in CuTe, the
//!   layout continues: a mode continues in its last leaf with the stride of that leaf, and the
//!   leaves before it carry.
//! * *More than was asked.* Tiles that do not divide a mode cover it, and go over its end; so does
//!   a block that is repeated to a shape that it does not divide.
//! * *Copies that meet.* A product by mode takes each mode of the block by itself, and the copies
//!   along one mode may share offsets with those along another.
//!
//! Notes are made from arguments and values afterwards, if they are requested: an evaluation
//! without notes does none of this. The strict form makes each of them a refusal (E0217).

use std::ops::Range;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyLayout, Coord, Extent, Slot, Stride, Tree};

use crate::arguments::{Values, is_map};
use crate::diagnostic::Diagnostic;
use crate::reading::{compact, coordinate};
use crate::value::Value;

/// A remark about an answer, and its location in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// A sentence without a full stop.
    pub message: String,
    /// The operand that it is about, in bytes of the source.
    pub span: Range<usize>,
    pub(crate) strict: bool,
}

impl Note {
    /// Whether a strict evaluation turns this note into a refusal. It does for all notes except
    /// those about a name that was taken for a parameter.
    pub fn is_refused_when_strict(&self) -> bool {
        self.strict
    }

    /// The note as a refusal.
    pub(crate) fn refusal(self) -> Diagnostic {
        Diagnostic::new("E0217", self.span.clone(), self.message)
            .label(self.span, "refused, for the evaluation is strict")
            .help("without --strict, or outside of strict(), this is answered, with a note")
    }
}

/// The remarks about the value of a function, each with the index of the argument that it is about.
/// An empty function name means a map that is applied to the coordinate after it.
///
/// ```
/// use tilewright_notation::{Environment, evaluate, remarks};
///
/// let value = |text: &str| evaluate(text, &mut Environment::new()).unwrap();
/// let (layout, coordinate, offset) = (value("(4,8):(8,1)"), value("(9,9)"), value("81"));
/// let said = remarks("crd2idx", &[&coordinate, &layout], &offset);
/// assert_eq!(said.len(), 1);
/// assert!(said[0].1.starts_with("the coordinate (9,9) is outside the shape (4,8)"));
/// assert!(remarks("crd2idx", &[&value("(3,7)"), &layout], &value("31")).is_empty());
/// ```
pub fn remarks(function: &str, arguments: &[&Value], value: &Value) -> Vec<(usize, String)> {
    of(function, Values::Each(arguments), value).into_iter().collect()
}

/// As [`remarks`]; there is at most one remark about a call.
pub(crate) fn of(function: &str, a: Values<'_>, value: &Value) -> Option<(usize, String)> {
    match function {
        "" | "slice" | "slice_and_offset" | "domain_offset" => {
            let (map, coord) = (a.get(0)?, a.get(1)?);
            Some((1, outside(&shape_of(map)?, coord)?))
        }
        "crd2idx" if a.len() == 2 => {
            // In method form the layout is the first argument.
            let (coord, map) = if a.get(0).is_some_and(is_map) { (1, 0) } else { (0, 1) };
            Some((coord, outside(&shape_of(a.get(map)?)?, a.get(coord)?)?))
        }
        "crd2idx" | "crd2crd" | "increment_coord" => Some((0, outside(&shape_of(a.get(1)?)?, a.get(0)?)?)),
        "idx2crd" => {
            let (index, shape) = if a.get(0).is_some_and(is_map) { (1, 0) } else { (0, 1) };
            Some((index, outside(&shape_of(a.get(shape)?)?, a.get(index)?)?))
        }
        "local_tile" => local_tile(a).or_else(|| covers(a)),
        "with_shape" => {
            let (before, after) = (size(a.get(0)?)?, size(value)?);
            let over = "a layout goes on past its end in its last mode";
            (after > before).then(|| (1, format!("the result has {after} indices, and A has {before}: {over}")))
        }
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => {
            let (before, after) = (size(a.get(0)?)?, size(value)?);
            (after > before).then(|| {
                let over = "the tiles do not divide it, and the last one goes on past the end";
                (1, format!("the result covers {after} indices, and A has {before}: {over}"))
            })
        }
        "tile_to_shape" => {
            let wanted = modes(&shape_of(a.get(1)?)?)?;
            let found = modes(&shape_of(value)?)?;
            let (mode, (asked, covered)) =
                wanted.iter().zip(&found).enumerate().find(|(_, (asked, covered))| covered > asked)?;
            let over = "the block does not divide the shape, so that the whole blocks go over its end";
            Some((1, format!("mode {mode} of the result has {covered} indices, and {asked} are asked for: {over}")))
        }
        "logical_product" | "zipped_product" | "tiled_product" | "flat_product" => {
            // If a layout arranges whole blocks, their copies are disjoint.
            if matches!(a.get(1)?, Value::Layout(_) | Value::Int(_)) {
                return None;
            }
            let (block, result) = (layout_of(a.get(0)?)?, layout_of(value)?);
            let distinct = |layout: &AnyLayout| match layout {
                AnyLayout::Integer(layout) => layout.is_injective().ok(),
                _ => None,
            };
            (distinct(&block)? && !distinct(&result)?).then(|| {
                let by_mode = "a product by mode takes each mode of the block by itself; blocked_product(A, B) keeps whole blocks apart";
                (1, format!("copies of the block share offsets: {by_mode}"))
            })
        }
        _ => None,
    }
}

/// A remark about a requested tile that does not exist in the layout.
fn local_tile(a: Values<'_>) -> Option<(usize, String)> {
    let shape = shape_of(a.get(0)?)?;
    let coord = coordinate(a.get(2)?)?.launch().into_owned();
    let tilers = sizes_of_tiles(a.get(1)?)?;
    let projected = |at: &usize| {
        let place = a.get(3).and_then(coordinate).map(|projection| projection.launch().into_owned());
        place.and_then(|projection| projection.mode(*at)).is_none_or(|mode| matches!(mode.leaves(), [Slot::At(_)]))
    };
    let places = (0..tilers.len()).filter(projected);
    let extents = modes_of(&shape);
    let one = coord.is_leaf();
    for (mode, place) in places.enumerate() {
        let (extent, tile) = (extents.get(mode)?, tilers.get(place)?);
        let index = if one { (place == 0).then(|| coord.clone())? } else { coord.mode(place)? };
        let Some(index) = index.leaves().first().filter(|_| index.is_leaf()) else { continue };
        let (Slot::At(index), Some(tile)) = (index, tile) else { continue };
        let count = extent.divide_up(tile)?;
        if is_outside(index, &count) {
            return Some((
                2,
                format!(
                    "tile {index} of mode {mode} is outside the layout: {count} of {tile} cover its extent {extent}; the tiles go on with their step"
                ),
            ));
        }
    }
    None
}

/// A remark about tiles that extend past the end of a mode.
fn covers(a: Values<'_>) -> Option<(usize, String)> {
    let shape = shape_of(a.get(0)?)?;
    let tilers = sizes_of_tiles(a.get(1)?)?;
    if a.len() > 3 {
        return None;
    }
    modes_of(&shape).iter().zip(tilers).enumerate().find_map(|(mode, (extent, tile))| {
        let tile = tile?;
        let (_, rest) = extent.divide(&tile)?;
        rest.is_zero().refuted().then(|| {
            (1, format!("tiles of {tile} do not divide the extent {extent} of mode {mode}: the last one goes on past the end"))
        })
    })
}

/// The sizes of the items of a tiler; None for an item that keeps its mode.
fn sizes_of_tiles(tiler: &Value) -> Option<Vec<Option<Expr>>> {
    let size = |value: &Value| match value {
        Value::Coord(_) => None,
        value => product(&shape_of(value)?),
    };
    match tiler {
        Value::List(items) => Some(items.iter().map(size).collect()),
        Value::Tiler(tiler) => {
            Some((0..tiler.rank()).map(|at| tiler.mode(at).and_then(|mode| size(&Value::from(mode)))).collect())
        }
        Value::Layout(_) => Some(vec![size(tiler)]),
        value => {
            let coord = coordinate(value)?.launch().into_owned();
            let extent = |mode: &Coord<Expr>| product(&mode.indices()?);
            Some(if coord.is_leaf() { vec![extent(&coord)] } else { coord.modes().map(|mode| extent(&mode)).collect() })
        }
    }
}

/// The modes in which a coordinate is outside a shape, in words.
fn outside(shape: &Tree<Expr>, coord: &Value) -> Option<String> {
    let place = coordinate(coord)?.launch().into_owned();
    let mut left = Vec::new();
    leaves(&place, shape, &mut Vec::new(), &mut left);
    let said: Vec<String> = left
        .iter()
        .map(|(path, index, extent)| match path.as_slice() {
            [] => format!("index {index} of {extent}"),
            [mode] => format!("index {index} of the {extent} of mode {mode}"),
            path => format!("index {index} of the {extent} of mode {path:?}"),
        })
        .collect();
    let what = if place.is_leaf() { "index" } else { "coordinate" };
    (!said.is_empty()).then(|| {
        let goes_on = "such a mode goes on in its last leaf, and those before it carry";
        format!("the {what} {coord} is outside the shape {shape}: {}; {goes_on}", said.join(", "))
    })
}

type Left = (Vec<usize>, Expr, Expr);

/// Collects the modes in which a coordinate is outside its shape.
fn leaves(coord: &Coord<Expr>, shape: &Tree<Expr>, path: &mut Vec<usize>, left: &mut Vec<Left>) {
    if let (true, [slot]) = (coord.is_leaf(), coord.leaves()) {
        if let (Slot::At(index), Some(extent)) = (slot, product(shape))
            && is_outside(index, &extent)
        {
            left.push((path.clone(), index.clone(), extent));
        }
        return;
    }
    if shape.is_leaf() {
        // A number is a tuple of one mode, itself.
        if let (1, Some(own)) = (coord.rank(), coord.mode(0)) {
            leaves(&own, shape, path, left);
        }
        return;
    }
    for (position, (coord, shape)) in coord.modes().zip(shape.modes()).enumerate() {
        path.push(position);
        leaves(&coord, &shape, path, left);
        path.pop();
    }
}

/// Whether an index is known to be outside an extent.
fn is_outside(index: &Expr, extent: &Expr) -> bool {
    index.less(extent).refuted() || index.less(&Expr::from(0)).proved()
}

fn product(shape: &Tree<Expr>) -> Option<Expr> {
    shape.leaves().iter().try_fold(Expr::from(1), |product, extent| product.times(extent))
}

/// The sizes of the modes of a shape; a number is one mode.
fn modes_of(shape: &Tree<Expr>) -> Vec<Expr> {
    if shape.is_leaf() {
        product(shape).into_iter().collect()
    } else {
        shape.modes().filter_map(|mode| product(&mode)).collect()
    }
}

/// As [`modes_of`], without parameters.
fn modes(shape: &Tree<Expr>) -> Option<Vec<i64>> {
    modes_of(shape).iter().map(Extent::known).collect()
}

fn size(value: &Value) -> Option<i64> {
    product(&shape_of(value)?)?.known()
}

/// The value as a layout; a shape means its compact layout.
fn layout_of(value: &Value) -> Option<AnyLayout> {
    value.operand_layout()
}

/// The shape of a layout, or the value as a shape.
fn shape_of(value: &Value) -> Option<Tree<Expr>> {
    match value {
        Value::Layout(layout) => layout.shape().launch(),
        value => compact(&*crate::reading::any_tree(value)?)?.ok()?.shape().launch(),
    }
}

/// The note about a name that was taken for a parameter where that may surprise: alone, or as the
/// offset of a composed layout.
pub(crate) fn free(name: &str, near: Option<&str>) -> String {
    let near = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
    format!("nothing is bound to '{name}', so it is a number known at launch{near}")
}
