//! Tensors with guards around them.
//!
//! Law: a kernel changes the elements that its tensor has, and no other byte: not before the
//! tensor, not behind it, and not between its rows. So memory holds a pattern first, and each byte
//! that no element has is compared with it afterwards.

use std::error::Error;

use tilewright::gpu::{Argument, Device, Memory, Stream};

/// Bytes before a tensor and behind it: a line of the cache each, and more than a box.
const GUARD: u64 = 4096;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// What memory holds before: no byte is like the one 1, 2, 4, 8 or 16 behind it, and none is 0.
fn pattern(at: u64) -> u8 {
    ((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8) | 1
}

/// A tensor on a device, with guards.
pub struct Guarded {
    memory: Memory,
    bytes: u64,
    /// All bytes as they were given, guards included.
    before: Vec<u8>,
}

impl Guarded {
    /// A tensor with these contents.
    pub fn of(device: &Device, stream: &Stream, contents: &[u8]) -> Outcome<Guarded> {
        let bytes = contents.len() as u64;
        let mut before: Vec<u8> = (0..bytes + 2 * GUARD).map(pattern).collect();
        before[GUARD as usize..][..contents.len()].copy_from_slice(contents);
        let mut memory = device.allocate(before.len() as u64)?;
        memory.write(stream, 0, &before)?;
        Ok(Guarded { memory, bytes, before })
    }

    /// A tensor of so many bytes that a kernel writes.
    pub fn empty(device: &Device, stream: &Stream, bytes: u64) -> Outcome<Guarded> {
        let contents: Vec<u8> = (GUARD..GUARD + bytes).map(pattern).collect();
        Guarded::of(device, stream, &contents)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn read(&self) -> Outcome<Argument<'_>> {
        Ok(self.memory.part(GUARD, self.bytes)?)
    }

    pub fn written(&mut self) -> Outcome<Argument<'_>> {
        Ok(self.memory.part_mut(GUARD, self.bytes)?)
    }

    /// All bytes that a kernel left, and how many there are before the tensor.
    pub fn left(&self, stream: &Stream) -> Outcome<(Vec<u8>, usize)> {
        let mut left = vec![0; self.before.len()];
        self.memory.read(stream, 0, &mut left)?;
        Ok((left, GUARD as usize))
    }

    /// What a kernel left of the tensor. Elements of this many bytes are at `places`; no other byte
    /// was changed.
    pub fn kept(&self, stream: &Stream, element: usize, places: impl Iterator<Item = i64>) -> Outcome<Vec<u8>> {
        let (left, first) = self.left(stream)?;
        let mut own = vec![false; left.len()];
        for place in places {
            let at = first + place as usize * element;
            own.get_mut(at..at + element).ok_or("an element lies outside of its tensor")?.fill(true);
        }
        let changed = |at: &usize| !own[*at] && left[*at] != self.before[*at];
        let all: Vec<usize> = (0..left.len()).filter(changed).collect();
        match all.as_slice() {
            [] => Ok(left[first..first + self.bytes as usize].to_vec()),
            [at, ..] => {
                let place = *at as i64 - first as i64;
                let others = all.len();
                Err(format!("{others} bytes outside were written, the first at {place} of {} bytes", self.bytes).into())
            }
        }
    }

    /// That nothing was changed.
    pub fn untouched(&self, stream: &Stream) -> Outcome<()> {
        self.kept(stream, 1, std::iter::empty()).map(drop)
    }
}
