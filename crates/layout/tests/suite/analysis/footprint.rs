//! Footprints, permutations and distances against sets, and against doing the moves.

use std::collections::BTreeMap;

use tilewright_layout::analysis::{Storage, distance, footprint, permutation};
use tilewright_layout::{Composed, Layout};

/// Every layout of three modes with these extents and strides.
fn layouts() -> Vec<Layout> {
    let mut all = Vec::new();
    for shape in ["(2,3,2)", "(4,2,2)", "(3,(2,2))", "(1,5,2)"] {
        for a in [-2, 0, 1, 3] {
            for b in [1, 2, 4, 6] {
                for c in [0, 1, 2, 6, 8, 12] {
                    let stride = if shape.contains("((") || shape.contains(",(") {
                        format!("({a},({b},{c}))")
                    } else {
                        format!("({a},{b},{c})")
                    };
                    all.push(format!("{shape}:{stride}").parse().unwrap());
                }
            }
        }
    }
    all
}

#[test]
fn a_footprint_says_what_a_set_says() {
    for layout in layouts() {
        let offsets: Vec<i64> = (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect();
        let mut held: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (index, offset) in offsets.iter().enumerate() {
            held.entry(*offset).or_default().push(index as i64);
        }
        let found = footprint(&Storage::from(&layout)).unwrap();
        let (least, greatest) = (*held.keys().next().unwrap(), *held.keys().last().unwrap());
        assert_eq!((found.least, found.greatest, found.offsets), (least, greatest, held.len() as i64), "{layout}");
        let missing: Vec<i64> = (least..=greatest).filter(|offset| !held.contains_key(offset)).collect();
        let told: Vec<i64> = found.gaps.iter().flat_map(|(start, len)| *start..start + len).collect();
        assert_eq!((told, found.holes()), (missing.clone(), missing.len() as i64), "{layout}");
        assert_eq!(found.shared, held.values().map(|indices| indices.len() as i64).max().unwrap());
        let twice = held.values().find(|indices| indices.len() > 1).map(|indices| (indices[0], indices[1]));
        assert_eq!(found.alias, twice, "{layout}");
        let whole = |block: usize| {
            offsets.len().is_multiple_of(block)
                && offsets.chunks(block).all(|run| run.iter().zip(run[0]..).all(|(offset, wanted)| *offset == wanted))
        };
        let widest = (1..=offsets.len()).filter(|block| whole(*block)).max().unwrap();
        assert_eq!(found.contiguity, widest as i64, "{layout}");
        assert_eq!(found.ascending, offsets.windows(2).all(|pair| pair[0] < pair[1]), "{layout}");
        // A permutation exactly where there are neither gaps nor repeats.
        let permuted = permutation(&Storage::from(&layout));
        assert_eq!(permuted.is_ok(), missing.is_empty() && twice.is_none(), "{layout}");
        let Ok(permuted) = permuted else {
            assert_eq!(permuted.unwrap_err().code(), "E0609");
            continue;
        };
        for cycle in permuted.cycles() {
            for (at, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                assert_eq!(offsets[*at as usize] - least, *next, "{layout}");
            }
        }
        // Done as often as its order says, and no less, it is the identity.
        let apply = |index: i64| offsets[index as usize] - least;
        let mut now: Vec<i64> = (0..layout.size()).collect();
        let mut times = 0;
        loop {
            now = now.iter().map(|index| apply(*index)).collect();
            times += 1;
            if now.iter().copied().eq(0..layout.size()) {
                break;
            }
        }
        assert_eq!(permuted.order(), Some(times), "{layout}");
        let inversions = (0..offsets.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
        let odd = inversions.filter(|(j, i)| offsets[*j] > offsets[*i]).count() % 2 == 1;
        assert_eq!(permuted.is_even(), !odd, "{layout}");
    }
}

#[test]
fn the_swaps_of_a_distance_are_those_that_sorting_in_place_does() {
    let texts = ["(4,4):(4,1)", "(4,4):(1,4)", "((2,2),4):((8,1),2)", "16:1", "(4,4):(1,5)", "(8,2):(1,0)", "16:-1"];
    let mut storages: Vec<Storage> = texts.iter().map(|text| Storage::from(&text.parse::<Layout>().unwrap())).collect();
    let swizzled: Composed = "S<2,0,2> o 0 o (4,4):(4,1)".parse().unwrap();
    storages.push(Storage::from(&swizzled));
    for from in &storages {
        for to in &storages {
            let found = distance(from, to).unwrap();
            let place = |storage: &Storage, index: i64| storage.at(index).unwrap();
            let moved: Vec<i64> = (0..16).filter(|index| place(from, *index) != place(to, *index)).collect();
            assert_eq!((found.moved, found.first), (moved.len() as i64, moved.first().copied()));
            let far = (0..16).map(|index| (place(from, index) - place(to, index)).abs()).max().unwrap();
            assert_eq!(found.farthest, far);
            // The position of each element; elements are swapped until each is in its place.
            let mut memory: BTreeMap<i64, i64> = (0..16).map(|index| (place(from, index), index)).collect();
            let mut other: Vec<i64> = (0..16).map(|index| place(to, index)).collect();
            other.sort_unstable();
            other.dedup();
            if memory.len() < 16 || !memory.keys().eq(other.iter()) {
                assert_eq!(found.swaps, None, "{} {}", from.text(), to.text());
                continue;
            }
            let mut swaps = 0;
            for index in 0..16 {
                let wanted = place(to, index);
                let now = *memory.iter().find(|(_, element)| **element == index).unwrap().0;
                if now != wanted {
                    let there = memory.insert(wanted, index).unwrap();
                    memory.insert(now, there);
                    swaps += 1;
                }
            }
            assert_eq!(found.swaps, Some(swaps), "{} {}", from.text(), to.text());
        }
    }
    let small = Storage::from(&"4:1".parse::<Layout>().unwrap());
    assert_eq!(distance(&small, &storages[0]).unwrap_err().code(), "E0606");
    let large = Storage::from(&"(4096,4096)".parse::<Layout>().unwrap());
    assert_eq!(footprint(&large).unwrap_err().code(), "E0604");
    let far = Storage::from(&"2:9223372036854775807".parse::<Layout>().unwrap());
    assert_eq!(footprint(&far).unwrap().span(), i64::MAX);
}
