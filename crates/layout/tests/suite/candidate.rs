//! Candidates: the normal form, identity with and without a swizzle, states.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use tilewright_layout::candidate::{Candidate, CandidateError, IllegalChange, State, normal_form};
use tilewright_layout::{
    AnyLayout, Composed, Coordinate, Descriptor, Kind, Layout, Stride, Swizzle, Tree, Xor, coordinates,
};

/// Layouts of one and two modes, some of which nest: as shapes and as strides, which `step` writes.
fn texts(step: impl Fn(i64) -> String) -> Vec<String> {
    let mut modes: Vec<(String, String)> = Vec::new();
    for s in 1..=4 {
        for d in 0..=4 {
            modes.push((s.to_string(), step(d)));
        }
    }
    for (s, t) in [(1, 2), (2, 1), (2, 2), (2, 3)] {
        for (d, e) in [(1, 2), (2, 4), (1, 3), (0, 0), (3, 1)] {
            modes.push((format!("({s},{t})"), format!("({},{})", step(d), step(e))));
            modes.push((format!("({s},(1,{t}))"), format!("({},({},{}))", step(d), step(4), step(e))));
        }
    }
    let mut all: Vec<String> = vec!["():()".into()];
    for (shape, stride) in &modes {
        all.push(format!("{shape}:{stride}"));
        all.push(format!("({shape}):({stride})"));
    }
    for (s, d) in modes.iter().step_by(3) {
        for (t, e) in modes.iter().step_by(4) {
            all.push(format!("({s},{t}):({d},{e})"));
        }
    }
    all
}

/// The layout as a function of one index a mode, with the extents of the modes; by definition.
fn by_mode<D: Stride<Extent = i64>>(layout: &Layout<D>) -> (Vec<i64>, Vec<D>) {
    let modes: Vec<Layout<D>> = layout.modes().collect();
    let sizes: Vec<i64> = modes.iter().map(Layout::size).collect();
    let shape = Tree::flat(sizes.iter().copied()).unwrap();
    let values = coordinates(&shape).unwrap().map(|at| {
        let parts = at.leaves().iter().zip(&modes).map(|(index, mode)| mode.eval(index).unwrap());
        parts.fold(D::zero(), |sum, part| sum.plus(&part).unwrap())
    });
    let values = values.collect();
    (sizes, values)
}

/// The laws of the normal form, where `typed` takes it back to its kind.
fn normal_form_is_canonical<D: Stride<Extent = i64>>(layouts: &[Layout<D>], typed: fn(&AnyLayout) -> Option<Layout<D>>)
where
    AnyLayout: From<Layout<D>>,
{
    let functions: Vec<_> = layouts.iter().map(by_mode).collect();
    let forms: Vec<AnyLayout> = layouts.iter().map(|layout| normal_form(&layout.clone().into()).unwrap()).collect();
    let (mut same, mut different) = (0, 0);
    for (a, (function, form)) in functions.iter().zip(&forms).enumerate() {
        assert_eq!(by_mode(&typed(form).unwrap()), *function, "{} is {form}", layouts[a]);
        assert_eq!(normal_form(form).unwrap(), *form);
        assert!(form.leaves() <= layouts[a].leaves().len().max(1));
        for (b, (other, other_form)) in functions.iter().zip(&forms).enumerate() {
            assert_eq!(form == other_form, function == other, "{} and {}", layouts[a], layouts[b]);
            if form == other_form && a != b {
                same += 1;
            } else {
                different += 1;
            }
        }
    }
    assert!(same > 500 && different > 500, "{same}, {different}");
}

#[test]
fn normal_forms() {
    let parse = |texts: Vec<String>| -> Vec<Layout> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let typed = |form: &AnyLayout| form.integer().cloned();
    normal_form_is_canonical(&parse(texts(|d| d.to_string())), typed);
    normal_form_is_canonical(&parse(texts(|d| (d - 2).to_string())), typed);
}

#[test]
fn normal_forms_of_xor_layouts() {
    let all = texts(|d| format!("^{d}"));
    let all: Vec<Layout<Xor>> = all.iter().map(|text| text.parse().unwrap()).collect();
    normal_form_is_canonical(&all, |form| form.xor().map(|form| form.into_owned()));
}

#[test]
fn normal_forms_of_coordinate_layouts() {
    let all = texts(|d| match d {
        0 => "0".into(),
        1 | 2 => format!("{d}@0"),
        _ => format!("{d}@1@2"),
    });
    let all: Vec<Layout<Coordinate>> = all.iter().map(|text| text.parse().unwrap()).collect();
    normal_form_is_canonical(&all, AnyLayout::known_coordinate);
}

#[test]
fn identity_is_normal_form_and_swizzle() {
    let hasher = RandomState::new();
    let layouts: Vec<AnyLayout> =
        texts(|d| d.to_string()).iter().step_by(3).map(|text| text.parse().unwrap()).collect();
    let swizzles = [(0, 0, 0), (0, 4, 3), (1, 0, 1), (1, 0, 2), (1, 1, 1), (2, 0, -2), (3, 4, 3)];
    let swizzles = swizzles.map(|(b, m, s)| Swizzle::new(b, m, s).unwrap());
    let mut all = Vec::new();
    for layout in &layouts {
        let form = normal_form(layout).unwrap();
        let plain = Candidate::of_layout(layout).unwrap();
        assert_eq!((plain.swizzle(), plain.kind(), plain.state()), (None, Kind::Integer, State::Proposed));
        assert_eq!(plain.text(), form.to_string());
        all.push((form.clone(), None, plain));
        for swizzle in swizzles {
            let candidate = Candidate::of_swizzled(swizzle, layout).unwrap();
            let expected = (!swizzle.is_identity()).then_some(swizzle);
            assert_eq!(candidate.swizzle(), expected);
            let composed = Composed::new(swizzle, 0, layout.integer().unwrap().clone()).unwrap();
            assert_eq!(Candidate::of_layout(&composed.into()).unwrap(), candidate);
            // The strides are those below the swizzle, as given and in normal form.
            assert_eq!(candidate.basis().to_string(), layout.stride().unwrap().to_string());
            assert_eq!(candidate.stride().to_string(), form.stride().unwrap().to_string());
            all.push((form.clone(), expected, candidate));
        }
    }
    let mut equal = 0;
    for (form, swizzle, candidate) in &all {
        for (other_form, other_swizzle, other) in &all {
            let expected = form == other_form && swizzle == other_swizzle;
            assert_eq!(candidate == other, expected, "{candidate:?} and {other:?}");
            assert_eq!(candidate.identity() == other.identity(), expected);
            if expected {
                assert_eq!(hasher.hash_one(candidate), hasher.hash_one(other));
                equal += 1;
            }
        }
    }
    assert!(equal > 2 * all.len() && equal < all.len() * all.len() / 10, "{equal} of {} squared", all.len());
    // Hashing agrees with identity, so that a set holds each once.
    let identities: HashSet<_> = all.iter().map(|(.., candidate)| candidate.identity().clone()).collect();
    let set: HashSet<Candidate> = all.into_iter().map(|(.., candidate)| candidate).collect();
    assert_eq!(set.len(), identities.len());
}

#[test]
fn text_round_trips() {
    for text in texts(|d| d.to_string()) {
        let layout: AnyLayout = text.parse().unwrap();
        let candidate = Candidate::of_layout(&layout).unwrap();
        let again: AnyLayout = candidate.text().parse().unwrap();
        assert_eq!(Candidate::of_layout(&again).unwrap(), candidate);
        let swizzled = Candidate::of_swizzled(Swizzle::new(2, 1, 3).unwrap(), &layout).unwrap();
        let again: AnyLayout = swizzled.text().parse().unwrap();
        assert_eq!(Candidate::of_layout(&again).unwrap(), swizzled);
    }
}

/// The examples of the grammar: read, normalised, printed and read again they are the same
/// candidate, their basis in its order.
#[test]
fn descriptors_round_trip() {
    let examples = [
        ("(1@0, 1@1)", "(4,8)", "(4,8):(1@0,1@1)"),
        ("(16@0, 1@1)", "(4,8)", "(4,8):(16@0,1@1)"),
        ("((1@0, 8@1), 1@2)", "((2,3),4)", "((2,3),4):((1@0,8@1),1@2)"),
        ("((1@0, 2@0), 1@2)", "((2,3),4)", "(6,4):(1@0,1@2)"),
        ("(1@0@1)", "(4)", "4:1@0@1"),
        ("(((1@0)))", "(((4)))", "4:1@0"),
        ("()", "()", "():()"),
    ];
    for (descriptor, shape, expected) in examples {
        let (shape, strides) = (shape.parse().unwrap(), descriptor.parse().unwrap());
        let candidate = Candidate::of_strides(&shape, &strides).unwrap();
        // The empty tuple has steps of no kind.
        assert_eq!(candidate.kind(), if descriptor == "()" { Kind::Integer } else { Kind::Coordinate });
        let text = candidate.text();
        assert_eq!(text, expected);
        let again: AnyLayout = text.parse().unwrap();
        assert_eq!(Candidate::of_layout(&again).unwrap(), candidate);
        // Printed without the spaces that were written.
        assert_eq!(candidate.basis().to_string(), descriptor.replace(' ', ""));
    }
}

#[test]
fn kinds_are_told_apart() {
    let texts = ["8:1", "8:^1", "8:1@0", "M:1", "M:1@0", "S<1,0,1> o 0 o 8:1", "S<1,0,1> o 0 o M:1"];
    let all = texts.map(|text| Candidate::of_layout(&text.parse().unwrap()).unwrap());
    // Below a swizzle, the kind is that of what is swizzled.
    let kinds =
        [Kind::Integer, Kind::Xor, Kind::Coordinate, Kind::Launch, Kind::Coordinate, Kind::Integer, Kind::Launch];
    assert_eq!(all.each_ref().map(Candidate::kind), kinds);
    assert_eq!(all.each_ref().map(|candidate| candidate.text()), texts);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 7);
}

#[test]
fn what_is_no_candidate() {
    let strides = |shape: &str, strides: &str| {
        let (shape, strides) = (shape.parse().unwrap(), strides.parse().unwrap());
        Candidate::of_strides(&shape, &strides).map(|candidate| candidate.text())
    };
    assert_eq!(strides("((2,3),4)", "((1@0,8@1),1@2)").unwrap(), "((2,3),4):((1@0,8@1),1@2)");
    assert_eq!(strides("()", "()").unwrap(), "():()");
    let at = strides("(6,4)", "((1@0,8@1),1@2)").unwrap_err();
    assert_eq!(at.to_string(), "in mode 0, the shape nests as * but the stride as (*,*)");
    assert!(matches!(strides("(0,4)", "(1@0,1@1)"), Err(CandidateError::Refused(_))));

    let composed = |text: &str| Candidate::of_layout(&text.parse().unwrap());
    assert_eq!(composed("S<3,3,3> o 8 o (8,64):(64,1)"), Err(CandidateError::Offset { offset: "8".into() }));
    assert_eq!(composed("S<3,3,3> o K o (8,64):(64,1)"), Err(CandidateError::Offset { offset: "K".into() }));
    assert_eq!(composed("(8,8):(8,1) o 0 o S<1,0,1> o 0 o (8,8):(8,1)"), Err(CandidateError::OuterLayout));
    // A swizzle moves bits of numbers.
    let swizzled = Candidate::of_swizzled(Swizzle::new(1, 0, 1).unwrap(), &"8:^1".parse().unwrap());
    assert!(matches!(swizzled, Err(CandidateError::Refused(_))));
}

/// Each of the sixteen changes is legal or changes nothing; and no other way leads back from an
/// end.
#[test]
fn states() {
    let new = Candidate::of_layout(&"8:1".parse().unwrap()).unwrap();
    let ways: [&[State]; 4] = [&[], &[State::Assigned], &[State::Assigned, State::Materialised], &[State::Rejected]];
    let legal = [
        (State::Proposed, State::Assigned),
        (State::Proposed, State::Rejected),
        (State::Assigned, State::Proposed),
        (State::Assigned, State::Materialised),
    ];
    for (from, way) in State::ALL.into_iter().zip(ways) {
        let mut there = new.clone();
        for state in way {
            there.change(*state).unwrap();
        }
        assert_eq!(there.state(), from);
        for to in State::ALL {
            let mut candidate = there.clone();
            if legal.contains(&(from, to)) {
                assert_eq!(candidate.change(to), Ok(from));
                assert_eq!(candidate.state(), to);
            } else {
                assert_eq!(candidate.change(to), Err(IllegalChange { from, to }));
                assert_eq!(candidate.state(), from);
            }
            // The state is no part of the identity.
            assert_eq!(candidate, new);
        }
    }
    let text = |from, to| IllegalChange { from, to }.to_string();
    assert_eq!(
        text(State::Assigned, State::Rejected),
        "a candidate that is assigned cannot become rejected, only proposed or materialised"
    );
    assert_eq!(
        text(State::Rejected, State::Assigned),
        "a candidate that is rejected cannot become assigned, nor anything else"
    );
}

#[test]
fn descriptors_become_candidates_of_their_strides() {
    let mut made = HashSet::new();
    for (shape, written, stride) in [
        ("((4,2),16)", "((1@0, 8@1), 1@2)", "((1@0,8@1),1@2)"),
        ("((4,2),16)", "((3/3@0, 16/2@1), -2/-2@2)", "((1@0,8@1),1@2)"),
        ("(4,8)", "(2@0, 0/5@3)", "(2@0,0)"),
        ("(2)", "(1@0@1)", "1@0@1"),
        ("()", "()", "()"),
    ] {
        let descriptor: Descriptor = written.parse().unwrap();
        let candidate = Candidate::of_descriptor(&shape.parse().unwrap(), &descriptor).unwrap();
        // Two ways of writing a fraction are one candidate; what is left of either is the strides.
        assert_eq!(candidate.stride().to_string(), stride);
        assert_eq!(candidate.basis().to_string(), descriptor.to_string());
        assert_eq!(candidate.state(), State::Proposed);
        let layout = Layout::new(&shape.parse::<Tree<i64>>().unwrap(), descriptor.strides()).unwrap();
        assert_eq!(candidate, Candidate::of_layout(&layout.into()).unwrap());
        made.insert(candidate);
    }
    assert_eq!(made.len(), 4);
    let descriptor: Descriptor = "(1@0,1@1)".parse().unwrap();
    let refused = Candidate::of_descriptor(&"(4,(2,2))".parse().unwrap(), &descriptor);
    assert!(matches!(refused, Err(CandidateError::NotCongruent(_))));
}
