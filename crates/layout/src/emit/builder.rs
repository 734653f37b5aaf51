//! The builder of a computation: variables, the digits of indices, and the strides that multiply
//! them.
//!
//! Law: the digits of an index are its digits in the mixed radix of the extents, the last one
//! unbounded, rounded toward zero; and the value is the sum of digits times strides.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::emit::bits::Moves;
use crate::emit::computation::{Computation, Output};
use crate::emit::division::divide;
use crate::emit::error::EmitError;
use crate::emit::expression::{Parameters, unbounded};
use crate::emit::graph::{Graph, Id, Variable};
use crate::emit::place::{Promise, Variables, named_by_path};
use crate::emit::polynomial::EmittedPolynomial;
use crate::emit::range::Range;
use crate::symbolic::{Expr, Parameter, Symbolic};
use crate::{Extent, Layout, Leaf, OuterMap, Profile, Stride};

/// The most leaves of a layout after coalescing, and the most numbers of a value.
const MAX_LEAVES: usize = 256;

/// A mode: its extent, and its stride for each number of the value.
pub(crate) type EmittedMode = (Expr, Vec<Expr>);

pub(crate) fn modes<D: Stride<Extent = Expr>>(
    layout: &Layout<D>,
    strides: impl Fn(&D) -> Vec<Expr>,
) -> Vec<EmittedMode> {
    layout.leaves().iter().map(|leaf| (leaf.extent.clone(), strides(&leaf.stride))).collect()
}

/// A computation that is being built.
pub(crate) struct GraphBuilder {
    pub(crate) graph: Graph,
    pub(crate) parameters: Parameters,
    /// The profile of the coordinate that the variables form.
    pub(crate) profile: Profile,
    names: Vec<String>,
    promise: Promise,
    pub(crate) variables: Vec<Id>,
}

impl GraphBuilder {
    pub(crate) fn new(shape: &Profile, place: &Variables) -> Result<GraphBuilder, EmitError> {
        let profile = place.in_shape(shape)?;
        if profile.leaves() > MAX_LEAVES {
            return Err(EmitError::TooLarge { what: "a coordinate" });
        }
        let names = place.names(&profile)?;
        let (graph, parameters, variables) = (Graph::default(), Parameters::default(), Vec::new());
        Ok(GraphBuilder { graph, parameters, profile, names, promise: place.promise(), variables })
    }

    /// Creates the variables: indices into parts of these sizes.
    pub(crate) fn variables(&mut self, sizes: Vec<Expr>) -> Result<(), EmitError> {
        for size in sizes {
            let (_, largest) = size.range();
            let open = size.parameters().iter().filter_map(unbounded).map(Parameter::to_string).collect();
            match self.promise {
                Promise::Inside => self.variable(Range::of(Some(0), largest.map(|size| size - 1)), open)?,
                Promise::NotNegative => self.variable(Range::of(Some(0), None), Vec::new())?,
                Promise::Nothing => self.variable(Range::ALL, Vec::new())?,
            }
        }
        Ok(())
    }

    pub(crate) fn variable(&mut self, range: Range, open: Vec<String>) -> Result<(), EmitError> {
        let name = self.names.get(self.variables.len()).cloned().unwrap_or_default();
        if self.graph.variables().iter().any(|own| own.name == name) {
            return Err(EmitError::NameTwice { name });
        }
        let id = self.graph.variable(Variable { name, range, divisor: 1, open });
        self.variables.push(id);
        Ok(())
    }

    /// For each number of the value, the sum over all modes of all variables.
    pub(crate) fn inner_products(
        &mut self,
        modes: &[Vec<EmittedMode>],
        count: usize,
    ) -> Result<Vec<EmittedPolynomial>, EmitError> {
        if count > MAX_LEAVES || modes.iter().map(Vec::len).sum::<usize>() > MAX_LEAVES {
            return Err(EmitError::TooLarge { what: "the layout" });
        }
        let mut digits = Vec::new();
        for (modes, index) in modes.iter().zip(self.variables.clone()) {
            let index = EmittedPolynomial::of(&self.graph, index);
            digits.extend(self.digits(index, modes)?);
        }
        self.products(digits, count)
    }

    /// The digits of an index in the mixed radix of the extents, the last one unbounded, each with
    /// its strides. A digit whose strides are all 0 is not computed.
    fn digits<'a>(
        &mut self,
        index: EmittedPolynomial,
        modes: &'a [EmittedMode],
    ) -> Result<Vec<(EmittedPolynomial, &'a [Expr])>, EmitError> {
        let too_large = || EmitError::TooLarge { what: "an expression" };
        let mut digits = Vec::new();
        // The digits so far are those of the index modulo `passed`; `rest` is still to be divided
        // by `passed`.
        let (mut rest, mut passed) = (index, Expr::from(1));
        for (place, (extent, strides)) in modes.iter().enumerate() {
            let last = place + 1 == modes.len();
            if strides.iter().all(|stride| stride.is_zero().proved()) {
                if !last {
                    passed = passed.times(extent).ok_or_else(too_large)?;
                }
                continue;
            }
            for by in self.steps(&rest, &passed)? {
                (rest, _) = divide(&mut self.graph, &rest, &by).ok_or_else(too_large)?;
            }
            if last {
                digits.push((rest.clone(), strides.as_slice()));
                continue;
            }
            let by = self.parameters.polynomial(&mut self.graph, extent)?;
            let (_, digit) = divide(&mut self.graph, &rest, &by).ok_or_else(too_large)?;
            digits.push((digit, strides.as_slice()));
            passed = extent.clone();
        }
        Ok(digits)
    }

    /// The divisors of consecutive divisions: a shift is cheaper than a multiplication.
    fn steps(&mut self, rest: &EmittedPolynomial, by: &Expr) -> Result<Vec<EmittedPolynomial>, EmitError> {
        let whole = self.parameters.polynomial(&mut self.graph, by)?;
        let power = match whole.single() {
            Some((factors, size)) if !factors.is_empty() && rest.range(&self.graph).not_negative() => {
                let power = 1 << size.trailing_zeros().min(62);
                Some([EmittedPolynomial::constant(power), EmittedPolynomial::term(factors.clone(), size / power)])
            }
            _ => None,
        };
        Ok(power.map_or(vec![whole], Vec::from))
    }

    /// The sums of digits times strides.
    fn products(
        &mut self,
        digits: Vec<(EmittedPolynomial, &[Expr])>,
        count: usize,
    ) -> Result<Vec<EmittedPolynomial>, EmitError> {
        let too_large = || EmitError::TooLarge { what: "an expression" };
        let mut sums = vec![EmittedPolynomial::default(); count];
        for (digit, strides) in digits {
            for (stride, sum) in strides.iter().zip(&mut sums).filter(|(stride, _)| !stride.is_zero().proved()) {
                let stride = self.parameters.polynomial(&mut self.graph, stride)?;
                let product = digit.times(&stride).ok_or_else(too_large)?;
                *sum = core::mem::take(sum).plus(&product).ok_or_else(too_large)?;
            }
        }
        Ok(sums)
    }

    /// `map(offset + value)`.
    pub(crate) fn outer<N: Extent>(
        &mut self,
        map: &OuterMap<N>,
        offset: &Expr,
        value: EmittedPolynomial,
        expr: fn(&N) -> Expr,
    ) -> Result<EmittedPolynomial, EmitError> {
        let offset = self.parameters.polynomial(&mut self.graph, offset)?;
        let value = value.plus(&offset).ok_or(EmitError::TooLarge { what: "an expression" })?;
        let mut moves = Moves::default();
        match map {
            OuterMap::Layout(layout) => {
                let layout = with_expressions(&layout.coalesce_z()?, expr)?;
                let modes = modes(&layout, |stride| vec![stride.clone()]);
                let digits = self.digits(value, &modes)?;
                return Ok(self.products(digits, 1)?.into_iter().next().unwrap_or_default());
            }
            OuterMap::Chain(chain) => {
                let first = self.outer(chain.inner(), &Expr::from(0), value, expr)?;
                return self.outer(chain.outer(), &expr(chain.offset()), first, expr);
            }
            OuterMap::Swizzle(swizzle) => moves.swizzle(value.compute(&mut self.graph), *swizzle),
            OuterMap::Bits(matrix) => moves.matrix(value.compute(&mut self.graph), matrix),
        }
        let id = moves.compute(&mut self.graph);
        Ok(EmittedPolynomial::of(&self.graph, id))
    }

    pub(crate) fn computation(self, numbers: Numbers) -> Computation {
        let outputs = numbers.names.into_iter().zip(numbers.ids).map(|(name, id)| Output { name, id }).collect();
        Computation::new(self.graph, self.variables.len(), outputs, numbers.profile)
    }
}

/// The numbers of a value.
pub(crate) struct Numbers {
    pub(crate) profile: Profile,
    pub(crate) names: Vec<String>,
    pub(crate) ids: Vec<Id>,
}

impl Numbers {
    pub(crate) fn new(profile: Profile, stem: &str, ids: Vec<Id>) -> Numbers {
        let names = (0..profile.leaves()).map(|leaf| named_by_path(stem, &profile.path(leaf))).collect();
        Numbers { profile, names, ids }
    }
}

/// The same layout with expressions as numbers.
pub(crate) fn with_expressions<N: Extent>(layout: &Layout<N>, expr: fn(&N) -> Expr) -> Result<Layout<Expr>, EmitError> {
    let leaf = |leaf: &Leaf<N>| Leaf { extent: expr(&leaf.extent), stride: expr(&leaf.stride) };
    Ok(Layout::from_tree(layout.tree().map(leaf))?)
}
