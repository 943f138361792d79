//! Core 0 forbids a page that core 1 has already accessed, and starts a third core. The next access
//! of core 1 must end the program.
//!
//! exit: 101
//! emulator: -smp 4
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use punctual_bare::memory::GuardPage;
use punctual_bare::{cores, println, time};

punctual_bare::entry!(main);

/// Limit of each wait in ns.
const LIMIT: u64 = 1_000_000_000;

static PAGE: GuardPage = GuardPage::new();
static ACCESSES: AtomicU32 = AtomicU32::new(0);
static IS_THIRD_RUNNING: AtomicU32 = AtomicU32::new(0);

fn access() -> ! {
    loop {
        // SAFETY: the page belongs to this program, and nothing writes to it. Reading it later is
        // the purpose; the MMU prevents it.
        unsafe { (&raw const PAGE).cast::<u8>().read_volatile() };
        ACCESSES.fetch_add(1, Ordering::Relaxed);
    }
}

fn wait_for(counter: &AtomicU32, what: &str) {
    let end = time::now() + LIMIT;
    while counter.load(Ordering::Relaxed) == 0 {
        if time::now() > end {
            println!("{what}");
            punctual_bare::exit(1)
        }
    }
}

fn main() -> ! {
    cores::start(1, || access());
    wait_for(&ACCESSES, "the second core does not run");
    println!("the second core accesses the page");
    PAGE.forbid();
    cores::start(2, || IS_THIRD_RUNNING.store(1, Ordering::Relaxed));
    wait_for(&IS_THIRD_RUNNING, "the third core does not run");
    ACCESSES.store(0, Ordering::Relaxed);
    wait_for(&ACCESSES, "no core accesses the page");
    println!("the page is still accessible");
    punctual_bare::exit(1)
}
