//! What the tests of nodes share: how a node is started, what it takes, and which threads it has.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Incoming, Running, Subscription};

pub(crate) static SETPOINT: Incoming<Vector3> =
    Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// Starts a node that takes [`SETPOINT`] as a real-time thread of another library would, if that is granted: its bridge, and
/// what comes in.
pub(crate) fn start(
    connect: impl FnOnce(Subscription<Vector3>) -> Running + Send + 'static,
) -> (Running, Receiver<Vector3>) {
    let (seen, came) = channel();
    let within = |wanted: &Vector3| match wanted.x.abs() <= 2.5 {
        true => Ok(()),
        false => Err(format!("x is {}", wanted.x)),
    };
    let subscription = SETPOINT.subscribe().unwrap().check(within);
    let subscription = subscription.release(move |wanted| seen.send(wanted).is_ok());
    let start = move || {
        let parameter = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameter lives through the call, which is about this thread.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } != 0 {
            eprintln!("*** SKIPPED: NO REAL-TIME PRIORITY THAT COULD BE PASSED ON ***");
        }
        connect(subscription)
    };
    (thread::spawn(start).join().expect("it starts"), came)
}

/// The threads of this process that are not ordinary: name and policy.
pub(crate) fn of_real_time() -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("it is there");
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let policy = |stat: String| {
        // Behind the name, which may have spaces: the policy is the 41st field of all.
        let (name, behind) = stat.rsplit_once(')').expect("the name is in parentheses");
        (name.to_owned(), behind.split_whitespace().nth(38).expect("there are more fields").to_owned())
    };
    stats.map(policy).filter(|(_, policy)| policy != "0").collect()
}
