//! Plans that were measured, and kept in files.
//!
//! Law: what is found is what was kept for the same problem, card and driver, whatever else was
//! kept meanwhile, by whomever; what is damaged is as none, and the rest as good as before.
//! Measurements are made up: a stopwatch has a table of times.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tilewright::kernel::Element;
use tilewright::kernel::machine::Machine;
use tilewright::measured::{Card, MeasuredPlans, Planning, PlansError, Ranked, Stopwatch, TileWork, rank};
use tilewright::planners::gemm::Problem;
use tilewright::planners::{Computation, Place, RowMatrix, Statistic};
use tilewright::tile::Program;

fn h200() -> Machine {
    Machine::named("H200").unwrap()
}

fn card() -> Card {
    Card { name: "NVIDIA H200".into(), driver: 13_000 }
}

fn problem(m: i64) -> Problem {
    Problem::new(Element::Bf16, [m, 512, 64]).unwrap()
}

/// A problem of a number, with three plans that cost nothing to make.
struct Cheap(i64);

impl Planning for Cheap {
    type Plan = String;
    type Error = std::convert::Infallible;

    fn kernel(&self) -> &str {
        "cheap"
    }

    fn problem(&self) -> String {
        format!("number {}", self.0)
    }

    fn candidates(&self, _: &Machine) -> Result<Vec<String>, Self::Error> {
        Ok(["a", "b", "c"].map(|name| format!("{name} of {}", self.0)).to_vec())
    }

    fn line(plan: &String) -> String {
        plan.clone()
    }

    fn read(&self, machine: &Machine, line: &str) -> Option<String> {
        let Ok(mut plans) = self.candidates(machine);
        plans.retain(|plan| plan == line);
        plans.pop()
    }
}

/// The candidate of this number of a problem, with this time.
fn ranked<W: Planning>(work: &W, number: usize, seconds: f64) -> Vec<Ranked<W::Plan>> {
    let plan = work.candidates(&h200()).unwrap_or_else(|error| panic!("{error}")).swap_remove(number);
    vec![Ranked { plan, number, seconds }]
}

/// Times of plans, round by round.
struct Table {
    times: Vec<Vec<f64>>,
    ready: usize,
    calls: Vec<usize>,
}

impl<P> Stopwatch<P> for Table {
    type Error = String;

    fn ready(&mut self, _: &P) -> Result<(), String> {
        self.ready += 1;
        if self.ready > self.times.len() { Err("a plan is wrong".into()) } else { Ok(()) }
    }

    fn seconds(&mut self, number: usize) -> Result<f64, String> {
        let round = self.calls.iter().filter(|own| **own == number).count();
        self.calls.push(number);
        Ok(self.times[number][round])
    }
}

#[test]
fn plans_are_ranked_by_the_median_of_their_rounds() {
    let times = vec![vec![3.0, 9.0, 3.0], vec![2.0, 2.0, 50.0], vec![3.0, 1.0, 3.0]];
    let mut table = Table { times, ready: 0, calls: Vec::new() };
    let ranking = rank(vec!["a", "b", "c"], 3, &mut table).unwrap();
    let order: Vec<(&str, usize, f64)> = ranking.iter().map(|own| (own.plan, own.number, own.seconds)).collect();
    assert_eq!(order, [("b", 1, 2.0), ("a", 0, 3.0), ("c", 2, 3.0)]);
    // In rounds, and not one plan after the other.
    assert_eq!(table.calls, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    let mut table = Table { times: vec![vec![1.0; 3]], ready: 0, calls: Vec::new() };
    assert_eq!(rank(vec!["a", "b"], 3, &mut table), Err("a plan is wrong".to_string()));
    assert!(table.calls.is_empty());
}

/// Every kind of work with several plans: each candidate is found again as it was kept.
#[test]
fn what_is_kept_is_found() {
    fn check<W: Planning>(plans: &MeasuredPlans, work: &W) {
        let count = work.candidates(&h200()).unwrap_or_else(|error| panic!("{error}")).len();
        assert!(count > 1, "{}", work.problem());
        assert!(plans.find(&card(), work).unwrap().is_none());
        for number in 0..count.min(4) {
            // Each is faster than the one before.
            let ranking = ranked(work, number, 1e-3 / (number + 1) as f64);
            assert!(plans.keep(&card(), work, &ranking).unwrap().is_new);
            let (plan, found) = plans.best(&card(), &h200(), work).unwrap().expect("it was kept");
            assert_eq!(W::line(&plan), W::line(&ranking[0].plan));
            assert_eq!((found.microseconds, found.candidates), (ranking[0].seconds * 1e6, 1));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path().join("plans"));
    let layout = |text: &str| text.parse::<tilewright::Layout>().unwrap();
    check(&plans, &problem(256));
    check(
        &plans,
        &Computation::Relayout {
            from: Box::new(Place::from(&layout("(256,384):(384,1)"))),
            source: Element::Bf16,
            to: Box::new(Place::from(&layout("(256,384):(1,256)"))),
            destination: Element::Bf16,
        },
    );
    check(&plans, &Computation::Softmax { matrix: RowMatrix::new(9000, Element::F32).with_rows(64) });
    check(
        &plans,
        &Computation::Reduce {
            statistic: Statistic::Sum,
            layout: layout("60000:1"),
            element: Element::F32,
            modes: vec![0],
            alignment: 4,
        },
    );
    let program: Program = "tile sums {
        input x: f32 (M,256):(256,1)
        output y: f32 (M,1):(1,1)
        grid ceil(M/8)
        store(y, (block.x, 0), reduce_sum(load(x, (8,256), (block.x, 0)), 1))
    }"
    .parse()
    .unwrap();
    check(&plans, &TileWork { program: &program, sizes: vec![("M".into(), 64)] });
    // One file for the card, and the lock.
    assert_eq!(std::fs::read_dir(plans.folder().unwrap()).unwrap().count(), 2);
}

#[test]
fn another_key_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    plans.keep(&card(), &problem(256), &ranked(&problem(256), 0, 1e-3)).unwrap();
    assert!(plans.find(&card(), &problem(256)).unwrap().is_some());
    assert!(plans.find(&card(), &problem(264)).unwrap().is_none());
    for other in [Card { name: "NVIDIA H100".into(), ..card() }, Card { driver: 13_010, ..card() }] {
        assert!(plans.find(&other, &problem(256)).unwrap().is_none());
    }
    // A plan that the machine does not have is as none.
    let a100 = Machine::named("A100").unwrap();
    assert!(plans.best(&card(), &a100, &problem(256)).unwrap().is_none());
}

/// The faster plan stays, unless it was measured again.
#[test]
fn the_faster_plan_stays() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let work = Cheap(256);
    let keep = |ranking: &[Ranked<_>]| plans.keep(&card(), &work, ranking).unwrap().is_new;
    let found = || plans.find(&card(), &work).unwrap().unwrap().microseconds;
    assert!(keep(&ranked(&work, 0, 2e-3)));
    // Another plan, measured alone, is slower.
    assert!(!keep(&ranked(&work, 1, 3e-3)));
    assert_eq!(found(), 2000.0);
    // Now both were measured, and the first is slower than it was.
    let both = [ranked(&work, 1, 3e-3), ranked(&work, 0, 4e-3)].concat();
    assert!(keep(&both));
    assert_eq!(found(), 3000.0);
    assert!(keep(&ranked(&work, 2, 1e-3)));
    assert_eq!(found(), 1000.0);
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let work = Cheap(256);
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = plans.keep(&card(), &work, &ranked(&work, 0, seconds));
        assert!(matches!(refused, Err(PlansError::NotMeasured)), "{seconds}");
    }
    assert!(matches!(plans.keep(&card(), &work, &[]), Err(PlansError::NotMeasured)));
    let torn = Card { name: "a\tb".into(), ..card() };
    assert!(matches!(plans.keep(&torn, &work, &ranked(&work, 0, 1e-3)), Err(PlansError::Text { .. })));
    let none = MeasuredPlans::none().keep(&card(), &work, &ranked(&work, 0, 1e-3)).unwrap_err();
    assert!(none.to_string().contains("TILEWRIGHT_CACHE_DIR"), "{none}");
    assert!(MeasuredPlans::none().find(&card(), &work).unwrap().is_none());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // A folder that is a file.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = MeasuredPlans::in_folder(&file).keep(&card(), &work, &ranked(&work, 0, 1e-3));
    assert!(matches!(refused, Err(PlansError::Io { .. })));
}

/// A file with entries for some problems, by M.
fn several(plans: &MeasuredPlans, sizes: &[i64]) -> HashMap<i64, f64> {
    let keep = |m: &i64| {
        plans.keep(&card(), &Cheap(*m), &ranked(&Cheap(*m), 0, 1e-6 * *m as f64)).unwrap();
        (*m, plans.find(&card(), &Cheap(*m)).unwrap().unwrap().microseconds)
    };
    sizes.iter().map(keep).collect()
}

/// Cut off anywhere, the file has the entries that are whole. The next plan that is kept says that
/// something is gone, and leaves a whole file.
#[test]
fn a_file_that_is_cut_off_has_the_entries_before() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let sizes = [64, 128, 192];
    let kept = several(&plans, &sizes);
    let path = plans.path(&card()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let head = 4 + whole.windows(8).position(|part| part == b"version ").unwrap();
    let mut counts = Vec::new();
    for end in 0..whole.len() {
        std::fs::write(&path, &whole[..end]).unwrap();
        let found: Vec<_> = sizes.iter().map(|m| plans.find(&card(), &Cheap(*m))).collect();
        if end < head {
            // No head, so not known to be ours: it is not read, and nothing is written over it.
            assert!(found.iter().all(|own| matches!(own, Err(PlansError::Foreign { .. }))), "{end}");
            continue;
        }
        if found.iter().any(Result::is_err) {
            continue;
        }
        let mut count = 0;
        for (m, own) in sizes.iter().zip(found) {
            if let Some(own) = own.unwrap() {
                assert_eq!(own.microseconds, kept[m], "{end} bytes");
                count += 1;
            }
        }
        counts.push(count);
        // The last line end alone may be missing.
        if count < 3 || end + 1 < whole.len() {
            let again = plans.keep(&card(), &Cheap(256), &ranked(&Cheap(256), 0, 1e-3)).unwrap();
            assert!(again.damaged > 0, "{end} bytes, {count} entries");
            let again = plans.keep(&card(), &Cheap(256), &ranked(&Cheap(256), 0, 1e-3)).unwrap();
            assert_eq!(again.damaged, 0);
        }
    }
    assert!(counts.is_sorted() && [0, 1, 2, 3].iter().all(|count| counts.contains(count)), "{counts:?}");
}

/// Whatever byte is another one: no entry has other contents than were kept, and at most one is
/// lost, or the file is refused.
#[test]
fn a_damaged_byte_loses_one_entry() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let sizes = [64, 128, 192];
    let kept = several(&plans, &sizes);
    let path = plans.path(&card()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut lost = [0; 4];
    for at in 0..whole.len() {
        for byte in [b'0', b'\t', b'\n', 0xff] {
            let mut torn = whole.clone();
            torn[at] = byte;
            if torn == whole {
                continue;
            }
            std::fs::write(&path, &torn).unwrap();
            let found = sizes.map(|m| plans.find(&card(), &Cheap(m)));
            if found.iter().all(Result::is_err) {
                continue;
            }
            let found = found.map(Result::unwrap);
            for (m, own) in sizes.iter().zip(&found) {
                assert!(own.as_ref().is_none_or(|own| own.microseconds == kept[m]), "{at}");
            }
            let missing = found.iter().filter(|own| own.is_none()).count();
            assert!(missing <= 2, "{at}: {missing}");
            lost[missing] += 1;
        }
    }
    // A line end that is gone joins two entries.
    assert!(lost[0] > 0 && lost[1] > 0 && lost[2] <= 12, "{lost:?}");
}

/// A file that someone else wrote is neither read nor replaced.
#[test]
fn a_foreign_file_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let path = plans.path(&card()).unwrap();
    let of_other = {
        let other = tempfile::tempdir().unwrap();
        let plans = MeasuredPlans::in_folder(other.path());
        let h100 = Card { name: "NVIDIA H100".into(), ..card() };
        plans.keep(&h100, &Cheap(64), &ranked(&Cheap(64), 0, 1e-3)).unwrap();
        std::fs::read_to_string(plans.path(&h100).unwrap()).unwrap()
    };
    for text in ["", "hello\n", "tilewright plan 2\n", &of_other] {
        std::fs::write(&path, text).unwrap();
        let refused = plans.find(&card(), &Cheap(64)).unwrap_err();
        assert!(matches!(refused, PlansError::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
        assert!(plans.keep(&card(), &Cheap(64), &ranked(&Cheap(64), 0, 1e-3)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::write(&path, vec![b'x'; (16 << 20) + 1]).unwrap();
    assert!(matches!(plans.find(&card(), &Cheap(64)), Err(PlansError::Io { .. })));
}

/// What a process does that a test starts, by two words in the environment.
const CHILD: &str = "TILEWRIGHT_MEASURED_CHILD";
const FOLDER: &str = "TILEWRIGHT_MEASURED_FOLDER";

fn child(what: &str, folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "measured::in_another_process", "--nocapture"]);
    command.env(CHILD, what).env(FOLDER, folder).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Sizes that a process keeps plans for.
fn sizes_of(process: i64) -> impl Iterator<Item = i64> {
    (0..12).map(move |number| 64 * (1 + 12 * process + number))
}

/// No test of its own: what [`child`] runs.
#[test]
fn in_another_process() {
    let (Ok(what), Some(folder)) = (std::env::var(CHILD), std::env::var_os(FOLDER)) else { return };
    let plans = MeasuredPlans::in_folder(&folder);
    if what == "dies" {
        // As `keep` does, up to where it puts the file in its place.
        let folder = Path::new(&folder);
        let lock = std::fs::File::options().create(true).truncate(false).write(true).open(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        std::fs::write(folder.join("half.new"), "tilewright measured plans 1\ncard NVI").unwrap();
        std::process::abort();
    }
    let process: i64 = what.parse().unwrap();
    for m in sizes_of(process) {
        plans.keep(&card(), &Cheap(m), &ranked(&Cheap(m), 0, 1e-6 * m as f64)).unwrap();
        // One problem that all measure, each another plan: the fastest is of the last process.
        let shared = ranked(&Cheap(8), process as usize, 1e-3 / (process + 1) as f64);
        plans.keep(&card(), &Cheap(8), &shared).unwrap();
    }
}

#[test]
fn processes_that_keep_plans_at_once_lose_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut children: Vec<Child> = (0..3).map(|process| child(&process.to_string(), folder.path())).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let plans = MeasuredPlans::in_folder(folder.path());
    for m in (0..3).flat_map(sizes_of) {
        let found = plans.find(&card(), &Cheap(m)).unwrap().unwrap_or_else(|| panic!("{m} is lost"));
        assert_eq!(found.microseconds, 1e-6 * m as f64 * 1e6);
    }
    let (plan, found) = plans.best(&card(), &h200(), &Cheap(8)).unwrap().unwrap();
    assert_eq!(plan, "c of 8");
    assert_eq!(found.microseconds, 1e-3 / 3.0 * 1e6);
}

/// A process that is killed with the lock in its hands, and its file half written: what was kept
/// before is found, others are not kept waiting, and what it left is gone.
#[test]
fn a_process_that_dies_meanwhile_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    several(&plans, &[64]);
    assert!(!child("dies", folder.path()).wait().unwrap().success());
    let left = folder.path().join("half.new");
    assert!(left.exists());
    assert!(plans.find(&card(), &Cheap(64)).unwrap().is_some());
    let kept = plans.keep(&card(), &Cheap(128), &ranked(&Cheap(128), 0, 1e-3)).unwrap();
    assert!(kept.damaged == 0 && !left.exists());
    assert!(plans.find(&card(), &Cheap(64)).unwrap().is_some());
    assert!(plans.find(&card(), &Cheap(128)).unwrap().is_some());
}
