//! `tilewright mesh run --through nccl` over an imitation of the driver and of NCCL
//! (`nccl/library.c`): what processes hold is right; and when one stops answering, in whatever call
//! of NCCL, every other ends with an error that names it, within the stated time.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const TILEWRIGHT: &str = env!("CARGO_BIN_EXE_tilewright");
/// The patience and three seconds, as promised, and what a busy machine needs to start.
const PATIENCE: u64 = 2;
const BOUND: Duration = Duration::from_secs(PATIENCE + 3 + 10);

const TURNED: [&str; 3] = ["tp=3", "((200,3),3):((1,1@tp),200)", "(600,3):(1,1@tp)"];
const SUMMED: [&str; 3] = ["tp=3", "30000:1 summed 3:1@tp", "30000:1 copied 3:1@tp"];

/// The folder of the imitation, which both libraries are.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("nccl-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nccl/library.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-w", "-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so.1")).arg(source);
        assert!(compiler.status().unwrap().success());
        std::os::unix::fs::symlink("libcuda.so.1", folder.join("libnccl.so.2")).unwrap();
        folder
    })
}

/// Three processes that imitate a machine with a GPU for each.
fn started(arguments: &[&str], patience: u64, environment: &[(&str, &str)]) -> Vec<(usize, Child)> {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let messages = libraries().join(format!("messages-{port}"));
    std::fs::create_dir_all(&messages).unwrap();
    let process = |rank: usize| {
        let mut command = Command::new(TILEWRIGHT);
        command.arg("mesh").args(arguments).args(["--through", "nccl", "--patience", &patience.to_string()]);
        command.env("LD_LIBRARY_PATH", libraries()).env("NCCL_NVLS_ENABLE", "0").env("MESSAGES", &messages);
        command.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string()).env("WORLD_SIZE", "3");
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.env("TILEWRIGHT_TOKEN", "token-of-the-tests");
        command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (rank, command.spawn().unwrap())
    };
    (0..3).map(process).collect()
}

/// The exit status, and standard output and error, of a process that ends in time.
fn ended(child: &mut Child) -> (Option<i32>, String) {
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(since.elapsed() < BOUND, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (status.code(), said)
}

#[test]
fn what_processes_hold_is_what_the_simulation_says() {
    let run = |arguments: &[&'static str]| [&["run"], arguments, &["--rounds", "3"]].concat();
    let product = "multiply tp=3 (48,(20,3)):(1,(48,1@tp)) ((20,3),40):((1,1@tp),20) ((16,3),40):((40,1@tp),1)";
    let product: Vec<&str> = product.split(' ').chain(["--run"]).collect();
    for environment in [&[][..], &[("LATER", "1")]] {
        for arguments in [run(&TURNED), run(&[&SUMMED[..], &["--type", "f32"]].concat()), product.clone()] {
            for (rank, mut child) in started(&arguments, 30, environment) {
                let (status, said) = ended(&mut child);
                assert_eq!(status, Some(0), "{arguments:?}, {environment:?}, rank {rank}: {said}");
                assert!(rank > 0 || said.contains("bit by bit"), "{said}");
            }
        }
    }
}

#[test]
fn a_rank_that_stops_answering_is_named_by_all_others() {
    let endless: &[&str] = &["--rounds", "100000000"];
    for (stops, later, victim) in
        [("join", false, "1"), ("0", false, "2"), ("0", true, "0"), ("5", false, "0"), ("6", true, "1")]
    {
        let mut environment = vec![("STOPS", stops), ("VICTIM", victim)];
        environment.extend(later.then_some(("LATER", "1")));
        let arguments = [&["run"][..], if later { &TURNED[..] } else { &SUMMED[..] }, endless].concat();
        let mut children = started(&arguments, PATIENCE, &environment);
        let (_, mut lost) = children.remove(victim.parse().unwrap());
        let said: Vec<_> = children.iter_mut().map(|(rank, child)| (*rank, ended(child))).collect();
        let _ = lost.kill();
        let _ = lost.wait();
        for (rank, (status, said)) in said {
            assert_eq!(status, Some(1), "{environment:?}, rank {rank}: {said}");
            let named = said.contains("error[E1111]") && said.contains(&format!("rank {victim} is lost, "));
            assert!(named, "{environment:?}: rank {rank} says {said}");
            assert!(said.contains(if stops == "join" { "while processes join NCCL" } else { "step" }), "{said}");
        }
    }
}

#[test]
fn a_rank_that_waits_is_interrupted() {
    // So long that only the signal ends it in time.
    let arguments = [&["run"], &TURNED[..], &["--rounds", "100000000"]].concat();
    let mut children = started(&arguments, 600, &[("STOPS", "3"), ("VICTIM", "1")]);
    std::thread::sleep(Duration::from_millis(1500));
    for (rank, child) in &mut children {
        if *rank != 1 {
            kill_process(Pid::from_child(child), Signal::INT).unwrap();
        }
    }
    let (_, mut stopped) = children.remove(1);
    let said: Vec<_> = children.iter_mut().map(|(_, child)| ended(child)).collect();
    let _ = stopped.kill();
    let _ = stopped.wait();
    for (status, said) in said {
        assert_eq!(status, Some(1), "{said}");
        // If two processes are interrupted, one may hear of the other first.
        assert!(said.contains("error[E1114]") || said.contains("error[E1111]: rank 0 is lost"), "{said}");
    }
}
