//! Functions of the algebra on tensors.
//!
//! Law: the result of a function of a tensor accesses elements of that tensor, and no others of its
//! memory. Tiles that cover more than their mode are refused, as for tensors in Rust.

use std::collections::HashSet;

use tilewright_layout::{AnyCoord, AnyLayout, AnyTree, Coord, DivideForm, Layout, LayoutError, Slot, Tiler};
use tilewright_notation::Value;
use tilewright_tensor::{AnyOffsets, Offsets, Rearrangement, TensorError};

use super::placed::Placed;

/// The largest number of elements of a tensor that are enumerated, if nothing else proves that a
/// result is a part of it.
const MOST_LISTED: i64 = 1 << 20;

/// Functions of the language whose value is a layout of elements of an argument.
pub const VIEWS: [&str; 27] = [
    "get",
    "flatten",
    "unflatten",
    "group",
    "take",
    "select",
    "remove",
    "reverse",
    "zip",
    "unzip",
    "coalesce",
    "filter_zeros",
    "filter",
    "composition",
    "composition_within",
    "logical_divide",
    "zipped_divide",
    "tiled_divide",
    "flat_divide",
    "local_tile",
    "append_to_rank",
    "prepend_to_rank",
    "partition_A",
    "partition_B",
    "partition_C",
    "partition_S",
    "partition_D",
];

/// Functions of the language that return a property of a layout.
pub const QUERIES: [&str; 5] = ["size", "cosize", "rank", "depth", "shape"];

/// Why a view does not exist.
pub enum RefusedView {
    /// A rearrangement that leaves the tensor.
    Tensor(TensorError),
    /// A call that does not accept tensors, and the alternative.
    Call(String),
}

impl From<TensorError> for RefusedView {
    fn from(error: TensorError) -> RefusedView {
        RefusedView::Tensor(error)
    }
}

impl From<LayoutError> for RefusedView {
    fn from(error: LayoutError) -> RefusedView {
        RefusedView::Tensor(error.into())
    }
}

/// An error if the layout that a function made from a tensor's layout accesses an element outside
/// of the tensor.
pub fn check(tensor: &Placed, name: &str, arguments: &[Value], made: &AnyLayout) -> Result<(), RefusedView> {
    let shape = tensor.offsets.shape();
    match name {
        "composition" => match arguments.get(1).and_then(Value::to_tiler) {
            Some(Ok(Tiler::Layout(b))) => Ok(Rearrangement::Compose(b).check(&shape)?),
            Some(Ok(tiler)) => Ok(Rearrangement::ComposeBy(tiler).check(&shape)?),
            _ => listed(tensor, made),
        },
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => {
            Ok(Rearrangement::Divide(DivideForm::Zipped, tiler(arguments)?).check(&shape)?)
        }
        "local_tile" if arguments.len() == 3 => {
            let (tiler, form) = (tiler(arguments)?, DivideForm::Zipped);
            Rearrangement::Divide(form, tiler.clone()).check(&shape)?;
            let divided = Layout::compact(&shape)?.zipped_divide(&tiler)?;
            let Some(coord) = arguments.get(2).and_then(coordinate) else {
                return Err(RefusedView::Call("the coordinate of a tile is integers and None".into()));
            };
            Ok(Rearrangement::Inner(coord).check(&divided.shape())?)
        }
        "local_tile" | "partition_A" | "partition_B" | "partition_C" | "partition_S" | "partition_D" => {
            listed(tensor, made)
        }
        // A mode that occurs twice covers more than once, and a filler may be any layout.
        "select" | "append_to_rank" | "prepend_to_rank" => listed(tensor, made),
        _ => Ok(()),
    }
}

fn tiler(arguments: &[Value]) -> Result<Tiler, RefusedView> {
    match arguments.get(1).and_then(Value::to_tiler) {
        Some(tiler) => Ok(tiler?),
        None => Err(RefusedView::Call("tiles of a tensor are of known sizes, with offsets of integers".into())),
    }
}

/// A value as a coordinate.
fn coordinate(value: &Value) -> Option<Coord> {
    match value {
        Value::Int(index) => Some(Coord::leaf(Slot::At(*index))),
        Value::Tree(AnyTree::Integer(tree)) => Some(tree.map(|index| Slot::At(*index))),
        Value::Coord(AnyCoord::Integer(coord)) => Some(coord.clone()),
        _ => None,
    }
}

/// An error if a layout has an offset that the tensor does not have, found by enumerating both.
fn listed(tensor: &Placed, made: &AnyLayout) -> Result<(), RefusedView> {
    let made = AnyOffsets::try_from(made)?;
    if made == tensor.offsets {
        return Ok(());
    }
    if tensor.offsets.size() > MOST_LISTED || made.size() > MOST_LISTED {
        return Err(RefusedView::Call(format!(
            "it is not known to stay within the tensor, which has too many elements to list them (over {MOST_LISTED}): \
             take a tile of it first"
        )));
    }
    let own: HashSet<i64> = tensor.offsets.walk().collect();
    let beyond = made.walk().enumerate().find(|(_, offset)| !own.contains(offset));
    match beyond {
        None => Ok(()),
        Some((index, offset)) => Err(RefusedView::Call(format!(
            "{made} reaches offset {offset} at index {index}, where {} has no element",
            tensor.layout
        ))),
    }
}
