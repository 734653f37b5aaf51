//! The tiles of attention, for a machine.
//!
//! Law: a block fits in the shared memory of the machine, with two iterations of the tiles that it
//! loads, or one where their copies take turns, and its sums fit in the registers of its threads.
//! Rows belong to one warp each, so a softmax needs no other warp.
//!
//! With `mma.sync` a warp reads the tiles that it multiplies from shared memory itself. With 32
//! rows it reads half as much for each product as with 16, and four such warps are a block of which
//! two are resident where there is room. Sums of 32 rows of 128 elements take half of a thread's
//! registers: tiles of 32 columns leave the rest.

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
    /// The shared memory of a block.
    block_bytes: i64,
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
        let Some(machine) = machine else { return Tiles { by_groups: true, block_bytes: i64::MAX } };
        let target = Multiprocessor::of(machine.target).block_shared_bytes;
        let block_bytes = machine.multiprocessor.block_shared_bytes.min(target).into();
        Tiles { by_groups: machine.target.has_wgmma(), block_bytes }
    }

    /// The first of some tiles that fits: `of_rows` elements for each row of a block, and
    /// `of_columns` for each column of an iteration. The last one, if none does.
    fn first(&self, tiles: &[Tile], [of_rows, of_columns]: [i64; 2]) -> Tile {
        let bytes = |tile: &Tile| BYTES * (tile.rows * of_rows + STAGES * tile.columns * of_columns);
        let fits = tiles.iter().find(|tile| bytes(tile) <= self.block_bytes);
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
            _ => self.first(&[Tile::new(128, 32, 8), Tile::new(64, 32, 4), Tile::new(64, 16, 4)], both),
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
                let tiles = [Tile::new(128, 64, 8), Tile::new(128, 32, 8), Tile::new(64, 32, 4)];
                let from = usize::from(wide.max(value) > 64);
                vec![(OfKeys::Both, self.first(&tiles[from..], [wide + value; 2]))]
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
