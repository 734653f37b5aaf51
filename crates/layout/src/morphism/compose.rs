//! Composition by mutual refinement.
//!
//! Law: for tractable layouts, let `f` represent the inner one and `g` the coalesced outer one, let
//! `(T', U')` be the mutual refinement of the codomain of `f` and the domain of `g`, `f'` the
//! pullback of `f` along `T'`, `g'` the pushforward of `g` along `U'`, and `i: T' -> U'` the
//! inclusion. Then `g' o i o f'` encodes a weak composite: its function is the composite. Coalesced
//! over the shape of the inner layout it is *the* composite (Carlisle, Shah, Stern, VanKoughnett,
//! 4.1.3, algorithm 4.1.2).
//!
//! [`compose_by_refinement`] writes the leaves of that layout down without building the morphisms
//! on the way. The prefix products of the codomain of `f` are the strides `d` and the reaches `s *
//! d` of the modes of the inner layout, which form a chain among themselves. So there is a mutual
//! refinement exactly when there is one of `(d, s)` and the outer domain for each mode `s:d` (4.1.1
//! asks for divisibility pair by pair), and the leaves that this mode becomes are the pieces of `s`
//! in it. [`WorkedComposition`] builds every step; tests hold that they agree.
//!
//! Mutual refinement is sufficient for a composite to exist, and not necessary:
//! [`crate::morphism::classify()`] says what it misses.

use crate::morphism::error::{CompositionSide, MorphismError, overflow};
use crate::morphism::mutual::{MutualRefinement, refused, walk};
use crate::morphism::nest::NestMorphism;
use crate::morphism::square::Square;
use crate::morphism::standard::{is_tractable, obstacle, standard};
use crate::morphism::tuple::{Entries, size};
use crate::{Layout, LayoutError, Leaf, Pieces};

const OP: &str = "compose_by_refinement";

/// The composite of two tractable layouts, `outer` after `inner`, where their representations have
/// a mutual refinement.
///
/// It is then the composite that [`Layout::compose_within`] gives, with the same modes.
///
/// Errors: one of the layouts is not tractable ([`MorphismError::NotTractable`]); the codomain of
/// the inner one and the domain of the outer one have no mutual refinement
/// ([`MorphismError::NoMutualRefinement`]); a number is not representable. The composite may still
/// exist.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_layout::morphism::compose_by_refinement;
///
/// let layout = |text: &str| text.parse::<Layout>().unwrap();
/// let composite = compose_by_refinement(&layout("(12,3,6):(1,72,12)"), &layout("(6,6):(1,6)")).unwrap();
/// assert_eq!(composite.to_string(), "(6,(2,3)):(1,(6,72))");
///
/// // The inner layout takes every third of 8 positions: 3 and 8 have no mutual refinement,
/// // although the composite is 2:3.
/// let refusal = compose_by_refinement(&layout("8:1"), &layout("2:3")).unwrap_err();
/// assert_eq!(refusal.code(), "E0711");
/// ```
pub fn compose_by_refinement(outer: &Layout, inner: &Layout) -> Result<Layout, MorphismError> {
    if !is_tractable(inner) {
        return Err(obstacle(inner, CompositionSide::Inner));
    }
    let coalesced = outer.coalesce()?;
    if !is_tractable(&coalesced) {
        return Err(obstacle(outer, CompositionSide::Outer));
    }
    let composite = inner.cut_leaves(|mode, pieces| {
        if mode.extent == 1 || mode.stride == 0 {
            Ok(pieces.push(mode.extent, 0)?)
        } else {
            refine_mode(mode, coalesced.leaves(), pieces)
        }
    });
    composite.map_err(|stopped| refusal(inner, &coalesced, stopped))
}

/// The pieces of a mode in the mutual refinement of `(stride, extent)` and the outer domain, each
/// with the stride that it is sent to.
///
/// Errors: there is no such refinement, or a stride is not representable.
#[inline(always)]
fn refine_mode(mode: &Leaf, outer: &[Leaf], pieces: &mut Pieces<'_>) -> Result<(), Stopped> {
    let mut levels = outer.iter();
    // The rest of the stride is skipped.
    let mut before = mode.stride;
    let mut level = loop {
        let Some(level) = levels.next() else { return Err(Stopped::Apart) };
        if before < level.extent {
            break level;
        }
        if before % level.extent != 0 {
            return Err(Stopped::Apart);
        }
        before /= level.extent;
    };
    if level.extent % before != 0 {
        return Err(Stopped::Apart);
    }
    let mut free = level.extent / before;
    let mut stride = level.stride.checked_mul(before).ok_or_else(|| LayoutError::Overflow { op: OP })?;
    let mut extent = mode.extent;
    while extent > free {
        if extent % free != 0 {
            return Err(Stopped::Apart);
        }
        pieces.push(free, stride)?;
        extent /= free;
        level = levels.next().ok_or(Stopped::Apart)?;
        (free, stride) = (level.extent, level.stride);
    }
    if free % extent != 0 {
        return Err(Stopped::Apart);
    }
    Ok(pieces.push(extent, stride)?)
}

/// The reason why a mode has no leaves.
enum Stopped {
    /// Its stride or its extent ends inside an entry of the outer domain that it does not divide,
    /// or past the last one.
    Apart,
    /// A number that does not fit.
    Number(LayoutError),
}

crate::from_variants!(Stopped: Number(LayoutError));

/// The complete error: the position at which the walk along both tuples stops, or else the number.
#[cold]
fn refusal(inner: &Layout, coalesced: &Layout, stopped: Stopped) -> MorphismError {
    let first = match standard(inner, CompositionSide::Inner) {
        Ok(first) => first,
        Err(error) => return error,
    };
    let codomain = first.flatten().codomain();
    let domain: Entries = coalesced.leaves().iter().map(|leaf| leaf.extent).collect();
    match (walk(codomain, &domain), stopped) {
        (Err(stop), _) => refused(codomain, &domain, stop),
        (Ok(_), Stopped::Number(error)) => error.into(),
        (Ok(_), Stopped::Apart) => overflow(OP),
    }
}

/// A morphism that encodes a weak composite of `second` after `first`: the same function, with the
/// modes that the mutual refinement leaves.
///
/// Errors: the codomain of `first` and the domain of `second` have no mutual refinement; a size is
/// not representable; nested too deep.
///
/// ```
/// use tilewright_layout::morphism::{NestMorphism, weak_composite};
///
/// let f: NestMorphism = "(6,6) -> (6,6) : (1,2)".parse().unwrap();
/// let g: NestMorphism = "(12,3,6) -> (12,6,3) : (1,3,2)".parse().unwrap();
/// let composite = weak_composite(&g, &f).unwrap();
/// assert_eq!(composite.encoded_layout().unwrap().to_string(), "(6,(2,3)):(1,(6,72))");
/// ```
pub fn weak_composite(second: &NestMorphism, first: &NestMorphism) -> Result<NestMorphism, MorphismError> {
    Ok(refined(second, first)?.composite)
}

/// The intermediate morphisms between two morphisms and their weak composite.
struct Refined {
    mutual: MutualRefinement,
    pullback: Square,
    pushforward: Square,
    inclusion: NestMorphism,
    included: NestMorphism,
    composite: NestMorphism,
}

fn refined(second: &NestMorphism, first: &NestMorphism) -> Result<Refined, MorphismError> {
    let mutual = MutualRefinement::new(&first.codomain(), &second.domain())?;
    let pullback = first.pullback(mutual.first())?;
    let pushforward = second.pushforward(mutual.second())?;
    let inclusion = mutual.inclusion()?;
    let included = inclusion.compose(&pullback.morphism)?;
    let composite = pushforward.morphism.compose(&included)?;
    Ok(Refined { mutual, pullback, pushforward, inclusion, included, composite })
}

/// A composition by mutual refinement with every step of it.
///
/// ```
/// use tilewright_layout::morphism::WorkedComposition;
///
/// let (outer, inner) = ("(12,3,6):(1,72,12)".parse().unwrap(), "(6,6):(1,6)".parse().unwrap());
/// let worked = WorkedComposition::new(&outer, &inner).unwrap();
/// assert_eq!(worked.mutual.to_string(), "(6,(2,3)) | ((6,2),3,6)");
/// assert_eq!(worked.included.to_string(), "(6,(2,3)) -> ((6,2),3,6) : (1,(2,3))");
/// assert_eq!(worked.pushforward.morphism.compose(&worked.included).unwrap(), worked.morphism);
/// assert_eq!(worked.composite.to_string(), "(6,(2,3)):(1,(6,72))");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkedComposition {
    /// The layout that is applied first.
    pub inner: Layout,
    /// The layout that is applied second.
    pub outer: Layout,
    /// The outer layout with the fewest modes, which constrains the refinement least.
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
    /// `first` refined, in the whole refined domain of `second`: the inclusion after the pullback.
    /// The pushforward comes after it.
    pub included: NestMorphism,
    /// The pushforward of `second`.
    pub pushforward: Square,
    /// The composite of the refined morphisms.
    pub morphism: NestMorphism,
    /// The layout that it encodes.
    pub weak: Layout,
    /// That layout, coalesced over the shape of the inner one: the composition.
    pub composite: Layout,
}

impl WorkedComposition {
    /// The steps of `outer` after `inner`.
    ///
    /// Errors: as [`compose_by_refinement`].
    pub fn new(outer: &Layout, inner: &Layout) -> Result<WorkedComposition, MorphismError> {
        let first = standard(inner, CompositionSide::Inner)?;
        let coalesced = outer.coalesce()?;
        let second =
            standard(&coalesced, CompositionSide::Outer).map_err(|_| obstacle(outer, CompositionSide::Outer))?;
        // The codomain need not be representable as a size; no outer layout is that large.
        if size(OP, first.flatten().codomain()).is_err() {
            let (codomain, domain) = (first.flatten().codomain(), second.flatten().domain());
            return match walk(codomain, domain) {
                Err(stop) => Err(refused(codomain, domain, stop)),
                Ok(_) => Err(overflow(OP)),
            };
        }
        let Refined { mutual, pullback, pushforward, inclusion, included, composite: morphism } =
            refined(&second, &first)?;
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
            included,
            pushforward,
            morphism,
            weak,
            composite,
        })
    }
}
