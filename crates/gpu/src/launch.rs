//! The sizes of a launch.
//!
//! Law: a launch that passes [`Launch::check`] is within the documented limits of the device and of
//! the kernel: extents of the grid and the block, threads of a block, shared memory, and clusters
//! that divide the grid. The driver can then refuse only for reasons that it alone knows, such as
//! whether a cluster of this size fits on the device.
//!
//! (CUDA driver API, `cuLaunchKernelEx`; CUDA C++ programming guide, table of compute
//! capabilities.)

use std::fmt;

use crate::attributes::Attributes;
use crate::driver::LaunchSizes;
use crate::error::{Extents, GpuError, SizeFlaw};

/// The largest cluster, in blocks, that every device with clusters supports.
const PORTABLE_CLUSTER: u64 = 8;
/// The largest cluster, in blocks, that any device supports.
const CLUSTER: u64 = 16;

/// The sizes of a launch: grid, block, cluster, and shared memory.
///
/// ```
/// use tilewright_gpu::Launch;
///
/// let launch = Launch::new([64, 2, 1], [256, 1, 1]).cluster([2, 1, 1]).shared_bytes(49152);
/// assert_eq!(launch.to_string(), "grid (64,2,1), block (256,1,1), cluster (2,1,1), 49152 bytes of shared memory");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch(LaunchSizes);

/// The resources of a kernel, as the compiler reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resources {
    /// The most threads of a block.
    pub block_threads: u32,
    /// Bytes of static shared memory.
    pub shared_bytes: u32,
    /// Bytes of constant memory that the kernel declares.
    pub constant_bytes: u32,
    /// Bytes of local memory of a thread: spilled registers and arrays.
    pub local_bytes: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// The compute capability for which it was compiled: 90 is 9.0.
    pub binary_version: u32,
    /// The cluster extents for which it was compiled; None if the launch sets them.
    pub cluster: Option<[u32; 3]>,
}

impl Launch {
    /// A launch with a grid of blocks and blocks of threads, with extents along x, y and z.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Launch {
        Launch(LaunchSizes { grid, block, cluster: None, shared_bytes: 0, overlaps: false, cooperative: false })
    }

    /// The launch with clusters of these extents, in blocks.
    pub fn cluster(self, extents: [u32; 3]) -> Launch {
        Launch(LaunchSizes { cluster: Some(extents), ..self.0 })
    }

    /// The launch with this many bytes of dynamic shared memory for each block.
    pub fn shared_bytes(self, bytes: u32) -> Launch {
        Launch(LaunchSizes { shared_bytes: bytes, ..self.0 })
    }

    /// The launch may begin while the previous kernel on the stream still runs (programmatic
    /// dependent launch). The kernel waits for that kernel only where it executes
    /// `griddepcontrol.wait`.
    pub fn overlapping(self) -> Launch {
        Launch(LaunchSizes { overlaps: true, ..self.0 })
    }

    /// A cooperative launch: all blocks are resident at once, so that they may wait for each other.
    /// It is refused if they do not fit on the device.
    pub fn cooperative(self) -> Launch {
        Launch(LaunchSizes { cooperative: true, ..self.0 })
    }

    /// The extents of the grid.
    pub fn grid(&self) -> [u32; 3] {
        self.0.grid
    }

    /// The extents of a block.
    pub fn block(&self) -> [u32; 3] {
        self.0.block
    }

    pub(crate) fn sizes(&self) -> &LaunchSizes {
        &self.0
    }

    /// Whether the cluster is larger than every device with clusters supports.
    pub(crate) fn has_large_cluster(&self) -> bool {
        self.0.cluster.is_some_and(is_large)
    }

    /// The launch with clusters; with clusters of one block, if neither the launch nor the kernel
    /// sets their extents.
    pub(crate) fn with_clusters(&self, compiled: Option<[u32; 3]>) -> Launch {
        let cluster = self.0.cluster.or(compiled).unwrap_or([1, 1, 1]);
        self.cluster(cluster)
    }

    /// Refuses sizes that the device or the kernel cannot have.
    pub(crate) fn check(&self, kernel: &str, device: &Attributes, resources: &Resources) -> Result<(), GpuError> {
        match self.flaw(device, resources) {
            None => Ok(()),
            Some(flaw) => Err(GpuError::LaunchSize { kernel: kernel.into(), flaw }),
        }
    }

    fn flaw(&self, device: &Attributes, resources: &Resources) -> Option<SizeFlaw> {
        let LaunchSizes { grid, block, cluster, shared_bytes, cooperative, .. } = self.0;
        if grid.contains(&0) {
            return Some(SizeFlaw::Zero { what: "the grid" });
        }
        if block.contains(&0) {
            return Some(SizeFlaw::Zero { what: "the block" });
        }
        let above = |what, found: u64, limit: u64| (found > limit).then_some(SizeFlaw::Above { what, found, limit });
        let [gx, gy, gz] = grid.map(u64::from);
        let [bx, by, bz] = block.map(u64::from);
        let threads = u64::from(resources.block_threads.min(device.block_threads));
        let shared = u64::from(resources.shared_bytes) + u64::from(shared_bytes);
        above("the extent of the grid along x", gx, device.grid_x.into())
            .or_else(|| above("the extent of the grid along y", gy, device.grid_y.into()))
            .or_else(|| above("the extent of the grid along z", gz, device.grid_z.into()))
            .or_else(|| above("the extent of the block along x", bx, device.block_x.into()))
            .or_else(|| above("the extent of the block along y", by, device.block_y.into()))
            .or_else(|| above("the extent of the block along z", bz, device.block_z.into()))
            .or_else(|| above("the number of threads of a block", product(block), threads))
            .or_else(|| above("the bytes of shared memory of a block", shared, device.block_shared_bytes.into()))
            .or_else(|| match (cluster, resources.cluster) {
                (Some(cluster), wanted) => clusters(grid, cluster, wanted, device),
                (None, Some(wanted)) => clusters(grid, wanted, Some(wanted), device),
                (None, None) => None,
            })
            .or_else(|| {
                let unsupported = SizeFlaw::Unsupported { what: "cooperative launches" };
                (cooperative && device.cooperative_launch == 0).then_some(unsupported)
            })
    }
}

/// Whether a cluster is larger than every device with clusters supports.
pub(crate) fn is_large(cluster: [u32; 3]) -> bool {
    product(cluster) > PORTABLE_CLUSTER
}

/// The product of three extents. It saturates.
fn product(extents: [u32; 3]) -> u64 {
    extents.iter().fold(1_u64, |product, extent| product.saturating_mul((*extent).into()))
}

fn clusters(grid: [u32; 3], cluster: [u32; 3], wanted: Option<[u32; 3]>, device: &Attributes) -> Option<SizeFlaw> {
    if device.cluster_launch == 0 {
        return Some(SizeFlaw::Unsupported { what: "clusters" });
    }
    if cluster.contains(&0) {
        return Some(SizeFlaw::Zero { what: "the cluster" });
    }
    if let Some(wanted) = wanted.filter(|wanted| *wanted != cluster) {
        return Some(SizeFlaw::OtherCluster { wanted });
    }
    let blocks = product(cluster);
    if blocks > CLUSTER {
        return Some(SizeFlaw::Above { what: "the number of blocks of a cluster", found: blocks, limit: CLUSTER });
    }
    let mut modes = grid.into_iter().zip(cluster).enumerate();
    let (mode, (grid, cluster)) = modes.find(|(_, (grid, cluster))| grid % cluster != 0)?;
    Some(SizeFlaw::Cluster { mode, grid, cluster })
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchSizes { grid, block, cluster, shared_bytes, .. } = self.0;
        write!(f, "grid {}, block {}", Extents(grid), Extents(block))?;
        if let Some(cluster) = cluster {
            write!(f, ", cluster {}", Extents(cluster))?;
        }
        write!(f, ", {shared_bytes} bytes of shared memory")
    }
}
