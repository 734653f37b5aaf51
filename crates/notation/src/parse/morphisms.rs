//! Morphisms of tuples: `(4,5) -> (4,16,5) : (1,3)`.

use super::{Parsed, Parser};
use crate::ast::{Name, Node, NodeId};
use crate::diagnostic::Fail;
use crate::lex::Kind;

/// A hint on the form of a morphism.
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

    /// The location of a tuple of entry numbers and `*`. Evaluation reads it again and checks it.
    fn images(&mut self) -> Result<Name, Fail> {
        let start = self.now.start;
        self.literal("a place of the codomain, counted from 1, or '*'", FORM)?;
        Ok(Name { start: start as u32, end: self.end as u32 })
    }
}
