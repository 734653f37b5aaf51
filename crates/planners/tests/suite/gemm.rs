//! Plans of products, carried out by the interpreter and compared with plain loops: every schedule,
//! every kind of problem. Only plans that are given; `plan.rs` of the crate chooses others.

mod blocks;
mod chunks;
mod every_plan;
mod floors;
mod fold;
mod groups;
mod images;
mod invariant;
mod kinds;
mod lists;
mod pairs;
mod schedules;
mod warps;

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_planners::Expression;
use tilewright_planners::gemm::{Fused, Matrix, Plan, Problem, Product};

const BF16: Element = Element::Bf16;

/// The machine of all plans here.
fn h200() -> Machine {
    Machine::named("H200").unwrap()
}

/// A matrix of a layout in the language.
fn matrix(element: Element, layout: &str) -> Matrix {
    Matrix::new(element, &layout.parse().unwrap()).unwrap()
}

/// An epilogue function of the accumulator and of these inputs, in the order of its text.
fn function(text: &str, names: &[&str], inputs: Vec<Matrix>) -> Fused {
    Fused { expression: Expression::parse(text, names).unwrap(), inputs }
}

/// A plan with few stages and blocks, so that rings go round and blocks have several tiles.
fn plan(rows: i64, columns: i64, warpgroups: i64) -> Plan {
    Plan {
        swapped: false,
        rows,
        columns,
        warpgroups,
        stages: 3,
        split_k: 1,
        tail: 0,
        cluster: 1,
        raster_band: 1,
        blocks_per_sm: 1,
        blocks: 2,
        programmatic_launch: true,
        ping_pong: false,
        warps: None,
        producer: false,
    }
}

/// The product of a plan, which computed what a plain loop does, and how many numbers of it were
/// compared.
fn checked(problem: &Problem, plan: &Plan) -> (Product, i64) {
    let product = Product::planned(problem, plan, &h200()).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    let report = product.check().unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    (product, report.compared as i64)
}
