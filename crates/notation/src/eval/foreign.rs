//! Text of other systems, which is recognised and refused by name, and never misread.
//!
//! Law: a text that another system prints, and that has another meaning here or none, is refused as
//! that system's text, with a replacement (E0216). A proposed replacement is evaluated before it is
//! given. Texts that would be valid expressions of this language are recognised when they are
//! parsed: names of types and of memory used as a parameter ([`reserved`]), the label of a printout
//! ([`labelled`]), and MLIR attributes, which begin like comments ([`crate::lex::is_attribute`]).
//! Any other such text is an error anyway, which [`named`] replaces by a better one.

use std::ops::Range;

use crate::ast::{Node, NodeId, Program};
use crate::diagnostic::{Diagnostic, excerpt};
use crate::eval::{Environment, run_unnamed};
use crate::lex::TRITON;

/// Names that are never parameters, separated by spaces, and what to write instead.
const RESERVED: &[(&str, &str)] = &[
    (
        "smem_ptr gmem_ptr rmem_ptr tmem_ptr raw_ptr ptr smem_ptr_flag smem_ptr_flag_bits \
         smem_sparse_ptr_flag smem_sparse_ptr_flag_bits smem gmem rmem tmem unset nil nullptr \
         ViewEngine ArrayEngine",
        "a pointer has no place in a layout: leave it out, and write the swizzle in elements, S<3,3,3> o 0 o L of 16 bits",
    ),
    (
        "int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint128_t size_t \
         unsigned long short char",
        "an integer that becomes known at launch is written `?`, or as a name such as N",
    ),
    (
        "float double half half_t bfloat16_t tfloat32_t f16 bf16 f32 f64 tf32 float16 float32 \
         bfloat16",
        "a layout has no element type; leave it out, or use it where a command takes a width in bits",
    ),
    ("Underscore cute cutlass GMMA UMMA", "a mode that is kept is written `_`, and a layout shape:stride, (4,8):(8,1)"),
    ("LayoutLeft GenColMajor", "the compact layout whose first mode is fastest is col_major(shape)"),
    ("LayoutRight GenRowMajor", "the compact layout whose last mode is fastest is row_major(shape)"),
    (
        "TiledMMA TiledCopy MMA_Atom Copy_Atom TiledMma TiledCopyAtom ThrMMA ThrCopy MMA_Traits \
         Copy_Traits",
        "this is the head of a printout; write one of its layouts, or make_tiled_mma(instruction, ...)",
    ),
];

/// The number of bytes of a text that are searched for signs of another system.
const WINDOW: usize = 1 << 12;

/// The refusal of a name that is never a parameter.
pub(crate) fn reserved(name: &str, place: Range<usize>) -> Option<Diagnostic> {
    let (_, help) = RESERVED.iter().find(|(names, _)| names.split(' ').any(|reserved| reserved == name))?;
    let error = Diagnostic::new("E0216", place.clone(), format!("'{name}' is a word of CuTe or C++, not a number"));
    Some(error.label(place, "nothing is bound to it").help(*help))
}

/// Signs of the texts of other systems: the sign, the system, and what to write instead.
const SIGNS: &[(&str, &str, &str)] = &[
    ("!cute.ptr<", "a type of the IR of CuTe", POINTER),
    ("!cute.", "a type of the IR of CuTe", "write the text between its quotes"),
    ("!cute_", "a type of the IR of CuTe", "write the text between its quotes"),
    ("!ttg.", "a type of Triton", TRITON),
    ("!tt.", "a type of Triton", TRITON),
    ("#ttg.", "an encoding of Triton", TRITON),
    ("#ttng.", "an encoding of Triton", TRITON),
    ("#triton_gpu.", "an encoding of Triton", TRITON),
    ("#triton_nvidia_gpu.", "an encoding of Triton", TRITON),
    ("instantiation of", "a message of a C++ compiler", COMPILER),
    ("static assertion failed", "a message of a C++ compiler", COMPILER),
    ("static_assert", "a message of a C++ compiler", COMPILER),
    ("decltype(", "C++", COMPILER),
    ("[with ", "a message of a C++ compiler", COMPILER),
    ("unable to compute the following composition", "a message of CuTe's Python", COMPILER),
    ("cute::", "a type of CuTe in C++", CXX),
    ("cutlass::", "a type of CUTLASS in C++", CXX),
    ("std::integral_constant<", "a type of C++", CXX),
    ("GMMA::", "a name of CuTe in C++", SWIZZLED),
    ("UMMA::", "a name of CuTe in C++", SWIZZLED),
    ("Layout<", "a type of CuTe in C++", CXX),
    ("ComposedLayout<", "a type of CuTe in C++", CXX),
    ("Shape<", "a type of CuTe in C++", "a shape is written as a tuple, (4,8)"),
    ("Stride<", "a type of CuTe in C++", "strides are written as a tuple, (8,1)"),
    ("Step<", "a type of CuTe in C++", "an order is written as a tuple, (1,0)"),
    ("Coord<", "a type of CuTe in C++", "a coordinate is written as a tuple, (2,_)"),
    ("Tile<", "a type of CuTe in C++", "a tiler by mode is written [2:1;4:1], or (2,4) for tiles of these extents"),
    ("Int<", "a number of CuTe in C++", "a number is written as it is, 4"),
    ("C<", "a number of CuTe in C++", "a number is written as it is, 4"),
    ("integral_constant<", "a number of C++", "a number is written as it is, 4"),
    ("constant<", "a number of CuTe in C++", "a number is written as it is, 4"),
    ("R<", "a fraction of CuTe in C++", "strides are integers; write the layout in elements so narrow that they are"),
    ("ScaledBasis<", "a step of CuTe in C++", "a step of 1 in mode 0 is written 1@0, and in its mode 1, 1@1@0"),
    ("E<", "a step of CuTe in C++", "a step of 1 in mode 0 is written 1@0"),
    ("smem_ptr_flag_bits<", "a tag of CuTe in C++", POINTER),
    ("smem_sparse_ptr_flag_bits<", "a tag of CuTe in C++", POINTER),
    ("smem_ptr[", "a pointer that CuTe prints", POINTER),
    ("gmem_ptr[", "a pointer that CuTe prints", POINTER),
    ("rmem_ptr[", "a pointer that CuTe prints", POINTER),
    ("tmem_ptr[", "a pointer that CuTe prints", POINTER),
    ("ptr[", "a pointer that CuTe prints", POINTER),
    (
        "ArithTuple(",
        "a coordinate that CuTe prints",
        "write the layout behind it; its values are counted from that coordinate on",
    ),
    ("MMA_Atom<", "a type of CuTe in C++", "a tiled product is written make_tiled_mma(instruction, layout, tiler)"),
    ("TiledMMA<", "a type of CuTe in C++", "a tiled product is written make_tiled_mma(instruction, layout, tiler)"),
    ("Copy_Atom<", "a type of CuTe in C++", "a tiled copy is written make_tiled_copy_tv(instruction, threads, values)"),
    ("TiledCopy<", "a type of CuTe in C++", "a tiled copy is written make_tiled_copy_tv(instruction, threads, values)"),
    ("LayoutRight{", "a tag of CuTe in C++", "row_major(shape)"),
    ("LayoutLeft{", "a tag of CuTe in C++", "col_major(shape)"),
    ("GenRowMajor{", "a tag of CuTe in C++", "row_major(shape)"),
    ("GenColMajor{", "a tag of CuTe in C++", "col_major(shape)"),
    ("tensor<ptr<", "a tensor that CuTe's Python prints", "write the layout behind the `o`"),
    ("tensor<", "a type of MLIR", "a shape is written as a tuple, (128,64)"),
    ("unsigned int", "a type of C++", "an integer that becomes known at launch is written `?`, or as a name such as N"),
    ("Tiled MMA", "the head of a printout of CuTe", "write one of the layouts below it"),
    ("Tiled Copy", "the head of a printout of CuTe", "write one of the layouts below it"),
    ("MMA Atom", "the head of a printout of CuTe", "write one of the layouts below it"),
    ("Copy Atom", "the head of a printout of CuTe", "write one of the layouts below it"),
    ("cute.", "CuTe's Python", "functions of the language have no `cute.` before them: make_layout((4,8), (8,1))"),
    ("gl.", "Gluon", TRITON),
    ("ttgl.", "Gluon", TRITON),
    ("BlockedLayout(", "Gluon", TRITON),
    ("NVMMASharedLayout(", "Gluon", TRITON),
    ("SwizzledSharedLayout(", "Gluon", TRITON),
    ("SliceLayout(", "Gluon", TRITON),
    ("DotOperandLayout(", "Gluon", TRITON),
    ("DistributedLinearLayout(", "Gluon", TRITON),
    ("T.Fragment(", "TileLang", TILELANG),
    ("T.Layout(", "TileLang", TILELANG),
    ("Fragment(", "TileLang", TILELANG),
    ("make_swizzled_layout(", "TileLang", SWIZZLED),
    ("S[", "TVM", "a layout is written (8,64):(64,1), without the S and the brackets"),
    ("ShapeTracker(", "tinygrad", "a layout is written shape:strides, (4,8):(8,1)"),
    ("View(", "tinygrad", "a layout is written shape:strides, (4,8):(8,1)"),
    ("torch.", "PyTorch", "a shape is written as a tuple, (4,8), and a layout as shape:strides"),
    ("shape=", "NumPy", BYTES),
    ("strides=", "NumPy", BYTES),
    ("DTensorSpec(", "PyTorch", SHARDED),
    ("DeviceMesh(", "PyTorch", SHARDED),
    ("Shard(", "PyTorch", SHARDED),
    ("Replicate(", "PyTorch", SHARDED),
    ("_StridedShard(", "PyTorch", SHARDED),
    ("NamedSharding(", "JAX", SHARDED),
    ("PartitionSpec(", "JAX", SHARDED),
    ("GSPMDSharding(", "JAX", SHARDED),
    ("{devices=", "XLA", SHARDED),
];

const SWIZZLED: &str = "a swizzled tile is written S<3,3,3> o 0 o (8,64):(64,1), in elements of 16 bits";
const BYTES: &str =
    "a layout is written shape:strides, (4,8):(8,1); strides of NumPy count bytes, and these count elements";
const COMPILER: &str = "write the operation on its two layouts, composition((6,2):(8,2), (4,3):(3,1))";
const CXX: &str = "write the layout as it is printed, shape:stride, (4,8):(8,1)";
const POINTER: &str =
    "leave the pointer out, and write the swizzle in elements: S<3,4,3> of bytes is S<3,3,3> of 16 bits";
const TILELANG: &str =
    "write the layout as shape:stride, (4,8):(8,1), or a linear layout, lane=[(1,0),(2,0)] -> row:4 column:1";
const SHARDED: &str =
    "the command `tilewright mesh` and the functions of meshes take tensors that are sharded over devices";

/// The name at the beginning of a statement, if it is the label of a printout, `ThrID: 32`: a name,
/// a colon, and a blank.
fn label(text: &str) -> Option<(&str, &str)> {
    let line = text.lines().next()?;
    let (name, rest) = line.split_once(':')?;
    let words = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let name = name.trim();
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(words);
    (named && rest.starts_with([' ', '\t'])).then(|| (name, rest.trim()))
}

/// Refuses a statement `name: number` with an unbound name: it is a printed label and its value.
pub(crate) fn labelled(source: &str, program: &Program, statement: NodeId, env: &Environment) -> Option<Diagnostic> {
    let mut first = statement;
    while let Node::Pair { shape, .. } = program.node(first) {
        first = shape;
    }
    let place = program.span(first);
    let name = source.get(place.clone())?;
    let bound = || {
        program
            .statements
            .iter()
            .any(|statement| statement.name.is_some_and(|own| source.get(own.span()) == Some(name)))
    };
    if first == statement || program.node(first) != Node::Unknown || env.get(name).is_some() || bound() {
        return None;
    }
    let (_, value) = label(source.get(place.start..program.span(statement).end)?)?;
    Some(refuse_label(place, name, value))
}

#[cold]
fn refuse_label(place: Range<usize>, name: &str, value: &str) -> Diagnostic {
    let error = Diagnostic::new("E0216", place.clone(), format!("'{}' is the label of a printout", excerpt(name)))
        .label(place, "a label");
    let written = named_value(value).filter(|value| accepted(value));
    let number = value.parse::<i64>().is_ok() && !name.contains([' ', '-', '.']);
    match (written, number) {
        (_, true) => error.help(format!(
            "write {value} without the label; a layout of {name} elements is written {name}:{value}, without a blank"
        )),
        (Some(value), _) => error.help(format!("write what stands behind it: {}", excerpt(&value))),
        (None, _) => error.help("write what stands behind it, without the label"),
    }
}

/// The value after a label, or its meaning here.
fn named_value(value: &str) -> Option<String> {
    meaning(value).or_else(|| Some(value.to_owned()))
}

/// Whether a text is a program that has a value, on its own.
fn accepted(text: &str) -> bool {
    run_unnamed(text, &mut Program::default(), &mut Environment::new()).is_ok()
}

/// If the text is of another system, an error is replaced by the refusal of that text; any other
/// error stays.
#[cold]
pub(crate) fn named(source: &str, error: Diagnostic) -> Diagnostic {
    // Only errors about the text are replaced, not those of operations; a label looks like a shape,
    // so E0101 counts too.
    if crate::explanation(error.code).is_none() && error.code != "E0101" {
        return error;
    }
    // The beginning of a text shows its system; a long text is not searched to the end.
    let mut end = source.len().min(WINDOW);
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    let source = source.get(..end).unwrap_or("");
    let Some((at, sign, system, help)) = first_sign(source) else {
        return match label(source.trim_start()) {
            Some((name, value)) if source.trim().lines().count() == 1 => {
                let start = source.len() - source.trim_start().len();
                refuse_label(start..start + name.len(), name, value)
            }
            _ => template(source).or_else(|| braces(source, &error)).unwrap_or(error),
        };
    };
    let place = at..at + sign.len();
    let message = format!("'{}' is no part of the language: it is {system}", sign.trim_end());
    let refusal = Diagnostic::new("E0216", place.clone(), message).label(place, system);
    let text = label(source.trim_start()).map_or(source, |(_, value)| value);
    match meaning(text).filter(|text| accepted(text)) {
        Some(text) => refusal.help(format!("write {}", excerpt_long(&text))),
        None => refusal.help(help),
    }
}

/// `Swizzle<3,3,3>{}`: a value of a C++ type.
fn braces(source: &str, error: &Diagnostic) -> Option<Diagnostic> {
    let place = error.span.start..error.span.start + 2;
    (error.code == "E0201" && source.get(place.clone()) == Some("{}")).then(|| {
        Diagnostic::new("E0216", place.clone(), "'{}' makes a value of a type of C++")
            .label(place, "C++")
            .help("leave the braces out")
    })
}

fn excerpt_long(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or("")),
        None => text.to_owned(),
    }
}

/// The first sign of another system in a text; the longest of those that begin at the same
/// position.
fn first_sign(source: &str) -> Option<(usize, &'static str, &'static str, &'static str)> {
    let begins = |at: usize| {
        let before = source.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // Arguments can have such names too.
    let begins_text = |sign: &str| !sign.ends_with('=') || source.trim_start().starts_with(sign);
    let found = SIGNS.iter().filter(|(sign, ..)| begins_text(sign)).filter_map(|(sign, system, help)| {
        let at = source
            .match_indices(sign)
            .map(|(at, _)| at)
            .find(|at| !sign.starts_with(char::is_alphanumeric) || begins(*at))?;
        Some((at, *sign, *system, *help))
    });
    found.min_by_key(|(at, sign, ..)| (*at, usize::MAX - sign.len()))
}

/// `size<0>(A)`: a C++ template, whose arguments follow the operand here.
fn template(source: &str) -> Option<Diagnostic> {
    let mut from = 0;
    while let Some(at) = source.get(from..)?.find('<').map(|at| from + at) {
        let start = source.get(..at)?.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let name = source.get(start..at)?;
        let (arguments, rest) = source.get(at + 1..)?.split_once('>')?;
        let numbers = !arguments.is_empty() && arguments.split(',').all(|number| number.trim().parse::<i64>().is_ok());
        if numbers && rest.starts_with('(') && crate::functions::find(name).is_some() {
            let place = start..at + arguments.len() + 2;
            let written = source.get(place.clone())?;
            return Some(
                Diagnostic::new("E0216", place.clone(), format!("'{written}' is a template of C++"))
                    .label(place, "a template")
                    .help(format!("the arguments follow the operand: {name}(A, {})", arguments.trim())),
            );
        }
        from = at + 1;
    }
    None
}

/// The meaning here of a text of another system, if it is clear: the layout in the quotes of an IR
/// type, or a layout after a pointer, with the swizzle converted to elements.
fn meaning(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("!cute.") {
        let quoted = rest.split('"').nth(1)?;
        let tags = rest.split('"').next()?;
        return match tags.find("S<") {
            // After the alignment, the swizzle is that of the pointer and counts bytes.
            Some(at) => {
                let bits = element_bits(tags.split(['<', ',']).nth(1)?.trim())?;
                in_elements(tags.get(at..)?.split_once('>')?.0, bits, quoted)
            }
            None => Some(quoted.to_owned()),
        };
    }
    if let Some(rest) = text.strip_prefix("S[").and_then(|rest| rest.strip_suffix(']')) {
        return Some(rest.to_owned());
    }
    if let Some(view) = text.strip_prefix("View(") {
        return Some(format!("{}:{}", after(view, "shape=")?, after(view, "strides=")?));
    }
    if let Some(shape) = text.strip_prefix("torch.Size([").and_then(|rest| rest.strip_suffix("])")) {
        return Some(format!("({shape})"));
    }
    let (swizzle, rest) = match text.strip_prefix("Sw<") {
        Some(rest) => {
            let (numbers, rest) = rest.split_once("> o ")?;
            (Some(numbers), rest)
        }
        None => (None, text),
    };
    let pointer = ["smem_ptr[", "gmem_ptr[", "rmem_ptr[", "tmem_ptr[", "ptr["].into_iter();
    let tag = pointer.filter_map(|tag| rest.strip_prefix(tag)).next()?;
    let (bits, layout) = (tag.split_once("b]")?.0, rest.split_once(" o ")?.1.trim());
    match swizzle {
        Some(numbers) => in_elements(&format!("S<{numbers}"), bits.parse().ok()?, layout),
        None => Some(layout.to_owned()),
    }
}

/// The tuple that follows a name.
fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.split_once(name)?.1;
    rest.find(')').and_then(|end| rest.get(..=end)).filter(|tuple| tuple.starts_with('('))
}

/// A swizzle of bytes, `S<3,4,3` without the final `>`, over a layout of elements with this many
/// bits.
fn in_elements(swizzle: &str, bits: i64, layout: &str) -> Option<String> {
    let swizzle: tilewright_layout::Swizzle = format!("{swizzle}>").replace(' ', "").parse().ok()?;
    let swizzle = swizzle.recast(bits, 8).ok()?;
    Some(format!("{swizzle} o 0 o {layout}"))
}

/// The bits of an element by the name of its type.
fn element_bits(name: &str) -> Option<i64> {
    let digits: String = name.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|bits| (1..=128).contains(bits))
}
