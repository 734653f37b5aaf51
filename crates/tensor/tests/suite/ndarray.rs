//! Arrays of `ndarray` and tensors share memory, and have the same elements at the same
//! coordinates.

use ndarray::{Array2, Array3, ArrayViewD, Dimension, Ix3, arr0, s};
use tilewright_layout::{Layout, Tree};
use tilewright_tensor::{Tensor, TensorView, TensorViewMut, Tiling};

fn same(array: &ArrayViewD<'_, i64>, view: &TensorView<'_, i64>) {
    assert_eq!(array.len() as i64, view.size());
    for (index, value) in array.indexed_iter() {
        let indices: Vec<i64> = index.slice().iter().map(|i| *i as i64).collect();
        let coord = if let [only] = indices[..] { Tree::leaf(only) } else { Tree::flat(indices).unwrap() };
        let ours = view.get(&coord).unwrap();
        assert!(std::ptr::eq(ours, value), "{coord} of {:?}", view);
    }
}

#[test]
fn views_of_every_kind_of_slice() {
    let array = Array3::from_shape_fn((4, 5, 6), |(i, j, k)| (100 * i + 10 * j + k) as i64);
    for view in [
        array.view(),
        array.t(),
        array.slice(s![..;2, 1..4, ..]),
        array.slice(s![..;-1, ..;-2, 1..;3]),
        array.slice(s![3..4, .., ..;-1]),
        array.view().permuted_axes([2, 0, 1]),
    ] {
        let tensor = TensorView::from_ndarray(view).unwrap();
        same(&view.into_dyn(), &tensor);
        same(&tensor.to_ndarray().unwrap(), &tensor);
    }
    let wide = arr0(7_i64);
    let wide = wide.broadcast((3, 4)).unwrap();
    let tensor = TensorView::from_ndarray(wide).unwrap();
    assert_eq!(tensor.layout().to_string(), "(3,4):(0,0)");
    same(&tensor.to_ndarray().unwrap(), &tensor);
    let none = Array2::<i64>::zeros((3, 0));
    assert_eq!(TensorView::from_ndarray(none.view()).unwrap_err().code(), "E0102");
    let point = arr0(7_i64);
    assert_eq!(TensorView::from_ndarray(point.view()).unwrap().get(0), Ok(&7));
}

#[test]
fn layouts_become_strides() {
    let memory: Vec<i64> = (0..200).collect();
    for text in
        ["(4,5):(5,1)", "(4,5):(1,9)", "(3,4,2):(-20,3,-1)", "7:-3", "(7):(2)", "(1,5):(77,1)", "():()", "(2,3):(0,1)"]
    {
        let view = TensorView::with_origin(&memory, 80, text.parse::<Layout>().unwrap()).unwrap();
        same(&view.to_ndarray().unwrap(), &view);
    }
    let nested = TensorView::new(&memory, "((2,2),3):((1,6),2)".parse::<Layout>().unwrap()).unwrap();
    assert!(nested.to_ndarray().is_err());
    same(&nested.flatten().unwrap().to_ndarray().unwrap(), &nested.flatten().unwrap());
}

#[test]
fn what_is_written_through_one_is_in_the_other() {
    let mut array = Array3::<i64>::zeros((4, 5, 6));
    let mut tensor = TensorViewMut::from_ndarray(array.slice_mut(s![..;-1, .., ..;2])).unwrap();
    tensor.set([0, 1, 2], 9).unwrap();
    assert_eq!(array[[3, 1, 4]], 9);
    let mut tensor = Tensor::filled("(3,4):(-5,1)".parse::<Layout>().unwrap(), 0_i64).unwrap();
    let mut view = tensor.view_mut().into_ndarray().unwrap();
    view[[2, 3]] = 5;
    view[[0, 0]] = 4;
    assert_eq!((tensor.get([2, 3]), tensor.get([0, 0])), (Ok(&5), Ok(&4)));
    // A tile of a tensor is an array among others.
    let mut tensor = Tensor::filled("(4,6):(6,1)".parse::<Layout>().unwrap(), 0_i64).unwrap();
    for (number, tile) in tensor.view_mut().tiles_mut(&"[2:1;3:1]".parse().unwrap()).unwrap().enumerate() {
        tile.into_ndarray().unwrap().fill(number as i64);
    }
    assert_eq!(tensor.view().to_ndarray().unwrap()[[3, 5]], 3);
}

#[test]
fn memory_is_handed_over() {
    let array = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64);
    let (copy, address) = (array.clone(), array.as_ptr());
    let tensor = Tensor::from_ndarray(array).unwrap();
    assert_eq!(tensor.as_ptr(), address);
    same(&tensor.view().to_ndarray().unwrap(), &tensor.view());
    let back = tensor.into_ndarray().unwrap();
    assert_eq!((back.as_ptr(), back.clone().into_dimensionality::<Ix3>().unwrap()), (address, copy));
    // What is cut from an array keeps what was before it.
    let mut cut = Array2::from_shape_fn((5, 4), |(i, j)| (10 * i + j) as i64);
    cut.slice_collapse(s![2.., ..;-1]);
    let expected = cut.clone();
    let tensor = Tensor::from_ndarray(cut).unwrap();
    assert_eq!(tensor.into_ndarray().unwrap(), expected.into_dyn());
    let padded = Tensor::from_fn("(3,2):(-1,4)".parse::<Layout>().unwrap(), |index| index).unwrap();
    let values = padded.view().to_vec();
    let array = padded.into_ndarray().unwrap();
    assert_eq!(array.t().iter().copied().collect::<Vec<_>>(), values);
}
