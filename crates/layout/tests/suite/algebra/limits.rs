//! Limits are stated and hold: what reaches one exactly works, what is one beyond it is the stated
//! error, and nothing panics.
//!
//! Tests run with overflow checks, so a sum that would wrap ends one of these tests.

use tilewright_layout::{
    Composed, Coord, Layout, LayoutError, Leaf, Limit, MAX_CANDIDATES, MAX_CASES, MAX_DEPTH, MAX_IMAGE, MAX_NODES,
    MAX_SWIZZLE_BITS, Profile, Swizzle, Tiler, Tree, common_coarsening, common_refinement, compact_order, coordinates,
    crd2crd, crd2idx, domain_distribute, greatest_common_domain, idx2crd, increment, make_layout_tv, max_common_layout,
    max_common_vector,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn too_large<T: std::fmt::Debug>(result: Result<T, LayoutError>, limit: Limit) {
    match result {
        Err(LayoutError::TooLarge { limit: found, value }) => {
            assert_eq!(found, limit);
            assert!(value > if limit == Limit::Nodes { MAX_NODES } else { MAX_DEPTH });
        }
        other => panic!("not too large: {other:?}"),
    }
}

/// `4` inside this many parentheses.
fn nested(number: &str, depth: usize) -> String {
    format!("{}{number}{}", "(".repeat(depth), ")".repeat(depth))
}

fn flat_text(leaves: usize) -> String {
    format!("({})", vec!["1"; leaves].join(","))
}

#[test]
fn nodes_end_at_the_limit() {
    let most = MAX_NODES - 1; // the tuple is a node too
    assert_eq!(Profile::flat(most).unwrap().leaves(), most);
    too_large(Profile::flat(most + 1), Limit::Nodes);
    assert_eq!(flat_text(most).parse::<Tree<i64>>().unwrap().rank(), most);
    too_large(flat_text(most + 1).parse::<Tree<i64>>(), Limit::Nodes);
    let widest: Layout = flat_text(most).parse().unwrap();
    assert_eq!(widest.to_string().parse::<Layout>().unwrap(), widest);
    too_large(widest.append(&layout("1:0")), Limit::Nodes);
    too_large(widest.prepend(&layout("1:0")), Limit::Nodes);
    too_large(widest.group(0..2), Limit::Nodes);
    too_large(Layout::tuple([&widest, &widest]), Limit::Nodes);
    too_large(widest.append_to_rank(most + 1, &layout("1:0")), Limit::Nodes);
    assert_eq!(widest.coalesce().unwrap().to_string(), "1:0");
    // One leaf of 12 would become two in the place of one.
    let mut leaves = vec![Leaf { extent: 1, stride: 0 }; most];
    leaves[7] = Leaf { extent: 12, stride: 1 };
    let b = Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap();
    too_large(layout("(4,6):(1,8)").compose(&b), Limit::Nodes);
    assert_eq!(layout("24:2").compose(&b).unwrap().rank(), most);
    let twice = Tiler::modes(vec![Tiler::<i64>::Keep; most]).unwrap();
    too_large(Tiler::modes([twice.clone(), twice]), Limit::Nodes);
}

#[test]
fn depth_ends_at_the_limit() {
    let deepest = layout(&format!("{}:{}", nested("12", MAX_DEPTH), nested("1", MAX_DEPTH)));
    assert_eq!(deepest.depth(), MAX_DEPTH);
    assert_eq!(deepest.to_string().parse::<Layout>().unwrap(), deepest);
    too_large(nested("12", MAX_DEPTH + 1).parse::<Tree<i64>>(), Limit::Depth);
    too_large(nested("12", MAX_DEPTH + 1).parse::<Coord>(), Limit::Depth);
    too_large(Layout::tuple([&deepest]), Limit::Depth);
    too_large(deepest.group(0..1), Limit::Depth);
    too_large(deepest.append(&layout("1:0")).and_then(|pair| pair.group(0..1)), Limit::Depth);
    too_large(deepest.profile().substitute(|_| deepest.profile()), Limit::Depth);
    too_large(Profile::tuple([deepest.profile()]), Limit::Depth);
    let mut tiler = Tiler::<i64>::Keep;
    for _ in 0..MAX_DEPTH {
        tiler = Tiler::modes([tiler]).unwrap();
    }
    assert_eq!(tiler.to_string().parse::<Tiler>().unwrap(), tiler);
    too_large(Tiler::modes([tiler.clone()]), Limit::Depth);
    too_large(format!("[{tiler}]").parse::<Tiler>(), Limit::Depth);
    // An operation that opens a leaf into a tuple goes one deeper.
    too_large(layout("(4,6):(1,8)").compose(&deepest), Limit::Depth);
    assert_eq!(layout("24:2").compose(&deepest).unwrap().depth(), MAX_DEPTH);
    too_large(layout("(4,6):(1,8)").compose_tiler(&Tiler::Layout(deepest.clone())), Limit::Depth);
    let two = layout("(4,3):(1,8)").coalesce_by(&Profile::leaf()).unwrap();
    assert_eq!(two.to_string(), "(4,3):(1,8)");
    too_large(deepest.logical_divide(&Tiler::Layout(deepest.clone())), Limit::Depth);
    too_large(deepest.logical_product(&Tiler::Layout(deepest.clone())), Limit::Depth);
    let strided = layout(&format!("{}:{}", nested("12", MAX_DEPTH), nested("2", MAX_DEPTH)));
    too_large(strided.recast(8, 16), Limit::Depth);
    assert!(deepest.reverse().is_ok() && deepest.flatten().is_ok() && deepest.coalesce().is_ok());
}

#[test]
fn an_image_ends_at_the_limit() {
    let at = Layout::mode_of(MAX_IMAGE, 3).unwrap();
    assert_eq!(at.image().unwrap().len() as i64, MAX_IMAGE);
    let beyond = Layout::mode_of(MAX_IMAGE + 1, 3).unwrap();
    assert_eq!(beyond.image().unwrap_err().code(), "E0116");
}

#[test]
fn swizzle_bits_end_at_the_limit() {
    assert!(Swizzle::new(20, 3, MAX_SWIZZLE_BITS - 23).is_ok());
    assert_eq!(Swizzle::new(20, 4, MAX_SWIZZLE_BITS - 23).unwrap_err().code(), "E0116");
    for extreme in [i64::MIN, i64::MAX] {
        for (bits, base, shift) in [(extreme, 0, 0), (0, extreme, 0), (0, 0, extreme), (1, extreme, extreme)] {
            assert!(Swizzle::new(bits, base, shift).is_err());
        }
    }
    let widest = Swizzle::new(31, 1, 31).unwrap();
    for offset in [0, 1, -1, i64::MAX, i64::MIN] {
        assert_eq!(widest.apply(widest.apply(offset)), offset);
    }
}

/// Work that could be without end ends in an answer or in the error that says so.
#[test]
fn searches_end() {
    // No offset is 1, for all are multiples of a larger number.
    for text in ["(1073741824,1073741824):(-4,6)", "(65536,65536,65536):(-6,10,14)", "(1000003,1000033):(6,-15)"] {
        assert_eq!(layout(text).right_inverse(), Ok(layout("1:0")), "{text}");
    }
    // Almost every digit could be part of it.
    for text in ["(4000000000,2000000000):(-1000000,1000001)", "(65536,65536,65536):(-6,10,15)"] {
        match layout(text).right_inverse() {
            Ok(inverse) => {
                for i in 0..inverse.size().min(100) {
                    assert_eq!(layout(text).eval(&inverse.eval(&i).unwrap()).unwrap(), i);
                }
            }
            Err(error) => assert_eq!(error.code(), "E0110", "{text}"),
        }
    }
    // The largest number of points of the table, each of which must be placed.
    for text in [
        "(2,32768):(2,3)",
        "(3,20000):(-1,7)",
        "(128,512):(1,100)",
        "(2,30000):(5,-3)",
        "65536:-1",
        "(2,2,16384):(1,1,2)",
    ] {
        let l = layout(text);
        match l.left_inverse() {
            Ok(r) => {
                for k in 0..l.size() {
                    let offset = l.eval(&k).unwrap();
                    assert_eq!(l.eval(&r.eval(&offset).unwrap()).unwrap(), offset, "{l}: {r}");
                }
            }
            Err(LayoutError::Undecided { limit, .. }) => assert_eq!(limit, MAX_CANDIDATES),
            Err(error) => assert_eq!(error.code(), "E0114", "{error}"),
        }
    }
    assert_eq!(layout("(2,100000):(2,3)").left_inverse().unwrap_err().code(), "E0110");
    // Carries that cancel, again and again: the decision is by cases.
    for (a, b) in [
        ("(3,5,7,1000):(1,4,19,134)", "(1000,1000):(1,-1)"),
        ("(1009,1013,1019):(1,1010,1024143)", "(1000000007,3):(1,-1000)"),
        ("(99999,99999,99999):(1,100000,9999999999)", "(100003,100019,7):(99991,-99989,3)"),
    ] {
        match layout(a).compose(&layout(b)) {
            Ok(r) => assert_eq!(r.size(), layout(b).size()),
            Err(LayoutError::Undecided { limit, .. }) => assert_eq!(limit, MAX_CASES),
            Err(error) => assert!(["E0107", "E0108"].contains(&error.code()), "{error}"),
        }
    }
}

/// Layouts at the edge of what is representable: extents and strides next to 2^63, sizes that just
/// fit, sums that do not.
fn nasty() -> Vec<Layout> {
    const MAX: i64 = i64::MAX;
    const MIN: i64 = i64::MIN;
    let half = 1_i64 << 62;
    let mut texts: Vec<String> =
        ["():()", "1:0", "(1,1):(7,-7)", "((),4):((),1)", "(2,2):(2,3)", "(4,4):(1,1)", "(6,2):(1,7)", "(3,2):(2,3)"]
            .map(String::from)
            .to_vec();
    for extent in [1, 2, 3, 1 << 31, half, MAX] {
        for stride in [0, 1, -1, 2, MAX, MIN, MIN + 1, half, -half, 1 << 31] {
            texts.push(format!("{extent}:{stride}"));
        }
    }
    for (d, e) in [
        (1, MAX),
        (MAX, 1),
        (MIN, 1),
        (1, MIN),
        (MIN, MIN),
        (MAX, MAX),
        (MAX, MIN),
        (MAX, -MAX),
        (half, half),
        (-half, -half),
        (half, -half),
        (3, MAX - 3),
        (-3, MAX - 3),
        (2, 3),
        (-4, 6),
        (MAX - 1, 1),
        (-1, half),
    ] {
        texts.push(format!("(2,2):({d},{e})"));
        texts.push(format!("(2,(3,1)):({d},({e},{d}))"));
        texts.push(format!("(3,{}):({d},{e})", MAX / 3));
        texts.push(format!("({half},1):({d},{e})"));
        texts.push(format!("(2147483648,2147483648):({d},{e})"));
    }
    texts.push(format!("({}):({})", vec!["2"; 62].join(","), vec![MIN.to_string(); 62].join(",")));
    texts.push(format!(
        "({}):({})",
        vec!["2"; 62].join(","),
        (0..62).map(|i| (1_i64 << i).to_string()).collect::<Vec<_>>().join(",")
    ));
    texts.push(format!(
        "({}):({})",
        vec!["2"; 62].join(","),
        (0..62).map(|i| (3_i64 << i).wrapping_neg().to_string()).collect::<Vec<_>>().join(",")
    ));
    texts.iter().map(|text| layout(text)).collect()
}

const EDGES: [i64; 12] = [0, 1, -1, 2, 3, i64::MAX, i64::MIN, i64::MIN + 1, i64::MAX - 1, 1 << 62, -(1 << 62), 1 << 31];

/// The text of an answer or of its refusal: both are written, so that neither can panic.
fn told<T: std::fmt::Debug>(result: Result<T, LayoutError>) -> Option<T> {
    match result {
        Ok(value) => {
            let _ = format!("{value:?}");
            Some(value)
        }
        Err(error) => {
            assert!(error.code().starts_with('E') && !error.to_string().is_empty());
            let _ = (error.help(), format!("{error:?}"));
            None
        }
    }
}

#[test]
fn one_layout_never_panics() {
    for l in nasty() {
        told(l.to_string().parse::<Layout>()).filter(|read| *read == l).expect("prints and reads back");
        for edge in EDGES {
            told(l.eval(&edge));
            told(l.eval_at(&Tree::from(edge)));
            told(l.complement(&edge));
            told(l.weak_complement(&edge));
            told(l.upcast(edge));
            told(l.downcast(edge));
            told(l.recast(edge, 8));
            told(l.recast(8, edge));
            told(idx2crd(&Tree::from(edge), &l.shape()));
            let coord = l.shape().map(|_| edge);
            told(l.eval_at(&coord));
            told(crd2idx(&coord, &l.shape()));
            told(crd2crd(&coord, &l.shape(), &l.shape()));
            told(increment(&coord, &l.shape()));
            told(l.domain_offset(&coord));
            let index: Coord = Tree::leaf(tilewright_layout::Slot::At(edge));
            told(l.slice(&index));
            told(l.dice(&index));
            told(l.slice_and_offset(&index));
            told(l.shape().ceil_div(&Tree::from(edge)));
            told(l.shape().shape_div(&Tree::from(edge)));
            told(l.shape().round_up(&Tree::from(edge)));
            told(l.shape().evenly_divides(&Tree::from(edge)));
            told(l.shape().tuple_add(&coord));
            told(l.shape().tuple_sub(&coord));
            told(coord.elem_scale(&l.shape()));
            told(coord.inner_product(&l.stride()));
            told(coord.ceil_div(&l.shape()));
            told(coord.round_up(&l.shape()));
            told(coord.product());
            told(coord.sum());
            told(coord.gcd());
            let _ = (coord.elem_less(&l.shape()), coord.lex_cmp(&l.shape()), coord.colex_cmp(&l.shape()));
            if let Some(composed) = told(Composed::new(Swizzle::new(3, 4, 3).unwrap(), edge, l.clone())) {
                told(composed.cosize());
                told(composed.eval(&edge));
                told(composed.coalesce());
            }
            if let Some(composed) = told(Composed::new(l.clone(), edge, layout("(4,2):(1,-7)"))) {
                told(composed.cosize());
                told(composed.eval(&edge));
            }
        }
        told(l.range());
        told(l.cosize());
        told(l.coalesce());
        told(l.coalesce_z());
        told(l.filter());
        let _ = l.filter_zeros();
        told(l.complement_open());
        told(l.weak_complement_open());
        told(l.right_inverse());
        told(l.left_inverse());
        told(l.nullspace());
        told(l.is_injective());
        told(l.collision());
        let _ =
            (l.is_surjective(), l.is_bijective(), l.is_compact(), l.is_contiguous(), l.is_ordered(), l.is_tractable());
        told(l.image());
        let _ = l.max_alignment();
        told(l.layout_like());
        told(l.fragment_like());
        told(l.flatten());
        told(l.reverse());
        told(l.zip());
        told(l.group(0..1));
        told(l.take(0..1));
        told(l.select(&[0, 0]));
        told(l.remove(0));
        told(l.append_to_rank(3, &l));
        told(Layout::compact(&l.stride()));
        told(Layout::row_major(&l.shape()));
        told(compact_order(&l.shape(), &l.stride()));
        told(coordinates(&l.shape()).map(|all| all.take(5).collect::<Vec<_>>()));
        told(Tiler::from_shape(&l.stride()));
        let _ = (l.shape().max(), l.shape().min());
    }
}

#[test]
fn two_layouts_never_panic() {
    let all = nasty();
    for a in &all {
        for b in &all {
            told(a.compose(b));
            told(a.compose_within(b));
            told(a.add(b));
            let _ = a.equivalent(b);
            let tiler = Tiler::from(b);
            told(a.logical_divide(&tiler));
            told(a.logical_product(&tiler));
            told(a.blocked_product(b));
            told(a.raked_product(b));
            told(common_refinement(&a.shape(), &b.shape()));
            told(common_coarsening(&a.shape(), &b.shape()));
            told(greatest_common_domain(&a.shape(), &b.shape()));
            told(domain_distribute(&a.shape(), &b.shape()));
            told(a.shape().ceil_div(&b.shape()));
            told(a.shape().shape_div(&b.shape()));
            told(a.tile_to_shape(&b.shape(), None));
            let _ = a.shape().compatible(&b.shape());
        }
    }
}

/// As above, for those that search: over fewer pairs.
#[test]
fn two_searched_layouts_never_panic() {
    let all = nasty();
    for (position, a) in all.iter().enumerate() {
        told(max_common_vector(a, a));
        for b in all.iter().skip(position % 7).step_by(7) {
            told(max_common_layout(a, b));
            told(make_layout_tv(a, b));
            if let Some(composed) = told(Composed::new(a.clone(), 1, b.clone())) {
                told(composed.cosize());
            }
        }
    }
}

/// Layouts of very many modes; operations on them are linear, or nearly.
#[test]
fn many_modes_work_everywhere() {
    for rank in [1_000_usize, 10_000] {
        // Two modes of extent 2 in every thirty-two of a thousand are sixty-two in all.
        let moving = |i: usize| i % (rank / 31) < 2 && i / (rank / 31) < 31;
        let mut step = 1;
        let leaves: Vec<Leaf> = (0..rank)
            .map(|i| match moving(i) {
                true => {
                    step *= 2;
                    Leaf { extent: 2, stride: step / 2 }
                }
                false => Leaf { extent: 1, stride: 0 },
            })
            .collect();
        let l = Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap();
        assert_eq!((l.rank(), l.size()), (rank, 1 << 62));
        assert_eq!(l.to_string().parse::<Layout>().unwrap(), l);
        assert_eq!(l.coalesce().unwrap().to_string(), format!("{}:1", 1_i64 << 62));
        assert_eq!(l.eval(&12_345).unwrap(), 12_345);
        let crd = idx2crd(&Tree::from(12_345), &l.shape()).unwrap();
        assert_eq!(l.eval_at(&crd).unwrap(), 12_345);
        assert_eq!(crd2idx(&crd, &l.shape()).unwrap(), 12_345);
        assert_eq!(crd2crd(&crd, &l.shape(), &l.shape()).unwrap(), crd);
        assert_eq!(crd2idx(&increment(&crd, &l.shape()).unwrap(), &l.shape()).unwrap(), 12_346);
        assert_eq!(coordinates(&l.shape()).unwrap().nth(2).unwrap(), idx2crd(&Tree::from(2), &l.shape()).unwrap());
        assert_eq!(l.compose(&l).unwrap(), l);
        assert_eq!(l.compose_within(&l).unwrap(), l);
        assert!(l.equivalent(&l.flatten().unwrap()) && l.is_bijective() && l.is_ordered() && l.is_tractable());
        assert!(l.is_injective().unwrap());
        assert_eq!(l.complement(&(1 << 62)).unwrap().to_string(), "1:0");
        assert_eq!(l.right_inverse().unwrap().size(), 1 << 62);
        assert_eq!(l.left_inverse().unwrap().size(), 1 << 62);
        assert_eq!(l.nullspace().unwrap().size(), 1);
        assert_eq!(l.filter().unwrap().size(), 1 << 62);
        assert_eq!(l.add(&l).unwrap().to_string(), format!("{}:2", 1_i64 << 62));
        assert_eq!(l.layout_like().unwrap(), l);
        assert_eq!(Layout::compact(&l.shape()).unwrap(), l);
        assert_eq!(l.fragment_like().unwrap().size(), l.size());
        assert_eq!(Layout::row_major(&l.shape()).unwrap().reverse().unwrap().size(), l.size());
        let order = Tree::flat((0..rank as i64).rev()).unwrap();
        assert_eq!(compact_order(&l.shape(), &order).unwrap(), Layout::row_major(&l.shape()).unwrap().stride());
        assert_eq!(l.reverse().unwrap().reverse().unwrap(), l);
        assert_eq!(l.group(1..rank - 1).unwrap().rank(), 3);
        assert_eq!(l.select(&(0..rank).rev().collect::<Vec<_>>()).unwrap(), l.reverse().unwrap());
        let pairs = Layout::tuple([&l.upcast(2).unwrap(), &l.filter_zeros().upcast(1 << 61).unwrap()]);
        assert!(pairs.is_ok() || pairs.unwrap_err().code() == "E0103");
        let ones = Layout::compact(&Tree::flat(vec![1; rank]).unwrap()).unwrap();
        let zipped = Layout::tuple([&l, &ones]).unwrap().zip().unwrap();
        assert_eq!(zipped.rank(), rank);
        assert_eq!(zipped.zip().unwrap(), Layout::tuple([&l, &ones]).unwrap());
        assert_eq!(l.zip_with(&ones).unwrap(), zipped);
        assert_eq!(zipped.coalesce_by(&Profile::flat(rank).unwrap()).unwrap().rank(), rank);
        let keep: Coord = Tree::flat((0..rank).map(|i| match moving(i) {
            true => tilewright_layout::Slot::All,
            false => tilewright_layout::Slot::At(0),
        }))
        .unwrap();
        assert_eq!(l.slice(&keep).unwrap().rank(), 62);
        assert_eq!(l.dice(&keep).unwrap().rank(), rank - 62);
        assert_eq!(l.slice_and_offset(&keep).unwrap().1, 0);
        let tiler = Tiler::from_shape(&l.shape()).unwrap();
        assert_eq!(l.compose_tiler(&tiler).unwrap().size(), l.size());
        assert_eq!(tiler.to_string().parse::<Tiler>().unwrap(), tiler);
        for divided in
            [l.logical_divide(&tiler), l.zipped_divide(&tiler), l.tiled_divide(&tiler), l.flat_divide(&tiler)]
        {
            assert_eq!(divided.unwrap().size(), l.size());
        }
        assert_eq!(ones.blocked_product(&l).unwrap().rank(), rank);
        assert_eq!(ones.raked_product(&l).unwrap().rank(), rank);
        assert_eq!(l.shape().ceil_div(&l.shape()).unwrap(), ones.shape());
        assert_eq!(l.shape().product_each().unwrap(), l.shape());
        assert_eq!(l.shape().tuple_add(&l.shape()).unwrap().sum().unwrap(), 2 * l.shape().sum().unwrap());
        assert!(l.shape().compatible(&l.shape()).proved() && l.shape().elem_leq(&l.shape()).proved());
        assert_eq!(common_refinement(&l.shape(), &l.shape()).unwrap().rank(), 62);
        assert_eq!(common_coarsening(&l.shape(), &Tree::from(1 << 62)).unwrap().rank(), 1);
        assert_eq!(greatest_common_domain(&l.shape(), &l.shape()).unwrap().rank(), 62);
        assert_eq!(domain_distribute(&l.shape(), &Tree::from(12)).unwrap().size(), 4);
        assert_eq!(max_common_vector(&l, &l).unwrap(), 1 << 62);
        assert_eq!(l.recast(8, 16).unwrap_err().code(), "E0103");
        assert_eq!(l.recast(16, 8).unwrap().size(), 1 << 61);
        assert_eq!(l.max_alignment(), 1 << 62);
        assert_eq!(l.tile_to_shape(&l.shape(), None).unwrap().size(), l.size());
        let composed = Composed::new(Swizzle::new(3, 4, 3).unwrap(), 0, l.clone()).unwrap();
        assert_eq!(composed.to_string().parse::<Composed>().unwrap(), composed);
        assert_eq!(composed.cosize().unwrap(), 1 << 62);
    }
}

/// Modes of which very many run through the same offsets: every candidate of a search costs a
/// search of its own, and all share one limit.
#[test]
fn searches_within_searches_share_a_limit() {
    let wide = layout("(5,1000,64,65537,2,2,3,2,3):(213,1,0,1000,0,72,-13107396,-13107399,52429598)");
    assert_eq!(wide.right_inverse().unwrap_err().code(), "E0110");
    // Offset 1 is not in the second layout, so that nothing of the first matters.
    let wide = layout("(2,64,1000,5,65537,3):(8,15,1,0,1000,52429602)");
    assert_eq!(max_common_layout(&wide, &layout("(5,2):(4940,990)")).unwrap(), layout("1:0"));
    match max_common_layout(&wide, &layout("(5,2,7):(4940,1,990)")) {
        Ok(common) => assert!(common.size() <= 2),
        Err(error) => assert_eq!(error.code(), "E0110"),
    }
}
