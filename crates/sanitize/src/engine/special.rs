//! Special registers: the position of a thread, the sizes of the launch, and so on.

use super::cluster::Cluster;
use super::code::{Row, Special};
use super::warp::Warp;
use super::windows;

impl Cluster<'_> {
    pub(super) fn special(&self, block: usize, warp: &Warp, frame: usize, special: Special, out: &mut Row) {
        let own = &self.blocks[block];
        let grid = self.grid;
        let lanes = 0..32_u32;
        let value = match special {
            Special::Thread(axis) => {
                let [x, y, _] = grid.block;
                for lane in lanes {
                    let thread = warp.number * 32 + lane;
                    out[lane as usize] = u64::from(match axis {
                        0 => thread % x,
                        1 => thread / x % y,
                        _ => thread / x / y,
                    });
                }
                return;
            }
            Special::Lane => return lanes.for_each(|lane| out[lane as usize] = u64::from(lane)),
            Special::LanesEqual => return lanes.for_each(|lane| out[lane as usize] = 1 << lane),
            Special::LanesUpTo => return lanes.for_each(|lane| out[lane as usize] = (2 << lane) - 1),
            Special::LanesBelow => return lanes.for_each(|lane| out[lane as usize] = (1 << lane) - 1),
            Special::LanesFrom => {
                return lanes.for_each(|lane| out[lane as usize] = 0xffff_ffff & !((1 << lane) - 1));
            }
            Special::LanesAbove => {
                return lanes.for_each(|lane| out[lane as usize] = 0xffff_ffff & !((2 << lane) - 1));
            }
            Special::Threads(axis) => u64::from(grid.block[axis as usize]),
            Special::Block(axis) => u64::from(own.index[axis as usize]),
            Special::Blocks(axis) => u64::from(grid.grid[axis as usize]),
            Special::Cluster(axis) => u64::from(self.index[axis as usize]),
            Special::Clusters(axis) => u64::from(grid.grid[axis as usize].div_ceil(grid.cluster[axis as usize])),
            Special::BlockInCluster(axis) => u64::from(own.index[axis as usize] % grid.cluster[axis as usize]),
            Special::BlocksOfCluster(axis) => u64::from(grid.cluster[axis as usize]),
            Special::ClusterRank => u64::from(own.rank),
            Special::ClusterSize => u64::from(grid.cluster.iter().product::<u32>()),
            Special::IsCluster => u64::from(grid.is_cluster),
            Special::Warp => u64::from(warp.number),
            Special::Warps => u64::from(grid.block.iter().product::<u32>().div_ceil(32)),
            Special::Processor => u64::from(own.index[0] % 132),
            Special::Processors => 132,
            Special::Grid => 1,
            Special::Clock => warp.clock,
            Special::ClockHigh => warp.clock >> 32,
            Special::Nanoseconds => warp.clock,
            Special::NanosecondsHigh => warp.clock >> 32,
            Special::DynamicShared => grid.dynamic_bytes,
            Special::AllShared => grid.shared_bytes,
            Special::MeetingPlace => windows::MEETING_PLACE & 0xffff_ffff,
            Special::MeetingPlaceHigh => windows::MEETING_PLACE >> 32,
            Special::LocalFrame => warp.frames[frame].local,
        };
        *out = [value; 32];
    }
}
