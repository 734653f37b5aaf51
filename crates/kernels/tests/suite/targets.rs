//! Plans and the limits of targets.
//!
//! Law: a plan for a target is one that the target holds. A kernel that no block of it could run is
//! not written (E0926), and a plan of the library has another one for such a target, unless its
//! instructions are new in another (E0921).

use tilewright_kernel::Element;
use tilewright_kernel::cost::Multiprocessor;
use tilewright_kernel::ptx::{self, Target};
use tilewright_kernels::{library, product};

#[test]
fn plans_of_the_library_fit_their_targets() {
    for entry in library() {
        for target in Target::ALL {
            let plans = [entry.plan(&[], None), entry.plan_large(&[], None)];
            for plan in plans {
                let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", entry.name)).on(target);
                for kernel in plan.launches() {
                    let written = ptx::write(kernel.program(), target);
                    // What the program says of itself is what its text needs.
                    assert_eq!(
                        written.is_ok(),
                        kernel.program().runs_on(target),
                        "{} for {}",
                        entry.name,
                        target.name()
                    );
                    if let Err(error) = written {
                        assert_eq!(error.code(), "E0921", "{} for {}: {error}", entry.name, target.name());
                    }
                }
            }
        }
    }
}

#[test]
fn products_are_cut_as_targets_hold_them() {
    for (factors, result) in [(Element::Bf16, Element::Bf16), (Element::F16, Element::F32)] {
        for sizes in [[4096, 4096, 4096], [4095, 4100, 72], [128, 128, 64], [8192, 256, 128]] {
            for target in Target::ALL {
                let plan = product(factors, result, sizes).unwrap().on(target);
                let (taken, limit) =
                    (plan.kernel().program().shared_bytes, Multiprocessor::of(target).block_shared_bytes);
                assert!(taken <= limit, "{sizes:?} {}: {taken} of {limit}", target.name());
                assert!(ptx::write(plan.kernel().program(), target).is_ok());
            }
        }
    }
    // Hopper has the plan that it had.
    let plan = product(Element::Bf16, Element::Bf16, [4096, 4096, 4096]).unwrap();
    assert_eq!(plan.on(Target::Sm90a).kernel().program().shared_bytes, 212_992);
}

/// The plans for smaller targets compute the product.
#[test]
fn smaller_cuts_are_right() {
    // Many tiles, so that the plan for Hopper is a large one; the interpreter runs a few of them.
    for target in [Target::Sm80, Target::Sm89] {
        let plan = product(Element::Bf16, Element::F32, [4096, 4096, 4096]).unwrap().on(target);
        let facts: Vec<(&str, i64)> = plan
            .sizes()
            .iter()
            .map(|(name, _)| {
                let size = plan.kernel().program().sizes.iter().find(|own| own.name() == Some(*name)).unwrap();
                (*name, size.facts().divisor().max(1))
            })
            .collect();
        let (m, n, k) = (facts[0].1, facts[1].1, facts[2].1);
        let mut interpreter = tilewright_kernel::interpret::Interpreter::new(plan.kernel().program(), &facts).unwrap();
        let one = |count: i64| 0x3f80_u16.to_le_bytes().repeat(count as usize);
        interpreter.bytes(0, &one(m * k)).unwrap().bytes(1, &one(n * k)).unwrap();
        let run = interpreter.run(tilewright_kernel::interpret::Schedule::ALL[0]).unwrap();
        assert!(run.tensor::<f32>(2).unwrap().iter().all(|sum| *sum == k as f32), "{}", target.name());
    }
}
