//! Tiled MMAs and tiled copies as CuTe prints them: a head, and a line for each part.
//!
//! Law: each line is the layout that it shows. `LayoutA_TV` and similar lines map (thread, value)
//! of one instruction to the colexicographic index in its operand's tile. `ValLayoutSrc` and
//! similar lines map (thread, value) to the index of a value of the printed width. The parts of a
//! tiled MMA determine the layouts of its whole tile; these are given if the printed threads are
//! those of the arrangement of atoms, which is checked.

use std::ops::Range;

use tilewright_layout::atoms::{Arch, MmaAtom, MmaTypes, Operand, ThreadValue, TiledMma, ValueType};
use tilewright_layout::{Layout, Tiler};
use tilewright_notation::Value;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::readers::cute_print::layout;
use crate::reading::{Part, Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::tuple::{Tuple, value};
use crate::width::element_bits;

/// The reader of C++ prints.
pub const READER: Reader = Reader {
    system: System::CutePrint,
    signs: &["TiledMMA", "TiledCopy", "MMA_Atom", "Copy_Atom", "ThrMMA", "ThrCopy"],
    read: read_cpp,
};

/// The reader of prints of CuTe's Python.
pub const PYTHON: Reader =
    Reader { system: System::CuteDsl, signs: &["Tiled MMA", "Tiled Copy", "MMA Atom", "Copy Atom"], read: read_python };

/// The largest number of lines of a block.
const MOST_LINES: usize = 24;

fn read_cpp(context: &Context<'_>, at: usize) -> Option<Found> {
    block(context, at, System::CutePrint, READER.signs)
}

fn read_python(context: &Context<'_>, at: usize) -> Option<Found> {
    block(context, at, System::CuteDsl, PYTHON.signs)
}

/// A line of a block.
struct Line<'a> {
    label: &'a str,
    text: &'a str,
    span: Range<usize>,
}

fn block(context: &Context<'_>, at: usize, system: System, heads: &[&str]) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let head = *heads.iter().find(|head| cursor.eat(head))?;
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut end = cursor.at;
    end_of_line(&mut cursor)?;
    while lines.len() < MOST_LINES {
        cursor.blanks(false);
        let start = cursor.at;
        let rest = cursor.rest();
        let text = rest.split(['\n', '\r']).next().unwrap_or("");
        if let Some(inner) = heads.iter().find(|inner| text.trim_end() == **inner) {
            // A head inside a block, such as `MMA_Atom` in `TiledMMA`. Another block begins with a
            // head of its own.
            let own = head.starts_with("Tiled") || head.starts_with("Thr");
            if !own || (inner.starts_with("Tiled") && head.starts_with("Tiled")) || lines.is_empty() && inner == &head {
                break;
            }
            cursor.at = start + text.len();
        } else {
            let Some((label, value)) = text.split_once(':') else { break };
            let words = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_');
            if label.is_empty() || label.len() > 24 || !label.chars().all(words) {
                break;
            }
            let span =
                start + label.len() + 1 + (value.len() - value.trim_start().len())..start + text.trim_end().len();
            if !is_value(context.source, &span) {
                break;
            }
            lines.push(Line { label: label.trim(), text: value.trim(), span });
            cursor.at = start + text.len();
        }
        end = cursor.at;
        if end_of_line(&mut cursor).is_none() {
            break;
        }
    }
    if lines.is_empty() {
        return None;
    }
    Some(Found { span: at..end, answer: meaning(head, &lines, system) })
}

/// Skips the end of a line and the blanks before it.
fn end_of_line(cursor: &mut Cursor<'_>) -> Option<()> {
    let _ = cursor.blanks(false).eat("\r");
    cursor.eat("\n").then_some(())
}

/// Whether a span is the value of a line: a layout, a tuple, a number or a type.
fn is_value(source: &str, span: &Range<usize>) -> bool {
    let text = source.get(span.clone()).unwrap_or("");
    width(text).is_some() || part_value(text).is_some()
}

/// The width of a value type: `16b`, or `f16`.
fn width(text: &str) -> Option<i64> {
    text.strip_suffix('b').and_then(|digits| digits.parse().ok()).or_else(|| element_bits(text))
}

/// A layout, a tuple or a tiler in our notation.
fn part_value(text: &str) -> Option<String> {
    let mut cursor = Cursor::new(text, 0);
    if let Some((layout, _)) = layout(&mut cursor).filter(|_| cursor.is_at_end()) {
        return Some(layout);
    }
    let mut cursor = Cursor::new(text, 0);
    if let Some(tuple) = Tuple::read(&mut cursor).filter(|_| cursor.is_at_end()) {
        return Some(tuple.to_string());
    }
    // `(32:1,_,16:1)`: a tiler by mode.
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let mut cursor = Cursor::new(inner, 0);
    let mut items = Vec::new();
    loop {
        cursor.blanks(false);
        let start = cursor.at;
        let _ = Tuple::read(&mut cursor)?;
        if cursor.eat(":") {
            let _ = Tuple::read(&mut cursor)?;
        }
        items.push(inner.get(start..cursor.at)?.replace('_', ""));
        if items.last().is_some_and(String::is_empty) {
            items.pop();
            items.push("_".to_owned());
        }
        if cursor.is_at_end() {
            return Some(format!("[{}]", items.join(";")));
        }
        if !cursor.eat(",") {
            return None;
        }
    }
}

fn meaning(head: &str, lines: &[Line<'_>], system: System) -> Result<Reading, Refused> {
    let what = match head {
        "TiledMMA" | "Tiled MMA" => "tiled product",
        "ThrMMA" => "thread of a tiled product",
        "TiledCopy" | "Tiled Copy" => "tiled copy",
        "ThrCopy" => "thread of a tiled copy",
        "MMA_Atom" | "MMA Atom" => "matrix instruction",
        _ => "copy instruction",
    };
    let bits = lines.iter().find(|line| line.label.eq_ignore_ascii_case("ValueType") || line.label == "Value type");
    let bits = bits.and_then(|line| width(line.text));
    let mut parts = Vec::new();
    for line in lines {
        let Some(text) = part_value(line.text) else { continue };
        let unit = match line.label {
            label
                if label.contains("ValLayout")
                    || matches!(label, "TV Layout Src" | "TV Layout Dst" | "TV Layout Ref") =>
            {
                Unit::Elements { bits }
            }
            label if label.contains("Layout") && label.contains("VMNK") => Unit::Threads,
            "ThrID" => Unit::Threads,
            label if label.contains("Layout") => Unit::Indices,
            _ => Unit::None,
        };
        let name = if parts.iter().any(|part: &Part| part.name == line.label) { continue } else { line.label };
        parts.push(Part::new(name, value(&text, line.span.clone())?, unit));
    }
    let mut notes = Vec::new();
    if let Some(bits) = bits {
        notes.push(format!("a value has {bits} bits"));
    }
    let mut shown: Vec<Value> = Vec::new();
    if let Some(tiles) = tiled_product(&parts) {
        for (name, layout) in tiles {
            shown.push(layout.clone().into());
            parts.push(Part::new(name, layout.into(), Unit::Indices));
        }
        notes.push(
            "the value lists who holds what of the whole tile of A, B and C: (thread, value) to index".to_owned(),
        );
    }
    if shown.is_empty() {
        let layouts = parts.iter().filter(|part| matches!(part.value, Value::Layout(_)));
        shown = match what {
            "tiled copy" | "thread of a tiled copy" => {
                layouts.filter(|part| part.name.contains("iled")).map(|part| part.value.clone()).collect()
            }
            _ => layouts.map(|part| part.value.clone()).collect(),
        };
    }
    let shown = match shown.as_slice() {
        [one] => one.clone(),
        [] => {
            let span = lines.first().map_or(0..0, |line| line.span.clone());
            return Err(Refused::damaged(span, "the block shows no layout"));
        }
        _ => Value::List(shown),
    };
    let mut reading = Reading::new(system, what, shown, Unit::Indices);
    reading.notes = notes;
    reading.parts = parts;
    Ok(reading)
}

/// The layouts of the whole tile of a tiled MMA, from its parts; None if they do not match.
fn tiled_product(parts: &[Part]) -> Option<Vec<(&'static str, Layout)>> {
    fn part<'a>(parts: &'a [Part], names: [&str; 2]) -> Option<&'a Value> {
        parts.iter().find(|part| names.contains(&part.name.as_str())).map(|part| &part.value)
    }
    let integer = |names: [&str; 2]| part(parts, names)?.integer_layout().cloned();
    let threads = integer(["ThrLayoutVMNK", "Thr Layout VMNK"])?;
    let atom_threads = integer(["ThrID", "ThrID"])?;
    let shape = part(parts, ["Shape_MNK", "Shape MNK"])?.integer_tree()?;
    let &[m, n, k] = shape.leaves() else { return None };
    let [a, b, c] = ["A", "B", "C"].map(|operand| {
        let [own, python] = [format!("Layout{operand}_TV"), format!("TV Layout {operand}")];
        integer([own.as_str(), python.as_str()])
    });
    // In a tile of A, two instructions may need the same element: they share its rows.
    let held = |layout: Layout, places: i64| {
        let holders = (layout.size() / places).max(1);
        if holders == 1 { ThreadValue::from(layout) } else { ThreadValue::shared(layout, holders) }
    };
    let factors = [held(a?, m * k), held(b?, n * k), held(c?, m * n)];
    let types = MmaTypes::uniform(ValueType::F32);
    let atom = MmaAtom::new("printed", Arch::Universal, [m, n, k], types, atom_threads.clone(), factors).ok()?;
    // The arrangement of atoms: the modes of the threads after the first, in units of atoms.
    let size = atom_threads.size();
    let modes: Vec<Layout> = (1..threads.rank()).filter_map(|mode| threads.mode(mode)).collect();
    let strides =
        modes.iter().map(|mode| mode.stride().leaves().iter().map(|stride| stride / size).collect::<Vec<_>>());
    let modes: Option<Vec<Layout>> = modes
        .iter()
        .zip(strides)
        .map(|(mode, strides)| {
            let stride = tilewright_layout::Tree::new(mode.profile().clone(), strides).ok()?;
            Layout::new(&mode.shape(), &stride).ok()
        })
        .collect();
    let arrangement = Layout::tuple(modes?.iter()).ok()?;
    let permutation = match part(parts, ["PermutationMNK", "Permutation MNK"])?.to_tiler() {
        Some(Ok(tiler)) => tiler,
        _ => Tiler::Keep,
    };
    let product = TiledMma::new(atom, &arrangement, &permutation).ok()?;
    // The printed layout must equal the computed one, except for strides of modes of extent 1,
    // which have no effect.
    let follows = product.thread_layout();
    if follows.shape() != threads.shape() || !follows.equivalent(&threads) {
        return None;
    }
    let tile = |name, operand| Some((name, product.thread_values(operand).ok()?));
    Some(vec![tile("tile A", Operand::A)?, tile("tile B", Operand::B)?, tile("tile C", Operand::C)?])
}
