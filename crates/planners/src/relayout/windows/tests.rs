//! Every tile is right, not only the chosen one: random tiles of random layouts are proved to write
//! each element once, executed by the interpreter, and compared with the definition at every index.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, Written};

use super::super::{Limits, Sides};
use super::{kernel, rate};
use crate::axes::Axis;

/// Random numbers (splitmix64) less than `n`.
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % n as u64) as usize
}

/// Axes of these extents, contiguous in the source and in the destination in random orders, with
/// random gaps.
fn axes(extents: &[i64], state: &mut u64) -> Vec<Axis> {
    let mut axes: Vec<Axis> =
        extents.iter().map(|extent| Axis { extent: *extent, source: 0, destination: 0 }).collect();
    for side in 0..2 {
        let mut left: Vec<usize> = (0..axes.len()).collect();
        let mut step = 1;
        while !left.is_empty() {
            let axis = left.swap_remove(below(state, left.len()));
            step += if below(state, 10) == 0 { below(state, 4) as i64 } else { 0 };
            *(if side == 0 { &mut axes[axis].source } else { &mut axes[axis].destination }) = step;
            step *= axes[axis].extent;
        }
    }
    axes.sort_by_key(|axis| axis.destination);
    axes
}

#[test]
fn tiles_by_chance_are_right() {
    let mut state = 5;
    let count = std::env::var("TILEWRIGHT_RELAYOUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let mut done = 0;
    for element in [Element::U8, Element::Bf16, Element::F32, Element::F64].into_iter().cycle() {
        let rank = 2 + below(&mut state, 4);
        let most = [260, 40, 17, 9][rank - 2];
        let extents: Vec<i64> = (0..rank).map(|_| 2 + below(&mut state, most) as i64).collect();
        let axes = axes(&extents, &mut state);
        let bases = if below(&mut state, 3) == 0 { (below(&mut state, 20) as i64, 7) } else { (0, 0) };
        let reach = |base: i64, step: fn(&Axis) -> i64| {
            base + 1 + axes.iter().map(|axis| (axis.extent - 1) * step(axis)).sum::<i64>()
        };
        let reach = (reach(bases.0, |axis| axis.source), reach(bases.1, |axis| axis.destination));
        let (maps, kept, blocks) = ([None; 2], 1 << 30, 1 + 40 * below(&mut state, 2) as i64);
        let limits = Limits { blocks, ..Limits::of(&Machine::named("H200").unwrap()) };
        let sides = Sides { axes, source: element, destination: element, bases, reach, maps, kept, limits };
        let mut tiles = rate::every(&sides);
        if tiles.is_empty() {
            continue;
        }
        let plan = tiles.swap_remove(below(&mut state, tiles.len()));
        let kernel = kernel(&sides, &plan).unwrap_or_else(|error| panic!("{error}: {sides:?} by {plan:?}"));
        let written = &kernel.outputs()[0].written;
        assert_eq!(*written, Written::Once, "{written}: {sides:?} by {plan:?}");
        let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
        let width = element.bytes() as usize;
        let memory: Vec<u8> = (0..interpreter.bytes_of(0).unwrap())
            .map(|at| (at as u64).wrapping_mul(0x9e37_79b9) as u8 ^ 0x5a)
            .collect();
        interpreter.bytes(0, &memory).unwrap();
        let checked = interpreter.check().unwrap_or_else(|error| panic!("{}: {sides:?} by {plan:?}", error[0]));
        let left = checked.run.bytes(1).unwrap();
        let total: i64 = sides.axes.iter().map(|axis| axis.extent).product();
        for index in 0..total {
            let (mut rest, mut from, mut to) = (index, bases.0, bases.1);
            for axis in &sides.axes {
                from += rest % axis.extent * axis.source;
                to += rest % axis.extent * axis.destination;
                rest /= axis.extent;
            }
            let (from, to) = (from as usize * width, to as usize * width);
            assert_eq!(left[to..][..width], memory[from..][..width], "index {index}: {sides:?} by {plan:?}");
        }
        done += 1;
        if done == count {
            break;
        }
    }
}
