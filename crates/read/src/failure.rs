//! Explains failed builds: compiler messages about CuTe's algebra.
//!
//! Law: a failure names the operation that the user wrote and its operands, which are found in the
//! template parameters. The reason is not taken from the message: the operation is computed in this
//! library's algebra. If the algebra refuses it, the refusal gives the reason, mode and coordinate.
//! If the algebra can compute it although CuTe refuses it, the result is given, and is as valid as
//! any other result of the algebra.

use std::collections::HashSet;
use std::ops::Range;

use tilewright_layout::Tree;
use tilewright_notation::{Environment, Value, evaluate};

use crate::clean::clean;
use crate::cursor::Cursor;
use crate::document::Lines;
use crate::options::Options;
use crate::reader::{Context, Definitions};
use crate::readers::cute_cpp::{Meanings, Node, parse};
use crate::readers::cute_ir;
use crate::reading::Place;

/// A failed operation in a log of a compiler, explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The location of the message.
    pub place: Place,
    /// The condition that fails, as in the message.
    pub condition: String,
    /// The operation that the user wrote: `zipped_divide`.
    pub operation: String,
    /// Its operands, with their names in the message.
    pub operands: Vec<(String, Value)>,
    /// The file and line from which it was called.
    pub called_at: Option<String>,
    /// The verdict of this library's algebra.
    pub verdict: Verdict,
}

/// The verdict of this library's algebra on an operation that CuTe refuses.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The algebra refuses it as well.
    Refused {
        /// The stable code of the refusal, for `tilewright explain`.
        code: &'static str,
        /// The reason, with the mode at which the operation fails.
        message: String,
        /// A coordinate at which it fails.
        witness: Option<Tree<i64>>,
        /// A hint on how to fix it.
        help: Option<String>,
    },
    /// The algebra computes it.
    Exists {
        /// The result.
        value: Value,
        /// Why CuTe refuses it.
        why: String,
    },
    /// Two extents that must be equal differ, or are not in the message.
    Extents {
        /// The two sides of the comparison: the text, and the number if it is known.
        sides: [(String, Option<i64>); 2],
        /// A hint on how to fix it.
        help: String,
    },
    /// The message has the operands in a form that is not supported.
    Unread(String),
}

/// The operations that are computed to explain a failure.
const OPERATIONS: &[&str] = &[
    "zipped_divide",
    "tiled_divide",
    "flat_divide",
    "logical_divide",
    "zipped_product",
    "tiled_product",
    "flat_product",
    "blocked_product",
    "raked_product",
    "logical_product",
    "tile_to_shape",
    "composition",
    "complement",
    "left_inverse",
    "right_inverse",
    "shape_div",
    "upcast",
    "downcast",
];

/// The number of lines after an error that belong to it.
const CONTEXT_LINES: usize = 64;

/// The largest number of failures that are explained in one text.
const MOST: usize = 64;

/// Explains every failure of CuTe's algebra in a log of a compiler.
///
/// ```
/// use tilewright_read::{Options, failures};
///
/// let log = "error: unable to compute the following composition: '!cute.layout<\"(2,3):(4,1)\">' o \
///            '!cute.layout<\"(3,4):(3,1)\">'";
/// let found = failures(log, &Options::default());
/// assert_eq!(found[0].operation, "composition");
/// ```
pub fn failures(source: &str, options: &Options) -> Vec<Failure> {
    let cleaned = clean(source);
    let source = cleaned.as_ref();
    let definitions = Definitions::default();
    let context = Context::new(source, options, &definitions);
    let lines: Vec<Range<usize>> = line_ranges(source);
    let mut places = Lines::new(source);
    let mut found: Vec<Failure> = Vec::new();
    let mut seen = HashSet::new();
    // The frames of gcc, which precede the error.
    let mut before: Vec<Range<usize>> = Vec::new();
    let mut called: Option<String> = None;
    // The last frames that clang wrote, and the file of their error.
    let mut clang: Option<(&str, Vec<Range<usize>>)> = None;
    for (at, range) in lines.iter().enumerate() {
        if found.len() >= MOST {
            break;
        }
        let line = source.get(range.clone()).unwrap_or("");
        if line.contains("In instantiation of") {
            before = vec![range.clone()];
            called = None;
            continue;
        }
        if line.contains("required from here") {
            called = place_of(line);
            continue;
        }
        if line.contains("required from") {
            before.push(range.clone());
            continue;
        }
        if line.contains("unable to compute the following composition") {
            let place = places.place(range.clone());
            if let Some(failure) = of_python(&context, range.clone(), place) {
                push(failure, &mut found, &mut seen);
            }
            continue;
        }
        let static_assertion = line.contains("static assertion failed") || line.contains("static_assert failed");
        if !static_assertion {
            continue;
        }
        let after = lines.get(at + 1..).unwrap_or(&[]);
        let after = after.get(..CONTEXT_LINES.min(after.len())).unwrap_or(&[]);
        let text_of = |range: &Range<usize>| source.get(range.clone()).unwrap_or("");
        // nvcc and clang write their frames after the error, up to the next error.
        let is_next = |range: &Range<usize>| {
            let text = text_of(range);
            is_error(text) || text.contains("In instantiation of")
        };
        let own: Vec<Range<usize>> = after.iter().take_while(|range| !is_next(range)).cloned().collect();
        let mut frames: Vec<Range<usize>> = own.iter().filter(|range| is_frame(text_of(range))).cloned().collect();
        let file = line.split(':').next().unwrap_or("");
        // clang writes the frames of several errors only once. A condition in a CuTe header is in a
        // template, so its error has frames. If it has none of its own, they are those of the
        // previous error.
        if line.contains("due to requirement") {
            if !frames.is_empty() {
                clang = Some((file, frames.clone()));
            } else if let Some((_, last)) = clang.as_ref().filter(|(last, _)| *last == file && file.contains("cute/")) {
                frames.clone_from(last);
            }
        }
        let has_own = !frames.is_empty();
        if !has_own {
            frames.clone_from(&before);
        }
        let called = if has_own { frames.last().and_then(|range| place_of(text_of(range))) } else { called.clone() };
        let place = places.place(range.clone());
        let condition = condition(line, own.iter().map(text_of));
        let failure = explain(&context, &frames, condition, called, place);
        push(failure, &mut found, &mut seen);
    }
    found
}

/// Whether a line begins an error: `file:3:5: error:` of gcc and clang, with blanks in place of
/// colours, or `file(3): error` of nvcc.
fn is_error(line: &str) -> bool {
    let of_place = |(at, _): (usize, &str)| line.get(..at).is_some_and(|before| before.trim_end().ends_with(':'));
    line.match_indices("error:").any(of_place) || line.contains("): error")
}

/// Adds a failure, unless the list already has the same operation with the same operands.
fn push(failure: Failure, found: &mut Vec<Failure>, seen: &mut HashSet<String>) {
    let operands: Vec<String> = failure.operands.iter().map(|(_, value)| value.to_string()).collect();
    let extents = matches!(failure.verdict, Verdict::Extents { .. } | Verdict::Unread(_));
    let key = format!("{} {} {}", failure.operation, operands.join(" "), if extents { &failure.condition } else { "" });
    if seen.insert(key) {
        found.push(failure);
    }
}

fn line_ranges(source: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut ranges = Vec::new();
    for line in source.split_inclusive('\n') {
        ranges.push(start..start + line.trim_end().len());
        start += line.len();
    }
    ranges
}

/// Whether a line is a frame of nvcc or clang.
fn is_frame(line: &str) -> bool {
    line.contains("instantiation of \"") || line.contains("in instantiation of function template specialization '")
}

/// The file and line of the call in a frame.
fn place_of(line: &str) -> Option<String> {
    if let Some((_, place)) = line.rsplit_once("\" at line ") {
        let (number, file) = place.split_once(" of ").unwrap_or((place, ""));
        let number = number.trim();
        return Some(if file.is_empty() { format!("line {number}") } else { format!("{}:{number}", file.trim()) });
    }
    let (file, rest) = line.trim_start().split_once(':')?;
    let number = rest.split(':').next()?;
    number.chars().all(|c| c.is_ascii_digit()).then(|| format!("{file}:{number}"))
}

/// The condition of an error: its message, or the comparison in the source line that follows.
fn condition<'a>(line: &str, after: impl Iterator<Item = &'a str>) -> String {
    let behind = line.split_once("static assertion failed").or_else(|| line.split_once("static_assert failed"));
    let message = behind.map_or("", |(_, text)| text.trim_start_matches(" with").trim_start_matches([':', ' ']));
    let message = message.trim_matches(['"', ' ']);
    // clang shows the evaluated condition, and then the message, in quotes or after a colon.
    if let Some(requirement) = message.strip_prefix("due to requirement '") {
        let (requirement, behind) = requirement.rsplit_once('\'').unwrap_or((requirement, ""));
        let behind = behind.trim_matches([':', ' ', '"']);
        if !behind.is_empty() {
            return behind.to_owned();
        }
        return shown_comparison(after).unwrap_or_else(|| requirement.to_owned());
    }
    if !message.is_empty() {
        return message.to_owned();
    }
    shown_comparison(after).unwrap_or_else(|| "a static assertion".to_owned())
}

/// The comparison of extents in the source line after an error, with a mark below the failing part.
/// gcc shows a macro first, which contains no comparison of extents.
fn shown_comparison<'a>(after: impl Iterator<Item = &'a str>) -> Option<String> {
    let shown: Vec<&str> = after.take(8).filter(|line| !line.contains("#define")).collect();
    shown.iter().enumerate().find_map(|(at, line)| {
        let mark = shown.get(at + 1).filter(|marks| marks.trim_start_matches([' ', '|', '\t']).starts_with(['^', '~']));
        let from = mark.and_then(|marks| marks.find(['^', '~'])).unwrap_or(0);
        let [left, right] = line.get(from..).and_then(comparison).or_else(|| comparison(line))?;
        Some(format!("{left} == {right}"))
    })
}

/// The two sides of `size<1>(A) == size<0>(B)` in a line.
fn comparison(line: &str) -> Option<[String; 2]> {
    let (left, right) = line.split_once("==")?;
    let left = left.trim_end();
    let start = ["size<", "shape<", "rank(", "size("].iter().filter_map(|word| left.rfind(word)).max()?;
    let left = left.get(start..)?;
    let right = right.trim_start();
    let end = right.find(')')?;
    let right = right.get(..=end)?;
    let fits = |side: &str| side.len() < 80 && ["size", "shape", "rank"].iter().any(|word| side.starts_with(word));
    (fits(left) && fits(right)).then(|| [left.to_owned(), right.to_owned()])
}

/// A frame: the function and its template parameters, as positions in the text.
struct Frame<'a> {
    function: &'a str,
    parameters: Vec<(&'a str, usize)>,
}

impl<'a> Frame<'a> {
    fn of(source: &'a str, range: Range<usize>) -> Option<Frame<'a>> {
        let line = source.get(range.clone())?;
        // A lambda inside an operation has parameters of its own.
        let head = line.split("[with ").next()?;
        if head.contains("lambda") {
            return None;
        }
        if let Some(at) = line.find("function template specialization '") {
            return Frame::of_clang(source, range.start + at);
        }
        let with = line.find("[with ")?;
        let inside = range.start + with + "[with ".len()..range.end;
        Some(Frame { function: function_of(head)?, parameters: parameters(source, inside) })
    }

    /// `'cute::composition<cute::tuple<..>, ..>'`, whose arguments are in order and without names.
    /// The names for CuTe's operations are known; other layouts are numbered.
    fn of_clang(source: &'a str, at: usize) -> Option<Frame<'a>> {
        let from = at + source.get(at..)?.find('\'')? + 1;
        let text = source.get(from..)?;
        let length = text.find('<')?;
        let path = text.get(..length)?;
        if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')) {
            return None;
        }
        let function = path.rsplit("::").next().filter(|function| !function.is_empty())?;
        let mut cursor = Cursor::new(source, from + length + 1);
        let mut arguments = Vec::new();
        loop {
            cursor.blanks(false);
            let start = cursor.at;
            // An argument that is not a supported type, such as a lambda, ends the list of known
            // arguments.
            let Ok(node) = parse(&mut cursor) else { break };
            arguments.push((start, node));
            if !cursor.blanks(false).eat(",") {
                break;
            }
        }
        let is_layout = |node: &Node| matches!(node.name.as_str(), "Layout" | "ComposedLayout" | "Tensor");
        let layouts = arguments.iter().filter(|(_, node)| is_layout(node));
        let names: &[&str] = match (function, arguments.len()) {
            ("gemm", _) if layouts.clone().count() == 4 => &["D", "A", "B", "C"],
            ("gemm", _) if layouts.clone().count() == 3 => &["A", "B", "C"],
            ("shape_div", 2) => &["IntTupleA", "IntTupleB"],
            (name, 4) if OPERATIONS.contains(&name) => &["LShape", "LStride", "RShape", "RStride"],
            (name, 3) if OPERATIONS.contains(&name) => &["LShape", "LStride", "Tiler"],
            (name, _) if OPERATIONS.contains(&name) => return None,
            _ => &NUMBERED,
        };
        let starts: Vec<usize> = match function {
            name if OPERATIONS.contains(&name) => arguments.iter().map(|(start, _)| *start).collect(),
            _ => layouts.map(|(start, _)| *start).collect(),
        };
        Some(Frame { function, parameters: names.iter().copied().zip(starts).collect() })
    }
}

/// The names of layouts that have no name in a message.
const NUMBERED: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

/// The function name in the head of a frame: `cute::detail::composition_impl(` or `use(`.
fn function_of(head: &str) -> Option<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let of_cute = head.match_indices("cute::").filter_map(|(at, sign)| {
        let rest = head.get(at + sign.len()..)?;
        let rest = rest.strip_prefix("detail::").unwrap_or(rest);
        let length = rest.find(|c: char| !is_word(c))?;
        rest.get(length..)?.starts_with('(').then(|| rest.get(..length)).flatten()
    });
    if let Some(function) = of_cute.last() {
        return Some(function);
    }
    let before = head.split('(').next()?;
    let start = before.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
    before.get(start..).filter(|name| !name.is_empty() && before.len() < head.len())
}

/// The parameters `Name = type; ..` of gcc, or `Name=type, ..` of nvcc.
fn parameters(source: &str, inside: Range<usize>) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut at = inside.start;
    while at < inside.end {
        let mut cursor = Cursor::new(source, at);
        let _ = cursor.blanks(false).eat("const ");
        let start = cursor.at;
        let name = cursor
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'<' | b'>' | b'-' | b'.'));
        if !name.is_empty() && cursor.eat_spaced("=") {
            cursor.blanks(false);
            found.push((name, cursor.at));
        } else {
            cursor.at = start;
        }
        // Skips to the next separator at the top level.
        let mut depth = 0_i32;
        let mut next = cursor.at;
        while let Some(byte) = source.as_bytes().get(next).filter(|_| next < inside.end) {
            match byte {
                b'<' | b'(' | b'[' | b'{' => depth += 1,
                b'>' if next > 0 && source.as_bytes().get(next - 1) == Some(&b'-') => {}
                b'>' | b')' | b'}' => depth -= 1,
                b']' if depth <= 0 => return found,
                b']' => depth -= 1,
                b';' | b',' if depth <= 0 => break,
                _ => {}
            }
            next += 1;
        }
        at = next + 1;
    }
    found
}

/// The layouts and tuples of a frame, in the order of its parameters.
fn operands(context: &Context<'_>, frame: &Frame<'_>) -> Vec<(String, String)> {
    let meanings = Meanings::new(context);
    let node = |at: usize| parse(&mut Cursor::new(context.source, at)).ok();
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, at) in &frame.parameters {
        let Some(node) = node(*at) else { continue };
        if let Some(prefix) = name.strip_suffix("Shape").or_else(|| name.strip_prefix("Shape")) {
            let strides = [format!("{prefix}Stride"), format!("Stride{prefix}")];
            let stride = frame.parameters.iter().find(|(other, _)| strides.iter().any(|stride| stride == other));
            let Some(shape) = meanings.tuple(&node) else { continue };
            let operand = match stride {
                Some((_, at)) => {
                    match parse(&mut Cursor::new(context.source, *at)).ok().and_then(|node| meanings.tuple(&node)) {
                        Some(stride) => format!("{shape}:{stride}"),
                        None => continue,
                    }
                }
                None => shape.to_string(),
            };
            found.push((name_of(prefix), operand));
        } else if name.contains("Stride") {
            continue;
        } else if let Some(text) = meanings.operand_text(&node) {
            found.push((name.trim_end_matches("Layout").to_owned(), text));
        }
    }
    found
}

/// The name of the operand for a parameter: `L` is A, the outer layout, and `R` is B.
fn name_of(prefix: &str) -> String {
    match prefix {
        "L" | "A" | "" => "A",
        "R" | "B" => "B",
        "T" => "tiler",
        other => other,
    }
    .to_owned()
}

fn explain(
    context: &Context<'_>,
    frames: &[Range<usize>],
    condition: String,
    called_at: Option<String>,
    place: Place,
) -> Failure {
    let read: Vec<Frame<'_>> = frames.iter().filter_map(|range| Frame::of(context.source, range.clone())).collect();
    let operation = |frame: &&Frame<'_>| OPERATIONS.contains(&frame.function);
    // The outermost operation is the one that the user wrote.
    for frame in read.iter().rev().filter(operation) {
        let operands = operands(context, frame);
        let values = operands.iter().map(|(name, text)| {
            let value = evaluate(text, &mut Environment::new()).ok()?;
            Some((name.clone(), value))
        });
        let Some(values) = values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty()) else { continue };
        let texts: Vec<String> = operands.iter().map(|(_, text)| text.clone()).collect();
        let verdict = carried_out(frame.function, &texts, &condition);
        let operation = frame.function.to_owned();
        return Failure { place, condition, operation, operands: values, called_at, verdict };
    }
    let (operation, values, verdict) = extents(context, &read, &condition);
    Failure { place, condition, operation, operands: values, called_at, verdict }
}

/// The verdict of the algebra on an operation.
fn carried_out(function: &str, operands: &[String], condition: &str) -> Verdict {
    let program = format!("{function}({})", operands.join(","));
    match evaluate(&program, &mut Environment::new()) {
        Ok(value) => Verdict::Exists { value, why: why_cute_refuses(condition) },
        Err(error) => Verdict::Refused {
            code: error.code,
            message: error.message,
            witness: error.witness.map(|witness| *witness),
            help: error.help,
        },
    }
}

/// Why CuTe refuses an operation that the algebra computes.
fn why_cute_refuses(condition: &str) -> String {
    let why = if condition.contains("Stride Divisibility") {
        "CuTe asks of each mode of A in turn that its extent divides the stride of B, or is greater than it; \
         this is sufficient, and not necessary"
    } else if condition.contains("Shape Divisibility") {
        "CuTe asks of each mode of A in turn that the part of B that falls on it divides what is left of B; \
         this is sufficient, and not necessary"
    } else {
        "CuTe's condition is sufficient, and not necessary"
    };
    format!("{why}; write the result as a layout")
}

type Sized = (String, Vec<(String, Value)>, Verdict);

/// The failure of a comparison of extents.
fn extents(context: &Context<'_>, frames: &[Frame<'_>], condition: &str) -> Sized {
    let sides = comparison(condition);
    let mut function = frames.first().map_or("an assertion", |frame| frame.function);
    let mut values: Vec<(String, Value)> = Vec::new();
    // The frame of the condition has the extents. For any other condition, the call that the user
    // wrote is shown.
    let order: Vec<&Frame<'_>> = if sides.is_some() { frames.iter().collect() } else { frames.iter().rev().collect() };
    for frame in order {
        for (name, text) in operands(context, frame) {
            let known = values.iter().any(|(other, _)| *other == name);
            if !known && let Ok(value) = evaluate(&text, &mut Environment::new()) {
                values.push((name, value));
            }
        }
        if !values.is_empty() {
            function = frame.function;
            break;
        }
    }
    let function = function.to_owned();
    let Some(sides) = sides else {
        let why = match values.is_empty() {
            true => "the message shows no layouts that the condition is about",
            false => "the condition compares no extents; these are the layouts of the call, in their order",
        };
        return (function, values, Verdict::Unread(why.to_owned()));
    };
    let side = |text: &String| {
        let name = text.split_once('(').map_or("", |(_, name)| name.trim_end_matches(')')).trim();
        let mode: Option<usize> = text.split_once('<').and_then(|(_, rest)| rest.split('>').next()?.parse().ok());
        let layout = values.iter().find(|(other, _)| other == name).and_then(|(_, value)| value.operand_layout());
        let mode = layout.and_then(|layout| layout.mode(mode?));
        (text.clone(), mode.and_then(|mode| mode.integer().map(|mode| mode.size())))
    };
    let sides = [side(&sides[0]), side(&sides[1])];
    let wanted: Vec<&str> =
        sides.iter().filter_map(|(text, _)| text.split_once('(').map(|(_, name)| name.trim_end_matches(')'))).collect();
    // If a function's arguments have other names than its template parameters, all layouts are
    // shown.
    if values.iter().any(|(name, _)| wanted.contains(&name.as_str())) {
        values.retain(|(name, _)| wanted.contains(&name.as_str()));
    }
    let help = match (&sides, values.is_empty()) {
        ([(_, Some(_)), (_, Some(_))], _) => {
            "make both from one tiling: partition one, and retile or partition the other alike"
        }
        (_, false) => "compare these modes of the layouts above, which are those of the arguments in their order",
        (_, true) => "print both layouts before the assertion; `tilewright read` shows them side by side",
    };
    (function, values, Verdict::Extents { sides, help: help.to_owned() })
}

/// `unable to compute the following composition: '!cute.layout<..>' o '!cute.layout<..>'`
fn of_python(context: &Context<'_>, range: Range<usize>, place: Place) -> Option<Failure> {
    let line = context.source.get(range.clone())?;
    let mut texts = Vec::new();
    for (at, _) in line.match_indices("!cute.") {
        if let Some(found) = (cute_ir::READER.read)(context, range.start + at)
            && let Ok(reading) = found.answer
        {
            texts.push(reading.to_string());
        }
    }
    let [a, b] = texts.as_slice() else { return None };
    let values = [("A", a), ("B", b)].into_iter().map(|(name, text)| {
        let value = evaluate(text, &mut Environment::new()).ok()?;
        Some((name.to_owned(), value))
    });
    let condition = "unable to compute the following composition".to_owned();
    let verdict = carried_out("composition", &texts, "");
    Some(Failure {
        place,
        condition,
        operation: "composition".to_owned(),
        operands: values.collect::<Option<_>>()?,
        called_at: None,
        verdict,
    })
}
