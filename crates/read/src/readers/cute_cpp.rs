//! Types and source text of CuTe in C++: `cute::Layout<cute::tuple<..>, ..>`,
//! `make_layout(Shape<_4,_8>{}, LayoutRight{})`.
//!
//! Law: `Layout<S, D>` is the layout with these shapes and strides; numbers that C++ knows are
//! numbers, those of the types `int`, `long` and so on are `?`. `ScaledBasis<T, i, j>` is a step of
//! `T` along mode `i`, and in it along mode `j`. A `ComposedLayout` with `smem_ptr_flag_bits<w>`
//! has a swizzle of byte addresses and elements of `w` bits; with a number as its offset, the
//! swizzle acts on what the layout counts. In source, names in `make_shape(..)` and
//! `make_stride(..)` are positive numbers that become known at launch. What is not known to be a
//! layout, such as the parameter of a template, is passed over.

mod parse;

use std::ops::Range;

use tilewright_layout::Swizzle;
use tilewright_notation::Value;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, MAX_ALIASES, Reader};
use crate::reading::{Part, Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::tuple::{Tuple, value};
use crate::width::{element_bits, swizzle_of_elements};

use parse::{Node, Stop};

pub use parse::parse;

/// The row of the table.
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

/// How far a type that is cut off is searched for whole layouts inside of it, in bytes.
const CUT_WINDOW: usize = 1 << 10;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let (end, why) = match parse(&mut cursor) {
        Ok(node) => {
            // A shape, a stride or a number alone is read where the text is nothing else.
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
    // What is whole inside of a short piece is still found.
    let span = if end - at > CUT_WINDOW { at..end } else { at..at + 1 };
    Some(Found { span, answer: Err(error) })
}

/// What trees mean, with the definitions of the text.
pub struct Meanings<'a, 'b> {
    context: &'a Context<'b>,
    /// How many definitions were followed.
    depth: usize,
}

type Answer = Option<Result<Reading, Refused>>;

impl<'a, 'b> Meanings<'a, 'b> {
    /// Those of a text.
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

    /// What a tree means; none for what is no layout. Shapes and numbers count with `whole`.
    pub fn of(&self, node: &Node, whole: bool) -> Answer {
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

    /// A number, a step or a tuple of them.
    pub fn tuple(&self, node: &Node) -> Option<Tuple> {
        if let Some(number) = node.number {
            return Some(Tuple::Known(number));
        }
        let items = |nodes: &[Node]| nodes.iter().map(|node| self.tuple(node)).collect::<Option<Vec<_>>>();
        match (node.name.as_str(), node.args()) {
            ("Underscore" | "_", []) => Some(Tuple::Keep),
            ("Int" | "C", [number]) => constant(number),
            ("constant" | "integral_constant", [_, number]) => constant(number),
            (name, []) if name.starts_with('_') => name.get(1..)?.parse().ok().map(Tuple::Known),
            (name, []) if is_integer_type(name) => Some(Tuple::Unknown { divisor: 1 }),
            ("tuple" | "Shape" | "Stride" | "Step" | "Coord" | "ArithmeticTuple", args) if node.args.is_some() => {
                items(args).map(Tuple::Tuple)
            }
            ("make_shape" | "make_stride" | "make_tuple" | "make_coord" | "make_step", []) => {
                items(node.call()?).map(Tuple::Tuple)
            }
            ("ScaledBasis", [scale, path @ ..]) => {
                let mut own = path_of(path)?;
                own.reverse();
                match self.tuple(scale)? {
                    Tuple::Step(scale, mut inner) => {
                        inner.extend(own);
                        Some(Tuple::Step(scale, inner))
                    }
                    scale if own.is_empty() => Some(scale),
                    scale => Some(Tuple::Step(Box::new(scale), own)),
                }
            }
            ("E", path) => {
                let mut own = path_of(path)?;
                own.reverse();
                Some(if own.is_empty() { Tuple::Known(1) } else { Tuple::Step(Box::new(Tuple::Known(1)), own) })
            }
            ("R", [number, divisor]) => {
                let divisor = divisor.number.filter(|divisor| *divisor > 0)?;
                Some(Tuple::Fraction(number.number?, divisor))
            }
            _ => {
                let (node, meanings) = self.defined(node)?;
                meanings.tuple(&node)
            }
        }
    }

    /// The tree of the definition that a name stands for.
    fn defined(&self, node: &Node) -> Option<(Node, Meanings<'a, 'b>)> {
        if self.depth >= MAX_ALIASES || node.args.is_some() || node.call().is_some() {
            return None;
        }
        let (_, at) = self.context.definitions.get(&node.name, node.span.start)?;
        let node = parse(&mut Cursor::new(self.context.source, at)).ok()?;
        Some((node, Meanings { context: self.context, depth: self.depth + 1 }))
    }

    /// `S<3,4,3>` in our notation.
    fn swizzle(&self, node: &Node) -> Option<String> {
        match (node.name.as_str(), node.args()) {
            ("Swizzle", [bits, base, shift]) => {
                Some(format!("S<{},{},{}>", number(bits)?, number(base)?, number(shift)?))
            }
            // The third number is the first where it is left out.
            ("Swizzle", [bits, base]) => Some(format!("S<{0},{1},{0}>", number(bits)?, number(base)?)),
            _ => None,
        }
    }

    /// A layout.
    fn layout(&self, node: &Node) -> Option<Result<Made, Refused>> {
        let plain = |text: String, steps: bool| Some(Ok(Made { text, steps, ..Made::default() }));
        match (node.name.as_str(), node.args(), node.call()) {
            ("Layout", [shape], _) => {
                let shape = self.tuple(shape)?;
                plain(format!("col_major({shape})"), false)
            }
            ("Layout", [shape, stride], _) => {
                let (shape, stride) = (self.tuple(shape)?, self.tuple(stride)?);
                plain(format!("{shape}:{stride}"), stride.steps())
            }
            ("ComposedLayout", [outer, offset, inner], _) => self.composed(outer, Some(offset), inner),
            ("composition" | "make_composed_layout", [], Some([outer, offset, inner])) => {
                self.composed(outer, Some(offset), inner)
            }
            ("composition", [], Some([outer, inner])) if outer.name == "Swizzle" => self.composed(outer, None, inner),
            ("make_layout", [], Some([shape])) => {
                let shape = self.source_tuple(shape)?;
                plain(format!("col_major({shape})"), false)
            }
            ("make_layout", [], Some([shape, order])) if is_order(order) => {
                let shape = self.source_tuple(shape)?;
                let right = matches!(order.name.as_str(), "LayoutRight" | "GenRowMajor");
                plain(format!("{}({shape})", if right { "row_major" } else { "col_major" }), false)
            }
            ("make_layout", [], Some([shape, stride])) if self.source_tuple(shape).is_some() => {
                let (shape, stride) = (self.source_tuple(shape)?, self.source_tuple(stride)?);
                plain(format!("{shape}:{stride}"), false)
            }
            ("make_identity_layout", [], Some([shape])) => {
                plain(format!("make_identity_layout({})", self.source_tuple(shape)?), true)
            }
            ("make_ordered_layout", [], Some([shape, order])) => plain(
                format!("make_ordered_layout({},{})", self.source_tuple(shape)?, self.source_tuple(order)?),
                false,
            ),
            (
                "composition" | "make_layout" | "tile_to_shape" | "logical_divide" | "zipped_divide" | "tiled_divide"
                | "flat_divide" | "logical_product" | "zipped_product" | "tiled_product" | "flat_product"
                | "blocked_product" | "raked_product" | "coalesce" | "right_inverse" | "left_inverse" | "complement",
                [],
                Some(operands),
            ) => self.called(&node.name, operands),
            (name, [kind, ..] | [kind], _) if name.starts_with("Layout_") => self.shared_atom(node, Some(kind)),
            (name, [], _) if name.starts_with("Layout_") && name.ends_with("_Atom_Bits") => {
                self.shared_atom(node, None)
            }
            (_, [], None) => {
                let (node, meanings) = self.defined(node)?;
                meanings.layout(&node)
            }
            _ => None,
        }
    }

    /// A tuple of source text, in which names are numbers that become known at launch.
    fn source_tuple(&self, node: &Node) -> Option<String> {
        if let Some(tuple) = self.tuple(node) {
            return Some(tuple.to_string());
        }
        if !matches!(node.name.as_str(), "make_shape" | "make_stride" | "make_tuple") || node.args.is_some() {
            return None;
        }
        let items: Option<Vec<String>> = node
            .call()?
            .iter()
            .map(|item| match (item.args.is_none() && item.call.is_none(), is_free_name(&item.name)) {
                (true, true) if item.scope.is_empty() => Some(item.name.clone()),
                _ => self.source_tuple(item),
            })
            .collect();
        Some(format!("({})", items?.join(",")))
    }

    /// A function of the algebra on layouts and tuples.
    fn called(&self, name: &str, operands: &[Node]) -> Option<Result<Made, Refused>> {
        let mut texts = Vec::new();
        let mut made = Made::default();
        for operand in operands {
            match self.layout(operand) {
                Some(Ok(layout)) => {
                    if texts.is_empty() {
                        made = Made { text: String::new(), ..layout.clone() };
                    }
                    texts.push(layout.text);
                }
                Some(Err(refused)) => return Some(Err(refused)),
                None => texts.push(self.source_tuple(operand).or_else(|| self.tiler(operand))?),
            }
        }
        made.text = format!("{name}({})", texts.join(","));
        Some(Ok(made))
    }

    /// `outer o offset o inner`.
    fn composed(&self, outer: &Node, offset: Option<&Node>, inner: &Node) -> Option<Result<Made, Refused>> {
        let inner = match self.layout(inner)? {
            Ok(inner) => inner,
            Err(refused) => return Some(Err(refused)),
        };
        let Some(swizzle) = self.swizzle(outer) else {
            let outer = match self.layout(outer)? {
                Ok(outer) => outer,
                Err(refused) => return Some(Err(refused)),
            };
            let offset = self.tuple(offset?)?;
            let text = format!("({}) o {offset} o ({})", outer.text, inner.text);
            return Some(Ok(Made { text, steps: outer.steps, ..inner }));
        };
        let flag = offset.map(|offset| (offset.name.as_str(), offset.args()));
        match flag {
            Some(("smem_ptr_flag", [])) => Some(in_elements(&swizzle, 1, &inner.text, outer.span.clone())),
            Some(("smem_ptr_flag_bits", [bits])) => {
                let bits = number(bits).filter(|bits| *bits > 0)?;
                Some(in_elements(&swizzle, bits, &inner.text, outer.span.clone()))
            }
            Some(("smem_sparse_ptr_flag_bits" | "smem_sparse_ptr_flag", _)) => Some(Err(Refused::unsupported(
                outer.span.clone(),
                "the layout is one of logical elements of a sparse operand, several of which share one place",
                "give the layout of the stored elements, with smem_ptr_flag_bits",
            ))),
            other => {
                let offset = match (other, offset) {
                    (None, _) => Tuple::Known(0),
                    (_, Some(offset)) => self.tuple(offset)?,
                    _ => return None,
                };
                Some(Ok(Made { text: format!("{swizzle} o {offset} o ({})", inner.text), ..inner }))
            }
        }
    }

    /// `GMMA::Layout_K_SW128_Atom<half_t>` and its like: shared memory of wgmma and tcgen05.
    fn shared_atom(&self, node: &Node, kind: Option<&Node>) -> Option<Result<Made, Refused>> {
        let name = node.name.strip_prefix("Layout_")?;
        let name = name.strip_suffix("_Atom_Bits").or_else(|| name.strip_suffix("_Atom"))?;
        let bits = match kind {
            None => 1,
            Some(kind) => match element_bits(&kind.name) {
                Some(bits) => bits,
                None => match self.context.options.element_bits {
                    Some(bits) => bits,
                    None => {
                        let message = format!("how wide is an element of the type {}?", kind.name);
                        return Some(Err(Refused::ask(crate::Missing::Width, message)));
                    }
                },
            },
        };
        // In `Layout_SW128_Atom<T, Major>` the major stands behind the type.
        let major = node.args().get(1).map(|major| major.name.as_str());
        let (major, swizzle) = match (name.split_once('_'), major) {
            (Some(("K", swizzle)), _) => ("K", swizzle),
            (Some(("MN", swizzle)), _) => ("MN", swizzle),
            (None, Some(major @ ("K" | "MN"))) => (major, name),
            _ => return None,
        };
        let (swizzle, bytes, rows) = match swizzle {
            "INTER" => ("S<0,4,3>", 16, 8),
            "SW32" => ("S<1,4,3>", 32, 8),
            "SW64" => ("S<2,4,3>", 64, 8),
            "SW128" => ("S<3,4,3>", 128, 8),
            "SW128_32B" if major == "MN" => ("S<2,5,2>", 128, 4),
            _ => return None,
        };
        let across = bytes * 8 / bits;
        if across * bits != bytes * 8 {
            let message = format!("{bytes} bytes are no whole number of elements of {bits} bits");
            return Some(Err(Refused::contradiction(node.span.clone(), message)));
        }
        let layout = match major {
            "K" => format!("({rows},{across}):({across},1)"),
            _ => format!("({across},{rows}):(1,{across})"),
        };
        Some(in_elements(swizzle, bits, &layout, node.span.clone()))
    }

    /// A tiler by mode, in our notation: `Tile<_32, Layout<..>, Underscore>`.
    fn tiler(&self, node: &Node) -> Option<String> {
        let item = |node: &Node| match self.layout(node) {
            Some(Ok(layout)) => Some(format!("({})", layout.text)),
            Some(Err(_)) => None,
            None => match self.tuple(node)? {
                Tuple::Keep => Some("_".to_owned()),
                Tuple::Tuple(_) => None,
                extent => Some(format!("{extent}:1")),
            },
        };
        let items = match (node.name.as_str(), node.call()) {
            ("Tile" | "tuple" | "Shape", _) if !node.args().is_empty() => node.args(),
            ("make_tile", Some(items)) => items,
            _ => return None,
        };
        let items: Option<Vec<String>> = items.iter().map(item).collect();
        Some(format!("[{}]", items?.join(";")))
    }

    /// `Tensor<Engine, Layout>`
    fn tensor(&self, node: &Node) -> Answer {
        let [engine, layout] = node.args() else { return None };
        let span = node.span.clone();
        let made = match self.layout(layout)? {
            Ok(made) => made,
            Err(refused) => return Some(Err(refused)),
        };
        let engine = Engine::of(engine)?;
        let bits = engine.bits.or(made.bits);
        Some((|| {
            let what = engine.what;
            if engine.coordinates {
                return Ok(Reading::new(System::CuteCpp, what, value(&made.text, span)?, Unit::Coordinates));
            }
            let unit = Unit::Elements { bits };
            let Some(swizzle) = engine.swizzle.and_then(|node| self.swizzle(node)) else {
                let mut reading = Reading::new(System::CuteCpp, what, value(&made.text, span)?, unit);
                reading.notes = made.notes;
                return Ok(reading);
            };
            let bits = bits.or(self.context.options.element_bits).ok_or_else(|| {
                let kind = engine.kind.unwrap_or("the tensor");
                let message = format!("{swizzle} acts on byte addresses: how wide is an element of {kind}?");
                Refused::ask(crate::Missing::Width, message)
            })?;
            let made = in_elements(&swizzle, bits, &made.text, span.clone())?;
            let mut reading =
                Reading::new(System::CuteCpp, what, value(&made.text, span)?, Unit::Elements { bits: Some(bits) });
            reading.notes = made.notes;
            reading.notes.push("this holds where the pointer is aligned to what the swizzle moves".to_owned());
            Ok(reading)
        })())
    }

    /// `TiledCopy<Atom, LayoutCopy_TV, ShapeTiler_MN>`
    fn tiled_copy(&self, node: &Node) -> Answer {
        let [atom, layout, tiler] = node.args() else { return None };
        let made = match self.layout(layout)? {
            Ok(made) => made,
            Err(refused) => return Some(Err(refused)),
        };
        let tiler_text = self.tiler(tiler)?;
        let span = node.span.clone();
        Some((|| {
            let layout = value(&made.text, span.clone())?;
            let tiler = value(&tiler_text, span)?;
            let mut reading = Reading::new(System::CuteCpp, "tiled copy", layout.clone(), Unit::Indices)
                .note(format!("(thread, value) to the index in the tile {tiler}"));
            if let Some(name) = instruction(atom) {
                reading = reading.note(format!("the instruction is {name}"));
            }
            reading.parts.push(Part::new("TiledLayout_TV", layout, Unit::Indices));
            reading.parts.push(Part::new("Tiler_MN", tiler, Unit::None));
            Ok(reading)
        })())
    }

    /// `TiledMMA<Atom, AtomLayoutMNK, PermutationMNK>`
    fn tiled_mma(&self, node: &Node) -> Answer {
        let (atom, layout, permutation) = match node.args() {
            [atom, layout, permutation] => (atom, layout, Some(permutation)),
            [atom, layout] => (atom, layout, None),
            _ => return None,
        };
        let made = match self.layout(layout)? {
            Ok(made) => made,
            Err(refused) => return Some(Err(refused)),
        };
        let permutation = match permutation {
            Some(permutation) => self.tiler(permutation)?,
            None => "[_;_;_]".to_owned(),
        };
        let name = instruction(atom)?;
        let span = node.span.clone();
        Some((|| {
            let mma = format!("make_tiled_mma({name},{},{permutation})", made.text);
            let product = value(&mma, span.clone()).map_err(|refused| {
                Refused::unsupported(
                    span.clone(),
                    format!("the tiled product of {name}: {refused}"),
                    "see `tilewright atoms`",
                )
            })?;
            let mut reading = Reading::new(System::CuteCpp, "tiled product", product, Unit::None);
            for (part, function) in
                [("LayoutA_TV", "layoutA_TV"), ("LayoutB_TV", "layoutB_TV"), ("LayoutC_TV", "layoutC_TV")]
            {
                let layout = value(&format!("{function}({mma})"), span.clone())?;
                reading.parts.push(Part::new(part, layout, Unit::Indices));
            }
            Ok(reading.note("each part maps (thread, value) to the index in the tile of its operand"))
        })())
    }
}

/// A layout in our notation, before it is evaluated.
#[derive(Debug, Clone, Default)]
struct Made {
    text: String,
    /// Whether its strides are steps along modes.
    steps: bool,
    /// The width of its elements, where the text says it.
    bits: Option<i64>,
    notes: Vec<String>,
}

impl Made {
    fn reading(self, span: Range<usize>) -> Result<Reading, Refused> {
        let layout = value(&self.text, span)?;
        let unit = if self.steps { Unit::Coordinates } else { Unit::Elements { bits: self.bits } };
        let what = match layout {
            Value::Layout(_) => "layout",
            _ => "value",
        };
        let mut reading = Reading::new(System::CuteCpp, what, layout, unit);
        reading.notes = self.notes;
        Ok(reading)
    }
}

/// A layout behind a swizzle of byte addresses.
fn in_elements(swizzle: &str, bits: i64, layout: &str, span: Range<usize>) -> Result<Made, Refused> {
    let bytes: Swizzle =
        swizzle.parse().map_err(|error| Refused::contradiction(span.clone(), format!("{swizzle}: {error}")))?;
    let (own, note) = swizzle_of_elements(bytes, bits, span)?;
    let text = if own.is_identity() { layout.to_owned() } else { format!("{own} o 0 o ({layout})") };
    Ok(Made { text, steps: false, bits: Some(bits), notes: note.into_iter().collect() })
}

/// The engine of a tensor: where it lies, and of what it is.
struct Engine<'a> {
    what: &'static str,
    kind: Option<&'a str>,
    bits: Option<i64>,
    swizzle: Option<&'a Node>,
    coordinates: bool,
}

impl<'a> Engine<'a> {
    fn of(node: &'a Node) -> Option<Engine<'a>> {
        let mut engine = Engine { what: "tensor", kind: None, bits: None, swizzle: None, coordinates: false };
        let mut node = node;
        for _ in 0..8 {
            match (node.name.as_str(), node.args()) {
                ("ViewEngine" | "ConstViewEngine", [inner]) => node = inner,
                ("ArrayEngine", [kind, _]) => {
                    engine.what = "tensor in registers";
                    return Some(engine.with(kind));
                }
                ("swizzle_ptr", [swizzle, inner]) => {
                    engine.swizzle = Some(swizzle);
                    node = inner;
                }
                ("gmem_ptr", [inner]) => {
                    engine.what = "tensor in global memory";
                    node = inner;
                }
                ("smem_ptr", [inner]) => {
                    engine.what = "tensor in shared memory";
                    node = inner;
                }
                ("rmem_ptr", [inner]) => {
                    engine.what = "tensor in registers";
                    node = inner;
                }
                ("tmem_ptr", [inner]) => {
                    engine.what = "tensor in tensor memory";
                    node = inner;
                }
                ("subbyte_iterator", [inner]) => node = inner,
                ("ArithmeticTupleIterator", _) => {
                    engine.what = "tensor of coordinates";
                    engine.coordinates = true;
                    return Some(engine);
                }
                _ => return Some(engine.with(node)),
            }
        }
        None
    }

    fn with(mut self, kind: &'a Node) -> Engine<'a> {
        self.kind = Some(&kind.name);
        self.bits = element_bits(&kind.name);
        self
    }
}

/// The name of an instruction in our notation: `SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>` is
/// `SM80_CP_ASYNC_CACHEGLOBAL_uint128_t`.
fn instruction(node: &Node) -> Option<String> {
    let mut node = node;
    while let "MMA_Atom" | "Copy_Atom" | "MMA_Traits" | "Copy_Traits" = node.name.as_str() {
        node = node.args().first()?;
    }
    if node.name.is_empty() {
        return None;
    }
    // Newer headers name wgmma inside of a namespace, with the majors as its arguments.
    if let Some(shape) = node.name.strip_prefix("MMA_").filter(|_| node.scope.contains("GMMA")) {
        return Some(format!("SM90_{shape}"));
    }
    let name = &node.name;
    let kind = |node: &Node| match node.name.as_str() {
        "float" => "F32".to_owned(),
        "double" => "F64".to_owned(),
        "half_t" => "F16".to_owned(),
        other => other.to_owned(),
    };
    // The majors of wgmma and the types of copies.
    match node.args() {
        [] => Some(name.clone()),
        _ if name.starts_with("SM90_64x") => Some(name.clone()),
        args if name == "UniversalFMA" => {
            let kinds: Vec<String> = args.iter().map(kind).collect();
            let kinds: Vec<String> = (0..4).filter_map(|at| kinds.get(at).or(kinds.last()).cloned()).collect();
            Some(format!("{name}_{}", kinds.join("_")))
        }
        [first, ..] => Some(format!("{name}_{}", first.name)),
    }
}

fn number(node: &Node) -> Option<i64> {
    match constant(node) {
        Some(Tuple::Known(number)) => Some(number),
        _ => None,
    }
}

/// The number of a template argument.
fn constant(node: &Node) -> Option<Tuple> {
    match (node.number, node.name.as_str(), node.args()) {
        (Some(number), ..) => Some(Tuple::Known(number)),
        (_, "true", []) => Some(Tuple::Known(1)),
        (_, "false", []) => Some(Tuple::Known(0)),
        (_, "Int" | "C", [inner]) => constant(inner),
        (_, "constant" | "integral_constant", [_, inner]) => constant(inner),
        (_, name, []) if name.starts_with('_') => name.get(1..)?.parse().ok().map(Tuple::Known),
        _ => None,
    }
}

fn path_of(nodes: &[Node]) -> Option<Vec<usize>> {
    nodes.iter().map(|node| node.number.and_then(|mode| usize::try_from(mode).ok())).collect()
}

/// Types of integers that become known at run time.
fn is_integer_type(name: &str) -> bool {
    matches!(
        name,
        "int"
            | "unsigned"
            | "unsigned int"
            | "long"
            | "long int"
            | "unsigned long"
            | "long unsigned int"
            | "long long"
            | "long long int"
            | "unsigned long long"
            | "long long unsigned int"
            | "short"
            | "unsigned short"
            | "size_t"
            | "int8_t"
            | "int16_t"
            | "int32_t"
            | "int64_t"
            | "uint8_t"
            | "uint16_t"
            | "uint32_t"
            | "uint64_t"
            | "ptrdiff_t"
            | "index_t"
    )
}

fn is_order(node: &Node) -> bool {
    matches!(node.name.as_str(), "LayoutLeft" | "LayoutRight" | "GenColMajor" | "GenRowMajor")
}

/// A name of source text that can be a number: no word of the expression language.
fn is_free_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !is_integer_type(name)
        && !["o", "true", "false", "F2", "S", "Sw"].contains(&name)
        && tilewright_notation::function(name).is_none()
}
