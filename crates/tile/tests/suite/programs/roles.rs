//! Kernels whose warps have roles: the same meaning, on the same numbers.

use super::run::{Case, kernel};
use super::{compare, numbers};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::{self, Target};
use tilewright_tile::{Program, interpret};

/// The results of the tile interpreter and of the kernel for Hopper are within `near`; and the
/// roles in the explanation.
fn agrees(text: &str, case: &Case<'_>, wanted: &[f64], near: f64) -> Vec<String> {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let meant = interpret::run(&program, &case.sizes, &case.inputs).unwrap_or_else(|error| panic!("{error}"));
    compare("the interpreter", &meant[0].1, wanted, near);
    let compiled = program.compile(&Machine::of_target(Target::Sm90a)).unwrap_or_else(|error| panic!("{error}"));
    compiled.placed().verify().unwrap_or_else(|error| panic!("{error}"));
    let placed = interpret::run(compiled.placed(), &case.sizes, &case.inputs).unwrap();
    assert_eq!(placed, meant, "passes change {}", program.name());
    let found: Vec<Option<f64>> = kernel(&compiled, case, &meant[0].0).into_iter().map(Some).collect();
    compare("the kernel", &found, wanted, near);
    compiled.explain().unwrap().roles
}

fn says(roles: &[String], words: &str) -> bool {
    roles.iter().any(|line| line.contains(words))
}

fn product(tile: [i64; 3], name: &str) -> String {
    let [m, n, k] = tile;
    format!(
        "
tile {name} {{
    input  a: bf16 (M,K{{div=8}}):(K,1)
    input  b: bf16 (K,N{{div=8}}):(N,1)
    input  bias: f32 (1,N):(N,1)
    output d: bf16 (M,N):(N,1)
    grid ceil(M/{m}), ceil(N/{n})
    loop k < ceil(K/{k}) with sum = broadcast(f32(0), ({m},{n})) {{
        next dot(load(a, ({m},{k}), (block.x, k)), load(b, ({k},{n}), (k, block.y)), sum)
    }} -> sum
    store(d, (block.x, block.y), bf16(max(sum + load(bias, (1,{n}), (0, block.y)), 0)))
}}"
    )
}

#[test]
fn groups_multiply_matrices() {
    // One block and several, edges within tiles, one group and two, several blocks of rows.
    for (tile, groups, [m, n, k]) in [
        ([128, 64, 64], 2, [150, 136, 72]),
        ([64, 32, 32], 1, [60, 40, 104]),
        ([256, 64, 32], 2, [300, 72, 40]),
        ([256, 64, 32], 4, [260, 72, 40]),
        ([128, 256, 64], 2, [136, 264, 64]),
    ] {
        let [a, b, bias] = [(1, m * k), (2, k * n), (3, n)].map(|(seed, count)| numbers(seed, count, 1.0));
        let mut wanted = Vec::new();
        for row in 0..m {
            for column in 0..n {
                let sum: f64 = (0..k).map(|at| a[row * k + at] * b[at * n + column]).sum();
                wanted.push((sum + bias[column]).max(0.0));
            }
        }
        let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
        let case = Case::new(&sizes, &[("a", a), ("b", b), ("bias", bias)]);
        let text = product(tile, "product").replace("    grid", &format!("    warps {}\n    grid", 4 * groups));
        let roles = agrees(&text, &case, &wanted, 1.0 / 16.0);
        assert!(says(&roles, &format!("{groups} consumer warpgroup")), "{roles:?}");
        // Those who bring leave their registers to the others, as many as a multiprocessor has.
        let kernel = text.parse::<Program>().unwrap().compile(&Machine::of_target(Target::Sm90a)).unwrap();
        let text = ptx::write(kernel.kernel().program(), Target::Sm90a).unwrap();
        let many = [240, 240, 0, 112][groups - 1];
        assert!(text.contains(&format!(".sync.aligned.u32 {many};")), "{groups} groups");
        assert!(says(&roles, "wgmma") && says(&roles, "TMA stores") && says(&roles, "bands of 8 tiles along x"));
    }
}

/// Bulk stores write whole chunks of 16 bytes: where lines are not shown to be whole chunks,
/// threads store the results.
#[test]
fn results_that_end_inside_chunks_are_stored_by_threads() {
    for (columns, line, [m, n, p], in_bulk) in [
        ("N{div=8}", "P{div=8}", [1, 24, 32], true),
        ("N", "P{div=8}", [1, 21, 24], false),
        ("N{div=4}", "P{div=8}", [1, 20, 24], false),
        ("N", "N", [70, 21, 21], false),
        ("N{div=8}", "N", [70, 24, 24], true),
    ] {
        let k = 72;
        let text = format!(
            "
tile product {{
    input  a: bf16 (M,K{{div=8}}):(K,1)
    input  b: bf16 (K,{columns}):(1,K)
    output d: bf16 (M,{columns}):({line},1)
    grid ceil(M/64), ceil(N/32)
    loop k < ceil(K/32) with sum = broadcast(f32(0), (64,32)) {{
        next dot(load(a, (64,32), (block.x, k)), load(b, (32,32), (k, block.y)), sum)
    }} -> sum
    store(d, (block.x, block.y), bf16(sum))
}}"
        );
        let [a, b] = [(1, m * k), (2, k * n)].map(|(seed, count)| numbers(seed, count, 1.0));
        let sum = |row: usize, column: usize| (0..k).map(|at| a[row * k + at] * b[at + column * k]).sum();
        let wanted: Vec<f64> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
        let all = [("M", m as i64), ("N", n as i64), ("K", k as i64), ("P", p as i64)];
        let sizes: Vec<(&str, i64)> = all.into_iter().filter(|(name, _)| *name != "P" || line != "N").collect();
        let case = Case::new(&sizes, &[("a", a.clone()), ("b", b.clone())]);
        let roles = agrees(&text, &case, &wanted, 1.0 / 16.0);
        assert!(says(&roles, "wgmma"), "{roles:?}");
        assert_eq!(says(&roles, "TMA stores"), in_bulk, "{columns} {line}: {roles:?}");
        let kernel = text.parse::<Program>().unwrap().compile(&Machine::of_target(Target::Sm90a)).unwrap();
        let text = ptx::write(kernel.kernel().program(), Target::Sm90a).unwrap();
        assert_eq!(text.contains(".bulk_group"), in_bulk, "{columns} {line}");
    }
}

/// The keys of each iteration, and which of them it masks.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// All keys, those past the last left out.
    All,
    /// Causal, from the first keys on.
    Up,
    /// Causal, from the diagonal on.
    Down,
    /// Up to this many keys past the diagonal, which are no whole iterations.
    Past(usize),
}

fn attention(head: usize, keys: usize, order: Order) -> String {
    let each = 128 / keys as i64;
    let (at, count) = match order {
        Order::All => ("j".to_string(), format!("ceil(S/{keys})")),
        Order::Up => ("j".to_string(), format!("[block.x*{each} + {each}]")),
        Order::Down => (format!("block.x*{each} + {} - j", each - 1), format!("[block.x*{each} + {each}]")),
        Order::Past(more) => {
            let more = more.div_ceil(keys) as i64;
            ("j".to_string(), format!("[block.x*{each} + {}]", each + more))
        }
    };
    let first = match order {
        Order::Down => format!("block.x*128 + {} - j*{keys}", (each - 1) * keys as i64),
        _ => format!("j*{keys}"),
    };
    let bound = match order {
        Order::All => "< size(S)".to_string(),
        Order::Past(more) => format!("<= index(block.x*128) + arange((128,{keys}), 0) + {more}"),
        _ => format!("<= index(block.x*128) + arange((128,{keys}), 0)"),
    };
    let masked = format!("scores = select(index({first}) + arange((128,{keys}), 1) {bound}, scores, -1e9)");
    let scale = std::f64::consts::LOG2_E / (head as f64).sqrt();
    format!(
        "
tile attention {{
    input  q: bf16 (S,{head},H):({head},1,{head}*S)
    input  k: bf16 (S,{head},H):({head},1,{head}*S)
    input  v: bf16 (S,{head},H):({head},1,{head}*S)
    output o: bf16 (S,{head},H):({head},1,{head}*S)
    grid ceil(S/128), H
    queries = reshape(load(q, (128,{head},1), (block.x, 0, block.y)), (128,{head}))
    none = broadcast(f32(0), (128,{keys}))
    loop j < {count} with greatest = broadcast(f32(-1e30), (128,1)), total = broadcast(f32(0), (128,1)), sum = broadcast(f32(0), (128,{head})) {{
        keys = transpose(reshape(load(k, ({keys},{head},1), ({at}, 0, block.y)), ({keys},{head})), (1,0))
        values = reshape(load(v, ({keys},{head},1), ({at}, 0, block.y)), ({keys},{head}))
        scores = dot(queries, keys, none)
        {masked}
        new = max(greatest, reduce_max(scores, 1))
        powers = exp2(fma(scores, f32({scale}), new * -{scale}))
        old = exp2((greatest - new) * {scale})
        next new, fma(total, old, reduce_sum(powers, 1)), dot(bf16(powers), values, sum * old)
    }} -> greatest, total, sum
    store(o, (block.x, 0, block.y), reshape(bf16(sum * recip(total)), (128,{head},1)))
}}"
    )
}

#[test]
fn groups_attend() {
    for (head, keys, order, length, heads) in [
        (64, 128, Order::Up, 300, 1),
        (64, 64, Order::Down, 130, 1),
        (128, 128, Order::All, 150, 1),
        (64, 32, Order::All, 60, 2),
        (64, 64, Order::Past(100), 130, 1),
    ] {
        let [q, k, v] = [1, 2, 3].map(|seed| numbers(seed, length * head * heads, 1.0));
        let mut wanted = vec![0.0; q.len()];
        for which in 0..heads {
            let at = |row: usize, column: usize| which * head * length + row * head + column;
            for row in 0..length {
                let last = match order {
                    Order::All => length - 1,
                    Order::Past(more) => row + more,
                    _ => row,
                };
                // Keys and values past the last are read as 0.
                let value = |of: &[f64], key: usize, d: usize| if key < length { of[at(key, d)] } else { 0.0 };
                let score = |key: usize| (0..head).map(|d| q[at(row, d)] * value(&k, key, d)).sum::<f64>();
                let powers: Vec<f64> = (0..=last).map(|key| (score(key) / (head as f64).sqrt()).exp()).collect();
                let sum: f64 = powers.iter().sum();
                for d in 0..head {
                    wanted[at(row, d)] =
                        powers.iter().enumerate().map(|(key, power)| power * value(&v, key, d)).sum::<f64>() / sum;
                }
            }
        }
        let sizes = [("S", length as i64), ("H", heads as i64)];
        let case = Case::new(&sizes, &[("q", q), ("k", k), ("v", v)]);
        let roles = agrees(&attention(head, keys, order), &case, &wanted, 1.0 / 64.0);
        assert!(says(&roles, "wgmma") && says(&roles, "overlaps the next iteration"));
        let words = match order {
            Order::Down => "true everywhere from iteration 2 on",
            // The greatest difference counts: with half an iteration less, two iterations would do.
            Order::Past(_) => "true everywhere before the last 3",
            _ => "true everywhere before the last iteration",
        };
        assert!(says(&roles, words), "{roles:?}");
    }
}

/// The text of [`attention`] with operands of e4m3, values in columns, and exponentials up to 256,
/// which e4m3 represents more finely than those up to 1.
fn narrow(text: &str, head: usize) -> String {
    let columns = format!("v: bf16 (S,{head},H):({head},1,{head}*S)");
    let text = text.replace(&columns, &format!("v: e4m3 (S{{div=16}},{head},H):(1,S,{head}*S)"));
    let text = text.replace("input  q: bf16", "input  q: e4m3").replace("input  k: bf16", "input  k: e4m3");
    let scale = format!("new * -{}", std::f64::consts::LOG2_E / (head as f64).sqrt());
    let text = text.replace(&scale, &format!("{scale} + 8")).replace("dot(bf16(powers)", "dot(e4m3(powers)");
    assert_eq!(text.matches(" + 8))").count(), 1, "{text}");
    assert_eq!(text.matches("e4m3").count(), 4, "{text}");
    text
}

/// Random numbers between -1.5 and 1.5, multiples of an eighth: each one of e4m3.
fn eighths(seed: u64, count: usize) -> Vec<f64> {
    numbers(seed, count, 12.0).into_iter().map(|own| own.round() / 8.0).collect()
}

#[test]
fn groups_attend_in_eight_bits() {
    for (head, keys, order, length) in
        [(64, 128, Order::Up, 144), (128, 64, Order::Down, 80), (32, 128, Order::All, 160), (256, 64, Order::Up, 48)]
    {
        let [q, k, v] = [1, 2, 3].map(|seed| eighths(seed, length * head));
        let mut wanted = vec![0.0; q.len()];
        let mut most: f64 = 0.0;
        for row in 0..length {
            let last = if order != Order::All { row } else { length - 1 };
            let score = |key: usize| (0..head).map(|d| q[row * head + d] * k[key * head + d]).sum::<f64>();
            let powers: Vec<f64> = (0..=last).map(|key| (score(key) / (head as f64).sqrt()).exp()).collect();
            let sum: f64 = powers.iter().sum();
            let greatest = powers.iter().copied().fold(0.0, f64::max);
            for d in 0..head {
                // Column-major: all rows of one column, then those of the next.
                let value = |key: usize| v[d * length + key];
                let terms = |each: &dyn Fn(usize, f64) -> f64| -> f64 {
                    powers.iter().enumerate().map(|(key, power)| each(key, *power)).sum::<f64>() / sum
                };
                wanted[row * head + d] = terms(&|key, power| power * value(key));
                // Half a unit of three digits of each power, or of the least one of e4m3; and bf16.
                let rounded = |power: f64| (power / 16.0).max(greatest / 256.0 / 1024.0);
                most = most.max(terms(&|key, power| rounded(power) * value(key).abs()) + 1.0 / 128.0);
            }
        }
        let case = Case::new(&[("S", length as i64), ("H", 1)], &[("q", q), ("k", k), ("v", v)]);
        let text = narrow(&attention(head, keys, order), head);
        let roles = agrees(&text, &case, &wanted, most);
        assert!(most < 1.0 / 8.0, "{most}");
        assert!(says(&roles, "wgmma") && says(&roles, "overlaps the next iteration"), "{roles:?}");
        // The exponentials are an operand in place: lanes exchange nothing but sums of rows.
        let compiled = text.parse::<Program>().unwrap().compile(&Machine::of_target(Target::Sm90a)).unwrap();
        assert!(compiled.explain().unwrap().conversions.iter().all(|own| own.instructions == 0), "{head}");
    }
}

#[test]
fn sums_become_a_factor_of_eight_bits() {
    // Small whole numbers, so that all is exact: a wrong column anywhere would be seen.
    let text = "
tile twice {
    input  a: e4m3 (M,64):(64,1)
    input  b: e4m3 (K{div=16},64):(64,1)
    input  c: e4m3 (K,64):(1,K)
    output d: f32 (M,64):(64,1)
    grid ceil(M/128)
    left = load(a, (128,64), (block.x, 0))
    loop j < ceil(K/KEYS) with sum = broadcast(f32(0), (128,64)) {
        columns = transpose(load(b, (KEYS,64), (j, 0)), (1,0))
        first = dot(left, columns, broadcast(f32(0), (128,KEYS)))
        next dot(e4m3(min(first, 15)), load(c, (KEYS,64), (j, 0)), sum)
    } -> sum
    store(d, (block.x, 0), sum)
}";
    let (m, k) = (130, 144);
    let small = |seed: u64, count: usize| -> Vec<f64> {
        numbers(seed, count, 1.0).into_iter().map(|own| (own.abs() * 1.4).floor()).collect()
    };
    let (a, b, c) = (small(1, m * 64), small(2, k * 64), small(3, k * 64));
    let mut wanted = vec![0.0; m * 64];
    for (row, wanted) in a.chunks(64).zip(wanted.chunks_mut(64)) {
        for (key, column) in b.chunks(64).enumerate() {
            let first = row.iter().zip(column).map(|(a, b)| a * b).sum::<f64>().min(15.0);
            wanted.iter_mut().enumerate().for_each(|(d, sum)| *sum += first * c[d * k + key]);
        }
    }
    let case = Case::new(&[("M", m as i64), ("K", k as i64)], &[("a", a), ("b", b), ("c", c)]);
    for keys in ["32", "64", "128"] {
        let roles = agrees(&text.replace("KEYS", keys), &case, &wanted, 0.0);
        assert!(says(&roles, "wgmma"), "{roles:?}");
        // Also compiled for single warps, which read their operands themselves.
        let program: Program = text.replace("KEYS", keys).parse().unwrap();
        let found = kernel(&program.compile(None).unwrap(), &case, "d");
        assert_eq!(found, wanted, "{keys}");
        // Without a number of rows of four, sums move between lanes.
        let other = text.replace("KEYS", keys).replace("{div=16}", "").replace("(1,K)", "(1,144)");
        let roles = agrees(&other, &case, &wanted, 0.0);
        assert!(says(&roles, "wgmma"), "{roles:?}");
    }
}

#[test]
fn tiles_of_one_ring_are_taken_in_their_order() {
    // Both products of an iteration take the same tile, which comes twice through one ring: the
    // first of the next iteration may not stand before the last of this one. All sums are exact.
    let text = "
tile twice {
    input  a: bf16 (M,64):(64,1)
    input  b: bf16 (K,64):(64,1)
    output d: f32 (M,64):(64,1)
    grid ceil(M/128)
    left = load(a, (128,64), (block.x, 0))
    loop j < ceil(K/64) with sum = broadcast(f32(0), (128,64)) {
        first = dot(left, load(b, (64,64), (j, 0)), broadcast(f32(0), (128,64)))
        next dot(bf16(first), load(b, (64,64), (j, 0)), sum)
    } -> sum
    store(d, (block.x, 0), sum)
}";
    let (m, k) = (130, 192);
    let small = |seed: u64, count: usize| numbers(seed, count, 2.0).into_iter().map(f64::round).collect::<Vec<_>>();
    let (a, b) = (small(1, m * 64), small(2, k * 64));
    let mut wanted = vec![0.0; m * 64];
    for (row, wanted) in a.chunks(64).zip(wanted.chunks_mut(64)) {
        for tile in b.chunks(64 * 64) {
            let first = |at: usize| (0..64).map(|d| row[d] * tile[d * 64 + at]).sum::<f64>();
            for (d, first) in (0..64).map(first).enumerate() {
                wanted.iter_mut().zip(&tile[d * 64..]).for_each(|(sum, b)| *sum += first * b);
            }
        }
    }
    let case = Case::new(&[("M", m as i64), ("K", k as i64)], &[("a", a), ("b", b)]);
    let roles = agrees(text, &case, &wanted, 0.0);
    assert!(says(&roles, "wgmma") && !says(&roles, "overlaps the next iteration"), "{roles:?}");
}

/// A tile that loops inside of loops read stays in its stage until the outermost one is over: one
/// block of the launch takes all blocks of the grid, so each would find the tile of another one.
#[test]
fn tiles_are_held_until_the_outermost_loop_is_over() {
    let text = "
tile held {
    input  a: bf16 (M,32):(32,1)
    input  b: bf16 (K,32,G):(32,1,32*K)
    output d: f32 (M,32):(32,1)
    grid ceil(M/64)
    left = load(a, (64,32), (block.x, 0))
    loop g < 2 with all = broadcast(f32(0), (64,32)) {
        loop j < ceil(K/32) with sum = all {
            next dot(left, reshape(load(b, (32,32,1), (j, 0, g)), (32,32)), sum)
        } -> all
        next all
    } -> all
    store(d, (block.x, 0), all)
}";
    let (m, k) = (190, 96);
    let small = |seed: u64, count: usize| numbers(seed, count, 2.0).into_iter().map(f64::round).collect::<Vec<_>>();
    let (a, b) = (small(1, m * 32), small(2, 2 * k * 32));
    let mut wanted = vec![0.0; m * 32];
    for (row, wanted) in a.chunks(32).zip(wanted.chunks_mut(32)) {
        for (at, b) in b.iter().enumerate() {
            wanted[at % 32] += row[at / 32 % 32] * b;
        }
    }
    let case = Case::new(&[("M", m as i64), ("K", k as i64), ("G", 2)], &[("a", a), ("b", b)]);
    let one = Machine { multiprocessors: 1, ..Machine::of_target(Target::Sm90a) };
    let compiled = text.parse::<Program>().unwrap().compile(&one).unwrap();
    assert!(says(&compiled.explain().unwrap().roles, "wgmma"));
    assert_eq!(kernel(&compiled, &case, "d"), wanted);
}

/// Products of one body that take the same tile, as it is and transposed, share what TMA loads: the
/// stage is held from the first to the last of them. Small whole numbers, so that all is exact.
#[test]
fn products_share_a_tile_and_its_transpose() {
    let text = "
tile shared {
    input  a: bf16 (M,64):(64,1)
    input  b: bf16 (K,64):(64,1)
    output d: f32 (M,64):(64,1)
    grid ceil(M/64)
    left = load(a, (64,64), (block.x, 0))
    loop j < ceil(K/32) with sum = broadcast(f32(0), (64,64)) {
        first = dot(left, transpose(load(b, (32,64), (j, 0)), (1,0)), broadcast(f32(0), (64,32)))
        second = dot(left, transpose(load(b, (32,64), (j, 0)), (1,0)), first)
        part = dot(bf16(first), load(b, (32,64), (j, 0)), sum)
        next dot(bf16(second), load(b, (32,64), (j, 0)), part)
    } -> sum
    store(d, (block.x, 0), sum)
}";
    let (m, k) = (190, 150);
    let small = |seed: u64, count: usize| numbers(seed, count, 1.0).into_iter().map(f64::round).collect::<Vec<_>>();
    let (a, b) = (small(1, m * 64), small(2, k * 64));
    let mut wanted = vec![0.0; m * 64];
    for (row, wanted) in a.chunks(64).zip(wanted.chunks_mut(64)) {
        for b in b.chunks(64) {
            let first: f64 = row.iter().zip(b).map(|(a, b)| a * b).sum();
            wanted.iter_mut().zip(b).for_each(|(sum, b)| *sum += 3.0 * first * b);
        }
    }
    let case = Case::new(&[("M", m as i64), ("K", k as i64)], &[("a", a), ("b", b)]);
    let one = Machine { multiprocessors: 1, ..Machine::of_target(Target::Sm90a) };
    let compiled = text.parse::<Program>().unwrap_or_else(|error| panic!("{error}")).compile(&one).unwrap();
    let roles = compiled.explain().unwrap().roles;
    assert!(says(&roles, "wgmma"), "{roles:?}");
    assert_eq!(roles.iter().filter(|line| line.starts_with("b (32,64)")).count(), 1, "{roles:?}");
    assert_eq!(kernel(&compiled, &case, "d"), wanted);
}

/// Blocks with more iterations behind along x: all of them are taken, in whole rounds and in a last
/// one of a part, forwards and backwards.
#[test]
fn blocks_with_more_iterations_come_first() {
    // With more along K, an iteration brings so much that blocks of one y and z stand together.
    for ([x, y, z], part) in [([7, 5, 8], 16), ([5, 3, 11], 64), ([3, 1, 2], 16)] {
        let (rows, depth) = (64 * x - 5, part * x);
        let a = numbers(1, rows * depth * y, 1.0);
        let b = numbers(2, depth * 16 * z, 1.0);
        let element = |at: usize| -> f64 {
            let (column, row) = (at % 16, at / 16 % rows);
            let (from, matrix) = (at / (16 * rows) % y, at / (16 * rows * y));
            // As many parts along K as the block's number, and one.
            let term = |k: usize| a[(from * rows + row) * depth + k] * b[(matrix * depth + k) * 16 + column];
            (0..part * (row / 64 + 1)).map(term).sum()
        };
        let wanted: Vec<f64> = (0..rows * 16 * y * z).map(element).collect();
        let text = "
tile triangles {
    input  a: bf16 (M,K{div=8},Y):(K,1,M*K)
    input  b: bf16 (K,16,Z):(16,1,16*K)
    output d: f32 (M,16,Y,Z):(16,1,16*M,16*M*Y)
    grid ceil(M/64), Y, Z
    loop k < [block.x + 1] with sum = broadcast(f32(0), (64,16)) {
        left = reshape(load(a, (64,PART,1), (block.x, k, block.y)), (64,PART))
        right = reshape(load(b, (PART,16,1), (k, 0, block.z)), (PART,16))
        next dot(left, right, sum)
    } -> sum
    store(d, (block.x, 0, block.y, block.z), reshape(sum, (64,16,1,1)))
}";
        let sizes = [("M", rows as i64), ("K", depth as i64), ("Y", y as i64), ("Z", z as i64)];
        let text = text.replace("PART", &part.to_string());
        let roles = agrees(&text, &Case::new(&sizes, &[("a", a), ("b", b)]), &wanted, 1.0 / 512.0);
        assert!(says(&roles, "alternating order"), "{roles:?}");
        assert_eq!(says(&roles, "for each y and z"), part == 64, "{roles:?}");
    }
}

/// Four groups with a mask: each comparison is of a constant and one number of a thread, so the
/// coordinates take no registers.
#[test]
fn masks_compare_constants_with_one_number() {
    let text = attention(64, 64, Order::Up).replace("(128,", "(256,").replace("/128", "/256").replace("x*128", "x*256");
    let text = text.replace("block.x*2 + 2", "block.x*4 + 4").replace("    queries", "    warps 16\n    queries");
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled = program.compile(&Machine::of_target(Target::Sm90a)).unwrap();
    let ptx = ptx::write(compiled.kernel().program(), Target::Sm90a).unwrap();
    let masks = |line: &&str| line.trim_start().starts_with("setp.le.s32 ");
    let sides = |line: &str| {
        let words: Vec<String> =
            line.split_whitespace().map(|word| word.trim_matches([',', ';']).to_string()).collect();
        (words[2].clone(), words[3].clone())
    };
    let found: Vec<(String, String)> = ptx.lines().filter(masks).map(sides).collect();
    // 18 constants of 32 scores of a thread, since eight rows on is eight columns back: in the
    // first iteration, and in the last ones.
    assert_eq!(found.len(), 36);
    assert!(found.iter().all(|(constant, _)| constant.parse::<i64>().is_ok()), "{found:?}");
    let numbers: std::collections::BTreeSet<&String> = found.iter().map(|own| &own.1).collect();
    assert_eq!(numbers.len(), 2);
}

#[test]
fn programs_of_the_library_have_roles() {
    for name in ["product", "attention", "attention_e4m3", "expert_product"] {
        let roles = super::program(name).compile(&Machine::of_target(Target::Sm90a)).unwrap().explain().unwrap().roles;
        assert!(says(&roles, "wgmma"), "{roles:?}");
    }
}

/// What is not known to be the best is said to be a bound, of a value as of the program.
#[test]
fn what_is_open_is_printed_as_a_bound() {
    let mut explained = super::program("product").compile(None).unwrap().explain().unwrap();
    let costs = explained.cycles;
    let mut others = explained.choices.iter_mut().filter_map(|own| own.next.as_mut());
    let next = others.find(|next| next.cycles > costs).unwrap();
    assert_eq!(next.bound, next.cycles);
    let more = format!("{:.1} % more", 100.0 * (next.cycles / costs - 1.0));
    next.bound = costs;
    let says = |explained: &tilewright_tile::Explanation, words: &str| explained.to_string().matches(words).count();
    assert_eq!(says(&explained, &format!("at most {more}")), 1, "{explained}");
    assert_eq!(says(&explained, "at most"), 1, "{explained}");
    assert_eq!(says(&explained, "no other assignment of the candidate layouts costs less"), 1);
    explained.bound = 1000.0;
    assert_eq!(says(&explained, "the best assignment costs at least 1000"), 1, "{explained}");
    assert_eq!(says(&explained, "no other assignment"), 0, "{explained}");
}

/// The cost of an assignment is a number of cycles, so no impossible option was taken.
#[test]
fn programs_of_the_library_have_layouts_in_which_all_is_possible() {
    for tilewright_tile::Entry { name, .. } in tilewright_tile::LIBRARY {
        for target in [Target::Sm80, Target::Sm90a] {
            let explained = super::program(name).compile(&Machine::of_target(target)).unwrap().explain().unwrap();
            assert!(explained.cycles < 1e9 && explained.cycles == explained.bound, "{name}: {}", explained.cycles);
        }
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let program: Program = product([32, 64, 64], "small").parse().unwrap();
    let roles = program.compile(&Machine::of_target(Target::Sm90a)).unwrap().explain().unwrap().roles;
    assert!(says(&roles, "all warps do the same: "), "{roles:?}");
    assert!(program.compile(None).unwrap().explain().unwrap().roles.is_empty());
}

/// Random programs: tiles, orders of the operands, types, what is made of the sums, and whether
/// a product of computed operands follows. All numbers are small integers, so all sums are exact.
#[test]
fn programs_by_chance_agree() {
    let rounds = std::env::var("TILEWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let mut with_roles = 0;
    for round in 0..rounds {
        let [m, mut n, mut k] = [[64, 128, 256][below(3)], [16, 32, 64, 128][below(4)], [16, 32, 64][below(3)]];
        let element = ["bf16", "f16", "e4m3"][below(3)];
        let (mut left, mut right) = (["(K,1)", "(1,M)"][below(2)], ["(N,1)", "(1,K)"][below(2)]);
        // Groups take numbers of 8 bits that lie along K.
        let narrow = element == "e4m3";
        if narrow {
            (n, k) = (n.max(32), k.max(32));
            if below(4) > 0 {
                (left, right) = ("(K,1)", "(1,K)");
            }
        }
        let whole = if narrow { 16 } else { 8 };
        let made = ["sum", "sum * 2 - 1", "max(sum, load(c, (M_,N_), (block.x, block.y)))"][below(3)];
        let (output, stored) = [("f32", "made"), (element, "cut(made)")][below(2)];
        let second = below(2) == 1;
        let mut text = format!(
            "
tile chance {{
    input  a: {element} (M{{div={whole}}},K{{div={whole}}}):{left}
    input  b: {element} (K,N{{div={whole}}}):{right}
    input  c: f32 (M,N):(N,1)
    output d: {output} (M,N):(N,1)
    grid ceil(M/{m}), ceil(N/{n})
    loop j < ceil(K/{k}) with sum = broadcast(f32(0), ({m},{n})) {{
        next dot(load(a, ({m},{k}), (block.x, j)), load(b, ({k},{n}), (j, block.y)), sum)
    }} -> sum
    made = {}
",
            made.replace("M_", &m.to_string()).replace("N_", &n.to_string())
        );
        if second {
            // An operand that was computed, times a part of B.
            text += &format!(
                "    small = {element}(min(made, 4))
    again = load(b, ({n},{n}), (0, 0))
    made = dot(small, again, broadcast(f32(1), ({m},{n})))
"
            );
        }
        text += &format!(
            "    store(d, (block.x, block.y), {})\n}}",
            stored.replace("cut(made)", &format!("{element}(min(made, 200))"))
        );
        let sizes = [
            ("M", whole * (1 + below(2 * m / whole as usize)) as i64),
            ("N", whole * (1 + below(2 * n / whole as usize)) as i64),
            ("K", whole * (1 + below(2 * k / whole as usize)) as i64),
        ];
        let [rows, columns, depth] = sizes.map(|own| own.1 as usize);
        let mut numbers = |count: usize| -> Vec<f64> { (0..count).map(|_| below(4) as f64).collect() };
        let inputs = [("a", numbers(rows * depth)), ("b", numbers(depth * columns)), ("c", numbers(rows * columns))];
        let program: Program = text.parse().unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
        let meant = interpret::run(&program, &sizes, &inputs).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let compiled =
            program.compile(&Machine::of_target(Target::Sm90a)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(interpret::run(compiled.placed(), &sizes, &inputs).unwrap(), meant, "program {round}\n{text}");
        let found = kernel(&compiled, &Case::new(&sizes, &inputs), "d");
        for (at, (found, wanted)) in found.iter().zip(&meant[0].1).enumerate() {
            assert_eq!(Some(*found), *wanted, "program {round}: element {at} with {sizes:?}\n{text}");
        }
        let roles = compiled.explain().unwrap().roles;
        with_roles += usize::from(says(&roles, "wgmma"));
        assert!(says(&roles, "wgmma") || says(&roles, "all warps do the same"), "{text}");
    }
    assert!(with_roles * 2 > rounds, "{with_roles} of {rounds}");
}
