//! `tilewright mesh run` between processes: what they hold is right, and when one dies, hangs or is
//! about to do something else, every other ends with an error that names it, within a stated time.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TILEWRIGHT: &str = env!("CARGO_BIN_EXE_tilewright");
const PATIENCE: u64 = 2;
/// What the processes of one job prove to each other at the rendezvous.
const TOKEN: &str = "token-of-the-tests";
/// Twice the patience and two seconds, as promised, and what a busy machine needs to start.
const BOUND: Duration = Duration::from_secs(2 * PATIENCE + 2 + 10);

/// Three layouts over three devices: an all-to-all, and a sum that is made in parts.
const TURNED: [&str; 3] = ["tp=3", "((200,3),3):((1,1@tp),200)", "(600,3):(1,1@tp)"];
const SUMMED: [&str; 3] = ["tp=3", "30000:1 summed 3:1@tp", "30000:1 copied 3:1@tp"];

fn start(rank: usize, ranks: usize, port: u16, arguments: &[&str]) -> Child {
    let mut command = Command::new(TILEWRIGHT);
    command.args(["mesh", "run"]).args(arguments).arg(format!("--patience={PATIENCE}"));
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", ranks.to_string());
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.env("TILEWRIGHT_TOKEN", TOKEN);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The exit status and standard error of each, all within the bound.
fn ended(children: Vec<(usize, Child)>) -> Vec<(usize, Option<i32>, String)> {
    let since = Instant::now();
    let mut ended = Vec::new();
    for (rank, mut child) in children {
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(since.elapsed() < BOUND, "rank {rank} does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        ended.push((rank, status.code(), told));
    }
    ended
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn what_processes_hold_is_what_the_simulation_says() {
    for (ranks, arguments) in [
        ("3", TURNED.to_vec()),
        ("3", [SUMMED.as_slice(), &["--type", "f32", "--rounds", "3"]].concat()),
        ("1", vec!["tp=1", "(4,3):(3,1)", "(4,3):(1,4)"]),
        ("4", vec!["dp=2,tp=2", "(8,(4,2)):(1,(8,1@tp)) summed 2:1@dp", "((4,2),8):((1,1@dp),4) copied 2:1@tp"]),
    ] {
        let mut command = Command::new(TILEWRIGHT);
        command.args(["launch", "-n", ranks, "tilewright", "mesh", "run"]).args(arguments);
        let done = command.output().unwrap();
        let told = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(told.starts_with(&format!("{ranks} process")) && told.contains("bit by bit"), "{told}");
    }
}

/// Products in which a factor is gathered, sums are scattered, and both; reductions, softmax and a
/// function of elements along modes that are cut.
const OPERATIONS: [(&str, &str); 8] = [
    ("4", "multiply tp=4 ((12,4),64):((64,1@tp),1) (64,(16,4)):(1,(64,1@tp)) (48,(16,4)):(48,(1,1@tp))"),
    ("3", "multiply tp=3 (48,(20,3)):(1,(48,1@tp)) ((20,3),40):((1,1@tp),20) ((16,3),40):((40,1@tp),1)"),
    (
        "4",
        "multiply x=2,y=2 ((24,2),(24,2)):((1,1@x),(24,1@y)) ((24,2),(24,2)):((1,1@x),(24,1@y)) ((24,2),(24,2)):((1,1@x),(24,1@y))",
    ),
    ("3", "reduce tp=3 ((40,3),50):((1,1@tp),40) 50:1copied3:1@tp --over 0 --by max"),
    ("3", "reduce tp=3 ((40,3),50):((1,1@tp),40) 50:1copied3:1@tp --over 0 --by argmax"),
    ("2", "reduce tp=2 (40,50)summed2:1@tp ((20,2),):((1,1@tp),) --over 1 --by mean"),
    ("3", "softmax tp=3 ((40,3),50):((1,1@tp),40) ((40,3),50):((1,1@tp),40) --over 0"),
    ("2", "map tp=2 (40,(25,2)):(1,(40,1@tp)) (40,50)summed2:1@tp (40,50):(50,1)copied2:1@tp"),
];

/// The words of a command; `copied` and `summed` stand without spaces.
fn words(command: &str) -> Vec<String> {
    let word = |word: &str| word.replace("copied", " copied ").replace("summed", " summed ");
    command.split(' ').map(word).collect()
}

#[test]
fn what_processes_compute_is_what_defines_it() {
    for (ranks, operation) in OPERATIONS {
        let mut command = Command::new(TILEWRIGHT);
        command.args(["launch", "-n", ranks, "tilewright", "mesh"]).args(words(operation));
        let done = command.args(["--run", "--rounds", "3"]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{operation}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(said.contains(&format!("{ranks} processes: ")) && said.contains("bit by bit"), "{said}");
        // The plan stands before it.
        assert!(said.contains("one after another"), "{said}");
    }
}

#[test]
fn a_rank_that_dies_in_an_operation_is_named_by_all_others() {
    let mut seed = 41;
    for (ranks, operation) in OPERATIONS.into_iter().filter(|(ranks, _)| *ranks != "2") {
        let (port, ranks) = (free_port(), ranks.parse::<usize>().unwrap());
        let victim = random(&mut seed) as usize % ranks;
        let process = |rank: usize| {
            let mut command = Command::new(TILEWRIGHT);
            command.arg("mesh").args(words(operation)).args(["--run", "--rounds", "100000000"]);
            command.arg(format!("--patience={PATIENCE}"));
            command.env("RANK", rank.to_string()).env("WORLD_SIZE", ranks.to_string());
            command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
            command.env("TILEWRIGHT_TOKEN", TOKEN);
            (rank, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        };
        let mut children: Vec<_> = (0..ranks).map(process).collect();
        std::thread::sleep(Duration::from_millis(1200 + random(&mut seed) % 600));
        let (_, mut lost) = children.remove(victim);
        lost.kill().unwrap();
        lost.wait().unwrap();
        for (rank, status, said) in ended(children) {
            assert_eq!(status, Some(1), "{operation}, rank {rank}: {said}");
            let named = said.contains("error[E1111]") && said.contains(&format!("rank {victim} is lost, "));
            assert!(named, "{operation}: rank {victim} went, and rank {rank} says {said}");
        }
    }
}

#[test]
fn a_rank_that_dies_or_hangs_is_named_by_all_others() {
    let mut seed = 20_261_123;
    for case in 0..8 {
        let (port, victim) = (free_port(), random(&mut seed) as usize % 3);
        let arguments = if case % 2 == 0 { TURNED } else { SUMMED };
        let arguments = [arguments.as_slice(), &["--rounds", "100000000"]].concat();
        let mut children: Vec<_> = (0..3).map(|rank| (rank, start(rank, 3, port, &arguments))).collect();
        // Sometimes while they connect, mostly in the midst of a step.
        std::thread::sleep(Duration::from_millis(random(&mut seed) % 600));
        let (_, mut lost) = children.remove(victim);
        let hangs = case >= 6;
        if hangs {
            let id = rustix::process::Pid::from_child(&lost);
            rustix::process::kill_process(id, rustix::process::Signal::STOP).unwrap();
        } else {
            lost.kill().unwrap();
            lost.wait().unwrap();
        }
        let ended = ended(children);
        let _ = lost.kill();
        let _ = lost.wait();
        for (rank, status, told) in ended {
            assert_eq!(status, Some(1), "case {case}, rank {rank}: {told}");
            // It went in the midst of a step, or before all had connected.
            let when = ["step", "connect"].iter().any(|step| told.contains(step));
            let lost = when && told.contains(&format!("rank {victim} is lost, "));
            let absent = told.contains(&format!("rank {victim} did not connect within "));
            let named = told.contains("error[E1111]") && (lost || absent);
            assert!(named, "case {case}: rank {victim} went, and rank {rank} says {told}");
        }
    }
}

#[test]
fn a_rank_that_is_interrupted_says_so_and_is_named_by_all_others() {
    let port = free_port();
    let arguments = [TURNED.as_slice(), &["--rounds", "100000000"]].concat();
    let children: Vec<_> = (0..3).map(|rank| (rank, start(rank, 3, port, &arguments))).collect();
    std::thread::sleep(Duration::from_millis(1500));
    let id = rustix::process::Pid::from_child(&children[1].1);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    for (rank, status, told) in ended(children) {
        assert_eq!(status, Some(1), "rank {rank}: {told}");
        let said = if rank == 1 { "error[E1114]: rank 1 was interrupted, " } else { "error[E1111]: rank 1 is lost, " };
        assert!(told.contains(said) && told.contains("step"), "rank {rank}: {told}");
    }
}

#[test]
fn a_rank_that_is_about_to_do_something_else_is_named_by_all() {
    for (other, what) in [
        (["tp=3", "((200,3),3):((1,1@tp),200)", "(600,3):(2,1@tp)"].to_vec(), "layout after"),
        (["tp=3", "((200,3),3):((3,1@tp),1)", "(600,3):(1,1@tp)"].to_vec(), "layout before"),
        (["tp=3,a=1", "((200,3),3):((1,1@tp),200)", "(600,3):(1,1@tp)"].to_vec(), "mesh"),
        ([TURNED.as_slice(), &["--type", "f32"]].concat(), "element"),
    ] {
        let port = free_port();
        let children = (0..3).map(|rank| (rank, start(rank, 3, port, if rank == 2 { &other } else { &TURNED })));
        for (rank, status, told) in ended(children.collect()) {
            assert_eq!(status, Some(1), "rank {rank}: {told}");
            assert!(told.contains("E1110") && told.contains(&format!("rank 2 has another {what}")), "{told}");
        }
    }
    // Another number of processes, and one that does not come.
    let port = free_port();
    let children =
        vec![(0, start(0, 3, port, &TURNED)), (2, start(2, 3, port, &TURNED)), (1, start(1, 2, port, &TURNED))];
    for (rank, status, told) in ended(children) {
        assert_eq!(status, Some(1), "rank {rank}: {told}");
        assert!(told.contains("rank 1 has another number of processes: 2"), "{told}");
    }
    let port = free_port();
    for (rank, status, told) in ended(vec![(0, start(0, 3, port, &TURNED)), (2, start(2, 3, port, &TURNED))]) {
        assert_eq!(status, Some(1), "rank {rank}: {told}");
        assert!(told.contains("error[E1111]: rank 1 did not connect within "), "{told}");
    }
}

/// The same under Open MPI, where there is one.
#[test]
fn processes_that_mpirun_starts_find_each_other_and_name_one_that_dies() {
    let mpirun = || {
        let mut command = Command::new("mpirun");
        command.args(["--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-n", "3"]);
        command.env("TILEWRIGHT_TOKEN", TOKEN);
        command
    };
    if mpirun().arg("true").output().is_err() {
        eprintln!("there is no mpirun: nothing was tried");
        return;
    }
    let done = mpirun().args([TILEWRIGHT, "mesh", "run"]).args(SUMMED).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && told.contains("bit by bit"), "{}", String::from_utf8_lossy(&done.stderr));

    let mut seed = 7;
    for case in 0..3 {
        // Each process says its number before it becomes the program.
        let script = "echo $OMPI_COMM_WORLD_RANK $$; exec \"$0\" mesh run \"$@\"";
        let mut command = mpirun();
        command.args(["sh", "-c", script, TILEWRIGHT]).args(SUMMED).args(["--rounds", "100000000", "--patience", "2"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut numbers = [0_i32; 3];
        for _ in 0..3 {
            let line = lines.next().unwrap().unwrap();
            let (rank, number) = line.split_once(' ').unwrap();
            numbers[rank.parse::<usize>().unwrap()] = number.parse().unwrap();
        }
        std::thread::sleep(Duration::from_millis(200 + random(&mut seed) % 500));
        let victim = random(&mut seed) as usize % 3;
        let id = rustix::process::Pid::from_raw(numbers[victim]).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        let ended = ended(vec![(case, child)]);
        let told = &ended[0].2;
        // On a slow machine it dies before it has connected. Both others name it all the same.
        let lost = told.matches(&format!("rank {victim} is lost, ")).count();
        let missed = told.matches(&format!("rank {victim} did not connect within ")).count();
        assert_eq!(lost + missed, 2, "rank {victim} was killed: {told}");
    }
}
