//! Nesting: what is congruent to what, and the modes at a path.

use super::*;

#[test]
fn congruence() {
    let all = profiles();
    let mut answers = [0; 4];
    for a in &all {
        for b in &all {
            match verify::congruent(a, b) {
                Verdict::Holds(profile) => {
                    answers[0] += 1;
                    assert!(a.to_string() == b.to_string() && profile == *a.profile());
                }
                Verdict::Fails(at_fault) => {
                    answers[1] += 1;
                    let (left, right) = (at(a, &at_fault.path), at(b, &at_fault.path));
                    assert!(left.to_string() != right.to_string());
                    assert_eq!((&at_fault.first_profile, &at_fault.second_profile), (left.profile(), right.profile()));
                    // It is the outermost place with a difference of its own, and all to the left
                    // of it agrees.
                    assert!(left.is_leaf() || right.is_leaf() || left.rank() != right.rank());
                    for depth in 0..at_fault.path.len() {
                        let (left, right) = (at(a, &at_fault.path[..depth]), at(b, &at_fault.path[..depth]));
                        assert!(!left.is_leaf() && !right.is_leaf() && left.rank() == right.rank());
                        let before = left.modes().zip(right.modes()).take(at_fault.path[depth]);
                        assert!(before.into_iter().all(|(x, y)| x.to_string() == y.to_string()));
                    }
                }
                Verdict::Undecided(error) => panic!("{a}, {b}: {error}"),
            }
            match verify::weakly_congruent(a, b) {
                Verdict::Holds(_) => {
                    answers[2] += 1;
                    assert!(nests_in(a, b), "{a}, {b}");
                }
                Verdict::Fails(fault) => {
                    answers[3] += 1;
                    let (left, right) = (at(a, &fault.path), at(b, &fault.path));
                    assert!(!nests_in(a, b) && !nests_in(&left, &right), "{a}, {b}");
                    assert!(!left.is_leaf() && (right.is_leaf() || left.rank() != right.rank()), "{a}, {b}");
                }
                Verdict::Undecided(error) => panic!("{a}, {b}: {error}"),
            }
        }
    }
    assert!(answers.iter().all(|count| *count >= all.len()), "{answers:?}");
}

#[test]
fn paths() {
    for tree in profiles() {
        for path in [vec![], vec![0], vec![1], vec![2], vec![0, 0], vec![0, 1], vec![0, 0, 0], vec![0, 0, 1, 0]] {
            let mut here = tree.clone();
            let mut expected = Verdict::Holds(());
            for (depth, mode) in path.iter().enumerate() {
                if here.is_leaf() {
                    expected = Verdict::Fails(MissingMode::PastLeaf { depth, extra: path.len() - depth });
                    break;
                }
                let modes: Vec<_> = here.modes().collect();
                let Some(next) = modes.get(*mode) else {
                    expected = Verdict::Fails(MissingMode::OutOfRange { depth, mode: *mode, rank: modes.len() });
                    break;
                };
                here = next.clone();
            }
            match (verify::mode_at(&tree, &path), expected) {
                (Verdict::Holds(found), Verdict::Holds(())) => assert_eq!(found, here),
                (Verdict::Fails(found), Verdict::Fails(expected)) => assert_eq!(found, expected),
                (found, expected) => panic!("{tree} at {path:?}: {found:?} and {expected:?}"),
            }
        }
    }
}
