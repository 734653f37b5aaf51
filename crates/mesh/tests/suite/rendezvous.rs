//! Who comes to the place where the processes of a job meet, and who does not: a job begins when
//! its own processes are there, whoever else connects, and it names the ranks that do not come.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tilewright_mesh::{Engine, MeshError, Place, Processes, Token};

const TOKEN: &str = "0123456789abcdef";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn place(rank: usize, ranks: usize, port: u16, token: Option<&str>) -> Place {
    let token = token.map(|token| Token::new(token).unwrap());
    Place { rank, ranks, address: "127.0.0.1".into(), port, token }
}

/// A connection to a port at which somebody listens, or will soon.
fn knock(port: u16) -> TcpStream {
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// A frame, as its definition says: magic, kind, call, length, bytes. A greeting is of kind 0.
fn frame(length: u64, bytes: &[u8]) -> Vec<u8> {
    [b"tilewri\0".as_slice(), &0_u64.to_le_bytes(), &length.to_le_bytes(), bytes].concat()
}

fn greeting(version: &str, ranks: &str, rank: &str, token: &str) -> Vec<u8> {
    let text = format!("{version}\n{ranks}\n{rank}\n1\n{token}");
    frame(text.len() as u64, text.as_bytes())
}

/// What a stranger does, and a part of what is said of it.
fn strangers() -> Vec<(Vec<u8>, &'static str)> {
    vec![
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), "not a greeting of tilewright"),
        (b"\x16\x03\x01".to_vec(), "not a greeting of tilewright"),
        (frame(1 << 40, b""), "not a greeting of tilewright"),
        (greeting("0.0.9", "3", "1", TOKEN), "rank 1 has another version: 0.0.9"),
        (greeting(VERSION, "3", "1", "0123456789abcdee"), "job token"),
        (greeting(VERSION, "3", "1", ""), "job token"),
        (greeting(VERSION, "4", "1", TOKEN), "another number of processes: 4"),
        (greeting(VERSION, "3", "0", TOKEN), "rank 0 has another place"),
        (greeting(VERSION, "3", "7", TOKEN), "rank 7 has another place"),
        (frame(9, b"\xff\xfe\n\n\n\n\n\n\n"), "another version"),
    ]
}

#[test]
fn whoever_else_connects_neither_stops_nor_joins_a_job() {
    let port = free_port();
    let first = thread::spawn(move || Processes::connect(&place(0, 3, port, Some(TOKEN)), Duration::from_secs(20)));
    // Silent ones stay while the job begins, before and between its processes.
    let mut silent: Vec<TcpStream> = (0..100).map(|_| knock(port)).collect();
    let mut slow = knock(port);
    slow.write_all(b"tile").unwrap();
    let mut known: Vec<(SocketAddr, &str)> = Vec::new();
    let mut told = Vec::new();
    for (bytes, why) in strangers() {
        let mut stream = knock(port);
        stream.write_all(&bytes).unwrap();
        known.push((stream.local_addr().unwrap(), why));
        // Each is dismissed at once, with a reason where it spoke our language.
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        told.push(String::from_utf8_lossy(&answer).into_owned());
    }
    assert!(told[3].contains("differs") && told[4].contains("token"), "{told:?}");
    let since = Instant::now();
    let others: Vec<_> = (1..3)
        .map(|rank| {
            silent.push(knock(port));
            thread::spawn(move || Processes::connect(&place(rank, 3, port, Some(TOKEN)), Duration::from_secs(20)))
        })
        .collect();
    let mut all = vec![first.join().unwrap().unwrap()];
    all.extend(others.into_iter().map(|other| other.join().unwrap().unwrap()));
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
    for (address, why) in known {
        let named = all[0].ignored().iter().find(|text| text.starts_with(&format!("{address}: ")));
        assert!(named.is_some_and(|text| text.contains(why)), "{address}: {why}, in {:#?}", all[0].ignored());
    }
    // The job works.
    let working: Vec<_> = all.into_iter().map(|mut own| thread::spawn(move || own.agree("step 1", "a: 1\n"))).collect();
    working.into_iter().for_each(|own| own.join().unwrap().unwrap());
}

#[test]
fn a_rank_that_is_taken_is_refused_and_the_job_goes_on() {
    let port = free_port();
    let first = thread::spawn(move || Processes::connect(&place(0, 3, port, Some(TOKEN)), Duration::from_secs(20)));
    let one = thread::spawn(move || Processes::connect(&place(1, 3, port, Some(TOKEN)), Duration::from_secs(20)));
    thread::sleep(Duration::from_millis(500));
    let again = Processes::connect(&place(1, 3, port, Some(TOKEN)), Duration::from_secs(20)).unwrap_err();
    assert_eq!(again.code(), "E1110", "{again}");
    let stranger = Processes::connect(&place(2, 3, port, Some("fedcba9876543210")), Duration::from_secs(20));
    let stranger = stranger.unwrap_err();
    assert_eq!(stranger.code(), "E1112", "{stranger}");
    let two = Processes::connect(&place(2, 3, port, Some(TOKEN)), Duration::from_secs(20)).unwrap();
    let first = first.join().unwrap().unwrap();
    assert_eq!((one.join().unwrap().unwrap().rank(), two.rank(), first.ignored().len()), (1, 2, 2));
}

#[test]
fn the_ranks_that_do_not_come_are_named_by_all_that_do() {
    let port = free_port();
    let own = |rank| {
        let place = place(rank, 5, port, Some(TOKEN));
        thread::spawn(move || Processes::connect(&place, Duration::from_secs(2)).unwrap_err())
    };
    let here: Vec<_> = [0, 2, 3].into_iter().map(own).collect();
    let silent = knock(port);
    let address = silent.local_addr().unwrap();
    for error in here.into_iter().map(|error| error.join().unwrap()) {
        let MeshError::Absent { ranks, why } = &error else { panic!("{error}") };
        assert_eq!((ranks.as_slice(), error.code()), ([1, 4].as_slice(), "E1111"));
        assert!(why.contains(&format!("{address}: it sent no greeting")), "{why}");
        assert!(error.to_string().starts_with("ranks 1, 4 did not connect within 2 s"), "{error}");
    }
}

#[test]
fn several_processes_need_a_token_and_one_does_not() {
    for rank in 0..2 {
        let refused = Processes::connect(&place(rank, 2, free_port(), None), Duration::from_secs(1)).unwrap_err();
        assert_eq!(refused.code(), "E1112");
        assert!(refused.help().unwrap().contains("TILEWRIGHT_TOKEN"));
    }
    assert_eq!(Processes::connect(&place(0, 1, 1, None), Duration::from_secs(1)).unwrap().ranks(), 1);
    for (rank, ranks) in [(0, 0), (2, 2), (0, usize::MAX)] {
        let refused = Processes::connect(&place(rank, ranks, 1, Some(TOKEN)), Duration::from_secs(1)).unwrap_err();
        assert_eq!(refused.code(), "E1112");
    }
    for text in ["", "short", "with a space", "eight\ncharacters", "0123456\u{e9}"] {
        assert_eq!(Token::new(text).unwrap_err().code(), "E1112", "{text:?}");
    }
}

#[test]
fn who_waits_for_the_others_can_be_interrupted_by_a_dead_first_process() {
    // The first process ends before all are there: those that wait for it learn that at once.
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let one = thread::spawn(move || Processes::connect(&place(1, 3, port, Some(TOKEN)), Duration::from_secs(20)));
    let (stream, _) = listener.accept().unwrap();
    let since = Instant::now();
    drop(stream);
    let error = one.join().unwrap().unwrap_err();
    assert!(matches!(error, MeshError::Lost { rank: 0, .. }), "{error}");
    assert!(since.elapsed() < Duration::from_secs(3));
}
