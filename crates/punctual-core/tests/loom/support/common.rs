//! The parts that the loom models of `punctual-core` and `punctual-sync` share.

use std::sync::{Mutex, PoisonError};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};

/// Explores every execution of `model` with at most `preemptions` preemptions, or with the value of
/// `LOOM_MAX_PREEMPTIONS` if that is lower: two in the merge gate, and three in `cargo xtask loom`
/// and so in the nightly run.
///
/// Each model states its bound after `Bound:`, at the model or in the head of its file, with the
/// reason. The general argument: a preemption is a switch away from a thread that could continue. A
/// switch away from a thread that waits, yields or has ended is free, and so is a load that returns
/// an older value. An invariant of the protocols breaks if one or two steps of one thread fall
/// between two steps of another, for example a mark and a wake between a check and a sleep. Two
/// preemptions allow each order of these four steps that begins with the running thread, and three
/// allow all of them. Musuvathi and Qadeer (PLDI 2007) found that most concurrency bugs need at
/// most two.
///
/// `tests/seeds.toml` is the evidence: `cargo xtask loom` requires that each model detects its
/// seeded bugs within its bound, and with at most three preemptions.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    // One at a time, so that the time of a model does not depend on others in the process.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(preemptions, |b| b.min(preemptions)));
    builder.max_branches = 5_000;
    builder.check(model);
}

/// Keeps the stacks of loom's threads mapped. loom maps one for each thread of each execution and
/// unmaps it afterwards, which would take a third of the time of a model.
mod stacks {
    use std::ffi::{c_int, c_void};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The addresses of all stacks, and address and length of those not in use.
    struct Stacks {
        all: Vec<usize>,
        free: Vec<(usize, usize)>,
    }

    fn stacks() -> MutexGuard<'static, Stacks> {
        static STACKS: Mutex<Stacks> = Mutex::new(Stacks { all: Vec::new(), free: Vec::new() });
        STACKS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an unused stack of this length, which need not contain zeros and still has its guard
    /// page. Precedes the function of the C library, and does the same for other mappings.
    // SAFETY: nothing else in the executable has this name, and the signature is the same. No other
    // mapping has the flag: the C library maps the stacks of its threads by a private function.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void {
        let is_stack = flags & libc::MAP_STACK != 0;
        let mut stacks = stacks();
        let unused = stacks.free.iter().position(|(_, unused)| is_stack && *unused == length);
        let mapped = match unused {
            Some(unused) => stacks.free.swap_remove(unused).0,
            // SAFETY: the caller guarantees what the system call requires.
            None => unsafe {
                libc::syscall(libc::SYS_mmap, address, length, protection, flags, file, offset) as usize
            },
        };
        if is_stack && unused.is_none() && mapped != libc::MAP_FAILED as usize {
            stacks.all.push(mapped);
        }
        mapped as *mut c_void
    }

    /// Keeps a stack for the next thread. Precedes the function of the C library, and does the same
    /// for other mappings.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
        let mut stacks = stacks();
        if stacks.all.contains(&(address as usize)) {
            stacks.free.push((address as usize, length));
            return 0;
        }
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
    }
}

/// A region that at most one thread may be in at a time; counts the entries.
///
/// Entering takes more than one step: another thread can be scheduled in the middle. loom panics if
/// that thread then enters too, or if it enters later without seeing its predecessor's effects.
pub(crate) struct Region {
    entered: UnsafeCell<u32>,
    inside: AtomicU32,
}

// SAFETY: loom checks every access to `entered`; this is the purpose of the type.
unsafe impl Sync for Region {}
// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    pub(crate) fn new() -> Self {
        Self { entered: UnsafeCell::new(0), inside: AtomicU32::new(0) }
    }

    /// Enters the region and leaves it.
    pub(crate) fn enter(&self) {
        self.entered.with_mut(|entered| {
            // Only lets loom switch threads.
            self.inside.load(Ordering::Relaxed);
            // SAFETY: `with_mut` panics if any other access is in progress.
            unsafe { *entered += 1 };
        });
    }

    /// Returns the number of entries.
    pub(crate) fn count(&self) -> u32 {
        // SAFETY: `with` panics if a writing access is in progress.
        self.entered.with(|entered| unsafe { *entered })
    }
}
