//! The picture of a value, of a call, and of each step of a derivation.
//!
//! Law: pictures are drawn from values. A call whose operation has a picture of its own gets that
//! picture; any other call gets the picture of its value.

mod derivation;
pub mod instructions;
pub mod morphisms;
pub mod tiles;

use crate::{self as draw, Banks, DrawError, Figure, Multiplication, Style};
use tilewright_layout::{AnyLayout, Composed, DivideForm, OuterMap};
use tilewright_notation::{Call, Value};

use crate::explain::map::{self, plain};

pub use derivation::{Section, sections};

/// The picture of a value, or of the call that made it; None for values without a picture: numbers,
/// and values with unknown sizes.
///
/// ```
/// use tilewright_draw::{Banks, Style, Theme};
/// use tilewright_notation::{Environment, call};
///
/// let call = call("zipped_divide((4,6):(6,1), [2:1;3:1])", &mut Environment::new()).unwrap().unwrap();
/// let figure = tilewright_draw::explain::figures::of(&call.value, Some(&call), Style::default(), Banks::of_elements(16));
/// assert!(figure.unwrap().unwrap().svg(Theme::Light).contains("4 tiles of 6"));
/// ```
pub fn of(
    value: &Value,
    call: Option<&Call>,
    style: Style,
    banks: Banks,
) -> Result<Option<Figure<'static>>, DrawError> {
    if let Some(figure) = of_bits(value, style, banks)? {
        return Ok(Some(figure));
    }
    // If a call cannot be drawn as its operation, its value is drawn.
    match call.map(|call| of_call(call, style)) {
        Some(Ok(Some(figure))) => Ok(Some(figure)),
        Some(Err(error)) => Err(error),
        _ => alone(value, style),
    }
}

/// The picture of a value, without its call.
pub(crate) fn of_value(value: &Value, style: Style) -> Result<Option<Figure<'static>>, DrawError> {
    of(value, None, style, Banks::of_elements(16))
}

/// A swizzle with its banks, or a linear map over bits as its matrix.
fn of_bits(value: &Value, style: Style, banks: Banks) -> Result<Option<Figure<'static>>, DrawError> {
    Ok(match value {
        Value::Layout(AnyLayout::Composed(map)) if swizzles(map) => Some(draw::swizzle(map, banks, style)),
        Value::Swizzle(swizzle) => Some(draw::swizzle(&swizzle.layout()?, banks, style)),
        Value::Matrix(map) => Some(draw::bits(&value.to_string(), map, style)),
        Value::Linear(map) => Some(draw::bits(&value.to_string(), map.matrix(), style)),
        _ => None,
    })
}

/// The picture of a value without its call: a grid of its values, a matrix of bits, or a diagram.
pub(crate) fn alone(value: &Value, style: Style) -> Result<Option<Figure<'static>>, DrawError> {
    match value {
        Value::Matrix(map) => Ok(Some(draw::bits(&value.to_string(), map, style))),
        Value::Linear(map) => Ok(Some(draw::bits(&value.to_string(), map.matrix(), style))),
        Value::Morphism(f) => draw::morphism(f).map(Some),
        _ => Ok(map::of(value).map(|map| draw::offsets(&value.to_string(), &map, style))),
    }
}

fn swizzles(map: &Composed) -> bool {
    matches!(map.outer(), OuterMap::Swizzle(_) | OuterMap::Bits(_))
}

/// The picture of a composition, complement, division or product of layouts, if the call is one.
pub fn of_call(call: &Call, style: Style) -> Result<Option<Figure<'static>>, DrawError> {
    match (call.function, call.arguments.as_slice()) {
        ("composition" | "composition_within", [a, Value::Layout(AnyLayout::Integer(b))]) => {
            let figure = plain(a).map(|a| draw::composition(&a, b, style));
            Ok(figure.transpose()?)
        }
        ("make_layout_tv", _) => {
            // The tile, and the thread and value that hold each of its elements.
            let Value::List(parts) = &call.value else { return Ok(None) };
            let [tile, Value::Layout(held)] = parts.as_slice() else { return Ok(None) };
            let (Some(tile), Some(map)) = (tile.integer_tree(), map::of(&Value::Layout(held.clone()))) else {
                return Ok(None);
            };
            draw::thread_value(&held.to_string(), &map, &tile, style).map(Some)
        }
        ("complement" | "weak_complement", [a, _]) => {
            let (Some(a), Some(rest)) = (plain(a), plain(&call.value)) else { return Ok(None) };
            Ok(Some(draw::filled(&a, &rest, style)?))
        }
        _ => match morphisms::operation(call.function, &call.arguments, Some(&call.value)) {
            Some(figure) => Ok(Some(figure?)),
            None => tiling(call, style),
        },
    }
}

/// The picture of a division or product of layouts, if the call is one.
fn tiling(call: &Call, style: Style) -> Result<Option<Figure<'static>>, DrawError> {
    let [first, second] = call.arguments.as_slice() else { return Ok(None) };
    let (Some(layout), Some(tiler)) = (plain(first), second.to_tiler()) else { return Ok(None) };
    if let Some(form) = DivideForm::ALL.into_iter().find(|form| form.division() == call.function) {
        return Ok(Some(draw::divide(&layout, &tiler?, form, style)?));
    }
    let products = [Multiplication::Logical, Multiplication::Blocked, Multiplication::Raked];
    match (products.into_iter().find(|form| form.name() == call.function), plain(second)) {
        (Some(form), Some(copies)) => Ok(Some(draw::product(&layout, &copies, form, style)?)),
        _ => Ok(None),
    }
}
