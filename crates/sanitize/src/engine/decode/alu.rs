//! Instructions that compute from registers to registers: their operands and modifiers.

#[macro_use]
pub(super) mod functions;

use self::functions::{
    binary, compare_halves, conversion, half, number_type, one, packed_integers, rounding, ternary, test, three, two,
    unary, unknown,
};
use super::{Decode, Decoder, exactly, types};
use crate::engine::code::{Comparer, Function3, Logic, Op, Row, Source, Truth};
use crate::isa::bits::{self};
use crate::isa::compare::Comparison;
use crate::isa::convert::{
    ConvertMode, Quarter, f16_of_quarters, pack_sat, pair_of_f32, quarters_of_f16, quarters_of_f32, tf32,
};
use crate::isa::float::{self, TestProperty};
use crate::isa::half::Half;
use crate::isa::integer::Integer;
use crate::ptx::{Operand, Scalar};

impl<'a> Decoder<'_, 'a> {
    pub(super) fn alu_instruction(
        &mut self,
        opcode: &str,
        modifiers: &[&'a str],
        operands: &[Operand<'a>],
    ) -> Decode<bool> {
        match opcode {
            "mov" => self.move_instruction(modifiers, operands)?,
            "cvt" => self.convert_instruction(modifiers, operands)?,
            "setp" => self.compare_instruction(modifiers, operands)?,
            "set" => self.set_instruction(modifiers, operands)?,
            _ if opcode.starts_with('v') => self.video_instruction(opcode, modifiers, operands)?,
            "selp" => {
                let [d, a, b, p] = exactly(operands)?;
                let kind = self.last_type(modifiers)?;
                let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
                let p = self.truth(p)?;
                self.emit(Op::Select { d, a, b, p });
            }
            "testp" => {
                let [p, a] = exactly(operands)?;
                let kind = self.last_type(modifiers)?;
                let property = match modifiers.first() {
                    Some(&"finite") => TestProperty::Finite,
                    Some(&"infinite") => TestProperty::Infinite,
                    Some(&"number") => TestProperty::Number,
                    Some(&"notanumber") => TestProperty::NotANumber,
                    Some(&"normal") => TestProperty::Normal,
                    Some(&"subnormal") => TestProperty::Subnormal,
                    _ => return Err("this property is not known".to_string()),
                };
                let a = self.source(a, kind)?;
                let p = self.predicate(p)?;
                let test = match kind {
                    Scalar::F(32) => test(move |a, _| float::testp32(a as u32, property)),
                    Scalar::F(64) => test(move |a, _| float::testp64(a, property)),
                    _ => return unknown(),
                };
                self.emit(Op::Compare { p, q: None, a, b: a, test, with: None });
            }
            "and" | "or" | "xor" if modifiers.contains(&"pred") => {
                let [d, a, b] = exactly(operands)?;
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                let logic = match opcode {
                    "and" => Logic::And,
                    "or" => Logic::Or,
                    _ => Logic::Xor,
                };
                if let Some(d) = self.predicate(d)? {
                    self.emit(Op::Predicate { d, a, b, logic });
                }
            }
            "not" if modifiers.contains(&"pred") => {
                let [d, a] = exactly(operands)?;
                let a = self.truth(a)?;
                if let Some(d) = self.predicate(d)? {
                    self.emit(Op::Predicate { d, a, b: Truth::Constant(true), logic: Logic::Xor });
                }
            }
            "lop3" => self.lop3_instruction(modifiers, operands)?,
            "addc" | "subc" | "madc" => self.carry_instruction(opcode, modifiers, operands)?,
            "add" | "sub" | "mad" if modifiers.contains(&"cc") => {
                self.carry_instruction(opcode, modifiers, operands)?;
            }
            _ => return self.function_instruction(opcode, modifiers, operands),
        }
        Ok(true)
    }

    /// Decodes instructions that are a function of one, two or three registers.
    fn function_instruction(&mut self, opcode: &str, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<bool> {
        let packed = modifiers.iter().copied().find(|word| matches!(*word, "u16x2" | "s16x2"));
        let all = types(modifiers);
        let Some(kind) = all.last().copied().or(packed.map(|_| Scalar::B(32))) else {
            return Err("this instruction is not known".to_string());
        };
        // `slct`, `dp4a` and `dp2a` have two types. So do additions with mixed formats, which are
        // newer.
        if all.len() > 1 && !matches!(opcode, "slct" | "dp4a" | "dp2a") {
            return Err("it has more types than the instruction of targets up to sm_90a".to_string());
        }
        if let Some(packed) = packed {
            let f = packed_integers(opcode, packed == "s16x2", modifiers)?;
            let [d, a, b] = exactly(operands)?;
            let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
            self.emit(Op::Alu2(d, [a, b], f));
            return Ok(true);
        }
        match operands.len() {
            2 => {
                let Some(f) = unary(opcode, kind, modifiers)? else { return Ok(false) };
                let [d, a] = exactly(operands)?;
                let (d, a) = (self.target(d)?, self.source(a, kind)?);
                self.emit(Op::Alu1(d, a, f));
            }
            3 => {
                let Some(f) = binary(opcode, kind, modifiers)? else { return Ok(false) };
                let [d, a, b] = exactly(operands)?;
                let second = if matches!(opcode, "shl" | "shr" | "szext" | "bmsk") { Scalar::U(32) } else { kind };
                let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, second)?);
                self.emit(Op::Alu2(d, [a, b], f));
            }
            4 => {
                let Some(f) = ternary(opcode, kind, modifiers)? else { return Ok(false) };
                let [d, a, b, c] = exactly(operands)?;
                // The addend of a wide product has the wide type. `slct` selects by its second
                // type.
                let (first, last) = match opcode {
                    "mad" if modifiers.contains(&"wide") => (kind, Scalar::B((2 * kind.bits()).min(64) as u8)),
                    "slct" => (all.first().copied().unwrap_or(kind), kind),
                    "bfe" => (kind, Scalar::U(32)),
                    _ => (kind, kind),
                };
                let middle = match opcode {
                    "bfe" => Scalar::U(32),
                    _ => first,
                };
                let (d, a) = (self.target(d)?, self.source(a, first)?);
                let (b, c) = (self.source(b, middle)?, self.source(c, last)?);
                self.emit(Op::Alu3(d, [a, b, c], f));
            }
            5 if opcode == "bfi" => {
                let [d, a, b, c, e] = exactly(operands)?;
                let d = self.target(d)?;
                let from = [
                    self.source(a, kind)?,
                    self.source(b, kind)?,
                    self.source(c, Scalar::U(32))?,
                    self.source(e, Scalar::U(32))?,
                ];
                let width = kind.bits();
                let f = move |rows: &[Row], out: &mut [Row]| {
                    for lane in 0..32 {
                        out[0][lane] =
                            bits::bfi(rows[0][lane], rows[1][lane], rows[2][lane] as u32, rows[3][lane] as u32, width);
                    }
                };
                self.emit(Op::AluMany([d].into(), from.into(), Box::new(f)));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn move_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let [d, a] = exactly(operands)?;
        let kind = self.last_type(modifiers)?;
        match (d, a) {
            // One special register is a predicate.
            (d, Operand::Special("%is_explicit_cluster")) if kind == Scalar::Pred => {
                let a = self.source(a, kind)?;
                if let Some(p) = self.predicate(d)? {
                    self.emit(Op::Nonzero { p, a, logic: Logic::And, q: Truth::Constant(true) });
                }
            }
            _ if kind == Scalar::Pred => {
                let a = self.truth(a)?;
                if let Some(d) = self.predicate(d)? {
                    self.emit(Op::Predicate { d, a, b: Truth::Constant(true), logic: Logic::And });
                }
            }
            (Operand::Vector(parts), a) => {
                let bits = kind.bits() / parts.len().max(1) as u32;
                let from: Vec<Source> = match kind.bits() {
                    128 => self.halves(a)?.iter().map(|half| Source(half.slot)).collect(),
                    _ => vec![self.source(a, kind)?],
                };
                // The destinations of an unpacking move may overlap its source.
                let mut all = Vec::new();
                let mut shifts = Vec::new();
                for (at, part) in parts.iter().enumerate() {
                    if *part != Operand::Sink {
                        all.push(self.target(part)?);
                        shifts.push(at as u32 * bits);
                    }
                }
                let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                let f = move |rows: &[Row], out: &mut [Row]| {
                    for (shift, out) in shifts.iter().zip(out) {
                        let row = &rows[(*shift / 64) as usize % rows.len()];
                        (0..32).for_each(|lane| out[lane] = row[lane] >> (shift % 64) & mask);
                    }
                };
                self.emit(Op::AluMany(all.into(), from.into(), Box::new(f)));
            }
            (d, Operand::Vector(parts)) => {
                let bits = kind.bits() / parts.len().max(1) as u32;
                let part_kind = Scalar::B(bits.min(64) as u8);
                let mut from = Vec::new();
                for part in parts {
                    from.push(self.source(part, part_kind)?);
                }
                let targets = match kind.bits() {
                    128 => self.halves(d)?.to_vec(),
                    _ => vec![self.target(d)?],
                };
                let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                let f = move |rows: &[Row], out: &mut [Row]| {
                    let count = out.len();
                    for (at, row) in rows.iter().enumerate() {
                        let shift = at as u32 * bits;
                        let out = &mut out[(shift / 64) as usize % count];
                        (0..32).for_each(|lane| out[lane] |= (row[lane] & mask) << (shift % 64));
                    }
                };
                self.emit(Op::AluMany(targets.into(), from.into(), Box::new(f)));
            }
            (d, a) if kind.bits() == 128 => {
                let (to, from) = (self.halves(d)?, self.halves(a)?);
                for (to, from) in to.into_iter().zip(from) {
                    self.emit(Op::Alu1(to, Source(from.slot), Box::new(|a, d| *d = *a)));
                }
            }
            (d, a) => {
                let (d, a) = (self.target(d)?, self.source(a, kind)?);
                self.emit(Op::Alu1(d, a, Box::new(|a, d| *d = *a)));
            }
        }
        Ok(())
    }

    fn comparison(&self, modifiers: &[&'a str], kind: Scalar) -> Decode<(Comparison, Comparer)> {
        let word = modifiers.first().copied().unwrap_or_default();
        let is_float = kind.is_float();
        let comparison = match word {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "lt" | "lo" => Comparison::Lt,
            "le" | "ls" => Comparison::Le,
            "gt" | "hi" => Comparison::Gt,
            "ge" | "hs" => Comparison::Ge,
            "equ" if is_float => Comparison::Equ,
            "neu" if is_float => Comparison::Neu,
            "ltu" if is_float => Comparison::Ltu,
            "leu" if is_float => Comparison::Leu,
            "gtu" if is_float => Comparison::Gtu,
            "geu" if is_float => Comparison::Geu,
            "num" if is_float => Comparison::Num,
            "nan" if is_float => Comparison::Nan,
            _ => return Err(format!("the comparison `{word}` is not known for this type")),
        };
        let flush = modifiers.contains(&"ftz");
        let own = comparison;
        let test = match (kind, comparison) {
            (Scalar::F(32), _) => test(move |a, b| own.f32(a as u32, b as u32, flush)),
            (Scalar::F(64), _) => test(move |a, b| own.f64(a, b)),
            (Scalar::F(16), _) => test(move |a, b| compare_halves(own, Half::F16, a as u16, b as u16)),
            (Scalar::Bf16, _) => test(move |a, b| compare_halves(own, Half::Bf16, a as u16, b as u16)),
            (Scalar::F16x2 | Scalar::Bf16x2 | Scalar::F32x2 | Scalar::Tf32, _) => return unknown(),
            // Frequent cases are written out, so that loops over lanes become vector instructions.
            (_, Comparison::Eq) => by_integer!(kind, T => test(|a, b| T::of_bits(a) == T::of_bits(b))),
            (_, Comparison::Ne) => by_integer!(kind, T => test(|a, b| T::of_bits(a) != T::of_bits(b))),
            (_, Comparison::Lt) => by_integer!(kind, T => test(|a, b| T::of_bits(a) < T::of_bits(b))),
            (_, Comparison::Le) => by_integer!(kind, T => test(|a, b| T::of_bits(a) <= T::of_bits(b))),
            (_, Comparison::Gt) => by_integer!(kind, T => test(|a, b| T::of_bits(a) > T::of_bits(b))),
            (_, Comparison::Ge) => by_integer!(kind, T => test(|a, b| T::of_bits(a) >= T::of_bits(b))),
            _ => return unknown(),
        };
        Ok((comparison, test))
    }

    fn combined(&self, modifiers: &[&'a str], operand: Option<&Operand<'a>>) -> Decode<Option<(Logic, Truth)>> {
        let logic = modifiers.iter().skip(1).find_map(|word| match *word {
            "and" => Some(Logic::And),
            "or" => Some(Logic::Or),
            "xor" => Some(Logic::Xor),
            _ => None,
        });
        match (logic, operand) {
            (Some(logic), Some(operand)) => Ok(Some((logic, self.truth(operand)?))),
            (None, None) => Ok(None),
            _ => Err("a predicate and how it is combined go together".to_string()),
        }
    }

    fn compare_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let (d, a, b, c) = match operands {
            [d, a, b] => (d, a, b, None),
            [d, a, b, c] => (d, a, b, Some(c)),
            _ => return Err("three or four operands are expected".to_string()),
        };
        let kind = self.last_type(modifiers)?;
        let with = self.combined(modifiers, c)?;
        let (a, b) = (self.source(a, kind)?, self.source(b, kind)?);
        let (p, q) = match d {
            Operand::Pair(p, q) => (self.predicate(p)?, self.predicate(q)?),
            p => (self.predicate(p)?, None),
        };
        if let Some((half, true)) = half(kind) {
            // Each of two packed numbers has its own predicate.
            let single = if half == Half::F16 { Scalar::F(16) } else { Scalar::Bf16 };
            let (own, _) = self.comparison(modifiers, single)?;
            for (p, shift) in [(p, 0), (q, 16)] {
                let test = test(move |a, b| compare_halves(own, half, (a >> shift) as u16, (b >> shift) as u16));
                if p.is_some() {
                    self.emit(Op::Compare { p, q: None, a, b, test, with });
                }
            }
            return Ok(());
        }
        let (_, test) = self.comparison(modifiers, kind)?;
        self.emit(Op::Compare { p, q, a, b, test, with });
        Ok(())
    }

    fn set_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let (d, a, b, c) = match operands {
            [d, a, b] => (d, a, b, None),
            [d, a, b, c] => (d, a, b, Some(c)),
            _ => return Err("three or four operands are expected".to_string()),
        };
        let all = types(modifiers);
        let [result, kind] = all[..] else { return Err("two types are expected".to_string()) };
        let with = self.combined(modifiers, c)?;
        let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
        if let Some((half, true)) = half(kind) {
            let single = if half == Half::F16 { Scalar::F(16) } else { Scalar::Bf16 };
            let (own, _) = self.comparison(modifiers, single)?;
            let one: u16 = match result {
                Scalar::F16x2 => 0x3c00,
                Scalar::Bf16x2 => 0x3f80,
                _ => 0xffff,
            };
            // Each of two packed numbers is compared and combined on its own.
            let mut both = [d; 2];
            for (d, shift) in both.iter_mut().zip([0, 16]) {
                *d = self.temporary(32);
                let test = test(move |a, b| compare_halves(own, half, (a >> shift) as u16, (b >> shift) as u16));
                self.emit(Op::CompareValue { d: *d, a, b, test, with, one: u64::from(one) << shift });
            }
            self.emit(Op::Alu2(d, both.map(|own| Source(own.slot)), two(|a, b| a | b)));
            return Ok(());
        }
        let (_, test) = self.comparison(modifiers, kind)?;
        let one = match result {
            Scalar::F(32) => u64::from(1.0_f32.to_bits()),
            Scalar::F(16) => 0x3c00,
            Scalar::Bf16 => 0x3f80,
            Scalar::U(16) | Scalar::S(16) => 0xffff,
            _ => 0xffff_ffff,
        };
        self.emit(Op::CompareValue { d, a, b, test, with, one });
        Ok(())
    }

    fn lop3_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let (d, a, b, c, table, q) = match operands {
            [d, a, b, c, table] => (d, a, b, c, table, None),
            [d, a, b, c, table, q] => (d, a, b, c, table, Some(q)),
            _ => return Err("five or six operands are expected".to_string()),
        };
        let Operand::Integer(table) = table else { return Err("the table must be a number".to_string()) };
        let table = *table as u8;
        let kind = Scalar::B(32);
        let from = [self.source(a, kind)?, self.source(b, kind)?, self.source(c, kind)?];
        let (d, p) = match d {
            Operand::Pair(d, p) => (self.target(d)?, self.predicate(p)?),
            d => (self.target(d)?, None),
        };
        let f: Function3 = match table {
            // Frequent cases are written out.
            0x96 => three(|a, b, c| a ^ b ^ c),
            0x80 => three(|a, b, c| a & b & c),
            0xfe => three(|a, b, c| a | b | c),
            0xc0 => three(|a, b, _| a & b),
            0xea => three(|a, b, c| a & b | c),
            0xf8 => three(|a, b, c| a | b & c),
            0x6c => three(|a, b, c| a & c ^ b),
            0x78 => three(|a, b, c| a ^ b & c),
            _ => three(move |a, b, c| u64::from(bits::lop3(a as u32, b as u32, c as u32, table))),
        };
        self.emit(Op::Alu3(d, from, f));
        if let (Some(p), Some(q)) = (p, q) {
            let logic = match modifiers.first() {
                Some(&"or") => Logic::Or,
                Some(&"and") => Logic::And,
                _ => return Err("or or and is expected".to_string()),
            };
            let q = self.truth(q)?;
            self.emit(Op::Nonzero { p, a: Source(d.slot), logic, q });
        }
        Ok(())
    }

    fn carry_instruction(&mut self, opcode: &str, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let kind = self.last_type(modifiers)?;
        let bits = kind.bits() as u8;
        let reads = opcode.ends_with('c');
        let writes = modifiers.contains(&"cc");
        let (d, a, b) = match (opcode, operands) {
            ("mad" | "madc", [d, a, b, c]) => {
                let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
                let c = self.source(c, kind)?;
                let product = self.temporary(bits);
                let f = match modifiers.contains(&"hi") {
                    true => integers2!(kind, mul_hi),
                    false => integers2!(kind, mul),
                };
                self.emit(Op::Alu2(product, [a, b], f));
                (d, Source(product.slot), c)
            }
            (_, [d, a, b]) => (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?),
            _ => return Err("another number of operands is expected".to_string()),
        };
        if !matches!(bits, 32 | 64) {
            return unknown();
        }
        self.emit(Op::Carry { d, a, b, subtracts: opcode.starts_with("sub"), reads, writes, bits });
        Ok(())
    }

    fn convert_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let (rounding, integral) = rounding(modifiers);
        let flush = modifiers.contains(&"ftz");
        let saturate = modifiers.contains(&"sat");
        let relu = modifiers.contains(&"relu");
        let finite = modifiers.contains(&"satfinite");
        let mode = ConvertMode { rounding, integral, flush, saturate, relu, finite };
        if modifiers.contains(&"rs") {
            return Err("stochastic rounding is of targets from sm_100 on".to_string());
        }
        let [.., to, from] = modifiers else { return Err("two types are expected".to_string()) };
        let quarter = |word: &str| match word {
            "e4m3x2" => Some(Quarter::E4m3),
            "e5m2x2" => Some(Quarter::E5m2),
            _ => None,
        };
        if modifiers.first() == Some(&"pack") {
            return self.pack_instruction(modifiers, operands);
        }
        match (*to, *from, operands) {
            ("f16x2" | "bf16x2", "f32", [d, a, b]) => {
                let half = if *to == "f16x2" { Half::F16 } else { Half::Bf16 };
                let (d, a, b) = (self.target(d)?, self.source(a, Scalar::F(32))?, self.source(b, Scalar::F(32))?);
                let f = two(move |a, b| u64::from(pair_of_f32(half, mode, a as u32, b as u32)));
                self.emit(Op::Alu2(d, [a, b], f));
            }
            (to, "f32", [d, a, b]) if quarter(to).is_some() => {
                let Some(quarter) = quarter(to) else { return unknown() };
                let (d, a, b) = (self.target(d)?, self.source(a, Scalar::F(32))?, self.source(b, Scalar::F(32))?);
                let f = two(move |a, b| u64::from(quarters_of_f32(quarter, relu, a as u32, b as u32)));
                self.emit(Op::Alu2(d, [a, b], f));
            }
            (to, "f16x2", [d, a]) if quarter(to).is_some() => {
                let Some(quarter) = quarter(to) else { return unknown() };
                let (d, a) = (self.target(d)?, self.source(a, Scalar::F16x2)?);
                self.emit(Op::Alu1(d, a, one(move |a| u64::from(quarters_of_f16(quarter, relu, a as u32)))));
            }
            ("f16x2", from, [d, a]) if quarter(from).is_some() => {
                let Some(quarter) = quarter(from) else { return unknown() };
                let (d, a) = (self.target(d)?, self.source(a, Scalar::B(16))?);
                self.emit(Op::Alu1(d, a, one(move |a| u64::from(f16_of_quarters(quarter, relu, a as u16)))));
            }
            ("tf32", "f32", [d, a]) => {
                let (d, a) = (self.target(d)?, self.source(a, Scalar::F(32))?);
                self.emit(Op::Alu1(d, a, one(move |a| u64::from(tf32(mode, a as u32)))));
            }
            (to, from, [d, a]) => {
                let (Some(to), Some(from)) = (number_type(to), number_type(from)) else { return unknown() };
                let kind = Scalar::read(modifiers[modifiers.len() - 1]).unwrap_or(Scalar::B(64));
                let (d, a) = (self.target(d)?, self.source(a, kind)?);
                let f = conversion(from, to, mode);
                self.emit(Op::Alu1(d, a, f));
            }
            _ => return unknown(),
        }
        Ok(())
    }

    fn pack_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        // `cvt.pack.sat.u8.s32.b32 d, a, b, c`
        let words: Vec<&str> = modifiers.iter().copied().filter(|word| !matches!(*word, "pack" | "sat")).collect();
        let (width, signed) = match words.first() {
            Some(&"u16") => (16, false),
            Some(&"s16") => (16, true),
            Some(&"u8") => (8, false),
            Some(&"s8") => (8, true),
            Some(&"u4") => (4, false),
            Some(&"s4") => (4, true),
            Some(&"u2") => (2, false),
            Some(&"s2") => (2, true),
            _ => return unknown(),
        };
        let kind = Scalar::B(32);
        match operands {
            [d, a, b] => {
                let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
                let f = two(move |a, b| u64::from(pack_sat(a as i32, b as i32, None, width, signed)));
                self.emit(Op::Alu2(d, [a, b], f));
            }
            [d, a, b, c] => {
                let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
                let c = self.source(c, kind)?;
                let f = three(move |a, b, c| u64::from(pack_sat(a as i32, b as i32, Some(c as u32), width, signed)));
                self.emit(Op::Alu3(d, [a, b, c], f));
            }
            _ => return Err("three or four operands are expected".to_string()),
        }
        Ok(())
    }
}
