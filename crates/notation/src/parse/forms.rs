//! Forms with a grammar of their own: swizzles, and the steps and extents of later versions.

use std::ops::Range;

use super::{Parsed, Parser};
use crate::ast::Node;
use crate::diagnostic::{Diagnostic, Fail};
use crate::lex::{Kind, Token};

impl Parser<'_, '_> {
    /// `S<b,m,s>` after the `S`.
    pub(super) fn swizzle(&mut self, start: usize) -> Parsed {
        self.open()?;
        let mut numbers = [0_i64; 3];
        for (position, number) in numbers.iter_mut().enumerate() {
            if position > 0 && !self.eat(Kind::Comma)? {
                return self.unexpected("','").help("a swizzle is S<bits,base,shift>").fail();
            }
            let Kind::Int(value) = self.now.kind else {
                return self.unexpected("an integer").help("a swizzle is S<bits,base,shift>").fail();
            };
            *number = value;
            self.advance()?;
        }
        self.close(Kind::Greater, "'>'")?;
        let [bits, base, shift] = numbers;
        self.push(Node::Swizzle { bits, base, shift }, start..self.end, 1)
    }

    /// `SW_3_4_3`, whose name is one token unless the shift is negative.
    pub(super) fn underscored_swizzle(&mut self, token: Token, numbers: &str) -> Parsed {
        let mut parts: Vec<Option<i64>> = numbers.split('_').map(|part| part.parse().ok()).collect();
        if let (Some(None), Kind::Int(shift)) = (parts.last(), self.now.kind)
            && shift < 0
            && self.now.start == token.end
        {
            parts.pop();
            parts.push(Some(shift));
            self.advance()?;
        }
        match parts.as_slice() {
            [Some(bits), Some(base), Some(shift)] => {
                let node = Node::Swizzle { bits: *bits, base: *base, shift: *shift };
                self.push(node, token.start..self.end, 1)
            }
            _ => Diagnostic::new("E0201", token.span(), "expected a swizzle SW_bits_base_shift, such as SW_3_4_3")
                .label(token.span(), "not three numbers")
                .fail(),
        }
    }

    /// Reads a step, extent or fact that the grammar has and this version cannot compute with, and says so.
    ///
    /// The first token may have been read already. The answer is the refusal.
    #[cold]
    pub(super) fn later_step(&mut self, start: usize) -> Result<Diagnostic, Fail> {
        let mut what = ("symbolic extents and strides", "a number that is known only later, such as ? or M{div=8},");
        if self.now.kind == Kind::Question {
            self.advance()?;
        }
        if self.now.kind == Kind::OpenBrace {
            while !matches!(self.now.kind, Kind::CloseBrace | Kind::End | Kind::Newline | Kind::Semicolon) {
                self.advance()?;
            }
            self.eat(Kind::CloseBrace)?;
        }
        if self.now.kind == Kind::Caret {
            what = ("XOR steps", "an XOR step, such as ^9,");
            self.advance()?;
            if !matches!(self.now.kind, Kind::Int(_)) {
                return Ok(self.unexpected("an integer"));
            }
            self.advance()?;
        }
        if self.now.kind == Kind::Slash {
            what = ("fractional strides", "a fraction, such as 1/2,");
            self.advance()?;
            if !matches!(self.now.kind, Kind::Int(_)) {
                return Ok(self.unexpected("an integer"));
            }
            self.advance()?;
        }
        while self.now.kind == Kind::At {
            what = ("coordinate steps", "a step along a mode of a coordinate, such as 1@0,");
            self.advance()?;
            if !matches!(self.now.kind, Kind::Int(_)) {
                return Ok(self.unexpected("the number of a mode"));
            }
            self.advance()?;
        }
        Ok(unsupported(start..self.end, what.0, what.1))
    }
}

/// The refusal of what a later version will compute with.
#[cold]
pub(crate) fn unsupported(span: Range<usize>, plural: &str, this: &str) -> Diagnostic {
    Diagnostic::new("E0210", span.clone(), format!("{plural} are not supported by this version"))
        .label(span, "understood, but not computed with")
        .help(format!("{this} is part of the notation; in this version extents and strides are integers"))
}
