//! The gimbal as a separate process, behind a socket that replaces an SPI device: the controller
//! moves it to its setpoint, and reports an error if there is no gimbal.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::live::{Live, messages};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use tempfile::TempDir;

fn gimbal(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args(arguments).args(["--report", "r.html"]).current_dir(directory).stdin(Stdio::null());
    command
}

fn plant_at(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal-plant"));
    command.arg(socket).stderr(Stdio::piped());
    // SAFETY: one call that may be made between fork and exec, and that reads no memory.
    unsafe {
        // It does not outlive a test that is killed.
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command
}

/// Starts a plant at this socket, which answers; its priority is above the controller's, if
/// permitted.
fn plant(socket: &Path) -> Live {
    let mut child = plant_at(socket).spawn().expect("it can be run");
    let mut printed = String::new();
    let stderr = child.stderr.as_mut().expect("it is piped");
    BufReader::new(stderr).read_line(&mut printed).expect("it says something");
    assert!(printed.starts_with("gimbal-plant: ready at "), "{printed}");
    Live::new(child)
}

/// Returns a steered gimbal at this socket, with a recording in which `is_there` has found the
/// expected angle. Without real-time privileges on a busy machine, the plant may get no CPU for so
/// long that the controller gives up, as intended: in that case it is restarted.
fn steered(place: &TempDir, steer: &[u8], is_there: impl Fn(&[f64]) -> bool) -> Live {
    for attempt in 0..50 {
        let name = format!("r{attempt}.mcap");
        let arguments = ["--spi", "spi", "--seconds", "3600", "--stdin", "--mcap", &name];
        let mut command = gimbal(place.path(), &arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut gimbal = Live::new(command.spawn().expect("it can be run"));
        // The gimbal may have ended.
        let _ = gimbal.child().stdin.take().expect("it is piped").write_all(steer);
        let recording = place.path().join(&name);
        let found = || messages(&recording, "/angles").iter().any(|it| is_there(it)).then_some(());
        match gimbal.wait_or_end(found) {
            Ok(()) => return gimbal,
            Err(_) => {
                let printed = stderr(&mut gimbal);
                assert!(
                    printed.contains("gave up") || printed.contains("the first transfer failed"),
                    "{printed}"
                );
            }
        }
    }
    panic!("the controller gave up 50 times");
}

/// Returns the standard error of a gimbal that has ended.
fn stderr(gimbal: &mut Live) -> String {
    let mut printed = String::new();
    gimbal.child().stderr.take().expect("it is piped").read_to_string(&mut printed).expect("it is text");
    printed
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn brings_remote_gimbal_to_setpoint() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("spi");
    let _plant = plant(&socket);
    let gimbal =
        steered(&place, b"0.3,-0.2\n", |it| (it[0] - 0.3).abs() < 0.02 && (it[1] + 0.2).abs() < 0.02);
    let output = gimbal.interrupt();
    let printed = printed(&output);
    let line = printed.lines().find(|line| line.starts_with("SPI: ")).unwrap_or_else(|| panic!("{printed}"));
    let exchanges = line["SPI: ".len()..].split(" exchanges").next().unwrap().replace(' ', "");
    let exchanges: u64 = exchanges.parse().unwrap();
    assert!(exchanges > 100, "{printed}");
}

#[test]
fn reconnects_after_loss_of_plant() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let socket: PathBuf = place.path().join("spi");
    let first = plant(&socket);
    let mut second = Command::new(env!("CARGO_BIN_EXE_gimbal-plant"));
    let output = second.arg(&socket).output_within(TEST_LIMIT).expect("it can be run");
    assert_eq!(output.status.code(), Some(1));
    assert!(printed(&output).contains("another gimbal-plant uses it"), "{}", printed(&output));

    let mut gimbal = steered(&place, b"", |_| true);
    drop(first);
    let ended = gimbal.wait_or_end(|| None::<()>).unwrap_err();
    let printed = stderr(&mut gimbal);
    assert_eq!(ended.code(), Some(1), "{printed}");
    assert!(printed.contains("the controller gave up; is the gimbal at spi still on?"), "{printed}");

    // No process listens on the socket that a killed plant leaves behind.
    let _next = plant(&socket);
}

#[test]
fn rejects_missing_device_before_any_motion() {
    let place = tempfile::tempdir().unwrap();
    for (device, why) in [
        ("/dev/spidev9.9", "`ls /dev/spidev*` lists those of this machine"),
        ("/dev/null", "/dev/null is not an SPI device"),
    ] {
        let output =
            gimbal(place.path(), &["--spi", device]).output_within(TEST_LIMIT).expect("it can be run");
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        assert!(printed(&output).contains(why), "{device}: {}", printed(&output));
        assert!(!place.path().join("r.html").exists());
    }
    let output = gimbal(place.path(), &["--spi", "x", "--spi-mode", "4"])
        .output_within(TEST_LIMIT)
        .expect("it can be run");
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
}

/// Without permission for real-time priorities, a plant reports this and still answers.
#[test]
fn warns_without_real_time_priority() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let mut command = plant_at(&place.path().join("spi"));
    // SAFETY: two calls that may be made between fork and exec, and that read no memory but the
    // limit.
    unsafe {
        command.pre_exec(|| {
            const CAP_SYS_NICE: libc::c_ulong = 23;
            // Fails for a process without the capability, which is then already in the state that
            // the test needs.
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_NICE);
            match libc::setrlimit(libc::RLIMIT_RTPRIO, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut plant = Live::new(command.spawn().expect("it can be run"));
    let mut printed = BufReader::new(plant.child().stderr.take().expect("it is piped")).lines();
    let mut line = || printed.next().expect("it says more").expect("it is text");
    assert!(line().starts_with("gimbal-plant: ready at "));
    let refusal = line();
    assert!(refusal.contains("*** NOT REAL-TIME") && refusal.contains("--priority 0"), "{refusal}");
}
