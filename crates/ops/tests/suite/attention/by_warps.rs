//! The forward of warps that multiply by `mma.sync`, run in the interpreter of kernels.

use tilewright_kernel::machine::Machine;
use tilewright_ops::{Attention, Operator};
use tilewright_tile::Element;

use super::runs::{Known, bytes_of, of_bf16};
use super::{Case, grouped};
use crate::oracle::close;

/// The numbers of bytes of f32.
fn of_f32(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(4).map(|own| f64::from(f32::from_le_bytes([own[0], own[1], own[2], own[3]]))).collect()
}

impl Case {
    /// Runs the forward for a card on numbers that are larger by a power of two, and compares `o`
    /// and `lse` with the oracle.
    fn forward_has_its_values(&self, card: &str, factor: f64) {
        let mut given = self.numbers();
        given.q.iter_mut().for_each(|own| *own *= factor);
        let exact = self.exact(&given);
        let inputs = [("q", &given.q), ("k", &given.k), ("v", &given.v)];
        let mut known: Known = inputs
            .iter()
            .map(|(name, all)| ((*name).to_string(), bytes_of(Element::Bf16, &self.spread(name, all))))
            .collect();
        let machine: Machine = card.parse().unwrap();
        assert_eq!(self.run_kernels(false, &machine, &mut known), ["attention"]);
        let found = |wanted: &str| &known.iter().find(|(name, _)| name == wanted).unwrap().1;
        let about = format!("{card}, {:?} of {} queries and {} keys", self.options, self.queries, self.keys);
        close(&format!("o: {about}"), &self.gathered("o", &of_bf16(found("o"))), &exact.o, 1e-2);
        close(&format!("lse: {about}"), &of_f32(found("lse")), &exact.lse, 1e-4);
    }
}

#[test]
fn warps_have_the_values_of_the_formula() {
    let whole = grouped(2, 1, 64);
    let causal = Attention { causal: true, same_length: true, ..whole.clone() };
    // Keys behind the last one, one tile and several, and blocks that are partly empty.
    for keys in [1, 33, 64, 150, 330] {
        Case::new([70, keys], whole.clone()).forward_has_its_values("A100", 1.0);
    }
    Case { batch: 2, interleaved: true, ..Case::new([130, 97], whole) }.forward_has_its_values("A100", 1.0);
    for length in [1, 31, 150, 300] {
        Case::new([length, length], causal.clone()).forward_has_its_values("A100", 1.0);
    }
    // Logits that differ much, so that sums are corrected in late tiles too.
    Case::new([150, 330], grouped(1, 1, 64)).forward_has_its_values("A100", 32.0);
    Case::new([150, 150], causal).forward_has_its_values("A100", 32.0);
    let wide = grouped(2, 1, 128);
    Case::new([70, 150], wide.clone()).forward_has_its_values("A100", 32.0);
    let causal = Attention { causal: true, same_length: true, ..wide };
    Case { batch: 2, interleaved: true, ..Case::new([150, 150], causal) }.forward_has_its_values("A100", 1.0);
}

#[test]
fn warps_are_for_the_common_case() {
    let is_own = |options: &Attention, card: &str| {
        let made = options.kernels(false, &card.parse::<Machine>().unwrap()).unwrap();
        made.text.contains("a kernel of its own")
    };
    let plain = Attention { causal: true, same_length: true, ..grouped(2, 1, 64) };
    for card in ["A100", "RTX 4090", "B200", "H200@sm_80"] {
        assert!(is_own(&plain, card), "{card}");
    }
    // Two blocks with heads of 128 have 64 KiB of shared memory each.
    let wide = Attention { head: 128, ..plain.clone() };
    assert!(is_own(&wide, "A100") && !is_own(&wide, "RTX 4090"));
    assert!(!is_own(&plain, "H200"));
    for other in [
        Attention { head: 96, ..plain.clone() },
        Attention { value_head: 128, ..plain.clone() },
        Attention { window_left: 10, ..plain.clone() },
        Attention { softcap: 1.0, ..plain.clone() },
        Attention { sinks: true, ..plain.clone() },
        Attention { alignment: 4, ..plain.clone() },
        Attention { same_length: false, ..plain.clone() },
    ] {
        assert!(!is_own(&other, "A100"), "{other:?}");
    }
}
