//! Privileges of this process, and running a program without them.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use punctual_process::scheduling::set_policy;
pub(crate) use rustix::process::Resource;
use rustix::process::{Rlimit, setrlimit};

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

/// Permission of other users to read and execute a file.
const OTHERS_RUN: u32 = 0o005;

/// Returns whether threads of this process get SCHED_FIFO, by trying.
pub(crate) fn real_time() -> bool {
    // The thread ends right after, and its priority with it.
    let attempt = std::thread::spawn(|| set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1).is_ok());
    attempt.join().expect("trying does not panic")
}

/// Returns the same program without privileges: as another user if this is root, and without
/// real-time priorities.
pub(crate) fn unprivileged(program: &Command) -> Command {
    // SAFETY: the call takes no pointers and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let mut command = match root {
        // By descriptor, because the executable may be accessible only to root.
        true => Command::new(format!("/proc/self/fd/{}", executable())),
        false => Command::new(program.get_program()),
    };
    command.args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if root {
        // Changing from root to another user drops every capability.
        command.uid(NOBODY).gid(NOBODY);
    }
    limit(&mut command, Resource::Rtprio, 0, 0);
    limit(&mut command, Resource::Memlock, 0, 0);
    command
}

/// Sets a resource limit in the process that `command` becomes.
pub(crate) fn limit(command: &mut Command, resource: Resource, soft: u64, hard: u64) {
    let set = move || Ok(setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })?);
    // SAFETY: between fork and exec the closure makes a system call and nothing else.
    unsafe { command.pre_exec(set) };
}

/// CPU time that a real-time thread may use without blocking, in µs: the first limit sends SIGXCPU,
/// the second SIGKILL.
pub(crate) const RUNAWAY: (u64, u64) = (3_000_000, 4_000_000);

/// Makes the kernel end the process that `command` becomes if one of its real-time threads runs
/// away.
pub(crate) fn no_runaways(command: &mut Command) {
    limit(command, Resource::Rttime, RUNAWAY.0, RUNAWAY.1);
}

/// The same for this process, whose other tests may have called it too.
pub(crate) fn no_runaways_here() {
    let limit = Rlimit { current: Some(RUNAWAY.0), maximum: Some(RUNAWAY.1) };
    setrlimit(Resource::Rttime, limit).unwrap();
}

/// Returns `program` unchanged, and without privileges, both with the limit for runaways.
pub(crate) fn with_and_without(mut program: Command) -> [Command; 2] {
    let mut unprivileged = unprivileged(&program);
    [&mut program, &mut unprivileged].into_iter().for_each(no_runaways);
    [program, unprivileged]
}

/// Returns a descriptor of this executable that programs inherit, open as long as this process
/// lives.
fn executable() -> i32 {
    static EXECUTABLE: OnceLock<i32> = OnceLock::new();
    *EXECUTABLE.get_or_init(|| {
        let file = File::open("/proc/self/exe").expect("a process may read its own executable");
        let mut permissions = file.metadata().expect("an open file has permissions").permissions();
        // Built under a strict umask, it is inaccessible to other users.
        if permissions.mode() & OTHERS_RUN != OTHERS_RUN {
            permissions.set_mode(permissions.mode() | OTHERS_RUN);
            file.set_permissions(permissions).expect("the owner, or root, may open it to others");
        }
        // SAFETY: the descriptor is open; its copy does not have the close-on-exec flag.
        let copy = unsafe { libc::dup(file.as_raw_fd()) };
        assert!(copy >= 0, "{}", std::io::Error::last_os_error());
        copy
    })
}
