//! What is said of a layout known at launch, at many admissible values.
//!
//! Predicates, recasts, common vectors and common domains are asked of layouts of expressions, and
//! of the layouts that many values give. An answer agrees with all of them. Where the question is
//! refused, a fact that is named settles it; and how often one is refused that has the same answer
//! for all tried values is counted and limited.

use std::collections::BTreeMap;

use crate::random::Random;
use tilewright_layout::symbolic::{Declarations, Expr, Symbolic, Values};
use tilewright_layout::{
    Composed, Coordinate, Extent, Layout, LayoutError, Leaf, ModePath, Swizzle, Tree, Truth, common_coarsening,
    common_refinement, domain_distribute, greatest_common_domain, make_layout_tv, max_common_layout, max_common_vector,
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
fn an_alignment_holds_at_every_value() {
    let (names, mut random) = (names(), Random(7));
    let (mut above, mut exact) = (0, 0);
    for _ in 0..1_500 {
        let text = random_text(&mut random);
        let layout = names.layout(&text).unwrap();
        let aligned = layout.max_alignment();
        let mut reached = false;
        for values in samples(&mut random) {
            let numbers = layout.numbers(&values).unwrap();
            let n = aligned.numbers(&values).unwrap();
            let wide = numbers.coalesce().unwrap().recast(n, 1);
            assert!(wide.is_ok(), "{text} by {aligned} = {n}: {wide:?}");
            reached |= numbers.max_alignment() == n;
        }
        above += u32::from(aligned != Expr::from(1));
        exact += u32::from(reached);
    }
    println!("{above} above 1, {exact} of 1500 reached by a value");
    assert!(above > 300 && exact > 1_400);
}

#[test]
fn common_vectors_are_the_largest_at_every_value() {
    let (names, mut random) = (names(), Random(8));
    let (mut answered, mut long, mut asked, mut missed) = (0, 0, 0, 0);
    for _ in 0..1_000 {
        let a = random_text(&mut random);
        let (shape, _) = a.split_once(':').unwrap();
        let b = match random.below(3) {
            0 => a.clone(),
            1 => a.replace("8+", "16+"),
            _ => format!("{shape}:{}", random_text(&mut random).split_once(':').unwrap().1),
        };
        let (Ok(x), Ok(y)) = (names.layout(&a), names.layout(&b)) else { continue };
        let samples = samples(&mut random);
        let plain = |values: &Values| {
            let (x, y) = (x.numbers(values).unwrap(), y.numbers(values).unwrap());
            let one = x.is_injective().unwrap() || y.is_injective().unwrap();
            // A search for the largest may not come to an end.
            (max_common_layout(&x, &y).ok().map(|largest| largest.size()), x, y, one)
        };
        match max_common_layout(&x, &y) {
            Ok(common) => {
                answered += 1;
                long += u32::from(common.size() != Expr::from(1));
                assert_eq!(max_common_vector(&x, &y).unwrap(), common.size());
                for values in &samples {
                    let (largest, x, y, one) = plain(values);
                    let common = common.numbers(values).unwrap();
                    for i in (0..common.size()).take(300) {
                        let index = common.eval(&i).unwrap();
                        assert!(index < x.size() && index < y.size(), "{a} and {b}: {common}");
                        assert_eq!((x.eval(&index), y.eval(&index)), (Ok(i), Ok(i)), "{a} and {b}: {common}");
                    }
                    let longest = !one || largest.is_none_or(|largest| largest == common.size());
                    assert!(longest, "{a} and {b}: {common}, {largest:?} at {values:?}");
                }
            }
            Err(LayoutError::Open { .. }) => {
                asked += 1;
                missed += u32::from(samples.iter().all(|values| plain(values).0 == Some(1)));
            }
            Err(_) => {}
        }
    }
    println!(
        "{answered} answered, {long} of them longer than 1, {asked} asked, {missed} of these 1 for all tried values"
    );
    assert!(answered > 400 && long > 150);
}

/// Two layouts that step in different modes have a diagonal in common.
#[test]
fn common_vectors_along_diagonals() {
    for (a, b, expected) in [
        ("(M{min=4},4):(0,1)", "(M{min=4},4):(1,0)", 4),
        ("(4,M{min=4}):(1,0)", "(4,M{min=4}):(0,1)", 4),
        ("(M{min=4},4,2):(0,1,4)", "(M{min=4},4,2):(1,0,4)", 8),
        ("(2,M{min=4},4):(1,0,2)", "(2,M{min=4},4):(1,2,0)", 8),
        ("(M{min=4},4):(2,-1)", "(M{min=4},4):(1,0)", 0),
    ] {
        let (a, b): (Layout<Expr>, Layout<Expr>) = (a.parse().unwrap(), b.parse().unwrap());
        if expected == 0 {
            // What is not shown to be the longest is refused.
            assert!(matches!(max_common_layout(&a, &b), Err(LayoutError::Open { .. })), "{a} and {b}");
            continue;
        }
        let common = max_common_layout(&a, &b).unwrap();
        assert_eq!(max_common_vector(&a, &b), Ok(Expr::from(expected)));
        for m in [4, 5, 9] {
            let mut values = Values::new();
            values.set_named("M", m);
            let [common, a, b] = [&common, &a, &b].map(|layout| layout.numbers(&values).unwrap());
            let both = |i: &i64| (0..a.size()).any(|x| a.eval(&x) == Ok(*i) && b.eval(&x) == Ok(*i));
            assert_eq!((0..).take_while(both).count() as i64, expected, "{a} and {b} have no more");
            for i in 0..common.size() {
                let index = common.eval(&i).unwrap();
                assert!(index < a.size());
                assert_eq!((a.eval(&index), b.eval(&index)), (Ok(i), Ok(i)), "{a} and {b}: {common}");
            }
        }
    }
}

#[test]
fn common_domains_are_those_of_every_value() {
    let (names, mut random) = (names(), Random(9));
    let shapes = [
        "M",
        "(M,K)",
        "(8,M/8)",
        "(8,M/8,K)",
        "(K,M)",
        "(N,2,3)",
        "(2*N,3)",
        "(4,M/4,K)",
        "(2,4)",
        "(M*K)",
        "(L,K)",
        "(16,L/16,K)",
        "(2,2,2,M/8,K)",
        "(M,K,N)",
        "(8,K)",
        "(K,8)",
        "(B,M)",
        "(M/8,8)",
    ];
    let flat =
        |shape: &Tree<i64>| -> Vec<i64> { shape.leaves().iter().copied().filter(|extent| *extent > 1).collect() };
    let (mut answered, mut asked) = (0, 0);
    let mut compare = |result: Result<Vec<Expr>, LayoutError>,
                       plain: &dyn Fn(&Values) -> Result<Vec<i64>, LayoutError>,
                       samples: &[Values],
                       case: &str| {
        match result {
            Ok(numbers) => {
                answered += 1;
                for values in samples {
                    let own: Vec<i64> = numbers.iter().map(|number| number.numbers(values).unwrap()).collect();
                    let own = match own.len() % 2 {
                        0 if case.starts_with("layout") => {
                            own.chunks(2).filter(|mode| mode[0] > 1).flatten().copied().collect()
                        }
                        _ => own.into_iter().filter(|extent| *extent > 1).collect::<Vec<_>>(),
                    };
                    assert_eq!(Ok(own), plain(values), "{case} at {values:?}");
                }
            }
            Err(error) => {
                asked += 1;
                let refused = samples.iter().any(|values| plain(values).is_err());
                assert!(refused || matches!(error, LayoutError::Open { .. }), "{case}: {error}");
            }
        }
    };
    for a in shapes {
        for b in shapes {
            let (x, y) = (names.tree(a).unwrap(), names.tree(b).unwrap());
            let samples = samples(&mut random);
            let pair = |values: &Values| (x.numbers(values).unwrap(), y.numbers(values).unwrap());
            let leaves = |shape: Tree<Expr>| shape.leaves().to_vec();
            let modes = |layout: Layout<Expr>| -> Vec<Expr> {
                layout.leaves().iter().flat_map(|leaf| [leaf.extent.clone(), leaf.stride.clone()]).collect()
            };
            let numbers = |layout: Layout| -> Vec<i64> {
                let moving = layout.leaves().iter().filter(|leaf| leaf.extent > 1);
                moving.flat_map(|leaf| [leaf.extent, leaf.stride]).collect()
            };
            let case = |what: &str| format!("{what} of {a} and {b}");
            compare(
                common_refinement(&x, &y).map(leaves),
                &|values| common_refinement(&pair(values).0, &pair(values).1).map(|shape| flat(&shape)),
                &samples,
                &case("shape, the refinement"),
            );
            compare(
                common_coarsening(&x, &y).map(leaves),
                &|values| common_coarsening(&pair(values).0, &pair(values).1).map(|shape| flat(&shape)),
                &samples,
                &case("shape, the coarsening"),
            );
            compare(
                greatest_common_domain(&x, &y).map(modes),
                &|values| greatest_common_domain(&pair(values).0, &pair(values).1).map(numbers),
                &samples,
                &case("layout, the domain"),
            );
            compare(
                domain_distribute(&x, &y).map(modes),
                &|values| domain_distribute(&pair(values).0, &pair(values).1).map(numbers),
                &samples,
                &case("layout, the share"),
            );
        }
    }
    println!("{answered} answered, {asked} refused");
    assert!(answered > 250);
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
