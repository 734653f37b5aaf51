//! Layouts as morphisms.
//!
//! A layout whose strides form a divisibility chain, as those of nearly every layout in use do, can
//! be drawn as a diagram: its modes on one side, the axes of memory on the other, and an arrow from
//! each mode to the axis along which it steps. Such diagrams are the morphisms of a category. They
//! compose by following arrows, and they show what the algebra computes with strides. The theory is
//! that of Carlisle, Shah, Stern and VanKoughnett, *Categorical Foundations for CuTe Layouts*
//! (arXiv 2601.05972), whose section numbers are cited throughout, with later additions of its
//! authors.
//!
//! # Types and their laws
//!
//! | type | what it is | law |
//! |---|---|---|
//! | [`PointedMap`] | a map of indices, some of which map to the base point | no index other than the base point is hit twice; composition is associative and has units |
//! | [`TupleMorphism`] | a morphism `S -> T` of flat tuples over such a map | an entry is sent to an equal one |
//! | [`NestMorphism`] | the same for nested tuples | a flat morphism and two profiles; every operation is the flat one |
//! | [`Refinement`] | a nested tuple and one that refines it | each entry is replaced by a tuple of that size; a partial order that moves no index |
//! | [`MutualRefinement`] | refinements of two tuples, the one a prefix of the other | exists exactly when prefix products form a divisibility chain |
//! | [`Square`] | a morphism and the same one between refined tuples | pullback and pushforward; the function stays |
//! | [`WorkedComposition`] | a composition of layouts by mutual refinement, with every step | what [`compose_by_refinement`] gives, and the algebra |
//! | [`Class`] | why a composite exists: by refinement, or why else | decided on every pair that composes |
//! | [`Fact`], [`Ref`] | factorisations of the entries of a tuple, flat or nested | categories; flattening is a functor |
//! | [`Span`], [`Cospan`] | refine, then move; move, then join | compose by pullback and pushforward, strictly associative |
//! | [`AmbientMorphism`] | entries sent together where their product divides | a category; Tuple and the refinements are subcategories |
//! | [`operad`] | substitution of profiles | associative, with the single leaf as unit |
//!
//! # Layouts and morphisms
//!
//! ```
//! use tilewright_layout::Layout;
//! use tilewright_layout::morphism::{TupleMorphism, standard_representation};
//!
//! # fn main() -> Result<(), tilewright_layout::morphism::MorphismError> {
//! // Four columns of five, each column padded to 64: between the two axes along which modes step
//! // is one without a mode.
//! let layout: Layout = "(4,5):(1,64)".parse()?;
//! let f = standard_representation(&layout)?;
//! assert_eq!(f.to_string(), "(4,5) -> (4,16,5) : (1,3)");
//! assert_eq!(f.encoded_layout()?, layout);
//!
//! // The axes that are not hit are the complement.
//! assert_eq!(f.complement()?.encoded_layout()?.to_string(), "(16):(4)");
//! assert_eq!(layout.complement(&320)?.to_string(), "16:4");
//!
//! // Composition follows the arrows.
//! let g: TupleMorphism = "(4,16,5) -> (16,5,4) : (3,1,2)".parse()?;
//! let both = g.compose(f.flatten())?;
//! assert_eq!(both.to_string(), "(4,5) -> (16,5,4) : (3,2)");
//! assert_eq!(both.encoded_layout()?, g.encoded_layout()?.compose(&layout)?);
//! # Ok(())
//! # }
//! ```
//!
//! Every number is checked: an operation returns the morphism that satisfies its definition, or a
//! [`MorphismError`] that names the condition and the entries.

mod ambient;
mod classify;
mod complement;
mod compose;
mod error;
mod explanation;
mod fact;
mod grafting;
mod kept;
mod message;
mod mutual;
mod nest;
pub mod operad;
mod pointed;
mod realise;
mod refine;
mod simplify;
mod span;
mod square;
mod standard;
mod text;
mod tuple;

pub use ambient::AmbientMorphism;
pub use classify::{Class, classify};
pub use compose::{WorkedComposition, compose_by_refinement, weak_composite};
pub use error::{
    Apart, CompositionSide, Misfit, MorphismError, NoMutualRefinement, NotARefinement, NotTractable, Side,
};
pub use explanation::explanation;
pub use fact::Fact;
pub use grafting::Ref;
pub use mutual::{MutualRefinement, mutual_refinement};
pub use nest::NestMorphism;
pub use pointed::PointedMap;
pub use realise::MAX_TABLE;
pub use refine::{Refinement, refines};
pub use span::{Backward, Cospan, Span};
pub use square::Square;
pub use standard::{encoded_layout, is_tractable, standard_representation, tractability};
pub use tuple::TupleMorphism;
