//! Large and hostile input is answered or refused, at once.

use tilewright_layout::morphism::{
    MutualRefinement, NestMorphism, PointedMap, Refinement, TupleMorphism, compose_by_refinement,
    standard_representation, tractability,
};
use tilewright_layout::{Layout, Leaf, MAX_NODES, Tree};

const MANY: usize = MAX_NODES - 1;

#[test]
fn tuples_of_the_largest_length() {
    let ones = Tree::flat(vec![1; MANY]).unwrap();
    let mutual = MutualRefinement::new(&ones, &ones).unwrap();
    assert_eq!(mutual.first().fine(), &ones);
    let f = NestMorphism::identity(&ones).unwrap();
    assert_eq!(f.flatten().inverse().unwrap(), *f.flatten());
    assert_eq!(f.pullback(&Refinement::identity(&ones).unwrap()).unwrap().morphism, f);
    assert_eq!(f.to_string().parse::<NestMorphism>().unwrap(), f);
    assert!(f.coalesce().unwrap().flatten().domain() == [1] && f.flatten().sort() == *f.flatten());
    assert_eq!(PointedMap::identity(MANY + 1).unwrap_err().code(), "E0104");
    assert_eq!(f.flatten().sum(f.flatten()).unwrap_err().code(), "E0104");

    let layout = Layout::from_tree(Tree::flat(vec![Leaf { extent: 1, stride: 7 }; MANY]).unwrap()).unwrap();
    assert_eq!(standard_representation(&layout).unwrap().size(), 1);
    assert_eq!(compose_by_refinement(&layout, &layout).unwrap().leaves().len(), MANY);
}

#[test]
fn numbers_near_the_limit() {
    const MOST: i64 = i64::MAX;
    // The size of a codomain need not fit, that of a domain does.
    let f = TupleMorphism::new([2], [MOST, 2], [Some(1)]).unwrap();
    assert_eq!(f.encoded_layout().unwrap().to_string(), format!("(2):({MOST})"));
    assert_eq!((f.realise(1).unwrap(), f.codomain_size().unwrap_err().code()), (MOST, "E0103"));
    assert_eq!(TupleMorphism::identity([MOST, 2]).unwrap_err().code(), "E0103");
    assert_eq!(TupleMorphism::new([2], [MOST, 3, 2], [Some(2)]).unwrap().encoded_layout().unwrap_err().code(), "E0103");
    assert_eq!(TupleMorphism::new([3], [MOST, 3], [Some(1)]).unwrap().realise(2).unwrap_err().code(), "E0103");
    assert_eq!(f.complement().unwrap().domain(), [MOST]);
    assert_eq!(TupleMorphism::new([2], [2, MOST, MOST], [Some(0)]).unwrap().complement().unwrap_err().code(), "E0103");
    assert_eq!(f.realise(2).unwrap_err().code(), f.realise(-1).unwrap_err().code());
    assert_eq!(TupleMorphism::identity([1 << 30]).unwrap().table().unwrap_err().code(), "E0717");

    let layout = |text: &str| text.parse::<Layout>().unwrap();
    for text in ["2:-9223372036854775808", "(2,2):(9223372036854775807,9223372036854775807)"] {
        assert_eq!(tractability(&layout(text)).unwrap_err().code(), "E0707");
    }
    let far = layout("2:4611686018427387904");
    assert_eq!(compose_by_refinement(&layout("4:1"), &far).unwrap_err().code(), "E0711");
    assert_eq!(tilewright_layout::morphism::WorkedComposition::new(&layout("4:1"), &far).unwrap_err().code(), "E0711");
}

#[test]
fn nesting_is_bounded() {
    let deep = format!("{}2{}", "(".repeat(64), ")".repeat(64));
    let tree: Tree<i64> = deep.parse().unwrap();
    let f = NestMorphism::identity(&tree).unwrap();
    let cut = Refinement::new(&tree, &tree).unwrap();
    assert_eq!(f.pushforward(&cut).unwrap().morphism, f);
    assert_eq!(f.concat(&NestMorphism::new(&Tree::flat([]).unwrap(), &tree, []).unwrap()).unwrap_err().code(), "E0104");
    let four: Tree<i64> = format!("{}4{}", "(".repeat(64), ")".repeat(64)).parse().unwrap();
    assert_eq!(MutualRefinement::new(&four, &"(2,2)".parse().unwrap()).unwrap_err().code(), "E0104");
}
