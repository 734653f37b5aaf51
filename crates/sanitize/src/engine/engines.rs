//! The asynchronous engines: barriers in shared memory, bulk copies, tensor maps, wgmma.
//!
//! [`decode`] makes an operation of a statement of theirs; [`Cluster::asynchronous`] executes it.

use super::cluster::{Cluster, Stop};
use super::code::FunctionCode;
use super::decode::Decoder;
use super::execute::Flow;
use super::warp::{Fragment, Warp};
use crate::ptx::Operand;

/// An operation of the asynchronous engines.
pub(crate) enum AsyncOp {}

/// What the engines of a cluster keep.
#[derive(Default)]
pub(crate) struct AsyncState {}

/// Makes an operation of a statement: its opcode, the words behind it, its operands. None where it
/// is none of the engines'.
pub(super) fn decode(
    _decoder: &mut Decoder<'_, '_>,
    _opcode: &str,
    _modifiers: &[&str],
    _operands: &[Operand<'_>],
) -> Option<Result<AsyncOp, String>> {
    None
}

impl Cluster<'_> {
    /// Executes an operation of the engines for the lanes `active`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn asynchronous(
        &mut self,
        _block: usize,
        _warp: &mut Warp,
        _fragment: &mut Fragment,
        _code: &FunctionCode,
        _at: u32,
        _active: u32,
        op: &AsyncOp,
    ) -> Result<Flow, Stop> {
        match *op {}
    }

    /// What a fragment that polls by an operation of the engines waits for.
    pub(super) fn awaited(&self, op: &AsyncOp) -> String {
        match *op {}
    }
}

/// The 128 bytes of a tensor map of an array.
pub(crate) fn tensor_map(
    _element: crate::Element,
    _shape: &[u64],
    _address: u64,
    _extents: &[u32],
    _swizzle: crate::MapSwizzle,
) -> Result<Vec<u8>, String> {
    Err("tensor maps are not supported".to_string())
}
