//! Rows of a table and the sums that go back to them, beside plain loops.

use tilewright_ops::{Embedding, Operator};
use tilewright_tile::Element;

use crate::oracle::{Chance, check_kernels_of, close, numbers, run};

/// Numbers of rows, of which some come often, some are padding, and some are no rows.
fn indices(tokens: usize, vocabulary: i64, seed: u64) -> Vec<i64> {
    let at = |token: usize| {
        let chance = (token as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed * 77) >> 33;
        match chance % 7 {
            0 => 0,
            1 => vocabulary - 1,
            2 => -1,
            3 => vocabulary + (chance % 3) as i64,
            _ => (chance / 7 % vocabulary as u64) as i64,
        }
    };
    (0..tokens).map(at).collect()
}

fn floats(all: &[i64]) -> Vec<f64> {
    all.iter().map(|own| *own as f64).collect()
}

/// The sums of the rows of `d` with each number.
fn sums(all: &[i64], d: &[f64], vocabulary: usize, length: usize, padding: i64) -> Vec<f64> {
    let mut found = vec![0.0; vocabulary * length];
    for (token, row) in all.iter().enumerate() {
        if *row != padding && (0..vocabulary as i64).contains(row) {
            for at in 0..length {
                found[*row as usize * length + at] += d[token * length + at];
            }
        }
    }
    found
}

#[test]
fn rows_are_those_of_their_numbers() {
    for (vocabulary, length, tokens) in [(1_i64, 1_i64, 1_usize), (50, 24, 17), (7, 5000, 3)] {
        let wide = length as usize;
        let table = numbers(vocabulary as usize * wide, 1);
        let all = indices(tokens, vocabulary, 2);
        let row = |row: i64| match (0..vocabulary).contains(&row) {
            true => table[row as usize * wide..][..wide].to_vec(),
            false => vec![f64::NAN; wide],
        };
        let exact: Vec<f64> = all.iter().flat_map(|own| row(*own)).collect();
        let embedding = Embedding { vocabulary, length, element: Element::Bf16, ..Embedding::default() };
        let inputs = [("table", table.clone()), ("indices", floats(&all))];
        close("y", run(embedding.forward(), &[("T", tokens as i64)], &inputs).of("y"), &exact, 0.0);
    }
}

#[test]
fn derivatives_are_the_sums_of_the_rows_of_each_number() {
    // One digit and two; more tokens than a block has, and than are added at once.
    let cases = [(1_i64, 3_i64, 1_usize, -1_i64), (30, 8, 700, 0), (3000, 4, 300, 2999), (5, 2100, 40, -1)];
    let mut chance = Chance::new(5);
    let drawn = (0..8).map(|_| {
        let vocabulary = 1 + chance.one(&[3, 20, 1100]).min(chance.below(1200)) as i64;
        (vocabulary, 1 + chance.below(9) as i64, 1 + chance.below(90), chance.below(3) as i64 - 1)
    });
    let drawn = drawn.filter(|(vocabulary, _, _, padding)| padding < vocabulary);
    for (vocabulary, length, tokens, padding) in cases.into_iter().chain(drawn) {
        let wide = length as usize;
        let sizes = [("T", tokens as i64)];
        let all = indices(tokens, vocabulary, 5);
        let d = numbers(tokens * wide, 3);
        let exact = sums(&all, &d, vocabulary as usize, wide, padding);
        let before = numbers(exact.len(), 4);
        let added: Vec<f64> = exact.iter().zip(&before).map(|(sum, before)| sum + before).collect();
        let inputs = [("indices", floats(&all)), ("d_y", d)];

        let embedding = Embedding { vocabulary, length, padding, ..Embedding::default() };
        close("d_table", run(embedding.backward(), &sizes, &inputs).of("d_table"), &exact, 1e-6);

        let atomic = Embedding { atomic: true, ..embedding.clone() };
        let with = [inputs.as_slice(), &[("d_table", before)]].concat();
        close("d_table by atomics", run(atomic.backward(), &sizes, &with).of("d_table"), &added, 1e-6);

        // Rows that no number names are left as they are.
        let accumulating = Embedding { accumulate: true, ..embedding };
        close("d_table added to", run(accumulating.backward(), &sizes, &with).of("d_table"), &added, 1e-6);
    }
}

#[test]
fn numbers_that_are_no_rows_give_no_derivative() {
    let embedding = Embedding { vocabulary: 4, length: 2, padding: 1, ..Embedding::default() };
    let inputs = [("indices", vec![1.0, -5.0, 4.0, 1.0]), ("d_y", vec![1.0; 8])];
    close("d_table", run(embedding.backward(), &[("T", 4)], &inputs).of("d_table"), &[0.0; 8], 0.0);
}

#[test]
fn sums_have_the_same_bits_whatever_other_tokens_there_are() {
    let embedding = Embedding { vocabulary: 900, length: 3, ..Embedding::default() };
    let rows: Vec<f64> = numbers(37 * 3, 8).iter().map(|own| own / 3.0).collect();
    let of = |others: usize| {
        let mut all = vec![11.0; others];
        let mut d = vec![1.0; others * 3];
        for (number, row) in rows.chunks(3).enumerate() {
            all.extend([5.0, 100.0 + number as f64]);
            d.extend(row.iter().chain(&[7.0; 3]));
        }
        let inputs = [("indices", all.clone()), ("d_y", d)];
        run(embedding.backward(), &[("T", all.len() as i64)], &inputs).of("d_table")[15..18].to_vec()
    };
    assert_eq!(of(0), of(300));
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let all: Vec<i32> = indices(300, 40, 9).into_iter().map(|own| own as i32).collect();
    let given = [("indices", all)];
    let embedding =
        Embedding { vocabulary: 40, length: 24, element: Element::Bf16, padding: 3, ..Embedding::default() };
    check_kernels_of(embedding.forward(), &[("T", 300)], &given);
    for embedding in [
        embedding.clone(),
        Embedding { accumulate: true, gradient_element: Element::Bf16, ..embedding.clone() },
        Embedding { atomic: true, ..embedding.clone() },
        Embedding { vocabulary: 3000, length: 2, ..embedding },
    ] {
        check_kernels_of(embedding.backward(), &[("T", 300)], &given);
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let embedding = Embedding { vocabulary: 8, length: 4, ..Embedding::default() };
    for (options, text) in [
        (Embedding { vocabulary: 0, ..embedding.clone() }, "`vocabulary` is 0, and a table has from 1"),
        (Embedding { length: 0, ..embedding.clone() }, "`length` is 0, and a row has from 1"),
        (Embedding { padding: 8, ..embedding.clone() }, "`padding` is 8, and it is the number of a row"),
        (Embedding { element: Element::I32, ..embedding.clone() }, "`element` is i32"),
        (Embedding { atomic: true, accumulate: true, ..embedding.clone() }, "`accumulate` is true"),
        (Embedding { atomic: true, gradient_element: Element::Bf16, ..embedding }, "atomics add numbers of f32"),
    ] {
        let error = options.backward().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
