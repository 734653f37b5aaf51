//! Shuffles, votes, matches, reductions, and instructions on matrices.

use super::{Decode, Decoder};
use crate::check::checker::Order;
use crate::engine::code::{Meeting, Op, Reduction, Row, Source, Target, Together, Truth, Window};
use crate::engine::matrix::{MatrixOp, Products, cut, wide};
use crate::isa::matrices;
use crate::isa::mma::{LaneWords, Mma, Operands};
use crate::isa::tensor_core::{Factor, SumType};
use crate::ptx::{Operand, Scalar};

impl<'a> Decoder<'_, 'a> {
    /// The register and the predicate of `d|p`.
    fn both(&mut self, operand: &Operand<'a>) -> Decode<(Option<Target>, Option<u32>)> {
        Ok(match operand {
            Operand::Pair(d, p) => (Some(self.target(d)?), self.predicate(p)?),
            d => (Some(self.target(d)?), None),
        })
    }

    pub(super) fn warp_instruction(
        &mut self,
        opcode: &str,
        modifiers: &[&'a str],
        operands: &[Operand<'a>],
    ) -> Decode<bool> {
        let zero = self.constant(0);
        let mut meeting = Meeting {
            what: Together::Sync,
            mask: zero,
            a: zero,
            b: zero,
            c: zero,
            p: Truth::Constant(true),
            d: None,
            q: None,
            bits: 32,
        };
        match opcode {
            "bar" | "barrier" if modifiers.first() == Some(&"warp") => {
                let [mask] = super::exactly(operands)?;
                meeting.mask = self.source(mask, Scalar::U(32))?;
            }
            "shfl" => {
                if modifiers.first() != Some(&"sync") {
                    return Err("without `.sync` it is of no target from sm_70 on".to_string());
                }
                let [d, a, b, c, mask] = super::exactly(operands)?;
                meeting.what = match modifiers.get(1) {
                    Some(&"up") => Together::ShuffleUp,
                    Some(&"down") => Together::ShuffleDown,
                    Some(&"bfly") => Together::ShuffleXor,
                    Some(&"idx") => Together::ShuffleIndex,
                    _ => return Err("up, down, bfly or idx is expected".to_string()),
                };
                (meeting.d, meeting.q) = self.both(d)?;
                meeting.a = self.source(a, Scalar::B(32))?;
                meeting.b = self.source(b, Scalar::B(32))?;
                meeting.c = self.source(c, Scalar::B(32))?;
                meeting.mask = self.source(mask, Scalar::B(32))?;
            }
            "vote" => {
                if modifiers.first() != Some(&"sync") {
                    return Err("without `.sync` it is of no target from sm_70 on".to_string());
                }
                let [d, a, mask] = super::exactly(operands)?;
                meeting.mask = self.source(mask, Scalar::B(32))?;
                meeting.p = self.truth(a)?;
                meeting.what = match modifiers.get(1) {
                    Some(&"all") => Together::VoteAll,
                    Some(&"any") => Together::VoteAny,
                    Some(&"uni") => Together::VoteUniform,
                    Some(&"ballot") => Together::Ballot,
                    _ => return Err("all, any, uni or ballot is expected".to_string()),
                };
                match meeting.what {
                    Together::Ballot => meeting.d = Some(self.target(d)?),
                    _ => meeting.q = self.predicate(d)?,
                }
            }
            "match" => {
                let [d, a, mask] = super::exactly(operands)?;
                meeting.what = match modifiers.first() {
                    Some(&"any") => Together::MatchAny,
                    Some(&"all") => Together::MatchAll,
                    _ => return Err("any or all is expected".to_string()),
                };
                let kind = self.last_type(modifiers)?;
                (meeting.d, meeting.q) = self.both(d)?;
                meeting.a = self.source(a, kind)?;
                meeting.mask = self.source(mask, Scalar::B(32))?;
                meeting.bits = kind.bits() as u8;
            }
            "redux" => {
                let [d, a, mask] = super::exactly(operands)?;
                let kind = self.last_type(modifiers)?;
                let is_signed = kind.is_signed();
                let word = modifiers.get(1).copied().unwrap_or_default();
                meeting.what = Together::Reduce(match (word, kind) {
                    ("min" | "max", Scalar::F(32)) => Reduction::Float {
                        is_max: word == "max",
                        absolute: modifiers.contains(&"abs"),
                        nan: modifiers.contains(&"NaN"),
                    },
                    ("add", _) => Reduction::Add,
                    ("and", _) => Reduction::And,
                    ("or", _) => Reduction::Or,
                    ("xor", _) => Reduction::Xor,
                    ("min", _) if is_signed => Reduction::MinSigned,
                    ("max", _) if is_signed => Reduction::MaxSigned,
                    ("min", _) => Reduction::MinUnsigned,
                    ("max", _) => Reduction::MaxUnsigned,
                    _ => return Err("this reduction is not known".to_string()),
                });
                meeting.d = Some(self.target(d)?);
                meeting.a = self.source(a, kind)?;
                meeting.mask = self.source(mask, Scalar::B(32))?;
            }
            "elect" => {
                let [d, mask] = super::exactly(operands)?;
                meeting.what = Together::Elect;
                (meeting.d, meeting.q) = match d {
                    Operand::Pair(..) => self.both(d)?,
                    p => (None, self.predicate(p)?),
                };
                meeting.mask = self.source(mask, Scalar::B(32))?;
            }
            "activemask" => {
                let [d] = super::exactly(operands)?;
                let d = self.target(d)?;
                self.emit(Op::ActiveMask(d));
                return Ok(true);
            }
            "ldmatrix" | "stmatrix" => {
                let [first, second] = super::exactly(operands)?;
                let is_load = opcode == "ldmatrix";
                let (registers, address) = if is_load { (first, second) } else { (second, first) };
                if !modifiers.contains(&"m8n8") || !modifiers.contains(&"b16") {
                    return Err("only matrices of 8 by 8 elements of 16 bits are known".to_string());
                }
                let registers = match registers {
                    Operand::Vector(all) => all.as_slice(),
                    one => std::slice::from_ref(one),
                };
                if !matches!(registers.len(), 1 | 2 | 4) {
                    return Err("one, two or four registers are expected".to_string());
                }
                let transposed = modifiers.contains(&"trans");
                let is_shared = modifiers.iter().any(|word| word.starts_with("shared"));
                let window = if is_shared { Window::Shared } else { Window::Generic };
                let at = self.reference(address, window, 16, 1, &[], Order::Weak)?;
                let op = if is_load {
                    let mut to = Vec::new();
                    for register in registers {
                        to.push(self.target(register)?);
                    }
                    MatrixOp::Load { from: at, to: to.into(), transposed }
                } else {
                    let mut from = Vec::new();
                    for register in registers {
                        from.push(self.source(register, Scalar::B(32))?);
                    }
                    MatrixOp::Store { to: at, from: from.into(), transposed }
                };
                self.emit(Op::Matrix(op));
                return Ok(true);
            }
            "movmatrix" => {
                let [d, a] = super::exactly(operands)?;
                let (d, a) = (self.target(d)?, self.source(a, Scalar::B(32))?);
                let f = |from: &[Row], to: &mut [Row]| to[0] = wide(&matrices::transpose(&cut(&from[0], 0)));
                self.emit(Op::Matrix(MatrixOp::Compute {
                    to: [d].into(),
                    from: [a].into(),
                    f: Box::new(f),
                    products: None,
                }));
                return Ok(true);
            }
            "mma" => {
                self.product_instruction(modifiers, operands)?;
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.emit(Op::Meet(meeting));
        Ok(true)
    }

    /// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c`
    fn product_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let [d, a, b, c] = super::exactly(operands)?;
        let unknown = || "there is no product of this shape and these types".to_string();
        if modifiers.first() != Some(&"sync") || modifiers.iter().any(|word| word.starts_with("kind")) {
            return Err(unknown());
        }
        let shape = modifiers.iter().find_map(|word| shape(word)).ok_or_else(unknown)?;
        let kinds: Vec<&str> = modifiers
            .iter()
            .copied()
            .filter(|word| {
                matches!(
                    *word,
                    "f16"
                        | "bf16"
                        | "f32"
                        | "f64"
                        | "tf32"
                        | "s32"
                        | "s8"
                        | "u8"
                        | "s4"
                        | "u4"
                        | "b1"
                        | "e4m3"
                        | "e5m2"
                )
            })
            .collect();
        let [d_kind, a_kind, b_kind, c_kind] = kinds[..] else { return Err(unknown()) };
        if d_kind != c_kind {
            return Err("sums of two types are not known".to_string());
        }
        let sums = if d_kind == "f16" { SumType::F16 } else { SumType::F32 };
        let factor = |kind: &str| match kind {
            "f16" => Some(Factor::F16),
            "bf16" => Some(Factor::Bf16),
            "tf32" => Some(Factor::Tf32),
            "e4m3" => Some(Factor::E4m3),
            "e5m2" => Some(Factor::E5m2),
            _ => None,
        };
        let operands = match (a_kind, b_kind) {
            ("f64", "f64") => Operands::F64,
            ("b1", "b1") if modifiers.contains(&"xor") => Operands::XorPopc,
            ("b1", "b1") => Operands::AndPopc,
            ("s8" | "u8", "s8" | "u8") => {
                Operands::Integers { bits: 8, a_signed: a_kind == "s8", b_signed: b_kind == "s8" }
            }
            ("s4" | "u4", "s4" | "u4") => {
                Operands::Integers { bits: 4, a_signed: a_kind == "s4", b_signed: b_kind == "s4" }
            }
            _ => Operands::Floats(factor(a_kind).ok_or_else(unknown)?, factor(b_kind).ok_or_else(unknown)?),
        };
        let layouts: Vec<bool> = modifiers
            .iter()
            .filter_map(|word| match *word {
                "row" => Some(true),
                "col" => Some(false),
                _ => None,
            })
            .collect();
        let is_quads = shape == [8, 8, 4] && operands == Operands::Floats(Factor::F16, Factor::F16);
        let mma = match layouts[..] {
            [a_rows, b_rows] if is_quads => Mma::quad_pairs(!a_rows, b_rows, sums),
            [true, false] => Mma::new(shape, operands, sums, modifiers.contains(&"satfinite")).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        };
        let is_double = operands == Operands::F64;
        let words = if is_double { 2 } else { 1 };
        let kind = if is_double { Scalar::F(64) } else { Scalar::B(32) };
        let to = self.targets(d)?;
        let [a, b, c] = [self.sources(a, kind)?, self.sources(b, kind)?, self.sources(c, kind)?];
        let [in_a, in_b, in_c] = mma.registers();
        if [a.len(), b.len(), c.len(), to.len()].map(|count| count * words) != [in_a, in_b, in_c, in_c] {
            return Err(format!("it has registers of [{in_a}, {in_b}, {in_c}] words for A, B and C"));
        }
        let is_packed = sums == SumType::F16;
        let products = (!is_quads).then_some(Products { a: a.len(), b: b.len(), is_tall: shape[0] == 16, is_packed });
        let from = [a, b, c].concat().into_boxed_slice();
        let f = move |rows: &[Row], results: &mut [Row]| {
            let halves = |row: &Row| (0..words).map(|word| cut(row, 32 * word as u32)).collect::<Vec<LaneWords>>();
            let registers: Vec<LaneWords> = rows.iter().flat_map(halves).collect();
            let mut sums = vec![[0; 32]; in_c];
            mma.multiply(&registers[..in_a], &registers[in_a..in_a + in_b], &registers[in_a + in_b..], &mut sums);
            for (result, sums) in results.iter_mut().zip(sums.chunks_exact(words)) {
                for (word, sum) in sums.iter().enumerate() {
                    for lane in 0..32 {
                        result[lane] |= u64::from(sum[lane]) << (32 * word);
                    }
                }
            }
        };
        self.emit(Op::Matrix(MatrixOp::Compute { to: to.into(), from, f: Box::new(f), products }));
        Ok(())
    }

    /// The registers of a vector, or the one.
    pub(in crate::engine) fn sources(&mut self, operand: &Operand<'a>, kind: Scalar) -> Decode<Vec<Source>> {
        match operand {
            Operand::Vector(all) => all.iter().map(|own| self.source(own, kind)).collect(),
            one => Ok(vec![self.source(one, kind)?]),
        }
    }

    /// The registers of a vector of results, or the one.
    pub(in crate::engine) fn targets(&mut self, operand: &Operand<'a>) -> Decode<Vec<Target>> {
        match operand {
            Operand::Vector(all) => all.iter().map(|own| self.target(own)).collect(),
            one => Ok(vec![self.target(one)?]),
        }
    }
}

/// M, N and K of a word such as `m16n8k16`.
fn shape(word: &str) -> Option<[usize; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}
