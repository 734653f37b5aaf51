//! Bulk copies by name: they move boxes of a tensor (TMA), four rows of one, or contiguous bytes.
//!
//! # Law
//!
//! A family is a pattern of names with one row of facts. An instruction accepts a tensor map
//! exactly if the number of dimensions is the one in its name, as in `_2D`, or any number that the
//! mode allows if the name has none; and if the boxes of the map are those of the mode. A copy
//! without a tensor map accepts sizes that are multiples of 16 bytes.
//!
//! ```text
//! mode             dimensions   coordinates given           the map's box
//! bytes            none         none                        none: a positive multiple of 16 bytes
//! tile             1 to 5       one each                    any that TensorMap makes
//! im2col           3 to 5       one each, and d - 2 offsets set by corners, not by a tile
//! four rows        2            a column and four rows      one row
//! ```
//!
//! One thread issues the instruction. A multicast writes to those CTAs of a cluster that are set in
//! a 16-bit mask. The two CTAs of a `2SM` instruction are a pair that shares an mbarrier.
//!
//! (PTX ISA, `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`,
//! `cp.async.bulk.prefetch.tensor`, with `.tile`, `.im2col`, `.tile::gather4`, `.tile::scatter4`,
//! `.multicast::cluster`, `.cta_group::2`; the names are CuTe's. Bulk copies have no thread-value
//! layouts: they move [`TensorMap`]'s box.)

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::atoms::arch::Arch;
use crate::atoms::error::AtomError;
use crate::atoms::family::{Family, sealed::Made};
use crate::atoms::tensor_map::{MAX_DIMENSIONS, TensorMap};
use crate::ground::words::words;

words! {
    /// The direction of a bulk copy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum BulkDirection {
        /// From global to shared memory.
        Load = "global to shared",
        /// From shared to global memory.
        Store = "shared to global",
        /// From shared memory to global memory, with a reduction there (add).
        Add = "shared added to global",
        /// From global memory to the L2 cache.
        Prefetch = "global to cache",
        /// From global to shared memory or back, depending on the operands.
        Either = "global and shared",
    }
}

words! {
    /// The mode of a bulk copy: the kind of region that it moves.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum BulkMode {
        /// Contiguous bytes, without a tensor map.
        Bytes = "bytes",
        /// A box of a tensor (tile mode).
        Tile = "a box",
        /// A box of the im2col matrix of a tensor.
        Im2col = "an im2col box",
        /// Four rows of a matrix, each with its own coordinate (gather4 and scatter4).
        FourRows = "four rows",
    }
}

/// A bulk copy instruction.
///
/// ```
/// use tilewright_layout::atoms::{BulkCopy, BulkMode, SwizzleMode, TensorMap};
///
/// let layout = |text: &str| text.parse::<tilewright_layout::Layout>().unwrap();
/// let map = |shared: &str, tile: &str| {
///     TensorMap::new(&layout("(1024,512):(512,1)"), &tile.parse().unwrap(), &layout(shared), 16, SwizzleMode::Bytes128)
/// };
/// let boxes = map("(128,64):(64,1)", "(128,64)").unwrap();
/// let load = BulkCopy::named("SM90_TMA_LOAD_MULTICAST_2D").unwrap();
/// assert_eq!((load.mode(), load.is_multicast(), load.coordinates(2)), (BulkMode::Tile, true, 2));
/// assert!(load.takes(&boxes).is_ok());
///
/// // Four rows, each with its own coordinate and 64 columns; the box is one row.
/// let gather = BulkCopy::named("SM100_TMA_LOAD_2D_GATHER4").unwrap();
/// assert_eq!(gather.coordinates(2), 5);
/// let refusal = gather.takes(&boxes).unwrap_err();
/// assert_eq!(refusal.to_string(), "SM100_TMA_LOAD_2D_GATHER4 takes boxes of one row, but there is 128");
/// assert!(gather.takes(&map("(1,64):(64,1)", "(1,64)").unwrap()).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BulkCopy {
    name: Box<str>,
    arch: Arch,
    facts: BulkCopyFacts,
    /// The smallest and the largest number of dimensions.
    dimensions: (usize, usize),
}

/// One row of the table of bulk copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BulkCopyFacts {
    direction: BulkDirection,
    mode: BulkMode,
    multicast: bool,
    ctas: i64,
}

/// Bulk copies whose names differ only in dimensions.
pub type BulkFamily = Family<BulkCopy>;

const fn family(arch: Arch, pattern: &'static str, direction: BulkDirection, mode: BulkMode) -> BulkFamily {
    Family::new(arch, pattern, BulkCopyFacts { direction, mode, multicast: false, ctas: 1 })
}

impl BulkFamily {
    const fn multicast(self) -> BulkFamily {
        self.with_rule(BulkCopyFacts { multicast: true, ..*self.rule() })
    }

    const fn paired(self) -> BulkFamily {
        self.with_rule(BulkCopyFacts { ctas: 2, ..*self.rule() })
    }
}

impl Made for BulkCopy {
    type Rule = BulkCopyFacts;

    const KIND: &'static str = "bulk copy";

    fn tables() -> &'static [&'static [BulkFamily]] {
        &[FAMILIES]
    }

    fn make(name: &str, arch: Arch, facts: &BulkCopyFacts) -> Result<BulkCopy, AtomError> {
        let said = name.split(['_', ':']).find_map(|word| word.strip_suffix('D')?.parse::<usize>().ok());
        let all = match facts.mode {
            BulkMode::Bytes => (0, 0),
            BulkMode::Tile => (1, MAX_DIMENSIONS),
            BulkMode::Im2col => (3, MAX_DIMENSIONS),
            BulkMode::FourRows => (2, 2),
        };
        let dimensions = said.map_or(all, |said| (said, said));
        Ok(BulkCopy { name: name.into(), arch, facts: *facts, dimensions })
    }
}

#[rustfmt::skip]
const FAMILIES: &[BulkFamily] = {
    use Arch::{Sm90, Sm100};
    use BulkDirection::{Add, Either, Load, Prefetch, Store};
    use BulkMode::{Bytes, FourRows, Im2col, Tile};
    &[
        family(Sm90, "SM90_TMA_LOAD{,_1D,_2D,_3D,_4D,_5D}", Load, Tile),
        family(Sm90, "SM90_TMA_LOAD_MULTICAST{,_1D,_2D,_3D,_4D,_5D}", Load, Tile).multicast(),
        family(Sm90, "SM90_TMA_LOAD_IM2COL{,_3D,_4D,_5D}", Load, Im2col),
        family(Sm90, "SM90_TMA_LOAD_IM2COL_MULTICAST{,_3D,_4D,_5D}", Load, Im2col).multicast(),
        family(Sm90, "SM90_TMA_LOAD{,_1D,_2D,_3D,_4D,_5D}::PREFETCH", Prefetch, Tile),
        family(Sm90, "SM90_TMA_LOAD_IM2COL{,_3D,_4D,_5D}::PREFETCH", Prefetch, Im2col),
        family(Sm90, "SM90_TMA_STORE{,_1D,_2D,_3D,_4D,_5D}", Store, Tile),
        family(Sm90, "SM90_TMA_STORE_IM2COL{,_3D,_4D,_5D}", Store, Im2col),
        family(Sm90, "SM90_TMA_REDUCE_ADD{,_1D,_2D,_3D,_4D,_5D}", Add, Tile),
        family(Sm90, "SM90_BULK_COPY_G2S", Load, Bytes),
        family(Sm90, "SM90_BULK_COPY_S2G", Store, Bytes),
        family(Sm90, "SM90_BULK_COPY_AUTO", Either, Bytes),
        family(Sm100, "SM100_TMA_2SM_LOAD{,_1D,_2D,_3D,_4D,_5D}", Load, Tile).paired(),
        family(Sm100, "SM100_TMA_2SM_LOAD_MULTICAST{,_1D,_2D,_3D,_4D,_5D}", Load, Tile).paired().multicast(),
        family(Sm100, "SM100_TMA_2SM_LOAD_IM2COL{,_3D,_4D,_5D}", Load, Im2col).paired(),
        family(Sm100, "SM100_TMA_2SM_LOAD_IM2COL_MULTICAST{,_3D,_4D,_5D}", Load, Im2col).paired().multicast(),
        family(Sm100, "SM100_TMA_LOAD_2D_GATHER4", Load, FourRows),
        family(Sm100, "SM100_TMA_LOAD_MULTICAST_2D_GATHER4", Load, FourRows).multicast(),
        family(Sm100, "SM100_TMA_STORE_2D_SCATTER4", Store, FourRows),
    ]
};

impl BulkCopy {
    /// The instruction of this name.
    ///
    /// Errors: there is none; the error lists similar names ([`AtomError::UnknownName`]).
    pub fn named(name: &str) -> Result<BulkCopy, AtomError> {
        Family::named(name)
    }

    /// The families of bulk copies.
    pub fn families() -> impl Iterator<Item = &'static BulkFamily> {
        Family::all()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The oldest architecture that has it.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Its direction.
    pub fn direction(&self) -> BulkDirection {
        self.facts.direction
    }

    /// Its mode.
    pub fn mode(&self) -> BulkMode {
        self.facts.mode
    }

    /// Whether it is a multicast: it writes to several CTAs of a cluster, selected by a mask.
    pub fn is_multicast(&self) -> bool {
        self.facts.multicast
    }

    /// The number of CTAs that it involves: 2 if a pair shares an mbarrier, else 1.
    pub fn ctas(&self) -> i64 {
        self.facts.ctas
    }

    /// The smallest and the largest number of dimensions of its tensors; `(0, 0)` if it moves bytes
    /// without a tensor map.
    pub fn dimensions(&self) -> (usize, usize) {
        self.dimensions
    }

    /// The number of coordinates and offsets that it takes for a tensor of this many dimensions.
    pub fn coordinates(&self, dimensions: usize) -> usize {
        match self.facts.mode {
            BulkMode::Bytes => 0,
            BulkMode::Tile => dimensions,
            BulkMode::Im2col => dimensions + dimensions.saturating_sub(2),
            BulkMode::FourRows => 5,
        }
    }

    /// Checks that the instruction accepts this tensor map, which is in tile mode.
    ///
    /// Errors: the instruction takes no tensor map in tile mode; the map has another number of
    /// dimensions; in gather or scatter mode, its box has several rows ([`AtomError::BulkCopy`]).
    pub fn takes(&self, map: &TensorMap) -> Result<(), AtomError> {
        let refuse = |what, value: i64| Err(AtomError::BulkCopy { name: self.name.clone(), what, value });
        let count = map.dimensions().len();
        let (fewest, most) = self.dimensions;
        match self.facts.mode {
            BulkMode::Bytes => return refuse("bytes and no tensor map: dimensions", count as i64),
            BulkMode::Im2col => {
                return refuse("tensor maps made for im2col: one of tiles with dimensions", count as i64);
            }
            BulkMode::Tile | BulkMode::FourRows => {}
        }
        if !(fewest..=most).contains(&count) {
            let what = match (fewest, most) {
                (1, 1) => "tensors of 1 dimension",
                (2, 2) => "tensors of 2 dimensions",
                (3, 3) => "tensors of 3 dimensions",
                (4, 4) => "tensors of 4 dimensions",
                (5, 5) => "tensors of 5 dimensions",
                _ => "tensors of 1 to 5 dimensions",
            };
            return refuse(what, count as i64);
        }
        match (self.facts.mode, map.dimensions().get(1)) {
            (BulkMode::FourRows, Some(rows)) if rows.boxed != 1 => refuse("boxes of one row", rows.boxed),
            _ => Ok(()),
        }
    }

    /// Its requirements, one sentence each, in the words of PTX and of the driver API.
    ///
    /// ```
    /// use tilewright_layout::atoms::BulkCopy;
    ///
    /// let needs = BulkCopy::named("SM90_BULK_COPY_G2S").unwrap().needs();
    /// assert_eq!(needs[0], "a positive multiple of 16 bytes, at addresses that are multiples of 16 bytes");
    /// ```
    pub fn needs(&self) -> Vec<&'static str> {
        let mut needs = Vec::new();
        match self.facts.mode {
            BulkMode::Bytes => {
                needs.push("a positive multiple of 16 bytes, at addresses that are multiples of 16 bytes");
            }
            _ => needs.extend([
                "a tensor map: an address that is a multiple of 16 bytes, extents of at most 2^32, the first dimension contiguous",
                "strides that are multiples of 16 bytes below 2^40",
            ]),
        }
        const BOX: &str = "a box of at most 256 in a dimension, its rows multiples of 16 bytes, swizzled no longer than a line of the swizzle";
        match self.facts.mode {
            BulkMode::Bytes => {}
            BulkMode::Tile => needs.push(BOX),
            BulkMode::Im2col => needs.extend([
                "a tensor map made for im2col: two corners of a box of pixels, and an offset for each dimension but the first and the last",
                "at most 256 channels and 1024 pixels, a row of channels a multiple of 16 bytes",
            ]),
            BulkMode::FourRows => {
                needs.extend([BOX, "a matrix whose box is one row; the four rows are contiguous in shared memory"]);
            }
        }
        if self.facts.multicast {
            needs.push(
                "a mask of 16 bits: the CTAs of the cluster that receive, at the same offsets of their shared memory",
            );
        }
        if self.facts.ctas == 2 {
            needs.push("a pair of CTAs, whose barrier may be that of either");
        }
        needs
    }
}

impl fmt::Display for BulkCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}
