//! Positions a drive on a CAN bus.
//!
//!     canopen can0     # node 5, whose first PDOs hold velocity and position (32 bits each)
//!     canopen          # a simulated drive
//!
//! On a virtual bus (`ip link add vcan0 type vcan`), `canopen vcan0 --drive` is the drive.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use canopen::simulated::{Drive, Faults};
use canopen::socket::CanSocket;
use canopen::{Counts, app};
use punctual::Config;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bus = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let (bus, other) = CanSocket::pair()?;
            Drive::start(other, Faults::default())?;
            bus
        }
        [interface] => open(interface)?,
        [interface, "--drive"] => {
            let state = Drive::start(open(interface)?, Faults::default())?.join();
            println!("{state:?}");
            return Ok(ExitCode::SUCCESS);
        }
        _ => return Err("the arguments are [INTERFACE [--drive]], as in can0".into()),
    };
    let counts = Arc::<Counts>::default();
    let report = app::run(Config::from_env(), bus, Arc::clone(&counts), 1_000, 500)?;
    print!("{report}");
    let Counts { positions, starts, emergencies, foreign, unsent, lost, position } = &*counts;
    let [positions, starts, emergencies, foreign, unsent, lost] =
        [positions, starts, emergencies, foreign, unsent, lost].map(|count| count.load(Relaxed));
    println!(
        "position {}; {positions} positions received, {starts} starts of the drive, {emergencies} emergencies, \
         {foreign} frames of other nodes, {unsent} frames not sent",
        position.load(Relaxed)
    );
    if lost > 0 {
        eprintln!("the heartbeat of the drive was missing; check the cable and the supply");
        return Ok(ExitCode::FAILURE);
    }
    Ok(report.exit_code().into())
}

fn open(interface: &str) -> Result<CanSocket, String> {
    CanSocket::open(interface).map_err(|error| {
        format!(
            "cannot open the CAN interface `{interface}`: {error}; `ip -br link show` lists the interfaces"
        )
    })
}
