//! Events of devices release tasks: edges of GPIO lines, frames on a CAN bus; and tasks talk to a device on SPI.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::{Artifact, Purpose};
use xtask_support::process::{End, Outcome};

use super::{Case, PROGRAMS, Setup, demand, find};
use crate::driver::stage::in_guest;
use crate::kernels::modules;

/// Where there are modules of the lab's own, and those for CAN.
pub(super) const MODULES: &[Setup] = &[Setup::Counted, Setup::Two, Setup::ProbeCounted, Setup::ProbeTwo];

/// Those in counted time, where what comes in time does so every time; quick runs have no others.
pub(super) const MODULES_COUNTED: &[Setup] = &[Setup::Counted, Setup::ProbeCounted];

/// What a board lacks for a case that takes one of them.
pub(super) const NO_MODULES: &str = "a module of the lab's own";

/// The cases of this file.
pub(super) fn cases(built: &[Artifact]) -> Result<Vec<Case>> {
    let program = |name: &str| find(built, Purpose::Example, PROGRAMS, name);
    Ok(vec![edge(program("gpio_responder")?), spi(program("spi_exchange")?), can(program("can_frames")?)])
}

/// Every setting has to apply, or the app does not start.
pub(super) const STRICT: &str = "PUNCTUAL_STRICT=1";

/// An edge that the kernel simulates releases a task, which drives another line.
fn edge(responder: &Path) -> Case {
    let script = format!(
        "{SIMULATED}
        {STRICT} {responder} /dev/$chip 0 1 5 >said 2>&1 &
        until grep -q ready said || ! kill -0 $!; do sleep 0.1; done
        for n in 1 2 3 4 5; do
            echo pull-up >$lines/sim_gpio0/pull
            sleep 0.02
            echo pull-down >$lines/sim_gpio0/pull
            sleep 0.02
        done
        wait $!
        status=$?
        grep -v between said
        {REMOVED}
        exit $status",
        responder = in_guest(responder)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome, outcome.stdout == "ready\nshut down after 5 edges\n", "other jobs ran than expected")
    };
    let on = &[Setup::ProbeCounted, Setup::ProbeTwo];
    Case::new("GPIO edge releases a task", on, script, Some(responder), Box::new(judge))
}

/// Makes a chip of two simulated lines: `$chip` its name, `$lines` the directory of its lines.
pub(super) const SIMULATED: &str = "bank=/sys/kernel/config/gpio-sim/lab/bank
        mkdir -p $bank && echo 2 >$bank/num_lines && echo lab-sim >$bank/label && echo 1 >${bank%/bank}/live || exit 9
        chip=$(cat $bank/chip_name)
        lines=/sys/devices/platform/$(cat ${bank%/bank}/dev_name)/$chip";

/// Removes it again.
pub(super) const REMOVED: &str = "echo 0 >${bank%/bank}/live; rmdir $bank ${bank%/bank}";

/// A task exchanges frames through spidev.
fn spi(program: &Path) -> Case {
    let module = modules::in_guest("punctual_spi");
    let script = format!(
        "insmod {module} || exit 9
        {STRICT} {} $(ls /dev/spidev*) 50 2>/dev/null
        status=$?
        rmmod punctual_spi
        exit $status",
        in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome, outcome.stdout == "shut down after 50 exchanges\n", "exchanges are missing")
    };
    Case::new("SPI exchange through spidev", MODULES, script, Some(program), Box::new(judge))
        .quick(MODULES_COUNTED)
        .lacking(NO_MODULES)
}

/// Frames release a task.
fn can(program: &Path) -> Case {
    let script = format!(
        "ip link add vcan0 type vcan && ip link set vcan0 up || exit 9
        {STRICT} {} vcan0 50
        status=$?
        ip link del vcan0
        exit $status",
        in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome, outcome.stdout == "shut down after 50 frames\n", "frames are missing")
    };
    Case::new("CAN frame releases a task", MODULES, script, Some(program), Box::new(judge))
        .quick(MODULES_COUNTED)
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;

    #[test]
    fn refuses_missing_edge() {
        let judge = edge(Path::new("/x")).judge;
        judge(&outcome("ready\nshut down after 5 edges\n", "")).unwrap();
        assert!(judge(&outcome("ready\nshut down after 4 edges\n", "")).is_err());
    }

    #[test]
    fn refuses_missing_exchanges_and_frames() {
        let (spi, can) = (spi(Path::new("/x")).judge, can(Path::new("/x")).judge);
        spi(&outcome("shut down after 50 exchanges\n", "")).unwrap();
        assert!(spi(&outcome("shut down after 49 exchanges\n", "")).is_err());
        can(&outcome("shut down after 50 frames\n", "")).unwrap();
        assert!(can(&outcome("", "")).is_err());
    }
}
