//! Composed layouts of coordinates and of symbolic numbers.

use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{Composed, Coord, Coordinate, Layout, LayoutError, Swizzle, Tiler, Tree, coordinates};

fn coordinate(text: &str) -> Composed<Coordinate> {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn symbolic(text: &str) -> Composed<Expr> {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_window_of_coordinates() {
    let window = coordinate("(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)");
    assert_eq!(window.to_string(), "(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)");
    for text in [
        "(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)",
        "(4,5):(7,40) o (1,2) o (3,3):(1@1,1@0)",
        "((2,2),5):((8,1),16) o (1,1) o (3,(2,2)):(1@0,(1@1,2@1))",
        "((2,2),5):((8,1),16) o ((1,0),1) o (2,2,2):(1@0@0,1@1@0,1@1)",
        "16:3 o 2 o (4,2):(1,4)",
    ] {
        let map = coordinate(text);
        assert_eq!(coordinate(&map.to_string()), map);
        let outer: Layout = text.split_once(" o ").unwrap().0.parse().unwrap();
        let offset: Tree<i64> = text.split(" o ").nth(1).unwrap().parse().unwrap();
        for (index, coord) in coordinates(&map.shape()).unwrap().enumerate() {
            // Where the steps lead, one number for each term of the sum, by hand: through the
            // nesting of the offset.
            let value = map.inner().eval_at(&coord).unwrap();
            let within = value.in_profile(offset.profile()).unwrap();
            let leaves = within.leaves().iter().zip(offset.leaves()).map(|(a, b)| a + b);
            let place = Tree::new(offset.profile().clone(), leaves).unwrap();
            let expected = outer.eval_at(&place).unwrap();
            assert_eq!(map.eval(&(index as i64)), Ok(expected), "{text} at {coord}");
            assert_eq!(map.eval_at(&coord), Ok(expected), "{text} at {coord}");
        }
    }
    let slice = window.slice(&"(1,_)".parse::<Coord>().unwrap()).unwrap();
    assert_eq!(slice.to_string(), "(4,5):(1,4) o (1,0) o (3):(1@1)");
    let tiler: Tiler = "[2:1;3:1]".parse().unwrap();
    let divided = coordinate("(4,9):(1,4) o (0,0) o (4,9):(1@0,1@1)").zipped_divide(&tiler).unwrap();
    assert_eq!(divided.to_string(), "(4,9):(1,4) o (0,0) o ((2,3),(2,3)):((1@0,1@1),(2@0,3@1))");
    for text in ["(4,5):(1,4) o (0,0) o (2,3):(1@0,1@2)", "(4,5):(1,4) o (0,(0,1)) o 2:1@0", "S<1,0,1> o 0 o 2:1@0"] {
        assert!(matches!(text.parse::<Composed<Coordinate>>(), Err(LayoutError::NoPath { .. })), "{text}");
    }
}

#[test]
fn symbolic_maps_keep_their_outer_map() {
    let map = symbolic("(?):(?) o ? o (5,4):(4,1)");
    let copies: Layout<Expr> = "(?,?):(?,?)".parse().unwrap();
    let divided = symbolic("(?):(?) o ? o (6,8):(8,1)");
    let tiler: Tiler<Expr> = "(3,4):(1,3)".parse().unwrap();
    let tiles: Tiler<Expr> = "[(3):(1);(4):(1)]".parse().unwrap();
    let inner = |text: &str| text.parse::<Layout<Expr>>().unwrap();
    let (block, whole) = (inner("(5,4):(4,1)"), inner("(6,8):(8,1)"));
    let cases = [
        (map.blocked_product(&copies), block.blocked_product(&copies)),
        (map.raked_product(&copies), block.raked_product(&copies)),
        (map.flat_product(&copies.clone().into()), block.flat_product(&copies.clone().into())),
        (map.tiled_product(&copies.clone().into()), block.tiled_product(&copies.into())),
        (divided.logical_divide(&tiler), whole.logical_divide(&tiler)),
        (divided.tiled_divide(&tiler), whole.tiled_divide(&tiler)),
        (divided.tiled_divide(&tiles), whole.tiled_divide(&tiles)),
        (divided.zipped_divide(&tiler), whole.zipped_divide(&tiler)),
    ];
    let mut done = 0;
    for (result, expected) in cases {
        // What the algebra of symbolic layouts says about the inner layout holds for the map.
        match (result, expected) {
            (Ok(result), Ok(expected)) => {
                done += 1;
                assert_eq!(result.inner(), &expected);
                assert_eq!(result.to_string(), format!("(?):(?) o ? o {expected}"));
            }
            (result, expected) => assert_eq!(result.map(|map| map.inner().clone()), expected),
        }
    }
    assert!(done >= 4, "{done}");
}

#[test]
fn symbolic_maps_evaluate_and_share_what_is_known_of_a_name() {
    let map = symbolic("(M{div=4},8):(1,M) o K o (M/4,4):(4,1)");
    assert_eq!(map.size().to_string(), symbolic("1:0 o 0 o M{div=4}:1").size().to_string());
    assert_eq!(
        map.eval(&Expr::from(0)).unwrap().to_string(),
        "(M{div=4},8):(1,M)".parse::<Layout<Expr>>().unwrap().eval(&"K".parse().unwrap()).unwrap().to_string()
    );
    let tile = symbolic("S<3,3,3> o 64 o (8,64):(64,1)");
    assert_eq!(tile.eval(&Expr::from(1)).unwrap(), Expr::from(144));
    // The bits of an offset that is not known are arithmetic, but not of one that may be negative.
    for swizzle in ["S<3,3,3>", "S<2,0,3>", "S<2,1,-4>", "S<1,4,1>", "S<0,0,0>"] {
        let value = symbolic(&format!("{swizzle} o K o 8:1")).eval(&Expr::from(1)).unwrap();
        let swizzle: Swizzle = swizzle.parse().unwrap();
        for k in (1..1200).chain([1 << 20, (1 << 20) + 12345]) {
            let mut values = Values::new();
            values.set_named("K", k);
            assert_eq!(value.numbers(&values).unwrap(), swizzle.apply(k + 1), "{swizzle} at {k}");
        }
        let open = symbolic(&format!("{swizzle} o K{{int}} o 8:1")).eval(&Expr::from(1));
        assert!(swizzle.is_identity() || matches!(open, Err(LayoutError::Open { .. })), "{swizzle}");
    }
    let open = symbolic("flo:1 o 0 o (flo,2):(1,flo)");
    assert_eq!(symbolic(&open.to_string()), open);
}
