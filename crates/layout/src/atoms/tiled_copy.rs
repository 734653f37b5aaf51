//! One copy instruction repeated over threads and values: a tiled copy.
//!
//! # Law
//!
//! A thread-value layout `tv` maps (thread, value) to the colexicographic index in the tile, at the
//! reference end of the atom. Threads and values are divided into blocks of the size of the atom,
//! and each block is one execution of the atom. At the other end, the atom determines the threads
//! and values of the elements. So with `own` and `end` the layouts of values in the atom's block,
//! at the reference and at either end, and `T`, `V` the threads and values of `own`,
//!
//! ```text
//! tidfrg((t,r), (v,s), rest) = L(tv(t' + T*r, v' + V*s) in tile number rest),    own(t',v') = end(t,v)
//! ```
//!
//! (CuTe `TiledCopy`, `make_tiled_copy*`, `tidfrg_{S,D}`, `get_layout{S,D}_TV`,
//! `ThrCopy::partition_{S,D}`, `retile_{S,D}`.)

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::atoms::copy::CopyAtom;
use crate::atoms::error::AtomError;
use crate::atoms::mma::Operand;
use crate::atoms::terms::CopyEnd;
use crate::atoms::tiled_mma::{TiledMma, lifted};
use crate::{Extent, Layout, Slot, Stride, Tiler, Tree, make_layout_tv};

/// A copy atom repeated over threads and values: the atom, a thread-value layout, and the tile.
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
/// use tilewright_layout::Layout;
///
/// # fn main() -> Result<(), tilewright_layout::atoms::AtomError> {
/// // 32 x 8 threads along rows, each with 8 consecutive f16 of a row: 128 bits for each copy.
/// let layout = |text: &str| text.parse::<Layout>().unwrap();
/// let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?;
/// let copy = TiledCopy::new(atom, 16, &layout("(32,8):(8,1)"), &layout("(1,8)"))?;
/// assert_eq!((copy.threads(), copy.tile_shape()), (256, vec![32, 64]));
///
/// let (offset, part) = copy.get_slice(&9)?.partition(CopyEnd::Source, &layout("(128,128):(128,1)"))?;
/// assert_eq!((offset, part.to_string().as_str()), (136, "((8,1),4,2):((1,0),4096,64)"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TiledCopy {
    pub(crate) atom: CopyAtom,
    pub(crate) bits: i64,
    /// The layout from (thread, value) to the index in the tile.
    pub(crate) owned: Layout,
    pub(crate) tiler: Tiler,
    pub(crate) tile: Vec<i64>,
    /// How the values of a thread consist of parts of an instruction: the number of values of one
    /// part, and the number of parts along each mode.
    pub(crate) parts: Option<[i64; 3]>,
}

impl TiledCopy {
    /// The copy for a layout of threads and a layout of values: the extent of the tile in each mode
    /// is the product of the two extents (CuTe `make_tiled_copy`).
    ///
    /// Errors: as [`make_layout_tv`] and [`TiledCopy::of_thread_values`].
    #[doc(alias = "make_tiled_copy")]
    #[doc(alias = "make_tiled_copy_tv")]
    pub fn new(atom: CopyAtom, bits: i64, threads: &Layout, values: &Layout) -> Result<TiledCopy, AtomError> {
        let (tile, owned) = make_layout_tv(threads, values)?;
        TiledCopy::of_thread_values(atom, bits, owned, Tiler::from_shape(&tile)?)
    }

    /// The copy of values of `bits` bits for a thread-value layout: `owned` maps (thread, value) to
    /// the colexicographic index in the tile. `tiler` has one layout for each mode of the tile
    /// (CuTe `make_tiled_copy_impl`).
    ///
    /// Errors: the tiler does not name a layout for each mode; the number of threads or values is
    /// not a multiple of that of the atom; the atom splits values of this width; the threads of the
    /// atom are not numbered without gaps ([`AtomError::TiledCopy`], [`AtomError::CopyWidth`]).
    pub fn of_thread_values(atom: CopyAtom, bits: i64, owned: Layout, tiler: Tiler) -> Result<TiledCopy, AtomError> {
        let refuse = |what: &'static str| AtomError::TiledCopy {
            name: atom.name().into(),
            layout: owned.to_string().into(),
            what,
        };
        let Tiler::Modes(modes) = &tiler else { return Err(refuse("the tiler has a layout for each mode")) };
        let extent = |item: &Tiler| match item {
            Tiler::Layout(layout) => Ok(layout.size()),
            _ => Err(refuse("the tiler has a layout for each mode")),
        };
        let tile = modes.items().iter().map(extent).collect::<Result<Vec<_>, _>>()?;
        let own = atom.values(atom.reference(), bits)?;
        let (threads, values) = sizes(&own);
        let (2, (all_threads, all_values)) = (owned.rank(), sizes(&owned)) else {
            return Err(refuse("needed is (thread, value)"));
        };
        if all_threads % threads != 0 || all_values % values != 0 {
            return Err(refuse("needed are whole blocks of the threads and the values of the atom"));
        }
        if !atom.threads().coalesce()?.equivalent(&Layout::mode_of(threads, i64::from(threads > 1))?) {
            return Err(refuse("the threads of the atom must be numbered 0, 1, .."));
        }
        Ok(TiledCopy { atom, bits, owned, tiler, tile, parts: None })
    }

    /// The copy of an operand of a tiled MMA, in which each thread holds its part of the operand
    /// (CuTe `make_tiled_copy_A`, ..).
    ///
    /// Errors: as [`TiledMma::thread_values`] and [`TiledCopy::of_thread_values`].
    #[doc(alias = "make_tiled_copy_A")]
    #[doc(alias = "make_tiled_copy_B")]
    #[doc(alias = "make_tiled_copy_C")]
    pub fn of_operand(atom: CopyAtom, mma: &TiledMma, operand: Operand) -> Result<TiledCopy, AtomError> {
        let types = mma.atom().types();
        let bits = match operand {
            Operand::A => types.a,
            Operand::B => types.b,
            _ => types.c,
        };
        TiledCopy::of_operand_in(atom, mma, operand, bits.bits())
    }

    /// As [`TiledCopy::of_operand`], for elements of another width than in the MMA, such as
    /// accumulators that are stored with fewer bits.
    ///
    /// Errors: as [`TiledCopy::of_operand`].
    pub fn of_operand_in(atom: CopyAtom, mma: &TiledMma, operand: Operand, bits: i64) -> Result<TiledCopy, AtomError> {
        let owned = mma.thread_values(operand)?;
        let tile = mma.tile_shape();
        let extents = operand.modes().iter().filter_map(|mode| tile.get(*mode).copied()).collect::<Vec<_>>();
        let part = |path: &[usize]| owned.at(path).map_or(1, |part| part.size());
        let parts = [part(&[1, 0]), part(&[1, 1, 0]), part(&[1, 1, 1])];
        let tiler = Tiler::from_shape(&Tree::flat(extents)?)?;
        let copy = TiledCopy::of_thread_values(atom, bits, owned, tiler)?;
        Ok(TiledCopy { parts: Some(parts), ..copy })
    }

    /// The instruction.
    pub fn atom(&self) -> &CopyAtom {
        &self.atom
    }

    /// The number of bits of a value.
    pub fn bits(&self) -> i64 {
        self.bits
    }

    /// The number of threads.
    pub fn threads(&self) -> i64 {
        sizes(&self.owned).0
    }

    /// The extents of the tile.
    pub fn tile_shape(&self) -> Vec<i64> {
        self.tile.clone()
    }

    /// The tile, a layout for each mode.
    pub fn tiler(&self) -> &Tiler {
        &self.tiler
    }

    /// From (thread, value) at an end to the colexicographic index in the tile:
    /// `((ThrV,ThrX),(FrgV,FrgX))`, where `ThrV` and `FrgV` are the threads and values of one atom,
    /// and `ThrX` and `FrgX` run over its copies (CuTe `get_layoutS_TV`, `get_layoutD_TV`).
    ///
    /// Errors: the atom splits values of this width at that end ([`AtomError::CopyWidth`]).
    pub fn thread_values(&self, end: CopyEnd) -> Result<Layout, AtomError> {
        let own = self.atom.values(self.atom.reference(), self.bits)?;
        let (threads, values) = sizes(&own);
        let line = |extent| Ok::<_, AtomError>(Tiler::Layout(Layout::mode_of(extent, 1)?));
        let blocks = self.owned.zipped_divide(&Tiler::modes([line(threads)?, line(values)?])?)?;
        // Maps a thread and value of this end to the thread and value of the reference end.
        let moved = own.right_inverse()?.compose(&self.atom.values(end, self.bits)?)?;
        let moved = blocks.compose_tiler(&Tiler::modes([Tiler::Layout(moved), Tiler::Keep])?)?;
        Ok(moved.zip()?)
    }

    /// Partitions a layout into threads and their values, `((ThrV,ThrX),(FrgV,FrgX),RestM,..)`
    /// (CuTe `tidfrg_S`, `tidfrg_D`).
    ///
    /// If the tile does not divide the layout, the partition covers it and extends past its end.
    /// Errors: as [`TiledCopy::thread_values`]; strides that the tile does not divide
    /// ([`AtomError::Layout`]).
    pub fn tidfrg<D: Stride>(&self, end: CopyEnd, layout: &Layout<D>) -> Result<Layout<D>, AtomError> {
        let CopyTilers { tile, held } = self.tilers::<D::Extent>(end)?;
        let held = layout.zipped_divide(&tile)?.compose_tiler(&held)?;
        let at = |path: &[usize]| held.at(path).unwrap_or(Layout::unit());
        let rests = at(&[1]);
        let modes: Vec<Layout<D>> = [at(&[0, 0]), at(&[0, 1])].into_iter().chain(rests.modes()).collect();
        Ok(Layout::tuple(&modes)?)
    }

    /// The tilers that [`TiledCopy::tidfrg`] applies, so that other objects can be partitioned,
    /// too.
    ///
    /// Errors: as [`TiledCopy::thread_values`].
    pub fn tilers<N: Extent>(&self, end: CopyEnd) -> Result<CopyTilers<N>, AtomError> {
        let tile = match &self.tiler {
            Tiler::Modes(modes) => {
                let lift = |item: &Tiler| match item {
                    Tiler::Layout(tile) => Ok(Tiler::Layout(lifted::<N>(tile)?)),
                    _ => Ok(Tiler::Keep),
                };
                Tiler::modes(modes.items().iter().map(lift).collect::<Result<Vec<_>, AtomError>>()?)?
            }
            _ => Tiler::Keep,
        };
        let held = Tiler::modes([Tiler::Layout(lifted::<N>(&self.thread_values(end)?)?), Tiler::Keep])?;
        Ok(CopyTilers { tile, held })
    }

    /// The copy restricted to one thread (CuTe `get_slice`).
    ///
    /// Errors: there is no thread of this number ([`AtomError::NoThread`]).
    pub fn get_slice<N: Extent>(&self, number: &N) -> Result<ThreadCopy<'_, N>, AtomError> {
        let all = Layout::mode_of(self.threads(), 1)?;
        crate::atoms::thread_number::coordinate(&all, number)?;
        Ok(ThreadCopy { copy: self, number: number.clone() })
    }
}

/// The sizes of mode 0, the threads, and mode 1, the values.
pub(crate) fn sizes(layout: &Layout) -> (i64, i64) {
    let size = |mode| layout.mode(mode).map_or(1, |mode| mode.size());
    (size(0), size(1))
}

/// The tilers of a partition, `compose_tiler(zipped_divide(L, tile), held)`, whose result has modes
/// `((thread,values),(rests))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyTilers<N: Extent = i64> {
    /// The tile.
    pub tile: Tiler<N>,
    /// The thread-value tiler within it.
    pub held: Tiler<N>,
}

/// One thread of a [`TiledCopy`] (CuTe `ThrCopy`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadCopy<'a, N: Extent = i64> {
    copy: &'a TiledCopy,
    number: N,
}

impl<N: Extent> ThreadCopy<'_, N> {
    /// The tiled copy.
    pub fn copy(&self) -> &TiledCopy {
        self.copy
    }

    /// The number of the thread.
    pub fn number(&self) -> &N {
        &self.number
    }

    /// The part of the thread at one end: its offset, and its layout with modes
    /// ((FrgV,FrgX),RestM,..) (CuTe `partition_S`, `partition_D`).
    ///
    /// Errors: as [`TiledCopy::tidfrg`]; the offset is not representable.
    pub fn partition<D: Stride<Extent = N>>(
        &self,
        end: CopyEnd,
        layout: &Layout<D>,
    ) -> Result<(D, Layout<D>), AtomError> {
        let partition = self.copy.tidfrg(end, layout)?;
        let open = (1..partition.rank()).map(|_| Slot::All);
        let coordinate = Tree::flat([Slot::At(self.number.clone())].into_iter().chain(open))?;
        let (part, offset) = partition.slice_and_offset(&coordinate)?;
        Ok((offset, part))
    }

    /// The layout of the thread's register fragment for its part: the values of one instruction are
    /// contiguous, and the other modes are in the order of their strides in memory.
    ///
    /// Errors: as [`ThreadCopy::partition`].
    pub fn fragment(&self, end: CopyEnd, layout: &Layout<N>) -> Result<Layout<N>, AtomError> {
        Ok(self.partition(end, layout)?.1.fragment_like()?)
    }
}
