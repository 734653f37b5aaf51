//! The output of the command on each stream, and its exit status.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tilewright::Layout;
use tilewright::tensor::{Tensor, npy};

fn tilewright(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    tilewright(arguments).output().unwrap()
}

fn fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut child: Child = tilewright(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn results_and_messages_go_apart() {
    let good = run(&["eval", "(6,2):(8,2) o (4,3):(3,1)"]);
    assert_eq!((text(&good.stdout), text(&good.stderr)), ("((2,2),3):((24,2),8)\n", ""));
    assert_eq!(good.status.code(), Some(0));

    let refused = run(&["eval", "(6,2):(1,7) o (3,2):(2,3)"]);
    assert_eq!(text(&refused.stdout), "");
    assert!(text(&refused.stderr).starts_with("error[E0107]: composition: "));
    assert!(text(&refused.stderr).contains("^"));
    assert_eq!(refused.status.code(), Some(1));

    let misused = run(&["eval"]);
    assert_eq!(text(&misused.stdout), "");
    assert_eq!(misused.status.code(), Some(2));
    assert_eq!(run(&["explain", "E9999"]).status.code(), Some(2));
}

#[test]
fn colour_only_where_it_is_asked_for() {
    let escape = |output: &Output| output.stdout.contains(&0x1b) || output.stderr.contains(&0x1b);
    for arguments in [&["show", "(4,8)"][..], &["eval", "(4,"], &["functions"]] {
        assert!(!escape(&run(arguments)), "{arguments:?} goes to a pipe");
        let always: Vec<&str> = ["--color", "always"].iter().chain(arguments).copied().collect();
        assert!(escape(&run(&always)), "{always:?}");
        let never: Vec<&str> = ["--color", "never"].iter().chain(arguments).copied().collect();
        assert!(!escape(&run(&never)), "{never:?}");
    }
}

#[test]
fn a_reader_that_leaves_ends_the_command_quietly() {
    for arguments in [&["show", "--all", "(1000,100)"][..], &["man"], &["completions", "bash"], &["--help"]] {
        let mut child = tilewright(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!(message, "", "{arguments:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn a_batch_has_one_line_for_each_and_goes_on_after_an_error() {
    let output = fed(&["eval", "-"], b"size(4:1)\n(4,\n\xff\nsize(8:1)");
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!((lines[0], lines[3]), ("4", "8"));
    assert!(lines[1].starts_with("error: ") && lines[2].starts_with("error: "));
    assert_eq!(output.status.code(), Some(1));

    let output = fed(&["eval", "-"], b"size(4:1)\r\n\r\n");
    assert_eq!(text(&output.stdout).lines().next(), Some("4"));

    let output = fed(&["eval", "--json", "-"], b"4:2\n(4,\n");
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert!(lines[0].starts_with(r#"{"text":"4:2","kind":"layout","shape":4,"stride":2,"#), "{}", lines[0]);
    assert!(lines[1].starts_with(r#"{"error":{"code":"E"#), "{}", lines[1]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_is_a_batch() {
    let path = std::env::temp_dir().join(format!("tilewright-batch-{}.txt", std::process::id()));
    std::fs::write(&path, "A = 4:2; A o 2:1\nsize(4:1)\n").unwrap();
    let output = run(&["eval", "--file", path.to_str().unwrap()]);
    assert_eq!(text(&output.stdout), "2:2\n4\n");
    assert_eq!(output.status.code(), Some(0));

    // Its name alone is an expression, and the message says what was meant.
    let output = run(&["eval", path.to_str().unwrap()]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("to evaluate the lines of a file, write --file "), "{output:?}");
    assert!(text(&run(&["eval", "missing.txt"]).stderr).contains("write --file missing.txt"));
    assert!(text(&run(&["eval", "/tmp"]).stderr).contains("'/tmp' is a directory"));
    let output = run(&["eval", "--file", "/nowhere/missing.txt"]);
    assert_eq!(text(&output.stderr), "error: /nowhere/missing.txt: No such file or directory (os error 2)\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_hundred_thousand_lines_are_fast() {
    let batch: String = (0..100_000).map(|n| format!("(6,2):(8,{}) o (4,3):(3,1)\n", 2 + n % 7)).collect();
    let started = Instant::now();
    let output = fed(&["eval", "-"], batch.as_bytes());
    let elapsed = started.elapsed();
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 100_000);
    // Half a second is the aim for a release build; a debug build on a busy machine gets more.
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
}

#[test]
fn the_prompt_reads_a_pipe() {
    let output = fed(&["repl"], b"A = (4,\n8):(8,1)\nA(2,3)\n(4,8):(1)\n:names\n:help size\n:quit\ndepth(A)\n");
    assert!(text(&output.stdout).starts_with("(4,8):(8,1)\n19\n"), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("\nA\n"));
    assert!(text(&output.stdout).contains("size(A"));
    assert!(!text(&output.stdout).ends_with("\n1\n"), "nothing is read after :quit");
    assert!(text(&output.stderr).contains("error[E"), "an error is shown and the session goes on");
    assert_eq!(output.status.code(), Some(1), "and is in the exit status");
    assert_eq!(fed(&["repl"], b"size(4:1)\nquit\n(4,\n").status.code(), Some(0));
}

/// A process that writes a line and reads its answer before the next one is not left waiting.
#[test]
fn a_line_is_answered_before_the_next_one() {
    for arguments in [&["eval", "-"][..], &["eval", "-", "--json"], &["repl"], &["repl", "--json"]] {
        let mut child = tilewright(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        for number in 1..4 {
            writeln!(stdin, "size({number}:1)").unwrap();
            let mut answer = String::new();
            stdout.read_line(&mut answer).unwrap();
            assert!(answer.contains(&number.to_string()), "{arguments:?}: {answer}");
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

/// Ctrl-C in the midst of a line of searches.
#[cfg(target_os = "linux")]
mod interrupted {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::{Pid, Signal, kill_process};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// A layout whose right inverse is found by a long search.
    const SEARCHED: &str = "X = (16,2,3,2,9,9):(-1,1,16,16,5,1000)";

    /// Many such searches: seconds of work, in fewer characters than a terminal takes as one line.
    fn searches() -> String {
        format!("{}1:0", "A=right_inverse(X);".repeat(200))
    }

    /// How much processor time a process has taken, in the ticks of `/proc`.
    fn ticks(child: &Child) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Sends SIGINT once the process computes, which costs more than it takes to read the line.
    fn interrupt(child: &mut Child, before: u64) {
        let started = Instant::now();
        while ticks(child) < before + 5 {
            assert!(child.try_wait().unwrap().is_none() && started.elapsed().as_secs() < 60, "it does not compute");
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    }

    /// At the prompt, it ends the search, and so the line; the session goes on.
    #[test]
    fn the_prompt_goes_on() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        // Lines are read as they are: this terminal has no keys.
        let mut child = tilewright(&["repl"]).stdin(terminal).env("TERM", "dumb").spawn().unwrap();
        let mut keys = File::from(master);
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut until = |wanted: &str| output.by_ref().map(Result::unwrap).find(|line| line.ends_with(wanted)).unwrap();

        writeln!(keys, "{SEARCHED}\nsize(7:1)").unwrap();
        until("7");
        let before = ticks(&child);
        writeln!(keys, "{}", searches()).unwrap();
        interrupt(&mut child, before);
        assert!(errors.by_ref().map(Result::unwrap).any(|line| line.contains("E0129")));
        writeln!(keys, "size(8:1)").unwrap();
        until("8");
        writeln!(keys, ":quit").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }

    /// A command ends, as any program does.
    #[test]
    fn a_command_ends() {
        let mut child = tilewright(&["eval", &format!("{SEARCHED}; {}", searches())]).spawn().unwrap();
        interrupt(&mut child, 0);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    }
}

#[test]
fn a_batch_has_comments_and_may_share_names() {
    let output = fed(&["eval", "-"], b"\xef\xbb\xbfsize(4:1)\n\n  # tiles\nsize(8:1)\n");
    assert_eq!((text(&output.stdout), output.status.code()), ("4\n\n\n8\n", Some(0)));
    let output = fed(&["eval", "--json", "-"], b"# tiles\n\n7\n");
    assert_eq!(text(&output.stdout), "null\nnull\n{\"text\":\"7\",\"kind\":\"integer\",\"value\":7}\n");

    let lines = b"A = (4,8):(8,1)\nA.size()\n";
    assert_eq!(fed(&["eval", "-"], lines).status.code(), Some(1));
    assert_eq!(text(&fed(&["eval", "--keep-names", "-"], lines).stdout), "(4,8):(8,1)\n32\n");
}

/// Results that nobody can read are a failure; a file that is written instead is none.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_output_is_said() {
    let closed = |arguments: &str| {
        let script = format!("exec '{}' {arguments} >&-", env!("CARGO_BIN_EXE_tilewright"));
        Command::new("sh").args(["-c", &script]).output().unwrap()
    };
    let output = closed("eval 8:1");
    assert_eq!(text(&output.stderr), "error: standard output is closed\n");
    assert_eq!(output.status.code(), Some(1));
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("closed.svg");
    let output = closed(&format!("draw 8:1 -o '{}'", file.display()));
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    assert_eq!(run(&["eval", "8:1"]).status.code(), Some(0));
    assert!(tilewright(&["eval", "8:1"]).stdout(Stdio::null()).status().unwrap().success());
}

/// A full disk is a failure.
#[test]
fn what_cannot_be_written_is_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = tilewright(&["eval", "8:1"]);
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).starts_with("error: No space left on device"));
}

/// What is asked of the command itself is answered as everything else is: as objects with `--json`,
/// and a full disk is a failure.
#[test]
fn help_and_version_are_answers() {
    let version = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)), "{arguments:?}");
        serde_json::from_str::<serde_json::Value>(text(&output.stdout)).unwrap_or_else(|error| panic!("{error}"))
    };
    for arguments in [&["--json", "--version"][..], &["--version", "--json"]] {
        let wanted = serde_json::json!({ "name": "tilewright", "version": env!("CARGO_PKG_VERSION") });
        assert_eq!(version(arguments), wanted);
    }
    for arguments in
        [&["--json", "help"][..], &["--json", "--help"], &["--json", "help", "eval"], &["eval", "--help", "--json"]]
    {
        let object = version(arguments);
        assert!(object["text"].as_str().is_some_and(|text| text.contains("Usage:")), "{arguments:?}: {object}");
    }
    for arguments in [&["--help"][..], &["help"], &["--version"], &["eval", "--help"], &["--json", "--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = tilewright(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("No space left on device"), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// A link stays a link, and what it names is written, whether or not it was there; the command says
/// which file that is.
#[cfg(unix)]
#[test]
fn what_a_link_names_is_written() {
    let folder = std::env::temp_dir().join(format!("tilewright-links-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("far")).unwrap();
    let (file, link, second) = (folder.join("far/picture.svg"), folder.join("link.svg"), folder.join("second.svg"));
    std::os::unix::fs::symlink("far/picture.svg", &link).unwrap();
    std::os::unix::fs::symlink(&link, &second).unwrap();
    for (layout, name) in [("4:1", &link), ("8:1", &link), ("2:1", &second)] {
        let output = run(&["draw", layout, "-o", name.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(said.contains("is a link") && said.contains("far/picture.svg"), "{said}");
        assert!([&link, &second].iter().all(|name| std::fs::symlink_metadata(name).unwrap().is_symlink()));
        let drawn = std::fs::read_to_string(&file).unwrap();
        assert!(drawn.contains(layout), "{layout} is not what {} shows", file.display());
    }
    // A link to itself, and one into a directory that is not there.
    for (name, to) in [("ring.svg", "ring.svg"), ("lost.svg", "nowhere/picture.svg")] {
        let link = folder.join(name);
        std::os::unix::fs::symlink(to, &link).unwrap();
        let output = run(&["draw", "4:1", "-o", link.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).starts_with("error: "), "{}", text(&output.stderr));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "{name} was replaced");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn bad_input_is_an_error_and_nothing_worse() {
    let deep = "(".repeat(100_000) + &")".repeat(100_000);
    let long = "1,".repeat(40_000);
    for source in [
        "",
        " ",
        "(",
        ")",
        "4:",
        ":4",
        "0:1",
        "(-4):1",
        "9223372036854775807:9223372036854775807",
        "(4,8):(1)",
        "9223372036854775808",
        "f(",
        "nothing(4)",
        "size()",
        "(4,8)((1,2,3))",
        "4 4",
        "é:ü",
        &long,
    ] {
        for command in ["eval", "show", "check", "explain"] {
            let output = run(&[command, source]);
            let code = output.status.code();
            assert!(matches!(code, Some(0..=2)), "{command} {source:.40}: {}", text(&output.stderr));
            if command == "eval" && !source.starts_with("9223372036854775807") {
                assert_eq!(code, Some(1), "{source:.40}: {}", text(&output.stdout));
                assert!(text(&output.stderr).starts_with("error[E"), "{source:.40}");
            }
        }
    }
    assert_eq!(fed(&["eval", "-"], deep.as_bytes()).status.code(), Some(1));
}

/// Killed at twelve moments of its run: there is no output, or all of it.
#[test]
fn what_is_killed_leaves_no_broken_file() {
    let directory = std::env::temp_dir().join(format!("tilewright-killed-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (input, output) = (directory.join("in.npy"), directory.join("out.npy"));
    let rows: Layout = "(1024,1024):(1024,1)".parse().unwrap();
    npy::write(&input, &Tensor::filled(rows, 7_u16).unwrap().view()).unwrap();
    let arguments =
        ["relayout", input.to_str().unwrap(), "--to", "(1024,1024):(1,1024)", "-o", output.to_str().unwrap()];
    let started = Instant::now();
    assert!(run(&arguments).status.success());
    let whole = started.elapsed();
    for moment in 0..12 {
        std::fs::remove_file(&output).ok();
        let mut child = tilewright(&arguments).spawn().unwrap();
        std::thread::sleep(whole * moment / 12);
        child.kill().unwrap();
        child.wait().unwrap();
        if output.exists() {
            let read: Tensor<u16> = npy::read(&output).unwrap();
            assert!(read.as_slice().iter().all(|element| *element == 7) && read.size() == 1 << 20, "{moment}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn every_shell_has_a_script_and_every_command_a_page() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert!(text(&output.stdout).contains("tilewright") && output.status.success(), "{shell}");
    }
    for command in ["eval", "repl", "show", "check", "explain", "functions", "tour", "completions", "man"] {
        let output = run(&["man", command]);
        assert!(text(&output.stdout).contains(&format!("tilewright-{command}")), "{command}");
        assert!(run(&[command, "--help"]).status.success(), "{command}");
    }
    assert_eq!(run(&["man", "nothing"]).status.code(), Some(2));
}

#[test]
fn the_tour_checks_what_it_shows_and_fits_the_page() {
    let output = run(&["tour"]);
    let whole = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{whole}{}", text(&output.stderr));
    assert!(!whole.contains("FAILED"), "{whole}");
    assert!(whole.matches("checked: ").count() >= 19);
    for line in whole.lines() {
        assert!(line.chars().count() <= 100, "{} characters: {line}", line.chars().count());
    }
    // The steps one by one are the steps together.
    let mut together = String::new();
    for step in 1..=8 {
        let output = run(&["tour", "--step", &step.to_string()]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("checked: "), "step {step} checks nothing");
        together.push_str(text(&output.stdout));
    }
    assert!(whole.contains(&together));
    assert_eq!(run(&["tour", "--step", "9"]).status.code(), Some(2));
}
