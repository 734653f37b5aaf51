//! Instructions of warps and warpgroups: products of registers here, what reads shared memory in
//! `images`, and products with zeros in A in `sparse`.

mod fragments;
mod images;
mod sparse;

use std::fmt::Write;

use tilewright_sanitize::isa::mma::{LANES, LaneWords, Mma, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumModel, SumType};

use crate::program::{HEAD, Outcome, Program, Random, Shape};

/// Threads of a block, and blocks.
const BLOCK: usize = 128;
const BLOCKS: usize = 24;
const THREADS: usize = BLOCK * BLOCKS;
/// Words of shared memory of a block.
const IMAGE: usize = 4096;

/// All of them.
pub(crate) fn programs() -> Vec<Program> {
    let mut all = Vec::new();
    products(&mut all);
    sparse::products(&mut all);
    fragments::products(&mut all);
    images::group_products(&mut all);
    images::sparse_products(&mut all);
    images::moves(&mut all);
    all
}

/// What elements of 32 bits are filled with.
#[derive(Debug, Clone, Copy)]
enum Fill {
    /// Floating-point numbers: bits of exponent and fraction, and whether some are special.
    Floats(u32, u32, bool),
    F64,
    Bits,
}

fn fill_of(factor: Factor, special: bool) -> Fill {
    match factor {
        Factor::F16 => Fill::Floats(5, 10, special),
        Factor::Bf16 => Fill::Floats(8, 7, special),
        Factor::Tf32 => Fill::Floats(8, 23, special),
        Factor::E4m3 => Fill::Floats(4, 3, special),
        Factor::E5m2 => Fill::Floats(5, 2, special),
    }
}

impl Fill {
    fn number(self, random: &mut Random) -> u64 {
        match self {
            Fill::Floats(exponent, fraction, special) => {
                let middle = (1_u64 << (exponent - 1)) - 1;
                let spread = random.below(3) * 3 + 1;
                let field = match random.below(if special { 12 } else { 40 }) {
                    0 => 0,
                    1 if special => 2 * middle + 1,
                    2 if special => 2 * middle,
                    _ => (middle + random.below(2 * spread + 1)).saturating_sub(spread).max(1),
                };
                let low = match random.below(20) {
                    0 => 0,
                    _ => random.bits() & ((1 << fraction) - 1),
                };
                // Without special numbers no byte is NaN.
                let field = if special { field } else { field.min(2 * middle) };
                random.below(2) << (exponent + fraction) | field << fraction | low
            }
            Fill::F64 => random.below(2) << 63 | (1015 + random.below(16)) << 52 | random.bits() >> 12,
            Fill::Bits => random.bits() & 0xffff_ffff,
        }
    }

    /// Words with as many elements as fit; an f64 takes two.
    fn words(self, random: &mut Random, count: usize) -> Vec<u32> {
        let bits = match self {
            Fill::Floats(exponent, fraction, _) => 1 + exponent + fraction,
            Fill::F64 => 64,
            Fill::Bits => 32,
        };
        let mut words = Vec::with_capacity(count);
        while words.len() < count {
            if bits == 64 {
                let number = self.number(random);
                words.extend([number as u32, (number >> 32) as u32]);
            } else {
                words.push((0..32 / bits).fold(0, |word, part| word | (self.number(random) as u32) << (bits * part)));
            }
        }
        words
    }
}

/// Words of all threads: word `n` of thread `t` is number `n * THREADS + t`.
struct Words(Vec<u32>);

impl Words {
    /// A register of a warp.
    fn register(&self, number: usize, warp: usize) -> LaneWords {
        let mut lanes = [0; LANES];
        lanes.copy_from_slice(&self.0[number * THREADS + warp * LANES..][..LANES]);
        lanes
    }

    fn registers(&self, first: usize, count: usize, warp: usize) -> Vec<LaneWords> {
        (first..first + count).map(|number| self.register(number, warp)).collect()
    }

    fn of_bytes(bytes: &[u8]) -> Words {
        Words(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The random words of parts of the operands: this many words a thread of each.
fn operands(random: &mut Random, parts: &[(Fill, usize)]) -> Words {
    let mut words = Vec::new();
    for (fill, count) in parts {
        // Numbers of two words lie in two registers of one thread.
        match fill {
            Fill::F64 => {
                for _ in 0..count / 2 {
                    let pairs = fill.words(random, 2 * THREADS);
                    words.extend(pairs.iter().step_by(2));
                    words.extend(pairs.iter().skip(1).step_by(2));
                }
            }
            _ => words.extend(fill.words(random, count * THREADS)),
        }
    }
    Words(words)
}

/// Loads and stores of registers; `class` is `b32`, `f32` or `f64`.
fn load(text: &mut String, letter: char, class: &str, count: usize, first: usize) -> String {
    let mut names = Vec::new();
    for number in 0..count {
        let _ = writeln!(text, "    ld.global.b32 %w{letter}{number}, [%d21+{}];", (first + number) * THREADS * 4);
    }
    let registers = if class == "f64" { count / 2 } else { count };
    for number in 0..registers {
        let name = format!("%{letter}{number}");
        let _ = match class {
            "f64" => writeln!(text, "    mov.b64 {name}, {{%w{letter}{}, %w{letter}{}}};", 2 * number, 2 * number + 1),
            _ => writeln!(text, "    mov.b32 {name}, %w{letter}{number};"),
        };
        names.push(name);
    }
    format!("{{{}}}", names.join(", "))
}

fn save(text: &mut String, letter: char, class: &str, count: usize) {
    for number in 0..if class == "f64" { count / 2 } else { count } {
        let _ = match class {
            "f64" => {
                writeln!(
                    text,
                    "    mov.b64 {{%w{letter}{}, %w{letter}{}}}, %{letter}{number};",
                    2 * number,
                    2 * number + 1
                )
            }
            _ => writeln!(text, "    mov.b32 %w{letter}{number}, %{letter}{number};"),
        };
    }
    for number in 0..count {
        let _ = writeln!(text, "    st.global.b32 [%d22+{}], %w{letter}{number};", number * THREADS * 4);
    }
}

fn declare(text: &mut String, letter: char, class: &str) {
    let _ = writeln!(text, "    .reg .b32 %w{letter}<128>;\n    .reg .{class} %{letter}<128>;");
}

/// Other models than the one that is assumed: depths and bits.
fn models(k: usize) -> Vec<SumModel> {
    let depths = [1, 2, 4, 8, 16, 32].into_iter().filter(|depth| *depth <= k);
    depths
        .flat_map(|depth| [12, 13, 14, 22, 23, 24, 25, 26, 27].map(|bits| SumModel { depth, bits, kept: bits.min(23) }))
        .collect()
}

/// Compares the registers of all warps; where they differ, says how many agree by other models.
fn compare(
    found: &Words,
    registers: usize,
    shape: Shape,
    models: &[SumModel],
    evaluate: impl Fn(usize, Option<SumModel>) -> Vec<LaneWords>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let step = if shape == Shape::F64 { 2 } else { 1 };
    for warp in 0..THREADS / LANES {
        let (wanted, found) = (evaluate(warp, None), found.registers(0, registers, warp));
        for register in (0..registers).step_by(step) {
            for lane in 0..LANES {
                let bits = |of: &[LaneWords]| {
                    let upper = if step == 2 { u64::from(of[register + 1][lane]) << 32 } else { 0 };
                    u64::from(of[register][lane]) | upper
                };
                outcome.add(bits(&found), bits(&wanted), shape, || {
                    format!("warp {warp}, lane {lane}, register {register}")
                });
            }
        }
    }
    if outcome.equal + outcome.nan < outcome.compared {
        let mut rows: Vec<(usize, SumModel)> = models
            .iter()
            .map(|model| {
                let equal = (0..8).map(|warp| {
                    let (wanted, found) = (evaluate(warp, Some(*model)), found.registers(0, registers, warp));
                    wanted.iter().flatten().zip(found.iter().flatten()).filter(|(a, b)| a == b).count()
                });
                (equal.sum(), *model)
            })
            .collect();
        rows.sort_by_key(|(equal, _)| std::cmp::Reverse(*equal));
        for (equal, model) in rows.iter().take(3) {
            let share = 100.0 * *equal as f64 / (8 * registers * LANES) as f64;
            outcome.notes.push(format!("depth {} and {} bits: {share:.2} % agree", model.depth, model.bits));
        }
    }
    outcome
}

fn product(all: &mut Vec<Program>, name: &str, mma: Mma, fills: [Fill; 3], [class, shape_name]: [&'static str; 2]) {
    let [in_a, in_b, in_c] = mma.registers();
    let mut random = Random(name.len() as u64 * 77);
    let words = operands(&mut random, &[(fills[0], in_a), (fills[1], in_b), (fills[2], in_c)]);
    let operand = if class == "f64" { "f64" } else { "b32" };
    let mut text = HEAD.to_string();
    for letter in ['a', 'b'] {
        declare(&mut text, letter, operand);
    }
    for letter in ['c', 'e'] {
        declare(&mut text, letter, class);
    }
    text += "    mul.wide.u32 %d20, %at, 4;\n    add.u64 %d21, %in, %d20;\n    add.u64 %d22, %out, %d20;\n";
    let a = load(&mut text, 'a', operand, in_a, 0);
    let b = load(&mut text, 'b', operand, in_b, in_a);
    let c = load(&mut text, 'c', class, in_c, in_a + in_b);
    let results = c.replace("%c", "%e");
    let instruction = name.trim_end_matches("-special");
    let _ = writeln!(text, "    {instruction} {results}, {a}, {b}, {c};");
    save(&mut text, 'e', class, in_c);
    text += "    ret;\n}\n";
    let shape = match shape_name {
        "f16" => Shape::F16x2,
        "f32" => Shape::F32,
        "f64" => Shape::F64,
        _ => Shape::Bits,
    };
    let input = words.bytes();
    let tried = if matches!(shape, Shape::F16x2 | Shape::F32) { models(mma.shape()[2]) } else { Vec::new() };
    let check = move |output: &[u8]| {
        compare(&Words::of_bytes(output), in_c, shape, &tried, |warp, model| {
            let mma = model.map_or(mma, |model| mma.with_model(model));
            let a = words.registers(0, in_a, warp);
            let b = words.registers(in_a, in_b, warp);
            let c = words.registers(in_a + in_b, in_c, warp);
            let mut d = vec![[0; LANES]; in_c];
            mma.multiply(&a, &b, &c, &mut d);
            d
        })
    };
    all.push(Program {
        name: name.into(),
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

/// Whether the ISA leaves the last places of sums open.
fn tried_is_open(shape: Shape) -> bool {
    matches!(shape, Shape::F16x2 | Shape::F32)
}

fn products(all: &mut Vec<Program>) {
    for special in [false, true] {
        let suffix = if special { "-special" } else { "" };
        let mut float = |shape: [usize; 3], names: [&str; 2], factors: [Factor; 2], sums: SumType| {
            let [m, n, k] = shape;
            let (sum, class, fill) = match sums {
                SumType::F16 => ("f16", "b32", Fill::Floats(5, 10, special)),
                SumType::F32 => ("f32", "f32", Fill::Floats(8, 23, special)),
            };
            let [a, b] = names;
            let name = format!("mma.sync.aligned.m{m}n{n}k{k}.row.col.{sum}.{a}.{b}.{sum}{suffix}");
            let Some(mma) = Mma::new(shape, Operands::Floats(factors[0], factors[1]), sums, false) else { return };
            product(all, &name, mma, [fill_of(factors[0], special), fill_of(factors[1], special), fill], [class, sum]);
        };
        for k in [8, 16] {
            float([16, 8, k], ["f16"; 2], [Factor::F16; 2], SumType::F32);
            float([16, 8, k], ["f16"; 2], [Factor::F16; 2], SumType::F16);
            float([16, 8, k], ["bf16"; 2], [Factor::Bf16; 2], SumType::F32);
        }
        for k in [4, 8] {
            float([16, 8, k], ["tf32"; 2], [Factor::Tf32; 2], SumType::F32);
        }
        let bytes = [("e4m3", Factor::E4m3), ("e5m2", Factor::E5m2)];
        for (a, first) in bytes {
            for (b, second) in bytes {
                float([16, 8, 32], [a, b], [first, second], SumType::F32);
            }
        }
    }
    for (a_across, a) in [(false, "row"), (true, "col")] {
        for (b_across, b) in [(false, "col"), (true, "row")] {
            for (sums, sum, class, fill) in [
                (SumType::F16, "f16", "b32", Fill::Floats(5, 10, false)),
                (SumType::F32, "f32", "f32", Fill::Floats(8, 23, false)),
            ] {
                let name = format!("mma.sync.aligned.m8n8k4.{a}.{b}.{sum}.f16.f16.{sum}");
                let f16 = fill_of(Factor::F16, false);
                product(all, &name, Mma::quad_pairs(a_across, b_across, sums), [f16, f16, fill], [class, sum]);
            }
        }
    }
    for shape in [[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]] {
        let [m, n, k] = shape;
        let name = format!("mma.sync.aligned.m{m}n{n}k{k}.row.col.f64.f64.f64.f64");
        if let Some(mma) = Mma::new(shape, Operands::F64, SumType::F32, false) {
            product(all, &name, mma, [Fill::F64; 3], ["f64", "f64"]);
        }
    }
    let shapes =
        [(8, [8, 8, 16]), (8, [16, 8, 16]), (8, [16, 8, 32]), (4, [8, 8, 32]), (4, [16, 8, 32]), (4, [16, 8, 64])];
    for (bits, shape) in shapes {
        for (a_signed, b_signed) in [(true, true), (false, true), (true, false), (false, false)] {
            for saturate in [false, true] {
                let [m, n, k] = shape;
                let letter = |signed: bool| if signed { 's' } else { 'u' };
                let (a, b, dot) = (letter(a_signed), letter(b_signed), if saturate { ".satfinite" } else { "" });
                let name = format!("mma.sync.aligned.m{m}n{n}k{k}.row.col{dot}.s32.{a}{bits}.{b}{bits}.s32");
                let operands = Operands::Integers { bits, a_signed, b_signed };
                if let Some(mma) = Mma::new(shape, operands, SumType::F32, saturate) {
                    product(all, &name, mma, [Fill::Bits; 3], ["b32", "s32"]);
                }
            }
        }
    }
    for shape in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
        for (operands, of) in [(Operands::XorPopc, "xor"), (Operands::AndPopc, "and")] {
            let [m, n, k] = shape;
            let name = format!("mma.sync.aligned.m{m}n{n}k{k}.row.col.s32.b1.b1.s32.{of}.popc");
            if let Some(mma) = Mma::new(shape, operands, SumType::F32, false) {
                product(all, &name, mma, [Fill::Bits; 3], ["b32", "s32"]);
            }
        }
    }
}
