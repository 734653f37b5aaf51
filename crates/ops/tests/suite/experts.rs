//! A mixture of experts, operator by operator, beside plain loops.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Target;
use tilewright_ops::{Combine, ExpertPlaces, ExpertProduct, Operator, Permute, Route, TILE_ROWS, expert_rows};
use tilewright_tile::Element;

use crate::oracle::{Chance, check_kernels, check_kernels_of, check_kernels_on, close, differences, numbers, run};

/// The experts of choices: some have many, some none.
fn choices(count: usize, experts: usize, seed: usize) -> Vec<usize> {
    (0..count).map(|at| (at * at + seed * 31 + at / 5) % (experts * 2) % experts / 2 * 2 % experts).collect()
}

fn floats<T: Copy + TryInto<i32>>(all: &[T]) -> Vec<f64> {
    all.iter().map(|own| f64::from((*own).try_into().unwrap_or(i32::MAX))).collect()
}

/// Where the rows of each choice are: place, choice of each place, and of each expert its first
/// tile and its tiles.
struct Places {
    places: Vec<i32>,
    choices: Vec<i32>,
    tile_experts: Vec<i32>,
    first_tiles: Vec<i32>,
    tiles: Vec<i32>,
}

fn placed(of: &[i32], experts: usize) -> Places {
    let tile = TILE_ROWS as usize;
    let rows = expert_rows(of.len() as i64, experts as i64) as usize;
    let mut found = Places {
        places: vec![-1; of.len()],
        choices: vec![-1; rows],
        tile_experts: vec![experts as i32; rows / tile],
        first_tiles: Vec::new(),
        tiles: Vec::new(),
    };
    let mut begin = 0;
    for expert in 0..experts {
        let own: Vec<usize> = (0..of.len()).filter(|at| of[*at] == expert as i32).collect();
        for (number, choice) in own.iter().enumerate() {
            found.places[*choice] = (begin * tile + number) as i32;
            found.choices[begin * tile + number] = *choice as i32;
        }
        let tiles = own.len().div_ceil(tile);
        found.tile_experts[begin..begin + tiles].fill(expert as i32);
        found.first_tiles.push(begin as i32);
        found.tiles.push(tiles as i32);
        begin += tiles;
    }
    found
}

/// The greatest logits of a token, the first of equal ones first.
fn best(row: &[f64], chosen: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
    order.truncate(chosen);
    order
}

fn softmax(x: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = x.iter().map(|own| (own - most).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.into_iter().map(|own| own / total).collect()
}

#[test]
fn tokens_choose_the_experts_with_the_greatest_logits() {
    let cases = [
        (1_i64, 1_i64, Element::F32, 3_usize),
        (60, 6, Element::Bf16, 9),
        (256, 8, Element::F32, 3),
        (64, 16, Element::F16, 5),
    ];
    let mut chance = Chance::new(7);
    let drawn = (0..6).map(|_| {
        let experts = 1 + chance.below(40) as i64;
        let chosen = 1 + chance.below(experts.min(16) as usize) as i64;
        (experts, chosen, chance.one(&[Element::F32, Element::Bf16, Element::F16]), 1 + chance.below(20))
    });
    for (experts, chosen, element, tokens) in cases.into_iter().chain(drawn) {
        for over_all in [false, true] {
            let (wide, few) = (experts as usize, chosen as usize);
            let logits: Vec<f64> = numbers(tokens * wide, 7).iter().map(|own| own * 4.0).collect();
            let route = Route { experts, chosen, element, over_all };
            let sizes = [("T", tokens as i64)];
            let found = run(route.forward(), &sizes, &[("logits", logits.clone())]);
            let chosen: Vec<Vec<usize>> = logits.chunks(wide).map(|row| best(row, few)).collect();
            close("experts", found.of("experts"), &floats(&chosen.concat()), 0.0);
            let weights = |row: &[f64], own: &[usize]| -> Vec<f64> {
                let some: Vec<f64> = own.iter().map(|at| row[*at]).collect();
                let all = softmax(row);
                if over_all { own.iter().map(|at| all[*at]).collect() } else { softmax(&some) }
            };
            let exact: Vec<f64> = logits.chunks(wide).zip(&chosen).flat_map(|(row, own)| weights(row, own)).collect();
            close("weights", found.of("weights"), &exact, 1e-5);

            let d = numbers(tokens * few, 8);
            let slopes: Vec<f64> = (0..tokens)
                .flat_map(|token| {
                    let row = &logits[token * wide..(token + 1) * wide];
                    differences(|row| weights(row, &chosen[token]), row, &d[token * few..(token + 1) * few])
                })
                .collect();
            let inputs =
                [("experts", floats(&chosen.concat())), ("weights", exact), ("d_weights", d), ("logits", logits)];
            let share = if element == Element::F32 { 1e-5 } else { 4e-3 };
            close("d_logits", run(route.backward(), &sizes, &inputs).of("d_logits"), &slopes, share);
        }
    }
}

#[test]
fn choices_have_places_in_the_rows_of_their_experts() {
    for (experts, count) in [(1_usize, 1_usize), (8, 300), (60, 700), (256, 520)] {
        let mut of: Vec<i32> = choices(count, experts, 3).into_iter().map(|own| own as i32).collect();
        if count > 1 {
            // Choices that go nowhere.
            of[1] = -1;
            of[count - 1] = experts as i32;
        }
        let rows = expert_rows(count as i64, experts as i64);
        let wanted = placed(&of, experts);
        let places = ExpertPlaces { experts: experts as i64 };
        let sizes = [("A", count as i64), ("P", rows)];
        let found = run(places.forward(), &sizes, &[("experts", floats(&of))]);
        close("places", found.of("places"), &floats(&wanted.places), 0.0);
        close("choices", found.of("choices"), &floats(&wanted.choices), 0.0);
        close("tile_experts", found.of("tile_experts"), &floats(&wanted.tile_experts), 0.0);
        close("first_tiles", found.of("first_tiles"), &floats(&wanted.first_tiles), 0.0);
        close("tiles", found.of("tiles"), &floats(&wanted.tiles), 0.0);
    }
    // As many rows as there are in the worst case: each expert has one choice more than whole
    // tiles.
    let of: Vec<i32> = (0..3).flat_map(|expert| vec![expert; TILE_ROWS as usize + 1]).collect();
    let last = *placed(&of, 3).places.iter().max().unwrap();
    assert!(i64::from(last) < expert_rows(of.len() as i64, 3));
}

#[test]
fn rows_go_to_their_places_and_come_back() {
    let cases = [(1_i64, 1_usize, 1_usize, 1_usize), (40, 90, 3, 7), (2500, 3, 2, 4)];
    let mut chance = Chance::new(9);
    let drawn = (0..6).map(|_| {
        let experts = 1 + chance.below(9);
        (1 + chance.below(70) as i64, 1 + chance.below(40), 1 + chance.below(experts), experts)
    });
    for (length, tokens, chosen, experts) in cases.into_iter().chain(drawn) {
        let wide = length as usize;
        let of: Vec<i32> = choices(tokens * chosen, experts, 1).into_iter().map(|own| own as i32).collect();
        let own = placed(&of, experts);
        let rows = own.choices.len();
        let sizes = [("T", tokens as i64), ("P", rows as i64)];
        let (x, d, h) = (numbers(tokens * wide, 2), numbers(tokens * wide, 3), numbers(rows * wide, 4));
        let weights: Vec<f64> = numbers(tokens * chosen, 5).iter().map(|own| own + 1.5).collect();
        let permute = Permute { length, chosen: chosen as i64, element: Element::F32 };
        let combine = Combine { length, chosen: chosen as i64, element: Element::F32 };
        let inputs = [("choices", floats(&own.choices)), ("places", floats(&own.places)), ("weights", weights.clone())];

        let mut moved = vec![0.0; rows * wide];
        for (choice, place) in own.places.iter().enumerate() {
            let from = choice / chosen * wide;
            moved[*place as usize * wide..][..wide].copy_from_slice(&x[from..from + wide]);
        }
        let with = |more: &[(&'static str, &Vec<f64>)]| {
            let more = more.iter().map(|(name, all)| (*name, (*all).clone()));
            inputs.iter().cloned().chain(more).collect::<Vec<(&str, Vec<f64>)>>()
        };
        close("y", run(permute.forward(), &sizes, &with(&[("x", &x)])).of("y"), &moved, 0.0);

        let sum = |weighted: bool| {
            let mut found = vec![0.0; tokens * wide];
            for (choice, place) in own.places.iter().enumerate() {
                for at in 0..wide {
                    let weight = if weighted { weights[choice] } else { 1.0 };
                    found[choice / chosen * wide + at] += weight * h[*place as usize * wide + at];
                }
            }
            found
        };
        close("d_x", run(permute.backward(), &sizes, &with(&[("d_y", &h)])).of("d_x"), &sum(false), 1e-5);
        close("y", run(combine.forward(), &sizes, &with(&[("x", &h)])).of("y"), &sum(true), 1e-5);

        let (mut d_h, mut d_weights) = (vec![0.0; rows * wide], vec![0.0; tokens * chosen]);
        for (choice, place) in own.places.iter().enumerate() {
            for at in 0..wide {
                let (to, from) = (*place as usize * wide + at, choice / chosen * wide + at);
                d_h[to] = weights[choice] * d[from];
                d_weights[choice] += h[to] * d[from];
            }
        }
        let found = run(combine.backward(), &sizes, &with(&[("x", &h), ("d_y", &d)]));
        close("d_x", found.of("d_x"), &d_h, 1e-5);
        close("d_weights", found.of("d_weights"), &d_weights, 1e-5);
    }
}

/// A product of rows of experts and its derivatives, and the rows' places.
struct Product {
    inputs: Vec<(&'static str, Vec<f64>)>,
    y: Vec<f64>,
    d_x: Vec<f64>,
    d_w: Vec<f64>,
    sizes: [(&'static str, i64); 3],
}

fn product(own: &Places, experts: usize, [k, n]: [usize; 2], transposed: bool) -> Product {
    let rows = own.choices.len();
    let only = |mut all: Vec<f64>, wide: usize| {
        for (row, choice) in own.choices.iter().enumerate() {
            if *choice < 0 {
                all[row * wide..(row + 1) * wide].fill(0.0);
            }
        }
        all
    };
    let (x, d) = (only(numbers(rows * k, 1), k), only(numbers(rows * n, 2), n));
    let w = numbers(experts * k * n, 3);
    let at = |expert: usize, i: usize, j: usize| expert * k * n + if transposed { j * k + i } else { i * n + j };
    let (mut y, mut d_x, mut d_w) = (vec![0.0; rows * n], vec![0.0; rows * k], vec![0.0; w.len()]);
    for row in 0..rows {
        let expert = own.tile_experts[row / TILE_ROWS as usize] as usize;
        if expert == experts {
            continue;
        }
        for i in 0..k {
            for j in 0..n {
                y[row * n + j] += x[row * k + i] * w[at(expert, i, j)];
                d_x[row * k + i] += d[row * n + j] * w[at(expert, i, j)];
                d_w[at(expert, i, j)] += x[row * k + i] * d[row * n + j];
            }
        }
    }
    let inputs = vec![
        ("x", x),
        ("d_y", d),
        ("w", w),
        ("tile_experts", floats(&own.tile_experts)),
        ("first_tiles", floats(&own.first_tiles)),
        ("tiles", floats(&own.tiles)),
    ];
    let sizes = [("P", rows as i64), ("K", k as i64), ("N", n as i64)];
    Product { inputs, y, d_x, d_w, sizes }
}

#[test]
fn products_of_experts_and_their_derivatives_are_those_of_loops() {
    // An expert without rows, one with a few, and one with more than a tile.
    let of: Vec<i32> = [vec![2; 131], vec![0; 5]].concat();
    for (transposed, sides) in [(false, [24, 40]), (true, [72, 264])] {
        let own = placed(&of, 3);
        assert_eq!(own.tiles, [1, 0, 2]);
        let case = product(&own, 3, sides, transposed);
        let gradient_element = Element::F32;
        let operator = ExpertProduct { experts: 3, element: Element::Bf16, transposed, gradient_element };
        close("y", run(operator.forward(), &case.sizes, &case.inputs).of("y"), &case.y, 4e-3);
        let found = run(operator.backward(), &case.sizes, &case.inputs);
        close("d_x", found.of("d_x"), &case.d_x, 4e-3);
        close("d_w", found.of("d_w"), &case.d_w, 1e-5);
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let bf16 = Element::Bf16;
    for over_all in [false, true] {
        let route = Route { experts: 60, chosen: 6, element: bf16, over_all };
        check_kernels(route.forward(), &[("T", 9)]);
        let experts = (0..54).map(|at| at * 7 % 60).collect();
        check_kernels_of(route.backward(), &[("T", 9)], &[("experts", experts)]);
    }
    let of: Vec<i32> = choices(300, 10, 2).into_iter().map(|own| own as i32).collect();
    let own = placed(&of, 10);
    let rows = own.choices.len() as i64;
    let sizes = [("A", 300), ("P", rows), ("T", 150)];
    check_kernels_of(ExpertPlaces { experts: 10 }.forward(), &sizes, &[("experts", of)]);
    let given = [("places", own.places), ("choices", own.choices)];
    let permute = Permute { length: 72, chosen: 2, element: bf16 };
    let combine = Combine { length: 72, chosen: 2, element: bf16 };
    for sequence in [permute.forward(), permute.backward(), combine.forward(), combine.backward()] {
        check_kernels_of(sequence, &sizes, &given);
    }
}

#[test]
fn kernels_of_products_compute_what_their_programs_mean() {
    let of: Vec<i32> = [vec![1; 131], vec![0; 5]].concat();
    let own = placed(&of, 3);
    let given = [("tile_experts", own.tile_experts), ("first_tiles", own.first_tiles), ("tiles", own.tiles)];
    let sizes = [("P", own.choices.len() as i64), ("K", 72), ("N", 136)];
    let hopper = Machine::of_target(Target::Sm90a);
    for (transposed, machine) in [(false, None), (true, Some(&hopper)), (false, Some(&hopper))] {
        let operator = ExpertProduct { experts: 3, transposed, ..ExpertProduct::default() };
        check_kernels_on(operator.forward(), machine, &sizes, &given);
        check_kernels_on(operator.backward(), machine, &sizes, &given);
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let product = ExpertProduct { experts: 8, ..ExpertProduct::default() };
    let operators: [(Box<dyn Operator>, &str); 6] = [
        (Box::new(Route { experts: 2000, chosen: 1, ..Route::default() }), "from 1 to 1024 experts"),
        (Box::new(Route { experts: 4, chosen: 5, ..Route::default() }), "from 1 to 4 experts"),
        (Box::new(ExpertPlaces { experts: 0 }), "`experts` is 0"),
        (Box::new(Permute { length: 8, chosen: 17, ..Permute::default() }), "from 1 to 16 experts"),
        (Box::new(Combine { length: 0, chosen: 1, ..Combine::default() }), "`length` is 0"),
        (Box::new(ExpertProduct { element: Element::F32, ..product }), "the types are bf16 and f16"),
    ];
    for (operator, text) in operators {
        let error = operator.forward().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
