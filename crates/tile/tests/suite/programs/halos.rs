//! Stencils, convolutions and rows by offsets, whose grid is not the number of tiles of their
//! tensors.
//!
//! Law: they are plain loops over arrays that have zeros around them; and layouts of gathers are
//! weighed by the addresses that coordinates have.

use tilewright_tile::Program;

use super::run::Case;
use super::{agrees, numbers};

fn program(text: &str) -> Program {
    Program::read("halos.tile", text).unwrap_or_else(|error| panic!("{error}"))
}

/// An element of rows of `width`, 0 outside.
fn at(x: &[f64], width: i64, i: i64, j: i64) -> f64 {
    let inside = (0..width).contains(&j) && (0..x.len() as i64 / width).contains(&i);
    if inside { x[(i * width + j) as usize] } else { 0.0 }
}

/// The sum of nine gathers: rows by the block, columns by tiles of coordinates.
fn stencil(padding: i64) -> String {
    let mut text = format!(
        "tile stencil {{\n input x: f32 (H{padded},W{padded}):(W{padded},1)\n output y: f32 (H,W):(W,1)\n \
         grid H, ceil(W/128)\n warps 1\n column = index(block.y*128) + arange((1,128), 1)\n",
        padded = if padding == 0 { String::new() } else { format!("+{padding}") },
    );
    let before = if padding == 0 { -1 } else { 0 };
    for part in 0..9 {
        let (a, b) = (part / 3 + before, part % 3 + before);
        let sum = if part == 0 { String::new() } else { format!(" + v{}", part - 1) };
        text += &format!(" c{part} = column + {b}\n v{part} = load(x, (1,128), (block.x + {a}, c{part})){sum}\n");
    }
    text + " store(y, (block.x, block.y), v8)\n}"
}

#[test]
fn stencils_read_halos_and_what_lies_outside_is_zero() {
    for (padding, h, w) in [(2, 3, 130), (0, 3, 130), (0, 1, 1), (2, 4, 7)] {
        let x = numbers(7, ((h + padding) * (w + padding)) as usize, 1.0);
        let before = if padding == 0 { -1 } else { 0 };
        let wanted: Vec<f64> = (0..h * w)
            .map(|ij| {
                let part = |ab: i64| at(&x, w + padding, ij / w + ab / 3 + before, ij % w + ab % 3 + before);
                (0..9).map(part).sum()
            })
            .collect();
        let program = program(&stencil(padding));
        agrees(&program, &Case::new(&[("H", h), ("W", w)], &[("x", x)]), &wanted, 1e-6);
    }
}

#[test]
fn tiles_before_the_first_are_zero() {
    let text = "tile before {\n input x: f32 (M,64):(64,1)\n output y: f32 (M,64):(64,1)\n grid ceil(M/4)\n \
                store(y, (block.x, 0), load(x, (4,64), (block.x - 1, 0)) + load(x, (4,64), (block.x + 1, 0)))\n}";
    let x = numbers(3, 10 * 64, 1.0);
    let wanted: Vec<f64> =
        (0..640).map(|ij| at(&x, 64, ij / 64 - 4, ij % 64) + at(&x, 64, ij / 64 + 4, ij % 64)).collect();
    agrees(&program(text), &Case::new(&[("M", 10)], &[("x", x)]), &wanted, 1e-6);
}

#[test]
fn tiles_of_any_extents_that_end_before_the_first_element_are_zero() {
    /// Of a block: the row and the column of the first element, and how many columns count.
    type First = fn(i64) -> [i64; 3];
    let cases: [(&str, First); 4] = [
        ("0, block.x - 3", |block| [0, block * 5 - 15, 5]),
        ("block.x - 4, 0", |block| [block * 10 - 40, 0, 5]),
        ("[block.x*3 - 29], block.x", |block| [block * 3 - 29, block * 5, 5]),
        ("0, [block.x*5 - 20 : 4]", |block| [0, block * 5 - 20, 4]),
    ];
    for (index, first) in cases {
        let text = format!(
            "tile before {{\n input x: f32 (M,64):(64,1)\n output y: f32 (M,64):(64,1)\n grid 13\n \
             store(y, (0, block.x), load(x, (10,5), ({index})))\n}}"
        );
        let x = numbers(3, 10 * 64, 1.0);
        let element = |ij: i64| {
            let ([row, column, count], i, j) = (first(ij % 64 / 5), ij / 64, ij % 64 % 5);
            if j < count { at(&x, 64, row + i, column + j) } else { 0.0 }
        };
        let wanted: Vec<f64> = (0..640).map(element).collect();
        agrees(&program(&text), &Case::new(&[("M", 10)], &[("x", x.clone())]), &wanted, 0.0);
    }
}

#[test]
fn rows_by_offsets_have_one_more_offset_than_there_are_rows() {
    let text = "tile rows {\n input offsets: i32 S+1:1\n input x: f32 N:1\n output y: f32 S:1\n grid S\n \
                from = load(offsets, (1), (block.x))\n to = load(offsets, (1), (block.x + 1))\n \
                loop i < [shr(to - from + 63, 6)] with sum = broadcast(f32(0), (1)) {\n \
                place = from + index(i*64) + arange((64), 0)\n \
                part = load(x, (64), (place))\n \
                next sum + reduce_sum(select(place < to, part, 0), 0)\n } -> sum\n \
                store(y, (block.x), sum)\n}";
    let x = numbers(5, 200, 1.0);
    let offsets = [0, 3, 3, 110, 200];
    let wanted: Vec<f64> = offsets.windows(2).map(|row| x[row[0]..row[1]].iter().sum()).collect();
    let given = offsets.map(|at| at as f64).to_vec();
    agrees(&program(text), &Case::new(&[("S", 4), ("N", 200)], &[("offsets", given), ("x", x)]), &wanted, 1e-5);
}

#[test]
fn convolutions_step_over_both_edges() {
    // The step between results, that between taps, and the padding.
    for [step, apart, before] in [[2, 1, 1], [1, 3, 3], [3, 2, 4]] {
        let mut text = format!(
            "tile line {{\n input x: f32 N:1\n input w: f32 4:1\n output y: f32 M:1\n grid ceil(M/64)\n \
             first = (index(block.x*64) + arange((64), 0)) * {step} - {before}\n"
        );
        for tap in 0..3 {
            let sum = if tap == 0 { String::new() } else { format!(" + v{}", tap - 1) };
            let place = tap * apart;
            text +=
                &format!(" c{tap} = first + {place}\n v{tap} = load(x, (64), (c{tap})) * load(w, (1), ({tap})){sum}\n");
        }
        text += " store(y, (block.x), v2)\n}";
        let (x, w) = (numbers(2, 150, 1.0), numbers(9, 4, 1.0));
        let part = |at: i64| if (0..150).contains(&at) { x[at as usize] } else { 0.0 };
        let wanted: Vec<f64> =
            (0..70).map(|m| (0..3).map(|tap| w[tap as usize] * part(m * step + tap * apart - before)).sum()).collect();
        let given = [("x", x.clone()), ("w", w.clone())];
        agrees(&program(&text), &Case::new(&[("N", 150), ("M", 70)], &given), &wanted, 1e-5);
    }
}

#[test]
fn gathers_are_weighed_by_the_addresses_of_their_coordinates() {
    use tilewright_kernel::cost::Machine;
    // Columns side by side: lanes read neighbours, since each coordinate has an access of its own.
    let compiled = program(&stencil(2)).compile(None).unwrap();
    let explained = compiled.explain().unwrap();
    let mut loads = explained.program.lines().filter(|line| line.contains("load(x"));
    assert!(loads.all(|line| line.ends_with("by (32,4):(1,32)")), "{explained}");
    assert!(explained.assumed.is_empty(), "{explained}");
    let sectors = |program: &Program| {
        let compiled = program.compile(None).unwrap();
        let cost = compiled.kernel().program().cost(&Machine::named("H200").unwrap(), &[("H", 64), ("W", 4096)]);
        let cost = cost.unwrap();
        cost.sectors()
    };
    // The layout that was chosen before, by hand.
    let apart = stencil(2).replace(
        "column = index(block.y*128) + arange((1,128), 1)",
        "column = held(index(block.y*128) + arange((1,128), 1), \"(32,4):(4,1)\")",
    );
    let apart = (0..9).fold(apart, |text, part| {
        let load = format!("load(x, (1,128), (block.x + {}, c{part}))", part / 3);
        text.replace(&load, &format!("held({load}, \"(32,4):(4,1)\")"))
    });
    let (chosen, other) = (sectors(&program(&stencil(2))), sectors(&program(&apart)));
    assert!(2 * chosen < other, "{chosen} of {other}");
    // What is read from memory is not known, and that is said.
    let text = "tile rows {\n input x: f32 (T,64):(64,1)\n input rows: i32 (M,1):(1,1)\n output y: f32 (M,64):(64,1)\n \
                grid ceil(M/4)\n from = load(rows, (4,1), (block.x, 0), -1)\n \
                store(y, (block.x, 0), load(x, (4,64), (from, 0)))\n}";
    let explained = program(text).compile(None).unwrap().explain().unwrap();
    assert_eq!(explained.assumed.len(), 1, "{explained}");
    assert!(explained.to_string().contains("the coordinates of the load of x at line 7 are not known"), "{explained}");
}
