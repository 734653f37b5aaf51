//! The pictures of a derivation, operation by operation.
//!
//! Law: the formulas are complete, and pictures only illustrate them. An operation without a
//! picture of its own shows its operands and its result. A value without a picture has only its
//! formula.

use crate::{
    DrawError, Figure, Map, Paint, Style, composition, composition_by_mode, filled, memory, over_indices, slices,
};
use tilewright_layout::{AnyLayout, Coord, Layout, LayoutError};
use tilewright_notation::{About, Call, Derivation, Value};

use super::{alone, morphisms, of_value, tiling};
use crate::explain::map::{self, plain};

/// One operation of a derivation: its formula, the lines about it, and its pictures.
#[derive(Debug)]
pub struct Section {
    /// Its indentation level.
    pub indent: usize,
    /// Its formula.
    pub formula: String,
    /// The lines about it.
    pub lines: Vec<String>,
    /// Its pictures.
    pub figures: Vec<Figure<'static>>,
}

/// The operations of a derivation, each with its lines and pictures.
pub fn sections(derivation: &Derivation, style: Style) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut operations: Vec<(&'static str, &[Value], Option<&Value>)> = Vec::new();
    for step in &derivation.steps {
        match &step.about {
            About::Operation(function, arguments) => {
                let (formula, indent) = (step.text.clone(), step.indent);
                sections.push(Section { indent, formula, lines: Vec::new(), figures: Vec::new() });
                operations.push((function, arguments, None));
            }
            about => {
                let Some(at) = sections.iter().rposition(|section| section.indent + 1 == step.indent) else {
                    // A value that is not the result of an operation.
                    let figures = match about {
                        About::Value(_, value) => of_value(value, style).ok().flatten().into_iter().collect(),
                        _ => Vec::new(),
                    };
                    let formula = step.text.clone();
                    return vec![Section { indent: 0, formula, lines: Vec::new(), figures }];
                };
                if let Some(section) = sections.get_mut(at) {
                    section.lines.push(step.text.clone());
                }
                if let (About::Value(name, value), Some(operation)) = (about, operations.get_mut(at))
                    && name == "R"
                {
                    operation.2 = Some(value);
                }
            }
        }
    }
    for (section, (function, arguments, result)) in sections.iter_mut().zip(operations) {
        section.figures = figures(function, arguments, result, style);
    }
    sections
}

/// The pictures of an operation; None if it, or its layouts, cannot be drawn.
fn figures(function: &'static str, arguments: &[Value], result: Option<&Value>, style: Style) -> Vec<Figure<'static>> {
    if let Some(Ok(figure)) = morphisms::operation(function, arguments, result) {
        return vec![figure];
    }
    let own = match (function, arguments) {
        ("composition" | "composition_within", [a, Value::Layout(AnyLayout::Integer(b))]) => {
            plain(a).map(|a| composed(&a, b, style))
        }
        ("complement" | "weak_complement", [a, ..]) => plain(a).map(|a| complemented(&a, result, style)),
        ("apply", [map, coordinate]) | ("crd2idx", [coordinate, map]) => element(map, coordinate, style),
        ("idx2crd", [_, shape]) => result.and_then(|found| element(&compact(shape)?, found, style)),
        ("crd2crd", [coordinate, from, to]) => {
            result.and_then(|found| both_places([coordinate, found], [from, to], style))
        }
        ("increment_coord", [coordinate, shape]) => {
            result.and_then(|found| both_places([coordinate, found], [shape, shape], style))
        }
        _ => {
            let call = result.map(|value| Call { function, arguments: arguments.to_vec(), value: value.clone() });
            call.and_then(|call| tiling(&call, style).ok().flatten()).map(|figure| Ok(vec![figure]))
        }
    };
    match own {
        Some(Ok(figures)) => figures,
        _ => before_and_after(arguments, result, style).into_iter().collect(),
    }
}

/// The operands and the result.
fn before_and_after(arguments: &[Value], result: Option<&Value>, style: Style) -> Option<Figure<'static>> {
    let drawn = |value: &Value| alone(value, style).ok().flatten();
    // If a parameter of one operand is unknown, a picture of the other operand alone says little.
    if arguments.iter().chain(result).any(|value| !value.parameters().is_empty()) {
        return None;
    }
    let before = arguments.iter().filter_map(drawn).reduce(Figure::beside);
    match (before, result.and_then(drawn)) {
        (Some(before), Some(after)) => Some(before.followed_by(after)),
        (before, after) => before.or(after),
    }
}

/// A composition mode by mode and as a whole. If the composition does not exist, the index at which
/// it fails.
fn composed(a: &Layout, b: &Layout, style: Style) -> Result<Vec<Figure<'static>>, DrawError> {
    let modes = composition_by_mode(a, b, style)?;
    Ok(match a.compose(b) {
        Ok(_) => vec![modes, composition(a, b, style)?],
        Err(LayoutError::Carry(carry)) => {
            let mut marks = Vec::new();
            let mut together = 0_i64;
            for ((position, leaf), number) in carry.coordinate().iter().zip(b.leaves().iter()).zip(0_i64..) {
                let index = position.saturating_mul(leaf.stride);
                together = together.saturating_add(index);
                if *position != 0 {
                    let paint = style.palette.paint(number, 8);
                    marks.push((index, paint, format!("position {position} of {}:{}", leaf.extent, leaf.stride)));
                }
            }
            let apart = marks.len() > 1;
            marks.push((
                together,
                Paint::Warn,
                if apart {
                    if marks.len() > 2 { "all together" } else { "both together" }
                } else {
                    "past the end of the mode"
                }
                .to_owned(),
            ));
            let heading = format!("A = {a} over its indices");
            vec![modes].into_iter().chain(over_indices(&heading, a, &marks, style)?).collect()
        }
        Err(_) => vec![modes],
    })
}

/// A layout over memory and the copies that fill its gaps; only the gaps if there is no complement.
fn complemented(a: &Layout, result: Option<&Value>, style: Style) -> Result<Vec<Figure<'static>>, DrawError> {
    Ok(vec![match result.and_then(plain) {
        Some(rest) => filled(a, &rest, style)?,
        None => memory(&format!("A = {a}"), &Map::from(a), 32, style)?,
    }])
}

/// The compact layout of a shape, whose values are the indices.
fn compact(shape: &Value) -> Option<Value> {
    plain(shape).map(Value::from)
}

/// The positions of two coordinates, each among the indices of its own shape.
fn both_places(
    coordinates: [&Value; 2],
    shapes: [&Value; 2],
    style: Style,
) -> Option<Result<Vec<Figure<'static>>, DrawError>> {
    let [from, to] = [0, 1].map(|side| element(&compact(shapes.get(side)?)?, coordinates.get(side)?, style));
    let joined = |from: Vec<Figure<'static>>, to: Vec<Figure<'static>>| {
        let (from, to) = (from.into_iter().next()?, to.into_iter().next()?);
        Some(vec![from.followed_by(to)])
    };
    match (from?, to?) {
        (Ok(from), Ok(to)) => joined(from, to).map(Ok),
        (Err(error), _) | (_, Err(error)) => Some(Err(error)),
    }
}

/// The position of a coordinate in a layout.
fn element(map: &Value, coordinate: &Value, style: Style) -> Option<Result<Vec<Figure<'static>>, DrawError>> {
    let drawn = map::of(map)?;
    let coordinate: Coord = coordinate.to_string().parse().ok()?;
    Some(slices(&map.to_string(), &drawn, &[coordinate], style).map(|figure| vec![figure]))
}
