//! Primary expressions, the operands of operators.

use super::{Parsed, Parser};
use crate::ast::{Name, Node, Operator};
use crate::diagnostic::Diagnostic;
use crate::lex::Kind;

impl Parser<'_, '_> {
    /// A primary expression.
    pub(super) fn atom(&mut self) -> Parsed {
        let start = self.now.start;
        match self.now.kind {
            Kind::Int(value) => {
                let token = self.advance()?;
                self.push(Node::Int(value), token.span(), 1)
            }
            Kind::Underscore => {
                let token = self.advance()?;
                self.push(Node::Underscore, token.span(), 1)
            }
            Kind::Name => self.named(),
            Kind::Open => {
                self.open()?;
                let mark = self.pending.len();
                let trailing = self.items(Kind::Comma, Kind::Close, "',' or ')'")?;
                let numbers = self.take_numbers(mark);
                self.may_be_parameters(mark);
                let (items, height) = self.finish_list(mark);
                let node = if numbers { Node::Numbers { items } } else { Node::Tuple { items, trailing } };
                self.push(node, start..self.end, height)
            }
            Kind::OpenSquare | Kind::Less => {
                let square = self.now.kind == Kind::OpenSquare;
                self.open()?;
                let mark = self.pending.len();
                if square {
                    self.items(Kind::Semicolon, Kind::CloseSquare, "';' or ']'")?;
                } else {
                    self.items(Kind::Comma, Kind::Greater, "',' or '>'")?;
                }
                self.may_be_parameters(mark);
                let (items, height) = self.finish_list(mark);
                self.push(Node::Tiler { items }, start..self.end, height)
            }
            Kind::Question => {
                self.advance()?;
                self.parameter(start, None)
            }
            Kind::Caret => self.xor(),
            // A linear layout without inputs.
            Kind::Arrow => self.linear(start),
            Kind::At => self.unexpected("a value").help("a coordinate step is written scale@mode, such as 1@0").fail(),
            _ => self.unexpected("a value").fail(),
        }
    }

    /// An expression that begins with a name: a keyword, a call, a parameter, or a bound name.
    fn named(&mut self) -> Parsed {
        let token = self.advance()?;
        let text = self.text(token);
        match text {
            "None" => return self.push(Node::Underscore, token.span(), 1),
            "true" | "false" => return self.push(Node::Bool(text == "true"), token.span(), 1),
            "S" | "Sw" | "Swizzle" if self.now.kind == Kind::Less => return self.swizzle(token.start),
            "F2" if self.now.kind == Kind::Less => return self.matrix(token.start),
            "o" | "let" => {
                return Diagnostic::new("E0201", token.span(), format!("expected a value, found the word '{text}'"))
                    .label(token.span(), "expected a value")
                    .help(if text == "o" { "composition is written A o B" } else { "write let name = expression" })
                    .fail();
            }
            _ => {}
        }
        if let Some(numbers) = text.strip_prefix("SW_") {
            return self.underscored_swizzle(token, numbers);
        }
        if self.at_images() {
            return self.linear(token.start);
        }
        match self.now.kind {
            Kind::Open if text == "floor" => self.rounded(token.start, Operator::Floor),
            Kind::Open if text == "ceil" => self.rounded(token.start, Operator::Ceil),
            Kind::Open if text == "trunc" => self.rounded(token.start, Operator::Over),
            Kind::Open => {
                let mark = self.pending.len();
                self.arguments()?;
                let (arguments, height) = self.finish_list(mark);
                let name = Name { start: token.start as u32, end: token.end as u32 };
                self.push(Node::Call { name, arguments }, token.start..self.end, height)
            }
            Kind::OpenBrace => {
                let name = Name { start: token.start as u32, end: token.end as u32 };
                self.parameter(token.start, Some(name))
            }
            _ => self.push(Node::Name, token.span(), 1),
        }
    }
}
