//! Batch invariance: rows of D have the same bits for every number of rows.
//!
//! Two kernels run in the interpreter. The operand A of the first is the first rows of the operand
//! A of the second. The bytes of these rows of D are compared.

use std::collections::HashMap;

use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::{Element, ptx};
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Product, ProductTensor, Window};

use crate::gemm::{BF16, function, h200, matrix};

/// The bytes of random numbers of a type: of element `at` of a tensor always the same.
fn numbers(element: Element, count: usize, seed: u64) -> Vec<u8> {
    let number = |at: usize| {
        let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
        bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((bits ^ (bits >> 29)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count)
        .flat_map(|at| match element {
            Element::F32 => number(at).to_le_bytes().to_vec(),
            Element::F16 => half::f16::from_f32(number(at)).to_le_bytes().to_vec(),
            Element::Bf16 => half::bf16::from_f32(number(at)).to_le_bytes().to_vec(),
            // Any pattern that is no NaN, of either sign.
            _ => vec![(number(at).to_bits() >> 8) as u8 & 0xb7],
        })
        .collect()
}

/// The bytes of D that kernels of the interpreter leave.
fn result(product: &Product) -> Vec<u8> {
    let problem = product.problem();
    let mut tensors: HashMap<ProductTensor, Vec<u8>> = HashMap::new();
    for operand in problem.given() {
        let matrix = problem.matrix(operand).unwrap();
        let seed = match operand {
            ProductTensor::A => 1,
            ProductTensor::B => 2,
            ProductTensor::ScalesA => 3,
            ProductTensor::ScalesB => 4,
            ProductTensor::Input(number) => 5 + number as u64,
            other => panic!("{other:?} is not given"),
        };
        tensors.insert(operand, numbers(matrix.element(), matrix.reach().unwrap() as usize, seed));
    }
    for step in product.steps() {
        let mut interpreter = Interpreter::new(step.kernel().program(), step.sizes()).unwrap();
        let (read, written) = step.read_and_written();
        for (at, operand) in read.iter().enumerate() {
            let mut bytes = tensors[operand].clone();
            bytes.resize(interpreter.bytes_of(at).unwrap(), 0);
            interpreter.bytes(at, &bytes).unwrap();
        }
        let run = interpreter.run(Schedule::ALL[0]).unwrap();
        for (at, operand) in written.iter().enumerate() {
            tensors.insert(*operand, run.bytes(read.len() + at).unwrap().to_vec());
        }
    }
    tensors.remove(&ProductTensor::D).unwrap()
}

/// A problem with a result of f32, whose bits are those of the sums.
fn exact(element: Element, [m, n, k]: [i64; 3]) -> Problem {
    let of = |rows| Matrix::rows(element, [rows, k]).unwrap();
    Problem::of(of(m), of(n), Matrix::rows(Element::F32, [m, n]).unwrap()).unwrap()
}

/// Makes the problem with M rows.
type OfRows = fn(i64) -> Problem;

/// Types, layouts, functions and odd sizes. Rows of A and D are together, so that those of a
/// smaller problem come first.
const PROBLEMS: [(&str, OfRows); 7] = [
    ("bf16", |m| exact(BF16, [m, 40, 520])),
    ("f16 with odd N and K, a bias and a function", |m| {
        let problem = Problem::new(Element::F16, [m, 37, 331]).unwrap();
        let bias = Matrix::strided(Element::F16, [m, 37, 1], [0, 1, 0]).unwrap();
        problem.fused(function("gelu_tanh(x + bias)", &["x", "bias"], vec![bias])).unwrap()
    }),
    ("f32 in parts of bf16", |m| Problem::new(Element::F32, [m, 24, 130]).unwrap()),
    ("tf32", |m| Problem::new(Element::F32, [m, 24, 200]).unwrap().in_tf32()),
    ("promoted e4m3", |m| exact(Element::E4M3, [m, 32, 400])),
    ("B with N contiguous", |m| {
        let a = Matrix::rows(BF16, [m, 264]).unwrap();
        Problem::of(a, matrix(BF16, "(48,264):(1,48)"), Matrix::rows(Element::F32, [m, 48]).unwrap()).unwrap()
    }),
    ("gated pairs", |m| {
        let (a, b) = (Matrix::rows(BF16, [m, 264]).unwrap(), Matrix::rows(BF16, [48, 264]).unwrap());
        let d = Matrix::rows(Element::F32, [m, 24]).unwrap();
        Problem::gated(a, b, d, Pairs::Halves, function("silu(x) * y", &["x", "y"], vec![])).unwrap()
    }),
];

/// Rows of 1 to 200 have the bits of the first rows of 257, by the plans of the model.
#[test]
fn rows_have_the_same_bits_for_every_number_of_rows() {
    for (name, of) in PROBLEMS {
        let all = result(&Product::new(&of(257).batch_invariant().unwrap(), &h200()).unwrap());
        let row = all.len() / 257;
        for rows in [1, 2, 3, 7, 16, 17, 64, 129, 200] {
            let product = Product::new(&of(rows).batch_invariant().unwrap(), &h200()).unwrap();
            let text = product.lines().join("\n");
            assert!(text.contains("batch-invariant"), "{name}: {text}");
            assert!(result(&product) == all[..row * rows as usize], "{name}: {rows} rows\n{text}");
        }
    }
}

/// Every plan of a batch-invariant problem gives the same bits: tiles, stages, warpgroups, clusters
/// and raster order do not decide them.
#[test]
fn every_plan_gives_the_same_bits() {
    for (name, of) in PROBLEMS {
        let problem = of(150).batch_invariant().unwrap();
        let plans = Product::candidates(&problem, &h200()).unwrap();
        let mut seen: Vec<(i64, i64, i64, i64, bool)> = Vec::new();
        let mut first: Option<Vec<u8>> = None;
        for (_, plan) in &plans {
            let Plan { rows, columns, warpgroups, cluster, ping_pong, .. } = *plan;
            let kind = (rows, columns, warpgroups, cluster, ping_pong);
            if seen.contains(&kind) || seen.len() > 16 && !seen.len().is_multiple_of(3) {
                continue;
            }
            seen.push(kind);
            assert!(plan.split_k == 1 && plan.tail == 0 && !plan.swapped, "{plan}");
            let found = result(&Product::planned(&problem, plan, &h200()).unwrap());
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "{name}: {plan}");
        }
        assert!(seen.len() > 5, "{name}: {seen:?}");
    }
}

/// Stages of a long ring are filled and released in pairs, with two mbarriers for a pair, and those
/// of a shorter one alone: no bits depend on it.
#[test]
fn stages_in_pairs_give_the_same_bits() {
    let problems: [(&str, OfRows); 5] = [
        ("bf16, the last k-tile in part", |m| exact(BF16, [m, 40, 1096])),
        ("f16 with a bias", |m| {
            let bias = Matrix::strided(Element::F16, [m, 40, 1], [0, 1, 0]).unwrap();
            let problem = Problem::new(Element::F16, [m, 40, 1024]).unwrap();
            problem.fused(function("x + bias", &["x", "bias"], vec![bias])).unwrap()
        }),
        ("f16 with a tile of an input", |m| {
            let c = Matrix::rows(Element::F16, [m, 40]).unwrap();
            let problem = Problem::new(Element::F16, [m, 40, 1024]).unwrap();
            problem.fused(function("x + c", &["x", "c"], vec![c])).unwrap()
        }),
        ("tf32", |m| Problem::new(Element::F32, [m, 24, 576]).unwrap().in_tf32()),
        ("gated pairs", |m| {
            let (a, b) = (Matrix::rows(BF16, [m, 1024]).unwrap(), Matrix::rows(BF16, [48, 1024]).unwrap());
            let d = Matrix::rows(Element::F32, [m, 24]).unwrap();
            Problem::gated(a, b, d, Pairs::Halves, function("silu(x) * y", &["x", "y"], vec![])).unwrap()
        }),
    ];
    let barriers = |product: &Product| {
        let text = ptx::write(product.steps()[0].kernel().program(), ptx::Target::Sm90a).unwrap();
        text.matches("mbarrier.init").count() as i64
    };
    for (name, of) in problems {
        for rows in [1, 48, 70] {
            let problem = of(rows).batch_invariant().unwrap();
            let chosen = Plan::of(&problem, &h200());
            // The widest tile of which 16 stages fit.
            let one = Plan { warpgroups: 1, blocks_per_sm: 1, cluster: 1, ping_pong: false, raster_band: 1, ..chosen };
            let plan = Plan { rows: 64, columns: 16, stages: 20, ..one };
            let pairs = Product::planned(&problem, &plan, &h200()).unwrap();
            let alone = Product::planned(&problem, &Plan { stages: 15, ..plan }, &h200()).unwrap();
            assert_eq!(barriers(&alone) - barriers(&pairs), 2 * 15 - 20, "{name}, {rows}");
            assert!(result(&pairs) == result(&alone), "{name}, {rows} rows");
        }
    }
}

/// With one row of tiles no load has lines outside of A: threads have stored zeros there. Fewer
/// than 16 such lines are loaded.
#[test]
fn lines_outside_of_few_rows_are_not_loaded() {
    for (rows, lines) in [(1, 8), (9, 16), (48, 48), (49, 64), (64, 64)] {
        let product = Product::new(&exact(BF16, [rows, 40, 2112]).batch_invariant().unwrap(), &h200()).unwrap();
        assert_eq!(product.plan().rows, 64, "{}", product.plan());
        let text = ptx::write(product.steps()[0].kernel().program(), ptx::Target::Sm90a).unwrap();
        let wanted = format!(", {};", (lines + product.plan().columns) * 128);
        let loads: Vec<&str> = text.lines().filter(|line| line.contains("arrive.expect_tx")).collect();
        assert!(!loads.is_empty() && loads.iter().all(|line| line.ends_with(&wanted)), "{rows}: {loads:?}");
    }
}

/// Without batch invariance some rows have other bits, so the tests above can fail.
#[test]
fn free_plans_give_other_bits() {
    let of = |rows| exact(BF16, [rows, 40, 2056]);
    let all = result(&Product::new(&of(257), &h200()).unwrap());
    let row = all.len() / 257;
    let differ = [1, 16, 64, 129].into_iter().any(|rows| {
        let product = Product::new(&of(rows), &h200()).unwrap();
        result(&product) != all[..row * rows as usize]
    });
    assert!(differ);
    // What is refused below: a sum in two parts.
    let invariant = Product::new(&of(129).batch_invariant().unwrap(), &h200()).unwrap();
    let split = Plan { split_k: 2, ..invariant.plan().clone() };
    assert!(result(&Product::planned(&of(129), &split, &h200()).unwrap()) != result(&invariant));
}

/// What would depend on M is refused, in plans and in problems.
#[test]
fn what_depends_on_the_number_of_rows_is_refused() {
    let problem = exact(BF16, [64, 64, 512]);
    let invariant = problem.clone().batch_invariant().unwrap();
    let plan = Plan::of(&invariant, &h200());
    for (other, because) in [
        (Plan { split_k: 2, ..plan.clone() }, "without split-K"),
        (Plan { swapped: true, ..plan.clone() }, "A along the rows"),
    ] {
        assert!(Product::planned(&problem, &other, &h200()).is_ok(), "{other}");
        let refused = Product::planned(&invariant, &other, &h200()).unwrap_err().to_string();
        assert!(refused.contains(because), "{refused}");
    }
    let sums = "row sum d".parse().unwrap();
    assert!(invariant.clone().reducing(sums).unwrap_err().to_string().contains("sum of a row"));
    let sums = problem.clone().reducing("column sum d".parse().unwrap()).unwrap();
    assert!(sums.batch_invariant().is_err());
    assert!(invariant.reducing("row max abs(d)".parse().unwrap()).is_ok());
    let folded = matrix(BF16, "((8,8),512):((512,8192),1)");
    let (b, d) = (matrix(BF16, "(64,512):(512,1)"), matrix(BF16, "(64,64):(64,1)"));
    assert!(Problem::of(folded, b, d).unwrap().batch_invariant().is_err());
    let (images, filters) = (matrix(BF16, "(64,(8,8,2)):(1,(64,512,4096))"), matrix(BF16, "(32,576):(576,1)"));
    let window = Window::of([3, 3]).padded([1, 1]);
    let images = Problem::convolution(images, filters, matrix(BF16, "(128,32):(32,1)"), window).unwrap();
    assert!(images.batch_invariant().is_err());
}
