//! Layouts in the notation of other systems.
//!
//! Law: the text that is written reads back as the same function, with the shape in the options if
//! the text has none. A layout that a system cannot express is refused with the reason, and no
//! approximation is written instead.
//!
//! | system | what it says |
//! |---|---|
//! | CuTe in C++ and Python | layouts with known integers, swizzled ones, steps along coordinates; a distributed layout as (thread, value) to elements |
//! | Triton, Gluon | distributed layouts as bases, shared memory as a swizzle or as bases |
//! | TileLang | layouts and fragments as expressions |
//! | TIRx, PyTorch | one extent and one stride for each mode |
//! | JAX, PyTorch | tensors sharded over a mesh |

mod bases;
mod python;

use tilewright_layout::{AnyLayout, Composed, Layout, OuterMap, Swizzle};
use tilewright_mesh::ShardedLayout;
use tilewright_notation::Value;

pub use self::bases::{distributed, thread_value};
use crate::options::Options;
use crate::reading::Meaning;
use crate::refused::{Missing, Refused};
use crate::system::System;

/// A layout in the notation of a system.
///
/// With a shape in the options, Triton, Gluon and TileLang write an integer layout as (thread,
/// value) to the elements of a tile of that shape; without one it is a layout of memory.
///
/// Errors: the system cannot express it (E1304); a question if the shape of the tile is needed.
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
/// use tilewright_read::{Meaning, Options, System, write};
///
/// let layout = evaluate("S<3,3,3> o 0 o (64,64):(64,1)", &mut Environment::new()).unwrap();
/// let meaning = Meaning::Value(layout);
/// let say = |system| write(&meaning, system, &Options::default()).unwrap();
/// assert_eq!(say(System::CuteDsl), "cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((64, 64), stride=(64, 1)))");
/// assert_eq!(say(System::Triton), "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>");
/// assert!(write(&meaning, System::PyTorch, &Options::default()).is_err());
/// ```
pub fn write(meaning: &Meaning, system: System, options: &Options) -> Result<String, Refused> {
    let value = match meaning {
        Meaning::Value(value) => value,
        Meaning::Sharded(sharded) => return sharding(sharded, system),
    };
    match system {
        System::CuteCpp => cpp(value),
        System::CuteDsl => dsl(value),
        System::Triton | System::Gluon => bases::write(value, system, options),
        System::TileLang => python::tilelang(value, options),
        System::Tirx => strided(value, system).map(|[shape, stride]| format!("S[{shape} : {stride}]")),
        System::PyTorch => match value {
            Value::Tree(_) | Value::Int(_) => shape_of_torch(value),
            _ => strided(value, system).map(|[shape, stride]| format!("shape={shape}, stride={stride}")),
        },
        System::Jax => {
            Err(cannot(system, "JAX says how a tensor is sharded over devices, and its arrays have no strides"))
        }
        _ => Err(cannot(
            system,
            "it is read, and not written; cute-cpp, cute-dsl, triton, gluon, tilelang, tirx, torch and jax are written",
        )),
    }
}

/// The refusal of a layout that a system cannot express.
pub(crate) fn cannot(system: System, because: impl std::fmt::Display) -> Refused {
    let message = format!("{} cannot say this layout: {because}", system.title());
    let help = "other systems may: cute-cpp and cute-dsl say every layout of integers and every swizzle";
    Refused::unsupported(0..0, message, help)
}

fn sharding(sharded: &ShardedLayout, system: System) -> Result<String, Refused> {
    let fail = |error: tilewright_mesh::MeshError| cannot(system, error);
    let axes = |quote: &str| {
        let axes = sharded.mesh().axes().iter();
        axes.map(|axis| format!("{quote}{}{quote}: {}", axis.name, axis.extent)).collect::<Vec<_>>().join(", ")
    };
    match system {
        System::Jax => {
            let spec = sharded.partition_spec().map_err(fail)?;
            Ok(format!("NamedSharding(mesh=Mesh({}), spec={spec})", axes("'")))
        }
        System::PyTorch => sharded.placements().map_err(fail),
        _ => Err(cannot(system, "the tensor is sharded over a mesh of devices; jax and torch say that")),
    }
}

/// The integer layout of a value, or its parts if it is swizzled: the swizzle and its offset.
enum Parts<'a> {
    Plain(&'a Layout),
    Swizzled(Swizzle, i64, &'a Layout),
}

fn parts(value: &Value, system: System) -> Result<Parts<'_>, Refused> {
    match value {
        Value::Layout(AnyLayout::Integer(layout)) => Ok(Parts::Plain(layout)),
        Value::Layout(AnyLayout::Composed(composed)) => swizzled(composed, system),
        Value::Layout(AnyLayout::Launch(_) | AnyLayout::LaunchComposed(_)) => {
            Err(cannot(system, "a number becomes known at launch; give it a value first"))
        }
        Value::Layout(AnyLayout::Xor(_)) => {
            Err(cannot(system, "its XOR steps are not those of one swizzle; Triton says them, as a linear layout"))
        }
        other => Err(cannot(system, format_args!("{other} is a {}", other.kind()))),
    }
}

fn swizzled(composed: &Composed, system: System) -> Result<Parts<'_>, Refused> {
    match composed.outer() {
        OuterMap::Swizzle(swizzle) => Ok(Parts::Swizzled(*swizzle, *composed.offset(), composed.inner())),
        _ => Err(cannot(system, "its outer map is no swizzle")),
    }
}

/// A tuple in our notation, with its brackets, commas and numbers replaced.
fn tuple(text: &str, open: &str, close: &str, comma: &str, number: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match first {
            '(' => out.push_str(open),
            ')' => out.push_str(close),
            ',' => out.push_str(comma),
            _ => {
                let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
                out.push_str(&number(rest.get(..end).unwrap_or("")));
                rest = rest.get(end..).unwrap_or("");
                continue;
            }
        }
        rest = rest.get(first.len_utf8()..).unwrap_or("");
    }
    out
}

/// An integer as a CuTe type.
fn integer_type(text: &str) -> String {
    match text.parse::<i64>() {
        Ok(number) if (0..=10).contains(&number) || (16..=512).contains(&number) && number & (number - 1) == 0 => {
            format!("_{number}")
        }
        _ => format!("Int<{text}>"),
    }
}

/// A step as a CuTe type: `ScaledBasis<Int<2>,1>` for `2@1`.
fn step_type(text: &str) -> String {
    match text.split_once('@') {
        Some((scale, path)) => {
            let mut found = integer_type(scale);
            for mode in path.split('@') {
                found = format!("ScaledBasis<{found},{mode}>");
            }
            found
        }
        None => integer_type(text),
    }
}

fn cpp_layout(shape: &str, stride: &str) -> String {
    let shape = tuple(shape, "Shape<", ">", ",", integer_type);
    let stride = tuple(stride, "Stride<", ">", ",", step_type);
    format!("Layout<{shape},{stride}>")
}

fn cpp(value: &Value) -> Result<String, Refused> {
    let plain = |layout: &Layout| cpp_layout(&layout.shape().to_string(), &layout.stride().to_string());
    match value {
        Value::Layout(AnyLayout::Coordinate(layout)) => {
            Ok(cpp_layout(&layout.shape().to_string(), &layout.stride().to_string()))
        }
        Value::Swizzle(swizzle) => Ok(swizzle_type(*swizzle)),
        Value::Linear(map) => Ok(plain(&thread_value(map, System::CuteCpp)?)),
        Value::Tree(_) | Value::Int(_) => Ok(tuple(&value.to_string(), "Shape<", ">", ",", integer_type)),
        value => match parts(value, System::CuteCpp)? {
            Parts::Plain(layout) => Ok(plain(layout)),
            Parts::Swizzled(swizzle, offset, layout) => {
                let offset = integer_type(&offset.to_string());
                Ok(format!("ComposedLayout<{},{offset},{}>", swizzle_type(swizzle), plain(layout)))
            }
        },
    }
}

fn swizzle_type(swizzle: Swizzle) -> String {
    format!("Swizzle<{},{},{}>", swizzle.bits(), swizzle.base(), swizzle.shift())
}

/// A tuple in Python's notation: a single element is followed by a comma.
pub(crate) fn python_tuple(text: &str) -> String {
    let spaced = tuple(text, "(", ")", ", ", str::to_owned);
    // A tuple with one element.
    let mut out = String::new();
    let mut depth: Vec<bool> = Vec::new();
    for c in spaced.chars() {
        match c {
            '(' => depth.push(false),
            ',' => {
                if let Some(last) = depth.last_mut() {
                    *last = true;
                }
            }
            ')' if depth.pop() == Some(false) => out.push(','),
            _ => {}
        }
        out.push(c);
    }
    out
}

fn dsl(value: &Value) -> Result<String, Refused> {
    let plain = |layout: &Layout| {
        let [shape, stride] = [layout.shape().to_string(), layout.stride().to_string()].map(|text| python_tuple(&text));
        format!("cute.make_layout({shape}, stride={stride})")
    };
    let swizzle =
        |swizzle: Swizzle| format!("cute.make_swizzle({}, {}, {})", swizzle.bits(), swizzle.base(), swizzle.shift());
    match value {
        Value::Linear(map) => Ok(plain(&thread_value(map, System::CuteDsl)?)),
        value => match parts(value, System::CuteDsl)? {
            Parts::Plain(layout) => Ok(plain(layout)),
            Parts::Swizzled(own, offset, layout) => {
                Ok(format!("cute.make_composed_layout({}, {offset}, {})", swizzle(own), plain(layout)))
            }
        },
    }
}

/// The shape and the strides of a layout with one extent and one stride for every mode.
fn strided(value: &Value, system: System) -> Result<[String; 2], Refused> {
    let layout = match parts(value, system)? {
        Parts::Plain(layout) => layout,
        Parts::Swizzled(..) => return Err(cannot(system, "it is swizzled, and strides alone are no swizzle")),
    };
    if layout.depth() > 1 {
        return Err(cannot(
            system,
            format_args!("each dimension there has one extent and one stride, and a mode of {layout} has several"),
        ));
    }
    if system == System::PyTorch && layout.leaves().iter().any(|leaf| leaf.stride < 0) {
        return Err(cannot(system, "strides are not negative there"));
    }
    let [shape, stride] = [layout.shape().to_string(), layout.stride().to_string()];
    let text = |text: &str| if text.starts_with('(') { python_tuple(text) } else { format!("({text},)") };
    Ok([text(&shape), text(&stride)])
}

fn shape_of_torch(value: &Value) -> Result<String, Refused> {
    let Some(tree) = value.integer_tree().filter(|tree| tree.depth() <= 1) else {
        return Err(cannot(System::PyTorch, "a shape there is a list of numbers"));
    };
    let extents: Vec<String> = tree.leaves().iter().map(i64::to_string).collect();
    Ok(format!("torch.Size([{}])", extents.join(", ")))
}

/// The question for the shape of a tile.
pub(crate) fn ask_shape(system: System) -> Refused {
    let message = format!(
        "to {}, (thread, value) goes to coordinates of a tile, and the layout does not say the tile's shape",
        system.title()
    );
    Refused::ask(Missing::Shape, message)
}
