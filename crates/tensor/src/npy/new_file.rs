//! A file that becomes visible only when it is complete.
//!
//! Law: until [`NewFile::put_at`] has succeeded, the old file stays at its path. If anything fails,
//! nothing is left of the new file. If the system supports files without names, as Linux does on
//! most file systems, nothing is left either if the program is killed. On other systems the new
//! file has a hidden name beside the path.
//!
//! Reason for unsafe code: the standard library cannot give a name to a file that has none.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that has not reached its path yet.
pub(super) struct NewFile {
    file: File,
    /// The hidden path of the file; None if the file has no name.
    name: Option<PathBuf>,
}

impl NewFile {
    /// A new file in the directory of a path.
    pub(super) fn beside(path: &Path) -> io::Result<NewFile> {
        // A path without a file name is refused now, and not after everything is written.
        name_beside(path)?;
        match without_name(path) {
            Some(file) => Ok(NewFile { file, name: None }),
            None => {
                let create = |name: &Path| OpenOptions::new().write(true).create_new(true).open(name);
                let (file, name) = under_free_name(path, create)?;
                Ok(NewFile { file, name: Some(name) })
            }
        }
    }

    pub(super) fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Skips this many bytes, which are then zeros: a hole, if the file system supports holes.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.file.stream_position()?.checked_add(bytes).ok_or(io::ErrorKind::FileTooLarge)?;
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::Start(end)).map(drop)
    }

    /// Puts the file at the path, and replaces an existing one.
    pub(super) fn put_at(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if self.name.is_none() {
            // The file first gets a free name, and then replaces the file at the path.
            let ((), name) = under_free_name(path, |name| named(&self.file, name))?;
            self.name = Some(name);
        }
        if let Some(name) = &self.name {
            fs::rename(name, path)?;
        }
        // The hidden name no longer exists.
        self.name = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The error has been reported. An error about a leftover file would not help.
            let _ = fs::remove_file(name);
        }
    }
}

/// A hidden unique path in the directory of a path.
fn name_beside(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut own = OsString::from(".");
    own.push(name);
    own.push(format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(own))
}

/// Calls `with` with hidden names in the directory of a path until one is free.
fn under_free_name<R>(path: &Path, with: impl Fn(&Path) -> io::Result<R>) -> io::Result<(R, PathBuf)> {
    loop {
        let name = name_beside(path)?;
        match with(&name) {
            Ok(done) => return Ok((done, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file without a name in the directory of a path; None if the system does not support such
/// files.
#[cfg(target_os = "linux")]
fn without_name(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = OpenOptions::new().write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(directory).ok()?;
    // Checks that the file can later be named through this path.
    fs::symlink_metadata(by_descriptor(&file)).is_ok().then_some(file)
}

/// The path under which the system lists an open file.
#[cfg(target_os = "linux")]
fn by_descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

/// Gives a file without a name this name, if it is free.
#[cfg(target_os = "linux")]
fn named(file: &File, name: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let (from, to) = (CString::new(by_descriptor(file))?, CString::new(name.as_os_str().as_bytes())?);
    // SAFETY: both are strings that end in a zero byte and live as long as the call, which keeps
    // neither.
    let done =
        unsafe { libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn without_name(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn named(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For both kinds of new files: nothing is visible before a file is put at its path, and
    /// nothing is left of a file that is dropped instead.
    #[test]
    fn a_file_is_seen_when_it_is_complete() {
        let directory = std::env::temp_dir().join(format!("tilewright-new-file-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a");
        let visible = || fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        let with_name = || {
            let create = |name: &Path| OpenOptions::new().write(true).create_new(true).open(name);
            under_free_name(&path, create).map(|(file, name)| NewFile { file, name: Some(name) })
        };
        for (round, unnamed) in [(1, false), (2, true), (3, false), (4, true)] {
            let new = || if unnamed { NewFile::beside(&path) } else { with_name() };
            let mut file = new().unwrap();
            write!(file, "{round}").unwrap();
            assert_eq!(path.exists(), round > 1);
            if file.name.is_none() {
                assert_eq!(visible().len(), usize::from(round > 1));
            }
            drop(file);
            assert_eq!(visible().len(), usize::from(round > 1));
            let mut file = new().unwrap();
            write!(file, "{round}").unwrap();
            file.put_at(&path).unwrap();
            assert_eq!((visible(), fs::read_to_string(&path).unwrap()), (vec!["a".into()], round.to_string()));
        }
        assert!(NewFile::beside(Path::new("..")).is_err());
        assert!(NewFile::beside(&directory.join("none").join("a")).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
