//! Classification of the reason why two layouts compose.
//!
//! Law: a composition is by refinement when [`crate::morphism::compose_by_refinement`] gives it;
//! that is sufficient for a composite to exist, but not necessary. The other composites are in the
//! remaining classes of [`Class`]; each is in the first class that fits. The composite itself is
//! always that of [`Layout::compose`], which decides exactly.
//!
//! One mode `s:d` of the inner layout by itself has a mutual refinement with the outer shape when
//! `(d, s)` has one. Without one, and with `P` for the products of the first outer extents `M`, it
//! composes if `d = P_j * d'` with `d'` a divisor of the next extent, or of anything in the last
//! mode, and `s * d = P_k * c` with `c` at most the next extent: a *ragged* end, inside a mode that
//! it does not divide. That criterion is also sufficient. The remaining layouts compose because no
//! carry occurs, or carries cancel: `(4,6):(1,9) o 2:3` never crosses the 4.

use crate::ground::words::words;
use crate::morphism::compose::compose_by_refinement;
use crate::morphism::error::{MorphismError, overflow};
use crate::morphism::mutual::walk;
use crate::morphism::standard::standard_representation;
use crate::{Layout, LayoutError, Leaf};
use smallvec::SmallVec;

words! {
    /// Why the composite of two layouts exists, beyond mutual refinement of their morphisms.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Class {
        /// Both layouts are tractable and their morphisms have a mutual refinement.
        Refinement = "mutual refinement",
        /// The inner layout reaches past the end of the outer one, whose last mode continues.
        PastTheEnd = "the inner layout reaches past the end of the outer one",
        /// The shapes have a mutual refinement, and only the outer layout is not tractable: it can
        /// be refined all the same, but has no diagram.
        OuterNotTractable = "the shapes have a mutual refinement, but the outer layout is not tractable",
        /// Each mode of the inner layout has a mutual refinement alone, but the inner layout is not
        /// tractable, so they have none together.
        InnerNotTractable = "each mode has a mutual refinement, but the inner layout is not tractable",
        /// Some mode of the inner layout ends inside a mode of the outer one that it does not
        /// divide.
        Ragged = "a mode ends inside a mode that it does not divide",
        /// A stride or an end of some mode divides nothing, but there is no carry, or several
        /// carries cancel.
        Indivisible = "a stride or an end divides nothing, yet no carry disagrees",
    }
}

/// Why `outer` after `inner` exists.
///
/// Errors: it does not exist, or is not decided; what the algebra says ([`MorphismError::Layout`]).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_layout::morphism::{Class, classify};
///
/// let class = |outer: &str, inner: &str| {
///     classify(&outer.parse::<Layout>().unwrap(), &inner.parse::<Layout>().unwrap()).unwrap()
/// };
/// assert_eq!(class("(12,3,6):(1,72,12)", "(6,6):(1,6)"), Class::Refinement);
/// assert_eq!(class("8:1", "2:3"), Class::Ragged);
/// assert_eq!(class("4:1", "4:2"), Class::PastTheEnd);
/// assert_eq!(class("12:1", "(2,2):(1,3)"), Class::InnerNotTractable); // 2:1 and 2:3 interleave
/// assert_eq!(class("8:1", "(2,2):(1,1)"), Class::InnerNotTractable);
/// assert_eq!(class("(4,6):(1,2)", "2:4"), Class::OuterNotTractable);
/// ```
pub fn classify(outer: &Layout, inner: &Layout) -> Result<Class, MorphismError> {
    outer.compose(inner)?;
    if compose_by_refinement(outer, inner).is_ok() {
        return Ok(Class::Refinement);
    }
    let (least, greatest) = inner.range()?;
    if least < 0 || greatest >= outer.size() {
        return Ok(Class::PastTheEnd);
    }
    let coalesced = outer.coalesce()?;
    let shape: SmallVec<[i64; 8]> = coalesced.leaves().iter().map(|leaf| leaf.extent).collect();
    if let Ok(f) = standard_representation(inner)
        && walk(f.flatten().codomain(), &shape).is_ok()
    {
        return Ok(Class::OuterNotTractable);
    }
    let moving = || inner.leaves().iter().filter(|leaf| leaf.extent > 1 && leaf.stride != 0);
    if moving().all(|leaf| walk(&[leaf.stride, leaf.extent], &shape).is_ok()) {
        return Ok(Class::InnerNotTractable);
    }
    let mut ragged = true;
    for leaf in moving() {
        ragged &= fits(leaf, &shape)?;
    }
    Ok(if ragged { Class::Ragged } else { Class::Indivisible })
}

/// The criterion for a single mode.
fn fits(leaf: &Leaf, shape: &[i64]) -> Result<bool, MorphismError> {
    let reach = leaf.stride.checked_mul(leaf.extent).ok_or_else(|| overflow("classify"))?;
    // The modes as (product of the extents before, extent); the last one has no end.
    let mut before = 1_i64;
    let (mut begins, mut ends) = (false, false);
    for (place, extent) in shape.iter().enumerate() {
        let last = place + 1 == shape.len();
        let (step, end) = (leaf.stride % before == 0, reach % before == 0);
        begins |= step && (last || extent % (leaf.stride / before) == 0);
        ends |= end && (last || reach / before <= *extent);
        before = before.checked_mul(*extent).ok_or(LayoutError::Overflow { op: "classify" })?;
    }
    Ok(begins && ends)
}
