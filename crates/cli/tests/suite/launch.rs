//! `tilewright launch`: what it started ends with it, and its exit status is that of the process
//! that failed first.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

const TILEWRIGHT: &str = env!("CARGO_BIN_EXE_tilewright");
/// Twice the time that processes get to end, and what a busy machine needs.
const BOUND: Duration = Duration::from_secs(20);

/// A launcher of this many processes, each a script of a shell.
fn launcher(count: usize, script: &str) -> Child {
    let mut command = Command::new(TILEWRIGHT);
    command.args(["launch", "-n", &count.to_string(), "--", "sh", "-c", script]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The exit status, within the bound.
fn ended(child: &mut Child) -> Option<i32> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(since.elapsed() < BOUND, "the launcher does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The numbers of processes that a launcher's processes write, a line each.
fn numbers(launcher: &mut Child, count: usize) -> Vec<Pid> {
    let mut lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
    let numbers: Vec<_> =
        (0..count).map(|_| Pid::from_raw(lines.next().unwrap().unwrap().parse().unwrap()).unwrap()).collect();
    // What they write later has somewhere to go.
    std::thread::spawn(move || lines.for_each(drop));
    numbers
}

/// That all of these processes end.
fn are_gone(all: &[Pid]) {
    let since = Instant::now();
    // A process that nobody waits for is there as long as its entry is.
    let is_there = |id: &&Pid| {
        test_kill_process(**id).is_ok()
            && !std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero()))
                .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    };
    while let Some(id) = all.iter().find(is_there) {
        assert!(since.elapsed() < BOUND, "process {} is left", id.as_raw_nonzero());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_to_the_launcher_ends_all_that_it_started() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        // Each shell starts a process of its own, and a handler is given the time to run.
        let mut launcher = launcher(3, "echo $$; sleep 1000 & echo $!; wait");
        let all = numbers(&mut launcher, 6);
        kill_process(Pid::from_child(&launcher), signal).unwrap();
        assert_eq!(ended(&mut launcher), Some(status));
        are_gone(&all);
    }
}

#[test]
fn processes_that_ignore_the_signal_are_killed() {
    let mut launcher = launcher(2, "trap '' TERM INT HUP; echo $$; while true; do sleep 0.1; done");
    let all = numbers(&mut launcher, 2);
    kill_process(Pid::from_child(&launcher), Signal::TERM).unwrap();
    assert_eq!(ended(&mut launcher), Some(143));
    are_gone(&all);
}

#[test]
fn processes_end_where_their_launcher_is_killed() {
    let mut launcher = launcher(3, "echo $$; exec sleep 1000");
    let all = numbers(&mut launcher, 3);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    are_gone(&all);
}

#[test]
fn exit_statuses_are_passed_on() {
    for (script, status, said) in [
        ("exit 0", 0, ""),
        ("exit 7", 7, "failed first: exit status: 7"),
        ("kill -9 $$", 137, "failed first: signal: 9"),
        // The other would go on; it is ended when it did not end by itself.
        ("test $RANK = 0 && exit 9; sleep 1000", 9, "rank 0 failed first: exit status: 9"),
    ] {
        let mut launcher = launcher(2, script);
        assert_eq!(ended(&mut launcher), Some(status), "{script}");
        let told = std::io::read_to_string(launcher.stderr.take().unwrap()).unwrap();
        assert!(told.contains(said), "{script}: {told}");
    }
}

#[test]
fn the_processes_of_a_job_share_a_token_that_no_other_job_has() {
    let token = || {
        let mut command = Command::new(TILEWRIGHT);
        let done = command.args(["launch", "-n", "2", "sh", "-c", "echo $TILEWRIGHT_TOKEN"]).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines[0] == lines[1] && lines[0].len() == 32, "{text}");
        lines[0].to_owned()
    };
    assert_ne!(token(), token());
}
