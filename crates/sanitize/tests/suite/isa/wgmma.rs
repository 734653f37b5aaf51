//! `wgmma` against products of integers, with operands laid out by `tilewright_layout`.

use tilewright_layout::Layout;
use tilewright_layout::atoms::{Major, MatrixDescriptor, MmaAtom, SwizzleMode};
use tilewright_sanitize::isa::mma::sparse::Sparsity;
use tilewright_sanitize::isa::mma::{LANES, LaneWords};
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};
use tilewright_sanitize::isa::wgmma::{Described, GroupOperands, GroupProduct};

use super::matrix::fill;
use super::random::Random;
use super::sparse::{Chosen, metadata_layout};

/// Where operands begin: a multiple of every period.
const A_AT: i64 = 0x4000;
const B_AT: i64 = 0xc000;

/// Writes a matrix `(mn, k)` into memory as a tile with a swizzle, and gives its descriptor.
fn write(
    memory: &mut [u8],
    base: i64,
    [mn, k]: [i64; 2],
    (major, mode): (Major, SwizzleMode),
    bytes: i64,
    element: impl Fn(i64, i64) -> u64,
) -> Described {
    // A line of the swizzle has more along K than one instruction reads.
    let whole = if major == Major::K { k.max(16 * mode.units() / bytes) } else { k };
    let tile = mode.tile(major, 8 * bytes, &format!("({mn},{whole})").parse().unwrap()).unwrap();
    for row in 0..mn {
        for column in 0..k {
            let at = tile.eval(&(row + mn * column)).unwrap();
            let value = element(row, column).to_le_bytes();
            memory[(base + at * bytes) as usize..][..bytes as usize].copy_from_slice(&value[..bytes as usize]);
        }
    }
    let at = |row: i64, column: i64| match row < mn && column < whole {
        true => (tile.eval(&(row + mn * column)).unwrap() * bytes) as u32,
        false => 0,
    };
    if k * bytes > 32 {
        // B of a sparse product: the distances of the canonical layouts, read off the tile.
        let (unit, units) = (16 / bytes, mode.units() as u32);
        let [leading, stride] = match (major, units) {
            (Major::K, 1) => [at(0, unit), at(8, 0)],
            (Major::K, _) => [0, at(8, 0)],
            (Major::MN, 1) => [at(0, 8), at(unit, 0)],
            (Major::MN, _) => [at(unit * i64::from(units), 0), at(0, 8)],
        };
        return Described { start: base as u32, leading, stride, base_offset: 0, units };
    }
    if whole == k {
        let descriptor = MatrixDescriptor::of_layout(&tile, major, 8 * bytes, base).unwrap();
        return Described::of_bits(descriptor.bits());
    }
    let stride = if mn > 8 { tile.eval(&8).unwrap() * bytes } else { 0 } as u64;
    Described::of_bits(base as u64 >> 4 | stride >> 4 << 32 | mode.code() << 62)
}

fn encode(value: i64, operands: GroupOperands) -> u64 {
    match operands {
        GroupOperands::Floats(Factor::F16, _) => half::f16::from_f64(value as f64).to_bits().into(),
        GroupOperands::Floats(Factor::Bf16, _) => half::bf16::from_f64(value as f64).to_bits().into(),
        GroupOperands::Floats(Factor::Tf32, _) => (value as f32).to_bits().into(),
        GroupOperands::Floats(Factor::E5m2, _) => u64::from(half::f16::from_f64(value as f64).to_bits() >> 8),
        GroupOperands::Floats(Factor::E4m3, _) => {
            let bits = half::f16::from_f64(value as f64 / 256.0).to_bits();
            u64::from(bits >> 8 & 0x80 | bits >> 7 & 0x7f)
        }
        _ => value as u64,
    }
}

/// One instruction, for both ways of A.
fn check(name: &str, n: i64, operands: GroupOperands, sums: SumType, ways: [(Major, SwizzleMode); 2]) {
    let mut random = Random::new(n as u64);
    let wgmma = GroupProduct::new(n as usize, operands, sums, false).unwrap();
    let wgmma = wgmma.across(ways.map(|(major, _)| major == Major::MN)).negated([false, true]);
    let integers = !matches!(operands, GroupOperands::Floats(..));
    let wgmma = if integers { wgmma.negated([false; 2]) } else { wgmma };
    let k = wgmma.k() as i64;
    let bytes = 32 / k;
    let mut draw = |count: i64| -> Vec<i64> { (0..count).map(|_| random.below(9) as i64 - 4).collect() };
    let (a, b, c) = (draw(64 * k), draw(n * k), draw(64 * n));
    let mut memory = vec![0; 0x18000];
    let a_at =
        write(&mut memory, A_AT, [64, k], ways[0], bytes, |row, at| encode(a[(row + 64 * at) as usize], operands));
    let b_at =
        write(&mut memory, B_AT, [n, k], ways[1], bytes, |column, at| encode(b[(column + n * at) as usize], operands));
    let shared = MmaAtom::named(&name.replace("{}", "SS")).unwrap();
    let held = MmaAtom::named(&name.replace("{}", "RS")).unwrap();
    assert_eq!(shared.shape(), [64, n, k]);
    let read = |at: u32| -> [u8; 16] { memory[at as usize..][..16].try_into().unwrap() };
    let matrix_b = wgmma.b_of_shared(&b_at, read);
    for adds in [false, true] {
        let wanted: Vec<i64> = (0..64 * n)
            .map(|at| {
                let (row, column) = (at % 64, at / 64);
                let product: i64 = (0..k).map(|k| a[(row + 64 * k) as usize] * b[(column + n * k) as usize]).sum();
                i64::from(adds) * c[at as usize] + if integers { product } else { -product }
            })
            .collect();
        for warp in 0..4 {
            let registers = |layout: &Layout, bits: u32, element: &dyn Fn(i64) -> u64| {
                // Of 128 threads those of this warp.
                let mut all = vec![];
                for lane in 0..LANES {
                    let thread = (32 * warp + lane) as i64;
                    let values = layout.size() / 128;
                    let own: Vec<i64> =
                        (0..values).map(|value| layout.eval(&(thread + 128 * value)).unwrap()).collect();
                    let text = format!("(1,{values}):(0,1)").parse::<Layout>().unwrap();
                    fill(&text, &[lane], bits, |at| element(own[at as usize]), &mut all);
                }
                all
            };
            let sum = |value: i64| match (integers, sums) {
                (true, _) => value as u32 as u64,
                (false, SumType::F16) => half::f16::from_f64(value as f64).to_bits().into(),
                (false, SumType::F32) => (value as f32).to_bits().into(),
            };
            let bits = if !integers && sums == SumType::F16 { 16 } else { 32 };
            let layout = shared.c().layout();
            let before = registers(layout, bits, &|at| sum(c[at as usize]));
            let after = registers(layout, bits, &|at| sum(wanted[at as usize]));
            assert_eq!(before.len(), wgmma.registers());
            let in_registers = registers(held.a().layout(), 8 * bytes as u32, &|at| encode(a[at as usize], operands));
            let matrices = [wgmma.a_of_shared(warp, &a_at, read), wgmma.a_of_registers(&in_registers)];
            assert_eq!(matrices[0], matrices[1], "{name}, warp {warp}");
            let mut d: Vec<LaneWords> = before.clone();
            wgmma.multiply(&matrices[0], &matrix_b, &mut d, adds);
            assert_eq!(d, after, "{name}, warp {warp}, {ways:?}");
        }
        let mut units = wgmma.units(&b_at, true, 0, n as usize);
        units.sort_unstable();
        units.dedup();
        let mut touched = vec![];
        wgmma.b_of_shared(&b_at, |at| {
            touched.push(at);
            [0; 16]
        });
        touched.sort_unstable();
        touched.dedup();
        assert_eq!(units, touched, "{name} {ways:?}");
    }
}

#[test]
fn products_of_a_warpgroup_are_those_of_integers() {
    use SwizzleMode::{Bytes32, Bytes64, Bytes128, None};
    let k = |mode| (Major::K, mode);
    let mn = |mode| (Major::MN, mode);
    let f16 = GroupOperands::Floats(Factor::F16, Factor::F16);
    for n in [64, 128, 256] {
        for (a, b) in [(Bytes128, Bytes128), (Bytes64, None), (None, Bytes32), (Bytes32, Bytes64)] {
            check(&format!("SM90_64x{n}x16_F32F16F16_{{}}"), n, f16, SumType::F32, [k(a), k(b)]);
            check(&format!("SM90_64x{n}x16_F16F16F16_{{}}"), n, f16, SumType::F16, [mn(a), mn(b)]);
            check(&format!("SM90_64x{n}x16_F32F16F16_{{}}"), n, f16, SumType::F32, [k(b), mn(a)]);
        }
    }
    let bf16 = GroupOperands::Floats(Factor::Bf16, Factor::Bf16);
    check("SM90_64x8x16_F32BF16BF16_{}", 8, bf16, SumType::F32, [mn(Bytes128), k(Bytes128)]);
    let tf32 = GroupOperands::Floats(Factor::Tf32, Factor::Tf32);
    check("SM90_64x24x8_F32TF32TF32_{}_TN", 24, tf32, SumType::F32, [k(Bytes128), k(Bytes64)]);
    for (name, factor) in [("E4M3", Factor::E4m3), ("E5M2", Factor::E5m2)] {
        let operands = GroupOperands::Floats(factor, factor);
        let ways = [k(Bytes128), k(Bytes32)];
        check(&format!("SM90_64x40x32_F32{name}{name}_{{}}_TN"), 40, operands, SumType::F32, ways);
    }
    let bytes = GroupOperands::Integers { a_signed: true, b_signed: true };
    check("SM90_64x48x32_S32S8S8_{}_TN", 48, bytes, SumType::F32, [k(Bytes128), k(None)]);
}

#[test]
fn bits_of_a_warpgroup_are_counted() {
    let wgmma = GroupProduct::new(8, GroupOperands::AndPopc, SumType::F32, false).unwrap();
    let mut random = Random::new(50);
    let a: Vec<[u8; 32]> = (0..64).map(|_| [0; 32].map(|_| random.bits() as u8)).collect();
    let b: Vec<[u8; 32]> = (0..8).map(|_| [0; 32].map(|_| random.bits() as u8)).collect();
    // Rows of 32 bytes: two units, 128 bytes and 8 rows apart, without a swizzle.
    let layout = |rows: &[[u8; 32]]| -> Vec<u8> {
        let mut memory = vec![0; 32 * rows.len()];
        for (at, row) in rows.iter().enumerate() {
            for (byte, value) in row.iter().enumerate() {
                memory[at / 8 * 256 + byte / 16 * 128 + at % 8 * 16 + byte % 16] = *value;
            }
        }
        memory
    };
    let described = Described { start: 0, leading: 128, stride: 256, base_offset: 0, units: 1 };
    let [memory_a, memory_b] = [layout(&a), layout(&b)];
    let read = |memory: &[u8], at: u32| -> [u8; 16] { memory[at as usize..][..16].try_into().unwrap() };
    let matrix_b = wgmma.b_of_shared(&described, |at| read(&memory_b, at));
    for warp in 0..4 {
        let matrix_a = wgmma.a_of_shared(warp, &described, |at| read(&memory_a, at));
        let mut d = [[3; LANES]; 4];
        wgmma.multiply(&matrix_a, &matrix_b, &mut d, true);
        for (register, lanes) in d.iter().enumerate() {
            for (lane, count) in lanes.iter().enumerate() {
                let (row, column) = (16 * warp + lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2);
                let both = a[row].iter().zip(&b[column]).map(|(a, b)| (a & b).count_ones());
                assert_eq!(*count, 3 + both.sum::<u32>());
            }
        }
    }
}

#[test]
fn sparse_products_of_a_warpgroup_are_those_of_the_elements_that_are_held() {
    use SwizzleMode::{Bytes32, Bytes64, Bytes128, None};
    let (k_major, mn_major) = (|mode| (Major::K, mode), |mode| (Major::MN, mode));
    let f16 = GroupOperands::Floats(Factor::F16, Factor::F16);
    for n in [8, 64, 128] {
        for (a, b) in [(Bytes128, Bytes64), (Bytes64, Bytes128), (Bytes32, None)] {
            check_sparse(n, f16, [k_major(a), k_major(b)]);
        }
    }
    check_sparse(64, f16, [mn_major(Bytes128), mn_major(Bytes32)]);
    check_sparse(64, f16, [k_major(None), mn_major(Bytes128)]);
    check_sparse(24, GroupOperands::Floats(Factor::Tf32, Factor::Tf32), [k_major(Bytes128); 2]);
    check_sparse(40, GroupOperands::Floats(Factor::E5m2, Factor::E5m2), [k_major(Bytes64); 2]);
    check_sparse(48, GroupOperands::Integers { a_signed: true, b_signed: true }, [k_major(Bytes128); 2]);
}

/// One instruction, for both ways of A and both selectors.
fn check_sparse(n: i64, operands: GroupOperands, ways: [(Major, SwizzleMode); 2]) {
    let mut random = Random::new(n as u64 + 77);
    let wgmma = GroupProduct::new(n as usize, operands, SumType::F32, false).and_then(GroupProduct::sparse).unwrap();
    let wgmma = wgmma.across(ways.map(|(major, _)| major == Major::MN));
    let k = wgmma.k() as i64;
    let (held, bits) = (k / 2, operands.bits());
    let bytes = i64::from(bits / 8);
    let mut draw = |count: i64| -> Vec<i64> { (0..count).map(|_| random.below(9) as i64 - 4).collect() };
    let (a, b, c) = (draw(64 * held), draw(n * k), draw(64 * n));
    let mut memory = vec![0; 0x18000];
    let a_of = |row: i64, at: i64| encode(a[(row + 64 * at) as usize], operands);
    let a_at = write(&mut memory, A_AT, [64, held], ways[0], bytes, a_of);
    let b_of = |column: i64, at: i64| encode(b[(column + n * at) as usize], operands);
    let b_at = write(&mut memory, B_AT, [n, k], ways[1], bytes, b_of);
    let read = |at: u32| -> [u8; 16] { memory[at as usize..][..16].try_into().unwrap() };
    let matrix_b = wgmma.b_of_shared(&b_at, read);
    let units = wgmma.units(&b_at, true, 0, n as usize);
    assert_eq!(units.len() as i64, n * k * bytes / 16);
    let integers = !matches!(operands, GroupOperands::Floats(..));
    let sum = |value: i64| if integers { value as u32 } else { (value as f32).to_bits() };
    for warp in 0..4 {
        let chosen = Chosen::random(&mut random, bits, k as usize);
        let (layout, contributors) = metadata_layout(bits, k as usize);
        // The document of D: two columns in a lane, rows eight apart, eight columns in a block.
        let place = |register: usize, lane: usize| {
            let row = 16 * warp + lane / 4 + register / 2 % 2 * 8;
            (row as i64, (register / 4 * 8 + lane % 4 * 2 + register % 2) as i64)
        };
        let registers = wgmma.registers();
        let from = |of: &dyn Fn(i64, i64) -> u32| -> Vec<LaneWords> {
            (0..registers)
                .map(|register| {
                    std::array::from_fn(|lane| {
                        let (row, column) = place(register, lane);
                        of(row, column)
                    })
                })
                .collect()
        };
        let before = from(&|row, column| sum(c[(row + 64 * column) as usize]));
        for adds in [false, true] {
            let after = from(&|row, column| {
                let columns = chosen.columns(row as usize % 16);
                let terms = columns.iter().enumerate();
                let product = terms.map(|(at, k)| a[row as usize + 64 * at] * b[column as usize + n as usize * k]);
                sum(i64::from(adds) * c[(row + 64 * column) as usize] + product.sum::<i64>())
            });
            for selector in 0..4 / contributors {
                let words = chosen.words(layout, |lane| lane % 4 / contributors == selector);
                let places = Sparsity::new(bits, 4, selector as u64, false).unwrap().places(&words).unwrap();
                let matrix_a = wgmma.a_of_shared(warp, &a_at, read);
                let mut d = before.clone();
                wgmma.multiply_sparse(&matrix_a, &matrix_b, &places, &mut d, adds);
                assert_eq!(d, after, "{operands:?}, n {n}, warp {warp}, {ways:?}");
            }
        }
    }
}
