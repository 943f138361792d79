//! Idle states: the deeper a CPU sleeps, the longer its wake-up takes, up to hundreds of µs.
//!
//! The kernel applies a latency bound for all CPUs from every process that has
//! `/dev/cpu_dma_latency` open, and drops it when the file is closed, which includes the death of
//! the process (`Documentation/power/pm_qos_interface.rst`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::port::Nanos;
use punctual_core::Duration;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Exit latency above which a note is worthwhile, in ns: about the remaining latency of a real-time
/// kernel.
const LONG: u64 = 20_000;

/// A bound on the wake-up latency of CPUs, in force until dropped.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// Open while the bound is in force.
    file: Option<File>,
    /// The missing setting, if any.
    pub(crate) missing: Option<String>,
}

impl Bound {
    /// Bounds the wake-up latency to `longest`, rounded down to µs, if given.
    pub(crate) fn new(longest: Option<Duration>) -> Self {
        let Some(longest) = longest else { return Self::default() };
        // Nothing is missing if the CPUs have no idle states to choose from.
        let pointless = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound
                && deepest(Path::new("/sys/devices/system/cpu/cpu0")).is_none()
        };
        match hold(Path::new(DEVICE), longest) {
            Ok(file) => Self { file: Some(file), missing: None },
            Err(error) if pointless(&error) => Self::default(),
            Err(error) => {
                let longest = Nanos(longest.as_ticks());
                let missing = format!(
                    "CPUs may take longer than {longest} to wake up: {DEVICE}: {error}; run as root, or let a udev rule \
                     open it to the user"
                );
                Self { file: None, missing: Some(missing) }
            }
        }
    }

    /// Returns a note on `cpu` if its wake-up may take long.
    pub(crate) fn note(&self, cpu: usize) -> Option<String> {
        let bound = self.file.as_ref().and_then(|file| read_back(file).ok());
        // Other processes may have set a bound.
        let bound = bound.or_else(|| read_back(&File::open(DEVICE).ok()?).ok());
        describe(cpu, deepest(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}"))), bound)
    }
}

fn hold(device: &Path, longest: Duration) -> io::Result<File> {
    let wanted = i32::try_from(longest.as_ticks() / 1_000).unwrap_or(i32::MAX);
    let mut file = File::options().read(true).write(true).open(device)?;
    file.write_all(&wanted.to_ne_bytes())?;
    match read_back(&file)? {
        got if got <= u64::try_from(wanted).unwrap_or(0) * 1_000 => Ok(file),
        got => Err(io::Error::other(format!("the kernel answers {} µs", got / 1_000))),
    }
}

/// Returns the bound in force, from any process, in ns.
fn read_back(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(u64::try_from(i32::from_ne_bytes(bytes)).unwrap_or(0) * 1_000)
}

/// An idle state and its exit latency, in ns.
type State = (String, u64);

/// Returns the deepest enabled state of the CPU with this `directory`.
fn deepest(directory: &Path) -> Option<State> {
    let states = fs::read_dir(directory.join("cpuidle")).ok()?.flatten().filter_map(|state| {
        let read = |name: &str| {
            let mut text = String::new();
            File::open(state.path().join(name)).ok()?.read_to_string(&mut text).ok()?;
            Some(text.trim().to_owned())
        };
        let micros: u64 = read("latency")?.parse().ok()?;
        (read("disable")? == "0").then_some((read("name")?, micros.saturating_mul(1_000)))
    });
    states.max_by_key(|&(_, latency)| latency)
}

fn describe(cpu: usize, deepest: Option<State>, bound: Option<u64>) -> Option<String> {
    let (name, latency) = deepest.filter(|&(_, latency)| latency > LONG)?;
    // A state within the bound has at most the bound's latency.
    if bound.is_some_and(|bound| bound < latency) {
        return None;
    }
    let latency = Nanos(latency);
    Some(format!(
        "CPU {cpu} may rest in {name}, which takes {latency} to leave (bound it with `wake_latency`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a CPU's directory with these states: name, latency in µs, and whether it is
    /// disabled.
    fn cpu(states: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (number, (name, latency, disable)) in states.iter().enumerate() {
            let state = root.path().join(format!("cpuidle/state{number}"));
            fs::create_dir_all(&state).unwrap();
            for (file, text) in [("name", name), ("latency", latency), ("disable", disable)] {
                fs::write(state.join(file), format!("{text}\n")).unwrap();
            }
        }
        root
    }

    #[test]
    fn deepest_enabled_idle_state_counts() {
        let directory = cpu(&[("POLL", "0", "0"), ("C1", "2", "0"), ("C6", "133", "0"), ("C8", "900", "1")]);
        let root = directory.path();
        assert_eq!(deepest(root), Some(("C6".into(), 133_000)));
        fs::write(root.join("cpuidle/state1/latency"), "often").unwrap();
        fs::write(root.join("cpuidle/state2/disable"), "1").unwrap();
        assert_eq!(deepest(root), Some(("POLL".into(), 0)));
        fs::remove_dir_all(root).unwrap();
        assert_eq!(deepest(root), None);
    }

    #[test]
    fn reports_deep_idle_states_within_bounds() {
        let c6 = || Some(("C6".to_owned(), 133_000));
        let note = describe(3, c6(), None).unwrap();
        assert_eq!(note, "CPU 3 may rest in C6, which takes 133 µs to leave (bound it with `wake_latency`)");
        assert!(describe(3, c6(), Some(133_000)).is_some());
        assert_eq!(describe(3, c6(), Some(132_000)), None);
        assert_eq!(describe(3, Some(("C1".into(), 2_000)), None), None);
        assert_eq!(describe(3, None, None), None);
    }

    #[test]
    fn writes_latency_bound_in_microseconds_and_reads_it_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let device = file.path();
        drop(hold(device, Duration::from_ticks(10_999)).unwrap());
        assert_eq!(fs::read(device).unwrap(), 10_i32.to_ne_bytes());
        fs::remove_file(device).unwrap();
        assert_eq!(hold(device, Duration::from_ticks(0)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn latency_bound_applies_until_dropped() {
        let applies = || read_back(&File::open(DEVICE).ok()?).ok();
        let bound = Bound::new(Some(Duration::from_ticks(7_000)));
        match &bound.missing {
            None if bound.file.is_some() => assert!(applies().is_some_and(|applies| applies <= 7_000)),
            None => {}
            Some(missing) => assert!(missing.contains("/dev/cpu_dma_latency: "), "{missing}"),
        }
        drop(bound);
        assert_ne!(applies(), Some(7_000), "no other process requests this value");
        assert!(Bound::new(None).file.is_none());
    }
}
