//! Strided arrays: NumPy's and PyTorch's shapes and strides, tinygrad's views, TIRx' layouts.
//!
//! Law: a coordinate `(i, j, ..)` is sent to the sum of its products with the strides. Modes are in
//! the order of the shape, and nothing is reversed. NumPy's `strides` count bytes: they become
//! elements if the width is known, from the `dtype` or the options; otherwise the layout counts
//! bytes. PyTorch's `stride` counts elements. If there is `strides=` and nothing says which system
//! it is from, the result is a question. A shape alone is a tuple. A tinygrad view with an offset
//! is a layout composed with that offset. Of several views the last one is applied first, and its
//! values index the elements of the one before, row by row.

use tilewright_layout::{AnyLayout, Composed, Layout, LayoutError, Tree};
use tilewright_notation::Value;

use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::term::{Argument, Stopped, Term, TermKind, read_arguments, read_python};
use crate::tuple::value;
use crate::width::element_bits;

/// The reader of tinygrad.
pub const TINYGRAD: Reader =
    Reader { system: System::Tinygrad, signs: &["View(", "ShapeTracker("], read: read_tinygrad };

/// The reader of TIRx.
pub const TIRX: Reader = Reader { system: System::Tirx, signs: &["S["], read: read_tirx };

const STRIDED: &[&str] = &["shape=", "shape =", "shape:", "size=", "torch.Size(", "'shape':", "\"shape\":"];

/// The reader of NumPy.
pub const NUMPY: Reader =
    Reader { system: System::NumPy, signs: STRIDED, read: |context, at| read_strided(context, at, System::NumPy) };

/// The reader of the array interface, whichever entry is first.
pub const INTERFACE: Reader = Reader {
    system: System::NumPy,
    signs: &["{'data'", "{'shape'", "{'strides'", "{'typestr'", "{'descr'", "{'version'", "{'stream'", "{'mask'"],
    read: read_interface,
};

/// The reader of PyTorch.
pub const TORCH: Reader =
    Reader { system: System::PyTorch, signs: STRIDED, read: |context, at| read_strided(context, at, System::PyTorch) };

pub(super) fn damaged(at: usize, stopped: &Stopped) -> Found {
    let end = stopped.at.max(at + 1);
    let message = format!("the text is damaged or cut off: {} is wanted here", stopped.wanted);
    Found { span: at..end, answer: Err(Refused::damaged(stopped.at..stopped.at, message)) }
}

/// The layout of a shape and strides.
pub(super) fn strided(shape: &[i64], strides: &[i64]) -> Result<Layout, LayoutError> {
    let tuple = |numbers: &[i64]| match numbers {
        [only] => Ok(Tree::leaf(*only)),
        numbers => Tree::flat(numbers.iter().copied()),
    };
    Layout::new(&tuple(shape)?, &tuple(strides)?)
}

/// A layout composed with an offset.
pub(super) fn offset_by(layout: Layout, offset: i64) -> Result<AnyLayout, LayoutError> {
    if offset == 0 {
        return Ok(AnyLayout::from(layout));
    }
    let reach = layout.cosize()?.max(1).checked_add(offset.abs()).ok_or(LayoutError::Overflow { op: "offset" })?;
    Ok(AnyLayout::from(Composed::new(Layout::mode_of(reach, 1)?, offset, layout)?))
}

struct View {
    shape: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

fn read_tinygrad(context: &Context<'_>, at: usize) -> Option<Found> {
    let term = match read_python(context.source, at) {
        Ok(term) => term,
        Err(stopped) => return Some(damaged(at, &stopped)),
    };
    let span = term.place.clone();
    let (name, arguments) = term.call()?;
    let views: Option<Vec<&Term>> = match name {
        "View" => Some(vec![&term]),
        _ => argument(arguments, "views", 0).and_then(Term::list),
    };
    let refuse = |message: &str| {
        Refused::unsupported(span.clone(), message, "a layout is read from View(shape=.., strides=.., offset=..)")
    };
    let answer = match views {
        None => Err(refuse("a ShapeTracker has a tuple of views")),
        Some(views) => views
            .iter()
            .map(|view| view_of(view).map_err(|because| refuse(&because)))
            .collect::<Result<Vec<View>, Refused>>()
            .and_then(|views| composed_views(&views).map_err(|because| refuse(&because))),
    };
    let unit = Unit::Elements { bits: context.options.element_bits };
    let answer = answer.map(|layout| Reading::new(System::Tinygrad, "view", Value::Layout(layout), unit));
    Some(Found { span, answer })
}

fn argument<'a>(arguments: &'a [Argument], name: &str, position: usize) -> Option<&'a Term> {
    let named = arguments.iter().find(|argument| argument.name.as_deref() == Some(name));
    named.or_else(|| arguments.get(position).filter(|argument| argument.name.is_none()))?.value()
}

/// Why a view with a mask is not a layout, with the view of the elements that are in memory.
fn masked(shape: &[i64], strides: &[i64], offset: i64, mask: &Term) -> String {
    let why = "a view with a mask has elements that are in no memory, and a layout has none of these".to_owned();
    let ranges: Option<Vec<Vec<i64>>> =
        mask.list().and_then(|ranges| ranges.into_iter().map(Term::numbers).collect::<Option<_>>());
    let Some(ranges) = ranges.filter(|ranges| ranges.len() == shape.len()) else { return why };
    let (mut extents, mut from, mut start) = (Vec::new(), Vec::new(), offset);
    for (range, stride) in ranges.iter().zip(strides) {
        let &[first, end] = range.as_slice() else { return why };
        if !(0..=end).contains(&first) || end == first {
            return why;
        }
        let moved = first.checked_mul(*stride).and_then(|moved| start.checked_add(moved));
        let Some(moved) = moved else { return why };
        start = moved;
        extents.push(end - first);
        from.push(first);
    }
    let tuple = |numbers: &[i64]| {
        let text = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        if numbers.len() == 1 { format!("({text},)") } else { format!("({text})") }
    };
    format!(
        "{why}; those that are in memory, from {} on, are View(shape={}, strides={}, offset={start})",
        tuple(&from),
        tuple(&extents),
        tuple(strides)
    )
}

fn view_of(term: &Term) -> Result<View, String> {
    let (_, arguments) = term.call().ok_or("a view is written View(shape=.., strides=..)".to_owned())?;
    let numbers = |name, position| argument(arguments, name, position).and_then(Term::numbers);
    let (shape, strides) = match (numbers("shape", 0), numbers("strides", 1)) {
        (Some(shape), Some(strides)) if shape.len() == strides.len() => (shape, strides),
        _ => return Err("a view has a shape and strides of as many numbers".into()),
    };
    let offset = match argument(arguments, "offset", 2) {
        None => 0,
        Some(term) => term.number().ok_or("the offset of a view is a number".to_owned())?,
    };
    let mask = argument(arguments, "mask", 3).filter(|mask| mask.word() != Some("None"));
    if let Some(mask) = mask {
        let whole = mask.list().is_some_and(|ranges| {
            ranges.len() == shape.len()
                && ranges.iter().zip(&shape).all(|(range, extent)| range.numbers() == Some(vec![0, *extent]))
        });
        if !whole {
            return Err(masked(&shape, &strides, offset, mask));
        }
    }
    Ok(View { shape, strides, offset })
}

/// The composition of views, of which the last one is applied first.
fn composed_views(views: &[View]) -> Result<AnyLayout, String> {
    let fail = |error: LayoutError| error.to_string();
    let Some((last, before)) = views.split_last() else { return Err("a ShapeTracker has at least one view".into()) };
    let layout = strided(&last.shape, &last.strides).map_err(fail)?;
    let mut found = offset_by(layout, last.offset).map_err(fail)?;
    for view in before.iter().rev() {
        // By index, row by row: the last mode is the fastest.
        let (shape, strides): (Vec<i64>, Vec<i64>) =
            (view.shape.iter().rev().copied().collect(), view.strides.iter().rev().copied().collect());
        let outer = strided(&shape, &strides).map_err(fail)?;
        let plain = match &found {
            AnyLayout::Integer(inner) => outer.compose(inner).ok(),
            _ => None,
        };
        let composed = match (plain, found) {
            (Some(plain), _) => AnyLayout::from(plain),
            (None, AnyLayout::Integer(inner)) => AnyLayout::from(Composed::new(outer, 0, inner).map_err(fail)?),
            (None, AnyLayout::Composed(inner)) => AnyLayout::from(inner.then(outer).map_err(fail)?),
            _ => return Err("these views have no layout".into()),
        };
        found = match (view.offset, composed) {
            (0, composed) => composed,
            (offset, AnyLayout::Integer(layout)) => offset_by(layout, offset).map_err(fail)?,
            (offset, AnyLayout::Composed(inner)) => {
                let reach = inner.cosize().map_err(fail)?.max(1).saturating_add(offset.abs());
                let shift = Composed::new(
                    Layout::mode_of(reach, 1).map_err(fail)?,
                    offset,
                    Layout::mode_of(reach, 1).map_err(fail)?,
                );
                let shift = shift.map_err(fail)?.map().map_err(fail)?;
                AnyLayout::from(inner.then(shift).map_err(fail)?)
            }
            _ => return Err("these views have no layout".into()),
        };
    }
    Ok(found)
}

fn read_tirx(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    let inner = rest.strip_prefix("S[")?;
    let end = inner.bytes().take(1 << 12).position(|byte| byte == b']')?;
    let inside = inner.get(..end)?;
    let span = at..at + 2 + end + 1;
    let (shape, strides) = inside.split_once(':')?;
    if !shape.trim_start().starts_with(['(', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return None;
    }
    let behind = rest.get(2 + end + 1..).unwrap_or("");
    let line = behind.split('\n').next().unwrap_or("").trim_end();
    let behind = line.trim_start();
    let span = if behind.starts_with('+') { span.start..span.end + line.len().min(1 << 12) } else { span };
    let answer = if behind.starts_with('+') {
        Err(Refused::unsupported(
            span.clone(),
            "R[..] makes copies of each element and an offset moves all of them; a layout here does neither",
            "paste the part S[shape : strides] alone",
        ))
    } else {
        tirx(shape, strides, span.clone(), context)
    };
    Some(Found { span, answer })
}

/// The layout of strides. Strides with names of axes become steps along coordinates, in the order
/// in which the names first occur.
fn tirx(shape: &str, strides: &str, span: std::ops::Range<usize>, context: &Context<'_>) -> Result<Reading, Refused> {
    let mut names: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = strides;
    while let Some((before, after)) = rest.split_once('@') {
        let length = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, behind) = after.split_at_checked(length).unwrap_or((after, ""));
        let position = names.iter().position(|own| *own == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        text.push_str(before);
        text.push_str(&format!("@{position}"));
        rest = behind;
    }
    text.push_str(rest);
    let layout = value(&format!("{}:{}", shape.trim(), text.trim()), span)?;
    if names.is_empty() {
        let unit = Unit::Elements { bits: context.options.element_bits };
        return Ok(Reading::new(System::Tirx, "layout", layout, unit));
    }
    let told: Vec<String> = names.iter().enumerate().map(|(at, name)| format!("@{at} is {name}")).collect();
    Ok(Reading::new(System::Tirx, "layout", layout, Unit::Coordinates).note(told.join(", ")))
}

/// Reads a shape with or without strides, as arguments or as words in sequence.
fn read_strided(context: &Context<'_>, at: usize, system: System) -> Option<Found> {
    let (parts, end) = match read_arguments(context.source, at, PARTS) {
        Ok(found) => found,
        Err(stopped) => {
            // Only one of the two readers reports the damage.
            return (system == System::PyTorch).then(|| damaged(at, &stopped));
        }
    };
    let tuple = |term: &Term| match &term.kind {
        TermKind::Call(name, arguments) if name.ends_with("Size") => arguments.first()?.value()?.numbers(),
        _ => term.numbers(),
    };
    let find = |names: &[&str]| {
        let known = |part: &&Argument| part.name.as_deref().is_some_and(|name| names.contains(&name));
        parts.iter().find(known).and_then(Argument::value)
    };
    let size = parts
        .iter()
        .filter_map(Argument::value)
        .find(|term| matches!(&term.kind, TermKind::Call(name, _) if name == "torch.Size"));
    let shape = find(&["shape", "size"]).or(size).and_then(tuple)?;
    let strides = find(&["strides", "stride", "__stride"]).and_then(tuple);
    let own_elements = find(&["stride"]).is_some() || size.is_some();
    let kind = find(&["dtype", "typestr"]);
    let kind = kind.and_then(|term| match &term.kind {
        TermKind::Call(_, arguments) => arguments.first()?.value(),
        _ => Some(term),
    });
    let word = kind.and_then(|term| match &term.kind {
        TermKind::Word(word) | TermKind::Text(word) => Some(word.as_str()),
        _ => None,
    });
    let is_torch = own_elements || word.is_some_and(|word| word.starts_with("torch.")) || find(&["size"]).is_some();
    let is_numpy = !is_torch && (word.is_some() || find(&["typestr"]).is_some());
    let own = match kind {
        Some(term) if is_numpy => width_of_dtype(term),
        _ => word.and_then(element_bits),
    };
    let bits = own.or(context.options.element_bits);
    let span = at..end;
    // Each text is read by one of the two readers.
    let answer = match (&strides, system) {
        (None, System::PyTorch) if !is_numpy => shape_alone(system, &shape, span.clone()),
        (None, System::NumPy) if is_numpy => shape_alone(system, &shape, span.clone()),
        (None, _) => return None,
        (Some(strides), System::PyTorch) if is_torch || context.options.system == Some(System::PyTorch) => {
            let offset = find(&["storage_offset"]).and_then(Term::number).unwrap_or(0);
            elements(System::PyTorch, (&shape, strides, offset), bits, span.clone())
        }
        (Some(strides), System::NumPy) if is_numpy || context.options.system == Some(System::NumPy) => {
            bytes(&shape, strides, bits, span.clone())
        }
        (Some(_), _) if is_torch || is_numpy => return None,
        // Nothing says which system the strides are from.
        (Some(_), System::NumPy) => {
            let systems = vec![System::NumPy, System::PyTorch];
            Err(Refused::ask(
                Missing::System(systems),
                "strides count bytes in NumPy and elements in PyTorch, and the text does not say whose they are",
            ))
        }
        _ => return None,
    };
    Some(Found { span, answer })
}

/// The dictionary of `__array_interface__`: `{'data': .., 'strides': (4, 64), 'typestr': '<f4',
/// 'shape': (16, 8), ..}`. Without strides the last dimension is contiguous.
fn read_interface(context: &Context<'_>, at: usize) -> Option<Found> {
    let term = read_python(context.source, at).ok()?;
    let TermKind::List('{', entries) = &term.kind else { return None };
    let shape = argument(entries, "shape", usize::MAX)?.numbers()?;
    let typestr = argument(entries, "typestr", usize::MAX)?;
    let TermKind::Text(_) = &typestr.kind else { return None };
    let span = term.place.clone();
    let width = width_of_dtype(typestr).or(context.options.element_bits);
    let answer = match argument(entries, "strides", usize::MAX) {
        Some(strides) if strides.word() != Some("None") => bytes(&shape, &strides.numbers()?, width, span.clone()),
        _ => {
            let mut strides = vec![1_i64; shape.len()];
            for mode in (1..shape.len()).rev() {
                let step = strides.get(mode)?.checked_mul(*shape.get(mode)?)?;
                *strides.get_mut(mode - 1)? = step;
            }
            let made = elements(System::NumPy, (&shape, &strides, 0), width, span.clone());
            made.map(|reading| {
                reading.note("without strides the elements follow each other, the last dimension fastest")
            })
        }
    };
    Some(Found { span, answer })
}

fn shape_alone(system: System, shape: &[i64], span: std::ops::Range<usize>) -> Result<Reading, Refused> {
    let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
    Ok(Reading::new(system, "shape", value(&format!("({})", shape.join(",")), span)?, Unit::None))
}

/// The largest number of words with values that describe one array.
const PARTS: usize = 8;

/// The bits of a `dtype` of NumPy: by its name, or as a code, `'<f4'`, which counts bytes, or
/// characters of four bytes for `U`.
///
/// None for a name such as `i8` without quotation marks: it has 8 bits in XLA and 8 bytes in NumPy.
fn width_of_dtype(term: &Term) -> Option<i64> {
    let name = match &term.kind {
        TermKind::Word(name) | TermKind::Text(name) => name.as_str(),
        _ => return None,
    };
    let code = name.trim_start_matches(['<', '>', '|', '=']);
    let letter = code.chars().next().filter(|letter| "biufcmMOSUV".contains(*letter));
    let bytes = letter.and_then(|_| code.get(1..)?.parse::<i64>().ok());
    match (bytes, letter, name) {
        (Some(_), ..) if code == name && matches!(term.kind, TermKind::Word(_)) => None,
        (Some(bytes), letter, _) => bytes.checked_mul(if letter == Some('U') { 32 } else { 8 }),
        // Python's types, as NumPy has them.
        (_, _, "float" | "int") => Some(64),
        (_, _, "complex") => Some(128),
        _ => element_bits(name),
    }
}

/// The layout of an array, whose strides and offset count elements.
pub(super) fn elements(
    system: System,
    (shape, strides, offset): (&[i64], &[i64], i64),
    bits: Option<i64>,
    span: std::ops::Range<usize>,
) -> Result<Reading, Refused> {
    let layout = strided(shape, strides).and_then(|layout| offset_by(layout, offset));
    let layout = layout.map_err(|error| Refused::contradiction(span, error.to_string()))?;
    Ok(Reading::new(system, "array", Value::Layout(layout), Unit::Elements { bits }))
}

/// Strides in bytes, converted to elements if the width is known and divides them.
pub(super) fn bytes(
    shape: &[i64],
    strides: &[i64],
    bits: Option<i64>,
    span: std::ops::Range<usize>,
) -> Result<Reading, Refused> {
    let width = bits.filter(|bits| *bits >= 8 && bits % 8 == 0).map(|bits| bits / 8);
    let divided = width.and_then(|width| {
        strides.iter().map(|stride| (stride % width == 0).then(|| stride / width)).collect::<Option<Vec<i64>>>()
    });
    let fail = |error: LayoutError| Refused::contradiction(span.clone(), error.to_string());
    let layout = |strides: &[i64]| Ok(Value::Layout(AnyLayout::from(strided(shape, strides).map_err(fail)?)));
    match (divided, width) {
        (Some(divided), Some(width)) => {
            let unit = Unit::Elements { bits };
            let note = format!("NumPy's strides count bytes; elements have {width}");
            Ok(Reading::new(System::NumPy, "array", layout(&divided)?, unit).note(note))
        }
        (None, Some(width)) => {
            let note =
                format!("the strides are no multiples of the {width} bytes of an element, so the layout counts bytes");
            Ok(Reading::new(System::NumPy, "array", layout(strides)?, Unit::Bytes).note(note))
        }
        _ => Ok(Reading::new(System::NumPy, "array", layout(strides)?, Unit::Bytes)
            .note("the layout counts bytes, as NumPy's strides do; the width of an element makes it one of elements")),
    }
}
