//! Candidates of layout assignment.
//!
//! A compiler that assigns layouts keeps, for each value, the layouts that it may have. A
//! [`Candidate`] is the record of one of them. Descriptors, the strides of a layout as a list of
//! basis steps, are read by [`tilewright_layout::Descriptor`], by the rules that the language has:
//! an entry with its count, its denominator and its modes exists only while it is read. What is
//! handed on is a tree of strides, whose fractions have come out whole or have been refused.
//!
//! Laws:
//!
//! * *Normal form.* Each top-level mode is coalesced, and a tuple of one number is that number; the
//!   top-level modes stay. So the normal form is the same function of a coordinate with one index a
//!   mode, and two layouts have the same normal form exactly when their modes have equal sizes and
//!   they are the same function of such coordinates. The normal form of a normal form is itself.
//! * *Identity.* Two candidates are equal, and hash alike, exactly when their normal forms are
//!   equal and their swizzles are. A swizzle of no bits is no swizzle. How a layout was written,
//!   and the state of the candidate, do not count.
//! * *State.* [`State`] says which changes are legal; all others are refused and change nothing.

use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    Composed, Coordinate, Descriptor, Layout, LayoutError, OuterMap, Profile, Stride, Swizzle, Tree, Xor,
};

use crate::handle::Handle;
use crate::interner::{InternError, Interner};
use crate::kind::Kind;
use crate::state::{IllegalChange, State};
use crate::verify::{self, Incongruent, Verdict};

macro_rules! step_kinds {
    ($($(#[$text:meta])* $kind:ident: $step:ty, $name:literal;)*) => {
        /// What the strides of a layout are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LayoutKind {
            $($(#[$text])* $kind,)*
        }

        impl fmt::Display for LayoutKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(LayoutKind::$kind => $name,)*
                })
            }
        }

        /// The identity of an interned layout of any kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Identity {
            $($(#[$text])* $kind(Handle<Layout<$step>>),)*
            /// Integers, swizzled: `S<b,m,s> o 0 o L`.
            Swizzled(Handle<Composed>),
        }

        $(
            impl From<Handle<Layout<$step>>> for Identity {
                fn from(handle: Handle<Layout<$step>>) -> Identity {
                    Identity::$kind(handle)
                }
            }
        )*

        /// The strides of a layout of any kind, in their nesting.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Strides {
            $($(#[$text])* $kind(Tree<$step>),)*
        }

        impl fmt::Display for Strides {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Strides::$kind(tree) => tree.fmt(f),)*
                }
            }
        }

        impl Identity {
            /// What the strides are; below a swizzle, those of the layout that is swizzled.
            pub fn kind(&self) -> LayoutKind {
                match self {
                    $(Identity::$kind(_) => LayoutKind::$kind,)*
                    Identity::Swizzled(_) => LayoutKind::Integer,
                }
            }

            /// The strides, those below a swizzle where there is one.
            ///
            /// Errors: [`InternError::Foreign`].
            pub fn stride(&self, interner: &Interner) -> Result<Strides, InternError> {
                Ok(match self {
                    $(Identity::$kind(handle) => Strides::$kind(interner.get(*handle)?.stride()),)*
                    Identity::Swizzled(handle) => Strides::Integer(interner.get(*handle)?.inner().stride()),
                })
            }

            /// The layout as text, which reads back.
            ///
            /// Errors: [`InternError::Foreign`].
            pub fn text(&self, interner: &Interner) -> Result<String, InternError> {
                Ok(match self {
                    $(Identity::$kind(handle) => interner.get(*handle)?.to_string(),)*
                    Identity::Swizzled(handle) => interner.get(*handle)?.to_string(),
                })
            }
        }
    };
}

step_kinds! {
    /// Integers.
    Integer: i64, "integer";
    /// Bit vectors under exclusive or.
    Xor: Xor, "XOR";
    /// Steps along modes: `3@1`.
    Coordinate: Coordinate, "coordinate";
    /// Expressions that become known at launch.
    Symbolic: Expr, "symbolic";
    /// Steps along modes, so many as becomes known at launch.
    SymbolicCoordinate: Coordinate<Expr>, "symbolic coordinate";
}

/// A layout that layout assignment may give to a value.
///
/// It holds handles, and costs little to keep; what it says about its layout it looks up in the
/// interner that it was made with.
///
/// ```
/// use tilewright_compiler::{Candidate, Interner, LayoutKind, State};
/// use tilewright_layout::{Coordinate, Layout, Swizzle, Tree};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let interner = Interner::new();
/// let rows: Layout = "((2,4),64):((64,128),1)".parse()?;
/// let plain = Candidate::of_layout(&interner, &rows)?;
/// assert_eq!(plain.text(&interner)?, "(8,64):(64,1)"); // mode 0 is one run
/// assert_eq!(plain.basis(&interner)?.to_string(), "((64,128),1)"); // as it was written
///
/// // The swizzle is part of the identity.
/// let mut swizzled = Candidate::of_swizzled(&interner, Swizzle::new(3, 3, 3)?, &rows)?;
/// assert!(swizzled != plain);
/// assert_eq!(swizzled.text(&interner)?, "S<3,3,3> o 0 o (8,64):(64,1)");
///
/// // Strides alone become a candidate with a shape.
/// let strides: Tree<Coordinate> = "(1@0,1@1)".parse()?;
/// let tile = Candidate::of_strides(&interner, &"(8,64)".parse()?, &strides)?;
/// assert_eq!((tile.kind(), tile.text(&interner)?), (LayoutKind::Coordinate, "(8,64):(1@0,1@1)".to_string()));
///
/// swizzled.change(State::Assigned)?;
/// assert!(swizzled.change(State::Rejected).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Candidate {
    /// The layout as it was given.
    given: Identity,
    /// Its normal form, under the swizzle.
    identity: Identity,
    swizzle: Option<Swizzle>,
    state: State,
}

/// Why there is no candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CandidateError {
    /// The strides do not nest as the shape does.
    NotCongruent(Box<Incongruent>),
    /// The offset of a composed layout is not 0, and a candidate says nothing of where its value
    /// begins.
    Offset {
        /// The offset.
        offset: i64,
    },
    /// A composed layout whose outer map is a layout: compose the two, then there is one.
    OuterLayout,
    /// The interner has no handle for it.
    Intern(InternError),
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
            CandidateError::Intern(error) => error.fmt(f),
        }
    }
}

impl Error for CandidateError {}

impl From<InternError> for CandidateError {
    fn from(error: InternError) -> CandidateError {
        CandidateError::Intern(error)
    }
}

impl From<LayoutError> for CandidateError {
    fn from(error: LayoutError) -> CandidateError {
        CandidateError::Intern(InternError::from(error))
    }
}

/// The form in which candidates are compared: each top-level mode coalesced, and a tuple of one
/// number as that number.
///
/// Errors: as [`Layout::coalesce_by`].
///
/// ```
/// use tilewright_compiler::normal_form;
/// use tilewright_layout::Layout;
///
/// let normal = |text: &str| normal_form(&text.parse::<Layout>().unwrap()).unwrap().to_string();
/// assert_eq!(normal("((2,4),(3,(5,1))):((1,2),(8,(24,7)))"), "(8,15):(1,8)"); // the modes stay two, although 120:1 is the same function
/// assert_eq!(normal("(((4,2))):(((1,8)))"), "((4,2)):((1,8))"); // one mode of two runs
/// assert_eq!(normal("((4)):((1))"), "4:1");
/// ```
pub fn normal_form<D: Stride>(layout: &Layout<D>) -> Result<Layout<D>, LayoutError> {
    if layout.profile().is_leaf() {
        return layout.coalesce();
    }
    let modes = layout.coalesce_by(&Profile::flat(layout.rank())?)?;
    match modes.mode(0) {
        Some(mode) if modes.rank() == 1 && mode.profile().is_leaf() => Ok(mode),
        _ => Ok(modes),
    }
}

impl Candidate {
    /// The candidate of a layout.
    ///
    /// Errors: the interner is full; a number of the normal form is not representable.
    pub fn of_layout<D: Stride>(interner: &Interner, layout: &Layout<D>) -> Result<Candidate, CandidateError>
    where
        Layout<D>: Kind,
        Identity: From<Handle<Layout<D>>>,
    {
        let given = interner.intern(layout)?.into();
        let identity = interner.intern(&normal_form(layout)?)?.into();
        Ok(Candidate { given, identity, swizzle: None, state: State::Proposed })
    }

    /// The candidate of the layout with this shape and these strides, such as a descriptor gives.
    ///
    /// Errors: shape and strides do not nest alike; an extent is not positive; as
    /// [`Candidate::of_layout`].
    pub fn of_strides<D: Stride>(
        interner: &Interner,
        shape: &Tree<D::Extent>,
        strides: &Tree<D>,
    ) -> Result<Candidate, CandidateError>
    where
        Layout<D>: Kind,
        Identity: From<Handle<Layout<D>>>,
    {
        match verify::congruent(shape, strides) {
            Verdict::Fails(at) => Err(CandidateError::NotCongruent(Box::new(at))),
            Verdict::Undecided(error) => Err(error.into()),
            Verdict::Holds(_) => Candidate::of_layout(interner, &Layout::new(shape, strides)?),
        }
    }

    /// The candidate of the layout with this shape whose strides a descriptor gives, such as
    /// `((1@0,8@1),1@2)`.
    ///
    /// What is kept is the tree of strides: the entries with their counts and denominators end with
    /// the parser. Errors: as [`Candidate::of_strides`].
    ///
    /// ```
    /// use tilewright_compiler::{Candidate, Interner, LayoutKind};
    /// use tilewright_layout::Descriptor;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let interner = Interner::new();
    /// let descriptor: Descriptor = "((4/4@0, 8@1), 1@2)".parse()?;
    /// let candidate = Candidate::of_descriptor(&interner, &"((4,2),16)".parse()?, &descriptor)?;
    /// assert_eq!(candidate.kind(), LayoutKind::Coordinate);
    /// assert_eq!(candidate.text(&interner)?, "((4,2),16):((1@0,8@1),1@2)");
    /// assert_eq!(candidate.basis(&interner)?.to_string(), descriptor.to_string());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_descriptor(
        interner: &Interner,
        shape: &Tree<i64>,
        descriptor: &Descriptor,
    ) -> Result<Candidate, CandidateError> {
        Candidate::of_strides(interner, shape, descriptor.strides())
    }

    /// The candidate of a layout whose offsets are swizzled. A swizzle of no bits is none.
    ///
    /// Errors: as [`Candidate::of_layout`].
    pub fn of_swizzled(interner: &Interner, swizzle: Swizzle, layout: &Layout) -> Result<Candidate, CandidateError> {
        if swizzle.is_identity() {
            return Candidate::of_layout(interner, layout);
        }
        let given = interner.intern(layout)?.into();
        let swizzled = Composed::new(swizzle, 0, normal_form(layout)?)?;
        let identity = Identity::Swizzled(interner.intern(&swizzled)?);
        Ok(Candidate { given, identity, swizzle: Some(swizzle), state: State::Proposed })
    }

    /// The candidate of a composed layout that swizzles a layout.
    ///
    /// Errors: its offset is not 0; its outer map is a layout; as [`Candidate::of_layout`].
    pub fn of_composed(interner: &Interner, composed: &Composed) -> Result<Candidate, CandidateError> {
        match composed.outer() {
            _ if *composed.offset() != 0 => Err(CandidateError::Offset { offset: *composed.offset() }),
            OuterMap::Layout(_) | OuterMap::Bits(_) | OuterMap::Chain(_) => Err(CandidateError::OuterLayout),
            OuterMap::Swizzle(swizzle) => Candidate::of_swizzled(interner, *swizzle, composed.inner()),
        }
    }

    /// The basis list: the strides as they were given, in their order and nesting.
    ///
    /// Errors: [`InternError::Foreign`].
    pub fn basis(&self, interner: &Interner) -> Result<Strides, InternError> {
        self.given.stride(interner)
    }

    /// The layout as it was given, without the swizzle.
    pub fn given(&self) -> Identity {
        self.given
    }

    /// What the strides are.
    pub fn kind(&self) -> LayoutKind {
        self.identity.kind()
    }

    /// What permutes the offsets, if anything does.
    pub fn swizzle(&self) -> Option<Swizzle> {
        self.swizzle
    }

    /// The strides of the normal form.
    ///
    /// Errors: [`InternError::Foreign`].
    pub fn stride(&self, interner: &Interner) -> Result<Strides, InternError> {
        self.identity.stride(interner)
    }

    /// The normal form, under the swizzle if there is one: what the candidate is compared by.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The normal form as text, which reads back.
    ///
    /// Errors: [`InternError::Foreign`].
    pub fn text(&self, interner: &Interner) -> Result<String, InternError> {
        self.identity.text(interner)
    }

    /// How far assignment has come with it.
    pub fn state(&self) -> State {
        self.state
    }

    /// Changes the state; returns the one before.
    ///
    /// Errors: this change is not legal, see [`State`]; then nothing changes.
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
        write!(f, "Candidate({:?}, {})", self.identity, self.state)
    }
}
