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
//!
//! The time for which such a job was off its CPU is its time from start to end less the CPU time that the thread has used since the
//! last reading. Other jobs pay nothing for it: the kernel returns the CPU time with the count. That CPU time may be late by a tick of
//! the kernel, and the thread may have run shorter jobs since the reading, so [`since`] returns a lower bound for the first
//! suspension of a thread. After it, the thread also reads its CPU clock after every sleep.

use std::cell::{Cell, UnsafeCell};

use punctual_core::Duration;

use super::clock;

/// No kernel switches away from a thread and back in less; measured 1.9 µs one way on a virtual machine.
pub(crate) const MIN_SWITCH_TIME: Duration = Duration::from_micros(2);

/// How many sleeps may be taken for one switch each before the count is read again.
const UNREAD_SLEEPS: i64 = 64;

thread_local! {
    static ACCOUNT: Account = const { Account::new() };
}

/// The suspensions of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Suspensions {
    /// How often it gave up its CPU of its own accord.
    pub(crate) count: u64,
    /// How long it was off its CPU, in ns; 0 without a suspension.
    pub(crate) time: u64,
}

impl Suspensions {
    pub(crate) const NONE: Self = Self { count: 0, time: 0 };
}

/// What a thread knows of its switches.
struct Account {
    /// What the kernel returned at the last two readings. Not copied, which would cost as much as all the rest.
    usages: UnsafeCell<[libc::rusage; 2]>,
    /// The index of the later one.
    later: Cell<usize>,
    /// The count of switches, when it was last read, and what has been accounted for since.
    accounted: Cell<i64>,
    /// The sleeps among these that were taken for one switch each.
    unread: Cell<i64>,
    /// Whether the count and the CPU clock are read after every sleep.
    exact: Cell<bool>,
    /// The CPU time when that clock was last read, in ns.
    cpu: Cell<u64>,
}

impl Account {
    const fn new() -> Self {
        Self {
            // SAFETY: it consists of integers, of which zero is a value.
            usages: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            later: Cell::new(0),
            accounted: Cell::new(0),
            unread: Cell::new(0),
            exact: Cell::new(false),
            cpu: Cell::new(0),
        }
    }

    /// Reads the count by `read`, which must not use the account. Returns how many switches had not been accounted for.
    #[inline]
    fn read(&self, read: impl FnOnce(&mut libc::rusage)) -> i64 {
        let later = 1 - self.later.get();
        // SAFETY: the account is that of one thread, and `read`, which runs while this reference lives, does not use it.
        let usage = unsafe { &mut (*self.usages.get())[later] };
        read(usage);
        self.later.set(later);
        self.unread.set(0);
        let switches = usage.ru_nvcsw;
        switches - self.accounted.replace(switches)
    }

    /// See [`woke`]; `read` reads the count, and `cpu` the CPU clock.
    fn woke(&self, read: impl FnOnce(&mut libc::rusage), cpu: impl FnOnce() -> u64) {
        if self.exact.get() {
            self.read(read);
            return self.cpu.set(cpu());
        }
        self.accounted.set(self.accounted.get() + 1);
        self.unread.set(self.unread.get() + 1);
    }

    /// See [`since`]; `read` reads the count, and `cpu` the CPU clock.
    #[inline]
    fn since(
        &self,
        wall: u64,
        read: impl FnOnce(&mut libc::rusage),
        cpu: impl FnOnce() -> u64,
    ) -> Suspensions {
        match self.read(read) {
            count @ 1.. => Suspensions { count: count as u64, time: self.off_cpu(wall, cpu()) },
            _ => Suspensions::NONE,
        }
    }

    /// A lower bound, in ns, on the time off the CPU within the last `wall` ns; `cpu` is the thread's CPU time now.
    #[cold]
    fn off_cpu(&self, wall: u64, cpu: u64) -> u64 {
        self.exact.set(true);
        // SAFETY: the account is that of one thread, which holds no other reference now.
        let earlier = unsafe { &(*self.usages.get())[1 - self.later.get()] };
        let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        // Both are at most what the thread had used when it read the count before.
        let before = self.cpu.replace(cpu).max(nanos(earlier.ru_utime) + nanos(earlier.ru_stime));
        wall.saturating_sub(cpu.saturating_sub(before))
    }
}

/// Takes all switches of this thread so far as accounted for: the runtime itself slept.
pub(crate) fn slept() {
    ACCOUNT.with(|account| account.read(read));
}

/// The calling worker is about to sleep.
pub(crate) fn before_sleeping() {
    ACCOUNT.with(|account| {
        if account.unread.get() >= UNREAD_SLEEPS {
            account.read(read);
        }
    });
}

/// Takes one switch as accounted for: the calling worker has slept until something was due or it was woken.
pub(crate) fn woke() {
    ACCOUNT.with(|account| account.woke(read, clock::thread_cpu_time));
}

/// The suspensions of this thread since the last call of this or of [`slept`], which fall into `wall`, the last so many ns.
pub(crate) fn since(wall: u64) -> Suspensions {
    ACCOUNT.with(|account| account.since(wall, read, clock::thread_cpu_time))
}

/// Takes the next `count` switches of this thread as accounted for: it has waited for locks of the app's, which is
/// blocking.
pub(crate) fn blocked(count: u32) {
    ACCOUNT.with(|account| account.accounted.set(account.accounted.get() + i64::from(count)));
}

/// Reads what the kernel has counted of this thread.
fn read(usage: &mut libc::rusage) {
    // SAFETY: the reference is to a live `rusage`, which the call fills.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn sleep_counts_as_suspension_and_computing_does_not() {
        slept();
        assert_eq!(since(SECOND), Suspensions::NONE);
        // A time-out in the past may sleep for an instant; one in the future surely sleeps.
        let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000 });
        let suspensions = since(SECOND);
        assert!(suspensions.count >= 1);
        assert!((SECOND / 2..=SECOND).contains(&suspensions.time), "{suspensions:?}");
        assert_eq!(since(SECOND), Suspensions::NONE);
    }

    /// Reads this count and CPU time.
    fn usage(switches: i64, micros: i64) -> impl FnOnce(&mut libc::rusage) {
        move |usage| {
            usage.ru_nvcsw = switches;
            (usage.ru_utime.tv_usec, usage.ru_stime.tv_usec) = (micros - micros / 3, micros / 3);
        }
    }

    fn count(account: &Account, switches: i64) -> u64 {
        account.since(100, usage(switches, 0), || 0).count
    }

    fn unread(_: &mut libc::rusage) {
        unreachable!("the count is not read");
    }

    #[test]
    fn a_sleep_is_one_switch_until_a_job_has_suspended_itself() {
        let account = Account::new();
        account.read(usage(10, 0));
        account.woke(unread, || 0);
        assert_eq!([count(&account, 11), count(&account, 11)], [0, 0]);
        account.woke(unread, || 0);
        assert_eq!(count(&account, 13), 1, "one was the job's");
        account.woke(usage(15, 0), || 0);
        assert_eq!([count(&account, 15), count(&account, 16)], [0, 1], "two were the sleep's");
    }

    #[test]
    fn time_off_the_cpu_is_what_the_thread_did_not_use() {
        let account = Account::new();
        let time = |switches, micros, cpu| account.since(100_000, usage(switches, micros), || cpu).time;
        account.read(usage(0, 1_000));
        assert_eq!(time(2, 1_010, 1_030_000), 70_000);
        assert_eq!(time(3, 1_040, 1_045_000), 85_000, "since the clock was read");
        account.woke(usage(4, 1_045), || 1_200_000);
        assert_eq!(time(5, 1_200, 1_210_000), 90_000);
        assert_eq!(time(5, 1_500, 0), 0, "it did not sleep");
        assert_eq!(time(6, 1_500, 1_520_000), 80_000, "since the count was read");
        assert_eq!(time(7, 1_520, 9_000_000), 0, "shorter jobs came before");
    }

    #[test]
    fn sleeps_without_a_switch_do_not_add_up() {
        let account = Account::new();
        (0..UNREAD_SLEEPS - 1).for_each(|_| account.woke(unread, || 0));
        assert!(account.unread.get() < UNREAD_SLEEPS);
        account.woke(unread, || 0);
        assert!(account.unread.get() >= UNREAD_SLEEPS, "`before_sleeping` reads the count");
        account.read(usage(0, 0));
        assert_eq!(count(&account, 1), 1);
    }
}
