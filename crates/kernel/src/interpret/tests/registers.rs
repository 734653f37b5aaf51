//! Register reallocation (`setmaxnreg`), arrivals that do not wait, elected lanes, and launches
//! that overlap.

use super::assembler::{Assembler, finds, is_right, runs};
use crate::element::Element;
use crate::program::Program;
use crate::program::memory::Role;
use crate::program::operation::{Binary, Comparison, Operation};
use crate::program::register::Width;

/// Warpgroups that each reallocate their registers to these numbers, one after the other.
/// Initially, each thread of three warpgroups has 168.
fn shares(groups: &[&[(u32, bool)]]) -> Program {
    let mut k = Assembler::new(1, 128 * groups.len() as u32);
    for (group, changes) in groups.iter().enumerate() {
        let thread = k.thread();
        let [from, end] =
            [group as i64, group as i64 + 1].map(|bound| k.compare(Comparison::Less, thread, 128 * bound));
        let outside = |k: &mut Assembler| {
            k.branch(
                from,
                |_| {},
                |k| {
                    changes
                        .iter()
                        .for_each(|(count, more)| k.plain(Operation::SetRegisters { count: *count, more: *more }))
                },
            );
        };
        k.branch(end, outside, |_| {});
    }
    k.program()
}

#[test]
pub(super) fn registers_are_shared() {
    is_right(&shares(&[&[(40, false)], &[(232, true)], &[(232, true)]]));
    is_right(&shares(&[&[(24, false)], &[(240, true)], &[(240, true)]]));
    // In any order, and back to the initial numbers.
    is_right(&shares(&[&[(240, true)], &[(240, true)], &[(24, false)]]));
    is_right(&shares(&[&[(96, false)], &[(240, true), (168, false)], &[]]));
    // 8 more registers than are available.
    finds(&shares(&[&[(40, false)], &[(232, true)], &[(240, true)]]), "E1037");
    finds(&shares(&[&[], &[(176, true)], &[]]), "E1037");
    finds(&shares(&[&[(96, false)], &[(240, true)], &[(176, true)]]), "E1037");
    // A decrease is not an increase.
    finds(&shares(&[&[(40, true)], &[], &[]]), "E1037");
    finds(&shares(&[&[(176, false)], &[], &[]]), "E1037");
    let text = runs(&shares(&[&[(40, false)], &[(232, true)], &[(240, true)]])).remove(0).unwrap_err()[0].to_string();
    assert!(text.contains("240 registers for each thread") && text.contains("are free"), "{text}");
}

#[test]
pub(super) fn four_warps_change_registers_together() {
    // Three warps of four.
    let mut k = Assembler::new(1, 128);
    k.below(96, |k| k.plain(Operation::SetRegisters { count: 40, more: false }));
    finds(&k.program(), "E1034");
}

#[test]
pub(super) fn whoever_comes_early_tells_what_it_did() {
    // Warp 0 writes numbers and arrives without waiting; warp 1 waits.
    let program = |arrives: bool, stores_after: bool, threads: u32| {
        let mut k = Assembler::new(1, 64);
        let shared = k.shared(Element::U32, 64);
        let thread = k.thread();
        let place = k.scaled(thread, 4, 0);
        let mask = k.constant(128);
        let other = k.binary(Binary::Xor, place, mask);
        let first = k.compare(Comparison::Less, thread, 32);
        k.branch(
            first,
            |k| {
                if !stores_after {
                    k.store(shared, place, thread);
                }
                if arrives {
                    k.plain(Operation::NamedArrive { number: 1, threads });
                }
                if stores_after {
                    k.store(shared, place, thread);
                }
            },
            |k| {
                k.plain(Operation::NamedBarrier { number: 1, threads });
                k.load(shared, other);
            },
        );
        k.program()
    };
    is_right(&program(true, false, 64));
    finds(&program(true, true, 64), "E1016");
    // No warp arrives, or one warp too few.
    finds(&program(false, false, 64), "E1022");
    finds(&program(true, false, 96), "E1022");
    // No warp waits, and not all arrive.
    let mut k = Assembler::new(1, 64);
    k.below(32, |k| k.plain(Operation::NamedArrive { number: 1, threads: 64 }));
    let left = k.program();
    finds(&left, "E1021");
    assert!(runs(&left)[0].as_ref().unwrap_err()[0].to_string().contains("before the kernel ends"));
    // The barrier counts only the waiting warp.
    finds(&program(false, false, 32), "E1016");
}

#[test]
pub(super) fn one_lane_of_a_warp_is_elected() {
    let mut k = Assembler::new(1, 64);
    let target = k.global(Role::Output, Element::U32, 2);
    let thread = k.thread();
    let warp = k.constant(5);
    let warp = k.binary(Binary::ShiftRight, thread, warp);
    let place = k.scaled(warp, 4, 0);
    let elected = k.one(Operation::Elect, &[], Width::Predicate);
    k.branch(elected, |k| k.store(target, place, warp), |_| {});
    let run = is_right(&k.program());
    assert_eq!(run.tensor::<u32>(0).unwrap(), [0, 1]);
    // Any lane may be elected.
    let mut k = Assembler::new(1, 32);
    let target = k.global(Role::Output, Element::U32, 1);
    let (thread, zero) = (k.thread(), k.constant(0));
    let elected = k.one(Operation::Elect, &[], Width::Predicate);
    k.branch(elected, |k| k.store(target, zero, thread), |_| {});
    let program = k.program();
    let found = crate::interpret::Interpreter::new(&program, &[]).unwrap().check().unwrap_err();
    assert_eq!(found[0].code(), "E1028");
    // All lanes take part.
    let mut k = Assembler::new(1, 32);
    k.below(16, |k| {
        k.one(Operation::Elect, &[], Width::Predicate);
    });
    finds(&k.program(), "E1027");
}

#[test]
pub(super) fn memory_is_left_alone_until_earlier_launches_are_over() {
    /// The threads that wait for previous launches.
    #[derive(Clone, Copy, PartialEq)]
    enum Waits {
        All,
        First,
        FirstAndTells,
        After,
        Second,
    }
    let program = |waits: Waits| {
        let mut k = Assembler::new(2, 64);
        let source = k.global(Role::Input, Element::U32, 128);
        let target = k.global(Role::Output, Element::U32, 128);
        let (thread, block) = (k.thread(), k.block());
        let row = k.scaled(block, 256, 0);
        let place = k.scaled(thread, 4, 0);
        let place = k.binary(Binary::Add, row, place);
        match waits {
            Waits::All => k.plain(Operation::WaitLaunches),
            Waits::First | Waits::FirstAndTells => k.only(0, |k| k.plain(Operation::WaitLaunches)),
            Waits::Second => k.below(32, |k| k.plain(Operation::WaitLaunches)),
            Waits::After => {}
        }
        if waits == Waits::FirstAndTells {
            k.barrier();
        }
        let value = k.load(source, place);
        if waits == Waits::After {
            k.plain(Operation::WaitLaunches);
        }
        k.store(target, place, value);
        k.plain(Operation::LaunchNext);
        k.program()
    };
    is_right(&program(Waits::All));
    is_right(&program(Waits::FirstAndTells));
    for waits in [Waits::First, Waits::After, Waits::Second] {
        finds(&program(waits), "E1038");
    }
    assert!(program(Waits::All).waits_for_launches());
}
