//! A mixture of experts, program by program, beside plain loops: which experts each token chooses,
//! where its rows go, what each expert makes of its rows, and what comes back.

use super::{compare, numbers};
use crate::programs::places::{exactly, with};
use crate::programs::run::{Case, kernel};
use half::bf16;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Target;
use tilewright_tile::{Program, interpret};

const EXPERTS: usize = 64;
const CHOICES: usize = 8;
const PART: usize = 128;

fn rounded(value: f64) -> f64 {
    bf16::from_f64(value).to_f64()
}

/// The choices of each token, and their weights.
fn routed(logits: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut experts, mut weights) = (Vec::new(), Vec::new());
    for row in logits.chunks(EXPERTS) {
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|a, b| row[*b].partial_cmp(&row[*a]).unwrap().then(a.cmp(b)));
        let sum: f64 = order[..CHOICES].iter().map(|at| (row[*at] - row[order[0]]).exp()).sum();
        experts.extend(order[..CHOICES].iter().map(|at| *at as f64));
        weights.extend(order[..CHOICES].iter().map(|at| (row[*at] - row[order[0]]).exp() / sum));
    }
    (experts, weights)
}

#[test]
fn tokens_choose_experts() {
    // The last block has tokens that are not there.
    let tokens = 19;
    let logits = numbers(11, tokens * EXPERTS, 4.0);
    let (experts, weights) = routed(&logits);
    let program = with("route", &[]);
    let case = Case::new(&[("T", tokens as i64)], &[("logits", logits)]);
    exactly(&program, &case, &[("experts", experts)]);
    let found: Vec<Option<f64>> =
        kernel(&program.compile(None).unwrap(), &case, "weights").into_iter().map(Some).collect();
    compare("the kernel's weights", &found, &weights, 1e-5);
}

/// Where the choices go: what each program makes, from plain loops.
struct Places {
    counts: Vec<f64>,
    before: Vec<f64>,
    expert: Vec<f64>,
    places: Vec<f64>,
    tokens: Vec<f64>,
}

fn placed(experts: &[f64], rows: usize, chunk: usize) -> Places {
    let chunks = rows / chunk;
    let of = |expert: usize| experts.iter().filter(|own| **own as usize == expert).count();
    let mut starts = vec![0; EXPERTS + 1];
    for expert in 0..EXPERTS {
        starts[expert + 1] = starts[expert] + of(expert).div_ceil(PART) * PART;
    }
    let (mut counts, mut before) = (Vec::new(), Vec::new());
    for at in 0..chunks {
        for (expert, start) in starts[..EXPERTS].iter().enumerate() {
            let (behind, own) = experts.split_at((at * chunk).min(experts.len()));
            let count = |part: &[f64]| part.iter().filter(|own| **own as usize == expert).count();
            counts.push(count(&own[..chunk.min(own.len())]) as f64);
            before.push((start + count(behind)) as f64);
        }
    }
    let (mut places, mut tokens) = (Vec::new(), vec![-1.0; rows]);
    for (at, expert) in experts.iter().enumerate() {
        let place = starts[*expert as usize] + experts[..at].iter().filter(|own| **own == *expert).count();
        places.push(place as f64);
        tokens[place] = (at / CHOICES) as f64;
    }
    let owner = |row: usize| starts[1..].iter().filter(|end| **end <= row).count() as f64;
    let expert = (0..rows / PART).map(|part| owner(part * PART)).collect();
    Places { counts, before, expert, places, tokens }
}

#[test]
fn choices_go_to_rows_of_their_experts() {
    // Few experts have all but some choices, so some have several parts of rows and most have none.
    let (tokens, chunk) = (45, 64);
    let experts: Vec<f64> = (0..tokens * CHOICES)
        .map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61)
        .map(|own| if own == 7 { 63.0 } else { (own / 3 * 5) as f64 })
        .collect();
    let choices = experts.len() as i64;
    let rows = 11 * PART;
    let wanted = placed(&experts, rows, chunk);
    let chunks = (rows / chunk) as i64;
    let sizes = [("A", choices), ("P", rows as i64), ("C", chunks), ("M", (rows / PART) as i64)];
    let program = with("expert_counts", &[("(256)", "(64)")]);
    let case = Case::new(&[("A", choices), ("P", rows as i64), ("C", chunks)], &[("experts", experts.clone())]);
    let none = vec![-1.0; rows];
    exactly(&program, &case, &[("counts", wanted.counts.clone()), ("tokens", none.clone())]);
    // Tiles of 16 chunks and of 8 parts: several iterations, the last of which ends within a tile.
    let program = with("expert_starts", &[("128)", "16)"), ("m*128", "m*16"), ("+ 127, 7)", "+ 127, 7)")]);
    let case = Case::new(&[("C", chunks), ("M", (rows / PART) as i64)], &[("counts", wanted.counts)]);
    exactly(&program, &case, &[("before", wanted.before.clone()), ("expert", wanted.expert)]);
    let changes = [("(256", "(64"), ("A/256", "A/64"), ("x*256", "x*64"), ("warps 8", "warps 2")];
    let program = with("expert_places", &changes);
    let inputs = [("experts", experts), ("before", wanted.before), ("tokens", none)];
    let case = Case::new(&sizes[..3], &inputs);
    exactly(&program, &case, &[("places", wanted.places), ("tokens", wanted.tokens)]);
}

/// The product of parts of rows, each with the matrix that is said for it.
fn product(part: i64, columns: i64) -> Program {
    let (part, columns) = (part.to_string(), columns.to_string());
    let changes =
        [("(128,", &*format!("({part},")), ("P/128", &format!("P/{part}")), ("256", &columns), ("(64,K", "(E,K")];
    let changes: Vec<(&str, &str)> = changes.iter().map(|(from, to)| (*from, &**to)).collect();
    with("expert_product", &[&changes[..], &[("own < 64", "own < 3")]].concat())
}

#[test]
fn rows_are_multiplied_by_the_matrices_of_their_experts() {
    let (experts, depth, columns) = (3, 136, 72);
    for (part, tile, target) in [(64, 64, Target::Sm90a), (128, 64, Target::Sm90a), (64, 64, Target::Sm80)] {
        // A part is nobody's, and of the last one, which ends within it, nothing is said.
        let own = [2, 0, 64, 2, 64];
        let rows = 4 * part as usize + 20;
        let (x, w) = (numbers(21, rows * depth, 1.0), numbers(22, experts * depth * columns, 1.0));
        let mut wanted = Vec::new();
        for row in 0..rows {
            let expert = own[row / part as usize];
            for column in 0..columns {
                let at = |k: usize| (expert * depth + k) * columns + column;
                let sum: f64 = match expert {
                    64 => 0.0,
                    _ => (0..depth).map(|k| x[row * depth + k] * w[at(k)]).sum(),
                };
                wanted.push(sum / (1.0 + (-sum).exp()));
            }
        }
        let program = product(part, tile);
        let sizes = [("P", rows as i64), ("K", depth as i64), ("N", columns as i64), ("E", experts as i64), ("M", 4)];
        let expert = own[..4].iter().map(|own| *own as f64).collect();
        let case = Case::new(&sizes, &[("x", x), ("w", w), ("expert", expert)]);
        let meant = interpret::run(&program, &case.sizes, &case.inputs).unwrap_or_else(|error| panic!("{error}"));
        compare("the interpreter", &meant[0].1, &wanted, 1.0 / 64.0);
        let compiled = program.compile(&Machine::of_target(target)).unwrap_or_else(|error| panic!("{error}"));
        compiled.placed().verify().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(interpret::run(compiled.placed(), &case.sizes, &case.inputs).unwrap(), meant);
        let roles = compiled.explain().unwrap().roles.concat();
        assert_eq!(roles.contains("wgmma"), target == Target::Sm90a, "{roles}");
        let found: Vec<Option<f64>> = kernel(&compiled, &case, "y").into_iter().map(Some).collect();
        compare("the kernel", &found, &wanted, 1.0 / 64.0);
    }
}

#[test]
fn what_experts_gave_is_summed() {
    let (tokens, columns, rows) = (5, 64, 30);
    let h = numbers(31, rows * columns, 1.0);
    let places: Vec<f64> = (0..tokens * CHOICES).map(|at| (at * 7 % rows) as f64).collect();
    let weights: Vec<f64> = (0..tokens * CHOICES).map(|at| (at % 5) as f64 / 8.0).collect();
    let mut wanted = Vec::new();
    for token in 0..tokens {
        for column in 0..columns {
            let term = |at: usize| h[places[at] as usize * columns + column] * weights[at];
            wanted.push(rounded((token * CHOICES..(token + 1) * CHOICES).map(term).sum()));
        }
    }
    let sizes = [("T", tokens as i64), ("P", rows as i64)];
    let case = Case::new(&sizes, &[("h", h), ("places", places), ("weights", weights)]);
    exactly(&with("combine_rows", &[("2048", "64")]), &case, &[("y", wanted)]);
}

/// The sum of the outer products of the rows of one expert: which rows these are, a tensor says.
#[test]
fn an_index_is_added_to_the_coordinate_that_a_tile_says() {
    let text = "
tile matrix_of_rows {
    input  x: bf16 (64,128,R):(128,1,8192)
    input  d: bf16 (64,64,R):(64,1,4096)
    input  first: i32 (1,1,E):(1,1,1)
    input  count: i32 E:1
    output w: f32 (E,128,64):(8192,64,1)
    grid E
    from = load(first, (1,1,1), (0, 0, block.x))
    rows = load(count, (1), (block.x))
    loop r < [rows] with sum = broadcast(f32(0), (128,64)) {
        a = transpose(reshape(load(x, (64,128,1), (0, 0, from + r)), (64,128)), (1,0))
        b = reshape(load(d, (64,64,1), (0, 0, from + r)), (64,64))
        next dot(a, b, sum)
    } -> sum
    store(w, (block.x, 0, 0), reshape(sum, (1,128,64)))
}";
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assert!(program.to_string().contains("v0 + i0)"), "{program}");
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    let (first, count) = ([3_usize, 0, 1], [1_usize, 0, 2]);
    let (x, d) = (numbers(1, 4 * 8192, 1.0), numbers(2, 4 * 4096, 1.0));
    let mut wanted = vec![0.0; 3 * 8192];
    for expert in 0..3 {
        for row in first[expert] * 64..(first[expert] + count[expert]) * 64 {
            for (at, sum) in wanted[expert * 8192..][..8192].iter_mut().enumerate() {
                *sum += x[row * 128 + at / 64] * d[row * 64 + at % 64];
            }
        }
    }
    let of = |all: [usize; 3]| all.map(|own| own as f64).to_vec();
    let inputs = [("x", x), ("d", d), ("first", of(first)), ("count", of(count))];
    let case = Case::new(&[("R", 4), ("E", 3)], &inputs);
    let meant = interpret::run(&program, &case.sizes, &case.inputs).unwrap();
    compare("the interpreter's w", &meant[0].1, &wanted, 1e-4);
    for machine in [None, Some(Machine::of_target(Target::Sm90a))] {
        let compiled = program.compile(machine.as_ref()).unwrap_or_else(|error| panic!("{error}"));
        // Copies run ahead of their iterations, by threads or by TMA.
        assert!(compiled.placed().to_string().contains("stage(x, (64,128,1), (0, 0, v0 + i0), (1,0))"));
        let found: Vec<Option<f64>> = kernel(&compiled, &case, "w").into_iter().map(Some).collect();
        compare("the kernel's w", &found, &wanted, 1e-4);
    }
}
