//! `tilewright mesh`: tensors sharded over devices.

mod devices;
mod multiply;
mod on_devices;
mod operations;
mod picture;
mod run;

use clap::{Args, Subcommand};
use serde_json::json;
use tilewright::mesh::{Machine, Mesh, MeshError, Plan, ProductPlan, ShardedLayout, multiply, reshard};

use crate::json::Json;
use crate::output::{Failure, SCALE, Saving};
use crate::picture::{Paint, painted};
use crate::terminal::Terminal;

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright mesh show dp=2,tp=4 '((2,4),3):((1,1@tp),2) copied 2:1@dp'
  tilewright mesh show dp=2:4,tp=4:1 --shape 8,6 --spec \"P('tp', 'dp')\" -o holders.svg
  tilewright mesh reshard tp=4 '((64,4),256):((1,1@tp),64)' '(256,(64,4)):(1,(256,1@tp))'
  tilewright launch -n 4 tilewright mesh run tp=4 '(8,4):(1,1@tp)' '((2,4),4):((1,1@tp),2)'
  tilewright mesh reshard tp=8 '(4096,4096) summed 8:1@tp' '(4096,4096) copied 8:1@tp'

A mode steps along offsets in the memory of a device, `8`, or along an axis of the mesh, `1@tp`.
Behind `copied` stand modes along which an element lies once for each position, behind `summed`
modes whose positions hold summands. The bytes that a device receives are counted from both
layouts; the times are what the links of the machine allow, and no measurement.";

#[derive(Debug, Subcommand)]
pub enum MeshAction {
    /// Print the facts about a layout over a mesh, and its picture.
    Show {
        /// The axes: `dp=2,tp=4`, the first fastest, or `dp=2:4,tp=4:1` with strides in ranks.
        mesh: String,
        /// The layout; else --shape with --spec or --placements.
        #[arg(required_unless_present = "shape", conflicts_with = "shape")]
        layout: Option<String>,
        #[command(flatten)]
        written: Written,
        #[command(flatten)]
        saving: Saving,
    },
    /// The steps that take a tensor from one layout to another, and what each device receives.
    Reshard {
        /// The axes, as in `show`.
        mesh: String,
        /// The layout before.
        from: String,
        /// The layout after.
        to: String,
        #[command(flatten)]
        options: Costs,
    },
    /// Plan a matmul of sharded matrices: communication and local work.
    Multiply {
        /// The axes, as in `show`.
        mesh: String,
        /// The layout of A, of M x K elements.
        a: String,
        /// The layout of B, of K x N elements.
        b: String,
        /// The layout of the product.
        d: String,
        #[command(flatten)]
        options: Costs,
        /// Additions and multiplications per second of a device.
        #[arg(long, default_value = "7e14")]
        rate: f64,
        #[command(flatten)]
        on: multiply::MultiplyOptions,
        #[command(flatten)]
        between: operations::On,
    },
    /// Plan an elementwise function of operands with different shardings. With --run or --device it
    /// is the sum of the squares of the operands.
    Map {
        /// The axes, as in `show`.
        mesh: String,
        /// The layout of the result.
        to: String,
        /// The layouts of the operands.
        #[arg(required = true)]
        operands: Vec<String>,
        #[command(flatten)]
        options: Costs,
        #[command(flatten)]
        on: operations::On,
        #[command(flatten)]
        here: on_devices::OnDevicesOptions,
    },
    /// Plan a reduction of modes, which may be cut along the mesh: the communication.
    Reduce {
        /// The axes, as in `show`.
        mesh: String,
        /// The layout of the operand.
        from: String,
        /// The layout of the result, in which the reduced modes have one element, or are left out.
        to: String,
        /// The reduction along these modes.
        #[arg(long, value_enum, default_value = "sum")]
        by: operations::By,
        #[command(flatten)]
        options: operations::OperationOptions,
    },
    /// Plan a softmax along modes, which may be cut along the mesh: the communication.
    Softmax {
        /// The axes, as in `show`.
        mesh: String,
        /// The layout of the operand.
        from: String,
        /// The layout of the result.
        to: String,
        #[command(flatten)]
        options: operations::OperationOptions,
    },
    /// Carry out the steps between processes, one for each device, and check what comes out.
    Run {
        /// The axes, as in `show`.
        mesh: String,
        /// The layout before.
        from: String,
        /// The layout after.
        to: String,
        #[command(flatten)]
        options: run::RunOptions,
    },
    /// Carry out the steps between the GPUs of this machine, check the result, and time it.
    Devices {
        /// The axes, as in `show`: as many devices as there are GPUs.
        mesh: String,
        /// The layout before.
        from: String,
        /// The layout after.
        to: String,
        #[command(flatten)]
        options: devices::DevicesOptions,
    },
}

/// A layout as a framework writes it.
#[derive(Debug, Args)]
pub struct Written {
    /// The sizes of the tensor's modes: `8,6`.
    #[arg(long, value_delimiter = ',', value_name = "SIZES")]
    shape: Option<Vec<i64>>,
    /// How JAX cuts them: `P('dp', None)`, or any sharding of JAX or PyTorch as it prints itself,
    /// such as `GSPMDSharding({devices=[2,4]<=[8]})`.
    #[arg(long, requires = "shape", value_name = "SPEC", conflicts_with = "placements")]
    spec: Option<String>,
    /// How DTensor does: `[Shard(0), Replicate()]`.
    #[arg(long, requires = "shape", value_name = "LIST")]
    placements: Option<String>,
}

#[derive(Debug, Args)]
pub struct Costs {
    /// The bytes of an element.
    #[arg(long, default_value = "4", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1024))]
    bytes: i64,
    /// The devices of a node, and the links: `hgx-h200` or `8 x 450 GB/s 5 us, 50 GB/s 10 us`.
    #[arg(long, default_value = "hgx-h200")]
    machine: String,
}

pub fn run(action: &MeshAction, terminal: &mut Terminal) -> Result<(), Failure> {
    match action {
        MeshAction::Show { mesh, layout, written, saving } => {
            let mesh: Mesh = mesh.parse()?;
            let layout = match (layout, written) {
                (Some(layout), _) => ShardedLayout::parse(&mesh, layout)?,
                (None, Written { shape: Some(shape), spec: Some(spec), .. }) => {
                    ShardedLayout::of_sharding(&mesh, shape, spec)?
                }
                (None, Written { shape: Some(shape), placements: Some(placements), .. }) => {
                    ShardedLayout::of_placements(&mesh, shape, placements)?
                }
                _ => return Err(Failure::Usage("give a layout, or --shape with --spec or --placements".to_owned())),
            };
            show(&layout, saving, terminal)
        }
        MeshAction::Reshard { mesh, from, to, options } => {
            let mesh: Mesh = mesh.parse()?;
            let machine: Machine = options.machine.parse()?;
            let [from, to] = [ShardedLayout::parse(&mesh, from)?, ShardedLayout::parse(&mesh, to)?];
            let plan = reshard(&from, &to, options.bytes, &machine)?;
            if terminal.json {
                Ok(terminal.object(&plan_json(&plan))?)
            } else {
                Ok(terminal.prose(&format!("{plan}\n"))?)
            }
        }
        MeshAction::Multiply { mesh, a, b, d, options, rate, on, between } => {
            let mesh: Mesh = mesh.parse()?;
            let machine: Machine = options.machine.parse()?;
            if !(*rate > 0.0 && rate.is_finite()) {
                return Err(Failure::Usage(format!("--rate is {rate}, and has to be a positive number")));
            }
            let [a, b, d] = [a, b, d].map(|text| ShardedLayout::parse(&mesh, text));
            let bytes = on.bytes().unwrap_or(between.bytes(options));
            let plan = multiply(&a?, &b?, &d?, bytes, *rate, &machine)?;
            if on.device {
                multiply::run(&plan, on, terminal)
            } else if between.run {
                operations::multiplied(&plan, between, terminal)
            } else if terminal.json {
                Ok(terminal.object(&product_json(&plan))?)
            } else {
                Ok(terminal.prose(&format!("{plan}\n"))?)
            }
        }
        MeshAction::Map { mesh, to, operands, options, on, here } => {
            operations::mapped(mesh, to, operands, (options, on, here), terminal)
        }
        MeshAction::Reduce { mesh, from, to, by, options } => {
            operations::reduced(mesh, [from, to], *by, options, terminal)
        }
        MeshAction::Softmax { mesh, from, to, options } => operations::softmaxed(mesh, [from, to], options, terminal),
        MeshAction::Devices { mesh, from, to, options } => devices::run(mesh, [from, to], options, terminal),
        MeshAction::Run { mesh, from, to, options } => run::run(mesh, [from, to], options, terminal),
    }
}

fn show(layout: &ShardedLayout, saving: &Saving, terminal: &mut Terminal) -> Result<(), Failure> {
    let figure = picture::holders(layout, saving.medium())?;
    if let Some(file) = saving.file()? {
        return saving.save(&figure, file, SCALE, terminal);
    }
    if terminal.json {
        return Ok(terminal.object(&layout_json(layout))?);
    }
    saving.show(&figure, SCALE, terminal)?;
    let mut text = format!("{}\n", painted(&layout.to_string(), Paint::Strong, terminal.colour));
    let mut line = |name: &str, what: String| text.push_str(&format!("  {name:<12} {what}\n"));
    let mesh = layout.mesh();
    line("mesh", format!("{mesh}, {}", count(mesh.size() as i64, "device")));
    let held = match (layout.copies(), layout.sums()) {
        (1, 1) => "each held once".to_owned(),
        (copies, 1) => format!("each held {copies} times"),
        (1, sums) => format!("each the sum of {sums} summands"),
        (copies, sums) => format!("each the sum of {sums} summands, all held {copies} times"),
    };
    line("elements", format!("{}, {held}", layout.size()));
    let sizes: Vec<i64> = (0..mesh.size()).map(|rank| layout.local_size_on(rank)).collect();
    let least = sizes.iter().copied().filter(|size| *size > 0).min().unwrap_or(0);
    let most = layout.local_size();
    let range = if least < most { format!("{least} to {most}") } else { most.to_string() };
    line("a device", format!("{range} of them, in memory for {}", layout.reach()));
    let idle = sizes.iter().filter(|size| **size == 0).count();
    if idle > 0 {
        line("idle", count(idle as i64, "device"));
    }
    let said = |form: Result<String, MeshError>| match form {
        Err(MeshError::Unwritten { why, .. }) => format!("none: {why}"),
        form => form.unwrap_or_else(|error| error.to_string()),
    };
    line("JAX", said(layout.partition_spec()));
    line("DTensor", said(layout.placements()));
    Ok(terminal.prose(&text)?)
}

fn count(number: i64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn layout_json(layout: &ShardedLayout) -> Json {
    json!({
        "text": layout.to_string(),
        "mesh": layout.mesh().to_string(),
        "devices": layout.mesh().size(),
        "size": layout.size(),
        "copies": layout.copies(),
        "sums": layout.sums(),
        "local_size": layout.local_size(),
        "local_sizes": (0..layout.mesh().size()).map(|rank| layout.local_size_on(rank)).collect::<Vec<_>>(),
        "memory": layout.reach(),
        "partition_spec": layout.partition_spec().ok(),
        "placements": layout.placements().ok(),
    })
}

pub(crate) fn product_json(plan: &ProductPlan) -> Json {
    let roles: Vec<String> = plan.roles().iter().map(|role| format!("{role:?}").to_lowercase()).collect();
    let [a, b, d] = plan.moves().map(plan_json);
    json!({ "roles": roles, "a": a, "b": b, "d": d, "seconds": plan.seconds() })
}

fn plan_json(plan: &Plan) -> Json {
    let ranks = 0..plan.from().mesh().size();
    let steps: Vec<Json> = plan
        .steps()
        .iter()
        .map(|step| {
            json!({
                "kind": step.kind.to_string(),
                "to": step.exchange.to().to_string(),
                "most_received": step.traffic.most_received(),
                "most_sent": step.traffic.most_sent(),
                "moved": step.traffic.moved(),
                "seconds": step.seconds,
            })
        })
        .collect();
    json!({
        "from": plan.from().to_string(),
        "to": plan.to().to_string(),
        "mesh": plan.from().mesh().to_string(),
        "steps": steps,
        "received_bytes": ranks.clone().map(|rank| plan.received(rank)).collect::<Vec<_>>(),
        "least_bytes": ranks.map(|rank| plan.least(rank)).collect::<Vec<_>>(),
        "why_more": plan.why_more(),
    })
}
