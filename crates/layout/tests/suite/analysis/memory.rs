//! Bank conflicts and sectors against a counter that follows the hardware rule byte by byte, and
//! shares no code with the library.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_layout::analysis::{
    Access, AnalysisError, Banks, Storage, bank_conflicts, global_access, phase_hits, widths,
};
use tilewright_layout::{Composed, Layout, Xor};

/// A small generator of numbers, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as i64 % n
    }

    fn of(&mut self, choices: &[i64]) -> i64 {
        choices[self.below(choices.len() as i64) as usize]
    }
}

/// The wavefronts of one instruction: `addresses[lane]` is the first byte that a lane wants.
fn wavefronts(addresses: &[i64], bytes: i64, banks: (i64, i64)) -> Vec<(i64, i64, i64)> {
    let lanes = (banks.0 * banks.1 / bytes).clamp(1, 32) as usize;
    let phases = addresses.chunks(lanes).map(|phase| {
        let mut words: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for address in phase {
            for byte in *address..address + bytes {
                let word = byte.div_euclid(banks.1);
                words.entry(word.rem_euclid(banks.0)).or_default().insert(word);
            }
        }
        let all: i64 = words.values().map(|words| words.len() as i64).sum();
        let degree = words.values().map(|words| words.len() as i64).max().unwrap();
        (all, degree, (all + banks.0 - 1) / banks.0)
    });
    phases.collect()
}

/// `x` with `b` bits from `m` on flipped by those `s` above.
fn swizzle((b, m, s): (i64, i64, i64), x: i64) -> i64 {
    let mut y = x;
    for bit in 0..b {
        y ^= ((x >> (m + s + bit)) & 1) << (m + bit);
    }
    y
}

#[test]
fn random_swizzled_thread_values_agree_with_the_counter() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut conflicts = 0;
    for _ in 0..4000 {
        let bits = random.of(&[8, 16, 32, 64]);
        let bytes = random.of(&[1, 2, 4, 8, 16]).max(bits / 8);
        let vector = bytes * 8 / bits;
        let banks = (random.of(&[16, 32, 64]), random.of(&[4, 8]));
        // Threads in three modes, any strides that keep vectors whole; values in two.
        let threads = [random.of(&[2, 3, 4, 8]), random.of(&[1, 2, 5, 4]), random.of(&[1, 2, 4])];
        let strides = [0; 3].map(|_| vector * random.below(80));
        let more = (random.of(&[1, 2, 3]), vector * random.below(50));
        let m = vector.trailing_zeros() as i64 + random.below(3);
        let b = random.below(4);
        let sw = (b, m, b + random.below(4));
        let text = format!(
            "S<{},{},{}> o {} o (({},{},{}),({vector},{})):(({},{},{}),(1,{}))",
            sw.0,
            sw.1,
            sw.2,
            vector * random.below(3),
            threads[0],
            threads[1],
            threads[2],
            more.0,
            strides[0],
            strides[1],
            strides[2],
            more.1
        );
        let tile: Composed = text.parse().unwrap();
        let offset = *tile.offset();
        let storage = Storage::from(&tile);
        let access = Access::thread_values(&tile.shape(), bits, vector).unwrap();
        let memory = Banks::new(banks.0, banks.1).unwrap();
        let report = bank_conflicts(&storage, &access, memory).unwrap();
        let global = global_access(&storage, &access).unwrap();
        // The oracle: addresses of every instruction of every warp.
        let count = threads.iter().product::<i64>();
        let place = |thread: i64, instruction: i64| {
            let digits = [thread % threads[0], thread / threads[0] % threads[1], thread / threads[0] / threads[1]];
            let sum: i64 = digits.iter().zip(strides).map(|(digit, stride)| digit * stride).sum();
            swizzle(sw, offset + sum + instruction * more.1) * bits / 8
        };
        let mut expected = Vec::new();
        let mut requests = Vec::new();
        for warp in 0..(count + 31) / 32 {
            for instruction in 0..more.0 {
                let lanes = warp * 32..count.min(warp * 32 + 32);
                let addresses: Vec<i64> = lanes.map(|thread| place(thread, instruction)).collect();
                expected.extend(wavefronts(&addresses, bytes, banks));
                let touched: BTreeSet<i64> = addresses.iter().flat_map(|a| *a..a + bytes).collect();
                let sectors: BTreeSet<i64> = touched.iter().map(|byte| byte.div_euclid(32)).collect();
                let lines: BTreeSet<i64> = touched.iter().map(|byte| byte.div_euclid(128)).collect();
                requests.push((touched.len() as i64, sectors.len() as i64, lines.len() as i64));
            }
        }
        let found: Vec<_> = report.phases().iter().map(|phase| (phase.words, phase.degree, phase.ideal)).collect();
        assert_eq!(found, expected, "{text}, {bits} bits, {bytes} bytes, {banks:?}");
        let found: Vec<_> = global.requests().iter().map(|r| (r.bytes, r.sectors, r.lines)).collect();
        assert_eq!(found, requests, "{text}, {bits} bits");
        conflicts += i64::from(!report.is_conflict_free());
        // The hits of the worst phase say the same as its counts.
        let worst = report.worst();
        let hits = phase_hits(&storage, &access, memory, worst).unwrap();
        assert_eq!(hits.phase, report.phases()[worst], "{text}");
        let most = hits.collisions().iter().map(|collision| collision.words.len() as i64).max();
        assert_eq!(most.unwrap_or(1), hits.phase.degree, "{text}");
        for collision in hits.collisions() {
            for (line, lanes) in collision.words {
                let line: i64 = hits.lines[line].parse().unwrap();
                for lane in lanes {
                    let first = place(hits.phase.group * 32 + lane, hits.phase.instruction);
                    let word = line + collision.bank * banks.1;
                    assert!(first < word + banks.1 && word < first + bytes, "{text}: lane {lane}");
                }
            }
        }
    }
    assert!(conflicts > 1000, "{conflicts}");
}

#[test]
fn offsets_below_zero_and_xor_steps_have_banks_too() {
    let backward: Layout = "32:-3".parse().unwrap();
    let access = Access::thread_values(&backward.shape(), 32, 1).unwrap();
    let report = bank_conflicts(&Storage::from(&backward), &access, Banks::NVIDIA).unwrap();
    let addresses: Vec<i64> = (0..32).map(|lane| -12 * lane).collect();
    let expected = wavefronts(&addresses, 4, (32, 4))[0];
    assert_eq!((report.phases()[0].words, report.degree(), report.ideal()), expected);

    let xor: Layout<Xor> = "(32,2):(^33,^1)".parse().unwrap();
    let access = Access::thread_values(&xor.shape(), 32, 1).unwrap();
    assert!(bank_conflicts(&Storage::from(&xor), &access, Banks::NVIDIA).unwrap().is_conflict_free());
    let straight: Layout = "(32,2):(32,1)".parse().unwrap();
    assert_eq!(bank_conflicts(&Storage::from(&straight), &access, Banks::NVIDIA).unwrap().degree(), 32);
}

/// Row `r` of matrix `m` of the instruction at block (i, j) of a tile, as the manual of ldmatrix
/// numbers lanes: lane 8m + r.
#[test]
fn ldmatrix_takes_eight_rows_of_sixteen_bytes_a_phase() {
    for (rows, columns, stride) in
        [(64, 64, 64), (64, 64, 72), (32, 32, 32), (16, 128, 128), (128, 16, 16), (64, 64, 66)]
    {
        let tile: Layout = format!("({rows},{columns}):({stride},1)").parse().unwrap();
        for (count, a, b) in [(1, 1, 1), (2, 2, 1), (4, 2, 2)] {
            let access = Access::matrices(&tile.shape(), 16, count, false).unwrap();
            let report = bank_conflicts(&Storage::from(&tile), &access, Banks::NVIDIA);
            if stride % 8 != 0 {
                assert!(matches!(report, Err(AnalysisError::Misaligned { thread: 1, value: 0, vector: 8, .. })));
                continue;
            }
            let mut expected = Vec::new();
            for j in 0..columns / 8 / b {
                for i in 0..rows / 8 / a {
                    let lane = |lane: i64| {
                        let (matrix, row) = (lane / 8, lane % 8);
                        let (down, right) = (matrix % a, matrix / a);
                        let (r, c) = ((i * a + down) * 8 + row, (j * b + right) * 8);
                        (r * stride + c) * 2
                    };
                    let addresses: Vec<i64> = (0..8 * count).map(lane).collect();
                    expected.extend(wavefronts(&addresses, 16, (32, 4)));
                }
            }
            let report = report.unwrap();
            let found: Vec<_> = report.phases().iter().map(|phase| (phase.words, phase.degree, phase.ideal)).collect();
            assert_eq!(found, expected, "{tile}, x{count}");
            assert_eq!(report.phases()[0].lanes, 8);
        }
    }
    // Columns of a column-major tile are what rows are of a row-major one.
    let turned: Layout = "(64,32):(1,64)".parse().unwrap();
    let rows: Layout = "(32,64):(64,1)".parse().unwrap();
    let report = |tile: &Layout, transposed| {
        let access = Access::matrices(&tile.shape(), 16, 4, transposed).unwrap();
        bank_conflicts(&Storage::from(tile), &access, Banks::NVIDIA).unwrap()
    };
    assert_eq!(report(&turned, true), report(&rows, false));
    // A tile eight across takes its matrices along the rows.
    let flat: Layout = "(8,64):(64,1)".parse().unwrap();
    assert_eq!(Access::matrices(&flat.shape(), 16, 4, false).unwrap().groups(), 2);
}

#[test]
fn what_is_known_before_launch_holds_for_every_value() {
    let at_launch = |text: &str| Storage::new(&text.parse().unwrap()).unwrap();
    // A layout of M, what divides M, the vector, and whether one answer is right for all.
    let cases = [
        ("(8,64):(M,1)", "{div=64}", 64, 8, true),
        ("(16,64):(M,1)", "{div=32}", 32, 4, false),
        ("(32,2):(M,1)", "{div=2}", 2, 2, false),
        ("((8,4),(2,8)):((M,2),(1,M*8))", "{div=64}", 64, 2, true),
        ("(8,(4,4)):(M,(1,M*8+4))", "{div=64}", 64, 4, true),
    ];
    for (text, facts, divisor, vector, decided) in cases {
        let storage = at_launch(&text.replace('M', &format!("M{facts}")));
        let access = Access::thread_values(storage.shape(), 16, vector).unwrap();
        let symbolic = bank_conflicts(&storage, &access, Banks::NVIDIA);
        let reports: Vec<_> = (1..40)
            .map(|times| {
                let m = divisor * times;
                let known = text.replace("M*8+4", &(m * 8 + 4).to_string()).replace("M*8", &(m * 8).to_string());
                let known: Layout = known.replace('M', &m.to_string()).parse().unwrap();
                bank_conflicts(&Storage::from(&known), &access, Banks::NVIDIA).unwrap()
            })
            .collect();
        match symbolic {
            Ok(report) => assert!(decided && reports.iter().all(|known| *known == report), "{text}"),
            Err(error) => {
                assert!(!decided && error.code() == "E0608", "{text}: {error}");
                assert!(reports.iter().any(|known| known != &reports[0]), "{text}: {error}");
            }
        }
    }
    let refused = at_launch("(8,64):(M{div=8},1)");
    let access = Access::thread_values(refused.shape(), 16, 8).unwrap();
    let error = bank_conflicts(&refused, &access, Banks::NVIDIA).unwrap_err();
    assert!(error.to_string().contains("declare `M{div=64}`"), "{error}");
}

#[test]
fn what_no_lane_takes_is_refused() {
    let tile: Layout = "(32,8):(8,1)".parse().unwrap();
    let storage = Storage::from(&tile);
    let access = |bits, vector| Access::thread_values(&tile.shape(), bits, vector);
    assert_eq!(access(16, 3).unwrap_err().code(), "E0601");
    assert_eq!(access(4, 1).unwrap_err().code(), "E0601");
    assert_eq!(access(32, 16).unwrap_err().code(), "E0601");
    assert_eq!(access(0, 1).unwrap_err().code(), "E0601");
    assert_eq!(access(i64::MAX, 2).unwrap_err().code(), "E0601");
    let wide = access(32, 8).unwrap();
    assert_eq!(bank_conflicts(&storage, &wide, Banks::NVIDIA).unwrap_err().code(), "E0607");
    assert_eq!(global_access(&storage, &wide).unwrap().efficiency(), 1.0);
    assert_eq!(Banks::new(24, 4).unwrap_err().code(), "E0607");
    assert_eq!(phase_hits(&storage, &access(32, 1).unwrap(), Banks::NVIDIA, 8).unwrap_err().code(), "E0607");
    let down: Layout = "(8,32):(1,8)".parse().unwrap();
    let split = Access::thread_values(&down.shape(), 32, 4).unwrap();
    assert_eq!(bank_conflicts(&Storage::from(&down), &split, Banks::NVIDIA).unwrap_err().code(), "E0602");
    // Matrices whose rows lie along the other mode are read by the other form of the instruction.
    for (layout, asked, meant) in [
        ("(64,64):(1,64)", "ldmatrix.x4", Some("ldmatrix.x4.trans")),
        ("(64,64):(64,1)", "stmatrix.trans", Some("stmatrix")),
        ("(64,64):(2,128)", "ldmatrix.x2", None),
    ] {
        let tile: Layout = layout.parse().unwrap();
        let of = |name: &str| {
            let access = Access::of_name(name, &tile.shape(), 16, 1).unwrap().unwrap();
            bank_conflicts(&Storage::from(&tile), &access, Banks::NVIDIA)
        };
        let refused = of(asked).unwrap_err();
        assert_eq!(refused.code(), "E0602");
        assert_eq!(refused.help().unwrap().contains(&format!("use `{}`", meant.unwrap_or("?"))), meant.is_some());
        // The advice is one of the layouts that were tried.
        assert!(meant.is_none_or(|meant| of(meant).is_ok()));
    }
    let far: Layout = "(8,2):(1,4611686018427387904)".parse().unwrap();
    let apart = Access::thread_values(&far.shape(), 8, 1).unwrap();
    assert!(bank_conflicts(&Storage::from(&far), &apart, Banks::NVIDIA).is_ok());
    let outside = Access::new("beyond", &"(32,16):(1,32)".parse().unwrap(), 32, 1).unwrap();
    assert_eq!(global_access(&storage, &outside).unwrap_err().code(), "E0605");
    assert_eq!(Access::rows(&tile.shape(), 16, 16).unwrap_err().code(), "E0606");
    assert_eq!(Access::rows(&"(2,3000000)".parse().unwrap(), 16, 1).unwrap_err().code(), "E0604");
    assert_eq!(Access::matrices(&tile.shape(), 16, 3, false).unwrap_err().code(), "E0606");
    assert_eq!(Access::matrices(&tile.shape(), 48, 1, false).unwrap_err().code(), "E0601");
}

#[test]
fn the_widest_vector_is_the_widest_that_is_accepted() {
    let mut random = Random(77);
    for _ in 0..500 {
        let bits = random.of(&[8, 16, 32]);
        let shape = (random.of(&[1, 2, 4, 8]), random.of(&[1, 2, 4, 8, 3]));
        let text = format!(
            "(4,({},{})):({},({},{}))",
            shape.0,
            shape.1,
            random.below(40),
            random.of(&[1, 1, 2]),
            random.of(&[1, 2, 4, 8, 12])
        );
        let tile: Layout = text.parse().unwrap();
        let storage = Storage::from(&tile);
        let one = Access::thread_values(&tile.shape(), bits, 1).unwrap();
        let found = widths(&storage, &one).unwrap();
        let accepted = (0..5).map(|power| 1 << power).filter(|vector| {
            let access = Access::thread_values(&tile.shape(), bits, *vector);
            access.is_ok_and(|access| access.bytes() <= 16 && global_access(&storage, &access).is_ok())
        });
        assert_eq!(Some(found.all()), accepted.max(), "{text}, {bits} bits");
    }
}
