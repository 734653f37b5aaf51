//! What is done with elements: recasts, coordinates, zips, text, comparison, prepared access,
//! fragments.

use tilewright_layout::{Composed, Layout, Leaf, Tiler, Tree, Xor};
use tilewright_tensor::{
    CoordinateTensor, Offsets, Tensor, TensorError, TensorView, TensorViewMut, Tiling, Tolerance, Zipped,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// All flat layouts of two modes with these extents and strides.
fn flat_layouts() -> impl Iterator<Item = Layout> {
    let extents = [1, 2, 3, 4, 8];
    let strides = [-8, -4, -2, -1, 0, 1, 2, 4, 6, 8];
    let pairs =
        move || extents.into_iter().flat_map(move |extent| strides.into_iter().map(move |stride| (extent, stride)));
    pairs().flat_map(move |(extent, stride)| {
        pairs().map(move |(other, step)| {
            let leaves = [Leaf { extent, stride }, Leaf { extent: other, stride: step }];
            Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
        })
    })
}

/// The bytes of the element at each coordinate, as positions in memory.
fn bytes_at<T>(view: &TensorView<'_, T>, begin: *const u8, coord: &Tree<i64>) -> Vec<usize> {
    let element: *const T = view.get(coord).unwrap();
    let first = element as usize - begin as usize;
    (first..first + size_of::<T>()).collect()
}

/// Aligned memory, whose middle is element 32.
fn middle() -> Tensor<u8> {
    Tensor::from_fn(layout("1024:1"), |index| index as u8).unwrap()
}

#[test]
fn wide_elements_cover_boxes_of_narrow_ones() {
    let (mut done, mut backwards) = (0, 0);
    let memory = middle();
    let words: &[u16] = bytemuck::cast_slice(memory.as_slice());
    for map in flat_layouts() {
        // Both an aligned and an unaligned beginning: a mode that runs backwards may need either.
        for origin in [256, 257] {
            let view = TensorView::with_origin(words, origin, map.clone()).unwrap();
            let Ok(wide) = view.recast::<u32>() else { continue };
            done += 1;
            backwards += usize::from(map.leaves().iter().any(|leaf| leaf.stride == -1 && leaf.extent > 1));
            let (old, new) = (map.shape(), wide.shape());
            let parts: Vec<i64> = old.leaves().iter().zip(new.leaves()).map(|(old, new)| old / new).collect();
            assert_eq!(parts.iter().product::<i64>(), 2, "{map} {}", wide.layout());
            for index in 0..wide.size() {
                let (i, j) = (index % new.leaves()[0], index / new.leaves()[0]);
                let mut covered: Vec<usize> = (0..parts[0])
                    .flat_map(|a| (0..parts[1]).map(move |b| (a, b)))
                    .flat_map(|(a, b)| {
                        let coord = Tree::flat([i * parts[0] + a, j * parts[1] + b]).unwrap();
                        bytes_at(&view, memory.as_ptr(), &coord)
                    })
                    .collect();
                covered.sort_unstable();
                let wanted = bytes_at(&wide, memory.as_ptr(), &Tree::flat([i, j]).unwrap());
                assert_eq!(covered, wanted, "{map} at {origin} is {}", wide.layout());
            }
        }
    }
    assert!(done > 100 && backwards > 20, "{done} {backwards}");
}

#[test]
fn narrow_elements_are_parts_of_wide_ones() {
    let memory = middle();
    let words: &[u32] = bytemuck::cast_slice(memory.as_slice());
    for map in flat_layouts() {
        let view = TensorView::with_origin(words, 128, map.clone()).unwrap();
        let bytes = view.recast::<u8>().unwrap();
        assert_eq!(bytes.size(), 4 * view.size());
        let mut ours: Vec<usize> =
            (0..view.size()).flat_map(|index| bytes_at(&view, memory.as_ptr(), &Tree::leaf(index))).collect();
        let mut theirs: Vec<usize> =
            (0..bytes.size()).flat_map(|index| bytes_at(&bytes, memory.as_ptr(), &Tree::leaf(index))).collect();
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "{map} is {}", bytes.layout());
    }
}

#[test]
fn a_recast_view_is_written() {
    let mut words = vec![0_u32; 8];
    let view = TensorViewMut::with_origin(&mut words, 7, layout("(4,2):(-2,-1)")).unwrap();
    let mut bytes = view.recast::<u8>().unwrap();
    bytes.fill(0xAB);
    assert_eq!(words, [0xABAB_ABAB; 8]);
    let swizzled: Composed = "S<2,2,2> o 0 o (4,16):(16,1)".parse().unwrap();
    let mut tensor = Tensor::<u16, _>::zeroed(swizzled).unwrap();
    let mut wide = tensor.view_mut().recast::<u64>().unwrap();
    assert_eq!(wide.layout().to_string(), "S<2,0,2> o 0 o (4,4):(4,1)");
    wide.set([1, 0], u64::MAX).unwrap();
    let written: Vec<i64> = (0..16).filter(|j| *tensor.get([1, *j]).unwrap() == u16::MAX).collect();
    assert_eq!(written, [0, 1, 2, 3]);
    // No number of elements without size makes one with.
    let nothing = vec![(); 4];
    let view = TensorView::new(&nothing, layout("4:1")).unwrap();
    assert!(view.recast::<u8>().is_err());
    assert!(TensorView::new(&[1_u8; 4], layout("4:-1")).is_err());
    let byte = Tensor::filled(layout("4:-1"), 1_u8).unwrap();
    assert!(byte.view().recast::<()>().is_err());
}

#[test]
fn coordinates_follow_the_data() {
    // The memory holds indices, so that an element says at which coordinate of the whole it is.
    let (rows, columns) = (12, 8);
    let memory: Vec<i64> = (0..rows * columns).collect();
    let view = TensorView::new(&memory, layout("(12,8):(1,12)")).unwrap();
    let identity = CoordinateTensor::identity(&view.shape()).unwrap();
    let tiler: Tiler = "[4:1;2:4]".parse().unwrap();
    let threads = layout("(3,2):(2,1)");
    let b = layout("(4,(2,6)):(24,(12,1))");
    let pairs = [
        (view.zipped_divide(&tiler), identity.zipped_divide(&tiler)),
        (view.flat_divide(&tiler), identity.flat_divide(&tiler)),
        (view.slice(&"(_,3)".parse().unwrap()), identity.slice(&"(_,3)".parse().unwrap())),
        (view.local_partition(&threads, 4), identity.local_partition(&threads, 4)),
        (view.composition(&b), identity.composition(&b)),
        (view.select(&[1]), identity.select(&[1])),
        (view.group_modes(0..2), identity.group_modes(0..2)),
        (view.local_tile(&tiler, &"(1,0)".parse().unwrap()), identity.local_tile(&tiler, &"(1,0)".parse().unwrap())),
    ];
    for (data, coordinates) in pairs {
        let (data, coordinates) = (data.unwrap(), coordinates.unwrap());
        assert_eq!(data.shape(), coordinates.shape());
        for (index, coord) in (0..data.size()).zip(coordinates.iter()) {
            let value = *data.get(index).unwrap();
            assert_eq!(coord.leaves(), [value % rows, value / rows], "{data:?} {index}");
            assert_eq!(view.get(&coord), Ok(&value));
        }
    }
    let nested = CoordinateTensor::identity(&"((2,3),4)".parse().unwrap()).unwrap();
    let coords: Vec<String> = nested.iter().map(|coord| coord.to_string()).collect();
    assert_eq!(coords[7], "((1,0),1)");
    assert_eq!(nested.get([6, 0]).unwrap_err().code(), "E0403");
}

#[test]
fn coordinates_are_split_along_a_mode() {
    // Each coordinate of the whole is in one slice: that of its index in the mode.
    for (text, extents) in [("(3,4,5)", [3, 4, 5]), ("(3,(2,2),5)", [3, 4, 5]), ("(2,1,3)", [2, 1, 3])] {
        let whole = CoordinateTensor::identity(&text.parse().unwrap()).unwrap();
        for mode in 0..3 {
            let parts: Vec<_> = whole.split_mode(mode).unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(parts.len() as i64, extents[mode], "{text} {mode}");
            for (index, part) in parts.iter().enumerate() {
                let mut expected = Vec::new();
                for k in 0..extents[2] {
                    for j in 0..extents[1] {
                        for i in 0..extents[0] {
                            if [i, j, k][mode] == index as i64 {
                                expected.push([i, j, k]);
                            }
                        }
                    }
                }
                let found = part.iter().map(|coord| {
                    let leaves = coord.leaves();
                    // The nested mode counts its first axis first.
                    if let [i, a, b, k] = leaves { [*i, a + 2 * b, *k] } else { [leaves[0], leaves[1], leaves[2]] }
                });
                assert_eq!(found.collect::<Vec<_>>(), expected, "{text} {mode} {index}");
            }
        }
        assert_eq!(whole.split_mode(3).err().map(|error| error.code()), Some("E0105"));
    }
    // A line has one mode, and tiles of it go past its end.
    let line = CoordinateTensor::identity(&Tree::leaf(5)).unwrap();
    let starts = line.split_mode(0).unwrap().map(|part| part.unwrap().get(0).unwrap().leaves()[0]);
    assert_eq!(starts.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let tiles = line.zipped_divide(&"[2:1]".parse().unwrap()).unwrap();
    let ends = tiles.split_mode(1).unwrap().map(|tile| tile.unwrap().get(1).unwrap().leaves()[0]);
    assert_eq!(ends.collect::<Vec<_>>(), [1, 3, 5]);
}

/// Every element at its coordinate, and nothing else: through plain, strided and swizzled layouts,
/// for parts of every kind.
fn gathered_and_scattered<L: Offsets>(map: L) {
    let (rows, columns) = (11, 7);
    let matrix = Tensor::from_fn(map.clone(), |index| index + 1).unwrap();
    let whole = CoordinateTensor::identity(&matrix.shape()).unwrap();
    let tiles = whole.zipped_divide(&"[4:1;2:2]".parse().unwrap()).unwrap();
    let threads = layout("(2,2):(2,1)");
    let parts = [
        whole.slice(&"(_,3)".parse().unwrap()).unwrap(),
        whole.select(&[1, 0]).unwrap(),
        whole.local_tile(&"[4:1;4:1]".parse().unwrap(), &"(2,1)".parse().unwrap()).unwrap(),
        whole.local_partition(&threads, 3).unwrap(),
        tiles.slice(&"((1,_),(_,1))".parse().unwrap()).unwrap(),
        tiles,
    ];
    for part in &parts {
        let shape = part.shape();
        let mut gathered = Tensor::filled(Layout::row_major(&shape).unwrap(), -7).unwrap();
        matrix.view().gather(part, &mut gathered.view_mut(), 0).unwrap();
        let source = Tensor::from_fn(Layout::compact(&shape).unwrap(), |index| 1000 + index).unwrap();
        let mut scattered = Tensor::filled(map.clone(), 0).unwrap();
        scattered.view_mut().scatter(part, &source.view()).unwrap();
        let predicate = part.elem_less(&matrix.shape()).unwrap();
        let mut expected = Tensor::filled(map.clone(), 0).unwrap();
        for index in 0..part.size() {
            let coord = part.get(index).unwrap();
            let (i, j) = (coord.leaves()[0], coord.leaves()[1]);
            let inside = i < rows && j < columns;
            assert_eq!(*predicate.get(index).unwrap(), inside, "{coord}");
            assert_eq!(*gathered.get(index).unwrap(), if inside { 1 + i + rows * j } else { 0 }, "{coord}");
            if inside {
                expected.set(&coord, 1000 + index).unwrap();
            }
        }
        assert_eq!(scattered.view().to_vec(), expected.view().to_vec(), "{part:?}");
    }
    let mut other = Tensor::filled(layout("12:1"), 0).unwrap();
    assert_eq!(matrix.view().gather(&whole, &mut other.view_mut(), 0).unwrap_err().code(), "E0420");
    assert_eq!(other.view_mut().scatter(&whole, &matrix.view()).unwrap_err().code(), "E0118");
}

#[test]
fn parts_are_gathered_and_scattered_by_their_coordinates() {
    gathered_and_scattered(layout("(11,7):(7,1)"));
    gathered_and_scattered(layout("(11,7):(-1,20)"));
    gathered_and_scattered("S<3,0,3> o 0 o (11,7):(8,1)".parse::<Composed>().unwrap());
    gathered_and_scattered("(11,7):(^1,^16)".parse::<Layout<Xor>>().unwrap());
    // A nested shape has coordinates of its own nesting, and no others.
    let nested = Tensor::from_fn(layout("((2,3),4):((1,8),2)"), |index| index).unwrap();
    let whole = CoordinateTensor::identity(&nested.shape()).unwrap();
    let mut copy = Tensor::filled(layout("24:1"), -1).unwrap();
    nested.view().gather(&whole, &mut copy.view_mut(), -1).unwrap();
    assert_eq!(copy.as_slice(), (0..24).collect::<Vec<_>>());
    let flat = CoordinateTensor::identity(&"(6,4)".parse().unwrap()).unwrap();
    assert_eq!(nested.view().gather(&flat, &mut copy.view_mut(), -1).unwrap_err().code(), "E0118");
}

#[test]
fn a_predicate_takes_bounds_that_nest_as_the_coordinates_do() {
    let identity = CoordinateTensor::identity(&"(3,4)".parse().unwrap()).unwrap();
    let count = |bounds: &str| {
        let predicate = identity.elem_less(&bounds.parse().unwrap())?;
        Ok::<_, TensorError>(predicate.as_slice().iter().filter(|inside| **inside).count())
    };
    for (bounds, inside) in [("(3,4)", 12), ("(2,9)", 8), ("(9,9)", 12), ("(0,4)", 0), ("(-1,4)", 0)] {
        assert_eq!(count(bounds), Ok(inside), "{bounds}");
    }
    for bounds in ["12", "(3)", "(3,4,1)", "((3),4)", "()"] {
        assert_eq!(count(bounds).unwrap_err().code(), "E0118", "{bounds}");
    }
}

#[test]
fn a_predicate_says_what_is_inside() {
    for (rows, columns) in [(10, 6), (8, 8), (1, 13), (9, 4)] {
        let shape = Tree::flat([rows, columns]).unwrap();
        let identity = CoordinateTensor::identity(&shape).unwrap();
        for (p, q) in [(4, 4), (3, 2), (1, 1), (7, 5)] {
            let tiler = Tiler::from_shape(&Tree::flat([p, q]).unwrap()).unwrap();
            if p > rows || q > columns {
                assert_eq!(identity.zipped_divide(&tiler).unwrap_err().code(), "E0405");
                continue;
            }
            let mut inside = 0;
            for down in 0..(rows + p - 1) / p {
                for right in 0..(columns + q - 1) / q {
                    let coord = format!("({down},{right})").parse().unwrap();
                    let predicate = identity.local_tile(&tiler, &coord).unwrap().elem_less(&shape).unwrap();
                    for i in 0..p {
                        for j in 0..q {
                            let expected = down * p + i < rows && right * q + j < columns;
                            assert_eq!(*predicate.get([i, j]).unwrap(), expected);
                            inside += i64::from(expected);
                        }
                    }
                }
            }
            assert_eq!(inside, rows * columns);
        }
    }
}

#[test]
fn what_is_written_to_a_zip_is_written() {
    let (mut a, mut b) = (vec![0; 12], vec![0.0; 12]);
    let x = TensorViewMut::new(&mut a, layout("(3,4):(4,1)")).unwrap();
    let y = TensorViewMut::new(&mut b, layout("(3,4):(1,3)")).unwrap();
    let mut zip = Zipped::new((x, y)).unwrap();
    zip.set([1, 2], (5, 0.5)).unwrap();
    assert_eq!(zip.get([1, 2]), Ok((&5, &0.5)));
    assert_eq!(zip.set([3, 0], (0, 0.0)).unwrap_err().code(), "E0403");
    *zip.get_mut(0).unwrap().1 = 2.5;
    let mut tile = zip.local_tile(&"[3:1;2:1]".parse().unwrap(), &"(0,1)".parse().unwrap()).unwrap();
    assert_eq!(tile.get([1, 0]), Ok((&5, &0.5)));
    tile.for_each(|(x, y)| *x += *y as i32 + 1);
    assert_eq!(a, [0, 0, 1, 1, 0, 0, 6, 1, 0, 0, 1, 1]);
    assert_eq!((b[0], b[7]), (2.5, 0.5));

    let coordinates = CoordinateTensor::identity(&"(3,4)".parse().unwrap()).unwrap();
    let x = TensorViewMut::new(&mut a, layout("(3,4):(4,1)")).unwrap();
    let y = TensorView::new(&b, layout("(3,4):(0,0)")).unwrap();
    let mut zip = Zipped::new((x, y, coordinates)).unwrap();
    zip.for_each(|(x, y, coord)| *x = *y as i32 + coord.leaves().iter().sum::<i64>() as i32);
    assert_eq!(a, [2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7]);
}

#[test]
fn text_of_every_rank() {
    let numbers: Vec<i64> = (0..200).collect();
    let text = |map: &str| TensorView::new(&numbers, layout(map)).unwrap().to_string();
    assert_eq!(text("():()"), "():()\n0");
    assert_eq!(text("4:3"), "4:3\n0 3 6 9");
    assert_eq!(text("(2,3):(10,1)"), "(2,3):(10,1)\n 0  1  2\n10 11 12");
    assert_eq!(text("(2,(2,2)):(1,(4,2))"), "(2,(2,2)):(1,(4,2))\n0 4 2 6\n1 5 3 7");
    assert_eq!(text("(2,2,2):(1,2,4)"), "(2,2,2):(1,2,4)\n(_,_,0)\n0 2\n1 3\n(_,_,1)\n4 6\n5 7");
    assert_eq!(
        text("(1,2,2,2):(0,1,2,100)"),
        "(1,2,2,2):(0,1,2,100)\n(_,_,0,0)\n0 1\n(_,_,1,0)\n2 3\n(_,_,0,1)\n100 101\n(_,_,1,1)\n102 103"
    );
    let long = TensorView::new(&numbers, layout("(200,20):(1,0)")).unwrap();
    let lines: Vec<String> = long.to_string().lines().map(String::from).collect();
    assert_eq!(lines.len(), 1 + 7);
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["0", "0", "0", "...", "0", "0", "0"]);
    assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), ["..."; 7]);
    assert!(lines[7].starts_with("199 199 199 ... 199"));
    assert_eq!(format!("{long:#}").lines().count(), 201);
    // However many modes there are, the text has an end.
    let (extents, strides) = (vec!["2"; 40].join(","), vec!["0"; 40].join(","));
    let deep = text(&format!("({extents}):({strides})"));
    assert_eq!(deep.lines().filter(|line| line.starts_with("(_")).count(), 49);
    assert!(deep.ends_with("\n0 0\n0 0\n..."));
    let halves = Tensor::from_fn(layout("(2,2):(1,2)"), |index| index as f64 / 3.0).unwrap();
    assert_eq!(format!("{halves:.2}"), "(2,2):(1,2)\n0.00 0.67\n0.33 1.00");
}

#[test]
fn nearness() {
    let near = |a: f64, b: f64, relative: f64, absolute: f64| {
        let (a, b) = ([a], [b]);
        let (a, b) = (TensorView::new(&a, layout("1:0")).unwrap(), TensorView::new(&b, layout("1:0")).unwrap());
        a.difference(&b, Tolerance { relative, absolute }).unwrap().is_none()
    };
    assert!(near(1.0, 1.0, 0.0, 0.0) && near(0.0, -0.0, 0.0, 0.0));
    assert!(near(1.0, 1.1, 0.1, 0.0) && !near(1.0, 1.2, 0.1, 0.0));
    assert!(near(0.0, 0.5, 0.0, 0.5) && !near(0.0, 0.6, 0.0, 0.5));
    assert!(near(f64::INFINITY, f64::INFINITY, 0.0, 0.0) && !near(f64::INFINITY, f64::NEG_INFINITY, 1.0, 1.0));
    assert!(
        !near(1.0, f64::INFINITY, 1.0, 1.0) && !near(f64::NAN, f64::NAN, 1.0, 1.0) && !near(1.0, f64::NAN, 1.0, 9.0)
    );

    let a = Tensor::from_fn(layout("(3,4):(4,1)"), |index| index as f32).unwrap();
    let mut b = Tensor::from_fn(layout("(3,4):(1,3)"), |index| index as f64).unwrap();
    let exact = Tolerance { relative: 0.0, absolute: 0.0 };
    assert_eq!(a.view().difference(&b.view(), exact), Ok(None));
    b.set([1, 2], 7.25).unwrap();
    b.set([2, 3], 10.5).unwrap();
    let found = a.view().difference(&b.view(), exact).unwrap().unwrap();
    assert_eq!((found.count, found.of, found.largest), (2, 12, 0.5));
    let found = a.view().difference(&b.view(), Tolerance { relative: 0.0, absolute: 0.3 }).unwrap().unwrap();
    assert_eq!((found.count, found.worst.to_string(), found.elements), (1, "(2,3)".into(), (11.0, 10.5)));
    let other = Tensor::from_fn(layout("(4,3):(1,4)"), |index| index as f64).unwrap();
    assert_eq!(a.view().difference(&other.view(), exact).unwrap_err().code(), "E0408");
}

#[test]
fn prepared_access() {
    let memory: Vec<i64> = (0..500).collect();
    for text in
        ["(5,7):(7,1)", "(5,7):(-7,1)", "((2,3),(4,5)):((60,20),(5,1))", "35:2", "(3,1,5):(1,0,9)", "(2,3):(0,0)"]
    {
        let view = TensorView::with_origin(&memory, 28, layout(text)).unwrap();
        let prepared = view.by_index();
        for index in -2..view.size() + 3 {
            assert_eq!(prepared.get(index), view.get(index).ok(), "{text} {index}");
        }
        let by_mode = view.by_mode::<2>();
        assert_eq!(by_mode.is_ok(), ["(5,7):(7,1)", "(5,7):(-7,1)", "(2,3):(0,0)"].contains(&text), "{text}");
        let Ok(matrix) = by_mode else { continue };
        let [rows, columns] = matrix.extents();
        for i in -1..rows + 2 {
            for j in -1..columns + 2 {
                assert_eq!(matrix.get([i, j]), view.get([i, j]).ok(), "{text}");
            }
        }
    }
    let mut memory = memory;
    let view = TensorViewMut::new(&mut memory, layout("(5,7):(7,1)")).unwrap();
    let mut matrix = view.by_mode_mut::<2>().unwrap();
    *matrix.get_mut([2, 3]).unwrap() = -1;
    assert_eq!(matrix.get_mut([5, 0]), None);
    assert_eq!(memory[17], -1);
}

#[test]
fn fragments_have_the_shape_and_their_own_memory() {
    let tensor = Tensor::filled(layout("(16,8):(8,1)"), 3_u16).unwrap();
    let part = tensor.view().local_partition(&layout("(4,2):(1,4)"), 6).unwrap();
    let mut fragment = part.fragment_like::<u16>().unwrap();
    assert_eq!((fragment.shape(), fragment.as_slice().len() as i64), (part.shape(), part.size()));
    Zipped::new((fragment.view_mut(), part.clone())).unwrap().for_each(|(to, from)| *to = *from);
    assert!(fragment.as_slice().iter().all(|value| *value == 3));
    let compact = tensor.view().tensor_like::<u16>().unwrap();
    assert_eq!(compact.layout(), tensor.layout());
    let broadcast = tensor.view().composition(&layout("((2,2),4):((0,1),2)")).unwrap();
    assert_eq!(broadcast.fragment_like::<u16>().unwrap_err().code(), "E0402");
}
