//! Attention of a few queries of each sequence over a cache.
//!
//! Law: the keys of a sequence are divided into a given number of parts, by its own length alone. A
//! block has the queries of all heads of a group as rows, and one part of the keys. Where there are
//! several parts, a second program combines them in their order. So a sequence has the same bits
//! whatever the others are. Rows of the cache past the length of a sequence are not read.

use std::f64::consts::{LN_2, LOG2_E};

use tilewright_tile::{Element, Program, Sequence};

use super::forward::{settled, softmax_step};
use super::scores::{Found, Logits};
use super::text::{Heads, cache, number, strides};
use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::program;

/// The name of the operator in messages.
const NAME: &str = "attention_decode";
/// The most rows of queries of a block.
const MOST_ROWS: i64 = 128;
/// The most keys of an iteration, and the most elements of their rows: a warp has registers for
/// these, for its sums and for its powers.
const MOST_KEYS: i64 = 64;
const MOST_KEY_ELEMENTS: i64 = 4096;
/// The queries of a warp: the rows of an instruction.
const QUERIES_OF_WARP: i64 = 16;
/// The most parts.
const MOST_SPLITS: i64 = 256;
/// Rows of a block that combines parts.
const COMBINED_ROWS: i64 = 8;

options! {
    /// Attention of a few queries of each sequence over a cache of its keys and values.
    ///
    /// | tensor | shape | strides, in elements |
    /// |---|---|---|
    /// | `q`, output `o` | batch `B`, `heads`, `queries`, `head` (`o`: `value_head`) | `q_batch`, `q_head`, `q_row`, 1; and so on |
    /// | `k`, `v` | batch, `kv_heads`, rows `T`, `head` (`v`: `value_head`) | `k_batch`, `k_head`, `k_row`, 1; and so on |
    /// | `k`, `v`, `paged` | pages `P`, `page` rows, `kv_heads`, `head` | `k_page`, `k_row`, `k_head`, 1; and so on |
    /// | `lengths` | batch, i32 | contiguous |
    /// | `pages` | batch, `L`, i32 | `pages_row`, 1 |
    /// | output `lse` | batch, `heads`, `queries`, f32 | contiguous |
    /// | `sinks`, `slopes` | `heads`, f32 | contiguous |
    ///
    /// Sequence `b` has `lengths[b]` keys, those of the queries included. Query `i` has position
    /// `lengths[b] - queries + i`. With `paged`, row `t` of sequence `b` is row `t % page` of page
    /// `pages[b, t / page]`. Rows of no sequence may be anything.
    ///
    /// ```
    /// use tilewright_ops::{AttentionDecode, Operator};
    ///
    /// // One query over the first two of four rows of values: their mean, since all products are 0.
    /// let decode = AttentionDecode { head: 16, splits: 1, ..AttentionDecode::default() };
    /// let strides = ["q", "k", "v", "o"].map(|name| [(format!("{name}_batch"), 64), (format!("{name}_head"), 64), (format!("{name}_row"), 16)]);
    /// let mut sizes: Vec<(&str, i64)> = strides.iter().flatten().map(|(name, stride)| (name.as_str(), *stride)).collect();
    /// sizes.extend([("B", 1), ("T", 4)]);
    /// let values = [1.0, 3.0, f64::NAN, f64::NAN].map(|value| vec![value; 16]).concat();
    /// let inputs = [("q", vec![0.0; 16]), ("k", vec![1.0; 64]), ("v", values), ("lengths", vec![2.0])];
    /// let results = decode.forward()?.run(&sizes, &inputs)?;
    /// assert_eq!(results[0], ("o".to_string(), vec![Some(2.0); 16]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct AttentionDecode("attention_decode") {
        /// The heads of `q`.
        heads: i64 = 1,
        /// The heads of `k` and `v`, a divisor of `heads`.
        kv_heads: i64 = 1,
        /// The elements of a row of `q` and `k`: a multiple of 8 from 16 to 256.
        head: i64 = 64,
        /// The elements of a row of `v` and `o`; as `head` where it is 0.
        value_head: i64 = 0,
        /// The queries of each sequence; those of a group of heads are at most 128.
        queries: i64 = 1,
        /// The type of the elements of `q`, `k`, `v` and `o`: bf16 or f16.
        element: Element = Element::Bf16,
        /// A power of two that divides all strides, in elements.
        alignment: i64 = 8,
        /// What products are multiplied by; where it is 0, 1 over the root of `head`.
        scale: f64 = 0.0,
        /// Where it is not 0: products, scaled, become `softcap * tanh(product / softcap)`.
        softcap: f64 = 0.0,
        /// Whether a query sees no key after its position. The last query sees all keys either way.
        causal: bool = true,
        /// How many keys before its position a query sees; all, where it is -1.
        window_left: i64 = -1,
        /// Whether there is an input `sinks`: a logit for each head that counts in the sum alone.
        sinks: bool = false,
        /// Whether there is an input `slopes` (ALiBi), as that of [`crate::Attention`].
        slopes: bool = false,
        /// Into how many parts the keys of a sequence are divided: each has a block of its own.
        splits: i64 = 8,
        /// Whether the cache has pages, which `pages` names.
        paged: bool = false,
        /// The rows of a page.
        page: i64 = 64,
    }
}

/// What is settled of the options.
struct Checked {
    heads: Heads,
    logits: Logits,
    /// Rows of queries of a group of heads, and of the tile that has them.
    rows: i64,
    tile_rows: i64,
}

impl AttentionDecode {
    fn checked(&self) -> Result<Checked, OperatorError> {
        let refuse = |name, value: i64, because: String| Err(OperatorError::value(NAME, name, value, because));
        let heads = Heads::checked(NAME, [self.heads, self.kv_heads], [self.head, self.value_head], self.element)?;
        if self.alignment < 1 || self.alignment.count_ones() != 1 {
            return refuse("alignment", self.alignment, "an alignment is a power of two".to_string());
        }
        let rows = self.queries.saturating_mul(heads.group);
        if self.queries < 1 || rows > MOST_ROWS {
            let because =
                format!("a group of {} heads has from 1 to {MOST_ROWS} rows of queries: use `attention`", heads.group);
            return refuse("queries", self.queries, because);
        }
        if !(1..=MOST_SPLITS).contains(&self.splits) {
            return refuse("splits", self.splits, format!("there are 1 to {MOST_SPLITS} parts"));
        }
        if self.paged && !(1..=1 << 20).contains(&self.page) {
            return refuse("page", self.page, "a page has 1 to 1048576 rows".to_string());
        }
        let logits = Logits {
            scale: self.scale,
            softcap: self.softcap,
            left: self.window_left,
            right: -1,
            causal: self.causal,
            // With several parts, the program that combines them counts the sink.
            sinks: self.sinks && self.is_whole(),
            slopes: self.slopes,
            bias: None,
            expression: String::new(),
        };
        let tile_rows = rows.max(16).unsigned_abs().next_power_of_two() as i64;
        Ok(Checked { heads, logits: logits.checked(NAME, self.head)?, rows, tile_rows })
    }

    /// A tensor of queries: rows of the heads of a group, element, head of `k`, batch.
    fn of_queries(&self, heads: Heads, role: &str, name: &str) -> String {
        let Heads { group, kv, head, value, element } = heads;
        let wide = if name == "o" { value } else { head };
        let [batch, head, row] = strides(name, self.alignment);
        let rows = format!("({group},{})", self.queries);
        format!("    {role} {name}: {element} ({rows},{wide},{kv},B):(({head},{row}),1,{group}*{name}_head,{batch})\n")
    }

    /// The cache of keys or of values.
    fn cache(&self, heads: Heads, name: &str) -> String {
        let pages = self.paged.then_some(self.page);
        cache(heads, ("input ", name), name, pages, self.alignment)
    }

    /// A number of each head, for rows of queries.
    fn of_heads(&self, heads: Heads, name: &str) -> String {
        let Heads { group, kv, .. } = heads;
        format!("    input  {name}: f32 (({group},{}),{kv}):((1,0),{group})\n", self.queries)
    }

    /// The sums of parts, and their logarithms to base 2.
    fn parts(&self, heads: Heads, rows: i64, role: &str) -> String {
        let Heads { kv, value, .. } = heads;
        let (splits, part) = (self.splits, rows * value);
        let all = splits * part;
        let logarithms = splits * rows;
        format!(
            "    {role} parts: f32 ({rows},{value},{splits},{kv},B):({value},1,{part},{all},{})
    {role} parts_of_lse: f32 ({rows},{splits},{kv},B):(1,{rows},{logarithms},{})
",
            kv * all,
            kv * logarithms
        )
    }

    /// The logarithms of the sums of rows.
    fn lse(&self, heads: Heads) -> String {
        let Heads { group, kv, .. } = heads;
        let queries = self.queries;
        let [of_kv, of_batch] = [group * queries, heads.all() * queries];
        format!("    output lse: f32 (({group},{queries}),{kv},B):(({queries},1),{of_kv},{of_batch})\n")
    }

    /// Whether a block has all keys of a sequence, so that there is nothing to combine.
    fn is_whole(&self) -> bool {
        self.splits == 1
    }

    /// The first program: a part of the keys.
    fn split(&self, Checked { heads, logits, rows, tile_rows }: &Checked) -> Result<Program, OperatorError> {
        let Heads { group, kv, element, .. } = *heads;
        let [wide, value] = heads.tiles();
        let (all, tile) = (*rows, *tile_rows);
        let columns = (MOST_KEY_ELEMENTS / wide.max(value)).min(MOST_KEYS);
        let mut text = "tile attention_split {\n".to_string();
        text += &(self.of_queries(*heads, "input ", "q") + &self.cache(*heads, "k") + &self.cache(*heads, "v"));
        text += "    input  lengths: i32 (B):(1)\n";
        if self.paged {
            text += "    input  pages: i32 (L,B):(1,pages_row)\n";
        }
        if logits.slopes {
            text += &self.of_heads(*heads, "slopes");
        }
        text += &match self.is_whole() {
            true => {
                let sinks = if self.sinks { self.of_heads(*heads, "sinks") } else { String::new() };
                sinks + &self.of_queries(*heads, "output", "o") + &self.lse(*heads)
            }
            false => self.parts(*heads, all, "output"),
        };
        // A warp has the whole rows of its queries, so warps exchange nothing.
        text += &format!("    grid {}, {kv}, B\n    warps {}\n", self.splits, tile / QUERIES_OF_WARP);
        // The first key that a query sees, in whole tiles.
        let first = match logits.before() {
            Some(left) => format!("max(length - {}, 0) // {columns}", self.queries.saturating_add(left)),
            None => "i32(0)".to_string(),
        };
        text += &format!(
            "    length = reshape(load(lengths, (1), (block.z)), ())
    first = {first}
    tiles = (length + {}) // {columns} - first
    each = (tiles + {}) // {}
    turns = min(each, tiles - index(block.x) * each)
    start = (first + index(block.x) * each) * {columns}
    query = length - {} + arange(({tile},{columns}), 0) // {group}
",
            columns - 1,
            self.splits - 1,
            self.splits,
            self.queries,
        );
        if logits.slopes {
            text += &format!("    slope = load(slopes, ({tile},1), (0, block.y))\n");
        }
        text += &format!(
            "    queries = reshape(load(q, ({tile},{wide},1,1), (0, 0, block.y, block.z)), ({tile},{wide}))
    loop j < [turns] with greatest = broadcast(f32(-inf), ({tile},1)), total = broadcast(f32(0), ({tile},1)), sum = broadcast(f32(0), ({tile},{value})) {{
"
        );
        let row = format!("start + index(j*{columns})");
        let (ones, behind) = if self.paged { (",1", "0, block.y") } else { (",1,1", "0, block.y, block.z") };
        text += &match self.paged {
            true => format!(
                "        row = {row} + arange(({columns},1), 0)
        page = select(row < length, row // {page}, -1)
        at = load(pages, ({columns},1), (page, block.z)) * {page} + row % {page}
        at = reshape(select(row < length, at, -1), ({columns},1,1))
",
                page = self.page
            ),
            false => format!(
                "        row = {row} + arange(({columns},1,1,1), 0)
        at = select(row < length, row, -1)
"
            ),
        };
        let found = Found {
            group: "0",
            head: "0",
            bias: ["0", "0"],
            shape: [tile, columns],
            by_queries: true,
            edge: Some("length"),
        };
        text += &format!(
            "        keys = transpose(reshape(load(k, ({columns},{wide}{ones}), (at, {behind})), ({columns},{wide})), (1,0))
        scores = dot(queries, keys, broadcast(f32(0), ({tile},{columns})))
        key = {row} + arange(({tile},{columns}), 1)
{}        values = reshape(load(v, ({columns},{value}{ones}), (at, {behind})), ({columns},{value}))
{}{}",
            logits.made(&found, false),
            softmax_step(logits, element),
            settled(logits, &format!("load(sinks, ({tile},1), (0, block.y))")),
        );
        text += &match self.is_whole() {
            true => format!(
                "    store(o, (0, 0, block.y, block.z), reshape({element}(sum * kept), ({tile},{value},1,1)))
    store(lse, (0, block.y, block.z), reshape(logarithm, ({tile},1,1)))
}}
"
            ),
            false => format!(
                "    store(parts, (0, 0, block.x, block.y, block.z), reshape(sum * kept, ({tile},{value},1,1,1)))
    store(parts_of_lse, (0, block.x, block.y, block.z), reshape(logarithm * {}, ({tile},1,1,1)))
}}
",
                number(LOG2_E)
            ),
        };
        program(&text)
    }

    /// The second program: the parts together.
    fn combine(&self, Checked { heads, rows: all, .. }: &Checked) -> Result<Program, OperatorError> {
        let Heads { kv, element, .. } = *heads;
        let [_, value] = heads.tiles();
        let splits = self.splits;
        let padded = splits.max(1).unsigned_abs().next_power_of_two();
        let rows = COMBINED_ROWS.min(all.max(&1).unsigned_abs().next_power_of_two() as i64);
        let mut text = "tile attention_combine {\n".to_string();
        text += &self.parts(*heads, *all, "input ");
        if self.sinks {
            text += &self.of_heads(*heads, "sinks");
        }
        text += &self.of_queries(*heads, "output", "o");
        text += &format!(
            "{}    grid ceil({all}/{rows}), {kv}, B
    logarithms = reshape(load(parts_of_lse, ({rows},{padded},1,1), (block.x, 0, block.y, block.z), -inf), ({rows},{padded}))
    top = reduce_max(logarithms, 1)
",
            self.lse(*heads),
        );
        let mut sink = "";
        if self.sinks {
            text += &format!("    sink = load(sinks, ({rows},1), (block.x, block.y)) * {}\n", number(LOG2_E));
            text += "    top = max(top, sink)\n";
            sink = " + exp2(sink - base)";
        }
        text += &format!(
            "    base = select(top == -inf, 0, top)
    total = reduce_sum(exp2(logarithms - base), 1){sink}
    loop s < {splits} with sum = broadcast(f32(0), ({rows},{value})) {{
        part = reshape(load(parts, ({rows},{value},1,1,1), (block.x, 0, s, block.y, block.z)), ({rows},{value}))
        logarithm = reshape(load(parts_of_lse, ({rows},1,1,1), (block.x, s, block.y, block.z), -inf), ({rows},1))
        next fma(part, exp2(logarithm - base), sum)
    }} -> sum
    kept = select(total == 0, 0, recip(total))
    store(o, (block.x, 0, block.y, block.z), reshape({element}(sum * kept), ({rows},{value},1,1)))
    logarithm = select(total == 0, -inf, (base + log2(total)) * {})
    store(lse, (block.x, block.y, block.z), reshape(logarithm, ({rows},1,1)))
}}
",
            number(LN_2)
        );
        program(&text)
    }
}

impl Operator for AttentionDecode {
    /// With several parts, `parts` and `parts_of_lse` are workspaces.
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let checked = self.checked()?;
        let mut programs = vec![self.split(&checked)?];
        if !self.is_whole() {
            programs.push(self.combine(&checked)?);
        }
        Ok(Sequence::new(programs))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        let because = "a model decodes without a gradient; `attention` has one";
        Err(OperatorError::NoBackward { operator: NAME, because })
    }
}
