//! Notifications to a service manager: the protocol of `sd_notify`, for units of `Type=notify` with
//! a watchdog.
//!
//! The manager learns that the app is ready after `init`, and that it is stopping. Its watchdog
//! expires unless each measured periodic task ends jobs: a job that never ends, or tasks that get
//! no CPU, make the manager restart the app.

use std::ffi::{OsStr, OsString};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Pause between two checks whether `init` has returned.
const START_INTERVAL: Duration = Duration::from_millis(20);
/// Notifications per timeout of the watchdog. The service manager recommends two; a third keeps an
/// app alive of which one is late.
const PER_TIMEOUT: u32 = 3;

/// A state of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Starting,
    Running,
    Stopping,
}

/// The connection to the service manager.
#[derive(Debug)]
pub(super) struct Service {
    socket: UnixDatagram,
    manager: SocketAddr,
    watchdog: Option<Watchdog>,
    notified: State,
}

impl Service {
    /// Connects to the manager that the environment names, if any.
    pub(super) fn from_environment() -> Option<Self> {
        Self::new(|name| std::env::var_os(name))
    }

    fn new(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let path = variable("NOTIFY_SOCKET")?;
        let manager = match path.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(&path),
        };
        let socket = UnixDatagram::unbound().ok()?;
        // A stalled manager loses notifications and delays nothing.
        socket.set_nonblocking(true).ok()?;
        let number = |name| variable(name).as_deref().and_then(OsStr::to_str)?.parse::<u64>().ok();
        let is_mine = number("WATCHDOG_PID").is_none_or(|process| process == u64::from(std::process::id()));
        let timeout = number("WATCHDOG_USEC").filter(|&timeout| timeout > 0 && is_mine);
        let watchdog = timeout.map(|timeout| Watchdog::new(Duration::from_micros(timeout)));
        Some(Self { socket, manager: manager.ok()?, watchdog, notified: State::Starting })
    }

    /// The periodic tasks with this period or a shorter one show that the app is alive.
    pub(super) fn longest_period(&self) -> Option<Duration> {
        self.watchdog.as_ref().map(|watchdog| watchdog.interval)
    }

    /// Notifies the manager, if there is news; returns the longest pause until the next call.
    /// `jobs` returns the number of jobs of each task that shows that the app is alive.
    pub(super) fn update(&mut self, state: State, now: Instant, jobs: impl FnOnce() -> Vec<u64>) -> Duration {
        if state > self.notified {
            self.notified = state;
            if let Some(watchdog) = &mut self.watchdog {
                watchdog.checked = None;
            }
            self.send(if state == State::Running { "READY=1" } else { "STOPPING=1" });
        }
        match (state, &mut self.watchdog) {
            (State::Starting, _) => START_INTERVAL,
            (State::Running | State::Stopping, Some(watchdog)) => {
                // Time limits of the stop are the manager's `TimeoutStopSec`: no job has to end.
                let jobs = || if state == State::Running { jobs() } else { Vec::new() };
                let (is_alive, pause) = watchdog.check(now, jobs);
                if is_alive {
                    self.send("WATCHDOG=1");
                }
                pause
            }
            (_, None) => Duration::MAX,
        }
    }

    fn send(&self, text: &str) {
        // A manager that has gone needs no notification.
        let _ = self.socket.send_to_addr(text.as_bytes(), &self.manager);
    }
}

/// Compares the jobs at regular checks.
#[derive(Debug)]
struct Watchdog {
    interval: Duration,
    checked: Option<Instant>,
    jobs: Vec<u64>,
}

impl Watchdog {
    fn new(timeout: Duration) -> Self {
        Self { interval: timeout / PER_TIMEOUT, checked: None, jobs: Vec::new() }
    }

    /// Returns whether the manager is to be notified, and the time until the next check.
    fn check(&mut self, now: Instant, jobs: impl FnOnce() -> Vec<u64>) -> (bool, Duration) {
        let since = self.checked.map_or(self.interval, |checked| now.saturating_duration_since(checked));
        if since < self.interval {
            return (false, self.interval - since);
        }
        let jobs = jobs();
        // A task whose first job is far in the future has none.
        let is_stuck = |(now, before): (&u64, &u64)| *before > 0 && now == before;
        let is_alive = !jobs.iter().zip(&self.jobs).any(is_stuck);
        (self.checked, self.jobs) = (Some(now), jobs);
        (is_alive, self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    #[test]
    fn watchdog_expires_if_one_task_ends_no_job() {
        let mut watchdog = Watchdog::new(3 * INTERVAL);
        let mut now = Instant::now();
        let mut check = |jobs: [u64; 2]| {
            now += INTERVAL;
            watchdog.check(now, || jobs.to_vec())
        };
        for (jobs, is_alive) in
            [([0, 0], true), ([5, 0], true), ([6, 0], true), ([7, 1], true), ([8, 1], false), ([9, 2], true)]
        {
            assert_eq!(check(jobs), (is_alive, INTERVAL), "{jobs:?}");
        }
    }

    #[test]
    fn watchdog_reads_jobs_once_per_interval() {
        let mut watchdog = Watchdog::new(3 * INTERVAL);
        let begin = Instant::now();
        assert_eq!(watchdog.check(begin, || vec![1]), (true, INTERVAL));
        let third = INTERVAL / 4;
        assert_eq!(watchdog.check(begin + third, || panic!("too early")), (false, INTERVAL - third));
    }

    #[test]
    fn ignores_watchdog_of_other_process() {
        let service = |process: &str| {
            let variable = |name: &str| match name {
                "NOTIFY_SOCKET" => Some("@punctual-service-test".into()),
                "WATCHDOG_USEC" => Some("3000000".into()),
                "WATCHDOG_PID" => Some(process.into()),
                _ => None,
            };
            Service::new(variable).unwrap().longest_period()
        };
        assert_eq!(service("1"), None);
        assert_eq!(service(&std::process::id().to_string()), Some(Duration::from_secs(1)));
        assert!(Service::new(|_| None).is_none());
    }
}
