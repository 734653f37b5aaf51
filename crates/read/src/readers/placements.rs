//! Placements of PyTorch as text: `[Shard(0), Replicate(), Partial(sum)]`.
//!
//! Law: a partial sum is the only partial value that a layout has, so those of other reductions are
//! refused.

use std::ops::Range;

use crate::refused::Refused;

/// The largest number of bytes of a tensor that is printed with its values. PyTorch prints at most
/// a thousand values.
pub(super) const WINDOW: usize = 1 << 14;

/// The position of the bracket that closes the first one of a text.
pub(super) fn closed(text: &str) -> Option<usize> {
    closed_in(text, WINDOW)
}

/// As [`closed`], within a window of bytes. `<=` is not a bracket.
pub(super) fn closed_in(text: &str, window: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quoted = false;
    for (at, byte) in text.bytes().take(window).enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            b'(' | b'[' | b'{' if !quoted => depth += 1,
            b')' | b']' | b'}' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The placements with one spelling for partial sums, `Partial()`.
///
/// Errors: partial values of a reduction that is not a sum (E1304).
pub(super) fn with_sums(text: &str, span: &Range<usize>) -> Result<String, Refused> {
    let mut written = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Partial(") {
        let name = rest.get(..at).unwrap_or("");
        let start = name.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |before| before + 1);
        let behind = rest.get(at + "Partial".len()..).unwrap_or("");
        let Some(end) = closed(behind) else { break };
        let inner = behind.get(1..end - 1).unwrap_or("");
        let operation = inner.trim().trim_start_matches("reduce_op").trim_start_matches(['=', ' ']);
        let operation = operation.trim_matches(['\'', '"', '<', '>']).trim_start_matches("RedOpType.");
        let operation = operation.split(':').next().unwrap_or("").trim().to_lowercase();
        let kind = name.get(start..).unwrap_or("");
        if !matches!(kind, "" | "_") || !matches!(operation.as_str(), "" | "sum") {
            let placement = format!("{kind}Partial({inner})");
            let message = format!("{placement} is no sum of parts: a layout here has summands, and no other reduction");
            let help = "redistribute to Replicate() or Shard(..) first, or read it with Partial()";
            return Err(Refused::unsupported(span.clone(), message, help));
        }
        written.push_str(name.get(..start).unwrap_or(""));
        written.push_str("Partial()");
        rest = behind.get(end..).unwrap_or("");
    }
    written.push_str(rest);
    Ok(written)
}
