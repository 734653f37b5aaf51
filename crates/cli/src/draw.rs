//! `tilewright draw`: pictures of layouts, as files or in the terminal.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tilewright::atoms::{AtomError, CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright::draw::{self, Banks, DrawError, Figure, Label, Map, Palette, Shade, Style};
use tilewright::explain::{figures, map};
use tilewright::layout::{AnyLayout, Tiler};
use tilewright::morphism::Span;
use tilewright::{Layout, Tree, Value};

use crate::morphism::morphism_of;
use crate::output::{Failure, Saving};
use crate::reader::{Read, Reader, unknown};
use crate::show::drawable;
use crate::terminal::Terminal;

/// The picture and its options.
#[derive(Debug, Args)]
pub struct DrawOptions {
    #[command(flatten)]
    saving: Saving,
    /// The kind of picture.
    #[arg(long, value_enum, default_value = "auto")]
    kind: PictureKind,
    /// Title above the picture.
    #[arg(long)]
    title: Option<String>,
    /// Caption below the picture.
    #[arg(long)]
    caption: Option<String>,
    /// Colours that distinguish threads, tiles and banks.
    #[arg(long, value_parser = palettes(), default_value = "distinct")]
    palette: Palette,
    /// Text in the cells of a grid.
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
    /// Tiler that divides the layout into tiles, for --tile-number.
    #[arg(long, value_name = "TILER")]
    tiler: Option<String>,
    /// Number of a tile to highlight, of those of --tiler. May be given several times.
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
    #[arg(long, value_name = "BITS", default_value = "16", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1024))]
    element_bits: i64,
    /// The addresses to a row of memory.
    #[arg(long, value_name = "N", default_value = "32", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..))]
    width: i64,
    /// The pixels of a PNG to a CSS pixel.
    #[arg(long, default_value = "2")]
    scale: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PictureKind {
    /// The picture that suits the expression.
    Auto,
    /// A grid of offsets.
    Offsets,
    /// A tile: which thread holds what as which value.
    ThreadValue,
    /// Two tiles: the threads that read, and the threads that write.
    Copy,
    /// The operands A, B and C of a matrix product.
    Mma,
    /// Before and after the swizzle, coloured by bank.
    Swizzle,
    /// The image over a line of memory.
    Memory,
    /// Modes, axes of memory, and arrows between them.
    Morphism,
    /// The sizes of the modes, the leaves that they are cut into, and the axes that these walk
    /// along.
    Span,
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
    /// Colours from the smallest to the largest offset.
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

impl DrawOptions {
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
        Style { label, shade, palette: self.palette, medium: self.saving.medium() }
    }
}

pub fn run(expressions: &[String], options: &DrawOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    // A file name with an unknown format is refused before anything is computed.
    options.saving.file()?;
    let figure = figure_of(expressions, options)?;
    options.saving.show(&figure, options.scale, terminal)
}

fn figure_of(expressions: &[String], options: &DrawOptions) -> Result<Figure<'static>, Failure> {
    let mut reader = Reader::default();
    let figure = match expressions {
        [name] if is_name(name) => match instruction(name.trim(), options, &mut reader)? {
            Some(figure) => figure,
            None => read(name, &mut reader)
                .and_then(|read| figure(&[read], options, &mut reader))
                .map_err(|failure| unknown_word(name, failure))?,
        },
        _ => {
            let read = expressions.iter().map(|expression| read(expression, &mut reader));
            figure(&read.collect::<Result<Vec<_>, _>>()?, options, &mut reader)?
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

/// An expression with its value; a shape alone means its compact layout.
fn read(source: &str, reader: &mut Reader) -> Result<Read, Failure> {
    let mut read = reader.call(source)?;
    read.value = drawable(read.value);
    Ok(read)
}

/// The error for a word that is neither an expression nor the name of an instruction.
///
/// A word counts as a name if it looks like one, or if similar names exist.
fn unknown_word(name: &str, failure: Failure) -> Failure {
    let errors = [MmaAtom::named(name.trim()).err(), CopyAtom::named(name.trim()).err()];
    let near =
        errors.iter().flatten().find(|error| matches!(error, AtomError::UnknownName { near, .. } if !near.is_empty()));
    match near.or(errors.iter().flatten().next()) {
        Some(error) if near.is_some() || name.contains('_') => Failure::refused(error),
        _ => failure,
    }
}

/// Whether a text may be the name of an instruction. Looking up a name that does not exist takes
/// long, because similar names are searched.
fn is_name(text: &str) -> bool {
    !text.trim().contains(|c: char| c.is_whitespace() || "()[];=".contains(c))
}

/// The layout to draw; an error if it has parameters.
pub fn map_of(read: &Read) -> Result<Map, Failure> {
    map::of_operand(&read.value).ok_or_else(|| match unknown(&read.source, &read.value) {
        Some(advice) => Failure::Value(format!("this is drawn {advice}")),
        None => Failure::not(&read.source, &read.value, "a layout"),
    })
}

fn figure(read: &[Read], options: &DrawOptions, reader: &mut Reader) -> Result<Figure<'static>, Failure> {
    let style = options.style();
    let count = |kind: PictureKind, wanted: usize| match kind {
        PictureKind::Auto => read.len() == wanted,
        _ => true,
    };
    match (options.kind, &options.tile) {
        (PictureKind::Mma, tile) | (PictureKind::Auto, tile @ Some(_)) if count(options.kind, 3) => {
            let tile = tile.as_ref();
            let tile = tile.ok_or_else(|| Failure::Usage("a matrix product needs --tile '(m,n,k)'".to_owned()))?;
            let (tile, maps) = (reader.shape(tile)?, maps_of(read)?);
            let ([a, b, c], &[m, n, k]) = (maps.as_slice(), tile.leaves()) else {
                let wanted = "three operands and extents";
                return Err(DrawError::Rank { what: "a matrix product", rank: maps.len(), wanted }.into());
            };
            return Ok(draw::mma([a, b, c], [m, n, k], style)?);
        }
        (PictureKind::Copy, tile) | (PictureKind::Auto, tile @ Some(_)) if count(options.kind, 2) => {
            let maps = maps_of(read)?;
            let [source, target] = maps.as_slice() else {
                let wanted = "a source and a target";
                return Err(DrawError::Rank { what: "a copy", rank: maps.len(), wanted }.into());
            };
            let tile = tile_of(tile.as_deref(), source, reader)?;
            return Ok(draw::copy(source, target, &tile, style)?);
        }
        (PictureKind::ThreadValue, tile) | (PictureKind::Auto, tile @ Some(_)) => {
            return each(read, |read, text| {
                let map = map_of(read)?;
                let tile = tile_of(tile.as_deref(), &map, reader)?;
                Ok(draw::thread_value(text, &map, &tile, style)?)
            });
        }
        _ => {}
    }
    each(read, |read, text| one(read, text, options, reader))
}

/// The figures of several values side by side, headed by their texts.
fn each(
    read: &[Read],
    mut draw: impl FnMut(&Read, &str) -> Result<Figure<'static>, Failure>,
) -> Result<Figure<'static>, Failure> {
    let mut all = Figure::default();
    for read in read {
        all = all.beside(draw(read, &read.value.to_string())?);
    }
    Ok(all)
}

fn maps_of(read: &[Read]) -> Result<Vec<Map>, Failure> {
    read.iter().map(map_of).collect()
}

/// The tile of a thread-value layout: the one given, or a line that covers all its values.
fn tile_of(tile: Option<&str>, map: &Map, reader: &mut Reader) -> Result<Tree<i64>, Failure> {
    match tile {
        Some(tile) => reader.shape(tile),
        None if map.has_coordinates() => Err(Failure::Usage("a layout of coordinates needs --tile '(m,n)'".to_owned())),
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
fn one(read: &Read, text: &str, options: &DrawOptions, reader: &mut Reader) -> Result<Figure<'static>, Failure> {
    let (style, banks) = (options.style(), Banks::of_elements(options.element_bits));
    if !options.slice.is_empty() {
        let slices = options.slice.iter().map(|slice| reader.coordinate(slice)).collect::<Result<Vec<_>, _>>()?;
        return Ok(draw::slices(text, &map_of(read)?, &slices, style)?);
    }
    if let Some(tiler) = &options.tiler {
        let tiler = reader.tiler(tiler)?;
        return Ok(draw::tiles(text, &map_of(read)?, &tiler, &options.tile_number, style)?);
    }
    match (options.kind, &read.value) {
        (PictureKind::Morphism, _) => Ok(draw::morphism(&morphism_of(read)?)?),
        (PictureKind::Span, _) => Ok(draw::span(&Span::of_modes(&morphism_of(read)?)?)?),
        (PictureKind::Memory, _) => Ok(draw::memory(text, &map_of(read)?, options.width, style)?),
        (PictureKind::Swizzle, Value::Layout(AnyLayout::Composed(map))) => Ok(draw::swizzle(map, banks, style)),
        (PictureKind::Swizzle, Value::Swizzle(swizzle)) => Ok(draw::swizzle(&swizzle.layout()?, banks, style)),
        (PictureKind::Swizzle, other) => Err(Failure::not(&read.source, other, "a swizzle or a swizzled layout")),
        (PictureKind::Auto, value) => match figures::of(value, read.call.as_ref(), style, banks)? {
            Some(figure) => Ok(figure),
            None => Ok(draw::offsets(text, &map_of(read)?, style)),
        },
        _ => Ok(draw::offsets(text, &map_of(read)?, style)),
    }
}

/// The picture of an instruction, or of a tiling of it; None if no instruction has this name.
fn instruction(name: &str, options: &DrawOptions, reader: &mut Reader) -> Result<Option<Figure<'static>>, Failure> {
    if let Ok(atom) = MmaAtom::named(name) {
        return product(atom, options, reader).map(Some);
    }
    match CopyAtom::named(name) {
        Ok(atom) => transfer(atom, options, reader).map(Some),
        Err(_) => Ok(None),
    }
}

/// The picture of a matrix instruction, or of a tiled MMA.
fn product(atom: MmaAtom, options: &DrawOptions, reader: &mut Reader) -> Result<Figure<'static>, Failure> {
    let (name, style) = (atom.name().to_owned(), options.style());
    let held = |layout: &Layout| Map::from(layout);
    if options.atoms.is_none() && options.tile.is_none() {
        return Ok(figures::instructions::of_mma(&atom, style)?);
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

/// The picture of a copy instruction, in rows of 128 bits if it has that many, or of a tiled copy.
fn transfer(atom: CopyAtom, options: &DrawOptions, reader: &mut Reader) -> Result<Figure<'static>, Failure> {
    let (name, style, bits) = (atom.name().to_owned(), options.style(), options.element_bits);
    let ends = [CopyEnd::Source, CopyEnd::Destination];
    if let (Some(threads), Some(values)) = (&options.threads, &options.values) {
        let tiled = TiledCopy::new(atom, bits, &reader.layout(threads)?, &reader.layout(values)?)?;
        let tile = Tree::flat(tiled.tile_shape())?;
        let [source, target] = ends.map(|end| tiled.thread_values(end));
        return Ok(draw::copy(&Map::from(&source?), &Map::from(&target?), &tile, style)?.titled(name));
    }
    figures::instructions::of_copy(&atom, bits, style).map_err(|error| Failure::refused(&*error))
}
