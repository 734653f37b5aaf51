//! Division, product and their forms against their definitions.
//!
//! The oracles know neither the complement's formula nor the composition's criterion: a complement
//! is found by laying copies of the tile's image on the number line, one at the first free place
//! after another, and a composite exists when `A(B(c))`, evaluated at every coordinate, is the sum
//! of layout functions.

use std::collections::HashSet;

use crate::oracle::{Flat, composite_exists, value};
use tilewright_layout::{Layout, LayoutError, Tiler, Tree};

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn tiler(text: &str) -> Tiler {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn flat(layout: &Layout) -> Flat {
    layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect()
}

fn size(leaves: &[(i64, i64)]) -> i64 {
    leaves.iter().map(|leaf| leaf.0).product()
}

/// The coalesced leaves of a function on `0..n`, where it is that of a layout.
fn leaves_of(h: &[i64]) -> Option<Flat> {
    let n = h.len();
    if h[0] != 0 {
        return None;
    }
    if n == 1 {
        return Some(Flat::new());
    }
    let p = (1..n).find(|i| h[*i] != *i as i64 * h[1]).unwrap_or(n);
    if !n.is_multiple_of(p) || (0..n).any(|i| h[i] != h[i % p] + h[i - i % p]) {
        return None;
    }
    let mut leaves = vec![(p as i64, h[1])];
    leaves.extend(leaves_of(&h.iter().copied().step_by(p).collect::<Vec<_>>())?);
    Some(leaves)
}

/// The offsets of the strict complement of a tile in `[0, target)`: copies of the image, each at
/// the first place that is free, until what they cover is `0..n` with `n >= target`.
fn complement_offsets(tile: &[(i64, i64)], target: i64) -> Option<Vec<i64>> {
    let moving: Flat = tile.iter().copied().filter(|leaf| leaf.0 > 1 && leaf.1 != 0).collect();
    let image: Vec<i64> = (0..size(&moving)).map(|i| if moving.is_empty() { 0 } else { value(&moving, i) }).collect();
    if image.iter().collect::<HashSet<_>>().len() != image.len() {
        return None;
    }
    let (mut covered, mut offsets, mut free) = (HashSet::new(), Vec::new(), 0);
    loop {
        if image.iter().any(|x| !covered.insert(x + free)) {
            return None;
        }
        offsets.push(free);
        while covered.contains(&free) {
            free += 1;
        }
        if free >= target && covered.len() as i64 == free {
            return Some(offsets);
        }
    }
}

fn text(leaves: &[(i64, i64)]) -> String {
    let column = |f: &dyn Fn(&(i64, i64)) -> i64| {
        let numbers: Vec<String> = leaves.iter().map(|leaf| f(leaf).to_string()).collect();
        if let [only] = numbers.as_slice() { only.clone() } else { format!("({})", numbers.join(",")) }
    };
    format!("{}:{}", column(&|leaf| leaf.0), column(&|leaf| leaf.1))
}

/// Every layout of rank one or two with these extents and strides.
fn flats(extents: &[i64], strides: &[i64]) -> Vec<Flat> {
    let leaves: Vec<(i64, i64)> = extents.iter().flat_map(|s| strides.iter().map(move |d| (*s, *d))).collect();
    let pairs = leaves.iter().flat_map(|first| leaves.iter().map(|second| vec![*first, *second]));
    leaves.iter().map(|leaf| vec![*leaf]).chain(pairs).collect()
}

fn part(layout: &Layout, path: &[usize]) -> Layout {
    Layout::from_tree(layout.tree().at(path).unwrap()).unwrap()
}

/// `logical_divide(A, T)` is `A o (T, complement)` at every index, and is refused exactly when that
/// does not exist.
#[test]
fn division_by_definition() {
    let (mut exist, mut refused) = (0, 0);
    let tiles: Vec<(Flat, Tiler)> = flats(&[1, 2, 3, 4], &[0, 1, 2, 3, 4, 6])
        .into_iter()
        .map(|flat| (flat.clone(), Tiler::Layout(layout(&text(&flat)))))
        .collect();
    for a in flats(&[1, 2, 3, 4, 6], &[0, 1, 2, 5, 6]) {
        let outer = layout(&text(&a));
        for (t, tiler) in &tiles {
            let offsets = complement_offsets(t, size(&a));
            let both = offsets.as_ref().map(|offsets| {
                let rest = leaves_of(offsets).expect("a complement is a layout");
                t.iter().copied().chain(rest).collect::<Flat>()
            });
            let exists = both.is_some_and(|both| composite_exists(&a, &both));
            match (outer.logical_divide(tiler), offsets) {
                (Ok(divided), Some(offsets)) => {
                    assert!(exists, "logical_divide({outer}, {tiler}) = {divided}, but none exists");
                    assert_eq!(divided.rank(), 2);
                    assert_eq!(part(&divided, &[0]).size(), size(t));
                    assert_eq!(part(&divided, &[1]).size(), offsets.len() as i64);
                    for index in 0..divided.size() {
                        let place = value(t, index % size(t)) + offsets[(index / size(t)) as usize];
                        let found = divided.eval(&index).unwrap();
                        assert_eq!(found, value(&a, place), "logical_divide({outer}, {tiler}) = {divided} at {index}");
                    }
                    exist += 1;
                }
                (Ok(divided), None) => panic!("logical_divide({outer}, {tiler}) = {divided}: no complement"),
                (Err(error), _) => {
                    assert!(!exists, "logical_divide({outer}, {tiler}): {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(exist > 10_000 && refused > 10_000, "{exist} {refused}");
}

/// A tile that divides loses and repeats no element: the offsets of the division are those of the
/// layout.
#[test]
fn division_keeps_every_element() {
    let mut divided_whole = 0;
    for a in flats(&[2, 4, 6, 12], &[0, 1, 3, 7, 24]) {
        let outer = layout(&text(&a));
        for t in flats(&[1, 2, 3], &[1, 2, 3, 4, 6]) {
            let Ok(divided) = outer.logical_divide(&Tiler::Layout(layout(&text(&t)))) else { continue };
            if divided.size() != outer.size() {
                assert!(divided.size() > outer.size());
                continue;
            }
            let sorted = |leaves: &[(i64, i64)]| {
                let mut offsets: Vec<i64> = (0..size(leaves)).map(|i| value(leaves, i)).collect();
                offsets.sort_unstable();
                offsets
            };
            assert_eq!(sorted(&flat(&divided)), sorted(&a), "{outer} by {}", text(&t));
            divided_whole += 1;
        }
    }
    assert!(divided_whole > 1_000, "{divided_whole}");
}

/// By mode, each mode is divided alone; the other forms hold the same parts in another nesting.
#[test]
fn forms_are_regroupings() {
    let tiles = ["1:1", "2:1", "2:2", "3:1", "(2,2):(1,4)", "(2):(3)"];
    let modes = ["4:1", "6:5", "(2,4):(9,2)", "12:0", "(6):(2)"];
    let mut checked = 0;
    let count = modes.len();
    for number in 0..count.pow(3) {
        let [a, b, c] = [number % count, number / count % count, number / count / count].map(|mode| modes[mode]);
        let whole = Layout::tuple([&layout(a), &layout(b), &layout(c)]).unwrap();
        for (t, u) in tiles.iter().flat_map(|t| tiles.iter().map(move |u| (t, u))) {
            let by = tiler(&format!("[{t};{u}]"));
            let one = |mode: &str, tile: &str| layout(mode).logical_divide(&Tiler::Layout(layout(tile)));
            let (Ok(first), Ok(second)) = (one(a, t), one(b, u)) else {
                assert!(whole.logical_divide(&by).is_err() && whole.flat_divide(&by).is_err());
                continue;
            };
            let rest = layout(c);
            let tuple = |parts: &[&Layout]| Layout::tuple(parts.iter().copied()).unwrap();
            let (t, r) = (part(&first, &[0]), part(&first, &[1]));
            let (u, s) = (part(&second, &[0]), part(&second, &[1]));
            let (tiles, rests) = (tuple(&[&t, &u]), tuple(&[&r, &s, &rest]));
            assert_eq!(whole.logical_divide(&by).unwrap(), tuple(&[&first, &second, &rest]));
            assert_eq!(whole.zipped_divide(&by).unwrap(), tuple(&[&tiles, &rests]));
            assert_eq!(whole.tiled_divide(&by).unwrap(), tuple(&[&tiles, &r, &s, &rest]));
            assert_eq!(whole.flat_divide(&by).unwrap(), tuple(&[&t, &u, &r, &s, &rest]));
            assert_eq!(by.tiles_of(&whole.shape()).unwrap().profile().rank(), 3);
            checked += 1;
        }
    }
    assert!(checked > 1_000, "{checked}");
}

/// `logical_product(A, B)` is `(A, A* o B)`: copies of the block, distinct ones disjoint, and
/// refused exactly when that is no layout.
#[test]
fn product_by_definition() {
    let (mut exist, mut refused, mut overlapping) = (0, 0, 0);
    let tilers: Vec<(Flat, Layout)> =
        flats(&[1, 2, 3, 4], &[0, 1, 2, 3, 5]).into_iter().map(|flat| (flat.clone(), layout(&text(&flat)))).collect();
    for a in flats(&[1, 2, 3, 4], &[0, 1, 2, 3, 6, 8]) {
        let block = layout(&text(&a));
        let Ok(open) = block.weak_complement_open() else {
            assert_eq!(block.logical_product(&tiler("2:1")).unwrap_err().code(), "E0112");
            overlapping += 1;
            continue;
        };
        let open = flat(&open);
        for (b, arrangement) in &tilers {
            let exists = composite_exists(&open, b);
            let product = match block.logical_product(&Tiler::from(arrangement)) {
                Ok(product) => product,
                Err(error) => {
                    assert!(!exists, "logical_product({block}, {arrangement}): {error}");
                    refused += 1;
                    continue;
                }
            };
            assert!(exists, "logical_product({block}, {arrangement}) = {product}");
            assert_eq!(product.rank(), 2);
            assert_eq!(part(&product, &[0]), block);
            let copies = part(&product, &[1]);
            assert_eq!(copies.size(), arrangement.size());
            assert!(b.len() == 1 || copies.rank() == b.len());
            for (mode, given) in copies.modes().zip(arrangement.modes()).filter(|_| b.len() > 1) {
                assert_eq!(mode.size(), given.size());
            }
            let mut owner = std::collections::HashMap::new();
            for copy in 0..size(b) {
                let number = value(b, copy);
                let start = copies.eval(&copy).unwrap();
                assert_eq!(start, value(&open, number), "logical_product({block}, {arrangement}) = {product}");
                for index in 0..size(&a) {
                    let owned = owner.entry(start + value(&a, index)).or_insert(number);
                    assert_eq!(*owned, number, "copies overlap: logical_product({block}, {arrangement}) = {product}");
                }
            }
            exist += 1;
        }
    }
    assert!(exist > 50_000 && refused > 1_000 && overlapping > 100, "{exist} {refused} {overlapping}");
}

/// Blocked and raked products hold the modes of the logical product side by side.
#[test]
fn blocked_and_raked_pair_the_modes() {
    let mut checked = 0;
    for a in flats(&[1, 2, 3], &[0, 1, 2, 3, 6]) {
        for b in flats(&[1, 2, 4], &[0, 1, 2, 3]) {
            let (block, tiler) = (layout(&text(&a)), layout(&text(&b)));
            let Ok(product) = block.logical_product(&Tiler::from(&tiler)) else {
                assert!(block.blocked_product(&tiler).is_err() && block.raked_product(&tiler).is_err());
                continue;
            };
            let (blocked, raked) = (block.blocked_product(&tiler).unwrap(), block.raked_product(&tiler).unwrap());
            let rank = a.len().max(b.len());
            assert_eq!((blocked.rank(), raked.rank()), (rank, rank));
            for mode in 0..rank {
                let of = |side: usize, leaves: &Flat| match (leaves.len() > 1, mode < leaves.len()) {
                    (true, true) => part(&product, &[side, mode]),
                    (false, true) => part(&product, &[side]),
                    _ => Layout::unit(),
                };
                let (first, second) = (of(0, &a), of(1, &b));
                let (pair, interleaved) = (part(&blocked, &[mode]), part(&raked, &[mode]));
                assert_eq!(part(&pair, &[0]), first, "{block} {tiler} {blocked}");
                assert_eq!(part(&pair, &[1]), second, "{block} {tiler} {blocked}");
                assert_eq!(interleaved, Layout::tuple([&second, &first]).unwrap().coalesce().unwrap());
            }
            checked += 1;
        }
    }
    assert!(checked > 5_000, "{checked}");
}

/// `tile_to_shape` covers the target, rounded up, with copies of the block that fill memory in the
/// given order.
#[test]
fn tile_to_shape_covers() {
    let orders = ["(0,1,2)", "(0,2,1)", "(1,0,2)", "(1,2,0)", "(2,0,1)", "(2,1,0)", "(-7,40,3)"];
    let mut checked = 0;
    for block in ["(2,3):(1,2)", "(2,3):(3,1)", "(2,2,3):(3,6,1)", "4:1", "((2,2),3):((1,6),2)", "(3,1):(1,0)"] {
        let block = layout(block);
        for target in ["(4,6,2)", "(5,7,3)", "(1,1,1)", "((2,2),(3,3),4)", "(8,3,5)"] {
            let target = tree(target);
            for order in orders {
                let keys = tree(order);
                let tiled = block.tile_to_shape(&target, Some(&keys)).unwrap();
                assert_eq!(tiled.rank(), 3);
                let mut offsets = HashSet::new();
                for index in 0..tiled.size() {
                    offsets.insert(tiled.eval(&index).unwrap());
                }
                // The block is compact, so the copies fill memory without a hole.
                assert_eq!(offsets, (0..tiled.size()).collect(), "{block} {target} {order} {tiled}");
                let mut modes: Vec<usize> = (0..3).collect();
                modes.sort_by_key(|mode| keys.leaves()[*mode]);
                let mut step = block.size();
                for mode in modes {
                    let wanted: i64 = target.at(&[mode]).unwrap().leaves().iter().product();
                    let own = block.mode(mode).map_or(1, |mode| mode.size());
                    let (tile, copies) = (part(&tiled, &[mode, 0]), part(&tiled, &[mode, 1]));
                    assert_eq!(tile, block.mode(mode).unwrap_or(Layout::unit()));
                    assert_eq!(copies.size(), (wanted + own - 1) / own);
                    let wanted = if copies.size() == 1 { 0 } else { step };
                    assert_eq!(copies.leaves()[0].stride, wanted, "{block} {target} {order} {tiled}");
                    step *= copies.size();
                }
                checked += 1;
            }
            let first = block.tile_to_shape(&target, Some(&tree("(0,1,2)")));
            assert_eq!(block.tile_to_shape(&target, None), first);
        }
    }
    assert_eq!(checked, 6 * 5 * 7);
}

#[test]
fn tile_to_shape_refuses() {
    let block = layout("(2,3):(1,2)");
    let code = |target: &str, order: Option<&str>| {
        block.tile_to_shape(&tree(target), order.map(tree).as_ref()).unwrap_err().code()
    };
    assert_eq!(code("(4,6)", Some("(1,1)")), "E0120");
    assert_eq!(code("(4,6)", Some("(0,1,2)")), "E0106");
    assert_eq!(code("(4,6)", Some("0")), "E0106");
    assert_eq!(code("(4,6)", Some("((0,1))")), "E0106");
    assert_eq!(code("12", None), "E0106");
    assert_eq!(code("(4,0)", None), "E0102");
    assert_eq!(code("(4611686018427387904,6)", None), "E0103");
}

#[test]
fn composition_with_a_tiler() {
    let whole = layout("((4,3),(6,2),5):((1,100),(7,50),9)");
    let composed = |text: &str| whole.compose_tiler(&tiler(text)).unwrap().to_string();
    assert_eq!(composed("_"), whole.to_string());
    assert_eq!(composed("2:6"), "2:102");
    // Modes beyond the tiler are dropped; a mode under _ stays.
    assert_eq!(composed("[_;[3:2]]"), "((4,3),(3)):((1,100),(14))");
    assert_eq!(composed("(2,3)"), "(2,3):(1,7)");
    assert_eq!(composed("[]"), "():()");
    // An error names the mode from the root of the tiler.
    let LayoutError::Uneven(uneven) = whole.compose_tiler(&tiler("[6:1;_]")).unwrap_err() else {
        panic!("a step over the end of a mode");
    };
    assert_eq!(uneven.mode.path, [0]);
    let LayoutError::Carry(carry) =
        layout("(9,(4,3)):(1,(1,100))").compose_tiler(&tiler("[_;(2,2):(1,3)]")).unwrap_err()
    else {
        panic!("a sum that carries");
    };
    assert_eq!(carry.crossing().path.first(), Some(&1));
}

/// `_` keeps a mode; where tiles and rests are gathered, the mode must be a pair, which is split.
#[test]
fn keeping_a_mode() {
    let whole = layout("((2,(128,16)),(2,4,2)):((1,(2,256)),(4096,8192,32768))");
    let by = tiler("[_;[2:1;1:1]]");
    assert_eq!(
        whole.flat_divide(&by).unwrap().to_string(),
        "(2,(2,1),(128,16),(1,4,2)):(1,(4096,0),(2,256),(0,8192,32768))"
    );
    let logical = whole.logical_divide(&tiler("[_;_]")).unwrap();
    assert_eq!(logical, whole);
    let error = whole.zipped_divide(&tiler("[_;_]")).unwrap_err();
    assert!(matches!(&error, LayoutError::Tiler { op: "zipped_divide", path, .. } if path == &[1]), "{error}");
    assert!(error.help().is_some());
    assert_eq!(layout("(4,6):(1,4)").zipped_divide(&Tiler::<i64>::Keep).unwrap().to_string(), "(4,6):(1,4)");
    assert_eq!(layout("4:1").flat_product(&Tiler::<i64>::Keep).unwrap_err().code(), "E0119");
}

#[test]
fn tilers_that_do_not_fit() {
    let whole = layout("((4,3),6):((1,4),12)");
    for divided in [
        whole.logical_divide(&tiler("[_;[2:1;3:1];_]")),
        whole.zipped_divide(&tiler("(1,2,3)")),
        whole.compose_tiler(&tiler("(1,2,3)")),
        whole.logical_product(&tiler("(1,2,3)")),
    ] {
        assert!(matches!(divided, Err(LayoutError::Tiler { path, .. }) if path.is_empty()));
    }
    let error = whole.tiled_divide(&tiler("[[2:1;1:1];[2:1;1:1]]")).unwrap_err();
    assert!(matches!(&error, LayoutError::Tiler { path, .. } if path == &[1]), "{error}");
    // A tile without a complement: which mode of which tile.
    let error = whole.logical_divide(&tiler("[_;(2,2):(1,3)]")).unwrap_err();
    assert!(matches!(&error, LayoutError::NotChain(chain) if chain.outer.0 == [1, 1]), "{error}");
    assert_eq!(error.place().map(|(_, path)| path.to_vec()), Some(vec![1, 1]));
    assert_eq!(error.operation(), Some("logical_divide"));
    assert_eq!(whole.logical_divide(&tiler("[2:-1;_]")).unwrap_err().code(), "E0113");
    // Rounding up may take the size out of range.
    let ones = layout("(1,1,1):(0,0,0)");
    assert_eq!(ones.zipped_divide(&tiler("(4294967296,4294967296,2)")).unwrap_err().code(), "E0103");
    assert_eq!(
        layout("2:4611686018427387904").logical_divide(&tiler("2:1")).unwrap().to_string(),
        "(2,1):(4611686018427387904,0)"
    );
    assert_eq!(layout("4:4611686018427387904").logical_divide(&tiler("2:1")).unwrap_err().code(), "E0103");
}

#[test]
fn text_of_tilers() {
    for text in ["_", "4:1", "(2,3):(1,4)", "[]", "[_]", "[2:1;3:1]", "[_;[2:1;(2,2):(1,4);[]];_]"] {
        assert_eq!(tiler(text).to_string(), text);
    }
    for (text, canonical) in [
        ("(2,3)", "[2:1;3:1]"),
        ("6", "6:1"),
        ("()", "[]"),
        ("((128),(128))", "[[128:1];[128:1]]"),
        ("<4,8>", "[4:1;8:1]"),
        ("<4:2,(2,2):(1,8),_>", "[4:2;(2,2):(1,8);_]"),
        (" [ _ ; 4 : 2 ; ( 2 , 3 ) ] ", "[_;4:2;[2:1;3:1]]"),
        ("[_4:_2;_3]", "[4:2;3:1]"),
    ] {
        assert_eq!(tiler(text).to_string(), canonical, "{text}");
        assert_eq!(tiler(text), tiler(canonical));
    }
    for (text, at) in
        [("[2:1;3:1", 8), ("[2:1,3:1]", 4), ("[2:1]]", 5), ("", 0), ("[2:1;é]", 5), ("[(2,3]", 5), ("_x", 1)]
    {
        let error = text.parse::<Tiler>().unwrap_err();
        assert!(matches!(error, LayoutError::Syntax { at: found, .. } if found == at), "{text}: {error:?}");
    }
    assert_eq!("(2,0)".parse::<Tiler>().unwrap_err().code(), "E0102");
    assert_eq!("[".repeat(1_000_000).parse::<Tiler>().unwrap_err().code(), "E0104");
    assert_eq!("(".repeat(1_000_000).parse::<Tiler>().unwrap_err().code(), "E0104");
    let mut deep: Tiler = Tiler::Keep;
    let refused = (0..100).find_map(|_| {
        let inner = std::mem::replace(&mut deep, Tiler::Keep);
        Tiler::modes([inner]).map(|outer| deep = outer).err()
    });
    assert_eq!(refused.map(|error| error.code()), Some("E0104"));
}

/// The worked examples of the tiling articles and of CuTe's documentation.
#[test]
fn worked_examples() {
    let cases = [
        ("128:1", "32:1", "(32,4):(1,32)"),
        ("12:1", "4:1", "(4,3):(1,4)"),
        ("10:1", "4:1", "(4,3):(1,4)"), // rounded up
        ("32:1", "2:8", "(2,(8,2)):(8,(1,16))"),
        ("6:2", "(2,3):(3,1)", "((2,3),1):((6,2),0)"),
        ("(4,6):(6,1)", "(2,2)", "((2,2),(2,3)):((6,12),(1,2))"),
        ("(6,8):(8,1)", "[(3):(1);(4):(1)]", "(((3),2),((4),2)):(((8),24),((1),4))"),
    ];
    for (whole, by, divided) in cases {
        assert_eq!(layout(whole).logical_divide(&tiler(by)).unwrap().to_string(), divided, "{whole} by {by}");
    }
    let tiles = layout("(128,64):(64,1)").zipped_divide(&tiler("[16:1;8:1]")).unwrap();
    assert_eq!(tiles.to_string(), "((16,8),(8,8)):((64,1),(1024,8))");
    let padded = layout("3:32").logical_product(&tiler("(8,8):(8,1)")).unwrap();
    assert_eq!(padded.to_string(), "(3,((4,2),8)):(32,((8,96),1))");
    // A step of the arrangement that does not fit the gaps has no layout; a rounded one would let
    // copies overlap.
    assert_eq!(layout("3:3").logical_product(&tiler("(2,4):(1,2)")).unwrap_err().code(), "E0107");
    let raked = layout("128:1").raked_product(&layout("(4,4):(1,4)")).unwrap();
    assert_eq!(raked.to_string(), "((4,128),4):((128,1),512)");
    let target = tree("((128,1),(16,4),1)");
    let tiled = layout("(8,64):(64,1)").tile_to_shape(&target, None).unwrap();
    assert_eq!(tiled.to_string(), "((8,16),(64,1),(1,1)):((64,512),(1,0),(0,0))");
}
