//! Arguments of calls, some of which may be given by name: `size(A, mode=[0])`.

use super::{Parsed, Parser};
use crate::ast::{Name, Node};
use crate::diagnostic::Fail;
use crate::lex::{Kind, Lexer};

impl Parser<'_, '_> {
    /// `'(' args ')'`, pushed onto the pending list.
    pub(super) fn arguments(&mut self) -> Result<(), Fail> {
        self.open()?;
        while self.now.kind != Kind::Close {
            let item = if self.keyword_ahead() { self.named_argument()? } else { self.chain()? };
            self.may_be_parameter(item);
            self.pending.push(item);
            if !self.eat(Kind::Comma)? {
                break;
            }
        }
        self.close(Kind::Close, "',' or ')'")
    }

    /// Whether a name and `=` come next, and not a linear layout.
    fn keyword_ahead(&self) -> bool {
        let mut ahead = Lexer::at(self.source, self.now.end);
        self.now.kind == Kind::Name
            && ahead.next().is_ok_and(|token| token.kind == Kind::Equals)
            && !self.linear_ahead()
    }

    /// Parses `name=value`, at the name.
    fn named_argument(&mut self) -> Parsed {
        let token = self.advance()?;
        self.advance()?;
        let value = if self.now.kind == Kind::OpenSquare { self.bracketed()? } else { self.chain()? };
        self.program.keywords.push((value, Name { start: token.start as u32, end: token.end as u32 }));
        Ok(value)
    }

    /// Parses `[a,b]` as the tuple of its items, like a Python list; with `;` it is a tiler.
    fn bracketed(&mut self) -> Parsed {
        let start = self.now.start;
        self.open()?;
        let mark = self.pending.len();
        let mut separator = None;
        while self.now.kind != Kind::CloseSquare {
            let item = self.chain()?;
            self.pending.push(item);
            if !matches!(self.now.kind, Kind::Semicolon | Kind::Comma)
                || *separator.get_or_insert(self.now.kind) != self.now.kind
            {
                break;
            }
            self.advance()?;
        }
        let tiler = separator == Some(Kind::Semicolon);
        self.close(Kind::CloseSquare, "',', ';' or ']'")?;
        let numbers = !tiler && self.take_numbers(mark);
        self.may_be_parameters(mark);
        let (items, height) = self.finish_list(mark);
        let node = match (tiler, numbers) {
            (true, _) => Node::Tiler { items },
            (_, true) => Node::Numbers { items },
            _ => Node::Tuple { items, trailing: true },
        };
        self.push(node, start..self.end, height)
    }
}
