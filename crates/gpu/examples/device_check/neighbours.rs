//! Blocks of clusters of every shape, which count themselves, add to each other's shared memory,
//! and give each other numbers behind arrivals.

use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Reduction};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Stride, Tree};

fn sum(terms: &[(&Expr, i64)]) -> Result<Expr, KernelError> {
    let overflow = || tilewright_layout::LayoutError::Overflow { op: "number" };
    let all = terms.iter().try_fold(Expr::from(0), |sum, (number, by)| {
        Stride::times(*number, &Expr::from(*by)).and_then(|term| Stride::plus(&sum, &term))
    });
    Ok(all.ok_or_else(overflow)?)
}

/// Each block sends the number that `x` has for it to the block of each rank, which writes what it
/// received.
pub(crate) fn ranks(cluster: [u32; 3]) -> Result<Kernel, KernelError> {
    let size = i64::from(cluster.iter().product::<u32>());
    let blocks: [i64; 3] = std::array::from_fn(|axis| [2, 3, 1][axis] * i64::from(cluster[axis]));
    let all: i64 = blocks.iter().product();
    Kernel::build("ranks", |k: &Build| {
        let x = k.input::<f32>("x", Layout::strided(all, 1))?;
        let y = k.output::<f32>("y", Layout::strided((size, all), (1, size)))?;
        k.threads(32)?;
        for (axis, count) in Axis::ALL.into_iter().zip(blocks) {
            k.grid(axis, count)?;
        }
        k.cluster(cluster)?;
        let given = k.shared::<f32>(Layout::strided(size, 1))?;
        k.cluster_barrier();
        let [a, b, c] = Axis::ALL.map(|axis| k.block_number(axis));
        let number = sum(&[(&a, 1), (&b, blocks[0]), (&c, blocks[0] * blocks[1])])?;
        let own = x.local_tile(1, Tree::leaf(Slot::At(number.clone())))?.load_predicated()?;
        let first = k.index(&k.thread()?)?;
        let first = first.eq(first.like(0.0));
        k.when(first, || {
            let place = given.local_tile(1, Tree::leaf(Slot::At(k.rank())))?;
            (0..size as u32).try_for_each(|by| place.of_block(k.rank_after(by)?)?.store(&own))
        })?;
        k.cluster_barrier();
        let column: Coord<Expr> = Tree::flat([Slot::All, Slot::At(number)])?;
        k.when(first, || y.slice(column)?.store_predicated(&given.load()?))
    })
}

/// Threads of all blocks add to an array of the last one, or take the maximum or minimum there.
pub(crate) fn added(blocks: u32, element: Element, reduction: Reduction) -> Result<Kernel, KernelError> {
    Kernel::build("added", |k: &Build| {
        let x = k.input::<f32>("x", Layout::strided((64, blocks), (1, 64)))?;
        let y = k.tensor_of(element, "y", "8:1", tilewright_kernel::program::memory::Role::Output)?;
        k.threads(64)?;
        k.grid(Axis::X, blocks)?;
        k.cluster(blocks)?;
        let places = k.shared_of(element, "8:1")?;
        let own = k.index(&k.thread()?)?;
        let before = k.register(element, 8)?;
        before.fill(k.number_of(element, 3.0))?;
        k.when(own.eq(own.like(0.0)), || places.store(&before))?;
        k.cluster_barrier();
        let column = x.slice(Tree::flat([Slot::All, Slot::At(k.block_number(Axis::X))])?)?;
        let value = column.thread_part()?.load()?.to(element)?;
        let place = k.coordinate(&k.thread()?, &[8, 8])?.swap_remove(0);
        let place = places.local_tile(1, Tree::leaf(Slot::At(place)))?;
        place.of_block(Expr::from(i64::from(blocks) - 1))?.accumulate(&value, reduction)?;
        k.cluster_barrier();
        let last = k.index(&k.rank())?.eq(k.number(blocks as i32 - 1)).and(own.eq(own.like(0.0)));
        k.when(last, || y.store(&places.load()?))
    })
}

/// Two blocks give each other numbers, iteration by iteration. A stage is free for those who are a
/// round ahead once it was given.
pub(crate) fn given(iterations: i64) -> Result<Kernel, KernelError> {
    Kernel::build("given", |k: &Build| {
        let layout = format!("(64,1,({iterations},2)):(1,1,(64,{}))", 64 * iterations);
        let (x, y) = (k.input::<f32>("x", &layout)?, k.output::<f32>("y", &layout)?);
        k.threads(64)?;
        k.grid(Axis::X, 2)?;
        k.cluster(2)?;
        let taken = k.shared::<f32>("(64,1,2):(1,1,64)")?;
        let ring = k.pipeline(2, 2)?;
        let (gives, ahead) = (ring.cursor()?, ring.cursor()?);
        ahead.advance()?;
        ahead.advance()?;
        let other = k.rank_after(1)?;
        k.range(iterations, |iteration| {
            let all = Tree::leaf(Slot::All);
            let place = Tree::flat([Slot::At(iteration.clone()), Slot::At(k.block_number(Axis::X))])?;
            let own: Coord<Expr> = Tree::tuple([&all, &all, &place])?;
            let digit = k.coordinate(&iteration, &[2, iterations])?.swap_remove(0);
            let slot: Coord<Expr> = Tree::flat([Slot::All, Slot::All, Slot::At(digit)])?;
            let numbers = x.slice(own.clone())?.thread_part()?.load()?;
            taken.slice(slot.clone())?.of_block(other.clone())?.thread_part()?.store(&numbers)?;
            gives.stage()?.give_to(other.clone())?;
            ahead.stage()?.acquire()?;
            gives.advance()?;
            ahead.advance()?;
            y.slice(own)?.thread_part()?.store(&taken.slice(slot)?.thread_part()?.load()?)
        })
    })
}
