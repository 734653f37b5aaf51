//! What is refused while a kernel is written: why, at which statement, and on which line.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Reason, View, Written};
use tilewright_layout::atoms::{CopyAtom, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, Slot, Stride, Tree};

type Outcome = Result<(), KernelError>;

fn copy(atom: &str, bits: i64, threads: &str, values: &str) -> TiledCopy {
    TiledCopy::new(CopyAtom::named(atom).unwrap(), bits, &threads.parse().unwrap(), &values.parse().unwrap()).unwrap()
}

/// Row `thread` of the tile of this block.
fn row<'k>(k: &'k Build, tensor: &View<'k>) -> Result<View<'k>, KernelError> {
    tensor.local_tile((16, 4), k.block("(x,y)")?)?.thread_part()
}

/// The refusal of a kernel, which stands in this file.
fn refused(write: impl FnOnce(&Build) -> Outcome) -> KernelError {
    let error = Kernel::build("refused", write).expect_err("it is refused");
    assert!(error.source().location.file().ends_with("refusals.rs"), "{error}");
    assert!(error.to_string().contains("refusals.rs:"), "{error}");
    assert!(error.help().is_none_or(|help| !help.is_empty()));
    assert!(tilewright_kernel::explanation(error.code()).is_some(), "{}", error.code());
    error
}

#[test]
fn the_line_is_that_of_the_statement() {
    let mut line = 0;
    let error = refused(|k| {
        let x = k.input::<f32>("x", "(M,N):(N,1)")?;
        k.threads(64)?;
        let tile = x.local_tile((8, 8), k.block("(x,y)")?)?;
        line = line!() + 1;
        tile.load()?;
        Ok(())
    });
    assert_eq!((error.source().location.line(), error.source().statement, error.code()), (line, "load", "E0903"));
}

#[test]
fn a_constant_index_past_the_end_is_named_with_the_extent() {
    let at = |index: i64| {
        move |k: &Build| -> Outcome {
            let (x, y) = (k.input::<f32>("x", "(8,4):(4,1)")?, k.output::<f32>("y", "(8,4):(4,1)")?);
            k.threads(32)?;
            y.slice((7, ..))?.store(&x.slice((index, ..))?.load()?)
        }
    };
    for index in [8, 9] {
        let error = refused(at(index));
        assert_eq!(error.code(), "E0903");
        assert!(error.to_string().contains(&format!("has 8 indices from 0 on, and {index} is none")), "{error}");
        assert_eq!(error.help().as_deref(), Some("take an index below 8"));
    }
    assert!(!Kernel::build("k", at(7)).is_err_and(|error| error.code() == "E0903"));
}

#[test]
fn memory_that_begins_at_its_last_element_is_no_view_of_a_tensor() {
    let error = refused(|k| k.input::<f32>("x", "8:1")?.recast(Element::I32, "8:-1").map(drop));
    assert_eq!(error.code(), "E0903");
    assert!(error.to_string().contains("may lead back before it"), "{error}");
}

#[test]
fn elements_that_may_not_exist_are_refused_and_predicated_ones_are_not() {
    let write = |layout: &'static str, predicated: bool| {
        move |k: &Build| -> Outcome {
            let x = k.input::<f32>("x", layout)?;
            let y = k.output::<f32>("y", layout)?;
            k.threads(16)?;
            let (x, y) = (row(k, &x)?, row(k, &y)?);
            if predicated { y.store_predicated(&x.load_predicated()?) } else { y.store(&x.load()?) }
        }
    };
    for layout in ["(M,N{div=4}):(N,1)", "(M{div=16},N):(N,1)", "(M{div=8},N{div=4}):(N,1)", "(40,N{div=4}):(N,1)"] {
        let error = refused(write(layout, false));
        assert!(matches!(error.reason(), Reason::Outside { .. }), "{layout}: {error}");
        assert!(Kernel::build("k", write(layout, true)).is_ok());
    }
    // The message says which thread of which block it is, where that is what is reached.
    let error = refused(|k: &Build| -> Outcome {
        let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
        k.threads(128)?;
        let row = x.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.load()?;
        y.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&row)
    });
    let said = "mode 0 of x is reached at 128*block.x+thread, which is not shown to be less than N";
    assert!(error.to_string().ends_with(said), "{error}");
    // Each variable has its word, also where two have the same facts.
    let error = refused(|k: &Build| -> Outcome {
        let x = k.input::<f32>("x", "(N,4):(4,1)")?;
        k.threads(128)?;
        let both = Stride::plus(&k.block_number(Axis::X), &k.block_number(Axis::Y)).unwrap();
        let at = Tree::flat([Slot::At(both), Slot::At(Expr::from(0))])?;
        x.local_tile((128, 4), at)?.thread_part()?.load().map(drop)
    });
    assert!(matches!(error.reason(), Reason::Outside { .. }), "{error}");
    assert!(error.to_string().contains("128*block.x+128*block.y+thread"), "{error}");
    for layout in ["(M{div=16},N{div=4}):(N,1)", "(32,N{div=8}):(N,1)", "(M{div=48},64):(64,1)"] {
        assert!(Kernel::build("k", write(layout, false)).is_ok(), "{layout}");
    }
}

#[test]
fn what_lies_past_a_single_tile_does_not_exist() {
    let write = |layout: &'static str, column: i64, predicated: bool| {
        move |k: &Build| -> Outcome {
            let (x, y) = (k.input::<f32>("x", layout)?, k.tensor::<f32>("y", layout)?);
            k.threads(16)?;
            let at = Tree::flat([Slot::At(k.block_number(Axis::X)), Slot::At(Expr::from(column))])?;
            let (x, y) = (x.local_tile((16, 4), at.clone())?, y.local_tile((16, 4), at)?);
            let (x, y) = (x.thread_part()?, y.thread_part()?);
            if predicated { y.store_predicated(&x.load_predicated()?) } else { y.store(&x.load()?) }
        }
    };
    for layout in ["(M{div=16},4):(4,1)", "(32,4):(4,1)", "(16,4):(4,1)"] {
        for (column, predicated) in [(0, false), (0, true), (1, true)] {
            assert!(Kernel::build("k", write(layout, column, predicated)).is_ok(), "{layout}, {column}");
        }
        let error = refused(write(layout, 1, false));
        assert!(matches!(error.reason(), Reason::Outside { mode: 1, .. }), "{layout}: {error}");
    }
    // A part with one column, composed, is no longer asked where its neighbour is.
    let error = refused(|k| {
        let x = k.input::<f32>("x", "(M{div=16},N):(N,1)")?;
        k.threads(16)?;
        let column = x.local_tile((16, 1), k.block("(x,y)")?)?.compose("(16,1):(1,16)")?;
        column.slice(Tree::flat([Slot::All, Slot::At(Expr::from(1))])?)?;
        Ok(())
    });
    assert!(matches!(error.reason(), Reason::Single { .. }), "{error}");
    assert_eq!((error.source().statement, error.code()), ("slice", "E0903"));
}

#[test]
fn vectors_are_as_wide_as_every_size_admits() {
    // Bytes of the only load of a thread that takes four elements along N.
    let widest = |layout: &str| {
        let kernel = Kernel::build("k", |k| {
            let x = k.input::<f32>("x", layout)?;
            let y = k.output::<f32>("y", layout)?;
            k.threads(16)?;
            row(k, &y)?.store_predicated(&row(k, &x)?.load_predicated()?)
        })
        .unwrap();
        let text = tilewright_kernel::ptx::write(kernel.program(), tilewright_kernel::ptx::Target::Sm80).unwrap();
        ["v4.b32", "v2.b32", "global.b32"].into_iter().find(|form| text.contains(form)).unwrap_or("").to_string()
    };
    assert_eq!(widest("(M,N{div=4}):(N,1)"), "v4.b32");
    assert_eq!(widest("(M,N{div=2}):(N,1)"), "v2.b32");
    assert_eq!(widest("(M,N):(N,1)"), "global.b32");
    assert_eq!(widest("(M,N{div=4}):(K,1)"), "global.b32");
    assert_eq!(widest("(M,N{div=4}):(K{div=4},1)"), "v4.b32");
    assert_eq!(widest("(M,N{div=4}):(1,M)"), "global.b32");
}

#[test]
fn each_reason_is_found() {
    let cases: Vec<(&str, KernelError)> = vec![
        ("E0901", refused(|k| k.input::<f32>("x", "(M,N):(N)").map(drop))),
        (
            "E0902",
            refused(|k| {
                CopyAtom::named("UniversalCopy<uint9_t>")?;
                k.threads(1)
            }),
        ),
        (
            "E0904",
            refused(|k| {
                let (x, tile) = (k.input::<f32>("x", "(64,64):(64,1)")?, k.shared::<f32>("(64,32)")?);
                k.copy(&copy("UniversalCopy<uint128_t>", 32, "(16,8):(8,1)", "(1,4)"), &x, &tile)
            }),
        ),
        (
            "E0905",
            refused(|k| {
                k.threads(32)?;
                let (x, y) = (k.number(1.0_f32), k.number(1_i32));
                let _ = x + y;
                Ok(())
            }),
        ),
        ("E0906", refused(|k| k.shared::<f32>("(M,8)").map(drop))),
        (
            "E0907",
            refused(|k| {
                let (x, tile) =
                    (k.input::<half::f16>("x", "(64,64):(1,64)")?, k.shared::<half::f16>("(64,64):(64,1)")?);
                let copy = copy("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 16, "(32,8):(8,1)", "(1,8)");
                k.copy(&copy, &x, &tile)
            }),
        ),
        (
            "E0908",
            refused(|k| {
                k.threads(128)?;
                k.threads(256)
            }),
        ),
        ("E0909", refused(|k| k.thread().map(drop))),
        (
            "E0910",
            refused(|k| {
                let (x, tile) = (k.shared::<f32>("(64,64):(64,1)")?, k.shared::<f32>("(64,64):(64,1)")?);
                k.copy(&copy("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 32, "(16,16):(16,1)", "(1,4)"), &x, &tile)
            }),
        ),
        ("E0911", refused(|k| k.threads(2048))),
        ("E0911", refused(|k| k.shared::<f32>("(256,256)").map(drop))),
        (
            "E0912",
            refused(|k| {
                k.threads(1)?;
                let (x, y) = (k.input::<f32>("x", "4:1")?, k.output::<f32>("y", "4:1")?);
                let values = x.load()?;
                y.store(&values)?;
                x.store(&values)
            }),
        ),
        (
            "E0912",
            refused(|k| {
                k.threads(1)?;
                k.output::<f32>("y", "4:1")?.load().map(drop)
            }),
        ),
        (
            "E0913",
            refused(|k| {
                k.threads(1)?;
                let y = k.output::<f32>("y", "4:1")?;
                y.store(&y.fragment()?)
            }),
        ),
        (
            "E0914",
            refused(|k| {
                k.threads(1)?;
                let x = k.number(1_u8);
                let _ = x + x;
                Ok(())
            }),
        ),
    ];
    for (code, error) in cases {
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn products_take_fragments_of_their_own_shapes() {
    let atom = MmaAtom::named("SM80_16x8x16_F32BF16BF16F32_TN").unwrap();
    let mma = TiledMma::new(atom, &"(1,1,1)".parse().unwrap(), &"[16:1;8:1;16:1]".parse().unwrap()).unwrap();
    let error = refused(|k| {
        let tile = |shape: &str| k.shared::<half::bf16>(shape);
        let (a, b) = (tile("(32,16):(16,1)")?, tile("(8,16):(16,1)")?);
        let (a, b) = (a.partition_mma(&mma, Operand::A)?, b.partition_mma(&mma, Operand::B)?);
        let c = k.shared::<f32>("(16,8)")?.partition_mma(&mma, Operand::C)?.fragment()?;
        c.clear();
        k.mma(&mma, &c, &a.load()?, &b.load()?, &c)
    });
    assert_eq!(error.code(), "E0904", "{error}");
}

#[test]
fn the_target_must_have_the_instructions() {
    use tilewright_kernel::ptx::{Target, write};
    let kernel = Kernel::build("k", |k| {
        k.threads(1)?;
        let (x, y) = (k.input::<f32>("x", "4:1")?, k.tensor_of(Element::E4M3, "y", "4:1", Role::Output)?);
        y.store(&x.load()?.map(|x| Ok(x.to(Element::E4M3)))?)
    })
    .unwrap();
    for target in [Target::Sm80, Target::Sm86, Target::Sm87] {
        let error = write(kernel.program(), target).unwrap_err();
        assert_eq!(error.code(), "E0921", "{error}");
        let said = format!("needs sm_89, sm_90a, sm_100, sm_120 or sm_121, not {}", target.name());
        assert!(error.to_string().ends_with(&said), "{error}");
    }
    for target in [Target::Sm89, Target::Sm90, Target::Sm90a, Target::Sm100, Target::Sm120, Target::Sm121] {
        assert!(write(kernel.program(), target).is_ok(), "{}", target.name());
    }
}

#[test]
fn elements_before_the_first_are_refused_and_predicated_ones_are_not() {
    for at in ["(x,-1)", "(-1,0)"] {
        let tile = |predicated: bool| {
            move |k: &Build| -> Outcome {
                let x = k.input::<f32>("x", "(M{div=64},N{div=64}):(N,1)")?;
                k.threads(64)?;
                k.grid(Axis::X, 1)?;
                let part = x.local_tile((64, 64), k.block(at)?)?.thread_part()?;
                if predicated { part.load_predicated() } else { part.load() }.map(drop)
            }
        };
        let error = refused(tile(false));
        assert!(matches!(error.reason(), Reason::Before { .. }), "{error}");
        assert_eq!(error.code(), "E0903");
        assert!(Kernel::build("predicated", tile(true)).is_ok());
    }
    for layout in ["(M,N):(-1,M)", "S<2,3,3> o -8 o (64,64):(64,1)", "(M,N):(M-4,1)"] {
        let error = refused(|k| k.input::<f32>("x", layout).map(drop));
        assert!(matches!(error.reason(), Reason::Backwards { .. }), "{layout}: {error}");
    }
    // A loop that goes backwards never gets there.
    let backwards = |last: i64| {
        Kernel::build("backwards", move |k| {
            let x = k.input::<f32>("x", "(K,64):(64,1)")?;
            k.threads(64)?;
            k.grid(tilewright_kernel::program::operation::Axis::X, 1)?;
            let size = k.size("K")?;
            k.range(size.clone(), |step| {
                let at = size.minus(&step).and_then(|at| at.minus(&Expr::from(last))).unwrap();
                let row = x.slice(Tree::flat([Slot::At(at), Slot::At(k.thread()?)])?)?;
                row.load().map(drop)
            })
        })
    };
    assert!(backwards(1).is_ok());
    assert!(matches!(backwards(0).unwrap_err().reason(), Reason::Outside { .. }));
    assert!(matches!(backwards(2).unwrap_err().reason(), Reason::Before { .. }));
}

#[test]
fn shared_memory_has_edges_too() {
    let vectors = copy("UniversalCopy<uint128_t>", 32, "(8,16):(16,1)", "(1,4)");
    let background = copy("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 32, "(8,16):(16,1)", "(1,4)");
    let mma = TiledMma::new(
        MmaAtom::named("SM80_16x8x8_F32TF32TF32F32_TN").unwrap(),
        &"(4,1,1)".parse().unwrap(),
        &"[64:1;16:1;8:1]".parse().unwrap(),
    );
    let mma = mma.unwrap();
    let matrices = TiledCopy::of_operand(CopyAtom::named("SM75_U32x4_LDSM_N").unwrap(), &mma, Operand::A).unwrap();
    let of_steps = |each: &dyn Fn(&Build, &View<'_>, &View<'_>) -> Outcome| {
        // Three stages, and as many steps as K gives.
        Kernel::build("steps", |k| {
            let x = k.input::<f32>("x", "(M{div=64},K{div=64}):(K,1)")?;
            let ring = k.shared::<f32>("(64,64,3):(64,1,4096)")?;
            let tiles = x.local_tile((64, 64), k.block("(x,_)")?)?;
            k.threads(128)?;
            k.range(k.size("K/64")?, |step| {
                let at = Tree::flat([Slot::All, Slot::All, Slot::At(step.clone())])?;
                each(k, &tiles.slice(at.clone())?, &ring.slice(at)?)
            })
        })
    };
    let zeros = |k: &Build, part: &View<'_>| -> Outcome {
        let zeros = k.register(Element::F32, 32)?;
        zeros.clear();
        part.store(&zeros)
    };
    let errors = [
        of_steps(&|k, tile, stage| k.copy(&vectors, tile, stage)),
        of_steps(&|k, tile, stage| k.copy(&background, tile, stage)),
        of_steps(&|_, _, stage| half_rows(stage)?.load().map(drop)),
        of_steps(&|k, _, stage| zeros(k, &half_rows(stage)?)),
        of_steps(&|k, _, stage| {
            let factor = stage.partition_mma(&mma, Operand::A)?.fragment()?;
            k.copy(&matrices, stage, &factor.retile(&matrices, tilewright_layout::atoms::CopyEnd::Destination)?)
        }),
    ];
    for (number, error) in errors.into_iter().enumerate() {
        let error = error.expect_err(&format!("statement {number} is refused"));
        assert!(matches!(error.reason(), Reason::Outside { mode: 2, .. }), "{number}: {error}");
    }
}

/// 32 elements of a tile of 64 x 64 for each of 128 threads.
fn half_rows<'k>(tile: &View<'k>) -> Result<View<'k>, KernelError> {
    tile.compose("(128,32):(32,1)")?.thread_part()
}

#[test]
fn elements_at_one_place_are_read_and_not_written() {
    // Windows of three that overlap: read as often as they are asked for.
    let kernel = Kernel::build("windows", |k| {
        let (x, y) = (k.input::<f32>("x", "8:1")?, k.output::<f32>("y", "18:1")?);
        k.threads(1)?;
        k.grid(tilewright_kernel::program::operation::Axis::X, 1)?;
        y.store(&x.compose("(6,3):(1,1)")?.load()?)
    })
    .unwrap();
    let mut run = tilewright_kernel::interpret::Interpreter::new(kernel.program(), &[]).unwrap();
    run.tensor("x", &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
    let left = run.check().unwrap().run.tensor::<f32>("y").unwrap();
    let wanted: Vec<f32> = (0..18).map(|at| (at % 6 + at / 6) as f32).collect();
    assert_eq!(left, wanted);

    let error = refused(|k| {
        let y = k.tensor::<f32>("y", "8:1")?;
        k.threads(1)?;
        let windows = y.compose("(6,3):(1,1)")?;
        windows.store(&windows.load()?)
    });
    assert!(matches!(error.reason(), Reason::Overlap { in_registers: false, .. }), "{error}");
}

#[test]
fn a_thread_takes_a_bounded_number_of_elements() {
    let error = refused(|k| k.input::<f32>("x", "1000000000:1")?.load().map(drop));
    assert!(matches!(error.reason(), Reason::TooMuch { what: "elements of a thread", .. }), "{error}");
    let error = refused(|k| k.shared::<f32>("9223372036854775807").map(drop));
    assert!(matches!(error.reason(), Reason::TooMuch { what: "bytes of shared memory", .. }), "{error}");
}

#[test]
fn outputs_are_written_once() {
    // Two threads a row; a block along y that is in no coordinate; no statement at all; the first
    // columns alone.
    let whole = |k: &Build, threads: i64, tile: &str, block: &str| -> Outcome {
        let y = k.output::<f32>("y", "(M{div=16},N{div=4}):(N,1)")?;
        k.threads(threads)?;
        let rows = y.local_tile(tile, k.block(block)?)?;
        let row = Tree::tuple([&Tree::leaf(Slot::At(k.remainder(&k.thread()?, 16)?)), &Tree::leaf(Slot::All)])?;
        let row = rows.slice(row)?;
        let zeros = row.fragment()?;
        zeros.clear();
        row.store(&zeros)
    };
    assert_eq!(Kernel::build("k", |k| whole(k, 16, "(16,4)", "(x,y)")).unwrap().outputs()[0].written, Written::Once);
    let error = refused(|k| whole(k, 32, "(16,4)", "(x,y)"));
    assert!(matches!(error.reason(), Reason::WrittenTwice { .. }), "{error}");
    assert_eq!((error.code(), error.source().statement), ("E0916", "store"));
    let error = refused(|k| {
        k.grid(Axis::Z, 3)?;
        whole(k, 16, "(16,4)", "(x,y)")
    });
    assert_eq!(error.code(), "E0916");
    let error = refused(|k| whole(k, 16, "(16,4)", "(x,0)"));
    assert!(matches!(error.reason(), Reason::NeverWritten { .. }), "{error}");
    assert_eq!(error.code(), "E0917");
    let error = refused(|k| {
        k.threads(16)?;
        k.output::<f32>("y", "(M,N):(N,1)").map(|_| ())
    });
    assert_eq!(error.code(), "E0917");
}

#[test]
fn an_index_ends_with_its_loop() {
    let error = Kernel::build("late", |k| {
        let x = k.input::<f32>("x", "(32,4):(1,32)")?;
        k.threads(32)?;
        let last = std::cell::Cell::new(None);
        k.range(4, |step| {
            last.set(Some(step));
            Ok(())
        })?;
        let Some(step) = last.take() else { return Ok(()) };
        let at = Tree::flat([Slot::All, Slot::At(step)])?;
        x.slice(at)?.compose("(32,1):(1,0)")?.thread_part()?.load().map(drop)
    })
    .unwrap_err();
    assert_eq!((error.code(), error.source().statement), ("E0918", "load"), "{error}");
}

/// A tile of this many rows and columns stored to a tensor, at a tile of its grid.
fn stored_bulk(element: Element, layout: &str, tile: &str, at: &str) -> Result<Kernel, KernelError> {
    Kernel::build("stored", |k| {
        let y = k.tensor_of(element, "y", layout, Role::Both)?;
        k.threads(32)?;
        let columns = tile.trim_matches(['(', ')']).split(',').next_back().unwrap_or_default();
        let held = k.shared_of(element, Layout::strided(tile, (columns, 1)))?;
        let part = y.local_tile(tile, k.block(at)?)?;
        k.single(|| k.store_bulk(&held, &part))
    })
}

#[test]
fn bulk_stores_end_at_chunks_of_16_bytes() {
    let settled = |element: Element, layout: &str, fact: Option<&str>| {
        let error = stored_bulk(element, layout, "(8,64)", "(x,y)").expect_err(layout);
        assert_eq!(error.code(), "E0923", "{layout}: {error}");
        let Reason::Chunk { fact: found, .. } = error.reason() else { panic!("{error}") };
        assert_eq!(found.as_deref(), fact, "{layout}");
        let help = error.help().unwrap();
        assert!(fact.is_none_or(|fact| help.contains(fact)), "{help}");
    };
    for (element, layout, fact) in [
        (Element::F32, "(M,N):(P{div=4},1)", Some("N{div=4}")),
        (Element::Bf16, "(M,N):(P{div=8},1)", Some("N{div=8}")),
        // Multiples of 4 are enough for pitches of 8 bytes, and not for chunks.
        (Element::Bf16, "(M,N{div=4}):(P{div=8},1)", Some("N{div=8}")),
        (Element::F16, "(M,2*N):(P{div=8},1)", Some("N{div=4}")),
        (Element::U8, "(M,12*N):(P{div=16},1)", Some("N{div=4}")),
        (Element::I32, "(M,N+1):(P{div=4},1)", None),
        (Element::F32, "(4,101):(104,1)", None),
        (Element::Bf16, "(1,135):(136,1)", None),
        (Element::F64, "(M,7):(8,1)", None),
    ] {
        settled(element, layout, fact);
        // The fact that is named settles it.
        if let Some(fact) = fact {
            let (name, _) = fact.split_once('{').unwrap();
            let declared = layout.replace(&format!("{name}{{div=4}}"), name).replacen(name, fact, 1);
            assert!(stored_bulk(element, &declared, "(8,64)", "(x,y)").is_ok(), "{declared}");
        }
    }
    for (element, layout, tile, at) in [
        (Element::F32, "(M,N{div=4}):(N,1)", "(8,64)", "(x,y)"),
        (Element::Bf16, "(M,8*N):(P{div=8},1)", "(8,64)", "(x,y)"),
        (Element::F32, "(M,100):(104,1)", "(8,64)", "(x,y)"),
        // Tiles that end before the last chunk, and along the last rows.
        (Element::F32, "(M,101):(104,1)", "(8,32)", "(x,0)"),
        (Element::F32, "(M,101):(104,1)", "(8,32)", "(x,2)"),
        (Element::F32, "(M,4*N+64):(P{div=4},1)", "(8,64)", "(x,0)"),
    ] {
        let built = stored_bulk(element, layout, tile, at);
        assert!(built.is_ok(), "{layout} {tile} {at}: {:?}", built.err());
    }
    let last = stored_bulk(Element::F32, "(M,101):(104,1)", "(8,32)", "(x,3)");
    assert_eq!(last.unwrap_err().code(), "E0923");
}

#[test]
fn bulk_stores_begin_at_0_or_later() {
    for at in ["(x,-1)", "(-1,y)"] {
        let error = stored_bulk(Element::F32, "(M,N{div=4}):(N,1)", "(8,64)", at).expect_err(at);
        assert!(matches!(error.reason(), Reason::Before { .. }), "{at}: {error}");
        let mode = usize::from(at == "(x,-1)");
        assert!(matches!(error.reason(), Reason::Before { mode: found, .. } if *found == mode), "{at}: {error}");
    }
    // A tile before the first one: a load fills zeros, and a store traps.
    let kernel = |loads: bool| {
        Kernel::build("placed", |k| {
            let (x, y) =
                (k.input::<f32>("x", "(M,64):(64,1)")?, k.tensor_of(Element::F32, "y", "(M,64):(64,1)", Role::Both)?);
            k.threads(32)?;
            k.grid(Axis::X, "ceil(M/8)")?;
            let held = k.shared::<f32>("(8,64):(64,1)")?;
            let from = Tree::flat([Slot::At(k.block_number(Axis::X).minus(&1.into()).unwrap()), Slot::At(0.into())])?;
            let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
            k.single(|| {
                if loads {
                    stage.acquire()?;
                    stage.load(&x.local_tile((8, 64), from.clone())?, &held)?;
                    return stage.publish();
                }
                k.store_bulk(&held, &y.local_tile((8, 64), from)?)
            })
        })
    };
    kernel(true).unwrap();
    assert_eq!(kernel(false).unwrap_err().code(), "E0903");
}

#[test]
fn bulk_copies_take_the_elements_that_were_declared() {
    let error = Kernel::build("words", |k| {
        let y = k.tensor_of(Element::F16, "y", "(8,64):(64,1)", Role::Both)?;
        k.threads(32)?;
        let held = k.shared::<u32>("(8,32):(32,1)")?;
        let words = y.recast(Element::U32, "(8,32):(32,1)")?;
        k.single(|| k.store_bulk(&held, &words))
    });
    assert_eq!(error.unwrap_err().code(), "E0907");
}

#[test]
fn the_target_must_hold_the_shared_memory() {
    use tilewright_kernel::ptx::{Target, least, write};
    let kernel = |bytes: i64| {
        Kernel::build("held", |k| {
            let y = k.output::<f32>("y", "32:1")?;
            let held = k.shared::<f32>(Layout::strided(bytes / 4, 1))?;
            k.threads(32)?;
            let thread = k.thread()?;
            let own = held.at(&thread)?;
            let zero = own.fragment()?;
            zero.clear();
            own.store(&zero)?;
            y.at(&thread)?.store(&own.load()?)
        })
        .unwrap()
    };
    // The limits of the programming guide, of a block of 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 12.0,
    // 12.1, and of 9.0 again, for the text that runs there and later.
    for (bytes, holds) in [
        (101_376, [true; 9]),
        (101_380, [true, false, true, false, true, true, false, false, true]),
        (166_912, [true, false, true, false, true, true, false, false, true]),
        (166_916, [false, false, false, false, true, true, false, false, true]),
        (232_448, [false, false, false, false, true, true, false, false, true]),
    ] {
        let kernel = kernel(bytes);
        for (target, holds) in Target::ALL.into_iter().zip(holds) {
            let text = write(kernel.program(), target);
            assert_eq!(text.is_ok(), holds, "{bytes} {target:?}");
            if let Err(error) = text {
                assert_eq!(error.code(), "E0926");
                let words = format!("{error}; {}", error.help());
                assert!(words.contains(&format!("{bytes} bytes")) && words.contains("sm_90a"), "{words}");
                assert!(tilewright_kernel::explanation("E0926").is_some());
            }
        }
        let first = holds.iter().position(|holds| *holds).unwrap();
        assert_eq!(least(kernel.program()).unwrap(), Target::ALL[first]);
    }
}
