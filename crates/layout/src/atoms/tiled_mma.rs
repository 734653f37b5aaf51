//! Tiled MMA: one instruction repeated over threads and values.
//!
//! # Law
//!
//! An *atom layout* (M,N,K) arranges copies of an atom, each executed by its own threads. Thread
//! `(v,i,j,l)` is the `v`-th thread of the atom at `(i,j,l)`; its number is its value in the
//! product of the atom's threads with the atom layout. Together the copies cover a tile of
//! `m*|M| x n*|N| x k*|K|`. A *permutation* of a mode enlarges the tile and determines the order of
//! its indices.
//!
//! An operand, say A with modes (M,K), is partitioned like this: permute each mode, divide it into
//! the extents of the atom, apply the atom's thread-value layout, and distribute the atoms over the
//! atom layout, repeatedly. So with `thrfrg` the partition and `L` the operand,
//!
//! ```text
//! thrfrg((v,(i,l)), (f,(r,s))) = L(p_M(m), p_K(k))
//!     m = m_a + |m| * (i + |M| * r),  k = k_a + |k| * (l + |K| * s),  (m_a, k_a) = coordinate of tv(v,f) in the atom's tile
//! ```
//!
//! where `p_M` and `p_K` are the permutations, repeated for each tile. Thread `(v,i,j,l)` holds the
//! same part of A for all `j`. The number of threads that hold an element is that of the atom,
//! times the number of atoms along the mode that the operand does not have.
//!
//! (CuTe `TiledMMA`, `thrfrg_{A,B,C}`, `get_layout{A,B,C}_TV`, `ThrMMA::partition_{A,B,C}`.)

use alloc::string::ToString;
use alloc::vec::Vec;
use core::array;

use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, Operand};
use crate::atoms::thread_number;
use crate::{Extent, Layout, LayoutError, Leaf, Slot, Stride, Tiler, Tree};

/// An atom repeated over threads and values: the atom, the arrangement of its copies, and a
/// permutation of the indices of M, N and K.
///
/// ```
/// use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
/// use tilewright_layout::{Layout, Tiler};
///
/// # fn main() -> Result<(), tilewright_layout::atoms::AtomError> {
/// # use tilewright_layout::atoms::{Arch, MmaTypes, ValueType};
/// # let types = MmaTypes::accumulating(ValueType::F16, ValueType::F32);
/// # let layout = |text: &str| text.parse::<Layout>().unwrap();
/// # let (a, b) = ("((4,8),(2,2)):((32,1),(16,8))", "((4,8),2):((16,1),8)");
/// # let held = [layout(a).into(), layout(b).into(), layout(a).into()];
/// # let atom = MmaAtom::new("SM80_16x8x8_F32F16F16F32_TN", Arch::Sm80, [16, 8, 8], types, layout("32:1"), held)?;
/// // Four warps along M; columns are permuted so that each thread has four consecutive ones.
/// let mma = TiledMma::new(atom, &layout("(4,1,1)"), &"[_;(2,4,2):(1,4,2);_]".parse::<Tiler>()?)?;
/// assert_eq!(mma.threads(), 128);
/// assert_eq!(mma.tile_shape(), [64, 16, 8]);
///
/// // The part of thread 33 of a row-major 64 x 64 matrix of accumulators.
/// let (offset, part) = mma.get_slice(&33)?.partition(Operand::C, &layout("(64,64):(64,1)"))?;
/// assert_eq!((offset, part.to_string().as_str()), (1028, "((2,2),1,(2,4)):((1,512),0,(2,16))"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TiledMma {
    atom: MmaAtom,
    /// The layout from (M,N,K) to the number of the atom.
    atom_layout: Layout,
    /// The permutation of M, N and K; None for the identity.
    permutation: [Option<Layout>; 3],
    /// The layout from (V,M,N,K) to the number of the thread.
    thread_layout: Layout,
}

impl TiledMma {
    /// Copies of `atom` arranged by `atom_layout`, whose modes are M, N and K; missing modes have
    /// one atom. `permutation` has for each mode a layout, or `_` for the identity (CuTe
    /// `make_tiled_mma`).
    ///
    /// Errors: an atom layout of more than three modes, or one whose modes overlap or have negative
    /// strides ([`AtomError::AtomLayout`]); a permutation that is not a bijection on its mode's
    /// tile, or whose size is not a multiple of the extent of the atoms
    /// ([`AtomError::Permutation`]).
    #[doc(alias = "make_tiled_mma")]
    pub fn new(atom: MmaAtom, atom_layout: &Layout, permutation: &Tiler) -> Result<TiledMma, AtomError> {
        let refuse = || AtomError::AtomLayout { layout: atom_layout.to_string().into() };
        if atom_layout.rank() > 3 {
            return Err(refuse());
        }
        let atom_layout = match atom_layout.profile().is_leaf() {
            true => Layout::tuple([atom_layout])?,
            false => atom_layout.clone(),
        };
        let atom_layout = atom_layout.append_to_rank(3, &Layout::unit())?;
        let thread_layout = atom.threads().tiled_product(&Tiler::Layout(atom_layout.clone()))?;
        if !thread_number::is_separable(&thread_layout) {
            return Err(refuse());
        }
        let mut mma = TiledMma { atom, atom_layout, permutation: [None, None, None], thread_layout };
        let permutation = match permutation {
            Tiler::Keep => &[],
            Tiler::Modes(modes) => modes.items(),
            one => core::slice::from_ref(one),
        };
        for (mode, item) in permutation.iter().enumerate() {
            mma.permute(mode, item)?;
        }
        Ok(mma)
    }

    fn permute(&mut self, mode: usize, item: &Tiler) -> Result<(), AtomError> {
        let core = self.atoms_cover(mode);
        let refuse = || AtomError::Permutation { mode, permutation: item.to_string().into(), core };
        let place = match item {
            Tiler::Keep if mode < 3 => return Ok(()),
            Tiler::Layout(layout) if layout.is_bijective() && layout.size() % core == 0 => layout.clone(),
            _ => return Err(refuse()),
        };
        *self.permutation.get_mut(mode).ok_or_else(refuse)? = Some(place);
        Ok(())
    }

    /// The number of indices of a mode that the atoms cover together.
    fn atoms_cover(&self, mode: usize) -> i64 {
        let extent = self.atom.shape().get(mode).copied().unwrap_or(1);
        extent.saturating_mul(self.atoms(mode))
    }

    /// The number of atoms along a mode.
    fn atoms(&self, mode: usize) -> i64 {
        self.atom_layout.mode(mode).map_or(1, |mode| mode.size())
    }

    /// The instruction.
    pub fn atom(&self) -> &MmaAtom {
        &self.atom
    }

    /// The arrangement of its copies: (M,N,K) to the number of the copy.
    pub fn atom_layout(&self) -> &Layout {
        &self.atom_layout
    }

    /// The permutation of the indices of M, N or K; None for the identity.
    pub fn permutation(&self, mode: usize) -> Option<&Layout> {
        self.permutation.get(mode)?.as_ref()
    }

    /// The layout from (V,M,N,K), the thread in the atom and the position of the atom, to the
    /// number of the thread (CuTe `get_thr_layout_vmnk`).
    pub fn thread_layout(&self) -> &Layout {
        &self.thread_layout
    }

    /// The number of threads.
    pub fn threads(&self) -> i64 {
        self.thread_layout.size()
    }

    /// The extents (M,N,K) of the tile that all threads together cover (CuTe `tile_size_mnk`).
    pub fn tile_shape(&self) -> [i64; 3] {
        array::from_fn(|mode| self.permutation(mode).map_or(self.atoms_cover(mode), Layout::size))
    }

    /// The coordinate (V,M,N,K) of a thread.
    ///
    /// Errors: there is no thread of this number ([`AtomError::NoThread`]).
    pub fn thread_coordinate<N: Extent>(&self, number: &N) -> Result<Tree<N>, AtomError> {
        thread_number::coordinate(&self.thread_layout, number)
    }

    /// Partitions an operand of shape (M,K,..), (N,K,..) or (M,N,..) into threads and their values,
    /// `((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,..)))` (CuTe `thrfrg_A`, `thrfrg_B`, `thrfrg_C`).
    ///
    /// If the tile does not divide the operand, the partition covers it and extends past its end.
    /// Errors: the atom does not take the operand ([`AtomError::NoOperand`]); the layout has fewer
    /// than two modes, or strides that the tile does not divide ([`AtomError::Layout`]).
    pub fn thrfrg<D: Stride>(&self, operand: Operand, layout: &Layout<D>) -> Result<Layout<D>, AtomError> {
        if layout.rank() < 2 {
            let (expected, found) = (2, layout.rank());
            return Err(LayoutError::Rank { op: "thrfrg", path: [].into(), expected, found }.into());
        }
        let MmaTilers { order, atom, held, rest } = self.tilers::<D::Extent>(operand)?;
        let atoms = layout.logical_divide(&order)?.zipped_divide(&atom)?;
        Ok(atoms.compose_tiler(&held)?.zipped_divide(&rest)?)
    }

    /// The tilers that [`TiledMma::thrfrg`] applies, so that other objects can be partitioned, too.
    ///
    /// Errors: the atom does not take the operand ([`AtomError::NoOperand`]).
    pub fn tilers<N: Extent>(&self, operand: Operand) -> Result<MmaTilers<N>, AtomError> {
        let Some(held) = self.atom.operand(operand) else {
            return Err(AtomError::NoOperand { name: self.atom.name().into(), operand: operand.to_string().into() });
        };
        let modes = operand.modes();
        let by_mode = |tile: &dyn Fn(usize) -> Result<Tiler<N>, LayoutError>| {
            Tiler::modes(modes.iter().map(|mode| tile(*mode)).collect::<Result<Vec<_>, _>>()?)
        };
        let order = by_mode(&|mode| match self.permutation(mode) {
            Some(order) => Ok(Tiler::Layout(lifted(order)?)),
            None => Ok(Tiler::Keep),
        })?;
        let atom = by_mode(&|mode| line(self.atom.shape().get(mode).copied().unwrap_or(1)))?;
        let held = Tiler::modes([Tiler::Layout(lifted(held.layout())?), Tiler::Keep])?;
        let rest = Tiler::modes([Tiler::Keep, by_mode(&|mode| line(self.atoms(mode)))?])?;
        Ok(MmaTilers { order, atom, held, rest })
    }

    /// From (thread number, value) to the colexicographic index in the tile of an operand (CuTe
    /// `get_layoutA_TV`, ..).
    ///
    /// Threads that differ only along the mode that the operand does not have hold the same
    /// elements. Errors: the atom does not take the operand ([`AtomError::NoOperand`]); the threads
    /// are not numbered without gaps ([`AtomError::Gaps`]).
    pub fn thread_values(&self, operand: Operand) -> Result<Layout, AtomError> {
        if !self.thread_layout.is_bijective() {
            return Err(AtomError::Gaps { layout: self.thread_layout.to_string().into() });
        }
        let tile = self.tile_shape();
        let modes = operand.modes();
        let extents = modes.iter().filter_map(|mode| tile.get(*mode).copied());
        let partition = self.thrfrg(operand, &Layout::compact(&Tree::flat(extents)?)?)?;
        let at = |path: &[usize]| partition.at(path).unwrap_or(Layout::unit());
        let mut along = [at(&[0, 0]), Layout::unit(), Layout::unit(), Layout::unit()];
        for mode in 0..3 {
            let place = match modes.iter().position(|known| *known == mode) {
                Some(position) => at(&[0, 1, position]),
                None => Layout::mode_of(self.atoms(mode), 0)?,
            };
            if let Some(out) = along.get_mut(mode + 1) {
                *out = place;
            }
        }
        let by_number = Layout::tuple(&along)?.compose(&self.thread_layout.right_inverse()?)?;
        Ok(Layout::tuple([&by_number, &at(&[1])])?)
    }

    /// The tiled MMA restricted to one thread (CuTe `get_slice`).
    ///
    /// Errors: there is no thread of this number ([`AtomError::NoThread`]).
    pub fn get_slice<N: Extent>(&self, number: &N) -> Result<ThreadMma<'_, N>, AtomError> {
        Ok(ThreadMma { mma: self, coordinate: self.thread_coordinate(number)? })
    }
}

impl From<MmaAtom> for TiledMma {
    /// A tiled MMA of a single atom.
    fn from(atom: MmaAtom) -> TiledMma {
        let thread_layout = Layout::tuple([atom.threads(), &Layout::unit(), &Layout::unit(), &Layout::unit()]);
        let thread_layout = thread_layout.unwrap_or(Layout::unit());
        let atom_layout = Layout::tuple([&Layout::unit(), &Layout::unit(), &Layout::unit()]).unwrap_or(Layout::unit());
        TiledMma { atom, atom_layout, permutation: [None, None, None], thread_layout }
    }
}

/// The tilers of a partition: `zipped_divide(compose_tiler(zipped_divide(logical_divide(L, order),
/// atom), held), rest)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MmaTilers<N: Extent = i64> {
    /// The permutations of the two modes.
    pub order: Tiler<N>,
    /// The tile of the atom.
    pub atom: Tiler<N>,
    /// The thread-value tiler within it.
    pub held: Tiler<N>,
    /// Keeps the mode of threads and values, and divides the other modes by the number of atoms
    /// along each.
    pub rest: Tiler<N>,
}

/// One thread of a [`TiledMma`] (CuTe `ThrMMA`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadMma<'a, N: Extent = i64> {
    mma: &'a TiledMma,
    coordinate: Tree<N>,
}

impl<N: Extent> ThreadMma<'_, N> {
    /// The tiled MMA.
    pub fn mma(&self) -> &TiledMma {
        self.mma
    }

    /// The coordinate of the thread in the partition of an operand: `(V,(M,K))`, `(V,(N,K))` or
    /// `(V,(M,N))`.
    pub fn coordinate(&self, operand: Operand) -> Result<Tree<N>, AtomError> {
        let at = |mode: usize| Tree::leaf(self.coordinate.leaves().get(mode).cloned().unwrap_or(N::zero()));
        let [first, second] = operand.modes().map(|mode| at(mode + 1));
        Ok(Tree::tuple([&at(0), &Tree::tuple([&first, &second])?])?)
    }

    /// The part of the thread of an operand: its offset, and its layout with modes
    /// (FrgV,RestM,RestK,..), (FrgV,RestN,RestK,..) or (FrgV,RestM,RestN,..) (CuTe `partition_A`,
    /// ..).
    ///
    /// Errors: as [`TiledMma::thrfrg`]; the offset is not representable.
    pub fn partition<D: Stride<Extent = N>>(
        &self,
        operand: Operand,
        layout: &Layout<D>,
    ) -> Result<(D, Layout<D>), AtomError> {
        let partition = self.mma.thrfrg(operand, layout)?;
        let thread = self.coordinate(operand)?.map(|index| Slot::At(index.clone()));
        let rests = partition.at(&[1, 1]).map_or(0, |rests| rests.rank());
        let rests = Tree::flat((0..rests).map(|_| Slot::All))?;
        let open = Tree::tuple([&Tree::leaf(Slot::All), &rests])?;
        let (part, offset) = partition.slice_and_offset(&Tree::tuple([&thread, &open])?)?;
        Ok((offset, part))
    }

    /// The layout of the thread's register fragment for its part of an operand: the values of one
    /// instruction are contiguous, and the other modes are in the order of their strides in memory
    /// (CuTe `partition_fragment_A`, ..).
    ///
    /// Errors: as [`ThreadMma::partition`].
    pub fn fragment(&self, operand: Operand, layout: &Layout<N>) -> Result<Layout<N>, AtomError> {
        Ok(self.partition(operand, layout)?.1.fragment_like()?)
    }
}

/// The same layout with another type of extents.
pub(crate) fn lifted<N: Extent>(layout: &Layout) -> Result<Layout<N>, LayoutError> {
    Layout::from_tree(layout.tree().map(|leaf| Leaf { extent: leaf.extent.into(), stride: leaf.stride.into() }))
}

/// The tiler `extent:1`.
fn line<N: Extent>(extent: i64) -> Result<Tiler<N>, LayoutError> {
    Ok(Tiler::Layout(Layout::mode_of(extent.into(), N::one())?))
}
