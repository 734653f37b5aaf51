//! Linear layouts: `register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2`.

use super::{Parsed, Parser};
use crate::ast::Node;
use crate::diagnostic::Fail;
use crate::lex::{Kind, Lexer};

/// A hint on the form of a linear layout.
const FORM: &str = "a linear layout is written lane=[(1,0),(2,0)] -> row:4 column:2";

impl Parser<'_, '_> {
    /// Whether the images of an input follow its name: `=[`.
    pub(super) fn at_images(&self) -> bool {
        let mut ahead = Lexer::at(self.source, self.now.end);
        self.now.kind == Kind::Equals && ahead.next().is_ok_and(|token| token.kind == Kind::OpenSquare)
    }

    /// Whether a name and `=` begin a linear layout instead of binding the name to a tiler: then
    /// `->` or another input follows the bracket.
    pub(super) fn linear_ahead(&self) -> bool {
        let mut ahead = Lexer::at(self.source, self.now.end);
        let mut next = || ahead.next().map_or(Kind::End, |token| token.kind);
        if (next(), next()) != (Kind::Equals, Kind::OpenSquare) {
            return false;
        }
        let mut depth = 1_usize;
        while depth > 0 {
            match next() {
                Kind::OpenSquare => depth += 1,
                Kind::CloseSquare => depth -= 1,
                Kind::End => return false,
                _ => {}
            }
        }
        match next() {
            Kind::Arrow => true,
            Kind::Name => next() == Kind::Equals,
            _ => false,
        }
    }

    /// Parses the rest of a linear layout from `=` or `->` on. Evaluation reads it again and checks
    /// it.
    pub(super) fn linear(&mut self, start: usize) -> Parsed {
        while self.now.kind == Kind::Equals {
            self.advance()?;
            self.bases()?;
            if self.now.kind == Kind::Name {
                self.advance()?;
                if self.now.kind != Kind::Equals {
                    return self.unexpected("'=' after the name of an input").help(FORM).fail();
                }
            }
        }
        if self.now.kind != Kind::Arrow {
            return self.unexpected("'->' before the outputs, or a further input").help(FORM).fail();
        }
        self.advance()?;
        while self.now.kind == Kind::Name && self.colon_ahead() {
            self.advance()?;
            self.advance()?;
            let Kind::Int(_) = self.now.kind else {
                return self.unexpected("the size of an output").help(FORM).fail();
            };
            self.advance()?;
        }
        self.push(Node::Linear, start..self.end, 1)
    }

    fn colon_ahead(&self) -> bool {
        Lexer::at(self.source, self.now.end).next().is_ok_and(|token| token.kind == Kind::Colon)
    }

    /// `[(1,0),(2,0)]`
    fn bases(&mut self) -> Result<(), Fail> {
        self.open()?;
        while self.now.kind != Kind::CloseSquare {
            self.literal("the image of a power of two, as a tuple of indices", FORM)?;
            if !self.eat(Kind::Comma)? {
                break;
            }
        }
        self.close(Kind::CloseSquare, "',' or ']'")
    }
}
