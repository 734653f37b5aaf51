//! Products of groups of rows. The interpreter runs their kernels, and each number is compared with
//! a plain loop; rows of no group keep what they have.

use tilewright_kernel::Element;
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Product, ProductTensor, Scales};

use crate::gemm::{BF16, function, h200, matrix, plan};

/// Runs a plan with groups that end at these rows.
fn right(problem: &Problem, plan: &Plan, ends: &[i32]) {
    let product = Product::planned(problem, plan, &h200()).unwrap_or_else(|error| panic!("{problem}: {error}"));
    let numbers = |operand: ProductTensor, element: Element, count: usize| match operand {
        ProductTensor::Ends => ends.iter().flat_map(|end| end.to_le_bytes()).collect(),
        ProductTensor::Input(number) => tilewright_planners::any_numbers(element, count, number as u64 + 3),
        operand => tilewright_planners::any_numbers(element, count, 1 + u64::from(operand == ProductTensor::B)),
    };
    let report = product.check_on(&numbers).unwrap_or_else(|error| panic!("{problem}, {plan}, {ends:?}: {error}"));
    let [m, n, _] = problem.sizes();
    assert_eq!(report.compared as i64, m * n);
}

fn problem(element: Element, result: Element, [m, n, k]: [i64; 3], groups: i64) -> Problem {
    let a = Matrix::rows(element, [m, k]).unwrap();
    let b = Matrix::strided(element, [n, k, groups], [k, 1, n * k]).unwrap();
    Problem::grouped(a, b, Matrix::rows(result, [m, n]).unwrap()).unwrap()
}

#[test]
fn each_group_has_its_matrix() {
    let own = problem(BF16, BF16, [150, 72, 72], 4);
    for ends in [[40, 40, 149, 150], [0, 64, 128, 140], [150, 150, 150, 150], [0, 0, 0, 0], [1, 2, 3, 4]] {
        right(&own, &plan(64, 32, 1), &ends);
        right(&own, &Plan { raster_band: 2, ..plan(64, 40, 1) }, &ends);
        right(&own, &Plan { swapped: true, ..plan(64, 24, 1) }, &ends);
    }
    right(&own, &Plan { raster_band: 2, blocks: 3, ..plan(128, 64, 2) }, &[40, 130, 130, 150]);
}

#[test]
fn inputs_types_and_layouts() {
    let ends = [30, 30, 97, 100];
    // A bias of each group, a residual of all rows, lines of D that no vector divides.
    let fused = |problem: Problem, n: i64, element: Element| {
        let inputs =
            vec![matrix(element, &format!("(100,{n},4):(0,1,{n})")), matrix(element, &format!("(100,{n}):({n},1)"))];
        problem.fused(function("relu(x + bias) + c", &["x", "bias", "c"], inputs)).unwrap()
    };
    right(&fused(problem(BF16, BF16, [100, 68, 40], 4), 68, BF16), &plan(64, 32, 1), &ends);
    right(&fused(problem(BF16, BF16, [100, 67, 40], 4), 67, BF16), &Plan { swapped: true, ..plan(64, 32, 1) }, &ends);
    for (element, result) in [(Element::F16, Element::F32), (Element::E4M3, BF16), (Element::I8, Element::I32)] {
        right(&problem(element, result, [100, 64, 48], 4), &plan(64, 48, 1), &ends);
    }
    right(&problem(Element::F32, Element::F32, [100, 40, 24], 4), &plan(64, 40, 1), &ends);
    right(&problem(BF16, Element::E5M2, [100, 40, 24], 4), &plan(64, 40, 1), &ends);
    // Rows that are contiguous are moved; so are rows that begin at no multiple of 16 bytes.
    let b = matrix(BF16, "(48,36,4):(1,48,1728)");
    let a = matrix(BF16, "(100,36):(1,104)");
    for (a, d) in [(a, "(100,48):(1,100)"), (matrix(BF16, "(100,36):(37,1)"), "(100,48):(50,1)")] {
        let lies = Problem::grouped(a, b.clone(), matrix(BF16, d)).unwrap();
        right(&lies, &plan(64, 32, 1), &ends);
        right(&lies, &Plan { swapped: true, ..plan(64, 16, 1) }, &ends);
    }
}

#[test]
fn ends_that_fall_or_go_too_far_are_bounded() {
    let own = problem(BF16, BF16, [150, 72, 72], 4);
    for ends in [[40, -3, 150, 7], [40, 40, i32::MAX, i32::MIN], [151, 3, 9, 1000], [-1, -1, -1, -1]] {
        right(&own, &plan(64, 32, 1), &ends);
    }
}

#[test]
fn groups_of_pairs() {
    let [a, d] = ["(100,40):(40,1)", "(100,32):(32,1)"].map(|lies| matrix(BF16, lies));
    let b = matrix(BF16, "(64,40,3):(40,1,2560)");
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        let gate = function("silu(x) * y", &["x", "y"], vec![]);
        let own = Problem::grouped_pairs(a.clone(), b.clone(), d.clone(), pairs, gate).unwrap();
        right(&own, &plan(64, 32, 1), &[30, 30, 97]);
        right(&own, &Plan { swapped: true, ..plan(128, 24, 1) }, &[30, 30, 97]);
    }
}

/// Each row of A has scales, and each column of the matrix of a group, or 128 of them. The numbers
/// of a group begin at any row, so blocks of 128 rows of A have none.
#[test]
fn groups_have_scales() {
    let ends = [30, 30, 97, 100];
    let scales = |a: [i64; 2], [rows, steps]: [i64; 2], groups: i64| Scales {
        a: Matrix::columns(Element::F32, a).unwrap(),
        b: Matrix::strided(Element::F32, [rows, steps, groups], [1, rows, rows * steps]).unwrap(),
    };
    for (n, k, rows) in [(64, 300, 1), (40, 656, 40), (136, 144, 2)] {
        let steps = (k + 127) / 128;
        let own = problem(Element::E4M3, BF16, [100, n, k], 4);
        let own = own.scaled(scales([100, steps], [rows, steps], 4)).unwrap();
        right(&own, &plan(64, 32, 1), &ends);
        right(&own, &Plan { swapped: true, ..plan(64, 16, 1) }, &ends);
        // Lines of 300 bytes are moved before.
        let moved = if k % 16 == 0 { 0 } else { 2 };
        assert_eq!(Product::new(&own, &h200()).unwrap().kernels().len(), 2 + moved);
    }
    let wide = problem(Element::E4M3, BF16, [150, 128, 144], 2).scaled(scales([150, 2], [1, 2], 2)).unwrap();
    right(&wide, &plan(128, 128, 2), &[40, 150]);
    // With a function of the sums, and one group.
    let one = problem(Element::E5M2, BF16, [70, 64, 256], 1).scaled(scales([70, 2], [1, 2], 1)).unwrap();
    right(&one.fused(function("relu(x)", &["x"], vec![])).unwrap(), &plan(64, 32, 1), &[50]);
    // Blocks of scales that go past the last column of pairs, and a block for each tile.
    let [a, d] = [(Element::E4M3, "(35,64):(64,1)"), (BF16, "(35,96):(96,1)")].map(|(own, lies)| matrix(own, lies));
    let gate = function("silu(x) * y", &["x", "y"], vec![]);
    let b = matrix(Element::E4M3, "(192,64):(64,1)");
    let pairs = Problem::grouped_pairs(a, b, d, Pairs::Neighbours, gate).unwrap().scaled(scales([35, 1], [2, 1], 1));
    right(&pairs.unwrap(), &Plan { blocks: 12, ..plan(64, 16, 1) }, &[30]);
    let own = problem(Element::E4M3, BF16, [256, 128, 256], 2);
    for wrong in [scales([2, 2], [1, 2], 2), scales([256, 2], [1, 2], 1), scales([256, 1], [1, 2], 2)] {
        assert_eq!(own.clone().scaled(wrong).unwrap_err().code(), "E0938");
    }
}

#[test]
fn plans_are_found_and_refused() {
    for (sizes, groups) in [([4096, 1024, 512], 8), ([64, 2048, 1024], 16), ([100, 64, 64], 1)] {
        let own = problem(BF16, BF16, sizes, groups);
        let product = Product::new(&own, &h200()).unwrap();
        assert_eq!(product.kernels().len(), 2);
        let plans = Product::candidates(&own, &h200()).unwrap();
        assert!(plans.len() > 10 && plans.iter().all(|(_, plan)| plan.split_k == 1 && plan.cluster == 1));
    }
    // D goes through shared memory, which that of a batch would not, so there are fewer stages.
    let own = problem(BF16, Element::F32, [64, 78, 64], 1);
    for (_, plan) in Product::candidates(&own, &h200()).unwrap() {
        Product::planned(&own, &plan, &h200()).unwrap_or_else(|error| panic!("{plan}: {error}"));
    }
    let own = problem(BF16, BF16, [100, 64, 64], 2);
    assert_eq!(Product::planned(&own, &Plan { split_k: 2, ..plan(64, 32, 1) }, &h200()).unwrap_err().code(), "E0940");
    let [a, b] = [Matrix::rows(BF16, [100, 64]).unwrap(), matrix(BF16, "(64,64,2):(64,1,4096)")];
    let folded = matrix(BF16, "((10,10),64):((64,1280),1)");
    assert_eq!(Problem::grouped(a.clone(), b.clone(), folded).unwrap_err().code(), "E0941");
    let batch = matrix(BF16, "(100,64,2):(64,1,6400)");
    assert_eq!(Problem::grouped(a, b, batch).unwrap_err().code(), "E0942");
    assert_eq!(own.clone().batched(3).unwrap_err().code(), "E0941");
}

/// Of each row of a group, and of each column for each group: groups without rows, tiles that end
/// behind theirs, and rows of no group, which keep what they have.
#[test]
fn groups_have_by_products() {
    let kept = |problem: Problem, texts: &[&str]| {
        texts.iter().fold(problem, |problem, text| problem.reducing(text.parse().unwrap()).unwrap())
    };
    let texts = ["row sum", "row max abs(d)", "column sum d * d", "column max"];
    let compared = |problem: &Problem, plan: &Plan, ends: &[i32]| {
        let product =
            Product::planned(problem, plan, &h200()).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
        let numbers = |operand: ProductTensor, element: Element, count: usize| match operand {
            ProductTensor::Ends => ends.iter().flat_map(|end| end.to_le_bytes()).collect(),
            operand => tilewright_planners::any_numbers(element, count, 1 + u64::from(operand == ProductTensor::B)),
        };
        let report = product.check_on(&numbers).unwrap_or_else(|error| panic!("{problem}, {plan}, {ends:?}: {error}"));
        report.compared as i64
    };
    for (n, sizes) in [(80, [150, 80, 72]), (32, [70, 32, 40])] {
        let own = kept(problem(BF16, BF16, sizes, 3), &texts);
        let all = sizes[0] * n + 2 * sizes[0] + 2 * 3 * n;
        for ends in [[40, 40, 69], [0, 64, 65], [0, 0, 0], [1, 70, 70]] {
            for plan in [
                plan(64, 32, 1),
                Plan { raster_band: 2, ..plan(64, 16, 1) },
                plan(128, 96, 2),
                Plan { swapped: true, ..plan(64, 16, 1) },
                Plan { swapped: true, blocks: 5, ..plan(128, 32, 2) },
            ] {
                assert_eq!(compared(&own, &plan, &ends), all);
            }
        }
    }
    // Of what the function makes of the sums, and of sums that are added in f32.
    let gate = function("silu(x) * y", &["x", "y"], vec![]);
    let b = matrix(BF16, "(64,40,3):(40,1,2560)");
    let [a, d] = ["(100,40):(40,1)", "(100,32):(32,1)"].map(|lies| matrix(BF16, lies));
    let pairs = Problem::grouped_pairs(a, b, d, Pairs::Neighbours, gate).unwrap();
    compared(&kept(pairs, &texts[1..3]), &plan(64, 32, 1), &[30, 30, 97]);
    let small = kept(problem(Element::E4M3, BF16, [100, 64, 272], 2), &texts[..3]);
    compared(&small, &plan(64, 64, 1), &[30, 90]);
    assert!(Product::new(&small, &h200()).is_ok());
}
