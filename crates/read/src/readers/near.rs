//! The shape for an attribute, from the type beside it.
//!
//! Law: an attribute of an argument or a result is in braces after its type, `%arg0:
//! tensor<8x16xf32> {sdy.sharding = ..}`. An attribute of an operation precedes the colon of its
//! types, of which the results count. HLO types give no shape, because the partitioner replaces
//! them by the types of one device and keeps the attribute. Only a bounded part of the attribute's
//! line is searched.

use std::ops::Range;

/// The distance in bytes on its line in which the type of an attribute is searched.
const WINDOW: usize = 1 << 12;

/// The shape of the argument, or of the result with this index, to which the attribute at these
/// bytes belongs; None if no type with known extents gives it.
pub(super) fn shape_beside(source: &str, span: Range<usize>, result: usize) -> Option<Vec<i64>> {
    let before = line_before(source, span.start);
    let after = line_after(source, span.end);
    match open_brace(before) {
        Some(open) => {
            let typed = before.get(..open).unwrap_or("").trim_end();
            of_tensor_at_end(typed).or_else(|| of_results(closed_brace(after)?, result))
        }
        None => of_results(after, result),
    }
}

/// The name of the argument to which the attribute at this byte belongs: `%arg0` of `%arg0:
/// tensor<8x16xf32> {..}`.
pub(super) fn name_beside(source: &str, at: usize) -> Option<String> {
    let before = line_before(source, at);
    let typed = before.get(..open_brace(before)?)?;
    let label = typed.get(..typed.rfind("tensor<")?)?.trim_end().strip_suffix(':')?;
    let name = label.get(label.rfind('%')?..)?;
    let is_name = name.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && name.len() > 1).then(|| name.to_owned())
}

fn line_before(source: &str, at: usize) -> &str {
    let mut from = at.saturating_sub(WINDOW);
    while !source.is_char_boundary(from) {
        from += 1;
    }
    let before = source.get(from..at).unwrap_or("");
    before.rfind('\n').map_or(before, |end| before.get(end + 1..).unwrap_or(""))
}

fn line_after(source: &str, at: usize) -> &str {
    let mut to = source.len().min(at.saturating_add(WINDOW));
    while !source.is_char_boundary(to) {
        to -= 1;
    }
    let after = source.get(at..to).unwrap_or("");
    after.split('\n').next().unwrap_or("")
}

/// The position of the last brace that opens and is not closed before the end of a text.
fn open_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b'}' => depth += 1,
            b'{' if depth == 0 => return Some(at),
            b'{' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The text after the brace that closes one opened before the text.
fn closed_brace(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return text.get(at + 1..),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The shape of the tensor type with which a text ends.
fn of_tensor_at_end(text: &str) -> Option<Vec<i64>> {
    let (shape, rest) = of_tensor(text.get(text.rfind("tensor<")?..)?)?;
    rest.is_empty().then_some(shape)
}

/// The shape of the tensor type with which a text begins, and the text after it.
fn of_tensor(text: &str) -> Option<(Vec<i64>, &str)> {
    let inner = text.trim_start().strip_prefix("tensor<")?;
    let mut depth = 1_usize;
    let end = inner.bytes().position(|byte| {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let mut shape = Vec::new();
    let mut extents = inner.get(..end).filter(|inner| !inner.starts_with('*'))?.trim_start();
    while let Some((extent, rest)) = extents.split_once('x')
        && extent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'?')
    {
        shape.push(extent.parse().ok()?);
        extents = rest;
    }
    Some((shape, inner.get(end + 1..)?))
}

/// The shape of a result in the text after the attributes of an operation: `: tensor<..>`, `: (..)
/// -> tensor<..>`, or several in parentheses.
fn of_results(text: &str, result: usize) -> Option<Vec<i64>> {
    // The brackets that close generic attributes precede the colon.
    let types = text.trim_start_matches(['>', ']', ' ', '"', '}']).strip_prefix(':')?;
    let mut results = match types.rsplit_once("->") {
        Some((_, results)) => results.trim_start(),
        None => types.trim_start(),
    };
    if let Some(inner) = results.strip_prefix('(') {
        results = inner;
        for _ in 0..result {
            let (_, rest) = of_tensor(results)?;
            results = rest.trim_start().strip_prefix(',')?;
        }
    } else if result > 0 {
        return None;
    }
    of_tensor(results).map(|(shape, _)| shape)
}

#[cfg(test)]
mod tests {
    use super::shape_beside;

    #[test]
    fn the_type_beside_an_attribute_says_its_shape() {
        for (text, result, shape) in [
            (
                "func @f(%a: tensor<4xf32> {x = 1}, %b: tensor<8x16xf32> {a.b = \"{q}\", s = HERE})",
                0,
                Some(vec![8, 16]),
            ),
            ("%1 = op %0 {s = HERE} : tensor<8x4xf32>", 0, Some(vec![8, 4])),
            ("%1 = \"op\"(%0) <{p = 1}> {s = HERE} : (tensor<3xf32>) -> tensor<8xbf16>", 0, Some(vec![8])),
            ("%1:2 = op %0 {s = HERE} : (tensor<3xf32>) -> (tensor<8xbf16>, tensor<2x2xi1>)", 1, Some(vec![2, 2])),
            ("%1 = sdy.reshard %0 HERE : tensor<6x8x!quant.x<i8>>", 0, Some(vec![6, 8])),
            ("func @f() -> (tensor<8xf32> {s = HERE})", 0, Some(vec![8])),
            ("  %p = f32[8,16]{1,0} parameter(0), sharding=HERE", 0, None),
            ("%1 = op %0 {s = HERE} : tensor<?x4xf32>", 0, None),
            ("%1 = op %0 {s = HERE} : tensor<*xf32>", 0, None),
            ("%1 = op %0 {s = HERE} : tensor<f32>", 0, Some(vec![])),
            ("HERE", 0, None),
            ("%1 = op %0 {s = HERE", 0, None),
            ("%a: tensor<8xf32>, %b: index {s = HERE}", 0, None),
        ] {
            let at = text.find("HERE").unwrap();
            assert_eq!(shape_beside(text, at..at + 4, result), shape, "{text}");
        }
    }
}
