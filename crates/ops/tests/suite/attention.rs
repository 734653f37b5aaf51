//! Attention beside loops over f64.
//!
//! The oracle knows no tiles: it takes each query, the keys that it sees, their logits, and the
//! derivatives by the formulas.

mod by_warps;
mod cache;
mod machines;
mod one_kernel;
mod runs;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Target;
use tilewright_ops::{Attention, AttentionDecode, Operator};
use tilewright_tile::{CheckOptions, Element};

use crate::oracle::{Results, close, numbers, run};

/// The sizes and options of a case.
#[derive(Clone)]
pub struct Case {
    pub batch: usize,
    pub queries: usize,
    pub keys: usize,
    pub options: Attention,
    /// Whether rows of all heads lie side by side: `(batch, rows, heads, length)`.
    pub interleaved: bool,
    /// The number of the sequence, where it is one of several that have cases of their own.
    pub number: usize,
}

/// What an operator reads, `(batch, head, row)` one after another, in the order of the oracle.
#[derive(Clone)]
struct Numbers {
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    d_o: Vec<f64>,
    d_lse: Vec<f64>,
    sinks: Vec<f64>,
    slopes: Vec<f64>,
    bias: Vec<f64>,
}

/// The results of the oracle.
#[derive(Default)]
struct Exact {
    o: Vec<f64>,
    lse: Vec<f64>,
    d_q: Vec<f64>,
    d_k: Vec<f64>,
    d_v: Vec<f64>,
    d_sinks: Vec<f64>,
    d_bias: Vec<f64>,
}

impl Case {
    fn new(lengths: [usize; 2], options: Attention) -> Case {
        Case { batch: 1, queries: lengths[0], keys: lengths[1], options, interleaved: false, number: 0 }
    }

    fn heads(&self) -> [usize; 2] {
        [self.options.heads as usize, self.options.kv_heads as usize]
    }

    fn wide(&self) -> [usize; 2] {
        let Attention { head, value_head, .. } = self.options;
        [head as usize, if value_head == 0 { head as usize } else { value_head as usize }]
    }

    /// The number of the head, and whether it is that of keys, of the rows, and their length.
    fn of(&self, name: &str) -> [usize; 3] {
        let [heads, kv] = self.heads();
        let [wide, value] = self.wide();
        match name {
            "q" => [heads, self.queries, wide],
            "o" => [heads, self.queries, value],
            "k" => [kv, self.keys, wide],
            _ => [kv, self.keys, value],
        }
    }

    /// The strides of a tensor: batch, head, row.
    fn strides(&self, name: &str) -> [usize; 3] {
        let [heads, rows, wide] = self.of(name);
        // With a gap between rows, whose length every alignment of the tests divides.
        let pitch = if self.interleaved { wide * heads } else { wide + 8 };
        match self.interleaved {
            true => [rows * pitch, wide, pitch],
            false => [heads * rows * pitch, rows * pitch, pitch],
        }
    }

    /// The offset of each element of the oracle's order.
    fn offsets(&self, name: &str) -> Vec<usize> {
        let [heads, rows, wide] = self.of(name);
        let [batch, head, row] = self.strides(name);
        let mut found = Vec::new();
        for b in 0..self.batch {
            for h in 0..heads {
                for r in 0..rows {
                    found.extend((0..wide).map(|at| b * batch + h * head + r * row + at));
                }
            }
        }
        found
    }

    /// Numbers in the oracle's order as the memory of a tensor; gaps are NaN.
    fn spread(&self, name: &str, all: &[f64]) -> Vec<f64> {
        let offsets = self.offsets(name);
        let mut memory = vec![f64::NAN; offsets.iter().max().map_or(0, |last| last + 1)];
        offsets.iter().zip(all).for_each(|(at, value)| memory[*at] = *value);
        memory
    }

    /// The memory of a tensor in the oracle's order.
    fn gathered(&self, name: &str, memory: &[f64]) -> Vec<f64> {
        self.offsets(name).iter().map(|at| memory[*at]).collect()
    }

    fn sizes(&self) -> Vec<(String, i64)> {
        let mut sizes: Vec<(String, i64)> =
            vec![("B".to_string(), self.batch as i64), ("S".to_string(), self.queries as i64)];
        sizes.extend((!self.options.same_length).then(|| ("T".to_string(), self.keys as i64)));
        for name in ["q", "k", "v", "o"] {
            let strides = self.strides(name);
            sizes.extend(
                ["batch", "head", "row"].iter().zip(strides).map(|(axis, own)| (format!("{name}_{axis}"), own as i64)),
            );
        }
        if self.options.bias {
            let matrix = self.queries * self.keys;
            let heads = if self.options.bias_heads { self.heads()[0] } else { 1 };
            sizes.push(("bias_row".to_string(), self.keys as i64));
            if self.options.bias_heads {
                sizes.push(("bias_head".to_string(), matrix as i64));
            }
            if self.options.bias_batch {
                sizes.push(("bias_batch".to_string(), (matrix * heads) as i64));
            }
        }
        sizes
    }

    fn numbers(&self) -> Numbers {
        let [heads, kv] = self.heads();
        let [wide, value] = self.wide();
        let all = |heads: usize, rows: usize, wide: usize, seed: u64| {
            numbers(self.batch * heads * rows * wide, seed + 100 * self.number as u64)
        };
        let many =
            if self.options.bias_heads { heads } else { 1 } * if self.options.bias_batch { self.batch } else { 1 };
        Numbers {
            q: all(heads, self.queries, wide, 1).iter().map(|own| own * 2.0).collect(),
            k: all(kv, self.keys, wide, 2),
            v: all(kv, self.keys, value, 3),
            d_o: all(heads, self.queries, value, 4),
            d_lse: all(heads, self.queries, 1, 5),
            sinks: numbers(heads, 6).iter().map(|own| own * 4.0).collect(),
            slopes: (0..heads).map(|head| 0.5_f64.powi(head as i32 + 1)).collect(),
            bias: numbers(many * self.queries * self.keys, 7),
        }
    }

    /// The number of the bias of a query and a key.
    fn bias_at(&self, [b, h, i, j]: [usize; 4]) -> usize {
        let heads = if self.options.bias_heads { self.heads()[0] } else { 1 };
        let b = if self.options.bias_batch { b } else { 0 };
        let h = if self.options.bias_heads { h } else { 0 };
        ((b * heads + h) * self.queries + i) * self.keys + j
    }

    fn exact(&self, given: &Numbers) -> Exact {
        let options = &self.options;
        let [heads, kv] = self.heads();
        let [wide, value] = self.wide();
        let group = heads / kv;
        let scale = if options.scale == 0.0 { 1.0 / (wide as f64).sqrt() } else { options.scale };
        let zeros = |of: &[f64]| vec![0.0; of.len()];
        let mut exact = Exact {
            d_q: zeros(&given.q),
            d_k: zeros(&given.k),
            d_v: zeros(&given.v),
            d_sinks: zeros(&given.sinks),
            d_bias: zeros(&given.bias),
            ..Exact::default()
        };
        for b in 0..self.batch {
            for h in 0..heads {
                for i in 0..self.queries {
                    let row = (b * heads + h) * self.queries + i;
                    let of_key = |j: usize| (b * kv + h / group) * self.keys + j;
                    let position = i as i64 + self.keys as i64 - self.queries as i64;
                    let sees = |j: &usize| {
                        let j = *j as i64;
                        let right = if options.causal { 0 } else { options.window_right };
                        (right < 0 || j <= position + right)
                            && (options.window_left < 0 || j >= position - options.window_left)
                    };
                    let q = &given.q[row * wide..(row + 1) * wide];
                    let seen: Vec<usize> = (0..self.keys).filter(sees).collect();
                    // The logit, and its derivative by the product.
                    let logit = |j: usize| {
                        let k = &given.k[of_key(j) * wide..(of_key(j) + 1) * wide];
                        let product = scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>();
                        let (mut logit, mut slope) = (product, scale);
                        if options.softcap > 0.0 {
                            let bent = (product / options.softcap).tanh();
                            (logit, slope) = (options.softcap * bent, scale * (1.0 - bent * bent));
                        }
                        if options.bias {
                            logit += given.bias[self.bias_at([b, h, i, j])];
                        }
                        if options.slopes {
                            logit -= given.slopes[h] * (j as i64 - position).abs() as f64;
                        }
                        if !options.bias_expression.is_empty() {
                            // `f32(key - query) * 0.125 + f32(head) * f32(key) * 0.25 - f32(batch *
                            // key)`.
                            logit += (j as i64 - position) as f64 * 0.125;
                            logit += h as f64 * j as f64 * 0.25 - ((b + self.number) * j) as f64;
                        }
                        (logit, slope)
                    };
                    let logits: Vec<(f64, f64)> = seen.iter().map(|j| logit(*j)).collect();
                    let sink = if options.sinks { given.sinks[h] } else { f64::NEG_INFINITY };
                    let most = logits.iter().map(|own| own.0).fold(sink, f64::max);
                    let total: f64 = logits.iter().map(|own| (own.0 - most).exp()).sum::<f64>()
                        + if options.sinks { (sink - most).exp() } else { 0.0 };
                    let lse = if total > 0.0 { most + total.ln() } else { f64::NEG_INFINITY };
                    let powers: Vec<f64> = logits.iter().map(|own| (own.0 - lse).exp()).collect();
                    let v = |j: usize| &given.v[of_key(j) * value..(of_key(j) + 1) * value];
                    let mut o = vec![0.0; value];
                    for (power, j) in powers.iter().zip(&seen) {
                        o.iter_mut().zip(v(*j)).for_each(|(o, v)| *o += power * v);
                    }
                    let d_o = &given.d_o[row * value..(row + 1) * value];
                    let mut delta: f64 = o.iter().zip(d_o).map(|(o, d)| o * d).sum();
                    if options.lse_gradient {
                        delta -= given.d_lse[row];
                    }
                    for ((power, j), (_, slope)) in powers.iter().zip(&seen).zip(&logits) {
                        let d_power: f64 = v(*j).iter().zip(d_o).map(|(v, d)| v * d).sum();
                        let d_logit = power * (d_power - delta);
                        if options.bias {
                            exact.d_bias[self.bias_at([b, h, i, *j])] += d_logit;
                        }
                        let k = of_key(*j) * wide;
                        for (at, q) in q.iter().enumerate() {
                            exact.d_q[row * wide + at] += d_logit * slope * given.k[k + at];
                            exact.d_k[k + at] += d_logit * slope * q;
                        }
                        for (at, d_o) in d_o.iter().enumerate() {
                            exact.d_v[of_key(*j) * value + at] += power * d_o;
                        }
                    }
                    if options.sinks {
                        exact.d_sinks[h] -= (sink - lse).exp() * delta;
                    }
                    exact.o.extend(o);
                    exact.lse.push(lse);
                }
            }
        }
        exact
    }

    fn inputs(&self, given: &Numbers) -> Vec<(&'static str, Vec<f64>)> {
        let mut inputs = vec![
            ("q", self.spread("q", &given.q)),
            ("k", self.spread("k", &given.k)),
            ("v", self.spread("v", &given.v)),
        ];
        inputs.extend(self.options.sinks.then(|| ("sinks", given.sinks.clone())));
        inputs.extend(self.options.slopes.then(|| ("slopes", given.slopes.clone())));
        inputs.extend(self.options.bias.then(|| ("bias", given.bias.clone())));
        inputs
    }

    /// Compares the forward, and the backward of the oracle's `o` and `lse`.
    fn agrees(&self) {
        let given = self.numbers();
        let exact = self.exact(&given);
        let sizes = self.sizes();
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let inputs = self.inputs(&given);
        let found = run(self.options.forward(), &sizes, &inputs);
        let about = format!("{:?} of {} queries and {} keys", self.options, self.queries, self.keys);
        close(&format!("o: {about}"), &self.gathered("o", found.of("o")), &exact.o, 8e-3);
        close(&format!("lse: {about}"), found.of("lse"), &exact.lse, 1e-4);

        let mut inputs = inputs;
        inputs.extend([
            ("o", self.spread("o", &exact.o)),
            ("lse", exact.lse.clone()),
            ("d_o", self.spread("o", &given.d_o)),
        ]);
        inputs.extend(self.options.lse_gradient.then(|| ("d_lse", given.d_lse.clone())));
        let found = run(self.options.backward(), &sizes, &inputs);
        let of = |name: &str, found: &Results| self.gathered(&name[2..], found.of(name));
        close(&format!("d_q: {about}"), &of("d_q", &found), &exact.d_q, 1.5e-2);
        close(&format!("d_k: {about}"), &of("d_k", &found), &exact.d_k, 1.5e-2);
        close(&format!("d_v: {about}"), &of("d_v", &found), &exact.d_v, 1.5e-2);
        if self.options.sinks {
            close(&format!("d_sinks: {about}"), found.of("d_sinks"), &exact.d_sinks, 1.5e-2);
        }
        if self.options.bias {
            close(&format!("d_bias: {about}"), found.of("d_bias"), &exact.d_bias, 1.5e-2);
        }
    }
}

/// Options with grouped heads.
fn grouped(heads: i64, kv_heads: i64, head: i64) -> Attention {
    Attention { heads, kv_heads, head, ..Attention::default() }
}

#[test]
fn attention_has_the_values_and_gradients_of_its_formula() {
    Case::new([70, 70], grouped(1, 1, 64)).agrees();
    // Fewer queries than keys, and more: then the first ones see nothing.
    let causal = Attention { causal: true, ..grouped(4, 2, 64) };
    Case { batch: 2, interleaved: true, ..Case::new([20, 90], causal.clone()) }.agrees();
    Case::new([90, 20], Attention { lse_gradient: true, ..causal.clone() }).agrees();
    Case::new([300, 300], Attention { same_length: true, heads: 2, kv_heads: 1, ..causal }).agrees();
}

#[test]
fn heads_have_many_lengths() {
    for (head, value_head) in [(16, 24), (96, 0), (128, 0), (192, 128), (256, 0)] {
        let options = Attention { value_head, causal: true, same_length: true, ..grouped(2, 1, head) };
        let length = if head == 96 { 140 } else { 70 };
        Case::new([length; 2], options).agrees();
        let options = Attention { value_head, element: Element::F16, ..grouped(1, 1, head) };
        Case::new([30, 70], options).agrees();
    }
}

#[test]
fn windows_sinks_and_caps_have_gradients() {
    for (left, right) in [(20, 0), (0, 30), (70, 70), (-1, 20), (10, -1)] {
        let window = Attention { window_left: left, window_right: right, ..grouped(2, 1, 64) };
        Case::new([260, 260], Attention { same_length: true, heads: 1, ..window.clone() }).agrees();
        Case::new([30, 100], Attention { sinks: true, softcap: 2.0, ..window.clone() }).agrees();
        Case::new([100, 40], Attention { sinks: true, scale: -0.3, ..window }).agrees();
    }
}

#[test]
fn biases_have_gradients() {
    for (bias_heads, bias_batch) in [(true, true), (true, false), (false, true), (false, false)] {
        let bias = Attention { bias: true, bias_heads, bias_batch, ..grouped(4, 2, 16) };
        Case { batch: 2, ..Case::new([40, 70], bias.clone()) }.agrees();
        let bias_element = Element::Bf16;
        let own = Attention { causal: true, same_length: true, bias_element, softcap: 3.0, slopes: true, ..bias };
        Case { batch: 2, ..Case::new([70, 70], own) }.agrees();
    }
    let expression = "f32(key - query) * 0.125 + f32(head) * f32(key) * 0.25 - f32(batch * key)";
    let own = Attention { bias_expression: expression.to_string(), slopes: true, ..grouped(4, 2, 16) };
    Case { batch: 2, ..Case::new([40, 70], own) }.agrees();
}

/// Sequences one after another: with no query, no key, neither, more than a tile, fewer keys than
/// queries. No sequence reads a row of another, so the rows behind the last one, NaN, reach
/// nothing.
fn packed_agrees(lengths: &[[usize; 2]], options: &Attention) {
    let case = |number: usize| Case { number, ..Case::new(lengths[number], options.clone()) };
    let cases: Vec<Case> = (0..lengths.len()).map(case).collect();
    let given: Vec<Numbers> = cases.iter().map(Case::numbers).collect();
    let exact: Vec<Exact> = cases
        .iter()
        .zip(&given)
        .map(|(case, given)| case.exact(&Numbers { sinks: cases[0].numbers().sinks, ..given.clone() }))
        .collect();
    let [heads, kv] = cases[0].heads();
    let [wide, value] = cases[0].wide();
    let starts = |side: usize| -> Vec<f64> {
        let mut starts = vec![0.0];
        lengths.iter().for_each(|own| starts.push(starts[starts.len() - 1] + own[side] as f64));
        starts
    };
    const MORE: usize = 3;
    let [q, k] = [0, 1].map(|side| lengths.iter().map(|own| own[side]).sum::<usize>() + MORE);
    // From (sequence, head, row) to (row, head), with other numbers behind.
    let together = |of: &dyn Fn(usize) -> Vec<f64>, side: usize, heads: usize, wide: usize, behind: f64| -> Vec<f64> {
        let mut all = Vec::new();
        for (number, own) in lengths.iter().enumerate() {
            let numbers = of(number);
            for row in 0..own[side] {
                for head in 0..heads {
                    all.extend(&numbers[(head * own[side] + row) * wide..][..wide]);
                }
            }
        }
        all.extend(vec![behind; MORE * heads * wide]);
        all
    };
    // The same for one number for each head and row, `(head, row)`.
    let rows = |of: &dyn Fn(usize) -> Vec<f64>, behind: f64| -> Vec<f64> {
        let mut all = Vec::new();
        for head in 0..heads {
            for (number, own) in lengths.iter().enumerate() {
                all.extend(&of(number)[head * own[0]..][..own[0]]);
            }
            all.extend([behind; MORE]);
        }
        all
    };
    let nan = f64::NAN;
    let mut inputs = vec![
        ("q", together(&|at| given[at].q.clone(), 0, heads, wide, nan)),
        ("k", together(&|at| given[at].k.clone(), 1, kv, wide, nan)),
        ("v", together(&|at| given[at].v.clone(), 1, kv, value, nan)),
        ("cu_q", starts(0)),
        ("cu_k", starts(1)),
        ("sinks", given[0].sinks.clone()),
        ("slopes", given[0].slopes.clone()),
    ];
    let mut sizes = vec![("B", lengths.len() as i64), ("Q", q as i64), ("K", k as i64)];
    let pitches = [
        ("q_row", "q_head", heads, wide),
        ("k_row", "k_head", kv, wide),
        ("v_row", "v_head", kv, value),
        ("o_row", "o_head", heads, value),
    ];
    for (row, head, heads, wide) in pitches {
        sizes.extend([(row, (heads * wide) as i64), (head, wide as i64)]);
    }
    // What is there before is there after, behind the last sequence.
    let mut first = inputs.clone();
    first.extend([("o", vec![7.0; q * heads * value]), ("lse", vec![7.0; q * heads])]);
    let found = run(options.forward(), &sizes, &first);
    let about = format!("{options:?} of {lengths:?}");
    let o = |behind: f64| together(&|at| exact[at].o.clone(), 0, heads, value, behind);
    let lse = |behind: f64| rows(&|at| exact[at].lse.clone(), behind);
    close(&format!("o: {about}"), found.of("o"), &o(7.0), 8e-3);
    close(&format!("lse: {about}"), found.of("lse"), &lse(7.0), 1e-4);

    inputs.extend([
        ("o", o(nan)),
        ("lse", lse(nan)),
        ("d_o", together(&|at| given[at].d_o.clone(), 0, heads, value, nan)),
        ("d_lse", rows(&|at| given[at].d_lse.clone(), nan)),
        ("d_q", vec![7.0; q * heads * wide]),
        ("d_k", vec![7.0; k * kv * wide]),
        ("d_v", vec![7.0; k * kv * value]),
    ]);
    let found = run(options.backward(), &sizes, &inputs);
    let wanted = [
        ("d_q", together(&|at| exact[at].d_q.clone(), 0, heads, wide, 7.0)),
        ("d_k", together(&|at| exact[at].d_k.clone(), 1, kv, wide, 7.0)),
        ("d_v", together(&|at| exact[at].d_v.clone(), 1, kv, value, 7.0)),
    ];
    for (name, wanted) in wanted {
        // 7 is among the numbers, so the share is that of the greatest of the others.
        let most = wanted.iter().filter(|own| **own != 7.0).fold(0.0_f64, |most, own| most.max(own.abs()));
        close(&format!("{name}: {about}"), found.of(name), &wanted, 1.5e-2 * most / most.max(7.0));
    }
    if options.sinks {
        let sums: Vec<f64> = (0..heads).map(|head| exact.iter().map(|own| own.d_sinks[head]).sum()).collect();
        close(&format!("d_sinks: {about}"), found.of("d_sinks"), &sums, 1.5e-2);
    }
}

#[test]
fn sequences_of_different_lengths_do_not_meet() {
    let lengths = [[5, 5], [0, 40], [70, 90], [0, 0], [33, 20], [1, 0]];
    let causal = Attention { packed: true, causal: true, ..grouped(4, 2, 16) };
    packed_agrees(&lengths, &causal);
    let lse_gradient = true;
    packed_agrees(&lengths, &Attention { window_left: 10, window_right: 20, lse_gradient, ..causal.clone() });
    let expression = "f32(key - query) * 0.125 + f32(head) * f32(key) * 0.25 - f32(batch * key)".to_string();
    let own =
        Attention { causal: false, bias_expression: expression, slopes: true, sinks: true, softcap: 2.0, ..causal };
    packed_agrees(&lengths, &own);
    packed_agrees(&[[20, 20], [3, 9]], &Attention { packed: true, causal: true, ..grouped(2, 1, 192) });
    // More sequences than one iteration of the table takes, and more tiles than one of its blocks.
    let many: Vec<[usize; 2]> = (0..70).map(|at| if at == 40 { [130, 2] } else { [at % 2, 2] }).collect();
    packed_agrees(&many, &Attention { packed: true, ..grouped(1, 1, 16) });
}

/// Compiles the programs of an operator for a Hopper GPU of one multiprocessor, so that a block of
/// the launch takes several of the grid, and compares the kernels with what the programs mean.
/// Returns how many of them take wgmma.
fn kernels_agree(operator: &dyn Operator, backward: bool, sizes: &[(&str, i64)], starts: &[(&str, &[i32])]) -> usize {
    let sequence = if backward { operator.backward() } else { operator.forward() };
    let sequence = sequence.unwrap_or_else(|error| panic!("{error}"));
    let bytes = |all: &[i32]| all.iter().flat_map(|own| own.to_le_bytes()).collect::<Vec<u8>>();
    let contents: Vec<(&str, Vec<u8>)> = starts.iter().map(|(name, all)| (*name, bytes(all))).collect();
    let machine = Machine { multiprocessors: 1, ..Machine::of_target(Target::Sm90a) };
    let mut with_roles = 0;
    for program in sequence.programs() {
        let compiled = program.compile(&machine).unwrap_or_else(|error| panic!("{error}\n{program}"));
        let has = |name: &str| program.tensors().iter().any(|own| own.name == name);
        let names: Vec<&str> = compiled.kernel().program().sizes.iter().filter_map(|size| size.name()).collect();
        let own: Vec<(&str, i64)> = sizes.iter().filter(|(name, _)| names.contains(name)).copied().collect();
        let given: Vec<(&str, &[u8])> =
            contents.iter().filter(|own| has(own.0)).map(|(name, all)| (*name, all.as_slice())).collect();
        compiled
            .check(CheckOptions { sizes: &own, contents: &given })
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        let roles = compiled.explain().unwrap_or_else(|error| panic!("{error}")).roles;
        with_roles += usize::from(roles.iter().any(|line| line.contains("wgmma")));
    }
    with_roles
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let causal = Attention { causal: true, same_length: true, ..grouped(2, 1, 64) };
    let bias = Attention { bias: true, bias_heads: false, causal: false, ..causal.clone() };
    let window = Attention { window_left: 20, sinks: true, softcap: 4.0, ..grouped(1, 1, 16) };
    // How many programs take wgmma: the forward, and of the backward those with products.
    for (options, lengths, wanted) in
        [(causal, [140, 140], [1, 2]), (bias, [70, 70], [1, 3]), (window, [40, 70], [1, 2])]
    {
        let case = Case::new(lengths, options);
        let sizes = case.sizes();
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let found = [false, true].map(|backward| kernels_agree(&case.options, backward, &sizes, &[]));
        assert_eq!(found, wanted, "{:?}", case.options);
    }
}

#[test]
fn kernels_of_packed_sequences_and_caches_compute_what_their_programs_mean() {
    let packed = Attention { packed: true, causal: true, ..grouped(2, 1, 16) };
    let strides = ["q", "k", "v", "o"].map(|name| [(format!("{name}_row"), 32), (format!("{name}_head"), 16)]);
    let mut sizes: Vec<(&str, i64)> = strides.iter().flatten().map(|(name, own)| (name.as_str(), *own)).collect();
    sizes.extend([("B", 3), ("Q", 80), ("K", 90)]);
    let starts: [(&str, &[i32]); 2] = [("cu_q", &[0, 5, 5, 78]), ("cu_k", &[0, 9, 20, 88])];
    // The tables are those that the first program makes, for tiles of 64 rows.
    let tables: [(&str, &[i32]); 4] = [
        ("q_sequence", &[0, 2, 2, -1, -1]),
        ("q_tile", &[0, 0, 1, 2, 3]),
        ("k_sequence", &[0, 1, 2, 2, -1]),
        ("k_tile", &[0, 0, 0, 1, 2]),
    ];
    let contents = [&starts[..], &tables[..]].concat();
    kernels_agree(&packed, false, &sizes, &contents);
    kernels_agree(&packed, true, &sizes, &contents);

    for (paged, splits) in [(false, 2), (true, 2), (false, 1), (true, 1)] {
        let decode = AttentionDecode { heads: 2, head: 16, splits, paged, page: 16, ..AttentionDecode::default() };
        let strides = ["q", "k", "v", "o"].map(|name| {
            [("row", 16), ("head", 2048), ("page", 256), ("batch", 4096)]
                .map(|(axis, own)| (format!("{name}_{axis}"), own))
        });
        let mut sizes: Vec<(&str, i64)> = strides.iter().flatten().map(|(name, own)| (name.as_str(), *own)).collect();
        sizes.extend([("B", 2), ("T", 128), ("P", 8), ("L", 5), ("pages_row", 5)]);
        let pages = [7, 0, 3, 2, 1, 4, 5, 6, 0, 0];
        kernels_agree(&decode, false, &sizes, &[("lengths", &[70, 33]), ("pages", &pages)]);
        // Rows of the cache go through shared memory, copied ahead of their iterations.
        let split = &decode.forward().unwrap().programs()[0].compile(None).unwrap();
        let staged: Vec<String> = split.explain().unwrap().staged.into_iter().map(|own| own.tensor).collect();
        assert_eq!(staged, ["q", "k", "v"], "paged: {paged}");
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let own = grouped(4, 2, 64);
    for (options, words) in [
        (Attention { kv_heads: 3, ..own.clone() }, "attention: `heads` is 4, and it is a multiple of `kv_heads`, 3"),
        (Attention { kv_heads: 0, ..own.clone() }, "`kv_heads` is 0"),
        (Attention { head: 60, ..own.clone() }, "attention: `head` is 60, and it is a multiple of 8 from 16 to 256"),
        (Attention { value_head: 512, ..own.clone() }, "`value_head` is 512"),
        (Attention { element: Element::F32, ..own.clone() }, "matrix instructions take operands of bf16 and f16"),
        (Attention { alignment: 3, ..own.clone() }, "an alignment is a power of two"),
        (Attention { scale: f64::INFINITY, ..own.clone() }, "`scale` is inf, and it is a finite number"),
        (Attention { softcap: -1.0, ..own.clone() }, "`softcap` is -1"),
        (Attention { window_left: -2, ..own.clone() }, "`window_left` is -2"),
        (Attention { bias: true, bias_element: Element::I32, ..own.clone() }, "`bias_element` is i32"),
        (Attention { one_kernel: -1, ..own.clone() }, "`one_kernel` is -1, and it is the length of a row, or 0"),
        (Attention { packed: true, bias: true, ..own.clone() }, "use `bias_expression`"),
        (Attention { packed: true, same_length: true, ..own.clone() }, "`same_length` is true"),
        (Attention { bias_expression: "key\n}".to_string(), ..own.clone() }, "one expression in one line"),
        (Attention { bias_expression: "f32(kay)".to_string(), ..own }, "the value `kay` is not known"),
    ] {
        for refused in [options.forward(), options.backward()] {
            let error = refused.expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
    let own = AttentionDecode { heads: 16, ..AttentionDecode::default() };
    for (options, words) in [
        (
            AttentionDecode { queries: 9, ..own.clone() },
            "attention_decode: `queries` is 9, and a group of 16 heads has",
        ),
        (AttentionDecode { splits: 0, ..own.clone() }, "`splits` is 0, and there are 1 to 256 parts"),
        (AttentionDecode { paged: true, page: 0, ..own.clone() }, "`page` is 0"),
    ] {
        let error = options.forward().expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(own.backward().unwrap_err().to_string().contains("has no derivatives"));
}
