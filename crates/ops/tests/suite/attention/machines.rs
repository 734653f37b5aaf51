//! Attention on cards without products of warpgroups.
//!
//! Law: each kernel that is planned for a card fits it, so its text is written for the card's
//! target; and it computes what its program means.

use std::collections::HashSet;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx;
use tilewright_ops::{Attention, Operator};
use tilewright_tile::{CheckOptions, Program};

use super::{Case, grouped};

/// The programs of a text that has several.
fn programs(text: &str) -> Vec<Program> {
    let starts: Vec<usize> = text.match_indices("tile ").map(|(at, _)| at).collect();
    let starts: Vec<usize> =
        starts.into_iter().filter(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n')).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(begin, end)| text[*begin..end].parse().unwrap()).collect()
}

/// The kernels of an attention for some cards: all fit. At these lengths each differing kernel
/// computes what its program means, if that is asked for.
fn fits(options: &Attention, lengths: [usize; 2], cards: &[&str], runs: bool) {
    let case = Case::new(lengths, options.clone());
    let sizes = case.sizes();
    let mut seen = HashSet::new();
    for card in cards {
        let machine: Machine = card.parse().unwrap();
        for is_backward in [false, true] {
            let made = options.kernels(is_backward, &machine).unwrap_or_else(|error| panic!("{card}: {error}"));
            // A kernel of its own has its tests beside: here it is written for the card alone.
            if made.text.contains("a kernel of its own") {
                made.kernels.iter().for_each(|own| drop(ptx::write(own.program(), machine.target).unwrap()));
                continue;
            }
            let programs = programs(&made.text);
            assert_eq!(programs.len(), made.kernels.len(), "{}", made.text);
            for (program, kernel) in programs.iter().zip(&made.kernels) {
                let text = ptx::write(kernel.program(), machine.target)
                    .unwrap_or_else(|error| panic!("{card}, {options:?}: {error}\n{program}"));
                let body = text.split_once(".entry").map(|(_, body)| body.to_owned());
                if !runs || !seen.insert(body) {
                    continue;
                }
                let compiled = program.compile(&machine).unwrap();
                let own = compiled.kernel().program().sizes.iter().filter_map(|size| size.name());
                let own: HashSet<&str> = own.collect();
                let sizes: Vec<(&str, i64)> = sizes
                    .iter()
                    .map(|(name, size)| (name.as_str(), *size))
                    .filter(|(name, _)| own.contains(name))
                    .collect();
                compiled
                    .check(CheckOptions { sizes: &sizes, contents: &[] })
                    .unwrap_or_else(|error| panic!("{card}: {error}\n{program}"));
            }
        }
    }
}

const CARDS: [&str; 3] = ["A100", "RTX 4090", "B200"];

#[test]
fn kernels_for_each_card_compute_what_their_programs_mean() {
    let causal = |head| Attention { causal: true, same_length: true, ..grouped(2, 1, head) };
    fits(&causal(64), [150, 150], &CARDS, true);
    fits(&grouped(1, 1, 64), [70, 90], &CARDS[..2], true);
    fits(&causal(128), [70, 70], &CARDS[..2], true);
}

#[test]
fn kernels_fit_each_card() {
    let wide = Attention { causal: true, softcap: 30.0, ..grouped(2, 1, 256) };
    let biased = Attention { bias: true, slopes: true, ..grouped(2, 1, 128) };
    let packed = Attention { packed: true, causal: true, ..grouped(4, 1, 128) };
    let packed_wide = Attention { packed: true, ..grouped(2, 1, 256) };
    for options in [wide, biased, packed, packed_wide] {
        fits(&options, [70, 70], &["A100", "RTX 3090", "RTX 5090"], false);
    }
}
