//! The places where diverged lanes reconverge: immediate post-dominators of branches.
//!
//! Law: all paths from a branch to an exit pass through its join, and the join is the first such
//! place. In an entry, paths into a block that only exits are ignored if another path also leads to
//! the exit: exited lanes are not waited for. The work is bounded. A function that exceeds the
//! bound has no joins, which changes no result: lanes then reconverge only where instructions
//! require it.

use super::code::{AT_RETURN, FunctionCode, Micro, NOWHERE, Op};

/// The most steps of the search for joins in a function.
const MAX_STEPS: u64 = 200_000_000;

const NONE: usize = usize::MAX;

/// Sets the joins of all branches.
pub(super) fn join(code: &mut FunctionCode, is_entry: bool) {
    let ops = &code.ops;
    let count = ops.len();
    if count == 0 {
        return;
    }
    let mut leader = vec![false; count + 1];
    leader[0] = true;
    for (at, micro) in ops.iter().enumerate() {
        for target in targets(&micro.op) {
            leader[*target as usize] = true;
        }
        if ends(&micro.op) {
            leader[at + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..count).filter(|at| leader[*at]).collect();
    let mut block_of = vec![0; count + 1];
    for (block, start) in starts.iter().enumerate() {
        let end = starts.get(block + 1).copied().unwrap_or(count);
        block_of[*start..end].fill(block);
    }
    let exit = starts.len();
    let leaves = |block: usize| {
        let end = starts.get(block + 1).copied().unwrap_or(count);
        let own = &ops[starts[block]..end];
        let last = own.last().map(|micro| &micro.op);
        own.iter().all(|micro| matches!(micro.op, Op::Nothing | Op::Return | Op::Exit | Op::Trap))
            && match last {
                Some(Op::Return) => is_entry,
                Some(Op::Exit | Op::Trap) => true,
                _ => false,
            }
    };
    let mut successors: Vec<Vec<usize>> = Vec::with_capacity(exit + 1);
    let mut dropped: Vec<Vec<usize>> = Vec::with_capacity(exit);
    for (block, _) in starts.iter().enumerate() {
        let end = starts.get(block + 1).copied().unwrap_or(count);
        let last = &ops[end - 1];
        let is_sure = last.guard == super::code::Truth::Constant(true);
        let mut next: Vec<usize> = targets(&last.op).iter().map(|target| block_of[*target as usize]).collect();
        let falls = !is_sure || !ends(&last.op);
        if falls {
            next.push(if end < count { block + 1 } else { exit });
        } else if matches!(last.op, Op::Return | Op::Exit | Op::Trap) {
            next.push(exit);
        }
        let mut left = Vec::new();
        if next.len() > 1 {
            let (kept, gone): (Vec<usize>, Vec<usize>) =
                next.iter().copied().partition(|to| *to == exit || !leaves(*to));
            if !kept.is_empty() {
                (next, left) = (kept, gone);
            }
        }
        next.sort_unstable();
        next.dedup();
        successors.push(next);
        dropped.push(left);
    }
    successors.push(Vec::new());
    keep_ways_out(&mut successors, &dropped, exit);
    let Some(above) = post_dominators(&successors, exit) else { return };
    let joins: Vec<u32> = (0..exit)
        .map(|block| match above[block] {
            NONE => NOWHERE,
            found if found == exit && is_entry => NOWHERE,
            found if found == exit => AT_RETURN,
            found => starts[found] as u32,
        })
        .collect();
    for (at, Micro { op, .. }) in code.ops.iter_mut().enumerate() {
        if let Op::Branch { join, .. } | Op::BranchIndexed { join, .. } = op {
            *join = joins[block_of[at]];
        }
    }
}

/// Restores dropped edges, from the last block on, until the exit can be reached from each block.
/// That is necessary because after the last loop of a kernel there may be nothing but the exit.
fn keep_ways_out(successors: &mut [Vec<usize>], dropped: &[Vec<usize>], exit: usize) {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (from, next) in successors.iter().enumerate() {
        next.iter().for_each(|to| predecessors[*to].push(from));
    }
    let mut reaches = vec![false; successors.len()];
    spread(&mut reaches, &predecessors, exit);
    for block in (0..exit).rev() {
        if !reaches[block] && !dropped[block].is_empty() {
            successors[block].extend(&dropped[block]);
            spread(&mut reaches, &predecessors, block);
        }
    }
}

/// Marks a block and all blocks from which it can be reached.
fn spread(reaches: &mut [bool], predecessors: &[Vec<usize>], from: usize) {
    let mut stack = vec![from];
    while let Some(block) = stack.pop() {
        if !std::mem::replace(&mut reaches[block], true) {
            stack.extend(&predecessors[block]);
        }
    }
}

fn targets(op: &Op) -> &[u32] {
    match op {
        Op::Branch { target, .. } => std::slice::from_ref(target),
        Op::BranchIndexed { targets, .. } => targets,
        _ => &[],
    }
}

fn ends(op: &Op) -> bool {
    matches!(op, Op::Branch { .. } | Op::BranchIndexed { .. } | Op::Return | Op::Exit | Op::Trap)
}

/// For each block, its immediate post-dominator: the nearest block through which all its paths to
/// the exit pass.
fn post_dominators(successors: &[Vec<usize>], exit: usize) -> Option<Vec<usize>> {
    let count = successors.len();
    let mut predecessors = vec![Vec::new(); count];
    for (from, next) in successors.iter().enumerate() {
        for to in next {
            predecessors[*to].push(from);
        }
    }
    // Numbers the blocks in the order in which a depth-first walk backwards from the exit finishes
    // them.
    let mut number = vec![NONE; count];
    let mut order = Vec::new();
    let mut seen = vec![false; count];
    seen[exit] = true;
    let mut stack = vec![(exit, 0)];
    while let Some((block, next)) = stack.last_mut() {
        match predecessors[*block].get(*next) {
            Some(before) => {
                *next += 1;
                if !seen[*before] {
                    seen[*before] = true;
                    stack.push((*before, 0));
                }
            }
            None => {
                number[*block] = order.len();
                order.push(*block);
                stack.pop();
            }
        }
    }
    let mut above = vec![NONE; count];
    above[exit] = exit;
    let mut steps = 0;
    loop {
        let mut is_changed = false;
        for block in order.iter().rev().copied().filter(|block| *block != exit) {
            let mut found = NONE;
            for next in successors[block].iter().copied().filter(|next| above[*next] != NONE) {
                if found == NONE {
                    found = next;
                    continue;
                }
                let (mut a, mut b) = (found, next);
                while a != b {
                    steps += 1;
                    if number[a] < number[b] {
                        a = above[a];
                    } else {
                        b = above[b];
                    }
                }
                found = a;
            }
            steps += 1;
            if steps > MAX_STEPS {
                return None;
            }
            if above[block] != found {
                above[block] = found;
                is_changed = true;
            }
        }
        if !is_changed {
            return Some(above);
        }
    }
}
