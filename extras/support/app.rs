//! An app in the process of the test, which receives setpoints.

use std::sync::mpsc::{Receiver, channel};

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Incoming, Running, TransportServer};

pub(crate) static SETPOINT: Incoming<Vector3> =
    Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// Starts the app with the topics of `bridge` and [`SETPOINT`]; returns the received messages.
pub(crate) fn start(name: &str, bridge: Bridge) -> (Running, Receiver<Vector3>) {
    let (seen, came) = channel();
    let within = |wanted: &Vector3| match wanted.x.abs() <= 2.5 {
        true => Ok(()),
        false => Err(format!("x is {}", wanted.x)),
    };
    let subscription = SETPOINT.subscribe().unwrap().check(within);
    let subscription = subscription.release(move |wanted| seen.send(wanted).is_ok());
    let server = TransportServer::new(name).subscribe(subscription);
    (bridge.transports(server).start().expect("it can start"), came)
}
