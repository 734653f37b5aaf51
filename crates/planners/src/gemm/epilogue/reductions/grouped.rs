//! Reductions by row group: combines the partial results of tiles.
//!
//! Law: a row of a group gets one number, combined from its tiles along the columns in their order;
//! rows of no group keep what they have. A column gets one number for each group, combined from the
//! tiles of the group in their order. The sum of a group without rows is 0, and its maximum is
//! minus infinity.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Fragment, Kernel, KernelError, Num};
use tilewright_layout::{Layout, Slot, Tree};

use crate::error::PlanError;
use crate::gemm::epilogue::reductions::Parts;
use crate::gemm::index::overflow;
use crate::gemm::plan::WARPGROUP_THREADS;
use crate::gemm::problem::Problem;
use crate::gemm::problem::reductions::{Each, EpilogueReduction};
use crate::gemm::schedule::grouped::number;
use crate::terms::Statistic;
use crate::units::count;
use crate::units::follow_launches;

/// The kernel that combines the partial results of tiles of `rows` rows, with `each` numbers for a
/// column, by the ends of the groups.
pub(crate) fn kept(
    by: &EpilogueReduction,
    problem: &Problem,
    parts: &Parts,
    [own, each]: [i64; 2],
    machine: &Machine,
) -> Result<Kernel, PlanError> {
    match by.each {
        Each::Row => of_rows(by, problem, parts, machine),
        Each::Column => of_columns(by, problem, parts, [own, each], machine),
    }
}

/// The neutral element, in a register.
fn neutral<'k>(k: &'k Build, by: &EpilogueReduction) -> Result<Fragment<'k>, KernelError> {
    let number = by.statistic.neutral();
    let held = k.register(Element::F32, 1)?;
    held.set(&[k.number_of(Element::F32, number)])?;
    Ok(held)
}

/// Combines a number into a register: by sum or by maximum.
fn combine<'k>(by: &EpilogueReduction, held: &Fragment<'k>, found: Num<'k>) -> Result<(), KernelError> {
    let before = held.numbers()?[0];
    held.set(&[if by.statistic == Statistic::Sum { before + found } else { before.max(found) }])
}

fn of_rows(by: &EpilogueReduction, problem: &Problem, parts: &Parts, machine: &Machine) -> Result<Kernel, PlanError> {
    let (rows, groups) = (problem.sizes()[0], problem.row_groups().unwrap_or(1));
    let Parts { elements, tiles, .. } = *parts;
    let kernel = Kernel::build("product_rows", |k| {
        let left = k.input::<f32>("left", Layout::strided((elements, tiles), (1, elements)))?;
        let ends = k.input::<i32>("ends", Layout::strided(groups, 1))?;
        let kept = k.tensor_of(Element::F32, "kept", Layout::strided(elements, 1), Role::Both)?;
        k.threads(WARPGROUP_THREADS)?;
        follow_launches(k, machine);
        let last = k.register(Element::I32, 1)?;
        last.set(&[number(k, 0)])?;
        k.range(groups, |group| {
            let end = ends.slice(Tree::leaf(Slot::At(group)))?.load()?.numbers()?[0];
            last.set(&[last.numbers()?[0].max(end.min(number(k, rows)))])
        })?;
        let end = k.index_up_to(last.numbers()?[0], rows)?;
        let held = neutral(k, by)?;
        k.range(tiles, |tile| {
            let own = left.slice(Tree::flat([Slot::All, Slot::At(tile)])?)?;
            let own = own.local_tile(&WARPGROUP_THREADS.to_string(), k.block("x")?)?.thread_part()?;
            combine(by, &held, own.load_predicated()?.numbers()?[0])
        })?;
        let to = kept.ending_at(0, &end)?.local_tile(&WARPGROUP_THREADS.to_string(), k.block("x")?)?;
        to.thread_part()?.store_predicated(&held)
    })?;
    Ok(kernel)
}

fn of_columns(
    by: &EpilogueReduction,
    problem: &Problem,
    parts: &Parts,
    [own, each]: [i64; 2],
    machine: &Machine,
) -> Result<Kernel, PlanError> {
    let (rows, groups) = (problem.sizes()[0], problem.row_groups().unwrap_or(1));
    let Parts { elements, tiles, .. } = *parts;
    let kernel = Kernel::build("product_columns", |k| {
        let left = k.input::<f32>("left", Layout::strided((elements, tiles), (1, elements)))?;
        let ends = k.input::<i32>("ends", Layout::strided(groups, 1))?;
        let kept = k.output::<f32>("kept", Layout::strided((elements, groups), (1, elements)))?;
        k.threads(WARPGROUP_THREADS)?;
        k.grid(Axis::X, &count(elements, WARPGROUP_THREADS).to_string())?;
        k.grid(Axis::Y, groups)?;
        follow_launches(k, machine);
        let group = k.block_number(Axis::Y);
        let of = k.index(&group)?;
        // The tiles and rows of the groups before; then the first tile of this group, and its
        // number of tiles.
        let state = k.register(Element::I32, 4)?;
        state.set(&[number(k, 0); 4])?;
        k.range(groups, |group| {
            let end = ends.slice(Tree::leaf(Slot::At(group.clone())))?.load()?.numbers()?[0];
            let [before, first, start, many] = state.numbers()?[..] else { return Err(overflow()) };
            let end = end.min(number(k, rows)).max(first);
            let whole = (end - first + number(k, own - 1)) / number(k, own);
            let here = k.index(&group)?.eq(of);
            state.set(&[before + whole, end, here.select(before, start), here.select(whole, many)])
        })?;
        let [_, _, start, many] = state.numbers()?[..] else { return Err(overflow()) };
        let held = neutral(k, by)?;
        k.range(k.index_up_to(many * number(k, each), tiles)?, |at| {
            let tile = k.index_up_to(start * number(k, each) + k.index(&at)?, tiles - 1)?;
            let own = left.slice(Tree::flat([Slot::All, Slot::At(tile)])?)?;
            let own = own.local_tile(&WARPGROUP_THREADS.to_string(), k.block("x")?)?.thread_part()?;
            combine(by, &held, own.load_predicated()?.numbers()?[0])
        })?;
        let to = kept.slice(Tree::flat([Slot::All, Slot::At(group)])?)?;
        to.local_tile(&WARPGROUP_THREADS.to_string(), k.block("x")?)?.thread_part()?.store_predicated(&held)
    })?;
    Ok(kernel)
}
