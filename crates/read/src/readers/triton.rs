//! Triton's encodings and Gluon's layouts.
//!
//! Law: the meaning of an encoding depends on the shape of a tensor. In registers it is the linear
//! map `register lane warp [block] -> dim0 dim1 ..` from a register, lane and warp to the element
//! held there. In shared memory it is a layout of the coordinates, in the order of the shape, whose
//! values are offsets in elements. In tensor memory it is the linear map `row column -> dim0 dim1`,
//! with lanes as rows and 32-bit columns. All are exact for the shape: an encoding larger than the
//! tensor wraps around and holds copies, and a smaller one repeats. Every basis equals that of
//! `to_linear_layout` in version 3.9; older spellings have the meaning that they have there.
//!
//! A shape comes from the type around an encoding, `tensor<128x64xf16, #mma>` or
//! `!ttg.memdesc<..>`, from the fields of the encoding, or from the options. Names such as `#mma`
//! are followed to their definitions in the text.
//!
//! | text | file |
//! |---|---|
//! | spellings, aliases, fields | `attribute.rs` |
//! | `blocked`, `nvidia_mma`, `amd_mfma`, `amd_wmma`, `dot_op`, `slice`, `linear` | `registers.rs` |
//! | linear layouts, a line for each basis | `printed.rs` |
//! | views that show every element | `views.rs` |
//! | `swizzled_shared`, `padded_shared`, `nvmma_shared`, `shared_linear`, tensor memory | `memory.rs` |

mod attribute;
mod bases;
mod memory;
mod printed;
mod registers;
mod views;

use tilewright_layout::{AnyLayout, Layout, LinearLayout};
use tilewright_notation::Value;

use self::attribute::{Aliases, Encoding, Refusal, RefusalKind, encoding, known};
use super::arrays::damaged;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::term::{Term, TermKind, read as read_term, read_python};
use crate::width::element_bits;

pub use printed::READER as PRINTED;
pub use views::READER as VIEWS;

/// The reader of MLIR.
pub const READER: Reader = Reader {
    system: System::Triton,
    signs: &[
        "#ttg.",
        "#ttng.",
        "#triton_gpu.",
        "#triton_nvidia_gpu.",
        "#gluon.",
        "tensor<",
        "!ttg.memdesc<",
        "!tt.memdesc<",
        "!triton_gpu.memdesc<",
    ],
    read: read_mlir,
};

/// The reader of Gluon.
pub const GLUON: Reader = Reader {
    system: System::Gluon,
    signs: &[
        "gl.",
        "ttgl.",
        "BlockedLayout(",
        "NVMMADistributedLayout(",
        "SliceLayout(",
        "DotOperandLayout(",
        "DistributedLinearLayout(",
        "NVMMASharedLayout(",
        "SwizzledSharedLayout(",
        "PaddedSharedLayout(",
        "SharedLinearLayout(",
        "AMDMFMALayout(",
        "AMDWMMALayout(",
        "TensorMemoryLayout(",
    ],
    read: read_gluon,
};

/// The largest distance in bytes from the beginning of a definition to its layout.
const MAX_DEFINITION_HEAD: usize = 1 << 12;

/// The name that the line of a position defines, `mma` of `#mma = ..`.
fn defined_name(source: &str, at: usize) -> Option<&str> {
    let from = at.saturating_sub(MAX_DEFINITION_HEAD);
    let before = source.as_bytes().get(from..at)?;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(from, |end| from + end + 1);
    let (name, _) = source.get(start..at)?.trim_start().split_once('=')?;
    let name = name.trim_end().strip_prefix('#')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    is_name.then_some(name)
}

/// Whether an encoding is the headline of a view below it, `Print layout attribute:
/// #ttg.blocked<..>`, which shows the encoding for one shape.
/// #ttg.blocked<..>`, which shows what the encoding is for one shape.
fn is_headline(source: &str, at: usize) -> bool {
    let from = at.saturating_sub(MAX_DEFINITION_HEAD);
    let before = source.as_bytes().get(from..at).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(from, |end| from + end + 1);
    let line = source.get(start..at).unwrap_or("");
    let rest = source.get(at..).unwrap_or("");
    let end = rest.bytes().take(MAX_DEFINITION_HEAD).position(|byte| byte == b'\n');
    line.contains("Print layout attribute:") && end.is_some_and(|end| views::follows(rest, end))
}

fn read_mlir(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    let is_type = rest.starts_with("tensor<") || rest.starts_with('!');
    if rest.starts_with("#gluon.") {
        return later(context, at);
    }
    // Only known encodings, and only types with extents.
    if is_type {
        let inner = rest.split_once('<')?.1.trim_start();
        inner.bytes().next().filter(u8::is_ascii_digit)?;
    } else {
        let name = rest.split_once('.')?.1;
        attribute::NAMES.iter().find(|known| name.strip_prefix(**known).is_some_and(|rest| rest.starts_with('<')))?;
        if is_headline(context.source, at) {
            return None;
        }
        // If a type uses the definition, the type is read instead, because it has the shape.
        let is_used = || defined_name(context.source, at).is_some_and(|name| context.uses(name));
        if context.options.shape.is_none() && is_used() {
            return None;
        }
    }
    let term = match read_term(context.source, at) {
        Ok(term) => term,
        Err(stopped) => return Some(damaged(at, &stopped)),
    };
    let span = term.place.clone();
    let aliases = Aliases { context, at };
    let answer = if is_type {
        of_type(context, &term, aliases)?
    } else {
        let found = encoding(&term, aliases).map_err(refused);
        found.and_then(|encoding| of_encoding(System::Triton, &encoding, context, None))
    };
    Some(Found { span, answer })
}

fn read_gluon(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    let name_length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.'))?;
    let name = rest.get(..name_length)?;
    if !rest.get(name_length..)?.starts_with('(') {
        return None;
    }
    if let "AutoLayout" | "CoalescedLayout" = name.rsplit('.').next().unwrap_or(name) {
        let span = at..at + name_length;
        let message = format!("{name} is no layout yet: a pass of the compiler chooses one");
        let help = "paste the dump behind that pass, or the layout that print shows in a static_print";
        return Some(Found { span: span.clone(), answer: Err(Refused::unsupported(span, message, help)) });
    }
    if !attribute::is_class(name) {
        return None;
    }
    let term = match read_python(context.source, at) {
        Ok(term) => term,
        Err(stopped) => return Some(damaged(at, &stopped)),
    };
    let span = term.place.clone();
    let found = encoding(&term, Aliases { context, at }).map_err(refused);
    let answer = found.and_then(|encoding| of_encoding(System::Gluon, &encoding, context, None));
    Some(Found { span, answer })
}

/// `#gluon.auto_encoding` and similar ones, which a compiler pass replaces.
fn later(context: &Context<'_>, at: usize) -> Option<Found> {
    let name = context.source.get(at..)?.strip_prefix("#gluon.")?;
    let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let name = name.get(..length).filter(|name| name.ends_with("_encoding"))?;
    let span = at..at + "#gluon.".len() + length;
    let refused = Refused::unsupported(
        span.clone(),
        format!("#gluon.{name} is no layout yet: a pass of the compiler chooses one"),
        "paste the dump behind that pass, which has the layout that was chosen",
    );
    Some(Found { span, answer: Err(refused) })
}

fn refused(refusal: Refusal) -> Refused {
    let Refusal { place, message, kind } = refusal;
    match kind {
        RefusalKind::Contradiction => Refused::contradiction(place, message),
        RefusalKind::Unsupported => Refused::unsupported(
            place,
            message,
            "the bases of a tensor's layout are read as well: register=[(0,1)] lane=[(0,2),(1,0)] warp=[(2,0)] -> dim0:4 dim1:4",
        ),
        RefusalKind::Alias(name) => Refused::ask(Missing::Definition(name), message),
    }
}

/// The extents and the element type in `128x64xf16`; None if it is not a shape.
fn extents(word: &str) -> Option<(Vec<i64>, &str)> {
    let mut shape = Vec::new();
    let mut rest = word;
    while let Some((extent, after)) = rest.split_once('x') {
        match extent.parse() {
            Ok(extent) => shape.push(extent),
            Err(_) => break,
        }
        rest = after;
    }
    (!shape.is_empty()).then_some((shape, rest))
}

/// A tensor or a shared memory descriptor with its encoding; None for types without one.
fn of_type(context: &Context<'_>, term: &Term, aliases: Aliases<'_>) -> Option<Result<Reading, Refused>> {
    let (name, arguments) = term.call()?;
    let first = arguments.first()?;
    let Some(TermKind::Word(word)) = first.values.first().map(|term| &term.kind) else { return None };
    let (shape, element) = extents(word)?;
    // The elements of `128x!tt.ptr<f16>` are pointers.
    let bits = if first.values.len() > 1 { Some(64) } else { element_bits(element) };
    let second = arguments.get(1)?.value()?;
    let is_alias = second.word().is_some_and(|word| word.starts_with('#'));
    if known(second).is_none() && !is_alias {
        return None;
    }
    let found = encoding(second, aliases).map_err(|refusal| {
        // A name that is defined as something else is not an encoding.
        refused(refusal)
    });
    let memory = name != "tensor";
    let allocated = arguments.iter().skip(2).filter_map(|argument| argument.value()?.word()).find_map(extents_alone);
    Some(found.and_then(|encoding| {
        if memory
            && let Some(allocated) = &allocated
            && !allocated.ends_with(&shape)
        {
            return Err(Refused::unsupported(
                term.place.clone(),
                "the type is a part of an allocation of another shape",
                "read the type of the whole allocation, and slice the layout",
            ));
        }
        let known = Some((shape, bits));
        of_encoding(System::Triton, &encoding, context, known)
    }))
}

/// Extents without a type, `3x128x64`.
fn extents_alone(word: &str) -> Option<Vec<i64>> {
    word.split('x').map(|extent| extent.parse().ok()).collect()
}

/// The meaning of an encoding for the shape of its type, its own shape, or that of the options.
fn of_encoding(
    system: System,
    encoding: &Encoding,
    context: &Context<'_>,
    known: Option<(Vec<i64>, Option<i64>)>,
) -> Result<Reading, Refused> {
    let (shape, bits) = match known {
        Some((shape, bits)) => (Some(shape), bits),
        None => (own_shape(encoding).or_else(|| context.options.shape.clone()), None),
    };
    let Some(shape) = shape else {
        let rank = rank(encoding).map_or("a tensor".to_owned(), |rank| format!("a tensor of {rank} dimensions"));
        let message = format!(
            "{} is a rule for {rank}, and which element is where depends on the shape, which the text does not say",
            encoding.name
        );
        return Err(Refused::ask(Missing::Shape, message));
    };
    let bits = bits.or(context.options.element_bits).or_else(|| field(encoding, "elementBitWidth"));
    let space = space(encoding);
    // Several buffers with one layout: `3x128x64` with an encoding of matrices.
    let buffers = rank(encoding).filter(|rank| space == Space::Shared && rank + 1 == shape.len());
    let (count, own) = match (buffers, shape.split_first()) {
        (Some(_), Some((count, own))) => (Some(*count), own.to_vec()),
        _ => (None, shape.clone()),
    };
    let value = meaning(encoding, &own).map_err(refused)?;
    let extents = own.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    match (space, value) {
        (Space::Registers, Value::Linear(map)) => {
            let note = holding(&map, &extents);
            Ok(Reading::new(system, "distributed layout", Value::Linear(map), Unit::Coordinates).note(note))
        }
        (Space::TensorMemory, value) => {
            let note = format!(
                "rows are lanes and columns are columns of 32 bits of tensor memory; dim0 dim1 are the coordinates of the {extents} tensor"
            );
            Ok(Reading::new(system, "tensor memory layout", value, Unit::Coordinates).note(note))
        }
        (_, value) => {
            let note = match &value {
                Value::Linear(_) => {
                    format!("coordinates of the {extents} tensor go to an offset in the memory of a block")
                }
                _ => format!("coordinates of the {extents} tensor go to offsets"),
            };
            let value = match count {
                Some(count) => repeated(value, count, encoding)?,
                None => value,
            };
            Ok(Reading::new(system, "shared memory layout", value, Unit::Elements { bits }).note(note))
        }
    }
}

/// Consecutive buffers, as a new first mode.
fn repeated(value: Value, count: i64, encoding: &Encoding) -> Result<Value, Refused> {
    let refuse = |because: String| Refused::contradiction(encoding.place.clone(), because);
    if encoding.name == "padded_shared" {
        return Err(refuse(
            "several buffers with padding are not read: the type does not say where the next begins".into(),
        ));
    }
    let Value::Layout(layout) = value else {
        return Err(refuse("several buffers in the memory of several blocks are not read".into()));
    };
    let fail = |error: tilewright_layout::LayoutError| refuse(error.to_string());
    let size = match &layout {
        AnyLayout::Integer(layout) => layout.size(),
        AnyLayout::Composed(layout) => layout.size(),
        _ => return Err(refuse("this layout does not repeat".into())),
    };
    let buffers = Layout::mode_of(count, size).map_err(fail)?;
    let layout = match layout {
        AnyLayout::Integer(layout) => AnyLayout::from(layout.prepend(&buffers).map_err(fail)?),
        AnyLayout::Composed(layout) => AnyLayout::from(layout.prepend(&buffers).map_err(fail)?),
        other => other,
    };
    Ok(Value::Layout(layout))
}

/// The number of elements that a thread holds, and of threads that hold each element, in words.
fn holding(map: &LinearLayout, extents: &str) -> String {
    let of = |name: &str| map.bases(name).unwrap_or_default();
    let copies =
        ["lane", "warp", "block"].into_iter().flat_map(of).filter(|image| image.iter().all(|index| *index == 0));
    let copies = 1_u64 << copies.count().min(62);
    let registers = 1_u64 << of("register").len().min(62);
    let held = if copies == 1 { "one thread holds".to_owned() } else { format!("{copies} threads hold") };
    format!("a thread has {registers} registers of the {extents} tensor; {held} each element")
}

/// The memory in which an encoding places a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Registers,
    Shared,
    TensorMemory,
}

fn space(encoding: &Encoding) -> Space {
    match encoding.name.as_str() {
        "swizzled_shared"
        | "padded_shared"
        | "nvmma_shared"
        | "shared_linear"
        | "amd_rotating_shared"
        | "partitioned_shared" => Space::Shared,
        "tensor_memory_encoding" | "tensor_memory" | "tensor_memory_scales_encoding" => Space::TensorMemory,
        _ => Space::Registers,
    }
}

/// The largest number of elements of a tensor whose layout is read.
const MAX_ELEMENTS: u64 = 1 << 40;

/// The meaning of an encoding for a tensor of this shape.
fn meaning(encoding: &Encoding, shape: &[i64]) -> Result<Value, Refusal> {
    let refuse = |message: String| Refusal { place: encoding.place.clone(), message, kind: RefusalKind::Contradiction };
    let mut extents = Vec::new();
    for extent in shape {
        match u64::try_from(*extent) {
            Ok(extent) if extent.is_power_of_two() => extents.push(extent),
            _ => {
                return Err(refuse(format!("an extent of a tensor of Triton is a power of two, and {extent} is none")));
            }
        }
    }
    let size = extents.iter().try_fold(1_u64, |size, extent| size.checked_mul(*extent));
    if extents.is_empty() || size.is_none_or(|size| size > MAX_ELEMENTS) {
        return Err(refuse("a shape of 1 to 2^40 elements is wanted".into()));
    }
    match space(encoding) {
        Space::Registers => {
            let map: LinearLayout = registers::bases(encoding, &extents)?
                .linear(&extents)
                .map_err(|error| refuse(format!("{}: {error}", encoding.name)))?;
            Ok(Value::Linear(Box::new(map)))
        }
        Space::Shared => memory::layout(encoding, &extents),
        Space::TensorMemory => Ok(Value::Linear(Box::new(memory::tensor_memory(encoding, &extents)?))),
    }
}

fn field(encoding: &Encoding, name: &str) -> Option<i64> {
    encoding.fields.iter().find(|(own, _)| own == name).and_then(|(_, term)| term.number())
}

/// The shape that an encoding contains, as linear and padded layouts do.
fn own_shape(encoding: &Encoding) -> Option<Vec<i64>> {
    attribute::Fields { encoding }.get("shape").and_then(Term::numbers)
}

/// The number of dimensions of an encoding, if its fields determine it.
fn rank(encoding: &Encoding) -> Option<usize> {
    let fields = attribute::Fields { encoding };
    match encoding.name.as_str() {
        "slice" => Some(rank(encoding.parent.as_deref()?)?.saturating_sub(1)),
        "dot_op" => rank(encoding.parent.as_deref()?),
        "tensor_memory_encoding" | "tensor_memory" | "tensor_memory_scales_encoding" => Some(2),
        "nvmma_shared" => {
            let rank = fields.get("rank").map_or(Some(2), Term::number);
            rank.and_then(|rank| usize::try_from(rank).ok())
        }
        "linear" | "shared_linear" => {
            let first = ["register", "lane", "offset"].into_iter().filter_map(|name| fields.get(name)?.list());
            first.filter_map(|list| list.first()?.numbers()).map(|image| image.len()).next()
        }
        _ => {
            let lists = ["order", "sizePerThread", "warpsPerCTA"].into_iter();
            lists.filter_map(|name| fields.get(name)?.list()).map(|list| list.len()).next()
        }
    }
}
