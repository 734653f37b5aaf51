//! Shardings of Shardy and of DTensor, as they are printed, against what they mean: which device
//! holds which element, written out here.

use tilewright_layout::Refusal as _;
use tilewright_mesh::ShardedLayout;
use tilewright_read::{Meaning, Missing, Options, Refused, document};

/// The sharded layouts of a text.
fn layouts(text: &str, options: &Options) -> Vec<ShardedLayout> {
    let items = document(text, options).items;
    let layout = |item: tilewright_read::Item| match item.answer.unwrap_or_else(|refused| panic!("{text}: {refused}")) {
        tilewright_read::Reading { meaning: Meaning::Sharded(layout), .. } => *layout,
        other => panic!("{text}: {other:?}"),
    };
    items.into_iter().map(layout).collect()
}

/// A part of an axis: its number, and how many devices stand before it and in it.
type Part = (usize, i64, i64);

/// Along an axis of `extent` devices, the place of a device within a part of it.
fn within(extent: i64, at: i64, (_, before, inside): Part) -> i64 {
    // The axis is `before * inside * behind`, the last the fastest.
    let behind = extent / (before * inside);
    at / behind % inside
}

/// Whether a device holds the element, and where: parts lie row by row in its memory.
fn held(shape: [i64; 2], axes: [i64; 2], modes: &[Vec<Part>; 2], device: [i64; 2], at: [i64; 2]) -> Option<i64> {
    let mut offset = 0;
    for mode in 0..2 {
        let (mut part, mut parts) = (0, 1);
        for own in &modes[mode] {
            part = part * own.2 + within(axes[own.0], device[own.0], *own);
            parts *= own.2;
        }
        let size = shape[mode] / parts;
        if at[mode] / size != part {
            return None;
        }
        offset = offset * size + at[mode] % size;
    }
    Some(offset)
}

fn spelled(parts: &[Part], axes: [i64; 2], open: bool) -> String {
    let part = |own: &Part| {
        let name = ["\"x\"", "\"y\""][own.0];
        if own.2 == axes[own.0] { name.to_owned() } else { format!("{name}:({}){}", own.1, own.2) }
    };
    let mut all: Vec<String> = parts.iter().map(part).collect();
    if open {
        all.push("?".to_owned());
    }
    format!("{{{}}}", all.join(", "))
}

#[test]
fn shardings_of_shardy_are_on_the_devices_that_they_name() {
    let shape = [16, 24];
    let axes = [2, 8];
    let all: [[Vec<Part>; 2]; 10] = [
        [vec![], vec![]],
        [vec![(0, 1, 2)], vec![]],
        [vec![], vec![(1, 1, 8)]],
        [vec![(1, 1, 8)], vec![(0, 1, 2)]],
        [vec![(0, 1, 2), (1, 1, 8)], vec![]],
        [vec![(1, 1, 8), (0, 1, 2)], vec![]],
        [vec![(1, 1, 2)], vec![(1, 4, 2)]],
        [vec![(1, 2, 2)], vec![(1, 1, 2), (0, 1, 2)]],
        [vec![(1, 2, 4), (0, 1, 2)], vec![(1, 1, 2)]],
        [vec![(1, 4, 2), (1, 1, 4)], vec![]],
    ];
    for (number, modes) in all.iter().enumerate() {
        for (list, rank) in
            [("", [8, 1]), (", device_ids=[0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15]", [1, 2])]
        {
            let dims = format!(
                "[{}, {}]",
                spelled(&modes[0], axes, number % 2 == 1),
                spelled(&modes[1], axes, number % 3 == 1)
            );
            let text = format!(
                "  sdy.mesh @mesh = <[\"x\"=2, \"y\"=8]{list}>\n  func.func @f(%arg0: tensor<3xf32>, %arg1: \
                 tensor<16x24xbf16> {{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}) {{\n    %0 = sdy.reshard %arg1 \
                 <@mesh, {dims}> : tensor<16x24xbf16>\n"
            );
            let found = layouts(&text, &Options::default());
            assert_eq!(found.len(), 2, "{text}");
            for layout in found {
                for row in 0..shape[0] {
                    for column in 0..shape[1] {
                        let places = layout.places(row + shape[0] * column).unwrap();
                        for x in 0..axes[0] {
                            for y in 0..axes[1] {
                                let device = (x * rank[0] + y * rank[1]) as usize;
                                let own = places.iter().find(|place| place.0 == device).map(|place| place.1);
                                let wanted = held(shape, axes, modes, [x, y], [row, column]);
                                assert_eq!(own, wanted, "{text} at {row},{column} on {x},{y}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn meshes_and_shapes_are_found_where_they_stand() {
    let told = Options { shape: Some(vec![8, 16]), ..Options::default() };
    let wanted = "((4,2),16):((16,1@x),1) copied 4:1@y";
    for text in [
        "#sdy.sharding<mesh<[\"x\"=2, \"y\"=4]>, [{\"x\"}, {}]>",
        "\"sdy.mesh\"() <{mesh = #sdy.mesh<[\"x\"=2, \"y\"=4]>, sym_name = \"m\"}> : () -> ()\n#sdy.sharding<@m, [{\"x\"}, {}]>",
        "xla.sdy.meshes={m = #sdy.mesh<[\\\"x\\\"=2, \\\"y\\\"=4]>}\n#sdy.sharding<@m, [{\\\"x\\\"}p0, {?}]>",
        "sdy.mesh @m = <[\"x\"=2, \"y\"=4]>\n%1 = sdy.sharding_constraint %0 <@m, [{\"x\"}, {}]> : tensor<8x16xf32>",
        "sdy.mesh @m = <[\"x\"=2, \"y\"=4]>\n%1 = sdy.sharding_constraint %0 <@m, [{\"x\"}, {}], replicated={\"y\"}>",
    ] {
        let found = layouts(text, &told);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [wanted], "{text}");
    }
    // The results of an operation have their shardings in a list.
    let text = "sdy.mesh @m = <[\"x\"=2, \"y\"=4]>\n%1:2 = stablehlo.sort(%0, %0) {sdy.sharding = \
                #sdy.sharding_per_value<[<@m, [{\"x\"}]>, <@m, [{}, {\"y\"}]>]>} : (tensor<4xf32>) -> (tensor<6xf32>, \
                tensor<3x8xf32>)";
    let found = layouts(text, &Options::default());
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["((3,2),):((1,1@x),) copied 4:1@y", "(3,(2,4)):(2,(1,1@y)) copied 2:1@x"]
    );
    let sums = "#sdy.sharding<mesh<[\"x\"=2, \"y\"=4]>, [{\"x\"}, {}], unreduced={\"y\"}>";
    assert_eq!(layouts(sums, &told)[0].to_string(), "((4,2),16):((16,1@x),1) summed 4:1@y");
    // XLA's words on what has a type.
    for text in [
        "func.func @f(%a: tensor<8x16xf32> {mhlo.sharding = \"{devices=[2,1,4]<=[8] last_tile_dim_replicate}\"})",
        "%1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = \"{devices=[2,1,4]<=[8] last_tile_dim_replicate}\"} \
         : (tensor<8x16xf32>) -> tensor<8x16xf32>",
    ] {
        let sharded = document(text, &Options::default()).items.into_iter().filter_map(|item| {
            let reading = item.answer.unwrap_or_else(|refused| panic!("{text}: {refused}"));
            matches!(reading.meaning, Meaning::Sharded(_)).then(|| reading.to_string())
        });
        assert_eq!(sharded.collect::<Vec<_>>(), ["((4,2),16):((16,4@d0),1) copied 4:1@d0"], "{text}");
    }
}

/// Behind the partitioner a parameter of HLO has the shape of one device, so its type says nothing.
#[test]
fn the_type_of_hlo_is_no_shape_of_a_sharding() {
    let text = "  %p = f32[4,16]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}";
    let asked = document(text, &Options::default()).items.pop().unwrap().answer.unwrap_err();
    assert!(matches!(asked, Refused::Question(question) if question.missing == Missing::Shape));
}

/// Types of JAX name the axes behind the extents.
#[test]
fn types_of_jax_with_axes_are_specifications() {
    let mesh = Some("x=2:4,y=4:1".parse().unwrap());
    let told = Options { mesh, ..Options::default() };
    let shape = Options { shape: Some(vec![8, 16]), ..told.clone() };
    for (text, spec) in [
        ("float32[8@x,16@y]", "P('x', 'y')"),
        ("bf16[8,16@(x,y)]", "P(None, ('x', 'y'))"),
        ("int32[8@y,16]", "P('y', None)"),
    ] {
        assert_eq!(layouts(text, &told), layouts(spec, &shape), "{text}");
        assert!(
            matches!(refusal(text, &Options::default()), Refused::Question(question) if question.missing == Missing::Mesh)
        );
    }
    assert_eq!(refusal("float32[8@x,16]{U:y}", &told).code(), "E1304");
    assert_eq!(refusal("float32[8@z,16]", &told).code(), "E1303");
    assert!(document("float32[8,16] float32[8@] int32[@x]", &told).items.is_empty());
}

fn refusal(text: &str, options: &Options) -> Refused {
    let items = document(text, options).items;
    let refused = items.into_iter().find_map(|item| item.answer.err());
    refused.unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn what_a_sharding_leaves_open_is_asked_and_what_is_wrong_is_refused() {
    let mesh = "sdy.mesh @m = <[\"x\"=2, \"y\"=4]>\n";
    let shape = |shape: &[i64]| Options { shape: Some(shape.to_vec()), ..Options::default() };
    let asks = |text: &str, options: &Options| match refusal(text, options) {
        Refused::Question(question) => question.missing,
        Refused::Error(error) => panic!("{text}: {error:?}"),
    };
    assert_eq!(asks(&format!("{mesh}#sdy.sharding<@m, [{{\"x\"}}, {{}}]>"), &Options::default()), Missing::Shape);
    assert_eq!(asks("#sdy.sharding<@m, [{\"x\"}, {}]>", &shape(&[8, 16])), Missing::Mesh);
    assert_eq!(asks(&format!("{mesh}#sdy.sharding<@other, [{{\"x\"}}, {{}}]>"), &shape(&[8, 16])), Missing::Mesh);
    for (sharding, extents, code) in [
        ("[{\"z\"}, {}]", [8, 16], "E1303"),
        ("[{\"x\"}]", [8, 16], "E1303"),
        ("[{\"x\"}, {\"x\"}]", [8, 16], "E1303"),
        ("[{\"y\":(1)2, \"y\"}, {}]", [8, 16], "E1303"),
        ("[{\"y\":(1)3}, {}]", [6, 16], "E1303"),
        ("[{\"y\":(0)2}, {}]", [8, 16], "E1303"),
        ("[{\"x\"}, {}]", [7, 16], "E1303"),
        ("[{\"x\", \"y\"}, {}]", [4, 16], "E1303"),
        ("[{?, \"x\"}, {}]", [8, 16], "E1303"),
        ("[{\"x\"}, {}", [8, 16], "E1303"),
        ("[{x}, {}]", [8, 16], "E1303"),
    ] {
        let text = format!("{mesh}#sdy.sharding<@m, {sharding}>");
        assert_eq!(refusal(&text, &shape(&extents)).code(), code, "{text}");
    }
    for (defined, code) in [
        ("<[]>", "E1304"),
        ("<[], device_ids=[0]>", "E1304"),
        ("<[\"x\"=2], device_ids=[1, 0]>", "E1303"),
        ("<[\"x\"=2, \"y\"=2], device_ids=[0, 1, 3, 2]>", "E1303"),
        ("<[\"x\"=2, \"y\"=2], device_ids=[0, 1]>", "E1303"),
    ] {
        let text = format!("sdy.mesh @m = {defined}\n#sdy.sharding<@m, [{{}}, {{}}]>");
        assert_eq!(refusal(&text, &shape(&[8, 16])).code(), code, "{text}");
    }
    // Each beginning is read or refused, and none is another layout.
    let whole = format!(
        "{mesh}%1 = sdy.reshard %0 <@m, [{{\"y\":(1)2}}, {{\"x\", ?}}], unreduced={{\"y\":(2)2}}> : tensor<8x16xf32>"
    );
    let wanted = layouts(&whole, &Options::default())[0].to_string();
    for end in 0..whole.len() {
        for reading in document(&whole[..end], &Options::default()).readings() {
            assert_eq!(reading.to_string(), wanted, "{}", &whole[..end]);
        }
    }
    let hostile =
        ["<@", "#sdy.sharding<", "<@m, [{", "<mesh<", "sdy.mesh @m = <[", "DTensor(local_tensor=", "Spec(R on ("];
    for sign in hostile {
        let _ = document(&sign.repeat(20_000), &Options::default());
    }
}

/// Where the piece of a rank begins in a range, and where it ends: the rule of `torch.chunk`.
fn chunk(first: i64, end: i64, pieces: i64, rank: i64) -> (i64, i64) {
    let each = (end - first + pieces - 1) / pieces;
    let from = (first + rank * each).min(end);
    (from, (from + each).min(end))
}

/// The values of a part, as PyTorch prints them.
fn printed(rows: i64, columns: i64) -> String {
    let row = format!("[{}]", vec!["1."; columns as usize].join(", "));
    format!("tensor([{}], device='cuda:0')", vec![row; rows as usize].join(",\n        "))
}

#[test]
fn tensors_of_dtensor_are_on_the_devices_that_hold_them() {
    let mut checked = 0;
    for shape in [[8, 6], [7, 5], [9, 4]] {
        for (placements, modes, sums) in [
            ("(Shard(dim=0), Replicate())", [Some(0), None], false),
            ("(Replicate(), Shard(dim=1))", [None, Some(1)], false),
            ("[Shard(0), Shard(0)]", [Some(0), Some(0)], false),
            ("(Shard(dim=-1), Partial(sum))", [Some(1), None], true),
            ("(_Partial(reduce_op='sum'), Shard(dim=0))", [None, Some(0)], true),
        ] {
            for (mesh, ranks) in [
                ("DeviceMesh('cuda', [[0, 1, 2], [3, 4, 5]], mesh_dim_names=('dp', 'tp'))", [3, 1]),
                ("DeviceMesh((dp=2, tp=3), device: 'cuda', stride: (3, 1))", [3, 1]),
                ("DeviceMesh((dp=2, tp=3), 'cuda', stride=(1, 2))", [1, 2]),
                ("DeviceMesh('cuda', [[0, 2, 4], [1, 3, 5]])", [1, 2]),
            ] {
                let ranges = |at: [i64; 2]| {
                    let mut ranges = [(0, shape[0]), (0, shape[1])];
                    for axis in 0..2 {
                        if let Some(mode) = modes[axis] {
                            let own: &mut (i64, i64) = &mut ranges[mode as usize];
                            *own = chunk(own.0, own.1, [2, 3][axis], at[axis]);
                        }
                    }
                    ranges
                };
                let first = ranges([0, 0]);
                let local = printed(first[0].1 - first[0].0, first[1].1 - first[1].0);
                let text = format!("DTensor(local_tensor={local}, device_mesh={mesh}, placements={placements})");
                let asked = refusal(&text, &Options::default());
                assert!(
                    matches!(asked, Refused::Question(ref question) if question.missing == Missing::Shape),
                    "{asked}"
                );
                let told = Options { shape: Some(shape.to_vec()), ..Options::default() };
                let layout = &layouts(&text, &told)[0];
                assert_eq!(layout.to_string().contains("summed"), sums, "{text}: {layout}");
                for row in 0..shape[0] {
                    for column in 0..shape[1] {
                        let places = layout.places(row + shape[0] * column).unwrap();
                        for dp in 0..2 {
                            for tp in 0..3 {
                                let own = ranges([dp, tp]);
                                let inside =
                                    (own[0].0..own[0].1).contains(&row) && (own[1].0..own[1].1).contains(&column);
                                let offset = (row - own[0].0) * (own[1].1 - own[1].0) + column - own[1].0;
                                let rank = (dp * ranks[0] + tp * ranks[1]) as usize;
                                let found = places.iter().find(|place| place.0 == rank).map(|place| place.1);
                                assert_eq!(found, inside.then_some(offset), "{text}: {dp},{tp} at {row},{column}");
                                checked += 1;
                            }
                        }
                    }
                }
                // A shape under which no device has the printed part.
                let other = Options { shape: Some(vec![shape[0] * 4, shape[1]]), ..Options::default() };
                assert_eq!(refusal(&text, &other).code(), "E1303", "{text}");
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
    let told = Options { shape: Some(vec![8, 6]), ..Options::default() };
    let mesh = "device_mesh=DeviceMesh((dp=2, tp=2), 'cuda', stride=(2, 1))";
    let blocks = format!(
        "DTensor(local_tensor=tensor(..., size=(2, 6)), {mesh}, placements=(_StridedShard(dim=0, sf=2), Shard(dim=0)))"
    );
    let spec = "DTensorSpec(mesh=DeviceMesh((dp=2, tp=2), 'cuda', stride=(2, 1)), placements=(_StridedShard(dim=0, split_factor=2), Shard(dim=0)))";
    assert_eq!(layouts(&blocks, &told), layouts(spec, &told));
    // With a split factor of 2 the rows are halved first by the second axis.
    let strided = &layouts(&blocks, &told)[0];
    for row in 0..8_i64 {
        let device = (row / 2 % 2 * 2 + row / 4) as usize;
        assert_eq!(strided.places(row).unwrap()[0].0, device, "{strided} at row {row}");
    }
    for reduced in ["Partial(max)", "Partial(avg)", "_NormPartial(reduce_op='sum', norm_type=2)"] {
        let text = format!("DTensor(local_tensor=tensor([1.]), {mesh}, placements=(Shard(dim=0), {reduced}))");
        let refused = refusal(&text, &told);
        assert!(refused.code() == "E1304" && refused.to_string().contains(reduced), "{refused}");
    }
    // A mesh that is a part of a larger one is numbered on its own, and a note says so.
    for (stride, partial) in [("(4, 2)", true), ("(2, 1)", false)] {
        let text = format!(
            "DTensorSpec(mesh=DeviceMesh((dp=2, tp=2), 'cuda', stride={stride}), placements=(Shard(dim=0), Shard(dim=1)))"
        );
        let items = document(&text, &told).items;
        let reading = items[0].answer.as_ref().unwrap();
        assert_eq!(reading.notes.iter().any(|note| note.contains("part of a larger one")), partial, "{text}");
        assert_eq!(reading.to_string(), "((4,2),(3,2)):((3,1@dp),(1,1@tp))");
    }
    // Short forms, on a mesh that is told.
    let mesh = Some("dp=2:2,tp=2:1".parse().unwrap());
    let on = Options { mesh, ..told };
    let long = layouts("[Shard(0), Partial()]", &on);
    assert_eq!(layouts("Spec(f32[8, 6](S(0)P(sum)))", &on), long);
    assert_eq!(layouts("Spec((S(0), P) on (8, 6))", &on), long);
    assert!(document("Spec(f32[8, 6](S(0)[1]R)) Spec(hello) DTensor(x) Spec(Some(1))", &on).items.is_empty());
}
