//! The local work of a device: its tasks, their order, and the operands that each task needs.
//!
//! Law: the local GEMM of a device is cut into boxes of rows, columns and K. Each box needs either
//! all or nothing of a message from another device, and each box of rows and columns belongs
//! entirely to one outgoing message or to none. A box is multiplied when its operands have arrived.
//! The boxes of the same rows and columns are added in a fixed order, so that rounding is the same
//! in every run.

use std::ops::Range;

use crate::step::Message;

/// The most boxes. If there would be more, the GEMM is not cut, and all operands are waited for.
const MAX_BOXES: usize = 1 << 14;

/// The most multiplications of a task, so that arrivals are checked between tasks; and the fewest
/// columns, because narrow blocks are slow.
const MAX_WORK: i64 = 1 << 27;
const MIN_COLUMNS: i64 = 64;

/// A task: adds the products of a part of K to a block of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub depth: Range<i64>,
    /// The devices whose operands the task needs.
    pub needs: Vec<usize>,
}

/// A block of the result of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub rows: Range<i64>,
    pub columns: Range<i64>,
    /// The tasks whose results are added, in order.
    pub tasks: Vec<Task>,
    /// Whether the result of a task has been stored.
    pub is_begun: bool,
    /// The devices that need a part of the block.
    pub serves: Vec<usize>,
}

/// A part of a matrix that is sent to or received from a device.
struct MatrixPart {
    rank: usize,
    rows: Vec<bool>,
    columns: Vec<bool>,
}

impl MatrixPart {
    /// The rows and columns of a message on one side, which is a compact matrix of `height` rows:
    /// the memory that is written, or the memory that is read.
    fn of(message: &Message, rank: usize, [height, width]: [i64; 2], written: bool) -> MatrixPart {
        let side = |read: i64, write: i64| if written { write } else { read };
        let starts = message.footprint.starts.iter().map(|(read, write)| side(*read, *write));
        let (mut rows, mut columns): (Vec<i64>, Vec<i64>) =
            starts.map(|start| (start % height, start / height)).unzip();
        for (extent, read, write) in &message.footprint.modes {
            let step = side(*read, *write);
            let (lines, step) = if step < height { (&mut rows, step) } else { (&mut columns, step / height) };
            let before = std::mem::take(lines);
            *lines = before.iter().flat_map(|line| (0..*extent).map(move |at| line + at * step)).collect();
            lines.sort_unstable();
            lines.dedup();
        }
        let marked = |lines: Vec<i64>, all: i64| {
            let mut marks = vec![false; usize::try_from(all).unwrap_or(0)];
            for line in lines {
                usize::try_from(line)
                    .ok()
                    .and_then(|line| marks.get_mut(line))
                    .into_iter()
                    .for_each(|mark| *mark = true);
            }
            marks
        };
        MatrixPart { rank, rows: marked(rows, height), columns: marked(columns, width) }
    }
}

/// The ranges in which lists of marks are constant.
fn ranges<'a>(size: i64, marks: impl Iterator<Item = &'a [bool]>) -> Vec<Range<i64>> {
    let mut begins = vec![false; usize::try_from(size).unwrap_or(0)];
    begins.iter_mut().take(1).for_each(|begin| *begin = true);
    for marks in marks {
        for (begin, pair) in begins.iter_mut().skip(1).zip(marks.windows(2)) {
            *begin |= pair.first() != pair.last();
        }
    }
    let begins = begins.iter().enumerate().filter(|(_, begin)| **begin).map(|(at, _)| at as i64);
    let begins: Vec<i64> = begins.chain([size]).collect();
    begins.windows(2).map(|pair| pair.first().copied().unwrap_or(0)..pair.last().copied().unwrap_or(0)).collect()
}

fn meets(marks: &[bool], range: &Range<i64>) -> bool {
    let (start, end) = (usize::try_from(range.start).unwrap_or(0), usize::try_from(range.end).unwrap_or(0));
    marks.get(start..end).is_some_and(|marks| marks.contains(&true))
}

/// The blocks of a device: first those that other devices need, then those whose operands arrive
/// first.
///
/// `operands` are the incoming messages of A and B, `sums` the outgoing messages of its part of the
/// result, each with its receiver.
pub(super) fn groups(
    own: usize,
    ranks: usize,
    [m, n, k]: [i64; 3],
    operands: [&[Message]; 2],
    sums: &[(usize, Message)],
) -> Vec<Group> {
    let remote = |messages: &[Message], sizes| -> Vec<MatrixPart> {
        let remote = messages.iter().filter(|message| message.from != own);
        remote.map(|message| MatrixPart::of(message, message.from, sizes, true)).collect()
    };
    let [of_a, of_b] = operands;
    let (a, b) = (remote(of_a, [m, k]), remote(of_b, [k, n]));
    let taken = sums.iter().filter(|(rank, _)| *rank != own);
    let taken: Vec<MatrixPart> = taken.map(|(rank, message)| MatrixPart::of(message, *rank, [m, n], false)).collect();
    let rows = |parts: &'_ [MatrixPart]| -> Vec<Vec<bool>> { parts.iter().map(|part| part.rows.clone()).collect() };
    let columns =
        |parts: &'_ [MatrixPart]| -> Vec<Vec<bool>> { parts.iter().map(|part| part.columns.clone()).collect() };
    let along = |size: i64, first: Vec<Vec<bool>>, second: Vec<Vec<bool>>| {
        ranges(size, first.iter().chain(&second).map(Vec::as_slice))
    };
    let mut along_m = along(m, rows(&a), rows(&taken));
    let mut along_n = along(n, columns(&b), columns(&taken));
    let mut along_k = along(k, columns(&a), rows(&b));
    if along_m.len().saturating_mul(along_n.len()).saturating_mul(along_k.len()) > MAX_BOXES {
        [along_m, along_n, along_k] = [m, n, k].map(|size| ranges(size, std::iter::empty()));
    }
    let after = |rank: &usize| (rank + ranks - own) % ranks;
    let most = (MAX_WORK / m.saturating_mul(k).max(1)).max(MIN_COLUMNS);
    let mut groups = Vec::new();
    for rows in &along_m {
        for columns in along_n.iter().flat_map(|columns| chunks(columns, most)) {
            let tasks = along_k.iter().map(|depth| {
                let of_a = a.iter().filter(|part| meets(&part.rows, rows) && meets(&part.columns, depth));
                let of_b = b.iter().filter(|part| meets(&part.rows, depth) && meets(&part.columns, &columns));
                let mut needs: Vec<usize> = of_a.chain(of_b).map(|part| part.rank).collect();
                needs.sort_unstable();
                needs.dedup();
                Task { depth: depth.clone(), needs }
            });
            let mut tasks: Vec<Task> = tasks.collect();
            tasks.sort_by_key(|task| task.needs.iter().map(after).max());
            let serves = taken.iter().filter(|part| meets(&part.rows, rows) && meets(&part.columns, &columns));
            let mut serves: Vec<usize> = serves.map(|part| part.rank).collect();
            serves.sort_by_key(after);
            serves.dedup();
            groups.push(Group { rows: rows.clone(), columns, tasks, is_begun: false, serves });
        }
    }
    let last = |group: &Group| group.tasks.iter().flat_map(|task| &task.needs).map(after).max();
    groups.sort_by_key(|group| (group.serves.is_empty(), group.serves.first().map(after), last(group)));
    groups
}

/// A range, divided into parts of at most this many.
fn chunks(range: &Range<i64>, most: i64) -> Vec<Range<i64>> {
    let step = usize::try_from(most.max(1)).unwrap_or(usize::MAX);
    let end = range.end;
    range.clone().step_by(step).map(|start| start..end.min(start.saturating_add(step as i64))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Task, chunks, groups, ranges};
    use crate::{Exchange, Mesh, ShardedLayout};

    #[test]
    fn ranges_end_where_marks_change() {
        let marks = [[true, true, false, false, false], [false, false, false, true, true]];
        assert_eq!(ranges(5, marks.iter().map(|marks| marks.as_slice())), [0..2, 2..3, 3..5]);
        assert_eq!(ranges(3, std::iter::empty()).first(), Some(&(0..3)));
        assert_eq!(chunks(&(2..9), 3), [2..5, 5..8, 8..9]);
    }

    #[test]
    fn own_factors_are_first_and_the_depth_is_cut_where_it_comes_in_parts() {
        let mesh: Mesh = "x=3".parse().unwrap();
        let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
        // Columns of A come from three devices; B is local.
        let gather = Exchange::new(&parse("(4,(2,3)):(1,(4,1@x))"), &parse("(4,6):(1,4) copied 3:1@x")).unwrap();
        let groups = groups(1, 3, [4, 5, 6], [&gather.messages_to(1), &[]], &[]);
        let [group] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((group.rows.clone(), group.columns.clone(), group.serves.len()), (0..4, 0..5, 0));
        let task = |depth, needs: &[usize]| Task { depth, needs: needs.to_vec() };
        assert_eq!(group.tasks, [task(2..4, &[]), task(4..6, &[2]), task(0..2, &[0])]);
    }
}
