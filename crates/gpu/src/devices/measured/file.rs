//! The file of measured plans of a card.
//!
//! Law: a file is text. Its head states the format, the card, the driver and the version of the
//! library. Each further line is an entry: a checksum of the rest of the line, the kernel, the
//! problem, the plan, microseconds, and the number of measured plans, separated by tabs. The last
//! line has the number of entries. Entries are sorted, so the same plans give the same bytes. An
//! entry with a wrong checksum or wrong fields is damaged. So is an entry that the last line counts
//! and that is missing. The other entries stay valid.
//!
//! ```text
//! tilewright measured plans 1
//! card NVIDIA H200
//! driver 13000
//! version 0.1.0
//! 5f0c3d2a91b7e684   gemm   bf16 M=512 N=512 K=512; ..   rows=128 columns=256 ..   3.25   24
//! end 1
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use super::{Card, MeasuredPlan, UNFINISHED};

/// The first line of a file.
const FORMAT: &str = "tilewright measured plans 1";
/// The beginning of the last line. The number of entries follows.
const END: &str = "end ";
/// The most bytes of a file: some ten thousand entries.
const MAX_BYTES: u64 = 16 << 20;

/// The entries of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Contents {
    /// The entries, by kernel and problem.
    entries: BTreeMap<(String, String), MeasuredPlan>,
    /// The number of entries that were left out because they are damaged.
    pub(super) damaged: usize,
}

/// The head of the file of a card.
fn head(card: &Card) -> String {
    let Card { name, driver } = card;
    format!("{FORMAT}\ncard {name}\ndriver {driver}\nversion {}\n", env!("CARGO_PKG_VERSION"))
}

/// The name of the file of a card: the letters and digits of the card's name, then a hash.
pub(super) fn name(card: &Card) -> String {
    let words: String =
        card.name.chars().map(|own| if own.is_ascii_alphanumeric() { own.to_ascii_lowercase() } else { '-' }).collect();
    format!("{}-{:016x}.plans", words.get(..words.len().min(40)).unwrap_or_default(), hash(head(card).as_bytes()))
}

/// FNV-1a, of 64 bits.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

impl Contents {
    /// The entries of a text.
    ///
    /// Errors: the reason why it is not the file of this card.
    pub(super) fn of(text: &str, card: &Card) -> Result<Contents, &'static str> {
        if !text.starts_with(FORMAT) {
            return Err("it does not begin as such files do");
        }
        let Some(rest) = text.strip_prefix(&head(card)) else {
            return Err("its head says another card, driver or version, or is cut off");
        };
        let mut contents = Contents::default();
        let mut counted = None;
        for line in rest.split_terminator('\n') {
            match line.strip_prefix(END).and_then(|count| count.parse::<usize>().ok()) {
                Some(count) => counted = Some(count),
                None => match entry(line) {
                    Some((key, measured)) => {
                        contents.entries.insert(key, measured);
                    }
                    None => contents.damaged += 1,
                },
            }
        }
        // If the file was truncated, entries are missing, or the count is.
        let missing = match counted {
            Some(count) => count.saturating_sub(contents.entries.len() + contents.damaged),
            None => usize::from(contents.damaged == 0),
        };
        contents.damaged += missing;
        Ok(contents)
    }

    pub(super) fn find(&self, kernel: &str, problem: &str) -> Option<&MeasuredPlan> {
        self.entries.get(&(kernel.to_owned(), problem.to_owned()))
    }

    pub(super) fn take(&mut self, kernel: &str, problem: &str) -> Option<MeasuredPlan> {
        self.entries.remove(&(kernel.to_owned(), problem.to_owned()))
    }

    pub(super) fn put(&mut self, kernel: String, problem: String, measured: MeasuredPlan) {
        self.entries.insert((kernel, problem), measured);
    }

    /// The text of the file.
    pub(super) fn text(&self, card: &Card) -> String {
        let mut text = head(card);
        for ((kernel, problem), MeasuredPlan { plan, microseconds, candidates }) in &self.entries {
            let fields = format!("{kernel}\t{problem}\t{plan}\t{microseconds}\t{candidates}");
            text.push_str(&format!("{:016x}\t{fields}\n", hash(fields.as_bytes())));
        }
        text.push_str(&format!("{END}{}\n", self.entries.len()));
        text
    }
}

/// The entry of a line; None if it is damaged.
fn entry(line: &str) -> Option<((String, String), MeasuredPlan)> {
    let (sum, fields) = line.split_once('\t')?;
    if sum != format!("{:016x}", hash(fields.as_bytes())) {
        return None;
    }
    let all: Vec<&str> = fields.split('\t').collect();
    let [kernel, problem, plan, microseconds, candidates] = all[..] else { return None };
    let microseconds: f64 = microseconds.parse().ok().filter(|own: &f64| *own > 0.0 && own.is_finite())?;
    let measured = MeasuredPlan { plan: plan.to_owned(), microseconds, candidates: candidates.parse().ok()? };
    Some(((kernel.to_owned(), problem.to_owned()), measured))
}

/// The text of a file. Bytes that are not UTF-8 damage only their own entry.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let words = format!("it has more than {MAX_BYTES} bytes, so it is no file of measured plans");
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a temporary file, and renames it when all of it is on the disk.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().suffix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
