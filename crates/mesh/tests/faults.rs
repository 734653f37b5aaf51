//! Plans between processes, here threads, of which one cannot go on: every one ends with the same
//! kind of error, which names that one and the step, and none has a result.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use tilewright_mesh::{Engine, Machine, Mesh, MeshError, Place, Plan, Processes, ShardedLayout, reshard};

const PATIENCE: Duration = Duration::from_secs(5);
/// Twice the patience and two seconds, as promised.
const BOUND: Duration = Duration::from_secs(12);

fn plan(mesh: &str, from: &str, to: &str) -> Plan {
    let mesh: Mesh = mesh.parse().unwrap();
    let [from, to] = [from, to].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
    reshard(&from, &to, 8, &Machine::HGX_H200).unwrap()
}

/// What each of so many processes ends with.
fn ended(ranks: usize, work: impl Fn(usize, Processes) -> Result<Vec<i64>, MeshError> + Sync) -> Vec<MeshError> {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let since = Instant::now();
    let errors = thread::scope(|scope| {
        let process = |rank| {
            let place = Place { rank, ranks, address: "127.0.0.1".to_owned(), port };
            let work = &work;
            scope.spawn(move || work(rank, Processes::connect(&place, PATIENCE).unwrap()).unwrap_err())
        };
        let all: Vec<_> = (0..ranks).map(process).collect();
        all.into_iter().map(|process| process.join().unwrap()).collect()
    });
    assert!(since.elapsed() < BOUND);
    errors
}

#[test]
fn memory_that_is_too_small_is_known_to_all() {
    let plan = plan("x=3", "(12,3):(1,1@x)", "(12,3):(1,12) copied 3:1@x");
    let errors = ended(3, |rank, mut engine| plan.run(&mut engine, &vec![1; if rank == 1 { 5 } else { 12 }]));
    assert_eq!(errors, vec![MeshError::Memory { rank: 1, elements: 5, needed: 12 }; 3]);
}

#[test]
fn memory_that_there_is_not_is_known_to_all() {
    // A row of the result lies 2^44 elements behind the one before.
    let plan = plan("x=2", "(4,2):(1,1@x)", "(4,2):(17592186044416,1) copied 2:1@x");
    for error in ended(2, |_, mut engine| plan.run(&mut engine, &[1, 2, 3, 4])) {
        let MeshError::OutOfMemory { rank, step, bytes } = &error else { panic!("{error}") };
        assert!(*rank < 2 && step.contains("step 1") && *bytes > 1 << 48, "{error}");
        assert_eq!(error.code(), "E1113");
    }
}

#[test]
fn who_is_interrupted_is_named_by_all() {
    let plan = plan("x=3", "(12,3):(1,1@x)", "(12,3):(1,12) copied 3:1@x");
    let errors = ended(3, |rank, mut engine| {
        let interrupter = engine.interrupter();
        let ending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            if rank == 2 {
                interrupter.interrupt();
            }
        });
        let memory = [1; 12];
        let mut done = Ok(Vec::new());
        while done.is_ok() {
            done = plan.run(&mut engine, &memory);
        }
        ending.join().unwrap();
        // Nothing is answered after that.
        let later = engine.agree("later", "").unwrap_err();
        assert!(["E1111", "E1114"].contains(&later.code()), "{later}");
        done
    });
    for (rank, error) in errors.iter().enumerate() {
        match error {
            MeshError::Interrupted { rank: 2, step } if rank == 2 => assert!(step.contains("step"), "{step}"),
            MeshError::Lost { rank: 2, step, .. } if rank < 2 => assert!(step.contains("step"), "{step}"),
            other => panic!("rank {rank}: {other}"),
        }
    }
}
