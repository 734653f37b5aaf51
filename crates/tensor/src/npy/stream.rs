//! Moves the elements of a file to another layout, in memory of a bounded size.
//!
//! Law: the result is the same as if the elements of the whole file were moved at once. The memory
//! under the new layout is made in *windows*, one after another. The elements of a window are read
//! from the file in runs, and put in place. Zeros are not written: if the file system supports
//! holes, gaps between elements and elements that are 0 take no space.
//!
//! Windows can follow each other if the steps of the new layout are nested: each step is longer
//! than the range that all shorter steps cover. Otherwise there is no such order, and nothing is
//! streamed.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use bytemuck::{Zeroable, cast_slice, cast_slice_mut};
use tilewright_layout::{Layout, Tree};

use super::write::replace_with_holes;
use super::{ELEMENTS, Header, NpyElement, NpyError, NpyFile, Order, exactly};
use crate::domain::{Addressing, Space, Step};
use crate::offsets::Offsets;
use crate::tensor::Tensor;

/// At most this many elements are read for each one that is needed, to make runs longer.
const SPARSE: usize = 4;

/// An axis of a window: its steps in the file and in memory.
#[derive(Debug, Clone, Copy)]
struct WindowAxis {
    extent: usize,
    /// The steps in the file, in the part of the file that was read, and in the window.
    from: usize,
    held: usize,
    to: usize,
}

/// The plan to move the elements of a file to another layout without having all of them in memory:
/// the windows of the new memory, and what is read for each.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, npy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("tilewright-stream-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let (rows_path, columns_path) = (directory.join("rows.npy"), directory.join("columns.npy"));
/// let (rows, columns): (Layout, Layout) = ("(2,3):(3,1)".parse()?, "(2,3):(1,2)".parse()?);
/// let tensor = Tensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], rows.clone())?;
/// npy::write(&rows_path, &tensor.view())?;
///
/// let stream = npy::Stream::new(&rows, &columns, 6).expect("steps that are nested");
/// stream.run::<f32>(npy::NpyFile::open(&rows_path)?, &columns_path, &"(6,)".parse()?, |_, _| {})?;
/// assert_eq!(npy::read::<f32>(&columns_path)?.as_slice(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    /// The offset of the first element in the file, and in memory.
    origin: [usize; 2],
    /// The axes from window to window, the slowest first: the extent, and the steps in the file and
    /// in memory.
    windows: Vec<(usize, usize, usize)>,
    /// The axes of a window, those with the shortest steps in memory first. The last one may be cut
    /// into chunks, one for each window.
    axes: Vec<(usize, usize, usize)>,
    cut: Option<(usize, usize)>,
    reach: usize,
}

impl Stream {
    /// A stream from one layout to another with memory for this many elements. None if one of the
    /// layouts has a map, if they have no common axes, or if the steps of the second are not
    /// nested.
    pub fn new(from: &impl Offsets, to: &impl Offsets, memory: usize) -> Option<Stream> {
        let sides = [Addressing::of(from).ok()?, Addressing::of(to).ok()?];
        if sides.iter().any(Addressing::is_mapped) {
            return None;
        }
        let space = Space::new([&sides[0], &sides[1]], [1, 1]).ok()?;
        let number = |by: isize| usize::try_from(by).ok();
        let axis = |step: &Step<2>| Some((step.extent, number(step.by[0])?, number(step.by[1])?));
        let mut axes = space.steps.iter().map(axis).collect::<Option<Vec<_>>>()?;
        axes.retain(|(extent, ..)| *extent > 1);
        axes.sort_by_key(|(.., to)| *to);
        let origin = [number(space.origin[0])?, number(space.origin[1])?];
        let mut last = 0_usize;
        for (extent, _, to) in &axes {
            if *to <= last {
                return None;
            }
            last = last.checked_add((extent - 1).checked_mul(*to)?)?;
        }
        let reach = origin[1].checked_add(last)?.checked_add(1)?;
        let mut stream = Stream { origin, windows: Vec::new(), axes, cut: None, reach };
        // A third of the memory is for the window, and two thirds for what is read from the file.
        while let Some((extent, from, to)) = stream.axes.last().copied().filter(|_| !stream.fits(memory / 3)) {
            let (mut fits, mut fails) = (0, extent);
            while fits + 1 < fails {
                let middle = fits + (fails - fits) / 2;
                stream.axes.iter_mut().next_back().into_iter().for_each(|axis| axis.0 = middle);
                if stream.fits(memory / 3) { fits = middle } else { fails = middle }
            }
            if fits > 1 {
                stream.axes.iter_mut().next_back().into_iter().for_each(|axis| axis.0 = fits);
                stream.cut = Some((fits, extent));
                break;
            }
            stream.axes.pop();
            stream.windows.push((extent, from, to));
        }
        Some(stream)
    }

    /// Whether a window has at most this many elements, and what is read for it at most twice as
    /// many.
    fn fits(&self, most: usize) -> bool {
        let axes = placed(&self.axes);
        span(axes.iter().map(|axis| (axis.extent, axis.to))) <= most
            && span(axes.iter().map(|axis| (axis.extent, axis.held))) <= most.saturating_mul(2)
    }

    /// Calls `visit` for each window, with its beginning in the file and in memory, and how much of
    /// its last axis it contains.
    fn each(&self, mut visit: impl FnMut([usize; 2], Option<usize>) -> Result<(), NpyError>) -> Result<(), NpyError> {
        let all: usize = self.windows.iter().map(|(extent, ..)| extent).product();
        let (part, whole) = self.cut.unwrap_or((1, 1));
        let steps = self.axes.last().map_or((0, 0), |(_, from, to)| (*from, *to));
        for window in 0..all {
            let (mut rest, mut at) = (window, self.origin);
            for (extent, from, to) in self.windows.iter().rev() {
                at = [at[0] + rest % extent * from, at[1] + rest % extent * to];
                rest /= extent;
            }
            for first in (0..whole).step_by(part) {
                let count = self.cut.map(|_| part.min(whole - first));
                visit([at[0] + first * steps.0, at[1] + first * steps.1], count)?;
            }
        }
        Ok(())
    }

    /// Moves the elements of a file, and puts the new one at a path when it is complete: an array
    /// of this shape in C order, of as many elements as the layout reaches. `progress` is called
    /// with the number of elements written and the total.
    ///
    /// Errors: as [`NpyFile::read`] and [`super::write()`].
    pub fn run<T: NpyElement>(
        &self,
        file: NpyFile,
        output: &Path,
        shape: &Tree<i64>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(), NpyError> {
        let mut file = file;
        file.holds::<T>()?;
        let begin = file.rest.stream_position()?;
        let header = Header::new(T::KIND, size_of::<T>(), Order::C, shape.clone()).to_bytes();
        let mut failed = None;
        let done = replace_with_holes(output, |out| {
            out.write_all(&header)?;
            let mut written = 0;
            let moved = self.each(|[from, to], count| {
                let mut axes = self.axes.clone();
                if let (Some(axis), Some(count)) = (axes.last_mut(), count) {
                    axis.0 = count;
                }
                let window = file.window::<T>(begin, from, &axes)?;
                out.zeros(((to - written) * size_of::<T>()) as u64)?;
                out.write_all(cast_slice(window.as_slice()))?;
                written = to + window.as_slice().len();
                progress(written as u64, self.reach as u64);
                Ok(())
            });
            match moved {
                Err(NpyError::Io(error)) => return Err(error),
                Err(error) => {
                    failed = Some(error);
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(()) => {}
            }
            out.zeros(((self.reach - written) * size_of::<T>()) as u64)
        });
        match (done, failed) {
            (_, Some(error)) => Err(error),
            (done, None) => Ok(done?),
        }
    }
}

/// One more than the largest offset of the axes.
fn span(axes: impl Iterator<Item = (usize, usize)>) -> usize {
    axes.fold(1, |all: usize, (extent, by)| all.saturating_add((extent - 1).saturating_mul(by)))
}

/// The axes of a window, with their steps in the part of the file that is read: runs that contain
/// the axes with the shortest steps in the file, one run after another.
fn placed(axes: &[(usize, usize, usize)]) -> Vec<WindowAxis> {
    let mut placed: Vec<WindowAxis> =
        axes.iter().map(|(extent, from, to)| WindowAxis { extent: *extent, from: *from, held: 0, to: *to }).collect();
    placed.sort_by_key(|axis| axis.from);
    let (mut count, mut run) = (1_usize, 1_usize);
    let mut next = None;
    for axis in &mut placed {
        count = count.saturating_mul(axis.extent);
        let longer = run.saturating_add((axis.extent - 1).saturating_mul(axis.from));
        if axis.from == 0 {
            count /= axis.extent;
        } else if next.is_none() && longer <= count.saturating_mul(SPARSE) {
            (axis.held, run) = (axis.from, longer);
        } else {
            let by = next.unwrap_or(run);
            axis.held = by;
            next = Some(by.saturating_mul(axis.extent));
        }
    }
    placed
}

impl NpyFile {
    /// Whether elements can be read in any order.
    pub fn is_seekable(&self) -> bool {
        self.length.is_some()
    }

    /// An error if the elements do not have this type, or there are none.
    pub(super) fn holds<T: NpyElement>(&self) -> Result<(), NpyError> {
        let header = &self.header;
        if (header.kind(), header.size()) != (T::KIND, size_of::<T>()) {
            let wanted = Header::type_text(T::KIND, size_of::<T>());
            return Err(NpyError::Type { wanted: wanted.into(), found: header.descr().into() });
        }
        Ok(())
    }

    /// The elements of a window, each in its place, given the element of the file at which the
    /// window begins.
    fn window<T: NpyElement>(
        &mut self,
        begin: u64,
        from: usize,
        axes: &[(usize, usize, usize)],
    ) -> Result<Tensor<T>, NpyError> {
        let axes = placed(axes);
        let line = |length: usize| Layout::mode_of(i64::try_from(length).unwrap_or(i64::MAX), 1);
        let mut held: Tensor<T::Bytes> = Tensor::zeroed(line(span(axes.iter().map(|axis| (axis.extent, axis.held))))?)?;
        // An axis with the same step in the file and in the part that was read is inside a run.
        let is_outside = |axis: &&WindowAxis| axis.held != axis.from;
        let run = span(axes.iter().filter(|axis| !is_outside(axis)).map(|axis| (axis.extent, axis.held)));
        let outside: Vec<WindowAxis> = axes.iter().filter(is_outside).copied().collect();
        let runs: usize = outside.iter().map(|axis| axis.extent).product();
        for number in 0..runs {
            let (mut rest, mut at, mut place) = (number, from, 0);
            for axis in &outside {
                at += rest % axis.extent * axis.from;
                place += rest % axis.extent * axis.held;
                rest /= axis.extent;
            }
            let Some(place) = held.as_mut_slice().get_mut(place..place + run) else { continue };
            let file = self.rest.get_mut();
            file.seek(SeekFrom::Start(begin + (at * size_of::<T>()) as u64))?;
            exactly(file, cast_slice_mut(place), ELEMENTS)?;
        }
        let mut window: Tensor<T> = Tensor::zeroed(line(span(axes.iter().map(|axis| (axis.extent, axis.to))))?)?;
        // All zeros, as in the holes of a sparse file.
        if cast_slice::<_, u8>(held.as_slice()).iter().all(|byte| *byte == 0) {
            return Ok(window);
        }
        if self.header.swapped() {
            held.as_mut_slice().iter_mut().for_each(|element| *element = T::swapped(*element));
        }
        let held = T::of_stored(held)?;
        put::<T>(held.as_slice(), window.as_mut_slice(), &axes);
        Ok(window)
    }
}

/// Moves elements to their place, in tiles of the two axes that have the shortest steps in the
/// source and in the window, so that both stay in the cache.
fn put<T: Copy + Zeroable>(held: &[T], window: &mut [T], axes: &[WindowAxis]) {
    const SIDE: usize = 64;
    let shortest = |step: fn(&WindowAxis) -> usize| {
        (0..axes.len()).min_by_key(|at| axes.get(*at).map(step).filter(|step| *step > 0).unwrap_or(usize::MAX))
    };
    let (Some(across), Some(down)) = (shortest(|axis| axis.to), shortest(|axis| axis.held)) else {
        window.iter_mut().zip(held).take(1).for_each(|(place, element)| *place = *element);
        return;
    };
    let one = WindowAxis { extent: 1, from: 0, held: 0, to: 0 };
    let axis = |at: usize| axes.get(at).copied().unwrap_or(one);
    let (across_axis, down_axis) = (axis(across), if across == down { one } else { axis(down) });
    let rest: Vec<WindowAxis> =
        axes.iter().enumerate().filter(|(at, _)| *at != across && *at != down).map(|(_, axis)| *axis).collect();
    let all: usize = rest.iter().map(|axis| axis.extent).product();
    for number in 0..all {
        let (mut left, mut read, mut write) = (number, 0, 0);
        for axis in &rest {
            read += left % axis.extent * axis.held;
            write += left % axis.extent * axis.to;
            left /= axis.extent;
        }
        for top in (0..down_axis.extent).step_by(SIDE) {
            for begin in (0..across_axis.extent).step_by(SIDE) {
                for row in top..down_axis.extent.min(top + SIDE) {
                    for column in begin..across_axis.extent.min(begin + SIDE) {
                        let from = read + row * down_axis.held + column * across_axis.held;
                        let to = write + row * down_axis.to + column * across_axis.to;
                        if let (Some(place), Some(element)) = (window.get_mut(to), held.get(from)) {
                            *place = *element;
                        }
                    }
                }
            }
        }
    }
}
