//! Positions a drive on a CAN bus.
//!
//!     canopen can0     # node 5, whose first PDOs hold velocity and position (32 bits each)
//!     canopen          # a simulated drive
//!
//! On a virtual bus (`ip link add vcan0 type vcan`), `canopen vcan0 --drive` is the drive.

use std::process::ExitCode;
use std::sync::Arc;

use canopen::simulated::{Drive, Faults};
use canopen::socket::CanSocket;
use canopen::{Counts, app};
use punctual::Config;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bus = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let (bus, other) = CanSocket::pair()?;
            Drive::start(other, Faults::default())?;
            bus
        }
        [interface] => CanSocket::open(interface)?,
        [interface, "--drive"] => {
            let state = Drive::start(CanSocket::open(interface)?, Faults::default())?.join();
            println!("{state:?}");
            return Ok(ExitCode::SUCCESS);
        }
        _ => return Err("the arguments are [INTERFACE [--drive]], as in can0".into()),
    };
    let counts = Arc::<Counts>::default();
    let report = app::run(Config::from_env(), bus, Arc::clone(&counts), 1_000, 500)?;
    print!("{report}");
    println!("{counts:?}");
    Ok(report.exit_code().into())
}
