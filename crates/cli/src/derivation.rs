//! How the value of an expression comes about: the formulas of its derivation, and a picture of
//! each operation.
//!
//! Law: the formulas say everything, and a picture shows it once more for the eye. An operation
//! that has no picture of its own shows the layouts that go in and the one that comes out. What
//! cannot be drawn is told without a picture.

use std::fmt::Write as _;
use std::path::Path;

use tilewright::draw::{
    self, Banks, DrawError, Figure, Format, Map, Medium, Page, Paint, Style, Theme, composition, composition_by_mode,
    filled, memory, offsets, over_indices, slices,
};
use tilewright::layout::{AnyLayout, Coord, LayoutError};
use tilewright::notation::{About, Call, Derivation, derive};
use tilewright::{Environment, Layout, Value};

use crate::draw::{swizzles, tiling};
use crate::map;
use crate::output::{Failure, write_file};
use crate::picture;
use crate::reader::plain;
use crate::terminal::Terminal;

/// One operation of a derivation: its formula, the lines about it, and its pictures.
struct Section {
    indent: usize,
    formula: String,
    lines: Vec<String>,
    figures: Vec<Figure<'static>>,
}

/// Tells on the terminal how the value of an expression comes about, or why there is none.
pub fn tell(source: &str, brief: bool, environment: &mut Environment, terminal: &mut Terminal) -> Result<(), Failure> {
    let derivation = derive(source, environment);
    let mut text = derivation.to_string();
    if !brief {
        let sections = sections(&derivation, Medium::Terminal);
        let several = sections.iter().filter(|section| !section.figures.is_empty()).count() > 1;
        let colours = picture::colours(terminal.colour);
        for section in &sections {
            if several && !section.figures.is_empty() {
                let _ = writeln!(text, "\n{}", section.formula);
            }
            for figure in &section.figures {
                let picture = figure.picture(terminal.window(), colours).text(2, colours, draw::Mode::Light);
                let _ = writeln!(text, "\n{}", picture.trim_end_matches('\n'));
            }
        }
    }
    if derivation.value.is_err() && !derivation.steps.is_empty() {
        text.push('\n');
    }
    terminal.text(&text)?;
    derivation.value.map(|_| ()).map_err(|diagnostic| Failure::of_expression(diagnostic, source))
}

/// Writes a web page on how the value of an expression comes about, or why there is none.
pub fn write(
    source: &str,
    file: &Path,
    theme: Theme,
    environment: &mut Environment,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if Format::of_file(file) != Ok(Format::Html) {
        return Err(Failure::Usage("an explanation is a web page: end the name with .html".to_owned()));
    }
    let derivation = derive(source, environment);
    let mut page = Page::new(source, theme);
    match &derivation.value {
        Ok(value) => page.value(format!("= {value}")),
        Err(diagnostic) => page.wrong(diagnostic.render(source, false)),
    }
    for section in sections(&derivation, Medium::Page) {
        page.part(section.formula);
        page.formulas(section.lines.join("\n"));
        section.figures.iter().for_each(|figure| page.figure(figure));
    }
    write_file(file, page.html().as_bytes(), terminal)?;
    derivation.value.map(|_| ()).map_err(|diagnostic| Failure::of_expression(diagnostic, source))
}

/// The operations of a derivation, each with what is said about it.
fn sections(derivation: &Derivation, medium: Medium) -> Vec<Section> {
    let style = Style { medium, ..Style::default() };
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
                    // A value that no operation makes.
                    let figures = match about {
                        About::Value(_, value) => shown(value, style).into_iter().collect(),
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

/// The picture of a value by itself.
fn shown(value: &Value, style: Style) -> Option<Figure<'static>> {
    match value {
        Value::Layout(AnyLayout::Composed(map)) if swizzles(map) => {
            Some(draw::swizzle(map, Banks::of_elements(16), style))
        }
        Value::Swizzle(swizzle) => Some(draw::swizzle(&swizzle.layout().ok()?, Banks::of_elements(16), style)),
        _ => alone(value, style),
    }
}

/// A value as what it is: a grid of what it gives, a matrix of bits, a diagram.
fn alone(value: &Value, style: Style) -> Option<Figure<'static>> {
    match value {
        Value::Matrix(map) => Some(draw::bits(&value.to_string(), map, style)),
        Value::Linear(map) => Some(draw::bits(&value.to_string(), map.matrix(), style)),
        Value::Morphism(f) => draw::morphism(f).ok(),
        _ => Some(offsets(&value.to_string(), &map::of(value)?, style)),
    }
}

/// The pictures of an operation; none where it, or its layouts, cannot be drawn.
fn figures(function: &'static str, arguments: &[Value], result: Option<&Value>, style: Style) -> Vec<Figure<'static>> {
    if let Some(Ok(figure)) = crate::morphism::operation(function, arguments, result) {
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

/// The layouts that go in, and the one that comes out.
fn before_and_after(arguments: &[Value], result: Option<&Value>, style: Style) -> Option<Figure<'static>> {
    let drawn = |value: &Value| alone(value, style);
    // One operand alone says little where the other has numbers that are not known.
    if arguments.iter().chain(result).any(|value| !value.parameters().is_empty()) {
        return None;
    }
    let before = arguments.iter().filter_map(drawn).reduce(Figure::beside);
    match (before, result.and_then(drawn)) {
        (Some(before), Some(after)) => Some(before.followed_by(after)),
        (before, after) => before.or(after),
    }
}

/// A composition mode by mode and as a whole, or the place where it goes wrong.
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

/// A layout over memory and the copies that fill its gaps; its gaps alone where nothing fills them.
fn complemented(a: &Layout, result: Option<&Value>, style: Style) -> Result<Vec<Figure<'static>>, DrawError> {
    Ok(vec![match result.and_then(plain) {
        Some(rest) => filled(a, &rest, style)?,
        None => memory(&format!("A = {a}"), &Map::from(a), 32, style)?,
    }])
}

/// A shape as its compact layout, whose values are the indices.
fn compact(shape: &Value) -> Option<Value> {
    plain(shape).map(Value::from)
}

/// The places of two coordinates, each in the indices of its shape.
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

/// The place of one coordinate in a layout.
fn element(map: &Value, coordinate: &Value, style: Style) -> Option<Result<Vec<Figure<'static>>, DrawError>> {
    let drawn = map::of(map)?;
    let coordinate: Coord = coordinate.to_string().parse().ok()?;
    Some(slices(&map.to_string(), &drawn, &[coordinate], style).map(|figure| vec![figure]))
}
