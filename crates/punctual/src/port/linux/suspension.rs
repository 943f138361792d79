//! Noticing jobs that suspend themselves.
//!
//! The kernel counts how often a thread gave up its CPU of its own accord. The runtime's own sleeps are taken out, and its
//! waits for locks are counted; so whatever more a job finds at its end was its doing: a blocking system call, a page that had to
//! come from disk, a foreign lock. The count costs a system call, so a job too short to have slept and woken is not asked.
//!
//! Nor is the count read when a worker wakes up, which is where latency comes from: its sleep is taken for one switch. It can be
//! none, if the wake came while the thread fell asleep, or rarely two, if the kernel made the thread wait for a lock of its own. So the count is read
//! anew [before a sleep](before_sleeping) now and then, and once a job seems to have suspended itself, the thread reads it after every
//! sleep: at most one job of a thread is taken for one that suspends itself and does not.

use std::cell::Cell;

use punctual_core::Duration;

/// No kernel switches away from a thread and back in less; measured 1.9 µs one way on a virtual machine.
pub(crate) const MIN_SWITCH_TIME: Duration = Duration::from_micros(2);

/// How many sleeps may be taken for one switch each before the count is read again.
const UNREAD_SLEEPS: i64 = 64;

thread_local! {
    static ACCOUNT: Account = const { Account::new() };
}

/// What a thread knows of its switches.
#[derive(Debug)]
struct Account {
    /// The count, when it was last read, and what has been accounted for since.
    accounted: Cell<i64>,
    /// The sleeps among these that were taken for one switch each.
    unread: Cell<i64>,
    /// Whether the count is read after every sleep.
    exact: Cell<bool>,
}

impl Account {
    const fn new() -> Self {
        Self { accounted: Cell::new(0), unread: Cell::new(0), exact: Cell::new(false) }
    }

    fn read(&self, now: i64) {
        self.accounted.set(now);
        self.unread.set(0);
    }

    /// See [`woke`]; `now` reads the count.
    fn woke(&self, now: impl FnOnce() -> i64) {
        if self.exact.get() {
            return self.read(now());
        }
        self.accounted.set(self.accounted.get() + 1);
        self.unread.set(self.unread.get() + 1);
    }

    /// See [`since`], with the count.
    fn since(&self, now: i64) -> u64 {
        let more = now - self.accounted.get();
        if more > 0 {
            self.exact.set(true);
        }
        self.read(now);
        more.max(0) as u64
    }
}

/// Takes all switches of this thread so far as accounted for: the runtime itself slept.
pub(crate) fn slept() {
    ACCOUNT.with(|account| account.read(voluntary_switches()));
}

/// The calling worker is about to sleep.
pub(crate) fn before_sleeping() {
    ACCOUNT.with(|account| {
        if account.unread.get() >= UNREAD_SLEEPS {
            account.read(voluntary_switches());
        }
    });
}

/// Takes one switch as accounted for: the calling worker has slept until something was due or it was woken.
pub(crate) fn woke() {
    ACCOUNT.with(|account| account.woke(voluntary_switches));
}

/// How often this thread gave up its CPU since the last call of this or of [`slept`].
pub(crate) fn since() -> u64 {
    ACCOUNT.with(|account| account.since(voluntary_switches()))
}

/// Takes the next `count` switches of this thread as accounted for: it has waited for locks of the app's, which is
/// blocking.
pub(crate) fn blocked(count: u32) {
    ACCOUNT.with(|account| account.accounted.set(account.accounted.get() + i64::from(count)));
}

fn voluntary_switches() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live `rusage`, which the call fills; all-zero is a valid one besides.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nvcsw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yielding_to_the_kernel_is_noticed_and_computing_is_not() {
        slept();
        assert_eq!(since(), 0);
        // A time-out in the past may sleep for an instant; one in the future surely sleeps.
        let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000 });
        assert!(since() >= 1);
        assert_eq!(since(), 0);
    }
    #[test]
    fn a_sleep_is_one_switch_until_a_job_has_suspended_itself() {
        let account = Account::new();
        account.read(10);
        account.woke(|| unreachable!("the count is not read"));
        assert_eq!((account.since(11), account.since(11)), (0, 0));
        account.woke(|| unreachable!("the count is not read"));
        assert_eq!(account.since(13), 1, "one was the job's");
        account.woke(|| 15);
        assert_eq!((account.since(15), account.since(16)), (0, 1), "two were the sleep's");
    }

    #[test]
    fn sleeps_without_a_switch_do_not_add_up() {
        let account = Account::new();
        (0..UNREAD_SLEEPS - 1).for_each(|_| account.woke(|| 0));
        assert!(account.unread.get() < UNREAD_SLEEPS);
        account.woke(|| 0);
        assert!(account.unread.get() >= UNREAD_SLEEPS, "`before_sleeping` reads the count");
        account.read(0);
        assert_eq!(account.since(1), 1);
    }
}
