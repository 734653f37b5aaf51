//! Measured plans: the fastest plan of each problem on a device, kept in files.
//!
//! A planner chooses by a model. If plans were measured, the measurement decides instead:
//! [`MeasuredPlans::best`] returns the kept plan of a problem; [`tune`] and [`tune_gemm`] measure
//! the candidates and keep the fastest. Everything with several plans implements the trait
//! [`Planning`]: a GEMM, a [`Computation`](tilewright_planners::Computation) of the library and a
//! [`TileWork`].
//!
//! Law: the cache returns the plan that was kept for the same problem, for a device of the same
//! name with the same driver, and by the same version of the library; or nothing. The plans of one
//! device are in one file (`measured/file.rs`). Processes that keep plans at the same time lose no
//! entries: each takes a lock, reads the file again, adds its own entries, and replaces the file
//! when the new one is complete. A reader takes no lock and sees the old file or the new one.
//! Damaged entries are skipped and counted. A file that was not written by this library is neither
//! read nor replaced.
//!
//! ```
//! use tilewright::kernel::Element;
//! use tilewright::planners::gemm::Problem;
//! use tilewright::measured::{Card, MeasuredPlans, Ranked, rank};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use tilewright::measured::{Planning, Stopwatch};
//!
//! /// A stopwatch for this example: instead of running plans, it rates wide tiles as fast.
//! #[derive(Default)]
//! struct ByColumns(Vec<f64>);
//!
//! impl Stopwatch<tilewright::planners::gemm::Plan> for ByColumns {
//!     type Error = std::convert::Infallible;
//!
//!     fn ready(&mut self, plan: &tilewright::planners::gemm::Plan) -> Result<(), Self::Error> {
//!         self.0.push(1e-3 / plan.columns as f64);
//!         Ok(())
//!     }
//!
//!     fn seconds(&mut self, number: usize) -> Result<f64, Self::Error> {
//!         Ok(self.0[number])
//!     }
//! }
//!
//! let problem = Problem::new(Element::Bf16, [512, 512, 512])?;
//! let h200 = "H200".parse()?;
//! let candidates = Planning::candidates(&problem, &h200)?.into_iter().take(8).collect();
//! let ranking: Vec<Ranked<_>> = rank(candidates, 5, &mut ByColumns::default())?;
//!
//! let plans = MeasuredPlans::in_folder(folder);
//! let card = Card { name: "NVIDIA H200".into(), driver: 13_000 };
//! plans.keep(&card, &problem, &ranking)?;
//! let (plan, _) = plans.best(&card, &h200, &problem)?.expect("it was kept");
//! assert_eq!(plan, ranking[0].plan);
//! # Ok(())
//! # }
//! ```

mod asked;
mod file;
mod gemm;
mod on_device;
mod planner;
mod shipped;
mod work;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Device;
use tilewright_kernel::machine::Machine;

pub use self::asked::{Asked, AskedPlanner, AskedProblems, Tuned};
use self::file::Contents;
pub use self::gemm::tune_gemm;
pub use self::on_device::{TuneError, TuneOptions, tune};
pub use self::planner::DevicePlanner;
pub use self::work::{Planning, TileWork};
use crate::devices::bench::median;

/// The name of the lock file, whose lock a process holds while it keeps plans.
const LOCK: &str = "lock";
/// The suffix of files that are being written.
const UNFINISHED: &str = ".new";

/// The device and the driver on which plans were measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The name of the device, as the driver reports it: `NVIDIA H200`.
    pub name: String,
    /// The version of CUDA that the driver supports: 13000 is 13.0.
    pub driver: i32,
}

impl Card {
    /// The card of a device.
    pub fn of(device: &Device) -> Card {
        Card { name: device.name().to_owned(), driver: device.driver_version() }
    }
}

/// A plan that was measured and kept.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPlan {
    /// The plan, in one line.
    pub plan: String,
    /// The median time of a launch, in microseconds.
    pub microseconds: f64,
    /// The number of plans that were measured in the same run.
    pub candidates: usize,
}

/// A plan and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked<P> {
    /// The plan.
    pub plan: P,
    /// The index of the candidate, from 0.
    pub number: usize,
    /// The median time of a launch, in seconds.
    pub seconds: f64,
}

/// Runs plans and measures their time.
pub trait Stopwatch<P> {
    /// Why a plan cannot be measured.
    type Error;

    /// Prepares a plan for timing, and checks that its results are right.
    ///
    /// Errors: the plan cannot be run; a result is wrong.
    fn ready(&mut self, plan: &P) -> Result<(), Self::Error>;

    /// The time of a launch of the plan that was prepared with this number, from 0; in seconds.
    ///
    /// Errors: as [`Stopwatch::ready`].
    fn seconds(&mut self, number: usize) -> Result<f64, Self::Error>;
}

/// The number of measurements.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tilewright::measured::Effort;
///
/// let all = Effort::from(5);
/// let for_a_second = Effort { until: Some(Instant::now() + Duration::from_secs(1)), ..all };
/// assert_eq!(for_a_second.rounds, 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The number of rounds. Each plan is timed once in each round.
    pub rounds: usize,
    /// The time after which no further plan is prepared and no further round begins. The first plan
    /// is timed once in any case.
    pub until: Option<Instant>,
}

impl Effort {
    fn is_over(self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl From<usize> for Effort {
    fn from(rounds: usize) -> Effort {
        Effort { rounds, until: None }
    }
}

/// The plans, the fastest first. All are prepared first. Then they are timed in rounds, so that the
/// clock of the device is the same for all; the time of each is the median. Among equally fast
/// plans, the earlier candidate comes first. Plans that were not prepared in time are left out.
///
/// Errors: those of the stopwatch.
pub fn rank<P, S: Stopwatch<P>>(
    mut plans: Vec<P>,
    effort: impl Into<Effort>,
    stopwatch: &mut S,
) -> Result<Vec<Ranked<P>>, S::Error> {
    let effort = effort.into();
    let mut ready = 0;
    for plan in &plans {
        if ready > 0 && effort.is_over() {
            break;
        }
        stopwatch.ready(plan)?;
        ready += 1;
    }
    plans.truncate(ready);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); plans.len()];
    for round in 0..effort.rounds.max(1) {
        if round > 0 && effort.is_over() {
            break;
        }
        for (number, own) in times.iter_mut().enumerate() {
            own.push(stopwatch.seconds(number)?);
        }
    }
    let ranked = plans.into_iter().zip(times).enumerate();
    let mut ranked: Vec<Ranked<P>> =
        ranked.map(|(number, (plan, times))| Ranked { plan, number, seconds: median(times) }).collect();
    ranked.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(ranked)
}

/// Why measured plans cannot be read or kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlansError {
    /// There is no folder for plans.
    NoFolder,
    /// The file was not written by this version of the library for this card and driver.
    Foreign {
        /// The file.
        path: PathBuf,
        /// The defect of the file.
        because: &'static str,
    },
    /// A file or a folder cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// There is no plan, or none with a time above 0.
    NotMeasured,
    /// A name or a problem contains a line end or a tab, which the file format does not allow.
    Text {
        /// The text.
        text: String,
    },
}

impl fmt::Display for PlansError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlansError::NoFolder => write!(f, "there is no folder for plans: set TILEWRIGHT_CACHE_DIR"),
            PlansError::Foreign { path, because } => {
                let path = path.display();
                write!(f, "{path} is not a file of measured plans for this card: {because}; move it away to keep plans")
            }
            PlansError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            PlansError::NotMeasured => write!(f, "no plan was measured, so there is none to keep"),
            PlansError::Text { text } => {
                write!(f, "{text:?} has a tab or a line end, which a file of plans cannot hold")
            }
        }
    }
}

impl std::error::Error for PlansError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PlansError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The result of keeping plans: the file and its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The file.
    pub path: PathBuf,
    /// Whether the kept plan is the fastest of this ranking. It is not if an earlier plan, which is
    /// not in the ranking, was faster.
    pub is_new: bool,
    /// The number of damaged entries of the file, which were removed.
    pub damaged: usize,
}

/// Measured plans in a folder.
///
/// ```
/// use tilewright::measured::MeasuredPlans;
///
/// assert_eq!(MeasuredPlans::none().folder(), None);
/// assert!(MeasuredPlans::in_folder("/tmp/plans").folder().is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredPlans {
    folder: Option<PathBuf>,
    /// Whether the table that comes with the library is used for problems without a kept plan.
    shipped: bool,
}

impl MeasuredPlans {
    /// No folder: nothing is found, and nothing can be kept.
    pub fn none() -> MeasuredPlans {
        MeasuredPlans { folder: None, shipped: false }
    }

    /// The plans in a folder, which is created when a plan is kept.
    pub fn in_folder(folder: impl Into<PathBuf>) -> MeasuredPlans {
        MeasuredPlans { folder: Some(folder.into()), shipped: false }
    }

    /// The same plans, with the table that comes with the library for problems without a kept plan.
    /// The table has plans that were measured on a card with a driver of the same major version of
    /// CUDA. Kept plans take precedence.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::measured::{Card, MeasuredPlans};
    /// use tilewright::planners::gemm::Problem;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let card = Card { name: "NVIDIA H200".into(), driver: 13_000 };
    /// let problem = Problem::new(Element::Bf16, [3072, 12288, 3072])?;
    /// assert!(MeasuredPlans::none().with_shipped().find(&card, &problem)?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_shipped(self) -> MeasuredPlans {
        MeasuredPlans { shipped: true, ..self }
    }

    /// The plans of the user, with the table that comes with the library: in the folder `plans` in
    /// `TILEWRIGHT_CACHE_DIR`; else in `tilewright/plans` in `XDG_CACHE_HOME`, or in `.cache` in
    /// the home directory. If there is no home directory either, only the table is used. If
    /// `TILEWRIGHT_CACHE_DIR` is empty, there are no plans at all.
    pub fn from_environment() -> MeasuredPlans {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let folder = match variable("TILEWRIGHT_CACHE_DIR") {
            Some(folder) if folder.as_os_str().is_empty() => return MeasuredPlans::none(),
            Some(folder) => Some(folder),
            None => variable("XDG_CACHE_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".cache")))
                .map(|caches| caches.join("tilewright")),
        };
        MeasuredPlans { folder: folder.map(|folder| folder.join("plans")), shipped: true }
    }

    /// The folder of the files; None if nothing is kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The file of a card; None if nothing is kept.
    pub fn path(&self, card: &Card) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(file::name(card)))
    }

    /// The kept entry for a problem on a card, or else that of the table that comes with the
    /// library. Damaged entries count as missing.
    ///
    /// Errors: the file of the card was not written for it ([`PlansError::Foreign`]), or cannot be
    /// read.
    pub fn find(&self, card: &Card, work: &impl Planning) -> Result<Option<MeasuredPlan>, PlansError> {
        let problem = work.problem();
        let kept = match self.path(card) {
            Some(path) => contents(&path, card)?.find(work.kernel(), &problem).cloned(),
            None => None,
        };
        Ok(kept.or_else(|| shipped::find(card, work.kernel(), &problem).filter(|_| self.shipped)))
    }

    /// The kept plan for a problem on a card, for a machine. None if there is none, or if the
    /// library no longer has this plan for the machine.
    ///
    /// Errors: as [`MeasuredPlans::find`].
    pub fn best<W: Planning>(
        &self,
        card: &Card,
        machine: &Machine,
        work: &W,
    ) -> Result<Option<(W::Plan, MeasuredPlan)>, PlansError> {
        let Some(found) = self.find(card, work)? else { return Ok(None) };
        Ok(work.read(machine, &found.plan).map(|plan| (plan, found)))
    }

    /// Keeps the fastest of some measured plans for a problem on a card. An earlier plan stays if
    /// it is faster and was not measured again. So two processes that measure different plans keep
    /// the faster one, in either order.
    ///
    /// Errors: there is no folder, no plan or no time; the file of the card was not written for it;
    /// a file cannot be written.
    pub fn keep<W: Planning>(&self, card: &Card, work: &W, ranking: &[Ranked<W::Plan>]) -> Result<Kept, PlansError> {
        let fastest = ranking.first().filter(|own| own.seconds > 0.0 && own.seconds.is_finite());
        let fastest = fastest.ok_or(PlansError::NotMeasured)?;
        let own = MeasuredPlan {
            plan: W::line(&fastest.plan),
            microseconds: fastest.seconds * 1e6,
            candidates: ranking.len(),
        };
        let (kernel, problem) = (work.kernel().to_owned(), work.problem());
        for text in [&card.name, &kernel, &problem, &own.plan] {
            if text.contains(['\t', '\n', '\r']) {
                return Err(PlansError::Text { text: text.clone() });
            }
        }
        let (folder, path) = self.folder.as_ref().zip(self.path(card)).ok_or(PlansError::NoFolder)?;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| PlansError::Io { path, error }
        };
        fs::create_dir_all(folder).map_err(at(folder))?;
        let lock = folder.join(LOCK);
        let locked = File::options().create(true).truncate(false).write(true).open(&lock).map_err(at(&lock))?;
        // The system releases the lock when the file is closed, even if the process is killed.
        locked.lock().map_err(at(&lock))?;
        remove_unfinished(folder);
        let mut contents = contents(&path, card)?;
        let before = contents.take(&kernel, &problem);
        let again = |before: &MeasuredPlan| ranking.iter().any(|own| W::line(&own.plan) == before.plan);
        let stays = before.filter(|before| !again(before) && before.microseconds <= own.microseconds);
        let is_new = stays.is_none();
        contents.put(kernel, problem, stays.unwrap_or(own));
        file::write(&path, &contents.text(card)).map_err(at(&path))?;
        Ok(Kept { path, is_new, damaged: contents.damaged })
    }
}

/// The contents of the file of a card; empty if there is no file.
fn contents(path: &Path, card: &Card) -> Result<Contents, PlansError> {
    match file::read(path) {
        Ok(text) => Contents::of(&text, card).map_err(|because| PlansError::Foreign { path: path.to_owned(), because }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Contents::default()),
        Err(error) => Err(PlansError::Io { path: path.to_owned(), error }),
    }
}

/// Removes the unfinished files of processes that were killed during writing. The caller holds the
/// lock, so no other process is writing.
fn remove_unfinished(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
            // If this fails, the file stays without harm: no reader takes it for plans.
            let _ = fs::remove_file(path);
        }
    }
}
