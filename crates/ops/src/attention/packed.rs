//! Sequences of different lengths, one after another.
//!
//! Law: a block has the rows of one sequence. A program before finds which: for each tile of rows
//! its sequence, and its number there. Rows of another sequence are neither read nor written, so no
//! number of one reaches another.

use tilewright_tile::{Program, Sequence};

use super::backward::{by_products, negative, powers};
use super::forward::{settled, softmax_step};
use super::scores::{Found, Logits};
use super::text::{Heads, number, strides};
use super::tiles::{OfKeys, Tile};
use crate::error::OperatorError;
use crate::row_tiles::program;

/// Rows of a block, of queries and of keys.
const ROWS: i64 = 64;
/// Tiles that a block of the first program finds, and sequences that it takes in an iteration.
const TILES: i64 = 64;
const SEQUENCES: i64 = 32;
/// Rows of a block that sums rows of `o d_o`.
const ROWS_OF_DELTA: i64 = 32;
/// Queries that a block of `d_sinks` takes in an iteration.
const ROWS_OF_SINKS: i64 = 1024;

/// The tiles of a block: threads have whole operands in registers, which bounds the columns.
fn tile(heads: Heads) -> Tile {
    match heads.tiles() {
        [..=128, ..=128] => Tile::new(ROWS, 32, 8),
        _ => Tile::new(ROWS, 16, 8),
    }
}

/// The tensors of packed sequences.
struct Packed {
    heads: Heads,
    alignment: i64,
}

impl Packed {
    /// A tensor of queries, `(row, element, place in the group, head of k)`.
    fn of_queries(&self, role: &str, name: &str) -> String {
        let Heads { group, kv, head, value, element } = self.heads;
        let own = name.trim_start_matches("d_");
        let wide = if own == "o" { value } else { head };
        let [_, head, row] = strides(own, self.alignment);
        format!("    {role} {name}: {element} (Q,{wide},{group},{kv}):({row},1,{head},{group}*{own}_head)\n")
    }

    /// A tensor of keys, `(row, element, head)`.
    fn of_keys(&self, role: &str, name: &str) -> String {
        let Heads { kv, head, value, element, .. } = self.heads;
        let own = name.trim_start_matches("d_");
        let wide = if own == "v" { value } else { head };
        let [_, head, row] = strides(own, self.alignment);
        format!("    {role} {name}: {element} (K,{wide},{kv}):({row},1,{head})\n")
    }

    /// A tensor of one f32 for each row of queries.
    fn of_rows(&self, role: &str, name: &str) -> String {
        let Heads { group, kv, .. } = self.heads;
        format!("    {role} {name}: f32 (Q,{group},{kv}):(1,Q,{group}*Q)\n")
    }

    /// A number for each head.
    fn of_heads(&self, name: &str) -> String {
        let Heads { group, kv, .. } = self.heads;
        format!("    input  {name}: f32 ({group},{kv}):(1,{group})\n")
    }

    /// Where sequences begin, and the tables of the tiles of the blocks.
    fn places(&self, side: &str) -> String {
        let tiles = tiles(side);
        format!(
            "    input  cu_q: i32 (B+1):(1)
    input  cu_k: i32 (B+1):(1)
    input  {side}_sequence: i32 ({tiles}):(1)
    input  {side}_tile: i32 ({tiles}):(1)
"
        )
    }

    /// Statements that find the sequence of a block: `q_first` and `k_first`, its first rows, and
    /// `q_count` and `k_count`, how many there are; `place`, the first row of the block there; and
    /// `shift`, from a query to its position.
    fn found(&self, side: &str) -> String {
        let mut text = format!(
            "    sequence = load({side}_sequence, (1), (block.x), -1)
    behind = sequence + 1
    own = reshape(sequence, ())
    place = reshape(load({side}_tile, (1), (block.x)), ()) * {ROWS}
"
        );
        for side in ["q", "k"] {
            text += &format!(
                "    {side}_first = reshape(load(cu_{side}, (1), (sequence)), ())
    {side}_count = select(own < 0, 0, reshape(load(cu_{side}, (1), (behind)), ()) - {side}_first)
"
            );
        }
        text + "    shift = k_count - q_count\n"
    }
}

/// How many tiles of rows there may be: one for each whole tile, and one more for each sequence.
fn tiles(side: &str) -> String {
    format!("ceil({}/{ROWS})+B", side.to_uppercase())
}

/// The first program: the sequence of each tile of rows, -1 where there is none, and its number in
/// the sequence.
fn table(side: &str) -> Result<Program, OperatorError> {
    let tiles = tiles(side);
    let text = format!(
        "tile attention_tiles_of_{side} {{
    input  cu_{side}: i32 (B+1):(1)
    output {side}_sequence: i32 ({tiles}):(1)
    output {side}_tile: i32 ({tiles}):(1)
    grid ceil(({tiles})/{TILES})
    tile = index(block.x*{TILES}) + arange(({TILES},1), 0)
    none = broadcast(i32(0), ({TILES},1))
    loop c < ceil(B/{SEQUENCES}) with before = broadcast(i32(0), (1,1)), sequence = none, first = none {{
        rows = load(cu_{side}, ({SEQUENCES}), ([c*{SEQUENCES} + 1])) - load(cu_{side}, ({SEQUENCES}), (c))
        own = index(c*{SEQUENCES}) + arange(({SEQUENCES}), 0)
        count = reshape(select(own < size(B), (rows + {}) // {ROWS}, 0), (1,{SEQUENCES}))
        ends = scan_sum(count, 1) + before
        over = select(ends <= tile, i32(1), 0)
        last = reduce_max(select(ends <= tile, ends, 0), 1)
        next before + reduce_sum(count, 1), sequence + reduce_sum(over, 1), max(first, last)
    }} -> before, sequence, first
    store({side}_sequence, (block.x), reshape(select(sequence < size(B), sequence, -1), ({TILES})))
    store({side}_tile, (block.x), reshape(tile - first, ({TILES})))
}}
",
        ROWS - 1
    );
    program(&text)
}

/// Statements for the coordinates of rows of a sequence: `at`, for a tensor of this many modes, of
/// the row `from` on; -1 past the last.
fn rows_at(side: &str, (name, from): (&str, &str), rows: i64, modes: usize) -> String {
    let shape = format!("({rows}{})", ",1".repeat(modes - 1));
    format!(
        "{name} = {from} + arange({shape}, 0)\n        {name} = select({name} < {side}_count, {name} + {side}_first, -1)\n"
    )
}

/// `turns`, and `start`, the first key: the tiles of keys that the queries of a block see.
fn keys_of_queries(logits: &Logits, Tile { rows, columns, .. }: Tile) -> String {
    let start = match logits.before() {
        Some(left) => format!("max(place + shift - {left}, 0) // {columns} * {columns}"),
        None => "i32(0)".to_string(),
    };
    let end = match logits.after() {
        Some(after) => format!("min(k_count, place + shift + {})", rows + after),
        None => "k_count".to_string(),
    };
    let turns = format!("select(place < q_count, ({end} - start + {}) // {columns}, 0)", columns - 1);
    format!("    start = {start}\n    turns = {turns}\n")
}

/// What logits of a block are made of.
fn found<'t>(tile: Tile, group: &'t str, head: &'t str, by_queries: bool) -> Found<'t> {
    let shape = [tile.rows, tile.columns];
    Found { group, head, bias: ["0", "0"], shape, by_queries, edge: by_queries.then_some("k_count") }
}

/// The slope and the number of a head.
fn of_head(logits: &Logits, heads: Heads, group: &str, head: &str) -> String {
    let mut text = String::new();
    if logits.slopes {
        text += &format!("    slope = load(slopes, (1,1), ({group}, {head}))\n");
    }
    if !logits.expression.is_empty() {
        text += &format!("    head = index({head}) * {} + index({group})\n    batch = own\n", heads.group);
    }
    text
}

/// The forward: `o` and `lse`.
pub(super) fn forward(heads: Heads, logits: &Logits, alignment: i64) -> Result<Sequence, OperatorError> {
    let packed = Packed { heads, alignment };
    let Heads { group, kv, element, .. } = heads;
    let [wide, value] = heads.tiles();
    let tile = tile(heads);
    let Tile { rows, columns, warps } = tile;
    let mut text = "tile attention {\n".to_string();
    text += &(packed.of_queries("input ", "q") + &packed.of_keys("input ", "k") + &packed.of_keys("input ", "v"));
    text += &packed.places("q");
    text += &logits.declared(|name| packed.of_heads(name), [group, kv], "K");
    if logits.sinks {
        text += &packed.of_heads("sinks");
    }
    text += &(packed.of_queries("inout ", "o") + &packed.of_rows("inout ", "lse"));
    text += &format!("    grid {}, {group}, {kv}\n    warps {warps}\n", tiles("q"));
    text += &packed.found("q");
    text += &of_head(logits, heads, "block.y", "block.z");
    text += &keys_of_queries(logits, tile);
    text += &format!("    {}", rows_at("q", ("at", "place"), rows, 4));
    text += &format!(
        "    queries = reshape(load(q, ({rows},{wide},1,1), (at, 0, block.y, block.z)), ({rows},{wide}))
    query = place + shift + arange(({rows},{columns}), 0)
    loop j < [turns] with greatest = broadcast(f32(-inf), ({rows},1)), total = broadcast(f32(0), ({rows},1)), sum = broadcast(f32(0), ({rows},{value})) {{
        {}        keys = transpose(reshape(load(k, ({columns},{wide},1), (from, 0, block.z)), ({columns},{wide})), (1,0))
        values = reshape(load(v, ({columns},{value},1), (from, 0, block.z)), ({columns},{value}))
        scores = dot(queries, keys, broadcast(f32(0), ({rows},{columns})))
        key = start + index(j*{columns}) + arange(({rows},{columns}), 1)
{}{}{}    store(o, (at, 0, block.y, block.z), reshape({element}(sum * kept), ({rows},{value},1,1)))
    {}    store(lse, (row, block.y, block.z), reshape(logarithm, ({rows},1,1)))
}}
",
        rows_at("k", ("from", &format!("start + index(j*{columns})")), columns, 3),
        logits.made(&found(tile, "block.y", "block.z", true), false),
        softmax_step(logits, element),
        settled(logits, "load(sinks, (1,1), (block.y, block.z))"),
        rows_at("q", ("row", "place"), rows, 3),
    );
    Ok(Sequence::new(vec![table("q")?, program(&text)?]))
}

/// The backward: as that of equal lengths, each block with the rows of one sequence.
pub(super) fn backward(
    heads: Heads,
    logits: &Logits,
    alignment: i64,
    lse_gradient: bool,
) -> Result<Sequence, OperatorError> {
    let packed = Packed { heads, alignment };
    let mut programs = vec![table("q")?, table("k")?, delta(&packed, lse_gradient)?];
    programs.push(keys(&packed, logits, OfKeys::Keys)?);
    programs.push(keys(&packed, logits, OfKeys::Values)?);
    programs.push(queries(&packed, logits)?);
    if logits.sinks {
        programs.push(sinks(heads)?);
    }
    Ok(Sequence::new(programs))
}

/// The sums of rows of `o d_o`, less `d_lse`, of all rows that there are.
fn delta(packed: &Packed, lse_gradient: bool) -> Result<Program, OperatorError> {
    let Heads { group, kv, .. } = packed.heads;
    let [_, value] = packed.heads.tiles();
    let rows = ROWS_OF_DELTA;
    let mut text = "tile attention_delta {\n".to_string();
    text += &(packed.of_queries("input ", "o") + &packed.of_queries("input ", "d_o"));
    if lse_gradient {
        text += &packed.of_rows("input ", "d_lse");
    }
    let load = |name: &str| format!("f32(load({name}, ({rows},{value},1,1), (block.x, 0, block.y, block.z)))");
    let less = match lse_gradient {
        true => format!(" - load(d_lse, ({rows},1,1), (block.x, block.y, block.z))"),
        false => String::new(),
    };
    text += &packed.of_rows("output", "delta");
    text += &format!(
        "    grid ceil(Q/{rows}), {group}, {kv}
    sums = reshape(reduce_sum({} * {}, 1), ({rows},1,1))
    store(delta, (block.x, block.y, block.z), sums{less})
}}
",
        load("o"),
        load("d_o"),
    );
    program(&text)
}

/// `d_k` or `d_v`: rows of keys, which all heads of the group share.
fn keys(packed: &Packed, logits: &Logits, of: OfKeys) -> Result<Program, OperatorError> {
    let heads = packed.heads;
    let Heads { group, kv, element, .. } = heads;
    let [wide, value] = heads.tiles();
    let tile = tile(heads);
    let Tile { rows, columns, warps } = tile;
    let has_keys = of == OfKeys::Keys;
    let mut text = format!("tile attention_d_{} {{\n", if has_keys { "k" } else { "v" });
    text += &(packed.of_queries("input ", "q") + &packed.of_keys("input ", "k"));
    if has_keys {
        text += &(packed.of_keys("input ", "v") + &packed.of_rows("input ", "delta"));
    }
    text += &(packed.of_queries("input ", "d_o") + &packed.of_rows("input ", "lse"));
    text += &packed.places("k");
    text += &logits.declared(|name| packed.of_heads(name), [group, kv], "K");
    text += &packed.of_keys("inout ", if has_keys { "d_k" } else { "d_v" });
    text += &format!("    grid {}, {kv}\n    warps {warps}\n", tiles("k"));
    text += &packed.found("k");
    let start = match logits.after() {
        Some(after) => format!("max(place - shift - {after}, 0) // {columns} * {columns}"),
        None => "i32(0)".to_string(),
    };
    let end = match logits.before() {
        Some(left) => format!("min(q_count, place - shift + {})", rows + left),
        None => "q_count".to_string(),
    };
    let turns = format!("select(place < k_count, ({end} - start + {}) // {columns}, 0)", columns - 1);
    text += &format!("    start = {start}\n    turns = {turns}\n");
    text += &format!("    {}", rows_at("k", ("at", "place"), rows, 3));
    text += &format!("    keys = reshape(load(k, ({rows},{wide},1), (at, 0, block.y)), ({rows},{wide}))\n");
    if has_keys {
        text += &format!("    values = reshape(load(v, ({rows},{value},1), (at, 0, block.y)), ({rows},{value}))\n");
    }
    text += &format!("    key = place + arange(({rows},{columns}), 0)\n");
    let sum_wide = if has_keys { wide } else { value };
    let from = format!("start + index(j*{columns})");
    let of_rows = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({columns},{wide},1,1), (from, 0, g, block.y)), ({columns},{wide}))")
    };
    let row = |name: &str, other: &str| {
        format!("reshape(load({name}, ({columns},1,1), (row, g, block.y){other}), (1,{columns}))")
    };
    text += &format!(
        "    loop g < {group} with all = broadcast(f32(0), ({rows},{sum_wide})) {{
{}    loop j < [turns] with sum = all {{
        {}        {}        queries = {}
        scores = dot(keys, transpose(queries, (1,0)), broadcast(f32(0), ({rows},{columns})))
        query = {from} + shift + arange(({rows},{columns}), 1)
{}        {}{}        d_rows = {}
",
        of_head(logits, heads, "g", "block.y"),
        rows_at("q", ("from", &from), columns, 4),
        rows_at("q", ("row", &from), columns, 3),
        of_rows("q", wide),
        logits.made(&found(tile, "g", "block.y", false), has_keys),
        negative(&row("lse", ", inf")),
        powers(logits),
        of_rows("d_o", value),
    );
    text += &match has_keys {
        true => format!(
            "        deltas = {}
        d_powers = dot(values, transpose(d_rows, (1,0)), broadcast(f32(0), ({rows},{columns})))
        next dot({element}({}), queries, sum)
",
            row("delta", ""),
            by_products(logits)
        ),
        false => format!("        next dot({element}(powers), d_rows, sum)\n"),
    };
    let (name, stored) = match has_keys {
        true => ("d_k", format!("all * {}", number(logits.scale))),
        false => ("d_v", "all".to_string()),
    };
    text += &format!(
        "    }} -> all
    next all
    }} -> all
    store({name}, (at, 0, block.y), reshape({element}({stored}), ({rows},{sum_wide},1)))
}}
"
    );
    program(&text)
}

/// `d_q`: rows of queries.
fn queries(packed: &Packed, logits: &Logits) -> Result<Program, OperatorError> {
    let heads = packed.heads;
    let Heads { group, kv, element, .. } = heads;
    let [wide, value] = heads.tiles();
    let tile = tile(heads);
    let Tile { rows, columns, warps } = tile;
    let mut text = "tile attention_d_q {\n".to_string();
    text += &(packed.of_queries("input ", "q") + &packed.of_keys("input ", "k") + &packed.of_keys("input ", "v"));
    text +=
        &(packed.of_queries("input ", "d_o") + &packed.of_rows("input ", "lse") + &packed.of_rows("input ", "delta"));
    text += &packed.places("q");
    text += &logits.declared(|name| packed.of_heads(name), [group, kv], "K");
    text += &packed.of_queries("inout ", "d_q");
    text += &format!("    grid {}, {group}, {kv}\n    warps {warps}\n", tiles("q"));
    text += &packed.found("q");
    text += &of_head(logits, heads, "block.y", "block.z");
    text += &keys_of_queries(logits, tile);
    let whole = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({rows},{wide},1,1), (at, 0, block.y, block.z)), ({rows},{wide}))")
    };
    let row = |name: &str, other: &str| {
        format!("reshape(load({name}, ({rows},1,1), (row, block.y, block.z){other}), ({rows},1))")
    };
    let of_keys = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({columns},{wide},1), (from, 0, block.z)), ({columns},{wide}))")
    };
    text += &format!(
        "    {}    {}    queries = {}
    d_rows = {}
    {}    deltas = {}
    query = place + shift + arange(({rows},{columns}), 0)
    loop j < [turns] with sum = broadcast(f32(0), ({rows},{wide})) {{
        {}        keys = {}
        scores = dot(queries, transpose(keys, (1,0)), broadcast(f32(0), ({rows},{columns})))
        key = start + index(j*{columns}) + arange(({rows},{columns}), 1)
{}{}        values = transpose({}, (1,0))
        d_powers = dot(d_rows, values, broadcast(f32(0), ({rows},{columns})))
        next dot({element}({}), keys, sum)
    }} -> sum
    store(d_q, (at, 0, block.y, block.z), reshape({element}(sum * {}), ({rows},{wide},1,1)))
}}
",
        rows_at("q", ("at", "place"), rows, 4),
        rows_at("q", ("row", "place"), rows, 3),
        whole("q", wide),
        whole("d_o", value),
        negative(&row("lse", ", inf")),
        row("delta", ""),
        rows_at("k", ("from", &format!("start + index(j*{columns})")), columns, 3),
        of_keys("k", wide),
        logits.made(&found(tile, "block.y", "block.z", true), true),
        powers(logits),
        of_keys("v", value),
        by_products(logits),
        number(logits.scale),
    );
    program(&text)
}

/// `d_sinks`: less the sum of `exp(sink - lse) delta` over the rows of a head that sequences have.
fn sinks(heads: Heads) -> Result<Program, OperatorError> {
    let heads = heads.all();
    let rows = ROWS_OF_SINKS;
    let tensor = |name: &str| format!("    input  {name}: f32 (Q,{heads}):(1,Q)\n");
    let text = format!(
        "tile attention_d_sinks {{
{}{}    input  sinks: f32 ({heads},1):(1,0)
    input  cu_q: i32 (B+1,1):(1,0)
    output d_sinks: f32 ({heads},1):(1,0)
    grid {heads}
    sink = load(sinks, (1,1), (block.x, 0))
    last = size(B) + broadcast(i32(0), (1,1))
    ends = load(cu_q, (1,1), (last, 0))
    loop i < ceil(Q/{rows}) with sum = broadcast(f32(0), ({rows},1)) {{
        sums = load(lse, ({rows},1), (i, block.x), inf)
        there = index(i*{rows}) + arange(({rows},1), 0) < ends
        term = exp(sink - sums) * load(delta, ({rows},1), (i, block.x))
        next select(there != 0 & !(sums == -inf), sum + term, sum)
    }} -> sum
    store(d_sinks, (block.x, 0), -reduce_sum(sum, 0))
}}
",
        tensor("lse"),
        tensor("delta"),
    );
    program(&text)
}
