//! `--machine`: the card that a plan is for.
//!
//! Law: every command that plans kernels takes the same names, its help has all of them, and a name
//! that no card has is refused with the list. What is planned without a device and without a name
//! is what is planned for an H200.

use std::path::Path;
use std::process::{Command, Output};

use tilewright::kernel::machine::Machine;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/relayout.in");
    command.args(arguments).current_dir(folder).env("COLUMNS", "1000").output().unwrap()
}

/// The words of what was printed, each once apart from the next: lines are cut anywhere.
fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Commands that plan without a device, but for the name of the machine.
const PLANS: [&[&str]; 7] = [
    &["gemm", "256", "512", "64", "--type", "bf16", "--plan", "--machine"],
    &["gemm", "--list", "64x64x64,8x8x8", "--plan", "--machine"],
    &["relayout", "matrix.npy", "--to", "(8,8):(1,8)", "--explain", "--threads", "1", "--machine"],
    &["kernel", "show", "softmax", "--machine"],
    &["kernel", "emit", "softmax", "--machine"],
    &["kernel", "cost", "softmax", "--machine"],
    &["kernel", "explain", "softmax", "--machine"],
];

#[test]
fn a_name_that_no_card_has_is_refused_with_the_list() {
    for arguments in PLANS {
        let output = run(&[arguments, &["H20"]].concat());
        let said = words(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(said.contains("no machine is called H20"), "{said}");
        assert!(said.contains(&Machine::NAMES.join(", ")), "{said}");
    }
}

#[test]
fn the_help_has_all_cards() {
    for command in [&["gemm"][..], &["relayout"], &["kernel", "show"], &["kernel", "explain"]] {
        let output = run(&[command, &["--help"]].concat());
        let said = words(&output.stdout);
        for name in Machine::NAMES {
            assert!(said.contains(name), "{command:?}: {name}");
        }
    }
}

/// Whatever the environment, no plan of another run is read here: there is no cache.
#[test]
fn without_a_device_an_h200_is_planned_for() {
    for arguments in [PLANS[0], PLANS[1]] {
        let (option, plain) = arguments.split_last().unwrap();
        assert_eq!(*option, "--machine");
        let [named, plain] = [run(&[arguments, &["h200"]].concat()), run(plain)];
        assert!(named.status.success(), "{}", words(&named.stderr));
        assert_eq!(words(&named.stdout), words(&plain.stdout));
    }
}

/// A machine changes the plan, and what is written for it.
#[test]
fn the_plan_follows_the_machine() {
    let arguments = ["kernel", "emit", "softmax", "--machine"];
    let targets = ["A100", "RTX 4090", "H100", "A10", "Orin", "B200", "RTX 5090", "GB10"].map(|name| {
        let output = run(&[&arguments[..], &[name]].concat());
        words(&output.stdout).split_once(".target ").map(|(_, after)| after.split(' ').next().unwrap().to_owned())
    });
    assert_eq!(
        targets,
        ["sm_80", "sm_89", "sm_90a", "sm_86", "sm_87", "sm_100", "sm_120", "sm_121"].map(|name| Some(name.to_owned()))
    );
    let moved = |name: &str| words(&run(&[PLANS[2], &[name]].concat()).stdout);
    assert!(moved("A100").contains("on A100:"), "{}", moved("A100"));
    assert_eq!(moved("A100").replace("A100", "H200"), moved("H200"));
}
