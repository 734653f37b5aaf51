//! Transforms, predicated copies and reductions against the naive loop.

use tilewright_layout::{Composed, Layout, Tree};
use tilewright_tensor::{Offsets, Tensor, axpby, copy_if, reduce, transform2};

/// Layouts of these extents: orders, padding, and a swizzle.
fn layouts(extents: &[i64]) -> Vec<Layout> {
    let shape = Tree::flat(extents.iter().copied()).unwrap();
    let mut all = vec![Layout::compact(&shape).unwrap(), Layout::row_major(&shape).unwrap()];
    for turn in 1..extents.len() {
        let (mut strides, mut step) = (vec![0; extents.len()], 1);
        for k in 0..extents.len() {
            let mode = (k + turn) % extents.len();
            strides[mode] = step;
            step = step * extents[mode] + k as i64;
        }
        all.push(Layout::new(&shape, &Tree::flat(strides).unwrap()).unwrap());
    }
    all
}

fn swizzled(layout: &Layout) -> Composed {
    Composed::new(tilewright_layout::Swizzle::new(2, 1, 3).unwrap(), 3, layout.clone()).unwrap()
}

fn numbers<L: Offsets>(layout: L, seed: i64) -> Tensor<i64, L> {
    Tensor::from_fn(layout, |index| (index * 7919 + seed) % 1009 - 500).unwrap()
}

#[test]
fn elements_at_one_index_meet() {
    let mut cases = 0;
    for extents in [vec![5], vec![7, 9], vec![70, 130], vec![3, 4, 5], vec![2, 6, 3, 4]] {
        let all = layouts(&extents);
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            for dst in &all {
                check(a.clone(), swizzled(b), dst.clone());
                check(a.clone(), b.clone(), swizzled(dst));
                check(a.clone(), b.clone(), dst.clone());
                // Another shape of the same size.
                check(a.clone(), Layout::mode_of(a.size(), 2).unwrap(), dst.clone());
                cases += 4;
            }
        }
    }
    assert!(cases > 300, "{cases}");
}

fn check<A: Offsets, B: Offsets, D: Offsets>(a: A, b: B, dst: D) {
    let (a, b, before) = (numbers(a, 1), numbers(b, 2), numbers(dst.clone(), 3));
    let mut found = before.try_clone().unwrap();
    transform2(&a.view(), &b.view(), &mut found.view_mut(), |a, b, dst| *dst = 3 * *dst + 5 * a - b).unwrap();
    let mut scaled = before.try_clone().unwrap();
    axpby(3, &a.view(), -2, &mut scaled.view_mut()).unwrap();
    let holds = Tensor::from_fn(b.layout().clone(), |index| index % 3 == 0).unwrap();
    let mut some = before.try_clone().unwrap();
    copy_if(&a.view(), &holds.view(), &mut some.view_mut()).unwrap();
    let mut untouched = before.try_clone().unwrap();
    for index in 0..dst.size() {
        let (a, b, old) = (a.get(index).unwrap(), b.get(index).unwrap(), *before.get(index).unwrap());
        assert_eq!(*found.get(index).unwrap(), 3 * old + 5 * a - b, "{dst}");
        assert_eq!(*scaled.get(index).unwrap(), 3 * a - 2 * old, "{dst}");
        assert_eq!(*some.get(index).unwrap(), if index % 3 == 0 { *a } else { old }, "{dst}");
        untouched.set(index, *found.get(index).unwrap()).unwrap();
    }
    // Nothing between the elements has changed.
    assert_eq!(untouched.as_slice(), found.as_slice());
}

#[test]
fn reductions() {
    let mut cases = 0;
    for extents in [vec![6], vec![7, 9], vec![300, 400], vec![3, 4, 5], vec![2, 6, 3, 4]] {
        for layout in layouts(&extents) {
            let a = numbers(layout.clone(), 4);
            for chosen in 0..1_u32 << extents.len() {
                let modes: Vec<usize> = (0..extents.len()).filter(|mode| chosen >> mode & 1 == 1).collect();
                let kept: Vec<i64> =
                    (0..extents.len()).filter(|mode| !modes.contains(mode)).map(|mode| extents[mode]).collect();
                let kept = if kept.is_empty() { vec![1] } else { kept };
                for to in layouts(&kept) {
                    reduced(&a, &modes, to.clone());
                    reduced(&a, &modes, swizzled(&to));
                    cases += 2;
                }
            }
        }
    }
    assert!(cases > 200, "{cases}");
}

fn reduced<D: Offsets>(a: &Tensor<i64>, modes: &[usize], to: D) {
    let mut expected = vec![100; to.size() as usize];
    let extents: Vec<i64> = a.layout().leaves().iter().map(|leaf| leaf.extent).collect();
    for index in 0..a.size() {
        let (mut rest, mut at, mut step) = (index, 0, 1);
        for (mode, extent) in extents.iter().enumerate() {
            if !modes.contains(&mode) {
                at += rest % extent * step;
                step *= extent;
            }
            rest /= extent;
        }
        expected[at as usize] += a.get(index).unwrap();
    }
    let mut found = Tensor::filled(to, -1_i64).unwrap();
    reduce(&a.view(), modes, &mut found.view_mut(), 100, |sum, a| sum + a).unwrap();
    for (index, expected) in expected.iter().enumerate() {
        assert_eq!(found.get(index as i64).unwrap(), expected, "{} {modes:?}", found.layout());
    }
}

#[test]
fn refusals() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let a = numbers(layout("(2,3):(3,1)"), 0);
    let mut dst = numbers(layout("4:1"), 0);
    assert_eq!(axpby(1, &a.view(), 1, &mut dst.view_mut()).unwrap_err().code(), "E0420");
    let mut reduce = |modes: &[usize]| reduce(&a.view(), modes, &mut dst.view_mut(), 0, |sum, a| sum + a).unwrap_err();
    assert_eq!(reduce(&[2]).to_string(), "there is no mode 2 to reduce");
    assert_eq!(reduce(&[0]).to_string(), "mode 1, of size 3, is kept, but its mode in the result has size 4");
    assert_eq!(reduce(&[]).code(), "E0422");
    assert_eq!(reduce(&[0, 1]).to_string(), "the result has a mode of size 4 for which no mode is kept");
}
