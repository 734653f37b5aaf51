//! Loads that go through rings of each thread: values beside plain loops, and what is copied.

use super::run::{Case, kernel};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::{self, Target};
use tilewright_tile::{Compiled, Program};

/// Rows in a loop that carries a sum of each column. `pitch` is the fact about the distance of
/// rows.
fn compiled(element: &str, [length, warps, tiles]: [i64; 3], pitch: &str, machine: Option<&Machine>) -> Compiled {
    let text = format!(
        "tile columns {{
    input  x: {element} (M,{length}):(x_pitch{pitch},1)
    output y: {element} (M,{length}):({length},1)
    output sums: f32 (ceil(M/{all}),{length}):({length},1)
    grid ceil(M/{all})
    warps {warps}
    loop i < {tiles} with sum = broadcast(f32(0), (2,{length})) {{
        a = f32(load(x, (2,{length}), (block.x*{tiles} + i, 0)))
        store(y, (block.x*{tiles} + i, 0), {element}(a * 2))
        next sum + a
    }} -> sum
    store(sums, (block.x, 0), reduce_sum(sum, 0))
}}",
        all = 2 * tiles
    );
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    program.compile(machine).unwrap()
}

fn copies(compiled: &Compiled) -> usize {
    let text = ptx::write(compiled.kernel().program(), Target::Sm90a).unwrap();
    text.matches("cp.async").count()
}

#[test]
fn loads_of_a_loop_that_carries_many_registers_go_through_rings_of_each_thread() {
    // Iterations that fill the ring once, and that end in the middle of it; columns past the end in
    // every thread; and blocks with rows past the end. Rings have fewer stages without a machine.
    let h200 = Machine::named("H200").unwrap();
    for (element, length, warps, tiles, machine) in [
        ("bf16", 768, 2, 4, Some(&h200)),
        ("bf16", 1024, 4, 13, Some(&h200)),
        ("f32", 512, 2, 5, None),
        ("f16", 136, 1, 6, None),
    ] {
        let rows = 4 * tiles - 3;
        let compiled = compiled(element, [length, warps, tiles], "{div=8}", machine);
        assert_ne!(copies(&compiled), 0, "{element} {length}");
        let columns = length as usize;
        let x: Vec<f64> = (0..rows as usize * columns).map(|at| ((at * 37 + at / 7) % 9) as f64 - 4.0).collect();
        let case = Case::new(&[("M", rows), ("x_pitch", length)], &[("x", x.clone())]);
        let doubled: Vec<f64> = x.iter().map(|x| 2.0 * x).collect();
        assert_eq!(kernel(&compiled, &case, "y"), doubled, "{element} {length}");
        let sums: Vec<f64> = x
            .chunks(2 * tiles as usize * columns)
            .flat_map(|block| (0..columns).map(|column| block.iter().skip(column).step_by(columns).sum()))
            .collect();
        assert_eq!(kernel(&compiled, &case, "sums"), sums, "{element} {length}");
    }
}

#[test]
fn rows_that_begin_anywhere_and_loops_of_few_iterations_have_no_rings() {
    for (tiles, pitch) in [(4, ""), (3, "{div=8}")] {
        let compiled = compiled("bf16", [768, 2, tiles], pitch, None);
        assert_eq!(copies(&compiled), 0);
        let x = vec![1.5; 5 * 768];
        let case = Case::new(&[("M", 5), ("x_pitch", 768)], &[("x", x)]);
        assert_eq!(kernel(&compiled, &case, "y"), vec![3.0; 5 * 768]);
    }
}
