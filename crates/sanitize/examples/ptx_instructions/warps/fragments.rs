//! `wmma` of f16 with sums of both types, through loads and stores of fragments.

use std::fmt::Write;

use tilewright_sanitize::isa::mma::{LANES, LaneWords, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};
use tilewright_sanitize::isa::wmma::{Wmma, WmmaMatrix};

use super::{BLOCK, BLOCKS, Fill, THREADS, fill_of, tried_is_open};
use crate::program::{HEAD, Outcome, Program, Random, Shape};

/// Rows and columns of each matrix.
const EXTENT: usize = 16;
/// Elements of a matrix.
const SIZE: usize = EXTENT * EXTENT;
const WARPS: usize = THREADS / LANES;

/// The bits of element `at` of matrices of elements of this many bytes.
fn element(bytes: &[u8], at: usize, size: usize) -> u32 {
    bytes[at * size..][..size].iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte))
}

/// Registers of a fragment of which `of` gives the elements.
fn registers(wmma: &Wmma, fragment: WmmaMatrix, of: impl Fn(usize, usize) -> u32) -> Vec<LaneWords> {
    let packed = 32 / wmma.bits(fragment);
    let count = wmma.registers(fragment);
    let mut words = vec![[0; LANES]; count];
    for place in 0..count * packed {
        for (lane, word) in words[place / packed].iter_mut().enumerate() {
            let (row, column) = wmma.place(fragment, lane, place);
            *word |= of(row, column) << (wmma.bits(fragment) * (place % packed));
        }
    }
    words
}

pub(super) fn products(all: &mut Vec<Program>) {
    let halves = Operands::Floats(Factor::F16, Factor::F16);
    let kinds = [("f16", SumType::F16, 2, 4), ("f32", SumType::F32, 4, 8)];
    for (of_d, d_sums, d_bytes, d_registers) in kinds {
        for (of_c, c_sums, c_bytes, c_registers) in kinds {
            let sums = if (of_d, of_c) == ("f16", "f16") { SumType::F16 } else { SumType::F32 };
            let made = |sums| Wmma::new([EXTENT; 3], halves, sums, false);
            let (Some(wmma), Some(of_c_wmma), Some(of_d_wmma)) = (made(sums), made(c_sums), made(d_sums)) else {
                continue;
            };
            let name = format!("wmma.mma.sync.aligned.row.col.m16n16k16.{of_d}.{of_c}");
            let mut random = Random(name.len() as u64 * 61 + c_bytes as u64);
            let mut input = Vec::new();
            let sum_fill = if of_c == "f16" { Fill::Floats(5, 10, false) } else { Fill::Floats(8, 23, false) };
            for (fill, size) in
                [(fill_of(Factor::F16, false), 2), (fill_of(Factor::F16, false), 2), (sum_fill, c_bytes)]
            {
                for word in fill.words(&mut random, WARPS * SIZE * size / 4) {
                    input.extend(word.to_le_bytes());
                }
            }
            let list = |letter: char, count: usize| {
                (0..count).map(|at| format!("%{letter}{at}")).collect::<Vec<String>>().join(", ")
            };
            let class = |kind: &str| if kind == "f16" { "b32" } else { "f32" };
            let [b_at, c_at] = [WARPS * SIZE * 2, WARPS * SIZE * 4];
            let mut text = HEAD.to_string();
            let _ = write!(
                text,
                "    .reg .b32 %a<8>, %b<8>;
    .reg .{class_c} %c<8>;
    .reg .{class_d} %e<8>;
    shr.u32 %r1, %at, 5;
    mul.wide.u32 %d1, %r1, {half};
    add.u64 %d2, %in, %d1;
    add.u64 %d3, %d2, {b_at};
    mul.wide.u32 %d4, %r1, {of_c_size};
    add.u64 %d4, %in, %d4;
    add.u64 %d4, %d4, {c_at};
    mul.wide.u32 %d5, %r1, {of_d_size};
    add.u64 %d5, %out, %d5;
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{a}}}, [%d2];
    wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {{{b}}}, [%d3];
    wmma.load.c.sync.aligned.row.m16n16k16.global.{of_c} {{{c}}}, [%d4];
    {name} {{{e}}}, {{{a}}}, {{{b}}}, {{{c}}};
    wmma.store.d.sync.aligned.row.m16n16k16.global.{of_d} [%d5], {{{e}}};
    ret;
}}
",
                class_c = class(of_c),
                class_d = class(of_d),
                half = SIZE * 2,
                of_c_size = SIZE * c_bytes,
                of_d_size = SIZE * d_bytes,
                a = list('a', 8),
                b = list('b', 8),
                c = list('c', c_registers),
                e = list('e', d_registers),
            );
            let held = input.clone();
            let shape = if of_d == "f16" { Shape::F16 } else { Shape::F32 };
            let check = move |output: &[u8]| {
                let mut outcome = Outcome::default();
                for warp in 0..WARPS {
                    let first = warp * SIZE;
                    let a = registers(&wmma, WmmaMatrix::A, |row, k| element(&held, first + row * EXTENT + k, 2));
                    let b = registers(&wmma, WmmaMatrix::B, |k, column| {
                        element(&held[b_at..], first + column * EXTENT + k, 2)
                    });
                    let c = registers(&of_c_wmma, WmmaMatrix::C, |row, column| {
                        element(&held[c_at..], first + row * EXTENT + column, c_bytes)
                    });
                    let c = if c_sums == sums { c } else { Wmma::widened(&c) };
                    let mut d = vec![[0; LANES]; wmma.registers(WmmaMatrix::C)];
                    wmma.multiply(&a, &b, &c, &mut d);
                    let d = if d_sums == sums { d } else { Wmma::narrowed(&d) };
                    let bits = 8 * d_bytes;
                    for (register, lanes) in d.iter().enumerate() {
                        for (lane, word) in lanes.iter().enumerate() {
                            for part in 0..32 / bits {
                                let place = register * (32 / bits) + part;
                                let (row, column) = of_d_wmma.place(WmmaMatrix::C, lane, place);
                                let found = element(output, first + row * EXTENT + column, d_bytes);
                                let wanted = word >> (bits * part) & (u32::MAX >> (32 - bits));
                                outcome.add(found.into(), wanted.into(), shape, || {
                                    format!("warp {warp}, {row}, {column}")
                                });
                            }
                        }
                    }
                }
                outcome
            };
            all.push(Program {
                name,
                text,
                blocks: BLOCKS,
                threads: BLOCK,
                input,
                output_bytes: WARPS * SIZE * d_bytes,
                approximate: tried_is_open(if of_d == "f16" { Shape::F16x2 } else { Shape::F32 }),
                check: Box::new(check),
                map: None,
            });
        }
    }
}
