//! Products whose A is half zeros, with random metadata that have a defined result.

use std::fmt::Write;

use tilewright_sanitize::isa::mma::sparse::SparseMma;
use tilewright_sanitize::isa::mma::{LANES, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};

use super::{
    BLOCK, BLOCKS, Fill, THREADS, Words, compare, declare, fill_of, load, models, operands, save, tried_is_open,
};
use crate::program::{HEAD, Program, Random, Shape};

/// The metadata of all threads: eight chunks in each word.
pub(super) fn metadata(random: &mut Random, bits: u32, is_ordered: bool) -> Vec<u32> {
    let chunks: &[u32] = match (bits, is_ordered) {
        (32, _) => &[0b0100, 0b1110],
        (_, true) => &[0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110],
        _ => &[1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14],
    };
    let mut word = || (0..8).fold(0, |word, at| word | chunks[random.below(chunks.len() as u64) as usize] << (4 * at));
    (0..THREADS).map(|_| word()).collect()
}

/// An instruction, and the lanes that give its metadata.
struct SparseCase<'x> {
    shape: [usize; 3],
    operands: Operands,
    names: [&'x str; 2],
    sums: SumType,
    saturate: bool,
    is_ordered: bool,
    /// Whether indices stand in any order.
    is_shuffled: bool,
    selector: u64,
    special: bool,
}

fn sparse_product(all: &mut Vec<Program>, case: &SparseCase<'_>) {
    let SparseCase { shape, operands: of, names, sums, saturate, is_ordered, is_shuffled, selector, special } = *case;
    let Ok(mma) = SparseMma::new(shape, of, sums, (saturate, is_ordered), selector) else { return };
    let [in_a, in_b, in_c] = mma.registers();
    let [m, n, k] = shape;
    let [a_name, b_name] = names;
    let (sum, class, sum_fill) = match (of, sums) {
        (Operands::Floats(..), SumType::F16) => ("f16", "b32", Fill::Floats(5, 10, special)),
        (Operands::Floats(..), SumType::F32) => ("f32", "f32", Fill::Floats(8, 23, special)),
        _ => ("s32", "b32", Fill::Bits),
    };
    let fills = match of {
        Operands::Floats(a, b) => [fill_of(a, special), fill_of(b, special)],
        _ => [Fill::Bits; 2],
    };
    let sp = if is_ordered { "sp::ordered_metadata" } else { "sp" };
    let dot = if saturate { ".satfinite" } else { "" };
    let instruction = format!("mma.{sp}.sync.aligned.m{m}n{n}k{k}.row.col{dot}.{sum}.{a_name}.{b_name}.{sum}");
    let order = if is_shuffled { "-any-order" } else { "" };
    let name = format!("{instruction}_{selector}{order}{}", if special { "-special" } else { "" });
    let mut random = Random(name.len() as u64 * 313 + selector);
    let mut words = operands(&mut random, &[(fills[0], in_a), (fills[1], in_b), (sum_fill, in_c)]);
    words.0.extend(metadata(&mut random, of.bits(), !is_shuffled));
    let mut text = HEAD.to_string();
    for (letter, class) in [('a', "b32"), ('b', "b32"), ('c', class), ('e', class), ('f', "b32")] {
        declare(&mut text, letter, class);
    }
    text += "    mul.wide.u32 %d20, %at, 4;\n    add.u64 %d21, %in, %d20;\n    add.u64 %d22, %out, %d20;\n";
    let a = load(&mut text, 'a', "b32", in_a, 0);
    let b = load(&mut text, 'b', "b32", in_b, in_a);
    let c = load(&mut text, 'c', class, in_c, in_a + in_b);
    load(&mut text, 'f', "b32", 1, in_a + in_b + in_c);
    let results = c.replace("%c", "%e");
    let _ = writeln!(text, "    {instruction} {results}, {a}, {b}, {c}, %f0, {selector};");
    save(&mut text, 'e', class, in_c);
    text += "    ret;\n}\n";
    let shape = match sum {
        "f16" => Shape::F16x2,
        "f32" => Shape::F32,
        _ => Shape::Bits,
    };
    let input = words.bytes();
    let tried = if sum == "s32" { Vec::new() } else { models(k / 2) };
    let check = move |output: &[u8]| {
        compare(&Words::of_bytes(output), in_c, shape, &tried, |warp, model| {
            let mma = model.map_or(mma, |model| mma.with_model(model));
            let a = words.registers(0, in_a, warp);
            let b = words.registers(in_a, in_b, warp);
            let c = words.registers(in_a + in_b, in_c, warp);
            let mut d = vec![[0; LANES]; in_c];
            if let Err(flaw) = mma.multiply(&a, &b, &c, &words.register(in_a + in_b + in_c, warp), &mut d) {
                eprintln!("{flaw}");
            }
            d
        })
    };
    all.push(Program {
        name,
        text,
        blocks: BLOCKS,
        threads: BLOCK,
        input,
        output_bytes: 4 * in_c * THREADS,
        approximate: tried_is_open(shape),
        check: Box::new(check),
        map: None,
    });
}

pub(super) fn products(all: &mut Vec<Program>) {
    let base = SparseCase {
        shape: [16, 8, 32],
        operands: Operands::Floats(Factor::F16, Factor::F16),
        names: ["f16"; 2],
        sums: SumType::F32,
        saturate: false,
        is_ordered: true,
        is_shuffled: false,
        selector: 0,
        special: false,
    };
    let halves =
        [("f16", Factor::F16, SumType::F32), ("f16", Factor::F16, SumType::F16), ("bf16", Factor::Bf16, SumType::F32)];
    for selector in 0..4 {
        for k in [16, 32] {
            for (name, factor, sums) in halves {
                let operands = Operands::Floats(factor, factor);
                sparse_product(
                    all,
                    &SparseCase { shape: [16, 8, k], operands, names: [name; 2], sums, selector, ..base },
                );
            }
        }
        for k in [8, 16] {
            let operands = Operands::Floats(Factor::Tf32, Factor::Tf32);
            sparse_product(all, &SparseCase { shape: [16, 8, k], operands, names: ["tf32"; 2], selector, ..base });
        }
        for (bits, k) in [(8, 32), (8, 64), (4, 64), (4, 128)] {
            for (a_signed, b_signed) in [(true, true), (false, true), (true, false), (false, false)] {
                let name = |signed: bool| match (bits, signed) {
                    (8, true) => "s8",
                    (8, false) => "u8",
                    (_, true) => "s4",
                    (_, false) => "u4",
                };
                let operands = Operands::Integers { bits, a_signed, b_signed };
                let names = [name(a_signed), name(b_signed)];
                let saturate = a_signed != b_signed;
                sparse_product(all, &SparseCase { shape: [16, 8, k], operands, names, saturate, selector, ..base });
            }
        }
    }
    let bytes = [("e4m3", Factor::E4m3), ("e5m2", Factor::E5m2)];
    for (a, first) in bytes {
        for (b, second) in bytes {
            let operands = Operands::Floats(first, second);
            sparse_product(all, &SparseCase { shape: [16, 8, 64], operands, names: [a, b], ..base });
        }
    }
    sparse_product(all, &SparseCase { special: true, ..base });
    // Without `::ordered_metadata`, and with indices in any order.
    let integers = Operands::Integers { bits: 8, a_signed: true, b_signed: true };
    for is_shuffled in [false, true] {
        let plain = SparseCase { is_ordered: false, is_shuffled, ..base };
        sparse_product(all, &plain);
        sparse_product(all, &SparseCase { operands: integers, names: ["s8"; 2], shape: [16, 8, 64], ..plain });
    }
}
