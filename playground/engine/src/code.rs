//! Index arithmetic as source text.

use tilewright_layout::Tree;
use tilewright_layout::emit::{
    Computation, Integer, Language, Map, Promise, Style, Variables, coordinate, inside, value,
};
use tilewright_layout::symbolic::Expr;
use tilewright_notation::Value;

use crate::failure::Failure;
use crate::read::Read;
use crate::request::Code;

/// The source text that evaluates the value of a program.
///
/// Errors: the value is no map; a choice is wrong; the text does not exist.
pub fn of(read: &mut Read, code: &Code) -> Result<String, Failure> {
    let layout = read.value()?.clone();
    let Some(map) = map_of(&layout) else {
        return Err(Failure::not("the code", &layout, "a layout"));
    };
    let place = match code.at.as_str() {
        "index" => Variables::index(),
        "modes" => Variables::modes(),
        "leaves" => Variables::leaves(),
        other => return Err(unknown("the variables", other, "index, modes, leaves")),
    };
    let place = place.promised(match code.promise.as_str() {
        "inside" => Promise::Inside,
        "not-negative" => Promise::NotNegative,
        "nothing" => Promise::Nothing,
        other => return Err(unknown("the promise", other, "inside, not-negative, nothing")),
    });
    let language: Language =
        code.lang.parse().map_err(|_| unknown("the language", &code.lang, "rust, c, cuda, python, triton"))?;
    let integer = match code.int.as_str() {
        "32" => Integer::I32,
        "64" => Integer::I64,
        other => return Err(unknown("the bits of the integers", other, "32, 64")),
    };
    let computed = if !code.inside.is_empty() {
        let bounds = read.any("the bounds", &code.inside)?;
        let numbers = match &bounds {
            Value::Int(number) => Some(Tree::leaf(Expr::from(*number))),
            Value::Tree(tree) => tree.launch(),
            _ => None,
        };
        let numbers = numbers.ok_or_else(|| Failure::not("the bounds", &bounds, "a number or a tuple of numbers"))?;
        inside(&map, &numbers, &place)?
    } else if code.coordinate {
        match &map {
            Map::Layout(layout) => match layout.shape().launch() {
                Some(shape) => coordinate(&shape, &place)?,
                None => return Err(Failure::choice("the code: this value has no shape of numbers")),
            },
            _ => return Err(Failure::choice("the code: this value has no shape of numbers")),
        }
    } else {
        value(&map, &place)?
    };
    let style = Style::new(language).with_integer(integer);
    text(&computed, code, style)
}

fn text(computed: &Computation, code: &Code, style: Style) -> Result<String, Failure> {
    let name = match code.name.as_str() {
        "" if !code.inside.is_empty() => "inside",
        "" if code.coordinate => "coordinate",
        "" => "offset",
        name => name,
    };
    Ok(match code.form.as_str() {
        "expression" => computed.expressions(style)?.iter().map(|text| format!("{text}\n")).collect(),
        "statements" => computed.statements(style)?,
        "function" => computed.function(name, style)?,
        other => return Err(unknown("the form", other, "expression, statements, function")),
    })
}

fn unknown(what: &str, given: &str, known: &str) -> Failure {
    Failure::choice(format!("{what}: expected one of {known}, not '{given}'"))
}

/// A value as a map; a shape is its compact layout.
fn map_of(value: &Value) -> Option<Map> {
    Some(match value {
        Value::Swizzle(swizzle) => (*swizzle).into(),
        Value::Matrix(matrix) => matrix.clone().into(),
        Value::Linear(map) => map.to_composed().ok()?.into(),
        other => other.operand_layout()?.into(),
    })
}
