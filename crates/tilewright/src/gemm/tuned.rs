//! Plans of products that were measured, kept in files.
//!
//! Law: what is found for a problem on a device is what was kept for the same problem, on a device
//! of this name, with this driver and this version of the library; or nothing is found. A file
//! says all of that, and holds one plan; one that is damaged or cut off is as none. It is written
//! beside its place and put there when it is complete.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tilewright_gpu::Device;
use tilewright_kernels::gemm::{Plan, Problem};

/// What a file begins with.
const HEAD: &str = "tilewright plan 2";
/// The most bytes of a file.
const MAX_BYTES: u64 = 1 << 16;

/// A plan that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The plan.
    pub plan: Plan,
    /// Its median time in microseconds.
    pub microseconds: f64,
    /// How many plans were measured.
    pub candidates: usize,
}

/// The plans that were kept, in a folder.
///
/// ```
/// use tilewright::gemm::TunedPlans;
///
/// assert_eq!(TunedPlans::none().folder(), None);
/// assert!(TunedPlans::in_folder("/tmp/plans").folder().is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunedPlans {
    folder: Option<PathBuf>,
}

impl TunedPlans {
    /// No folder: nothing is found, and nothing kept.
    pub fn none() -> TunedPlans {
        TunedPlans { folder: None }
    }

    /// The plans in a folder, which is made when something is kept.
    pub fn in_folder(folder: impl Into<PathBuf>) -> TunedPlans {
        TunedPlans { folder: Some(folder.into()) }
    }

    /// The plans of the user: in `plans` in `TILEWRIGHT_CACHE_DIR`; else in `tilewright/plans` in
    /// `XDG_CACHE_HOME`, or in `.cache` in the home directory. None where `TILEWRIGHT_CACHE_DIR` is
    /// empty, or where there is no home directory either.
    pub fn from_environment() -> TunedPlans {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let folder = match variable("TILEWRIGHT_CACHE_DIR") {
            Some(folder) => Some(folder).filter(|folder| !folder.as_os_str().is_empty()),
            None => variable("XDG_CACHE_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".cache")))
                .map(|caches| caches.join("tilewright")),
        };
        TunedPlans { folder: folder.map(|folder| folder.join("plans")) }
    }

    /// Where the files are; none where nothing is kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What was kept for a problem on a device.
    pub fn find(&self, device: &Device, problem: &Problem) -> Option<Tuned> {
        self.get(&key(device.name(), device.driver_version(), problem))
    }

    /// Keeps a plan for a problem on a device, in the place of one that may be there: the file.
    ///
    /// Errors: there is no folder, or it cannot be written.
    pub fn keep(&self, device: &Device, problem: &Problem, tuned: &Tuned) -> io::Result<PathBuf> {
        self.put(&key(device.name(), device.driver_version(), problem), tuned)
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{:016x}.plan", hash(key.as_bytes()))))
    }

    fn get(&self, key: &str) -> Option<Tuned> {
        let path = self.path(key)?;
        if fs::metadata(&path).ok()?.len() > MAX_BYTES {
            return None;
        }
        let text = fs::read_to_string(&path).ok()?;
        let rest = text.strip_prefix(&format!("{HEAD}\n{key}"))?;
        let lines: Vec<&str> = rest.lines().collect();
        let [plan, microseconds, candidates, "end"] = lines[..] else { return None };
        Some(Tuned {
            plan: Plan::from_line(plan.strip_prefix("plan ")?)?,
            microseconds: microseconds.strip_prefix("microseconds ")?.parse().ok()?,
            candidates: candidates.strip_prefix("candidates ")?.parse().ok()?,
        })
    }

    fn put(&self, key: &str, tuned: &Tuned) -> io::Result<PathBuf> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "there is no folder for plans: set TILEWRIGHT_CACHE_DIR");
        let (folder, path) = self.folder.as_ref().zip(self.path(key)).ok_or_else(none)?;
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().suffix(".new").tempfile_in(folder)?;
        write!(
            file,
            "{HEAD}\n{key}plan {}\nmicroseconds {}\ncandidates {}\nend\n",
            tuned.plan.line(),
            tuned.microseconds,
            tuned.candidates
        )?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }
}

/// Everything that a plan was measured for, as lines.
fn key(device: &str, driver: i32, problem: &Problem) -> String {
    let mut key =
        format!("version {}\ndevice {device}\ndriver {driver}\nproblem {problem}\n", env!("CARGO_PKG_VERSION"));
    for operand in problem.given().into_iter().chain(problem.written_operands()) {
        if let Some(matrix) = problem.matrix(operand) {
            key.push_str(&format!("{operand:?} {matrix}\n"));
        }
    }
    if problem.is_tf32() {
        key.push_str("tf32\n");
    }
    key
}

/// FNV-1a, of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::Element;
    use tilewright_kernel::machine::Machine;
    use tilewright_kernels::gemm::{Problem, Product};

    use super::{Tuned, TunedPlans, key};

    fn kept() -> (tempfile::TempDir, TunedPlans, String, Tuned) {
        let folder = tempfile::tempdir().unwrap();
        let plans = TunedPlans::in_folder(folder.path().join("plans"));
        let problem = Problem::new(Element::Bf16, [256, 512, 64]).unwrap();
        let plan = Product::new(&problem, &Machine::named("H200").unwrap()).unwrap().plan().clone();
        let tuned = Tuned { plan, microseconds: 3.25, candidates: 24 };
        let key = key("a device", 13_000, &problem);
        plans.put(&key, &tuned).unwrap();
        (folder, plans, key, tuned)
    }

    #[test]
    fn what_is_kept_is_found() {
        let (_folder, plans, key, tuned) = kept();
        assert_eq!(plans.get(&key), Some(tuned.clone()));
        // The same place, another plan; and nothing else in the folder.
        let other = Tuned { microseconds: 3.0, ..tuned };
        plans.put(&key, &other).unwrap();
        assert_eq!(plans.get(&key), Some(other));
        assert_eq!(std::fs::read_dir(plans.folder().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn another_key_finds_nothing() {
        let (_folder, plans, _, _) = kept();
        let of = |device, driver, sizes| key(device, driver, &Problem::new(Element::Bf16, sizes).unwrap());
        assert!(plans.get(&of("a device", 13_000, [256, 512, 64])).is_some());
        for key in [
            of("another", 13_000, [256, 512, 64]),
            of("a device", 13_010, [256, 512, 64]),
            of("a device", 13_000, [256, 512, 72]),
        ] {
            assert_eq!(plans.get(&key), None);
        }
    }

    #[test]
    fn damaged_files_are_as_none() {
        let (_folder, plans, key, _) = kept();
        let path = plans.path(&key).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            // Without the last line end it is whole all the same.
            assert_eq!(plans.get(&key).is_some(), end + 1 == whole.len(), "{end} bytes");
        }
        for text in ["rows=0x80", "rows=1 rows=1"] {
            let text = String::from_utf8(whole.clone()).unwrap().replace("rows=64", text).replace("rows=128", text);
            std::fs::write(&path, text).unwrap();
            assert_eq!(plans.get(&key), None);
        }
        assert_eq!(TunedPlans::none().get(&key), None);
        assert!(TunedPlans::none().put(&key, &kept().3).is_err());
    }
}
