//! GEMMs of every kind: layouts, types, epilogues. The interpreter runs their kernels, and each
//! element of D is compared with a plain loop.

use tilewright_kernel::Element;
use tilewright_planners::gemm::{Matrix, Pairs, Plan, Problem, Product, ProductTensor};

use crate::gemm::{BF16, checked, function, h200, matrix, plan};

fn of(element: Element, [a, b, d]: [&str; 3], result: Element) -> Problem {
    Problem::of(matrix(element, a), matrix(element, b), matrix(result, d)).unwrap()
}

/// Runs a plan, and says how many kernels it has.
fn right(problem: &Problem, plan: &Plan) -> usize {
    let (product, compared) = checked(problem, plan);
    let [m, n, _] = problem.sizes();
    assert_eq!(compared, m * n * problem.batch());
    product.kernels().len()
}

/// Every order of both operands and of D, in both directions of tiles, with columns of each width.
#[test]
fn operands_lie_in_every_order() {
    let (m, n, k) = (72, 88, 72);
    for (number, a) in [format!("({m},{k}):({k},1)"), format!("({m},{k}):(1,{m})")].iter().enumerate() {
        for (other, b) in [format!("({n},{k}):({k},1)"), format!("({n},{k}):(1,{n})")].iter().enumerate() {
            for (third, d) in [format!("({m},{n}):({n},1)"), format!("({m},{n}):(1,{m})")].iter().enumerate() {
                let problem = of(BF16, [a, b, d], BF16);
                for swapped in [false, true] {
                    let columns = [64, 32, 48, 24][(number + other + third) % 4];
                    let plan = Plan { swapped, ..plan(64, columns, 1) };
                    assert_eq!(right(&problem, &plan), 1);
                }
            }
        }
    }
}

/// Halves of wide tiles where the columns of B are whole in memory: they are whole panels, or the
/// plan is refused, and another one is chosen.
#[test]
fn halves_are_whole_panels() {
    let product = |[m, n, k]: [i64; 3]| {
        let [a, b, d] = [format!("({m},{k}):(1,{m})"), format!("({n},{k}):(1,{n})"), format!("({m},{n}):({n},1)")];
        of(BF16, [&a, &b, &d], BF16)
    };
    let wide = Plan { stages: 2, ..plan(192, 256, 3) };
    assert_eq!(right(&product([200, 264, 72]), &wide), 1);
    for columns in [208, 224, 240] {
        assert!(Product::planned(&product([200, 264, 72]), &Plan { columns, ..wide.clone() }, &h200()).is_err());
    }
    assert!(Product::new(&product([3824, 5744, 4392]), &h200()).is_ok());
}

#[test]
fn lines_may_be_padded_and_misaligned() {
    // Padded lines of A, of B with N contiguous, and of D.
    let padded = of(BF16, ["(70,70):(80,1)", "(50,70):(1,56)", "(70,50):(64,1)"], BF16);
    assert_eq!(right(&padded, &plan(64, 64, 1)), 1);
    // Lines that begin anywhere: A and B are moved, and D is written from registers.
    let odd = of(BF16, ["(35,37):(37,1)", "(33,37):(1,33)", "(35,33):(33,1)"], BF16);
    assert_eq!(right(&odd, &plan(64, 40, 1)), 3);
    assert_eq!(right(&odd, &Plan { swapped: true, ..plan(64, 40, 1) }), 3);
    // Several tiles of such a D, of which the lines have no whole number of 32 elements.
    for (columns, swapped) in [(40, false), (48, false), (48, true), (24, true)] {
        for d in ["(70,130):(131,1)", "(70,130):(1,71)"] {
            let problem = of(BF16, ["(70,24):(24,1)", "(130,24):(24,1)", d], BF16);
            right(&problem, &Plan { swapped, ..plan(128, columns, 2) });
        }
    }
    // Tensors that begin inside of their memory.
    let a = matrix(BF16, "(40,64):(64,1)").at(3).unwrap();
    let (b, d) = (matrix(BF16, "(24,64):(64,1)"), matrix(BF16, "(40,24):(24,1)").at(5).unwrap());
    assert_eq!(right(&Problem::of(a, b, d).unwrap(), &plan(64, 24, 1)), 2);
    // Neither mode contiguous, every other element.
    let apart = of(BF16, ["(20,24):(48,2)", "(16,24):(24,1)", "(20,16):(32,2)"], BF16);
    assert_eq!(right(&apart, &plan(64, 16, 1)), 2);
    // One row, one column, one step.
    for sizes in [[1, 40, 64], [40, 1, 64], [40, 24, 1], [1, 1, 1], [1, 1, 64]] {
        right(&Problem::new(BF16, sizes).unwrap(), &plan(64, 16, 1));
    }
}

#[test]
fn modes_may_be_folded() {
    // M is (5,8) of a permuted tensor, N is (4,6), and D is (5,8) again.
    let folded =
        of(BF16, ["((5,8),40):((320,40),1)", "((4,6),40):((1,160),4)", "((5,8),(4,6)):((192,24),(6,1))"], BF16);
    assert_eq!(right(&folded, &plan(64, 24, 1)), 4);
    // A window that moves over a line: rows of A overlap.
    let windows = of(BF16, ["(40,(3,8)):(8,(16,1))", "(16,24):(24,1)", "(40,16):(16,1)"], BF16);
    assert_eq!(right(&windows, &plan(64, 16, 1)), 2);
    // Columns of D fold.
    let d = of(BF16, ["(24,16):(16,1)", "((3,8),16):((128,16),1)", "(24,(3,8)):(1,(192,24))"], BF16);
    right(&d, &plan(64, 24, 1));
}

#[test]
fn batches_repeat_and_lie_apart() {
    for [a, b, d] in [
        ["(40,24,3):(24,1,960)", "(32,24,3):(24,1,0)", "(40,32,3):(32,1,1280)"],
        ["(40,24,3):(1,40,0)", "(32,24,3):(1,32,1024)", "(40,32,3):(96,1,32)"],
        ["(37,24,2):(24,1,888)", "(31,23,2):(23,1,713)", "(37,31,2):(31,1,1147)"],
    ] {
        let a = if b.starts_with("(31") { "(37,23,2):(23,1,851)" } else { a };
        let problem = of(BF16, [a, b, d], BF16);
        right(&problem, &plan(64, 32, 1));
        right(&problem, &Plan { swapped: true, ..plan(64, 40, 1) });
    }
}

#[test]
fn types_are_right() {
    let dense = |element: Element, result: Element, sizes: [i64; 3]| {
        let [m, n, k] = sizes;
        of(
            element,
            [&format!("({m},{k}):({k},1)"), &format!("({n},{k}):({k},1)"), &format!("({m},{n}):({n},1)")],
            result,
        )
    };
    for (element, result) in [
        (Element::F16, Element::F16),
        (BF16, Element::F32),
        (Element::F16, BF16),
        (BF16, Element::E4M3),
        (Element::E4M3, BF16),
        (Element::E4M3, Element::E4M3),
        (Element::E5M2, Element::F32),
        (Element::E5M2, Element::E5M2),
        (Element::I8, Element::I32),
        (Element::U8, Element::I32),
        (Element::I8, Element::F32),
    ] {
        right(&dense(element, result, [72, 80, 160]), &plan(64, 48, 1));
        right(&dense(element, result, [33, 19, 37]), &Plan { swapped: true, ..plan(64, 24, 1) });
    }
    // Strips of 40 columns, of which integers have no instruction.
    right(&dense(Element::I8, Element::I32, [72, 80, 64]), &plan(64, 80, 1));
    for sizes in [[72, 80, 72], [33, 19, 37]] {
        right(&dense(Element::F32, Element::F32, sizes).in_tf32(), &plan(64, 40, 1));
    }
    // Tiles of fewer columns than a line has bytes, and of more.
    for columns in [8, 24, 72, 136] {
        right(&dense(BF16, Element::E4M3, [72, 144, 72]), &plan(64, columns, 1));
    }
    // Bytes with M contiguous are moved, because instructions take K contiguous alone.
    let turned = of(Element::E4M3, ["(32,64):(1,32)", "(16,64):(64,1)", "(32,16):(16,1)"], BF16);
    assert_eq!(right(&turned, &plan(64, 16, 1)), 2);
}

/// A matrix with the layout of D is loaded in pieces of a tile, or whole if its lines are along the
/// rows of tiles: several strips of columns, several iterations, in both directions.
#[test]
fn inputs_come_in_pieces() {
    for (layout, swapped) in [("(136,200):(200,1)", false), ("(136,200):(200,1)", true), ("(136,200):(1,136)", false)] {
        let problem = of(BF16, ["(136,328):(328,1)", "(200,328):(328,1)", layout], BF16);
        let inputs = vec![matrix(BF16, layout), matrix(BF16, "(136,200):(0,1)")];
        let fused = problem.fused(function("relu(x + b) + c", &["x", "c", "b"], inputs)).unwrap();
        right(&fused, &Plan { swapped, ..plan(128, 128, 2) });
        right(&fused, &Plan { swapped, ..plan(64, 72, 1) });
        // In ping-pong plans, warpgroups read them from global memory.
        right(&fused, &Plan { swapped, ping_pong: true, stages: 4, ..plan(64, 128, 2) });
    }
}

/// Where a tile of an input comes beside the largest tiles, each warpgroup writes its
/// rows on its own, and strips of them where lines of D go along them: several tiles of a block,
/// with edges; lines of D along the rows of a tile and along its columns; so many steps that inputs
/// come after a few; pairs, whose D may have 32 bits.
#[test]
fn groups_write_their_rows_on_their_own() {
    let own = |swapped| Plan { swapped, ..plan(128, 256, 2) };
    for (layout, swapped) in [("(200,328):(328,1)", false), ("(328,200):(200,1)", true), ("(200,328):(1,200)", false)] {
        let [m, n] = if swapped { [328, 200] } else { [200, 328] };
        let [a, b] = [format!("({m},328):(328,1)"), format!("({n},328):(328,1)")];
        let inputs = vec![matrix(BF16, layout), matrix(BF16, &format!("({m},{n}):(1,0)"))];
        let fused = of(BF16, [&a, &b, layout], BF16).fused(function("relu(x + b) + c", &["x", "c", "b"], inputs));
        right(&fused.unwrap(), &own(swapped));
    }
    let many = of(BF16, ["(136,1096):(1096,1)", "(264,1096):(1096,1)", "(136,264):(264,1)"], BF16);
    let inputs = vec![matrix(BF16, "(136,264):(264,1)"), matrix(BF16, "(136,264):(0,1)")];
    right(&many.fused(function("gelu_tanh(x + b) + c", &["x", "c", "b"], inputs)).unwrap(), &own(false));
    for element in [BF16, Element::F32] {
        let d = || matrix(element, "(136,264):(264,1)");
        let (a, b) = (matrix(BF16, "(136,200):(200,1)"), matrix(BF16, "(528,200):(200,1)"));
        let gate = function("silu(x) * y + c", &["x", "y", "c"], vec![d()]);
        right(&Problem::gated(a, b, d(), Pairs::Neighbours, gate).unwrap(), &own(false));
    }
}

/// Of an odd number of columns of tiles the last one is taken like all others where N is contiguous
/// in B: blocks would load halves of 28 columns, which are no whole lines.
#[test]
fn halves_have_k_contiguous() {
    let problem = of(BF16, ["(400,200):(200,1)", "(168,200):(1,168)", "(400,168):(168,1)"], BF16);
    let plan = Plan { cluster: 2, raster_band: 2, stages: 2, ..plan(192, 56, 3) };
    assert_eq!(right(&problem, &plan), 1);
}

/// Tiles whose columns are an odd multiple of eight: rows of D are contiguous in shared memory, as
/// a whole, in parts, and in parts of which the last one has fewer columns.
#[test]
fn rows_lie_one_behind_the_other() {
    for (columns, cluster) in [(72, 1), (136, 1), (152, 2)] {
        let problem = of(BF16, ["(264,72):(72,1)", "(160,72):(72,1)", "(264,160):(168,1)"], BF16);
        let plan = Plan { cluster, raster_band: cluster, stages: 2, ..plan(256, columns, 2) };
        right(&problem, &plan);
        if (columns, cluster) == (152, 2) {
            right(&problem.clone().batched(2).unwrap(), &plan);
            let turned = of(BF16, ["(160,72):(72,1)", "(264,72):(72,1)", "(160,264):(1,160)"], BF16);
            right(&turned, &Plan { swapped: true, ..plan.clone() });
        }
        let inputs = vec![matrix(BF16, "(264,160):(168,1)"), matrix(BF16, "(264,160):(0,1)")];
        let fused = problem.fused(function("relu(x + b) + c", &["x", "c", "b"], inputs)).unwrap();
        right(&fused, &plan);
    }
}

/// Elements of 32 bits go through shared memory in parts, with two alternating buffers: an even
/// number of parts and an odd one, a whole tile, with rows of D contiguous and with columns, and an
/// epilogue.
#[test]
fn wide_elements_are_stored_in_parts() {
    for (columns, layout) in [(256, "(136,520):(520,1)"), (192, "(136,520):(1,136)"), (160, "(136,520):(524,1)")] {
        let problem = of(BF16, ["(136,72):(72,1)", "(520,72):(72,1)", layout], Element::F32);
        right(&problem, &plan(128, columns, 2));
        right(&problem, &Plan { swapped: true, stages: 2, ..plan(128, columns, 2) });
        let inputs = vec![matrix(Element::F32, layout), matrix(Element::F32, "(136,520):(0,1)")];
        let fused = function("relu(x + b) + c", &["x", "c", "b"], inputs);
        right(&problem.fused(fused).unwrap(), &plan(128, columns, 2));
    }
    right(
        &of(Element::I8, ["(200,80):(80,1)", "(264,80):(80,1)", "(200,264):(264,1)"], Element::I32),
        &plan(128, 256, 2),
    );
}

/// Epilogues: vectors along rows and columns, matrices of every order, scalars, batches.
#[test]
fn functions_of_sums_are_right() {
    let (m, n, k) = (72, 88, 72);
    let input = |layout: &str, element| matrix(element, layout);
    let dense = Problem::new(BF16, [m, n, k]).unwrap();
    let names = ["x", "a", "b", "c"];
    let cases: [(&str, Vec<Matrix>); 7] = [
        ("2 * x - 1", vec![]),
        ("gelu_tanh(x + a) + b", vec![input("(72,88):(0,1)", BF16), input("(72,88):(88,1)", BF16)]),
        ("relu(x * a * b)", vec![input("(72,88):(1,0)", Element::F32), input("(72,88):(0,2)", Element::F32)]),
        ("0.5 * x + a * b", vec![input("(72,88):(0,0)", Element::F32), input("(72,88):(1,72)", Element::F16)]),
        ("clamp(x, -3, 3) / (1 + abs(a))", vec![input("(72,88):(89,1)", BF16)]),
        (
            "silu(x) * a + b * c",
            vec![input("(72,88):(1,80)", BF16), input("((8,9),88):((88,704),1)", BF16), input("(72,88):(3,0)", BF16)],
        ),
        ("gelu(x) + sigmoid(a)", vec![input("(72,88):(88,1)", Element::E4M3)]),
    ];
    for (number, (text, inputs)) in cases.into_iter().enumerate() {
        let problem = dense.clone().fused(function(text, &names[..=inputs.len()], inputs)).unwrap();
        for (swapped, splits) in [(false, 1), (true, 1), (number % 2 == 0, 1 + i64::from(number % 3 == 1))] {
            right(&problem, &Plan { swapped, split_k: splits, ..plan(64, [88, 40, 24][number % 3], 1) });
        }
    }
    // A tile of an input comes between those of the factors, in a block that has several.
    let inputs = vec![input("(136,256):(0,1)", BF16), input("(136,256):(256,1)", BF16)];
    let wide = Problem::new(BF16, [136, 256, 192]).unwrap().fused(function("relu(x + a) + b", &names[..3], inputs));
    right(&wide.unwrap(), &Plan { blocks: 1, ..plan(128, 256, 2) });
    // Three groups, whose tiles are multiplied by halves: with a tile of an input that comes ahead,
    // with D along the rows of a tile, and in f32.
    let three = Plan { stages: 2, ..plan(192, 208, 3) };
    let inputs = vec![input("(200,216):(0,1)", BF16), input("(200,216):(216,1)", BF16)];
    let wide = Problem::new(BF16, [200, 216, 136]).unwrap();
    right(&wide.fused(function("gelu(x + a) + b", &names[..3], inputs)).unwrap(), &three);
    let lies = |d| ["(200,136):(136,1)", "(216,136):(136,1)", d];
    right(&of(BF16, lies("(200,216):(1,200)"), BF16), &three);
    right(&of(BF16, lies("(200,216):(216,1)"), Element::F32), &three);
    // The second kernel of blocks that share tiles, for a D with columns and a function.
    let long = of(BF16, ["(40,200):(200,1)", "(24,200):(200,1)", "(40,24):(1,48)"], Element::F16);
    right(&long, &Plan { split_k: 3, ..plan(64, 24, 1) });
    let bias = matrix(BF16, "(40,24):(1,0)").at(7).unwrap();
    let fused = function("relu(x + y)", &["x", "y"], vec![bias]);
    right(&long.fused(fused).unwrap(), &Plan { split_k: 2, ..plan(64, 24, 1) });
    // A batch: one bias for each matrix, one residual for all.
    let inputs = vec![matrix(BF16, "(40,32,3):(0,1,32)"), matrix(BF16, "(40,32,3):(32,1,0)")];
    let batch = Problem::new(BF16, [40, 32, 24]).unwrap().batched(3).unwrap();
    let fused = function("x + y * z", &["x", "y", "z"], inputs);
    right(&batch.fused(fused).unwrap(), &plan(64, 32, 1));
}

/// f32 by six products of parts in bf16, whatever the layouts; and far more exact than tf32.
#[test]
fn f32_is_multiplied_exactly() {
    for layouts in [
        ["(40,24):(24,1)", "(48,24):(24,1)", "(40,48):(48,1)"],
        ["(33,21):(1,33)", "(19,21):(23,1)", "(33,19):(1,33)"],
        ["(16,20,3):(20,1,320)", "(24,20,3):(1,24,0)", "(16,24,3):(24,1,384)"],
    ] {
        let problem = of(Element::F32, layouts, Element::F32);
        let product = Product::new(&problem, &h200()).unwrap();
        // Numbers of all bits, of both signs, from 2^-20 to 2^20.
        let numbers = |operand: ProductTensor, element: Element, count: usize| -> Vec<u8> {
            let mut state = if operand == ProductTensor::A { 7_u64 } else { 11 };
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let bits = (state >> 32) as u32;
                let exponent = 107 + (state >> 13) as u32 % 41;
                f32::from_bits(bits & 0x807f_ffff | exponent << 23)
            };
            assert_eq!(element, Element::F32);
            (0..count).flat_map(|_| next().to_le_bytes()).collect()
        };
        let report = product.check_on(&numbers).unwrap_or_else(|error| panic!("{problem}: {error}"));
        assert_eq!(report.compared as i64, problem.sizes()[0] * problem.sizes()[1] * problem.batch());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let a = || matrix(BF16, "(32,16):(16,1)");
    let code = |result: Result<Problem, tilewright_planners::PlanError>| result.unwrap_err().code();
    assert_eq!(code(Problem::of(a(), matrix(BF16, "(16,8):(8,1)"), matrix(BF16, "(32,16):(16,1)"))), "E0942");
    assert_eq!(code(Problem::of(a(), a(), matrix(BF16, "(32,32):(0,1)"))), "E0932");
    assert_eq!(code(Problem::of(a(), a(), matrix(Element::U16, "(32,32):(32,1)"))), "E0936");
    assert_eq!(code(Problem::of(a(), matrix(Element::F16, "(8,16):(16,1)"), matrix(BF16, "(32,8):(8,1)"))), "E0936");
    assert_eq!(Matrix::new(BF16, &"64:1".parse().unwrap()).unwrap_err().code(), "E0941");
    assert_eq!(Matrix::new(BF16, &"(8,8):(-8,1)".parse().unwrap()).unwrap_err().code(), "E0933");
    let sum = |inputs| function("x + y", &["x", "y"], inputs);
    let dense = || Problem::new(BF16, [16, 16, 16]).unwrap();
    assert_eq!(code(dense().fused(sum(vec![]))), "E0936");
    assert_eq!(code(dense().fused(sum(vec![a()]))), "E0938");
}
