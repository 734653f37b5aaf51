//! The laws of the interner: unique, faithful, memoised, never confused.

#[path = "../../layout/tests/random/mod.rs"]
mod random;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use random::Random;
use tilewright_compiler::{Handle, InternError, Interner};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coordinate, Layout, LayoutError, Profile, Swizzle, Tiler, Tree, Xor};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// Every layout of rank at most 2 with extents 1..=3 and strides -1..=3, flat and nested: 15 + 15 +
/// 225 + 225 of them.
fn small_layouts() -> Vec<Layout> {
    let leaves: Vec<(i64, i64)> = (1..=3).flat_map(|s| (-1..=3).map(move |d| (s, d))).collect();
    let mut all = Vec::new();
    for (s, d) in &leaves {
        all.push(layout(&format!("{s}:{d}")));
        all.push(layout(&format!("({s}):({d})")));
        for (t, e) in &leaves {
            all.push(layout(&format!("({s},{t}):({d},{e})")));
            all.push(layout(&format!("({s},({t})):({d},({e}))")));
        }
    }
    assert_eq!(all.len(), 480);
    all
}

#[test]
fn handles_are_equal_exactly_when_values_are() {
    let interner = Interner::new();
    let all = small_layouts();
    assert!(interner.is_empty() && all.iter().all(|value| interner.find(value).is_none()));
    let handles: Vec<Handle<Layout>> = all.iter().map(|value| interner.intern(value).unwrap()).collect();
    assert_eq!(interner.len(), 480);
    assert_eq!(handles.iter().collect::<HashSet<_>>().len(), 480);
    for (position, (value, handle)) in all.iter().zip(&handles).enumerate() {
        assert_eq!(handle.index() as usize, position);
        assert_eq!(interner.get(*handle).unwrap(), value);
        // Again, and from a value that was made anew.
        assert_eq!(interner.intern(&layout(&value.to_string())).unwrap(), *handle);
        assert_eq!(interner.find(value), Some(*handle));
        for (other, other_handle) in all.iter().zip(&handles) {
            assert_eq!(value == other, handle == other_handle);
        }
    }
    assert_eq!(interner.len(), 480);
    assert!(handles.is_sorted());
    assert_eq!((size_of::<Handle<Layout>>(), size_of::<Option<Handle<Layout>>>()), (8, 8));
}

#[test]
fn kinds_do_not_meet() {
    let interner = Interner::new();
    let inner = layout("(8,8):(8,1)");
    let swizzles: Vec<Swizzle> = (0..4).flat_map(|b| (0..4).map(move |m| Swizzle::new(b, m, 3 + b).unwrap())).collect();
    let composed: Vec<Composed> = swizzles.iter().map(|s| Composed::new(*s, 0, inner.clone()).unwrap()).collect();
    let shape: Tree<i64> = "(8,8)".parse().unwrap();
    let tiler = Tiler::from_shape(&shape).unwrap();
    let profile: Profile = "(*,*)".parse().unwrap();

    let plain = interner.intern(&inner).unwrap();
    let handles: Vec<_> = composed.iter().map(|value| interner.intern(value).unwrap()).collect();
    let bits: Vec<_> = swizzles.iter().map(|value| interner.intern(value).unwrap()).collect();
    // They differ in the swizzle alone, and are different values.
    assert_eq!(handles.iter().collect::<HashSet<_>>().len(), 16);
    let others =
        (interner.intern(&shape).unwrap(), interner.intern(&tiler).unwrap(), interner.intern(&profile).unwrap());
    assert_eq!(interner.len(), 16 + 16 + 4);

    assert_eq!(interner.get(plain).unwrap(), &inner);
    assert!(handles.iter().zip(&composed).all(|(handle, value)| interner.get(*handle).unwrap() == value));
    assert!(bits.iter().zip(&swizzles).all(|(handle, value)| interner.get(*handle).unwrap() == value));
    assert_eq!(interner.get(others.0).unwrap(), &shape);
    assert_eq!(interner.get(others.1).unwrap(), &tiler);
    assert_eq!(interner.get(others.2).unwrap(), &profile);

    // One operation on values of two kinds with the same number: both are the first of their kind.
    assert_eq!((plain.index(), handles[0].index()), (0, 0));
    let (flat, swizzled) = (interner.coalesce(plain).unwrap(), interner.coalesce(handles[0]).unwrap());
    assert_eq!(interner.get(flat).unwrap(), &inner.coalesce().unwrap());
    assert_eq!(interner.get(swizzled).unwrap(), &composed[0].coalesce().unwrap());
    let divided = interner.zipped_divide(handles[15], others.1).unwrap();
    assert_eq!(interner.get(divided).unwrap(), &composed[15].zipped_divide(&tiler).unwrap());
    let by = interner.coalesce_by(handles[7], others.2).unwrap();
    assert_eq!(interner.get(by).unwrap(), &composed[7].coalesce_by(&profile).unwrap());
}

#[test]
fn one_identity_from_many_threads() {
    const THREADS: usize = 8;
    let all = small_layouts();
    let interner = Interner::new();
    let seen: Vec<HashMap<String, (Handle<Layout>, usize)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (all, interner) = (&all, &interner);
                scope.spawn(move || {
                    let mut seen = HashMap::new();
                    let mut see = |handle: Handle<Layout>| {
                        let value = interner.get(handle).unwrap();
                        let place = (handle, std::ptr::from_ref(value).addr());
                        assert_eq!(*seen.entry(value.to_string()).or_insert(place), place);
                    };
                    let mut random = Random(thread as u64);
                    for _ in 0..4_000 {
                        let [a, b] = [(); 2].map(|()| &all[random.below(all.len() as i64) as usize]);
                        let (a, b) = (interner.intern(a).unwrap(), interner.intern(b).unwrap());
                        see(a);
                        let results = [interner.compose(a, b), interner.complement(a, &random.below(40))];
                        results.into_iter().flatten().for_each(&mut see);
                    }
                    seen
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut together: HashMap<&str, (Handle<Layout>, usize)> = HashMap::new();
    for (text, place) in seen.iter().flatten() {
        assert_eq!(together.entry(text).or_insert(*place), place, "{text}");
    }
    assert!(together.len() > all.len());
    assert_eq!(interner.len() as usize, together.len());
    let numbers: HashSet<u32> = together.values().map(|(handle, _)| handle.index()).collect();
    assert!(numbers.len() == together.len() && numbers.iter().all(|number| (*number as usize) < together.len()));
}

type Memoised = fn(&Interner, Handle<Layout>, Handle<Layout>, i64) -> Result<Handle<Layout>, InternError>;
type Uncached = fn(&Layout, &Layout, i64) -> Result<Layout, LayoutError>;

/// A layout as a tiler, by mode where that makes sense.
fn tiler(b: &Layout, n: i64) -> Tiler {
    let modes = || Tiler::modes(b.modes().map(Tiler::from));
    if n % 2 == 0 { Tiler::from(b) } else { modes().unwrap() }
}

macro_rules! tilings {
    ($($name:ident)*) => {
        [$((
            stringify!($name),
            (|i, a, b, n| i.$name(a, i.intern(&tiler(i.get(b)?, n))?)) as Memoised,
            (|a, b, n| a.$name(&tiler(b, n))) as Uncached,
        )),*]
    };
}

macro_rules! pairs {
    ($($name:ident)*) => {
        [$((stringify!($name), (|i, a, b, _| i.$name(a, b)) as Memoised, (|a, b, _| a.$name(b)) as Uncached)),*]
    };
}

macro_rules! singles {
    ($($name:ident)*) => {
        [$((stringify!($name), (|i, a, _, _| i.$name(a)) as Memoised, (|a, _, _| a.$name()) as Uncached)),*]
    };
}

fn operations() -> Vec<(&'static str, Memoised, Uncached)> {
    let mut all: Vec<(&'static str, Memoised, Uncached)> = vec![
        ("complement", |i, a, _, n| i.complement(a, &n), |a, _, n| a.complement(&n)),
        ("weak_complement", |i, a, _, n| i.weak_complement(a, &n), |a, _, n| a.weak_complement(&n)),
        ("recast", |i, a, _, n| i.recast(a, n % 5 * 8, 16), |a, _, n| a.recast(n % 5 * 8, 16)),
        ("filter_zeros", |i, a, _, _| i.filter_zeros(a), |a, _, _| Ok(a.filter_zeros())),
        (
            "coalesce_by",
            |i, a, b, _| i.coalesce_by(a, i.intern(i.get(b)?.profile())?),
            |a, b, _| a.coalesce_by(b.profile()),
        ),
    ];
    all.extend(pairs!(compose compose_within add blocked_product raked_product));
    all.extend(
        singles!(coalesce flatten filter right_inverse left_inverse nullspace complement_open weak_complement_open),
    );
    all.extend(tilings!(compose_tiler logical_divide zipped_divide tiled_divide flat_divide));
    all.extend(tilings!(logical_product zipped_product tiled_product flat_product));
    all
}

/// Random programs on a growing list of layouts: each result, and each refusal, is that of the same
/// program without an interner.
#[test]
fn memoised_is_uncached() {
    const PROGRAMS: u64 = 400;
    const STEPS: usize = 50;
    let operations = operations();
    let interner = Interner::new();
    // For each operation, how often it gave a result and how often it was refused.
    let mut outcomes = vec![(0, 0); operations.len()];
    let mut random = Random(17);
    for _ in 0..PROGRAMS {
        let mut values: Vec<Layout> = ["8:1", "(4,6):(6,1)", "((2,2),3):((1,8),2)", "(2,4):(0,-3)"].map(layout).into();
        for _ in 0..3 {
            let [s, t, d, e] = [4, 6, 9, 9].map(|bound| 1 + random.below(bound));
            values.push(layout(&format!("({s},{t}):({d},{e})")));
        }
        for _ in 0..STEPS {
            let which = random.below(operations.len() as i64) as usize;
            let (name, memoised, uncached) = operations[which];
            let [a, b] = [(); 2].map(|()| values[random.below(values.len() as i64) as usize].clone());
            let n = random.below(100);
            let (first, second) = (interner.intern(&a).unwrap(), interner.intern(&b).unwrap());
            let once = memoised(&interner, first, second, n);
            assert_eq!(memoised(&interner, first, second, n), once, "{name}: {a}, {b}, {n}");
            match (uncached(&a, &b, n), once) {
                (Ok(expected), Ok(handle)) => {
                    assert_eq!(interner.get(handle).unwrap(), &expected, "{name}: {a}, {b}, {n}");
                    outcomes[which].0 += 1;
                    if expected.size() <= 4096 && expected.leaves().len() <= 8 {
                        values.push(expected);
                    }
                }
                (Err(expected), Err(InternError::Refused(error))) => {
                    assert_eq!(*error, expected, "{name}: {a}, {b}, {n}");
                    outcomes[which].1 += 1;
                }
                (expected, found) => panic!("{name}: {a}, {b}, {n}: {expected:?} and {found:?}"),
            }
        }
    }
    let never_refused = ["coalesce", "flatten", "filter", "filter_zeros", "right_inverse"];
    for ((name, ..), (results, refusals)) in operations.iter().zip(outcomes) {
        assert!(results > 50, "{name}: {results} results");
        assert!(refusals > 0 || never_refused.contains(name) || *name == "nullspace", "{name}: no refusal");
    }
}

#[test]
fn composed_layouts_are_memoised_too() {
    let interner = Interner::new();
    let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    let (b, by): (Layout, Tiler) = (layout("(8,8):(1,64)"), "[4:1;16:1]".parse().unwrap());
    let handle = interner.intern(&tile).unwrap();
    let (b_handle, by_handle) = (interner.intern(&b).unwrap(), interner.intern(&by).unwrap());
    let check = |found: Result<Handle<Composed>, InternError>, expected: Result<Composed, LayoutError>| match expected {
        Ok(expected) => assert_eq!(interner.get(found.unwrap()).unwrap(), &expected),
        Err(error) => assert_eq!(found.unwrap_err().refusal(), Some(&error)),
    };
    for _ in 0..2 {
        check(interner.compose(handle, b_handle), tile.compose(&b));
        check(interner.compose_tiler(handle, by_handle), tile.compose_tiler(&by));
        check(interner.flatten(handle), tile.flatten());
        check(interner.logical_divide(handle, by_handle), tile.logical_divide(&by));
        check(interner.tiled_divide(handle, by_handle), tile.tiled_divide(&by));
        check(interner.flat_divide(handle, by_handle), tile.flat_divide(&by));
        check(interner.logical_product(handle, by_handle), tile.logical_product(&by));
        check(interner.zipped_product(handle, by_handle), tile.zipped_product(&by));
        check(interner.tiled_product(handle, by_handle), tile.tiled_product(&by));
        check(interner.flat_product(handle, by_handle), tile.flat_product(&by));
        check(interner.blocked_product(handle, b_handle), tile.blocked_product(&b));
        check(interner.raked_product(handle, b_handle), tile.raked_product(&b));
        check(interner.filter(handle), tile.filter());
        check(interner.recast(handle, 32, 16), tile.recast(32, 16));
        check(interner.left_inverse(handle), tile.left_inverse());
        check(interner.right_inverse(handle), tile.right_inverse());
        check(interner.compose_composed(handle, handle), tile.compose_composed(&tile));
        let complement = interner.complement(handle, &4096).unwrap();
        assert_eq!(interner.get(complement).unwrap(), &tile.complement(&4096).unwrap());
        let nullspace = interner.nullspace(handle).unwrap();
        assert_eq!(interner.get(nullspace).unwrap(), &tile.nullspace().unwrap());
    }
    assert_eq!(interner.remembered(), 19);
}

#[test]
fn refusals_are_remembered() {
    let interner = Interner::new();
    let a = interner.intern(&layout("(6,2):(1,7)")).unwrap();
    let b = interner.intern(&layout("(3,2):(2,3)")).unwrap();
    let refusal = || match interner.compose(a, b) {
        Err(InternError::Refused(error)) => error,
        other => panic!("{other:?}"),
    };
    let first = refusal();
    assert_eq!(first.code(), "E0107");
    // The same error, not an equal one.
    assert!(Arc::ptr_eq(&first, &refusal()));
    assert_eq!(interner.remembered(), 1);
    // And neither operation nor operands are mixed up.
    let (first, second) = (interner.get(a).unwrap(), interner.get(b).unwrap());
    assert_eq!(interner.compose(b, a).unwrap_err().refusal(), second.compose(first).err().as_ref());
    assert_eq!(interner.add(a, b).unwrap_err().refusal(), first.add(second).err().as_ref());
    assert_eq!(interner.get(interner.coalesce(a).unwrap()).unwrap(), &first.coalesce().unwrap());
    assert_eq!(interner.remembered(), 4);
}

#[test]
fn foreign_handles_are_refused_everywhere() {
    let (here, there) = (Interner::new(), Interner::new());
    let [ours, theirs] = [&here, &there].map(|interner| interner.intern(&layout("4:1")).unwrap());
    assert_ne!(ours, theirs);
    assert_eq!((ours.index(), theirs.index()), (0, 0));
    assert_eq!(here.get(theirs), Err(InternError::Foreign));
    // Once as the first operand, once as the second; and with the outcome for the same numbers
    // remembered.
    here.compose(ours, ours).unwrap();
    here.complement(ours, &16).unwrap();
    assert_eq!(here.compose(theirs, ours), Err(InternError::Foreign));
    assert_eq!(here.compose(ours, theirs), Err(InternError::Foreign));
    assert_eq!(here.complement(theirs, &16), Err(InternError::Foreign));
    let tiler = there.intern(&Tiler::from(layout("2:1"))).unwrap();
    assert_eq!(here.zipped_divide(ours, tiler), Err(InternError::Foreign));
    assert_eq!(here.equivalent(ours, theirs), Err(InternError::Foreign));

    let mut here = here;
    here.clear();
    assert!(here.is_empty() && here.remembered() == 0);
    assert_eq!(here.get(ours), Err(InternError::Foreign));
    let again = here.intern(&layout("4:1")).unwrap();
    assert!(again != ours && here.compose(again, ours) == Err(InternError::Foreign));
}

#[test]
fn limits_are_kept() {
    let interner = Interner::with_limit(10);
    let ten =
        ["1:0", "2:1", "3:1", "2:2", "3:0", "2:0", "3:2", "(2,2):(1,2)", "(2,2):(1,0)", "(2,3):(1,3)"].map(layout);
    let more = small_layouts().into_iter().filter(|value| !ten.contains(value));
    let all: Vec<Layout> = ten.iter().cloned().chain(more).collect();
    let handles: Vec<_> = all.iter().map(|value| interner.intern(value)).collect();
    assert!(handles[..10].iter().all(Result::is_ok));
    assert!(handles[10..].iter().all(|handle| *handle == Err(InternError::Full { limit: 10 })));
    // What is there stays there, and each kind has its own room.
    assert_eq!(interner.intern(&all[3]), handles[3]);
    assert_eq!(interner.intern(&Swizzle::new(0, 0, 0).unwrap()).map(Handle::index), Ok(0));

    // Outcomes past the limit are right, and not remembered; new values are refused.
    let (mut right, mut full) = (0, 0);
    for a in handles.iter().flatten() {
        for b in handles.iter().flatten() {
            let expected = interner.get(*a).unwrap().compose(interner.get(*b).unwrap());
            match (interner.compose(*a, *b), expected) {
                (Ok(handle), Ok(expected)) if *interner.get(handle).unwrap() == expected => right += 1,
                (Err(InternError::Refused(error)), Err(expected)) if *error == expected => right += 1,
                (Err(InternError::Full { limit: 10 }), Ok(expected)) if interner.find(&expected).is_none() => full += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(right + full, 100);
    assert!(right > 10 && full > 10, "{right} right, {full} full");
    assert_eq!(interner.remembered(), 10);
    assert_eq!(Interner::with_limit(0).intern(&all[0]), Err(InternError::Full { limit: 0 }));
}

/// Two layouts are one function exactly when the handles of their coalesced forms are equal.
#[test]
fn equivalence_is_identity_of_canonical_forms() {
    let interner = Interner::new();
    let all = small_layouts();
    let mut equal = 0;
    for a in &all {
        for b in &all {
            let expected = a.size() == b.size() && (0..a.size()).all(|i| a.eval(&i).unwrap() == b.eval(&i).unwrap());
            let found = interner.equivalent(interner.intern(a).unwrap(), interner.intern(b).unwrap()).unwrap();
            assert_eq!(found, expected, "{a} and {b}");
            equal += i32::from(found && a != b);
        }
    }
    assert!(equal > 1000, "{equal}");
    // Of size 1 there is one function, whatever the coalesced form.
    let [none, one, other] = ["():()", "1:0", "(1,1):(7,3)"].map(|text| interner.intern(&layout(text)).unwrap());
    assert!(interner.equivalent(none, one).unwrap() && interner.equivalent(other, none).unwrap());
}

/// The other kinds of layouts, by the same laws.
#[test]
fn layouts_of_every_kind() {
    let interner = Interner::new();
    let tile: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    let (b, by): (Layout, Tiler) = (layout("(4,8):(2,8)"), "[4:1;2:1]".parse().unwrap());
    let (tile_handle, b_handle) = (interner.intern(&tile).unwrap(), interner.intern(&b).unwrap());
    let by_handle = interner.intern(&by).unwrap();
    let xor =
        |found: Result<Handle<Layout<Xor>>, InternError>, expected: Result<Layout<Xor>, LayoutError>| match expected {
            Ok(expected) => assert_eq!(interner.get(found.unwrap()).unwrap(), &expected),
            Err(error) => assert_eq!(found.unwrap_err().refusal(), Some(&error)),
        };
    for _ in 0..2 {
        xor(interner.compose(tile_handle, b_handle), tile.compose(&b));
        xor(interner.compose_within(tile_handle, b_handle), tile.compose_within(&b));
        xor(interner.coalesce(tile_handle), tile.coalesce());
        xor(interner.filter(tile_handle), tile.filter());
        xor(interner.add(tile_handle, tile_handle), tile.add(&tile));
        xor(interner.zipped_divide(tile_handle, by_handle), tile.zipped_divide(&by));
        xor(interner.logical_product(tile_handle, by_handle), tile.logical_product(&by));
        xor(interner.left_inverse(tile_handle), tile.left_inverse());
        xor(interner.right_inverse(tile_handle), tile.right_inverse());
        xor(interner.complement(tile_handle, &640), tile.complement(&640));
    }

    let identity: Layout<Coordinate> = "(16,64):(1@0,1@1)".parse().unwrap();
    let handle = interner.intern(&identity).unwrap();
    let divided = interner.zipped_divide(handle, by_handle).unwrap();
    assert_eq!(interner.get(divided).unwrap(), &identity.zipped_divide(&by).unwrap());
    assert_eq!(interner.get(interner.compose(handle, b_handle).unwrap()).unwrap(), &identity.compose(&b).unwrap());
    let target: Tree<i64> = "(64,128)".parse().unwrap();
    for _ in 0..2 {
        let complement = interner.complement(handle, &target).unwrap();
        assert_eq!(interner.get(complement).unwrap(), &identity.complement(&target).unwrap());
        let inverse = interner.right_inverse(handle).unwrap();
        assert_eq!(interner.get(inverse).unwrap(), &identity.right_inverse().unwrap());
        let inverse = interner.left_inverse(handle).unwrap();
        assert_eq!(interner.get(inverse).unwrap(), &identity.left_inverse().unwrap());
        match (interner.logical_product(handle, by_handle), identity.logical_product(&by)) {
            (Ok(found), Ok(expected)) => assert_eq!(interner.get(found).unwrap(), &expected),
            (found, expected) => assert_eq!(found.unwrap_err().refusal(), expected.err().as_ref()),
        }
    }

    let symbolic = |text: &str| -> Layout<Expr> { text.parse().unwrap() };
    let (matrix, tiler) = (symbolic("(M{div=128},64):(64,1)"), Tiler::<Expr>::Layout(symbolic("128:1")));
    let tiler = Tiler::modes([tiler]).unwrap();
    let (matrix_handle, tiler_handle) = (interner.intern(&matrix).unwrap(), interner.intern(&tiler).unwrap());
    let divided = interner.logical_divide(matrix_handle, tiler_handle).unwrap();
    assert_eq!(interner.get(divided).unwrap(), &matrix.logical_divide(&tiler).unwrap());
    assert_eq!(interner.logical_divide(matrix_handle, tiler_handle), Ok(divided));
    // What is known about a parameter is part of the value.
    let other = interner.intern(&symbolic("(M{div=64},64):(64,1)")).unwrap();
    assert_ne!(other, matrix_handle);
    // Targets of complements: the number 2, and the expression whose tree has some number, are
    // different operands.
    let column = symbolic("4:2");
    let handle = interner.intern(&column).unwrap();
    for target in ["2", "8", "M", "N", "2*M"] {
        let target: Tree<Expr> = target.parse().unwrap();
        let target = &target.leaves()[0];
        for _ in 0..2 {
            match (interner.complement(handle, target), column.complement(target)) {
                (Ok(found), Ok(expected)) => assert_eq!(interner.get(found).unwrap(), &expected),
                (Err(InternError::Refused(error)), Err(expected)) => assert_eq!(*error, expected),
                other => panic!("{target}: {other:?}"),
            }
        }
    }
}
