//! Plans of warps that multiply by mma.sync, for machines without wgmma: the interpreter runs their
//! kernels, and each element of D is compared with a plain loop.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx;
use tilewright_planners::PlanError;
use tilewright_planners::gemm::{
    Matrix, Pairs, Plan, Problem, Problems, Product, Products, Scales, Window, is_faster_unpacked,
};

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

/// Runs a plan on a machine without TMA, and with a producer on one with TMA, if TMA can read the
/// operands there.
fn right(problem: &Problem, plan: &Plan) -> usize {
    let (machine, with) = (machine("RTX 5090"), Plan { producer: true, ..plan.clone() });
    match Product::planned(problem, &with, &machine) {
        Ok(_) => drop(right_on(&machine, problem, &with)),
        Err(error) => assert!(error.to_string().contains("TMA cannot read"), "{problem}, {with}: {error}"),
    }
    right_on(&self::machine("A100"), problem, plan)
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
}

/// Windows of images are gathered in the mainloop, without a copy of the images.
#[test]
fn windows_are_read_in_place() {
    let convolution = |[channels, side, filters]: [i64; 3], window: Window, element: Element, pixel: i64| {
        let [x, y] = window.results([side, side]).unwrap();
        let images = format!("({channels},({side},{side},2)):(1,({pixel},{},{}))", pixel * side, pixel * side * side);
        // Filters have as many elements between their pixels as images.
        let [s, r] = window.filter;
        let lies = format!("({filters},({channels},{s},{r})):({},(1,{pixel},{}))", pixel * s * r, pixel * s);
        let d = Matrix::rows(if element.is_float() { element } else { Element::I32 }, [x * y * 2, filters]).unwrap();
        Problem::convolution(matrix(element, &images), matrix(element, &lies), d, window).unwrap()
    };
    let border = Window::of([3, 3]).padded([1, 1]);
    for (window, element) in [
        (border, BF16),
        (Window::of([3, 3]), BF16),
        (Window::of([2, 3]).padded([0, 1]), BF16),
        (Window { dilation: [2, 1], ..border }, Element::F16),
        (border, Element::F64),
        (border, Element::I8),
    ] {
        let channels = 64 / i64::from(element.bytes());
        for (plan, side) in [(plan(64, 32, [2, 1]), 7), (plan(32, 64, [1, 4]), 6)] {
            let problem = convolution([channels, side, 24], window, element, channels);
            assert_eq!(right(&problem, &plan), 1, "{problem}");
            let bias = function("x * 2 + bias", &["x", "bias"], vec![matrix(Element::F32, &bias_of(&problem))]);
            if element.is_float() {
                assert_eq!(right(&problem.fused(bias).unwrap(), &plan), 1);
            }
        }
    }
    // Channels that 8 bytes divide, and 16 do not: narrower copies.
    assert_eq!(right(&convolution([36, 6, 24], border, BF16, 40), &plan(64, 32, [2, 1])), 1);
    // A stride with a border. Where it does not divide the side of the images, they are copied with
    // their padding, and not as windows.
    let uneven = Window { padding_before: [3, 0], padding_after: [0, 2], ..Window::of([2, 3]) };
    for (side, window, kernels) in [
        (8, Window { stride: [2, 2], ..border }, 1),
        (9, Window { stride: [3, 3], ..border }, 1),
        (8, Window { stride: [4, 2], dilation: [2, 1], ..uneven }, 1),
        (8, Window { stride: [2, 1], dilation: [3, 2], ..Window::of([3, 3]).padded([3, 2]) }, 1),
        // No axis of K goes along the columns, and their padding is odd.
        (8, Window { stride: [2, 2], ..Window::of([1, 3]).padded([1, 1]) }, 1),
        (9, Window { stride: [2, 2], ..border }, 2),
    ] {
        let strided = convolution([32, side, 24], window, BF16, 32);
        for plan in [plan(64, 32, [2, 1]), plan(32, 64, [1, 4])] {
            assert_eq!(right(&strided, &plan), kernels, "{strided}");
        }
    }
    // Three channels are no whole copies: the windows are copied.
    assert!(right(&convolution([3, 6, 24], border, BF16, 8), &plan(64, 32, [2, 1])) > 1);
}

fn bias_of(problem: &Problem) -> String {
    let [m, n, _] = problem.sizes();
    format!("({m},{n}):(0,1)")
}

fn dense(element: Element, result: Element, [m, n, k]: [i64; 3]) -> Problem {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    Problem::of(rows(element, [m, k]), rows(element, [n, k]), rows(result, [m, n])).unwrap()
}

/// Each plan that is ranked for windows can be carried out, whatever the sides of its boxes.
#[test]
fn every_tile_of_windows_is_planned() {
    let images = matrix(BF16, "(256,(14,14,32)):(1,(256,3584,50176))");
    let filters = matrix(BF16, "(256,(256,3,3)):(2304,(1,256,768))");
    let d = Matrix::rows(BF16, [6272, 256]).unwrap();
    let problem = Problem::convolution(images, filters, d, Window::of([3, 3]).padded([1, 1])).unwrap();
    let machine = machine("H200@sm_80");
    let mut tiles = std::collections::BTreeSet::new();
    for (_, plan) in Product::candidates(&problem, &machine).unwrap() {
        if tiles.insert((plan.rows, plan.columns, plan.warps)) {
            Product::planned(&problem, &plan, &machine).unwrap_or_else(|error| panic!("{plan}: {error}"));
        }
    }
    assert!(tiles.len() > 20, "{tiles:?}");
    let refused = Product::planned(&problem, &plan(80, 32, [1, 2]), &machine).unwrap_err().to_string();
    assert!(refused.contains("rows are a power of two"), "{refused}");
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
    // Blocks of 128 rows of A: tiles that cut them are refused, and all that are ranked are built.
    let of_rows = Scales { a: Matrix::columns(Element::F32, [3, 1]).unwrap(), ..scales(300, 40, 96, 1) };
    let blocks = dense(Element::E5M2, BF16, [300, 40, 96]).scaled(of_rows).unwrap();
    right_on(&ada, &blocks, &plan(64, 32, [2, 1]));
    let refused = Product::planned(&blocks, &plan(160, 32, [2, 1]), &ada).unwrap_err().to_string();
    assert!(refused.contains("whole blocks"), "{refused}");
    for (_, plan) in Product::candidates(&blocks, &ada).unwrap() {
        Product::planned(&blocks, &plan, &ada).unwrap_or_else(|error| panic!("{plan}: {error}"));
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

/// A plan whose threads copy more lines at once than half of the pairs has is refused as a plan,
/// not by the kernel that it would be; all others are right.
#[test]
fn halves_of_pairs_are_copied_whole_or_refused() {
    let gate = function("max(x, 0) * y", &["x", "y"], vec![]);
    let [a, b, d] = ["(136,72):(72,1)", "(96,72):(72,1)", "(136,48):(48,1)"].map(|lies| matrix(BF16, lies));
    let (problem, a100) = (Problem::gated(a, b, d, Pairs::Halves, gate).unwrap(), machine("A100"));
    let (mut planned, mut refused) = (0, 0);
    for (tile, warps) in [([64, 32], [4, 1]), ([64, 64], [4, 2]), ([128, 32], [8, 1]), ([64, 64], [2, 2])] {
        for swapped in [false, true] {
            let [rows, columns] = if swapped { [tile[1], tile[0]] } else { tile };
            let warps = if swapped { [warps[1], warps[0]] } else { warps };
            let plan = Plan { swapped, raster_band: 1, ..plan(rows, columns, warps) };
            match Product::planned(&problem, &plan, &a100) {
                Ok(_) => planned += right_on(&a100, &problem, &plan).min(1),
                Err(error) => {
                    assert!(error.to_string().contains("equal parts of each half"), "{plan}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((planned, refused), (6, 2));
}

/// f64 in every order, with an epilogue in f64, split K, and lines of one element.
#[test]
fn doubles_are_right() {
    const F64: Element = Element::F64;
    let (m, n, k) = (72, 88, 40);
    for a in [format!("({m},{k}):({k},1)"), format!("({m},{k}):(1,{m})")] {
        for b in [format!("({n},{k}):({k},1)"), format!("({n},{k}):(1,{n})")] {
            for (d, swapped) in [(format!("({m},{n}):({n},1)"), false), (format!("({m},{n}):(1,{m})"), true)] {
                let problem = of(F64, [&a, &b, &d], F64);
                assert_eq!(right(&problem, &Plan { swapped, ..plan(64, 32, [2, 1]) }), 1);
            }
        }
    }
    for name in ["A100", "RTX 4090", "H200", "B200", "RTX 5090"] {
        let own = machine(name);
        for sizes in [[33, 19, 37], [1, 1, 1], [40, 24, 136]] {
            let problem = dense(F64, F64, sizes);
            right_on(&own, &problem, &Plan { split_k: 1, ..plan(32, 32, [2, 1]) });
            let chosen = Product::new(&problem, &own).unwrap().plan().clone();
            assert!(chosen.warps.is_some(), "{chosen}");
            right_on(&own, &problem, &chosen);
        }
    }
    let problem = dense(F64, F64, [72, 88, 136]);
    assert_eq!(right(&problem, &Plan { split_k: 3, ..plan(64, 32, [2, 2]) }), 2);
    assert_eq!(right(&problem, &Plan { split_k: 2, tail: 2, blocks: 4, ..plan(64, 32, [2, 2]) }), 2);
    right(&dense(F64, Element::F32, [72, 88, 136]), &plan(32, 64, [1, 2]));
    let inputs = vec![matrix(F64, "(72,88):(0,1)"), matrix(Element::F32, "(72,88):(88,1)")];
    let text = "sqrt(abs(0.75 * x + bias)) + 0.3 * c";
    let fused = problem.clone().fused(function(text, &["x", "bias", "c"], inputs)).unwrap();
    for split_k in [1, 2] {
        right(&fused, &Plan { split_k, ..plan(64, 32, [2, 1]) });
    }
    let matrices = ["(40,24,3):(24,1,960)", "(32,24,3):(24,1,0)", "(40,32,3):(32,1,1280)"];
    right(&of(F64, matrices, F64), &plan(32, 32, [2, 1]));
    right(&of(F64, ["(35,37):(39,1)", "(33,37):(1,33)", "(35,33):(33,1)"], F64), &plan(32, 32, [1, 2]));
    right(&of(F64, ["(20,24):(48,2)", "(16,24):(24,1)", "(20,16):(32,2)"], F64), &plan(32, 16, [2, 1]));
    // A tile has 16 elements of K, and eight warps copy more lines than that unless chunks are
    // many.
    let orders = ["(64,40):(1,64)", "(64,40):(1,64)", "(64,64):(64,1)"];
    for warps in [[4, 2], [4, 4]] {
        right(&of(F64, orders, F64), &plan(64, 64, warps));
    }
}

#[test]
fn functions_and_results_of_doubles_are_told() {
    let problem = dense(Element::F64, Element::F64, [32, 32, 32]);
    let refused = problem.fused(function("exp(x)", &["x"], vec![])).unwrap_err().to_string();
    assert!(refused.contains("exp(x0)"), "{refused}");
    let rows = |element| Matrix::rows(element, [32, 32]).unwrap();
    for (operands, result) in [(Element::F64, BF16), (BF16, Element::F64)] {
        let refused = Problem::of(rows(operands), rows(operands), rows(result)).unwrap_err().to_string();
        assert!(refused.contains(&result.to_string()), "{refused}");
    }
}

/// Integers below 2^53 are exact in f64, in every order of addition.
#[test]
fn integers_in_doubles_are_exact() {
    let problem = dense(Element::F64, Element::F64, [40, 24, 136]);
    for split_k in [1, 2] {
        let product = Product::planned(&problem, &Plan { split_k, ..plan(32, 32, [2, 1]) }, &machine("A100")).unwrap();
        let number = |at: usize| ((at * 7919 % 1_999_993) as f64 - 1e6) * 2.0 + 1.0;
        let report = product.check_on(&|_, _, count| (0..count).flat_map(|at| number(at).to_le_bytes()).collect());
        assert_eq!(report.unwrap().worst, 0.0);
    }
}

/// Integers of four bits, two in a byte, exact: in every order of the bytes, in odd sizes.
#[test]
fn nibbles_are_exact() {
    for element in [Element::I8, Element::U8] {
        for name in ["A100", "RTX 4090", "H200", "RTX 5090"] {
            for sizes in [[72, 80, 160], [33, 19, 37], [1, 1, 1]] {
                for swapped in [false, true] {
                    let problem = dense(element, Element::I32, sizes).in_nibbles().unwrap();
                    assert_eq!(problem.depth(), 2 * sizes[2]);
                    right_on(&machine(name), &problem, &Plan { swapped, ..plan(64, 32, [2, 1]) });
                }
            }
        }
        let turned = of(element, ["(40,32):(1,40)", "(32,32):(1,32)", "(40,32):(32,1)"], Element::I32);
        assert_eq!(right(&turned.in_nibbles().unwrap(), &plan(32, 32, [2, 1])), 3);
        let scaled = function("x * row", &["x", "row"], vec![matrix(Element::F32, "(40,32):(1,0)")]);
        let problem = dense(element, BF16, [40, 32, 64]).in_nibbles().unwrap().fused(scaled).unwrap();
        right(&problem, &plan(32, 32, [2, 1]));
    }
    assert!(dense(BF16, BF16, [32, 32, 32]).in_nibbles().is_err());
}

fn int4(element: Element, result: Element, [m, n, k]: [i64; 3]) -> Problem {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    let scales = Matrix::columns(element, [n, k / 128]).unwrap();
    Problem::of_int4(rows(element, [m, k]), rows(Element::I32, [n, k / 8]), scales, rows(result, [m, n])).unwrap()
}

/// Weights of four bits with scales of groups, on either side of a tile, for one row and for many.
#[test]
fn weights_of_four_bits_are_right() {
    for (element, result) in [(BF16, BF16), (Element::F16, Element::F32)] {
        for sizes in [[1, 64, 128], [33, 40, 256], [72, 130, 640]] {
            let problem = int4(element, result, sizes);
            for (rows, columns, warps, swapped) in [
                (64, 16, [2, 1], true),
                (64, 32, [4, 1], true),
                (32, 64, [2, 2], false),
                (64, 64, [1, 4], false),
                (128, 32, [4, 2], true),
            ] {
                for name in ["A100", "RTX 4090", "H200", "RTX 5090"] {
                    let plan = Plan { swapped, ..plan(rows, columns, warps) };
                    assert_eq!(right_on(&machine(name), &problem, &plan), 1);
                }
            }
            let chosen = Product::new(&problem, &machine("H200")).unwrap().plan().clone();
            right_on(&machine("H200"), &problem, &chosen);
        }
    }
    let problem = int4(BF16, BF16, [24, 80, 640]);
    for swapped in [false, true] {
        assert_eq!(right(&problem, &Plan { swapped, split_k: 2, ..plan(32, 32, [2, 1]) }), 2);
    }
    let bias = function("relu(x + bias)", &["x", "bias"], vec![matrix(BF16, "(24,80):(0,1)")]);
    right(&problem.fused(bias).unwrap(), &Plan { swapped: true, ..plan(64, 16, [2, 1]) });
    // A with M contiguous, words with N contiguous, and padded lines of both: copied first, or
    // read.
    let scales = matrix(Element::F32, "(32,2):(2,1)");
    let d = matrix(BF16, "(40,32):(1,40)");
    let turned = [matrix(BF16, "(40,256):(1,40)"), matrix(Element::I32, "(32,32):(1,32)")];
    let padded = [matrix(BF16, "(40,256):(260,1)"), matrix(Element::I32, "(32,32):(33,1)")];
    for ([a, words], kernels) in [(turned, 3), (padded, 1)] {
        let problem = Problem::of_int4(a, words, scales.clone(), d.clone()).unwrap();
        assert_eq!(right(&problem, &plan(32, 32, [2, 1])), kernels);
    }
}

#[test]
fn weights_of_four_bits_are_told() {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    let asked = |element, words, k: i64, groups: i64| {
        let (a, d) = (rows(element, [16, k]), rows(BF16, [16, 32]));
        Problem::of_int4(a, rows(words, [32, k / 8]), rows(BF16, [32, groups]), d)
    };
    assert!(asked(BF16, Element::I32, 256, 2).is_ok());
    for refused in [
        asked(Element::F32, Element::I32, 256, 2),
        asked(BF16, Element::I8, 256, 2),
        asked(BF16, Element::I32, 192, 1),
        asked(BF16, Element::I32, 256, 3),
    ] {
        assert!(refused.is_err(), "{refused:?}");
    }
    assert!(asked(BF16, Element::I32, 256, 2).unwrap().batched(2).is_err());
}

/// Of weights of 14336 x 4096 on an H200, up to 128 rows take less time with the words (54.4 us,
/// and 76 us with weights that are written first), and 512 rows and more do not (203.8 us and 126
/// us).
#[test]
fn many_rows_take_less_time_with_weights_that_are_written_first() {
    let of = |name: &str, m| is_faster_unpacked(&int4(BF16, BF16, [m, 14336, 4096]), &machine(name)).unwrap();
    let found = [1, 16, 64, 128, 512, 1024, 4096].map(|m| of("H200", m));
    assert_eq!(found, [false, false, false, false, true, true, true]);
    for name in ["A100", "RTX 4090", "RTX 5090"] {
        assert!(!of(name, 1) && !of(name, 16), "{name}");
    }
    assert!(!is_faster_unpacked(&Problem::new(BF16, [4096; 3]).unwrap(), &machine("H200")).unwrap());
}

/// The model takes a producer where TMA reads the operands, and cp.async where it does not.
#[test]
fn a_producer_is_planned_where_tma_reads_the_operands() {
    let plan = |name: &str, sizes| {
        let problem = Problem::new(BF16, sizes).unwrap();
        let product = Product::new(&problem, &machine(name)).unwrap();
        let (plan, lines) = (product.plan().clone(), product.lines().join("; "));
        assert_eq!(plan.producer, lines.contains("a producer warp issues TMA loads"), "{lines}");
        assert_eq!(Plan::from_line(&plan.line()), Some(plan.clone()));
        plan.producer
    };
    for name in ["H200@sm_90", "RTX 5090", "GB10"] {
        // Lines of 2004 bytes, which warps read in place by copies of 4 bytes.
        assert!(!plan(name, [256, 256, 1002]), "{name}");
    }
    assert!(!plan("RTX 4090", [4096, 4096, 4096]));
    let with = Plan { producer: true, ..self::plan(64, 64, [2, 2]) };
    for (machine, because) in [(machine("A100"), "no TMA"), (machine("H200@sm_90"), "TMA cannot read")] {
        let refused = Product::planned(&Problem::new(BF16, [64, 64, 1002]).unwrap(), &with, &machine);
        assert!(matches!(&refused, Err(error) if error.to_string().contains(because)), "{refused:?}");
    }
}
