//! Composition by mutual refinement.
//!
//! Law: for tractable layouts, let `f` represent the inner one and `g` the coalesced outer one, let `(T', U')` be the mutual refinement of the
//! codomain of `f` and the domain of `g`, `f'` the pullback of `f` along `T'`, `g'` the pushforward of `g` along `U'`, and `i: T' -> U'` the
//! inclusion. Then `g' o i o f'` encodes a weak composite: its function is the composite. Coalesced over the shape of the inner layout it is *the*
//! composite (Carlisle, Shah, Stern, VanKoughnett, 4.1.3, algorithm 4.1.2).
//!
//! [`compose_by_refinement`] writes the leaves of that layout down without building the morphisms on the way: a piece of the mutual refinement, part
//! of entry `i` of the codomain and entry `j` of the outer domain, is a leaf of the mode that is sent to `i`, whose stride is the one of mode `j`
//! times the pieces of `j` before it. [`WorkedComposition`] builds every step; tests hold that they agree.
//!
//! Mutual refinement is sufficient for a composite to exist, and not necessary: [`crate::classify()`] says what it misses.

use smallvec::SmallVec;
use tilewright_layout::{Layout, Leaf, Profile, Tree};

use crate::error::{MorphismError, Part, overflow};
use crate::mutual::{MutualRefinement, refused, walk};
use crate::nest::NestMorphism;
use crate::square::Square;
use crate::standard::{moving, obstacle, standard};
use crate::tuple::{Entries, size};

/// The composite of two tractable layouts, `outer` after `inner`, where their representations have a mutual refinement.
///
/// It is then the composite that [`Layout::compose_within`] gives, with the same modes.
///
/// Errors: one of the layouts is not tractable ([`MorphismError::NotTractable`]); the codomain of the inner one and the domain of the outer one
/// have no mutual refinement ([`MorphismError::NoMutualRefinement`]); a number is not representable. The composite may exist all the same.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_morphism::compose_by_refinement;
///
/// let layout = |text: &str| text.parse::<Layout>().unwrap();
/// let composite = compose_by_refinement(&layout("(12,3,6):(1,72,12)"), &layout("(6,6):(1,6)")).unwrap();
/// assert_eq!(composite.to_string(), "(6,(2,3)):(1,(6,72))");
///
/// // The inner layout takes every third of 8 positions: 3 and 8 are refined by nothing, though the composite is 2:3.
/// let refusal = compose_by_refinement(&layout("8:1"), &layout("2:3")).unwrap_err();
/// assert_eq!(refusal.code(), "E0711");
/// ```
pub fn compose_by_refinement(outer: &Layout, inner: &Layout) -> Result<Layout, MorphismError> {
    const OP: &str = "compose_by_refinement";
    let modes = moving(inner.leaves()).ok_or_else(|| obstacle(inner, Part::Inner))?;
    let coalesced = outer.coalesce()?;
    if moving(coalesced.leaves()).is_none() {
        return Err(obstacle(outer, Part::Outer));
    }
    // The codomain of the standard representation, and the mode that is sent to each of its entries.
    let (mut codomain, mut owners) = (Entries::new(), SmallVec::<[Option<u16>; 16]>::new());
    let mut reached = 1;
    for (stride, extent, leaf) in &modes {
        if *stride > reached {
            codomain.push(stride / reached);
            owners.push(None);
        }
        codomain.push(*extent);
        owners.push(Some(*leaf));
        reached = stride.saturating_mul(*extent);
    }
    let domain: Entries = coalesced.leaves().iter().map(|leaf| leaf.extent).collect();
    let pieces = walk(&codomain, &domain).map_err(|stop| refused(&codomain, &domain, stop))?;
    // The leaves of each mode, coalesced as they come: a range of `found` for each leaf of the inner layout.
    let mut found: SmallVec<[Leaf; 16]> = SmallVec::new();
    let mut ranges: SmallVec<[(u16, u16); 8]> = SmallVec::from_elem((0, 0), inner.leaves().len());
    // Within an entry of the outer domain: which one, and the product of its pieces so far.
    let (mut entry, mut step) = (0, 1_i64);
    for piece in &pieces {
        if piece.second != entry {
            (entry, step) = (piece.second, 1);
        }
        let Some(place) = piece.first else { break };
        if let Some(leaf) = owners.get(usize::from(place)).copied().flatten()
            && let Some(range) = ranges.get_mut(usize::from(leaf))
        {
            let outer = coalesced.leaves().get(usize::from(entry)).map_or(0, |leaf| leaf.stride);
            let stride = outer.checked_mul(step).ok_or_else(|| overflow(OP))?;
            if range.1 == 0 {
                *range = (found.len() as u16, found.len() as u16);
            }
            match found.last_mut().filter(|_| range.0 < range.1) {
                Some(last) if last.stride.checked_mul(last.extent) == Some(stride) => last.extent *= piece.extent,
                _ => {
                    found.push(Leaf { extent: piece.extent, stride });
                    range.1 = found.len() as u16;
                }
            }
        }
        // Part of an entry of the outer domain.
        step = step.saturating_mul(piece.extent);
    }
    nested(inner, &found, &ranges)
}

/// The inner layout with each leaf replaced by the leaves that were found for it.
fn nested(inner: &Layout, found: &[Leaf], ranges: &[(u16, u16)]) -> Result<Layout, MorphismError> {
    let mut leaves: SmallVec<[Leaf; 12]> = SmallVec::new();
    let mut split = false;
    for (leaf, (begin, end)) in inner.leaves().iter().zip(ranges) {
        match found.get(usize::from(*begin)..usize::from(*end)).unwrap_or_default() {
            [] => leaves.push(Leaf { extent: leaf.extent, stride: 0 }),
            parts => leaves.extend_from_slice(parts),
        }
        split |= *end > begin + 1;
    }
    let profile = if split {
        let (leaf, flat) = (Profile::leaf(), flat_profiles(ranges)?);
        inner.profile().substitute(|place| {
            let count = ranges.get(place).map_or(0, |(begin, end)| usize::from(end - begin));
            flat.iter().find(|profile| count > 1 && profile.nodes().len() == count + 1).unwrap_or(&leaf)
        })?
    } else {
        inner.profile().clone()
    };
    Ok(Layout::from_tree(Tree::new(profile, leaves)?)?)
}

/// The flat profiles that are needed, each once.
fn flat_profiles(ranges: &[(u16, u16)]) -> Result<SmallVec<[Profile; 2]>, MorphismError> {
    let mut profiles: SmallVec<[Profile; 2]> = SmallVec::new();
    for (begin, end) in ranges {
        let count = usize::from(end - begin);
        if count > 1 && !profiles.iter().any(|profile| profile.nodes().len() == count + 1) {
            profiles.push(Profile::flat(count)?);
        }
    }
    Ok(profiles)
}

/// A morphism that encodes a weak composite of `second` after `first`: the same function, with the modes that the mutual refinement leaves.
///
/// Errors: the codomain of `first` and the domain of `second` have no mutual refinement; a size is not representable; nested too deep.
///
/// ```
/// use tilewright_morphism::{NestMorphism, weak_composite};
///
/// let f: NestMorphism = "(6,6) -> (6,6) : (1,2)".parse().unwrap();
/// let g: NestMorphism = "(12,3,6) -> (12,6,3) : (1,3,2)".parse().unwrap();
/// let composite = weak_composite(&g, &f).unwrap();
/// assert_eq!(composite.encoded_layout().unwrap().to_string(), "(6,(2,3)):(1,(6,72))");
/// ```
pub fn weak_composite(second: &NestMorphism, first: &NestMorphism) -> Result<NestMorphism, MorphismError> {
    Ok(refined(second, first)?.3)
}

type Refined = (MutualRefinement, Square, Square, NestMorphism, NestMorphism);

/// The mutual refinement, both refined morphisms, the composite and the inclusion between them.
fn refined(second: &NestMorphism, first: &NestMorphism) -> Result<Refined, MorphismError> {
    let mutual = MutualRefinement::new(&first.codomain(), &second.domain())?;
    let below = first.pullback(mutual.first())?;
    let above = second.pushforward(mutual.second())?;
    let inclusion = mutual.inclusion()?;
    let composite = above.morphism.compose(&inclusion.compose(&below.morphism)?)?;
    Ok((mutual, below, above, composite, inclusion))
}

/// A composition by mutual refinement with every step of it.
///
/// ```
/// use tilewright_morphism::WorkedComposition;
///
/// let (outer, inner) = ("(12,3,6):(1,72,12)".parse().unwrap(), "(6,6):(1,6)".parse().unwrap());
/// let worked = WorkedComposition::new(&outer, &inner).unwrap();
/// assert_eq!(worked.mutual.to_string(), "(6,(2,3)) | ((6,2),3,6)");
/// assert_eq!(worked.composite.to_string(), "(6,(2,3)):(1,(6,72))");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkedComposition {
    /// The layout that is applied first.
    pub inner: Layout,
    /// The layout that is applied second.
    pub outer: Layout,
    /// The outer layout with the fewest modes, which leaves the most to refine.
    pub coalesced: Layout,
    /// The standard representation of the inner layout.
    pub first: NestMorphism,
    /// The standard representation of the coalesced outer layout.
    pub second: NestMorphism,
    /// The mutual refinement of the codomain of `first` and the domain of `second`.
    pub mutual: MutualRefinement,
    /// The pullback of `first`.
    pub pullback: Square,
    /// The inclusion of the refined codomain into the refined domain.
    pub inclusion: NestMorphism,
    /// The pushforward of `second`.
    pub pushforward: Square,
    /// The composite of the refined morphisms.
    pub morphism: NestMorphism,
    /// The layout that it encodes.
    pub weak: Layout,
    /// That layout, coalesced over the shape of the inner one: the composite.
    pub composite: Layout,
}

impl WorkedComposition {
    /// The steps of `outer` after `inner`.
    ///
    /// Errors: as [`compose_by_refinement`].
    pub fn new(outer: &Layout, inner: &Layout) -> Result<WorkedComposition, MorphismError> {
        let first = standard(inner, Part::Inner)?;
        let coalesced = outer.coalesce()?;
        let second = standard(&coalesced, Part::Outer).map_err(|_| obstacle(outer, Part::Outer))?;
        // The codomain need not be representable as a size; no outer layout is that large.
        if size("compose_by_refinement", first.flatten().codomain()).is_err() {
            let (codomain, domain) = (first.flatten().codomain(), second.flatten().domain());
            return match walk(codomain, domain) {
                Err(stop) => Err(refused(codomain, domain, stop)),
                Ok(_) => Err(overflow("compose_by_refinement")),
            };
        }
        let (mutual, pullback, pushforward, morphism, inclusion) = refined(&second, &first)?;
        let weak = morphism.encoded_layout()?;
        let composite = weak.coalesce_by(inner.profile())?;
        let (inner, outer) = (inner.clone(), outer.clone());
        Ok(WorkedComposition {
            inner,
            outer,
            coalesced,
            first,
            second,
            mutual,
            pullback,
            inclusion,
            pushforward,
            morphism,
            weak,
            composite,
        })
    }
}
