//! Atomic operations of several kinds at one element.

use super::assembler::{Assembler, finds, is_right};
use crate::element::Element;
use crate::program::Program;
use crate::program::memory::Role;
use crate::program::operation::AtomicOperation::{self, Add, And, Exchange, Maximum, Minimum, Or, Xor};
use crate::program::operation::{Comparison, Number, Operation};
use crate::program::register::Width;

/// Where two operations access the same element, and what orders them.
#[derive(Clone, Copy, PartialEq)]
enum Meeting {
    /// Two warps, at one element of global memory.
    Warps,
    /// Shared memory.
    Shared,
    /// Two warps, with a barrier between.
    Ordered,
    /// Two warps, at two elements.
    Apart,
    /// Two blocks.
    Blocks,
}

fn both(meeting: Meeting, number: Number, operations: [(AtomicOperation, u64); 2]) -> Program {
    let blocks = if meeting == Meeting::Blocks { 2 } else { 1 };
    let mut k = Assembler::new(blocks, 64);
    let element = if number == Number::F32 { Element::F32 } else { Element::I32 };
    let global = k.global(Role::Both, element, 2);
    let shared = k.shared(element, 2);
    let (zero, first) = (k.constant(0), k.constant(0));
    if meeting == Meeting::Shared {
        k.only(0, |k| k.store(shared, zero, first));
        k.barrier();
    }
    for (at, (operation, value)) in operations.into_iter().enumerate() {
        let value = k.constant(value as i64);
        let change = |k: &mut Assembler| {
            let place = k.constant(if meeting == Meeting::Apart { 4 * at as i64 } else { 0 });
            let buffer = if meeting == Meeting::Shared { shared } else { global };
            let address = if meeting == Meeting::Shared { place } else { k.wide(place) };
            let access = k.access(buffer, 32, 1);
            k.one(Operation::Atomic(operation, number, access), &[address, value], Width::Bits32);
        };
        match meeting {
            Meeting::Blocks => {
                let block = k.block();
                let own = k.compare(Comparison::Equal, block, at as i64);
                k.branch(own, |k| k.only(0, change), |_| {});
            }
            _ => k.only(32 * at as i64, change),
        }
        if meeting == Meeting::Ordered {
            k.barrier();
        }
    }
    k.program()
}

#[test]
pub(super) fn operations_of_two_kinds_at_one_element_are_ordered() {
    let operations = [Add, Minimum, Maximum, And, Or, Xor, Exchange];
    for first in operations {
        for second in operations.into_iter().filter(|second| *second != first) {
            // 6 and 5 have a bit in common, and each has one of its own; no maximum is above a
            // minimum.
            let values = if first == Maximum { [6, 5] } else { [5, 6] };
            let pair = [(first, values[0]), (second, values[1])];
            for meeting in [Meeting::Warps, Meeting::Shared, Meeting::Blocks] {
                finds(&both(meeting, Number::I32, pair), "E1043");
            }
            for meeting in [Meeting::Ordered, Meeting::Apart] {
                is_right(&both(meeting, Number::I32, pair));
            }
        }
    }
    for pair in [[(Add, 1_f32), (Maximum, 2.0)], [(Minimum, -1.0), (Maximum, 2.0)], [(Minimum, -2.0), (Maximum, -1.0)]]
    {
        finds(&both(Meeting::Warps, Number::F32, pair.map(|(kind, value)| (kind, value.to_bits().into()))), "E1043");
    }
}

#[test]
pub(super) fn operations_that_commute_need_no_order() {
    let negative = |value: i32| u64::from(value as u32);
    for pair in [
        [(Add, 5), (Add, 6)],
        [(Maximum, 5), (Maximum, 6)],
        [(Xor, 5), (Xor, 6)],
        // The minimum is not below the maximum.
        [(Minimum, 6), (Maximum, 5)],
        [(Maximum, negative(-1)), (Minimum, 0)],
        // The operands have no bits in common.
        [(And, 6), (Or, 2)],
        [(Or, 5), (Xor, 2)],
        // The operations change nothing.
        [(Add, 0), (Maximum, 7)],
        [(And, u64::from(u32::MAX)), (Xor, 7)],
    ] {
        for meeting in [Meeting::Warps, Meeting::Shared, Meeting::Blocks] {
            is_right(&both(meeting, Number::I32, pair));
        }
    }
    let pair = [(Minimum, 2_f32), (Maximum, -1.0)].map(|(kind, value)| (kind, value.to_bits().into()));
    is_right(&both(Meeting::Warps, Number::F32, pair));
}
