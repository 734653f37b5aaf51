//! Slices, tiles and partitions: the element at every coordinate, by index arithmetic on a plain
//! array of the same numbers.
//!
//! The memory holds its own positions, so that the value of an element says where it is.

use rayon::prelude::*;
use tilewright_layout::{Composed, Coord, Layout, Leaf, StaticLayout, Tiler, Tree, Xor};
use tilewright_tensor::{Offsets, Tensor, TensorView, TensorViewMut, Tiling};

const MEMORY: i64 = 4096;

fn memory() -> Vec<i64> {
    (0..MEMORY).collect()
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn tiler(text: &str) -> Tiler {
    text.parse().unwrap()
}

/// A matrix as rows and columns, and the offset at each of its coordinates.
struct Matrix<L> {
    map: L,
    rows: i64,
    columns: i64,
    /// Column by column.
    offsets: Vec<i64>,
}

impl<L: Offsets> Matrix<L> {
    fn new(map: L, rows: i64, columns: i64, offset: impl Fn(i64, i64) -> i64) -> Matrix<L> {
        let offsets = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| offset(i, j)).collect();
        Matrix { map, rows, columns, offsets }
    }

    fn at(&self, i: i64, j: i64) -> i64 {
        assert!((0..self.rows).contains(&i) && (0..self.columns).contains(&j));
        self.offsets[(i + j * self.rows) as usize]
    }
}

const STATIC: StaticLayout =
    StaticLayout::new(&[Leaf { extent: 12, stride: 8 }, Leaf { extent: 8, stride: 1 }], &[0, 1], &[3, 0, 0]).unwrap();

/// Runs a check on matrices of every kind of layout.
macro_rules! on_all_kinds {
    ($check:ident) => {{
        for (rows, columns, down, right) in
            [(12, 8, 1, 12), (12, 8, 8, 1), (6, 4, 9, 2), (5, 7, 7, 1), (1, 6, 0, 3), (9, 1, 4, 0), (4, 4, 300, 20)]
        {
            let map = layout(&format!("({rows},{columns}):({down},{right})"));
            $check(&Matrix::new(map, rows, columns, |i, j| down * i + right * j));
        }
        $check(&Matrix::new(layout("((2,6),(4,2)):((8,16),(2,1))"), 12, 8, |i, j| {
            8 * (i % 2) + 16 * (i / 2) + 2 * (j % 4) + j / 4
        }));
        let swizzled: Composed = "S<3,0,3> o 0 o (12,8):(8,1)".parse().unwrap();
        $check(&Matrix::new(swizzled, 12, 8, |i, j| 8 * i + (j ^ i % 8)));
        let shifted: Composed = "S<2,0,3> o 20 o (6,4):(8,1)".parse().unwrap();
        $check(&Matrix::new(shifted, 6, 4, |i, j| {
            let offset = 20 + 8 * i + j;
            offset ^ (offset >> 3 & 3)
        }));
        let folded: Composed = "(4,6):(6,1) o 0 o (6,4):(4,1)".parse().unwrap();
        $check(&Matrix::new(folded, 6, 4, |i, j| {
            let index = 4 * i + j;
            6 * (index % 4) + index / 4
        }));
        let xor: Layout<Xor> = "(12,8):(^8,^1)".parse().unwrap();
        $check(&Matrix::new(xor, 12, 8, |i, j| 8 * i ^ j));
        let xor: Layout<Xor> = "(8,8):(^9,^1)".parse().unwrap();
        $check(&Matrix::new(xor, 8, 8, |i, j| (8 * i + i) ^ j));
        $check(&Matrix::new(STATIC, 12, 8, |i, j| 8 * i + j));
    }};
}

fn divisors(n: i64) -> Vec<i64> {
    (1..=n).filter(|d| n % d == 0).collect()
}

fn values<L: Offsets>(view: &TensorView<'_, i64, L>) -> Vec<i64> {
    let one_by_one: Vec<i64> = (0..view.size()).map(|index| *view.get(index).unwrap()).collect();
    assert_eq!(view.to_vec(), one_by_one);
    let mut iterated = view.iter();
    let stepped: Vec<i64> = std::iter::from_fn(|| iterated.next().copied()).collect();
    assert_eq!(stepped, one_by_one);
    // Some by steps, and the rest at once.
    for taken in [1, 2, one_by_one.len() / 2, one_by_one.len()] {
        let mut rest = view.iter();
        let mut both: Vec<i64> = rest.by_ref().take(taken).copied().collect();
        assert_eq!(rest.len() + both.len(), one_by_one.len());
        rest.for_each(|element| both.push(*element));
        assert_eq!(both, one_by_one);
    }
    one_by_one
}

fn slices<L: Offsets>(matrix: &Matrix<L>) {
    let memory = memory();
    let view = TensorView::new(&memory, matrix.map.clone()).unwrap();
    assert_eq!(values(&view), matrix.offsets);
    for i in 0..matrix.rows {
        let row = view.slice(&format!("({i},_)").parse().unwrap()).unwrap();
        assert_eq!(values(&row), (0..matrix.columns).map(|j| matrix.at(i, j)).collect::<Vec<_>>());
        for j in 0..matrix.columns {
            let point = view.slice(&format!("({i},{j})").parse().unwrap()).unwrap();
            assert_eq!(values(&point), [matrix.at(i, j)]);
            let cell = row.slice(&format!("({j})").parse().unwrap()).unwrap();
            assert_eq!(values(&cell), [matrix.at(i, j)]);
        }
    }
    for j in 0..matrix.columns {
        let column = view.slice(&format!("(_,{j})").parse().unwrap()).unwrap();
        assert_eq!(values(&column), (0..matrix.rows).map(|i| matrix.at(i, j)).collect::<Vec<_>>());
    }
    for outside in [format!("({},_)", matrix.rows), format!("(_,{})", matrix.columns), "(-1,_)".into()] {
        let refused = view.slice(&outside.parse().unwrap()).unwrap_err();
        assert_eq!(refused.code(), "E0403", "{outside}");
        assert!(refused.to_string().starts_with(&format!("coordinate {outside} is outside the shape ")), "{refused}");
    }
    assert!(view.slice(&"(0,0,0)".parse().unwrap()).is_err());
    for op in [view.flatten(), view.coalesce(), view.group_modes(0..2), view.coalesce_by(&view.layout().profile())] {
        assert_eq!(values(&op.unwrap()), matrix.offsets);
    }
    let swapped = view.select(&[1, 0]).unwrap();
    for i in 0..matrix.rows {
        for j in 0..matrix.columns {
            assert_eq!(*swapped.get([j, i]).unwrap(), matrix.at(i, j));
        }
    }
    let column = view.select(&[0]).unwrap();
    assert_eq!(values(&column), (0..matrix.rows).map(|i| matrix.at(i, 0)).collect::<Vec<_>>());
}

#[test]
fn slices_and_regroupings() {
    on_all_kinds!(slices);
}

fn divisions<L: Offsets>(matrix: &Matrix<L>) {
    let memory = memory();
    let view = TensorView::new(&memory, matrix.map.clone()).unwrap();
    for p in divisors(matrix.rows) {
        for q in divisors(matrix.columns) {
            let tiler = tiler(&format!("[{p}:1;{q}:1]"));
            let zipped = match view.zipped_divide(&tiler) {
                Ok(zipped) => zipped,
                // Whether a nested mode divides is the algebra's to say.
                Err(error) => {
                    assert_eq!(error.code(), "E0108", "{} {tiler}", matrix.map);
                    continue;
                }
            };
            let (logical, tiled, flat) = (
                view.logical_divide(&tiler).unwrap(),
                view.tiled_divide(&tiler).unwrap(),
                view.flat_divide(&tiler).unwrap(),
            );
            for i in 0..matrix.rows {
                for j in 0..matrix.columns {
                    let value = matrix.at(i, j);
                    let (tile, rest) = (i % p + p * (j % q), i / p + matrix.rows / p * (j / q));
                    assert_eq!(*zipped.get([tile, rest]).unwrap(), value);
                    assert_eq!(*logical.get([i, j]).unwrap(), value);
                    assert_eq!(*tiled.get([tile, i / p, j / q]).unwrap(), value);
                    assert_eq!(*flat.get([i % p, j % q, i / p, j / q]).unwrap(), value);
                    let coord: Coord = format!("({},{})", i / p, j / q).parse().unwrap();
                    for part in
                        [view.local_tile(&tiler, &coord).unwrap(), view.inner_partition(&tiler, &coord).unwrap()]
                    {
                        assert_eq!(*part.get([i % p, j % q]).unwrap(), value);
                        assert_eq!(part.size(), p * q);
                    }
                    let numbered = view.local_tile(&tiler, &Tree::leaf(rest.into())).unwrap();
                    assert_eq!(*numbered.get([i % p, j % q]).unwrap(), value);
                    let column_of_tiles = view.local_tile(&tiler, &format!("(_,{})", j / q).parse().unwrap()).unwrap();
                    assert_eq!(*column_of_tiles.get([i % p, j % q, i / p]).unwrap(), value);
                    let place: Coord = format!("({},{})", i % p, j % q).parse().unwrap();
                    let outer = view.outer_partition(&tiler, &place).unwrap();
                    assert_eq!(*outer.get([i / p, j / q]).unwrap(), value);
                }
            }
        }
    }
    for (p, q, code) in [
        (matrix.rows + 1, 1, "E0405"),
        (1, matrix.columns + 1, "E0405"),
        (matrix.rows * 1000, 1, "E0405"),
        (i64::MAX, 1, "E0405"),
    ] {
        assert_eq!(view.zipped_divide(&tiler(&format!("[{p}:1;{q}:1]"))).unwrap_err().code(), code);
    }
    for p in (1..matrix.rows).filter(|p| matrix.rows % p != 0) {
        for op in [view.zipped_divide(&tiler(&format!("[{p}:1]"))), view.flat_divide(&tiler(&format!("[{p}:1]")))] {
            assert_eq!(op.unwrap_err().code(), "E0406", "{} {p}", matrix.map);
        }
    }
}

#[test]
fn divisions_by_mode() {
    on_all_kinds!(divisions);
}

fn compositions<L: Offsets>(matrix: &Matrix<L>) {
    let memory = memory();
    let view = TensorView::new(&memory, matrix.map.clone()).unwrap();
    let size = matrix.rows * matrix.columns;
    let mut composed = 0;
    for (extents, strides) in [
        ([size, 1, 1], [1, 0, 0]),
        ([2, 2, 1], [1, 4, 0]),
        ([2, 3, 2], [3, 1, 6]),
        ([matrix.rows, matrix.columns, 1], [1, matrix.rows, 0]),
        ([matrix.columns, matrix.rows, 1], [matrix.rows, 1, 0]),
        ([2, 2, 2], [0, 1, 2]),
        ([2, 1, 1], [size - 1, 0, 0]),
        ([2, 1, 1], [size, 0, 0]),
        ([3, 1, 1], [-1, 0, 0]),
        ([3, 2, 1], [4, 1, 0]),
    ] {
        let b = Layout::new(&Tree::flat(extents).unwrap(), &Tree::flat(strides).unwrap()).unwrap();
        let indices: Vec<i64> = (0..b.size()).map(|index| b.eval(&index).unwrap()).collect();
        let inside = indices.iter().all(|index| (0..size).contains(index));
        match view.composition(&b) {
            Ok(view) => {
                assert!(inside, "{} {b}", matrix.map);
                let expected: Vec<i64> = indices.iter().map(|index| matrix.offsets[*index as usize]).collect();
                assert_eq!(values(&view), expected, "{} {b}", matrix.map);
                composed += 1;
            }
            Err(error) => assert_eq!(error.code() == "E0405", !inside, "{} {b}: {error}", matrix.map),
        }
    }
    assert!(composed >= 2);
    let tiler = tiler("[_;1:0]");
    assert_eq!(values(&view.compose_tiler(&tiler).unwrap()), matrix.offsets[..matrix.rows as usize]);
}

#[test]
fn compositions_within() {
    on_all_kinds!(compositions);
}

/// Every element of a tensor belongs to the part that index arithmetic says, and to no other.
fn partitions<L: Offsets>(matrix: &Matrix<L>) {
    type Number = Box<dyn Fn(i64, i64) -> i64>;
    let mut memory = memory();
    for (threads, number) in [
        ("(2,2):(1,2)", Box::new(|i: i64, j: i64| i % 2 + 2 * (j % 2)) as Number),
        ("(2,2):(2,1)", Box::new(|i, j| 2 * (i % 2) + j % 2)),
        ("(3,4):(4,1)", Box::new(|i, j| 4 * (i % 3) + j % 4)),
        ("((2,3),2):((1,4),2)", Box::new(|i, j| i % 2 + 4 * (i / 2 % 3) + 2 * (j % 2))),
        ("1:0", Box::new(|_, _| 0)),
    ] {
        let threads = layout(threads);
        let shape = threads.shape().product_each().unwrap();
        let tile: Vec<i64> = (0..2).map(|mode| shape.leaves().get(mode).copied().unwrap_or(1)).collect();
        let whole = threads.rank() == 1;
        let divides = matrix.rows % tile[0] == 0 && matrix.columns % tile[1] == 0;
        let view = TensorView::new(&memory, matrix.map.clone()).unwrap();
        let parts = match view.partition(&threads) {
            Ok(parts) => parts,
            Err(error) => {
                assert!(!divides || error.code() == "E0108", "{} {threads}: {error}", matrix.map);
                continue;
            }
        };
        assert!(divides || whole);
        assert_eq!(parts.len() as i64, threads.size());
        for (thread, part) in parts.enumerate() {
            let alone = view.local_partition(&threads, thread as i64).unwrap();
            assert_eq!(values(&part), values(&alone));
            let expected: Vec<i64> = (0..matrix.columns)
                .flat_map(|j| (0..matrix.rows).map(move |i| (i, j)))
                .filter(|(i, j)| number(*i, *j) == thread as i64)
                .map(|(i, j)| matrix.at(i, j))
                .collect();
            assert_eq!(values(&part), expected, "{} {threads}", matrix.map);
        }
        assert_eq!(view.local_partition(&threads, threads.size()).unwrap_err().code(), "E0407");
        assert_eq!(view.local_partition(&threads, -1).unwrap_err().code(), "E0407");
        let mut written = TensorViewMut::new(&mut memory, matrix.map.clone()).unwrap();
        written.view_mut().partition_mut(&threads).unwrap().into_par_iter().enumerate().for_each(
            |(thread, mut part)| {
                part.for_each_mut(|element| *element = -1 - thread as i64);
            },
        );
        for i in 0..matrix.rows {
            for j in 0..matrix.columns {
                assert_eq!(*written.get([i, j]).unwrap(), -1 - number(i, j));
            }
        }
        for (position, value) in memory.iter_mut().enumerate() {
            *value = position as i64;
        }
    }
}

#[test]
fn partitions_among_threads() {
    on_all_kinds!(partitions);
}

/// Writes the number of its tile to every element, in order and by threads, and checks all of
/// memory.
fn written_tiles<L: Offsets>(matrix: &Matrix<L>) {
    for p in 1..=matrix.rows {
        for q in 1..=matrix.columns {
            let (down, right) = ((matrix.rows + p - 1) / p, (matrix.columns + q - 1) / q);
            let mut expected = memory();
            for i in 0..matrix.rows {
                for j in 0..matrix.columns {
                    expected[matrix.at(i, j) as usize] = -1 - (i / p + down * (j / q));
                }
            }
            let shape = Tree::flat([p, q]).unwrap();
            let even = matrix.rows % p == 0 && matrix.columns % q == 0;
            let mut first = memory();
            let view = TensorViewMut::new(&mut first, matrix.map.clone()).unwrap();
            match view.clipped_tiles_mut(&shape) {
                Ok(tiles) => {
                    assert_eq!(tiles.len() as i64, down * right);
                    for (number, mut tile) in tiles.enumerate() {
                        tile.fill(-1 - number as i64);
                    }
                    assert_eq!(first, expected, "{} {shape}", matrix.map);
                }
                Err(error) => {
                    assert_eq!(error.code(), "E0108", "{} {shape}", matrix.map);
                    assert!(matrix.map.profile().depth() > 1, "{} {shape}", matrix.map);
                }
            }
            let mut second = memory();
            let mut view = TensorViewMut::new(&mut second, matrix.map.clone()).unwrap();
            let tiler = Tiler::from_shape(&shape).unwrap();
            match view.view_mut().tiles_mut(&tiler) {
                Ok(tiles) => {
                    assert!(even);
                    tiles.into_par_iter().rev().enumerate().for_each(|(number, mut tile)| {
                        tile.fill(number as i64 - down * right);
                    });
                    assert_eq!(second, expected, "{} {shape}", matrix.map);
                }
                Err(error) => assert_eq!(error.code(), if even { "E0108" } else { "E0406" }, "{} {shape}", matrix.map),
            }
        }
    }
    for mode in 0..2 {
        let mut memory = memory();
        let mut view = TensorViewMut::new(&mut memory, matrix.map.clone()).unwrap();
        let mut parts = view.view_mut().split_mode_mut(mode).unwrap();
        let count = if mode == 0 { matrix.rows } else { matrix.columns };
        // The iterator runs from both ends and skips elements.
        let mut number = 0;
        let last = parts.next_back();
        for mut part in parts {
            part.fill(-1 - number);
            number += 1;
        }
        last.unwrap().fill(-count);
        assert_eq!(number, count - 1);
        for i in 0..matrix.rows {
            for j in 0..matrix.columns {
                assert_eq!(*view.get([i, j]).unwrap(), -1 - if mode == 0 { i } else { j });
            }
        }
        assert_eq!(view.view_mut().split_mode_mut(2).unwrap_err().code(), "E0105");
    }
}

#[test]
fn tiles_are_disjoint_and_cover() {
    on_all_kinds!(written_tiles);
}

#[test]
fn tiles_that_repeat_are_only_read() {
    let memory = memory();
    let view = TensorView::new(&memory, layout("(4,4):(1,4)")).unwrap();
    let twice = view.composition(&layout("(2,4):(0,1)")).unwrap();
    assert_eq!(values(&twice), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(values(&view.select(&[0, 0]).unwrap())[..5], [0, 1, 2, 3, 1]);
    let mut memory = memory.clone();
    let mut view = TensorViewMut::new(&mut memory, layout("(4,4):(1,4)")).unwrap();
    for refused in [
        view.view_mut().composition(&layout("(2,4):(0,1)")).unwrap_err(),
        view.view_mut().composition(&layout("(3,3):(1,1)")).unwrap_err(),
        view.view_mut().compose_tiler(&tiler("[2:0;_]")).unwrap_err(),
        view.view_mut().select(&[0, 0]).unwrap_err(),
        view.view_mut().tiles_mut(&tiler("[2:0;4:1]")).unwrap_err(),
        view.view_mut().split_mode_mut(0).unwrap().next().unwrap().composition(&layout("2:0")).unwrap_err(),
    ] {
        assert_eq!(refused.code(), "E0402", "{refused}");
    }
    // Mirrored tiles are as good as any.
    // Threads at two places, and threads whose numbers have gaps.
    let twice = "the thread layout (2,2):(0,1) has thread 0 at index 0 and again at index 1";
    assert_eq!(view.view_mut().partition_mut(&layout("(2,2):(0,1)")).unwrap_err().to_string(), twice);
    assert_eq!(view.view_mut().local_partition(&layout("(2,2):(0,1)"), 0).unwrap_err().to_string(), twice);
    for gaps in ["(2,2):(1,4)", "(2,2):(-1,2)"] {
        assert_eq!(view.view_mut().partition_mut(&layout(gaps)).unwrap_err().code(), "E0413", "{gaps}");
    }
}

#[test]
fn a_projection_takes_the_modes_of_a_matrix() {
    let memory = memory();
    // The tile (M,N,K) = (4,2,3) over A (M,K), B (N,K) and C (M,N).
    let tile = tiler("[4:1;2:1;3:1]");
    let coord: Coord = "(1,2,_)".parse().unwrap();
    type At = Box<dyn Fn(i64, i64, i64) -> i64>;
    for (shape, projection, at) in [
        ("(8,6):(1,8)", "(1,_,1)", Box::new(|i: i64, j: i64, k: i64| 4 + i + 8 * (j + 3 * k)) as At),
        ("(6,6):(6,1)", "(_,1,1)", Box::new(|i, j, k| 6 * (4 + i) + j + 3 * k)),
        ("(8,6):(6,1)", "(1,1,_)", Box::new(|i, j, _| 6 * (4 + i) + 4 + j)),
    ] {
        let view = TensorView::new(&memory, layout(shape)).unwrap();
        let part = view.local_tile_projected(&tile, &coord, &projection.parse().unwrap()).unwrap();
        let extents: Vec<i64> = part.shape().leaves().to_vec();
        for i in 0..extents[0] {
            for j in 0..extents[1] {
                for k in 0..extents.get(2).copied().unwrap_or(1) {
                    let coord = Tree::flat([i, j, k].into_iter().take(extents.len())).unwrap();
                    assert_eq!(*part.get(&coord).unwrap(), at(i, j, k), "{shape}");
                }
            }
        }
    }
    // Threads (M,K) = (2,3) over a matrix (M): the threads of one row have the same.
    let threads = layout("(2,3):(3,1)");
    let view = TensorView::new(&memory, layout("(6):(2)")).unwrap();
    for thread in 0..6 {
        let part = view.local_partition_projected(&threads, thread, &"(1,_)".parse().unwrap()).unwrap();
        assert_eq!(values(&part), (0..3).map(|i| 2 * (2 * i + thread / 3)).collect::<Vec<_>>());
    }
}

#[test]
fn a_coordinate_of_tiles_names_no_more_modes_than_there_are() {
    let memory = memory();
    let view = TensorView::new(&memory, layout("(4,6):(6,1)")).unwrap();
    let (tiler, coord): (Tiler, Coord) = (tiler("[2:1;3:1]"), "(0,1,0)".parse().unwrap());
    let said = "partition: the coordinate does not fit a shape that nests as (*,*)";
    assert_eq!(view.local_tile(&tiler, &coord).unwrap_err().to_string(), said);
    assert_eq!(view.outer_partition(&tiler, &coord).unwrap_err().to_string(), said);
    // One that names fewer leaves the others open.
    let open = view.local_tile(&tiler, &"(1)".parse().unwrap()).unwrap();
    assert_eq!(values(&open), values(&view.local_tile(&tiler, &"(1,_)".parse().unwrap()).unwrap()));
}

#[test]
fn a_nested_slice_keeps_what_is_open() {
    let memory = memory();
    let view = TensorView::new(&memory, layout("((2,3),(4,5)):((60,20),(5,1))")).unwrap();
    let part = view.slice(&"((1,_),(_,2))".parse().unwrap()).unwrap();
    for i in 0..3 {
        for j in 0..4 {
            assert_eq!(*part.get([i, j]).unwrap(), 60 + 20 * i + 5 * j + 2);
        }
    }
    assert_eq!(view.slice(&"((1,3),_)".parse().unwrap()).unwrap_err().code(), "E0403");
    assert_eq!(view.slice(&"(6,_)".parse().unwrap()).unwrap_err().code(), "E0403");
}

#[test]
fn tensors_are_tiled_through_their_views() {
    let mut tensor = Tensor::from_vec(memory(), layout("(64,64):(64,1)")).unwrap();
    let sums: Vec<i64> = tensor
        .view_mut()
        .tiles_mut(&tiler("[8:1;16:1]"))
        .unwrap()
        .into_par_iter()
        .map(|tile| tile.iter().sum())
        .collect();
    assert_eq!(sums.len(), 32);
    assert_eq!(sums.iter().sum::<i64>(), MEMORY * (MEMORY - 1) / 2);
    assert_eq!(sums[0], (0..8).flat_map(|i| (0..16).map(move |j| 64 * i + j)).sum::<i64>());
}
