//! The backward in one kernel on Hopper, run in the interpreter of kernels.

use std::collections::HashSet;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::{self, Target};
use tilewright_ops::{Attention, Operator};
use tilewright_tile::{Element, SequenceTensor, TensorPurpose};

use super::runs::{Known, bytes_of, of_bf16};
use super::{Case, grouped};
use crate::oracle::close;

impl Case {
    /// Runs the kernels of the backward one after another on the interpreter of kernels, and
    /// compares what they leave with the oracle. Returns the names of the kernels.
    fn kernels_have_its_gradients(&self, target: Target) -> Vec<String> {
        let given = self.numbers();
        let exact = self.exact(&given);
        let inputs = [
            ("q", self.spread("q", &given.q)),
            ("k", self.spread("k", &given.k)),
            ("v", self.spread("v", &given.v)),
            ("o", self.spread("o", &exact.o)),
            ("d_o", self.spread("o", &given.d_o)),
        ];
        let mut known: Known =
            inputs.iter().map(|(name, all)| ((*name).to_string(), bytes_of(Element::Bf16, all))).collect();
        known.push(("lse".to_string(), bytes_of(Element::F32, &exact.lse)));
        known.push(("d_lse".to_string(), bytes_of(Element::F32, &given.d_lse)));
        let about = format!("{:?} of {} queries and {} keys", self.options, self.queries, self.keys);
        let machine = Machine::of_target(target);
        let names = self.run_kernels(true, &machine, &mut known);
        for (name, exact) in [("d_q", &exact.d_q), ("d_k", &exact.d_k), ("d_v", &exact.d_v)] {
            let found = known.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("there is no `{name}`"));
            close(&format!("{name}: {about}"), &self.gathered(&name[2..], &of_bf16(&found.1)), exact, 2e-2);
        }
        names
    }
}

/// Attentions of a head on a target, whole and causal.
fn has_the_gradients_of_its_formula(head: i64, in_turns: bool, target: Target) {
    let wanted = ["attention_rows", "attention_d_q_d_k_d_v", "attention_d_q_of_sums"];
    let whole = Attention { one_kernel: 128, in_turns, ..grouped(2, 1, head) };
    let causal = Attention { causal: true, ..whole.clone() };
    let same = Attention { same_length: true, ..causal.clone() };
    assert_eq!(Case::new([300, 300], same).kernels_have_its_gradients(target), wanted);
    // Keys behind the last one, and more keys than queries and fewer.
    assert_eq!(
        Case { batch: 2, interleaved: true, ..Case::new([70, 150], whole) }.kernels_have_its_gradients(target),
        wanted
    );
    assert_eq!(
        Case::new([100, 270], Attention { lse_gradient: true, ..causal.clone() }).kernels_have_its_gradients(target),
        wanted
    );
    assert_eq!(
        Case::new([330, 150], Attention { in_turns: false, ..causal }).kernels_have_its_gradients(target),
        wanted
    );
}

#[test]
fn one_kernel_has_the_gradients_of_its_formula() {
    for head in [64, 128] {
        has_the_gradients_of_its_formula(head, true, Target::Sm90a);
    }
}

#[test]
fn one_kernel_of_warps_has_the_gradients_of_its_formula() {
    for head in [64, 128] {
        has_the_gradients_of_its_formula(head, true, Target::Sm80);
    }
}

/// Products are in flight while others are set off, so nothing may copy their accumulators, not
/// even from a loop to one inside it.
#[test]
fn one_kernel_leaves_accumulators_in_their_registers() {
    for head in [64, 128] {
        let own = Attention { one_kernel: 128, causal: true, ..grouped(2, 1, head) };
        let kernels = own.kernels(true, &Machine::of_target(Target::Sm90a)).unwrap_or_else(|error| panic!("{error}"));
        let program = kernels.kernels[1].program();
        let text = ptx::write(program, Target::Sm90a).unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let sums = |line: &str| -> Vec<String> {
            let list = line.split(['{', '}']).nth(1).unwrap_or_default();
            list.split(", ").map(str::to_string).collect()
        };
        let products: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with("wgmma.mma_async")).collect();
        let accumulators: HashSet<String> = products.iter().flat_map(|at| sums(lines[*at])).collect();
        assert_eq!(accumulators.len(), 224, "head {head}");
        let (first, last) = (products[0], products[products.len() - 1]);
        for line in &lines[first..last] {
            let copied = line.strip_prefix("mov.b32 ").and_then(|rest| rest.split_once(", "));
            let is_kept = copied.is_none_or(|(_, from)| !accumulators.contains(from.trim_end_matches(';')));
            assert!(is_kept, "head {head}: {line}");
        }
    }
}

/// The assembler makes a branch of an addition with a predicate, and moves nothing across it.
#[test]
fn one_kernel_of_warps_adds_without_predicates() {
    for (head, causal, copies) in [(64, false, 3), (128, true, 2)] {
        let own = Attention { causal, in_turns: false, ..grouped(16, 16, head) };
        let kernels = own.kernels(true, &Machine::of_target(Target::Sm80)).unwrap_or_else(|error| panic!("{error}"));
        let program = kernels.kernels[1].program();
        let text = ptx::write(program, Target::Sm80).unwrap_or_else(|error| panic!("{error}"));
        let is_addition = |line: &&str| line.split_whitespace().any(|word| word == "red.global.add.f32");
        let additions: Vec<&str> = text.lines().map(str::trim).filter(is_addition).collect();
        assert_eq!(additions.len(), 32 * copies, "head {head}");
        assert!(additions.iter().all(|line| line.starts_with("red")), "head {head}: {}", additions[0]);
    }
}

/// A caller gives and gets what the programs say, whichever kernels compute it.
#[test]
fn kernels_of_their_own_have_the_tensors_of_the_programs() {
    let plain = Attention { one_kernel: 128, causal: true, same_length: true, ..grouped(2, 1, 64) };
    for (in_turns, card, is_backward) in
        [(true, "H200", true), (false, "H200", true), (false, "A100", true), (true, "A100", false)]
    {
        let own = Attention { in_turns, ..plain.clone() };
        let kernels = own.kernels(is_backward, &card.parse().unwrap()).unwrap_or_else(|error| panic!("{error}"));
        assert!(kernels.text.contains("a kernel of its own"), "{card}");
        let joined = kernels.joined().unwrap_or_else(|error| panic!("{error}"));
        let sequence = if is_backward { own.backward() } else { own.forward() };
        let given = |tensors: &[SequenceTensor]| -> Vec<(String, TensorPurpose)> {
            let seen = tensors.iter().filter(|tensor| tensor.purpose != TensorPurpose::Workspace);
            let mut seen: Vec<_> = seen.map(|tensor| (tensor.name.clone(), tensor.purpose)).collect();
            seen.sort_by(|a, b| a.0.cmp(&b.0));
            seen
        };
        let wanted = sequence.and_then(|own| Ok(own.tensors()?)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(given(joined.tensors()), given(&wanted), "{card}");
        // Each kernel finds its tensors, and workspaces have room.
        let names: Vec<&str> =
            wanted.iter().map(|tensor| tensor.name.as_str()).filter(|name| *name != "delta").collect();
        joined.bind(&names).unwrap_or_else(|error| panic!("{error}"));
        let sizes = Case::new([150, 150], own).sizes();
        let own: HashSet<&str> = joined.sizes().into_iter().collect();
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let sizes: Vec<(&str, i64)> = sizes.into_iter().filter(|(name, _)| own.contains(name)).collect();
        let at = joined.at(&sizes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(at.workspace_bytes > 0, is_backward, "{card}");
    }
}

#[test]
fn one_kernel_is_for_the_common_case() {
    let machine = Machine::of_target(Target::Sm90a);
    let plain = Attention { one_kernel: 128, causal: true, ..grouped(2, 1, 64) };
    let names = |options: &Attention, machine: &Machine| -> Vec<String> {
        let kernels = options.kernels(true, machine).unwrap_or_else(|error| panic!("{error}"));
        kernels.kernels.iter().map(|own| own.program().name.clone()).collect()
    };
    assert_eq!(names(&plain, &machine).len(), 3);
    for other in [
        Attention { head: 96, ..plain.clone() },
        Attention { value_head: 128, ..plain.clone() },
        Attention { window_left: 10, ..plain.clone() },
        Attention { softcap: 1.0, ..plain.clone() },
        Attention { one_kernel: 64, head: 128, ..plain.clone() },
        Attention { one_kernel: 0, ..plain.clone() },
    ] {
        let wanted = ["attention_delta", "attention_d_k_d_v", "attention_d_q"];
        assert_eq!(names(&other, &machine), wanted, "{other:?}");
    }
    // In any order one kernel is faster for heads of 128 on Hopper, too.
    let free_and_wide = Attention { in_turns: false, head: 128, one_kernel: 64, ..plain.clone() };
    assert_eq!(names(&free_and_wide, &machine)[1], "attention_d_q_d_k_d_v");
    // By warps, where two blocks have 81 KiB of shared memory each, or, for heads of 128, one has
    // 161 KiB.
    let own = |options: &Attention, card: &str| names(options, &card.parse().unwrap())[1].clone();
    let free = Attention { in_turns: false, ..plain.clone() };
    let wide = Attention { head: 128, one_kernel: 64, ..plain.clone() };
    assert_eq!(own(&free, "A100"), "attention_d_q_d_k_d_v");
    assert_eq!(own(&wide, "A100"), "attention_d_q_d_k_d_v");
    assert_eq!(own(&plain, "A100"), "attention_d_q_d_k_d_v");
    for (options, card) in
        [(&free, "RTX 4090"), (&wide, "RTX 4090"), (&Attention { one_kernel: 0, ..free.clone() }, "A100")]
    {
        assert_ne!(own(options, card), "attention_d_q_d_k_d_v", "{card}");
    }
}
