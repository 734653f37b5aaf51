//! Law: the text of a layout is the text of its shape, a colon, and the text of its strides; it
//! reads back as the layout; and `write_to` appends exactly what `Display` gives.

use tilewright_layout::{Layout, Leaf, Profile, Tree};

/// Checks the law; the texts of shape and strides come from `Tree`, which knows nothing of layouts.
fn check(layout: &Layout) {
    let expected = format!("{}:{}", layout.shape(), layout.stride());
    assert_eq!(layout.to_string(), expected);
    assert_eq!(format!("{layout:?}"), format!("Layout({expected})"));
    let mut line = b"before ".to_vec();
    layout.write_to(&mut line);
    assert_eq!(line, format!("before {expected}").into_bytes());
    layout.write_to(&mut line);
    assert_eq!(line, format!("before {expected}{expected}").into_bytes());
    assert_eq!(expected.parse::<Layout>().as_ref(), Ok(layout), "{expected}");
    // The general reader is reached by a space.
    assert_eq!(format!(" {expected}").parse::<Layout>().as_ref(), Ok(layout), "{expected}");
}

/// Every profile of this many nodes, empty tuples included.
fn profiles(nodes: usize) -> Vec<Profile> {
    /// The lists of profiles with this many nodes together.
    fn lists(nodes: usize) -> Vec<Vec<Profile>> {
        if nodes == 0 {
            return vec![vec![]];
        }
        let mut all = Vec::new();
        for first in 1..=nodes {
            for head in profiles(first) {
                for tail in lists(nodes - first) {
                    all.push([vec![head.clone()], tail].concat());
                }
            }
        }
        all
    }
    let mut all: Vec<Profile> = lists(nodes - 1).iter().map(|modes| Profile::tuple(modes).unwrap()).collect();
    if nodes == 1 {
        all.push(Profile::leaf());
    }
    all
}

fn layout(profile: &Profile, leaf: impl Fn(usize) -> (i64, i64)) -> Layout {
    let leaves = (0..profile.leaves()).map(|number| {
        let (extent, stride) = leaf(number);
        Leaf { extent, stride }
    });
    Layout::from_tree(Tree::new(profile.clone(), leaves).unwrap()).unwrap()
}

#[test]
fn every_small_profile() {
    let mut count = 0;
    for nodes in 1..=9 {
        for profile in profiles(nodes) {
            count += 1;
            check(&layout(&profile, |leaf| (leaf as i64 + 1, 7_i64.pow(leaf as u32))));
            check(&layout(&profile, |leaf| (1, (-11_i64).pow(leaf as u32))));
        }
    }
    // The large Schroeder numbers, for one to nine nodes: 2 + 2 + 6 + 22 + 90 + 394 + 1806 + 8558 +
    // 41586.
    assert_eq!(count, 52_466);
}

#[test]
fn every_length_of_number() {
    let mut numbers = vec![i64::MIN, i64::MIN + 1, i64::MAX, 0];
    for digits in 0..19 {
        let power = 10_i64.pow(digits);
        numbers.extend([power - 1, power, power + 1, 5 * (power / 10) + 7 * (power / 100)]);
    }
    numbers.extend((0..63).map(|bit| 1 << bit));
    for number in numbers {
        for profile in ["*", "(*)", "(*,*)", "((*,*),*)"] {
            let profile = profile.replace('*', "1").parse::<Tree<i64>>().unwrap().profile().clone();
            check(&layout(&profile, |_| (1, number)));
            check(&layout(&profile, |_| (1, number.wrapping_neg())));
            if number > 0 {
                check(&layout(&profile, |leaf| (if leaf == 0 { number } else { 1 }, number)));
            }
        }
    }
    for number in 0..20_000 {
        check(&layout(&Profile::leaf(), |_| (number + 1, number)));
    }
}

#[test]
fn around_the_limits_of_the_short_way() {
    // Numbers of leaves around eight, tuples around six, nodes around sixteen, and text around the
    // room for it.
    for leaves in 1..24 {
        for tuples in 0..20 {
            for stride in [0, 9, 99, 999, 9999, 99_999, 999_999, 9_999_999, i64::MIN] {
                let flat = Profile::flat(leaves).unwrap();
                let left = (0..tuples).fold(flat.clone(), |inner, _| Profile::tuple([&inner]).unwrap());
                let right = (0..tuples).fold(flat, |inner, _| Profile::tuple([&Profile::leaf(), &inner]).unwrap());
                let both = Profile::tuple([&left, &right, &left]).unwrap();
                for profile in [left, right, both] {
                    check(&layout(&profile, |leaf| (if leaf < 4 { 1000 } else { 1 }, stride / (leaf as i64 + 1))));
                }
            }
        }
    }
}

#[test]
fn the_deepest_profile() {
    let deep = |depth: usize| (0..depth).fold(Profile::leaf(), |inner, _| Profile::tuple([&inner]).unwrap());
    for depth in [1, 5, 6, 7, 8, 15, 16, 17, 63, 64] {
        check(&layout(&deep(depth), |_| (5, -3)));
    }
}
