//! Conversions between layouts and morphisms.
//!
//! Law: a morphism `f: S -> T` over `a` encodes the layout of shape `S` whose stride at `i` is the
//! product of the entries of `T` before `a(i)`, and 0 where `i` is sent to the base point. The
//! layouts encoded by morphisms are exactly the tractable ones: with modes of extent 1 left out and
//! the others sorted by stride, `extent * stride` of each divides the next stride. Each has one
//! *standard* representation: its codomain lists the gaps and the modes in the order of strides,
//! and nothing after the last mode. Non-degenerate tractable layouts and non-degenerate standard
//! morphisms correspond one to one (Carlisle, Shah, Stern, VanKoughnett, 2.1.8.1, 2.3.10.1, theorem
//! A).
//!
//! The stride of a mode of extent 1 cannot be observed. It does not affect whether a layout is
//! tractable. The standard representation maps such a mode to the base point, as if the stride were
//! 0.

use alloc::boxed::Box;
use alloc::string::ToString;

use crate::morphism::error::{CompositionSide, MorphismError, NotTractable, overflow};
use crate::morphism::nest::{NestMorphism, extents, steps};
use crate::morphism::pointed::{Images, PointedMap};
use crate::morphism::tuple::{Entries, TupleMorphism};
use crate::{Layout, Leaf, Profile, Tree};
use smallvec::SmallVec;

/// The modes of a layout with several offsets, in the order of their strides: stride, extent,
/// number of the leaf.
pub(crate) type MovingModes = SmallVec<[(i64, i64, u16); 8]>;

/// Lists the modes with several offsets, in order; returns whether the layout is tractable.
#[inline]
fn list_moving(leaves: &[Leaf], modes: &mut MovingModes) -> bool {
    for (leaf, Leaf { extent, stride }) in leaves.iter().enumerate() {
        if *extent == 1 || *stride == 0 {
            continue;
        }
        if *stride < 0 {
            return false;
        }
        // There are few modes, and they are often in order already.
        modes.push((*stride, *extent, leaf as u16));
        let mut rest: &mut [_] = modes;
        while let [front @ .., before, last] = rest
            && before.0 > last.0
        {
            core::mem::swap(before, last);
            let shorter = front.len() + 1;
            rest = &mut rest[..shorter];
        }
    }
    modes.windows(2).all(|pair| match pair {
        // A product that is not representable is larger than every stride.
        [inner, outer] => inner.0.checked_mul(inner.1).is_some_and(|reach| outer.0 % reach == 0),
        _ => true,
    })
}

/// The error for a layout that is not tractable.
#[cold]
pub(crate) fn obstacle(layout: &Layout, part: CompositionSide) -> MorphismError {
    let path = |leaf: usize| layout.profile().path(leaf);
    let mut modes: SmallVec<[(i64, i64, usize); 8]> = SmallVec::new();
    let text: Box<str> = layout.to_string().into();
    for (number, leaf) in layout.leaves().iter().enumerate().filter(|(_, leaf)| leaf.extent > 1) {
        if leaf.stride < 0 {
            let (mode, leaf) = (path(number), (leaf.extent, leaf.stride));
            return MorphismError::NotTractable(Box::new(NotTractable { part, layout: text, mode, leaf, next: None }));
        }
        if leaf.stride > 0 {
            modes.push((leaf.stride, leaf.extent, number));
        }
    }
    modes.sort();
    let pairs = modes.iter().zip(modes.iter().skip(1));
    let broken = pairs.filter(|(inner, outer)| inner.0.checked_mul(inner.1).is_none_or(|reach| outer.0 % reach != 0));
    match broken.map(|(inner, outer)| (*inner, *outer)).next() {
        Some((inner, outer)) => MorphismError::NotTractable(Box::new(NotTractable {
            part,
            layout: text,
            mode: path(inner.2),
            leaf: (inner.1, inner.0),
            next: Some((path(outer.2), outer.0)),
        })),
        // The only other reason is that the layout has more leaves than a tuple may have entries.
        None => overflow("standard_representation"),
    }
}

/// Whether some morphism encodes the layout.
///
/// ```
/// use tilewright_layout::morphism::is_tractable;
///
/// let tractable = |text: &str| is_tractable(&text.parse().unwrap());
/// assert!(tractable("(32,(2,2)):(192,(24,3))") && tractable("(4,2):(0,3)"));
/// assert!(tractable("(1,2):(3,4)")); // the stride of an extent of 1 is ignored
/// assert!(!tractable("((8,8),(5,5)):((8,1),(10,2))"));
/// ```
pub fn is_tractable(layout: &Layout) -> bool {
    list_moving(layout.leaves(), &mut MovingModes::new())
}

/// Checks that some morphism encodes the layout.
///
/// Errors: [`MorphismError::NotTractable`], with the two modes.
///
/// ```
/// use tilewright_layout::morphism::tractability;
///
/// let reason = tractability(&"((8,8),(5,5)):((8,1),(10,2))".parse().unwrap()).unwrap_err();
/// assert_eq!(
///     reason.to_string(),
///     "((8,8),(5,5)):((8,1),(10,2)) is not tractable: 8 * 1 = 8 of mode [0,1] does not divide 2, the next stride, of mode [1,1]",
/// );
/// ```
pub fn tractability(layout: &Layout) -> Result<(), MorphismError> {
    if is_tractable(layout) { Ok(()) } else { Err(obstacle(layout, CompositionSide::Alone)) }
}

/// The standard morphism that encodes a layout (3.1.2.5).
///
/// Modes of extent 1 map to the base point: the encoded layout has stride 0 there.
///
/// Errors: the layout is not tractable ([`MorphismError::NotTractable`]).
///
/// ```
/// use tilewright_layout::morphism::standard_representation;
///
/// let standard = |text: &str| standard_representation(&text.parse().unwrap()).unwrap().to_string();
/// assert_eq!(standard("(2,2):(3,30)"), "(2,2) -> (3,2,5,2) : (2,4)");
/// assert_eq!(standard("(2,2,2,2):(24,0,3,480)"), "(2,2,2,2) -> (3,2,4,2,10,2) : (4,*,2,6)");
/// ```
pub fn standard_representation(layout: &Layout) -> Result<NestMorphism, MorphismError> {
    standard(layout, CompositionSide::Alone)
}

/// As [`standard_representation`], for a part of a composition.
pub(crate) fn standard(layout: &Layout, part: CompositionSide) -> Result<NestMorphism, MorphismError> {
    let mut modes = MovingModes::new();
    if !list_moving(layout.leaves(), &mut modes) {
        return Err(obstacle(layout, part));
    }
    let mut codomain = Entries::new();
    let mut images: Images = SmallVec::from_elem(0, layout.leaves().len());
    let mut reached = 1;
    for (stride, extent, leaf) in &modes {
        if *stride > reached {
            codomain.push(stride / reached);
        }
        codomain.push(*extent);
        if let Some(image) = images.get_mut(usize::from(*leaf)) {
            *image = codomain.len() as u16;
        }
        // Only the product after the last mode may overflow, and it is not used.
        reached = stride.saturating_mul(*extent);
    }
    let profile = Profile::flat(codomain.len())?;
    let map = PointedMap::from_images(codomain.len(), images);
    let flat = TupleMorphism::from_valid(extents(layout), codomain, map);
    Ok(NestMorphism::from_parts(flat, layout.profile().clone(), profile))
}

/// The layout that a morphism encodes; see [`NestMorphism::encoded_layout`].
///
/// Errors: a stride is not representable.
pub fn encoded_layout(morphism: &NestMorphism) -> Result<Layout, MorphismError> {
    morphism.encoded_layout()
}

/// The leaves that a flat morphism encodes.
fn encoded(f: &TupleMorphism) -> Result<SmallVec<[Leaf; 8]>, MorphismError> {
    let steps = steps(f.codomain());
    let leaves = f.domain().iter().zip(f.map().images()).map(|(extent, image)| {
        let stride = match image {
            None => 0,
            Some(place) => steps.get(place).copied().flatten().ok_or_else(|| overflow("encoded_layout"))?,
        };
        Ok(Leaf { extent: *extent, stride })
    });
    leaves.collect()
}

impl NestMorphism {
    /// The layout of the morphism: its shape is the domain, and the stride of an entry is the
    /// product of the codomain before its image, 0 for the base point.
    ///
    /// Errors: a stride is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::NestMorphism;
    ///
    /// let f: NestMorphism = "((2,2),3) -> (5,2,2,3) : ((2,*),4)".parse().unwrap();
    /// assert_eq!(f.encoded_layout().unwrap().to_string(), "((2,2),3):((5,0),20)");
    /// ```
    pub fn encoded_layout(&self) -> Result<Layout, MorphismError> {
        Ok(Layout::from_tree(Tree::new(self.domain_profile().clone(), encoded(self.flatten())?)?)?)
    }

    /// The standard form: the standard representation of the encoded layout.
    ///
    /// Errors: a stride is not representable.
    pub fn standard_form(&self) -> Result<NestMorphism, MorphismError> {
        standard_representation(&self.encoded_layout()?)
    }

    /// Whether the codomain is flat and the flat morphism is standard.
    pub fn is_standard(&self) -> bool {
        self.codomain_profile().depth() == 1 && self.flatten().is_standard()
    }

    /// Whether an entry 1 does not map to the base point. Its stride cannot be observed, and two
    /// such morphisms may encode the same function.
    pub fn is_degenerate(&self) -> bool {
        self.flatten().is_degenerate()
    }
}

impl TupleMorphism {
    /// The flat layout of the morphism; see [`NestMorphism::encoded_layout`].
    ///
    /// Errors: a stride is not representable.
    pub fn encoded_layout(&self) -> Result<Layout, MorphismError> {
        Ok(Layout::from_tree(Tree::flat(encoded(self)?)?)?)
    }

    /// The standard form: the standard representation of the encoded layout.
    ///
    /// Errors: a stride is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::TupleMorphism;
    ///
    /// let h: TupleMorphism = "(4,5) -> (4,2,8,5,7) : (1,4)".parse().unwrap();
    /// assert!(!h.is_standard());
    /// assert_eq!(h.standard_form().unwrap().to_string(), "(4,5) -> (4,16,5) : (1,3)");
    /// ```
    pub fn standard_form(&self) -> Result<TupleMorphism, MorphismError> {
        Ok(standard_representation(&self.encoded_layout()?)?.flatten().clone())
    }

    /// Whether the codomain has no superfluous entry: its last entry is hit, and an entry that is
    /// not hit is above 1 and followed by one that is hit.
    pub fn is_standard(&self) -> bool {
        let preimages = self.map().preimages();
        let followed = preimages.iter().skip(1).map(Option::is_some).chain(core::iter::once(false));
        self.codomain()
            .iter()
            .zip(&preimages)
            .zip(followed)
            .all(|((extent, preimage), next)| preimage.is_some() || (*extent != 1 && next))
    }

    /// Whether an entry 1 does not map to the base point.
    pub fn is_degenerate(&self) -> bool {
        self.domain().iter().zip(&self.map().images).any(|(extent, place)| *extent == 1 && *place > 0)
    }
}
