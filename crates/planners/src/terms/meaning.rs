//! What a kernel computes, as data.
//!
//! `meaning.rs` has the definition of each kind, as a plain loop.

use tilewright_kernel::Element;
use tilewright_layout::Layout;

use super::{Indices, Norm, Place, RowPlaces, Statistic};
use crate::expression::Expression;

/// What a kernel computes.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// `destination[to(i)] = source[from(i)]`, converted if the types differ.
    Relayout {
        /// The layout of the source.
        from: Box<Place>,
        /// The type of the source.
        source: Element,
        /// The layout of the destination.
        to: Box<Place>,
        /// The type of the destination.
        destination: Element,
    },
    /// `c = a + b`, all `(M,N):(N,1)`.
    Sum,
    /// `c(m,n,l) = sum over k of a(m,k,l) b(n,k,l)`, K contiguous in a and b, N in c, for each
    /// matrix of a batch of `L`.
    Product,
    /// `y(m,n) = x(index(m),n)`, or 0 if `x` has no such row.
    Gather {
        /// Rows of `x`.
        rows: i64,
        /// Rows that are gathered.
        picked: i64,
        /// Elements of a row.
        columns: i64,
    },
    /// `y(index(m),n) = x(m,n)`, if `y` has such a row.
    Scatter {
        /// Rows of `y`.
        rows: i64,
        /// Rows that are written.
        picked: i64,
        /// Elements of a row.
        columns: i64,
    },
    /// `output[to(i)] = f(input_0[from_0(i)], ..)`.
    Map {
        /// The function.
        expression: Expression,
        /// The inputs: layouts, and their offsets in their tensors, in elements.
        inputs: Vec<(Layout, i64)>,
        /// The output.
        output: Box<(Layout, i64)>,
    },
    /// `y[to(i)]` is a statistic of `x[from(i) + along(j)]` for all `j`.
    Reduce {
        /// The statistic.
        statistic: Statistic,
        /// The offset of the first element of each result.
        from: Box<Layout>,
        /// The layout of the results.
        to: Box<Layout>,
        /// The offsets from the first element to the others.
        along: Box<Layout>,
    },
    /// `index(i)` is the global index of the position `i`, if `own(i)` equals `greatest(i)` or both
    /// are NaN; otherwise it is the largest i64.
    Indices {
        /// The number of results.
        results: i64,
        /// The indices of positions.
        indices: Indices,
    },
    /// `y(m,n) = e^x(m,n) / sum over j of e^x(m,j)`, of each row.
    Softmax {
        /// The pitches of the rows.
        places: RowPlaces,
    },
    /// `y(m,n) = x(m,n) w(n) / sqrt(mean over j of x(m,j)^2 + epsilon)`.
    RmsNorm {
        /// The pitches of the rows.
        places: RowPlaces,
        /// Weights, bias and epsilon.
        norm: Norm,
    },
    /// `y(m,n) = (x(m,n) - mean) w(n) / sqrt(variance + epsilon) + b(n)`.
    LayerNorm {
        /// The pitches of the rows.
        places: RowPlaces,
        /// Weights, bias and epsilon.
        norm: Norm,
    },
}
