//! Suggestions, compared with counting every candidate, and with the swizzles that are known to be
//! optimal.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_layout::analysis::{
    Access, Banks, Proof, Remedy, Storage, Suggestion, bank_conflicts, footprint, suggest,
};
use tilewright_layout::atoms::SwizzleMode;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Layout, Swizzle, Xor};

/// The wavefronts of an access whose lanes begin at the offsets `starts`, in elements, in phases of
/// `lanes`.
fn counted(starts: &[i64], lanes: usize, bits: i64, vector: i64, banks: (i64, i64)) -> i64 {
    let phases = starts.chunks(lanes).map(|phase| {
        let mut words: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for start in phase {
            for byte in start * bits / 8..(start + vector) * bits / 8 {
                let word = byte / banks.1;
                words.entry(word % banks.0).or_default().insert(word);
            }
        }
        words.values().map(|words| words.len() as i64).max().unwrap_or(0)
    });
    phases.sum()
}

/// The first offset of each load, phase after phase.
fn starts(layout: &Layout, access: &Access) -> Vec<i64> {
    let (mut all, threads) = (Vec::new(), access.threads());
    for group in (0..threads).step_by(access.lanes() as usize) {
        for instruction in 0..access.instructions() {
            for thread in group..threads.min(group + access.lanes()) {
                let index = access.pattern().eval(&(thread + threads * instruction * access.vector())).unwrap();
                all.push(layout.eval(&index).unwrap());
            }
        }
    }
    all
}

fn cost(layout: &Layout, accesses: &[Access], banks: (i64, i64), map: impl Fn(i64) -> i64) -> i64 {
    let costs = accesses.iter().map(|access| {
        let starts: Vec<i64> = starts(layout, access).into_iter().map(&map).collect();
        let lanes = (banks.0 * banks.1 / access.bytes()).clamp(1, access.lanes()) as usize;
        counted(&starts, lanes, access.bits(), access.vector(), banks)
    });
    costs.sum()
}

fn swizzled(suggestions: &[Suggestion]) -> Option<(&Suggestion, Swizzle)> {
    suggestions.iter().find_map(|found| match found.remedy {
        Remedy::Swizzle(swizzle) => Some((found, swizzle)),
        _ => None,
    })
}

#[test]
fn the_swizzles_of_hopper_are_recovered() {
    for bits in [8, 16, 32] {
        let modes = [(128, SwizzleMode::Bytes128), (64, SwizzleMode::Bytes64), (32, SwizzleMode::Bytes32)];
        for (bytes, mode) in modes {
            let row = bytes * 8 / bits;
            // K-major: rows of this many bytes, one after another; MN-major: columns.
            for (text, transposed) in
                [(format!("(64,{row}):({row},1)"), false), (format!("({row},64):(1,{row})"), true)]
            {
                let tile: Layout = text.parse().unwrap();
                let shape = tile.shape();
                let write = match transposed {
                    false => Access::rows(&shape, bits, 128 / bits).unwrap(),
                    true => Access::columns(&shape, bits, 128 / bits).unwrap(),
                };
                let read = Access::matrices(&shape, bits, 4, transposed).unwrap();
                let advice = suggest(&tile, &[write, read], Banks::NVIDIA).unwrap();
                let (found, swizzle) = swizzled(&advice.suggestions).unwrap();
                assert_eq!(swizzle, mode.swizzle(bits).unwrap(), "{text}, {bits} bits");
                assert_eq!((found.proof, found.extra), (Proof::Bound, 0));
                assert!(found.reports.iter().all(|report| report.is_conflict_free()));
            }
        }
    }
}

#[test]
fn a_transpose_through_shared_memory_has_its_swizzle_and_its_padding() {
    let tile: Layout = "(32,32):(32,1)".parse().unwrap();
    let (rows, columns) = (Access::rows(&tile.shape(), 32, 1).unwrap(), Access::columns(&tile.shape(), 32, 1).unwrap());
    let advice = suggest(&tile, &[rows, columns], Banks::NVIDIA).unwrap();
    assert_eq!((advice.wavefronts(), advice.ideal()), (32 + 1024, 64));
    assert_eq!(swizzled(&advice.suggestions).unwrap().1.to_string(), "S<5,0,5>");
    let padding = advice.suggestions.iter().find(|found| matches!(found.remedy, Remedy::Padding { .. })).unwrap();
    assert_eq!(padding.remedy, Remedy::Padding { stride: 32, elements: 1 });
    assert_eq!((padding.text().as_str(), padding.extra), ("(32,32):(33,1)", 31));
    // For the columns alone, lanes may go along the rows instead.
    let threads =
        advice.suggestions.iter().find(|found| matches!(found.remedy, Remedy::Threads { access: 1, .. })).unwrap();
    assert_eq!((threads.wavefronts(), threads.proof), (64, Proof::Bound));
    // Nothing to gain, nothing suggested.
    let rows = Access::rows(&tile.shape(), 32, 1).unwrap();
    assert!(suggest(&tile, &[rows], Banks::NVIDIA).unwrap().suggestions.is_empty());
}

#[test]
fn no_swizzle_and_no_padding_is_better_than_the_one_suggested() {
    let banks = (8, 4);
    let memory = Banks::new(banks.0, banks.1).unwrap();
    let cases = [
        ("(16,16):(16,1)", 32),
        ("(8,12):(12,1)", 32),
        ("(16,16):(1,16)", 16),
        ("((4,4),(2,8)):((32,2),(1,8))", 16),
        ("(32,8):(8,1)", 64),
        ("(12,10):(10,1)", 8),
        ("(16,32):(40,1)", 8),
    ];
    for (text, bits) in cases {
        let layout: Layout = text.parse().unwrap();
        for (a, b) in [(1, 1), (2, 1), (4, 1)] {
            let read = Access::rows(&layout.shape(), bits, a);
            let write = Access::columns(&layout.shape(), bits, b);
            let (Ok(read), Ok(write)) = (read, write) else { continue };
            let accesses = [read, write];
            let Ok(advice) = suggest(&layout, &accesses, memory) else { continue };
            let before = cost(&layout, &accesses, banks, |x| x);
            assert_eq!(advice.wavefronts(), before, "{text}");
            let best = |suggestion: Option<&Suggestion>| suggestion.map_or(before, Suggestion::wavefronts);
            // All swizzles within the bits of an offset that keep vectors whole.
            let width = 64 - i64::from(layout.range().unwrap().1.leading_zeros());
            let mut least = before;
            for base in 0..width {
                for count in 1..width {
                    for shift in -width..=width {
                        let Ok(swizzle) = Swizzle::new(count, base, shift) else { continue };
                        let whole = (1 << base) % accesses[0].vector().max(accesses[1].vector()) == 0;
                        if whole && base + count + shift.abs() <= width {
                            least = least.min(cost(&layout, &accesses, banks, |x| swizzle.apply(x)));
                        }
                    }
                }
            }
            let found = swizzled(&advice.suggestions).map(|(found, _)| found);
            // If the minimum is reached already, nothing is searched.
            if advice.wavefronts() > advice.ideal() {
                assert_eq!(best(found), least, "{text}, {bits} bits, {a} and {b}: {:?}", found.map(|f| &f.remedy));
            }
            for suggestion in &advice.suggestions {
                assert!(suggestion.wavefronts() < before, "{text}");
                if let Remedy::Padding { stride, elements } = suggestion.remedy {
                    let padded = cost(&layout, &accesses, banks, |x| x + x / stride * elements);
                    assert_eq!(suggestion.wavefronts(), padded, "{text}");
                    for more in 1..3 * banks.0 * banks.1 * 8 / bits {
                        if more % a == 0 && more % b == 0 && stride % a == 0 && stride % b == 0 {
                            assert!(
                                cost(&layout, &accesses, banks, |x| x + x / stride * more) >= padded,
                                "{text} + {more}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The value of a matrix whose columns are given.
fn product(columns: &[u64], x: i64) -> i64 {
    columns.iter().enumerate().filter(|(bit, _)| x >> bit & 1 != 0).fold(0, |sum, (_, column)| sum ^ *column as i64)
}

#[test]
fn no_linear_map_is_better_than_the_one_suggested() {
    // Four banks: two rows decide; offsets of at most six bits, all matrices of two rows and full
    // rank are counted.
    let (banks, memory) = ((4, 4), Banks::new(4, 4).unwrap());
    let mut found_better = 0;
    let orders = [
        "((2,2,2),(2,2,2)):((1,2,4),(8,16,32))",
        "((2,2,2),(2,2,2)):((8,1,32),(2,16,4))",
        "(4,8):(8,1)",
        "(8,4):(1,8)",
    ];
    for text in orders {
        let layout: Layout = text.parse().unwrap();
        let width = layout.size().trailing_zeros();
        let size = layout.size();
        // Threads in several orders of the bits of an index.
        let patterns = [
            format!("{size}:1"),
            format!("(4,{}):({},1)", size / 4, size / 4),
            format!("(2,{},2):({},2,1)", size / 4, size / 2),
        ];
        let usable = patterns.iter().map(|pattern| {
            let flat: Layout = pattern.parse().unwrap();
            let threads = Layout::tuple([&flat, &Layout::unit()]).unwrap();
            Access::new(pattern, &threads, 32, 1).unwrap()
        });
        let accesses: Vec<Access> = usable.collect();
        for chosen in [vec![0], vec![1], vec![0, 1], vec![1, 2], vec![0, 1, 2]] {
            let accesses: Vec<Access> = chosen.iter().map(|at| accesses[*at].clone()).collect();
            let advice = suggest(&layout, &accesses, memory).unwrap();
            let before = cost(&layout, &accesses, banks, |x| x);
            let mut least = before;
            for rows in 0..1_u64 << (2 * width) {
                let columns: Vec<u64> = (0..width).map(|bit| rows >> (2 * bit) & 3).collect();
                // Of rank 2: two different nonzero columns.
                let full = columns.iter().filter(|column| **column != 0).collect::<BTreeSet<_>>().len() > 1;
                if full {
                    // The bank is what the rows say; above it the offset itself tells words apart.
                    let map = |x: i64| x << 2 | product(&columns, x);
                    least = least.min(cost(&layout, &accesses, banks, map));
                }
            }
            let best = advice
                .suggestions
                .iter()
                .filter(|found| matches!(found.remedy, Remedy::Swizzle(_) | Remedy::Linear(_)));
            let reached = best.map(Suggestion::wavefronts).min().unwrap_or(before);
            assert_eq!(reached, least, "{text}, {chosen:?}");
            for suggestion in &advice.suggestions {
                if let Remedy::Linear(matrix) = &suggestion.remedy {
                    found_better += 1;
                    assert!(matrix.is_bijective());
                    let again = cost(&layout, &accesses, banks, |x| product(matrix.columns(), x));
                    assert_eq!(again, suggestion.wavefronts(), "{matrix}");
                    assert_ne!(suggestion.proof, Proof::Open);
                }
            }
        }
    }
    assert!(found_better > 0);
}

/// Two accesses with conflicts: a thread order for one of them does not change the other.
#[test]
fn an_order_of_the_threads_of_one_access_is_no_bound_for_all() {
    let tile: Layout = "(32,32):(32,1)".parse().unwrap();
    let column = || Access::columns(&tile.shape(), 32, 1).unwrap();
    let advice = suggest(&tile, &[column(), column()], Banks::NVIDIA).unwrap();
    let mut orders = 0;
    for suggestion in &advice.suggestions {
        assert_eq!(suggestion.proof == Proof::Bound, suggestion.wavefronts() == advice.ideal());
        if let Remedy::Threads { access, .. } = suggestion.remedy {
            orders += 1;
            assert!(suggestion.reports[access].is_conflict_free());
            assert!(suggestion.wavefronts() > advice.ideal());
            assert_eq!(suggestion.proof, Proof::Exhausted);
        }
    }
    assert_eq!(orders, 2);
    // For a single access it is suggested.
    let advice = suggest(&tile, &[column()], Banks::NVIDIA).unwrap();
    let threads = advice.suggestions.iter().find(|found| matches!(found.remedy, Remedy::Threads { .. })).unwrap();
    assert_eq!(threads.proof, Proof::Bound);
}

#[test]
fn refusals_say_what_is_wanted() {
    let tile: Layout = "(32,32):(32,1)".parse().unwrap();
    let wide = Access::rows(&tile.shape(), 64, 4).unwrap();
    let refused = bank_conflicts(&Storage::from(&tile), &wide, Banks::NVIDIA).unwrap_err();
    let wanted = "the bytes that a lane takes must be at most 16, and no more than a line of all banks, not 32";
    assert_eq!(refused.to_string(), wanted);
    // A footprint needs offsets, not the accesses of threads.
    let later: Layout<Expr> = "(8,64):(M{div=64},1)".parse().unwrap();
    let refused = footprint(&Storage::new(&later.into()).unwrap()).unwrap_err();
    assert!(refused.to_string().starts_with("the offset of index 1 is not known before launch"), "{refused}");
    assert_eq!(refused.code(), "E0608");
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let layout: Layout = "(32,32):(32,1)".parse().unwrap();
    let access = |bits| Access::rows(&layout.shape(), bits, 1).unwrap();
    assert_eq!(suggest(&layout, &[access(32), access(16)], Banks::NVIDIA).unwrap_err().code(), "E0607");
    let backward: Layout = "(32,32):(-32,1)".parse().unwrap();
    assert_eq!(suggest(&backward, &[access(32)], Banks::NVIDIA).unwrap_err().code(), "E0607");
    let large: Layout = "(1024,1024):(1024,1)".parse().unwrap();
    let rows = Access::rows(&large.shape(), 32, 1).unwrap();
    assert_eq!(suggest(&large, &[rows], Banks::NVIDIA).unwrap_err().code(), "E0604");
    // Offsets so far out that no padding of them is representable.
    let far: Layout = "(2,2):(2,4611686018427387904)".parse().unwrap();
    let columns = Access::columns(&far.shape(), 8, 1).unwrap();
    assert!(suggest(&far, &[columns], Banks::NVIDIA).is_ok());
    let apart: Layout = "(32,2):(64,4611686018427387904)".parse().unwrap();
    let columns = Access::columns(&apart.shape(), 32, 1).unwrap();
    let advice = suggest(&apart, &[columns], Banks::NVIDIA).unwrap();
    assert!(advice.suggestions.iter().all(|found| found.wavefronts() < advice.wavefronts()));
    assert!(suggest(&layout, &[], Banks::NVIDIA).unwrap().suggestions.is_empty());
}

/// A tile that is swizzled already: another swizzle in its place does as well as one for the layout
/// beneath, and a map of bits no worse.
#[test]
fn swizzled_tiles_get_the_swizzle_of_the_layout_beneath() {
    let tile: Layout = "(64,64):(64,1)".parse().unwrap();
    let read = Access::matrices(&tile.shape(), 16, 4, false).unwrap();
    let accesses = [Access::rows(&tile.shape(), 16, 8).unwrap(), read];
    let best = suggest(&tile, &accesses, Banks::NVIDIA).unwrap().suggestions[0].wavefronts();
    for bits in 1..=3 {
        for base in 3..=5 {
            for shift in bits..=4 {
                for offset in [0, 64] {
                    let old = Composed::new(Swizzle::new(bits, base, shift).unwrap(), offset, tile.clone()).unwrap();
                    let Ok(advice) = suggest(old.clone(), &accesses, Banks::NVIDIA) else { continue };
                    let reached = advice.suggestions.iter().map(|suggestion| suggestion.wavefronts()).min();
                    assert_eq!(reached.unwrap_or(advice.wavefronts()), best, "{old}");
                    for suggestion in &advice.suggestions {
                        if let Remedy::Swizzle(swizzle) = suggestion.remedy {
                            let expected = Composed::new(swizzle, offset, tile.clone()).unwrap();
                            assert!(suggestion.layout.equivalent(&expected).unwrap(), "{old}");
                        }
                        // Counted once more, as the user would.
                        let storage = Storage::from(&suggestion.layout);
                        for (access, report) in accesses.iter().zip(&suggestion.reports) {
                            let again = bank_conflicts(&storage, access, Banks::NVIDIA).unwrap();
                            assert_eq!(again.wavefronts(), report.wavefronts(), "{old}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn xor_tiles_are_searched_as_the_maps_that_they_are() {
    // A transpose of 32 x 32 words through columns that all start in bank 0.
    let tile: Layout<Xor> = "(32,32):(^32,^1)".parse().unwrap();
    let composed = tile.bit_matrix().unwrap().to_composed(&tile.shape()).unwrap();
    let accesses = [Access::rows(&tile.shape(), 32, 1).unwrap(), Access::columns(&tile.shape(), 32, 1).unwrap()];
    let advice = suggest(composed, &accesses, Banks::NVIDIA).unwrap();
    assert_eq!(advice.suggestions[0].remedy, Remedy::Swizzle(Swizzle::new(5, 0, 5).unwrap()));
    assert_eq!(advice.suggestions[0].wavefronts(), advice.ideal());
}
