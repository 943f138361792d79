//! The worker process, in which the network library runs.

use std::io;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use punctual_process::limits::{Resource, lower_limit_of};
use punctual_process::{scheduling, signals};

use crate::print;

/// The pause before a restart: short, because the app keeps about a second of messages.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// The pause if two workers in a row lived for less than `SHORT_LIFE`.
const LONG_PAUSE: Duration = Duration::from_secs(1);
const SHORT_LIFE: Duration = Duration::from_secs(5);

/// Signals by which users end a program.
const ENDING: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Runs `work` in a child with limited memory, and again whenever a signal has killed it. Returns
/// its exit status.
///
/// This process must have a single thread.
pub(crate) fn supervise(name: &str, memory_bytes: u64, work: impl FnOnce() -> ExitCode) -> ExitCode {
    // It may have been started by a real-time thread, whose policy and dispositions it inherits.
    if let Err(error) = scheduling::set_policy(libc::SCHED_OTHER, 0) {
        print(name, format_args!("cannot leave the real-time policy of the parent: {error}"));
    }
    signals::keep_exit_statuses();
    let parent = std::process::id();
    let (mut restarts, mut was_short) = (0_u64, false);
    loop {
        let begun = Instant::now();
        // SAFETY: this process has a single thread, so the child has no lock held by another.
        let child = match unsafe { libc::fork() } {
            0 => {
                return match confine(parent, memory_bytes) {
                    Ok(()) => work(),
                    Err(error) => {
                        print(name, format_args!("cannot limit resources: {error}"));
                        ExitCode::FAILURE
                    }
                };
            }
            child => child,
        };
        let signal = match wait(child) {
            Ok(status) if libc::WIFSIGNALED(status) => libc::WTERMSIG(status),
            Ok(status) => return u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(1).into(),
            Err(error) => {
                print(name, format_args!("cannot run a worker process: {error}"));
                return ExitCode::FAILURE;
            }
        };
        let cause = signals::name(signal);
        if ENDING.contains(&signal) {
            print(name, format_args!("ended by {cause}"));
            return ExitCode::from(128 + signal as u8);
        }
        restarts += 1;
        print(name, format_args!("killed by {cause}; restarts ({restarts} times so far)"));
        let is_short = begun.elapsed() < SHORT_LIFE;
        sleep(if is_short && was_short { LONG_PAUSE } else { RESTART_PAUSE });
        was_short = is_short;
    }
}

/// Waits until the child has ended, which may never happen; fails also if there is no child, -1.
fn wait(child: libc::pid_t) -> io::Result<libc::c_int> {
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    loop {
        #[allow(clippy::disallowed_methods, reason = "a worker runs as long as its app")]
        // SAFETY: the pointer is valid for the call, which writes the status.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Limits the resources of this process, ties it to its parent, and makes panics fatal.
fn confine(parent: u32, memory_bytes: u64) -> io::Result<()> {
    // Core dumps would fill a disk.
    for (resource, bytes) in [(Resource::Data, memory_bytes), (Resource::CoreFile, 0)] {
        lower_limit_of(std::process::id(), resource, bytes)?;
    }
    // SAFETY: the call takes integers.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::other("the parent has ended"));
    }
    // A network library without one of its threads may be silent forever.
    let print_panic = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print_panic(panic);
        std::process::abort();
    }));
    Ok(())
}
