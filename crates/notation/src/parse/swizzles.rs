//! Maps on offsets: swizzles and bit matrices.

use super::{Parsed, Parser};
use crate::ast::Node;
use crate::diagnostic::Diagnostic;
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

    /// `F2<outputs>[column,...]` after the `F2`.
    pub(super) fn matrix(&mut self, start: usize) -> Parsed {
        const FORM: &str = "a bit matrix is F2<outputs>[column,...]";
        self.open()?;
        let Kind::Int(outputs) = self.now.kind else { return self.unexpected("an integer").help(FORM).fail() };
        let token = self.advance()?;
        self.close(Kind::Greater, "'>'")?;
        let Some(outputs) = u8::try_from(outputs).ok() else {
            return Diagnostic::new("E0116", token.span(), "a bit matrix has at most 64 outputs")
                .label(token.span(), "too many")
                .fail();
        };
        if self.now.kind != Kind::OpenSquare {
            return self.unexpected("'['").help(FORM).fail();
        }
        self.open()?;
        let mark = self.pending.len();
        self.items(Kind::Comma, Kind::CloseSquare, "',' or ']'")?;
        if !self.take_numbers(mark) {
            return Diagnostic::new("E0201", start..self.end, "the columns of a bit matrix are integers")
                .help(FORM)
                .fail();
        }
        let (columns, _) = self.finish_list(mark);
        self.push(Node::Matrix { outputs, columns }, start..self.end, 1)
    }
}
