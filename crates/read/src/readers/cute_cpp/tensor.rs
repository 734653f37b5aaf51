//! C++ tensors: an engine, which has the address and the type of the elements, and a layout.
//!
//! Law: the meaning of a tensor is its layout, in elements of the engine's type. An engine with
//! `swizzle_ptr` adds a swizzle of byte addresses. The values of a tensor whose engine counts
//! coordinates are coordinates.

use super::layouts::in_elements;
use super::numbers::number;
use super::parse::Node;
use super::{CppReading, Meanings};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::sparse;
use crate::system::System;
use crate::tuple::value;
use crate::width::element_bits;

impl Meanings<'_, '_> {
    /// `Tensor<Engine, Layout>`
    pub(super) fn tensor(&self, node: &Node) -> CppReading {
        let [engine, layout] = node.args() else { return None };
        let span = node.span.clone();
        let made = match self.layout(layout)? {
            Ok(made) => made,
            Err(refused) => return Some(Err(refused)),
        };
        let engine = Engine::of(engine)?;
        let bits = engine.bits.or(made.bits);
        Some((|| {
            let mut made = made;
            if engine.sharing > 1 {
                made.text = sparse::stored(&made.text, engine.sharing, span.clone())?;
                made.notes.push(sparse::note(engine.sharing));
            }
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
                Refused::ask(Missing::Width, message)
            })?;
            let own = in_elements(&swizzle, bits, &made.text, span.clone())?;
            let mut reading =
                Reading::new(System::CuteCpp, what, value(&own.text, span)?, Unit::Elements { bits: Some(bits) });
            reading.notes = own.notes;
            reading.notes.extend(made.notes);
            reading.notes.push("this holds where the pointer is aligned to what the swizzle moves".to_owned());
            Ok(reading)
        })())
    }
}

/// The engine of a tensor: its memory and its element type.
struct Engine<'a> {
    what: &'static str,
    kind: Option<&'a str>,
    bits: Option<i64>,
    swizzle: Option<&'a Node>,
    coordinates: bool,
    /// The number of logical elements that share one stored element.
    sharing: i64,
}

impl<'a> Engine<'a> {
    fn of(node: &'a Node) -> Option<Engine<'a>> {
        let mut engine =
            Engine { what: "tensor", kind: None, bits: None, swizzle: None, coordinates: false, sharing: 1 };
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
                ("sparse_ptr", [sharing, inner]) => {
                    engine.sharing = number(sharing).filter(|sharing| *sharing > 0)?;
                    node = inner;
                }
                // The element of a sparse pointer.
                ("sparse_elem", [_, kind]) => return Some(engine.with(kind)),
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
