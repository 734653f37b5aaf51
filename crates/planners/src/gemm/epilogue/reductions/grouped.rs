//! Reductions of rows or columns of row groups, of what their tiles leave.
//!
//! Law: a row of a group has one number, which is made of those of its tiles along the columns in
//! their order; rows of no group keep what they have. A column has one number for each group, made
//! of those of the tiles of the group in their order: nothing is added to 0, and the
//! greatest number of a group without rows is minus infinity.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Fragment, Kernel, KernelError, Num};
use tilewright_layout::{Slot, Tree};

use crate::error::PlanError;
use crate::gemm::epilogue::reductions::Parts;
use crate::gemm::index::overflow;
use crate::gemm::plan::WARPGROUP_THREADS;
use crate::gemm::problem::Problem;
use crate::gemm::problem::reductions::{ByProduct, Each};
use crate::gemm::schedule::grouped::number;
use crate::product::count;
use crate::terms::Statistic;

/// The kernel that makes a reduction of what tiles of so many rows have left, each `each` numbers
/// of a column: from these and where the groups end.
pub(crate) fn kept(
    by: &ByProduct,
    problem: &Problem,
    parts: &Parts,
    [own, each]: [i64; 2],
) -> Result<Kernel, PlanError> {
    match by.each {
        Each::Row => of_rows(by, problem, parts),
        Each::Column => of_columns(by, problem, parts, [own, each]),
    }
}

/// A number that changes nothing, in a register.
fn neutral<'k>(k: &'k Build, by: &ByProduct) -> Result<Fragment<'k>, KernelError> {
    let number = by.statistic.neutral();
    let held = k.register(Element::F32, "1")?;
    held.set(&[k.number_of(Element::F32, number)])?;
    Ok(held)
}

/// Adds a number to what a register has, or takes the greater one.
fn combine<'k>(by: &ByProduct, held: &Fragment<'k>, found: Num<'k>) -> Result<(), KernelError> {
    let before = held.numbers()?[0];
    held.set(&[if by.statistic == Statistic::Sum { before + found } else { before.max(found) }])
}

fn of_rows(by: &ByProduct, problem: &Problem, parts: &Parts) -> Result<Kernel, PlanError> {
    let (rows, groups) = (problem.sizes()[0], problem.row_groups().unwrap_or(1));
    let Parts { elements, tiles, .. } = *parts;
    let kernel = Kernel::build("product_rows", |k| {
        let left = k.input::<f32>("left", &format!("({elements},{tiles}):(1,{elements})"))?;
        let ends = k.input::<i32>("ends", &format!("{groups}:1"))?;
        let kept = k.tensor_of(Element::F32, "kept", &format!("{elements}:1"), Role::Both)?;
        k.threads(WARPGROUP_THREADS)?;
        k.wait_launches();
        k.launch_next();
        let last = k.register(Element::I32, "1")?;
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

fn of_columns(by: &ByProduct, problem: &Problem, parts: &Parts, [own, each]: [i64; 2]) -> Result<Kernel, PlanError> {
    let (rows, groups) = (problem.sizes()[0], problem.row_groups().unwrap_or(1));
    let Parts { elements, tiles, .. } = *parts;
    let kernel = Kernel::build("product_columns", |k| {
        let left = k.input::<f32>("left", &format!("({elements},{tiles}):(1,{elements})"))?;
        let ends = k.input::<i32>("ends", &format!("{groups}:1"))?;
        let kept = k.output::<f32>("kept", &format!("({elements},{groups}):(1,{elements})"))?;
        k.threads(WARPGROUP_THREADS)?;
        k.grid(Axis::X, &count(elements, WARPGROUP_THREADS).to_string())?;
        k.grid(Axis::Y, &groups.to_string())?;
        k.wait_launches();
        k.launch_next();
        let group = k.block_number(Axis::Y);
        let of = k.index(&group)?;
        // Tiles and rows of the groups before; then the first tile of this one, and how many.
        let state = k.register(Element::I32, "4")?;
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
