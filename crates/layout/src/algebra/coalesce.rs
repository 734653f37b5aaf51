//! Coalescing: the fewest modes with the same function.
//!
//! Law: `coalesce(L)` has the size of `L`, depth at most 1, and equals `L` at every index below the
//! size. Two layouts are equal as functions exactly when their coalesced forms are equal (Carlisle
//! et al., 2.3.3.14): after extent-1 modes are dropped, modes `i` and `i+1` read as one exactly
//! when `d[i+1] = s[i] * d[i]`, and what is left is unique, because the first mode must end at the
//! first index `i` at which `L(i) != i * L(1)`, and so on above it.
//!
//! `coalesce_z(L)` equals `L` at *every* integer, past the end and below zero too. The last mode
//! has no end, so its extent is kept even when it is 1.

use core::mem::replace;

use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::{Condition, Question};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::ProfileRef;
use crate::value::tree::{Gatherer, Leaves, TreeRef};

/// Appends a mode. If the previous mode and this one are a single mode as a function, it merges
/// them.
#[inline]
pub(crate) fn push_merged<D: Stride>(modes: &mut Leaves<Leaf<D>>, leaf: &Leaf<D>) -> Option<()> {
    if let Some(last) = modes.last_mut()
        && last.stride.continues(&last.extent, &leaf.stride).proved()
    {
        last.extent = last.extent.times(&leaf.extent)?;
        return Some(());
    }
    modes.push(leaf.clone());
    Some(())
}

/// Passes each coalesced mode of a list of leaves to `emit`, except the last, which it returns.
///
/// With `endless`, the list is coalesced as a function on all integers: the last leaf is kept, even
/// if its extent is 1, because it has no end. Otherwise there is no last mode if the size is 1. The
/// outer `None` means that a number is not representable, or that `emit` refused.
#[inline(always)]
pub(crate) fn each_coalesced<D: Stride>(
    leaves: &[Leaf<D>],
    endless: bool,
    mut emit: impl FnMut(Leaf<D>) -> Option<()>,
) -> Option<Option<Leaf<D>>> {
    let Some((last, front)) = leaves.split_last() else { return Some(None) };
    let counts = |leaf: &Leaf<D>| !leaf.extent.is_one().proved();
    let ends = endless || counts(last);
    let mut front = front.iter();
    // The mode that may still be merged with the next one is emitted only when the next one begins.
    let mut open = loop {
        match front.next() {
            Some(leaf) if counts(leaf) => break leaf.clone(),
            Some(_) => {}
            None => return Some(ends.then(|| last.clone())),
        }
    };
    let mut take = |leaf: &Leaf<D>| {
        if open.stride.continues(&open.extent, &leaf.stride).proved() {
            open.extent = open.extent.times(&leaf.extent)?;
            return Some(());
        }
        emit(replace(&mut open, leaf.clone()))
    };
    for leaf in front {
        if counts(leaf) {
            take(leaf)?;
        }
    }
    if ends {
        take(last)?;
    }
    Some(Some(open))
}

/// Appends the coalesced modes of a list of leaves: nothing when the size is 1.
#[inline(always)]
pub(crate) fn push_coalesced<D: Stride>(modes: &mut Leaves<Leaf<D>>, leaves: &[Leaf<D>], endless: bool) -> Option<()> {
    let last = each_coalesced(leaves, endless, |mode| {
        modes.push(mode);
        Some(())
    })?;
    modes.extend(last);
    Some(())
}

/// The coalesced modes of a list of leaves; empty when the size is 1.
#[inline]
pub(crate) fn coalesced<D: Stride>(leaves: &[Leaf<D>]) -> Option<Leaves<Leaf<D>>> {
    let mut modes = Leaves::new();
    push_coalesced(&mut modes, leaves, false)?;
    Some(modes)
}

impl<D: Stride> Layout<D> {
    /// The layout with the fewest modes that equals this one at every index below its size.
    ///
    /// A layout of size 1 becomes `1:0`; a layout without leaves becomes `():()`.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let coalesce = |text: &str| text.parse::<Layout>().unwrap().coalesce().unwrap().to_string();
    /// assert_eq!(coalesce("(2,(1,6)):(1,(6,2))"), "12:1");
    /// assert_eq!(coalesce("(2,4):(4,1)"), "(2,4):(4,1)"); // 8:1 differs at index 1
    /// ```
    #[inline]
    pub fn coalesce(&self) -> Result<Layout<D>, LayoutError> {
        if self.leaves().is_empty() {
            return self.flatten();
        }
        let mut layout = Layout::blank();
        push_coalesced(layout.leaves_mut(), self.leaves(), false).fits_as::<D::Extent>("coalesce")?;
        layout.nest_flat()?;
        Ok(layout)
    }

    /// Coalesces within the modes that `profile` names: each leaf of `profile` is one mode of the
    /// result (CuTe `coalesce(layout, profile)`). Modes after the rank of `profile` stay unchanged.
    ///
    /// Errors: `profile` has a higher rank than the layout, here or in a mode.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let layout: Layout = "((2,2),(2,2)):((1,2),(16,32))".parse().unwrap();
    /// let by_mode: Tree<i64> = "(1)".parse().unwrap();
    /// assert_eq!(layout.coalesce_by(by_mode.profile()).unwrap().to_string(), "(4,(2,2)):(1,(16,32))");
    /// ```
    pub fn coalesce_by(&self, profile: &crate::Profile) -> Result<Layout<D>, LayoutError> {
        if profile.is_leaf() {
            return self.coalesce();
        }
        let mut gatherer = Gatherer::new();
        coalesce_modes(self.as_ref(), profile.as_ref(), &mut gatherer, &mut alloc::vec::Vec::new())?;
        Ok(Layout::from_valid(gatherer.finish()?))
    }

    /// The layout with the fewest modes that equals this one at every integer, also past the end
    /// and below zero.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,1):(1,0)".parse().unwrap();
    /// assert_eq!(layout.coalesce().unwrap().to_string(), "4:1"); // 4:1 is 4 at index 4
    /// assert_eq!(layout.coalesce_z().unwrap().to_string(), "(4,1):(1,0)"); // it is 0 at index 4
    /// ```
    pub fn coalesce_z(&self) -> Result<Layout<D>, LayoutError> {
        if self.leaves().is_empty() {
            return self.flatten();
        }
        let mut layout = Layout::blank();
        push_coalesced(layout.leaves_mut(), self.leaves(), true).fits_as::<D::Extent>("coalesce_z")?;
        layout.nest_flat()?;
        Ok(layout)
    }

    /// The layout with every stride-0 leaf reduced to extent 1, in place (CuTe `filter_zeros`).
    ///
    /// The result has the same offsets without repetitions. A stride that is not known to be 0 is
    /// treated as nonzero; [`Layout::filter`] refuses it.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "((4,3),2):((1,0),4)".parse().unwrap();
    /// assert_eq!(layout.filter_zeros().to_string(), "((4,1),2):((1,0),4)");
    /// ```
    pub fn filter_zeros(&self) -> Layout<D> {
        Layout::from_valid(self.tree().map(|leaf| {
            if leaf.stride.is_zero().proved() {
                Leaf { extent: D::Extent::one(), stride: D::zero() }
            } else {
                leaf.clone()
            }
        }))
    }

    /// The coalesced layout without the modes of stride 0 (CuTe `filter`).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,3,2):(1,0,4)".parse().unwrap();
    /// assert_eq!(layout.filter().unwrap().to_string(), "8:1");
    /// ```
    pub fn filter(&self) -> Result<Layout<D>, LayoutError> {
        self.settled_zeros()?.coalesce()
    }

    /// [`Layout::filter`] within the modes that `profile` names (CuTe `filter(layout, profile)`).
    ///
    /// Errors: as [`Layout::coalesce_by`].
    pub fn filter_by(&self, profile: &crate::Profile) -> Result<Layout<D>, LayoutError> {
        self.settled_zeros()?.coalesce_by(profile)
    }

    /// [`Layout::filter_zeros`], but refuses a stride that is not known to be zero or nonzero.
    fn settled_zeros(&self) -> Result<Layout<D>, LayoutError> {
        match self.leaves().iter().find(|leaf| leaf.stride.is_zero() == Truth::Open && !leaf.extent.is_one().proved()) {
            Some(leaf) => Err(unsettled_zero("filter", &leaf.stride)),
            None => Ok(self.filter_zeros()),
        }
    }
}

/// The refusal of a stride that may be zero or nonzero.
#[cold]
pub(crate) fn unsettled_zero<D: Stride>(op: &'static str, stride: &D) -> LayoutError {
    let question = Question::plain(Condition::Equal, stride, &D::zero());
    LayoutError::Open { op, question: alloc::boxed::Box::new(question) }
}

fn coalesce_modes<D: Stride>(
    layout: TreeRef<'_, Leaf<D>>,
    profile: ProfileRef<'_>,
    out: &mut Gatherer<Leaf<D>>,
    path: &mut alloc::vec::Vec<usize>,
) -> Result<(), LayoutError> {
    if profile.is_leaf() {
        let mut modes = Leaves::new();
        push_coalesced(&mut modes, layout.leaves, false).fits_as::<D::Extent>("coalesce")?;
        if modes.is_empty() {
            out.leaf(Leaf { extent: D::Extent::one(), stride: D::zero() });
        } else {
            out.run(&modes);
        }
        return Ok(());
    }
    let (rank, expected) = (layout.rank(), profile.rank());
    if expected > rank {
        return Err(LayoutError::Rank { op: "coalesce", path: path.clone(), expected, found: rank });
    }
    out.open();
    let mut profiles = profile.modes();
    for (position, mode) in layout.modes().enumerate() {
        match profiles.next() {
            Some(profile) => {
                path.push(position);
                coalesce_modes(mode, profile, out, path)?;
                path.pop();
            }
            None => out.append(mode),
        }
    }
    out.close();
    Ok(())
}
