//! Generic addresses: which range belongs to which memory.

/// The first generic address of an entry's parameters.
pub(crate) const PARAMETERS: u64 = 0x1000_0000_0000;
/// The first generic address of shared memory.
pub(crate) const SHARED: u64 = 0x2000_0000_0000;
/// The first generic address of local memory.
pub(crate) const LOCAL: u64 = 0x3000_0000_0000;
/// The first address of functions.
pub(crate) const FUNCTIONS: u64 = 0x0800_0000_0000;
/// The first address of global memory: variables of the module, then arguments.
pub(crate) const GLOBAL: u64 = 0x7000_0000_0000;
/// The address of the driver's memory through which the blocks of a cooperative launch synchronise.
/// Kernels read this address from `%envreg1` and `%envreg2`. It is between the variables and the
/// arguments.
pub(crate) const MEETING_PLACE: u64 = GLOBAL + (1 << 36);
/// The number of its bytes.
pub(crate) const MEETING_BYTES: u64 = 256;
/// The first address of the heap of `malloc`.
pub(crate) const HEAP: u64 = GLOBAL + (1 << 37);
/// The number of its bytes: the size on a device, unless the host asks for more.
pub(crate) const HEAP_BYTES: u64 = 8 << 20;
/// The number of bytes of a window.
pub(crate) const WINDOW: u64 = 1 << 32;
/// The distance in bytes between the shared memories of neighbouring blocks of a cluster, in
/// addresses of `.shared::cluster`. A block's own memory is also at its addresses of
/// `.shared::cta`.
pub(crate) const RANK: u64 = 1 << 24;

/// The `.shared::cluster` address of a byte of a block's shared memory.
pub(crate) fn of_rank(rank: u32, offset: u64) -> u64 {
    (u64::from(rank) + 1) * RANK + offset
}

/// The rank and the offset of a `.shared::cluster` address.
pub(crate) fn rank_of(address: u64, own: u32) -> (u32, u64) {
    match address / RANK {
        0 => (own, address),
        rank => ((rank - 1) as u32, address % RANK),
    }
}
