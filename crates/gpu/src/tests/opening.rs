//! Drivers and devices that are there, or are not.

use super::fake::{books, driver, driver_with};
use crate::device::Device;
use crate::driver::{MINIMUM_VERSION, SYMBOLS};
use crate::error::GpuError;

fn refusal(change: impl FnOnce(&mut super::fake::Books)) -> GpuError {
    driver_with(change).err().expect("a refusal")
}

#[test]
fn drivers_that_will_not_do() {
    let old = refusal(|books| books.version = MINIMUM_VERSION - 10);
    assert_eq!(
        (old.code(), old.to_string().as_str()),
        ("E0802", "the driver is that of CUDA 12.3, but 12.4 is needed")
    );
    assert!(driver_with(|books| books.version = MINIMUM_VERSION).is_ok());
    // Whichever function is missing is named.
    for symbol in SYMBOLS.iter().chain(&["cuDriverGetVersion"]) {
        let missing = refusal(|books| books.missing = Some(symbol));
        assert_eq!(missing.code(), "E0802");
        assert!(missing.to_string().ends_with(symbol), "{missing}");
    }
    assert_eq!(refusal(|books| books.init = 100).code(), "E0803");
    assert_eq!(refusal(|books| books.init = 34).code(), "E0801");
    let other = refusal(|books| books.init = 803);
    let said = "cuInit was refused: the driver said CUDA_ERROR_OF_A_TEST (803), as the test wants";
    assert_eq!((other.code(), other.to_string().as_str()), ("E0819", said));
    // A number that the driver itself has no name for.
    assert!(refusal(|books| books.init = 777).to_string().ends_with("the driver said error 777 (777)"));
}

#[test]
fn devices_are_counted() {
    let none = Device::of(driver_with(|books| books.devices = 0).unwrap(), 0).unwrap_err();
    assert_eq!((none.code(), none.to_string().as_str()), ("E0803", "the driver sees no device"));
    let driver = driver();
    let second = Device::of(driver.clone(), 1).unwrap_err();
    assert_eq!(second.to_string(), "there is no device 1: there is one");
    assert!(Device::of(driver.clone(), usize::MAX).is_err());
    let device = Device::of(driver, 0).unwrap();
    assert_eq!((device.name(), device.capability(), device.driver_version()), ("Fake H200", (9, 0), 13_000));
    assert_eq!((device.attributes().block_shared_bytes, device.attributes().memory_bytes), (232_448, 1 << 24));
    let copy = device.clone();
    drop(device);
    assert_eq!(books(|books| books.live.len()), 1);
    drop(copy);
    assert!(books(|books| books.live.is_empty()));
}

/// On whatever machine this runs: an error that says what is missing, or a device.
#[test]
fn this_machine_has_a_device_or_says_why_not() {
    match Device::open(0) {
        Ok(device) => assert!(Device::count().unwrap() > 0 && !device.name().is_empty()),
        Err(error) => {
            assert!(["E0801", "E0802", "E0803"].contains(&error.code()), "{error}");
            assert!(error.help().is_some());
            let again = Device::open(0).unwrap_err();
            assert_eq!(error, again);
        }
    }
}
