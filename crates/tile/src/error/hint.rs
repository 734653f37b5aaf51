//! Hints on how to mend a refused program.

use tilewright_kernel::{Element, KernelError, Reason as KernelReason};
use tilewright_layout::nearest;

use super::Reason;

/// A hint for an error of the kernel language, in terms of tile programs; None if the error's own
/// hint applies.
fn of_kernel(error: &KernelError) -> Option<String> {
    Some(match error.reason() {
        KernelReason::NeverWritten { .. } => {
            "cover the whole tensor: a block for each tile of it, as in `grid ceil(M/4)`, or a loop over tiles"
                .to_string()
        }
        KernelReason::WrittenTwice { .. } => {
            "let each block store tiles of its own, or combine them, as in `atomic_add` to an `inout`".to_string()
        }
        KernelReason::TooMuch { .. } => "take smaller tiles, or more warps".to_string(),
        KernelReason::Instruction { because, .. } if because.starts_with("threads count in 32 bits") => {
            "iterations, and elements of tiles whose extents are no powers of two, are counted in 32 bits: divide the \
             loop into two, or take extents that are powers of two"
                .to_string()
        }
        _ => return error.help(),
    })
}

/// A hint if an operation does not support elements of a type.
fn of_element(operation: &str) -> &'static str {
    match operation {
        "a tensor" => "declare it with one of these types",
        "a product" => "convert both operands, as in `bf16(x)`, or round those of f32, as in `tf32(x)`",
        "the accumulator of a dot" => "begin with an f32 accumulator, as in `dot(a, b, broadcast(f32(0), (16,16)))`",
        "a number" => "write it as f32, i32, f64 or i64, and convert the tile that is made with it",
        "exp" | "exp2" | "log" | "log2" | "tanh" | "sin" | "cos" | "erf" => {
            "instructions compute it of f32 alone: convert the tile, as in `f64(exp(f32(x)))`, with the precision of f32"
        }
        "a quotient" => "convert both sides, as in `f32(x) / f32(y)`; by a power of two, `shr(x, 3)` divides i32",
        own if own.starts_with("a store") => "convert the tile before it is stored, as in `bf16(x)`",
        _ => "convert it, as in `f32(x)`",
    }
}

/// A hint if a limit is exceeded.
fn of_limit(what: &str) -> &'static str {
    match what {
        "elements of a tile" => "take smaller tiles, and a loop or more blocks for the rest",
        "axes of a grid" => "blocks have numbers along x, y and z alone; join two axes to one, or loop over one",
        "tiles of coordinates" => {
            "one mode of a stage takes a tile of coordinates, the others take indices; a load takes several"
        }
        "levels of nesting" => "give a part of the expression a name of its own",
        "operands" => "`tilewright explain E1204` lists what each function takes",
        own if own.starts_with("modes of") => "merge contiguous modes into one",
        _ => "take smaller tiles, or more warps",
    }
}

/// How a loop carries a value to its next iteration.
const CARRY: &str = "carry it, as in `loop i < 4 with s = zero { .. next s + a } -> s`";

/// Replacements for function names of other libraries.
const MEANT: [(&[&str], &str); 12] = [
    (&["where"], "select(a < b, yes, no)"),
    (&["sum", "mean", "reduce_mean"], "reduce_sum(a, 1), and for a mean times 1 / the extent"),
    (&["amax", "amin"], "reduce_max(a, 1) or reduce_min(a, 1)"),
    (&["maximum", "minimum"], "max(a, b) or min(a, b)"),
    (&["ln"], "log(a)"),
    (&["pow"], "a * a, or exp2(log2(a) * n) of a positive number"),
    (&["sigmoid"], "recip(1 + exp(-a))"),
    (&["relu"], "max(a, 0)"),
    (&["matmul", "mm"], "dot(a, b, c), which adds to the tile c"),
    (&["zeros", "ones", "full"], "broadcast(f32(0), (4,64))"),
    (&["cumsum", "cumprod"], "scan_sum(a, 1) or scan_product(a, 1)"),
    (&["sort", "topk"], "top(a, 1, 8)"),
];

/// A hint for an unknown name.
fn of_unknown(what: &str, name: &str) -> String {
    match what {
        "type" => "tensors have elements of f32, f16, bf16, e4m3, e5m2, f64, i32, i8, u8 or i64".to_string(),
        "function" => match MEANT.iter().find(|(names, _)| names.contains(&name)) {
            Some((_, meant)) => format!("write {meant}"),
            None => "`tilewright explain E1204` lists the functions".to_string(),
        },
        "axis" => "blocks have the numbers `block.x`, `block.y` and `block.z`".to_string(),
        "iteration of a loop" => {
            "an index is a sum of numbers, `block.x`, `block.y`, `block.z` and the iterations of loops around \
                             it"
            .to_string()
        }
        "tensor" => "tensors are declared before the first statement, as in `input x: f32 (M,64):(64,1)`".to_string(),
        "atom" => "the chapter on tile programs lists those that a program may name".to_string(),
        "value of this program" => "a value belongs to the program in which it was made".to_string(),
        "value" => format!(
            "a name is known from its statement to the end of the body around it; {CARRY}, where it is a value of a loop"
        ),
        _ => "a name is known from its statement to the end of the body around it".to_string(),
    }
}

/// The hint for a reason.
pub(super) fn of(reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Shape { wanted, .. } if wanted.contains("powers of two") => {
            "load the tile in the shape that is needed, or one whose extents are powers of two: a tile may reach past \
             the edges of its tensor, and what lies there is left out"
                .to_string()
        }
        Reason::Shape { .. } => {
            "an extent of 1 stands for all; a tile may reach past the edges of its tensor, and what lies there is \
             left out"
                .to_string()
        }
        Reason::Broadcast { .. } => {
            "a broadcast makes other extents of extents of 1 alone; reshape the tile first, as in \
             `broadcast(reshape(a, (1,64)), (4,64))`"
                .to_string()
        }
        Reason::Operands { .. } => {
            "the extents of both tiles are equal, or 1 along a mode; load, reshape or transpose one of them".to_string()
        }
        Reason::Gone { .. } | Reason::Forgotten { .. } => CARRY.to_string(),
        Reason::Size { name, known } => match nearest(name, known.iter().map(String::as_str), 1).first() {
            Some(near) => format!("did you mean {near}?"),
            None => "use a name that stands in the layout of a tensor, as M in `(M,64):(64,1)`".to_string(),
        },
        Reason::Expression { what: "a layout", .. } => {
            "a layout is (shape):(strides), nested alike, as in `(M,64):(64,1)`".to_string()
        }
        Reason::Expression { .. } => {
            "an expression has names of sizes, whole numbers, + - *, parentheses, and `ceil(M/4)` or `floor(M/4)` \
             for quotients"
                .to_string()
        }
        Reason::NoGrid { .. } => {
            "say it before the first statement, as in `grid ceil(M/4)`, with one count for each axis".to_string()
        }
        Reason::Index { .. } => "take smaller operands, or let a size of the grid count further".to_string(),
        Reason::Element { operation, .. } => of_element(operation).to_string(),
        Reason::Number { element: Element::I64, value } if value.fract() == 0.0 => {
            "a number is written below 2^53 in magnitude: make a greater one of others, as in `shl(i64(1), 62)`"
                .to_string()
        }
        Reason::Number { .. } => {
            "integers are whole and have ends; to compute with others convert the tile first, as in \
             `f32(x) * 0.5`"
                .to_string()
        }
        Reason::Unknown { what, name } => of_unknown(what, name),
        Reason::Text { .. } => "`tilewright explain E1204` has a line of each kind of statement".to_string(),
        Reason::Late { word } => {
            format!("tensors, `grid` and `warps` are declared before the first statement: move this `{word}` up there")
        }
        Reason::Role { tried: "declared again", .. } => "give each tensor a name of its own".to_string(),
        Reason::Role { tried, .. } if tried.starts_with("left unwritten") => {
            "store a tile to it, as in `store(y, (block.x, 0), a)`, or leave the tensor out".to_string()
        }
        Reason::Role { .. } => "declare it as `input` to read it, as `output` to write it, as `inout` to change \
                                what is there"
            .to_string(),
        Reason::TooMuch { what, .. } => of_limit(what).to_string(),
        Reason::Warps { .. } => "say another number, or leave it out: then the plan chooses".to_string(),
        Reason::Blocks { .. } => {
            "say how many tiles there are along the axis, as in `grid ceil(M/4)`, or leave the axis out: then it \
             has one block"
                .to_string()
        }
        Reason::Iterations { .. } => {
            "say `next` with a value for each that the loop carries, as in `with s = a { next s + b } -> sum`"
                .to_string()
        }
        Reason::Iteration { .. } => {
            "convert, reshape or broadcast before `next`, or begin with another tile".to_string()
        }
        Reason::Held { .. } => {
            "give (threads, values) with extents that are powers of two, each element to one value".to_string()
        }
        Reason::Argument { .. } => {
            "give each size a number, and each input as many elements as its layout reaches".to_string()
        }
        Reason::WrittenTwice { .. } => "let each block write tiles of its own".to_string(),
        Reason::Changed { .. } => {
            "load what a block changes before it stores, and nothing of other blocks; or store to another tensor"
                .to_string()
        }
        Reason::StoredTwice { .. } => {
            "leave one of both out, or combine them, as in `atomic_add` to an `inout`".to_string()
        }
        Reason::Room { what, .. } if what.starts_with("bytes") => {
            "take smaller tiles; a layout set by hand that both sides of a conversion use needs no memory".to_string()
        }
        Reason::Room { what, asked, limit, .. } if what.starts_with("warps") => {
            format!("take larger tiles, or fewer warps, as in `warps {}`", (*limit).min(asked / 2).max(1))
        }
        Reason::Room { .. } => "take smaller tiles, or more warps, as in `warps 8`".to_string(),
        Reason::Atom { .. } => {
            "leave the atom out, and the passes choose one; `tilewright kernel explain` says which".to_string()
        }
        Reason::Gradient { .. } => {
            "write the derivative as a program of its own, or leave the input out of those by which is derived"
                .to_string()
        }
        Reason::Joined { .. } => "give one of the two another name, or convert it in a program between".to_string(),
        Reason::NotGiven { .. } => "give each tensor by its name; only workspaces may be left out".to_string(),
        Reason::NoTensor { name, known } => match nearest(name, known, 1).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "leave it out".to_string(),
        },
        Reason::GivenTwice { .. } => "leave one of both out".to_string(),
        Reason::Layout(error) => return error.help().map(|help| help.to_string()),
        Reason::Kernel(error) => return of_kernel(error),
    })
}
