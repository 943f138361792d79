//! When the command is killed, it leaves nothing in the system except the tracefs instance that it
//! recorded into, which the next start removes.

#[path = "../../punctual/tests/support/leftovers.rs"]
mod leftovers;
mod support;
#[path = "../../punctual/tests/support/tracefs.rs"]
mod tracefs;

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use leftovers::{Before, Moments};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use support::{Scratch, punctual, text};
use test_skip::{Need, skip};

/// Commands, and the time in which each is killed.
const COMMANDS: [(&[&str], Duration); 4] = [
    (&["trace", "record", "-o", "t.dat", "--", "sleep", "0.5"], Duration::from_millis(300)),
    (&["trace", "watch", "--task", "*", "--", "sleep", "0.5"], Duration::from_millis(300)),
    (&["bench", "hourglass", "--duration", "1s"], Duration::from_millis(1_500)),
    // With a load, and a bound on idle states.
    (&["bench", "latency", "--quick", "--only", "eventfd"], Duration::from_millis(1_000)),
];

/// Commands that remove leftovers of the killed ones.
const NEXT: [&[&str]; 2] = [
    &["trace", "record", "-o", "next.dat", "--duration", "0s"],
    &["bench", "hourglass", "--duration", "10ms"],
];

fn start(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = punctual(arguments);
    command.current_dir(&scratch.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn leaves_nothing_behind_when_command_is_killed() {
    let scratch = Scratch::new("killed");
    let is_traced = tracefs::enter().inspect_err(|why| skip(Need::Tracefs, why)).is_ok();
    let mut moments = Moments::new();
    let mut killed = Vec::new();
    for round in 0..leftovers::rounds() {
        let (arguments, longest) = COMMANDS[round as usize % COMMANDS.len()];
        if !is_traced && arguments[0] == "trace" {
            continue;
        }
        let after = moments.next(longest);
        println!("round {round}: {arguments:?} is killed after {after:?}");
        let mut command = start(&scratch, arguments);
        let before = Before::new(&mut command);
        let mut child = command.spawn().expect("the program can be started");
        thread::sleep(after);
        // It may have ended already: then there is nothing left either.
        child.kill().expect("a child that has not been waited for can be killed");
        child.status_within(TEST_LIMIT).expect("a child can be waited for");
        // A command that it has traced ends by itself.
        let left = before.left_by(child.id());
        assert!(left.is_empty(), "round {round}: {arguments:?} was killed after {after:?}: {left:#?}");
        // The pages recorded so far belong to the user, to whom the next start would report them.
        let _ = std::fs::remove_dir_all(scratch.file("t.dat.raw"));
        killed.push(child.id());
    }
    println!("left for the next start: {:?}", leftovers::instances(&killed));
    for arguments in NEXT.iter().filter(|arguments| is_traced || arguments[0] != "trace") {
        let mut command = start(&scratch, arguments);
        let output =
            command.stderr(Stdio::piped()).output_within(TEST_LIMIT).expect("the program can be started");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    }
    let left = leftovers::instances(&killed);
    assert!(left.is_empty(), "{left:?}");
}
