//! The attributes of a device.
//!
//! Law: each number is the driver's answer for the attribute whose number stands beside it.
//!
//! (CUDA driver API, `CUdevice_attribute`.)

use crate::driver::{DeviceHandle, Driver, Refused};

macro_rules! attributes {
    ($($(#[$about:meta])* $field:ident: $number:literal;)+) => {
        /// The attributes of a device, as numbers.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Attributes {
            /// The name, such as `NVIDIA H200`.
            pub name: Box<str>,
            /// Bytes of device memory.
            pub memory_bytes: u64,
            $($(#[$about])* pub $field: u32,)+
        }

        impl Attributes {
            pub(crate) fn of(driver: &Driver, device: DeviceHandle) -> Result<Attributes, Refused> {
                Ok(Attributes {
                    name: driver.device_name(device)?.into(),
                    memory_bytes: driver.device_memory(device)?,
                    // None of these is negative.
                    $($field: driver.device_attribute($number, device)?.max(0) as u32,)+
                })
            }
        }
    };
}

attributes! {
    /// The most threads of a block.
    block_threads: 1;
    /// The greatest extent of a block along x.
    block_x: 2;
    /// The greatest extent of a block along y.
    block_y: 3;
    /// The greatest extent of a block along z.
    block_z: 4;
    /// The greatest extent of a grid along x.
    grid_x: 5;
    /// The greatest extent of a grid along y.
    grid_y: 6;
    /// The greatest extent of a grid along z.
    grid_z: 7;
    /// Threads of a warp.
    warp_threads: 10;
    /// Registers of 32 bits that a block may have.
    block_registers: 12;
    /// The peak clock rate in kHz.
    clock_khz: 13;
    /// Multiprocessors.
    multiprocessors: 16;
    /// The peak clock rate of the memory in kHz.
    memory_clock_khz: 36;
    /// The width of the path to memory in bits.
    memory_bus_bits: 37;
    /// Bytes of the second-level cache.
    l2_bytes: 38;
    /// The most threads resident on a multiprocessor.
    multiprocessor_threads: 39;
    /// The major compute capability.
    capability_major: 75;
    /// The minor compute capability.
    capability_minor: 76;
    /// Bytes of shared memory of a multiprocessor.
    multiprocessor_shared_bytes: 81;
    /// Registers of 32 bits of a multiprocessor.
    multiprocessor_registers: 82;
    /// Whether cooperative launches (all blocks resident at once) are supported: 1 or 0.
    cooperative_launch: 95;
    /// The most bytes of shared memory of a block.
    block_shared_bytes: 97;
    /// The most blocks resident on a multiprocessor.
    multiprocessor_blocks: 106;
    /// Bytes of shared memory that are reserved for each block.
    reserved_shared_bytes: 111;
    /// Whether clusters are supported: 1 or 0.
    cluster_launch: 120;
    /// Whether tensor maps are supported: 1 or 0.
    tensor_maps: 127;
}

impl Attributes {
    /// The compute capability: (9, 0) for a device of `sm_90`.
    pub fn capability(&self) -> (u32, u32) {
        (self.capability_major, self.capability_minor)
    }
}
