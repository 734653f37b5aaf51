//! What is shown and counted of every kernel of the library before it runs: its outputs, and its
//! cost beside the counts of the interpreter.

use tilewright_kernel::Written;
use tilewright_kernel::cost::{Cost, Machine};
use tilewright_kernel::interpret::{AccessCount, Class, Counts};
use tilewright_kernels::{Planned, library};

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
            let planned = entry.plan(&[], Some(*element)).unwrap();
            let report = planned.check().unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
            agrees(entry.name, &cost(&planned), &report.checked.run.counts);
        }
    }
}

#[test]
fn outputs_are_shown_to_be_written_once() {
    for entry in library() {
        for planned in [entry.plan(&[], None).unwrap(), entry.plan_large(&[], None).unwrap()] {
            // Blocks of the one take tiles in turn, by quotients of numbers known at launch; the
            // other writes its output as words.
            if ["group_product", "relayout_windows"].contains(&planned.kernel().name()) {
                // Windows have no other sizes than those of a check.
                let windows = planned.kernel().name() == "relayout_windows";
                assert_eq!(planned.kernel().program().sizes.is_empty(), windows, "{}", entry.name);
                continue;
            }
            for output in planned.kernel().outputs() {
                assert_eq!(output.written, Written::Once, "{}: {}", entry.name, output.written);
            }
        }
    }
}

#[test]
fn large_sizes_have_a_cost() {
    for entry in library() {
        let planned = entry.plan_large(&[], None).unwrap();
        let cost = cost(&planned);
        assert!(cost.counted.is_ok(), "{}", entry.name);
        assert!(cost.occupancy.blocks > 0, "{}: {cost}", entry.name);
        assert!(cost.roofline().is_some_and(|bound| bound.seconds > 1e-6), "{}: {cost}", entry.name);
    }
}

#[test]
fn sectors_of_large_copies_are_those_of_the_tensors() {
    for (name, sizes) in [("copy", vec![("N", 1 << 26)]), ("transpose", vec![("M", 8192), ("N", 4096)])] {
        let entry = tilewright_kernels::named(name).unwrap();
        let cost = cost(&entry.plan_large(&sizes, None).unwrap());
        assert!(cost.counted.as_ref().unwrap().walked < cost.counted.as_ref().unwrap().blocks);
        assert_eq!(cost.sectors() * 32, cost.tensor_bytes, "{name}");
    }
}
