//! Named cases of layouts that are known at launch: what other libraries get wrong or refuse, and
//! what must not be answered.

use crate::oracle::{Flat, composite_exists, value};
use tilewright_layout::symbolic::{Declarations, Expr, Symbolic, Values};
use tilewright_layout::{Layout, LayoutError, Tiler, Tree, increment};

fn layout(text: &str) -> Layout<Expr> {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn text(result: Result<Layout<Expr>, LayoutError>) -> String {
    result.map_or_else(|error| format!("{} {error}", error.code()), |layout| layout.to_string())
}

fn compose(a: &str, b: &str) -> String {
    let mut names = Declarations::new();
    names.gather(a).unwrap();
    names.gather(b).unwrap();
    text(names.layout(a).unwrap().compose(&names.layout(b).unwrap()))
}

/// Composition with numbers that are not known: where CuTe checks nothing and answers wrongly.
#[test]
fn composition_answers_rightly_or_not_at_all() {
    // The size would change, from 8 to 6.
    assert!(compose("(6,4):(1,10)", "8:1").starts_with("E0108"));
    assert!(
        compose("(M,4):(1,10)", "8:1").starts_with("E0123 composition: needs 7 to be less than M; declare `M{min=8}`")
    );
    assert_eq!(compose("(M{min=8},4):(1,10)", "8:1"), "8:1");
    assert_eq!(compose("(M{div=6,max=6},4):(1,10)", "12:1"), "(6,2):(1,10)");
    // Wrong in two of four places.
    assert!(compose("(4,4):(1,10)", "4:3").starts_with("E010"));
    assert!(compose("(4,N):(1,S{int})", "4:3").starts_with("E0123"));
    assert_eq!(compose("(M{div=3,min=12},4):(1,10)", "4:3"), "4:3");
    assert!(compose("(8,8):(8,1)", "4:3").starts_with("E010"));
    // Any number will do as a stride, whatever its sign.
    assert_eq!(compose("?:?", "4:1"), "4:?");
    assert_eq!(compose("K:S{int}", "(4,8):(3,T{int})"), "(4,8):(3*S,S*T)");
    assert!(
        compose("(4,K):(1,8)", "2:T{int}")
            .starts_with("E0123 composition: needs 0 to be at most T; declare `T{min=0}`")
    );
}

#[test]
fn coalescing_merges_what_is_adjacent_for_every_value() {
    let coalesce = |of: &str| text(layout(of).coalesce());
    assert_eq!(coalesce("(4,8):(1,4)"), "32:1");
    assert_eq!(coalesce("(M,4):(1,M)"), "4*M:1");
    assert_eq!(coalesce("(4,M,K):(1,4,4*M)"), "4*K*M:1");
    assert_eq!(coalesce("(2,?,3):(2,?,4)"), "(2,?,3):(2,?,4)");
    assert_eq!(coalesce("(4,5,?,3,2):(1,4,?,1,3)"), "(20,?,6):(1,?,1)");
    assert_eq!(coalesce("(?,4):(1,4)"), "(?,4):(1,4)");
}

#[test]
fn complements_take_strides_that_are_not_known() {
    let mut names = Declarations::new();
    names.gather("M{div=128},K{min=2},L{min=2}").unwrap();
    let complement = |of: &str, target: &str| text(names.layout(of).unwrap().complement(&names.expr(target).unwrap()));
    assert_eq!(complement("(4,M):(1,4)", "64*M"), "16:4*M");
    assert_eq!(complement("(M,K):(K,1)", "8*K*M"), "8:K*M");
    assert_eq!(complement("(16,8):(1,M)", "M*K"), "(M/16,ceil(K/8)):(16,8*M)");
    assert!(complement("(16,8):(1,L)", "1024").ends_with("needs L to be a multiple of 16; declare `L{div=16}`"));
    assert_eq!(complement("1:1", "2*L"), "2*L:1");
}

#[test]
fn ragged_ends_come_out_simplified() {
    let divide = |of: &str, tiler: &str| {
        let mut names = Declarations::new();
        names.gather(of).unwrap();
        text(names.layout(of).unwrap().zipped_divide(&names.tiler(tiler).unwrap()))
    };
    assert_eq!(divide("(M{div=128},K):(K,1)", "[128:1;64:1]"), "((128,64),(M/128,ceil(K/64))):((K,1),(128*K,64))");
    assert_eq!(divide("(M,K):(K,1)", "[T:1;1:0]"), "((T,1),(ceil(M/T),K)):((K,0),(K*T,1))");
    assert_eq!(divide("(?,?):(1,?)", "[?:1;?:1]"), "((?,?),(ceil(?/?),ceil(?/?))):((1,?),(?,?*?))");
    let shape: Tree<Expr> = "(M{div=128},K)".parse().unwrap();
    assert_eq!(shape.ceil_div(&"(64,8)".parse().unwrap()).unwrap().to_string(), "(M/64,ceil(K/8))");
    assert_eq!(shape.round_up(&"(64,8)".parse().unwrap()).unwrap().to_string(), "(M,8*ceil(K/8))");
}

/// `N:3` leaves a gap of 3 between its elements, but none if N is 1: `1:1` divided by it is
/// `(1,1)`, and not `(1,3)`.
#[test]
fn a_tile_that_may_have_one_element_is_divided_by_where_that_makes_no_difference() {
    let divide = |of: &str, tile: &str| {
        let mut names = Declarations::new();
        names.gather(&format!("{of},{tile}")).unwrap();
        text(names.layout(of).unwrap().logical_divide(&names.tiler(tile).unwrap()))
    };
    for (of, tile) in [("N:1", "N:3"), ("N:8", "N:K"), ("N:2", "N:4*M{div=2}"), ("64:1", "N:5"), ("8:1", "N:3")] {
        let divided = divide(of, tile);
        assert!(divided.starts_with("E0123 logical_divide: needs "), "{of} by {tile}: {divided}");
    }
    assert_eq!(divide("N{min=2}:1", "N:3"), "(N,3):(3,1)");
    assert_eq!(divide("3*N*K:1", "N:3"), "(N,(3,K)):(3,(1,3*N))");
    assert_eq!(divide("8:1", "N:1"), "(N,floor(7/N)+1):(1,N)");
}

/// The search for a left inverse needs every number, those of repeating modes too.
#[test]
fn a_left_inverse_that_must_be_searched_asks_for_the_numbers() {
    let refused = text(layout("(2,4,M{max=16}):(1,1,0)").left_inverse());
    assert!(refused.starts_with("E0123 left_inverse: needs the value of M"), "{refused}");
}

#[test]
fn a_stride_that_may_be_zero_is_neither_filtered_nor_kept() {
    assert_eq!(text(layout("(4,8):(1,0)").nullspace()), "8:4");
    assert!(text(layout("(4,8):(1,?)").nullspace()).starts_with("E0123"));
    assert!(text(layout("(4,8):(1,?)").filter()).starts_with("E0123"));
    assert_eq!(text(layout("(4,8):(1,?{min=1})").filter()), "(4,8):(1,?)");
    assert_eq!(text(layout("1:?").right_inverse()), "1:0");
}

#[test]
fn the_last_index_before_an_unknown_end_goes_on_or_around() {
    let next: Tree<Expr> = increment(&"(1,2)".parse().unwrap(), &"(E,8)".parse().unwrap()).unwrap();
    for extent in [2_i64, 3, 9] {
        let mut values = Values::new();
        values.set_named("E", extent);
        let expected = increment(&"(1,2)".parse().unwrap(), &Tree::flat([extent, 8]).unwrap()).unwrap();
        assert_eq!(next.numbers(&values).unwrap(), expected);
    }
}

/// Layouts of small numbers, of rank 1 to 3.
fn numbers() -> Vec<String> {
    let leaves: Vec<(i64, i64)> =
        [1, 2, 3, 4, 6].iter().flat_map(|s| [0, 1, 2, 3, 4, 6, -1, 12].map(|d| (*s, d))).collect();
    let mut all: Vec<String> = leaves.iter().map(|(s, d)| format!("{s}:{d}")).collect();
    for (place, (s, d)) in leaves.iter().enumerate() {
        for step in [1, 7, 18] {
            let (t, e) = leaves[(place * 3 + step) % leaves.len()];
            let (u, f) = leaves[(place * 5 + step) % leaves.len()];
            all.push(format!("({s},{t}):({d},{e})"));
            all.push(format!("({s},({t},{u})):({d},({e},{f}))"));
        }
    }
    all
}

/// On numbers that are known, expressions give what integers give, refusals included.
#[test]
fn known_numbers_give_the_same_as_integers() {
    let all = numbers();
    let both = |symbolic: Result<Layout<Expr>, LayoutError>, plain: Result<Layout, LayoutError>, case: &str| {
        let symbolic = symbolic.map(|layout| layout.numbers(&Values::new()).unwrap());
        assert_eq!(symbolic, plain, "{case}");
        i32::from(plain.is_ok())
    };
    let (mut answered, mut compared) = (0, 0);
    for (place, a) in all.iter().enumerate() {
        let (x, p): (Layout<Expr>, Layout) = (layout(a), a.parse().unwrap());
        answered += both(x.coalesce(), p.coalesce(), a);
        answered += both(x.right_inverse(), p.right_inverse(), a);
        answered += both(x.left_inverse(), p.left_inverse(), a);
        answered += both(x.complement(&Expr::from(144)), p.complement(&144), a);
        answered += both(x.weak_complement_open(), p.weak_complement_open(), a);
        answered += both(x.nullspace(), p.nullspace(), a);
        answered += both(x.layout_like(), p.layout_like(), a);
        answered += both(x.fragment_like(), p.fragment_like(), a);
        compared += 8;
        for b in all.iter().skip(place % 7).step_by(7) {
            let (y, q): (Layout<Expr>, Layout) = (layout(b), b.parse().unwrap());
            let case = format!("{a} and {b}");
            answered += both(x.compose(&y), p.compose(&q), &case);
            let (symbolic, plain): (Tiler<Expr>, Tiler) = (Tiler::from(&y), Tiler::from(&q));
            answered += both(x.logical_divide(&symbolic), p.logical_divide(&plain), &case);
            answered += both(x.logical_product(&symbolic), p.logical_product(&plain), &case);
            answered += both(x.add(&y), p.add(&q), &case);
            compared += 4;
        }
    }
    println!("{compared} results, {answered} of them layouts");
    assert!(compared > 30_000 && answered > 10_000);
}

/// A composition over a family of numbers: each admissible value gives what the definition gives.
#[test]
fn a_tile_of_a_transposed_matrix() {
    let mut names = Declarations::new();
    names.gather("M{div=128},N{div=64}").unwrap();
    let (a, b) = (names.layout("(M,N):(N,1)").unwrap(), names.layout("((32,4),N):((1,32),M)").unwrap());
    let r = a.compose(&b).unwrap();
    assert_eq!(r.to_string(), "((32,4),N):((N,32*N),1)");
    for (m, n) in [(128, 64), (256, 64), (384, 128)] {
        let mut values = Values::new();
        values.set_named("M", m);
        values.set_named("N", n);
        let flat = |layout: &Layout<Expr>| -> Flat {
            layout.numbers(&values).unwrap().leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect()
        };
        let (a, b, r) = (flat(&a), flat(&b), flat(&r));
        assert!(composite_exists(&a, &b));
        for i in 0..128 * n {
            assert_eq!(value(&r, i), value(&a, value(&b, i)));
        }
    }
}
