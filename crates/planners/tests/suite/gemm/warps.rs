//! Plans of warps that multiply by mma.sync, for machines without wgmma: the interpreter runs their
//! kernels, and each element of D is compared with a plain loop.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx;
use tilewright_planners::PlanError;
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Problems, Product, Products, Scales, Window};

use crate::gemm::{BF16, function, matrix};

fn machine(name: &str) -> Machine {
    Machine::named(name).unwrap()
}

/// A plan with few stages and blocks, so that rings go round and blocks have several tiles.
fn plan(rows: i64, columns: i64, warps: [i64; 2]) -> Plan {
    Plan { stages: 3, programmatic_launch: false, warps: Some(warps), ..crate::gemm::plan(rows, columns, 1) }
}

fn of(element: Element, [a, b, d]: [&str; 3], result: Element) -> Problem {
    Problem::of(matrix(element, a), matrix(element, b), matrix(result, d)).unwrap()
}

/// Runs the kernels of a plan on a machine, which must be able to run them, and says how many there
/// are.
fn right_on(machine: &Machine, problem: &Problem, plan: &Plan) -> usize {
    let product = Product::planned(problem, plan, machine).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    for kernel in product.kernels() {
        let name = kernel.name();
        assert!(kernel.program().runs_on(machine.target), "{name} of {problem} on {}", machine.name);
        ptx::write(kernel.program(), machine.target).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    }
    let report = product.check().unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    let [m, n, _] = problem.sizes();
    assert!(report.compared as i64 >= m * n * problem.batch(), "{problem}");
    product.kernels().len()
}

fn right(problem: &Problem, plan: &Plan) -> usize {
    right_on(&machine("A100"), problem, plan)
}

/// Every order of both operands and of D, in both directions of tiles, with grids of warps of each
/// kind.
#[test]
fn operands_lie_in_every_order() {
    let (m, n, k) = (72, 88, 72);
    let kinds = [(64, 64, [2, 2]), (64, 32, [4, 1]), (32, 64, [1, 2]), (32, 96, [2, 1])];
    for (number, a) in [format!("({m},{k}):({k},1)"), format!("({m},{k}):(1,{m})")].iter().enumerate() {
        for (other, b) in [format!("({n},{k}):({k},1)"), format!("({n},{k}):(1,{n})")].iter().enumerate() {
            for (third, d) in [format!("({m},{n}):({n},1)"), format!("({m},{n}):(1,{m})")].iter().enumerate() {
                let problem = of(BF16, [a, b, d], BF16);
                for swapped in [false, true] {
                    let (rows, columns, warps) = kinds[(number + other + third + usize::from(swapped)) % 4];
                    assert_eq!(right(&problem, &Plan { swapped, ..plan(rows, columns, warps) }), 1);
                }
            }
        }
    }
}

#[test]
fn lines_may_be_padded_and_misaligned() {
    // Padded lines of A, of B with N contiguous, and of D.
    let padded = of(BF16, ["(70,70):(80,1)", "(50,70):(1,56)", "(70,50):(64,1)"], BF16);
    assert_eq!(right(&padded, &plan(64, 64, [2, 2])), 1);
    let odd = of(BF16, ["(35,37):(37,1)", "(33,37):(1,33)", "(35,33):(33,1)"], BF16);
    right(&odd, &plan(64, 32, [2, 1]));
    right(&odd, &Plan { swapped: true, ..plan(64, 32, [2, 1]) });
    for (columns, swapped) in [(32, false), (64, false), (64, true), (32, true)] {
        for d in ["(70,130):(131,1)", "(70,130):(1,71)"] {
            let problem = of(BF16, ["(70,24):(24,1)", "(130,24):(24,1)", d], BF16);
            right(&problem, &Plan { swapped, ..plan(64, columns, [2, 2]) });
        }
    }
    // Tensors that begin inside of their memory.
    let a = matrix(BF16, "(40,64):(64,1)").at(3).unwrap();
    let (b, d) = (matrix(BF16, "(24,64):(64,1)"), matrix(BF16, "(40,24):(24,1)").at(5).unwrap());
    right(&Problem::of(a, b, d).unwrap(), &plan(64, 32, [2, 1]));
    // Neither mode contiguous, every other element.
    let apart = of(BF16, ["(20,24):(48,2)", "(16,24):(24,1)", "(20,16):(32,2)"], BF16);
    right(&apart, &plan(32, 16, [2, 1]));
    // One row, one column, one step.
    for sizes in [[1, 40, 64], [40, 1, 64], [40, 24, 1], [1, 1, 1], [1, 1, 64]] {
        right(&Problem::new(BF16, sizes).unwrap(), &plan(32, 16, [1, 1]));
    }
}

/// Lines that begin at multiples of 8 and of 4 bytes are read in place.
#[test]
fn lines_are_copied_in_narrow_pieces() {
    for [a, b] in [
        ["(70,36):(36,1)", "(50,36):(36,1)"],
        ["(70,34):(34,1)", "(50,34):(36,1)"],
        ["(68,34):(1,70)", "(50,34):(1,50)"],
        ["(68,36,2):(36,1,2450)", "(52,36,2):(1,52,1876)"],
    ] {
        let [(rows, _), (columns, _)] = [a, b].map(|text| text[1..].split_once(',').unwrap());
        let d = match a.contains(",2)") {
            true => format!("({rows},{columns},2):({columns},1,4000)"),
            false => format!("({rows},{columns}):({columns},1)"),
        };
        let problem = of(BF16, [a, b, &d], BF16);
        for (swapped, warps) in [(false, [2, 2]), (true, [4, 1])] {
            assert_eq!(right(&problem, &Plan { swapped, ..plan(64, 64, warps) }), 1);
        }
    }
    let b = matrix(BF16, "(40,64):(64,1)").at(2).unwrap();
    let problem = Problem::of(matrix(BF16, "(24,64):(64,1)"), b, matrix(BF16, "(24,40):(40,1)")).unwrap();
    assert_eq!(right(&problem, &plan(32, 32, [2, 1])), 1);
    let problem = of(Element::I8, ["(24,68):(68,1)", "(40,68):(68,1)", "(24,40):(40,1)"], Element::I32);
    assert_eq!(right(&problem, &plan(32, 32, [2, 1])), 1);
}

#[test]
fn batches_repeat_and_lie_apart() {
    for [a, b, d] in [
        ["(40,24,3):(24,1,960)", "(32,24,3):(24,1,0)", "(40,32,3):(32,1,1280)"],
        ["(40,24,3):(1,40,0)", "(32,24,3):(1,32,1024)", "(40,32,3):(96,1,32)"],
        ["(37,23,2):(23,1,851)", "(31,23,2):(23,1,713)", "(37,31,2):(31,1,1147)"],
    ] {
        let problem = of(BF16, [a, b, d], BF16);
        right(&problem, &plan(64, 32, [2, 1]));
        right(&problem, &Plan { swapped: true, ..plan(32, 64, [1, 4]) });
    }
}

#[test]
fn modes_may_be_folded() {
    // M is (5,8) of a permuted tensor, N is (4,6), and D is (5,8) again.
    let folded =
        of(BF16, ["((5,8),40):((320,40),1)", "((4,6),40):((1,160),4)", "((5,8),(4,6)):((192,24),(6,1))"], BF16);
    right(&folded, &plan(64, 32, [2, 2]));
    // A window that moves over a line: rows of A overlap.
    let windows = of(BF16, ["(40,(3,8)):(8,(16,1))", "(16,24):(24,1)", "(40,16):(16,1)"], BF16);
    right(&windows, &plan(32, 16, [2, 1]));
    // An image of 6 x 6 with a border, by a filter of 3 x 3.
    let (images, filters) = (matrix(BF16, "(16,(6,6,2)):(1,(16,96,576))"), matrix(BF16, "(24,144):(144,1)"));
    let window = Window::of([3, 3]).padded([1, 1]);
    right(
        &Problem::convolution(images, filters, matrix(BF16, "(72,24):(24,1)"), window).unwrap(),
        &plan(64, 32, [2, 1]),
    );
}

fn dense(element: Element, result: Element, [m, n, k]: [i64; 3]) -> Problem {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    Problem::of(rows(element, [m, k]), rows(element, [n, k]), rows(result, [m, n])).unwrap()
}

#[test]
fn types_are_right() {
    for (element, result) in [
        (Element::F16, Element::F16),
        (BF16, Element::F32),
        (Element::F16, BF16),
        (Element::I8, Element::I32),
        (Element::U8, Element::I32),
        (Element::I8, Element::F32),
        (Element::F32, Element::F32),
    ] {
        right(&dense(element, result, [72, 80, 160]), &plan(64, 32, [2, 2]));
        right(&dense(element, result, [33, 19, 37]), &Plan { swapped: true, ..plan(32, 64, [1, 2]) });
    }
    for sizes in [[72, 80, 72], [33, 19, 37]] {
        right(&dense(Element::F32, Element::F32, sizes).in_tf32(), &plan(64, 32, [2, 2]));
    }
    let ada = machine("RTX 4090");
    for (element, result) in [
        (BF16, Element::E4M3),
        (Element::E4M3, BF16),
        (Element::E4M3, Element::E4M3),
        (Element::E5M2, Element::F32),
        (Element::E5M2, Element::E5M2),
    ] {
        right_on(&ada, &dense(element, result, [72, 80, 160]), &plan(64, 32, [2, 2]));
        right_on(&ada, &dense(element, result, [33, 19, 37]), &Plan { swapped: true, ..plan(32, 64, [1, 2]) });
    }
    right_on(&ada, &dense(Element::E4M3, BF16, [72, 80, 272]).fast(), &plan(64, 32, [2, 2]));
    // Ampere has no 8-bit floats.
    let refused = Product::planned(&dense(Element::E4M3, BF16, [72, 80, 160]), &plan(64, 32, [2, 2]), &machine("A100"));
    assert!(matches!(refused, Err(PlanError::Unknown { .. })), "{refused:?}");
}

#[test]
fn epilogues_read_inputs() {
    let inputs = || {
        vec![
            matrix(BF16, "(136,144):(0,1)"),
            matrix(BF16, "(136,144):(144,1)"),
            matrix(Element::F32, "(136,144):(1,0)"),
            matrix(Element::F32, "(136,144):(0,0)"),
        ]
    };
    let text = "relu(x + bias) + c * row + all";
    let fused = || function(text, &["x", "bias", "c", "row", "all"], inputs());
    for result in [BF16, Element::F32] {
        for (rows, columns, warps, swapped) in
            [(64, 64, [2, 2], false), (64, 32, [1, 2], true), (128, 64, [4, 1], false)]
        {
            let problem = dense(BF16, result, [136, 144, 136]).fused(fused()).unwrap();
            right(&problem, &Plan { swapped, ..plan(rows, columns, warps) });
        }
    }
}

#[test]
fn partial_sums_are_added() {
    let problem = dense(BF16, BF16, [72, 88, 520]);
    for swapped in [false, true] {
        assert_eq!(right(&problem, &Plan { swapped, split_k: 3, ..plan(64, 32, [2, 2]) }), 2);
    }
    let fused = function("silu(x) + c", &["x", "c"], vec![matrix(BF16, "(72,88):(88,1)")]);
    assert_eq!(right(&problem.clone().fused(fused).unwrap(), &Plan { split_k: 4, ..plan(64, 32, [2, 2]) }), 2);
    // Two of six tiles are after the last full wave of four blocks.
    assert_eq!(right(&problem, &Plan { split_k: 2, tail: 2, blocks: 4, ..plan(64, 32, [2, 2]) }), 2);
}

#[test]
fn rows_and_columns_are_reduced() {
    for (rows, columns, warps, swapped) in
        [(64, 64, [4, 1], false), (64, 64, [4, 1], true), (128, 32, [4, 1], false), (32, 48, [2, 1], true)]
    {
        let problem = dense(BF16, BF16, [136, 144, 136]);
        let problem = problem.reducing("row max abs(d)".parse().unwrap()).unwrap();
        let problem = problem.reducing("column sum".parse().unwrap()).unwrap();
        right(&problem, &Plan { swapped, ..plan(rows, columns, warps) });
    }
}

#[test]
fn pairs_are_gated() {
    let gate = || function("silu(x) * y", &["x", "y"], vec![]);
    let [a, b, d] = ["(72,136):(136,1)", "(160,136):(136,1)", "(72,80):(80,1)"].map(|lies| matrix(BF16, lies));
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        let problem = Problem::gated(a.clone(), b.clone(), d.clone(), pairs, gate()).unwrap();
        right(&problem, &plan(64, 64, [2, 2]));
        right(&problem, &Plan { swapped: true, ..plan(64, 32, [2, 1]) });
        right(&problem, &Plan { split_k: 2, ..plan(64, 64, [4, 1]) });
    }
}

#[test]
fn groups_have_their_own_rows() {
    for swapped in [false, true] {
        for layout in ["(64,144,3):(144,1,9216)", "(64,144,3):(1,64,9216)"] {
            let [a, d] = [Matrix::rows(BF16, [100, 144]).unwrap(), Matrix::rows(BF16, [100, 64]).unwrap()];
            let problem = Problem::grouped(a, matrix(BF16, layout), d).unwrap();
            right(&problem, &Plan { swapped, ..plan(32, 32, [2, 1]) });
            right(&problem.reducing("column sum".parse().unwrap()).unwrap(), &Plan { swapped, ..plan(32, 32, [2, 1]) });
        }
    }
}

#[test]
fn scales_are_of_blocks() {
    let ada = machine("RTX 4090");
    let scales = |m: i64, n: i64, k: i64, groups: i64| Scales {
        a: Matrix::columns(Element::F32, [m, (k + 127) / 128]).unwrap(),
        b: Matrix::strided(Element::F32, [n, (k + 127) / 128, groups], [1, n, n * ((k + 127) / 128)]).unwrap(),
    };
    let problem = dense(Element::E4M3, BF16, [72, 144, 400]).scaled(scales(72, 2, 400, 1)).unwrap();
    for (rows, columns, warps, swapped) in [(64, 64, [2, 2], false), (32, 64, [1, 2], true), (64, 32, [4, 1], false)] {
        right_on(&ada, &problem, &Plan { swapped, ..plan(rows, columns, warps) });
    }
    let b = Matrix::strided(Element::E4M3, [128, 144, 3], [144, 1, 144 * 128]).unwrap();
    let [a, d] = [Matrix::rows(Element::E4M3, [100, 144]).unwrap(), Matrix::rows(BF16, [100, 64]).unwrap()];
    let gate = function("silu(x) * y", &["x", "y"], vec![]);
    let pairs = Problem::grouped_pairs(a, b, d, Pairs::Neighbours, gate).unwrap();
    right_on(&ada, &pairs.scaled(scales(100, 1, 144, 3)).unwrap(), &plan(32, 64, [2, 1]));
}

#[test]
fn lists_have_several_problems() {
    let problem = |sizes| Problem::new(BF16, sizes).unwrap();
    for sizes in [vec![[10, 16, 72], [70, 8, 200]], vec![[33, 19, 37], [64, 64, 64], [100, 40, 136]]] {
        let list = Problems::new(sizes.iter().copied().map(problem).collect()).unwrap();
        let report = Products::planned(&list, &plan(32, 32, [2, 1]), &machine("A100")).unwrap().check().unwrap();
        assert_eq!(report.compared as i64, sizes.iter().map(|[m, n, _]| m * n).sum::<i64>());
        assert!(Products::new(&list, &machine("A100")).is_ok());
    }
}

/// The plan of the model, for problems of every kind: it can be carried out on every machine.
#[test]
fn plans_of_the_model_are_right() {
    for name in ["A100", "RTX 3090", "RTX 4090"] {
        for sizes in [[72, 88, 136], [1, 40, 264], [130, 16, 72]] {
            let problem = Problem::new(BF16, sizes).unwrap();
            let own = machine(name);
            let plan = Product::new(&problem, &own).unwrap().plan().clone();
            right_on(&own, &problem, &plan);
        }
    }
}

#[test]
fn every_plan_of_pairs_is_right() {
    let gate = || function("max(x, 0) * y", &["x", "y"], vec![]);
    let a100 = machine("A100");
    for ([a, b, d], first) in [
        (["(40,26):(1,56)", "(80,26):(26,1)", "(40,40):(80,2)"], 0),
        (["(40,26):(1,56)", "(80,26):(26,1)", "(40,40):(40,1)"], 2),
        (["(8,3):(3,1)", "(16,3):(1,16)", "(8,8):(9,1)"], 6),
        (["(8,24):(24,1)", "(16,24):(24,1)", "(8,8):(8,1)"], 8),
    ] {
        let [a, b, d] = [a, b, d].map(|lies| matrix(BF16, lies));
        let problem = Problem::gated(a, b.at(first).unwrap(), d, Pairs::Halves, gate()).unwrap();
        for (_, plan) in Product::candidates(&problem, &a100).unwrap() {
            right_on(&a100, &problem, &plan);
        }
    }
}
