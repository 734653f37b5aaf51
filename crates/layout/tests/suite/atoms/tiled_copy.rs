//! Copies: who reads and who writes what, of one instruction and of tiled ones.

use std::collections::{HashMap, HashSet};

use tilewright_layout::atoms::{Arch, CopyAtom, CopyEnd, MmaAtom, Operand, ThreadValue, TiledCopy, TiledMma};
use tilewright_layout::{Layout, Tiler, Tree};

const ENDS: [CopyEnd; 2] = [CopyEnd::Source, CopyEnd::Destination];

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn named(name: &str) -> CopyAtom {
    CopyAtom::named(name).unwrap()
}

fn at(layout: &Layout, coordinate: impl IntoIterator<Item = i64>) -> i64 {
    layout.eval_at(&Tree::flat(coordinate).unwrap()).unwrap()
}

/// Every bit of every block is read by as many threads as stated and written by as many, by none of
/// them twice.
#[test]
fn every_bit_has_its_threads() {
    let mut names = HashSet::new();
    for family in CopyAtom::families() {
        for name in family.names() {
            let atom = family.member(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(atom.name() == name && names.insert(name.clone()));
            assert_eq!(CopyAtom::named(&name).unwrap(), atom);
            assert_eq!(atom.end(atom.reference()).holders(), 1);
            for end in ENDS {
                let held = atom.end(end);
                // What all threads name alike need not be asked of each of them.
                let all = held.holders() == atom.threads().size();
                let threads = if all { 1 } else { atom.threads().size() };
                let mut count = vec![0; usize::try_from(atom.bits()).unwrap()];
                for thread in 0..threads {
                    let mut own = HashSet::new();
                    for bit in 0..held.values() {
                        let place = at(held.layout(), [thread, bit]);
                        assert!(own.insert(place) || held.copies() > 1, "{name}");
                        count[usize::try_from(place).unwrap()] += 1;
                    }
                }
                let expected = held.copies() * if all { 1 } else { held.holders() };
                let (first, others) = count.split_at(count.len() / usize::try_from(held.copies()).unwrap());
                assert!(first.iter().all(|count| *count == expected), "{name} {end}");
                assert!(others.iter().all(|count| *count == 0), "{name} {end}");
            }
        }
    }
    assert!(names.len() > 100, "{}", names.len());
}

/// PTX: a row of 8x8 elements of 16 bits is named by thread `8i + row` for matrix `i`; a register
/// has two neighbours of row `lane / 4`, or of that column.
#[test]
fn matrices_in_shared_memory() {
    for (name, transposed) in [("SM75_U32x{}_LDSM_N", false), ("SM75_U16x{}_LDSM_T", true)] {
        for matrices in [1, 2, 4] {
            let atom = named(&name.replace("{}", &(if transposed { 2 * matrices } else { matrices }).to_string()));
            let source = atom.values(CopyEnd::Source, 16).unwrap();
            let destination = atom.values(CopyEnd::Destination, 16).unwrap();
            for thread in 0..32 {
                for column in 0..8 {
                    let row = thread % (8 * matrices);
                    assert_eq!(at(&source, [thread, column]), 8 * row + column, "{atom}");
                }
                for value in 0..2 * matrices {
                    let (group, pair) = (thread / 4, thread % 4 * 2 + value % 2);
                    let (row, column) = if transposed { (pair, group) } else { (group, pair) };
                    assert_eq!(at(&destination, [thread, value]), 64 * (value / 2) + 8 * row + column, "{atom}");
                }
            }
        }
    }
}

/// `movmatrix`: what a thread gets at (row, column) was at (column, row).
#[test]
fn a_matrix_transposed_in_registers() {
    let atom = named("SM75_U32x1_MOVM_T");
    let [from, to] = ENDS.map(|end| atom.values(end, 16).unwrap());
    let mut transposed = 0;
    for thread in 0..32 {
        for value in 0..2 {
            let (row, column) = (thread / 4, thread % 4 * 2 + value);
            assert_eq!(at(&from, [thread, value]), 8 * row + column);
            assert_eq!(at(&to, [thread, value]), 8 * column + row);
            transposed += 1;
        }
    }
    assert_eq!(transposed, 64);
    assert_eq!(atom.values(CopyEnd::Destination, 32).unwrap_err().code(), "E0324");
}

/// From shared to tensor memory: as many bits as the name says, and of 32 rows four copies, value
/// by value.
#[test]
fn rows_to_tensor_memory() {
    let copies = [("128dp256bit", 128 * 256, 1), ("128dp128bit", 128 * 128, 1), ("4dp256bit", 4 * 256, 1)];
    for (shape, bits, times) in copies.into_iter().chain([("4x32dp128bit", 4 * 32 * 128, 4)]) {
        for ctas in [1, 2] {
            let atom = named(&format!("SM100_UTCCP_{shape}_{ctas}cta"));
            assert_eq!((atom.bits(), atom.threads().size(), atom.end(CopyEnd::Source).copies()), (bits, 1, times));
            for value in 0..bits {
                assert_eq!(at(atom.end(CopyEnd::Destination).layout(), [0, value]), value);
                assert_eq!(at(atom.end(CopyEnd::Source).layout(), [0, value]), value % (bits / times));
            }
        }
    }
    let published = named("SM100_UTCCP_4x32dp128bit_1cta");
    assert_eq!(published.end(CopyEnd::Source).layout().to_string(), "(1,(32,128,4)):(0,(1,32,0))");
    assert_eq!(CopyAtom::named("SM100_UTCCP_2x64dp128bitlw0213_1cta").unwrap_err().code(), "E0316");

    // The tile of a whole copy: what is read is the first quarter of it, again and again.
    let copy = TiledCopy::new(published, 8, &layout("1:0"), &layout("(128,16)")).unwrap();
    let memory = layout("(128,16)");
    let parts = ENDS.map(|end| copy.get_slice(&0).unwrap().partition(end, &memory).unwrap().1);
    for index in 0..2048 {
        let [read, written] = parts.each_ref().map(|part| part.eval(&index).unwrap());
        assert_eq!((read, written), (index % 512, index));
    }

    // What is said to be multiplied is, by as much, and nothing else.
    let atom = |source: &str, copies| {
        let ends = [ThreadValue::multiplied(layout(source), copies), layout("(1,64):(0,1)").into()];
        let [source, destination] = ends;
        let made = CopyAtom::new("MINE", Arch::Sm100, layout("1:0"), source, destination, CopyEnd::Destination);
        made.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(atom("(1,(32,2)):(0,(1,0))", 2), Ok(()));
    assert!(atom("(1,(32,2)):(0,(1,0))", 4).unwrap_err().contains("2 times, but 4 are stated"));
    assert!(atom("(1,(32,2)):(0,(1,0))", 1).unwrap_err().contains("more than once"));
    assert!(atom("(1,(32,2)):(0,(2,0))", 2).unwrap_err().contains("not a bijection onto the 32 places"));
    assert!(atom("(1,64):(0,1)", 2).unwrap_err().contains("1 times, but 2 are stated"));
    assert!(atom("(1,(21,3)):(0,(1,0))", 3).unwrap_err().contains("whole copies"));
}

/// The copies of operands of a product, and plain ones: atom, width, copy.
fn copies() -> Vec<TiledCopy> {
    let mma = |permutation: &str| {
        let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN").unwrap();
        TiledMma::new(atom, &layout("(2,2,1):(1,2,0)"), &permutation.parse().unwrap()).unwrap()
    };
    let (plain, wide) = (mma("_"), mma("[32:1;32:1;32:1]"));
    let operand = |name: &str, mma, operand| TiledCopy::of_operand(named(name), mma, operand).unwrap();
    let tiled =
        |name: &str, bits, thr: &str, val: &str| TiledCopy::new(named(name), bits, &layout(thr), &layout(val)).unwrap();
    vec![
        operand("SM75_U32x4_LDSM_N", &plain, Operand::A),
        operand("SM75_U32x2_LDSM_N", &plain, Operand::B),
        operand("SM75_U32x4_LDSM_N", &wide, Operand::A),
        operand("SM75_U32x4_LDSM_N", &wide, Operand::B),
        operand("SM75_U16x4_LDSM_T", &wide, Operand::A),
        operand("SM90_U32x1_STSM_N", &wide, Operand::A),
        operand("AutoVectorizingCopy", &wide, Operand::C),
        operand("UniversalCopy<uint64_t>", &wide, Operand::C),
        tiled("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", 16, "(16,8):(8,1)", "(1,8)"),
        tiled("UniversalCopy<uint32_t>", 32, "(32,8)", "(4,2)"),
        tiled("UniversalCopy<uint64_t>", 32, "(8,4):(4,1)", "(2,3)"),
        tiled("DefaultCopy", 8, "(3,5):(5,1)", "(2,2):(2,1)"),
        tiled("SM75_U32x4_LDSM_N", 16, "(8,4):(4,1)", "(2,8):(8,1)"),
        tiled("SM50_Shuffle_U32_2x2Trans_XOR1", 32, "32:1", "2:1"),
    ]
}

/// Part by part, against the definition: find the bits of each value in the block, and who owns
/// them.
#[test]
fn parts_are_what_the_law_says() {
    let mut elements = 0;
    for copy in copies() {
        let tile = copy.tile_shape();
        let owned = copy.thread_values(copy.atom().reference()).unwrap();
        let own = copy.atom().values(copy.atom().reference(), copy.bits()).unwrap();
        let (atom_threads, atom_values) = (own.mode(0).unwrap().size(), own.mode(1).unwrap().size());
        // Who owns a value of the block.
        let mut owner = HashMap::new();
        for thread in 0..atom_threads {
            for value in 0..atom_values {
                assert!(owner.insert(at(&own, [thread, value]), (thread, value)).is_none());
            }
        }
        let extents: Vec<i64> = tile.iter().map(|extent| 2 * extent).collect();
        let memory = Layout::row_major(&Tree::flat(extents.clone()).unwrap()).unwrap();
        for end in ENDS {
            let block = copy.atom().values(end, copy.bits()).unwrap();
            let values = block.mode(1).unwrap().size();
            let runs = owned.mode(1).unwrap().size() / atom_values;
            let mut holders: HashMap<i64, i64> = HashMap::new();
            for thread in 0..copy.threads() {
                let (offset, part) = copy.get_slice(&thread).unwrap().partition(end, &memory).unwrap();
                assert_eq!(part.size(), values * runs * (1 << tile.len()));
                let mut index = 0;
                for rest in 0..1_i64 << tile.len() {
                    for run in 0..runs {
                        for value in 0..values {
                            let (t, v) = owner[&at(&block, [thread % atom_threads, value])];
                            let of = t + atom_threads * (thread / atom_threads);
                            let mut place = at(&owned, [of, v + atom_values * run]);
                            let mut coordinate = Vec::new();
                            for (mode, extent) in tile.iter().enumerate() {
                                coordinate.push(place % extent + extent * (rest >> mode & 1));
                                place /= extent;
                            }
                            let expected = at(&memory, coordinate);
                            assert_eq!(offset + part.eval(&index).unwrap(), expected, "{} {end}", copy.atom());
                            *holders.entry(expected).or_default() += 1;
                            index += 1;
                            elements += 1;
                        }
                    }
                }
            }
            assert_eq!(holders.len() as i64, memory.size(), "{}", copy.atom());
            let least = *holders.values().min().unwrap();
            assert!(holders.values().all(|count| *count == least));
        }
        assert_eq!(copy.get_slice(&copy.threads()).unwrap_err().code(), "E0320");
    }
    assert!(elements > 10_000, "{elements}");
}

/// A fragment in the modes of the copy: register `i` holds what is number `i` of the part.
#[test]
fn retiled_fragments_hold_the_part() {
    let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN").unwrap();
    let mut compared = 0;
    for permutation in ["_", "[32:1;32:1;32:1]", "[(16,4):(1,16);(8,2,2):(1,16,8);_]"] {
        let permutation = permutation.parse::<Tiler>().unwrap();
        let mma = TiledMma::new(atom.clone(), &layout("(2,2,1):(1,2,0)"), &permutation).unwrap();
        let [m, n, k] = mma.tile_shape();
        let cases = [
            (Operand::A, "SM75_U32x4_LDSM_N", CopyEnd::Destination, [2 * m, 2 * k]),
            (Operand::B, "SM75_U32x2_LDSM_N", CopyEnd::Destination, [3 * n, k]),
            (Operand::B, "SM75_U32x1_LDSM_N", CopyEnd::Destination, [2 * n, 2 * k]),
            (Operand::A, "AutoVectorizingCopy", CopyEnd::Destination, [m, 2 * k]),
            (Operand::C, "UniversalCopy<uint64_t>", CopyEnd::Source, [m, 2 * n]),
            (Operand::C, "DefaultCopy", CopyEnd::Source, [2 * m, n]),
        ];
        for (operand, name, end, shape) in cases {
            let copy = TiledCopy::of_operand(named(name), &mma, operand).unwrap();
            let matrix = Layout::row_major(&Tree::flat(shape).unwrap()).unwrap();
            for thread in [0, 1, 37, 127] {
                let slice = mma.get_slice(&thread).unwrap();
                let (begin, part) = slice.partition(operand, &matrix).unwrap();
                let fragment = slice.fragment(operand, &matrix).unwrap();
                let registers: HashMap<i64, i64> =
                    (0..part.size()).map(|i| (begin + part.eval(&i).unwrap(), fragment.eval(&i).unwrap())).collect();
                let retiled = copy.retile(end, &fragment).unwrap();
                let (begin, part) = copy.get_slice(&thread).unwrap().partition(end, &matrix).unwrap();
                assert_eq!(retiled.size(), part.size());
                assert_eq!(retiled.rank(), part.rank(), "{retiled} {part}");
                for index in 0..part.size() {
                    let element = begin + part.eval(&index).unwrap();
                    assert_eq!(registers[&element], retiled.eval(&index).unwrap(), "{operand} {name} {thread}");
                    compared += 1;
                }
            }
        }
        let copy = TiledCopy::of_operand(named("SM75_U32x4_LDSM_N"), &mma, Operand::A).unwrap();
        let of = |text: &str, end| copy.retile(end, &layout(text)).unwrap_err().code();
        assert_eq!(of("((2,2,2),2,2)", CopyEnd::Source), "E0326");
        assert_eq!(of("(4,2,2)", CopyEnd::Destination), "E0326");
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn what_is_no_tiled_copy_is_refused() {
    let of = |name: &str, thr: &str, val: &str| {
        TiledCopy::new(named(name), 16, &layout(thr), &layout(val)).unwrap_err().code()
    };
    assert_eq!(of("SM75_U32x4_LDSM_N", "(4,8)", "(1,4)"), "E0325");
    assert_eq!(of("SM75_U32x4_LDSM_N", "(4,4)", "(1,8)"), "E0325");
    assert_eq!(of("UniversalCopy<uint8_t>", "(4,4)", "(1,8)"), "E0324");
    assert_eq!(of("DefaultCopy", "(4,4):(1,5)", "(1,8)"), "E0116");
    let near = CopyAtom::named("SM75_U32x3_LDSM_N").unwrap_err();
    assert_eq!(near.to_string(), "there is no copy `SM75_U32x3_LDSM_N`");
    assert!(near.help().unwrap().contains("`SM75_U32x1_LDSM_N`"));
}
