//! Detects jobs that suspend themselves.
//!
//! The kernel counts the voluntary context switches of a thread. The runtime's own sleeps are
//! subtracted, and so are its waits for locks; any further switch found at the end of a job was
//! caused by the job: a blocking system call, a page read from disk, or a foreign lock. Reading the
//! count costs a system call, so it is skipped for jobs too short to have slept and woken.
//!
//! The count is not read on the wake-up path of a worker either, to keep latency low: its sleep is
//! assumed to be one switch. It can be none, if the wake came while the thread was falling asleep.
//! In rare cases a sleep takes more: the kernel made the thread wait for one of its locks, or a
//! signal stopped the process during the sleep. Therefore the count is read [before a
//! sleep](before_sleeping) after a number of wakes. A job that seems to have suspended itself did
//! not, if its thread has had the CPU since before the start of the job. Otherwise the thread reads
//! the count after every sleep from then on: at most one job of a thread is wrongly reported as
//! suspending itself. A sleep that lasts until its time is a switch, unless the thread was
//! preempted for all of that time: so a thread that only the clock wakes makes no other system
//! call, and such a preemption can hide one suspension, if no job has been long enough to be
//! checked since.
//!
//! The time off the CPU of such a job is its time from start to end minus the CPU time that the
//! thread has used since the last reading. Other jobs incur no cost for it: the kernel returns the
//! CPU time with the count. It is that at the last switch or tick, so the CPU clock exceeds it by
//! the time for which the thread has had the CPU, or by less. For the first suspension of a thread,
//! [`since`] returns a lower bound, because the thread may also have run shorter jobs since the
//! reading. After it, the thread also reads its CPU clock after every sleep.

use std::cell::{Cell, UnsafeCell};

use punctual_core::Duration;

use crate::port::Suspensions;

use super::clock;

/// No kernel switches away from a thread and back in less; measured 1.9 µs one way on a virtual
/// machine.
pub(crate) const MIN_SWITCH_TIME: Duration = Duration::from_micros(2);

/// Maximum number of sleeps assumed to be one switch each before the count is read again.
const UNREAD_SLEEPS: i64 = 64;

thread_local! {
    static ACCOUNT: Account = const { Account::new() };
}

/// Switch accounting of a thread.
struct Account {
    /// Results of the last two readings. Not copied, which would cost as much as all the rest.
    usages: UnsafeCell<[libc::rusage; 2]>,
    /// The index of the later one.
    later: Cell<usize>,
    /// The count at the last reading, plus the switches accounted for since.
    accounted: Cell<i64>,
    /// The sleeps ended by a wake among these, which were assumed to be one switch each.
    unread: Cell<i64>,
    /// True if the count and the CPU clock are read after every sleep.
    exact: Cell<bool>,
    /// CPU time at the last reading of that clock, in ns.
    cpu: Cell<u64>,
}

impl Account {
    const fn new() -> Self {
        Self {
            // SAFETY: it consists of integers, for which zero is valid.
            usages: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            later: Cell::new(0),
            accounted: Cell::new(0),
            unread: Cell::new(0),
            exact: Cell::new(false),
            cpu: Cell::new(0),
        }
    }

    /// Reads the count by `read`, which must not use the account. Returns the number of switches
    /// not yet accounted for.
    #[inline]
    fn read(&self, read: impl FnOnce(&mut libc::rusage)) -> i64 {
        let later = 1 - self.later.get();
        // SAFETY: the account belongs to one thread, and `read`, which runs while this reference
        // lives, does not use it.
        let usage = unsafe { &mut (*self.usages.get())[later] };
        read(usage);
        self.later.set(later);
        self.unread.set(0);
        let switches = usage.ru_nvcsw;
        switches - self.accounted.replace(switches)
    }

    /// See [`woke`]; `read` reads the count, and `cpu` the CPU clock.
    fn woke(&self, expired: bool, read: impl FnOnce(&mut libc::rusage), cpu: impl FnOnce() -> u64) {
        if self.exact.get() {
            self.read(read);
            return self.cpu.set(cpu());
        }
        self.accounted.set(self.accounted.get() + 1);
        self.unread.set(self.unread.get() + i64::from(!expired));
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
            count @ 1.. => self.suspensions(count as u64, wall, cpu()),
            _ => Suspensions::NONE,
        }
    }

    /// Returns `count` suspensions with a lower bound, in ns, on the time off the CPU within the
    /// last `wall` ns, unless the thread has had the CPU for all of that time; `cpu` is its CPU
    /// time now.
    #[cold]
    fn suspensions(&self, count: u64, wall: u64, cpu: u64) -> Suspensions {
        let later = self.later.get();
        // SAFETY: the account belongs to one thread, which holds no other reference now.
        let usages = unsafe { &*self.usages.get() };
        let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        let [earlier, now] =
            [1 - later, later].map(|at| nanos(usages[at].ru_utime) + nanos(usages[at].ru_stime));
        // Both are at most the thread's CPU time at the previous reading of the count.
        let before = self.cpu.replace(cpu).max(earlier);
        if cpu.saturating_sub(now) >= wall {
            return Suspensions::NONE;
        }
        self.exact.set(true);
        Suspensions { count, time: wall.saturating_sub(cpu.saturating_sub(before)) }
    }
}

/// Accounts for all switches of this thread so far: the runtime itself slept.
pub(crate) fn slept() {
    ACCOUNT.with(|account| account.read(read));
}

/// Called by a worker that is about to sleep.
pub(crate) fn before_sleeping() {
    ACCOUNT.with(|account| {
        if account.unread.get() >= UNREAD_SLEEPS {
            account.read(read);
        }
    });
}

/// Accounts for one switch: the calling worker has slept until a release was due, if `expired`, or
/// it was woken.
pub(crate) fn woke(expired: bool) {
    ACCOUNT.with(|account| account.woke(expired, read, clock::thread_cpu_time));
}

/// Returns the suspensions of this thread since the last call of this function or of [`slept`],
/// which fall into the last `wall` ns.
pub(crate) fn since(wall: u64) -> Suspensions {
    ACCOUNT.with(|account| account.since(wall, read, clock::thread_cpu_time))
}

/// Accounts for the next `count` switches of this thread: it has waited for locks of the app, which
/// is blocking.
pub(crate) fn blocked(count: u32) {
    ACCOUNT.with(|account| account.accounted.set(account.accounted.get() + i64::from(count)));
}

/// Reads the kernel's counters of this thread.
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
        // A time-out in the past may sleep for an instant; one in the future certainly sleeps.
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
    fn counts_sleep_as_one_switch() {
        let account = Account::new();
        account.read(usage(10, 0));
        account.woke(false, unread, || 0);
        assert_eq!([count(&account, 11), count(&account, 11)], [0, 0]);
        account.woke(false, unread, || 0);
        assert_eq!(count(&account, 13), 1, "one was the job's");
        account.woke(true, usage(15, 0), || 0);
        assert_eq!([count(&account, 15), count(&account, 16)], [0, 1], "two were the sleep's");
    }

    #[test]
    fn off_cpu_time_is_unused_thread_time() {
        let account = Account::new();
        let time = |switches, micros, cpu| account.since(100_000, usage(switches, micros), || cpu).time;
        account.read(usage(0, 1_000));
        assert_eq!(time(2, 1_010, 1_030_000), 70_000);
        assert_eq!(time(3, 1_040, 1_045_000), 85_000, "since the clock was read");
        account.woke(true, usage(4, 1_045), || 1_200_000);
        assert_eq!(time(5, 1_200, 1_210_000), 90_000);
        assert_eq!(time(5, 1_500, 0), 0, "it did not sleep");
        assert_eq!(time(6, 1_500, 1_520_000), 80_000, "since the count was read");
        assert_eq!(time(7, 8_990, 9_000_000), 0, "shorter jobs came before");
    }

    #[test]
    fn thread_with_cpu_since_start_is_not_suspended() {
        let account = Account::new();
        account.read(usage(1, 1_000));
        // A signal has stopped the process during the sleep, which took three switches.
        account.woke(true, unread, || 0);
        assert_eq!(account.since(100_000, usage(4, 1_200), || 1_300_000), Suspensions::NONE);
        // So the thread still does not read the count after every sleep.
        account.woke(true, unread, || 0);
        let suspensions = account.since(100_000, usage(6, 1_400), || 1_499_000);
        assert_eq!(suspensions, Suspensions { count: 1, time: 0 }, "unknown, because of a tick");
    }

    #[test]
    fn sleeps_without_switch_do_not_accumulate() {
        let account = Account::new();
        (0..UNREAD_SLEEPS - 1).for_each(|_| account.woke(false, unread, || 0));
        assert!(account.unread.get() < UNREAD_SLEEPS);
        account.woke(false, unread, || 0);
        assert!(account.unread.get() >= UNREAD_SLEEPS, "`before_sleeping` reads the count");
        account.woke(true, unread, || 0);
        assert_eq!(account.unread.get(), UNREAD_SLEEPS, "the clock woke it");
        account.read(usage(0, 0));
        assert_eq!(count(&account, 1), 1);
    }
}
