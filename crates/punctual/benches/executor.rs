//! What spawning and locking cost, beside what one would use instead, in one run.
//!
//! `cargo bench -p punctual`. The peers are the predecessor's queue and mutex from the registry, a raw futex
//! hand-over between two real-time threads on one CPU, and a priority-inheritance pthread mutex. The figures
//! without monitoring are the bare protocol; those with it include two clock readings a job.

use criterion::{Criterion, criterion_group, criterion_main};

#[macro_use]
#[path = "support/apps.rs"]
mod apps;
#[path = "support/peers.rs"]
mod peers;
#[path = "../../punctual-sync/benches/support/pi_mutex.rs"]
mod pi_mutex;

use apps::Operation;
use punctual::Config;

app!(plain, false, false, false);
app!(monitored, true, false, false);
app!(marked, false, true, false);
app!(profiled, false, false, true);

/// Config of a run whose profile nobody reads.
fn profile() -> Config {
    Config::new().profile(std::env::temp_dir().join("punctual-bench-profile.json"))
}

fn spawns(c: &mut Criterion) {
    let mut group = c.benchmark_group("spawn to run");
    group.bench_function("same level", |b| {
        b.iter_custom(|n| plain::measure(Config::new(), Operation::SameLevel, n))
    });
    group.bench_function("peer: futex-queue send + recv", |b| b.iter_custom(peers::futex_queue));
    group.bench_function("higher level, one CPU", |b| {
        b.iter_custom(|n| plain::measure(Config::new(), Operation::HigherLevel, n))
    });
    group.bench_function("peer: futex hand-over, one CPU", |b| b.iter_custom(peers::futex_hand_over));
    group.bench_function("same level, monitored", |b| {
        b.iter_custom(|n| monitored::measure(Config::new(), Operation::SameLevel, n))
    });
    group.bench_function("higher level, monitored", |b| {
        b.iter_custom(|n| monitored::measure(Config::new(), Operation::HigherLevel, n))
    });
    // Without a trace to write to, which the app says, this is the row without marks once more.
    group.bench_function("higher level, marked in the kernel's trace", |b| {
        b.iter_custom(|n| marked::measure(Config::new(), Operation::HigherLevel, n))
    });
    group.bench_function("same level, profiled", |b| {
        b.iter_custom(|n| profiled::measure(profile(), Operation::SameLevel, n))
    });
    group.bench_function("higher level, profiled", |b| {
        b.iter_custom(|n| profiled::measure(profile(), Operation::HigherLevel, n))
    });
    group.bench_function("higher level, could be profiled", |b| {
        b.iter_custom(|n| profiled::measure(Config::new(), Operation::HigherLevel, n))
    });
    group.bench_function("one clock reading", |b| b.iter(|| std::hint::black_box(punctual::now())));
    group.bench_function("wake of an async task of a higher level", |b| {
        b.iter_custom(|n| plain::measure(Config::new(), Operation::Wake, n))
    });
    group.bench_function("arm + cancel", |b| {
        b.iter_custom(|n| plain::measure(Config::new(), Operation::ArmAndCancel, n))
    });
    group.finish();
}

fn locks(c: &mut Criterion) {
    let mut group = c.benchmark_group("lock + unlock");
    group.bench_function("shared with a higher task", |b| {
        b.iter_custom(|n| plain::measure(Config::new(), Operation::Lock, n))
    });
    group.bench_function("shared with a higher task, profiled", |b| {
        b.iter_custom(|n| profiled::measure(profile(), Operation::Lock, n))
    });
    group.bench_function("shared with a higher task, could be profiled", |b| {
        b.iter_custom(|n| profiled::measure(Config::new(), Operation::Lock, n))
    });
    group.bench_function("shared with nobody", |b| {
        b.iter_custom(|n| plain::measure(Config::new(), Operation::LockAlone, n))
    });
    group.bench_function("peer: pcp-mutex", |b| b.iter_custom(peers::pcp_mutex));
    group.bench_function("peer: PI pthread mutex", |b| b.iter_custom(peers::pi_mutex));
    group.bench_function("limit: one compare-and-swap pair", |b| {
        let word = std::sync::atomic::AtomicU64::new(0);
        b.iter(|| {
            use std::sync::atomic::Ordering::{Acquire, Release};
            let _ = std::hint::black_box(&word).compare_exchange(0, 1, Acquire, Acquire);
            let _ = std::hint::black_box(&word).compare_exchange(1, 0, Release, Acquire);
        })
    });
    group.finish();
}

criterion_group!(benches, spawns, locks);
criterion_main!(benches);
