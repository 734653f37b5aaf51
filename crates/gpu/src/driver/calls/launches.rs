//! Launches, and the properties of kernels.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use smallvec::SmallVec;

use super::{Driver, EntryPoint, Refused};
use crate::driver::table::{LaunchAttribute, LaunchConfig, StreamHandle, TensorMapBytes};

/// An argument of a launch.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// The first bytes of an array, as many as the number says.
    Bytes([u8; 8], usize),
    Map(&'a TensorMapBytes),
}

/// The threads of a launch: grid, block and cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchSizes {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) shared_bytes: u32,
    /// Whether the launch may begin before the previous kernel has ended.
    pub(crate) overlaps: bool,
    /// Whether all blocks must be resident at once.
    pub(crate) cooperative: bool,
}

/// The parameters of `cuTensorMapEncodeTiled`; see [`crate::tensor_map`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TiledMap {
    pub(crate) element: c_int,
    pub(crate) address: u64,
    pub(crate) extents: SmallVec<[u64; 5]>,
    /// The strides of all dimensions but the first.
    pub(crate) strides: SmallVec<[u64; 5]>,
    pub(crate) boxed: SmallVec<[c_uint; 5]>,
    pub(crate) swizzle: c_int,
    pub(crate) promotion: c_int,
    pub(crate) fill: c_int,
}

/// Numbers of `CUlaunchAttributeID`.
mod attribute {
    pub(super) const COOPERATIVE: u32 = 2;
    pub(super) const CLUSTER: u32 = 4;
    pub(super) const OVERLAPS: u32 = 6;
}

impl Driver {
    pub(crate) fn function_attribute(&self, entry: &EntryPoint, attribute: i32) -> Result<i32, Refused> {
        let mut value = 0;
        call!(self, function_attribute(&raw mut value, attribute, entry.handle))?;
        Ok(value)
    }

    pub(crate) fn set_function_attribute(&self, entry: &EntryPoint, attribute: i32, value: i32) -> Result<(), Refused> {
        call!(self, set_function_attribute(entry.handle, attribute, value))
    }

    /// Launches a kernel. None if the values differ from its parameters in number or size.
    pub(crate) fn launch(
        &self,
        entry: &EntryPoint,
        sizes: &LaunchSizes,
        stream: StreamHandle,
        values: &[Value<'_>],
    ) -> Option<Result<(), Refused>> {
        let fits = |(value, size): (&Value<'_>, &usize)| match value {
            Value::Bytes(bytes, count) => count == size && *count <= bytes.len(),
            Value::Map(map) => size_of_val(*map) == *size,
        };
        if values.len() != entry.sizes.len() || !values.iter().zip(&entry.sizes).all(fits) {
            return None;
        }
        let mut pointers: SmallVec<[*mut c_void; 32]> = SmallVec::with_capacity(values.len());
        // The driver copies the values before the call returns, and does not write to them.
        pointers.extend(values.iter().map(|value| match value {
            Value::Bytes(bytes, _) => bytes.as_ptr().cast_mut().cast::<c_void>(),
            Value::Map(map) => (&raw const **map).cast_mut().cast::<c_void>(),
        }));
        let (attributes, count) = attributes(sizes);
        let config = config(sizes, stream, &attributes, count);
        Some(call!(self, launch(&raw const config, entry.handle, pointers.as_mut_ptr(), null_mut())))
    }

    pub(crate) fn resident_blocks(
        &self,
        entry: &EntryPoint,
        threads: i32,
        shared_bytes: usize,
    ) -> Result<i32, Refused> {
        let mut blocks = 0;
        call!(self, resident_blocks(&raw mut blocks, entry.handle, threads, shared_bytes))?;
        Ok(blocks)
    }

    pub(crate) fn resident_clusters(&self, entry: &EntryPoint, sizes: &LaunchSizes) -> Result<i32, Refused> {
        let mut clusters = 0;
        let (attributes, count) = attributes(sizes);
        let config = config(sizes, StreamHandle(0), &attributes, count);
        call!(self, resident_clusters(&raw mut clusters, entry.handle, &raw const config))?;
        Ok(clusters)
    }

    /// Encodes a tensor map. None if the lists do not have one entry for each dimension, and one
    /// stride less.
    pub(crate) fn encode_tiled(&self, map: &TiledMap) -> Option<Result<TensorMapBytes, Refused>> {
        let rank = map.extents.len();
        if rank == 0 || map.boxed.len() != rank || map.strides.len() + 1 != rank {
            return None;
        }
        let mut bytes = TensorMapBytes([0; 16]);
        // Traversal strides of 1: every element of the box.
        let steps: SmallVec<[c_uint; 5]> = SmallVec::from_elem(1, rank);
        let encoded = call!(
            self,
            encode_tiled(
                &raw mut bytes,
                map.element,
                rank as c_uint,
                map.address,
                map.extents.as_ptr(),
                map.strides.as_ptr(),
                map.boxed.as_ptr(),
                steps.as_ptr(),
                0,
                map.swizzle,
                map.promotion,
                map.fill,
            )
        );
        Some(encoded.map(|()| bytes))
    }
}

/// The attributes of a launch, and the number of valid ones.
fn attributes(sizes: &LaunchSizes) -> ([LaunchAttribute; 3], u32) {
    let mut list = [LaunchAttribute { id: 0, padding: 0, value: [0; 16] }; 3];
    let mut count = 0;
    let mut set = |id: u32, values: &[u32]| {
        let Some(place) = list.get_mut(count) else { return };
        place.id = id;
        place.value.iter_mut().zip(values).for_each(|(place, value)| *place = *value);
        count += 1;
    };
    if let Some(cluster) = sizes.cluster {
        set(attribute::CLUSTER, &cluster);
    }
    if sizes.overlaps {
        set(attribute::OVERLAPS, &[1]);
    }
    if sizes.cooperative {
        set(attribute::COOPERATIVE, &[1]);
    }
    (list, count as u32)
}

fn config(sizes: &LaunchSizes, stream: StreamHandle, attributes: &[LaunchAttribute; 3], count: u32) -> LaunchConfig {
    LaunchConfig {
        grid: sizes.grid,
        block: sizes.block,
        shared_bytes: sizes.shared_bytes,
        stream,
        attributes: attributes.as_ptr(),
        attribute_count: count,
    }
}
