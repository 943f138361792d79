//! The structures in `shared`, used by two processes: this one, and a second run of the same
//! executable.

use std::env;
use std::process::{Child, Command};
use std::ptr;

use crate::support::{polls, until};
use punctual_process::child::{BoundedChild, TEST_LIMIT, wait_for_fork};
use punctual_sync::shared::{
    Barrier, Flag, Latest, LayoutError, LayoutField, Ring, Semaphore, Shareable, TakeOverError, TicketLock,
    attach_at, init_at, region_align, region_size,
};
use punctual_sync::{Duration, Instant, now};

const PAGE: usize = 4096;
const PAGES: usize = 64;
const ROUNDS: u64 = 2_000;
const DESCRIPTOR: &str = "PUNCTUAL_TEST_MEMFD";

type Line = Ring<u64, 64>;

/// Memory that both processes have mapped.
struct Mapping {
    start: *mut u8,
}

impl Mapping {
    fn of(descriptor: i32) -> Self {
        let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of memory that the descriptor keeps alive; it replaces none.
        let start = unsafe { libc::mmap(ptr::null_mut(), PAGE * PAGES, read_write, shared, descriptor, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Self { start: start.cast() }
    }

    /// Creates a structure at `page`.
    fn init<T: Shareable>(&self, page: usize, init: T::Init) -> &'static T {
        // SAFETY: the mapping exists until the process ends; each structure has separate pages, in
        // both processes.
        unsafe { init_at(self.start.add(page * PAGE), PAGE * 4, init) }.unwrap()
    }

    fn attach<T: Shareable>(&self, page: usize) -> Result<&'static T, LayoutError> {
        // SAFETY: as above; a region that begins with the magic number was created by `init`.
        unsafe { attach_at(self.start.add(page * PAGE), PAGE * 4) }
    }
}

fn soon() -> Instant {
    now() + Duration::from_secs(60)
}

/// Runs the test `child` in another process.
fn start_child(descriptor: i32) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "shared_processes::child", "--nocapture"])
        .env(DESCRIPTOR, descriptor.to_string());
    command.spawn().unwrap()
}

/// Returns new memory and its descriptor, which children inherit.
fn shared_memory() -> (Mapping, i32) {
    // SAFETY: the name is a zero-terminated string.
    let descriptor = unsafe { libc::memfd_create(c"punctual-test".as_ptr(), 0) };
    assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: passes numbers only.
    assert_eq!(unsafe { libc::ftruncate(descriptor, (PAGE * PAGES) as i64) }, 0);
    (Mapping::of(descriptor), descriptor)
}

#[test]
fn two_processes() {
    let (mapping, descriptor) = shared_memory();
    let there = mapping.init::<Line>(0, ());
    let back = mapping.init::<Line>(4, ());
    let latest = mapping.init::<Latest<[u64; 4]>>(8, [0; 4]);
    let flag = mapping.init::<Flag>(12, ());
    let barrier = mapping.init::<Barrier>(16, 2);
    let sum = mapping.init::<TicketLock<u64>>(20, 0);
    let semaphore = mapping.init::<Semaphore>(24, 0);

    let mut child = start_child(descriptor);
    latest.writer().unwrap().write([17; 4]);
    flag.set();
    barrier.wait_until(soon()).expect("the other process arrives");

    let mut producer = there.producer().unwrap();
    let mut consumer = back.consumer().unwrap();
    for item in 0..ROUNDS {
        until("room", || producer.push(item).ok());
        assert_eq!(until("an answer", || consumer.pop()), item + 1);
    }
    add(sum);
    (0..ROUNDS).for_each(|_| semaphore.acquire_until(1, soon()).expect("the other process signals"));
    barrier.wait_until(soon()).expect("the other process arrives");
    assert_eq!(*until("the lock", || sum.lock_while(polls(1_000)).ok()), 2 * ROUNDS);
    assert!(child.status_within(TEST_LIMIT).unwrap().success());
    assert!(there.consumer().is_ok(), "the child returned its end");
}

/// The second process's part. Does nothing in the first process.
#[test]
fn child() {
    let Ok(descriptor) = env::var(DESCRIPTOR) else { return };
    let mapping = Mapping::of(descriptor.parse().unwrap());
    let there = mapping.attach::<Line>(0).unwrap();
    let back = mapping.attach::<Line>(4).unwrap();
    let latest = mapping.attach::<Latest<[u64; 4]>>(8).unwrap();
    let flag = mapping.attach::<Flag>(12).unwrap();
    let barrier = mapping.attach::<Barrier>(16).unwrap();
    let sum = mapping.attach::<TicketLock<u64>>(20).unwrap();
    let semaphore = mapping.attach::<Semaphore>(24).unwrap();
    let error = mapping.attach::<Ring<i64, 64>>(0).unwrap_err();
    assert_eq!(error.field, LayoutField::ElementType);

    flag.wait_until(soon()).expect("the other process sets the flag");
    let reading = latest.reader().unwrap().read();
    assert!(reading.is_new && reading.value == [17; 4]);
    barrier.wait_until(soon()).expect("the other process arrives");

    let (mut consumer, mut producer) = (there.consumer().unwrap(), back.producer().unwrap());
    for _ in 0..ROUNDS {
        let item = until("an item", || consumer.pop());
        until("room", || producer.push(item + 1).ok());
    }
    add(sum);
    (0..ROUNDS).for_each(|_| semaphore.signal(1).unwrap());
    barrier.wait_until(soon()).expect("the other process arrives");
}

fn add(sum: &TicketLock<u64>) {
    for _ in 0..ROUNDS {
        *until("the lock", || sum.lock_while(polls(1_000)).ok()) += 1;
    }
}

#[test]
fn fork_that_drops_ends_and_guards_leaves_them_to_its_parent() {
    let (mapping, _) = shared_memory();
    let (ring, lock) = (mapping.init::<Line>(0, ()), mapping.init::<TicketLock<u64>>(4, 0));
    let (semaphore, flag) = (mapping.init::<Semaphore>(8, 1), mapping.init::<Flag>(12, ()));
    let (mut producer, mut consumer) = ring.split().unwrap();
    let (unit, held) = (semaphore.hold(1).unwrap(), lock.lock_while(polls(1)).unwrap());
    // SAFETY: the child makes system calls and accesses shared memory, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_in_time = flag.wait_until(soon()).is_ok();
        drop((producer, consumer, unit, held));
        // SAFETY: passes a number only.
        unsafe { libc::_exit(i32::from(!is_in_time)) };
    }
    producer.push_slice(&[1, 2]);
    assert_eq!(consumer.pop(), Some(1));
    flag.set();
    assert_eq!(wait_for_fork(child, TEST_LIMIT).unwrap(), 0);
    assert_eq!((ring.len(), semaphore.free()), (1, 0));
    assert!(lock.try_lock().is_none(), "this process holds it");
    drop((producer, consumer, unit, held));
    assert_eq!((ring.split().is_ok(), semaphore.free(), lock.try_lock().is_some()), (true, 1, true));
}

/// Aligned memory for one process.
#[repr(C, align(4096))]
struct Memory([u8; PAGE * 4]);

fn memory() -> Box<Memory> {
    Box::new(Memory([0; PAGE * 4]))
}

/// Attaches to the structure in `memory`, which has no other user.
fn attach<T: Shareable>(memory: &mut Memory, len: usize) -> Result<(), LayoutError> {
    // SAFETY: the memory is borrowed for longer than the reference exists, and begins with the
    // magic number only if `init_at` put it there.
    unsafe { attach_at::<T>(memory.0.as_mut_ptr(), len) }.map(|_| ())
}

#[test]
fn rejects_mismatched_layouts() {
    let mut memory = memory();
    let found = attach::<Ring<u32, 8>>(&mut memory, PAGE * 4).unwrap_err();
    assert_eq!((found.field, found.found), (LayoutField::Magic, 0));
    assert!(found.to_string().contains("expected magic 0x54434e50, found 0x0"), "{found}");

    // SAFETY: only this test uses the memory.
    unsafe { init_at::<Ring<u32, 8>>(memory.0.as_mut_ptr(), PAGE * 4, ()) }.unwrap();
    assert_eq!(attach::<Ring<u32, 8>>(&mut memory, PAGE * 4), Ok(()));

    let expect = |result: Result<(), LayoutError>, field, text: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert_eq!(error.to_string(), text);
    };
    // Both occupy the same space.
    assert_eq!(size_of::<Ring<u32, 16>>(), size_of::<Ring<u32, 8>>());
    expect(
        attach::<Ring<u32, 16>>(&mut memory, PAGE * 4),
        LayoutField::Capacity,
        "capacity: expected 16, found 8",
    );
    expect(
        attach::<Ring<u64, 8>>(&mut memory, PAGE * 4),
        LayoutField::ElementSize,
        "size of an element: expected 8 bytes, found 4",
    );
    expect(
        attach::<Ring<[u16; 2], 8>>(&mut memory, PAGE * 4),
        LayoutField::ElementAlign,
        "alignment of an element: expected 2 bytes, found 4",
    );
    let other_type = attach::<Ring<f32, 8>>(&mut memory, PAGE * 4).unwrap_err();
    assert_eq!(other_type.field, LayoutField::ElementType);
    expect(attach::<Flag>(&mut memory, PAGE * 4), LayoutField::Kind, "structure: expected kind 3, found 1");
    // The version is the second word.
    memory.0[4] = 9;
    expect(
        attach::<Ring<u32, 8>>(&mut memory, PAGE * 4),
        LayoutField::Version,
        "version: expected 3, found 9",
    );
}

#[test]
fn region_is_aligned_and_large_enough() {
    let mut memory = memory();
    let short = region_size::<Flag>() - 1;
    let error = attach::<Flag>(&mut memory, short).unwrap_err();
    assert_eq!(
        (error.field, error.expected, error.found),
        (LayoutField::Length, 1 + short as u64, short as u64)
    );
    assert_eq!(region_align::<Line>(), 128);
    // SAFETY: only this test uses the memory, and the function rejects unaligned memory.
    let error = unsafe { init_at::<Line>(memory.0.as_mut_ptr().add(8), PAGE, ()) }.unwrap_err();
    assert_eq!((error.field, error.expected, error.found), (LayoutField::Address, 128, 8));
}

#[test]
fn does_not_take_over_live_end() {
    let mut memory = memory();
    // SAFETY: only this test uses the memory, which outlives the reference.
    let ring: &Line = unsafe { init_at(memory.0.as_mut_ptr(), PAGE * 4, ()) }.unwrap();
    let (mut producer, mut consumer) = ring.split().unwrap();
    let me = std::process::id();
    assert_eq!(ring.take_over_producer().map(drop), Err(TakeOverError::Alive(me)));
    assert_eq!(ring.take_over_consumer().map(drop), Err(TakeOverError::Alive(me)));
    producer.push_slice(&[1, 2]);
    producer.stage(3).unwrap();
    assert_eq!(consumer.take(), Some(1));
    // As if they belonged to a process that cannot be identified.
    std::mem::forget((producer, consumer));
    // SAFETY: the old ends are never used again.
    let (mut producer, mut consumer) =
        unsafe { (ring.take_over_producer_unchecked(), ring.take_over_consumer_unchecked()) };
    producer.push(4).unwrap();
    let items: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
    assert_eq!(items, [1, 2, 4], "staged items are lost, unreleased ones are delivered again");
}

#[test]
fn has_no_peers_outside_shared_memory() {
    let cell = Latest::new(0);
    let (writer, reader) = (cell.writer().unwrap(), cell.reader().unwrap());
    assert_eq!(cell.take_over_writer().map(drop), Err(TakeOverError::Unknown));
    assert_eq!(cell.take_over_reader().map(drop), Err(TakeOverError::Unknown));
    drop((writer, reader));
    assert!(cell.take_over_writer().is_ok() && cell.take_over_reader().is_ok(), "both ends were free");
}
