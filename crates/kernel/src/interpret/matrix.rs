//! Matrix instructions of one warp.
//!
//! Law: `D = A B + C`, where lane `4g + t` holds the rows `g` and `g + 8` of A, the column `g` of
//! B, and the columns `2t` and `2t + 1` of C and D (PTX ISA, "Matrix fragments for mma.m16n8k8,
//! .m16n8k16, .m16n8k32, .m8n8k4"). Accumulation begins with C and goes through K in order; in f32,
//! each product is exact except for overflow. TF32 ignores the last 13 bits of f32.
//!
//! With block scales, lane `4g` holds those of the row `g` of A and of the column `g` of B, and
//! lane `4g + 1` those of the row `g + 8` (PTX ISA, "Block Scaling for mma.sync", thread 0 of both
//! selectors). The four factors of a term are multiplied in f64, which is exact, and added to the
//! accumulator there; then the sum is rounded to f32.

use super::convert::{from_e4m3, from_e5m2};
use super::lanes::Lanes;
use super::rounding::{from_bf16, from_f16, to_f16};
use crate::program::WARP_LANES;
use crate::program::operation::{BlockScaled, Matrix};

const ROWS: usize = 16;
const COLUMNS: usize = 8;
const DEPTH: usize = 64;

/// D, with a value for each of its registers.
///
/// Operands are A, B and the scales of both, if the instruction has any.
pub(super) fn multiply(
    matrix: Matrix,
    (a, b, scales): (&[&Lanes], &[&Lanes], &[&Lanes]),
    c: &[&Lanes],
    d: &mut [Lanes],
) {
    match matrix {
        Matrix::Scaled(format, byte) => scaled(format, (a, b), (scales, byte), c, d),
        Matrix::F16F32 | Matrix::Bf16F32 | Matrix::Tf32F32 | Matrix::E4M3F32 | Matrix::E5M2F32 => {
            let mut sums = [[0.0; COLUMNS]; ROWS];
            each_sum(4, |register, lane, row, column| {
                sums[row][column] = f32::from_bits(c[register][lane] as u32);
            });
            accumulate(matrix, a, b, &mut sums);
            each_sum(4, |register, lane, row, column| {
                d[register][lane] = u64::from(sums[row][column].to_bits());
            });
        }
        Matrix::F16F16 => {
            let mut sums = [[0.0; COLUMNS]; ROWS];
            each_sum(4, |index, lane, row, column| {
                sums[row][column] = from_f16(c[index / 2][lane] >> (16 * (index % 2)));
            });
            accumulate(matrix, a, b, &mut sums);
            d.fill([0; WARP_LANES]);
            each_sum(4, |index, lane, row, column| {
                d[index / 2][lane] |= u64::from(to_f16(sums[row][column])) << (16 * (index % 2));
            });
        }
        Matrix::I8I32 | Matrix::U8I32 => integers(8, matrix == Matrix::I8I32, a, b, c, d),
        Matrix::S4I32 | Matrix::U4I32 => integers(4, matrix == Matrix::S4I32, a, b, c, d),
        Matrix::F64 | Matrix::F64K4 | Matrix::F64K8 | Matrix::F64K16 => doubles(matrix, a, b, c, d),
    }
}

/// Calls a function for each element of C and D: with its index among the values of a lane, the
/// lane, the row and the column.
fn each_sum(values: usize, mut each: impl FnMut(usize, usize, usize, usize)) {
    for value in 0..values {
        for lane in 0..WARP_LANES {
            each(value, lane, lane / 4 + 8 * (value / 2), 2 * (lane % 4) + value % 2);
        }
    }
}

/// Calls a function for each element of A or B in 32-bit registers of `packed` elements: with its
/// register, lane, index within the register, index along the rows of A or the columns of B, and
/// index along K.
fn each_operand(registers: usize, packed: usize, mut each: impl FnMut(usize, usize, usize, usize, usize)) {
    for register in 0..registers {
        // The four registers of A: two halves of the rows, then the second half of K. The two
        // registers of B: the halves of K.
        let (side, deep) = if registers == 4 { (8 * (register % 2), register / 2) } else { (0, register) };
        for lane in 0..WARP_LANES {
            for part in 0..packed {
                let k = packed * (lane % 4) + part + 4 * packed * deep;
                each(register, lane, part, lane / 4 + side, k);
            }
        }
    }
}

fn accumulate(matrix: Matrix, a: &[&Lanes], b: &[&Lanes], sums: &mut [[f32; COLUMNS]; ROWS]) {
    let (packed, depth) = match matrix {
        Matrix::Tf32F32 => (1, 8),
        Matrix::E4M3F32 | Matrix::E5M2F32 => (4, 32),
        _ => (2, 16),
    };
    let value = |bits: u64, part: usize| match matrix {
        Matrix::Tf32F32 => f32::from_bits(bits as u32 & 0xffff_e000),
        Matrix::E4M3F32 => from_e4m3((bits >> (8 * part)) as u8),
        Matrix::E5M2F32 => from_e5m2((bits >> (8 * part)) as u8),
        Matrix::Bf16F32 => from_bf16(bits >> (16 * part) & 0xffff),
        _ => from_f16(bits >> (16 * part) & 0xffff),
    };
    let mut rows = [[0.0; DEPTH]; ROWS];
    each_operand(4, packed, |register, lane, part, row, k| rows[row][k] = value(a[register][lane], part));
    let mut columns = [[0.0; COLUMNS]; DEPTH];
    each_operand(2, packed, |register, lane, part, column, k| columns[k][column] = value(b[register][lane], part));
    for (sums, row) in sums.iter_mut().zip(&rows) {
        for (operand, column) in row.iter().zip(&columns).take(depth) {
            for (sum, other) in sums.iter_mut().zip(column) {
                *sum += operand * other;
            }
        }
    }
}

fn scaled(
    format: BlockScaled,
    (a, b): (&[&Lanes], &[&Lanes]),
    (scales, byte): (&[&Lanes], u8),
    c: &[&Lanes],
    d: &mut [Lanes],
) {
    // The number of elements in a byte, the bits of an element, and the bytes along K that share
    // one scale.
    let (packed, bits) = (format.packed() as usize, 8 / format.packed());
    let wide = format.block() as usize / packed;
    let of = |scales: &Lanes, lane: usize, k: usize| {
        format.scale((scales[lane] >> (8 * (usize::from(byte) + k / wide))) as u8)
    };
    let values = |bytes: u64, part: usize, scale: f64| -> [f64; 2] {
        let byte = bytes >> (8 * part) & 0xff;
        [0, 1].map(|at| if at < packed { format.element(byte >> (bits as usize * at)) * scale } else { 0.0 })
    };
    let mut rows = [[[0.0; 2]; DEPTH]; ROWS];
    each_operand(4, 4, |register, lane, part, row, k| {
        rows[row][k] = values(a[register][lane], part, of(scales[0], 4 * (row % 8) + row / 8, k));
    });
    let mut columns = [[[0.0; 2]; DEPTH]; COLUMNS];
    each_operand(2, 4, |register, lane, part, column, k| {
        columns[column][k] = values(b[register][lane], part, of(scales[1], 4 * column, k));
    });
    each_sum(4, |register, lane, row, column| {
        let terms = rows[row].iter().zip(&columns[column]).flat_map(|(a, b)| a.iter().zip(b).take(packed));
        let sum = f32::from_bits(c[register][lane] as u32);
        let sum = terms.fold(sum, |sum, (a, b)| (f64::from(sum) + a * b) as f32);
        d[register][lane] = u64::from(sum.to_bits());
    });
}

/// Integers of `width` bits, packed in registers.
fn integers(width: usize, sign: bool, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
    let value = |bits: u64, part: usize| {
        let highest = (bits >> (width * part)) as u32 as i32;
        let highest = highest << (32 - width);
        if sign { highest >> (32 - width) } else { (highest as u32 >> (32 - width)) as i32 }
    };
    let packed = 32 / width;
    let mut rows = [[0; DEPTH]; ROWS];
    each_operand(4, packed, |register, lane, part, row, k| rows[row][k] = value(a[register][lane], part));
    let mut columns = [[0; DEPTH]; COLUMNS];
    each_operand(2, packed, |register, lane, part, column, k| columns[column][k] = value(b[register][lane], part));
    each_sum(4, |register, lane, row, column| {
        let products = rows[row].iter().zip(&columns[column]).take(8 * packed).map(|(a, b)| a * b);
        let sum = products.fold(c[register][lane] as i32, i32::wrapping_add);
        d[register][lane] = u64::from(sum as u32);
    });
}

/// The registers of A: the halves of the rows, then further groups of four along K. The registers
/// of B: groups of four along K.
fn doubles(matrix: Matrix, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
    let ([rows, _, depth], [.., sums]) = (matrix.shape().map(|extent| extent as usize), matrix.registers());
    let halves = rows / 8;
    each_sum(sums, |register, lane, row, column| {
        let mut sum = f64::from_bits(c[register][lane]);
        for k in 0..depth {
            let (four, place) = (k / 4, k % 4);
            let (left, right) = (a[halves * four + row / 8][4 * (row % 8) + place], b[four][4 * column + place]);
            sum = f64::from_bits(left).mul_add(f64::from_bits(right), sum);
        }
        d[register][lane] = sum.to_bits();
    });
}
