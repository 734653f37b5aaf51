//! The texts of operations: arithmetic by name, and synchronization.

use tilewright_kernel::program::memory::Access;
use tilewright_kernel::program::operation::{
    AtomicOperation, Binary, Comparison, Fence, Format, Number, Operation, Special,
};

/// Arithmetic on data: the operation and its type; None for other operations, and for arithmetic on
/// indices and conditions, that is on integers, unless they are `data`, from memory.
pub fn arithmetic(operation: &Operation, data: bool) -> Option<String> {
    let is_float = |format: &Format| match format {
        Format::Number(number) => number.is_float(),
        other => matches!(other, Format::E4M3 | Format::E5M2),
    };
    let typed =
        |name: String, number: &Number| (data || number.is_float()).then(|| format!("{name} {}", lower(number)));
    match operation {
        Operation::Unary(unary, number) => typed(apart(&format!("{unary:?}")), number),
        Operation::Binary(binary, number) => typed(apart(&format!("{binary:?}")), number),
        Operation::MultiplyAdd(number) => typed("multiply-add".to_owned(), number),
        Operation::Compare(_, number) => typed("compare".to_owned(), number),
        Operation::Convert { from, to, .. } if data || is_float(from) || is_float(to) => {
            Some(format!("convert {} to {}", format_name(from), format_name(to)))
        }
        Operation::ConvertPair { to } => Some(format!("convert f32 to {}", format_name(to))),
        Operation::WidenPair { from } => Some(format!("convert {} to f16", format_name(from))),
        _ => None,
    }
}

/// The result of an operation on values, as text: `size` is the text of a launch argument, and
/// `wide` says that the result has more than 32 bits.
pub fn value(
    operation: &Operation,
    inputs: &[String],
    wide: bool,
    size: impl Fn(usize) -> Option<String>,
) -> Option<String> {
    Some(match (operation, inputs) {
        (Operation::Constant(bits), _) if wide => (*bits as i64).to_string(),
        (Operation::Constant(bits), _) => (*bits as u32 as i32).to_string(),
        (Operation::Binary(Binary::ShiftRight, _), [a, b]) if a == "thread" && b == "5" => "warp".to_owned(),
        (Operation::Binary(Binary::And, _), [a, b]) if a == "thread" && b == "31" => "lane".to_owned(),
        // Uniform across lanes.
        (Operation::Shuffle(_), [a, ..]) if a == "warp" => a.clone(),
        (Operation::Binary(Binary::Add, _), [a, b]) if b.starts_with('-') => format!("({a} - {})", &b[1..]),
        (Operation::Special(special), _) => place(special),
        (Operation::Scalar(at), _) => return size(*at),
        (Operation::Binary(binary, _), [a, b]) => format!("({a} {} {b})", sign(binary)?),
        (Operation::Compare(comparison, _), [a, b]) => format!("{a} {} {b}", compared(comparison)),
        (Operation::MultiplyAdd(_) | Operation::MultiplyAddWide(_), [a, b, c]) => format!("({a} * {b} + {c})"),
        (Operation::Convert { .. } | Operation::Move, [a]) => a.clone(),
        (Operation::Elect, _) => "elected lane".to_owned(),
        _ => return None,
    })
}

/// Synchronization of threads and memory; None for other operations. `of` names the memory of an
/// access.
pub fn orders(operation: &Operation, of: &impl Fn(&Access) -> String) -> Option<String> {
    Some(match operation {
        Operation::CommitAsync => "commit the cp.async since the last commit as a group".to_owned(),
        Operation::WaitAsync(groups) => format!("wait until at most {groups} groups of cp.async are in flight"),
        Operation::FenceRegisters => "wgmma.fence".to_owned(),
        Operation::CommitMultiply => "commit the wgmma since the last commit as a group".to_owned(),
        Operation::WaitMultiply(groups) => format!("wait until at most {groups} groups of wgmma are in flight"),
        Operation::Barrier => "barrier: wait for all threads of the block".to_owned(),
        Operation::NamedBarrier { number, threads } => format!("barrier {number}: wait for {threads} threads"),
        Operation::NamedArrive { number, threads } => format!("barrier {number} of {threads} threads: arrive"),
        Operation::WarpBarrier => "wait for the lanes of the warp".to_owned(),
        Operation::ClusterArrive => "barrier of the cluster: arrive".to_owned(),
        Operation::ClusterWait => "barrier of the cluster: wait".to_owned(),
        Operation::BarrierInit { access, count } => format!("mbarrier {}: init with {count} arrivals", of(access)),
        Operation::BarrierArrive { access, expect: 0 } => format!("mbarrier {}: arrive", of(access)),
        Operation::BarrierArrive { access, expect } => {
            format!("mbarrier {}: arrive, and expect {expect} bytes", of(access))
        }
        Operation::BarrierWait { access } => format!("mbarrier {}: wait for the phase", of(access)),
        Operation::RemoteArrive { access, .. } => format!("mbarrier {} of another block: arrive", of(access)),
        Operation::CommitBulk => "commit the TMA stores since the last commit as a group".to_owned(),
        Operation::WaitBulk { groups, .. } => format!("wait until at most {groups} groups of TMA stores are in flight"),
        Operation::Fence(fence) => match fence {
            Fence::Block => "fence: this thread's accesses, for the block",
            Fence::Device => "fence: this thread's accesses, for the device",
            Fence::AsyncShared => "fence.proxy.async: shared memory, for TMA and wgmma that follow",
            Fence::AsyncGlobal => "fence.proxy.async: global memory, for TMA that follows",
            Fence::BarrierInit => "fence: the init of mbarriers, for the cluster and TMA",
        }
        .to_owned(),
        Operation::SetRegisters { count, .. } => format!("setmaxnreg: {count} registers a thread"),
        Operation::Claim => "claim the next tile from the atomic tile counter".to_owned(),
        Operation::CountBlock => "count this block".to_owned(),
        Operation::AwaitTurn { access } => format!("wait for the turn that {} counts", of(access)),
        Operation::PassTurn { access } => format!("end the turn that {} counts", of(access)),
        Operation::WaitLaunches => "wait for the launches before this one".to_owned(),
        Operation::LaunchNext => "let the next launch begin".to_owned(),
        Operation::Trap => "trap".to_owned(),
        _ => return None,
    })
}

/// An atomic operation.
pub fn atomic(operation: AtomicOperation) -> String {
    apart(&format!("{operation:?}"))
}

/// The text of an index of a thread or block.
fn place(special: &Special) -> String {
    match special {
        Special::Thread => "thread".to_owned(),
        Special::Block(axis) => format!("block.{axis}"),
        Special::Blocks(axis) => format!("grid.{axis}"),
        Special::Lane => "lane".to_owned(),
        Special::ClusterRank => "rank in the cluster".to_owned(),
    }
}

fn lower(number: &Number) -> String {
    format!("{number:?}").to_lowercase()
}

fn format_name(format: &Format) -> String {
    match format {
        Format::Number(number) => lower(number),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// A name in lower case, split into words: `MaximumNan` is `maximum nan`.
fn apart(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn sign(binary: &Binary) -> Option<&'static str> {
    Some(match binary {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply | Binary::MultiplyWide => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        _ => return None,
    })
}

fn compared(comparison: &Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}
