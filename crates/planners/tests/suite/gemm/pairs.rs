//! GEMMs of gated pairs of columns, with epilogue reductions, with scales and with promoted
//! accumulators. The interpreter runs their kernels, and each number is compared with a plain loop.

use tilewright_kernel::Element;
use tilewright_planners::gemm::{
    Each, EpilogueReduction, Matrix, Pairs, Plan, Problem, Product, ProductTensor, Scales,
};
use tilewright_planners::{Expression, Statistic};

use crate::gemm::{BF16, checked, function, h200, matrix, plan};

#[test]
fn pairs_of_columns_make_one() {
    let (m, n, k) = (72, 40, 72);
    let silu = || function("silu(x) * y", &["x", "y"], vec![]);
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        for b in [format!("({},{k}):({k},1)", 2 * n), format!("({},{k}):(1,{})", 2 * n, 2 * n)] {
            for d in [format!("({m},{n}):({n},1)"), format!("({m},{n}):(1,{m})")] {
                let a = matrix(BF16, &format!("({m},{k}):({k},1)"));
                let problem = Problem::gated(a, matrix(BF16, &b), matrix(BF16, &d), pairs, silu()).unwrap();
                assert_eq!(checked(&problem, &plan(64, 48, 1)).1, m * n);
                checked(&problem, &plan(128, 128, 2));
                checked(&problem, &Plan { swapped: true, ..plan(128, 40, 1) });
            }
        }
    }
    // A bias of each kind of column, a residual; f32 by parts, f16, and floats of 8 bits; a batch.
    let of = |element: Element, result: Element| {
        let inputs = vec![matrix(BF16, "(72,40):(0,1)"), matrix(result, "(72,40):(40,1)")];
        let [a, b] = [(72, 72), (80, 72)].map(|(rows, k)| matrix(element, &format!("({rows},{k}):({k},1)")));
        let gate = function("gelu_tanh(x + c) * y + z", &["x", "y", "c", "z"], inputs);
        Problem::gated(a, b, matrix(result, "(72,40):(40,1)"), Pairs::Halves, gate).unwrap()
    };
    for (element, result) in [(BF16, BF16), (Element::F16, Element::F32), (Element::E4M3, BF16), (Element::F32, BF16)] {
        checked(&of(element, result), &plan(64, 64, 1));
    }
    let [a, b, d] = ["(40,24,3):(24,1,960)", "(32,24,3):(24,1,768)", "(40,16,3):(16,1,640)"].map(|of| matrix(BF16, of));
    let batch = Problem::gated(a, b, d, Pairs::Neighbours, silu()).unwrap();
    checked(&batch, &plan(64, 32, 1));
    checked(&batch, &Plan::of(&batch, &h200()));
}

/// With split-K, both partial accumulators of each pair go to the workspace, for each matrix.
#[test]
fn blocks_share_the_steps_of_pairs() {
    let gate = || function("silu(x) * y + z", &["x", "y", "z"], vec![matrix(BF16, "(72,40):(40,1)")]);
    let [a, b, d] = [(72, 200), (80, 200), (72, 40)].map(|extents| Matrix::rows(BF16, extents.into()).unwrap());
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        let problem = Problem::gated(a.clone(), b.clone(), d.clone(), pairs, gate()).unwrap();
        for shared in [plan(64, 32, 1), Plan { swapped: true, ..plan(128, 24, 1) }, plan(128, 128, 2)] {
            for splits in [2, 3] {
                let shared = Plan { split_k: splits, ..shared.clone() };
                let (product, compared) = checked(&problem, &shared);
                assert_eq!((product.kernels().len(), compared), (2, 72 * 40));
                assert_eq!(product.workspace(), 72 * 40 * 4 * 2 * splits);
            }
        }
    }
    let [a, b, d] = ["(40,72,3):(72,1,2880)", "(32,72,3):(72,1,2304)", "(40,16,3):(16,1,640)"];
    let [a, b, d] = [a, b, d].map(|of| matrix(BF16, of));
    let batch = Problem::gated(a, b, d, Pairs::Neighbours, function("x * y", &["x", "y"], vec![])).unwrap();
    checked(&batch, &Plan { split_k: 2, ..plan(64, 32, 1) });
}

#[test]
fn rows_and_columns_are_kept() {
    let by = |each, statistic, text: &str| EpilogueReduction {
        each,
        statistic,
        of: Expression::parse(text, &["d"]).unwrap(),
    };
    let all = [
        by(Each::Row, Statistic::Sum, "d"),
        by(Each::Column, Statistic::Sum, "d * d"),
        by(Each::Row, Statistic::Maximum, "abs(d)"),
        by(Each::Column, Statistic::Maximum, "-d"),
    ];
    for (number, [m, n, k]) in [[72, 88, 72], [128, 64, 64], [33, 19, 40], [1, 24, 16]].into_iter().enumerate() {
        let dense = Problem::new(BF16, [m, n, k]).unwrap();
        let dense = match number % 2 {
            0 => dense.fused(function("relu(x) + 1", &["x"], vec![])).unwrap(),
            _ => dense,
        };
        let kept = all.iter().fold(dense.clone(), |problem, by| problem.reducing(by.clone()).unwrap());
        for plan in [plan(64, 48, 1), plan(128, 32, 2), Plan { swapped: true, ..plan(64, 16, 1) }] {
            assert_eq!(checked(&kept, &plan).1, m * n + 2 * (m + n));
        }
        checked(&dense.reducing(all[number].clone()).unwrap(), &Plan { blocks: 3, ..plan(128, 64, 1) });
    }
    // Of this many tiles blocks have shares, of which the last one makes the result.
    let many = Problem::new(BF16, [33 * 64, 62, 16]).unwrap().reducing(all[1].clone()).unwrap();
    let (product, compared) = checked(&many, &plan(64, 64, 1));
    assert_eq!(compared, 33 * 64 * 62 + 62);
    let written = [ProductTensor::Workspace(1), ProductTensor::Reduction(0)];
    assert_eq!(product.steps()[1].read_and_written(), (&[ProductTensor::Workspace(0)][..], &written[..]));
    // Elements of 32 bits are stored from registers; of a batch each matrix has its own.
    let [a, b, d] = [(70, 24), (50, 24), (70, 50)]
        .map(|(rows, columns)| Matrix::strided(BF16, [rows, columns, 2], [columns, 1, rows * columns]).unwrap());
    let d = Matrix::strided(Element::F32, d.extents(), [1, 70, 3500]).unwrap();
    let batch = Problem::of(a, b, d).unwrap();
    let batch = all.iter().fold(batch, |problem, by| problem.reducing(by.clone()).unwrap());
    assert_eq!(checked(&batch, &plan(64, 32, 1)).1, 2 * (70 * 50 + 2 * (70 + 50)));
    // Of pairs, of what they make.
    let [a, b, d] = [(72, 40), (80, 40), (72, 40)].map(|extents| Matrix::rows(BF16, extents.into()).unwrap());
    let gate = function("silu(x) * y", &["x", "y"], vec![]);
    let pairs = Problem::gated(a, b, d, Pairs::Halves, gate).unwrap().reducing(all[2].clone()).unwrap();
    checked(&pairs, &plan(64, 64, 1));
}

#[test]
fn blocks_have_scales() {
    let factor = |rows: i64, k: i64| Matrix::rows(Element::E4M3, [rows, k]).unwrap();
    let scales = |rows: i64, steps: i64| Matrix::columns(Element::F32, [rows, steps]).unwrap();
    for ([m, n, k], a, b, plans) in [
        ([72, 40, 400], scales(72, 4), scales(1, 4), 3),
        ([136, 136, 144], scales(2, 2), scales(2, 2), 2),
        ([33, 136, 37], scales(33, 1), scales(136, 1), 1),
    ] {
        let problem = Problem::of(factor(m, k), factor(n, k), Matrix::rows(BF16, [m, n]).unwrap()).unwrap();
        let scaled = problem.clone().scaled(Scales { a, b }).unwrap();
        let fused = scaled.clone().fused(function("relu(x)", &["x"], vec![])).unwrap();
        let all = [Plan { swapped: true, ..plan(64, 16, 1) }, plan(128, 64, 2), Plan { split_k: 2, ..plan(64, 32, 1) }];
        for (problem, plan) in [scaled, fused, problem.clone(), problem.fast()].iter().zip(all.iter().cycle()) {
            checked(problem, if plan.split_k as usize > plans { &all[0] } else { plan });
        }
    }
    // Halves of a tile of 256 columns one after the other, in registers for one: each half of B has
    // a scale of its own; each column has one; there are none; and pairs.
    let problem = Problem::of(factor(136, 300), factor(264, 300), Matrix::rows(BF16, [136, 264]).unwrap()).unwrap();
    for (a, b) in [(scales(136, 3), scales(3, 3)), (scales(2, 3), scales(264, 3))] {
        checked(&problem.clone().scaled(Scales { a, b }).unwrap(), &plan(128, 256, 2));
    }
    checked(&problem, &plan(128, 256, 2));
    let d = Matrix::rows(BF16, [136, 132]).unwrap();
    let gate = function("relu(x) * y", &["x", "y"], vec![]);
    let pairs = Problem::gated(factor(136, 300), factor(264, 300), d, Pairs::Halves, gate).unwrap();
    checked(&pairs, &plan(128, 256, 2));
    // Scales of several steps ahead: fewer steps than places, as many, and more.
    for k in [128, 300, 640, 1000] {
        let steps = (k + 127) / 128;
        let problem = Problem::of(factor(40, k), factor(24, k), Matrix::rows(BF16, [40, 24]).unwrap()).unwrap();
        let scaled = problem.scaled(Scales { a: scales(40, steps), b: scales(1, steps) }).unwrap();
        checked(&scaled, &plan(64, 32, 1));
        checked(&scaled, &Plan { swapped: true, ..plan(64, 16, 1) });
        if k > 500 {
            checked(&scaled, &Plan { split_k: 2, ..plan(64, 32, 1) });
        }
    }
    // Each matrix of a batch has scales of its own.
    let [a, b] =
        [(40, 256), (24, 256)].map(|(rows, k)| Matrix::strided(Element::E5M2, [rows, k, 3], [k, 1, rows * k]).unwrap());
    let d = Matrix::strided(BF16, [40, 24, 3], [24, 1, 960]).unwrap();
    let [of_a, of_b] = [(40, 2), (1, 2)]
        .map(|(rows, steps)| Matrix::strided(Element::F32, [rows, steps, 3], [1, rows, rows * steps]).unwrap());
    checked(&Problem::of(a, b, d).unwrap().scaled(Scales { a: of_a, b: of_b }).unwrap(), &plan(64, 24, 1));
}

/// Both columns of a pair have scales, of their own or of their blocks.
#[test]
fn pairs_have_scales() {
    let factor = |rows: i64, k: i64| Matrix::rows(Element::E4M3, [rows, k]).unwrap();
    let scales = |rows: i64, steps: i64| Matrix::columns(Element::F32, [rows, steps]).unwrap();
    let gate = || function("relu(x) * y", &["x", "y"], vec![]);
    for (pairs, n, blocks) in [
        (Pairs::Neighbours, 136, 3),
        (Pairs::Neighbours, 136, 272),
        (Pairs::Halves, 136, 272),
        (Pairs::Halves, 128, 2),
        (Pairs::Halves, 40, 1),
    ] {
        let d = Matrix::rows(BF16, [40, n]).unwrap();
        let problem = Problem::gated(factor(40, 272), factor(2 * n, 272), d, pairs, gate()).unwrap();
        let scaled = problem.scaled(Scales { a: scales(40, 3), b: scales(blocks, 3) }).unwrap();
        checked(&scaled, &plan(64, 64, 1));
        checked(&scaled, &Plan { swapped: true, ..plan(128, 16, 1) });
        checked(&scaled, &Plan { split_k: 2, ..plan(64, 32, 1) });
    }
    let d = Matrix::rows(BF16, [136, 128]).unwrap();
    let wide = Problem::gated(factor(136, 144), factor(256, 144), d, Pairs::Halves, gate()).unwrap();
    checked(&wide.scaled(Scales { a: scales(2, 2), b: scales(2, 2) }).unwrap(), &plan(128, 256, 2));
}

#[test]
fn what_does_not_fit_is_refused() {
    let code = |result: Result<Problem, tilewright_planners::PlanError>| result.unwrap_err().code();
    let gate = || function("silu(x) * y", &["x", "y"], vec![]);
    let rows = |rows, columns| Matrix::rows(BF16, [rows, columns]).unwrap();
    let gated = |b, gate| Problem::gated(rows(32, 16), b, rows(32, 8), Pairs::Halves, gate);
    assert_eq!(code(gated(rows(8, 16), gate())), "E0942");
    assert_eq!(code(gated(rows(16, 16), function("x * y * z", &["x", "y", "z"], vec![]))), "E0936");
    let dense = || Problem::new(BF16, [32, 16, 128]).unwrap();
    let of = Expression::input(0);
    let by = |statistic| EpilogueReduction { each: Each::Row, statistic, of: of.clone() };
    assert_eq!(code(dense().reducing(by(Statistic::Norm))), "E0936");
    assert_eq!(
        code(Problem::new(Element::I8, [32, 16, 16]).unwrap_or_else(|_| dense()).reducing(by(Statistic::Norm))),
        "E0936"
    );
    let scale = |rows: i64, steps| Matrix::rows(Element::F32, [rows, steps]).unwrap();
    assert_eq!(code(dense().scaled(Scales { a: scale(32, 1), b: scale(16, 1) })), "E0936");
    let small = |rows| Matrix::rows(Element::E4M3, [rows, 128]).unwrap();
    let small = Problem::of(small(32), small(16), rows(32, 16)).unwrap();
    assert_eq!(code(small.clone().scaled(Scales { a: scale(32, 2), b: scale(16, 1) })), "E0938");
    // A block of 128 columns of both halves.
    let of = |rows| Matrix::rows(Element::E4M3, [rows, 128]).unwrap();
    let pairs = Problem::gated(of(32), of(192), rows(32, 96), Pairs::Halves, gate()).unwrap();
    assert_eq!(code(pairs.scaled(Scales { a: scale(32, 1), b: scale(2, 1) })), "E0943");
    assert_eq!(code(small.scaled(Scales { a: rows(32, 1), b: scale(16, 1) })), "E0936");
    // Plans that do not divide pairs, or share tiles of them.
    let problem = gated(rows(16, 16), gate()).unwrap();
    for plan in [plan(64, 24, 1), Plan { cluster: 2, ..plan(64, 32, 1) }, Plan { swapped: true, ..plan(64, 32, 1) }] {
        assert_eq!(Product::planned(&problem, &plan, &h200()).unwrap_err().code(), "E0940");
    }
}
