//! Statistics, and their partial results.

use tilewright_kernel::{Build, Distributed, Element, KernelError, Num, Reduction};

use crate::terms::Statistic;

impl Statistic {
    /// The type of the result for elements of a type.
    pub(crate) fn result(self, element: Element) -> Element {
        if self == Statistic::ArgMaximum { Element::I32 } else { element }
    }

    /// The type in which elements are added and compared: f32, or the element type if that is f64
    /// or an integer of 32 bits or more. Means and 2-norms of integers are computed in f32.
    pub(super) fn wide(self, element: Element) -> Element {
        match (self, element) {
            (_, Element::F64) => Element::F64,
            (Statistic::Mean | Statistic::Norm, _) => Element::F32,
            (_, Element::U32 | Element::I32 | Element::U64 | Element::I64) => element,
            _ => Element::F32,
        }
    }

    /// The neutral element. For a type without infinity, the end of its range replaces infinity.
    pub(crate) fn neutral(self) -> f64 {
        match self {
            Statistic::Maximum | Statistic::ArgMaximum => f64::NEG_INFINITY,
            _ => 0.0,
        }
    }

    /// The types of the partial results for elements of a type.
    pub(super) fn kept(self, element: Element) -> Vec<Element> {
        let places = (self == Statistic::ArgMaximum).then_some(Element::I32);
        std::iter::once(self.wide(element)).chain(places).collect()
    }

    /// The neutral partial result: part number `part`, of type `kept`. Its index is 0: if no
    /// element is greater than the smallest number, all are equal, and the first one counts.
    pub(super) fn nothing<'k>(self, k: &'k Build, part: usize, kept: Element) -> Num<'k> {
        if part == 1 { k.number(0) } else { k.number_of(kept, self.neutral()) }
    }

    /// The partial result of a single number at an index.
    pub(super) fn part<'k>(self, x: Num<'k>, place: Option<Num<'k>>) -> Vec<Num<'k>> {
        match (self, place) {
            (Statistic::Norm, _) => vec![x * x],
            (Statistic::ArgMaximum, Some(place)) => vec![x, place],
            _ => vec![x],
        }
    }

    /// Combines two partial results.
    pub(super) fn combine<'k>(self, a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
        match self {
            Statistic::Maximum => vec![a[0].max(b[0])],
            Statistic::ArgMaximum => Reduction::greater([a[0], a[1]], [b[0], b[1]]).to_vec(),
            _ => vec![a[0] + b[0]],
        }
    }

    /// Adds one number, whose index is greater than all in the partial result: it counts only if it
    /// is greater.
    pub(super) fn add<'k>(self, kept: &[Num<'k>], x: Num<'k>, place: Option<Num<'k>>) -> Vec<Num<'k>> {
        match (self, place) {
            (Statistic::Norm, _) => vec![x.multiply_add(x, kept[0])],
            (Statistic::ArgMaximum, Some(place)) => {
                let reached = Reduction::reaches(kept[0], x);
                vec![reached.select(kept[0], x), reached.select(kept[1], place)]
            }
            _ => self.combine(kept, &[x]),
        }
    }

    /// Combines all parts along some modes. For argmax: first the maximum, then the smallest index
    /// that has it, which takes fewer instructions than comparing pairs.
    pub(super) fn gathered<'k>(
        self,
        k: &'k Build,
        parts: &[Distributed<'k>],
        modes: &[usize],
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        if let (Statistic::ArgMaximum, [numbers, places]) = (self, parts) {
            let greatest = numbers.reduce(modes, Reduction::Maximum)?;
            // A number equals the maximum, or both are NaN.
            let others =
                |x: Num<'k>, greatest| Ok(Reduction::reaches(x, greatest).select(k.number(0), k.number(i32::MAX)));
            let here = numbers.zip(&greatest, others)?.zip(places, |other, place| Ok(other.max(place)))?;
            let first = here.reduce(modes, Reduction::Minimum)?;
            return Ok(vec![greatest, first]);
        }
        let parts: Vec<_> = parts.iter().collect();
        k.reduce_together(&parts, modes, |a, b| Ok(self.combine(a, b)))
    }

    /// The result from the partial result of `count` numbers.
    pub(super) fn result_of<'k>(self, all: &[Distributed<'k>], count: f64) -> Result<Distributed<'k>, KernelError> {
        match self {
            Statistic::Mean => all[0].map(|sum| Ok(sum * (1.0 / count))),
            Statistic::Norm => all[0].map(|sum| Ok(sum.sqrt())),
            Statistic::ArgMaximum => Ok(all[1].clone()),
            _ => Ok(all[0].clone()),
        }
    }
}
