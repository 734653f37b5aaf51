//! Statistics along any modes, on the interpreter, beside plain loops.

use tilewright_kernel::Element;
use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;
use tilewright_planners::{
    EntryOptions, Indices, Planned, ReduceOptions, RowMatrix, Statistic, indices_of_greatest, layer_norm, named,
    reduce, rms_norm, softmax,
};

use crate::h200;

const STATISTICS: [Statistic; 5] =
    [Statistic::Sum, Statistic::Mean, Statistic::Norm, Statistic::Maximum, Statistic::ArgMaximum];

fn planned(statistic: Statistic, layout: &str, element: Element, modes: &[usize]) -> Planned {
    let layout: Layout = layout.parse().unwrap();
    reduce(&h200(), statistic, (&layout, element), modes, ReduceOptions::default())
        .unwrap_or_else(|error| panic!("{layout} {modes:?}: {error}"))
}

/// Runs all launches on given bytes and returns the bytes of the result.
fn run(planned: &Planned, x: &[u8]) -> Vec<u8> {
    let mut left: Vec<Vec<u8>> = vec![x.to_vec()];
    for kernel in planned.launches() {
        let mut interpreter = Interpreter::new(kernel.program(), planned.sizes()).unwrap();
        for (index, bytes) in left.iter().enumerate() {
            interpreter.bytes(index, bytes).unwrap();
        }
        let run = interpreter.check().unwrap_or_else(|found| panic!("{planned}: {found}")).run;
        left = (left.len()..kernel.program().tensors().count()).map(|at| run.bytes(at).unwrap().to_vec()).collect();
    }
    left.pop().unwrap_or_default()
}

#[test]
fn statistics_along_any_modes_are_right() {
    let cases: [(&str, &[usize]); 17] = [
        ("(5,6,7):(42,7,1)", &[1]),
        ("(5,6,7):(42,7,1)", &[0, 2]),
        ("(5,6,7):(42,7,1)", &[2, 1]),
        ("(5,6,8):(48,8,1)", &[0, 1]),
        ("(5,6,8):(48,8,1)", &[0, 1, 2]),
        // Places that do not grow along the elements.
        ("(16,24):(24,1)", &[0, 1]),
        ("((2,4),(3,8)):((1,6),(2,24))", &[1]),
        ("((2,4),(3,8)):((1,6),(2,24))", &[0]),
        // Gaps, elements that repeat, and nothing that is contiguous.
        ("(9,16):(40,1)", &[1]),
        ("(9,16,2):(0,3,100)", &[1]),
        ("(9,16,2):(0,3,100)", &[0, 2]),
        ("(700,3):(3,1)", &[0]),
        ("(3,2000):(2000,1)", &[]),
        ("1:0", &[0]),
        ("(4096,8):(8,1)", &[0]),
        // Blocks of narrow strips, the last one with fewer results.
        ("(301,136):(136,1)", &[0]),
        ("20011:1", &[0]),
    ];
    for (number, (layout, modes)) in cases.into_iter().enumerate() {
        for (turn, statistic) in STATISTICS.into_iter().enumerate() {
            let element = [Element::F32, Element::Bf16, Element::F16][(number + turn) % 3];
            let planned = planned(statistic, layout, element, modes);
            let report = planned.check().unwrap_or_else(|error| panic!("{planned}{error}"));
            let size: i64 = layout.parse::<Layout>().unwrap().size();
            assert!(report.compared as i64 <= size);
        }
    }
}

#[test]
fn all_elements_of_every_type_and_length_are_reduced() {
    for (at, count) in [1_i64, 2, 7, 511, 4096, 8200, 33_000, 100_003, 300_000].into_iter().enumerate() {
        for (turn, statistic) in STATISTICS.into_iter().enumerate() {
            let element = [Element::F32, Element::Bf16, Element::F16][(at + turn) % 3];
            let planned = planned(statistic, &format!("{count}:1"), element, &[0]);
            planned.check().unwrap_or_else(|error| panic!("{planned}{error}"));
        }
    }
}

#[test]
fn the_first_of_equal_elements_counts_and_nan_is_the_greatest() {
    // A number that repeats is the greatest of a row, NaN of another, which has it twice, and of a
    // third, which has nothing else. Others are minus infinity, in one row all.
    let bytes = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let places = |bytes: &[u8]| -> Vec<i32> {
        bytes.chunks_exact(4).map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    for (m, n) in [(3, 9), (3, 3000), (3, 40_000), (5, 1024)] {
        let mut x = vec![f32::NEG_INFINITY; m * n];
        let repeated = [None, Some(f32::NAN), Some(-2.0), Some(f32::NAN), Some(-2.0)];
        for (row, repeated) in (0..m).zip(repeated) {
            for column in [n / 3, n / 2, n - 1] {
                x[row * n + column] = repeated.unwrap_or(f32::NEG_INFINITY);
            }
            if row == 3 {
                x[row * n..][..n].fill(f32::NAN);
            }
            if row == 1 {
                x[row * n + n / 4] = f32::INFINITY;
            }
        }
        let rows = planned(Statistic::ArgMaximum, &format!("({m},{n}):({n},1)"), Element::F32, &[1]);
        let mut wanted = vec![n as i32 / 3; m];
        wanted[0] = 0;
        if m > 3 {
            wanted[3] = 0;
        }
        assert_eq!(places(&run(&rows, &bytes(&x))), wanted, "{rows}");
        // The same, each row a column.
        let turned: Vec<f32> = (0..m * n).map(|at| x[at % m * n + at / m]).collect();
        let columns = planned(Statistic::ArgMaximum, &format!("({n},{m}):({m},1)"), Element::F32, &[0]);
        assert_eq!(places(&run(&columns, &bytes(&turned))), wanted, "{columns}");
        let greatest = planned(Statistic::Maximum, &format!("({m},{n}):({n},1)"), Element::F32, &[1]);
        let found: Vec<f32> =
            places(&run(&greatest, &bytes(&x))).into_iter().map(|bits| f32::from_bits(bits as u32)).collect();
        let greatest = repeated.map(|repeated| repeated.unwrap_or(f32::NEG_INFINITY));
        for (found, wanted) in found.into_iter().zip(greatest) {
            assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{found} for {wanted}");
        }
    }
    // Two rows, places counted down the columns: the first of two equal numbers is in the second
    // row.
    let matrix = planned(Statistic::ArgMaximum, "(2,8):(8,1)", Element::F32, &[0, 1]);
    let mut x = [0.0_f32; 16];
    (x[3], x[8]) = (7.0, 7.0);
    assert_eq!(places(&run(&matrix, &bytes(&x))), [1]);
}

/// Numbers of 16 bits and their places are compared as one whole number: it has the order of the
/// numbers, where both zeros are equal and NaN is greater than all others.
#[test]
fn numbers_of_16_bits_are_found_among_all_others() {
    let value = |element: Element, bits: u16| match element {
        Element::Bf16 => f32::from_bits(u32::from(bits) << 16),
        _ => {
            let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
            let magnitude = match (exponent, mantissa) {
                (31, 0.0) => f32::INFINITY,
                (31, _) => f32::NAN,
                (0, _) => mantissa * 2.0_f32.powi(-24),
                _ => (1024.0 + mantissa) * 2.0_f32.powi(exponent - 25),
            };
            if bits >> 15 == 1 { -magnitude } else { magnitude }
        }
    };
    let check = |(m, n): (usize, usize), along: usize, element: Element, x: &[u16]| {
        let planned = planned(Statistic::ArgMaximum, &format!("({m},{n}):({n},1)"), element, &[along]);
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = run(&planned, &bytes);
        let (count, results) = if along == 0 { (m, n) } else { (n, m) };
        for (result, found) in (0..results).zip(found.chunks_exact(4)) {
            let of =
                |place: usize| value(element, if along == 0 { x[place * n + result] } else { x[result * n + place] });
            let better = |best: usize, place: usize| {
                if of(place) > of(best) || of(place).is_nan() && !of(best).is_nan() { place } else { best }
            };
            let wanted = (1..count).fold(0, better);
            assert_eq!(found, (wanted as i32).to_le_bytes(), "{planned}result {result}");
        }
    };
    let ends = [0x0000, 0x8000, 0x7fff, 0xffff, 0x7f80, 0xff80, 0x7c00, 0xfc00, 0x0001, 0x8001, 0x3f80, 0xbf80];
    for element in [Element::Bf16, Element::F16] {
        // Every number beside another one, in either order.
        let pairs: Vec<u16> = (0..1_u32 << 17)
            .map(|at| if at >> 16 == 0 { at as u16 } else { (at.wrapping_mul(40_503) >> 3) as u16 })
            .collect();
        check((2, 1 << 16), 0, element, &pairs);
        // The ends of the type, each column with some of them alone; shares, and chunks past the
        // last.
        for (m, n, along) in [(700, 64, 0), (5000, 8, 0), (3, 20_000, 1), (1, 300_000, 1), (5, 4096, 1), (9, 1000, 1)] {
            let some = |at: usize| {
                let (row, column) = (at / n, at % n);
                let result = if along == 0 { column } else { row };
                ends[(row * 7 + column * 5 + at / 3) % (1 + result % ends.len())]
            };
            check((m, n), along, element, &(0..m * n).map(some).collect::<Vec<_>>());
        }
    }
}

#[test]
fn integers_and_f64_are_reduced_exactly() {
    // Differences below the precision of f32, and sums that wrap.
    let number = |at: usize| (1_i64 << 40) + (at as i64 * 7919) % 1009 - 504;
    for (layout, modes, count, results) in [
        ("(6,40):(40,1)", 1, 40, 6),
        ("(6,40):(40,1)", 0, 6, 40),
        ("(3,9001):(9001,1)", 1, 9001, 3),
        ("(3000,4):(4,1)", 0, 3000, 4),
        // Several shares, which a second launch reads as vectors.
        ("(2,16384):(16384,1)", 1, 16384, 2),
    ] {
        let (rows, columns) = if modes == 1 { (results, count) } else { (count, results) };
        let of = |result: usize, at: usize| if modes == 1 { result * columns + at } else { at * columns + result };
        let words = |bytes: Vec<u8>, width: usize| -> Vec<i64> {
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
            let sign = |word: u64| if width == 4 { i64::from(word as u32 as i32) } else { word as i64 };
            bytes.chunks_exact(width).map(|bytes| sign(word(bytes))).collect()
        };
        let numbers: Vec<i64> = (0..rows * columns).map(number).collect();
        let all = |result: usize| (0..count).map(|at| numbers[of(result, at)]).collect::<Vec<i64>>();
        for element in [Element::I64, Element::U64, Element::F64, Element::I32, Element::U32] {
            let width = element.bytes() as usize;
            // Of 32 bits without the highest bits; signed ones below 0.
            let value = |number: i64| match element {
                Element::I32 => number - (1 << 40) - 600,
                Element::U32 => number - (1 << 40) + 0xffff_0000,
                // Sums that f64 has, and f32 has not.
                Element::F64 => number - (1 << 40) + (1 << 32),
                _ => number,
            };
            let bytes = numbers.iter().flat_map(|number| match element {
                Element::F64 => (value(*number) as f64).to_le_bytes().to_vec(),
                _ => value(*number).to_le_bytes()[..width].to_vec(),
            });
            let bytes: Vec<u8> = bytes.collect();
            for statistic in [Statistic::Sum, Statistic::Maximum, Statistic::ArgMaximum] {
                let planned = planned(statistic, layout, element, &[modes]);
                let left = run(&planned, &bytes);
                let found = match (statistic, element) {
                    (Statistic::ArgMaximum, _) => words(left, 4),
                    (_, Element::F64) => {
                        words(left, 8).into_iter().map(|bits| f64::from_bits(bits as u64) as i64).collect()
                    }
                    (_, Element::U32) => words(left, 4).into_iter().map(|word| i64::from(word as u32)).collect(),
                    _ => words(left, width),
                };
                let wanted: Vec<i64> = (0..results)
                    .map(|result| {
                        let all: Vec<i64> = all(result).into_iter().map(value).collect();
                        let greatest = *all.iter().max().unwrap();
                        match statistic {
                            Statistic::Sum if element == Element::U32 => all.iter().sum::<i64>() & 0xffff_ffff,
                            Statistic::Sum => all.iter().sum(),
                            Statistic::Maximum => greatest,
                            _ => all.iter().position(|value| *value == greatest).unwrap() as i64,
                        }
                    })
                    .collect();
                assert_eq!(found, wanted, "{element}: {planned}");
            }
        }
    }
}

#[test]
fn indices_are_those_of_the_devices_that_have_the_greatest_element() {
    let indices = Indices { first: 1 << 33, digits: vec![(3, 1), (5, 1 << 20), (7, 1 << 36)] };
    let planned = indices_of_greatest(Element::Bf16, 1000, &indices).unwrap();
    planned.check().unwrap_or_else(|error| panic!("{planned}{error}"));
    let mut interpreter = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap();
    let bytes = |numbers: &dyn Fn(usize) -> f32| -> Vec<u8> {
        (0..1000).flat_map(|at| half::bf16::from_f32(numbers(at)).to_le_bytes()).collect()
    };
    // Has it, has it not, has NaN, and another device alone has NaN.
    interpreter.bytes(0, &bytes(&|at| [2.0, 1.0, f32::NAN, 3.0][at % 4])).unwrap();
    interpreter.bytes(1, &bytes(&|at| [2.0, 2.0, f32::NAN, f32::NAN][at % 4])).unwrap();
    let places: Vec<u8> = (0..1000_i32).flat_map(|at| (at % 105).to_le_bytes()).collect();
    interpreter.bytes(2, &places).unwrap();
    let run = interpreter.check().unwrap_or_else(|found| panic!("{found}")).run;
    for (at, bytes) in run.bytes(3).unwrap().chunks_exact(8).enumerate() {
        let place = at as i64 % 105;
        let index = (1 << 33) + place % 3 + ((place / 3 % 5) << 20) + ((place / 15) << 36);
        let wanted = if at % 2 == 0 { index } else { i64::MAX };
        assert_eq!(i64::from_le_bytes(bytes.try_into().unwrap()), wanted, "{at}");
    }
}

/// Whether no launch asks for more than tensors that begin at multiples of this many elements; what
/// the first leaves for the second is memory of its own.
fn asks_for(planned: &Planned, elements: u32) -> bool {
    let tensors = planned.launches().flat_map(|kernel| kernel.program().tensors());
    let mut given = tensors.filter(|tensor| !matches!(tensor.name.as_str(), "parts" | "places"));
    given.all(|tensor| tensor.alignment <= elements * tensor.element.bytes())
}

#[test]
fn tensors_that_begin_anywhere_are_reduced() {
    let cases: [(&str, &[usize]); 6] = [
        ("(40,24):(24,1)", &[1]),
        ("(40,24):(24,1)", &[0]),
        ("(3,9000):(9000,1)", &[1]),
        ("(2048,8):(8,1)", &[1]),
        ("(6,16,8):(128,8,1)", &[0, 1]),
        ("65536:1", &[0]),
    ];
    for (number, (layout, modes)) in cases.into_iter().enumerate() {
        for (turn, statistic) in STATISTICS.into_iter().enumerate() {
            let element = [Element::F32, Element::Bf16, Element::F16][(number + turn) % 3];
            let alignment = 1 << ((number + turn) % 2);
            let tensor = &layout.parse::<Layout>().unwrap();
            let planned = reduce(&h200(), statistic, (tensor, element), modes, ReduceOptions { alignment }).unwrap();
            assert!(asks_for(&planned, alignment as u32), "{planned}");
            planned.check().unwrap_or_else(|error| panic!("{planned}{error}"));
        }
    }
}

/// Parts of wider tensors: vectors begin at each row, so they are as wide as the pitch allows.
#[test]
fn tensors_with_a_pitch_are_reduced() {
    let cases: [(&str, &[usize]); 6] = [
        ("(5,24):(29,1)", &[1]),
        ("(5,24):(30,1)", &[0]),
        ("(3,9000):(9001,1)", &[1]),
        ("(2048,8):(12,1)", &[0, 1]),
        ("(8,16,6):(1,10,163)", &[0, 1]),
        ("(8,4,6):(1,0,10)", &[1]),
    ];
    for (number, (layout, modes)) in cases.into_iter().enumerate() {
        for (turn, statistic) in STATISTICS.into_iter().enumerate() {
            let element = [Element::F32, Element::Bf16][(number + turn) % 2];
            let planned = planned(statistic, layout, element, modes);
            planned.check().unwrap_or_else(|error| panic!("{planned}{error}"));
        }
    }
}

#[test]
fn rows_of_tensors_that_begin_anywhere_are_normalised() {
    for (columns, element) in [(24, Element::F32), (1000, Element::Bf16), (8192, Element::F16), (70_000, Element::F32)]
    {
        for alignment in [1, 2] {
            let matrix = RowMatrix::new(columns, element).aligned(alignment);
            let plans = [
                softmax(&h200(), matrix).unwrap(),
                rms_norm(&h200(), matrix, 1e-5).unwrap(),
                layer_norm(&h200(), matrix, 1e-5).unwrap(),
            ];
            assert!(plans.iter().all(|planned| asks_for(planned, alignment as u32)), "{columns} {alignment}");
        }
    }
    assert!(!asks_for(&softmax(&h200(), (24, Element::F32)).unwrap(), 2));
    let numbers = |columns: i64| (0..2 * columns).map(|at| if at % 2 == 0 { 0.0 } else { 1.0_f32 });
    for columns in [24, 1000, 9001] {
        let planned = softmax(&h200(), RowMatrix::new(columns, Element::F32).aligned(1)).unwrap();
        let mut interpreter = Interpreter::new(planned.kernel().program(), &[("M", 2)]).unwrap();
        let bytes: Vec<u8> = numbers(columns).flat_map(f32::to_le_bytes).collect();
        interpreter.bytes(0, &bytes).unwrap();
        let run = interpreter.check().unwrap_or_else(|found| panic!("{planned}: {found}")).run;
        let rows: Vec<f64> = numbers(columns).map(|x| f64::from(x).exp()).collect();
        let left = run.bytes(1).unwrap().chunks_exact(4);
        for (at, bytes) in left.enumerate() {
            let row = at as i64 / columns * columns;
            let sum: f64 = rows[row as usize..(row + columns) as usize].iter().sum();
            let found = f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            assert!((found * sum / rows[at] - 1.0).abs() < 1e-5, "{planned}: {at}");
        }
    }
}

#[test]
fn softmax_of_extreme_numbers_follows_its_law() {
    // A warp; few warps, whose numbers each thread takes; ten, behind which places have nothing;
    // sixteen; a row of which half is in shared memory.
    for columns in [200_usize, 1024, 5000, 4096, 16_384] {
        let planned = softmax(&h200(), (columns as i64, Element::F32)).unwrap();
        let number = |at: usize| {
            let (row, column) = (at / columns, at % columns);
            match row {
                0 => f32::NEG_INFINITY,
                1 if column == columns / 3 => -1e38,
                1 => f32::NEG_INFINITY,
                2 if column == columns / 3 => 3e38,
                2 => -3e38,
                3 if column == columns / 3 => f32::NAN,
                3 => 1.0,
                _ => 3e38,
            }
        };
        let bytes: Vec<u8> = (0..5 * columns).map(number).flat_map(f32::to_le_bytes).collect();
        let mut interpreter = Interpreter::new(planned.kernel().program(), &[("M", 5)]).unwrap();
        interpreter.bytes(0, &bytes).unwrap();
        let run = interpreter.check().unwrap_or_else(|found| panic!("{planned}: {found}")).run;
        let words = run.bytes(1).unwrap().chunks_exact(4);
        for (at, word) in words.map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).enumerate() {
            let (row, column) = (at / columns, at % columns);
            let right = match row {
                0 | 3 => word.is_nan(),
                1 | 2 => word == if column == columns / 3 { 1.0 } else { 0.0 },
                _ => (word * columns as f32 - 1.0).abs() < 1e-5,
            };
            assert!(right, "{planned}: {word} in row {row}, column {column}");
        }
    }
}

#[test]
fn what_cannot_be_reduced_is_refused() {
    let refused = |layout: &str, element: Element, modes: &[usize]| {
        let layout: Layout = layout.parse().unwrap();
        reduce(&h200(), Statistic::Sum, (&layout, element), modes, ReduceOptions::default()).unwrap_err().code()
    };
    assert_eq!(refused("(4,6)", Element::F32, &[2]), "E0936");
    assert_eq!(refused("(4,6)", Element::F32, &[1, 1]), "E0936");
    assert_eq!(refused("(4,6):(-1,4)", Element::F32, &[0]), "E0933");
    assert_eq!(refused("(65536,65536,8):(2,131072,8589934592)", Element::F32, &[0, 1, 2]), "E0935");
    assert!(
        named("sum_modes")
            .unwrap()
            .plan(&h200(), EntryOptions { sizes: &[("MODES", 5)], ..EntryOptions::default() })
            .is_err()
    );
}

/// A second launch that holds numbers beside their places states once how many of its blocks should
/// be resident, though numbers alone would leave room for others than places do.
#[test]
fn a_second_launch_states_once_how_many_blocks_are_resident() {
    let tensor: Layout = "(100,300,64):(19200,64,1)".parse().unwrap();
    for (name, element) in [("H200", Element::F32), ("H200", Element::Bf16), ("A100", Element::F32)] {
        let machine = Machine::named(name).unwrap();
        let own = &machine.multiprocessor;
        let planned = reduce(&machine, Statistic::ArgMaximum, (&tensor, element), &[0, 1], ReduceOptions::default())
            .unwrap_or_else(|error| panic!("{element} on {name}: {error}"));
        assert_eq!(planned.launches().count(), 2);
        for program in planned.launches().map(|kernel| kernel.program()) {
            let stated = program.resident;
            assert!(stated <= own.blocks && stated * program.threads <= own.threads, "{name}: {stated}");
        }
    }
}
