//! What a kernel computes, as data.
//!
//! `meaning.rs` has the plain loop of each kind.

use tilewright_kernel::Element;
use tilewright_layout::Layout;

use super::{Indices, Norm, Place, RowPlaces, Statistic};
use crate::expression::Expression;

/// What a kernel computes.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// `destination[to(i)] = source[from(i)]`, converted where the types differ.
    Relayout {
        /// Where elements are in the source.
        from: Box<Place>,
        /// Their type there.
        source: Element,
        /// Where they go.
        to: Box<Place>,
        /// Their type then.
        destination: Element,
    },
    /// `c = a + b`, all `(M,N):(N,1)`.
    Sum,
    /// `c(m,n,l) = sum over k of a(m,k,l) b(n,k,l)`, K contiguous in a and b, N in c, for each
    /// matrix of a batch of `L`.
    Product,
    /// `y(m,n) = x(index(m),n)`, 0 where `x` has no such row.
    Gather {
        /// How many rows there are.
        rows: i64,
        /// How many are picked.
        picked: i64,
        /// Elements of a row.
        columns: i64,
    },
    /// `y(index(m),n) = x(m,n)`, where `y` has such a row.
    Scatter {
        /// How many rows `y` has.
        rows: i64,
        /// How many are written.
        picked: i64,
        /// Elements of a row.
        columns: i64,
    },
    /// `output[to(i)] = f(input_0[from_0(i)], ..)`.
    Map {
        /// The function.
        expression: Expression,
        /// Where elements are in the inputs: layouts, and how many elements come before them.
        inputs: Vec<(Layout, i64)>,
        /// Where they go.
        output: Box<(Layout, i64)>,
    },
    /// `y[to(i)]` is a statistic of `x[from(i) + along(j)]` for all `j`.
    Reduce {
        /// Which.
        statistic: Statistic,
        /// Where the first element of each result is.
        from: Box<Layout>,
        /// Where each result goes.
        to: Box<Layout>,
        /// From the first element to the others.
        along: Box<Layout>,
    },
    /// `index(i)` is that of the place `i`, where `own(i)` is `greatest(i)` or that is no number.
    Indices {
        /// How many results there are.
        results: i64,
        /// The indices of places.
        indices: Indices,
    },
    /// `y(m,n) = e^x(m,n) / sum over j of e^x(m,j)`, of each row.
    Softmax {
        /// Where rows begin.
        places: RowPlaces,
    },
    /// `y(m,n) = x(m,n) w(n) / sqrt(mean over j of x(m,j)^2 + epsilon)`.
    RmsNorm {
        /// Where rows begin.
        places: RowPlaces,
        /// What goes with all rows.
        norm: Norm,
    },
    /// `y(m,n) = (x(m,n) - mean) w(n) / sqrt(variance + epsilon) + b(n)`.
    LayerNorm {
        /// Where rows begin.
        places: RowPlaces,
        /// What goes with all rows.
        norm: Norm,
    },
}
