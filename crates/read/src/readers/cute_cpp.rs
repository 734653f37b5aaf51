//! Types and source text of CuTe in C++: `cute::Layout<cute::tuple<..>, ..>`,
//! `make_layout(Shape<_4,_8>{}, LayoutRight{})`.
//!
//! Law: `Layout<S, D>` is the layout with these shapes and strides. Static numbers are numbers;
//! those of the types `int`, `long` and so on are `?`. `ScaledBasis<T, i, j>` is a step of `T`
//! along mode `i`, and in it along mode `j`. A `ComposedLayout` with `smem_ptr_flag_bits<w>` has a
//! swizzle of byte addresses and elements of `w` bits; with a number as its offset, the swizzle
//! acts on what the layout counts. In source code, names in `make_shape(..)` and `make_stride(..)`
//! are positive parameters. Text that is not known to be a layout, such as a template parameter, is
//! skipped.

mod layouts;
mod numbers;
mod parse;
mod shared;
mod tensor;
mod tiled;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, MAX_ALIASES, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::tuple::value;

use parse::Stop;

pub use parse::{Node, parse};

/// The reader.
pub const READER: Reader = Reader {
    system: System::CuteCpp,
    signs: &[
        "cute::",
        "Layout<",
        "ComposedLayout<",
        "Swizzle<",
        "Tensor<",
        "TiledCopy<",
        "TiledMMA<",
        "Shape<",
        "Stride<",
        "Tile<",
        "GMMA::",
        "UMMA::",
        "SM90::",
        "make_layout(",
        "make_tensor(",
        "composition(",
        "tile_to_shape(",
        "make_ordered_layout(",
        "make_identity_layout(",
        "logical_divide(",
        "zipped_divide(",
        "tiled_divide(",
        "logical_product(",
        "blocked_product(",
        "raked_product(",
        "make_composed_layout(",
        "Int<",
    ],
    read,
};

/// The distance in bytes in which a truncated type is searched for complete layouts inside it.
const CUT_WINDOW: usize = 1 << 10;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let (end, why) = match parse(&mut cursor) {
        Ok(node) => {
            // A shape, a stride or a number alone is read only if the text contains nothing else.
            let whole = context.source.trim().len() <= cursor.at - at + 1;
            let answer = Meanings { context, depth: 0 }.of(&node, whole)?;
            return Some(Found { span: at..cursor.at, answer });
        }
        Err(Stop::Other) => return None,
        Err(Stop::Cut(end)) => (end, "the type is cut off"),
        Err(Stop::Deep(end)) => {
            // The same would be found at each level.
            context.pass(end);
            (end, "the type nests too deep")
        }
    };
    let begun = context.source.get(at..end)?.trim_start_matches("cute::");
    if !["Layout<", "ComposedLayout<", "Tensor<", "TiledCopy<", "TiledMMA<"].iter().any(|sign| begun.starts_with(sign))
    {
        return None;
    }
    let error = Refused::damaged(end..end, why).with_help("paste the whole type");
    // Complete layouts inside a short piece are still found.
    let span = if end - at > CUT_WINDOW { at..end } else { at..at + 1 };
    Some(Found { span, answer: Err(error) })
}

/// Interprets trees, with the definitions of the text.
pub struct Meanings<'a, 'b> {
    context: &'a Context<'b>,
    /// The number of definitions that were followed.
    depth: usize,
}

type CppReading = Option<Result<Reading, Refused>>;

impl<'a, 'b> Meanings<'a, 'b> {
    /// The interpreter for a text.
    pub fn new(context: &'a Context<'b>) -> Meanings<'a, 'b> {
        Meanings { context, depth: 0 }
    }

    /// A layout, a tiler or a tuple in our notation, as an operand of an operation.
    pub fn operand_text(&self, node: &Node) -> Option<String> {
        if let Some(Ok(layout)) = self.layout(node) {
            return Some(layout.text);
        }
        if let ("Tensor", [_, layout]) = (node.name.as_str(), node.args()) {
            return self.layout(layout)?.ok().map(|layout| layout.text);
        }
        match node.name.as_str() {
            "tuple" | "Tile" | "Shape" | "C" | "Int" | "integral_constant" | "constant" => {
                self.tuple(node).map(|tuple| tuple.to_string()).or_else(|| self.tiler(node))
            }
            name if name.starts_with('_') => self.tuple(node).map(|tuple| tuple.to_string()),
            _ => None,
        }
    }

    /// The meaning of a tree; None if it is not a layout. With `whole`, shapes and numbers count
    /// too.
    pub fn of(&self, node: &Node, whole: bool) -> CppReading {
        let span = node.span.clone();
        match node.name.as_str() {
            "Tensor" => self.tensor(node),
            "TiledCopy" => self.tiled_copy(node),
            "TiledMMA" => self.tiled_mma(node),
            "Swizzle" if whole => {
                let swizzle = value(&self.swizzle(node)?, span);
                Some(swizzle.map(|swizzle| Reading::new(System::CuteCpp, "swizzle", swizzle, Unit::None)))
            }
            "Tile" if whole => {
                let tiler = value(&self.tiler(node)?, span);
                Some(tiler.map(|tiler| Reading::new(System::CuteCpp, "tiler", tiler, Unit::None)))
            }
            _ => match self.layout(node) {
                Some(Err(refused)) => Some(Err(refused)),
                Some(Ok(layout)) => Some(layout.reading(span)),
                None if whole => {
                    let tuple = self.tuple(node)?;
                    let what = if node.name == "Stride" { "stride" } else { "tuple" };
                    let tuple = value(&tuple.to_string(), span);
                    Some(tuple.map(|tuple| Reading::new(System::CuteCpp, what, tuple, Unit::None)))
                }
                None => None,
            },
        }
    }

    /// The tree of the definition of a name.
    pub(super) fn defined(&self, node: &Node) -> Option<(Node, Meanings<'a, 'b>)> {
        if self.depth >= MAX_ALIASES || node.args.is_some() || node.call().is_some() {
            return None;
        }
        let (_, at) = self.context.definitions.get(&node.name, node.span.start)?;
        let node = parse(&mut Cursor::new(self.context.source, at)).ok()?;
        Some((node, Meanings { context: self.context, depth: self.depth + 1 }))
    }
}
