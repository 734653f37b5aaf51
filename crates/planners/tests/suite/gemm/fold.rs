//! GEMMs of operands with folded modes, read in place: convolutions, permuted operands. The
//! interpreter runs their kernels, and each number is compared with a plain loop over layouts.

use tilewright_kernel::Element;
use tilewright_planners::gemm::{Matrix, Plan, Problem, Product};

use crate::gemm::{BF16, checked, function, h200, matrix, plan};

/// Runs a plan that one kernel carries out.
fn right(problem: &Problem, plan: &Plan) {
    let (product, compared) = checked(problem, plan);
    assert_eq!(product.kernels().len(), 1, "{:?}", product.lines());
    let [m, n, _] = problem.sizes();
    assert_eq!(compared, m * n);
}

/// A convolution of `images` of `(columns,rows)` results, of `channels` each, by filters of a size,
/// all with the channels contiguous.
fn convolution(
    element: Element,
    [images, columns, rows]: [i64; 3],
    [channels, filters]: [i64; 2],
    [s, r]: [i64; 2],
) -> Problem {
    let (width, height) = (columns + s - 1, rows + r - 1);
    let (line, image) = (channels * width, channels * width * height);
    let k = channels * s * r;
    let a = format!(
        "(({columns},{rows},{images}),({channels},{s},{r})):(({channels},{line},{image}),(1,{channels},{line}))"
    );
    let d = Matrix::rows(BF16, [columns * rows * images, filters]).unwrap();
    Problem::of(matrix(element, &a), Matrix::rows(element, [filters, k]).unwrap(), d).unwrap()
}

#[test]
fn convolutions_read_images_where_they_lie() {
    // Boxes that are whole, and such that reach past the edges of images; channels that fill no
    // stage.
    for (images, size, [channels, filters], filter) in [
        (2, [8, 8], [64, 24], [3, 3]),
        (3, [7, 5], [72, 40], [3, 2]),
        (1, [20, 3], [40, 16], [1, 5]),
        (2, [16, 4], [40, 8], [3, 1]),
    ] {
        let own = convolution(BF16, [images, size[0], size[1]], [channels, filters], filter);
        let group = if filter[0] > 1 { 2 } else { 1 };
        right(&own, &Plan { raster_band: group, ..plan(64, 32, 1) });
        right(&own, &Plan { blocks: 3, ..plan(128, 40, 2) });
    }
    // Steps of two pixels. Channels and columns of the filter are one axis, as they lie.
    let a = matrix(BF16, "((4,4,2),(40,3,3)):((80,800,4000),(1,40,400))");
    let [b, d] = [[24, 360], [32, 24]].map(|extents| Matrix::rows(BF16, extents).unwrap());
    right(&Problem::of(a, b, d).unwrap(), &plan(64, 24, 1));
    // Other types; a function of the sums with a bias, and a residual that lies as the result.
    right(&convolution(Element::E4M3, [1, 6, 6], [80, 16], [3, 3]), &plan(64, 16, 1));
    let own = convolution(BF16, [2, 6, 5], [40, 24], [3, 3]);
    let inputs = vec![matrix(BF16, "(60,24):(0,1)"), matrix(BF16, "(60,24):(24,1)")];
    let fused = function("relu(x + bias) + c", &["x", "bias", "c"], inputs);
    right(&own.fused(fused).unwrap(), &plan(64, 24, 1));
    // Lines of the result that no bulk copy writes.
    let own = convolution(BF16, [1, 6, 5], [40, 24], [3, 3]);
    let odd = Problem::of(own.a().clone(), own.b().clone(), matrix(BF16, "(30,24):(27,1)")).unwrap();
    right(&odd, &plan(64, 24, 1));
    let wide = Problem::of(own.a().clone(), own.b().clone(), matrix(Element::F32, "(30,24):(24,1)")).unwrap();
    right(&wide, &plan(64, 24, 1));
}

#[test]
fn permuted_operands_are_read_where_they_lie() {
    // Rows of two axes in the other order; K of two axes, of A alone, of B alone.
    for (a, b) in [
        ("((8,20),40):((800,40),1)", "(24,40):(40,1)"),
        ("(160,(40,2)):(40,(1,6400))", "(24,80):(80,1)"),
        ("(160,80):(80,1)", "(24,(40,2)):(40,(1,960))"),
        ("((10,16),(64,2)):((64,1280),(1,640))", "(24,(32,4)):(32,(1,768))"),
    ] {
        let d = matrix(BF16, "(160,24):(24,1)");
        let own = Problem::of(matrix(BF16, a), matrix(BF16, b), d).unwrap();
        right(&own, &plan(64, 24, 1));
    }
}

#[test]
fn what_tensor_maps_do_not_take_is_moved_before() {
    // Steps of three pixels, and of two within a filter: six dimensions. Channels that are no
    // multiple of 16 bytes. Columns of B that are folded.
    for (a, b) in [
        ("((4,4,2),(40,3,3)):((120,1680,7840),(1,80,1120))", "(24,360):(360,1)"),
        ("((4,4,2),(36,3,3)):((36,216,1296),(1,36,216))", "(24,324):(328,1)"),
        ("((4,8),16):((16,64),1)", "((3,8),16):((128,16),1)"),
    ] {
        let (a, b) = (matrix(BF16, a), matrix(BF16, b));
        let d = Matrix::rows(BF16, [32, 24]).unwrap();
        let product = Product::planned(&Problem::of(a, b, d).unwrap(), &plan(64, 24, 1), &h200()).unwrap();
        assert!(product.kernels().len() > 1, "{:?}", product.lines());
        product.check().unwrap();
    }
    let own = convolution(BF16, [2, 6, 5], [40, 24], [3, 3]);
    for refused in [Plan { swapped: true, ..plan(64, 24, 1) }, Plan { split_k: 2, ..plan(64, 24, 1) }] {
        assert_eq!(Product::planned(&own, &refused, &h200()).unwrap_err().code(), "E0940");
    }
    let product = Product::new(&convolution(BF16, [32, 56, 56], [64, 64], [3, 3]), &h200()).unwrap();
    assert_eq!(product.kernels().len(), 1);
    assert!(product.lines().iter().any(|line| line.contains("implicit GEMM")), "{:?}", product.lines());
}

/// Heads of a batch: matrices along two axes, in the middle of rows. They are moved before.
#[test]
fn a_batch_of_several_axes_is_moved_before() {
    let [a, b, d] =
        ["(40,32,(2,3)):(64,1,(32,2560))", "(24,32,(2,3)):(64,1,(32,1536))", "(40,24,(2,3)):(48,1,(24,1920))"]
            .map(|lies| matrix(BF16, lies));
    let own = Problem::of(a, b, d).unwrap();
    assert_eq!(own.batch(), 6);
    let product = Product::planned(&own, &plan(64, 24, 1), &h200()).unwrap();
    assert_eq!((product.kernels().len(), product.check().unwrap().compared), (4, 40 * 24 * 6));
}
