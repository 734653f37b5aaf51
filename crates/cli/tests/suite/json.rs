//! With `--json` every command answers with objects on standard output, whatever happens.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

fn run(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/relayout.in"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that does not read may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The objects on standard output; nothing may stand on standard error, and nothing else on
/// standard output.
fn objects(arguments: &[&str], input: &str) -> (Vec<Json>, Option<i32>) {
    let output = run(arguments, input);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(err, "", "{arguments:?}");
    let parsed = out.lines().map(|line| {
        let object: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"));
        assert!(object.is_object(), "{arguments:?}: {line}");
        object
    });
    (parsed.collect(), output.status.code())
}

/// A command, command lines of it that end well, and those that are refused.
type Case = (&'static str, &'static [&'static [&'static str]], &'static [&'static [&'static str]]);

const CASES: &[Case] = &[
    ("eval", &[&["4:2"], &["8:M"], &["-"]], &[&["(4,"], &["--file", "none.txt"]]),
    ("repl", &[&[]], &[]),
    ("show", &[&["4:2"], &["(M,4):(4,1)"], &["--table", "S<1,0,1>"]], &[&["(4,"], &["--all", "4611686018427387904:1"]]),
    ("check", &[&["4:2", "4:2"], &["coalesce((2,2):(1,2))"]], &[&["(4,"], &["4:1", "(4,"], &["size(4:1)"]]),
    ("draw", &[&["4:2"]], &[&["(4,"], &["(M,4):(4,1)"], &["SM80_16x8x16_F32F16F16F32_T"], &["4:2", "-o", "a.gif"]]),
    ("banks", &[&["(8,8):(8,1)"]], &[&["(4,"], &["(8,8):(8,1)", "--access", "(4,"], &["4:1@0"]]),
    ("access", &[&["(8,8):(8,1)"]], &[&["(4,"], &["(8,8):(8,1)", "--width", "3"]]),
    ("suggest", &[&["(8,8):(8,1)"]], &[&["(4,"], &["(M,8):(8,1)"], &["8:1", "-o", "none/a.svg"]]),
    ("footprint", &[&["(8,8):(8,1)"], &["8:1", "8:2"]], &[&["(4,"], &["--cycles", "8:2"]]),
    ("emit", &[&["(8,8):(8,1)"]], &[&["(4,"], &["[2:1]"], &["4:1", "--names", "int"]]),
    ("write", &[&["(4,8):(8,1)", "--as", "torch"]], &[&["(4,", "--as", "torch"], &["4:1", "--as", "jax"]]),
    ("same", &[&["4:2", "4:2"]], &[&["(4,", "4:2"], &["4:2", "(4,4)"]]),
    (
        "kernel",
        &[&["list"], &["show", "transpose"], &["check", "transpose", "M=30", "N=20"]],
        &[&["show", "none"], &["emit", "transpose", "-o", "/nowhere/a.ptx"]],
    ),
    (
        "relayout",
        &[&["matrix.npy", "--to", "(8,8):(1,8)", "--explain"]],
        &[&["none.npy", "--to", "8:1", "--explain"], &["matrix.npy", "--to", "(8,8):(1,1)", "--explain"]],
    ),
    ("gemm", &[&["--m", "4", "--n", "4", "--k", "4", "--repeat", "1", "--threads", "1"]], &[]),
    // Without a device, and without a file of PTX, there is nothing but wrong usage.
    ("tune", &[], &[]),
    ("sanitize", &[], &[]),
    ("bench", &[&["compare", "../bench.in/other.json"]], &[&["compare", "../bench.in/damaged.json"]]),
    ("explain", &[&["E0107"], &["4:2 o 2:1"]], &[&["(4,"], &["4:2", "-o", "none/a.html"]]),
    ("functions", &[&[], &["size"]], &[]),
    ("atoms", &[&["ldsm"], &["SM80_8x8x4_F64F64F64F64_TN"], &["SM75_U32x4_LDSM_N"]], &[]),
    ("morphism", &[&["(4,8):(8,1)"]], &[&["(4,"], &["S<1,0,1>"], &["(2,2):(1,7)"]]),
    (
        "compose",
        &[&["4:2", "2:1"], &["--by-refinement", "8:1", "2:3"]],
        &[&["(4,", "2:1"], &["(6,2):(1,7)", "(3,2):(2,3)"]],
    ),
    ("refine", &[&["(6,6)", "(12,3,6)"]], &[&["(4,", "4"], &["[2:1]", "4"], &["(4,6)", "(6,4)"]]),
    ("candidate", &[&["(4,8):(8,1)", "S<1,0,1> o 0 o 8:1"]], &[&["(4,"], &["S<1,0,1>"]]),
    ("tractable", &[&["(4,8):(8,1)"]], &[&["(4,"], &["S<1,0,1>"]]),
    (
        "mesh",
        &[
            &["show", "tp=2", "((2,2),3):((1,1@tp),2)"],
            &["show", "tp=2", "--shape", "4,3", "--placements", "[Shard(0)]"],
            &["reshard", "tp=2", "((2,2),3):((1,1@tp),2)", "(4,3) copied 2:1@tp"],
            &["multiply", "tp=2", "((2,2),4):((4,1@tp),1)", "(4,4) copied 2:1@tp", "((2,2),4):((4,1@tp),1)"],
            &["map", "tp=2", "(4,2):(1,1@tp)", "(4,2) copied 2:1@tp", "(4,2) summed 2:1@tp"],
            &["reduce", "tp=2", "(4,2):(1,1@tp)", "4:1 copied 2:1@tp", "--over", "1", "--by", "mean"],
            &["reduce", "tp=2", "(4,2):(1,1@tp)", "4:1 copied 2:1@tp", "--over", "1", "--by", "argmax"],
            &["softmax", "tp=2", "(4,2):(1,1@tp)", "(4,2):(1,1@tp)", "--over", "1"],
        ],
        &[
            &["show", "tp=2", "(4,3):(1,1)"],
            &["reshard", "tp=2", "((2,2),3):((1,1@tp),2)", "(3,4) copied 2:1@tp"],
            &["multiply", "tp=2", "(4,3) copied 2:1@tp", "(4,4) copied 2:1@tp", "(4,4) copied 2:1@tp"],
            &["reduce", "tp=2", "(4,2):(1,1@tp)", "4:1 copied 2:1@tp", "--over", "2"],
            &["softmax", "tp=2", "(4,2):(1,1@tp)", "4:1 copied 2:1@tp", "--over", "1"],
            &["map", "tp=2", "(4,2):(1,1@tp)", "4:1 copied 2:1@tp"],
        ],
    ),
    ("read", &[], &[&["none.log"]]),
    ("launch", &[&["-n", "2", "tilewright", "--json", "eval", "4:2"]], &[]),
    // It speaks a protocol of its own.
    ("lsp", &[], &[]),
    ("playground", &[], &[&["--page", "none.html", "-o", "a.html"]]),
    ("tour", &[&["--step", "1"]], &[]),
    ("completions", &[&["bash"]], &[]),
    ("man", &[&[], &["eval"]], &[]),
];

#[test]
fn every_command_answers_with_objects() {
    let help = String::from_utf8(run(&["--help"], "").stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed: BTreeSet<&str> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let tested: BTreeSet<&str> = CASES.iter().map(|(command, ..)| *command).chain(["help"]).collect();
    assert_eq!(listed, tested);

    for (command, good, refused) in CASES {
        for arguments in *good {
            let arguments = [&["--json", *command], *arguments].concat();
            let (objects, status) = objects(&arguments, "4:2\n");
            assert!(status == Some(0) && !objects.is_empty(), "{arguments:?}: {objects:?}");
            // The error of a product is a number; that of a refusal is an object.
            let refused = |object: &Json| object.get("error").is_some_and(Json::is_object);
            assert!(!objects.iter().any(refused), "{arguments:?}: {objects:?}");
        }
        for arguments in *refused {
            let arguments = [&[*command], *arguments, &["--json"]].concat();
            let (objects, status) = objects(&arguments, "");
            assert_eq!(status, Some(1), "{arguments:?}: {objects:?}");
            let error =
                objects.last().and_then(|object| object.get("error")).unwrap_or_else(|| panic!("{arguments:?}"));
            assert!(error["code"].is_string() && error["message"].is_string(), "{arguments:?}: {error}");
        }
        let arguments = [command, "--color", "mauve", "--json"];
        let (objects, status) = objects(&arguments, "");
        assert_eq!((objects.len(), status), (1, Some(2)), "{arguments:?}");
        assert_eq!(objects[0]["error"]["code"], "usage");
        assert!(objects[0]["error"]["message"].as_str().unwrap().contains("mauve"));
    }
}

#[test]
fn an_answer_that_is_no_is_an_object_too() {
    for (arguments, field, wanted, status) in [
        (&["check", "4:1", "4:2"][..], "holds", Json::Bool(false), 1),
        (&["check", "4:1", "4:1"], "holds", Json::Bool(true), 0),
        (&["check", "(4096,4096):(1,4096) o (4096,2048):(1,4096)"], "holds", Json::Null, 3),
        (&["tractable", "(2,2):(1,7)"], "tractable", Json::Bool(false), 1),
    ] {
        let (objects, code) = objects(&[arguments, &["--json"]].concat(), "");
        assert_eq!((objects.len(), code), (1, Some(status)), "{arguments:?}");
        assert_eq!(objects[0][field], wanted, "{arguments:?}: {objects:?}");
    }
}

#[test]
fn a_session_and_a_batch_have_an_object_a_line() {
    for arguments in [&["repl", "--json"][..], &["eval", "-", "--json"]] {
        let (objects, status) = objects(arguments, "size(4:1)\n(4,\n7\n");
        if arguments[0] == "eval" {
            assert_eq!(objects.len(), 3);
            assert_eq!(objects[1]["error"]["source"], "(4,");
        }
        assert_eq!(objects[0]["value"], 4);
        assert_eq!(status, Some(1));
    }
}

/// What cannot be written names the file, and what was written is an object.
#[test]
fn files_are_named() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("json");
    std::fs::create_dir_all(&folder).unwrap();
    for (arguments, name) in [
        (&["draw", "4:2"][..], "a.svg"),
        (&["banks", "(8,8):(8,1)"], "a.txt"),
        (&["access", "(8,8):(8,1)"], "a.svg"),
        (&["suggest", "(32,32):(32,1)", "--access", "columns"], "a.svg"),
        (&["footprint", "(8,8):(8,1)"], "a.svg"),
        (&["morphism", "(8,8):(8,1)"], "a.svg"),
        (&["compose", "--by-refinement", "(12,3,6):(1,72,12)", "(6,6):(1,6)"], "a.svg"),
        (&["refine", "(6,6)", "(12,3,6)"], "a.svg"),
        (&["explain", "4:2 o 2:1"], "a.html"),
        (&["relayout", "matrix.npy", "--to", "(8,8):(1,8)"], "a.npy"),
    ] {
        let output = run(&[arguments, &["-o", &format!("/nowhere/{name}")]].concat(), "");
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message, format!("error: /nowhere/{name}: there is no such directory\n"), "{arguments:?}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");

        let file = folder.join(name);
        let file = file.to_str().unwrap();
        let (objects, status) = objects(&[arguments, &["--json", "-o", file]].concat(), "");
        assert_eq!(
            (objects.as_slice(), status),
            (&[serde_json::json!({ "file": file })][..], Some(0)),
            "{arguments:?}"
        );

        // A file that may not be written is not replaced either.
        let mut permissions = std::fs::metadata(file).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(file, permissions).unwrap();
        let output = run(&[arguments, &["-o", file]].concat(), "");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("error: {file}: the file is read-only\n"));
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        std::fs::remove_file(file).unwrap();
    }
}
