//! Checks of the program `acceptance`: the properties of a board that documentation promises and
//! QEMU cannot confirm.

#[cfg(feature = "raspberry-pi")]
mod raspberry_pi;

#[cfg(feature = "raspberry-pi")]
pub use raspberry_pi::Devices;
#[cfg(not(feature = "raspberry-pi"))]
pub use virt::Devices;

use core::alloc::Layout;
use core::fmt::from_fn;
use core::sync::atomic::{AtomicU32, Ordering};

use punctual_bare::{cores, memory, time};

use crate::bench::{Property, Report};
use crate::cycles;

/// Limit of each wait in ns.
const LIMIT: u64 = 100_000_000;

/// Prints the suite `board`.
pub fn check(report: &mut Report, devices: Devices) {
    report.suite("board", "Properties of the board");
    report.checks();
    check_memory(report);
    check_cores(report);
    check_cycles(report);
    devices.check(report);
}

/// Waits until a condition holds; returns whether it does within the limit.
fn wait(condition: impl Fn() -> bool) -> bool {
    let end = time::now() + LIMIT;
    while !condition() {
        if time::now() > end {
            return false;
        }
    }
    true
}

/// Returns whether a measured value differs from the expected one by at most two percent.
fn is_near(measured: u64, expected: u64) -> bool {
    measured.abs_diff(expected) * 50 <= expected
}

/// Writes a different word to each address, and reads all of them back.
fn check_memory(report: &mut Report) {
    const WORDS: usize = 1 << 18;
    let layout = Layout::array::<u32>(WORDS).expect("a mebibyte is a valid size");
    let memory = memory::take(layout).expect("the board has a mebibyte of free memory").cast::<u32>();
    let word = |i: usize| (i as u32).wrapping_mul(0x9E37_79B1);
    let mut wrong = 0_usize;
    for i in 0..WORDS {
        // SAFETY: the index is within the memory, which nothing else uses.
        unsafe { memory.add(i).write_volatile(word(i)) };
    }
    for i in 0..WORDS {
        // SAFETY: as above.
        wrong += usize::from(unsafe { memory.add(i).read_volatile() } != word(i));
    }
    report.property(
        &Property {
            slug: "memory",
            rule: "a mebibyte of memory keeps every written word",
            expected: &"0 wrong words",
        },
        Ok((&from_fn(|f| write!(f, "{wrong} wrong words")), wrong == 0)),
    );
}

/// Starts the other cores, and lets each of them work twice.
fn check_cores(report: &mut Report) {
    static WORKED: AtomicU32 = AtomicU32::new(0);
    let mut answers = 0;
    for core in 1..4 {
        for _ in 0..2 {
            let before = WORKED.load(Ordering::Relaxed);
            cores::start(core, || _ = WORKED.fetch_add(1, Ordering::Relaxed));
            answers += u32::from(wait(|| WORKED.load(Ordering::Relaxed) != before));
        }
    }
    report.property(
        &Property {
            slug: "cores",
            rule: "three other cores start, and a doorbell wakes each of them",
            expected: &"6 answers",
        },
        Ok((&from_fn(|f| write!(f, "{answers} answers")), answers == 6)),
    );
}

/// Compares the cycle counter with the counter of the timer.
fn check_cycles(report: &mut Report) {
    let (begin, cycles) = (time::now(), cycles::count());
    while time::now() < begin + 10_000_000 {}
    let counted = u64::from(cycles::count().wrapping_sub(cycles));
    let hertz = counted * 1_000_000_000 / (time::now() - begin);
    let expected = cycles::frequency();
    let property = Property {
        slug: "cycles",
        rule: "the cores run at the frequency that the firmware reports",
        expected: &from_fn(|f| write!(f, "{} MHz", expected.unwrap_or(0) / 1_000_000)),
    };
    if cfg!(feature = "semihosting") {
        let why = "QEMU counts instructions, and the counter of the timer in other steps";
        return report.property(&property, Err(why));
    }
    let Some(expected) = expected else {
        return report.property(&property, Err("the firmware does not report the frequency"));
    };
    let observed = from_fn(|f| write!(f, "{} MHz", hertz / 1_000_000));
    report.property(&property, Ok((&observed, is_near(hertz, expected.into()))));
}

/// The devices of QEMU's `virt`, which has nothing to accept: it runs the kit to test the kit.
#[cfg(not(feature = "raspberry-pi"))]
mod virt {
    use crate::bench::Report;
    use crate::pins::{self, Response, Stimulus};

    /// The devices that the kit uses.
    #[derive(Debug)]
    pub struct Devices(());

    impl Devices {
        /// Takes the devices.
        pub fn take() -> (Self, (Stimulus, Response)) {
            (Self(()), pins::stimulus_and_response())
        }

        /// Checks nothing.
        pub(super) fn check(self, _: &mut Report) {}
    }
}
