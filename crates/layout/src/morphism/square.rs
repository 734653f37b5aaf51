//! Pullback and pushforward of refinements along morphisms.
//!
//! Law: for `f: S -> T` and a refinement `T'` of `T`, the pullback is the refinement `S'` of `S`
//! whose part over an entry is the part of `T'` over its image, together with `f': S' -> T'`; for a
//! refinement `S'` of `S` the pushforward refines `T` in the same way. Refinements change no index,
//! so the function of the encoded layout stays the same (Carlisle, Shah, Stern, VanKoughnett, 4.1.2
//! and 4.1.3).

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::Tree;
use crate::morphism::error::{Apart, MorphismError};
use crate::morphism::nest::NestMorphism;
use crate::morphism::pointed::{Images, PointedMap};
use crate::morphism::refine::Refinement;
use crate::morphism::tuple::TupleMorphism;

/// A morphism, and the corresponding morphism between refined tuples.
///
/// ```text
///   S'  --morphism-->  T'
///   |                  |      domain: S' refines S, codomain: T' refines T
///   S   ------------>  T
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Square {
    /// The refinement of the domain.
    pub domain: Refinement,
    /// The refinement of the codomain.
    pub codomain: Refinement,
    /// The morphism between the finer tuples.
    pub morphism: NestMorphism,
}

/// The morphism between the refined tuples, leaf by leaf in each part.
fn between(f: &NestMorphism, domain: Refinement, codomain: Refinement) -> Result<Square, MorphismError> {
    let offsets: Vec<usize> = codomain.offsets().collect();
    let mut images = Images::new();
    for (part, image) in domain.parts().iter().zip(f.map().images()) {
        for leaf in 0..part.leaves().len() {
            let target = image.and_then(|image| offsets.get(image)).map_or(0, |offset| offset + leaf + 1);
            images.push(target as u16);
        }
    }
    let (fine, onto) = (domain.fine(), codomain.fine());
    let map = PointedMap::from_images(onto.leaves().len(), images);
    let flat = TupleMorphism::from_valid(fine.leaves().into(), onto.leaves().into(), map);
    let morphism = NestMorphism::from_parts(flat, fine.profile().clone(), onto.profile().clone());
    Ok(Square { domain, codomain, morphism })
}

fn check(op: &'static str, tuple: &Tree<i64>, along: &Refinement) -> Result<(), MorphismError> {
    if along.coarse() == tuple {
        return Ok(());
    }
    let apart = Apart::of(tuple.leaves(), along.coarse().leaves());
    let (ends, begins) = (tuple.to_string().into(), along.coarse().to_string().into());
    Err(MorphismError::NotComposable { op, ends, begins, apart })
}

impl NestMorphism {
    /// The morphism with its codomain refined, and its domain correspondingly. An entry that maps
    /// to the base point is not refined.
    ///
    /// Errors: `along` does not refine the codomain ([`MorphismError::NotComposable`]); nested too
    /// deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::{NestMorphism, Refinement};
    ///
    /// let f: NestMorphism = "(6,4) -> (4,6,6) : (2,*)".parse().unwrap();
    /// let fine = Refinement::new(&"(4,(2,3),6)".parse().unwrap(), &f.codomain()).unwrap();
    /// let square = f.pullback(&fine).unwrap();
    /// assert_eq!(square.morphism.to_string(), "((2,3),4) -> (4,(2,3),6) : ((2,3),*)");
    /// ```
    pub fn pullback(&self, along: &Refinement) -> Result<Square, MorphismError> {
        check("pullback", &self.codomain(), along)?;
        let parts = self.flatten().domain().iter().zip(self.map().images()).map(|(extent, image)| {
            image.and_then(|image| along.parts().get(image)).cloned().unwrap_or(Tree::leaf(*extent))
        });
        let domain = Refinement::from_parts(self.domain(), parts.collect())?;
        between(self, domain, along.clone())
    }

    /// The morphism with its domain refined, and its codomain correspondingly. An entry that is not
    /// hit is not refined.
    ///
    /// Errors: `along` does not refine the domain ([`MorphismError::NotComposable`]); nested too
    /// deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::{NestMorphism, Refinement};
    ///
    /// let g: NestMorphism = "(12,3) -> (3,12) : (2,1)".parse().unwrap();
    /// let fine = Refinement::new(&"((6,2),3)".parse().unwrap(), &g.domain()).unwrap();
    /// let square = g.pushforward(&fine).unwrap();
    /// assert_eq!(square.morphism.to_string(), "((6,2),3) -> (3,(6,2)) : ((2,3),1)");
    /// ```
    pub fn pushforward(&self, along: &Refinement) -> Result<Square, MorphismError> {
        check("pushforward", &self.domain(), along)?;
        let preimages = self.map().preimages();
        let parts = self.flatten().codomain().iter().zip(&preimages).map(|(extent, entry)| {
            entry.and_then(|entry| along.parts().get(usize::from(entry))).cloned().unwrap_or(Tree::leaf(*extent))
        });
        let codomain = Refinement::from_parts(self.codomain(), parts.collect())?;
        between(self, along.clone(), codomain)
    }
}
