//! Candidates: the layouts that a value may have during layout assignment.
//!
//! A compiler that assigns layouts keeps, for each value, the layouts that it may have. A
//! [`Candidate`] is the record of one of them. A descriptor is the list of the strides of a layout
//! as basis steps. [`crate::Descriptor`] parses it by the rules of the language: the count, the
//! denominator and the modes of an entry exist only during parsing. The result is a tree of
//! strides; fractions have been reduced to integers or refused.
//!
//! Laws:
//!
//! * *Normal form.* Each top-level mode is coalesced, and a tuple of one number is that number; the
//!   top-level modes stay. So the normal form is the same function of coordinates with one index
//!   for each top-level mode. Two layouts have the same normal form exactly when their modes have
//!   equal sizes and they are the same function of such coordinates. The normal form of a normal
//!   form is itself.
//! * *Identity.* Two candidates are equal, and hash alike, exactly when their normal forms are
//!   equal and their swizzles are. A swizzle of no bits counts as no swizzle. How a layout was
//!   written, and the state of the candidate, are ignored.
//! * *State.* [`State`] says which changes are legal; all others are refused and change nothing.

mod state;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use core::error::Error;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::symbolic::Expr;
use crate::{
    AnyLayout, AnyTree, Composed, Descriptor, Extent, Kind, Layout, LayoutError, OuterMap, Profile, Swizzle, Tree,
};

use crate::verify::{self, Incongruent, Verdict};
pub use state::{IllegalChange, State};

/// A layout that layout assignment may give to a value.
///
/// ```
/// use tilewright_layout::candidate::{Candidate, State};
/// use tilewright_layout::{AnyLayout, Kind, Swizzle};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rows: AnyLayout = "((2,4),64):((64,128),1)".parse()?;
/// let plain = Candidate::of_layout(&rows)?;
/// assert_eq!(plain.text(), "(8,64):(64,1)"); // mode 0 is contiguous
/// assert_eq!(plain.basis().to_string(), "((64,128),1)"); // as given
///
/// // The swizzle is part of the identity.
/// let mut swizzled = Candidate::of_swizzled(Swizzle::new(3, 3, 3)?, &rows)?;
/// assert!(swizzled != plain);
/// assert_eq!(swizzled.text(), "S<3,3,3> o 0 o (8,64):(64,1)");
///
/// // Strides become a candidate together with a shape.
/// let tile = Candidate::of_strides(&"(8,64)".parse()?, &"(1@0,1@1)".parse()?)?;
/// assert_eq!((tile.kind(), tile.text()), (Kind::Coordinate, "(8,64):(1@0,1@1)".to_string()));
///
/// swizzled.change(State::Assigned)?;
/// assert!(swizzled.change(State::Rejected).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Candidate {
    /// The layout as given.
    given: AnyLayout,
    /// Its normal form, including the swizzle.
    identity: AnyLayout,
    /// The kind of the layout without the swizzle.
    kind: Kind,
    swizzle: Option<Swizzle>,
    state: State,
}

/// The reason why there is no candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CandidateError {
    /// Shape and strides have different nestings.
    NotCongruent(Box<Incongruent>),
    /// The offset of a composed layout is not 0. A candidate does not have an offset.
    Offset {
        /// The offset as text.
        offset: Box<str>,
    },
    /// The outer map of a composed layout is a layout. Its composition with the inner layout would
    /// be a candidate.
    OuterLayout,
    /// The algebra refuses a number of the layout.
    Refused(LayoutError),
}

impl fmt::Display for CandidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CandidateError::NotCongruent(at) => at.fmt(f),
            CandidateError::Offset { offset } => {
                write!(f, "a candidate is a layout from offset 0 on, and this one begins at {offset}")
            }
            CandidateError::OuterLayout => {
                f.write_str("a candidate is a layout, swizzled or not, and this one is seen through another map")
            }
            CandidateError::Refused(error) => error.fmt(f),
        }
    }
}

impl Error for CandidateError {}

crate::from_variants!(CandidateError: Refused(LayoutError));

/// The form in which candidates are compared: each top-level mode coalesced, and a tuple of one
/// number as that number.
///
/// Errors: as [`AnyLayout::coalesce_by`].
///
/// ```
/// use tilewright_layout::candidate::normal_form;
///
/// let normal = |text: &str| normal_form(&text.parse().unwrap()).unwrap().to_string();
/// assert_eq!(normal("((2,4),(3,(5,1))):((1,2),(8,(24,7)))"), "(8,15):(1,8)"); // not 120:1
/// assert_eq!(normal("(((4,2))):(((1,8)))"), "((4,2)):((1,8))"); // one mode with two leaves
/// assert_eq!(normal("((4)):((1))"), "4:1");
/// ```
pub fn normal_form(layout: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    if layout.profile().is_leaf() {
        return layout.coalesce();
    }
    let modes = layout.coalesce_by(&Profile::flat(layout.rank())?)?;
    match modes.mode(0) {
        Some(mode) if modes.rank() == 1 && mode.profile().is_leaf() => Ok(mode),
        _ => Ok(modes),
    }
}

/// The candidate of a composed layout that consists of a swizzle and a layout.
fn of_composed<N: Extent>(map: &Composed<N>) -> Result<Candidate, CandidateError>
where
    AnyLayout: From<Layout<N>>,
{
    match map.outer() {
        _ if !map.offset().is_zero().proved() => {
            Err(CandidateError::Offset { offset: map.offset().to_string().into_boxed_str() })
        }
        OuterMap::Swizzle(swizzle) => Candidate::of_swizzled(*swizzle, &map.inner().clone().into()),
        OuterMap::Layout(_) | OuterMap::Bits(_) | OuterMap::Chain(_) => Err(CandidateError::OuterLayout),
    }
}

/// The strides of a layout, without its swizzle.
fn strides(layout: &AnyLayout) -> AnyTree {
    match layout {
        AnyLayout::Integer(layout) => layout.stride().into(),
        AnyLayout::Launch(layout) => layout.stride().into(),
        AnyLayout::Coordinate(layout) => layout.stride().into(),
        AnyLayout::Xor(layout) => layout.stride().into(),
        AnyLayout::Composed(map) => map.inner().stride().into(),
        AnyLayout::LaunchComposed(map) => map.inner().stride().into(),
        AnyLayout::CoordinateComposed(map) => map.inner().stride().into(),
    }
}

impl Candidate {
    /// The candidate of a layout of any kind, or of a swizzled one, `S<b,m,s> o 0 o L`. A swizzle
    /// of no bits counts as no swizzle.
    ///
    /// Errors: a composed layout whose offset is not 0, or whose outer map is not a swizzle; a
    /// number of the normal form is not representable.
    pub fn of_layout(layout: &AnyLayout) -> Result<Candidate, CandidateError> {
        match layout {
            AnyLayout::Composed(map) => of_composed(map),
            AnyLayout::LaunchComposed(map) => of_composed(map),
            AnyLayout::CoordinateComposed(_) => Err(CandidateError::OuterLayout),
            _ => Ok(Candidate {
                given: layout.clone(),
                identity: normal_form(layout)?,
                kind: layout.kind(),
                swizzle: None,
                state: State::Proposed,
            }),
        }
    }

    /// The candidate of a layout whose offsets are swizzled. A swizzle of no bits counts as no
    /// swizzle.
    ///
    /// Errors: the strides are not numbers; as [`Candidate::of_layout`].
    pub fn of_swizzled(swizzle: Swizzle, layout: &AnyLayout) -> Result<Candidate, CandidateError> {
        if swizzle.is_identity() {
            return Candidate::of_layout(layout);
        }
        let swizzled: AnyLayout = match normal_form(layout)? {
            AnyLayout::Launch(form) => Composed::new(swizzle, Expr::from(0), *form)?.into(),
            form => Composed::new(swizzle, 0, form.integers()?.clone())?.into(),
        };
        Ok(Candidate {
            given: layout.clone(),
            identity: swizzled,
            kind: layout.kind(),
            swizzle: Some(swizzle),
            state: State::Proposed,
        })
    }

    /// The candidate of the layout with this shape and these strides.
    ///
    /// Errors: shape and strides have different nestings; an extent is not positive; as
    /// [`Candidate::of_layout`].
    pub fn of_strides(shape: &AnyTree, strides: &AnyTree) -> Result<Candidate, CandidateError> {
        let nesting = |tree: &AnyTree| Tree::new(tree.profile().clone(), vec![(); tree.len()]);
        match verify::congruent(&nesting(shape)?, &nesting(strides)?) {
            Verdict::Fails(at) => Err(CandidateError::NotCongruent(Box::new(at))),
            Verdict::Undecided(error) => Err(error.into()),
            Verdict::Holds(_) => Candidate::of_layout(&AnyLayout::new(shape, strides)?),
        }
    }

    /// The candidate of the layout with this shape whose strides a descriptor gives, such as
    /// `((1@0,8@1),1@2)`.
    ///
    /// Only the tree of strides is stored, not the entries with their counts and denominators.
    /// Errors: as [`Candidate::of_strides`].
    ///
    /// ```
    /// use tilewright_layout::candidate::Candidate;
    /// use tilewright_layout::{Descriptor, Kind};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let descriptor: Descriptor = "((4/4@0, 8@1), 1@2)".parse()?;
    /// let candidate = Candidate::of_descriptor(&"((4,2),16)".parse()?, &descriptor)?;
    /// assert_eq!(candidate.kind(), Kind::Coordinate);
    /// assert_eq!(candidate.text(), "((4,2),16):((1@0,8@1),1@2)");
    /// assert_eq!(candidate.basis().to_string(), descriptor.to_string());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_descriptor(shape: &AnyTree, descriptor: &Descriptor) -> Result<Candidate, CandidateError> {
        Candidate::of_strides(shape, &descriptor.strides().clone().into())
    }

    /// The basis list: the strides as given, in their order and nesting.
    pub fn basis(&self) -> AnyTree {
        strides(&self.given)
    }

    /// The layout as given, without the swizzle.
    pub fn given(&self) -> &AnyLayout {
        &self.given
    }

    /// The kind of the layout, without the swizzle.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The swizzle of the offsets, if there is one.
    pub fn swizzle(&self) -> Option<Swizzle> {
        self.swizzle
    }

    /// The strides of the normal form, without the swizzle.
    pub fn stride(&self) -> AnyTree {
        strides(&self.identity)
    }

    /// The normal form, including the swizzle. Candidates are compared by it.
    pub fn identity(&self) -> &AnyLayout {
        &self.identity
    }

    /// The normal form as text, which parses back.
    pub fn text(&self) -> String {
        self.identity.to_string()
    }

    /// The state of its assignment.
    pub fn state(&self) -> State {
        self.state
    }

    /// Changes the state and returns the previous one.
    ///
    /// Errors: the change is not legal (see [`State`]); the state stays the same.
    pub fn change(&mut self, to: State) -> Result<State, IllegalChange> {
        let from = self.state;
        if !from.leads_to(to) {
            return Err(IllegalChange { from, to });
        }
        self.state = to;
        Ok(from)
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.identity == other.identity
    }
}

impl Eq for Candidate {}

impl Hash for Candidate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity.hash(state);
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Candidate({}, {})", self.identity, self.state)
    }
}
