//! Bulk copies, which complete on mbarriers.

use tilewright_layout::atoms::SwizzleMode;

use super::assembler::{Assembler, finds, is_right, runs};
use super::barriers::{arrive, init, wait};
use crate::element::Element;
use crate::interpret::Defect;
use crate::program::memory::{BufferId, Dimension, MapId, Role, TensorMap};
use crate::program::operation::{Binary, Comparison, Fence, Operation};
use crate::program::register::{Register, Width};

/// A box is loaded, changed by all threads, and stored elsewhere.
#[derive(Clone, Copy)]
struct Boxed {
    swizzle: SwizzleMode,
    boxed: [u32; 2],
    /// The corner of the load, and that of the store if it differs.
    at: [i64; 2],
    to: Option<[i64; 2]>,
    expect: i64,
    publish: bool,
    wait: bool,
    fence: bool,
    barrier: bool,
    /// What the storing thread waits for, if anything, and whether it then writes to the source.
    stored: Option<bool>,
    reuse: bool,
    offset: i64,
}

const BOXED: Boxed = Boxed {
    swizzle: SwizzleMode::None,
    boxed: [32, 4],
    at: [32, 4],
    to: None,
    expect: 0,
    publish: true,
    wait: true,
    fence: true,
    barrier: true,
    stored: Some(true),
    reuse: false,
    offset: 0,
};

const COLUMNS: i64 = 80;
const ROWS: i64 = 10;

fn bulk_load(k: &mut Assembler, map: MapId, to: (BufferId, Register), object: (BufferId, Register), at: [Register; 2]) {
    let operation =
        Operation::BulkLoad { map, to: k.access(to.0, 32, 1), barrier: k.access(object.0, 64, 1), multicast: false };
    k.emit(operation, &[to.1, object.1, at[0], at[1]], &[]);
}

fn boxed(how: Boxed) -> crate::program::Program {
    let mut k = Assembler::new(1, 64);
    let source = k.global(Role::Input, Element::U32, COLUMNS * ROWS);
    let target = k.global(Role::Both, Element::U32, COLUMNS * ROWS);
    let elements = i64::from(how.boxed[0] * how.boxed[1]);
    let shared = k.shared(Element::U32, elements + how.offset / 4);
    let objects = k.shared(Element::U64, 1);
    let from = k.map(source, [COLUMNS, ROWS], how.boxed, how.swizzle);
    let to = k.map(target, [COLUMNS, ROWS], how.boxed, how.swizzle);
    let (zero, thread) = (k.constant(0), k.thread());
    let place = k.constant(how.offset);
    k.only(0, |k| {
        init(k, objects, zero, 1);
        if how.publish {
            k.fence(Fence::BarrierInit);
        }
    });
    k.barrier();
    let corner = [k.constant(how.at[0]), k.constant(how.at[1])];
    k.only(0, |k| {
        arrive(k, objects, zero, (4 * elements + how.expect) as u32);
        bulk_load(k, from, (shared, place), (objects, zero), corner);
    });
    if how.wait {
        wait(&mut k, objects, zero, zero);
    }
    let (first, end) = (k.constant(0), k.constant(elements / 64));
    k.iterations(first, end, |k, iteration| {
        let (row, column) = (k.scaled(iteration, 256, how.offset), k.scaled(thread, 4, 0));
        let address = k.binary(Binary::Add, row, column);
        let value = k.load(shared, address);
        let value = k.scaled(value, 3, 1);
        k.store(shared, address, value);
    });
    if how.fence {
        k.fence(Fence::AsyncShared);
    }
    if how.barrier {
        k.barrier();
    }
    let corner = how.to.map_or(corner, |to| to.map(|at| k.constant(at)));
    k.only(0, |k| {
        let access = k.access(shared, 32, 1);
        k.emit(Operation::BulkStore { map: to, from: access }, &[place, corner[0], corner[1]], &[]);
        k.plain(Operation::CommitBulk);
        if let Some(read) = how.stored {
            k.plain(Operation::WaitBulk { groups: 0, read });
        }
        if how.reuse {
            k.store(shared, place, zero);
        }
    });
    k.program()
}

#[test]
pub(super) fn boxes_are_loaded_and_stored() {
    let corners = [[32, 4], [0, 0], [64, 8], [-16, -2], [80, 0], [0, -4], [76, 9]];
    let shapes = [(SwizzleMode::None, [32, 4]), (SwizzleMode::Bytes128, [32, 8]), (SwizzleMode::Bytes64, [16, 16])];
    for (at, (swizzle, boxed_by)) in corners.into_iter().flat_map(|at| shapes.map(|shape| (at, shape))) {
        // Boxes are loaded from before the first coordinates too, and stored from 0 on.
        let to = at.map(|at| at.max(0));
        let program = boxed(Boxed { at, to: Some(to), swizzle, boxed: boxed_by, ..BOXED });
        let run = is_right(&program);
        let (source, target) = (run.tensor::<u32>(0).unwrap(), run.tensor::<u32>(1).unwrap());
        // A program with the same tensors and no operations.
        let mut idle = program.clone();
        idle.body.clear();
        let before = is_right(&idle).tensor::<u32>(1).unwrap();
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let index = (row * COLUMNS + column) as usize;
                let inside = (to[0]..to[0] + i64::from(boxed_by[0])).contains(&column)
                    && (to[1]..to[1] + i64::from(boxed_by[1])).contains(&row);
                let [x, y] = [column - to[0] + at[0], row - to[1] + at[1]];
                let there = (0..COLUMNS).contains(&x) && (0..ROWS).contains(&y);
                let loaded = if there { source[(y * COLUMNS + x) as usize] } else { 0 };
                let expected = if inside { loaded.wrapping_mul(3).wrapping_add(1) } else { before[index] };
                assert_eq!(target[index], expected, "{at:?} {row} {column}");
            }
        }
    }
}

#[test]
pub(super) fn swizzled_boxes_lie_as_the_swizzle_says() {
    // Thread `t` reads word `t` of the box, in the order of shared memory.
    for (swizzle, span) in [(SwizzleMode::Bytes32, 8), (SwizzleMode::Bytes64, 16), (SwizzleMode::Bytes128, 32)] {
        let words = 512;
        let mut k = Assembler::new(1, words as u32);
        let source = k.global(Role::Input, Element::U32, 512);
        let target = k.global(Role::Output, Element::U32, 512);
        let shared = k.shared(Element::U32, 512);
        let objects = k.shared(Element::U64, 1);
        let rows = (words / span) as u32;
        let map = k.map(source, [span, words / span], [span as u32, rows], swizzle);
        let (zero, thread) = (k.constant(0), k.thread());
        k.only(0, |k| {
            init(k, objects, zero, 1);
            k.fence(Fence::BarrierInit);
            arrive(k, objects, zero, 2048);
            bulk_load(k, map, (shared, zero), (objects, zero), [zero, zero]);
        });
        k.barrier();
        wait(&mut k, objects, zero, zero);
        let address = k.scaled(thread, 4, 0);
        let value = k.load(shared, address);
        k.store(target, address, value);
        let program = k.program();
        let mut interpreter = crate::interpret::Interpreter::new(&program, &[]).unwrap();
        let words: Vec<u32> = (0..512).collect();
        interpreter.tensor(0, &words).unwrap();
        let run = interpreter.run(crate::interpret::Schedule::ALL[0]).unwrap();
        let bits = tilewright_layout::Swizzle::new(i64::from((span / 4).ilog2()), 4, 3).unwrap();
        for (at, value) in run.tensor::<u32>(1).unwrap().into_iter().enumerate() {
            assert_eq!(i64::from(value) * 4, bits.apply(4 * at as i64), "{swizzle:?}");
        }
    }
}

#[test]
pub(super) fn bulk_loads_are_waited_for() {
    // No thread waits, and the load never completes.
    for boxed_by in [[32, 4], [64, 4], [16, 8]] {
        for run in runs(&boxed(Boxed { wait: false, boxed: boxed_by, ..BOXED })) {
            let codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
            assert!(codes.contains(&"E1018"), "{codes:?}");
            assert!(codes.iter().all(|code| ["E1018", "E1020"].contains(code)), "{codes:?}");
        }
    }
}

#[test]
pub(super) fn expected_bytes_are_those_that_come() {
    for expect in [16, -16, -256, 1 << 16] {
        finds(&boxed(Boxed { expect, ..BOXED }), "E1024");
    }
    let findings = runs(&boxed(Boxed { expect: 16, ..BOXED })).remove(0).unwrap_err();
    assert!(matches!(findings[0].defect, Defect::TransactionBytes { expects: 16, .. }), "{}", findings[0]);
}

#[test]
pub(super) fn barriers_are_published_before_the_copy_engine_uses_them() {
    finds(&boxed(Boxed { publish: false, ..BOXED }), "E1025");
    finds(&boxed(Boxed { publish: false, at: [0, 0], ..BOXED }), "E1025");
    finds(&boxed(Boxed { publish: false, swizzle: SwizzleMode::Bytes128, ..BOXED }), "E1025");
}

#[test]
pub(super) fn bulk_stores_need_a_fence_of_the_writers() {
    for swizzle in [SwizzleMode::None, SwizzleMode::Bytes128] {
        finds(&boxed(Boxed { fence: false, swizzle, ..BOXED }), "E1019");
    }
    // A fence of one thread does not cover the stores of other threads.
    let mut k = Assembler::new(1, 64);
    let target = k.global(Role::Output, Element::U32, 64);
    let shared = k.shared(Element::U32, 64);
    let map = k.map(target, [64, 1], [64, 1], SwizzleMode::None);
    let (zero, thread) = (k.constant(0), k.thread());
    let address = k.scaled(thread, 4, 0);
    k.store(shared, address, thread);
    k.barrier();
    k.only(0, |k| {
        k.fence(Fence::AsyncShared);
        let access = k.access(shared, 32, 1);
        k.emit(Operation::BulkStore { map, from: access }, &[zero, zero, zero], &[]);
        k.plain(Operation::CommitBulk);
        k.plain(Operation::WaitBulk { groups: 0, read: true });
    });
    finds(&k.program(), "E1019");
}

#[test]
pub(super) fn bulk_copies_race_as_others_do() {
    // The store is issued before the others have written.
    finds(&boxed(Boxed { barrier: false, ..BOXED }), "E1018");
    // The source is written again before the store has read it.
    is_right(&boxed(Boxed { reuse: true, ..BOXED }));
    for run in runs(&boxed(Boxed { reuse: true, stored: None, ..BOXED })) {
        let codes: Vec<&str> = run.unwrap_err().iter().map(|finding| finding.code()).collect();
        assert_eq!(codes, ["E1018", "E1020"]);
    }
}

#[test]
pub(super) fn bulk_stores_are_waited_for_before_the_end() {
    is_right(&boxed(Boxed { stored: Some(false), ..BOXED }));
    finds(&boxed(Boxed { stored: None, ..BOXED }), "E1020");
    finds(&boxed(Boxed { stored: None, at: [0, 0], ..BOXED }), "E1020");
    finds(&boxed(Boxed { stored: None, swizzle: SwizzleMode::Bytes128, ..BOXED }), "E1020");
}

#[test]
pub(super) fn boxes_are_aligned() {
    // Shared memory must be aligned to 128 bytes, which may be in the middle of a swizzle pattern,
    // because the swizzle depends on address bits. In the tensor, the alignment is 16 bytes.
    is_right(&boxed(Boxed { offset: 128, ..BOXED }));
    finds(&boxed(Boxed { offset: 64, ..BOXED }), "E1011");
    is_right(&boxed(Boxed { offset: 128, swizzle: SwizzleMode::Bytes128, ..BOXED }));
    finds(&boxed(Boxed { offset: 64, swizzle: SwizzleMode::Bytes128, ..BOXED }), "E1011");
    finds(&boxed(Boxed { at: [2, 0], ..BOXED }), "E1011");
}

#[test]
pub(super) fn a_ring_of_full_and_empty_barriers_works() {
    // One warp loads, two warps read: 8 iterations through 2 stages.
    let program = |released: bool, tells: bool| {
        let (iterations, stages) = (8, 2);
        let mut k = Assembler::new(1, 96);
        let source = k.global(Role::Input, Element::U32, 64 * iterations);
        let target = k.global(Role::Output, Element::U32, 64 * iterations);
        let shared = k.shared(Element::U32, 64 * stages);
        let objects = k.shared(Element::U64, 2 * stages);
        let map = k.map(source, [64, iterations], [64, 1], SwizzleMode::None);
        let (zero, thread, end) = (k.constant(0), k.thread(), k.constant(iterations));
        let two = k.constant(stages);
        k.only(0, |k| {
            for stage in 0..stages {
                let (full, empty) = (k.constant(8 * stage), k.constant(8 * (stages + stage)));
                init(k, objects, full, 1);
                init(k, objects, empty, 2);
            }
            k.fence(Fence::BarrierInit);
        });
        k.barrier();
        let consumer = k.compare(Comparison::GreaterEqual, thread, 32);
        let stage_of = |k: &mut Assembler, iteration: Register| {
            let stage = k.binary(Binary::Remainder, iteration, two);
            let round = k.binary(Binary::Divide, iteration, two);
            let one = k.constant(1);
            let parity = k.binary(Binary::And, round, one);
            (stage, parity)
        };
        k.branch(
            consumer,
            |k| {
                k.iterations(zero, end, |k, iteration| {
                    let (stage, parity) = stage_of(k, iteration);
                    let full = k.scaled(stage, 8, 0);
                    wait(k, objects, full, parity);
                    let (row, column) = (k.scaled(stage, 256, 0), k.scaled(thread, 4, -128));
                    let from = k.binary(Binary::Add, row, column);
                    let value = k.load(shared, from);
                    let out = k.scaled(iteration, 256, 0);
                    let to = k.binary(Binary::Add, out, column);
                    k.store(target, to, value);
                    if tells {
                        k.plain(Operation::WarpBarrier);
                    }
                    let lane = k.one(Operation::Special(crate::program::operation::Special::Lane), &[], Width::Bits32);
                    let first = k.compare(Comparison::Equal, lane, 0);
                    let empty = k.scaled(stage, 8, 8 * stages);
                    k.guarded(first, |k| arrive(k, objects, empty, 0));
                });
            },
            |k| {
                k.only(0, |k| {
                    k.iterations(zero, end, |k, iteration| {
                        let (stage, parity) = stage_of(k, iteration);
                        let (full, empty) = (k.scaled(stage, 8, 0), k.scaled(stage, 8, 8 * stages));
                        let one = k.constant(1);
                        let other = k.binary(Binary::Xor, parity, one);
                        if released {
                            wait(k, objects, empty, other);
                        }
                        arrive(k, objects, full, 256);
                        let to = k.scaled(stage, 256, 0);
                        bulk_load(k, map, (shared, to), (objects, full), [zero, iteration]);
                    });
                });
            },
        );
        k.program()
    };
    let run = is_right(&program(true, true));
    assert_eq!(run.tensor::<u32>(0).unwrap(), run.tensor::<u32>(1).unwrap());
    // One lane arrives for its warp, without a barrier after the reads of the other lanes.
    finds(&program(true, false), "E1018");
    // The producer does not wait for free stages.
    for run in runs(&program(false, true)) {
        assert!(run.is_err());
    }
}

#[test]
pub(super) fn a_fence_before_the_stores_is_none_after_them() {
    let program = |after: bool| {
        let mut k = Assembler::new(1, 64);
        let target = k.global(Role::Output, Element::U32, 64);
        let shared = k.shared(Element::U32, 64);
        let map = k.map(target, [64, 1], [64, 1], SwizzleMode::None);
        let (zero, thread) = (k.constant(0), k.thread());
        let address = k.scaled(thread, 4, 0);
        k.fence(Fence::AsyncShared);
        k.store(shared, address, thread);
        if after {
            k.fence(Fence::AsyncShared);
        }
        k.barrier();
        k.only(0, |k| {
            let access = k.access(shared, 32, 1);
            k.emit(Operation::BulkStore { map, from: access }, &[zero, zero, zero], &[]);
            k.plain(Operation::CommitBulk);
            k.plain(Operation::WaitBulk { groups: 0, read: true });
        });
        k.program()
    };
    is_right(&program(true));
    finds(&program(false), "E1019");
}

/// A matrix to which one thread stores a box whose bytes are all 0x5a: its extents `[columns,
/// rows]`, the pitch of rows in elements, and the extents and the corner of the box.
struct Stored {
    element: Element,
    extents: [i64; 2],
    pitch: i64,
    boxed: [u32; 2],
    at: [i64; 2],
    swizzle: SwizzleMode,
}

const STORED: Stored = Stored {
    element: Element::U32,
    extents: [13, 4],
    pitch: 16,
    boxed: [8, 4],
    at: [8, 0],
    swizzle: SwizzleMode::None,
};

impl Stored {
    fn program(&self) -> crate::program::Program {
        let (bytes, [columns, rows]) = (i64::from(self.element.bytes()), self.extents);
        let words = i64::from(self.boxed[0] * self.boxed[1]) * bytes / 4;
        let mut k = Assembler::new(1, 32);
        // The memory after the last row, and between rows, must not be written.
        let target = k.global(Role::Both, self.element, self.pitch * (rows - 1) + columns);
        let shared = k.shared(self.element, words * 4 / bytes);
        let dimension =
            |extent: i64, stride: i64, boxed| Dimension { extent: extent.into(), stride: stride.into(), boxed };
        let dimensions =
            vec![dimension(columns, bytes, self.boxed[0]), dimension(rows, self.pitch * bytes, self.boxed[1])];
        k.raw().maps.push(TensorMap { buffer: target, dimensions, swizzle: self.swizzle });
        let (thread, filled, end) = (k.thread(), k.constant(0x5a5a_5a5a), k.constant((words + 31) / 32));
        let zero = k.constant(0);
        k.iterations(zero, end, |k, iteration| {
            let (row, column) = (k.scaled(iteration, 128, 0), k.scaled(thread, 4, 0));
            let address = k.binary(Binary::Add, row, column);
            let inside = k.compare(Comparison::Less, address, 4 * words);
            k.guarded(inside, |k| k.store(shared, address, filled));
        });
        k.fence(Fence::AsyncShared);
        k.barrier();
        let corner = self.at.map(|at| k.constant(at));
        k.only(0, |k| {
            let access = k.access(shared, 32, 1);
            k.emit(Operation::BulkStore { map: MapId(0), from: access }, &[zero, corner[0], corner[1]], &[]);
            k.plain(Operation::CommitBulk);
            k.plain(Operation::WaitBulk { groups: 0, read: true });
        });
        k.program()
    }
}

#[test]
pub(super) fn stores_that_end_inside_a_chunk_are_found() {
    let (u8s, u16s, u64s) = (Element::U8, Element::Bf16, Element::U64);
    let none = SwizzleMode::None;
    // As measured on a device: each of these overwrites memory after its rows.
    for (element, extents, pitch, boxed, at, swizzle) in [
        (Element::U32, [13, 4], 16, [8, 4], [8, 0], none),
        (Element::U32, [14, 4], 16, [16, 4], [0, 0], none),
        (Element::U32, [15, 1], 16, [16, 1], [0, 0], none),
        (Element::F32, [101, 3], 104, [32, 4], [96, 0], SwizzleMode::Bytes128),
        (u16s, [57, 4], 64, [64, 4], [0, 0], SwizzleMode::Bytes128),
        (u16s, [63, 4], 64, [32, 4], [32, 0], SwizzleMode::Bytes64),
        (u16s, [15, 4], 16, [16, 4], [0, 1], SwizzleMode::Bytes32),
        (u16s, [1, 4], 8, [8, 4], [0, 3], none),
        (u16s, [135, 1], 136, [8, 1], [128, 0], none),
        (u16s, [175, 4], 400, [64, 2], [128, 2], SwizzleMode::Bytes128),
        (u8s, [49, 2], 64, [64, 2], [0, 0], none),
        (u8s, [61, 2], 64, [16, 2], [48, 0], none),
        (u64s, [5, 4], 6, [8, 4], [0, 0], none),
        (u64s, [7, 4], 8, [2, 4], [6, 0], none),
        // In rows without gaps, the rest of a chunk is the beginning of the next row.
        (Element::U32, [13, 4], 12, [16, 4], [0, 0], none),
    ] {
        let stored = Stored { element, extents, pitch, boxed, at, swizzle };
        finds(&stored.program(), "E1041");
    }
    let findings = runs(&STORED.program()).remove(0).unwrap_err();
    let text = findings[0].to_string();
    assert!(text.contains("bytes 52 to 63 of `t0` (element 13 of"), "{text}");
    // The store writes past the end of every row, including the last one, past the end of the
    // tensor.
    let last = Stored { at: [8, 3], ..STORED };
    let text = runs(&last.program()).remove(0).unwrap_err()[0].to_string();
    assert!(text.contains("bytes 244 to 255 of `t0`"), "{text}");
}

#[test]
pub(super) fn stores_before_the_first_element_are_found() {
    for at in [[-8, 0], [0, -1], [0, -4], [-4, -1], [0, -400], [-80, 2]] {
        finds(&Stored { extents: [16, 4], at, ..STORED }.program(), "E1041");
    }
    // A coordinate that is not a whole number of chunks is misaligned, as in loads.
    for at in [[1, 0], [2, 0], [-3, 0], [7, 3]] {
        finds(&Stored { extents: [16, 4], at, ..STORED }.program(), "E1011");
    }
}

#[test]
pub(super) fn stores_that_stay_inside_are_right() {
    for (element, extents, pitch, boxed, at, swizzle) in [
        // The extent ends at a chunk boundary, inside the box and at its end, with any pitch.
        (Element::U32, [12, 4], 16, [8, 4], [8, 0], SwizzleMode::None),
        (Element::U32, [16, 4], 20, [8, 4], [8, 2], SwizzleMode::None),
        (Element::Bf16, [56, 4], 64, [64, 4], [0, 0], SwizzleMode::Bytes128),
        (Element::Bf16, [136, 1], 136, [8, 1], [128, 0], SwizzleMode::None),
        (Element::U64, [6, 4], 6, [8, 4], [0, 0], SwizzleMode::None),
        (Element::U8, [48, 2], 64, [64, 2], [0, 0], SwizzleMode::None),
        // The row ends inside a chunk, but the box does not reach that chunk, or is past it.
        (Element::U32, [13, 4], 16, [8, 4], [0, 0], SwizzleMode::None),
        (Element::U32, [13, 4], 16, [8, 4], [4, 0], SwizzleMode::None),
        (Element::U32, [13, 4], 16, [8, 4], [16, 0], SwizzleMode::None),
        (Element::U32, [13, 4], 16, [8, 4], [8, 4], SwizzleMode::None),
        (Element::U32, [13, 4], 16, [8, 4], [400, 400], SwizzleMode::None),
    ] {
        let stored = Stored { element, extents, pitch, boxed, at, swizzle };
        let run = is_right(&stored.program());
        let mut idle = stored.program();
        idle.body.clear();
        let before = is_right(&idle).bytes(0).unwrap().to_vec();
        let bytes = element.bytes() as usize;
        for (index, (own, before)) in run.bytes(0).unwrap().chunks(bytes).zip(before.chunks(bytes)).enumerate() {
            let (column, row) = (index as i64 % pitch, index as i64 / pitch);
            let boxed =
                [column - at[0], row - at[1]].into_iter().zip(boxed).all(|(at, side)| (0..side.into()).contains(&at));
            let written = column < extents[0] && boxed;
            let expected = if written { &[0x5a; 8][..bytes] } else { before };
            assert_eq!(own, expected, "{extents:?} {at:?}: ({column},{row})");
        }
    }
}
