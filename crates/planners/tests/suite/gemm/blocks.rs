//! Block-scaled formats: the interpreter runs kernels for an RTX 5090, and each element of D is
//! compared with a plain loop over elements, scales and layouts.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::operation::BlockScaled;
use tilewright_kernel::ptx;
use tilewright_planners::PlanError;
use tilewright_planners::gemm::{Matrix, Plan, Problem, Problems, Product, Scales};

use crate::gemm::{BF16, function, matrix};

const ALL: [BlockScaled; 4] = BlockScaled::ALL;

fn card() -> Machine {
    Machine::named("RTX 5090").unwrap()
}

fn plan(rows: i64, columns: i64, warps: [i64; 2], producer: bool) -> Plan {
    let plan = crate::gemm::plan(rows, columns, 1);
    Plan { stages: 3, programmatic_launch: false, warps: Some(warps), producer, ..plan }
}

/// The matrices of a format: the type of operands, and K in columns and in scales.
fn of(format: BlockScaled, k: i64) -> (Element, i64, i64) {
    let (packed, block) = (i64::from(format.packed()), i64::from(format.block()));
    let element = match format {
        BlockScaled::Mxf8E4M3 => Element::E4M3,
        BlockScaled::Mxf8E5M2 => Element::E5M2,
        BlockScaled::Mxf4 | BlockScaled::Nvf4 => Element::U8,
    };
    (element, (k + packed - 1) / packed, (k + block - 1) / block)
}

fn dense(format: BlockScaled, result: Element, [m, n, k]: [i64; 3]) -> Problem {
    let (element, columns, scales) = of(format, k);
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    let scales = Scales { a: rows(Element::U8, [m, scales]), b: rows(Element::U8, [n, scales]) };
    let [a, b] = [m, n].map(|lines| rows(element, [lines, columns]));
    Problem::block_scaled(format, a, b, rows(result, [m, n]), scales).unwrap()
}

/// Runs a plan, with text for both cards, and says how many kernels it has.
fn right(problem: &Problem, plan: &Plan) -> usize {
    let product = Product::planned(problem, plan, &card()).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    for target in [ptx::Target::Sm120, ptx::Target::Sm121] {
        for kernel in product.kernels() {
            ptx::write(kernel.program(), target).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
        }
    }
    let report = product.check().unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    let [m, n, _] = problem.sizes();
    assert!(report.compared as i64 >= m * n * problem.batch(), "{problem}");
    product.kernels().len()
}

#[test]
fn every_format_is_multiplied_by_every_grid_of_warps() {
    for format in ALL {
        for producer in [false, true] {
            let whole = dense(format, BF16, [72, 80, 384]);
            assert_eq!(right(&whole, &plan(64, 64, [2, 2], producer)), 1);
            assert_eq!(right(&whole, &Plan { swapped: true, ..plan(32, 64, [1, 2], producer) }), 1);
            assert_eq!(right(&dense(format, Element::F32, [40, 40, 256]), &plan(64, 32, [4, 1], producer)), 1);
        }
    }
}

/// Rows of scales that are no whole words, K that ends within a block, and lines of operands that
/// TMA cannot read.
#[test]
fn sizes_may_be_odd() {
    for format in ALL {
        for sizes in [[33, 19, 96], [17, 40, 80], [24, 24, 34], [1, 1, 2], [70, 8, 1056]] {
            right(&dense(format, BF16, sizes), &plan(32, 32, [2, 1], false));
            right(&dense(format, BF16, sizes), &Plan { swapped: true, ..plan(32, 32, [1, 2], false) });
        }
    }
}

#[test]
fn batches_and_layouts_are_read_in_place_or_copied() {
    for format in [BlockScaled::Mxf8E4M3, BlockScaled::Nvf4] {
        let (element, columns, scales) = of(format, 256);
        let operand = |rows: i64, text: &str| matrix(element, &format!("({rows},{columns},2):{text}"));
        let apart = format!("({columns},1,{})", 48 * columns);
        let of_a = matrix(Element::U8, &format!("(40,{scales},2):({},1,{})", scales + 16, 40 * (scales + 16)));
        // Scales with the rows contiguous are copied.
        let of_b = matrix(Element::U8, &format!("(24,{scales},2):(1,24,{})", 24 * scales));
        let d = matrix(BF16, "(40,24,2):(24,1,960)");
        let (a, b) = (operand(40, &apart), operand(24, &apart));
        let problem = Problem::block_scaled(format, a, b, d, Scales { a: of_a, b: of_b }).unwrap();
        for producer in [false, true] {
            assert_eq!(right(&problem, &plan(32, 32, [2, 1], producer)), 2);
        }
    }
}

#[test]
fn epilogues_and_split_k_are_those_of_other_types() {
    let problem = dense(BlockScaled::Mxf4, BF16, [72, 88, 1024]);
    let inputs = || vec![matrix(BF16, "(72,88):(0,1)"), matrix(BF16, "(72,88):(88,1)")];
    let fused = problem.clone().fused(function("relu(x + bias) + c", &["x", "bias", "c"], inputs())).unwrap();
    for producer in [false, true] {
        right(&fused, &plan(64, 32, [2, 2], producer));
        assert_eq!(right(&problem, &Plan { split_k: 2, ..plan(64, 32, [2, 2], producer) }), 2);
        let reduced = problem.clone().reducing("row max abs(d)".parse().unwrap()).unwrap();
        right(&reduced, &plan(64, 32, [4, 1], producer));
    }
}

/// The plan of the model can be carried out.
#[test]
fn plans_of_the_model_are_right() {
    for name in ["RTX 5090", "GB10"] {
        let machine = Machine::named(name).unwrap();
        for format in ALL {
            let problem = dense(format, BF16, [72, 40, 384]);
            let plan = Product::new(&problem, &machine).unwrap().plan().clone();
            right(&problem, &plan);
        }
    }
}

#[test]
fn other_machines_types_and_shapes_are_refused() {
    let problem = dense(BlockScaled::Nvf4, BF16, [64, 64, 256]);
    for name in ["A100", "RTX 4090", "H200", "B200"] {
        let refused = Product::new(&problem, &Machine::named(name).unwrap()).unwrap_err();
        let refused = format!("{refused}; {}", refused.help().unwrap_or_default());
        assert!(refused.contains("RTX 5090") && refused.contains("bf16") && refused.contains(name), "{refused}");
    }
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    let scaled = |format, element, scales: Matrix| {
        let (a, b) = (rows(element, [64, 128]), rows(element, [32, 128]));
        let of_b = rows(Element::U8, [32, 16]);
        Problem::block_scaled(format, a, b, rows(BF16, [64, 32]), Scales { a: scales, b: of_b })
    };
    let whole = || rows(Element::U8, [64, 16]);
    assert!(scaled(BlockScaled::Nvf4, Element::U8, whole()).is_ok());
    let refused = scaled(BlockScaled::Nvf4, Element::E4M3, whole()).unwrap_err();
    assert!(matches!(refused, PlanError::Unknown { .. }), "{refused}");
    let refused = scaled(BlockScaled::Nvf4, Element::U8, rows(Element::U8, [64, 8])).unwrap_err();
    assert!(matches!(&refused, PlanError::Shape { shape, .. } if shape == "(64,16)"), "{refused}");
    let refused = scaled(BlockScaled::Nvf4, Element::U8, rows(Element::F32, [64, 16])).unwrap_err();
    assert!(matches!(refused, PlanError::Unknown { .. }), "{refused}");
    // What has scales of its own takes no others, and stands alone in its launch.
    let others = Scales { a: rows(Element::F32, [64, 1]), b: rows(Element::F32, [1, 1]) };
    assert!(matches!(problem.clone().scaled(others), Err(PlanError::Together { .. })));
    assert!(matches!(problem.clone().batched(2), Err(PlanError::Together { .. })));
    assert!(matches!(Problems::new(vec![problem]), Err(PlanError::Together { .. })));
}
