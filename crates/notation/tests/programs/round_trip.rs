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
                    Value::List(before.into_iter().chain([Value::Layout(layout)]).chain(after).collect())
                },
            )
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

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
        prop_assert_eq!(evaluate(&layout.to_string(), &mut Environment::new()).unwrap(), Value::Layout(read));
        let read: Tree<i64> = tree.to_string().parse().unwrap();
        prop_assert_eq!(evaluate(&tree.to_string(), &mut Environment::new()).unwrap(), Value::from(read));
        let read: Tiler = tiler.to_string().parse().unwrap();
        prop_assert_eq!(evaluate(&tiler.to_string(), &mut Environment::new()).unwrap(), Value::from(read));
    }
}
