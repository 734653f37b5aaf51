//! What the cost report says, beside what the interpreter executes.
//!
//! Law: what is counted as exact is what a run executes; what is counted as at most is not less,
//! and what is counted as at least is not more. So a time that is said to be at least is never
//! above one that follows from what is executed.

use std::collections::HashSet;

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{AccessCount, Class, Schedule};
use tilewright_kernel::machine::Machine;
use tilewright_planners::{EntryOptions, library, product};

use crate::h200;

#[test]
fn counts_are_those_of_a_run() {
    let machine = Machine::named("H200").unwrap();
    let mut exact = 0;
    for entry in library() {
        let (name, plan) = (entry.name, entry.plan(&h200(), EntryOptions::default()).unwrap());
        let counted = plan.kernel().program().cost(&machine, plan.sizes()).unwrap().counted;
        let Ok(counted) = counted else { continue };
        if counted.walked < counted.blocks || counted.multiplied {
            continue;
        }
        let run = plan.interpreter().unwrap().run(Schedule::ALL[0]).unwrap_or_else(|found| panic!("{name}: {found}"));
        let of = |list: &[(Class, u64)], class: Class| {
            list.iter().find(|(own, _)| *own == class).map_or(0, |(_, count)| *count)
        };
        for class in Class::ALL {
            let (least, most) = (of(&counted.executed_least, class), of(&counted.executed, class));
            let own = run.counts.executed(class);
            assert!(least <= own && own <= most, "{name}, {class:?}: {least} <= {own} <= {most}");
            assert!(counted.both_sides || (least, own) == (own, most), "{name}, {class:?}: {own} of {most}");
        }
        exact += usize::from(counted.is_exact());
        let most = AccessCount::by_statement(&counted.accesses);
        for access in AccessCount::by_statement(&run.counts.accesses) {
            let same = |most: &&AccessCount| {
                (most.source, most.class, &most.buffer) == (access.source, access.class, &access.buffer)
            };
            let found = most.iter().find(same);
            let most = found.unwrap_or_else(|| panic!("{name}: {access:?} is not counted"));
            let numbers =
                |count: &AccessCount| [count.requests, count.bytes, count.wavefronts, count.sectors, count.lines];
            let below = numbers(&access).iter().zip(numbers(most)).all(|(own, most)| *own <= most);
            assert!(below, "{name}: {access:?} of {most:?}");
            assert!(most.at_most || numbers(&access) == numbers(most), "{name}: {access:?} of {most:?}");
        }
        // What is touched for sure is touched.
        let bytes: u64 =
            (0..plan.kernel().program().tensors().count()).map(|at| run.bytes(at).unwrap().len() as u64).sum();
        assert!(counted.touched_bytes <= bytes, "{name}: {} bytes of {bytes}", counted.touched_bytes);
    }
    // Most kernels do the same whatever memory has.
    assert!(exact * 2 > library().len(), "{exact} of {}", library().len());
}

/// Warps that copy are not counted as those that multiply.
#[test]
fn a_product_has_the_operations_of_its_definition() {
    let machine = Machine::named("H200").unwrap();
    for [m, n, k] in [[4096, 4096, 4096], [8192, 4096, 1024], [1024, 2048, 8192]] {
        let planned = product(&machine, "product", Element::Bf16, [m, n, k]).unwrap();
        let cost = planned.kernel().program().cost(&machine, planned.sizes()).unwrap();
        let counted = cost.counted.clone().unwrap();
        let wanted = 2.0 * (m * n * k) as f64;
        assert!(!counted.both_sides);
        assert!((counted.operations.matrix / wanted - 1.0).abs() < 1e-9, "{}", counted.operations.matrix / wanted);
        assert_eq!(counted.operations.matrix, counted.least.matrix);
        let bound = cost.bounds().into_iter().find(|bound| bound.what == "matrix instructions").unwrap();
        assert!(bound.seconds <= wanted / machine.rates.matrix_16 * (1.0 + 1e-9), "{bound:?}");
        let names: HashSet<&str> = cost.bounds().iter().map(|bound| bound.what).collect();
        assert!(names.contains("device memory"), "{names:?}");
    }
}
