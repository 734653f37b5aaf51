//! `wmma`: loads and stores of fragments become accesses to single elements.

use super::AsyncOp;
use super::reading::{Read, Reader};
use crate::engine::code::{Op, Reference, Row, Source, Target, Window};
use crate::engine::matrix::{MatrixOp, cut};
use crate::isa::mma::{LaneWords, Operands};
use crate::isa::tensor_core::{Factor, SumType};
use crate::isa::wmma::{Wmma, WmmaMatrix};
use crate::ptx::{Operand, Scalar};

/// The types of A and B, from one modifier.
fn operands_of(word: &str, and: bool) -> Option<Operands> {
    Some(match word {
        "f16" => Operands::Floats(Factor::F16, Factor::F16),
        "bf16" => Operands::Floats(Factor::Bf16, Factor::Bf16),
        "tf32" => Operands::Floats(Factor::Tf32, Factor::Tf32),
        "s8" | "u8" => Operands::Integers { bits: 8, a_signed: word == "s8", b_signed: word == "s8" },
        "s4" | "u4" => Operands::Integers { bits: 4, a_signed: word == "s4", b_signed: word == "s4" },
        "f64" => Operands::F64,
        "b1" if and => Operands::AndPopc,
        "b1" => Operands::XorPopc,
        _ => return None,
    })
}

impl<'a> Reader<'_, '_, 'a> {
    fn shape(&self) -> Read<[usize; 3]> {
        let read = |word: &str| {
            let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
            let (n, k) = rest.split_once('k')?;
            Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
        };
        self.modifiers.iter().find_map(|word| read(word)).ok_or_else(|| "the shape is missing".to_string())
    }

    /// The modifiers that are types, in order.
    fn type_words(&self) -> Vec<&str> {
        let names = ["f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s4", "u4", "b1", "s32"];
        self.modifiers.iter().copied().filter(|word| names.contains(word)).collect()
    }

    pub(super) fn fragment(&mut self, what: &str) -> Read<AsyncOp> {
        let shape = self.shape()?;
        let unknown = || "there is no such product of these types".to_string();
        match what {
            "mma" => {
                let words: Vec<String> = self.type_words().iter().map(|word| word.to_string()).collect();
                let and = self.modifiers.contains(&"and");
                let (first, second, of_d, of_c) = match words.iter().map(String::as_str).collect::<Vec<&str>>()[..] {
                    [d, c] => ("f16", "f16", d, c),
                    [d, a, b, c] if d == c => (a, b, d, c),
                    _ => return Err(unknown()),
                };
                let operands = match (operands_of(first, and), operands_of(second, and)) {
                    (
                        Some(Operands::Integers { bits, a_signed, .. }),
                        Some(Operands::Integers { bits: others, b_signed, .. }),
                    ) if bits == others => Operands::Integers { bits, a_signed, b_signed },
                    (Some(a), Some(b)) if a == b => a,
                    _ => return Err(unknown()),
                };
                // If C or D is f32, the accumulators are f32.
                let (c_is_half, d_is_half) = (of_c == "f16", of_d == "f16");
                let sums = if c_is_half && d_is_half { SumType::F16 } else { SumType::F32 };
                let (widens, narrows) = (c_is_half && !d_is_half, d_is_half && !c_is_half);
                let wmma = Wmma::new(shape, operands, sums, self.modifiers.contains(&"satfinite"));
                let wmma = wmma.ok_or_else(unknown)?;
                let [d, a, b, c] = self.operands else { return Err("four operands are expected".to_string()) };
                let (d, a, b, c) = (d.clone(), a.clone(), b.clone(), c.clone());
                let to = self.decoder.targets(&d)?;
                let mut from = Vec::new();
                let words = if operands == Operands::F64 { 2 } else { 1 };
                let kind = if words == 2 { Scalar::F(64) } else { Scalar::B(32) };
                for (operand, fragment) in [(a, WmmaMatrix::A), (b, WmmaMatrix::B), (c, WmmaMatrix::C)] {
                    let sources = self.decoder.sources(&operand, kind)?;
                    let is_packed = widens && fragment == WmmaMatrix::C;
                    let wanted = wmma.registers(fragment) / words / if is_packed { 2 } else { 1 };
                    if sources.len() != wanted {
                        return Err(format!("{wanted} registers are expected, not {}", sources.len()));
                    }
                    from.extend(sources);
                }
                let wanted = wmma.registers(WmmaMatrix::C) / words / if narrows { 2 } else { 1 };
                if to.len() != wanted {
                    return Err(format!("{wanted} registers are expected, not {}", to.len()));
                }
                let f = move |from: &[Row], to: &mut [Row]| {
                    let halves =
                        |row: &Row| (0..words as u32).map(|word| cut(row, 32 * word)).collect::<Vec<LaneWords>>();
                    let registers: Vec<LaneWords> = from.iter().flat_map(halves).collect();
                    let (a, rest) = registers.split_at(wmma.registers(WmmaMatrix::A));
                    let (b, c) = rest.split_at(wmma.registers(WmmaMatrix::B));
                    let wide = if widens { Wmma::widened(c) } else { Vec::new() };
                    let mut d = vec![[0; 32]; wmma.registers(WmmaMatrix::C)];
                    wmma.multiply(a, b, if widens { &wide } else { c }, &mut d);
                    let d = if narrows { Wmma::narrowed(&d) } else { d };
                    for (into, sums) in to.iter_mut().zip(d.chunks_exact(words)) {
                        for (word, sum) in sums.iter().enumerate() {
                            for (value, part) in into.iter_mut().zip(sum) {
                                *value |= u64::from(*part) << (32 * word);
                            }
                        }
                    }
                    Ok(())
                };
                self.decoder.emit(Op::Matrix(MatrixOp::Compute {
                    to: to.into(),
                    from: from.into(),
                    f: Box::new(f),
                    products: None,
                }));
            }
            "load" | "store" => self.fragment_access(shape, what == "load")?,
            _ => return Err("this operation on fragments is not known".to_string()),
        }
        Ok(AsyncOp::Nothing)
    }

    fn fragment_access(&mut self, shape: [usize; 3], loads: bool) -> Read<()> {
        let words = self.type_words();
        let word = *words.last().ok_or("the type is missing")?;
        let fragment = match self.modifiers.get(1) {
            Some(&"a") => WmmaMatrix::A,
            Some(&"b") => WmmaMatrix::B,
            _ => WmmaMatrix::C,
        };
        // For C, any operand types are possible that have this accumulator type and this shape.
        let operands = match (fragment, word) {
            (WmmaMatrix::C, "f16" | "f32") if shape == [16, 16, 8] => operands_of("tf32", false),
            (WmmaMatrix::C, "f16" | "f32") => operands_of("f16", false),
            (WmmaMatrix::C, "s32") => match shape {
                [8, 8, 32] => operands_of("s4", false),
                [8, 8, 128] => operands_of("b1", false),
                _ => operands_of("s8", false),
            },
            (WmmaMatrix::C, "f64") => operands_of("f64", false),
            (WmmaMatrix::C, _) => None,
            _ => operands_of(word, false),
        };
        let sums = if fragment == WmmaMatrix::C && word == "f16" { SumType::F16 } else { SumType::F32 };
        let wmma = operands.and_then(|operands| Wmma::new(shape, operands, sums, false));
        let wmma = wmma.ok_or("there is no fragment of this shape and type")?;
        let (registers, address) = if loads { (0, 1) } else { (1, 0) };
        let window = self.access_window();
        let by_rows = self.modifiers.contains(&"row");
        // Elements of less than a byte are loaded as whole registers, along K.
        let bits = wmma.bits(fragment).max(8);
        let unit = if wmma.bits(fragment) < 8 { 32 / wmma.bits(fragment) } else { 1 };
        let bytes = if unit > 1 { 4 } else { bits / 8 };
        let base = self.reference(address, window, bytes as u64)?;
        let [rows, columns] = wmma.extents(fragment);
        let stride = match self.operands.get(2) {
            Some(_) => self.source(2, Scalar::U(32))?,
            None => self.decoder.constant(if by_rows { columns } else { rows } as u64),
        };
        let operand = self.operands.get(registers).cloned().ok_or("registers are missing")?;
        let is_double = bits == 64;
        let count = wmma.registers(fragment) / if is_double { 2 } else { 1 };
        let packed = if unit > 1 || is_double { 1 } else { 32 / bits };
        let held: Vec<Operand<'a>> = match operand {
            Operand::Vector(all) => all,
            one => vec![one],
        };
        if held.len() != count {
            return Err(format!("{count} registers are expected, not {}", held.len()));
        }
        for (number, register) in held.iter().enumerate() {
            let mut parts = Vec::new();
            for part in 0..packed {
                let place = if unit > 1 { number * unit } else { number * packed + part };
                let at = self.decoder.temporary(64);
                let scale = move |index: u64| index * wmma.bits(fragment) as u64 / 8;
                let f = move |base: &Row, stride: &Row, out: &mut Row| {
                    for lane in 0..32 {
                        let (row, column) = wmma.place(fragment, lane, place);
                        let stride = stride[lane] & 0xffff_ffff;
                        let index = match by_rows {
                            true => row as u64 * stride + column as u64,
                            false => column as u64 * stride + row as u64,
                        };
                        out[lane] = base[lane].wrapping_add(scale(index));
                    }
                };
                self.decoder.emit(Op::Alu2(at, [base.base, stride], Box::new(f)));
                let reference = Reference { base: Source(at.slot), ..base };
                if loads {
                    let into = self.decoder.temporary(if is_double { 64 } else { 32 });
                    self.decoder.emit(Op::Load { from: reference, to: [Some(into)].into() });
                    parts.push(into);
                } else {
                    let from = self.decoder.source(register, if is_double { Scalar::B(64) } else { Scalar::B(32) })?;
                    let value = self.shifted(from, part * bits);
                    self.decoder.emit(Op::Store { to: reference, from: [value].into() });
                }
            }
            if loads {
                let target = self.decoder.target(register)?;
                let sources: Vec<Source> = parts.iter().map(|own| Source(own.slot)).collect();
                let f = move |from: &[Row], to: &mut [Row]| {
                    for (lane, into) in to[0].iter_mut().enumerate() {
                        *into = from.iter().enumerate().fold(0, |all, (part, row)| all | row[lane] << (bits * part));
                    }
                };
                self.decoder.emit(Op::AluMany([target].into(), sources.into(), Box::new(f)));
            }
        }
        Ok(())
    }

    /// A register shifted down by some bits.
    fn shifted(&mut self, from: Source, by: usize) -> Source {
        if by == 0 {
            return from;
        }
        let to: Target = self.decoder.temporary(32);
        self.decoder.emit(Op::Alu1(to, from, Box::new(move |a, d| *d = a.map(|value| value >> by))));
        Source(to.slot)
    }

    fn access_window(&self) -> Window {
        if self.modifiers.contains(&"global") {
            Window::Global
        } else if self.modifiers.iter().any(|word| word.starts_with("shared")) {
            Window::Shared
        } else {
            Window::Generic
        }
    }
}
