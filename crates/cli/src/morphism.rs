//! `tilewright morphism`, `compose`, `refine` and `tractable`: layouts as morphisms of tuples.

use clap::Args;
use tilewright::draw::{self, DrawError, Figure};
use tilewright::explain::figures::morphisms::{operation, square, tuple};
use tilewright::layout::AnyTree;
use tilewright::morphism::{
    Class, MorphismError, MutualRefinement, NestMorphism, Span, WorkedComposition, classify, standard_representation,
    tractability,
};
use tilewright::{Layout, Tree, Value};

use crate::json;
use crate::output::{Failure, SCALE, Saving};
use crate::reader::{Read, Reader, plain};
use crate::terminal::Terminal;

/// Where the picture goes, and in which form.
#[derive(Debug, Args)]
pub struct PictureOptions {
    #[command(flatten)]
    saving: Saving,
    /// Print the picture as SVG.
    #[arg(long, conflicts_with_all = ["output", "tikz"])]
    svg: bool,
    /// Print the picture as TikZ.
    #[arg(long, conflicts_with = "output")]
    tikz: bool,
}

impl PictureOptions {
    /// Whether the picture is all that is wanted.
    fn only_picture(&self) -> bool {
        self.saving.output.is_some() || self.svg || self.tikz
    }

    /// Shows the picture in a file or on the terminal.
    fn show(&self, figure: Result<Figure<'static>, DrawError>, terminal: &mut Terminal) -> Result<(), Failure> {
        let figure = figure?;
        match (self.svg, self.tikz) {
            (true, _) => Ok(terminal.text(&figure.svg(self.saving.theme()))?),
            (_, true) => Ok(terminal.text(&figure.tikz(self.saving.theme()))?),
            _ => self.saving.show(&figure, SCALE, terminal),
        }
    }
}

/// The layout of an expression, or of its morphism.
fn layout(source: &str) -> Result<Layout, Failure> {
    match Reader::default().value(source)? {
        Value::Int(extent) => Ok(Layout::compact(&Tree::from(extent))?),
        Value::Tree(AnyTree::Integer(shape)) => Ok(Layout::compact(&shape)?),
        Value::Morphism(f) => Ok(f.encoded_layout()?),
        value => plain(&value).ok_or_else(|| Failure::not(source, &value, "a layout of integers")),
    }
}

/// The value as a morphism, or the standard morphism of its layout.
pub fn morphism_of(read: &Read) -> Result<NestMorphism, Failure> {
    match &read.value {
        Value::Morphism(f) => Ok(NestMorphism::clone(f)),
        value => match plain(value) {
            Some(layout) => Ok(standard_representation(&layout)?),
            None => Err(Failure::not(&read.source, value, "a morphism or a layout of integers")),
        },
    }
}

/// `tilewright morphism`
pub fn run(expression: &str, span: bool, options: &PictureOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    options.saving.file()?;
    let read = Reader::default().call(expression)?;
    let f = morphism_of(&read)?;
    if terminal.json && !options.only_picture() {
        return Ok(terminal.object(&json::value(&Value::from(f)))?);
    }
    if span {
        return options.show(draw::span(&Span::of_modes(&f)?), terminal);
    }
    let own = read.call.filter(|made| matches!(made.function, "pullback" | "pushforward"));
    let own = own.and_then(|made| operation(made.function, &made.arguments, None));
    options.show(own.unwrap_or_else(|| draw::morphism(&f)), terminal)
}

/// `tilewright compose`
pub fn run_compose(
    outer: &str,
    inner: &str,
    by_refinement: bool,
    options: &PictureOptions,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    options.saving.file()?;
    let (a, b) = (layout(outer)?, layout(inner)?);
    let composite = a.compose(&b)?;
    if !by_refinement {
        if options.only_picture() {
            return Err(Failure::Usage("a composition is drawn with --by-refinement".to_owned()));
        }
        if terminal.json {
            return Ok(terminal.object(&json::value(&Value::from(composite)))?);
        }
        return Ok(terminal.text(&format!("{composite}\n"))?);
    }
    let worked = WorkedComposition::new(&a, &b);
    let class = classify(&a, &b).ok();
    if terminal.json && !options.only_picture() {
        return Ok(terminal.object(&json::composition(&composite, worked.as_ref(), class))?);
    }
    match worked {
        Ok(worked) if options.only_picture() => options.show(draw::worked_composition(&worked), terminal),
        Ok(worked) => Ok(terminal.text(&steps(&worked, &composite))?),
        Err(error) if options.only_picture() => Err(error.into()),
        Err(error) => Ok(terminal.text(&exists(&composite, &error, class))?),
    }
}

/// The steps of a composition by refinement.
fn steps(worked: &WorkedComposition, composite: &Layout) -> String {
    let WorkedComposition {
        inner, outer, coalesced, first, second, mutual, included, pushforward, morphism, weak, ..
    } = worked;
    let mut text = String::new();
    let mut line = |label: &str, what: String| text.push_str(&format!("{label:<24}{what}\n"));
    line("1. inner", format!("{inner} is {first}"));
    let merged = if coalesced == outer { String::new() } else { format!(" = {coalesced}") };
    line("   outer", format!("{outer}{merged} is {second}"));
    line("2. mutual refinement", format!("{} | {} is {mutual}", first.codomain(), second.domain()));
    line("3. pullback", included.to_string());
    line("   pushforward", pushforward.morphism.to_string());
    line("4. composed", format!("{morphism}, which encodes {weak}"));
    let agrees = if &worked.composite == composite { "as composition has it" } else { "unlike composition" };
    line("5. composite", format!("{}, {agrees}", worked.composite));
    text
}

/// The text for a composite that exists, but not by refinement.
fn exists(composite: &Layout, error: &MorphismError, class: Option<Class>) -> String {
    let why = class.map_or_else(String::new, |class| format!(": {class}"));
    format!("refinement does not apply [{}]: {error}\nthe composite exists{why}\n{composite}\n", error.code())
}

/// `tilewright refine`: two tuples, or a morphism and how one of its ends is cut.
pub fn run_refine(first: &str, second: &str, options: &PictureOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    options.saving.file()?;
    let mut reader = Reader::default();
    let (left, right) = (reader.value(first)?, reader.value(second)?);
    let as_json = terminal.json && !options.only_picture();
    let square = match (&left, &right) {
        (Value::Morphism(f), fine) => tuple(fine).and_then(|fine| square("pullback", f, &fine)),
        (fine, Value::Morphism(f)) => tuple(fine).and_then(|fine| square("pushforward", f, &fine)),
        _ => None,
    };
    if let Some(square) = square {
        let square = square?;
        if as_json {
            return Ok(terminal.object(&json::square(&square))?);
        }
        return options.show(draw::square(&square), terminal);
    }
    let shape = |source: &str, value: &Value| tuple(value).ok_or_else(|| Failure::not(source, value, "a tuple"));
    let mutual = MutualRefinement::new(&shape(first, &left)?, &shape(second, &right)?)?;
    if as_json {
        return Ok(terminal.object(&json::mutual(&mutual))?);
    }
    options.show(draw::mutual_refinement(&mutual), terminal)
}

/// `tilewright tractable`
pub fn run_tractable(expression: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let layout = layout(expression)?;
    let reason = tractability(&layout).err();
    if terminal.json {
        terminal.object(&json::tractable(&layout, reason.as_ref()))?;
        return if reason.is_none() { Ok(()) } else { Err(Failure::No) };
    }
    match reason {
        None => Ok(terminal.text(&format!("{layout} is tractable: {}\n", standard_representation(&layout)?))?),
        Some(reason) => {
            terminal.text(&format!("{reason}\n"))?;
            Err(Failure::No)
        }
    }
}
