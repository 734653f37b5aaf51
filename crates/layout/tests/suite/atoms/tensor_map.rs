//! Boxes of bulk copies: what lies at each place of shared memory is what the box brings there.

use tilewright_layout::atoms::{SwizzleMode, TensorMap};
use tilewright_layout::{Layout, Tree, coordinates};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn shape(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

/// For every element of the first box of a tile, its place in shared memory is its number in the
/// box; and there is no box of more elements that starts as this one does.
#[test]
fn boxes_are_dense_in_shared_memory() {
    let cases = [
        ("(1024,512):(512,1)", "(128,64)", "(128,64):(64,1)", 16, 1, vec![64, 128]),
        ("(1024,512)", "(128,64)", "(128,64)", 16, 1, vec![128, 64]),
        ("(1024,512):(512,1)", "(128,64)", "((8,16),(32,2)):((32,256),(1,4096))", 16, 2, vec![32, 128]),
        ("(1024,512):(512,1)", "(128,64)", "((8,16),64):((64,512),1)", 8, 1, vec![64, 128]),
        ("(1024,512):(512,1)", "(512,64)", "(512,64):(64,1)", 16, 2, vec![64, 256]),
        ("(256,256,8):(256,1,65536)", "(64,32,2)", "(64,32,2):(32,1,2048)", 32, 1, vec![32, 64, 2]),
        // The longest part of a row, 250 elements, has 500 bytes, which is no multiple of 16.
        ("(64,1000):(1000,1)", "(8,1000)", "(8,1000):(1000,1)", 16, 40, vec![200, 1]),
        ("(64,(32,4)):(128,(1,32))", "(16,32)", "(16,32):(32,1)", 32, 1, vec![32, 16, 1]),
    ];
    for (global, tile, shared, bits, copies, boxed) in cases {
        let (global, tile, shared) = (layout(global), shape(tile), layout(shared));
        let map = TensorMap::new(&global, &tile, &shared, bits, SwizzleMode::None).unwrap();
        let found: Vec<i64> = map.dimensions().iter().map(|dimension| dimension.boxed).collect();
        assert_eq!((found, map.copies()), (boxed, copies), "{global} {shared}");
        assert_eq!(
            map.dimensions().iter().map(|dimension| dimension.boxed).product::<i64>() * copies,
            tile.product().unwrap()
        );
        for coordinate in coordinates(&tile).unwrap() {
            // The element's distance in global memory, as steps of the dimensions, says where in
            // the box it is.
            let mut rest = global.eval_at(&coordinate).unwrap() * bits / 8;
            let mut by_stride: Vec<_> = map.dimensions().to_vec();
            by_stride.sort_by_key(|dimension| -dimension.stride);
            let steps = by_stride.iter().map(|dimension| {
                let step = rest / dimension.stride;
                rest %= dimension.stride;
                (dimension.stride, step)
            });
            let steps: std::collections::HashMap<i64, i64> = steps.collect();
            let (mut number, mut run, mut inside) = (0, 1, true);
            for dimension in map.dimensions() {
                let step = steps[&dimension.stride];
                inside &= step < dimension.boxed;
                number += run * step;
                run *= dimension.boxed;
            }
            if inside {
                assert_eq!(shared.eval_at(&coordinate).unwrap(), number, "{global} {shared} at {coordinate}");
            }
        }
    }
}

#[test]
fn what_the_hardware_does_not_take_is_refused() {
    let refuse = |global: &str, tile: &str, shared: &str, bits, swizzle| {
        let error = TensorMap::new(&layout(global), &shape(tile), &layout(shared), bits, swizzle).unwrap_err();
        assert_eq!(error.code(), "E0327");
        error.to_string()
    };
    let (none, lines) = (SwizzleMode::None, SwizzleMode::Bytes64);
    let rows = "(1024,512):(512,1)";
    assert!(
        refuse(rows, "(128,64)", "(128,64):(1,128)", 16, none).ends_with("apart in global memory, in bytes, by 1024")
    );
    assert!(refuse(rows, "(128,64)", "(128,32):(32,1)", 16, none).contains("not those of the tile"));
    assert!(refuse("(1024,500):(500,1)", "(128,4)", "(128,4):(4,1)", 16, none).ends_with("but is 8"));
    let long = "a part of a row, of at most 256 elements, must be a multiple of 16 bytes, but the longest is 222";
    assert!(refuse("(64,999):(1000,1)", "(8,999)", "(8,999):(999,1)", 16, none).ends_with(long));
    assert!(refuse(rows, "(128,64)", "(128,64):(64,1)", 16, lines).ends_with("but is, in bytes, 128"));
    assert!(refuse("(1024,504):(500,1)", "(128,8)", "(128,8):(8,1)", 16, none).ends_with("but there is 1000"));
    assert!(refuse(rows, "(128,64)", "(128,64):(64,2)", 16, none).contains("no neighbours"));
    let many = "(16,16,16,16,16,16):(1,16,256,4096,65536,1048576)";
    assert!(refuse(many, "(16,2,1,1,1,1)", "(16,2,1,1,1,1)", 16, none).ends_with("there are 6"));
}
