//! Results whose lines end inside a chunk of 16 bytes.
//!
//! Law: nothing outside D is written. Bulk stores write whole chunks, so they store only a D whose
//! lines are whole chunks; the interpreter finds those that are not (E1041).

use tilewright_kernel::Element;
use tilewright_kernel::program::Program;
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Problems, Product, Products, Window};

use crate::gemm::{BF16, checked, function, h200, matrix, plan};

fn problem(element: Element, [a, b]: [&str; 2], result: Element, d: &str) -> Problem {
    Problem::of(matrix(element, a), matrix(element, b), matrix(result, d)).unwrap()
}

/// Whether a kernel stores in bulk: to tensors whose lines are whole chunks, then.
fn stores_in_bulk(program: &Program) -> bool {
    let text = tilewright_kernel::ptx::write(program, tilewright_kernel::ptx::Target::Sm90a).unwrap();
    text.contains(".bulk_group")
}

/// Whether the product of a plan stores in bulk; it is right in the interpreter.
fn bulk(problem: &Problem, plan: &Plan) -> bool {
    let (product, compared) = checked(problem, plan);
    let [m, n, _] = problem.sizes();
    assert_eq!(compared, m * n * problem.batch());
    product.kernels().iter().any(|kernel| stores_in_bulk(kernel.program()))
}

#[test]
fn lines_that_end_inside_a_chunk_are_stored_by_threads() {
    let factors = ["(9,24):(24,1)", "(21,24):(24,1)"];
    let by_columns = ["(21,24):(24,1)", "(9,24):(24,1)"];
    for (factor, result, d, whole) in [
        // Rows of 21 of an array with 24 or more; the same of whole chunks.
        (BF16, BF16, "(9,21):(24,1)", "(9,24):(24,1)"),
        (Element::F16, Element::F16, "(9,21):(40,1)", "(9,24):(40,1)"),
        (BF16, Element::F32, "(9,21):(24,1)", "(9,20):(24,1)"),
        (Element::I8, Element::I32, "(9,21):(24,1)", "(9,20):(24,1)"),
    ] {
        let of = |d: &str, columns: i64| {
            let b = format!("({columns},32):(32,1)");
            problem(factor, ["(9,32):(32,1)", &b], result, d)
        };
        let columns = matrix(result, whole).extents()[1];
        for own in [plan(64, 32, 1), Plan { swapped: true, ..plan(64, 16, 1) }] {
            assert!(!bulk(&of(d, 21), &own), "{d}: {own}");
            assert!(bulk(&of(whole, columns), &own), "{whole}: {own}");
        }
    }
    // Columns of 21; one row, of which the last chunk would go past the end of the allocation; one
    // column; several matrices.
    let small = plan(64, 16, 1);
    assert!(!bulk(&problem(BF16, by_columns, BF16, "(21,9):(1,24)"), &plan(64, 16, 1)));
    assert!(bulk(&problem(BF16, ["(24,24):(24,1)", by_columns[1]], BF16, "(24,9):(1,24)"), &small));
    assert!(!bulk(&problem(BF16, ["(1,24):(24,1)", factors[1]], BF16, "(1,21):(21,1)"), &small));
    assert!(!bulk(&problem(BF16, ["(9,24):(24,1)", "(1,24):(24,1)"], BF16, "(9,1):(8,1)"), &small));
    let batch = ["(9,24,2):(24,1,216)", "(21,24,2):(24,1,504)"];
    assert!(!bulk(&problem(BF16, batch, BF16, "(9,21,2):(24,1,216)"), &small));
}

/// A matrix that the engine reads could come into the shared memory through which D leaves, and a
/// vector into its own. Threads that write D from there leave no room for the matrix (E1019).
#[test]
fn inputs_come_beside_results_that_threads_store() {
    let c = |steps: [i64; 2]| Matrix::strided(BF16, [70, 21, 1], [steps[0], steps[1], 0]).unwrap();
    for steps in [[24, 1], [21, 1], [0, 1], [1, 0]] {
        let own = problem(BF16, ["(70,24):(24,1)", "(21,24):(24,1)"], BF16, "(70,21):(32,1)");
        let own = own.fused(function("relu(x + c)", &["x", "c"], vec![c(steps)])).unwrap();
        assert!(!bulk(&own, &Plan { blocks: 1, ..plan(64, 16, 1) }));
    }
}

#[test]
fn pairs_end_inside_chunks_too() {
    let gate = || function("silu(x) * y", &["x", "y"], vec![]);
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        for (columns, in_bulk) in [(21, false), (24, true)] {
            let rows = |extents| Matrix::rows(BF16, extents).unwrap();
            let d = Matrix::strided(BF16, [9, columns, 1], [32, 1, 0]).unwrap();
            let own = Problem::gated(rows([9, 24]), rows([2 * columns, 24]), d, pairs, gate()).unwrap();
            assert_eq!(bulk(&own, &plan(64, 32, 1)), in_bulk, "{pairs:?} {columns}");
        }
    }
}

/// A list stores all its results alike: those that bulk copies do not store are moved from a
/// workspace whose rows are whole chunks.
#[test]
fn lists_have_a_workspace_of_whole_chunks() {
    let of = |[m, n, k]: [i64; 3], line: i64, result: Element| {
        let d = Matrix::strided(result, [m, n, 1], [line, 1, 0]).unwrap();
        Problem::of(Matrix::rows(BF16, [m, k]).unwrap(), Matrix::rows(BF16, [n, k]).unwrap(), d).unwrap()
    };
    for result in [BF16, Element::F32] {
        for list in [
            vec![of([9, 21, 24], 24, result), of([17, 24, 16], 24, result)],
            vec![of([9, 24, 24], 24, result), of([1, 21, 16], 32, result)],
            vec![of([9, 21, 24], 24, result)],
        ] {
            let elements: i64 = list.iter().map(|own| own.sizes()[0] * own.sizes()[1]).sum();
            let list = Problems::new(list).unwrap();
            let products = Products::planned(&list, &plan(64, 32, 1), &h200()).unwrap();
            let report = products.check().unwrap_or_else(|error| panic!("{list}: {error}"));
            assert_eq!(report.compared as i64, elements);
        }
    }
}

/// Rows of pixels, contiguous in D: the first axis is the innermost one, whose end counts.
#[test]
fn folded_rows_end_inside_chunks_too() {
    for (width, line) in [(7, 64), (8, 64)] {
        let images = matrix(BF16, &format!("(16,({width},4,1)):(1,(16,{},{}))", 16 * width, 64 * width));
        let (m, k) = (width * 4, 16);
        let filters = Matrix::rows(BF16, [8, k]).unwrap();
        let d = Matrix::strided(BF16, [m, 8, 1], [1, line, 0]).unwrap();
        let own = Problem::convolution(images, filters, d, Window::of([1, 1])).unwrap();
        checked(&own, &plan(64, 8, 1));
    }
}

/// The plan of the model, for every number of columns.
#[test]
fn every_width_is_right() {
    for columns in (1..=26).step_by(3) {
        for (result, line) in [(BF16, 32), (Element::F32, 28)] {
            let d = Matrix::strided(result, [5, columns, 1], [line, 1, 0]).unwrap();
            let of = |rows| Matrix::rows(BF16, [rows, 16]).unwrap();
            let own = Problem::of(of(5), of(columns), d).unwrap();
            let product = Product::new(&own, &h200()).unwrap();
            let report = product.check().unwrap_or_else(|error| panic!("{own}: {error}"));
            assert_eq!(report.compared as i64, 5 * columns);
        }
    }
}
