//! `tilewright morphism`, `compose`, `refine` and `tractable`: layouts as morphisms of tuples.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tilewright::draw::{self, DrawError, Figure, Format, Theme};
use tilewright::morphism::{
    Class, MorphismError, MutualRefinement, NestMorphism, Refinement, Span, Square, WorkedComposition, classify,
    standard_representation, tractability,
};
use tilewright::notation::call;
use tilewright::{Environment, Layout, Tree, Value, evaluate};

use crate::draw::{ThemeName, plain};
use crate::picture;
use crate::terminal::{Failure, Terminal};

/// Where the picture goes, and in which form.
#[derive(Debug, Args)]
pub struct Options {
    /// Write the picture to a file: .svg, .html, .png, .pdf, .tex or .txt.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["svg", "tikz", "json"])]
    output: Option<PathBuf>,
    /// Print the picture as SVG.
    #[arg(long, conflicts_with_all = ["tikz", "json"])]
    svg: bool,
    /// Print the picture as TikZ.
    #[arg(long, conflicts_with = "json")]
    tikz: bool,
    /// Print a JSON object instead of a picture.
    #[arg(long)]
    json: bool,
    /// Light, dark, or what the reader prefers, where the format can ask.
    #[arg(long, value_enum, default_value = "auto")]
    theme: ThemeName,
}

impl Options {
    /// Whether the picture is all that is wanted.
    fn only_picture(&self) -> bool {
        self.output.is_some() || self.svg || self.tikz
    }

    /// Puts the picture where it is wanted; in the terminal below what was told.
    fn show(&self, figure: Result<Figure<'static>, DrawError>, terminal: &mut Terminal) -> Result<(), Failure> {
        let refuse = |terminal: &mut Terminal, error: DrawError| {
            refused(terminal, error.code(), &error.to_string(), &error.help())
        };
        let figure = figure.map_err(|error| refuse(terminal, error))?;
        let theme = Theme::from(self.theme);
        if let Some(file) = &self.output {
            let bytes = Format::of_file(file).and_then(|format| figure.file(format, theme, 2.0));
            let bytes = bytes.map_err(|error| refuse(terminal, error))?;
            return Ok(std::fs::write(file, bytes)?);
        }
        let text = match (self.svg, self.tikz) {
            (true, _) => figure.svg(theme),
            (_, true) => figure.tikz(theme),
            _ => {
                let colours = picture::colours(terminal.colour);
                figure.picture(terminal.window(), colours).text(0, colours, theme.mode())
            }
        };
        Ok(terminal.out.write_all(text.as_bytes())?)
    }
}

/// Shows a refusal on standard error.
fn refused(terminal: &mut Terminal, code: &str, message: &str, help: &str) -> Failure {
    let help = if help.is_empty() { String::new() } else { format!("  help: {help}\n") };
    terminal.message(&format!("error[{code}]: {message}\n{help}"));
    Failure::Refused
}

fn refuse(terminal: &mut Terminal, error: &MorphismError) -> Failure {
    refused(terminal, error.code(), &error.to_string(), &error.help().unwrap_or_default())
}

fn value(source: &str, terminal: &mut Terminal) -> Result<Value, Failure> {
    evaluate(source, &mut Environment::new()).map_err(|error| terminal.report(&error, source))
}

fn layout(source: &str, terminal: &mut Terminal) -> Result<Layout, Failure> {
    let compact = |shape: &Tree<i64>, terminal: &mut Terminal| {
        Layout::compact(shape).map_err(|error| refuse(terminal, &error.into()))
    };
    match value(source, terminal)? {
        Value::Layout(layout) => Ok(layout),
        Value::Int(extent) => compact(&Tree::from(extent), terminal),
        Value::Tree(shape) => compact(&shape, terminal),
        Value::Morphism(f) => f.encoded_layout().map_err(|error| refuse(terminal, &error)),
        other => Err(Failure::Usage(format!("a {} is no layout of integers", other.kind()))),
    }
}

/// The pictures of an operation on morphisms, or by way of them, if it is one: squares and refinements have their own, and the others show the morphisms
/// that go in and the one that comes out. What is applied first stands first.
pub fn operation(
    function: &str,
    arguments: &[Value],
    result: Option<&Value>,
) -> Option<Result<Figure<'static>, DrawError>> {
    match (function, arguments) {
        ("pullback" | "pushforward", [Value::Morphism(f), along]) => {
            Some(draw::square(&square(function, f, &tuple(along)?)?.ok()?))
        }
        ("mutual_refinement", [first, second]) => {
            Some(draw::mutual_refinement(&MutualRefinement::new(&tuple(first)?, &tuple(second)?).ok()?))
        }
        ("composition_by_refinement", [outer, inner]) => {
            Some(draw::worked_composition(&WorkedComposition::new(&plain(outer)?, &plain(inner)?).ok()?))
        }
        _ => {
            let drawn = |value: &Value| match value {
                Value::Morphism(f) => Some(draw::morphism(f)),
                _ => None,
            };
            let beside = |left: Result<Figure<'static>, _>, right: Result<Figure<'static>, _>| Ok(left?.beside(right?));
            let mut before: Vec<_> = arguments.iter().filter_map(drawn).collect();
            if matches!(function, "composition" | "weak_composite") {
                before.reverse();
            }
            let before = before.into_iter().reduce(beside);
            match (before, result.and_then(drawn)) {
                (Some(before), Some(after)) => Some(before.and_then(|before| Ok(before.followed_by(after?)))),
                (before, after) => before.or(after),
            }
        }
    }
}

/// The pullback or pushforward of a morphism along a tuple; none for another function.
fn square(function: &str, f: &NestMorphism, fine: &Tree<i64>) -> Option<Result<Square, MorphismError>> {
    match function {
        "pullback" => Some(Refinement::new(fine, &f.codomain()).and_then(|along| f.pullback(&along))),
        "pushforward" => Some(Refinement::new(fine, &f.domain()).and_then(|along| f.pushforward(&along))),
        _ => None,
    }
}

fn tuple(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Int(extent) => Some(Tree::from(*extent)),
        Value::Tree(shape) => Some(shape.clone()),
        Value::Layout(layout) => Some(layout.shape()),
        _ => None,
    }
}

/// The morphism that a value is, or the standard one of its layout; none for what is neither.
pub fn morphism_of(value: &Value) -> Option<Result<NestMorphism, MorphismError>> {
    match value {
        Value::Morphism(f) => Some(Ok(NestMorphism::clone(f))),
        value => Some(standard_representation(&plain(value)?)),
    }
}

/// `tilewright morphism`
pub fn run(expression: &str, span: bool, options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let made = call(expression, &mut Environment::new()).map_err(|error| terminal.report(&error, expression))?;
    let value = match &made {
        Some(made) => made.value.clone(),
        None => value(expression, terminal)?,
    };
    let Some(f) = morphism_of(&value) else {
        return Err(Failure::Usage(format!("a {} is no morphism, and no layout of integers", value.kind())));
    };
    let f = f.map_err(|error| refuse(terminal, &error))?;
    if span {
        return options.show(draw::span(&Span::of_modes(&f).map_err(|error| refuse(terminal, &error))?), terminal);
    }
    if options.json {
        return Ok(writeln!(terminal.out, "{}", crate::json::value(&Value::from(f)))?);
    }
    let own = made.filter(|made| matches!(made.function, "pullback" | "pushforward"));
    let own = own.and_then(|made| operation(made.function, &made.arguments, None));
    options.show(own.unwrap_or_else(|| draw::morphism(&f)), terminal)
}

/// `tilewright compose`
pub fn run_compose(
    outer: &str,
    inner: &str,
    by_refinement: bool,
    options: &Options,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let (a, b) = (layout(outer, terminal)?, layout(inner, terminal)?);
    let composite = a.compose(&b).map_err(|error| refuse(terminal, &error.into()))?;
    if !by_refinement {
        if options.only_picture() {
            return Err(Failure::Usage("a composition is drawn with --by-refinement".to_owned()));
        }
        let text = if options.json { crate::json::value(&Value::from(composite)) } else { composite.to_string() };
        return Ok(writeln!(terminal.out, "{text}")?);
    }
    let worked = WorkedComposition::new(&a, &b);
    let class = classify(&a, &b).ok();
    if options.json {
        let text = crate::json::composition(&composite, worked.as_ref(), class);
        return Ok(writeln!(terminal.out, "{text}")?);
    }
    match worked {
        Ok(worked) if options.only_picture() => options.show(draw::worked_composition(&worked), terminal),
        Ok(worked) => Ok(terminal.out.write_all(steps(&worked, &composite).as_bytes())?),
        Err(error) if options.only_picture() => Err(refuse(terminal, &error)),
        Err(error) => Ok(terminal.out.write_all(exists(&composite, &error, class).as_bytes())?),
    }
}

/// The steps of a composition by refinement.
fn steps(worked: &WorkedComposition, composite: &Layout) -> String {
    let WorkedComposition {
        inner, outer, coalesced, first, second, mutual, pullback, pushforward, morphism, weak, ..
    } = worked;
    let mut text = String::new();
    let mut line = |label: &str, what: String| text.push_str(&format!("{label:<24}{what}\n"));
    line("1. inner", format!("{inner} is {first}"));
    let merged = if coalesced == outer { String::new() } else { format!(" = {coalesced}") };
    line("   outer", format!("{outer}{merged} is {second}"));
    line("2. mutual refinement", format!("{} | {} is {mutual}", first.codomain(), second.domain()));
    line("3. pullback", pullback.morphism.to_string());
    line("   pushforward", pushforward.morphism.to_string());
    line("4. composed", format!("{morphism}, which encodes {weak}"));
    let agrees = if &worked.composite == composite { "as composition has it" } else { "unlike composition" };
    line("5. composite", format!("{}, {agrees}", worked.composite));
    text
}

/// That a composite exists, though not by refinement.
fn exists(composite: &Layout, error: &MorphismError, class: Option<Class>) -> String {
    let why = class.map_or_else(String::new, |class| format!(": {class}"));
    format!("refinement does not apply [{}]: {error}\nthe composite exists{why}\n{composite}\n", error.code())
}

/// `tilewright refine`: two tuples, or a morphism and how one of its ends is cut.
pub fn run_refine(first: &str, second: &str, options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let (left, right) = (value(first, terminal)?, value(second, terminal)?);
    let square = match (&left, &right) {
        (Value::Morphism(f), fine) => tuple(fine).and_then(|fine| square("pullback", f, &fine)),
        (fine, Value::Morphism(f)) => tuple(fine).and_then(|fine| square("pushforward", f, &fine)),
        _ => None,
    };
    if let Some(square) = square {
        let square = square.map_err(|error| refuse(terminal, &error))?;
        if options.json {
            return Ok(writeln!(terminal.out, "{}", crate::json::square(&square))?);
        }
        return options.show(draw::square(&square), terminal);
    }
    let shape = |value: &Value| tuple(value).ok_or_else(|| Failure::Usage(format!("a {} is no tuple", value.kind())));
    let mutual = MutualRefinement::new(&shape(&left)?, &shape(&right)?).map_err(|error| refuse(terminal, &error))?;
    if options.json {
        return Ok(writeln!(terminal.out, "{}", crate::json::mutual(&mutual))?);
    }
    options.show(draw::mutual_refinement(&mutual), terminal)
}

/// `tilewright tractable`
pub fn run_tractable(expression: &str, json: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let layout = layout(expression, terminal)?;
    let reason = tractability(&layout).err();
    if json {
        writeln!(terminal.out, "{}", crate::json::tractable(&layout, reason.as_ref()))?;
        return if reason.is_none() { Ok(()) } else { Err(Failure::Refused) };
    }
    match (standard_representation(&layout), reason) {
        (Ok(f), None) => Ok(writeln!(terminal.out, "{layout} is tractable: {f}")?),
        (_, Some(reason)) => {
            writeln!(terminal.out, "{reason}")?;
            Err(Failure::Refused)
        }
        (Err(error), None) => Err(refuse(terminal, &error)),
    }
}
