//! 20,000 random meshes and pairs of layouts, carried out on simulated devices and compared with
//! the definition: the value of an element is the sum of its summands, for each copy.
//!
//! The oracle knows a layout as a list of modes that the generator made; the library reads it from
//! its text. They share no code.

use crate::oracle;

use std::collections::{BTreeMap, BTreeSet};

use oracle::{Axes, Oracle, Random, random_layout, random_mesh};
use tilewright_mesh::{Machine, Mesh, ShardedLayout, StepKind, reshard};

const CASES: usize = 20_000;
const POISON: i64 = -1_000_003;
const BYTES: i64 = 4;

#[test]
fn plans_do_what_the_definition_says() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for case in 1..=CASES {
        let (mesh, axes) = random_mesh(&mut random, 24);
        let sizes: Vec<i64> = (0..1 + random.below(3)).map(|_| [1, 2, 3, 4, 6, 8, 12][random.below(7)]).collect();
        let [from, to] = [(); 2].map(|()| random_layout(&mut random, &axes, &sizes));
        check(case, &mesh, &axes, &from, &to, &mut random, &mut kinds);
    }
    // Every kind of step came up.
    let all = [
        StepKind::Nothing,
        StepKind::Relayout,
        StepKind::Slice,
        StepKind::AllGather,
        StepKind::Gather,
        StepKind::Broadcast,
        StepKind::Scatter,
        StepKind::AllToAll,
        StepKind::PointToPoint,
        StepKind::ReduceScatter,
        StepKind::AllReduce,
        StepKind::Reduce,
        StepKind::Exchange,
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
    let size = from.size();
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
    // Memory of before, with random summands.
    let values: Vec<i64> = (0..size).map(|_| random.below(1000) as i64).collect();
    let memory = from.filled(axes, a.reach(), &values, POISON, random);
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
