//! Meshes and layouts over them: what is refused, what is said as JAX and PyTorch say it, and the
//! names of steps.

use tilewright_mesh::{Exchange, Machine, Mesh, MeshError, ShardedLayout, StepKind, reshard};

fn mesh(text: &str) -> Mesh {
    text.parse().unwrap()
}

fn layout(over: &str, text: &str) -> ShardedLayout {
    ShardedLayout::parse(&mesh(over), text).unwrap()
}

#[test]
fn what_is_no_mesh_is_refused() {
    for (text, code) in [
        ("", "E1101"),
        ("tp", "E1101"),
        ("tp=", "E1101"),
        ("tp=x", "E1101"),
        ("a=2,b=2:2", "E1101"),
        ("tp=0", "E1102"),
        ("tp=-1", "E1102"),
        ("tp=65537", "E1102"),
        ("a=300,b=300", "E1102"),
        ("tp=2,tp=2", "E1102"),
        ("2p=2", "E1102"),
        ("=2", "E1102"),
        ("a=2:1,b=2:1", "E1102"),
        ("a=2:2,b=2:4", "E1102"),
        ("a=2:-1,b=2:2", "E1102"),
        ("a=9223372036854775807", "E1102"),
    ] {
        assert_eq!(text.parse::<Mesh>().unwrap_err().code(), code, "{text}");
    }
    for text in ["dp=2,tp=4", "dp=2:4,tp=4:1", "a=1", "x=3:2,y=2:1,z=2:6"] {
        let read = mesh(text);
        assert_eq!(read.to_string(), text);
        for rank in 0..read.size() {
            assert_eq!(read.rank(&read.coordinate(rank)), Some(rank));
        }
        assert_eq!(read.coordinate(read.size()), Vec::<i64>::new());
    }
}

#[test]
fn what_is_no_layout_is_refused() {
    let over = mesh("dp=2,tp=4");
    for (text, code) in [
        ("(2,4):(1,1@pp)", "E1103"),
        ("(2,4):(1,1+1@tp)", "E1101"),
        ("(2,4):(1@tp,1@tp)", "E1104"),
        ("(2,8):(1,1@tp)", "E1104"),
        ("(2,4):(1,1@tp) copied 2:1@tp", "E1104"),
        ("(2,4):(1,1@tp) copied 2:1", "E1101"),
        ("(2,4):(1,1@tp) summed 3:1@dp", "E1104"),
        ("(2,4):(1,1@tp) at 1@tp", "E1104"),
        ("(2,4):(1,0@tp)", "E1104"),
        ("(2,2):(1,1)", "E1104"),
        ("(2,2):(1,-1)", "E1104"),
        ("(2,4):(1,1@tp", "E1101"),
        ("4:1 copied", "E1101"),
        ("9223372036854775807:2", "E0103"),
    ] {
        let error = ShardedLayout::parse(&over, text).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
    }
}

#[test]
fn what_is_printed_reads_back() {
    for text in [
        "8:1",
        "((2,4),3):((1,1@tp),2) copied 2:1@dp",
        "(8,3):(1,8) summed (2,4):(1@dp,1@tp)",
        "(2,3):(1@dp,1) at 2@tp",
        "(2,3):(1@dp,1) summed 2:2@tp at 1@tp+5",
    ] {
        assert_eq!(layout("dp=2,tp=4", text).to_string(), text);
    }
    // A shape alone is compact, and what lies side by side along an axis is one mode.
    assert_eq!(layout("tp=4", "(2,3)").to_string(), "(2,3):(1,2)");
    assert_eq!(layout("tp=4", "3:1 copied (2,2):(2@tp,1@tp)").to_string(), "3:1 copied 4:1@tp");
}

#[test]
fn specifications_read_back() {
    let over = Mesh::row_major(&[("dp", 2), ("tp", 4), ("pp", 3)]).unwrap();
    let shape = [24, 48];
    for spec in ["P(None, None)", "P('dp', 'tp')", "P(('tp', 'dp'), None)", "P(None, ('dp', 'tp', 'pp'))"] {
        let read = ShardedLayout::of_partition_spec(&over, &shape, spec).unwrap();
        assert_eq!(read.partition_spec().unwrap(), spec);
    }
    for text in
        ["[Shard(0), Shard(0), Shard(1)]", "[Replicate(), Partial(), Shard(1)]", "[Partial(), Partial(), Replicate()]"]
    {
        let read = ShardedLayout::of_placements(&over, &shape, text).unwrap();
        assert_eq!(read.placements().unwrap(), text);
    }
    let spec = |text| ShardedLayout::of_partition_spec(&over, &shape, text);
    assert_eq!(spec("PartitionSpec('dp',)"), spec("P('dp', None)"));
    for (text, code) in [
        ("P('dp', 'dp')", "E1101"),
        ("P('dp', None, None)", "E1101"),
        ("P('xp')", "E1103"),
        ("P(dp)", "E1101"),
        ("P(('dp'", "E1101"),
        ("P(,)", "E1101"),
        ("", "E1101"),
    ] {
        assert_eq!(spec(text).unwrap_err().code(), code, "{text}");
    }
    assert!(matches!(
        ShardedLayout::of_partition_spec(&over, &[6, 6], "P('tp')"),
        Err(MeshError::Uneven { mode: 0, size: 6, parts: 4 })
    ));
    for text in ["[Shard(0)]", "[Shard(2), Replicate(), Replicate()]", "[Shard(0), Partial(avg), Replicate()]", "x"] {
        assert_eq!(ShardedLayout::of_placements(&over, &shape, text).unwrap_err().code(), "E1101", "{text}");
    }
    // Rows as PyTorch cuts them: the first axis of the mesh is slowest, the rows of a device lie
    // together, and element (i, j) is at j + 48 * i in the whole.
    let cut = ShardedLayout::of_placements(&over, &shape, "[Shard(0), Shard(0), Replicate()]").unwrap();
    for (row, column) in [(0, 0), (2, 5), (3, 0), (13, 47), (23, 1)] {
        let (dp, tp, own) = (row / 12, row / 3 % 4, row % 3);
        let rank = |pp: i64| ((dp * 4 + tp) * 3 + pp) as usize;
        let offset = own * 48 + column;
        let places: Vec<_> = (0..3).map(|pp| (rank(pp), offset)).collect();
        assert_eq!(cut.places(row + 24 * column).unwrap(), places);
    }
}

#[test]
fn what_no_specification_says_is_refused() {
    for text in [
        "(2,2):(1,1@tp) copied 2:2@tp",
        "(2,4):(1,1@tp) at 1@dp",
        "(2,4):(1,1@tp)",
        "((2,4,2),3):((1,1@tp,2),4) copied 2:1@dp",
        "(2,4):(1,1@tp) summed 2:1@dp",
    ] {
        let error = layout("dp=2,tp=4", text).partition_spec().unwrap_err();
        assert_eq!(error.code(), "E1107", "{text}");
    }
    let backwards = layout("dp=2,tp=4", "(2,4,2):(1,1@tp,1@dp)");
    assert_eq!(backwards.partition_spec().unwrap(), "P(None, 'tp', 'dp')");
    let nested = layout("dp=2,tp=4", "((2,2,4),3):((1,1@dp,1@tp),2)");
    assert_eq!(nested.partition_spec().unwrap(), "P(('tp', 'dp'), None)");
    // Of axes that cut a mode the first is slowest; one that cuts before a slower one is strided.
    assert_eq!(nested.placements().unwrap(), "[_StridedShard(dim=0, split_factor=4), Shard(0)]");
    let apart = layout("dp=2,tp=4", "((2,4,2),3):((1,1@tp,2),4) copied 2:1@dp");
    assert_eq!(apart.placements().unwrap(), "[Replicate(), _StridedShard(dim=0, split_factor=2)]");
}

#[test]
fn shardings_are_read_as_they_print_themselves() {
    let over = Mesh::row_major(&[("dp", 2), ("tp", 4)]).unwrap();
    let read = |shape: &[i64], text: &str| ShardedLayout::of_sharding(&over, shape, text);
    let spec = |shape: &[i64], text: &str| ShardedLayout::of_partition_spec(&over, shape, text).unwrap();
    for (text, same) in [
        ("NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))", "P('tp', None)"),
        (
            "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4, axis_types=(Auto, Auto)), spec=PartitionSpec(('dp', 'tp'),), memory_kind=device)",
            "P(('dp', 'tp'), None)",
        ),
        ("jax.sharding.NamedSharding(mesh=AbstractMesh('dp': 2, 'tp': 4), spec=P())", "P()"),
        ("PartitionSpec('tp', 'dp')", "P('tp', 'dp')"),
        ("GSPMDSharding({devices=[2,4]<=[8]})", "P('dp', 'tp')"),
        ("GSPMDSharding({devices=[4,2]<=[2,4]T(1,0)})", "P('tp', 'dp')"),
        ("{devices=[8,1]<=[8]}", "P(('dp', 'tp'), None)"),
        ("{devices=[8,1]<=[2,4]T(1,0)}", "P(('tp', 'dp'), None)"),
        ("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", "P(None, 'tp')"),
        ("{devices=[1,2,4]<=[8] last_tile_dims={replicated}}", "P(None, 'dp')"),
        ("{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", "P('dp', None)"),
        ("{devices=[4,2]0,4,1,5,2,6,3,7}", "P('tp', 'dp')"),
        ("GSPMDSharding({replicated})", "P(None, None)"),
        ("[Replicate(), Shard(dim=0)]", "P('tp', None)"),
        (
            "DTensorSpec(mesh=DeviceMesh((dp=2, tp=4), 'cuda', stride=(4, 1)), placements=(Shard(dim=-1), Replicate()), tensor_meta=None)",
            "P(None, 'dp')",
        ),
        (
            "DTensorSpec(mesh=DeviceMesh((dp=2, tp=4), 'cuda', stride=(4, 1)), placements=(_StridedShard(dim=0, sf=4), Shard(dim=0)))",
            "P(('tp', 'dp'), None)",
        ),
    ] {
        assert_eq!(
            read(&[16, 8], text).unwrap_or_else(|error| panic!("{text}: {error}")),
            spec(&[16, 8], same),
            "{text}"
        );
    }
    // The numbers of devices, as XLA defines them.
    for (tiles, order, ids) in [
        ([2, 4], "<=[8]", [0, 1, 2, 3, 4, 5, 6, 7]),
        ([4, 2], "<=[2,4]T(1,0)", [0, 4, 1, 5, 2, 6, 3, 7]),
        ([4, 2], "<=[8]", [0, 1, 2, 3, 4, 5, 6, 7]),
        ([2, 4], "<=[4,2]T(1,0)", [0, 2, 4, 6, 1, 3, 5, 7]),
        ([2, 4], "<=[2,2,2]T(2,1,0)", [0, 4, 2, 6, 1, 5, 3, 7]),
    ] {
        let read = read(&[4, 8], &format!("{{devices=[{},{}]{order}}}", tiles[0], tiles[1])).unwrap();
        for element in 0..32 {
            let (row, column) = (element % 4, element / 4);
            let tile = row / (4 / tiles[0]) * tiles[1] + column / (8 / tiles[1]);
            assert_eq!(read.places(element).unwrap()[0].0, ids[tile as usize], "{order}: {element}");
        }
    }
    let alone = read(&[16, 8], "GSPMDSharding({maximal device=5})").unwrap();
    assert_eq!((alone.places(3).unwrap(), alone.copies()), (vec![(5, 24)], 1));
    for (shape, text, code) in [
        (vec![16, 8], "NamedSharding(mesh=Mesh('dp': 4, 'tp': 2), spec=PartitionSpec('tp'))", "E1105"),
        (vec![16, 8], "NamedSharding(mesh=Mesh('x': 2, 'tp': 4), spec=PartitionSpec('tp'))", "E1105"),
        (vec![16, 8], "NamedSharding(spec=PartitionSpec('tp'))", "E1101"),
        (vec![16, 8], "{devices=[2,2]<=[4]}", "E1105"),
        (vec![16, 8], "{devices=[2,4]<=[4]}", "E1101"),
        (vec![16, 8], "{devices=[2,4]<=[2,4]T(1,1)}", "E1101"),
        (vec![16, 8], "{devices=[0,8]<=[8]}", "E1101"),
        (vec![16, 8], "{devices=[2,4]0,1,2,3,4,5,7,6}", "E1101"),
        (vec![16, 8], "{devices=[8]<=[8]}", "E1101"),
        (vec![16, 8], "{devices=[2,4]<=[8] last_tile_dims={manual}}", "E1101"),
        (vec![16, 8], "{maximal device=8}", "E1101"),
        (vec![16, 8], "SingleDeviceSharding(device=CpuDevice(id=0))", "E1101"),
        // JAX refuses parts of unequal sizes.
        (vec![10, 8], "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp'))", "E1106"),
        (vec![10, 8], "{devices=[4,2]<=[8]}", "E1106"),
        (vec![10, 8], "[_StridedShard(dim=0, split_factor=4), Shard(0)]", "E1106"),
    ] {
        assert_eq!(read(&shape, text).unwrap_err().code(), code, "{text}");
    }
    assert_eq!(Mesh::of_sharding("{devices=[2,4]<=[8]}").unwrap().to_string(), "d0=8");
    assert_eq!(Mesh::of_sharding("x").unwrap_err().code(), "E1101");
}

#[test]
fn steps_have_the_names_of_collectives() {
    for (over, from, to, kind, most) in [
        ("x=4", "(4,4):(1,1@x)", "(4,4):(1,1@x)", StepKind::Nothing, 0),
        ("x=4", "((2,2),4):((1,2),1@x)", "(4,4):(1,1@x)", StepKind::Nothing, 0),
        ("x=4", "((2,2),4):((2,1),1@x)", "(4,4):(1,1@x)", StepKind::Relayout, 0),
        ("x=4", "(4,4):(1,4) copied 4:1@x", "(4,4):(1,1@x)", StepKind::Slice, 0),
        ("x=4", "(4,4):(1,1@x)", "(4,4):(1,4) copied 4:1@x", StepKind::AllGather, 12),
        ("x=2", "(4,2):(1,1@x)", "(4,2):(1,4) copied 2:1@x", StepKind::AllGather, 4),
        ("x=4", "(4,4):(1,1@x)", "(4,4):(4,1) at 2@x", StepKind::Gather, 12),
        ("x=4", "16:1 at 1@x", "16:1 copied 4:1@x", StepKind::Broadcast, 16),
        ("x=4", "(4,4):(1,4)", "(4,4):(1,1@x)", StepKind::Scatter, 4),
        ("x=4", "(4,4):(1,1@x)", "(4,4):(1@x,1)", StepKind::AllToAll, 3),
        ("x=2", "(2,2):(1,1@x)", "(2,2):(1@x,1)", StepKind::AllToAll, 1),
        ("x=2", "16:1", "16:1 at 1@x", StepKind::PointToPoint, 16),
        ("x=2,y=2", "(8,2,2):(1,1@x,1@y)", "(8,2,2):(1,1@y,1@x)", StepKind::PointToPoint, 8),
        ("x=4", "(4,4):(1,4) summed 4:1@x", "(4,4):(1,1@x)", StepKind::ReduceScatter, 12),
        ("x=4", "16:1 summed 4:1@x", "16:1 copied 4:1@x", StepKind::AllReduce, 48),
        ("x=4", "16:1 summed 4:1@x", "16:1", StepKind::Reduce, 48),
        ("x=4", "16:1 copied 4:1@x", "16:1 summed 4:1@x", StepKind::Slice, 0),
        ("x=4", "16:1 summed 4:1@x", "16:1 summed 4:1@x", StepKind::Nothing, 0),
        ("x=2,y=2", "(8,2):(1,8) summed (2,2):(1@x,1@y)", "(8,2):(1,1@x) summed 2:1@y", StepKind::ReduceScatter, 8),
    ] {
        let step = Exchange::new(&layout(over, from), &layout(over, to)).unwrap();
        assert_eq!((step.kind(), step.traffic().most_received()), (kind, most), "{from} to {to}");
    }
}

#[test]
fn sums_and_broadcasts_go_in_parts() {
    let kinds = |over: &str, from: &str, to: &str| {
        let plan = reshard(&layout(over, from), &layout(over, to), 4, &Machine::HGX_H200).unwrap();
        plan.steps().iter().map(|step| step.kind).collect::<Vec<_>>()
    };
    let large = "1048576:1";
    let copied = "1048576:1 copied 8:1@x";
    assert_eq!(kinds("x=8", "1048576:1 summed 8:1@x", copied), [StepKind::ReduceScatter, StepKind::AllGather]);
    assert_eq!(kinds("x=8", large, copied), [StepKind::Scatter, StepKind::AllGather]);
    // What is small goes at once, as one latency counts for more.
    assert_eq!(kinds("x=8", "64:1 summed 8:1@x", "64:1 copied 8:1@x"), [StepKind::AllReduce]);
    // No mode can be cut in two.
    assert_eq!(kinds("x=2", "1048575:1 summed 2:1@x", "1048575:1 copied 2:1@x"), [StepKind::AllReduce]);
}

#[test]
fn layouts_of_other_tensors_and_meshes_are_refused() {
    let rows = layout("x=2", "(4,2):(1,1@x)");
    let refused = |to: &ShardedLayout| Exchange::new(&rows, to).unwrap_err().code();
    assert_eq!(refused(&layout("x=2", "(2,4):(1,2)")), "E1105");
    assert_eq!(refused(&layout("y=2", "(4,2):(1,1@y)")), "E1105");
    let (a, b) = (layout("x=2", "(500009,2):(1,1@x)"), layout("x=2", "(2,500009):(1@x,1)"));
    assert_eq!(Exchange::new(&a, &b).unwrap_err().code(), "E1105");
    let (a, b) = (layout("x=2", "((500009,2),):((1,1@x),)"), layout("x=2", "((2,500009),):((1@x,1),)"));
    assert_eq!(Exchange::new(&a, &b).unwrap_err().code(), "E1108");
}

#[test]
fn machines_read_back() {
    for text in ["8 x 450 GB/s 5 us, 50 GB/s 10 us", "2 x 0.5 GB/s 0 us, 0.5 GB/s 0 us"] {
        assert_eq!(text.parse::<Machine>().unwrap().to_string(), text);
    }
    assert_eq!("hgx-h200".parse::<Machine>().unwrap(), Machine::HGX_H200);
    assert_eq!("4 x 10 GB/s 1 us".parse::<Machine>().unwrap().to_string(), "4 x 10 GB/s 1 us, 10 GB/s 1 us");
    for text in ["", "8", "0 x 1 GB/s 1 us", "8 x -1 GB/s 1 us", "8 x 1 GB/s", "8 x inf GB/s 1 us"] {
        assert_eq!(text.parse::<Machine>().unwrap_err().code(), "E1101", "{text}");
    }
}
