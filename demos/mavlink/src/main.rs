//! Flies a square by offboard control.
//!
//!     offboard                     # a simulated autopilot
//!     offboard 127.0.0.1:14580     # the simulator of PX4, whose autopilot sends to port 14540

use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use offboard::link::{AUTOPILOT, COMPANION, Link, UdpLink};
use offboard::simulated::{Autopilot, Faults, SimulatedLink};
use offboard::{Flight, app};
use punctual::Config;

const SQUARE: [[f32; 3]; 4] = [[0.0, 0.0, -5.0], [5.0, 0.0, -5.0], [5.0, 5.0, -5.0], [0.0, 5.0, -5.0]];

/// Port to which the simulator of PX4 sends.
const OWN_PORT: u16 = 14540;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let link: Box<dyn Link> = match std::env::args().nth(1) {
        Some(address) => {
            let peer: SocketAddr = address
                .parse()
                .map_err(|error| format!("`{address}`: {error}; pass an address such as 127.0.0.1:14580"))?;
            let socket = UdpSocket::bind(("0.0.0.0", OWN_PORT)).map_err(|error| {
                format!("cannot bind UDP port {OWN_PORT}: {error}; end the program that uses it")
            })?;
            socket.connect(peer)?;
            Box::new(UdpLink::new(socket, COMPANION, AUTOPILOT)?)
        }
        None => Box::new(SimulatedLink::new(Arc::new(Mutex::new(Autopilot::new(Faults::default()))))),
    };
    let flight = Arc::<Flight>::default();
    let report = app::run(Config::from_env(), link, SQUARE.to_vec(), Arc::clone(&flight))?;
    print!("{report}");
    match flight.end.get() {
        Some(Ok(())) => println!("the vehicle has flown and landed"),
        Some(Err(failure)) => {
            eprintln!("the mission has failed: {failure}");
            return Ok(ExitCode::FAILURE);
        }
        None => println!("the mission has been stopped"),
    }
    Ok(report.exit_code().into())
}
