//! A core that counts, and a check by another core that it still does.

use core::arch::asm;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use punctual_bare::time;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Time in ns for the other core to react.
const LONG: u64 = 1_000_000;

/// Counts forever.
pub fn count() -> ! {
    loop {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

/// The core that [counts](count). Prints whether the count still increases.
#[derive(Clone, Copy, Debug)]
pub struct Bystander;

impl Bystander {
    /// Waits until the core counts.
    pub fn wait() {
        while COUNT.load(Ordering::Relaxed) == 0 {
            let_others();
        }
    }
}

impl fmt::Display for Bystander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The doorbell takes some time.
        pause();
        let before = COUNT.load(Ordering::Relaxed);
        pause();
        f.write_str(if COUNT.load(Ordering::Relaxed) == before { "stands still" } else { "goes on" })
    }
}

fn pause() {
    let begin = time::now();
    while time::now() - begin < LONG {
        let_others();
    }
}

/// Lets other cores run: QEMU on counted time runs one core for a long time unless that core
/// yields.
fn let_others() {
    // SAFETY: a hint.
    unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) };
}
