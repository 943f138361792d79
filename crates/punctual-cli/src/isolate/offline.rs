//! Runs a program without Linux on a CPU that Linux gives up meanwhile.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual_isolate::cpus::Cpus;
use punctual_isolate::offline::{Device, DeviceError, Image, Options, State, check, give_up};
use punctual_isolate::tree::Tree;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{FAILED, Place};
use crate::output::say;

/// How often what the program prints is shown.
const SHOWN: Duration = Duration::from_millis(50);

/// So long a program may do without its own sign of life before that is said.
const SILENT: Duration = Duration::from_secs(2);

pub(super) fn run(
    tree: &Tree,
    cpus: &Cpus,
    options: Options,
    command: &[OsString],
    place: &mut Place,
) -> Result<u8, String> {
    let mut numbers = cpus.iter();
    let (Some(cpu), None) = (numbers.next(), numbers.next()) else {
        return Err(format!("--cpus {cpus}: --offline takes one CPU; a program for it runs on one"));
    };
    let [path] = command else {
        return Err(
            "--offline takes the file of one program, without arguments: nothing there reads them".into()
        );
    };
    check(tree, cpu).map_err(|error| format!("--cpu {cpu}: {error}"))?;
    let file = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let image = Image::read(&file).map_err(|error| format!("{}: {error}", path.display()))?;
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&end))
            .map_err(|error| format!("cannot handle signals: {error}"))?;
    }
    let mut device = Device::open().map_err(|error| error.to_string())?;
    give_up(cpu, &place.store, &mut place.settings).map_err(|error| error.to_string())?;
    let ended = device
        .start(&image, cpu, options)
        .map_err(|error| format!("{}: {error}", path.display()))
        .and_then(|()| follow(&mut device, &end).map_err(|error| error.to_string()));
    // Closed before the CPU comes back: an image that runs keeps it away.
    drop(device);
    let given_back = place.give_back();
    let code = ended?;
    match given_back? {
        0 => Ok(code),
        failed => Ok(failed.max(code)),
    }
}

/// Shows what the program prints until it has ended, and asks it to if a signal comes. Returns its code.
fn follow(device: &mut Device, end: &AtomicBool) -> Result<u8, DeviceError> {
    let (mut beat, mut heard, mut said) = (0, Instant::now(), false);
    let code = loop {
        device.wait(SHOWN);
        let on = device.is_on()?;
        show(device);
        match device.state() {
            State::Ended(code) if !on => break u8::try_from(code).unwrap_or(FAILED),
            State::Faulted(code) if !on => {
                say!("error: the program has failed; Linux takes its CPU back");
                break u8::try_from(code).unwrap_or(FAILED);
            }
            _ if !on => {
                say!("error: the CPU was turned off, but not by the program");
                break FAILED;
            }
            _ => {}
        }
        if device.beat() != beat {
            (beat, heard, said) = (device.beat(), Instant::now(), false);
        } else if heard.elapsed() > SILENT && !said {
            say!("the program has interrupts masked for {} s: it misses its releases", SILENT.as_secs());
            said = true;
        }
        // Asked to end, it prints what it has to say in the end as well.
        if end.load(Ordering::Relaxed) {
            device.stop()?;
        }
    };
    Ok(code)
}

fn show(device: &mut Device) {
    let mut text = Vec::new();
    let missed = device.read(&mut text);
    if missed > 0 {
        say!("{missed} bytes of what it printed were missed");
    }
    let mut stdout = io::stdout().lock();
    // Who does not read has no use for the rest either; the program goes on.
    let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
}
