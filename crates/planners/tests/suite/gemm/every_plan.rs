//! The candidate plans of the model, for problems of every kind. The interpreter runs the kernels
//! of each, and every element is compared with a plain loop.
//!
//! A problem has some hundred candidates, of several kinds. Each test runs a sample: every twelfth
//! kind of a problem, with another start for the next problem, so that several problems cover each
//! kind. `TILEWRIGHT_EXHAUSTIVE=1` runs all kinds of all problems, which takes more than an hour on
//! two cores: name one test, such as `every_plan::of_every_layout`, to run a part.

use std::collections::BTreeSet;

use tilewright_kernel::Element;
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Product, Scales, Window};

use crate::gemm::{BF16, function, h200, matrix};

/// Kinds of which one is run.
const TURNS: usize = 12;

/// What makes kernels differ besides the columns of a tile and the number of stages.
fn kind(plan: &Plan) -> ([bool; 5], [i64; 3]) {
    let several = [plan.swapped, plan.split_k > 1, plan.tail > 0, plan.blocks_per_sm > 1, plan.ping_pong];
    (several, [plan.rows, plan.warpgroups, plan.cluster])
}

/// Runs the plan of the model, and plans of other kinds; says how many.
fn right(number: usize, problem: &Problem) -> usize {
    let turns = if std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some() { 1 } else { TURNS };
    let (mut kinds, mut run) = (BTreeSet::new(), 0);
    for (_, plan) in Product::candidates(problem, &h200()).unwrap() {
        if kinds.insert(kind(&plan)) && (kinds.len() == 1 || (kinds.len() + number).is_multiple_of(turns)) {
            let product =
                Product::planned(problem, &plan, &h200()).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
            product.check().unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
            run += 1;
        }
    }
    run
}

fn dense(element: Element, [m, n, k]: [i64; 3], result: Element) -> Problem {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    Problem::of(rows(element, [m, k]), rows(element, [n, k]), rows(result, [m, n])).unwrap()
}

#[test]
fn of_every_type() {
    let mut kinds = 0;
    for (number, (element, result, sizes)) in [
        (BF16, BF16, [136, 136, 136]),
        (Element::F16, Element::F32, [72, 136, 136]),
        (Element::F32, Element::F32, [40, 40, 24]),
        (Element::E4M3, BF16, [72, 136, 272]),
        (Element::E5M2, Element::E5M2, [72, 40, 272]),
        (Element::I8, Element::I32, [72, 80, 272]),
        (Element::U8, Element::I32, [40, 144, 144]),
    ]
    .into_iter()
    .enumerate()
    {
        kinds += right(number, &dense(element, sizes, result));
    }
    kinds += right(7, &dense(Element::F32, [72, 136, 72], Element::F32).in_tf32());
    kinds += right(8, &dense(Element::E4M3, [72, 72, 272], BF16).fast());
    assert!(kinds > 9, "{kinds} plans");
}

#[test]
fn of_every_layout() {
    let of = |[a, b, d]: [&str; 3]| Problem::of(matrix(BF16, a), matrix(BF16, b), matrix(BF16, d)).unwrap();
    for (number, layouts) in [
        ["(136,72):(1,136)", "(144,72):(1,144)", "(136,144):(1,136)"],
        ["(70,72):(80,1)", "(50,72):(72,1)", "(70,50):(51,1)"],
        ["(72,40,3):(40,1,2880)", "(80,40,3):(40,1,0)", "(72,80,3):(80,1,5760)"],
        ["((12,12),72):((72,1008),1)", "(40,72):(72,1)", "(144,40):(40,1)"],
    ]
    .into_iter()
    .enumerate()
    {
        right(number, &of(layouts));
    }
    let (images, filters) = (matrix(BF16, "(64,(8,8,1)):(1,(64,512,4096))"), matrix(BF16, "(24,576):(576,1)"));
    let window = Window::of([3, 3]).padded([1, 1]);
    right(5, &Problem::convolution(images, filters, matrix(BF16, "(64,24):(24,1)"), window).unwrap());
}

#[test]
fn of_every_epilogue() {
    let inputs = || vec![matrix(BF16, "(136,144):(0,1)"), matrix(BF16, "(136,144):(144,1)")];
    let fused = function("relu(x + bias) + c", &["x", "bias", "c"], inputs());
    right(6, &dense(BF16, [136, 144, 136], BF16).fused(fused.clone()).unwrap());
    let kept = dense(BF16, [136, 144, 136], BF16).fused(fused).unwrap();
    right(
        7,
        &kept.reducing("row max abs(d)".parse().unwrap()).unwrap().reducing("column sum".parse().unwrap()).unwrap(),
    );
    let gate = || function("silu(x) * y", &["x", "y"], vec![]);
    let [a, b, d] = ["(136,136):(136,1)", "(256,136):(136,1)", "(136,128):(128,1)"].map(|lies| matrix(BF16, lies));
    for (number, pairs) in [Pairs::Neighbours, Pairs::Halves].into_iter().enumerate() {
        right(number, &Problem::gated(a.clone(), b.clone(), d.clone(), pairs, gate()).unwrap());
    }
    let scales = |m: i64, n: i64, k: i64, groups: i64| Scales {
        a: Matrix::columns(Element::F32, [m, (k + 127) / 128]).unwrap(),
        b: Matrix::strided(Element::F32, [n, (k + 127) / 128, groups], [1, n, n * ((k + 127) / 128)]).unwrap(),
    };
    right(9, &dense(Element::E4M3, [72, 144, 400], BF16).scaled(scales(72, 2, 400, 1)).unwrap());
    // Groups of rows: of bf16, and of floats of 8 bits with scales and pairs.
    let grouped = |element: Element, columns: i64| {
        let b = Matrix::strided(element, [columns, 144, 3], [144, 1, 144 * columns]).unwrap();
        (Matrix::rows(element, [100, 144]).unwrap(), b, Matrix::rows(BF16, [100, 64]).unwrap())
    };
    let (a, b, d) = grouped(BF16, 64);
    right(10, &Problem::grouped(a, b, d).unwrap());
    let (a, b, d) = grouped(Element::E4M3, 128);
    let pairs = Problem::grouped_pairs(a, b, d, Pairs::Neighbours, gate()).unwrap();
    right(11, &pairs.scaled(scales(100, 1, 144, 3)).unwrap());
}
