//! Records which sectors of a tensor were touched.
//!
//! Law: a sector counts once, however often it is touched. Tensors with more than [`MOST`] sectors
//! count none, so the count may be too low, but never too high.

use crate::interpret::lanes::lanes as lanes_of;

/// Bytes of a sector of global memory.
const SECTOR: u64 = 32;

/// The most sectors of a tensor that are distinguished, 4 GiB of it: their bits take 16 MiB.
const MOST: u64 = 1 << 27;

/// A set of sectors.
#[derive(Debug, Default)]
pub(super) struct Sectors {
    bits: Vec<u64>,
}

impl Sectors {
    /// Records that lanes access this many bytes each.
    pub(super) fn touch(&mut self, lanes: u32, addresses: &[i64], bytes: u32) {
        for lane in lanes_of(lanes) {
            let Ok(first) = u64::try_from(addresses[lane]) else { continue };
            let last = (first.saturating_add(u64::from(bytes.max(1)) - 1)) / SECTOR;
            for sector in (first / SECTOR..=last).take_while(|sector| *sector < MOST) {
                let word = (sector / 64) as usize;
                if self.bits.len() <= word {
                    self.bits.resize((word + 1).next_power_of_two(), 0);
                }
                self.bits[word] |= 1 << (sector % 64);
            }
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}
