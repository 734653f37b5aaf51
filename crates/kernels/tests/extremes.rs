//! Sizes at the ends of what a size may be: a plan or an error, and no panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_kernel::cost::Machine;
use tilewright_kernel::ptx;
use tilewright_kernels::library;

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
                    let plan = entry.plan(&sizes, None)?;
                    let program = plan.kernel().program();
                    let _ = program.launch(plan.sizes());
                    if first <= 8 && others <= 8 {
                        let _ = program.cost(&machine, plan.sizes());
                        let _ = ptx::write(program, ptx::Target::Sm90a);
                    }
                    Ok::<_, tilewright_kernels::PlanError>(())
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
