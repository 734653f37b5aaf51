//! Shuffles, votes, matches, reductions, and instructions on matrices.

use super::{Decode, Decoder};
use crate::check::checker::Order;
use crate::engine::code::{Meeting, Op, Reduction, Row, Source, Target, Together, Truth, Window};
use crate::engine::matrix::{MatrixOp, cut, wide};
use crate::isa::matrices;
use crate::ptx::{Operand, Scalar};

impl<'a> Decoder<'_, 'a> {
    /// The register and the predicate of an operand `d|p`.
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
                let f = |from: &[Row], to: &mut [Row]| {
                    to[0] = wide(&matrices::transpose(&cut(&from[0], 0)));
                    Ok(())
                };
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

    /// The source registers of a vector operand, or the single one.
    pub(in crate::engine) fn sources(&mut self, operand: &Operand<'a>, kind: Scalar) -> Decode<Vec<Source>> {
        match operand {
            Operand::Vector(all) => all.iter().map(|own| self.source(own, kind)).collect(),
            one => Ok(vec![self.source(one, kind)?]),
        }
    }

    /// The destination registers of a vector operand, or the single one.
    pub(in crate::engine) fn targets(&mut self, operand: &Operand<'a>) -> Decode<Vec<Target>> {
        match operand {
            Operand::Vector(all) => all.iter().map(|own| self.target(own)).collect(),
            one => Ok(vec![self.target(one)?]),
        }
    }
}
