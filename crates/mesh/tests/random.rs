//! 20,000 random meshes and pairs of layouts, carried out on simulated devices and compared with
//! the definition: the value of an element is the sum of its summands, for each copy.
//!
//! The oracle knows a layout as a list of modes that the generator made; the library reads it from
//! its text. They share no code.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_mesh::{Kind, Machine, Mesh, ShardedLayout, reshard};

const CASES: usize = 20_000;
const POISON: i64 = -1_000_003;
const BYTES: i64 = 4;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }

    /// Factors of a number, in any order.
    fn factors(&mut self, number: i64) -> Vec<i64> {
        let mut left = number;
        let mut factors = Vec::new();
        for prime in [2, 3, 5] {
            while left % prime == 0 {
                factors.push(prime);
                left /= prime;
            }
        }
        self.shuffle(&mut factors);
        while factors.len() > 1 && self.below(3) > 0 {
            let at = self.below(factors.len() - 1);
            let next = factors.remove(at + 1);
            factors[at] *= next;
        }
        factors
    }
}

/// A mode: extent, axis (none for offsets), step.
type Mode = (i64, Option<usize>, i64);

#[derive(Debug, Clone, Default)]
struct Oracle {
    /// The leaves of each mode of the tensor.
    modes: Vec<Vec<Mode>>,
    copies: Vec<Mode>,
    sums: Vec<Mode>,
    corner: Vec<i64>,
    start: i64,
}

/// The mesh of the oracle: extent and stride in ranks of each axis.
type Axes = Vec<(i64, i64)>;

impl Oracle {
    fn places(&self, axes: &Axes, element: i64) -> Vec<Vec<(i64, i64)>> {
        let mut at = self.corner.clone();
        let mut offset = self.start;
        let mut rest = element;
        for (extent, axis, step) in self.modes.iter().flatten() {
            let index = rest % extent;
            rest /= extent;
            match axis {
                Some(axis) => at[*axis] += index * step,
                None => offset += index * step,
            }
        }
        let walk = |modes: &[Mode], start: &[i64]| {
            let mut all = vec![start.to_vec()];
            for (extent, axis, step) in modes {
                let moved = |at: &Vec<i64>, index: i64| {
                    let mut at = at.clone();
                    at[axis.unwrap()] += index * step;
                    at
                };
                all = (0..*extent)
                    .flat_map(|index| all.iter().map(move |at| moved(at, index)).collect::<Vec<_>>())
                    .collect();
            }
            all
        };
        let rank = |at: &Vec<i64>| at.iter().zip(axes).map(|(at, (_, stride))| at * stride).sum::<i64>();
        let copies = walk(&self.copies, &at);
        copies.iter().map(|at| walk(&self.sums, at).iter().map(|at| (rank(at), offset)).collect()).collect()
    }

    fn text(&self) -> String {
        let list =
            |parts: Vec<String>| if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(",")) };
        let step = |mode: &Mode| mode.1.map_or(mode.2.to_string(), |axis| format!("{}@a{axis}", mode.2));
        let both = |part: &dyn Fn(&Mode) -> String| {
            let modes = self.modes.iter().map(|leaves| list(leaves.iter().map(part).collect()));
            let modes: Vec<String> = modes.collect();
            format!("({})", modes.join(","))
        };
        let mut text = format!("{}:{}", both(&|mode| mode.0.to_string()), both(&step));
        for (word, modes) in [("copied", &self.copies), ("summed", &self.sums)] {
            if !modes.is_empty() {
                let shape = list(modes.iter().map(|mode| mode.0.to_string()).collect());
                text += &format!(" {word} {shape}:{}", list(modes.iter().map(step).collect()));
            }
        }
        let mut corner: Vec<String> = Vec::new();
        corner.extend(self.corner.iter().enumerate().filter(|at| *at.1 > 0).map(|(axis, at)| format!("{at}@a{axis}")));
        corner.extend((self.start > 0).then(|| self.start.to_string()));
        if corner.is_empty() { text } else { format!("{text} at {}", corner.join("+")) }
    }
}

fn random_layout(random: &mut Random, axes: &Axes, sizes: &[i64]) -> Oracle {
    let mut oracle = Oracle { corner: vec![0; axes.len()], ..Oracle::default() };
    for size in sizes {
        let factors = random.factors(*size);
        let leaves = if factors.is_empty() { vec![1] } else { factors };
        oracle.modes.push(leaves.into_iter().map(|extent| (extent, None, 0)).collect());
    }
    for (axis, (extent, _)) in axes.iter().enumerate() {
        let mut step = 1;
        for factor in random.factors(*extent) {
            let digit = (factor, Some(axis), step);
            let fits = |mode: &&mut Mode| mode.0 == factor && mode.1.is_none();
            let free: Vec<&mut Mode> = oracle.modes.iter_mut().flatten().filter(fits).collect();
            match random.below(if free.is_empty() { 5 } else { 12 }) {
                0 => oracle.corner[axis] += step * random.below(factor as usize) as i64,
                1 | 2 => oracle.copies.push(digit),
                3 => oracle.sums.push(digit),
                _ if free.is_empty() => oracle.copies.push(digit),
                _ => {
                    let count = free.len();
                    *free.into_iter().nth(random.below(count)).unwrap() = digit;
                }
            }
            step *= factor;
        }
    }
    let mut local: Vec<&mut Mode> = oracle.modes.iter_mut().flatten().filter(|mode| mode.1.is_none()).collect();
    random.shuffle(&mut local);
    let mut stride = 1 + (random.below(8) == 0) as i64;
    for mode in local {
        mode.2 = stride;
        stride *= mode.0;
        stride += (random.below(6) == 0) as i64;
    }
    oracle.start = if random.below(6) == 0 { random.below(4) as i64 } else { 0 };
    oracle
}

#[test]
fn plans_do_what_the_definition_says() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut case = 0;
    while case < CASES {
        let extents: Vec<i64> = (0..1 + random.below(3)).map(|_| [1, 2, 2, 3, 4, 6][random.below(6)]).collect();
        if extents.iter().product::<i64>() > 24 {
            continue;
        }
        case += 1;
        let mut order: Vec<usize> = (0..extents.len()).collect();
        random.shuffle(&mut order);
        let mut axes: Axes = extents.iter().map(|extent| (*extent, 0)).collect();
        let mut stride = 1;
        for axis in order {
            axes[axis].1 = stride;
            stride *= axes[axis].0;
        }
        let names = axes.iter().enumerate().map(|(at, (extent, stride))| format!("a{at}={extent}:{stride}"));
        let mesh: Mesh = names.collect::<Vec<_>>().join(",").parse().unwrap();
        let sizes: Vec<i64> = (0..1 + random.below(3)).map(|_| [1, 2, 3, 4, 6, 8, 12][random.below(7)]).collect();
        let [from, to] = [(); 2].map(|()| random_layout(&mut random, &axes, &sizes));
        check(case, &mesh, &axes, &from, &to, &mut random, &mut kinds);
    }
    // Every kind of step came up.
    let all = [
        Kind::Nothing,
        Kind::Relayout,
        Kind::Slice,
        Kind::AllGather,
        Kind::Gather,
        Kind::Broadcast,
        Kind::Scatter,
        Kind::AllToAll,
        Kind::PointToPoint,
        Kind::ReduceScatter,
        Kind::AllReduce,
        Kind::Reduce,
        Kind::Exchange,
    ];
    for kind in all {
        assert!(kinds.contains_key(&kind.to_string()), "{kind} never: {kinds:?}");
    }
}

fn check(
    case: usize,
    mesh: &Mesh,
    axes: &Axes,
    from: &Oracle,
    to: &Oracle,
    random: &mut Random,
    kinds: &mut BTreeMap<String, usize>,
) {
    let [a, b] = [from, to].map(|oracle| {
        let layout = ShardedLayout::parse(mesh, &oracle.text());
        let layout = layout.unwrap_or_else(|error| panic!("case {case}: {} over {mesh}: {error}", oracle.text()));
        let again = ShardedLayout::parse(mesh, &layout.to_string());
        assert_eq!(again.as_ref(), Ok(&layout), "case {case}: {layout}");
        layout
    });
    let told = || format!("case {case}, {mesh}:\n{a}\n{b}");
    // Who holds what.
    let size: i64 = from.modes.iter().flatten().map(|mode| mode.0).product();
    let mut held = [(); 2].map(|()| vec![BTreeSet::new(); mesh.size()]);
    for ((oracle, layout), held) in [(from, &a), (to, &b)].into_iter().zip(&mut held) {
        let mut taken = BTreeSet::new();
        for element in 0..size {
            let mut places: Vec<_> = oracle.places(axes, element).concat();
            assert_eq!(places.len() as i64, layout.copies() * layout.sums());
            let mut found: Vec<_> = layout.places(element).unwrap();
            for (rank, offset) in &places {
                assert!(taken.insert((*rank, *offset)), "{}", told());
                held[*rank as usize].insert(element);
            }
            places.sort_unstable();
            found.sort_unstable();
            assert_eq!(found.iter().map(|(rank, at)| (*rank as i64, *at)).collect::<Vec<_>>(), places, "{}", told());
        }
    }
    // Memory of before, with summands by chance.
    let mut memory = vec![vec![POISON; a.reach() as usize]; mesh.size()];
    let mut values = Vec::new();
    for element in 0..size {
        let value = random.below(1000) as i64;
        values.push(value);
        let places = from.places(axes, element);
        let summands: Vec<i64> = (1..a.sums()).map(|_| random.below(1000) as i64 - 500).collect();
        let first = value - summands.iter().sum::<i64>();
        for copy in places {
            for ((rank, offset), summand) in copy.iter().zip([&[first], summands.as_slice()].concat()) {
                memory[*rank as usize][*offset as usize] = summand;
            }
        }
    }
    let plan = reshard(&a, &b, BYTES, &Machine::HGX_H200).unwrap_or_else(|error| panic!("{error}\n{}", told()));
    let after = plan.simulate(&memory).unwrap();
    let mut places = vec![BTreeSet::new(); mesh.size()];
    for (element, value) in values.iter().enumerate() {
        for copy in to.places(axes, element as i64) {
            let summands = copy.iter().map(|(rank, offset)| after[*rank as usize][*offset as usize]);
            assert_eq!(summands.sum::<i64>(), *value, "element {element}, {}\n{plan}", told());
            copy.iter().for_each(|(rank, offset)| assert!(places[*rank as usize].insert(*offset as usize)));
        }
    }
    for (rank, memory) in after.iter().enumerate() {
        let other = memory.iter().enumerate().filter(|(at, _)| !places[rank].contains(at));
        assert!(other.into_iter().all(|(_, element)| *element == 0), "{}", told());
    }
    // What had to be received, and what was.
    let [before, after] = &held;
    for (rank, (before, after)) in before.iter().zip(after).enumerate() {
        assert!(plan.received(rank) >= plan.least(rank), "{}", told());
        if a.sums() == 1 && b.sums() == 1 {
            let missing = after.difference(before).count() as i64;
            assert_eq!(plan.least(rank), missing * BYTES, "rank {rank}, {}", told());
        }
    }
    let more = (0..mesh.size()).any(|rank| plan.received(rank) > plan.least(rank));
    assert_eq!(plan.why_more().is_some(), more, "{}", told());
    for step in plan.steps() {
        *kinds.entry(step.kind.to_string()).or_default() += 1;
    }
}
