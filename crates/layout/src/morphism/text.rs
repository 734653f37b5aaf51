//! Text of morphisms. Law: the printed text parses to the same value.
//!
//! ```text
//! morphism := tuple '->' tuple ':' images       (4,5) -> (4,16,5) : (1,3)
//! images   := image | '(' [ images { ',' images } ] ')'
//! image    := '*' | place                       counted from 1; `*` is the base point
//! ```
//!
//! The images of a nested morphism are nested like its domain; a flat tuple of images is accepted,
//! too.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::Cursor;
use crate::ground::words::debug_as_text;
use crate::morphism::error::MorphismError;
use crate::morphism::nest::NestMorphism;
use crate::morphism::pointed::write_image;
use crate::morphism::tuple::{Listed, TupleMorphism};
use crate::{LayoutError, Literal, Tree};

/// An image as written.
#[derive(Clone, Copy)]
struct WrittenImage(Option<usize>);

impl Literal for WrittenImage {
    fn read(text: &mut Cursor<'_>) -> Result<WrittenImage, LayoutError> {
        if text.eat(b'*') {
            return Ok(WrittenImage(None));
        }
        let expected = "a place of the codomain, counted from 1, or '*'";
        let at = text.at();
        match text.integer().ok().and_then(|place| usize::try_from(place).ok()?.checked_sub(1)) {
            Some(place) => Ok(WrittenImage(Some(place))),
            None => Err(LayoutError::Syntax { at, expected }),
        }
    }
}

impl fmt::Display for WrittenImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_image(f, self.0)
    }
}

/// The value of a part of the text; locations of errors are relative to the whole text.
fn part<T: FromStr<Err = LayoutError>>(text: &str, from: usize, to: usize) -> Result<T, MorphismError> {
    text.get(from..to).unwrap_or_default().parse().map_err(|error| match error {
        LayoutError::Syntax { at, expected } => MorphismError::Syntax { at: at + from, expected },
        other => other.into(),
    })
}

impl FromStr for NestMorphism {
    type Err = MorphismError;

    fn from_str(text: &str) -> Result<NestMorphism, MorphismError> {
        let Some(arrow) = text.find("->") else {
            return Err(MorphismError::Syntax { at: text.len(), expected: "'->'" });
        };
        let Some(colon) = text.get(arrow..).and_then(|rest| rest.find(':')).map(|at| at + arrow) else {
            return Err(MorphismError::Syntax { at: text.len(), expected: "':'" });
        };
        let domain: Tree<i64> = part(text, 0, arrow)?;
        let codomain: Tree<i64> = part(text, arrow + 2, colon)?;
        over(&domain, &codomain, part(text, colon + 1, text.len())?, colon + 1)
    }
}

/// The morphism with the images that are written at byte `at`.
fn over(
    domain: &Tree<i64>,
    codomain: &Tree<i64>,
    images: Tree<WrittenImage>,
    at: usize,
) -> Result<NestMorphism, MorphismError> {
    if images.leaves().len() != domain.leaves().len() {
        return Err(MorphismError::MapLength { domain: domain.leaves().len(), map: images.leaves().len() });
    }
    if !images.congruent(domain) && images.depth() > 1 {
        return Err(MorphismError::Syntax { at, expected: "images nested like the domain" });
    }
    NestMorphism::new(domain, codomain, images.leaves().iter().map(|image| image.0))
}

impl NestMorphism {
    /// The morphism between two tuples with the images in a text: `(1,*,3)`, counted from 1, nested
    /// like the domain or flat.
    ///
    /// Errors: the text is not a tuple of images ([`MorphismError::Syntax`]); as
    /// [`NestMorphism::new`].
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f = NestMorphism::over_images(&"(4,5)".parse().unwrap(), &"(4,16,5)".parse().unwrap(), "(1,3)").unwrap();
    /// assert_eq!(f.to_string(), "(4,5) -> (4,16,5) : (1,3)");
    /// ```
    pub fn over_images(domain: &Tree<i64>, codomain: &Tree<i64>, images: &str) -> Result<NestMorphism, MorphismError> {
        over(domain, codomain, part(images, 0, images.len())?, 0)
    }
}

impl fmt::Display for NestMorphism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images: Vec<WrittenImage> = self.map().images().map(WrittenImage).collect();
        let images = Tree::new(self.domain_profile().clone(), images).map_err(|_| fmt::Error)?;
        write!(f, "{} -> {} : {images}", self.domain(), self.codomain())
    }
}

debug_as_text!(NestMorphism);

impl FromStr for TupleMorphism {
    type Err = MorphismError;

    fn from_str(text: &str) -> Result<TupleMorphism, MorphismError> {
        let nested: NestMorphism = text.parse()?;
        let flat = |depth: usize| depth == 1;
        if !flat(nested.domain_profile().depth()) || !flat(nested.codomain_profile().depth()) {
            return Err(MorphismError::Syntax { at: 0, expected: "flat tuples" });
        }
        Ok(nested.flatten().clone())
    }
}

impl fmt::Display for TupleMorphism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} : {}", Listed(self.domain()), Listed(self.codomain()), self.map())
    }
}

debug_as_text!(TupleMorphism);
