//! The backward of sequences of equal lengths.
//!
//! Law: with `p = exp(logit - lse)`, `delta` the sum of a row of `o d_o` less `d_lse`, and `d_p =
//! d_o v^T`, the derivative by a logit is `p (d_p - delta)`. One program has rows of keys and sums
//! over queries, for `d_k` and `d_v`; another has rows of queries and sums over keys, for `d_q`.
//! Both compute the logits again. So each result is written by one block, in a fixed order.

use std::f64::consts::LOG2_E;

use tilewright_tile::{Element, Program, Sequence};

use super::forward::keys_of_queries;
use super::scores::{Bias, Found, Logits};
use super::text::{Dense, Heads, number};
use super::tiles::{OfKeys, Tile, Tiles};
use crate::error::OperatorError;
use crate::row_tiles::program;

/// Rows of a block that sums rows of `o d_o`.
const ROWS_OF_DELTA: i64 = 32;
/// Queries that a block of `d_sinks` takes in an iteration.
const ROWS_OF_SINKS: i64 = 1024;

/// The backward.
pub(super) fn dense(
    dense: &Dense,
    logits: &Logits,
    lse_gradient: bool,
    tiles: Tiles,
) -> Result<Sequence, OperatorError> {
    let mut programs = vec![delta(dense, lse_gradient)?];
    for (of, tile) in tiles.of_keys(dense.heads) {
        programs.push(keys(dense, logits, of, tile)?);
    }
    programs.push(queries(dense, logits, tiles)?);
    if logits.sinks {
        programs.push(sinks(dense)?);
    }
    if let Some(own) = logits.bias {
        programs.push(bias(dense, logits, own, tiles)?);
    }
    Ok(Sequence::new(programs))
}

/// The sums of rows of `o d_o`, less `d_lse`.
fn delta(dense: &Dense, lse_gradient: bool) -> Result<Program, OperatorError> {
    let Heads { group, kv, .. } = dense.heads;
    let [_, value] = dense.heads.tiles();
    let rows = ROWS_OF_DELTA;
    let mut text = "tile attention_delta {\n".to_string();
    text += &(dense.of_queries("input ", "o") + &dense.of_queries("input ", "d_o"));
    if lse_gradient {
        text += &dense.of_rows("input ", "d_lse");
    }
    let load = |name: &str| format!("f32(load({name}, ({rows},{value},1,1), (block.x, 0, block.y, block.z)))");
    let less = match lse_gradient {
        true => format!(" - load(d_lse, ({rows},1,1), (block.x, block.y, block.z))"),
        false => String::new(),
    };
    text += &dense.of_rows("output", "delta");
    text += &format!(
        "    grid ceil(S/{rows}), {group}, {kv}*B
    sums = reshape(reduce_sum({} * {}, 1), ({rows},1,1))
    store(delta, (block.x, block.y, block.z), sums{less})
}}
",
        load("o"),
        load("d_o"),
    );
    program(&text)
}

/// Statements that make `powers` of `scores`, and `d_scores`, the derivative by products over the
/// scale, or by logits, of `powers`, `d_powers` and `deltas`.
pub(super) fn powers(logits: &Logits) -> String {
    format!("        powers = exp2(fma(scores, f32({}), negative))\n", number(logits.factor()))
}

/// `negative`: less the logarithm of the sum to base 2, of `lse`. A row that sees nothing has -inf
/// for every logit, and 0 stands for the logarithm, so powers are 0.
pub(super) fn negative(lse: &str) -> String {
    format!("sums = {lse}\n        negative = select(sums == -inf, 0, sums * {})\n", number(-LOG2_E))
}

/// The expression of the derivative by products, over the scale.
pub(super) fn by_products(logits: &Logits) -> &'static str {
    if logits.is_capped() { "powers * (d_powers - deltas) * steep" } else { "powers * (d_powers - deltas)" }
}

/// The tiles of queries that see the keys of a block: statements before the loop, the count, the
/// index, and the first row.
fn queries_of_keys(dense: &Dense, logits: &Logits, Tile { rows, columns, .. }: Tile) -> [String; 4] {
    let each = rows / columns;
    let all = format!("ceil(S/{columns})");
    let full = [String::new(), all.clone(), "j".to_string(), format!("j*{columns}")];
    if !dense.same_length {
        return full;
    }
    let top = logits.before().map(|left| (rows - 1 + left).div_euclid(columns));
    let Some(after) = logits.after() else {
        let Some(top) = top else { return full };
        let before = format!("    turns = min(size({all}), index(block.x*{each} + {}))\n", top + 1);
        return [before, "[turns]".to_string(), "j".to_string(), format!("j*{columns}")];
    };
    // Tiles before the first one are empty.
    let first = (-after).div_euclid(columns);
    let rest = format!("size({all}) - index(block.x*{each} + {first})");
    let turns = match top {
        Some(top) => format!("min({rest}, {})", top - first + 1),
        None => rest,
    };
    let at = format!("block.x*{each} + {first} + j");
    let row = format!("block.x*{rows} + {} + j*{columns}", first * columns);
    [format!("    turns = {turns}\n"), "[turns]".to_string(), at, row]
}

/// `d_k` and `d_v`: rows of keys, which all heads of the group share.
fn keys(dense: &Dense, logits: &Logits, of: OfKeys, tile: Tile) -> Result<Program, OperatorError> {
    let heads = dense.heads;
    let Heads { group, kv, element, .. } = heads;
    let [wide, value] = heads.tiles();
    let Tile { rows, columns, warps } = tile;
    let [before, count, at, first] = queries_of_keys(dense, logits, tile);
    let (has_keys, has_values) = (of != OfKeys::Values, of != OfKeys::Keys);
    let name = match of {
        OfKeys::Both => "attention_d_k_d_v",
        OfKeys::Keys => "attention_d_k",
        OfKeys::Values => "attention_d_v",
    };
    let mut text = format!("tile {name} {{\n");
    text += &(dense.of_queries("input ", "q") + &dense.of_keys("input ", "k"));
    if has_keys {
        text += &dense.of_keys("input ", "v");
    }
    text += &(dense.of_queries("input ", "d_o") + &dense.of_rows("input ", "lse"));
    if has_keys {
        text += &dense.of_rows("input ", "delta");
    }
    text += &logits.declared(|name| dense.of_heads(name), [group, kv], dense.keys());
    if has_keys {
        text += &dense.of_keys("output", "d_k");
    }
    if has_values {
        text += &dense.of_keys("output", "d_v");
    }
    text += &format!("    grid ceil({}/{rows}), {kv}*B\n    warps {warps}\n{before}", dense.keys());
    text += &format!("    keys = reshape(load(k, ({rows},{wide},1), (block.x, 0, block.y)), ({rows},{wide}))\n");
    if has_keys {
        text +=
            &format!("    values = reshape(load(v, ({rows},{value},1), (block.x, 0, block.y)), ({rows},{value}))\n");
    }
    let shift = if dense.same_length { "" } else { " + size(T-S)" };
    // Rows of queries past the last have the logarithm inf, so their powers are 0.
    let positions = logits.has_positions(false);
    if positions {
        text += &format!("    key = index(block.x*{rows}) + arange(({rows},{columns}), 0)\n");
    }
    let sums: Vec<(&str, i64)> = [("keys_sum", wide, has_keys), ("values_sum", value, has_values)]
        .into_iter()
        .filter_map(|(name, wide, there)| there.then_some((name, wide)))
        .collect();
    let zeros: Vec<String> =
        sums.iter().map(|(name, wide)| format!("all_{name} = broadcast(f32(0), ({rows},{wide}))")).collect();
    let carried: Vec<String> = sums.iter().map(|(name, _)| format!("{name} = all_{name}")).collect();
    let alls: Vec<String> = sums.iter().map(|(name, _)| format!("all_{name}")).collect();
    let names: Vec<&str> = sums.iter().map(|own| own.0).collect();
    let found = Found {
        group: "g",
        head: "block.y",
        bias: [&at, "block.x"],
        shape: [rows, columns],
        by_queries: false,
        edge: None,
    };
    let tile = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({columns},{wide},1,1), ({at}, 0, g, block.y)), ({columns},{wide}))")
    };
    let row = |name: &str, other: &str| {
        format!("reshape(load({name}, ({columns},1,1), ({at}, g, block.y){other}), (1,{columns}))")
    };
    text += &format!("    loop g < {group} with {} {{\n", zeros.join(", "));
    text += &logits.of_head("g", "block.y", [group, kv]);
    text += &format!("    loop j < {count} with {} {{\n", carried.join(", "));
    text += &format!("        columns = transpose({}, (1,0))\n", tile("q", wide));
    text += &format!("        scores = dot(keys, columns, broadcast(f32(0), ({rows},{columns})))\n");
    if positions {
        text += &format!("        query = index({first}){shift} + arange(({rows},{columns}), 1)\n");
    }
    text += &logits.made(&found, has_keys);
    text += &format!("        {}", negative(&row("lse", ", inf")));
    text += &powers(logits);
    let mut next = Vec::new();
    if has_keys {
        text += &format!("        d_columns = transpose({}, (1,0))\n", tile("d_o", value));
        text += &format!("        deltas = {}\n", row("delta", ""));
        text += &format!("        d_powers = dot(values, d_columns, broadcast(f32(0), ({rows},{columns})))\n");
        text += &format!("        queries = {}\n", tile("q", wide));
        next.push(format!("dot({element}({}), queries, keys_sum)", by_products(logits)));
    }
    if has_values {
        text += &format!("        d_rows = {}\n", tile("d_o", value));
        next.push(format!("dot({element}(powers), d_rows, values_sum)"));
    }
    let alls = alls.join(", ");
    text += &format!(
        "        next {}\n    }} -> {alls}\n    next {alls}\n    }} -> {}\n",
        next.join(", "),
        names.join(", ")
    );
    for (name, own, wide, by) in [("d_k", "keys_sum", wide, logits.scale), ("d_v", "values_sum", value, 1.0)] {
        if names.contains(&own) {
            let own = if by == 1.0 { own.to_string() } else { format!("{own} * {}", number(by)) };
            text +=
                &format!("    store({name}, (block.x, 0, block.y), reshape({element}({own}), ({rows},{wide},1)))\n");
        }
    }
    program(&(text + "}\n"))
}

/// `d_q`: rows of queries.
fn queries(dense: &Dense, logits: &Logits, tiles: Tiles) -> Result<Program, OperatorError> {
    let heads = dense.heads;
    let Heads { group, kv, element, .. } = heads;
    let [wide, value] = heads.tiles();
    let tile = tiles.of_queries(heads, logits);
    let Tile { rows, columns, warps } = tile;
    let walk = keys_of_queries(dense, logits, tile, false);
    let end = format!("size({})", dense.keys());
    let found = Found {
        group: "block.y",
        head: "block.z",
        bias: ["block.x", &walk.at],
        shape: [rows, columns],
        by_queries: true,
        edge: walk.edge.then_some(end.as_str()),
    };
    let mut text = "tile attention_d_q {\n".to_string();
    text += &(dense.of_queries("input ", "q") + &dense.of_keys("input ", "k") + &dense.of_keys("input ", "v"));
    text += &(dense.of_queries("input ", "d_o") + &dense.of_rows("input ", "lse") + &dense.of_rows("input ", "delta"));
    text += &logits.declared(|name| dense.of_heads(name), [group, kv], dense.keys());
    text += &dense.of_queries("output", "d_q");
    text += &format!("    grid ceil(S/{rows}), {group}, {kv}*B\n    warps {warps}\n");
    text += &logits.of_head("block.y", "block.z", [group, kv]);
    text += &walk.before;
    let whole = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({rows},{wide},1,1), (block.x, 0, block.y, block.z)), ({rows},{wide}))")
    };
    let row = |name: &str, other: &str| {
        format!("reshape(load({name}, ({rows},1,1), (block.x, block.y, block.z){other}), ({rows},1))")
    };
    text += &format!("    queries = {}\n    d_rows = {}\n", whole("q", wide), whole("d_o", value));
    text += &format!("    {}    deltas = {}\n", negative(&row("lse", ", inf")), row("delta", ""));
    let shift = if dense.same_length { "" } else { " + size(T-S)" };
    let positions = logits.has_positions(walk.edge);
    if positions {
        text += &format!("    query = index(block.x*{rows}){shift} + arange(({rows},{columns}), 0)\n");
    }
    let key = match positions {
        true => format!("        key = index({}) + arange(({rows},{columns}), 1)\n", walk.first),
        false => String::new(),
    };
    let at = &walk.at;
    let of_keys = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({columns},{wide},1), ({at}, 0, block.z)), ({columns},{wide}))")
    };
    text += &format!(
        "    loop j < {} with sum = broadcast(f32(0), ({rows},{wide})) {{
        columns = transpose({}, (1,0))
        scores = dot(queries, columns, broadcast(f32(0), ({rows},{columns})))
{key}{}{}        values = transpose({}, (1,0))
        d_powers = dot(d_rows, values, broadcast(f32(0), ({rows},{columns})))
        keys = {}
        next dot({element}({}), keys, sum)
    }} -> sum
    store(d_q, (block.x, 0, block.y, block.z), reshape({element}(sum * {}), ({rows},{wide},1,1)))
}}
",
        walk.count,
        of_keys("k", wide),
        logits.made(&found, true),
        powers(logits),
        of_keys("v", value),
        of_keys("k", wide),
        by_products(logits),
        number(logits.scale),
    );
    program(&text)
}

/// `d_sinks`: less the sum of `exp(sink - lse) delta` over all rows of a head.
fn sinks(dense: &Dense) -> Result<Program, OperatorError> {
    let heads = dense.heads.all();
    let rows = ROWS_OF_SINKS;
    let tensor = |role: &str, name: &str| format!("    {role} {name}: f32 (S,{heads},B):(1,S,{heads}*S)\n");
    let text = format!(
        "tile attention_d_sinks {{
{}{}    input  sinks: f32 ({heads},1,1):(1,0,0)
    output d_sinks: f32 ({heads},1,1):(1,0,0)
    grid {heads}
    sink = load(sinks, (1,1,1), (block.x, 0, 0))
    loop b < B with all = broadcast(f32(0), ({rows},1,1)) {{
        loop i < ceil(S/{rows}) with sum = all {{
            sums = load(lse, ({rows},1,1), (i, block.x, b), inf)
            power = select(sums == -inf, 0, exp(sink - sums))
            next fma(power, load(delta, ({rows},1,1), (i, block.x, b)), sum)
        }} -> all
        next all
    }} -> all
    store(d_sinks, (block.x, 0, 0), -reduce_sum(all, 0))
}}
",
        tensor("input ", "lse"),
        tensor("input ", "delta"),
    );
    program(&text)
}

/// `d_bias`: a block has a tile of it, and sums over the heads and the sequences that share it.
fn bias(dense: &Dense, logits: &Logits, own: Bias, tiles: Tiles) -> Result<Program, OperatorError> {
    let heads = dense.heads;
    let Heads { group, kv, .. } = heads;
    let [wide, value] = heads.tiles();
    let tile = tiles.of_bias(heads);
    let Tile { rows, columns, warps } = tile;
    // The head of `k` and the batch, of the blocks along z and of a loop.
    let (grid, turns, head) = match (own.heads, own.batch) {
        (true, true) => (format!("{kv}*B"), "1".to_string(), "block.z".to_string()),
        (true, false) => (kv.to_string(), "B".to_string(), format!("block.z + n*{kv}")),
        (false, true) => ("B".to_string(), kv.to_string(), format!("block.z*{kv} + n")),
        (false, false) => ("1".to_string(), format!("{kv}*B"), "n".to_string()),
    };
    let keys = dense.keys();
    let (layout, ones, at) = match (own.heads, own.batch) {
        (true, true) => (
            format!("(S,{keys},{group},({kv},B)):(bias_row,1,bias_head,({group}*bias_head,bias_batch))"),
            ",1,1",
            "block.x, block.y, g, block.z",
        ),
        (true, false) => (
            format!("(S,{keys},{group},{kv}):(bias_row,1,bias_head,{group}*bias_head)"),
            ",1,1",
            "block.x, block.y, g, block.z",
        ),
        (false, true) => (format!("(S,{keys},B):(bias_row,1,bias_batch)"), ",1", "block.x, block.y, block.z"),
        (false, false) => (format!("(S,{keys}):(bias_row,1)"), "", "block.x, block.y"),
    };
    let end = format!("size({keys})");
    let found = Found {
        group: "g",
        head: &head,
        bias: ["block.x", "block.y"],
        shape: [rows, columns],
        by_queries: true,
        edge: Some(&end),
    };
    let mut text = "tile attention_d_bias {\n".to_string();
    text += &(dense.of_queries("input ", "q") + &dense.of_keys("input ", "k") + &dense.of_keys("input ", "v"));
    text += &(dense.of_queries("input ", "d_o") + &dense.of_rows("input ", "lse") + &dense.of_rows("input ", "delta"));
    text += &logits.declared(|name| dense.of_heads(name), [group, kv], keys);
    text += &format!("    output d_bias: {} {layout}\n", own.element);
    text += &format!("    grid ceil(S/{rows}), ceil({keys}/{columns}), {grid}\n    warps {warps}\n");
    let shift = if dense.same_length { "" } else { " + size(T-S)" };
    text += &format!("    query = index(block.x*{rows}){shift} + arange(({rows},{columns}), 0)\n");
    text += &format!("    key = index(block.y*{columns}) + arange(({rows},{columns}), 1)\n");
    let of_queries = |name: &str, wide: i64| {
        format!("reshape(load({name}, ({rows},{wide},1,1), (block.x, 0, g, {head})), ({rows},{wide}))")
    };
    let of_keys = |name: &str, wide: i64| {
        let load = format!("reshape(load({name}, ({columns},{wide},1), (block.y, 0, {head})), ({columns},{wide}))");
        format!("transpose({load}, (1,0))")
    };
    let row = |name: &str, other: &str| {
        format!("reshape(load({name}, ({rows},1,1), (block.x, g, {head}){other}), ({rows},1))")
    };
    let step = format!(
        "{}        queries = {}
        columns = {}
        scores = dot(queries, columns, broadcast(f32(0), ({rows},{columns})))
{}        {}        deltas = {}
{}        d_rows = {}
        values = {}
        d_powers = dot(d_rows, values, broadcast(f32(0), ({rows},{columns})))
        next fma(powers, d_powers - deltas, sum)
",
        logits.of_head("g", &head, [group, kv]),
        of_queries("q", wide),
        of_keys("k", wide),
        logits.made(&found, false),
        negative(&row("lse", ", inf")),
        row("delta", ""),
        powers(logits),
        of_queries("d_o", value),
        of_keys("v", value),
    );
    let zero = format!("broadcast(f32(0), ({rows},{columns}))");
    let sum = if own.element == Element::F32 { "sum".to_string() } else { format!("{}(sum)", own.element) };
    let store = format!("store(d_bias, ({at}), reshape({sum}, ({rows},{columns}{ones})))");
    text += &match own.heads {
        true => format!(
            "    loop g < {group} {{\n    loop n < {turns} with sum = {zero} {{\n{step}    }} -> sum\n    {store}\n    }}\n"
        ),
        false => format!(
            "    loop g < {group} with all = {zero} {{\n    loop n < {turns} with sum = all {{\n{step}    }} -> all\n    next all\n    }} -> sum\n    {store}\n"
        ),
    };
    program(&(text + "}\n"))
}
