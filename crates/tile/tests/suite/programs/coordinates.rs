//! Gathers and scatters along several modes, beside plain loops.

use super::places::exactly;
use super::run::Case;
use tilewright_tile::{GradientOptions, Program};

fn read(text: &str) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    program
}

/// The element of a matrix, row after row, or another number past its edges.
fn element(x: &[f64], [rows, columns]: [i64; 2], [row, column]: [i64; 2], other: f64) -> f64 {
    let is_inside = (0..rows).contains(&row) && (0..columns).contains(&column);
    if is_inside { x[(row * columns + column) as usize] } else { other }
}

/// Numbers between -2 and `end + 2`, past both edges.
fn places(seed: i64, count: i64, end: i64) -> Vec<i64> {
    (0..count).map(|at| (at * 37 + seed * 11 + at * at) % (end + 4) - 2).collect()
}

fn real(numbers: &[i64]) -> Vec<f64> {
    numbers.iter().map(|own| *own as f64).collect()
}

#[test]
fn rows_and_columns_meet_as_in_a_broadcast() {
    // Powers of two and others; coordinates of 32 and 64 bits.
    for (r, c, rows, columns, element_of) in [(4, 8, 5, 9, "i32"), (3, 24, 7, 30, "i64"), (16, 16, 16, 16, "i32")] {
        let program = read(&format!(
            "tile crossed {{
                 input x: f32 (M,N):(N,1)
                 input rows: {element_of} (R,1):(1,1)
                 input columns: i32 (1,C):(C,1)
                 output y: f32 (R,C):(C,1)
                 grid ceil(R/{r}), ceil(C/{c})
                 i = load(rows, ({r},1), (block.x, 0), -1)
                 j = load(columns, (1,{c}), (0, block.y), -1)
                 store(y, (block.x, block.y), load(x, ({r},{c}), (i, j), -9))
             }}"
        ));
        let x: Vec<f64> = (0..rows * columns).map(f64_of).collect();
        let (i, j) = (places(1, rows, rows), places(2, columns, columns));
        let at = |i: i64| j.iter().map(move |j| [i, *j]);
        let wanted = i.iter().flat_map(|i| at(*i)).map(|at| element(&x, [rows, columns], at, -9.0)).collect();
        let sizes = [("M", rows), ("N", columns), ("R", rows), ("C", columns)];
        let inputs = [("x", x.clone()), ("rows", real(&i)), ("columns", real(&j))];
        exactly(&program, &Case::new(&sizes, &inputs), &[("y", wanted)]);
    }
}

fn f64_of(at: i64) -> f64 {
    (at * 37 % 101) as f64 - 50.0
}

#[test]
fn each_element_has_coordinates_of_its_own() {
    for (r, c) in [(4, 8), (5, 12)] {
        let program = read(&format!(
            "tile scattered {{
                 input x: f32 (M,N):(N,1)
                 input rows: i32 (R,C):(C,1)
                 input columns: i32 (R,C):(C,1)
                 output y: f32 (R,C):(C,1)
                 grid ceil(R/{r}), ceil(C/{c})
                 i = load(rows, ({r},{c}), (block.x, block.y))
                 j = load(columns, ({r},{c}), (block.x, block.y))
                 store(y, (block.x, block.y), load(x, ({r},{c}), (i, j)) * 2)
             }}"
        ));
        let (rows, columns, m, n) = (9, 20, 6, 11);
        let x: Vec<f64> = (0..m * n).map(f64_of).collect();
        let (i, j) = (places(3, rows * columns, m), places(4, rows * columns, n));
        let wanted = i.iter().zip(&j).map(|(i, j)| 2.0 * element(&x, [m, n], [*i, *j], 0.0)).collect();
        let sizes = [("M", m), ("N", n), ("R", rows), ("C", columns)];
        let inputs = [("x", x.clone()), ("rows", real(&i)), ("columns", real(&j))];
        exactly(&program, &Case::new(&sizes, &inputs), &[("y", wanted)]);
    }
}

#[test]
fn an_index_beside_coordinates_that_vary_along_its_mode_counts_elements() {
    // Of each row the columns that are said, as `gather` of other libraries; by tiles, and from an
    // element on, of which some are outside.
    for (at, first, inside) in
        [("block.x", (4, 0), 4), ("[block.x*4 - 1 : 3]", (4, -1), 3), ("[2 + block.x]", (1, 2), 4)]
    {
        let program = read(&format!(
            "tile picked {{
                 input x: f32 (M,N):(N,1)
                 input columns: i32 (R,8):(8,1)
                 output y: f32 (R,8):(8,1)
                 grid ceil(R/4)
                 j = load(columns, (4,8), (block.x, 0))
                 store(y, (block.x, 0), load(x, (4,8), ({at}, j), 0.5))
             }}"
        ));
        let (rows, m, n) = (11, 9, 13);
        let x: Vec<f64> = (0..m * n).map(f64_of).collect();
        let j = places(5, rows * 8, n);
        let one = |(number, j): (usize, &i64)| {
            let row = number as i64 / 8;
            let own = row / 4 * first.0 + first.1 + row % 4;
            if row % 4 < inside { element(&x, [m, n], [own, *j], 0.5) } else { 0.5 }
        };
        let wanted = j.iter().enumerate().map(one).collect();
        let inputs = [("x", x.clone()), ("columns", real(&j))];
        exactly(&program, &Case::new(&[("M", m), ("N", n), ("R", rows)], &inputs), &[("y", wanted)]);
    }
}

#[test]
fn three_modes_and_one_beside_them() {
    // Page, place in the page and head are said; the elements of a head lie side by side.
    let program = read(
        "tile paged {
             input x: f32 (P,4,H,32):(128*H,32*H,32,1)
             input pages: i32 B:1
             output y: f32 (B,4,2,32):(256,64,32,1)
             grid B
             page = reshape(load(pages, (1), (block.x)), (1,1,1,1))
             place = 3 - arange((1,4,1,1), 1)
             head = arange((1,1,2,1), 2) * 2
             store(y, (block.x, 0, 0, 0), load(x, (1,4,2,32), (page, place, head, 0)))
         }"
        .replace("128*H,32*H", "384,96")
        .replace("(P,4,H,32)", "(P,4,3,32)")
        .as_str(),
    );
    let (p, pages) = (5, [3, 0, -1, 4, 5, 2]);
    let x: Vec<f64> = (0..p * 4 * 3 * 32).map(f64_of).collect();
    let mut wanted = Vec::new();
    for page in pages {
        for place in 0..4 {
            for head in 0..2 {
                for at in 0..32 {
                    let own = ((page * 4 + 3 - place) * 3 + head * 2) * 32 + at;
                    wanted.push(if (0..p).contains(&page) { x[own as usize] } else { 0.0 });
                }
            }
        }
    }
    let case = Case::new(&[("P", p), ("B", pages.len() as i64)], &[("x", x), ("pages", real(&pages))]);
    exactly(&program, &case, &[("y", wanted)]);
}

#[test]
fn tiles_are_stored_and_added_at_coordinates_along_two_modes() {
    let program = read(
        "tile put {
             input x: i32 (R,C):(C,1)
             input rows: i32 (R,1):(1,1)
             input columns: i32 (R,C):(C,1)
             inout y: i32 (M,N):(N,1)
             inout count: i32 (M,N):(N,1)
             inout total: f32 (M,N):(N,1)
             grid ceil(R/4)
             i = load(rows, (4,1), (block.x, 0), -1)
             j = load(columns, (4,12), (block.x, 0))
             a = load(x, (4,12), (block.x, 0))
             store(y, (i, j), a)
             atomic_max(count, (i % 3, j % 5), a)
             atomic_add(total, (block.x, j % 5), f32(a))
         }"
        .replace("(i % 3, j % 5)", "(k, l)")
        .replace("(block.x, j % 5)", "(block.x, l)")
        .replace("store(y, (i, j), a)", "store(y, (i, j), a)\n k = i % 3\n l = j % 5")
        .as_str(),
    );
    // Row i of y gets the columns in another order; some rows and columns are past the edges.
    let (r, c, m, n) = (7, 12, 9, 11);
    let rows: Vec<i64> = (0..r).map(|at| (at * 5 + 2) % 8).collect();
    let columns: Vec<i64> = (0..r * c).map(|at| (at % c * 5 + at / c) % c).collect();
    let x: Vec<i64> = (0..r * c).map(|at| at * 7 % 31 - 9).collect();
    let mut y = vec![-3.0; (m * n) as usize];
    let mut count = vec![0.0_f64; (m * n) as usize];
    let mut total = vec![0.5; (m * n) as usize];
    for row in 0..8 {
        let i = rows.get(row as usize).copied().unwrap_or(-1);
        for at in 0..c {
            // Past the edge of the inputs a tile has zeros.
            let place = row * c + at;
            let (j, a) = if row < r { (columns[place as usize], x[place as usize] as f64) } else { (0, 0.0) };
            if (0..m).contains(&i) && j < n {
                y[(i * n + j) as usize] = a;
            }
            let (k, l) = (i.rem_euclid(3), j % 5);
            let best = &mut count[(k * n + l) as usize];
            *best = best.max(a);
            total[(row / 4 * 4 + row % 4) as usize * n as usize + l as usize] += a;
        }
    }
    let inputs = [
        ("x", real(&x)),
        ("rows", real(&rows)),
        ("columns", real(&columns)),
        ("y", vec![-3.0; (m * n) as usize]),
        ("count", vec![0.0; (m * n) as usize]),
        ("total", vec![0.5; (m * n) as usize]),
    ];
    let sizes = [("R", r), ("C", c), ("M", m), ("N", n)];
    exactly(&program, &Case::new(&sizes, &inputs), &[("y", y), ("count", count), ("total", total)]);
}

#[test]
fn what_is_gathered_in_place_is_stored_behind_a_barrier() {
    // Each block turns a square of 8 x 8 round.
    let program = read(
        "tile turned {
             inout x: f32 (B,8,8):(64,8,1)
             grid B
             i = 7 - arange((1,8,1), 1)
             j = 7 - arange((1,1,8), 2)
             a = load(x, (1,8,8), (block.x, i, j))
             store(x, (block.x, 0, 0), a)
         }",
    );
    let x: Vec<f64> = (0..192).map(f64_of).collect();
    let wanted = x.chunks(64).flat_map(|own| own.iter().rev().copied()).collect();
    exactly(&program, &Case::new(&[("B", 3)], &[("x", x)]), &[("x", wanted)]);
}

#[test]
fn the_derivative_of_a_gather_along_two_modes_is_added_where_it_was_read() {
    let program = read(
        "tile looked {
             input x: f32 (M,N):(N,1)
             input rows: i32 (R,8):(8,1)
             input columns: i32 (R,8):(8,1)
             output y: f32 (R,8):(8,1)
             grid ceil(R/4)
             i = load(rows, (4,8), (block.x, 0), -1)
             j = load(columns, (4,8), (block.x, 0))
             a = load(x, (4,8), (i, j))
             store(y, (block.x, 0), a * a)
         }",
    );
    let refused = program.gradient(&GradientOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("added by atomics alone"), "{refused}");
    let gradient = program.gradient(&GradientOptions { atomic: true, ..GradientOptions::default() }).unwrap();
    let (r, m, n) = (6, 5, 7);
    let x: Vec<f64> = (0..m * n).map(|at| (at % 9) as f64 - 4.0).collect();
    let d_y: Vec<f64> = (0..r * 8).map(|at| (at % 5) as f64 - 2.0).collect();
    let (i, j) = (places(6, r * 8, m), places(7, r * 8, n));
    let mut wanted = vec![0.0; x.len()];
    for ((i, j), d) in i.iter().zip(&j).zip(&d_y) {
        if (0..m).contains(i) && (0..n).contains(j) {
            let at = (i * n + j) as usize;
            wanted[at] += 2.0 * d * x[at];
        }
    }
    let inputs = [("x", x), ("rows", real(&i)), ("columns", real(&j)), ("d_y", d_y), ("d_x", vec![0.0; wanted.len()])];
    let sizes = [("M", m), ("N", n), ("R", r)];
    exactly(&gradient.programs()[0], &Case::new(&sizes, &inputs), &[("d_x", wanted)]);
}
