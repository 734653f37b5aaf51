//! Predicates of layouts: injective, bijective, compact and others.
//!
//! Law: each predicate is a property of the values `L(0), .., L(size-1)`. It is decided exactly,
//! without enumerating them. With the modes of extent 1 left out and the others sorted by the
//! magnitude of their strides, let `m_k` be the extent less one of mode `k`, `d_k` the magnitude of
//! its stride, and `r_k = sum over j < k of m_j * d_j` the reach of the modes before it. (The sign
//! of a stride mirrors and shifts the values; it changes neither their number nor the gaps between
//! them.)
//!
//! * The values are an interval exactly when `d_k <= r_k + 1` for every `k`. It suffices, since an
//!   interval of length `r_k + 1` repeated at steps no longer than itself is an interval; and where
//!   `d_k > r_k + 1`, no sum is `r_k + 1`, for the modes before reach only `r_k` and each later one
//!   is already larger.
//! * The values are distinct if `d_k > r_k` for every `k`: of two coordinates the last differing
//!   mode decides. Otherwise they are distinct exactly when `sum x_k * d_k = 0` with `|x_k| <= m_k`
//!   has no solution but 0. That is a knapsack problem, so it is decided by a search from the
//!   largest stride down. In the search the rest must stay within `r_k` and be a multiple of the
//!   greatest common divisor of the smaller strides. If the search reaches its limit, the values of
//!   layouts of up to [`MAX_IMAGE`] coordinates are listed.
//! * The values increase exactly if each stride, in the order of the modes, exceeds the reach of
//!   the modes before it.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::ground::bounds::Wide;
use crate::limits::{MAX_CASES, MAX_IMAGE};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::{Layout, index_steps};
use crate::value::number::{Extent, Stride, gcd};

/// A mode with more than one position.
#[derive(Clone, Copy)]
struct SteppedMode {
    /// The magnitude of the stride.
    step: u64,
    /// The extent less one.
    most: i64,
    /// The index of the leaf in the layout.
    leaf: usize,
}

impl SteppedMode {
    fn reach(&self) -> Wide {
        Wide::from(self.step) * Wide::from(self.most)
    }
}

/// A size is at most 2^63, so at most 63 modes have more than one position.
type SteppedModes = SmallVec<[SteppedMode; 8]>;

impl<N: Extent> Layout<N> {
    /// Whether different coordinates have different values.
    ///
    /// If each stride exceeds the reach of the smaller ones, the answer is immediate; otherwise a
    /// search decides. With numbers that are not known, the answer holds for every admissible
    /// value. Errors: [`LayoutError::Undecided`] after [`MAX_CASES`] cases, for a layout of more
    /// than [`MAX_IMAGE`] coordinates; the answer depends on numbers that are not known
    /// ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let injective = |text: &str| text.parse::<Layout>().unwrap().is_injective().unwrap();
    /// assert!(injective("(2,2):(2,3)")); // 0, 2, 3, 5: distinct, although 2 does not divide 3
    /// assert!(!injective("(4,4):(1,2)")); // 2 is reached twice
    /// assert!(injective("(4,2):(-1,4)"));
    ///
    /// let launch = |text: &str| text.parse::<Layout<Expr>>().unwrap().is_injective();
    /// assert!(launch("(M,K):(K+8,1)").unwrap());
    /// let error = launch("(M,8):(S{min=2},1)").unwrap_err();
    /// assert_eq!(error.to_string(), "is_injective: needs 7 to be less than S; declare `S{min=8}`");
    /// ```
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        N::injective(self)
    }
}

/// [`Layout::is_injective`] for integer strides.
pub(crate) fn injective(layout: &Layout) -> Result<bool, LayoutError> {
    let modes = layout.sorted_modes();
    let (mut reach, mut divisor, mut apart) = (0, 0, true);
    for mode in &modes {
        apart &= Wide::from(mode.step) > reach;
        reach += mode.reach();
        divisor = common(divisor, mode.step);
    }
    if apart {
        return Ok(true);
    }
    // There are more coordinates than multiples of the common divisor within reach.
    if divisor == 0 || Wide::from(layout.size()) > reach / Wide::from(divisor) + 1 {
        return Ok(false);
    }
    Ok(layout.collision_among(&modes)?.is_none())
}

impl Layout {
    /// The modes with more than one position, sorted by the magnitudes of their strides.
    fn sorted_modes(&self) -> SteppedModes {
        let mut modes: SteppedModes = self
            .leaves()
            .iter()
            .enumerate()
            .filter(|(_, leaf)| leaf.extent > 1)
            .map(|(position, leaf)| SteppedMode {
                step: leaf.stride.unsigned_abs(),
                most: leaf.extent - 1,
                leaf: position,
            })
            .collect();
        modes.sort_unstable_by_key(|mode| (mode.step, mode.leaf));
        modes
    }

    fn reaches_below_zero(&self) -> bool {
        self.leaves().iter().any(|leaf| leaf.extent > 1 && leaf.stride < 0)
    }

    /// Two different indices with the same value, the lesser first; None if the layout is
    /// injective.
    ///
    /// Errors: as [`Layout::is_injective`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,4):(1,2)".parse().unwrap();
    /// assert_eq!(layout.collision().unwrap(), Some((2, 4)));
    /// assert_eq!((layout.eval(&2).unwrap(), layout.eval(&4).unwrap()), (2, 2));
    /// ```
    pub fn collision(&self) -> Result<Option<(i64, i64)>, LayoutError> {
        self.collision_among(&self.sorted_modes())
    }

    fn collision_among(&self, modes: &[SteppedMode]) -> Result<Option<(i64, i64)>, LayoutError> {
        let mut search = RelationSearch::new(modes);
        let found = search.run(modes.len(), 0, false);
        interrupt::check("is_injective")?;
        let found = match found {
            Some(found) => found,
            None if self.size() <= MAX_IMAGE => return self.collision_listed(),
            None => return Err(LayoutError::Undecided { op: "is_injective", limit: MAX_CASES }),
        };
        if !found {
            return Ok(None);
        }
        // The solution is the difference of two coordinates: the positive part is one, the negative
        // part the other.
        let steps = index_steps(self.leaves()).fits("is_injective")?;
        let (mut up, mut down) = (0, 0);
        for (mode, x) in modes.iter().zip(&search.solution) {
            let (Some(step), Some(leaf)) = (steps.get(mode.leaf), self.leaves().get(mode.leaf)) else { continue };
            // Each index is within its extent, so their sum is within the size.
            let part = step.wrapping_mul(x.unsigned_abs() as i64);
            if (*x > 0) == (leaf.stride >= 0) {
                up += part;
            } else {
                down += part;
            }
        }
        Ok(Some((up.min(down), up.max(down))))
    }

    fn collision_listed(&self) -> Result<Option<(i64, i64)>, LayoutError> {
        let mut pairs: Vec<(i64, i64)> = Vec::new();
        for index in 0..self.size() {
            interrupt::check("is_injective")?;
            pairs.push((self.eval(&index)?, index));
        }
        pairs.sort_unstable();
        let twice = pairs.iter().zip(pairs.iter().skip(1)).find(|(a, b)| a.0 == b.0);
        Ok(twice.map(|(a, b)| (a.1, b.1)))
    }

    /// Whether the layout is onto its codomain: the values are exactly `0, 1, .., cosize - 1`, each
    /// at least once.
    ///
    /// A layout with a negative value is not surjective.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let surjective = |text: &str| text.parse::<Layout>().unwrap().is_surjective();
    /// assert!(surjective("(4,4):(1,2)") && surjective("(4,3):(1,0)"));
    /// assert!(!surjective("(4,2):(1,5)") && !surjective("4:-1"));
    /// ```
    pub fn is_surjective(&self) -> bool {
        !self.reaches_below_zero() && self.is_contiguous()
    }

    /// Whether the layout is a bijection onto `0..cosize`: every offset of its codomain exactly
    /// once.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let bijective = |text: &str| text.parse::<Layout>().unwrap().is_bijective();
    /// assert!(bijective("(4,(2,3)):(6,(1,2))"));
    /// assert!(!bijective("(4,4):(1,2)") && !bijective("(2,2):(2,3)"));
    /// ```
    pub fn is_bijective(&self) -> bool {
        // A map onto a set with as many elements as its domain is injective.
        let reach: Wide = self.sorted_modes().iter().map(SteppedMode::reach).sum();
        self.is_surjective() && reach + 1 == Wide::from(self.size())
    }

    /// Whether the layout is a bijection onto `0..size`: no offset is missing and none is shared.
    ///
    /// This is the same as [`Layout::is_bijective`], because a bijection has as many values as
    /// coordinates.
    pub fn is_compact(&self) -> bool {
        self.is_bijective()
    }

    /// Whether the values form an interval: no hole between the least and the greatest. Repetitions
    /// and any order are allowed.
    ///
    /// For strides that are not negative this is [`Layout::is_surjective`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let contiguous = |text: &str| text.parse::<Layout>().unwrap().is_contiguous();
    /// assert!(contiguous("(4,2):(-1,4)") && contiguous("(2,2):(2,1)"));
    /// assert!(!contiguous("4:2"));
    /// ```
    pub fn is_contiguous(&self) -> bool {
        let mut reach = 0;
        self.sorted_modes().iter().all(|mode| {
            let closed = Wide::from(mode.step) <= reach + 1;
            reach += mode.reach();
            closed
        })
    }

    /// Whether the values increase strictly with the index: `L(i) < L(i + 1)`.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let ordered = |text: &str| text.parse::<Layout>().unwrap().is_ordered();
    /// assert!(ordered("(4,2):(1,7)"));
    /// assert!(!ordered("(2,4):(4,1)") && !ordered("(4,2):(1,0)"));
    /// ```
    pub fn is_ordered(&self) -> bool {
        let mut reach = 0;
        self.leaves().iter().filter(|leaf| leaf.extent > 1).all(|leaf| {
            let stride = Wide::from(leaf.stride);
            let above = stride > reach;
            reach += stride * Wide::from(leaf.extent - 1);
            above
        })
    }

    /// Whether the layout comes from a morphism of nested tuples: with the modes of extent 1 left
    /// out and the others sorted by stride, `extent * stride` of each mode of positive stride
    /// divides the next stride (Carlisle, Shah, Stern, VanKoughnett, 2.1.8.1).
    ///
    /// Layouts with negative strides are outside the theory; the answer for them is false.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let tractable = |text: &str| text.parse::<Layout>().unwrap().is_tractable();
    /// assert!(tractable("(32,(2,2)):(192,(24,3))") && tractable("(4,2):(0,3)"));
    /// assert!(!tractable("((8,8),(5,5)):((8,1),(10,2))"));
    /// ```
    pub fn is_tractable(&self) -> bool {
        let modes = self.sorted_modes();
        !self.reaches_below_zero()
            && modes.iter().zip(modes.iter().skip(1)).all(|(inner, outer)| {
                let covered = Wide::from(inner.step) * (Wide::from(inner.most) + 1);
                covered == 0 || Wide::from(outer.step) % covered == 0
            })
    }

    /// The values, each once, in increasing order.
    ///
    /// Errors: the layout has more than [`MAX_IMAGE`] coordinates, modes of stride 0 not counted; a
    /// value is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(3,2):(-2,3)".parse().unwrap();
    /// assert_eq!(layout.image().unwrap(), [-4, -2, -1, 0, 1, 3]);
    /// ```
    pub fn image(&self) -> Result<Vec<i64>, LayoutError> {
        distinct_values(self)
    }
}

/// The values of a layout, each once, in increasing order.
pub(crate) fn distinct_values<D: Stride<Extent = i64> + Ord>(layout: &Layout<D>) -> Result<Vec<D>, LayoutError> {
    let moving = layout.filter_zeros();
    let size = moving.size();
    if size > MAX_IMAGE {
        let (what, wanted) = ("the size without modes of stride 0", "at most 1048576");
        return Err(LayoutError::Argument { op: "image", what, value: size, wanted });
    }
    let mut values = (0..size).map(|index| moving.eval(&index)).collect::<Result<Vec<D>, LayoutError>>()?;
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

fn common(a: u64, b: u64) -> u64 {
    // The magnitudes of i64 are written as negative numbers, because 2^63 is not an i64.
    gcd((a as i64).wrapping_neg(), (b as i64).wrapping_neg())
}

/// The search for `sum x_k * d_k = 0`.
struct RelationSearch<'a> {
    modes: &'a [SteppedMode],
    /// The data about the modes below each mode.
    below: SmallVec<[Below; 8]>,
    /// `x_k` of the solution, filled in when the search succeeds.
    solution: SmallVec<[i64; 8]>,
    cases: usize,
}

/// Data about the modes below one mode.
#[derive(Clone, Copy)]
struct Below {
    /// `r_k`.
    reach: Wide,
    /// The greatest common divisor of this stride and those below.
    shared: Wide,
    /// The distance between candidates for `x_k`: the divisor of the strides below over `shared`; 1
    /// if no mode is below.
    apart: Wide,
    /// The inverse of `d_k / shared` modulo `apart`.
    inverse: Wide,
}

impl<'a> RelationSearch<'a> {
    fn new(modes: &'a [SteppedMode]) -> RelationSearch<'a> {
        let (mut reach, mut divisor) = (0, 0_u64);
        let mut below = SmallVec::new();
        for mode in modes {
            let shared = Wide::from(common(divisor, mode.step)).max(1);
            let apart = (Wide::from(divisor) / shared).max(1);
            below.push(Below { reach, shared, apart, inverse: inverse(Wide::from(mode.step) / shared, apart) });
            reach += mode.reach();
            divisor = common(divisor, mode.step);
        }
        RelationSearch { modes, below, solution: modes.iter().map(|_| 0).collect(), cases: 0 }
    }

    /// Whether the first `count` modes can reduce `rest` to 0 with not all `x_k` equal to 0; None
    /// at the limit.
    ///
    /// Until some `x_k` is nonzero, only `x_k >= 0` is tried, because the negative of a solution is
    /// a solution.
    fn run(&mut self, count: usize, rest: Wide, moved: bool) -> Option<bool> {
        let Some(at) = count.checked_sub(1) else { return Some(moved && rest == 0) };
        let (Some(mode), Some(below)) = (self.modes.get(at).copied(), self.below.get(at).copied()) else {
            return Some(false);
        };
        self.cases += 1;
        if self.cases > MAX_CASES || interrupt::is_requested() {
            return None;
        }
        let (step, most) = (Wide::from(mode.step), Wide::from(mode.most));
        if step == 0 {
            // The modes are sorted, so all remaining strides are 0, and any nonzero `x_k` is a
            // repetition.
            if let Some(x) = self.solution.get_mut(at) {
                *x = if rest == 0 && !moved { 1 } else { 0 };
            }
            return Some(rest == 0);
        }
        if rest % below.shared != 0 {
            return Some(false);
        }
        let least = (-below.reach - rest).div_euclid(step) + Wide::from((-below.reach - rest).rem_euclid(step) != 0);
        let least = least.max(if moved { -most } else { 0 });
        let greatest = (below.reach - rest).div_euclid(step).min(most);
        // `rest + x * step` must be a multiple of the divisor of the strides below.
        let residue = (-(rest / below.shared)).rem_euclid(below.apart) * below.inverse % below.apart;
        let mut x = least + (residue - least).rem_euclid(below.apart);
        while x <= greatest {
            if self.run(at, rest + x * step, moved || x != 0)? {
                if let Some(place) = self.solution.get_mut(at) {
                    *place = x as i64;
                }
                return Some(true);
            }
            x += below.apart;
        }
        Some(false)
    }
}

/// The inverse of `a` modulo `modulus`, for coprime numbers; 0 modulo 1.
fn inverse(a: Wide, modulus: Wide) -> Wide {
    let (mut r, mut next) = (modulus, a.rem_euclid(modulus));
    let (mut t, mut next_t): (Wide, Wide) = (0, 1);
    while next != 0 {
        let quotient = r / next;
        (r, next) = (next, r - quotient * next);
        (t, next_t) = (next_t, t - quotient * next_t);
    }
    t.rem_euclid(modulus)
}
