//! The guard: what jobs must not do is found, with the task, the call and the stack; what they may do is not; and where it cannot look
//! it says so.
//!
//! Each case is a process of its own, for it prints, and sets a logger. Real time and virtual, with privileges and without.
#![cfg(all(feature = "async", feature = "guard"))]

#[path = "../support/privileges.rs"]
mod privileges;
#[path = "../support/process.rs"]
mod process;

mod clean;
mod ends;
mod nested;
mod wrong;

use punctual::config::{Config, Guard};
use punctual::guard::Allocator;

use process::Ended;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::system();

/// Whether the guard sees system calls of this machine.
const DISPATCHES: bool = cfg!(target_arch = "x86_64");
/// What it says where it does not.
const UNSEEN: &str = "the guard does not see system calls";

/// What a program runs with.
const TIMES: [&str; 2] = ["linux", "virtual"];

/// The program's settings: the time that the test has chosen, guarded.
fn config(guard: Guard) -> Config {
    Config::from_env().until(punctual::Duration::from_secs(60)).guard(guard)
}

/// Runs the program `path` with this case in both kinds of time, as this user and as an ordinary one; says whether functions have names:
/// whoever cannot read the executable, as an ordinary user perhaps, has none.
fn each(path: &str, case: &str, mut look: impl FnMut(&Ended, bool)) {
    let executable = std::env::current_exe().expect("a process knows its executable");
    let readable = std::fs::File::open(executable).is_ok();
    for time in TIMES {
        let mut program = process::program(path);
        program.env("CASE", case).env("PUNCTUAL_PORT", time);
        let commands = privileges::with_and_without(program);
        for (command, named) in commands.into_iter().zip([readable, false]) {
            let ended = process::start(command).end();
            if ended.output.contains(UNSEEN) {
                println!("NOT TESTED: {case}: {UNSEEN}");
                assert!(
                    !DISPATCHES || ended.output.contains("PR_SET_SYSCALL_USER_DISPATCH"),
                    "{}",
                    ended.output
                );
                continue;
            }
            look(&ended, named);
        }
    }
}

/// Whether the output has a line with all of these.
fn has_line(ended: &Ended, words: &[&str]) -> bool {
    ended.output.lines().any(|line| words.iter().all(|word| line.contains(word)))
}
