//! The tiles of attention, for a machine.
//!
//! Law: a block fits in the shared memory of the machine, with two iterations of the tiles that it
//! loads, or one where their copies take turns, and its sums fit in the registers of its threads.
//! Rows belong to one warp each, so a softmax needs no other warp.
//!
//! With `mma.sync` a warp reads the tiles that it multiplies from shared memory itself. With 32
//! rows it reads half as much for each product as with 16. Shared memory serves 128 bytes a cycle,
//! so with 16 rows it is what products wait for. Eight warps are resident, as one block or as two.
//! Sums of 32 rows of 128 elements take half of a thread's registers, so `d_k` and `d_v` with heads
//! of 128 are two programs: eight products then take less time than seven by warps of 16 rows.

use tilewright_kernel::machine::{Machine, Multiprocessor};

use super::scores::Logits;
use super::text::Heads;

/// Bytes of an element of the tiles.
const BYTES: i64 = 2;
/// The iterations that are in shared memory at once.
const STAGES: i64 = 2;

/// The tiles of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    /// Rows that a block has, and columns of an iteration.
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) warps: i64,
}

impl Tile {
    pub(super) const fn new(rows: i64, columns: i64, warps: i64) -> Tile {
        Tile { rows, columns, warps }
    }
}

/// What the tiles depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    /// Whether warpgroups multiply.
    by_groups: bool,
    /// The shared memory of a block, and of each of two resident ones.
    block_bytes: i64,
    half_bytes: i64,
}

/// Which derivatives a program with rows of keys has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfKeys {
    Both,
    Keys,
    Values,
}

impl Tiles {
    /// The tiles for a machine; without one, those of Hopper.
    pub(super) fn of(machine: Option<&Machine>) -> Tiles {
        let Some(machine) = machine else {
            return Tiles { by_groups: true, block_bytes: i64::MAX, half_bytes: i64::MAX };
        };
        let (own, target) = (machine.multiprocessor, Multiprocessor::of(machine.target).block_shared_bytes);
        let block_bytes = own.block_shared_bytes.min(target).into();
        let half_bytes = (i64::from(own.shared_bytes) / 2 - i64::from(own.reserved_bytes)).min(block_bytes);
        Tiles { by_groups: machine.target.has_wgmma(), block_bytes, half_bytes }
    }

    /// Whether a tile fits: `of_rows` elements for each row of a block, and `of_columns` for each
    /// column of an iteration.
    fn fits(&self, tile: &Tile, [of_rows, of_columns]: [i64; 2]) -> bool {
        BYTES * (tile.rows * of_rows + STAGES * tile.columns * of_columns) <= self.block_bytes
    }

    /// Whether two blocks of the forward have room for their queries and a tile of keys and of
    /// values.
    fn has_two(&self, tile: Tile, [wide, value]: [i64; 2]) -> bool {
        BYTES * (tile.rows * wide + tile.columns * (wide + value)) <= self.half_bytes
    }

    /// The first of some tiles that fits. The last one, if none does.
    fn first(&self, tiles: &[Tile], elements: [i64; 2]) -> Tile {
        let fits = tiles.iter().find(|tile| self.fits(tile, elements));
        *fits.or(tiles.last()).unwrap_or(&Tile::new(16, 16, 1))
    }

    /// The tiles of the forward. Those of a bias take shared memory or registers, too.
    pub(super) fn forward(&self, heads: Heads, logits: &Logits) -> Tile {
        let wide = heads.tiles();
        if self.by_groups {
            // Measured on an H200.
            return match wide {
                [..=64, ..=64] if logits.bias.is_some() => Tile::new(128, 64, 8),
                [..=128, ..=128] if logits.bias.is_some() => Tile::new(128, 32, 8),
                _ if logits.bias.is_some() => Tile::new(64, 32, 4),
                [..=64, ..=64] => Tile::new(256, 64, 16),
                [..=128, ..=128] => Tile::new(128, 128, 8),
                _ => Tile::new(128, 64, 8),
            };
        }
        match wide {
            _ if logits.bias.is_some() => Tile::new(64, 32, 4),
            [..=64, ..=64] => Tile::new(128, 64, 4),
            // The copies of keys and values take turns, where two blocks have room for a tile of
            // each. Measured on an H200: then 340 TFLOP/s instead of 333, but with causal masks 316
            // instead of 321.
            [..=128, ..=128] if logits.after().is_none() && self.has_two(Tile::new(128, 64, 4), wide) => {
                Tile::new(128, 64, 4)
            }
            [..=128, ..=128] => Tile::new(128, 32, 4),
            _ => Tile::new(64, 32, 4),
        }
    }

    /// The tiles of `d_q`. Those of a bias take shared memory, too.
    pub(super) fn of_queries(&self, heads: Heads, logits: &Logits) -> Tile {
        let wide = heads.tiles();
        if self.by_groups {
            return match wide {
                [..=64, ..=64] => Tile::new(128, 64, 8),
                [..=128, ..=128] if logits.bias.is_none() => Tile::new(128, 64, 8),
                _ => Tile::new(128, 32, 8),
            };
        }
        let both = [wide[0] + wide[1]; 2];
        match wide {
            _ if logits.bias.is_some() => self.first(&[Tile::new(64, 32, 4), Tile::new(64, 16, 4)], both),
            [..=64, ..=64] => self.first(&[Tile::new(128, 32, 4), Tile::new(64, 32, 4)], both),
            _ => {
                let tiles = [Tile::new(256, 32, 8), Tile::new(128, 32, 8), Tile::new(64, 32, 4), Tile::new(64, 16, 4)];
                self.first(&tiles[usize::from(wide[0].max(wide[1]) > 128)..], both)
            }
        }
    }

    /// The programs for `d_k` and `d_v`: one, or one for each where a thread has no registers for
    /// both sums.
    pub(super) fn of_keys(&self, heads: Heads) -> Vec<(OfKeys, Tile)> {
        let [wide, value] = heads.tiles();
        let both = wide.max(value) <= 128;
        if self.by_groups {
            return match both {
                true => vec![(OfKeys::Both, Tile::new(128, 64, 8))],
                false => vec![(OfKeys::Keys, Tile::new(128, 32, 8)), (OfKeys::Values, Tile::new(128, 64, 8))],
            };
        }
        let small = [Tile::new(64, 32, 4), Tile::new(64, 16, 4)];
        match both {
            true => {
                let all = [wide + value; 2];
                let apart = Tile::new(256, 32, 8);
                if wide.max(value) > 64 && self.fits(&apart, all) {
                    let values = self.first(&[Tile::new(128, 64, 4), Tile::new(128, 32, 4)], [wide, wide + value]);
                    return vec![(OfKeys::Keys, apart), (OfKeys::Values, values)];
                }
                let tiles = [Tile::new(128, 32, 4), Tile::new(128, 32, 8), Tile::new(64, 32, 4)];
                let from = usize::from(wide.max(value) > 64);
                vec![(OfKeys::Both, self.first(&tiles[from..], all))]
            }
            false => vec![
                (OfKeys::Keys, self.first(&small, [wide + value; 2])),
                (OfKeys::Values, self.first(&small, [wide, wide + value])),
            ],
        }
    }

    /// The tiles of `d_bias`, all of which an iteration loads.
    pub(super) fn of_bias(&self, heads: Heads) -> Tile {
        let [wide, value] = heads.tiles();
        match wide.max(value) > 128 {
            true => Tile::new(64, 32, 4),
            false if self.by_groups => Tile::new(64, 64, 4),
            // A head of an iteration alone has its tiles in shared memory.
            false => self.first(&[Tile::new(64, 64, 4), Tile::new(64, 32, 4)], [wide + value, (wide + value) / STAGES]),
        }
    }
}
