//! `tilewright emit`: index arithmetic as source text.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tilewright::emit::{
    Computation, EmitError, Integer, Language, Map, Promise, Style, Variables, coordinate, inside, value,
};
use tilewright::layout::symbolic::Expr;
use tilewright::{Tree, Value, evaluate};

use crate::output::Failure;
use crate::reader;
use crate::terminal::Terminal;

/// The expression to emit, and how it is written.
#[derive(Debug, Args)]
pub struct EmitOptions {
    /// The language.
    #[arg(long, value_parser = languages(), default_value = "c")]
    lang: Language,
    /// The variables: one index, one for each mode, or one for each leaf of the shape.
    #[arg(long, value_enum, default_value = "leaves")]
    at: At,
    /// The names of the variables, in order, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    names: Option<Vec<String>>,
    /// Assumption about the variables.
    #[arg(long, value_enum, default_value = "inside")]
    promise: Promised,
    /// The coordinate in the shape of the value, instead of the offset.
    #[arg(long)]
    coordinate: bool,
    /// Whether the value is within these bounds, an expression for a number or a tuple, instead of
    /// the value.
    #[arg(long, value_name = "BOUNDS", conflicts_with = "coordinate", allow_hyphen_values = true)]
    inside: Option<String>,
    /// The form of the text.
    #[arg(long, value_enum, default_value = "function")]
    form: Form,
    /// The name of the function; else `offset`, `coordinate` or `inside`.
    #[arg(long)]
    name: Option<String>,
    /// The bits of the integers.
    #[arg(long, value_name = "BITS", value_parser = bits, default_value = "64")]
    int: Integer,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum At {
    Index,
    Modes,
    Leaves,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Promised {
    /// Each is inside the part of the shape that it counts.
    Inside,
    /// None is negative.
    NotNegative,
    /// Nothing is.
    Nothing,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// One expression for each result.
    Expression,
    /// A statement for each common part and each result.
    Statements,
    /// A whole function.
    Function,
}

impl EmitOptions {
    fn name(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None if self.coordinate => "coordinate",
            None if self.inside.is_some() => "inside",
            None => "offset",
        }
    }
}

fn languages() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(["rust", "c", "cuda", "python", "triton"]).try_map(|name| name.parse::<Language>())
}

fn bits(text: &str) -> Result<Integer, String> {
    match text {
        "32" => Ok(Integer::I32),
        "64" => Ok(Integer::I64),
        _ => Err("32 or 64".to_string()),
    }
}

pub fn run(expression: &str, options: &EmitOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    // Facts about a name in the expression also apply to the bounds.
    let mut names = reader::environment();
    let layout = reader::evaluate(expression, &mut names);
    reader::note(&mut names);
    let layout = layout?;
    let Some(map) = map_of(&layout) else {
        return Err(Failure::not(expression, &layout, "a layout"));
    };
    let place = match options.at {
        At::Index => Variables::index(),
        At::Modes => Variables::modes(),
        At::Leaves => Variables::leaves(),
    };
    let place = place.promised(match options.promise {
        Promised::Inside => Promise::Inside,
        Promised::NotNegative => Promise::NotNegative,
        Promised::Nothing => Promise::Nothing,
    });
    let place = match &options.names {
        Some(names) => place.named(names.iter().map(String::as_str)),
        None => place,
    };
    let computed = match &options.inside {
        Some(source) => {
            let bounds = evaluate(source, &mut names).map_err(|error| Failure::of_expression(error, source))?;
            let Some(bounds) = numbers_of(&bounds) else {
                return Err(Failure::not(source, &bounds, "a number or a tuple of numbers"));
            };
            inside(&map, &bounds, &place)
        }
        None if options.coordinate => match shape_of(&map) {
            Some(shape) => coordinate(&shape, &place),
            None => return Err(Failure::not(expression, &layout, "a value with a shape")),
        },
        None => value(&map, &place),
    };
    let text = text(&computed?, options)?;
    Ok(terminal.text(&text)?)
}

fn text(computation: &Computation, options: &EmitOptions) -> Result<String, EmitError> {
    let style = Style::new(options.lang).with_integer(options.int);
    match options.form {
        Form::Expression => Ok(computation.expressions(style)?.iter().map(|text| format!("{text}\n")).collect()),
        Form::Statements => computation.statements(style),
        Form::Function => computation.function(options.name(), style),
    }
}

/// The map that a value is; a shape means its compact layout.
fn map_of(value: &Value) -> Option<Map> {
    Some(match value {
        Value::Swizzle(swizzle) => (*swizzle).into(),
        Value::Matrix(matrix) => matrix.clone().into(),
        Value::Linear(map) => map.to_composed().ok()?.into(),
        other => other.operand_layout()?.into(),
    })
}

/// A value as a tree of numbers.
fn numbers_of(value: &Value) -> Option<Tree<Expr>> {
    match value {
        Value::Int(number) => Some(Tree::leaf(Expr::from(*number))),
        Value::Tree(tree) => tree.launch(),
        _ => None,
    }
}

/// The shape of a map.
fn shape_of(map: &Map) -> Option<Tree<Expr>> {
    match map {
        Map::Layout(layout) => layout.shape().launch(),
        _ => None,
    }
}
