//! Indices that clusters claim from the counter of a launch.

use super::assembler::{Assembler, finds, is_right};
use crate::element::Element;
use crate::program::Program;
use crate::program::memory::Role;
use crate::program::operation::{Comparison, Operation};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;

const BLOCKS: i64 = 3;

/// Blocks of one thread claim indices below `count`, and store each index at its own place. `again`
/// returns the conditions under which a block claims once more, given the indices so far.
fn taking(count: i64, last: i64, again: impl Fn(&mut Assembler, &[Register]) -> Vec<Register>) -> Program {
    let mut k = Assembler::new(BLOCKS, 1);
    let target = k.global(Role::Output, Element::U32, count);
    k.raw().scalars.push(Scalar::Count);
    let which = k.one(Operation::Scalar(0), &[], Width::Bits32);
    let last = k.constant(last);
    let mut taken = Vec::new();
    let first = k.one(Operation::Claim, &[which, last], Width::Bits32);
    taken.push(first);
    for _ in 0..count {
        for guard in again(&mut k, &taken) {
            let mut number = first;
            k.guarded(guard, |k| number = k.one(Operation::Claim, &[which, last], Width::Bits32));
            let end = k.constant(count);
            taken.push(k.one(Operation::Select, &[guard, number, end], Width::Bits32));
        }
    }
    for number in taken {
        let inside = k.compare(Comparison::Less, number, count);
        let address = k.scaled(number, 4, 0);
        k.guarded(inside, |k| k.store(target, address, number));
    }
    k.program()
}

/// Whether the last claimed index is below `count`.
fn left(k: &mut Assembler, taken: &[Register], count: i64) -> Register {
    k.compare(Comparison::Less, taken[taken.len() - 1], count)
}

#[test]
pub(super) fn numbers_are_taken_until_none_is_left() {
    for count in [1, 2, 3, 8] {
        let program = taking(count, count + BLOCKS - 1, |k, taken| vec![left(k, taken, count)]);
        let numbers: Vec<u32> = (0..count as u32).collect();
        assert_eq!(is_right(&program).tensor::<u32>(0).unwrap(), numbers);
    }
}

#[test]
pub(super) fn counts_that_are_not_where_they_were_are_found() {
    // A block claims once more, whatever index it got.
    let again = taking(2, 2 + BLOCKS - 1, |k, taken| {
        let zero = k.constant(0);
        vec![left(k, taken, 2), k.compare(Comparison::GreaterEqual, zero, 0)]
    });
    finds(&again, "E1040");
    // Each block claims one index, and none claims until it gets the end.
    finds(&taking(BLOCKS, 2 * BLOCKS - 1, |_, _| Vec::new()), "E1040");
    // The counter wraps before all blocks have claimed an index.
    finds(&taking(1, BLOCKS - 2, |_, _| Vec::new()), "E1040");
}
