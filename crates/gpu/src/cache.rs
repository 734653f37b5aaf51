//! Compiled kernels on disk.
//!
//! Law: the cache returns what was stored for a key, byte for byte, or nothing. An entry holds its
//! whole key and a checksum; one that is damaged, truncated, or of another key with the same file
//! name counts as missing. An entry is written to a temporary file and renamed when it is complete.
//! All entries together have at most [`Cache::limit`] bytes: the least recently used ones are
//! removed first.
//!
//! A cache never causes a failure: if an entry cannot be read, the text is compiled; if it cannot
//! be written, it is not kept.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The default limit of the size of all entries, in bytes.
pub const DEFAULT_LIMIT: u64 = 256 << 20;

/// The first bytes of an entry.
const MAGIC: &[u8; 8] = b"twcubin1";
/// The extension of the names of entries.
const ENDING: &str = "cubin";

/// Where compiled kernels are kept.
///
/// ```
/// use tilewright_gpu::Cache;
///
/// assert_eq!(Cache::none().folder(), None);
/// let cache = Cache::in_folder("/tmp/kernels").with_limit(1 << 20);
/// assert_eq!(cache.limit(), 1 << 20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: Option<PathBuf>,
    limit: u64,
}

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheEntry {
    pub(crate) code: Vec<u8>,
    pub(crate) notes: String,
}

impl Default for Cache {
    /// As [`Cache::from_environment`].
    fn default() -> Cache {
        Cache::from_environment()
    }
}

impl Cache {
    /// No cache.
    pub fn none() -> Cache {
        Cache { folder: None, limit: 0 }
    }

    /// A cache in a folder, which is made when something is stored.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: Some(folder.into()), limit: DEFAULT_LIMIT }
    }

    /// The cache of the user: in `TILEWRIGHT_CACHE_DIR`; else in `tilewright/kernels` in
    /// `XDG_CACHE_HOME`, or in `.cache` in the home directory. None if `TILEWRIGHT_CACHE_DIR` is
    /// empty, or where there is no home directory either.
    pub fn from_environment() -> Cache {
        Cache::from_variables(|name| std::env::var_os(name).map(PathBuf::from))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Cache {
        let folder = match variable("TILEWRIGHT_CACHE_DIR") {
            Some(folder) => Some(folder).filter(|folder| !folder.as_os_str().is_empty()),
            // By the XDG specification, a path that is not absolute counts as not set.
            None => variable("XDG_CACHE_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".cache")))
                .map(|caches| caches.join("tilewright").join("kernels")),
        };
        folder.map_or(Cache::none(), Cache::in_folder)
    }

    /// The same cache with another limit of the size of all entries, in bytes.
    pub fn with_limit(self, bytes: u64) -> Cache {
        Cache { limit: bytes, ..self }
    }

    /// Where entries are; none if nothing is kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The most bytes of all entries together.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The place of a key.
    fn path(&self, key: &[u8]) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{:016x}.{ENDING}", hash(key))))
    }

    /// The entry of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<CacheEntry> {
        let path = self.path(key)?;
        let file = File::open(&path).ok()?;
        // A longer file was not written here.
        let length = file.metadata().ok()?.len();
        let mut bytes = Vec::new();
        if length > self.limit || file.take(self.limit).read_to_end(&mut bytes).is_err() {
            return None;
        }
        let entry = decode(&bytes, key)?;
        // Used now; where that cannot be said, it was used when it was written.
        let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(entry)
    }

    /// Stores something for a key. Says whether it is there now.
    pub(crate) fn put(&self, key: &[u8], entry: &CacheEntry) -> bool {
        let bytes = encode(key, entry);
        let (Some(folder), Some(path)) = (&self.folder, self.path(key)) else { return false };
        let Some(left) = self.limit.checked_sub(bytes.len() as u64) else { return false };
        let store = || {
            fs::create_dir_all(folder)?;
            make_room(folder, &path, left)?;
            let mut file = tempfile::Builder::new().suffix(&format!(".{ENDING}")).tempfile_in(folder)?;
            file.write_all(&bytes)?;
            file.persist(&path).map_err(|error| error.error)?;
            std::io::Result::Ok(())
        };
        store().is_ok()
    }
}

/// Removes entries, those first that were not used for the longest time, until the others have at
/// most `left` bytes. The entry at `path` does not count, for it will be replaced. What a program
/// left here that was killed while it wrote has the ending of an entry, and goes like one.
fn make_room(folder: &Path, path: &Path, left: u64) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let known = entry?.path();
        if known.extension().is_none_or(|ending| ending != ENDING) || known == path {
            continue;
        }
        if let Ok(about) = fs::symlink_metadata(&known) {
            entries.push((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len(), known));
        }
    }
    let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    entries.sort();
    for (_, bytes, known) in entries {
        if total <= left {
            break;
        }
        // Another program may have removed it.
        match fs::remove_file(known) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => total -= bytes,
        }
    }
    Ok(())
}

/// FNV-1a with 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The bytes of an entry: what it begins with, three lengths, the key, the code, the notes, and the
/// checksum of all that.
fn encode(key: &[u8], entry: &CacheEntry) -> Vec<u8> {
    let parts = [key, &entry.code, entry.notes.as_bytes()];
    let mut bytes = MAGIC.to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(&(part.len() as u64).to_le_bytes()));
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    let checksum = hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The entry in these bytes, if they are whole and of this key.
fn decode(bytes: &[u8], key: &[u8]) -> Option<CacheEntry> {
    let (body, checksum) = bytes.split_last_chunk::<8>()?;
    if hash(body) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut lengths = [0_usize; 3];
    for length in &mut lengths {
        let (first, others) = rest.split_first_chunk::<8>()?;
        (*length, rest) = (usize::try_from(u64::from_le_bytes(*first)).ok()?, others);
    }
    let [key_length, code_length, notes_length] = lengths;
    let (known, rest) = rest.split_at_checked(key_length)?;
    let (code, notes) = rest.split_at_checked(code_length)?;
    if known != key || notes.len() != notes_length {
        return None;
    }
    Some(CacheEntry { code: code.to_vec(), notes: String::from_utf8(notes.to_vec()).ok()? })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(code: &[u8]) -> CacheEntry {
        CacheEntry { code: code.to_vec(), notes: "notes".into() }
    }

    fn names(folder: &Path) -> Vec<PathBuf> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_found_is_what_was_stored() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("deeper"));
        assert_eq!(cache.get(b"a"), None);
        for (key, code) in [(b"a", &b"first"[..]), (b"b", b""), (b"a", b"second")] {
            assert!(cache.put(key, &entry(code)));
            assert_eq!(cache.get(key), Some(entry(code)));
        }
        assert_eq!(cache.get(b"b"), Some(entry(b"")));
        assert_eq!(names(cache.folder().unwrap()).len(), 2);
        assert!(!Cache::none().put(b"a", &entry(b"")));
    }

    /// Whatever byte is changed and wherever the file ends, nothing is found; storing again heals.
    #[test]
    fn damaged_entries_are_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path());
        assert!(cache.put(b"key", &entry(b"code")));
        let path = cache.path(b"key").unwrap();
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(cache.get(b"key"), None, "{place}");
            fs::write(&path, &whole[..place]).unwrap();
            assert_eq!(cache.get(b"key"), None, "{place}");
        }
        // An entry of another key under this name.
        fs::write(&path, encode(b"other", &entry(b"code"))).unwrap();
        assert_eq!(cache.get(b"key"), None);
        assert!(cache.put(b"key", &entry(b"code")));
        assert_eq!(cache.get(b"key"), Some(entry(b"code")));
    }

    /// The bound holds after each store, what was used last stays, and other files are left alone.
    #[test]
    fn entries_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let size = encode(b"0", &entry(&[0; 100])).len() as u64;
        let cache = Cache::in_folder(folder.path()).with_limit(3 * size);
        fs::write(folder.path().join("notes.txt"), [0; 1000]).unwrap();
        let age = |key: &[u8], seconds| {
            let file = File::options().append(true).open(cache.path(key).unwrap()).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        for (key, seconds) in [(b"0", 30), (b"1", 20), (b"2", 10)] {
            assert!(cache.put(key, &entry(&[0; 100])));
            age(key, seconds);
        }
        assert!(cache.get(b"0").is_some()); // Used now, so that 1 is the oldest.
        assert!(cache.put(b"3", &entry(&[0; 100])));
        let there = |key: &[u8]| cache.get(key).is_some();
        assert_eq!([there(b"0"), there(b"1"), there(b"2"), there(b"3")], [true, false, true, true]);
        assert_eq!(names(folder.path()).len(), 4);
        // One that is larger than the bound removes nothing.
        assert!(!cache.put(b"4", &entry(&[0; 1000])));
        assert_eq!(names(folder.path()).len(), 4);
    }

    #[test]
    fn the_folder_is_that_of_the_environment() {
        let folder = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            Cache::from_variables(find).folder
        };
        let xdg = Some(PathBuf::from("/x/tilewright/kernels"));
        assert_eq!(folder(&[("TILEWRIGHT_CACHE_DIR", "here"), ("HOME", "/h")]), Some("here".into()));
        assert_eq!(folder(&[("TILEWRIGHT_CACHE_DIR", ""), ("HOME", "/h")]), None);
        assert_eq!(folder(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), xdg);
        assert_eq!(folder(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), Some("/h/.cache/tilewright/kernels".into()));
        assert_eq!(folder(&[]), None);
    }
}
