//! Runs a program without Linux on a CPU that Linux gives up meanwhile, alone or as one half of an app whose other half is a program of
//! Linux's.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_isolate::cpus::Cpus;
use punctual_isolate::offline::{Device, DeviceError, Image, Options, State, check, give_up, hand_over};
use punctual_isolate::tree::Tree;
use punctual_process::child::BoundedChild;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{FAILED, Place};
use crate::output::say;

/// How often what the program prints is shown.
const SHOWN: Duration = Duration::from_millis(50);

/// How often is looked after both halves of an app, of which the one on Linux has the bell.
const LOOKED: Duration = Duration::from_millis(10);

/// So long a program may do without its own sign of life before that is said.
const SILENT: Duration = Duration::from_secs(2);

/// So long a half on Linux may have been asked to end already by the same Ctrl-C, before it is asked again: a signal that comes at the end of
/// its run would end it without its report.
const ALSO_ASKED: Duration = Duration::from_millis(500);

/// How long the half on Linux has to end when the other one has, beyond the grace of that.
const LINUX: Duration = Duration::from_secs(10);

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
    let [path, half @ ..] = command else {
        return Err("--offline takes the file of a program".into());
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
    // First, since nothing has changed if there is no such program; it waits for the other half.
    let mut half = Half::start(&device, half)?;
    let _journal = give_up(cpu, &place.store, &mut place.settings).map_err(|error| error.to_string())?;
    let ended = device
        .start(&image, cpu, options)
        .map_err(|error| format!("{}: {error}", path.display()))
        .and_then(|()| follow(&mut device, &end, &mut half, options).map_err(|error| error.to_string()));
    let of_half = half.end(match ended {
        Ok(_) => options.grace + LINUX,
        Err(_) => Duration::ZERO,
    });
    // Closed before the CPU comes back: an image that runs keeps it away.
    drop(device);
    let given_back = place.give_back();
    let code = ended?.max(of_half?);
    match given_back? {
        0 => Ok(code),
        failed => Ok(failed.max(code)),
    }
}

/// The half of an app that runs on Linux, if there is one.
struct Half {
    process: Option<Child>,
    ended: Option<ExitStatus>,
}

impl Half {
    fn start(device: &Device, command: &[OsString]) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(Self { process: None, ended: None });
        };
        let mut command = Command::new(program);
        command.args(arguments);
        hand_over(device, &mut command);
        let process = command.spawn().map_err(|error| {
            format!(
                "{}: {error}; after the program for the CPU comes the half of the app that runs on Linux, if it has one",
                program.display()
            )
        })?;
        Ok(Self { process: Some(process), ended: None })
    }

    fn is_there(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it runs no more.
    fn has_ended(&mut self) -> bool {
        if let Some(process) = &mut self.process
            && self.ended.is_none()
        {
            // Who cannot be asked is no child of ours, and so has ended.
            self.ended = process.try_wait().unwrap_or_default();
        }
        self.ended.is_some()
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process.as_ref().filter(|_| self.ended.is_none()) {
            // It has not been waited for, so the number is its own.
            let _ = kill_process(Pid::from_child(process), signal);
        }
    }

    /// Waits for its end, at most so long; returns its exit code.
    fn end(&mut self, most: Duration) -> Result<u8, String> {
        let begun = Instant::now();
        if !self.is_there() {
            return Ok(0);
        }
        while !self.has_ended() && begun.elapsed() < most {
            thread::sleep(LOOKED);
        }
        if !self.has_ended() {
            if let Some(process) = &mut self.process {
                self.ended = process.end_at_once().unwrap_or_default();
            }
            if most > Duration::ZERO {
                say!("error: the half on Linux did not end within {} s, and was killed", most.as_secs());
            }
        }
        let status = self.ended.ok_or("the half on Linux does not end at SIGKILL")?;
        Ok(match status.code() {
            Some(code) => u8::try_from(code).unwrap_or(FAILED),
            None => {
                if most > Duration::ZERO {
                    say!("error: the half on Linux: {status}");
                }
                FAILED
            }
        })
    }
}

impl Drop for Half {
    /// If the CPU could not be had, nobody else ends it.
    fn drop(&mut self) {
        if let Some(process) = self.process.as_mut().filter(|_| self.ended.is_none()) {
            let _ = process.end_at_once();
        }
    }
}

/// Shows what the program prints until it has ended, and asks it to if a signal comes, or its other half has ended without it. Returns
/// its code.
fn follow(
    device: &mut Device,
    end: &AtomicBool,
    half: &mut Half,
    options: Options,
) -> Result<u8, DeviceError> {
    let (mut beat, mut heard, mut said) = (0, Instant::now(), false);
    let (mut asked, mut told) = (None::<Instant>, false);
    let code = loop {
        match half.is_there() {
            true => thread::sleep(LOOKED),
            false => _ = device.wait(SHOWN),
        }
        let half_ended = half.has_ended();
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
        let is_to_end = end.load(Ordering::Relaxed);
        if is_to_end && half.is_there() {
            // The half on Linux tells the other one, and reports for both.
            let since = *asked.get_or_insert_with(Instant::now);
            if since.elapsed() > ALSO_ASKED && !told {
                half.signal(Signal::TERM);
                told = true;
            }
        }
        if half_ended || is_to_end && asked.is_none_or(|asked| asked.elapsed() > ALSO_ASKED + options.grace) {
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
