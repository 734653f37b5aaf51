//! Law: a static layout has the value of the run-time layout with the same shape and strides, at
//! every index and coordinate, inside the domain and outside, and none exactly where that layout
//! refuses. Both are compared with the definition in 128 bits.

use crate::random::Random;
use tilewright_layout::{Composed, Layout, Leaf, StaticComposed, StaticLayout, StaticTiler, Swizzle, Tiler, Tree};

/// What `layout!` computes from a layout, at run time.
fn parts(layout: &Layout) -> (&'static [Leaf], &'static [u16], &'static [u16]) {
    let modes = layout.modes().enumerate().flat_map(|(mode, part)| vec![mode as u16; part.leaves().len()]);
    let modes: Vec<u16> = modes.collect();
    (layout.leaves().to_vec().leak(), modes.leak(), layout.profile().nodes().to_vec().leak())
}

fn fixed(layout: &Layout) -> Option<StaticLayout> {
    let (leaves, modes, nodes) = parts(layout);
    StaticLayout::new(leaves, modes, nodes)
}

/// The value at an index of one mode, by definition.
fn value(leaves: &[Leaf], index: i64) -> Option<i64> {
    let Some((last, front)) = leaves.split_last() else { return (index == 0).then_some(0) };
    let (mut rest, mut sum) = (i128::from(index), 0_i128);
    for leaf in front {
        sum += rest % i128::from(leaf.extent) * i128::from(leaf.stride);
        rest /= i128::from(leaf.extent);
    }
    let last = i64::try_from(rest * i128::from(last.stride)).ok()?;
    i64::try_from(sum + i128::from(last)).ok()
}

fn value_at(layout: &Layout, coord: &[i64]) -> Option<i64> {
    let mut sum = 0_i64;
    for (mode, index) in layout.modes().zip(coord) {
        sum = sum.checked_add(value(mode.leaves(), *index)?)?;
    }
    Some(sum)
}

/// The static layout at a coordinate of any rank up to 4.
fn at(layout: &StaticLayout, coord: &[i64]) -> Option<i64> {
    match *coord {
        [] => layout.eval_at([]),
        [a] => layout.eval_at([a]),
        [a, b] => layout.eval_at([a, b]),
        [a, b, c] => layout.eval_at([a, b, c]),
        [a, b, c, d] => layout.eval_at([a, b, c, d]),
        _ => panic!("rank {}", coord.len()),
    }
}

/// Compares at the indices, and at the coordinates of those indices in each mode.
fn check(layout: &Layout, indices: impl Iterator<Item = i64> + Clone) -> usize {
    let fixed = fixed(layout).unwrap_or_else(|| panic!("{layout}"));
    assert_eq!(fixed.to_layout(), *layout);
    assert_eq!(fixed.to_string(), layout.to_string());
    assert_eq!((fixed.shape(), fixed.stride()), (layout.shape(), layout.stride()));
    assert_eq!((fixed.size(), fixed.rank()), (layout.size(), layout.rank()));
    assert_eq!((Ok(fixed.range()), Ok(fixed.cosize())), (layout.range(), layout.cosize()));
    let mut compared = 0;
    for index in indices.clone() {
        let expected = value(layout.leaves(), index);
        assert_eq!(fixed.eval(index), expected, "{layout} at {index}");
        assert_eq!(layout.eval(&index).ok(), expected, "{layout} at {index}");
        compared += 1;
    }
    if layout.rank() > 4 {
        return compared;
    }
    let some: Vec<i64> = indices.collect();
    for shift in 0..some.len() {
        let coord: Vec<i64> = (0..layout.rank()).map(|mode| some[(shift + 7 * mode) % some.len()]).collect();
        let expected = value_at(layout, &coord);
        assert_eq!(at(&fixed, &coord), expected, "{layout} at {coord:?}");
        let tree = Tree::flat(coord.iter().copied()).unwrap();
        if layout.profile().is_leaf() {
            assert_eq!(layout.eval(&coord[0]).ok(), expected, "{layout} at {coord:?}");
        } else {
            assert_eq!(layout.eval_at(&tree).ok(), expected, "{layout} at {coord:?}");
        }
        assert_eq!(fixed.eval_at([0; 5]), None, "{layout} has not rank 5");
        compared += 1;
    }
    compared
}

#[test]
fn every_small_layout_of_two_leaves_in_every_nesting() {
    let mut compared = 0;
    for (a, b) in (1..=5).flat_map(|a| (1..=4).map(move |b| (a, b))) {
        for (d, e) in (-2..=5).flat_map(|d| (-3..=6).map(move |e| (d, e))) {
            for text in [
                format!("({a},{b}):({d},{e})"),
                format!("(({a},{b})):(({d},{e}))"),
                format!("(({a}),{b}):(({d}),{e})"),
                format!("((),{a},({b},())):((),{d},({e},()))"),
            ] {
                compared += check(&text.parse().unwrap(), -2 * a * b - 2..=3 * a * b + 2);
            }
        }
    }
    assert!(compared > 300_000, "{compared}");
}

#[test]
fn layouts_without_leaves_and_with_one() {
    for text in ["():()", "(()):(())", "((),(())):((),(()))", "7:-3", "(7):(3)", "1:5", "((3)):((2))"] {
        check(&text.parse().unwrap(), -30..=30);
    }
}

/// A random nesting of the leaves, with at most `rank` modes at the top.
fn nest(random: &mut Random, leaves: &[Leaf], depth: usize) -> Tree<Leaf> {
    if leaves.len() == 1 && (depth == 0 || random.below(2) == 0) {
        return Tree::leaf(leaves[0]);
    }
    if depth == 0 {
        return Tree::flat(leaves.iter().copied()).unwrap();
    }
    let mut modes = Vec::new();
    let mut rest = leaves;
    while !rest.is_empty() && modes.len() < 3 {
        let (mode, tail) = rest.split_at(1 + random.below(rest.len() as i64) as usize);
        modes.push(nest(random, mode, depth - 1));
        rest = tail;
    }
    if !rest.is_empty() {
        modes.push(nest(random, rest, depth - 1));
    }
    Tree::tuple(modes.iter()).unwrap()
}

#[test]
fn random_nested_layouts_at_every_index_and_at_extreme_ones() {
    let mut random = Random(11);
    let extreme = [i64::MIN, i64::MIN + 1, -(1 << 40), 1 << 40, i64::MAX - 1, i64::MAX];
    let (mut compared, mut longest) = (0, 0);
    for _ in 0..1_500 {
        let count = 1 + random.below(20);
        let mut leaves = Vec::new();
        let mut size = 1;
        for _ in 0..count {
            let extent = 1 + random.below(if size > 300 { 2 } else { 7 });
            let extent = if size * extent > 2_000 { 1 } else { extent };
            size *= extent;
            let stride = if random.below(5) == 0 { random.below(1 << 40) - (1 << 39) } else { random.below(40) - 8 };
            leaves.push(Leaf { extent, stride });
        }
        longest = longest.max(leaves.len());
        let layout = Layout::from_tree(nest(&mut random, &leaves, 3)).unwrap();
        compared += check(&layout, (-40..size + 40).chain(extreme));
    }
    assert!(compared > 200_000 && longest > StaticLayout::UNROLLED, "{compared} {longest}");
}

#[test]
fn what_is_not_representable_has_no_value() {
    let layout: Layout = "(4,2):(1,3000000000000000000)".parse().unwrap();
    let fixed = fixed(&layout).unwrap();
    assert_eq!(fixed.eval(15), Some(9_000_000_000_000_000_003));
    assert_eq!(fixed.eval(16), None);
    assert_eq!(fixed.eval(-15), Some(-9_000_000_000_000_000_003));
    assert_eq!(fixed.eval_at([3, 3]), Some(9_000_000_000_000_000_003));
    assert_eq!(fixed.eval_at([i64::MAX, 3]), None);
}

/// `S<b,m,s>` by definition, in 128 bits: the bits from `m` or, below zero, from `m - s` on are
/// flipped, each by the one `s` above.
fn swizzled(bits: i64, base: i64, shift: i64, offset: i64) -> i64 {
    let (value, mut out) = (i128::from(offset), i128::from(offset));
    for bit in 0..bits {
        let into = base + bit - shift.min(0);
        out ^= (value >> (into + shift) & 1) << into;
    }
    i64::try_from(out).unwrap()
}

#[test]
fn a_swizzled_layout_is_the_run_time_one_at_every_index() {
    let extreme = [i64::MIN, -(1 << 40), 1 << 40, i64::MAX - 1, i64::MAX];
    let mut compared = 0;
    for text in ["(8,16):(16,1)", "((2,3),(4,5)):((1,70),(2,-9))", "(5,7):(9,1)", "12:3", "():()"] {
        let layout: Layout = text.parse().unwrap();
        let inner = fixed(&layout).unwrap();
        for (bits, base, shift) in [(3, 4, 3), (2, 0, 3), (2, 1, -2), (0, 0, 0), (1, 5, 2), (3, 0, -4)] {
            for offset in [0, 5, -3, i64::MAX - 1_000] {
                let swizzle = Swizzle::new(bits, base, shift).unwrap();
                let map = StaticComposed::new(swizzle, offset, inner).unwrap();
                let same = Composed::new(swizzle, offset, layout.clone()).unwrap();
                assert_eq!(map.to_composed(), same);
                assert_eq!((map.to_string(), map.size(), map.rank()), (same.to_string(), same.size(), same.rank()));
                for index in (-200..=400).chain(extreme) {
                    let before = value(layout.leaves(), index).and_then(|value| value.checked_add(offset));
                    let expected = before.map(|value| swizzled(bits, base, shift, value));
                    assert_eq!(map.eval(index), expected, "{map} at {index}");
                    assert_eq!(same.eval(&index).ok(), expected, "{map} at {index}");
                    let expected = map.inner().eval_at([index, 1]).and_then(|value| value.checked_add(offset));
                    let expected = expected.map(|value| swizzled(bits, base, shift, value));
                    assert_eq!(map.eval_at([index, 1]), expected, "{map} at ({index},1)");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50_000, "{compared}");
    let reach = fixed(&"4:1".parse().unwrap()).unwrap();
    let identity = Swizzle::new(0, 0, 0).unwrap();
    assert!(StaticComposed::new(identity, i64::MAX - 3, reach).is_some());
    assert!(StaticComposed::new(identity, i64::MAX - 2, reach).is_none());
    let back = fixed(&"4:-1".parse().unwrap()).unwrap();
    assert!(StaticComposed::new(identity, i64::MIN + 3, back).is_some());
    assert!(StaticComposed::new(identity, i64::MIN + 2, back).is_none());
}

#[test]
fn construction_refuses_what_has_no_meaning() {
    const LEAF: Leaf = Leaf { extent: 2, stride: 1 };
    let with = |extent, stride| StaticLayout::new(vec![Leaf { extent, stride }].leak(), &[0], &[0]);
    assert!(with(2, 1).is_some());
    assert!(with(0, 1).is_none() && with(-2, 1).is_none());
    assert!(with(4, i64::MAX / 2).is_none() && with(3, i64::MAX / 2).is_some());
    assert!(with(2, i64::MAX).is_none() && with(2, i64::MAX - 1).is_some());
    assert!(with(2, i64::MIN).is_none() && with(2, i64::MIN + 1).is_some());
    assert!(with(1, i64::MIN).is_some());
    let huge = Leaf { extent: 1 << 32, stride: 0 };
    assert!(StaticLayout::new(vec![huge; 2].leak(), &[0, 1], &[3, 0, 0]).is_none(), "the size");
    // Every list of up to four nodes and up to three modes: accepted exactly where it is a
    // profile's.
    let trees = ["*", "()", "(*)", "((*))", "(())", "(*,*)", "((),*)", "(*,())", "((*),*)", "(((*)))", "((()))"];
    let more = ["((),())", "(*,(*))", "((*,*))", "(*,*,*)", "((),*,*)", "(*,(),*)", "(*,*,())", "((),(),*)"];
    let known: Vec<(Vec<u16>, Vec<u16>)> = (trees.iter().chain(&more))
        .map(|text| {
            let tree = Tree::new(text.parse().unwrap(), vec![LEAF; text.matches('*').count()]).unwrap();
            let (_, modes, nodes) = parts(&Layout::from_tree(tree).unwrap());
            (modes.to_vec(), nodes.to_vec())
        })
        .collect();
    let lists = |longest: u32, values: u32| {
        (0..=longest).flat_map(move |length| {
            (0..values.pow(length)).map(move |number| -> Vec<u16> {
                (0..length).map(|at| (number / values.pow(at) % values) as u16).collect()
            })
        })
    };
    let mut accepted = 0;
    for nodes in lists(3, 5) {
        for modes in lists(3, 3) {
            let fixed = StaticLayout::new(vec![LEAF; modes.len()].leak(), modes.clone().leak(), nodes.clone().leak());
            let expected = known.iter().any(|(m, n)| *m == modes && *n == nodes);
            assert_eq!(fixed.is_some(), expected, "nodes {nodes:?} modes {modes:?}");
            accepted += usize::from(expected);
        }
    }
    assert_eq!(accepted, known.iter().filter(|(_, nodes)| nodes.len() <= 3).count());
    assert!(StaticLayout::new(&[LEAF], &[0, 0], &[0]).is_none(), "more modes than leaves");
    assert!(StaticLayout::new(&[LEAF; 2], &[0], &[0]).is_none(), "more leaves than modes");
}

#[test]
fn nesting_ends_at_the_limit() {
    let nodes =
        |depth: u16| -> Vec<u16> { (0..=depth).map(|at| if at == depth { 0 } else { depth + 1 - at }).collect() };
    for (depth, expected) in [(64, true), (65, false)] {
        let fixed = StaticLayout::new(&[Leaf { extent: 2, stride: 1 }], &[0], nodes(depth).leak());
        assert_eq!(fixed.is_some(), expected, "depth {depth}");
    }
}

#[test]
fn a_static_tiler_is_the_run_time_tiler() {
    let layout = |text: &str| StaticTiler::layout(fixed(&text.parse().unwrap()).unwrap());
    let modes = |items: &[StaticTiler]| StaticTiler::modes(items.to_vec().leak());
    let inner = modes(&[layout("2:1"), StaticTiler::KEEP]).unwrap();
    let outer = modes(&[layout("(4,2):(2,16)"), inner, StaticTiler::KEEP]).unwrap();
    for tiler in [outer, inner, layout("4:2"), StaticTiler::KEEP, modes(&[]).unwrap()] {
        let same: Tiler = tiler.to_string().parse().unwrap();
        assert_eq!(tiler.to_tiler(), same);
        assert_eq!(Tiler::<i64>::from(tiler).to_string(), tiler.to_string());
    }
    let target: Layout = "(32,(8,4),6):(1,(32,512),4096)".parse().unwrap();
    let same: Tiler = outer.to_string().parse().unwrap();
    assert_eq!(target.compose_tiler(&Tiler::<i64>::from(outer)), target.compose_tiler(&same));
    assert!(target.compose_tiler(&Tiler::<i64>::from(outer)).is_ok());
    let mut deep = layout("2:1");
    for depth in 1..=65 {
        match modes(&[deep]) {
            Some(next) => deep = next,
            None => return assert_eq!(depth, 65),
        }
    }
    panic!("nested too deep");
}
