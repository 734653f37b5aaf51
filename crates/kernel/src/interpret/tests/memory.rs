//! Accesses: bounds, alignment, whether memory was written, by which threads and how often.

use tilewright_layout::symbolic::Expr;

use super::assembler::{Assembler, finds, is_right};
use crate::element::Element;
use crate::program::memory::{Buffer, Role, Space};
use crate::program::operation::{AtomicOperation, Comparison, Number, Operation};
use crate::program::register::Width;

/// Each thread copies an element, from `from + thread` to `to + thread`.
fn copy(threads: u32, elements: i64, from: i64, to: i64) -> Assembler {
    let mut k = Assembler::new(1, threads);
    let source = k.global(Role::Input, Element::U32, elements);
    let target = k.global(Role::Output, Element::U32, i64::from(threads));
    let thread = k.thread();
    let (read, write) = (k.scaled(thread, 4, 4 * from), k.scaled(thread, 4, 4 * to));
    let value = k.load(source, read);
    k.store(target, write, value);
    k
}

#[test]
pub(super) fn loads_and_stores_past_the_end_are_found() {
    is_right(&copy(64, 64, 0, 0).program());
    finds(&copy(64, 63, 0, 0).program(), "E1010");
    finds(&copy(64, 64, -1, 0).program(), "E1010");
    // The first element is not written either, but the first finding ends the check of the outputs.
    finds(&copy(64, 64, 0, 1).program(), "E1010");
}

#[test]
pub(super) fn accesses_past_the_end_of_shared_memory_are_found() {
    let program = |elements: i64, offset: i64| {
        let mut k = Assembler::new(1, 32);
        let shared = k.shared(Element::U32, elements);
        let _other = k.shared(Element::U32, 64);
        let thread = k.thread();
        let address = k.scaled(thread, 4, offset);
        k.store(shared, address, thread);
        k.program()
    };
    is_right(&program(32, 0));
    finds(&program(31, 0), "E1010");
    finds(&program(32, 4), "E1010");
    finds(&program(32, -4), "E1010");
}

#[test]
pub(super) fn a_predicate_keeps_an_access_inside() {
    let program = |end: i64| {
        let mut k = Assembler::new(1, 64);
        let source = k.global(Role::Input, Element::U32, 50);
        let target = k.global(Role::Output, Element::U32, 64);
        let thread = k.thread();
        let inside = k.compare(Comparison::Less, thread, end);
        let address = k.scaled(thread, 4, 0);
        let mut value = thread;
        k.guarded(inside, |k| value = k.load(source, address));
        k.store(target, address, value);
        k.program()
    };
    let run = is_right(&program(50));
    assert!(run.tensor::<u32>(1).unwrap()[50..].iter().all(|value| *value == 0));
    finds(&program(51), "E1010");
}

#[test]
pub(super) fn misaligned_vectors_are_found() {
    let program = |count: u32, offset: i64, alignment: u32| {
        let mut k = Assembler::new(1, 8);
        let source = k.global(Role::Input, Element::U32, 64);
        k.raw().buffers[0].alignment = alignment;
        let thread = k.thread();
        let address = k.scaled(thread, 16, offset);
        k.load_vector(source, address, 32, count);
        k.program()
    };
    is_right(&program(4, 16, 16));
    finds(&program(4, 8, 16), "E1011");
    finds(&program(2, 4, 16), "E1011");
    finds(&program(1, 2, 16), "E1011");
    // The base is only required to be a multiple of 8 bytes.
    is_right(&program(2, 8, 8));
    finds(&program(4, 16, 8), "E1011");
}

#[test]
pub(super) fn misaligned_shared_vectors_are_found() {
    let program = |start: u32, offset: i64| {
        let mut k = Assembler::new(1, 8);
        let shared = k.buffer(Buffer {
            name: "s".to_string(),
            element: Element::U32,
            space: Space::Shared,
            role: Role::Both,
            elements: Expr::from(64),
            alignment: 4,
            start,
            layout: "64:1".to_string(),
        });
        k.raw().shared_bytes = 1024;
        let thread = k.thread();
        let address = k.scaled(thread, 16, offset);
        k.store_vector(shared, address, 32, &[thread; 4]);
        k.program()
    };
    is_right(&program(0, 0));
    is_right(&program(8, 8));
    finds(&program(8, 0), "E1011");
    finds(&program(0, 4), "E1011");
}

#[test]
pub(super) fn reads_of_what_nobody_wrote_are_found() {
    // Partially written memory: a shared array, with another one after it, and an output.
    let program = |written: i64, shared_too: bool| {
        let mut k = Assembler::new(1, 64);
        let target = k.global(Role::Output, Element::U32, 64);
        let shared = k.shared(Element::U32, 64);
        let other = k.shared(Element::U32, 64);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        k.below(written, |k| k.store(shared, address, thread));
        k.barrier();
        let value = k.load(if shared_too { shared } else { other }, address);
        k.store(target, address, value);
        k.program()
    };
    is_right(&program(64, true));
    finds(&program(63, true), "E1012");
    finds(&program(64, false), "E1012");
    let mut k = Assembler::new(1, 32);
    let target = k.global(Role::Output, Element::U32, 32);
    let thread = k.thread();
    let address = k.scaled(thread, 4, 0);
    let value = k.load(target, address);
    k.store(target, address, value);
    finds(&k.program(), "E1012");
}

#[test]
pub(super) fn bytes_beside_what_was_written_are_not_written() {
    let program = |bits: u32| {
        let mut k = Assembler::new(1, 1);
        let shared = k.shared(Element::U8, 4);
        let zero = k.constant(0);
        let byte = k.one(Operation::Constant(7), &[], Width::Bits16);
        k.store_vector(shared, zero, 8, &[byte]);
        k.load_vector(shared, zero, bits, 1);
        k.program()
    };
    is_right(&program(8));
    finds(&program(16), "E1012");
    finds(&program(32), "E1012");
}

#[test]
pub(super) fn shared_memory_is_new_in_every_block() {
    let program = |blocks: i64| {
        let mut k = Assembler::new(blocks, 32);
        let shared = k.shared(Element::U32, 32);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        let block = k.block();
        let first = k.compare(Comparison::Equal, block, 0);
        let last = k.compare(Comparison::Greater, block, 0);
        k.guarded(first, |k| k.store(shared, address, thread));
        k.guarded(last, |k| {
            k.load(shared, address);
        });
        k.program()
    };
    is_right(&program(1));
    finds(&program(2), "E1012");
}

#[test]
pub(super) fn outputs_written_by_two_threads_are_found() {
    // Thread t writes element (t + block * shift) / divisor.
    let program = |blocks: i64, step: i64, divisor: i64, times: i64| {
        let mut k = Assembler::new(blocks, 32);
        let elements = ((blocks - 1) * step + 31) / divisor + 1;
        let target = k.global(Role::Output, Element::U32, elements);
        let (thread, block) = (k.thread(), k.block());
        let (step, divisor) = (k.constant(step), k.constant(divisor));
        let index = k.one(Operation::MultiplyAdd(Number::I32), &[block, step, thread], Width::Bits32);
        let index = k.binary(crate::program::operation::Binary::Divide, index, divisor);
        let address = k.scaled(index, 4, 0);
        let (from, to) = (k.constant(0), k.constant(times));
        k.iterations(from, to, |k, _| {
            k.store(target, address, thread);
            k.barrier();
        });
        k.program()
    };
    is_right(&program(3, 32, 1, 1));
    // The same thread may write twice.
    is_right(&program(1, 32, 1, 2));
    finds(&program(3, 31, 1, 1), "E1013");
    finds(&program(2, 0, 1, 1), "E1013");
    finds(&program(1, 32, 2, 1), "E1013");
}

#[test]
pub(super) fn outputs_that_are_not_written_are_found() {
    let program = |elements: i64, stride: i64, layout: &str| {
        let mut k = Assembler::new(1, 32);
        let target = k.global(Role::Output, Element::U32, elements);
        k.raw().buffers[0].layout = layout.to_string();
        let thread = k.thread();
        let address = k.scaled(thread, 4 * stride, 0);
        k.store(target, address, thread);
        k.program()
    };
    is_right(&program(32, 1, "32:1"));
    finds(&program(33, 1, "33:1"), "E1014");
    finds(&program(63, 2, "63:1"), "E1014");
    finds(&program(32, 0, "32:1"), "E1013");
    // Elements that the layout does not reach do not count.
    is_right(&program(63, 2, "32:2"));
    is_right(&program(63, 2, "(8,4):(2,16)"));
    finds(&program(64, 2, "(32,2):(2,1)"), "E1014");
    finds(&program(63, 1, "(16,2):(2,32)"), "E1014");
    // There are more coordinates than offsets, and still there are holes.
    is_right(&program(63, 2, "(32,2):(2,0)"));
    finds(&program(63, 2, "(31,3):(2,1)"), "E1014");
    // With a swizzle, the elements are the offsets 0, 2, .., with every second pair exchanged; the
    // other offsets are not written.
    is_right(&program(64, 2, "S<1,1,2> o 0 o 32:2"));
    finds(&program(64, 1, "S<1,1,2> o 0 o 32:2"), "E1014");
    finds(&program(64, 2, "S<1,0,2> o 0 o 32:2"), "E1014");
}

#[test]
pub(super) fn roles_are_kept() {
    // A store to an input, an atomic addition to it, and the same for an output; a read of an
    // output that was written.
    let program = |role: Role, atomic: bool| {
        let mut k = Assembler::new(1, 32);
        let target = k.global(role, Element::U32, 32);
        let thread = k.thread();
        let address = k.scaled(thread, 4, 0);
        if atomic {
            let wide = k.wide(address);
            let operation = Operation::Reduce(AtomicOperation::Add, Number::U32, k.access(target, 32, 1));
            k.emit(operation, &[wide, thread], &[]);
        } else {
            k.store(target, address, thread);
        }
        k.program()
    };
    is_right(&program(Role::Both, false));
    is_right(&program(Role::Both, true));
    is_right(&program(Role::Output, false));
    finds(&program(Role::Input, false), "E1015");
    finds(&program(Role::Input, true), "E1015");
    let mut k = Assembler::new(1, 32);
    let target = k.global(Role::Output, Element::U32, 32);
    let thread = k.thread();
    let address = k.scaled(thread, 4, 0);
    k.store(target, address, thread);
    k.load(target, address);
    finds(&k.program(), "E1015");
}
