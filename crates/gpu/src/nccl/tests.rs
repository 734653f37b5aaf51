//! A fake NCCL library, which records the arguments of its calls, over the fake driver.
//!
//! Reason for unsafe code: C functions, which receive pointers.
#![allow(unsafe_code, non_snake_case)]

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use super::library::{Comm, Library, PIECE, UniqueId};
use super::{Nccl, NcclError, NcclId, NcclProcess, Transfer};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::tests::fake::driver_with;

#[derive(Default)]
struct Books {
    version: c_int,
    missing: Option<&'static str>,
    /// The call that fails, and its status.
    fail: Option<(&'static str, c_int)>,
    asynchronous: c_int,
    calls: Vec<String>,
}

thread_local! {
    static BOOKS: RefCell<Books> = RefCell::default();
}

/// Records a call and returns its status. The name of the call is the text up to the first blank.
fn call(text: String) -> c_int {
    BOOKS.with_borrow_mut(|books| {
        let fail = books.fail.filter(|(name, _)| text.split(' ').next() == Some(name));
        books.calls.push(text);
        fail.map_or(0, |(_, status)| status)
    })
}

fn calls() -> Vec<String> {
    BOOKS.with_borrow_mut(|books| std::mem::take(&mut books.calls))
}

unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller passes a pointer to a variable.
    unsafe { *version = BOOKS.with_borrow(|books| books.version) };
    0
}

unsafe extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> c_int {
    // SAFETY: the caller passes a pointer to a variable.
    unsafe { (*id).0[127] = 7 };
    call("id".to_owned())
}

unsafe extern "C" fn ncclCommInitRank(comm: *mut Comm, ranks: c_int, id: UniqueId, rank: c_int) -> c_int {
    // SAFETY: the caller passes a pointer to a variable.
    unsafe { *comm = std::ptr::without_provenance_mut(0x500) };
    call(format!("join {rank} of {ranks} by {}", id.0[127]))
}

unsafe extern "C" fn ncclCommInitAll(comms: *mut Comm, count: c_int, devices: *const c_int) -> c_int {
    for at in 0..count as usize {
        // SAFETY: the caller passes pointers to as many variables as devices.
        unsafe { *comms.add(at) = std::ptr::without_provenance_mut(0x600 + *devices.add(at) as usize) };
    }
    call(format!("all {count}"))
}

unsafe extern "C" fn ncclCommDestroy(comm: Comm) -> c_int {
    call(format!("destroy {:#x}", comm.addr()))
}

unsafe extern "C" fn ncclCommAbort(comm: Comm) -> c_int {
    call(format!("abort {:#x}", comm.addr()))
}

unsafe extern "C" fn ncclCommGetAsyncError(_: Comm, status: *mut c_int) -> c_int {
    // SAFETY: the caller passes a pointer to a variable.
    unsafe { *status = BOOKS.with_borrow(|books| books.asynchronous) };
    0
}

unsafe extern "C" fn ncclGroupStart() -> c_int {
    call("start".to_owned())
}

unsafe extern "C" fn ncclGroupEnd() -> c_int {
    call("end".to_owned())
}

unsafe extern "C" fn ncclSend(
    at: *const c_void,
    count: usize,
    kind: c_int,
    to: c_int,
    comm: Comm,
    _: StreamHandle,
) -> c_int {
    assert_eq!(kind, 1);
    call(format!("send {:#x} {count} to {to} by {:#x}", at.addr(), comm.addr()))
}

unsafe extern "C" fn ncclRecv(
    at: *mut c_void,
    count: usize,
    kind: c_int,
    from: c_int,
    comm: Comm,
    _: StreamHandle,
) -> c_int {
    assert_eq!(kind, 1);
    call(format!("receive {:#x} {count} from {from} by {:#x}", at.addr(), comm.addr()))
}

unsafe extern "C" fn ncclGetErrorString(status: c_int) -> *const c_char {
    if status == 6 { c"remote process exited".as_ptr() } else { std::ptr::null() }
}

fn find(symbol: &'static str) -> Option<NonNull<c_void>> {
    if BOOKS.with_borrow(|books| books.missing == Some(symbol)) {
        return None;
    }
    let function = match symbol {
        "ncclGetVersion" => ncclGetVersion as *mut c_void,
        "ncclGetUniqueId" => ncclGetUniqueId as *mut c_void,
        "ncclCommInitRank" => ncclCommInitRank as *mut c_void,
        "ncclCommInitAll" => ncclCommInitAll as *mut c_void,
        "ncclCommDestroy" => ncclCommDestroy as *mut c_void,
        "ncclCommAbort" => ncclCommAbort as *mut c_void,
        "ncclCommGetAsyncError" => ncclCommGetAsyncError as *mut c_void,
        "ncclGroupStart" => ncclGroupStart as *mut c_void,
        "ncclGroupEnd" => ncclGroupEnd as *mut c_void,
        "ncclSend" => ncclSend as *mut c_void,
        "ncclRecv" => ncclRecv as *mut c_void,
        "ncclGetErrorString" => ncclGetErrorString as *mut c_void,
        _ => return None,
    };
    NonNull::new(function)
}

fn library_with(change: impl FnOnce(&mut Books)) -> Result<Library, NcclError> {
    BOOKS.with_borrow_mut(|books| {
        *books = Books { version: 22_703, ..Books::default() };
        change(books);
    });
    // SAFETY: the functions above have the parameters of the header.
    unsafe { Library::start(find) }
}

fn library() -> Library {
    library_with(|_| {}).unwrap()
}

fn devices(count: i32) -> Vec<Device> {
    let driver = driver_with(|books| books.devices = count).unwrap();
    (0..count as usize).map(|ordinal| Device::of(driver.clone(), ordinal).unwrap()).collect()
}

#[test]
fn versions_without_sends_are_refused() {
    for (version, said) in [(2_604, Some("2.6.4")), (0, Some("0.0.0")), (2_700, None), (2_804, None), (20_906, None)] {
        match (library_with(|books| books.version = version), said) {
            (Ok(_), None) => {}
            (Err(error), Some(said)) => {
                assert_eq!(error.to_string(), format!("NCCL is {said}, and 2.7.0 or later is needed"));
            }
            (done, _) => panic!("{version}: {:?}", done.err()),
        }
    }
    assert_eq!(library().version(), "2.27.3");
    assert_eq!(library_with(|books| books.version = 2_804).unwrap().version(), "2.8.4");
}

#[test]
fn a_library_that_lacks_a_function_is_refused() {
    for symbol in ["ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommAbort", "ncclSend", "ncclRecv"] {
        let error = library_with(|books| books.missing = Some(symbol)).err().unwrap();
        assert_eq!(error.to_string(), format!("NCCL cannot be opened: it lacks {symbol}"));
        assert!(calls().is_empty());
    }
}

#[test]
fn a_process_sends_and_receives_what_begins_or_ends_in_it() {
    let (library, device) = (library(), devices(1).remove(0));
    let id = NcclId::by(&library).unwrap();
    assert_eq!(NcclId::of_bytes(id.bytes()), id);
    let mut process = NcclProcess::by(library, &device, &id, 1, 3).unwrap();
    assert_eq!((process.rank(), process.ranks(), process.version().as_str()), (1, 3, "2.27.3"));
    assert_eq!(calls(), ["id", "join 1 of 3 by 7"]);
    let stream = device.stream().unwrap();
    let (from, mut to) = (device.allocate(64).unwrap(), device.allocate(32).unwrap());
    let transfer = |from, to, read, write, bytes| Transfer { from, to, read, write, bytes };
    // The last two are on another device, and without a device.
    let all = [
        transfer(1, 0, 16, 999, 48),
        transfer(2, 1, 999, 8, 24),
        transfer(1, 2, 0, 0, 4),
        transfer(0, 2, 999, 999, 999),
        transfer(1, 0, 64, 0, 0),
    ];
    process.transfer(&stream, &from, &mut to, &all).unwrap();
    let (read, write) = (from.address(), to.address());
    let sends = [format!("send {:#x} 48 to 0 by 0x500", read + 16), format!("send {read:#x} 4 to 2 by 0x500")];
    let receives = format!("receive {:#x} 24 from 2 by 0x500", write + 8);
    assert_eq!(calls(), ["start", &sends[0], &sends[1], &receives, "end"]);
    for wrong in [
        transfer(1, 0, 17, 0, 48),
        transfer(1, 0, u64::MAX, 0, 1),
        transfer(2, 1, 0, 9, 24),
        transfer(1, 3, 0, 0, 1),
        transfer(1, 1, 0, 0, 1),
    ] {
        let error = process.transfer(&stream, &from, &mut to, &[wrong]).unwrap_err();
        assert!(error.to_string().contains("does not hold a transfer"), "{wrong:?}");
        assert!(calls().is_empty());
    }
    drop(process);
    assert_eq!(calls(), ["destroy 0x500"]);
    let error = NcclProcess::by(library, &device, &id, 3, 3).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

#[test]
fn what_is_large_goes_in_pieces() {
    let driver = driver_with(|books| books.bytes = 3 << 30).unwrap();
    let device = Device::of(driver, 0).unwrap();
    let library = library();
    let id = NcclId::of_bytes([0; 128]);
    let mut process = NcclProcess::by(library, &device, &id, 0, 2).unwrap();
    let stream = device.stream().unwrap();
    let (from, mut to) = (device.allocate(PIECE + 5).unwrap(), device.allocate(0).unwrap());
    calls();
    let large = Transfer { from: 0, to: 1, read: 0, write: 0, bytes: PIECE + 5 };
    process.transfer(&stream, &from, &mut to, &[large]).unwrap();
    let at = from.address();
    let pieces = [format!("send {at:#x} {PIECE} to 1 by 0x500"), format!("send {:#x} 5 to 1 by 0x500", at + PIECE)];
    assert_eq!(calls(), ["start", &pieces[0], &pieces[1], "end"]);
}

#[test]
fn a_group_that_was_begun_is_ended_and_a_failure_is_said() {
    let (library, device) = (library(), devices(1).remove(0));
    let mut process = NcclProcess::by(library, &device, &NcclId::of_bytes([0; 128]), 0, 2).unwrap();
    let stream = device.stream().unwrap();
    let (from, mut to) = (device.allocate(8).unwrap(), device.allocate(8).unwrap());
    calls();
    BOOKS.with_borrow_mut(|books| books.fail = Some(("send", 6)));
    let two = [Transfer { from: 0, to: 1, read: 0, write: 0, bytes: 8 }; 2];
    let error = process.transfer(&stream, &from, &mut to, &two).unwrap_err();
    assert_eq!(error.to_string(), "NCCL answered with status 6: remote process exited");
    let calls_made = calls();
    assert_eq!((calls_made.len(), calls_made.last().map(String::as_str)), (3, Some("end")), "{calls_made:?}");
    // An error on the device is reported when it is queried.
    BOOKS.with_borrow_mut(|books| *books = Books { asynchronous: 6, ..Books::default() });
    assert!(matches!(process.check().unwrap_err(), NcclError::Status(6, _)));
    BOOKS.with_borrow_mut(|books| books.asynchronous = 3);
    assert_eq!(process.check().unwrap_err().to_string(), "NCCL answered with status 3: unknown");
    process.abort();
    assert_eq!(calls(), ["abort 0x500"]);
    let error = process.transfer(&stream, &from, &mut to, &two).unwrap_err();
    assert!(error.to_string().contains("aborted") && process.check().is_err());
    drop(process);
    assert!(calls().is_empty(), "a handle is given back once");
}

#[test]
fn devices_of_one_process_are_on_both_ends() {
    let (library, devices) = (library(), devices(2));
    let nccl = Nccl::by(library, &devices).unwrap();
    let streams: Vec<_> = devices.iter().map(|device| device.stream().unwrap()).collect();
    let from: Vec<_> = devices.iter().map(|device| device.allocate(16).unwrap()).collect();
    let mut to: Vec<_> = devices.iter().map(|device| device.allocate(16).unwrap()).collect();
    calls();
    let swap = [
        Transfer { from: 0, to: 1, read: 0, write: 8, bytes: 8 },
        Transfer { from: 1, to: 0, read: 8, write: 0, bytes: 8 },
    ];
    let (streams, read): (Vec<_>, Vec<_>) = (streams.iter().collect(), from.iter().collect());
    let mut written: Vec<_> = to.iter_mut().collect();
    nccl.transfer(&streams, &read, &mut written, &swap).unwrap();
    let places = [from[0].address(), from[1].address() + 8, written[1].address() + 8, written[0].address()];
    let lines = [
        format!("send {:#x} 8 to 1 by 0x600", places[0]),
        format!("send {:#x} 8 to 0 by 0x601", places[1]),
        format!("receive {:#x} 8 from 0 by 0x601", places[2]),
        format!("receive {:#x} 8 from 1 by 0x600", places[3]),
    ];
    assert_eq!(calls(), ["start", &lines[0], &lines[1], &lines[2], &lines[3], "end"]);
    for wrong in [Transfer { to: 0, ..swap[0] }, Transfer { from: 2, ..swap[0] }, Transfer { bytes: 9, ..swap[0] }] {
        assert!(nccl.transfer(&streams, &read, &mut written, &[wrong]).is_err());
    }
    assert!(nccl.transfer(&streams[..1], &read, &mut written, &swap).is_err());
    drop(nccl);
    assert_eq!(calls(), ["destroy 0x600", "destroy 0x601"]);
}
