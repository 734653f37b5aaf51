//! Views: what is proved when one is made, and the element at every coordinate.
//!
//! The oracle is index arithmetic on the text's own numbers: offsets are listed by nested loops
//! over extents and strides.

use tilewright_layout::{AnyLayout, Composed, Layout, Leaf, StaticComposed, StaticLayout, Swizzle, Tree, Xor};
use tilewright_tensor::{AnyOffsets, Offsets, Tensor, TensorView, TensorViewMut};

/// A list of (extent, stride) pairs, first mode fastest.
type Modes = Vec<(i64, i64)>;

/// The offsets of a flat layout, first mode fastest.
fn offsets(modes: &[(i64, i64)]) -> Vec<i64> {
    modes.iter().rev().fold(vec![0], |later, (extent, stride)| {
        later.iter().flat_map(|base| (0..*extent).map(move |i| base + i * stride)).collect()
    })
}

fn layout(modes: &[(i64, i64)]) -> Layout {
    let shape = Tree::flat(modes.iter().map(|mode| mode.0)).unwrap();
    let stride = Tree::flat(modes.iter().map(|mode| mode.1)).unwrap();
    Layout::new(&shape, &stride).unwrap()
}

/// All lists of up to `rank` modes with extents up to 3 and strides from -3 to 4.
fn small(rank: usize) -> Vec<Modes> {
    let mut all = vec![vec![]];
    let mut last: Vec<Modes> = vec![vec![]];
    for _ in 0..rank {
        last = last
            .iter()
            .flat_map(|modes| {
                (1..4).flat_map(move |extent| {
                    (-3..5).map(move |stride| modes.iter().copied().chain([(extent, stride)]).collect())
                })
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// A layout of which only the kind that it happens to be is known.
fn any(layout: impl Into<AnyLayout>) -> AnyOffsets {
    AnyOffsets::try_from(&layout.into()).unwrap()
}

/// Checks both kinds of view of a map whose offsets are known, on memory of every length and origin
/// up to what it needs.
fn check<L: Offsets>(map: &L, offsets: &[i64]) {
    let (least, greatest) = (*offsets.iter().min().unwrap(), *offsets.iter().max().unwrap());
    assert_eq!(map.range().unwrap(), (least, greatest), "{map}");
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let distinct = sorted.len() == offsets.len();
    assert_eq!(map.injective().unwrap(), distinct, "{map}");
    let collision = map.collision();
    assert_eq!(collision.is_none(), distinct, "{map}");
    if let Some((first, second, offset)) = collision {
        assert!(first < second, "{map}");
        assert_eq!((offsets[first as usize], offsets[second as usize]), (offset, offset), "{map}");
    }
    let (first, needed) = ((-least).max(0) as usize, (greatest - least.min(0) + 1).max(1) as usize);
    for origin in first.saturating_sub(1)..first + 2 {
        for elements in needed.saturating_sub(1)..needed + 2 {
            let mut memory: Vec<i64> = (0..elements as i64).collect();
            let fits = offsets.iter().all(|offset| (0..elements as i64).contains(&(origin as i64 + offset)));
            let view = TensorView::with_origin(&memory, origin, map.clone());
            assert_eq!(view.is_ok(), fits, "{map} {origin} {elements}");
            match view {
                Ok(view) => {
                    for (index, offset) in offsets.iter().enumerate() {
                        assert_eq!(view.get(index as i64), Ok(&(origin as i64 + offset)), "{map}");
                    }
                    assert_eq!(view.get(offsets.len() as i64).unwrap_err().code(), "E0403");
                    assert_eq!(view.get(-1).unwrap_err().code(), "E0403");
                }
                Err(error) => assert_eq!(error.code(), "E0401"),
            }
            match TensorViewMut::with_origin(&mut memory, origin, map.clone()) {
                Ok(mut view) => {
                    assert!(fits && distinct, "{map}");
                    for index in 0..offsets.len() as i64 {
                        view.set(index, -1 - index).unwrap();
                    }
                    for (index, offset) in offsets.iter().enumerate() {
                        assert_eq!(memory[(origin as i64 + offset) as usize], -1 - index as i64, "{map}");
                    }
                    let untouched = memory.iter().filter(|value| **value >= 0).count();
                    assert_eq!(untouched, elements - offsets.len());
                }
                Err(error) => assert_eq!(error.code(), if fits { "E0402" } else { "E0401" }, "{map}"),
            }
        }
    }
}

#[test]
fn integer_layouts() {
    for modes in small(2) {
        check(&layout(&modes), &offsets(&modes));
        check(&any(layout(&modes)), &offsets(&modes));
    }
    for modes in small(3).into_iter().step_by(7) {
        check(&layout(&modes), &offsets(&modes));
    }
}

#[test]
fn composed_layouts() {
    for modes in small(2) {
        let inner = offsets(&modes);
        for (bits, base, shift) in [(1, 0, 1), (2, 0, 2), (1, 1, 1), (1, 0, -1), (2, 0, 3)] {
            let swizzle = Swizzle::new(bits, base, shift).unwrap();
            for offset in [0, 5, 16] {
                let values: Vec<i64> = inner.iter().map(|value| swizzle.apply(offset + value)).collect();
                let composed = Composed::new(swizzle, offset, layout(&modes)).unwrap();
                if values.iter().all(|value| *value >= -40) {
                    check(&composed, &values);
                    check(&any(composed), &values);
                }
            }
        }
        let folded: Vec<i64> = inner.iter().map(|value| layout(&[(4, 3), (2, 1)]).eval(value).unwrap()).collect();
        check(&Composed::new(layout(&[(4, 3), (2, 1)]), 0, layout(&modes)).unwrap(), &folded);
    }
}

/// The carry-less product, bit by bit.
fn carryless(a: i64, b: i64) -> i64 {
    (0..6).filter(|bit| a >> bit & 1 == 1).fold(0, |sum, bit| sum ^ b << bit)
}

#[test]
fn xor_layouts_and_what_they_are_composed_of() {
    for extents in [[2, 3, 1], [4, 4, 2], [3, 5, 2], [8, 2, 2]] {
        for strides in [[1, 9, 2], [3, 5, 0], [0, 1, 16], [6, 7, 1], [2, 4, 8]] {
            let shape = Tree::flat(extents).unwrap();
            let steps = Tree::flat(strides.map(|bits| Xor::new(bits as u64).unwrap())).unwrap();
            let map = Layout::new(&shape, &steps).unwrap();
            let mut values = Vec::new();
            for k in 0..extents[2] {
                for j in 0..extents[1] {
                    for i in 0..extents[0] {
                        values.push(carryless(i, strides[0]) ^ carryless(j, strides[1]) ^ carryless(k, strides[2]));
                    }
                }
            }
            check(&map, &values);
            check(&map.derived().unwrap(), &values);
            check(&any(map), &values);
        }
    }
}

const ROWS: StaticLayout =
    StaticLayout::new(&[Leaf { extent: 3, stride: 4 }, Leaf { extent: 4, stride: 1 }], &[0, 1], &[3, 0, 0]).unwrap();
const PAIRS: StaticLayout =
    StaticLayout::new(&[Leaf { extent: 3, stride: 4 }, Leaf { extent: 4, stride: -1 }], &[1, 1], &[5, 1, 3, 0, 0])
        .unwrap();
const TILE: StaticComposed = StaticComposed::new(Swizzle::checked(1, 0, 2).unwrap(), 0, ROWS).unwrap();

#[test]
fn constant_layouts() {
    let rows = offsets(&[(3, 4), (4, 1)]);
    check(&ROWS, &rows);
    check(&PAIRS, &offsets(&[(3, 4), (4, -1)]));
    check(&TILE, &rows.iter().map(|value| value ^ (value >> 2 & 1)).collect::<Vec<_>>());
}

#[test]
fn coordinates_of_every_form() {
    let nested: Layout = "((2,3),4):((1,8),2)".parse().unwrap();
    let memory: Vec<i64> = (0..24).collect();
    let view = TensorView::new(&memory, nested).unwrap();
    for a in -1..3 {
        for b in -1..4 {
            for c in -1..5 {
                let inside = (0..2).contains(&a) && (0..3).contains(&b) && (0..4).contains(&c);
                let value = memory.get((a + 8 * b + 2 * c) as usize).filter(|_| inside);
                let tree: Tree<i64> = format!("(({a},{b}),{c})").parse().unwrap();
                assert_eq!(view.get(&tree).ok(), value, "{tree}");
                if inside {
                    assert_eq!(view.get([a + 2 * b, c]).ok(), value);
                    assert_eq!(view.get(a + 2 * b + 6 * c).ok(), value);
                }
            }
        }
    }
    for position in [[6, 0], [0, 4], [-1, 0]] {
        assert_eq!(view.get(position).unwrap_err().code(), "E0403");
    }
    for text in ["(0,0,0)", "((0,0,0),0)", "((0,0),(0))", "()"] {
        assert_eq!(view.get(&text.parse::<Tree<i64>>().unwrap()).unwrap_err().code(), "E0403", "{text}");
    }
    // As many modes as leaves, and yet not one leaf in each.
    let hollow: Layout = "((),(2,3)):((),(1,2))".parse().unwrap();
    let view = TensorView::new(&memory, hollow).unwrap();
    assert_eq!(view.get([0, 5]), Ok(&5));
    assert!(view.get([1, 2]).is_err());
    // One mode, with parentheses and without, of a plain layout and a composed one.
    for text in ["4:3", "(4):(3)"] {
        let view = TensorView::new(&memory, text.parse::<Layout>().unwrap()).unwrap();
        assert_eq!((view.get([2]), view.get([4]).is_err()), (Ok(&6), true));
        let composed: Composed = format!("S<1,0,1> o 0 o {text}").parse().unwrap();
        let view = TensorView::new(&memory, composed).unwrap();
        assert_eq!((view.get([2]), view.get([4]).is_err()), (Ok(&7), true));
    }
    // A memory of one element.
    let point: Layout = "():()".parse().unwrap();
    assert_eq!(TensorView::new(&memory, point).unwrap().get(0), Ok(&0));
}

#[test]
fn elements_without_size() {
    let memory = vec![(); usize::MAX];
    let far: Layout = "(2,2):(1,4611686018427387904)".parse().unwrap();
    let view = TensorView::new(&memory, far.clone()).unwrap();
    assert_eq!(view.get([1, 1]), Ok(&()));
    assert_eq!(TensorView::new(&memory[..1 << 62], far.clone()).unwrap_err().code(), "E0401");
    let mut tensor = Tensor::from_vec(memory, far).unwrap();
    assert_eq!(tensor.view_mut().get_mut([1, 1]), Ok(&mut ()));
    assert_eq!(tensor.into_vec().len(), usize::MAX);
}

#[test]
fn sums_of_offset_and_origin_do_not_wrap() {
    let memory = [0_u64; 4];
    for text in ["2:9223372036854775807", "2:-9223372036854775807", "(2,2):(4611686018427387904,4611686018427387903)"] {
        let map: Layout = text.parse().unwrap();
        for origin in [0, 1, 3, usize::MAX, 1 << 63] {
            let error = TensorView::with_origin(&memory, origin, map.clone()).unwrap_err();
            assert_eq!(error.code(), "E0401", "{text} {origin}");
        }
    }
    let overflowing: Layout = "(2,2):(9223372036854775807,9223372036854775807)".parse().unwrap();
    assert_eq!(TensorView::new(&memory, overflowing).unwrap_err().code(), "E0103");
}

#[test]
fn tensors_own_and_return_their_memory() {
    use std::rc::Rc;
    let counted = Rc::new(());
    let map: Layout = "(3,2):(1,4)".parse().unwrap();
    let tensor = Tensor::filled(map.clone(), counted.clone()).unwrap();
    assert_eq!(Rc::strong_count(&counted), 8); // seven places, two of them beside the tensor's coordinates
    let copy = tensor.try_clone().unwrap();
    assert_eq!(Rc::strong_count(&counted), 15);
    drop(copy);
    let vec = tensor.into_vec();
    assert_eq!((vec.len(), Rc::strong_count(&counted)), (7, 8));
    let pointer = vec.as_ptr();
    let back = Tensor::from_vec(vec, map).unwrap();
    assert_eq!(back.as_ptr(), pointer);
    let vec = back.into_vec();
    assert_eq!(vec.as_ptr(), pointer);
    drop(vec);
    assert_eq!(Rc::strong_count(&counted), 1);

    let mirrored: Layout = "(3,2):(-1,4)".parse().unwrap();
    let tensor = Tensor::<f64>::zeroed(mirrored).unwrap();
    assert_eq!((tensor.as_slice().len(), tensor.origin()), (7, 2));
    assert_eq!(tensor.as_slice().as_ptr() as usize % tilewright_tensor::ALIGNMENT, 0);
}
