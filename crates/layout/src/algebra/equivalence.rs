//! Equality of layouts, as functions and as written.
//!
//! Law: two layouts are the same function of an index exactly when they have the same size and the
//! same value at every index. If it is known which modes coalesce, this is so exactly when the
//! coalesced forms are equal (see [`super::coalesce`]). With numbers that are not known, two modes
//! may coalesce for some values only. Then equal forms still prove equality, and an index below the
//! size at which the values are never equal refutes it.

use crate::algebra::coalesce::coalesced;
use crate::value::layout::{Layout, Leaf, eval_leaves, index_steps};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::shape::both;

/// Whether the leaves are equal one by one; strides of extent-1 modes are ignored.
fn leafwise<D: Stride>(a: &[Leaf<D>], b: &[Leaf<D>]) -> Truth {
    if a.len() != b.len() {
        return Truth::Refuted;
    }
    a.iter().zip(b).fold(Truth::Proved, |truth, (a, b)| {
        let stride = match a.extent.is_one() {
            Truth::Proved => Truth::Proved,
            // A difference counts only if the extent is greater than 1.
            Truth::Open if !a.stride.same(&b.stride).proved() => Truth::Open,
            _ => a.stride.same(&b.stride),
        };
        both(truth, both(a.extent.same(&b.extent), stride))
    })
}

/// Whether the coalesced form is the same for every value of the parameters.
fn settled<D: Stride>(leaves: &[Leaf<D>]) -> bool {
    leaves.iter().all(|leaf| leaf.extent.is_one().refuted())
        && leaves.iter().zip(leaves.iter().skip(1)).all(|(a, b)| a.stride.continues(&a.extent, &b.stride).refuted())
}

/// Whether the layouts have, at some index below both sizes, values that are never equal; only
/// indices at which a mode begins are tried.
fn differ<D: Stride>(a: &Layout<D>, b: &Layout<D>) -> bool {
    let (size, other) = (a.size(), b.size());
    let begins = |layout: &Layout<D>| index_steps(layout.leaves()).unwrap_or_default();
    begins(a).iter().chain(&begins(b)).any(|index| {
        let within = index.less(&size).proved() && index.less(&other).proved();
        let values = || eval_leaves(a.leaves(), index).zip(eval_leaves(b.leaves(), index));
        within && values().is_some_and(|(x, y)| x.same(&y).refuted())
    })
}

impl<D: Stride> Layout<D> {
    /// Whether two layouts are proved to be the same function of an index: equal size, and equal
    /// values at every index.
    ///
    /// For sizes known at launch, `false` may also mean that the answer depends on them: see
    /// [`Layout::same_function`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (a, b): (Layout, Layout) = ("(2,4):(1,2)".parse().unwrap(), "8:1".parse().unwrap());
    /// assert!(a != b && a.equivalent(&b));
    /// ```
    pub fn equivalent(&self, other: &Layout<D>) -> bool {
        match (coalesced(self.leaves()), coalesced(other.leaves())) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }

    /// Whether two layouts are the same function of an index: `Proved` if they are for all
    /// admissible values of the parameters, `Refuted` if for none.
    ///
    /// ```
    /// use tilewright_layout::Truth;
    /// use tilewright_layout::symbolic::Declarations;
    ///
    /// let mut names = Declarations::new();
    /// names.gather("M,K,N{min=2}").unwrap();
    /// let same = |a: &str, b: &str| names.layout(a).unwrap().same_function(&names.layout(b).unwrap());
    /// assert_eq!(same("(M,K):(1,M)", "M*K:1"), Truth::Proved);
    /// assert_eq!(same("(N,N):(1,N)", "(N,N):(N,1)"), Truth::Refuted);
    /// assert_eq!(same("(M,K):(1,M)", "(M,K):(K,1)"), Truth::Open); // the same where M or K is 1
    /// ```
    pub fn same_function(&self, other: &Layout<D>) -> Truth {
        let (Some(a), Some(b)) = (coalesced(self.leaves()), coalesced(other.leaves())) else { return Truth::Open };
        let same = leafwise(&a, &b);
        if same.proved() || (settled(&a) && settled(&b)) {
            return same;
        }
        if self.size().same(&other.size()).refuted() || differ(self, other) {
            return Truth::Refuted;
        }
        Truth::Open
    }

    /// Whether two layouts have equal extents and strides, ignoring strides of extent-1 modes:
    /// `Proved` for all admissible values of the parameters, `Refuted` for none.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Truth};
    ///
    /// let layout = |text: &str| text.parse::<Layout>().unwrap();
    /// assert_eq!(layout("(4,1):(1,0)").same_modes(&layout("(4,1):(1,7)")), Truth::Proved);
    /// assert_eq!(layout("(2,2):(1,2)").same_modes(&layout("4:1")), Truth::Refuted);
    /// ```
    pub fn same_modes(&self, other: &Layout<D>) -> Truth {
        if self.profile() == other.profile() { leafwise(self.leaves(), other.leaves()) } else { Truth::Refuted }
    }
}
