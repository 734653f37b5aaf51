//! Morphisms of tuples: `(4,5) -> (4,16,5) : (1,3)`.

use super::{Parsed, Parser};
use crate::ast::{Name, Node, NodeId};
use crate::diagnostic::Fail;
use crate::lex::Kind;

/// What would help where a morphism is not one.
const FORM: &str = "a morphism is written (4,5) -> (4,16,5) : (1,3)";

impl Parser<'_, '_> {
    /// `-> codomain : images` after the domain.
    pub(super) fn morphism(&mut self, domain: NodeId) -> Parsed {
        self.advance()?;
        self.skip_lines()?;
        let codomain = self.sum()?;
        if self.now.kind != Kind::Colon {
            return self.unexpected("':' and where each entry is sent").help(FORM).fail();
        }
        self.advance()?;
        self.skip_lines()?;
        let images = self.images()?;
        let height = self.height(domain).max(self.height(codomain)) + 1;
        self.push(Node::Morphism { domain, codomain, images }, self.start(domain)..self.end, height)
    }

    /// The extent of a tuple of places and `*`; it is read again, with care, when it is evaluated.
    fn images(&mut self) -> Result<Name, Fail> {
        let (start, mut depth) = (self.now.start, 0);
        loop {
            match self.now.kind {
                Kind::Open => {
                    self.open()?;
                    depth += 1;
                }
                Kind::Close if depth > 0 => {
                    self.close(Kind::Close, "')'")?;
                    depth -= 1;
                }
                Kind::Comma if depth > 0 => {
                    self.advance()?;
                }
                Kind::Int(_) | Kind::Star => {
                    self.advance()?;
                }
                _ => return self.unexpected("a place of the codomain, counted from 1, or '*'").help(FORM).fail(),
            }
            if depth == 0 {
                return Ok(Name { start: start as u32, end: self.end as u32 });
            }
        }
    }
}
