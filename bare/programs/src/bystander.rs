//! A core that counts, and another that tells whether it still does.

use core::arch::asm;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use punctual_bare::time;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// How long the other core has for what it does, in ns.
const LONG: u64 = 1_000_000;

/// Counts for ever.
pub fn count() -> ! {
    loop {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

/// The core that [counts](count), or did. Printed when it is to have stopped: whether it has.
#[derive(Clone, Copy, Debug)]
pub struct Bystander;

impl Bystander {
    /// Waits until it counts.
    pub fn wait() {
        while COUNT.load(Ordering::Relaxed) == 0 {
            let_others();
        }
    }
}

impl fmt::Display for Bystander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bell needs its time.
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

/// QEMU on counted time has one core run for long, unless that says that others may go first.
fn let_others() {
    // SAFETY: a hint.
    unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) };
}
