//! NPY files of NumPy.

use std::path::Path;

use crate::element::Element;
use crate::refusal::LaunchError;

/// Reads an NPY file: the element type, the shape and the bytes of its array, row after row.
///
/// # Errors
///
/// Errors: the file cannot be read; its array is not in row-major order, or has an unknown type.
pub fn read(path: &Path) -> Result<(Element, Vec<u64>, Vec<u8>), LaunchError> {
    let wrong = |why: &str| LaunchError::new(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(&error.to_string()))?;
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(|| wrong("it is no NPY file"))?;
    let (start, length): (usize, usize) = match rest {
        [1, _, a, b, ..] => (4, usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => (6, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        _ => return Err(wrong("its version is not known")),
    };
    let header = rest.get(start..start.saturating_add(length)).ok_or_else(|| wrong("its header is cut off"))?;
    let header = std::str::from_utf8(header).map_err(|_| wrong("its header is no text"))?;
    let value = |key: &str| {
        let (_, rest) = header.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    let kind = value("descr").and_then(|rest| rest.strip_prefix('\'')?.split('\'').next());
    let element = match kind.ok_or_else(|| wrong("it has fields"))? {
        "<f2" => Element::F16,
        "<f4" => Element::F32,
        "<f8" => Element::F64,
        "|i1" | "<i1" => Element::Signed(1),
        "<i2" => Element::Signed(2),
        "<i4" => Element::Signed(4),
        "<i8" => Element::Signed(8),
        "|u1" | "<u1" | "|b1" | "|V1" => Element::Unsigned(1),
        "<u2" | "|V2" | "<V2" => Element::Unsigned(2),
        "<u4" => Element::Unsigned(4),
        "<u8" => Element::Unsigned(8),
        other => return Err(wrong(&format!("arrays of {other} are not read"))),
    };
    let shape = value("shape").and_then(|rest| rest.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or_else(|| wrong("its shape is missing"))?;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape = extents.map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| wrong("its shape is damaged"))?;
    let is_column = value("fortran_order").is_some_and(|rest| rest.starts_with("True"));
    if is_column && shape.iter().filter(|extent| **extent > 1).count() > 1 {
        return Err(wrong("its columns are contiguous; rows must be"));
    }
    let count = shape.iter().try_fold(element.bytes(), |all, extent| all.checked_mul(*extent));
    let data = &rest[start + length..];
    if count != Some(data.len() as u64) {
        return Err(wrong("its bytes do not fit its shape"));
    }
    Ok((element, shape, data.to_vec()))
}

/// The bytes of an NPY file. Types that NumPy lacks are written as integers of the same size.
pub fn write(element: Element, shape: &[u64], bytes: &[u8]) -> Vec<u8> {
    let kind = match element {
        Element::F16 => "<f2",
        Element::F32 => "<f4",
        Element::F64 => "<f8",
        Element::Bf16 => "<u2",
        Element::E4m3 | Element::E5m2 => "|u1",
        Element::Signed(1) => "|i1",
        Element::Signed(2) => "<i2",
        Element::Signed(4) => "<i4",
        Element::Signed(_) => "<i8",
        Element::Unsigned(1) => "|u1",
        Element::Unsigned(2) => "<u2",
        Element::Unsigned(4) => "<u4",
        Element::Unsigned(_) => "<u8",
    };
    let extents: String = shape.iter().map(|extent| format!("{extent},")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}");
    // The header is padded so that the data is aligned to 64 bytes.
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}
