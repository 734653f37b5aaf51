//! The table of measured plans that comes with the library.
//!
//! Law: the table (`shipped.plans`) has, for a card and a class of drivers, the fastest measured
//! plan of each problem. It is read like a file of kept plans: the user's own measurements take
//! precedence, and a plan that the library no longer has counts as missing.
//!
//! ```text
//! # command, date and check of the entries below
//! card NVIDIA H200
//! driver 13
//! gemm   bf16 (512,64) x (512,64) -> ..   rows=128 columns=256 ..   3.25   2
//! ```
//!
//! An entry has the kernel, the problem, the plan, the microseconds of a launch and the number of
//! measured plans, separated by tabs. A line `card` or `driver` applies to all entries below it.
//! The driver is the major version of CUDA that a driver supports: the order of plans seldom
//! changes from one driver to the next.

use super::{Card, MeasuredPlan};

/// The table.
const TABLE: &str = include_str!("shipped.plans");

/// The factor of the major version in `Card::driver`: 13000 is 13.0.
const MAJOR_VERSION: i32 = 1000;

/// The entry of the table for a problem on a card.
pub(super) fn find(card: &Card, kernel: &str, problem: &str) -> Option<MeasuredPlan> {
    find_in(TABLE, card, kernel, problem)
}

fn find_in(table: &str, card: &Card, kernel: &str, problem: &str) -> Option<MeasuredPlan> {
    let (mut name, mut driver) = ("", 0);
    for line in table.lines() {
        if let Some(given) = line.strip_prefix("card ") {
            name = given;
        } else if let Some(given) = line.strip_prefix("driver ") {
            driver = given.parse().unwrap_or(0);
        } else if (name, driver) == (&card.name, card.driver / MAJOR_VERSION)
            && let Some((key, measured)) = entry(line)
            && key == (kernel, problem)
        {
            return Some(measured);
        }
    }
    None
}

/// The kernel, the problem and the plan of a line; None for a comment.
fn entry(line: &str) -> Option<((&str, &str), MeasuredPlan)> {
    let all: Vec<&str> = line.split('\t').collect();
    let [kernel, problem, plan, microseconds, candidates] = all[..] else { return None };
    let microseconds = microseconds.parse().ok().filter(|own: &f64| *own > 0.0 && own.is_finite())?;
    Some((
        (kernel, problem),
        MeasuredPlan { plan: plan.to_owned(), microseconds, candidates: candidates.parse().ok()? },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::measured::{MeasuredPlans, Planning};
    use tilewright_kernel::Element;
    use tilewright_kernel::machine::Machine;
    use tilewright_planners::gemm::{Plan, Problem};

    fn card(name: &str, driver: i32) -> Card {
        Card { name: name.to_owned(), driver }
    }

    /// Law: an entry is found only for its card, class of drivers, kernel and problem.
    #[test]
    fn an_entry_is_found_for_its_card_and_driver() {
        let table = "# a comment\ncard A\ndriver 13\ngemm\tp\tx\t2.5\t2\ncard B\ndriver 12\ngemm\tp\ty\t3.5\t2\n";
        let found = |name: &str, driver, kernel, problem| {
            find_in(table, &card(name, driver), kernel, problem).map(|found| (found.plan, found.microseconds))
        };
        assert_eq!(found("A", 13_000, "gemm", "p"), Some(("x".to_owned(), 2.5)));
        assert_eq!(found("A", 13_020, "gemm", "p"), Some(("x".to_owned(), 2.5)));
        assert_eq!(found("B", 12_080, "gemm", "p"), Some(("y".to_owned(), 3.5)));
        for (name, driver, kernel, problem) in [
            ("A", 12_080, "gemm", "p"),
            ("C", 13_000, "gemm", "p"),
            ("A", 13_000, "tile", "p"),
            ("A", 13_000, "gemm", "q"),
        ] {
            assert_eq!(found(name, driver, kernel, problem), None, "{name} {driver} {kernel} {problem}");
        }
    }

    /// Law: every line of the table is a comment, a card, a driver, or an entry with a valid plan.
    #[test]
    fn entries_of_the_table_are_plans() {
        let mut entries = 0;
        for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with("card ") || line.starts_with("driver ") {
                continue;
            }
            let ((kernel, _), measured) = entry(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(kernel, "gemm", "{line}");
            assert!(Plan::from_line(&measured.plan).is_some(), "{line}");
            entries += 1;
        }
        assert!(entries > 10, "{entries} entries");
    }

    /// Law: a plan of the table is used, and a plan that a user has kept takes precedence.
    #[test]
    fn a_shipped_plan_is_used() {
        let (h200, folder) = (Machine::named("H200").unwrap(), tempfile::tempdir().unwrap());
        let problem = Problem::new(Element::Bf16, [3072, 12288, 3072]).unwrap();
        let own = card("NVIDIA H200", 13_000);
        let plans = MeasuredPlans::in_folder(folder.path()).with_shipped();
        let (plan, measured) = plans.best(&own, &h200, &problem).unwrap().expect("the table has it");
        assert_eq!((plan.rows, plan.columns, plan.ping_pong), (128, 208, true), "{measured:?}");
        assert!(MeasuredPlans::in_folder(folder.path()).find(&own, &problem).unwrap().is_none());
        let slower = Planning::candidates(&problem, &h200).unwrap().into_iter().find(|other| *other != plan).unwrap();
        let ranking = [crate::devices::measured::Ranked { plan: slower.clone(), number: 1, seconds: 1.0 }];
        plans.keep(&own, &problem, &ranking).unwrap();
        assert_eq!(plans.best(&own, &h200, &problem).unwrap().unwrap().0, slower);
    }
}
