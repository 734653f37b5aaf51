//! What is too large: of expressions, that they have too many terms; of integers, that they do not
//! fit in 64 bits.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, LayoutError, Stride, Tiler, Tree, crd2idx};

/// What each operation says whose result needs the product of `large` by itself.
fn refusals<N: Extent>(large: &N) -> Vec<(&'static str, LayoutError)> {
    let line = |extent: &N, stride: &N| Layout::<N>::mode_of(extent.clone(), stride.clone()).unwrap();
    let pair = |a: &N, b: &N| Tree::flat([a.clone(), b.clone()]).unwrap();
    let steep = line(&N::from(8), large);
    let long = line(large, large);
    let two = Layout::tuple([&line(&N::from(2), &N::one()), &steep]).unwrap();
    vec![
        ("eval", steep.eval(large).unwrap_err()),
        ("eval_at", two.eval_at(&pair(&N::one(), large)).unwrap_err()),
        ("cosize", long.cosize().unwrap_err()),
        ("compose", steep.compose(&steep).unwrap_err()),
        ("compose_within", steep.compose_within(&long).unwrap_err()),
        ("add", long.add(&long).and_then(|sum| sum.cosize()).unwrap_err()),
        ("logical_divide", steep.logical_divide(&Tiler::Layout(steep.clone())).unwrap_err()),
        ("complement", long.complement(&N::one()).unwrap_err()),
        ("complement_open", long.complement_open().unwrap_err()),
        ("logical_product", long.logical_product(&Tiler::Layout(line(&N::from(2), &N::one()))).unwrap_err()),
        ("elem_scale", pair(large, large).elem_scale(&pair(large, large)).unwrap_err()),
        ("inner_product", pair(large, large).inner_product(&pair(large, large)).unwrap_err()),
        ("product", pair(large, large).product().unwrap_err()),
        ("crd2idx", crd2idx(&pair(&N::one(), large), &pair(large, large)).unwrap_err()),
    ]
}

#[test]
fn what_is_too_large_is_said_in_its_own_words() {
    for (name, error) in refusals(&(i64::MAX / 2)) {
        assert!(matches!(error, LayoutError::Overflow { .. }), "{name}: {error}");
    }
    // The fourth power of a sum of eight names has 330 terms.
    let names: Expr = "a+b+c+d+e+f+g+h".parse().unwrap();
    let large = names.times(&names).unwrap();
    for (name, error) in refusals(&large) {
        assert!(matches!(error, LayoutError::Expression { .. }), "{name}: {error}");
        assert_eq!(error.code(), "E0103");
    }
}
