//! Every instruction that has a name: who holds what, place by place, against the words of the ISA
//! documents.

use std::collections::{HashMap, HashSet};

use tilewright_layout::atoms::{Arch, MmaAtom, MmaFamily, Operand, ThreadValue};
use tilewright_layout::{Layout, Tree};

fn families(prefix: &str) -> impl Iterator<Item = &'static MmaFamily> {
    MmaAtom::families().filter(move |family| family.pattern().starts_with(prefix))
}

fn atoms(prefix: &str) -> Vec<MmaAtom> {
    let names = families(prefix).flat_map(|family| family.names().into_iter().map(move |name| (family, name)));
    names.map(|(family, name)| family.member(&name).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

/// Those of CDNA, whose waves have 64 lanes; `isa.rs` has those of RDNA.
fn waves() -> Vec<MmaAtom> {
    let mut all = atoms("GFX");
    all.retain(|atom| !atom.to_string().starts_with("GFX1"));
    all
}

fn place(layout: &Layout, thread: i64, value: i64) -> i64 {
    layout.eval_at(&Tree::flat([thread, value]).unwrap()).unwrap()
}

/// Every place of a tile is held by as many threads as stated, by none of them twice.
fn check(name: &str, held: &ThreadValue, threads: i64, places: i64) {
    let values = held.values();
    // All threads hold the same values, so one thread is enough.
    let all = held.holders() == threads && threads > 32;
    let asked: Vec<i64> = if all { vec![0, 1, threads - 1] } else { (0..threads).collect() };
    let mut holders = vec![0; usize::try_from(places).unwrap()];
    for thread in &asked {
        let mut own = HashSet::new();
        for value in 0..values {
            let place = place(held.layout(), *thread, value);
            holders[usize::try_from(place).unwrap()] += 1;
            assert!(all || own.insert(place), "{name}: thread {thread} holds {place} twice");
        }
    }
    let expected = if all { asked.len() as i64 } else { held.holders() };
    assert!(holders.iter().all(|count| *count == expected), "{name}: {}", held.layout());
}

#[test]
fn every_place_has_its_owners() {
    let (mut checked, mut names) = (HashSet::new(), HashSet::new());
    for atom in atoms("") {
        assert!(names.insert(atom.name().to_owned()), "{atom} twice");
        assert_eq!(atom.arch().name().split_at(2).0.to_uppercase(), atom.name().split_at(2).0.to_uppercase());
        for (operand, held) in atom.operands() {
            let [rows, columns] = atom.tile(operand);
            if checked.insert((held.clone(), rows * columns)) {
                check(atom.name(), held, atom.threads().size(), rows * columns);
            }
        }
    }
    assert!(names.len() > 20_000 && checked.len() > 500, "{} {}", names.len(), checked.len());
}

#[test]
fn a_name_leads_to_its_atom() {
    for family in MmaAtom::families() {
        let names = family.names();
        for name in [names.first(), names.last()].into_iter().flatten() {
            let atom = MmaAtom::named(name).unwrap();
            assert_eq!((atom.name(), atom.arch()), (name.as_str(), family.arch()));
        }
    }
    assert_eq!(MmaAtom::named("").unwrap_err().code(), "E0316");
    assert_eq!(MmaAtom::named("SM90_64x12x16_F32F16F16_SS").unwrap_err().code(), "E0316");
    let near = MmaAtom::named("sm80_16x8x8_f32tf32tf32f32_tn").unwrap_err().help().unwrap();
    assert!(near.starts_with("is `SM80_16x8x8_F32TF32TF32F32_TN`"), "{near}");
}

/// As many as are published for each machine.
#[test]
fn none_is_missing() {
    let count = |prefix: &str| {
        let dense = families(prefix).filter(|family| !family.pattern().starts_with("SM80_SPARSE"));
        dense.map(|family| family.names().len()).sum::<usize>()
    };
    let found = ["SM61_", "SM70_", "SM75_", "SM80_", "SM89_", "SM90_16x8"].map(count);
    assert_eq!(found, [2, 8, 3, 65, 8, 6]);
    // 40 families of wgmma: 24 with all 32 multiples of 8 as N, 16 of integers with 18.
    assert_eq!(count("SM90_64x"), 24 * 32 + 16 * 18);
    assert_eq!(count("SM120_16x8x32_TN<"), 50);
}

/// What the ISA says of all instructions of a warp from Turing on: a 32-bit register (64 or 128
/// bits of one value in double precision) has values side by side along K, four threads are side by
/// side along K, eight groups of four are rows; a second register is 8 rows below, in A of 16 rows,
/// and further ones are behind along K. Sums are pairs along N.
#[test]
fn registers_of_a_warp() {
    let mut count = 0;
    for prefix in ["SM75_", "SM80_", "SM89_", "SM90_16x8", "SM120_"] {
        // `mma.sp` of Ampere has a test of its own.
        for atom in atoms(prefix).into_iter().filter(|atom| !atom.name().starts_with("SM80_SPARSE")) {
            let [m, _, _] = atom.shape();
            let sparse = atom.operand(Operand::Metadata).is_some();
            for (operand, rows, bits) in
                [(Operand::A, m, atom.types().a.bits()), (Operand::B, 8, atom.types().b.bits())]
            {
                // Values of 6 bits, and of 4 among them, take a byte each, unless K says that all
                // have 4.
                let floats = atom.arch() == Arch::Sm120;
                let packed = atom.shape()[2] == if sparse { 128 } else { 64 };
                let bits = if floats && !packed { 8 } else { bits };
                let run = (32 / bits).max(1) * if sparse && operand == Operand::A { 2 } else { 1 };
                let held = atom.operand(operand).unwrap();
                for thread in 0..32 {
                    for value in 0..held.values() {
                        let (register, within) = (value / run, value % run);
                        let (down, along) = if rows == 16 { (register % 2, register / 2) } else { (0, register) };
                        let row = thread / 4 + 8 * down;
                        let k = thread % 4 * run + within + 4 * run * along;
                        assert_eq!(
                            place(held.layout(), thread, value),
                            row + rows * k,
                            "{atom} {operand} {thread} {value}"
                        );
                    }
                }
            }
            for thread in 0..32 {
                for value in 0..atom.c().values() {
                    let (row, column) = (thread / 4 + 8 * (value / 2), thread % 4 * 2 + value % 2);
                    assert_eq!(place(atom.c().layout(), thread, value), row + m * column, "{atom} C");
                }
            }
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}

/// The published row of this instruction is wrong; the ISA's fragment is the first half of that of
/// twice the depth.
#[test]
fn the_corrected_row() {
    for operation in ["XORPOPC", "ANDPOPC"] {
        let name = |k| format!("SM80_16x8x{k}_S32U1U1S32_TN_{operation}");
        let (half, whole) = (MmaAtom::named(&name(128)).unwrap(), MmaAtom::named(&name(256)).unwrap());
        assert_eq!(half.a().values() * 2, whole.a().values());
        for thread in 0..32 {
            for value in 0..half.a().values() {
                let own = place(half.a().layout(), thread, value);
                assert_eq!(own, place(whole.a().layout(), thread, value));
                let row = if value < 32 { thread / 4 } else { thread / 4 + 8 };
                assert_eq!(own, row + 16 * (thread % 4 * 32 + value % 32));
            }
        }
    }
}

/// PTX: rows and columns of the quad pair, by lane and value.
#[test]
fn registers_of_a_quad_pair() {
    for atom in atoms("SM70_") {
        let name = atom.name().to_owned();
        for thread in 0..8 {
            let lane = atom.threads().eval(&thread).unwrap();
            let upper = lane / 16;
            let factor = |letter: &str, along_k: &str, value: i64| match letter == along_k {
                true => thread % 4 + 4 * upper + 8 * value,
                false => value + 4 * upper + 8 * (thread % 4),
            };
            for value in 0..4 {
                let letters = &name[name.len() - 2..];
                assert_eq!(place(atom.a().layout(), thread, value), factor(&letters[..1], "T", value), "{name} A");
                assert_eq!(place(atom.b().layout(), thread, value), factor(&letters[1..], "N", value), "{name} B");
            }
            for value in 0..8 {
                let (row, column) = match atom.types().c.bits() {
                    16 => (thread % 4 + 4 * upper, value),
                    _ => ((lane & 1) + (value & 2) + 4 * upper, (value & 4) + (lane & 2) + (value & 1)),
                };
                assert_eq!(place(atom.c().layout(), thread, value), row + 8 * column, "{name} C");
            }
        }
    }
}

/// PTX: the fragments of wgmma, by warp, lane and register.
#[test]
fn registers_of_four_warps() {
    let mut seen = HashSet::new();
    for atom in atoms("SM90").into_iter().filter(|atom| atom.threads().size() == 128) {
        let [_, _, k] = atom.shape();
        let sparse = atom.operand(Operand::Metadata).is_some();
        assert_eq!(k * atom.types().a.bits(), if sparse { 512 } else { 256 });
        let registers = atom.name().contains("_RS");
        assert_eq!(atom.a().holders(), if registers { 1 } else { 128 });
        if !seen.insert((atom.a().clone(), atom.c().clone())) {
            continue;
        }
        let run = 32 / atom.types().a.bits() * if sparse { 2 } else { 1 };
        for thread in 0..128 {
            let (warp, lane) = (thread / 32, thread % 32);
            for value in (0..atom.a().values()).filter(|_| registers) {
                let (register, within) = (value / run, value % run);
                let row = 16 * warp + lane / 4 + 8 * (register % 2);
                let column = lane % 4 * run + within + 4 * run * (register / 2);
                assert_eq!(place(atom.a().layout(), thread, value), row + 64 * column, "{atom} A");
            }
            for value in 0..atom.c().values() {
                let row = 16 * warp + lane / 4 + 8 * (value / 2 % 2);
                let column = 8 * (value / 4) + lane % 4 * 2 + value % 2;
                assert_eq!(place(atom.c().layout(), thread, value), row + 64 * column, "{atom} C");
            }
        }
    }
    assert!(seen.len() > 100);
}

/// Of the two CTAs the second has the second half of every operand, and together they see what one
/// would.
#[test]
fn halves_of_two_ctas() {
    let mut halved = 0;
    for atom in atoms("SM10") {
        let [m, n, k] = atom.shape();
        let ctas = if atom.name().contains("2x1SM") { 2 } else { 1 };
        assert_eq!(atom.threads().size(), ctas);
        let bytes = k * if atom.types().a.bits() <= 8 { 8 } else { atom.types().a.bits() };
        assert!([256, 512, 768, 1024].contains(&bytes), "{atom}");
        for (operand, rows) in [(Operand::A, m), (Operand::B, n), (Operand::C, m)] {
            let held = atom.operand(operand).unwrap();
            for cta in 0..ctas {
                let first = place(held.layout(), cta, 0);
                let last = place(held.layout(), cta, held.values() - 1);
                assert_eq!((first, last % rows), (cta * rows / ctas, (cta + 1) * rows / ctas - 1), "{atom} {operand}");
            }
        }
        halved += ctas - 1;
    }
    assert!(halved > 1000);
}

/// The formulae of the ISA document, by element, for one block of `M x N x K`: the lane and the
/// item of `A[i,k]`, `B[k,j]` and `D[i,j]`.
///
/// AMD Instinct CDNA4 ISA, "General input and output layout": K_L = K / (64 / M), H = 4 (f64: 1),
/// B_I = ceil(64 / (N * M / H)), M_I = (64 / B_I) / N, G = M / (H * M_I).
#[test]
fn elements_of_a_wave() {
    let mut elements = 0;
    for atom in waves() {
        let [m, n, k] = atom.shape();
        let types = atom.types();
        let inputs = k / (64 / m);
        let holds = |operand: Operand, lane: i64, item: i64| place(atom.operand(operand).unwrap().layout(), lane, item);
        let split = |bits: i64| atom.arch() == Arch::Gfx950 && bits == 8 && types.d.name() == "F32";
        for (operand, rows, value) in [(Operand::A, m, types.a), (Operand::B, n, types.b)] {
            assert_eq!(atom.operand(operand).unwrap().values(), inputs);
            for i in 0..rows {
                for k in (0..k).filter(|_| !split(value.bits())) {
                    assert_eq!(holds(operand, i + rows * (k / inputs), k % inputs), i + rows * k, "{atom} {operand}");
                    elements += 1;
                }
            }
        }
        let height = if types.d.bits() == 64 { 1 } else { 4 };
        let blocks = (64 + n * m / height - 1) / (n * m / height);
        let together = 64 / blocks / n;
        assert_eq!(atom.c().values(), height * (m / (height * together)));
        for i in 0..m {
            for j in 0..n {
                let (item, lane) = (i % height + height * (i / (height * together)), j + n * (i / height % together));
                assert_eq!(holds(Operand::C, lane, item), i + m * j, "{atom} C");
                elements += 1;
            }
        }
    }
    assert!(elements > 100_000, "{elements}");
}

/// What the AMD matrix instruction calculator prints for single instructions: register, bits of it,
/// and lane of an element, and back.
#[test]
fn registers_as_the_calculator_has_them() {
    // (row, k) of A from lane, register and bit; (i, j) of D from lane and register.
    type Formulae = (&'static str, i64, fn(i64, i64, i64) -> (i64, i64), fn(i64, i64) -> (i64, i64));
    let printed: [Formulae; 3] = [
        (
            "GFX908_32x32x8_F32F16F16F32",
            16,
            |lane, register, bit| (lane % 32, 4 * (lane / 32) + 2 * register + bit / 16),
            |lane, register| (8 * (register / 4) % 32 + 4 * (lane / 32) + register % 4, lane % 32),
        ),
        (
            "GFX908_16x16x16_F32F16F16F32",
            16,
            |lane, register, bit| (lane % 16, 4 * (lane / 16) + 2 * register + bit / 16),
            |lane, register| (4 * (lane / 16) + register % 4, lane % 16),
        ),
        (
            "GFX942_16x16x32_F32E4M3E4M3F32",
            8,
            |lane, register, bit| (lane % 16, 8 * (lane / 16) + 4 * register + bit / 8),
            |lane, register| (4 * (lane / 16) + register % 4, lane % 16),
        ),
    ];
    for (name, bits, factor, sums) in printed {
        let atom = MmaAtom::named(name).unwrap();
        let [rows, _, _] = atom.shape();
        for lane in 0..64 {
            for value in 0..atom.a().values() {
                let (row, k) = factor(lane, value * bits / 32, value * bits % 32);
                assert_eq!(place(atom.a().layout(), lane, value), row + rows * k, "{name} A");
                assert_eq!(place(atom.b().layout(), lane, value), row + rows * k, "{name} B");
            }
            for register in 0..atom.c().values() {
                let (i, j) = sums(lane, register);
                assert_eq!(place(atom.c().layout(), lane, register), i + rows * j, "{name} C");
            }
        }
    }
}

/// All shapes of one wave: from lane and value, with runs along K.
#[test]
fn registers_of_a_wave() {
    let all = waves();
    assert_eq!(all.len(), 23 + 4 + 2 + 100);
    for atom in all {
        let [rows, columns, k] = atom.shape();
        assert_eq!(rows, columns);
        let (parts, types) = (64 / rows, atom.types());
        let along = |bits: i64, lane: i64, value: i64| match (atom.arch(), k, bits) {
            // Table "FP8" of 16x16x128 and 32x32x64: registers 0 to 3 have the first half of K, 4
            // to 7 the second.
            (Arch::Gfx950, 64 | 128, 8) if types.d.bits() == 32 && types.d.name() == "F32" => {
                16 * (lane / rows) + value % 16 + 16 * parts * (value / 16)
            }
            _ => k / parts * (lane / rows) + value,
        };
        for lane in 0..64 {
            for value in 0..k / parts {
                for (held, bits) in [(atom.a(), types.a.bits()), (atom.b(), types.b.bits())] {
                    let depth = along(bits, lane, value);
                    assert_eq!(place(held.layout(), lane, value), lane % rows + rows * depth, "{atom}");
                }
            }
            for value in 0..atom.c().values() {
                let row = match types.d.bits() {
                    64 => 4 * value + lane / 16,
                    _ => 4 * parts * (value / 4) + 4 * (lane / rows) + value % 4,
                };
                assert_eq!(place(atom.c().layout(), lane, value), row + rows * (lane % rows), "{atom}");
            }
        }
        // "Scale data layout": lane `l` has row `l mod M`, and of K the 32 from `32 * (l div M)`
        // on.
        for operand in [Operand::ScaleA, Operand::ScaleB] {
            let Some(held) = atom.operand(operand) else { continue };
            assert!(atom.name().ends_with("_SCALED"));
            for lane in 0..64 {
                for value in 0..32 {
                    let depth = 32 * (lane / rows) + value;
                    assert_eq!(place(held.layout(), lane, value), lane % rows + rows * depth, "{atom}");
                }
            }
        }
    }
    assert_eq!(waves().iter().filter(|atom| atom.operand(Operand::ScaleB).is_some()).count(), 50);
}

/// Intel: byte `b` of row `r` of a tile register.
#[test]
fn rows_of_tile_registers() {
    let all = atoms("AMX");
    assert_eq!(all.len(), 6);
    for atom in all {
        let [_, _, k] = atom.shape();
        let pack = 4 / (64 / k);
        for value in 0..16 * k {
            let (row, within) = (value / k, value % k);
            assert_eq!(place(atom.a().layout(), 0, value), row + 16 * within, "{atom} A");
            let (column, depth) = (within / pack, row * pack + within % pack);
            assert_eq!(place(atom.b().layout(), 0, value), column + 16 * depth, "{atom} B");
        }
        for value in 0..256 {
            assert_eq!(place(atom.c().layout(), 0, value), value / 16 + 16 * (value % 16), "{atom} C");
        }
    }
}

/// The operation as Intel's manual writes it, on tile registers, computes the product of the
/// matrices that the layouts say lie there: `for m: for k: for n: dst.row[m].dword[n] += sum over p
/// of src1.row[m].dword[k].part[p] * src2.row[k].dword[n].part[p]`.
#[test]
fn tile_registers_multiply_as_their_layouts_say() {
    for atom in atoms("AMX") {
        let [m, n, k] = atom.shape();
        let entry = |seed: i64, i: i64, j: i64| (seed + 31 * i + 17 * j + i * j) % 23 - 11;
        let tile = |held: &ThreadValue, rows: i64, seed: i64| -> Vec<i64> {
            let of = |value| place(held.layout(), 0, value);
            (0..held.values()).map(|value| entry(seed, of(value) % rows, of(value) / rows)).collect()
        };
        let (a, b) = (tile(atom.a(), m, 3), tile(atom.b(), n, 5));
        let (parts, row) = (k / 16, usize::try_from(k).unwrap());
        let mut sums = vec![0; 256];
        for i in 0..16 {
            for step in 0..16 {
                for j in 0..16 {
                    for part in 0..usize::try_from(parts).unwrap() {
                        let word = |index: usize| index * row / 16 + part;
                        sums[16 * i + j] += a[row * i + word(step)] * b[row * step + word(j)];
                    }
                }
            }
        }
        for (value, sum) in sums.iter().enumerate() {
            let at = place(atom.c().layout(), 0, i64::try_from(value).unwrap());
            let (i, j) = (at % m, at / m);
            let expected: i64 = (0..k).map(|k| entry(3, i, k) * entry(5, j, k)).sum();
            assert_eq!(*sum, expected, "{atom} {i} {j}");
        }
    }
}

/// Scale factors: two threads bring those of a row of A, four those of a column of B. Metadata: a
/// quarter of a group has what it needs.
#[test]
fn other_operands() {
    let mut count: HashMap<Operand, i64> = HashMap::new();
    for atom in atoms("SM120_") {
        for (operand, held) in atom.operands() {
            *count.entry(operand).or_default() += 1;
            for thread in 0..32 {
                for value in 0..held.values() {
                    let found = place(held.layout(), thread, value);
                    match operand {
                        Operand::ScaleA => assert_eq!(found % 16, thread / 4 + 8 * (thread % 2), "{atom}"),
                        Operand::ScaleB => assert_eq!(found % 8, thread / 4, "{atom}"),
                        _ => {}
                    }
                }
            }
        }
    }
    assert_eq!((count[&Operand::ScaleA], count[&Operand::Metadata]), (25 + 2 + 25 + 2, 50 + 25 + 2));
}

/// Each name of the catalogue is also spelt as a word, which is no other's, and is the same
/// instruction.
#[test]
fn names_are_spelt_as_words() {
    use tilewright_layout::atoms::{BulkCopy, CopyAtom, Family, Known, MmaAtom, word};
    fn spelt<A: Known>(families: impl Iterator<Item = &'static Family<A>>, name_of: impl Fn(&str) -> Option<String>) {
        let names: Vec<String> = families.flat_map(Family::names).collect();
        let mut words: Vec<String> = names.iter().map(|name| word(name)).collect();
        for name in &names {
            let spelt = word(name);
            assert!(spelt.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'), "{spelt}");
            if spelt != *name {
                assert_eq!(name_of(&spelt).as_ref(), Some(name));
            }
        }
        words.sort();
        words.dedup();
        assert_eq!(words.len(), names.len());
    }
    spelt(CopyAtom::families(), |name| CopyAtom::named(name).ok().map(|atom| atom.name().to_owned()));
    spelt(MmaAtom::families(), |name| MmaAtom::named(name).ok().map(|atom| atom.name().to_owned()));
    spelt(BulkCopy::families(), |name| BulkCopy::named(name).ok().map(|atom| atom.name().to_owned()));
    // A name without its arguments is the beginning of some.
    let help = CopyAtom::named("UniversalCopy").unwrap_err().help().unwrap();
    assert!(help.contains("`UniversalCopy<uint8_t>`"), "{help}");
}
