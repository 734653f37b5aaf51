//! C++ layouts: types, calls of the algebra, and composed layouts.
//!
//! Law: the result is text in our notation, with the width of the elements if C++ contains it. A
//! flag such as `smem_ptr_flag_bits<16>` says that a swizzle acts on byte addresses, and the inner
//! layout counts elements.

use std::ops::Range;

use tilewright_layout::Swizzle;
use tilewright_notation::Value;

use super::Meanings;
use super::numbers::number;
use super::parse::Node;
use crate::reading::{Reading, Unit};
use crate::refused::Refused;
use crate::sparse;
use crate::system::System;
use crate::tuple::{Tuple, value};
use crate::width::swizzle_of_elements;

impl Meanings<'_, '_> {
    /// `S<3,4,3>` in our notation.
    pub(super) fn swizzle(&self, node: &Node) -> Option<String> {
        match (node.name.as_str(), node.args()) {
            ("Swizzle", [bits, base, shift]) => {
                Some(format!("S<{},{},{}>", number(bits)?, number(base)?, number(shift)?))
            }
            // If the third number is omitted, it equals the first.
            ("Swizzle", [bits, base]) => Some(format!("S<{0},{1},{0}>", number(bits)?, number(base)?)),
            _ => None,
        }
    }

    /// A layout.
    pub(super) fn layout(&self, node: &Node) -> Option<Result<Made, Refused>> {
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

    /// A call of a function of the algebra on layouts and tuples.
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
            Some(("smem_sparse_ptr_flag_bits" | "smem_sparse_ptr_flag", [shared, width @ ..])) => {
                let shared = number(shared).filter(|shared| *shared > 0)?;
                let bits = width.first().map_or(Some(1), number).filter(|bits| *bits > 0)?;
                Some(in_stored_elements(&swizzle, [shared, bits], &inner.text, outer.span.clone()))
            }
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
}

/// A layout in our notation, before it is evaluated.
#[derive(Debug, Clone, Default)]
pub(super) struct Made {
    pub text: String,
    /// Whether its strides are steps along modes.
    pub steps: bool,
    /// The width of its elements in bits, if the text contains it.
    pub bits: Option<i64>,
    pub notes: Vec<String>,
}

impl Made {
    pub fn reading(self, span: Range<usize>) -> Result<Reading, Refused> {
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

/// A layout composed with a swizzle of byte addresses.
pub(super) fn in_elements(swizzle: &str, bits: i64, layout: &str, span: Range<usize>) -> Result<Made, Refused> {
    let bytes: Swizzle =
        swizzle.parse().map_err(|error| Refused::contradiction(span.clone(), format!("{swizzle}: {error}")))?;
    let (own, note) = swizzle_of_elements(bytes, bits, span)?;
    let text = if own.is_identity() { layout.to_owned() } else { format!("{own} o 0 o ({layout})") };
    Ok(Made { text, steps: false, bits: Some(bits), notes: note.into_iter().collect() })
}

/// As [`in_elements`], for a sparse operand in which `shared` logical elements share one stored
/// element.
pub(super) fn in_stored_elements(
    swizzle: &str,
    [shared, bits]: [i64; 2],
    layout: &str,
    span: Range<usize>,
) -> Result<Made, Refused> {
    let stored = sparse::stored(layout, shared, span.clone())?;
    let mut made = in_elements(swizzle, bits, &stored, span)?;
    made.notes.push(sparse::note(shared));
    Ok(made)
}

fn is_order(node: &Node) -> bool {
    matches!(node.name.as_str(), "LayoutLeft" | "LayoutRight" | "GenColMajor" | "GenRowMajor")
}
