//! Reductions that are made together, barriers of areas that iterations use again, and elements
//! that are past an end in every thread: beside plain loops, and counted in the text of the kernel.

use super::run::{Case, kernel};
use tilewright_kernel::ptx::{self, Target};
use tilewright_tile::{Compiled, Program};

fn read(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn count(compiled: &Compiled, word: &str) -> usize {
    ptx::write(compiled.kernel().program(), Target::Sm90a).unwrap().matches(word).count()
}

/// Whole numbers from -3 to 4: their sums are exact in any order.
fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|at| ((at * 37 + at / 5) % 8) as f64 - 3.0).collect()
}

#[test]
fn sums_that_do_not_depend_on_each_other_have_one_barrier() {
    // The squares are summed with the row. The third sum needs the first.
    let program = read(
        "tile moments {
    input  x: f32 (M,512):(512,1)
    output y: f32 (M,1):(1,1)
    output z: f32 (M,1):(1,1)
    grid ceil(M/8)
    warps 4
    loop i < 8 {
        a = load(x, (1,512), (block.x*8 + i, 0))
        sum = reduce_sum(a, 1)
        more = a * 2
        squares = reduce_sum(more * a, 1)
        apart = a - sum
        rest = reduce_sum(apart * a, 1)
        store(y, (block.x*8 + i, 0), squares + sum)
        store(z, (block.x*8 + i, 0), rest)
    }
}",
    );
    let compiled = program.compile(None).unwrap();
    // Iterations are written in pairs, in a loop and behind it, and each meets twice.
    assert_eq!(count(&compiled, "bar.sync"), 8);
    let rows = 11;
    let x = numbers(rows * 512);
    let sum = |row: &[f64]| row.iter().sum::<f64>();
    let squares = |row: &[f64]| row.iter().map(|x| 2.0 * x * x).sum::<f64>() + sum(row);
    let rest = |row: &[f64]| row.iter().map(|x| (x - sum(row)) * x).sum::<f64>();
    let case = Case::new(&[("M", rows as i64)], &[("x", x.clone())]);
    let wanted = |of: &dyn Fn(&[f64]) -> f64| x.chunks(512).map(of).collect::<Vec<f64>>();
    assert_eq!(kernel(&compiled, &case, "y"), wanted(&squares));
    assert_eq!(kernel(&compiled, &case, "z"), wanted(&rest));
}

#[test]
fn an_area_that_one_exchange_uses_in_each_iteration_has_a_barrier_in_front() {
    // The number of iterations is not known, so they are not written in pairs.
    let program = read(
        "tile sums {
    input  x: f32 (M,512):(512,1)
    output y: f32 (M,1):(1,1)
    grid 1
    warps 4
    loop i < M {
        store(y, (i, 0), reduce_sum(load(x, (1,512), (i, 0)), 1))
    }
}",
    );
    let compiled = program.compile(None).unwrap();
    assert_eq!(count(&compiled, "bar.sync"), 2);
    let x = numbers(5 * 512);
    let case = Case::new(&[("M", 5)], &[("x", x.clone())]);
    let wanted: Vec<f64> = x.chunks(512).map(|row| row.iter().sum()).collect();
    assert_eq!(kernel(&compiled, &case, "y"), wanted);
}

#[test]
fn elements_past_an_end_in_every_thread_are_not_moved_nor_compared() {
    // A warp has a row: 32 lanes of 8 elements, three times. A fourth time there is nothing.
    let program = read(
        "tile doubled {
    input  x: bf16 (M,768):(768,1)
    output y: bf16 (M,768):(768,1)
    output z: f32 (M,1):(1,1)
    grid ceil(M/4)
    warps 4
    a = f32(load(x, (4,768), (block.x, 0), 5))
    store(y, (block.x, 0), bf16(a * 2))
    store(z, (block.x, 0), reduce_sum(a, 1))
}",
    );
    let compiled = program.compile(None).unwrap();
    assert_eq!((count(&compiled, "ld.global.v4"), count(&compiled, "st.global.v4")), (3, 3));
    assert_eq!(count(&compiled, "768;"), 0);
    let x = numbers(6 * 768);
    let case = Case::new(&[("M", 6)], &[("x", x.clone())]);
    assert_eq!(kernel(&compiled, &case, "y"), x.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert_eq!(kernel(&compiled, &case, "z"), x.chunks(768).map(|row| row.iter().sum()).collect::<Vec<f64>>());
}
