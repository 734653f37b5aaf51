//! The shapes of an epilogue: parts that are staged in shared memory, and strips that are computed.

use tilewright_kernel::LayoutArgument;
use tilewright_kernel::machine::Machine;
use tilewright_layout::atoms::{CopyAtom, MmaAtom, TiledCopy, TiledMma};
use tilewright_layout::{IntoShape, Layout, LayoutError, Tiler};

use crate::error::PlanError;
use crate::gemm::panel::{swizzled, width};
use crate::gemm::plan::{Plan, WARPGROUP_ROWS};
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Contiguous;

/// The largest number of columns of a strip.
const STRIP: i64 = 64;

/// A tile of D, and its parts and strips.
pub(crate) struct EpilogueCut {
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    /// Columns of a strip.
    pub(crate) strip: i64,
    /// The number of parts in which a tile is staged, the number of buffers that the parts
    /// alternate between, and the columns of a part.
    pub(crate) parts: i64,
    pub(crate) buffers: i64,
    pub(crate) part_columns: i64,
    /// Whether the rows of a part are contiguous, and whether lines of a panel go along the rows;
    /// then the elements of such a line, and bytes of an element.
    pub(crate) plain: bool,
    pub(crate) along_rows: bool,
    pub(crate) width: i64,
    pub(crate) bytes: i64,
    /// Whether warps multiply by mma.sync: how many there are along rows and columns.
    pub(crate) warps: Option<[i64; 2]>,
}

impl EpilogueCut {
    /// The shapes of a plan. `stored` is the contiguous mode of D if D is staged in shared memory.
    pub(crate) fn of(problem: &Problem, (plan, machine): (&Plan, &Machine), stored: Option<Contiguous>) -> EpilogueCut {
        let [rows, columns] = plan.tile_of_d(problem);
        // Lines of a panel go along the contiguous mode of D.
        let along_rows = plan.swapped != (stored == Some(Contiguous::Rows));
        // Elements of 8 bits are stored from registers, in strips like those of 16.
        let bytes = i64::from(problem.result_type().bytes().max(2));
        let plain = stored.is_some() && plan.is_plain(problem, machine);
        let (parts, buffers) = if stored.is_some() { plan.parts(problem, machine) } else { (1, 1) };
        let part_columns = if stored.is_some() { plan.part_columns(problem, machine) } else { columns };
        let width = match plain {
            true => part_columns,
            false => width(if along_rows { rows } else { columns }, bytes),
        };
        let step = match plan.warps {
            Some(_) => plan.strip_step(problem),
            None if along_rows || plain => 8,
            None => width,
        };
        let whole = |strip: &i64| part_columns % strip == 0 && columns % strip == 0;
        let strip = (1..=STRIP / step).rev().map(|count| count * step).find(whole);
        let strip = strip.unwrap_or(step);
        let warps = plan.warps;
        EpilogueCut { rows, columns, strip, parts, buffers, part_columns, plain, along_rows, width, bytes, warps }
    }

    /// The tiled MMA whose result is a strip, by this number of warpgroups. Accumulators have the
    /// same layout in all wgmma; integer instructions do not exist for every number of columns.
    /// Accumulators of a warp have the same layout in all mma.sync of 16 x 8.
    pub(crate) fn product(&self, groups: i64) -> Result<TiledMma, PlanError> {
        if let Some([along, across]) = self.warps {
            let sums = MmaAtom::named("SM80_16x8x16_F32BF16BF16F32_TN")?;
            let order: Tiler = Tiler::from_shape(&(16 * along, 8 * across, 16).into_shape()?)?;
            return Ok(TiledMma::new(sums, &Layout::compact(&(along, across, 1).into_shape()?)?, &order)?);
        }
        let order: Tiler = Tiler::from_shape(&(self.rows, self.strip, 16).into_shape()?)?;
        let sums = MmaAtom::named(&format!("SM90_64x{}x16_F32BF16BF16_SS", self.strip))?;
        Ok(TiledMma::new(sums, &Layout::compact(&(groups, 1, 1).into_shape()?)?, &order)?)
    }

    /// The copy atoms for 8 x 8 matrices in the accumulator layout, as many at a time as the
    /// columns allow: `stmatrix` to shared memory, and `ldmatrix` from there.
    pub(crate) fn matrices(&self) -> [&'static str; 2] {
        match (self.along_rows, self.strip % 16) {
            (false, 0) => ["SM90_U32x4_STSM_N", "SM75_U32x4_LDSM_N"],
            (false, _) => ["SM90_U32x2_STSM_N", "SM75_U32x2_LDSM_N"],
            (true, 0) => ["SM90_U16x8_STSM_T", "SM75_U16x8_LDSM_T"],
            (true, _) => ["SM90_U16x4_STSM_T", "SM75_U16x4_LDSM_T"],
        }
    }

    /// The copy by which threads write a part from shared memory to D.
    pub(crate) fn spread(&self, problem: &Problem, threads: i64) -> Result<TiledCopy, PlanError> {
        let most = match (self.warps, problem.staged_by_warps()) {
            (Some(_), Some(contiguous)) => problem.stored_together(contiguous),
            _ => problem.spread(),
        };
        let widths = [8, 4, 2, 1].into_iter().filter(|width| *width <= most);
        let mut found = widths.map(|width| (width, self.neighbours(threads, width)));
        let found = found.find_map(|(width, threads)| Some((width, threads?)));
        let because = "threads that write neighbours do not divide a tile";
        let (width, threads) = found.ok_or(PlanError::Plan { because })?;
        let bits = width * i64::from(problem.result_type().bits());
        let one = CopyAtom::named(&format!("UniversalCopy<uint{bits}_t>"))?;
        let own = if self.along_rows { (width, 1) } else { (1, width) };
        let own = Layout::compact(&own.into_shape()?)?;
        Ok(TiledCopy::new(one, problem.result_type().bits().into(), &threads, &own)?)
    }

    /// Threads along contiguous elements of a part, `width` elements each: 32 threads, or the
    /// largest number that divides the part.
    fn neighbours(&self, threads: i64, width: i64) -> Option<Layout> {
        let along_rows = self.along_rows;
        let (along, across) = if along_rows { (self.rows, self.part_columns) } else { (self.part_columns, self.rows) };
        let whole = |side: &i64| along % (side * width) == 0 && threads % side == 0 && across % (threads / side) == 0;
        let side = [32, 16, 8, 64, 48, 24, 96, 128, 4, 2, 1].into_iter().find(whole)?;
        let others = threads / side;
        match along_rows {
            true => Layout::strided((side, others), (1, side)).ok(),
            false => Layout::strided((others, side), (side, 1)).ok(),
        }
    }

    /// A part in shared memory: panels of lines of up to 128 bytes along the contiguous mode of D.
    /// If D is staged in the ring, there is one more mode: a number of stages, and the elements
    /// from one to the next.
    ///
    /// Errors: an element has no offset that is a number.
    pub(crate) fn panels(&self, stages: Option<(i64, i64)>) -> Result<LayoutArgument, LayoutError> {
        let (rows, columns, width) = (self.rows, self.part_columns, self.width);
        let (along, across) = if self.along_rows { (rows, columns) } else { (columns, rows) };
        let (line_shape, line_strides) = ((width, along / width), (1, width * across));
        let lines = match self.along_rows {
            true => Layout::strided((line_shape, across), (line_strides, width)),
            false => Layout::strided((across, line_shape), (width, line_strides)),
        };
        let mut modes = lines?.modes().collect::<Vec<_>>();
        modes.extend(stages.map(|(count, apart)| Layout::strided(count, apart)).transpose()?);
        swizzled(width, self.bytes, Layout::tuple(&modes)?)
    }

    /// The last part in shared memory, if it has fewer columns. Blocks of its rows begin where they
    /// do in other parts, because each warpgroup writes its own.
    ///
    /// Errors: an element has no offset that is a number.
    pub(crate) fn rest(&self) -> Result<Option<Rest>, LayoutError> {
        let rest = self.columns % self.part_columns;
        if rest == 0 {
            return Ok(None);
        }
        let (blocks, all) = (self.rows / WARPGROUP_ROWS, WARPGROUP_ROWS * self.part_columns);
        Ok(Some(match self.along_rows {
            true => Rest::Columns(rest),
            false => Rest::Rows(Layout::strided(((WARPGROUP_ROWS, blocks), rest), ((rest, all), 1))?),
        }))
    }
}

/// The shared memory of a shorter last part: a number of panels of the others, or contiguous rows,
/// as a layout.
pub(crate) enum Rest {
    Columns(i64),
    Rows(Layout),
}
