//! `Ring` beside `rtrb`, and `Latest` beside `triple_buffer`.
//!
//! Within one thread criterion measures. Between two threads the two candidates take turns in short windows, because the
//! cost of a cache line between two CPUs changes while a virtual machine runs; what counts is the ratio within one
//! run. That part prints, of all windows, the maximum, the median and the minimum, the same of the cache line's cost,
//! and the median of the ratios of neighbouring windows. No window is dropped.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use criterion::{Criterion, criterion_group};
use punctual_sync::shared::{Latest, Ring};

/// Items in one window.
const ITEMS: u64 = 400_000;
const WINDOWS: usize = 41;
const BATCH: usize = 32;
const CAPACITY: usize = 1024;

fn same_thread(c: &mut Criterion) {
    let mut group = c.benchmark_group("push and pop, one thread");
    {
        let ring = Ring::<u64, CAPACITY>::new();
        let (mut producer, mut consumer) = ring.split().unwrap();
        group.bench_function("Ring", |b| {
            b.iter(|| {
                producer.push(black_box(1)).unwrap();
                consumer.pop().unwrap()
            });
        });
    }
    {
        let (mut producer, mut consumer) = rtrb::RingBuffer::<u64>::new(CAPACITY);
        group.bench_function("rtrb", |b| {
            b.iter(|| {
                producer.push(black_box(1)).unwrap();
                consumer.pop().unwrap()
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group("write and read, one thread");
    {
        let cell = Latest::new([0_u64; 8]);
        let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
        group.bench_function("Latest", |b| {
            b.iter(|| {
                writer.write(black_box([1; 8]));
                reader.read_with(|value, _| value[7])
            });
        });
    }
    {
        let (mut writer, mut reader) = triple_buffer::triple_buffer(&[0_u64; 8]);
        group.bench_function("triple_buffer", |b| {
            b.iter(|| {
                writer.write(black_box([1; 8]));
                reader.read()[7]
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group("read nothing new, one thread");
    {
        let cell = Latest::new([0_u64; 8]);
        let mut reader = cell.reader().unwrap();
        group.bench_function("Latest", |b| b.iter(|| reader.read_with(|value, _| value[7])));
    }
    {
        let (_, mut reader) = triple_buffer::triple_buffer(&[0_u64; 8]);
        group.bench_function("triple_buffer", |b| b.iter(|| reader.read()[7]));
    }
    group.finish();
}

/// Runs `there` on another CPU and `here` on this one, begun together; gives the time until both have ended, in
/// nanoseconds.
fn together(there: impl FnOnce() + Send, here: impl FnOnce()) -> f64 {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            pin(1);
            start.wait();
            there();
        });
        start.wait();
        let begin = Instant::now();
        here();
        other.join().unwrap();
        begin.elapsed().as_nanos() as f64
    })
}

/// Binds the thread to one CPU, if the machine has that many; otherwise the figures say less, but stay comparable.
fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("a thread is not bound to CPU {cpu}: {error}");
    }
}

/// Repeats `attempt` until it succeeds. Lets other programs run now and then: the machine may be shared.
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut turns = 0_u32;
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        spin_loop();
        turns += 1;
        if turns.is_multiple_of(10_000) {
            std::thread::yield_now();
        }
    }
}

fn ring() -> f64 {
    let ring = Ring::<u64, CAPACITY>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    let receive = move || (0..ITEMS).for_each(|item| assert_eq!(until(|| consumer.pop()), item));
    let send = || (0..ITEMS).for_each(|item| until(|| producer.push(item).ok()));
    together(receive, send) / ITEMS as f64
}

fn rtrb() -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<u64>::new(CAPACITY);
    let receive = move || (0..ITEMS).for_each(|item| assert_eq!(until(|| consumer.pop().ok()), item));
    let send = || (0..ITEMS).for_each(|item| until(|| producer.push(item).ok()));
    together(receive, send) / ITEMS as f64
}

fn ring_batches() -> f64 {
    let ring = Ring::<u64, CAPACITY>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    let receive = move || {
        let mut batch = [0; BATCH];
        let mut sum = 0;
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| (consumer.ready() >= BATCH).then(|| consumer.pop_slice(&mut batch)));
            sum += batch.iter().sum::<u64>();
        }
        black_box(sum);
    };
    let send = || {
        let batch: [u64; BATCH] = std::array::from_fn(|i| i as u64);
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| (producer.room() >= BATCH).then(|| producer.push_slice(&batch)));
        }
    };
    together(receive, send) / ITEMS as f64
}

fn rtrb_batches() -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<u64>::new(CAPACITY);
    let receive = move || {
        let mut batch = [0; BATCH];
        let mut sum = 0;
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| {
                let chunk = consumer.read_chunk(BATCH).ok()?;
                let (a, b) = chunk.as_slices();
                batch[..a.len()].copy_from_slice(a);
                batch[a.len()..].copy_from_slice(b);
                chunk.commit_all();
                Some(())
            });
            sum += batch.iter().sum::<u64>();
        }
        black_box(sum);
    };
    let send = || {
        let batch: [u64; BATCH] = std::array::from_fn(|i| i as u64);
        for _ in 0..ITEMS / BATCH as u64 {
            until(|| producer.write_chunk_uninit(BATCH).ok().map(|chunk| chunk.fill_from_iter(batch)));
        }
    };
    together(receive, send) / ITEMS as f64
}

/// Writes while another thread reads; gives the time of a write, and adds up the reads.
fn cell_window(mut write: impl FnMut(u64), mut read: impl FnMut() -> u64 + Send) -> f64 {
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let reading = || {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            black_box(read());
            count += 1;
        }
        reads.store(count, Ordering::Relaxed);
    };
    let time = together(reading, || {
        (0..ITEMS).for_each(&mut write);
        stop.store(true, Ordering::Relaxed);
    });
    black_box(reads.load(Ordering::Relaxed));
    time / ITEMS as f64
}

fn latest() -> f64 {
    let cell = Latest::new([0_u64; 8]);
    let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
    cell_window(|item| writer.write([item; 8]), move || reader.read_with(|value, _| value[7]))
}

fn triple() -> f64 {
    let (mut writer, mut reader) = triple_buffer::triple_buffer(&[0_u64; 8]);
    cell_window(|item| writer.write([item; 8]), move || reader.read()[7])
}

/// One way of a cache line from one CPU to the other, in nanoseconds.
fn cache_line() -> f64 {
    const TURNS: u32 = 20_000;
    let line = AtomicU32::new(0);
    let answer = || {
        for turn in 0..TURNS {
            until(|| (line.load(Ordering::Acquire) == 2 * turn + 1).then_some(()));
            line.store(2 * turn + 2, Ordering::Release);
        }
    };
    let ask = || {
        for turn in 0..TURNS {
            line.store(2 * turn + 1, Ordering::Release);
            until(|| (line.load(Ordering::Acquire) == 2 * turn + 2).then_some(()));
        }
    };
    together(answer, ask) / f64::from(2 * TURNS)
}

/// Runs one window; gives nanoseconds per item.
type Window = fn() -> f64;

/// Lets candidates take turns, and prints nanoseconds per item; the last one is what the others are compared with.
fn compare(what: &str, candidates: &[(&str, Window)]) {
    let mut times = vec![Vec::new(); candidates.len()];
    let mut lines = Vec::new();
    for window in 0..WINDOWS {
        lines.push(cache_line());
        // Who goes first changes, so that no candidate always finds the caches that the same other one left.
        for turn in 0..candidates.len() {
            let index = (window + turn) % candidates.len();
            times[index].push(candidates[index].1());
        }
    }
    println!("{what}, ns per item over {WINDOWS} windows; {}", spread("a cache line one way", &mut lines));
    let reference = times[candidates.len() - 1].clone();
    for ((name, _), times) in candidates.iter().zip(&mut times) {
        let mut ratios: Vec<_> = times.iter().zip(&reference).map(|(time, other)| time / other).collect();
        ratios.sort_by(f64::total_cmp);
        println!("  {}   median ratio {:.3}", spread(name, times), ratios[WINDOWS / 2]);
    }
}

fn spread(name: &str, times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    let (max, median, min) = (times[times.len() - 1], times[times.len() / 2], times[0]);
    format!("{name:<14} max {max:7.1}   median {median:6.2}   min {min:6.2}")
}

fn two_threads() {
    pin(0);
    compare("SPSC, one by one", &[("Ring", ring), ("rtrb", rtrb)]);
    compare("SPSC, batches of 32", &[("Ring", ring_batches), ("rtrb", rtrb_batches)]);
    compare("newest value of 64 bytes, write", &[("Latest", latest), ("triple_buffer", triple)]);
}

criterion_group!(benches, same_thread);

fn main() {
    // `cargo test --all-targets` runs benchmarks too, only to see that they work; there is nothing to compare then.
    if std::env::args().any(|argument| argument == "--bench") {
        two_threads();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
