//! Generic addresses: which of them are of which memory.

/// Where generic addresses of parameters of an entry begin.
pub(crate) const PARAMETERS: u64 = 0x1000_0000_0000;
/// Where generic addresses of shared memory begin.
pub(crate) const SHARED: u64 = 0x2000_0000_0000;
/// Where generic addresses of local memory begin.
pub(crate) const LOCAL: u64 = 0x3000_0000_0000;
/// Where the addresses of functions begin.
pub(crate) const FUNCTIONS: u64 = 0x0800_0000_0000;
/// Where global memory begins: variables of the module, then arguments.
pub(crate) const GLOBAL: u64 = 0x7000_0000_0000;
/// Where the blocks of a cooperative launch meet: the driver's memory, whose address kernels read
/// from `%envreg1` and `%envreg2`. It lies between the variables and the arguments.
pub(crate) const MEETING_PLACE: u64 = GLOBAL + (1 << 36);
/// Its bytes.
pub(crate) const MEETING_BYTES: u64 = 256;
/// Where the heap of `malloc` begins.
pub(crate) const HEAP: u64 = GLOBAL + (1 << 37);
/// Its bytes: those that a device has unless the host asks for more.
pub(crate) const HEAP_BYTES: u64 = 8 << 20;
/// The bytes of a window.
pub(crate) const WINDOW: u64 = 1 << 32;
/// The bytes between the shared memory of a block and that of the next of its cluster, as addresses
/// of `.shared::cluster`. The block's own memory is also at its addresses of `.shared::cta`.
pub(crate) const RANK: u64 = 1 << 24;

/// The address of `.shared::cluster` of a byte of a block's shared memory.
pub(crate) fn of_rank(rank: u32, offset: u64) -> u64 {
    (u64::from(rank) + 1) * RANK + offset
}

/// The rank and the offset of an address of `.shared::cluster`.
pub(crate) fn rank_of(address: u64, own: u32) -> (u32, u64) {
    match address / RANK {
        0 => (own, address),
        rank => ((rank - 1) as u32, address % RANK),
    }
}
