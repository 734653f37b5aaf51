//! Expressions are what they stand for: arithmetic, division, text and answers, compared with
//! numbers at every tried value.
//!
//! Random expressions are built twice, as expressions and as functions of the parameters on plain
//! numbers, and compared at admissible values.

use crate::random::Random;
use tilewright_layout::symbolic::{Declarations, Expr, Facts, Parameter, Symbolic, Values};
use tilewright_layout::{Extent, Stride, Truth};

/// The parameters, and the values that are tried of each.
fn parameters() -> Vec<(Parameter, Vec<i64>)> {
    let facts = |text: &str| text.parse::<Facts>().unwrap();
    [
        ("M", facts("div=128"), vec![128, 256, 384, 1280, 128_000]),
        ("K", facts(""), vec![1, 2, 3, 7, 8, 63, 64, 65, 1000]),
        ("N", facts("div=64,min=128"), vec![128, 192, 256, 640]),
        ("T", facts("max=16"), vec![1, 2, 3, 4, 5, 8, 15, 16]),
        ("S", facts("int"), vec![-1000, -64, -5, -1, 0, 1, 2, 8, 64, 999]),
        ("I", facts("min=0"), vec![0, 1, 5, 127, 128, 5000]),
    ]
    .map(|(name, facts, values)| (Parameter::named(name, facts).unwrap(), values))
    .into()
}

/// All tried values, cut to a sample.
fn samples(random: &mut Random, parameters: &[(Parameter, Vec<i64>)], count: usize) -> Vec<Vec<i64>> {
    (0..count)
        .map(|_| parameters.iter().map(|(_, values)| values[random.below(values.len() as i64) as usize]).collect())
        .collect()
}

fn values(parameters: &[(Parameter, Vec<i64>)], sample: &[i64]) -> Values {
    let mut values = Values::new();
    for ((parameter, _), value) in parameters.iter().zip(sample) {
        values.set(parameter, *value);
    }
    values
}

/// An expression and its value at each sample.
#[derive(Clone)]
struct Case {
    expr: Expr,
    values: Vec<i128>,
}

fn case(random: &mut Random, parameters: &[(Parameter, Vec<i64>)], samples: &[Vec<i64>], depth: u32) -> Option<Case> {
    let constant = |value: i64| Case { expr: Expr::from(value), values: vec![i128::from(value); samples.len()] };
    if depth == 0 || random.below(8) == 0 {
        if random.below(3) == 0 {
            return Some(constant([0, 1, 2, 3, 7, 8, 64, 128, -1, -5][random.below(10) as usize]));
        }
        let place = random.below(parameters.len() as i64) as usize;
        return Some(Case {
            expr: Expr::from(parameters[place].0.clone()),
            values: samples.iter().map(|sample| i128::from(sample[place])).collect(),
        });
    }
    let a = case(random, parameters, samples, depth - 1)?;
    let b = case(random, parameters, samples, depth - 1)?;
    if a.values.iter().chain(&b.values).any(|value| value.abs() > 1 << 60) {
        return None;
    }
    let zip = |f: fn(i128, i128) -> i128| a.values.iter().zip(&b.values).map(|(a, b)| f(*a, *b)).collect();
    let positive = Expr::zero().less(&b.expr).proved();
    Some(match random.below(9) {
        0 | 1 => Case { expr: a.expr.plus(&b.expr)?, values: zip(|a, b| a + b) },
        2 => Case { expr: a.expr.minus(&b.expr)?, values: zip(|a, b| a - b) },
        3 | 4 => Case { expr: a.expr.times(&b.expr)?, values: zip(|a, b| a * b) },
        5 if positive => Case { expr: a.expr.divide(&b.expr)?.0, values: zip(|a, b| a / b) },
        6 if positive => Case { expr: a.expr.divide(&b.expr)?.1, values: zip(|a, b| a % b) },
        7 if positive => Case { expr: a.expr.floor_div(&b.expr)?, values: zip(i128::div_euclid) },
        5..=7 => a,
        _ => Case { expr: a.expr.minimum(&b.expr)?, values: zip(i128::min) },
    })
}

#[test]
fn expressions_have_the_values_of_what_they_are_made_of() {
    let parameters = parameters();
    let mut random = Random(1);
    let mut names = Declarations::new();
    for (parameter, _) in &parameters {
        names.declare(parameter.name().unwrap(), parameter.facts()).unwrap();
    }
    let (mut checked, mut proved, mut refuted, mut open) = (0, 0, 0, 0);
    for _ in 0..6_000 {
        let samples = samples(&mut random, &parameters, 24);
        let (Some(a), Some(b)) =
            (case(&mut random, &parameters, &samples, 3), case(&mut random, &parameters, &samples, 3))
        else {
            continue;
        };
        // What is printed reads back, with the declarations and with its own facts.
        let text = a.expr.to_string();
        assert_eq!(names.expr(&text).as_ref(), Ok(&a.expr), "{text}");
        assert!(!text.starts_with('('), "{text}");
        let alone = a.expr.with_facts();
        assert_eq!(alone.parse().as_ref(), Ok(&a.expr), "{alone}");
        for (place, sample) in samples.iter().enumerate() {
            let given = values(&parameters, sample);
            let expected = a.values[place];
            // Where a part is beyond 64 bits the value may be refused, but never wrong.
            if let Ok(value) = a.expr.numbers(&given) {
                assert_eq!(i128::from(value), expected, "{text} at {sample:?}");
                checked += 1;
            }
            let (least, greatest) = a.expr.range();
            assert!(least.is_none_or(|least| i128::from(least) <= expected), "{text} at {sample:?}");
            assert!(greatest.is_none_or(|greatest| i128::from(greatest) >= expected), "{text} at {sample:?}");
        }
        // Answers hold at every sample.
        let mut agree = |truth: Truth, holds: &dyn Fn(i128, i128) -> bool, question: &str| {
            let all = a.values.iter().zip(&b.values);
            match truth {
                Truth::Proved => proved += 1,
                Truth::Refuted => refuted += 1,
                Truth::Open => open += 1,
            }
            for (a_value, b_value) in all {
                match truth {
                    Truth::Proved => assert!(holds(*a_value, *b_value), "{text} {question} {}", b.expr),
                    Truth::Refuted => assert!(!holds(*a_value, *b_value), "{text} {question} {}", b.expr),
                    Truth::Open => {}
                }
            }
        };
        agree(a.expr.less(&b.expr), &|a, b| a < b, "<");
        agree(a.expr.same(&b.expr), &|a, b| a == b, "=");
        agree(a.expr.is_zero(), &|a, _| a == 0, "= 0, beside");
        agree(a.expr.divides(&b.expr), &|a, b| if a == 0 { b == 0 } else { b % a == 0 }, "divides");
    }
    println!("{checked} values; answers: {proved} proved, {refuted} refuted, {open} open");
    assert!(checked > 50_000 && proved > 1_000 && refuted > 2_000);
}
