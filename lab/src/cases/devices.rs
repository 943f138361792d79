//! Events of devices release tasks: edges of GPIO lines, frames on a CAN bus; and tasks communicate
//! with a device on SPI.

use std::path::{Path, PathBuf};

use xtask_support::Result;
use xtask_support::cargo::{self, Purpose};
use xtask_support::process::{End, Outcome};

use super::{Built, Case, PROGRAMS, Setup, demand, find};
use crate::driver::stage::in_guest;
use crate::kernels::modules;

/// The machines with modules of the lab, and those for CAN.
pub(super) const MODULES: &[Setup] = &[Setup::COUNTED, Setup::TWO, Setup::PROBE_COUNTED, Setup::PROBE_TWO];

/// The machines in counted time, where timing is reproducible.
pub(super) const MODULES_COUNTED: &[Setup] = &[Setup::COUNTED, Setup::PROBE_COUNTED];

/// The feature that a board lacks for cases with such a module.
pub(super) const NO_MODULES: &str = "a module of the lab's own";

/// The cases of this file.
pub(super) fn cases(built: Built<'_>) -> Result<Vec<Case>> {
    let program = |name: &str| find(built, Purpose::Example, PROGRAMS, name);
    Ok(vec![
        edge(program("gpio_responder")?),
        spi(program("spi_exchange")?),
        far_end(&gimbal(), &gimbal().with_file_name("gimbal-plant")),
        can(program("can_frames")?),
    ])
}

/// The maximum deviation of the axes of a gimbal behind a bus from the reference in virtual time,
/// in µrad: the rotation in a period of 100 µs, at most 27.4 and 15.6 rad/s. Its sensors are read
/// at most that much later, when the transfer has reached the plant's process.
const PERIOD_URAD: [u32; 2] = [2740, 1560];

/// Every setting must apply, or the app does not start.
pub(super) const STRICT: &str = "PUNCTUAL_STRICT=1";

/// A simulated edge releases a task, which drives another line.
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
        demand(outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome.stdout == "ready\nshut down after 5 edges\n", "other jobs ran than expected")
    };
    let on = &[Setup::PROBE_COUNTED, Setup::PROBE_TWO];
    Case::new("GPIO edge releases a task", on, script, Some(responder), judge)
}

/// Creates a chip with two simulated lines: `$chip` is its name, `$lines` the directory of its
/// lines.
pub(super) const SIMULATED: &str = "bank=/sys/kernel/config/gpio-sim/lab/bank
        mkdir -p $bank && echo 2 >$bank/num_lines && echo lab-sim >$bank/label && echo 1 >${bank%/bank}/live || exit 9
        chip=$(cat $bank/chip_name)
        lines=/sys/devices/platform/$(cat ${bank%/bank}/dev_name)/$chip";

/// Removes the chip.
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
        demand(outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome.stdout == "shut down after 50 exchanges\n", "exchanges are missing")
    };
    Case::new("SPI exchange through spidev", MODULES, script, Some(program), judge).lacking(NO_MODULES)
}

/// Returns the path of the gimbal: a release build, as 10 000 exchanges per second are too many for
/// a debug build.
pub(crate) fn gimbal() -> PathBuf {
    cargo::target_dir().join("release/gimbal")
}

/// The gimbal's controller and its plant, two processes at the two ends of a bus.
fn far_end(gimbal: &Path, plant: &Path) -> Case {
    let module = modules::in_guest("punctual_spi");
    let script = format!(
        "insmod {module} far=1 || exit 9
        device=$(ls /dev/spidev*)
        control() {{ {gimbal} --spi $device --report r.html --seconds $* >said 2>&1; echo \"status $?\"; }}
        control 1; grep -o 'no gimbal answers' said
        control 1 --spi-mode 1; grep -o 'does not take mode 1' said
        {plant} /dev/punctual-spi 2>ready &
        until grep -q ready ready || ! kill -0 $!; do sleep 0.1; done
        control 2; grep -E '^(SPI|pan|tilt): ' said; grep -o 'NOT REAL-TIME' ready
        (sleep 2; kill -9 $!) &
        control 60 --stdin </dev/null; grep -o 'the controller gave up' said
        wait
        rmmod punctual_spi",
        gimbal = in_guest(gimbal),
        plant = in_guest(plant),
    );
    Case::new("a gimbal behind spidev", &[Setup::COUNTED], script, Some(gimbal), behind_spidev)
        .with(plant)
        .lacking(NO_MODULES)
}

/// Checks that the gimbal follows, and that each error is reported.
fn behind_spidev(outcome: &Outcome) -> Result {
    demand(outcome.end == End::Exited(0), "the module cannot be had")?;
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let [
        "status 1",
        "no gimbal answers",
        "status 1",
        "does not take mode 1",
        "status 0",
        pan,
        tilt,
        spi,
        "status 1",
        "the controller gave up",
    ] = lines[..]
    else {
        return demand(false, "not what a gimbal says");
    };
    let exchanges =
        spi.strip_prefix("SPI: ").and_then(|rest| rest.strip_suffix(" exchanges, 0 lost or damaged"));
    let grouped = |number: &str| number.replace(' ', "").parse::<u32>().ok();
    let exchanges = exchanges.and_then(grouped);
    demand(exchanges.is_some_and(|number| number >= 19_990), "exchanges are missing or damaged")?;
    // "pan: at most 767 µrad from the virtual-time reference, …"
    let near = |line: &str, limit: u32| {
        let number = line.split_once(": at most ").and_then(|(_, rest)| rest.split_once(" µrad from "));
        number.and_then(|(number, _)| grouped(number)).is_some_and(|urad| urad <= limit)
    };
    let [of_pan, of_tilt] = PERIOD_URAD;
    demand(near(pan, of_pan) && near(tilt, of_tilt), "the movement differs from virtual time")
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
        demand(outcome.end == End::Exited(0), "the app failed")?;
        demand(outcome.stdout == "shut down after 50 frames\n", "frames are missing")
    };
    Case::new("CAN frame releases a task", MODULES, script, Some(program), judge)
}

#[cfg(test)]
mod tests {
    use super::super::{rejects, requires_each_line};
    use super::*;

    #[test]
    fn rejects_missing_edges_exchanges_and_frames() {
        let x = Path::new("/x");
        rejects(edge(x).judge, "ready\nshut down after 5 edges\n", &[("5", "4")]);
        rejects(spi(x).judge, "shut down after 50 exchanges\n", &[("50", "49")]);
        requires_each_line(can(x).judge, "shut down after 50 frames\n");
    }

    #[test]
    fn rejects_gimbal_that_misses_its_setpoint() {
        let judge = far_end(Path::new("/g"), Path::new("/p")).judge;
        let good = "status 1\nno gimbal answers\nstatus 1\ndoes not take mode 1\nstatus 0\n\
                    pan: at most 767 µrad from the virtual-time reference, RMS 1.0 µrad\n\
                    tilt: at most 1 534 µrad from the virtual-time reference, RMS 1.0 µrad\n\
                    SPI: 20 000 exchanges, 0 lost or damaged\nstatus 1\nthe controller gave up\n";
        requires_each_line(&judge, good);
        rejects(
            &judge,
            good,
            &[
                ("most 767 µ", "most 3 000 µ"),
                ("1 534 µ", "15.3 m"),
                ("20 000", "15 000"),
                ("0 lost", "1 lost"),
            ],
        );
    }
}
