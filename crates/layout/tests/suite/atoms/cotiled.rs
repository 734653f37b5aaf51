//! Copies from offsets: the tile has what is held, and nothing that exists is refused.

use std::collections::{BTreeSet, HashMap};

use tilewright_layout::atoms::{AtomError, CopyAtom, CopyEnd, NoTile, TiledCopy};
use tilewright_layout::{Layout, Tiler, Tree};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn named(name: &str) -> CopyAtom {
    CopyAtom::named(name).unwrap()
}

fn at(layout: &Layout, coordinate: &[i64]) -> i64 {
    match coordinate {
        [index] => layout.eval(index).unwrap(),
        _ => layout.eval_at(&Tree::flat(coordinate.iter().copied()).unwrap()).unwrap(),
    }
}

/// The coordinate of an index, first mode fastest.
fn coordinate(mut index: i64, extents: &[i64]) -> Vec<i64> {
    let digit = |extent: &i64| {
        let digit = index % extent;
        index /= extent;
        digit
    };
    extents.iter().map(digit).collect()
}

fn sizes(layout: &Layout) -> Vec<i64> {
    layout.modes().map(|mode| mode.size()).collect()
}

/// The tile of each mode.
fn tiles(copy: &TiledCopy) -> Vec<Layout> {
    let Tiler::Modes(modes) = copy.tiler() else { panic!("{copy:?}") };
    let tile = |item: &Tiler| match item {
        Tiler::Layout(tile) => tile.clone(),
        other => panic!("{other}"),
    };
    modes.items().iter().map(tile).collect()
}

/// Every way to write an extent as a product, in every order.
fn products(extent: i64) -> Vec<Vec<i64>> {
    if extent == 1 {
        return vec![vec![]];
    }
    let divisors = (2..=extent).filter(|divisor| extent % divisor == 0);
    let with = |first: i64| products(extent / first).into_iter().map(move |rest| [vec![first], rest].concat());
    divisors.flat_map(with).collect()
}

/// Whether some layout of these extents, refined in any way, has these values.
fn is_layouts(values: &[i64], extents: &[i64]) -> bool {
    let mut refined = vec![Vec::new()];
    for extent in extents {
        let ways = products(*extent);
        refined = refined
            .iter()
            .flat_map(|so_far| ways.iter().map(move |way| [so_far.clone(), way.clone()].concat()))
            .collect();
    }
    refined.iter().any(|shape: &Vec<i64>| {
        let step = |mode: usize| shape[..mode].iter().product::<i64>() as usize;
        (0..values.len()).all(|index| {
            let digits = coordinate(index as i64, shape);
            let sum: i64 = digits
                .iter()
                .enumerate()
                .map(|(mode, digit)| digit * if shape[mode] > 1 { values[step(mode)] } else { 0 })
                .sum();
            sum == values[index]
        })
    })
}

/// Whether there is a tile: for the coordinates of each mode in increasing order, or all as they
/// are met, which are a layout's, the places of threads and values are a layout's.
fn exists(held: &[Vec<i64>], extents: &[i64]) -> bool {
    [true, false].into_iter().any(|increasing| {
        let (mut places, mut step) = (vec![0; held[0].len()], 1);
        let layouts = held.iter().all(|mode| {
            let mut occur: Vec<i64> = Vec::new();
            mode.iter().for_each(|coordinate| {
                if !occur.contains(coordinate) {
                    occur.push(*coordinate);
                }
            });
            if increasing {
                occur.sort_unstable();
            }
            let count = occur.len() as i64;
            for (place, coordinate) in places.iter_mut().zip(mode) {
                *place += step * occur.iter().position(|known| known == coordinate).unwrap() as i64;
            }
            step *= count;
            is_layouts(&occur, &[count])
        });
        layouts && is_layouts(&places, extents)
    })
}

/// All offsets of a few threads and values in all kinds of data: what is made obeys the law at
/// every index and has the smallest tile, what is refused does not exist.
#[test]
fn tiles_have_what_is_held_and_refusals_are_right() {
    let data = [
        "24:1",
        "(4,6):(1,4)",
        "(4,6):(6,1)",
        "(4,4):(1,5)",
        "((2,3),4):((1,8),2)",
        "(2,2):(2,3)",
        "(4,3):(-1,4)",
        "(4,2,3):(1,0,4)",
        "(3,8):(8,1)",
        "(4,4):(1,2)",
        "((2,2),6):((1,12),2)",
        "(2,3,4):(12,4,1)",
        "6:3",
    ];
    let mut offsets = Vec::new();
    let modes = |extents: &[i64]| -> Vec<String> {
        let strides = [-1, 0, 1, 2, 3, 4, 5, 6, 8];
        extents.iter().flat_map(|extent| strides.map(|stride| format!("{extent}:{stride}"))).collect()
    };
    for thread in modes(&[1, 2, 4, 6]) {
        for value in modes(&[1, 2, 3]) {
            offsets.push(Layout::tuple([&layout(&thread), &layout(&value)]).unwrap());
        }
    }
    offsets.push(layout("((2,2),(2,2)):((1,4),(2,8))"));
    offsets.push(layout("((2,3),2):((4,8),1)"));
    let (mut made, mut parts, mut refused) = (0, 0, HashMap::new());
    for data in data.map(layout) {
        let extents = sizes(&data);
        // What lies where: the coordinates, those that differ where the data repeats left out.
        let mut elements: HashMap<i64, Vec<Vec<i64>>> = HashMap::new();
        let moving = data.filter_zeros();
        for index in 0..data.size() {
            let coordinate = coordinate(index, &extents);
            let repeats = moving.modes().zip(&coordinate).any(|(mode, coordinate)| *coordinate >= mode.size());
            if !repeats {
                elements.entry(data.eval(&index).unwrap()).or_default().push(coordinate);
            }
        }
        for offsets in &offsets {
            let shape = sizes(offsets);
            let (threads, values) = (shape[0], shape[1]);
            let pairs = || (0..values).flat_map(move |value| (0..threads).map(move |thread| [thread, value]));
            match TiledCopy::cotiled(named("DefaultCopy"), 8, offsets, &data) {
                Ok(copy) => {
                    let (tiles, tile) = (tiles(&copy), copy.tile_shape());
                    let owned = copy.thread_values(CopyEnd::Source).unwrap();
                    let mut occur = vec![BTreeSet::new(); tile.len()];
                    for pair in pairs() {
                        let place = coordinate(at(&owned, &pair), &tile);
                        let found: Vec<i64> = tiles.iter().zip(place).map(|(tile, x)| tile.eval(&x).unwrap()).collect();
                        assert_eq!(at(&data, &found), at(offsets, &pair), "{offsets} {data} {pair:?}");
                        occur.iter_mut().zip(found).for_each(|(occur, x)| occur.extend([x]));
                    }
                    assert_eq!(
                        occur.iter().map(|occur| occur.len() as i64).collect::<Vec<_>>(),
                        tile,
                        "{offsets} {data}"
                    );
                    made += 1;
                    // The first tile of the data, in the hands of the threads; where tiles like it
                    // cover the data.
                    for thread in 0..threads {
                        let slice = copy.get_slice(&thread).unwrap();
                        let Ok((begin, part)) = slice.partition(CopyEnd::Source, &data) else { continue };
                        let first = part.mode(0).unwrap();
                        for value in 0..values {
                            let expected = at(offsets, &[thread, value]);
                            assert_eq!(begin + first.eval(&value).unwrap(), expected, "{offsets} {data}");
                            parts += 1;
                        }
                    }
                }
                Err(AtomError::Cotiled { reason, .. }) => {
                    let kind = match reason {
                        NoTile::Nothing { thread, value, offset } => {
                            assert_eq!(at(offsets, &[thread, value]), offset);
                            assert!(!elements.contains_key(&offset), "{offsets} {data}");
                            "nothing"
                        }
                        NoTile::Shared { first, second } => {
                            assert!(first != second);
                            assert_eq!(data.eval(&first).unwrap(), data.eval(&second).unwrap(), "{data}");
                            "shared"
                        }
                        NoTile::Uneven { .. } | NoTile::Crooked => {
                            let held =
                                |mode: usize| pairs().map(|pair| elements[&at(offsets, &pair)][0][mode]).collect();
                            let held: Vec<Vec<i64>> = (0..extents.len()).map(held).collect();
                            assert!(!exists(&held, &shape), "{offsets} {data}");
                            "no layout"
                        }
                        other => panic!("{other}"),
                    };
                    *refused.entry(kind).or_insert(0) += 1;
                }
                Err(other) => panic!("{offsets} {data}: {other}"),
            }
        }
    }
    assert!(made > 1_000 && parts > 3_000, "{made} {parts}");
    assert!(refused["nothing"] > 1_000 && refused["shared"] > 100 && refused["no layout"] > 500, "{refused:?}");
}

/// The example of a copy of 16 bytes each, and atoms of several threads; limits.
#[test]
fn whole_instructions_in_memory() {
    // What a warp loads as four matrices of 8 x 8 halves, from a tile with rows of 64 halves: where
    // each row goes is said by offsets.
    let data = layout("(16,64):(64,1)");
    let offsets = layout("((4,8),(2,2,2)):((2,64),(1,512,8))");
    let copy = TiledCopy::cotiled(named("SM75_U32x4_LDSM_N"), 16, &offsets, &data).unwrap();
    assert_eq!(copy.tile_shape(), [16, 16]);
    for thread in 0..32 {
        let (begin, part) = copy.get_slice(&thread).unwrap().partition(CopyEnd::Destination, &data).unwrap();
        for value in 0..8 {
            assert_eq!(begin + part.eval(&value).unwrap(), at(&offsets, &[thread, value]));
        }
    }
    let refuse = |name: &str, offsets: &str, data: &str| {
        TiledCopy::cotiled(named(name), 16, &layout(offsets), &layout(data)).unwrap_err()
    };
    assert_eq!(refuse("SM75_U32x4_LDSM_N", "(16,8):(8,1)", "(16,64):(64,1)").code(), "E0325");
    assert_eq!(
        refuse("DefaultCopy", "32:1", "(16,64)").to_string(),
        "DefaultCopy for offsets 32:1 in data (16,64):(1,16): they have 1 modes where (thread, value) is needed"
    );
    assert!(
        refuse("DefaultCopy", "(2048,1024)", "(2048,1024)")
            .to_string()
            .ends_with("more than 1048576 elements would have to be looked at")
    );
    assert!(refuse("DefaultCopy", "(4,4)", "(2000,2000):(2,2001)").to_string().ends_with("would have to be looked at"));
    // The diagonal is a layout of threads, in a tile of which it is a part.
    let diagonal = TiledCopy::cotiled(named("DefaultCopy"), 16, &layout("(3,1):(5,1)"), &layout("(4,4)")).unwrap();
    assert_eq!(
        (diagonal.tile_shape(), diagonal.thread_values(CopyEnd::Source).unwrap().to_string().as_str()),
        (vec![3, 3], "((1,3),(1,1)):((0,4),(0,0))")
    );
}

/// Fragments of a partition that has the first values of each thread: register `i`, seen in the
/// modes of the copy, holds what is number `i` of its part.
#[test]
fn fragments_of_parts_hold_the_part() {
    let copies = [
        ("DefaultCopy", 16, "((8,1),(2,2,2)):((2,0),(1,16,32))", "(64,2)"),
        ("DefaultCopy", 16, "(4,(2,2)):(2,(1,8))", "16:1"),
        ("DefaultCopy", 16, "(4,(2,2,2)):(8,(4,1,2))", "(8,4)"),
        ("DefaultCopy", 16, "((2,2),(2,2,2)):((1,8),(4,2,16))", "(4,2,4)"),
        ("DefaultCopy", 16, "(4,(2,2)):(1,(4,16))", "(8,3)"),
        ("DefaultCopy", 16, "(4,(2,2)):(1,(16,4))", "(8,3)"),
        ("DefaultCopy", 16, "(2,(2,3)):(1,(12,2))", "(24,1)"),
        ("DefaultCopy", 16, "(4,4):(5,1)", "(4,8):(1,5)"),
        ("DefaultCopy", 16, "(2,(2,2)):(9,(1,18))", "(8,8)"),
        ("UniversalCopy<uint32_t>", 16, "(8,(2,4)):(2,(1,16))", "(64,2)"),
        ("SM75_U32x1_LDSM_N", 16, "((4,8),(2,2,2)):((2,64),(1,512,8))", "(16,64):(64,1)"),
        ("SM75_U32x2_LDSM_N", 16, "((4,8),(2,2,2)):((2,64),(1,512,8))", "(16,64):(64,1)"),
        ("SM90_U32x1_STSM_N", 16, "((4,8),(2,2,2)):((2,64),(1,512,8))", "(16,64):(64,1)"),
    ];
    let (mut compared, mut refused) = (0, 0);
    for (name, bits, offsets, data) in copies {
        let (offsets, data) = (layout(offsets), layout(data));
        let copy = TiledCopy::cotiled(named(name), bits, &offsets, &data).unwrap();
        let (threads, values) = (sizes(&offsets)[0], sizes(&offsets)[1]);
        let end = copy.atom().reference();
        let extents: Vec<i64> = tiles(&copy).iter().map(|tile| 4 * tile.cosize().unwrap()).collect();
        let matrix = Layout::row_major(&Tree::flat(extents.iter().copied()).unwrap()).unwrap();
        for first in (1..=values).filter(|first| values % first == 0) {
            let some = Tiler::modes([Tiler::Keep, Tiler::Layout(Layout::mode_of(first, 1).unwrap())]).unwrap();
            // The first values must be a layout themselves.
            let Ok(values_of) = offsets.compose_tiler(&some) else { continue };
            let part = TiledCopy::cotiled(named("DefaultCopy"), bits, &values_of, &data).unwrap();
            for thread in 0..threads {
                let (slice, own) = (part.get_slice(&thread).unwrap(), copy.get_slice(&thread).unwrap());
                let Ok((begin, elements)) = slice.partition(CopyEnd::Source, &matrix) else { continue };
                let Ok((start, wanted)) = own.partition(end, &matrix) else { continue };
                // The first values are one mode, further ones are in further tiles.
                let fragment = slice.fragment(CopyEnd::Source, &matrix).unwrap();
                assert_eq!(fragment.mode(0).unwrap().size(), first);
                let register = |index: i64| fragment.eval(&index).unwrap();
                let registers: HashMap<i64, i64> = (0..elements.size())
                    .map(|index| (begin + elements.eval(&index).unwrap(), register(index)))
                    .collect();
                match copy.retile(end, &fragment) {
                    Ok(retiled) => {
                        assert_eq!(
                            (retiled.size(), retiled.rank()),
                            (wanted.size(), wanted.rank()),
                            "{name} {offsets} {first}: {retiled} {wanted}"
                        );
                        for index in 0..wanted.size() {
                            let element = start + wanted.eval(&index).unwrap();
                            assert_eq!(
                                registers[&element],
                                retiled.eval(&index).unwrap(),
                                "{name} {offsets} {first} at {index}"
                            );
                            compared += 1;
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "E0326");
                        // Threads and values do not fill the tile.
                        let tile: i64 = copy.tile_shape().iter().product();
                        assert!(tile != threads * values, "{name} {offsets} {first}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 10_000 && refused > 0, "{compared} {refused}");
}

/// A thread that has at an end what it owns, in another order, has its registers in that order.
#[test]
fn registers_in_the_order_of_an_end() {
    use tilewright_layout::atoms::{Arch, ThreadValue};
    let ends = ["(4,(8,2,2)):(32,(1,8,16))", "(4,(8,2,2)):(32,(1,16,8))"].map(|text| ThreadValue::from(layout(text)));
    let [source, destination] = ends;
    let atom = CopyAtom::new("TURNED", Arch::Universal, layout("4:1"), source, destination, CopyEnd::Source).unwrap();
    let copy = TiledCopy::new(atom, 8, &layout("(4,1)"), &layout("(2,8)")).unwrap();
    let matrix = layout("(16,16):(16,1)");
    for thread in 0..4 {
        let slice = copy.get_slice(&thread).unwrap();
        let [from, to] = [CopyEnd::Source, CopyEnd::Destination].map(|end| slice.partition(end, &matrix).unwrap());
        let fragment = slice.fragment(CopyEnd::Source, &matrix).unwrap();
        // Its first mode is all that the thread has of a tile.
        let retiled = copy.retile(CopyEnd::Destination, &fragment).unwrap();
        let register: HashMap<i64, i64> = (0..from.1.size())
            .map(|index| (from.0 + from.1.eval(&index).unwrap(), fragment.eval(&index).unwrap()))
            .collect();
        let mut turned = 0;
        for index in 0..to.1.size() {
            assert_eq!(register[&(to.0 + to.1.eval(&index).unwrap())], retiled.eval(&index).unwrap());
            turned += i64::from(
                retiled.eval(&index).unwrap() != copy.retile(CopyEnd::Source, &fragment).unwrap().eval(&index).unwrap(),
            );
        }
        assert!(turned > 0);
    }
}
