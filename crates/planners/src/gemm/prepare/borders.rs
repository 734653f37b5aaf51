//! The kernel that copies images and adds zero padding.

use tilewright_kernel::Kernel;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tree};

use crate::error::PlanError;
use crate::gemm::index::{overflow, plus, times};
use crate::gemm::prepare::pack::behind;
use crate::gemm::problem::convolution::Images;
use crate::gemm::problem::matrix::unit;
use crate::units::count;
use crate::units::{GRID_BLOCKS, MOVE_THREADS, follow_launches};

impl Images {
    /// The kernel that copies images with contiguous channels and adds padding.
    pub(crate) fn border(&self, machine: &Machine) -> Result<Kernel, PlanError> {
        let ([channels, columns, rows, images], element) = (self.extents(), self.matrix().element());
        let [_, column, row, image] = self.strides();
        let (whole, [_, pixel, line, apart]) = (self.whole(), self.virtual_strides());
        let beyond =
            [("rows of images", whole[1]), ("images", images)].into_iter().find(|(_, count)| *count > GRID_BLOCKS);
        if let Some((what, asked)) = beyond {
            return Err(PlanError::TooLarge { what, asked, limit: GRID_BLOCKS });
        }
        // The widest access, up to 16 bytes, whose size divides all strides.
        let steps = [channels, column, row, image, self.matrix().offset()];
        let once = steps.iter().fold(unit(element), |once, step| once.min(1 << step.trailing_zeros().min(4)));
        let (own, all) = (channels / once, pixel / once);
        let from = Layout::strided((once, own, columns, rows, images), (1, once, column, row, image))?;
        let from = behind(self.matrix().offset(), from)?;
        let chunks = all * whole[0];
        let to = Layout::strided((once, chunks, whole[1], images), (1, once, line, apart))?;
        let before = self.window().padding_before;
        let kernel = Kernel::build("image_borders", |k| {
            let from = k.tensor_of(element, "from", &from, Role::Input)?;
            let to = k.tensor_of(element, "to", &to, Role::Output)?;
            k.threads(MOVE_THREADS)?;
            for (axis, blocks) in Axis::ALL.into_iter().zip([count(chunks, MOVE_THREADS), whole[1], images]) {
                k.grid(axis, blocks)?;
            }
            follow_launches(k, machine);
            let [part, y, number] = Axis::ALL.map(|axis| k.block_number(axis));
            let chunk = plus(&times(&part, &Expr::from(MOVE_THREADS))?, &k.thread()?)?;
            let digits = k.coordinate(&chunk, &[all, whole[0] + MOVE_THREADS])?;
            let [channel, x] = &digits[..] else { return Err(overflow()) };
            // For padding, the last element is read and its value discarded.
            let mut inside = k.flag(true);
            let mut at = vec![Slot::All];
            for (index, before, extent) in [(channel, 0, own), (x, before[0], columns), (&y, before[1], rows)] {
                let index = k.index(index)? - k.number(before as i32);
                inside = inside.and(k.number(0_i32).le(index)).and(index.lt(k.number(extent as i32)));
                at.push(Slot::At(k.index_up_to(index, extent - 1)?));
            }
            at.push(Slot::At(number.clone()));
            let zero = k.number_of(element, 0.0);
            let read = from.slice(Tree::flat(at)?)?.load()?.map(|own| Ok(inside.select(own, zero)))?;
            let at = [Slot::All, Slot::At(chunk), Slot::At(y), Slot::At(number)];
            to.slice(Tree::flat(at)?)?.store_predicated(&read)
        })?;
        Ok(kernel)
    }
}
