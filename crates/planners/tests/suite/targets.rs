//! Plans for cards.
//!
//! Law: a plan for a card is one that the card can run: its text is written for the target of the
//! card, which refuses more shared memory than a block has (E0926) and instructions that are new
//! in another target (E0921). A kernel whose instructions the card has not is not planned for it.
//! Plans for all cards compute the same.

use std::collections::HashSet;

use half::bf16;
use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx;
use tilewright_planners::{
    Entry, EntryOptions, PlanError, Planned, RowMatrix, layer_norm, library, product, rms_norm, softmax,
};

/// A card can run a plan.
fn fits(machine: &Machine, name: &str, plan: &Planned) {
    for kernel in plan.launches() {
        let program = kernel.program();
        let (taken, limit) = (program.shared_bytes, machine.multiprocessor.block_shared_bytes);
        assert!(taken <= limit, "{name} on {}: {taken} bytes of {limit}", machine.name);
        ptx::write(program, machine.target).unwrap_or_else(|error| panic!("{name} for {}: {error}", machine.name));
    }
}

/// The plan for a card; none, and a refusal, where the kernel has instructions
/// that the card has not.
fn planned(machine: &Machine, entry: &Entry, large: bool) -> Option<Planned> {
    let plan = entry.plan(machine, EntryOptions { large, ..EntryOptions::default() });
    let has_instructions = entry.name != "group_product" || machine.target.has_wgmma();
    match plan {
        Ok(plan) => {
            assert!(has_instructions, "{} is planned for {}", entry.name, machine.name);
            Some(plan)
        }
        Err(error) => {
            assert!(!has_instructions, "{} for {}: {error}", entry.name, machine.name);
            assert_eq!(error.code(), "E0936", "{error}");
            None
        }
    }
}

#[test]
fn plans_of_the_library_fit_each_card() {
    for entry in library() {
        for machine in Machine::all() {
            for plan in [false, true].into_iter().filter_map(|large| planned(&machine, entry, large)) {
                fits(&machine, entry.name, &plan);
            }
        }
    }
}

/// Every plan of a small problem, for any card, is right.
#[test]
fn plans_for_each_card_are_right() {
    for entry in library() {
        let mut checked = HashSet::new();
        for machine in Machine::all() {
            let Some(plan) = planned(&machine, entry, false) else { continue };
            fits(&machine, entry.name, &plan);
            let texts: Vec<String> =
                plan.launches().map(|kernel| ptx::write(kernel.program(), machine.target).unwrap()).collect();
            let body = |text: &String| text.split_once(".entry").map(|(_, body)| body.to_string());
            if checked.insert(texts.iter().map(body).collect::<Vec<_>>()) {
                plan.check().unwrap_or_else(|error| panic!("{} for {}: {plan}{error}", entry.name, machine.name));
            }
        }
    }
}

/// Cards with other numbers have other plans, where these decide: a planner that asks no machine
/// would give all the same.
#[test]
fn plans_follow_the_card() {
    type Planner<'a> = (&'a str, &'a dyn Fn(&Machine) -> Result<Planned, PlanError>);
    let named = |name: &'static str, sizes: &'static [(&'static str, i64)]| {
        move |machine: &Machine| {
            let entry = library().iter().find(|entry| entry.name == name).unwrap();
            entry.plan(machine, EntryOptions { sizes, large: true, ..EntryOptions::default() })
        }
    };
    let few = RowMatrix::new(16_384, Element::F32).with_rows(32);
    let long = RowMatrix::new(65_540, Element::F32);
    let transpose = named("transpose", &[("M", 1024), ("N", 1024)]);
    let (columns, whole) = (named("sum_columns", &[]), named("sum_all", &[]));
    let planners: [Planner<'_>; 8] = [
        ("softmax of few rows", &|machine| softmax(machine, few)),
        ("layer_norm of long rows", &|machine| layer_norm(machine, long, 1e-5)),
        ("rms_norm of long rows", &|machine| rms_norm(machine, long, 1e-5)),
        ("product", &|machine| product(machine, "product", Element::Bf16, [2048, 1792, 1024])),
        ("large product", &|machine| product(machine, "product", Element::Bf16, [4096; 3])),
        ("transpose", &transpose),
        ("sum of columns", &columns),
        ("sum of all", &whole),
    ];
    let texts = |planned: &Planned| -> Vec<String> {
        let text = |program| ptx::write(program, ptx::least(program).unwrap()).unwrap();
        planned.launches().map(|kernel| text(kernel.program())).collect()
    };
    for (name, plan) in planners {
        let all: HashSet<Vec<String>> = Machine::all().map(|machine| texts(&plan(&machine).unwrap())).collect();
        assert!(all.len() > 1, "{name}: one plan for all cards");
    }
}

/// Rows that a block holds in as much shared memory as blocks have on some cards.
#[test]
fn rows_fit_each_card() {
    for machine in Machine::all() {
        for columns in [20_000, 40_000, 60_000, 100_000, 200_000] {
            for element in [Element::F32, Element::Bf16] {
                for plan in [
                    softmax(&machine, (columns, element)),
                    rms_norm(&machine, (columns, element), 1e-5),
                    layer_norm(&machine, (columns, element), 1e-5),
                ] {
                    fits(&machine, "rows", &plan.unwrap());
                }
            }
        }
    }
}

#[test]
fn products_are_cut_as_cards_hold_them() {
    let (bf16, f16) = (Element::Bf16, Element::F16);
    for (factors, sizes) in
        [(bf16, [4096; 3]), (f16, [4095, 4104, 72]), (bf16, [128, 128, 64]), (f16, [8192, 256, 128])]
    {
        for machine in Machine::all() {
            fits(&machine, "product", &product(&machine, "product", factors, sizes).unwrap());
        }
    }
}

/// The plans for cards with less shared memory compute the product.
#[test]
fn smaller_cuts_are_right() {
    // Many tiles, so that the plan for Hopper is a large one; the interpreter runs a few of them.
    for card in ["A100", "RTX 4090"] {
        let machine = Machine::named(card).unwrap();
        let plan = product(&machine, "product", Element::Bf16, [4096, 4096, 4096]).unwrap();
        let facts: Vec<(&str, i64)> = plan
            .sizes()
            .iter()
            .map(|(name, _)| {
                let size = plan.kernel().program().sizes.iter().find(|own| own.name() == Some(*name)).unwrap();
                (*name, size.facts().divisor().max(1))
            })
            .collect();
        let (m, n, k) = (facts[0].1, facts[1].1, facts[2].1);
        let mut interpreter = tilewright_kernel::interpret::Interpreter::new(plan.kernel().program(), &facts).unwrap();
        let one = |count: i64| 0x3f80_u16.to_le_bytes().repeat(count as usize);
        interpreter.bytes(0, &one(m * k)).unwrap().bytes(1, &one(n * k)).unwrap();
        let run = interpreter.run(tilewright_kernel::interpret::Schedule::ALL[0]).unwrap();
        assert!(run.tensor::<bf16>(2).unwrap().iter().all(|sum| sum.to_f32() == k as f32), "{card}");
    }
}
