//! Names that other systems and older releases use for the instructions of the tables.
//!
//! Law: an alias stands for several candidate names, and the first of them that is in the tables is
//! meant. Aliases are tried only if the name itself is not in the tables. A name that two machines
//! use for different layouts, such as plain `v_wmma_f32_16x16x16_f16`, is not an alias.
//!
//! | name | tables |
//! |---|---|
//! | `CDNA3_16x16x16_F32F16F16_MFMA`, `RDNA3_16x16x16_I32I8I8_WMMA` | `GFX908_..`, `GFX1100_..` |
//! | `GFX942_32x32x8_F32F16F16F32` of an instruction that is older | `GFX908_..` |
//! | `v_mfma_f32_32x32x8_f16`, `__builtin_amdgcn_mfma_..` | `GFX908_32x32x8_F32F16F16F32` |
//! | `__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12` | `GFX1200_16x16x16_F32F16F16F32` |
//! | `SM90_64x128x32_F32E4M3E4M3_SS` without `_TN` | `.._SS_TN` |
//! | `SM90::GMMA::MMA_64x128x16_F32F16F16_SS` | `SM90_64x128x16_F32F16F16_SS` |
//! | `SM90_64x64x32_F16F16F16_SS_SPARSE` | `SM90::GMMA::SPARSE::GMMA_64x64x32_F16F16F16_SS` |
//! | `SM120_16x8x32_F32E4M3E4M3F32_TN`, `.._SPARSE` | `SM120_16x8x32_TN<E4M3,E4M3,F32>`, .. |
//! | `SM61_1x1x4_S32S8S8S32` | `SM61_DP4A` |

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// AMD architectures with matrix cores, the oldest first.
const MATRIX_CORES: [&str; 4] = ["GFX908", "GFX90A", "GFX942", "GFX950"];

/// The candidate names that an alias stands for.
pub(crate) fn names(name: &str) -> Vec<String> {
    let found = [intrinsic(name), machine(name), wgmma(name), block(name)];
    let mut found: Vec<String> = found.into_iter().flatten().collect();
    if matches!(name, "SM61_1x1x4_S32S8S8S32" | "SM61_1x1x4_S32S8S8S32_TN") {
        found.push("SM61_DP4A".to_string());
    }
    found
}

/// Type names from abbreviations of other systems; a single type for A and B is doubled.
fn types(word: &str) -> Option<String> {
    let known = [("BF16", "BF16"), ("BF8", "E5M2"), ("F8", "E4M3"), ("I32", "S32"), ("I8", "S8"), ("I4", "S4")];
    let mut rest = word;
    let mut found = String::new();
    let mut count = 0;
    let mut first = "";
    while !rest.is_empty() {
        let other = known.iter().find(|(theirs, _)| rest.starts_with(theirs));
        let (theirs, own) = match other {
            Some((theirs, own)) => (*theirs, *own),
            None => {
                let own = ["TF32", "XF32", "F64", "F32", "F16", "S32", "S8", "U8", "S4", "U4", "E4M3", "E5M2"];
                let own = own.into_iter().find(|own| rest.starts_with(own))?;
                (own, if own == "XF32" { "TF32" } else { own })
            }
        };
        if count == 0 {
            first = own;
        }
        found.push_str(own);
        rest = rest.get(theirs.len()..)?;
        count += 1;
    }
    match count {
        4 => Some(found),
        3 => Some(format!("{found}{first}")),
        _ => None,
    }
}

/// The names of an instruction on the given architecture and on all older ones.
fn since(latest: &str, signature: &str) -> Vec<String> {
    let known = MATRIX_CORES.iter().position(|own| *own == latest);
    let machines = known.map_or(&[][..], |at| MATRIX_CORES.get(..=at).unwrap_or(&[]));
    machines.iter().map(|machine| format!("{machine}_{signature}")).collect()
}

/// Handles `CDNA3_16x16x16_F32F16F16_MFMA`, `RDNA4_..._WMMA`, and architectures newer than the one
/// in the tables.
fn machine(name: &str) -> Vec<String> {
    let mut words = name.split('_');
    let (Some(machine), Some(shape), Some(signature)) = (words.next(), words.next(), words.next()) else {
        return Vec::new();
    };
    let Some(types) = types(signature) else { return Vec::new() };
    let signature = format!("{shape}_{types}");
    match (machine, words.next(), words.next()) {
        ("CDNA1", Some("MFMA"), None) => since("GFX908", &signature),
        ("CDNA2", Some("MFMA"), None) => since("GFX90A", &signature),
        ("CDNA3", Some("MFMA"), None) => since("GFX942", &signature),
        ("CDNA3P" | "CDNA4", Some("MFMA"), None) => since("GFX950", &signature),
        ("RDNA3", Some("WMMA"), None) => [format!("GFX1100_{signature}")].into(),
        ("RDNA4", Some("WMMA"), None) => [format!("GFX1200_{signature}")].into(),
        ("GFX1101" | "GFX1102" | "GFX1103" | "GFX11", None, None) => [format!("GFX1100_{signature}")].into(),
        ("GFX1201" | "GFX12", None, None) => [format!("GFX1200_{signature}")].into(),
        ("GFX940" | "GFX941", None, None) => since("GFX942", &signature),
        (machine, None, None) => since(machine, &signature),
        _ => Vec::new(),
    }
}

/// Handles the name of an instruction in assembly, or of a compiler builtin.
fn intrinsic(name: &str) -> Vec<String> {
    let name = name.strip_prefix("__builtin_amdgcn_").or_else(|| name.strip_prefix("v_")).unwrap_or(name);
    let (rest, is_wmma) = match (name.strip_prefix("mfma_"), name.strip_prefix("wmma_")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Vec::new(),
    };
    let Some((result, rest)) = rest.split_once('_') else { return Vec::new() };
    // Either `32x32x8f16` or `32x32x8_f16`.
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != 'x').unwrap_or(rest.len());
    let (shape, factors) = rest.split_at_checked(end).unwrap_or((rest, ""));
    // The `x` of `xf32` belongs to the type, not to the shape.
    let (shape, factors) = match shape.strip_suffix('x') {
        Some(shape) => (shape, format!("x{factors}")),
        None => (shape, factors.trim_start_matches('_').to_string()),
    };
    let mut factors = factors.as_str();
    let machine = match (is_wmma, factors.strip_suffix("_w32_gfx12"), factors.strip_suffix("_w32")) {
        (false, ..) => "GFX950",
        (true, Some(own), _) => {
            factors = own;
            "GFX1200"
        }
        (true, _, Some(own)) => {
            factors = own;
            "GFX1100"
        }
        // Both architectures have it, with different layouts.
        _ => return Vec::new(),
    };
    let factors = factors.strip_suffix("_1k").or_else(|| factors.strip_suffix("1k")).unwrap_or(factors);
    let kind = |word: &str| {
        Some(match word {
            "f16" => "F16",
            "bf16" => "BF16",
            "f32" => "F32",
            "f64" => "F64",
            "xf32" => "TF32",
            "i32" => "S32",
            "i8" | "iu8" => "S8",
            "iu4" => "S4",
            "fp8" => "E4M3",
            "bf8" => "E5M2",
            _ => return None,
        })
    };
    let (a, b) = factors.split_once('_').unwrap_or((factors, factors));
    let (Some(sums), Some(a), Some(b)) = (kind(result), kind(a), kind(b)) else { return Vec::new() };
    let signature = format!("{shape}_{sums}{a}{b}{sums}");
    if is_wmma { [format!("{machine}_{signature}")].into() } else { since(machine, &signature) }
}

/// Handles `wgmma` without `_TN`, in the namespace of newer headers, or with the suffix `_SPARSE`.
fn wgmma(name: &str) -> Vec<String> {
    let rest = ["SM90::GMMA::MMA_64x", "SM90_GMMA_MMA_64x", "GMMA::MMA_64x", "MMA_64x", "SM90_64x"]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    let Some(rest) = rest else { return Vec::new() };
    match rest.strip_suffix("_SPARSE") {
        Some(rest) => ["", "_TN"].map(|end| format!("SM90::GMMA::SPARSE::GMMA_64x{rest}{end}")).into(),
        None => ["", "_TN"].map(|end| format!("SM90_64x{rest}{end}")).into(),
    }
}

/// Handles `SM120_16x8x32_F32E4M3E4M3F32_TN`: shape and types are written as for older
/// architectures.
fn block(name: &str) -> Vec<String> {
    let Some(rest) = name.strip_prefix("SM120_") else { return Vec::new() };
    let (rest, sparse) = rest.strip_suffix("_SPARSE").map_or((rest, ""), |rest| (rest, "SPARSE_"));
    let Some((shape, signature)) = rest.strip_suffix("_TN").and_then(|rest| rest.split_once('_')) else {
        return Vec::new();
    };
    let factors = ["E4M3", "E5M2", "E3M2", "E2M3", "E2M1"];
    let mut found = Vec::new();
    for sums in ["F32", "F16"] {
        for (a, b) in factors.iter().flat_map(|a| factors.iter().map(move |b| (a, b))) {
            if signature == format!("{sums}{a}{b}{sums}") {
                found.push(format!("SM120_{sparse}{shape}_TN<{a},{b},{sums}>"));
            }
        }
    }
    found
}
