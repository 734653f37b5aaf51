//! Steps of AdamW beside the formula in f64.

use tilewright_ops::{AdamW, Operator};
use tilewright_tile::Element;

use crate::oracle::{check_kernels_of, close, numbers, run};

const LR: f64 = 0.01;
const BETAS: [f64; 2] = [0.9, 0.95];
const EPSILON: f64 = 1e-8;
const DECAY: f64 = 0.1;

fn share(element: Element) -> f64 {
    if element == Element::F32 { 1e-5 } else { 4e-3 }
}

#[test]
fn steps_are_those_of_the_formula() {
    let (f32, bf16) = (Element::F32, Element::Bf16);
    let cases = [
        (AdamW::default(), 1_usize, 1_i32),
        (AdamW { element: bf16, gradient_element: bf16, clip: true, ..AdamW::default() }, 2050, 7),
        (
            AdamW { element: bf16, gradient_element: bf16, state_element: bf16, master: true, ..AdamW::default() },
            300,
            1000,
        ),
    ];
    for (adamw, count, step) in cases {
        let (p, g, m) = (numbers(count, 1), numbers(count, 2), numbers(count, 3));
        let v: Vec<f64> = numbers(count, 4).iter().map(|own| own.abs()).collect();
        let clip = if adamw.clip { 0.25 } else { 1.0 };
        let corrections = BETAS.map(|beta| 1.0 - beta.powi(step));
        let (mut first, mut second, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..count {
            let d = g[at] * clip;
            first.push(BETAS[0] * m[at] + (1.0 - BETAS[0]) * d);
            second.push(BETAS[1] * v[at] + (1.0 - BETAS[1]) * d * d);
            let length = (second[at] / corrections[1]).sqrt() + EPSILON;
            after.push(p[at] - LR * DECAY * p[at] - LR * first[at] / corrections[0] / length);
        }
        let mut inputs: Vec<(&str, Vec<f64>)> = [
            ("lr", LR),
            ("beta1", BETAS[0]),
            ("beta2", BETAS[1]),
            ("epsilon", EPSILON),
            ("decay", DECAY),
            ("correction1", corrections[0]),
            ("correction2", corrections[1]),
        ]
        .map(|(name, value)| (name, vec![value]))
        .to_vec();
        inputs.extend([("p", p.clone()), ("master", p), ("g", g), ("m", m), ("v", v), ("clip", vec![clip])]);
        let found = run(adamw.forward(), &[("N", count as i64)], &inputs);
        close("p", found.of("p"), &after, share(adamw.element));
        if adamw.master {
            close("master", found.of("master"), &after, share(f32));
        }
        close("m", found.of("m"), &first, share(adamw.state_element));
        close("v", found.of("v"), &second, share(adamw.state_element));
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let bf16 = Element::Bf16;
    let adamw = AdamW { element: bf16, gradient_element: bf16, master: true, clip: true, ..AdamW::default() };
    check_kernels_of(adamw.forward(), &[("N", 2050)], &[]);
    check_kernels_of(AdamW { alignment: 8, element: bf16, ..AdamW::default() }.forward(), &[("N", 2056)], &[]);
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    for (adamw, text) in [
        (AdamW { state_element: Element::E4M3, ..AdamW::default() }, "`state_element` is e4m3"),
        (AdamW { alignment: 0, ..AdamW::default() }, "`alignment` is 0"),
    ] {
        let error = adamw.forward().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert!(AdamW::default().backward().unwrap_err().to_string().contains("no derivatives"));
}
