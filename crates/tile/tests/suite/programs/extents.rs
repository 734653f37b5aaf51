//! Tiles whose extents are no powers of two, beside plain loops.

use super::places::exactly;
use super::run::{Case, kernel};
use super::{agrees, numbers};
use tilewright_tile::{Program, interpret};

/// Whole numbers, whose sums are exact in any order.
fn counted(count: usize) -> Vec<f64> {
    (0..count).map(|at| (at * 37 % 101) as f64 - 50.0).collect()
}

fn read(text: &str) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    program
}

#[test]
fn reductions_scans_and_searches_end_with_the_tile() {
    for (rows, columns) in [(1, 96), (3, 80), (5, 100), (2, 192), (4, 3), (6, 64), (1, 1)] {
        for element in ["f32", "i32"] {
            // The tensor goes on behind each tile, so what is there is read by nothing.
            let text = format!(
                "tile sums {{\n input x: {element} (M,2,{columns}):({},{columns},1)\n output y: {element} (M,{columns}):({columns},1)\n \
                 output s: {element} (M,5):(5,1)\n output p: i32 (M,2):(2,1)\n grid ceil(M/{rows})\n \
                 a = reshape(load(x, ({rows},1,{columns}), (block.x, 0, 0), 77), ({rows},{columns}))\n \
                 store(y, (block.x, 0), scan_sum(a, 1))\n \
                 store(s, (block.x, 0), reduce_sum(a, 1))\n store(s, (block.x, 1), reduce_max(a, 1))\n \
                 store(s, (block.x, 2), reduce_min(a, 1))\n store(s, (block.x, 3), reduce_product(select(a < 48, {element}(1), 2), 1))\n \
                 store(s, (block.x, 4), reduce_max(-abs(a) - 60, 1))\n \
                 store(p, (block.x, 0), argmax(a, 1))\n store(p, (block.x, 1), argmin(a, 1))\n}}",
                2 * columns
            );
            let program = read(&text);
            for count in [1, 7] {
                let x = counted(2 * count * columns);
                let own = |row: usize| &x[2 * row * columns..][..columns];
                let (mut y, mut s, mut p) = (Vec::new(), Vec::new(), Vec::new());
                for row in (0..count).map(own) {
                    let mut sum = 0.0;
                    y.extend(row.iter().map(|x| {
                        sum += x;
                        sum
                    }));
                    let [most, least] = [f64::max, f64::min].map(|of| row.iter().copied().reduce(of).unwrap());
                    let near = row.iter().map(|x| -x.abs() - 60.0).reduce(f64::max).unwrap();
                    let power = row.iter().filter(|x| **x >= 48.0).fold(1.0, |power, _| power * 2.0);
                    s.extend([sum, most, least, power, near]);
                    p.extend([most, least].map(|best| row.iter().position(|x| *x == best).unwrap() as f64));
                }
                let case = Case::new(&[("M", count as i64)], &[("x", x.clone())]);
                exactly(&program, &case, &[("y", y), ("s", s), ("p", p)]);
            }
        }
    }
}

#[test]
fn infinities_of_8_bits_are_less_than_what_fills_a_tile() {
    // Past the edges a load of e5m2 gives its greatest numbers in place of infinities.
    for columns in [5, 8] {
        let program = read(&format!(
            "tile best {{\n input x: e5m2 (M,{columns}):({columns},1)\n output s: f32 (M,2):(2,1)\n \
             output p: i32 (M,2):(2,1)\n grid M\n a = f32(load(x, (1,{columns}), (block.x, 0), -inf))\n \
             b = f32(load(x, (1,{columns}), (block.x, 0), inf))\n store(s, (block.x, 0), reduce_max(a, 1))\n \
             store(s, (block.x, 1), reduce_min(b, 1))\n store(p, (block.x, 0), argmax(a, 1))\n \
             store(p, (block.x, 1), argmin(b, 1))\n}}"
        ));
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        let x = [vec![least; columns], vec![most; columns]].concat();
        let wanted = [("s", vec![least, least, most, most]), ("p", vec![0.0; 4])];
        exactly(&program, &Case::new(&[("M", 2)], &[("x", x)]), &wanted);
    }
}

#[test]
fn the_greatest_and_how_often_end_with_the_tile() {
    for (columns, kept, bins) in [(96, 10, 24), (100, 100, 3), (80, 7, 64), (5, 3, 5)] {
        let program = read(&format!(
            "tile best {{\n input x: f32 (M,{columns}):({columns},1)\n output v: f32 (M,{kept}):({kept},1)\n \
             output p: i32 (M,{kept}):({kept},1)\n inout h: i32 {bins}:1\n grid M\n \
             a = load(x, (1,{columns}), (block.x, 0))\n store(v, (block.x, 0), top(a, 1, {kept}))\n \
             store(p, (block.x, 0), top_places(a, 1, {kept}))\n \
             atomic_add(h, (0), histogram(reshape(i32(a), ({columns})), {bins}))\n}}"
        ));
        let x: Vec<f64> = counted(3 * columns).iter().map(|x| x % 20.0 - 1.0).collect();
        let (mut v, mut p, mut h) = (Vec::new(), Vec::new(), vec![5.0; bins]);
        let before = h.clone();
        for row in x.chunks(columns) {
            let mut order: Vec<usize> = (0..columns).collect();
            order.sort_by(|a, b| row[*b].partial_cmp(&row[*a]).unwrap().then(a.cmp(b)));
            v.extend(order[..kept].iter().map(|at| row[*at]));
            p.extend(order[..kept].iter().map(|at| *at as f64));
            row.iter().filter(|x| **x >= 0.0 && **x < bins as f64).for_each(|x| h[*x as usize] += 1.0);
        }
        exactly(&program, &Case::new(&[("M", 3)], &[("x", x), ("h", before)]), &[("v", v), ("p", p), ("h", h)]);
    }
}

#[test]
fn products_are_filled_with_zeros() {
    // Heads of 80 and 96; operands that are loaded, and one that is computed with infinity behind
    // its end.
    for (rows, depth, columns, whole) in [(48, 80, 24, 200), (16, 96, 80, 96), (64, 48, 96, 100), (96, 16, 8, 16)] {
        let program = read(&format!(
            "tile product {{\n input a: bf16 (M,K):(K,1)\n input b: bf16 (K,{columns}):({columns},1)\n \
             output d: f32 (M,{columns}):({columns},1)\n grid ceil(M/{rows})\n \
             loop k < ceil(K/{depth}) with sum = broadcast(f32(0), ({rows},{columns})) {{\n \
             own = recip(recip(f32(load(a, ({rows},{depth}), (block.x, k), 1))))\n \
             own = select(arange(({rows},{depth}), 1) + index(k*{depth}) < size(K), own, 0)\n \
             next dot(bf16(own), load(b, ({depth},{columns}), (k, 0)), sum)\n }} -> sum\n \
             store(d, (block.x, 0), sum)\n}}"
        ));
        let m = 2 * rows + 5;
        // Powers of two, whose reciprocals are exact.
        let a: Vec<f64> = (0..m * whole).map(|at| [0.5, -1.0, 2.0, 4.0][at * 7 % 13 % 4]).collect();
        let b: Vec<f64> = (0..whole * columns).map(|at| (at % 7) as f64 - 3.0).collect();
        let mut wanted = Vec::new();
        for row in 0..m {
            for column in 0..columns {
                wanted.push((0..whole).map(|at| a[row * whole + at] * b[at * columns + column]).sum());
            }
        }
        let sizes = [("M", m as i64), ("K", whole as i64)];
        exactly(&program, &Case::new(&sizes, &[("a", a), ("b", b)]), &[("d", wanted)]);
    }
}

#[test]
fn attention_has_heads_of_96() {
    let (length, head) = (50, 96);
    let program = read(
        "tile attention {
    input  q: bf16 (S,96):(96,1)
    input  k: bf16 (S,96):(96,1)
    input  v: bf16 (S,96):(96,1)
    output o: f32 (S,96):(96,1)
    grid ceil(S/48)
    query = load(q, (48,96), (block.x, 0))
    zero = broadcast(f32(0), (48,1))
    loop j < ceil(S/24) with acc = broadcast(f32(0), (48,96)), sum = zero, top = broadcast(f32(-inf), (48,1)) {
        s = dot(query, transpose(load(k, (24,96), (j, 0)), (1, 0)), broadcast(f32(0), (48,24)))
        s = select(index(j*24) + arange((48,24), 1) < size(S), s * 0.125, -inf)
        most = max(top, reduce_max(s, 1))
        p = exp(s - most)
        by = exp(top - most)
        next dot(bf16(p), load(v, (24,96), (j, 0)), acc * by), sum * by + reduce_sum(p, 1), most
    } -> acc, sum, top
    store(o, (block.x, 0), acc / sum)
}",
    );
    let [q, k, v] = [1, 2, 3].map(|seed| numbers(seed, length * head, 1.0));
    let mut wanted = vec![0.0; length * head];
    for row in 0..length {
        let score = |key: usize| (0..head).map(|d| q[row * head + d] * k[key * head + d]).sum::<f64>() / 8.0;
        let powers: Vec<f64> = (0..length).map(|key| score(key).exp()).collect();
        let sum: f64 = powers.iter().sum();
        for d in 0..head {
            wanted[row * head + d] = (0..length).map(|key| powers[key] * v[key * head + d]).sum::<f64>() / sum;
        }
    }
    agrees(&program, &Case::new(&[("S", length as i64)], &[("q", q), ("k", k), ("v", v)]), &wanted, 1.0 / 64.0);
}

#[test]
fn rows_by_numbers_and_atomics_end_with_the_tile() {
    let program = read(
        "tile moved {
    input  x: f32 (T,40):(40,1)
    input  rows: i32 (M,1):(1,1)
    inout  y: f32 (T,40):(40,1)
    inout  sums: f32 20:1
    grid ceil(M/12), 2
    at = load(rows, (12,1), (block.x, 0), -1)
    a = load(x, (12,20), (at, block.y))
    store(y, (at, block.y), a * 2)
    atomic_add(sums, (0), reshape(reduce_sum(a, 0), (20)))
}",
    );
    let (tokens, rows) = (30, [4.0, 0.0, 29.0, 7.0, -3.0, 12.0, 30.0, 1.0, 2.0, 3.0, 5.0, 6.0, 8.0, 9.0]);
    let (x, y) = (counted(tokens * 40), vec![-1.0; tokens * 40]);
    let (mut moved, mut sums) = (y.clone(), vec![1.0; 20]);
    for row in rows.iter().filter(|row| (0.0..tokens as f64).contains(*row)) {
        for column in 0..40 {
            let own = x[*row as usize * 40 + column];
            moved[*row as usize * 40 + column] = 2.0 * own;
            sums[column % 20] += own;
        }
    }
    let sizes = [("T", tokens as i64), ("M", rows.len() as i64)];
    let inputs = [("x", x), ("rows", rows.to_vec()), ("y", y), ("sums", vec![1.0; 20])];
    exactly(&program, &Case::new(&sizes, &inputs), &[("y", moved), ("sums", sums)]);
}

#[test]
fn shapes_change_where_the_order_stays() {
    let program = read(
        "tile shapes {
    input  x: i32 (B,96):(96,1)
    output y: i32 (3,32,B):(32,1,96)
    grid B
    a = reshape(load(x, (1,96), (block.x, 0)), (32,3,1))
    b = transpose(a, (1, 0, 2)) + broadcast(index(block.x), (3,32,1))
    store(y, (0, 0, block.x), b * 2 - b)
}",
    );
    let x = counted(3 * 96);
    let wanted = x.iter().enumerate().map(|(at, x)| x + (at / 96) as f64).collect();
    exactly(&program, &Case::new(&[("B", 3)], &[("x", x)]), &[("y", wanted)]);
    let refused = "tile t {\n input x: f32 (96,4):(4,1)\n output y: f32 384:1\n grid 1\n \
                   store(y, (0), reshape(load(x, (96,4), (0, 0)), (384)))\n}";
    let error = read(refused).compile(None).unwrap_err();
    assert!(error.to_string().contains("96") && error.place().unwrap().line() == 5, "{error}");
    // The interpreter has the order that the kernel would need.
    assert!(interpret::run(&read(refused), &[], &[("x", counted(384))]).is_ok());
    let carried = "tile t {\n input a: bf16 (16,48):(48,1)\n input b: bf16 (48,8):(8,1)\n output d: f32 (16,8):(8,1)\n grid 1\n \
                   loop k < 3 with own = load(a, (16,48), (0, 0)) { next own } -> own\n \
                   store(d, (0, 0), dot(own, load(b, (48,8), (0, 0)), broadcast(f32(0), (16,8))))\n}";
    let error = read(carried).compile(None).unwrap_err();
    assert!(error.to_string().contains("operand of a product") && error.place().unwrap().line() == 7, "{error}");
}

#[test]
fn softmax_of_a_part_of_rows_reads_only_the_part() {
    // NaN stands behind each part: nothing of it comes in.
    let program = read(
        "tile part {
    input  x: f32 (M,128):(128,1)
    output y: f32 (M,100):(100,1)
    grid M
    a = load(x, (1,100), (block.x, [0 : 90]), -inf)
    e = exp(a - reduce_max(a, 1))
    store(y, (block.x, 0), e / reduce_sum(e, 1))
}",
    );
    let mut x = numbers(5, 3 * 128, 3.0);
    let mut wanted = Vec::new();
    for row in x.chunks_mut(128) {
        row[90..].fill(f64::NAN);
        let sum: f64 = row[..90].iter().map(|x| x.exp()).sum();
        wanted.extend((0..100).map(|at| if at < 90 { row[at].exp() / sum } else { 0.0 }));
    }
    let case = Case::new(&[("M", 3)], &[("x", x)]);
    agrees(&program, &case, &wanted, 1e-6);
    assert!(kernel(&program.compile(None).unwrap(), &case, "y").iter().all(|own| own.is_finite()));
}

#[test]
fn tiles_of_any_extents_are_explained() {
    let text = "tile sums {\n input x: f32 (M,96):(96,1)\n output s: f32 (M,1):(1,1)\n grid ceil(M/3)\n \
                store(s, (block.x, 0), reduce_sum(load(x, (3,96), (block.x, 0)), 1))\n}";
    let explained = read(text).compile(None).unwrap().explain().unwrap();
    // Threads hold the tile inside of one whose extents are powers of two.
    assert!(explained.choices.iter().any(|own| own.ty.shape == [4, 128]), "{explained}");
}

#[test]
fn accesses_are_as_wide_as_an_end_allows() {
    // Rows of any length, the halves of heads of 96, and heads of 96 side by side.
    for (tensor, tile, from, to) in [
        ("(M,768):(768,1)", "(2,768)", "(block.x, 0)", "(block.x, 0)"),
        ("(M,96):(96,1)", "(16,48)", "(block.x, [48])", "(block.x, [0])"),
        ("(M,N{div=8}):(N,1)", "(16,96)", "(block.x, block.y)", "(block.x, block.y)"),
    ] {
        let text = format!(
            "tile t {{\n input x: bf16 {tensor}\n inout y: bf16 {tensor}\n grid ceil(M/16), 2\n \
             store(y, {to}, load(x, {tile}, {from}))\n}}"
        );
        let compiled = read(&text).compile(None).unwrap_or_else(|error| panic!("{error}"));
        let ptx = tilewright_kernel::ptx::write(compiled.kernel().program(), tilewright_kernel::ptx::Target::Sm80);
        let ptx = ptx.unwrap();
        assert!(ptx.contains("ld.global.v4.b32") && ptx.contains("st.global.v4.b32"), "{tile}\n{ptx}");
        assert!(!ptx.contains("global.b16"), "{tile}\n{ptx}");
    }
}
