//! Maximum and argmax, found chunk by chunk.
//!
//! Law: the elements of a chunk are compared first, two at a time if they have 16 bits. The index
//! of the chunk is kept if its maximum is greater than all before. One thread of each result finds
//! the position in the chunk at the end. So no index is carried along with each element.

use tilewright_kernel::{Build, Distributed, Distribution, Element, Fragment, KernelError, Num, Reduction, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree};

use super::{Seeker, Walk, extents, linear};
use crate::rows::together;
use crate::terms::Statistic;

impl Walk {
    /// Whether elements are compared in chunks: their indices are consecutive.
    pub(super) fn in_chunks(&self) -> bool {
        match self.statistic {
            Statistic::Maximum => true,
            Statistic::ArgMaximum => self.problem.ascends(),
            _ => false,
        }
    }

    /// The maxima by chunk, and the indices of these chunks if an argmax is wanted. A chunk is a
    /// vector along the reduced elements, or consecutive vectors along them. Reads past the end
    /// repeat the last element, which changes nothing: its first occurrence is in an earlier chunk.
    pub(super) fn chunks<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        own: &[Expr],
        [share, along]: [&Expr; 2],
        kept: &[Fragment<'k>],
    ) -> Result<(), KernelError> {
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let length: i64 = reduced.iter().product();
        let whole = length % (self.shape.along * self.shape.loads * self.shape.steps) == 0;
        let wide = self.statistic.wide(self.element);
        // Two elements of 16 bits are compared at once.
        let pair = self.vector.min(2);
        let (pairs, threads) = (self.vector / pair, self.shape.threads);
        let held = Distribution::new(
            (threads, pairs, pair),
            Layout::strided((threads, (pair, pairs)), (1, (threads * pairs, threads))),
        )?;
        k.range(self.shape.steps, |step| {
            let first = linear(&[(share, self.shape.steps), (&step, 1)])?;
            let mut read = Vec::new();
            for load in 0..self.shape.loads {
                let number = if self.inner {
                    linear(&[
                        (&first, self.shape.along * self.shape.loads),
                        (&Expr::from(load), self.shape.along),
                        (along, 1),
                    ])?
                } else {
                    let chunk = linear(&[(&first, self.shape.along), (along, 1)])?;
                    linear(&[(&chunk, self.shape.loads), (&Expr::from(load), 1)])?
                };
                let number = if whole { number } else { k.clamped(&number, length)? };
                let digits = k.coordinate(&number, &reduced)?;
                let slots = own.iter().chain(&digits).cloned().map(Slot::At);
                let at: Coord<Expr> = Tree::flat(std::iter::once(Slot::All).chain(slots))?;
                let tile = x.slice(at)?.load_predicated()?.distributed(&held)?;
                // Elements of 8 bits are compared in the wide type.
                let tile = if self.element.bits() < 16 { tile.to(wide)? } else { tile };
                read.push((tile, number));
            }
            let mut now: Vec<Vec<Num<'k>>> = kept.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
            let with = |before: &[Num<'k>], most: Num<'k>, chunk: Num<'k>| {
                let place = (self.statistic == Statistic::ArgMaximum).then_some(chunk);
                self.statistic.add(before, most, place)
            };
            if self.inner && self.statistic == Statistic::ArgMaximum {
                for (tile, number) in &read {
                    let before: Vec<Num<'k>> = now.iter().map(|part| part[0]).collect();
                    let after = with(&before, greatest(tile, wide)?, k.index(number)?);
                    now.iter_mut().zip(after).for_each(|(part, number)| part[0] = number);
                }
            } else {
                let tiles = read.iter().map(|(tile, _)| Ok(tile.clone()));
                let all = together(tiles, Reduction::Maximum)?;
                let chunk = k.index(&linear(&[(&first, self.shape.along), (along, 1)])?)?;
                let most = if self.inner { vec![greatest(&all, wide)?] } else { all.to(wide)?.fragment().numbers()? };
                for (result, most) in most.into_iter().enumerate() {
                    let before: Vec<Num<'k>> = now.iter().map(|part| part[result]).collect();
                    let after = with(&before, most, chunk);
                    now.iter_mut().zip(after).for_each(|(part, number)| part[result] = number);
                }
            }
            kept.iter().zip(&now).try_for_each(|(kept, now)| kept.set(now))
        })
    }

    /// The index of the first maximum in a chunk, which one thread of each result reads again.
    pub(super) fn place_in_chunk<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        [greatest, chunks]: [&Distributed<'k>; 2],
        Seeker { own, lanes, along }: &Seeker,
    ) -> Result<Distributed<'k>, KernelError> {
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let (greatest, numbers) = (greatest.fragment().numbers()?, chunks.fragment().numbers()?);
        let places = k.register(Element::I32, &numbers.len().to_string())?;
        places.fill(k.number(0))?;
        let at = |lane: Slot<Expr>, number: Num<'k>| -> Result<Coord<Expr>, KernelError> {
            let digits = k.coordinate(&k.index_of(number)?, &reduced)?;
            Ok(Tree::flat(std::iter::once(lane).chain(own.iter().chain(&digits).cloned().map(Slot::At)))?)
        };
        k.when(k.index(along)?.eq(k.number(0)), || {
            let mut found = Vec::new();
            for (lane, (greatest, chunk)) in lanes.iter().zip(greatest.iter().zip(&numbers)) {
                let (mut elements, step) = (Vec::new(), if self.inner { self.vector } else { self.shape.loads });
                let first = *chunk * k.number(step as i32);
                if self.inner {
                    elements = x.slice(at(Slot::All, *chunk)?)?.load_predicated()?.numbers()?;
                } else {
                    for load in 0..self.shape.loads {
                        let number = first + k.number(load as i32);
                        let one = x.slice(at(Slot::At(lane.clone()), number)?)?;
                        elements.push(one.load_predicated()?.numbers()?[0]);
                    }
                }
                let mut place = first;
                for (number, x) in elements.iter().enumerate().rev() {
                    let here = first + k.number(number as i32);
                    place = Reduction::reaches(x.to(greatest.element()), *greatest).select(here, place);
                }
                found.push(place);
            }
            places.set(&found)
        })?;
        // The thread that finds a position also stores the result.
        places.distributed(chunks.distribution())
    }
}

/// The maximum of a thread in a tile `(T,P,2)`, in a type.
fn greatest<'k>(tile: &Distributed<'k>, wide: Element) -> Result<Num<'k>, KernelError> {
    let pairs = together(tile.split(1)?.into_iter().map(Ok), Reduction::Maximum)?;
    let numbers = pairs.to(wide)?.fragment().numbers()?;
    Ok(numbers[1..].iter().fold(numbers[0], |most, x| most.max(*x)))
}
