//! Two connected GPIO lines: a level written to one arrives at the other as an edge.
//!
//! The lines are real and connected by a wire, or simulated by the kernel (gpio-sim). A simulated
//! chip is a kernel setting: it is removed on drop, and the next run removes one left by a killed
//! run. The module is not loaded for this purpose, because it would stay loaded.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, Value};
use punctual_files::Owned;

use crate::tracefs::mount_privately;

/// Two connected lines of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpioLines {
    chip: String,
    output: u32,
    input: u32,
}

impl FromStr for GpioLines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let lines = match parts.as_slice() {
            [chip, output, input] if !chip.is_empty() => output
                .parse()
                .ok()
                .zip(input.parse().ok())
                .map(|(output, input)| Self { chip: (*chip).to_owned(), output, input }),
            _ => None,
        };
        lines.filter(|lines| lines.output != lines.input).ok_or_else(|| {
            "give a chip, the line to write and another one to read, such as gpiochip0:17:27".into()
        })
    }
}

/// The line at which edges arrive.
#[derive(Debug)]
pub(crate) struct Input(Request);

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Input {
    fn open(chip: &Path, line: u32) -> Result<Self, String> {
        let mut builder = Request::builder();
        builder.with_consumer("punctual bench").on_chip(chip).with_line(line).as_input();
        builder.with_edge_detection(EdgeDetection::RisingEdge);
        builder.request().map(Self).map_err(|error| format!("{}, line {line}: {error}", chip.display()))
    }

    /// Returns `true` if an edge arrives within `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        self.0.wait_edge_event(timeout).unwrap_or(false)
    }

    /// Returns the time, on `CLOCK_MONOTONIC`, at which the kernel handled the next edge, which has
    /// arrived.
    pub(crate) fn read_ns(&self) -> Option<u64> {
        self.0.read_edge_event().ok().map(|event| event.timestamp_ns)
    }
}

/// The line that generates edges.
#[derive(Debug)]
pub(crate) struct Output(Source);

#[derive(Debug)]
enum Source {
    Line(Request, u32),
    /// The file that drives a simulated line, and the guard of the simulation.
    Pull(File, #[expect(dead_code, reason = "it is dropped")] Simulated),
}

impl Output {
    /// Generates a rising edge, or the falling one that must precede the next.
    pub(crate) fn set(&self, up: bool) -> io::Result<()> {
        match &self.0 {
            Source::Line(request, line) => {
                let value = if up { Value::Active } else { Value::Inactive };
                request.set_value(*line, value).map(drop).map_err(io::Error::other)
            }
            Source::Pull(file, _) => {
                let pull: &[u8] = if up { b"pull-up" } else { b"pull-down" };
                rustix::io::pwrite(file, pull, 0)?;
                Ok(())
            }
        }
    }
}

/// Opens the requested lines, or simulated ones.
pub(crate) fn open(lines: Option<&GpioLines>) -> Result<(Output, Input), String> {
    let Some(GpioLines { chip, output, input }) = lines else { return simulate() };
    let chip = if chip.contains('/') { PathBuf::from(chip) } else { Path::new("/dev").join(chip) };
    let mut builder = Request::builder();
    builder.with_consumer("punctual bench").on_chip(&chip).with_line(*output).as_output(Value::Inactive);
    let request = builder.request().map_err(|error| format!("{}, line {output}: {error}", chip.display()))?;
    Ok((Output(Source::Line(request, *output)), Input::open(&chip, *input)?))
}

const PREFIX: &str = "punctual-gpio-";

/// A simulated chip, removed on drop.
#[derive(Debug)]
struct Simulated {
    directory: Owned,
    /// Keeps the private mount of the file system.
    _mount: Option<OwnedFd>,
}

fn simulate() -> Result<(Output, Input), String> {
    let place = Path::new("/sys/kernel/config");
    let (base, mount) = if place.join("gpio-sim").is_dir() {
        (place.to_owned(), None)
    } else {
        let mounted = mount_privately("configfs").ok().filter(|(path, _)| path.join("gpio-sim").is_dir());
        let missing = "no GPIO line: this kernel has no gpio-sim or has not loaded it (modprobe gpio-sim, as root), \
                       and no lines were named";
        mounted.map(|(path, mount)| (path, Some(mount))).ok_or(missing)?
    };
    let chips = base.join("gpio-sim");
    Owned::abandoned(&chips, PREFIX).iter().for_each(|directory| remove(directory.path()));
    let directory = Owned::create(&chips, PREFIX);
    let directory = directory.map_err(|error| format!("gpio-sim: {}: {error}", chips.display()))?;
    let simulated = Simulated { directory, _mount: mount };
    let (chip, pull) =
        simulated.set_up().map_err(|error| format!("gpio-sim refused its settings: {error}"))?;
    let pull = File::options().write(true).open(pull).map_err(|error| format!("gpio-sim: {error}"))?;
    let input = Input::open(&chip, 0)?;
    Ok((Output(Source::Pull(pull, simulated)), input))
}

impl Simulated {
    /// Creates a chip with one line; returns its device and the file that drives the line.
    fn set_up(&self) -> io::Result<(PathBuf, PathBuf)> {
        let directory = self.directory.path();
        let bank = directory.join("bank");
        fs::create_dir(&bank)?;
        fs::write(bank.join("num_lines"), "1")?;
        fs::write(directory.join("live"), "1")?;
        let text = |path: PathBuf| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let (device, chip) = (text(directory.join("dev_name"))?, text(bank.join("chip_name"))?);
        let pull = format!("/sys/devices/platform/{device}/{chip}/sim_gpio0/pull");
        Ok((Path::new("/dev").join(chip), pull.into()))
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        remove(self.directory.path());
    }
}

/// Deactivates and removes a simulated chip, even if it was set up only in part.
fn remove(directory: &Path) {
    let _ = fs::write(directory.join("live"), "0");
    let _ = fs::remove_dir(directory.join("bank"));
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_chip_and_two_line_numbers() {
        let lines = GpioLines { chip: "gpiochip0".into(), output: 17, input: 27 };
        assert_eq!("gpiochip0:17:27".parse(), Ok(lines));
        for nonsense in ["", "gpiochip0", "gpiochip0:1", ":1:2", "gpiochip0:1:1", "gpiochip0:a:2", "a:1:2:3"]
        {
            assert!(nonsense.parse::<GpioLines>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn names_missing_gpio_chip() {
        let lines = "no-such-chip:1:2".parse().unwrap();
        assert!(open(Some(&lines)).unwrap_err().starts_with("/dev/no-such-chip, line 1: "));
    }
}
