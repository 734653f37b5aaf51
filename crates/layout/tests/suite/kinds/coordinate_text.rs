//! Coordinates as values and as text: sums of steps along modes form a free module, and what is
//! printed reads back.

use std::collections::BTreeMap;

use tilewright_layout::{
    Coordinate, Layout, LayoutError, Limit, MAX_PATH, MAX_PATH_MODE, ModePath, Stride, Tiler, Tree, Truth,
};

/// A sum of terms, as a map from paths to scales without zeros: the definition.
type Sum = BTreeMap<Vec<usize>, i64>;

const PATHS: [&[usize]; 7] = [&[], &[0], &[1], &[2], &[0, 0], &[0, 1], &[4, 0, 254]];

fn coordinate(sum: &Sum) -> Coordinate {
    sum.iter().fold(Coordinate::zero(), |all, (path, scale)| {
        all.plus(&Coordinate::step(*scale, ModePath::new(path).unwrap())).unwrap()
    })
}

fn terms(coordinate: &Coordinate) -> Sum {
    coordinate.terms().map(|(path, scale)| (path.modes().collect(), *scale)).collect()
}

/// All sums of up to three terms over the paths.
fn sums() -> Vec<Sum> {
    let scales = [-3, -1, 1, 2, i64::MAX, i64::MIN];
    let mut all = vec![Sum::new()];
    for (i, first) in PATHS.iter().enumerate() {
        for a in scales {
            all.push(Sum::from([(first.to_vec(), a)]));
            for (j, second) in PATHS.iter().enumerate().skip(i + 1) {
                all.push(Sum::from([(first.to_vec(), a), (second.to_vec(), 5 - i as i64)]));
                for third in &PATHS[j + 1..] {
                    all.push(Sum::from([(first.to_vec(), 7), (second.to_vec(), a), (third.to_vec(), -2)]));
                }
            }
        }
    }
    for sum in &mut all {
        sum.retain(|_, scale| *scale != 0);
    }
    all
}

#[test]
fn sums_and_products_are_those_of_maps() {
    let all = sums();
    for (position, a) in all.iter().enumerate() {
        let x = coordinate(a);
        assert_eq!(terms(&x), *a);
        assert_eq!(x.is_zero(), Truth::from(a.is_empty()));
        for count in [0, 1, 2, -1, -4] {
            let product: Option<Sum> =
                a.iter().map(|(path, scale)| Some((path.clone(), scale.checked_mul(count)?))).collect();
            let product = product.map(|mut product| {
                product.retain(|_, scale| *scale != 0);
                product
            });
            assert_eq!(x.times(&count).map(|x| terms(&x)), product, "{count} * {x}");
        }
        for b in all.iter().skip(position % 7).step_by(7) {
            let y = coordinate(b);
            let mut sum = Some(a.clone());
            for (path, scale) in b {
                sum = sum.and_then(|mut sum| {
                    let place = sum.entry(path.clone()).or_insert(0);
                    *place = place.checked_add(*scale)?;
                    Some(sum)
                });
            }
            let sum = sum.map(|mut sum| {
                sum.retain(|_, scale| *scale != 0);
                sum
            });
            assert_eq!(x.plus(&y).map(|x| terms(&x)), sum, "{x} plus {y}");
            assert_eq!((x == y, x.same(&y)), (a == b, Truth::from(a == b)), "{x} and {y}");
        }
    }
}

#[test]
fn what_is_printed_reads_back() {
    for sum in sums() {
        let value = coordinate(&sum);
        assert_eq!(value.to_string().parse::<Coordinate>().unwrap(), value, "{value}");
        let tree: Tree<Coordinate> = Tree::leaf(value.clone());
        assert_eq!(tree.to_string(), value.to_string());
        // In a layout a path ends at a mode or goes on through it, not both.
        let Ok(layout) = Layout::new(
            &"(2,(3,4))".parse().unwrap(),
            &Tree::flat([value.clone(), value.clone()])
                .unwrap()
                .append(&Tree::leaf(value.clone()))
                .unwrap()
                .group(1..3)
                .unwrap(),
        ) else {
            let mixed = sum.keys().any(|p| sum.keys().any(|q| p != q && q.starts_with(p)));
            assert!(mixed, "{value}");
            continue;
        };
        assert_eq!(layout.to_string().parse::<Layout<Coordinate>>().unwrap(), layout, "{layout}");
        assert_eq!(layout.stride().to_string().parse::<Tree<Coordinate>>().unwrap(), layout.stride());
        let tiler = Tiler::modes([Tiler::Keep, Tiler::Layout(layout)]).unwrap();
        assert_eq!(tiler.to_string().parse::<Tiler<Coordinate>>().unwrap(), tiler, "{tiler}");
    }
}

#[test]
fn text_is_that_of_the_field() {
    let same = |text: &str, canonical: &str| {
        assert_eq!(text.parse::<Layout<Coordinate>>().unwrap().to_string(), canonical, "{text}");
    };
    same("((2,3),4):((1@0@0,1@1@0),1@1)", "((2,3),4):((1@0@0,1@1@0),1@1)");
    same(" ( 4 , 5 ) : ( _1@1 , 0x10 @ 0 ) ", "(4,5):(1@1,16@0)");
    same("(4,5):(1@1,1@1@4)", "(4,5):(1@1,1@1@4)");
    same("4", "4:1");
    same("(4,2,3)", "(4,2,3):(1,4,8)");
    same("(2,2):(1@0 + 2@1, -3@1)", "(2,2):(1@0+2@1,-3@1)");
    same("(2,2):(2@1 -1@0, 0@7)", "(2,2):(-1@0+2@1,0)");
    same("():()", "():()");
    let paths = "1@1@4".parse::<Coordinate>().unwrap();
    assert_eq!(terms(&paths), Sum::from([(vec![4, 1], 1)]));
    assert_eq!("[_;2:64@0]".parse::<Tiler<Coordinate>>().unwrap().to_string(), "[_;2:64@0]");
    assert_eq!("(2,3)".parse::<Tiler<Coordinate>>().unwrap().to_string(), "[2:1;3:1]");
}

#[test]
fn malformed_text_says_where() {
    let at = |text: &str| match text.parse::<Layout<Coordinate>>() {
        Err(LayoutError::Syntax { at, .. }) => at,
        other => panic!("{text}: {other:?}"),
    };
    for (text, place) in [
        ("(2,3):(1@,2@0)", 9),
        ("2:1@-1", 4),
        ("2:@0", 2),
        ("2:1@0@", 6),
        ("2:1@x", 4),
        ("2:1@0+", 6),
        ("2:1@1y", 5),
        ("(2,3):(1@0,1@1", 14),
        ("2:1/2@0", 3),
        ("2:99999999999999999999@0", 2),
        ("1@0:1", 1),
    ] {
        assert_eq!(at(text), place, "{text}");
    }
    let error = |text: &str| text.parse::<Tree<Coordinate>>().unwrap_err();
    let too_large =
        |text: &str, limit, value| assert_eq!(error(text), LayoutError::TooLarge { limit, value }, "{text}");
    too_large("1@255", Limit::PathMode, MAX_PATH_MODE + 1);
    too_large("1@0@1@2@3@4@5@6@7@8", Limit::Path, MAX_PATH + 1);
    assert_eq!("1@0@1@2@3@4@5@6@254".parse::<Coordinate>().unwrap().terms().count(), 1);
    assert_eq!(error("9223372036854775807@0+1@0").code(), "E0103");
}

#[test]
fn strides_of_one_tree_lead_into_one_codomain() {
    let refused = |text: &str, says: &str| {
        let error = text.parse::<Tree<Coordinate>>().unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), ("E0125", says), "{text}");
        // The same strides in a layout, in whatever way it is made.
        let strides: Vec<Coordinate> =
            text.trim_matches(['(', ')']).split(',').map(|step| step.parse().unwrap()).collect();
        let modes: Vec<Layout<Coordinate>> =
            strides.iter().map(|step| Layout::mode_of(2, step.clone())).collect::<Result<_, _>>().unwrap_or_default();
        if !modes.is_empty() {
            assert_eq!(Layout::tuple(modes.iter()).unwrap_err(), error);
        }
    };
    refused("(1,1@0)", "the stride of mode 0 is 1 and that of mode 1 is 1@0: integers and basis steps do not mix");
    refused(
        "(0,1@0,2@1,-3)",
        "the stride of mode 1 is 1@0 and that of mode 3 is -3: integers and basis steps do not mix",
    );
    refused(
        "(1@0,5@1,1@1@0)",
        "the stride of mode 0 is 1@0 and that of mode 2 is 1@1@0: one ends at a mode that the other goes on through",
    );
    refused("(3+1@0)", "the stride 3+1@0 ends at a mode that it also goes on through");
    for fine in ["(0,1@0)", "(0,1)", "(1@0@1,1@1@1,1@0)", "(1@0+2@1,1@2)", "(1@0@1+1@1@1,2@0)"] {
        assert_eq!(fine.parse::<Tree<Coordinate>>().unwrap().to_string(), fine);
    }
}

#[test]
fn paths_know_what_lies_below_them() {
    for p in PATHS {
        for q in PATHS {
            let (a, b) = (ModePath::new(p).unwrap(), ModePath::new(q).unwrap());
            assert_eq!(a.leads_to(b), q.starts_with(p), "{p:?} {q:?}");
            assert_eq!(a.cmp(&b), p.cmp(q), "{p:?} {q:?}");
        }
        assert_eq!(ModePath::new(p).unwrap().len(), p.len());
    }
}

#[test]
fn nested_coordinates_are_sums_of_steps() {
    let codomains = ["*", "(*)", "(*,*)", "((*,*),*)", "(*,(*),(*,(*,*)))"];
    for text in codomains {
        let profile: tilewright_layout::Profile = text.parse().unwrap();
        let count = profile.leaves();
        for seed in 0..40_i64 {
            let leaves = (0..count as i64).map(|leaf| (seed * 7 + leaf * 5) % 4 - 1);
            let nested = Tree::new(profile.clone(), leaves).unwrap();
            let sum = Coordinate::of_tree(&nested).unwrap();
            assert_eq!(sum.in_profile(&profile).unwrap(), nested);
            assert_eq!(sum.terms().count(), nested.leaves().iter().filter(|index| **index != 0).count());
        }
    }
    let profile = "(*,(*,*))".parse().unwrap();
    for missing in ["1", "1@1", "1@2", "1@0@0", "1@2@1"] {
        assert_eq!(
            missing.parse::<Coordinate>().unwrap().in_profile(&profile).unwrap_err().code(),
            "E0126",
            "{missing}"
        );
    }
}

#[test]
fn codomains_hold_every_value() {
    for text in [
        "(2,3):(1@0,1@1)",
        "(2,3):(1@0,-1@1)",
        "((2,2),3):((1@1,4@0),2@1)",
        "(4,5):(1@1,1@1@4)",
        "(2,3):(1@0+2@1,1@1)",
        "(4,2):(3,0)",
        "3:0",
    ] {
        let layout: Layout<Coordinate> = text.parse().unwrap();
        let (profile, coshape) = (layout.coprofile().unwrap(), layout.coshape().unwrap());
        let mut largest = coshape.map(|_| 0);
        for i in 0..layout.size() {
            let value = layout.eval(&i).unwrap().in_profile(&profile).unwrap();
            let leaves: Vec<i64> = largest.leaves().iter().zip(value.leaves()).map(|(a, b)| *a.max(b)).collect();
            largest = Tree::new(profile.clone(), leaves).unwrap();
        }
        assert_eq!(coshape, largest.map(|index| index + 1), "{text}");
        assert_eq!(layout.cosize().unwrap(), coshape.product().unwrap());
    }
}

#[test]
fn identity_sends_every_coordinate_to_itself() {
    for text in ["4", "(4)", "(4,8)", "(4,(2,3))", "((2,1),(1,(3,2)))", "(1,1)"] {
        let shape: Tree<i64> = text.parse().unwrap();
        let identity = Layout::<Coordinate>::identity(&shape).unwrap();
        assert_eq!(
            (identity.shape(), identity.coprofile().unwrap()),
            (shape.clone(), shape.profile().clone()),
            "{text}"
        );
        for coord in tilewright_layout::coordinates(&shape).unwrap() {
            assert_eq!(identity.eval_at(&coord).unwrap().in_profile(shape.profile()).unwrap(), coord);
        }
    }
    let wide = Tree::flat([1_i64; 256]).unwrap();
    assert_eq!(Layout::<Coordinate>::identity(&wide).unwrap_err().code(), "E0104");
    assert_eq!(Layout::<Coordinate>::identity(&"(2,0)".parse().unwrap()).unwrap_err().code(), "E0102");
}
