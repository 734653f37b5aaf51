//! Images and domains, coordinates, values known at launch, collisions, and types of results.

use super::*;

#[test]
fn images_and_domains() {
    let all = small_layouts();
    let mut answers = [0; 3];
    for (position, inner) in all.iter().enumerate() {
        let offsets = values(inner);
        for outer in all.iter().skip(position % 7).step_by(7) {
            let inside = offsets.iter().all(|offset| (0..outer.size()).contains(offset));
            match verify::fits(inner, outer) {
                Verdict::Holds(fit) => {
                    assert!(inside);
                    assert_eq!(Some(&fit.least), offsets.iter().min());
                    assert_eq!(Some(&fit.greatest), offsets.iter().max());
                    assert_eq!(fit.size, outer.size());
                    answers[0] += 1;
                }
                Verdict::Fails(outside) => {
                    assert!(!inside);
                    assert_eq!(inner.eval_at(&outside.coordinate).unwrap(), outside.offset);
                    assert!(outside.coordinate.elem_less(&inner.shape()).proved());
                    assert_eq!(outside.below, outside.offset < 0);
                    assert!(outside.below || outside.offset >= outer.size());
                    answers[if outside.below { 1 } else { 2 }] += 1;
                }
                Verdict::Undecided(error) => panic!("{error}"),
            }
            // The strict composition asks the same.
            let strict =
                inner.size() > 0 && !matches!(outer.compose_within(inner), Err(error) if error.code() == "E0109");
            assert_eq!(strict, inside, "{inner} in {outer}");
        }
    }
    assert!(answers.iter().all(|count| *count > 1000), "{answers:?}");
    let far: Layout = "(3,3):(9223372036854775807,1)".parse().unwrap();
    assert_eq!(verify::fits(&far, &"8:1".parse::<Layout>().unwrap()).truth(), Truth::Open);
}

/// Layouts whose values are coordinates.
#[test]
fn questions_about_coordinates() {
    let layout = |text: &str| -> Layout<Coordinate> { text.parse().unwrap() };
    assert_eq!(verify::equal(&layout("(2,4):(1@0,2@0)"), &layout("8:1@0")).to_string(), "holds: 8:1@0");
    assert_eq!(
        verify::equal(&layout("(4,8):(1@0,1@1)"), &layout("(4,8):(1@0,2@1)")).to_string(),
        "fails: at index 4 the first, at (0,1), has 1@1 and the second, at (0,1), has 2@1"
    );
    assert_eq!(
        verify::result_type(&layout("(4,8):(1@0,1@1)"), &layout("(4,8):(1@1,1@0)")).to_string(),
        "fails: in mode 0, the declared type has 4:1@0, the inferred one 4:1@1"
    );
    let inner: Layout = "(4,8):(1,4)".parse().unwrap();
    assert!(verify::fits(&inner, &layout("(4,8):(1@0,1@1)")).holds());
    assert!(verify::fits(&inner, &layout("(4,7):(1@0,1@1)")).fails());
}

/// Coordinates inside a shape, against a list of all of them.
#[test]
fn coordinates_and_shapes() {
    let steps = ["0", "1@0", "2@0", "1@1", "3@1", "-1@0", "1@0@2", "2@1@2", "1@2", "1@4"];
    let shapes = ["(3,4)", "(4,6,(2,3))", "(8,8,(1,4))", "(2,2,5)"];
    let mut answers = [0; 4];
    for d in steps {
        for e in steps {
            for (s, t) in [(1, 2), (2, 2), (3, 2), (4, 3)] {
                let Ok(inner) = format!("({s},{t}):({d},{e})").parse::<Layout<Coordinate>>() else { continue };
                for shape in shapes {
                    let shape = tree(shape);
                    let values: Vec<Coordinate> = (0..inner.size()).map(|i| inner.eval(&i).unwrap()).collect();
                    let nested: Option<Vec<Tree<i64>>> =
                        values.iter().map(|value| value.in_profile(shape.profile()).ok()).collect();
                    let inside = |at: &Tree<i64>| {
                        at.leaves().iter().zip(shape.leaves()).all(|(index, extent)| (0..*extent).contains(index))
                    };
                    let expected = nested.as_ref().is_some_and(|all| all.iter().all(inside));
                    let verdict = verify::fits_shape(&inner, &shape);
                    assert_eq!(verdict.holds(), expected, "{inner} in {shape}: {verdict:?}");
                    match verdict {
                        Verdict::Holds(fits) => {
                            let nested = nested.unwrap();
                            for (leaf, fit) in fits.iter().enumerate() {
                                let reached = nested.iter().map(|at| at.leaves()[leaf]);
                                assert_eq!(Some(fit.least), reached.clone().min());
                                assert_eq!(Some(fit.greatest), reached.max());
                                assert_eq!(fit.size, shape.leaves()[leaf]);
                            }
                            answers[0] += 1;
                        }
                        Verdict::Fails(verify::OutsideShape::Mode { mode, at: outside }) => {
                            let value = inner.eval_at(&outside.coordinate).unwrap();
                            assert_eq!(
                                value.in_profile(shape.profile()).unwrap().at(&mode).unwrap().leaves(),
                                [outside.offset]
                            );
                            assert_eq!(at(&shape, &mode).leaves(), [outside.size]);
                            assert!(
                                outside.below == (outside.offset < 0)
                                    && (outside.below || outside.offset >= outside.size)
                            );
                            answers[if outside.below { 1 } else { 2 }] += 1;
                        }
                        Verdict::Fails(verify::OutsideShape::NoMode { leaf, stride }) => {
                            assert_eq!(inner.at(&leaf).unwrap().leaves()[0].stride, stride);
                            assert!(stride.in_profile(shape.profile()).is_err());
                            answers[3] += 1;
                        }
                        Verdict::Undecided(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
    assert!(answers.iter().all(|count| *count > 50), "{answers:?}");
}

/// Extents that become known at launch: what is decided holds for every value, and what is open
/// names the fact.
#[test]
fn symbolic_questions() {
    let layout = |text: &str| -> Layout<Expr> { text.parse().unwrap() };
    let divides = |shape: &str, tile: &str, rounding| {
        let tiler: Tiler<Expr> = Tiler::modes([Tiler::Layout(layout(tile))]).unwrap();
        verify::divides(&layout(shape).shape(), &tiler, rounding)
    };
    let Verdict::Holds(exact) = divides("(M{div=128},64)", "128:1", Remainder::Exact) else { panic!() };
    assert_eq!(exact.quotient.to_string(), "(M/128,64)");
    match divides("(M,64)", "128:1", Remainder::Exact) {
        Verdict::Undecided(LayoutError::Open { question, .. }) => {
            assert_eq!(question.to_string(), "needs M to be a multiple of 128; declare `M{div=128}`");
        }
        other => panic!("{other:?}"),
    }
    assert!(divides("(N,64)", "2*N:1", Remainder::Exact).fails());

    let fits = |inner: &str, outer: &str| verify::fits(&layout(inner), &layout(outer)).truth();
    assert_eq!(fits("M:1", "(M,4):(4,1)"), Truth::Proved);
    assert_eq!(fits("(M,4):(4,1)", "M:1"), Truth::Refuted);
    assert_eq!(fits("M:1", "N:1"), Truth::Open);

    let equal = |a: &str, b: &str| verify::equal(&layout(a), &layout(b)).truth();
    assert_eq!(equal("(M,N):(1,M)", "M*N:1"), Truth::Proved);
    assert_eq!(equal("(4,M):(1,4)", "(4,M):(1,5)"), Truth::Open); // equal when M is 1
    assert_eq!(equal("(4,M):(1,4)", "(4,M):(2,8)"), Truth::Refuted);
}

#[test]
fn collisions() {
    let mut answers = [0; 2];
    for layout in small_layouts() {
        let values = values(&layout);
        let mut seen: HashMap<i64, usize> = HashMap::new();
        let distinct = values.iter().enumerate().all(|(index, value)| seen.insert(*value, index).is_none());
        match verify::injective(&layout) {
            Verdict::Holds(answer) => assert!(distinct && answer.size as usize == values.len(), "{layout}"),
            Verdict::Fails(collision) => {
                let (i, j) = collision.indices;
                assert!(i < j && values[i as usize] == collision.offset && values[j as usize] == collision.offset);
                assert_eq!(layout.eval_at(&collision.coordinates.0).unwrap(), collision.offset);
                assert_eq!(layout.eval_at(&collision.coordinates.1).unwrap(), collision.offset);
                assert!(!distinct && collision.coordinates.0 != collision.coordinates.1);
            }
            Verdict::Undecided(error) => panic!("{layout}: {error}"),
        }
        answers[usize::from(distinct)] += 1;
    }
    assert!(answers.iter().all(|count| *count > 200), "{answers:?}");
    let dense = "(16384,16384,16384,16384):(922337203685477,31234567890123457,31234567890123511,51234567890123519)";
    assert_eq!(verify::injective(&dense.parse().unwrap()).truth(), Truth::Open);
}

#[test]
fn result_types() {
    let all = small_layouts();
    let mut answers = [0; 4];
    for declared in all.iter().step_by(2) {
        for inferred in all.iter().step_by(3) {
            // By the definition: at every natural coordinate equal values, extents equal, and alike
            // nested.
            let same = declared.shape() == inferred.shape()
                && coordinates(&declared.shape())
                    .unwrap()
                    .all(|at| declared.eval_at(&at).unwrap() == inferred.eval_at(&at).unwrap());
            match verify::result_type(declared, inferred) {
                Verdict::Holds(found) => assert!(same && found == *inferred, "{declared}, {inferred}"),
                Verdict::Fails(mismatch) => {
                    assert!(!same, "{declared}, {inferred}");
                    let (verify::Mismatch::Nesting { same_function, .. }
                    | verify::Mismatch::Leaf { same_function, .. }) = mismatch;
                    assert_eq!(same_function, declared.equivalent(inferred));
                    answers[if same_function { 1 } else { 2 }] += 1;
                    if let verify::Mismatch::Leaf { path, declared: left, inferred: right, .. } = mismatch {
                        assert_eq!(declared.at(&path).unwrap().leaves(), [left]);
                        assert_eq!(inferred.at(&path).unwrap().leaves(), [right]);
                        assert!(left != right);
                        answers[3] += 1;
                    }
                }
                Verdict::Undecided(error) => panic!("{error}"),
            }
            answers[0] += usize::from(same);
        }
    }
    assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
    assert_eq!(Profile::leaf(), *all[0].profile());
}
