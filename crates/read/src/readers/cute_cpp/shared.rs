//! Shared memory atoms of wgmma and tcgen05 by name: `GMMA::Layout_K_SW128_Atom<half_t>`.
//!
//! Law: an atom has eight rows of 16, 32, 64 or 128 bytes, which are contiguous along K or along M
//! and N, and a swizzle of byte addresses with one phase for each row. A sparse atom,
//! `Layout_K_SW128_SpAtom<T, S>`, has `S` logical elements for each stored element.

use super::Meanings;
use super::layouts::{Made, in_elements};
use super::numbers::number;
use super::parse::Node;
use crate::refused::{Missing, Refused};
use crate::sparse;
use crate::width::element_bits;

impl Meanings<'_, '_> {
    /// `GMMA::Layout_K_SW128_Atom<half_t>` and similar names: shared memory of wgmma and tcgen05.
    pub(super) fn shared_atom(&self, node: &Node, kind: Option<&Node>) -> Option<Result<Made, Refused>> {
        let name = node.name.strip_prefix("Layout_")?;
        let of_sparse = name.strip_suffix("_SpAtom");
        let name = of_sparse.or_else(|| name.strip_suffix("_Atom_Bits")).or_else(|| name.strip_suffix("_Atom"))?;
        // `Layout_K_SW128_SpAtom<T, S>`
        let (sharing, behind) = match (of_sparse, node.args()) {
            (None, [_, behind @ ..]) => (None, behind),
            (Some(_), [_, sharing, behind @ ..]) => (Some(number(sharing).filter(|sharing| *sharing > 0)?), behind),
            (Some(_), _) => return None,
            (None, []) => (None, [].as_slice()),
        };
        let bits = match kind {
            None => 1,
            Some(kind) => match element_bits(&kind.name) {
                Some(bits) => bits,
                None => match self.context.options.element_bits {
                    Some(bits) => bits,
                    None => {
                        let message = format!("how wide is an element of the type {}?", kind.name);
                        return Some(Err(Refused::ask(Missing::Width, message)));
                    }
                },
            },
        };
        // In `Layout_SW128_Atom<T, Major>` the major mode follows the type.
        let major = behind.first().map(|major| major.name.as_str());
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
        if let Some(sharing) = sharing {
            let layout = match major {
                "K" => format!("((1,{rows}),({sharing},{across})):((0,{across}),(0,1))"),
                _ => format!("((1,{across}),({sharing},{rows})):((0,1),(0,{across}))"),
            };
            return Some(in_elements(swizzle, bits, &layout, node.span.clone()).map(|mut made| {
                made.notes.push(sparse::note(sharing));
                made
            }));
        }
        let layout = match major {
            "K" => format!("({rows},{across}):({across},1)"),
            _ => format!("({across},{rows}):(1,{across})"),
        };
        Some(in_elements(swizzle, bits, &layout, node.span.clone()))
    }
}
