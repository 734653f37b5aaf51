//! Partitions of tensors for instructions: of plain, swizzled and mutable views, and of
//! coordinates.

use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::{Composed, Layout, Tiler, Tree};
use tilewright_tensor::{CoordinateTensor, Instructed, Offsets, Tensor, TensorViewMut};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn mma(name: &str, atoms: &str, permutation: &str) -> TiledMma {
    let permutation = permutation.parse::<Tiler>().unwrap();
    TiledMma::new(MmaAtom::named(name).unwrap(), &layout(atoms), &permutation).unwrap()
}

/// The part of a view has the elements that the part of the layout of indices names, whatever the
/// layout of the view.
#[test]
fn parts_of_views_are_those_of_layouts() {
    let mma = mma("SM80_16x8x16_F32F16F16F32_TN", "(2,2,1):(1,2,0)", "[_;(2,4,4):(1,8,2);_]");
    let indices: Layout = Layout::compact(&"(64,64)".parse::<Tree<i64>>().unwrap()).unwrap();
    let rows = Tensor::from_fn(layout("(64,64):(64,1)"), |index| index).unwrap();
    let swizzled: Composed = "S<3,3,3> o 0 o (64,64):(64,1)".parse().unwrap();
    let swizzled = Tensor::from_fn(swizzled, |index| index).unwrap();
    let copy = TiledCopy::of_operand(CopyAtom::named("SM75_U32x4_LDSM_N").unwrap(), &mma, Operand::A).unwrap();
    let mut compared = 0;
    for thread in 0..mma.threads() {
        let slice = mma.get_slice(&thread).unwrap();
        for operand in [Operand::A, Operand::B, Operand::C] {
            let (begin, part) = slice.partition(operand, &indices).unwrap();
            let plain = rows.view().partition_for(&slice, operand).unwrap();
            let mixed = swizzled.view().partition_for(&slice, operand).unwrap();
            assert_eq!((plain.shape(), mixed.shape()), (part.shape(), part.shape()));
            for index in 0..part.size() {
                let expected = begin + part.eval(&index).unwrap();
                assert_eq!((*plain.get(index).unwrap(), *mixed.get(index).unwrap()), (expected, expected));
                compared += 1;
            }
        }
        for end in [CopyEnd::Source, CopyEnd::Destination] {
            let thread = copy.get_slice(&thread).unwrap();
            let (begin, part) = thread.partition(end, &indices).unwrap();
            let mixed = swizzled.view().partition_at(&thread, end).unwrap();
            assert_eq!(mixed.shape(), part.shape());
            for index in 0..part.size() {
                assert_eq!(*mixed.get(index).unwrap(), begin + part.eval(&index).unwrap());
            }
        }
    }
    assert_eq!(compared, 128 * (64 + 64 + 32));
}

/// 4 x 4 threads that multiply and add, each in fragments of its own: the whole is the product.
#[test]
fn a_product_by_parts() {
    let mma = mma("UniversalFMA<S32,S32,S32,S32>", "(4,4,1)", "[8:1;(4,4):(4,1);_]");
    let (m, n, k) = (16, 32, 6);
    let a = Tensor::from_fn(layout("(16,6):(6,1)"), |index| (index * 7 % 11 - 5) as i32).unwrap();
    let b = Tensor::from_fn(layout("(32,6)"), |index| (index * 5 % 13 - 6) as i32).unwrap();
    let mut c = Tensor::from_fn(layout("(16,32):(32,1)"), |index| index as i32).unwrap();
    for thread in 0..mma.threads() {
        let thread = mma.get_slice(&thread).unwrap();
        let (view_a, view_b) = (a.view(), b.view());
        let a = view_a.partition_for(&thread, Operand::A).unwrap();
        let b = view_b.partition_for(&thread, Operand::B).unwrap();
        let mut c = c.view_mut().partition_for(&thread, Operand::C).unwrap();
        let [rows, columns, depth] = [a.shape(), b.shape(), b.shape()]
            .map(|shape| shape.modes().map(|m| m.product().unwrap()).collect::<Vec<_>>());
        for i in 0..rows[1] {
            for j in 0..columns[1] {
                let mut sum = *c.get([0, i, j]).unwrap();
                for l in 0..depth[2] {
                    sum += a.get([0, i, l]).unwrap() * b.get([0, j, l]).unwrap();
                }
                c.set([0, i, j], sum).unwrap();
            }
        }
    }
    for i in 0..m {
        for j in 0..n {
            let products = (0..k).map(|l| a.get([i, l]).unwrap() * b.get([j, l]).unwrap());
            assert_eq!(*c.get([i, j]).unwrap(), (i + m * j) as i32 + products.sum::<i32>());
        }
    }
}

/// Tiles that a tensor ends in are refused; its coordinates go on, and say where it ends.
#[test]
fn edges() {
    let mma = mma("SM80_16x8x8_F32F16F16F32_TN", "(1,1,1)", "_");
    let slice = mma.get_slice(&31).unwrap();
    let ragged = Tensor::filled(layout("(24,12):(12,1)"), 0_u8).unwrap();
    assert_eq!(ragged.view().partition_for(&slice, Operand::C).unwrap_err().code(), "E0406");
    let small = Tensor::filled(layout("(8,8):(8,1)"), 0_u8).unwrap();
    assert_eq!(small.view().partition_for(&slice, Operand::C).unwrap_err().code(), "E0405");
    assert_eq!(small.view().partition_for(&slice, Operand::ScaleA).unwrap_err().code(), "E0319");
    let vector = Tensor::filled(layout("64:1"), 0_u8).unwrap();
    assert_eq!(vector.view().partition_for(&slice, Operand::A).unwrap_err().code(), "E0106");

    let shape: Tree<i64> = "(24,12)".parse().unwrap();
    let identity = CoordinateTensor::identity(&shape).unwrap();
    let mut inside = 0;
    for thread in 0..32 {
        let coordinates = identity.partition_for(&mma.get_slice(&thread).unwrap(), Operand::C).unwrap();
        assert_eq!(coordinates.shape().to_string(), "((2,2),2,2)");
        inside += coordinates.elem_less(&shape).unwrap().as_slice().iter().filter(|inside| **inside).count();
    }
    assert_eq!(inside, 24 * 12);
}

/// Where several threads name the same, there is no mutable part of one of them to be had by
/// itself.
#[test]
fn mutable_parts_are_owned() {
    let matrix = layout("(8,8):(8,1)");
    let mut memory = vec![0_u16; 64];
    let copy =
        TiledCopy::new(CopyAtom::named("SM75_U32x1_LDSM_N").unwrap(), 16, &layout("(8,4):(4,1)"), &layout("(1,2)"));
    let copy = copy.unwrap();
    for thread in 0..32 {
        let slice = copy.get_slice(&thread).unwrap();
        fn view<'a>(memory: &'a mut [u16], matrix: &Layout) -> TensorViewMut<'a, u16> {
            TensorViewMut::new(memory, matrix.clone()).unwrap()
        }
        let mut part = view(&mut memory, &matrix).partition_at(&slice, CopyEnd::Destination).unwrap();
        for index in 0..part.size() {
            part.set(index, part.get(index).unwrap() + 1 + thread as u16).unwrap();
        }
        assert_eq!(view(&mut memory, &matrix).partition_at(&slice, CopyEnd::Source).unwrap_err().code(), "E0402");
    }
    let owner = |index: u16| index / 2 + 1;
    assert!(memory.iter().zip(0..).all(|(value, index)| *value == owner(index)));
    assert!(matrix.injective().unwrap());
}
