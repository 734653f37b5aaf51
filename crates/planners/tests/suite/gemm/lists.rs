//! Lists of problems of any sizes in one launch. The interpreter runs their kernels, and each
//! number of each problem is compared with a plain loop.

use tilewright_kernel::Element;
use tilewright_kernel::ptx::{self, Target};
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Problems, Products, Window};

use crate::gemm::{BF16, function, h200, matrix, plan};

fn problem(element: Element, result: Element, [m, n, k]: [i64; 3]) -> Problem {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    Problem::of(rows(element, [m, k]), rows(element, [n, k]), rows(result, [m, n])).unwrap()
}

fn list(problems: impl IntoIterator<Item = Problem>) -> Problems {
    Problems::new(problems.into_iter().collect()).unwrap()
}

/// Runs a plan, and says how many kernels it has.
fn right(list: &Problems, plan: &Plan) -> usize {
    let products = Products::planned(list, plan, &h200()).unwrap_or_else(|error| panic!("{list}, {plan}: {error}"));
    let report = products.check().unwrap_or_else(|error| panic!("{list}, {plan}: {error}"));
    let elements = list.problems().iter().map(|problem| problem.sizes()[0] * problem.sizes()[1]).sum::<i64>();
    assert_eq!(report.compared as i64, elements);
    products.kernels().len()
}

const SIZES: [[i64; 3]; 5] = [[72, 40, 136], [8, 200, 64], [130, 16, 328], [1, 8, 8], [65, 104, 200]];

#[test]
fn problems_have_their_own_sizes() {
    let all = list(SIZES.map(|sizes| problem(BF16, BF16, sizes)));
    for own in [
        plan(64, 32, 1),
        plan(128, 64, 2),
        Plan { raster_band: 8, blocks: 3, ..plan(64, 40, 1) },
        Plan { swapped: true, ..plan(64, 24, 1) },
        Plan { swapped: true, raster_band: 2, blocks: 7, stages: 2, ..plan(128, 16, 2) },
        Plan { blocks_per_sm: 2, blocks: 40, ..plan(64, 128, 1) },
    ] {
        assert_eq!(right(&all, &own), 1);
    }
    // One problem is a list, and so are several that are alike.
    assert_eq!(right(&list([problem(BF16, BF16, [72, 40, 136])]), &plan(64, 32, 1)), 1);
    assert_eq!(right(&list([(); 4].map(|()| problem(BF16, BF16, [72, 40, 72]))), &plan(64, 32, 1)), 1);
    // That of the model.
    let products = Products::new(&all, &h200()).unwrap();
    assert!(products.check().unwrap().worst <= 1.0);
    assert!(Products::candidates(&all, &h200()).unwrap().windows(2).all(|two| two[0].0 <= two[1].0));
}

/// One problem alone, with fewer tiles than are taken one after the other, and a tail that is
/// loaded alone.
#[test]
fn a_list_of_one() {
    let one = list([problem(BF16, BF16, [72, 24, 328])]);
    for swapped in [false, true] {
        assert_eq!(right(&one, &Plan { raster_band: 8, swapped, ..plan(64, 16, 1) }), 1);
    }
}

/// The ring goes round several times, over tiles with tails and a last step that is not whole:
/// those who copy and those who multiply count the same stages, or the kernel hangs (E1022).
#[test]
fn rings_go_round() {
    let sizes = [[72, 24, 840], [40, 8, 1000], [16, 40, 648]];
    for count in [1, 2, 9] {
        let all = list((0..count).map(|at| problem(BF16, BF16, sizes[at % sizes.len()])));
        for own in [
            plan(64, 16, 1),
            Plan { swapped: true, stages: 2, blocks: 3, ..plan(64, 24, 1) },
            Plan { raster_band: 8, stages: 4, ..plan(128, 32, 2) },
        ] {
            assert_eq!(right(&all, &own), 1);
        }
    }
}

#[test]
fn types_and_ways_to_add() {
    let sizes = [[72, 48, 272], [64, 16, 400], [16, 144, 48]];
    for (element, result) in [
        (Element::F16, Element::F16),
        (BF16, Element::F32),
        (Element::E4M3, BF16),
        (Element::E5M2, Element::F32),
        (Element::I8, Element::I32),
        (Element::F32, Element::F32),
    ] {
        let kernels = right(&list(sizes.map(|sizes| problem(element, result, sizes))), &plan(64, 48, 1));
        // f32 operands are split before.
        assert_eq!(kernels, if element == Element::F32 { 7 } else { 1 });
    }
    right(&list(sizes.map(|sizes| problem(Element::E4M3, BF16, sizes).fast())), &plan(64, 32, 1));
    right(&list(sizes.map(|sizes| problem(Element::F32, BF16, sizes).in_tf32())), &plan(64, 32, 1));
    // Bulk copies store no results of 8 bits, which are made of others.
    assert_eq!(right(&list(sizes.map(|sizes| problem(BF16, Element::E4M3, sizes))), &plan(64, 32, 1)), 4);
}

#[test]
fn layouts_of_their_own() {
    let of = |[a, b, d]: [&str; 3]| Problem::of(matrix(BF16, a), matrix(BF16, b), matrix(BF16, d)).unwrap();
    let columns = ["(72,40):(1,72)", "(48,40):(1,48)", "(72,48):(1,72)"];
    let more = ["(16,72):(1,16)", "(80,72):(1,80)", "(16,80):(1,16)"];
    let rows = ["(70,72):(80,1)", "(50,72):(72,1)", "(70,50):(56,1)"];
    let odd = ["(9,33):(33,1)", "(10,33):(1,11)", "(9,10):(11,1)"];
    let folded = ["((4,4),24):((24,120),1)", "(16,24):(24,1)", "((4,4),16):((16,80),1)"];
    // All alike, K contiguous in none: nothing is moved.
    assert_eq!(right(&list([columns, more].map(of)), &plan(64, 32, 1)), 1);
    assert_eq!(right(&list([columns, more].map(of)), &Plan { swapped: true, ..plan(64, 16, 1) }), 1);
    // A, B and D of one problem are relaid out, to the layout of the other or to one that kernels
    // read and write; so is a D of 50 columns, which ends inside a chunk of 16 bytes.
    assert_eq!(right(&list([columns, rows].map(of)), &plan(64, 32, 1)), 5);
    assert_eq!(right(&list([rows, odd].map(of)), &plan(64, 32, 1)), 5);
    assert_eq!(right(&list([rows, odd, folded, columns].map(of)), &plan(64, 32, 1)), 10);
    let whole = ["(70,72):(80,1)", "(48,72):(72,1)", "(70,48):(56,1)"];
    assert_eq!(right(&list([columns, whole].map(of)), &plan(64, 32, 1)), 4);
    // One matrix of two problems, and parts of a matrix.
    let parts = ["(72,40):(80,1)", "(48,40):(0,1)", "(72,48):(96,1)"];
    right(&list([parts, parts].map(of)), &plan(64, 32, 1));
}

#[test]
fn functions_of_sums() {
    let of = |sizes: &[[i64; 3]], text: &str, c: Element, line: i64| {
        let fused = |[m, n, k]: [i64; 3]| {
            let inputs = vec![
                matrix(BF16, &format!("({m},{n}):(0,1)")),
                Matrix::strided(c, [m, n, 1], [n + line, 1, 0]).unwrap(),
            ];
            problem(BF16, BF16, [m, n, k]).fused(function(text, &["x", "bias", "c"], inputs)).unwrap()
        };
        list(sizes.iter().copied().map(fused))
    };
    // Both come ahead; the matrix has another type; its lines begin anywhere; of one row the bias
    // is a matrix like D, so neither comes ahead in any problem.
    let [sizes, with_one_row] =
        [[[72, 64, 136], [40, 16, 64], [16, 128, 72]], [[72, 64, 136], [40, 16, 64], [1, 128, 72]]];
    for (sizes, c, line) in [(sizes, BF16, 0), (sizes, Element::F32, 0), (sizes, BF16, 3), (with_one_row, BF16, 0)] {
        let all = of(&sizes, "relu(x + bias) + c", c, line);
        for own in [plan(64, 32, 1), plan(128, 256, 2), Plan { swapped: true, ..plan(64, 16, 1) }] {
            assert_eq!(right(&all, &own), 1);
        }
    }
    let gate = || function("silu(x) * y", &["x", "y"], vec![]);
    let gated = |pairs: Pairs| {
        list([[72, 32, 136], [16, 48, 64]].map(|[m, n, k]| {
            let rows = |extents| Matrix::rows(BF16, extents).unwrap();
            Problem::gated(rows([m, k]), rows([2 * n, k]), rows([m, n]), pairs, gate()).unwrap()
        }))
    };
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        right(&gated(pairs), &plan(64, 32, 1));
    }
}

/// As many problems as there may be: their arguments are more than 4 KB, which the text says by the
/// version of the language that it needs.
#[test]
fn many_problems() {
    let many = |count: i64| list((0..count).map(|at| problem(BF16, BF16, [8 + at, 8, 8 + 8 * (at % 9)])));
    assert_eq!(right(&many(64), &Plan { blocks: 5, ..plan(64, 16, 1) }), 1);
    for (count, version) in [(8, ".version 8.0"), (64, ".version 8.1")] {
        let products = Products::new(&many(count), &h200()).unwrap();
        let text = ptx::write(products.kernels()[0].program(), Target::Sm90a).unwrap();
        assert!(text.starts_with(version), "{count}: {}", text.lines().next().unwrap());
    }
}

#[test]
fn what_is_refused() {
    let own = || problem(BF16, BF16, [72, 40, 64]);
    let code = |problems: Vec<Problem>| Problems::new(problems).unwrap_err().code();
    assert_eq!(code(vec![]), "E0937");
    assert_eq!(code(vec![own(); 65]), "E0935");
    let other = problem(Element::F16, BF16, [72, 40, 64]);
    assert_eq!(
        Problems::new(vec![own(), other]).unwrap_err().to_string(),
        "problem 1 of the list differs from the first in types: f16 to bf16, not bf16 to bf16"
    );
    assert_eq!(code(vec![own(), own().fused(function("relu(x)", &["x"], vec![])).unwrap()]), "E0944");
    let small = |fast: bool| {
        let problem = problem(Element::E4M3, BF16, [72, 40, 64]);
        if fast { problem.fast() } else { problem }
    };
    assert_eq!(code(vec![small(true), small(false)]), "E0944");
    assert_eq!(code(vec![own(), own().batched(2).unwrap()]), "E0943");
    assert_eq!(code(vec![own().reducing("row sum".parse().unwrap()).unwrap()]), "E0943");
    let (images, filters) = (matrix(BF16, "(64,(8,8,1)):(1,(64,512,4096))"), matrix(BF16, "(24,576):(576,1)"));
    let window = Window::of([3, 3]).padded([1, 1]);
    let windows = Problem::convolution(images, filters, matrix(BF16, "(64,24):(24,1)"), window).unwrap();
    assert_eq!(code(vec![windows]), "E0943");
    let all = list([own(), own()]);
    for wrong in [
        Plan { split_k: 2, ..plan(64, 32, 1) },
        Plan { cluster: 2, ..plan(64, 32, 1) },
        Plan { ping_pong: true, stages: 4, ..plan(128, 128, 2) },
        Plan { stages: 1, ..plan(64, 32, 1) },
    ] {
        assert_eq!(Products::planned(&all, &wrong, &h200()).unwrap_err().code(), "E0940", "{wrong}");
    }
    // An input that does not come ahead, of too many problems.
    let fused = || own().fused(function("x + c", &["x", "c"], vec![matrix(Element::F32, "(72,40):(40,1)")])).unwrap();
    assert!(Products::new(&list(vec![fused(); 8]), &h200()).is_ok());
    assert_eq!(Products::new(&list(vec![fused(); 9]), &h200()).unwrap_err().code(), "E0935");
}
