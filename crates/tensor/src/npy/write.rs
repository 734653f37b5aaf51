//! Writes a `.npy` file.
//!
//! Law: that of [`super`]. An existing file stays as it is until the new one is complete.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use tilewright_layout::Tree;

use super::new_file::NewFile;
use super::{Header, NpyElement, NpyError, Order};
use crate::offsets::Offsets;
use crate::rearrange::Rearrangement;
use crate::tiling::Tiling;
use crate::view::TensorView;

/// Writes a tensor to a `.npy` file.
///
/// The file is complete before it is put at the path. An existing file stays until then, and stays
/// for good if an error occurs.
///
/// Errors: the system refuses; more than 64 modes.
pub fn write<T: NpyElement, L: Offsets>(path: impl AsRef<Path>, tensor: &TensorView<'_, T, L>) -> Result<(), NpyError> {
    let shape = tensor.shape().product_each()?;
    // A flat tuple, like the axes of an array.
    let shape = Tree::flat(shape.leaves().iter().copied())?;
    let backwards: Vec<usize> = (0..shape.leaves().len()).rev().collect();
    let rows = tensor.rearranged(&[Rearrangement::Select(backwards)])?;
    let fortran = !neighbours(rows.layout()) && neighbours(tensor.layout());
    let order = if fortran { Order::Fortran } else { Order::C };
    let header = Header::new(T::KIND, size_of::<T>(), order, shape).to_bytes();
    replace(path.as_ref(), |file| {
        file.write_all(&header)?;
        if fortran { write_elements(file, tensor) } else { write_elements(file, &rows) }
    })?;
    Ok(())
}

/// Whether the offsets in index order go up by one from that of index 0.
fn neighbours(layout: &impl Offsets) -> bool {
    let mut covered = 1_i64;
    layout.leaves().is_some_and(|leaves| {
        leaves.iter().filter(|leaf| leaf.extent > 1).all(|leaf| {
            let next = leaf.stride == covered;
            covered = covered.saturating_mul(leaf.extent);
            next
        })
    })
}

/// Writes the elements in index order, in pieces.
fn write_elements<T: NpyElement, L: Offsets>(file: &mut dyn Write, tensor: &TensorView<'_, T, L>) -> io::Result<()> {
    const PIECE: usize = 1 << 13;
    let mut piece: Vec<T> = Vec::with_capacity(PIECE);
    let mut elements = tensor.iter();
    loop {
        piece.clear();
        piece.extend(elements.by_ref().take(PIECE).copied());
        if piece.is_empty() {
            return Ok(());
        }
        file.write_all(bytemuck::cast_slice(&piece))?;
    }
}

/// The path to which links lead. Links are followed, including a last link whose target does not
/// exist yet.
///
/// Errors: the links form a cycle.
///
/// ```
/// use tilewright_tensor::npy;
///
/// // No link: the path itself.
/// assert_eq!(npy::target("no-such-file".as_ref())?, std::path::Path::new("no-such-file"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn target(path: &Path) -> io::Result<PathBuf> {
    if let Ok(whole) = fs::canonicalize(path) {
        return Ok(whole);
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        // A relative link starts at the directory that it is in.
        path = path.parent().map_or_else(|| next.clone(), |directory| directory.join(&next));
    }
    Err(io::Error::other("the links lead in a circle"))
}

/// The largest number of links that are followed, the same as in Linux.
const MAX_LINKS: usize = 40;

/// Writes a new file of any format, which replaces the one at the path when it is complete.
///
/// A link stays a link, and its target is written, even if that file does not exist yet. A path
/// that is not a regular file, such as a pipe, is written to directly.
///
/// Errors: the system refuses, and then the old file is still there; a read-only file stays as it
/// is.
///
/// ```
/// use tilewright_tensor::npy;
///
/// # let directory = std::env::temp_dir().join(format!("tilewright-replace-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let path = directory.join("notes.txt");
/// npy::replace(&path, |file| file.write_all(b"whole"))?;
/// assert!(npy::replace(&path, |_| Err(std::io::Error::other("half done"))).is_err());
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn replace(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    replace_with_holes(path, |out| {
        let mut buffered = BufWriter::new(out);
        contents(&mut buffered)?;
        buffered.flush()
    })
}

/// The largest number of bytes that are checked for zeros at once. Holes are multiples of a block
/// of the file system, which has 4 KiB.
const BLOCK: usize = 1 << 16;

/// A new file, in which zeros may be holes.
pub(super) struct Output {
    to: WriteTarget,
    /// The number of zero bytes that must precede the next write.
    due: u64,
}

enum WriteTarget {
    New(NewFile),
    /// A file that cannot be replaced, such as a terminal or a pipe.
    Stream(File),
}

impl Output {
    /// Writes this many zeros.
    pub fn zeros(&mut self, count: u64) -> io::Result<()> {
        self.due += count;
        Ok(())
    }

    /// Writes the pending zeros, as a hole if that is possible.
    fn catch_up(&mut self) -> io::Result<()> {
        let due = std::mem::take(&mut self.due);
        match &mut self.to {
            WriteTarget::New(file) => file.skip(due),
            WriteTarget::Stream(file) => io::copy(&mut io::repeat(0).take(due), file).map(drop),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let block = bytes.get(..bytes.len().min(BLOCK)).unwrap_or_default();
        if block.len() == BLOCK && block.iter().all(|byte| *byte == 0) {
            self.due += block.len() as u64;
            return Ok(block.len());
        }
        if self.due > 0 {
            self.catch_up()?;
        }
        match &mut self.to {
            WriteTarget::New(file) => file.write(block),
            WriteTarget::Stream(file) => file.write(block),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            WriteTarget::New(file) => file.flush(),
            WriteTarget::Stream(file) => file.flush(),
        }
    }
}

/// As [`replace`], for contents with many zeros.
pub(super) fn replace_with_holes(path: &Path, contents: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<()> {
    let path = target(path)?;
    if fs::metadata(&path).is_ok_and(|about| !about.is_file()) {
        let mut out = Output { to: WriteTarget::Stream(OpenOptions::new().write(true).open(&path)?), due: 0 };
        contents(&mut out)?;
        out.catch_up()?;
        return out.flush();
    }
    let permissions = fs::metadata(&path).map(|about| about.permissions()).ok();
    if permissions.as_ref().is_some_and(Permissions::readonly) {
        // Replacing the file does not need the permission to write it, so that permission is
        // checked here.
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let mut out = Output { to: WriteTarget::New(NewFile::beside(&path)?), due: 0 };
    contents(&mut out)?;
    out.catch_up()?;
    let WriteTarget::New(file) = out.to else { return Ok(()) };
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.put_at(&path)
}
