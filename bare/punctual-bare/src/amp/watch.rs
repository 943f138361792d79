//! Mutual monitoring of Linux and the image, by the physical timer, which the app does not use,
//! every ten milliseconds.
//!
//! A module in Linux increments the heartbeat of Linux. If the heartbeat stalls for longer than
//! declared, Linux hangs, has crashed or is rebooting. The app is then asked to end, which is its
//! safe state: released jobs complete, and `#[shutdown]` runs. If the app does not end within its
//! grace period, it is terminated at once.

use core::sync::atomic::{AtomicU64, Ordering};

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{CNTFRQ_EL0, CNTP_CTL_EL0, CNTP_CVAL_EL0, CNTPCT_EL0, Readable, Writeable};

use super::shared::{FAULTED, shared};
use crate::println;

/// Checks per second.
const RATE: u64 = 100;

/// Last heartbeat of Linux and the time of its last change; time when the app was asked to end, or
/// 0.
static SEEN: AtomicU64 = AtomicU64::new(0);
static CHANGED: AtomicU64 = AtomicU64::new(0);
static REQUESTED: AtomicU64 = AtomicU64::new(0);

/// Starts monitoring.
pub(super) fn begin() {
    let now = CNTPCT_EL0.get();
    CHANGED.store(now, Ordering::Relaxed);
    CNTP_CVAL_EL0.set(now + CNTFRQ_EL0.get() / RATE);
    CNTP_CTL_EL0.write(CNTP_CTL_EL0::ENABLE::SET);
    barrier::isb(barrier::SY);
}

/// Stops monitoring.
pub(super) fn end() {
    CNTP_CTL_EL0.write(CNTP_CTL_EL0::ENABLE::CLEAR);
    barrier::isb(barrier::SY);
}

/// Checks the heartbeat. Returns `true` once, when the app must end.
pub(super) fn tick() -> bool {
    let (now, frequency) = (CNTPCT_EL0.get(), CNTFRQ_EL0.get());
    CNTP_CVAL_EL0.set(now + frequency / RATE);
    barrier::isb(barrier::SY);
    let since_ms = |then: u64| now.saturating_sub(then) * 1000 / frequency;
    let shared = shared();
    shared.beat.fetch_add(1, Ordering::Release);
    let asked = REQUESTED.load(Ordering::Relaxed);
    if asked != 0 {
        if since_ms(asked) > shared.grace_ms.into() {
            println!("punctual: it was asked to end, and did not within {} ms", shared.grace_ms);
            super::off(FAULTED, crate::end::PANICKED);
        }
        return false;
    }
    let beat = shared.linux_beat.load(Ordering::Acquire);
    if SEEN.swap(beat, Ordering::Relaxed) != beat {
        CHANGED.store(now, Ordering::Relaxed);
    }
    let silent = since_ms(CHANGED.load(Ordering::Relaxed));
    let dead = shared.patience_ms != 0 && silent > shared.patience_ms.into();
    if dead {
        println!("punctual: Linux has not been heard of for {silent} ms; the app ends");
    }
    let ends = dead || shared.stop.load(Ordering::Acquire) != 0;
    if ends {
        REQUESTED.store(now, Ordering::Relaxed);
    }
    ends
}
