//! Plays the input of a sound card at half its volume.
//!
//!     audio              # a minute of virtual time, with a simulated card that is 100 ppm fast
//!     audio --unlocked   # the same on the machine's clock, with an underrun every 20 s
//!     audio hw:0,0       # a card, until Ctrl-C

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use audio::card::Card;
use audio::simulated::{Faults, SimulatedCard};
use audio::{Counts, app};
use punctual::Config;

const SIMULATED: Faults = Faults { ppm: 100, stops_at: None, unplugged_at: None };

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    let is_locked = argument.as_deref() != Some("--unlocked");
    let (config, card) = match argument.as_deref() {
        None | Some("--unlocked") => {
            let config = Config::from_env().virtual_time().until(Duration::from_secs(60));
            (config, Box::new(SimulatedCard::new(SIMULATED, None)) as Box<dyn Card>)
        }
        Some(name) => (Config::from_env(), open(name)?),
    };
    let counts = Arc::<Counts>::default();
    let report = app::run(config, card, is_locked, Arc::clone(&counts))?;
    print!("{report}");
    let [periods, underruns, overruns] =
        [&counts.periods, &counts.underruns, &counts.overruns].map(|count| count.load(Relaxed));
    println!("{periods} periods, {underruns} underruns, {overruns} overruns");
    if let Some(clock) = report.task("exchange").and_then(|task| task.clock) {
        match clock.drift_ppb {
            Some(ppb) => println!("sample clock: {:?}, {:+.1} ppm", clock.state, ppb as f64 / 1e3),
            None => println!("sample clock: no reading"),
        }
    }
    match counts.failure.get() {
        Some(&failure) => Err(failure.into()),
        None => Ok(report.exit_code().into()),
    }
}

/// Opens the card `hw:CARD,DEVICE`.
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
fn open(name: &str) -> Result<Box<dyn Card>, Box<dyn std::error::Error>> {
    let numbers = name.strip_prefix("hw:").and_then(|numbers| numbers.split_once(','));
    let numbers = numbers.and_then(|(card, device)| Some((card.parse().ok()?, device.parse().ok()?)));
    let Some((card, device)) = numbers else {
        return Err(format!("`{name}` is no card; pass its numbers, as in hw:0,0, or --unlocked").into());
    };
    Ok(Box::new(audio::kernel::KernelCard::open(card, device)?))
}

/// `audio::kernel` has the structures and samples of 64-bit little-endian machines.
#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
fn open(name: &str) -> Result<Box<dyn Card>, Box<dyn std::error::Error>> {
    Err(format!("cannot open `{name}`: this machine is 32-bit or big-endian; use another one").into())
}
