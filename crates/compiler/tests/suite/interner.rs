//! The laws of the interner: unique, faithful, memoised, never confused.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::random::Random;
use tilewright_compiler::{Handle, InternError, Interner};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    AnyLayout, AnyTiler, AnyTree, Composed, Coordinate, DivideForm, Layout, LayoutError, Profile, Swizzle, Tiler, Tree,
    Truth, Xor,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn any(text: &str) -> AnyLayout {
    text.parse().unwrap()
}

/// The handle of a layout with integer strides.
fn intern(interner: &Interner, layout: &Layout) -> Handle<AnyLayout> {
    interner.intern(&AnyLayout::from(layout.clone())).unwrap()
}

/// Every layout of rank at most 2 with extents 1..=3 and strides -1..=3, flat and nested: 15 + 15 +
/// 225 + 225 of them.
fn small_layouts() -> Vec<AnyLayout> {
    let leaves: Vec<(i64, i64)> = (1..=3).flat_map(|s| (-1..=3).map(move |d| (s, d))).collect();
    let mut all = Vec::new();
    for (s, d) in &leaves {
        all.push(any(&format!("{s}:{d}")));
        all.push(any(&format!("({s}):({d})")));
        for (t, e) in &leaves {
            all.push(any(&format!("({s},{t}):({d},{e})")));
            all.push(any(&format!("({s},({t})):({d},({e}))")));
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
    let handles: Vec<Handle<AnyLayout>> = all.iter().map(|value| interner.intern(value).unwrap()).collect();
    assert_eq!(interner.len(), 480);
    assert_eq!(handles.iter().collect::<HashSet<_>>().len(), 480);
    for (position, (value, handle)) in all.iter().zip(&handles).enumerate() {
        assert_eq!(handle.index() as usize, position);
        assert_eq!(interner.get(*handle).unwrap(), value);
        // Again, and from a value that was made anew.
        assert_eq!(interner.intern(&any(&value.to_string())).unwrap(), *handle);
        assert_eq!(interner.find(value), Some(*handle));
        for (other, other_handle) in all.iter().zip(&handles) {
            assert_eq!(value == other, handle == other_handle);
        }
    }
    assert_eq!(interner.len(), 480);
    assert!(handles.is_sorted());
    assert_eq!((size_of::<Handle<AnyLayout>>(), size_of::<Option<Handle<AnyLayout>>>()), (8, 8));
}

#[test]
fn kinds_do_not_meet() {
    let interner = Interner::new();
    let inner = any("(8,8):(8,1)");
    let swizzles: Vec<Swizzle> = (1..5).flat_map(|b| (0..4).map(move |m| Swizzle::new(b, m, 3 + b).unwrap())).collect();
    let composed: Vec<AnyLayout> =
        swizzles.iter().map(|s| Composed::new(*s, 0, layout("(8,8):(8,1)")).unwrap().into()).collect();
    let shape: AnyTree = "(8,8)".parse().unwrap();
    let tiler: AnyTiler = "(8,8)".parse().unwrap();
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

    // Of a shape and a tiler with the same number, each is itself.
    assert_eq!((plain.index(), others.0.index(), others.1.index()), (0, 0, 0));
    let (flat, swizzled) = (interner.coalesce(plain).unwrap(), interner.coalesce(handles[0]).unwrap());
    assert_eq!(interner.get(flat).unwrap(), &inner.coalesce().unwrap());
    assert_eq!(interner.get(swizzled).unwrap(), &composed[0].coalesce().unwrap());
    let divided = interner.divide(DivideForm::Zipped, handles[15], others.1).unwrap();
    assert_eq!(interner.get(divided).unwrap(), &composed[15].divide(DivideForm::Zipped, &tiler).unwrap());
    let by = interner.coalesce_by(handles[7], others.2).unwrap();
    assert_eq!(interner.get(by).unwrap(), &composed[7].coalesce_by(&profile).unwrap());
}

#[test]
fn one_identity_from_many_threads() {
    const THREADS: usize = 8;
    let all = small_layouts();
    let interner = Interner::new();
    let seen: Vec<HashMap<String, (Handle<AnyLayout>, usize)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (all, interner) = (&all, &interner);
                scope.spawn(move || {
                    let mut seen = HashMap::new();
                    let mut see = |handle: Handle<AnyLayout>| {
                        let value = interner.get(handle).unwrap();
                        let place = (handle, std::ptr::from_ref(value).addr());
                        assert_eq!(*seen.entry(value.to_string()).or_insert(place), place);
                    };
                    let mut random = Random(thread as u64);
                    for _ in 0..4_000 {
                        let [a, b] = [(); 2].map(|()| &all[random.below(all.len() as i64) as usize]);
                        let (a, b) = (interner.intern(a).unwrap(), interner.intern(b).unwrap());
                        see(a);
                        let results =
                            [interner.compose(a, b), interner.complement(a, &AnyTree::from(random.below(40)))];
                        results.into_iter().flatten().for_each(&mut see);
                    }
                    seen
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut together: HashMap<&str, (Handle<AnyLayout>, usize)> = HashMap::new();
    for (text, place) in seen.iter().flatten() {
        assert_eq!(together.entry(text).or_insert(*place), place, "{text}");
    }
    assert!(together.len() > all.len());
    assert_eq!(interner.len() as usize, together.len());
    let numbers: HashSet<u32> = together.values().map(|(handle, _)| handle.index()).collect();
    assert!(numbers.len() == together.len() && numbers.iter().all(|number| (*number as usize) < together.len()));
}

type Memoised = fn(&Interner, Handle<AnyLayout>, Handle<AnyLayout>, i64) -> Result<Handle<AnyLayout>, InternError>;
type Uncached = fn(&Layout, &Layout, i64) -> Result<Layout, LayoutError>;

/// A layout as a tiler, by mode where that makes sense.
fn tiler(b: &Layout, n: i64) -> Tiler {
    let modes = || Tiler::modes(b.modes().map(Tiler::from));
    if n % 2 == 0 { Tiler::from(b) } else { modes().unwrap() }
}

/// The handle of that tiler.
fn tiler_of(interner: &Interner, b: Handle<AnyLayout>, n: i64) -> Result<Handle<AnyTiler>, InternError> {
    interner.intern(&AnyTiler::from(tiler(interner.get(b)?.integer().unwrap(), n)))
}

macro_rules! tilings {
    ($($method:ident: $($name:ident in $form:ident)*;)*) => {
        [$($((
            stringify!($name),
            (|i, a, b, n| i.$method(DivideForm::$form, a, tiler_of(i, b, n)?)) as Memoised,
            (|a, b, n| a.$name(&tiler(b, n))) as Uncached,
        ),)*)*]
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
        ("complement", |i, a, _, n| i.complement(a, &n.into()), |a, _, n| a.complement(&n)),
        ("weak_complement", |i, a, _, n| i.weak_complement(a, &n.into()), |a, _, n| a.weak_complement(&n)),
        ("recast", |i, a, _, n| i.recast(a, n % 5 * 8, 16), |a, _, n| a.recast(n % 5 * 8, 16)),
        ("filter_zeros", |i, a, _, _| i.filter_zeros(a), |a, _, _| Ok(a.filter_zeros())),
        (
            "coalesce_by",
            |i, a, b, _| i.coalesce_by(a, i.intern(i.get(b)?.profile())?),
            |a, b, _| a.coalesce_by(b.profile()),
        ),
        ("compose_tiler", |i, a, b, n| i.compose_tiler(a, tiler_of(i, b, n)?), |a, b, n| a.compose_tiler(&tiler(b, n))),
    ];
    all.extend(pairs!(compose compose_within add blocked_product raked_product));
    all.extend(
        singles!(coalesce flatten filter right_inverse left_inverse nullspace complement_open weak_complement_open),
    );
    all.extend(tilings! {
        divide: logical_divide in Logical zipped_divide in Zipped tiled_divide in Tiled flat_divide in Flat;
        product: logical_product in Logical zipped_product in Zipped tiled_product in Tiled flat_product in Flat;
    });
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
            let (first, second) = (intern(&interner, &a), intern(&interner, &b));
            let once = memoised(&interner, first, second, n);
            assert_eq!(memoised(&interner, first, second, n), once, "{name}: {a}, {b}, {n}");
            match (uncached(&a, &b, n), once) {
                (Ok(expected), Ok(handle)) => {
                    assert_eq!(interner.get(handle).unwrap().integer(), Some(&expected), "{name}: {a}, {b}, {n}");
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
    let handle = interner.intern(&AnyLayout::from(tile.clone())).unwrap();
    let (b_handle, by_handle) = (intern(&interner, &b), interner.intern(&AnyTiler::from(by.clone())).unwrap());
    let check = |found: Result<Handle<AnyLayout>, InternError>, expected: Result<Composed, LayoutError>| match expected
    {
        Ok(expected) => assert_eq!(interner.get(found.unwrap()).unwrap(), &AnyLayout::from(expected)),
        Err(error) => assert_eq!(found.unwrap_err().refusal(), Some(&error)),
    };
    let divide = |form| interner.divide(form, handle, by_handle);
    let product = |form| interner.product(form, handle, by_handle);
    for _ in 0..2 {
        check(interner.compose(handle, b_handle), tile.compose(&b));
        check(interner.compose_tiler(handle, by_handle), tile.compose_tiler(&by));
        check(interner.flatten(handle), tile.flatten());
        check(divide(DivideForm::Logical), tile.logical_divide(&by));
        check(divide(DivideForm::Tiled), tile.tiled_divide(&by));
        check(divide(DivideForm::Flat), tile.flat_divide(&by));
        check(product(DivideForm::Logical), tile.logical_product(&by));
        check(product(DivideForm::Zipped), tile.zipped_product(&by));
        check(product(DivideForm::Tiled), tile.tiled_product(&by));
        check(product(DivideForm::Flat), tile.flat_product(&by));
        check(interner.blocked_product(handle, b_handle), tile.blocked_product(&b));
        check(interner.raked_product(handle, b_handle), tile.raked_product(&b));
        check(interner.filter(handle), tile.filter());
        check(interner.recast(handle, 32, 16), tile.recast(32, 16));
        check(interner.left_inverse(handle), tile.left_inverse());
        check(interner.right_inverse(handle), tile.right_inverse());
        check(interner.compose(handle, handle), tile.compose_composed(&tile));
        let complement = interner.complement(handle, &4096.into()).unwrap();
        assert_eq!(interner.get(complement).unwrap().integer(), Some(&tile.complement(&4096).unwrap()));
        let nullspace = interner.nullspace(handle).unwrap();
        assert_eq!(interner.get(nullspace).unwrap().integer(), Some(&tile.nullspace().unwrap()));
    }
    assert_eq!(interner.remembered(), 19);
}

#[test]
fn refusals_are_remembered() {
    let interner = Interner::new();
    let a = interner.intern(&any("(6,2):(1,7)")).unwrap();
    let b = interner.intern(&any("(3,2):(2,3)")).unwrap();
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
    let [ours, theirs] = [&here, &there].map(|interner| interner.intern(&any("4:1")).unwrap());
    assert_ne!(ours, theirs);
    assert_eq!((ours.index(), theirs.index()), (0, 0));
    assert_eq!(here.get(theirs), Err(InternError::Foreign));
    // Once as the first operand, once as the second; and with the outcome for the same numbers
    // remembered.
    here.compose(ours, ours).unwrap();
    here.complement(ours, &16.into()).unwrap();
    assert_eq!(here.compose(theirs, ours), Err(InternError::Foreign));
    assert_eq!(here.compose(ours, theirs), Err(InternError::Foreign));
    assert_eq!(here.complement(theirs, &16.into()), Err(InternError::Foreign));
    let tiler = there.intern(&AnyTiler::from(any("2:1"))).unwrap();
    assert_eq!(here.divide(DivideForm::Zipped, ours, tiler), Err(InternError::Foreign));
    assert_eq!(here.equivalent(ours, theirs), Err(InternError::Foreign));

    let mut here = here;
    here.clear();
    assert!(here.is_empty() && here.remembered() == 0);
    assert_eq!(here.get(ours), Err(InternError::Foreign));
    let again = here.intern(&any("4:1")).unwrap();
    assert!(again != ours && here.compose(again, ours) == Err(InternError::Foreign));
}

#[test]
fn limits_are_kept() {
    let interner = Interner::with_limit(10);
    let ten = ["1:0", "2:1", "3:1", "2:2", "3:0", "2:0", "3:2", "(2,2):(1,2)", "(2,2):(1,0)", "(2,3):(1,3)"].map(any);
    let more = small_layouts().into_iter().filter(|value| !ten.contains(value));
    let all: Vec<AnyLayout> = ten.iter().cloned().chain(more).collect();
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
            let (x, y) = (a.integer().unwrap(), b.integer().unwrap());
            let expected = x.size() == y.size() && (0..x.size()).all(|i| x.eval(&i).unwrap() == y.eval(&i).unwrap());
            let found = interner.equivalent(interner.intern(a).unwrap(), interner.intern(b).unwrap()).unwrap();
            assert_eq!(found, Truth::from(expected), "{a} and {b}");
            equal += i32::from(expected && a != b);
        }
    }
    assert!(equal > 1000, "{equal}");
    let same = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|text| interner.intern(&any(text)).unwrap());
        interner.equivalent(a, b).unwrap()
    };
    // Of size 1 there is one function, whatever the coalesced form.
    assert_eq!([same("():()", "1:0"), same("(1,1):(7,3)", "():()")], [Truth::Proved; 2]);
    // Of swizzled layouts, forms that differ may be one function; of numbers that become known at
    // launch, an answer may be open.
    assert_eq!(same("S<3,4,3> o 0 o 8:1", "S<2,4,3> o 0 o (2,4):(1,2)"), Truth::Proved);
    assert_eq!(same("S<1,0,1> o 0 o 8:1", "8:1"), Truth::Refuted);
    assert_eq!(same("(M,8):(8,1)", "(M,(2,4)):(8,(1,2))"), Truth::Proved);
    assert_eq!(same("(4,4):(1,M)", "16:1"), Truth::Open);
    assert_eq!(same("(8,8):(^1,^8)", "64:^1"), Truth::Proved);
}

/// The other kinds of layouts, by the same laws.
#[test]
fn layouts_of_every_kind() {
    let interner = Interner::new();
    let tile: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    let (b, by): (Layout, Tiler) = (layout("(4,8):(2,8)"), "[4:1;2:1]".parse().unwrap());
    let tile_handle = interner.intern(&AnyLayout::from(tile.clone())).unwrap();
    let (b_handle, by_handle) = (intern(&interner, &b), interner.intern(&AnyTiler::from(by.clone())).unwrap());
    type Found = Result<Handle<AnyLayout>, InternError>;
    let check = |found: Found, expected: Result<AnyLayout, LayoutError>| match expected {
        Ok(expected) => assert_eq!(interner.get(found.unwrap()).unwrap(), &expected),
        Err(error) => assert_eq!(found.unwrap_err().refusal(), Some(&error)),
    };
    let xor = |found: Found, expected: Result<Layout<Xor>, LayoutError>| check(found, expected.map(AnyLayout::from));
    for _ in 0..2 {
        xor(interner.compose(tile_handle, b_handle), tile.compose(&b));
        xor(interner.compose_within(tile_handle, b_handle), tile.compose_within(&b));
        xor(interner.coalesce(tile_handle), tile.coalesce());
        xor(interner.filter(tile_handle), tile.filter());
        xor(interner.add(tile_handle, tile_handle), tile.add(&tile));
        xor(interner.divide(DivideForm::Zipped, tile_handle, by_handle), tile.zipped_divide(&by));
        xor(interner.product(DivideForm::Logical, tile_handle, by_handle), tile.logical_product(&by));
        xor(interner.left_inverse(tile_handle), tile.left_inverse());
        xor(interner.right_inverse(tile_handle), tile.right_inverse());
        xor(interner.complement(tile_handle, &640.into()), tile.complement(&640));
    }

    let identity: Layout<Coordinate> = "(16,64):(1@0,1@1)".parse().unwrap();
    let handle = interner.intern(&AnyLayout::from(identity.clone())).unwrap();
    let target: Tree<i64> = "(64,128)".parse().unwrap();
    for _ in 0..2 {
        let steps = |expected: Result<Layout<Coordinate>, LayoutError>| expected.map(AnyLayout::from);
        check(interner.divide(DivideForm::Zipped, handle, by_handle), steps(identity.zipped_divide(&by)));
        check(interner.compose(handle, b_handle), steps(identity.compose(&b)));
        check(interner.complement(handle, &target.clone().into()), steps(identity.complement(&target)));
        check(interner.right_inverse(handle), identity.right_inverse().map(AnyLayout::from));
        check(interner.left_inverse(handle), identity.left_inverse().map(AnyLayout::from));
        check(interner.product(DivideForm::Logical, handle, by_handle), steps(identity.logical_product(&by)));
    }

    let symbolic = |text: &str| -> Layout<Expr> { text.parse().unwrap() };
    let (matrix, tiler) = (symbolic("(M{div=128},64):(64,1)"), Tiler::<Expr>::Layout(symbolic("128:1")));
    let tiler = Tiler::modes([tiler]).unwrap();
    let matrix_handle = interner.intern(&AnyLayout::from(matrix.clone())).unwrap();
    let tiler_handle = interner.intern(&AnyTiler::from(tiler.clone())).unwrap();
    for _ in 0..2 {
        let divided = interner.divide(DivideForm::Logical, matrix_handle, tiler_handle);
        check(divided, matrix.logical_divide(&tiler).map(AnyLayout::from));
    }
    // What is known about a parameter is part of the value.
    let other = interner.intern(&any("(M{div=64},64):(64,1)")).unwrap();
    assert_ne!(other, matrix_handle);
    // Targets of complements: the number 2, and the expression whose tuple has some number, are
    // different operands.
    let column = symbolic("4:2");
    let handle = interner.intern(&AnyLayout::from(column.clone())).unwrap();
    for target in ["2", "8", "M", "N", "2*M"] {
        let target: Tree<Expr> = target.parse().unwrap();
        for _ in 0..2 {
            let found = interner.complement(handle, &target.clone().into());
            let expected = column.complement(&target.leaves()[0]).map(AnyLayout::from);
            match (&found, expected) {
                // The least kind may show more than expressions do.
                (Err(InternError::Refused(error)), Err(expected)) => assert_eq!(error.code(), expected.code()),
                (_, expected) => check(found, expected),
            }
        }
    }
}

/// A layout has one identity, whatever kind it was made as.
#[test]
fn the_least_kind_is_the_identity() {
    let interner = Interner::new();
    let integer = intern(&interner, &layout("(4,8):(8,1)"));
    let launch: Layout<Expr> = "(4,8):(8,1)".parse().unwrap();
    assert_eq!(interner.intern(&AnyLayout::from(launch)), Ok(integer));
    let steps: Layout<Coordinate> = "(4,8):(8,1)".parse().unwrap();
    assert_eq!(interner.intern(&AnyLayout::from(steps)), Ok(integer));
    // And a result whose XOR steps are all 0 is an integer layout.
    let (tile, still) = (interner.intern(&any("(4,8):(^8,0)")).unwrap(), intern(&interner, &layout("8:4")));
    let result = interner.compose(tile, still).unwrap();
    assert_eq!(interner.get(result).unwrap(), &any("8:0"));
}
