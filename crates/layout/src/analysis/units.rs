//! Units: the bytes that a lane accesses at once.
//!
//! Law: a load or store of `v` elements accesses offsets `o, o+1, .., o+v-1` with `v` dividing `o`:
//! this is the unit with number `o / v`. Everything that is counted, words of banks and sectors, is
//! a quotient of the number of a unit. If numbers become known at launch, quotient and remainder
//! are proved, or the error has the open question.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::analysis::access::Access;
use crate::analysis::error::AnalysisError;
use crate::analysis::storage::Storage;
use crate::symbolic::Expr;
use crate::{AnyLayout, Condition, Extent, Layout, LayoutError, Question, Truth, Xor};

/// The number of a unit or an element.
pub(crate) trait Number: Extent {
    /// A stride of the storage that is not proved to be divisible by `by`, which is the reason why
    /// an offset is unknown; None if there is no such stride.
    fn culprit(storage: &Storage, by: i64) -> Option<Self>;
}

impl Number for i64 {
    fn culprit(_: &Storage, _: i64) -> Option<i64> {
        None
    }
}

impl Number for Expr {
    fn culprit(storage: &Storage, by: i64) -> Option<Expr> {
        let leaves = match storage.layout() {
            AnyLayout::Launch(layout) => layout.leaves(),
            AnyLayout::LaunchComposed(map) => map.inner().leaves(),
            _ => return None,
        };
        let open = |stride: &&Expr| stride.known().is_none() && Expr::from(by).divides(stride) == Truth::Open;
        leaves.iter().map(|leaf| &leaf.stride).find(open).cloned()
    }
}

/// An analysis of the units of a storage, for any kind of number.
pub(crate) trait Visit {
    type Output;

    fn visit<N: Number>(self, units: Units<'_, impl Fn(i64) -> Result<N, LayoutError>>) -> Self::Output;
}

/// The units of a storage that an access touches.
pub(crate) struct Units<'a, F> {
    pub storage: &'a Storage,
    pub access: &'a Access,
    /// The number of bytes of a line; every stride must be known modulo a line.
    bytes: i64,
    offset: F,
}

/// Calls an analysis with the units of a storage; `bytes` is the number of bytes of a line.
pub(crate) fn with_units<V: Visit>(storage: &Storage, access: &Access, bytes: i64, analysis: V) -> V::Output {
    if let Some(evaluator) = storage.evaluator() {
        return analysis.visit::<i64>(Units { storage, access, bytes, offset: |i| evaluator.eval(i) });
    }
    match storage.layout() {
        AnyLayout::Composed(map) => analysis.visit::<i64>(Units { storage, access, bytes, offset: |i| map.eval(&i) }),
        AnyLayout::Xor(layout) => {
            analysis.visit::<i64>(Units { storage, access, bytes, offset: |i| xor_at(layout, i) })
        }
        layout => analysis.visit::<Expr>(Units { storage, access, bytes, offset: |i| launch_at(layout, i) }),
    }
}

/// The offset of a layout with XOR strides at an index.
fn xor_at(layout: &Layout<Xor>, index: i64) -> Result<i64, LayoutError> {
    // An XOR value has 63 bits.
    Ok(i64::try_from(layout.eval(&index)?.bits()).unwrap_or(i64::MAX))
}

/// The offset at an index of a layout with numbers known at launch.
fn launch_at(layout: &AnyLayout, index: i64) -> Result<Expr, LayoutError> {
    match layout {
        AnyLayout::Launch(layout) => layout.eval(&Expr::from(index)),
        map => map.launch_composed()?.eval(&Expr::from(index)),
    }
}

impl<N: Number, F: Fn(i64) -> Result<N, LayoutError>> Units<'_, F> {
    /// The offset of one value of one thread.
    pub(crate) fn offset(&self, thread: i64, value: i64) -> Result<N, AnalysisError> {
        let index = self.access.index(thread, value)?;
        if !(0..self.storage.size()).contains(&index) {
            return Err(AnalysisError::Outside { thread, value, index, size: self.storage.size() });
        }
        Ok((self.offset)(index)?)
    }

    /// The number of the unit that one instruction of a thread accesses.
    pub(crate) fn unit(&self, thread: i64, instruction: i64) -> Result<N, AnalysisError> {
        let vector = self.access.vector();
        let first = instruction * vector;
        let start = self.offset(thread, first)?;
        for value in 1..vector {
            let offset = self.offset(thread, first + value)?;
            let wanted = start.plus(&N::from(value)).ok_or(LayoutError::Overflow { op: "access" })?;
            match offset.same(&wanted) {
                Truth::Proved => {}
                Truth::Refuted => {
                    let (base, start) = (start.clone(), start.to_string().into());
                    let offset = offset.to_string().into();
                    // Along the other direction, lane `thread + 1` is contiguous.
                    let across = || Some(self.offset(thread + 1, first).ok()?.minus(&base)? == N::from(1));
                    let other = self.access.along_the_other().filter(|_| across() == Some(true)).map(String::into);
                    return Err(AnalysisError::Split { thread, value: first + value, start, offset, vector, other });
                }
                Truth::Open => {
                    let question = Box::new(Question::new(Condition::Equal, &offset, &wanted));
                    return Err(AnalysisError::Open { thread, value: first + value, question });
                }
            }
        }
        if vector == 1 {
            return Ok(start);
        }
        match start.divide(&N::from(vector)) {
            Some((unit, rest)) if rest.is_zero().proved() => Ok(unit),
            Some((_, rest)) if rest.known().is_some() => {
                let offset = start.to_string().into();
                Err(AnalysisError::Misaligned { thread, value: first, offset, vector })
            }
            _ => Err(self.open(thread, first, vector, &start)),
        }
    }

    /// The number of the line of `per` units that contains a unit, and the position of the unit in
    /// it.
    pub(crate) fn line(&self, unit: &N, per: i64, thread: i64, instruction: i64) -> Result<(N, i64), AnalysisError> {
        let value = instruction * self.access.vector();
        let open = || self.open(thread, value, per * self.access.vector(), unit);
        let (line, rest) = unit.divide(&N::from(per)).ok_or_else(open)?;
        match rest.known() {
            Some(rest) if rest >= 0 => Ok((line, rest)),
            // Division truncates, so a unit with a negative number is in the line below.
            Some(rest) => {
                let below = line.minus(&N::one()).ok_or(LayoutError::Overflow { op: "access" })?;
                Ok((below, rest + per))
            }
            None => Err(open()),
        }
    }

    /// Whether two lines are the same.
    pub(crate) fn same(&self, a: &N, b: &N, thread: i64, instruction: i64) -> Result<bool, AnalysisError> {
        match a.same(b) {
            Truth::Proved => Ok(true),
            Truth::Refuted => Ok(false),
            Truth::Open => {
                let question = Box::new(Question::new(Condition::Equal, a, b));
                Err(AnalysisError::Open { thread, value: instruction * self.access.vector(), question })
            }
        }
    }

    /// The error for an address that is unknown because of a stride that may not be divisible by
    /// `by`.
    fn open(&self, thread: i64, value: i64, by: i64, number: &N) -> AnalysisError {
        // Of the two conditions, the one about a whole line implies the other.
        let whole = (self.bytes * 8 / self.access.bits()).max(by);
        match N::culprit(self.storage, whole) {
            Some(stride) => AnalysisError::of_question(&N::from(whole), &stride, thread, value),
            None => AnalysisError::of_question(&N::from(by), number, thread, value),
        }
    }
}

/// The lines that were accessed, in the order of their first access.
pub(crate) struct Lines<N>(Vec<N>);

impl<N: Number> Lines<N> {
    pub(crate) fn new() -> Lines<N> {
        Lines(Vec::new())
    }

    /// The index of a line in this list; a new line is appended.
    pub(crate) fn number(
        &mut self,
        line: N,
        same: impl Fn(&N, &N) -> Result<bool, AnalysisError>,
    ) -> Result<usize, AnalysisError> {
        for (number, known) in self.0.iter().enumerate() {
            if same(known, &line)? {
                return Ok(number);
            }
        }
        self.0.push(line);
        Ok(self.0.len() - 1)
    }

    /// The rank of each line by address, and the first byte of each line in order of rank. Lines
    /// whose addresses become known at launch stay in the order of first access.
    pub(crate) fn in_order(&self, bytes: i64) -> (Vec<usize>, Vec<Box<str>>) {
        let mut order: Vec<(usize, &N)> = self.0.iter().enumerate().collect();
        if self.0.iter().all(|line| line.known().is_some()) {
            order.sort_by_key(|(_, line)| line.known());
        }
        let mut rank = vec![0; order.len()];
        for (new, (old, _)) in order.iter().enumerate() {
            if let Some(place) = rank.get_mut(*old) {
                *place = new;
            }
        }
        let byte =
            |line: &N| line.times(&N::from(bytes)).map_or_else(|| Box::from("?"), |byte| byte.to_string().into());
        (rank, order.iter().map(|(_, line)| byte(line)).collect())
    }
}
