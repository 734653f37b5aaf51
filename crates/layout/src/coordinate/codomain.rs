//! The codomain of a layout whose values are coordinates.
//!
//! Law: the *coprofile* of a layout is the smallest nesting in which every term of every stride
//! steps in a leaf; each value of the layout is a coordinate of that nesting. The *coshape* has at
//! each leaf the largest index of the values plus one, so every value without a negative index is a
//! coordinate inside it. Its product is the *cosize*. A layout of integers has the coprofile `*`.
//!
//! The identity layout of a shape maps a coordinate to itself: its strides are the unit vectors of
//! the leaves.

use smallvec::SmallVec;

use crate::coordinate::{Coordinate, ModePath, paths_of, profile_of, unit_paths};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::coord::check_extents;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::Profile;
use crate::value::tree::{Leaves, Tree};

/// The paths of the terms of a layout's strides, sorted.
pub(crate) fn paths<N: Extent>(leaves: &[Leaf<Coordinate<N>>]) -> SmallVec<[ModePath; 8]> {
    paths_of(leaves.iter().map(|leaf| &leaf.stride)).into_iter().map(|(path, _)| path).collect()
}

impl<N: Extent> Layout<Coordinate<N>> {
    /// The layout that maps every coordinate of a shape to itself: the strides are the unit vectors
    /// of its leaves (CuTe `make_identity_layout`).
    ///
    /// The identity of a single number is `n:1`.
    /// Errors: an extent is not positive; the size is not representable; a path in the shape is
    /// longer than [`crate::limits::MAX_PATH`], or a mode number above
    /// [`crate::limits::MAX_PATH_MODE`].
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout, Tree};
    ///
    /// let identity = |shape: &str| Layout::<Coordinate>::identity(&shape.parse::<Tree<i64>>().unwrap()).unwrap().to_string();
    /// assert_eq!(identity("(4,(2,3))"), "(4,(2,3)):(1@0,(1@0@1,1@1@1))");
    /// assert_eq!(identity("4"), "4:1");
    /// ```
    pub fn identity(shape: &Tree<N>) -> Result<Layout<Coordinate<N>>, LayoutError> {
        check_extents(shape)?;
        let mut leaves: Leaves<Leaf<Coordinate<N>>> = Leaves::new();
        let mut extents = shape.leaves().iter().cloned();
        unit_paths(shape.profile().as_ref(), &mut |path| {
            let stride = Coordinate::step(N::one(), path?);
            leaves.extend(extents.next().map(|extent| Leaf { extent, stride }));
            Ok(())
        })?;
        Layout::from_tree(Tree::new(shape.profile().duplicate(), leaves)?)
    }

    /// The nesting of the values: a leaf for every mode in which a stride steps, and for every
    /// sibling of such a mode (CuTe `coprofile`).
    ///
    /// Errors: more nodes than a profile may have.
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let layout: Layout<Coordinate> = "(4,5):(1@1,1@1@4)".parse().unwrap();
    /// assert_eq!(layout.coprofile().unwrap().to_string(), "(*,*,*,*,(*,*))");
    /// let integers: Layout<Coordinate> = "(4,5):(1,0)".parse().unwrap();
    /// assert_eq!(integers.coprofile().unwrap().to_string(), "*");
    /// ```
    pub fn coprofile(&self) -> Result<Profile, LayoutError> {
        profile_of(&paths(self.leaves()))
    }

    /// The shape of the values: at each leaf of [`Layout::coprofile`], the largest index of the
    /// values plus one (CuTe `coshape`).
    ///
    /// Errors: an index is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let layout: Layout<Coordinate> = "((2,2),3):((1@0,4@0),2@1)".parse().unwrap();
    /// assert_eq!(layout.coshape().unwrap().to_string(), "(6,5)");
    /// assert_eq!(layout.cosize().unwrap(), 30);
    /// ```
    pub fn coshape(&self) -> Result<Tree<N>, LayoutError> {
        const OP: &str = "coshape";
        let mut largest = Coordinate::<N>::zero();
        for leaf in self.leaves() {
            let last = leaf.extent.minus(&N::one()).fits_as::<N>(OP)?;
            for (path, scale) in leaf.stride.terms() {
                let reach = scale.times(&last).fits_as::<N>(OP)?;
                match reach.less(&N::zero()) {
                    Truth::Proved => {}
                    Truth::Refuted => {
                        let step = Coordinate::step(reach, path);
                        largest = largest.plus(&step).fits_as::<N>(OP)?;
                    }
                    Truth::Open => return Err(LayoutError::open(OP, Condition::AtMost, &N::zero(), scale)),
                }
            }
        }
        largest.in_profile(&self.coprofile()?)?.try_map(|index| index.plus(&N::one()).fits_as::<N>(OP))
    }

    /// The number of coordinates inside [`Layout::coshape`] (CuTe `cosize`).
    ///
    /// Errors: an index, or the product, is not representable.
    pub fn cosize(&self) -> Result<N, LayoutError> {
        self.coshape()?.product()
    }
}
