//! Lists every store of a kernel with constant sizes.
//!
//! Law: if addresses and predicates depend only on the indices of blocks, threads and iterations,
//! the list of the stores of each thread holds for every launch. So each element of the layout is
//! stored by exactly one thread, or the kernel is refused.

use tilewright_layout::{Composed, Layout};

use super::{Doubt, undecided};
use crate::error::Reason;
use crate::program::Program;
use crate::program::memory::BufferId;
use crate::program::operation::Operation;

/// The most elements of a tensor whose stores are listed.
const MAX_ELEMENTS: i64 = 1 << 18;

/// The most nodes of warps that are executed, for each element.
const STEPS: u64 = 16;

/// No thread, or several.
const NONE: u64 = u64::MAX;
const SEVERAL: u64 = u64::MAX - 1;

/// Proves that one thread of a program without sizes stores each element of a tensor.
pub(super) fn listed(program: &Program, to: BufferId, tensor: &str) -> Result<(), Doubt> {
    if program.tile_counter.is_some() || program.counted.is_some() {
        return Err(undecided("which block has which number is open"));
    }
    let buffer = program.buffer(to);
    let bytes = i64::from(buffer.element.bytes());
    let places = places(&buffer.layout)?;
    let reach = places.iter().max().map_or(0, |last| last + 1);
    if reach > 4 * MAX_ELEMENTS {
        return Err(undecided(format!("it reaches over more than the {} places that are listed", 4 * MAX_ELEMENTS)));
    }
    if !stored_alone(program, to) {
        return Err(undecided("of its writers, only stores of threads are listed"));
    }
    let mut writers = vec![NONE; reach as usize];
    let mut whole = true;
    let steps = STEPS.saturating_mul(reach.unsigned_abs());
    let known = program.each_stored(to, steps, |stored| {
        whole &= stored.at % bytes == 0 && i64::from(stored.bytes) % bytes == 0;
        for at in (stored.at / bytes..).take((i64::from(stored.bytes) / bytes) as usize) {
            let writer = usize::try_from(at).ok().and_then(|at| writers.get_mut(at));
            let Some(writer) = writer else { continue };
            *writer = if *writer == NONE || *writer == stored.thread { stored.thread } else { SEVERAL };
        }
    });
    if !known || !whole {
        return Err(undecided("the stored elements depend on more than the indices of blocks, threads and iterations"));
    }
    let tensor = || tensor.to_string();
    let of = |writer: u64| places.iter().position(|place| writers[*place as usize] == writer);
    if let Some(index) = of(SEVERAL) {
        let by = format!("several threads, which have its element with index {index}");
        return Err(Doubt::Refused(Reason::WrittenTwice { tensor: tensor(), by }));
    }
    if let Some(index) = of(NONE) {
        let what = format!("no thread writes the element with index {index}");
        return Err(Doubt::Refused(Reason::NeverWritten { tensor: tensor(), what }));
    }
    Ok(())
}

/// The offsets of the elements of a layout, if there are not too many.
fn places(layout: &str) -> Result<Vec<i64>, Doubt> {
    let unknown = || undecided("where its elements are is not listed");
    let counted = |count: i64| match count {
        ..=MAX_ELEMENTS => Ok(count),
        _ => Err(undecided(format!("it has more than the {MAX_ELEMENTS} elements whose stores are listed"))),
    };
    if !layout.contains(" o ") {
        let layout: Layout = layout.parse().map_err(|_| unknown())?;
        let count = counted(layout.size())?;
        return (0..count).map(|index| layout.eval(&index).ok()).collect::<Option<_>>().ok_or_else(unknown);
    }
    let layout: Composed = layout.parse().map_err(|_| unknown())?;
    let count = counted(layout.inner().size())?;
    let place = |index: i64| layout.outer().eval(&(layout.inner().eval(&index).ok()? + layout.offset())).ok();
    (0..count).map(place).collect::<Option<_>>().ok_or_else(unknown)
}

/// Whether threads write a tensor only by stores.
fn stored_alone(program: &Program, to: BufferId) -> bool {
    program.instructions().all(|instruction| match &instruction.operation {
        Operation::Store(_) | Operation::Load(_) => true,
        Operation::BulkStore { map, .. } if program.map(*map).buffer == to => false,
        operation => operation.accesses().all(|access| access.buffer != to),
    })
}
