//! Arithmetic of nested tuples: products, sums and orders of refinement.
//!
//! Law: an operation on nested tuples with the same nesting is the operation on numbers, leaf by
//! leaf. If one of them is less deep, its leaf is paired with the product of the other's subtree.
//! Two orders follow:
//!
//! * `P` is *weakly congruent* to `Q` when `Q` is `P` with leaves replaced by trees: a coordinate
//!   of nesting `P` fits a shape of nesting `Q`.
//! * `A` is *compatible* with `B` when each leaf of `A` is the product of the subtree that replaces
//!   it in `B`: a coordinate inside `A` is one inside `B`, and `A` and `B` have the same size.
//!
//! Both are partial orders (CuTe `weakly_congruent`, `compatible`). Division of tuples is in
//! [`super::division`].

use alloc::vec::Vec;

use crate::refusal::error::{Fits, LayoutError, Path};
use crate::refusal::evidence::Condition;
use crate::value::number::{Extent, Stride, Truth, gcd};
use crate::value::profile::{Profile, ProfileRef};
use crate::value::tree::{Gatherer, Leaves, Tree, TreeRef};

impl Profile {
    /// Whether `other` is this profile with leaves replaced by profiles (CuTe `weakly_congruent`).
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let fits = |a: &str, b: &str| {
    ///     let (a, b): (Tree<i64>, Tree<i64>) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.profile().weakly_congruent(b.profile())
    /// };
    /// assert!(fits("(1,2)", "(4,(2,3))") && fits("1", "(4,(2,3))"));
    /// assert!(!fits("(1,(2,3))", "(4,6)") && !fits("(1,2,3)", "(4,(2,3))"));
    /// ```
    pub fn weakly_congruent(&self, other: &Profile) -> bool {
        weakly_congruent(self.as_ref(), other.as_ref())
    }
}

fn weakly_congruent(guide: ProfileRef<'_>, other: ProfileRef<'_>) -> bool {
    guide.is_leaf()
        || (!other.is_leaf()
            && guide.rank() == other.rank()
            && guide.modes().zip(other.modes()).all(|(guide, other)| weakly_congruent(guide, other)))
}

/// The product of a list of extents; None if it is not representable.
pub(crate) fn product<N: Extent>(extents: &[N]) -> Option<N> {
    extents.iter().try_fold(N::one(), |product, extent| product.times(extent))
}

/// The product of a list of extents, for the operation `op`.
pub(crate) fn product_of<N: Extent>(extents: &[N], op: &'static str) -> Result<N, LayoutError> {
    product(extents).fits_as::<N>(op)
}

#[cold]
pub(crate) fn rank_error(op: &'static str, path: &[usize], expected: usize, found: usize) -> LayoutError {
    LayoutError::Rank { op, path: path.to_vec(), expected, found }
}

impl<T> Tree<T> {
    /// Whether `other` has the same nesting as this tree or a deeper one:
    /// [`Profile::weakly_congruent`].
    pub fn weakly_congruent<U>(&self, other: &Tree<U>) -> bool {
        self.profile().weakly_congruent(other.profile())
    }
}

impl<N: Extent> Tree<N> {
    /// The product of the leaves; 1 for the empty tuple (CuTe `product`, and `size` of a shape).
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// assert_eq!("(4,(2,3))".parse::<Tree<i64>>().unwrap().product().unwrap(), 24);
    /// ```
    pub fn product(&self) -> Result<N, LayoutError> {
        product_of(self.leaves(), "product")
    }

    /// The sum of the leaves; 0 for the empty tuple (CuTe `sum`).
    pub fn sum(&self) -> Result<N, LayoutError> {
        let sum = self.leaves().iter().try_fold(N::zero(), |sum, leaf| sum.plus(leaf));
        sum.fits_as::<N>("sum")
    }

    /// The product of each mode, in a flat tuple; a number becomes a tuple of one (CuTe
    /// `product_each`).
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let each = |text: &str| text.parse::<Tree<i64>>().unwrap().product_each().unwrap().to_string();
    /// assert_eq!((each("((3,5),2)"), each("5")), ("(15,2)".into(), "(5)".into()));
    /// ```
    pub fn product_each(&self) -> Result<Tree<N>, LayoutError> {
        let products: Result<Leaves<N>, LayoutError> =
            self.as_ref().modes().map(|mode| product_of(mode.leaves, "product_each")).collect();
        Tree::flat(products?)
    }

    /// The product of the subtree at each leaf of `guide`, in the nesting of `guide` (CuTe
    /// `product_like`).
    ///
    /// Errors: `guide` is not weakly congruent to the tree.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (shape, guide): (Tree<i64>, Tree<i64>) = ("(2,(3,(4,5)))".parse().unwrap(), "(0,(0,0))".parse().unwrap());
    /// assert_eq!(shape.product_like(guide.profile()).unwrap().to_string(), "(2,(3,20))");
    /// ```
    pub fn product_like(&self, guide: &Profile) -> Result<Tree<N>, LayoutError> {
        let mut products = Leaves::new();
        subtrees(guide.as_ref(), self.as_ref(), "product_like", &mut Path::new(), &mut |part| {
            products.push(product_of(part.leaves, "product_like")?);
            Ok(())
        })?;
        Tree::new(guide.duplicate(), products)
    }

    /// The sum of `extent * step`, leaf by leaf: the value of a natural coordinate under strides
    /// (CuTe `inner_product`).
    ///
    /// Errors: the trees are not congruent; the sum is not representable.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (coord, stride): (Tree<i64>, Tree<i64>) = ("(2,(0,1))".parse().unwrap(), "(2,(1,8))".parse().unwrap());
    /// assert_eq!(coord.inner_product(&stride).unwrap(), 12);
    /// ```
    pub fn inner_product<D: Stride<Extent = N>>(&self, steps: &Tree<D>) -> Result<D, LayoutError> {
        if !self.congruent(steps) {
            return Err(LayoutError::not_congruent(self.profile(), steps.profile()));
        }
        let mut pairs = self.leaves().iter().zip(steps.leaves());
        let sum = pairs.try_fold(D::zero(), |sum, (count, step)| sum.plus(&step.times(count)?));
        sum.fits_as::<D::Extent>("inner_product")
    }

    /// Each leaf times the product of the subtree of `other` at its position (CuTe `elem_scale`).
    ///
    /// Errors: the tree is not weakly congruent to `other`.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (a, b): (Tree<i64>, Tree<i64>) = ("(2,(3,4))".parse().unwrap(), "(5,(6,(7,8)))".parse().unwrap());
    /// assert_eq!(a.elem_scale(&b).unwrap().to_string(), "(10,(18,224))");
    /// ```
    pub fn elem_scale(&self, other: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        const OP: &str = "elem_scale";
        let mut scaled = Leaves::new();
        let mut own = self.leaves().iter();
        subtrees(self.profile().as_ref(), other.as_ref(), OP, &mut Path::new(), &mut |part| {
            let product = product_of(part.leaves, OP)?;
            if let Some(leaf) = own.next() {
                scaled.push(leaf.times(&product).fits_as::<N>(OP)?);
            }
            Ok(())
        })?;
        Tree::new(self.profile().duplicate(), scaled)
    }

    /// Whether each leaf is the product of the subtree of `other` at its position: then every
    /// coordinate inside this shape is one inside `other` (CuTe `compatible`).
    ///
    /// The answer is `Refuted` if the nesting does not fit, or if a product is not representable.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let compatible = |a: &str, b: &str| {
    ///     let (a, b): (Tree<i64>, Tree<i64>) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.compatible(&b).proved()
    /// };
    /// assert!(compatible("24", "(4,(2,3))") && compatible("(4,6)", "(4,(2,3))"));
    /// assert!(!compatible("(4,(2,3))", "(4,6)") && !compatible("(6,4)", "(4,(2,3))"));
    /// ```
    pub fn compatible(&self, other: &Tree<N>) -> Truth {
        if !self.weakly_congruent(other) {
            return Truth::Refuted;
        }
        let mut answer = Truth::Proved;
        let mut own = self.leaves().iter();
        let fits = subtrees(self.profile().as_ref(), other.as_ref(), "compatible", &mut Path::new(), &mut |part| {
            let product = product_of(part.leaves, "compatible")?;
            answer = both(answer, own.next().map_or(Truth::Refuted, |leaf| leaf.same(&product)));
            Ok(())
        });
        if fits.is_ok() { answer } else { Truth::Refuted }
    }

    /// The sum, leaf by leaf; missing modes of one tuple count as zeros, and the number 0 as a
    /// tuple of zeros (CuTe, `+` of arithmetic tuples).
    ///
    /// Errors: a number other than 0 is paired with a tuple; a sum is not representable.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (a, b): (Tree<i64>, Tree<i64>) = ("((1,2),(3,4),(5,6))".parse().unwrap(), "((10,11),(20,21))".parse().unwrap());
    /// assert_eq!(a.tuple_add(&b).unwrap().to_string(), "((11,13),(23,25),(5,6))");
    /// ```
    pub fn tuple_add(&self, other: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        combine(self, other, &Sum { op: "tuple_add", of: N::plus, absent: |right| Some(right.clone()) })
    }

    /// The difference, leaf by leaf, by the rules of [`Tree::tuple_add`].
    ///
    /// Errors: a number other than 0 is paired with a tuple; a difference is not representable.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (a, b): (Tree<i64>, Tree<i64>) = ("(5,8,3)".parse().unwrap(), "(1,2)".parse().unwrap());
    /// assert_eq!(a.tuple_sub(&b).unwrap().to_string(), "(4,6,3)");
    /// ```
    pub fn tuple_sub(&self, other: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        combine(self, other, &Sum { op: "tuple_sub", of: N::minus, absent: |right| N::zero().minus(right) })
    }

    /// The shape with every mode of stride 0 reduced to the extent 1 (CuTe
    /// `filter_zeros(stride, shape)`).
    ///
    /// A zero stride for a tuple of extents replaces the whole tuple by a single 1. Errors: the
    /// strides are not weakly congruent to the shape.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (shape, stride): (Tree<i64>, Tree<i64>) = ("(4,(2,3))".parse().unwrap(), "(0,(1,0))".parse().unwrap());
    /// assert_eq!(shape.filter_zeros(&stride).unwrap().to_string(), "(1,(2,1))");
    /// ```
    pub fn filter_zeros<D: Stride<Extent = N>>(&self, stride: &Tree<D>) -> Result<Tree<N>, LayoutError> {
        let mut out = Gatherer::new();
        filter_modes(self.as_ref(), stride.as_ref(), &mut out, &mut Path::new())?;
        out.finish()
    }
}

impl Tree<i64> {
    /// The largest leaf; None for the empty tuple (CuTe `max`).
    pub fn max(&self) -> Option<i64> {
        self.leaves().iter().copied().max()
    }

    /// The least leaf; None for the empty tuple (CuTe `min`).
    pub fn min(&self) -> Option<i64> {
        self.leaves().iter().copied().min()
    }

    /// The greatest common divisor of the leaves, at least 0; 0 for the empty tuple (CuTe `gcd`).
    ///
    /// Errors: it is 2^63, which is not representable as `i64`.
    pub fn gcd(&self) -> Result<i64, LayoutError> {
        // It is kept as a negative number, because the magnitude may be 2^63 in between.
        let negative = |magnitude: u64| (magnitude as i64).wrapping_neg();
        let divisor = self.leaves().iter().fold(0, |divisor, leaf| negative(gcd(divisor, *leaf)));
        divisor.checked_neg().fits("gcd")
    }
}

/// The conjunction of two answers.
pub(crate) fn both(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Truth::Refuted, _) | (_, Truth::Refuted) => Truth::Refuted,
        (Truth::Proved, Truth::Proved) => Truth::Proved,
        _ => Truth::Open,
    }
}

/// Calls `visit` with the subtree of `tree` at each leaf of `guide`, left to right.
///
/// Errors: `guide` is not weakly congruent to the tree; an error of `visit`.
pub(crate) fn subtrees<'a, T>(
    guide: ProfileRef<'_>,
    tree: TreeRef<'a, T>,
    op: &'static str,
    path: &mut Path,
    visit: &mut dyn FnMut(TreeRef<'a, T>) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    if guide.is_leaf() {
        return visit(tree);
    }
    if tree.is_leaf() || tree.rank() != guide.rank() {
        return Err(rank_error(op, path, guide.rank(), tree.rank()));
    }
    for (position, (guide, mode)) in guide.modes().zip(tree.modes()).enumerate() {
        path.push(position);
        subtrees(guide, mode, op, path, visit)?;
        path.pop();
    }
    Ok(())
}

/// An operation on leaves that extends to tuples: on two leaves, and on a right leaf without a left
/// one.
struct Sum<N> {
    op: &'static str,
    of: fn(&N, &N) -> Option<N>,
    absent: fn(&N) -> Option<N>,
}

fn combine<N: Extent>(left: &Tree<N>, right: &Tree<N>, sum: &Sum<N>) -> Result<Tree<N>, LayoutError> {
    let mut out = Gatherer::new();
    combine_modes(left.as_ref(), right.as_ref(), sum, &mut out, &mut Path::new())?;
    out.finish()
}

fn combine_modes<N: Extent>(
    left: TreeRef<'_, N>,
    right: TreeRef<'_, N>,
    sum: &Sum<N>,
    out: &mut Gatherer<N>,
    path: &mut Path,
) -> Result<(), LayoutError> {
    let is_zero = |tree: TreeRef<'_, N>| tree.leaves.iter().all(|leaf| leaf.is_zero().proved());
    match (left.is_leaf(), right.is_leaf()) {
        (true, true) => {
            let pair = left.leaves.first().zip(right.leaves.first());
            let value = pair.and_then(|(a, b)| (sum.of)(a, b)).fits_as::<N>(sum.op)?;
            out.leaf(value);
        }
        (false, true) if is_zero(right) => out.append(left),
        (true, false) if is_zero(left) => append_absent(right, sum, out)?,
        (true, false) | (false, true) => {
            return Err(rank_error(sum.op, path, left.rank(), right.rank()));
        }
        (false, false) => {
            out.open();
            let mut rights = right.modes();
            for (position, left) in left.modes().enumerate() {
                match rights.next() {
                    Some(right) => {
                        path.push(position);
                        combine_modes(left, right, sum, out, path)?;
                        path.pop();
                    }
                    None => out.append(left),
                }
            }
            for right in rights {
                append_absent(right, sum, out)?;
            }
            out.close();
        }
    }
    Ok(())
}

/// Appends a right operand without a left one.
fn append_absent<N: Extent>(right: TreeRef<'_, N>, sum: &Sum<N>, out: &mut Gatherer<N>) -> Result<(), LayoutError> {
    let leaves: Option<Vec<N>> = right.leaves.iter().map(sum.absent).collect();
    let leaves = leaves.fits_as::<N>(sum.op)?;
    out.append(TreeRef { profile: right.profile, leaves: &leaves });
    Ok(())
}

fn filter_modes<N: Extent, D: Stride<Extent = N>>(
    shape: TreeRef<'_, N>,
    stride: TreeRef<'_, D>,
    out: &mut Gatherer<N>,
    path: &mut Path,
) -> Result<(), LayoutError> {
    if stride.is_leaf() {
        if stride.leaves.iter().all(|step| step.is_zero().proved()) {
            out.leaf(N::one());
        } else {
            out.append(shape);
        }
        return Ok(());
    }
    if shape.is_leaf() || shape.rank() != stride.rank() {
        return Err(rank_error("filter_zeros", path, stride.rank(), shape.rank()));
    }
    out.open();
    for (position, (shape, stride)) in shape.modes().zip(stride.modes()).enumerate() {
        path.push(position);
        filter_modes(shape, stride, out, path)?;
        path.pop();
    }
    out.close();
    Ok(())
}

/// The error for a number that must be positive and is not, or not known to be.
#[cold]
pub(crate) fn not_positive<N: Extent>(op: &'static str, what: &'static str, number: &N) -> LayoutError {
    match number.known() {
        Some(value) => LayoutError::Argument { op, what, value, wanted: "positive" },
        None => LayoutError::open(op, Condition::Less, &N::zero(), number),
    }
}
