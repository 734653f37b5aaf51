//! What does not go together is refused by name, and so is whatever is written and not shown to be
//! there.

use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Slot, Tree, coord};

use super::{last, product, tiled};

const S: CopyEnd = CopyEnd::Source;
const D: CopyEnd = CopyEnd::Destination;

fn refused(code: &str, says: &str, write: impl FnOnce(&Build) -> Result<(), KernelError>) {
    let error = Kernel::build("refused", write).expect_err(says);
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(tilewright_kernel::explanation(code).is_some() && error.help().is_some());
}

#[test]
fn ends_that_do_not_go_together() {
    let copy = tiled("UniversalCopy<uint32_t>", 32, "(8,4):(4,1)", "(1,1)");
    let other = tiled("UniversalCopy<uint32_t>", 32, "(4,8):(8,1)", "(1,1)");
    let wide = tiled("UniversalCopy<uint128_t>", 32, "(8,4):(4,1)", "(1,4)");
    let narrow = tiled("UniversalCopy<uint32_t>", 32, "(8,4):(4,1)", "(1,4)");
    let tensors = |k: &Build| {
        k.threads(32)?;
        Ok::<_, KernelError>(())
    };
    macro_rules! ends {
        ($k:ident, $x:ident, $y:ident, $body:expr) => {
            |$k: &Build| {
                tensors($k)?;
                let ($x, $y) = ($k.input::<f32>("x", "(16,16):(16,1)")?, $k.tensor::<f32>("y", "(16,16):(16,1)")?);
                $body
            }
        };
    }
    let tile = "a tile that is not partitioned";
    refused("E0924", tile, ends!(k, x, y, k.copy(&copy, &x.partition(&copy, S)?, &y)));
    refused("E0924", tile, ends!(k, x, y, k.copy_predicated(&copy, &x, &y.partition(&copy, D)?)));
    refused("E0924", tile, ends!(k, x, y, k.copy(copy.atom(), &x, &y.partition(&copy, D)?)));
    // Of another tiled copy: at both ends, at one, and beside an instruction alone.
    let moves = "the operand of the tiled copy is the partition_S";
    refused("E0924", moves, ends!(k, x, y, k.copy(&copy, &x.partition(&other, S)?, &y.partition(&other, D)?)));
    let moves = "the operand of the tiled copy is the partition_D";
    refused("E0924", moves, ends!(k, x, y, k.copy(&copy, &x.partition(&copy, S)?, &y.partition(&other, D)?)));
    let both = "the destination is the partition_D";
    refused("E0924", both, ends!(k, x, y, k.copy(copy.atom(), &x.partition(&copy, S)?, &y.partition(&other, D)?)));
    // The same threads and values by instructions of other widths are the same part.
    let same = ends!(k, x, y, k.copy(&wide, &x.partition(&narrow, S)?, &y.partition(&narrow, D)?));
    assert!(Kernel::build("same", same).is_ok());
    // Of other threads.
    let at = |thread: i64| Expr::from(thread);
    refused(
        "E0924",
        "at thread 3",
        ends!(k, x, y, k.copy(&copy, &x.partition(&copy, S)?, &y.partition_at(&copy, D, &at(3))?)),
    );
    refused(
        "E0924",
        "at thread 4",
        ends!(k, x, y, k.copy(copy.atom(), &x.partition_at(&copy, S, &at(3))?, &y.partition_at(&copy, D, &at(4))?)),
    );
    refused(
        "E0910",
        "thread 32 is not shown to be one of its 32",
        ends!(k, x, _y, x.partition_at(&copy, S, &at(32)).map(drop)),
    );
    refused(
        "E0910",
        "is not shown to be one of its 32",
        ends!(k, x, _y, {
            let before = k.thread()?.minus(&Expr::from(1)).unwrap();
            x.partition_at(&copy, S, &before).map(drop)
        }),
    );
    // A part of a thread is no tile, whatever cut it.
    let alone = "the part of one thread";
    refused(
        "E0924",
        alone,
        ends!(k, x, y, {
            let rows =
                |t: tilewright_kernel::View<'_>| t.compose("(32,8):(8,1)")?.thread_part().map(|part| part.text());
            rows(x.clone())?;
            k.copy(&copy, &x.compose("(32,8):(8,1)")?.thread_part()?, &y.compose("(32,8):(8,1)")?.thread_part()?)
        }),
    );
    refused(
        "E0924",
        alone,
        ends!(k, x, y, {
            let row = Tree::flat([Slot::At(k.remainder(&k.thread()?, 16)?), Slot::All])?;
            k.copy_predicated(&copy, &x.slice(row.clone())?, &y.slice(row)?)
        }),
    );
    refused(
        "E0924",
        "a part is not partitioned again",
        ends!(k, x, _y, x.partition(&copy, S)?.partition(&copy, S).map(drop)),
    );
    // Parts with their modes in another order, and of other tiles.
    refused(
        "E0924",
        alone,
        ends!(k, x, y, k.copy(&copy, &x.partition(&copy, S)?.select(&[0, 2, 1])?, &y.partition(&copy, D)?)),
    );
    refused(
        "E0904",
        "has (1,2,4) elements",
        ends!(k, x, _y, {
            let turned = k.tensor::<f32>("z", "(32,8):(8,1)")?;
            k.copy(&copy, &x.partition(&copy, S)?, &turned.partition(&copy, D)?)
        }),
    );
}

#[test]
fn fragments_of_other_parts() {
    let mma = product("SM80_16x8x16_F32F16F16F32_TN", "(1,1,1)");
    let other = product("SM80_16x8x8_F32TF32TF32F32_TN", "(1,1,1)");
    let load = tilewright_layout::atoms::TiledCopy::of_operand(
        CopyAtom::named("SM75_U32x4_LDSM_N").unwrap(),
        &mma,
        Operand::A,
    )
    .unwrap();
    let rows = tiled("UniversalCopy<uint32_t>", 32, "(16,2):(2,1)", "(1,1)");
    // A fragment that is not retiled for `ldmatrix` of more than one matrix along K is; for sums
    // beside rows it is not the same part.
    refused("E0924", "the destination is the partition_C", |k| {
        let x = k.input::<f32>("x", "(16,8):(8,1)")?;
        let sums = x.partition_mma(&mma, Operand::C)?.fragment()?;
        k.copy(&rows, &x, &sums)
    });
    refused("E0924", "the fragment is the partition_S", |k| {
        let (x, y) = (k.input::<f32>("x", "(16,8):(8,1)")?, k.output::<f32>("y", "(16,8):(8,1)")?);
        y.partition_mma(&mma, Operand::C)?.store(&x.partition(&rows, S)?.load()?)
    });
    // Operands in each other's places, and of another product.
    let operands = |k: &Build, swapped: bool| {
        let a = k.shared::<half::f16>("(16,16):(16,1)")?.partition_mma(&mma, Operand::A)?;
        let b = k.shared::<half::f16>("(16,16):(16,1)")?.partition_mma(&mma, Operand::B)?;
        let c = k.shared::<f32>("(16,16):(16,1)")?.partition_mma(&mma, Operand::C)?.fragment()?;
        c.clear();
        if swapped { k.mma(&mma, &c, &b, &a, &c) } else { k.mma(&mma, &c, &a, &a, &c) }
    };
    refused("E0924", "A is the partition_B", |k| operands(k, true));
    refused("E0924", "B is the partition_A", |k| operands(k, false));
    refused("E0924", "A is the partition_A of SM80_16x8x8", |k| {
        let a = k.shared::<f32>("(16,16):(16,1)")?.partition_mma(&other, Operand::A)?.fragment()?;
        let b = k.shared::<half::f16>("(8,16):(16,1)")?;
        let c = k.shared::<f32>("(16,8):(8,1)")?.partition_mma(&mma, Operand::C)?.fragment()?;
        c.clear();
        k.mma(&mma, &c, &a, &b, &c)
    });
    refused("E0924", "A is the partition_D", |k| {
        let a = k.shared::<half::f16>("(16,16):(16,1)")?.partition_mma(&mma, Operand::A)?.fragment()?;
        let c = k.shared::<f32>("(16,8):(8,1)")?.partition_mma(&mma, Operand::C)?.fragment()?;
        c.clear();
        k.mma(&mma, &c, &a.retile(&tiled("UniversalCopy<uint128_t>", 16, "(16,2):(2,1)", "(1,8)"), D)?, &a, &c)
    });
    let _ = load;
}

#[test]
fn destinations_that_are_not_shown_to_be_there() {
    // The review's kernel: the array has 16 rows, and the copy writes 32.
    let copy = tiled("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", 32, "(8,4):(4,1)", "(4,1)");
    let plain = tiled("UniversalCopy<uint32_t>", 32, "(8,4):(4,1)", "(4,1)");
    for by in [&copy, &plain] {
        for parts in [false, true] {
            refused("E0903", "mode 0 of shared", |k| {
                let x = k.input::<f32>("x", "(M,4):(4,1)")?;
                let held = k.shared::<f32>("(16,4):(4,1)")?;
                let tile = x.local_tile((32, 4), k.block("(x,0)")?)?;
                if parts {
                    k.copy_predicated(by, &tile.partition(by, S)?, &held.partition(by, D)?)
                } else {
                    k.copy_predicated(by, &tile, &held)
                }
            });
        }
    }
    // A stage that may not be one of the ring's.
    let stage = |k: &Build, bulk: bool| {
        let x = k.input::<f32>("x", "(32,4,K):(4,1,128)")?;
        let ring = k.shared::<f32>("(32,4,3):(4,1,128)")?;
        k.threads(32)?;
        let pipeline = k.pipeline(3, 1)?;
        k.range(k.size("K")?, |step| {
            let (from, to) = (x.slice(last(3, &step))?, ring.slice(last(3, &step))?);
            if bulk { pipeline.cursor()?.stage()?.load(&from, &to) } else { k.copy_predicated(&copy, &from, &to) }
        })
    };
    refused("E0903", "mode 2 of shared", |k| stage(k, false));
    refused("E0903", "mode 2 of shared", |k| stage(k, true));
    refused("E0903", "mode 2 of shared", |k| {
        let y = k.output::<f32>("y", "(32,4,K):(4,1,128)")?;
        let ring = k.shared::<f32>("(32,4,3):(4,1,128)")?;
        k.threads(32)?;
        k.range(k.size("K")?, |step| k.store_bulk(&ring.slice(last(3, &step))?, &y.slice(last(3, &step))?))
    });
    refused("E0903", "mode 0 of shared", |k| {
        let x = k.input::<f32>("x", "64:1")?;
        let held = k.shared::<f32>("32:1")?;
        k.threads(64)?;
        let thread = k.thread()?;
        k.copy_async_where(k.flag(true), &x.at(&thread)?, &held.at(&thread)?)
    });
    refused("E0903", "mode 0 of shared", |k| {
        let x = k.input::<f32>("x", "(M,4):(4,1)")?;
        let held = k.shared::<f32>("(16,4):(4,1)")?;
        let tile = x.local_tile((32, 4), k.block("(x,0)")?)?;
        let (from, to) = (tile.partition(&plain, S)?, held.partition(&plain, D)?);
        let all = k.predicates(&"(4,1,1)".parse()?)?;
        all.fill(k.flag(true))?;
        k.copy_if(&plain, &all, &from, &to)
    });
}

#[test]
fn registers_that_a_fragment_does_not_have() {
    refused("E0925", "index 8 of the fragment", |k| {
        k.threads(1)?;
        k.register(Element::F32, (2, 4))?.set_at(8, k.number(0.0_f32))
    });
    for index in [-1, 4] {
        refused("E0925", "where there are 4 elements", |k| {
            k.threads(1)?;
            let fragment = k.register(Element::F32, (2, 4))?;
            fragment.slice(Tree::flat([Slot::All, Slot::At(index)])?).map(drop)
        });
        refused("E0925", "where there are 4 elements", |k| {
            k.threads(1)?;
            k.predicates(&"4:0".parse()?)?.set_at(index, k.flag(true))
        });
    }
}

#[test]
fn memory_that_is_seen_in_other_elements_is_that_of_the_tensor() {
    // Backwards, in every kind of memory, and in one mode of several.
    for layout in ["32:-1", "(32,2):(-1,32)", "(4,8):(8,-1)", "(N,4):(-1,8)"] {
        for shared in [false, true] {
            refused("E0903", "may lead back before it", |k| {
                k.threads(32)?;
                let x = if shared { k.shared::<i32>("64:1")? } else { k.tensor::<i32>("x", "64:1")? };
                x.recast(Element::F32, layout).map(drop)
            });
        }
    }
    refused("E0903", "may lead back before it", |k| {
        k.threads(32)?;
        k.tensor::<i32>("x", "64:1")?.recast(Element::F32, "(8,8):(D{min=-1,max=1},1)").map(drop)
    });
    // A part has no memory of its own: it was silently that of the whole tensor.
    refused("E0910", "a part has no memory of its own", |k| {
        k.threads(32)?;
        k.grid(Axis::X, 2)?;
        let tile = k.tensor::<i32>("x", "64:1")?.local_tile(32, k.block("x")?)?;
        tile.recast(Element::F32, "32:1").map(drop)
    });
    let whole = Kernel::build("whole", |k| {
        let x = k.tensor::<i32>("x", "(8,8):(8,1)")?.recast(Element::F32, "(1,64):(-5,1)")?;
        k.threads(1)?;
        x.slice(coord!(Expr::from(0), Expr::from(63))?)?.load().map(drop)
    });
    assert!(whole.is_ok(), "{whole:?}");
}
