//! Linear layouts with names against their definition, index by index.

use tilewright_layout::{BitMatrix, Composed, LayoutError, LinearLayout};

use crate::random::Random;

/// A map of up to three inputs and two outputs.
fn any(random: &mut Random) -> LinearLayout {
    let inputs = ["register", "lane", "warp"].map(|name| (name, random.below(3) as usize));
    let outputs = ["row", "column"].map(|name| (name, random.below(4) as usize));
    let bits: usize = outputs.iter().map(|(_, bits)| bits).sum();
    let columns = inputs.iter().map(|(_, bits)| bits).sum::<usize>();
    let columns = (0..columns).map(|_| random.below(1 << bits) as u64);
    LinearLayout::of_matrix(inputs, outputs, BitMatrix::new(bits, columns).unwrap()).unwrap()
}

/// All indices of names with these bits.
fn indices(names: &[(Box<str>, usize)]) -> Vec<Vec<u64>> {
    names.iter().fold(vec![vec![]], |all, (_, bits)| {
        (0..1_u64 << bits).flat_map(|i| all.iter().map(move |before| [&before[..], &[i]].concat())).collect()
    })
}

/// By definition: the XOR of the bases at the bits of each index.
fn value(map: &LinearLayout, index: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; map.outputs().len()];
    for ((name, _), index) in map.inputs().iter().zip(index) {
        for (_, image) in map.bases(name).unwrap().iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1) {
            sum.iter_mut().zip(image).for_each(|(sum, part)| *sum ^= part);
        }
    }
    sum
}

#[test]
fn values_text_and_inverses() {
    let mut random = Random(31);
    let mut inverted = 0;
    for _ in 0..2_000 {
        let map = any(&mut random);
        assert_eq!(map.to_string().parse(), Ok(map.clone()));
        let all = indices(map.inputs());
        let images: Vec<Vec<u64>> = all.iter().map(|index| value(&map, index)).collect();
        for (index, image) in all.iter().zip(&images) {
            assert_eq!(map.apply(index).as_ref(), Ok(image), "{map} at {index:?}");
            let back = map.pseudo_inverse();
            assert_eq!(map.apply(&back.apply(image).unwrap()).as_ref(), Ok(image), "{map} at {index:?}");
        }
        let mut distinct = images.clone();
        distinct.sort();
        distinct.dedup();
        let bijective = distinct.len() == all.len() && all.len() == indices(map.outputs()).len();
        match map.invert() {
            Ok(inverse) => {
                inverted += 1;
                assert!(bijective);
                assert!(all.iter().zip(&images).all(|(index, image)| inverse.apply(image).as_ref() == Ok(index)));
                assert!(inverse.compose(&map).unwrap().matrix().is_identity());
            }
            Err(error) => assert!(!bijective && error.code() == "E0114", "{map}: {error}"),
        }
        match map.left_inverse() {
            Ok(back) => assert!(back.compose(&map).unwrap().matrix().is_identity(), "{map}: {back}"),
            Err(error) => assert!(distinct.len() < all.len() && error.code() == "E0114", "{map}: {error}"),
        }
        match map.right_inverse() {
            Ok(back) => assert!(map.compose(&back).unwrap().matrix().is_identity(), "{map}: {back}"),
            Err(error) => {
                assert!(distinct.len() < indices(map.outputs()).len() && error.code() == "E0114", "{map}: {error}");
            }
        }
        // As a layout of the whole index, and back.
        let composed = map.to_composed().unwrap();
        for (index, image) in all.iter().zip(&images) {
            let coord = format!("({})", index.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
            let whole = image[0] + (image[1] << map.outputs()[0].1);
            assert_eq!(composed.eval_at(&coord.parse().unwrap()), Ok(whole as i64), "{map}: {composed}");
        }
        let back = LinearLayout::of_composed(["register", "lane", "warp"], "offset", &composed).unwrap();
        assert_eq!(back.matrix().columns(), map.matrix().columns());
        if let Ok(layout) = map.to_layout() {
            assert_eq!(Composed::from(layout).equivalent(&composed), Ok(true));
        }
    }
    assert!(inverted > 20, "{inverted}");
}

#[test]
fn maps_compose_and_divide_by_name() {
    let mut random = Random(32);
    let (mut composites, mut quotients) = (0, 0);
    for _ in 0..3_000 {
        let (a, b) = (any(&mut random), any(&mut random));
        match a.left_divide(&b) {
            Ok(x) => {
                quotients += 1;
                let again = a.compose(&x).unwrap();
                assert!(indices(b.inputs()).iter().all(|i| again.apply(i) == b.apply(i)), "{a}, {b}: {x}");
            }
            Err(LayoutError::Size { .. }) => assert_ne!(a.outputs(), b.outputs()),
            Err(error) => {
                assert_eq!(error.code(), "E0114");
                let images: Vec<Vec<u64>> = indices(a.inputs()).iter().map(|i| value(&a, i)).collect();
                assert!(indices(b.inputs()).iter().any(|i| !images.contains(&value(&b, i))), "{a}, {b}");
            }
        }
        // From the outputs in the other order.
        let [(row, r), (column, c)] = b.outputs() else { panic!() };
        let bits = (0..r + c).map(|_| random.below(16) as u64).collect::<Vec<_>>();
        let last = LinearLayout::of_matrix([(&**column, *c), (row, *r)], [("x", 4)], BitMatrix::new(4, bits).unwrap());
        let last = last.unwrap();
        let both = last.compose(&b).unwrap();
        composites += 1;
        for index in indices(b.inputs()) {
            let middle = value(&b, &index);
            assert_eq!(both.apply(&index), Ok(value(&last, &[middle[1], middle[0]])));
        }
    }
    assert!(composites == 3_000 && quotients > 50, "{composites} {quotients}");
}

#[test]
fn products_lie_side_by_side_and_divide_again() {
    let mut random = Random(33);
    for _ in 0..1_000 {
        let (a, b) = (any(&mut random), any(&mut random));
        let product = a.product(&b).unwrap();
        for index in indices(product.inputs()) {
            let bits = |map: &LinearLayout, k: usize| map.inputs()[k].1;
            let low: Vec<u64> = (0..3).map(|k| index[k] & ((1 << bits(&a, k)) - 1)).collect();
            let high: Vec<u64> = (0..3).map(|k| index[k] >> bits(&a, k)).collect();
            let (low, high) = (value(&a, &low), value(&b, &high));
            let expected: Vec<u64> = (0..2).map(|k| low[k] | high[k] << a.outputs()[k].1).collect();
            assert_eq!(product.apply(&index), Ok(expected), "{a} by {b} at {index:?}");
        }
        let rest = product.quotient(&a).unwrap_or_else(|| panic!("{product} by {a}"));
        for (name, _) in rest.inputs() {
            let images = |map: &LinearLayout| map.bases(name).unwrap();
            let keep: Vec<usize> = (0..2).filter(|k| b.outputs()[*k].1 > 0).collect();
            let part: Vec<Vec<u64>> = images(&b).iter().map(|i| keep.iter().map(|k| i[*k]).collect()).collect();
            assert_eq!(images(&rest), part);
        }
        // Whatever is given as a quotient is one.
        if let Some(rest) = b.quotient(&a) {
            let again = a.product(&rest).unwrap();
            assert!(b.inputs().iter().all(|(name, _)| again.bases(name) == b.bases(name)), "{b} by {a}: {rest}");
        }
    }
}

#[test]
fn refuses_what_is_not_one() {
    let parse = |text: &str| text.parse::<LinearLayout>();
    for text in [
        "",
        "a=[(1)]",
        "a=(1) -> b:2",
        "a=[(1) -> b:2",
        "a=[(1)] -> b:3",
        "a=[(1)] -> b",
        "a=[((1))] -> b:2",
        "a=[(-1)] -> b:2",
    ] {
        assert!(matches!(parse(text), Err(LayoutError::Syntax { .. })), "{text}");
    }
    assert!(matches!(parse("a=[(1)] a=[(1)] -> b:2"), Err(LayoutError::NoName { .. })));
    assert!(matches!(parse("a=[(1,0)] -> b:2"), Err(LayoutError::Rank { .. })));
    assert!(matches!(parse("a=[(2)] -> b:2"), Err(LayoutError::Argument { value: 2, .. })));
    assert_eq!(parse("a=[1, 2] -> b:4").unwrap().to_string(), "a=[(1),(2)] -> b:4");
    assert_eq!(parse(" -> ").unwrap().to_string(), "->");
    let map = parse("a=[(1)] -> b:2").unwrap();
    assert!(matches!(map.compose(&map), Err(LayoutError::NoName { .. })));
    assert!(map.apply(&[]).is_err() && map.apply(&[2]).is_err());
    let wide = LinearLayout::of_matrix([("a", 40)], [("b", 40)], BitMatrix::identity(40).unwrap()).unwrap();
    assert!(wide.product(&wide).is_err());
}
