//! Decodes statements of the asynchronous engines into operations.

use super::{ArriveMode, Asked, AsyncOp, Ends, ReduceKind, Reduces};
use crate::check::checker::{Order, Scope};
use crate::engine::code::{Reference, Source, Truth, Window};
use crate::engine::decode::Decoder;
use crate::isa::mma::sparse::Sparsity;
use crate::isa::tensor_core::{Factor, SumType};
use crate::isa::tensor_map::MapField;
use crate::isa::wgmma::{GroupOperands, GroupProduct};
use crate::ptx::{Operand, Scalar};

pub(super) type Read<T> = Result<T, String>;

/// Decodes a statement: its opcode, its modifiers, and its operands. None if it is not a statement
/// of the asynchronous engines.
pub(in crate::engine) fn decode<'a>(
    decoder: &mut Decoder<'_, 'a>,
    opcode: &str,
    modifiers: &[&str],
    operands: &[Operand<'a>],
) -> Option<Read<AsyncOp>> {
    let mut reader = Reader { decoder, modifiers, operands };
    let first = modifiers.first().copied().unwrap_or_default();
    Some(match (opcode, first) {
        ("mbarrier", _) => reader.barrier(first),
        ("wgmma", _) => reader.product(first),
        ("wmma", _) => reader.fragment(first),
        ("st" | "red", "async") => reader.store_remote(opcode == "red"),
        ("cp", "async") if reader.has("mbarrier") => reader.copies_arrive(),
        ("cp", "async") if reader.has("bulk") => reader.bulk(false),
        ("cp", "reduce") => reader.bulk(true),
        ("tensormap", "replace") => reader.replace_map(),
        ("tensormap", "cp_fenceproxy") => reader.publish_map(),
        _ => return None,
    })
}

pub(super) struct Reader<'r, 'm, 'a> {
    pub(super) decoder: &'r mut Decoder<'m, 'a>,
    pub(super) modifiers: &'r [&'r str],
    pub(super) operands: &'r [Operand<'a>],
}

impl<'a> Reader<'_, '_, 'a> {
    fn has(&self, word: &str) -> bool {
        self.modifiers.contains(&word)
    }

    /// The window of an mbarrier's address.
    fn window(&self) -> Window {
        if self.has("shared::cluster") {
            Window::SharedCluster
        } else if self.has("shared") || self.has("shared::cta") {
            Window::Shared
        } else {
            Window::Generic
        }
    }

    fn operand(&self, at: usize) -> Read<&Operand<'a>> {
        self.operands.get(at).ok_or_else(|| format!("operand {} is missing", at + 1))
    }

    pub(super) fn source(&mut self, at: usize, kind: Scalar) -> Read<Source> {
        let operand = self.operand(at)?.clone();
        self.decoder.source(&operand, kind)
    }

    pub(super) fn reference(&mut self, at: usize, window: Window, bytes: u64) -> Read<Reference> {
        let operand = self.operand(at)?.clone();
        self.decoder.reference(&operand, window, bytes, 1, &[], Order::Weak)
    }

    fn barrier(&mut self, what: &str) -> Read<AsyncOp> {
        let window = self.window();
        let count = self.operands.len();
        let releases = !self.has("relaxed");
        Ok(match what {
            "init" => AsyncOp::Init { at: self.reference(0, window, 8)?, count: self.source(1, Scalar::U(32))? },
            "inval" => AsyncOp::Invalidate(self.reference(0, window, 8)?),
            "arrive" | "arrive_drop" => {
                // An arrival at an mbarrier of another block returns no state token.
                let has_state = !matches!(self.operand(0)?, Operand::Address(..));
                let d = match self.operand(0)? {
                    Operand::Sink => None,
                    Operand::Address(..) => None,
                    register => {
                        let register = register.clone();
                        Some(self.decoder.target(&register)?)
                    }
                };
                let at = self.reference(usize::from(has_state), window, 8)?;
                let next = usize::from(has_state) + 1;
                let value = if next < count { Some(self.source(next, Scalar::U(32))?) } else { None };
                let expects = self.has("expect_tx");
                let (count, bytes) = if expects { (None, value) } else { (value, None) };
                if expects && bytes.is_none() {
                    return Err("the bytes are missing".to_string());
                }
                let mode = ArriveMode { drops: what == "arrive_drop", releases };
                AsyncOp::Arrive { at, d, count, bytes, mode }
            }
            "expect_tx" => AsyncOp::Expect(self.reference(0, window, 8)?, self.source(1, Scalar::U(32))?),
            "complete_tx" => AsyncOp::Complete(self.reference(0, window, 8)?, self.source(1, Scalar::U(32))?),
            "test_wait" | "try_wait" => {
                let operand = self.operand(0)?.clone();
                let p = self.decoder.predicate(&operand)?;
                let at = self.reference(1, window, 8)?;
                let asked = if self.has("parity") {
                    Asked::Parity(self.source(2, Scalar::U(32))?)
                } else {
                    Asked::State(self.source(2, Scalar::B(64))?)
                };
                AsyncOp::Test { p, at, asked, acquires: releases }
            }
            "pending_count" => {
                let operand = self.operand(0)?.clone();
                AsyncOp::Pending(self.decoder.target(&operand)?, self.source(1, Scalar::B(64))?)
            }
            _ => return Err("this operation on a barrier is not known".to_string()),
        })
    }

    fn copies_arrive(&mut self) -> Read<AsyncOp> {
        let window = self.window();
        Ok(AsyncOp::CopiesArrive(self.reference(0, window, 8)?, !self.has("noinc")))
    }

    fn reduces(&self) -> Read<Reduces> {
        for word in self.modifiers {
            return Ok(match *word {
                "add" => Reduces::Add,
                "min" => Reduces::Min,
                "max" => Reduces::Max,
                "inc" => Reduces::Inc,
                "dec" => Reduces::Dec,
                "and" => Reduces::And,
                "or" => Reduces::Or,
                "xor" => Reduces::Xor,
                _ => continue,
            });
        }
        Err("what it reduces by is missing".to_string())
    }

    fn reduce_kind(&self) -> Read<ReduceKind> {
        let kind = self.modifiers.iter().filter_map(|word| Scalar::read(word)).next_back();
        let kind = kind.filter(|kind| matches!(kind.bits(), 16 | 32 | 64)).ok_or("the type is missing")?;
        Ok(ReduceKind { what: self.reduces()?, kind })
    }

    fn bulk(&mut self, reduces: bool) -> Read<AsyncOp> {
        if self.has("commit_group") {
            return Ok(AsyncOp::BulkCommit);
        }
        if self.has("wait_group") {
            let pending = match self.operand(0)? {
                Operand::Integer(count) => *count as u32,
                _ => return Err("a number of groups is expected".to_string()),
            };
            return Ok(AsyncOp::BulkWait { pending, reads: self.has("read") });
        }
        if self.has("prefetch") {
            return Ok(AsyncOp::Nothing);
        }
        if self.has("tensor") {
            return self.tensor(reduces);
        }
        if self.has("cp_mask") {
            return Err("a mask of bytes is not supported".to_string());
        }
        // The first state space is that of the destination, and the second that of the source.
        let mut spaces = self.modifiers.iter().filter_map(|word| match *word {
            "global" => Some(Window::Global),
            "shared::cta" => Some(Window::Shared),
            "shared::cluster" => Some(Window::SharedCluster),
            _ => None,
        });
        let (Some(target), Some(source)) = (spaces.next(), spaces.next()) else {
            return Err("two state spaces are expected".to_string());
        };
        let kind = if reduces { Some(self.reduce_kind()?) } else { None };
        let to = self.reference(0, target, 1)?;
        let from = self.reference(1, source, 1)?;
        let size = self.source(2, Scalar::U(32))?;
        let (ends, mask) = if self.has("bulk_group") {
            (Ends::Group, None)
        } else {
            let mask = if self.has("multicast::cluster") { Some(self.source(4, Scalar::U(16))?) } else { None };
            (Ends::Barrier(self.reference(3, Window::SharedCluster, 8)?), mask)
        };
        Ok(AsyncOp::Bulk { to, from, size, ends, mask, reduces: kind })
    }

    /// The map and the coordinates of an operand `[map, {..}]`.
    fn place(&mut self, at: usize) -> Read<(Reference, Box<[Source]>)> {
        let Operand::Tensor(all) = self.operand(at)?.clone() else {
            return Err("a tensor map and coordinates are expected".to_string());
        };
        let (base, rest) = all.split_first().ok_or("a tensor map is expected")?;
        let (base, offset) = match base {
            Operand::Address(base, offset) => ((**base).clone(), *offset),
            base => (base.clone(), 0),
        };
        let base = self.decoder.source(&base, Scalar::B(64))?;
        let map = Reference {
            window: Window::Generic,
            base,
            offset,
            bytes: 1,
            count: 1,
            order: Order::Weak,
            scope: Scope::Device,
        };
        let mut coordinates = Vec::new();
        for operand in rest {
            let list = match operand {
                Operand::Vector(list) => list.as_slice(),
                one => std::slice::from_ref(one),
            };
            for own in list {
                coordinates.push(self.decoder.source(own, Scalar::S(32))?);
            }
        }
        Ok((map, coordinates.into()))
    }

    /// Decodes `tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 0, value`.
    fn replace_map(&mut self) -> Read<AsyncOp> {
        let word = self.modifiers.get(2).copied().unwrap_or_default();
        let has_dimension = MapField::has_dimension(word);
        let dimension = match (has_dimension, self.operands.get(1)) {
            (true, Some(Operand::Integer(dimension))) => usize::try_from(*dimension).unwrap_or(usize::MAX),
            (true, _) => return Err("the number of a dimension is expected".to_string()),
            (false, _) => 0,
        };
        let field = MapField::read(word, dimension)
            .ok_or_else(|| format!("the field `{word}` of a tensor map, or its dimension, is not known"))?;
        let window = if self.has("global") { Window::Global } else { self.window() };
        let at = self.reference(0, window, 1)?;
        let kind = if self.has("b64") { Scalar::B(64) } else { Scalar::B(32) };
        let value = self.source(if has_dimension { 2 } else { 1 }, kind)?;
        Ok(AsyncOp::ReplaceMap { at, field, value })
    }

    fn publish_map(&mut self) -> Read<AsyncOp> {
        match self.operand(2)? {
            Operand::Integer(128) => {}
            _ => return Err("a tensor map has 128 bytes".to_string()),
        }
        let scope = match () {
            () if self.has("cta") => Scope::Block,
            () if self.has("cluster") => Scope::Cluster,
            () if self.has("sys") => Scope::System,
            () => Scope::Device,
        };
        let to = Reference { scope, ..self.reference(0, Window::Global, 1)? };
        Ok(AsyncOp::PublishMap(to, self.reference(1, Window::Shared, 1)?))
    }

    fn tensor(&mut self, reduces: bool) -> Read<AsyncOp> {
        let is_im2col = self.modifiers.iter().any(|word| word.starts_with("im2col"));
        if let Some(mode) =
            self.modifiers.iter().find(|word| word.starts_with("im2col::") || word.starts_with("tile::"))
        {
            return Err(format!("the mode `{mode}` of a tensor map is of targets from sm_100 on"));
        }
        let ranks = self.modifiers.iter().find_map(|word| word.strip_suffix('d')?.parse::<usize>().ok());
        if !reduces
            && self.modifiers.iter().position(|word| *word == "global")
                > self.modifiers.iter().position(|word| word.starts_with("shared"))
        {
            let (map, coordinates) = self.place(1)?;
            if ranks != Some(coordinates.len()) {
                return Err(format!("{} coordinates are given", coordinates.len()));
            }
            let to = self.reference(0, Window::SharedCluster, 1)?;
            let barrier = self.reference(2, Window::SharedCluster, 8)?;
            let mut next = 3;
            let mut offsets = Vec::new();
            if is_im2col && let Some(Operand::Vector(list)) = self.operands.get(next) {
                for own in list.clone() {
                    offsets.push(self.decoder.source(&own, Scalar::U(16))?);
                }
                next += 1;
            }
            let mask = if self.has("multicast::cluster") { Some(self.source(next, Scalar::U(16))?) } else { None };
            return Ok(AsyncOp::BoxLoad { to, map, coordinates, offsets: offsets.into(), barrier, mask, is_im2col });
        }
        let (map, coordinates) = self.place(0)?;
        if ranks != Some(coordinates.len()) {
            return Err(format!("{} coordinates are given", coordinates.len()));
        }
        let from = self.reference(1, Window::Shared, 1)?;
        let reduces = if reduces { Some(self.reduces()?) } else { None };
        Ok(AsyncOp::BoxStore { map, coordinates, from, reduces, is_im2col })
    }

    fn store_remote(&mut self, reduces: bool) -> Read<AsyncOp> {
        let kind = self.modifiers.iter().filter_map(|word| Scalar::read(word)).next_back();
        let kind = kind.filter(|kind| matches!(kind.bits(), 32 | 64)).ok_or("the type is missing")?;
        let to = self.reference(0, Window::SharedCluster, kind.bits() as u64 / 8)?;
        let value = self.operand(1)?.clone();
        let from = self.decoder.sources(&value, kind)?;
        if from.len() as u32 * kind.bits() > 128 {
            return Err("more than 16 bytes are stored".to_string());
        }
        let barrier = self.reference(2, Window::SharedCluster, 8)?;
        let reduces = if reduces { Some(self.reduce_kind()?) } else { None };
        Ok(AsyncOp::StoreRemote { to, from: from.into(), barrier, reduces })
    }

    fn product(&mut self, what: &str) -> Read<AsyncOp> {
        match what {
            "fence" => return Ok(AsyncOp::ProductFence),
            "commit_group" => return Ok(AsyncOp::ProductCommit),
            "wait_group" => {
                return match self.operand(0)? {
                    Operand::Integer(count) => Ok(AsyncOp::ProductWait(*count as u32)),
                    _ => Err("a number of groups is expected".to_string()),
                };
            }
            "mma_async" => {}
            _ => return Err("this operation of a warpgroup is not known".to_string()),
        }
        let shape = self.modifiers.iter().find_map(|word| {
            let (n, k) = word.strip_prefix("m64n")?.split_once('k')?;
            Some((n.parse::<usize>().ok()?, k.parse::<usize>().ok()?))
        });
        let (n, k) = shape.ok_or("the shape is missing")?;
        let words: Vec<&str> =
            self.modifiers.iter().skip_while(|word| !word.starts_with("m64n")).skip(1).copied().collect();
        let words: Vec<&str> = words.into_iter().filter(|word| *word != "satfinite").collect();
        let (Some(sum), Some(a), Some(b)) = (words.first(), words.get(1), words.get(2)) else {
            return Err("the types are missing".to_string());
        };
        let operands = match (factor(a), factor(b)) {
            (Some(a), Some(b)) => GroupOperands::Floats(a, b),
            _ => match (*a, *b) {
                ("b1", "b1") => GroupOperands::AndPopc,
                ("s8" | "u8", "s8" | "u8") => GroupOperands::Integers { a_signed: *a == "s8", b_signed: *b == "s8" },
                _ => return Err("these types are not known".to_string()),
            },
        };
        let sums = if *sum == "f16" { SumType::F16 } else { SumType::F32 };
        let is_sparse = self.has("sp");
        let wgmma = GroupProduct::new(n, operands, sums, self.has("satfinite"));
        let wgmma = if is_sparse { wgmma.and_then(GroupProduct::sparse) } else { wgmma };
        let wgmma = wgmma.filter(|own| own.k() == k).ok_or("there is no product of this shape and these types")?;
        let result = self.operand(0)?.clone();
        let d = self.decoder.targets(&result)?;
        if d.len() != wgmma.registers() {
            return Err(format!("{} registers are expected, not {}", wgmma.registers(), d.len()));
        }
        let first = self.operand(1)?.clone();
        let a = match &first {
            Operand::Vector(all) if all.len() == 4 => Ok(self.decoder.sources(&first, Scalar::B(32))?.into()),
            Operand::Vector(all) => return Err(format!("4 registers are expected, not {}", all.len())),
            _ => Err(self.source(1, Scalar::B(64))?),
        };
        let b = self.source(2, Scalar::B(64))?;
        // For a sparse A, the metadata and their selector come before the remaining operands.
        let behind = if is_sparse { 5 } else { 3 };
        let sparsity = match (is_sparse, self.operands.get(4)) {
            (true, Some(Operand::Integer(selector))) => {
                // Every A has four registers for each lane, whether it is in registers or in shared
                // memory.
                let sparsity = Sparsity::new(operands.bits(), 4, *selector, false)?;
                Some((self.source(3, Scalar::B(32))?, sparsity))
            }
            (true, _) => return Err("metadata and a constant selector are expected behind B".to_string()),
            (false, _) => None,
        };
        let adds = match self.operands.get(behind) {
            Some(operand) => {
                let operand = operand.clone();
                self.decoder.truth(&operand)?
            }
            None => Truth::Constant(true),
        };
        let number = |at: usize| -> Read<i64> {
            match self.operands.get(at) {
                Some(Operand::Integer(value)) => Ok(*value as i64),
                None => Ok(1),
                Some(_) => Err("a constant is expected".to_string()),
            }
        };
        let mut wgmma = wgmma;
        if matches!(operands, GroupOperands::Floats(..)) {
            wgmma = wgmma.negated([number(behind + 1)? < 0, number(behind + 2)? < 0]);
            if operands.bits() == 16 && self.operands.len() > behind + 3 {
                // A in registers has no major mode.
                let across = match a.is_ok() {
                    true => [false, number(behind + 3)? == 1],
                    false => [number(behind + 3)? == 1, number(behind + 4)? == 1],
                };
                wgmma = wgmma.across(across);
            }
        }
        Ok(AsyncOp::Product { wgmma, d: d.into(), a, b, sparsity, adds })
    }
}

fn factor(word: &str) -> Option<Factor> {
    Some(match word {
        "f16" => Factor::F16,
        "bf16" => Factor::Bf16,
        "tf32" => Factor::Tf32,
        "e4m3" => Factor::E4m3,
        "e5m2" => Factor::E5m2,
        _ => return None,
    })
}
