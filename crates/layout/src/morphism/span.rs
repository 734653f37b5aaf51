//! Spans: a refinement, then a morphism. The category Span(Tuple, Ref), and Span(Tuple, Fact) below
//! it.
//!
//! Law: a span `U <- X -> V` is a backward refinement `X -> U` and a morphism `X -> V`. `(Y -> V ->
//! W) o (X -> U -> V)` is formed by the pullback of `X -> V` along `Y -> V`. Composition is
//! strictly associative and has strict units, sums and interchange hold, Tuple and the opposite of
//! Ref are subcategories. A nested layout is a span from the sizes of its modes.
//!
//! Realisation is a functor here, too: a refinement changes no index, so `|U <- X -> V|` is
//! `|X -> V|` on `[0, size U)`, and `|s o t| = |s| o |t|`. (Coordinates do change: those of `U` are
//! first split into those of `X`.)
//!
//! A *cospan* `U -> X <- V`, here a morphism followed by a refinement in its own direction, is
//! composed by pushforward. The composition of layouts by mutual refinement is a span, then an
//! inclusion, then a cospan ([`crate::morphism::weak_composite`]).

use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use crate::morphism::error::MorphismError;
use crate::morphism::fact::Fact;
use crate::morphism::grafting::Ref;
use crate::morphism::nest::NestMorphism;
use crate::morphism::pointed::{Images, PointedMap};
use crate::morphism::standard::standard_representation;
use crate::morphism::tuple::{TupleMorphism, not_composable};
use crate::{Layout, Tree};

/// A category of refinements: the left side of a span.
pub trait Backward: Clone + PartialEq + fmt::Display {
    /// The identity of a tuple.
    ///
    /// Errors: as for a tuple.
    fn identity(tuple: &[i64]) -> Result<Self, MorphismError>;

    /// The finer tuple.
    fn domain(&self) -> &[i64];

    /// The coarser tuple.
    fn codomain(&self) -> &[i64];

    /// `self` after `first`.
    ///
    /// Errors: `first` does not end where `self` begins.
    fn compose(&self, first: &Self) -> Result<Self, MorphismError>;

    /// The two side by side.
    ///
    /// Errors: the size is not representable.
    fn sum(&self, other: &Self) -> Result<Self, MorphismError>;

    /// The refinement that has, over each entry of `onto`, the part of `self` that `parts` names,
    /// or the entry itself.
    ///
    /// Errors: the size is not representable.
    fn select(&self, onto: &[i64], parts: &[Option<usize>]) -> Result<Self, MorphismError>;

    /// The number of entries of the finer tuple over each entry of the coarser one.
    fn lengths(&self) -> Vec<usize>;
}

/// The methods of a category of refinements, by the methods of the same names.
macro_rules! of_category {
    ($Category:ident) => {
        fn identity(tuple: &[i64]) -> Result<$Category, MorphismError> {
            $Category::identity(tuple)
        }

        fn domain(&self) -> &[i64] {
            $Category::domain(self)
        }

        fn codomain(&self) -> &[i64] {
            $Category::codomain(self)
        }

        fn compose(&self, first: &$Category) -> Result<$Category, MorphismError> {
            $Category::compose(self, first)
        }

        fn sum(&self, other: &$Category) -> Result<$Category, MorphismError> {
            $Category::sum(self, other)
        }
    };
}

impl Backward for Fact {
    of_category!(Fact);

    fn select(&self, onto: &[i64], parts: &[Option<usize>]) -> Result<Fact, MorphismError> {
        let blocks: Vec<&[i64]> = self.blocks().collect();
        Fact::new(onto.iter().zip(parts).map(|(extent, part)| {
            part.and_then(|part| blocks.get(part)).map_or_else(|| alloc::vec![*extent], |block| block.to_vec())
        }))
    }

    fn lengths(&self) -> Vec<usize> {
        self.blocks().map(<[i64]>::len).collect()
    }
}

impl Backward for Ref {
    of_category!(Ref);

    fn select(&self, onto: &[i64], parts: &[Option<usize>]) -> Result<Ref, MorphismError> {
        let modes: Vec<Tree<i64>> = self.tree().modes().collect();
        let chosen = onto
            .iter()
            .zip(parts)
            .map(|(extent, part)| part.and_then(|part| modes.get(part)).cloned().unwrap_or(Tree::leaf(*extent)));
        Ref::new(Tree::tuple(chosen.collect::<Vec<_>>().iter())?)
    }

    fn lengths(&self) -> Vec<usize> {
        self.tree().modes().map(|mode| mode.leaves().len()).collect()
    }
}

/// A refinement in backward direction, then a morphism.
///
/// ```
/// use tilewright_layout::morphism::{Ref, Span};
///
/// // A nested layout: the modes are split into leaves, which are then moved.
/// let span = Span::of_layout(&"((2,2),3):((6,1),2)".parse().unwrap()).unwrap();
/// assert_eq!(span.to_string(), "(4,3) <- ((2,2),3) ; (2,2,3) -> (2,3,2) : (3,1,2)");
/// assert_eq!((0..6).map(|index| span.realise(index).unwrap()).collect::<Vec<_>>(), [0, 6, 1, 7, 2, 8]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Span<B> {
    back: B,
    forward: TupleMorphism,
}

impl<B: Backward> Span<B> {
    /// The span `U <- X -> V`.
    ///
    /// Errors: the two do not have the same domain ([`MorphismError::NotComposable`]).
    pub fn new(back: B, forward: TupleMorphism) -> Result<Span<B>, MorphismError> {
        if back.domain() != forward.domain() {
            return Err(not_composable("span", back.domain(), forward.domain()));
        }
        Ok(Span { back, forward })
    }

    /// The identity of a tuple.
    ///
    /// Errors: as for a tuple.
    pub fn identity(tuple: &[i64]) -> Result<Span<B>, MorphismError> {
        Span::new(B::identity(tuple)?, TupleMorphism::identity(tuple.iter().copied())?)
    }

    /// A morphism as a span: Tuple is a subcategory.
    ///
    /// Errors: none for a morphism that exists.
    pub fn of_morphism(f: &TupleMorphism) -> Result<Span<B>, MorphismError> {
        Span::new(B::identity(f.domain())?, f.clone())
    }

    /// A nested morphism as a span: the functor from Nest by way of Tuple.
    ///
    /// Errors: none for a morphism that exists.
    pub fn of_nest(f: &NestMorphism) -> Result<Span<B>, MorphismError> {
        Span::of_morphism(f.flatten())
    }

    /// A refinement in backward direction: the opposite of the category of refinements is a
    /// subcategory.
    ///
    /// Errors: none for a refinement that exists.
    pub fn of_back(back: B) -> Result<Span<B>, MorphismError> {
        let forward = TupleMorphism::identity(back.domain().iter().copied())?;
        Span::new(back, forward)
    }

    /// The refinement on the left.
    #[inline]
    pub fn back(&self) -> &B {
        &self.back
    }

    /// The morphism on the right.
    #[inline]
    pub fn forward(&self) -> &TupleMorphism {
        &self.forward
    }

    /// The domain of the span.
    #[inline]
    pub fn domain(&self) -> &[i64] {
        self.back.codomain()
    }

    /// The codomain of the span.
    #[inline]
    pub fn codomain(&self) -> &[i64] {
        self.forward.codomain()
    }

    /// `self` after `first`, through the pullback of the morphism of `first` along the refinement
    /// of `self`.
    ///
    /// Errors: `first` does not end where `self` begins ([`MorphismError::NotComposable`]); a size
    /// is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::{Ref, Span};
    ///
    /// let cut = Span::of_back(Ref::new("((2,3),4)".parse().unwrap()).unwrap()).unwrap();
    /// let swap = Span::of_morphism(&"(4,6) -> (6,4) : (2,1)".parse().unwrap()).unwrap();
    /// assert_eq!(cut.compose(&swap).unwrap().to_string(), "(4,6) <- (4,(2,3)) ; (4,2,3) -> (2,3,4) : (3,1,2)");
    /// ```
    pub fn compose(&self, first: &Span<B>) -> Result<Span<B>, MorphismError> {
        let f = &first.forward;
        if f.codomain() != self.back.codomain() {
            return Err(not_composable("compose", f.codomain(), self.back.codomain()));
        }
        let parts: Vec<Option<usize>> = f.map().images().collect();
        let pulled = self.back.select(f.domain(), &parts)?;
        let over = images_of_pieces(&parts, &pulled.lengths(), &self.back.lengths());
        let domain = pulled.domain().into();
        let map = PointedMap::from_images(self.back.domain().len(), over);
        let along = TupleMorphism::from_valid(domain, self.back.domain().into(), map);
        Span::new(first.back.compose(&pulled)?, self.forward.compose(&along)?)
    }

    /// The two side by side.
    ///
    /// Errors: a size is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::Span;
    ///
    /// let span = |layout: &str| Span::of_layout(&layout.parse().unwrap()).unwrap();
    /// let both = span("((2,2)):((2,1))").sum(&span("(3):(1)")).unwrap();
    /// assert_eq!(both.to_string(), "(4,3) <- ((2,2),3) ; (2,2,3) -> (2,2,3) : (2,1,3)");
    /// ```
    pub fn sum(&self, other: &Span<B>) -> Result<Span<B>, MorphismError> {
        Span::new(self.back.sum(&other.back)?, self.forward.sum(&other.forward)?)
    }

    /// The value of the realisation at an index of the domain.
    ///
    /// Errors: the index is not in `[0, size)`; the value is not representable.
    pub fn realise(&self, index: i64) -> Result<i64, MorphismError> {
        self.forward.realise(index)
    }
}

/// The images of the pieces of parts: the pieces of each part map to those of the image of the
/// part, in order.
fn images_of_pieces(parts: &[Option<usize>], lengths: &[usize], onto: &[usize]) -> Images {
    let starts: Vec<usize> = onto
        .iter()
        .scan(0, |before, length| {
            let here = *before;
            *before += length;
            Some(here)
        })
        .collect();
    let mut images = Images::new();
    for (part, length) in parts.iter().zip(lengths) {
        let start = part.and_then(|part| starts.get(part));
        images.extend((0..*length).map(|piece| start.map_or(0, |start| (start + piece + 1) as u16)));
    }
    images
}

impl Span<Ref> {
    /// A tractable layout as a span, from the sizes of its modes through their leaves to its
    /// standard codomain. A single mode without parentheses is the only mode.
    ///
    /// Errors: the layout is not tractable ([`MorphismError::NotTractable`]).
    pub fn of_layout(layout: &Layout) -> Result<Span<Ref>, MorphismError> {
        Span::of_modes(&standard_representation(layout)?)
    }

    /// A nested morphism as a span, from the sizes of its modes: the modes are split into their
    /// leaves, which are then moved. A single mode without parentheses is the only mode.
    ///
    /// Errors: nested too deep.
    ///
    /// ```
    /// use tilewright_layout::morphism::Span;
    ///
    /// let span = Span::of_modes(&"((2,3),4) -> (4,3,2) : ((3,2),1)".parse().unwrap()).unwrap();
    /// assert_eq!(span.to_string(), "(6,4) <- ((2,3),4) ; (2,3,4) -> (4,3,2) : (3,2,1)");
    /// ```
    pub fn of_modes(f: &NestMorphism) -> Result<Span<Ref>, MorphismError> {
        let domain = f.domain();
        let tree = if domain.is_leaf() { Tree::tuple([&domain])? } else { domain };
        Span::new(Ref::new(tree)?, f.flatten().clone())
    }

    /// The span without nesting: a functor to Span(Tuple, Fact).
    ///
    /// Errors: none for a span that exists.
    pub fn to_fact(&self) -> Result<Span<Fact>, MorphismError> {
        Span::new(self.back.to_fact()?, self.forward.clone())
    }

    /// The layout of the span: its shape is the nested tuple, its strides are those that the
    /// morphism encodes.
    ///
    /// Errors: a stride is not representable.
    ///
    /// ```
    /// use tilewright_layout::morphism::Span;
    ///
    /// let layout = "((2,2),3):((6,1),2)".parse().unwrap();
    /// assert_eq!(Span::of_layout(&layout).unwrap().encoded_layout().unwrap(), layout);
    /// ```
    pub fn encoded_layout(&self) -> Result<Layout, MorphismError> {
        let flat = self.forward.encoded_layout()?;
        Ok(flat.unflatten(self.back.tree().profile())?)
    }
}

/// A morphism, then a refinement in its own direction.
///
/// ```
/// use tilewright_layout::morphism::{Cospan, Ref};
///
/// let f = "(4,2) -> (2,4) : (2,1)".parse().unwrap();
/// let cospan = Cospan::new(f, Ref::new("((2,4))".parse().unwrap()).unwrap()).unwrap();
/// assert_eq!(cospan.to_string(), "(4,2) -> (2,4) : (2,1) ; ((2,4)) -> (8)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cospan<B> {
    forward: TupleMorphism,
    join: B,
}

impl<B: Backward> Cospan<B> {
    /// The cospan `U -> X <- V`, where `X` refines `V`.
    ///
    /// Errors: the codomain of the morphism is not the domain of the refinement
    /// ([`MorphismError::NotComposable`]).
    pub fn new(forward: TupleMorphism, join: B) -> Result<Cospan<B>, MorphismError> {
        if forward.codomain() != join.domain() {
            return Err(not_composable("cospan", forward.codomain(), join.domain()));
        }
        Ok(Cospan { forward, join })
    }

    /// The morphism on the left.
    #[inline]
    pub fn forward(&self) -> &TupleMorphism {
        &self.forward
    }

    /// The refinement on the right.
    #[inline]
    pub fn join(&self) -> &B {
        &self.join
    }

    /// `self` after `first`, through the pushforward of the morphism of `self` along the refinement
    /// of `first`.
    ///
    /// Errors: `first` does not end where `self` begins ([`MorphismError::NotComposable`]); a size
    /// is not representable.
    pub fn compose(&self, first: &Cospan<B>) -> Result<Cospan<B>, MorphismError> {
        let g = &self.forward;
        if first.join.codomain() != g.domain() {
            return Err(not_composable("compose", first.join.codomain(), g.domain()));
        }
        let parts: Vec<Option<usize>> = g.map().preimages().iter().map(|entry| entry.map(usize::from)).collect();
        let pushed = first.join.select(g.codomain(), &parts)?;
        let images: Vec<Option<usize>> = g.map().images().collect();
        let over = images_of_pieces(&images, &first.join.lengths(), &pushed.lengths());
        let map = PointedMap::from_images(pushed.domain().len(), over);
        let along = TupleMorphism::from_valid(first.join.domain().into(), pushed.domain().into(), map);
        Cospan::new(along.compose(&first.forward)?, self.join.compose(&pushed)?)
    }

    /// The value of the realisation at an index of the domain.
    ///
    /// Errors: the index is not in `[0, size)`; the value is not representable.
    pub fn realise(&self, index: i64) -> Result<i64, MorphismError> {
        self.forward.realise(index)
    }
}

impl<B: Backward> fmt::Display for Span<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <- {} ; {}", crate::morphism::tuple::Listed(self.domain()), self.back, self.forward)
    }
}

debug_as_text!(Span<B: Backward>);

impl<B: Backward> fmt::Display for Cospan<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ; {} -> {}", self.forward, self.join, crate::morphism::tuple::Listed(self.join.codomain()))
    }
}

debug_as_text!(Cospan<B: Backward>);
