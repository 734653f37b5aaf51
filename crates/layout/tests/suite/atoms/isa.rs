//! Instructions of graphics processors and sparse products, place by place: who holds what, by the
//! formulae of the ISA documents.

use tilewright_layout::Tree;
use tilewright_layout::atoms::{MmaAtom, MmaFamily, Operand};

fn atoms(prefix: &str) -> Vec<MmaAtom> {
    let families = MmaAtom::families().filter(|family| family.pattern().starts_with(prefix));
    let names = families.flat_map(|family: &MmaFamily| family.names());
    names.map(|name| MmaAtom::named(&name).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

/// Compares the place of each value of each thread in an operand's tile, `row + rows * column`,
/// with a formula for row and column.
fn compare(atom: &MmaAtom, operand: Operand, formula: impl Fn(i64, i64) -> (i64, i64)) {
    let held = atom.operand(operand).unwrap();
    let [rows, columns] = atom.tile(operand);
    let mut count = 0;
    for thread in 0..atom.threads().size() {
        for value in 0..held.values() {
            let (row, column) = formula(thread, value);
            assert!((0..rows).contains(&row) && (0..columns).contains(&column), "{atom} {operand} {thread} {value}");
            let own = held.layout().eval_at(&Tree::flat([thread, value]).unwrap()).unwrap();
            assert_eq!(own, row + rows * column, "{atom} {operand}: thread {thread}, value {value}");
            count += 1;
        }
    }
    assert_eq!(count, rows * columns * held.holders(), "{atom} {operand}");
}

/// RDNA 3, "Wave Matrix Multiply Accumulate": A and B are repeated in both halves of the wave, and
/// the sums have even rows in the first half and odd ones in the second.
#[test]
fn waves_of_rdna3() {
    let found = atoms("GFX1100_");
    assert_eq!(found.len(), 12);
    for atom in found {
        assert_eq!(atom.threads().to_string(), "32:1");
        compare(&atom, Operand::A, |lane, value| (lane % 16, value));
        compare(&atom, Operand::B, |lane, value| (lane % 16, value));
        compare(&atom, Operand::C, |lane, value| (2 * value + lane / 16, lane % 16));
    }
}

/// RDNA 4: the first half of the wave has K 0 to 7 and rows 0 to 7 of the sums, the second the
/// others.
#[test]
fn waves_of_rdna4() {
    let found = atoms("GFX1200_");
    assert_eq!(found.len(), 16);
    for atom in found {
        compare(&atom, Operand::A, |lane, value| (lane % 16, 8 * (lane / 16) + value));
        compare(&atom, Operand::B, |lane, value| (lane % 16, 8 * (lane / 16) + value));
        compare(&atom, Operand::C, |lane, value| (8 * (lane / 16) + value, lane % 16));
    }
}

/// `mma.sp`: a register of A has the values of `span` places along K, twice as many as it has
/// values: `firstcol = threadID_in_group * span`, `lastcol = firstcol + span - 1`. Rows are those
/// of the group, and 8 below in every second register.
#[test]
fn sparse_products_of_a_warp() {
    let found = atoms("SM80_SPARSE_");
    assert_eq!(found.len(), 3 + 3 + 1 + 1 + 4 * 8);
    for atom in found {
        let bits = atom.types().a.bits();
        let span = 2 * (32 / bits);
        compare(&atom, Operand::A, |lane, value| {
            let (group, thread) = (lane >> 2, lane % 4);
            let (register, place) = (value / span, value % span);
            let row = if register % 2 == 0 { group } else { group + 8 };
            (row, thread * span + place + if register < 2 { 0 } else { 4 * span })
        });
        // B is that of a dense product of as much depth: registers of 32 bits, four threads beside
        // each other along K.
        let run = 32 / bits;
        compare(&atom, Operand::B, |lane, value| {
            let (register, place) = (value / run, value % run);
            (lane >> 2, (lane % 4) * run + place + register * 4 * run)
        });
        compare(&atom, Operand::C, |lane, value| {
            ((lane >> 2) + if value < 2 { 0 } else { 8 }, (lane % 4) * 2 + (value & 1))
        });
    }
}

/// Metadata says of every place of A whether it is stored. Where it is in one register of each
/// thread of a group of four, every second thread has the rows 8 below, or the columns behind, and
/// the types say what the other pairs have: the rest, or the same again.
#[test]
fn metadata_of_sparse_products() {
    let mut count = 0;
    for atom in ["SM80_SPARSE_", "SM120_SPARSE_", "SM90::GMMA::SPARSE::"].into_iter().flat_map(atoms) {
        let [_, _, k] = atom.shape();
        let bits = atom.types().a.bits();
        compare(&atom, Operand::Metadata, |thread, value| {
            let (row, odd, upper) = (thread / 4 % 8 + 16 * (thread / 32), thread % 2, thread / 2 % 2);
            match (atom.name().split('_').next(), bits) {
                // The selector of the instruction chooses the threads, so each has all.
                (Some("SM80"), _) => (value % 16, value / 16),
                // Half of K in a thread of each pair.
                (Some("SM120"), _) | (_, 8) => (row + 8 * odd, k / 2 * upper + value),
                _ => (row + 8 * (value / (k / 2)), k / 2 * odd + value % (k / 2)),
            }
        });
        count += 1;
    }
    assert_eq!(count, 40 + 77 + 1056);
}

/// `dpas`, through the bytes of its registers. A is `M` rows of 32 bytes (or of K values), B is
/// dwords: dword `d` of row `r` has the values `k = r * ops .. (r + 1) * ops` of column `d`.
#[test]
fn products_of_xe() {
    for atom in atoms("XE_") {
        let [m, n, k] = atom.shape();
        let exchanged = atom.name().starts_with("XE_DPAS_NN");
        let by_value = atom.name().starts_with("XE_DPAS");
        let (left, right) = match exchanged {
            false => (atom.types().a.bits(), atom.types().b.bits()),
            true => (atom.types().b.bits(), atom.types().a.bits()),
        };
        let rows = if exchanged { n } else { m };
        // The bit of a register at which a value of a work-item begins: units of 16 bits for A and
        // of 32 for B in the older names, whole values, at least bytes, in the newer ones.
        let bit = |item: i64, value: i64, bits: i64, unit: i64| {
            let each = unit / bits;
            (value / each) * 16 * unit + item * unit + value % each * bits
        };
        let left_unit = if by_value { left.max(8) } else { left.max(16) };
        let right_unit = if by_value { right.max(8) } else { 32 };
        // Rows of the left factor follow each other, each of K values.
        let left_place = |item: i64, value: i64| {
            let number = bit(item, value, left, left_unit) / left;
            (number / k, number % k)
        };
        let right_place = |item: i64, value: i64| {
            let at = bit(item, value, right, right_unit);
            let (dword, inside) = (at / 32, at % 32);
            let ops = 32 / right;
            (dword % 16, dword / 16 * ops + inside / right)
        };
        let (first, second) = if exchanged { (Operand::B, Operand::A) } else { (Operand::A, Operand::B) };
        compare(&atom, first, left_place);
        compare(&atom, second, right_place);
        assert_eq!(atom.tile(first)[0], rows);
        compare(&atom, Operand::C, |item, value| if exchanged { (item, value) } else { (value, item) });
    }
    assert!(atoms("XE_").len() > 300);
}

/// What other systems, and older releases, call an instruction of the tables.
#[test]
fn names_of_others() {
    let pairs = [
        ("CDNA3_16x16x16_F32F16F16_MFMA", "GFX908_16x16x16_F32F16F16F32"),
        ("CDNA3_32x32x16_F32F8F8_MFMA", "GFX942_32x32x16_F32E4M3E4M3F32"),
        ("CDNA3_16x16x32_I32I8I8_MFMA", "GFX942_16x16x32_S32S8S8S32"),
        ("GFX942_32x32x8_F32F16F16F32", "GFX908_32x32x8_F32F16F16F32"),
        ("GFX950_16x16x16_F32BF16BF16F32", "GFX90A_16x16x16_F32BF16BF16F32"),
        ("v_mfma_f32_32x32x8_f16", "GFX908_32x32x8_F32F16F16F32"),
        ("__builtin_amdgcn_mfma_f32_16x16x16bf16_1k", "GFX90A_16x16x16_F32BF16BF16F32"),
        ("v_mfma_f32_16x16x8_xf32", "GFX942_16x16x8_F32TF32TF32F32"),
        ("__builtin_amdgcn_mfma_f32_16x16x8_xf32", "GFX942_16x16x8_F32TF32TF32F32"),
        ("v_mfma_f32_16x16x32_fp8_bf8", "GFX942_16x16x32_F32E4M3E5M2F32"),
        ("v_mfma_i32_16x16x32_i8", "GFX942_16x16x32_S32S8S8S32"),
        ("v_mfma_f64_16x16x4_f64", "GFX90A_16x16x4_F64F64F64F64"),
        ("RDNA3_16x16x16_F32F16F16_WMMA", "GFX1100_16x16x16_F32F16F16F32"),
        ("RDNA3_16x16x16_I32I8I8_WMMA", "GFX1100_16x16x16_S32S8S8S32"),
        ("__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32", "GFX1100_16x16x16_F32BF16BF16F32"),
        ("__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12", "GFX1200_16x16x16_F32F16F16F32"),
        ("SM90_64x128x32_F32E4M3E4M3_SS", "SM90_64x128x32_F32E4M3E4M3_SS_TN"),
        ("SM90_64x64x32_S32S8S8_RS", "SM90_64x64x32_S32S8S8_RS_TN"),
        ("SM90::GMMA::MMA_64x128x16_F32BF16BF16_SS", "SM90_64x128x16_F32BF16BF16_SS"),
        ("SM90_64x64x32_F16F16F16_SS_SPARSE", "SM90::GMMA::SPARSE::GMMA_64x64x32_F16F16F16_SS"),
        ("SM90_64x64x64_S32S8S8_SS_SPARSE", "SM90::GMMA::SPARSE::GMMA_64x64x64_S32S8S8_SS_TN"),
        ("SM120_16x8x32_F32E4M3E4M3F32_TN", "SM120_16x8x32_TN<E4M3,E4M3,F32>"),
        ("SM120_16x8x64_F32E4M3E4M3F32_TN_SPARSE", "SM120_SPARSE_16x8x64_TN<E4M3,E4M3,F32>"),
        ("SM61_1x1x4_S32S8S8S32", "SM61_DP4A"),
    ];
    for (theirs, own) in pairs {
        assert_eq!(MmaAtom::named(theirs).unwrap_or_else(|error| panic!("{theirs}: {error}")).name(), own);
    }
    // Two machines have it with other layouts, a machine that is older, and shapes that none has.
    for none in [
        "v_wmma_f32_16x16x16_f16",
        "GFX908_16x16x16_F32BF16BF16F32",
        "CDNA1_16x16x32_I32I8I8_MFMA",
        "XeHPC_8x8x8_F32BF16BF16_DPAS",
        "RDNA4_16x16x32_F32F16F16_WMMA",
    ] {
        assert_eq!(MmaAtom::named(none).unwrap_err().code(), "E0316", "{none}");
    }
}
