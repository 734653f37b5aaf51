//! Memory that blocks share.
//!
//! A memory consists of words of 64 bits that threads of the host may access concurrently. An
//! aligned access of at most 8 bytes is atomic, as on the device.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Contiguous bytes, stored as words.
pub(crate) struct Words {
    words: Box<[AtomicU64]>,
    bytes: u64,
}

fn ones(bytes: u32) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

impl Words {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { words: (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect(), bytes }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU64::new(u64::from_le_bytes(word))
        });
        Self { words: words.collect(), bytes: bytes.len() as u64 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        bytes.truncate(self.bytes as usize);
        bytes
    }

    /// Reads at most 8 bytes that do not cross a word. Bytes outside of the memory are 0.
    #[inline]
    pub(crate) fn read(&self, at: u64, bytes: u32) -> u64 {
        match self.words.get((at >> 3) as usize) {
            Some(word) => word.load(Relaxed) >> (8 * (at & 7)) & ones(bytes),
            None => 0,
        }
    }

    /// Writes at most 8 bytes that do not cross a word. `alone` says that no other thread of the
    /// host writes to this memory.
    #[inline]
    pub(crate) fn write(&self, at: u64, bytes: u32, value: u64, alone: bool) {
        let Some(word) = self.words.get((at >> 3) as usize) else { return };
        if bytes == 8 {
            word.store(value, Relaxed);
            return;
        }
        let shift = 8 * (at & 7);
        let mask = ones(bytes) << shift;
        let value = value << shift & mask;
        if alone {
            word.store(word.load(Relaxed) & !mask | value, Relaxed);
        } else {
            // Keeps the bytes of the word that belong to other threads.
            let _ = word.fetch_update(Relaxed, Relaxed, |old| Some(old & !mask | value));
        }
    }

    /// Reads and writes atomically. Returns the old value.
    #[inline]
    pub(crate) fn update(&self, at: u64, bytes: u32, change: impl Fn(u64) -> u64) -> u64 {
        let Some(word) = self.words.get((at >> 3) as usize) else { return 0 };
        let shift = 8 * (at & 7);
        let mask = ones(bytes) << shift;
        let mut old = word.load(Relaxed);
        loop {
            let new = old & !mask | change(old >> shift & ones(bytes)) << shift & mask;
            match word.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                Ok(_) => return old >> shift & ones(bytes),
                Err(seen) => old = seen,
            }
        }
    }

    /// Reads any number of contiguous bytes.
    pub(crate) fn read_into(&self, at: u64, into: &mut [u8]) {
        for (place, byte) in into.iter_mut().enumerate() {
            *byte = self.read(at.wrapping_add(place as u64), 1) as u8;
        }
    }

    /// Writes any number of contiguous bytes.
    pub(crate) fn write_from(&self, at: u64, from: &[u8], alone: bool) {
        let mut place = 0;
        while place < from.len() {
            let to = at.wrapping_add(place as u64);
            if to & 7 == 0 && from.len() - place >= 8 {
                let mut word = [0; 8];
                word.copy_from_slice(&from[place..place + 8]);
                self.write(to, 8, u64::from_le_bytes(word), alone);
                place += 8;
            } else {
                self.write(to, 1, u64::from(from[place]), alone);
                place += 1;
            }
        }
    }
}

/// Global or constant memory of one argument or variable.
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) words: Words,
    pub(crate) is_read_only: bool,
}

/// Global and constant memory.
#[derive(Default)]
pub(crate) struct Memory {
    /// The regions, in ascending order of address.
    pub(crate) regions: Vec<Region>,
}

impl Memory {
    /// The region that contains an address. `near` is a guess, and is updated.
    #[inline]
    pub(crate) fn find(&self, address: u64, near: &mut usize) -> Option<&Region> {
        if let Some(region) = self.regions.get(*near)
            && address.wrapping_sub(region.address) < region.words.bytes()
        {
            return Some(region);
        }
        let at = self.regions.partition_point(|region| region.address <= address).checked_sub(1)?;
        let region = &self.regions[at];
        (address - region.address < region.words.bytes()).then(|| {
            *near = at;
            region
        })
    }

    /// The region nearest to an address: the one that an out-of-bounds access has probably missed.
    pub(crate) fn nearest(&self, address: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| region.address <= address);
        let below = after.checked_sub(1).map(|at| &self.regions[at]);
        let above = self.regions.get(after);
        match (below, above) {
            (Some(below), Some(above)) => {
                let past = address - below.address - below.words.bytes().min(address - below.address);
                Some(if above.address - address < past { above } else { below })
            }
            (below, above) => below.or(above),
        }
    }
}
