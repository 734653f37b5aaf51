//! Products with a sparse A against dense ones of integers, with metadata written by layouts.

use tilewright_layout::Layout;
use tilewright_layout::atoms::MmaAtom;
use tilewright_sanitize::isa::mma::sparse::{SparseMma, Sparsity};
use tilewright_sanitize::isa::mma::{LANES, LaneWords, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};

use super::matrix::{encode, fill};
use super::random::Random;

/// The elements of 16 rows of A that are held: for each row and chunk the places within the chunk.
pub(crate) struct Chosen {
    /// Elements of a chunk, and those that are held of it.
    width: usize,
    rows: Vec<Vec<Vec<usize>>>,
}

impl Chosen {
    /// A chunk has four elements, and two of them are held. A chunk of elements of 4 bits has
    /// eight, and two pairs are held. A chunk of elements of 32 bits has two, and one is held.
    pub(crate) fn random(random: &mut Random, bits: u32, k: usize) -> Self {
        let width = match bits {
            32 => 2,
            4 => 8,
            _ => 4,
        };
        let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        let mut chunk = || match width {
            2 => vec![random.below(2) as usize],
            4 => pairs[random.below(6) as usize].to_vec(),
            _ => pairs[random.below(6) as usize].iter().flat_map(|pair| [2 * pair, 2 * pair + 1]).collect(),
        };
        Self { width, rows: (0..16).map(|_| (0..k / width).map(|_| chunk()).collect()).collect() }
    }

    /// The column of each element that a row holds.
    pub(crate) fn columns(&self, row: usize) -> Vec<usize> {
        let chunks = self.rows[row].iter().enumerate();
        chunks.flat_map(|(chunk, places)| places.iter().map(move |place| chunk * self.width + place)).collect()
    }

    /// The four bits of a chunk.
    fn bits(&self, row: usize, chunk: usize) -> u32 {
        let places = &self.rows[row][chunk];
        match self.width {
            2 => [0b0100, 0b1110][places[0]],
            4 => (places[0] | places[1] << 2) as u32,
            _ => ((places[0] / 2) | ((places[2] / 2) << 2)) as u32,
        }
    }

    /// The metadata of a warp: a layout says for each lane and each element that its word speaks of
    /// the place `row + 16 column`. Lanes that do not contribute get what has no defined result.
    pub(crate) fn words(&self, layout: &str, contributes: impl Fn(usize) -> bool) -> LaneWords {
        let layout: Layout = layout.parse().unwrap();
        let elements = layout.size() / LANES as i64;
        let mut words = [0; LANES];
        for (lane, word) in words.iter_mut().enumerate().filter(|(lane, _)| contributes(*lane)) {
            for element in (0..elements).step_by(self.width) {
                let index = layout.eval(&(lane as i64 + LANES as i64 * element)).unwrap() as usize;
                let bits = self.bits(index % 16, index / 16 / self.width);
                *word |= bits << (element as usize / self.width * 4);
            }
        }
        words
    }
}

/// The layouts of metadata, those of `cute::MMA_Traits` and of the figures of the PTX ISA, and the
/// lanes of four that contribute with selector 0.
pub(crate) fn metadata_layout(bits: u32, k: usize) -> (&'static str, usize) {
    match (bits, k) {
        (16, 16) => ("((4,8),(16,2)):((0,1),(16,8))", 1),
        (16, 32) => ("((2,2,8),(16,2)):((256,0,1),(16,8))", 2),
        (32, 8) => ("((4,8),(8,2)):((0,1),(16,8))", 1),
        (32, 16) => ("((2,2,8),(8,2)):((128,0,1),(16,8))", 2),
        (8, 32) => ("((2,2,8),(32)):((8,0,1),(16))", 2),
        (8, 64) => ("((2,2,8),(32)):((8,512,1),(16))", 4),
        (4, 64) => ("((2,2,8),(64)):((8,0,1),(16))", 2),
        _ => ("((2,2,8),(64)):((8,1024,1),(16))", 4),
    }
}

fn check(name: &str, [k, half]: [usize; 2], operands: Operands, sums: SumType, range: [i64; 2]) {
    let mut random = Random::new(k as u64 * 7 + u64::from(operands.bits()));
    let chosen = Chosen::random(&mut random, operands.bits(), k);
    let mut draw = |count: usize| -> Vec<i64> {
        (0..count).map(|_| range[0] + random.below((range[1] - range[0] + 1) as u64) as i64).collect()
    };
    let (held, right, old) = (draw(16 * k / 2), draw(8 * k), draw(16 * 8));
    // A, the accumulators, and B in two halves are those of dense products.
    let atom = MmaAtom::named(name).unwrap();
    assert_eq!(atom.shape(), [16, 8, half as i64], "{name}");
    let lanes: Vec<usize> = (0..LANES).collect();
    let bits = operands.bits();
    let (mut a, mut b, mut c, mut wanted) = (vec![], vec![], vec![], vec![]);
    fill(atom.a().layout(), &lanes, bits, |at| encode(held[at as usize], operands), &mut a);
    for part in 0..2 {
        let mut own = vec![];
        let at = |at: i64| (at % 8) as usize + 8 * (at as usize / 8 + part * half);
        fill(atom.b().layout(), &lanes, bits, |place| encode(right[at(place)], operands), &mut own);
        b.append(&mut own);
    }
    let sum = |value: i64| match (operands, sums) {
        (Operands::Floats(..), SumType::F16) => encode(value, Operands::Floats(Factor::F16, Factor::F16)),
        (Operands::Floats(..), SumType::F32) => encode(value, Operands::Floats(Factor::Tf32, Factor::Tf32)),
        _ => value as u64,
    };
    let sum_bits = if sums == SumType::F16 { 16 } else { 32 };
    fill(atom.c().layout(), &lanes, sum_bits, |at| sum(old[at as usize]), &mut c);
    let total = |at: usize| {
        let (row, column) = (at % 16, at / 16);
        let columns = chosen.columns(row);
        let product = |(place, k): (usize, &usize)| held[row + 16 * place] * right[column + 8 * k];
        old[at] + columns.iter().enumerate().map(product).sum::<i64>()
    };
    let totals: Vec<i64> = (0..16 * 8).map(total).collect();
    fill(atom.c().layout(), &lanes, sum_bits, |at| sum(totals[at as usize]), &mut wanted);
    let (layout, contributors) = metadata_layout(bits, k);
    for selector in 0..4 / contributors {
        let mma = SparseMma::new([16, 8, k], operands, sums, (false, true), selector as u64).unwrap();
        assert_eq!(mma.registers(), [a.len(), b.len(), c.len()], "{name}");
        let words = chosen.words(layout, |lane| lane % 4 / contributors == selector);
        let mut found = vec![[0; LANES]; c.len()];
        mma.multiply(&a, &b, &c, &words, &mut found).unwrap();
        assert_eq!(found, wanted, "{name}, k {k}, selector {selector}");
    }
    assert!(SparseMma::new([16, 8, k], operands, sums, (false, true), 4 / contributors as u64).is_err());
}

#[test]
fn sparse_products_are_those_of_the_elements_that_are_held() {
    let small = [-4, 4];
    for (k, half) in [(16, 8), (32, 16)] {
        for (name, factor) in [("F16F16", Factor::F16), ("BF16BF16", Factor::Bf16)] {
            let operands = Operands::Floats(factor, factor);
            check(&format!("SM80_16x8x{half}_F32{name}F32_TN"), [k, half], operands, SumType::F32, small);
        }
        let f16 = Operands::Floats(Factor::F16, Factor::F16);
        check(&format!("SM80_16x8x{half}_F16F16F16F16_TN"), [k, half], f16, SumType::F16, small);
    }
    for (k, half) in [(8, 4), (16, 8)] {
        let operands = Operands::Floats(Factor::Tf32, Factor::Tf32);
        check(&format!("SM80_16x8x{half}_F32TF32TF32F32_TN"), [k, half], operands, SumType::F32, small);
    }
    for (name, factor) in [("E4M3", Factor::E4m3), ("E5M2", Factor::E5m2)] {
        let operands = Operands::Floats(factor, factor);
        check(&format!("SM89_16x8x32_F32{name}{name}F32_TN"), [64, 32], operands, SumType::F32, small);
    }
    for (bits, shapes) in [(8, [[32, 16], [64, 32]]), (4, [[64, 32], [128, 64]])] {
        for [k, half] in shapes {
            for (signed, letter) in [(true, 'S'), (false, 'U')] {
                let range = if signed { [-(1 << (bits - 1)), (1 << (bits - 1)) - 1] } else { [0, (1 << bits) - 1] };
                let operands = Operands::Integers { bits, a_signed: signed, b_signed: signed };
                let name = format!("SM80_16x8x{half}_S32{letter}{bits}{letter}{bits}S32_TN");
                check(&name, [k, half], operands, SumType::F32, range);
            }
        }
    }
}

#[test]
fn what_is_not_held_is_not_multiplied() {
    // Infinities and NaN of B that belong to zeros of A do not reach the sums.
    let halves = Operands::Floats(Factor::F16, Factor::F16);
    let mma = SparseMma::new([16, 8, 32], halves, SumType::F32, (false, true), 0).unwrap();
    // Elements 0 and 1 of each chunk are held; rows 2 and 3 of B are infinite and NaN.
    let b: LaneWords = std::array::from_fn(|lane| if lane % 2 == 0 { 0x3c00_3c00 } else { 0x7e00_7c00 });
    let mut d = [[0; LANES]; 4];
    mma.multiply(&[[0x3c00_3c00; LANES]; 4], &[b; 4], &[[0; LANES]; 4], &[0x4444_4444; LANES], &mut d).unwrap();
    assert_eq!(d, [[16.0_f32.to_bits(); LANES]; 4]);
}

#[test]
fn metadata_without_a_result_are_refused() {
    for (bits, is_ordered, good) in [
        (16, true, vec![4, 8, 9, 12, 13, 14]),
        (16, false, vec![1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]),
        (8, true, vec![4, 8, 9, 12, 13, 14]),
        (4, true, vec![4, 8, 9, 12, 13, 14]),
        (32, true, vec![4, 14]),
        (32, false, vec![4, 14]),
    ] {
        let sparsity = Sparsity::new(bits, 4, 0, is_ordered).unwrap();
        for chunk in 0..16 {
            let found = sparsity.places(&[0x1111_1111 * chunk; LANES]).is_ok();
            assert_eq!(found, good.contains(&chunk), "{bits} bits, {chunk:04b}");
        }
    }
    // One chunk of one row: it is named.
    let sparsity = Sparsity::new(16, 4, 1, true).unwrap();
    let mut words = [0x4444_4444; LANES];
    words[4 * 5 + 3] = 0x4454_4444;
    let flaw = sparsity.places(&words).unwrap_err();
    assert_eq!((flaw.row, flaw.column, flaw.bits), (13, 20, 5));
    // The other pair of lanes is not looked at.
    assert!(Sparsity::new(16, 4, 0, true).unwrap().places(&words).is_ok());
}
