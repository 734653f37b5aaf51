//! C++ tilers, tiled copies and tiled MMAs, and the names of their instructions.
//!
//! Law: a tiled copy maps (thread, value) to the index in its tile. A tiled MMA has such a layout
//! for each operand, which the library's own instruction of that name determines.

use super::numbers::number;
use super::parse::Node;
use super::{CppReading, Meanings};
use crate::reading::{Part, Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::tuple::{Tuple, value};

impl Meanings<'_, '_> {
    /// A tiler by mode, in our notation: `Tile<_32, Layout<..>, Underscore>`.
    pub(super) fn tiler(&self, node: &Node) -> Option<String> {
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

    /// `TiledCopy<Atom, LayoutCopy_TV, ShapeTiler_MN>`
    pub(super) fn tiled_copy(&self, node: &Node) -> CppReading {
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
    pub(super) fn tiled_mma(&self, node: &Node) -> CppReading {
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

/// The name of an instruction in our notation: `SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>` becomes
/// `SM80_CP_ASYNC_CACHEGLOBAL_uint128_t`.
fn instruction(node: &Node) -> Option<String> {
    let mut node = node;
    while let "MMA_Atom" | "Copy_Atom" | "MMA_Traits" | "Copy_Traits" = node.name.as_str() {
        node = node.args().first()?;
    }
    if node.name.is_empty() {
        return None;
    }
    // Newer headers name wgmma in a namespace, with the major modes as arguments.
    if let Some(shape) = node.name.strip_prefix("MMA_").filter(|_| node.scope.contains("GMMA")) {
        return Some(format!("SM90_{shape}"));
    }
    if node.name.starts_with("GMMA_64x") && node.scope.contains("SPARSE") {
        return Some(format!("SM90_GMMA_SPARSE_{}", node.name));
    }
    let name = &node.name;
    match node.args() {
        [] => Some(name.clone()),
        // The major modes of wgmma.
        _ if name.starts_with("SM90_64x") => Some(name.clone()),
        args if name == "UniversalFMA" => {
            let kinds: Vec<String> = args.iter().map(word).collect();
            let kinds: Vec<String> = (0..4).filter_map(|at| kinds.get(at).or(kinds.last()).cloned()).collect();
            Some(format!("{name}_{}", kinds.join("_")))
        }
        args if name.starts_with("XE_DPAS") => {
            let [size, kinds @ ..] = args else { return None };
            let kinds: Vec<String> = kinds.iter().map(word).collect();
            // If they are omitted, B has the type of A, and C has that of D.
            let (d, a) = (kinds.first()?, kinds.get(1)?);
            let (b, c) = (kinds.get(2).unwrap_or(a), kinds.get(3).unwrap_or(d));
            Some(format!("{name}_{}_{d}_{a}_{b}_{c}", number(size)?))
        }
        args if ["SM100_", "SM103_", "SM120_"].iter().any(|machine| name.starts_with(machine)) => {
            // Types and extents; major modes and signs follow them.
            let known = |node: &&Node| number(node).is_some() || word(node) != node.name;
            let mut words: Vec<String> = args.iter().take_while(known).map(word).collect();
            if name.contains("MXF8F6F4") {
                words.push("32".to_owned());
            }
            Some(format!("{name}_{}", words.join("_")))
        }
        // The type of the copied words.
        [first, ..] => Some(format!("{name}_{}", first.name)),
    }
}

/// A type or a number as it is written in names of instructions; anything else unchanged.
fn word(node: &Node) -> String {
    if let Some(number) = number(node) {
        return number.to_string();
    }
    match node.name.as_str() {
        "float" => "F32",
        "double" => "F64",
        "half_t" => "F16",
        "bfloat16_t" => "BF16",
        "tfloat32_t" => "TF32",
        "int" | "int32_t" => "S32",
        "int8_t" | "signed char" => "S8",
        "uint8_t" | "unsigned char" => "U8",
        "int4_t" | "int4b_t" => "S4",
        "uint4_t" | "uint4b_t" => "U4",
        "float_e4m3_t" => "E4M3",
        "float_e5m2_t" => "E5M2",
        "float_e3m2_t" => "E3M2",
        "float_e2m3_t" => "E2M3",
        "float_e2m1_t" => "E2M1",
        "float_ue8m0_t" => "UE8M0",
        "float_ue4m3_t" => "UE4M3",
        other => other,
    }
    .to_owned()
}
