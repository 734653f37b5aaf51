//! Machine code of a device: a cubin.
//!
//! Law: every table and section that the header of a [`MachineCode`] names is inside its bytes. The
//! driver gets an address and no length, so it reads as far as these tables say.
//!
//! (ELF-64, System V ABI, chapter 4; a cubin is an ELF file of machine 190.)

use crate::error::GpuError;

/// The machine number of a cubin: `EM_CUDA`.
const MACHINE: u64 = 190;
/// A section without bytes in the file: `SHT_NOBITS`.
const NO_BITS: u64 = 8;
/// Bytes of the header.
const HEADER: u64 = 64;
/// Bytes of an entry of the section table, and of an entry of the segment table.
const SECTION: u64 = 64;
const SEGMENT: u64 = 56;

/// A complete cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MachineCode(Vec<u8>);

impl MachineCode {
    /// The bytes of a cubin.
    ///
    /// Errors: they are no cubin, or end before a table or section that their header names (E0809).
    pub(crate) fn new(bytes: Vec<u8>) -> Result<MachineCode, GpuError> {
        match flaw(&bytes) {
            Some(what) => Err(GpuError::MachineCode { what, bytes: bytes.len() }),
            None => Ok(MachineCode(bytes)),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The defect of the bytes; None if there is none.
fn flaw(bytes: &[u8]) -> Option<&'static str> {
    let length = bytes.len() as u64;
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Some("it does not begin as an ELF file of 64 bits does");
    }
    if number(bytes, 18, 2) != Some(MACHINE) {
        return Some("it is an ELF file, but not of a CUDA device");
    }
    if length < HEADER {
        return Some("it ends inside the header");
    }
    let field = |at| number(bytes, at, 2).unwrap_or(0);
    let start = |at| number(bytes, at, 8).unwrap_or(u64::MAX);
    let (segments, sections) = (start(32), start(40));
    let (segment_count, section_size, section_count) = (field(56), field(58), field(60));
    let inside = |start: u64, bytes: u64| start.checked_add(bytes).is_some_and(|end| end <= length);
    if segment_count > 0 && (field(54) != SEGMENT || !inside(segments, segment_count * SEGMENT)) {
        return Some("its table of segments is not inside it");
    }
    if section_count > 0 && (section_size != SECTION || !inside(sections, section_count * SECTION)) {
        return Some("its table of sections is not inside it");
    }
    // Both tables are inside the bytes, so their fields are, too.
    let entry =
        |table: u64, size: u64, index: u64, at: u64| number(bytes, table + index * size + at, 8).unwrap_or(u64::MAX);
    let outside_section = |index: u64| {
        let kind = number(bytes, sections + index * SECTION + 4, 4);
        let (start, size) = (entry(sections, SECTION, index, 24), entry(sections, SECTION, index, 32));
        kind != Some(NO_BITS) && !inside(start, size)
    };
    if (0..section_count).any(outside_section) {
        return Some("one of its sections is not inside it");
    }
    let outside_segment = |index: u64| !inside(entry(segments, SEGMENT, index, 8), entry(segments, SEGMENT, index, 32));
    (0..segment_count).any(outside_segment).then_some("one of its segments is not inside it")
}

/// A number of up to eight bytes, in little-endian order.
fn number(bytes: &[u8], at: u64, count: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let field = bytes.get(at..at.checked_add(count)?)?;
    Some(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A cubin with one section with these contents.
    pub(crate) fn with_section(content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&190_u16.to_le_bytes());
        let table = 64 + content.len() as u64;
        bytes[40..48].copy_from_slice(&table.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&1_u16.to_le_bytes());
        bytes.extend_from_slice(content);
        let mut section = [0; 64];
        section[4] = 1;
        section[24..32].copy_from_slice(&64_u64.to_le_bytes());
        section[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&section);
        bytes
    }

    /// Law: a complete file is accepted. A file that is truncated anywhere, or in which a number of
    /// a table is too large, is not.
    #[test]
    fn what_is_named_is_inside() {
        let whole = with_section(b"instructions");
        assert_eq!(MachineCode::new(whole.clone()).unwrap().bytes(), whole);
        for length in 0..whole.len() {
            assert_eq!(MachineCode::new(whole[..length].to_vec()).unwrap_err().code(), "E0809", "{length}");
        }
        let section = whole.len() - 64;
        for place in [18, 47, 56, 58, 60, section + 31, section + 39] {
            let mut wrong = whole.clone();
            wrong[place] = 0xff;
            assert!(MachineCode::new(wrong).is_err(), "{place}");
        }
    }
}
