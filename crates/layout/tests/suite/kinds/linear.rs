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

/// What Triton's own tests state of its linear layouts: operation, operands, result. `below` is its
/// composition with an inverse, and `rest` its left division, where `none` says that there is none.
/// Triton composes a map whose outputs have fewer bits than the inputs of the next one; here that
/// is refused, and holds with the same bits.
const TRITON: &[(&str, &[&str], &str)] = &[
    ("product", &["in=[1,2,4,8] -> out:16", "in=[1,2,4,8,16] -> out:32"], "in=[1,2,4,8,16,32,64,128,256] -> out:512"),
    (
        "product",
        &["in1=[1,2,4,8,16] -> out1:32", "in2=[1,2,4,8] -> out2:16"],
        "in1=[(1,0),(2,0),(4,0),(8,0),(16,0)] in2=[(0,1),(0,2),(0,4),(0,8)] -> out1:32 out2:16",
    ),
    ("product", &["->", "in=[1,2,4,8,16] -> out:32"], "in=[1,2,4,8,16] -> out:32"),
    ("product", &["in=[1,2,4] -> out:8", "in=[0,0,0,0] -> out:1"], "in=[1,2,4,0,0,0,0] -> out:8"),
    ("product", &["in=[0,0,0,0] -> out1:1", "in=[] -> out2:1"], "in=[(0,0),(0,0),(0,0),(0,0)] -> out1:1 out2:1"),
    ("product", &["in=[1,2] -> out1:4", "in=[1,2,4] -> out2:8"], "in=[(1,0),(2,0),(0,1),(0,2),(0,4)] -> out1:4 out2:8"),
    (
        "product",
        &["in1=[(1,1),(2,2)] in2=[(0,2),(0,1)] -> out1:4 out2:4", "in1=[(0,2),(0,1)] in2=[] -> out1:1 out2:4"],
        "in1=[(1,1),(2,2),(0,8),(0,4)] in2=[(0,2),(0,1)] -> out1:4 out2:16",
    ),
    (
        "product",
        &["in2=[(1,0)] in1=[(0,1)] -> out1:2 out2:2", "in2=[1] in1=[1] -> out2:2"],
        "in2=[(1,0),(0,2)] in1=[(0,1),(0,2)] -> out1:2 out2:4",
    ),
    (
        "compose",
        &[
            "out1=[(2,2),(1,0)] out2=[(1,1),(2,1)] -> out3:4 out4:4",
            "in1=[(1,1),(0,1)] in2=[(1,0),(1,2)] -> out1:2 out2:4",
        ],
        "refused",
    ),
    (
        "compose",
        &[
            "out1=[(2,2),(1,0)] out2=[(1,1),(2,1)] -> out3:4 out4:4",
            "in1=[(1,1),(0,1)] in2=[(1,0),(1,2)] -> out1:4 out2:4",
        ],
        "in1=[(3,3),(1,1)] in2=[(2,2),(0,3)] -> out3:4 out4:4",
    ),
    ("below", &["in2=[4,1,2] -> out:8", "in1=[2,1,4] -> out:8"], "in1=[4,2,1] -> in2:8"),
    ("below", &["in2=[0,2,1,4] -> out:8", "in1=[2,1,4] -> out:8"], "in1=[2,4,8] -> in2:16"),
    ("below", &["in=[4,1,2] -> out:8", "in1=[2,1,4] in2=[0] -> out:8"], "in1=[4,2,1] in2=[0] -> in:8"),
    ("below", &["in=[0,4,1,2] -> out:8", "in=[1,2,4] -> out:8"], "in=[4,8,2] -> in:16"),
    ("below", &["in2=[4,1,2,0] -> out:8", "in1=[1,2,4] -> out:8"], "in1=[2,4,1] -> in2:16"),
    ("below", &["in=[0,4,1,2,0] -> out:8", "in=[1,2,4] -> out:8"], "in=[4,8,2] -> in:32"),
    (
        "below",
        &["in3=[1,2,4] in4=[0] -> out:8", "in1=[1,2,4] in2=[0] -> out:8"],
        "in1=[(1,0),(2,0),(4,0)] in2=[(0,0)] -> in3:8 in4:2",
    ),
    (
        "below",
        &["in3=[2,1] in4=[0] -> out:4", "in1=[1,2] in2=[0] -> out:4"],
        "in1=[(2,0),(1,0)] in2=[(0,0)] -> in3:4 in4:2",
    ),
    ("below", &["storage=[(1,1),(2,0)] -> x:4 y:2", "value=[(1,3)] -> y:2 x:4"], "value=[3] -> storage:4"),
    ("below", &["storage=[(1,1),(2,0)] -> x:4 y:2", "value=[(1,0)] -> x:4 y:2"], "refused"),
    ("below", &["storage=[(1,1),(2,0)] -> x:4 y:2", "value=[1] -> z:2"], "refused"),
    ("rest", &["in=[1,2,4,0,0,0,0] -> out:8", "in=[1,2,4] -> out:8"], "in=[0,0,0,0] -> out:1"),
    ("rest", &["in=[0,0,0,0,1,2,4] -> out:8", "in=[0,0,0,0] -> out:1"], "in=[1,2,4] -> out:8"),
    ("rest", &["in=[1,2,4,8,16] -> out:32", "in=[1,2,4,8] extra=[0] -> out:16"], "none"),
    ("rest", &["in=[1,2,4] -> out:8", "in=[1,2] -> out:4"], "in=[1] -> out:2"),
    ("rest", &["in=[1,2,4] -> out:8", "in=[1,2,4] -> out:8"], "->"),
    (
        "rest",
        &[
            "in1=[(1,1),(2,2),(0,8),(0,4)] in2=[(0,2),(0,1)] -> out1:4 out2:16",
            "in1=[(1,1),(2,2)] in2=[(0,2),(0,1)] -> out1:4 out2:4",
        ],
        "in1=[2,1] -> out2:4",
    ),
    (
        "rest",
        &["in2=[(0,1),(1,0)] in1=[(2,0),(0,2)] -> out1:4 out2:4", "in2=[(0,1),(1,0)] -> out1:2 out2:2"],
        "in1=[(1,0),(0,1)] -> out1:2 out2:2",
    ),
    ("rest", &["in1=[(0,1),(0,2)] in2=[] -> out1:1 out2:4", "in1=[(0,1),(0,2)] -> out1:1 out2:4"], "->"),
    ("rest", &["in1=[] in2=[(0,1)] in3=[] -> out1:1 out2:2", "in2=[(0,1)] -> out1:1 out2:2"], "->"),
    (
        "rest",
        &["in2=[(1,0),(1,0)] in1=[(2,0),(0,1)] -> out1:4 out2:2", "in2=[1,1] -> out1:2"],
        "in1=[(1,0),(0,1)] -> out1:2 out2:2",
    ),
    ("rest", &["in1=[(0,1),(0,2)] -> out1:1 out2:4", "-> out1:1"], "in1=[1,2] -> out2:4"),
];

/// A map without the names that have no bits, which Triton keeps where this library drops them.
fn essence(map: &LinearLayout) -> LinearLayout {
    let kept: Vec<usize> = (0..map.outputs().len()).filter(|at| map.outputs()[*at].1 > 0).collect();
    let bases = map.inputs().iter().filter(|(_, bits)| *bits > 0).map(|(name, _)| {
        let images = map.bases(name).unwrap();
        (&**name, images.iter().map(|image| kept.iter().map(|at| image[*at]).collect()).collect())
    });
    LinearLayout::new(bases, kept.iter().map(|at| (&*map.outputs()[*at].0, map.outputs()[*at].1))).unwrap()
}

#[test]
fn cases_of_triton_hold() {
    let map = |text: &str| text.parse::<LinearLayout>().unwrap_or_else(|error| panic!("{text}: {error}"));
    for (operation, operands, stated) in TRITON {
        let [a, b] = [0, 1].map(|at| map(operands[at]));
        let found = match *operation {
            "product" => a.product(&b).ok(),
            "compose" => a.compose(&b).ok(),
            "below" => a.left_divide(&b).ok(),
            "rest" => a.quotient(&b),
            other => panic!("{other}"),
        };
        let wanted = Some(*stated).filter(|text| !["none", "refused"].contains(text)).map(map);
        assert_eq!(found.as_ref().map(essence), wanted.as_ref().map(essence), "{operation} {operands:?}: {found:?}");
    }
    let layout = map("in1=[(4,2),(2,1),(1,0)] in2=[(1,2),(2,1)] -> out1:8 out2:4");
    for (index, image) in [([0, 0], [0, 0]), ([1, 0], [4, 2]), ([0, 1], [1, 2])] {
        assert_eq!(layout.apply(&index).unwrap(), image);
    }
    // Registers of a tile in a larger tile of memory that is swizzled.
    let memory = "offset=[(0,1),(0,2),(0,4),(0,8),(0,16),(0,32),(0,64),(1,8),(2,16),(4,32),(8,0),(16,0),(32,0),(64,0),\
                  (128,0)] -> dim0:256 dim1:128";
    let registers = "register=[(0,1),(0,2),(0,4),(0,32),(32,0)] lane=[(0,8),(0,16),(1,0),(2,0),(4,0)] \
                     warp=[(8,0),(16,0)] -> dim0:256 dim1:128";
    let stated = "register=[1,2,4,32,4096] lane=[8,16,136,272,544] warp=[1024,2048] -> offset:32768";
    let [memory, registers, stated] = [memory, registers, stated].map(map);
    assert_eq!(memory.left_divide(&registers).unwrap(), stated);
    assert_eq!(memory.invert().unwrap().compose(&registers).unwrap(), stated);
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
