//! Operations on modes: each moves leaves, and every leaf keeps its extent and its stride.

use tilewright_layout::{Layout, LayoutError, Profile, Tree};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

/// Layouts of every nesting that matters here, their leaves all different.
fn samples() -> Vec<Layout> {
    [
        "():()",
        "4:3",
        "(4):(3)",
        "(2,3):(7,-1)",
        "((2,3),5):((1,20),7)",
        "(2,(3,(4,5)),6):(1,(2,(6,24)),120)",
        "((2,3),(4,5),(6,7)):((1,2),(3,4),(5,6))",
        "(2,3,4,5):(60,20,5,1)",
        "(((2))):(((9)))",
    ]
    .into_iter()
    .map(layout)
    .collect()
}

fn sorted_leaves(layout: &Layout) -> Vec<(i64, i64)> {
    let mut leaves: Vec<_> = layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect();
    leaves.sort_unstable();
    leaves
}

#[test]
fn flatten_keeps_the_function_and_unflatten_undoes_it() {
    for sample in samples() {
        let flat = sample.flatten().unwrap();
        assert!(flat.depth() <= 1);
        assert_eq!(flat.leaves(), sample.leaves());
        for index in 0..sample.size() {
            assert_eq!(flat.eval(&index), sample.eval(&index));
        }
        assert_eq!(flat.unflatten(sample.profile()).unwrap(), sample);
    }
    assert!(matches!(
        layout("(2,3)").unflatten(&Profile::leaf()),
        Err(LayoutError::LeafCount { expected: 1, found: 2 })
    ));
}

#[test]
fn group_take_and_select_agree() {
    for sample in samples() {
        let rank = sample.rank();
        for begin in 0..=rank {
            for end in begin..=rank {
                let grouped = sample.group(begin..end).unwrap();
                assert_eq!(grouped.flatten().unwrap().leaves(), sample.leaves());
                let taken = sample.take(begin..end).unwrap();
                assert_eq!(grouped.mode(begin).unwrap(), taken);
                let modes: Vec<usize> = (begin..end).collect();
                assert_eq!(sample.select(&modes).unwrap(), taken);
            }
        }
        assert!(matches!(sample.take(0..rank + 1), Err(LayoutError::Modes { .. })));
        assert!(matches!(sample.select(&[rank]), Err(LayoutError::NoSuchMode { .. })));
        let backwards = core::ops::Range { start: 1, end: 0 };
        assert!(matches!(sample.group(backwards), Err(LayoutError::Modes { .. })));
    }
}

#[test]
fn append_prepend_replace_remove() {
    let extra = layout("(4,2):(9,1)");
    for sample in samples() {
        let rank = sample.rank();
        let appended = sample.append(&extra).unwrap();
        let prepended = sample.prepend(&extra).unwrap();
        assert_eq!((appended.rank(), prepended.rank()), (rank + 1, rank + 1));
        assert_eq!(appended.mode(rank).unwrap(), extra);
        assert_eq!(prepended.mode(0).unwrap(), extra);
        for (position, mode) in sample.modes().enumerate() {
            assert_eq!(appended.mode(position).unwrap(), mode);
            assert_eq!(prepended.mode(position + 1).unwrap(), mode);
            assert_eq!(sample.replace(position, &mode).unwrap(), sample);
            let replaced = sample.replace(position, &extra).unwrap();
            assert_eq!(
                replaced.at(if sample.depth() == 0 { &[] } else { core::slice::from_ref(&position) }).unwrap(),
                extra
            );
            assert_eq!(sample.remove(position).unwrap().rank(), rank - 1);
        }
        assert_eq!(appended.remove(rank).unwrap().leaves(), sample.leaves());
        assert_eq!(prepended.remove(0).unwrap().leaves(), sample.leaves());
        assert!(sample.replace(rank, &extra).is_err() && sample.remove(rank).is_err());
    }
}

#[test]
fn to_rank_fills_up() {
    for sample in samples() {
        let rank = sample.rank();
        assert_eq!(sample.append_to_rank(rank, &Layout::unit()).unwrap(), sample);
        assert_eq!(sample.prepend_to_rank(rank, &Layout::unit()).unwrap(), sample);
        let (back, front) = (
            sample.append_to_rank(rank + 2, &Layout::unit()).unwrap(),
            sample.prepend_to_rank(rank + 2, &Layout::unit()).unwrap(),
        );
        assert_eq!((back.rank(), front.rank()), (rank + 2, rank + 2));
        for index in 0..sample.size() {
            assert_eq!(back.eval(&index), sample.eval(&index));
            assert_eq!(front.eval(&index), sample.eval(&index));
        }
        if rank > 0 {
            assert!(matches!(sample.append_to_rank(rank - 1, &Layout::unit()), Err(LayoutError::Rank { .. })));
        }
        assert!(matches!(sample.append_to_rank(usize::MAX, &Layout::unit()), Err(LayoutError::TooLarge { .. })));
    }
}

#[test]
fn reverse_twice_is_nothing_and_zip_transposes() {
    for sample in samples() {
        let reversed = sample.reverse().unwrap();
        assert_eq!(reversed.reverse().unwrap(), sample);
        let mut leaves = reversed.leaves().to_vec();
        leaves.reverse();
        assert_eq!(leaves, sample.leaves());
        if let Ok(zipped) = sample.zip()
            && sample.rank() > 0
        {
            for (j, outer) in zipped.modes().enumerate() {
                for (i, part) in outer.modes().enumerate() {
                    assert_eq!(part, sample.mode(i).unwrap().mode(j).unwrap());
                }
            }
        }
        let zipped = sample.zip_with(&sample).unwrap();
        for (position, mode) in sample.modes().enumerate() {
            assert_eq!(zipped.mode(position).unwrap(), Layout::tuple([&mode, &mode]).unwrap());
        }
    }
    assert!(matches!(layout("(2,(3,4))").zip(), Err(LayoutError::Rank { .. })));
    assert!(layout("(2,3)").zip_with(&layout("2")).is_err());
}

#[test]
fn zip_by_gathers_pairs() {
    let given = tree("((1,10),((2,20),(3,30)),40)");
    assert_eq!(given.zip_by(tree("(0,(0,0))").profile()).unwrap().to_string(), "((1,(2,3)),(10,(20,30),40))");
    let pair = tree("((1,2),3)");
    assert_eq!(pair.zip_by(&Profile::leaf()).unwrap(), pair);
    // No pairs at all: everything is rest.
    assert_eq!(tree("(1,2)").zip_by(&Profile::flat(0).unwrap()).unwrap().to_string(), "((),(1,2))");
    for (given, guide) in [("1", "0"), ("(1)", "0"), ("(1,2,3)", "0"), ("((1,2),3)", "(0,0)"), ("((1,2))", "(0,0)")] {
        assert!(
            matches!(tree(given).zip_by(tree(guide).profile()), Err(LayoutError::Rank { .. })),
            "{given} by {guide}"
        );
    }
    let error = tree("((1,2),((3,4),5))").zip_by(tree("(0,(0,0))").profile()).unwrap_err();
    assert_eq!(error, LayoutError::Rank { op: "unzip", path: vec![1, 1], expected: 2, found: 1 });
}

/// With a flat guide as long as the layout, unzipping pairs transposes them.
#[test]
fn unzip_is_zip_on_pairs() {
    let pairs = layout("((2,3),(4,5),(6,7)):((1,2),(3,4),(5,6))");
    let unzipped = pairs.unzip(&Profile::flat(3).unwrap()).unwrap();
    assert_eq!(unzipped, pairs.zip().unwrap());
    assert_eq!(unzipped.zip().unwrap(), pairs);
    assert_eq!(sorted_leaves(&unzipped), sorted_leaves(&pairs));
    // A mode that the guide does not reach goes to the rest.
    let partly = pairs.unzip(&Profile::flat(2).unwrap()).unwrap();
    assert_eq!(partly.to_string(), "((2,4),(3,5,(6,7))):((1,3),(2,4,(5,6)))");
}

#[test]
fn repeated_modes_that_overflow_the_size_are_refused() {
    let wide = layout("(2305843009213693952,2):(0,1)");
    assert!(matches!(wide.select(&[0, 0]), Err(LayoutError::Overflow { .. })));
    assert!(wide.append(&layout("4:1")).is_err());
    assert!(wide.prepend(&layout("4:1")).is_err());
    assert!(wide.replace(1, &layout("4:1")).is_err());
    assert!(wide.zip_with(&wide).is_err());
    assert!(wide.append_to_rank(3, &layout("4:1")).is_err());
    assert!(wide.select(&[1, 1]).is_ok());
}

#[test]
fn at_follows_a_path() {
    let sample = layout("(2,(3,(4,5)),6):(1,(2,(6,24)),120)");
    assert_eq!(sample.at(&[]).unwrap(), sample);
    assert_eq!(sample.at(&[1, 1, 0]).unwrap(), layout("4:6"));
    assert_eq!(sample.at(&[0, 0]).unwrap(), layout("2:1"));
    assert!(sample.at(&[3]).is_none() && sample.at(&[0, 1]).is_none());
}

#[test]
fn leaves_are_cut_where_they_stand() {
    for layout in samples() {
        // Every leaf into its smallest prime factor and the rest: the same function, the same
        // nesting above.
        let cut = layout.cut_leaves(|leaf, pieces| {
            let prime = (2..=leaf.extent).find(|prime| leaf.extent % prime == 0).unwrap_or(1);
            pieces.push(prime, leaf.stride)?;
            if prime < leaf.extent {
                pieces.push(leaf.extent / prime, leaf.stride * prime)?;
            }
            Ok::<(), LayoutError>(())
        });
        let cut = cut.unwrap();
        for index in 0..layout.size() {
            assert_eq!(cut.eval(&index), layout.eval(&index), "{layout} at {index}");
        }
        assert_eq!(cut.size(), layout.size(), "{layout}");
        if !layout.profile().is_leaf() {
            let sizes = |layout: &Layout| layout.modes().map(|mode| mode.size()).collect::<Vec<_>>();
            assert_eq!(sizes(&cut), sizes(&layout), "{layout}");
        }
        assert_eq!(cut.to_string().parse::<Layout>().unwrap(), cut);
        // An empty list changes nothing.
        assert_eq!(layout.cut_leaves(|_, _| Ok::<(), LayoutError>(())).unwrap(), layout);
    }
    let cut = layout("(4,6):(6,1)").cut_leaves(|leaf, pieces| {
        pieces.push(2, leaf.stride)?;
        pieces.push(leaf.extent / 2, 2 * leaf.stride)
    });
    assert_eq!(cut.unwrap().to_string(), "((2,2),(2,3)):((6,12),(1,2))");
}

#[test]
fn pieces_multiply_to_their_leaf() {
    let refusal = |extents: &[i64]| {
        let cut = layout("(4,6):(6,1)")
            .cut_leaves(|leaf, pieces| extents.iter().try_for_each(|extent| pieces.push(*extent, leaf.stride)));
        cut.unwrap_err().code()
    };
    assert_eq!(refusal(&[2]), "E0117");
    assert_eq!(refusal(&[2, 2]), "E0117"); // right for 4, wrong for 6
    assert_eq!(refusal(&[-2, -2]), "E0116");
    assert_eq!(refusal(&[i64::MAX, 2]), "E0103");
    assert_eq!(refusal(&vec![1; 70_000]), "E0104");
    assert_eq!(refusal(&vec![1; 65_535]), "E0117");
}
