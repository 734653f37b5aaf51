//! Convolutions of images with borders. The interpreter runs their kernels, and each number is
//! compared with loops over pixels that know nothing of products.

use tilewright_kernel::Element;
use tilewright_planners::any_numbers;
use tilewright_planners::gemm::{Matrix, Plan, Problem, Product, ProductTensor, Window};

use crate::gemm::{BF16, function, h200, matrix, plan};

/// Images of channels, columns, rows and a number, with the channels contiguous.
fn channels_last(element: Element, [c, w, h, l]: [i64; 4]) -> Matrix {
    matrix(element, &format!("({c},({w},{h},{l})):(1,({c},{},{}))", c * w, c * w * h))
}

fn convolution(images: Matrix, extents: [i64; 4], filters: i64, window: Window) -> Problem {
    let [c, w, h, l] = extents;
    let [x, y] = window.results([w, h]).unwrap();
    let k = c * window.filter[0] * window.filter[1];
    let filter = Matrix::rows(images.element(), [filters, k]).unwrap();
    let d = Matrix::rows(BF16, [x * y * l, filters]).unwrap();
    Problem::convolution(images, filter, d, window).unwrap()
}

/// Runs a plan, and says how many kernels it has.
fn right(problem: &Problem, plan: &Plan) -> usize {
    let product = Product::planned(problem, plan, &h200()).unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    let report = product.check().unwrap_or_else(|error| panic!("{problem}, {plan}: {error}"));
    let [m, n, _] = problem.sizes();
    assert_eq!(report.compared as i64, m * n);
    product.kernels().len()
}

/// The definition of a convolution: each result is the sum over the pixels of its window that are
/// inside of the image, by loops over pixels.
#[test]
fn a_product_of_windows_is_a_convolution() {
    let extents @ [c, w, h, l] = [3, 5, 4, 2];
    for window in [
        Window::of([3, 3]).padded([1, 1]),
        Window { stride: [2, 1], dilation: [1, 2], padding_before: [2, 0], padding_after: [1, 3], filter: [2, 3] },
    ] {
        let problem = convolution(channels_last(BF16, extents), extents, 2, window);
        let [x, y] = window.results([w, h]).unwrap();
        let ([s, r], k) = (window.filter, c * window.filter[0] * window.filter[1]);
        // Small whole numbers, whose sums are exact.
        let of = |operand: ProductTensor, at: i64| match operand {
            ProductTensor::A => at % 7 - 3,
            _ => at % 5 - 2,
        };
        let bits = |operand: ProductTensor, at: i64| u64::from((of(operand, at) as f32).to_bits() >> 16);
        for (row, filter) in (0..x * y * l).flat_map(|row| [(row, 0), (row, 1)]) {
            let (column, line, image) = (row % x, row / x % y, row / x / y);
            let mut sum = 0;
            for at in 0..k {
                let (channel, i, j) = (at % c, at / c % s, at / c / s);
                let along = column * window.stride[0] + i * window.dilation[0] - window.padding_before[0];
                let down = line * window.stride[1] + j * window.dilation[1] - window.padding_before[1];
                if (0..w).contains(&along) && (0..h).contains(&down) {
                    let pixel = channel + c * (along + w * (down + h * image));
                    sum += of(ProductTensor::A, pixel) * of(ProductTensor::B, filter * k + at);
                }
            }
            let expected = problem.expected(&bits, [row, filter, 0]).unwrap();
            assert_eq!(expected.value, sum as f64, "{problem}: {row}, {filter}");
        }
        assert_eq!(r * s * c, k);
    }
}

#[test]
fn borders_are_read_as_zeros_where_the_images_lie() {
    for (extents, filter, border, dilation) in [
        ([64, 8, 8, 2], [3, 3], [1, 1], [1, 1]),
        ([40, 7, 5, 2], [3, 2], [1, 0], [1, 1]),
        ([40, 9, 3, 1], [5, 1], [2, 0], [1, 1]),
        ([40, 9, 8, 2], [3, 3], [2, 2], [2, 2]),
        // More zeros than a filter is wide; results of one column, of images of three.
        ([40, 4, 4, 1], [2, 2], [3, 3], [1, 1]),
        ([40, 3, 6, 2], [3, 3], [0, 1], [1, 1]),
    ] {
        let window = Window { dilation, ..Window::of(filter).padded(border) };
        let own = convolution(channels_last(BF16, extents), extents, 24, window);
        assert_eq!(right(&own, &plan(64, 24, 1)), 1, "{own}");
        assert_eq!(right(&own, &Plan { blocks: 3, ..plan(128, 24, 2) }), 1);
    }
    // Borders on one side; other types; a function of the sums, with a residual.
    let extents = [64, 6, 6, 1];
    let window = Window { padding_before: [0, 2], padding_after: [1, 0], ..Window::of([2, 3]) };
    for element in [Element::F16, Element::E4M3, Element::I8] {
        let images = channels_last(element, extents);
        let filter = Matrix::rows(element, [16, 384]).unwrap();
        let result = if element == Element::I8 { Element::I32 } else { BF16 };
        let own = Problem::convolution(images, filter, Matrix::rows(result, [36, 16]).unwrap(), window).unwrap();
        assert_eq!(right(&own, &plan(64, 16, 1)), 1);
    }
    let own = convolution(channels_last(BF16, extents), extents, 16, window);
    let inputs = vec![matrix(BF16, "(36,16):(0,1)"), matrix(BF16, "(36,16):(16,1)")];
    let fused = own.fused(function("relu(x + bias) + c", &["x", "bias", "c"], inputs)).unwrap();
    assert_eq!(right(&fused, &plan(64, 16, 1)), 1);
}

#[test]
fn other_images_are_moved_before() {
    let same = Window::of([3, 3]).padded([1, 1]);
    let steps = Window { stride: [2, 2], ..same };
    let [c, w, h, l] = [40, 7, 6, 2];
    let columns_first = |element| matrix(element, &format!("({c},({w},{h},{l})):({},(1,{w},{}))", w * h, c * w * h));
    let extents = [c, w, h, l];
    // Columns are contiguous: to contiguous channels, and read there.
    let own = convolution(columns_first(BF16), extents, 16, same);
    assert_eq!(right(&own, &plan(64, 16, 1)), 2, "{own}");
    let open = convolution(columns_first(BF16), extents, 16, Window::of([3, 3]));
    assert_eq!(right(&open, &plan(64, 16, 1)), 2);
    // Windows with a stride and a border, of one image: phases are two of five dimensions. Of more
    // images there are six, which no tensor map has.
    for (images, kernels) in [(1, 1), (2, 2)] {
        let extents = [c, 8, 6, images];
        let own = convolution(channels_last(BF16, extents), extents, 16, steps);
        assert_eq!(right(&own, &plan(64, 16, 1)), kernels, "{own}");
    }
    // Strides that do not divide the extents: to images that have their borders.
    assert_eq!(right(&convolution(channels_last(BF16, extents), extents, 16, steps), &plan(64, 16, 1)), 2);
    assert_eq!(right(&convolution(columns_first(Element::F16), extents, 16, steps), &plan(64, 16, 1)), 3);
    // Without borders nothing is moved.
    let inside = Window { stride: [2, 2], ..Window::of([3, 3]) };
    assert_eq!(right(&convolution(channels_last(BF16, extents), extents, 16, inside), &plan(64, 16, 1)), 1);
    // Three channels, one, and types that are parted.
    for (element, c) in [(BF16, 3), (BF16, 1), (Element::E4M3, 5), (Element::F32, 8), (Element::I8, 4)] {
        let extents = [c, 6, 5, 1];
        for window in [same, steps] {
            let images = channels_last(element, extents);
            let [x, y] = window.results([6, 5]).unwrap();
            let result = if element == Element::I8 { Element::I32 } else { Element::F32 };
            let d = Matrix::rows(result, [x * y, 8]).unwrap();
            let filter = Matrix::rows(element, [8, 9 * c]).unwrap();
            right(&Problem::convolution(images, filter, d, window).unwrap(), &plan(64, 8, 1));
        }
    }
    // Images of one column, which have no dimension there that a border could be outside of.
    let own = convolution(channels_last(BF16, [40, 1, 6, 2]), [40, 1, 6, 2], 24, same);
    assert!(right(&own, &plan(64, 24, 1)) > 1);
    // The same from an element on.
    let shifted = matrix(BF16, "(8,(1,7,2)):(1,(8,8,56))").at(3).unwrap();
    right(&convolution(shifted, [8, 1, 7, 2], 8, steps), &plan(64, 8, 1));
}

/// The plan of the model, with filters in PyTorch's layout.
#[test]
fn filters_may_lie_otherwise() {
    let window = Window::of([3, 3]).padded([1, 1]);
    let images = channels_last(BF16, [16, 6, 6, 2]);
    let filter = matrix(BF16, "(8,(16,3,3)):(144,(9,1,3))");
    let problem = Problem::convolution(images, filter, matrix(BF16, "(72,8):(8,1)"), window).unwrap();
    let product = Product::new(&problem, &h200()).unwrap();
    assert_eq!(product.check().unwrap().compared, 72 * 8);
    let numbers = |_: ProductTensor, element: Element, count: usize| any_numbers(element, count, 77);
    assert!(product.check_on(&numbers).is_ok());
}

#[test]
fn what_is_no_convolution_is_refused() {
    let code = |images: Matrix, window: Window| {
        let (filter, d) = (matrix(BF16, "(8,144):(144,1)"), matrix(BF16, "(16,8):(8,1)"));
        Problem::convolution(images, filter, d, window).unwrap_err().code()
    };
    let images = || channels_last(BF16, [16, 4, 4, 1]);
    assert_eq!(code(matrix(BF16, "(16,16):(1,16)"), Window::of([3, 3])), "E0941");
    assert_eq!(code(images(), Window::of([5, 3])), "E0945");
    for wrong in [
        Window { stride: [0, 1], ..Window::of([3, 3]) },
        Window { dilation: [1, 0], ..Window::of([3, 3]) },
        Window { padding_before: [-1, 0], ..Window::of([3, 3]) },
        Window::of([3, 0]),
        Window { dilation: [i64::MAX, 1], ..Window::of([3, 3]) },
        Window { padding_before: [i64::MAX, 0], ..Window::of([3, 3]) },
    ] {
        assert_eq!(code(images(), wrong), "E0945", "{wrong:?}");
    }
    // Another number of results.
    assert_eq!(code(images(), Window::of([3, 3])), "E0942");
    let (filter, d) = (matrix(BF16, "(8,144):(144,1)"), matrix(BF16, "(16,8):(8,1)"));
    let wide = Window { dilation: [2, 1], ..Window::of([3, 3]).padded([0, 1]) };
    let error = Problem::convolution(images(), filter, d, wide).unwrap_err().to_string();
    let window = "3 x 3, padding of 0 and 0 columns, 1 and 1 rows, dilation of 2 columns and 1 rows";
    assert_eq!(error, format!("images of 4 x 4 have no windows of {window}"));
}
