//! The limits of meshes.

/// The most axes of a mesh.
pub const MAX_AXES: usize = 16;

/// The most devices of a mesh.
pub const MAX_DEVICES: i64 = 65_536;
