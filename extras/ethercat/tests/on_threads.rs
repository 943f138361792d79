//! The app on kernel threads: with drives in the same process, and with drives in another process
//! at the end of a pair of Ethernet interfaces.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::bus::{Bus, Fault};
use ethercat::simulated::esc::WATCHDOG_NS;
use ethercat::simulated::{Faults, Network, SimulatedLink};
use ethercat::{Counts, PERIOD, app};
use ethercrab::SubDeviceState;
use punctual::Config;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::Need;

/// Starts the drives, then the controller, in a separate network namespace.
const SCRIPT: &str = "ip link add ecat0 type veth peer name ecat1 &&
    ip link set ecat0 up && ip link set ecat1 up && echo ready || exit 77
    \"$1\" ecat1 --drives & drives=$!
    \"$1\" ecat0; status=$?
    kill $drives; wait $drives 2>/dev/null; exit $status";

#[test]
fn controls_drives_in_another_process() {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_ethercat")]);
    command.stdin(Stdio::null());
    let _alone = test_skip::alone();
    let Ok(output) = command.output_within(TEST_LIMIT) else {
        return test_skip::skip(Need::Tool("unshare"), "EtherCAT over Ethernet");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.starts_with("ready") {
        return test_skip::skip(
            Need::System("a pair of interfaces in a network namespace"),
            "EtherCAT over Ethernet",
        );
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    // On a busy machine the drives, an ordinary process, answer late, or the app does.
    let reasons = ["Lost", "NotOperational(SafeOp)"];
    let is_delayed = reasons.iter().any(|reason| errors.contains(&format!("the bus has failed: {reason}")));
    assert!(output.status.success() || is_delayed, "{text}{errors}");
    let is_working = text.contains("2 SubDevices") && !text.contains("exchanges: 0,");
    assert!(is_working && text.contains("incomplete: 0"), "{text}{errors}");
}

#[test]
fn controls_drives_in_same_process() {
    const GOAL: i32 = 1_000;
    let network = Arc::new(Mutex::new(Network::new(2, Faults::default())));
    let link = Box::new(SimulatedLink::new(network));
    let _alone = test_skip::alone();
    let bus = Bus::start(link, PERIOD.into()).unwrap();
    let counts = Arc::<Counts>::default();
    // Longer than the test takes on any machine.
    let config = Config::new().until(Duration::from_secs(120));
    app::run(config, bus, Arc::clone(&counts), GOAL, 500).unwrap();
    // A busy machine may delay the exchange beyond the drives' watchdogs.
    let reason = counts.reason.get();
    let is_delayed = reason == Some(&Fault::NotOperational(SubDeviceState::SafeOp));
    // Near the goal a drive moves by an increment per SYNC0, during a delay at most until its
    // watchdog expires.
    let bound = 3 + (WATCHDOG_NS / PERIOD.as_nanos()) as u32;
    let mut last = counts.positions.iter().take(2).map(|position| position.load(Relaxed));
    let are_at_goal = last.all(|position| position.abs_diff(GOAL) <= bound);
    assert!(is_delayed || (reason.is_none() && are_at_goal), "{counts:?}");
}
