//! Tensors that are loaded from and stored to, beside plain loops. The interpreter of kernels finds
//! an element that one thread stores to while another may still load it.

use super::compare;
use crate::programs::run::{Case, kernel};
use tilewright_layout::Refusal;
use tilewright_tile::{GradientOptions, Program, interpret};

fn program(statements: &str) -> Program {
    let text = format!("tile changes {{\n inout x: f32 (M,256):(256,1)\n grid M\n warps 4\n {statements}\n}}");
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn barriers(program: &Program) -> usize {
    let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}"));
    let text = tilewright_kernel::ptx::write(compiled.kernel().program(), tilewright_kernel::ptx::Target::Sm80);
    text.unwrap().matches("bar.sync").count()
}

/// What an element of a row becomes.
type Meaning = fn(&[f64], usize) -> f64;

/// Statements, whether threads wait for each other, and what a row becomes.
const CASES: [(&str, bool, Meaning); 6] = [
    // Each thread changes what it has loaded.
    ("store(x, (block.x, 0), load(x, (1,256), (block.x, 0)) * 2)", false, |row, at| row[at] * 2.0),
    // All threads load the first element.
    (
        "first = load(x, (1,1), (block.x, 0))\nstore(x, (block.x, 0), load(x, (1,256), (block.x, 0)) + first)",
        true,
        |row, at| row[at] + row[0],
    ),
    // Halves change places: a thread stores to elements that it has loaded, each from the other
    // half.
    (
        "low = load(x, (1,128), (block.x, 0))\nhigh = load(x, (1,128), (block.x, 1))\n\
         store(x, (block.x, 0), high)\nstore(x, (block.x, 1), low)",
        false,
        |row, at| row[at ^ 128],
    ),
    // The halves are apart, and each thread changes what it has loaded.
    (
        "low = load(x, (1,128), (block.x, 0))\nhigh = load(x, (1,128), (block.x, 1))\n\
         store(x, (block.x, 0), low - high)\nstore(x, (block.x, 1), low + high)",
        false,
        |row, at| if at < 128 { row[at] - row[at + 128] } else { row[at] + row[at - 128] },
    ),
    // A loop reads all, and the next one changes it part by part.
    (
        "loop i < 16 with sum = broadcast(f32(0), (1,16)) { next sum + load(x, (1,16), (block.x, i)) } -> sum\n\
         loop j < 16 { store(x, (block.x, j), load(x, (1,16), (block.x, j)) - sum) }",
        true,
        |row, at| row[at] - row.iter().skip(at % 16).step_by(16).sum::<f64>(),
    ),
    // Behind the store, the same iteration loads what the next one stores to.
    (
        "none = broadcast(f32(0), (1,64))\nloop j < 3 with last = none {\n\
         store(x, (block.x, j), last)\nnext load(x, (1,64), (block.x, [j*64 + 65])) } -> last",
        true,
        |row, at| match at {
            0..64 => 0.0,
            64..192 => row[at + 1],
            _ => row[at],
        },
    ),
];

#[test]
fn elements_are_loaded_before_they_are_stored_to() {
    for (statements, waits, meaning) in CASES {
        let program = program(statements);
        let rows = 3;
        let x: Vec<f64> = (0..rows * 256).map(|at| (at * 37 % 101) as f64).collect();
        let wanted: Vec<f64> = (0..x.len()).map(|at| meaning(&x[at / 256 * 256..][..256], at % 256)).collect();
        let inputs = [("x", x)];
        let case = Case::new(&[("M", rows as i64)], &inputs);
        let meant = interpret::run(&program, &case.sizes, &case.inputs).unwrap_or_else(|error| panic!("{error}"));
        compare("the interpreter's x", &meant[0].1, &wanted, 0.0);
        let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<Option<f64>> = kernel(&compiled, &case, "x").into_iter().map(Some).collect();
        compare("the kernel's x", &found, &wanted, 0.0);
        assert_eq!(barriers(&program) > 0, waits, "{statements}");
    }
}

#[test]
fn an_element_that_is_changed_is_no_other_blocks_and_not_loaded_again() {
    for statements in [
        // The row of another block.
        "store(x, (block.x, 0), load(x, (1,256), (block.x + 1, 0)))",
        // What was stored before.
        "a = load(x, (1,256), (block.x, 0))\nstore(x, (block.x, 0), a)\nstore(x, (block.x + 7, 0), load(x, (1,256), (block.x, 0)))",
        // What all blocks load, one changes.
        "a = load(x, (1,256), (1, 0))\nstore(x, (block.x, 0), a)",
    ] {
        let program = program(statements);
        let error = interpret::run(&program, &[("M", 3)], &[("x", vec![1.0; 768])]).unwrap_err();
        assert_eq!(error.code(), "E1210", "{error}");
        assert!(error.to_string().contains("is loaded after it was stored to, or by another block"), "{error}");
    }
}

#[test]
fn a_program_that_changes_what_it_loads_has_no_gradient() {
    let text = "tile changes {\n input w: f32 256:1\n inout x: f32 256:1\n output y: f32 256:1\n a = load(x, (256), (0))\n \
                store(x, (0), a * 2)\n store(y, (0), a * load(w, (256), (0)))\n}";
    let program: Program = text.parse().unwrap();
    let error = program.gradient(&GradientOptions::default()).unwrap_err();
    assert_eq!((error.code(), error.place().map(|place| place.line())), ("E1213", Some(5)), "{error}");
    assert!(error.to_string().contains("is gone behind the program"), "{error}");
}
