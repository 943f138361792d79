//! Functions for tests of nodes: starting a node, its check of messages, and its threads.

#[path = "../../crates/punctual-bridge/tests/support/threads.rs"]
mod threads;

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Incoming, Running, Subscription};
use test_skip::{Need, skip};
use threads::Thread;

pub(crate) static SETPOINT: Incoming<Vector3> =
    Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// Starts a node that subscribes to [`SETPOINT`] from a real-time thread, as an app would, if
/// permitted; returns its bridge and the received messages.
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
        // SAFETY: the parameter outlives the call, which concerns this thread.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } != 0 {
            skip(Need::RealTime, "no thread inherits a real-time priority");
        }
        connect(subscription)
    };
    (thread::spawn(start).join().expect("it starts"), came)
}

/// Returns the threads of this process that have a real-time policy.
pub(crate) fn of_real_time() -> Vec<Thread> {
    threads::all().into_iter().filter(|thread| thread.policy != "0").collect()
}
