//! Structures that pass data and units between two threads, compared with their peers: `Ring` with
//! `rtrb`, `Latest` with `triple_buffer`, `Semaphore` with `sem_t`, `TimedQueue` with
//! `futex-queue`.
//!
//!     cargo bench -p punctual-sync --bench cells [-- --json=FILE | RUNS [PART OF A NAME]]
//!
//! Over RUNS runs it reports the number in which the goal was met; `cargo xtask bless benchmarks`
//! collects 20 runs.
//!
//! Items that are sent one by one, to a consumer that polls, have two regimes. A consumer that is
//! slower than the producer finds several items with each load of the producer's counter; a faster
//! one always waits, and then each item costs a round trip of that counter's cache line. Where the
//! two CPUs are close, items of 64 bytes decide by their place: `Ring` aligns them to cache lines;
//! `rtrb` takes them from the heap, each across two lines, which slows its consumer and so avoids
//! the round trips. Items that are aligned for both show the same regime for both.

#[path = "support/windows.rs"]
mod windows;

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_sync::shared::{Latest, Ring, Semaphore};
use punctual_sync::{TimedQueue, now};
use windows::{Pair, Window, compare, pin, repeated, suite, together, until};

/// Items in one window.
const ITEMS: u64 = 400_000;
/// Operations in a window that stays on one thread.
const REPEATED: u64 = 50_000;
const BATCH: usize = 32;
const CAPACITY: usize = 1024;

/// An item that differs from its predecessor.
trait Item: Copy + Send + PartialEq + std::fmt::Debug + 'static {
    fn of(number: u64) -> Self;
}

impl Item for u8 {
    fn of(number: u64) -> Self {
        number as u8
    }
}

impl Item for u64 {
    fn of(number: u64) -> Self {
        number
    }
}

impl Item for [u64; 8] {
    fn of(number: u64) -> Self {
        [number; 8]
    }
}

/// 64 bytes that fill a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
struct Line([u64; 8]);

impl Item for Line {
    fn of(number: u64) -> Self {
        Self([number; 8])
    }
}

fn ring<T: Item>() -> f64 {
    let ring = Ring::<T, CAPACITY>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    let receive = move || (0..ITEMS).for_each(|number| assert_eq!(until(|| consumer.pop()), T::of(number)));
    let send = || (0..ITEMS).for_each(|number| until(|| producer.push(T::of(number)).ok()));
    together(receive, send) / ITEMS as f64
}

fn one_by_one<T: Item>() -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(CAPACITY);
    let receive =
        move || (0..ITEMS).for_each(|number| assert_eq!(until(|| consumer.pop().ok()), T::of(number)));
    let send = || (0..ITEMS).for_each(|number| until(|| producer.push(T::of(number)).ok()));
    together(receive, send) / ITEMS as f64
}

fn ring_batches<T: Item>() -> f64 {
    let ring = Ring::<T, CAPACITY>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    let receive = move || {
        let mut batch = [T::of(0); BATCH];
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| consumer.has_ready(BATCH).then(|| consumer.pop_slice(&mut batch)));
            black_box(&batch);
        }
    };
    let send = || {
        let batch: [T; BATCH] = std::array::from_fn(|i| T::of(i as u64));
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| producer.has_room_for(BATCH).then(|| producer.push_slice(black_box(&batch))));
        }
    };
    together(receive, send) / ITEMS as f64
}

fn batches<T: Item>() -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(CAPACITY);
    let receive = move || {
        let mut batch = [T::of(0); BATCH];
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| {
                let chunk = consumer.read_chunk(BATCH).ok()?;
                let (a, b) = chunk.as_slices();
                batch[..a.len()].copy_from_slice(a);
                batch[a.len()..].copy_from_slice(b);
                chunk.commit_all();
                Some(())
            });
            black_box(&batch);
        }
    };
    let send = || {
        let batch: [T; BATCH] = std::array::from_fn(|i| T::of(i as u64));
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| {
                let batch = black_box(&batch).iter().copied();
                producer.write_chunk_uninit(BATCH).ok().map(|chunk| chunk.fill_from_iter(batch))
            });
        }
    };
    together(receive, send) / ITEMS as f64
}

/// State of one thread, on its own cache lines: two, since processors fetch lines in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// Writes while another thread reads; returns the time of a write.
///
/// Each thread stores into its end with each value, and the reader polls a flag. Side by side on
/// the stack, they would share cache lines.
fn cell_window(write: impl FnMut(u64), read: impl FnMut() -> u64 + Send) -> f64 {
    let (stop, mut write, mut read) = (Apart(AtomicBool::new(false)), Apart(write), Apart(read));
    let reading = || {
        while !stop.0.load(Ordering::Relaxed) {
            black_box(read.0());
        }
    };
    let time = together(reading, || {
        (0..ITEMS).for_each(&mut write.0);
        stop.0.store(true, Ordering::Relaxed);
    });
    time / ITEMS as f64
}

fn latest() -> f64 {
    let cell = Latest::new([0_u64; 8]);
    let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
    cell_window(move |item| writer.write([item; 8]), move || reader.read_with(|value, _| value[7]))
}

fn triple() -> f64 {
    let (mut writer, mut reader) = triple_buffer::triple_buffer(&[0_u64; 8]);
    cell_window(move |item| writer.write([item; 8]), move || reader.read()[7])
}

/// P and V, with a free unit and no waiter.
fn semaphore() -> f64 {
    let semaphore: Semaphore = Semaphore::new(2);
    repeated(REPEATED, || {
        black_box(&semaphore).acquire(1).unwrap();
        black_box(&semaphore).signal(1).unwrap();
    })
}

fn sem_t() -> f64 {
    let semaphore = UnsafeCell::new(std::mem::MaybeUninit::<libc::sem_t>::uninit());
    let it = semaphore.get().cast::<libc::sem_t>();
    // SAFETY: `it` is valid for writes, and does not move until `sem_destroy`.
    assert_eq!(unsafe { libc::sem_init(it, 0, 2) }, 0);
    let time = repeated(REPEATED, || {
        // SAFETY: the semaphore has been initialized and is not destroyed yet.
        let done = unsafe { (libc::sem_wait(black_box(it)), libc::sem_post(black_box(it))) };
        assert_eq!(done, (0, 0));
    });
    // SAFETY: the semaphore has been initialized, and no thread waits.
    unsafe { libc::sem_destroy(it) };
    time
}

fn timed_queue(send: impl Fn(&TimedQueue<u64, 8>)) -> f64 {
    let queue = TimedQueue::<u64, 8>::new();
    let mut receiver = queue.receiver().unwrap();
    repeated(REPEATED, || {
        send(&queue);
        receiver.recv()
    })
}

fn futex_queue(send: impl Fn(&futex_queue::Sender<u64, 8>)) -> f64 {
    let (sender, mut receiver) = futex_queue::FutexQueue::<u64, 8>::new();
    repeated(REPEATED, || {
        send(&sender);
        receiver.recv().into_value()
    })
}

fn ready_ours() -> f64 {
    timed_queue(|queue| assert!(queue.send(black_box(1)).is_ok()))
}

fn ready_theirs() -> f64 {
    futex_queue(|queue| assert!(queue.send(black_box(1)).is_ok()))
}

fn due_ours() -> f64 {
    let past = now();
    timed_queue(|queue| assert!(queue.send_at(black_box(1), past).is_ok()))
}

fn due_theirs() -> f64 {
    let past = std::time::Instant::now();
    futex_queue(|queue| assert!(queue.send_scheduled(black_box(1), past).is_ok()))
}

fn pair(what: &'static str, crosses: bool, candidate: Window, peer: (&'static str, Window)) -> Pair {
    Pair { what, goal: 1.0, candidate, peer, crosses, operations: if crosses { ITEMS } else { REPEATED } }
}

fn pairs() -> Vec<Pair> {
    let rtrb = |window: Window| ("rtrb 0.4", window);
    let futex_queue = |window: Window| ("futex-queue 0.1.1", window);
    vec![
        pair("Ring, 1 byte, one by one", true, ring::<u8>, rtrb(one_by_one::<u8>)),
        pair("Ring, 8 bytes, one by one", true, ring::<u64>, rtrb(one_by_one::<u64>)),
        pair("Ring, 64 bytes, one by one", true, ring::<[u64; 8]>, rtrb(one_by_one::<[u64; 8]>)),
        pair("Ring, 64 bytes, aligned, one by one", true, ring::<Line>, rtrb(one_by_one::<Line>)),
        pair("Ring, 1 byte, batches of 32", true, ring_batches::<u8>, rtrb(batches::<u8>)),
        pair("Ring, 8 bytes, batches of 32", true, ring_batches::<u64>, rtrb(batches::<u64>)),
        pair("Ring, 64 bytes, batches of 32", true, ring_batches::<[u64; 8]>, rtrb(batches::<[u64; 8]>)),
        pair("Latest, 64 bytes, a write", true, latest, ("triple_buffer 9", triple)),
        pair("Semaphore, P + V", false, semaphore, ("sem_t", sem_t)),
        pair("TimedQueue, send + recv, ready", false, ready_ours, futex_queue(ready_theirs)),
        pair("TimedQueue, send + recv, due", false, due_ours, futex_queue(due_theirs)),
    ]
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --all-targets` runs benchmarks too, only to check that they work; then there is
    // no comparison.
    let Some(at) = arguments.iter().position(|argument| argument == "--bench") else { return };
    arguments.remove(at);
    let mut pairs = pairs();
    pin(0);
    if let [only] = &arguments[..]
        && let Some(file) = only.strip_prefix("--json=")
    {
        return std::fs::write(file, suite(&pairs)).expect("the file is written");
    }
    let runs =
        arguments.first().map_or(1, |runs| runs.parse().expect("the first argument is a number of runs"));
    pairs.retain(|pair| arguments.get(1).is_none_or(|part| pair.what.contains(part.as_str())));
    compare(&pairs, runs);
}
