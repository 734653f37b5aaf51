//! Fragments of matrix instructions against the layouts of `tilewright_layout::atoms`, which are
//! another definition, and products against those of integers.

use tilewright_layout::Layout;
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand};
use tilewright_sanitize::isa::matrices;
use tilewright_sanitize::isa::mma::{LANES, LaneWords, Mma, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};

use super::random::Random;

/// The bits of a small integer.
pub(crate) fn encode(value: i64, operands: Operands) -> u64 {
    let f16 = |value: i64| u64::from(half::f16::from_f64(value as f64).to_bits());
    match operands {
        Operands::Floats(Factor::F16, _) => f16(value),
        Operands::Floats(Factor::Bf16, _) => u64::from(half::bf16::from_f64(value as f64).to_bits()),
        Operands::Floats(Factor::Tf32, _) => u64::from((value as f32).to_bits()),
        // The exponent and the highest bits of f16 are those of e5m2; e4m3 has another bias.
        Operands::Floats(Factor::E5m2, _) => f16(value) >> 8,
        Operands::Floats(Factor::E4m3, _) => {
            let bits = half::f16::from_f64(value as f64 / 256.0).to_bits();
            u64::from(bits >> 8 & 0x80 | bits >> 7 & 0x7f)
        }
        Operands::F64 => (value as f64).to_bits(),
        _ => value as u64,
    }
}

/// Registers of all lanes from a matrix `(mn, k)`, by the layout of an atom whose threads are at
/// these lanes.
pub(crate) fn fill(
    layout: &Layout,
    threads: &[usize],
    bits: u32,
    element: impl Fn(i64) -> u64,
    registers: &mut Vec<LaneWords>,
) {
    let values = layout.size() / threads.len() as i64;
    registers.resize((values as usize * bits as usize).div_ceil(32).max(registers.len()), [0; LANES]);
    for (thread, lane) in threads.iter().enumerate() {
        for value in 0..values {
            let index = layout.eval(&(thread as i64 + threads.len() as i64 * value)).unwrap();
            let (element, at) = (element(index), value as usize * bits as usize);
            let mask = u64::MAX >> (64 - bits);
            registers[at / 32][*lane] |= ((element & mask) << (at % 32)) as u32;
            if bits == 64 {
                registers[at / 32 + 1][*lane] = (element >> 32) as u32;
            }
        }
    }
}

/// Checks an instruction against the atom of a name: small integers, whose sums are exact.
fn check(name: &str, mma: Mma, operands: Operands, sums: Operands, range: [i64; 2]) {
    let atom = MmaAtom::named(name).unwrap();
    let [m, n, k] = atom.shape().map(|extent| extent as usize);
    assert_eq!(mma.shape(), [m, n, k]);
    let mut random = Random::new(m as u64 * 1000 + k as u64);
    let mut draw = |count: usize| -> Vec<i64> {
        (0..count).map(|_| range[0] + random.below((range[1] - range[0] + 1) as u64) as i64).collect()
    };
    // Quad pairs compute four products, with other lanes each.
    let (mut a, mut b, mut c, mut wanted) = (vec![], vec![], vec![], vec![]);
    let first: Vec<usize> = (0..atom.threads().size()).map(|at| atom.threads().eval(&at).unwrap() as usize).collect();
    let count = LANES / first.len();
    for part in 0..count {
        let threads: Vec<usize> = first.iter().map(|lane| lane + 4 * part).collect();
        let (left, right, old) = (draw(m * k), draw(n * k), draw(m * n));
        let width = |operands: Operands| operands.bits();
        let layout = |operand| atom.operand(operand).unwrap().layout();
        fill(layout(Operand::A), &threads, width(operands), |at| encode(left[at as usize], operands), &mut a);
        fill(layout(Operand::B), &threads, width(operands), |at| encode(right[at as usize], operands), &mut b);
        let sum_bits = if matches!(sums, Operands::Integers { .. }) { 32 } else { width(sums) };
        fill(layout(Operand::C), &threads, sum_bits, |at| encode(old[at as usize], sums), &mut c);
        let product = |at: usize| {
            let (row, column) = (at % m, at / m);
            let term = |k: usize| {
                let (x, y) = (left[row + m * k], right[column + n * k]);
                match operands {
                    Operands::XorPopc => (x ^ y) & 1,
                    Operands::AndPopc => x & y & 1,
                    _ => x * y,
                }
            };
            old[at] + (0..k).map(term).sum::<i64>()
        };
        let total: Vec<i64> = (0..m * n).map(product).collect();
        fill(layout(Operand::C), &threads, sum_bits, |at| encode(total[at as usize], sums), &mut wanted);
    }
    assert_eq!(mma.registers(), [a.len(), b.len(), c.len()], "{name}");
    let mut found = vec![[0; LANES]; c.len()];
    mma.multiply(&a, &b, &c, &mut found);
    assert_eq!(found, wanted, "{name}");
}

#[test]
fn fragments_of_floats_are_those_of_the_atoms() {
    let tf32 = Operands::Floats(Factor::Tf32, Factor::Tf32);
    let f16 = Operands::Floats(Factor::F16, Factor::F16);
    let bf16 = Operands::Floats(Factor::Bf16, Factor::Bf16);
    let small = [-4, 4];
    for k in [8, 16] {
        let shape = [16, 8, k];
        let mma = |operands, sums| Mma::new(shape, operands, sums, false).unwrap();
        check(&format!("SM80_16x8x{k}_F32F16F16F32_TN"), mma(f16, SumType::F32), f16, tf32, small);
        check(&format!("SM80_16x8x{k}_F16F16F16F16_TN"), mma(f16, SumType::F16), f16, f16, small);
        check(&format!("SM80_16x8x{k}_F32BF16BF16F32_TN"), mma(bf16, SumType::F32), bf16, tf32, small);
    }
    for k in [4, 8] {
        let mma = Mma::new([16, 8, k], tf32, SumType::F32, false).unwrap();
        check(&format!("SM80_16x8x{k}_F32TF32TF32F32_TN"), mma, tf32, tf32, small);
    }
    for k in [4, 8, 16] {
        let mma = Mma::new([16, 8, k], Operands::F64, SumType::F32, false).unwrap();
        check(&format!("SM90_16x8x{k}_F64F64F64F64_TN"), mma, Operands::F64, Operands::F64, [-999, 999]);
    }
    let mma = Mma::new([8, 8, 4], Operands::F64, SumType::F32, false).unwrap();
    check("SM80_8x8x4_F64F64F64F64_TN", mma, Operands::F64, Operands::F64, [-999, 999]);
    for (name, factor) in [("E4M3", Factor::E4m3), ("E5M2", Factor::E5m2)] {
        let operands = Operands::Floats(factor, factor);
        let mma = Mma::new([16, 8, 32], operands, SumType::F32, false).unwrap();
        check(&format!("SM89_16x8x32_F32{name}{name}F32_TN"), mma, operands, tf32, small);
    }
    for (a, b) in [(false, false), (true, true), (true, false), (false, true)] {
        let letters = [if a { "N" } else { "T" }, if b { "T" } else { "N" }].concat();
        for (name, sums, of) in [("F16F16F16F16", SumType::F16, f16), ("F32F16F16F32", SumType::F32, tf32)] {
            check(&format!("SM70_8x8x4_{name}_{letters}"), Mma::quad_pairs(a, b, sums), f16, of, small);
        }
    }
}

#[test]
fn fragments_of_integers_are_those_of_the_atoms() {
    let sums = Operands::Integers { bits: 32, a_signed: true, b_signed: true };
    for (bits, shapes) in [(8, [[8, 8, 16], [16, 8, 16], [16, 8, 32]]), (4, [[8, 8, 32], [16, 8, 32], [16, 8, 64]])] {
        for [m, n, k] in shapes {
            for (signed, letter, range) in
                [(true, 'S', [-(1 << (bits - 1)), (1 << (bits - 1)) - 1]), (false, 'U', [0, (1 << bits) - 1])]
            {
                let operands = Operands::Integers { bits, a_signed: signed, b_signed: signed };
                let mma = Mma::new([m, n, k], operands, SumType::F32, false).unwrap();
                check(&format!("SM80_{m}x{n}x{k}_S32{letter}{bits}{letter}{bits}S32_TN"), mma, operands, sums, range);
            }
        }
    }
    for [m, n, k] in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
        for (name, operands) in [("XORPOPC", Operands::XorPopc), ("ANDPOPC", Operands::AndPopc)] {
            let mma = Mma::new([m, n, k], operands, SumType::F32, false).unwrap();
            check(&format!("SM80_{m}x{n}x{k}_S32U1U1S32_TN_{name}"), mma, operands, sums, [0, 1]);
        }
    }
    // What is too large wraps, or is clamped.
    let bytes = Operands::Integers { bits: 8, a_signed: true, b_signed: true };
    for (saturate, wanted) in [(false, 0x8000_000f_u32), (true, 0x7fff_ffff)] {
        let mma = Mma::new([8, 8, 16], bytes, SumType::F32, saturate).unwrap();
        let mut d = [[0; LANES]; 2];
        mma.multiply(&[[0x0101_0101; LANES]], &[[0x0101_0101; LANES]], &[[0x7fff_ffff; LANES]; 2], &mut d);
        assert_eq!(d, [[wanted; LANES]; 2]);
    }
}

/// The bits of 8 x 8 matrices in registers, by the layouts of a copy of the atoms.
fn moved(name: &str, count: usize, transposed: bool) {
    let atom = CopyAtom::named(name).unwrap();
    let registers = atom.end(CopyEnd::Destination).layout();
    let mut random = Random::new(count as u64);
    let rows: Vec<matrices::Rows> =
        (0..count).map(|_| [[0; 8]; 8].map(|row: [u8; 8]| [row, row].concat().try_into().unwrap())).collect();
    let rows: Vec<matrices::Rows> = rows.iter().map(|rows| rows.map(|row| row.map(|_| random.bits() as u8))).collect();
    let bit = |at: i64| {
        let (matrix, byte, bit) = (at / 1024, at / 8 % 128, at % 8);
        rows[matrix as usize][byte as usize / 16][byte as usize % 16] >> bit & 1
    };
    for (matrix, rows) in rows.iter().enumerate() {
        let found = matrices::load(rows, transposed);
        for (lane, word) in found.iter().enumerate() {
            for part in 0..32 {
                let value = matrix as i64 * 32 + part;
                let source = registers.eval(&(lane as i64 + 32 * value)).unwrap();
                assert_eq!((word >> part & 1) as u8, bit(source), "{name}: lane {lane}, bit {part}");
            }
        }
        assert_eq!(matrices::store(&found, transposed), *rows);
        assert_eq!(matrices::transpose(&matrices::load(rows, false)), matrices::load(rows, true));
    }
    // The rows that lanes name are those of `address_lane`.
    let named = atom.end(CopyEnd::Source).layout();
    for matrix in 0..count {
        for row in 0..8 {
            let lane = matrices::address_lane(matrix, row) as i64;
            assert_eq!(named.eval(&lane).unwrap(), (matrix * 1024 + row * 128) as i64, "{name}");
        }
    }
}

#[test]
fn matrices_of_16_bits_are_those_of_the_copies() {
    moved("SM75_U32x1_LDSM_N", 1, false);
    moved("SM75_U32x2_LDSM_N", 2, false);
    moved("SM75_U32x4_LDSM_N", 4, false);
    moved("SM75_U16x2_LDSM_T", 1, true);
    moved("SM75_U16x4_LDSM_T", 2, true);
    moved("SM75_U16x8_LDSM_T", 4, true);
}
