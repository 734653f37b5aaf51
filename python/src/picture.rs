//! Pictures of values, calls and instructions.
//!
//! Law: a picture stores its subject. It is drawn for each requested format by the crate that draws
//! for the command.

use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use tilewright_draw::explain::{figures, map};
use tilewright_draw::terminal::{Colours, Window};
use tilewright_draw::{self as draw, Banks, Figure, Format, Label, Map, Medium, Mode, Palette, Shade, Style, Theme};
use tilewright_layout::atoms::{CopyAtom, MmaAtom};
use tilewright_layout::{Layout, Refusal, Tree};
use tilewright_notation::{Call, Environment, Value, call};

use crate::convert;
use crate::object::Object;
use crate::refusal;

/// Draws a figure in a given style.
type Draws = Box<dyn Fn(Style) -> Figure<'static> + Send + Sync>;

/// The subject of one part of a picture.
enum Shown {
    /// A figure of a result that is not a value.
    Figure(Draws),
    /// A value, and the call that made it.
    Value(Box<(Value, Option<Call>)>),
    Mma(Box<MmaAtom>),
    Copy(Box<CopyAtom>),
}

/// A picture: SVG in a notebook, text in a terminal, a file of any format by `save`.
#[pyclass(frozen, module = "tilewright")]
pub struct Picture {
    shown: Vec<Shown>,
    kind: String,
    tile: Option<Tree<i64>>,
    title: String,
    caption: String,
    style: Style,
    theme: Theme,
    bits: i64,
    width: i64,
}

#[pymethods]
impl Picture {
    /// The picture as SVG.
    fn svg(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.figure(py, Medium::Page)?.svg(self.theme))
    }

    /// The picture as a web page, on which a click isolates a thread.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.figure(py, Medium::Page)?.html(self.theme))
    }

    /// The picture as a LaTeX document of a TikZ picture.
    fn tikz(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.figure(py, Medium::Page)?.tikz(self.theme))
    }

    /// The picture as lines of text; parts that do not fit are left out, with a note.
    #[pyo3(signature = (columns = 160, rows = 128, colour = false))]
    fn text(&self, py: Python<'_>, columns: usize, rows: usize, colour: bool) -> PyResult<String> {
        let colours = if colour { Colours::Indexed } else { Colours::None };
        let picture = self.figure(py, Medium::Terminal)?.picture(Window { columns, rows }, colours);
        Ok(picture.text(0, colours, Mode::Light))
    }

    /// The bytes of a file of a format: `"svg"`, `"html"`, `"png"`, `"pdf"`, `"tex"` or `"txt"`.
    /// `scale` is the pixels of a PNG to a CSS pixel.
    #[pyo3(signature = (format, scale = 2.0))]
    fn file<'py>(&self, py: Python<'py>, format: &str, scale: f64) -> PyResult<Bound<'py, PyBytes>> {
        let format = Format::of_file(format!("picture.{format}").as_ref()).map_err(|error| refusal::of(py, &error))?;
        let medium = if format == Format::Text { Medium::Terminal } else { Medium::Page };
        let bytes = self.figure(py, medium)?.file(format, self.theme, scale);
        Ok(PyBytes::new(py, &bytes.map_err(|error| refusal::of(py, &error))?))
    }

    /// Writes a file, whole or not at all; its extension is the format.
    #[pyo3(signature = (path, scale = 2.0))]
    fn save(&self, py: Python<'_>, path: PathBuf, scale: f64) -> PyResult<()> {
        let format = path.extension().and_then(|end| end.to_str()).unwrap_or("").to_owned();
        let bytes = self.file(py, &format, scale)?;
        let written = tilewright_tensor::npy::replace(&path, |file| file.write_all(bytes.as_bytes()));
        // The error has the file name, as that of `open` has.
        written.map_err(|error| {
            let (code, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((code, text, path.into_os_string()))
        })
    }

    fn _repr_svg_(&self, py: Python<'_>) -> PyResult<String> {
        self.svg(py)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        image(py, &self.svg(py)?)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, 160, 128, false)
    }
}

impl Picture {
    /// A picture that a function draws, with a title.
    pub fn of(title: String, draws: impl Fn(Style) -> Figure<'static> + Send + Sync + 'static) -> Picture {
        Picture {
            shown: vec![Shown::Figure(Box::new(draws))],
            kind: "auto".to_owned(),
            tile: None,
            title,
            caption: String::new(),
            style: Style::default(),
            theme: Theme::Auto,
            bits: 16,
            width: 32,
        }
    }

    fn figure(&self, py: Python<'_>, medium: Medium) -> PyResult<Figure<'static>> {
        let style = Style { medium, ..self.style };
        let mut figure = self.drawn(py, style)?;
        if !self.title.is_empty() {
            figure.title.clone_from(&self.title);
        }
        if !self.caption.is_empty() {
            figure.caption.clone_from(&self.caption);
        }
        Ok(figure)
    }

    fn drawn(&self, py: Python<'_>, style: Style) -> PyResult<Figure<'static>> {
        let told = |error: &dyn Refusal| refusal::of(py, error);
        let tile = || self.tile.clone().ok_or_else(|| PyValueError::new_err(format!("{} needs tile=", self.kind)));
        let maps = || self.shown.iter().map(map_of).collect::<PyResult<Vec<Map>>>();
        match self.kind.as_str() {
            "mma" => {
                let (maps, tile) = (maps()?, tile()?);
                match (maps.as_slice(), tile.leaves()) {
                    ([a, b, c], &[m, n, k]) => draw::mma([a, b, c], [m, n, k], style).map_err(|error| told(&error)),
                    _ => Err(PyValueError::new_err("mma shows three operands, with tile=(m, n, k)")),
                }
            }
            "copy" => match maps()?.as_slice() {
                [source, target] => draw::copy(source, target, &tile()?, style).map_err(|error| told(&error)),
                _ => Err(PyValueError::new_err("copy shows a source and a target, with tile=")),
            },
            _ => {
                let mut all = Figure::default();
                for shown in &self.shown {
                    all = all.beside(self.one(py, shown, style)?);
                }
                Ok(all)
            }
        }
    }

    fn one(&self, py: Python<'_>, shown: &Shown, style: Style) -> PyResult<Figure<'static>> {
        let told = |error: &dyn Refusal| refusal::of(py, error);
        let (value, call) = match shown {
            Shown::Figure(draws) => return Ok(draws(style)),
            Shown::Mma(atom) => return figures::instructions::of_mma(atom, style).map_err(|error| told(&error)),
            Shown::Copy(atom) => {
                return figures::instructions::of_copy(atom, self.bits, style).map_err(|error| told(&*error));
            }
            Shown::Value(shown) => (&shown.0, &shown.1),
        };
        let text = value.to_string();
        let kind = if self.kind == "auto" && self.tile.is_some() { "thread-value" } else { self.kind.as_str() };
        match kind {
            "thread-value" => match &self.tile {
                Some(tile) => draw::thread_value(&text, &map_of(shown)?, tile, style).map_err(|error| told(&error)),
                None => Err(PyValueError::new_err("thread-value needs tile=, the shape of the tile")),
            },
            "memory" => draw::memory(&text, &map_of(shown)?, self.width, style).map_err(|error| told(&error)),
            "offsets" => Ok(draw::offsets(&text, &map_of(shown)?, style)),
            _ => {
                let figure = figures::of(value, call.as_ref(), style, Banks::of_elements(self.bits));
                match figure.map_err(|error| told(&error))? {
                    Some(figure) => Ok(figure),
                    None => Ok(draw::offsets(&text, &map_of(shown)?, style)),
                }
            }
        }
    }
}

/// The map that is shown.
fn map_of(shown: &Shown) -> PyResult<Map> {
    match shown {
        Shown::Value(shown) => map::of_operand(&shown.0).ok_or_else(|| {
            let value = &shown.0;
            let advice = match value.parameters().is_empty() {
                true => String::new(),
                false => ": its numbers have to be known, by substitute(..)".to_owned(),
            };
            PyTypeError::new_err(format!("{value}, a {}, is not drawn{advice}", value.kind()))
        }),
        Shown::Figure(_) => Err(PyTypeError::new_err("this is drawn in one way alone")),
        Shown::Mma(_) | Shown::Copy(_) => Err(PyTypeError::new_err("an instruction is drawn by its name alone")),
    }
}

/// A picture of values, of a program's last operation, or of instructions by their names.
#[pyfunction]
#[pyo3(signature = (*what, kind = "auto", tile = None, title = "", caption = "", label = "offset", shade = "grey", palette = "distinct",
                    theme = "auto", element_bits = 16, width = 32))]
#[allow(clippy::too_many_arguments)]
pub fn picture(
    py: Python<'_>,
    what: &Bound<'_, PyTuple>,
    kind: &str,
    tile: Option<&Bound<'_, PyAny>>,
    title: &str,
    caption: &str,
    label: &str,
    shade: &str,
    palette: &str,
    theme: &str,
    element_bits: i64,
    width: i64,
) -> PyResult<Picture> {
    one_of("kind", kind, &["auto", "offsets", "thread-value", "copy", "mma", "memory"])?;
    let labels = [
        ("offset", Label::Offset),
        ("coordinate", Label::Coordinate),
        ("index", Label::Index),
        ("none", Label::Nothing),
    ];
    let shades = [("grey", Shade::Grey), ("heat", Shade::Heat), ("palette", Shade::Palette), ("none", Shade::Plain)];
    let themes = [("auto", Theme::Auto), ("light", Theme::Light), ("dark", Theme::Dark)];
    if !(1..=1024).contains(&element_bits) {
        return Err(PyValueError::new_err("element_bits is from 1 to 1024"));
    }
    if what.is_empty() {
        return Err(PyTypeError::new_err("there is nothing to draw"));
    }
    let tile = match tile.map(convert::value).transpose()? {
        Some(value) => match value.integer_tree() {
            Some(tile) => Some(tile),
            None => return Err(PyTypeError::new_err("tile is a shape")),
        },
        None => None,
    };
    Ok(Picture {
        shown: what.iter().map(|item| shown(py, &item)).collect::<PyResult<_>>()?,
        kind: kind.to_owned(),
        tile,
        title: title.to_owned(),
        caption: caption.to_owned(),
        style: Style {
            label: named("label", label, &labels)?,
            shade: named("shade", shade, &shades)?,
            palette: named("palette", palette, &Palette::ALL)?,
            medium: Medium::Page,
        },
        theme: named("theme", theme, &themes)?,
        bits: element_bits,
        width,
    })
}

fn shown(py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<Shown> {
    let Ok(text) = item.cast::<PyString>() else {
        return Ok(Shown::Value(Box::new((drawable(convert::value(item)?), None))));
    };
    let text = text.to_str()?;
    let word = text.trim();
    if !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_<>,.".contains(c)) && word.contains('_') {
        if let Ok(atom) = MmaAtom::named(word) {
            return Ok(Shown::Mma(Box::new(atom)));
        }
        if let Ok(atom) = CopyAtom::named(word) {
            return Ok(Shown::Copy(Box::new(atom)));
        }
    }
    let made = call(text, &mut Environment::new()).map_err(|error| refusal::of_program(py, &error, text))?;
    match made {
        Some(made) => Ok(Shown::Value(Box::new((drawable(made.value.clone()), Some(made))))),
        None => Ok(Shown::Value(Box::new((drawable(convert::program(py, text)?), None)))),
    }
}

/// A shape alone means its compact layout.
fn drawable(value: Value) -> Value {
    match value.integer_tree().and_then(|shape| Layout::compact(&shape).ok()) {
        Some(layout) => layout.into(),
        None => value,
    }
}

fn one_of(what: &str, name: &str, names: &[&str]) -> PyResult<()> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{what} is one of {}, not '{name}'", names.join(", "))))
}

fn named<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    one_of(what, name, &all.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| PyValueError::new_err(what.to_owned()))
}

/// A picture within a document with others: as an image, so that their styles do not interfere.
/// Wide pictures scroll.
pub fn image(py: Python<'_>, svg: &str) -> PyResult<String> {
    let text = py.import("base64")?.getattr("b64encode")?.call1((PyBytes::new(py, svg.as_bytes()),))?;
    let text: String = text.call_method1("decode", ("ascii",))?.extract()?;
    Ok(format!("<div style=\"overflow-x:auto\"><img src=\"data:image/svg+xml;base64,{text}\" alt=\"\"></div>"))
}

/// The picture of a value, in the default style; None if it has none.
pub fn of_value(object: &Object) -> Option<Figure<'static>> {
    figures::of(&object.value, None, Style::default(), Banks::of_elements(16)).ok().flatten()
}
