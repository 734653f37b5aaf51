//! New keys and values at the end of a cache.

use tilewright_tile::{Element, Sequence};

use super::text::{Heads, cache, strides};
use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::program;

/// The name of the operator in messages.
const NAME: &str = "append_to_cache";
/// The elements of a tile: 8 for each of 256 threads.
const TILE: i64 = 2048;

options! {
    /// Writes the keys and values of new rows into a cache, as [`crate::AttentionDecode`] reads it.
    ///
    /// | tensor | shape | strides, in elements |
    /// |---|---|---|
    /// | `k`, `v` | batch `B`, `kv_heads`, new rows `R`, `head` (`v`: `value_head`) | `k_batch`, `k_head`, `k_row`, 1; and so on |
    /// | `k_cache`, `v_cache` | batch, `kv_heads`, rows `T`, `head` (`v_cache`: `value_head`) | `k_cache_batch`, `k_cache_head`, `k_cache_row`, 1; and so on |
    /// | the same, `paged` | pages `P`, `page` rows, `kv_heads`, `head` | `k_cache_page`, `k_cache_row`, `k_cache_head`, 1; and so on |
    /// | `lengths` | batch, i32 | contiguous |
    /// | `pages` | batch, `L`, i32 | `pages_row`, 1 |
    ///
    /// Sequence `b` has `lengths[b]` rows with the new ones. So new row `i` becomes row
    /// `lengths[b] - R + i`. With `paged`, row `t` of sequence `b` is row `t % page` of page
    /// `pages[b, t / page]`. A row that the cache has no room for, or whose page is negative, is
    /// not written.
    ///
    /// ```
    /// use tilewright_ops::{AppendToCache, Operator};
    ///
    /// // The second row of a cache of three.
    /// let append = AppendToCache { head: 16, ..AppendToCache::default() };
    /// let mut sizes = vec![("B", 1), ("R", 1), ("T", 3)];
    /// sizes.extend([("k_batch", 16), ("k_head", 16), ("k_row", 16)]);
    /// sizes.extend([("v_batch", 16), ("v_head", 16), ("v_row", 16)]);
    /// sizes.extend([("k_cache_batch", 48), ("k_cache_head", 48), ("k_cache_row", 16)]);
    /// sizes.extend([("v_cache_batch", 48), ("v_cache_head", 48), ("v_cache_row", 16)]);
    /// let caches = [("k_cache", vec![0.0; 48]), ("v_cache", vec![0.0; 48])];
    /// let mut inputs = vec![("k", vec![1.0; 16]), ("v", vec![2.0; 16]), ("lengths", vec![2.0])];
    /// inputs.extend(caches);
    /// let results = append.forward()?.run(&sizes, &inputs)?;
    /// let rows: Vec<Option<f64>> = results[1].1.iter().step_by(16).copied().collect();
    /// assert_eq!(rows, [Some(0.0), Some(2.0), Some(0.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct AppendToCache("append_to_cache") {
        /// The heads of `k` and `v`.
        kv_heads: i64 = 1,
        /// The elements of a row of `k`: a multiple of 8 from 16 to 256.
        head: i64 = 64,
        /// The elements of a row of `v`; as `head` where it is 0.
        value_head: i64 = 0,
        /// The type of the elements: bf16 or f16.
        element: Element = Element::Bf16,
        /// A power of two that divides all strides, in elements.
        alignment: i64 = 8,
        /// Whether the cache has pages, which `pages` names.
        paged: bool = false,
        /// The rows of a page.
        page: i64 = 64,
    }
}

impl Operator for AppendToCache {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let refuse = |name, value: i64, because: &str| Err(OperatorError::value(NAME, name, value, because));
        let (kv, alignment) = (self.kv_heads, self.alignment);
        let heads = Heads::checked(NAME, [kv, kv], [self.head, self.value_head], self.element)?;
        if alignment < 1 || alignment.count_ones() != 1 {
            return refuse("alignment", alignment, "an alignment is a power of two");
        }
        if self.paged && !(1..=1 << 20).contains(&self.page) {
            return refuse("page", self.page, "a page has 1 to 1048576 rows");
        }
        let Heads { head, value, element, .. } = heads;
        let widest = heads.tiles().into_iter().max().unwrap_or(head);
        let tile_heads = kv.unsigned_abs().next_power_of_two().min((TILE / widest).unsigned_abs()) as i64;
        let rows = (TILE / widest / tile_heads).max(1);
        let new = |name: &str, wide: i64| {
            let [batch, head, row] = strides(name, alignment);
            format!("    input  {name}: {element} (R,{wide},{kv},B):({row},1,{head},{batch})\n")
        };
        let pages = self.paged.then_some(self.page);
        let mut text = "tile append_to_cache {\n".to_string() + &new("k", head) + &new("v", value);
        text += &cache(heads, ("inout ", "k_cache"), "k", pages, alignment);
        text += &cache(heads, ("inout ", "v_cache"), "v", pages, alignment);
        text += "    input  lengths: i32 (B):(1)\n";
        if self.paged {
            text += "    input  pages: i32 (L,B):(1,pages_row)\n";
        }
        text += &format!(
            "    grid ceil(R/{rows}), ceil({kv}/{tile_heads}), B
    length = reshape(load(lengths, (1), (block.z)), ())
    new = index(block.x*{rows}) + arange(({rows},1), 0)
    row = select(new < size(R), length - size(R) + new, -1)
"
        );
        // A paged cache has no mode of the batch.
        let (ones, behind) = match self.paged {
            true => (format!("({rows},1,1)"), "block.y"),
            false => (format!("({rows},1,1,1)"), "block.y, block.z"),
        };
        if self.paged {
            text += &format!(
                "    page = select(row < 0, -1, row // {page})
    first = load(pages, ({rows},1), (page, block.z), -1)
    row = select(first < 0, -1, first * {page} + row % {page})
",
                page = self.page
            );
        }
        text += &format!("    at = reshape(row, {ones})\n");
        for (name, wide) in [("k", head), ("v", value)] {
            let wide = wide.unsigned_abs().next_power_of_two();
            let load = format!("load({name}, ({rows},{wide},{tile_heads},1), (block.x, 0, block.y, block.z))");
            let rows = match self.paged {
                true => format!("reshape({load}, ({rows},{wide},{tile_heads}))"),
                false => load,
            };
            text += &format!("    store({name}_cache, (at, 0, {behind}), {rows})\n");
        }
        Ok(Sequence::new(vec![program(&(text + "}\n"))?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        let because = "a model decodes without a gradient";
        Err(OperatorError::NoBackward { operator: NAME, because })
    }
}
