//! `tilewright draw`: pictures of layouts, as files or in the terminal.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tilewright::atoms::{AtomError, CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright::draw::{
    self, Banks, Division, DrawError, Figure, Format, Label, Map, Medium, Multiplication, Palette, Shade, Style, Theme,
};
use tilewright::layout::{Composed, Coord, OuterMap, Tiler};
use tilewright::morphism::{MorphismError, NestMorphism, Span};
use tilewright::notation::{Call, call};
use tilewright::{Environment, Layout, Tree, Value, evaluate};

use crate::map;
use crate::picture;
use crate::show::drawable;
use crate::terminal::{Failure, Terminal};

/// What is drawn, and how.
#[derive(Debug, Args)]
pub struct Options {
    /// The file to write; without it the picture goes to the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The kind of picture.
    #[arg(long, value_enum, default_value = "auto")]
    kind: Kind,
    /// What stands above the picture.
    #[arg(long)]
    title: Option<String>,
    /// What stands below it.
    #[arg(long)]
    caption: Option<String>,
    /// Light, dark, or what the reader prefers, where the format can ask.
    #[arg(long, value_enum, default_value = "auto")]
    theme: ThemeName,
    /// How threads, tiles and banks are told apart.
    #[arg(long, value_parser = palettes(), default_value = "distinct")]
    palette: Palette,
    /// What the cells of a grid say.
    #[arg(long, value_enum, default_value = "offset")]
    label: LabelName,
    /// How the cells of a grid are filled.
    #[arg(long, value_enum, default_value = "grey")]
    shade: ShadeName,
    /// The shape of the tile of threads and values; of a matrix product, its m, n and k.
    #[arg(long, value_name = "SHAPE")]
    tile: Option<String>,
    /// A coordinate with `_`: the slice to point out. May be given again.
    #[arg(long, value_name = "COORDINATE", allow_hyphen_values = true)]
    slice: Vec<String>,
    /// What cuts the layout into tiles, of which --tile-number points some out.
    #[arg(long, value_name = "TILER")]
    tiler: Option<String>,
    /// The number of a tile to point out, of those that --tiler makes. May be given again.
    #[arg(long, value_name = "N", requires = "tiler", default_value = "0")]
    tile_number: Vec<i64>,
    /// The layout of the atoms of a tiled matrix product, along m, n and k.
    #[arg(long, value_name = "LAYOUT")]
    atoms: Option<String>,
    /// The threads of a tiled copy, along the modes of the tile.
    #[arg(long, value_name = "LAYOUT", requires = "values")]
    threads: Option<String>,
    /// The values of each thread of a tiled copy, along the modes of the tile.
    #[arg(long, value_name = "LAYOUT", requires = "threads")]
    values: Option<String>,
    /// The bits of an element, which decide its bank, and the values of a copy instruction.
    #[arg(long, value_name = "BITS", default_value = "16", value_parser = clap::value_parser!(i64).range(1..=1024))]
    element_bits: i64,
    /// The addresses to a row of memory.
    #[arg(long, value_name = "N", default_value = "32")]
    width: i64,
    /// The pixels of a PNG to a CSS pixel.
    #[arg(long, default_value = "2")]
    scale: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// What the expression suggests.
    Auto,
    /// A grid of offsets.
    Offsets,
    /// A tile: which thread holds what as which value.
    ThreadValue,
    /// Two tiles: who reads what, and who writes what.
    Copy,
    /// The operands A, B and C of a matrix product.
    Mma,
    /// Before and after the swizzle, coloured by bank.
    Swizzle,
    /// The image over a line of memory.
    Memory,
    /// Modes, axes of memory, and arrows between them.
    Morphism,
    /// The sizes of the modes, the leaves that they are cut into, and the axes that these walk along.
    Span,
}

/// Light, dark, or what the reader prefers.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ThemeName {
    Auto,
    Light,
    Dark,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LabelName {
    Offset,
    Coordinate,
    Index,
    None,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShadeName {
    /// Eight greys, by the offset modulo 8.
    Grey,
    /// From the least to the greatest offset.
    Heat,
    /// The palette, by the offset modulo 32.
    Palette,
    None,
}

fn palettes() -> impl TypedValueParser<Value = Palette> {
    let named = |name: String| Palette::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, palette)| palette);
    PossibleValuesParser::new(Palette::ALL.map(|(name, _)| name))
        .try_map(move |name| named(name).ok_or("there is no such palette"))
}

impl Options {
    fn style(&self) -> Style {
        let label = match self.label {
            LabelName::Offset => Label::Offset,
            LabelName::Coordinate => Label::Coordinate,
            LabelName::Index => Label::Index,
            LabelName::None => Label::Nothing,
        };
        let shade = match self.shade {
            ShadeName::Grey => Shade::Grey,
            ShadeName::Heat => Shade::Heat,
            ShadeName::Palette => Shade::Palette,
            ShadeName::None => Shade::Plain,
        };
        let text = self.output.as_ref().is_none_or(|file| Format::of_file(file) == Ok(Format::Text));
        let medium = if text { Medium::Terminal } else { Medium::Page };
        Style { label, shade, palette: self.palette, medium }
    }

    fn theme(&self) -> Theme {
        self.theme.into()
    }
}

impl From<ThemeName> for Theme {
    fn from(name: ThemeName) -> Theme {
        match name {
            ThemeName::Auto => Theme::Auto,
            ThemeName::Light => Theme::Light,
            ThemeName::Dark => Theme::Dark,
        }
    }
}

/// Why there is no figure: the picture refuses, or the command was not used as it should be.
pub(crate) enum Stop {
    Refused { code: &'static str, message: String, help: String },
    Failed(Failure),
}

impl From<DrawError> for Stop {
    fn from(error: DrawError) -> Stop {
        Stop::Refused { code: error.code(), message: error.to_string(), help: error.help() }
    }
}

impl From<AtomError> for Stop {
    fn from(error: AtomError) -> Stop {
        Stop::Refused { code: error.code(), message: error.to_string(), help: error.help().unwrap_or_default() }
    }
}

impl From<tilewright::LayoutError> for Stop {
    fn from(error: tilewright::LayoutError) -> Stop {
        Stop::from(DrawError::from(error))
    }
}

impl From<MorphismError> for Stop {
    fn from(error: MorphismError) -> Stop {
        let help = error.help().unwrap_or_default();
        Stop::Refused { code: error.code(), message: error.to_string(), help }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

fn usage(message: impl Into<String>) -> Stop {
    Stop::Failed(Failure::Usage(message.into()))
}

pub fn run(expressions: &[String], options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let done = drawn(expressions, options, terminal).and_then(|figure| {
        let Some(file) = &options.output else { return Ok(Some(figure)) };
        let bytes = figure.file(Format::of_file(file)?, options.theme(), options.scale)?;
        std::fs::write(file, bytes).map_err(Failure::Io)?;
        Ok(None)
    });
    match done {
        Ok(None) => Ok(()),
        Ok(Some(figure)) => {
            let (colours, mode) = (picture::colours(terminal.colour), options.theme().mode());
            let text = figure.picture(terminal.window(), colours).text(0, colours, mode);
            Ok(terminal.out.write_all(text.as_bytes())?)
        }
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Refused { code, message, help }) => {
            let help = if help.is_empty() { String::new() } else { format!("  help: {help}\n") };
            terminal.message(&format!("error[{code}]: {message}\n{help}"));
            Err(Failure::Refused)
        }
    }
}

fn drawn(expressions: &[String], options: &Options, terminal: &mut Terminal) -> Result<Figure<'static>, Stop> {
    if let Some(file) = &options.output {
        // A name that cannot be written is told before anything is computed.
        Format::of_file(file)?;
    }
    let mut reader = Reader { environment: Environment::new(), terminal };
    let figure = match expressions {
        [name] if is_name(name) && MmaAtom::named(name.trim()).is_ok() => {
            instruction(name.trim(), options, &mut reader)?
        }
        [name] if is_name(name) && CopyAtom::named(name.trim()).is_ok() => transfer(name.trim(), options, &mut reader)?,
        _ => {
            let mut calls = Vec::with_capacity(expressions.len());
            for expression in expressions {
                calls.push((expression.clone(), reader.call(expression)?));
            }
            figure(&calls, options, &mut reader)?
        }
    };
    let mut figure = expressions.iter().fold(figure, |figure, expression| figure.of_source(expression.as_str()));
    if let Some(title) = &options.title {
        figure.title.clone_from(title);
    }
    if let Some(caption) = &options.caption {
        figure.caption.clone_from(caption);
    }
    Ok(figure)
}

/// Whether a text may be the name of an instruction. Looking for one that does not exist takes long: the nearest names are found.
fn is_name(text: &str) -> bool {
    !text.trim().contains(|c: char| c.is_whitespace() || "()[];=".contains(c))
}

/// What evaluates expressions, each with the names of those before it.
struct Reader<'a> {
    environment: Environment,
    terminal: &'a mut Terminal,
}

/// A value, and the call that made it if there was one.
struct Read {
    value: Value,
    call: Option<Call>,
}

impl Reader<'_> {
    fn value(&mut self, source: &str) -> Result<Value, Stop> {
        evaluate(source, &mut self.environment).map_err(|error| self.terminal.report(&error, source).into())
    }

    fn call(&mut self, source: &str) -> Result<Read, Stop> {
        let call =
            call(source, &mut self.environment).map_err(|error| Stop::from(self.terminal.report(&error, source)))?;
        let value = match &call {
            Some(call) => call.value.clone(),
            None => self.value(source)?,
        };
        Ok(Read { value: drawable(value), call })
    }

    fn shape(&mut self, source: &str) -> Result<Tree<i64>, Stop> {
        match self.value(source)? {
            Value::Int(extent) => Ok(Tree::from(extent)),
            Value::Tree(shape) => Ok(shape),
            other => Err(usage(format!("a {} is no shape", other.kind()))),
        }
    }

    fn layout(&mut self, source: &str) -> Result<Layout, Stop> {
        let value = self.value(source)?;
        plain(&value).ok_or_else(|| usage(format!("a {} is no layout", value.kind())))
    }

    fn coordinate(&mut self, source: &str) -> Result<Coord, Stop> {
        source.parse().map_err(|error: tilewright::LayoutError| Stop::from(error))
    }

    fn tiler(&mut self, source: &str) -> Result<Tiler, Stop> {
        let value = self.value(source)?;
        match value.to_tiler() {
            Some(tiler) => Ok(tiler?),
            None => Err(usage(format!("a {} is no tiler", value.kind()))),
        }
    }
}

/// What is drawn of a value; a layout whose numbers are not known yet has nothing to draw.
pub(crate) fn map_of(value: &Value) -> Result<Map, Stop> {
    map::of_operand(value).ok_or_else(|| {
        let names: Vec<String> = value.parameters().iter().map(ToString::to_string).collect();
        usage(match names.first() {
            Some(name) => format!("this is drawn once {name} is known: substitute(A, {name}, 8)"),
            None => format!("a {} is no layout", value.kind()),
        })
    })
}

fn figure(read: &[(String, Read)], options: &Options, reader: &mut Reader<'_>) -> Result<Figure<'static>, Stop> {
    let style = options.style();
    let values: Vec<&Value> = read.iter().map(|(_, read)| &read.value).collect();
    let count = |kind: Kind, wanted: usize| match kind {
        Kind::Auto => values.len() == wanted,
        _ => true,
    };
    match (options.kind, &options.tile) {
        (Kind::Mma, tile) | (Kind::Auto, tile @ Some(_)) if count(options.kind, 3) => {
            let tile = tile.as_ref().ok_or_else(|| usage("a matrix product needs --tile '(m,n,k)'"))?;
            let (tile, maps) = (reader.shape(tile)?, maps_of(&values)?);
            let ([a, b, c], &[m, n, k]) = (maps.as_slice(), tile.leaves()) else {
                return Err(DrawError::Rank {
                    what: "a matrix product",
                    rank: maps.len(),
                    wanted: "three operands and extents",
                }
                .into());
            };
            return Ok(draw::mma([a, b, c], [m, n, k], style)?);
        }
        (Kind::Copy, tile) | (Kind::Auto, tile @ Some(_)) if count(options.kind, 2) => {
            let maps = maps_of(&values)?;
            let [source, target] = maps.as_slice() else {
                return Err(
                    DrawError::Rank { what: "a copy", rank: maps.len(), wanted: "a source and a target" }.into()
                );
            };
            let tile = tile_of(tile.as_deref(), source, reader)?;
            return Ok(draw::copy(source, target, &tile, style)?);
        }
        (Kind::ThreadValue, tile) | (Kind::Auto, tile @ Some(_)) => {
            return each(read, |_, text, value| {
                let map = map_of(value)?;
                let tile = tile_of(tile.as_deref(), &map, reader)?;
                Ok(draw::thread_value(text, &map, &tile, style)?)
            });
        }
        _ => {}
    }
    each(read, |read, text, value| one(read, text, value, options, reader))
}

/// The figures of several values side by side, headed by their texts.
fn each(
    read: &[(String, Read)],
    mut draw: impl FnMut(&Read, &str, &Value) -> Result<Figure<'static>, Stop>,
) -> Result<Figure<'static>, Stop> {
    let mut all = Figure::default();
    for (_, read) in read {
        all = all.beside(draw(read, &read.value.to_string(), &read.value)?);
    }
    Ok(all)
}

fn maps_of(values: &[&Value]) -> Result<Vec<Map>, Stop> {
    values.iter().map(|value| map_of(value)).collect()
}

/// The tile of a thread-value layout: what is given, or a line as long as it reaches.
fn tile_of(tile: Option<&str>, map: &Map, reader: &mut Reader<'_>) -> Result<Tree<i64>, Stop> {
    match tile {
        Some(tile) => reader.shape(tile),
        None if map.has_coordinates() => Err(usage("a layout of coordinates needs --tile '(m,n)'")),
        None => {
            if map.size() > draw::MAX_INDICES {
                let what = "the size of the layout";
                return Err(DrawError::TooLarge { what, value: map.size(), limit: draw::MAX_INDICES }.into());
            }
            let mut most = 0;
            for index in 0..map.size() {
                most = most.max(map.at(index)?);
            }
            Ok(Tree::from(most.saturating_add(1)))
        }
    }
}

/// The picture of one value.
fn one(
    read: &Read,
    text: &str,
    value: &Value,
    options: &Options,
    reader: &mut Reader<'_>,
) -> Result<Figure<'static>, Stop> {
    let (style, banks) = (options.style(), Banks::of_elements(options.element_bits));
    if !options.slice.is_empty() {
        let slices = options.slice.iter().map(|slice| reader.coordinate(slice)).collect::<Result<Vec<_>, _>>()?;
        return Ok(draw::slices(text, &map_of(value)?, &slices, style)?);
    }
    if let Some(tiler) = &options.tiler {
        let tiler = reader.tiler(tiler)?;
        return Ok(draw::tiles(text, &map_of(value)?, &tiler, &options.tile_number, style)?);
    }
    match (options.kind, value) {
        (Kind::Morphism, _) => Ok(draw::morphism(&morphism_of(value)?)?),
        (Kind::Span, _) => Ok(draw::span(&Span::of_modes(&morphism_of(value)?)?)?),
        (Kind::Memory, _) => Ok(draw::memory(text, &map_of(value)?, options.width, style)?),
        (Kind::Swizzle, Value::Composed(map)) => Ok(draw::swizzle(map, banks, style)?),
        (Kind::Auto, Value::Composed(map)) if swizzles(map) => Ok(draw::swizzle(map, banks, style)?),
        (Kind::Swizzle | Kind::Auto, Value::Swizzle(swizzle)) => Ok(draw::swizzle(&swizzle.layout()?, banks, style)?),
        (Kind::Auto, Value::Matrix(map)) => Ok(draw::bits(text, map, style)),
        (Kind::Auto, Value::Linear(map)) => Ok(draw::bits(text, map.matrix(), style)),
        (Kind::Swizzle, other) => Err(usage(format!("a {} has no swizzle", other.kind()))),
        (Kind::Auto, _) => match read.call.as_ref().map(|call| operation(call, style)) {
            Some(Ok(Some(figure))) => Ok(figure),
            Some(Err(stop)) => Err(stop),
            _ if matches!(value, Value::Morphism(_)) => Ok(draw::morphism(&morphism_of(value)?)?),
            _ => Ok(draw::offsets(text, &map_of(value)?, style)?),
        },
        _ => Ok(draw::offsets(text, &map_of(value)?, style)?),
    }
}

pub(crate) fn swizzles(map: &Composed) -> bool {
    matches!(map.outer(), OuterMap::Swizzle(_) | OuterMap::Bits(_))
}

/// The picture of a composition, complement, division or product of layouts, if the call is one.
fn operation(call: &Call, style: Style) -> Result<Option<Figure<'static>>, Stop> {
    match (call.function, call.arguments.as_slice()) {
        ("composition" | "composition_within", [a, Value::Layout(b)]) => {
            let figure = plain(a).map(|a| draw::composition(&a, b, style));
            Ok(figure.transpose()?)
        }
        ("complement" | "weak_complement", [a, _]) => {
            let (Some(a), Some(rest)) = (plain(a), plain(&call.value)) else { return Ok(None) };
            Ok(Some(draw::filled(&a, &rest, style)?))
        }
        _ => match crate::morphism::operation(call.function, &call.arguments, Some(&call.value)) {
            Some(figure) => Ok(Some(figure?)),
            None => tiling(call, style),
        },
    }
}

fn morphism_of(value: &Value) -> Result<NestMorphism, Stop> {
    match crate::morphism::morphism_of(value) {
        Some(f) => Ok(f?),
        None => Err(usage(format!("a {} is no morphism, and no layout of integers", value.kind()))),
    }
}

/// The picture of a division or product of layouts, if the call is one.
pub(crate) fn tiling(call: &Call, style: Style) -> Result<Option<Figure<'static>>, Stop> {
    let [first, second] = call.arguments.as_slice() else { return Ok(None) };
    let (Some(layout), Some(tiler)) = (plain(first), second.to_tiler()) else { return Ok(None) };
    let divisions = [Division::Logical, Division::Zipped, Division::Tiled, Division::Flat];
    if let Some(form) = divisions.into_iter().find(|form| form.name() == call.function) {
        return Ok(Some(draw::divide(&layout, &tiler?, form, style)?));
    }
    let products = [Multiplication::Logical, Multiplication::Blocked, Multiplication::Raked];
    match (products.into_iter().find(|form| form.name() == call.function), plain(second)) {
        (Some(form), Some(copies)) => Ok(Some(draw::product(&layout, &copies, form, style)?)),
        _ => Ok(None),
    }
}

/// The layout that a value is; a shape is its compact layout.
pub(crate) fn plain(value: &Value) -> Option<Layout> {
    match value {
        Value::Layout(layout) => Some(layout.clone()),
        Value::Tree(shape) => Layout::compact(shape).ok(),
        Value::Int(extent) => Layout::compact(&Tree::from(*extent)).ok(),
        _ => None,
    }
}

/// A matrix instruction, or a tiling of it.
fn instruction(name: &str, options: &Options, reader: &mut Reader<'_>) -> Result<Figure<'static>, Stop> {
    let atom = MmaAtom::named(name)?;
    let style = options.style();
    let held = |layout: &Layout| Map::from(layout);
    if options.atoms.is_none() && options.tile.is_none() {
        let maps = [atom.a(), atom.b(), atom.c()].map(|operand| held(operand.layout()));
        let [a, b, c] = &maps;
        return Ok(draw::mma([a, b, c], atom.shape(), style)?.titled(name));
    }
    let atoms = match &options.atoms {
        Some(atoms) => reader.layout(atoms)?,
        None => Layout::unit(),
    };
    let permutation = match &options.tile {
        Some(tile) => reader.tiler(tile)?,
        None => Tiler::Keep,
    };
    let tiled = TiledMma::new(atom, &atoms, &permutation)?;
    let maps = [Operand::A, Operand::B, Operand::C].map(|operand| tiled.thread_values(operand));
    let [a, b, c] = maps;
    let (a, b, c) = (held(&a?), held(&b?), held(&c?));
    Ok(draw::mma([&a, &b, &c], tiled.tile_shape(), style)?.titled(format!("{name}, atoms {atoms}")))
}

/// A copy instruction, in rows of 128 bits where it has as many, or a tiling of it.
fn transfer(name: &str, options: &Options, reader: &mut Reader<'_>) -> Result<Figure<'static>, Stop> {
    let (atom, style, bits) = (CopyAtom::named(name)?, options.style(), options.element_bits);
    let ends = [CopyEnd::Source, CopyEnd::Destination];
    if let (Some(threads), Some(values)) = (&options.threads, &options.values) {
        let tiled = TiledCopy::new(atom, bits, &reader.layout(threads)?, &reader.layout(values)?)?;
        let tile = Tree::flat(tiled.tile_shape())?;
        let [source, target] = ends.map(|end| tiled.thread_values(end));
        return Ok(draw::copy(&Map::from(&source?), &Map::from(&target?), &tile, style)?.titled(name));
    }
    let places = (atom.bits() / bits).max(1);
    let across = (128 / bits).clamp(1, places);
    let down = places / across;
    // A place counts along the row; a tile counts downward.
    let turned = Layout::new(&Tree::flat([across, down])?, &Tree::flat([down, 1])?)?;
    let side = |end: CopyEnd| -> Result<Map, Stop> { Ok(Map::from(&turned.compose(&atom.values(end, bits)?)?)) };
    let [source, target] = ends.map(side);
    Ok(draw::copy(&source?, &target?, &Tree::flat([down, across])?, style)?.titled(name))
}
