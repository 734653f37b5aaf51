//! Check of a declared result type.
//!
//! Law: a declared result type is that of the operation when it has the same nesting as the
//! inferred one and the same extents and strides, leaf by leaf; the stride of an extent of 1 cannot
//! be observed and is ignored. Being the same function is not sufficient, because operations on the
//! result depend on its modes.

use alloc::format;
use core::fmt;

use crate::{Layout, LayoutError, Leaf, Path, Stride, Truth};

use super::congruence::nests_alike;
use super::{In, Incongruent, Verdict, open};

const OP: &str = "result_type";

/// The difference between a declared type and the inferred one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch<D: Stride = i64> {
    /// They have different nestings.
    Nesting {
        /// The mode at which they differ.
        at: Incongruent,
        /// Whether they are nevertheless the same function of an index.
        same_function: bool,
    },
    /// A leaf differs.
    Leaf {
        /// The leaf.
        path: Path,
        /// The declared leaf.
        declared: Leaf<D>,
        /// The inferred leaf.
        inferred: Leaf<D>,
        /// Whether they are nevertheless the same function of an index.
        same_function: bool,
    },
}

impl<D: Stride> fmt::Display for Mismatch<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same_function = match self {
            Mismatch::Nesting { at, same_function } => {
                write!(f, "{at}")?;
                same_function
            }
            Mismatch::Leaf { path, declared, inferred, same_function } => {
                let mode = |leaf: &Leaf<D>| format!("{}:{}", leaf.extent, leaf.stride);
                write!(f, "{}the declared type has {}, the inferred one {}", In(path), mode(declared), mode(inferred))?;
                same_function
            }
        };
        if *same_function { f.write_str("; as functions of an index they are equal") } else { Ok(()) }
    }
}

/// Whether a declared type equals the inferred one.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Layout;
///
/// let same = |declared: &str, inferred: &str| {
///     let (declared, inferred): (Layout, Layout) = (declared.parse().unwrap(), inferred.parse().unwrap());
///     verify::result_type(&declared, &inferred).to_string()
/// };
/// assert_eq!(same("(4,1):(1,7)", "(4,1):(1,0)"), "holds: (4,1):(1,0)");
/// assert_eq!(same("(4,8):(1,4)", "(4,8):(8,1)"), "fails: in mode 0, the declared type has 4:1, the inferred one 4:8");
/// assert_eq!(
///     same("32:1", "(4,8):(1,4)"),
///     "fails: the declared type nests as * but the inferred type as (*,*); as functions of an index they are equal"
/// );
/// ```
pub fn result_type<D: Stride>(declared: &Layout<D>, inferred: &Layout<D>) -> Verdict<Layout<D>, Mismatch<D>> {
    let same_function = || declared.equivalent(inferred);
    match nests_alike(("declared type", declared.tree()), ("inferred type", inferred.tree())) {
        Verdict::Holds(_) => {}
        Verdict::Fails(at) => return Verdict::Fails(Mismatch::Nesting { at, same_function: same_function() }),
        Verdict::Undecided(error) => return Verdict::Undecided(error),
    }
    for (leaf, (left, right)) in declared.leaves().iter().zip(inferred.leaves()).enumerate() {
        match same_mode(left, right) {
            Truth::Proved => {}
            Truth::Refuted => {
                return Verdict::Fails(Mismatch::Leaf {
                    path: declared.profile().path(leaf),
                    declared: left.clone(),
                    inferred: right.clone(),
                    same_function: same_function(),
                });
            }
            Truth::Open => return Verdict::Undecided(unknown(left, right)),
        }
    }
    Verdict::Holds(inferred.clone())
}

fn same_mode<D: Stride>(a: &Leaf<D>, b: &Leaf<D>) -> Truth {
    use crate::Extent;
    match (a.extent.same(&b.extent), a.stride.same(&b.stride)) {
        (Truth::Refuted, _) => Truth::Refuted,
        (Truth::Proved, _) if a.extent.is_one().proved() => Truth::Proved,
        (Truth::Proved, Truth::Refuted) if !a.extent.is_one().refuted() => Truth::Open,
        (Truth::Proved, stride) => stride,
        (Truth::Open, Truth::Refuted) if a.extent.is_one().refuted() => Truth::Refuted,
        (Truth::Open, _) => Truth::Open,
    }
}

fn unknown<D: Stride>(a: &Leaf<D>, b: &Leaf<D>) -> LayoutError {
    open(OP, format_args!("{}:{} equals {}:{}", a.extent, a.stride, b.extent, b.stride))
}
