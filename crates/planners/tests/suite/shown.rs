//! What is shown and counted of every kernel of the library before it runs: its outputs, and its
//! cost beside the counts of the interpreter.

use std::collections::BTreeSet;

use tilewright_kernel::cost::Cost;
use tilewright_kernel::interpret::{AccessCount, Class, Counts};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, Written};
use tilewright_planners::gemm::{Matrix, Plan, Problem, Product};
use tilewright_planners::{EntryOptions, Planned, library, product};

use crate::h200;

fn cost(planned: &Planned) -> Cost {
    planned.kernel().program().cost(&Machine::named("H200").unwrap(), planned.sizes()).unwrap()
}

/// Counts of all blocks are those of the interpreter; those that memory decides are at most these.
fn agrees(name: &str, cost: &Cost, counts: &Counts) {
    let counted = cost.counted.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"));
    if counted.walked < counted.blocks {
        return;
    }
    let (own, run) = (AccessCount::by_statement(&counted.accesses), AccessCount::by_statement(&counts.accesses));
    if !counted.both_sides {
        for class in Class::ALL {
            let found = counted.executed.iter().find(|(own, _)| *own == class).map_or(0, |(_, count)| *count);
            assert_eq!(found, counts.executed(class), "{name}: {class:?}");
        }
    }
    for access in run {
        let key = |access: &AccessCount| (access.source, access.class, access.buffer.clone());
        let same = |own: &&AccessCount| key(own) == key(&access);
        let own = own.iter().find(same).unwrap_or_else(|| panic!("{name}: {access:?}"));
        if own.at_most {
            assert!(own.sectors >= access.sectors && own.wavefronts >= access.wavefronts, "{name}: {own:?} {access:?}");
        } else {
            assert_eq!(own, &access, "{name}");
        }
    }
}

#[test]
fn counts_are_those_of_the_interpreter() {
    for entry in library() {
        for element in entry.types.iter().take(1) {
            let planned =
                entry.plan(&h200(), EntryOptions { element: Some(*element), ..EntryOptions::default() }).unwrap();
            let report = planned.check().unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
            agrees(entry.name, &cost(&planned), &report.checked.run.counts);
        }
    }
}

#[test]
fn outputs_are_shown_to_be_written_once() {
    for entry in library() {
        for planned in [
            entry.plan(&h200(), EntryOptions::default()).unwrap(),
            entry.plan(&h200(), EntryOptions { large: true, ..EntryOptions::default() }).unwrap(),
        ] {
            // Windows are written as words, and of large tensors not all stores are listed. They
            // have no other sizes than those of a check.
            let large = planned.kernel().outputs().iter().all(|output| output.written != Written::Once);
            if planned.kernel().name() == "relayout_windows" && large {
                assert!(planned.kernel().program().sizes.is_empty(), "{}", entry.name);
                continue;
            }
            for output in planned.kernel().outputs() {
                assert_eq!(output.written, Written::Once, "{}: {}", entry.name, output.written);
            }
        }
    }
}

#[test]
fn products_of_any_sizes_are_shown() {
    for sizes in [
        [1, 8, 8],
        [64, 8, 64],
        [150, 264, 136],
        [333, 4096, 2048],
        [1000, 1000, 1000],
        [5000, 24, 64],
        [24, 5000, 64],
        [1024, 1024, 512],
        [4096, 4096, 4096],
        [16384, 128, 512],
        [8192, 28672, 8192],
    ] {
        for element in [Element::Bf16, Element::F16] {
            let planned = product(&h200(), "product", element, sizes).unwrap();
            for output in planned.kernel().outputs() {
                assert_eq!(output.written, Written::Once, "{sizes:?}: {}\n{planned}", output.written);
            }
        }
    }
}

#[test]
fn plans_of_products_are_shown() {
    let kind = |plan: &Plan| {
        let several = [plan.swapped, plan.split_k > 1, plan.tail > 0, plan.ping_pong];
        (several, [plan.rows, plan.cluster, plan.raster_band])
    };
    let (mut kinds, mut shown, mut in_two_orders) = (BTreeSet::new(), 0, 0);
    for [m, n, k, many] in
        [[136, 136, 136, 1], [136, 136, 136, 3], [1000, 3000, 512, 1], [3000, 5000, 512, 1], [4096, 4096, 1024, 1]]
    {
        let matrix = |[rows, columns]: [i64; 2]| {
            let further = if many > 1 { rows * columns } else { 0 };
            Matrix::strided(Element::Bf16, [rows, columns, many], [columns, 1, further]).unwrap()
        };
        let [a, b, d] = [[m, k], [n, k], [m, n]].map(matrix);
        let problem = Problem::of(a, b, d).unwrap();
        for (_, plan) in Product::candidates(&problem, &Machine::named("H200").unwrap()).unwrap() {
            if !kinds.insert((many, kind(&plan))) {
                continue;
            }
            let product = Product::planned(&problem, &plan, &Machine::named("H200").unwrap()).unwrap();
            // Where clusters have the last of an odd number of columns of tiles one above the
            // other, those come after all others.
            let two_orders = product.lines().iter().any(|line| line.contains("is odd: the last"));
            for output in product.kernels().iter().flat_map(|kernel| kernel.outputs()) {
                assert_eq!(output.written, Written::Once, "{problem}, {plan}: {}", output.written);
                shown += 1;
                in_two_orders += usize::from(two_orders);
            }
        }
    }
    assert!(shown > 20 && in_two_orders > 5, "{shown} shown, {in_two_orders} of them in two orders");
}

#[test]
fn large_sizes_have_a_cost() {
    for entry in library() {
        let planned = entry.plan(&h200(), EntryOptions { large: true, ..EntryOptions::default() }).unwrap();
        let cost = cost(&planned);
        assert!(cost.counted.is_ok(), "{}", entry.name);
        assert!(cost.occupancy.blocks > 0, "{}: {cost}", entry.name);
        assert!(cost.roofline().is_some_and(|bound| bound.seconds > 1e-6), "{}: {cost}", entry.name);
    }
}

#[test]
fn sectors_of_large_copies_are_those_of_the_tensors() {
    for (name, sizes) in [("copy", vec![("N", 1 << 26)]), ("transpose", vec![("M", 8192), ("N", 4096)])] {
        let entry = tilewright_planners::named(name).unwrap();
        let cost =
            cost(&entry.plan(&h200(), EntryOptions { sizes: &sizes, large: true, ..EntryOptions::default() }).unwrap());
        assert!(cost.counted.as_ref().unwrap().walked < cost.counted.as_ref().unwrap().blocks);
        assert_eq!(cost.sectors() * 32, cost.tensor_bytes, "{name}");
    }
}
