//! Tiled matrix products: every element has the owners that the atom says, at the place that the
//! law says.

use std::collections::{HashMap, HashSet};

use tilewright_layout::atoms::{Arch, MmaAtom, MmaTypes, Operand, TiledMma, ValueType};
use tilewright_layout::{Layout, Tiler, Tree};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// One of each family, and a few more shapes; each way to hold operands once.
fn atoms() -> Vec<MmaAtom> {
    let mut seen = HashSet::new();
    let more = ["SM80_16x8x16_F32F16F16F32_TN", "SM70_8x8x4_F32F16F16F32_NN", "AVX512_48x8x1_F32F32F32F32"];
    let named = more.map(|name| MmaAtom::named(name).unwrap());
    let first = MmaAtom::families().map(|family| family.member(&family.names()[0]).unwrap());
    let odd = MmaAtom::cpu(Arch::Avx2, [4, 3, 2], MmaTypes::uniform(ValueType::F32)).unwrap();
    let mut atoms: Vec<MmaAtom> = named.into_iter().chain(first).chain([odd]).collect();
    atoms.retain(|atom| seen.insert((atom.threads().clone(), [atom.a(), atom.b(), atom.c()].map(|held| held.clone()))));
    atoms
}

fn is_large(atom: &MmaAtom) -> bool {
    atom.operands().map(|(_, held)| held.values()).sum::<i64>() * atom.threads().size() > 1024
}

/// Arrangements of atoms, and permutations: none, every second index, and every second of parts.
fn tilings(atom: &MmaAtom) -> Vec<TiledMma> {
    let mut tilings = vec![TiledMma::from(atom.clone())];
    if is_large(atom) {
        // Descriptors: every thread sees everything.
        tilings.push(TiledMma::new(atom.clone(), &layout("(2,1,1)"), &Tiler::Keep).unwrap());
        return tilings;
    }
    for arrangement in ["(2,4,1):(4,1,0)", "(1,(2,2),2):(0,(2,1),4)"] {
        let plain = TiledMma::new(atom.clone(), &layout(arrangement), &Tiler::Keep).unwrap();
        let [m, n, k] = plain.tile_shape();
        tilings.push(plain);
        // Atoms of an odd width are not taken apart: then the order of one would be no layout.
        let width = atom.shape()[1];
        let part = if width % 2 == 0 { 2 } else { width };
        let dealt = format!("[_;({part},{},2):(1,{},{part})]", n / part, 2 * part);
        let orders = [format!("[({m},2):(2,1);_;{}:1]", 2 * k), dealt];
        for order in orders {
            let permutation = order.parse::<Tiler>().unwrap();
            tilings.push(TiledMma::new(atom.clone(), &layout(arrangement), &permutation).unwrap());
        }
    }
    tilings
}

/// The index that stands at a place when a mode is taken in an order, tile after tile.
fn ordered(order: Option<&Layout>, index: i64) -> i64 {
    match order {
        Some(order) => order.eval(&(index % order.size())).unwrap() + index / order.size() * order.size(),
        None => index,
    }
}

const OPERANDS: [(Operand, [usize; 2]); 3] = [(Operand::A, [0, 2]), (Operand::B, [1, 2]), (Operand::C, [0, 1])];

/// Every part of every thread, element by element, against the law.
#[test]
fn parts_are_what_the_law_says() {
    let mut elements = 0;
    for atom in atoms() {
        for mma in tilings(&atom) {
            let tile = mma.tile_shape();
            for (operand, modes) in OPERANDS {
                let [m, k] = modes.map(|mode| tile[mode]);
                let held = atom.operand(operand).unwrap();
                let rows = layout(&format!("({},{}):({},1)", 2 * m, 2 * k, 2 * k));
                let mut matrices = vec![layout(&format!("({m},{k})")), rows];
                matrices.truncate(if is_large(&atom) { 1 } else { 2 });
                for matrix in matrices {
                    let rests = if matrix.size() == m * k { 1 } else { 2 };
                    let mut owners: HashMap<i64, i64> = HashMap::new();
                    let thread_layout = mma.thread_layout();
                    for thread in 0..thread_layout.size() {
                        // The coordinate from the thread layout itself, not from its number.
                        let shape = thread_layout.modes().map(|mode| mode.size()).collect::<Vec<_>>();
                        let (mut rest, mut at) = (thread, Vec::new());
                        for extent in &shape {
                            at.push(rest % extent);
                            rest /= extent;
                        }
                        let number = thread_layout.eval(&thread).unwrap();
                        let (offset, part) = mma.get_slice(&number).unwrap().partition(operand, &matrix).unwrap();
                        let per = |mode: usize| tile[mode] / (atom.shape()[mode] * shape[mode + 1]) * rests;
                        let [reps_m, reps_k] = modes.map(per);
                        assert_eq!(part.size(), held.values() * reps_m * reps_k);
                        let mut index = 0;
                        for s in 0..reps_k {
                            for r in 0..reps_m {
                                for value in 0..held.values() {
                                    let place = held.layout().eval_at(&Tree::flat([at[0], value]).unwrap()).unwrap();
                                    let extent = atom.shape()[modes[0]];
                                    let within = [place % extent, place / extent];
                                    let mut coordinate = [0, 0];
                                    for (side, rest) in [(0, r), (1, s)] {
                                        let mode = modes[side];
                                        let copy = at[mode + 1] + shape[mode + 1] * rest;
                                        let plain = within[side] + atom.shape()[mode] * copy;
                                        coordinate[side] = ordered(mma.permutation(mode), plain);
                                    }
                                    let expected = matrix.eval_at(&Tree::flat(coordinate).unwrap()).unwrap();
                                    assert_eq!(offset + part.eval(&index).unwrap(), expected, "{atom} {operand}");
                                    *owners.entry(expected).or_default() += 1;
                                    index += 1;
                                    elements += 1;
                                }
                            }
                        }
                    }
                    // Everything has its owners.
                    let other = (0..3).find(|mode| !modes.contains(mode)).unwrap();
                    let expected = held.holders() * thread_layout.mode(other + 1).unwrap().size();
                    assert_eq!(owners.len() as i64, matrix.size());
                    assert!(owners.values().all(|count| *count == expected), "{atom} {operand} {expected}");
                }
            }
        }
    }
    assert!(elements > 100_000, "{elements}");
}

/// The layout of all threads says for each thread what its own part says.
#[test]
fn thread_values_are_the_parts() {
    for atom in atoms() {
        for mma in tilings(&atom) {
            let tile = mma.tile_shape();
            for (operand, modes) in OPERANDS {
                let bijective = mma.thread_layout().is_bijective();
                let all = mma.thread_values(operand);
                assert_eq!(all.is_ok(), bijective);
                let Ok(all) = all else {
                    assert_eq!(all.unwrap_err().code(), "E0323");
                    continue;
                };
                let compact = Layout::compact(&Tree::flat(modes.map(|mode| tile[mode])).unwrap()).unwrap();
                assert_eq!(all.mode(0).unwrap().size(), mma.threads());
                for thread in 0..mma.threads() {
                    let (offset, part) = mma.get_slice(&thread).unwrap().partition(operand, &compact).unwrap();
                    assert_eq!(all.mode(1).unwrap().size(), part.size());
                    for value in 0..part.size() {
                        let place = all.eval_at(&Tree::flat([thread, value]).unwrap()).unwrap();
                        assert_eq!(place, offset + part.eval(&value).unwrap());
                    }
                }
            }
        }
    }
}

/// A number has a coordinate exactly if a thread has it.
#[test]
fn numbers_have_coordinates_where_threads_have_them() {
    for atom in atoms() {
        for mma in tilings(&atom) {
            let threads = mma.thread_layout();
            let numbers: HashMap<i64, i64> = (0..threads.size()).map(|i| (threads.eval(&i).unwrap(), i)).collect();
            assert_eq!(numbers.len() as i64, threads.size());
            for number in -3..threads.cosize().unwrap() + 40 {
                match (mma.thread_coordinate(&number), numbers.get(&number)) {
                    (Ok(coordinate), Some(_)) => assert_eq!(threads.eval_at(&coordinate).unwrap(), number),
                    (Err(error), None) => assert_eq!(error.code(), "E0320"),
                    (found, _) => panic!("{number} of {threads}: {found:?}"),
                }
            }
        }
    }
}

/// A fragment has a place of its own for everything in the part.
#[test]
fn fragments_are_compact_and_congruent_to_the_part() {
    for atom in atoms() {
        for mma in tilings(&atom) {
            let [m, n, _] = mma.tile_shape();
            let matrix = layout(&format!("({},{}):({},1)", 2 * m, 3 * n, 3 * n));
            let number = mma.thread_layout().eval(&(mma.threads() - 1)).unwrap();
            let slice = mma.get_slice(&number).unwrap();
            let (fragment, part) =
                (slice.fragment(Operand::C, &matrix).unwrap(), slice.partition(Operand::C, &matrix).unwrap().1);
            assert_eq!(fragment.shape(), part.shape());
            assert!(fragment.is_bijective(), "{fragment}");
        }
    }
}

/// The thread is a number known at launch, and so is the operand's size.
#[test]
fn parts_of_a_thread_known_at_launch() {
    use tilewright_layout::symbolic::{Expr, Symbolic, Values};
    let atom = MmaAtom::named("SM80_16x8x8_F32F16F16F32_TN").unwrap();
    let mma = TiledMma::new(atom, &layout("(2,2,1):(1,2,0)"), &Tiler::Keep).unwrap();
    let thread: Expr = "t{min=0,max=127}".parse().unwrap();
    let matrix: Layout<Expr> = "(M{div=32},N{div=16}):(N{div=16},1)".parse().unwrap();
    let (offset, part) = mma.get_slice(&thread).unwrap().partition(Operand::C, &matrix).unwrap();
    for (m, n) in [(32, 16), (64, 48)] {
        let numbers = layout(&format!("({m},{n}):({n},1)"));
        for number in 0..128 {
            let mut values = Values::new();
            [("t", number), ("M", m), ("N", n)].into_iter().for_each(|(name, value)| values.set_named(name, value));
            let (begin, own) = mma.get_slice(&number).unwrap().partition(Operand::C, &numbers).unwrap();
            assert_eq!(offset.numbers(&values).unwrap(), begin);
            let part = part.numbers(&values).unwrap();
            assert_eq!(part.shape(), own.shape());
            assert!(part.equivalent(&own), "{part} {own}");
        }
    }
    // Without the bound it is not known whether there is such a thread.
    let refusal = mma.get_slice(&"t".parse::<Expr>().unwrap()).unwrap_err();
    assert_eq!(refusal.code(), "E0123");
}

#[test]
fn what_is_no_tiling_is_refused() {
    let atom = MmaAtom::named("SM80_16x8x8_F32F16F16F32_TN").unwrap();
    let refuse = |arrangement: &str, permutation: &str| {
        TiledMma::new(atom.clone(), &layout(arrangement), &permutation.parse().unwrap()).unwrap_err()
    };
    assert_eq!(refuse("(2,2,1,1)", "_").code(), "E0321");
    assert_eq!(refuse("(2,2):(0,1)", "_").code(), "E0321");
    assert_eq!(refuse("(2,2):(1,1)", "_").code(), "E0321");
    assert_eq!(
        refuse("(2,2)", "[_;24:1]").to_string(),
        "permutation 24:1 of N: needed is a bijection onto 0, 1, .., whose size is a multiple of 16"
    );
    assert_eq!(refuse("(2,2)", "[(16,2):(2,2);_]").code(), "E0322");
    assert_eq!(refuse("1:0", "[_;_;_;8:1]").code(), "E0322");
    let mma = TiledMma::from(atom.clone());
    assert_eq!(mma.thrfrg(Operand::ScaleA, &layout("(16,8)")).unwrap_err().code(), "E0319");
    assert_eq!(mma.thrfrg(Operand::A, &layout("16:1")).unwrap_err().code(), "E0106");
    assert_eq!(mma.get_slice(&32).unwrap_err().to_string(), "no thread of (32,1,1,1):(1,0,0,0) has the number 32");
}
