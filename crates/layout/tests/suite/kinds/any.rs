//! Layouts of any kind: every operation is that of the layout itself, kinds join as a lattice does,
//! and results have the least kind.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    AnyCoord, AnyLayout, AnyTiler, AnyTree, Composed, Coordinate, CoordinateStep, DivideForm, Extent, Kind, Layout,
    LayoutError, Swizzle, Tree, Truth, Xor,
};

use crate::random::Random;

/// A shape of one to three modes, with the extents `extent` gives.
fn modes(random: &mut Random, mut mode: impl FnMut(&mut Random, i64) -> (String, String)) -> String {
    let rank = 1 + random.below(3);
    let (extents, strides): (Vec<String>, Vec<String>) = (0..rank).map(|number| mode(random, number)).unzip();
    format!("({}):({})", extents.join(","), strides.join(","))
}

fn integer(random: &mut Random) -> Layout {
    let extents = [1, 2, 3, 4, 8];
    let text = modes(random, |random, _| {
        (
            extents[random.below(5) as usize].to_string(),
            [0, 1, 2, 3, 4, 8, 16, -1][random.below(8) as usize].to_string(),
        )
    });
    text.parse().unwrap()
}

fn launch(random: &mut Random) -> Layout<Expr> {
    let text = modes(random, |random, _| {
        let extent = ["2", "4", "M{div=8}", "8"][random.below(4) as usize];
        (extent.to_string(), ["1", "4", "K", "M{div=8}", "0"][random.below(5) as usize].to_string())
    });
    text.parse().unwrap()
}

fn coordinate(random: &mut Random) -> Layout<Coordinate> {
    let text = modes(random, |random, _| {
        ([2, 3, 4][random.below(3) as usize].to_string(), format!("{}@{}", 1 + random.below(2), random.below(2)))
    });
    text.parse().unwrap()
}

fn xor(random: &mut Random) -> Layout<Xor> {
    let text = modes(random, |random, _| {
        ([2, 4, 8, 3][random.below(4) as usize].to_string(), format!("^{}", 1 + random.below(15)))
    });
    text.parse().unwrap()
}

fn composed(random: &mut Random) -> Composed {
    loop {
        let swizzle = Swizzle::new(1 + random.below(2), random.below(2), 2 + random.below(2)).unwrap();
        if let Ok(map) = Composed::new(swizzle, random.below(2) * 8, integer(random)) {
            return map;
        }
    }
}

fn launch_composed(random: &mut Random) -> Composed<Expr> {
    loop {
        let outer: Layout<Expr> = launch(random);
        if let Ok(map) = Composed::new(outer, Expr::from(random.below(3)), Layout::from(&integer(random))) {
            return map;
        }
    }
}

fn coordinate_composed() -> Composed<CoordinateStep> {
    "(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)".parse().unwrap()
}

/// A layout of a kind.
fn any(kind: Kind, random: &mut Random) -> AnyLayout {
    match kind {
        Kind::Integer => integer(random).into(),
        Kind::Launch => launch(random).into(),
        Kind::Coordinate => coordinate(random).into(),
        Kind::Xor => xor(random).into(),
        Kind::Composed => composed(random).into(),
        Kind::LaunchComposed => launch_composed(random).into(),
        Kind::CoordinateComposed => coordinate_composed().into(),
    }
}

#[test]
fn kinds_join_alike_in_any_order() {
    for a in Kind::ALL {
        assert_eq!(a.join(a), Some(a));
        for b in Kind::ALL {
            assert_eq!(a.join(b), b.join(a), "{a:?} {b:?}");
            for c in Kind::ALL {
                let (left, right) = (a.join(b).and_then(|ab| ab.join(c)), b.join(c).and_then(|bc| a.join(bc)));
                assert_eq!(left, right, "{a:?} {b:?} {c:?}");
            }
        }
    }
}

#[test]
fn what_is_joined_has_the_same_values_and_goes_back() {
    let mut random = Random(1);
    for round in 0..2000 {
        let layout = any(Kind::ALL[round % 7], &mut random);
        for kind in Kind::ALL {
            let Ok(joined) = layout.joined(kind) else { continue };
            assert_eq!(Some(joined.kind()), layout.kind().join(kind), "{layout} with {kind:?}");
            // A map over bits keeps its kind: nothing tells that it was a layout.
            if !joined.is_composed() || matches!(layout.kind(), Kind::Integer | Kind::Launch) {
                assert_eq!(joined.clone().reduced(), layout, "{layout} with {kind:?}");
            }
            if let Some(shape) = layout.known_shape() {
                for index in 0..shape.product().unwrap() {
                    let (value, before) = (joined.eval(index).unwrap(), layout.eval(index).unwrap());
                    // A number is a coordinate of a codomain that is no tuple.
                    assert_eq!(value, before, "{layout} with {kind:?} at {index}");
                }
            }
        }
    }
}

#[test]
fn a_map_that_keeps_every_offset_changes_nothing() {
    let mut random = Random(11);
    for round in 0..500 {
        let layout: AnyLayout = if round % 2 == 0 { integer(&mut random).into() } else { launch(&mut random).into() };
        for outer in ["S<0,0,0>", "S<0,3,2>", "F2<2>[1,2]", "1:1", "(2,4):(1,2)"] {
            let text = format!("{outer} o 0 o {layout}");
            // A map of bits takes no number below 0, and some take no number known at launch.
            let Ok(wrapped) = text.parse::<AnyLayout>() else {
                assert!(!outer.starts_with('S'), "{text}");
                continue;
            };
            assert_eq!(wrapped, layout, "{text}");
            assert!(format!("{outer} o 1 o {layout}").parse::<AnyLayout>().is_ok_and(|moved| moved.is_composed()));
        }
    }
    let mirrored: AnyLayout = "1:-1 o 0 o 4:2".parse().unwrap();
    assert_eq!(mirrored.kind(), Kind::Composed);
}

#[test]
fn what_is_printed_reads_back() {
    let mut random = Random(2);
    for round in 0..2000 {
        let layout = any(Kind::ALL[round % 7], &mut random);
        let text = layout.to_string();
        assert_eq!(text.parse::<AnyLayout>().as_ref(), Ok(&layout), "{text}");
        let shape = layout.shape();
        assert_eq!(shape.to_string().parse::<AnyTree>().as_ref(), Ok(&shape), "{text}");
        if let Some(stride) = layout.stride() {
            assert_eq!(stride.to_string().parse::<AnyTree>().as_ref(), Ok(&stride), "{text}");
        }
        if !matches!(layout.kind(), Kind::Xor | Kind::Composed | Kind::LaunchComposed | Kind::CoordinateComposed) {
            let tiler = AnyTiler::modes(&[layout.clone().into(), "2:1".parse().unwrap()]).unwrap();
            assert_eq!(tiler.to_string().parse::<AnyTiler>().as_ref(), Ok(&tiler), "{tiler}");
        }
    }
}

/// Asserts that operations without arguments give on a layout of any kind what they give on the
/// layout itself.
macro_rules! same {
    ($layout:expr, $($name:ident),+) => {{
        let layout = $layout;
        let any = AnyLayout::from(layout.clone());
        $(assert_eq!(any.$name(), layout.$name().map(AnyLayout::from), "{} of {any}", stringify!($name));)+
    }};
}

#[test]
fn operations_are_those_of_the_layout_itself() {
    let mut random = Random(3);
    for _ in 0..400 {
        let layout = integer(&mut random);
        same!(
            layout.clone(),
            coalesce,
            coalesce_z,
            filter,
            flatten,
            reverse,
            zip,
            complement_open,
            weak_complement_open,
            right_inverse,
            left_inverse,
            nullspace,
            layout_like,
            fragment_like
        );
        let any = AnyLayout::from(layout.clone());
        assert_eq!(any.complement(&AnyTree::from(64)), layout.complement(&64).map(AnyLayout::from));
        assert_eq!(any.cosize().ok(), layout.cosize().ok().map(Expr::from));
        assert_eq!(any.is_injective(), layout.is_injective());
        assert_eq!(any.is_surjective(), Ok(layout.is_surjective()));
        assert_eq!(any.is_tractable(), Ok(layout.is_tractable()));
        assert_eq!(any.upcast(2), layout.upcast(2).map(AnyLayout::from));
        assert_eq!(any.recast(8, 16), layout.recast(8, 16).map(AnyLayout::from));

        same!(launch(&mut random), coalesce, filter, flatten, complement_open, right_inverse, left_inverse, nullspace);
        same!(xor(&mut random), coalesce, filter, flatten, complement_open, right_inverse, left_inverse, nullspace);
        same!(composed(&mut random), coalesce, filter, flatten, right_inverse, nullspace);
        same!(launch_composed(&mut random), coalesce, filter, flatten);
        let layout = coordinate(&mut random);
        let any = AnyLayout::from(layout.clone());
        assert_eq!(any.coalesce(), layout.coalesce().map(AnyLayout::from));
        assert_eq!(any.is_injective(), layout.is_injective());
    }
}

/// A value without the modes in which it is 0, which a codomain need not have.
fn sum(value: &AnyTree) -> String {
    match value.number().filter(|_| value.is_leaf()) {
        Some(number) => number.to_string(),
        None => CoordinateStep::of_tree(&value.launch().unwrap()).unwrap().to_string(),
    }
}

/// The value of `A` at a value of `B`: an index, or a coordinate.
fn through(a: &AnyLayout, value: &AnyTree) -> Option<AnyTree> {
    match value.number().filter(|_| value.is_leaf()) {
        Some(index) => a.eval_at(&AnyTree::from(index.into_owned())).ok(),
        None => a.eval_at(value).ok(),
    }
}

#[test]
fn composites_have_the_values_of_the_definition() {
    let mut random = Random(4);
    let mut found = 0;
    for round in 0..7000 {
        let (a, b) = (any(Kind::ALL[round % 7], &mut random), any(Kind::ALL[round / 7 % 7], &mut random));
        let Ok(composite) = a.compose(&b) else { continue };
        assert_eq!(composite.clone().reduced(), composite, "{a} o {b}");
        let Some(shape) = b.known_shape() else { continue };
        for index in 0..shape.product().unwrap() {
            let (Ok(value), Ok(result)) = (b.eval(index), composite.eval(index)) else { continue };
            // A coordinate past the modes of A is a place of its extension, which `eval_at` does
            // not name.
            let Some(wanted) = through(&a, &value) else { continue };
            found += 1;
            assert_eq!(sum(&result), sum(&wanted), "{a} o {b} = {composite} at {index}");
        }
    }
    assert!(found > 5000, "{found}");
}

#[test]
fn divisions_have_every_element_of_the_layout_once() {
    let mut random = Random(5);
    let mut found = 0;
    for round in 0..2000 {
        let whole = any(Kind::ALL[round % 7], &mut random);
        let Some(shape) = whole.known_shape() else { continue };
        let tiler: AnyTiler = ["2:1", "2:2", "4:1", "[2:1]"][random.below(4) as usize].parse().unwrap();
        for form in DivideForm::ALL {
            let Ok(divided) = whole.divide(form, &tiler) else { continue };
            let size = shape.product().unwrap();
            if divided.size() != Expr::from(size) {
                continue; // The tiles go past the end.
            }
            let values = |layout: &AnyLayout| {
                let mut values: Vec<String> = (0..size).map(|index| layout.eval(index).unwrap().to_string()).collect();
                values.sort();
                values
            };
            found += 1;
            assert_eq!(values(&divided), values(&whole), "{form} division of {whole} by {tiler}: {divided}");
        }
    }
    assert!(found > 1000, "{found}");
}

#[test]
fn slices_and_what_they_leave_out_add_up() {
    let mut random = Random(6);
    for round in 0..700 {
        let layout = any(Kind::ALL[round % 7], &mut random);
        let coord = |open: bool| {
            let mode = if open { "_" } else { "1" };
            let rest = ",0".repeat(layout.rank() - 1);
            format!("({mode}{rest})")
        };
        let open: AnyCoord = coord(true).parse().unwrap();
        let Ok(slice) = layout.slice(&open) else { continue };
        assert_eq!(slice.rank(), 1, "{layout}");
        if let Ok((slice, offset)) = layout.slice_and_offset(&open)
            && let (Ok(part), Some(offset)) = (slice.eval(1), offset.number())
            && let Some(part) = part.number()
            && layout.kind() == Kind::Integer
        {
            let at: AnyTree = coord(false).parse().unwrap();
            let whole = layout.eval_at(&at).unwrap();
            let sum = part.known().unwrap() + offset.known().unwrap();
            assert_eq!(whole, AnyTree::from(sum), "{layout}");
        }
    }
}

#[test]
fn kinds_that_do_not_meet_are_refused_with_the_operand() {
    let any = |text: &str| text.parse::<AnyLayout>().unwrap();
    let refused = |error: LayoutError| match error {
        LayoutError::Kind { operand, wanted, .. } => format!("{operand:?}: {wanted}"),
        error => panic!("{error}"),
    };
    assert_eq!(refused(any("4:^1").add(&any("4:1@0")).unwrap_err()), "Second: a layout with integer strides");
    assert_eq!(
        refused(any("4:K").is_tractable().map(|_| any("4:1").image()).and(any("4:K").image()).unwrap_err()),
        "First: a layout whose numbers are known"
    );
    assert_eq!(any("4:1").same_function(&any("(2,2):(1,2)")), Ok(Truth::Proved));
    assert_eq!(refused(any("4:1@0").upcast(2).unwrap_err()), "First: a layout whose values are numbers");
    assert_eq!(any("S<1,0,2> o 0 o 4:1").eval_at(&Tree::leaf(3).into()).unwrap().to_string(), "3");
}

/// XOR steps and integer steps may make the same function of an index.
#[test]
fn layouts_over_bits_are_compared_with_layouts_of_integers() {
    let any = |text: &str| text.parse::<AnyLayout>().unwrap();
    for (bits, integers) in [
        ("(2,2):(^1,^2)", "4:1"),
        ("(2,2):(^1,^3)", "4:1"),
        ("(2,2):(^1,^3)", "(2,2):(1,3)"),
        ("(4,2):(^1,^4)", "(4,2):(1,4)"),
        ("(3,2):(^1,^4)", "(3,2):(1,4)"),
        ("(3,2):(^3,^4)", "(3,2):(3,4)"),
        ("(4,2):(^2,^1)", "(4,2):(2,1)"),
        ("(2,2):(^1,^2)", "8:1"),
    ] {
        let (a, b) = (any(bits), any(integers));
        let values = |layout: &AnyLayout| -> Vec<String> {
            let size: i64 = layout.size().known().unwrap();
            (0..size).map(|i| layout.eval_at(&Tree::leaf(i).into()).unwrap().to_string()).collect()
        };
        let same = Ok(Truth::from(values(&a) == values(&b)));
        assert_eq!((a.same_function(&b), b.same_function(&a)), (same.clone(), same), "{bits} and {integers}");
    }
}
