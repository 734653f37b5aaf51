//! The picture of a program, as the command draws it.

use serde_json::{Value as Json, json};
use tilewright_draw::explain::figures;
use tilewright_draw::explain::map::{self, plain};
use tilewright_draw::{self as draw, Banks, DrawError, Figure, Label, Map, Medium, Palette, Shade, Style, Theme};
use tilewright_layout::atoms::{AtomError, CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::morphism::{NestMorphism, Span, WorkedComposition, standard_representation};
use tilewright_layout::{AnyLayout, Layout, Tiler, Tree};
use tilewright_notation::{Call, Value};

use crate::More;
use crate::failure::Failure;
use crate::read::{Read, Shown, drawable};
use crate::request::{Kind, ThemeName, View};

/// A figure, and its texts.
#[derive(Debug)]
pub struct Picture {
    /// The figure.
    pub figure: Figure<'static>,
    /// Lines of text, if the view counts something.
    pub told: Vec<String>,
    /// Notes on what may not have been meant.
    pub notes: Vec<String>,
    /// Programs that the view proposes: the description of each, and its text.
    pub proposed: Vec<Json>,
}

impl From<Figure<'static>> for Picture {
    fn from(figure: Figure<'static>) -> Picture {
        Picture { figure, told: Vec::new(), notes: Vec::new(), proposed: Vec::new() }
    }
}

/// The theme of a name.
pub fn theme(name: ThemeName) -> Theme {
    match name {
        ThemeName::Auto => Theme::Auto,
        ThemeName::Light => Theme::Light,
        ThemeName::Dark => Theme::Dark,
    }
}

fn named<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> Result<T, Failure> {
    let known = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| Failure::choice(format!("{what}: expected one of {}, not '{name}'", known())))
}

/// The labels of cells, by name.
pub const LABELS: [(&str, Label); 4] =
    [("offset", Label::Offset), ("coordinate", Label::Coordinate), ("index", Label::Index), ("none", Label::Nothing)];

/// The fills of cells, by name.
pub const SHADES: [(&str, Shade); 4] =
    [("grey", Shade::Grey), ("heat", Shade::Heat), ("palette", Shade::Palette), ("none", Shade::Plain)];

/// The picture of a program.
///
/// Errors: a choice is wrong; the picture does not exist for the value.
pub fn of(read: &mut Read, view: &View, medium: Medium, more: Option<More>) -> Result<Picture, Failure> {
    for (what, number, least, most) in
        [("the bits of an element", view.element_bits, 1, 1024), ("the width", view.width, 1, 1 << 20)]
    {
        if !(least..=most).contains(&number) {
            return Err(Failure::choice(format!("{what}: expected a number from {least} to {most}, not {number}")));
        }
    }
    let style = Style {
        label: named("the label", &view.label, &LABELS)?,
        shade: named("the shade", &view.shade, &SHADES)?,
        palette: named("the palette", &view.palette, &Palette::ALL)?,
        medium,
    };
    let mut picture = drawn(read, view, style, more)?;
    picture.figure = picture.figure.of_source(read.source.as_str());
    if !view.title.is_empty() {
        picture.figure.title.clone_from(&view.title);
    }
    if !view.caption.is_empty() {
        picture.figure.caption.clone_from(&view.caption);
    }
    Ok(picture)
}

fn drawn(read: &mut Read, view: &View, style: Style, more: Option<More>) -> Result<Picture, Failure> {
    match &read.shown {
        Shown::Product(atom) => {
            let atom = MmaAtom::clone(atom);
            return Ok(product(atom, read, view, style)?.into());
        }
        Shown::Copy(atom) => {
            let atom = CopyAtom::clone(atom);
            return Ok(transfer(atom, read, view, style)?.into());
        }
        Shown::Sharded(layout) => {
            let more = more.ok_or_else(crate::elsewhere)?;
            return match view.kind {
                Kind::Auto => (more.sharded)(layout).map(Picture::from),
                _ => Err(Failure::choice("a tensor on several devices has one picture: who holds what")),
            };
        }
        Shown::Value(..) => {}
    }
    match view.kind {
        Kind::Banks | Kind::Sectors | Kind::Suggest => {
            let more = more.ok_or_else(crate::elsewhere)?;
            return (more.memory)(read, view, style);
        }
        Kind::Composition => return Ok(composition(read)?.into()),
        _ => {}
    }
    let values = read.values()?;
    let kind = match (view.kind, view.tile.is_empty(), values.len()) {
        (Kind::Auto, false, 3) => Kind::Mma,
        (Kind::Auto, false, 2) => Kind::Copy,
        (Kind::Auto, false, _) => Kind::ThreadValue,
        (kind, ..) => kind,
    };
    let maps = |read: &Read| values.iter().map(|value| read.map_of(value)).collect::<Result<Vec<Map>, _>>();
    match kind {
        Kind::Mma => {
            if view.tile.is_empty() {
                return Err(Failure::choice("a matrix product needs a tile: its extents (m,n,k)"));
            }
            let tile = read.shape("the tile", &view.tile)?;
            match (maps(read)?.as_slice(), tile.leaves()) {
                ([a, b, c], &[m, n, k]) => Ok(draw::mma([a, b, c], [m, n, k], style)?.into()),
                (maps, _) => {
                    let wanted = "three operands (A, B, C) and extents (m,n,k)";
                    Err(DrawError::Rank { what: "a matrix product", rank: maps.len(), wanted }.into())
                }
            }
        }
        Kind::Copy => {
            let maps = maps(read)?;
            let [source, target] = maps.as_slice() else {
                let wanted = "a source and a target, as (S, D)";
                return Err(DrawError::Rank { what: "a copy", rank: maps.len(), wanted }.into());
            };
            let tile = tile_of(read, &view.tile, source)?;
            Ok(draw::copy(source, target, &tile, style)?.into())
        }
        _ => {
            let call = match &read.shown {
                Shown::Value(_, call) if values.len() == 1 => call.clone(),
                _ => None,
            };
            let mut all = Figure::default();
            for value in &values {
                all = all.beside(one(read, value, call.as_deref(), kind, view, style)?);
            }
            Ok(all.into())
        }
    }
}

/// The picture of one value.
fn one(
    read: &mut Read,
    value: &Value,
    call: Option<&Call>,
    kind: Kind,
    view: &View,
    style: Style,
) -> Result<Figure<'static>, Failure> {
    let (text, banks) = (value.to_string(), Banks::of_elements(view.element_bits));
    if kind == Kind::ThreadValue {
        let map = read.map_of(value)?;
        let tile = tile_of(read, &view.tile, &map)?;
        return Ok(draw::thread_value(&text, &map, &tile, style)?);
    }
    if !view.slice.is_empty() {
        let slices = view.slice.iter().map(|slice| read.coordinate("the slice", slice));
        let slices = slices.collect::<Result<Vec<_>, _>>()?;
        return Ok(draw::slices(&text, &read.map_of(value)?, &slices, style)?);
    }
    if !view.tiler.is_empty() {
        let tiler = read.tiler("the tiler", &view.tiler)?;
        return Ok(draw::tiles(&text, &read.map_of(value)?, &tiler, &view.tile_number, style)?);
    }
    match (kind, value) {
        (Kind::Morphism, _) => Ok(draw::morphism(&morphism_of(value)?)?),
        (Kind::Span, _) => Ok(draw::span(&Span::of_modes(&morphism_of(value)?)?)?),
        (Kind::Memory, _) => Ok(draw::memory(&text, &read.map_of(value)?, view.width, style)?),
        (Kind::Swizzle, Value::Layout(AnyLayout::Composed(map))) => Ok(draw::swizzle(map, banks, style)),
        (Kind::Swizzle, Value::Swizzle(swizzle)) => Ok(draw::swizzle(&swizzle.layout()?, banks, style)),
        (Kind::Swizzle, other) => Err(Failure::not("the view", other, "a swizzle or a swizzled layout")),
        (Kind::Auto, value) => match figures::of(value, call, style, banks)? {
            Some(figure) => Ok(figure),
            None => Ok(draw::offsets(&text, &read.map_of(value)?, style)),
        },
        _ => Ok(draw::offsets(&text, &read.map_of(value)?, style)),
    }
}

/// The tile of a thread-value layout: the given one, or a line up to its last element.
fn tile_of(read: &mut Read, tile: &str, map: &Map) -> Result<Tree<i64>, Failure> {
    if !tile.is_empty() {
        return read.shape("the tile", tile);
    }
    if map.has_coordinates() {
        return Err(Failure::choice("a layout of coordinates needs a tile: (m,n)"));
    }
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

/// A value as a morphism, or the standard morphism of its layout.
fn morphism_of(value: &Value) -> Result<NestMorphism, Failure> {
    match value {
        Value::Morphism(f) => Ok(NestMorphism::clone(f)),
        value => match plain(value) {
            Some(layout) => Ok(standard_representation(&layout)?),
            None => Err(Failure::not("the view", value, "a morphism or a layout of integers")),
        },
    }
}

/// A composition by mutual refinement: that of the program's last operation, or of the program's
/// value, a pair.
fn composition(read: &Read) -> Result<Figure<'static>, Failure> {
    let wanted = "this view shows a composition: A o B of layouts of integers, or a pair (A, B)";
    let pair = match &read.shown {
        Shown::Value(_, Some(call)) if call.function == "composition" => call.arguments.clone(),
        _ => read.values()?,
    };
    let layouts: Vec<Layout> = pair.into_iter().map(drawable).filter_map(|value| plain(&value)).collect();
    let [a, b] = layouts.as_slice() else { return Err(Failure::choice(wanted)) };
    // Composition is tried first, because its refusal is more informative.
    a.compose(b)?;
    Ok(draw::worked_composition(&WorkedComposition::new(a, b)?)?)
}

/// A matrix instruction, or a tiling of it.
fn product(atom: MmaAtom, read: &mut Read, view: &View, style: Style) -> Result<Figure<'static>, Failure> {
    if view.atoms.is_empty() && view.tile.is_empty() {
        return Ok(figures::instructions::of_mma(&atom, style)?);
    }
    let name = atom.name().to_owned();
    let atoms = if view.atoms.is_empty() { Layout::unit() } else { read.layout("the atoms", &view.atoms)? };
    let permutation = if view.tile.is_empty() { Tiler::Keep } else { read.tiler("the tile", &view.tile)? };
    let tiled = TiledMma::new(atom, &atoms, &permutation)?;
    let held = |operand| Ok::<_, AtomError>(Map::from(&tiled.thread_values(operand)?));
    let (a, b, c) = (held(Operand::A)?, held(Operand::B)?, held(Operand::C)?);
    Ok(draw::mma([&a, &b, &c], tiled.tile_shape(), style)?.titled(format!("{name}, atoms {atoms}")))
}

/// A copy instruction, or a tiling of it.
fn transfer(atom: CopyAtom, read: &mut Read, view: &View, style: Style) -> Result<Figure<'static>, Failure> {
    let bits = view.element_bits;
    if view.threads.is_empty() || view.values.is_empty() {
        return figures::instructions::of_copy(&atom, bits, style).map_err(|error| Failure::refused(&*error));
    }
    let name = atom.name().to_owned();
    let (threads, values) = (read.layout("the threads", &view.threads)?, read.layout("the values", &view.values)?);
    let tiled = TiledCopy::new(atom, bits, &threads, &values)?;
    let tile = Tree::flat(tiled.tile_shape())?;
    let [source, target] = [CopyEnd::Source, CopyEnd::Destination].map(|end| tiled.thread_values(end));
    Ok(draw::copy(&Map::from(&source?), &Map::from(&target?), &tile, style)?.titled(name))
}

/// The most rows of a table.
const ROWS: i64 = 4096;

/// The table of a layout: for each index its coordinate, its value, and the bank of an offset.
pub fn table(value: &Value, bits: i64) -> Option<Json> {
    let map = map::of_operand(&drawable(value.clone()))?;
    let words = Banks::of_elements(bits.clamp(1, 1024));
    let rows: Vec<Json> = (0..map.size().min(ROWS))
        .map(|index| {
            let value = map.value(index).ok();
            let offset = value.as_ref().and_then(|value| value.offset());
            let bank = offset.map(|offset| words.of(offset));
            json!([index, map.coordinate(index).to_string(), value.map(|value| value.to_string()), bank])
        })
        .collect();
    let threads = map.shape().modes().next().map_or(1, |mode| mode.leaves().iter().product::<i64>());
    Some(json!({ "rows": rows, "size": map.size(), "threads": threads, "rank": map.shape().rank() }))
}
