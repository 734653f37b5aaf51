//! Reductions of contiguous rows, each held in the registers of a block.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Distributed, Element, Kernel, KernelError, Num, Reduction, View};

use crate::rows::{Held, RowsPlan, placed};
use crate::terms::Statistic;

/// The kernel for any number of rows.
pub(super) fn kernel(statistic: Statistic, rows: &RowsPlan) -> Result<Kernel, KernelError> {
    let element = rows.element();
    Kernel::build("reduce_rows", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let result = statistic.result(element);
        let y = placed(k.tensor_of(result, "y", "(M,1):(1,M)", Role::Output)?, result, rows.alignment)?;
        let held = rows.load(k, &x, Some(k.number_of(element, statistic.neutral())))?;
        if statistic == Statistic::ArgMaximum {
            return rows.store_results(k, &y, &place(k, rows, &x, &held)?);
        }
        let mut all: Option<Distributed<'_>> = None;
        for run in held.runs(k) {
            let wide = run?.to(statistic.wide(element))?;
            let own = wide.map(|x| Ok(statistic.part(x, None)[0]))?;
            all = Some(match all {
                None => own,
                Some(all) => all.zip(&own, |a, b| Ok(statistic.combine(&[a], &[b])[0]))?,
            });
        }
        let all: Vec<Distributed<'_>> = all.into_iter().collect();
        let all = statistic.gathered(k, &all, &[1, 2])?;
        let found = statistic.result_of(&all, rows.columns as f64)?;
        rows.store_results(k, &y, &found.to(statistic.result(element))?)
    })
}

/// The argmax of each row: first the maximum, then the first vector that has it, then its first
/// element in that vector, which one thread of a row reads again. That takes fewer instructions
/// than carrying an index along with each element.
fn place<'k>(k: &'k Build, rows: &RowsPlan, x: &View<'k>, held: &Held<'k>) -> Result<Distributed<'k>, KernelError> {
    let kept = Statistic::ArgMaximum.wide(rows.element());
    let most = |numbers: &[Num<'k>]| {
        let wide = |x: &Num<'k>| x.to(kept);
        numbers[1..].iter().fold(wide(&numbers[0]), |most, x| most.max(wide(x)))
    };
    let mut runs: Vec<Vec<Num<'k>>> = Vec::new();
    for run in held.runs(k) {
        let numbers = rows.by_row(run?.fragment().numbers()?);
        runs.push(numbers.iter().map(|row| most(row)).collect());
    }
    let each = runs.first().map_or(1, Vec::len);
    let tile = |element: Element, numbers: &[Num<'k>]| {
        let fragment = k.register(element, &each.to_string())?;
        fragment.set(numbers)?;
        rows.of_threads(&fragment)
    };
    let own: Vec<Num<'k>> = (0..each).map(|row| most(&runs.iter().map(|run| run[row]).collect::<Vec<_>>())).collect();
    let greatest = tile(kept, &own)?.reduce(&[1, 2], Reduction::Maximum)?.fragment().numbers()?;
    let none = k.number(i32::MAX);
    let mut first = vec![none; each];
    for (number, run) in runs.iter().enumerate().rev() {
        let before = rows.vectors_before(k, number)?;
        for (row, most) in run.iter().enumerate() {
            first[row] = Reduction::reaches(*most, greatest[row]).select(before, first[row]);
        }
    }
    let vectors = tile(Element::I32, &first)?.reduce(&[1, 2], Reduction::Minimum)?;
    // Each of the first lanes of a row searches the vector for one row of its thread.
    let [lane, _, warp] = rows.place_of(k)?;
    let own = k.index(&lane)?;
    let (mut vector, mut most) = (none, greatest[0]);
    for (row, number) in vectors.fragment().numbers()?.into_iter().enumerate() {
        let here = own.eq(k.number(row as i32));
        (vector, most) = (here.select(number, vector), here.select(greatest[row], most));
    }
    let place = k.register(Element::I32, 1)?;
    place.fill(k.number(0))?;
    let zero = k.number(0);
    k.when(own.lt(k.number(each as i32)).and(k.index(&warp)?.eq(zero)), || {
        let mut at = none;
        for (number, x) in rows.vector_of(k, x, &lane, vector)?.numbers()?.iter().enumerate().rev() {
            at = Reduction::reaches(x.to(kept), most).select(k.number(number as i32), at);
        }
        let found = vector * k.number(rows.vector() as i32) + at;
        place.fill(at.eq(none).select(zero, found))
    })?;
    rows.of_lanes(&place)
}
