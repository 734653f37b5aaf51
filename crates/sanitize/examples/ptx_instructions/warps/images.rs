//! Operands in images of shared memory: products of warpgroups and moves of matrices.

use std::fmt::Write;

use tilewright_sanitize::isa::matrices;
use tilewright_sanitize::isa::mma::LANES;
use tilewright_sanitize::isa::mma::sparse::Sparsity;
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};
use tilewright_sanitize::isa::wgmma::{Described, GroupOperands, GroupProduct};

use super::sparse::metadata;
use super::{
    BLOCK, BLOCKS, Fill, IMAGE, THREADS, Words, compare, declare, fill_of, load, models, operands, save, tried_is_open,
};
use crate::program::{Check, HEAD, Outcome, Program, Random, Shape};

/// The beginning of a kernel with an image of shared memory, which is the block's part of the
/// input. `%image` is its address.
fn with_image(text: &mut String) {
    let _ = write!(
        text,
        "    .shared .align 1024 .b8 image[{bytes}];
    .reg .b32 %image, %step;
    mov.u32 %image, image;
    mul.wide.u32 %d1, %block, {bytes};
    add.u64 %d1, %in, %d1;
    mul.wide.u32 %d2, %thread, 4;
    add.u64 %d1, %d1, %d2;
    shl.b32 %r1, %thread, 2;
    add.u32 %r1, %image, %r1;
    mov.u32 %step, 0;
FILL:
    ld.global.b32 %r2, [%d1];
    st.shared.b32 [%r1], %r2;
    add.u64 %d1, %d1, 512;
    add.u32 %r1, %r1, 512;
    add.u32 %step, %step, 1;
    setp.lt.u32 %p1, %step, {steps};
    @%p1 bra FILL;
    fence.proxy.async;
    bar.sync 0;
    mul.wide.u32 %d20, %at, 4;
    add.u64 %d21, %in, %d20;
    add.u64 %d21, %d21, {behind};
    add.u64 %d22, %out, %d20;
",
        bytes = 4 * IMAGE,
        steps = IMAGE / BLOCK,
        behind = 4 * IMAGE * BLOCKS,
    );
}

/// Where B begins in the image.
const B_AT: u32 = 8192;

/// A way that an operand lies in shared memory.
#[derive(Debug, Clone, Copy)]
struct Way {
    units: u32,
    across: bool,
    /// Bytes by which the start lies inside a line of the swizzle.
    inside: u32,
}

impl Way {
    fn describe(self, start: u32) -> Described {
        let line = 16 * self.units;
        let (leading, stride) = match (self.across, self.units) {
            (false, 1) => (128, 256),
            (false, _) => (0, 8 * line),
            (true, 1) => (128, 256),
            (true, _) => (16 * line, 8 * line),
        };
        Described { start: start + self.inside, leading, stride, base_offset: 0, units: self.units }
    }

    /// The bits of the descriptor but for the start.
    fn upper(self) -> u64 {
        let described = self.describe(0);
        let mode = match self.units {
            1 => 0,
            2 => 3,
            4 => 2,
            _ => 1_u64,
        };
        u64::from(described.leading >> 4) << 16 | u64::from(described.stride >> 4) << 32 | mode << 62
    }
}

/// An instruction of a warpgroup.
struct GroupCase {
    n: usize,
    operands: GroupOperands,
    names: [&'static str; 2],
    sums: SumType,
    ways: [Way; 2],
    in_registers: bool,
    saturate: bool,
    negated: [bool; 2],
    special: bool,
    /// The selector of a sparse A, and whether the indices of its metadata stand in any order.
    sparse: Option<(u64, bool)>,
}

fn group_product(all: &mut Vec<Program>, case: &GroupCase) {
    let GroupCase { n, operands: of, names, sums, ways, in_registers, saturate, negated, special, sparse } = *case;
    let wgmma = GroupProduct::new(n, of, sums, saturate);
    let wgmma = if sparse.is_some() { wgmma.and_then(GroupProduct::sparse) } else { wgmma };
    let Some(wgmma) = wgmma else { return };
    let selector = sparse.map_or(0, |(selector, _)| selector);
    let Ok(sparsity) = Sparsity::new(of.bits().max(4), 4, selector, false) else { return };
    let wgmma = wgmma.across(ways.map(|way| way.across)).negated(negated);
    let (k, registers) = (wgmma.k(), wgmma.registers());
    let (sum, class, sum_fill) = match (of, sums) {
        (GroupOperands::Floats(..), SumType::F16) => ("f16", "b32", Fill::Floats(5, 10, special)),
        (GroupOperands::Floats(..), SumType::F32) => ("f32", "f32", Fill::Floats(8, 23, special)),
        _ => ("s32", "b32", Fill::Bits),
    };
    let fill = match of {
        GroupOperands::Floats(factor, _) => fill_of(factor, special),
        _ => Fill::Bits,
    };
    let [a, b] = names;
    let dot = if saturate { ".satfinite" } else { "" };
    let end = if of == GroupOperands::AndPopc { ".and.popc" } else { "" };
    let sp = if sparse.is_some() { ".sp" } else { "" };
    let instruction = format!("wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}{dot}.{sum}.{a}.{b}{end}");
    let letter = |way: Way| {
        let major = if way.across { "mn" } else { "k" };
        format!("{major}{}{}", 16 * way.units, if way.inside > 0 { "i" } else { "" })
    };
    let from = if in_registers { "registers".into() } else { letter(ways[0]) };
    let signs = negated.map(|negated| if negated { "-" } else { "+" }).concat();
    let end = match sparse {
        Some((selector, true)) => format!("_{selector}-any-order"),
        Some((selector, false)) => format!("_{selector}"),
        None => String::new(),
    };
    let end = format!("{end}{}", if special { "-special" } else { "" });
    let name = format!("{instruction}_{from}_{}_{signs}{end}", letter(ways[1]));
    let mut random = Random(name.len() as u64 * 1001);
    let image = fill.words(&mut random, IMAGE * BLOCKS);
    let mut words = operands(&mut random, &[(fill, 4), (sum_fill, registers)]);
    if let Some((_, is_shuffled)) = sparse {
        words.0.extend(metadata(&mut random, of.bits(), !is_shuffled));
    }
    let mut text = HEAD.to_string();
    declare(&mut text, 'a', "b32");
    declare(&mut text, 'f', "b32");
    declare(&mut text, 'c', class);
    with_image(&mut text);
    let held = load(&mut text, 'a', "b32", 4, 0);
    let d = load(&mut text, 'c', class, registers, 4);
    let given = match sparse {
        Some((selector, _)) => {
            load(&mut text, 'f', "b32", 1, 4 + registers);
            format!(" %f0, {selector},")
        }
        None => String::new(),
    };
    for (number, way, start) in [(3, ways[0], 0), (4, ways[1], B_AT)] {
        let _ = write!(
            text,
            "    add.u32 %r3, %image, {};\n    shr.u32 %r3, %r3, 4;\n    cvt.u64.u32 %d{number}, %r3;\n    or.b64 %d{number}, %d{number}, {:#x};\n",
            start + way.inside,
            way.upper()
        );
    }
    let scale = |negated: bool| if negated { "-1" } else { "1" };
    let floats = matches!(of, GroupOperands::Floats(..));
    let wide = floats && of.bits() == 16;
    let mut arguments = String::new();
    if floats {
        let _ = write!(arguments, ", {}, {}", scale(negated[0]), scale(negated[1]));
    }
    if wide {
        if !in_registers {
            let _ = write!(arguments, ", {}", u32::from(ways[0].across));
        }
        let _ = write!(arguments, ", {}", u32::from(ways[1].across));
    }
    let first = if in_registers { held } else { "%d3".into() };
    let _ = write!(
        text,
        "    setp.ne.u32 %p2, %block, 0;
    wgmma.fence.sync.aligned;
    {instruction} {d}, {first}, %d4,{given} %p2{arguments};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
"
    );
    save(&mut text, 'c', class, registers);
    text += "    ret;\n}\n";
    let mut input = Words(image.clone()).bytes();
    input.extend(words.bytes());
    let shape = match sum {
        "f16" => Shape::F16x2,
        "f32" => Shape::F32,
        _ => Shape::Bits,
    };
    let tried = if floats { models(if sparse.is_some() { k / 2 } else { k }) } else { Vec::new() };
    let check = move |output: &[u8]| {
        compare(&Words::of_bytes(output), registers, shape, &tried, |warp, model| {
            let wgmma = model.map_or(wgmma, |model| wgmma.with_model(model));
            let block = warp / 4;
            let read = |at: u32| {
                let mut unit = [0; 16];
                for (number, bytes) in unit.chunks_mut(4).enumerate() {
                    let word = image.get(block * IMAGE + at as usize / 4 + number).copied().unwrap_or(0);
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                unit
            };
            let a = if in_registers {
                wgmma.a_of_registers(&words.registers(0, 4, warp))
            } else {
                wgmma.a_of_shared(warp % 4, &ways[0].describe(0), read)
            };
            let b = wgmma.b_of_shared(&ways[1].describe(B_AT), read);
            let mut d = words.registers(4, registers, warp);
            // The first block does not add.
            match sparse.map(|_| sparsity.places(&words.register(4 + registers, warp))) {
                None => wgmma.multiply(&a, &b, &mut d, block != 0),
                Some(Ok(places)) => wgmma.multiply_sparse(&a, &b, &places, &mut d, block != 0),
                Some(Err(flaw)) => eprintln!("{flaw}"),
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
        output_bytes: 4 * registers * THREADS,
        approximate: tried_is_open(shape),
        check: Box::new(check),
        map: None,
    });
}

pub(super) fn group_products(all: &mut Vec<Program>) {
    let way = |units, across, inside| Way { units, across, inside };
    let base = GroupCase {
        n: 32,
        operands: GroupOperands::Floats(Factor::F16, Factor::F16),
        names: ["f16"; 2],
        sums: SumType::F32,
        ways: [way(8, false, 0); 2],
        in_registers: false,
        saturate: false,
        negated: [false; 2],
        special: false,
        sparse: None,
    };
    // Every swizzle, K-major and MN-major, from the start of a line and inside it.
    for units in [1, 2, 4, 8] {
        for across in [false, true] {
            let inside = if units > 2 && !across { 32 } else { 0 };
            group_product(all, &GroupCase { ways: [way(units, across, 0), way(units, across, inside)], ..base });
            group_product(all, &GroupCase { ways: [way(units, across, inside), way(8, !across, 0)], ..base });
            let bf16 = GroupOperands::Floats(Factor::Bf16, Factor::Bf16);
            let ways = [way(units, across, inside), way(units, across, inside)];
            group_product(all, &GroupCase { operands: bf16, names: ["bf16"; 2], ways, in_registers: true, ..base });
        }
    }
    for n in [8, 24, 64] {
        group_product(all, &GroupCase { n, sums: SumType::F16, ..base });
    }
    for special in [false, true] {
        for in_registers in [false, true] {
            let of = |operands, names, sums| GroupCase { operands, names, sums, in_registers, special, ..base };
            let floats = GroupOperands::Floats;
            group_product(all, &of(floats(Factor::F16, Factor::F16), ["f16"; 2], SumType::F16));
            group_product(all, &of(floats(Factor::F16, Factor::F16), ["f16"; 2], SumType::F32));
            group_product(all, &of(floats(Factor::Bf16, Factor::Bf16), ["bf16"; 2], SumType::F32));
            group_product(all, &of(floats(Factor::Tf32, Factor::Tf32), ["tf32"; 2], SumType::F32));
            let bytes = [("e4m3", Factor::E4m3), ("e5m2", Factor::E5m2)];
            for (a, first) in bytes {
                for (b, second) in bytes {
                    group_product(all, &of(floats(first, second), [a, b], SumType::F32));
                    group_product(all, &of(floats(first, second), [a, b], SumType::F16));
                }
            }
        }
    }
    group_product(all, &GroupCase { negated: [true, false], ..base });
    group_product(all, &GroupCase { negated: [false, true], ..base });
    for (a_signed, a) in [(true, "s8"), (false, "u8")] {
        for (b_signed, b) in [(true, "s8"), (false, "u8")] {
            for (in_registers, saturate) in [(false, false), (true, true)] {
                let operands = GroupOperands::Integers { a_signed, b_signed };
                group_product(all, &GroupCase { operands, names: [a, b], in_registers, saturate, ..base });
            }
        }
    }
    let ways = [way(1, false, 0), way(8, false, 0)];
    for in_registers in [false, true] {
        let operands = GroupOperands::AndPopc;
        group_product(all, &GroupCase { operands, names: ["b1"; 2], in_registers, ways, ..base });
    }
}

/// Products with a sparse A; columns of B have 64 bytes.
pub(super) fn sparse_products(all: &mut Vec<Program>) {
    let way = |units, across, inside| Way { units, across, inside };
    let base = GroupCase {
        n: 32,
        operands: GroupOperands::Floats(Factor::F16, Factor::F16),
        names: ["f16"; 2],
        sums: SumType::F32,
        ways: [way(8, false, 0); 2],
        in_registers: false,
        saturate: false,
        negated: [false; 2],
        special: false,
        sparse: Some((0, false)),
    };
    for units in [1, 2, 4, 8] {
        for across in [false, true] {
            if units == 2 && !across {
                continue;
            }
            // Without a swizzle a column of B takes four units of 16 bytes, 128 bytes apart.
            let ways = [way(8, false, 0), way(units, across, 0)];
            group_product(all, &GroupCase { ways, ..base });
            let ways = [way(units, across, 0), way(8, false, 0)];
            group_product(all, &GroupCase { ways, sparse: Some((1, false)), ..base });
        }
    }
    for in_registers in [false, true] {
        for selector in [0, 1] {
            let of = |operands, names, sums| GroupCase {
                operands,
                names,
                sums,
                in_registers,
                sparse: Some((selector, false)),
                ..base
            };
            let floats = GroupOperands::Floats;
            group_product(all, &of(floats(Factor::F16, Factor::F16), ["f16"; 2], SumType::F16));
            group_product(all, &of(floats(Factor::F16, Factor::F16), ["f16"; 2], SumType::F32));
            group_product(all, &of(floats(Factor::Bf16, Factor::Bf16), ["bf16"; 2], SumType::F32));
            group_product(all, &of(floats(Factor::Tf32, Factor::Tf32), ["tf32"; 2], SumType::F32));
            let bytes = [("e4m3", Factor::E4m3), ("e5m2", Factor::E5m2)];
            for (a, first) in bytes {
                for (b, second) in bytes {
                    group_product(all, &of(floats(first, second), [a, b], SumType::F32));
                    group_product(all, &of(floats(first, second), [a, b], SumType::F16));
                }
            }
            for (a_signed, a) in [(true, "s8"), (false, "u8")] {
                for (b_signed, b) in [(true, "s8"), (false, "u8")] {
                    let operands = GroupOperands::Integers { a_signed, b_signed };
                    let saturate = a_signed == in_registers;
                    group_product(all, &GroupCase { saturate, ..of(operands, [a, b], SumType::F32) });
                }
            }
        }
    }
    group_product(all, &GroupCase { special: true, ..base });
    group_product(all, &GroupCase { negated: [true, false], ..base });
    group_product(all, &GroupCase { sparse: Some((0, true)), ..base });
}

pub(super) fn moves(all: &mut Vec<Program>) {
    for count in [1, 2, 4] {
        for (transposed, trans) in [(false, ""), (true, ".trans")] {
            let instruction = format!("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16");
            let mut random = Random(count as u64);
            let image = Fill::Bits.words(&mut random, IMAGE * BLOCKS);
            let places: Vec<u32> = (0..THREADS).map(|_| 16 * random.below(IMAGE as u64 / 4) as u32).collect();
            let mut text = HEAD.to_string();
            declare(&mut text, 'a', "b32");
            declare(&mut text, 'c', "b32");
            with_image(&mut text);
            load(&mut text, 'a', "b32", 1, 0);
            let results: Vec<String> = (0..count).map(|number| format!("%c{number}")).collect();
            let results = results.join(", ");
            let _ = write!(text, "    add.u32 %r3, %image, %a0;\n    {instruction} {{{results}}}, [%r3];\n");
            save(&mut text, 'c', "b32", count);
            text += "    ret;\n}\n";
            let mut input = Words(image.clone()).bytes();
            input.extend(Words(places.clone()).bytes());
            let check = move |output: &[u8]| {
                compare(&Words::of_bytes(output), count, Shape::Bits, &[], |warp, _| {
                    let registers = (0..count).map(|matrix| {
                        let mut rows = [[0; 16]; 8];
                        for (row, bytes) in rows.iter_mut().enumerate() {
                            let at = places[warp * LANES + matrices::address_lane(matrix, row)] as usize;
                            for (number, word) in bytes.chunks_mut(4).enumerate() {
                                word.copy_from_slice(&image[warp / 4 * IMAGE + at / 4 + number].to_le_bytes());
                            }
                        }
                        matrices::load(&rows, transposed)
                    });
                    registers.collect()
                })
            };
            all.push(moved(instruction, text, input, 4 * count * THREADS, Box::new(check)));
        }
    }
    for count in [1, 2, 4] {
        for (transposed, trans) in [(false, ""), (true, ".trans")] {
            let instruction = format!("stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16");
            let mut random = Random(count as u64);
            let image = Fill::Bits.words(&mut random, IMAGE * BLOCKS);
            let words = operands(&mut random, &[(Fill::Bits, count)]);
            let mut text = HEAD.to_string();
            declare(&mut text, 'a', "b32");
            with_image(&mut text);
            let from = load(&mut text, 'a', "b32", count, 0);
            // Lane l of a block writes the unit 7 t + 3 of its 128 units of 16 bytes.
            let _ = write!(
                text,
                "    mad.lo.u32 %r3, %thread, 7, 3;
    and.b32 %r3, %r3, 127;
    shl.b32 %r3, %r3, 4;
    add.u32 %r3, %image, %r3;
    {instruction} [%r3], {from};
    bar.sync 0;
    mul.wide.u32 %d2, %block, 2048;
    add.u64 %d2, %out, %d2;
    shl.b32 %r4, %thread, 4;
    cvt.u64.u32 %d3, %r4;
    add.u64 %d2, %d2, %d3;
    add.u32 %r4, %image, %r4;
    ld.shared.v4.b32 {{%r5, %r6, %r7, %r8}}, [%r4];
    st.global.v4.b32 [%d2], {{%r5, %r6, %r7, %r8}};
    ret;
}}
"
            );
            let mut input = Words(image.clone()).bytes();
            input.extend(words.bytes());
            let check = move |output: &[u8]| {
                let mut outcome = Outcome::default();
                for block in 0..BLOCKS {
                    let mut wanted: Vec<u8> =
                        image[block * IMAGE..][..512].iter().flat_map(|word| word.to_le_bytes()).collect();
                    for warp in 0..4 {
                        for (matrix, register) in words.registers(0, count, block * 4 + warp).iter().enumerate() {
                            for (row, bytes) in matrices::store(register, transposed).iter().enumerate() {
                                let thread = warp * LANES + matrices::address_lane(matrix, row);
                                wanted[(7 * thread + 3) % 128 * 16..][..16].copy_from_slice(bytes);
                            }
                        }
                    }
                    for (at, (found, wanted)) in output[block * 2048..][..2048].iter().zip(&wanted).enumerate() {
                        outcome.add((*found).into(), (*wanted).into(), Shape::Bits, || {
                            format!("block {block}, byte {at}")
                        });
                    }
                }
                outcome
            };
            all.push(moved(instruction, text, input, 2048 * BLOCKS, Box::new(check)));
        }
    }
    let mut random = Random(9);
    let words = operands(&mut random, &[(Fill::Bits, 1)]);
    let instruction = "movmatrix.sync.aligned.m8n8.trans.b16";
    let mut text = HEAD.to_string();
    declare(&mut text, 'a', "b32");
    declare(&mut text, 'c', "b32");
    text += "    mul.wide.u32 %d20, %at, 4;\n    add.u64 %d21, %in, %d20;\n    add.u64 %d22, %out, %d20;\n";
    load(&mut text, 'a', "b32", 1, 0);
    let _ = writeln!(text, "    {instruction} %c0, %a0;");
    save(&mut text, 'c', "b32", 1);
    text += "    ret;\n}\n";
    let input = words.bytes();
    let check = move |output: &[u8]| {
        compare(&Words::of_bytes(output), 1, Shape::Bits, &[], |warp, _| {
            vec![matrices::transpose(&words.register(0, warp))]
        })
    };
    all.push(moved(instruction.into(), text, input, 4 * THREADS, Box::new(check)));
}

fn moved(name: String, text: String, input: Vec<u8>, output_bytes: usize, check: Check) -> Program {
    Program { name, text, blocks: BLOCKS, threads: BLOCK, input, output_bytes, approximate: false, check, map: None }
}
