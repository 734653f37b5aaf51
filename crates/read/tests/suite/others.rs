//! Arrays, views, fragments and shardings, against what their systems compute.

use tilewright_read::{Meaning, Missing, Options, Reading, Refused, System, Unit, document, expression};

fn with(text: &str, options: Options) -> Result<Reading, Refused> {
    expression(text, &options)
}

fn read(text: &str) -> String {
    with(text, Options::default()).map_or_else(|refused| format!("refused: {refused}"), |reading| reading.to_string())
}

#[test]
fn arrays_count_bytes_or_elements() {
    for (text, meaning, unit) in [
        ("shape=(4, 8), strides=(64, 8), dtype=float64", "(4,8):(8,1)", Unit::Elements { bits: Some(64) }),
        ("shape=(4, 8), strides=(32, 4), dtype='<f4'", "(4,8):(8,1)", Unit::Elements { bits: Some(32) }),
        ("shape=(4, 8), stride=(8, 1)", "(4,8):(8,1)", Unit::Elements { bits: None }),
        ("torch.Size([4, 8]) stride=(1, 4) dtype=torch.float16", "(4,8):(1,4)", Unit::Elements { bits: Some(16) }),
        ("shape=torch.Size([4, 8]), x.stride()=(8, 1)", "(4,8):(8,1)", Unit::Elements { bits: None }),
        ("torch.Size([4, 8])", "(4,8)", Unit::None),
        ("torch.Size([7])", "(7)", Unit::None),
        ("shape=(5,), strides=(16,), dtype=float64", "5:2", Unit::Elements { bits: Some(64) }),
        ("shape=(5,), strides=(12,), dtype=float64", "5:12", Unit::Bytes),
        ("shape=(4, 8), strides=(-64, 8), dtype=float64", "(4,8):(-8,1)", Unit::Elements { bits: Some(64) }),
        ("torch.Size([4, 8]) stride=(8, 1) storage_offset=5", "37:1 o 5 o (4,8):(8,1)", Unit::Elements { bits: None }),
        // NumPy's codes count bytes, or characters of four bytes, and its `float` is Python's.
        ("shape=(4, 8), strides=(64, 8), dtype='i8'", "(4,8):(8,1)", Unit::Elements { bits: Some(64) }),
        ("shape=(4, 8), strides=(128, 16), dtype='<U4'", "(4,8):(8,1)", Unit::Elements { bits: Some(128) }),
        ("shape=(4, 8), strides=(64, 8), dtype=float", "(4,8):(8,1)", Unit::Elements { bits: Some(64) }),
        ("shape=(4, 8), strides=(64, 8), dtype=complex64", "(4,8):(8,1)", Unit::Elements { bits: Some(64) }),
        // 8 bits in XLA, and 8 bytes in NumPy.
        ("shape=(4, 8), strides=(64, 8), dtype=i8", "(4,8):(64,8)", Unit::Bytes),
    ] {
        let reading = with(text, Options::default()).unwrap_or_else(|refused| panic!("{text}: {refused}"));
        assert_eq!((reading.to_string().as_str(), reading.unit), (meaning, unit), "{text}");
    }
    // Nothing says whose strides they are.
    let text = "shape=(4, 8), strides=(64, 8)";
    let asked = with(text, Options::default()).unwrap_err();
    let Refused::Question(question) = &asked else { panic!("{asked}") };
    assert_eq!(question.missing, Missing::System(vec![System::NumPy, System::PyTorch]));
    let options = |system, bits| Options { system: Some(system), element_bits: bits, ..Options::default() };
    assert_eq!(with(text, options(System::NumPy, Some(64))).unwrap().to_string(), "(4,8):(8,1)");
    assert_eq!(with(text, options(System::NumPy, None)).unwrap().unit, Unit::Bytes);
    assert_eq!(with(text, options(System::PyTorch, None)).unwrap().to_string(), "(4,8):(64,8)");
    assert!(read("shape=(4, 8), stride=(8,)").starts_with("refused"), "{}", read("shape=(4, 8), stride=(8,)"));
}

/// A shape is not joined with the strides of another array.
#[test]
fn arrays_on_one_line_are_kept_apart() {
    for (text, meanings) in [
        ("a.shape=(4, 8) b.shape=(8, 4) b.stride=(4, 1)", vec!["(4,8)", "(8,4):(4,1)"]),
        ("a.shape=(4, 8) b.stride=(4, 1)", vec!["(4,8)"]),
        ("a.shape=(4, 8) a.stride=(8, 1), b.shape=(3, 5), b.stride=(5, 1)", vec!["(4,8):(8,1)", "(3,5):(5,1)"]),
        ("size=(4, 8), stride=(8, 1), size=(3, 5), stride=(5, 1)", vec!["(4,8):(8,1)", "(3,5):(5,1)"]),
        ("torch.Size([4, 8]) torch.Size([8, 4]) stride=(4, 1)", vec!["(4,8)", "(8,4):(4,1)"]),
        ("torch.Size([4, 8]) (8, 1) torch.Size([8, 4]) (4, 1)", vec!["(4,8):(8,1)", "(8,4):(4,1)"]),
    ] {
        let found = document(text, &Options::default());
        let told: Vec<String> = found.readings().map(ToString::to_string).collect();
        assert_eq!(told, meanings, "{text}");
    }
}

/// The interface of an array has its entries in any order, and no strides where it is contiguous.
#[test]
fn interfaces_of_arrays() {
    let entries =
        ["'data': (94, False)", "'descr': [('', '<f4')]", "'typestr': '<f4'", "'shape': (4, 8)", "'version': 3"];
    for place in 0..=entries.len() {
        for (strides, meaning) in [
            ("'strides': (4, 16)", "(4,8):(1,4)"),
            ("'strides': (32, 4)", "(4,8):(8,1)"),
            ("'strides': None", "(4,8):(8,1)"),
        ] {
            let mut all = entries.to_vec();
            all.insert(place, strides);
            let reading = with(&format!("{{{}}}", all.join(", ")), Options::default()).unwrap();
            assert_eq!(reading.to_string(), meaning, "{all:?}");
            assert_eq!(reading.unit, Unit::Elements { bits: Some(32) });
        }
    }
}

#[test]
fn views_of_tinygrad() {
    for (text, meaning) in [
        ("View(shape=(4, 8), strides=(8, 1), offset=0, mask=None, contiguous=True)", "(4,8):(8,1)"),
        ("View(shape=(4, 8), strides=(8, 1), offset=5, mask=None, contiguous=False)", "37:1 o 5 o (4,8):(8,1)"),
        (
            "ShapeTracker(views=(View(shape=(8, 4), strides=(1, 8), offset=0, mask=None, contiguous=False),))",
            "(8,4):(1,8)",
        ),
        // The transposed view, its elements numbered row by row, as a view of (4, 8), transposed
        // again.
        (
            "ShapeTracker(views=(View(shape=(8, 4), strides=(1, 8), offset=0, mask=None, contiguous=False), View(shape=(8, 4), strides=(1, 8), offset=0, mask=None, contiguous=False)))",
            "(8,(2,2)):((8,2,16))",
        ),
    ] {
        let found = read(text);
        if meaning.ends_with("((8,2,16))") {
            // The row-major number n of the second view is element (n / 4, n % 4) of the first.
            let layout: tilewright_layout::AnyLayout = found.parse().unwrap_or_else(|_| panic!("{found}"));
            for i in 0..8_i64 {
                for j in 0..4_i64 {
                    let number = i + 8 * j;
                    let wanted = number / 4 + 8 * (number % 4);
                    let index = i + 8 * j;
                    let own = match &layout {
                        tilewright_layout::AnyLayout::Integer(layout) => layout.eval(&index).unwrap(),
                        tilewright_layout::AnyLayout::Composed(layout) => layout.eval(&index).unwrap(),
                        other => panic!("{other}"),
                    };
                    assert_eq!(own, wanted, "{found} at ({i},{j})");
                }
            }
            continue;
        }
        assert_eq!(found, meaning, "{text}");
    }
    let masked = "View(shape=(4, 8), strides=(8, 1), offset=0, mask=((1, 4), (0, 8)), contiguous=False)";
    assert!(read(masked).contains("mask"), "{}", read(masked));
}

#[test]
fn layouts_of_tirx() {
    assert_eq!(read("S[(8, 64) : (64, 1)]"), "(8,64):(64,1)");
    assert_eq!(read("S[(8, 4, 2) : (4@laneid, 1@laneid, 1@m)]"), "(8,4,2):(4@0,1@0,1@1)");
    assert!(read("S[(8, 4) : (1, 8)] + R[2 : 4@laneid]").contains("copies"));
}

#[test]
fn fragments_of_tilelang() {
    // The accumulator of an m16n8k16: rows of four lanes with two elements each.
    let text = "Fragment([16, 8] -> [4], replicate: 1, thread: 32, forward_thread: _i % 8 * 4 + _j // 2, \
                forward_index: [_i // 8 * 2 + _j % 2])";
    assert_eq!(read(text), "((4,8),(2,2)):((32,1),(16,8))");
    let copies = "T.Fragment((4, 8), forward_thread_fn=lambda i, j: j * 4 + i, forward_index_fn=lambda i, j: 0)";
    assert_eq!(read(copies), "(32,1):(1,0)");
    let swizzled = "T.Layout((8, 8), lambda i, j: i * 8 + (j ^ i))";
    assert_eq!(read(swizzled), "S<3,0,3> o 0 o (8,8):(8,1)");
    assert_eq!(read("Layout([4, 8] -> [8, 4], [_j, _i])"), "(4,8):(1,4)");
    assert_eq!(read("T.Layout((4, 8), lambda i, j: T.bitwise_xor(i * 8, j))"), "(4,8):(8,1)");
    for (text, part) in [
        ("T.Layout((4, 8), lambda i, j: i * j)", "no layout has these offsets"),
        ("T.Layout((4, 8), lambda i, j: i * k)", "wanted"),
        ("Fragment([16, 8] -> [16], replicate: 1, thread: 64, forward_thread: _j, forward_index: [_i])", "64 threads"),
        (
            "Fragment([16, 8] -> [4], replicate: 1, thread: 8, forward_thread: _j, forward_index: [_i])",
            "past its extent",
        ),
        ("Layout([4, 8] -> [16, 2], [_i * 8 + _j])", "an extent for each index"),
        ("T.Layout((4, 8), lambda i: i * 8)", "a name for each extent of the shape"),
        // -8 // 3 is -3 in Python and -2 in C.
        ("T.Layout((2, 8), lambda i, j: (T.truncdiv(i * 8 - 8, 3) + 2) * 8 + j)", "(2,8):(16,1)"),
        ("T.Layout((2, 8), lambda i, j: ((i * 8 - 8) // 3 + 3) * 8 + j)", "(2,8):(24,1)"),
        (
            "Fragment([16, 8] -> [4], replicate: 1, thread: 8, forward_thread: _j, forward_index: [0])",
            "two elements are value 0",
        ),
        ("T.Fragment((4, 8), forward_thread_fn=lambda i, j: j * 4 + i", "wanted"),
    ] {
        assert!(read(text).contains(part), "{text}: {}", read(text));
    }
    let deep = format!("T.Layout((4, 8), lambda i, j: {}i", "(".repeat(100_000));
    assert!(read(&deep).starts_with("refused"));
}

/// Devices and offsets as JAX's CPU backend gives them for a mesh of 2 x 4.
#[test]
fn shardings_of_jax_and_torch() {
    let options = Options { shape: Some(vec![8, 6]), ..Options::default() };
    let texts = [
        "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))",
        "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4, axis_types=(Auto, Auto)), spec=P('tp', None), memory_kind=device)",
        "GSPMDSharding({devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate})",
        "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    ];
    for text in texts {
        let reading = with(text, options.clone()).unwrap_or_else(|refused| panic!("{text}: {refused}"));
        let Meaning::Sharded(layout) = &reading.meaning else { panic!("{text}") };
        for element in 0..48_i64 {
            let (row, column) = (element % 8, element / 8);
            let mut places = layout.places(element).unwrap();
            places.sort_unstable();
            // Row r is on device r / 2 of each half.
            let own = (row / 2, row % 2 * 6 + column);
            assert_eq!(places, [(own.0 as usize, own.1), (own.0 as usize + 4, own.1)], "{text}: element {element}");
        }
        assert!(matches!(with(text, Options::default()), Err(Refused::Question(_))));
    }
    let dtensor = "DTensorSpec(mesh=DeviceMesh('cuda', [[0, 1, 2, 3], [4, 5, 6, 7]], mesh_dim_names=('dp', 'tp')), placements=(Replicate(), Shard(dim=0)), tensor_meta=TensorMeta(shape=torch.Size([8, 6]), stride=(6, 1), dtype=torch.float32))";
    assert_eq!(read(dtensor), "((2,4),6):((6,1@tp),1) copied 2:1@dp");
    let notes = with(dtensor, Options::default()).unwrap().notes;
    assert!(!notes.iter().any(|note| note.contains("larger")), "{notes:?}");
    // The parts of a transposed tensor are not row-major.
    let turned = dtensor.replace("stride=(6, 1)", "stride=(1, 8)");
    assert!(read(&turned).contains("stride=(1, 8) is not row-major"), "{}", read(&turned));
    let uneven = "DTensorSpec(mesh=DeviceMesh('cuda', [0, 1, 2, 3], mesh_dim_names=('tp',)), placements=(Shard(dim=0),), tensor_meta=TensorMeta(shape=torch.Size([7, 6]), stride=(6, 1), dtype=torch.float32))";
    let reading = with(uneven, Options::default()).unwrap();
    let Meaning::Sharded(layout) = &reading.meaning else { panic!("{reading}") };
    // torch.chunk: two rows each, and one for the last device.
    for element in 0..42_i64 {
        let (row, column) = (element % 7, element / 7);
        assert_eq!(layout.places(element).unwrap(), [((row / 2) as usize, row % 2 * 6 + column)], "element {element}");
    }
    for other in ["[[1, 0], [2, 3]]", "[[0, 1], [2]]", "[4, 5, 6, 7]", "[[0, 1], [2, 3]"] {
        let text = uneven.replace("[0, 1, 2, 3]", other);
        assert!(read(&text).starts_with("refused"), "{other}: {}", read(&text));
    }
    assert!(read("PartitionSpec('tp', None)").contains("mesh"));
}

/// What NumPy, tinygrad, JAX and PyTorch have, as `scripts/array_layouts.py` recorded it, at every
/// element.
#[test]
fn recorded_facts_of_arrays() {
    let path = std::env::var("TILEWRIGHT_ARRAY_FACTS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/array_facts.tsv").to_owned());
    let facts = std::fs::read_to_string(path).unwrap();
    let mut seen = [0; 4];
    for fact in facts.lines() {
        let [system, text, shape, numbers] = fact.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let shape: Vec<i64> = shape.split(',').map(|extent| extent.parse().unwrap()).collect();
        let options = Options { shape: Some(shape.clone()), ..Options::default() };
        let reading = with(text, options).unwrap_or_else(|refused| panic!("{text}: {refused}"));
        // Coordinates row by row.
        let size: i64 = shape.iter().product();
        let coordinate = |mut number: i64| -> Vec<i64> {
            let mut indices = vec![0; shape.len()];
            for (index, extent) in indices.iter_mut().zip(&shape).rev() {
                *index = number % extent;
                number /= extent;
            }
            indices
        };
        let index = |coordinate: &[i64]| {
            coordinate
                .iter()
                .zip(&shape)
                .fold((0, 1), |(sum, below), (index, extent)| (sum + index * below, below * extent))
                .0
        };
        match &reading.meaning {
            Meaning::Sharded(layout) => {
                seen[2 + usize::from(system == "torch")] += 1;
                for part in numbers.split(' ') {
                    let (device, ranges) = part.split_once(':').unwrap();
                    let device: usize = device.parse().unwrap();
                    let ranges: Vec<(i64, i64)> = ranges
                        .split(',')
                        .map(|range| {
                            let (first, end) = range.split_once('-').unwrap();
                            (first.parse().unwrap(), end.parse().unwrap())
                        })
                        .collect();
                    let mut own = 0;
                    for number in 0..size {
                        let at = coordinate(number);
                        let inside = at.iter().zip(&ranges).all(|(index, (first, end))| (first..end).contains(&index));
                        let places = layout.places(index(&at)).unwrap();
                        let found = places.iter().find(|place| place.0 == device);
                        // The part lies row by row in the memory of the device.
                        assert_eq!(
                            found.map(|place| place.1),
                            inside.then_some(own),
                            "{text} device {device} at {at:?}"
                        );
                        own += i64::from(inside);
                    }
                }
            }
            Meaning::Value(tilewright_notation::Value::Layout(layout)) => {
                seen[usize::from(system == "tinygrad")] += 1;
                for (number, wanted) in numbers.split(',').enumerate() {
                    let at = index(&coordinate(number as i64));
                    let own = match layout {
                        tilewright_layout::AnyLayout::Integer(layout) => layout.eval(&at).unwrap(),
                        tilewright_layout::AnyLayout::Composed(layout) => layout.eval(&at).unwrap(),
                        other => panic!("{other}"),
                    };
                    assert_eq!(own, wanted.parse::<i64>().unwrap(), "{text} is {layout}");
                }
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(seen.iter().all(|count| *count >= 20), "{seen:?}");
}

/// Uneven shards: PyTorch cuts a dimension as `torch.chunk` does, into pieces of the quotient
/// rounded up, of which the last ones are shorter or empty; placements cut one after the other.
#[test]
fn uneven_shards_are_those_of_torch_chunk() {
    // Where the piece of a rank begins in a range, and where it ends.
    fn chunk(first: i64, end: i64, pieces: i64, rank: i64) -> (i64, i64) {
        let each = (end - first + pieces - 1) / pieces;
        let from = (first + rank * each).min(end);
        (from, (from + each).min(end))
    }
    let mut checked = 0;
    for shape in [[7, 5], [9, 4], [1, 6], [10, 3], [5, 13]] {
        for mesh in [[2, 3], [4, 2], [3, 1]] {
            for placements in [[Some(0), Some(1)], [Some(0), Some(0)], [None, Some(1)], [Some(1), None]] {
                let spelled = placements.map(|dim| match dim {
                    Some(dim) => format!("Shard(dim={dim})"),
                    None => "Replicate()".to_owned(),
                });
                let text = format!(
                    "DTensorSpec(mesh=DeviceMesh((x={}, y={}), device: 'cpu', stride: ({}, 1)), placements=({}), \
                     tensor_meta=TensorMeta(shape=torch.Size([{}, {}]), stride=({}, 1), dtype=torch.float32))",
                    mesh[0],
                    mesh[1],
                    mesh[1],
                    spelled.join(", "),
                    shape[0],
                    shape[1],
                    shape[1]
                );
                // Every `Shard` is a layout: a refusal would hide what is not checked.
                let reading = with(&text, Options::default()).unwrap_or_else(|refused| panic!("{text}: {refused}"));
                let Meaning::Sharded(layout) = &reading.meaning else { panic!("{text}") };
                for rank in 0..mesh[0] * mesh[1] {
                    let along = [rank / mesh[1], rank % mesh[1]];
                    let mut ranges = [(0, shape[0]), (0, shape[1])];
                    for axis in 0..2 {
                        if let Some(dim) = placements[axis] {
                            let own = &mut ranges[dim as usize];
                            *own = chunk(own.0, own.1, mesh[axis], along[axis]);
                        }
                    }
                    for row in 0..shape[0] {
                        for column in 0..shape[1] {
                            let inside = (ranges[0].0..ranges[0].1).contains(&row)
                                && (ranges[1].0..ranges[1].1).contains(&column);
                            let places = layout.places(row + shape[0] * column).unwrap();
                            let held = places.iter().any(|place| place.0 == rank as usize);
                            assert_eq!(held, inside, "{text}: rank {rank} at {row},{column}");
                            checked += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}
