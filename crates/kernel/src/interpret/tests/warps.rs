//! Operations of whole warps, compared with plain loops: shuffles and votes, loads, stores and MMA
//! of matrices, and atomic operations.

use super::assembler::{Assembler, is_right};
use crate::element::Element;
use crate::interpret::lanes::Lanes;
use crate::interpret::schedule::Random;
use crate::interpret::{Interpreter, Run, Schedule};
use crate::program::Program;
use crate::program::memory::Role;
use crate::program::operation::{AtomicOperation, Comparison, Matrix, Number, Operation, Shuffle};
use crate::program::register::Width;

/// Runs a program whose threads load four words each, and store four.
fn words(
    inputs: &[u32; 128],
    write: impl FnOnce(&mut Assembler, &[crate::program::register::Register]) -> Vec<crate::program::register::Register>,
) -> Vec<u32> {
    let mut k = Assembler::new(1, 32);
    let source = k.global(Role::Input, Element::U32, 128);
    let target = k.global(Role::Output, Element::U32, 128);
    let thread = k.thread();
    let address = k.scaled(thread, 16, 0);
    let values = k.load_vector(source, address, 32, 4);
    let results = write(&mut k, &values);
    k.store_vector(target, address, 32, &results);
    let program: Program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    interpreter.tensor(0, inputs).unwrap();
    let run: Run = interpreter.run(Schedule::ALL[0]).unwrap_or_else(|findings| panic!("{}", findings[0]));
    run.tensor(1).unwrap()
}

#[test]
fn bits_are_moved_as_documented() {
    let mut random = Random::new(7);
    let inputs: [u32; 128] = std::array::from_fn(|_| random.bits() as u32);
    let word = |lane: usize, at: usize| inputs[4 * lane + at];
    let one = |operation: Operation, count: usize| {
        words(&inputs, |k, values| vec![k.one(operation, &values[..count], Width::Bits32); 4])
    };
    let up = one(Operation::Shuffle(Shuffle::Up(3)), 1);
    let down = one(Operation::Shuffle(Shuffle::Down(3)), 1);
    let flip = one(Operation::Shuffle(Shuffle::Butterfly(5)), 1);
    let index = one(Operation::Shuffle(Shuffle::Index), 2);
    let left = one(Operation::FunnelShiftLeft, 3);
    let right = one(Operation::FunnelShiftRight, 3);
    let permuted = one(Operation::Permute(0x6250), 2);
    // Truth tables, by the constants of their inputs: `a` is 0xf0, `b` 0xcc, `c` 0xaa.
    let both = one(Operation::Logic((0xf0 & 0xcc) ^ 0xaa), 3);
    let chosen = one(Operation::Logic(0xf0 & 0xcc | !0xf0 & 0xaa), 3);
    for lane in 0..32 {
        assert_eq!(up[4 * lane], word(if lane < 3 { lane } else { lane - 3 }, 0));
        assert_eq!(down[4 * lane], word(if lane > 28 { lane } else { lane + 3 }, 0));
        assert_eq!(flip[4 * lane], word(lane ^ 5, 0));
        assert_eq!(index[4 * lane], word(word(lane, 1) as usize % 32, 0));
        let (pair, by) = (u128::from(word(lane, 1)) << 32 | u128::from(word(lane, 0)), word(lane, 2) % 32);
        assert_eq!(left[4 * lane], (pair << by >> 32) as u32);
        assert_eq!(right[4 * lane], (pair >> by) as u32);
        let [a, b, c] = [0, 1, 2].map(|at| word(lane, at));
        assert_eq!((both[4 * lane], chosen[4 * lane]), (a & b ^ c, a & b | !a & c));
        let bytes = [word(lane, 0).to_le_bytes(), word(lane, 1).to_le_bytes()].concat();
        assert_eq!(permuted[4 * lane], u32::from_le_bytes([bytes[0], bytes[5], bytes[2], bytes[6]]));
    }
    let halves = words(&inputs, |k, values| {
        let parts = k.emit(Operation::Unpack, &values[..1], &[Width::Bits16; 2]);
        let turned = k.one(Operation::Pack, &[parts[1], parts[0]], Width::Bits32);
        let wide = k.one(Operation::Pack, &values[1..3], Width::Bits64);
        let parts = k.emit(Operation::Unpack, &[wide], &[Width::Bits32; 2]);
        vec![turned, parts[0], parts[1], turned]
    });
    let ballot = words(&inputs, |k, values| {
        let negative = k.compare(Comparison::Less, values[0], 0);
        let value = k.one(Operation::Ballot, &[negative], Width::Bits32);
        let chosen = k.one(Operation::Select, &[negative, values[1], values[2]], Width::Bits32);
        vec![value, chosen, value, value]
    });
    let mask: u32 = (0..32).map(|lane| (word(lane, 0) >> 31) << lane).sum();
    for lane in 0..32 {
        assert_eq!(halves[4 * lane..4 * lane + 3], [word(lane, 0).rotate_left(16), word(lane, 1), word(lane, 2)]);
        assert_eq!(ballot[4 * lane], mask);
        assert_eq!(ballot[4 * lane + 1], word(lane, if word(lane, 0) >> 31 == 1 { 1 } else { 2 }));
    }
}

#[test]
fn matrices_are_loaded_and_stored_by_rows() {
    // Element (r,c) of matrix q is 64 q + 8 r + c. Each lane has two elements of each matrix,
    // unchanged and transposed.
    for (transposed, store_transposed) in [(false, false), (true, true), (false, true), (true, false)] {
        let mut k = Assembler::new(1, 32);
        let source = k.global(Role::Input, Element::U16, 256);
        let held = k.global(Role::Output, Element::U32, 128);
        let target = k.global(Role::Output, Element::U16, 256);
        let (first, second) = (k.shared(Element::U16, 256), k.shared(Element::U16, 256));
        let thread = k.thread();
        let row = k.scaled(thread, 16, 0);
        let values = k.load_vector(source, row, 32, 4);
        k.store_vector(first, row, 32, &values);
        k.plain(Operation::WarpBarrier);
        let access = k.access(first, 32, 4);
        let parts = k.emit(Operation::LoadMatrix { access, transposed }, &[row], &[Width::Bits32; 4]);
        k.store_vector(held, row, 32, &parts);
        let access = k.access(second, 32, 4);
        let inputs = [&[row], &parts[..]].concat();
        k.emit(Operation::StoreMatrix { access, transposed: store_transposed }, &inputs, &[]);
        k.plain(Operation::WarpBarrier);
        let values = k.load_vector(second, row, 32, 4);
        k.store_vector(target, row, 32, &values);
        let program = k.program();
        is_right(&program);
        let mut interpreter = Interpreter::new(&program, &[]).unwrap();
        let elements: Vec<u16> = (0..256).collect();
        interpreter.tensor(0, &elements).unwrap();
        let run = interpreter.run(Schedule::ALL[0]).unwrap();
        let held = run.tensor::<u32>(1).unwrap();
        for lane in 0..32 {
            for matrix in 0..4 {
                for half in 0..2 {
                    let (row, column) = (lane / 4, 2 * (lane % 4) + half);
                    let (row, column) = if transposed { (column, row) } else { (row, column) };
                    let found = held[4 * lane + matrix] >> (16 * half) & 0xffff;
                    assert_eq!(found as usize, 64 * matrix + 8 * row + column);
                }
            }
        }
        for (at, value) in run.tensor::<u16>(2).unwrap().into_iter().enumerate() {
            let (matrix, row, column) = (at / 64, at / 8 % 8, at % 8);
            let (row, column) = if transposed == store_transposed { (row, column) } else { (column, row) };
            assert_eq!(value as usize, 64 * matrix + 8 * row + column);
        }
    }
}

/// The lanes of the elements of A, B and C in the published tables: `(row, column)` for each lane
/// and register.
type Fragment = fn(usize, usize) -> (usize, usize);

#[test]
fn products_are_those_of_whole_matrices() {
    // The tables of the PTX ISA, element by element.
    let bytes: [Fragment; 2] = [
        |lane, i| (lane / 4 + if i / 4 % 2 == 1 { 8 } else { 0 }, lane % 4 * 4 + i % 4 + if i >= 8 { 16 } else { 0 }),
        |lane, i| (lane % 4 * 4 + i % 4 + if i >= 4 { 16 } else { 0 }, lane / 4),
    ];
    let nibbles: [Fragment; 2] = [
        |lane, i| (lane / 4 + 8 * (i / 8 % 2), lane % 4 * 8 + i % 8 + 32 * (i / 16)),
        |lane, i| (lane % 4 * 8 + i % 8 + 32 * (i / 8), lane / 4),
    ];
    let halves: [Fragment; 2] = [
        |lane, i| (lane / 4 + if i / 2 % 2 == 1 { 8 } else { 0 }, lane % 4 * 2 + i % 2 + if i >= 4 { 8 } else { 0 }),
        |lane, i| (lane % 4 * 2 + i % 2 + if i >= 2 { 8 } else { 0 }, lane / 4),
    ];
    let words: [Fragment; 2] =
        [|lane, i| (lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2)), |lane, i| (lane % 4 + 4 * i, lane / 4)];
    let doubles: [Fragment; 2] = [|lane, _| (lane / 4, lane % 4), |lane, _| (lane % 4, lane / 4)];
    let sums: Fragment = |lane, i| (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
    let mut random = Random::new(8);
    for (matrix, bits, sum_bits, [of_a, of_b]) in [
        (Matrix::F16F32, 16, 32, halves),
        (Matrix::Bf16F32, 16, 32, halves),
        (Matrix::F16F16, 16, 16, halves),
        (Matrix::Tf32F32, 32, 32, words),
        (Matrix::F64, 64, 64, doubles),
        (Matrix::F64K4, 64, 64, words),
        (Matrix::F64K8, 64, 64, words),
        (Matrix::F64K16, 64, 64, words),
        (Matrix::I8I32, 8, 32, bytes),
        (Matrix::U8I32, 8, 32, bytes),
        (Matrix::S4I32, 4, 32, nibbles),
        (Matrix::U4I32, 4, 32, nibbles),
        (Matrix::E4M3F32, 8, 32, bytes),
        (Matrix::E5M2F32, 8, 32, bytes),
    ] {
        let [m, n, depth] = matrix.shape().map(|extent| extent as usize);
        // Small integers, whose sums are exact in every type.
        let mut any = |count: usize| -> Vec<i64> { (0..count).map(|_| random.below(4) as i64 - 1).collect() };
        let signed = !matches!(matrix, Matrix::U8I32 | Matrix::U4I32);
        let (mut a, mut b, c) = (any(m * depth), any(depth * n), any(m * n));
        if !signed {
            a.iter_mut().chain(&mut b).for_each(|value| *value += 1);
        }
        let encode = |value: i64, bits: u32, sum: bool| -> u64 {
            let real = value as f64;
            match (matrix, sum) {
                _ if matrix.is_double() => real.to_bits(),
                (Matrix::I8I32 | Matrix::U8I32 | Matrix::S4I32 | Matrix::U4I32, _) => {
                    value as u64 & (u64::MAX >> (64 - bits))
                }
                (Matrix::F16F16, _) | (Matrix::F16F32, false) => u64::from(half::f16::from_f64(real).to_bits()),
                (Matrix::Bf16F32, false) => u64::from(half::bf16::from_f64(real).to_bits()),
                // A sign, the magnitude 1 or 2, and 0.
                (Matrix::E4M3F32 | Matrix::E5M2F32, false) => {
                    let one = if matrix == Matrix::E4M3F32 { 0x38 } else { 0x3c };
                    [0x80 | one, 0, one, 0x40][(value + 1) as usize]
                }
                _ => u64::from((real as f32).to_bits()),
            }
        };
        let registers = matrix.registers();
        let width = if matrix.is_double() { 64 } else { 32 };
        let fill = |values: &[i64], columns: usize, of: Fragment, count: usize, bits: u32, sum: bool| -> Vec<Lanes> {
            let packed = (width / bits) as usize;
            let mut lanes = vec![[0; 32]; count];
            for (lane, i) in (0..32).flat_map(|lane| (0..count * packed).map(move |i| (lane, i))) {
                let (row, column) = of(lane, i);
                let bits_of = encode(values[row * columns + column], bits, sum);
                lanes[i / packed][lane] |= bits_of << (bits as usize * (i % packed));
            }
            lanes
        };
        let (fa, fb) = (fill(&a, depth, of_a, registers[0], bits, false), fill(&b, n, of_b, registers[1], bits, false));
        let fc = fill(&c, n, sums, registers[2], sum_bits, true);
        let mut d = vec![[0; 32]; registers[2]];
        let (ra, rb, rc): (Vec<_>, Vec<_>, Vec<_>) = (fa.iter().collect(), fb.iter().collect(), fc.iter().collect());
        crate::interpret::matrix::multiply(matrix, (&ra, &rb, &[]), &rc, &mut d);
        let product: Vec<i64> = (0..m * n)
            .map(|at| c[at] + (0..depth).map(|k| a[at / n * depth + k] * b[k * n + at % n]).sum::<i64>())
            .collect();
        assert_eq!(d, fill(&product, n, sums, registers[2], sum_bits, true), "{matrix:?}");
    }
}

#[test]
fn tf32_leaves_thirteen_bits_out() {
    let value = 1.0 + 2_f32.powi(-10) + 2_f32.powi(-11) + 2_f32.powi(-23);
    let a = [[u64::from(value.to_bits()); 32]; 4];
    let b = [[u64::from(1_f32.to_bits()); 32]; 2];
    let c = [[0; 32]; 4];
    let mut d = [[0; 32]; 4];
    let (ra, rb, rc): (Vec<_>, Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect(), c.iter().collect());
    crate::interpret::matrix::multiply(Matrix::Tf32F32, (&ra, &rb, &[]), &rc, &mut d);
    assert_eq!(f32::from_bits(d[0][0] as u32), 8.0 * (1.0 + 2_f32.powi(-10)));
}

#[test]
fn atomic_operations_do_what_they_say() {
    for (operation, number, expected) in [
        (AtomicOperation::Add, Number::U32, 5 + 496),
        (AtomicOperation::Minimum, Number::I32, 0),
        (AtomicOperation::Maximum, Number::U32, 31),
        (AtomicOperation::And, Number::U32, 0),
        (AtomicOperation::Or, Number::U32, 31),
        (AtomicOperation::Xor, Number::U32, 5),
    ] {
        let mut k = Assembler::new(1, 32);
        let memory = k.global(Role::Both, Element::U32, 1);
        let zero = k.wide_constant(0);
        let thread = k.thread();
        let access = k.access(memory, 32, 1);
        k.one(Operation::Atomic(operation, number, access), &[zero, thread], Width::Bits32);
        let program = k.program();
        let mut interpreter = Interpreter::new(&program, &[]).unwrap();
        interpreter.tensor(0, &[5_u32]).unwrap();
        assert_eq!(interpreter.check().unwrap().run.tensor::<u32>(0).unwrap(), [expected], "{operation:?}");
    }
    // One lane finds the expected value; each lane gets the old value.
    let mut k = Assembler::new(1, 32);
    let memory = k.global(Role::Both, Element::U32, 1);
    let told = k.global(Role::Output, Element::U32, 32);
    let zero = k.wide_constant(0);
    let thread = k.thread();
    let next = k.scaled(thread, 1, 1);
    let access = k.access(memory, 32, 1);
    let operation = Operation::Atomic(AtomicOperation::CompareExchange, Number::U32, access);
    let before = k.one(operation, &[zero, thread, next], Width::Bits32);
    let address = k.scaled(thread, 4, 0);
    k.store(told, address, before);
    let program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    interpreter.tensor(0, &[0_u32]).unwrap();
    let run = interpreter.run(Schedule::ALL[0]).unwrap();
    assert_eq!(run.tensor::<u32>(0).unwrap(), [32]);
    assert_eq!(run.tensor::<u32>(1).unwrap(), (0..32).collect::<Vec<u32>>());
}

#[test]
fn lanes_that_no_warp_has_are_malformed() {
    use crate::program::operation::Shuffle;
    let shuffled = |shuffle: Shuffle| {
        let mut k = Assembler::new(1, 32);
        let lane = k.thread();
        k.one(Operation::Shuffle(shuffle), &[lane], Width::Bits32);
        k.program().verify()
    };
    for (lanes, right) in [(0, true), (1, true), (31, true), (32, false), (33, false), (64, false), (u32::MAX, false)] {
        for shuffle in [Shuffle::Butterfly(lanes), Shuffle::Up(lanes), Shuffle::Down(lanes)] {
            assert_eq!(shuffled(shuffle).is_ok(), right, "{shuffle:?}");
        }
    }
    for (groups, right) in [(0, true), (7, true), (8, false), (u32::MAX, false)] {
        let mut k = Assembler::new(1, 128);
        k.plain(Operation::WaitMultiply(groups));
        assert_eq!(k.program().verify().is_ok(), right, "{groups}");
    }
}

/// All bytes of elements and of scales are compared with tables that are written out by hand: the
/// values of e2m1 and powers of two; e4m3 and e5m2 are decoded here.
#[test]
fn block_scaled_products_are_sums_of_scaled_elements() {
    use crate::program::operation::BlockScaled;

    fn parts(byte: u64, exponent: u32, mantissa: u32) -> f64 {
        let (field, rest) = (byte >> mantissa & ((1 << exponent) - 1), byte & ((1 << mantissa) - 1));
        let bias = (1 << (exponent - 1)) - 1;
        let unit = 2_f64.powi(-(mantissa as i32));
        let size = match field {
            0 => rest as f64 * unit * 2_f64.powi(1 - bias),
            _ => (1.0 + rest as f64 * unit) * 2_f64.powi(field as i32 - bias),
        };
        if byte >> (exponent + mantissa) & 1 == 1 { -size } else { size }
    }
    let mut random = Random::new(11);
    for format in BlockScaled::ALL {
        let (packed, count) = (format.packed() as usize, format.scales() as usize);
        let depth = 32 * packed;
        let element = |byte: u64, half: usize| match format {
            BlockScaled::Mxf8E4M3 => parts(byte, 4, 3),
            BlockScaled::Mxf8E5M2 => parts(byte, 5, 2),
            BlockScaled::Mxf4 | BlockScaled::Nvf4 => parts(byte >> (4 * half) & 15, 2, 1),
        };
        let scale = |byte: u64| match format {
            BlockScaled::Nvf4 => parts(byte & 0x7f, 4, 3),
            _ => 2_f64.powi(byte as i32 - 127),
        };
        for byte in (0..4).step_by(count) {
            // Elements without NaN and infinity; scales near 1.
            let mut bytes = |lines: usize, mask: u64| -> Vec<Vec<u64>> {
                (0..lines).map(|_| (0..32).map(|_| random.below(256) & mask).collect()).collect()
            };
            let mask = match format {
                BlockScaled::Mxf8E4M3 => 0xbf,
                BlockScaled::Mxf8E5M2 => 0xbb,
                _ => 0xff,
            };
            let (a, b) = (bytes(16, mask), bytes(8, mask));
            let mut scales = |lines: usize| -> Vec<Vec<u64>> {
                let base = if format == BlockScaled::Nvf4 { 0x20 } else { 124 };
                (0..lines).map(|_| (0..4).map(|_| base + random.below(7)).collect()).collect()
            };
            let (scales_a, scales_b) = (scales(16), scales(8));
            let word = |bytes: &[u64]| bytes.iter().rev().fold(0, |word, byte| word << 8 | byte);
            // The figures of the PTX ISA, lane by lane.
            let mut fragments = (vec![[0; 32]; 4], vec![[0; 32]; 2], [[0; 32]; 2]);
            for lane in 0..32 {
                let (group, quarter) = (lane / 4, lane % 4);
                for register in 0..4 {
                    let (row, first) = (group + 8 * (register % 2), 4 * quarter + 16 * (register / 2));
                    fragments.0[register][lane] = word(&a[row][first..first + 4]);
                }
                for register in 0..2 {
                    let first = 4 * quarter + 16 * register;
                    fragments.1[register][lane] = word(&b[group][first..first + 4]);
                }
                // Lanes that provide no scale hold other bits.
                fragments.2[0][lane] = if quarter < 2 { word(&scales_a[group + 8 * quarter]) } else { 0x5a5a_5a5a };
                fragments.2[1][lane] = if quarter == 0 { word(&scales_b[group]) } else { 0x5a5a_5a5a };
            }
            let c = vec![[u64::from(1.5_f32.to_bits()); 32]; 4];
            let mut d = vec![[0; 32]; 4];
            let (ra, rb, rs): (Vec<_>, Vec<_>, Vec<_>) =
                (fragments.0.iter().collect(), fragments.1.iter().collect(), fragments.2.iter().collect());
            let rc: Vec<_> = c.iter().collect();
            let matrix = Matrix::Scaled(format, byte as u8);
            crate::interpret::matrix::multiply(matrix, (&ra, &rb, &rs), &rc, &mut d);
            for (lane, register) in (0..32).flat_map(|lane| (0..4).map(move |register| (lane, register))) {
                let (row, column) = (lane / 4 + 8 * (register / 2), lane % 4 * 2 + register % 2);
                let (mut wanted, mut size) = (1.5, 1.5);
                for k in 0..depth {
                    let block = byte + k * count / depth;
                    let left = element(a[row][k / packed], k % packed) * scale(scales_a[row][block]);
                    let right = element(b[column][k / packed], k % packed) * scale(scales_b[column][block]);
                    wanted += left * right;
                    size += (left * right).abs();
                }
                let found = f64::from(f32::from_bits(d[register][lane] as u32));
                assert!((found - wanted).abs() <= size * depth as f64 * 2_f64.powi(-24), "{format}: {found}, {wanted}");
            }
        }
    }
}
