//! Global memory that threads and the copy engine touch in one launch: what the memory model of PTX
//! asks for is asked for, and nothing more.
//!
//! Law: of two accesses in different proxies the second needs a fence for global memory between,
//! made in the block of the bulk copy; behind a bulk copy it needs the end of the copy, and no
//! fence. Each kernel is right with what is needed and has one finding without it.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Fragment, Kernel, KernelError, Reduction, View, interpret, ptx};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

/// How a tensor is written, or read, by all 64 threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Ordinary stores, or loads.
    Plain,
    /// Atomic additions.
    Atomic,
    /// Bulk copies.
    Bulk,
}

/// The position of the fence for global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    None,
    /// In all threads, before they write.
    Early,
    /// In all threads that write, before the barrier.
    Writers,
    /// In the thread that issues the copy, after the barrier.
    Reader,
    /// Of another thread, behind the barrier, of which the one that copies does not know.
    Stranger,
    /// The same, and another barrier tells it.
    Told,
    /// The fence for shared memory.
    Shared,
    /// Behind the copy.
    Late,
}

fn numbers<'k>(k: &'k Build, like: &View<'k>, value: i32) -> Result<Fragment<'k>, KernelError> {
    let numbers = like.thread_part()?.fragment()?;
    numbers.fill(k.number(value))?;
    Ok(numbers)
}

/// All threads write `x` in one way, meet, and touch it in another: a copy to `y`, or 7 stored over
/// it.
fn crossed(first: Way, second: Way, loads: bool, fence: Fence) -> Result<Kernel, KernelError> {
    Kernel::build("crossed", |k| {
        let x = k.tensor::<i32>("x", "(64,1):(1,64)")?;
        let y = if loads { Some(k.output::<i32>("y", "(64,1):(1,64)")?) } else { None };
        k.threads(64)?;
        let (from, to) = (k.shared::<i32>("(64,1):(1,64)")?, k.shared::<i32>("(64,1):(1,64)")?);
        let stage = k.pipeline(1, 2)?.cursor()?.stage()?;
        let stored = |value: i32| {
            from.thread_part()?.store(&numbers(k, &from, value)?)?;
            k.fence_async();
            k.barrier();
            k.single(|| {
                k.store_bulk(&from, &x)?;
                k.commit_bulk();
                k.wait_bulk_written(0);
                Ok(())
            })
        };
        if fence == Fence::Early {
            k.fence_async_global();
        }
        match first {
            Way::Plain => x.thread_part()?.store(&numbers(k, &x, 3)?)?,
            Way::Atomic => x.thread_part()?.accumulate(&numbers(k, &x, 3)?, Reduction::Sum)?,
            Way::Bulk => stored(3)?,
        }
        match fence {
            Fence::Writers => k.fence_async_global(),
            Fence::Shared => k.fence_async(),
            _ => {}
        }
        k.barrier();
        if matches!(fence, Fence::Stranger | Fence::Told) {
            k.role(1..2, || {
                k.fence_async_global();
                Ok(())
            })?;
        }
        if fence == Fence::Told {
            k.barrier();
        }
        let by_one = |copy: &dyn Fn() -> Result<(), KernelError>| {
            k.role(0..1, || {
                k.single(|| {
                    if fence == Fence::Reader {
                        k.fence_async_global();
                    }
                    copy()?;
                    if fence == Fence::Late {
                        k.fence_async_global();
                    }
                    Ok(())
                })
            })
        };
        match (&y, second) {
            (Some(y), Way::Bulk) => {
                by_one(&|| {
                    stage.acquire()?;
                    stage.load(&x, &to)?;
                    stage.publish()
                })?;
                stage.wait()?;
                y.thread_part()?.store(&to.thread_part()?.load()?)?;
                stage.release()
            }
            (Some(y), _) => y.thread_part()?.store(&x.thread_part()?.load()?),
            (None, Way::Bulk) => {
                from.thread_part()?.store(&numbers(k, &from, 7)?)?;
                k.fence_async();
                k.barrier();
                by_one(&|| {
                    k.store_bulk(&from, &x)?;
                    k.commit_bulk();
                    k.wait_bulk(0);
                    Ok(())
                })
            }
            (None, Way::Plain) => x.thread_part()?.store(&numbers(k, &x, 7)?),
            (None, Way::Atomic) => x.thread_part()?.accumulate(&numbers(k, &x, 7)?, Reduction::Sum),
        }
    })
}

/// The codes of what is found, each once.
fn found(kernel: &Kernel) -> Vec<&'static str> {
    match interpret::check(kernel.program(), &[]) {
        Ok(_) => Vec::new(),
        Err(interpret::CheckError::Findings(findings)) => {
            let mut codes: Vec<_> = findings.iter().map(|finding| finding.code()).collect();
            codes.dedup();
            codes
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_bulk_copy_of_what_threads_wrote_needs_a_fence_in_its_block() {
    use Fence::*;
    for first in [Way::Plain, Way::Atomic] {
        for loads in [true, false] {
            for fence in [Writers, Reader, Told] {
                let kernel = crossed(first, Way::Bulk, loads, fence).unwrap();
                assert_eq!(found(&kernel), [""; 0], "{first:?} {loads} {fence:?}");
                let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
                assert_eq!(text.matches("fence.proxy.async.global;").count(), 1, "{text}");
            }
            for fence in [None, Early, Stranger, Shared, Late] {
                let kernel = crossed(first, Way::Bulk, loads, fence).unwrap();
                // A barrier of the pages of shared memory stands between, and tells of the
                // stranger.
                let told = fence == Stranger && !loads;
                assert_eq!(found(&kernel), if told { vec![] } else { vec!["E1019"] }, "{first:?} {loads} {fence:?}");
            }
        }
    }
}

#[test]
fn what_follows_a_bulk_store_needs_its_end_alone() {
    for second in [Way::Plain, Way::Bulk] {
        let kernel = crossed(Way::Bulk, second, true, Fence::None).unwrap();
        assert_eq!(found(&kernel), [""; 0], "{second:?}");
        let run = interpret::check(kernel.program(), &[]).unwrap().run;
        assert_eq!(run.tensor::<i32>("y").unwrap(), [3; 64]);
    }
    for second in [Way::Plain, Way::Atomic, Way::Bulk] {
        assert_eq!(found(&crossed(Way::Bulk, second, false, Fence::None).unwrap()), [""; 0], "{second:?}");
    }
}

/// A bulk store to `x`, and what its thread waits for before all read `x`: none, that shared memory
/// was read, or that it was written.
fn stored(waits: Option<bool>, meets: bool) -> Result<Kernel, KernelError> {
    Kernel::build("stored", |k| {
        let (x, y) = (k.tensor::<i32>("x", "(64,1):(1,64)")?, k.output::<i32>("y", "(64,1):(1,64)")?);
        k.threads(64)?;
        let from = k.shared::<i32>("(64,1):(1,64)")?;
        from.thread_part()?.store(&numbers(k, &from, 3)?)?;
        k.fence_async();
        k.barrier();
        k.single(|| {
            k.store_bulk(&from, &x)?;
            k.commit_bulk();
            match waits {
                Some(true) => k.wait_bulk_written(0),
                Some(false) => k.wait_bulk(0),
                None => {}
            }
            Ok(())
        })?;
        if meets {
            k.barrier();
        }
        y.thread_part()?.store(&x.thread_part()?.load()?)?;
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })
    })
}

#[test]
fn a_bulk_store_is_read_again_when_it_is_written() {
    assert_eq!(found(&stored(Some(true), true).unwrap()), [""; 0]);
    for (waits, meets) in [(Some(false), true), (None, true), (Some(true), false)] {
        assert_eq!(found(&stored(waits, meets).unwrap()), ["E1018"], "{waits:?} {meets}");
    }
    let text = ptx::write(stored(Some(true), true).unwrap().program(), ptx::Target::Sm90a).unwrap();
    assert!(text.contains("cp.async.bulk.wait_group 0;"), "{text}");
}

fn part(block: impl Into<Expr>) -> Coord<Expr> {
    Tree::flat([Slot::All, Slot::All, Slot::At(block.into())]).unwrap()
}

/// Each of two blocks of a cluster writes its half of `x`, and loads the half of the other one by
/// the copy engine. The fence stands before the barrier of the cluster, behind it, or nowhere.
fn exchanged(first: Way, before: bool, behind: bool) -> Result<Kernel, KernelError> {
    Kernel::build("exchanged", |k| {
        let (x, y) = (k.tensor::<i32>("x", "(64,1,2):(1,64,64)")?, k.output::<i32>("y", "(64,1,2):(1,64,64)")?);
        k.threads(64)?;
        k.grid(Axis::X, 2)?;
        k.cluster(2)?;
        let (from, to) = (k.shared::<i32>("(64,1):(1,64)")?, k.shared::<i32>("(64,1):(1,64)")?);
        let stage = k.pipeline(1, 2)?.cursor()?.stage()?;
        let own = x.slice(part(k.rank()))?;
        match first {
            Way::Plain => own.thread_part()?.store(&numbers(k, &own, 3)?)?,
            Way::Atomic => own.thread_part()?.accumulate(&numbers(k, &own, 3)?, Reduction::Sum)?,
            Way::Bulk => {
                from.thread_part()?.store(&numbers(k, &from, 3)?)?;
                k.fence_async();
                k.barrier();
                k.single(|| {
                    k.store_bulk(&from, &own)?;
                    k.commit_bulk();
                    k.wait_bulk_written(0);
                    Ok(())
                })?;
            }
        }
        if before {
            k.fence_async_global();
        }
        k.cluster_barrier();
        k.single(|| {
            if behind {
                k.fence_async_global();
            }
            stage.acquire()?;
            stage.load(&x.slice(part(k.rank_after(1)?))?, &to)?;
            stage.publish()
        })?;
        stage.wait()?;
        y.slice(part(k.block_number(Axis::X)))?.thread_part()?.store(&to.thread_part()?.load()?)?;
        stage.release()
    })
}

#[test]
fn between_blocks_of_a_cluster_the_fence_is_in_the_block_that_copies() {
    for first in [Way::Plain, Way::Atomic, Way::Bulk] {
        assert_eq!(found(&exchanged(first, false, true).unwrap()), [""; 0], "{first:?}");
        assert_eq!(found(&exchanged(first, true, true).unwrap()), [""; 0], "{first:?}");
        assert_eq!(found(&exchanged(first, false, false).unwrap()), ["E1019"], "{first:?}");
        // The fence of the other block is one of its own asynchronous proxy.
        assert_eq!(found(&exchanged(first, true, false).unwrap()), ["E1019"], "{first:?}");
    }
}

/// Each of four blocks leaves 64 numbers, in an output or added to a tensor, and the last one
/// copies those of block 2 by the copy engine.
fn last(output: bool, before: bool, behind: bool) -> Result<Kernel, KernelError> {
    Kernel::build("last", |k| {
        let layout = "(64,1,4):(1,64,64)";
        let x = if output { k.output::<i32>("x", layout)? } else { k.tensor::<i32>("x", layout)? };
        let y = k.output::<i32>("y", "(64,1):(1,64)")?;
        k.threads(64)?;
        k.grid(Axis::X, 4)?;
        let to = k.shared::<i32>("(64,1):(1,64)")?;
        let stage = k.pipeline(1, 2)?.cursor()?.stage()?;
        let own = x.slice(part(k.block_number(Axis::X)))?;
        match output {
            true => own.thread_part()?.store(&numbers(k, &own, 3)?)?,
            false => own.thread_part()?.accumulate(&numbers(k, &own, 3)?, Reduction::Sum)?,
        }
        if before {
            k.fence_async_global();
        }
        k.when_last(|| {
            k.single(|| {
                if behind {
                    k.fence_async_global();
                }
                stage.acquire()?;
                stage.load(&x.slice(part(2))?, &to)?;
                stage.publish()
            })?;
            stage.wait()?;
            y.thread_part()?.store(&to.thread_part()?.load()?)?;
            stage.release()
        })
    })
}

#[test]
fn the_last_block_makes_the_fence_itself() {
    for output in [true, false] {
        let kernel = last(output, false, true).unwrap();
        assert_eq!(found(&kernel), [""; 0], "{output}");
        if output {
            let run = interpret::check(kernel.program(), &[]).unwrap().run;
            assert_eq!(run.tensor::<i32>("y").unwrap(), [3; 64]);
        }
        assert_eq!(found(&last(output, false, false).unwrap()), ["E1019"], "{output}");
        // The fences of the others are no fences of its own, which it makes before it is told.
        assert_eq!(found(&last(output, true, false).unwrap()), ["E1019"], "{output}");
    }
}

/// One thread stores to a tensor, and then over it by the copy engine.
fn over(fence: bool) -> Result<Kernel, KernelError> {
    Kernel::build("over", |k| {
        let y = k.tensor::<i32>("y", "(1,64):(64,1)")?;
        k.threads(1)?;
        k.grid(Axis::X, 1)?;
        let from = k.shared::<i32>("(1,64):(64,1)")?;
        from.thread_part()?.store(&numbers(k, &from, 3)?)?;
        y.thread_part()?.store(&numbers(k, &y, 5)?)?;
        k.fence_async();
        if fence {
            k.fence_async_global();
        }
        k.store_bulk(&from, &y)?;
        k.commit_bulk();
        k.wait_bulk(0);
        Ok(())
    })
}

#[test]
fn one_thread_that_stores_both_ways_needs_the_fence_too() {
    // As a tensor that is read and written, and as an output.
    for role in [Role::Both, Role::Output] {
        let [right, wrong] = [true, false].map(|fence| {
            let mut program = over(fence).unwrap().program().clone();
            let y = program.buffers.iter_mut().find(|buffer| buffer.name == "y").unwrap();
            y.role = role;
            program
        });
        assert!(interpret::check(&right, &[]).is_ok(), "{role:?}");
        let found = interpret::check(&wrong, &[]).unwrap_err().to_string();
        assert!(found.contains("E1019") && found.contains("fence_async_global"), "{role:?}: {found}");
    }
}
