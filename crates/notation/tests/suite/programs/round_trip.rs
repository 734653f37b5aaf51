//! Law: what is printed evaluates to the same value.

use std::fmt::{self, Debug, Display};

use proptest::prelude::*;
use tilewright_layout::{Composed, Coord, Layout, Slot, Swizzle, Tiler, Tree};
use tilewright_notation::{Environment, Value, evaluate};

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-9..100_i64, any::<i64>()]
}

fn extent() -> impl Strategy<Value = i64> {
    prop_oneof![Just(1), 1..20_i64]
}

fn stride() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), -9..100_i64, -(1_i64 << 40)..(1_i64 << 40)]
}

/// Trees with the given leaves, nested up to four deep, empty tuples included.
fn tree<T: Clone + Debug + Display + 'static>(leaf: impl Strategy<Value = T> + 'static) -> BoxedStrategy<Tree<T>> {
    leaf.prop_map(Tree::leaf)
        .prop_recursive(4, 24, 4, |inner| {
            prop::collection::vec(inner, 0..4).prop_map(|modes| Tree::tuple(modes.iter()).unwrap())
        })
        .boxed()
}

/// An extent and its stride.
#[derive(Debug, Clone)]
struct Pair(i64, i64);

impl Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

fn layout() -> BoxedStrategy<Layout> {
    tree((extent(), stride()).prop_map(|(extent, stride)| Pair(extent, stride)))
        .prop_filter_map("the size is representable", |pairs| {
            Layout::new(&pairs.map(|pair| pair.0), &pairs.map(|pair| pair.1)).ok()
        })
        .boxed()
}

fn coord() -> BoxedStrategy<Coord> {
    tree(prop_oneof![number().prop_map(Slot::At), Just(Slot::All)])
}

fn tiler() -> BoxedStrategy<Tiler> {
    prop_oneof![Just(Tiler::Keep), layout().prop_map(Tiler::Layout)]
        .prop_recursive(3, 12, 3, |inner| {
            prop::collection::vec(inner, 0..4).prop_map(|items| Tiler::modes(items).unwrap())
        })
        .boxed()
}

fn swizzle() -> BoxedStrategy<Swizzle> {
    (0..5_i64, 0..8_i64, -8..8_i64).prop_filter_map("fields apart", |(b, m, s)| Swizzle::new(b, m, s).ok()).boxed()
}

fn composed() -> BoxedStrategy<Composed> {
    let by_swizzle = (swizzle(), -100..100_i64, layout())
        .prop_filter_map("offsets are representable", |(outer, offset, inner)| {
            Composed::new(outer, offset, inner).ok()
        });
    let by_layout = (layout(), -100..100_i64, layout())
        .prop_filter_map("offsets are representable", |(outer, offset, inner)| {
            Composed::new(outer, offset, inner).ok()
        });
    prop_oneof![by_swizzle, by_layout].boxed()
}

fn single() -> BoxedStrategy<Value> {
    prop_oneof![
        number().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        tree(number()).prop_map(Value::from),
        coord().prop_map(Value::from),
        layout().prop_map(Value::from),
        tiler().prop_map(Value::from),
        swizzle().prop_map(Value::from),
        composed().prop_map(Value::from),
    ]
    .boxed()
}

/// Lists hold at least one value that is not a number, a tuple or a coordinate.
fn value() -> BoxedStrategy<Value> {
    single()
        .prop_recursive(2, 12, 4, |inner| {
            (prop::collection::vec(inner.clone(), 0..3), layout(), prop::collection::vec(inner, 0..3)).prop_map(
                |(before, layout, after)| {
                    Value::List(before.into_iter().chain([Value::from(layout)]).chain(after).collect())
                },
            )
        })
        .boxed()
}

/// Arithmetic over names and numbers, as it is written.
fn arithmetic() -> BoxedStrategy<String> {
    let names = vec!["A", "B", "M{div=8}", "K{min=2,max=64}", "N{int}", "9223372036854775807", "-9223372036854775808"];
    let atom =
        prop_oneof![prop::sample::select(names).prop_map(String::from), (-9..40_i64).prop_map(|n| n.to_string())];
    atom.prop_recursive(3, 8, 2, |inner| {
        let sum = (inner.clone(), prop::sample::select(vec!["+", "-", "*"]), inner.clone());
        let quotient = (prop::sample::select(vec!["floor", "ceil"]), inner.clone(), 1..20_i64);
        prop_oneof![
            4 => sum.prop_map(|(left, sign, right)| format!("{left}{sign}{right}")),
            1 => inner.clone().prop_map(|inner| format!("({inner})")),
            1 => inner.clone().prop_map(|inner| format!("-{inner}")),
            1 => quotient.prop_map(|(rounded, inner, by)| format!("{rounded}(({inner})/{by})")),
            1 => (inner, 1..20_i64).prop_map(|(inner, by)| format!("({inner})%{by}")),
        ]
    })
    .boxed()
}

/// A sum of steps along modes, and of numbers.
fn steps() -> BoxedStrategy<String> {
    let path = prop::sample::select(vec!["", "@0", "@1", "@2@0"]);
    let term = (arithmetic(), path, any::<bool>()).prop_map(|(scale, path, grouped)| match grouped {
        true => format!("({scale}){path}"),
        false => format!("{scale}{path}"),
    });
    let signs = prop::collection::vec((prop::sample::select(vec!["+", "-"]), term.clone()), 0..3);
    (term, signs)
        .prop_map(|(first, rest)| rest.into_iter().fold(first, |sum, (sign, term)| format!("{sum}{sign}{term}")))
        .boxed()
}

/// A layout whose extents and strides are written in all the ways there are, or a function of one
/// or two.
fn written() -> BoxedStrategy<String> {
    let extent = prop_oneof![3 => (1..9_i64).prop_map(|n| n.to_string()), 1 => arithmetic()];
    let tuple = |items: Vec<String>| format!("({})", items.join(","));
    let kinds = prop_oneof![
        arithmetic(),
        steps(),
        (0..40_u64).prop_map(|bits| format!("^{bits}")),
        (0..40_i64).prop_map(|stride| stride.to_string()),
    ];
    let layout = (1..4_usize, 0..4_usize).prop_flat_map(move |(rank, kind)| {
        let stride = match kind {
            0 => arithmetic(),
            1 => steps(),
            2 => (0..40_u64).prop_map(|bits| format!("^{bits}")).boxed(),
            _ => kinds.clone().boxed(),
        };
        let (shape, stride) = (prop::collection::vec(extent.clone(), rank), prop::collection::vec(stride, rank));
        (shape, stride).prop_map(move |(shape, stride)| format!("{}:{}", tuple(shape), tuple(stride)))
    });
    let unary = prop::sample::select(vec!["coalesce", "shape", "stride", "size", "cosize", "right_inverse", "flatten"]);
    let binary = prop::sample::select(vec!["composition", "logical_divide", "zipped_divide", "logical_product"]);
    let linear = (prop::collection::vec((0..4_u8, 0..8_u8), 0..4), 0..3_usize).prop_map(|(images, inputs)| {
        let names = ["register", "lane", "warp"];
        let bases: Vec<String> = images.iter().map(|(row, column)| format!("({row},{column})")).collect();
        let input = |name: &&str| format!("{name}=[{}] ", bases.join(","));
        format!("{}-> row:4 column:8", names.iter().take(inputs).map(input).collect::<String>())
    });
    prop_oneof![
        1 => linear,
        2 => arithmetic(),
        2 => steps(),
        2 => prop::collection::vec(steps(), 0..4).prop_map(tuple),
        4 => layout.clone(),
        1 => (unary, layout.clone()).prop_map(|(function, layout)| format!("{function}({layout})")),
        1 => (binary, layout.clone(), layout).prop_map(|(function, a, b)| format!("{function}({a}, {b})")),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

    #[test]
    fn what_is_written_by_hand_prints_as_text_of_the_same_value(text in written()) {
        let mut names = Environment::new();
        if let Ok(value) = evaluate(&text, &mut names) {
            let printed = value.to_string();
            let again = evaluate(&printed, &mut names);
            prop_assert_eq!(again.map_err(|error| error.render(&printed, false)), Ok(value), "{}", printed);
        }
    }

    #[test]
    fn printed_values_evaluate_to_themselves(value in value()) {
        let text = value.to_string();
        let again = evaluate(&text, &mut Environment::new());
        prop_assert_eq!(again.map_err(|error| error.render(&text, false)), Ok(value), "{}", text);
    }

    #[test]
    fn canonical_text_has_no_spaces_but_around_the_operator(value in value()) {
        let text = value.to_string();
        prop_assert!(!text.replace(" o ", "").contains(' '), "{}", text);
    }

    #[test]
    fn the_expression_language_reads_what_the_library_reads(layout in layout(), tree in tree(number()), tiler in tiler()) {
        for text in [layout.to_string(), tree.to_string(), tiler.to_string()] {
            let value = evaluate(&text, &mut Environment::new());
            prop_assert!(value.is_ok(), "{}", text);
        }
        let read: Layout = layout.to_string().parse().unwrap();
        prop_assert_eq!(evaluate(&layout.to_string(), &mut Environment::new()).unwrap(), Value::from(read));
        let read: Tree<i64> = tree.to_string().parse().unwrap();
        prop_assert_eq!(evaluate(&tree.to_string(), &mut Environment::new()).unwrap(), Value::from(read));
        let read: Tiler = tiler.to_string().parse().unwrap();
        prop_assert_eq!(evaluate(&tiler.to_string(), &mut Environment::new()).unwrap(), Value::from(read));
    }
}
