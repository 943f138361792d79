//! Ends the process if `idle` neither returns nor waits for events.
//!
//! `#[shutdown]` still runs if no thread can use its resources. By then every worker has ended, and
//! only the thread of `idle` is left:
//!
//! * *Jobs on that thread*, which it runs as well without privileges: no job runs once the
//!   partitions are [closed](punctual_core::Partition::close), which fails while one does.
//! * *Resources and locals of `idle`*: the macro has compared these with those of the hook. If they
//!   share one that either of them may change, the hook does not run.
//! * *A lock that `idle` currently holds*: then the partition cannot be closed either, because a
//!   held level looks like a job. If the lock is never released, the hook does not run. Locks of
//!   the global executor hold no level, but protect nothing that the hook uses.
//! * *`idle` returning now*: one atomic step claims the hook and the resources, and it has one
//!   winner.

use std::sync::atomic::{AtomicU8, Ordering};

use super::functions::Functions;
use crate::observe::profile;
use crate::port::linux::exit_process;
use crate::port::linux::stderr;
use crate::report::Report;
use crate::state::fault;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;

/// Number of attempts to close the partitions.
const ATTEMPTS: u32 = 100;

/// The thread that runs the hook and drops the resources: that of `idle`, or the supervisor.
#[derive(Debug, Default)]
pub(super) struct Idle(AtomicU8);

/// Outside `idle`: its thread runs the hook.
const AWAY: u8 = 0;
/// In `idle`.
const IDLES: u8 = 1;
/// The supervisor has taken over.
const OWNED_BY_SUPERVISOR: u8 = 2;

impl Idle {
    /// Records that the calling thread is about to call `idle`.
    pub(super) fn begins(&self) {
        self.0.store(IDLES, Ordering::Release);
    }

    /// Records that `idle` has ended. Returns if the calling thread runs the hook; otherwise never
    /// returns.
    pub(super) fn ends(&self) {
        if self.0.compare_exchange(IDLES, AWAY, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // The supervisor is running the hook, and then it ends the process.
            loop {
                std::thread::park();
            }
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire) == IDLES
    }

    fn take_over(&self) -> bool {
        self.0.compare_exchange(IDLES, OWNED_BY_SUPERVISOR, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// State for ending the process in place of `idle`.
pub(super) struct EndlessIdle {
    runtime: &'static Runtime,
    /// The hook, if there is one.
    hook: Option<unsafe fn()>,
    /// The resources that both `idle` and the hook use.
    in_common: &'static [&'static str],
    attempts: u32,
}

impl EndlessIdle {
    pub(super) fn new(runtime: &'static Runtime, functions: &Functions<'_>) -> Self {
        let hook = functions.has_shutdown.then_some(functions.shutdown);
        Self { runtime, hook, in_common: functions.idle_and_shutdown, attempts: 0 }
    }

    /// Ends the process, after every worker has ended. Returns if `idle` has just returned, or if a
    /// later attempt may succeed.
    pub(super) fn attempt(&mut self, idle: &Idle) {
        let Some(hook) = self.hook else {
            if idle.take_over() {
                self.exit(0);
            }
            return;
        };
        if !self.in_common.is_empty() {
            let names = List(self.in_common);
            let why = format_args!("may be using {names}, which #[shutdown] uses too");
            return self.give_up(idle, why);
        }
        if !home_first(self.runtime).all(|partition| partition.core.close()) {
            self.attempts += 1;
            if self.attempts >= ATTEMPTS && self.runtime.home.idle.running() == 0 {
                self.give_up(idle, format_args!("holds the lock of a resource"));
            }
            return;
        }
        if !idle.take_over() {
            // Its thread does the rest, and needs no closed partition.
            return;
        }
        // SAFETY: the resources are filled, because `idle` runs. Every worker has ended, and on the
        // thread of `idle` no job runs and none will, because the partitions are closed. `idle`
        // itself shares nothing with the hook. Its thread does not get past `Idle::ends`, so this
        // is the only call.
        fault::contained(self.runtime, Culprit::Handler("shutdown"), || unsafe { hook() });
        self.exit(0)
    }

    fn give_up(&self, idle: &Idle, why: std::fmt::Arguments<'_>) {
        if idle.take_over() {
            stderr::line(format_args!(
                "idle {why}, so #[shutdown] does not run; call punctual::wait_for_event() in the loop of idle, or let it return"
            ));
            self.exit(1)
        }
    }

    fn exit(&self, least: u8) -> ! {
        let report = Report { outcome: self.runtime.outcome(), ..Report::default() };
        stderr::write_deferred();
        stderr::line(format_args!("idle does not return; the process ends and no resource is dropped"));
        profile::log_losses(self.runtime);
        exit_process(report.exit_code().max(least).into())
    }
}

/// Returns the partitions, with those whose jobs only their own workers run last: closing these
/// cannot fail, so a failed attempt leaves nothing closed.
fn home_first(runtime: &Runtime) -> impl Iterator<Item = &'static PartitionState> {
    std::iter::once(runtime.home).chain(runtime.away())
}

/// Joins names for a sentence.
struct List(&'static [&'static str]);

impl std::fmt::Display for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, name) in self.0.iter().enumerate() {
            let before = match place {
                0 => "",
                _ if place + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}`{name}`")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_is_claimed_once() {
        let idle = Idle::default();
        assert!(!idle.take_over(), "the thread is not in `idle`");
        idle.begins();
        assert!(idle.is_running() && idle.take_over());
        assert!(!idle.is_running() && !idle.take_over());
        let idle = Idle::default();
        idle.begins();
        idle.ends();
        assert!(!idle.take_over(), "the thread goes on by itself");
    }

    #[test]
    fn lists_names_as_in_a_sentence() {
        assert_eq!(List(&["a"]).to_string(), "`a`");
        assert_eq!(List(&["a", "b", "c"]).to_string(), "`a`, `b` and `c`");
    }
}
