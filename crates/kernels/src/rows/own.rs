//! What threads find in their own part of a row, put together.
//!
//! Law: numbers of threads go to their warp by shuffles. What the warps of a row have goes through
//! shared memory, behind one barrier, and each warp puts it together for itself: of few warps each
//! thread, of many the lanes, each with the numbers of one.

use tilewright_kernel::{Build, Distributed, Distribution, Element, KernelError, Num, Reduction};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, LayoutError, Slot, Stride, Tree};

use super::{LANES, Rows};

/// How many numbers a thread takes of the warps, at most: where each lane can take those of one
/// warp instead, and where warps are no power of two.
const TAKEN: i64 = 8;
const TAKEN_OF_ODD: i64 = 16;

/// Numbers combined in pairs, pairs of pairs and so on: few steps wait for each other. There is one
/// at least.
pub(crate) fn pairwise<'k>(mut numbers: Vec<Num<'k>>, combine: impl Fn(Num<'k>, Num<'k>) -> Num<'k>) -> Num<'k> {
    while numbers.len() > 1 {
        let pair = |pair: &[Num<'k>]| pair[1..].iter().fold(pair[0], |a, b| combine(a, *b));
        numbers = numbers.chunks(2).map(pair).collect();
    }
    numbers[0]
}

impl Rows {
    /// One number of each thread for its row, as `(R,A,W)`.
    pub(crate) fn of_each<'k>(&self, k: &'k Build, number: Num<'k>) -> Result<Distributed<'k>, KernelError> {
        let fragment = k.register(number.element(), "1")?;
        fragment.fill(number)?;
        self.of_threads(&fragment)
    }

    /// Numbers that each warp of a row has, those of all of them as tiles `(1,P)`, P at least as
    /// many as warps. Places behind theirs have what counts for nothing. Blocks of a cluster meet
    /// here, once: each warp leaves its numbers in all of them.
    pub(crate) fn of_warps<'k>(
        &self,
        k: &'k Build,
        numbers: &[Num<'k>],
        nothing: &[Num<'k>],
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let (warps, count) = (self.warps * self.blocks, numbers.len() as i64);
        let all = self.takes_all(count);
        let places = if all { warps } else { (warps as u64).next_power_of_two() as i64 };
        let left = if places > warps { 2 * warps } else { warps };
        let array = k.shared_of(Element::F32, &format!("({count},{left}):(1,{count})"))?;
        let [lane, _, warp] = self.place_of(k)?;
        let lane = k.index(&lane)?;
        let overflow = || LayoutError::Overflow { op: "warps" };
        let warp = if self.is_shared() {
            let before = Stride::times(&k.rank(), &Expr::from(self.warps)).ok_or_else(overflow)?;
            // The other blocks have begun: their memory may be written.
            k.cluster_wait();
            Stride::plus(&warp, &before).ok_or_else(overflow)?
        } else {
            warp
        };
        // The first lanes of all warps leave what these have, and the second ones nothing behind.
        let leave = |by: i32, first: i64, numbers: &[Num<'k>]| {
            k.when(lane.eq(k.number(by)), || {
                let own = k.register(Element::F32, &count.to_string())?;
                own.set(numbers)?;
                let place = Stride::plus(&warp, &Expr::from(first)).ok_or_else(overflow)?;
                let at: Coord<Expr> = Tree::flat([Slot::All, Slot::At(place)])?;
                let place = array.slice(at)?;
                place.store(&own)?;
                (1..self.blocks as u32).try_for_each(|by| place.of_block(k.rank_after(by)?)?.store(&own))
            })
        };
        leave(0, 0, numbers)?;
        if places > warps {
            leave(1, warps, nothing)?;
        }
        if self.is_shared() {
            k.cluster_barrier()
        } else {
            k.barrier()
        }
        let threads = self.warps * LANES;
        let (taken, one) = if all {
            (format!("({threads},({count},{places})):(0,(1,{count}))"), format!("({threads},{places}):(0,1)"))
        } else {
            let lanes = places.min(LANES);
            let (by, each) = (format!("({lanes},{})", threads / lanes), places / lanes);
            let taken = format!("({by},({count},{each})):(({count},0),(1,{}))", count * lanes);
            (taken, format!("({by},{each}):((1,0),{lanes})"))
        };
        let taken = Distribution::new(&format!("({count},{places})"), &taken)?;
        let one = Distribution::new(&format!("(1,{places})"), &one)?;
        let first = array.compose_layout(&format!("({count},{places}):(1,{count})").parse()?)?;
        let taken = first.load_distributed(&taken)?.fragment().numbers()?;
        let tile = |first: usize| {
            let numbers: Vec<Num<'k>> = taken.iter().skip(first).step_by(numbers.len()).copied().collect();
            let fragment = k.register(Element::F32, &numbers.len().to_string())?;
            fragment.set(&numbers)?;
            fragment.distributed(&one)
        };
        (0..numbers.len()).map(tile).collect()
    }

    /// Whether each thread takes all that warps leave, so many numbers each.
    fn takes_all(&self, count: i64) -> bool {
        let warps = self.warps * self.blocks;
        let most = if warps.count_ones() == 1 { TAKEN } else { TAKEN_OF_ODD };
        warps * count <= most
    }

    /// What each thread has, `(R,A,W)` each, put together for its row, `(R,1,1)`: of a warp by
    /// shuffles, then of all warps behind one barrier. `nothing` counts for nothing.
    pub(crate) fn of_all<'k>(
        &self,
        k: &'k Build,
        own: &[Distributed<'k>],
        nothing: &[Num<'k>],
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let together = |tiles: &[Distributed<'k>]| {
            k.reduce_together(&tiles.iter().collect::<Vec<_>>(), &[1], |a, b| Ok(combine(a, b)))
        };
        let mut all = together(own)?;
        if self.meet() {
            let of_warp = all.iter().map(|tile| Ok(tile.fragment().numbers()?[0]));
            all = together(&self.of_warps(k, &of_warp.collect::<Result<Vec<_>, KernelError>>()?, nothing)?)?;
        }
        all.iter().map(|tile| self.of_row(tile)).collect()
    }

    /// The sum of a row, `(R,1,1)`, of what each thread has, `(R,A,W)`.
    pub(crate) fn sum_of_row<'k>(&self, k: &'k Build, own: &Distributed<'k>) -> Result<Distributed<'k>, KernelError> {
        let in_registers = self.is_shared() && !self.rereads();
        if in_registers || !self.is_shared() && self.meet() && self.takes_all(1) {
            let of_warp = own.reduce(&[1], Reduction::Sum)?.fragment().numbers()?;
            let zero = k.number_of(Element::F32, 0.0);
            let all = self.of_warps(k, &of_warp, &[zero])?.remove(0).reduce(&[1], Reduction::Sum)?;
            return self.of_row(&all);
        }
        let of_block = own.reduce(&[1, 2], Reduction::Sum)?;
        Ok(self.across(k, vec![of_block], |a, b| vec![a[0] + b[0]])?.remove(0))
    }

    /// A number that all threads of a block have, as that of its row, `(R,1,1)`.
    fn of_row<'k>(&self, number: &Distributed<'k>) -> Result<Distributed<'k>, KernelError> {
        number.fragment().distributed(&self.run.reduced(&[1, 2])?)
    }
}
