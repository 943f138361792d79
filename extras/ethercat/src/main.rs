//! Positions drives on EtherCAT.
//!
//!     ethercat eth1            # drives at an interface; needs root or CAP_NET_RAW
//!     ethercat                 # two simulated drives in this process
//!
//! On a pair of interfaces (`ip link add ecat0 type veth peer name ecat1`, both up), `ethercat
//! ecat1 --drives` are the drives of `ethercat ecat0`.

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use ethercat::bus::Bus;
use ethercat::link::{Link, RawSocket};
use ethercat::simulated::{Faults, Network, SimulatedLink, serve};
use ethercat::{Counts, PERIOD, app};
use punctual::Config;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut network = Network::new(2, Faults::default());
    let link: Box<dyn Link> = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Box::new(SimulatedLink::new(Arc::new(Mutex::new(network)))),
        [interface] => Box::new(open(interface)?),
        [interface, "--drives"] => {
            serve(&mut open(interface)?, &mut network)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => return Err("the arguments are [INTERFACE [--drives]], as in eth1".into()),
    };
    let bus = Bus::start(link, PERIOD.into())?;
    let subdevices = bus.subdevices();
    println!("{subdevices} SubDevices");
    let counts = Arc::<Counts>::default();
    let report = app::run(Config::from_env(), bus, Arc::clone(&counts), 1_000, 1_000)?;
    print!("{report}");
    let Counts { exchanges, lost, incomplete, not_operational, protocol, unexpected, .. } = &*counts;
    let [exchanges, lost, incomplete, not_operational, protocol, unexpected] =
        [exchanges, lost, incomplete, not_operational, protocol, unexpected].map(|count| count.load(Relaxed));
    println!(
        "exchanges: {exchanges}, lost: {lost}, incomplete: {incomplete}, unexpected: {unexpected}, \
         not operational: {not_operational}, protocol errors: {protocol}"
    );
    let positions: Vec<_> = counts.positions.iter().take(subdevices).map(|it| it.load(Relaxed)).collect();
    println!("positions {positions:?}");
    if let Some(fault) = counts.reason.get() {
        eprintln!("the bus has failed: {fault:?}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(report.exit_code().into())
}

fn open(interface: &str) -> Result<RawSocket, String> {
    RawSocket::open(interface).map_err(|error| {
        format!(
            "cannot open a packet socket at `{interface}`: {error}; `ip -br link show` lists the interfaces; run as \
             root, or grant CAP_NET_RAW"
        )
    })
}
