//! Plans between processes, here threads, of which one cannot go on: every one ends with the same
//! kind of error, which names that one and the step, and none has a result.

use crate::processes;

use std::thread;
use std::time::{Duration, Instant};

use processes::between;
use tilewright_mesh::{
    Engine, Machine, Mesh, MeshError, Plan, Processes, ProductPlan, Reduction, ShardedLayout, map, multiply, reduce,
    reshard, softmax,
};

const PATIENCE: Duration = Duration::from_secs(5);
/// Twice the patience and two seconds, as promised.
const BOUND: Duration = Duration::from_secs(12);

fn plan(mesh: &str, from: &str, to: &str) -> Plan {
    let mesh: Mesh = mesh.parse().unwrap();
    let [from, to] = [from, to].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
    reshard(&from, &to, 8, &Machine::HGX_H200).unwrap()
}

/// What each of this many processes ends with.
fn ended<R: std::fmt::Debug + Send>(
    ranks: usize,
    work: impl Fn(usize, Processes) -> Result<R, MeshError> + Sync,
) -> Vec<MeshError> {
    let since = Instant::now();
    let errors = between(ranks, PATIENCE, |rank, engine| work(rank, engine).unwrap_err());
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
    for error in ended(2, |_, mut engine| plan.run(&mut engine, &[1_i64, 2, 3, 4])) {
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

/// A product whose factor is gathered, or whose sums are scattered.
fn product(sums: bool) -> ProductPlan {
    let mesh: Mesh = "x=3".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let (rows, columns) = (parse("((4,3),12):((12,1@x),1)"), parse("(12,(4,3)):(1,(12,1@x))"));
    let (a, b, d) = if sums { (&columns, &rows, &rows) } else { (&rows, &columns, &columns) };
    multiply(a, b, d, 8, 1e9, &Machine::HGX_H200).unwrap()
}

#[test]
fn operations_in_which_one_has_too_little_memory_end_for_all() {
    let mesh: Mesh = "x=3".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let (rows, sums) = (parse("((4,3),12):((1,1@x),4)"), parse("12:1 copied 3:1@x"));
    let machine = Machine::HGX_H200;
    let few = |rank| vec![1.0_f64; if rank == 1 { 47 } else { 48 }];
    let small = vec![MeshError::Memory { rank: 1, elements: 47, needed: 48 }; 3];
    let plan = reduce(&rows, &[1], Reduction::Max, &sums, 8, &machine).unwrap();
    assert_eq!(ended(3, |rank, mut engine| plan.run(&mut engine, &few(rank))), small);
    let plan = softmax(&rows, &[0], &rows, 8, &machine).unwrap();
    assert_eq!(ended(3, |rank, mut engine| plan.run(&mut engine, &few(rank))), small);
    let plan = map(&[&rows, &rows], &rows, 8, &machine).unwrap();
    assert_eq!(ended(3, |rank, mut engine| plan.run(&mut engine, &[&[1.0; 48], &few(rank)], |of| of[0])), small);
    for sums in [false, true] {
        let plan = product(sums);
        assert_eq!(ended(3, |rank, mut engine| plan.run(&mut engine, &few(rank), &[1.0; 48])), small);
    }
}

#[test]
fn operations_of_which_one_process_does_another_end_for_all() {
    let mesh: Mesh = "x=2".parse().unwrap();
    let rows = ShardedLayout::parse(&mesh, "(2,4):(1@x,1)").unwrap();
    let one = ShardedLayout::parse(&mesh, "2:1 copied 2:1@x").unwrap();
    let machine = Machine::HGX_H200;
    let [sum, max] = [Reduction::Sum, Reduction::Max].map(|by| reduce(&rows, &[1], by, &one, 8, &machine).unwrap());
    let errors = ended(2, |rank, mut engine| [&sum, &max][rank].run(&mut engine, &[1_i64; 4]));
    for error in errors {
        let MeshError::Differs { rank: 1, what, own, other } = &error else { panic!("{error}") };
        let said = (what.as_ref(), own.as_ref(), other.as_ref());
        assert_eq!(said, ("operation", "sum over modes [1]", "max over modes [1]"));
    }
    // A mean of integers is refused by each of them.
    let mean = reduce(&rows, &[1], Reduction::Mean, &one, 8, &machine).unwrap();
    for error in ended(2, |_, mut engine| mean.run(&mut engine, &[1_i64; 4])) {
        assert_eq!(error.code(), "E1116", "{error}");
    }
}

#[test]
fn who_leaves_a_product_is_named_by_all() {
    for sums in [false, true] {
        let plan = product(sums);
        let errors = ended(3, |rank, mut engine| {
            let interrupter = engine.interrupter();
            let ending = thread::spawn(move || {
                thread::sleep(Duration::from_millis(200));
                if rank == 0 {
                    interrupter.interrupt();
                }
            });
            let mut done = Ok(Vec::new());
            while done.is_ok() {
                done = plan.run(&mut engine, &[1.0; 48], &[1.0; 48]);
            }
            ending.join().unwrap();
            done
        });
        for (rank, error) in errors.iter().enumerate() {
            match error {
                MeshError::Interrupted { rank: 0, step } if rank == 0 => assert!(step.contains("step"), "{step}"),
                MeshError::Lost { rank: 0, step, .. } if rank > 0 => assert!(step.contains("step"), "{step}"),
                other => panic!("rank {rank}: {other}"),
            }
        }
    }
}

/// Three processes whose bytes another transport carries: two wait in vain.
fn blamed(lost: usize, hangs: bool) -> Vec<MeshError> {
    between(3, PATIENCE, |rank, mut engine| {
        if rank == lost {
            // Who is gone closes its connections; who hangs keeps them.
            if hangs {
                thread::sleep(Duration::from_millis(2500));
            }
            drop(engine);
            return MeshError::Interrupted { rank, step: "".into() };
        }
        // One of them waits for the other, which waits for the one that is lost.
        let others: Vec<usize> = (0..3).filter(|other| *other != lost).collect();
        let waiting = if rank == others[0] { others[1] } else { lost };
        thread::sleep(Duration::from_millis(50 * rank as u64));
        let since = Instant::now();
        let error = engine.blame("step 2, all-gather", &[waiting], "nothing came");
        assert!(since.elapsed() < Duration::from_secs(3));
        assert_eq!(engine.agree("later", "").unwrap_err(), error);
        error
    })
}

#[test]
fn who_is_lost_where_others_carry_the_bytes_is_named_by_all() {
    for lost in 0..3 {
        for hangs in [false, true] {
            for (rank, error) in blamed(lost, hangs).into_iter().enumerate().filter(|(rank, _)| *rank != lost) {
                let MeshError::Lost { rank: named, step, .. } = &error else { panic!("{error}") };
                assert_eq!((*named, step.as_ref()), (lost, "step 2, all-gather"), "rank {rank}, hangs: {hangs}");
            }
        }
    }
}

#[test]
fn who_is_lost_is_named_where_the_others_wait_for_each_other_too() {
    // Each waits for all others, and names the first: ranks 0 and 1 each other.
    let errors = between(3, PATIENCE, |rank, mut engine| match rank {
        2 => {
            thread::sleep(Duration::from_millis(2500));
            MeshError::Lost { rank: 2, step: "step 1".into(), why: "nothing came".into() }
        }
        _ => engine.blame("step 1", &[1 - rank, 2], "nothing came"),
    });
    for error in errors {
        assert!(matches!(error, MeshError::Lost { rank: 2, .. }), "{error}");
    }
}

#[test]
fn who_waits_in_a_call_of_the_engine_is_not_lost() {
    // Ranks 0 and 1 are done with the step and wait for all; rank 2 waits for rank 3, which hangs.
    let errors = between(4, PATIENCE, |rank, mut engine| match rank {
        0 | 1 => engine.agree("after the last step", "").unwrap_err(),
        2 => {
            thread::sleep(Duration::from_millis(200));
            engine.blame("step 1", &[3], "nothing came")
        }
        _ => {
            thread::sleep(Duration::from_millis(3000));
            MeshError::Lost { rank: 3, step: "step 1".into(), why: "nothing came".into() }
        }
    });
    for error in errors {
        assert!(matches!(error, MeshError::Lost { rank: 3, .. }), "{error}");
    }
}

#[test]
fn a_failure_that_is_known_is_the_cause() {
    let small = MeshError::Memory { rank: 1, elements: 5, needed: 12 };
    let errors = between(2, PATIENCE, |rank, mut engine| match rank {
        1 => engine.give_up(small.clone()),
        _ => engine.blame("step 1", &[1], "nothing came"),
    });
    assert_eq!(errors, vec![small; 2]);
}
