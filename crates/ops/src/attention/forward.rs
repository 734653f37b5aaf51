//! The forward of sequences of equal lengths.
//!
//! Law: a block has some rows of queries, and takes keys tile by tile. Sums are corrected whenever
//! a greater logit comes. A row that saw nothing yet has the greatest logit -inf, and 0 stands for
//! it in differences, so powers are 0 and nothing is NaN.

use std::f64::consts::{LN_2, LOG2_E};

use tilewright_tile::Sequence;

use super::scores::{Found, Logits};
use super::text::{Dense, Heads, number};
use super::tiles::{Tile, Tiles};
use crate::error::OperatorError;
use crate::row_tiles::program;

/// The tiles of keys that a block of queries takes.
pub(super) struct Walk {
    /// Statements before the loop.
    pub(super) before: String,
    /// How many iterations there are.
    pub(super) count: String,
    /// The index of the tile of iteration `j`, and the number of its first row.
    pub(super) at: String,
    pub(super) first: String,
    /// Whether a query that is there may meet keys past the last one.
    pub(super) edge: bool,
}

impl Walk {
    /// From the first tile on.
    fn up(before: String, count: String, columns: i64, edge: bool) -> Walk {
        Walk { before, count, at: "j".to_string(), first: format!("j*{columns}"), edge }
    }

    /// From the tile `top` behind those before the block down.
    fn down(before: String, count: String, [rows, columns, top]: [i64; 3], edge: bool) -> Walk {
        let at = format!("block.x*{} + {top} - j", rows / columns);
        let first = format!("block.x*{rows} + {} - j*{columns}", top * columns);
        Walk { before, count, at, first, edge }
    }
}

/// The tiles of keys that the queries of a block see.
pub(super) fn keys_of_queries(dense: &Dense, logits: &Logits, Tile { rows, columns, .. }: Tile, down: bool) -> Walk {
    let keys = dense.keys();
    let all = format!("ceil({keys}/{columns})");
    let Some(after) = logits.after() else { return Walk::up(String::new(), all, columns, true) };
    let each = rows / columns;
    // The last tile that the last row sees, from the first of the block on.
    let top = (rows - 1 + after).div_euclid(columns);
    let (more, edge) = (top + 1, after > 0);
    if !dense.same_length {
        let last = rows - 1 + after;
        let turns = format!("(size(T-S) + index(block.x*{rows} + {last})) // {columns} + 1");
        let before = format!("    turns = min(size({all}), {turns})\n");
        return Walk::up(before, "[turns]".to_string(), columns, edge);
    }
    if let Some(left) = logits.before() {
        let most = more - (-left).div_euclid(columns);
        let before = format!("    turns = min(index(block.x*{each} + {more}), {most})\n");
        return Walk::down(before, "[turns]".to_string(), [rows, columns, top], edge);
    }
    if edge {
        let before = format!("    turns = min(index(block.x*{each} + {more}), size({all}))\n");
        return Walk::up(before, "[turns]".to_string(), columns, edge);
    }
    let count = format!("[block.x*{each} + {more}]");
    match down {
        true => Walk::down(String::new(), count, [rows, columns, top], edge),
        false => Walk::up(String::new(), count, columns, edge),
    }
}

/// The statements of an iteration behind the products of queries and keys, up to the sums.
pub(super) fn softmax_step(logits: &Logits, element: tilewright_tile::Element) -> String {
    let factor = logits.factor();
    let (by, less) = (number(factor), number(-factor));
    format!(
        "        new = max(greatest, reduce_max(scores, 1))
        base = select(new == -inf, 0, new)
        powers = exp2(fma(scores, f32({by}), base * {less}))
        old = exp2((greatest - base) * {by})
        next new, fma(total, old, reduce_sum(powers, 1)), dot({element}(powers), values, sum * old)
    }} -> greatest, total, sum
"
    )
}

/// The statements behind the last iteration: `kept`, what sums are multiplied by, and `logarithm`,
/// that of the sum of a row, to the base of e. The sink of the head, if there is one, counts in
/// both.
pub(super) fn settled(logits: &Logits, sink: &str) -> String {
    let factor = number(logits.factor());
    let mut text = format!("    top = greatest * {factor}\n");
    if logits.sinks {
        text += &format!(
            "    sink = {sink} * {}
    new = max(top, sink)
    base = select(new == -inf, 0, new)
    part = exp2(top - base)
    total = fma(total, part, exp2(sink - base))
    kept = select(total == 0, 0, part * recip(total))
    top = base
",
            number(LOG2_E)
        );
    } else {
        text += "    kept = select(total == 0, 0, recip(total))\n";
    }
    text + &format!("    logarithm = select(total == 0, -inf, (top + log2(total)) * {})\n", number(LN_2))
}

/// The forward: `o` and `lse`.
pub(super) fn dense(dense: &Dense, logits: &Logits, tiles: Tiles) -> Result<Sequence, OperatorError> {
    let heads = dense.heads;
    let Heads { group, kv, element, .. } = heads;
    let [wide, value] = heads.tiles();
    let tile = tiles.forward(heads, logits);
    let Tile { rows, columns, warps } = tile;
    // Measured on an H200: heads of 128 are faster from the diagonal backwards, since the first
    // iteration alone is masked; others are slower.
    let walk = keys_of_queries(dense, logits, tile, wide == 128);
    let keys = dense.keys();
    let end = format!("size({keys})");
    let found = Found {
        group: "block.y",
        head: "block.z",
        bias: ["block.x", &walk.at],
        shape: [rows, columns],
        by_queries: true,
        edge: walk.edge.then_some(end.as_str()),
    };
    let mut text = "tile attention {\n".to_string();
    text += &(dense.of_queries("input ", "q") + &dense.of_keys("input ", "k") + &dense.of_keys("input ", "v"));
    text += &logits.declared(|name| dense.of_heads(name), [group, kv], keys);
    if logits.sinks {
        text += &dense.of_heads("sinks");
    }
    text += &(dense.of_queries("output", "o") + &dense.of_rows("output", "lse"));
    text += &format!("    grid ceil(S/{rows}), {group}, {kv}*B\n    warps {warps}\n");
    text += &logits.of_head("block.y", "block.z", [group, kv]);
    text += &walk.before;
    let shift = if dense.same_length { "" } else { " + size(T-S)" };
    if logits.has_positions(walk.edge) {
        text += &format!("    query = index(block.x*{rows}){shift} + arange(({rows},{columns}), 0)\n");
    }
    let key = match logits.has_positions(walk.edge) {
        true => format!("        key = index({}) + arange(({rows},{columns}), 1)\n", walk.first),
        false => String::new(),
    };
    let (count, at) = (&walk.count, &walk.at);
    text += &format!(
        "    queries = reshape(load(q, ({rows},{wide},1,1), (block.x, 0, block.y, block.z)), ({rows},{wide}))
    loop j < {count} with greatest = broadcast(f32(-inf), ({rows},1)), total = broadcast(f32(0), ({rows},1)), sum = broadcast(f32(0), ({rows},{value})) {{
        keys = transpose(reshape(load(k, ({columns},{wide},1), ({at}, 0, block.z)), ({columns},{wide})), (1,0))
        values = reshape(load(v, ({columns},{value},1), ({at}, 0, block.z)), ({columns},{value}))
        scores = dot(queries, keys, broadcast(f32(0), ({rows},{columns})))
{key}{}{}{}    store(o, (block.x, 0, block.y, block.z), reshape({element}(sum * kept), ({rows},{value},1,1)))
    store(lse, (block.x, block.y, block.z), reshape(logarithm, ({rows},1,1)))
}}
",
        logits.made(&found, false),
        softmax_step(logits, element),
        settled(logits, "load(sinks, (1,1), (block.y, block.z))"),
    );
    Ok(Sequence::new(vec![program(&text)?]))
}
