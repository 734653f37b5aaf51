//! What is said of a layout known at launch, at many admissible values.
//!
//! Predicates, recasts, common vectors and common domains (`common.rs`) are asked of layouts of
//! expressions, and of the layouts that many values give. An answer agrees with all of them. Where
//! the question is refused, a fact that is named settles it; and how often one is refused that has
//! the same answer for all tried values is counted and limited.

mod common;

use std::collections::BTreeMap;

use crate::random::Random;
use tilewright_layout::symbolic::{Declarations, Expr, Symbolic, Values};
use tilewright_layout::{
    Composed, Coordinate, Extent, Layout, LayoutError, Leaf, ModePath, Swizzle, Tree, Truth, make_layout_tv,
};

const FACTS: &str = "M{div=8},K,N{min=2},L{div=16,max=64},S{min=1},B{max=2}";

/// Values that the facts admit, the least first.
const TRIED: [(&str, &[i64]); 6] = [
    ("M", &[8, 16, 24, 40, 64]),
    ("K", &[1, 2, 3, 4, 5, 8]),
    ("N", &[2, 3, 4, 7]),
    ("L", &[16, 32, 48, 64]),
    ("S", &[1, 2, 3, 4, 8, 16, 24]),
    ("B", &[1, 2]),
];

fn names() -> Declarations {
    let mut names = Declarations::new();
    names.gather(FACTS).unwrap();
    names
}

/// Values for all parameters: all least, then at random.
fn samples(random: &mut Random) -> Vec<Values> {
    (0..24)
        .map(|place| {
            let mut values = Values::new();
            for (name, tried) in TRIED {
                let choice = if place == 0 { 0 } else { random.below(tried.len() as i64) };
                values.set_named(name, tried[choice as usize]);
            }
            values
        })
        .collect()
}

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as i64) as usize]
}

const EXTENTS: [&str; 14] = ["1", "2", "4", "8", "M", "K", "N", "M/8", "2*K", "B", "L/16", "3", "K+1", "M*K"];

/// A layout of up to three modes: compact in some order, or nearly so, or of any strides.
fn random_text(random: &mut Random) -> String {
    let rank = 1 + random.below(3) as usize;
    let extents: Vec<&str> = (0..rank).map(|_| pick(random, &EXTENTS)).collect();
    let mut strides = vec![String::new(); rank];
    if random.below(3) > 0 {
        let mut order: Vec<usize> = (0..rank).collect();
        order.rotate_left(random.below(rank as i64) as usize);
        let mut step = pick(random, &["1", "1", "1", "2", "K", "-1"]).to_string();
        for mode in order {
            strides[mode] = step.clone();
            step = format!("1*({step})*({})", extents[mode]);
            step = match random.below(8) {
                0 => format!("8+{step}"),
                1 => format!("2*{step}"),
                2 => "0".to_string(),
                _ => step,
            };
        }
    } else {
        for stride in &mut strides {
            *stride =
                pick(random, &["0", "1", "2", "3", "4", "8", "M", "K", "N", "S", "8*S", "M*K", "-1", "L"]).to_string();
        }
    }
    format!("({}):({})", extents.join(","), strides.join(","))
}

/// How questions of one kind were answered.
#[derive(Default, Debug)]
struct Count {
    answered: u32,
    /// Refused, and the answers differ.
    varied: u32,
    /// Refused, and the tried values have one answer.
    missed: u32,
    settled: u32,
}

type Predicate =
    (&'static str, fn(&Layout<Expr>) -> Result<bool, LayoutError>, fn(&Layout) -> Result<bool, LayoutError>);

const PREDICATES: [Predicate; 6] = [
    ("is_injective", |a| a.is_injective(), |a| a.is_injective()),
    ("is_surjective", |a| a.is_surjective(), |a| Ok(a.is_surjective())),
    ("is_bijective", |a| a.is_bijective(), |a| Ok(a.is_bijective())),
    ("is_contiguous", |a| a.is_contiguous(), |a| Ok(a.is_contiguous())),
    ("is_ordered", |a| a.is_ordered(), |a| Ok(a.is_ordered())),
    ("is_tractable", |a| a.is_tractable(), |a| Ok(a.is_tractable())),
];

/// Asserts that a question with a declaration is not asked again once that is given.
fn settles(text: &str, error: &LayoutError, again: impl FnOnce(&Layout<Expr>) -> Option<LayoutError>) -> bool {
    let LayoutError::Open { question, .. } = error else { panic!("{text}: {error}") };
    let Some(declaration) = &question.declaration else { return false };
    let mut names = names();
    names.declare(declaration.name().unwrap(), declaration.facts()).unwrap();
    let layout = names.layout(text).unwrap();
    assert_ne!(again(&layout).map(|error| error.to_string()), Some(error.to_string()), "{text}");
    true
}

#[test]
fn predicates_hold_for_every_value_or_ask() {
    let (names, mut random) = (names(), Random(5));
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for _ in 0..1_500 {
        let text = random_text(&mut random);
        let layout = names.layout(&text).unwrap();
        let samples: Vec<Layout> = samples(&mut random).iter().map(|values| layout.numbers(values).unwrap()).collect();
        for (name, symbolic, plain) in PREDICATES {
            let count = counts.entry(name).or_default();
            let answers: Vec<bool> = samples.iter().map(|numbers| plain(numbers).unwrap()).collect();
            match symbolic(&layout) {
                Ok(answer) => {
                    count.answered += 1;
                    assert!(answers.iter().all(|own| *own == answer), "{name} {text}: {answer}, {answers:?}");
                }
                Err(error) => {
                    let varied = answers.iter().any(|own| *own != answers[0]);
                    *(if varied { &mut count.varied } else { &mut count.missed }) += 1;
                    count.settled += u32::from(settles(&text, &error, |layout| symbolic(layout).err()));
                }
            }
        }
    }
    for (name, count) in counts {
        println!("{name}: {count:?}");
        assert!(count.answered > 700 && count.missed * 10 < count.answered, "{name}: {count:?}");
    }
}

#[test]
fn equality_is_that_of_every_value_or_open() {
    let (names, mut random) = (names(), Random(12));
    let mut counts = [0; 3];
    for _ in 0..2_000 {
        let a = random_text(&mut random);
        let (shape, strides) = a.split_once(':').unwrap();
        let b = match random.below(4) {
            0 => random_text(&mut random),
            1 => format!("{shape}:{}", strides.replace("8+", "16+")),
            2 => format!("({shape},1):({strides},K)"),
            _ => names.layout(&a).unwrap().coalesce().unwrap().to_string(),
        };
        let (x, y) = (names.layout(&a).unwrap(), names.layout(&b).unwrap());
        let answer = x.same_function(&y);
        for values in samples(&mut random) {
            let same = x.numbers(&values).unwrap().equivalent(&y.numbers(&values).unwrap());
            assert!(!answer.proved() || same, "{a} and {b}");
            assert!(!answer.refuted() || !same, "{a} and {b}");
        }
        counts[match answer {
            Truth::Proved => 0,
            Truth::Refuted => 1,
            Truth::Open => 2,
        }] += 1;
    }
    println!("{counts:?} proved, refuted, open");
    assert!(counts[0] > 600 && counts[1] > 300);
}

/// The offsets of the elements of a flat layout, natural coordinates in order.
fn offsets(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect()
}

/// Asserts the law of widening by `n`: every wide element is made of a box of elements.
fn packs(narrow: &Layout, wide: &Layout, n: i64) {
    assert_eq!(narrow.size(), wide.size() * n, "{narrow} by {n} = {wide}");
    let f: Vec<i64> = narrow.leaves().iter().zip(wide.leaves()).map(|(a, b)| a.extent / b.extent).collect();
    let mut covered: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for index in 0..narrow.size() {
        let (mut rest, mut at, mut step, mut value) = (index, 0, 1, 0);
        for ((leaf, wider), f) in narrow.leaves().iter().zip(wide.leaves()).zip(&f) {
            let digit = rest % leaf.extent;
            rest /= leaf.extent;
            at += digit / f * step;
            step *= wider.extent;
            value += digit * leaf.stride;
        }
        covered.entry(at).or_default().push(value);
    }
    for (at, mut elements) in covered {
        elements.sort_unstable();
        let first = wide.eval(&at).unwrap() * n;
        assert!(elements.into_iter().eq(first..first + n), "{narrow} by {n} = {wide} at {at}");
    }
}

#[test]
fn recasts_are_exact_at_every_value() {
    let (names, mut random) = (names(), Random(6));
    let (mut widened, mut asked, mut missed, mut narrowed, mut alike) = (0, 0, 0, 0, 0);
    for _ in 0..1_500 {
        let text = random_text(&mut random);
        let layout = names.layout(&text).unwrap();
        let samples: Vec<(Values, Layout)> = samples(&mut random)
            .into_iter()
            .map(|values| (values.clone(), layout.numbers(&values).unwrap()))
            .filter(|(_, numbers)| numbers.size() <= 4_000)
            .collect();
        let n = [2, 3, 4, 8][random.below(4) as usize];
        match layout.recast(n, 1) {
            Ok(wide) => {
                widened += 1;
                for (values, numbers) in &samples {
                    packs(numbers, &wide.numbers(values).unwrap(), n);
                }
                assert_eq!(layout.recast(8 * n, 8).unwrap(), wide);
            }
            Err(error) => {
                if matches!(error, LayoutError::Open { .. }) {
                    asked += 1;
                    settles(&text, &error, |layout| layout.recast(n, 1).err());
                }
                missed += u32::from(samples.iter().all(|(_, numbers)| numbers.recast(n, 1).is_ok()));
            }
        }
        let narrow = layout.recast(1, n).unwrap();
        narrowed += 1;
        for (values, numbers) in &samples {
            // The profile is that of the values, unless they make an extent 1, or a stride 0 or 1.
            let special = |leaf: &Leaf<i64>| leaf.extent == 1 || matches!(leaf.stride, 0 | 1);
            let named = layout
                .leaves()
                .iter()
                .zip(numbers.leaves())
                .filter(|(leaf, _)| leaf.extent.known().is_none() || leaf.stride.known().is_none());
            if !named.map(|(_, numbers)| numbers).any(special) {
                let again = numbers.recast(1, n).unwrap();
                assert_eq!(narrow.numbers(values).unwrap(), again, "{text} by 1/{n} = {narrow}");
                alike += 1;
            }
            // Put together again, the parts are the elements.
            let parts = narrow.numbers(values).unwrap();
            let whole = parts.recast(n, 1).unwrap_or_else(|error| panic!("{text} by 1/{n} = {narrow}: {error}"));
            assert_eq!(offsets(&whole), offsets(numbers), "{text} by 1/{n} = {narrow}");
        }
        for (symbolic, plain) in
            [(layout.upcast(n), Layout::upcast as fn(&Layout, i64) -> _), (layout.downcast(n), Layout::downcast)]
        {
            let Ok(symbolic) = symbolic else { continue };
            for (values, numbers) in &samples {
                assert_eq!(offsets(&symbolic.numbers(values).unwrap()), offsets(&plain(numbers, n).unwrap()), "{text}");
            }
        }
    }
    println!("{widened} widened, {asked} asked, {missed} missed, {narrowed} narrowed, {alike} profiles alike");
    assert!(widened > 120 && asked > 300 && missed * 20 < widened && alike > 5_000);
}

#[test]
fn threads_and_values_share_the_tile_at_every_value() {
    let (names, mut random) = (names(), Random(10));
    for (thr, val) in [("(M,4):(4,1)", "(2,2):(1,2)"), ("(4,K):(1,4)", "(N,3):(3,1)"), ("(8,M/8):(M/8,1)", "K:1")] {
        let (x, y) = (names.layout(thr).unwrap(), names.layout(val).unwrap());
        let (tile, layout) = make_layout_tv(&x, &y).unwrap();
        for values in samples(&mut random) {
            let (plain_tile, plain) =
                make_layout_tv(&x.numbers(&values).unwrap(), &y.numbers(&values).unwrap()).unwrap();
            assert_eq!(tile.numbers(&values).unwrap(), plain_tile, "{thr} {val}");
            assert_eq!(offsets(&layout.numbers(&values).unwrap()), offsets(&plain), "{thr} {val}: {layout}");
        }
    }
}

/// Numbers in place of parameters, in structures of every kind: each is what its parts become.
#[test]
fn numbers_go_into_every_structure() {
    let (names, mut random) = (names(), Random(11));
    let inner = names.layout("(M,K):(K,1)").unwrap();
    let swizzle = Swizzle::new(2, 0, 3).unwrap();
    let composed = Composed::new(swizzle, names.expr("8*S").unwrap(), inner.clone()).unwrap();
    let chained = Composed::new(composed.map().unwrap(), Expr::from(0), names.layout("(N,2):(1,N)").unwrap()).unwrap();
    let path = |mode: usize| ModePath::new(&[mode]).unwrap();
    let steps = [Coordinate::step(names.expr("K").unwrap(), path(0)), Coordinate::step(Expr::from(1), path(1))];
    let windows = Layout::new(&inner.shape(), &Tree::flat(steps).unwrap()).unwrap();
    assert_eq!(composed.parameters().len(), 3);
    assert_eq!(chained.parameters().len(), 4);
    assert_eq!(windows.with_facts(), "(M{div=8},K):(K@0,1@1)");
    for values in samples(&mut random) {
        let number = |text: &str| names.expr(text).unwrap().numbers(&values).unwrap();
        let (plain, whole) = (composed.numbers(&values).unwrap(), chained.numbers(&values).unwrap());
        assert_eq!(composed.substitute(&values).unwrap().to_string(), plain.to_string());
        for index in 0..plain.size() {
            let (i, j) = (index % number("M"), index / number("M"));
            assert_eq!(plain.eval(&index), Ok(swizzle.apply(8 * number("S") + i * number("K") + j)));
        }
        for index in 0..whole.size() {
            assert_eq!(whole.eval(&index), plain.map().unwrap().eval(&index));
        }
        let steps = windows.numbers(&values).unwrap().eval(&(number("M") + 1)).unwrap();
        // The last mode goes on past its end.
        assert_eq!((steps.scale_at(path(0)), steps.scale_at(path(1))), (number("K"), 1));
    }
}
