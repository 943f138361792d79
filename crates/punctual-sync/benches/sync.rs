//! The mutex and the queue compared with the kernel's own locks and the predecessor crates, in one
//! run.
//!
//!     cargo bench -p punctual-sync --bench sync
//!
//! Absolute times are not comparable between machines: compare the figures of one group with each
//! other.

#[path = "support/locks.rs"]
mod locks;
#[path = "support/pi_mutex.rs"]
mod pi_mutex;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use locks::{RawPi, Rounds, contend};
use pi_mutex::PiMutex;
use punctual_sync::{MsrpLock, MsrpThread, PcpGroup, PcpMutex, TimedQueue, now};

static GROUP: PcpGroup = PcpGroup::new();
static COUNT: PcpMutex<u64> = PcpMutex::new(&GROUP, 200, 0);
static INNER: PcpMutex<u64> = PcpMutex::new(&GROUP, 200, 0);
static QUEUE: TimedQueue<u64, 8> = TimedQueue::new();

/// Lock and unlock of an uncontended mutex.
fn uncontended(c: &mut Criterion) {
    let mut group = c.benchmark_group("lock_unlock");
    let member = GROUP.join(1).expect("this thread joins once");
    group.bench_function("PcpMutex", |b| {
        b.iter(|| black_box(&COUNT).lock(&member, |count| *count = count.wrapping_add(1)));
    });
    group.bench_function("PcpMutex nested in another", |b| {
        let nested = || black_box(&COUNT).lock(&member, |_| INNER.lock(&member, |n| *n = n.wrapping_add(1)));
        b.iter(nested);
    });
    group.bench_function("MsrpLock", |b| {
        static LOCK: MsrpLock = MsrpLock::new();
        let me = MsrpThread::current();
        let mut count = 0_u64;
        b.iter(|| {
            let held = black_box(&LOCK).lock(&me, punctual_sync::Duration::from_micros(10));
            count = black_box(count).wrapping_add(1);
            drop(held);
        });
    });
    group.bench_function("PI pthread mutex", |b| {
        let mutex = PiMutex::new();
        let mut count = 0_u64;
        b.iter(|| black_box(&mutex).with(|| count = black_box(count).wrapping_add(1)));
    });
    group.bench_function("pcp-mutex 0.2.0", |b| {
        let group = pcp_mutex::PcpGroup::default();
        // Above the priority 0 of the normal thread that benchmarks run on, as a ceiling has to be.
        let mutex = group.create(0_u64, 1);
        b.iter(|| black_box(&mutex).lock(|count| *count = count.wrapping_add(1)));
    });
    group.finish();
}

/// A lock that a higher thread waits for: from the end of one critical section to the beginning of
/// the next.
fn contended(c: &mut Criterion) {
    let mut group = c.benchmark_group("hand_over");
    group.bench_function("PcpMutex", |b| {
        static CONTENDED: PcpGroup = PcpGroup::new();
        let lock = (&CONTENDED, PcpMutex::new(&CONTENDED, 200, ()));
        b.iter_custom(|iters| contend(&lock, iters).hand_over);
    });
    group.bench_function("raw PI futex", |b| {
        let lock = RawPi::default();
        b.iter_custom(|iters| contend(&lock, iters).hand_over);
    });
    group.finish();
}

/// An item that is sent and received by the same thread, so that no thread sleeps.
fn queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("send_recv");
    let mut receiver = QUEUE.receiver().expect("the only receiver");
    group.bench_function("TimedQueue", |b| {
        b.iter(|| {
            assert!(QUEUE.send(black_box(1)).is_ok());
            black_box(receiver.recv());
        });
    });
    group.bench_function("futex-queue 0.1.1", |b| {
        let (sender, mut receiver) = futex_queue::FutexQueue::<u64, 8>::new();
        b.iter(|| {
            assert!(sender.send(black_box(1)).is_ok());
            black_box(receiver.recv().into_value());
        });
    });
    group.bench_function("TimedQueue scheduled", |b| {
        let due = now();
        b.iter(|| {
            assert!(QUEUE.send_at(black_box(1), due).is_ok());
            black_box(receiver.recv());
        });
    });
    group.bench_function("futex-queue 0.1.1 scheduled", |b| {
        let (sender, mut receiver) = futex_queue::FutexQueue::<u64, 8>::new();
        let due = std::time::Instant::now();
        b.iter(|| {
            assert!(sender.send_scheduled(black_box(1), due).is_ok());
            black_box(receiver.recv().into_value());
        });
    });
    group.finish();
}

/// The same in alternating short windows, because the machine's speed changes within one run: the
/// largest, the median and the smallest of the ratios of neighboring windows, none dropped.
fn contended_by_turns(_: &mut Criterion) {
    const WINDOWS: usize = 201;
    static CONTENDED: PcpGroup = PcpGroup::new();
    let (ours, raw) = ((&CONTENDED, PcpMutex::new(&CONTENDED, 200, ())), RawPi::default());
    let windows: Vec<_> = (0..WINDOWS).map(|_| (contend(&ours, 500), contend(&raw, 500))).collect();
    let report = |what: &str, of: fn(&Rounds) -> Duration| {
        let ratio = |(ours, raw): &(Rounds, Rounds)| of(ours).as_secs_f64() / of(raw).as_secs_f64();
        let mut ratios: Vec<f64> = windows.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let (most, median, least) = (ratios[WINDOWS - 1], ratios[WINDOWS / 2], ratios[0]);
        println!("{what}, PcpMutex / raw PI futex: max {most:.2}, median {median:.2}, min {least:.2}");
    };
    report("hand-over", |rounds| rounds.hand_over);
    report("whole round", |rounds| rounds.whole);
}

criterion_group!(benches, uncontended, contended, contended_by_turns, queue);
criterion_main!(benches);
