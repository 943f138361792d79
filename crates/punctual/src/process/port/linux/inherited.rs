//! Inherited process state that could defeat the guarantees of the app.
//!
//! The page "Settings and environment variables" of the book lists the settings that are changed,
//! respected and reported; `tests/it/inherited.rs` has a test for each row. Changed settings are
//! restored after the run.

use std::num::NonZeroU64;

use punctual_process::limits::{Resource, soft_limit};
use punctual_process::scheduling::{self, Scheduling};
use punctual_process::signals::{self, Disposition};

use super::notice;

/// Timer slack of a process whose ancestors have not changed it, in ns.
const DEFAULT_TIMER_SLACK: u64 = 50_000;

/// Signals that stop an app, or whose loss a user notices.
const REPORTED_SIGNALS: [i32; 5] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGCHLD];

/// State of the calling thread before the run, restored on drop.
pub(crate) struct Inherited {
    /// The real-time policy that the thread has given up.
    scheduling: Option<Scheduling>,
    timer_slack: Option<u64>,
    blocked: Vec<i32>,
    /// Inherited state that affects the app, for the report.
    pub(crate) notes: Vec<String>,
    /// A setting that the kernel refused, for the thread of `idle`.
    pub(crate) missing: Option<String>,
}

impl Inherited {
    /// Normalizes the state of the calling thread, from which the threads of a run inherit theirs.
    pub(crate) fn normalize() -> Self {
        let mut inherited = Self {
            scheduling: None,
            timer_slack: None,
            blocked: signals::blocked(&signals::SYNCHRONOUS),
            notes: Vec::new(),
            missing: None,
        };
        // A fault whose signal is blocked ends the process without a message.
        signals::unblock(&inherited.blocked);
        inherited.leave_real_time();
        inherited.note_nice();
        inherited.reset_timer_slack();
        inherited.note_ignored_signals();
        inherited.note_limits();
        inherited
    }

    fn leave_real_time(&mut self) {
        // A sandbox that refuses to read the policy is indistinguishable from an ordinary thread.
        let Some(before) = Scheduling::current().ok().filter(Scheduling::is_real_time) else { return };
        let policy = match before.priority() {
            0 => before.name().to_owned(),
            priority => format!("{} priority {priority}", before.name()),
        };
        match scheduling::set_policy(libc::SCHED_OTHER, 0) {
            Ok(()) => {
                self.notes.push(format!(
                    "the program was started with {policy}; init, idle, shutdown and helper threads run with \
                     SCHED_OTHER, and workers with the priorities of their levels"
                ));
                self.scheduling = Some(before);
            }
            Err(error) => {
                self.missing = Some(format!(
                    "idle keeps the inherited {policy}, and displaces tasks: {error}; start the program without \
                     it (chrt -o 0)"
                ));
            }
        }
    }

    fn note_nice(&mut self) {
        // SAFETY: the call takes numbers; on Linux it concerns the calling thread. The error value,
        // -1, is a valid nice value too, and the call cannot fail for an existing thread.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        if nice != 0 {
            self.notes.push(format!(
                "the program was started with nice {nice}, which applies to its ordinary threads"
            ));
        }
    }

    fn reset_timer_slack(&mut self) {
        let Ok(before) = rustix::thread::current_timer_slack() else { return };
        // A real-time thread has none.
        if before == DEFAULT_TIMER_SLACK || before == 0 {
            return;
        }
        if rustix::thread::set_current_timer_slack(NonZeroU64::new(DEFAULT_TIMER_SLACK)).is_ok() {
            self.timer_slack = Some(before);
        }
    }

    fn note_ignored_signals(&mut self) {
        let ignored = |signal: &i32| matches!(signals::disposition(*signal), Ok(Disposition::Ignored));
        let names: Vec<_> =
            REPORTED_SIGNALS.iter().filter(|signal| ignored(signal)).map(|&it| signals::name(it)).collect();
        if !names.is_empty() {
            self.notes.push(format!("ignored, as when the program was started: {}", names.join(", ")));
        }
    }

    fn note_limits(&mut self) {
        if let Ok(Some(limit)) = soft_limit(Resource::RealTime) {
            self.notes.push(format!(
                "RLIMIT_RTTIME is {limit} µs: the kernel ends the process by SIGXCPU if a real-time thread runs that \
                 long without sleeping (`ulimit -R unlimited` removes the limit)"
            ));
        }
        if let Ok(Some(limit)) = soft_limit(Resource::FileSize) {
            self.notes.push(format!(
                "RLIMIT_FSIZE is {limit} bytes: no file of the app grows further (`ulimit -f unlimited` removes the limit)"
            ));
        }
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        signals::block(&self.blocked);
        if let Some(before) = self.timer_slack.and_then(NonZeroU64::new) {
            // The previous setting is always permitted again.
            let _ = rustix::thread::set_current_timer_slack(Some(before));
        }
        if let Some(before) = &self.scheduling
            && let Err(error) = before.apply()
        {
            notice::warn(format_args!(
                "the thread that called run stays SCHED_OTHER, and had {} before: {error}",
                before.name()
            ));
        }
    }
}
