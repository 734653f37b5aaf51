//! Sizes, alignments, types and plans at the ends of what they may be: a plan or an error, and no
//! panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, ptx};
use tilewright_layout::Layout;
use tilewright_planners::gemm::{Matrix, Plan, Problem, Product};
use tilewright_planners::{
    EntryOptions, Expression, MapOptions, PlanError, ReduceOptions, RowMatrix, Statistic, layer_norm, library, map,
    named, reduce, relayout, rms_norm, softmax,
};

use crate::h200;

const SIZES: [i64; 8] = [-1, 0, 1, 8, (1 << 16) + 1, (1 << 31) - 1, 1 << 40, i64::MAX];

#[test]
fn sizes_of_any_magnitude_are_planned_or_refused() {
    let machine = Machine::named("A100").unwrap();
    let (mut planned, mut refused) = (0, 0);
    for entry in library() {
        for first in SIZES {
            for others in SIZES {
                let size = |at: usize| if at == 0 { first } else { others };
                let sizes: Vec<(&str, i64)> =
                    entry.sizes.iter().enumerate().map(|(at, (name, _))| (*name, size(at))).collect();
                let tried = catch_unwind(AssertUnwindSafe(|| {
                    let plan = entry.plan(&h200(), EntryOptions { sizes: &sizes, ..EntryOptions::default() })?;
                    let program = plan.kernel().program();
                    // What is planned can be launched.
                    program.launch(plan.sizes()).unwrap();
                    if first <= 8 && others <= 8 {
                        let _ = program.cost(&machine, plan.sizes());
                        let _ = ptx::write(program, ptx::Target::Sm90a);
                    }
                    Ok::<_, tilewright_planners::PlanError>(())
                }));
                match tried.unwrap_or_else(|_| panic!("{} panics at {sizes:?}", entry.name)) {
                    Ok(()) => planned += 1,
                    Err(error) => {
                        assert!(!error.code().is_empty() && !error.to_string().is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(planned > 100 && refused > 100, "{planned} planned, {refused} refused");
}

/// Sizes that no launch takes are refused when a kernel is planned, with the size and the reason.
#[test]
fn sizes_that_are_not_admitted_have_no_plan() {
    let refused = |name: &str, sizes: &[(&str, i64)]| {
        let error = named(name).unwrap().plan(&h200(), EntryOptions { sizes, ..EntryOptions::default() }).unwrap_err();
        (error.code(), error.to_string())
    };
    let twice = ("E1002", "the size `M` is given twice".to_owned());
    assert_eq!(refused("transpose", &[("M", 5), ("N", 3), ("M", 5)]), twice);
    for (name, size, least) in [("product", "K", 8), ("tiled_add", "N", 4), ("group_product", "N", 8)] {
        let said = format!("the size `{size}` is 7, and the kernel needs a multiple of {least}, at least {least}");
        assert_eq!(refused(name, &[(size, 7)]), ("E1002", said));
    }
    for modes in [5, 10, 11, 41_234, i64::from(u32::MAX)] {
        let said = format!("no list of modes is called {modes}");
        assert_eq!(refused("sum_modes", &[("MODES", modes)]), ("E0936", said));
    }
    // Matrices whose bytes are no 64-bit number, and the same with a row less.
    for name in ["gather", "scatter"] {
        let plan = |rows: i64| {
            named(name).unwrap().plan(
                &h200(),
                EntryOptions {
                    sizes: &[("K", rows), ("M", 2), ("N", 1 << 31)],
                    element: Some(Element::U8),
                    ..EntryOptions::default()
                },
            )
        };
        assert_eq!(plan(1 << 32).unwrap_err().code(), "E0103", "{name}");
        plan((1 << 32) - 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// What begins at multiples of 6 elements begins at multiples of 2, and no plan asks for more.
#[test]
fn tensors_begin_at_multiples_of_any_number() {
    for alignment in [0, 1, 3, 6, 12, -4, i64::MIN, i64::MAX] {
        for columns in [1, 7, 24, 600] {
            for element in [Element::F32, Element::Bf16] {
                let matrix = RowMatrix::new(columns, element).aligned(alignment);
                let rows =
                    [softmax(&h200(), matrix), rms_norm(&h200(), matrix, 1e-5), layer_norm(&h200(), matrix, 1e-5)];
                for planned in rows {
                    let planned = planned.unwrap_or_else(|error| panic!("{columns} {element} {alignment}: {error}"));
                    ptx::write(planned.kernel().program(), ptx::Target::Sm90a).unwrap();
                }
                let matrix: Layout = format!("({columns},5):(5,1)").parse().unwrap();
                for modes in [[0], [1]] {
                    let planned =
                        reduce(&h200(), Statistic::Sum, (&matrix, element), &modes, ReduceOptions { alignment });
                    let planned = planned.unwrap_or_else(|error| panic!("{columns} {element} {alignment}: {error}"));
                    planned.check().unwrap_or_else(|error| panic!("{columns} {element} {alignment}: {error}"));
                }
            }
        }
    }
}

/// Every type has a greatest element, along either mode, also those that are only stored.
#[test]
fn elements_of_all_types_are_compared() {
    let matrix: Layout = "(24,10):(1,24)".parse().unwrap();
    for element in Element::ALL {
        for statistic in [Statistic::Maximum, Statistic::ArgMaximum] {
            for modes in [[0], [1]] {
                let planned = reduce(&h200(), statistic, (&matrix, element), &modes, ReduceOptions::default());
                let planned = planned.unwrap_or_else(|error| panic!("{statistic:?} of {element}: {error}"));
                planned.check().unwrap_or_else(|error| panic!("{statistic:?} of {element}: {error}"));
            }
        }
    }
}

/// From every type to every other: integers keep the bits that there is room for, and what becomes
/// an integer is rounded toward zero.
#[test]
fn all_types_are_converted() {
    let (from, to): (Layout, Layout) = ("(9,7):(7,1)".parse().unwrap(), "(9,7):(1,9)".parse().unwrap());
    for source in Element::ALL {
        for destination in Element::ALL {
            let planned = relayout(&h200(), &from, source, &to, destination);
            let planned = planned.unwrap_or_else(|error| panic!("{source} to {destination}: {error}"));
            planned.check().unwrap_or_else(|error| panic!("{source} to {destination}: {error}"));
        }
    }
}

/// Tensors of a map begin inside of their memory, and are checked there.
#[test]
fn maps_begin_anywhere() {
    let (x, y): (Layout, Layout) = ("(6,5):(5,1)".parse().unwrap(), "(6,5):(1,6)".parse().unwrap());
    let add = Expression::input(0) + Expression::input(1);
    for element in [Element::F32, Element::I64, Element::U32] {
        let inputs = [(&x, element, 3), (&y, element, 0)];
        let planned = map(&h200(), &add, &inputs, (&y, element, 8), MapOptions { name: "add" }).unwrap();
        planned.check().unwrap_or_else(|error| panic!("{element}: {error}"));
    }
    // The hardware has no powers in f64.
    let refused = |text: &str| {
        let expression = Expression::parse(text, &["x"]).unwrap();
        map(&h200(), &expression, &[(&x, Element::F64)], (&y, Element::F64), MapOptions::default())
    };
    assert_eq!(refused("gelu(x)").unwrap_err().code(), "E0936");
    assert!(refused("sqrt(x) / (1 + abs(x))").is_ok());
}

/// A plan with any numbers has a kernel, or is refused as a plan.
#[test]
fn plans_of_any_numbers_are_carried_out_or_refused() {
    let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    let problem = |element, [m, n, k]: [i64; 3]| {
        Problem::of(rows(element, [m, k]), rows(element, [n, k]), rows(Element::Bf16, [m, n])).unwrap()
    };
    let problems = [problem(Element::Bf16, [300, 264, 200]), problem(Element::E4M3, [72, 144, 400])];
    let wild = [i64::MIN, i64::MAX, -1, 0, 1, 2, 3, 5, 100, 576, 1 << 20, 1 << 40, i64::MAX / 64];
    let (mut made, mut refused) = (0, 0);
    for problem in &problems {
        let plans = Product::candidates(problem, &Machine::named("H200").unwrap()).unwrap();
        let changes: [fn(&mut Plan) -> &mut i64; 10] = [
            |plan| &mut plan.rows,
            |plan| &mut plan.columns,
            |plan| &mut plan.warpgroups,
            |plan| &mut plan.stages,
            |plan| &mut plan.split_k,
            |plan| &mut plan.tail,
            |plan| &mut plan.cluster,
            |plan| &mut plan.raster_band,
            |plan| &mut plan.blocks_per_sm,
            |plan| &mut plan.blocks,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            for (at, value) in wild.into_iter().enumerate() {
                let mut plan = plans[(number * 7 + at * 3) % plans.len()].1.clone();
                *change(&mut plan) = value;
                match Product::planned(problem, &plan, &Machine::named("H200").unwrap()) {
                    Ok(_) => made += 1,
                    Err(PlanError::Plan { .. }) => refused += 1,
                    Err(error) => panic!("{problem}, {}: {error}", plan.line()),
                }
            }
        }
    }
    assert!(made > 20 && refused > 100, "{made} made, {refused} refused");
    // Ends of groups are numbers of 31 bits.
    let (a, b) = (rows(Element::Bf16, [(1 << 31) + 8, 16]), rows(Element::Bf16, [32, 16]));
    let error = Problem::grouped(a, b, rows(Element::Bf16, [(1 << 31) + 8, 32])).unwrap_err();
    assert_eq!(error.code(), "E0935", "{error}");
}

#[test]
fn powers_and_roots_are_of_what_f32_holds() {
    for element in Element::ALL {
        let matrix = RowMatrix::new(64, element);
        let rows = [softmax(&h200(), matrix), rms_norm(&h200(), matrix, 1e-5), layer_norm(&h200(), matrix, 1e-5)];
        let held = element.is_float() && element != Element::F64;
        for planned in rows {
            assert_eq!(
                planned.as_ref().err().map(PlanError::code),
                if held { None } else { Some("E0936") },
                "{element}"
            );
        }
    }
}
