//! Copies by one thread, and exchanges between threads.

use super::{CopyFamily, CopyRow, CopyRule};
use crate::atoms::arch::Arch::{self, Sm50, Sm80, Sm100, Universal};
use crate::atoms::terms::CopyEnd;

/// One value of any width; the alignment of the data limits the width.
const VALUE: CopyRule = CopyRule::Row(CopyRow {
    threads: 1,
    source: ("(1,1):(0,0)", 1),
    destination: ("(1,1):(0,0)", 1),
    reference: CopyEnd::Source,
});

const fn shuffle(destination: &'static str) -> CopyRule {
    let (source, destination) = (("(32,64):(64,1)", 1), (destination, 1));
    CopyRule::Row(CopyRow { threads: 32, source, destination, reference: CopyEnd::Source })
}

const fn family(arch: Arch, pattern: &'static str, rule: CopyRule) -> CopyFamily {
    CopyFamily::new(arch, pattern, rule)
}

#[rustfmt::skip]
pub(super) const FAMILIES: &[CopyFamily] = &[
    family(Universal, "UniversalCopy<uint{8,16,32,64,128}_t>", CopyRule::Bits("uint")),
    family(Universal, "DefaultCopy", VALUE),
    family(Universal, "AutoVectorizingCopy", VALUE),
    family(Universal, "AutoVectorizingCopyWithAssumedAlignment<{8,16,32,64,128}>", VALUE),
    family(Sm80, "AutoCopyAsync", VALUE),
    family(Sm80, "SM80_CP_ASYNC_CACHEALWAYS{,_ZFILL}<uint{32,64,128}_t>", CopyRule::Bits("uint")),
    family(Sm80, "SM80_CP_ASYNC_CACHEGLOBAL{,_ZFILL}<uint128_t>", CopyRule::Bits("uint")),
    family(Sm100, "SM100_LOAD_256bit_CACHE_NOALLOCATION", CopyRule::Bits("LOAD_")),
    family(Sm100, "SM100_STORE_256bit_CACHE_NOALLOCATION", CopyRule::Bits("STORE_")),
    family(Sm50, "SM50_Shuffle_U32_2x2Trans_XOR1", shuffle("((2,16),(32,2)):((32,128),(1,64))")),
    family(Sm50, "SM50_Shuffle_U32_2x2Trans_XOR4", shuffle("((4,2,4),(32,2)):((64,32,512),(1,256))")),
];
