//! The cross entropy beside its formula in f64.

use tilewright_ops::{CrossEntropy, Operator};
use tilewright_tile::Element;

use crate::oracle::{Chance, check_kernels, close, differences, numbers, run};

/// The loss of a row.
fn loss(options: &CrossEntropy, x: &[f64], target: i64) -> f64 {
    if target == options.ignored {
        return 0.0;
    }
    let cap = |x: f64| if options.softcap > 0.0 { options.softcap * (x / options.softcap).tanh() } else { x };
    let x: Vec<f64> = x.iter().map(|own| cap(*own)).collect();
    let lse = lse(&x);
    let own = usize::try_from(target).ok().and_then(|at| x.get(at)).copied().unwrap_or(f64::NEG_INFINITY);
    let alike = if options.smoothing > 0.0 { options.smoothing * x.iter().sum::<f64>() / x.len() as f64 } else { 0.0 };
    lse - (1.0 - options.smoothing) * own - alike + options.z_loss * lse * lse
}

fn lse(x: &[f64]) -> f64 {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + x.iter().map(|own| (own - most).exp()).sum::<f64>().ln()
}

/// Rows of logits, in which no two are far apart, and targets: some ignored.
fn case(options: &CrossEntropy, rows: usize, pitch: usize) -> (Vec<f64>, Vec<i64>) {
    let classes = options.vocabulary as usize;
    let reach = (rows - 1) * pitch + classes;
    let x = numbers(reach, rows as u64 + pitch as u64).iter().map(|own| own * 8.0).collect();
    let target = |row: usize| if row % 4 == 2 { options.ignored } else { (row * 7919 % classes) as i64 };
    (x, (0..rows).map(target).collect())
}

fn share(element: Element) -> f64 {
    if element == Element::F32 { 2e-5 } else { 8e-3 }
}

const NONE: CrossEntropy = CrossEntropy {
    vocabulary: 0,
    element: Element::F32,
    alignment: 1,
    ignored: -100,
    smoothing: 0.0,
    z_loss: 0.0,
    softcap: 0.0,
    with_gradient: false,
    in_place: false,
    padded: false,
    joined: false,
};

#[test]
fn losses_and_gradients_are_those_of_the_formula() {
    let bf16 = Element::Bf16;
    let mut chance = Chance::new(3);
    let drawn = (0..12).map(|_| {
        let vocabulary = 1 + chance.below(70) as i64;
        let options = CrossEntropy {
            vocabulary,
            element: chance.one(&[Element::F32, bf16, Element::F16]),
            ignored: chance.one(&[-100, 0, 1, vocabulary - 1]),
            smoothing: chance.one(&[0.0, 0.0, 0.3]),
            z_loss: chance.one(&[0.0, 0.0, 0.05]),
            softcap: chance.one(&[0.0, 0.0, 4.0]),
            ..NONE
        };
        (options, 1 + chance.below(5), vocabulary as usize + chance.below(3))
    });
    let cases = [
        (CrossEntropy { vocabulary: 1, ..NONE }, 3, 1),
        (CrossEntropy { vocabulary: 7, smoothing: 0.1, ..NONE }, 5, 11),
        (CrossEntropy { vocabulary: 1000, element: bf16, z_loss: 1e-2, ..NONE }, 4, 1000),
        (CrossEntropy { vocabulary: 4099, softcap: 6.0, ignored: 0, ..NONE }, 3, 4099),
        (CrossEntropy { vocabulary: 9001, smoothing: 0.2, z_loss: 1e-3, softcap: 9.0, element: bf16, ..NONE }, 3, 9008),
        // Longer than what threads hold.
        (CrossEntropy { vocabulary: 40_001, smoothing: 0.1, element: bf16, ..NONE }, 2, 40_001),
    ];
    for (options, rows, pitch) in cases.into_iter().chain(drawn) {
        let classes = options.vocabulary as usize;
        let (x, targets) = case(&options, rows, pitch);
        let row = |at: usize| &x[at * pitch..at * pitch + classes];
        let exact: Vec<f64> = (0..rows).map(|at| loss(&options, row(at), targets[at])).collect();
        let sizes = [("M", rows as i64), ("logits_pitch", pitch as i64)];
        let d_loss: Vec<f64> = numbers(rows, 3).iter().map(|own| own + 1.5).collect();
        let mut inputs =
            vec![("logits", x.clone()), ("targets", targets.iter().map(|own| *own as f64).collect::<Vec<f64>>())];
        let forward = run(options.forward(), &sizes, &inputs);
        close("loss", forward.of("loss"), &exact, 1e-5);

        inputs.extend([("lse", forward.of("lse").to_vec()), ("d_loss", d_loss.clone())]);
        let backward = run(options.backward(), &sizes, &inputs);
        let combined = CrossEntropy { with_gradient: true, ..options.clone() };
        let both = run(combined.forward(), &sizes, &inputs);
        close("loss beside the gradient", both.of("loss"), &exact, 1e-5);
        // Over the logits, with the same bits; between rows, what was there.
        for (name, operator, apart) in
            [("backward", options.clone(), &backward), ("with the loss", combined.clone(), &both)]
        {
            let operator = CrossEntropy { in_place: true, ..operator };
            let sequence = if operator.with_gradient { operator.forward() } else { operator.backward() };
            let found = run(sequence, &sizes, &inputs);
            let derivatives: Vec<f64> =
                (0..x.len()).map(|at| if at % pitch < classes { apart.of("d_logits")[at] } else { x[at] }).collect();
            close(name, found.of("logits"), &derivatives, 0.0);
        }
        for at in 0..rows {
            // Differences of all elements of a long row take long: those of some.
            let some: Vec<usize> = (0..classes).filter(|own| classes < 99 || own % (classes / 13) == 0).collect();
            let own = usize::try_from(targets[at]).ok().filter(|own| !some.contains(own));
            let some: Vec<usize> = some.iter().copied().chain(own).collect();
            let of = |moved: &[f64]| {
                let mut row = row(at).to_vec();
                some.iter().zip(moved).for_each(|(to, value)| row[*to] = *value);
                vec![loss(&options, &row, targets[at])]
            };
            let here: Vec<f64> = some.iter().map(|own| row(at)[*own]).collect();
            let exact = differences(of, &here, &[d_loss[at]]);
            for (name, found) in [("d_logits", &backward), ("d_logits with the loss", &both)] {
                let found: Vec<f64> = some.iter().map(|own| found.of("d_logits")[at * pitch + own]).collect();
                close(name, &found, &exact, share(options.element));
            }
        }
    }
}

#[test]
fn a_row_that_is_ignored_has_no_derivative_whatever_is_in_it() {
    let some = CrossEntropy { vocabulary: 5, smoothing: 0.2, softcap: 3.0, z_loss: 0.1, ..NONE };
    let long = CrossEntropy { vocabulary: 4096, element: Element::Bf16, ..NONE };
    for options in [some, long.clone(), CrossEntropy { joined: true, alignment: 8, ..long }] {
        let classes = options.vocabulary as usize;
        let mut x = numbers(3 * classes, 4);
        x[0] = f64::NAN;
        x[2 * classes] = f64::INFINITY;
        let inputs = [
            ("logits", x),
            ("targets", vec![-100.0, 1.0, -100.0]),
            ("lse", vec![f64::NAN, 5.0, f64::NAN]),
            ("d_loss", vec![1.0; 3]),
        ];
        let sizes = [("M", 3), ("logits_pitch", classes as i64), ("elements", 3 * classes as i64)];
        let in_one = CrossEntropy { with_gradient: true, joined: false, ..options.clone() };
        for sequence in [options.backward(), in_one.forward()] {
            let found = run(sequence, &sizes, &inputs);
            let derivatives = found.of("d_logits");
            close("ignored", &derivatives[..classes], &vec![0.0; classes], 0.0);
            close("ignored", &derivatives[2 * classes..], &vec![0.0; classes], 0.0);
            assert!(derivatives[classes..2 * classes].iter().all(|own| own.is_finite() && *own != 0.0));
        }
    }
}

#[test]
fn what_lies_behind_a_row_does_not_count_and_becomes_zero() {
    let drawn = [
        CrossEntropy { vocabulary: 13, smoothing: 0.2, ..NONE },
        CrossEntropy { vocabulary: 4099, element: Element::Bf16, smoothing: 0.1, softcap: 3.0, ..NONE },
        CrossEntropy { vocabulary: 40_001, element: Element::Bf16, z_loss: 1e-2, ..NONE },
    ];
    for options in drawn {
        let vector = if options.element == Element::F32 { 4 } else { 8 };
        let padded = CrossEntropy { padded: true, alignment: vector, ..options.clone() };
        let (rows, classes) = (2, options.vocabulary as usize);
        let pitch = classes.next_multiple_of(vector as usize);
        let x: Vec<f64> = numbers(rows * pitch, 6).iter().map(|own| own * 8.0).collect();
        let garbage = |at: usize| if at.is_multiple_of(2) { f64::NAN } else { f64::INFINITY };
        let dirty: Vec<f64> = (0..x.len()).map(|at| if at % pitch < classes { x[at] } else { garbage(at) }).collect();
        let clean: Vec<f64> = x[..(rows - 1) * pitch + classes].to_vec();
        let sizes = [("M", rows as i64), ("logits_pitch", pitch as i64)];
        let given = [("targets", vec![3.0, classes as f64 - 1.0]), ("d_loss", vec![1.0, 2.0])];
        let with = |logits: &[f64], lse: &[f64]| {
            let more = [("logits", logits.to_vec()), ("lse", lse.to_vec())];
            given.iter().cloned().chain(more).collect::<Vec<(&str, Vec<f64>)>>()
        };
        let wanted = run(options.forward(), &sizes, &with(&clean, &[0.0; 2]));
        let found = run(padded.forward(), &sizes, &with(&dirty, &[0.0; 2]));
        close("loss", found.of("loss"), wanted.of("loss"), 0.0);
        let lse = wanted.of("lse").to_vec();
        let wanted = run(options.backward(), &sizes, &with(&clean, &lse));
        let combined = CrossEntropy { with_gradient: true, ..padded.clone() };
        for found in
            [run(padded.backward(), &sizes, &with(&dirty, &lse)), run(combined.forward(), &sizes, &with(&dirty, &lse))]
        {
            let of = |at: usize| if at % pitch < classes { wanted.of("d_logits")[at] } else { 0.0 };
            let exact: Vec<f64> = (0..x.len()).map(of).collect();
            close("d_logits", found.of("d_logits"), &exact, 8e-3);
        }
    }
}

#[test]
fn rows_that_are_joined_have_the_same_derivatives() {
    let drawn = [
        CrossEntropy { vocabulary: 4097, element: Element::Bf16, ..NONE },
        CrossEntropy { vocabulary: 5003, smoothing: 0.2, z_loss: 1e-2, ignored: 4999, ..NONE },
        CrossEntropy { vocabulary: 4098, element: Element::F16, softcap: 3.0, ..NONE },
    ];
    for options in drawn {
        let (rows, classes) = (8, options.vocabulary as usize);
        let (x, mut targets) = case(&options, rows, classes);
        // The first and the last class of rows beside each other, and targets that are no class.
        targets[..5].copy_from_slice(&[classes as i64 - 1, 0, -1, classes as i64, options.ignored]);
        let given = [
            ("logits", x.clone()),
            ("targets", targets.iter().map(|own| *own as f64).collect::<Vec<f64>>()),
            ("lse", x.chunks(classes).map(lse).collect()),
            ("d_loss", (0..rows).map(|row| row as f64 - 2.5).collect()),
        ];
        let sizes = [("M", rows as i64), ("logits_pitch", classes as i64), ("elements", (rows * classes) as i64)];
        let wanted = run(options.backward(), &sizes, &given);
        let joined = CrossEntropy { joined: true, ..options.clone() };
        close("d_logits", run(joined.backward(), &sizes, &given).of("d_logits"), wanted.of("d_logits"), 0.0);
        let in_place = CrossEntropy { in_place: true, ..joined };
        close("logits", run(in_place.backward(), &sizes, &given).of("logits"), wanted.of("d_logits"), 0.0);
    }
}

#[test]
fn infinities_and_targets_that_are_no_class_are_shown_in_the_loss() {
    let (low, nan) = (f64::NEG_INFINITY, f64::NAN);
    for softcap in [0.0, 5.0] {
        let options = CrossEntropy { vocabulary: 3, softcap, ..NONE };
        let sizes = [("M", 5), ("logits_pitch", 3)];
        let x = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, low, 0.0, 0.0, nan, 0.0, 0.0, nan, 0.0, 0.0];
        let inputs = [("logits", x), ("targets", vec![3.0, -1.0, 1.0, 1.0, -100.0])];
        let found = run(options.forward(), &sizes, &inputs);
        let known = if softcap == 0.0 { 2_f64.ln() } else { (2.0 + (-5_f64).exp()).ln() };
        close("loss", found.of("loss"), &[f64::INFINITY, f64::INFINITY, known, nan, 0.0], 1e-5);
    }
}

#[test]
fn a_row_has_the_same_bits_alone_and_among_others() {
    let options = CrossEntropy { vocabulary: 5000, element: Element::Bf16, ..NONE };
    let (x, targets) = case(&options, 5, 5000);
    let of = |rows: std::ops::Range<usize>| {
        let sizes = [("M", rows.len() as i64), ("logits_pitch", 5000)];
        let targets: Vec<f64> = targets[rows.clone()].iter().map(|own| *own as f64).collect();
        let inputs = [("logits", x[rows.start * 5000..rows.end * 5000].to_vec()), ("targets", targets)];
        run(options.forward(), &sizes, &inputs).of("loss").to_vec()
    };
    assert_eq!(of(0..5)[3], of(3..4)[0]);
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    for (options, text) in [
        (NONE, "`vocabulary` is 0, and there are from 1"),
        (CrossEntropy { vocabulary: 8, smoothing: 1.0, ..NONE }, "`smoothing` is 1, and it is from 0"),
        (CrossEntropy { vocabulary: 8, softcap: -1.0, ..NONE }, "`softcap` is -1, and it is a number from 0"),
        (CrossEntropy { vocabulary: 8, element: Element::I32, ..NONE }, "`element` is i32"),
        (CrossEntropy { vocabulary: 8, alignment: 12, ..NONE }, "`alignment` is 12"),
        (
            CrossEntropy { vocabulary: 4095, joined: true, ..NONE },
            "`joined` is true, and rows that are joined have 4096",
        ),
        (
            CrossEntropy { vocabulary: 8, padded: true, alignment: 2, ..NONE },
            "`padded` is true, and the alignment is 2",
        ),
        (CrossEntropy { vocabulary: 8, ignored: 1 << 40, ..NONE }, "`ignored` is 1099511627776"),
    ] {
        let error = options.forward().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let options = CrossEntropy { vocabulary: 8, with_gradient: true, ..NONE };
    assert!(options.backward().unwrap_err().to_string().contains("has no derivatives"));
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let bf16 = Element::Bf16;
    for options in [
        CrossEntropy { vocabulary: 1000, alignment: 8, element: bf16, smoothing: 0.1, ..NONE },
        CrossEntropy { vocabulary: 9000, alignment: 8, element: bf16, softcap: 6.0, z_loss: 1e-2, ..NONE },
        CrossEntropy { vocabulary: 4099, ..NONE },
        CrossEntropy { vocabulary: 4099, alignment: 8, element: bf16, padded: true, ..NONE },
    ] {
        let sizes = [("M", 2), ("logits_pitch", (options.vocabulary + 7) / 8 * 8)];
        check_kernels(options.forward(), &sizes);
        check_kernels(options.backward(), &sizes);
        check_kernels(CrossEntropy { in_place: true, ..options.clone() }.backward(), &sizes);
        check_kernels(CrossEntropy { with_gradient: true, in_place: true, ..options }.forward(), &sizes);
    }
    let combined = CrossEntropy { with_gradient: true, in_place: true, ..NONE };
    let options = CrossEntropy { vocabulary: 40_000, alignment: 8, element: bf16, ..combined };
    check_kernels(options.forward(), &[("M", 1), ("logits_pitch", 40_000)]);
}
