//! Decodes `mma` and `mma.sp`: their types, shapes and registers.

use super::{Decode, Decoder};
use crate::engine::code::{Op, Row};
use crate::engine::matrix::{MatrixOp, Products, cut};
use crate::isa::mma::sparse::SparseMma;
use crate::isa::mma::{LaneWords, Mma, Operands};
use crate::isa::tensor_core::{Factor, SumType};
use crate::ptx::{Operand, Scalar};

/// A matrix product of a warp.
#[derive(Clone, Copy)]
enum Product {
    Dense(Mma),
    Sparse(SparseMma),
}

impl Product {
    /// The number of 32-bit registers of A, of B, and of C or D.
    fn registers(&self) -> [usize; 3] {
        match self {
            Self::Dense(mma) => mma.registers(),
            Self::Sparse(mma) => mma.registers(),
        }
    }

    /// The number of registers of D.
    fn results(&self) -> usize {
        match self {
            Self::Dense(mma) => mma.result_registers(),
            Self::Sparse(mma) => mma.registers()[2],
        }
    }

    /// Computes D from the registers of A, B and C, and from the metadata.
    fn multiply(&self, from: &[LaneWords], d: &mut [LaneWords]) -> Result<(), String> {
        let [in_a, in_b, in_c] = self.registers();
        let (a, rest) = from.split_at(in_a);
        let (b, rest) = rest.split_at(in_b);
        let (c, metadata) = rest.split_at(in_c);
        match (self, metadata) {
            (Self::Sparse(mma), [metadata]) => mma.multiply(a, b, c, metadata, d).map_err(|flaw| flaw.to_string())?,
            (Self::Dense(mma), _) => mma.multiply(a, b, c, d),
            (Self::Sparse(_), _) => {}
        }
        Ok(())
    }
}

const KINDS: [&str; 13] = ["f16", "bf16", "f32", "f64", "tf32", "s32", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2"];

/// The types of A and B, from their modifiers.
fn operands_of(a: &str, b: &str, is_xor: bool) -> Option<Operands> {
    let factor = |kind: &str| match kind {
        "f16" => Some(Factor::F16),
        "bf16" => Some(Factor::Bf16),
        "tf32" => Some(Factor::Tf32),
        "e4m3" => Some(Factor::E4m3),
        "e5m2" => Some(Factor::E5m2),
        _ => None,
    };
    let integers = |bits| Operands::Integers { bits, a_signed: a.starts_with('s'), b_signed: b.starts_with('s') };
    Some(match (a, b) {
        ("f64", "f64") => Operands::F64,
        ("b1", "b1") if is_xor => Operands::XorPopc,
        ("b1", "b1") => Operands::AndPopc,
        ("s8" | "u8", "s8" | "u8") => integers(8),
        ("s4" | "u4", "s4" | "u4") => integers(4),
        _ => Operands::Floats(factor(a)?, factor(b)?),
    })
}

impl<'a> Decoder<'_, 'a> {
    /// Decodes `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c`, and
    /// `mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 d, a, b, c, e, 0`.
    pub(super) fn product_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let unknown = || "there is no product of this shape and these types".to_string();
        let (is_sparse, is_ordered, rest) = match modifiers {
            ["sp", rest @ ..] => (true, false, rest),
            ["sp::ordered_metadata", rest @ ..] => (true, true, rest),
            rest => (false, false, rest),
        };
        if rest.first() != Some(&"sync") {
            return Err(unknown());
        }
        if let Some(word) = rest.iter().find(|word| word.starts_with("kind") || word.starts_with("block_scale")) {
            return Err(format!("`.{word}` is of targets from sm_120 on"));
        }
        let shape = rest.iter().find_map(|word| shape(word)).ok_or_else(unknown)?;
        let kinds: Vec<&str> = rest.iter().copied().filter(|word| KINDS.contains(word)).collect();
        let [d_kind, a_kind, b_kind, c_kind] = kinds[..] else { return Err(unknown()) };
        let sum = |kind| if kind == "f16" { SumType::F16 } else { SumType::F32 };
        let sums = sum(d_kind);
        let types = operands_of(a_kind, b_kind, rest.contains(&"xor")).ok_or_else(unknown)?;
        let layouts: Vec<bool> = rest
            .iter()
            .filter_map(|word| match *word {
                "row" => Some(true),
                "col" => Some(false),
                _ => None,
            })
            .collect();
        let saturates = rest.contains(&"satfinite");
        let is_quads = shape == [8, 8, 4] && types == Operands::Floats(Factor::F16, Factor::F16);
        let ([d, a, b, c], metadata) = match operands {
            [d, a, b, c] if !is_sparse => ([d, a, b, c], None),
            [d, a, b, c, metadata, Operand::Integer(selector)] if is_sparse => {
                ([d, a, b, c], Some((metadata, *selector)))
            }
            _ if is_sparse => return Err("metadata and a constant selector are expected behind C".to_string()),
            _ => return Err("4 operands are expected".to_string()),
        };
        let product = match (&layouts[..], metadata) {
            ([true, false], Some((_, selector))) => {
                Product::Sparse(SparseMma::new(shape, types, sums, (saturates, is_ordered), selector)?)
            }
            ([a_rows, b_rows], None) if is_quads => {
                Product::Dense(Mma::mixed_quad_pairs(!a_rows, *b_rows, [sums, sum(c_kind)]))
            }
            _ if d_kind != c_kind => return Err(unknown()),
            ([true, false], None) => Product::Dense(Mma::new(shape, types, sums, saturates).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        };
        let is_double = types == Operands::F64;
        let words = if is_double { 2 } else { 1 };
        let kind = if is_double { Scalar::F(64) } else { Scalar::B(32) };
        let to = self.targets(d)?;
        let [a, b, c] = [self.sources(a, kind)?, self.sources(b, kind)?, self.sources(c, kind)?];
        let ([in_a, in_b, in_c], in_d) = (product.registers(), product.results());
        if [a.len(), b.len(), c.len(), to.len()].map(|count| count * words) != [in_a, in_b, in_c, in_d] {
            return Err(format!("it has registers of [{in_a}, {in_b}, {in_c}] words for A, B and C"));
        }
        // With a sparse A, the metadata decide which accumulators a register of A contributes to.
        let is_plain = matches!(product, Product::Dense(_)) && !is_quads;
        let is_packed = sums == SumType::F16;
        let products = is_plain.then_some(Products { a: a.len(), b: b.len(), is_tall: shape[0] == 16, is_packed });
        let mut from = [a, b, c].concat();
        if let Some((metadata, _)) = metadata {
            from.push(self.source(metadata, Scalar::B(32))?);
        }
        let f = move |rows: &[Row], results: &mut [Row]| {
            let halves = |row: &Row| (0..words).map(|word| cut(row, 32 * word as u32)).collect::<Vec<LaneWords>>();
            let registers: Vec<LaneWords> = rows.iter().flat_map(halves).collect();
            let mut sums = vec![[0; 32]; in_d];
            product.multiply(&registers, &mut sums)?;
            for (result, sums) in results.iter_mut().zip(sums.chunks_exact(words)) {
                for (word, sum) in sums.iter().enumerate() {
                    for lane in 0..32 {
                        result[lane] |= u64::from(sum[lane]) << (32 * word);
                    }
                }
            }
            Ok(())
        };
        self.emit(Op::Matrix(MatrixOp::Compute { to: to.into(), from: from.into(), f: Box::new(f), products }));
        Ok(())
    }
}

/// M, N and K of a modifier such as `m16n8k16`.
fn shape(word: &str) -> Option<[usize; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}
