//! Drivers and devices that are available, or not.

use tilewright_kernel::machine::{Machine, Rates};
use tilewright_kernel::ptx::Target;

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
    // Any missing function is named.
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
    // An error number for which the driver has no name.
    assert!(refusal(|books| books.init = 777).to_string().ends_with("the driver said error 777 (777)"));
}

/// A device is identified as a card of the table if the driver reports the same number of
/// multiprocessors; otherwise its data is what the driver reports.
#[test]
fn a_device_is_a_machine() {
    let card = Machine::named("H200").unwrap();
    let of = card.multiprocessor;
    let numbers = [card.multiprocessors, of.threads, of.shared_bytes, of.registers, of.blocks, of.reserved_bytes];
    let given: Vec<(i32, i32)> = [16, 39, 81, 82, 106, 111].into_iter().zip(numbers.map(|own| own as i32)).collect();
    let machine = |changed: &[(i32, i32)]| {
        let driver = driver_with(|books| books.attributes.extend(given.iter().chain(changed).copied())).unwrap();
        Device::of(driver, 0).unwrap().machine()
    };
    assert_eq!(machine(&[]).unwrap(), card);
    // A part of the card, at 2 GHz with 512 bits of memory at 3 GHz.
    let part = machine(&[(13, 2_000_000), (16, 16), (36, 3_000_000), (37, 512), (38, 1 << 20)]).unwrap();
    assert_eq!((part.name.as_str(), part.multiprocessors, part.l2_bytes), ("Fake H200", 16, 1 << 20));
    assert_eq!((part.multiprocessor, part.target, part.latency), (of, Target::Sm90a, None));
    assert_eq!((part.clock, part.bandwidth), (2e9, 2.0 * 3e9 * 512.0 / 8.0));
    assert_eq!(part.rates, Rates::of((9, 0), 16, 2e9));
    // Another capability means another card; one below all targets is refused.
    assert_eq!(machine(&[(75, 10)]).unwrap().target, Target::Sm100);
    assert_eq!(machine(&[(75, 7), (76, 5)]).unwrap_err().code(), "E0804");
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

/// On any machine, opening returns a device, or an error that says what is missing.
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
