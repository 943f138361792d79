//! Registers, flags and the floating-point state survive a preemption.
//!
//! Cunningham's test separates a compare and the branch on it by a context switch, and the other
//! thread changes the flag in between. Here a loop of instructions that change no flag waits for
//! the preemption with known values in all usable registers, and the preempting side overwrites
//! them all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::log::Seen;
use super::{Rule, runs};
use crate::rt;
use crate::session::{Session, Step};
use crate::subject::Subject;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
/// An architecture without an implementation of the loop.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
mod arch {
    use std::sync::atomic::AtomicU64;

    use super::Damage;

    pub(super) const IS_KNOWN: bool = false;
    pub(super) const TEXT: &str = "Registers over a preemption are not checked on this architecture.";

    pub(super) fn hold_until(_: &AtomicU64) -> Damage {
        Damage::default()
    }

    pub(super) fn overwrite() {}
}
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;

/// The registers that have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Damage {
    flags: bool,
    general: bool,
    vector: bool,
    rounding: bool,
}

impl Damage {
    /// Describes the damage; without damage, in the words of the rule.
    fn describe(self) -> String {
        let all = [
            (self.flags, "flags"),
            (self.general, "general registers"),
            (self.vector, "vector registers"),
            (self.rounding, "rounding mode"),
        ];
        let changed: Vec<&str> = all.iter().filter(|(changed, _)| *changed).map(|(_, name)| *name).collect();
        match changed.is_empty() {
            true => PRESERVED.expected.into(),
            false => format!("changed: {}", changed.join(", ")),
        }
    }
}

const PRESERVED: Rule =
    Rule { slug: "registers", text: arch::TEXT, expected: "all as they were", needs_fifo: false };

/// The time limit of the loop, in case the preemption does not happen.
const PREEMPTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The value that the preempting side writes: nonzero.
const PREEMPTED: u64 = 1;
/// The value that the watchdog writes if the preemption did not happen.
const NOT_PREEMPTED: u64 = 2;

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("registers over a preemption, tasks", |session| {
            if !arch::IS_KNOWN {
                return session.note(arch::TEXT);
            }
            let mut seen = Seen::default();
            for _ in 0..runs(session).min(16) {
                let flag = Arc::new(AtomicU64::new(0));
                let result = Arc::new(OnceLock::new());
                let config = punctual::Config::new().cpu(session.plan.cpu);
                let run = with_watchdog(&flag, || app::run(config, flag.clone(), result.clone()));
                if let Err(error) = run {
                    return session.note(format!("Registers of tasks were not checked: {error}"));
                }
                let damage = result.get().copied();
                seen.add(damage.map_or("it did not run".into(), |damage| {
                    describe(damage, flag.load(Ordering::Acquire))
                }));
            }
            PRESERVED.check_of(session, Subject::Punctual, &seen);
        }),
        Step::new("registers over a preemption, threads", |session| {
            if !arch::IS_KNOWN {
                return;
            }
            let mut seen = Seen::default();
            for _ in 0..runs(session).min(16) {
                seen.add(threads(session));
            }
            PRESERVED.check_of(session, Subject::Posix, &seen);
        }),
    ]
}

/// Runs two threads on one CPU, of which the higher one sleeps first.
fn threads(session: &Session<'_>) -> String {
    let cpu = session.plan.cpu;
    let flag = AtomicU64::new(0);
    let damage = with_watchdog(&flag, || {
        std::thread::scope(|scope| {
            let high = rt::spawn(scope, || {
                rt::enter(cpu, rt::PRIORITY + 1);
                rt::sleep(Duration::from_millis(2));
                arch::overwrite();
                flag.compare_exchange(0, PREEMPTED, Ordering::AcqRel, Ordering::Relaxed).ok();
            });
            let low = rt::spawn(scope, || {
                rt::enter(cpu, rt::PRIORITY);
                arch::hold_until(&flag)
            });
            rt::join(high);
            rt::join(low)
        })
    });
    describe(damage, flag.load(Ordering::Acquire))
}

/// Runs `body`, and ends its loop from an ordinary thread if nothing else does.
fn with_watchdog<R>(flag: &AtomicU64, body: impl FnOnce() -> R) -> R {
    let (ended, end) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        rt::spawn(scope, move || {
            // The other end is dropped when the body has ended.
            if end.recv_timeout(PREEMPTION_TIMEOUT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                flag.compare_exchange(0, NOT_PREEMPTED, Ordering::AcqRel, Ordering::Relaxed).ok();
            }
        });
        let result = body();
        drop(ended);
        result
    })
}

fn describe(damage: Damage, flag: u64) -> String {
    if flag == NOT_PREEMPTED { "there was no preemption".into() } else { damage.describe() }
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use super::*;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        flag: Arc<AtomicU64>,
    }

    #[local]
    struct Local {
        result: Arc<OnceLock<Damage>>,
    }

    #[init]
    fn init(_: init::Context, flag: Arc<AtomicU64>, result: Arc<OnceLock<Damage>>) -> (Shared, Local) {
        preempts::spawn_after(2.millis()).expect("it is spawned once");
        holds::spawn().expect("it is spawned once");
        (Shared { flag }, Local { result })
    }

    #[task(priority = 1, shared = [&flag], local = [result])]
    fn holds(cx: holds::Context) {
        // Succeeds, since the task runs once.
        let _ = cx.local.result.set(arch::hold_until(cx.shared.flag));
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [&flag])]
    fn preempts(cx: preempts::Context) {
        arch::overwrite();
        cx.shared.flag.compare_exchange(0, PREEMPTED, Ordering::AcqRel, Ordering::Relaxed).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_kind_of_damage() {
        let damage = Damage { flags: true, vector: true, ..Damage::default() };
        assert_eq!(damage.describe(), "changed: flags, vector registers");
        assert_eq!(describe(Damage::default(), PREEMPTED), PRESERVED.expected);
        assert_eq!(describe(Damage::default(), NOT_PREEMPTED), "there was no preemption");
    }
}
