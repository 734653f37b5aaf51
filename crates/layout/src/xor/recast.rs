//! Recasting layouts with XOR strides.
//!
//! Law: as for layouts of integers. Widening by `n = 2^p`, with `f` of each leaf that multiply up
//! to `n`, `L(f*c + j) = n*R(c) + P(j)` for one order `P` onto `[0, n)` that increases along each
//! leaf.
//!
//! *Widening is decided leaf by leaf.* `P` maps the bits of `j` to single bits below `n`, and each
//! of these comes from exactly one bit of `j` (see [`crate::composed`]). So a leaf whose step has
//! no bit below `n` has `f = 1`. Any other has a step that is one bit `2^e`, and
//! `f = min(s, n / 2^e)`, which must divide `s`; and the bits of all such leaves are different
//! ones, all `p` of them. The step of the rest of a leaf is `f * d`, the carry-less product,
//! because `f` is a power of two: if `s` were less than `n / 2^e` and not a power of two, two of
//! its positions would share a bit of `P`.

use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Stride;
use crate::value::tree::{Leaves, Tree};
use crate::xor::{Xor, product};

const OP: &str = "recast_layout";

impl Layout<Xor> {
    /// The layout in elements `n` times as wide, `n` a power of two: exactly, with the same order
    /// of parts in every element.
    ///
    /// Errors: a step or an extent does not divide, or two leaves have the same part of an element
    /// ([`LayoutError::NotDivisible`]); too few elements are contiguous ([`LayoutError::Apart`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let wide = |text: &str, n| text.parse::<Layout<Xor>>().unwrap().widen(n);
    /// assert_eq!(wide("(8,8):(^1,^24)", 4).unwrap().to_string(), "(2,8):(^1,^6)");
    /// // The two parts of the second element would be swapped.
    /// assert_eq!(wide("(2,2):(^3,^1)", 2).unwrap_err().code(), "E0115");
    /// ```
    pub fn widen(&self, n: i64) -> Result<Layout<Xor>, LayoutError> {
        if n <= 0 || n.count_ones() != 1 {
            let wanted = "a power of two, for XOR strides";
            return Err(LayoutError::Argument { op: OP, what: "the factor", value: n, wanted });
        }
        let below = n.unsigned_abs() - 1;
        let uneven = |leaf, value: i64, divisor: i64| LayoutError::NotDivisible {
            op: OP,
            path: self.profile().path(leaf),
            value,
            divisor,
        };
        let (mut covered, mut out): (u64, Leaves<Leaf<Xor>>) = (0, Leaves::new());
        for (position, leaf) in self.leaves().iter().enumerate() {
            let step = leaf.stride.bits();
            if leaf.extent == 1 || step & below == 0 {
                let stride = if leaf.extent == 1 { Xor::zero() } else { Xor(step / n.unsigned_abs()) };
                out.push(Leaf { extent: leaf.extent, stride });
                continue;
            }
            // The step is at most 2^62, because its lowest bit is below n.
            let step = step as i64;
            if step.count_ones() != 1 {
                return Err(uneven(position, step, n));
            }
            let part = leaf.extent.min(n / step);
            if part.count_ones() != 1 || leaf.extent % part != 0 {
                return Err(uneven(position, leaf.extent, n / step));
            }
            let bits = product(part.unsigned_abs() - 1, step as u64).fits(OP)?;
            if covered & bits != 0 {
                return Err(LayoutError::Apart { op: OP, path: self.profile().path(position), together: 1, needed: n });
            }
            covered |= bits;
            let rest = leaf.extent / part;
            out.push(Leaf { extent: rest, stride: if rest == 1 { Xor::zero() } else { Xor(1) } });
        }
        if covered != below {
            let together = 1 << covered.trailing_ones();
            return Err(LayoutError::Apart { op: OP, path: Default::default(), together, needed: n });
        }
        Layout::from_tree(Tree::from_parts(self.profile().duplicate(), out))
    }
}
