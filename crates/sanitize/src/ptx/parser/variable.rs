//! Parses variables and their initial values.

use super::super::lexer::Token;
use super::super::{Initial, Scalar, StateSpace, Variable};
use super::{MAX_NESTING, Parsed, Parser};

impl<'a> Parser<'a> {
    /// Parses `.space .align n .type name[n] = {..}, name ..;`.
    pub(super) fn variable(&mut self, is_extern: bool) -> Parsed<Vec<Variable<'a>>> {
        let line = self.line;
        let space = match self.token {
            Token::Dot("global") => StateSpace::Global,
            Token::Dot("const") => StateSpace::Const,
            Token::Dot("shared") => StateSpace::Shared,
            Token::Dot("local") => StateSpace::Local,
            Token::Dot("param") => StateSpace::Param,
            _ => return self.error(format!("variables of {} are not supported", self.shown())),
        };
        self.advance()?;
        let (mut align, mut element, mut width) = (None, None, 1);
        while let Token::Dot(word) = self.token {
            self.advance()?;
            match word {
                "align" => align = Some(self.alignment()?),
                "v2" => width = 2,
                "v4" => width = 4,
                "attribute" => {
                    self.expect(b'(')?;
                    while !self.take_sign(b')')? {
                        if self.token == Token::End {
                            return self.error("`)` is expected before the end of the text");
                        }
                        self.advance()?;
                    }
                }
                "texref" | "samplerref" | "surfref" => {
                    return self.error("textures, samplers and surfaces are not supported");
                }
                _ => match Scalar::read(word) {
                    Some(Scalar::Pred) | None => {
                        return self.error(format!("`.{word}` is no type of a variable"));
                    }
                    found => element = found,
                },
            }
        }
        let Some(element) = element else { return self.error("a variable has no type") };
        let mut found = Vec::new();
        loop {
            let name = self.word("the name of a variable")?;
            let (mut count, mut is_open) = (width, false);
            let mut is_first = true;
            while self.take_sign(b'[')? {
                if self.take_sign(b']')? {
                    if !is_first {
                        return self.error("only the first size can be left out");
                    }
                    is_open = true;
                } else {
                    let size = self.integer("a size")?;
                    self.expect(b']')?;
                    match size.checked_mul(count) {
                        Some(all) => count = all,
                        None => return self.error(format!("the variable `{name}` is too large")),
                    }
                }
                is_first = false;
            }
            let mut initial = Vec::new();
            if self.take_sign(b'=')? {
                self.initial(&mut initial, 0)?;
                if is_open {
                    (count, is_open) = (initial.len() as u64, false);
                }
                if initial.len() as u64 > count {
                    return self.error(format!("`{name}` has {count} elements and {} values", initial.len()));
                }
            }
            let bytes = match element.bytes().checked_mul(count).filter(|bytes| *bytes <= 1 << 48) {
                Some(bytes) => (!is_open).then_some(bytes),
                None => return self.error(format!("the variable `{name}` is too large")),
            };
            let natural = element.bytes() * width;
            let align = align.unwrap_or(natural);
            found.push(Variable { name, space, element, align, bytes, initial, is_extern, line });
            if !self.take_sign(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(found)
    }

    pub(super) fn alignment(&mut self) -> Parsed<u64> {
        let align = self.integer("an alignment")?;
        match align.is_power_of_two() && align <= 1 << 20 {
            true => Ok(align),
            false => self.error(format!("{align} is no alignment: a power of two of at most 2^20 is")),
        }
    }

    pub(super) fn initial(&mut self, found: &mut Vec<Initial<'a>>, depth: usize) -> Parsed<()> {
        if self.take_sign(b'{')? {
            if depth == MAX_NESTING {
                return self.error(format!("more than {MAX_NESTING} braces are open"));
            }
            while !self.take_sign(b'}')? {
                self.initial(found, depth + 1)?;
                if !self.take_sign(b',')? && !self.is_sign(b'}') {
                    return self.error(format!("`,` or `}}` is expected, not {}", self.shown()));
                }
            }
            return Ok(());
        }
        let is_negative = self.take_sign(b'-')?;
        let value = match self.advance()? {
            Token::Integer(value) if is_negative => Initial::Bits(value.wrapping_neg()),
            Token::Integer(value) => Initial::Bits(value),
            Token::Float32(bits) => Initial::Bits(u64::from(bits) ^ (u64::from(is_negative) << 31)),
            Token::Float64(bits) => Initial::Bits(bits ^ (u64::from(is_negative) << 63)),
            Token::Word("generic") if self.is_sign(b'(') => {
                self.expect(b'(')?;
                let name = self.word("the name of a variable")?;
                self.expect(b')')?;
                Initial::Address { name, offset: self.plus()?, generic: true }
            }
            Token::Word(name) => {
                if self.is_sign(b'(') {
                    return self.error("bytes of addresses are not supported in an initialiser");
                }
                Initial::Address { name, offset: self.plus()?, generic: false }
            }
            _ => return self.error("a value is expected"),
        };
        found.push(value);
        Ok(())
    }

    /// Parses an offset: `+n`, `-n`, or nothing.
    pub(super) fn plus(&mut self) -> Parsed<i64> {
        let is_minus = self.is_sign(b'-');
        if !is_minus && !self.is_sign(b'+') {
            return Ok(0);
        }
        self.advance()?;
        let is_negative = self.take_sign(b'-')? != is_minus;
        let value = self.integer("an offset")? as i64;
        Ok(if is_negative { value.wrapping_neg() } else { value })
    }
}
