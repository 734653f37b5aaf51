//! Programs that move rows, count, sort and sum, beside plain loops.

use super::{agrees, compare, numbers};
use crate::programs::run::{Case, kernel};
use tilewright_kernel::{Route, ptx};
use tilewright_tile::{Program, interpret};

/// The tile interpreter, the placed program and the kernel, each bit for bit.
pub fn exactly(program: &Program, case: &Case<'_>, wanted: &[(&str, Vec<f64>)]) {
    let meant = interpret::run(program, &case.sizes, &case.inputs).unwrap_or_else(|error| panic!("{error}"));
    let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}"));
    compiled.placed().verify().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(interpret::run(compiled.placed(), &case.sizes, &case.inputs).unwrap(), meant);
    for (name, wanted) in wanted {
        let (_, found) = meant.iter().find(|(own, _)| own == name).unwrap();
        compare(&format!("the interpreter's {name}"), found, wanted, 0.0);
        let found: Vec<Option<f64>> = kernel(&compiled, case, name).into_iter().map(Some).collect();
        compare(&format!("the kernel's {name}"), &found, wanted, 0.0);
    }
}

/// A program of the library for rows of another length, and other numbers of blocks.
pub fn with(name: &str, changes: &[(&str, &str)]) -> Program {
    let text = tilewright_tile::LIBRARY.iter().find(|own| own.name == name).unwrap().text;
    let text = changes.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to));
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_greatest_of_rows_come_in_order_and_with_their_places() {
    for (columns, tile, kept) in [(100, 128, 8), (512, 512, 64), (700, 1024, 16)] {
        let x = numbers(7, 3 * columns, 3.0);
        let (mut values, mut places) = (Vec::new(), Vec::new());
        for row in x.chunks(columns) {
            let mut order: Vec<usize> = (0..columns).collect();
            order.sort_by(|a, b| row[*b].partial_cmp(&row[*a]).unwrap().then(a.cmp(b)));
            values.extend(order[..kept].iter().map(|at| row[*at]));
            places.extend(order[..kept].iter().map(|at| *at as f64));
        }
        let (columns, tile, kept) = (columns.to_string(), format!("(1,{tile})"), kept.to_string());
        let changes = [("(1,4096)", tile.as_str()), ("4096", &columns), ("64", &kept)];
        let program = with("top_rows", &changes);
        exactly(&program, &Case::new(&[("M", 3)], &[("x", x)]), &[("values", values), ("places", places)]);
    }
}

#[test]
fn numbers_are_counted_and_added_to_what_was_there() {
    let x: Vec<f64> = (0..5000_u64).map(|at| ((at * 2_654_435_761) >> 7 & 0x1ff) as f64 - 100.0).collect();
    let before: Vec<f64> = (0..256).map(f64::from).collect();
    let mut wanted = before.clone();
    for value in &x {
        if let Some(count) = wanted.get_mut(*value as usize).filter(|_| *value >= 0.0) {
            *count += 1.0;
        }
    }
    let program = with("histogram", &[("8192", "1024"), ("528", "3"), ("4325376", "3072")]);
    let case = Case::new(&[("N", 5000)], &[("x", x), ("counts", before)]);
    exactly(&program, &case, &[("counts", wanted)]);
}

#[test]
fn sums_of_chunks_make_sums_of_all_before() {
    let count = 5000;
    // Whole numbers, whose sums are exact in any order.
    let x: Vec<f64> = (0..count as u64).map(|at| ((at * 40_503) >> 3 & 15) as f64 - 7.0).collect();
    let (mut sums, mut before) = (Vec::new(), Vec::new());
    for (at, chunk) in x.chunks(256).enumerate() {
        before.push(x[..256 * at].iter().sum::<f64>());
        sums.push(chunk.iter().sum::<f64>());
    }
    let sizes = [("N", count), ("C", sums.len() as i64)];
    let chunks = [("4096", "256")];
    let case = Case::new(&sizes, &[("x", x.clone())]);
    exactly(&with("chunk_sums", &chunks), &case, &[("sums", sums.clone())]);
    // Tiles of 8 of the 20 sums: several iterations, the last of which ends within a tile.
    let iterations = [("8192", "8"), ("warps 16", "warps 1")];
    let case = Case::new(&sizes[1..], &[("sums", sums)]);
    exactly(&with("sums_before", &iterations), &case, &[("before", before.clone())]);
    let mut sum = 0.0;
    let wanted = x.iter().map(|value| {
        sum += value;
        sum
    });
    let wanted = wanted.collect();
    let case = Case::new(&sizes, &[("x", x.clone()), ("before", before)]);
    exactly(&with("prefix_sum", &chunks), &case, &[("y", wanted)]);
    let wanted = x.chunks(250).flat_map(|row| {
        let mut sum = 0.0;
        row.iter().map(move |value| {
            sum += value;
            sum
        })
    });
    let rows = [("(1,4096)", "(1,256)"), ("4096", "250")];
    let case = Case::new(&[("M", count / 250)], &[("x", x.clone())]);
    exactly(&with("prefix_rows", &rows), &case, &[("y", wanted.collect())]);
}

#[test]
fn rows_go_where_their_numbers_say() {
    let (columns, tokens, picked) = (64, 6, 5);
    let x = numbers(3, tokens * columns, 2.0);
    let rows = vec![4.0, 0.0, 9.0, 4.0, -1.0];
    let row = |x: &[f64], at: f64| match at {
        at if (0.0..tokens as f64).contains(&at) => x[at as usize * columns..][..columns].to_vec(),
        _ => vec![0.0; columns],
    };
    let wanted: Vec<f64> = rows.iter().flat_map(|at| row(&x, *at)).collect();
    let sizes = [("T", tokens as i64), ("M", picked)];
    let case = Case::new(&sizes, &[("x", x), ("rows", rows)]);
    exactly(&with("gather_rows", &[("4096", "64")]), &case, &[("y", wanted)]);
    // Back, to rows of their own; the others stay.
    let (moved, before) = (numbers(4, picked as usize * columns, 2.0), numbers(5, tokens * columns, 2.0));
    let rows = vec![3.0, 5.0, -2.0, 0.0, 6.0];
    let weight = vec![0.5, 2.0, 1.0, -1.0, 4.0];
    let mut wanted = before.clone();
    for (at, row) in rows.iter().enumerate() {
        if let Some(to) = wanted.chunks_mut(columns).nth(*row as usize).filter(|_| *row >= 0.0) {
            to.iter_mut().zip(&moved[at * columns..]).for_each(|(to, from)| *to = from * weight[at]);
        }
    }
    let case = Case::new(&sizes, &[("x", moved), ("rows", rows), ("weight", weight), ("y", before)]);
    exactly(&with("scatter_rows", &[("4096", "64")]), &case, &[("y", wanted)]);
}

#[test]
fn weights_of_four_bits_multiply() {
    for m in [1, 11] {
        let (n, k) = (48, 4096);
        let groups = k / 128;
        let x: Vec<f64> = numbers(1, k * m, 1.0).into_iter().map(|x| half::f16::from_f64(x).to_f64()).collect();
        let scale = numbers(2, n * groups, 0.5);
        let weight: Vec<i32> = (0..(n * k) as i64).map(|at| ((at * 2_654_435_761) >> 9 & 15) as i32 - 8).collect();
        let mut words = Vec::new();
        for row in weight.chunks(k) {
            for word in row.chunks(8) {
                let order = [0, 2, 4, 6, 1, 3, 5, 7];
                let bits = order.iter().enumerate().map(|(at, from)| (word[*from] as u32 & 15) << (4 * at));
                words.push(f64::from(bits.sum::<u32>() as i32));
            }
        }
        let mut wanted = Vec::new();
        for column in 0..m {
            for row in 0..n {
                let term = |at: usize| f64::from(weight[row * k + at]) * scale[row + at / 128 * n] * x[column * k + at];
                wanted.push((0..k).map(term).sum::<f64>());
            }
        }
        let case = Case::new(
            &[("N", n as i64), ("M", m as i64)],
            &[("w", words), ("scale", scale), ("x", x), ("y", vec![0.0; n * m])],
        );
        let changes = [("2048", "512"), ("16384", "4096"), ("(N,128)", "(N,32)"), ("g < 8", "g < 2"), ("x*8", "x*2")];
        let program = with("int4_product", &changes);
        agrees(&program, &case, &wanted, 1.0 / 256.0);
        // Weights are taken as they were read.
        let explained = program.compile(None).and_then(|compiled| compiled.explain()).unwrap();
        assert!(explained.conversions.iter().all(|own| own.route == Route::Registers), "{explained}");
        // An iteration reads 64 bytes of each row of weights, and the next iteration the rest of
        // the line; of a column of x it reads two lines.
        let text = ptx::write(program.compile(None).unwrap().kernel().program(), ptx::Target::Sm80).unwrap();
        let lines = |instruction: &str| text.matches(instruction).count();
        assert_eq!((lines("ld.global.L1::no_allocate.L2::128B.v4.b32"), lines("ld.global.v4.b32")), (2, 4), "{text}");
    }
}

#[test]
fn random_bits_are_those_of_the_published_generator() {
    // The known answer for a counter and a key of zeros.
    for (word, bits) in [0x6627_e8d5_u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8].into_iter().enumerate() {
        let text =
            format!("tile t {{\noutput y: i32 32:1\nwarps 1\nstore(y, (0), random(arange((32), 0), 0, {word}))\n}}");
        let program: Program = text.parse().unwrap();
        let wanted = interpret::run(&program, &[], &[]).unwrap().remove(0).1.into_iter().map(Option::unwrap);
        let wanted: Vec<f64> = wanted.collect();
        assert_eq!(wanted[0], f64::from(bits as i32), "word {word}");
        exactly(&program, &Case::new(&[], &[]), &[("y", wanted)]);
    }
}

/// Iterations that read a part of each line ask for all of it, and keep nothing in the first-level
/// cache where that part is whole sectors, each for one thread. A tile of whole lines asks for no
/// more.
#[test]
fn parts_of_lines_bring_the_rest() {
    let loads = |rows: i64, columns: i64| {
        let text = format!(
            "tile t {{\ninput x: f32 (64,512):(512,1)\noutput y: f32 ({rows},{columns}):({columns},1)\nwarps 2\n\
             loop i < 4 with sum = broadcast(f32(0), ({rows},{columns})) {{\n\
             next sum + load(x, ({rows},{columns}), (0, i))\n}} -> sum\nstore(y, (0, 0), sum)\n}}"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let text = ptx::write(program.compile(None).unwrap().kernel().program(), ptx::Target::Sm80).unwrap();
        [".L1::no_allocate.L2::128B", ".L2::128B"].map(|cache| text.contains(&format!("ld.global{cache}.")))
    };
    assert_eq!(loads(64, 8), [true, false]);
    assert_eq!(loads(64, 4), [false, true]);
    // Two threads have each element.
    assert_eq!(loads(4, 8), [false, true]);
    assert_eq!(loads(64, 32), [false, false]);
}

/// How far it is to the end of a tensor takes more than 32 bits, either way, whose low ones say
/// 300.
#[test]
fn masks_hold_for_sizes_of_more_than_32_bits() {
    let text = "tile t {\ninput x: f32 N:0\noutput y: f32 1536:1\ngrid 3\nwarps 4\n\
         store(y, (block.x), load(x, (512), (block.x*8388608)))\n}";
    let program: Program = text.parse().unwrap();
    let n = (1 << 32) + 300;
    let wanted = (0..1536).map(|at| if at < 512 + 300 { 7.0 } else { 0.0 }).collect();
    exactly(&program, &Case::new(&[("N", n)], &[("x", vec![7.0])]), &[("y", wanted)]);
    // Elements of a thread that differ by known numbers share how far it is from the first one.
    let text = ptx::write(program.compile(None).unwrap().kernel().program(), ptx::Target::Sm80).unwrap();
    let count = |instruction: &str| text.matches(instruction).count();
    assert_eq!((count("setp.lt.s64"), count("min.s64"), count("setp.lt.s32")), (1, 1, 3), "{text}");
}

#[test]
fn a_loop_that_is_written_out_may_begin_at_the_block() {
    // Tile 0 of the first iteration is that of the block, of which there are fewer than tiles.
    let program: Program = "tile t {\ninput x: f32 N:1\noutput y: f32 64:1\ngrid 2\nwarps 1\n\
         loop i < 3 with sum = broadcast(f32(0), (32)) { next sum + load(x, (32), (i*2 + block.x)) } -> sum\n\
         store(y, (block.x), sum)\n}"
        .parse()
        .unwrap();
    let x: Vec<f64> = (0..170).map(f64::from).collect();
    let at = |index: usize| x.get(index).copied().unwrap_or(0.0);
    let wanted = (0..64).map(|own| (0..3).map(|iteration| at(iteration * 64 + own)).sum()).collect();
    exactly(&program, &Case::new(&[("N", 170)], &[("x", x.clone())]), &[("y", wanted)]);
}

#[test]
fn iterations_ask_for_what_the_next_one_reads() {
    // Ten iterations of two loads of two tensors each, of tiles within the first and past its end;
    // what an iteration computes meets other lanes, so that no iteration is written out by itself.
    let text = "tile t {\ninput x: f32 (N,8):(8,1)\ninput w: f32 8:1\noutput y: f32 (M,1):(1,1)\ngrid ceil(M/4)\nwarps 2\n\
         loop i < 10 with sum = broadcast(f32(0), (4,1)) {\n\
         loop j < 2 with parts = broadcast(f32(0), (4,4)) {\n\
         next fma(load(x, (4,4), (i*3 + block.x, j)), reshape(load(w, (4), (j)), (1,4)), parts)\n\
         } -> parts\n\
         next fma(sum, f32(0.5), reduce_sum(parts, 1))\n\
         } -> sum\n\
         store(y, (block.x, 0), sum)\n}";
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (n, m) = (110_usize, 6);
    let x: Vec<f64> = (0..8 * n as u64).map(|at| ((at * 40_503) >> 3 & 15) as f64 - 7.0).collect();
    let w: Vec<f64> = (0..8).map(|at| f64::from(at) - 3.0).collect();
    let mut wanted = Vec::new();
    for row in 0..m {
        let mut sum = 0.0;
        for iteration in 0..10 {
            let at = iteration * 12 + row;
            let term = |k: usize| if at < n { x[8 * at + k] * w[k] } else { 0.0 };
            sum = sum * 0.5 + (0..8).map(term).sum::<f64>();
        }
        wanted.push(sum);
    }
    let case = Case::new(&[("N", n as i64), ("M", m as i64)], &[("x", x), ("w", w)]);
    exactly(&program, &case, &[("y", wanted)]);
    // The loads of the first iteration, those of two others in the loop, and of the last behind it.
    let text = ptx::write(program.compile(None).unwrap().kernel().program(), ptx::Target::Sm80).unwrap();
    let (before, rest) = text.split_once("LOOP_1:").unwrap();
    let (within, behind) = rest.split_once("END_2:").unwrap();
    let loads = [before, within, behind].map(|part| part.matches("ld.global").count());
    assert!(loads[0] > 0 && loads == [loads[0], 2 * loads[0], loads[0]], "{loads:?} {text}");
}
