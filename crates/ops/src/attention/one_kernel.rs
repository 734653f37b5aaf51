//! The backward whose three derivatives one kernel computes, on Hopper.
//!
//! Law: a block has 128 keys and takes tiles of the queries that see them, of all heads of the
//! group. It computes `s = k q^T` and `d_p = v d_o^T` once, adds `p d_o` to `d_v` and `d_s q` to
//! `d_k` in registers, and adds `d_s^T k` to the tile of `d_q` in device memory: five products
//! instead of the seven of two programs. Blocks add to a tile in the order of their keys, in turns,
//! so sums are rounded in the same order in each launch.
//!
//! Three kernels follow one another: one prepares rows (the exponent and `delta` of each query) and
//! clears sums and turns; the second is the one above; the last scales sums to `d_q`.
//!
//! *Turns do not wait long.* Blocks are ordered by their keys first and their heads second. So the
//! blocks that run at once have a few neighbouring tiles of keys of many heads, and a block follows
//! the one before it by a tile. With a mask, blocks of warps begin with the last keys.

mod by_groups;
mod by_warps;
mod tensors;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Build, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_tile::Program;

use super::place::{minus, plus, times};
use super::scores::Logits;
use super::text::{Dense, Heads, number};
use crate::error::OperatorError;
use crate::row_tiles::program;

/// Keys of a block.
pub(super) const KEYS_OF_BLOCK: i64 = 128;

/// An attention that this form computes.
#[derive(Clone, Copy)]
pub(super) struct OneKernel<'a> {
    pub(super) dense: &'a Dense,
    pub(super) logits: &'a Logits,
    /// Whether blocks add in turns.
    pub(super) in_turns: bool,
    /// Elements of a row.
    pub(super) wide: i64,
    /// Queries of a tile.
    queries: i64,
    /// How the warps of a block are arranged, where warps multiply; else warpgroups do.
    by_warps: Option<by_warps::Block>,
}

impl<'a> OneKernel<'a> {
    /// The form for an attention on a machine; none if it is not the common case: heads of 64 or
    /// 128, causal or without a mask, and logits that are scaled products.
    pub(super) fn new(
        dense: &'a Dense,
        logits: &'a Logits,
        in_turns: bool,
        machine: &Machine,
    ) -> Option<OneKernel<'a>> {
        let Heads { head, value, .. } = dense.heads;
        let is_plain = logits.is_plain() && !logits.sinks && logits.before().is_none();
        let is_masked = matches!(logits.after(), None | Some(0));
        let is_common = head == value && matches!(head, 64 | 128);
        let (fits, by_warps) = match machine.target.has_wgmma() {
            true => (is_common, None),
            false => {
                let block = by_warps::Block::of(machine, head);
                (is_common && block.is_some(), block)
            }
        };
        let queries = match (by_warps, head) {
            (Some(_), _) => by_warps::QUERIES,
            (None, 64) => 128,
            (None, _) => 64,
        };
        (fits && is_plain && is_masked && dense.alignment() >= 8).then_some(OneKernel {
            dense,
            logits,
            in_turns,
            wide: head,
            queries,
            by_warps,
        })
    }

    pub(super) fn is_causal(&self) -> bool {
        self.logits.after().is_some()
    }

    /// The tiles of queries of a head, as text.
    fn tiles(&self) -> String {
        format!("ceil(S/{})", self.queries)
    }

    /// The layout of something that each tile of queries has: `each` elements, whose layout is
    /// given as shape and strides, of which the first tile begins at 0.
    fn of_tiles(&self, shape: &str, strides: &str, each: i64) -> String {
        let Heads { group, kv, .. } = self.dense.heads;
        let tiles = self.tiles();
        let (head, batch) = (each * group, each * group * kv);
        format!("({shape}{tiles},{group},({kv},B)):({strides}{each},{each}*{tiles},({head}*{tiles},{batch}*{tiles}))")
    }

    /// For each tile of queries, the exponents of its rows and then their `delta`.
    pub(super) fn layout_of_rows(&self) -> String {
        self.of_tiles(&format!("{},", 2 * self.queries), "1,", 2 * self.queries)
    }

    /// The sums of `d_q`, over the scale: tile after tile. Warps add accumulators to them, so the
    /// 32 lanes of a warp have 32 adjacent numbers there: four pairs of columns, of eight rows.
    pub(super) fn layout_of_sums(&self) -> String {
        let OneKernel { queries, wide, .. } = *self;
        let (shape, strides) = match self.by_warps {
            None => (format!("{queries},{wide},"), format!("{wide},1,")),
            Some(_) => {
                let (rows, columns) = (queries / 8, wide / 8);
                (format!("(8,{rows}),(2,4,{columns}),"), format!("(4,64),(32,1,{}),", 64 * rows))
            }
        };
        self.of_tiles(&shape, &strides, queries * wide)
    }

    /// The turns of each tile that are over.
    pub(super) fn layout_of_turns(&self) -> String {
        self.of_tiles("", "", 1)
    }

    /// The program before: rows, and sums and turns of 0.
    pub(super) fn before(&self, lse_gradient: bool) -> Result<Program, OperatorError> {
        let OneKernel { dense, queries, wide, .. } = *self;
        let Heads { group, kv, .. } = dense.heads;
        let mut text = "tile attention_rows {\n".to_string();
        text +=
            &(dense.of_queries("input ", "o") + &dense.of_queries("input ", "d_o") + &dense.of_rows("input ", "lse"));
        if lse_gradient {
            text += &dense.of_rows("input ", "d_lse");
        }
        text += &format!("    output rows: f32 {}\n", self.layout_of_rows());
        text += &format!("    output d_q_sum: f32 {}\n", self.layout_of_sums());
        text += &format!("    output turns: i32 {}\n", self.layout_of_turns());
        let load = |name: &str| format!("f32(load({name}, ({queries},{wide},1,1), (block.x, 0, block.y, block.z)))");
        let row =
            |name: &str, other: &str| format!("load({name}, ({queries},1,1), (block.x, block.y, block.z){other})");
        let less = if lse_gradient { format!(" - {}", row("d_lse", "")) } else { String::new() };
        text += &format!(
            "    grid {}, {group}, {kv}*B
    {}    store(rows, (0, block.x, block.y, block.z), reshape(negative, ({queries},1,1,1)))
    sums = reshape(reduce_sum({} * {}, 1), ({queries},1,1)){less}
    store(rows, (1, block.x, block.y, block.z), reshape(sums, ({queries},1,1,1)))
    store(d_q_sum, (0, 0, block.x, block.y, block.z), broadcast(f32(0), ({queries},{wide},1,1,1)))
    store(turns, (block.x, block.y, block.z), broadcast(i32(0), (1,1,1)))
}}
",
            self.tiles(),
            super::backward::negative(&row("lse", ", inf")),
            load("o"),
            load("d_o"),
        );
        program(&text)
    }

    /// The program behind: `d_q`.
    pub(super) fn behind(&self) -> Result<Program, OperatorError> {
        let OneKernel { dense, queries, wide, .. } = *self;
        let Heads { group, kv, element, .. } = dense.heads;
        program(&format!(
            "tile attention_d_q_of_sums {{
    input  d_q_sum: f32 {}
{}    grid {}, {group}, {kv}*B
    sums = load(d_q_sum, ({queries},{wide},1,1,1), (0, 0, block.x, block.y, block.z))
    store(d_q, (block.x, 0, block.y, block.z), reshape({element}(sums * {}), ({queries},{wide},1,1)))
}}
",
            self.layout_of_sums(),
            dense.of_queries("output", "d_q"),
            self.tiles(),
            number(self.logits.scale),
        ))
    }

    /// The kernel between.
    pub(super) fn kernel(&self) -> Result<Kernel, KernelError> {
        match self.by_warps {
            None => by_groups::kernel(self),
            Some(block) => by_warps::kernel(self, block),
        }
    }
}

/// The iterations of a block: tiles of queries from the first one that sees its keys on.
pub(super) struct QueryWalk {
    /// The first tile.
    pub(super) first: Expr,
    /// How many tiles have a mask, and how many follow without.
    pub(super) masked: Expr,
    pub(super) rest: Expr,
    /// Both.
    pub(super) count: Expr,
}

impl OneKernel<'_> {
    /// How many keys are before the position of the first query.
    pub(super) fn shift(&self, k: &Build) -> Result<Expr, KernelError> {
        if self.dense.same_length { Ok(Expr::from(0)) } else { k.size("T-S") }
    }

    /// Whether blocks of warps begin, and add, in the order of their keys from the last one on.
    /// With a mask each block begins at its diagonal, so the last block is the first one at each of
    /// its tiles, and the one before comes to them two tiles later: blocks that begin together do
    /// not wait.
    fn is_downward(&self) -> bool {
        self.by_warps.is_some() && self.in_turns && self.is_causal()
    }

    /// The blocks of keys.
    fn blocks(&self, k: &Build) -> Result<Expr, KernelError> {
        k.size(&format!("ceil({}/{KEYS_OF_BLOCK})", self.dense.keys()))
    }

    /// The tile of keys of a block, by the number of the block in the order in which blocks begin.
    pub(super) fn block_of_turn(&self, k: &Build, number: Expr) -> Result<Expr, KernelError> {
        if !self.is_downward() {
            return Ok(number);
        }
        minus(&minus(&self.blocks(k)?, &Expr::from(1))?, &number)
    }

    /// The turn of a block of keys among those that add to a tile of queries.
    pub(super) fn turn(&self, k: &Build, block: &Expr, tile: &Expr) -> Result<Expr, KernelError> {
        if !self.is_downward() {
            return Ok(block.clone());
        }
        // The last block that the last query of the tile sees adds first.
        let end = plus(&times(tile, self.queries)?, &Expr::from(self.queries - 1))?;
        let last = k.index(&end)? + k.index(&self.shift(k)?)?;
        let last = last.shift_right(last.like(f64::from(KEYS_OF_BLOCK.ilog2())));
        let blocks = k.index(&self.blocks(k)?)?;
        k.index_of(last.min(blocks - blocks.like(1.0)) - k.index(block)?)
    }

    /// The tiles of queries that see a block of keys.
    pub(super) fn walk(&self, k: &Build, block: &Expr) -> Result<QueryWalk, KernelError> {
        let all = k.size(&self.tiles())?;
        let tiles = k.index(&all)?;
        let zero = tiles.like(0.0);
        let first_key = k.index(&times(block, KEYS_OF_BLOCK)?)?;
        if !self.is_causal() {
            // The last block may have keys behind the end.
            let end = k.index(&k.size(self.dense.keys())?)?;
            let is_partial = end.lt(first_key + end.like(KEYS_OF_BLOCK as f64));
            let masked = k.index_of(is_partial.select(tiles, zero))?;
            let rest = k.index_of(is_partial.select(zero, tiles))?;
            return Ok(QueryWalk { first: Expr::from(0), masked, rest, count: all });
        }
        let by = tiles.like(f64::from(self.queries.ilog2()));
        let beside = first_key - k.index(&self.shift(k)?)?;
        let first = beside.max(zero).shift_right(by).min(tiles);
        // The first tile whose first query sees all keys of the block.
        let whole = (beside + zero.like((KEYS_OF_BLOCK + self.queries - 2) as f64)).max(zero).shift_right(by);
        let whole = whole.min(tiles).max(first);
        let [first_at, masked, rest, count] =
            [first, whole - first, tiles - whole, tiles - first].map(|number| k.index_of(number));
        Ok(QueryWalk { first: first_at?, masked: masked?, rest: rest?, count: count? })
    }
}
